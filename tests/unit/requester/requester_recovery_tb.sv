// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The recovery side of the requester as one device under test: requester_ack, requester_retry,
// requester_read_data and context_timer, joined as the chip joins them. Fetch, packetizer, RX
// commit and the peer are models of the test.
`default_nettype none
/* verilator lint_off PINCONNECTEMPTY */

module requester_recovery_tb #(
  parameter int unsigned TICK_CYCLES = 64,
  parameter int unsigned TIMER_QP_BITS = 3
) (
  input  wire                              clk_i,
  input  wire                              rst_i,

  input  roci_pkg::ctx_req_t               ctx_i,
  output roci_pkg::ctx_rsp_t               ctx_o,

  input  wire                              packet_valid_i,
  output logic                             packet_ready_o,
  input  roci_pkg::rx_packet_t             packet_i,
  output logic                             item_valid_o,
  input  wire                              item_ready_i,
  output roci_pkg::rx_item_t               item_o,
  input  wire                              ack_event_valid_i,
  output logic                             ack_event_ready_o,
  input  roci_pkg::ack_token_t             ack_event_i,

  input  wire                              read_record_valid_i,
  output logic                             read_record_ready_o,
  input  roci_pkg::read_record_write_t     read_record_i,
  input  wire                              inflight_valid_i,
  output logic                             inflight_ready_o,
  input  roci_pkg::inflight_write_t        inflight_i,
  input  roci_pkg::sent_t                  sent_i,
  input  wire                              refused_valid_i,
  output logic                             refused_ready_o,
  input  roci_pkg::tx_refused_t            refused_i,
  input  wire                              tx_done_valid_i,
  input  roci_pkg::tx_done_t               tx_done_i,
  input  wire                              tx_drained_valid_i,
  output logic                             tx_drained_ready_o,
  input  roci_pkg::qp_t                    tx_drained_i,

  input  roci_pkg::state_bcast_t           state_i,
  input  roci_pkg::epoch_bcast_t           epoch_i,

  output logic                             rewind_valid_o,
  input  wire                              rewind_ready_i,
  output roci_pkg::rewind_req_t            rewind_o,
  output logic                             completion_valid_o,
  input  wire                              completion_ready_i,
  output roci_pkg::sq_completion_t         completion_o,
  output roci_pkg::ack_state_t             ack_state_o,
  output logic                             wake_valid_o,
  input  wire                              wake_ready_i,
  output roci_pkg::qp_t                    wake_o,
  output logic                             state_error_valid_o,
  input  wire                              state_error_ready_i,
  output roci_pkg::state_error_t           state_error_o,
  output roci_pkg::rnr_bcast_t             rnr_o,

  output logic [63:0]                      clock_o,
  output roci_pkg::fence_busy_t            fence_busy_o,
  output roci_pkg::retry_counters_t        counters_o,
  output logic                             ready_o
);

  roci_pkg::ctx_rsp_t ack_ctx, retry_ctx, read_ctx, timer_ctx;
  roci_pkg::fence_busy_t ack_busy, retry_busy, timer_busy;
  logic ack_ready, retry_ready, timer_ready;

  assign ctx_o = ack_ctx | retry_ctx | read_ctx | timer_ctx;
  assign fence_busy_o = ack_busy | retry_busy | timer_busy;
  assign ready_o = ack_ready && retry_ready && timer_ready;

  logic request_valid, request_ready, result_valid, result_ready;
  roci_pkg::retry_request_t request;
  roci_pkg::retry_result_t result;
  logic report_valid, report_ready, wait_valid, wait_ready;
  roci_pkg::timer_report_t report;
  roci_pkg::rnr_wait_t rnr_wait;
  context_pkg::rewound_t rewound;

  requester_ack u_ack (
    .clk_i, .rst_i, .ctx_i, .ctx_o(ack_ctx),
    .ack_event_valid_i, .ack_event_ready_o, .ack_event_i,
    .inflight_valid_i, .inflight_ready_o, .inflight_i, .sent_i,
    .making_i(1'b0), .making_qp_i('0),
    .local_error_valid_i(1'b0), .local_error_ready_o(), .local_error_i('0),
    .refused_valid_i, .refused_ready_o, .refused_i, .refused_stale_o(),
    .tx_done_valid_i, .tx_done_i, .tx_drained_valid_i, .tx_drained_ready_o, .tx_drained_i,
    .report_valid_i(report_valid), .report_ready_o(report_ready), .report_i(report),
    .state_i, .epoch_i,
    .retry_valid_o(request_valid), .retry_ready_i(request_ready), .retry_o(request),
    .result_valid_i(result_valid), .result_ready_o(result_ready), .result_i(result),
    .completion_valid_o, .completion_ready_i, .completion_o, .ack_state_o,
    .wake_valid_o, .wake_ready_i, .wake_o,
    .state_error_valid_o, .state_error_ready_i, .state_error_o,
    .event_valid_o(), .event_ready_i(1'b1), .event_o(),
    .colour_i(1'b0), .fence_busy_o(ack_busy), .ignored_o(), .ready_o(ack_ready)
  );

  requester_retry u_retry (
    .clk_i, .rst_i, .ctx_i, .ctx_o(retry_ctx),
    .request_valid_i(request_valid), .request_ready_o(request_ready), .request_i(request),
    .result_valid_o(result_valid), .result_ready_i(result_ready), .result_o(result),
    .rewind_valid_o, .rewind_ready_i, .rewind_o,
    .rnr_valid_o(wait_valid), .rnr_ready_i(wait_ready), .rnr_o(rnr_wait), .rnr_i(rnr_o),
    .sent_i, .rewound_o(rewound), .fence_busy_o(retry_busy), .counters_o, .ready_o(retry_ready)
  );

  requester_read_data u_read (
    .clk_i, .rst_i, .ctx_i, .ctx_o(read_ctx),
    .packet_valid_i, .packet_ready_o, .packet_i,
    .read_record_valid_i, .read_record_ready_o, .read_record_i,
    .item_valid_o, .item_ready_i, .item_o, .counters_o()
  );

  context_timer #(.TICK_CYCLES(TICK_CYCLES), .QP_BITS(TIMER_QP_BITS)) u_timer (
    .clk_i, .rst_i, .ctx_i, .ctx_o(timer_ctx),
    .ack_state_i(ack_state_o), .sent_i, .rewound_i(rewound), .state_i,
    .rnr_valid_i(wait_valid), .rnr_ready_o(wait_ready), .rnr_i(rnr_wait), .rnr_o,
    .report_valid_o(report_valid), .report_ready_i(report_ready), .report_o(report),
    .clock_o, .time_step_i(32'd0), .next_expiry_valid_o(), .next_expiry_o(),
    .colour_i(1'b0), .fence_busy_o(timer_busy), .ready_o(timer_ready)
  );

endmodule

`default_nettype wire
