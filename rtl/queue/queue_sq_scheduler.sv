// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_sq_scheduler: whose send queue is looked at next.
//
// A FIFO of QPs in which each one is at most once (architecture.md rule 6). What puts a QP into it:
// - a doorbell (writes the producer index first),
// - a wake: something changed that may let a stalled QP go on,
// - queue_wqe_fetch, when there is more to fetch or a rewind was applied (SQ_AGAIN).
// A pop takes the oldest QP out. Its producer index is read when the pop is taken, so that a
// doorbell that comes later queues it again, and an old index never meets a send queue started
// afresh. The pop tells whether a wake was among the reasons: queue_wqe_fetch, which knows what is
// asleep and what is in flight, makes of it that no wake-up is lost (see there).
// A QP in an RNR wait is taken out and forgotten: the end of its wait is a wake.
//
// Does not: know what a QP has fetched or sent, nor count: a look may find nothing.
// Neighbours: host_doorbell, requester_ack, requester_retry, context_timer, context_qp_state →
// here ⇄ queue_wqe_fetch; requester_packetizer asks whether others wait.
`default_nettype none

module queue_sq_scheduler #(
  parameter int unsigned WAKES = 3                   // wake streams
) (
  input  wire                              clk_i,
  input  wire                              rst_i,
  output logic                             ready_o,  // tables are cleared after reset

  input  wire                              doorbell_valid_i, // always accepted
  input  wire roci_pkg::doorbell_t         doorbell_i,       // kind SQ counts, others are not ours

  // wakes: ack progress, READ credit, end of a wait, …
  input  wire [WAKES-1:0]                  wake_valid_i,
  output logic [WAKES-1:0]                 wake_ready_o,
  input  wire roci_pkg::qp_t [WAKES-1:0]   wake_i,
  input  wire roci_pkg::state_bcast_t      state_i,          // every change wakes
  input  wire roci_pkg::rnr_bcast_t        rnr_i,            // the end of a wait wakes

  // what became of a popped or rewound QP
  input  wire                              requeue_valid_i,
  output logic                             requeue_ready_o,
  input  wire roci_pkg::sq_requeue_t       requeue_i,

  // next QP to fetch for
  output logic                             pop_valid_o,
  input  wire                              pop_ready_i,
  output roci_pkg::sq_pop_t                pop_o,
  output roci_pkg::sq_index_t              producer_o, // of the QP taken last, one cycle later

  // end of a quantum: somebody else than the QP at work is queued
  input  wire roci_pkg::qp_t               current_qp_i,
  output logic                             others_queued_o
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam int unsigned QP_BITS = roci_config_pkg::QP_BITS;
  localparam int unsigned SOURCES = WAKES + 2;       // wakes by state and RNR broadcasts besides

  // ------------------------------------------------------------------------------ wakes
  logic [SOURCES-1:0] source_valid, source_ready;
  roci_pkg::qp_t [SOURCES-1:0] source;
  logic choice_valid, choice_ready, wake_valid, wake_ready;
  roci_pkg::qp_t choice_qp, wake_qp;

  assign source_valid[WAKES-1:0] = wake_valid_i;
  assign source[WAKES-1:0] = wake_i;
  assign wake_ready_o = source_ready[WAKES-1:0];

  queue_bcast_wake u_state_wake (
    .clk_i, .rst_i, .bcast_valid_i(state_i.valid), .bcast_i(state_i.qp),
    .wake_valid_o(source_valid[WAKES]), .wake_ready_i(source_ready[WAKES]),
    .wake_o(source[WAKES])
  );

  queue_bcast_wake u_rnr_wake (
    .clk_i, .rst_i, .bcast_valid_i(rnr_i.valid && !rnr_i.waiting), .bcast_i(rnr_i.qp),
    .wake_valid_o(source_valid[WAKES+1]), .wake_ready_i(source_ready[WAKES+1]),
    .wake_o(source[WAKES+1])
  );

  common_arbiter #(.N(SOURCES), .WIDTH(QP_BITS)) u_wakes (
    .clk_i, .rst_i,
    .in_valid_i(source_valid), .in_ready_o(source_ready), .in_last_i('1), .in_i(source),
    .out_valid_o(choice_valid), .out_ready_i(choice_ready), .out_o(choice_qp), .out_index_o()
  );

  common_skid #(.WIDTH(QP_BITS)) u_wake (
    .clk_i, .rst_i,
    .in_valid_i(choice_valid), .in_ready_o(choice_ready), .in_i(choice_qp),
    .out_valid_o(wake_valid), .out_ready_i(wake_ready), .out_o(wake_qp)
  );

  // ------------------------------------------------------------------------------ tables
  logic waiting_ready, wake_bits_ready, pop_bits_ready, queue_ready;

  logic push;
  logic is_wake;                       // the push is a wake
  roci_pkg::qp_t push_qp;
  logic [QP_BITS-1:0] head;
  logic head_valid, head_pop;
  logic pop_valid_q;                   // a QP is popped
  roci_pkg::qp_t pop_qp_q;             // it
  logic pop_free;                      // it is taken, or there is none
  logic head_waits;                    // head of the queue is in an RNR wait
  logic head_woken;                    // a wake is among the reasons why it is queued
  logic [$clog2(QPS+2)-1:0] usage;
  logic producer_we;
  roci_pkg::sq_index_t producer_wdata;

  assign ready_o = waiting_ready && wake_bits_ready && pop_bits_ready && queue_ready;

  common_object_queue #(.N(QPS)) u_queue (
    .clk_i, .rst_i,
    .push_valid_i(push), .push_ready_o(queue_ready), .push_i(push_qp), .push_new_o(),
    .pop_valid_o(head_valid), .pop_ready_i(head_pop), .pop_o(head),
    .usage_o(usage)
  );

  common_ram_sdp #(.WIDTH($bits(roci_pkg::sq_index_t)), .DEPTH(QPS)) u_producer (
    .clk_i,
    .we_i(producer_we), .waddr_i(push_qp), .wdata_i(producer_wdata),
    .re_i(pop_valid_q && pop_ready_i), .raddr_i(pop_qp_q), .rdata_o(producer_o)
  );

  // Written by the timer alone (replica).
  common_ram_cleared #(
    .WIDTH(1), .DEPTH(QPS), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_waiting (
    .clk_i, .rst_i, .ready_o(waiting_ready),
    .we_i(rnr_i.valid && waiting_ready), .waddr_i(rnr_i.qp), .wdata_i(rnr_i.waiting),
    .re_i(1'b1), .raddr_i(head), .rdata_o(head_waits)
  );

  // "Woken" is the XOR of two bits, one toggled by wakes alone and one made equal to it by the pop,
  // so that each RAM has one writer (as in common_object_queue). Both are read at the pushed QP and
  // at the head: two copies of each.
  logic wake_bit_push, pop_bit_push, wake_bit_head, pop_bit_head;
  logic wake_bit_we, pop_bit_we, wake_bit_wdata;
  logic same;                          // the pushed QP is popped in this cycle

  assign same = head_pop && head == push_qp;
  assign head_woken = wake_bit_head != pop_bit_head;
  assign wake_bit_wdata = !(same ? wake_bit_head : pop_bit_push);
  assign wake_bit_we = push && is_wake && (same || wake_bit_push == pop_bit_push);
  assign pop_bit_we = head_pop;

  common_ram_cleared #(
    .WIDTH(1), .DEPTH(QPS), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_wake_bits_push (
    .clk_i, .rst_i, .ready_o(wake_bits_ready),
    .we_i(wake_bit_we), .waddr_i(push_qp), .wdata_i(wake_bit_wdata),
    .re_i(1'b1), .raddr_i(push_qp), .rdata_o(wake_bit_push)
  );

  common_ram_cleared #(
    .WIDTH(1), .DEPTH(QPS), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_wake_bits_head (
    .clk_i, .rst_i, .ready_o(),
    .we_i(wake_bit_we), .waddr_i(push_qp), .wdata_i(wake_bit_wdata),
    .re_i(1'b1), .raddr_i(head), .rdata_o(wake_bit_head)
  );

  common_ram_cleared #(
    .WIDTH(1), .DEPTH(QPS), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_pop_bits_push (
    .clk_i, .rst_i, .ready_o(pop_bits_ready),
    .we_i(pop_bit_we), .waddr_i(head), .wdata_i(wake_bit_head),
    .re_i(1'b1), .raddr_i(push_qp), .rdata_o(pop_bit_push)
  );

  common_ram_cleared #(
    .WIDTH(1), .DEPTH(QPS), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_pop_bits_head (
    .clk_i, .rst_i, .ready_o(),
    .we_i(pop_bit_we), .waddr_i(head), .wdata_i(wake_bit_head),
    .re_i(1'b1), .raddr_i(head), .rdata_o(pop_bit_head)
  );

  // ------------------------------------------------------------------------------ push
  // Doorbells cannot wait; requeues come next, so that queue_wqe_fetch never waits for wakes.
  logic is_doorbell;

  assign is_doorbell = doorbell_valid_i && doorbell_i.kind == roci_pkg::DOORBELL_SQ;

  always_comb begin
    push = 1'b0;
    push_qp = wake_qp;
    producer_we = 1'b0;
    producer_wdata = requeue_i.index;
    if (ready_o) begin
      if (is_doorbell) begin
        push = 1'b1;
        push_qp = roci_pkg::qp_t'(doorbell_i.object_index);
        producer_we = 1'b1;
        producer_wdata = doorbell_i.index[15:0];
      end else if (requeue_valid_i) begin
        push = requeue_i.kind == roci_pkg::SQ_AGAIN;
        push_qp = requeue_i.qp;
        producer_we = requeue_i.kind == roci_pkg::SQ_RESTART;
      end else begin
        push = wake_valid;
      end
    end
  end

  assign is_wake = !is_doorbell && !requeue_valid_i;
  assign requeue_ready_o = ready_o && !is_doorbell;
  assign wake_ready = ready_o && is_wake;

  // ------------------------------------------------------------------------------ pop
  logic pop_woken_q;
  assign pop_free = !pop_valid_q || pop_ready_i;
  assign head_pop = head_valid && (head_waits || pop_free);
  assign pop_valid_o = pop_valid_q;
  assign pop_o = '{qp: pop_qp_q, woken: pop_woken_q};

  always_ff @(posedge clk_i) begin
    if (pop_free) begin
      pop_valid_q <= head_valid && !head_waits;
      pop_qp_q <= head;
      pop_woken_q <= head_woken;
    end
    if (rst_i) pop_valid_q <= 1'b0;
  end

  // ------------------------------------------------------------------------------ others
  // QPs in the queue differ from each other, so two of them are at least one other.
  always_ff @(posedge clk_i) begin
    others_queued_o <= !rst_i && (usage > 1 || (head_valid && head != current_qp_i)
                                  || (pop_valid_q && pop_qp_q != current_qp_i));
  end

  wire unused = &{1'b0, doorbell_i.solicited_only, doorbell_i.keep_consumed,
                  doorbell_i.object_index, doorbell_i.index[31:16], state_i.state};

endmodule

`default_nettype wire
