// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_counters: the 64-bit event counters of enum `counter` (hwif/csr.toml).
//
// Every input may count in every cycle. Beside each input is only a small free-running counter; a
// sweep visits one of them per cycle and adds what it moved since the last visit to the 64-bit value
// in a RAM. A pulse counter is a linear-feedback register (8 flip-flops, one LUT, period 255): its
// place in the sequence is looked up once, for all, in the sweep. Amounts (bytes) are added up in
// 22 bits. Counters that nobody pulses cost nothing (their inputs are constant zero).
//
// A value that is read is at most two sweeps old. Counters start at zero with each reset.
// Does not: stop at the top (they wrap at 2^64), clear on read.
// Neighbours: pulses of all blocks → here ← host_csr (counter window, column COUNTER).
`default_nettype none

module host_counters #(
  parameter int unsigned COUNTERS = 128,            // numbers 0..COUNTERS-1, at most 128
  parameter int unsigned AMOUNTS = 6,               // inputs that count more than one at a time
  parameter int unsigned AMOUNT_INDEX [AMOUNTS] = '{  // their numbers; pulse_i of these is unused
    32'(roci_hwif_pkg::COUNTER_RX_BYTES), 32'(roci_hwif_pkg::COUNTER_RX_ROCE_PAYLOAD_BYTES),
    32'(roci_hwif_pkg::COUNTER_TX_BYTES), 32'(roci_hwif_pkg::COUNTER_TX_ROCE_PAYLOAD_BYTES),
    32'(roci_hwif_pkg::COUNTER_DMA_READ_BYTES), 32'(roci_hwif_pkg::COUNTER_DMA_WRITE_BYTES)}
) (
  input  wire                         clk_i,
  input  wire                         rst_i,

  input  wire [COUNTERS-1:0]          pulse_i,      // bit n: counter n goes up by one
  input  wire [AMOUNTS-1:0][13:0]     amount_i,     // goes up by this much

  // read: held until done; one at a time
  input  wire                         read_valid_i,
  input  wire [$clog2(COUNTERS)-1:0]  read_index_i,
  output logic                        read_done_o,  // for one cycle, with the value
  output logic [63:0]                 read_value_o
);

  localparam int unsigned INDEX_BITS = $clog2(COUNTERS);
  localparam int unsigned LFSR_BITS = 8;
  localparam int unsigned PERIOD = 2 ** LFSR_BITS - 1;
  localparam int unsigned PLACE_BITS = 14 + LFSR_BITS;
  // A read takes a cycle from the sweep, at most one of four: COUNTERS * 4 / 3 < PERIOD.
  localparam int unsigned READ_GAP = 3;

  if (COUNTERS > 128) begin : gen_counters_check
    $error("%m: too many counters for the period of the small ones");
  end

  typedef logic [INDEX_BITS-1:0] index_t;
  typedef logic [LFSR_BITS-1:0] lfsr_t;
  typedef logic [PLACE_BITS-1:0] place_t;

  // x^8 + x^6 + x^5 + x^4 + 1, from 1 on.
  function automatic lfsr_t next_state(input lfsr_t state);
    return {state[6:0], state[7] ^ state[5] ^ state[4] ^ state[3]};
  endfunction

  function automatic logic [PERIOD:0][LFSR_BITS-1:0] make_places();
    lfsr_t state;
    make_places = '0;
    state = lfsr_t'(1);
    for (int unsigned n = 0; n < PERIOD; n++) begin
      make_places[state] = lfsr_t'(n);
      state = next_state(state);
    end
  endfunction

  localparam logic [PERIOD:0][LFSR_BITS-1:0] PLACES = make_places();

  // ----------------------------------------------------------------------------- small counters
  // Asking first whether there is anything to count saves simulation time, but would cost a LUT
  // for each counter.
`ifdef SYNTHESIS
  localparam bit ALWAYS = 1'b1;
