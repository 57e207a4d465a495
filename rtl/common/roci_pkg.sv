// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Types of the streams between the blocks of the NIC: the contract inside the chip, as hwif/ is the
// contract around it. docs/architecture.md names, for each stream, who writes and who reads it.
// Widths come from roci_config_pkg. Layouts that software sees are NOT here (roci_hwif_pkg).
//
// Words used below: "decided" = a packet that will leave whatever happens (architecture.md rule 5);
// "token" = an entry of the ordered write stream that comes out when everything before it is in
// host memory (rule 4); "colour" = the 1-bit generation stamped at entry by which a fence knows
// what was granted before it (rule 8, context_fence).
`default_nettype none

package roci_pkg;

  // ---------------------------------------------------------------------------------- widths
  localparam int unsigned DATA_BYTES = roci_config_pkg::DATA_BYTES;
  localparam int unsigned DATA_BITS = 8 * DATA_BYTES;
  localparam int unsigned BYTES_BITS = $clog2(DATA_BYTES) + 1;  // counts 0..DATA_BYTES
  localparam int unsigned LANE_BITS = $clog2(DATA_BYTES);       // byte lane of an address
  localparam int unsigned EPOCH_BITS = 8;     // > bursts in flight, so that no epoch is met twice
  localparam int unsigned BLOCK_BYTES = 64;   // one SQ block
  localparam int unsigned LINE_BLOCKS = 8;    // no WQE crosses a line of 512 B (hwif/queues.toml)
  localparam int unsigned HEADER_BYTES = 80;  // GRH 40 + BTH 12 + AtomicETH 28, the longest

  typedef logic [roci_config_pkg::FN_BITS-1:0]  fn_t;
  typedef logic [roci_config_pkg::QP_BITS-1:0]  qp_t;    // index; the wire's QPN has 24 bits
  typedef logic [roci_config_pkg::CQ_BITS-1:0]  cq_t;
  typedef logic [roci_config_pkg::EQ_BITS-1:0]  eq_t;
  typedef logic [roci_config_pkg::SRQ_BITS-1:0] srq_t;
  typedef logic [roci_config_pkg::MR_BITS-1:0]  mr_t;
  typedef logic [roci_config_pkg::PD_BITS-1:0]  pd_t;
  typedef logic [roci_config_pkg::GID_BITS-1:0] gid_index_t;
  typedef logic [roci_config_pkg::INFLIGHT_BITS-1:0] inflight_slot_t;
  typedef logic [roci_config_pkg::READ_BITS-1:0]     read_slot_t;
  typedef logic [roci_config_pkg::REPLAY_BITS-1:0]   replay_slot_t;
  typedef logic [23:0] qpn_t;
  typedef logic [23:0] psn_t;
  typedef logic [63:0] addr_t;                 // DMA or virtual address
  typedef logic [31:0] mkey_t;                 // lkey or rkey: MPT index = [31:8]
  typedef logic [12:0] packet_len_t;           // 0..4096 bytes of payload
  typedef logic [15:0] sq_index_t;             // free-running block index of an SQ
  typedef logic [15:0] rq_index_t;             // free-running entry index of an RQ or SRQ
  typedef logic [EPOCH_BITS-1:0] epoch_t;
  typedef logic [7:0] read_ordinal_t;          // free-running count of READs and atomics of a QP
  typedef logic colour_t;

  // a < b in 24-bit PSN arithmetic (wire.md 2.1) is written (a - b) bit 23 by the users.

  // ------------------------------------------------------------------------------ data beats
  // Dense packet data: byte 0 in bits 7:0; every beat but the last is full.
  typedef struct packed {
    logic err;                       // on last: a bus error or underrun happened in this packet
    logic last;
    logic [BYTES_BITS-1:0] bytes;    // valid bytes of this beat, 1..DATA_BYTES
    logic [DATA_BITS-1:0] data;
  } beat_t;

  // Bus-aligned read data: lane = address modulo DATA_BYTES.
  typedef struct packed {
    logic err;                       // bus error in this beat
    logic last;                      // last beat of the request
    logic [DATA_BITS-1:0] data;
  } read_beat_t;

  // ------------------------------------------------------------------- context bus and states
  // One master (cpu), many owners. The request is held until the one owner of the column answers
  // `done` for one cycle; other owners keep their answer at zero, the top ORs them.
  typedef struct packed {
    logic valid;
    logic write;
    logic [5:0] column;              // roci_hwif_pkg ctx_column_e
    logic [15:0] index;              // object number (without incarnation)
    logic [3:0] word;                // 64-bit word of the object's row
    logic [63:0] wdata;
  } ctx_req_t;

  typedef struct packed {
    logic done;
    logic [63:0] rdata;
  } ctx_rsp_t;

  typedef enum logic [2:0] {
    QPS_RESET = 3'd0, QPS_INIT = 3'd1, QPS_RTR = 3'd2, QPS_RTS = 3'd3,
    QPS_SQD = 3'd4, QPS_SQE = 3'd5, QPS_ERR = 3'd6
  } qp_state_e;

  typedef enum logic [1:0] {QPT_RC = 2'd0, QPT_UC = 2'd1, QPT_UD = 2'd2, QPT_GSI = 2'd3} qp_type_e;

  // Every change of a QP's state, to the replicas of all readers; always accepted.
  typedef struct packed {
    logic valid;
    qp_t qp;
    qp_state_e state;
    qp_state_e from;                 // the state before
  } state_bcast_t;

  // Asks context_qp_state to go to ERR, or to SQE from RTS and SQD, and to raise an asynchronous event.
  // Never leaves ERR or RESET (compare and set).
  typedef struct packed {
    logic send_only;                 // UC, UD: only the sending side failed: SQE (wire.md 2.15)
    qp_t qp;
    logic event_valid;
    logic [7:0] event_type;          // roci_hwif_pkg event types
  } state_error_t;

  // ------------------------------------------------------------- address checks (context)
  typedef enum logic [2:0] {
    ACCESS_NONE = 3'd0,              // no key: va is already a DMA address (inline, rings)
    ACCESS_LOCAL_READ = 3'd1,
    ACCESS_LOCAL_WRITE = 3'd2,
    ACCESS_REMOTE_READ = 3'd3,
    ACCESS_REMOTE_WRITE = 3'd4,
    ACCESS_REMOTE_ATOMIC = 3'd5
  } access_e;

  typedef struct packed {
    logic check_only;                // rights and bounds, no translation (READ request on arrival)
    access_e access;
    mkey_t key;
    logic [31:0] length;             // > 0; <= 4096 unless check_only
    addr_t va;
  } piece_t;

  typedef struct packed {
    piece_t piece;
    fn_t fn;
    pd_t pd;
    qp_t qp;                         // windows of type 2B are bound to a QP
  } xlat_req_t;

  typedef enum logic [2:0] {
    XLAT_OK = 3'd0, XLAT_BAD_KEY = 3'd1, XLAT_BAD_PD = 3'd2, XLAT_BAD_RIGHTS = 3'd3,
    XLAT_BAD_BOUNDS = 3'd4, XLAT_BUS_ERROR = 3'd5
  } xlat_status_e;

  // One or two answers per request (a piece may cross one page boundary), in request order.
  // check_only, ACCESS_NONE and failures answer once.
  typedef struct packed {
    xlat_status_e status;
    logic last;                      // last answer of this request
    packet_len_t length;
    addr_t addr;
  } xlat_rsp_t;

  // mr_check -> mtt_cache: a request whose key was looked up, in request order per client.
  typedef struct packed {
    xlat_status_e status;
    logic check_only;
    logic paged;                     // addr is the position in the region's pages, else a DMA address
    fn_t fn;
    packet_len_t length;
    addr_t addr;
    logic [4:0] page_shift;
    mr_t mr;
    logic [7:0] incarnation;
    addr_t table_address;            // a multiple of 64
  } mr_checked_t;

  // ------------------------------------------------------------------------------- DMA reads
  typedef struct packed {
    fn_t fn;
    packet_len_t length;             // 1..4096, must not cross a 4 KB boundary
    addr_t addr;
  } dma_read_req_t;

  // A translated piece of a decided packet, in TX order, to host_gather.
  typedef struct packed {
    logic last;                      // last piece of the packet
    fn_t fn;
    packet_len_t length;
    addr_t addr;
  } gather_piece_t;

  // ------------------------------------------------------------------------------------- TX
  typedef enum logic {TX_REQUEST = 1'b0, TX_RESPONSE = 1'b1} tx_source_e;

  // `wqe_index` of a READ response: its replay slot, and this bit if the READ was answered before.
  localparam int unsigned RESPONSE_AGAIN = 14;
  // One packet, before its headers are built. Which extended headers it has follows from opcode.
  typedef struct packed {
    colour_t colour;                 // of the WQE, or sampled when the response walker popped the QP
    tx_source_e source;
    qp_t qp;
    fn_t fn;
    pd_t pd;
    logic [7:0] opcode;
    psn_t psn;
    logic ackreq;
    logic solicited;
    packet_len_t payload_length;
    addr_t va;                       // RETH, AtomicETH
    mkey_t rkey;                     // RETH, AtomicETH
    logic [31:0] dma_length;         // RETH
    logic [31:0] imm;                // ImmDt or IETH, its first byte on top
    logic [7:0] syndrome;            // AETH
    logic [23:0] msn;                // AETH
    sq_index_t wqe_index;            // requests: the WQE this packet belongs to; READ responses: above
    epoch_t epoch;                   // requests
  } tx_desc_t;

  // Packets on their way to packet_tx_decide: 1..n items each, `desc` equal in all of them.
  // A packet without payload has one item with has_piece = 0.
  typedef struct packed {
    logic last;
    logic has_piece;
    piece_t piece;
    tx_desc_t desc;
  } tx_item_t;
  // A packet that was not decided, back to its source.
  typedef struct packed {
    qp_t qp;
    sq_index_t wqe_index;
    psn_t psn;
    xlat_status_e status;
  } tx_refused_t;

  // What became of a decided packet, when its last beat left (UD and UC complete by it).
  typedef enum logic [1:0] {TX_SENT = 2'd0, TX_UNDERRUN = 2'd1, TX_BUS_ERROR = 2'd2} tx_fate_e;
  typedef struct packed {
    tx_fate_e fate;
    tx_source_e source;
    qp_t qp;
    psn_t psn;
    sq_index_t wqe_index;
    colour_t colour;
  } tx_done_t;

  // Ethernet fields that ride beside a packet that starts at its GRH.
  typedef struct packed {
    logic [47:0] dmac;               // first wire byte in bits 47:40
    logic [47:0] smac;
    logic vlan_valid;
    logic [15:0] tci;
  } ethernet_fields_t;

  // Rides beside every beat of a packet from packet_header_build to the wire, the same in all of them.
  // `done` is reported by ethernet_tx when the last beat has left, with the fate put in.
  typedef struct packed {
    logic whole;                     // UC, UD: leaves when all of it is here, as nobody sends it again
    ethernet_fields_t ethernet;
    tx_done_t done;
  } packet_side_t;

  // Properties of the port (context_port), quasi-static.
  localparam int unsigned GIDS = 2 ** roci_config_pkg::GID_BITS;
  localparam int unsigned PKEYS = 32'(roci_hwif_pkg::PKEY_TABLE_LENGTH);
  typedef struct packed {
    logic [PKEYS-1:0][15:0] pkey;    // 0: empty entry
    logic promiscuous;               // frames to any MAC and GID pass the receive filters
    logic [47:0] mac;                // first wire byte in bits 47:40
    logic [GIDS-1:0] gid_valid;
    logic [GIDS-1:0][127:0] gid;     // first wire byte in bits 127:120
  } port_t;

  // ------------------------------------------------------------------------------------- SQ
  // A burst of whole WQEs of one QP, as wqe_fetch hands its blocks to the packetizer.
  typedef struct packed {
    colour_t colour;
    logic err;                       // the ring could not be read
    logic burst_last;                // last block of the burst
    logic turn;                      // first block of a burst of another QP than the burst before
    qp_t qp;
    epoch_t epoch;
    sq_index_t index;                // of this block
    addr_t addr;                     // its DMA address: inline bytes are read from there
    logic [511:0] block;
  } wqe_block_t;

  // sq_scheduler -> wqe_fetch: a QP that may have work; its producer index follows a cycle later.
  typedef struct packed {
    qp_t qp;
    logic woken;                     // something changed since the last pop: a stalled QP may go on
  } sq_pop_t;

  // wqe_fetch -> sq_scheduler.
  typedef enum logic {
    SQ_AGAIN = 1'b0,                 // goes to the queue's end: more to fetch, rewound, woken
    SQ_RESTART = 1'b1                // new send queue: producer index becomes `index`, not queued
  } sq_requeue_kind_e;

  typedef struct packed {
    sq_requeue_kind_e kind;
    qp_t qp;
    sq_index_t index;
  } sq_requeue_t;

  // Where a QP starts again. Kept by queue_wqe_fetch, loaded by the packetizer with the first WQE
  // of the new epoch. first_psn and read_ordinal are those of the WQE at wqe_index.
  typedef struct packed {
    sq_index_t wqe_index;
    psn_t first_psn;
    psn_t resume_psn;                // packets below it are skipped
    read_ordinal_t read_ordinal;
  } rewind_point_t;

  typedef enum logic [1:0] {
    REWIND_STALL = 2'd0,             // packetizer: cannot go on; sleeps unless woken meanwhile
    REWIND_YIELD = 2'd1,             // packetizer: quantum used up; goes to the queue's end
    REWIND_RETRY = 2'd2,             // retry: always acts
    REWIND_SLEEP = 2'd3              // retry: rewinds, does not queue (RNR wait)
  } rewind_kind_e;

  typedef struct packed {
    rewind_kind_e kind;
    qp_t qp;
    epoch_t epoch;                   // of the WQE that stalled; STALL and YIELD of an old one are void
    rewind_point_t point;
  } rewind_req_t;

  // wqe_fetch -> packetizer: an epoch began. Always accepted; replicas are written by nothing else.
  typedef struct packed {
    logic valid;
    qp_t qp;
    epoch_t epoch;
    rewind_point_t point;
  } epoch_bcast_t;

  // In-flight record: what the ack walker needs of a WQE whose last packet was sent.
  typedef enum logic [2:0] {
    INFLIGHT_SEND = 3'd0,            // SEND, WRITE: done when last_psn is acknowledged
    INFLIGHT_READ = 3'd1,            // done when its last response is in memory
    INFLIGHT_ATOMIC = 3'd2,
    INFLIGHT_LOCAL = 3'd3,           // no PSN: bind, invalidate, fast register
    INFLIGHT_NOP = 3'd4,             // padding of a ring line: no completion ever
    INFLIGHT_FLUSH = 3'd5            // refetched in ERR: completes with the saved error or a flush
  } inflight_kind_e;

  typedef struct packed {
    inflight_kind_e kind;
    logic signaled;
    logic [3:0] blocks;              // 1..8
    logic [7:0] wc_opcode;           // opcode of the CQE (WrOpcode of hwif)
    logic [31:0] byte_len;
    psn_t first_psn;
    psn_t last_psn;
    read_ordinal_t read_ordinal;     // READ, ATOMIC: its ordinal
  } inflight_t;

  typedef struct packed {
    qp_t qp;
    sq_index_t wqe_index;
    epoch_t epoch;                   // of the WQE: the ack walker tells refetched records by it
    inflight_slot_t slot;
    inflight_t record;
  } inflight_write_t;

  // After each decided-to-be-sent packet: how far this QP has ever gone. Always accepted.
  typedef struct packed {
    logic valid;
    qp_t qp;
    psn_t psn;                       // of this packet
    psn_t next_psn;                  // one past the highest PSN ever sent (READ: past its responses)
    logic current;                   // no rewind was applied since its WQE was fetched
  } sent_t;

  // What the ack side tells the packetizer whenever it changes. Always accepted.
  typedef struct packed {
    logic valid;
    qp_t qp;
    sq_index_t oldest_index;         // oldest uncompleted WQE
    psn_t acked_psn;                 // everything below it is acknowledged
    read_ordinal_t reads_done;       // READs and atomics completed
    // A packet was refused or a WQE is not executable: nothing from stop_psn on will be sent, and
    // the packet before it asks for an acknowledgement when it is sent again.
    logic stop_valid;
    psn_t stop_psn;
  } ack_state_t;

  // packetizer -> ack: a WQE that cannot be executed (bad WQE, failed local operation). It waits
  // there until it is the oldest, then the QP fails with this status. Status SUCCESS: the WQE stalls,
  // and what was sent before it did not ask for an acknowledgement: it has to be sent again.
  typedef struct packed {
    qp_t qp;
    sq_index_t wqe_index;
    psn_t psn;                       // first PSN that will not be sent
    logic [6:0] status;              // roci_hwif_pkg cqe_status
    logic [7:0] vendor_status;
  } local_error_t;

  // ack -> retry: the QP has to go back to its oldest WQE. Everything below resume_psn is popped;
  // the walk of the QP waits for the answer, so the point is still the oldest then.
  typedef enum logic [2:0] {
    RETRY_FLUSH = 3'd0,              // the QP failed: its WQEs come again as flush records
    RETRY_OVERTAKEN = 3'd1,          // uncounted: an ACK overtook a rewind, or a stop
    RETRY_UNDERRUN = 3'd2,           // uncounted: payload came late, or nobody asked for an ACK
    RETRY_TIMEOUT = 3'd3,            // counts, always acts
    RETRY_NAK_SEQUENCE = 3'd4,       // counts, once per loss
    RETRY_IMPLIED_NAK = 3'd5,        // counts, once per loss
    RETRY_RNR = 3'd6                 // counts against rnr_retry, not during its own wait
  } retry_cause_e;

  typedef struct packed {
    colour_t colour;
    retry_cause_e cause;
    logic progressed;                // acknowledged something since the last request of this QP
    logic [4:0] rnr_code;
    qp_t qp;
    rewind_point_t point;
  } retry_request_t;

  // The rewind was applied (or none was needed), or the limit is exceeded: then status says which.
  typedef struct packed {
    colour_t colour;
    qp_t qp;
    logic failed;
    logic [6:0] status;              // roci_hwif_pkg cqe_status
    logic [7:0] vendor_status;
  } retry_result_t;

  // ------------------------------------------------------------------------------------- RQ
  // Receive queues: number = QP for an RQ, 2^QP_BITS + SRQ for an SRQ (hwif: column RQ).
  typedef logic [roci_config_pkg::QP_BITS:0] rq_number_t;
  localparam int unsigned RQ_COUNT = 2 ** roci_config_pkg::QP_BITS + 2 ** roci_config_pkg::SRQ_BITS;
  // A fetched receive WQE lies in slots of 64 B; they are read in words of 32 B (two SGEs).
  localparam int unsigned SLOT_WORD_BITS = 256;
  localparam int unsigned SLOT_LATENCY = 2;     // cycles from slot read to data
  typedef logic [roci_config_pkg::SLOT_BITS:0] slot_word_address_t;

  // rq_fetch -> responder_check: what a queue has.
  typedef struct packed {
    logic ready;                     // the WQE at `index` is in a slot
    logic empty;                     // nothing is posted that was not taken (RNR)
    rq_index_t index;                // next WQE to take
    slot_word_address_t slot;        // where it is, or will be
  } rq_look_t;

  // responder -> rq_fetch: WQE `index` was taken, or its slots are free (both in index order).
  typedef struct packed {
    rq_number_t rq;
    rq_index_t index;
  } rq_entry_t;
  // rq_fetch -> responder: a WQE of this queue came to its slot. Always accepted.
  typedef struct packed {
    logic valid;
    rq_number_t rq;
  } rq_landed_t;

  // -------------------------------------------------------------------------- READ records
  // A READ or atomic on the wire, for the responses (written by the packetizer, kept by read_data).
  typedef struct packed {
    addr_t va;
    logic [31:0] length;
    mkey_t lkey;
  } sge_t;

  typedef struct packed {
    qp_t qp;
    read_slot_t slot;
    read_ordinal_t ordinal;
    psn_t first_psn;
    psn_t last_psn;
    logic atomic;                    // it is an atomic, else a READ
    logic [31:0] length;
    logic [2:0] sge_count;
    sge_t [roci_config_pkg::MAX_SGE_RD-1:0] sges;
  } read_record_write_t;

  // ------------------------------------------------------------------------------------- RX
  // Ethernet fields that matter behind the receive filters; rx_side_t rides beside every beat of a
  // received frame (GRH at byte 0), the same in all of them.
  typedef struct packed {
    logic [47:0] smac;               // first wire byte in bits 47:40
    logic vlan_valid;
    logic [15:0] tci;
  } rx_ethernet_t;
  typedef struct packed {
    logic loopback;
    rx_ethernet_t ethernet;
  } rx_side_t;

  // Headers of a frame that passed FCS, Ethernet, GRH, BTH and ICRC checks (header_parse).
  typedef struct packed {
    logic loopback;
    logic [47:0] smac;
    logic vlan_valid;
    logic [15:0] tci;
    logic [127:0] sgid;              // first wire byte in bits 127:120
    logic [127:0] dgid;
    logic [7:0] opcode;
    logic solicited;
    logic [1:0] pad_count;
    logic [15:0] pkey;
    qpn_t dest_qpn;
    logic ackreq;
    psn_t psn;
    addr_t va;                       // RETH, AtomicETH
    mkey_t rkey;
    logic [31:0] dma_length;
    logic [31:0] imm;                // ImmDt or IETH
    logic [7:0] syndrome;            // AETH
    logic [23:0] msn;
    packet_len_t payload_length;     // without pad; PayLen says more than 4096: frame was dropped
    logic ecn_marked;                // FECN or BECN
  } rx_headers_t;

  // A frame of a live QP (rx_dispatch): requests go to the responder, responses to the requester.
  typedef struct packed {
    colour_t colour;
    qp_t qp;
    fn_t fn;
    qp_type_e qp_type;
    qp_state_e state;
    rx_headers_t headers;
  } rx_packet_t;

  // rx_dispatch -> rx_commit, one per good frame, in frame order: whose items come next.
  typedef enum logic [1:0] {
    RX_DROPPED = 2'd0,               // by the dispatcher: only its payload must go
    RX_RESPONDER = 2'd1,
    RX_REQUESTER = 2'd2
  } rx_unit_e;

  typedef struct packed {
    rx_unit_e target;
    logic has_payload;
    colour_t colour;
  } rx_order_t;

  // ------------------------------------------------------------------------------------ tokens
  // Completion request: everything of the CQE but its place, time and phase bit.
  typedef struct packed {
    cq_t cq;
    logic solicited;
    logic is_error;                  // errors count as solicited
    logic [23:0] qpn;
    logic [7:0] opcode;
    logic [31:0] wqe_index_or_cookie;
    logic [31:0] byte_len;
    logic [31:0] imm_or_key;
    logic [23:0] src_qp_or_srq;
    logic [7:0] flags;
    logic [15:0] tci;
    logic [15:0] pkey_index;
    logic [6:0] status;
    logic [7:0] vendor_status;
  } completion_t;

  // ack -> cq_writer: a completion of the send queue.
  typedef struct packed {
    colour_t colour;                 // of the walk: held until the CQE is in memory
    qp_t qp;
    completion_t completion;
  } sq_completion_t;

  // To responder_respond, in PSN order of the QP.
  typedef enum logic [2:0] {
    RESPOND_ACK = 3'd0,              // coalesced ACK up to psn
    RESPOND_NAK = 3'd1,              // sequence NAK, fatal NAK or RNR NAK: syndrome says which
    RESPOND_READ = 3'd2,             // READ of ordinal `entry` may now be answered; psn: its last
    RESPOND_DUP_ACK = 3'd3,          // duplicate SEND or WRITE: acknowledge again
    RESPOND_DUP_READ = 3'd4          // cursor = min(cursor, psn within entry)
  } respond_kind_e;

  typedef struct packed {
    respond_kind_e kind;
    psn_t psn;
    logic [23:0] msn;
    logic [7:0] syndrome;
    replay_slot_t entry;             // bits 7:0: READs and atomics accepted before this packet
  } respond_event_t;

  // A token of kind RESPOND as host_dma_write hands it over.
  typedef struct packed {
    qp_t qp;
    logic error;                     // a write of this QP before it failed (token_t)
    respond_event_t info;
  } respond_token_t;

  // respond -> check: all READs and atomics with smaller ordinals are answered. Always accepted.
  typedef struct packed {
    logic valid;
    qp_t qp;
    read_ordinal_t ordinal;
  } reads_answered_t;

  // To requester_ack, in the order the frames came and behind their data.
  typedef enum logic [2:0] {
    ACK_EVENT_ACK = 3'd0,            // psn acknowledged
    ACK_EVENT_NAK_SEQUENCE = 3'd1,
    ACK_EVENT_RNR = 3'd2,
    ACK_EVENT_NAK_FATAL = 3'd3,      // syndrome tells the status
    ACK_EVENT_READ = 3'd4,           // responses up to psn are in memory
    ACK_EVENT_IMPLIED_NAK = 3'd5,    // response psn missing; msn holds the PSN that told so
    ACK_EVENT_LOCAL_ERROR = 3'd6,    // response could not be placed: status in syndrome
    ACK_EVENT_DRAINED = 3'd7         // the QP is in ERR: no response of it is placed behind this
  } ack_event_kind_e;

  typedef struct packed {
    ack_event_kind_e kind;
    psn_t psn;
    logic [23:0] msn;
    logic [7:0] syndrome;
  } ack_event_t;

  // host_dma_write -> ack: an ACK event that came out of the commit FIFO.
  typedef struct packed {
    qp_t qp;
    logic error;                     // a write of this QP before it failed
    ack_event_t ack_event;
  } ack_token_t;

  typedef enum logic [2:0] {
    TOKEN_END = 3'd0,                // nothing but the end of a received packet
    TOKEN_COMPLETION = 3'd1,
    TOKEN_RESPOND = 3'd2,
    TOKEN_ACK_EVENT = 3'd3,
    TOKEN_CQE_DONE = 3'd4,           // a CQE is in memory: arm check (cq_writer's own)
    TOKEN_EQE_DONE = 3'd5,           // an EQE is in memory: interrupt (eq_writer's own)
    TOKEN_CPU = 3'd6,                // copy engine's write is in memory
    TOKEN_ATOMIC = 3'd7              // atomic engine's own: what came before is in memory
  } token_kind_e;

  // `body` holds a completion_t, respond_event_t, ack_event_t or the owner's own tag, LSB aligned.
  localparam int unsigned TOKEN_BODY_BITS = $bits(completion_t);
  typedef struct packed {
    token_kind_e kind;
    qp_t qp;
    colour_t colour;
    logic packet_end;                // last token of a received packet (any kind): fence count
    logic error;                     // set by host_dma_write: a write of this QP before it failed
    logic [TOKEN_BODY_BITS-1:0] body;
  } token_t;

  // ------------------------------------------------------------- RX: from units to the commit
  // Ends of a received packet that passed its checks; a failed piece replaces them (rx_commit).
  typedef struct packed {
    logic drop;                      // payload is not placed (duplicates, NAKs, flushes)
    logic completion_valid;
    completion_t completion;
    logic respond_valid;
    respond_event_t respond;
    logic ack_event_valid;
    ack_event_t ack_event;
    logic error_valid;               // ask for ERR with this packet (protocol errors found in check)
    logic [7:0] error_event;         // async event type, 0 = none
    // what a failed piece turns this packet into: NAK syndrome for remote keys (0x62), for local
    // keys of a receive WQE (0x63 and an error completion), LOCAL_ERROR for a response
    logic receive_in_use;            // a receive WQE is held: its completion_t is valid for an error
    logic unreliable;                // UC, UD: nobody is answered, a bad remote key costs only the packet
    logic [23:0] nak_msn;            // MSN without this packet, for the NAK if a piece fails
  } rx_end_t;

  // 1..n items per packet, `end_info` equal in all of them. Atomic (one piece, ACCESS_REMOTE_ATOMIC):
  // completion.imm_or_key has its replay slot, in bit 31 CMP_SWAP.
  typedef struct packed {
    colour_t colour;
    logic no_frame;                  // flush of a QP in ERR: no frame and no rx_order_t, one item;
                                     // its tokens are made although the QP is void
    logic last;
    logic has_piece;
    piece_t piece;
    qp_t qp;
    fn_t fn;
    pd_t pd;
    psn_t psn;
    logic is_response;               // from read_data
    rx_end_t end_info;
  } rx_item_t;

  // From rx_commit to host_scatter, in frame order.
  typedef enum logic [1:0] {
    SCATTER_PIECE = 2'd0,            // next `length` payload bytes go to addr
    SCATTER_DROP = 2'd1,             // the rest of the packet's payload is thrown away
    SCATTER_TOKEN = 2'd2,
    // the packet's 16 payload bytes are operands for responder_atomic: addr is the DMA address, with
    // bit 0 = CMP_SWAP; length is the replay slot; the packet's RESPOND_READ token comes with it
    SCATTER_ATOMIC = 2'd3
  } scatter_kind_e;

  typedef struct packed {
    scatter_kind_e kind;
    logic packet_last;               // PIECE: the payload ends here
    logic has_token;                 // PIECE, DROP: `token` follows at once (saves a TOKEN command)
    fn_t fn;
    qp_t qp;
    packet_len_t length;
    addr_t addr;
    token_t token;
  } scatter_cmd_t;

  // ---------------------------------------------------------------------------------- atomics
  // host_scatter -> responder_atomic: an accepted atomic whose address was checked.
  typedef struct packed {
    fn_t fn;
    qp_t qp;
    colour_t colour;
    logic [63:3] addr;               // DMA address of the 8-byte word
    logic is_swap;                   // CMP_SWAP, else FETCH_ADD
    replay_slot_t slot;              // its replay entry
    read_ordinal_t ordinal;
    psn_t psn;
    logic [127:0] operands;          // AtomicETH as on the wire: Swap or Add, Compare; first byte lowest
  } atomic_req_t;

  // responder_atomic -> responder_path: it was executed, or failed by a bus error.
  typedef struct packed {
    qp_t qp;
    replay_slot_t slot;
    read_ordinal_t ordinal;
    psn_t psn;
    logic failed;
    logic [63:0] value;              // what was in memory before, as a number
  } atomic_done_t;

  // ------------------------------------------------------------------------------ DMA writes
  // One write (or token) of the ordered stream; the data of a write follows on a beat stream.
  typedef struct packed {
    logic is_token;                  // no write, only `token`
    logic has_token;                 // a write, and `token` right behind it in the same commit entry
    fn_t fn;
    qp_t qp;                         // owner: a bad response fails only its later tokens
    packet_len_t length;             // 1..4096, must not cross a 4 KB boundary
    addr_t addr;
    token_t token;
  } dma_write_req_t;

  // Bus-aligned write data.
  typedef struct packed {
    logic last;
    logic [DATA_BYTES-1:0] strobe;
    logic [DATA_BITS-1:0] data;
  } write_beat_t;

  // ------------------------------------------------------------------------- doorbells, timers
  typedef enum logic [2:0] {
    DOORBELL_SQ = 3'd0, DOORBELL_RQ = 3'd1, DOORBELL_SRQ = 3'd2, DOORBELL_CQ_CONSUMED = 3'd3,
    DOORBELL_CQ_ARM = 3'd4, DOORBELL_EQ_CONSUMED_ARM = 3'd5
  } doorbell_kind_e;

  // A doorbell whose page and object were checked. Consumers only write RAM: always accepted.
  typedef struct packed {
    doorbell_kind_e kind;
    logic [15:0] object_index;       // without incarnation
    logic solicited_only;
    logic keep_consumed;             // CQ_ARM: the index says nothing about what is consumed
    logic [31:0] index;
  } doorbell_t;

  // retry -> timer: wait the coded time (wire.md 2.7) before this QP goes on; stops its ACK timer.
  typedef struct packed {
    qp_t qp;
    logic [4:0] code;
  } rnr_wait_t;

  // timer -> scheduler and packetizer: the wait began or ended. Always accepted.
  typedef struct packed {
    logic valid;
    qp_t qp;
    logic waiting;
  } rnr_bcast_t;

  typedef struct packed {
    logic is_rnr;
    qp_t qp;
    psn_t oldest_psn;
  } timer_report_t;

  // ----------------------------------------------------------------------------------- events
  // Asynchronous event for a function's event queue (eq_writer adds the place and phase).
  typedef struct packed {
    fn_t fn;
    logic eq_valid;                  // else the function's asynchronous EQ
    eq_t eq;
    logic [7:0] event_type;
    logic [7:0] cause;               // roci_hwif_pkg vendor_status, 0 = none
    logic [23:0] object;
    logic [31:0] data;
  } event_t;

  // --------------------------------------------------------------------------------- counters
  // One-cycle pulses; the names are those of the enumeration `counter` in hwif/csr.toml.
  typedef struct packed {
    logic retry_timeout;
    logic retry_nak_sequence;
    logic retry_implied_nak;
    logic retry_rnr;
    logic retry_underrun;
    logic retry_ack_overtook;
  } retry_counters_t;

  typedef struct packed {
    logic rx_drop_response;
    logic rx_ack;
    logic rx_nak_sequence;
    logic rx_nak_rnr;
    logic rx_nak_invalid_request;
    logic rx_nak_remote_access;
    logic rx_nak_remote_operational;
  } response_counters_t;

  // ------------------------------------------------------------------------------------ fence
  // Each unit counts what it holds of either colour (rule 8). busy bit c: something of colour c.
  typedef logic [1:0] fence_busy_t;

endpackage

`default_nettype wire
