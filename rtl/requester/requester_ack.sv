// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_ack: the completion side of the send queues, and the only source of their completions.
//
// Joins four parts:
//   requester_ack_events   what each QP was told: one operation per cycle into bounded per-QP state
//   requester_inflight     one record per WQE that was sent
//   requester_ack_walker   visits the QPs that were told something: pops records, finds failures
//   and
//                          reasons to go back
//   requester_ack_output   completions, requests to requester_retry, wakes, ERR, events
// and the queue of QPs to visit, in which a QP is at most once (architecture.md rule 6).
//
// Events are taken whatever happens behind: they never wait for the walk (rule 2). Completions of a
// QP leave in WQE order; a completion leaves only when no fetch will read its WQE again.
//
// Does not: count retries (requester_retry), judge READ responses (requester_read_data).
// Neighbours: see docs/architecture.md. Column QP_ACK: ctx_qp_ack of hwif/contexts.toml.
`default_nettype none

module requester_ack (
  input  wire                         clk_i,
  input  wire                         rst_i,

  // column QP_ACK
  input  roci_pkg::ctx_req_t          ctx_i,
  output roci_pkg::ctx_rsp_t          ctx_o,

  // from host_dma_write, in frame order and behind the data of responses
  input  wire                         ack_event_valid_i,
  output logic                        ack_event_ready_o,
  input  roci_pkg::ack_token_t        ack_event_i,
  // from the packetizer
  input  wire                         inflight_valid_i,
  output logic                        inflight_ready_o,
  input  roci_pkg::inflight_write_t   inflight_i,
  input  roci_pkg::sent_t             sent_i,              // always accepted
  input  wire                         making_i,            // it makes a packet
  input  roci_pkg::qp_t               making_qp_i,         // of this QP
  input  wire                         local_error_valid_i,
  output logic                        local_error_ready_o,
  input  roci_pkg::local_error_t      local_error_i,
  // from packet_tx_decide and packet_header_build
  input  wire                         refused_valid_i,
  output logic                        refused_ready_o,
  input  roci_pkg::tx_refused_t       refused_i,
  output logic                        refused_stale_o,     // the one taken last cycle counts not
  input  wire                         tx_done_valid_i,     // always accepted, any source
  input  roci_pkg::tx_done_t          tx_done_i,
  // from packet_tx_drain: a QP in ERR of which nothing more leaves
  input  wire                         tx_drained_valid_i,
  output logic                        tx_drained_ready_o,
  input  roci_pkg::qp_t               tx_drained_i,
  // from context_timer
  input  wire                         report_valid_i,
  output logic                        report_ready_o,
  input  roci_pkg::timer_report_t     report_i,
  // replicas
  input  roci_pkg::state_bcast_t      state_i,
  input  roci_pkg::epoch_bcast_t      epoch_i,

  // requester_retry: requests, and their answers
  output logic                        retry_valid_o,
  input  wire                         retry_ready_i,
  output roci_pkg::retry_request_t    retry_o,
  input  wire                         result_valid_i,
  output logic                        result_ready_o,
  input  roci_pkg::retry_result_t     result_i,

  output logic                        completion_valid_o,  // to queue_cq_writer
  input  wire                         completion_ready_i,
  output roci_pkg::sq_completion_t    completion_o,
  output roci_pkg::ack_state_t        ack_state_o,         // always accepted
  output logic                        wake_valid_o,        // to queue_sq_scheduler
  input  wire                         wake_ready_i,
  output roci_pkg::qp_t               wake_o,
  output logic                        state_error_valid_o, // to context_qp_state
  input  wire                         state_error_ready_i,
  output roci_pkg::state_error_t      state_error_o,
  output logic                        event_valid_o,       // SQ_DRAINED, to queue_eq_writer
  input  wire                         event_ready_i,
  output roci_pkg::event_t            event_o,

  input  roci_pkg::colour_t           colour_i,
  output roci_pkg::fence_busy_t       fence_busy_o,

  output logic                        ignored_o,           // pulse, counter rx_drop_response
  output logic                        ready_o              // the queue is cleared after reset
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam int unsigned RESULTS = 8;      // > requests that can be outstanding: retry never waits

  // ---------------------------------------------------------------------------- context bus
  // The request is taken into registers, so that the bus is no part of any path inside.
  logic ctx_busy_q, ctx_write_q;
  logic [3:0] ctx_word_q;
  logic [63:0] ctx_data_q;
  roci_pkg::qp_t ctx_qp_q;
  logic ctx_first_q;                                       // first cycle of the request
  logic events_init_q, inflight_init_q, walk_init_q;       // these parts have started the QP
  logic ctx_answer_q, ctx_done_q;
  logic [63:0] ctx_rdata_q;
  roci_hwif_pkg::ctx_qp_ack_t ctx_row, walk_row, walk_row_q, static_row;
  logic ctx_word0, ctx_start, ctx_read, ctx_walk_done, ctx_finished;
  logic events_init_ready, inflight_init_ready;

  always_comb begin
    ctx_word0 = ctx_busy_q && ctx_first_q && ctx_write_q && ctx_word_q == 4'd0;
    ctx_start = ctx_busy_q && ctx_write_q && ctx_word_q == 4'd1;
    ctx_read = ctx_busy_q && !ctx_write_q;
    ctx_row = '0;
    if (ctx_word_q == 4'd0) ctx_row[63:0] = ctx_data_q;
    else ctx_row[127:64] = ctx_data_q;
    // A start is done when all parts have made it. A read comes through the walk, so that it sees
    // the row between two visits; the static part follows one cycle later.
    if (ctx_read) ctx_finished = ctx_answer_q;
    else if (ctx_start) ctx_finished = events_init_q && inflight_init_q && walk_init_q;
    else ctx_finished = ctx_busy_q;
  end

  always_ff @(posedge clk_i) begin
    if (!ctx_busy_q) begin
      ctx_write_q <= ctx_i.write;
      ctx_word_q <= ctx_i.word;
      ctx_data_q <= ctx_i.wdata;
      ctx_qp_q <= roci_pkg::qp_t'(ctx_i.index);
    end
    ctx_first_q <= !ctx_busy_q;
    ctx_busy_q <= ctx_busy_q ? !ctx_finished
                             : ctx_i.valid && !ctx_done_q && ready_o
                               && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_QP_ACK;
    ctx_done_q <= ctx_finished;
    events_init_q <= ctx_start && !ctx_finished && (events_init_q || events_init_ready);
    inflight_init_q <= ctx_start && !ctx_finished && (inflight_init_q || inflight_init_ready);
    walk_init_q <= ctx_start && !ctx_finished && (walk_init_q || ctx_walk_done);
    ctx_answer_q <= ctx_read && ctx_walk_done;
    if (ctx_read && !ctx_answer_q) walk_row_q <= walk_row;
    unique case (ctx_word_q)
      4'd0: ctx_rdata_q <= walk_row_q[63:0] | static_row[63:0];
      4'd1: ctx_rdata_q <= static_row[127:64];
      4'd2: ctx_rdata_q <= walk_row_q[191:128];
      default: ctx_rdata_q <= '0;
    endcase
    if (rst_i) begin
      ctx_busy_q <= 1'b0;
      ctx_done_q <= 1'b0;
      events_init_q <= 1'b0;
      inflight_init_q <= 1'b0;
      walk_init_q <= 1'b0;
      ctx_answer_q <= 1'b0;
    end
  end

  assign ctx_o.done = ctx_done_q;
  assign ctx_o.rdata = ctx_done_q && !ctx_write_q ? ctx_rdata_q : '0;

  // ---------------------------------------------------------------------------- queue of visits
  logic event_push_valid, record_push_valid, record_push_ready, requeue_valid, requeue_ready;
  roci_pkg::qp_t event_push_qp, record_push_qp, requeue_qp;
  logic push_valid, queue_valid, queue_ready;
  roci_pkg::qp_t push_qp, queue_qp;

  // events cannot wait, and leave free cycles
  always_comb begin
    push_valid = 1'b1;
    push_qp = event_push_qp;
    record_push_ready = 1'b0;
    requeue_ready = 1'b0;
    if (!event_push_valid) begin
      if (record_push_valid) begin
        push_qp = record_push_qp;
        record_push_ready = ready_o;
      end else begin
        push_qp = requeue_qp;
        push_valid = requeue_valid;
        requeue_ready = ready_o;
      end
    end
  end

  common_object_queue #(.N(QPS)) u_queue (
    .clk_i, .rst_i,
    .push_valid_i(push_valid && ready_o), .push_ready_o(ready_o), .push_i(push_qp),
    .push_new_o(),
    .pop_valid_o(queue_valid), .pop_ready_i(queue_ready), .pop_o(queue_qp), .usage_o()
  );

  // ------------------------------------------------------------------------------- parts
  logic clear_valid, clear_ready;
  requester_pkg::ack_clear_t clear;
  roci_pkg::qp_t walk_qp, action_qp;
  roci_pkg::inflight_slot_t walk_slot;
  requester_pkg::ack_events_t walk_events;
  requester_pkg::ack_record_t walk_record;
  requester_pkg::ack_horizon_t walk_horizon;
  requester_pkg::ack_details_t walk_details;
  logic action_valid, room;
  requester_pkg::ack_action_t action;
  roci_pkg::fence_busy_t walker_busy, output_busy;

  requester_ack_events u_events (
    .clk_i, .rst_i,
    .sent_i, .making_i, .making_qp_i, .tx_done_valid_i, .tx_done_i, .state_i,
    .tx_drained_valid_i, .tx_drained_ready_o, .tx_drained_i,
    .ack_event_valid_i, .ack_event_ready_o, .ack_event_i,
    .refused_valid_i, .refused_ready_o, .refused_i, .refused_stale_o,
    .local_error_valid_i, .local_error_ready_o, .local_error_i,
    .report_valid_i, .report_ready_o, .report_i,
    .init_valid_i(ctx_start && !events_init_q), .init_ready_o(events_init_ready),
    .init_qp_i(ctx_qp_q), .init_psn_i(ctx_row.psn),
    .type_write_i(ctx_word0), .type_qp_i(ctx_qp_q),
    .type_i(roci_pkg::qp_type_e'(ctx_row.qp_type[1:0])),
    .clear_valid_i(clear_valid), .clear_ready_o(clear_ready), .clear_i(clear),
    .walk_qp_i(walk_qp), .walk_events_o(walk_events), .walk_details_o(walk_details),
    .push_valid_o(event_push_valid), .push_qp_o(event_push_qp),
    .ignored_o
  );

  requester_inflight u_inflight (
    .clk_i, .rst_i,
    .inflight_valid_i, .inflight_ready_o, .inflight_i, .epoch_i,
    .init_valid_i(ctx_start && !inflight_init_q), .init_ready_o(inflight_init_ready),
    .init_qp_i(ctx_qp_q),
    .walk_slot_i(walk_slot), .walk_record_o(walk_record),
    .walk_qp_i(walk_qp), .walk_horizon_o(walk_horizon),
    .push_valid_o(record_push_valid), .push_ready_i(record_push_ready),
    .push_qp_o(record_push_qp)
  );

  logic result_valid, result_ready;
  roci_pkg::retry_result_t result;

  common_fifo #(.WIDTH($bits(roci_pkg::retry_result_t)), .DEPTH(RESULTS)) u_results (
    .clk_i, .rst_i,
    .in_valid_i(result_valid_i), .in_ready_o(result_ready_o), .in_i(result_i),
    .out_valid_o(result_valid), .out_ready_i(result_ready), .out_o(result), .usage_o()
  );

  requester_ack_walker u_walker (
    .clk_i, .rst_i,
    .queue_valid_i(queue_valid), .queue_ready_o(queue_ready), .queue_qp_i(queue_qp),
    .result_valid_i(result_valid), .result_ready_o(result_ready), .result_i(result),
    .state_i, .epoch_i,
    .region_write_i(ctx_word0),
    .ctx_valid_i((ctx_start && !walk_init_q) || (ctx_read && !ctx_answer_q)),
    .ctx_init_i(ctx_start), .ctx_done_o(ctx_walk_done), .ctx_qp_i(ctx_qp_q),
    .ctx_base_i(roci_pkg::inflight_slot_t'(ctx_row.inflight_base)),
    .ctx_log2_i(ctx_row.inflight_log2), .ctx_psn_i(ctx_row.psn), .ctx_row_o(walk_row),
    .walk_qp_o(walk_qp), .walk_slot_o(walk_slot), .walk_record_i(walk_record),
    .walk_horizon_i(walk_horizon), .walk_events_i(walk_events),
    .walk_details_i(walk_details),
    .action_qp_o(action_qp), .action_valid_o(action_valid), .action_o(action), .room_i(room),
    .ack_state_o,
    .requeue_valid_o(requeue_valid), .requeue_ready_i(requeue_ready), .requeue_qp_o(requeue_qp),
    .colour_i, .busy_o(walker_busy)
  );

  requester_ack_output u_output (
    .clk_i, .rst_i,
    .number_write_i(ctx_start), .cq_write_i(ctx_word0), .write_qp_i(ctx_qp_q),
    .write_row_i(ctx_row), .static_row_o(static_row),
    .action_qp_i(action_qp), .action_valid_i(action_valid), .action_i(action), .room_o(room),
    .completion_valid_o, .completion_ready_i, .completion_o,
    .retry_valid_o, .retry_ready_i, .retry_o,
    .wake_valid_o, .wake_ready_i, .wake_o,
    .state_error_valid_o, .state_error_ready_i, .state_error_o,
    .event_valid_o, .event_ready_i, .event_o,
    .clear_valid_o(clear_valid), .clear_ready_i(clear_ready), .clear_o(clear),
    .busy_o(output_busy)
  );

  // a result that waits counts for its colour: requester_retry has let go of it
  logic [1:0][3:0] held_q;
  logic [1:0] held_in, held_out;

  always_comb begin
    held_in = '0;
    held_out = '0;
    held_in[result_i.colour] = result_valid_i && result_ready_o;
    held_out[result.colour] = result_valid && result_ready;
    for (int unsigned c = 0; c < 2; c++) begin
      fence_busy_o[c] = walker_busy[c] || output_busy[c] || held_q[c] != '0;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < 2; c++) begin
      held_q[c] <= held_q[c] + 4'(held_in[c]) - 4'(held_out[c]);
    end
    if (rst_i) held_q <= '0;
  end

endmodule

`default_nettype wire
