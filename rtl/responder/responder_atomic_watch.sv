// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_atomic_watch: the bus words that atomics under way are about, and what is in them.
//
// A *slot* watches one bus word (64 bytes in wide, 8 in narrow) of one function from the time that an
// atomic on it enters until the last that entered has been executed. Atomics enter in their order and
// are executed in it. One whose bus word is watched joins its slot: no two slots watch the same.
//
// What is known of a slot's word:
// - *read* data. When the slot begins to watch, a token goes through the ordered writer; when it comes
//   back all words that left before the watch began are in memory; then the word is read.
// - *captured* bytes: every byte that leaves for this word while it is watched, whoever writes it (the
//   engine's own results too), the last one counts. Each captured byte has a ninth bit that says so.
// A byte's value is the captured one if there is one, else the one that was read: a word that left
// before the watch began is in memory before the read; one that left later is captured, whether or not
// the read has seen it too. So once the read is back, the slot shows what memory will hold when all
// that has left until then is there, and goes on to do so: those who join need no read of their own.
//
// A read that fails fails the atomic that is executed next on the slot; if others are behind it the
// word is read again for them.
//
// Looking for the slot of an atomic takes a cycle per slot, so atomics enter at most that often.
// Does not: look at lanes or values; decide when an atomic is executed (responder_atomic_execute).
// Neighbours: responder_atomic_queue, host_dma_write (words, tokens), host_dma_read client 5.
`default_nettype none

module responder_atomic_watch (
  input  wire                                 clk_i,
  input  wire                                 rst_i,

  // atomics that may enter
  input  wire                                 where_valid_i,
  output logic                                where_ready_o,
  input  responder_pkg::atomic_where_t        where_i,

  // words that leave for memory
  input  host_pkg::written_t                  written_i,

  // token that goes behind what left before a slot's watch; always one at a time
  output logic                                start_valid_o,
  input  wire                                 start_ready_i,
  output responder_pkg::atomic_slot_t         start_slot_o,
  input  wire                                 start_hold_i,   // none may begin
  input  wire                                 started_valid_i,   // it is back; always accepted
  input  responder_pkg::atomic_slot_t         started_slot_i,

  // memory
  output logic                                dma_valid_o,
  input  wire                                 dma_ready_i,
  output roci_pkg::dma_read_req_t             dma_o,
  input  wire                                 beat_valid_i,
  output logic                                beat_ready_o,   // constant 1
  input  roci_pkg::read_beat_t                beat_i,

  // the atomic to be executed next, of those that have entered
  output logic                                head_valid_o,   // there is one, its slot has been read
  output responder_pkg::atomic_entered_t      head_o,
  output logic                                head_failed_o,  // the read failed
  input  wire                                 look_i,         // show its bus word
  output host_pkg::bus_word_t                 place_o,        // with look_i: address of the bus word
  output logic [63:0]                         value_o,        // the cycle after: its 8 bytes
  output logic                                head_hit_o,     // bytes of its bus word are captured now
  input  wire                                 head_done_i     // executed: the next one; not while a
                                                              // token waits (start_valid_o)
);

  localparam int unsigned SLOTS = 2 ** host_pkg::ATOMIC_SLOT_BITS;
  localparam int unsigned DATA_BYTES = roci_pkg::DATA_BYTES;
  localparam int unsigned LANES = DATA_BYTES / 8;
  localparam int unsigned LANE_BITS = responder_pkg::ATOMIC_LANE_BITS;
  localparam int unsigned COUNT_BITS = host_pkg::ATOMIC_SLOT_BITS + 1;
  localparam string STYLE = roci_config_pkg::IS_WIDE ? "block" : "distributed";

  typedef responder_pkg::atomic_slot_t slot_t;
  typedef logic [COUNT_BITS-1:0] count_t;      // atomics that have entered, at most SLOTS

  typedef enum logic [1:0] {
    ENTER_SCAN = 2'd0,                         // a slot per cycle
    ENTER_JOIN = 2'd1,                         // the slot was found
    ENTER_BEGIN = 2'd2                         // a free slot begins to watch
  } enter_e;

  // ------------------------------------------------------------------------------------ slots
  logic [SLOTS-1:0] watching_q, read_q, failed_q;
  host_pkg::bus_word_t place_q [SLOTS];

  enter_e enter_q;
  slot_t scan_q, target_q;
  logic free_found_q;

  logic start_valid_q, again_q;
  slot_t start_slot_q;
  logic dma_valid_q;
  host_pkg::bus_word_t dma_place_q;
  logic [LANE_BITS-1:0] lane_q;

  logic [SLOTS-1:0] hit;
  logic any_hit;
  slot_t hit_slot;

  host_pkg::bus_word_t wanted, seen;           // of the atomic that enters; of the slot looked at
  logic [$bits(host_pkg::bus_word_t)-1:0] seen_bits;
  slot_t seen_slot;
  logic due_valid, due_take, scan_step;
  slot_t due_slot, reading_slot;

  logic join_now, begin_now, room, window_valid;
  responder_pkg::atomic_entered_t entered, head;
  logic [$bits(responder_pkg::atomic_entered_t)-1:0] head_bits;
  count_t users, users_next;
  logic head_last;

  // -------------------------------------------------------------------------------- words that leave
  always_comb begin
    hit_slot = '0;
    for (int unsigned s = 0; s < SLOTS; s++) begin
      hit[s] = written_i.valid && watching_q[s] && place_q[s] == written_i.place;
      if (hit[s]) hit_slot = hit_slot | slot_t'(s);
    end
    any_hit = hit != '0;
  end
  assign head_hit_o = any_hit && hit_slot == head.slot;

  // captured bytes, each with its ninth bit; a slot that begins has none
  logic [DATA_BYTES-1:0] capture;
  logic [9*DATA_BYTES-1:0] capture_data, captured_bits;
  always_comb begin
    for (int unsigned b = 0; b < DATA_BYTES; b++) begin
      capture[b] = any_hit ? written_i.strobe[b] : begin_now;
      capture_data[9*b +: 9] = {any_hit, written_i.data[8*b +: 8]};
    end
  end
  common_ram_sdp #(
    .WIDTH(9 * DATA_BYTES), .DEPTH(SLOTS), .GRANULE(9), .LATENCY(1), .BYPASS(1'b0), .STYLE(STYLE)
  ) u_captured (
    .clk_i, .we_i(capture), .waddr_i(any_hit ? hit_slot : target_q), .wdata_i(capture_data),
    .re_i(look_i), .raddr_i(head.slot), .rdata_o(captured_bits)
  );

  logic [8*DATA_BYTES-1:0] read_bits;
  common_ram_sdp #(
    .WIDTH(8 * DATA_BYTES), .DEPTH(SLOTS), .LATENCY(1), .BYPASS(1'b0), .STYLE(STYLE)
  ) u_read (
    .clk_i, .we_i(beat_valid_i), .waddr_i(reading_slot), .wdata_i(beat_i.data),
    .re_i(look_i), .raddr_i(head.slot), .rdata_o(read_bits)
  );

  logic [71:0] captured;
  logic [63:0] from_memory;
  if (LANES > 1) begin : gen_lanes
    assign captured = captured_bits[72 * 32'(lane_q) +: 72];
    assign from_memory = read_bits[64 * 32'(lane_q) +: 64];
  end else begin : gen_lanes
    assign captured = captured_bits;
    assign from_memory = read_bits;
    wire unused_lane = &{1'b0, lane_q};
  end
  always_comb begin
    for (int unsigned b = 0; b < 8; b++) begin
      value_o[8*b +: 8] = captured[9*b+8] ? captured[9*b +: 8] : from_memory[8*b +: 8];
    end
  end

  // ------------------------------------------------------------------------------------- entering
  assign wanted = '{fn: where_i.fn, word: where_i.addr[63:roci_pkg::LANE_BITS]};
  assign entered.slot = target_q;
  if (LANES > 1) begin : gen_lane
    assign entered.lane = where_i.addr[3 +: LANE_BITS];
  end else begin : gen_lane
    assign entered.lane = '0;
  end

  // One port of addresses: the head's, or that of a read, or else the search goes on.
  assign seen_slot = look_i ? head.slot : due_take ? due_slot : scan_q;
  assign due_take = due_valid && !look_i && !dma_valid_q;
  assign scan_step = where_valid_i && enter_q == ENTER_SCAN && !look_i && !due_take;
  assign seen = host_pkg::bus_word_t'(seen_bits);
  assign place_o = seen;

  common_ram_sdp #(
    .WIDTH($bits(host_pkg::bus_word_t)), .DEPTH(SLOTS), .LATENCY(0), .BYPASS(1'b0),
    .STYLE("distributed")
  ) u_places (
    .clk_i, .we_i(begin_now), .waddr_i(target_q), .wdata_i(wanted),
    .re_i(1'b1), .raddr_i(seen_slot), .rdata_o(seen_bits)
  );

  // The counts have one port too; the head goes first. A slot that was found may be over by now: then
  // it is as good as any free one. Its captured bytes are forgotten in a cycle without a hit.
  assign join_now = enter_q == ENTER_JOIN && watching_q[target_q] && room && !head_done_i;
  assign begin_now = enter_q == ENTER_BEGIN && room && !head_done_i && !any_hit && !start_valid_q
                     && !again_q && !start_hold_i;
  assign where_ready_o = join_now || begin_now;

  common_ram_sdp #(
    .WIDTH(COUNT_BITS), .DEPTH(SLOTS), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_users (
    .clk_i, .we_i(head_done_i || join_now || begin_now),
    .waddr_i(head_done_i ? head.slot : target_q), .wdata_i(users_next),
    .re_i(1'b1), .raddr_i(head_done_i ? head.slot : target_q), .rdata_o(users)
  );
  assign users_next = begin_now ? count_t'(1) : head_done_i ? users - 1'b1 : users + 1'b1;
  assign head_last = users == count_t'(1);

  common_fifo #(
    .WIDTH($bits(responder_pkg::atomic_entered_t)), .DEPTH(SLOTS), .STYLE("distributed")
  ) u_window (
    .clk_i, .rst_i,
    .in_valid_i(join_now || begin_now), .in_ready_o(room), .in_i(entered),
    .out_valid_o(window_valid), .out_ready_i(head_done_i), .out_o(head_bits), .usage_o()
  );
  assign head = responder_pkg::atomic_entered_t'(head_bits);
  assign head_o = head;
  assign head_valid_o = window_valid && read_q[head.slot] && !again_q;
  assign head_failed_o = failed_q[head.slot];

  always_ff @(posedge clk_i) begin
    unique case (enter_q)
      ENTER_SCAN: begin
        if (scan_step) begin
          scan_q <= scan_q + 1'b1;
          if (!watching_q[scan_q]) begin
            target_q <= scan_q;
            free_found_q <= 1'b1;
          end else if (seen == wanted) begin
            target_q <= scan_q;
            enter_q <= ENTER_JOIN;
          end
          if (scan_q == '1) begin
            free_found_q <= 1'b0;
            if (!(watching_q[scan_q] && seen == wanted)
                && (free_found_q || !watching_q[scan_q])) begin
              enter_q <= ENTER_BEGIN;
            end
          end
        end
      end
      ENTER_JOIN: if (!watching_q[target_q]) enter_q <= ENTER_BEGIN;
      default: ;
    endcase
    if (where_ready_o) begin
      enter_q <= ENTER_SCAN;
      scan_q <= '0;
      free_found_q <= 1'b0;
    end
    if (begin_now) place_q[target_q] <= wanted;
    if (look_i) lane_q <= head.lane;
    if (rst_i) begin
      enter_q <= ENTER_SCAN;
      scan_q <= '0;
      free_found_q <= 1'b0;
    end
  end

  // ------------------------------------------------------- from the watch to the data of its word
  assign start_valid_o = start_valid_q;
  assign start_slot_o = start_slot_q;
  assign dma_valid_o = dma_valid_q;
  assign dma_o = '{fn: dma_place_q.fn, length: 13'd8,
                   addr: {dma_place_q.word, roci_pkg::LANE_BITS'(0)}};
  assign beat_ready_o = 1'b1;

  common_fifo #(.WIDTH($bits(slot_t)), .DEPTH(SLOTS), .STYLE("distributed")) u_due (
    .clk_i, .rst_i,
    .in_valid_i(started_valid_i), .in_ready_o(), .in_i(started_slot_i),
    .out_valid_o(due_valid), .out_ready_i(due_take), .out_o(due_slot), .usage_o()
  );
  common_fifo #(.WIDTH($bits(slot_t)), .DEPTH(SLOTS), .STYLE("distributed")) u_reading (
    .clk_i, .rst_i,
    .in_valid_i(due_take), .in_ready_o(), .in_i(due_slot),
    .out_valid_o(), .out_ready_i(beat_valid_i), .out_o(reading_slot), .usage_o()
  );

  always_ff @(posedge clk_i) begin
    if (!dma_valid_q || dma_ready_i) dma_valid_q <= due_take;
    if (due_take) dma_place_q <= seen;

    if (start_ready_i) start_valid_q <= 1'b0;
    if (begin_now) begin
      start_valid_q <= 1'b1;
      start_slot_q <= target_q;
      watching_q[target_q] <= 1'b1;
      read_q[target_q] <= 1'b0;
      failed_q[target_q] <= 1'b0;
    end else if (again_q && !start_valid_q && !start_hold_i) begin
      start_valid_q <= 1'b1;
      again_q <= 1'b0;
    end
    if (beat_valid_i) begin
      read_q[reading_slot] <= 1'b1;
      failed_q[reading_slot] <= beat_i.err;
    end
    if (head_done_i) begin
      if (head_last) begin
        watching_q[head.slot] <= 1'b0;
      end else if (failed_q[head.slot]) begin
        read_q[head.slot] <= 1'b0;
        again_q <= 1'b1;
        start_slot_q <= head.slot;
      end
    end
    if (rst_i) begin
      watching_q <= '0;
      start_valid_q <= 1'b0;
      again_q <= 1'b0;
      dma_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert ((hit & (hit - 1'b1)) == '0)
      else $error("responder_atomic_watch: two slots watch the same word");
      if (beat_valid_i) begin
        assert (!read_q[reading_slot] && beat_i.last)
        else $error("responder_atomic_watch: data that nobody asked for");
      end
      if (head_done_i) begin
        assert (head_valid_o && users != '0)
        else $error("responder_atomic_watch: nothing was to be executed");
        assert (!start_valid_q)
        else $error("responder_atomic_watch: a token waits while an atomic is executed");
      end
    end
  end

endmodule

`default_nettype wire
