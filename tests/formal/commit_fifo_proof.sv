// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Proof of host_commit_fifo, the ordered writer's core (rule 4): entries leave in the order
// of acceptance, unchanged; a write, and so every token behind it, never before its bus response;
// an error belongs to the right write; the room of the levels keeps entries and held places within
// DEPTH, so whoever holds a place can push: completions cannot block themselves. Users push when
// there is room, and anything else they like. Entries, writes and responses are numbered modulo 16;
// one entry and one write, any, are watched.
`default_nettype none

module commit_fifo_proof #(
  parameter int unsigned DEPTH = 8,
  parameter bit SYNC = 1'b0            // memory of the entries: 1 block RAM, 0 LUT RAM
) (
  input wire       clk_i,
  input wire       rst_i,
  input wire       cqe_reserve_i,
  input wire       push_valid_i,
  input wire [1:0] push_level_i,
  input wire       push_extra_i,
  input wire       push_write_i,
  input wire       push_completion_i,
  input wire [1:0] push_i,
  input wire       b_valid_i,
  input wire       b_error_i,
  input wire       out_ready_i,
  input wire [3:0] watched,            // number of an entry, always the same
  input wire [3:0] watched_write       // number of a write, always the same
);
  localparam int unsigned WIDTH = 2;

  logic [3:0] room;
  logic cqe_room, out_valid, out_write, out_failed;
  logic [WIDTH-1:0] out;

  host_commit_fifo #(
    .WIDTH(WIDTH), .DEPTH(DEPTH), .STYLE(SYNC ? "block" : "distributed")
  ) u_dut (
    .clk_i, .rst_i, .room_o(room), .cqe_room_o(cqe_room), .cqe_reserve_i,
    .push_valid_i, .push_level_i, .push_extra_i, .push_write_i, .push_completion_i, .push_i,
    .b_valid_i, .b_error_i,
    .out_valid_o(out_valid), .out_ready_i, .out_write_o(out_write), .out_failed_o(out_failed),
    .out_o(out)
  );

  logic past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;

  // What went by so far.
  logic [3:0] in_q, out_q;                   // entries pushed, popped
  logic [3:0] write_in_q, write_out_q;       // writes among them
  logic [3:0] response_q;                    // responses
  logic [3:0] held_q;                        // places held, as the users count them
  logic extra_q;                             // a later burst of the last write may follow
  logic [WIDTH+1:0] content_q;               // of the watched entry
  logic error_q;                             // response of the watched write

  wire pop = out_valid && out_ready_i;
  wire [WIDTH+1:0] pushed = {push_write_i, push_completion_i, push_i};
  wire [3:0] stored = in_q - out_q;
  wire [3:0] unanswered = write_in_q - response_q;
  wire [3:0] answered = response_q - write_out_q;    // responses not yet used
  wire is_low = push_level_i == 2'd0 || push_level_i == 2'd3;

  // The entry in front, as the memory has it.
  wire [WIDTH+1:0] front = u_dut.u_entries.u_ram.mem[u_dut.u_entries.rptr_q];
  wire pop_completion = pop && front[WIDTH];

  // Block RAM shows an entry one cycle after its push or the pop before it.
  logic shown_q;
  always_ff @(posedge clk_i) shown_q <= !rst_i && stored != 4'(pop);

  always_ff @(posedge clk_i) begin
    if (push_valid_i && in_q == watched) content_q <= pushed;
    if (b_valid_i && response_q == watched_write) error_q <= b_error_i;
    in_q <= rst_i ? '0 : in_q + 4'(push_valid_i);
    out_q <= rst_i ? '0 : out_q + 4'(pop);
    write_in_q <= rst_i ? '0 : write_in_q + 4'(push_valid_i && push_write_i);
    write_out_q <= rst_i ? '0 : write_out_q + 4'(pop && out_write);
    response_q <= rst_i ? '0 : response_q + 4'(b_valid_i);
    held_q <= rst_i ? '0 : held_q + 4'(cqe_reserve_i) + 4'(pop_completion)
                           - 4'(push_valid_i && push_level_i == 2'd1);
    if (push_valid_i) extra_q <= !push_extra_i && push_write_i && is_low;
    if (rst_i) extra_q <= 1'b0;
  end

  // ------------------------------------------------------------------------------- what users do
  always_ff @(posedge clk_i) begin
    if (!past_q) a_starts_in_reset: assume (rst_i);
    if (past_q) a_constant: assume (watched == $past(watched)
                                    && watched_write == $past(watched_write));
    if (rst_i) a_quiet: assume (!push_valid_i && !cqe_reserve_i && !b_valid_i);
    if (push_valid_i && !push_extra_i) a_room: assume (room[push_level_i]);
    if (push_valid_i && push_extra_i) a_extra: assume (extra_q && push_write_i && is_low);
    if (cqe_reserve_i) a_reserve: assume (cqe_room);
    if (b_valid_i) a_response: assume (unanswered != '0);
  end

  // ------------------------------------------------------------------------------------ promises
  always_ff @(posedge clk_i) begin
    if (past_q && !rst_i) begin
      p_bound: assert (5'(stored) + 5'(held_q) <= 5'(DEPTH));
      if (pop) p_not_from_empty: assert (stored != '0);
      if (pop && out_q == watched) p_order: assert (out == content_q[WIDTH-1:0]
                                                    && out_write == content_q[WIDTH+1]);
      if (out_valid && out_write) p_response: assert (answered != '0);
      if (out_valid && out_write && write_out_q == watched_write) begin
        p_error: assert (out_failed == error_q);
      end
      // A token waits for nothing but the writes before it.
      if (stored != '0 && unanswered == '0 && (!SYNC || shown_q)) begin
        p_no_standstill: assert (out_valid);
      end
      // Who holds a place can push, now.
      if (held_q != '0) p_held: assert (room[1] && u_dut.u_entries.in_ready_o);
      if (extra_q) p_extra: assert (u_dut.u_entries.in_ready_o);
      // The other levels get on when everything in front has left and nobody holds a place.
      if (!$past(rst_i) && stored == '0 && held_q == '0) begin
        p_room: assert (room[0] && room[2] && room[3] && cqe_room);
      end
    end
    c_full: cover (!rst_i && stored == 4'(DEPTH - 1));
    c_held: cover (!rst_i && held_q == 4'd3 && stored == 4'd4);
    c_error: cover (!rst_i && pop && out_write && out_failed && out_q == 4'd3);
    c_extra: cover (!rst_i && push_valid_i && push_extra_i);
  end

  // --------------------------------------------------------- how it lies inside, for the induction
  // Number of writes among the first n entries of the memory, from the front.
  logic [3:0] writes_inside;
  always_comb begin
    writes_inside = '0;
    for (int unsigned n = 0; n < DEPTH; n++) begin
      if (4'(n) < stored) begin
        writes_inside = writes_inside
            + 4'(u_dut.u_entries.u_ram.mem[3'(4'(u_dut.u_entries.rptr_q) + 4'(n))][WIDTH+1]);
      end
    end
  end

  wire [3:0] place = watched - out_q;
  wire [2:0] slot = 3'(4'(u_dut.u_entries.rptr_q) + place);
  wire [3:0] place_write = watched_write - write_out_q;

  always_ff @(posedge clk_i) begin
    if (past_q && !rst_i) begin
      i_stored: assert (stored <= 4'(DEPTH) && 4'(u_dut.u_entries.stored_q) == stored
                        && 4'(u_dut.u_entries.usage_o) == stored);
      i_pointers: assert (u_dut.u_entries.wptr_q == 3'(4'(u_dut.u_entries.rptr_q) + stored));
      i_full: assert (!(u_dut.u_entries.in_ready_o && stored == 4'(DEPTH)));
      i_ready: assert (u_dut.u_entries.in_ready_o || stored == 4'(DEPTH) || !u_dut.started_q);
      i_started: assert (u_dut.started_q || (stored == '0 && held_q == '0));
      i_held: assert (held_q <= 4'(DEPTH) && 4'(u_dut.held_q) == held_q);
      i_used: assert (4'(u_dut.used_q) == stored + held_q);
      i_extra: assert (!extra_q || stored + held_q <= 4'(DEPTH - 1));
      i_limit: assert (5'(stored) + 5'(held_q) <= 5'(DEPTH - 1)
                       || !extra_q);
      i_responses: assert (4'(u_dut.responses_q) == answered);
      i_writes: assert (writes_inside == write_in_q - write_out_q);
      i_answered: assert (answered <= write_in_q - write_out_q && answered <= 4'(DEPTH));
      i_b_pointers: assert (u_dut.b_write_q == response_q[2:0]
                            && u_dut.b_read_q == write_out_q[2:0]);
      if (place < stored) i_memory: assert (u_dut.u_entries.u_ram.mem[slot] == content_q);
      if (place_write < answered) begin
        i_errors: assert (u_dut.u_errors.mem[watched_write[2:0]] == error_q);
      end
    end
  end

  if (SYNC) begin : gen_sync
    always_ff @(posedge clk_i) begin
      if (past_q && !rst_i) begin
        i_shown: assert (u_dut.u_entries.stored_valid_q == shown_q);
        if (shown_q) begin
          i_read: assert (stored != '0
                          && u_dut.u_entries.stored
                             == u_dut.u_entries.u_ram.mem[u_dut.u_entries.rptr_q]);
        end
      end
    end
  end

endmodule

`default_nettype wire
