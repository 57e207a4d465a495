// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_tx_drain: tells when all that was decided of a QP before its ERR or SQE has left.
//
// A decided packet always leaves and may read its payload long after its QP failed. What waits
// undecided is discarded by packet_tx_decide from then on, so nothing of the QP reads its buffers
// any more once as many packets have left as were decided at that moment: then `drained` tells
// requester_ack, which flushes (rule 4 for what is read; for what is written it is the token
// ACK_EVENT_DRAINED). One number per QP that failed, in the order of the broadcasts: they rise, so
// that only the first is compared. ERR behind SQE adds nothing: nothing was decided in between.
//
// The fence counts a QP in here as work of the colour of its failure: it has left before the QP can
// come to INIT or from SQE to RTS, and nothing of an old life is told of a new one. So it is never
// here twice.
//
// Does not: look at packets. Decided packets leave in order, each with exactly one `done_valid_i`.
// Neighbours: context_qp_state, packet_tx_decide, ethernet_route → here → requester_ack.
`default_nettype none

module packet_tx_drain (
  input  wire                      clk_i,
  input  wire                      rst_i,           // synchronous, active high

  input  roci_pkg::state_bcast_t   state_i,         // ERR, SQE: a QP enters
  input  wire                      decided_i,       // a packet is decided
  input  wire                      done_valid_i,    // a decided packet has left

  // always taken soon: a QP in ERR or SQE of which no packet is to come
  output logic                     drained_valid_o,
  input  wire                      drained_ready_i,
  output roci_pkg::qp_t            drained_o,

  input  roci_pkg::colour_t        colour_i,
  output roci_pkg::fence_busy_t    fence_busy_o
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  // Numbers of packets wrap. What has left is ahead of a number by fewer than half of them: all QPs
  // together are taken in that time.
  localparam int unsigned NUMBER_BITS = roci_config_pkg::QP_BITS + 4;

  typedef logic [NUMBER_BITS-1:0] number_t;

  typedef struct packed {
    roci_pkg::colour_t colour;
    roci_pkg::qp_t qp;
    number_t number;                   // packets decided when it came
  } entry_t;

  number_t decided_q, left_q;          // packets so far
  logic fails, push_q;
  entry_t push, head;
  roci_pkg::qp_t push_qp_q;
  roci_pkg::colour_t push_colour_q;    // of the QP that came last
  logic ready, head_valid, here;
  logic [$clog2(QPS+1)-1:0] usage;
  number_t ahead;                      // how far `left_q` is behind the number of the head

  assign fails = state_i.valid
                 && (state_i.state == roci_pkg::QPS_SQE
                     || (state_i.state == roci_pkg::QPS_ERR && state_i.from != roci_pkg::QPS_SQE));

  // a packet that is decided in the cycle of the broadcast is one of before
  assign push = '{colour: push_colour_q, qp: push_qp_q, number: decided_q};

  common_fifo #(.WIDTH($bits(entry_t)), .DEPTH(QPS)) u_entries (
    .clk_i, .rst_i,
    .in_valid_i(push_q), .in_ready_o(ready), .in_i(push),
    .out_valid_o(head_valid), .out_ready_i(drained_valid_o && drained_ready_i), .out_o(head),
    .usage_o(usage)
  );

  assign ahead = left_q - head.number;
  assign drained_valid_o = head_valid && !ahead[NUMBER_BITS-1];
  assign drained_o = head.qp;

  // The colours in here are in order, old before new: those of the first and the last are all.
  assign here = push_q || usage != '0;
  always_comb begin
    fence_busy_o = '0;
    for (int unsigned c = 0; c < 2; c++) begin
      fence_busy_o[c] = here && (push_colour_q == 1'(c) || !head_valid || head.colour == 1'(c));
    end
  end

  always_ff @(posedge clk_i) begin
    push_q <= fails;
    if (fails) begin
      push_qp_q <= state_i.qp;
      push_colour_q <= colour_i;
    end
    decided_q <= decided_q + number_t'(decided_i);
    left_q <= left_q + number_t'(done_valid_i);
    if (rst_i) begin
      push_q <= 1'b0;
      decided_q <= '0;
      left_q <= '0;
    end
  end

  // ------------------------------------------------------------------------ assertions
  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (push_q) assert (ready);                          // at most one place per QP
      // never more packets leave than were decided; the comparison is never near its wrap
      assert (number_t'(decided_q - left_q) < number_t'(1 << (NUMBER_BITS - 2)));
      if (head_valid) begin
        assert (number_t'(decided_q - head.number) < number_t'(1 << (NUMBER_BITS - 1)));
      end
    end
  end

endmodule

`default_nettype wire
