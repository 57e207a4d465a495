// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_qp_state with two hardware sources, their arrays taken apart.
`default_nettype none

module context_qp_state_tb (
  input  wire                     clk_i,
  input  wire                     rst_i,
  input  roci_pkg::ctx_req_t      ctx_i,
  output roci_pkg::ctx_rsp_t      ctx_o,
  input  wire                     error0_valid_i,
  output logic                    error0_ready_o,
  input  roci_pkg::state_error_t  error0_i,
  input  wire                     error1_valid_i,
  output logic                    error1_ready_o,
  input  roci_pkg::state_error_t  error1_i,
  output roci_pkg::state_bcast_t  state_o,
  output logic                    event_valid_o,
  input  wire                     event_ready_i,
  output roci_pkg::event_t        event_o,
  output logic                    ready_o
);
  context_qp_state #(.SOURCES(2)) u_dut (
    .clk_i, .rst_i, .ctx_i, .ctx_o,
    .error_valid_i({error1_valid_i, error0_valid_i}),
    .error_ready_o({error1_ready_o, error0_ready_o}),
    .error_i({error1_i, error0_i}),
    .state_o, .event_valid_o, .event_ready_i, .event_o, .ready_o
  );
endmodule

`default_nettype wire
