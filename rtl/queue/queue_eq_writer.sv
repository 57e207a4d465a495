// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_eq_writer: writes events into event queues in host memory and raises interrupts.
//
// Events come from SOURCES blocks, in turn, for a given EQ or for the asynchronous EQ of a
// function. Each is written at level 2 of host_dma_write together with its EQE_DONE token; when
// that comes out the vector is raised if the EQ is armed (queue_arm). One event per cycle.
//
// A ring that is full loses events and remembers it (`overrun`): as soon as there is room again,
// one EQE of type EQ_OVERRUN is written before anything else, by the next event or, if none comes,
// by a walk over the EQs that overran. Rings are made so large that a well-behaved host never sees
// one. Events for an EQ that is not valid are dropped.
//
// Columns EQ and FN: ctx_eq, ctx_fn of hwif/contexts.toml.
// Neighbours: queue_cq_writer, context_qp_state and others (events), host_dma_write, host_doorbell,
// host_interrupt.
`default_nettype none

module queue_eq_writer #(
  parameter int unsigned SOURCES = 2                        // event streams, >= 2
) (
  input  wire                                   clk_i,
  input  wire                                   rst_i,
  output logic                                  ready_o,        // tables are cleared after reset

  input  wire roci_pkg::ctx_req_t               ctx_i,          // columns EQ, FN
  output roci_pkg::ctx_rsp_t                    ctx_o,

  input  wire [SOURCES-1:0]                     event_valid_i,
  output logic [SOURCES-1:0]                    event_ready_o,
  input  wire roci_pkg::event_t [SOURCES-1:0]   event_i,

  // host_dma_write: level 2 and its EQE_DONE
  output logic                                  req_valid_o,
  input  wire                                   req_ready_i,
  output roci_pkg::dma_write_req_t              req_o,
  output logic                                  data_valid_o,
  input  wire                                   data_ready_i,
  output roci_pkg::write_beat_t                 data_o,
  input  wire                                   done_valid_i,
  output logic                                  done_ready_o,
  input  wire roci_pkg::token_t                 done_i,

  input  wire                                   doorbell_valid_i,
  input  wire roci_pkg::doorbell_t              doorbell_i,     // EQ_CONSUMED_ARM; always accepted

  output logic                                  raise_valid_o,  // always accepted
  output cpu_pkg::irq_raise_t                   raise_o,

  input  wire roci_pkg::colour_t                colour_i,
  output roci_pkg::fence_busy_t                 fence_busy_o,

  output logic                                  count_eqe_o,    // written
  output logic                                  count_overrun_o // an EQ began to lose events
);

  localparam int unsigned EQ_BITS = roci_config_pkg::EQ_BITS;
  localparam int unsigned EQS = 2 ** EQ_BITS;
  localparam int unsigned FNS = 2 ** roci_config_pkg::FN_BITS;
  localparam int unsigned DATA_BYTES = roci_pkg::DATA_BYTES;
  localparam int unsigned EQE_BYTES = roci_hwif_pkg::EQE_BYTES;
  localparam int unsigned BEATS = DATA_BYTES >= EQE_BYTES ? 1 : EQE_BYTES / DATA_BYTES;
  localparam int unsigned BEAT_BITS = BEATS > 1 ? $clog2(BEATS) : 1;
  localparam int unsigned DEPTH = 4;                        // EQEs that wait
  localparam int unsigned USAGE_BITS = $clog2(DEPTH + 1);
  localparam int unsigned HELD_BITS = 8;

  typedef queue_cq_pkg::index_t index_t;
  typedef roci_pkg::eq_t eq_t;

  typedef struct packed {
    logic [4:0] log2;
    logic [51:0] page;
  } ring_t;

  typedef struct packed {
    logic valid;
    roci_pkg::fn_t fn;
    cpu_pkg::vector_t irq_vector;
  } owner_t;

  typedef struct packed {
    logic overrun;
    index_t producer;
  } dynamic_t;

  typedef struct packed {
    logic valid;
    eq_t eq;
  } async_t;

  typedef struct packed {
    roci_pkg::colour_t colour;
    roci_pkg::event_t what;
  } stamped_t;

  typedef struct packed {
    roci_pkg::colour_t colour;
    roci_pkg::fn_t fn;
    roci_pkg::addr_t addr;
    queue_cq_pkg::eq_done_t done;
    roci_hwif_pkg::eqe_t eqe;
  } placed_t;

  typedef enum logic [1:0] {OP_EVENT, OP_NUDGE, OP_ROW} op_e;

  // ------------------------------------------------------------------------------ events, in turn
  logic merged_valid, merged_ready, event_valid, event_ready;
  roci_pkg::event_t merged;
  stamped_t stamped, event0;
  logic [$bits(roci_pkg::event_t)-1:0] merged_bits;
  logic [$bits(stamped_t)-1:0] event_bits;

  common_arbiter #(.N(SOURCES), .WIDTH($bits(roci_pkg::event_t))) u_arbiter (
    .clk_i, .rst_i, .in_valid_i(event_valid_i), .in_ready_o(event_ready_o), .in_last_i('1),
    .in_i(event_i), .out_valid_o(merged_valid), .out_ready_i(merged_ready), .out_o(merged_bits),
    .out_index_o()
  );
  assign merged = roci_pkg::event_t'(merged_bits);
  assign stamped = '{colour: colour_i, what: merged};

  common_skid #(.WIDTH($bits(stamped_t))) u_stamped (
    .clk_i, .rst_i, .in_valid_i(merged_valid), .in_ready_o(merged_ready), .in_i(stamped),
    .out_valid_o(event_valid), .out_ready_i(event_ready), .out_o(event_bits)
  );
  assign event0 = stamped_t'(event_bits);

  // ------------------------------------------------------------------------------ stage 0: choose
  // Row accesses: through the pipeline, then through queue_arm, then clear the consumed index.
  typedef enum logic [2:0] {
    ROW_IDLE, ROW_RUN, ROW_LOOK, ROW_ARM, ROW_ARM_LOOK, ROW_CLEAR, ROW_ANSWER
  } row_e;
  row_e row_q;
  logic row_ring, row_start, row_fn;
  eq_t row_eq;
  roci_hwif_pkg::ctx_eq_t row_in, row_out_q;
  roci_hwif_pkg::ctx_fn_t fn_in;

  logic [USAGE_BITS-1:0] usage;
  logic room, fn_ready, owner_ready;
  async_t async_row, async_in;
  logic [$bits(async_t)-1:0] async_bits;
  logic valid0, valid1_q, valid2_q, target0, target1_q;
  op_e op0, op1_q;
  eq_t eq0, eq1_q;
  stamped_t item0, item1_q;

  logic [EQS-1:0] overrun_q;               // copy of the rows' bits, for the walk
  eq_t walk_q;

  assign row_eq = eq_t'(ctx_i.index);
  assign row_ring = ctx_i.write && ctx_i.word == 4'd0;
  assign row_start = ctx_i.write && ctx_i.word == 4'd1;
  assign row_in = roci_hwif_pkg::ctx_eq_t'({2{ctx_i.wdata, ctx_i.wdata}});
  assign fn_in = roci_hwif_pkg::ctx_fn_t'(ctx_i.wdata);
  assign row_fn = ctx_i.valid && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_FN;
  assign async_in = '{valid: fn_in.valid, eq: eq_t'(fn_in.async_eq)};

  assign room = usage + USAGE_BITS'(valid1_q) + USAGE_BITS'(valid2_q) < USAGE_BITS'(DEPTH);
  // u_async shows the row of an access as long as it stands, the cycle of its answer included.
  assign event_ready = ready_o && room && row_q != ROW_RUN && !row_fn;

  always_comb begin
    op0 = OP_EVENT;
    eq0 = event0.what.eq_valid ? event0.what.eq : async_row.eq;
    target0 = event0.what.eq_valid || async_row.valid;
    valid0 = event_valid && event_ready;
    item0 = event0;
    if (row_q == ROW_RUN) begin
      op0 = OP_ROW;
      eq0 = row_eq;
      valid0 = 1'b1;
    end else if (!valid0 && overrun_q[walk_q] && room) begin
      op0 = OP_NUDGE;
      eq0 = walk_q;
      target0 = 1'b1;
      valid0 = 1'b1;
      item0.colour = colour_i;
    end
  end

  common_ram_cleared #(
    .WIDTH($bits(async_t)), .DEPTH(FNS), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_async (
    .clk_i, .rst_i, .ready_o(fn_ready),
    .we_i(row_fn && row_q == ROW_IDLE && ctx_i.write && ready_o),
    .waddr_i(roci_pkg::fn_t'(ctx_i.index)),
    .wdata_i(async_in), .re_i(1'b1),
    .raddr_i(row_fn ? roci_pkg::fn_t'(ctx_i.index) : event0.what.fn), .rdata_o(async_bits)
  );
  assign async_row = async_t'(async_bits);

  always_ff @(posedge clk_i) begin
    valid1_q <= valid0 && !rst_i;
    op1_q <= op0;
    eq1_q <= eq0;
    target1_q <= target0;
    item1_q <= item0;
  end

  // ------------------------------------------------------------------------------ stage 1: decide
  ring_t ring, ring_next;
  owner_t owner, owner_next;
  dynamic_t dynamic1, dynamic_next;
  logic [$bits(ring_t)-1:0] ring_bits;
  logic [$bits(owner_t)-1:0] owner_bits;
  logic [$bits(dynamic_t)-1:0] dynamic_bits;
  index_t consumed, distance, in_ring;
  logic full, live, writes, report, loses;
  logic is_row, dynamic_write, doorbell, clear;

  common_ram_sdp #(.WIDTH($bits(ring_t)), .DEPTH(EQS), .LATENCY(1)) u_ring (
    .clk_i, .we_i(is_row && row_ring), .waddr_i(eq1_q), .wdata_i(ring_next),
    .re_i(1'b1), .raddr_i(eq0), .rdata_o(ring_bits)
  );
  common_ram_cleared #(.WIDTH($bits(owner_t)), .DEPTH(EQS), .LATENCY(1)) u_owner (
    .clk_i, .rst_i, .ready_o(owner_ready), .we_i(is_row && row_start), .waddr_i(eq1_q),
    .wdata_i(owner_next), .re_i(1'b1), .raddr_i(eq0), .rdata_o(owner_bits)
  );
  common_ram_sdp #(.WIDTH($bits(dynamic_t)), .DEPTH(EQS), .LATENCY(1)) u_dynamic (
    .clk_i, .we_i(dynamic_write), .waddr_i(eq1_q), .wdata_i(dynamic_next),
    .re_i(1'b1), .raddr_i(eq0), .rdata_o(dynamic_bits)
  );

  assign doorbell = doorbell_valid_i && doorbell_i.kind == roci_pkg::DOORBELL_EQ_CONSUMED_ARM;
  assign clear = row_q == ROW_CLEAR && !doorbell;

  common_ram_sdp #(.WIDTH($bits(index_t)), .DEPTH(EQS), .LATENCY(1)) u_consumed (
    .clk_i, .we_i(doorbell || clear), .waddr_i(doorbell ? eq_t'(doorbell_i.object_index) : row_eq),
    .wdata_i(doorbell ? index_t'(doorbell_i.index) : '0),
    .re_i(1'b1), .raddr_i(eq0), .rdata_o(consumed)
  );

  assign ring = ring_t'(ring_bits);
  assign owner = owner_t'(owner_bits);
  assign dynamic1 = dynamic_t'(dynamic_bits);
  assign is_row = valid1_q && op1_q == OP_ROW;
  assign ring_next = '{log2: row_in.log2_entries, page: row_in.ring_page};
  assign owner_next = '{valid: row_in.valid, fn: roci_pkg::fn_t'(row_in.fn),
                        irq_vector: cpu_pkg::vector_t'(row_in.irq_vector)};

  always_comb begin
    in_ring = (index_t'(1) << ring.log2) - 1'b1;
    distance = dynamic1.producer - consumed;
    full = (distance & ~in_ring) != '0;
    live = valid1_q && op1_q != OP_ROW && target1_q && owner.valid;
    report = dynamic1.overrun;
    writes = live && !full && (op1_q == OP_EVENT || report);
    loses = live && full && op1_q == OP_EVENT;

    dynamic_next = dynamic1;
    if (writes) dynamic_next = '{overrun: 1'b0, producer: dynamic1.producer + 1'b1};
    if (loses) dynamic_next.overrun = 1'b1;
    if (is_row) dynamic_next = '0;
    dynamic_write = writes || loses || (is_row && row_start);
  end

  assign count_overrun_o = loses && !dynamic1.overrun;

  always_ff @(posedge clk_i) begin
    if (dynamic_write) overrun_q[eq1_q] <= dynamic_next.overrun;
    walk_q <= walk_q + 1'b1;
    if (rst_i) begin
      overrun_q <= '0;
      walk_q <= '0;
    end
  end

  // ------------------------------------------------------------------------------- stage 2: image
  stamped_t item2_q;
  ring_t ring2_q;
  owner_t owner2_q;
  index_t index2_q, slot;
  eq_t eq2_q;
  logic report2_q, drop1;
  placed_t placed, out;
  logic [$bits(placed_t)-1:0] out_bits;
  logic fifo_ready, out_valid, out_ready;

  // An event that makes no EQE is gone here; a nudge was never held.
  assign drop1 = valid1_q && op1_q == OP_EVENT && !writes;

  always_ff @(posedge clk_i) begin
    valid2_q <= writes && !rst_i;
    item2_q <= item1_q;
    ring2_q <= ring;
    owner2_q <= owner;
    index2_q <= dynamic1.producer;
    eq2_q <= eq1_q;
    report2_q <= report;
  end

  always_comb begin
    slot = index2_q & ((index_t'(1) << ring2_q.log2) - 1'b1);
    placed.colour = item2_q.colour;
    placed.fn = owner2_q.fn;
    placed.addr = {ring2_q.page, 12'h0} + 64'({slot, 4'h0});
    placed.done = '{eq: eq2_q, index: index2_q};
    placed.eqe = '0;
    placed.eqe.phase = !index2_q[5'(ring2_q.log2)];
    if (report2_q) begin
      placed.eqe.type_code = roci_hwif_pkg::EQE_TYPE_EQ_OVERRUN;
      placed.eqe.cause = roci_hwif_pkg::VENDOR_STATUS_EQ_OVERRUN;
    end else begin
      placed.eqe.type_code = roci_hwif_pkg::eqe_type_e'(item2_q.what.event_type);
      placed.eqe.object = item2_q.what.object;
      placed.eqe.cause = roci_hwif_pkg::vendor_status_e'(item2_q.what.cause);
      placed.eqe.detail = item2_q.what.data;
    end
  end

  common_fifo #(.WIDTH($bits(placed_t)), .DEPTH(DEPTH)) u_placed (
    .clk_i, .rst_i, .in_valid_i(valid2_q), .in_ready_o(fifo_ready), .in_i(placed),
    .out_valid_o(out_valid), .out_ready_i(out_ready), .out_o(out_bits), .usage_o(usage)
  );
  assign out = placed_t'(out_bits);

  // ------------------------------------------------------------------------- request and data out
  logic req_done_q, data_done_q, req_now, data_now;
  logic [BEAT_BITS-1:0] beat_q;

  assign req_valid_o = out_valid && !req_done_q;
  assign data_valid_o = out_valid && !data_done_q;
  assign req_now = req_done_q || req_ready_i;
  assign data_now = data_done_q || (data_ready_i && beat_q == BEAT_BITS'(BEATS - 1));
  assign out_ready = req_now && data_now;
  assign count_eqe_o = out_valid && out_ready;

  always_comb begin
    req_o = '0;
    req_o.has_token = 1'b1;
    req_o.fn = out.fn;
    req_o.length = roci_pkg::packet_len_t'(EQE_BYTES);
    req_o.addr = out.addr;
    req_o.token.kind = roci_pkg::TOKEN_EQE_DONE;
    req_o.token.colour = out.colour;
    req_o.token.body = roci_pkg::TOKEN_BODY_BITS'(out.done);
  end

  if (BEATS == 1) begin : gen_whole
    localparam int unsigned PARTS = DATA_BYTES / EQE_BYTES;
    always_comb begin
      data_o.last = 1'b1;
      data_o.data = {PARTS{out.eqe}};
      for (int unsigned p = 0; p < PARTS; p++) begin
        data_o.strobe[p*EQE_BYTES +: EQE_BYTES] =
            {EQE_BYTES{32'(out.addr[11:0]) / EQE_BYTES % PARTS == p}};
      end
    end
  end else begin : gen_parts
    always_comb begin
      data_o.last = beat_q == BEAT_BITS'(BEATS - 1);
      data_o.strobe = '1;
      data_o.data = out.eqe[32'(beat_q) * 8 * DATA_BYTES +: 8 * DATA_BYTES];
    end
  end

  always_ff @(posedge clk_i) begin
    if (out_valid) begin
      req_done_q <= req_now && !out_ready;
      data_done_q <= data_now && !out_ready;
      if (data_valid_o && data_ready_i) begin
        beat_q <= beat_q == BEAT_BITS'(BEATS - 1) ? '0 : beat_q + 1'b1;
      end
    end
    if (rst_i) begin
      req_done_q <= 1'b0;
      data_done_q <= 1'b0;
      beat_q <= '0;
    end
  end

  // --------------------------------------------------------------------------- arming, interrupts
  queue_cq_pkg::eq_done_t done;
  logic fire_valid, row_arm_ready;
  eq_t fire_eq;
  index_t fire_index, row_committed;
  logic row_armed, row_solicited;
  owner_t fire_owner;
  logic [$bits(owner_t)-1:0] fire_owner_bits;

  assign done = queue_cq_pkg::eq_done_t'(done_i.body[$bits(queue_cq_pkg::eq_done_t)-1:0]);

  // EQEs whose write failed wake the host all the same: it looks, and finds a hole in its ring.
  queue_arm #(.N(EQS), .INDEX_BITS(queue_cq_pkg::INDEX_BITS)) u_arm (
    .clk_i, .rst_i,
    .arm_valid_i(doorbell), .arm_object_i(eq_t'(doorbell_i.object_index)),
    .arm_index_i(index_t'(doorbell_i.index)), .arm_solicited_only_i(1'b0),
    .done_valid_i, .done_ready_o, .done_object_i(done.eq), .done_index_i(done.index),
    .done_solicited_i(1'b1),
    .row_valid_i(row_q == ROW_ARM), .row_ready_o(row_arm_ready), .row_clear_i(row_start),
    .row_object_i(row_eq), .row_committed_o(row_committed), .row_armed_o(row_armed),
    .row_solicited_only_o(row_solicited),
    .fire_valid_o(fire_valid), .fire_object_o(fire_eq), .fire_index_o(fire_index)
  );

  common_ram_sdp #(
    .WIDTH($bits(owner_t)), .DEPTH(EQS), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_fire_owner (
    .clk_i, .we_i(is_row && row_start), .waddr_i(eq1_q), .wdata_i(owner_next),
    .re_i(1'b1), .raddr_i(fire_eq), .rdata_o(fire_owner_bits)
  );
  assign fire_owner = owner_t'(fire_owner_bits);

  always_ff @(posedge clk_i) begin
    raise_valid_o <= fire_valid && fire_owner.valid && !rst_i;
    raise_o <= '{fn: fire_owner.fn, irq_vector: fire_owner.irq_vector};
  end

  wire unused_arm = &{1'b0, fire_index, row_solicited, done_i.kind, done_i.qp, done_i.error,
                      done_i.packet_end, done_i.body};

  // --------------------------------------------------------------------------------- context bus
  assign ready_o = fn_ready && owner_ready;

  always_ff @(posedge clk_i) begin
    ctx_o <= '0;
    unique case (row_q)
      ROW_IDLE: begin
        if (row_fn && ready_o) begin
          ctx_o.done <= 1'b1;
          if (!ctx_i.write) begin
            ctx_o.rdata <= 64'(roci_hwif_pkg::ctx_fn_t'({47'h0, async_row.valid,
                                                         16'(async_row.eq)}));
          end
          row_q <= ROW_ANSWER;
        end else if (ctx_i.valid && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_EQ && ready_o) begin
          row_q <= ROW_RUN;
        end
      end
      ROW_RUN: row_q <= ROW_LOOK;
      ROW_LOOK: row_q <= ROW_ARM;
      ROW_ARM: if (row_arm_ready) row_q <= ROW_ARM_LOOK;
      ROW_ARM_LOOK: row_q <= ROW_CLEAR;
      ROW_CLEAR: begin
        if (!row_start || clear) begin
          row_q <= ROW_ANSWER;
          ctx_o.done <= 1'b1;
          if (!ctx_i.write) begin
            unique case (ctx_i.word)
              4'd0: ctx_o.rdata <= row_out_q[63:0];
              4'd1: ctx_o.rdata <= row_out_q[127:64];
              4'd2: ctx_o.rdata <= row_out_q[191:128];
              4'd3: ctx_o.rdata <= row_out_q[255:192];
              default: ;
            endcase
          end
        end
      end
      default: row_q <= ROW_IDLE;
    endcase
    if (row_q == ROW_LOOK) begin
      row_out_q <= '0;
      row_out_q.log2_entries <= ring.log2;
      row_out_q.ring_page <= ring.page;
      row_out_q.valid <= owner.valid;
      row_out_q.fn <= 8'(owner.fn);
      row_out_q.irq_vector <= 8'(owner.irq_vector);
      row_out_q.producer <= dynamic1.producer;
      row_out_q.overrun <= dynamic1.overrun;
      row_out_q.consumed <= consumed;
    end
    if (row_q == ROW_ARM_LOOK) begin
      row_out_q.committed <= row_committed;
      row_out_q.armed <= row_armed;
    end
    if (rst_i) row_q <= ROW_IDLE;
  end

  // ---------------------------------------------------------------------------------------- fence
  // Events and nudges of each colour without their EQE_DONE.
  logic [1:0][HELD_BITS-1:0] held_q;
  logic [1:0][1:0] held_in, held_out;

  always_comb begin
    held_in = '0;
    held_out = '0;
    held_in[colour_i] = 2'(merged_valid && merged_ready)
                        + 2'(valid1_q && op1_q == OP_NUDGE && writes && item1_q.colour == colour_i);
    if (valid1_q && op1_q == OP_NUDGE && writes && item1_q.colour != colour_i) begin
      held_in[!colour_i] = 2'd1;
    end
    held_out[item1_q.colour] = 2'(drop1);
    held_out[done_i.colour] = held_out[done_i.colour] + 2'(done_valid_i && done_ready_o);
    for (int unsigned c = 0; c < 2; c++) fence_busy_o[c] = held_q[c] != '0;
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < 2; c++) begin
      held_q[c] <= held_q[c] + HELD_BITS'(held_in[c]) - HELD_BITS'(held_out[c]);
    end
    if (rst_i) held_q <= '0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && valid2_q) assert (fifo_ready);
  end

endmodule

`default_nettype wire
