// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_atomic_execute: executes the atomic in front (wire.md 2.9, 2.10), and tells of it when its
// result is in memory.
//
// Look at the word, compute, ask for the lock of host_dma_write. If bytes of the bus word have left
// since the look, it is repeated under the lock, in which no word leaves; so the value returned is what
// the word holds when the result joins the order of the bus. FETCH_ADD, and CMP_SWAP whose compare
// matches, write 8 bytes. CMP_SWAP that does not match writes nothing, nor does an atomic whose word
// could not be read: a token goes in its place. Either comes back when it and all before it are in
// memory: then the atomic is done, failed if its write was refused by the bus.
//
// Atomics of a QP in RESET are forgotten: its fence waits for them (responder_atomic), nobody for their
// answers. In ERR they are executed: they were accepted before what brought the QP there.
// Operands are big endian on the wire, the word is a number in the host's byte order, little endian.
//
// Neighbours: responder_atomic_queue, responder_atomic_watch, host_dma_write, responder_path (done).
`default_nettype none

module responder_atomic_execute #(
  parameter int unsigned DONE = 16,           // executed, and not yet in memory and told
  // Cycles from one execution to the next, at least: atomics on a hot word leave the writer to others.
  parameter int unsigned PACE = roci_config_pkg::IS_WIDE ? 16 : 8
) (
  input  wire                                 clk_i,
  input  wire                                 rst_i,
  output logic                                ready_o,        // tables are cleared
  input  roci_pkg::state_bcast_t              state_i,

  // the atomic in front: its word has been read
  input  wire                                 head_valid_i,
  input  wire                                 head_failed_i,
  input  responder_pkg::atomic_entered_t      head_i,
  output logic                                look_o,
  input  host_pkg::bus_word_t                 place_i,        // with look_o
  input  wire [63:0]                          value_i,        // the cycle after
  input  wire                                 head_hit_i,     // bytes of its bus word are captured
  output logic                                head_done_o,
  input  wire                                 start_valid_i,  // a token of the watch waits
  output logic                                start_hold_o,   // none may come to wait

  // the rest of it
  input  wire                                 what_valid_i,
  output logic                                what_ready_o,
  input  responder_pkg::atomic_what_t         what_i,
  output logic                                skipped_o,      // with what_ready_o: it was forgotten

  // ordered writer
  output logic                                lock_o,
  input  wire                                 locked_i,
  output logic                                write_valid_o,
  input  wire                                 write_ready_i,
  output host_pkg::atomic_write_t             write_o,
  input  wire                                 token_valid_i,  // of an executed one, in order
  output logic                                token_ready_o,
  input  wire                                 token_error_i,

  output logic                                done_valid_o,
  input  wire                                 done_ready_i,
  output roci_pkg::atomic_done_t              done_o,
  output roci_pkg::colour_t                   done_colour_o
);

  typedef enum logic [2:0] {
    RUN_IDLE = 3'd0,                           // its queue pair is looked up
    RUN_LOOK = 3'd1,                           // a look, or it is forgotten
    RUN_VALUE = 3'd2,                          // the word comes out of the memories
    RUN_COMPUTE = 3'd3,
    RUN_ASK = 3'd4,                            // lock, then write
    RUN_SETTLE = 3'd5                          // the own result is captured
  } run_e;

  typedef struct packed {
    roci_pkg::colour_t colour;
    roci_pkg::atomic_done_t done;
  } executed_t;

  run_e run_q;
  logic stale_q;                               // bytes left since the look
  host_pkg::bus_word_t place_q;
  logic [63:0] value_q, result_q;
  logic writes_q;
  logic [$clog2(PACE)-1:0] pace_q;             // cycles until the next one may begin

  logic dead, begins, skips, again, room, done_take, executed_valid;
  logic [63:0] change, compare;                // Swap or Add; as numbers
  executed_t executed_in, executed;
  logic [$bits(executed_t)-1:0] executed_bits;

  // ----------------------------------------------------------------------------- queue pairs in RESET
  common_ram_cleared #(
    .WIDTH(1), .DEPTH(2 ** roci_config_pkg::QP_BITS), .LATENCY(1), .BYPASS(1'b1),
    .STYLE("distributed")
  ) u_dead (
    .clk_i, .rst_i, .ready_o,
    .we_i(state_i.valid && ready_o), .waddr_i(state_i.qp),
    .wdata_i(state_i.state == roci_pkg::QPS_RESET),
    .re_i(run_q == RUN_IDLE), .raddr_i(what_i.qp), .rdata_o(dead)
  );

  // ------------------------------------------------------------------------------------- execution
  always_comb begin
    for (int unsigned b = 0; b < 8; b++) begin
      change[8*b +: 8] = what_i.operands[8*(7-b) +: 8];
      compare[8*b +: 8] = what_i.operands[64 + 8*(7-b) +: 8];
    end
  end

  assign begins = run_q == RUN_IDLE && head_valid_i && what_valid_i && room && ready_o && pace_q == '0;
  assign skips = run_q == RUN_LOOK && dead && !start_valid_i;
  assign again = run_q == RUN_ASK && locked_i && stale_q;
  assign look_o = run_q == RUN_LOOK || again;
  assign lock_o = run_q == RUN_ASK && !start_valid_i && !locked_i;
  assign start_hold_o = run_q == RUN_ASK || locked_i;

  assign write_valid_o = run_q == RUN_ASK && locked_i && !stale_q;
  if (roci_config_pkg::IS_WIDE) begin : gen_addr
    assign write_o.addr = {place_q.word, head_i.lane};
  end else begin : gen_addr
    assign write_o.addr = place_q.word;
  end
  assign write_o.is_token = !writes_q;
  assign write_o.fn = place_q.fn;
  assign write_o.data = result_q;
  assign write_o.tag = '{executed: 1'b1, slot: head_i.slot};

  assign head_done_o = (write_valid_o && write_ready_i) || skips;
  assign what_ready_o = head_done_o;
  assign skipped_o = skips;

  always_ff @(posedge clk_i) begin
    unique case (run_q)
      RUN_IDLE: if (begins) run_q <= RUN_LOOK;
      RUN_LOOK: if (!dead || skips) run_q <= dead ? RUN_IDLE : RUN_VALUE;
      RUN_VALUE: run_q <= RUN_COMPUTE;
      RUN_COMPUTE: run_q <= RUN_ASK;
      RUN_ASK: begin
        if (again) run_q <= RUN_VALUE;
        else if (head_done_o) run_q <= RUN_SETTLE;
      end
      default: run_q <= RUN_IDLE;
    endcase
    // A hit in the very cycle of the look collides in the memories.
    stale_q <= (stale_q && !look_o) || head_hit_i;
    if (look_o) place_q <= place_i;
    if (run_q == RUN_VALUE) value_q <= value_i;
    if (run_q == RUN_COMPUTE) begin
      result_q <= (what_i.is_swap ? '0 : value_q) + change;
      writes_q <= !head_failed_i && (!what_i.is_swap || value_q == compare);
    end
    if (write_valid_o) pace_q <= '1;
    else if (pace_q != '0) pace_q <= pace_q - 1'b1;
    if (rst_i) begin
      run_q <= RUN_IDLE;
      pace_q <= '0;
    end
  end

  // ------------------------------------------------------------------------------ until it is in memory
  assign executed_in = '{colour: what_i.colour,
                         done: '{qp: what_i.qp, slot: what_i.slot, ordinal: what_i.ordinal,
                                 psn: what_i.psn, failed: head_failed_i, value: value_q}};
  common_fifo #(.WIDTH($bits(executed_t)), .DEPTH(DONE), .STYLE("distributed")) u_executed (
    .clk_i, .rst_i,
    .in_valid_i(head_done_o && !skips), .in_ready_o(room), .in_i(executed_in),
    .out_valid_o(executed_valid), .out_ready_i(done_take), .out_o(executed_bits), .usage_o()
  );
  assign executed = executed_t'(executed_bits);
  assign done_valid_o = token_valid_i;
  assign token_ready_o = done_ready_i;
  assign done_take = token_valid_i && done_ready_i;
  assign done_colour_o = executed.colour;
  always_comb begin
    done_o = executed.done;
    done_o.failed = executed.done.failed || token_error_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (token_valid_i) begin
        assert (executed_valid) else $error("responder_atomic_execute: a token of nothing");
      end
      if (run_q == RUN_ASK && locked_i) begin
        assert (!head_hit_i) else $error("responder_atomic_execute: a word left under the lock");
      end
    end
  end

endmodule

`default_nettype wire
