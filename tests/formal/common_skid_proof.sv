// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Proof of common_skid: every item comes out once, unchanged, in order; stable while stalled; never
// more than two inside. Numbering as in common_fifo_proof.sv.
`default_nettype none

module common_skid_proof (
  input wire       clk_i,
  input wire       rst_i,
  input wire       in_valid_i,
  input wire [2:0] in_i,
  input wire       out_ready_i,
  input wire [2:0] watched             // any number, always the same
);
  logic in_ready, out_valid;
  logic [2:0] out;

  common_skid #(.WIDTH(3)) u_dut (
    .clk_i, .rst_i, .in_valid_i, .in_ready_o(in_ready), .in_i,
    .out_valid_o(out_valid), .out_ready_i, .out_o(out)
  );

  logic past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;

  logic [2:0] in_number_q, out_number_q;
  logic [2:0] content_q;
  wire push = in_valid_i && in_ready;
  wire pop = out_valid && out_ready_i;
  wire [2:0] usage = in_number_q - out_number_q;
  wire [2:0] place = watched - out_number_q;

  always_ff @(posedge clk_i) begin
    if (push && in_number_q == watched) content_q <= in_i;
    in_number_q <= rst_i ? '0 : in_number_q + 3'(push);
    out_number_q <= rst_i ? '0 : out_number_q + 3'(pop);
  end

  always_ff @(posedge clk_i) begin
    if (!past_q) a_starts_in_reset: assume (rst_i);
    if (past_q) a_constant: assume (watched == $past(watched));
    if (past_q && !$past(rst_i) && $past(in_valid_i) && !$past(in_ready)) begin
      a_in_stable: assume (in_valid_i && in_i == $past(in_i));
    end

    if (past_q && !rst_i) begin
      p_capacity: assert (usage <= 3'd2);
      p_valid: assert (out_valid == (usage != '0));
      if (pop && out_number_q == watched) p_data: assert (out == content_q);
      if (!in_ready && !$past(rst_i)) p_ready_until_full: assert (usage == 3'd2);
      if (!$past(rst_i) && $past(out_valid) && !$past(out_ready_i)) begin
        p_stable: assert (out_valid && out == $past(out));
      end
      if (!$past(rst_i) && $past(push && (!out_valid || out_ready_i))) begin
        p_one_cycle: assert (out_valid);
      end

      i_skid: assert (u_dut.skid_valid_q == (usage == 3'd2));
      i_ready: assert (!(in_ready && u_dut.skid_valid_q));
      if (usage != '0 && place == 3'd0) i_first: assert (u_dut.out_q == content_q);
      if (usage == 3'd2 && place == 3'd1) i_second: assert (u_dut.skid_q == content_q);
    end

    c_full: cover (!rst_i && past_q && usage == 3'd2);
    c_streams: cover (!rst_i && past_q && $past(push) && push && pop && $past(pop));
  end
endmodule

`default_nettype wire
