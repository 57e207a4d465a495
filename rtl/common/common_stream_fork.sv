// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_stream_fork: one stream to several receivers, each item to all that it selects.
//
// Receivers take an item independently, each once; the sender's item is done when all selected ones
// have it (or none is selected). No receiver waits for another's ready, so none can block itself.
// Combinational from input to outputs; no storage of the payload.
//
// Does not: buffer. A slow receiver holds the sender, not the present item of the other receivers.
`default_nettype none

module common_stream_fork #(
  parameter int unsigned N = 2,              // receivers
  parameter int unsigned WIDTH = 8           // bits of an item
) (
  input  wire              clk_i,
  input  wire              rst_i,            // synchronous, active high

  input  wire              in_valid_i,
  output logic             in_ready_o,
  input  wire [N-1:0]      in_select_i,      // who gets it; part of the item: stable with it
  input  wire [WIDTH-1:0]  in_i,

  output logic [N-1:0]     out_valid_o,
  input  wire [N-1:0]      out_ready_i,
  output logic [WIDTH-1:0] out_o             // the same for all
);

  logic [N-1:0] taken_q;                     // receivers that have the present item
  logic [N-1:0] taken;

  assign out_o = in_i;
  assign out_valid_o = in_valid_i ? in_select_i & ~taken_q : '0;
  assign taken = taken_q | out_ready_i | ~in_select_i;
  assign in_ready_o = taken == '1;

  always_ff @(posedge clk_i) begin
    if (in_valid_i) taken_q <= in_ready_o ? '0 : taken_q | (out_ready_i & in_select_i);
    if (rst_i) taken_q <= '0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && taken_q != '0) assert (in_valid_i && (taken_q & ~in_select_i) == '0);
  end

endmodule

`default_nettype wire
