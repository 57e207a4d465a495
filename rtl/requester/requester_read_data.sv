// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_read_data: judges what the peer answers: READ responses, atomic acknowledgements, ACKs,
// NAKs.
//
// Per QP: the oldest READ that is not complete (its ordinal), the bytes of it that came, and how
// many READs were sent. So the next response expected is one number, and every packet is compared
// with it:
// - response at that PSN: accepted if kind and length fit (FIRST = MIDDLE: a full MTU and more to
//   come; ONLY = LAST: the rest; wire.md 2.4); its data goes to the SGEs of the READ and an event
//   READ follows behind it, which acknowledges everything up to its PSN;
// - response at that PSN of the other kind, or behind it: what is expected was lost. Dropped, with
//   an event IMPLIED_NAK for the expected PSN; the READ is asked for again from there;
// - response before it: duplicate, dropped;
// - ACK at or behind it, NAK behind it: implied NAK as well; nothing is acknowledged beyond a READ
//   whose data did not come (wire.md 2.4). NAKs for the READ itself pass. This holds for a fatal NAK
//   too: what it refused fails only after the READ, and that is asked for again in vain, for the
//   peer's QP is in ERR and silent. The QP ends with RETRY_EXC_ERR, the peer knows the reason;
// - response of wrong length: the peer is broken, the READ fails with BAD_RESP_ERR.
// An atomic is a READ of 8 bytes whose only response is the atomic acknowledgement; READ responses
// answer READs only.
// Progress is made only here, in order; a READ that is sent again changes nothing.
//
// One packet per cycle, of one QP every two. Every packet leaves at least one item, in order.
// Does not: look at PSNs that matter only to requester_ack (ghosts, never sent): an implied NAK
// carries the PSN that caused it, for that check.
// Neighbours: packet_rx_dispatch, requester_packetizer (records) → here → requester_read_pieces →
// packet_rx_commit. Column QP_READ: ctx_qp_read of hwif/contexts.toml.
`default_nettype none

module requester_read_data (
  input  wire                               clk_i,
  input  wire                               rst_i,

  // column QP_READ
  input  roci_pkg::ctx_req_t                ctx_i,
  output roci_pkg::ctx_rsp_t                ctx_o,

  input  wire                               packet_valid_i,
  output logic                              packet_ready_o,
  input  roci_pkg::rx_packet_t              packet_i,

  input  wire                               read_record_valid_i,
  output logic                              read_record_ready_o,  // always 1
  input  roci_pkg::read_record_write_t      read_record_i,

  output logic                              item_valid_o,
  input  wire                               item_ready_i,
  output roci_pkg::rx_item_t                item_o,

  output roci_pkg::response_counters_t      counters_o
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam int unsigned RECORDS = 2 ** roci_config_pkg::READ_BITS;
  localparam string STYLE = roci_config_pkg::IS_WIDE ? "block" : "distributed";

  typedef struct packed {
    roci_pkg::read_slot_t base;
    logic [3:0] log2;
    logic [2:0] mtu;
    roci_pkg::pd_t pd;
  } fixed_t;

  typedef struct packed {
    roci_pkg::read_ordinal_t head;       // the READ whose responses come next
    logic [31:0] received;               // bytes of it
  } row_t;

  typedef struct packed {
    logic atomic;
    roci_pkg::psn_t first_psn;
    logic [31:0] length;
  } match_t;

  // What is judged of a packet; also the context bus's look at a row.
  typedef struct packed {
    logic is_start;                      // context bus: nothing is outstanding from now on
    logic is_look;                       // context bus: read
    roci_pkg::colour_t colour;
    roci_pkg::qp_t qp;
    roci_pkg::fn_t fn;
    logic live;                          // RC in RTS or SQD
    logic [4:0] operation;
    roci_pkg::psn_t psn;
    logic [7:0] syndrome;
    logic [23:0] msn;
    roci_pkg::packet_len_t length;
  } look_t;

  // ------------------------------------------------------------------------------ state
  logic match_valid_q, judge_valid_q;
  look_t match_q, judge_q;               // stage 1: address of the record; stage 2: verdict
  row_t judge_row_q;
  fixed_t judge_fixed_q;
  roci_pkg::read_ordinal_t judge_tail_q;
  roci_pkg::psn_t judge_offset_q;        // PSNs of the oldest READ that came
  roci_pkg::psn_t judge_ahead_q;         // PSN of the packet less those
  logic tail_valid_q;
  roci_pkg::qp_t tail_qp_q;
  roci_pkg::read_ordinal_t tail_next_q;  // ordinal after the record
  logic ctx_taken_q, ctx_tail_q, ctx_row_q, ctx_done_q;
  logic [63:0] ctx_rdata_q;

  // ------------------------------------------------------------------------ context bus
  // The request is taken into registers, so that the bus is no part of any path inside.
  logic ctx_busy_q, ctx_write_q, ctx_first_q;
  logic [3:0] ctx_word_q;
  logic [63:0] ctx_data_q;
  roci_pkg::qp_t ctx_qp_q;
  roci_pkg::read_ordinal_t old_tail, beyond;
  logic tail_write;
  roci_hwif_pkg::ctx_qp_read_t ctx_row, look_row;
  logic ctx_start, ctx_wants, tail_init, ctx_taken, ctx_finished;
  fixed_t ctx_fixed;

  always_comb begin
    ctx_row = '0;
    ctx_row[63:0] = ctx_data_q;
    ctx_start = ctx_busy_q && ctx_write_q;
    ctx_wants = ctx_busy_q && !ctx_taken_q;
    // after a record that may still be on its way to the same port
    tail_init = ctx_start && !ctx_tail_q && !tail_write;
    ctx_fixed = '{base: roci_pkg::read_slot_t'(ctx_row.read_base), log2: ctx_row.read_log2,
                  mtu: ctx_row.path_mtu, pd: roci_pkg::pd_t'(ctx_row.pd)};
  end

  // -------------------------------------------------------------------- stage 0: what comes
  look_t look;
  logic look_valid, match_ready, judge_ready, wait_row;
  roci_pkg::qp_t row_qp;

  always_comb begin
    look = '0;
    if (ctx_wants) begin
      look.is_start = ctx_start;
      look.is_look = !ctx_start;
      look.qp = ctx_qp_q;
    end else begin
      look.colour = packet_i.colour;
      look.qp = packet_i.qp;
      look.fn = packet_i.fn;
      look.live = packet_i.qp_type == roci_pkg::QPT_RC
                  && (packet_i.state == roci_pkg::QPS_RTS || packet_i.state == roci_pkg::QPS_SQD);
      look.operation = packet_i.headers.opcode[4:0];
      look.psn = packet_i.headers.psn;
      look.syndrome = packet_i.headers.syndrome;
      look.msn = packet_i.headers.msn;
      look.length = packet_i.headers.payload_length;
    end
    look_valid = ctx_wants || packet_valid_i;
    ctx_taken = ctx_wants && match_ready;
    packet_ready_o = !ctx_wants && match_ready;
    // a packet that stays in stage 1 reads its row again
    row_qp = match_ready ? look.qp : match_q.qp;
  end

  // ------------------------------------------------------------ stage 1: address of the record
  row_t row;
  fixed_t fixed;
  roci_pkg::read_ordinal_t tail;
  roci_pkg::read_slot_t slot_mask, slot;
  roci_pkg::psn_t offset;

  always_comb begin
    // the packet before it is of the same QP and may change the row in this cycle
    wait_row = judge_valid_q && judge_q.qp == match_q.qp;
    match_ready = !match_valid_q || (judge_ready && !wait_row);
    slot_mask = roci_pkg::read_slot_t'((32'd1 << fixed.log2) - 32'd1);
    offset = 24'(row.received >> (4'd7 + 4'(fixed.mtu)));
    slot = fixed.base | (roci_pkg::read_slot_t'(row.head) & slot_mask);
  end

  // ------------------------------------------------------------------------- stage 2: verdict
  match_t match;
  row_t row_next;
  requester_pkg::read_verdict_t verdict;
  roci_pkg::response_counters_t counters;
  logic outstanding, is_response, is_atomic, is_ack, known_ack, says_last, is_last, good_aeth;
  logic later, is_next, past;
  logic row_write, verdict_ready;
  roci_pkg::ack_event_kind_e ack_kind;
  logic [12:0] mtu_bytes;
  logic [31:0] remaining, fitting;
  roci_pkg::psn_t expected, ahead;
  roci_pkg::read_slot_t judge_slot_q;

  always_comb begin
    row_next = judge_row_q;
    counters = '0;
    verdict = '0;
    verdict.colour = judge_q.colour;
    verdict.qp = judge_q.qp;
    verdict.fn = judge_q.fn;
    verdict.pd = judge_fixed_q.pd;
    verdict.psn = judge_q.psn;
    verdict.drop = 1'b1;
    verdict.slot = judge_slot_q;
    verdict.received = judge_row_q.received;
    verdict.length = judge_q.length;
    verdict.ack_event.psn = judge_q.psn;
    verdict.ack_event.msn = judge_q.msn;
    verdict.ack_event.syndrome = judge_q.syndrome;

    // 256 bytes << (mtu - 1)
    mtu_bytes = 13'd128 << judge_fixed_q.mtu;
    outstanding = judge_row_q.head != judge_tail_q;
    expected = match.first_psn + judge_offset_q;
    ahead = judge_ahead_q - match.first_psn;
    remaining = match.length - judge_row_q.received;
    is_last = remaining <= 32'(mtu_bytes);
    fitting = is_last ? remaining : 32'(mtu_bytes);

    is_next = outstanding && ahead == '0;
    later = outstanding && ahead != '0 && !ahead[23];
    past = !outstanding || ahead[23];

    is_ack = judge_q.operation == roci_hwif_pkg::OPERATION_ACKNOWLEDGE;
    is_atomic = judge_q.operation == roci_hwif_pkg::OPERATION_ATOMIC_ACK;
    is_response = judge_q.operation == roci_hwif_pkg::OPERATION_READ_RESP_FIRST
                  || judge_q.operation == roci_hwif_pkg::OPERATION_READ_RESP_MIDDLE
                  || judge_q.operation == roci_hwif_pkg::OPERATION_READ_RESP_LAST
                  || judge_q.operation == roci_hwif_pkg::OPERATION_READ_RESP_ONLY || is_atomic;
    says_last = judge_q.operation != roci_hwif_pkg::OPERATION_READ_RESP_FIRST
                && judge_q.operation != roci_hwif_pkg::OPERATION_READ_RESP_MIDDLE;
    // MIDDLE has no AETH; the others have one that acknowledges
    good_aeth = judge_q.operation == roci_hwif_pkg::OPERATION_READ_RESP_MIDDLE
                || (judge_q.syndrome[7:5] == 3'b000);

    // reserved syndromes and NAK codes are ignored (wire.md 2.4)
    known_ack = is_ack;
    unique casez (judge_q.syndrome)
      8'b000?_????: ack_kind = roci_pkg::ACK_EVENT_ACK;
      8'b001?_????: ack_kind = roci_pkg::ACK_EVENT_RNR;
      8'b0110_0000: ack_kind = roci_pkg::ACK_EVENT_NAK_SEQUENCE;
      8'b0110_0001, 8'b0110_0010, 8'b0110_0011: ack_kind = roci_pkg::ACK_EVENT_NAK_FATAL;
      default: begin
        ack_kind = roci_pkg::ACK_EVENT_ACK;
        known_ack = 1'b0;
      end
    endcase

    row_write = 1'b0;
    if (judge_q.is_start) begin
      row_next = '0;
      row_write = 1'b1;

    end else if (!judge_q.live) begin
      counters.rx_drop_response = 1'b1;

    end else if (is_response && past) begin
      counters.rx_drop_response = 1'b1;

    end else if (is_response && is_next && good_aeth && says_last == is_last
                 && is_atomic == match.atomic) begin
      verdict.event_valid = 1'b1;
      if (32'(judge_q.length) == fitting) begin
        verdict.drop = 1'b0;
        verdict.has_data = judge_q.length != '0;
        verdict.ack_event.kind = roci_pkg::ACK_EVENT_READ;
        verdict.ack_event.msn = '0;
        row_write = 1'b1;
        row_next.received = judge_row_q.received + 32'(judge_q.length);
        if (is_last) begin
          row_next.head = judge_row_q.head + 8'd1;
          row_next.received = '0;
        end
      end else begin
        verdict.ack_event.kind = roci_pkg::ACK_EVENT_LOCAL_ERROR;
        verdict.ack_event.syndrome = 8'(roci_hwif_pkg::CQE_STATUS_BAD_RESP_ERR);
        verdict.ack_event.msn = 24'(roci_hwif_pkg::VENDOR_STATUS_RESPONSE_LENGTH);
      end

    end else if (is_response
                 || (known_ack && later)
                 || (known_ack && is_next && ack_kind == roci_pkg::ACK_EVENT_ACK)) begin
      verdict.event_valid = 1'b1;
      verdict.ack_event.kind = roci_pkg::ACK_EVENT_IMPLIED_NAK;
      verdict.ack_event.psn = expected;
      verdict.ack_event.msn = judge_q.psn;

    end else if (known_ack) begin
      verdict.event_valid = 1'b1;
      verdict.ack_event.kind = ack_kind;

    end else begin
      counters.rx_drop_response = 1'b1;
    end

    if (is_ack && judge_q.live) begin
      counters.rx_ack = judge_q.syndrome[7:5] == 3'b000;
      counters.rx_nak_rnr = judge_q.syndrome[7:5] == 3'b001;
      counters.rx_nak_sequence = judge_q.syndrome == 8'h60;
      counters.rx_nak_invalid_request = judge_q.syndrome == 8'h61;
      counters.rx_nak_remote_access = judge_q.syndrome == 8'h62;
      counters.rx_nak_remote_operational = judge_q.syndrome == 8'h63;
    end
  end

  // The context bus's operations leave no verdict.
  logic is_ctx, judge_done;
  assign is_ctx = judge_q.is_start || judge_q.is_look;
  assign judge_done = judge_valid_q && (is_ctx || verdict_ready);
  assign judge_ready = !judge_valid_q || judge_done;

  always_comb begin
    look_row = '0;
    look_row.read_base = 16'(judge_fixed_q.base);
    look_row.read_log2 = judge_fixed_q.log2;
    look_row.path_mtu = roci_hwif_pkg::mtu_e'(judge_fixed_q.mtu);
    look_row.pd = 16'(judge_fixed_q.pd);
    look_row.head = judge_row_q.head;
    look_row.tail = judge_tail_q;
    look_row.received = judge_row_q.received;
  end

  assign ctx_finished = ctx_start ? ctx_row_q && ctx_tail_q : judge_done && judge_q.is_look;
  assign ctx_o.done = ctx_done_q;
  assign ctx_o.rdata = ctx_done_q && !ctx_write_q ? ctx_rdata_q : '0;
  assign read_record_ready_o = 1'b1;

  always_ff @(posedge clk_i) begin
    if (match_ready) match_q <= look;
    if (judge_ready) begin
      judge_q <= match_q;
      judge_row_q <= row;
      judge_fixed_q <= fixed;
      judge_tail_q <= tail;
      judge_slot_q <= slot;
      judge_offset_q <= offset;
      judge_ahead_q <= match_q.psn - offset;
    end
    if (ctx_word_q == 4'd0) ctx_rdata_q <= look_row[63:0];
    else ctx_rdata_q <= ctx_word_q == 4'd1 ? look_row[127:64] : '0;

    match_valid_q <= match_ready ? look_valid : 1'b1;
    judge_valid_q <= judge_ready ? (match_valid_q && !wait_row) : 1'b1;
    counters_o <= judge_done && !is_ctx ? counters : '0;
    if (!ctx_busy_q) begin
      ctx_write_q <= ctx_i.write;
      ctx_word_q <= ctx_i.word;
      ctx_data_q <= ctx_i.wdata;
      ctx_qp_q <= roci_pkg::qp_t'(ctx_i.index);
    end
    ctx_first_q <= !ctx_busy_q;
    ctx_busy_q <= ctx_busy_q ? !ctx_finished
                             : ctx_i.valid && !ctx_done_q
                               && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_QP_READ;
    ctx_done_q <= ctx_finished;
    ctx_taken_q <= ctx_busy_q && !ctx_finished && (ctx_taken_q || ctx_taken);
    ctx_tail_q <= ctx_start && !ctx_finished && (ctx_tail_q || tail_init);
    ctx_row_q <= ctx_start && !ctx_finished
                 && (ctx_row_q || (judge_done && judge_q.is_start));

    tail_valid_q <= read_record_valid_i;
    tail_qp_q <= read_record_i.qp;
    tail_next_q <= read_record_i.ordinal + 8'd1;

    if (rst_i) begin
      match_valid_q <= 1'b0;
      judge_valid_q <= 1'b0;
      counters_o <= '0;
      ctx_busy_q <= 1'b0;
      ctx_taken_q <= 1'b0;
      ctx_tail_q <= 1'b0;
      ctx_row_q <= 1'b0;
      ctx_done_q <= 1'b0;
      tail_valid_q <= 1'b0;
    end
  end

  // cuts the paths between the two
  requester_pkg::read_verdict_t verdict_out;
  logic verdict_out_valid, verdict_out_ready;

  common_fifo #(.WIDTH($bits(requester_pkg::read_verdict_t)), .DEPTH(4)) u_verdicts (
    .clk_i, .rst_i,
    .in_valid_i(judge_valid_q && !is_ctx), .in_ready_o(verdict_ready), .in_i(verdict),
    .out_valid_o(verdict_out_valid), .out_ready_i(verdict_out_ready), .out_o(verdict_out),
    .usage_o()
  );

  requester_read_pieces u_pieces (
    .clk_i, .rst_i,
    .record_write_i(read_record_valid_i), .record_i(read_record_i),
    .verdict_valid_i(verdict_out_valid), .verdict_ready_o(verdict_out_ready),
    .verdict_i(verdict_out),
    .item_valid_o, .item_ready_i, .item_o
  );

  // ------------------------------------------------------------------------------ tables
  // The end of the READs sent moves with records of new ones, not with those of a refetch.
  assign beyond = tail_next_q - old_tail;
  assign tail_write = tail_valid_q && beyond != '0 && !beyond[7];

  common_ram_sdp #(.WIDTH(8), .DEPTH(QPS), .STYLE(STYLE)) u_tails_record (
    .clk_i, .we_i(tail_write || tail_init), .waddr_i(tail_write ? tail_qp_q : ctx_qp_q),
    .wdata_i(tail_write ? tail_next_q : '0),
    .re_i(1'b1), .raddr_i(read_record_i.qp), .rdata_o(old_tail)
  );

  common_ram_sdp #(.WIDTH(8), .DEPTH(QPS), .STYLE(STYLE)) u_tails (
    .clk_i, .we_i(tail_write || tail_init), .waddr_i(tail_write ? tail_qp_q : ctx_qp_q),
    .wdata_i(tail_write ? tail_next_q : '0),
    .re_i(1'b1), .raddr_i(row_qp), .rdata_o(tail)
  );

  common_ram_sdp #(.WIDTH($bits(row_t)), .DEPTH(QPS), .STYLE(STYLE)) u_rows (
    .clk_i, .we_i(judge_done && row_write), .waddr_i(judge_q.qp), .wdata_i(row_next),
    .re_i(1'b1), .raddr_i(row_qp), .rdata_o(row)
  );

  common_ram_sdp #(.WIDTH($bits(fixed_t)), .DEPTH(QPS), .STYLE(STYLE)) u_fixed (
    .clk_i, .we_i(ctx_start && ctx_first_q && ctx_word_q == 4'd0), .waddr_i(ctx_qp_q),
    .wdata_i(ctx_fixed),
    .re_i(1'b1), .raddr_i(row_qp), .rdata_o(fixed)
  );

  common_ram_sdp #(.WIDTH($bits(match_t)), .DEPTH(RECORDS), .STYLE("block")) u_matches (
    .clk_i, .we_i(read_record_valid_i), .waddr_i(read_record_i.slot),
    .wdata_i({read_record_i.atomic, read_record_i.first_psn, read_record_i.length}),
    .re_i(judge_ready), .raddr_i(slot), .rdata_o(match)
  );

  // ------------------------------------------------------------------------ assertions
  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (judge_valid_q && !is_ctx && judge_q.live) begin
        assert (judge_fixed_q.mtu >= 3'd1 && judge_fixed_q.mtu <= 3'd5);
      end
    end
  end

endmodule

`default_nettype wire
