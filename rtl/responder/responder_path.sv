// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_path: the responder: requests in, receive items and responses out.
//
//   packet ─► check ─► action ─┬─► receive ─► item ─► packet_rx_commit … write stream … token ─┐
//               ▲ ▲            └─► read (replay entries)                                       │
//             flush └─ answered ──── respond ◄── lower, entries ───────────────────────────────┘
//                                       └─► item ─► packet_tx_arbiter
//
// Only connects, but for one slice at the tokens. Neighbours: packet_rx_dispatch, queue_rq_fetch,
// packet_rx_commit, host_dma_write, packet_tx_arbiter, packet_tx_decide, packet_header_build,
// context_qp_state.
`default_nettype none

module responder_path (
  input  wire                                clk_i,
  input  wire                                rst_i,           // synchronous, active high

  input  wire roci_pkg::ctx_req_t            ctx_i,           // columns QP_RQ, QP_RQ_DYN, QP_RESP
  output roci_pkg::ctx_rsp_t                 ctx_o,
  input  wire roci_pkg::state_bcast_t        state_i,
  input  wire roci_pkg::colour_t             colour_i,

  // requests (packet_rx_dispatch)
  input  wire                                packet_valid_i,
  output logic                               packet_ready_o,
  input  wire roci_pkg::rx_packet_t          packet_i,
  input  wire                                pressure_i,      // packet buffer is above half
  output logic                               flush_frame_valid_o, // counts like a frame of dispatch
  output roci_pkg::colour_t                  flush_frame_o,

  // receive queues (queue_rq_fetch)
  output logic                               look_valid_o,
  output roci_pkg::rq_number_t               look_queue_o,
  input  wire roci_pkg::rq_look_t            look_i,
  output logic                               total_read_o,
  output roci_pkg::slot_word_address_t       total_slot_o,
  input  wire [31:0]                         total_i,
  output logic                               take_valid_o,
  output roci_pkg::rq_entry_t                take_o,
  input  wire roci_pkg::rq_landed_t          landed_i,
  output logic                               slot_read_o,
  output roci_pkg::slot_word_address_t       slot_address_o,
  input  wire [roci_pkg::SLOT_WORD_BITS-1:0] slot_data_i,
  output logic                               free_valid_o,
  input  wire                                free_ready_i,
  output roci_pkg::rq_entry_t                free_o,

  // to packet_rx_commit, and its tokens back from host_dma_write
  output logic                               rx_item_valid_o,
  input  wire                                rx_item_ready_i,
  output roci_pkg::rx_item_t                 rx_item_o,
  input  wire                                event_valid_i,
  output logic                               event_ready_o,
  input  wire roci_pkg::respond_token_t      event_i,

  input  wire                                atomic_done_valid_i, // responder_atomic
  output logic                               atomic_done_ready_o,
  input  wire roci_pkg::atomic_done_t        atomic_done_i,

  // responses (packet_tx_arbiter) and what became of them
  output logic                               tx_item_valid_o,
  input  wire                                tx_item_ready_i,
  output roci_pkg::tx_item_t                 tx_item_o,
  input  wire                                refused_valid_i,
  output logic                               refused_ready_o,
  input  wire roci_pkg::tx_refused_t         refused_i,
  input  wire                                done_valid_i,    // always accepted
  input  wire roci_pkg::tx_done_t            done_i,
  input  wire                                done_wire_i,     // ethernet_tx will tell when it left
  input  wire                                left_valid_i,    // always accepted
  input  wire roci_pkg::tx_done_t            left_i,          // left the buffer of ethernet_tx

  output logic                               error_valid_o,   // context_qp_state
  input  wire                                error_ready_i,
  output roci_pkg::state_error_t             error_o,
  output logic                               async_valid_o,   // COMM_EST, to queue_eq_writer
  input  wire                                async_ready_i,
  output roci_pkg::event_t                   async_o,

  // counters, one pulse per event
  output logic                               count_wait_o,    // cycles waiting for a receive WQE
  output logic                               count_lost_o,    // dropped as lost under pressure
  output logic                               count_rnr_o,     // RNR NAKs
  output logic                               count_gap_o,     // requests after a gap
  output logic                               count_duplicate_o, // duplicate requests
  output logic                               count_ignored_read_o,   // duplicates that were not
  output logic                               count_no_receive_o, // UC, UD: no receive WQE
  output logic                               count_too_long_o,   // UC, UD: receive buffer too short
  output logic                               count_given_up_o,   // UC: message broken off

  output roci_pkg::fence_busy_t              fence_busy_o,
  output logic                               ready_o          // tables are cleared after reset
);

  roci_pkg::ctx_rsp_t ctx_check, ctx_respond;
  logic check_ready, flush_unit_ready, read_ready, respond_ready;
  roci_pkg::fence_busy_t check_busy, read_busy, respond_busy;

  logic flush_valid, flush_ready, flush_done, flush_more;
  roci_pkg::qp_t flush;
  logic action_valid, action_ready;
  responder_pkg::action_t action;
  roci_pkg::reads_answered_t answered;
  logic lower_valid, lower_ready;
  responder_pkg::lower_t lower;
  logic entry_read;
  roci_pkg::replay_slot_t entry_slot;
  logic result_ready, atomic_ready;
  responder_pkg::replay_entry_t entry;

  assign ctx_o = ctx_check | ctx_respond;
  assign ready_o = check_ready && flush_unit_ready && read_ready && respond_ready;
  assign fence_busy_o = check_busy | read_busy | respond_busy;

  responder_check u_check (
    .clk_i, .rst_i, .ctx_i, .ctx_o(ctx_check),
    .packet_valid_i, .packet_ready_o, .packet_i,
    .flush_valid_i(flush_valid), .flush_ready_o(flush_ready), .flush_i(flush),
    .flush_done_o(flush_done), .flush_more_o(flush_more),
    .flush_frame_valid_o, .flush_frame_o,
    .state_i, .colour_i, .answered_i(answered), .pressure_i,
    .look_valid_o, .look_queue_o, .look_i, .take_valid_o, .take_o, .landed_i,
    .total_read_o, .total_slot_o, .total_i,
    .action_valid_o(action_valid), .action_ready_i(action_ready), .action_o(action),
    .event_valid_o(async_valid_o), .event_ready_i(async_ready_i), .event_o(async_o),
    .count_wait_o, .count_lost_o, .count_rnr_o, .count_gap_o, .count_duplicate_o,
    .count_no_receive_o, .count_too_long_o, .count_given_up_o,
    .fence_busy_o(check_busy), .ready_o(check_ready)
  );

  responder_flush u_flush (
    .clk_i, .rst_i, .state_i, .landed_i,
    .flush_valid_o(flush_valid), .flush_ready_i(flush_ready), .flush_o(flush),
    .flush_done_i(flush_done), .flush_more_i(flush_more), .ready_o(flush_unit_ready)
  );

  // the entry and the walker take a result together
  assign atomic_done_ready_o = result_ready && atomic_ready;

  responder_read u_read (
    .clk_i, .rst_i,
    .result_valid_i(atomic_done_valid_i && atomic_ready), .result_ready_o(result_ready),
    .result_i(atomic_done_i),
    .action_valid_i(action_valid && action_ready), .action_i(action),
    .entry_read_i(entry_read), .entry_slot_i(entry_slot), .entry_o(entry),
    .lower_valid_o(lower_valid), .lower_ready_i(lower_ready), .lower_o(lower),
    .count_duplicate_o(), .count_ignored_o(count_ignored_read_o),
    .fence_busy_o(read_busy), .ready_o(read_ready)
  );

  responder_receive u_receive (
    .clk_i, .rst_i,
    .action_valid_i(action_valid), .action_ready_o(action_ready), .action_i(action),
    .slot_read_o, .slot_address_o, .slot_data_i, .free_valid_o, .free_ready_i, .free_o,
    .item_valid_o(rx_item_valid_o), .item_ready_i(rx_item_ready_i), .item_o(rx_item_o)
  );

  // A token that responder_respond cannot take at once must not hold up the other tokens: three per
  // SEND are all that the commit FIFO can do at wire rate. It waits here for a few cycles only, fewer
  // than those for which a fence wants silence.
  logic event_valid, event_ready;
  roci_pkg::respond_token_t event_token;

  common_skid #(.WIDTH($bits(roci_pkg::respond_token_t))) u_event (
    .clk_i, .rst_i,
    .in_valid_i(event_valid_i), .in_ready_o(event_ready_o), .in_i(event_i),
    .out_valid_o(event_valid), .out_ready_i(event_ready), .out_o(event_token)
  );

  responder_respond u_respond (
    .clk_i, .rst_i, .ctx_i, .ctx_o(ctx_respond), .state_i, .colour_i,
    .event_valid_i(event_valid), .event_ready_o(event_ready), .event_i(event_token),
    .lower_valid_i(lower_valid), .lower_ready_o(lower_ready), .lower_i(lower),
    .atomic_valid_i(atomic_done_valid_i && result_ready), .atomic_ready_o(atomic_ready),
    .atomic_i(atomic_done_i),
    .refused_valid_i, .refused_ready_o, .refused_i, .done_valid_i, .done_i, .done_wire_i,
    .left_valid_i, .left_i, .entry_read_o(entry_read), .entry_slot_o(entry_slot), .entry_i(entry),
    .item_valid_o(tx_item_valid_o), .item_ready_i(tx_item_ready_i), .item_o(tx_item_o),
    .error_valid_o, .error_ready_i, .error_o, .answered_o(answered),
    .fence_busy_o(respond_busy), .ready_o(respond_ready)
  );

endmodule

`default_nettype wire
