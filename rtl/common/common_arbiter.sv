// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_arbiter: N streams into one, fair.
//
// Round robin: after a transfer its input goes to the end of the line, so a waiting input is served
// after at most N-1 transfers of others (LOCK: packets of others). A choice once shown is kept
// until it is taken, as the stream rule demands. LOCK keeps an input from its first item to the one
// with in_last_i, also while that input has nothing to send: packets are never mixed.
// Combinational from inputs to output: put a common_skid behind it where timing asks for one.
//
// Does not: weigh or prioritise.
`default_nettype none

module common_arbiter #(
  parameter int unsigned N = 2,              // inputs, >= 2
  parameter int unsigned WIDTH = 8,          // bits of an item
  parameter bit LOCK = 1'b0                  // 1: an input is kept until its item with in_last_i
) (
  input  wire                     clk_i,
  input  wire                     rst_i,         // synchronous, active high

  input  wire [N-1:0]             in_valid_i,
  output logic [N-1:0]            in_ready_o,
  input  wire [N-1:0]             in_last_i,     // LOCK: last item of a packet; else ignored
  input  wire [N-1:0][WIDTH-1:0]  in_i,

  output logic                    out_valid_o,
  input  wire                     out_ready_i,
  output logic [WIDTH-1:0]        out_o,
  output logic [$clog2(N)-1:0]    out_index_o    // the input that the item came from
);

  localparam int unsigned INDEX_BITS = $clog2(N);

  if (N < 2) $error("%m: N must be at least 2");

  logic held_q;                  // choice_q stays: shown and not taken, or inside a packet
  logic [N-1:0] choice_q;        // one-hot: last choice
  logic [N-1:0] later_q;         // inputs after the last one served: they come first

  logic [N-1:0] choice;
  logic transfer, last;

  // One-hot of the lowest set bit.
  function automatic logic [N-1:0] lowest(input logic [N-1:0] from);
    return from & (~from + 1'b1);
  endfunction

  always_comb begin
    if (held_q) choice = choice_q;
    else if ((in_valid_i & later_q) != '0) choice = lowest(in_valid_i & later_q);
    else choice = lowest(in_valid_i);

    out_valid_o = (in_valid_i & choice) != '0;
    in_ready_o = out_ready_i ? choice : '0;
    out_o = '0;
    out_index_o = '0;
    last = !LOCK;
    for (int unsigned n = 0; n < N; n++) begin
      if (choice[n]) begin
        out_o = out_o | in_i[n];
        out_index_o = out_index_o | INDEX_BITS'(n);
        last = last | in_last_i[n];
      end
    end
    transfer = out_valid_o && out_ready_i;
  end

  always_ff @(posedge clk_i) begin
    if (out_valid_o) begin
      held_q <= !(transfer && last);
      choice_q <= choice;
      // All inputs above the chosen one.
      if (transfer && last) later_q <= ~(choice | (choice - 1'b1));
    end
    if (rst_i) begin
      held_q <= 1'b0;
      later_q <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert ((choice & (choice - 1'b1)) == '0);
      if (!LOCK && held_q) assert (out_valid_o);   // a shown input went away: its fault
    end
  end

endmodule

`default_nettype wire
