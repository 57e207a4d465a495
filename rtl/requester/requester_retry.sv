// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_retry: decides whether a QP goes back, and counts.
//
// requester_ack asks once per reason, with the rewind point, and holds the QP until the answer.
// Rules (wire.md 2.4, 2.7, 2.8):
// - timeout, sequence NAK and implied NAK count against retry_cnt (0..7, 7 is seven); RNR NAKs
//   count against rnr_retry (7: no limit); what is left is reloaded by progress;
// - one rewind per loss: a sequence or implied NAK is answered without a rewind while an earlier
//   one for the same PSN is in effect, that is until the QP progresses, its timer fires or an RNR
//   wait begins; nor does it act during an RNR wait (some peers send one after their RNR NAK);
// - RNR NAK: context_timer begins the wait, then the QP rewinds and sleeps; RNR NAKs and timeouts
//   during the wait are late ones and do nothing, but for the RNR NAK of a later packet (a copy of the
//   first one was executed meanwhile): its wait begins anew;
// - what was rewound and has not had its turn since is not charged: a timeout, or a NAK that brings no
//   progress, does nothing before the QP has sent a packet again. So RETRY_EXC_ERR comes after
//   retry_cnt + 1 sends, however long the QP waits among others. A rewound QP always sends again or
//   fails: something of it is not acknowledged, and all windows are open for that;
// - underruns, overtaken rewinds and flushes rewind without counting.
// A request takes about ten cycles, an RNR wait five more; one at a time: losses are rare, and a QP
// has one request at most.
//
// Does not: find the rewind point, measure time.
// Neighbours: requester_ack ⇄ here → queue_wqe_fetch (rewinds), context_timer (waits; what was
// rewound). requester_packetizer → here.
// Column QP_RETRY: ctx_qp_retry of hwif/contexts.toml.
`default_nettype none

module requester_retry (
  input  wire                         clk_i,
  input  wire                         rst_i,

  // column QP_RETRY
  input  roci_pkg::ctx_req_t          ctx_i,
  output roci_pkg::ctx_rsp_t          ctx_o,

  input  wire                         request_valid_i,   // from requester_ack
  output logic                        request_ready_o,
  input  roci_pkg::retry_request_t    request_i,
  output logic                        result_valid_o,    // the QP is done with, or fails
  input  wire                         result_ready_i,
  output roci_pkg::retry_result_t     result_o,

  output logic                        rewind_valid_o,    // to queue_wqe_fetch; acceptance = applied
  input  wire                         rewind_ready_i,
  output roci_pkg::rewind_req_t       rewind_o,

  output logic                        rnr_valid_o,       // to context_timer
  input  wire                         rnr_ready_i,
  output roci_pkg::rnr_wait_t         rnr_o,
  input  roci_pkg::rnr_bcast_t        rnr_i,             // replica of the waits

  input  roci_pkg::sent_t             sent_i,            // always accepted
  output context_pkg::rewound_t       rewound_o,         // nothing was sent since

  output roci_pkg::fence_busy_t       fence_busy_o,
  output roci_pkg::retry_counters_t   counters_o,
  output logic                        ready_o            // the replica is cleared after reset
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam string STYLE = roci_config_pkg::IS_WIDE ? "block" : "distributed";
  localparam logic [2:0] RNR_UNLIMITED = 3'd7;

  typedef struct packed {
    logic [2:0] retry_cnt;
    logic [2:0] rnr_retry;
  } limits_t;

  typedef struct packed {
    logic [2:0] retries;               // left
    logic [2:0] rnr_retries;           // left
    logic suppress;                    // a rewind for a sequence or implied NAK is in effect
  } row_t;

  // IDLE takes a request and reads the rows; DECIDE; RNR hands over the wait, TOLD gives its
  // broadcast time to be everywhere; REWIND hands over the rewind; FORGET waits until what is sent
  // knows of it (two cycles after the broadcast of the epoch, which comes with the acceptance), and
  // forgets what was sent before; RESULT answers. The first packet of the new epoch is sent some ten
  // cycles after the acceptance at the earliest, as it was not even fetched, so it is not forgotten
  // (asserted).
  typedef enum logic [2:0] {IDLE, DECIDE, RNR, TOLD, REWIND, FORGET, RESULT} state_e;

  // ------------------------------------------------------------------------------ state
  state_e state_q, state_d;
  roci_pkg::retry_request_t request_q;
  logic [1:0] told_q;                  // cycles since the wait, or the rewind, was handed over
  logic failed_q;
  logic [6:0] status_q;
  logic [7:0] vendor_status_q;
  logic ctx_read_q, ctx_done_q;

  // ------------------------------------------------------------------------------ logic
  limits_t limits;
  row_t row, row_next;
  logic waiting;                       // RNR wait of the QP
  logic sent;                          // it has sent since it was rewound
  logic row_write;
  logic is_nak, counts, acts, exceeded;
  logic [6:0] status;
  logic [7:0] vendor_status;

  always_comb begin
    row_next = row;
    if (request_q.progressed) begin
      row_next.retries = limits.retry_cnt;
      row_next.rnr_retries = limits.rnr_retry;
      row_next.suppress = 1'b0;
    end

    is_nak = request_q.cause == roci_pkg::RETRY_NAK_SEQUENCE
             || request_q.cause == roci_pkg::RETRY_IMPLIED_NAK;
    counts = is_nak || request_q.cause == roci_pkg::RETRY_TIMEOUT;
    acts = 1'b1;
    exceeded = 1'b0;
    status = 7'(roci_hwif_pkg::CQE_STATUS_RETRY_EXC_ERR);
    vendor_status = is_nak ? 8'(roci_hwif_pkg::VENDOR_STATUS_RETRY_SEQUENCE)
                           : 8'(roci_hwif_pkg::VENDOR_STATUS_RETRY_TIMEOUT);
    if (is_nak && row_next.suppress) acts = 1'b0;
    if (counts && !sent && !(is_nak && request_q.progressed)) acts = 1'b0;
    if (waiting && (counts || (request_q.cause == roci_pkg::RETRY_RNR && !request_q.progressed))) begin
      acts = 1'b0;
    end

    if (acts && counts) begin
      exceeded = row_next.retries == '0;
      row_next.retries = row_next.retries - 3'd1;
      row_next.suppress = is_nak;
    end
    if (acts && request_q.cause == roci_pkg::RETRY_RNR) begin
      status = 7'(roci_hwif_pkg::CQE_STATUS_RNR_RETRY_EXC_ERR);
      vendor_status = 8'(roci_hwif_pkg::VENDOR_STATUS_RETRY_RNR);
      exceeded = row_next.rnr_retries == '0 && limits.rnr_retry != RNR_UNLIMITED;
      row_next.rnr_retries = row_next.rnr_retries - 3'd1;
      row_next.suppress = 1'b0;
    end
    row_write = state_q == DECIDE;
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      IDLE: if (request_valid_i && request_ready_o) state_d = DECIDE;
      DECIDE: begin
        if (!acts || exceeded) state_d = RESULT;
        else if (request_q.cause == roci_pkg::RETRY_RNR) state_d = RNR;
        else state_d = REWIND;
      end
      // The wait is on before the QP can be fetched again.
      RNR: if (rnr_ready_i) state_d = TOLD;
      TOLD: if (told_q == '1) state_d = REWIND;
      REWIND: if (rewind_ready_i) state_d = FORGET;
      FORGET: if (rewound_o.valid) state_d = RESULT;
      RESULT: if (result_ready_i) state_d = IDLE;
      default: state_d = IDLE;
    endcase
  end

  assign request_ready_o = state_q == IDLE && ready_o;

  always_comb begin
    rewind_valid_o = state_q == REWIND;
    rewind_o = '0;
    rewind_o.kind = request_q.cause == roci_pkg::RETRY_RNR ? roci_pkg::REWIND_SLEEP
                                                           : roci_pkg::REWIND_RETRY;
    rewind_o.qp = request_q.qp;
    rewind_o.point = request_q.point;

    rnr_valid_o = state_q == RNR;
    rnr_o.qp = request_q.qp;
    rnr_o.code = request_q.rnr_code;

    rewound_o.valid = state_q == FORGET && told_q[1] && !sent_i.valid;
    rewound_o.qp = request_q.qp;

    result_valid_o = state_q == RESULT;
    result_o.colour = request_q.colour;
    result_o.qp = request_q.qp;
    result_o.failed = failed_q;
    result_o.status = status_q;
    result_o.vendor_status = vendor_status_q;

    fence_busy_o = '0;
    if (state_q != IDLE) fence_busy_o[request_q.colour] = 1'b1;

    counters_o = '0;
    if (state_q == DECIDE && acts && !exceeded) begin
      counters_o.retry_timeout = request_q.cause == roci_pkg::RETRY_TIMEOUT;
      counters_o.retry_nak_sequence = request_q.cause == roci_pkg::RETRY_NAK_SEQUENCE;
      counters_o.retry_implied_nak = request_q.cause == roci_pkg::RETRY_IMPLIED_NAK;
      counters_o.retry_rnr = request_q.cause == roci_pkg::RETRY_RNR;
      counters_o.retry_underrun = request_q.cause == roci_pkg::RETRY_UNDERRUN;
      counters_o.retry_ack_overtook = request_q.cause == roci_pkg::RETRY_OVERTAKEN;
    end
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (state_q == IDLE) request_q <= request_i;
    told_q <= state_q == TOLD || state_q == FORGET ? told_q + 2'(told_q != '1) : '0;
    if (state_q == DECIDE) begin
      failed_q <= acts && exceeded;
      status_q <= status;
      vendor_status_q <= vendor_status;
    end
    if (rst_i) state_q <= IDLE;
  end

  // ------------------------------------------------------------------------ context bus
  roci_hwif_pkg::ctx_qp_retry_t ctx_row;
  logic ctx_selected, ctx_write;
  limits_t ctx_limits;

  always_comb begin
    ctx_row = roci_hwif_pkg::ctx_qp_retry_t'(ctx_i.wdata);
    ctx_selected = ctx_i.valid && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_QP_RETRY;
    ctx_write = ctx_selected && ctx_i.write && ctx_i.word == 4'd0;
    ctx_limits.retry_cnt = ctx_row.retry_cnt;
    ctx_limits.rnr_retry = ctx_row.rnr_retry;
  end

  logic [$bits(limits_t)-1:0] ctx_read_limits;
  limits_t read_limits;
  roci_hwif_pkg::ctx_qp_retry_t read_row;

  always_comb begin
    read_limits = limits_t'(ctx_read_limits);
    read_row = '0;
    read_row.retry_cnt = read_limits.retry_cnt;
    read_row.rnr_retry = read_limits.rnr_retry;
    ctx_o.done = ctx_done_q;
    ctx_o.rdata = ctx_done_q && !ctx_i.write && ctx_i.word == 4'd0 ? read_row : '0;
  end

  always_ff @(posedge clk_i) begin
    ctx_read_q <= ctx_selected && !ctx_read_q && !ctx_done_q;
    ctx_done_q <= ctx_read_q;
    if (rst_i) begin
      ctx_read_q <= 1'b0;
      ctx_done_q <= 1'b0;
    end
  end

  // ------------------------------------------------------------------------------ tables
  common_ram_sdp #(.WIDTH($bits(limits_t)), .DEPTH(QPS), .STYLE(STYLE)) u_limits (
    .clk_i, .we_i(ctx_write), .waddr_i(roci_pkg::qp_t'(ctx_i.index)), .wdata_i(ctx_limits),
    .re_i(1'b1), .raddr_i(request_i.qp), .rdata_o(limits)
  );

  common_ram_sdp #(.WIDTH($bits(limits_t)), .DEPTH(QPS), .STYLE(STYLE)) u_limits_ctx (
    .clk_i, .we_i(ctx_write), .waddr_i(roci_pkg::qp_t'(ctx_i.index)), .wdata_i(ctx_limits),
    .re_i(1'b1), .raddr_i(roci_pkg::qp_t'(ctx_i.index)), .rdata_o(ctx_read_limits)
  );

  common_ram_sdp #(.WIDTH($bits(row_t)), .DEPTH(QPS), .STYLE(STYLE)) u_rows (
    .clk_i, .we_i(row_write), .waddr_i(request_q.qp), .wdata_i(row_next),
    .re_i(1'b1), .raddr_i(request_i.qp), .rdata_o(row)
  );

  common_ram_cleared #(.WIDTH(1), .DEPTH(QPS), .STYLE(STYLE)) u_waits (
    .clk_i, .rst_i, .ready_o,
    .we_i(rnr_i.valid), .waddr_i(rnr_i.qp), .wdata_i(rnr_i.waiting),
    .re_i(1'b1), .raddr_i(request_i.qp), .rdata_o(waiting)
  );

  // Needs no start: whatever has something to wait for has sent it.
  common_ram_sdp #(.WIDTH(1), .DEPTH(QPS), .STYLE(STYLE)) u_sent (
    .clk_i, .we_i(sent_i.valid ? sent_i.current : rewound_o.valid),
    .waddr_i(sent_i.valid ? sent_i.qp : rewound_o.qp), .wdata_i(sent_i.valid),
    .re_i(1'b1), .raddr_i(request_i.qp), .rdata_o(sent)
  );

  // ------------------------------------------------------------------------ assertions
  always_ff @(posedge clk_i) begin
    if (!rst_i && state_q == DECIDE) begin
      // nobody else uses the number
      assert (request_q.cause <= roci_pkg::RETRY_RNR);
    end
    // what is sent knows of the rewind by now: a packet of the new epoch would be forgotten
    if (!rst_i && state_q == FORGET && told_q[1] && sent_i.valid && sent_i.current) begin
      assert (sent_i.qp != request_q.qp);
    end
  end

endmodule

`default_nettype wire
