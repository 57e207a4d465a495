// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_packetizer: makes packets of send queue WQEs, one WQE at a time, one packet every three
// cycles (and one more for each piece of memory but the first).
//
//   requester_wqe_front   blocks → WQEs and SGEs, checked for form
//   requester_send_rows   what is known of the WQE's QP
//   requester_sge_walk    its SGEs
//   requester_send_judge  may the next packet go?
// and here the steps of a WQE. Before each packet it is judged afresh (LOAD, DECIDE), so an epoch,
// a state or a window that changes takes effect between packets, and only there: a packet once
// decided always leaves (rule 5). A WQE that cannot go on is rewound to (STALL, YIELD): what
// follows of its QP is discarded by its epoch, and WQEs of other QPs follow.
//
// - The first WQE of a new epoch takes PSN, resume PSN and READ ordinal from the rewind point.
//   Packets below the resume PSN are passed over by arithmetic; of a READ the rest is asked for
//   (wire.md 2.4: VA + offset, DMALen - offset, PSN = first missing).
// - The in-flight record of a WQE, and the READ record, are taken by their owners before its last
//   packet is shown; `sent_o` pulses with the last item of each packet. A READ record (of READs and
//   atomics) is written when the READ is sent first, not again: responses are placed by it meanwhile,
//   and the ring that the WQE is fetched from again belongs to the program.
// - Of an atomic the operands are the payload, read from the ring like inline data. The payload of a
//   datagram (UD) begins with the WQE's bytes 16 to 63, for packet_header_build; nobody else counts
//   them as payload. A datagram that is longer than the MTU gives a record only.
// - In ERR each WQE gives a flush record and no packet; a WQE that cannot be executed is reported
//   (`local_error_o`) and stalls there until the QP fails for it.
// - The end of a message may go without AckReq because the next message will ask. If that one then
//   stalls all the same (SQD, RNR wait) it is reported too, without an error: the QP goes back to
//   what is not acknowledged. What is sent again ends with AckReq always.
// - Quantum: from when somebody else waits, a QP sends at least QUANTUM_PACKETS more packets and
//   for at least QUANTUM_CYCLES (a refetch takes that long: two QPs must not wait for each
//   other's), then it yields, inside a message or between two.
//
// Does not: check keys, order packets of requests and responses, count retries.
// Neighbours: queue_wqe_fetch → here → packet_tx_arbiter (packets), requester_ack (in-flight
// records, sent, local errors), requester_read_data (READ records), queue_wqe_fetch (rewinds).
`default_nettype none

module requester_packetizer #(
  parameter int unsigned QUANTUM_PACKETS = roci_config_pkg::QUANTUM_PACKETS,
  parameter int unsigned QUANTUM_CYCLES = 512
) (
  input  wire                              clk_i,
  input  wire                              rst_i,
  output logic                             ready_o,        // tables are cleared after reset

  // columns QP_TX, QP_TX_DYN, TUNING
  input  wire roci_pkg::ctx_req_t          ctx_i,
  output roci_pkg::ctx_rsp_t               ctx_o,

  // WQE blocks and epochs
  input  wire                              block_valid_i,
  output logic                             block_ready_o,
  input  wire roci_pkg::wqe_block_t        block_i,
  input  wire roci_pkg::epoch_bcast_t      epoch_i,        // always accepted
  output logic                             turn_o,         // a block with `turn` came to its turn
  output logic                             rewind_valid_o,
  input  wire                              rewind_ready_i, // accepted = applied
  output roci_pkg::rewind_req_t            rewind_o,

  // what the QPs may do; always accepted
  input  wire roci_pkg::ack_state_t        ack_state_i,
  input  wire roci_pkg::state_bcast_t      state_i,
  input  wire roci_pkg::rnr_bcast_t        rnr_i,

  // quantum
  output roci_pkg::qp_t                    current_qp_o,   // the QP at work
  output logic                             making_o,       // it may go: a packet of it will be sent
  input  wire                              others_queued_i,   // somebody else is in the scheduler
  input  wire                              others_fetched_i,  // somebody else is behind
  input  wire roci_pkg::colour_t           colour_i,       // of what is fetched now (rule 8)
  input  wire [roci_pkg::GIDS-1:0]         gid_valid_i,    // of the port: for address vectors

  // packets
  output logic                             item_valid_o,
  input  wire                              item_ready_i,
  output roci_pkg::tx_item_t               item_o,

  // records and reports
  output logic                             inflight_valid_o,
  input  wire                              inflight_ready_i,
  output roci_pkg::inflight_write_t        inflight_o,
  output logic                             read_record_valid_o,
  input  wire                              read_record_ready_i,
  output roci_pkg::read_record_write_t     read_record_o,
  output roci_pkg::sent_t                  sent_o,         // always accepted
  output logic                             local_error_valid_o,
  input  wire                              local_error_ready_i,
  output roci_pkg::local_error_t           local_error_o,
  output logic                             state_error_valid_o,
  input  wire                              state_error_ready_i,
  output roci_pkg::state_error_t           state_error_o,

  output roci_pkg::fence_busy_t            fence_busy_o,
  output logic                             resent_o,       // pulse, counter retry_packets
  output roci_count_pkg::stall_counters_t        stalled_o       // pulses
);

  localparam int unsigned SGES = roci_config_pkg::MAX_SGE_RD;
  localparam int unsigned PACKET_BITS = $clog2(QUANTUM_PACKETS + 1);
  localparam int unsigned CYCLE_BITS = $clog2(QUANTUM_CYCLES + 1);
  localparam int unsigned HELD_BITS = 4;               // WQEs in here: three, and some room
  localparam roci_pkg::packet_len_t OPERAND_BYTES = 13'd16;   // of an atomic (sq_wqe_atomic)
  localparam roci_pkg::packet_len_t PREFIX_BYTES = 13'd48;    // of a datagram (sq_wqe_ud, address_vector)

  typedef enum logic [3:0] {
    IDLE,        // no WQE
    LOAD,        // row and PSN of the next packet; its conditions are compared
    DECIDE,      // what happens with it
    SKIP,        // packets to pass over are counted
    SKIP_SGES,   // their bytes are passed over
    COLLECT,     // SGEs of a READ or atomic go into its record
    EMIT,        // a packet, item by item
    RECORD,      // a record without a packet is handed over
    REPORT,      // an error is handed over
    REWIND,      // the QP goes back
    SETTLE,      // until its new epoch is known here
    DROP         // SGEs that nobody needs
  } step_e;

  // ------------------------------------------------------------------------------ state
  step_e step_q, step_d;
  requester_send_pkg::row_t row_q;     // row of the QP at work, from LOAD on
  logic begun_q;                       // row_q and psn_q are valid: it is not the first LOAD
  logic moved_q;                       // a packet of the WQE was sent since it was taken
  logic in_hand_q;                     // an SGE of the WQE is in hand
  logic passed_q;                      // packets below resume_psn are passed over
  roci_pkg::psn_t psn_q;               // of the packet at work or the next one
  roci_pkg::psn_t last_psn_q;          // of the WQE
  logic [31:0] left_q;                 // bytes of the message from psn_q on
  roci_pkg::addr_t va_q;               // at the peer: of a READ, from psn_q on
  logic [8:0] inline_q;                // inline bytes used
  logic prefix_q;                      // the address vector goes first

  logic packet_last_q;                 // the packet at work ends the message
  roci_pkg::packet_len_t packet_left_q;  // its bytes to come
  roci_pkg::packet_len_t packet_len_q;
  logic [7:0] opcode_q;
  logic ask_ack_q, leave_out_q;
  logic started_q;                     // a packet of the WQE was sent before

  logic inflight_valid_q;
  roci_pkg::inflight_t record_q;
  logic read_valid_q;
  logic [2:0] read_count_q;
  roci_pkg::sge_t [SGES-1:0] read_sges_q;
  roci_pkg::rewind_kind_e rewind_kind_q;
  roci_pkg::rewind_point_t rewind_point_q;
  logic bus_error_q;                   // REPORT: to context_qp_state, else to requester_ack
  logic owes_q;                        // REPORT: an AckReq that was left out
  logic [7:0] vendor_status_q;

  // ------------------------------------------------------------------------------ parts
  logic wqe_valid, wqe_ready;
  requester_send_pkg::wqe_t front_wqe, next_wqe, wqe;
  logic sge_valid, sge_ready;
  roci_pkg::sge_t front_sge;
  logic begin_valid;
  roci_pkg::colour_t begin_colour;
  logic next_valid, take;
  requester_send_pkg::look_t look;
  requester_send_pkg::row_t row, commit_row;
  logic commit;
  logic [4:0] window_log2;

  roci_pkg::sge_t sge;
  logic [3:0] sges_left;
  logic sge_next, sge_take, sge_skip, sge_skipping, sge_drop, sge_dropped;
  logic sge_ends;                      // the SGE in hand ends in this packet
  roci_pkg::packet_len_t piece_length;
  logic [31:0] skip_bytes;

  requester_send_pkg::verdict_e verdict;
  roci_count_pkg::stall_counters_t stall;
  logic [7:0] vendor_status;
  roci_pkg::psn_t psn, last_psn;
  logic ask_ack, leave_out, owes, quantum_over, quantum_late, follows, started;

  requester_wqe_front u_front (
    .clk_i, .rst_i,
    .block_valid_i, .block_ready_o, .block_i,
    .wqe_valid_o(wqe_valid), .wqe_ready_i(wqe_ready), .wqe_o(front_wqe), .gid_valid_i,
    .sge_valid_o(sge_valid), .sge_ready_i(sge_ready), .sge_o(front_sge),
    .begin_valid_o(begin_valid), .begin_colour_o(begin_colour)
  );

  requester_send_rows u_rows (
    .clk_i, .rst_i, .ready_o, .ctx_i, .ctx_o,
    .epoch_i, .ack_state_i, .state_i, .rnr_i,
    .wqe_valid_i(wqe_valid), .wqe_ready_o(wqe_ready), .wqe_i(front_wqe),
    .next_valid_o(next_valid), .next_wqe_o(next_wqe), .take_i(take), .cur_o(look),
    .follows_o(follows),
    .commit_valid_i(commit), .commit_i(commit_row),
    .window_log2_o(window_log2)
  );

  requester_sge_walk u_sges (
    .clk_i, .rst_i,
    .sge_valid_i(sge_valid), .sge_ready_o(sge_ready), .sge_i(front_sge),
    .start_i(take), .count_i(next_wqe.sges),
    .next_i(sge_next), .take_i(sge_take), .take_bytes_i(piece_length), .take_all_i(sge_ends),
    .skip_i(sge_skip), .skip_bytes_i(skip_bytes), .drop_i(sge_drop),
    .cur_o(sge), .left_o(sges_left), .skipping_o(sge_skipping), .dropped_o(sge_dropped)
  );

  requester_send_judge u_judge (
    .clk_i, .look_i(look), .row_i(row), .passed_i(passed_q), .psn_i(psn),
    .window_log2_i(window_log2), .quantum_over_i(quantum_over), .quantum_late_i(quantum_late),
    .follows_i(follows),
    .verdict_o(verdict), .stall_o(stall), .vendor_status_o(vendor_status), .last_psn_o(last_psn),
    .ask_ack_o(ask_ack), .leave_out_o(leave_out), .started_o(started)
  );

  assign wqe = look.wqe;
  assign current_qp_o = wqe.qp;
  assign making_o = step_q == EMIT || step_q == COLLECT
                    || (step_q == DECIDE && verdict == requester_send_pkg::VERDICT_SEND);

  // ------------------------------------------------------------------------------ decide
  logic is_fetch, is_read, skips;
  logic reliable;                      // somebody acknowledges
  logic [31:0] mtu;
  logic packet_last;
  roci_pkg::packet_len_t packet_len;
  roci_pkg::rewind_point_t point;
  roci_pkg::inflight_t record;

  assign is_fetch = requester_send_pkg::is_fetch(wqe.kind);
  assign is_read = wqe.kind == requester_send_pkg::KIND_READ;
  assign reliable = look.ctx.qp_type == roci_hwif_pkg::QP_TYPE_RC;

  always_comb begin
    if (begun_q) begin
      row = row_q;
    end else begin
      row = look.row;
      if (look.row_old) begin
        row.epoch = wqe.epoch;
        row.next_psn = look.point.first_psn;
        row.resume_psn = look.point.resume_psn;
        // UC, UD: nothing is sent again; behind SQE what never left is forgotten
        if (!reliable) row.max_psn = look.point.resume_psn;
        row.read_ordinal = look.point.read_ordinal;
      end
    end
    psn = begun_q ? psn_q : row.next_psn;
  end

  always_comb begin
    skips = requester_send_pkg::psn_after(row_q.resume_psn, row_q.next_psn);
    mtu = 32'd1 << look.ctx.mtu_log2;
    packet_last = left_q <= mtu || is_read;
    packet_len = is_read ? '0 : is_fetch ? OPERAND_BYTES
                 : (packet_last ? left_q[12:0] : mtu[12:0]);
    // psn_q is the first one of the WQE until what need not be sent again is passed over
    point = '{wqe_index: wqe.index, first_psn: row_q.next_psn,
              resume_psn: skips && !passed_q ? row_q.resume_psn : psn_q,
              read_ordinal: row_q.read_ordinal};
  end

  always_comb begin
    record = '{kind: roci_pkg::INFLIGHT_SEND, signaled: wqe.signaled, blocks: wqe.blocks,
               wc_opcode: wqe.wc_opcode, byte_len: wqe.length, first_psn: row_q.next_psn,
               last_psn: last_psn, read_ordinal: row_q.read_ordinal};
    if (wqe.kind == requester_send_pkg::KIND_NOP && !wqe.signaled) begin
      record.kind = roci_pkg::INFLIGHT_NOP;            // padding: never completes, not even flushed
    end else if (verdict == requester_send_pkg::VERDICT_FLUSH) begin
      record.kind = roci_pkg::INFLIGHT_FLUSH;
    end else if (look.is_void) begin
      record.kind = roci_pkg::INFLIGHT_LOCAL;
    end else if (is_fetch) begin
      record.kind = is_read ? roci_pkg::INFLIGHT_READ : roci_pkg::INFLIGHT_ATOMIC;
    end
  end

  // The types of QP differ in the upper three bits of the opcode (wire.md 1.4).
  roci_hwif_pkg::operation_e operation;
  roci_hwif_pkg::transport_e transport;
  assign transport = wqe.datagram ? roci_hwif_pkg::TRANSPORT_UD
                     : reliable ? roci_hwif_pkg::TRANSPORT_RC : roci_hwif_pkg::TRANSPORT_UC;
  logic packet_first;

  always_comb begin
    packet_first = psn_q == row_q.next_psn;
    unique case (wqe.kind)
      requester_send_pkg::KIND_READ: operation = roci_hwif_pkg::OPERATION_READ_REQUEST;
      requester_send_pkg::KIND_ATOMIC: begin
        operation = wqe.wc_opcode == 8'(roci_hwif_pkg::CQE_OPCODE_CMP_SWAP)
                    ? roci_hwif_pkg::OPERATION_CMP_SWAP : roci_hwif_pkg::OPERATION_FETCH_ADD;
      end
      requester_send_pkg::KIND_WRITE: begin
        if (packet_first && packet_last) begin
          operation = wqe.has_imm ? roci_hwif_pkg::OPERATION_WRITE_ONLY_IMM
                                  : roci_hwif_pkg::OPERATION_WRITE_ONLY;
        end else if (packet_last) begin
          operation = wqe.has_imm ? roci_hwif_pkg::OPERATION_WRITE_LAST_IMM
                                  : roci_hwif_pkg::OPERATION_WRITE_LAST;
        end else begin
          operation = packet_first ? roci_hwif_pkg::OPERATION_WRITE_FIRST
                                   : roci_hwif_pkg::OPERATION_WRITE_MIDDLE;
        end
      end
      default: begin
        if (packet_first && packet_last) begin
          operation = wqe.has_imm ? roci_hwif_pkg::OPERATION_SEND_ONLY_IMM
                                  : roci_hwif_pkg::OPERATION_SEND_ONLY;
        end else if (packet_last) begin
          operation = wqe.has_imm ? roci_hwif_pkg::OPERATION_SEND_LAST_IMM
                                  : roci_hwif_pkg::OPERATION_SEND_LAST;
        end else begin
          operation = packet_first ? roci_hwif_pkg::OPERATION_SEND_FIRST
                                   : roci_hwif_pkg::OPERATION_SEND_MIDDLE;
        end
      end
    endcase
  end

  // ------------------------------------------------------------------------------ skip
  roci_pkg::psn_t skip_count;
  logic skips_all;                     // nothing of the WQE needs to be sent again
  logic [31:0] skip_offset;

  assign skip_count = row_q.resume_psn - row_q.next_psn;
  assign skips_all = skip_count >= look.psn_count;
  assign skip_offset = {8'd0, skip_count} << look.ctx.mtu_log2;
  assign skip_bytes = skip_offset;

  // ------------------------------------------------------------------------------ emit
  logic item_free;                     // the item slice takes one
  logic from_ring;                     // the piece is in the WQE
  roci_pkg::addr_t inline_addr;        // of its inline bytes
  logic piece_last;                    // of the packet
  logic records_gone;                  // owners have the records, or take them in this cycle
  logic emit;                          // an item leaves here
  logic packet_done;
  logic resent;                        // the packet was sent before
  roci_pkg::psn_t end_psn;             // one past the packet, of a READ past its responses
  roci_pkg::tx_item_t item;

  assign from_ring = wqe.inline_data || prefix_q;
  // behind the header or the address vector
  assign inline_addr = wqe.datagram ? {wqe.inline_addr[63:9], wqe.inline_addr[8:6] + 3'd1, 6'd16}
                                    : wqe.inline_addr;   // no WQE crosses a line
  assign sge_ends = sge.length <= 32'(packet_left_q);
  always_comb begin
    // also if none is left
    piece_last = wqe.inline_data || sge.length >= 32'(packet_left_q);
    piece_length = piece_last ? packet_left_q : sge.length[12:0];
    if (prefix_q) begin
      piece_last = packet_len_q == '0;
      piece_length = PREFIX_BYTES;
    end
  end
  assign records_gone = (!inflight_valid_q || inflight_ready_i)
                        && (!read_valid_q || read_record_ready_i);
  assign emit = step_q == EMIT && item_free && (!piece_last || records_gone);
  assign packet_done = emit && piece_last;
  assign resent = requester_send_pkg::psn_after(row_q.max_psn, psn_q);
  assign end_psn = (is_read ? last_psn_q : psn_q) + 24'd1;

  always_comb begin
    item = '0;
    item.last = piece_last;
    item.has_piece = packet_len_q != '0 || prefix_q;
    item.piece.access = from_ring ? roci_pkg::ACCESS_NONE : roci_pkg::ACCESS_LOCAL_READ;
    item.piece.key = from_ring ? '0 : sge.lkey;
    item.piece.length = 32'(piece_length);
    item.piece.va = prefix_q ? {wqe.inline_addr[63:6], 6'd16}
                    : wqe.inline_data ? inline_addr + 64'(inline_q) : sge.va;
    item.desc.colour = wqe.colour;
    item.desc.source = roci_pkg::TX_REQUEST;
    item.desc.qp = wqe.qp;
    item.desc.fn = look.ctx.fn;
    item.desc.pd = look.ctx.pd;
    item.desc.opcode = opcode_q;
    item.desc.psn = psn_q;
    // UC: leaving is the acknowledgement (wire.md 2.16)
    item.desc.ackreq = reliable && (ask_ack_q || (packet_last_q && (!leave_out_q || resent)));
    // SE is for what makes a completion there (wire.md 1.4)
    item.desc.solicited = packet_last_q && wqe.solicited
                          && (wqe.kind == requester_send_pkg::KIND_SEND || wqe.has_imm);
    item.desc.payload_length = packet_len_q;
    item.desc.va = va_q;
    item.desc.rkey = wqe.rkey;
    item.desc.dma_length = left_q;                     // FIRST, ONLY: the whole message
    item.desc.imm = wqe.imm;
    item.desc.wqe_index = wqe.index;
    item.desc.epoch = wqe.epoch;
    if (!item.has_piece) item.piece = '0;
  end

  common_skid #(.WIDTH($bits(roci_pkg::tx_item_t))) u_item (
    .clk_i, .rst_i,
    .in_valid_i(emit), .in_ready_o(item_free), .in_i(item),
    .out_valid_o(item_valid_o), .out_ready_i(item_ready_i), .out_o(item_o)
  );

  // ------------------------------------------------------------------------------ row
  logic whole;                         // the row goes on to the next WQE

  always_comb begin
    commit_row = row_q;
    whole = 1'b0;
    // At each look too: the row is never of an epoch long ago, whose number may come again.
    commit = packet_done || step_q == DECIDE;
    if (step_q == EMIT) begin
      whole = packet_last_q;
      if (requester_send_pkg::psn_after(end_psn, row_q.max_psn)) commit_row.max_psn = end_psn;
      commit_row.unasked = item.desc.ackreq || !reliable ? 4'd0 : row_q.unasked + 4'd1;
      if (is_fetch) begin
        commit_row.read_end_psn = end_psn;
      end else if (requester_send_pkg::psn_after(look.acked_psn, row_q.read_end_psn)) begin
        // kept near, so that the comparison never spans half the circle
        commit_row.read_end_psn = look.acked_psn;
      end
      // A READ always moves the mark: its end may be half the circle away from where that was.
      if (is_fetch || !requester_send_pkg::psn_after(row_q.mark_psn, look.acked_psn)) begin
        commit_row.mark_psn = end_psn;
      end
      if (!requester_send_pkg::psn_after(row_q.mark_psn, look.acked_psn)) begin
        commit_row.size_before = row_q.size_since;
        commit_row.size_since = is_fetch ? '0 : look.size_log2;
      end else if (!is_fetch && look.size_log2 > row_q.size_since) begin
        commit_row.size_since = look.size_log2;
      end
    end else if (step_q == RECORD) begin
      commit = inflight_ready_i;
      whole = record_q.kind != roci_pkg::INFLIGHT_FLUSH;
    end
    if (whole) begin
      commit_row.next_psn = last_psn_q + 24'd1;
      commit_row.read_ordinal = row_q.read_ordinal + 8'(is_fetch);
      if (requester_send_pkg::psn_after(commit_row.next_psn, row_q.resume_psn)) begin
        commit_row.resume_psn = commit_row.next_psn;
      end
    end
  end

  // ------------------------------------------------------------------------------ quantum
  logic [PACKET_BITS-1:0] packets_q;   // sent by this QP while others waited
  logic [CYCLE_BITS-1:0] cycles_q;
  logic others;

  assign others = others_queued_i || others_fetched_i;
  // A fence shall not wait for the end of a long message that nobody else competes with: after the
  // flip its WQE is fetched again, with the new colour. After a packet, so that it gets on.
  assign quantum_over = (packets_q == PACKET_BITS'(QUANTUM_PACKETS)
                         && cycles_q == CYCLE_BITS'(QUANTUM_CYCLES))
                        || (moved_q && wqe.colour != colour_i);
  assign quantum_late = cycles_q >= CYCLE_BITS'(QUANTUM_CYCLES - QUANTUM_CYCLES / 8);

  // ------------------------------------------------------------------------------ steps
  // The message before ended without AckReq, and this one, which was to ask, does not start.
  assign owes = verdict == requester_send_pkg::VERDICT_STALL && row_q.unasked != '0
                && packet_first;
  assign take = next_valid && (step_q == IDLE || (packet_done && packet_last_q)
                               || (step_q == DROP && sge_dropped));
  assign turn_o = take && next_wqe.turn;
  assign sge_drop = step_q == DROP;

  always_comb begin
    step_d = step_q;
    sge_next = 1'b0;
    sge_take = 1'b0;
    sge_skip = 1'b0;
    unique case (step_q)
      LOAD: step_d = DECIDE;
      DECIDE: begin
        unique case (verdict)
          requester_send_pkg::VERDICT_DISCARD: step_d = DROP;
          requester_send_pkg::VERDICT_STALL: step_d = owes ? REPORT : REWIND;
          requester_send_pkg::VERDICT_YIELD: step_d = REWIND;
          requester_send_pkg::VERDICT_BUS_ERROR, requester_send_pkg::VERDICT_LOCAL_ERROR: begin
            step_d = REPORT;
          end
          requester_send_pkg::VERDICT_FLUSH, requester_send_pkg::VERDICT_NOP: step_d = RECORD;
          requester_send_pkg::VERDICT_SKIP: step_d = SKIP;
          default: begin
            sge_next = !in_hand_q && wqe.sges != '0;
            step_d = is_fetch && wqe.sges != '0 ? COLLECT : EMIT;
          end
        endcase
      end
      SKIP: begin
        if (skips_all) begin
          step_d = RECORD;
        end else if (!is_fetch && wqe.sges != '0) begin
          sge_next = 1'b1;
          sge_skip = 1'b1;
          step_d = SKIP_SGES;
        end else begin
          step_d = LOAD;
        end
      end
      SKIP_SGES: if (!sge_skipping) step_d = LOAD;
      COLLECT: begin
        sge_next = sges_left != '0;
        if (sges_left == '0) step_d = EMIT;
      end
      EMIT: begin
        sge_take = emit && item.has_piece && !from_ring;
        if (packet_done) step_d = packet_last_q ? IDLE : LOAD;
      end
      RECORD: if (inflight_ready_i) step_d = DROP;
      REPORT: if (bus_error_q ? state_error_ready_i : local_error_ready_i) step_d = REWIND;
      REWIND: if (rewind_ready_i) step_d = SETTLE;
      SETTLE: if (look.epoch != wqe.epoch) step_d = DROP;
      DROP: if (sge_dropped) step_d = IDLE;
      default: ;
    endcase
    if (take) step_d = LOAD;
  end

  always_ff @(posedge clk_i) begin
    step_q <= step_d;

    if (inflight_ready_i) inflight_valid_q <= 1'b0;
    if (read_record_ready_i) read_valid_q <= 1'b0;

    unique case (step_q)
      LOAD: begin
        row_q <= row;
        psn_q <= psn;
        begun_q <= 1'b1;
      end
      DECIDE: begin
        last_psn_q <= last_psn;
        packet_last_q <= packet_last;
        packet_len_q <= packet_len;
        packet_left_q <= packet_len;
        opcode_q <= {transport, operation};
        prefix_q <= wqe.datagram;
        ask_ack_q <= ask_ack;
        leave_out_q <= leave_out;
        owes_q <= owes;
        record_q <= record;
        rewind_kind_q <= verdict == requester_send_pkg::VERDICT_YIELD ? roci_pkg::REWIND_YIELD
                                                                      : roci_pkg::REWIND_STALL;
        rewind_point_q <= point;
        bus_error_q <= verdict == requester_send_pkg::VERDICT_BUS_ERROR;
        vendor_status_q <= vendor_status;
        read_count_q <= '0;
        if (sge_next) in_hand_q <= 1'b1;
        if (step_d == RECORD || (verdict == requester_send_pkg::VERDICT_SEND && packet_last)) begin
          inflight_valid_q <= 1'b1;
        end
        started_q <= started;
        if (step_d == EMIT && is_fetch && !started) read_valid_q <= 1'b1;
      end
      SKIP: begin
        psn_q <= row_q.resume_psn;
        passed_q <= 1'b1;
        left_q <= wqe.length - skip_offset;
        if (is_read) va_q <= wqe.va + 64'(skip_offset);
        inline_q <= skip_offset[8:0];
        if (sge_next) in_hand_q <= 1'b1;
        if (skips_all) inflight_valid_q <= 1'b1;
      end
      COLLECT: begin
        for (int unsigned s = 0; s < SGES; s++) begin
          if (read_count_q == 3'(s)) read_sges_q[s] <= sge;
        end
        read_count_q <= read_count_q + 1'b1;
        if (step_d == EMIT && !started_q) read_valid_q <= 1'b1;
      end
      EMIT: if (emit) begin
        prefix_q <= 1'b0;
        if (!prefix_q) begin
          packet_left_q <= packet_left_q - piece_length;
          inline_q <= inline_q + 9'(piece_length);
        end
        if (piece_last) begin
          moved_q <= 1'b1;
          row_q <= commit_row;
          psn_q <= psn_q + 24'd1;
          left_q <= left_q - 32'(packet_len_q);
        end
      end
      default: ;
    endcase

    if (take) begin
      begun_q <= 1'b0;
      moved_q <= 1'b0;
      in_hand_q <= 1'b0;
      passed_q <= 1'b0;
      left_q <= next_wqe.length;
      va_q <= next_wqe.va;
      inline_q <= '0;
      read_sges_q <= '0;
    end

    if (rst_i) begin
      step_q <= IDLE;
      inflight_valid_q <= 1'b0;
      read_valid_q <= 1'b0;
    end
  end

  // ------------------------------------------------------------------------------ records, reports
  always_comb begin
    inflight_valid_o = inflight_valid_q;
    inflight_o.qp = wqe.qp;
    inflight_o.wqe_index = wqe.index;
    inflight_o.epoch = wqe.epoch;
    inflight_o.slot = look.ctx.inflight_base
                      + (roci_pkg::inflight_slot_t'(wqe.index)
                         & ~({$bits(roci_pkg::inflight_slot_t){1'b1}} << look.ctx.inflight_log2));
    inflight_o.record = record_q;

    read_record_valid_o = read_valid_q;
    read_record_o.qp = wqe.qp;
    read_record_o.slot = look.ctx.read_base
                         + (roci_pkg::read_slot_t'(row_q.read_ordinal)
                            & ~({$bits(roci_pkg::read_slot_t){1'b1}} << look.ctx.read_log2));
    read_record_o.ordinal = row_q.read_ordinal;
    read_record_o.first_psn = row_q.next_psn;
    read_record_o.last_psn = last_psn_q;
    read_record_o.atomic = !is_read;
    read_record_o.length = wqe.length;
    read_record_o.sge_count = read_count_q;
    read_record_o.sges = read_sges_q;

    local_error_valid_o = step_q == REPORT && !bus_error_q;
    local_error_o.qp = wqe.qp;
    local_error_o.wqe_index = wqe.index;
    // where the WQE is taken up: its first PSN may be acknowledged already, and then nobody would hear
    local_error_o.psn = rewind_point_q.resume_psn;
    local_error_o.vendor_status = vendor_status_q;
    local_error_o.status = owes_q ? roci_hwif_pkg::CQE_STATUS_SUCCESS
                           : vendor_status_q == roci_hwif_pkg::VENDOR_STATUS_WQE_LENGTH
                             || vendor_status_q == roci_hwif_pkg::VENDOR_STATUS_ATOMIC_LENGTH
                           ? roci_hwif_pkg::CQE_STATUS_LOC_LEN_ERR
                           : roci_hwif_pkg::CQE_STATUS_LOC_QP_OP_ERR;

    state_error_valid_o = step_q == REPORT && bus_error_q;
    state_error_o.send_only = 1'b0;
    state_error_o.qp = wqe.qp;
    state_error_o.event_valid = 1'b1;
    state_error_o.event_type = roci_hwif_pkg::EQE_TYPE_QP_FATAL;

    rewind_valid_o = step_q == REWIND;
    rewind_o.kind = rewind_kind_q;
    rewind_o.qp = wqe.qp;
    rewind_o.epoch = wqe.epoch;
    rewind_o.point = rewind_point_q;
  end

  always_ff @(posedge clk_i) begin
    sent_o.valid <= packet_done && !rst_i;
    sent_o.qp <= wqe.qp;
    sent_o.psn <= psn_q;
    sent_o.next_psn <= commit_row.max_psn;
    sent_o.current <= look.epoch == wqe.epoch;
    stalled_o <= step_q == DECIDE && !rst_i ? stall : '0;
    resent_o <= packet_done && !rst_i && resent;
  end

  always_ff @(posedge clk_i) begin
    if (turn_o || !others || step_q == REWIND || rst_i) begin
      packets_q <= '0;
      cycles_q <= '0;
    end else begin
      if (packet_done && packets_q != PACKET_BITS'(QUANTUM_PACKETS)) packets_q <= packets_q + 1'b1;
      if (cycles_q != CYCLE_BITS'(QUANTUM_CYCLES)) cycles_q <= cycles_q + 1'b1;
    end
  end

  // ------------------------------------------------------------------------------ fence (rule 8)
  logic [1:0][HELD_BITS-1:0] wqes_q;   // WQEs in here, by colour
  logic [1:0][1:0] items_q;            // items in the slice
  logic retire;                        // the WQE at work is through

  assign retire = (packet_done && packet_last_q) || (step_q == DROP && sge_dropped);

  for (genvar c = 0; c < 2; c++) begin : gen_busy
    assign fence_busy_o[c] = wqes_q[c] != '0 || items_q[c] != '0;
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < 2; c++) begin
      wqes_q[c] <= wqes_q[c] + HELD_BITS'(begin_valid && begin_colour == roci_pkg::colour_t'(c))
                   - HELD_BITS'(retire && wqe.colour == roci_pkg::colour_t'(c));
      items_q[c] <= items_q[c] + 2'(emit && wqe.colour == roci_pkg::colour_t'(c))
                    - 2'(item_valid_o && item_ready_i
                         && item_o.desc.colour == roci_pkg::colour_t'(c));
    end
    if (rst_i) begin
      wqes_q <= '0;
      items_q <= '0;
    end
  end

  wire unused = &{1'b0, look};

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (step_q == DECIDE) assert (!inflight_valid_q && !read_valid_q);
      if (step_q == SKIP && !skips_all) assert (left_q > skip_offset);
      if (emit && item.has_piece) assert (piece_length != '0);
      if (take) assert (!inflight_valid_q || inflight_ready_i);
    end
  end

endmodule

`default_nettype wire
