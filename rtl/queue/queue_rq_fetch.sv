// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_rq_fetch: brings receive WQEs of all RQs and SRQs into slots on the chip before messages
// need them.
//
// Per queue four indices run after each other: posted (doorbell) ≥ fetched (read was asked for) ≥
// landed (in its slot) ≥ taken (by a message) ≥ freed (slot not needed any more). Each is a RAM
// with one writer, here or in the responder.
// A queue is looked at when it was rung or slots came free (at most one place in the queue of
// queues, rule 6) and reads what fits: up to the end of the 512-byte line of its ring.
// Little is not fetched while much is there: fewer than 128 bytes wait until the stock falls below
// eight WQEs or half the region, so that the rate does not hang on small reads. Many reads are on
// their way.
//
// `look` tells the responder whether the next WQE is there, on its way, or not posted at all; RNR
// is only for the last (architecture.md 3.2).
// Column RQ (hwif ctx_rq): a write of word 1 makes the queue start at index 0 with nothing posted.
//
// Does not: read WQEs again, raise SRQ_LIMIT (later: posted − taken). RESET of a QP and valid = 0
// of an SRQ stop fetches; what is on its way lands, is counted for the fence, and is forgotten with
// the next write of word 1. Neighbours: host_doorbell, host_dma_read ⇄ here ⇄ responder_check,
// responder_receive.
`default_nettype none

module queue_rq_fetch #(
  parameter int unsigned BURSTS = roci_config_pkg::IS_WIDE ? 64 : 16   // fetches on their way
) (
  input  wire                                clk_i,
  input  wire                                rst_i,          // synchronous, active high

  input  wire roci_pkg::ctx_req_t            ctx_i,          // column RQ
  output roci_pkg::ctx_rsp_t                 ctx_o,
  input  wire                                doorbell_valid_i, // always accepted
  input  wire roci_pkg::doorbell_t           doorbell_i,     // kinds RQ, SRQ; others are not ours
  input  wire roci_pkg::state_bcast_t        state_i,
  input  wire roci_pkg::colour_t             colour_i,

  // DMA client
  output logic                               req_valid_o,
  input  wire                                req_ready_i,
  output roci_pkg::dma_read_req_t            req_o,
  input  wire                                beat_valid_i,
  output logic                               beat_ready_o,
  input  wire roci_pkg::read_beat_t          beat_i,

  // responder_check: answer in the cycle after look_valid_i, held until the next look
  input  wire                                look_valid_i,
  input  wire roci_pkg::rq_number_t          look_queue_i,
  output roci_pkg::rq_look_t                 look_o,
  input  wire                                total_read_i,   // bytes of the WQE in this slot: answer in
  input  wire roci_pkg::slot_word_address_t  total_slot_i,   // the next cycle, held until the next read
  output logic [31:0]                        total_o,
  input  wire                                take_valid_i,   // always accepted
  input  wire roci_pkg::rq_entry_t           take_i,         // next one to take from now on
  output roci_pkg::rq_landed_t               landed_o,       // at most every second cycle

  // responder_receive: slots
  input  wire                                slot_read_i,
  input  wire roci_pkg::slot_word_address_t  slot_address_i,
  output logic [roci_pkg::SLOT_WORD_BITS-1:0] slot_data_o,   // SLOT_LATENCY cycles later
  input  wire                                free_valid_i,
  output logic                               free_ready_o,
  input  wire roci_pkg::rq_entry_t           free_i,         // WQE whose slots are free

  output roci_pkg::fence_busy_t              fence_busy_o,
  output logic                               ready_o         // tables are cleared after reset
);

  localparam int unsigned QP_BITS = roci_config_pkg::QP_BITS;
  localparam int unsigned SLOT_BITS = roci_config_pkg::SLOT_BITS;
  localparam int unsigned QUEUES = roci_pkg::RQ_COUNT;

  // Row of column RQ as stored.
  typedef struct packed {
    logic valid;
    logic [1:0] stride;
    logic [3:0] slot_log2;
    logic [SLOT_BITS-1:0] slot_base;
    logic [3:0] log2_entries;
    roci_pkg::fn_t fn;
    logic [51:0] page;
  } row_t;

  // What a look needs of it.
  typedef struct packed {
    logic [1:0] stride;
    logic [3:0] slot_log2;
    logic [SLOT_BITS-1:0] slot_base;
  } region_t;

  // log2 of the slots that a WQE takes
  function automatic logic [1:0] slots_log2(input logic [1:0] stride);
    return stride <= 2'd1 ? 2'd0 : stride - 2'd1;
  endfunction

  // -------------------------------------------------------------------------------- the pipeline
  // 0 pop, 1 row and indices arrive, 2 how much, 3 ask. Context accesses pass through it alone.
  typedef struct packed {
    logic valid;
    logic is_ctx;
    roci_pkg::colour_t colour;
    roci_pkg::rq_number_t rq;
  } op_t;

  op_t op0, op1_q, op2_q, op3_q;
  logic advance;                         // all stages step together
  logic done3;

  row_t row1, row2_q, row3_q;
  logic [$bits(row_t)-1:0] row1_bits;
  roci_pkg::rq_index_t posted1, posted2_q, posted3_q;
  roci_pkg::rq_index_t fetched1, fetched2_q, fetched3_q;
  roci_pkg::rq_index_t freed1, freed2_q, freed3_q;
  logic [2:0] state1;
  logic stopped2_q;                      // QP in RESET

  logic ctx_start, ctx_busy_q;
  logic ctx_pass3, ctx_write_row, ctx_restart;
  logic queue_ready, state_ready, rows_ready;
  logic pop_valid, pop;
  roci_pkg::rq_number_t pop_queue;
  logic same_ahead;                      // the popped queue is still in a stage

  assign ready_o = queue_ready && state_ready && rows_ready;
  assign advance = !op3_q.valid || done3;

  always_comb begin
    ctx_start = ctx_i.valid && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_RQ && !ctx_busy_q
                && !op1_q.valid && !op2_q.valid && !op3_q.valid && ready_o;
    same_ahead = (op1_q.valid && op1_q.rq == pop_queue)
              || (op2_q.valid && op2_q.rq == pop_queue)
              || (op3_q.valid && op3_q.rq == pop_queue);
    // an access waits for an empty pipeline: nothing enters before it
    pop = advance && ready_o && !same_ahead
          && !(ctx_i.valid && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_RQ) && !ctx_busy_q;

    op0 = '0;
    op0.colour = colour_i;
    op0.is_ctx = ctx_start;
    op0.valid = ctx_start || (pop && pop_valid);
    op0.rq = ctx_start ? roci_pkg::rq_number_t'(ctx_i.index) : pop_queue;
  end

  // ---------------------------------------------------------------- doorbells, frees and pushes
  logic ring_q;
  roci_pkg::rq_number_t ring_queue_q;
  roci_pkg::rq_index_t ring_index_q;
  logic again_q;                         // a queue has more to fetch and waits for the push port
  roci_pkg::rq_number_t again_queue_q;
  logic push_valid;
  roci_pkg::rq_number_t push_queue;

  always_ff @(posedge clk_i) begin
    ring_q <= doorbell_valid_i && !rst_i
            && (doorbell_i.kind == roci_pkg::DOORBELL_RQ
                || doorbell_i.kind == roci_pkg::DOORBELL_SRQ);
    ring_queue_q <= doorbell_i.kind == roci_pkg::DOORBELL_SRQ
                  ? {1'b1, QP_BITS'(doorbell_i.object_index[roci_config_pkg::SRQ_BITS-1:0])}
                  : {1'b0, doorbell_i.object_index[QP_BITS-1:0]};
    ring_index_q <= doorbell_i.index[15:0];
  end

  always_comb begin
    free_ready_o = queue_ready && !ring_q && !again_q && !ctx_pass3;
    push_valid = ring_q || again_q || (free_valid_i && free_ready_o);
    push_queue = ring_q ? ring_queue_q : again_q ? again_queue_q : free_i.rq;
  end

  common_object_queue #(.N(QUEUES)) u_queue (
    .clk_i, .rst_i,
    .push_valid_i(push_valid), .push_ready_o(queue_ready), .push_i(push_queue), .push_new_o(),
    .pop_valid_o(pop_valid), .pop_ready_i(pop), .pop_o(pop_queue), .usage_o()
  );

  // ------------------------------------------------------------------------------------- tables
  // Index RAMs: a restart (context write of word 1) zeroes all five in the cycle in which no other
  // writer wants one of them.
  logic landing_valid;
  roci_pkg::rq_entry_t landing;
  logic fetch3;
  roci_pkg::rq_index_t fetched_next;
  row_t row_next;

  logic posted_we, landed_we, taken_we, freed_we, fetched_we;
  roci_pkg::rq_number_t posted_at, landed_at, taken_at, freed_at;
  roci_pkg::rq_index_t posted_new, landed_new, taken_new, freed_new;

  always_comb begin
    posted_we = ring_q || ctx_restart;
    posted_at = ring_q ? ring_queue_q : op3_q.rq;
    posted_new = ring_q ? ring_index_q : '0;
    landed_we = landing_valid || ctx_restart;
    landed_at = landing_valid ? landing.rq : op3_q.rq;
    landed_new = landing_valid ? landing.index + 16'd1 : '0;
    taken_we = take_valid_i || ctx_restart;
    taken_at = take_valid_i ? take_i.rq : op3_q.rq;
    taken_new = take_valid_i ? take_i.index : '0;
    freed_we = (free_valid_i && free_ready_o) || ctx_restart;
    freed_at = ctx_restart ? op3_q.rq : free_i.rq;
    freed_new = ctx_restart ? '0 : free_i.index + 16'd1;
    fetched_we = fetch3 || ctx_restart;
  end

  common_ram_cleared #(.WIDTH($bits(row_t)), .DEPTH(QUEUES)) u_rows (
    .clk_i, .rst_i, .ready_o(rows_ready),
    .we_i(ctx_write_row), .waddr_i(op3_q.rq), .wdata_i(row_next),
    .re_i(advance), .raddr_i(op0.rq), .rdata_o(row1_bits)
  );
  assign row1 = row_t'(row1_bits);

  common_ram_sdp #(.WIDTH(16), .DEPTH(QUEUES)) u_posted (
    .clk_i, .we_i(posted_we), .waddr_i(posted_at), .wdata_i(posted_new),
    .re_i(advance), .raddr_i(op0.rq), .rdata_o(posted1)
  );
  common_ram_sdp #(.WIDTH(16), .DEPTH(QUEUES)) u_fetched (
    .clk_i, .we_i(fetched_we), .waddr_i(op3_q.rq), .wdata_i(ctx_restart ? '0 : fetched_next),
    .re_i(advance), .raddr_i(op0.rq), .rdata_o(fetched1)
  );
  common_ram_sdp #(.WIDTH(16), .DEPTH(QUEUES)) u_freed (
    .clk_i, .we_i(freed_we), .waddr_i(freed_at), .wdata_i(freed_new),
    .re_i(advance), .raddr_i(op0.rq), .rdata_o(freed1)
  );
  common_ram_cleared #(.WIDTH(3), .DEPTH(2 ** QP_BITS)) u_state (
    .clk_i, .rst_i, .ready_o(state_ready),
    .we_i(state_i.valid && state_ready), .waddr_i(state_i.qp), .wdata_i(state_i.state),
    .re_i(advance), .raddr_i(op0.rq[QP_BITS-1:0]), .rdata_o(state1)
  );

  // --------------------------------------------------------------------------- stage 2: how much
  roci_pkg::rq_index_t available2, used2, capacity2, room2;
  logic [4:0] line2, count2, batch2;
  logic go2, more2;

  always_comb begin
    available2 = posted2_q - fetched2_q;
    used2 = fetched2_q - freed2_q;
    capacity2 = 16'd1 << (row2_q.slot_log2 - 4'(slots_log2(row2_q.stride)));
    room2 = capacity2 - used2;
    unique case (row2_q.stride)
      2'd0: line2 = 5'd16 - {1'b0, fetched2_q[3:0]};
      2'd1: line2 = 5'd8 - {2'b0, fetched2_q[2:0]};
      2'd2: line2 = 5'd4 - {3'b0, fetched2_q[1:0]};
      default: line2 = 5'd2 - {4'b0, fetched2_q[0]};
    endcase
    count2 = line2;
    if (16'(count2) > available2) count2 = available2[4:0];
    if (16'(count2) > room2) count2 = room2[4:0];
    batch2 = row2_q.stride == 2'd0 ? 5'd4 : row2_q.stride == 2'd1 ? 5'd2 : 5'd1;
    go2 = row2_q.valid && !stopped2_q && count2 != 5'd0
          && (count2 >= batch2 || count2 == line2 || used2 < 16'd8 || used2 < capacity2 >> 1);
    more2 = go2 && available2 != 16'(count2) && room2 != 16'(count2);
  end

  // -------------------------------------------------------------------------------- stage 3: ask
  logic go3_q, more3_q;
  logic [4:0] count3_q;
  logic burst_ready;
  roci_pkg::addr_t address3;
  logic [15:0] entry3;

  always_comb begin
    entry3 = fetched3_q & ~(16'hffff << row3_q.log2_entries);
    address3 = {row3_q.page, 12'd0} + (64'(entry3) << (4'd5 + 4'(row3_q.stride)));
    req_o = '{fn: row3_q.fn, length: 13'(count3_q) << (4'd5 + 4'(row3_q.stride)),
              addr: address3};
    req_valid_o = op3_q.valid && !op3_q.is_ctx && go3_q && burst_ready && !again_q;
    fetch3 = req_valid_o && req_ready_i;
    fetched_next = fetched3_q + 16'(count3_q);

    // the access and the restart take the write ports that they need when nobody else does
    ctx_pass3 = op3_q.valid && op3_q.is_ctx && !ring_q && !landing_valid && !take_valid_i;
    done3 = op3_q.is_ctx ? ctx_pass3 : (!go3_q || fetch3);
  end

  logic slot_write, end_valid;
  roci_pkg::slot_word_address_t slot_write_address;
  logic [roci_pkg::SLOT_WORD_BITS-1:0] slot_write_data;
  roci_pkg::colour_t end_colour;
  logic [31:0] landing_total;

  queue_rq_landing #(.BURSTS(BURSTS)) u_landing (
    .clk_i, .rst_i,
    .burst_valid_i(fetch3), .burst_ready_o(burst_ready),
    .burst_colour_i(op3_q.colour),
    .burst_entry_i('{rq: op3_q.rq, index: fetched3_q}),
    .burst_count_i(count3_q), .burst_stride_i(row3_q.stride), .burst_lane_i(address3[5:0]),
    .burst_slot_base_i(row3_q.slot_base), .burst_slot_log2_i(row3_q.slot_log2),
    .beat_valid_i, .beat_ready_o, .beat_i,
    .write_o(slot_write), .write_address_o(slot_write_address), .write_data_o(slot_write_data),
    .landed_valid_o(landing_valid), .landed_o(landing), .landed_total_o(landing_total),
    .end_valid_o(end_valid), .end_colour_o(end_colour)
  );

  // A slot is read after its landing was told and until it is freed: never while it is written.
  common_ram_sdp #(
    .WIDTH(roci_pkg::SLOT_WORD_BITS), .DEPTH(2 ** (SLOT_BITS + 1)),
    .LATENCY(roci_pkg::SLOT_LATENCY), .BYPASS(1'b0),
    .STYLE(roci_config_pkg::IS_WIDE ? "ultra" : "block")
  ) u_slots (
    .clk_i, .we_i(slot_write), .waddr_i(slot_write_address), .wdata_i(slot_write_data),
    .re_i(slot_read_i), .raddr_i(slot_address_i), .rdata_o(slot_data_o)
  );

  // a WQE lands with its first word
  common_ram_sdp #(.WIDTH(32), .DEPTH(2 ** SLOT_BITS)) u_totals (
    .clk_i, .we_i(landing_valid), .waddr_i(slot_write_address[SLOT_BITS:1]), .wdata_i(landing_total),
    .re_i(total_read_i), .raddr_i(total_slot_i[SLOT_BITS:1]), .rdata_o(total_o)
  );
  wire unused_total_slot = &{1'b0, total_slot_i[0]};

  // ------------------------------------------------------------------------------- context access
  logic ctx_write3;
  logic [1:0] ctx_word3;
  roci_hwif_pkg::ctx_rq_t ctx_now, ctx_new;
  logic [63:0] ctx_rdata3;

  always_comb begin
    ctx_write3 = ctx_pass3 && ctx_i.write;
    ctx_word3 = ctx_i.word[1:0];

    ctx_now = '0;
    ctx_now.log2_entries = row3_q.log2_entries;
    ctx_now.fn = 8'(row3_q.fn);
    ctx_now.ring_page = row3_q.page;
    ctx_now.slot_base = 16'(row3_q.slot_base);
    ctx_now.slot_log2 = row3_q.slot_log2;
    ctx_now.stride_code = row3_q.stride;
    ctx_now.valid = row3_q.valid;
    ctx_now.posted = posted3_q;
    ctx_now.fetched = fetched3_q;
    ctx_now.freed = freed3_q;

    ctx_new = ctx_now;
    unique case (ctx_word3)
      2'd0: begin
        ctx_rdata3 = ctx_now[63:0];
        ctx_new[63:0] = ctx_i.wdata;
      end
      2'd1: begin
        ctx_rdata3 = ctx_now[127:64];
        ctx_new[127:64] = ctx_i.wdata;
      end
      default: ctx_rdata3 = ctx_now[191:128];
    endcase

    row_next = '{valid: ctx_new.valid, stride: ctx_new.stride_code, slot_log2: ctx_new.slot_log2,
                 slot_base: SLOT_BITS'(ctx_new.slot_base), log2_entries: ctx_new.log2_entries,
                 fn: roci_pkg::fn_t'(ctx_new.fn), page: ctx_new.ring_page};
    ctx_write_row = ctx_write3 && !ctx_word3[1];
    ctx_restart = ctx_write3 && ctx_word3 == 2'd1;
  end

  // --------------------------------------------------------------------------------------- look
  roci_pkg::rq_index_t look_posted, look_landed, look_taken;
  region_t look_region, region_next;
  logic [$bits(region_t)-1:0] look_region_bits;
  logic [SLOT_BITS-1:0] look_unit;

  assign region_next = '{stride: row_next.stride, slot_log2: row_next.slot_log2,
                         slot_base: row_next.slot_base};

  common_ram_sdp #(.WIDTH(16), .DEPTH(QUEUES)) u_look_posted (
    .clk_i, .we_i(posted_we), .waddr_i(posted_at), .wdata_i(posted_new),
    .re_i(look_valid_i), .raddr_i(look_queue_i), .rdata_o(look_posted)
  );
  common_ram_sdp #(.WIDTH(16), .DEPTH(QUEUES)) u_landed (
    .clk_i, .we_i(landed_we), .waddr_i(landed_at), .wdata_i(landed_new),
    .re_i(look_valid_i), .raddr_i(look_queue_i), .rdata_o(look_landed)
  );
  common_ram_sdp #(.WIDTH(16), .DEPTH(QUEUES)) u_taken (
    .clk_i, .we_i(taken_we), .waddr_i(taken_at), .wdata_i(taken_new),
    .re_i(look_valid_i), .raddr_i(look_queue_i), .rdata_o(look_taken)
  );
  common_ram_sdp #(.WIDTH($bits(region_t)), .DEPTH(QUEUES)) u_regions (
    .clk_i, .we_i(ctx_write_row), .waddr_i(op3_q.rq), .wdata_i(region_next),
    .re_i(look_valid_i), .raddr_i(look_queue_i), .rdata_o(look_region_bits)
  );

  always_comb begin
    look_region = region_t'(look_region_bits);
    look_unit = look_region.slot_base
                | (SLOT_BITS'({2'b00, look_taken} << slots_log2(look_region.stride))
                   & ~({SLOT_BITS{1'b1}} << look_region.slot_log2));
    look_o.ready = look_landed != look_taken;
    look_o.empty = look_posted == look_taken;
    look_o.index = look_taken;
    look_o.slot = {look_unit, 1'b0};
    landed_o = '{valid: landing_valid, rq: landing.rq};
  end

  // ---------------------------------------------------------------------------------- registers
  localparam int unsigned COUNT_BITS = $clog2(BURSTS + 5);
  logic [1:0][COUNT_BITS-1:0] held_q;    // looks and bursts by colour

  always_ff @(posedge clk_i) begin
    if (advance) begin
      op1_q <= op0;
      op2_q <= op1_q;
      row2_q <= row1;
      posted2_q <= posted1;
      fetched2_q <= fetched1;
      freed2_q <= freed1;
      stopped2_q <= !op1_q.rq[QP_BITS] && state1 == 3'(roci_pkg::QPS_RESET);
      op3_q <= op2_q;
      row3_q <= row2_q;
      posted3_q <= posted2_q;
      fetched3_q <= fetched2_q;
      freed3_q <= freed2_q;
      go3_q <= go2;
      more3_q <= more2;
      count3_q <= count2;
    end
    if (fetch3 && more3_q) begin
      again_q <= 1'b1;
      again_queue_q <= op3_q.rq;
    end else if (!ring_q) begin
      again_q <= 1'b0;
    end

    ctx_busy_q <= (ctx_busy_q && !ctx_o.done) || ctx_start;
    ctx_o.done <= ctx_pass3;
    ctx_o.rdata <= ctx_pass3 ? ctx_rdata3 : '0;

    for (int unsigned c = 0; c < 2; c++) begin
      held_q[c] <= held_q[c]
          + COUNT_BITS'(pop && pop_valid && colour_i == 1'(c))
          - COUNT_BITS'(op3_q.valid && !op3_q.is_ctx && !go3_q && op3_q.colour == 1'(c))
          - COUNT_BITS'(end_valid && end_colour == 1'(c));
    end

    if (rst_i) begin
      op1_q.valid <= 1'b0;
      op2_q.valid <= 1'b0;
      op3_q.valid <= 1'b0;
      again_q <= 1'b0;
      ctx_busy_q <= 1'b0;
      ctx_o <= '0;
      held_q <= '0;
    end
  end
  assign fence_busy_o = {held_q[1] != '0, held_q[0] != '0};

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      // the responder never looks beyond what landed, nor frees what it did not take
      if (op2_q.valid && !op2_q.is_ctx && row2_q.valid) begin
        assert (used2 <= capacity2);
        assert ({1'b0, row2_q.slot_log2} > 5'(slots_log2(row2_q.stride)));
      end
      if (ctx_i.valid && ctx_busy_q) assert (ctx_i.column == roci_hwif_pkg::CTX_COLUMN_RQ);
    end
  end

endmodule

`default_nettype wire
