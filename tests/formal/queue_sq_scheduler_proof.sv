// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Proof of queue_sq_scheduler, with queue_bcast_wake, arbiter, skid and object queue inside, for an
// arbitrary queue pair `watched`. A reason is a doorbell, SQ_AGAIN, a wake, a broadcast of a state
// or of the end of an RNR wait. A push puts a QP into the queue; from there it goes to the pop
// register, where it is offered until it is taken, or in an RNR wait it is forgotten.
//   at most one place   in the queue once if it was pushed since it left, else not at all; in the
//                       pop register only if it left. So there are never more pops than pushes
//   no lost wake-up     from a reason until a pop that is taken after it, the QP is in the queue or
//                       in the pop register, or its wake is on the way, or it is in an RNR wait,
//                       whose end is a reason. The same for wakes and pops with `woken`
//   soon                doorbell and SQ_AGAIN push at once, a wake within CALLS cycles in which the
//                       queue's port is free for wakes. What is pushed is taken in one of the next
//                       QPS + 1 cycles with pop_ready_i, or is in an RNR wait at the queue's head
//                       (in block RAM, not looked at here, the queue takes a cycle more)
//   woken               told with a pop if a wake was pushed since the QP left the queue before,
//                       and only then; no wake is pushed that did not come, sweeps apart
//   producer            one cycle after a pop, and until the next: the last index of a doorbell or
//                       restart up to the cycle of the pop
//   others              told only if somebody else than the QP at work has a place
// All of it by induction, so for ever. To "fit" means here: to be as the reference says.
`default_nettype none

module queue_sq_scheduler_proof #(
  parameter int unsigned WAKES = 1
) (
  input wire                            clk_i,
  input wire                            rst_i,
  input wire                            doorbell_valid_i,
  input wire roci_pkg::doorbell_t       doorbell_i,
  input wire [WAKES-1:0]                wake_valid_i,
  input wire roci_pkg::qp_t [WAKES-1:0] wake_i,
  input wire roci_pkg::state_bcast_t    state_i,
  input wire roci_pkg::rnr_bcast_t      rnr_i,
  input wire                            requeue_valid_i,
  input wire roci_pkg::sq_requeue_t     requeue_i,
  input wire                            pop_ready_i,
  input wire roci_pkg::qp_t             current_qp_i,
  input wire roci_pkg::qp_t             watched        // any queue pair, always the same
);
  localparam int unsigned QP_BITS = roci_config_pkg::QP_BITS;
  localparam int unsigned QPS = 2 ** QP_BITS;
  localparam int unsigned SOURCES = WAKES + 2;
  localparam int unsigned DEPTH = 4;                   // of queue_bcast_wake
  localparam int unsigned CALLS = 2 * SOURCES * (QPS > DEPTH ? QPS : DEPTH) + 2;

  typedef logic [5:0] rank_t;
  if (CALLS > 60) $error("rank_t is too narrow");

  logic ready, requeue_ready, pop_valid, others;
  logic [WAKES-1:0] wake_ready;
  roci_pkg::sq_pop_t pop;
  roci_pkg::sq_index_t producer;

  queue_sq_scheduler #(.WAKES(WAKES)) u_dut (
    .clk_i, .rst_i, .ready_o(ready), .doorbell_valid_i, .doorbell_i,
    .wake_valid_i, .wake_ready_o(wake_ready), .wake_i, .state_i, .rnr_i,
    .requeue_valid_i, .requeue_ready_o(requeue_ready), .requeue_i,
    .pop_valid_o(pop_valid), .pop_ready_i, .pop_o(pop), .producer_o(producer),
    .current_qp_i, .others_queued_o(others)
  );

  logic past_q = 1'b0;
  logic after_reset;
  always_ff @(posedge clk_i) begin
    past_q <= 1'b1;
    after_reset <= rst_i;
  end

  // ------------------------------------------------------------------------------ what happens
  wire bell = doorbell_valid_i && doorbell_i.kind == roci_pkg::DOORBELL_SQ && ready;
  wire requeue = requeue_valid_i && requeue_ready;
  wire again = requeue && requeue_i.kind == roci_pkg::SQ_AGAIN;
  wire restart = requeue && requeue_i.kind == roci_pkg::SQ_RESTART;
  wire port_free = ready && !bell && !requeue_valid_i; // for wakes
  wire wake = u_dut.wake_valid && port_free;
  wire push = bell || again || wake;
  wire roci_pkg::qp_t push_qp = bell ? roci_pkg::qp_t'(doorbell_i.object_index)
                                : again ? requeue_i.qp : u_dut.wake_qp;
  wire leave = u_dut.head_valid && u_dut.head_pop;
  wire take = pop_valid && pop_ready_i;

  // ... to the watched one
  wire push_w = push && push_qp == watched;
  wire wake_w = wake && push_qp == watched;
  wire leave_w = leave && u_dut.head == watched;
  wire stands_w = pop_valid && pop.qp == watched;
  wire take_w = take && pop.qp == watched;
  wire index_w = (bell && push_qp == watched) || (restart && requeue_i.qp == watched);
  wire roci_pkg::sq_index_t index = bell ? doorbell_i.index[15:0] : requeue_i.index;
  wire state_w = state_i.valid && state_i.qp == watched;
  wire rnr_w = rnr_i.valid && rnr_i.qp == watched;
  logic [WAKES-1:0] stream_w;
  always_comb begin
    for (int unsigned n = 0; n < WAKES; n++) begin
      stream_w[n] = wake_valid_i[n] && wake_ready[n] && wake_i[n] == watched;
    end
  end
  wire call_w = stream_w != '0 || state_w || (rnr_w && !rnr_i.waiting);
  wire reason_w = call_w || (bell && push_qp == watched) || (again && requeue_i.qp == watched);

  // ------------------------------------------------------------------------------ reference
  logic [QPS-1:0] queued_q;                // pushed since it left the queue
  logic woken_q;                           // ... by a wake
  logic waits_q;                           // in an RNR wait
  logic call_q;                            // a wake came and is not pushed yet
  rank_t call_count_q;                     // cycles with the port free since then
  logic news_q, woken_news_q;              // a reason (a wake) came since the last pop
  rank_t queue_count_q, stand_count_q;     // cycles with pop_ready_i since the push
  logic [1:0] balance_q;                   // pushes minus pops, 2: or more
  logic [3:0] ready_count_q;
  logic forgotten_q;                       // it left the queue in an RNR wait, once
  logic known_q, shown_q;                  // there is an index; producer_o shows it
  roci_pkg::sq_index_t last_q, shown_index_q;
  logic others_q;                          // somebody else than the current QP has a place

  logic queued_w, others_d;
  always_comb begin
    queued_w = queued_q[watched];
    others_d = pop_valid && pop.qp != current_qp_i;
    for (int unsigned o = 0; o < QPS; o++) begin
      if (queued_q[o] && QP_BITS'(o) != current_qp_i) others_d = 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned o = 0; o < QPS; o++) begin
      if (push && push_qp == QP_BITS'(o)) queued_q[o] <= 1'b1;
      else if (leave && u_dut.head == QP_BITS'(o)) queued_q[o] <= 1'b0;
    end
    woken_q <= wake_w || (woken_q && !leave_w);
    forgotten_q <= forgotten_q || (leave_w && waits_q);
    if (rnr_w && ready) waits_q <= rnr_i.waiting;
    call_q <= call_w || (call_q && !wake_w);
    call_count_q <= call_q && !wake_w ? call_count_q + rank_t'(port_free) : '0;
    news_q <= reason_w || (news_q && !take_w);
    woken_news_q <= call_w || (woken_news_q && !(take_w && pop.woken));
    queue_count_q <= queued_w && !leave_w ? queue_count_q + rank_t'(pop_ready_i) : '0;
    stand_count_q <= (leave_w && !waits_q ? queue_count_q : stand_count_q) + rank_t'(pop_ready_i);
    if (push_w && !take_w && balance_q != 2'd2) balance_q <= balance_q + 2'd1;
    if (take_w && !push_w) balance_q <= balance_q - 2'd1;
    if (!ready) ready_count_q <= ready_count_q + 4'd1;
    if (index_w) begin
      known_q <= 1'b1;
      last_q <= index;
    end
    if (take) begin
      shown_q <= take_w && (known_q || index_w);
      shown_index_q <= index_w ? index : last_q;
    end
    others_q <= others_d;
    if (rst_i) begin
      queued_q <= '0;
      woken_q <= 1'b0;
      waits_q <= 1'b0;
      forgotten_q <= 1'b0;
      call_q <= 1'b0;
      call_count_q <= '0;
      news_q <= 1'b0;
      woken_news_q <= 1'b0;
      queue_count_q <= '0;
      balance_q <= '0;
      ready_count_q <= '0;
      known_q <= 1'b0;
      shown_q <= 1'b0;
      others_q <= 1'b0;
    end
  end

  // ------------------------------------------------------------------------------ the queue inside
  // Entries in order: place 0 is the output register if it is full.
  wire [QP_BITS-1:0] rptr = u_dut.u_queue.u_order.rptr_q;
  wire [QP_BITS-1:0] wptr = u_dut.u_queue.u_order.wptr_q;
  wire [3:0] stored = 4'(u_dut.u_queue.u_order.stored_q);
  wire rank_t queue_left = rank_t'(QPS + 1) - queue_count_q;
  logic [QPS-1:0] seen, twice;             // each QP is in the queue, is in it more than once
  logic [QPS-1:0] one_place, bits_fit;     // push bits of its entries and of its tables
  logic queue_rank_fits;
  logic [QP_BITS-1:0] place;
  logic [QP_BITS:0] entry;
  always_comb begin
    seen = '0;
    twice = '0;
    bits_fit = '1;
    queue_rank_fits = 1'b0;
    if (u_dut.head_valid) begin
      seen[u_dut.head] = 1'b1;
      bits_fit[u_dut.head] = u_dut.u_queue.head.push_bit
                             == u_dut.u_queue.u_push_bits.mem[u_dut.head];
      if (u_dut.head == watched) queue_rank_fits = queue_left >= rank_t'(2);
    end
    for (int unsigned e = 0; e < QPS; e++) begin
      place = QP_BITS'(e) - rptr;
      entry = u_dut.u_queue.u_order.u_ram.mem[e];
      for (int unsigned o = 0; o < QPS; o++) begin
        if (4'(place) < stored && entry[QP_BITS-1:0] == QP_BITS'(o)) begin
          twice[o] = twice[o] || seen[o];
          seen[o] = 1'b1;
          if (entry[QP_BITS] != u_dut.u_queue.u_push_bits.mem[o]) bits_fit[o] = 1'b0;
          if (watched == QP_BITS'(o) && queue_left >= rank_t'(place) + rank_t'(3)) begin
            queue_rank_fits = 1'b1;
          end
        end
      end
    end
    one_place = ~(seen ^ queued_q) & ~twice;
  end

  // The bits of the tables, or they are cleared.
  wire [QP_BITS-1:0] sweep = u_dut.u_queue.sweep_q;
  logic [QPS-1:0] queued_bits;
  logic woken_bits, waiting_bit;
  always_comb begin
    for (int unsigned o = 0; o < QPS; o++) begin
      if (ready) begin
        queued_bits[o] = (u_dut.u_queue.u_push_bits.mem[o] != u_dut.u_queue.u_pop_bits.mem[o])
                         == queued_q[o];
      end else begin
        queued_bits[o] = QP_BITS'(o) >= sweep || (!u_dut.u_queue.u_push_bits.mem[o]
                                                  && !u_dut.u_queue.u_pop_bits.mem[o]);
      end
    end
    woken_bits = (u_dut.u_wake_bits_head.u_ram.mem[watched]
                  != u_dut.u_pop_bits_head.u_ram.mem[watched]) == woken_q
                 && u_dut.u_wake_bits_push.u_ram.mem[watched]
                    == u_dut.u_wake_bits_head.u_ram.mem[watched]
                 && u_dut.u_pop_bits_push.u_ram.mem[watched]
                    == u_dut.u_pop_bits_head.u_ram.mem[watched];
    waiting_bit = u_dut.u_waiting.u_ram.mem[watched];
    if (!ready && watched >= sweep) begin
      woken_bits = 1'b1;
      waiting_bit = 1'b0;
    end
  end

  // ------------------------------------------------------------------------------ wakes on the way
  // The arbiter: inputs after the last one served come first (common_arbiter_proof.sv).
  logic [$clog2(SOURCES)-1:0] served_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) served_q <= ($clog2(SOURCES))'(SOURCES - 1);
    else if (u_dut.u_wakes.transfer) served_q <= u_dut.u_wakes.out_index_o;
  end

  function automatic rank_t steps(input rank_t served, input rank_t source);
    return source - served - rank_t'(1) + (source > served ? '0 : rank_t'(SOURCES));
  endfunction

  wire held = u_dut.u_wakes.held_q;
  wire [SOURCES-1:0] choice = u_dut.u_wakes.choice_q;
  rank_t held_number;
  logic later_fits;
  rank_t [SOURCES-1:0] overtakes;          // others served before this input, at most
  always_comb begin
    held_number = '0;
    later_fits = 1'b1;
    for (int unsigned n = 0; n < SOURCES; n++) begin
      if (choice[n]) held_number = held_number | rank_t'(n);
      if (u_dut.u_wakes.later_q[n] != (n > 32'(served_q))) later_fits = 1'b0;
    end
    for (int unsigned n = 0; n < SOURCES; n++) begin
      overtakes[n] = steps(rank_t'(served_q), rank_t'(n));
      if (held && steps(rank_t'(served_q), held_number) > overtakes[n]) begin
        overtakes[n] = rank_t'(1) + steps(held_number, rank_t'(n));
      end
    end
  end

  // Skid: 0..2 wakes.
  wire skid_one = u_dut.u_wake.valid_q;
  wire skid_two = u_dut.u_wake.skid_valid_q;
  wire rank_t skid_rank = rank_t'(skid_two ? 2 : 1);  // an empty one costs a cycle as well

  // The two queue_bcast_wake.
  logic [1:0] choose, sweeps, sweeps_again, not_full;
  logic [1:0][QP_BITS-1:0] sweep_qp;
  logic [1:0][2:0] calls, calls_usage;
  logic [1:0][1:0] calls_rptr, calls_wptr;
  logic [1:0][DEPTH-1:0][QP_BITS-1:0] call_mem;
  always_comb begin
    choose = {u_dut.u_rnr_wake.choose_sweep_q, u_dut.u_state_wake.choose_sweep_q};
    sweeps = {u_dut.u_rnr_wake.sweep_q, u_dut.u_state_wake.sweep_q};
    sweeps_again = {u_dut.u_rnr_wake.again_q, u_dut.u_state_wake.again_q};
    sweep_qp = {u_dut.u_rnr_wake.sweep_qp_q, u_dut.u_state_wake.sweep_qp_q};
    calls = {u_dut.u_rnr_wake.u_fifo.stored_q, u_dut.u_state_wake.u_fifo.stored_q};
    calls_usage = {u_dut.u_rnr_wake.u_fifo.usage_q, u_dut.u_state_wake.u_fifo.usage_q};
    calls_rptr = {u_dut.u_rnr_wake.u_fifo.rptr_q, u_dut.u_state_wake.u_fifo.rptr_q};
    calls_wptr = {u_dut.u_rnr_wake.u_fifo.wptr_q, u_dut.u_state_wake.u_fifo.wptr_q};
    not_full = {u_dut.u_rnr_wake.u_fifo.not_full_q, u_dut.u_state_wake.u_fifo.not_full_q};
    for (int unsigned e = 0; e < DEPTH; e++) begin
      call_mem[0][e] = u_dut.u_state_wake.u_fifo.u_ram.mem[e];
      call_mem[1][e] = u_dut.u_rnr_wake.u_fifo.u_ram.mem[e];
    end
  end

  // Its rank fits for one of the watched QP's wakes; and how many there are.
  wire rank_t call_left = rank_t'(CALLS) - call_count_q;
  logic call_rank_fits;
  logic [1:0][2:0] calls_w;                // ... in each buffer
  logic [1:0] skid_w;                      // ... in the skid
  logic [1:0] call_place;
  logic [QP_BITS-1:0] sweep_to_go;
  always_comb begin
    call_rank_fits = 1'b0;
    calls_w = '0;
    skid_w = '0;
    for (int unsigned b = 0; b < 2; b++) begin
      // The buffer and the sweep take turns. A turn for nothing, behind a sweep, costs a round.
      for (int unsigned e = 0; e < DEPTH; e++) begin
        call_place = 2'(e) - calls_rptr[b];
        if (3'(call_place) < calls[b] && call_mem[b][e] == watched) begin
          calls_w[b] = calls_w[b] + 3'd1;
          if (call_left >= rank_t'(2 * SOURCES) * rank_t'(call_place)
                           + rank_t'(choose[b] ? SOURCES : 0) + rank_t'(1)
                           + (choose[b] && !sweeps[b] ? '0 : overtakes[WAKES+b]) + skid_rank) begin
            call_rank_fits = 1'b1;
          end
        end
      end
      sweep_to_go = watched - sweep_qp[b];
      if (sweeps[b] && (sweep_qp[b] <= watched || sweeps_again[b])
          && call_left >= rank_t'(2 * SOURCES) * rank_t'(sweep_to_go)
                          + rank_t'(choose[b] ? 0 : SOURCES) + rank_t'(1)
                          + overtakes[WAKES+b] + skid_rank) begin
        call_rank_fits = 1'b1;
      end
    end
    if (skid_two && u_dut.u_wake.skid_q == watched) begin
      skid_w = skid_w + 2'd1;
      if (call_left >= rank_t'(2)) call_rank_fits = 1'b1;
    end
    if (skid_one && u_dut.u_wake.out_q == watched) begin
      skid_w = skid_w + 2'd1;
      call_rank_fits = 1'b1;
    end
  end

  logic [1:0] calls_fit, no_sweep_fits, turn_fits;
  always_comb begin
    for (int unsigned b = 0; b < 2; b++) begin
      calls_fit[b] = calls[b] <= 3'd4 && calls_usage[b] == calls[b]
                     && calls_wptr[b] == calls_rptr[b] + 2'(calls[b])
                     && not_full[b] == (!after_reset && calls[b] != 3'd4);
      no_sweep_fits[b] = sweeps[b] || (sweep_qp[b] == '0 && !sweeps_again[b]);
      turn_fits[b] = choose[b] ? sweeps[b] || calls[b] <= 3'd1 : !sweeps[b] || calls[b] != '0;
    end
  end

  // Of the wakes that came, how many are in each queue_bcast_wake and in the skid; and whether
  // there was a sweep, which wakes for nothing.
  logic [1:0][2:0] calls_in_q;
  logic [1:0] skid_in_q;
  logic swept_q;
  wire choice_w = u_dut.u_wakes.transfer && u_dut.choice_qp == watched;
  wire [1:0] call_out_w = u_dut.source_ready[WAKES+:2] & {2{choice_w}};
  always_ff @(posedge clk_i) begin
    calls_in_q[0] <= calls_in_q[0] + 3'(state_w) - 3'(call_out_w[0]);
    calls_in_q[1] <= calls_in_q[1] + 3'(rnr_w && !rnr_i.waiting) - 3'(call_out_w[1]);
    skid_in_q <= skid_in_q + 2'(choice_w) - 2'(wake_w);
    swept_q <= swept_q || sweeps != '0 || u_dut.u_state_wake.lost || u_dut.u_rnr_wake.lost;
    if (rst_i) begin
      calls_in_q <= '0;
      skid_in_q <= '0;
      swept_q <= 1'b0;
    end
  end

  // ------------------------------------------------------------------------------ properties
  always_ff @(posedge clk_i) begin
    if (!past_q) a_starts_in_reset: assume (rst_i);
    if (past_q) a_constant: assume (watched == $past(watched));
    if (past_q && !$past(rst_i)) begin
      a_wake_stays: assume (($past(wake_valid_i & ~wake_ready) & ~wake_valid_i) == '0);
    end

    if (past_q && !rst_i) begin
      p_ready: assert (ready || 32'(ready_count_q) < QPS);
      if (!after_reset && $past(ready)) p_stays_ready: assert (ready);
      p_requeue: assert (requeue_ready
                         == (ready && !(doorbell_valid_i
                                        && doorbell_i.kind == roci_pkg::DOORBELL_SQ)));

      // at most one place
      p_one_place: assert (one_place == '1);
      if (take_w) p_pops: assert (balance_q != '0);
      if (stands_w && !after_reset && !$past(stands_w && !pop_ready_i)) begin
        p_was_queued: assert ($past(queued_w && leave_w && !waits_q));
        p_woken: assert (pop.woken == $past(woken_q));
      end
      if (!after_reset && $past(stands_w && !pop_ready_i)) begin
        p_stable: assert (stands_w && pop.woken == $past(pop.woken));
      end

      // no lost wake-up
      if (!after_reset && $past(push_w)) p_push_is_queued: assert (seen[watched]);
      if (news_q) p_not_lost: assert (queued_w || stands_w || call_q || waits_q);
      if (woken_news_q) begin
        p_wake_not_lost: assert ((queued_w && woken_q) || (stands_w && pop.woken) || call_q
                                 || waits_q);
      end
      if (!after_reset && $past(leave_w && !waits_q)) p_offered: assert (stands_w);
      if (u_dut.head_valid && u_dut.head == watched && waits_q) p_taken_out: assert (leave_w);

      // soon
      if (call_q) p_wake_soon: assert (call_count_q < rank_t'(CALLS));
      if (queued_w) p_pop_soon: assert (queue_count_q < rank_t'(QPS));
      if (stands_w) p_take_soon: assert (stand_count_q <= rank_t'(QPS));

      // woken, producer, others
      if (wake_w && !swept_q) p_wake_came: assert (skid_in_q != '0);
      if (choice_w && !swept_q) begin
        p_call_came: assert ((call_out_w[0] && calls_in_q[0] != '0)
                             || (call_out_w[1] && calls_in_q[1] != '0) || stream_w != '0);
      end
      if (shown_q) p_producer: assert (producer == shown_index_q);
      if (others && !after_reset) p_others: assert (others_q);

      // ------------------------------------------------------------------ for the induction
      i_balance: assert (32'(balance_q) <= 2
                         && 3'(balance_q) >= 3'(queued_w) + 3'(stands_w));
      i_queued_bits: assert (queued_bits == '1);
      i_push_bits: assert (bits_fit == '1);
      i_woken_bits: assert (woken_bits && (queued_w || !woken_q));
      i_waiting: assert (waiting_bit == waits_q);
      if (known_q) i_last: assert (u_dut.u_producer.mem[watched] == last_q);
      if (queued_w) i_queue_rank: assert (queue_rank_fits);
      if (call_q) i_call_rank: assert (call_rank_fits);
      if (!swept_q) begin
        i_calls: assert (calls_in_q == calls_w);
        i_skid_in: assert (skid_in_q == skid_w);
        i_not_swept: assert (sweeps == '0);
      end

      i_sweep: assert (ready || (ready_count_q == 4'(sweep) && queued_q == '0 && stored == '0
                                 && !u_dut.head_valid && !pop_valid && !woken_q && !waits_q
                                 && !known_q && !shown_q && balance_q == '0));
      i_ready: assert (u_dut.u_queue.ready_q == u_dut.u_waiting.ready_q
                       && u_dut.u_queue.ready_q == u_dut.u_wake_bits_push.ready_q
                       && u_dut.u_queue.ready_q == u_dut.u_wake_bits_head.ready_q
                       && u_dut.u_queue.ready_q == u_dut.u_pop_bits_push.ready_q
                       && u_dut.u_queue.ready_q == u_dut.u_pop_bits_head.ready_q);
      i_sweeps: assert (sweep == u_dut.u_waiting.sweep_q
                        && sweep == u_dut.u_wake_bits_push.sweep_q
                        && sweep == u_dut.u_wake_bits_head.sweep_q
                        && sweep == u_dut.u_pop_bits_push.sweep_q
                        && sweep == u_dut.u_pop_bits_head.sweep_q);
      if (ready) i_past_reset: assert (!after_reset);
      i_between: assert (32'(stored) <= QPS && wptr == rptr + QP_BITS'(stored)
                         && 32'(u_dut.usage) == 32'(stored) + 32'(u_dut.head_valid)
                         && (u_dut.head_valid || stored <= 4'd1));
      i_not_full: assert (after_reset || u_dut.u_queue.fifo_ready == (32'(stored) != QPS));

      i_calls_fifo: assert (calls_fit == '1);
      i_no_sweep: assert (no_sweep_fits == '1);
      i_turn: assert (turn_fits == '1);
      if (after_reset) i_empty: assert (calls == '0 && choose == '0 && sweeps == '0);
      i_skid: assert (skid_two ? skid_one && !u_dut.u_wake.ready_q
                               : u_dut.u_wake.ready_q == !after_reset);
      if (after_reset) i_skid_empty: assert (!skid_one && !skid_two && !held);
      i_later: assert (later_fits && 32'(served_q) < SOURCES);
      if (held) begin
        i_held: assert (choice != '0 && (choice & (choice - 1'b1)) == '0
                        && (choice & u_dut.source_valid) != '0);
      end
    end

    if (past_q && !rst_i) begin
      c_both: cover (queued_w && woken_q && stands_w && !pop.woken);
      c_after_wait: cover (stands_w && pop.woken && forgotten_q);
      c_sweep: cover (wake_w && !call_q);
    end
  end

endmodule

`default_nettype wire
