// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_ack_events: what the sending side of each QP has been told, as bounded per-QP state.
//
// One operation per cycle, whatever its source: acknowledge events of the peer, packets that left
// (UD and UC: that is their acknowledgement) or were aborted, refused packets, timer reports,
// changes of state. Each one updates the QP's event row (acknowledged PSN, pending cause to go
// back, failure that waits for its turn) and queues the QP for the walker, which acts on the row.
// Nothing here waits for the walker, for transmit or for completions (architecture.md rule 2).
//
// Which acknowledgements count (wire.md 2.4): those of PSNs in acked_psn ... next_psn - 1, others
// are ghosts and ignored. A NAK acknowledges what is below it. A pending sequence, implied or RNR
// NAK always belongs to acked_psn: it dies when that advances. If a packet was refused here, an
// event of that PSN or a later one (an earlier copy of them left) only acknowledges what is below
// the refused packet: that fails first, and the acknowledgement may be the last one to come.
//
// In ERR a token comes through the ordered writer, behind all READ data of the QP that will ever be
// placed (`drained`), and packet_tx_drain tells when the last packet that was decided has read its
// payload and left (`tx_drained`): before both nothing may be flushed (rule 4). In SQE (UC, UD) it is
// the latter alone, and PSNs go on with the first one that did not leave.
//
// Does not: pop records, count retries.
// Neighbours: host_dma_write, ethernet_route, packet_tx_decide, packet_tx_drain,
// requester_packetizer, context_timer → here → requester_ack_walker.
`default_nettype none

module requester_ack_events (
  input  wire                           clk_i,
  input  wire                           rst_i,

  // always accepted
  input  roci_pkg::sent_t               sent_i,        // how far each QP has ever gone
  input  wire                           making_i,      // the packetizer makes a packet
  input  roci_pkg::qp_t                 making_qp_i,   // of this QP; sent_i follows at its end
  input  wire                           tx_done_valid_i,
  input  roci_pkg::tx_done_t            tx_done_i,     // of requests and responses
  input  roci_pkg::state_bcast_t        state_i,

  // in ERR or SQE: no packet is on its way; not before what came with state_i earlier
  input  wire                           tx_drained_valid_i,
  output logic                          tx_drained_ready_o,
  input  roci_pkg::qp_t                 tx_drained_i,
  input  wire                           ack_event_valid_i,
  output logic                          ack_event_ready_o,
  input  roci_pkg::ack_token_t          ack_event_i,
  input  wire                           refused_valid_i,
  output logic                          refused_ready_o,
  input  roci_pkg::tx_refused_t         refused_i,
  output logic                          refused_stale_o,  // the one taken last cycle counts not
  input  wire                           local_error_valid_i,
  output logic                          local_error_ready_o,
  input  roci_pkg::local_error_t        local_error_i,
  input  wire                           report_valid_i,
  output logic                          report_ready_o,
  input  roci_pkg::timer_report_t       report_i,

  // firmware starts a QP: PSN loaded, nothing outstanding
  input  wire                           init_valid_i,
  output logic                          init_ready_o,
  input  roci_pkg::qp_t                 init_qp_i,
  input  roci_pkg::psn_t                init_psn_i,
  // type of each QP
  input  wire                           type_write_i,
  input  roci_pkg::qp_t                 type_qp_i,
  input  roci_pkg::qp_type_e            type_i,

  // walker: what it acted on; reads a QP's row and its details, data one cycle later
  input  wire                           clear_valid_i,
  output logic                          clear_ready_o,
  input  requester_pkg::ack_clear_t     clear_i,
  input  roci_pkg::qp_t                 walk_qp_i,
  output requester_pkg::ack_events_t    walk_events_o,
  output requester_pkg::ack_details_t   walk_details_o,

  // QPs to walk, after their row is written; always accepted
  output logic                          push_valid_o,
  output roci_pkg::qp_t                 push_qp_o,

  output logic                          ignored_o      // pulse: an event matched nothing
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam string STYLE = roci_config_pkg::IS_WIDE ? "block" : "distributed";

  typedef requester_pkg::ack_events_t row_t;

  typedef struct packed {
    roci_pkg::sq_index_t local_index;
    logic [6:0] status;
    logic [7:0] vendor_status;
  } failure_t;

  typedef enum logic [3:0] {
    OP_EVENT, OP_TX_DONE, OP_LOCAL, OP_TIMER, OP_CLEAR, OP_INIT, OP_STATE, OP_UNASKED, OP_DRAINED
  } op_e;

  typedef struct packed {
    op_e op;
    roci_pkg::qp_t qp;
    roci_pkg::psn_t psn;
    roci_pkg::psn_t trigger;                // PSN that must have been sent for psn to count
    roci_pkg::ack_event_kind_e kind;        // OP_EVENT
    roci_pkg::tx_fate_e fate;               // OP_TX_DONE
    logic [4:0] rnr_code;
    roci_pkg::sq_index_t wqe_index;         // OP_LOCAL, OP_TX_DONE
    logic sqd;                              // OP_STATE: SQD
    logic fresh;                            // OP_STATE: RESET, INIT, or RTS after SQE
    logic [6:0] status;                     // failures
    logic [7:0] vendor_status;
    requester_pkg::ack_clear_t clear;       // OP_CLEAR
  } operation_t;

  // ------------------------------------------------------------------------------ state
  logic op_valid_q;
  operation_t op_q;
  logic push_valid_q;
  roci_pkg::qp_t push_qp_q;
  logic init_sent_q;                        // INIT: next_psn is written, the row is not yet
  logic ignored_q;

  // --------------------------------------------------------------------- stage 0: choice
  logic op_valid;
  operation_t op;
  logic state_valid, state_ready, state_room, state_sqd, state_fresh;
  roci_pkg::qp_t state_qp;
  logic tx_request, init_sent;
  logic clear_open, restart_sent;           // a restart writes next_psn as well

  // State changes are rare and wait here for a free cycle.
  common_fifo #(.WIDTH(2 + $bits(roci_pkg::qp_t)), .DEPTH(16)) u_states (
    .clk_i, .rst_i,
    .in_valid_i(state_i.valid), .in_ready_o(state_room),
    .in_i({state_i.state == roci_pkg::QPS_RESET || state_i.state == roci_pkg::QPS_INIT
           || (state_i.state == roci_pkg::QPS_RTS && state_i.from == roci_pkg::QPS_SQE),
           state_i.state == roci_pkg::QPS_SQD, state_i.qp}),
    .out_valid_o(state_valid), .out_ready_i(state_ready),
    .out_o({state_fresh, state_sqd, state_qp}), .usage_o()
  );

  // Failures that the peer tells (wire.md 2.14) as {status, vendor status} of a completion.
  function automatic logic [14:0] nak_status(input logic [7:0] syndrome);
    unique case (syndrome[4:0])
      5'd1: return {7'(roci_hwif_pkg::CQE_STATUS_REM_INV_REQ_ERR),
                    8'(roci_hwif_pkg::VENDOR_STATUS_NAK_INVALID_REQUEST)};
      5'd2: return {7'(roci_hwif_pkg::CQE_STATUS_REM_ACCESS_ERR),
                    8'(roci_hwif_pkg::VENDOR_STATUS_NAK_REMOTE_ACCESS)};
      default: return {7'(roci_hwif_pkg::CQE_STATUS_REM_OP_ERR),
                       8'(roci_hwif_pkg::VENDOR_STATUS_NAK_REMOTE_OPERATIONAL)};
    endcase
  endfunction

  always_comb begin
    op = '0;
    op_valid = 1'b1;
    state_ready = 1'b0;
    clear_ready_o = 1'b0;
    report_ready_o = 1'b0;
    refused_ready_o = 1'b0;
    local_error_ready_o = 1'b0;
    ack_event_ready_o = 1'b0;
    init_ready_o = 1'b0;
    tx_drained_ready_o = 1'b0;
    // next_psn first, or with it: its write port belongs to sent_i
    tx_request = tx_done_valid_i && tx_done_i.source == roci_pkg::TX_REQUEST;
    clear_open = !clear_i.restart || !sent_i.valid;
    restart_sent = clear_valid_i && clear_i.restart && clear_open && !tx_request;
    init_sent = init_valid_i && !init_sent_q && !sent_i.valid && !restart_sent;

    // Requests that left come one in three cycles, as the packetizer makes them (one per cycle for
    // a while, if short ones waited behind a long packet); the others are rare: acknowledge events
    // always get through. Responses that left are of no interest.
    if (tx_request) begin
      op.op = OP_TX_DONE;
      op.qp = tx_done_i.qp;
      op.psn = tx_done_i.psn;
      op.trigger = tx_done_i.psn;
      op.fate = tx_done_i.fate;
      op.wqe_index = tx_done_i.wqe_index;
      op.status = 7'(roci_hwif_pkg::CQE_STATUS_LOC_QP_OP_ERR);
      op.vendor_status = 8'(roci_hwif_pkg::VENDOR_STATUS_PAYLOAD_READ_BUS);
    end else if (clear_valid_i) begin
      op.op = OP_CLEAR;
      op.qp = clear_i.qp;
      op.clear = clear_i;
      clear_ready_o = clear_open;
      op_valid = clear_open;
    end else if (state_valid) begin
      op.op = OP_STATE;
      op.qp = state_qp;
      op.sqd = state_sqd;
      op.fresh = state_fresh;
      state_ready = 1'b1;
    end else if (tx_drained_valid_i) begin
      // behind the state changes before its ERR, which end a `drained` of an old life
      op.op = OP_DRAINED;
      op.qp = tx_drained_i;
      tx_drained_ready_o = 1'b1;
    end else if (init_valid_i && init_sent_q) begin
      op.op = OP_INIT;
      op.qp = init_qp_i;
      op.psn = init_psn_i;
      init_ready_o = 1'b1;
    end else if (report_valid_i) begin
      op.op = OP_TIMER;
      op.qp = report_i.qp;
      op.psn = report_i.oldest_psn;
      report_ready_o = 1'b1;
      op_valid = !report_i.is_rnr;
    end else if (refused_valid_i) begin
      op.op = OP_LOCAL;
      op.qp = refused_i.qp;
      op.psn = refused_i.psn;
      op.wqe_index = refused_i.wqe_index;
      {op.status, op.vendor_status} = context_pkg::xlat_failure(refused_i.status);
      refused_ready_o = 1'b1;
    end else if (local_error_valid_i) begin
      op.op = local_error_i.status == 7'(roci_hwif_pkg::CQE_STATUS_SUCCESS) ? OP_UNASKED : OP_LOCAL;
      op.qp = local_error_i.qp;
      op.psn = local_error_i.psn;
      op.wqe_index = local_error_i.wqe_index;
      op.status = local_error_i.status;
      op.vendor_status = local_error_i.vendor_status;
      local_error_ready_o = 1'b1;
    end else begin
      op.op = OP_EVENT;
      op.qp = ack_event_i.qp;
      op.kind = ack_event_i.ack_event.kind;
      op.psn = ack_event_i.ack_event.psn;
      op.trigger = ack_event_i.ack_event.kind == roci_pkg::ACK_EVENT_IMPLIED_NAK
                   ? ack_event_i.ack_event.msn : ack_event_i.ack_event.psn;
      op.rnr_code = ack_event_i.ack_event.syndrome[4:0];
      {op.status, op.vendor_status} = nak_status(ack_event_i.ack_event.syndrome);
      if (ack_event_i.ack_event.kind == roci_pkg::ACK_EVENT_LOCAL_ERROR) begin
        op.status = ack_event_i.ack_event.syndrome[6:0];
        op.vendor_status = ack_event_i.ack_event.msn[7:0];
      end
      if (ack_event_i.error && ack_event_i.ack_event.kind == roci_pkg::ACK_EVENT_READ) begin
        // the data did not reach memory: the READ fails
        op.kind = roci_pkg::ACK_EVENT_LOCAL_ERROR;
        op.status = 7'(roci_hwif_pkg::CQE_STATUS_LOC_QP_OP_ERR);
        op.vendor_status = 8'(roci_hwif_pkg::VENDOR_STATUS_PAYLOAD_WRITE_BUS);
      end
      op_valid = ack_event_valid_i;
      ack_event_ready_o = 1'b1;
    end
  end

  // ---------------------------------------------------------------------- stage 1: row
  row_t row, next;
  roci_pkg::psn_t next_psn;
  logic [1:0] qp_type;
  roci_pkg::psn_t distance, trigger_distance, window, stop_distance;
  logic in_window, beyond_stop, fatal, accepted, ghost, row_write, push, sending;
  logic rnr_write, failure_write;
  roci_pkg::psn_t new_acked;
  requester_pkg::ack_pending_e new_pending;

  always_comb begin
    next = row;
    push = 1'b0;
    ghost = 1'b0;
    accepted = 1'b0;
    failure_write = 1'b0;
    rnr_write = 1'b0;
    new_pending = requester_pkg::PENDING_NONE;

    // acked_psn <= psn < next_psn; at or behind a packet that never left (24-bit distances, wire.md
    // 2.1)
    distance = op_q.psn - row.acked_psn;
    trigger_distance = op_q.trigger - row.acked_psn;
    window = next_psn - row.acked_psn;
    stop_distance = row.local_psn - row.acked_psn;
    in_window = distance < window && trigger_distance < window;
    beyond_stop = row.local_valid && distance >= stop_distance;
    fatal = row.pending == requester_pkg::PENDING_FATAL;
    new_acked = op_q.psn;

    unique case (op_q.op)
      OP_EVENT: begin
        accepted = in_window && !fatal && op_q.kind != roci_pkg::ACK_EVENT_DRAINED;
        ghost = !in_window && op_q.kind != roci_pkg::ACK_EVENT_DRAINED;
        if (op_q.kind == roci_pkg::ACK_EVENT_DRAINED) begin
          next.drained = 1'b1;
          push = 1'b1;
        end
        unique case (op_q.kind)
          roci_pkg::ACK_EVENT_ACK, roci_pkg::ACK_EVENT_READ: new_acked = op_q.psn + 24'd1;
          roci_pkg::ACK_EVENT_NAK_SEQUENCE: new_pending = requester_pkg::PENDING_SEQUENCE;
          roci_pkg::ACK_EVENT_IMPLIED_NAK: new_pending = requester_pkg::PENDING_IMPLIED;
          roci_pkg::ACK_EVENT_RNR: new_pending = requester_pkg::PENDING_RNR;
          default: new_pending = requester_pkg::PENDING_FATAL;
        endcase
        if (beyond_stop) begin
          new_acked = row.local_psn;
          new_pending = requester_pkg::PENDING_NONE;
        end
      end

      OP_TX_DONE: begin
        // UD and UC: leaving is the acknowledgement (architecture.md 3.1)
        accepted = op_q.fate == roci_pkg::TX_SENT && qp_type != roci_pkg::QPT_RC && in_window
                   && !beyond_stop;
        new_acked = op_q.psn + 24'd1;
        if (op_q.fate == roci_pkg::TX_UNDERRUN && in_window && !beyond_stop) begin
          next.underrun = 1'b1;
          push = 1'b1;
        end
      end

      OP_TIMER: begin
        // void if the QP went on since, or if nothing is outstanding; nobody answers UC and UD
        if (distance == '0 && window != '0 && !fatal && qp_type == roci_pkg::QPT_RC) begin
          next.timer = 1'b1;
          push = 1'b1;
        end
      end

      OP_DRAINED: begin
        next.tx_drained = 1'b1;
        push = 1'b1;
      end

      OP_UNASKED: begin
        // void if an acknowledgement of all came in between
        if (window != '0) begin
          next.underrun = 1'b1;
          push = 1'b1;
        end
      end

      OP_CLEAR: begin
        if (op_q.clear.acked_psn == row.acked_psn && op_q.clear.pending == row.pending
            && !fatal) begin
          next.pending = requester_pkg::PENDING_NONE;
        end
        next.timer = 1'b0;
        next.underrun = 1'b0;
        if (op_q.clear.failure) begin
          next.local_valid = 1'b0;
        end
      end

      OP_INIT: begin
        next = '0;
        next.acked_psn = op_q.psn;
        next.drained = row.drained;          // the QP may be in ERR already
        next.tx_drained = row.tx_drained;
      end

      OP_STATE: begin
        next.sqd = op_q.sqd;
        if (op_q.fresh) begin
          next.drained = 1'b0;
          next.tx_drained = 1'b0;
        end
        push = 1'b1;
      end

      default: ;
    endcase

    if (accepted) begin
      push = 1'b1;
      next.acked_psn = new_acked;
      if (new_acked != row.acked_psn) begin
        next.timer = 1'b0;
        next.pending = new_pending;
      end else if (row.pending == requester_pkg::PENDING_NONE
                   || new_pending == requester_pkg::PENDING_RNR
                   || new_pending == requester_pkg::PENDING_FATAL) begin
        // RNR: not undermined by a sequence NAK for the same PSN (wire.md 2.3)
        next.pending = new_pending;
      end
      rnr_write = new_pending == requester_pkg::PENDING_RNR;
      if (new_pending == requester_pkg::PENDING_FATAL) begin
        next.local_valid = 1'b0;
        failure_write = 1'b1;
      end
    end

    // A packet or WQE of our own that cannot go out: the lowest PSN counts, it fails first.
    if ((op_q.op == OP_LOCAL || (op_q.op == OP_TX_DONE && op_q.fate == roci_pkg::TX_BUS_ERROR))
        && !fatal && !distance[23] && (!row.local_valid || distance < stop_distance)) begin
      next.local_valid = 1'b1;
      next.local_psn = op_q.psn;
      failure_write = 1'b1;
      push = 1'b1;
    end

    // A packet that is made was begun before the packetizer knew of SQD: it does so two cycles
    // after the broadcast, when that is here at the earliest. `next_psn` is that of a cycle ago.
    sending = (making_i && making_qp_i == op_q.qp) || (sent_i.valid && sent_i.qp == op_q.qp);
    next.unreliable = qp_type != roci_pkg::QPT_RC;
    next.idle = next.sqd && !sending && (accepted ? new_acked == next_psn : window == '0);
    row_write = op_valid_q;
  end

  // what was acknowledged while it waited to be sent again
  assign refused_stale_o = distance[23];
  assign push_valid_o = push_valid_q;
  assign push_qp_o = push_qp_q;
  assign ignored_o = ignored_q;

  always_ff @(posedge clk_i) begin
    op_q <= op;
    push_qp_q <= op_q.qp;
    op_valid_q <= op_valid;
    push_valid_q <= op_valid_q && push;
    ignored_q <= op_valid_q && ghost;
    init_sent_q <= init_valid_i && (init_sent_q || init_sent) && !init_ready_o;
    if (rst_i) begin
      op_valid_q <= 1'b0;
      push_valid_q <= 1'b0;
      ignored_q <= 1'b0;
      init_sent_q <= 1'b0;
    end
  end

  // --------------------------------------------------------------------------- tables
  common_ram_sdp #(.WIDTH($bits(row_t)), .DEPTH(QPS), .STYLE(STYLE)) u_rows (
    .clk_i, .we_i(row_write), .waddr_i(op_q.qp), .wdata_i(next),
    .re_i(1'b1), .raddr_i(op.qp), .rdata_o(row)
  );

  common_ram_sdp #(.WIDTH($bits(row_t)), .DEPTH(QPS), .STYLE(STYLE)) u_rows_walk (
    .clk_i, .we_i(row_write), .waddr_i(op_q.qp), .wdata_i(next),
    .re_i(1'b1), .raddr_i(walk_qp_i), .rdata_o(walk_events_o)
  );

  common_ram_sdp #(.WIDTH($bits(roci_pkg::psn_t)), .DEPTH(QPS), .STYLE(STYLE)) u_next_psn (
    .clk_i, .we_i(sent_i.valid || init_sent || restart_sent),
    .waddr_i(sent_i.valid ? sent_i.qp : restart_sent ? clear_i.qp : init_qp_i),
    .wdata_i(sent_i.valid ? sent_i.next_psn : restart_sent ? clear_i.acked_psn : init_psn_i),
    .re_i(1'b1), .raddr_i(op.qp), .rdata_o(next_psn)
  );

  common_ram_sdp #(.WIDTH(5), .DEPTH(QPS), .STYLE(STYLE)) u_rnr_codes (
    .clk_i, .we_i(op_valid_q && rnr_write), .waddr_i(op_q.qp), .wdata_i(op_q.rnr_code),
    .re_i(1'b1), .raddr_i(walk_qp_i), .rdata_o(walk_details_o.rnr_code)
  );

  common_ram_sdp #(.WIDTH($bits(failure_t)), .DEPTH(QPS), .STYLE(STYLE)) u_failures (
    .clk_i, .we_i(op_valid_q && failure_write), .waddr_i(op_q.qp),
    .wdata_i({op_q.wqe_index, op_q.status, op_q.vendor_status}),
    .re_i(1'b1), .raddr_i(walk_qp_i),
    .rdata_o({walk_details_o.local_index, walk_details_o.status, walk_details_o.vendor_status})
  );

  common_ram_sdp #(
    .WIDTH($bits(roci_pkg::qp_type_e)), .DEPTH(QPS), .STYLE(STYLE)
  ) u_types (
    .clk_i, .we_i(type_write_i), .waddr_i(type_qp_i), .wdata_i(type_i),
    .re_i(1'b1), .raddr_i(op.qp), .rdata_o(qp_type)
  );

  // ------------------------------------------------------------------------ assertions
  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (state_i.valid) assert (state_room);
      // acked_psn never runs past what was sent
      if (row_write && accepted) assert (next_psn - next.acked_psn <= window);
    end
  end

endmodule

`default_nettype wire
