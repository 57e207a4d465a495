// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_respond: sends what the responder owes: responses to READs and atomics, ACKs and NAKs, in PSN
// order per QP.
//
// What is owed is a row per QP (bounded state that always has room, rule 2). All changes of
// a row pass one pipeline: tokens that came out of the write stream, duplicates, failures, and
// walks. A walk decides the next packet of a QP from its row; responder_respond_rules has the
// rules.
//
//   0 choose   one operation, rows are read      1 rows arrive      2 rules, row written
//   3 packet   address and length of a READ response, into the output
//
// An atomic is answered when its result is in its replay entry; until then its QP sleeps.
//
// QPs that owe something stand in a queue, each once (rule 6). A popped QP is walked; if it has
// READ responses it is held in hand together with its replay entry for up to QUANTUM packets, three
// cycles each, then goes to the end of the queue if others wait. While a QP is in hand, one other
// QP is walked per packet, so that ACKs do not wait for long READs. Walks of QPs that owe only an
// ACK follow each other by one cycle.
//
// ACKs are coalesced: one ACK of a QP at a time is between its walk and the wire. What is owed
// meanwhile gathers in the row, and the report that the first one left (ethernet_tx, or
// ethernet_route if it does not go there) brings the QP into the queue again. An ACK that finds none
// before it leaves at once.
//
// Fence: each packet takes the colour at its walk, before the state is looked at.
// Column QP_RESP (hwif ctx_qp_resp). A state_error is raised at the walk, so tokens never wait.
// Neighbours: host_dma_write (tokens), responder_read (entries, duplicates), packet_tx_decide,
// ethernet_route, ethernet_tx (what left or failed) → here → packet_tx_arbiter, context_qp_state,
// responder_check.
`default_nettype none

module responder_respond #(
  parameter int unsigned QUANTUM = roci_config_pkg::QUANTUM_PACKETS
) (
  input  wire                                clk_i,
  input  wire                                rst_i,           // synchronous, active high

  input  wire roci_pkg::ctx_req_t            ctx_i,           // column QP_RESP
  output roci_pkg::ctx_rsp_t                 ctx_o,
  input  wire roci_pkg::state_bcast_t        state_i,
  input  wire roci_pkg::colour_t             colour_i,

  input  wire                                event_valid_i,   // never waits for transmit
  output logic                               event_ready_o,
  input  wire roci_pkg::respond_token_t      event_i,

  input  wire                                lower_valid_i,
  output logic                               lower_ready_o,
  input  wire responder_pkg::lower_t         lower_i,

  input  wire                                atomic_valid_i,  // an atomic is done, its entry is written
  output logic                               atomic_ready_o,
  input  wire roci_pkg::atomic_done_t        atomic_i,

  input  wire                                refused_valid_i,
  output logic                               refused_ready_o,
  input  wire roci_pkg::tx_refused_t         refused_i,
  input  wire                                done_valid_i,    // always accepted
  input  wire roci_pkg::tx_done_t            done_i,
  input  wire                                done_wire_i,     // ethernet_tx will tell when it left
  input  wire                                left_valid_i,    // always accepted
  input  wire roci_pkg::tx_done_t            left_i,          // left the buffer of ethernet_tx

  // replay entries: data REPLAY_LATENCY cycles later; this block has priority
  output logic                               entry_read_o,
  output roci_pkg::replay_slot_t             entry_slot_o,
  input  wire responder_pkg::replay_entry_t  entry_i,

  output logic                               item_valid_o,
  input  wire                                item_ready_i,
  output roci_pkg::tx_item_t                 item_o,

  output logic                               error_valid_o,
  input  wire                                error_ready_i,
  output roci_pkg::state_error_t             error_o,

  output roci_pkg::reads_answered_t          answered_o,      // always accepted

  output roci_pkg::fence_busy_t              fence_busy_o,
  output logic                               ready_o          // tables are cleared after reset
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam int unsigned OUT = 8;                 // packets decided and not taken
  localparam int unsigned OUT_BITS = $clog2(OUT + 1);
  localparam int unsigned QUANTUM_BITS = $clog2(QUANTUM + 1);

  typedef struct packed {
    logic valid;
    logic in_hand;                                 // WALK, SKIP of the QP in hand
    roci_pkg::colour_t colour;                     // WALK
    responder_pkg::respond_op_t op;
  } stage_t;

  // A decided packet without what is constant or computed at the output.
  typedef struct packed {
    logic is_read;                                 // or atomic
    roci_pkg::colour_t colour;
    roci_pkg::qp_t qp;
    roci_pkg::fn_t fn;
    roci_pkg::pd_t pd;
    logic [4:0] opcode;
    roci_pkg::psn_t psn;
    logic [23:0] msn;
    logic [7:0] syndrome;
    roci_pkg::packet_len_t length;
    roci_pkg::addr_t va;                           // atomic: result
    roci_pkg::mkey_t rkey;
    roci_pkg::replay_slot_t slot;
    logic again;                                   // READ: answered to its end before
  } packet_t;

  // -------------------------------------------------------------------------- stage 0: choose
  stage_t s0, s1_q, s2_q;

  logic ctx_start, ctx_busy_q;
  logic trouble_valid, trouble_ready, trouble_busy;
  responder_pkg::respond_op_t trouble_op;
  logic hand_valid, hand_skip;                     // the QP in hand asks for a WALK or SKIP
  logic hand_issue, pop_issue;                     // and gets it; a popped QP is walked
  logic pop_valid, pop_allowed;
  roci_pkg::qp_t pop_qp;
  logic walk_room;                                 // output and error have room for a packet
  logic event_last_q;                              // the last operation was a token
  logic left_valid, left_free;                     // the QP of an ACK that left
  roci_pkg::qp_t left_qp;
  logic free_ctx, free_trouble, free_event, free_lower, free_atomic, free_hand, free_pop;
  logic atomic_good, failed_ready;
  logic state_ready, queue_ready;

  roci_pkg::qp_t hand_qp_q;
  roci_pkg::read_ordinal_t hand_ordinal_q;

  assign ready_o = state_ready && queue_ready;

  // tokens take every second turn if somebody else wants one
  logic others_want;
  assign others_want = lower_valid_i || atomic_good || (hand_valid && walk_room)
                       || (pop_valid && pop_allowed);
  assign atomic_good = atomic_valid_i && !atomic_i.failed;

  // two operations of a QP keep two cycles distance: the row is written at the end of stage 2
  always_comb begin
    ctx_start = ctx_i.valid && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_QP_RESP && !ctx_busy_q
                && ready_o && !left_valid;
    left_free = !(s1_q.valid && s1_q.op.qp == left_qp);
    free_ctx = !(s1_q.valid && s1_q.op.qp == roci_pkg::qp_t'(ctx_i.index));
    free_trouble = !(s1_q.valid && s1_q.op.qp == trouble_op.qp);
    free_event = !(s1_q.valid && s1_q.op.qp == event_i.qp);
    free_lower = !(s1_q.valid && s1_q.op.qp == lower_i.qp);
    free_atomic = !(s1_q.valid && s1_q.op.qp == atomic_i.qp);
    free_hand = !(s1_q.valid && s1_q.op.qp == hand_qp_q);
    free_pop = !(s1_q.valid && s1_q.op.qp == pop_qp);

    s0 = '0;
    s0.colour = colour_i;
    s0.op.kind = responder_pkg::RESPOND_OP_WALK;
    event_ready_o = 1'b0;
    lower_ready_o = 1'b0;
    atomic_ready_o = atomic_i.failed && failed_ready;
    trouble_ready = 1'b0;
    hand_issue = 1'b0;
    pop_issue = 1'b0;

    if (!ready_o) begin
      // tables are being cleared
    end else if (left_valid) begin
      s0.valid = left_free;
      s0.op.kind = responder_pkg::RESPOND_OP_LEFT;
      s0.op.qp = left_qp;
    end else if (ctx_start) begin
      s0.valid = free_ctx;
      s0.op.kind = responder_pkg::RESPOND_OP_CTX;
      s0.op.qp = roci_pkg::qp_t'(ctx_i.index);
    end else if (trouble_valid) begin
      s0.valid = free_trouble;
      s0.op = trouble_op;
      trouble_ready = free_trouble;
    end else if (event_valid_i && free_event && !(event_last_q && others_want)) begin
      s0.valid = 1'b1;
      s0.op.kind = responder_pkg::RESPOND_OP_EVENT;
      s0.op.qp = event_i.qp;
      s0.op.error = event_i.error;
      s0.op.info = event_i.info;
      event_ready_o = 1'b1;
    end else if (lower_valid_i && free_lower) begin
      s0.valid = 1'b1;
      s0.op.kind = responder_pkg::RESPOND_OP_LOWER;
      s0.op.qp = lower_i.qp;
      s0.op.ordinal = lower_i.ordinal;
      s0.op.packet = lower_i.packet;
      lower_ready_o = 1'b1;
    end else if (atomic_good && free_atomic) begin
      s0.valid = 1'b1;
      s0.op.kind = responder_pkg::RESPOND_OP_ATOMIC;
      s0.op.qp = atomic_i.qp;
      atomic_ready_o = 1'b1;
    end else if (pop_valid && pop_allowed && free_pop) begin
      s0.valid = 1'b1;
      s0.op.qp = pop_qp;
      pop_issue = 1'b1;
    end else if (hand_valid && walk_room && free_hand) begin
      s0.valid = 1'b1;
      s0.in_hand = 1'b1;
      s0.op.kind = hand_skip ? responder_pkg::RESPOND_OP_SKIP : responder_pkg::RESPOND_OP_WALK;
      s0.op.qp = hand_qp_q;
      s0.op.ordinal = hand_ordinal_q;
      hand_issue = 1'b1;
    end
  end

  // ------------------------------------------------------------------------- ACKs that left
  // They go first. Two in a row of one source are never of one QP (the second says nothing new), so that
  // none but the first has to wait for its QP's last operation: there is always room.
  // From the wire one comes in two cycles at most; from loopback, or while the port is disabled, one in
  // every cycle (wide; narrow takes eight for the shortest packet), and the 16 that wait for the wire
  // beside them take at most two turns each.
  localparam int unsigned NEAR = roci_config_pkg::IS_WIDE ? 64 : 4;
  logic wire_in, wire_room, wire_valid, near_in, near_room, near_valid;
  logic [2:0] wire_usage;
  logic [$clog2(NEAR+1)-1:0] near_usage;
  roci_pkg::qp_t wire_last_q, near_last_q, wire_qp, near_qp;

  function automatic logic is_acknowledge(input roci_pkg::tx_done_t packet);
    return packet.source == roci_pkg::TX_RESPONSE
           && packet.wqe_index[responder_pkg::IS_ACKNOWLEDGE];
  endfunction

  assign wire_in = left_valid_i && is_acknowledge(left_i)
                   && !(wire_usage != '0 && left_i.qp == wire_last_q);
  assign near_in = done_valid_i && !done_wire_i && is_acknowledge(done_i)
                   && !(near_usage != '0 && done_i.qp == near_last_q);
  assign left_valid = wire_valid || near_valid;
  assign left_qp = wire_valid ? wire_qp : near_qp;

  common_fifo #(.WIDTH(roci_config_pkg::QP_BITS), .DEPTH(4)) u_left_wire (
    .clk_i, .rst_i,
    .in_valid_i(wire_in), .in_ready_o(wire_room), .in_i(left_i.qp),
    .out_valid_o(wire_valid), .out_ready_i(left_free && ready_o), .out_o(wire_qp),
    .usage_o(wire_usage)
  );
  common_fifo #(.WIDTH(roci_config_pkg::QP_BITS), .DEPTH(NEAR)) u_left_near (
    .clk_i, .rst_i,
    .in_valid_i(near_in), .in_ready_o(near_room), .in_i(done_i.qp),
    .out_valid_o(near_valid), .out_ready_i(left_free && ready_o && !wire_valid), .out_o(near_qp),
    .usage_o(near_usage)
  );

  always_ff @(posedge clk_i) begin
    if (wire_in) wire_last_q <= left_i.qp;
    if (near_in) near_last_q <= done_i.qp;
  end

  // ------------------------------------------------------------------------------------- rows
  logic [$bits(responder_pkg::respond_row_t)-1:0] row1_bits;
  logic [$bits(responder_pkg::respond_static_t)-1:0] static1_bits;
  logic [2:0] state1_bits;
  responder_pkg::respond_row_t row2_q, row_ruled, row_next;
  responder_pkg::respond_static_t static2_q, static_next;
  roci_pkg::qp_state_e state2_q;
  logic row_write, static_write;

  common_ram_sdp #(.WIDTH($bits(responder_pkg::respond_row_t)), .DEPTH(QPS)) u_rows (
    .clk_i, .we_i(row_write), .waddr_i(s2_q.op.qp), .wdata_i(row_next),
    .re_i(1'b1), .raddr_i(s0.op.qp), .rdata_o(row1_bits)
  );
  common_ram_sdp #(.WIDTH($bits(responder_pkg::respond_static_t)), .DEPTH(QPS)) u_static (
    .clk_i, .we_i(static_write), .waddr_i(s2_q.op.qp), .wdata_i(static_next),
    .re_i(1'b1), .raddr_i(s0.op.qp), .rdata_o(static1_bits)
  );
  common_ram_cleared #(.WIDTH(3), .DEPTH(QPS)) u_state (
    .clk_i, .rst_i, .ready_o(state_ready),
    .we_i(state_i.valid && state_ready), .waddr_i(state_i.qp), .wdata_i(state_i.state),
    .re_i(1'b1), .raddr_i(s0.op.qp), .rdata_o(state1_bits)
  );

  // ---------------------------------------------------------------------------- stage 2: rules
  logic entry_valid_q;                             // entry_q is of the QP in hand
  responder_pkg::replay_entry_t entry_q;
  logic hit2, undone2, wake2, walk2, ctx2;
  responder_pkg::respond_result_t result2;

  assign hit2 = entry_valid_q && s2_q.in_hand && entry_q.ordinal == row2_q.cursor;
  assign undone2 = responder_pkg::is_atomic(entry_q.length) && !entry_q.done;
  assign walk2 = s2_q.valid && s2_q.op.kind == responder_pkg::RESPOND_OP_WALK;
  assign ctx2 = s2_q.valid && s2_q.op.kind == responder_pkg::RESPOND_OP_CTX;

  responder_respond_rules u_rules (
    .op_i(s2_q.op), .state_i(state2_q), .row_i(row2_q),
    .hit_i(hit2), .entry_packets_i(entry_q.packets), .undone_i(undone2),
    .row_o(row_ruled), .wake_o(wake2), .result_o(result2)
  );

  // context bus, held while it passes
  roci_hwif_pkg::ctx_qp_resp_t ctx_now, ctx_new;
  logic ctx_restart;

  always_comb begin
    ctx_now = '0;
    ctx_now.pd = 16'(static2_q.pd);
    ctx_now.fn = 8'(static2_q.fn);
    ctx_now.mtu = roci_hwif_pkg::mtu_e'(static2_q.mtu);
    ctx_now.replay_log2 = static2_q.replay_log2;
    ctx_now.replay_base = 16'(static2_q.replay_base);
    ctx_now.good_psn = row2_q.good_psn;
    ctx_now.allowed = row2_q.allowed;
    ctx_now.cursor = row2_q.cursor;
    ctx_now.answered = row2_q.answered;
    ctx_now.acknowledge = row2_q.ack_valid;
    ctx_now.closed = row2_q.closed;

    ctx_new = ctx_now;
    if (ctx_i.word[0]) ctx_new[127:64] = ctx_i.wdata;
    else ctx_new[63:0] = ctx_i.wdata;
    static_next = '{pd: roci_pkg::pd_t'(ctx_new.pd), fn: roci_pkg::fn_t'(ctx_new.fn),
                    mtu: ctx_new.mtu, replay_log2: ctx_new.replay_log2,
                    replay_base: roci_pkg::replay_slot_t'(ctx_new.replay_base)};
    static_write = ctx2 && ctx_i.write && !ctx_i.word[0];
    ctx_restart = ctx2 && ctx_i.write && ctx_i.word[0];

    row_next = row_ruled;
    if (ctx2) begin
      row_next = '0;
      row_next.good_psn = ctx_new.good_psn;
    end
    row_write = s2_q.valid && (!ctx2 || ctx_restart);

    answered_o.valid = row_write && (row_next.answered != row2_q.answered || ctx_restart);
    answered_o.qp = s2_q.op.qp;
    answered_o.ordinal = row_next.answered;
  end

  always_ff @(posedge clk_i) begin
    s1_q <= s0;
    s2_q <= s1_q;
    row2_q <= responder_pkg::respond_row_t'(row1_bits);
    static2_q <= responder_pkg::respond_static_t'(static1_bits);
    state2_q <= roci_pkg::qp_state_e'(state1_bits);
    event_last_q <= event_valid_i && event_ready_o;

    ctx_busy_q <= (ctx_busy_q && !ctx_o.done) || (ctx_start && free_ctx);
    ctx_o.done <= ctx2;
    ctx_o.rdata <= !ctx2 ? '0 : ctx_i.word[0] ? ctx_now[127:64] : ctx_now[63:0];

    if (rst_i) begin
      s1_q.valid <= 1'b0;
      s2_q.valid <= 1'b0;
      event_last_q <= 1'b0;
      ctx_busy_q <= 1'b0;
      ctx_o <= '0;
    end
  end

  // ------------------------------------------------------------------- queue of QPs that owe
  logic requeue_in, requeue_valid, requeue_ready, requeue_room;
  roci_pkg::qp_t requeue_in_qp, requeue_qp;

  common_fifo #(.WIDTH(roci_config_pkg::QP_BITS), .DEPTH(8)) u_requeue (
    .clk_i, .rst_i,
    .in_valid_i(requeue_in), .in_ready_o(requeue_room), .in_i(requeue_in_qp),
    .out_valid_o(requeue_valid), .out_ready_i(requeue_ready), .out_o(requeue_qp), .usage_o()
  );
  assign requeue_ready = !(s2_q.valid && wake2);

  common_object_queue #(.N(QPS)) u_queue (
    .clk_i, .rst_i,
    .push_valid_i((s2_q.valid && wake2) || requeue_valid), .push_ready_o(queue_ready),
    .push_i(s2_q.valid && wake2 ? s2_q.op.qp : requeue_qp), .push_new_o(),
    .pop_valid_o(pop_valid), .pop_ready_i(pop_issue), .pop_o(pop_qp), .usage_o()
  );

  // ------------------------------------------------------------------------------ the QP in hand
  typedef enum logic [2:0] {
    HAND_EMPTY, HAND_WALK, HAND_WAIT, HAND_FETCH, HAND_ENTRY, HAND_SKIP, HAND_SKIP_WAIT
  } hand_e;
  hand_e hand_q;
  logic [QUANTUM_BITS-1:0] quantum_q;              // packets left
  roci_pkg::replay_slot_t hand_slot_q;             // entry to fetch
  logic [1:0] entry_wait_q;
  logic side_q;                                    // another QP may be walked beside
  logic [1:0] pops_q;                              // walks of popped QPs on their way
  roci_pkg::replay_slot_t slot2;
  logic trouble_read;
  roci_pkg::replay_slot_t trouble_slot;

  logic yields;                                    // the quantum is over and others wait
  logic [7:0] ring2;

  assign hand_valid = hand_q == HAND_WALK || hand_q == HAND_SKIP;
  assign hand_skip = hand_q == HAND_SKIP;
  // at most three results of popped QPs and one more may have to be queued again meanwhile
  assign pop_allowed = walk_room && !requeue_valid && pops_q != 2'd3
                       && (hand_q == HAND_EMPTY || side_q);

  always_comb begin
    ring2 = row2_q.cursor & ~(8'hff << static2_q.replay_log2);
    slot2 = static2_q.replay_base | roci_pkg::replay_slot_t'(ring2);
    yields = quantum_q == '0 && pop_valid;

    requeue_in = 1'b0;
    requeue_in_qp = s2_q.op.qp;
    if (walk2 && s2_q.in_hand) requeue_in = result2.emit && result2.more && yields;
    else if (walk2) requeue_in = result2.more && hand_q != HAND_EMPTY;

    entry_read_o = hand_q == HAND_FETCH || trouble_read;
    entry_slot_o = hand_q == HAND_FETCH ? hand_slot_q : trouble_slot;
  end

  always_ff @(posedge clk_i) begin
    pops_q <= pops_q + 2'(pop_issue) - 2'(walk2 && !s2_q.in_hand);
    if (pop_issue) side_q <= 1'b0;
    if (walk2 && s2_q.in_hand && result2.emit) side_q <= 1'b1;

    unique case (hand_q)
      HAND_WALK: if (hand_issue) hand_q <= HAND_WAIT;
      HAND_WAIT: begin
        if (walk2 && s2_q.in_hand) begin
          if (result2.miss) begin
            hand_q <= HAND_FETCH;
            hand_slot_q <= slot2;
            hand_ordinal_q <= row2_q.cursor;
            entry_valid_q <= 1'b0;
          end else if (!result2.more || yields) begin
            hand_q <= HAND_EMPTY;
          end else begin
            hand_q <= HAND_WALK;
          end
          if (result2.emit) quantum_q <= quantum_q == '0 ? QUANTUM_BITS'(QUANTUM - 1)
                                                         : quantum_q - 1'b1;
        end
      end
      HAND_FETCH: begin
        hand_q <= HAND_ENTRY;
        entry_wait_q <= 2'(responder_pkg::REPLAY_LATENCY - 1);
      end
      HAND_ENTRY: begin
        entry_wait_q <= entry_wait_q - 2'd1;
        entry_q <= entry_i;
        if (entry_wait_q == 2'd0) begin
          entry_valid_q <= entry_i.ordinal == hand_ordinal_q;
          hand_q <= entry_i.ordinal == hand_ordinal_q ? HAND_WALK : HAND_SKIP;
        end
      end
      HAND_SKIP: if (hand_issue) hand_q <= HAND_SKIP_WAIT;
      HAND_SKIP_WAIT: if (s2_q.valid && s2_q.in_hand) hand_q <= HAND_WALK;
      default: begin
        if (walk2 && result2.more) begin
          hand_qp_q <= s2_q.op.qp;
          quantum_q <= QUANTUM_BITS'(QUANTUM - 1);
          side_q <= 1'b0;
          entry_valid_q <= 1'b0;
          hand_slot_q <= slot2;
          hand_ordinal_q <= row2_q.cursor;
          hand_q <= result2.miss ? HAND_FETCH : HAND_WALK;
        end
      end
    endcase

    // a QP that starts afresh has other entries
    if (ctx_restart && s2_q.op.qp == hand_qp_q) entry_valid_q <= 1'b0;

    if (rst_i) begin
      hand_q <= HAND_EMPTY;
      side_q <= 1'b0;
      pops_q <= '0;
      entry_valid_q <= 1'b0;
    end
  end

  responder_trouble u_trouble (
    .clk_i, .rst_i,
    .refused_valid_i, .refused_ready_o, .refused_i, .done_valid_i, .done_i,
    .failed_valid_i(atomic_valid_i && atomic_i.failed), .failed_ready_o(failed_ready),
    .failed_i(atomic_i),
    .entry_read_o(trouble_read), .entry_granted_i(hand_q != HAND_FETCH),
    .entry_slot_o(trouble_slot), .entry_i,
    .op_valid_o(trouble_valid), .op_ready_i(trouble_ready), .op_o(trouble_op),
    .busy_o(trouble_busy)
  );

  // --------------------------------------------------------------------------- stage 3: packet
  logic emit3_q, is_read3_q, first3_q, last3_q, again3_q;
  roci_pkg::colour_t colour3_q;
  roci_pkg::qp_t qp3_q;
  responder_pkg::respond_static_t static3_q;
  roci_pkg::psn_t psn3_q;                          // ACK: psn, READ: first PSN
  logic [23:0] msn3_q, number3_q;                  // number of the packet within the READ
  logic [7:0] syndrome3_q;
  roci_pkg::addr_t va3_q;
  roci_pkg::mkey_t rkey3_q;
  logic [31:0] length3_q;
  roci_pkg::replay_slot_t slot3_q;

  always_ff @(posedge clk_i) begin
    emit3_q <= walk2 && result2.emit;
    is_read3_q <= result2.is_read;
    first3_q <= result2.first;
    last3_q <= result2.last;
    again3_q <= result2.again;
    colour3_q <= s2_q.colour;
    qp3_q <= s2_q.op.qp;
    static3_q <= static2_q;
    psn3_q <= result2.is_read ? entry_q.first_psn : row2_q.ack_psn;
    msn3_q <= result2.is_read ? entry_q.msn : row2_q.ack_msn;
    syndrome3_q <= result2.is_read ? responder_pkg::SYNDROME_ACK : row2_q.ack_syndrome;
    number3_q <= row2_q.packet;
    va3_q <= entry_q.va;
    rkey3_q <= entry_q.rkey;
    length3_q <= entry_q.length;
    slot3_q <= slot2;
    if (rst_i) emit3_q <= 1'b0;
  end

  logic [31:0] offset3;
  packet_t packet3, packet_out;
  logic [$bits(packet_t)-1:0] packet_bits;

  always_comb begin
    unique case (static3_q.mtu)
      3'd1: offset3 = {number3_q, 8'd0};
      3'd2: offset3 = {number3_q[22:0], 9'd0};
      3'd3: offset3 = {number3_q[21:0], 10'd0};
      3'd4: offset3 = {number3_q[20:0], 11'd0};
      default: offset3 = {number3_q[19:0], 12'd0};
    endcase
    packet3.is_read = is_read3_q;
    packet3.colour = colour3_q;
    packet3.qp = qp3_q;
    packet3.fn = static3_q.fn;
    packet3.pd = static3_q.pd;
    packet3.psn = psn3_q;
    packet3.msn = msn3_q;
    packet3.syndrome = syndrome3_q;
    packet3.va = va3_q + 64'(offset3);
    packet3.rkey = rkey3_q;
    packet3.slot = slot3_q;
    packet3.again = again3_q;
    packet3.length = '0;
    packet3.opcode = responder_pkg::OP_ACKNOWLEDGE;
    if (is_read3_q && responder_pkg::is_atomic(length3_q)) begin
      packet3.opcode = responder_pkg::OP_ATOMIC_ACK;
    end else if (is_read3_q) begin
      packet3.psn = psn3_q + number3_q;
      packet3.length = last3_q ? 13'(length3_q - offset3) : 13'd128 << static3_q.mtu;
      packet3.opcode = first3_q && last3_q ? responder_pkg::OP_READ_RESP_ONLY
                     : first3_q ? responder_pkg::OP_READ_RESP_FIRST
                     : last3_q ? responder_pkg::OP_READ_RESP_LAST
                               : responder_pkg::OP_READ_RESP_MIDDLE;
    end
  end

  logic packet_room;
  common_fifo #(.WIDTH($bits(packet_t)), .DEPTH(OUT)) u_out (
    .clk_i, .rst_i,
    .in_valid_i(emit3_q), .in_ready_o(packet_room), .in_i(packet3),
    .out_valid_o(item_valid_o), .out_ready_i(item_ready_i), .out_o(packet_bits), .usage_o()
  );
  assign packet_out = packet_t'(packet_bits);

  always_comb begin
    item_o = '0;
    item_o.last = 1'b1;
    item_o.has_piece = packet_out.is_read && packet_out.length != '0;
    item_o.piece.access = roci_pkg::ACCESS_REMOTE_READ;
    item_o.piece.key = packet_out.rkey;
    item_o.piece.length = 32'(packet_out.length);
    item_o.piece.va = packet_out.va;
    if (!item_o.has_piece) item_o.piece = '0;
    item_o.desc.colour = packet_out.colour;
    item_o.desc.source = roci_pkg::TX_RESPONSE;
    item_o.desc.qp = packet_out.qp;
    item_o.desc.fn = packet_out.fn;
    item_o.desc.pd = packet_out.pd;
    item_o.desc.opcode = {3'd0, packet_out.opcode};
    item_o.desc.psn = packet_out.psn;
    item_o.desc.payload_length = packet_out.length;
    item_o.desc.va = packet_out.va;            // AtomicAckETH
    item_o.desc.syndrome = packet_out.syndrome;
    item_o.desc.msn = packet_out.msn;
    item_o.desc.wqe_index = 16'd1 << responder_pkg::IS_ACKNOWLEDGE;
    if (packet_out.is_read) begin
      item_o.desc.wqe_index = 16'(packet_out.slot);
      item_o.desc.wqe_index[roci_pkg::RESPONSE_AGAIN] = packet_out.again;
    end
  end

  // ---------------------------------------------------------------------------------- requests for
  // ERR
  logic error_room;
  logic [2:0] error_usage;
  roci_pkg::state_error_t error_in;
  logic [$bits(roci_pkg::state_error_t)-1:0] error_bits;

  assign error_in = '{send_only: 1'b0, qp: s2_q.op.qp, event_valid: 1'b1,
                      event_type: row2_q.error_access ? roci_hwif_pkg::EQE_TYPE_QP_ACCESS_ERROR
                                                      : roci_hwif_pkg::EQE_TYPE_QP_FATAL};
  common_fifo #(.WIDTH($bits(roci_pkg::state_error_t)), .DEPTH(4)) u_errors (
    .clk_i, .rst_i,
    .in_valid_i(walk2 && result2.error), .in_ready_o(error_room), .in_i(error_in),
    .out_valid_o(error_valid_o), .out_ready_i(error_ready_i), .out_o(error_bits),
    .usage_o(error_usage)
  );
  assign error_o = roci_pkg::state_error_t'(error_bits);

  // ------------------------------------------------------------ room for packets, fence counts
  // A walk holds a place from its choice on; it is given back if it sends nothing, or with the
  // packet.
  logic [OUT_BITS-1:0] reserved_q;
  logic [1:0][OUT_BITS-1:0] held_q;
  logic walk_issue, walk_void, packet_gone;

  always_comb begin
    walk_room = reserved_q != OUT_BITS'(OUT) && error_usage <= 3'd1;
    walk_issue = pop_issue || (hand_issue && !hand_skip);
    walk_void = walk2 && !result2.emit;
    packet_gone = item_valid_o && item_ready_i;
    fence_busy_o = {held_q[1] != '0 || trouble_busy, held_q[0] != '0 || trouble_busy};
  end

  always_ff @(posedge clk_i) begin
    reserved_q <= reserved_q + OUT_BITS'(walk_issue) - OUT_BITS'(walk_void)
                  - OUT_BITS'(packet_gone);
    for (int unsigned c = 0; c < 2; c++) begin
      held_q[c] <= held_q[c] + OUT_BITS'(walk_issue && colour_i == 1'(c))
          - OUT_BITS'(walk_void && s2_q.colour == 1'(c))
          - OUT_BITS'(packet_gone && packet_out.colour == 1'(c));
    end
    if (rst_i) begin
      reserved_q <= '0;
      held_q <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (s1_q.valid && s2_q.valid) assert (s1_q.op.qp != s2_q.op.qp);
      if (emit3_q) assert (packet_room);
      if (requeue_in) assert (requeue_room);
      if (wire_in) assert (wire_room);
      if (near_in) assert (near_room);
      if (walk2 && result2.error) assert (error_room);
      if (walk2 && s2_q.in_hand) assert (hand_q == HAND_WAIT);
    end
  end

endmodule

`default_nettype wire
