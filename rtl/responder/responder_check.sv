// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_check: the pipeline in which received requests are judged, in frame order.
//
//   0 choose   frame or flush; the static row is read
//   1 static   static row arrives → where the receives of this QP come from
//   2 read     reads dynamic row, receive queue, state, answered READs
//   3 rows     they arrive; the receive WQE's length is read
//   4 judge    responder_judge decides; row and receive index are written; the action leaves
//
// A request of a QP (or of a shared receive queue) follows another one by two cycles: stage 2 waits
// while stage 3 holds the same QP or queue, and the RAMs forward a row that is written while it is
// read. Requests of different QPs follow each other by one cycle.
// The pipeline stands still while the receive WQE for the request in stage 4 is on its way to its
// slot (posted, not landed); under `pressure_i`, or after 8,192 cycles, it is dropped as lost instead.
//
// Context bus accesses to QP_RQ and QP_RQ_DYN and flushes of receive WQEs pass through the same
// stages, so that each table has one reader and one writer.
// QP_RQ_DYN of a QP is written in RESET and INIT, QP_RQ also beside traffic (rights, timer).
//
// Does not: check addresses, touch payload. Neighbours: packet_rx_dispatch, queue_rq_fetch,
// responder_flush → here → responder_read, responder_receive.
`default_nettype none

module responder_check (
  input  wire                             clk_i,
  input  wire                             rst_i,           // synchronous, active high

  input  roci_pkg::ctx_req_t              ctx_i,           // columns QP_RQ, QP_RQ_DYN
  output roci_pkg::ctx_rsp_t              ctx_o,

  // good frames of live QPs
  input  wire                             packet_valid_i,
  output logic                            packet_ready_o,
  input  roci_pkg::rx_packet_t            packet_i,

  // a QP in ERR whose next receive WQE is to be flushed
  input  wire                             flush_valid_i,
  output logic                            flush_ready_o,
  input  roci_pkg::qp_t                   flush_i,
  output logic                            flush_done_o,    // the flush has passed (one cycle)
  output logic                            flush_more_o,    // then: it had one, look again
  output logic                            flush_frame_valid_o,  // to be counted like a frame
  output roci_pkg::colour_t               flush_frame_o,

  input  roci_pkg::state_bcast_t          state_i,
  input  roci_pkg::colour_t               colour_i,
  input  roci_pkg::reads_answered_t       answered_i,
  input  wire                             pressure_i,      // packet buffer is above half

  // receive queues: address in, answer in the next cycle, held until the next look
  output logic                            look_valid_o,
  output roci_pkg::rq_number_t            look_queue_o,
  input  roci_pkg::rq_look_t              look_i,
  output logic                            take_valid_o,    // always accepted
  output roci_pkg::rq_entry_t             take_o,          // index = next one to take from now on
  input  roci_pkg::rq_landed_t            landed_i,
  output logic                            total_read_o,    // bytes of the receive WQE in this slot:
  output roci_pkg::slot_word_address_t    total_slot_o,    // answer in the next cycle, held
  input  wire [31:0]                      total_i,

  output logic                            action_valid_o,
  input  wire                             action_ready_i,
  output responder_pkg::action_t          action_o,

  output logic                            event_valid_o,   // COMM_EST
  input  wire                             event_ready_i,
  output roci_pkg::event_t                event_o,

  // counters, one pulse per event
  output logic                            count_wait_o,    // cycles spent waiting for a receive WQE
  output logic                            count_lost_o,    // dropped as lost
  output logic                            count_rnr_o,     // RNR NAKs
  output logic                            count_gap_o,     // requests after a gap
  output logic                            count_duplicate_o, // duplicate requests
  output logic                            count_no_receive_o, // UC, UD: no receive WQE
  output logic                            count_too_long_o,  // UC, UD: receive buffer too short
  output logic                            count_given_up_o,  // UC: message broken off

  output roci_pkg::fence_busy_t           fence_busy_o,    // flushes (frames: dispatch)
  output logic                            ready_o          // tables are cleared after reset
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;

  typedef struct packed {
    logic valid;
    responder_pkg::request_t request;
  } stage_t;

  // ------------------------------------------------------------------------------------ stages
  stage_t p0, p1_q, p2_q, p3_q, p4_q;
  logic advance1, advance2, advance3, advance4;    // stage n takes what stage n-1 has
  logic done4;                                     // stage 4 is finished in this cycle

  responder_pkg::static_row_t static1, static2_q, static3_q, static4_q;
  logic [$bits(responder_pkg::static_row_t)-1:0] static1_bits;
  responder_pkg::dyn_row_t row3, row4_q, row_next;
  logic [$bits(responder_pkg::dyn_row_t)-1:0] row3_bits;
  roci_pkg::read_ordinal_t answered3, answered4_q;
  roci_pkg::qp_state_e state4_q;
  logic [2:0] state3_ram;
  roci_pkg::qp_state_e state3, state3_over_q;
  logic state3_over_valid_q;                       // a broadcast came while in stage 3
  roci_pkg::rq_look_t look3, look4_q;
  logic landed3_q;                                 // a WQE of the queue landed since the look
  roci_pkg::rq_number_t queue2, queue3_q, queue4_q;
  logic uses_queue2, uses_queue3_q, uses_queue4_q;
  logic [23:0] packets3, packets4_q;
  responder_pkg::static_row_t static_next;         // what stage 4 writes
  logic write_static, write_row;

  function automatic roci_pkg::rq_number_t queue_of(input roci_pkg::qp_t qp,
                                                    input responder_pkg::static_row_t row);
    return row.has_srq ? {1'b1, roci_config_pkg::QP_BITS'(row.srqn[roci_config_pkg::SRQ_BITS-1:0])}
                       : {1'b0, qp};
  endfunction

  // Requests that may take a receive WQE: SEND_FIRST/ONLY*, WRITE_*_IMM, flushes.
  function automatic logic uses_queue(input responder_pkg::request_t request);
    return request.kind == responder_pkg::REQUEST_FLUSH
           || (request.kind == responder_pkg::REQUEST_FRAME
               && (request.op == responder_pkg::OP_SEND_FIRST
                   || request.op == responder_pkg::OP_SEND_ONLY
                   || request.op == responder_pkg::OP_SEND_ONLY_IMM
                   || request.op == responder_pkg::OP_WRITE_LAST_IMM
                   || request.op == responder_pkg::OP_WRITE_ONLY_IMM));
  endfunction

  // ------------------------------------------------------------------------------- context bus
  // An access does not wait for the requests before it, which the host may hold up: the pipeline stands
  // still for two cycles. In the first the rows are read for it, in the second they are there, are
  // written, and those of the requests in stages 1 and 3 are read again. The static row may be written
  // beside requests of its QP: those that have read it go on as if they had come before. A write of
  // the dynamic row, which such a request would write back as it was, waits until they are gone, and
  // lets none in (the firmware writes it only where none can come).
  logic ctx_static, ctx_dyn, ctx_start, ctx_waits, ctx_held;
  logic still_q, access_q, still;          // first and second cycle

  function automatic logic of_ctx(input stage_t stage);
    return stage.valid && stage.request.qp == roci_pkg::qp_t'(ctx_i.index);
  endfunction

  always_comb begin
    ctx_static = ctx_i.column == roci_hwif_pkg::CTX_COLUMN_QP_RQ;
    ctx_dyn = ctx_i.column == roci_hwif_pkg::CTX_COLUMN_QP_RQ_DYN;
    still = still_q || access_q;
    ctx_waits = ctx_i.valid && ctx_dyn && ctx_i.write && !ctx_o.done;
    ctx_held = ctx_waits && (of_ctx(p1_q) || of_ctx(p2_q) || of_ctx(p3_q) || of_ctx(p4_q));
    ctx_start = ctx_i.valid && (ctx_static || ctx_dyn) && !still && !ctx_o.done && ready_o
                && !ctx_held;
  end

  // ------------------------------------------------------------------------------ stage 0: choose
  // A flush waits for a cycle without a frame, or until 32 have passed it: one doorbell of a queue pair
  // in ERR can bring thousands of flushes, and none of them may cost the others their rate.
  localparam int unsigned PASSED_BITS = 6;
  logic [PASSED_BITS-1:0] passed_q;        // frames that went before the flush that waits
  logic flush_turn;

  always_comb begin
    p0 = '0;
    p0.request.kind = responder_pkg::REQUEST_FRAME;
    p0.request.colour = packet_i.colour;
    p0.request.qp = packet_i.qp;
    p0.request.fn = packet_i.fn;
    p0.request.op = packet_i.headers.opcode[4:0];
    p0.request.ackreq = packet_i.headers.ackreq;
    p0.request.solicited = packet_i.headers.solicited;
    p0.request.pad = packet_i.headers.pad_count != 2'd0;
    p0.request.vlan_valid = packet_i.headers.vlan_valid;
    p0.request.tci = packet_i.headers.tci;
    p0.request.psn = packet_i.headers.psn;
    p0.request.payload_length = packet_i.headers.payload_length;
    p0.request.va = packet_i.headers.va;
    p0.request.rkey = packet_i.headers.rkey;
    p0.request.dma_length = packet_i.headers.dma_length;
    p0.request.imm = packet_i.headers.imm;

    flush_turn = flush_valid_i && (!packet_valid_i || passed_q[PASSED_BITS-1]);
    if (flush_turn) begin
      p0 = '0;
      p0.valid = ready_o && !ctx_waits;
      p0.request.kind = responder_pkg::REQUEST_FLUSH;
      p0.request.colour = colour_i;
      p0.request.qp = flush_i;
    end else begin
      p0.valid = packet_valid_i && ready_o && !ctx_waits;
    end
    flush_ready_o = advance1 && ready_o && !ctx_waits
                    && (!packet_valid_i || passed_q[PASSED_BITS-1]);
    packet_ready_o = advance1 && ready_o && !ctx_waits && !flush_turn;
  end

  always_ff @(posedge clk_i) begin
    if (!flush_valid_i || flush_ready_o) passed_q <= '0;
    else if (packet_valid_i && packet_ready_o) passed_q <= passed_q + 1'b1;
  end

  common_ram_sdp #(.WIDTH($bits(responder_pkg::static_row_t)), .DEPTH(QPS)) u_static (
    .clk_i,
    .we_i(write_static), .waddr_i(roci_pkg::qp_t'(ctx_i.index)), .wdata_i(static_next),
    .re_i(advance1 || still),
    .raddr_i(still_q ? roci_pkg::qp_t'(ctx_i.index) : access_q ? p1_q.request.qp : p0.request.qp),
    .rdata_o(static1_bits)
  );
  assign static1 = responder_pkg::static_row_t'(static1_bits);

  // ------------------------------------------------------------------------ stage 2: read the rows
  logic conflict2;

  assign queue2 = queue_of(p2_q.request.qp, static2_q);
  assign uses_queue2 = uses_queue(p2_q.request);

  always_comb begin
    conflict2 = (p3_q.valid && (p3_q.request.qp == p2_q.request.qp
                                || (uses_queue2 && uses_queue3_q && queue3_q == queue2)))
             || (p4_q.valid && !done4
                 && (p4_q.request.qp == p2_q.request.qp
                     || (uses_queue2 && uses_queue4_q && queue4_q == queue2)));
    advance4 = !still && (!p4_q.valid || done4);
    advance3 = !still && (!p3_q.valid || advance4);
    advance2 = !still && (!p2_q.valid || (advance3 && !conflict2));
    advance1 = !still && (!p1_q.valid || advance2);
  end

  logic read2;
  assign read2 = p2_q.valid && advance3 && !conflict2;
  assign look_valid_o = read2;
  assign look_queue_o = queue2;

  common_ram_sdp #(.WIDTH($bits(responder_pkg::dyn_row_t)), .DEPTH(QPS)) u_rows (
    .clk_i,
    .we_i(write_row), .waddr_i(access_q ? roci_pkg::qp_t'(ctx_i.index) : p4_q.request.qp),
    .wdata_i(row_next),
    .re_i(read2 || still),
    .raddr_i(still_q ? roci_pkg::qp_t'(ctx_i.index) : access_q ? p3_q.request.qp : p2_q.request.qp),
    .rdata_o(row3_bits)
  );
  assign row3 = responder_pkg::dyn_row_t'(row3_bits);

  common_ram_cleared #(.WIDTH(3), .DEPTH(QPS)) u_state (
    .clk_i, .rst_i, .ready_o(ready_o),
    .we_i(state_i.valid && ready_o), .waddr_i(state_i.qp), .wdata_i(state_i.state),
    .re_i(read2), .raddr_i(p2_q.request.qp), .rdata_o(state3_ram)
  );

  common_ram_sdp #(.WIDTH(8), .DEPTH(QPS)) u_answered (
    .clk_i,
    .we_i(answered_i.valid), .waddr_i(answered_i.qp), .wdata_i(answered_i.ordinal),
    .re_i(read2), .raddr_i(p2_q.request.qp), .rdata_o(answered3)
  );

  // ----------------------------------------------------------------------------- stage 3: rows
  // What changes while a request stands in stage 3 or 4 is taken along.
  logic landed2, landed3, landed4;

  assign landed2 = landed_i.valid && landed_i.rq == queue2;
  assign landed3 = landed_i.valid && landed_i.rq == queue3_q;
  assign landed4 = landed_i.valid && landed_i.rq == queue4_q;

  always_comb begin
    look3 = look_i;
    look3.ready = look_i.ready || landed3_q || landed3;
    state3 = roci_pkg::qp_state_e'(state3_ram);
    if (state3_over_valid_q) state3 = state3_over_q;
    if (state_i.valid && state_i.qp == p3_q.request.qp) state3 = state_i.state;
  end

  // response packets of a READ: max(1, ceil(length / PMTU)) (wire.md 2.1)
  logic [31:0] round3;
  always_comb begin
    round3 = p3_q.request.dma_length + ((32'd128 << static3_q.mtu) - 32'd1);
    unique case (static3_q.mtu)
      3'd1: packets3 = round3[31:8];
      3'd2: packets3 = {1'b0, round3[31:9]};
      3'd3: packets3 = {2'b0, round3[31:10]};
      3'd4: packets3 = {3'b0, round3[31:11]};
      default: packets3 = {4'b0, round3[31:12]};
    endcase
    if (p3_q.request.dma_length == 32'd0) packets3 = 24'd1;
  end

  // ---------------------------------------------------------------------------- stage 4: judge
  // A slot that never lands must not hold the frames of all others: after 8,192 cycles it is as under
  // pressure.
  localparam int unsigned WAIT_BITS = 14;
  logic [WAIT_BITS-1:0] wait_q;
  logic wait4, verdict_valid, take, established, lost, rnr, gap, duplicate;
  logic no_receive, too_long, given_up;
  logic out_free;
  responder_pkg::action_t verdict;
  responder_pkg::dyn_row_t row_judged;
  logic [63:0] ctx_rdata;
  roci_hwif_pkg::ctx_qp_rq_t ctx_static_now, ctx_static_new;
  roci_hwif_pkg::ctx_qp_rq_dyn_t ctx_dyn_now, ctx_dyn_new;

  responder_judge u_judge (
    .request_i(p4_q.request), .packets_i(packets4_q), .total_i, .state_i(state4_q),
    .static_i(static4_q),
    .row_i(row4_q), .look_i(look4_q), .queue_i(queue4_q), .answered_i(answered4_q),
    .pressure_i(pressure_i || wait_q[WAIT_BITS-1]), .event_ready_i(!event_valid_o),
    .wait_o(wait4), .action_valid_o(verdict_valid), .action_o(verdict), .row_o(row_judged),
    .take_o(take), .established_o(established), .lost_o(lost), .rnr_o(rnr),
    .gap_o(gap), .duplicate_o(duplicate),
    .no_receive_o(no_receive), .too_long_o(too_long), .given_up_o(given_up)
  );

  // Read for the request that comes to stage 4; and on while its WQE is not there: with the landing comes
  // its length.
  assign total_read_o = advance4 || !look4_q.ready;
  assign total_slot_o = advance4 ? look_i.slot : look4_q.slot;

  always_comb begin
    out_free = !action_valid_o || action_ready_i;
    done4 = p4_q.valid && !still && !wait4 && (!verdict_valid || out_free);

    take_valid_o = done4 && take;
    take_o = '{rq: queue4_q, index: look4_q.index + 16'd1};
    flush_done_o = done4 && p4_q.request.kind == responder_pkg::REQUEST_FLUSH;
    flush_more_o = verdict_valid && (verdict.take || verdict.use_current);
    flush_frame_valid_o = flush_done_o && verdict_valid;
    flush_frame_o = p4_q.request.colour;
    count_wait_o = p4_q.valid && wait4;
    count_lost_o = done4 && lost;
    count_rnr_o = done4 && rnr;
    count_gap_o = done4 && gap;
    count_duplicate_o = done4 && duplicate;
    count_no_receive_o = done4 && no_receive;
    count_too_long_o = done4 && too_long;
    count_given_up_o = done4 && given_up;
  end

  // context bus: one word of a row, as hwif lays it out
  always_comb begin

    ctx_static_now = '0;
    ctx_static_now.cq = 16'(static1.cq);
    ctx_static_now.pd = 16'(static1.pd);
    ctx_static_now.qpn = static1.qpn;
    ctx_static_now.qp_type = roci_hwif_pkg::qp_type_e'(static1.qp_type);
    ctx_static_now.mtu = roci_hwif_pkg::mtu_e'(static1.mtu);
    ctx_static_now.srqn = static1.srqn;
    ctx_static_now.has_srq = static1.has_srq;
    ctx_static_now.rights.remote_write = static1.remote_write;
    ctx_static_now.rights.remote_read = static1.remote_read;
    ctx_static_now.rights.remote_atomic = static1.remote_atomic;
    ctx_static_now.min_rnr_timer = static1.min_rnr_timer;
    ctx_static_now.replay_log2 = static1.replay_log2;
    ctx_static_now.replay_base = 16'(static1.replay_base);

    ctx_dyn_now = '0;
    ctx_dyn_now.next_psn = row3.next_psn;
    ctx_dyn_now.msn = row3.msn;
    ctx_dyn_now.message = row3.message;
    ctx_dyn_now.nak_sent = row3.nak_sent;
    ctx_dyn_now.closed = row3.closed;
    ctx_dyn_now.established = row3.established;
    ctx_dyn_now.held = row3.held;
    ctx_dyn_now.unacknowledged = row3.unacknowledged;
    ctx_dyn_now.acked_psn = row3.acked_psn;
    ctx_dyn_now.reads = row3.reads;

    if (ctx_static) begin
      ctx_rdata = ctx_i.word[0] ? ctx_static_now[127:64] : ctx_static_now[63:0];
    end else begin
      ctx_rdata = ctx_i.word[0] ? ctx_dyn_now[127:64] : ctx_dyn_now[63:0];
    end

    ctx_static_new = ctx_static_now;
    ctx_dyn_new = ctx_dyn_now;
    if (ctx_i.word[0]) begin
      ctx_static_new[127:64] = ctx_i.wdata;
      ctx_dyn_new[127:64] = ctx_i.wdata;
    end else begin
      ctx_static_new[63:0] = ctx_i.wdata;
      ctx_dyn_new[63:0] = ctx_i.wdata;
    end

    static_next.cq = roci_pkg::cq_t'(ctx_static_new.cq);
    static_next.pd = roci_pkg::pd_t'(ctx_static_new.pd);
    static_next.qpn = ctx_static_new.qpn;
    static_next.qp_type = ctx_static_new.qp_type;
    static_next.mtu = ctx_static_new.mtu;
    static_next.srqn = ctx_static_new.srqn;
    static_next.has_srq = ctx_static_new.has_srq;
    static_next.remote_write = ctx_static_new.rights.remote_write;
    static_next.remote_read = ctx_static_new.rights.remote_read;
    static_next.remote_atomic = ctx_static_new.rights.remote_atomic;
    static_next.min_rnr_timer = ctx_static_new.min_rnr_timer;
    static_next.replay_log2 = ctx_static_new.replay_log2;
    static_next.replay_base = roci_pkg::replay_slot_t'(ctx_static_new.replay_base);

    row_next = row_judged;
    if (access_q) begin
      row_next = row3;
      row_next.next_psn = ctx_dyn_new.next_psn;
      row_next.msn = ctx_dyn_new.msn;
      row_next.message = responder_pkg::message_e'(ctx_dyn_new.message);
      row_next.nak_sent = ctx_dyn_new.nak_sent;
      row_next.closed = ctx_dyn_new.closed;
      row_next.established = ctx_dyn_new.established;
      row_next.held = ctx_dyn_new.held;
      row_next.unacknowledged = ctx_dyn_new.unacknowledged;
      row_next.acked_psn = ctx_dyn_new.acked_psn;
      row_next.reads = ctx_dyn_new.reads;
    end
    write_static = access_q && ctx_static && ctx_i.write;
    write_row = done4 || (access_q && ctx_dyn && ctx_i.write);
  end

  // ---------------------------------------------------------------------------------- registers
  always_ff @(posedge clk_i) begin
    if (advance1) p1_q <= p0;
    if (advance2) begin
      p2_q <= p1_q;
      static2_q <= static1;
    end
    if (advance3) begin
      p3_q <= p2_q;
      p3_q.valid <= read2;
      static3_q <= static2_q;
      queue3_q <= queue2;
      uses_queue3_q <= uses_queue2;
      landed3_q <= landed2;
      state3_over_valid_q <= 1'b0;
    end else begin
      if (landed3) landed3_q <= 1'b1;
      if (state_i.valid && state_i.qp == p3_q.request.qp) begin
        state3_over_valid_q <= 1'b1;
        state3_over_q <= state_i.state;
      end
    end
    if (advance4) begin
      p4_q <= p3_q;
      static4_q <= static3_q;
      queue4_q <= queue3_q;
      uses_queue4_q <= uses_queue3_q;
      row4_q <= row3;
      look4_q <= look3;
      answered4_q <= answered3;
      state4_q <= state3;
      packets4_q <= packets3;
    end else begin
      if (landed4) look4_q.ready <= 1'b1;
      if (state_i.valid && state_i.qp == p4_q.request.qp) state4_q <= state_i.state;
    end

    if (!p4_q.valid || done4) wait_q <= '0;
    else if (wait4 && !wait_q[WAIT_BITS-1]) wait_q <= wait_q + 1'b1;

    if (out_free) begin
      action_valid_o <= done4 && verdict_valid;
      action_o <= verdict;
    end

    if (done4 && established) begin
      event_valid_o <= 1'b1;
      event_o <= '0;
      event_o.fn <= p4_q.request.fn;
      event_o.event_type <= roci_hwif_pkg::EQE_TYPE_COMM_EST;
      event_o.object <= static4_q.qpn;
    end else if (event_ready_i) begin
      event_valid_o <= 1'b0;
    end

    still_q <= ctx_start;
    access_q <= still_q;
    ctx_o.done <= access_q;
    ctx_o.rdata <= access_q ? ctx_rdata : '0;

    if (rst_i) begin
      p1_q.valid <= 1'b0;
      p2_q.valid <= 1'b0;
      p3_q.valid <= 1'b0;
      p4_q.valid <= 1'b0;
      action_valid_o <= 1'b0;
      event_valid_o <= 1'b0;
      still_q <= 1'b0;
      access_q <= 1'b0;
      ctx_o <= '0;
    end
  end

  function automatic roci_pkg::fence_busy_t busy_of(input stage_t stage);
    return stage.valid && stage.request.kind == responder_pkg::REQUEST_FLUSH
           ? {stage.request.colour, !stage.request.colour} : 2'b00;
  endfunction
  assign fence_busy_o = busy_of(p1_q) | busy_of(p2_q) | busy_of(p3_q) | busy_of(p4_q);

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      // rows of two requests in flight never meet
      if (p3_q.valid && p4_q.valid) assert (p3_q.request.qp != p4_q.request.qp);
      if (take_valid_o) assert (look4_q.ready);
      if (access_q) assert (ctx_i.valid);
    end
  end

endmodule

`default_nettype wire
