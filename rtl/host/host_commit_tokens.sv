// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_commit_tokens: what came out of the commit FIFO, handed to those who wait for it.
//
// Keeps which queue pairs had a failed write: a bad bus response of level 0 (payload) marks its QP,
// and every later token of that QP carries `error`, until the QP leaves RESET (by then a fence has
// drained its writes). A failed write of the levels 1..3 belongs to the next token of that level
// alone: cq_writer, eq_writer and cpu send one behind each group of writes. Entries of atomics come as
// level 2 and bring their tokens, as those of eq_writer do: nothing of either is left for the other.
//
// One token per cycle; the token in hand waits for its reader and all behind it wait too. Readers
// that wait for something of the commit FIFO itself would be a circle: host_commit_fifo holds a
// place for what a completion causes, the others only write bounded state.
// Neighbours: host_commit_fifo; queue_cq_writer, responder_respond, requester_ack,
// queue_eq_writer, cpu, responder_atomic.
`default_nettype none

module host_commit_tokens (
  input  wire                          clk_i,
  input  wire                          rst_i,

  // entries of the commit FIFO
  input  wire                          entry_valid_i,
  output logic                         entry_ready_o,
  input  wire                          entry_write_i,
  input  wire                          entry_failed_i,
  input  wire [1:0]                    entry_level_i,
  input  wire                          entry_has_token_i,
  input  wire roci_pkg::token_t        entry_token_i,   // qp = owner also without a token

  input  wire roci_pkg::state_bcast_t  state_i,

  // readers; one payload for all
  output roci_pkg::token_t             token_o,
  output logic                         completion_valid_o,
  input  wire                          completion_ready_i,
  output logic                         respond_valid_o,
  input  wire                          respond_ready_i,
  output logic                         ack_event_valid_o,
  input  wire                          ack_event_ready_i,
  output logic                         cqe_done_valid_o,
  input  wire                          cqe_done_ready_i,
  output logic                         eqe_done_valid_o,
  input  wire                          eqe_done_ready_i,
  output logic                         cpu_done_valid_o,
  input  wire                          cpu_done_ready_i,
  output logic                         atomic_done_valid_o,
  input  wire                          atomic_done_ready_i,

  // a received packet has ended; always accepted
  output logic                         end_valid_o,
  output roci_pkg::colour_t            end_colour_o
);

  logic token_valid_q;
  roci_pkg::token_t token_q;
  logic [3:0] failed_q;                  // levels 1..3: a write failed since the last token

  logic marks_ready, marked, clear, set, token_free, done, take;
  logic failed, error;

  assign clear = state_i.valid && (state_i.state == roci_pkg::QPS_RESET
                                   || state_i.state == roci_pkg::QPS_INIT);
  assign failed = entry_write_i && entry_failed_i;
  assign error = failed || (entry_level_i == 2'd0 ? marked : failed_q[entry_level_i]);

  // The table has one write port: a clearing broadcast goes first.
  assign entry_ready_o = marks_ready && (!entry_has_token_i || token_free)
                         && !(clear && failed && entry_level_i == 2'd0);
  assign take = entry_valid_i && entry_ready_o;
  assign set = take && failed && entry_level_i == 2'd0;

  common_ram_cleared #(
    .WIDTH(1), .DEPTH(2 ** roci_config_pkg::QP_BITS), .LATENCY(0), .BYPASS(1'b0),
    .STYLE("distributed")
  ) u_marks (
    .clk_i, .rst_i, .ready_o(marks_ready),
    .we_i(marks_ready && (clear || set)), .waddr_i(clear ? state_i.qp : entry_token_i.qp),
    .wdata_i(!clear), .re_i(1'b1), .raddr_i(entry_token_i.qp), .rdata_o(marked)
  );

  always_ff @(posedge clk_i) begin
    if (take && entry_has_token_i) begin
      token_q <= entry_token_i;
      token_q.error <= error;
    end
    if (token_free) token_valid_q <= take && entry_has_token_i;
    if (take) begin
      if (entry_has_token_i) failed_q[entry_level_i] <= 1'b0;
      else if (failed) failed_q[entry_level_i] <= 1'b1;
    end
    if (rst_i) begin
      token_valid_q <= 1'b0;
      failed_q <= '0;
    end
  end

  // ------------------------------------------------------------------------------------- readers
  always_comb begin
    completion_valid_o = 1'b0;
    respond_valid_o = 1'b0;
    ack_event_valid_o = 1'b0;
    cqe_done_valid_o = 1'b0;
    eqe_done_valid_o = 1'b0;
    cpu_done_valid_o = 1'b0;
    atomic_done_valid_o = 1'b0;
    unique case (token_q.kind)
      roci_pkg::TOKEN_COMPLETION: completion_valid_o = token_valid_q;
      roci_pkg::TOKEN_RESPOND: respond_valid_o = token_valid_q;
      roci_pkg::TOKEN_ACK_EVENT: ack_event_valid_o = token_valid_q;
      roci_pkg::TOKEN_CQE_DONE: cqe_done_valid_o = token_valid_q;
      roci_pkg::TOKEN_EQE_DONE: eqe_done_valid_o = token_valid_q;
      roci_pkg::TOKEN_CPU: cpu_done_valid_o = token_valid_q;
      roci_pkg::TOKEN_ATOMIC: atomic_done_valid_o = token_valid_q;
      default: ;                         // TOKEN_END has no reader
    endcase
  end

  always_comb begin
    unique case (token_q.kind)
      roci_pkg::TOKEN_COMPLETION: done = completion_ready_i;
      roci_pkg::TOKEN_RESPOND: done = respond_ready_i;
      roci_pkg::TOKEN_ACK_EVENT: done = ack_event_ready_i;
      roci_pkg::TOKEN_CQE_DONE: done = cqe_done_ready_i;
      roci_pkg::TOKEN_EQE_DONE: done = eqe_done_ready_i;
      roci_pkg::TOKEN_CPU: done = cpu_done_ready_i;
      roci_pkg::TOKEN_ATOMIC: done = atomic_done_ready_i;
      default: done = 1'b1;
    endcase
  end

  assign token_free = !token_valid_q || done;
  assign token_o = token_q;
  assign end_valid_o = token_valid_q && done
                       && (token_q.packet_end || token_q.kind == roci_pkg::TOKEN_END);
  assign end_colour_o = token_q.colour;

endmodule

`default_nettype wire
