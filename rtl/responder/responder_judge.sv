// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_judge: the rules of an RC responder for one request: row before → row after and action.
// Combinational; responder_check is the pipeline around it.
//
// Order of the checks (wire.md 2.2, PSN on): PSN, opcode sequence, access flags of the QP,
// resources (receive WQE, replay entry), length. The address check comes later (packet_rx_commit),
// so the result is optimistic: what a bad key makes void is dropped there.
// - PSN = next_psn: executed, or one fatal NAK 0x61 closes the QP, or RNR leaves the row as it is.
// - ahead: one sequence NAK with PSN = next_psn, then silence until that arrives; silence also
//   after an RNR NAK (wire.md 2.3).
// - behind (also exactly 2^23 away): SEND and WRITE are acknowledged again with the PSN of the last
//   executed SEND or WRITE (behind all READs so far: later than it must, and never in a circle of the
//   READ count), READs go to the search in the replay entries, anything else is dropped;
//   the message in progress is not disturbed (wire.md 2.9).
// A receive WQE that is posted but not yet in its slot: `wait_o`; under pressure of the packet
// buffer the packet counts as lost instead (sequence NAK, never RNR; architecture.md 3.2).
//
// Atomics and SEND with invalidate are refused as invalid requests. UC and UD frames are dropped.
`default_nettype none

module responder_judge (
  input  responder_pkg::request_t     request_i,     // kind FRAME or FLUSH
  input  wire [23:0]                  packets_i,     // READ: response packets, >= 1
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
  output logic                        gap_o,         // comes after a gap
  output logic                        duplicate_o    // was here before
);

  // ------------------------------------------------------------------------------ opcode classes
  logic is_send, is_write, is_read;
  logic first, middle, last, only, imm;

  always_comb begin
    is_send = 1'b0;
    is_write = 1'b0;
    is_read = 1'b0;
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
      default: ;                       // reserved, atomics, SEND with invalidate
    endcase
  end

  // --------------------------------------------------------------------------------- the checks
  logic [23:0] distance;
  logic alive, in_order, ahead;
  logic known, sequence_ok, access_ok, length_ok;
  logic needs_wqe, reads_full, wqe_wait, wqe_none;
  logic [12:0] mtu_bytes;
  logic [31:0] payload;
  logic begins, ends;

  always_comb begin
    alive = state_i != roci_pkg::QPS_RESET && state_i != roci_pkg::QPS_INIT
            && state_i != roci_pkg::QPS_ERR && !row_i.closed
            && static_i.qp_type == 3'(roci_hwif_pkg::QP_TYPE_RC);
    distance = request_i.psn - row_i.next_psn;
    in_order = distance == 24'd0;
    ahead = !in_order && !distance[23];

    begins = first || only;
    ends = last || only;
    known = is_send || is_write || is_read;
    unique case (row_i.message)
      responder_pkg::MESSAGE_SEND:  sequence_ok = is_send && (middle || last);
      responder_pkg::MESSAGE_WRITE: sequence_ok = is_write && (middle || last);
      default:                      sequence_ok = begins;
    endcase
    access_ok = !(is_write && !static_i.remote_write) && !(is_read && !static_i.remote_read);

    needs_wqe = (is_send && begins) || (is_write && ends && imm);
    wqe_none = needs_wqe && !look_i.ready && look_i.empty;
    wqe_wait = needs_wqe && !look_i.ready && !look_i.empty;
    reads_full = is_read
                 && 8'(row_i.reads - answered_i) >= (8'd1 << static_i.replay_log2);

    // wire.md 2.11
    mtu_bytes = 13'd128 << static_i.mtu;
    payload = 32'(request_i.payload_length);
    if (first || middle) begin
      length_ok = request_i.payload_length == mtu_bytes && !request_i.pad;
    end else if (is_read) begin
      length_ok = request_i.payload_length == '0;
    end else begin
      length_ok = request_i.payload_length <= mtu_bytes
                  && !(last && request_i.payload_length == '0);
    end
    if (is_read || (is_write && begins)) begin
      length_ok = length_ok && request_i.dma_length <= roci_hwif_pkg::MAX_MESSAGE_BYTES;
    end
    if (is_write) begin
      if (first) length_ok = length_ok && request_i.dma_length > payload;
      if (middle) length_ok = length_ok && row_i.remaining > payload;
      if (last) length_ok = length_ok && row_i.remaining == payload;
      if (only) length_ok = length_ok && request_i.dma_length == payload;
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
    end else if (reads_full) begin
      fails = 1'b1;
      cause = roci_hwif_pkg::VENDOR_STATUS_RECV_READ_RESOURCES;
    end else if (!wqe_none && !wqe_wait && !length_ok) begin
      fails = 1'b1;
      cause = roci_hwif_pkg::VENDOR_STATUS_RECV_LENGTH;
    end
    executes = !fails && !wqe_none && !wqe_wait;
    flushes_current = row_i.message == responder_pkg::MESSAGE_SEND;
    flushes_wqe = !flushes_current && !static_i.has_srq && look_i.ready;
  end

  always_comb begin
    row_o = row_i;
    wait_o = 1'b0;
    take_o = 1'b0;
    established_o = 1'b0;
    lost_o = 1'b0;
    rnr_o = 1'b0;
    gap_o = request_i.kind == responder_pkg::REQUEST_FRAME && alive && ahead;
    duplicate_o = request_i.kind == responder_pkg::REQUEST_FRAME && alive && !in_order && !ahead;
    action_valid_o = 1'b1;

    action_o = '0;
    action_o.kind = responder_pkg::ACTION_DROP;
    action_o.colour = request_i.colour;
    action_o.qp = request_i.qp;
    action_o.fn = request_i.fn;
    action_o.pd = static_i.pd;
    action_o.psn = request_i.psn;
    action_o.message_last = ends;
    action_o.entry = '{rq: queue_i, index: look_i.index};
    action_o.slot = look_i.slot;
    action_o.payload_length = request_i.payload_length;
    action_o.va = begins ? request_i.va : row_i.va;
    action_o.rkey = begins ? request_i.rkey : row_i.rkey;
    action_o.length = begins ? request_i.dma_length : row_i.total;
    action_o.imm_valid = imm;
    action_o.imm = request_i.imm;
    action_o.solicited = request_i.solicited && ends && (is_send || imm);
    action_o.vlan_valid = request_i.vlan_valid;
    action_o.tci = request_i.tci;
    action_o.respond.msn = row_i.msn;
    action_o.respond.psn = request_i.psn;
    action_o.respond.entry = roci_pkg::replay_slot_t'(row_i.reads);
    action_o.nak_msn = row_i.msn;
    action_o.packets = packets_i;
    action_o.mtu = static_i.mtu;
    action_o.replay_log2 = static_i.replay_log2;
    action_o.replay_base = static_i.replay_base;
    action_o.cq = static_i.cq;
    action_o.qpn = static_i.qpn;
    action_o.has_srq = static_i.has_srq;
    action_o.srqn = static_i.srqn;

    if (request_i.kind == responder_pkg::REQUEST_FLUSH) begin
      // with nothing to flush it still tells requester_ack that the QP is drained
      action_valid_o = state_i == roci_pkg::QPS_ERR;
      action_o.kind = responder_pkg::ACTION_FLUSH;
      action_o.use_current = flushes_current;
      action_o.take = !flushes_current && flushes_wqe;
      take_o = action_valid_o && action_o.take;
      if (action_valid_o) begin
        row_o.message = responder_pkg::MESSAGE_NONE;
      end

    end else if (alive) begin
      if (state_i == roci_pkg::QPS_RTR && !row_i.established && event_ready_i) begin
        established_o = 1'b1;
        row_o.established = 1'b1;
      end

      if (in_order) begin
        if (executes) begin
          row_o.next_psn = row_i.next_psn + (is_read ? packets_i : 24'd1);
          row_o.nak_sent = 1'b0;
          if (ends) begin
            row_o.msn = row_i.msn + 24'd1;
            row_o.message = responder_pkg::MESSAGE_NONE;
          end else begin
            row_o.message = is_send ? responder_pkg::MESSAGE_SEND : responder_pkg::MESSAGE_WRITE;
          end
          action_o.respond.msn = row_o.msn;

          if (is_read) begin
            action_o.kind = responder_pkg::ACTION_READ;
            action_o.respond_valid = 1'b1;
            action_o.respond.kind = roci_pkg::RESPOND_READ;
            action_o.respond.psn = request_i.psn + packets_i - 24'd1;
            row_o.reads = row_i.reads + 8'd1;
            row_o.unacknowledged = '0;
          end else begin
            action_o.kind = is_send ? responder_pkg::ACTION_SEND : responder_pkg::ACTION_WRITE;
            take_o = needs_wqe;
            action_o.take = needs_wqe;
            action_o.use_current = is_send && !begins;
            // 9.7.5.1.2: must at AckReq, may at any time; a peer that never asks is told too
            action_o.respond_valid = request_i.ackreq || row_i.unacknowledged == 4'd15;
            action_o.respond.kind = roci_pkg::RESPOND_ACK;
            action_o.respond.syndrome = responder_pkg::SYNDROME_ACK;
            row_o.unacknowledged = action_o.respond_valid ? 4'd0 : row_i.unacknowledged + 4'd1;
            row_o.acked_psn = request_i.psn;
          end
          if (is_write) begin
            row_o.va = action_o.va + 64'(request_i.payload_length);
            row_o.rkey = action_o.rkey;
            row_o.remaining = (begins ? request_i.dma_length : row_i.remaining) - payload;
            row_o.total = action_o.length;
          end

        end else if (fails) begin
          // wire.md 2.14: receive completion if a WQE is in use, else the event
          action_o.kind = responder_pkg::ACTION_FAIL;
          action_o.use_current = row_i.message == responder_pkg::MESSAGE_SEND;
          action_o.respond_valid = 1'b1;
          action_o.respond.kind = roci_pkg::RESPOND_NAK;
          action_o.respond.syndrome = responder_pkg::NAK_INVALID_REQUEST;
          action_o.error_event = action_o.use_current
                                 ? 8'd0 : roci_hwif_pkg::EQE_TYPE_QP_REQ_ERROR;
          action_o.vendor_status = cause;
          row_o.closed = 1'b1;
          row_o.message = responder_pkg::MESSAGE_NONE;
          row_o.nak_sent = 1'b0;

        end else if (wqe_none) begin
          rnr_o = 1'b1;
          action_o.respond_valid = 1'b1;
          action_o.respond.kind = roci_pkg::RESPOND_NAK;
          action_o.respond.syndrome = responder_pkg::SYNDROME_RNR | 8'(static_i.min_rnr_timer);
          row_o.nak_sent = 1'b1;

        end else if (pressure_i) begin
          lost_o = 1'b1;
          action_o.respond_valid = 1'b1;
          action_o.respond.kind = roci_pkg::RESPOND_NAK;
          action_o.respond.syndrome = responder_pkg::NAK_SEQUENCE;
          row_o.nak_sent = 1'b1;

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

      end else if (is_read) begin
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
