// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_eq_writer with three sources, one port each.
`default_nettype none

module queue_eq_writer_tb (
  input  wire                               clk_i,
  input  wire                               rst_i,
  output logic                              ready_o,
  input  wire roci_pkg::ctx_req_t           ctx_i,
  output roci_pkg::ctx_rsp_t                ctx_o,
  input  wire                               event_valid_i [3],
  output logic                              event_ready_o [3],
  input  wire roci_pkg::event_t             event_i [3],
  output logic                              req_valid_o,
  input  wire                               req_ready_i,
  output roci_pkg::dma_write_req_t          req_o,
  output logic                              data_valid_o,
  input  wire                               data_ready_i,
  output roci_pkg::write_beat_t             data_o,
  input  wire                               done_valid_i,
  output logic                              done_ready_o,
  input  wire roci_pkg::token_t             done_i,
  input  wire                               doorbell_valid_i,
  input  wire roci_pkg::doorbell_t          doorbell_i,
  output logic                              raise_valid_o,
  output cpu_pkg::irq_raise_t               raise_o,
  input  wire roci_pkg::colour_t            colour_i,
  output roci_pkg::fence_busy_t             fence_busy_o,
  output logic                              count_eqe_o,
  output logic                              count_overrun_o
);
  logic [2:0] event_valid, event_ready;
  roci_pkg::event_t [2:0] events;

  for (genvar s = 0; s < 3; s++) begin : gen_source
    assign event_valid[s] = event_valid_i[s];
    assign event_ready_o[s] = event_ready[s];
    assign events[s] = event_i[s];
  end

  queue_eq_writer #(.SOURCES(3)) u_dut (
    .clk_i, .rst_i, .ready_o, .ctx_i, .ctx_o,
    .event_valid_i(event_valid), .event_ready_o(event_ready), .event_i(events),
    .req_valid_o, .req_ready_i, .req_o, .data_valid_o, .data_ready_i, .data_o,
    .done_valid_i, .done_ready_o, .done_i, .doorbell_valid_i, .doorbell_i,
    .raise_valid_o, .raise_o, .colour_i, .fence_busy_o, .count_eqe_o, .count_overrun_o
  );
endmodule

`default_nettype wire
