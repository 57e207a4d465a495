// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_object_queue: FIFO of object numbers in which each object is at most once.
//
// The base of all schedulers (rule 6): O(1), fair, the same cost for 1 QP and for 16 K.
//
// push: "this object has work". If it is already in the queue, nothing happens; else it goes to the
// end. pop: the oldest object leaves and may be pushed again from then on, in the same cycle even.
// No wake-up is lost if users keep this order:
//   pusher:   writes the object's state, then pushes;
//   consumer: pops, then reads the object's state.
// A push that finds the object queued then belongs to state that the pop's reader will see. A push
// in the cycle of the pop queues it again (at worst one visit for nothing).
//
// The "queued" bit of an object is the XOR of two RAM bits, one toggled by push alone and one set
// by pop alone, so each RAM has one writer. It is never full: one place per object. After reset
// both RAMs are cleared, N cycles with push_ready_o low; afterwards push_ready_o stays high.
//
// Does not: remove an object from the middle. A dead object is popped and discarded by the
// consumer. Combinational: pop_ready_i and the push to push_new_o, not to any other output.
// Neighbours: common_fifo (the order). Users: all schedulers; several pushers share the port
// through common_arbiter.
`default_nettype none

module common_object_queue #(
  parameter int unsigned N = 64,             // objects, >= 2
  parameter string STYLE = "auto"            // memory of the FIFO, as in common_fifo
) (
  input  wire                   clk_i,
  input  wire                   rst_i,           // synchronous, active high: empties the queue

  input  wire                   push_valid_i,
  output logic                  push_ready_o,    // low only while clearing after reset
  input  wire [$clog2(N)-1:0]   push_i,          // 0..N-1
  output logic                  push_new_o,      // in the cycle of the push: it was not queued

  output logic                  pop_valid_o,
  input  wire                   pop_ready_i,
  output logic [$clog2(N)-1:0]  pop_o,

  output logic [$clog2(N+2)-1:0] usage_o         // objects in the queue, 0..N
);

  localparam int unsigned OBJECT_BITS = $clog2(N);

  // What the FIFO holds: the object, and the value its push bit got, which its pop bit will get.
  typedef struct packed {
    logic push_bit;
    logic [OBJECT_BITS-1:0] object;
  } entry_t;

  logic ready_q;                       // bits are cleared
  logic [OBJECT_BITS-1:0] sweep_q;     // next object to clear

  entry_t tail, head;
  logic head_valid;
  logic push_bit, pop_bit;             // of object push_i, before this cycle
  logic pop;                           // head leaves
  logic same;                          // head leaves and is pushed in one cycle
  logic append;                        // push_i goes to the end of the queue
  logic fifo_ready;

  assign push_ready_o = ready_q;
  assign pop_valid_o = head_valid;
  assign pop_o = head.object;
  assign push_new_o = append;

  always_comb begin
    pop = head_valid && pop_ready_i;
    same = pop && head.object == push_i;
    append = push_valid_i && ready_q && (push_bit == pop_bit || same);
    tail.push_bit = !push_bit;
    tail.object = push_i;
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      ready_q <= 1'b0;
      sweep_q <= '0;
    end else if (!ready_q) begin
      ready_q <= sweep_q == OBJECT_BITS'(N - 1);
      sweep_q <= sweep_q + 1'b1;
    end
  end

  common_ram_sdp #(
    .WIDTH(1), .DEPTH(N), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_push_bits (
    .clk_i,
    .we_i(append || !ready_q),
    .waddr_i(ready_q ? push_i : sweep_q),
    .wdata_i(ready_q && tail.push_bit),
    .re_i(1'b1), .raddr_i(push_i), .rdata_o(push_bit)
  );

  common_ram_sdp #(
    .WIDTH(1), .DEPTH(N), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_pop_bits (
    .clk_i,
    .we_i(pop || !ready_q),
    .waddr_i(ready_q ? head.object : sweep_q),
    .wdata_i(ready_q && head.push_bit),
    .re_i(1'b1), .raddr_i(push_i), .rdata_o(pop_bit)
  );

  // With its output register the FIFO has room for the object that is pushed while all N are inside
  // and one of them leaves.
  common_fifo #(
    .WIDTH($bits(entry_t)), .DEPTH(N), .STYLE(STYLE), .OUTPUT_REG(1'b1)
  ) u_order (
    .clk_i, .rst_i,
    .in_valid_i(append), .in_ready_o(fifo_ready), .in_i(tail),
    .out_valid_o(head_valid), .out_ready_i(pop_ready_i), .out_o(head),
    .usage_o(usage_o)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (append) assert (fifo_ready);                   // never full
      if (same) assert (push_bit != pop_bit);            // what leaves was queued
      if (push_valid_i) assert (32'(push_i) < N);
      assert (32'(usage_o) <= N);
      if (!ready_q) assert (!head_valid);
    end
  end

endmodule

`default_nettype wire
