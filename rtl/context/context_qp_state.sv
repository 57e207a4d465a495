// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_qp_state: owns the state of every queue pair (architecture.md rule 1: one writer).
//
// Two kinds of change go through one port, one at a time:
// - firmware (column QP_STATE): sets any state, if the present one is among those it names (compare
//   and set: the answer tells whether it happened), so that a QP that failed meanwhile is not
//   brought back by a modify that was decided earlier;
// - hardware (`error_i`): any state but RESET and ERR becomes ERR, never the other way
//   (wire.md 2.15: any but RESET -> ERR); if only the sending side of UC or UD failed, RTS and SQD
//   become SQE. With it an asynchronous event may be raised, once: a second request for a QP that is
//   already there does nothing.
// Each change is broadcast in the next cycle, with the answer to firmware, to the replicas of all
// readers; ERR of a QP that is in ERR is none, so that each ERR that they see is behind a RESET and its
// fence.
//
// Does not: check which transitions verbs allow (firmware does); flush anything (the readers act on
// the broadcast). Neighbours: cpu, requester_ack, packet_rx_commit, queue_cq_writer, … → here →
// replicas; events → queue_eq_writer.
`default_nettype none

module context_qp_state #(
  parameter int unsigned SOURCES = 4                 // hardware blocks that may ask for ERR or SQE
) (
  input  wire                                  clk_i,
  input  wire                                  rst_i,

  // column QP_STATE, index = QP. Word 0 write: see ctx_qp_state in hwif/contexts.toml (target state,
  // set of states it may come from); read and answer of a write: the state before.
  // Word 1 write: function and QPN, for events.
  input  roci_pkg::ctx_req_t                   ctx_i,
  output roci_pkg::ctx_rsp_t                   ctx_o,

  input  wire [SOURCES-1:0]                    error_valid_i,
  output logic [SOURCES-1:0]                   error_ready_o,
  input  wire roci_pkg::state_error_t [SOURCES-1:0] error_i,

  output roci_pkg::state_bcast_t               state_o,   // always accepted

  output logic                                 event_valid_o,
  input  wire                                  event_ready_i,
  output roci_pkg::event_t                     event_o,

  output logic                                 ready_o    // tables are cleared after reset
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam int unsigned SOURCE_BITS = (SOURCES > 1) ? $clog2(SOURCES) : 1;

  typedef struct packed {
    logic valid;
    logic is_ctx;
    logic is_write;                    // ctx: compare and set; else a read or word 1
    roci_pkg::qp_t qp;
    roci_pkg::qp_state_e target;
    logic [7:0] from;                  // bit s: may come from state s
    logic event_valid;
    logic [7:0] event_type;
  } operation_t;

  typedef struct packed {
    roci_pkg::fn_t fn;
    roci_pkg::qpn_t qpn;
  } identity_t;

  // Stage 0 chooses, stage 1 has read, decides and writes. While stage 1 is busy stage 0 waits, so a
  // row is never read before the change in front of it is written.
  operation_t op0, op1_q;
  logic [2:0] read_state;
  identity_t read_identity;
  logic [$bits(identity_t)-1:0] identity_bits;
  identity_t identity_in;

  logic stage1_done;
  logic state_write;
  logic stage0_free;
  logic ctx_selected;
  logic identity_write;
  logic changes;
  logic wants_event;
  logic [SOURCE_BITS-1:0] turn_q;
  logic source_found;
  logic [SOURCE_BITS-1:0] source;

  assign ctx_selected = ctx_i.valid && !ctx_o.done && !(op1_q.valid && op1_q.is_ctx)
                        && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_QP_STATE;
  assign identity_write = ctx_selected && stage0_free && ctx_i.write && ctx_i.word[0];
  assign stage0_free = ready_o && !op1_q.valid;

  // round robin over the sources that ask
  always_comb begin
    source_found = 1'b0;
    source = '0;
    for (int unsigned k = 0; k < SOURCES; k++) begin
      automatic int unsigned s = (int'(turn_q) + k) % SOURCES;
      if (!source_found && error_valid_i[s]) begin
        source_found = 1'b1;
        source = SOURCE_BITS'(s);
      end
    end
  end

  always_comb begin
    op0 = '0;
    error_ready_o = '0;
    if (stage0_free) begin
      if (ctx_selected) begin
        op0.valid = 1'b1;
        op0.is_ctx = 1'b1;
        op0.is_write = ctx_i.write && !ctx_i.word[0];
        op0.qp = roci_pkg::qp_t'(ctx_i.index);
        op0.target = roci_pkg::qp_state_e'(ctx_i.wdata[2:0]);
        op0.from = ctx_i.wdata[15:8];
      end else if (source_found) begin
        op0.valid = 1'b1;
        op0.qp = error_i[source].qp;
        op0.target = roci_pkg::QPS_ERR;
        op0.from = ~(8'(1) << roci_pkg::QPS_RESET) & ~(8'(1) << roci_pkg::QPS_ERR);
        if (error_i[source].send_only) begin
          op0.target = roci_pkg::QPS_SQE;
          op0.from = (8'(1) << roci_pkg::QPS_RTS) | (8'(1) << roci_pkg::QPS_SQD);
        end
        op0.event_valid = error_i[source].event_valid;
        op0.event_type = error_i[source].event_type;
        error_ready_o[source] = 1'b1;
      end
    end
  end

  always_comb begin
    changes = (op1_q.is_write || !op1_q.is_ctx) && op1_q.from[read_state];
    wants_event = op1_q.valid && changes && op1_q.event_valid;

    event_valid_o = wants_event;
    event_o = '0;
    event_o.fn = read_identity.fn;
    event_o.event_type = op1_q.event_type;
    event_o.object = read_identity.qpn;
  end

  assign stage1_done = op1_q.valid && (!wants_event || event_ready_i);

  assign state_write = stage1_done && changes
                       && !(op1_q.target == roci_pkg::QPS_ERR && read_state == roci_pkg::QPS_ERR);

  // RESET is 0, so a cleared table is a table of QPs in RESET
  common_ram_cleared #(.WIDTH(3), .DEPTH(QPS)) u_states (
    .clk_i, .rst_i, .ready_o,
    .we_i(state_write), .waddr_i(op1_q.qp), .wdata_i(op1_q.target),
    .re_i(stage0_free), .raddr_i(op0.qp), .rdata_o(read_state)
  );

  assign identity_in = '{fn: roci_pkg::fn_t'(ctx_i.wdata[39:32]), qpn: ctx_i.wdata[23:0]};
  common_ram_sdp #(
    .WIDTH($bits(identity_t)), .DEPTH(QPS), .STYLE(roci_config_pkg::IS_WIDE ? "auto" : "distributed")
  ) u_identities (
    .clk_i,
    .we_i(identity_write), .waddr_i(roci_pkg::qp_t'(ctx_i.index)), .wdata_i(identity_in),
    .re_i(stage0_free), .raddr_i(op0.qp), .rdata_o(identity_bits)
  );
  assign read_identity = identity_t'(identity_bits);

  always_ff @(posedge clk_i) begin
    state_o.qp <= op1_q.qp;
    state_o.state <= op1_q.target;
    state_o.from <= roci_pkg::qp_state_e'(read_state);
    if (rst_i) begin
      op1_q <= '0;
      turn_q <= '0;
      state_o.valid <= 1'b0;
      ctx_o <= '0;
    end else begin
      if (stage0_free) begin
        op1_q <= op0;
        if (op0.valid && !op0.is_ctx) begin
          turn_q <= (int'(source) == SOURCES - 1) ? '0 : source + 1'b1;
        end
      end else if (stage1_done) begin
        op1_q.valid <= 1'b0;
      end

      // The broadcast leaves with the answer: many read it, so it comes from a register.
      state_o.valid <= state_write;
      ctx_o.done <= stage1_done && op1_q.is_ctx;
      ctx_o.rdata <= (stage1_done && op1_q.is_ctx) ? 64'(read_state) : '0;
    end
  end

endmodule

`default_nettype wire
