// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The model on which the harness itself is tested: a two-entry buffer that breaks one stream rule
// on request. Not a product module.
`default_nettype none

module harness_tb #(
  parameter int unsigned WIDTH = 13   // payload bits
) (
  input  wire logic             clk_i,
  input  wire logic             rst_i,
  input  wire logic [2:0]       fault_i,      // 0 none, see below; acts where it can
  input  wire logic             in_valid_i,
  output      logic             in_ready_o,
  input  wire logic [WIDTH-1:0] in_i,
  output      logic             out_valid_o,
  input  wire logic             out_ready_i,
  output      logic [WIDTH-1:0] out_o
);
  localparam logic [2:0] DropValid = 3'd1;    // valid goes away while stalled
  localparam logic [2:0] Unstable = 3'd2;     // payload changes while stalled
  localparam logic [2:0] Corrupt = 3'd3;      // wrong data
  localparam logic [2:0] Duplicate = 3'd4;    // item twice
  localparam logic [2:0] Lose = 3'd5;         // item lost
  localparam logic [2:0] Assertion = 3'd6;    // RTL assertion fails

  logic [1:0]       count_q;
  logic [WIDTH-1:0] head_q, tail_q;
  logic             stalled_q;

  assign in_ready_o = count_q != 2 && !rst_i;
  assign out_valid_o = count_q != 0 && !(fault_i == DropValid && stalled_q);
  assign out_o = fault_i == Corrupt || (fault_i == Unstable && stalled_q) ? head_q ^ 1 : head_q;

  wire push = in_valid_i && in_ready_o && fault_i != Lose;
  wire pop = out_valid_o && out_ready_i && fault_i != Duplicate;

  always_ff @(posedge clk_i) begin
    stalled_q <= out_valid_o && !out_ready_i;
    if (push && (count_q == 0 || (count_q == 1 && pop))) head_q <= in_i;
    else if (pop) head_q <= tail_q;
    if (push) tail_q <= in_i;
    count_q <= count_q + {1'b0, push} - {1'b0, pop};
    if (rst_i) count_q <= '0;
    if (!rst_i) begin
      assert (fault_i != Assertion);
    end
  end
endmodule

`default_nettype wire
