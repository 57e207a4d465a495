// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Proof of common_arbiter: one input at a time, its own item, a shown choice stays until it is
// taken, packets whole (LOCK), and an input that waits sees at most N - 1 packets (items) of others
// end.
`default_nettype none

module common_arbiter_proof #(
  parameter int unsigned N = 3,
  parameter bit LOCK = 1'b0
) (
  input wire                 clk_i,
  input wire                 rst_i,
  input wire [N-1:0]         valid_i,
  input wire [N-1:0]         last_i,
  input wire [N-1:0][1:0]    data_i,
  input wire                 out_ready_i,
  input wire [$clog2(N)-1:0] watched           // any input, always the same
);
  logic [N-1:0] ready;
  logic out_valid;
  logic [1:0] out;
  logic [$clog2(N)-1:0] index;

  common_arbiter #(.N(N), .WIDTH(2), .LOCK(LOCK)) u_dut (
    .clk_i, .rst_i, .in_valid_i(valid_i), .in_ready_o(ready), .in_last_i(last_i), .in_i(data_i),
    .out_valid_o(out_valid), .out_ready_i, .out_o(out), .out_index_o(index)
  );

  logic past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;

  wire transfer = out_valid && out_ready_i;
  wire ends = transfer && (!LOCK || last_i[index]);
  logic open_q;                            // LOCK: inside a packet of input owner_q
  logic [$clog2(N)-1:0] owner_q;
  logic [2:0] others_q;                    // packets of others that ended while `watched` waits
  wire waits = valid_i[watched] && !ready[watched];

  always_ff @(posedge clk_i) begin
    if (transfer) begin
      open_q <= LOCK && !last_i[index];
      owner_q <= index;
    end
    if (!waits) others_q <= '0;
    else others_q <= others_q + 3'(ends);
    if (rst_i) begin
      open_q <= 1'b0;
      others_q <= '0;
    end
  end

  // The round: `served_q` ended last (N-1 after reset), the inputs above it come next, then the
  // rest. Steps from it to an input; an input `steps` away is overtaken by at most that many
  // others.
  logic [$clog2(N)-1:0] served_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) served_q <= ($clog2(N))'(N - 1);
    else if (ends) served_q <= index;
  end

  function automatic logic [3:0] steps(input logic [3:0] served, input logic [3:0] input_number);
    return input_number > served ? input_number - served - 4'd1
                                 : input_number + 4'(N) - served - 4'd1;
  endfunction

  logic later_fits;                        // later_q are the inputs above served_q
  logic [3:0] held_number;                 // the held choice
  always_comb begin
    later_fits = 1'b1;
    held_number = '0;
    for (int unsigned n = 0; n < N; n++) begin
      if (u_dut.later_q[n] != (n > 32'(served_q))) later_fits = 1'b0;
      if (u_dut.choice_q[n]) held_number = held_number | 4'(n);
    end
  end
  wire [3:0] watched_steps = steps(4'(served_q), 4'(watched));

  always_ff @(posedge clk_i) begin
    if (!past_q) a_starts_in_reset: assume (rst_i);
    a_watched: assume (32'(watched) < N);
    if (past_q) a_constant: assume (watched == $past(watched));
    if (past_q && !$past(rst_i)) begin
      a_valid_stays: assume (($past(valid_i & ~ready) & ~valid_i) == '0);
      if ($past(valid_i[watched] && !ready[watched])) begin
        a_watched_stable: assume (data_i[watched] == $past(data_i[watched])
                                  && last_i[watched] == $past(last_i[watched]));
      end
    end

    if (past_q && !rst_i) begin
      p_one: assert ((ready & (ready - 1'b1)) == '0);
      if (out_valid) p_item: assert (valid_i[index] && out == data_i[index]);
      if (out_valid && out_ready_i) p_taken: assert (ready[index]);
      p_not_taken: assert (out_ready_i || ready == '0);
      if (valid_i != '0 && !open_q) p_no_idle: assert (out_valid);
      if (!$past(rst_i) && $past(out_valid && !out_ready_i)) begin
        p_stable: assert (out_valid && index == $past(index));
      end
      if (LOCK && open_q && out_valid) p_whole: assert (index == owner_q);
      if (waits) p_fair: assert (others_q <= 3'(N - 1));

      if (waits) i_round: assert (4'(others_q) + watched_steps <= 4'(N - 1));
      // A choice from beyond the watched input was made before that came.
      if (waits && u_dut.held_q && steps(4'(served_q), held_number) > watched_steps) begin
        i_before: assert (others_q == '0);
      end
      i_later: assert (later_fits);
      if (u_dut.held_q && !open_q) i_shown: assert (out_valid);
      if (u_dut.held_q) i_held: assert (u_dut.choice_q != '0
                                        && (u_dut.choice_q & (u_dut.choice_q - 1'b1)) == '0);
      if (open_q) i_open: assert (u_dut.held_q && u_dut.choice_q[owner_q]);
      i_range: assert (32'(served_q) < N && (!open_q || 32'(owner_q) < N));
    end
    c_fair: cover (past_q && !rst_i && waits && others_q == 3'(N - 1));
  end

endmodule

`default_nettype wire
