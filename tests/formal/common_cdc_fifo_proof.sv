// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Proof of common_cdc_fifo for clocks of any ratio and phase: every item once, unchanged, in order,
// never more than there is room for. Both clocks are free inputs; each may rise in any step. It
// starts in the state that the resets leave (the unit test releases them in any order).
// Bounded only: an induction would need invariants over the pointers on their way.
`default_nettype none

module common_cdc_fifo_proof (
  input wire       in_clk_i,
  input wire       out_clk_i,
  input wire       in_valid_i,
  input wire       in_i,
  input wire       out_ready_i,
  input wire [2:0] watched             // number of an item, any, the same at all edges
);
  logic in_ready, out_valid;
  logic out;

  common_cdc_fifo #(.WIDTH(1), .DEPTH(4), .SYNC_STAGES(2)) u_dut (
    .in_clk_i, .in_rst_i(1'b0), .in_valid_i, .in_ready_o(in_ready), .in_i,
    .out_clk_i, .out_rst_i(1'b0), .out_valid_o(out_valid), .out_ready_i, .out_o(out)
  );

  logic in_seen_q = 1'b0, out_seen_q = 1'b0;
  logic [2:0] watched_in_q, watched_out_q;
  always_comb begin
    if (!in_seen_q) begin
      a_in_state: assume (u_dut.wptr_q == '0 && u_dut.wgray_q == '0 && !u_dut.ready_q
                          && u_dut.wsync_q == '0);
    end
    if (!out_seen_q) begin
      a_out_state: assume (u_dut.rptr_q == '0 && u_dut.rgray_q == '0 && !u_dut.out_valid_q
                           && u_dut.rsync_q == '0);
    end
    a_one_number: assume (in_seen_q || out_seen_q || watched_in_q == watched_out_q);
  end

  // Items numbered as they enter and leave; the content of the watched one is kept.
  logic [2:0] in_number_q = '0, out_number_q = '0;
  logic content_q;

  always_ff @(posedge in_clk_i) begin
    in_seen_q <= 1'b1;
    watched_in_q <= watched_in_q;
    a_watched_in: assume (watched == watched_in_q);
    if (in_valid_i && in_ready) begin
      if (in_number_q == watched) content_q <= in_i;
      in_number_q <= in_number_q + 1'b1;
      p_room: assert (in_number_q - out_number_q <= 3'd4);
    end
  end

  always_ff @(posedge out_clk_i) begin
    out_seen_q <= 1'b1;
    watched_out_q <= watched_out_q;
    a_watched_out: assume (watched == watched_out_q);
    if (out_valid) begin
      p_there: assert (in_number_q != out_number_q);
      if (out_number_q == watched) p_data: assert (out == content_q);
      if (out_ready_i) out_number_q <= out_number_q + 1'b1;
    end
  end
endmodule

`default_nettype wire
