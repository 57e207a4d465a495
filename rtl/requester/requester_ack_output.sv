// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_ack_output: carries out what the walk of a QP decided.
//
// Turns actions into completions (with the QP's CQ and number), requests to requester_retry, wakes
// of the scheduler, requests for ERR or SQE, SQ_DRAINED events, and notes to the event rows. Each has its
// own small queue; room_o tells the walker that two more actions fit whatever they are, so the walk
// never stops inside a step. An action's outputs leave in its order, except among each other:
// a completion may leave after the request or wake of a later action.
//
// Does not: decide anything.
// Neighbours: requester_ack_walker → here → queue_cq_writer, requester_retry, queue_sq_scheduler,
// context_qp_state, queue_eq_writer, requester_ack_events.
`default_nettype none

module requester_ack_output #(
  parameter int unsigned COMPLETIONS = 16                // completions waiting for the CQ writer
) (
  input  wire                             clk_i,
  input  wire                             rst_i,

  // static part of a QP, from the context bus; read back at action_qp_i
  input  wire                             number_write_i,
  input  wire                             cq_write_i,
  input  roci_pkg::qp_t                   write_qp_i,
  input  roci_hwif_pkg::ctx_qp_ack_t      write_row_i,
  output roci_hwif_pkg::ctx_qp_ack_t      static_row_o,  // one cycle after action_qp_i

  input  roci_pkg::qp_t                   action_qp_i,   // one cycle before action_i
  input  wire                             action_valid_i,
  input  requester_pkg::ack_action_t      action_i,
  output logic                            room_o,

  output logic                            completion_valid_o,
  input  wire                             completion_ready_i,
  output roci_pkg::sq_completion_t        completion_o,

  output logic                            retry_valid_o,
  input  wire                             retry_ready_i,
  output roci_pkg::retry_request_t        retry_o,

  output logic                            wake_valid_o,
  input  wire                             wake_ready_i,
  output roci_pkg::qp_t                   wake_o,

  output logic                            state_error_valid_o,
  input  wire                             state_error_ready_i,
  output roci_pkg::state_error_t          state_error_o,

  output logic                            event_valid_o,
  input  wire                             event_ready_i,
  output roci_pkg::event_t                event_o,

  output logic                            clear_valid_o,
  input  wire                             clear_ready_i,
  output requester_pkg::ack_clear_t       clear_o,

  output roci_pkg::fence_busy_t           busy_o
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam string STYLE = roci_config_pkg::IS_WIDE ? "block" : "distributed";
  localparam int unsigned SMALL = 4;                     // requests, wakes, errors, events, notes
  localparam int unsigned COUNT_BITS = $clog2(COMPLETIONS + 1);

  typedef struct packed {
    roci_pkg::cq_t cq;
    roci_pkg::fn_t fn;
    roci_pkg::qp_type_e qp_type;
  } target_t;

  typedef struct packed {
    roci_pkg::colour_t colour;
    roci_pkg::qp_t qp;
    roci_pkg::cq_t cq;
    roci_pkg::qpn_t qpn;
    logic [4:0] wc_opcode;
    roci_pkg::sq_index_t wqe_index;
    logic [31:0] byte_len;
    logic [6:0] status;
    logic [7:0] vendor_status;
  } brief_t;

  typedef struct packed {
    roci_pkg::colour_t colour;
    logic send_only;
    roci_pkg::qp_t qp;
  } error_t;

  typedef struct packed {
    roci_pkg::colour_t colour;
    roci_pkg::fn_t fn;
    roci_pkg::qpn_t qpn;
    roci_pkg::psn_t psn;
  } drained_t;

  // ------------------------------------------------------------------------------ static part
  target_t target_write, target;
  roci_pkg::qpn_t qpn;

  assign target_write = '{cq: roci_pkg::cq_t'(write_row_i.cq), fn: roci_pkg::fn_t'(write_row_i.fn),
                          qp_type: roci_pkg::qp_type_e'(write_row_i.qp_type[1:0])};

  common_ram_sdp #(.WIDTH($bits(target_t)), .DEPTH(QPS), .STYLE(STYLE)) u_targets (
    .clk_i, .we_i(cq_write_i), .waddr_i(write_qp_i), .wdata_i(target_write),
    .re_i(1'b1), .raddr_i(action_qp_i), .rdata_o(target)
  );

  common_ram_sdp #(.WIDTH($bits(roci_pkg::qpn_t)), .DEPTH(QPS), .STYLE(STYLE)) u_numbers (
    .clk_i, .we_i(number_write_i), .waddr_i(write_qp_i), .wdata_i(write_row_i.qpn),
    .re_i(1'b1), .raddr_i(action_qp_i), .rdata_o(qpn)
  );

  always_comb begin
    static_row_o = '0;
    static_row_o.cq = 16'(target.cq);
    static_row_o.fn = 8'(target.fn);
    static_row_o.qp_type = roci_hwif_pkg::qp_type_e'({1'b0, target.qp_type});
    static_row_o.qpn = qpn;
  end

  // ------------------------------------------------------------------------------- queues
  brief_t brief_in, brief;
  error_t error;
  drained_t drained;
  logic [COUNT_BITS-1:0] completions;
  logic [$clog2(SMALL+1)-1:0] retries, wakes, errors, drains, clears;
  logic [5:0] in_ready;

  assign brief_in = '{colour: action_i.colour, qp: action_i.qp, cq: target.cq, qpn: qpn,
                      wc_opcode: action_i.wc_opcode, wqe_index: action_i.wqe_index,
                      byte_len: action_i.byte_len, status: action_i.status,
                      vendor_status: action_i.vendor_status};

  // one action may be in action_i while the walker makes the next one
  assign room_o = 32'(completions) + 2 <= COMPLETIONS && 32'(retries) + 2 <= SMALL
                  && 32'(wakes) + 2 <= SMALL && 32'(errors) + 2 <= SMALL
                  && 32'(drains) + 2 <= SMALL && 32'(clears) + 2 <= SMALL;

  common_fifo #(.WIDTH($bits(brief_t)), .DEPTH(COMPLETIONS)) u_completions (
    .clk_i, .rst_i,
    .in_valid_i(action_valid_i && action_i.complete), .in_ready_o(in_ready[0]), .in_i(brief_in),
    .out_valid_o(completion_valid_o), .out_ready_i(completion_ready_i), .out_o(brief),
    .usage_o(completions)
  );

  common_fifo #(.WIDTH($bits(roci_pkg::retry_request_t)), .DEPTH(SMALL)) u_retries (
    .clk_i, .rst_i,
    .in_valid_i(action_valid_i && action_i.request), .in_ready_o(in_ready[1]),
    .in_i(action_i.retry),
    .out_valid_o(retry_valid_o), .out_ready_i(retry_ready_i), .out_o(retry_o), .usage_o(retries)
  );

  common_fifo #(.WIDTH($bits(roci_pkg::qp_t)), .DEPTH(SMALL)) u_wakes (
    .clk_i, .rst_i,
    .in_valid_i(action_valid_i && action_i.wake), .in_ready_o(in_ready[2]), .in_i(action_i.qp),
    .out_valid_o(wake_valid_o), .out_ready_i(wake_ready_i), .out_o(wake_o), .usage_o(wakes)
  );

  common_fifo #(.WIDTH($bits(error_t)), .DEPTH(SMALL)) u_errors (
    .clk_i, .rst_i,
    .in_valid_i(action_valid_i && action_i.fail), .in_ready_o(in_ready[3]),
    .in_i({action_i.colour, target.qp_type != roci_pkg::QPT_RC, action_i.qp}),
    .out_valid_o(state_error_valid_o), .out_ready_i(state_error_ready_i), .out_o(error),
    .usage_o(errors)
  );

  common_fifo #(.WIDTH($bits(drained_t)), .DEPTH(SMALL)) u_drained (
    .clk_i, .rst_i,
    .in_valid_i(action_valid_i && action_i.drained), .in_ready_o(in_ready[4]),
    .in_i({action_i.colour, target.fn, qpn, action_i.psn}),
    .out_valid_o(event_valid_o), .out_ready_i(event_ready_i), .out_o(drained), .usage_o(drains)
  );

  common_fifo #(.WIDTH($bits(requester_pkg::ack_clear_t)), .DEPTH(SMALL)) u_clears (
    .clk_i, .rst_i,
    .in_valid_i(action_valid_i && action_i.clear), .in_ready_o(in_ready[5]),
    .in_i(action_i.cleared),
    .out_valid_o(clear_valid_o), .out_ready_i(clear_ready_i), .out_o(clear_o), .usage_o(clears)
  );

  always_comb begin
    completion_o = '0;
    completion_o.colour = brief.colour;
    completion_o.qp = brief.qp;
    completion_o.completion.cq = brief.cq;
    completion_o.completion.qpn = brief.qpn;
    completion_o.completion.opcode = 8'(brief.wc_opcode);
    completion_o.completion.wqe_index_or_cookie = 32'(brief.wqe_index);
    completion_o.completion.byte_len = brief.byte_len;
    completion_o.completion.is_error = brief.status != '0;
    completion_o.completion.status = brief.status;
    completion_o.completion.vendor_status = brief.vendor_status;

    // a failure tells by its completion: no asynchronous event (wire.md 2.14)
    state_error_o = '0;
    state_error_o.send_only = error.send_only;
    state_error_o.qp = error.qp;

    event_o = '0;
    event_o.fn = drained.fn;
    event_o.event_type = 8'(roci_hwif_pkg::EQE_TYPE_SQ_DRAINED);
    event_o.object = drained.qpn;
    event_o.data = 32'(drained.psn);
  end

  // --------------------------------------------------------- fence: what is held of each colour
  logic [1:0][7:0] held_q;
  logic [1:0][2:0] in_count, out_count;

  always_comb begin
    in_count = '0;
    out_count = '0;
    in_count[action_i.colour] = action_valid_i
                                ? 3'(action_i.complete) + 3'(action_i.request)
                                  + 3'(action_i.fail) + 3'(action_i.drained) : '0;
    if (completion_valid_o && completion_ready_i) begin
      out_count[brief.colour] = out_count[brief.colour] + 3'd1;
    end
    if (retry_valid_o && retry_ready_i) begin
      out_count[retry_o.colour] = out_count[retry_o.colour] + 3'd1;
    end
    if (state_error_valid_o && state_error_ready_i) begin
      out_count[error.colour] = out_count[error.colour] + 3'd1;
    end
    if (event_valid_o && event_ready_i) begin
      out_count[drained.colour] = out_count[drained.colour] + 3'd1;
    end
    busy_o[0] = held_q[0] != '0;
    busy_o[1] = held_q[1] != '0;
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < 2; c++) begin
      held_q[c] <= held_q[c] + 8'(in_count[c]) - 8'(out_count[c]);
    end
    if (rst_i) held_q <= '0;
  end

  // ------------------------------------------------------------------------ assertions
  always_ff @(posedge clk_i) begin
    if (!rst_i && action_valid_i) begin
      if (action_i.complete) assert (in_ready[0]);
      if (action_i.request) assert (in_ready[1]);
      if (action_i.wake) assert (in_ready[2]);
      if (action_i.fail) assert (in_ready[3]);
      if (action_i.drained) assert (in_ready[4]);
      if (action_i.clear) assert (in_ready[5]);
    end
  end

  wire unused = &{1'b0, write_row_i};

endmodule

`default_nettype wire
