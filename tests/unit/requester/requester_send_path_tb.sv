// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The sending path as it stands in the chip: scheduler, WQE fetch and packetizer, with host memory,
// acknowledgements, rewinds and states outside. Not a product module.
`default_nettype none

module requester_send_path_tb #(
  parameter int unsigned QUANTUM_CYCLES = 512
) (
  input  wire                              clk_i,
  input  wire                              rst_i,
  output logic                             ready_o,

  input  wire roci_pkg::ctx_req_t          ctx_i,
  output roci_pkg::ctx_rsp_t               ctx_o,
  input  wire roci_pkg::state_bcast_t      state_i,
  input  wire roci_pkg::rnr_bcast_t        rnr_i,
  input  wire roci_pkg::ack_state_t        ack_state_i,
  input  wire roci_pkg::colour_t           colour_i,
  output roci_pkg::fence_busy_t            fence_busy_o,

  input  wire                              doorbell_valid_i,
  input  wire roci_pkg::doorbell_t         doorbell_i,
  input  wire                              wake_valid_i,
  output logic                             wake_ready_o,
  input  wire roci_pkg::qp_t               wake_i,

  input  wire                              retry_valid_i,
  output logic                             retry_ready_o,
  input  wire roci_pkg::rewind_req_t       retry_i,
  output roci_pkg::epoch_bcast_t           epoch_o,

  output logic                             dma_valid_o,
  input  wire                              dma_ready_i,
  output roci_pkg::dma_read_req_t          dma_o,
  input  wire                              beat_valid_i,
  output logic                             beat_ready_o,
  input  wire roci_pkg::read_beat_t        beat_i,

  output logic                             item_valid_o,
  input  wire                              item_ready_i,
  output roci_pkg::tx_item_t               item_o,
  output logic                             inflight_valid_o,
  input  wire                              inflight_ready_i,
  output roci_pkg::inflight_write_t        inflight_o,
  output logic                             read_record_valid_o,
  input  wire                              read_record_ready_i,
  output roci_pkg::read_record_write_t     read_record_o,
  output roci_pkg::sent_t                  sent_o,
  output logic                             resent_o,
  output roci_count_pkg::stall_counters_t        stalled_o,
  output logic                             local_error_valid_o,
  input  wire                              local_error_ready_i,
  output roci_pkg::local_error_t           local_error_o,
  output logic                             state_error_valid_o,
  input  wire                              state_error_ready_i,
  output roci_pkg::state_error_t           state_error_o,

  // the packetizer's rewinds, to be watched
  output logic                             rewind_valid_o,
  output logic                             rewind_ready_o,
  output roci_pkg::rewind_req_t            rewind_o
);

  logic scheduler_ready, fetch_ready, packetizer_ready;
  roci_pkg::ctx_rsp_t fetch_ctx, packetizer_ctx;
  logic pop_valid, pop_ready, requeue_valid, requeue_ready;
  roci_pkg::sq_pop_t pop;
  roci_pkg::sq_index_t producer;
  roci_pkg::sq_requeue_t requeue;
  logic block_valid, block_ready, turn, others_queued, others_fetched;
  roci_pkg::wqe_block_t block;
  roci_pkg::qp_t current_qp;
  roci_pkg::fence_busy_t fetch_busy, packetizer_busy;

  assign ready_o = scheduler_ready && fetch_ready && packetizer_ready;
  assign ctx_o = fetch_ctx | packetizer_ctx;
  assign fence_busy_o = fetch_busy | packetizer_busy;

  queue_sq_scheduler #(.WAKES(1)) u_scheduler (
    .clk_i, .rst_i, .ready_o(scheduler_ready),
    .doorbell_valid_i, .doorbell_i, .wake_valid_i, .wake_ready_o, .wake_i, .state_i, .rnr_i,
    .requeue_valid_i(requeue_valid), .requeue_ready_o(requeue_ready), .requeue_i(requeue),
    .pop_valid_o(pop_valid), .pop_ready_i(pop_ready), .pop_o(pop), .producer_o(producer),
    .current_qp_i(current_qp), .others_queued_o(others_queued)
  );

  queue_wqe_fetch u_fetch (
    .clk_i, .rst_i, .ready_o(fetch_ready), .ctx_i, .ctx_o(fetch_ctx),
    .state_i, .colour_i, .fence_busy_o(fetch_busy),
    .pop_valid_i(pop_valid), .pop_ready_o(pop_ready), .pop_i(pop), .producer_i(producer),
    .requeue_valid_o(requeue_valid), .requeue_ready_i(requeue_ready), .requeue_o(requeue),
    .rewind_valid_i({rewind_valid_o, retry_valid_i}),
    .rewind_ready_o({rewind_ready_o, retry_ready_o}),
    .rewind_i({rewind_o, retry_i}),
    .dma_valid_o, .dma_ready_i, .dma_o, .beat_valid_i, .beat_ready_o, .beat_i,
    .block_valid_o(block_valid), .block_ready_i(block_ready), .block_o(block),
    .epoch_o, .turn_i(turn), .others_fetched_o(others_fetched)
  );

  logic making;
  wire unused = &{1'b0, making};     // requester_ack reads it

  requester_packetizer #(.QUANTUM_CYCLES(QUANTUM_CYCLES)) u_packetizer (
    .clk_i, .rst_i, .ready_o(packetizer_ready), .ctx_i, .ctx_o(packetizer_ctx),
    .block_valid_i(block_valid), .block_ready_o(block_ready), .block_i(block),
    .epoch_i(epoch_o), .turn_o(turn),
    .rewind_valid_o, .rewind_ready_i(rewind_ready_o), .rewind_o,
    .ack_state_i, .state_i, .rnr_i,
    .current_qp_o(current_qp), .making_o(making), .others_queued_i(others_queued),
    .others_fetched_i(others_fetched), .colour_i, .gid_valid_i('1),
    .item_valid_o, .item_ready_i, .item_o,
    .inflight_valid_o, .inflight_ready_i, .inflight_o,
    .read_record_valid_o, .read_record_ready_i, .read_record_o, .sent_o,
    .local_error_valid_o, .local_error_ready_i, .local_error_o,
    .state_error_valid_o, .state_error_ready_i, .state_error_o,
    .fence_busy_o(packetizer_busy), .resent_o, .stalled_o
  );

endmodule

`default_nettype wire
