// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_mr_check with its client arrays taken apart.
`default_nettype none

module context_mr_check_tb (
  input  wire                    clk_i,
  input  wire                    rst_i,
  input  roci_pkg::ctx_req_t     ctx_i,
  output roci_pkg::ctx_rsp_t     ctx_o,
  input  wire                    req0_valid_i,
  output logic                   req0_ready_o,
  input  roci_pkg::xlat_req_t    req0_i,
  input  wire                    req1_valid_i,
  output logic                   req1_ready_o,
  input  roci_pkg::xlat_req_t    req1_i,
  output logic                   checked0_valid_o,
  input  wire                    checked0_ready_i,
  output roci_pkg::mr_checked_t  checked0_o,
  output logic                   checked1_valid_o,
  input  wire                    checked1_ready_i,
  output roci_pkg::mr_checked_t  checked1_o,
  output logic                   wrap_o,
  output logic                   key_error_o,
  output logic                   ready_o
);
  context_mr_check u_dut (
    .clk_i, .rst_i, .ctx_i, .ctx_o,
    .req_valid_i({req1_valid_i, req0_valid_i}), .req_ready_o({req1_ready_o, req0_ready_o}),
    .req_i({req1_i, req0_i}),
    .checked_valid_o({checked1_valid_o, checked0_valid_o}),
    .checked_ready_i({checked1_ready_i, checked0_ready_i}), .checked_o({checked1_o, checked0_o}),
    .wrap_o, .key_error_o, .ready_o
  );
endmodule

`default_nettype wire
