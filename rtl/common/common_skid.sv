// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_skid: register slice of a stream; cuts every path, forward and backward.
//
// One item per cycle, one cycle of latency, room for two items: the second catches what arrives
// in the cycle in which the receiver stops. All outputs come from registers.
//
// Does not: buffer more (common_fifo does).
`default_nettype none

module common_skid #(
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

  logic ready_q;                       // the skid register is free
  logic valid_q;
  logic skid_valid_q;
  logic [WIDTH-1:0] out_q;
  logic [WIDTH-1:0] skid_q;

  logic advance;                       // the output register takes something new

  assign in_ready_o = ready_q;
  assign out_valid_o = valid_q;
  assign out_o = out_q;
  assign advance = !valid_q || out_ready_i;

  always_ff @(posedge clk_i) begin
    if (advance) begin
      valid_q <= skid_valid_q || (in_valid_i && ready_q);
      out_q <= skid_valid_q ? skid_q : in_i;
      skid_valid_q <= 1'b0;
      ready_q <= 1'b1;
    end else if (in_valid_i && ready_q) begin
      skid_valid_q <= 1'b1;
      ready_q <= 1'b0;
    end
    if (ready_q) skid_q <= in_i;
    if (rst_i) begin
      valid_q <= 1'b0;
      skid_valid_q <= 1'b0;
      ready_q <= 1'b0;                 // nothing is taken in reset
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) assert (!(skid_valid_q && (ready_q || !valid_q)));
  end

endmodule

`default_nettype wire
