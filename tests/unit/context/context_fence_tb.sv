// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_fence with three units.
`default_nettype none

module context_fence_tb (
  input  wire                clk_i,
  input  wire                rst_i,
  input  roci_pkg::ctx_req_t ctx_i,
  output roci_pkg::ctx_rsp_t ctx_o,
  input  wire [5:0]          busy_i,      // {unit 2, unit 1, unit 0}, each {colour 1, colour 0}
  output logic               colour_o
);
  context_fence #(.UNITS(3)) u_dut (
    .clk_i, .rst_i, .ctx_i, .ctx_o, .busy_i(busy_i), .colour_o
  );
endmodule

`default_nettype wire
