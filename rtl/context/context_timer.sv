// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_timer: ACK timeout and RNR wait of all queue pairs, and the device's clock.
//
// One walk over all QPs per tick of 4.096 us (IBTA 9.7.6.1.3), one QP per cycle; it compares
// what is acknowledged with what was sent (replicas) and keeps one deadline per QP, in quarters of
// a tick:
// - ACK timer (wire.md 2.8): runs while something is outstanding, from the visit that first sees
//   it, again from each visit that sees progress. A rewind stops it, and it does not run while the QP
//   waits for its turn: it starts with the visit that first sees that the QP has sent again. Expires
//   T = 4.096 us * 2^timeout later or up to two ticks after that (allowed: [T, 4T]); a report, and it
//   starts again. timeout 0: never. A packet counts as sent when it is decided, so what is ahead of
//   it on its way to the wire takes part of T (wire.md 2.8 says how much, and why T should not be
//   near it).
// - RNR wait (wire.md 2.7): from rnr_i on, at least the coded time and less than one tick and two
//   quarters longer, which is below the next code's time. It stops the ACK timer. Ends by its
//   deadline or when the QP leaves RTS and SQD; both ends are told to the replicas of the waits
//   (rnr_o).
// Simulation skips idle time: time_step_i moves the clock at once, next_expiry_o tells how far that
// may go. It is valid when a whole walk saw no change and none came since.
//
// Does not: count retries (requester_retry), look at anything but PSNs and states.
// Neighbours: requester_ack (acked PSNs; reports), requester_packetizer (sent PSNs),
// requester_retry (waits, rewinds) → here. Column QP_TIMER: ctx_qp_timer of hwif/contexts.toml.
`default_nettype none

module context_timer #(
  parameter int unsigned TICK_CYCLES = roci_config_pkg::TICK_CYCLES,  // a tick, power of two, >= 8
  parameter int unsigned QP_BITS = roci_config_pkg::QP_BITS           // log2 of the QPs walked
) (
  input  wire                         clk_i,
  input  wire                         rst_i,

  // column QP_TIMER
  input  roci_pkg::ctx_req_t          ctx_i,
  output roci_pkg::ctx_rsp_t          ctx_o,

  // replicas, always accepted
  input  roci_pkg::ack_state_t        ack_state_i,
  input  roci_pkg::sent_t             sent_i,
  input  context_pkg::rewound_t       rewound_i,
  input  roci_pkg::state_bcast_t      state_i,

  input  wire                         rnr_valid_i,       // a wait begins
  output logic                        rnr_ready_o,
  input  roci_pkg::rnr_wait_t         rnr_i,
  output roci_pkg::rnr_bcast_t        rnr_o,             // waits, one or two cycles later

  output logic                        report_valid_o,    // ACK timer expired
  input  wire                         report_ready_i,
  output roci_pkg::timer_report_t     report_o,

  output logic [63:0]                 clock_o,           // cycles since reset, skipped ones too

  // simulation: ticks to add in this cycle (0: none; boards tie it off)
  input  wire [31:0]                  time_step_i,
  // ticks that may pass before the earliest expiry; all ones if nothing runs
  output logic                        next_expiry_valid_o,
  output logic [31:0]                 next_expiry_o,

  input  roci_pkg::colour_t           colour_i,
  output roci_pkg::fence_busy_t       fence_busy_o,
  output logic                        ready_o            // rows are cleared after reset
);

  localparam int unsigned QPS = 2 ** QP_BITS;
  localparam int unsigned TICK_LOG2 = $clog2(TICK_CYCLES);
  localparam int unsigned TIME_BITS = 36;                // quarter ticks: 2^31 ticks and a sign
  localparam string STYLE = roci_config_pkg::IS_WIDE ? "block" : "distributed";  // of narrow columns
  localparam int unsigned REPORTS = 4;

  if (TICK_CYCLES != (1 << TICK_LOG2) || TICK_CYCLES < 8) begin : gen_tick_check
    $error("%m: TICK_CYCLES must be a power of two, at least 8");
  end

  typedef logic [TIME_BITS-1:0] when_t;
  typedef logic [QP_BITS-1:0] index_t;

  typedef enum logic [1:0] {IDLE = 2'd0, ACK = 2'd1, RNR = 2'd2} mode_e;

  typedef struct packed {
    mode_e mode;
    when_t deadline;
    roci_pkg::psn_t seen;                                // acked_psn when the ACK timer started
  } row_t;

  typedef enum logic [1:0] {OP_VISIT, OP_RNR, OP_INIT} op_e;

  typedef struct packed {
    op_e op;
    logic walk;                                          // part of the walk, not an extra visit
    logic last;                                          // of the walk
    logic rewound;                                       // what was sent before does not count
    index_t qp;
    logic [4:0] code;                                    // OP_RNR
  } operation_t;

  // RNR timer codes in quarter ticks of 1.024 us, rounded up (table of wire.md 2.7), and one more
  // because the present quarter has begun already.
  function automatic when_t rnr_quarters(input logic [4:0] code);
    logic [19:0] quarters;
    unique case (code)
      5'd0: quarters = 20'd640000;
      5'd1: quarters = 20'd10;
      5'd2: quarters = 20'd20;
      5'd3: quarters = 20'd30;
      5'd4: quarters = 20'd40;
      5'd5: quarters = 20'd59;
      5'd6: quarters = 20'd79;
      5'd7: quarters = 20'd118;
      5'd8: quarters = 20'd157;
      5'd9: quarters = 20'd235;
      5'd10: quarters = 20'd313;
      5'd11: quarters = 20'd469;
      5'd12: quarters = 20'd625;
      5'd13: quarters = 20'd938;
      5'd14: quarters = 20'd1250;
      5'd15: quarters = 20'd1875;
      5'd16: quarters = 20'd2500;
      5'd17: quarters = 20'd3750;
      5'd18: quarters = 20'd5000;
      5'd19: quarters = 20'd7500;
      5'd20: quarters = 20'd10000;
      5'd21: quarters = 20'd15000;
      5'd22: quarters = 20'd20000;
      5'd23: quarters = 20'd30000;
      5'd24: quarters = 20'd40000;
      5'd25: quarters = 20'd60000;
      5'd26: quarters = 20'd80000;
      5'd27: quarters = 20'd120000;
      5'd28: quarters = 20'd160000;
      5'd29: quarters = 20'd240000;
      5'd30: quarters = 20'd320000;
      default: quarters = 20'd480000;
    endcase
    return when_t'(quarters) + when_t'(1);
  endfunction

  // ------------------------------------------------------------------------------ state
  logic [63:0] clock_q;
  logic walking_q;
  index_t walk_q;                                        // next QP of the walk
  logic tick_q;                                          // a tick began, its walk did not yet
  logic rewound_q;                                       // QP to visit: it was rewound
  index_t rewound_qp_q;
  logic op_valid_q;
  operation_t op_q;
  logic acked_init_q, next_init_q;                       // INIT: this replica is written
  logic ctx_read_q, ctx_done_q;
  logic changed_q;                                       // since the walk began
  logic min_valid_q;                                     // of the QPs walked so far
  when_t min_q;
  logic expiry_valid_q, expiry_any_q;
  when_t expiry_q;                                       // deadline of the last complete walk

  // ------------------------------------------------------------------ clock and context bus
  when_t now;
  logic ctx_selected, ctx_write, ctx_init, acked_init, next_init, init_taken;
  roci_hwif_pkg::ctx_qp_timer_t ctx_row, read_row;
  index_t ctx_qp;
  logic [4:0] read_timeout;

  assign clock_o = clock_q;
  assign now = clock_q[TICK_LOG2-2 +: TIME_BITS];

  always_comb begin
    ctx_row = roci_hwif_pkg::ctx_qp_timer_t'(ctx_i.wdata);
    ctx_qp = index_t'(ctx_i.index);
    ctx_selected = ctx_i.valid && !ctx_done_q
                   && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_QP_TIMER;
    ctx_write = ctx_selected && ctx_i.write && ctx_i.word == 4'd0 && ready_o;
    ctx_init = ctx_write && acked_init_q && next_init_q;
    // the write ports belong to the broadcasts
    acked_init = ctx_write && !acked_init_q && !ack_state_i.valid;
    next_init = ctx_write && !next_init_q && !sent_i.valid;
    read_row = '0;
    read_row.timeout = read_timeout;
    ctx_o.done = ctx_done_q;
    ctx_o.rdata = ctx_done_q && !ctx_i.write && ctx_i.word == 4'd0 ? read_row : '0;
  end

  // ---------------------------------------------------------------- stage 0: whose turn it is
  operation_t op;
  logic op_valid, state_valid, state_ready, state_room, walk_taken, rewound_taken;
  index_t state_qp;
  logic rows_ready;

  assign ready_o = rows_ready;

  // A QP that leaves RTS and SQD is visited at once: its wait must not outlive its state. So is one
  // that was rewound: it may have sent again before the walk comes by. requester_retry takes one
  // after the other, with more cycles in between than those before this one here can take.
  common_fifo #(.WIDTH(QP_BITS), .DEPTH(8)) u_states (
    .clk_i, .rst_i,
    .in_valid_i(state_i.valid && state_room), .in_ready_o(state_room),
    .in_i(index_t'(state_i.qp)),
    .out_valid_o(state_valid), .out_ready_i(state_ready), .out_o(state_qp), .usage_o()
  );

  always_comb begin
    op = '0;
    op_valid = rows_ready;
    init_taken = 1'b0;
    rnr_ready_o = 1'b0;
    state_ready = 1'b0;
    walk_taken = 1'b0;
    rewound_taken = 1'b0;
    if (ctx_init) begin
      op.op = OP_INIT;
      op.qp = ctx_qp;
      init_taken = rows_ready;
    end else if (rnr_valid_i) begin
      op.op = OP_RNR;
      op.qp = index_t'(rnr_i.qp);
      op.code = rnr_i.code;
      rnr_ready_o = rows_ready;
    end else if (rewound_q) begin
      op.op = OP_VISIT;
      op.rewound = 1'b1;
      op.qp = rewound_qp_q;
      rewound_taken = rows_ready;
    end else if (state_valid) begin
      op.op = OP_VISIT;
      op.qp = state_qp;
      state_ready = rows_ready;
    end else begin
      op.op = OP_VISIT;
      op.walk = 1'b1;
      op.last = walk_q == '1;
      op.qp = walk_q;
      op_valid = rows_ready && walking_q;
      walk_taken = op_valid;
    end
  end

  // ----------------------------------------------------------------------------- stage 1: row
  row_t row, next;
  logic [4:0] timeout;
  roci_pkg::psn_t acked, sent;
  logic live, due, row_write, report, report_room;
  logic going;                                           // has sent since it was rewound
  roci_pkg::rnr_bcast_t rnr;
  when_t overdue, ack_deadline;

  always_comb begin
    next = row;
    rnr = '0;
    rnr.qp = roci_pkg::qp_t'(op_q.qp);
    report = 1'b0;
    overdue = now - row.deadline;
    due = !overdue[TIME_BITS-1];
    // the present quarter has begun already
    ack_deadline = now + (when_t'(4) << timeout) + when_t'(1);

    unique case (op_q.op)
      OP_INIT: next.mode = IDLE;
      OP_RNR: begin
        if (live) begin
          next.mode = RNR;
          next.deadline = now + rnr_quarters(op_q.code);
          rnr.valid = op_valid_q;
          rnr.waiting = 1'b1;
        end
      end
      default: begin
        rnr.valid = op_valid_q && row.mode == RNR && (due || !live);
        if (row.mode == RNR && !due && live) begin
          // waits
        end else if (!live || timeout == '0 || acked == sent || !going
                     || op_q.rewound) begin
          next.mode = IDLE;
        end else if (row.mode != ACK || row.seen != acked) begin
          next.mode = ACK;
          next.seen = acked;
          next.deadline = ack_deadline;
        end else if (due && report_room) begin
          report = op_valid_q;
          next.deadline = ack_deadline;
        end
      end
    endcase
    row_write = op_valid_q && next != row;
  end

  always_ff @(posedge clk_i) begin
    op_q <= op;
    rnr_o <= rnr;
    op_valid_q <= op_valid;

    clock_q <= clock_q + 64'd1 + {{(32 - TICK_LOG2){1'b0}}, time_step_i, {TICK_LOG2{1'b0}}};

    rewound_q <= rewound_i.valid || (rewound_q && !rewound_taken);
    if (rewound_i.valid) rewound_qp_q <= index_t'(rewound_i.qp);

    if (walk_taken) walk_q <= walk_q + 1'b1;
    if (walking_q) begin
      if (walk_taken && op.last) walking_q <= 1'b0;
    end
    // One walk per tick, the next one at once if this one took longer. Steps of time leave the
    // phase alone, so that the visits are those that would have been without the step.
    if (clock_q[TICK_LOG2-1:0] == '1) tick_q <= 1'b1;
    if ((!walking_q || (walk_taken && op.last)) && tick_q) begin
      walking_q <= 1'b1;
      tick_q <= clock_q[TICK_LOG2-1:0] == '1;
    end

    acked_init_q <= ctx_write && (acked_init_q || acked_init) && !init_taken;
    next_init_q <= ctx_write && (next_init_q || next_init) && !init_taken;
    ctx_read_q <= ctx_selected && !ctx_write && !ctx_read_q;
    ctx_done_q <= init_taken || ctx_read_q;

    if (rst_i) begin
      op_valid_q <= 1'b0;
      rnr_o.valid <= 1'b0;
      clock_q <= '0;
      rewound_q <= 1'b0;
      walk_q <= '0;
      walking_q <= 1'b0;
      tick_q <= 1'b0;
      acked_init_q <= 1'b0;
      next_init_q <= 1'b0;
      ctx_read_q <= 1'b0;
      ctx_done_q <= 1'b0;
    end
  end

  // ------------------------------------------------------------------ earliest expiry of a walk
  logic change, earlier;
  when_t before_min, remaining;

  always_comb begin
    change = ack_state_i.valid || sent_i.valid || state_i.valid || rnr_valid_i || ctx_write
             || state_valid || rewound_i.valid || rewound_q || report || report_valid_o;
    before_min = next.deadline - min_q;
    earlier = next.mode != IDLE && (!min_valid_q || before_min[TIME_BITS-1]);
    // A step must not reach the deadline: the visit in which it is found due would be skipped.
    remaining = expiry_q - now - when_t'(1);

    next_expiry_valid_o = expiry_valid_q && !change;
    if (!expiry_any_q) next_expiry_o = '1;
    else if (remaining[TIME_BITS-1]) next_expiry_o = '0;
    else next_expiry_o = remaining[TIME_BITS-1:2] > (TIME_BITS-2)'(32'hfffffffe)
                         ? 32'hfffffffe : remaining[33:2];
  end

  always_ff @(posedge clk_i) begin
    changed_q <= changed_q || change;
    if (change) expiry_valid_q <= 1'b0;
    if (op_valid_q && op_q.walk) begin
      if (earlier) begin
        min_valid_q <= 1'b1;
        min_q <= next.deadline;
      end
      if (op_q.last) begin
        expiry_valid_q <= !changed_q && !change;
        expiry_any_q <= min_valid_q || earlier;
        expiry_q <= earlier ? next.deadline : min_q;
        changed_q <= change;
        min_valid_q <= 1'b0;
      end
    end
    if (rst_i) begin
      changed_q <= 1'b1;
      expiry_valid_q <= 1'b0;
      min_valid_q <= 1'b0;
    end
  end

  // ---------------------------------------------------------------------------- reports
  typedef struct packed {
    roci_pkg::colour_t colour;
    roci_pkg::timer_report_t report;
  } stamped_t;
  stamped_t report_in, report_out;
  logic [1:0][$clog2(REPORTS+1)-1:0] held_q;
  logic [1:0] held_in, held_out;

  always_comb begin
    report_in.colour = colour_i;
    report_in.report.is_rnr = 1'b0;
    report_in.report.qp = roci_pkg::qp_t'(op_q.qp);
    report_in.report.oldest_psn = acked;
    report_o = report_out.report;

    held_in = '0;
    held_out = '0;
    held_in[colour_i] = report;
    held_out[report_out.colour] = report_valid_o && report_ready_i;
    fence_busy_o[0] = held_q[0] != '0;
    fence_busy_o[1] = held_q[1] != '0;
  end

  common_fifo #(.WIDTH($bits(stamped_t)), .DEPTH(REPORTS)) u_reports (
    .clk_i, .rst_i,
    .in_valid_i(report), .in_ready_o(report_room), .in_i(report_in),
    .out_valid_o(report_valid_o), .out_ready_i(report_ready_i), .out_o(report_out), .usage_o()
  );

  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < 2; c++) begin
      held_q[c] <= held_q[c] + ($clog2(REPORTS+1))'(held_in[c])
                   - ($clog2(REPORTS+1))'(held_out[c]);
    end
    if (rst_i) held_q <= '0;
  end

  // ------------------------------------------------------------------------------ tables
  logic live_ready;

  common_ram_cleared #(.WIDTH($bits(row_t)), .DEPTH(QPS), .STYLE("block")) u_rows (
    .clk_i, .rst_i, .ready_o(rows_ready),
    .we_i(row_write), .waddr_i(op_q.qp), .wdata_i(next),
    .re_i(1'b1), .raddr_i(op.qp), .rdata_o(row)
  );

  common_ram_sdp #(.WIDTH(24), .DEPTH(QPS), .STYLE("block")) u_acked (
    .clk_i, .we_i(ack_state_i.valid || acked_init),
    .waddr_i(ack_state_i.valid ? index_t'(ack_state_i.qp) : ctx_qp),
    .wdata_i(ack_state_i.valid ? ack_state_i.acked_psn : ctx_row.psn),
    .re_i(1'b1), .raddr_i(op.qp), .rdata_o(acked)
  );

  common_ram_sdp #(.WIDTH(24), .DEPTH(QPS), .STYLE("block")) u_sent (
    .clk_i, .we_i(sent_i.valid || next_init),
    .waddr_i(sent_i.valid ? index_t'(sent_i.qp) : ctx_qp),
    .wdata_i(sent_i.valid ? sent_i.next_psn : ctx_row.psn),
    .re_i(1'b1), .raddr_i(op.qp), .rdata_o(sent)
  );

  // Needs no start: whatever has something to wait for has sent it.
  common_ram_sdp #(.WIDTH(1), .DEPTH(QPS), .STYLE(STYLE)) u_going (
    .clk_i, .we_i(sent_i.valid ? sent_i.current : rewound_i.valid),
    .waddr_i(sent_i.valid ? index_t'(sent_i.qp) : index_t'(rewound_i.qp)),
    .wdata_i(sent_i.valid),
    .re_i(1'b1), .raddr_i(op.qp), .rdata_o(going)
  );

  common_ram_cleared #(.WIDTH(1), .DEPTH(QPS), .STYLE(STYLE)) u_live (
    .clk_i, .rst_i, .ready_o(live_ready),
    .we_i(state_i.valid && live_ready), .waddr_i(index_t'(state_i.qp)),
    .wdata_i(state_i.state == roci_pkg::QPS_RTS || state_i.state == roci_pkg::QPS_SQD),
    .re_i(1'b1), .raddr_i(op.qp), .rdata_o(live)
  );

  common_ram_sdp #(.WIDTH(5), .DEPTH(QPS), .STYLE(STYLE)) u_timeouts (
    .clk_i, .we_i(init_taken), .waddr_i(ctx_qp), .wdata_i(ctx_row.timeout),
    .re_i(1'b1), .raddr_i(op.qp), .rdata_o(timeout)
  );

  common_ram_sdp #(.WIDTH(5), .DEPTH(QPS), .STYLE(STYLE)) u_timeouts_ctx (
    .clk_i, .we_i(init_taken), .waddr_i(ctx_qp), .wdata_i(ctx_row.timeout),
    .re_i(1'b1), .raddr_i(ctx_qp), .rdata_o(read_timeout)
  );

  // ------------------------------------------------------------------------ assertions
  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (report) assert (report_room);
      if (rnr_o.valid && rnr_o.waiting) assert (rows_ready);
      if (rewound_i.valid) assert (!rewound_q || rewound_taken);
    end
  end

endmodule

`default_nettype wire
