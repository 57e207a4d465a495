// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_send_judge: whether the next packet of a WQE may go, and if not, why. The conditions
// are compared in one cycle, the verdict on them stands in the next one.
//
// Asked before every packet with what is known of the QP at that time; nothing is remembered, so a
// WQE that was let go on once needs all conditions again for its next packet. Order:
//   1. old epoch, RESET, INIT                         discard
//   2. ring unreadable                                ERR with an event (in ERR: stall)
//   3. ERR, SQE                                       flush record (wire.md 2.15)
//   4. RTR, RNR wait, SQD before the first packet     stall
//   5. quantum over, or the colour has flipped        yield
//   6. no record free, fence (wire.md 2.10)           stall
//   7. NOP, datagram longer than the MTU              record
//   8. at or behind the PSN where the QP stops        stall
//   9. malformed, or not for this type of QP (wire.md 1.4)   local error
//  10. no credit for a READ or atomic (wire.md 2.9), PSN distance 2^23 (wire.md 2.1), byte cap      stall
//  11. sent and acknowledged before (rewind)          skip
// Windows: a record is free if the WQE's first block is less than the region away from the oldest
// one; READs and atomics in flight are counted by ordinal; SENDs and WRITEs are capped by bytes: packets
// since the last acknowledged PSN or READ, whichever is later (READs are outside the cap), times the
// largest packet that may be among them, so that small messages are not counted as full packets.
//
// Does not: change anything. Neighbours: requester_packetizer (around it).
`default_nettype none

module requester_send_judge (
  input  wire                              clk_i,

  input  wire requester_send_pkg::look_t   look_i,      // WQE and QP
  input  wire requester_send_pkg::row_t    row_i,       // the QP's row, rewind point loaded
  input  wire                              passed_i,    // packets below resume_psn are passed over
  input  wire roci_pkg::psn_t              psn_i,       // of the next packet
  input  wire [4:0]                        window_log2_i,   // byte cap
  input  wire                              quantum_over_i,
  input  wire                              quantum_late_i,  // soon over, if somebody else waits
  input  wire                              follows_i,   // requester_send_rows

  // one cycle later
  output requester_send_pkg::verdict_e     verdict_o,
  output roci_count_pkg::stall_counters_t        stall_o,         // why STALL, if it counts
  output logic [7:0]                       vendor_status_o, // of a local error
  output roci_pkg::psn_t                   last_psn_o,      // of the WQE (NOP: one before)
  output logic                             ask_ack_o,       // wherever the packet is in its message
  output logic                             leave_out_o,     // AckReq, at its end
  output logic                             started_o        // a packet of the WQE was sent before
);

  localparam logic [4:0] ACK_LOG2 = 5'd4;            // at least every 16 packets, see row_t.unasked

  // What the verdict depends on.
  typedef struct packed {
    logic dead;                        // old epoch, RESET, INIT
    logic unreadable;
    logic failed;                      // ERR, SQE
    logic held;                        // RTR, RNR wait, SQD before the first packet
    logic quantum_over;
    logic record_free;
    logic fence_open;
    logic is_void;
    logic stopped;
    logic skips;
    logic open;                        // windows
    logic short_of_credit;             // not open for want of READ credit
    logic [7:0] vendor_status;
    roci_pkg::psn_t last_psn;
    logic ask_ack;
    logic leave_out;
    logic started;
  } conditions_t;

  conditions_t now, now_q;

  logic is_fetch, is_nop;
  logic type_has;                      // the type of QP has this operation (NOP aside)
  logic started;                       // a packet of this WQE was sent before
  logic [15:0] record_distance;
  logic next_record, few_unasked;
  logic [24:0] cap_used;               // in halves of the cap
  logic credit, near, inside_cap;
  roci_pkg::psn_t last_psn, before_stop, cap_base, cap_distance, window_distance, psn_distance;
  logic [3:0] size_log2;               // largest packet in the window, this one included
  logic [4:0] cap_log2, full_log2, ack_log2;   // packets; full: of MTU size
  logic [3:0] ack_mask;
  roci_pkg::read_ordinal_t reads_in_flight;

  function automatic logic behind(input roci_pkg::psn_t distance);
    return distance[23] && distance[22:0] != '0;
  endfunction

  assign is_fetch = requester_send_pkg::is_fetch(look_i.wqe.kind);
  assign is_nop = look_i.wqe.kind == requester_send_pkg::KIND_NOP;

  always_comb begin
    unique case (look_i.ctx.qp_type)
      roci_hwif_pkg::QP_TYPE_RC: type_has = !look_i.wqe.datagram;
      roci_hwif_pkg::QP_TYPE_UC: begin
        type_has = !look_i.wqe.datagram
                   && (look_i.wqe.kind == requester_send_pkg::KIND_SEND
                       || look_i.wqe.kind == requester_send_pkg::KIND_WRITE);
      end
      roci_hwif_pkg::QP_TYPE_UD, roci_hwif_pkg::QP_TYPE_GSI: begin
        type_has = look_i.wqe.datagram && look_i.wqe.kind == requester_send_pkg::KIND_SEND;
      end
      default: type_has = 1'b0;
    endcase
  end

  assign started = requester_send_pkg::psn_after(row_i.max_psn, row_i.next_psn);
  assign last_psn = row_i.next_psn + look_i.psn_count - 24'd1;

  // Distances are unsigned: a WQE older than the oldest one is far away, not near.
  assign record_distance = look_i.wqe.index - look_i.oldest_index;
  assign reads_in_flight = row_i.read_ordinal - look_i.reads_done;
  assign credit = reads_in_flight < look_i.ctx.max_rd_atomic;

  // A packet below acked_psn was acknowledged while it was rewound: harmless to send. Half the
  // circle is ahead, not behind: so much can be outstanding, nothing is ever so far back.
  assign window_distance = last_psn - look_i.acked_psn;
  assign psn_distance = psn_i - look_i.acked_psn;
  assign near = behind(psn_distance) || !window_distance[23];

  assign cap_base = requester_send_pkg::psn_after(look_i.acked_psn, row_i.read_end_psn)
                    ? look_i.acked_psn : row_i.read_end_psn;
  assign cap_distance = psn_i - cap_base;
  always_comb begin
    size_log2 = look_i.size_log2;
    if (row_i.size_before > size_log2) size_log2 = row_i.size_before;
    if (row_i.size_since > size_log2) size_log2 = row_i.size_since;
  end
  assign cap_log2 = window_log2_i > 5'(size_log2) ? window_log2_i - 5'(size_log2) : 5'd0;
  assign full_log2 = window_log2_i > 5'(look_i.ctx.mtu_log2)
                     ? window_log2_i - 5'(look_i.ctx.mtu_log2) : 5'd0;
  assign cap_used = {cap_distance, 1'b0} >> cap_log2;
  assign inside_cap = behind(cap_distance) || cap_used[24:1] == '0;

  // An ACK is asked for every 16 packets, or every quarter of the cap if that is less, and at the end
  // of a message, unless (architecture.md 3.1) nobody waits for its completion and the next one
  // follows at once: it is here and needs nothing but windows. Its record is free (the WQE has one
  // block), less than half of the byte cap is used; and an ACK was asked for within half the records.
  assign next_record = record_distance != ~(16'hffff << look_i.ctx.inflight_log2);
  always_comb begin
    unique case (look_i.ctx.inflight_log2)
      4'd3: few_unasked = row_i.unasked < 4'd3;
      4'd4: few_unasked = row_i.unasked < 4'd7;
      default: few_unasked = 1'b1;
    endcase
  end
  assign ack_log2 = full_log2 < 5'd2 ? 5'd0
                    : (full_log2 - 5'd2 < ACK_LOG2 ? full_log2 - 5'd2 : ACK_LOG2);
  assign ack_mask = ~(4'hf << ack_log2);
  assign before_stop = look_i.stop_psn - 24'd1;

  always_comb begin
    now.dead = look_i.wqe.epoch != look_i.epoch || look_i.state == roci_pkg::QPS_RESET
               || look_i.state == roci_pkg::QPS_INIT;
    now.unreadable = look_i.wqe.bus_error;
    now.failed = look_i.state == roci_pkg::QPS_ERR || look_i.state == roci_pkg::QPS_SQE;
    now.held = look_i.state == roci_pkg::QPS_RTR || look_i.waiting
               || (look_i.state == roci_pkg::QPS_SQD && !started);
    now.quantum_over = quantum_over_i;
    now.record_free = (record_distance >> look_i.ctx.inflight_log2) == '0;
    now.fence_open = !look_i.wqe.fence || reads_in_flight == '0;
    now.is_void = look_i.is_void;
    now.stopped = look_i.stop_valid && !requester_send_pkg::psn_after(look_i.stop_psn, psn_i);
    now.skips = !passed_i && requester_send_pkg::psn_after(row_i.resume_psn, row_i.next_psn);
    now.open = near && (is_fetch ? credit : inside_cap);
    now.short_of_credit = near && is_fetch && !credit;
    now.vendor_status = look_i.wqe.vendor_status;
    if (look_i.wqe.vendor_status == '0 && !is_nop && !type_has) begin
      now.vendor_status = roci_hwif_pkg::VENDOR_STATUS_WQE_OPCODE;
    end
    now.last_psn = last_psn;
    now.started = started;
    now.ask_ack = (row_i.unasked & ack_mask) == ack_mask
                  || (look_i.stop_valid && psn_i == before_stop);
    now.leave_out = follows_i && !look_i.wqe.signaled && !is_fetch && look_i.wqe.blocks == 4'd1
                    && look_i.state == roci_pkg::QPS_RTS && !look_i.stop_valid
                    && !quantum_late_i && next_record && few_unasked && cap_used == '0;
  end

  always_ff @(posedge clk_i) now_q <= now;

  assign vendor_status_o = now_q.vendor_status;
  assign last_psn_o = now_q.last_psn;
  assign ask_ack_o = now_q.ask_ack;
  assign leave_out_o = now_q.leave_out;
  assign started_o = now_q.started;

  always_comb begin
    verdict_o = requester_send_pkg::VERDICT_SEND;
    stall_o = '0;
    if (now_q.dead) begin
      verdict_o = requester_send_pkg::VERDICT_DISCARD;
    end else if (now_q.failed) begin
      // Nothing is known of what cannot be read, and nothing behind it may have a record before it.
      verdict_o = now_q.record_free && !now_q.unreadable ? requester_send_pkg::VERDICT_FLUSH
                                                         : requester_send_pkg::VERDICT_STALL;
    end else if (now_q.unreadable) begin
      verdict_o = requester_send_pkg::VERDICT_BUS_ERROR;
    end else if (now_q.held) begin
      verdict_o = requester_send_pkg::VERDICT_STALL;
    end else if (now_q.quantum_over) begin
      verdict_o = requester_send_pkg::VERDICT_YIELD;
    end else if (!now_q.record_free || !now_q.fence_open) begin
      verdict_o = requester_send_pkg::VERDICT_STALL;
      stall_o.tx_stall_window = !now_q.record_free;
      stall_o.tx_stall_fence = now_q.record_free;
    end else if (now_q.is_void && now_q.vendor_status == '0) begin
      verdict_o = requester_send_pkg::VERDICT_NOP;
    end else if (now_q.stopped) begin
      verdict_o = requester_send_pkg::VERDICT_STALL;
    end else if (now_q.vendor_status != '0) begin
      verdict_o = requester_send_pkg::VERDICT_LOCAL_ERROR;
    end else if (now_q.skips) begin
      verdict_o = requester_send_pkg::VERDICT_SKIP;
    end else if (!now_q.open) begin
      verdict_o = requester_send_pkg::VERDICT_STALL;
      stall_o.tx_stall_window = !now_q.short_of_credit;
      stall_o.tx_stall_read = now_q.short_of_credit;
    end
  end

  wire unused = &{1'b0, look_i, row_i};

endmodule

`default_nettype wire
