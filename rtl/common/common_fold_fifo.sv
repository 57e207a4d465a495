// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_fold_fifo: a FIFO of wide items in a memory of half their width and twice the depth, for
// items that come and go at most every other cycle. Halves the block RAMs of a wide, shallow FIFO.
//
// An item is taken in two cycles: in_ready_o is high in the second at the earliest. It comes out
// whole; the next one two cycles later at the earliest.
//
// Neighbours: common_fifo (the memory).
`default_nettype none

module common_fold_fifo #(
  parameter int unsigned WIDTH = 16,         // bits of an item, even
  parameter int unsigned DEPTH = 16,         // items
  parameter string STYLE = "auto"            // of the memory, as in common_fifo
) (
  input  wire              clk_i,
  input  wire              rst_i,            // synchronous, active high: empties

  input  wire              in_valid_i,
  output logic             in_ready_o,
  input  wire [WIDTH-1:0]  in_i,

  output logic             out_valid_o,
  input  wire              out_ready_i,
  output logic [WIDTH-1:0] out_o
);

  localparam int unsigned HALF = WIDTH / 2;

  if (WIDTH % 2 != 0) $error("%m: WIDTH must be even");

  logic in_upper_q;                          // the lower half is in the memory
  logic low_valid_q;
  logic [HALF-1:0] low_q;                    // lower half of the item in front

  logic fifo_ready, fifo_valid, fifo_take;
  logic [HALF-1:0] fifo_out;

  assign in_ready_o = fifo_ready && in_upper_q;
  assign out_valid_o = fifo_valid && low_valid_q;
  assign out_o = {fifo_out, low_q};
  assign fifo_take = !low_valid_q || out_ready_i;

  common_fifo #(.WIDTH(HALF), .DEPTH(2 * DEPTH), .STYLE(STYLE)) u_halves (
    .clk_i, .rst_i,
    .in_valid_i, .in_ready_o(fifo_ready), .in_i(in_upper_q ? in_i[WIDTH-1:HALF] : in_i[HALF-1:0]),
    .out_valid_o(fifo_valid), .out_ready_i(fifo_take), .out_o(fifo_out), .usage_o()
  );

  always_ff @(posedge clk_i) begin
    if (in_valid_i && fifo_ready) in_upper_q <= !in_upper_q;
    if (fifo_valid && fifo_take) begin
      low_valid_q <= !low_valid_q;
      if (!low_valid_q) low_q <= fifo_out;
    end
    if (rst_i) begin
      in_upper_q <= 1'b0;
      low_valid_q <= 1'b0;
    end
  end

endmodule

`default_nettype wire
