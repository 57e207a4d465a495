// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_receive: turns actions into the items that packet_rx_commit checks and executes, in
// frame order, and owns the receive WQEs in use.
//
// WRITE: one piece with the peer's key. READ: one piece that is only checked. Atomic: one of 8 bytes.
// Everything else without receive buffers passes as one item. SEND: pieces along the SGE list of the
// receive WQE:
// - FIRST and ONLY read it from its slot (the first word is read ahead while earlier packets are
//   worked on); a FIRST copies what is left of the list to the QP's own row, so that the slot is
//   free at once (an SRQ must not wait for a slow message);
// - MIDDLE and LAST go on where the row says;
// - a FIRST of UC copies all of the list: if its message is broken off, the next one begins there anew
//   (`restart`).
// That the message fits into the buffer is known (responder_judge). A WQE that cannot be read or has an
// impossible SGE count gives NAK 0x63. Every WQE taken gives exactly one completion, from here or, if its
// packet fails later, from packet_rx_commit.
//
// Rate: one packet per cycle with one piece each; a FIRST with n SGEs holds the next packet for
// about 3 + n/2 cycles; a change to the next SGE pair costs 3 cycles.
// Does not: check keys, place payload. Neighbours: responder_check, queue_rq_fetch (slots) → here →
// packet_rx_commit.
`default_nettype none

module responder_receive (
  input  wire                                clk_i,
  input  wire                                rst_i,          // synchronous, active high

  input  wire                                action_valid_i,
  output logic                               action_ready_o,
  input  wire responder_pkg::action_t        action_i,

  // slots of queue_rq_fetch: data SLOT_LATENCY cycles after the read
  output logic                               slot_read_o,
  output roci_pkg::slot_word_address_t       slot_address_o,
  input  wire [roci_pkg::SLOT_WORD_BITS-1:0] slot_data_i,
  output logic                               free_valid_o,   // the slots of a WQE are free
  input  wire                                free_ready_i,
  output roci_pkg::rq_entry_t                free_o,

  output logic                               item_valid_o,
  input  wire                                item_ready_i,
  output roci_pkg::rx_item_t                 item_o
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam int unsigned WORD_BITS = roci_pkg::SLOT_WORD_BITS;
  localparam int unsigned LATENCY = roci_pkg::SLOT_LATENCY;
  localparam int unsigned AHEAD = 4;          // actions waiting, as many first words

  // Receive WQE in use of a QP.
  typedef struct packed {
    logic dead;                      // completed in error: the rest of the message is dropped
    logic [31:0] cookie;
    logic [3:0] index;               // SGE in hand
    logic [3:0] count;               // SGEs
    roci_pkg::sge_t sge;             // what is left of the SGE in hand
  } current_t;

  typedef enum logic [1:0] {
    OUTCOME_GOOD = 2'd0,
    OUTCOME_DEAD = 2'd1,             // drop, nothing to tell
    OUTCOME_BAD_COUNT = 2'd2,        // WQE not well formed
    OUTCOME_UNREADABLE = 2'd3        // bus error in the ring: not even the cookie is known
  } outcome_e;

  // SGE as it lies in memory (hwif sge): va, length, lkey from the low end
  function automatic roci_pkg::sge_t sge_of(input logic [127:0] bits);
    return '{va: bits[63:0], length: bits[95:64], lkey: bits[127:96]};
  endfunction

  // ------------------------------------------------------------------- actions and first words
  responder_pkg::action_t head;
  logic [$bits(responder_pkg::action_t)-1:0] head_bits;
  logic head_valid, head_room, load;
  logic action_taken;
  logic walk_slot_read;                         // the walker reads a slot in this cycle
  roci_pkg::slot_word_address_t walk_address;
  logic [LATENCY-1:0] ahead_q, walk_q;          // reads on their way
  logic walk_from_list_q;                       // the walker's word comes from the list RAM
  logic first_valid;
  logic [WORD_BITS-1:0] first;                  // first word of the WQE of `head`

  assign action_ready_o = head_room && !walk_slot_read;
  assign action_taken = action_valid_i && action_ready_o;
  assign slot_read_o = walk_slot_read || (action_taken && action_i.take);
  assign slot_address_o = walk_slot_read ? walk_address : action_i.slot;

  common_fifo #(.WIDTH($bits(responder_pkg::action_t)), .DEPTH(AHEAD)) u_actions (
    .clk_i, .rst_i,
    .in_valid_i(action_taken), .in_ready_o(head_room), .in_i(action_i),
    .out_valid_o(head_valid), .out_ready_i(load), .out_o(head_bits), .usage_o()
  );
  assign head = responder_pkg::action_t'(head_bits);

  // never full: no more first words than actions
  logic first_room;
  common_fifo #(.WIDTH(WORD_BITS), .DEPTH(AHEAD)) u_firsts (
    .clk_i, .rst_i,
    .in_valid_i(ahead_q[LATENCY-1]), .in_ready_o(first_room), .in_i(slot_data_i),
    .out_valid_o(first_valid), .out_ready_i(load && head.take), .out_o(first), .usage_o()
  );

  responder_pkg::action_t act_q;                // the packet in hand

  // ------------------------------------------------------------------------------ rows and lists
  current_t row, row_next;
  logic [$bits(current_t)-1:0] row_bits;
  logic row_fresh_q;                            // `row` is of `head`, but for a write in this cycle
  logic row_write;

  // read in every cycle for the action in front; the write of this cycle is forwarded to the next
  common_ram_sdp #(.WIDTH($bits(current_t)), .DEPTH(QPS)) u_rows (
    .clk_i,
    .we_i(row_write), .waddr_i(act_q.qp), .wdata_i(row_next),
    .re_i(1'b1), .raddr_i(head.qp), .rdata_o(row_bits)
  );
  assign row = current_t'(row_bits);

  // words 1..7 of the SGE list of a multi-packet SEND; word 0 (SGE 0) only of UC
  logic list_read, list_write;
  logic [2:0] list_write_word, walk_word, slot_word;
  logic [WORD_BITS-1:0] list_data;

  common_ram_sdp #(
    .WIDTH(WORD_BITS), .DEPTH(8 * QPS), .LATENCY(LATENCY), .BYPASS(1'b0),
    .STYLE(roci_config_pkg::IS_WIDE ? "ultra" : "block")
  ) u_lists (
    .clk_i,
    .we_i(list_write), .waddr_i({act_q.qp, list_write_word}), .wdata_i(slot_data_i),
    .re_i(list_read), .raddr_i({act_q.qp, walk_word}), .rdata_o(list_data)
  );

  // ------------------------------------------------------------------------------ the packet in
  // hand
  logic busy_q;                                 // act_q is valid
  outcome_e outcome_q;
  logic [31:0] cookie_q;
  logic [3:0] index_q, count_q;
  roci_pkg::sge_t sge_q, next_q;
  logic next_valid_q;                           // next_q is the SGE after sge_q
  roci_pkg::packet_len_t left_q;                // payload without a place
  logic fetch_q;                                // the next word is being read
  logic restart_q;                              // word 0 of the QP's own list is wanted
  logic copy_q;                                 // list words go from the slot to the row
  logic [2:0] copy_read_q, copy_write_q, copy_last_q;
  logic copy_reading_q;

  // load: what is in front
  responder_pkg::slot_header_t header;
  outcome_e outcome_in;
  logic restart_in;

  always_comb begin
    header = responder_pkg::slot_header_t'(first[127:0]);
    restart_in = head.restart && head.kind == responder_pkg::ACTION_SEND;
    outcome_in = OUTCOME_GOOD;
    if (head.take && header.unreadable) begin
      outcome_in = OUTCOME_UNREADABLE;
    end else if (head.take && header.bad_count && head.kind != responder_pkg::ACTION_FLUSH) begin
      outcome_in = OUTCOME_BAD_COUNT;
    end else if (head.use_current && row.dead) begin
      outcome_in = OUTCOME_DEAD;
    end
  end

  // emit: the next piece
  logic walks;                                  // pieces along the SGE list
  logic emits, ends, finish;                    // an item is shown; it is the last; and is taken
  logic step_sge;                               // go to the next SGE
  logic [31:0] piece_bytes, piece_want;
  logic [3:0] index_next;
  logic copies, frees, free_room;
  logic [2:0] copy_first;
  roci_pkg::sge_t sge_after;

  always_comb begin
    walks = act_q.kind == responder_pkg::ACTION_SEND && outcome_q == OUTCOME_GOOD
            && left_q != '0;
    // a datagram with its GRH may be longer than a piece
    piece_want = left_q[12] ? 32'd4096 : 32'(left_q);
    piece_bytes = sge_q.length < piece_want ? sge_q.length : piece_want;
    ends = !walks || piece_bytes == 32'(left_q);

    sge_after = sge_q;
    if (walks) begin
      sge_after.va = sge_q.va + 64'(piece_bytes);
      sge_after.length = sge_q.length - piece_bytes;
    end

    // FIRST: words that are still needed
    copy_first = act_q.unreliable ? 3'd0 : 3'((5'(index_q) + 5'd2) >> 1);
    copies = act_q.take && act_q.kind == responder_pkg::ACTION_SEND && !act_q.message_last
             && outcome_q == OUTCOME_GOOD
             && (act_q.unreliable || 5'(index_q) + 5'd1 < 5'(count_q));
    frees = act_q.take && !copies;

    emits = busy_q && !fetch_q && (!walks || sge_q.length != 32'd0)
            && (!ends || !act_q.take || free_room);
    finish = emits && ends && item_ready_i;
    step_sge = busy_q && !fetch_q && walks
               && (sge_q.length == 32'd0
                   || (emits && item_ready_i && !ends && piece_bytes == sge_q.length));
    index_next = index_q + 4'd1;
  end

  assign load = head_valid && (!busy_q || finish) && !copy_q && !(finish && copies)
                && (!head.take || first_valid)
                && (!head.use_current || (row_fresh_q && !row_write));

  always_comb begin
    row_write = finish && act_q.kind == responder_pkg::ACTION_SEND && !act_q.message_last;
    row_next = '{dead: outcome_q != OUTCOME_GOOD, cookie: cookie_q, index: index_q, count: count_q,
                 sge: sge_after};
  end

  // words: SGE n is in word (n + 1) / 2, in the low half if n is odd
  always_comb begin
    walk_word = restart_q ? 3'd0 : 3'((5'(index_q) + 5'd2) >> 1);
    slot_word = copy_q ? copy_read_q : walk_word;
    walk_address = act_q.slot + roci_pkg::slot_word_address_t'(slot_word);
    walk_slot_read = copy_reading_q || (step_sge && !next_valid_q && act_q.take);
    list_read = restart_q || (step_sge && !next_valid_q && !act_q.take);
    list_write = copy_q && walk_q[LATENCY-1];
    list_write_word = copy_write_q;
  end

  logic [WORD_BITS-1:0] word;
  logic word_arrives;
  logic copy_done;
  assign word_arrives = fetch_q && walk_q[LATENCY-1];
  assign word = walk_from_list_q ? list_data : slot_data_i;
  assign copy_done = list_write && copy_write_q == copy_last_q;

  // slots that are free
  logic free_push;
  assign free_push = (finish && frees) || copy_done;

  common_fifo #(.WIDTH($bits(roci_pkg::rq_entry_t)), .DEPTH(2)) u_frees (
    .clk_i, .rst_i,
    .in_valid_i(free_push), .in_ready_o(free_room), .in_i(act_q.entry),
    .out_valid_o(free_valid_o), .out_ready_i(free_ready_i), .out_o(free_o), .usage_o()
  );

  always_ff @(posedge clk_i) begin
    ahead_q <= {ahead_q[LATENCY-2:0], action_taken && action_i.take};
    walk_q <= {walk_q[LATENCY-2:0], walk_slot_read || list_read};
    row_fresh_q <= head_valid && !load;
    restart_q <= load && restart_in;

    if (step_sge) begin
      index_q <= index_next;
      if (next_valid_q) begin
        sge_q <= next_q;
        next_valid_q <= 1'b0;
      end else begin
        fetch_q <= 1'b1;
        walk_from_list_q <= !act_q.take;
      end
    end else if (emits && item_ready_i) begin
      sge_q <= sge_after;
    end
    if (emits && item_ready_i && walks) left_q <= left_q - 13'(piece_bytes);
    if (word_arrives) begin
      fetch_q <= 1'b0;
      sge_q <= index_q[0] ? sge_of(word[127:0]) : sge_of(word[255:128]);
      next_q <= sge_of(word[255:128]);
      next_valid_q <= index_q[0];
    end

    if (finish) busy_q <= 1'b0;
    if (finish && copies) begin
      copy_q <= 1'b1;
      copy_reading_q <= 1'b1;
      copy_read_q <= copy_first;
      copy_write_q <= copy_first;
      copy_last_q <= count_q[3:1];
    end
    if (copy_q) begin
      if (copy_reading_q) begin
        copy_read_q <= copy_read_q + 3'd1;
        copy_reading_q <= copy_read_q != copy_last_q;
      end
      if (list_write) copy_write_q <= copy_write_q + 3'd1;
      if (copy_done) copy_q <= 1'b0;
    end

    if (load) begin
      busy_q <= 1'b1;
      act_q <= head;
      outcome_q <= outcome_in;
      cookie_q <= head.take ? header.cookie : row.cookie;
      index_q <= head.take || restart_in ? 4'd0 : row.index;
      count_q <= head.take ? header.sge_count[3:0] : row.count;
      sge_q <= head.take ? sge_of(first[255:128]) : row.sge;
      if (head.take && header.sge_count == 8'd0) sge_q.length <= 32'd0;
      next_valid_q <= 1'b0;
      left_q <= head.payload_length;
      if (restart_in) begin
        fetch_q <= 1'b1;
        walk_from_list_q <= 1'b1;
      end
    end

    if (rst_i) begin
      ahead_q <= '0;
      walk_q <= '0;
      row_fresh_q <= 1'b0;
      busy_q <= 1'b0;
      fetch_q <= 1'b0;
      restart_q <= 1'b0;
      copy_q <= 1'b0;
      copy_reading_q <= 1'b0;
    end
  end

  // --------------------------------------------------------------------------------- the item
  roci_pkg::rx_end_t end_info;
  logic is_send, is_write, is_read, is_atomic, is_flush;
  logic uses_wqe;
  logic good;

  always_comb begin
    is_send = act_q.kind == responder_pkg::ACTION_SEND;
    is_write = act_q.kind == responder_pkg::ACTION_WRITE;
    is_read = act_q.kind == responder_pkg::ACTION_READ;
    is_atomic = is_read && responder_pkg::is_atomic(act_q.length);
    is_flush = act_q.kind == responder_pkg::ACTION_FLUSH;
    uses_wqe = act_q.take || act_q.use_current;
    good = outcome_q == OUTCOME_GOOD;

    end_info = '0;
    end_info.drop = !((is_send || is_write || is_read) && good);
    end_info.nak_msn = act_q.nak_msn;
    end_info.unreliable = act_q.unreliable;
    end_info.receive_in_use = good && (is_send || (is_write && uses_wqe));
    if (is_flush) end_info.receive_in_use = uses_wqe;

    end_info.completion.cq = act_q.cq;
    end_info.completion.solicited = act_q.solicited;
    end_info.completion.qpn = act_q.qpn;
    end_info.completion.opcode = roci_hwif_pkg::CQE_OPCODE_RECV;
    end_info.completion.wqe_index_or_cookie = cookie_q;
    end_info.completion.src_qp_or_srq = act_q.src_qp_or_srq;
    if (is_write) begin
      end_info.completion.opcode = roci_hwif_pkg::CQE_OPCODE_RECV_WRITE_IMM;
      end_info.completion.byte_len = act_q.length;
    end else if (is_send) begin
      if (act_q.imm_valid) end_info.completion.opcode = roci_hwif_pkg::CQE_OPCODE_RECV_IMM;
      end_info.completion.byte_len = act_q.length;
    end
    if (act_q.imm_valid || is_atomic) end_info.completion.imm_or_key = act_q.imm;
    if (act_q.datagram) begin
      end_info.completion.flags[responder_pkg::FLAG_GRH_PRESENT] = 1'b1;
      end_info.completion.pkey_index = 16'(act_q.pkey_index);
    end
    if (act_q.vlan_valid) begin
      end_info.completion.flags[responder_pkg::FLAG_VLAN_PRESENT] = 1'b1;
      end_info.completion.tci = act_q.tci;
    end
    end_info.completion.flags[responder_pkg::FLAG_SOLICITED] = act_q.solicited;
    end_info.completion_valid = good && act_q.message_last && (is_send || (is_write && uses_wqe));

    end_info.respond_valid = act_q.respond_valid;
    end_info.respond = act_q.respond;
    // a flush comes behind the ERR, so responses behind it are dropped (packet_rx_commit)
    end_info.ack_event_valid = is_flush;
    end_info.ack_event.kind = roci_pkg::ACK_EVENT_DRAINED;

    if (act_q.kind == responder_pkg::ACTION_FAIL || is_flush || !good) begin
      end_info.completion.is_error = 1'b1;
      end_info.completion.opcode = roci_hwif_pkg::CQE_OPCODE_RECV;
      end_info.completion.byte_len = 32'd0;
      end_info.completion.imm_or_key = 32'd0;
      end_info.completion.solicited = 1'b0;
      end_info.completion.flags = '0;
      end_info.completion.tci = '0;
      end_info.completion.pkey_index = '0;
    end
    unique case (outcome_q)
      OUTCOME_GOOD: begin
        if (act_q.kind == responder_pkg::ACTION_FAIL) begin
          end_info.completion_valid = uses_wqe;
          end_info.completion.status =
              act_q.vendor_status == roci_hwif_pkg::VENDOR_STATUS_RECV_TOO_SHORT
              ? roci_hwif_pkg::CQE_STATUS_LOC_LEN_ERR : roci_hwif_pkg::CQE_STATUS_REM_INV_REQ_ERR;
          end_info.completion.vendor_status = act_q.vendor_status;
          end_info.error_valid = 1'b1;
          end_info.error_event = act_q.error_event;
        end else if (is_flush) begin
          end_info.completion_valid = end_info.receive_in_use;
          end_info.completion.status = roci_hwif_pkg::CQE_STATUS_WR_FLUSH_ERR;
          end_info.completion.vendor_status = roci_hwif_pkg::VENDOR_STATUS_FLUSH;
        end
      end
      OUTCOME_DEAD: begin
        end_info.error_valid = act_q.kind == responder_pkg::ACTION_FAIL;
        end_info.respond_valid = act_q.kind == responder_pkg::ACTION_FAIL;
      end
      default: begin
        end_info.completion_valid = outcome_q == OUTCOME_BAD_COUNT;
        end_info.completion.status = roci_hwif_pkg::CQE_STATUS_LOC_QP_OP_ERR;
        end_info.completion.vendor_status = roci_hwif_pkg::VENDOR_STATUS_WQE_SGE_COUNT;
        end_info.respond.syndrome = responder_pkg::NAK_REMOTE_OPERATIONAL;
        if (outcome_q == OUTCOME_UNREADABLE && !is_flush) begin
          end_info.error_event = roci_hwif_pkg::EQE_TYPE_QP_FATAL;
        end
      end
    endcase
    // found here: the packet is not executed, its acknowledgement becomes the NAK
    if (outcome_q == OUTCOME_BAD_COUNT || outcome_q == OUTCOME_UNREADABLE) begin
      end_info.error_valid = !is_flush;
      end_info.respond_valid = !is_flush && !act_q.unreliable;
      end_info.respond.kind = roci_pkg::RESPOND_NAK;
      end_info.respond.psn = act_q.psn;
      end_info.respond.msn = act_q.nak_msn;
    end
  end

  always_comb begin
    item_valid_o = emits;
    item_o = '0;
    item_o.colour = act_q.colour;
    item_o.no_frame = is_flush;
    item_o.last = ends;
    item_o.qp = act_q.qp;
    item_o.fn = act_q.fn;
    item_o.pd = act_q.pd;
    item_o.psn = act_q.psn;
    item_o.end_info = end_info;

    if (walks) begin
      item_o.has_piece = 1'b1;
      item_o.piece = '{check_only: 1'b0, access: roci_pkg::ACCESS_LOCAL_WRITE, key: sge_q.lkey,
                       length: piece_bytes, va: sge_q.va};
    end else if (is_write && good && act_q.payload_length != '0) begin
      item_o.has_piece = 1'b1;
      item_o.piece = '{check_only: 1'b0, access: roci_pkg::ACCESS_REMOTE_WRITE, key: act_q.rkey,
                       length: 32'(act_q.payload_length), va: act_q.va};
    end else if (is_atomic) begin
      item_o.has_piece = 1'b1;
      item_o.piece = '{check_only: 1'b0, access: roci_pkg::ACCESS_REMOTE_ATOMIC, key: act_q.rkey,
                       length: 32'd8, va: act_q.va};
    end else if (is_read && act_q.length != 32'd0) begin
      item_o.has_piece = 1'b1;
      item_o.piece = '{check_only: 1'b1, access: roci_pkg::ACCESS_REMOTE_READ, key: act_q.rkey,
                       length: act_q.length, va: act_q.va};
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (ahead_q[LATENCY-1]) assert (first_room);
      if (free_push) assert (free_room);
      if (copy_q) assert (!busy_q);
    end
  end

endmodule

`default_nettype wire
