// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_wqe_fetch: reads send queue blocks from host memory, in bursts, and knows from where.
//
// Owns of each QP {fetch point, epoch, fetched, asleep, woken}. One operation per cycle reads the
// row and writes it in the next one, in this order of precedence: context bus, rewinds, pops.
// - Pop: a burst from the fetch point to the producer index, at most to the end of its 512 B line
//   (no WQE crosses one). The fetch point advances at once, so that bursts of one QP overlap; if
//   there is more, the QP is queued again. Popped QPs in RESET or INIT are discarded.
// - Rewind (rule 5): the fetch point goes to the rewind's WQE and the epoch is bumped,
//   unless nothing was fetched in it yet. What is on its way carries the old epoch, and the
//   packetizer, told by `epoch_o`, discards it. A STALL or YIELD of an old epoch is void: another
//   rewind came first. Accepted is applied.
// - Writing word 1 of QP_SQ is a rewind to its fetch point that also forgets the producer index.
//
// Sleep without lost wake-up: after a STALL the QP is asleep and a pop fetches only if a wake is
// among its reasons. A wake that comes while something of the present epoch is in flight may be
// later than the look at the QP's state that will end in a stall: it is remembered in `woken`, and
// that stall queues the QP again instead. The first fetch of an epoch is later than all wakes
// before it, so it forgets them: at most one look for nothing per stall.
//
// Bursts in flight are bounded by landing space (LANDING_BLOCKS), so their number is below the
// number of epochs and an old epoch is never taken for a new one.
//
// Does not: look into WQEs. A block whose read failed carries `err`.
// Neighbours: queue_sq_scheduler ⇄ here ⇄ host_dma_read (client WQE); requester_packetizer and
// requester_retry → rewinds; → requester_packetizer.
`default_nettype none

module queue_wqe_fetch #(
  parameter int unsigned LANDING_BLOCKS = roci_config_pkg::WQE_LANDING_BLOCKS,  // 16..128
  parameter int unsigned REWINDS = 2                 // rewind streams, served in order of number
) (
  input  wire                              clk_i,
  input  wire                              rst_i,
  output logic                             ready_o,  // tables are cleared after reset

  // column QP_SQ, index = QP (hwif ctx_qp_sq)
  input  wire roci_pkg::ctx_req_t          ctx_i,
  output roci_pkg::ctx_rsp_t               ctx_o,

  input  wire roci_pkg::state_bcast_t      state_i,
  input  wire roci_pkg::colour_t           colour_i,
  output roci_pkg::fence_busy_t            fence_busy_o,

  // scheduler
  input  wire                              pop_valid_i,
  output logic                             pop_ready_o,
  input  wire roci_pkg::sq_pop_t           pop_i,
  input  wire roci_pkg::sq_index_t         producer_i, // of the QP taken last, one cycle later
  output logic                             requeue_valid_o,
  input  wire                              requeue_ready_i,
  output roci_pkg::sq_requeue_t            requeue_o,

  // rewinds; accepted = applied
  input  wire [REWINDS-1:0]                rewind_valid_i,
  output logic [REWINDS-1:0]               rewind_ready_o,
  input  wire roci_pkg::rewind_req_t [REWINDS-1:0] rewind_i,

  // host memory
  output logic                             dma_valid_o,
  input  wire                              dma_ready_i,
  output roci_pkg::dma_read_req_t          dma_o,
  input  wire                              beat_valid_i,
  output logic                             beat_ready_o,
  input  wire roci_pkg::read_beat_t        beat_i,

  // packetizer
  output logic                             block_valid_o,
  input  wire                              block_ready_i,
  output roci_pkg::wqe_block_t             block_o,
  output roci_pkg::epoch_bcast_t           epoch_o,        // always accepted
  input  wire                              turn_i,         // a block with `turn` came to its turn
  output logic                             others_fetched_o // one is on its way
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam int unsigned CREDIT_BITS = $clog2(LANDING_BLOCKS + 1);
  localparam int unsigned LINE = roci_pkg::LINE_BLOCKS;
  localparam int unsigned BEATS = roci_pkg::BLOCK_BYTES / roci_pkg::DATA_BYTES;  // of a block

  if (LANDING_BLOCKS < 2 * LINE || LANDING_BLOCKS > 128) $error("%m: LANDING_BLOCKS 16..128");

  typedef struct packed {
    logic [51:0] ring_page;
    roci_pkg::fn_t fn;
    logic [3:0] log2_blocks;
  } ring_t;

  typedef struct packed {
    roci_pkg::sq_index_t fetch_point;
    roci_pkg::epoch_t epoch;
    logic fetched;                     // something was fetched in this epoch
    logic asleep;                      // the last look ended in a stall
    logic woken;                       // a wake came since the first fetch of this epoch
  } row_t;

  typedef enum logic [2:0] {
    OP_NONE = 3'd0, OP_POP = 3'd1, OP_REWIND = 3'd2, OP_CTX_READ = 3'd3, OP_CTX_WRITE = 3'd4
  } op_e;

  // An operation. In stage 0 its row is read, in stage 1 it acts and writes the row, which a read
  // in that very cycle sees (RAM bypass): operations of one QP may follow each other at once.
  typedef struct packed {
    op_e kind;
    roci_pkg::qp_t qp;
    roci_pkg::colour_t colour;
    logic woken;                       // pop
    logic [REWINDS-1:0] source;        // one-hot
  } op_t;

  // What the beats of a burst become.
  typedef struct packed {
    roci_pkg::colour_t colour;
    logic turn;
    roci_pkg::qp_t qp;
    roci_pkg::epoch_t epoch;
    roci_pkg::sq_index_t index;        // of its first block
    roci_pkg::addr_t addr;
    logic [3:0] blocks;
  } burst_t;

  op_t op_q, op_d;                     // in stage 1 and in stage 0

  // ------------------------------------------------------------------------------ tables
  logic row_we, state_ready, row_ready, ring_we;
  roci_pkg::qp_t read_qp;
  row_t row, row_d;
  ring_t ring;
  logic [2:0] state_bits;
  roci_pkg::qp_state_e state;
  logic read_enable;

  assign state = roci_pkg::qp_state_e'(state_bits);
  assign ready_o = row_ready && state_ready;

  common_ram_cleared #(.WIDTH($bits(row_t)), .DEPTH(QPS)) u_rows (
    .clk_i, .rst_i, .ready_o(row_ready),
    .we_i(row_we), .waddr_i(op_q.qp), .wdata_i(row_d),
    .re_i(read_enable), .raddr_i(read_qp), .rdata_o(row)
  );

  common_ram_sdp #(.WIDTH($bits(ring_t)), .DEPTH(QPS)) u_rings (
    .clk_i,
    .we_i(ring_we), .waddr_i(op_q.qp),
    .wdata_i({ctx_i.wdata[63:12], ctx_i.wdata[4 +: roci_config_pkg::FN_BITS], ctx_i.wdata[3:0]}),
    .re_i(read_enable), .raddr_i(read_qp), .rdata_o(ring)
  );

  common_ram_cleared #(.WIDTH(3), .DEPTH(QPS)) u_states (
    .clk_i, .rst_i, .ready_o(state_ready),
    .we_i(state_i.valid && state_ready), .waddr_i(state_i.qp), .wdata_i(state_i.state),
    .re_i(read_enable), .raddr_i(read_qp), .rdata_o(state_bits)
  );

  // ------------------------------------------------------------------- stage 0: choose and read
  logic stage1_done;
  logic [CREDIT_BITS-1:0] credit_q;    // free landing blocks, less one line for a pop in stage 1
  logic [REWINDS-1:0] rewind_choice;
  logic ctx_request;

  assign ctx_request = ctx_i.valid && !ctx_o.done
                       && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_QP_SQ
                       && op_q.kind != OP_CTX_READ && op_q.kind != OP_CTX_WRITE;
  assign read_enable = stage1_done;

  // A rewind in stage 1, or just applied, is still shown by its source.
  assign rewind_choice = rewind_valid_i & ~rewind_ready_o
                         & ~(op_q.kind == OP_REWIND ? op_q.source : '0);

  always_comb begin
    op_d = '{kind: OP_NONE, qp: pop_i.qp, colour: colour_i, woken: pop_i.woken, source: '0};
    pop_ready_o = 1'b0;
    if (ready_o && stage1_done) begin
      if (ctx_request) begin
        op_d.kind = ctx_i.write ? OP_CTX_WRITE : OP_CTX_READ;
        op_d.qp = roci_pkg::qp_t'(ctx_i.index);
      end else if (rewind_choice != '0) begin
        op_d.kind = OP_REWIND;
        op_d.source = rewind_choice & (~rewind_choice + 1'b1);
        for (int unsigned r = 0; r < REWINDS; r++) begin
          if (op_d.source[r]) op_d.qp = rewind_i[r].qp;
        end
      end else if (credit_q >= CREDIT_BITS'(LINE)) begin
        pop_ready_o = 1'b1;
        if (pop_valid_i) op_d.kind = OP_POP;
      end
    end
    read_qp = op_d.qp;
  end

  // ------------------------------------------------------------------------------ stage 1: act
  roci_pkg::rewind_req_t rewind;
  logic rewind_acts;
  roci_pkg::sq_index_t available;
  logic [3:0] line_left, blocks;
  logic fetches;
  roci_pkg::sq_index_t ring_index;
  roci_pkg::addr_t ring_offset;
  logic restarts;

  logic dma_in_ready;
  logic requeue_in_valid, requeue_in_ready;
  roci_pkg::sq_requeue_t requeue_in;
  burst_t burst_in;
  logic burst_in_ready;
  logic turn;
  logic last_qp_valid_q;
  roci_pkg::qp_t last_qp_q;            // of the last burst issued

  always_comb begin
    rewind = '0;
    for (int unsigned r = 0; r < REWINDS; r++) begin
      if (op_q.source[r]) rewind = rewind | rewind_i[r];
    end
  end

  assign rewind_acts = op_q.kind == OP_REWIND
                       && (rewind.kind == roci_pkg::REWIND_RETRY
                           || rewind.kind == roci_pkg::REWIND_SLEEP || rewind.epoch == row.epoch);
  assign restarts = op_q.kind == OP_CTX_WRITE && ctx_i.word[0];

  assign available = producer_i - row.fetch_point;
  assign line_left = 4'(LINE) - {1'b0, row.fetch_point[2:0]};
  assign blocks = available < 16'(line_left) ? available[3:0] : line_left;
  assign fetches = op_q.kind == OP_POP && available != '0 && (!row.asleep || op_q.woken)
                   && state != roci_pkg::QPS_RESET && state != roci_pkg::QPS_INIT;

  always_comb begin
    row_d = row;
    row_we = 1'b0;
    requeue_in_valid = 1'b0;
    requeue_in = '{kind: roci_pkg::SQ_AGAIN, qp: op_q.qp, index: ctx_i.wdata[15:0]};
    unique case (op_q.kind)
      OP_POP: begin
        row_we = 1'b1;
        if (op_q.woken) row_d.asleep = 1'b0;
        row_d.woken = row.fetched && (row.woken || op_q.woken);
        if (fetches) begin
          row_d.fetch_point = row.fetch_point + 16'(blocks);
          row_d.fetched = 1'b1;
          requeue_in_valid = row_d.fetch_point != producer_i;
        end
      end
      OP_REWIND: if (rewind_acts) begin
        row_we = 1'b1;
        row_d.fetch_point = rewind.point.wqe_index;
        row_d.epoch = row.epoch + 8'(row.fetched);
        row_d.fetched = 1'b0;
        row_d.woken = 1'b0;
        row_d.asleep = !row.woken && (rewind.kind == roci_pkg::REWIND_STALL
                                      || rewind.kind == roci_pkg::REWIND_SLEEP);
        requeue_in_valid = !row_d.asleep;
      end
      OP_CTX_WRITE: if (restarts) begin
        row_we = 1'b1;
        row_d = '{fetch_point: ctx_i.wdata[15:0], epoch: row.epoch + 8'(row.fetched),
                  fetched: 1'b0, asleep: 1'b0, woken: 1'b0};
        requeue_in_valid = 1'b1;
        requeue_in.kind = roci_pkg::SQ_RESTART;
      end
      default: ;
    endcase
    // Nothing is written before everything it causes has a place.
    stage1_done = (!requeue_in_valid || requeue_in_ready)
                  && (!fetches || (dma_in_ready && burst_in_ready));
    row_we = row_we && stage1_done;
  end

  assign ring_we = op_q.kind == OP_CTX_WRITE && !ctx_i.word[0] && stage1_done;

  // The ring is a power of two of blocks; a line never wraps.
  assign ring_index = row.fetch_point & ~(16'hffff << ring.log2_blocks);
  assign ring_offset = {42'd0, ring_index, 6'd0};
  assign turn = !last_qp_valid_q || last_qp_q != op_q.qp;
  assign burst_in = '{colour: op_q.colour, turn: turn, qp: op_q.qp, epoch: row.epoch,
                      index: row.fetch_point, addr: {ring.ring_page, 12'd0} + ring_offset,
                      blocks: blocks};

  always_ff @(posedge clk_i) begin
    if (stage1_done) op_q <= op_d;
    if (stage1_done && fetches) last_qp_q <= op_q.qp;

    // Acceptance comes with the broadcast: whoever goes on by the one has heard the other.
    rewind_ready_o <= op_q.kind == OP_REWIND && stage1_done ? op_q.source : '0;
    epoch_o.valid <= row_we && op_q.kind != OP_POP;
    epoch_o.qp <= op_q.qp;
    epoch_o.epoch <= row_d.epoch;
    epoch_o.point <= restarts ? '{wqe_index: ctx_i.wdata[15:0], first_psn: ctx_i.wdata[55:32],
                                  resume_psn: ctx_i.wdata[55:32], read_ordinal: '0}
                              : rewind.point;

    ctx_o.done <= stage1_done && (op_q.kind == OP_CTX_READ || op_q.kind == OP_CTX_WRITE);
    ctx_o.rdata <= '0;
    if (stage1_done && op_q.kind == OP_CTX_READ) begin
      ctx_o.rdata <= ctx_i.word[0]
                     ? 64'({row.fetched, row.epoch, row.fetch_point})
                     : {ring.ring_page, 8'(ring.fn), ring.log2_blocks};
    end

    if (stage1_done && fetches) last_qp_valid_q <= 1'b1;

    if (rst_i) begin
      op_q.kind <= OP_NONE;
      rewind_ready_o <= '0;
      epoch_o.valid <= 1'b0;
      ctx_o <= '0;
      last_qp_valid_q <= 1'b0;
    end
  end

  // --------------------------------------------------------------------------- out of stage 1
  roci_pkg::dma_read_req_t dma_in;

  assign dma_in = '{fn: ring.fn, length: {3'd0, blocks, 6'd0}, addr: burst_in.addr};

  common_skid #(.WIDTH($bits(roci_pkg::dma_read_req_t))) u_dma (
    .clk_i, .rst_i,
    .in_valid_i(fetches && stage1_done), .in_ready_o(dma_in_ready), .in_i(dma_in),
    .out_valid_o(dma_valid_o), .out_ready_i(dma_ready_i), .out_o(dma_o)
  );

  common_skid #(.WIDTH($bits(roci_pkg::sq_requeue_t))) u_requeue (
    .clk_i, .rst_i,
    .in_valid_i(requeue_in_valid && stage1_done), .in_ready_o(requeue_in_ready),
    .in_i(requeue_in),
    .out_valid_o(requeue_valid_o), .out_ready_i(requeue_ready_i), .out_o(requeue_o)
  );

  // ------------------------------------------------------------------------------ blocks
  burst_t burst;
  logic burst_valid;
  logic [2:0] block_q;                 // blocks of the burst handed on
  logic block_last, block_taken;
  logic complete;                      // the last beat of a block is here

  // As many places as landing blocks: a burst has at least one, so it is never full.
  common_fifo #(.WIDTH($bits(burst_t)), .DEPTH(LANDING_BLOCKS)) u_bursts (
    .clk_i, .rst_i,
    .in_valid_i(fetches && stage1_done), .in_ready_o(burst_in_ready), .in_i(burst_in),
    .out_valid_o(burst_valid), .out_ready_i(block_taken && block_last), .out_o(burst),
    .usage_o()
  );

  assign block_last = {1'b0, block_q} + 4'd1 == burst.blocks;
  assign block_valid_o = burst_valid && complete;
  assign block_taken = block_valid_o && block_ready_i;

  always_comb begin
    block_o.colour = burst.colour;
    block_o.burst_last = block_last;
    block_o.turn = burst.turn && block_q == '0;
    block_o.qp = burst.qp;
    block_o.epoch = burst.epoch;
    block_o.index = burst.index + 16'(block_q);
    block_o.addr = burst.addr;
    block_o.addr[8:6] = burst.addr[8:6] + block_q;   // a burst stays in its line
  end

  if (BEATS == 1) begin : gen_whole

    assign complete = beat_valid_i;
    assign beat_ready_o = block_taken;
    assign block_o.err = beat_i.err;
    assign block_o.block = beat_i.data;

  end else begin : gen_assemble

    localparam int unsigned BITS = roci_pkg::DATA_BITS;

    logic [$clog2(BEATS)-1:0] beat_q;  // beats of the block taken
    logic [511-BITS:0] earlier_q;      // their data, the oldest in the low bits
    logic err_q;                       // one of them failed
    logic beat_taken;

    assign complete = beat_valid_i && beat_q == '1;
    assign beat_ready_o = beat_q == '1 ? block_taken : burst_valid;
    assign beat_taken = beat_valid_i && beat_ready_o;
    assign block_o.err = beat_i.err || err_q;
    assign block_o.block = {beat_i.data, earlier_q};

    always_ff @(posedge clk_i) begin
      if (beat_taken) begin
        beat_q <= beat_q + 1'b1;
        earlier_q <= {beat_i.data, earlier_q[511-BITS:BITS]};
        err_q <= beat_q != '1 && (err_q || beat_i.err);
      end
      if (rst_i) begin
        beat_q <= '0;
        err_q <= 1'b0;
      end
    end

  end

  always_ff @(posedge clk_i) begin
    if (block_taken) block_q <= block_last ? '0 : block_q + 1'b1;
    if (rst_i) block_q <= '0;
  end

  // ---------------------------------------------------------------------------- bookkeeping
  logic [1:0][CREDIT_BITS-1:0] held_q;     // bursts on their way, by colour
  logic [CREDIT_BITS:0] turns_q;           // of them, and in the packetizer: with `turn`
  logic pop_taken, pop_done, issue, retire;

  assign pop_taken = pop_valid_i && pop_ready_o;
  assign pop_done = op_q.kind == OP_POP && stage1_done;
  assign issue = fetches && stage1_done;
  assign retire = block_taken && block_last;

  for (genvar c = 0; c < 2; c++) begin : gen_busy
    assign fence_busy_o[c] = held_q[c] != '0
                             || (op_q.kind == OP_POP && op_q.colour == roci_pkg::colour_t'(c));
  end

  always_ff @(posedge clk_i) begin
    credit_q <= credit_q - (pop_taken ? CREDIT_BITS'(LINE) : '0)
                + (pop_done ? CREDIT_BITS'(LINE) : '0)
                - (issue ? CREDIT_BITS'(blocks) : '0) + CREDIT_BITS'(block_taken);
    for (int unsigned c = 0; c < 2; c++) begin
      held_q[c] <= held_q[c]
                   + CREDIT_BITS'(issue && op_q.colour == roci_pkg::colour_t'(c))
                   - CREDIT_BITS'(retire && burst.colour == roci_pkg::colour_t'(c));
    end
    turns_q <= turns_q + (CREDIT_BITS+1)'(issue && turn) - (CREDIT_BITS+1)'(turn_i);
    others_fetched_o <= turns_q != '0 && !rst_i;
    if (rst_i) begin
      credit_q <= CREDIT_BITS'(LANDING_BLOCKS);
      held_q <= '0;
      turns_q <= '0;
    end
  end

  wire unused = &{1'b0, beat_i.last, rewind.qp};

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert (32'(credit_q) <= LANDING_BLOCKS);
      if (issue) assert (burst_in_ready);
      if (turn_i) assert (turns_q != '0);
      assert ((rewind_ready_o & ~rewind_valid_i) == '0);
      if (beat_valid_i && beat_ready_o) begin
        assert (!beat_i.last || (block_taken && block_last));   // the burst ends with its read
      end
      if (block_taken && block_last) assert (beat_i.last);
      // What is asleep has nothing in flight.
      if (op_q.kind == OP_POP) assert (!(row.asleep && row.fetched));
    end
  end

endmodule

`default_nettype wire
