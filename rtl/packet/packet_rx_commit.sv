// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_rx_commit: decides what a received packet really does, in frame order.
//
// The responder and the response side judge frames optimistically, before the addresses of a packet
// are checked. Here their items meet the answers of the address check:
// - all pieces good: the pieces go to host_scatter, then the packet's tokens (completion, respond or
//   acknowledge event) into the same ordered stream, so that they come out behind its data (rule 4);
// - one piece bad: nothing of the payload is placed; the tokens are replaced by what the failure
//   means (wire.md 2.14): remote key → NAK 0x62; local key of a receive WQE, or a page address that
//   cannot be read → NAK 0x63; local key of a READ → local error event for requester_ack, which
//   brings the QP to ERR in its turn. Requests bring it to ERR from here;
// - UC and UD (`unreliable`): nobody is answered, and a bad remote key costs this packet alone; the
//   receive WQE of a WRITE with immediate completes with LOC_ACCESS_ERR (wire.md 2.16);
// - `error_valid` (a protocol error found earlier): its tokens as they are, and the QP goes to ERR.
// An atomic whose address is good goes on to responder_atomic: SCATTER_ATOMIC instead of a piece.
// From a failure on the QP is void: frames of it that were judged before its ERR was known are dropped
// whole, so that nothing executes after a fatal NAK. INIT, the way out of RESET, ends that: frames
// that were judged before are gone by then. Responses are dropped as soon as the QP is in ERR.
//
// Every receive WQE that was taken gives exactly one completion: the failing packet's own, WR_FLUSH_ERR
// if its packet is dropped here or fails by a remote key, and none behind a bad local key in a FIRST
// or MIDDLE, whose error completion came already (`swallow`).
//
// Flushes of receive WQEs of a QP in ERR (`no_frame`) pass through the same stages between two
// packets: they have no order entry and no payload, and being void does not concern them.
//
// Does not: wait for transmit (rule 2) or reorder. Every frame and flush leaves one `packet_end`.
// Neighbours: packet_rx_dispatch (order), responder_*, requester_read_data → here ⇄
// context_mr_check (client RX) → host_scatter; failures → context_qp_state.
`default_nettype none

module packet_rx_commit #(
  parameter int unsigned ITEMS = roci_config_pkg::IS_WIDE ? 64 : 16,   // waiting for answers
  parameter int unsigned PIECES = 64                                   // > 30 = pieces of a packet
) (
  input  wire                      clk_i,
  input  wire                      rst_i,

  // whose frame is next
  input  wire                      order_valid_i,
  output logic                     order_ready_o,
  input  roci_pkg::rx_order_t      order_i,

  input  wire                      responder_valid_i,
  output logic                     responder_ready_o,
  input  roci_pkg::rx_item_t       responder_i,
  input  wire                      requester_valid_i,
  output logic                     requester_ready_o,
  input  roci_pkg::rx_item_t       requester_i,

  // address check, client RX
  output logic                     xlat_valid_o,
  input  wire                      xlat_ready_i,
  output roci_pkg::xlat_req_t      xlat_o,
  input  wire                      answer_valid_i,
  output logic                     answer_ready_o,
  input  roci_pkg::xlat_rsp_t      answer_i,

  output logic                     cmd_valid_o,
  input  wire                      cmd_ready_i,
  output roci_pkg::scatter_cmd_t   cmd_o,

  output logic                     error_valid_o,
  input  wire                      error_ready_i,
  output roci_pkg::state_error_t   error_o,

  input  roci_pkg::state_bcast_t   state_i,
  output roci_count_pkg::rx_commit_count_t count_o,   // pulses
  output logic                     ready_o      // the void table is cleared after reset
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;

  // wire.md 2.14
  localparam logic [7:0] NAK_REMOTE_ACCESS = 8'h62;
  localparam logic [7:0] NAK_REMOTE_OPERATIONAL = 8'h63;

  typedef struct packed {
    logic dispatcher_drop;            // no unit judged it: only its payload must go
    logic has_payload;
    roci_pkg::rx_item_t item;
  } waiting_t;

  // --------------------------------------------- entry: the unit whose turn it is, one item a cycle
  waiting_t entry;
  logic entry_valid, entry_ready, entry_last;
  logic in_packet_q;                              // the first item of a packet has entered
  logic stalled_q;                                // an item was shown and not taken: it stays
  logic take_flush, flush_shown_q;
  logic waiting_in_ready, waiting_valid, waiting_ready;
  logic [$bits(waiting_t)-1:0] waiting_bits;

  always_comb begin
    entry = '0;
    entry.has_payload = order_i.has_payload;
    take_flush = responder_valid_i && responder_i.no_frame && !in_packet_q
                 && (!stalled_q || flush_shown_q);
    unique case (order_i.target)
      roci_pkg::RX_RESPONDER: begin
        entry.item = responder_i;
        entry_valid = order_valid_i && responder_valid_i;
      end
      roci_pkg::RX_REQUESTER: begin
        entry.item = requester_i;
        entry_valid = order_valid_i && requester_valid_i;
      end
      default: begin
        entry.dispatcher_drop = 1'b1;
        entry.item.last = 1'b1;
        entry.item.end_info.drop = 1'b1;
        entry_valid = order_valid_i;
      end
    endcase
    entry.item.colour = order_i.colour;
    if (take_flush) begin
      entry.dispatcher_drop = 1'b0;
      entry.has_payload = 1'b0;
      entry.item = responder_i;
      entry_valid = 1'b1;
    end
    entry_last = entry.item.last;
  end

  assign entry_ready = ready_o && waiting_in_ready && (xlat_ready_i || !entry.item.has_piece);
  assign order_ready_o = entry_valid && entry_ready && entry_last && !take_flush;
  assign responder_ready_o = entry_ready
      && (take_flush || (order_valid_i && order_i.target == roci_pkg::RX_RESPONDER));
  assign requester_ready_o = entry_ready && !take_flush
                             && order_valid_i && order_i.target == roci_pkg::RX_REQUESTER;
  assign xlat_valid_o = entry_valid && entry.item.has_piece && waiting_in_ready && ready_o;
  assign xlat_o = '{piece: entry.item.piece, fn: entry.item.fn, pd: entry.item.pd,
                    qp: entry.item.qp};

  always_ff @(posedge clk_i) begin
    flush_shown_q <= take_flush;
    if (rst_i) begin
      in_packet_q <= 1'b0;
      stalled_q <= 1'b0;
    end else begin
      stalled_q <= entry_valid && !entry_ready;
      if (entry_valid && entry_ready) begin
        in_packet_q <= !entry_last;
      end
    end
  end

  common_fifo #(
    .WIDTH($bits(waiting_t)), .DEPTH(ITEMS),
    .STYLE(roci_config_pkg::IS_WIDE ? "block" : "distributed")
  ) u_waiting (
    .clk_i, .rst_i,
    .in_valid_i(entry_valid && entry_ready), .in_ready_o(waiting_in_ready), .in_i(entry),
    .out_valid_o(waiting_valid), .out_ready_i(waiting_ready), .out_o(waiting_bits), .usage_o()
  );

  // ------------------------------------------------------------------------------ the item in front
  waiting_t waiting, item_q;
  logic item_valid_q;
  logic item_finished;
  logic bad_q;                                    // an earlier piece of this packet failed
  roci_pkg::xlat_status_e status_q;               // its status

  // Row of each QP, and a replica of its state.
  typedef struct packed {
    logic swallow;                                // its next completion is of a WQE that failed
    logic is_void;
  } row_t;
  row_t row, row_next;
  logic in_error;

  logic piece_bad, packet_bad, dead;
  logic packet_end, take_answer, piece_write, commit, rollback;
  logic piece_store_ready, verdict_ready, verdict_valid;
  logic fails, asks_error, fails_ok, row_write, init_now;
  logic is_remote_key, shrugged, completes, swallows;
  logic error_slot_free;

  typedef struct packed {
    logic has_payload;
    logic place;                                  // pieces follow in the piece store
    logic bad;                                    // a piece failed
    roci_pkg::xlat_status_e status;               // why
    logic dead;                                   // QP was void, or dropped by the dispatcher
    logic completes;                              // a receive WQE gets its completion
    logic is_remote_key;
    roci_pkg::colour_t colour;
    roci_pkg::qp_t qp;
    roci_pkg::psn_t psn;
    logic is_response;
    roci_pkg::rx_end_t end_info;
  } verdict_t;
  verdict_t verdict_in, verdict;
  logic [$bits(verdict_t)-1:0] verdict_bits;

  assign waiting = waiting_t'(waiting_bits);
  assign waiting_ready = !item_valid_q || item_finished;
  assign init_now = state_i.valid && state_i.state == roci_pkg::QPS_INIT;

  always_comb begin
    dead = item_q.dispatcher_drop || (row.is_void && !item_q.item.no_frame)
           || (in_error && item_q.item.is_response);
    is_remote_key = item_q.item.piece.access != roci_pkg::ACCESS_LOCAL_WRITE;
    piece_bad = item_q.item.has_piece && answer_i.status != roci_pkg::XLAT_OK;
    packet_bad = bad_q || piece_bad;
    packet_end = item_valid_q && item_q.item.last
                 && (!item_q.item.has_piece || (answer_valid_i && answer_i.last));

    // ERR is asked for once per QP: later frames are dead
    shrugged = item_q.item.end_info.unreliable && is_remote_key;
    fails = packet_end && !dead
            && ((packet_bad && !shrugged) || item_q.item.end_info.error_valid);
    asks_error = fails && (item_q.item.end_info.error_valid || !item_q.item.is_response);

    // the receive WQE of this packet, if it ends here
    completes = !item_q.dispatcher_drop && item_q.item.end_info.completion_valid
                || (fails && packet_bad && item_q.item.end_info.receive_in_use && !is_remote_key);
    swallows = row.swallow && completes;
    row_next.is_void = row.is_void || fails;
    row_next.swallow = (row.swallow && !completes)
                       || (fails && completes && !item_q.item.end_info.completion_valid);

    // an INIT in this cycle has the write port of the rows
    fails_ok = (row_next == row || !init_now) && (!asks_error || error_slot_free);
    verdict_valid = packet_end && piece_store_ready && fails_ok;
    take_answer = item_valid_q && item_q.item.has_piece && piece_store_ready
                  && (!packet_end || (verdict_ready && fails_ok));
    answer_ready_o = take_answer;
    item_finished = item_valid_q
                    && (item_q.item.has_piece ? (answer_valid_i && take_answer && answer_i.last)
                                              : (!item_q.item.last
                                                 || (verdict_valid && verdict_ready)));

    // check_only answers carry no address
    piece_write = answer_valid_i && take_answer && !item_q.item.piece.check_only;
    commit = packet_end && item_finished && !packet_bad && !dead && !item_q.item.end_info.drop;
    rollback = packet_end && item_finished && !commit;
    row_write = packet_end && item_finished && row_next != row;

    verdict_in.has_payload = item_q.has_payload;
    verdict_in.place = !packet_bad && !dead && !item_q.item.end_info.drop
                       && item_q.item.has_piece && !item_q.item.piece.check_only;
    verdict_in.bad = packet_bad;
    verdict_in.status = bad_q ? status_q : answer_i.status;
    verdict_in.dead = dead;
    verdict_in.completes = completes && !swallows;
    verdict_in.is_remote_key = is_remote_key;
    verdict_in.colour = item_q.item.colour;
    verdict_in.qp = item_q.item.qp;
    verdict_in.psn = item_q.item.psn;
    verdict_in.is_response = item_q.item.is_response;
    verdict_in.end_info = item_q.item.end_info;
  end

  // a row written in the cycle in which it is read comes out new
  logic rows_ready, states_ready;
  logic [$bits(row_t)-1:0] row_bits;
  assign ready_o = rows_ready && states_ready;
  assign row = row_t'(row_bits);

  common_ram_cleared #(.WIDTH($bits(row_t)), .DEPTH(QPS)) u_rows (
    .clk_i, .rst_i, .ready_o(rows_ready),
    .we_i(init_now || row_write), .waddr_i(init_now ? state_i.qp : item_q.item.qp),
    .wdata_i(init_now ? '0 : row_next),
    .re_i(waiting_ready), .raddr_i(waiting.item.qp), .rdata_o(row_bits)
  );
  common_ram_cleared #(.WIDTH(1), .DEPTH(QPS)) u_states (
    .clk_i, .rst_i, .ready_o(states_ready),
    .we_i(state_i.valid && states_ready), .waddr_i(state_i.qp),
    .wdata_i(state_i.state == roci_pkg::QPS_ERR),
    .re_i(waiting_ready), .raddr_i(waiting.item.qp), .rdata_o(in_error)
  );

  always_ff @(posedge clk_i) begin
    if (waiting_ready) begin
      item_q <= waiting;
    end
    if (answer_valid_i && take_answer && !bad_q) begin
      status_q <= answer_i.status;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      item_valid_q <= 1'b0;
      bad_q <= 1'b0;
    end else begin
      if (waiting_ready) begin
        item_valid_q <= waiting_valid;
      end
      if (packet_end && item_finished) begin
        bad_q <= 1'b0;
      end else if (answer_valid_i && take_answer && piece_bad) begin
        bad_q <= 1'b1;
      end
    end
  end

  // ------------------------------------------------------------------------------------ counters
  // A message that is executed to its end moves the MSN.
  logic executed, is_receive, is_read, is_atomic;
  always_comb begin
    executed = packet_end && item_finished && !dead && !fails && !packet_bad
               && !item_q.item.no_frame && !item_q.item.is_response
               && item_q.item.end_info.respond.msn != item_q.item.end_info.nak_msn;
    is_receive = item_q.item.end_info.completion_valid
                 && item_q.item.end_info.completion.opcode
                    != 8'(roci_hwif_pkg::CQE_OPCODE_RECV_WRITE_IMM);
    is_read = item_q.item.end_info.respond_valid
              && item_q.item.end_info.respond.kind == roci_pkg::RESPOND_READ;
    is_atomic = item_q.item.has_piece
                && item_q.item.piece.access == roci_pkg::ACCESS_REMOTE_ATOMIC;
  end
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      count_o <= '0;
    end else begin
      count_o.requests_send <= executed && is_receive;
      count_o.requests_read <= executed && is_read && !is_atomic;
      count_o.requests_atomic <= executed && is_atomic;
      count_o.requests_write <= executed && !is_receive && !is_read;
      count_o.rx_drop_after_error <= packet_end && item_finished && dead
                                     && !item_q.dispatcher_drop;
    end
  end

  // ---------------------------------------------------------------------- ERR, one request in hand
  assign error_slot_free = !error_valid_o;
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      error_valid_o <= 1'b0;
    end else if (asks_error && item_finished) begin
      error_valid_o <= 1'b1;
    end else if (error_ready_i) begin
      error_valid_o <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (asks_error && item_finished) begin
      error_o.send_only <= 1'b0;
      error_o.qp <= item_q.item.qp;
      if (item_q.item.end_info.error_valid) begin
        error_o.event_valid <= item_q.item.end_info.error_event != 8'h00;
        error_o.event_type <= item_q.item.end_info.error_event;
      end else begin
        // wire.md 2.14: a bad remote key raises QP_ACCESS_ERR; a bad local key tells by its error
        // completion
        error_o.event_valid <= is_remote_key;
        error_o.event_type <= verdict_in.status == roci_pkg::XLAT_BUS_ERROR
                              ? roci_hwif_pkg::EQE_TYPE_QP_FATAL
                              : roci_hwif_pkg::EQE_TYPE_QP_ACCESS_ERROR;
      end
    end
  end

  // ------------------------------------------------------------------------------ stores behind it
  typedef struct packed {
    logic last;
    roci_pkg::fn_t fn;
    roci_pkg::packet_len_t length;
    roci_pkg::addr_t addr;
  } placed_t;
  placed_t piece_in, piece;
  logic [$bits(placed_t)-1:0] piece_bits;
  logic piece_valid, piece_ready;
  logic verdict_out_valid, verdict_out_ready;

  assign piece_in = '{last: item_q.item.last && answer_i.last, fn: item_q.item.fn,
                      length: answer_i.length, addr: answer_i.addr};
  assign piece = placed_t'(piece_bits);
  assign verdict = verdict_t'(verdict_bits);

  common_commit_fifo #(.WIDTH($bits(placed_t)), .DEPTH(PIECES)) u_pieces (
    .clk_i, .rst_i,
    .write_valid_i(piece_write), .write_ready_o(piece_store_ready), .write_i(piece_in),
    .commit_i(commit), .rollback_i(rollback),
    .read_valid_o(piece_valid), .read_ready_i(piece_ready), .read_o(piece_bits),
    .usage_o()
  );

  common_fifo #(
    .WIDTH($bits(verdict_t)), .DEPTH(ITEMS),
    .STYLE(roci_config_pkg::IS_WIDE ? "block" : "distributed")
  ) u_verdicts (
    .clk_i, .rst_i,
    .in_valid_i(packet_end && item_finished), .in_ready_o(verdict_ready), .in_i(verdict_in),
    .out_valid_o(verdict_out_valid), .out_ready_i(verdict_out_ready), .out_o(verdict_bits), .usage_o()
  );

  // --------------------------------------------------- commands: payload first, then the tokens
  typedef enum logic [1:0] {
    STEP_PAYLOAD, STEP_COMPLETION, STEP_EVENT
  } step_e;
  step_e step_q, step_first, step_next;

  logic live, placing, dropping;
  logic atomic;                                   // what is placed are the operands of an atomic
  logic has_completion, has_event, nothing_left;
  roci_pkg::completion_t completion;
  roci_pkg::respond_event_t respond;
  roci_pkg::ack_event_t ack_event;
  logic respond_valid, ack_valid;
  logic [14:0] failure;                           // {status, vendor status} of a bad local key
  logic step_done;

  always_comb begin
    live = !verdict.dead;
    failure = context_pkg::xlat_failure(verdict.status);
    placing = verdict.place;
    dropping = verdict.has_payload && !verdict.place;
    atomic = verdict.end_info.respond_valid
             && verdict.end_info.respond.kind == roci_pkg::RESPOND_READ;

    // what the packet says at its end, with the failures of its pieces put in
    completion = verdict.end_info.completion;
    respond = verdict.end_info.respond;
    ack_event = verdict.end_info.ack_event;
    has_completion = verdict.completes;
    respond_valid = live && verdict.end_info.respond_valid;
    ack_valid = live && verdict.end_info.ack_event_valid;
    if (live && verdict.bad) begin
      if (verdict.is_response) begin
        ack_valid = 1'b1;
        ack_event.kind = roci_pkg::ACK_EVENT_LOCAL_ERROR;
        ack_event.psn = verdict.psn;
        ack_event.syndrome = {1'b0, failure[14:8]};
        ack_event.msn = {16'd0, failure[7:0]};
      end else if (!verdict.end_info.unreliable) begin
        respond_valid = 1'b1;
        respond.kind = roci_pkg::RESPOND_NAK;
        respond.psn = verdict.psn;
        respond.msn = verdict.end_info.nak_msn;
        respond.syndrome = verdict.is_remote_key && verdict.status != roci_pkg::XLAT_BUS_ERROR
                           ? NAK_REMOTE_ACCESS : NAK_REMOTE_OPERATIONAL;
      end
    end
    if (verdict.dead || verdict.bad) begin
      // the WQE was taken and nothing of the message is told; C10-87 lets a failed WRITE_IMM do so
      completion.is_error = 1'b1;
      completion.solicited = 1'b0;
      completion.opcode = 8'(roci_hwif_pkg::CQE_OPCODE_RECV);
      completion.byte_len = '0;
      completion.imm_or_key = '0;
      completion.flags = '0;
      completion.tci = '0;
      completion.pkey_index = '0;
      {completion.status, completion.vendor_status} =
          !verdict.dead && verdict.is_remote_key && verdict.end_info.unreliable
          ? {7'(roci_hwif_pkg::CQE_STATUS_LOC_ACCESS_ERR), failure[7:0]}
          : verdict.dead || verdict.is_remote_key
          ? {7'(roci_hwif_pkg::CQE_STATUS_WR_FLUSH_ERR), 8'(roci_hwif_pkg::VENDOR_STATUS_FLUSH)}
          : failure;
    end
    has_event = respond_valid || ack_valid;

    step_first = (placing || dropping) ? STEP_PAYLOAD
               : has_completion ? STEP_COMPLETION : STEP_EVENT;
  end

  logic started_q;                                // step_q is of the verdict in front
  step_e step;
  assign step = started_q ? step_q : step_first;

  // the token of a step: the completion, or else what ends the packet
  roci_pkg::token_t completion_token, end_token;
  always_comb begin
    completion_token = '0;
    completion_token.kind = roci_pkg::TOKEN_COMPLETION;
    completion_token.qp = verdict.qp;
    completion_token.colour = verdict.colour;
    completion_token.packet_end = !has_event;
    completion_token.body = completion;

    end_token = '0;
    end_token.qp = verdict.qp;
    end_token.colour = verdict.colour;
    end_token.packet_end = 1'b1;
    if (respond_valid) begin
      end_token.kind = roci_pkg::TOKEN_RESPOND;
      end_token.body = roci_pkg::TOKEN_BODY_BITS'(respond);
    end else if (ack_valid) begin
      end_token.kind = roci_pkg::TOKEN_ACK_EVENT;
      end_token.body = roci_pkg::TOKEN_BODY_BITS'(ack_event);
    end else begin
      end_token.kind = roci_pkg::TOKEN_END;
    end
  end

  always_comb begin
    cmd_o = '0;
    cmd_o.qp = verdict.qp;
    cmd_valid_o = verdict_out_valid;
    nothing_left = 1'b0;
    step_next = STEP_EVENT;

    unique case (step)
      STEP_PAYLOAD: begin
        if (placing) begin
          cmd_o.kind = roci_pkg::SCATTER_PIECE;
          cmd_o.fn = piece.fn;
          cmd_o.length = piece.length;
          cmd_o.addr = piece.addr;
          if (atomic) begin
            cmd_o.kind = roci_pkg::SCATTER_ATOMIC;
            cmd_o.length = roci_pkg::packet_len_t'(
                roci_pkg::replay_slot_t'(verdict.end_info.completion.imm_or_key));
            cmd_o.addr[0] = verdict.end_info.completion.imm_or_key[31];
          end
          cmd_o.packet_last = piece.last;
          cmd_valid_o = verdict_out_valid && piece_valid;
        end else begin
          cmd_o.kind = roci_pkg::SCATTER_DROP;
          cmd_o.packet_last = 1'b1;
        end
        // the last command of the payload takes the first token along
        if (cmd_o.packet_last) begin
          cmd_o.has_token = 1'b1;
          cmd_o.token = has_completion ? completion_token : end_token;
          nothing_left = !has_completion || !has_event;
        end else begin
          step_next = STEP_PAYLOAD;
        end
      end
      STEP_COMPLETION: begin
        cmd_o.kind = roci_pkg::SCATTER_TOKEN;
        cmd_o.token = completion_token;
        nothing_left = !has_event;
      end
      default: begin
        cmd_o.kind = roci_pkg::SCATTER_TOKEN;
        cmd_o.token = end_token;
        nothing_left = 1'b1;
      end
    endcase

  end

  assign step_done = cmd_valid_o && cmd_ready_i;
  assign verdict_out_ready = step_done && nothing_left;
  assign piece_ready = step == STEP_PAYLOAD && placing && verdict_out_valid && cmd_ready_i;

  always_ff @(posedge clk_i) begin
    if (step_done) begin
      step_q <= step_next;
    end
    if (rst_i) begin
      started_q <= 1'b0;
    end else if (step_done) begin
      started_q <= !nothing_left;
    end
  end

  // rule 2: a packet's pieces fit the store, so the RX side never waits for itself
  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert (!(respond_valid && ack_valid && verdict_out_valid))
      else $error("packet_rx_commit: a packet with both a respond and an acknowledge event");
    end
  end

endmodule

`default_nettype wire
