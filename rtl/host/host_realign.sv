// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_realign: moves runs of bytes from one alignment to another. The data path of host_gather
// and host_scatter: one rotator, one partly filled word, one output register.
//
// Each input is a run of 1..DATA_BYTES bytes of one word, starting at lane `from`; its bytes go to
// lane `to` and the lanes above, beyond the top lane into lane 0 and up of the next word. A run
// with `flush` ends a group: what is left goes out as the group's last word. The next run starts a
// group at any lane; within a group each run starts where the one before ended.
// Lanes that no run of the group filled are zero.
//
// One run and one word per cycle. A flush whose bytes do not fit into one word takes a second
// cycle, in which a run is accepted only if it does not complete a word itself. Latency 2 cycles.
`default_nettype none

module host_realign #(
  parameter int unsigned USER_BITS = 1          // travel from the flushing run to the last word
) (
  input  wire                              clk_i,
  input  wire                              rst_i,

  // runs
  input  wire                              in_valid_i,
  output logic                             in_ready_o,
  input  wire  [roci_pkg::DATA_BITS-1:0]   in_data_i,
  input  wire  [roci_pkg::LANE_BITS-1:0]   in_from_i,      // lane of the first byte in in_data_i
  input  wire  [roci_pkg::LANE_BITS-1:0]   in_to_i,        // lane where it goes
  input  wire  [roci_pkg::LANE_BITS:0]     in_count_i,     // bytes, 1..DATA_BYTES
  input  wire                              in_flush_i,     // last run of its group
  input  wire  [USER_BITS-1:0]             in_user_i,

  // words
  output logic                             out_valid_o,
  input  wire                              out_ready_i,
  output logic [roci_pkg::DATA_BITS-1:0]   out_data_o,
  output logic [roci_pkg::DATA_BYTES-1:0]  out_strobe_o,   // lanes that runs filled: contiguous
  output logic [roci_pkg::LANE_BITS:0]     out_stop_o,     // lane after the last filled one
  output logic                             out_last_o,     // last word of the group
  output logic [USER_BITS-1:0]             out_user_o      // of the flushing run, with out_last_o
);

  localparam int unsigned DATA_BYTES = roci_pkg::DATA_BYTES;
  localparam int unsigned LANE_BITS = roci_pkg::LANE_BITS;
  localparam int unsigned DATA_BITS = roci_pkg::DATA_BITS;

  typedef logic [LANE_BITS-1:0] lane_t;
  typedef logic [LANE_BITS:0] count_t;

  // What travels with a run through the rotator.
  typedef struct packed {
    logic flush;
    lane_t to;
    logic [LANE_BITS+1:0] stop;          // to + count
    logic [USER_BITS-1:0] user;
  } run_t;

  run_t in_run, run;
  logic [$bits(run_t)-1:0] run_bits;
  logic run_valid, run_ready;
  logic [DATA_BITS-1:0] rotated;

  assign in_run = '{flush: in_flush_i, to: in_to_i, user: in_user_i,
                    stop: (LANE_BITS+2)'(in_to_i) + (LANE_BITS+2)'(in_count_i)};

  common_rotate #(
    .LANES(DATA_BYTES), .LANE_BITS(8), .REGS(1), .UP(1'b1), .USER_BITS($bits(run_t))
  ) u_rotate (
    .clk_i, .rst_i,
    .in_valid_i, .in_ready_o, .in_data_i, .in_amount_i(in_to_i - in_from_i), .in_user_i(in_run),
    .out_valid_o(run_valid), .out_ready_i(run_ready), .out_data_o(rotated), .out_user_o(run_bits)
  );

  assign run = run_t'(run_bits);

  // ------------------------------------------------------------------------------------- merge
  logic [DATA_BITS-1:0] kept_q;          // the word being filled
  logic started_q;                       // the group has a run in kept_q or has emitted words
  lane_t start_q;                        // first lane of the word being filled
  logic rest_q;                          // kept_q is the last word of a group, waiting to leave
  count_t rest_stop_q;
  logic [USER_BITS-1:0] rest_user_q;

  logic out_valid_q, out_last_q;
  logic [DATA_BITS-1:0] out_q;
  logic [DATA_BYTES-1:0] strobe_q;
  count_t stop_q;
  logic [USER_BITS-1:0] out_user_q;

  logic full, overflows, emits, out_free, take;
  lane_t start;
  count_t spill;                         // bytes beyond this word
  logic [DATA_BITS-1:0] merged;
  logic [DATA_BYTES-1:0] below_to, below_stop, below_start, below_rest;
  logic [DATA_BYTES-1:0] lanes, from_kept, from_run;

  always_comb begin
    full = run.stop >= (LANE_BITS+2)'(DATA_BYTES);
    overflows = run.stop > (LANE_BITS+2)'(DATA_BYTES);
    emits = full || run.flush;
    spill = count_t'(run.stop - (LANE_BITS+2)'(DATA_BYTES));
    start = started_q ? start_q : run.to;
    below_to = roci_lane_pkg::below({1'b0, run.to});
    below_stop = full ? '1 : roci_lane_pkg::below(count_t'(run.stop));
    below_start = roci_lane_pkg::below({1'b0, start});
    below_rest = roci_lane_pkg::below(rest_stop_q);
    lanes = below_stop & ~below_start;
    from_kept = rest_q ? below_rest : lanes & below_to;
    from_run = rest_q ? '0 : lanes & ~below_to;
    merged = (kept_q & roci_lane_pkg::bits(from_kept)) | (rotated & roci_lane_pkg::bits(from_run));
  end

  assign out_free = !out_valid_q || out_ready_i;
  // While the rest of a group waits for the output, a run may only start to fill the next word.
  assign run_ready = emits ? out_free && !rest_q : out_free || !rest_q;
  assign take = run_valid && run_ready;

  always_ff @(posedge clk_i) begin
    if (take) begin
      if (emits || rest_q || !started_q) begin
        kept_q <= rotated;
      end else begin
        for (int unsigned i = 0; i < DATA_BYTES; i++) begin   // not by roci_lane_pkg: see there
          if (!below_to[i]) kept_q[8*i +: 8] <= rotated[8*i +: 8];
        end
      end
      start_q <= emits ? '0 : start;
      started_q <= !run.flush;
      rest_stop_q <= spill;
      rest_user_q <= run.user;
    end
    if (out_free) begin
      out_valid_q <= rest_q || (run_valid && emits);
      out_q <= merged;
      strobe_q <= rest_q ? below_rest : lanes;
      stop_q <= rest_q ? rest_stop_q : full ? count_t'(DATA_BYTES) : count_t'(run.stop);
      out_last_q <= rest_q || (run.flush && !overflows);
      out_user_q <= rest_q ? rest_user_q : run.user;
      rest_q <= take && run.flush && overflows;
    end
    if (rst_i) begin
      started_q <= 1'b0;
      rest_q <= 1'b0;
      out_valid_q <= 1'b0;
    end
  end

  assign out_valid_o = out_valid_q;
  assign out_data_o = out_q;
  assign out_strobe_o = strobe_q;
  assign out_stop_o = stop_q;
  assign out_last_o = out_last_q;
  assign out_user_o = out_user_q;

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (in_valid_i) begin
        assert (in_count_i != '0 && 32'(in_from_i) + 32'(in_count_i) <= DATA_BYTES)
        else $error("host_realign: run leaves its word");
      end
      if (rest_q) assert (!started_q);
    end
  end

endmodule

`default_nettype wire
