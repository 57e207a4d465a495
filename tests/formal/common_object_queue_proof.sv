// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Proof of common_object_queue, for every object at once:
//   at most one place      an object is in the queue exactly once if it was pushed since its last
//                          pop, else not at all
//   no lost wake-up        so a push is always followed by a pop: it is in the queue then, the
//                          order is first come first served, and each pop brings it one place
//                          forward
//   pop then push          in the same cycle leaves it queued
//   new or not             push_new_o tells whether a push found its object outside
// Reference: one bit per object, set by a push, cleared by a pop, the push winning.
`default_nettype none

module common_object_queue_proof #(
  parameter int unsigned N = 4,
  parameter bit SYNC = 1'b0                // 1: STYLE block, 0: distributed
) (
  input wire                 clk_i,
  input wire                 rst_i,
  input wire                 push_valid_i,
  input wire [$clog2(N)-1:0] push_i,
  input wire                 pop_ready_i,
  input wire [$clog2(N)-1:0] watched           // any object, always the same
);
  localparam int unsigned OBJECT_BITS = $clog2(N);

  logic push_ready, push_new, pop_valid;
  logic [OBJECT_BITS-1:0] pop_object;
  logic [$clog2(N+2)-1:0] usage;

  common_object_queue #(.N(N), .STYLE(SYNC ? "block" : "distributed")) u_dut (
    .clk_i, .rst_i, .push_valid_i, .push_ready_o(push_ready), .push_i, .push_new_o(push_new),
    .pop_valid_o(pop_valid), .pop_ready_i, .pop_o(pop_object), .usage_o(usage)
  );

  logic past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;

  wire push = push_valid_i && push_ready;
  wire pop = pop_valid && pop_ready_i;
  logic [N-1:0] queued_q;

  always_ff @(posedge clk_i) begin
    if (rst_i) queued_q <= '0;
    else begin
      for (int unsigned o = 0; o < N; o++) begin
        if (push && push_i == OBJECT_BITS'(o)) queued_q[o] <= 1'b1;
        else if (pop && pop_object == OBJECT_BITS'(o)) queued_q[o] <= 1'b0;
      end
    end
  end

  // Entries in order: place 0 is the output register if it is full.
  wire [3:0] rptr = 4'(u_dut.u_order.rptr_q);
  wire [3:0] stored = 4'(u_dut.u_order.stored_q);
  wire [3:0] wptr = 4'(u_dut.u_order.wptr_q);
  wire [4:0] wptr_sum = 5'(rptr) + 5'(stored);
  logic [N-1:0][OBJECT_BITS:0] entry;      // memory entries, oldest first: {push bit, object}
  logic [N-1:0] occupied;
  logic [N-1:0][2:0] places;               // of each object
  logic [N-1:0] bits_fit;                  // each entry's push bit is the object's
  logic [4:0] slot;
  always_comb begin
    places = '0;
    bits_fit = '1;
    for (int unsigned p = 0; p < N; p++) begin
      slot = 5'(rptr) + 5'(p) >= 5'(N) ? 5'(rptr) + 5'(p) - 5'(N) : 5'(rptr) + 5'(p);
      entry[p] = u_dut.u_order.u_ram.mem[slot[OBJECT_BITS-1:0]];
      occupied[p] = 4'(p) < stored;
      for (int unsigned o = 0; o < N; o++) begin
        if (occupied[p] && entry[p][OBJECT_BITS-1:0] == OBJECT_BITS'(o)) begin
          places[o] = places[o] + 3'd1;
          if (entry[p][OBJECT_BITS] != u_dut.u_push_bits.mem[o]) bits_fit[o] = 1'b0;
        end
      end
    end
    for (int unsigned o = 0; o < N; o++) begin
      if (pop_valid && pop_object == OBJECT_BITS'(o)) begin
        places[o] = places[o] + 3'd1;
        if (u_dut.head.push_bit != u_dut.u_push_bits.mem[o]) bits_fit[o] = 1'b0;
      end
    end
  end

  // A watched object never moves back.
  logic [3:0] ahead;                       // entries in front of it
  always_comb begin
    ahead = 4'd15;
    for (int p = N - 1; p >= 0; p--) begin
      if (occupied[p] && entry[p][OBJECT_BITS-1:0] == watched) ahead = 4'(p) + 4'(pop_valid);
    end
    if (pop_valid && pop_object == watched) ahead = '0;
  end

  // For each object: it is where the reference says; its two RAM bits say so too, or are cleared.
  logic [N-1:0] one_place, queued_bits;
  always_comb begin
    for (int unsigned o = 0; o < N; o++) begin
      one_place[o] = places[o] == 3'(queued_q[o]);
      if (u_dut.ready_q) begin
        queued_bits[o] = (u_dut.u_push_bits.mem[o] != u_dut.u_pop_bits.mem[o]) == queued_q[o];
      end else begin
        queued_bits[o] = OBJECT_BITS'(o) >= u_dut.sweep_q
                         || (!u_dut.u_push_bits.mem[o] && !u_dut.u_pop_bits.mem[o]);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!past_q) a_starts_in_reset: assume (rst_i);
    a_object: assume (32'(push_i) < N);
    a_watched: assume (32'(watched) < N);
    if (past_q) a_constant: assume (watched == $past(watched));

    if (past_q && !rst_i) begin
      p_one_place: assert (one_place == '1);
      i_bits: assert (queued_bits == '1);
      i_push_bit: assert (bits_fit == '1);
      if (pop) p_pop_was_pushed: assert (queued_q[pop_object]);
      p_push_new: assert (push_new == (push && (!queued_q[push_i]
                                                || (pop && pop_object == push_i))));
      if (!$past(rst_i) && $past(push && push_i == watched)) begin
        p_push_is_queued: assert (places[watched] == 3'd1);
      end
      if (!$past(rst_i) && $past(ahead) != 4'd15 && !$past(pop && pop_object == watched)) begin
        p_forward: assert (ahead == $past(ahead) - 4'($past(pop)));
      end
      if (!$past(rst_i) && $past(push_ready)) p_always_ready: assert (push_ready);
      p_usage: assert (32'(usage) == 32'(stored) + 32'(pop_valid));

      i_sweep: assert (u_dut.ready_q || (queued_q == '0 && usage == '0
                                         && 32'(u_dut.sweep_q) < N));
      i_pointers: assert (32'(rptr) < N && 32'(wptr) < N && 32'(stored) <= N);
      i_between: assert (5'(wptr) == (wptr_sum >= 5'(N) ? wptr_sum - 5'(N) : wptr_sum));
      i_full: assert (u_dut.fifo_ready == (stored != 4'(N))
                      || $past(rst_i));
      i_ready_low: assert (!(u_dut.fifo_ready && stored == 4'(N)));
      if (!u_dut.ready_q) i_empty: assert (!pop_valid && stored == '0);
      if (u_dut.ready_q) i_past_reset: assert (!$past(rst_i));
    end

    c_full: cover (!rst_i && past_q && 32'(usage) == N);
    c_same_cycle: cover (!rst_i && past_q && push && pop && push_i == pop_object
                         && 32'(usage) == N);
  end

  if (SYNC) begin : gen_sync
    always_ff @(posedge clk_i) begin
      if (past_q && !rst_i && u_dut.u_order.stored_valid_q) begin
        i_read: assert (stored != '0
                        && u_dut.u_order.stored == u_dut.u_order.u_ram.mem[u_dut.u_order.rptr_q]);
      end
    end
  end

endmodule

`default_nettype wire
