// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_trouble: READ responses that did not reach the wire as decided, atomics that failed.
//
// - refused by the address check (the key was revoked between request and response, or in the
//   middle of the stream): NAK 0x62 with the PSN of that response (wire.md 2.9) and
//   QP_ACCESS_ERROR; if the page table could not be read: NAK 0x63 and QP_FATAL;
// - bus error while its payload was read: NAK 0x63 and QP_FATAL;
// - underrun: the cursor goes back to it;
// - an atomic that could not be executed for a bus error: NAK 0x63 and QP_FATAL in its place.
// A READ that was answered to its end before is no trouble but for an underrun: the peer may have had
// the data of the first round, and the region may rightly be gone (wire.md 2.9).
// The replay slot rides as `wqe_index` of the response, so its entry tells ordinal and MSN.
//
// One case at a time; an aborted packet that finds no room is forgotten, and the peer asks again.
// Neighbours: packet_tx_decide, packet_header_build, responder_atomic → here → responder_respond.
`default_nettype none

module responder_trouble (
  input  wire                                clk_i,
  input  wire                                rst_i,           // synchronous, active high

  input  wire                                refused_valid_i,
  output logic                               refused_ready_o,
  input  wire roci_pkg::tx_refused_t         refused_i,
  input  wire                                done_valid_i,    // always accepted
  input  wire roci_pkg::tx_done_t            done_i,
  input  wire                                failed_valid_i,  // an atomic that failed
  output logic                               failed_ready_o,
  input  wire roci_pkg::atomic_done_t        failed_i,

  // replay entry: data REPLAY_LATENCY cycles after the read was granted
  output logic                               entry_read_o,
  input  wire                                entry_granted_i,
  output roci_pkg::replay_slot_t             entry_slot_o,
  input  wire responder_pkg::replay_entry_t  entry_i,

  output logic                               op_valid_o,
  input  wire                                op_ready_i,
  output responder_pkg::respond_op_t         op_o,            // kind LOWER or FATAL

  output logic                               busy_o           // holds something (fence)
);

  typedef struct packed {
    logic underrun;
    logic by_access;
    roci_pkg::qp_t qp;
    roci_pkg::replay_slot_t slot;
    roci_pkg::psn_t psn;
  } case_t;

  case_t done_case, done_head, refused_case, failed_case, case_q;
  logic [$bits(case_t)-1:0] done_bits;
  logic done_bad, done_valid, done_take;

  // ------------------------------------------------------------------------------------- cases
  always_comb begin
    done_bad = done_valid_i && done_i.source == roci_pkg::TX_RESPONSE
               && (done_i.fate == roci_pkg::TX_UNDERRUN
                   || (done_i.fate == roci_pkg::TX_BUS_ERROR
                       && !done_i.wqe_index[roci_pkg::RESPONSE_AGAIN]));
    done_case = '{underrun: done_i.fate == roci_pkg::TX_UNDERRUN, by_access: 1'b0, qp: done_i.qp,
                  slot: roci_pkg::replay_slot_t'(done_i.wqe_index), psn: done_i.psn};
    refused_case = '{underrun: 1'b0, by_access: refused_i.status != roci_pkg::XLAT_BUS_ERROR,
                     qp: refused_i.qp, slot: roci_pkg::replay_slot_t'(refused_i.wqe_index),
                     psn: refused_i.psn};
    failed_case = '{underrun: 1'b0, by_access: 1'b0, qp: failed_i.qp, slot: failed_i.slot,
                    psn: failed_i.psn};
    done_head = case_t'(done_bits);
  end

  common_fifo #(.WIDTH($bits(case_t)), .DEPTH(8)) u_done (
    .clk_i, .rst_i,
    .in_valid_i(done_bad), .in_ready_o(), .in_i(done_case),
    .out_valid_o(done_valid), .out_ready_i(done_take), .out_o(done_bits), .usage_o()
  );

  // ----------------------------------------------------------------------------- one at a time
  typedef enum logic [1:0] {STEP_IDLE, STEP_READ, STEP_WAIT, STEP_OP} step_e;
  step_e step_q;
  logic [1:0] wait_q;
  roci_pkg::read_ordinal_t ordinal_q;
  logic [23:0] packet_q, packets_q, msn_q;

  assign refused_ready_o = step_q == STEP_IDLE;
  assign failed_ready_o = step_q == STEP_IDLE && !refused_valid_i;
  assign done_take = step_q == STEP_IDLE && !refused_valid_i && !failed_valid_i;
  wire unused_failed = &{1'b0, failed_i.ordinal, failed_i.failed, failed_i.value};
  assign entry_read_o = step_q == STEP_READ;
  assign entry_slot_o = case_q.slot;

  always_ff @(posedge clk_i) begin
    unique case (step_q)
      STEP_IDLE: begin
        case_q <= refused_valid_i ? refused_case : failed_valid_i ? failed_case : done_head;
        if (refused_valid_i || failed_valid_i || done_valid) step_q <= STEP_READ;
      end
      STEP_READ: begin
        wait_q <= 2'(responder_pkg::REPLAY_LATENCY - 1);
        if (entry_granted_i) step_q <= STEP_WAIT;
      end
      STEP_WAIT: begin
        wait_q <= wait_q - 2'd1;
        ordinal_q <= entry_i.ordinal;
        packet_q <= case_q.psn - entry_i.first_psn;
        packets_q <= entry_i.packets;
        msn_q <= entry_i.msn;
        if (wait_q == 2'd0) step_q <= STEP_OP;
      end
      default: begin
        if (!op_valid_o || op_ready_i) step_q <= STEP_IDLE;
      end
    endcase
    if (rst_i) step_q <= STEP_IDLE;
  end

  always_comb begin
    op_o = '0;
    op_o.qp = case_q.qp;
    op_o.kind = case_q.underrun ? responder_pkg::RESPOND_OP_LOWER
                                : responder_pkg::RESPOND_OP_FATAL;
    op_o.ordinal = ordinal_q;
    op_o.packet = packet_q;
    op_o.info.kind = roci_pkg::RESPOND_NAK;
    op_o.info.psn = case_q.psn;
    op_o.info.msn = msn_q - 24'd1;             // without this READ
    op_o.info.syndrome = case_q.by_access ? responder_pkg::NAK_REMOTE_ACCESS
                                          : responder_pkg::NAK_REMOTE_OPERATIONAL;
    op_o.by_access = case_q.by_access;
    // an entry that was reused meanwhile says that the peer has gone on: no need to send again
    op_valid_o = step_q == STEP_OP && !(case_q.underrun && packet_q >= packets_q);
    busy_o = step_q != STEP_IDLE || done_valid;
  end

endmodule

`default_nettype wire
