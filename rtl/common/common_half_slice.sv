// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_half_slice: register slice of a stream at half rate; cuts every path, forward and backward.
//
// One item in two cycles, one cycle of latency, room for one item: half the registers of common_skid
// and no multiplexer, for wide items that come seldom. All outputs come from registers.
//
// Does not: take an item per cycle (common_skid does).
`default_nettype none

module common_half_slice #(
  parameter int unsigned WIDTH = 8           // bits of an item
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

  logic ready_q;                       // the register is free
  logic valid_q;
  logic [WIDTH-1:0] out_q;

  assign in_ready_o = ready_q;
  assign out_valid_o = valid_q;
  assign out_o = out_q;

  always_ff @(posedge clk_i) begin
    if (ready_q) out_q <= in_i;
    if (rst_i) begin
      valid_q <= 1'b0;
      ready_q <= 1'b0;                 // nothing is taken in reset
    end else if (ready_q) begin
      valid_q <= in_valid_i;
      ready_q <= !in_valid_i;
    end else if (!valid_q || out_ready_i) begin
      valid_q <= 1'b0;
      ready_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) assert (!(valid_q && ready_q));
  end

endmodule

`default_nettype wire
