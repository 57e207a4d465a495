// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_atomic: executes FETCH_ADD and CMP_SWAP of the peers: a read and a write of 8 bytes that
// nothing of this NIC comes between, exactly once, in the order in which they were accepted.
//
//   host_scatter ► responder_atomic_queue ─ where ─► responder_atomic_watch ⇄ host_dma_read
//                           └──── what ────► responder_atomic_execute ⇄ host_dma_write ► responder_path
//
// Life of an atomic: it enters when its bus word is watched (watch) → a token goes through the ordered
// writer: all that left before is in memory → the bus word is read → in its turn it is executed under a
// short lock of the writer (execute) → its write, or a token in its place, is in memory → done.
// Up to 16 bus words (4 in narrow) are watched at once, so reads of different addresses overlap; atomics
// on a word that is watched already join, at no cost of memory.
//
// Why it is atomic. "Leaves" = takes its place in the one order of words on the bus (one write ID: the
// order in which memory changes). V = the 8 bytes that the execution looked at, N = its result.
// 1. *V is complete.* Words that left before the watch began are older than the token in the commit FIFO
//    (a burst's entry is made when its first word leaves, and a second burst of a long write before
//    any token), so the read sees them. Words that left later are captured, byte by byte, in their order,
//    over what the read brings: whether memory had them or not by then does not matter.
// 2. *Nothing between V and N.* The lock begins in a cycle in which no word leaves and no burst runs.
//    What left before has been captured by the next cycle; if some of it hit the bus word after the look,
//    the look is repeated, under the lock, in which nothing leaves but N. So no writer can keep an atomic
//    waiting for more than one repetition, and no write waits longer than that. N is one word: it leaves
//    whole. CMP_SWAP without a match ends in the same place with a token.
// 3. *After N.* N is captured like any word, so who looks next sees it, joined or not: a slot that is
//    over has nobody waiting; who watches the word again gets a token behind N.
// 4. *Order within a QP.* host_scatter hands an atomic over when all words of frames before it have left;
//    so V has them. Later SENDs and WRITEs may pass an atomic (wire.md 2.10: unless the peer fences);
//    READ responses and later atomics do not (responder_respond).
// 5. *Two functions.* Slots are told apart by function and address. That two functions, or two addresses,
//    reach the same memory is known to the host alone; atomicity is per {function, DMA address}. Stores
//    of the host's CPU are outside too: atomics are those of verbs' IBV_ATOMIC_HCA.
// 6. *Errors.* A bad read fails one atomic; those that joined read again. A write that the bus answers
//    with an error fails its atomic. Whether memory took it is then unknown, as for any such write; those
//    who follow on the same slot go on from N. Functions in reset get errors for reads and writes.
//
// RX never waits: the queue has a place per replay entry. Nothing here waits for transmit, and no token
// waits for a grant of this unit: done_ready_i may only wait for bounded state.
// Fence: busy with a colour from the request until its atomic is told or forgotten (rule 8).
`default_nettype none

module responder_atomic (
  input  wire                                 clk_i,
  input  wire                                 rst_i,
  output logic                                ready_o,        // tables are cleared after reset
  input  roci_pkg::state_bcast_t              state_i,

  // accepted atomics whose address is good
  input  wire                                 req_valid_i,
  output logic                                req_ready_o,
  input  roci_pkg::atomic_req_t               req_i,

  // memory: reads (client 5), words that leave, tokens and writes
  output logic                                dma_valid_o,
  input  wire                                 dma_ready_i,
  output roci_pkg::dma_read_req_t             dma_o,
  input  wire                                 beat_valid_i,
  output logic                                beat_ready_o,
  input  roci_pkg::read_beat_t                beat_i,
  input  host_pkg::written_t                  written_i,
  output logic                                lock_o,
  input  wire                                 locked_i,
  output logic                                write_valid_o,
  input  wire                                 write_ready_i,
  output host_pkg::atomic_write_t             write_o,
  input  wire                                 token_valid_i,
  output logic                                token_ready_o,
  input  roci_pkg::token_t                    token_i,        // TOKEN_ATOMIC

  // executed, or failed
  output logic                                done_valid_o,
  input  wire                                 done_ready_i,
  output roci_pkg::atomic_done_t              done_o,

  output roci_pkg::fence_busy_t               fence_busy_o
);

  localparam int unsigned COUNT_BITS = roci_config_pkg::REPLAY_BITS + 1;

  logic where_valid, where_ready, what_valid, what_ready, skipped;
  responder_pkg::atomic_where_t where_now;
  responder_pkg::atomic_what_t what;
  logic start_valid, start_hold, head_valid, head_failed, head_hit, head_done, look;
  responder_pkg::atomic_slot_t start_slot;
  responder_pkg::atomic_entered_t head;
  host_pkg::bus_word_t place;
  logic [63:0] value;
  logic execute_valid, execute_token_ready;
  host_pkg::atomic_write_t execute_write;
  host_pkg::atomic_tag_t tag;
  roci_pkg::colour_t done_colour;

  responder_atomic_queue u_queue (
    .clk_i, .rst_i, .req_valid_i, .req_ready_o, .req_i,
    .where_valid_o(where_valid), .where_ready_i(where_ready), .where_o(where_now),
    .what_valid_o(what_valid), .what_ready_i(what_ready), .what_o(what)
  );

  responder_atomic_watch u_watch (
    .clk_i, .rst_i,
    .where_valid_i(where_valid), .where_ready_o(where_ready), .where_i(where_now), .written_i,
    .start_valid_o(start_valid), .start_ready_i(write_ready_i && !execute_valid),
    .start_slot_o(start_slot), .start_hold_i(start_hold),
    .started_valid_i(token_valid_i && !tag.executed), .started_slot_i(tag.slot),
    .dma_valid_o, .dma_ready_i, .dma_o, .beat_valid_i, .beat_ready_o, .beat_i,
    .head_valid_o(head_valid), .head_o(head), .head_failed_o(head_failed), .look_i(look),
    .place_o(place), .value_o(value), .head_hit_o(head_hit), .head_done_i(head_done)
  );

  responder_atomic_execute u_execute (
    .clk_i, .rst_i, .ready_o, .state_i,
    .head_valid_i(head_valid), .head_failed_i(head_failed), .head_i(head), .look_o(look),
    .place_i(place), .value_i(value), .head_hit_i(head_hit), .head_done_o(head_done),
    .start_valid_i(start_valid), .start_hold_o(start_hold),
    .what_valid_i(what_valid), .what_ready_o(what_ready), .what_i(what), .skipped_o(skipped),
    .lock_o, .locked_i, .write_valid_o(execute_valid), .write_ready_i, .write_o(execute_write),
    .token_valid_i(token_valid_i && tag.executed), .token_ready_o(execute_token_ready),
    .token_error_i(token_i.error),
    .done_valid_o, .done_ready_i, .done_o, .done_colour_o(done_colour)
  );

  // One of the two at a time: a token that waits keeps the lock from being asked for.
  assign write_valid_o = execute_valid || start_valid;
  always_comb begin
    write_o = execute_write;
    if (!execute_valid) begin
      write_o.is_token = 1'b1;
      write_o.tag = '{executed: 1'b0, slot: start_slot};
    end
  end

  assign tag = host_pkg::atomic_tag_t'(token_i.body[$bits(host_pkg::atomic_tag_t)-1:0]);
  assign token_ready_o = !tag.executed || execute_token_ready;
  wire unused_token = &{1'b0, token_i.kind, token_i.qp, token_i.colour, token_i.packet_end,
                        token_i.body[roci_pkg::TOKEN_BODY_BITS-1:$bits(host_pkg::atomic_tag_t)]};

  // ----------------------------------------------------------------------------------------- fence
  logic [1:0][COUNT_BITS-1:0] held_q;          // atomics of each colour
  logic [1:0] comes, told, forgotten;
  always_comb begin
    comes = '0;
    told = '0;
    forgotten = '0;
    comes[req_i.colour] = req_valid_i && req_ready_o;
    told[done_colour] = done_valid_o && done_ready_i;
    forgotten[what.colour] = skipped;
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < 2; c++) begin
      held_q[c] <= held_q[c] + COUNT_BITS'(comes[c]) - COUNT_BITS'(told[c])
                   - COUNT_BITS'(forgotten[c]);
      fence_busy_o[c] <= held_q[c] != '0 || comes[c];
    end
    if (rst_i) begin
      held_q <= '0;
      fence_busy_o <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert (!(execute_valid && start_valid))
      else $error("responder_atomic: a token and an execution at once");
    end
  end

endmodule

`default_nettype wire
