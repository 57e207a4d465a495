// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Types between the blocks of the responder: requests as its checks see them, rows of its tables,
// the action a request leads to, and entries of the READ replay table.
`default_nettype none

package responder_pkg;

  // Low five bits of the RC opcodes (wire.md 1.4).
  localparam logic [4:0] OP_SEND_FIRST = 5'h00;
  localparam logic [4:0] OP_SEND_MIDDLE = 5'h01;
  localparam logic [4:0] OP_SEND_LAST = 5'h02;
  localparam logic [4:0] OP_SEND_LAST_IMM = 5'h03;
  localparam logic [4:0] OP_SEND_ONLY = 5'h04;
  localparam logic [4:0] OP_SEND_ONLY_IMM = 5'h05;
  localparam logic [4:0] OP_WRITE_FIRST = 5'h06;
  localparam logic [4:0] OP_WRITE_MIDDLE = 5'h07;
  localparam logic [4:0] OP_WRITE_LAST = 5'h08;
  localparam logic [4:0] OP_WRITE_LAST_IMM = 5'h09;
  localparam logic [4:0] OP_WRITE_ONLY = 5'h0a;
  localparam logic [4:0] OP_WRITE_ONLY_IMM = 5'h0b;
  localparam logic [4:0] OP_READ_REQUEST = 5'h0c;
  localparam logic [4:0] OP_READ_RESP_FIRST = 5'h0d;
  localparam logic [4:0] OP_READ_RESP_MIDDLE = 5'h0e;
  localparam logic [4:0] OP_READ_RESP_LAST = 5'h0f;
  localparam logic [4:0] OP_READ_RESP_ONLY = 5'h10;
  localparam logic [4:0] OP_ACKNOWLEDGE = 5'h11;
  localparam logic [4:0] OP_ATOMIC_ACK = 5'h12;
  localparam logic [4:0] OP_CMP_SWAP = 5'h13;
  localparam logic [4:0] OP_FETCH_ADD = 5'h14;

  // AETH syndromes (wire.md 2.6, 2.14). Credit code 31: no end-to-end flow control.
  localparam logic [7:0] SYNDROME_ACK = 8'h1f;
  localparam logic [7:0] SYNDROME_RNR = 8'h20;                  // | timer code
  localparam logic [7:0] NAK_SEQUENCE = 8'h60;
  localparam logic [7:0] NAK_INVALID_REQUEST = 8'h61;
  localparam logic [7:0] NAK_REMOTE_ACCESS = 8'h62;
  localparam logic [7:0] NAK_REMOTE_OPERATIONAL = 8'h63;

  // Bits of completion_t.flags (hwif cqe, bits 152..159).
  localparam int unsigned FLAG_GRH_PRESENT = 0;
  localparam int unsigned FLAG_VLAN_PRESENT = 1;
  localparam int unsigned FLAG_SOLICITED = 2;

  // What an atomic has where a READ has its length: more than 2^31, so no READ has it.
  localparam logic [31:0] LENGTH_FETCH_ADD = 32'hc000_0000;
  localparam logic [31:0] LENGTH_CMP_SWAP = 32'hc000_0001;
  function automatic logic is_atomic(input logic [31:0] length);
    return length[31:30] == 2'b11;
  endfunction

  // ----------------------------------------------------------------------- requests and rows
  typedef enum logic {
    REQUEST_FRAME = 1'b0,
    REQUEST_FLUSH = 1'b1             // QP in ERR: complete its next receive WQE
  } request_kind_e;

  // What the checks need of a frame.
  typedef struct packed {
    request_kind_e kind;
    roci_pkg::colour_t colour;
    roci_pkg::qp_t qp;
    roci_pkg::fn_t fn;
    logic [4:0] op;
    logic ackreq;
    logic solicited;
    logic pad;                       // PadCnt is not 0
    logic vlan_valid;
    logic [15:0] tci;
    roci_pkg::psn_t psn;
    roci_pkg::packet_len_t payload_length;
    roci_pkg::addr_t va;             // datagrams: pkey_index in 33:32, source QP in 23:0
    roci_pkg::mkey_t rkey;
    logic [31:0] dma_length;
    logic [31:0] imm;
  } request_t;

  // Row of column QP_RQ as stored (hwif ctx_qp_rq).
  typedef struct packed {
    roci_pkg::cq_t cq;
    roci_pkg::pd_t pd;
    roci_pkg::qpn_t qpn;
    logic [2:0] qp_type;
    logic [2:0] mtu;
    logic [23:0] srqn;
    logic has_srq;
    logic remote_write;
    logic remote_read;
    logic remote_atomic;
    logic [4:0] min_rnr_timer;
    logic [2:0] replay_log2;
    roci_pkg::replay_slot_t replay_base;
  } static_row_t;

  typedef enum logic [1:0] {
    MESSAGE_NONE = 2'd0, MESSAGE_SEND = 2'd1, MESSAGE_WRITE = 2'd2
  } message_e;

  // Row of column QP_RQ_DYN (hwif ctx_qp_rq_dyn) and the message in progress.
  typedef struct packed {
    logic held;                      // the QP has a receive WQE: of the SEND in progress, or (UC) of one
                                     // that was broken off, for the next message that needs one
    roci_pkg::psn_t next_psn;
    logic [23:0] msn;
    message_e message;
    logic nak_sent;
    logic closed;
    logic established;
    logic [3:0] unacknowledged;
    roci_pkg::psn_t acked_psn;       // UC: with `reads`, the bytes of the receive WQE that is held
    roci_pkg::read_ordinal_t reads;
    roci_pkg::addr_t va;             // WRITE: next byte
    roci_pkg::mkey_t rkey;
    logic [31:0] remaining;          // WRITE: bytes to come; SEND: what is left of the receive buffer
    logic [31:0] total;              // WRITE: RETH.DMALen; SEND: bytes so far
  } dyn_row_t;

  // ------------------------------------------------------------------------------- actions
  typedef enum logic [2:0] {
    ACTION_DROP = 3'd0,              // payload away; perhaps an ACK or NAK
    ACTION_WRITE = 3'd1,
    ACTION_SEND = 3'd2,
    ACTION_READ = 3'd3,              // or atomic: `length` tells
    ACTION_DUP_READ = 3'd4,          // READ or atomic: look for it in the replay entries
    ACTION_FAIL = 3'd5,              // fatal: NAK, ERR; completes the receive WQE in use
    ACTION_FLUSH = 3'd6              // no frame, QP in ERR: completes a receive WQE, if it has one,
                                     // with a flush error
  } action_e;

  // What a request leads to, in frame order, to responder_read and responder_receive.
  typedef struct packed {
    action_e kind;
    roci_pkg::colour_t colour;
    roci_pkg::qp_t qp;
    roci_pkg::fn_t fn;
    roci_pkg::pd_t pd;
    roci_pkg::psn_t psn;
    logic take;                      // a receive WQE was taken: it is at `slot`
    logic use_current;               // works on the QP's receive WQE in use
    logic restart;                   // use_current: from its start (UC: its message was broken off)
    logic unreliable;                // UC and datagrams: nobody is answered
    logic datagram;
    logic message_last;              // SEND, WRITE: the message ends
    roci_pkg::rq_entry_t entry;      // take: which WQE
    roci_pkg::slot_word_address_t slot;
    roci_pkg::packet_len_t payload_length;
    roci_pkg::addr_t va;             // WRITE, READ
    roci_pkg::mkey_t rkey;
    logic [31:0] length;             // READ, DUP_READ: DMALen or kind of atomic; with a WQE: byte_len
    logic imm_valid;
    logic [31:0] imm;                // atomic: replay slot, bit 31: CMP_SWAP
    logic solicited;
    logic vlan_valid;
    logic [15:0] tci;
    logic respond_valid;
    roci_pkg::respond_event_t respond;
    logic [23:0] nak_msn;
    logic [7:0] error_event;         // FAIL without a receive WQE in use
    logic [7:0] vendor_status;       // FAIL: RECV_TOO_SHORT is the receive WQE's, else the peer's fault
    logic [23:0] packets;            // READ, DUP_READ: response packets
    logic [2:0] mtu;                 // DUP_READ
    logic [2:0] replay_log2;         // READ, DUP_READ
    roci_pkg::replay_slot_t replay_base;
    roci_pkg::cq_t cq;
    roci_pkg::qpn_t qpn;
    logic [23:0] src_qp_or_srq;      // of the completion
    logic [1:0] pkey_index;          // datagrams
  } action_t;

  // ------------------------------------------------------------------------- READ replay
  // A READ or atomic that was accepted (wire.md 2.9). `ordinal` tells whether the slot was reused since.
  // The last 72 bits are written once more when an atomic is done: then `va` is its result.
  localparam int unsigned REPLAY_GRANULE = 72;
  typedef struct packed {
    roci_pkg::read_ordinal_t ordinal;
    roci_pkg::psn_t first_psn;
    logic [23:0] packets;            // response packets
    logic [23:0] msn;                // after it
    roci_pkg::mkey_t rkey;
    logic [31:0] length;             // READ; LENGTH_*: atomic
    logic [6:0] unused;
    logic done;                      // atomic: executed
    roci_pkg::addr_t va;             // READ; atomic that is done: what was in memory before
  } replay_entry_t;
  localparam int unsigned REPLAY_LATENCY = 2;    // cycles from read to entry

  // read -> respond: a duplicate READ asks for the responses from here on once more.
  typedef struct packed {
    roci_pkg::qp_t qp;
    roci_pkg::read_ordinal_t ordinal;
    logic [23:0] packet;             // within the READ
  } lower_t;

  // ---------------------------------------------------------------------------- responses
  // Row of column QP_RESP word 0 as stored (hwif ctx_qp_resp).
  typedef struct packed {
    roci_pkg::pd_t pd;
    roci_pkg::fn_t fn;
    logic [2:0] mtu;
    logic [2:0] replay_log2;
    roci_pkg::replay_slot_t replay_base;
  } respond_static_t;

  // What a QP has to send. READs are numbered by ordinals (modulo 256).
  typedef struct packed {
    roci_pkg::read_ordinal_t allowed;     // READs below it may be answered
    roci_pkg::read_ordinal_t cursor;      // READ being answered
    logic [23:0] packet;                  // its next response packet
    logic restart;                        // that packet starts a new response (FIRST or ONLY)
    roci_pkg::read_ordinal_t answered;    // READs below it were answered at least once
    logic ack_valid;                      // an ACK or NAK is to be sent
    roci_pkg::read_ordinal_t ack_order;   // after the READs below it
    roci_pkg::psn_t ack_psn;
    logic [23:0] ack_msn;
    logic [7:0] ack_syndrome;
    logic ack_leaving;                    // one was decided and has not yet left
    roci_pkg::psn_t good_psn;             // everything up to it is in memory
    logic closed;                         // a fatal NAK is or was to be sent
    logic error_pending;                  // ERR is to be asked for
    logic error_access;                   // with the event QP_ACCESS_ERROR, else QP_FATAL
  } respond_row_t;

  typedef enum logic [2:0] {
    RESPOND_OP_EVENT = 3'd0,              // a token
    RESPOND_OP_LOWER = 3'd1,              // cursor = min(cursor, ...)
    RESPOND_OP_FATAL = 3'd2,              // a response was refused or failed: NAK in its place
    RESPOND_OP_SKIP = 3'd3,               // the entry at the cursor is gone
    RESPOND_OP_WALK = 3'd4,               // decide the next packet
    RESPOND_OP_CTX = 3'd5,
    RESPOND_OP_LEFT = 3'd6,               // an ACK or NAK left
    RESPOND_OP_ATOMIC = 3'd7              // an atomic is done: its response may be due
  } respond_op_e;

  // `wqe_index` of a response: of a READ response as roci_pkg says, or this bit for ACK and NAK.
  localparam int unsigned IS_ACKNOWLEDGE = 15;

  typedef struct packed {
    respond_op_e kind;
    roci_pkg::qp_t qp;
    logic error;                          // EVENT: an earlier write failed
    roci_pkg::respond_event_t info;       // EVENT; FATAL: psn, msn, syndrome
    roci_pkg::read_ordinal_t ordinal;     // LOWER, SKIP; FATAL: READ or atomic that it is of
    logic [23:0] packet;                  // LOWER
    logic by_access;                      // FATAL: the event is QP_ACCESS_ERROR, else QP_FATAL
  } respond_op_t;

  // What a WALK decided.
  typedef struct packed {
    logic emit;                           // a packet
    logic is_read;                        // it is a READ response, else an ACK or NAK
    logic first;                          // READ: FIRST or ONLY
    logic last;                           // READ: LAST or ONLY
    logic again;                          // READ: it was answered to its end before
    logic miss;                           // the entry at the cursor is needed first
    logic more;                           // there is more to do
    logic error;                          // ask for ERR
  } respond_result_t;

  // ----------------------------------------------------------------------------- receives
  // Header word of a receive WQE in its slot: rq_fetch puts these over the reserved bytes.
  typedef struct packed {
    logic [77:0] reserved;
    logic bad_count;                 // more SGEs than the stride has room for
    logic unreadable;                // bus error
    logic [7:0] reserved_count;
    logic [7:0] sge_count;           // as in hwif rq_wqe_header
    logic [31:0] cookie;
  } slot_header_t;                   // 128 bits

  // ------------------------------------------------------------------------------------ atomics
  // An atomic that waits in responder_atomic: its word, and the rest.
  typedef struct packed {
    roci_pkg::fn_t fn;
    logic [63:3] addr;
  } atomic_where_t;

  typedef struct packed {
    roci_pkg::qp_t qp;
    roci_pkg::colour_t colour;
    logic is_swap;
    roci_pkg::replay_slot_t slot;
    roci_pkg::read_ordinal_t ordinal;
    roci_pkg::psn_t psn;
    logic [127:0] operands;
  } atomic_what_t;

  // Its word among those that are watched.
  typedef logic [host_pkg::ATOMIC_SLOT_BITS-1:0] atomic_slot_t;
  // Its place in the bus word, in units of 8 bytes; always 0 in narrow.
  localparam int unsigned ATOMIC_LANE_BITS = roci_config_pkg::IS_WIDE ? 3 : 1;
  typedef struct packed {
    atomic_slot_t slot;
    logic [ATOMIC_LANE_BITS-1:0] lane;
  } atomic_entered_t;

endpackage

`default_nettype wire
