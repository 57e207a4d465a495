// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Proof of common_rotate: each lane (one, any, is watched) gets the right lane of the same word,
// with any stalls. What it must get travels in the user bits.
`default_nettype none

module common_rotate_proof #(
  parameter int unsigned LANES = 8,
  parameter int unsigned REGS = 1,
  parameter bit UP = 1'b0
) (
  input wire                     clk_i,
  input wire                     rst_i,
  input wire                     in_valid_i,
  input wire [LANES*2-1:0]       data_i,
  input wire [$clog2(LANES)-1:0] amount_i,
  input wire                     out_ready_i,
  input wire [$clog2(LANES)-1:0] lane            // any, always the same
);
  localparam int unsigned AMOUNT_BITS = $clog2(LANES);

  // Lane numbers wrap by their width.
  wire [AMOUNT_BITS-1:0] from = UP ? lane - amount_i : lane + amount_i;

  logic in_ready, out_valid;
  logic [LANES*2-1:0] out;
  logic [1:0] expected;

  common_rotate #(
    .LANES(LANES), .LANE_BITS(2), .REGS(REGS), .UP(UP), .USER_BITS(2)
  ) u_dut (
    .clk_i, .rst_i, .in_valid_i, .in_ready_o(in_ready), .in_data_i(data_i),
    .in_amount_i(amount_i), .in_user_i(data_i[2*from +: 2]),
    .out_valid_o(out_valid), .out_ready_i, .out_data_o(out), .out_user_o(expected)
  );

  logic past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;

  always_ff @(posedge clk_i) begin
    if (!past_q) a_starts_in_reset: assume (rst_i);
    if (past_q) a_constant: assume (lane == $past(lane));
    if (past_q && !$past(rst_i) && $past(in_valid_i && !in_ready)) begin
      a_in_stable: assume (in_valid_i && $past(data_i) == data_i && $past(amount_i) == amount_i);
    end
    // Long stalls only repeat a state; short ones let the induction see the pipeline emptied.
    if (past_q && !$past(out_ready_i)) a_short_stalls: assume (out_ready_i);

    if (past_q && !rst_i) begin
      if (out_valid) p_lane: assert (out[2*lane +: 2] == expected);
      if (REGS == 0) p_direct: assert (out_valid == in_valid_i && in_ready == out_ready_i);
      if (REGS != 0 && !$past(rst_i) && $past(out_valid && !out_ready_i)) begin
        p_stable: assert (out_valid && out == $past(out));
      end
      if (REGS == 1 && !$past(rst_i)) begin
        p_no_loss: assert (out_valid == $past((in_valid_i && in_ready)
                                              || (out_valid && !out_ready_i)));
      end
    end
    c_out: cover (past_q && !rst_i && out_valid && amount_i == '1);
  end
endmodule

`default_nettype wire
