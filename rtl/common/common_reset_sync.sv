// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_reset_sync: brings an asynchronous reset into a clock domain.
//
// rst_o rises with arst_i at once, without a clock, and falls STAGES edges of clk_i after arst_i
// fell: all registers of the domain leave reset in the same cycle. This is the one place with an
// asynchronous reset; everything else uses rst_o as a synchronous one.
//
// Does not: filter glitches of arst_i. Timing: arst_i is a false path (constraints/).
// Neighbours: one per clock domain, at the board's top.
`default_nettype none

module common_reset_sync #(
  parameter int unsigned STAGES = 3          // flip-flops, >= 2
) (
  input  wire  clk_i,
  input  wire  arst_i,                       // asynchronous, active high
  output logic rst_o                         // active high, falls synchronously to clk_i
);

  if (STAGES < 2) $error("%m: STAGES must be at least 2");

  (* async_reg = "true", shreg_extract = "no" *) logic [STAGES-1:0] sync_q;

  assign rst_o = sync_q[STAGES-1];

  always_ff @(posedge clk_i or posedge arst_i) begin
    if (arst_i) sync_q <= '1;
    else sync_q <= {sync_q[STAGES-2:0], 1'b0};
  end

endmodule

`default_nettype wire
