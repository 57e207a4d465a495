// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_judge: the rules of the responder for one request: row before → row after and action.
// Combinational; responder_check is the pipeline around it.
//
// Order of the checks (wire.md 2.2, PSN on): PSN, opcode sequence, access flags of the QP, alignment,
// resources (receive WQE, replay entry), length. The address check comes later (packet_rx_commit),
// so the result is optimistic: what a bad key makes void is dropped there.
// RC:
// - PSN = next_psn: executed, or one fatal NAK 0x61 closes the QP, or RNR leaves the row as it is.
// - ahead: one sequence NAK with PSN = next_psn, then silence until that arrives; silence also
//   after an RNR NAK (wire.md 2.3).
// - behind (also exactly 2^23 away): SEND and WRITE are acknowledged again with the PSN of the last
//   executed SEND or WRITE (behind all READs so far: later than it must, and never in a circle of the
//   READ count), READs and atomics go to the search in the replay entries, anything else is dropped;
//   the message in progress is not disturbed (wire.md 2.9).
// UC (wire.md 2.16): FIRST and ONLY are taken whatever their PSN. Whatever is not in order, not allowed
// or has no place ends the message, and its rest is dropped: nobody is told. The receive WQE of a SEND
// that was broken off stays with the QP (`held`): the next message that needs one begins it anew.
// UD, GSI (wire.md 2.12): every packet stands alone; one without a receive WQE that it fits into is
// dropped.
//
// A receive WQE that is posted but not yet in its slot: `wait_o`; under pressure of the packet
// buffer the packet counts as lost instead (RC: sequence NAK, never RNR; architecture.md 3.2).
// An SGE list whose sum is too small is known before the WQE is taken (`total_i`).
//
// SEND with invalidate is refused as an invalid request.
`default_nettype none

module responder_judge (
  input  responder_pkg::request_t     request_i,     // kind FRAME or FLUSH
  input  wire [23:0]                  packets_i,     // READ: response packets, >= 1
  input  wire [31:0]                  total_i,       // look_i.ready: bytes of that receive WQE
  input  roci_pkg::qp_state_e         state_i,       // of the QP
  input  responder_pkg::static_row_t  static_i,
  input  responder_pkg::dyn_row_t     row_i,
  input  roci_pkg::rq_look_t          look_i,
  input  roci_pkg::rq_number_t        queue_i,       // where this QP's receives come from
  input  roci_pkg::read_ordinal_t     answered_i,    // READs answered (respond's broadcast)
  input  wire                         pressure_i,    // packet buffer above half
  input  wire                         event_ready_i, // COMM_EST would be taken

  output logic                        wait_o,        // not yet: the receive WQE is on its way
  output logic                        action_valid_o, // FRAME: always; FLUSH: the QP is in ERR
  output responder_pkg::action_t      action_o,
  output responder_pkg::dyn_row_t     row_o,         // if not wait_o
  output logic                        take_o,        // the receive WQE look_i.index is taken
  output logic                        established_o, // raise COMM_EST
  output logic                        lost_o,        // dropped as lost under pressure
  output logic                        rnr_o,         // answered by an RNR NAK
  output logic                        gap_o,         // RC: comes after a gap
  output logic                        duplicate_o,   // RC: was here before
  output logic                        no_receive_o,  // UC, UD: dropped for want of a receive WQE
  output logic                        too_long_o,    // UC, UD: dropped, longer than the receive buffer
  output logic                        given_up_o     // UC: dropped, message out of order or not allowed
);

  // ------------------------------------------------------------------------------ opcode classes
  logic is_send, is_write, is_read, is_atomic;
  logic first, middle, last, only, imm;

  always_comb begin
    is_send = 1'b0;
    is_write = 1'b0;
    is_read = 1'b0;
    is_atomic = 1'b0;
    first = 1'b0;
    middle = 1'b0;
    last = 1'b0;
    only = 1'b0;
    imm = 1'b0;
    unique case (request_i.op)
      responder_pkg::OP_SEND_FIRST:     {is_send, first} = '1;
      responder_pkg::OP_SEND_MIDDLE:    {is_send, middle} = '1;
      responder_pkg::OP_SEND_LAST:      {is_send, last} = '1;
      responder_pkg::OP_SEND_LAST_IMM:  {is_send, last, imm} = '1;
      responder_pkg::OP_SEND_ONLY:      {is_send, only} = '1;
      responder_pkg::OP_SEND_ONLY_IMM:  {is_send, only, imm} = '1;
      responder_pkg::OP_WRITE_FIRST:    {is_write, first} = '1;
      responder_pkg::OP_WRITE_MIDDLE:   {is_write, middle} = '1;
      responder_pkg::OP_WRITE_LAST:     {is_write, last} = '1;
      responder_pkg::OP_WRITE_LAST_IMM: {is_write, last, imm} = '1;
      responder_pkg::OP_WRITE_ONLY:     {is_write, only} = '1;
      responder_pkg::OP_WRITE_ONLY_IMM: {is_write, only, imm} = '1;
      responder_pkg::OP_READ_REQUEST:   {is_read, only} = '1;
      responder_pkg::OP_CMP_SWAP,
      responder_pkg::OP_FETCH_ADD:      {is_atomic, only} = '1;
      default: ;                       // reserved, SEND with invalidate
    endcase
  end

  // --------------------------------------------------------------------------------- the checks
  logic [23:0] distance;
  logic reliable, is_uc, datagram;
  logic alive, in_order, ahead;
  logic known, sequence_ok, access_ok, length_ok;
  logic needs_wqe, reads_full, wqe_wait, wqe_none;
  roci_pkg::read_ordinal_t ring_place; // of the next READ or atomic in its region of replay entries
  logic [12:0] mtu_bytes;
  logic [31:0] payload, capacity;
  logic [32:0] rest;                   // of DMALen, or of the receive buffer, behind this packet
  logic too_long, exact;
  logic begins, ends;

  always_comb begin
    reliable = static_i.qp_type == 3'(roci_hwif_pkg::QP_TYPE_RC);
    is_uc = static_i.qp_type == 3'(roci_hwif_pkg::QP_TYPE_UC);
    datagram = static_i.qp_type == 3'(roci_hwif_pkg::QP_TYPE_UD)
               || static_i.qp_type == 3'(roci_hwif_pkg::QP_TYPE_GSI);
    alive = state_i != roci_pkg::QPS_RESET && state_i != roci_pkg::QPS_INIT
            && state_i != roci_pkg::QPS_ERR && !row_i.closed
            && (reliable || is_uc || datagram);
    distance = request_i.psn - row_i.next_psn;
    in_order = distance == 24'd0;
    ahead = !in_order && !distance[23];

    begins = first || only;
    ends = last || only;
    known = is_send || is_write || is_read || is_atomic;
    unique case (row_i.message)
      responder_pkg::MESSAGE_SEND:  sequence_ok = is_send && (middle || last);
      responder_pkg::MESSAGE_WRITE: sequence_ok = is_write && (middle || last);
      default:                      sequence_ok = begins;
    endcase
    if (!reliable) sequence_ok = begins || (in_order && sequence_ok);
    access_ok = !(is_write && !static_i.remote_write) && !(is_read && !static_i.remote_read)
                && !(is_atomic && !static_i.remote_atomic);

    needs_wqe = (is_send && begins) || (is_write && ends && imm);
    wqe_none = needs_wqe && !row_i.held && !look_i.ready && look_i.empty;
    wqe_wait = needs_wqe && !row_i.held && !look_i.ready && !look_i.empty;
    reads_full = (is_read || is_atomic)
                 && 8'(row_i.reads - answered_i) >= (8'd1 << static_i.replay_log2);

    ring_place = row_i.reads & ~(8'hff << static_i.replay_log2);

    payload = 32'(request_i.payload_length);
    capacity = !begins ? row_i.remaining
             : is_write ? request_i.dma_length
             : row_i.held ? {row_i.acked_psn, row_i.reads} : total_i;
    rest = {1'b0, capacity} - {1'b0, payload};
    exact = rest == 33'd0;
    too_long = is_send && rest[32];

    // wire.md 2.11
    mtu_bytes = 13'd128 << static_i.mtu;
    if (first || middle) begin
      length_ok = request_i.payload_length == mtu_bytes && !request_i.pad;
    end else if (is_read) begin
      length_ok = request_i.payload_length == '0;
    end else if (is_atomic) begin
      length_ok = request_i.payload_length == 13'd16 && !request_i.pad;      // the operands
    end else begin
      length_ok = (request_i.payload_length <= mtu_bytes || datagram)
                  && !(last && request_i.payload_length == '0);
    end
    if (is_read || (is_write && begins)) begin
      length_ok = length_ok && request_i.dma_length <= roci_hwif_pkg::MAX_MESSAGE_BYTES;
    end
    if (is_write) begin
      length_ok = length_ok && (ends ? exact : !rest[32] && !exact);
    end
  end

  // -------------------------------------------------------------------------------- the verdict
  logic fails, executes, flushes_current, flushes_wqe;
  logic [7:0] cause;

  always_comb begin
    fails = 1'b0;
    cause = roci_hwif_pkg::VENDOR_STATUS_NONE;
    if (!known) begin
      fails = 1'b1;
      cause = roci_hwif_pkg::VENDOR_STATUS_RECV_OPCODE_RESERVED;
    end else if (!sequence_ok) begin
      fails = 1'b1;
      cause = roci_hwif_pkg::VENDOR_STATUS_RECV_OPCODE_SEQUENCE;
    end else if (!access_ok) begin
      fails = 1'b1;
      cause = roci_hwif_pkg::VENDOR_STATUS_RECV_ACCESS_FLAG;
    end else if (is_atomic && request_i.va[2:0] != 3'd0) begin
      fails = 1'b1;
      cause = roci_hwif_pkg::VENDOR_STATUS_RECV_ATOMIC_ALIGNMENT;
    end else if (reads_full) begin
      fails = 1'b1;
      cause = roci_hwif_pkg::VENDOR_STATUS_RECV_READ_RESOURCES;
    end else if (!wqe_none && !wqe_wait && !length_ok) begin
      fails = 1'b1;
      cause = roci_hwif_pkg::VENDOR_STATUS_RECV_LENGTH;
    end else if (!wqe_none && !wqe_wait && too_long) begin
      fails = 1'b1;
      cause = roci_hwif_pkg::VENDOR_STATUS_RECV_TOO_SHORT;
    end
    executes = !fails && !wqe_none && !wqe_wait;
    flushes_current = row_i.held;
    flushes_wqe = !flushes_current && !static_i.has_srq && look_i.ready;
  end

  always_comb begin
    row_o = row_i;
    wait_o = 1'b0;
    take_o = 1'b0;
    established_o = 1'b0;
    lost_o = 1'b0;
    rnr_o = 1'b0;
    no_receive_o = 1'b0;
    too_long_o = 1'b0;
    given_up_o = 1'b0;
    gap_o = request_i.kind == responder_pkg::REQUEST_FRAME && alive && reliable && ahead;
    duplicate_o = request_i.kind == responder_pkg::REQUEST_FRAME && alive && reliable
                  && !in_order && !ahead;
    action_valid_o = 1'b1;

    action_o = '0;
    action_o.kind = responder_pkg::ACTION_DROP;
    action_o.colour = request_i.colour;
    action_o.qp = request_i.qp;
    action_o.fn = request_i.fn;
    action_o.pd = static_i.pd;
    action_o.psn = request_i.psn;
    action_o.message_last = ends;
    action_o.unreliable = !reliable;
    action_o.datagram = datagram;
    action_o.entry = '{rq: queue_i, index: look_i.index};
    action_o.slot = look_i.slot;
    action_o.payload_length = request_i.payload_length;
    action_o.va = begins ? request_i.va : row_i.va;
    action_o.rkey = begins ? request_i.rkey : row_i.rkey;
    action_o.length = begins ? request_i.dma_length : row_i.total;
    if (is_send) action_o.length = (begins ? 32'd0 : row_i.total) + payload;
    action_o.imm_valid = imm;
    // of the wire bytes the first one is the first in memory, too; a key is a number (wire.md 1.3)
    action_o.imm = imm ? roci_lane_pkg::reversed(request_i.imm) : request_i.imm;
    if (is_atomic) begin
      // the search for a duplicate and packet_rx_commit want them
      action_o.length = request_i.op == responder_pkg::OP_CMP_SWAP
                        ? responder_pkg::LENGTH_CMP_SWAP : responder_pkg::LENGTH_FETCH_ADD;
      action_o.imm[31] = request_i.op == responder_pkg::OP_CMP_SWAP;
      action_o.imm[roci_config_pkg::REPLAY_BITS-1:0] = static_i.replay_base
                                                       | roci_pkg::replay_slot_t'(ring_place);
    end
    action_o.solicited = request_i.solicited && ends && (is_send || imm);
    action_o.vlan_valid = request_i.vlan_valid;
    action_o.tci = request_i.tci;
    action_o.respond.msn = row_i.msn;
    action_o.respond.psn = request_i.psn;
    action_o.respond.entry = roci_pkg::replay_slot_t'(row_i.reads);
    action_o.nak_msn = row_i.msn;
    action_o.packets = is_atomic ? 24'd1 : packets_i;
    action_o.mtu = static_i.mtu;
    action_o.replay_log2 = static_i.replay_log2;
    action_o.replay_base = static_i.replay_base;
    action_o.cq = static_i.cq;
    action_o.qpn = static_i.qpn;
    action_o.src_qp_or_srq = datagram ? request_i.va[23:0]
                           : static_i.has_srq ? static_i.srqn : 24'd0;
    action_o.pkey_index = request_i.va[33:32];

    if (request_i.kind == responder_pkg::REQUEST_FLUSH) begin
      // with nothing to flush it still tells requester_ack that the QP is drained
      action_valid_o = state_i == roci_pkg::QPS_ERR;
      action_o.kind = responder_pkg::ACTION_FLUSH;
      action_o.use_current = flushes_current;
      action_o.take = !flushes_current && flushes_wqe;
      take_o = action_valid_o && action_o.take;
      if (action_valid_o) begin
        row_o.message = responder_pkg::MESSAGE_NONE;
        row_o.held = 1'b0;
      end

    end else if (alive) begin
      if (state_i == roci_pkg::QPS_RTR && !row_i.established && event_ready_i) begin
        established_o = 1'b1;
        row_o.established = 1'b1;
      end

      if (in_order || !reliable) begin
        if (executes) begin
          row_o.next_psn = request_i.psn + (is_read ? packets_i : 24'd1);
          row_o.nak_sent = 1'b0;
          if (ends) begin
            row_o.msn = row_i.msn + 24'd1;
            row_o.message = responder_pkg::MESSAGE_NONE;
          end else begin
            row_o.message = is_send ? responder_pkg::MESSAGE_SEND : responder_pkg::MESSAGE_WRITE;
          end
          action_o.respond.msn = row_o.msn;

          if (is_read || is_atomic) begin
            action_o.kind = responder_pkg::ACTION_READ;
            action_o.respond_valid = 1'b1;
            action_o.respond.kind = roci_pkg::RESPOND_READ;
            if (is_read) action_o.respond.psn = request_i.psn + packets_i - 24'd1;
            row_o.reads = row_i.reads + 8'd1;
            row_o.unacknowledged = '0;
          end else begin
            action_o.kind = is_send ? responder_pkg::ACTION_SEND : responder_pkg::ACTION_WRITE;
            take_o = needs_wqe && !row_i.held;
            action_o.take = take_o;
            action_o.restart = needs_wqe && row_i.held;
            action_o.use_current = (is_send && !begins) || action_o.restart;
            if (is_send || imm) row_o.held = !ends;
            // 9.7.5.1.2: must at AckReq, may at any time; a peer that never asks is told too
            action_o.respond_valid = reliable
                                     && (request_i.ackreq || row_i.unacknowledged == 4'd15);
            action_o.respond.kind = roci_pkg::RESPOND_ACK;
            action_o.respond.syndrome = responder_pkg::SYNDROME_ACK;
            row_o.unacknowledged = action_o.respond_valid ? 4'd0 : row_i.unacknowledged + 4'd1;
            if (reliable) row_o.acked_psn = request_i.psn;
            else if (take_o) {row_o.acked_psn, row_o.reads} = total_i;
            row_o.remaining = rest[31:0];
            row_o.total = action_o.length;
          end
          if (is_write) begin
            row_o.va = action_o.va + 64'(request_i.payload_length);
            row_o.rkey = action_o.rkey;
          end

        end else if (!reliable && (fails || wqe_none)) begin
          // wire.md 2.12, 2.16
          no_receive_o = !fails;
          too_long_o = fails && cause == roci_hwif_pkg::VENDOR_STATUS_RECV_TOO_SHORT;
          given_up_o = fails && !too_long_o;
          row_o.message = responder_pkg::MESSAGE_NONE;

        end else if (fails) begin
          // wire.md 2.14: receive completion if a WQE is in use, else the event
          action_o.kind = responder_pkg::ACTION_FAIL;
          action_o.use_current = row_i.held;
          // a message that its receive WQE has no room for is the WQE's end
          take_o = begins && cause == roci_hwif_pkg::VENDOR_STATUS_RECV_TOO_SHORT;
          action_o.take = take_o;
          action_o.respond_valid = 1'b1;
          action_o.respond.kind = roci_pkg::RESPOND_NAK;
          action_o.respond.syndrome = responder_pkg::NAK_INVALID_REQUEST;
          action_o.error_event = action_o.use_current || take_o
                                 ? 8'd0 : roci_hwif_pkg::EQE_TYPE_QP_REQ_ERROR;
          action_o.vendor_status = cause;
          row_o.closed = 1'b1;
          row_o.message = responder_pkg::MESSAGE_NONE;
          row_o.held = 1'b0;
          row_o.nak_sent = 1'b0;

        end else if (wqe_none) begin
          rnr_o = 1'b1;
          action_o.respond_valid = 1'b1;
          action_o.respond.kind = roci_pkg::RESPOND_NAK;
          action_o.respond.syndrome = responder_pkg::SYNDROME_RNR | 8'(static_i.min_rnr_timer);
          row_o.nak_sent = 1'b1;

        end else if (pressure_i) begin
          lost_o = 1'b1;
          if (!reliable) row_o.message = responder_pkg::MESSAGE_NONE;
          action_o.respond_valid = reliable;
          action_o.respond.kind = roci_pkg::RESPOND_NAK;
          action_o.respond.syndrome = responder_pkg::NAK_SEQUENCE;
          row_o.nak_sent = reliable;

        end else begin
          wait_o = 1'b1;
          action_valid_o = 1'b0;
        end

      end else if (ahead) begin
        action_o.respond_valid = !row_i.nak_sent;
        action_o.respond.kind = roci_pkg::RESPOND_NAK;
        action_o.respond.syndrome = responder_pkg::NAK_SEQUENCE;
        action_o.respond.psn = row_i.next_psn;
        row_o.nak_sent = 1'b1;

      end else if (is_read || is_atomic) begin
        action_o.kind = responder_pkg::ACTION_DUP_READ;

      end else if (is_send || is_write) begin
        action_o.respond_valid = 1'b1;
        action_o.respond.kind = roci_pkg::RESPOND_DUP_ACK;
        action_o.respond.syndrome = responder_pkg::SYNDROME_ACK;
        action_o.respond.psn = row_i.acked_psn;
      end
    end
  end

endmodule

`default_nettype wire
