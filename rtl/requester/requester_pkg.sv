// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Types that the blocks of the requester share among themselves; what crosses its border is in
// roci_pkg.
`default_nettype none

package requester_pkg;

  // Why a QP has to go back; the PSN it concerns is acked_psn.
  typedef enum logic [2:0] {
    PENDING_NONE = 3'd0,
    PENDING_SEQUENCE = 3'd1,         // sequence NAK
    PENDING_IMPLIED = 3'd2,          // implied NAK: a READ response is missing
    PENDING_RNR = 3'd3,              // RNR NAK with rnr_code
    PENDING_FATAL = 3'd4             // the WQE that holds acked_psn fails with status
  } ack_pending_e;

  // What a QP has been told (one writer: requester_ack_events), as far as the next event needs it.
  typedef struct packed {
    roci_pkg::psn_t acked_psn;       // everything below it is acknowledged
    ack_pending_e pending;
    logic timer;                     // the ACK timer expired
    logic underrun;                  // a packet at or after acked_psn was aborted, or did not ask
    logic sqd;                       // the QP is in SQD: its messages end, none begins
    logic idle;                      // all that it sent there is acknowledged (as of the last event)
    logic drained;                   // in ERR: no READ data comes any more
    logic tx_drained;                // in ERR or SQE: no packet leaves any more
    logic unreliable;                // UC, UD: leaving is the acknowledgement
    logic local_valid;               // a packet or WQE of ours cannot go out
    roci_pkg::psn_t local_psn;       // the first PSN that never leaves
  } ack_events_t;

  // Details of what is pending; only the walker needs them.
  typedef struct packed {
    logic [4:0] rnr_code;            // PENDING_RNR
    roci_pkg::sq_index_t local_index;
    logic [6:0] status;              // of the fatal or the local failure
    logic [7:0] vendor_status;
  } ack_details_t;

  // The walker has acted: pending (if it is still the one seen), timer and underrun are done.
  typedef struct packed {
    roci_pkg::qp_t qp;
    roci_pkg::psn_t acked_psn;
    ack_pending_e pending;
    logic failure;                   // also forget the local failure
    logic restart;                   // SQE: what was not acknowledged was never sent, PSNs go on there
  } ack_clear_t;

  // In-flight record as kept: no WQE has more than 8 blocks (0 means 8), opcodes of the send side
  // have 5 bits (hwif wr_opcode).
  typedef struct packed {
    roci_pkg::inflight_kind_e kind;
    logic signaled;
    logic [2:0] blocks;
    logic [4:0] wc_opcode;
    logic [31:0] byte_len;
    roci_pkg::psn_t last_psn;
  } ack_record_t;

  // Which records of a QP are written.
  typedef struct packed {
    roci_pkg::sq_index_t horizon;    // index after the last record ever written, without gaps
    roci_pkg::epoch_t epoch;         // of the last record written
    roci_pkg::sq_index_t landed;     // index after the last record written in `epoch`
  } ack_horizon_t;

  // What one step of the walk makes others do (walker -> requester_ack_output).
  typedef struct packed {
    roci_pkg::qp_t qp;
    roci_pkg::colour_t colour;
    logic complete;                  // a completion with the fields below
    logic [4:0] wc_opcode;
    roci_pkg::sq_index_t wqe_index;
    logic [31:0] byte_len;
    logic [6:0] status;
    logic [7:0] vendor_status;
    logic wake;                      // window, records or READ credit came free
    logic fail;                      // ask for ERR
    logic drained;                   // SQ_DRAINED event
    roci_pkg::psn_t psn;             // of the event
    logic clear;                     // tell the event rows what was acted on
    ack_clear_t cleared;
    logic request;                   // ask requester_retry to go back
    roci_pkg::retry_request_t retry;
  } ack_action_t;

  // A judged response (requester_read_data -> requester_read_pieces).
  typedef struct packed {
    roci_pkg::colour_t colour;
    roci_pkg::qp_t qp;
    roci_pkg::fn_t fn;
    roci_pkg::pd_t pd;
    roci_pkg::psn_t psn;
    logic drop;                      // its payload is not placed
    logic has_data;                  // its payload belongs to the READ in `slot`
    roci_pkg::read_slot_t slot;
    logic [31:0] received;           // bytes of the READ before this packet
    roci_pkg::packet_len_t length;
    logic event_valid;
    roci_pkg::ack_event_t ack_event;
  } read_verdict_t;

endpackage

`default_nettype wire
