// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_cq_place: gives each completion its place in the ring and makes its image.
//
// One completion per cycle, also all for one CQ: the producer index is read, used and written in a
// pipeline with bypass. A ring that is full overflows: the CQ stops for good (`error`), nothing is
// overwritten; completions of a stopped or destroyed CQ pass without a place. Results wait in a
// small FIFO; a completion is taken only if there is room in it, so the pipeline never stalls.
//
// The one writer of producer index and error bit; consumed indices come from doorbells only.
// Does not: look at arming (queue_cq_events). Neighbours: queue_cq_writer (around it).
`default_nettype none

module queue_cq_place (
  input  wire                               clk_i,
  input  wire                               rst_i,
  output logic                              ready_o,        // no CQ is valid, after reset

  input  wire [47:0]                        clock_i,        // timestamp of CQEs

  // completions
  input  wire                               item_valid_i,
  output logic                              item_ready_o,
  input  wire queue_cq_pkg::item_t          item_i,

  // stop a CQ after a failed write; the answer comes in the next cycle
  input  wire                               stop_valid_i,
  output logic                              stop_ready_o,
  input  wire roci_pkg::cq_t                stop_cq_i,
  output logic                              stop_first_o,   // it was not stopped before

  // row access; held until row_done_o
  input  wire                               row_valid_i,
  input  wire                               row_ring_i,     // write ring_page and log2_entries
  input  wire                               row_start_i,    // write valid and fn, start afresh
  input  wire roci_pkg::cq_t                row_cq_i,
  input  wire roci_hwif_pkg::ctx_cq_t       row_i,
  output logic                              row_done_o,
  output roci_hwif_pkg::ctx_cq_t            row_o,          // its part of the row, rest zero

  input  wire                               doorbell_valid_i,
  input  wire roci_pkg::doorbell_t          doorbell_i,     // those that say what is consumed

  // places
  output logic                              place_valid_o,
  input  wire                               place_ready_i,
  output queue_cq_pkg::placed_t             place_o
);

  localparam int unsigned CQS = 2 ** roci_config_pkg::CQ_BITS;
  localparam int unsigned DEPTH = 8;                       // places that wait
  localparam int unsigned USAGE_BITS = $clog2(DEPTH + 1);

  typedef queue_cq_pkg::index_t index_t;

  typedef struct packed {
    logic [4:0] log2;
    logic [51:0] page;
  } ring_t;

  typedef struct packed {
    logic valid;
    roci_pkg::fn_t fn;
  } owner_t;

  typedef struct packed {
    logic error;
    index_t producer;
    index_t switched;
  } dynamic_t;

  typedef enum logic [1:0] {OP_ITEM, OP_STOP, OP_ROW} op_e;

  // ------------------------------------------------------------------------------ stage 0: choose
  logic [USAGE_BITS-1:0] usage;
  logic room;
  logic valid0, valid1_q, valid2_q;
  op_e op0, op1_q;
  roci_pkg::cq_t cq0, cq1_q;
  queue_cq_pkg::item_t item1_q;

  // Row accesses: read and write in the pipeline, then clear the consumed index.
  typedef enum logic [1:0] {ROW_IDLE, ROW_RUN, ROW_CLEAR, ROW_DONE} row_state_e;
  row_state_e row_state_q;
  logic row_take;

  assign room = usage + USAGE_BITS'(valid1_q) + USAGE_BITS'(valid2_q) < USAGE_BITS'(DEPTH);
  assign stop_ready_o = 1'b1;
  assign row_take = row_valid_i && row_state_q == ROW_IDLE && !stop_valid_i;
  assign item_ready_o = room && !stop_valid_i && !row_take;

  always_comb begin
    op0 = OP_ITEM;
    cq0 = item_i.completion.cq;
    valid0 = item_valid_i && item_ready_o;
    if (stop_valid_i) begin
      op0 = OP_STOP;
      cq0 = stop_cq_i;
      valid0 = 1'b1;
    end else if (row_take) begin
      op0 = OP_ROW;
      cq0 = row_cq_i;
      valid0 = 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    valid1_q <= valid0 && !rst_i;
    op1_q <= op0;
    cq1_q <= cq0;
    item1_q <= item_i;
  end

  // ------------------------------------------------------------------------------ stage 1: decide
  ring_t ring, ring_next;
  owner_t owner, owner_next;
  dynamic_t dynamic1, dynamic_next;
  logic [$bits(ring_t)-1:0] ring_bits;
  logic [$bits(owner_t)-1:0] owner_bits;
  logic [$bits(dynamic_t)-1:0] dynamic_bits;
  index_t consumed, distance, in_ring;
  logic full, placed, overflows;
  logic is_row, dynamic_write, doorbell, clear;

  common_ram_sdp #(
    .WIDTH($bits(ring_t)), .DEPTH(CQS), .LATENCY(1)
  ) u_ring (
    .clk_i, .we_i(is_row && row_ring_i), .waddr_i(cq1_q), .wdata_i(ring_next),
    .re_i(1'b1), .raddr_i(cq0), .rdata_o(ring_bits)
  );

  common_ram_cleared #(.WIDTH($bits(owner_t)), .DEPTH(CQS), .LATENCY(1)) u_owner (
    .clk_i, .rst_i, .ready_o, .we_i(is_row && row_start_i), .waddr_i(cq1_q), .wdata_i(owner_next),
    .re_i(1'b1), .raddr_i(cq0), .rdata_o(owner_bits)
  );

  common_ram_sdp #(
    .WIDTH($bits(dynamic_t)), .DEPTH(CQS), .LATENCY(1)
  ) u_dynamic (
    .clk_i, .we_i(dynamic_write), .waddr_i(cq1_q), .wdata_i(dynamic_next),
    .re_i(1'b1), .raddr_i(cq0), .rdata_o(dynamic_bits)
  );

  assign doorbell = doorbell_valid_i && (doorbell_i.kind == roci_pkg::DOORBELL_CQ_CONSUMED
                                         || (doorbell_i.kind == roci_pkg::DOORBELL_CQ_ARM
                                             && !doorbell_i.keep_consumed));
  assign clear = row_state_q == ROW_CLEAR && !doorbell;

  common_ram_sdp #(
    .WIDTH($bits(index_t)), .DEPTH(CQS), .LATENCY(1)
  ) u_consumed (
    .clk_i, .we_i(doorbell || clear),
    .waddr_i(doorbell ? roci_pkg::cq_t'(doorbell_i.object_index) : row_cq_i),
    .wdata_i(doorbell ? index_t'(doorbell_i.index) : '0),
    .re_i(1'b1), .raddr_i(cq0), .rdata_o(consumed)
  );

  assign ring = ring_t'(ring_bits);
  assign owner = owner_t'(owner_bits);
  assign dynamic1 = dynamic_t'(dynamic_bits);
  assign is_row = valid1_q && op1_q == OP_ROW;
  assign ring_next = '{log2: row_i.log2_entries, page: row_i.ring_page};
  assign owner_next = '{valid: row_i.valid, fn: roci_pkg::fn_t'(row_i.fn)};
  assign stop_first_o = owner.valid && !dynamic1.error;

  always_comb begin
    in_ring = (index_t'(1) << ring.log2) - 1'b1;
    distance = dynamic1.producer - consumed;
    full = (distance & ~in_ring) != '0;         // also true if `consumed` is nonsense
    placed = owner.valid && !dynamic1.error && !full;
    overflows = owner.valid && !dynamic1.error && full;

    dynamic_next = dynamic1;
    dynamic_write = valid1_q;
    unique case (op1_q)
      OP_ITEM: begin
        if (placed) dynamic_next.producer = dynamic1.producer + 1'b1;
        dynamic_next.error = dynamic1.error || overflows;
      end
      OP_STOP: dynamic_next.error = 1'b1;
      default: begin
        if (row_ring_i) dynamic_next.switched = dynamic1.producer;
        if (row_start_i) dynamic_next = '0;
        dynamic_write = valid1_q && (row_ring_i || row_start_i);
      end
    endcase
  end

  // Row accesses.
  always_ff @(posedge clk_i) begin
    unique case (row_state_q)
      ROW_IDLE: if (row_take) row_state_q <= ROW_RUN;
      ROW_RUN: row_state_q <= row_start_i ? ROW_CLEAR : ROW_DONE;
      ROW_CLEAR: if (clear) row_state_q <= ROW_DONE;
      default: row_state_q <= ROW_IDLE;
    endcase
    if (row_state_q == ROW_RUN) begin
      row_o <= '0;
      row_o.log2_entries <= ring.log2;
      row_o.ring_page <= ring.page;
      row_o.valid <= owner.valid;
      row_o.fn <= 8'(owner.fn);
      row_o.producer <= dynamic1.producer;
      row_o.error <= dynamic1.error;
      row_o.switch_index <= dynamic1.switched;
      row_o.consumed <= consumed;
    end
    if (rst_i) row_state_q <= ROW_IDLE;
  end
  assign row_done_o = row_state_q == ROW_DONE;

  // ------------------------------------------------------------------------------- stage 2: image
  queue_cq_pkg::item_t item2_q;
  ring_t ring2_q;
  roci_pkg::fn_t fn2_q;
  index_t index2_q;
  queue_cq_pkg::done_t done2_q;
  logic [47:0] time2_q;

  queue_cq_pkg::placed_t place;
  roci_pkg::completion_t from;
  index_t slot;
  logic write_failed;

  always_ff @(posedge clk_i) begin
    valid2_q <= valid1_q && op1_q == OP_ITEM && !rst_i;
    item2_q <= item1_q;
    ring2_q <= ring;
    fn2_q <= owner.fn;
    index2_q <= dynamic1.producer;
    time2_q <= clock_i;
    done2_q <= '{cq: cq1_q, index: dynamic1.producer,
                 solicited: item1_q.completion.solicited || item1_q.completion.is_error
                            || item1_q.payload_failed,
                 live: owner.valid, placed: placed, overflowed: overflows,
                 payload_failed: item1_q.payload_failed};
  end

  always_comb begin
    from = item2_q.completion;
    slot = index2_q & ((index_t'(1) << ring2_q.log2) - 1'b1);
    // A success whose payload is not in memory is none (rule 4).
    write_failed = item2_q.payload_failed && from.status == '0;

    place.colour = item2_q.colour;
    place.qp = item2_q.qp;
    place.fn = fn2_q;
    place.addr = {ring2_q.page, 12'h0} + 64'({slot, 5'h0});
    place.done = done2_q;

    place.cqe = '0;
    place.cqe.qpn = from.qpn;
    place.cqe.opcode = roci_hwif_pkg::cqe_opcode_e'(from.opcode);
    place.cqe.wqe_index_or_cookie = from.wqe_index_or_cookie;
    place.cqe.byte_len = from.byte_len;
    place.cqe.imm_or_key = from.imm_or_key;
    place.cqe.src_qp_or_srqn = from.src_qp_or_srq;
    place.cqe.grh_present = from.flags[0];
    place.cqe.vlan_present = from.flags[1];
    place.cqe.solicited = from.solicited || from.flags[2];
    place.cqe.network_type = roci_hwif_pkg::network_type_e'(from.flags[7:4]);
    place.cqe.tci = from.tci;
    place.cqe.pkey_index = from.pkey_index;
    place.cqe.timestamp = time2_q;
    place.cqe.status = roci_hwif_pkg::cqe_status_e'(from.status);
    place.cqe.vendor_status = roci_hwif_pkg::vendor_status_e'(from.vendor_status);
    place.cqe.phase = !(index2_q[5'(ring2_q.log2)]);
    if (write_failed) begin
      place.cqe.opcode = roci_hwif_pkg::CQE_OPCODE_RECV;
      place.cqe.status = roci_hwif_pkg::CQE_STATUS_LOC_QP_OP_ERR;
      place.cqe.vendor_status = roci_hwif_pkg::VENDOR_STATUS_PAYLOAD_WRITE_BUS;
    end
  end

  logic fifo_ready;
  common_fifo #(.WIDTH($bits(queue_cq_pkg::placed_t)), .DEPTH(DEPTH)) u_places (
    .clk_i, .rst_i,
    .in_valid_i(valid2_q), .in_ready_o(fifo_ready), .in_i(place),
    .out_valid_o(place_valid_o), .out_ready_i(place_ready_i), .out_o(place_o), .usage_o(usage)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (valid2_q) assert (fifo_ready);
      if (valid1_q && op1_q == OP_ITEM && owner.valid) assert (ring.log2 <= 5'd16);
    end
  end

endmodule

`default_nettype wire
