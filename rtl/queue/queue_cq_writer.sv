// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_cq_writer: writes completions into completion queues in host memory.
//
// Completions come as tokens of the ordered write stream (receive side: their data is in memory)
// and from requester_ack (send side), in turn. Each gets its place (queue_cq_place), is written at
// level 1 of host_dma_write together with its CQE_DONE token, and when that comes out arming is
// looked at (queue_cq_events). Sustains one CQE per cycle where the bus is at least 32 bytes wide.
//
// Taking a completion that is no token holds a place in the commit FIFO first (cqe_reserve_o); each
// completion makes exactly one request there, a bare token if it has no place in its CQ. A
// completion keeps its colour until its CQE_DONE is out, so a fence covers CQEs in flight (rule 8).
//
// Column CQ: ctx_cq of hwif/contexts.toml.
// Neighbours: requester_ack, host_dma_write, host_doorbell, queue_eq_writer, context_qp_state.
`default_nettype none

module queue_cq_writer (
  input  wire                               clk_i,
  input  wire                               rst_i,
  output logic                              ready_o,            // tables are cleared after reset

  input  wire roci_pkg::ctx_req_t           ctx_i,              // column CQ
  output roci_pkg::ctx_rsp_t                ctx_o,
  input  wire [47:0]                        clock_i,            // low bits of the device's clock

  // completions: TOKEN_COMPLETION, and of the send queues
  input  wire                               token_valid_i,
  output logic                              token_ready_o,
  input  wire roci_pkg::token_t             token_i,
  input  wire                               sq_valid_i,
  output logic                              sq_ready_o,
  input  wire roci_pkg::sq_completion_t     sq_i,

  // host_dma_write: place for a send completion, requests and data of level 1, CQE_DONE
  input  wire                               cqe_room_i,
  output logic                              cqe_reserve_o,
  output logic                              req_valid_o,
  input  wire                               req_ready_i,
  output roci_pkg::dma_write_req_t          req_o,
  output logic                              data_valid_o,
  input  wire                               data_ready_i,
  output roci_pkg::write_beat_t             data_o,
  input  wire                               done_valid_i,
  output logic                              done_ready_o,
  input  wire roci_pkg::token_t             done_i,

  input  wire                               doorbell_valid_i,
  input  wire roci_pkg::doorbell_t          doorbell_i,         // always accepted

  output logic                              event_valid_o,      // to queue_eq_writer
  input  wire                               event_ready_i,
  output roci_pkg::event_t                  event_o,
  output logic                              error_valid_o,      // to context_qp_state
  input  wire                               error_ready_i,
  output roci_pkg::state_error_t            error_o,

  input  wire roci_pkg::colour_t            colour_i,
  output roci_pkg::fence_busy_t             fence_busy_o,

  // counters, one pulse each
  output logic                              count_cqe_o,        // written
  output logic                              count_cqe_error_o,  // not SUCCESS and not a flush
  output logic                              count_cqe_flush_o,
  output logic                              count_overflow_o
);

  localparam int unsigned DATA_BYTES = roci_pkg::DATA_BYTES;
  localparam int unsigned CQE_BYTES = roci_hwif_pkg::CQE_BYTES;
  localparam int unsigned BEATS = DATA_BYTES >= CQE_BYTES ? 1 : CQE_BYTES / DATA_BYTES;
  localparam int unsigned BEAT_BITS = BEATS > 1 ? $clog2(BEATS) : 1;
  localparam int unsigned HELD_BITS = 10;

  // --------------------------------------------------------------------------------- in, by turns
  logic sq_turn_q;                         // the send side goes first
  logic sq_can, take_sq, take_token, item_valid, item_ready, tables_ready, events_ready;
  queue_cq_pkg::item_t item;

  assign ready_o = tables_ready && events_ready;
  assign sq_can = sq_valid_i && cqe_room_i;
  assign take_sq = sq_can && (sq_turn_q || !token_valid_i);
  assign take_token = token_valid_i && !take_sq;
  assign item_valid = (take_sq || take_token) && ready_o;
  assign sq_ready_o = take_sq && item_ready && ready_o;
  assign token_ready_o = take_token && item_ready && ready_o;
  assign cqe_reserve_o = sq_ready_o;

  always_comb begin
    if (take_sq) begin
      item = '{colour: sq_i.colour, payload_failed: 1'b0, qp: sq_i.qp,
               completion: sq_i.completion};
    end else begin
      item = '{colour: token_i.colour, payload_failed: token_i.error, qp: token_i.qp,
               completion: roci_pkg::completion_t'(token_i.body)};
    end
  end

  always_ff @(posedge clk_i) begin
    if (item_valid && item_ready) sq_turn_q <= take_token;
    if (rst_i) sq_turn_q <= 1'b0;
  end

  // ----------------------------------------------------------------------------- rows of column CQ
  // Both parts keep some of a row: first the place, then the events.
  typedef enum logic [1:0] {ROW_IDLE, ROW_PLACE, ROW_EVENTS, ROW_ANSWER} row_e;
  row_e row_q;
  roci_hwif_pkg::ctx_cq_t row_in, row_place, row_events, row;
  logic row_ring, row_start, place_done, events_done;

  assign row_in = roci_hwif_pkg::ctx_cq_t'({2{ctx_i.wdata, ctx_i.wdata}});
  assign row_ring = ctx_i.write && ctx_i.word == 4'd0;
  assign row_start = ctx_i.write && ctx_i.word == 4'd1;
  assign row = row_place | row_events;

  always_ff @(posedge clk_i) begin
    unique case (row_q)
      ROW_IDLE: begin
        if (ctx_i.valid && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_CQ && ready_o) begin
          row_q <= ROW_PLACE;
        end
      end
      ROW_PLACE: if (place_done) row_q <= ROW_EVENTS;
      ROW_EVENTS: if (events_done) row_q <= ROW_ANSWER;
      default: row_q <= ROW_IDLE;
    endcase
    ctx_o <= '0;
    if (row_q == ROW_EVENTS && events_done) begin
      ctx_o.done <= 1'b1;
      if (!ctx_i.write) begin
        unique case (ctx_i.word)
          4'd0: ctx_o.rdata <= row[63:0];
          4'd1: ctx_o.rdata <= row[127:64];
          4'd2: ctx_o.rdata <= row[191:128];
          4'd3: ctx_o.rdata <= row[255:192];
          default: ;
        endcase
      end
    end
    if (rst_i) row_q <= ROW_IDLE;
  end

  // ---------------------------------------------------------------------------------------- parts
  logic stop_valid, stop_ready, stop_first;
  roci_pkg::cq_t stop_cq;
  logic place_valid, place_ready;
  queue_cq_pkg::placed_t place;
  queue_cq_pkg::done_t done;
  roci_pkg::fence_busy_t events_busy;

  queue_cq_place u_place (
    .clk_i, .rst_i, .ready_o(tables_ready), .clock_i,
    .item_valid_i(item_valid), .item_ready_o(item_ready), .item_i(item),
    .stop_valid_i(stop_valid), .stop_ready_o(stop_ready), .stop_cq_i(stop_cq),
    .stop_first_o(stop_first),
    .row_valid_i(row_q == ROW_PLACE), .row_ring_i(row_ring), .row_start_i(row_start),
    .row_cq_i(roci_pkg::cq_t'(ctx_i.index)), .row_i(row_in), .row_done_o(place_done),
    .row_o(row_place),
    .doorbell_valid_i, .doorbell_i,
    .place_valid_o(place_valid), .place_ready_i(place_ready), .place_o(place)
  );

  assign done = queue_cq_pkg::done_t'(done_i.body[$bits(queue_cq_pkg::done_t)-1:0]);

  queue_cq_events u_events (
    .clk_i, .rst_i, .ready_o(events_ready),
    .done_valid_i, .done_ready_o, .done_qp_i(done_i.qp), .done_error_i(done_i.error),
    .done_i(done),
    .doorbell_valid_i, .doorbell_i,
    .stop_valid_o(stop_valid), .stop_ready_i(stop_ready), .stop_cq_o(stop_cq),
    .stop_first_i(stop_first),
    .row_valid_i(row_q == ROW_EVENTS), .row_start_i(row_start),
    .row_cq_i(roci_pkg::cq_t'(ctx_i.index)), .row_i(row_in), .row_done_o(events_done),
    .row_o(row_events),
    .event_valid_o, .event_ready_i, .event_o, .error_valid_o, .error_ready_i, .error_o,
    .colour_i, .fence_busy_o(events_busy)
  );

  // --------------------------------------------------------------------------- request and data
  // out
  logic req_done_q, data_done_q;           // the place's request, its data have left
  logic [BEAT_BITS-1:0] beat_q;
  logic req_now, data_now;

  assign req_valid_o = place_valid && !req_done_q;
  assign data_valid_o = place_valid && place.done.placed && !data_done_q;
  assign req_now = req_done_q || req_ready_i;
  assign data_now = !place.done.placed || data_done_q
                    || (data_ready_i && beat_q == BEAT_BITS'(BEATS - 1));
  assign place_ready = req_now && data_now;

  always_comb begin
    req_o = '0;
    req_o.is_token = !place.done.placed;
    req_o.has_token = place.done.placed;
    req_o.fn = place.fn;
    req_o.qp = place.qp;
    req_o.length = roci_pkg::packet_len_t'(CQE_BYTES);
    req_o.addr = place.addr;
    req_o.token.kind = roci_pkg::TOKEN_CQE_DONE;
    req_o.token.qp = place.qp;
    req_o.token.colour = place.colour;
    req_o.token.body = roci_pkg::TOKEN_BODY_BITS'(place.done);
  end

  if (BEATS == 1) begin : gen_whole
    localparam int unsigned PARTS = DATA_BYTES / CQE_BYTES;
    always_comb begin
      data_o.last = 1'b1;
      data_o.data = {PARTS{place.cqe}};
      for (int unsigned p = 0; p < PARTS; p++) begin
        data_o.strobe[p*CQE_BYTES +: CQE_BYTES] =
            {CQE_BYTES{32'(place.addr[11:0]) / CQE_BYTES % PARTS == p}};
      end
    end
  end else begin : gen_parts
    always_comb begin
      data_o.last = beat_q == BEAT_BITS'(BEATS - 1);
      data_o.strobe = '1;
      data_o.data = place.cqe[32'(beat_q) * 8 * DATA_BYTES +: 8 * DATA_BYTES];
    end
  end

  always_ff @(posedge clk_i) begin
    if (place_valid) begin
      req_done_q <= req_now && !place_ready;
      data_done_q <= data_now && place.done.placed && !place_ready;
      if (data_valid_o && data_ready_i) begin
        beat_q <= beat_q == BEAT_BITS'(BEATS - 1) ? '0 : beat_q + 1'b1;
      end
    end
    if (rst_i) begin
      req_done_q <= 1'b0;
      data_done_q <= 1'b0;
      beat_q <= '0;
    end
  end

  // ---------------------------------------------------------------------------- fence and counters
  logic [1:0][HELD_BITS-1:0] held_q;       // completions of each colour without their CQE_DONE
  logic [1:0] held_in, held_out;

  always_comb begin
    held_in = '0;
    held_out = '0;
    held_in[item.colour] = item_valid && item_ready;
    held_out[done_i.colour] = done_valid_i && done_ready_o;
    for (int unsigned c = 0; c < 2; c++) fence_busy_o[c] = held_q[c] != '0 || events_busy[c];
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < 2; c++) begin
      held_q[c] <= held_q[c] + HELD_BITS'(held_in[c]) - HELD_BITS'(held_out[c]);
    end
    if (rst_i) held_q <= '0;
  end

  logic leaves;
  assign leaves = place_valid && place_ready;
  always_comb begin
    count_cqe_o = leaves && place.done.placed;
    count_cqe_flush_o = count_cqe_o
                        && place.cqe.status == roci_hwif_pkg::CQE_STATUS_WR_FLUSH_ERR;
    count_cqe_error_o = count_cqe_o && !count_cqe_flush_o
                        && place.cqe.status != roci_hwif_pkg::CQE_STATUS_SUCCESS;
    count_overflow_o = leaves && place.done.overflowed;
  end

endmodule

`default_nettype wire
