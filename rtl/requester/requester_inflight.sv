// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_inflight: the in-flight records of all QPs, and how far each QP has written them.
//
// The packetizer writes one record per WQE, when its last packet is made (local operations: when
// they are executed; WQEs met in ERR: as flush records), in index order within an epoch; a refetch
// writes the same records again. Kept per QP: the index after the last record ever written, and the
// index after the last one written in the newest epoch, by which the walker knows what has landed
// again after a rewind: each rewind sets it back, so it is never of an epoch long ago, whose number
// may come again. A WQE that the packetizer gave up half sent (ERR) has no record: the first
// index stops there, whatever is written behind it. Records that no acknowledge event will announce
// (local operation, NOP, flush) queue the QP for a walk, after they are written.
//
// Does not: judge or void records (requester_ack_walker does).
// Neighbours: requester_packetizer, queue_wqe_fetch (epochs) → here → requester_ack_walker (reads),
// its queue (pushes).
`default_nettype none

module requester_inflight (
  input  wire                             clk_i,
  input  wire                             rst_i,

  input  wire                             inflight_valid_i,
  output logic                            inflight_ready_o,
  input  roci_pkg::inflight_write_t       inflight_i,

  // a rewind: nothing behind its point has landed; always accepted
  input  roci_pkg::epoch_bcast_t          epoch_i,

  // firmware starts a QP: no records
  input  wire                             init_valid_i,
  output logic                            init_ready_o,
  input  roci_pkg::qp_t                   init_qp_i,

  // reads of the walker, data one cycle later
  input  roci_pkg::inflight_slot_t        walk_slot_i,
  output requester_pkg::ack_record_t      walk_record_o,
  input  roci_pkg::qp_t                   walk_qp_i,
  output requester_pkg::ack_horizon_t     walk_horizon_o,

  // QPs to walk
  output logic                            push_valid_o,
  input  wire                             push_ready_i,
  output roci_pkg::qp_t                   push_qp_o
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam int unsigned RECORDS = 2 ** roci_config_pkg::INFLIGHT_BITS;
  localparam string STYLE = roci_config_pkg::IS_WIDE ? "block" : "distributed";
  localparam int unsigned PUSHES = 8;

  typedef requester_pkg::ack_record_t record_t;
  typedef requester_pkg::ack_horizon_t horizon_t;

  // ------------------------------------------------------------------------------ state
  logic valid_q, init_q, tell_q, push_q;
  roci_pkg::qp_t qp_q;
  roci_pkg::epoch_t epoch_q;
  roci_pkg::sq_index_t start_q, end_q;     // index of the record, index after it; rewind point

  // ------------------------------------------------------------------------------ logic
  logic take, push_room;
  roci_pkg::qp_t qp;                       // whose row is read
  record_t record;
  horizon_t row;
  roci_pkg::sq_index_t old_horizon;

  always_comb begin
    // a record may need a push: one more can be in stage 1
    inflight_ready_o = push_room && !epoch_i.valid;
    take = inflight_valid_i && inflight_ready_o;
    init_ready_o = !take && !epoch_i.valid;
    qp = epoch_i.valid ? epoch_i.qp : take ? inflight_i.qp : init_qp_i;

    record.kind = inflight_i.record.kind;
    record.signaled = inflight_i.record.signaled;
    record.blocks = inflight_i.record.blocks[2:0];
    record.wc_opcode = inflight_i.record.wc_opcode[4:0];
    record.byte_len = inflight_i.record.byte_len;
    record.last_psn = inflight_i.record.last_psn;

    row.horizon = start_q == old_horizon && !tell_q ? end_q : old_horizon;
    row.epoch = epoch_q;
    row.landed = end_q;
    if (init_q) row = '0;
  end

  always_ff @(posedge clk_i) begin
    valid_q <= take || epoch_i.valid || init_valid_i;
    init_q <= !take && !epoch_i.valid;
    tell_q <= epoch_i.valid;
    qp_q <= qp;
    epoch_q <= epoch_i.valid ? epoch_i.epoch : inflight_i.epoch;
    start_q <= inflight_i.wqe_index;
    end_q <= epoch_i.valid ? epoch_i.point.wqe_index
                           : inflight_i.wqe_index + 16'(inflight_i.record.blocks);
    push_q <= take && (inflight_i.record.kind == roci_pkg::INFLIGHT_LOCAL
                       || inflight_i.record.kind == roci_pkg::INFLIGHT_NOP
                       || inflight_i.record.kind == roci_pkg::INFLIGHT_FLUSH);
    if (rst_i) begin
      valid_q <= 1'b0;
      push_q <= 1'b0;
    end
  end

  // ------------------------------------------------------------------------------ tables
  common_ram_sdp #(.WIDTH($bits(record_t)), .DEPTH(RECORDS), .STYLE("block")) u_records (
    .clk_i, .we_i(take), .waddr_i(inflight_i.slot), .wdata_i(record),
    .re_i(1'b1), .raddr_i(walk_slot_i), .rdata_o(walk_record_o)
  );

  common_ram_sdp #(
    .WIDTH($bits(roci_pkg::sq_index_t)), .DEPTH(QPS), .STYLE(STYLE)
  ) u_horizons (
    .clk_i, .we_i(valid_q), .waddr_i(qp_q), .wdata_i(row.horizon),
    .re_i(1'b1), .raddr_i(qp), .rdata_o(old_horizon)
  );

  common_ram_sdp #(.WIDTH($bits(horizon_t)), .DEPTH(QPS), .STYLE(STYLE)) u_horizons_walk (
    .clk_i, .we_i(valid_q), .waddr_i(qp_q), .wdata_i(row),
    .re_i(1'b1), .raddr_i(walk_qp_i), .rdata_o(walk_horizon_o)
  );

  // --------------------------------------------------------------------------- pushes
  logic [$clog2(PUSHES+1)-1:0] pushes;
  logic push_in_ready;

  assign push_room = 32'(pushes) < PUSHES - 1;

  common_fifo #(.WIDTH($bits(roci_pkg::qp_t)), .DEPTH(PUSHES)) u_pushes (
    .clk_i, .rst_i,
    .in_valid_i(push_q), .in_ready_o(push_in_ready), .in_i(qp_q),
    .out_valid_o(push_valid_o), .out_ready_i(push_ready_i), .out_o(push_qp_o), .usage_o(pushes)
  );

  // ------------------------------------------------------------------------ assertions
  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (push_q) assert (push_in_ready);
      if (take) begin
        assert (inflight_i.record.blocks != 0 && inflight_i.record.blocks <= 4'd8);
        assert (inflight_i.record.wc_opcode[7:5] == '0);
      end
    end
  end

  wire unused = &{1'b0, inflight_i.record.first_psn, inflight_i.record.read_ordinal, epoch_i.point};

endmodule

`default_nettype wire
