// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_ack_walker: pops in-flight records and decides, QP by QP, what an event means.
//
// A visit of a QP goes round a loop of three stages: read the oldest record and everything known of
// the QP, find the facts, take one step. So three QPs are walked at a time, one step per cycle in
// all and one per three cycles for one QP. A QP is in the loop at most once. Steps, the first that
// applies:
//  1. the oldest WQE is done (all its PSNs acknowledged; local operations and NOPs at once): pop
//     it;
//  2. its packet cannot go out, or the peer refused it for good: the QP fails with that status;
//  3. the QP is in ERR or SQE: go back to the oldest WQE, not before all its packets have left
//     (`tx_drained`), in ERR also all READ data of the QP is in memory (`drained`); from then on only
//     records written again count, as flush records, the first with the status of the failure
//     (wire.md 2.15). Behind SQE the PSNs go on with what never left;
//  4. a NAK, the timer or an underrun is pending: ask requester_retry to go back. Everything below
//     the PSN is popped by then. The visit ends, and none of the QP begins before the answer, so
//     that the rewind point is still the oldest WQE when it is applied.
// An ACK may overtake a rewind: WQEs that were sent before it are done while the fetch has yet to
// read them again. The program may reuse their places as soon as it sees the completions, so before
// the first of them leaves the QP goes back to the first WQE that is not done (a scan finds it).
//
// Does not: count retries, format completions.
// Neighbours: requester_ack_events, requester_inflight, queue_wqe_fetch (epochs), requester_retry
// (results) → here → requester_ack_output.
`default_nettype none

module requester_ack_walker #(
  parameter int unsigned QUANTUM = 16                    // pops of a QP before another one's turn
) (
  input  wire                             clk_i,
  input  wire                             rst_i,

  // QPs that have something to look at
  input  wire                             queue_valid_i,
  output logic                            queue_ready_o,
  input  roci_pkg::qp_t                   queue_qp_i,
  // answers of requester_retry: the visit goes on
  input  wire                             result_valid_i,
  output logic                            result_ready_o,
  input  roci_pkg::retry_result_t         result_i,

  // replicas
  input  roci_pkg::state_bcast_t          state_i,
  input  roci_pkg::epoch_bcast_t          epoch_i,

  // context bus: region of in-flight records; start of a QP, or read of its row (done for one
  // cycle)
  input  wire                             region_write_i,
  input  wire                             ctx_valid_i,
  input  wire                             ctx_init_i,
  output logic                            ctx_done_o,
  input  roci_pkg::qp_t                   ctx_qp_i,
  input  roci_pkg::inflight_slot_t        ctx_base_i,
  input  wire [3:0]                       ctx_log2_i,
  input  roci_pkg::psn_t                  ctx_psn_i,
  output roci_hwif_pkg::ctx_qp_ack_t      ctx_row_o,     // words 0 (region only) and 2

  // data of the QP in the first stage, one cycle after its number
  output roci_pkg::qp_t                   walk_qp_o,
  output roci_pkg::inflight_slot_t        walk_slot_o,
  input  requester_pkg::ack_record_t      walk_record_i,
  input  requester_pkg::ack_horizon_t     walk_horizon_i,
  input  requester_pkg::ack_events_t      walk_events_i,
  input  requester_pkg::ack_details_t     walk_details_i,

  // QP number one cycle before its action
  output roci_pkg::qp_t                   action_qp_o,
  output logic                            action_valid_o,
  output requester_pkg::ack_action_t      action_o,
  input  wire                             room_i,        // there is room for two more actions

  output roci_pkg::ack_state_t            ack_state_o,

  // quantum used up: back to the queue's end
  output logic                            requeue_valid_o,
  input  wire                             requeue_ready_i,
  output roci_pkg::qp_t                   requeue_qp_o,

  input  roci_pkg::colour_t               colour_i,
  output roci_pkg::fence_busy_t           busy_o
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam string STYLE = roci_config_pkg::IS_WIDE ? "block" : "distributed";
  localparam int unsigned COUNT_BITS = $clog2(QUANTUM);
  localparam logic [3:0] LOG2_MIN = 4'd3;                // smallest region: 8 records

  typedef enum logic [1:0] {WALK_VISIT, WALK_RESULT, WALK_INIT, WALK_READ} op_e;

  // Where the QP stands. During a scan the copy in the loop runs ahead of the row.
  typedef struct packed {
    roci_pkg::sq_index_t oldest_index;
    roci_pkg::psn_t oldest_psn;                          // first PSN of that WQE
    roci_pkg::read_ordinal_t reads_done;
  } position_t;

  typedef struct packed {
    roci_pkg::psn_t seen_acked;                          // acked_psn that was told last
    logic progressed;                                    // since the last request to retry
    logic locked;                                        // requester_retry has the QP
    logic failing;                                       // ERR asked for, `status` is the reason
    logic flushing;                                      // only flush records count
    logic flushed;                                       // the failing WQE has its completion
    logic drained;                                       // SQ_DRAINED was raised in this SQD
    logic stop_told;                                     // the local failure is known outside
    logic [6:0] status;
    logic [7:0] vendor_status;
  } flags_t;

  typedef struct packed {
    op_e op;
    roci_pkg::qp_t qp;
    roci_pkg::colour_t colour;
    logic failed;                                        // WALK_RESULT
    logic [6:0] status;
    logic [7:0] vendor_status;
    roci_pkg::psn_t psn;                                 // WALK_INIT
  } entry_t;

  typedef struct packed {
    roci_pkg::inflight_slot_t base;
    logic [3:0] log2;
  } region_t;

  typedef struct packed {
    entry_t entry;
    logic fresh;                                         // rows come from the tables, not the loop
    logic scanning;
    logic moved;                                         // something was acknowledged or popped
    logic [COUNT_BITS-1:0] count;                        // pops of this visit
    region_t region;
    position_t position;
    flags_t flags;
  } step_t;

  typedef struct packed {
    roci_pkg::epoch_t epoch;
    roci_pkg::sq_index_t index;
  } point_t;

  // What a step needs to know.
  typedef struct packed {
    logic live, error, sqe, sqd;                         // state of the QP
    logic done;                                          // the oldest WQE is done
    logic landed;                                        // and no fetch will read it again
    logic flush_done;                                    // or it is met again as a flush record
    logic failed;                                        // the QP or the oldest WQE fails
    logic at_oldest;                                     // nothing of the oldest is acknowledged
    logic sent_all;                                      // nothing is outstanding
    logic news;                                          // acked_psn moved
    logic inside_read;                                   // of the oldest WQE some data is missing
    logic pending;                                       // going back is asked for: cause
    roci_pkg::retry_cause_e cause;
    roci_pkg::inflight_kind_e kind;                      // of the oldest record
    logic signaled;
    logic [4:0] wc_opcode;
    logic [31:0] byte_len;
    position_t after;                                    // position behind it
    requester_pkg::ack_events_t events;
    requester_pkg::ack_details_t details;
  } facts_t;

  // a < b of free-running indices and of PSNs (wire.md 2.1)
  function automatic logic index_before(input roci_pkg::sq_index_t a,
                                        input roci_pkg::sq_index_t b);
    roci_pkg::sq_index_t distance;
    distance = a - b;
    return distance[15];
  endfunction

  function automatic logic psn_before(input roci_pkg::psn_t a, input roci_pkg::psn_t b);
    roci_pkg::psn_t distance;
    distance = a - b;
    return distance[23];
  endfunction

  // ------------------------------------------------------------------------------ state
  logic entry_valid_q;
  entry_t entry_q;
  logic step1_valid_q, step2_valid_q, step3_valid_q;
  step_t step1_q, step2_q, step3_q;
  facts_t facts_q;
  logic write_position_q, write_flags_q;
  roci_pkg::qp_t write_qp_q;
  position_t write_position_data_q;
  flags_t write_flags_data_q;
  logic requeue_q;
  roci_pkg::qp_t requeue_qp_q;
  logic ctx_taken_q;                                     // the context operation is in the loop

  // -------------------------------------------------------------------------- stage 0: entry
  entry_t entry;
  logic entry_take;
  logic enter, again;                                    // into stage 1: entry, or step 3 once more
  logic in_loop;

  always_comb begin
    entry = '0;
    entry.colour = colour_i;
    result_ready_o = 1'b0;
    queue_ready_o = 1'b0;
    entry_take = !entry_valid_q;
    if (result_valid_i) begin
      entry.op = WALK_RESULT;
      entry.qp = result_i.qp;
      entry.colour = result_i.colour;
      entry.failed = result_i.failed;
      entry.status = result_i.status;
      entry.vendor_status = result_i.vendor_status;
      result_ready_o = entry_take;
    end else if (ctx_valid_i && !ctx_taken_q) begin
      entry.op = ctx_init_i ? WALK_INIT : WALK_READ;
      entry.qp = ctx_qp_i;
      entry.psn = ctx_psn_i;
    end else begin
      entry.op = WALK_VISIT;
      entry.qp = queue_qp_i;
      queue_ready_o = entry_take;
      if (!queue_valid_i) entry_take = 1'b0;
    end
  end

  // A QP whose visit is in the loop waits for its end. Its row is written one cycle later; the
  // table shows that to a read in the same cycle.
  assign in_loop = (step1_valid_q && step1_q.entry.qp == entry_q.qp)
                   || (step2_valid_q && step2_q.entry.qp == entry_q.qp)
                   || (step3_valid_q && step3_q.entry.qp == entry_q.qp);
  assign enter = entry_valid_q && !in_loop && !again;

  // ------------------------------------------------------------ stage 1: address of the record
  step_t step1;
  region_t region;
  position_t position;
  flags_t flags;
  roci_pkg::inflight_slot_t slot_mask;

  always_comb begin
    step1 = step1_q;
    step1.fresh = 1'b0;
    if (step1_q.fresh) begin
      step1.region = region;
      step1.position = position;
      step1.flags = flags;
    end
    slot_mask = roci_pkg::inflight_slot_t'((32'd1 << step1.region.log2) - 32'd1);
    walk_slot_o = step1.region.base
                  | (roci_pkg::inflight_slot_t'(step1.position.oldest_index) & slot_mask);
    walk_qp_o = step1_q.entry.qp;
  end

  // ------------------------------------------------------------------------ stage 2: the facts
  logic [2:0] state_bits;
  point_t point;
  facts_t facts;
  logic exists;

  always_comb begin
    facts = '0;
    facts.error = state_bits == roci_pkg::QPS_ERR || state_bits == roci_pkg::QPS_SQE;
    facts.live = facts.error || state_bits == roci_pkg::QPS_RTS
                 || state_bits == roci_pkg::QPS_SQD;
    facts.sqe = state_bits == roci_pkg::QPS_SQE;
    facts.sqd = state_bits == roci_pkg::QPS_SQD;

    exists = index_before(step2_q.position.oldest_index, walk_horizon_i.horizon);
    // its record was written since the newest rewind, or before its point
    facts.landed = index_before(step2_q.position.oldest_index, point.index)
                   || (walk_horizon_i.epoch == point.epoch
                       && index_before(step2_q.position.oldest_index, walk_horizon_i.landed));
    unique case (walk_record_i.kind)
      roci_pkg::INFLIGHT_NOP, roci_pkg::INFLIGHT_LOCAL: facts.done = 1'b1;
      roci_pkg::INFLIGHT_FLUSH: facts.done = !facts.error;
      default: facts.done = psn_before(walk_record_i.last_psn, walk_events_i.acked_psn);
    endcase
    facts.done = facts.done && exists && !step2_q.flags.failing && !step2_q.flags.flushing;
    facts.flush_done = step2_q.flags.flushing && facts.landed
                       && (walk_record_i.kind == roci_pkg::INFLIGHT_FLUSH
                           || walk_record_i.kind == roci_pkg::INFLIGHT_NOP);

    facts.failed = walk_events_i.pending == requester_pkg::PENDING_FATAL
                   || (walk_events_i.local_valid
                       && walk_details_i.local_index == step2_q.position.oldest_index);
    facts.at_oldest = walk_events_i.acked_psn == step2_q.position.oldest_psn;
    facts.sent_all = walk_events_i.idle && facts.at_oldest && !exists;
    facts.news = walk_events_i.acked_psn != step2_q.flags.seen_acked;
    facts.inside_read = exists && walk_record_i.kind == roci_pkg::INFLIGHT_READ;

    // One rewind answers all that is pending; the strongest cause counts. An underrun goes before a
    // NAK: requester_retry ignores a second NAK of one loss, and a gap that we made would be
    // forgotten with it.
    facts.pending = 1'b1;
    if (walk_events_i.pending == requester_pkg::PENDING_RNR) begin
      facts.cause = roci_pkg::RETRY_RNR;
    end else if (walk_events_i.timer) begin
      facts.cause = roci_pkg::RETRY_TIMEOUT;
    end else if (walk_events_i.underrun) begin
      facts.cause = roci_pkg::RETRY_UNDERRUN;
    end else if (walk_events_i.pending == requester_pkg::PENDING_SEQUENCE) begin
      facts.cause = roci_pkg::RETRY_NAK_SEQUENCE;
    end else if (walk_events_i.pending == requester_pkg::PENDING_IMPLIED) begin
      facts.cause = roci_pkg::RETRY_IMPLIED_NAK;
    end else begin
      // A failure that waits behind other WQEs: what was sent of them asks for an acknowledgement
      // when it is sent again (a LAST without AckReq would be waited for in vain).
      facts.cause = roci_pkg::RETRY_OVERTAKEN;
      facts.pending = walk_events_i.local_valid && !step2_q.flags.stop_told;
    end

    facts.kind = walk_record_i.kind;
    facts.signaled = walk_record_i.signaled;
    facts.wc_opcode = walk_record_i.wc_opcode;
    facts.byte_len = walk_record_i.byte_len;
    facts.after = popped(step2_q.position, walk_record_i);
    facts.events = walk_events_i;
    facts.details = walk_details_i;
  end

  // ------------------------------------------------------------------------- stage 3: one step
  step_t next;                                           // step3_q after this step
  logic leave, write_position, write_flags, act, tell, requeue;
  requester_pkg::ack_action_t action;
  roci_pkg::retry_request_t request;
  requester_pkg::ack_clear_t cleared;

  always_comb begin
    next = step3_q;
    next.entry.op = WALK_VISIT;
    leave = 1'b1;
    write_position = 1'b0;
    write_flags = 1'b0;
    act = step3_valid_q;
    tell = 1'b0;
    requeue = 1'b0;

    request = '0;
    request.cause = facts_q.cause;
    cleared = '0;

    action = '0;
    action.qp = step3_q.entry.qp;
    action.colour = step3_q.entry.colour;
    action.wc_opcode = facts_q.wc_opcode;
    action.wqe_index = step3_q.position.oldest_index;
    action.byte_len = facts_q.byte_len;
    action.psn = step3_q.position.oldest_psn;

    if (step3_q.entry.op == WALK_INIT) begin
      next.position.oldest_index = '0;
      next.position.oldest_psn = step3_q.entry.psn;
      next.position.reads_done = '0;
      next.flags = '0;
      next.flags.progressed = 1'b1;
      next.flags.seen_acked = step3_q.entry.psn;
      write_position = 1'b1;
      write_flags = 1'b1;
      tell = 1'b1;

    end else if (step3_q.entry.op == WALK_READ || !facts_q.live) begin
      // nothing changes

    end else if (!room_i) begin
      // once more round the loop
      next = step3_q;
      leave = 1'b0;
      act = 1'b0;

    end else if (step3_q.entry.op == WALK_RESULT) begin
      next.flags.locked = 1'b0;
      if (step3_q.entry.failed && !step3_q.flags.failing && !step3_q.flags.flushing) begin
        next.flags.failing = 1'b1;
        next.flags.status = step3_q.entry.status;
        next.flags.vendor_status = step3_q.entry.vendor_status;
        action.fail = 1'b1;
      end
      leave = 1'b0;

    end else if (step3_q.flags.locked) begin
      // the answer of requester_retry brings the QP back

    end else if (step3_q.scanning) begin
      if (facts_q.done) begin
        next.position = facts_q.after;
        leave = 1'b0;
      end else begin
        // the row keeps its position: the pops come when the rewind is applied
        request.cause = roci_pkg::RETRY_OVERTAKEN;
        action.request = 1'b1;
        next.flags.locked = 1'b1;
        next.flags.progressed = 1'b1;
        write_flags = 1'b1;
      end

    end else if (facts_q.done && !facts_q.landed) begin
      // an ACK overtook a rewind; what was popped before in this visit is final
      next.scanning = 1'b1;
      write_position = 1'b1;
      leave = 1'b0;
      act = 1'b0;

    end else if (facts_q.done || facts_q.flush_done) begin
      next.position = facts_q.after;
      next.moved = 1'b1;
      next.flags.progressed = 1'b1;
      next.count = step3_q.count + 1'b1;
      tell = 1'b1;
      if (facts_q.kind == roci_pkg::INFLIGHT_FLUSH) begin
        // the first one is the WQE that failed, unless the failure came from elsewhere
        action.complete = 1'b1;
        action.status = 7'(roci_hwif_pkg::CQE_STATUS_WR_FLUSH_ERR);
        action.vendor_status = facts_q.sqe
                               ? 8'(roci_hwif_pkg::VENDOR_STATUS_FLUSH_SQE)
                               : 8'(roci_hwif_pkg::VENDOR_STATUS_FLUSH);
        if (step3_q.flags.failing && !step3_q.flags.flushed) begin
          action.status = step3_q.flags.status;
          action.vendor_status = step3_q.flags.vendor_status;
        end
        next.flags.flushed = 1'b1;
      end else begin
        action.complete = facts_q.signaled && !step3_q.flags.flushing;
        action.status = 7'(roci_hwif_pkg::CQE_STATUS_SUCCESS);
      end
      leave = step3_q.count == COUNT_BITS'(QUANTUM - 1) && (entry_valid_q || queue_valid_i)
              && !requeue_q;
      requeue = leave;

    end else if (step3_q.flags.flushing && !facts_q.error) begin
      // SQE -> RTS (UD, UC)
      next.flags.flushing = 1'b0;
      next.flags.failing = 1'b0;
      next.flags.flushed = 1'b0;
      next.flags.stop_told = 1'b0;
      leave = 1'b0;

    end else if (facts_q.failed && !step3_q.flags.failing
                 && (!step3_q.flags.flushing
                     || (!step3_q.flags.flushed
                         && facts_q.at_oldest))) begin
      // also if ERR was faster than its reason
      next.flags.failing = 1'b1;
      next.flags.status = facts_q.details.status;
      next.flags.vendor_status = facts_q.details.vendor_status;
      action.fail = !step3_q.flags.flushing;
      leave = facts_q.events.unreliable && !facts_q.error;   // SQE brings it back

    end else if (facts_q.error && !step3_q.flags.flushing) begin
      // READ data that was let through before the ERR must be in memory, payload that was decided must
      // be read
      if (facts_q.events.tx_drained && (facts_q.sqe || facts_q.events.drained)) begin
        request.cause = roci_pkg::RETRY_FLUSH;
        action.request = 1'b1;
        action.clear = 1'b1;
        cleared.failure = 1'b1;
        cleared.restart = facts_q.sqe;
        if (facts_q.sqe) next.position.oldest_psn = facts_q.events.acked_psn;
        next.flags.flushing = 1'b1;
        next.flags.locked = 1'b1;
      end

    end else if (step3_q.flags.flushing || step3_q.flags.failing) begin
      // waits for ERR or SQE, or for the next flush record; somebody may have taken the QP from SQE
      // to RTS before it came here
      action.fail = facts_q.events.unreliable && !step3_q.flags.flushing;

    end else if (facts_q.pending) begin
      // UC, UD: what was sent of other WQEs is on its way out, and that is its acknowledgement
      if (!(facts_q.events.unreliable && facts_q.cause == roci_pkg::RETRY_OVERTAKEN)) begin
        action.request = 1'b1;
        action.clear = 1'b1;
        next.flags.locked = 1'b1;
        next.flags.progressed = 1'b0;
      end
      next.flags.stop_told = facts_q.events.local_valid;
      tell = facts_q.events.local_valid;

    end else if (facts_q.sqd ? facts_q.sent_all && !step3_q.flags.drained
                                                 : step3_q.flags.drained) begin
      action.drained = facts_q.sqd;
      next.flags.drained = action.drained;
    end

    // whatever the step was: is there news of acked_psn?
    if (act && facts_q.live && step3_q.entry.op != WALK_READ && step3_q.entry.op != WALK_INIT
        && !step3_q.scanning && facts_q.news) begin
      // A response in mid-READ opens no window: credits, records and fences wait for its end, the
      // byte cap counts from there.
      next.flags.seen_acked = facts_q.events.acked_psn;
      if (!facts_q.inside_read) next.moved = 1'b1;
      tell = 1'b1;
      if (!action.request) next.flags.progressed = 1'b1;
    end
    request.colour = step3_q.entry.colour;
    request.progressed = step3_q.flags.progressed
                         || facts_q.news;
    request.rnr_code = facts_q.details.rnr_code;
    request.qp = step3_q.entry.qp;
    request.point.wqe_index = step3_q.position.oldest_index;
    request.point.first_psn = next.position.oldest_psn;
    request.point.resume_psn = facts_q.events.acked_psn;
    request.point.read_ordinal = step3_q.position.reads_done;
    action.retry = request;
    cleared.qp = step3_q.entry.qp;
    cleared.acked_psn = facts_q.events.acked_psn;
    cleared.pending = facts_q.events.pending;
    action.cleared = cleared;

    if (leave && facts_q.live && step3_q.entry.op != WALK_READ) begin
      write_flags = 1'b1;
      write_position = write_position || !step3_q.scanning;
      action.wake = next.moved;
    end
    again = step3_valid_q && !leave;
  end

  // The position behind a record. NOPs, local operations and flush records have no PSN.
  function automatic position_t popped(input position_t from,
                                       input requester_pkg::ack_record_t record);
    position_t to;
    to = from;
    to.oldest_index = from.oldest_index
                      + (record.blocks == '0 ? 16'd8 : 16'(record.blocks));
    if (record.kind == roci_pkg::INFLIGHT_SEND || record.kind == roci_pkg::INFLIGHT_READ
        || record.kind == roci_pkg::INFLIGHT_ATOMIC) begin
      to.oldest_psn = record.last_psn + 24'd1;
    end
    if (record.kind == roci_pkg::INFLIGHT_READ || record.kind == roci_pkg::INFLIGHT_ATOMIC) begin
      to.reads_done = from.reads_done + 8'd1;
    end
    return to;
  endfunction

  assign action_qp_o = step3_q.entry.qp;
  assign requeue_valid_o = requeue_q;
  assign requeue_qp_o = requeue_qp_q;

  always_comb begin
    ctx_row_o = '0;
    ctx_row_o.inflight_base = 16'(step3_q.region.base);
    ctx_row_o.inflight_log2 = step3_q.region.log2;
    ctx_row_o.oldest_index = step3_q.position.oldest_index;
    ctx_row_o.reads_done = step3_q.position.reads_done;
    ctx_row_o.locked = step3_q.flags.locked;
    ctx_row_o.failing = step3_q.flags.failing;
    ctx_row_o.flushing = step3_q.flags.flushing;
    ctx_row_o.acked_psn = facts_q.events.acked_psn;
    ctx_done_o = step3_valid_q && (step3_q.entry.op == WALK_INIT || step3_q.entry.op == WALK_READ);

    busy_o = '0;
    if (entry_valid_q) busy_o[entry_q.colour] = 1'b1;
    if (step1_valid_q) busy_o[step1_q.entry.colour] = 1'b1;
    if (step2_valid_q) busy_o[step2_q.entry.colour] = 1'b1;
    if (step3_valid_q) busy_o[step3_q.entry.colour] = 1'b1;
    if (action_valid_o) busy_o[action_o.colour] = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (entry_take) entry_q <= entry;
    if (again) begin
      step1_q <= next;
    end else begin
      step1_q <= '0;
      step1_q.entry <= entry_q;
      step1_q.fresh <= 1'b1;
    end
    step2_q <= step1;
    step3_q <= step2_q;
    facts_q <= facts;
    if (requeue) requeue_qp_q <= step3_q.entry.qp;

    write_qp_q <= step3_q.entry.qp;
    write_position_data_q <= next.position;
    write_flags_data_q <= next.flags;
    action_o <= action;
    ack_state_o.qp <= step3_q.entry.qp;
    ack_state_o.oldest_index <= next.position.oldest_index;
    ack_state_o.acked_psn <= step3_q.entry.op == WALK_INIT ? step3_q.entry.psn
                                                           : facts_q.events.acked_psn;
    ack_state_o.reads_done <= next.position.reads_done;
    ack_state_o.stop_valid <= step3_q.entry.op != WALK_INIT && facts_q.events.local_valid;
    ack_state_o.stop_psn <= facts_q.events.local_psn;

    entry_valid_q <= entry_take || (entry_valid_q && !enter);
    step1_valid_q <= again || enter;
    step2_valid_q <= step1_valid_q;
    step3_valid_q <= step2_valid_q;
    write_position_q <= step3_valid_q && write_position;
    write_flags_q <= step3_valid_q && write_flags;
    action_valid_o <= act;
    // a scan shows nothing until its rewind is applied
    ack_state_o.valid <= act && tell && !step3_q.scanning;
    requeue_q <= (act && requeue) || (requeue_q && !requeue_ready_i);
    ctx_taken_q <= ctx_valid_i && !ctx_done_o
                   && (ctx_taken_q || (entry_take && (entry.op == WALK_INIT
                                                      || entry.op == WALK_READ)));
    if (rst_i) begin
      entry_valid_q <= 1'b0;
      step1_valid_q <= 1'b0;
      step2_valid_q <= 1'b0;
      step3_valid_q <= 1'b0;
      write_position_q <= 1'b0;
      write_flags_q <= 1'b0;
      action_valid_o <= 1'b0;
      ack_state_o.valid <= 1'b0;
      requeue_q <= 1'b0;
      ctx_taken_q <= 1'b0;
    end
  end

  // ------------------------------------------------------------------------------ tables
  common_ram_sdp #(.WIDTH($bits(region_t)), .DEPTH(QPS), .STYLE(STYLE)) u_regions (
    .clk_i, .we_i(region_write_i), .waddr_i(ctx_qp_i), .wdata_i({ctx_base_i, ctx_log2_i}),
    .re_i(1'b1), .raddr_i(entry_q.qp), .rdata_o(region)
  );

  common_ram_sdp #(.WIDTH($bits(position_t)), .DEPTH(QPS), .STYLE(STYLE)) u_positions (
    .clk_i, .we_i(write_position_q), .waddr_i(write_qp_q), .wdata_i(write_position_data_q),
    .re_i(1'b1), .raddr_i(entry_q.qp), .rdata_o(position)
  );

  common_ram_sdp #(.WIDTH($bits(flags_t)), .DEPTH(QPS), .STYLE(STYLE)) u_flags (
    .clk_i, .we_i(write_flags_q), .waddr_i(write_qp_q), .wdata_i(write_flags_data_q),
    .re_i(1'b1), .raddr_i(entry_q.qp), .rdata_o(flags)
  );

  common_ram_sdp #(.WIDTH(3), .DEPTH(QPS), .STYLE(STYLE)) u_states (
    .clk_i, .we_i(state_i.valid), .waddr_i(state_i.qp), .wdata_i(state_i.state),
    .re_i(1'b1), .raddr_i(step1_q.entry.qp), .rdata_o(state_bits)
  );

  common_ram_sdp #(.WIDTH($bits(point_t)), .DEPTH(QPS), .STYLE(STYLE)) u_points (
    .clk_i, .we_i(epoch_i.valid), .waddr_i(epoch_i.qp),
    .wdata_i({epoch_i.epoch, epoch_i.point.wqe_index}),
    .re_i(1'b1), .raddr_i(step1_q.entry.qp), .rdata_o(point)
  );

  // ------------------------------------------------------------------------ assertions
  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      // a QP is in the loop once
      if (step1_valid_q && step2_valid_q) assert (step1_q.entry.qp != step2_q.entry.qp);
      if (step1_valid_q && step3_valid_q) assert (step1_q.entry.qp != step3_q.entry.qp);
      if (step2_valid_q && step3_valid_q) assert (step2_q.entry.qp != step3_q.entry.qp);
      if (region_write_i) assert (ctx_log2_i >= LOG2_MIN);
      // completions are of WQEs in order, below a pending rewind
      if (act && action.complete) assert (!step3_q.flags.locked && !step3_q.scanning);
    end
  end

  wire unused = &{1'b0, epoch_i.point};

endmodule

`default_nettype wire
