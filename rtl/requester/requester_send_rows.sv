// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_send_rows: what the sending side knows of each QP, looked up for the WQE at work and
// kept up to date while it is.
//
// Tables indexed by QP, one writer each: context (context bus), dynamic row (`commit_i` of the
// packetizer; context bus while the QP is not live), replicas of epoch and rewind point,
// acknowledge state, QP state, RNR wait (their broadcasts). A WQE waits here with its tables read
// again every cycle until it is taken; then `cur_o` belongs to it and follows the broadcasts of its
// QP, two cycles late, until the next one is taken. A row committed in the cycle of the take is
// seen. The context bus takes one cycle of the read port, so it never waits for traffic to end.
//
// Does not: judge. Neighbours: requester_wqe_front → here ⇄ requester_packetizer; broadcasts of
// queue_wqe_fetch, requester_ack, context_qp_state, context_timer. Columns QP_TX, QP_TX_DYN,
// TUNING: hwif/contexts.toml.
`default_nettype none

module requester_send_rows (
  input  wire                              clk_i,
  input  wire                              rst_i,
  output logic                             ready_o,        // tables are cleared after reset

  input  wire roci_pkg::ctx_req_t          ctx_i,
  output roci_pkg::ctx_rsp_t               ctx_o,

  input  wire roci_pkg::epoch_bcast_t      epoch_i,
  input  wire roci_pkg::ack_state_t        ack_state_i,
  input  wire roci_pkg::state_bcast_t      state_i,
  input  wire roci_pkg::rnr_bcast_t        rnr_i,

  input  wire                              wqe_valid_i,
  output logic                             wqe_ready_o,
  input  wire requester_send_pkg::wqe_t    wqe_i,

  output logic                             next_valid_o,   // a WQE with its tables can be taken
  output requester_send_pkg::wqe_t         next_wqe_o,     // it
  input  wire                              take_i,         // not without next_valid_o
  output requester_send_pkg::look_t        cur_o,          // the WQE taken last
  output logic                             follows_o,      // the next WQE is of its QP, sends packets
                                                           // no larger than its own, and waits for
                                                           // nothing but windows

  input  wire                              commit_valid_i, // new dynamic row of cur_o's QP
  input  wire requester_send_pkg::row_t    commit_i,

  output logic [4:0]                       window_log2_o   // byte cap of SENDs and WRITEs per QP
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam logic [4:0] WINDOW_LOG2_RESET = 5'd18;    // 256 KB

  // context_t in the two words that the context bus writes
  typedef struct packed {
    logic [2:0] qp_type;
    logic [2:0] mtu;
    roci_pkg::fn_t fn;
    roci_pkg::pd_t pd;
    logic [7:0] max_rd_atomic;
  } word0_t;

  typedef struct packed {
    roci_pkg::inflight_slot_t inflight_base;
    logic [3:0] inflight_log2;
    roci_pkg::read_slot_t read_base;
    logic [3:0] read_log2;
  } word1_t;

  typedef struct packed {
    roci_pkg::epoch_t epoch;
    roci_pkg::rewind_point_t point;
  } epoch_row_t;

  typedef struct packed {
    roci_pkg::sq_index_t oldest_index;
    roci_pkg::psn_t acked_psn;
    roci_pkg::read_ordinal_t reads_done;
    logic stop_valid;
    roci_pkg::psn_t stop_psn;
  } ack_row_t;

  // ------------------------------------------------------------------------------ state
  logic wait_valid_q;                  // a WQE waits, its tables are at the RAM outputs if fresh
  requester_send_pkg::wqe_t wait_q;
  logic fresh_q;
  requester_send_pkg::look_t cur_q;
  logic [4:0] window_log2_q;

  // ------------------------------------------------------------------------------ context bus
  typedef enum logic [1:0] {CTX_IDLE, CTX_READ, CTX_DONE} ctx_state_e;
  ctx_state_e ctx_state_q;
  roci_hwif_pkg::ctx_qp_tx_t ctx_tx;
  roci_hwif_pkg::ctx_qp_tx_dyn_t ctx_dyn;
  logic ctx_tx_column, ctx_dyn_column, ctx_tuning_column;
  logic ctx_steal;                     // the read port is the context bus's in this cycle
  logic ctx_act;                       // what was read is there; writes happen
  logic ctx_row_we;
  requester_send_pkg::row_t ctx_row;

  assign ctx_tx_column = ctx_i.column == roci_hwif_pkg::CTX_COLUMN_QP_TX;
  assign ctx_dyn_column = ctx_i.column == roci_hwif_pkg::CTX_COLUMN_QP_TX_DYN;
  assign ctx_tuning_column = ctx_i.column == roci_hwif_pkg::CTX_COLUMN_TUNING;
  assign ctx_steal = ctx_state_q == CTX_IDLE && ctx_i.valid && ready_o
                     && (ctx_tx_column || ctx_dyn_column || ctx_tuning_column);
  assign ctx_row_we = ctx_state_q == CTX_READ && ctx_i.write && ctx_dyn_column && !ctx_i.word[0];
  // A commit goes first: then the row is read again.
  assign ctx_act = ctx_state_q == CTX_READ && !(ctx_row_we && commit_valid_i);

  // ------------------------------------------------------------------------------ tables
  logic load;                          // the next WQE comes to wait
  roci_pkg::qp_t read_qp;
  word0_t word0, word0_wdata;
  word1_t word1, word1_wdata;
  requester_send_pkg::row_t row, row_wdata;
  epoch_row_t epoch_row;
  ack_row_t ack_row;
  logic [2:0] state_bits;
  logic waiting;
  logic epoch_ready, state_ready, rnr_ready;

  assign ready_o = epoch_ready && state_ready && rnr_ready;
  assign load = (!wait_valid_q || take_i) && wqe_valid_i && ready_o;
  assign wqe_ready_o = (!wait_valid_q || take_i) && ready_o;

  always_comb begin
    if (ctx_steal) read_qp = roci_pkg::qp_t'(ctx_i.index);
    else if (load) read_qp = wqe_i.qp;
    else read_qp = wait_q.qp;
  end

  assign ctx_tx = {ctx_i.wdata, ctx_i.wdata};        // either word is taken from its half
  assign word0_wdata = '{qp_type: ctx_tx.qp_type, mtu: ctx_tx.mtu, fn: roci_pkg::fn_t'(ctx_tx.fn),
                         pd: roci_pkg::pd_t'(ctx_tx.pd), max_rd_atomic: ctx_tx.max_rd_atomic};
  assign word1_wdata = '{inflight_base: roci_pkg::inflight_slot_t'(ctx_tx.inflight_base),
                         inflight_log2: ctx_tx.inflight_log2,
                         read_base: roci_pkg::read_slot_t'(ctx_tx.read_base),
                         read_log2: ctx_tx.read_log2};

  common_ram_sdp #(.WIDTH($bits(word0_t)), .DEPTH(QPS)) u_word0 (
    .clk_i,
    .we_i(ctx_act && ctx_i.write && ctx_tx_column && !ctx_i.word[0]),
    .waddr_i(roci_pkg::qp_t'(ctx_i.index)), .wdata_i(word0_wdata),
    .re_i(1'b1), .raddr_i(read_qp), .rdata_o(word0)
  );

  common_ram_sdp #(.WIDTH($bits(word1_t)), .DEPTH(QPS)) u_word1 (
    .clk_i,
    .we_i(ctx_act && ctx_i.write && ctx_tx_column && ctx_i.word[0]),
    .waddr_i(roci_pkg::qp_t'(ctx_i.index)), .wdata_i(word1_wdata),
    .re_i(1'b1), .raddr_i(read_qp), .rdata_o(word1)
  );

  // A row written by firmware belongs to the present epoch, so the rewind point is not loaded.
  assign ctx_row = '{epoch: epoch_row.epoch, next_psn: ctx_i.wdata[23:0],
                     max_psn: ctx_i.wdata[23:0], resume_psn: ctx_i.wdata[23:0],
                     read_end_psn: ctx_i.wdata[23:0], read_ordinal: '0,
                     mark_psn: ctx_i.wdata[23:0], size_before: '0, size_since: '0,
                     unasked: '0};
  assign row_wdata = commit_valid_i ? commit_i : ctx_row;

  common_ram_sdp #(.WIDTH($bits(requester_send_pkg::row_t)), .DEPTH(QPS)) u_rows (
    .clk_i,
    .we_i(commit_valid_i || ctx_row_we),
    .waddr_i(commit_valid_i ? cur_q.wqe.qp : roci_pkg::qp_t'(ctx_i.index)), .wdata_i(row_wdata),
    .re_i(1'b1), .raddr_i(read_qp), .rdata_o(row)
  );

  common_ram_cleared #(
    .WIDTH($bits(epoch_row_t)), .DEPTH(QPS), .STYLE(roci_config_pkg::IS_WIDE ? "auto" : "distributed")
  ) u_epochs (
    .clk_i, .rst_i, .ready_o(epoch_ready),
    .we_i(epoch_i.valid && epoch_ready), .waddr_i(epoch_i.qp),
    .wdata_i({epoch_i.epoch, epoch_i.point}),
    .re_i(1'b1), .raddr_i(read_qp), .rdata_o(epoch_row)
  );

  common_ram_sdp #(.WIDTH($bits(ack_row_t)), .DEPTH(QPS)) u_ack (
    .clk_i,
    .we_i(ack_state_i.valid), .waddr_i(ack_state_i.qp),
    .wdata_i({ack_state_i.oldest_index, ack_state_i.acked_psn, ack_state_i.reads_done,
              ack_state_i.stop_valid, ack_state_i.stop_psn}),
    .re_i(1'b1), .raddr_i(read_qp), .rdata_o(ack_row)
  );

  common_ram_cleared #(.WIDTH(3), .DEPTH(QPS)) u_states (
    .clk_i, .rst_i, .ready_o(state_ready),
    .we_i(state_i.valid && state_ready), .waddr_i(state_i.qp), .wdata_i(state_i.state),
    .re_i(1'b1), .raddr_i(read_qp), .rdata_o(state_bits)
  );

  common_ram_cleared #(.WIDTH(1), .DEPTH(QPS)) u_rnr (
    .clk_i, .rst_i, .ready_o(rnr_ready),
    .we_i(rnr_i.valid && rnr_ready), .waddr_i(rnr_i.qp), .wdata_i(rnr_i.waiting),
    .re_i(1'b1), .raddr_i(read_qp), .rdata_o(waiting)
  );

  // ------------------------------------------------------------------------- the WQE that waits
  requester_send_pkg::look_t look;
  logic [32:0] rounded;                // length + MTU - 1

  always_comb begin
    look.wqe = wait_q;
    look.ctx = '{qp_type: word0.qp_type, mtu_log2: 4'd7 + {1'b0, word0.mtu}, fn: word0.fn,
                 pd: word0.pd, max_rd_atomic: word0.max_rd_atomic,
                 inflight_base: word1.inflight_base, inflight_log2: word1.inflight_log2,
                 read_base: word1.read_base, read_log2: word1.read_log2};
    look.row = commit_valid_i && cur_q.wqe.qp == wait_q.qp ? commit_i : row;

    look.row_old = look.row.epoch != wait_q.epoch;

    // A READ takes the PSNs of its responses, other requests one per packet (wire.md 2.1).
    rounded = {1'b0, wait_q.length} + ((33'd1 << look.ctx.mtu_log2) - 33'd1);
    look.psn_count = 24'(rounded >> look.ctx.mtu_log2);
    if (wait_q.length == '0) look.psn_count = 24'd1;
    // A datagram that does not fit into a packet sends nothing (wire.md 1.7).
    look.is_void = wait_q.kind == requester_send_pkg::KIND_NOP
                   || (wait_q.datagram && wait_q.length > (32'd1 << look.ctx.mtu_log2));
    if (look.is_void) look.psn_count = 24'd0;

    look.size_log2 = look.ctx.mtu_log2;
    for (int unsigned n = 12; n > 0; n--) begin
      if (wait_q.length <= 32'(1 << (n - 1)) && 4'(n - 1) < look.ctx.mtu_log2) begin
        look.size_log2 = 4'(n - 1);
      end
    end

    look.epoch = epoch_row.epoch;
    look.point = epoch_row.point;
    look.state = roci_pkg::qp_state_e'(state_bits);
    look.waiting = waiting;
    look.oldest_index = ack_row.oldest_index;
    look.acked_psn = ack_row.acked_psn;
    look.reads_done = ack_row.reads_done;
    look.stop_valid = ack_row.stop_valid;
    look.stop_psn = ack_row.stop_psn;
  end

  assign follows_o = next_valid_o && wait_q.qp == cur_q.wqe.qp && wait_q.epoch == cur_q.wqe.epoch
                     && (wait_q.kind == requester_send_pkg::KIND_SEND
                         || wait_q.kind == requester_send_pkg::KIND_WRITE)
                     && !wait_q.bus_error && wait_q.vendor_status == '0 && !wait_q.fence
                     && look.size_log2 <= cur_q.size_log2;

  assign next_valid_o = wait_valid_q && fresh_q;
  assign next_wqe_o = wait_q;
  assign cur_o = cur_q;
  assign window_log2_o = window_log2_q;

  // Broadcasts one cycle later: by then a WQE that was taken in the cycle of the broadcast, too
  // late for the RAM, is there to hear of it.
  roci_pkg::epoch_bcast_t epoch_q;
  roci_pkg::ack_state_t ack_state_q;
  roci_pkg::state_bcast_t state_q;
  roci_pkg::rnr_bcast_t rnr_q;

  always_ff @(posedge clk_i) begin
    epoch_q <= epoch_i;
    ack_state_q <= ack_state_i;
    state_q <= state_i;
    rnr_q <= rnr_i;

    if (load) wait_q <= wqe_i;
    if (load) wait_valid_q <= 1'b1;
    else if (take_i) wait_valid_q <= 1'b0;
    fresh_q <= !ctx_steal;

    if (take_i) begin
      cur_q <= look;
    end else begin
      if (epoch_q.valid && epoch_q.qp == cur_q.wqe.qp) begin
        cur_q.epoch <= epoch_q.epoch;
        cur_q.point <= epoch_q.point;
      end
      if (ack_state_q.valid && ack_state_q.qp == cur_q.wqe.qp) begin
        cur_q.oldest_index <= ack_state_q.oldest_index;
        cur_q.acked_psn <= ack_state_q.acked_psn;
        cur_q.reads_done <= ack_state_q.reads_done;
        cur_q.stop_valid <= ack_state_q.stop_valid;
        cur_q.stop_psn <= ack_state_q.stop_psn;
      end
      if (state_q.valid && state_q.qp == cur_q.wqe.qp) cur_q.state <= state_q.state;
      if (rnr_q.valid && rnr_q.qp == cur_q.wqe.qp) cur_q.waiting <= rnr_q.waiting;
    end

    if (rst_i) wait_valid_q <= 1'b0;
  end

  // ------------------------------------------------------------------------- context bus answers
  always_comb begin
    ctx_dyn = '0;
    ctx_dyn.next_psn = row.next_psn;
    ctx_dyn.max_psn = row.max_psn;
    ctx_dyn.read_ordinal = row.read_ordinal;
    ctx_dyn.epoch = row.epoch;
    ctx_dyn.resume_psn = row.resume_psn;
    ctx_dyn.read_end_psn = row.read_end_psn;
  end

  roci_hwif_pkg::ctx_qp_tx_t tx_rdata;

  always_comb begin
    tx_rdata = '0;
    tx_rdata.qp_type = roci_hwif_pkg::qp_type_e'(word0.qp_type);
    tx_rdata.mtu = roci_hwif_pkg::mtu_e'(word0.mtu);
    tx_rdata.fn = 8'(word0.fn);
    tx_rdata.pd = 16'(word0.pd);
    tx_rdata.max_rd_atomic = word0.max_rd_atomic;
    tx_rdata.inflight_base = 16'(word1.inflight_base);
    tx_rdata.inflight_log2 = word1.inflight_log2;
    tx_rdata.read_base = 16'(word1.read_base);
    tx_rdata.read_log2 = word1.read_log2;
  end

  always_ff @(posedge clk_i) begin
    unique case (ctx_state_q)
      CTX_IDLE: if (ctx_steal) ctx_state_q <= CTX_READ;
      CTX_READ: ctx_state_q <= ctx_act ? CTX_DONE : CTX_IDLE;
      default: ctx_state_q <= CTX_IDLE;
    endcase
    ctx_o.done <= ctx_act;
    ctx_o.rdata <= '0;
    if (ctx_act) begin
      if (ctx_tx_column) begin
        ctx_o.rdata <= ctx_i.word[0] ? tx_rdata[127:64] : tx_rdata[63:0];
      end else if (ctx_dyn_column) begin
        ctx_o.rdata <= ctx_i.word[0] ? ctx_dyn[127:64] : ctx_dyn[63:0];
      end else begin
        ctx_o.rdata <= 64'(window_log2_q);
        if (ctx_i.write) window_log2_q <= ctx_i.wdata[4:0];
      end
    end
    if (rst_i) begin
      ctx_state_q <= CTX_IDLE;
      ctx_o <= '0;
      window_log2_q <= WINDOW_LOG2_RESET;
    end
  end

  wire unused = &{1'b0, ctx_tx, ctx_i.index, ctx_i.word, rounded};

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (take_i) assert (next_valid_o);
      if (commit_valid_i) assert (commit_i.epoch == cur_q.wqe.epoch);
    end
  end

endmodule

`default_nettype wire
