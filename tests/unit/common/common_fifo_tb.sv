// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_fifo with SYNC as a parameter of the test alone (what the test must expect of STYLE).
`default_nettype none

module common_fifo_tb #(
  parameter int unsigned WIDTH = 8,
  parameter int unsigned DEPTH = 16,
  parameter string STYLE = "auto",
  parameter bit OUTPUT_REG = 1'b0,
  parameter bit SYNC = 1'b0
) (
  input  wire                        clk_i,
  input  wire                        rst_i,
  input  wire                        in_valid_i,
  output logic                       in_ready_o,
  input  wire [WIDTH-1:0]            in_i,
  output logic                       out_valid_o,
  input  wire                        out_ready_i,
  output logic [WIDTH-1:0]           out_o,
  output logic [$clog2(DEPTH+32'(OUTPUT_REG)+1)-1:0] usage_o
);
  common_fifo #(.WIDTH(WIDTH), .DEPTH(DEPTH), .STYLE(STYLE), .OUTPUT_REG(OUTPUT_REG)) u_dut (.*);

  // A wrong SYNC in the model line would test the wrong promise.
  if (SYNC != (STYLE == "block" || STYLE == "ultra" || (STYLE == "auto" && DEPTH > 64))) begin
    $error("SYNC does not fit STYLE");
  end
endmodule

`default_nettype wire
