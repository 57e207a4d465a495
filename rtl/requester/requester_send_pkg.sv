// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Types that the parts of the sending side share among themselves (requester_packetizer and what it
// is made of); what crosses its border is in roci_pkg.
`default_nettype none

package requester_send_pkg;

  // What a WQE asks for, as far as packets are concerned.
  typedef enum logic [2:0] {
    KIND_NOP = 3'd0,
    KIND_SEND = 3'd1,
    KIND_WRITE = 3'd2,
    KIND_READ = 3'd3,
    KIND_OTHER = 3'd4,               // not executable here: vendor_status says so
    KIND_ATOMIC = 3'd5               // wc_opcode says which
  } kind_e;

  // A whole WQE (requester_wqe_front). Its SGEs travel beside it (requester_sge_walk).
  typedef struct packed {
    roci_pkg::colour_t colour;
    logic turn;                      // first one after another QP's (wqe_block_t)
    logic bus_error;                 // a block of it could not be read: the fields mean nothing
    roci_pkg::qp_t qp;
    roci_pkg::epoch_t epoch;
    roci_pkg::sq_index_t index;      // of its first block
    logic [3:0] blocks;              // 1..8
    logic [7:0] vendor_status;       // roci_hwif_pkg vendor_status; not 0: cannot be executed
    kind_e kind;
    logic [7:0] wc_opcode;           // opcode of its completion (roci_hwif_pkg cqe_opcode)
    logic has_imm;
    logic signaled;
    logic fence;
    logic solicited;
    logic datagram;                  // has an address vector, at bytes 32 to 79
    logic inline_data;               // the payload is in the WQE; of an atomic its operands
    logic [31:0] imm;
    logic [31:0] length;             // 0..2^31; atomic: 8, what comes back
    roci_pkg::addr_t va;             // at the peer
    roci_pkg::mkey_t rkey;
    roci_pkg::addr_t inline_addr;    // DMA address of the inline bytes
    logic [3:0] sges;                // SGEs beside it: those with a length
  } wqe_t;

  // Columns QP_TX of a QP (hwif ctx_qp_tx).
  typedef struct packed {
    logic [2:0] qp_type;
    logic [3:0] mtu_log2;            // 8..12
    roci_pkg::fn_t fn;
    roci_pkg::pd_t pd;
    logic [7:0] max_rd_atomic;
    roci_pkg::inflight_slot_t inflight_base;
    logic [3:0] inflight_log2;
    roci_pkg::read_slot_t read_base;
    logic [3:0] read_log2;
  } context_t;

  // Dynamic row of a QP. next_psn and read_ordinal are those of the WQE to come, or, inside a
  // message, of the WQE at work.
  typedef struct packed {
    roci_pkg::epoch_t epoch;         // of the WQE that wrote the row; in another, load the point
    roci_pkg::psn_t next_psn;
    roci_pkg::psn_t max_psn;         // one past the highest PSN ever sent
    roci_pkg::psn_t resume_psn;      // packets below it are not sent again; never below next_psn
    roci_pkg::psn_t read_end_psn;    // one past the last READ response or atomic, or acked_psn
    roci_pkg::read_ordinal_t read_ordinal;
    // Largest packets that may be unacknowledged, log2 of bytes: of those before mark_psn, and of the one
    // before it and those from it on. When all before the mark are acknowledged it moves on.
    roci_pkg::psn_t mark_psn;
    logic [3:0] size_before;
    logic [3:0] size_since;
    logic [3:0] unasked;             // packets sent since the last one with AckReq
  } row_t;

  // Everything known of a QP when its WQE comes to its turn.
  typedef struct packed {
    wqe_t wqe;
    context_t ctx;
    row_t row;
    logic row_old;                   // the row is of another epoch: load the rewind point
    logic [23:0] psn_count;          // PSNs of the WQE: max(1, ceil(length / MTU)), or 0 if it is void
    logic is_void;                   // no packet comes of it: NOP, datagram longer than the MTU
    logic [3:0] size_log2;           // its largest packet, log2 of bytes, rounded up
    roci_pkg::epoch_t epoch;         // the QP's present one
    roci_pkg::rewind_point_t point;  // where it began
    roci_pkg::qp_state_e state;
    logic waiting;                   // RNR wait
    roci_pkg::sq_index_t oldest_index;   // from ack_state_t, as the next ones
    roci_pkg::psn_t acked_psn;
    roci_pkg::read_ordinal_t reads_done;
    logic stop_valid;
    roci_pkg::psn_t stop_psn;
  } look_t;

  // What happens with a WQE, or with the rest of one.
  typedef enum logic [3:0] {
    VERDICT_DISCARD = 4'd0,          // old epoch, or the QP is dead
    VERDICT_STALL = 4'd1,            // not now: rewind and sleep
    VERDICT_YIELD = 4'd2,            // quantum used up: rewind and queue again
    VERDICT_BUS_ERROR = 4'd3,        // ring unreadable: ERR with an event, then as STALL
    VERDICT_LOCAL_ERROR = 4'd4,      // not executable: report, then as STALL
    VERDICT_FLUSH = 4'd5,            // ERR: flush record
    VERDICT_NOP = 4'd6,              // record without packets: it is void
    VERDICT_SKIP = 4'd7,             // some of its packets need not be sent again
    VERDICT_SEND = 4'd8              // the next packet goes out
  } verdict_e;

  // Its answer brings data: takes a READ credit and a READ record, and a fence waits for it.
  function automatic logic is_fetch(input kind_e kind);
    return kind == KIND_READ || kind == KIND_ATOMIC;
  endfunction

  // a comes after b in the PSN circle (wire.md 2.1).
  function automatic logic psn_after(input roci_pkg::psn_t a, input roci_pkg::psn_t b);
    roci_pkg::psn_t distance;
    distance = b - a;
    return distance[23];
  endfunction

endpackage

`default_nettype wire
