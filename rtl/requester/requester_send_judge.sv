// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_send_judge: whether the next packet of a WQE may go, and if not, why. Combinational.
//
// Asked before every packet with what is known of the QP at that time; nothing is remembered, so a
// WQE that was let go on once needs all conditions again for its next packet. Order:
//   1. old epoch, RESET, INIT                         discard
//   2. ring unreadable                                ERR with an event (in ERR: discard)
//   3. ERR, SQE                                       flush record (wire.md 2.15)
//   4. RTR, RNR wait, SQD before the first packet     stall
//   5. quantum over                                   yield
//   6. no record free, fence (wire.md 2.10)           stall
//   7. NOP                                            record
//   8. at or behind the PSN where the QP stops        stall
//   9. malformed, or not for this type of QP          local error
//  10. no READ credit (wire.md 2.9), PSN distance 2^23 (wire.md 2.1), byte cap      stall
//  11. sent and acknowledged before (rewind)          skip
// Windows: a record is free if the WQE's first block is less than the region away from the oldest
// one; READs in flight are counted by ordinal; SENDs and WRITEs are capped by bytes since the last
// acknowledged PSN or READ, whichever is later (READs are outside the cap).
//
// Does not: change anything. Neighbours: requester_packetizer (around it).
`default_nettype none

module requester_send_judge (
  input  wire requester_send_pkg::look_t   look_i,      // WQE and QP
  input  wire requester_send_pkg::row_t    row_i,       // the QP's row, rewind point loaded
  input  wire                              begun_i,     // psn_i is not the WQE's first look
  input  wire roci_pkg::psn_t              psn_i,       // of the next packet
  input  wire [4:0]                        window_log2_i,   // byte cap
  input  wire                              quantum_over_i,

  output requester_send_pkg::verdict_e     verdict_o,
  output logic [7:0]                       vendor_status_o, // of a local error
  output roci_pkg::psn_t                   last_psn_o,      // of the WQE (NOP: one before)
  output logic                             ask_ack_o        // of a packet in mid-message
);

  localparam logic [4:0] ACK_LOG2 = 5'd4;              // at least every 16 packets

  logic is_read, is_nop, executable;
  logic started;                       // a packet of this WQE was sent before
  logic [15:0] record_distance;
  logic record_free, fence_open, stopped, credit, near, inside_cap;
  roci_pkg::psn_t cap_base, cap_distance, window_distance, psn_distance;
  logic [4:0] cap_log2, ack_log2;      // packets
  roci_pkg::read_ordinal_t reads_in_flight;

  function automatic logic behind(input roci_pkg::psn_t distance);
    return distance[23] && distance[22:0] != '0;
  endfunction

  assign is_read = look_i.wqe.kind == requester_send_pkg::KIND_READ;
  assign is_nop = look_i.wqe.kind == requester_send_pkg::KIND_NOP;

  always_comb begin
    vendor_status_o = look_i.wqe.vendor_status;
    if (vendor_status_o == '0 && look_i.ctx.qp_type != roci_hwif_pkg::QP_TYPE_RC && !is_nop) begin
      vendor_status_o = roci_hwif_pkg::VENDOR_STATUS_WQE_OPCODE;
    end
  end

  assign executable = vendor_status_o == '0;
  assign started = requester_send_pkg::psn_after(row_i.max_psn, row_i.next_psn);
  assign last_psn_o = row_i.next_psn + look_i.psn_count - 24'd1;

  // Distances are unsigned: a WQE older than the oldest one is far away, not near.
  assign record_distance = look_i.wqe.index - look_i.oldest_index;
  assign record_free = (record_distance >> look_i.ctx.inflight_log2) == '0;
  assign reads_in_flight = row_i.read_ordinal - look_i.reads_done;
  assign fence_open = !look_i.wqe.fence || reads_in_flight == '0;
  assign credit = reads_in_flight < look_i.ctx.max_rd_atomic;
  assign stopped = look_i.stop_valid && !requester_send_pkg::psn_after(look_i.stop_psn, psn_i);

  // A packet below acked_psn was acknowledged while it was rewound: harmless to send. Half the
  // circle is ahead, not behind: so much can be outstanding, nothing is ever so far back.
  assign window_distance = last_psn_o - look_i.acked_psn;
  assign psn_distance = psn_i - look_i.acked_psn;
  assign near = behind(psn_distance) || !window_distance[23];

  assign cap_base = requester_send_pkg::psn_after(look_i.acked_psn, row_i.read_end_psn)
                    ? look_i.acked_psn : row_i.read_end_psn;
  assign cap_distance = psn_i - cap_base;
  assign cap_log2 = window_log2_i > 5'(look_i.ctx.mtu_log2)
                    ? window_log2_i - 5'(look_i.ctx.mtu_log2) : 5'd0;
  assign inside_cap = behind(cap_distance) || (cap_distance >> cap_log2) == '0;

  // Every 16 packets, or every quarter of the cap if that is less (DESIGN 5.3). Each message ends
  // with an AckReq, so half a record region never goes by without one. Leaving it out on some ends
  // of messages would be decided beside this.
  assign ack_log2 = cap_log2 < 5'd2 ? 5'd0
                    : (cap_log2 - 5'd2 < ACK_LOG2 ? cap_log2 - 5'd2 : ACK_LOG2);

  always_comb begin
    roci_pkg::psn_t number, low;
    number = psn_i - row_i.next_psn;
    low = ~(24'hffffff << ack_log2);
    ask_ack_o = (number & low) == low
                || (look_i.stop_valid && psn_i + 24'd1 == look_i.stop_psn);
  end

  always_comb begin
    verdict_o = requester_send_pkg::VERDICT_SEND;
    if (look_i.wqe.epoch != look_i.epoch || look_i.state == roci_pkg::QPS_RESET
        || look_i.state == roci_pkg::QPS_INIT) begin
      verdict_o = requester_send_pkg::VERDICT_DISCARD;
    end else if (look_i.state == roci_pkg::QPS_ERR || look_i.state == roci_pkg::QPS_SQE) begin
      if (look_i.wqe.bus_error) verdict_o = requester_send_pkg::VERDICT_DISCARD;
      else if (record_free) verdict_o = requester_send_pkg::VERDICT_FLUSH;
      else verdict_o = requester_send_pkg::VERDICT_STALL;
    end else if (look_i.wqe.bus_error) begin
      verdict_o = requester_send_pkg::VERDICT_BUS_ERROR;
    end else if (look_i.state == roci_pkg::QPS_RTR || look_i.waiting
                 || (look_i.state == roci_pkg::QPS_SQD && !started)) begin
      verdict_o = requester_send_pkg::VERDICT_STALL;
    end else if (quantum_over_i) begin
      verdict_o = requester_send_pkg::VERDICT_YIELD;
    end else if (!record_free || !fence_open) begin
      verdict_o = requester_send_pkg::VERDICT_STALL;
    end else if (is_nop && executable) begin
      verdict_o = requester_send_pkg::VERDICT_NOP;
    end else if (stopped) begin
      verdict_o = requester_send_pkg::VERDICT_STALL;
    end else if (!executable) begin
      verdict_o = requester_send_pkg::VERDICT_LOCAL_ERROR;
    end else if (!begun_i && requester_send_pkg::psn_after(row_i.resume_psn, row_i.next_psn)) begin
      verdict_o = requester_send_pkg::VERDICT_SKIP;
    end else if (!near || (is_read ? !credit : !inside_cap)) begin
      verdict_o = requester_send_pkg::VERDICT_STALL;
    end
  end

  wire unused = &{1'b0, look_i};

endmodule

`default_nettype wire
