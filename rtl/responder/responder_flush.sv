// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_flush: says which QP in ERR should have its next receive WQE flushed.
//
// wire.md 2.15 (C10-96): in ERR all receive WQEs, also later posted ones, complete with a flush
// error in order. A QP is queued when it goes to ERR and whenever a WQE of its own RQ lands in ERR;
// each flush that found something queues it again. The flush itself passes through responder_check
// like a frame and takes the WQE there, so nothing else counts WQEs. WQEs of an SRQ stay in the
// SRQ. One flush is on its way at a time; QPs take turns.
//
// Does not: complete anything. Neighbours: context_qp_state, queue_rq_fetch → here ⇄
// responder_check.
`default_nettype none

module responder_flush (
  input  wire                        clk_i,
  input  wire                        rst_i,          // synchronous, active high

  input  roci_pkg::state_bcast_t     state_i,        // not in consecutive cycles
  input  roci_pkg::rq_landed_t       landed_i,       // not in consecutive cycles

  output logic                       flush_valid_o,
  input  wire                        flush_ready_i,
  output roci_pkg::qp_t              flush_o,
  input  wire                        flush_done_i,   // the flush has passed responder_check
  input  wire                        flush_more_i,   // then: it found a WQE

  output logic                       ready_o         // tables are cleared after reset
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;

  logic state_ready, queue_ready;
  logic landed_q;                        // a WQE of RQ landed_qp_q landed in the cycle before
  roci_pkg::qp_t landed_qp_q;
  logic [2:0] landed_state;              // state of that QP

  logic landed_any_q;

  logic error_room;
  logic error_valid, error_ready;        // a QP that went to ERR waits for the push port
  roci_pkg::qp_t error_qp;

  logic busy_q;                          // a flush is on its way
  logic again_q;                         // it found something: the QP is to be queued again
  roci_pkg::qp_t qp_q;

  logic push_landed, push_valid;
  roci_pkg::qp_t push;
  logic pop_valid;

  assign ready_o = state_ready && queue_ready;

  common_ram_cleared #(.WIDTH(3), .DEPTH(QPS)) u_state (
    .clk_i, .rst_i, .ready_o(state_ready),
    .we_i(state_i.valid && state_ready), .waddr_i(state_i.qp), .wdata_i(state_i.state),
    .re_i(1'b1), .raddr_i(landed_i.rq[roci_config_pkg::QP_BITS-1:0]), .rdata_o(landed_state)
  );

  // Landings leave the push port free every second cycle and broadcasts come at most every second
  // cycle, so this never overflows (asserted).
  common_fifo #(.WIDTH(roci_config_pkg::QP_BITS), .DEPTH(4)) u_errors (
    .clk_i, .rst_i,
    .in_valid_i(state_i.valid && state_i.state == roci_pkg::QPS_ERR), .in_ready_o(error_room),
    .in_i(state_i.qp),
    .out_valid_o(error_valid), .out_ready_i(error_ready), .out_o(error_qp), .usage_o()
  );

  always_comb begin
    push_landed = landed_q && landed_state == 3'(roci_pkg::QPS_ERR);
    error_ready = !push_landed && queue_ready;
    push_valid = push_landed || error_valid || again_q;
    push = push_landed ? landed_qp_q : error_valid ? error_qp : qp_q;
  end

  common_object_queue #(.N(QPS)) u_queue (
    .clk_i, .rst_i,
    .push_valid_i(push_valid && queue_ready), .push_ready_o(queue_ready), .push_i(push),
    .push_new_o(),
    .pop_valid_o(pop_valid), .pop_ready_i(flush_ready_i && !busy_q), .pop_o(flush_o), .usage_o()
  );
  assign flush_valid_o = pop_valid && !busy_q;

  always_ff @(posedge clk_i) begin
    landed_any_q <= landed_i.valid;
    landed_q <= landed_i.valid && !landed_i.rq[roci_config_pkg::QP_BITS];
    landed_qp_q <= landed_i.rq[roci_config_pkg::QP_BITS-1:0];

    if (flush_valid_o && flush_ready_i) begin
      busy_q <= 1'b1;
      qp_q <= flush_o;
    end else if (flush_done_i && !flush_more_i) begin
      busy_q <= 1'b0;
    end else if (flush_done_i) begin
      again_q <= 1'b1;
    end else if (again_q && !push_landed && !error_valid && queue_ready) begin
      again_q <= 1'b0;
      busy_q <= 1'b0;
    end

    if (rst_i) begin
      landed_q <= 1'b0;
      landed_any_q <= 1'b0;
      busy_q <= 1'b0;
      again_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (state_i.valid && state_i.state == roci_pkg::QPS_ERR) assert (error_room);
      if (flush_done_i) assert (busy_q);
      assert (!(landed_i.valid && landed_any_q));
    end
  end

endmodule

`default_nettype wire
