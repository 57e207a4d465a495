// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_commit_fifo: the one order of all host writes and tokens (architecture.md rule 4).
//
// Entries are pushed when a write burst is issued or a token is accepted, and leave in that order:
// a write when its bus response has come, everything else when it is at the head. Responses come in
// the order of the writes (one AXI ID) and are kept here, so the bus never waits for a reader.
//
// Room. Four levels push: 0 scatter, 1 cq_writer, 2 eq_writer, 3 cpu. A completion token makes its
// reader push one entry of level 1, and nothing behind it may be able to prevent that: when it
// leaves, its place is not free but *held* for that entry. Completions from elsewhere hold a place
// before they are accepted (cqe_reserve_i). So: entries + held places never exceed DEPTH, and
// whoever holds one can push. Levels 0 and 3 leave the reserves of those above them alone; one more
// place is kept for the second burst of a long write (push_extra_i).
//
// Does not: look into entries. Neighbours: host_dma_write (pushes), host_commit_tokens (reads).
// Proved in tests/formal/commit_fifo.toml.
`default_nettype none

module host_commit_fifo #(
  parameter int unsigned WIDTH = 8,          // bits of an entry
  parameter int unsigned DEPTH = 256,        // entries and held places
  parameter string STYLE = "block",                     // memory of the entries
  parameter int unsigned RESERVE_CQ = DEPTH / 8,        // kept for completions of level 1
  parameter int unsigned RESERVE_EQ = DEPTH / 32 + 1,   // kept for level 2
  parameter int unsigned RESERVE_CPU = DEPTH / 64 + 1   // kept for level 3
) (
  input  wire               clk_i,
  input  wire               rst_i,

  output logic [3:0]        room_o,          // level n may push in this cycle
  output logic              cqe_room_o,      // a completion may be accepted in this cycle ...
  input  wire               cqe_reserve_i,   // ... and is: holds a place

  // push; only with room_o of its level, or push_extra_i
  input  wire               push_valid_i,
  input  wire [1:0]         push_level_i,
  input  wire               push_extra_i,    // later burst of the write pushed last, before others'
  input  wire               push_write_i,    // waits for a bus response
  input  wire               push_completion_i,  // a completion token: holds a place when it leaves
  input  wire [WIDTH-1:0]   push_i,

  // bus responses, in order
  input  wire               b_valid_i,
  input  wire               b_error_i,

  // entries, in order
  output logic              out_valid_o,
  input  wire               out_ready_i,
  output logic              out_write_o,
  output logic              out_failed_o,    // a write whose response was an error
  output logic [WIDTH-1:0]  out_o
);

  localparam int unsigned COUNT_BITS = $clog2(DEPTH + 1);
  localparam int unsigned ADDR_BITS = $clog2(DEPTH);

  typedef logic [COUNT_BITS-1:0] count_t;

  if (DEPTH < RESERVE_CQ + RESERVE_EQ + RESERVE_CPU + 2) $error("%m: nothing left for level 0");
  if (DEPTH != 1 << ADDR_BITS) $error("%m: DEPTH must be a power of two");

  typedef struct packed {
    logic write;
    logic completion;
    logic [WIDTH-1:0] payload;
  } entry_t;

  count_t used_q;                            // entries and held places
  count_t held_q;                            // places held for level 1
  count_t responses_q;                       // responses not yet used
  logic [ADDR_BITS-1:0] b_write_q, b_read_q;
  logic started_q;

  entry_t in, head;
  logic [$bits(entry_t)-1:0] head_bits;
  logic head_valid, fifo_ready, pop, holds;
  count_t stored;

  // One place always stays for push_extra_i. The FIFO takes nothing in the first cycle after reset.
  always_comb begin
    room_o[0] = started_q && used_q < count_t'(DEPTH - 1 - RESERVE_CQ - RESERVE_EQ - RESERVE_CPU);
    room_o[3] = started_q && used_q < count_t'(DEPTH - 1 - RESERVE_CQ - RESERVE_EQ);
    cqe_room_o = started_q && used_q < count_t'(DEPTH - 1 - RESERVE_EQ);
    room_o[2] = started_q && used_q < count_t'(DEPTH - 1);
    room_o[1] = held_q != '0;
  end

  assign in = '{write: push_write_i, completion: push_completion_i, payload: push_i};
  assign head = entry_t'(head_bits);
  assign out_valid_o = head_valid && (!head.write || responses_q != '0);
  assign out_write_o = head.write;
  assign out_o = head.payload;
  assign pop = out_valid_o && out_ready_i;
  assign holds = pop && head.completion;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      used_q <= '0;
      held_q <= '0;
      responses_q <= '0;
      b_write_q <= '0;
      b_read_q <= '0;
      started_q <= 1'b0;
    end else begin
      started_q <= 1'b1;
      used_q <= used_q + count_t'(push_valid_i && (push_level_i != 2'd1)) + count_t'(cqe_reserve_i)
                - count_t'(pop && !holds);
      held_q <= held_q + count_t'(cqe_reserve_i) + count_t'(holds)
                - count_t'(push_valid_i && push_level_i == 2'd1);
      responses_q <= responses_q + count_t'(b_valid_i) - count_t'(pop && head.write);
      if (b_valid_i) b_write_q <= b_write_q + 1'b1;
      if (pop && head.write) b_read_q <= b_read_q + 1'b1;
    end
  end

  common_fifo #(.WIDTH($bits(entry_t)), .DEPTH(DEPTH), .STYLE(STYLE)) u_entries (
    .clk_i, .rst_i,
    .in_valid_i(push_valid_i), .in_ready_o(fifo_ready), .in_i(in),
    .out_valid_o(head_valid), .out_ready_i(pop), .out_o(head_bits), .usage_o(stored)
  );

  common_ram_sdp #(
    .WIDTH(1), .DEPTH(DEPTH), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_errors (
    .clk_i, .we_i(b_valid_i), .waddr_i(b_write_q), .wdata_i(b_error_i),
    .re_i(1'b1), .raddr_i(b_read_q), .rdata_o(out_failed_o)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      a_count: assert (used_q == stored + held_q);
      a_bound: assert (used_q <= count_t'(DEPTH));
      a_responses: assert (responses_q <= stored);
      if (push_valid_i) begin
        a_push: assert (fifo_ready);
        a_room: assert (push_extra_i || room_o[push_level_i]);
        a_extra: assert (!push_extra_i || used_q < count_t'(DEPTH));
      end
      if (cqe_reserve_i) a_reserve: assert (cqe_room_o);
    end
  end

endmodule

`default_nettype wire
