// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_cq_events: what happens once a CQE is in memory: arming, events, errors.
//
// Takes the CQE_DONE tokens without ever waiting for those it tells: the commit FIFO stands behind
// them. What it has to say waits in queues that hold each object once (common_object_queue): events
// of CQs (an armed CQ fires once; its error comes once) and QPs that must go to ERR.
//
// Lost completion (overflow, or its write failed): the CQ stops, one CQ_ERROR event; each QP that
// loses a completion goes to ERR with QP_FATAL (IBTA 11.6.3.1), and so does one whose payload could
// not be written.
// Neighbours: host_commit_tokens, queue_cq_place (stop), queue_eq_writer, context_qp_state.
`default_nettype none

module queue_cq_events (
  input  wire                               clk_i,
  input  wire                               rst_i,
  output logic                              ready_o,        // tables are cleared after reset

  input  wire                               done_valid_i,
  output logic                              done_ready_o,
  input  wire roci_pkg::qp_t                done_qp_i,
  input  wire                               done_error_i,   // the CQE could not be written
  input  wire queue_cq_pkg::done_t          done_i,

  input  wire                               doorbell_valid_i,
  input  wire roci_pkg::doorbell_t          doorbell_i,     // CQ_ARM counts

  // stop a CQ; the answer comes in the next cycle
  output logic                              stop_valid_o,
  input  wire                               stop_ready_i,
  output roci_pkg::cq_t                     stop_cq_o,
  input  wire                               stop_first_i,

  // row access; held until row_done_o
  input  wire                               row_valid_i,
  input  wire                               row_start_i,    // write word 1, start afresh
  input  wire roci_pkg::cq_t                row_cq_i,
  input  wire roci_hwif_pkg::ctx_cq_t       row_i,
  output logic                              row_done_o,
  output roci_hwif_pkg::ctx_cq_t            row_o,          // its part of the row, rest zero

  output logic                              event_valid_o,
  input  wire                               event_ready_i,
  output roci_pkg::event_t                  event_o,
  output logic                              error_valid_o,
  input  wire                               error_ready_i,
  output roci_pkg::state_error_t            error_o,

  input  wire roci_pkg::colour_t            colour_i,
  output roci_pkg::fence_busy_t             fence_busy_o    // events and errors that wait
);

  localparam int unsigned CQ_BITS = roci_config_pkg::CQ_BITS;
  localparam int unsigned QP_BITS = roci_config_pkg::QP_BITS;
  localparam int unsigned CQS = 2 ** CQ_BITS;

  typedef queue_cq_pkg::index_t index_t;

  typedef struct packed {
    logic valid;
    roci_pkg::fn_t fn;
    roci_pkg::eq_t eq;
    logic [23:0] cqn;
  } target_t;

  // --------------------------------------------------------------------------------------- tokens
  logic lost, failed, fire_valid, arm_ready;
  roci_pkg::cq_t fire_cq;
  index_t fire_index;
  logic done_plain, take, event_push_ready, error_push_ready;
  logic error_event;                     // a CQ has an error from now on

  // A failed write: the CQ is stopped first, then its event is pushed; an overflow has stopped it.
  typedef enum logic [1:0] {STOP_IDLE, STOP_ASK, STOP_ANSWER, STOP_PUSH} stop_e;
  stop_e stop_q;
  roci_pkg::cq_t stop_cq_q;
  logic stop_by_bus_q;

  assign failed = done_i.placed && done_error_i;
  assign lost = done_i.live && (!done_i.placed || done_error_i);
  assign done_plain = done_i.placed && !done_error_i;

  // Neither waits for a reader of events: a few cycles at most.
  assign done_ready_o = ready_o && (done_plain ? arm_ready : stop_q == STOP_IDLE);
  assign take = done_valid_i && done_ready_o;

  always_ff @(posedge clk_i) begin
    unique case (stop_q)
      STOP_IDLE: begin
        if (take && failed) stop_q <= STOP_ASK;
        else if (take && done_i.overflowed) stop_q <= STOP_PUSH;
        stop_cq_q <= done_i.cq;
        stop_by_bus_q <= failed;
      end
      STOP_ASK: if (stop_ready_i) stop_q <= STOP_ANSWER;
      STOP_ANSWER: stop_q <= stop_first_i ? STOP_PUSH : STOP_IDLE;
      default: if (!fire_valid) stop_q <= STOP_IDLE;     // the event of a fire cannot wait
    endcase
    if (rst_i) stop_q <= STOP_IDLE;
  end
  assign stop_valid_o = stop_q == STOP_ASK;
  assign stop_cq_o = stop_cq_q;

  // ---------------------------------------------------------------------------------------- arms
  logic arm, row_arm_ready, row_read, row_read_q, row_done_q;
  index_t row_committed;
  logic row_armed, row_solicited_only;
  target_t target, target_in;
  logic [$bits(target_t)-1:0] target_bits;

  assign arm = doorbell_valid_i && doorbell_i.kind == roci_pkg::DOORBELL_CQ_ARM;

  queue_arm #(.N(CQS), .INDEX_BITS(queue_cq_pkg::INDEX_BITS)) u_arm (
    .clk_i, .rst_i,
    .arm_valid_i(arm), .arm_object_i(roci_pkg::cq_t'(doorbell_i.object_index)),
    .arm_index_i(index_t'(doorbell_i.index)), .arm_solicited_only_i(doorbell_i.solicited_only),
    .done_valid_i(take && done_plain), .done_ready_o(arm_ready), .done_object_i(done_i.cq),
    .done_index_i(done_i.index), .done_solicited_i(done_i.solicited),
    .row_valid_i(row_read), .row_ready_o(row_arm_ready), .row_clear_i(row_start_i),
    .row_object_i(row_cq_i), .row_committed_o(row_committed), .row_armed_o(row_armed),
    .row_solicited_only_o(row_solicited_only),
    .fire_valid_o(fire_valid), .fire_object_o(fire_cq), .fire_index_o(fire_index)
  );

  // -------------------------------------------------------------------------------------- events
  // What a CQ in the queue has to say. One access per cycle: a fire, an error, or the pop.
  typedef struct packed {
    logic fired;
    logic error;
    logic by_bus;                        // the error: a failed write, else overflow
  } news_t;

  news_t news, news_in, news_q;
  logic news_ready;
  roci_pkg::cq_t news_cq, pop_cq, push_cq_q, target_cq;
  logic push_q, pop_valid, pop, pop_q;
  logic second_q;                        // the CQ error follows the completion event
  index_t fired;
  logic [$clog2(CQS+2)-1:0] queued;

  assign error_event = stop_q == STOP_PUSH;
  assign pop = pop_valid && !fire_valid && !error_event && !pop_q && !second_q && !event_valid_o;

  always_comb begin
    news_in = news;
    if (fire_valid) begin
      news_cq = fire_cq;
      news_in.fired = 1'b1;
    end else if (error_event) begin
      news_cq = stop_cq_q;
      news_in.error = 1'b1;
      news_in.by_bus = stop_by_bus_q;
    end else begin
      news_cq = pop_cq;
      news_in = '0;
    end
  end

  common_ram_cleared #(
    .WIDTH($bits(news_t)), .DEPTH(CQS), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_news (
    .clk_i, .rst_i, .ready_o(news_ready),
    .we_i(news_ready && (fire_valid || error_event || pop)), .waddr_i(news_cq), .wdata_i(news_in),
    .re_i(1'b1), .raddr_i(news_cq), .rdata_o(news)
  );

  common_object_queue #(.N(CQS)) u_events (
    .clk_i, .rst_i,
    .push_valid_i(push_q), .push_ready_o(event_push_ready), .push_i(push_cq_q),
    .push_new_o(),
    .pop_valid_o(pop_valid), .pop_ready_i(pop), .pop_o(pop_cq), .usage_o(queued)
  );

  common_ram_sdp #(
    .WIDTH($bits(index_t)), .DEPTH(CQS), .LATENCY(1)
  ) u_fired (
    .clk_i, .we_i(fire_valid), .waddr_i(fire_cq), .wdata_i(fire_index),
    .re_i(1'b1), .raddr_i(pop_cq), .rdata_o(fired)
  );

  assign row_read = row_valid_i && !row_read_q && !row_done_q && !pop;
  assign target_cq = pop ? pop_cq : row_cq_i;
  assign target_in = '{valid: row_i.valid, fn: roci_pkg::fn_t'(row_i.fn),
                       eq: roci_pkg::eq_t'(row_i.eq), cqn: row_i.cqn};
  assign target = target_t'(target_bits);

  common_ram_sdp #(
    .WIDTH($bits(target_t)), .DEPTH(CQS), .LATENCY(1)
  ) u_target (
    .clk_i, .we_i(row_read && row_arm_ready && row_start_i), .waddr_i(row_cq_i),
    .wdata_i(target_in), .re_i(1'b1), .raddr_i(target_cq), .rdata_o(target_bits)
  );

  always_ff @(posedge clk_i) begin
    // The news is in the table one cycle before the object is in the queue.
    push_q <= fire_valid || error_event;
    push_cq_q <= news_cq;
    pop_q <= pop;
    if (pop) news_q <= news;
    if (pop_q) begin
      event_valid_o <= target.valid && (news_q.fired || news_q.error);  // a destroyed CQ is silent
      second_q <= target.valid && news_q.fired && news_q.error;
      event_o <= '0;
      event_o.fn <= target.fn;
      event_o.eq_valid <= 1'b1;
      event_o.eq <= target.eq;
      event_o.object <= target.cqn;
      if (news_q.fired) begin
        event_o.event_type <= 8'(roci_hwif_pkg::EQE_TYPE_COMPLETION);
        event_o.data <= 32'(fired);
      end else begin
        event_o.event_type <= 8'(roci_hwif_pkg::EQE_TYPE_CQ_ERROR);
        event_o.cause <= cause_of(news_q);
      end
    end else if (event_valid_o && event_ready_i) begin
      event_valid_o <= second_q;
      second_q <= 1'b0;
      event_o.event_type <= 8'(roci_hwif_pkg::EQE_TYPE_CQ_ERROR);
      event_o.cause <= cause_of(news_q);
      event_o.data <= '0;
    end

    row_read_q <= row_read && row_arm_ready;
    row_done_q <= row_read_q;
    if (row_read_q) begin
      row_o <= '0;
      row_o.cqn <= target.cqn;
      row_o.eq <= 16'(target.eq);
      row_o.committed <= row_committed;
      row_o.armed <= row_armed;
      row_o.solicited_only <= row_solicited_only;
    end
    if (rst_i) begin
      push_q <= 1'b0;
      pop_q <= 1'b0;
      event_valid_o <= 1'b0;
      second_q <= 1'b0;
      row_read_q <= 1'b0;
      row_done_q <= 1'b0;
    end
  end
  assign row_done_o = row_done_q;

  function automatic logic [7:0] cause_of(input news_t what);
    return what.by_bus ? 8'(roci_hwif_pkg::VENDOR_STATUS_CQ_WRITE_BUS)
                       : 8'(roci_hwif_pkg::VENDOR_STATUS_CQ_OVERFLOW);
  endfunction

  // -------------------------------------------------------------------------------------- errors
  logic error_q;
  roci_pkg::qp_t error_qp, error_qp_q;
  logic [$clog2(2**QP_BITS+2)-1:0] errors_queued;

  always_ff @(posedge clk_i) begin
    error_q <= take && (lost || (done_i.payload_failed && done_i.live)) && !rst_i;
    error_qp_q <= done_qp_i;
  end

  common_object_queue #(.N(2 ** QP_BITS)) u_errors (
    .clk_i, .rst_i,
    .push_valid_i(error_q), .push_ready_o(error_push_ready), .push_i(error_qp_q),
    .push_new_o(),
    .pop_valid_o(error_valid_o), .pop_ready_i(error_ready_i), .pop_o(error_qp),
    .usage_o(errors_queued)
  );

  assign error_o = '{send_only: 1'b0, qp: error_qp, event_valid: 1'b1,
                     event_type: 8'(roci_hwif_pkg::EQE_TYPE_QP_FATAL)};
  assign ready_o = news_ready && event_push_ready && error_push_ready;

  // --------------------------------------------------------------------------------------- fence
  localparam int unsigned EVENT_COUNT_BITS = $clog2(CQS + 2) + 1;

  roci_pkg::fence_busy_t events_busy, errors_busy, other_busy;
  logic [EVENT_COUNT_BITS-1:0] events_held;

  // The event in hand counts as one, with or without a second one behind it.
  assign events_held = EVENT_COUNT_BITS'(queued)
                       + EVENT_COUNT_BITS'(pop_q || event_valid_o);

  queue_fence_mark #(.WIDTH(EVENT_COUNT_BITS)) u_events_mark (
    .clk_i, .rst_i, .colour_i, .waiting_i(events_held),
    .leave_i((event_valid_o && event_ready_i && !second_q)
             || (pop_q && !(target.valid && (news_q.fired || news_q.error)))),
    .busy_o(events_busy)
  );
  queue_fence_mark #(.WIDTH($clog2(2**QP_BITS+2))) u_errors_mark (
    .clk_i, .rst_i, .colour_i, .waiting_i(errors_queued),
    .leave_i(error_valid_o && error_ready_i), .busy_o(errors_busy)
  );
  assign other_busy = stop_q != STOP_IDLE ? 2'b11 : 2'b00;
  assign fence_busy_o = events_busy | errors_busy | other_busy;

  always_ff @(posedge clk_i) begin
    if (!rst_i && push_q) assert (event_push_ready);
    if (!rst_i && error_q) assert (error_push_ready);
  end

endmodule

`default_nettype wire