`else
  localparam bit ALWAYS = 1'b0;
`endif

  lfsr_t [COUNTERS-1:0] small_q;
  place_t [AMOUNTS-1:0] sum_q;

  always_ff @(posedge clk_i) begin
    if (ALWAYS || rst_i || pulse_i != '0) begin
      for (int unsigned n = 0; n < COUNTERS; n++) begin
        if (rst_i) small_q[n] <= lfsr_t'(1);
        else if (pulse_i[n]) small_q[n] <= next_state(small_q[n]);
      end
    end
    for (int unsigned a = 0; a < AMOUNTS; a++) begin
      if (rst_i) sum_q[a] <= '0;
      else sum_q[a] <= sum_q[a] + place_t'(amount_i[a]);
    end
  end

  // -------------------------------------------------------------------------------------- sweep
  typedef struct packed {
    place_t place;                     // of the small counter at the last visit
    logic [63:0] value;
  } row_t;

  logic [1:0] gap_q;                   // sweep steps since the last read, stops at READ_GAP
  logic read_take, read_taken_q, read_taken2_q;
  index_t index0_q;                    // next to visit
  logic first0_q;                      // first sweep: the RAM holds nothing yet

  // The multiplexer of the small counters takes two steps: eight of 16 groups, one of them.
  localparam int unsigned GROUPS = (COUNTERS + 7) / 8;
  lfsr_t [GROUPS-1:0][7:0] small_groups;
  lfsr_t [GROUPS-1:0] small1_q;        // counter index1_q[2:0] of each group

  logic valid1_q, first1_q;
  index_t index1_q, read_index_q;
  logic is_amount1_q;
  place_t sum1_q;

  logic valid2_q, first2_q;
  index_t index2_q;
  lfsr_t small2_q;
  logic is_amount2_q;
  place_t sum2_q;
  logic [$bits(row_t)-1:0] ram_bits;
  row_t row2;
  place_t place2;

  logic valid3_q;
  index_t index3_q;
  logic is_amount3_q;
  place_t place3_q;
  row_t row3_q;
  place_t moved3;

  logic valid4_q;
  index_t index4_q;
  place_t place4_q, moved4_q;
  logic [63:0] value4_q;
  row_t row4;

  logic is_amount0;
  place_t sum0;

  assign read_take = read_valid_i && !read_taken_q && !read_taken2_q && !read_done_o
                     && gap_q == 2'(READ_GAP) && index3_q != read_index_i;

  always_comb begin
    is_amount0 = 1'b0;
    sum0 = '0;
    for (int unsigned a = 0; a < AMOUNTS; a++) begin
      if (index0_q == index_t'(AMOUNT_INDEX[a])) begin
        is_amount0 = 1'b1;
        sum0 = sum0 | sum_q[a];
      end
    end
  end

  assign small_groups = (8*GROUPS*LFSR_BITS)'(small_q);

  // Before the first visit RAM and small counter count as zero.
  assign row2 = first2_q ? '0 : row_t'(ram_bits);
  assign place2 = is_amount2_q ? sum2_q : place_t'(PLACES[small2_q]);

  always_comb begin
    moved3 = place3_q - row3_q.place;
    if (!is_amount3_q && place3_q < row3_q.place) moved3 = moved3 + place_t'(PERIOD);
  end

  assign row4 = '{place: place4_q, value: value4_q + 64'(moved4_q)};

  always_ff @(posedge clk_i) begin
    for (int unsigned g = 0; g < GROUPS; g++) small1_q[g] <= small_groups[g][index0_q[2:0]];
    read_index_q <= read_index_i;
    is_amount1_q <= is_amount0;
    sum1_q <= sum0;
    index1_q <= index0_q;
    first1_q <= first0_q;

    small2_q <= small1_q[index1_q[INDEX_BITS-1:3]];
    is_amount2_q <= is_amount1_q;
    sum2_q <= sum1_q;
    index2_q <= index1_q;
    first2_q <= first1_q;

    index3_q <= index2_q;
    is_amount3_q <= is_amount2_q;
    place3_q <= place2;
    row3_q <= row2;

    index4_q <= index3_q;
    place4_q <= place3_q;
    moved4_q <= moved3;
    value4_q <= row3_q.value;

    if (rst_i) begin
      index0_q <= '0;
      first0_q <= 1'b1;
      gap_q <= '0;
      read_taken_q <= 1'b0;
      read_taken2_q <= 1'b0;
      valid1_q <= 1'b0;
      valid2_q <= 1'b0;
      valid3_q <= 1'b0;
      valid4_q <= 1'b0;
      read_done_o <= 1'b0;
    end else begin
      valid1_q <= !read_take;
      valid2_q <= valid1_q;
      valid3_q <= valid2_q;
      valid4_q <= valid3_q;
      read_taken_q <= read_take;
      read_taken2_q <= read_taken_q;
      read_done_o <= read_taken2_q;
      if (read_take) begin
        gap_q <= '0;
      end else begin
        if (gap_q != 2'(READ_GAP)) gap_q <= gap_q + 1'b1;
        index0_q <= index0_q == index_t'(COUNTERS - 1) ? '0 : index0_q + 1'b1;
        if (index0_q == index_t'(COUNTERS - 1)) first0_q <= 1'b0;
      end
    end
    // Nothing has been counted before the first sweep is over.
    read_value_o <= first2_q ? '0 : ram_bits[63:0];
  end

  // No collisions: a row is visited again long after its write, and a read waits for the write that
  // comes in its cycle.
  common_ram_sdp #(
    .WIDTH($bits(row_t)), .DEPTH(COUNTERS), .LATENCY(1), .BYPASS(1'b0), .STYLE("block")
  ) u_values (
    .clk_i,
    .we_i(valid4_q), .waddr_i(index4_q), .wdata_i(row4),
    .re_i(1'b1), .raddr_i(read_taken_q ? read_index_q : index1_q), .rdata_o(ram_bits)
  );

endmodule

`default_nettype wire
