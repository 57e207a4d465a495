// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_crc32: CRC-32 of packets, a whole beat per cycle, for making and for checking the ICRC.
//
// CRC-32 of Ethernet and InfiniBand (polynomial 0x04C11DB7, reflected 0xEDB88320, final complement;
// wire.md 1.6, IBTA 7.8.1). Packets are a whole number of 4-byte words, as everything from the GRH
// on is. INIT is the register's value at the start: 0xDEBB20E3, the default, is what the eight 0xff
// bytes of the absent LRH leave behind (wire.md 1.6); 0xFFFFFFFF gives the FCS.
//
// Beats may come back to back, also of different packets; a result follows 3 + SPLIT cycles after
// the last beat (counted in cycles with enable_i). Bytes behind the end of a packet are ignored.
//
// How it avoids one matrix per byte count: the register always runs over whole beats, the tail
// taken as zeros. Zeros advance a CRC register by a fixed invertible matrix, so
//   check     compares with the residue advanced by as many zero words (a table of constants),
//   generate  applies the inverse of that advance: one matrix per number of missing words, folded
//             into a single stage (each term has 2 register bits and the 4 bits of that number).
// Stages: sum of each word of the beat (2 levels of LUT6); with SPLIT, sums of four words (2); sum
// of all and feedback of the register (3); undo (3) or compare (3). These are the levels that the
// code spells out; Yosys, which maps for area, needs up to 4, and 5 for a few bits (synth.py, 64
// bytes: 2,974 LUT, 805 FF).
//
// Does not: mask the variant fields of the headers, find or insert the ICRC, buffer.
// Neighbours: packet_icrc_check (all words including the ICRC, looks at result_good_o),
// packet_icrc_insert (all words before it, sends result_crc_o, bits 7:0 first).
`default_nettype none

module common_crc32 #(
  parameter int unsigned DATA_BYTES = 64,      // bytes of a beat: power of two, >= 8
  parameter logic [31:0] INIT = 32'hDEBB_20E3, // register at the start of a packet
  parameter bit SPLIT = DATA_BYTES > 16,       // one more stage, for wide beats at high clocks
  // Sums by table instead of by XOR: the same function, ten times as fast in a simulator, for
  // simulators alone. The unit test compares both with the same reference.
`ifdef SYNTHESIS
  parameter bit TABLES = 1'b0
`else
  parameter bit TABLES = 1'b1
`endif
) (
  input  wire                              clk_i,
  input  wire                              rst_i,         // synchronous, active high
  input  wire                              enable_i,      // 0: everything keeps its value

  input  wire                              in_valid_i,
  input  wire                              in_last_i,     // last beat of the packet
  input  wire [$clog2(DATA_BYTES/4):0]     in_words_i,    // last beat: its words, 1..DATA_BYTES/4
  input  wire [8*DATA_BYTES-1:0]           in_data_i,     // first byte in bits 7:0

  output logic                             result_valid_o,
  output logic [31:0]                      result_crc_o,  // CRC of the packet, complemented
  output logic                             result_good_o  // packet ends with its own CRC
);

  localparam int unsigned WORDS = DATA_BYTES / 4;
  localparam int unsigned DATA_BITS = 8 * DATA_BYTES;
  localparam int unsigned PAD_BITS = $clog2(WORDS);
  localparam logic [31:0] POLYNOMIAL = 32'hEDB8_8320;
  // Register after a packet that ends with its own CRC, before the complement.
  localparam logic [31:0] RESIDUE = 32'hDEBB_20E3;

  if (DATA_BYTES < 8 || DATA_BYTES != (1 << $clog2(DATA_BYTES))) $error("%m: DATA_BYTES");

  // ---- constants: one 32-bit column per input bit (rows would be slow to elaborate) ----

  // One zero bit forward.
  function automatic logic [31:0] forward(input logic [31:0] state);
    return (state >> 1) ^ (state[0] ? POLYNOMIAL : 32'h0);
  endfunction

  // One zero bit back: bit 31 tells whether the polynomial was added.
  function automatic logic [31:0] backward(input logic [31:0] state);
    return state[31] ? ((state ^ POLYNOMIAL) << 1) | 32'h1 : state << 1;
  endfunction

  // What a beat's bit adds to the register at the end of the beat. The register's own bits enter
  // like the beat's first 32 bits.
  function automatic logic [DATA_BITS-1:0][31:0] beat_columns();
    logic [31:0] column;
    column = POLYNOMIAL;
    for (int k = DATA_BITS - 1; k >= 0; k--) begin
      beat_columns[k] = column;
      column = forward(column);
    end
  endfunction

  // What a register bit becomes when `pad` zero words are undone: [32 * pad + bit].
  function automatic logic [32*WORDS-1:0][31:0] undo_columns();
    logic [31:0] column;
    for (int b = 0; b < 32; b++) begin
      column = 32'h1 << b;
      for (int pad = 0; pad < WORDS; pad++) begin
        undo_columns[32*pad + b] = column;
        for (int step = 0; step < 32; step++) column = backward(column);
      end
    end
  endfunction

  // The residue followed by `pad` zero words.
  function automatic logic [WORDS-1:0][31:0] padded_residues();
    logic [31:0] state;
    state = RESIDUE;
    for (int pad = 0; pad < WORDS; pad++) begin
      padded_residues[pad] = state;
      for (int step = 0; step < 32; step++) state = forward(state);
    end
  endfunction

  // INIT after the first beat.
  function automatic logic [31:0] init_sum();
    logic [DATA_BITS-1:0][31:0] columns;
    columns = beat_columns();
    init_sum = '0;
    for (int b = 0; b < 32; b++) if (INIT[b]) init_sum = init_sum ^ columns[b];
  endfunction

  localparam logic [DATA_BITS-1:0][31:0] COLUMNS = beat_columns();
  localparam logic [32*WORDS-1:0][31:0] UNDO = undo_columns();
  localparam logic [WORDS-1:0][31:0] RESIDUES = padded_residues();
  localparam logic [31:0] INIT_SUM = init_sum();
  localparam int unsigned BEAT_INDEX_BITS = $clog2(DATA_BITS / 4 * 16);
  localparam int unsigned UNDO_INDEX_BITS = $clog2(WORDS * 8 * 16);

  // ---- logic ----

  // For TABLES, per 4 bits of input: [16 * position + value].
  logic [31:0] beat_table [DATA_BITS/4*16];
  logic [31:0] undo_table [WORDS*8*16];

  if (TABLES) begin : gen_tables
    initial begin
      for (int n = 0; n < DATA_BITS / 4; n++) begin
        for (int v = 0; v < 16; v++) begin
          beat_table[16*n + v] = '0;
          for (int b = 0; b < 4; b++) begin
            if (v[b]) beat_table[16*n + v] = beat_table[16*n + v] ^ COLUMNS[4*n + b];
          end
        end
      end
      for (int n = 0; n < WORDS * 8; n++) begin
        for (int v = 0; v < 16; v++) begin
          undo_table[16*n + v] = '0;
          for (int b = 0; b < 4; b++) begin
            if (v[b]) undo_table[16*n + v] = undo_table[16*n + v] ^ UNDO[4*n + b];
          end
        end
      end
    end
  end else begin : gen_no_tables
    initial begin
      beat_table = '{default: '0};
      undo_table = '{default: '0};
    end
  end

  // What word `w` of the beat adds. Summed in six ranges of 5 or 6 bits, so that the tree has two
  // levels of LUT6 (tools do not balance XORs).
  function automatic logic [31:0] word_sum(input int w, input logic [31:0] word);
    logic [5:0][31:0] range;
    range = '0;
    if (TABLES) begin
      for (int n = 0; n < 8; n++) begin
        range[0] = range[0] ^ beat_table[BEAT_INDEX_BITS'(16 * (8*w + n))
                                         | BEAT_INDEX_BITS'(word[4*n +: 4])];
      end
      return range[0];
    end
    for (int b = 0; b < 32; b++) begin
      range[b * 6 / 32] = range[b * 6 / 32] ^ (COLUMNS[32*w + b] & {32{word[b]}});
    end
    return (range[0] ^ range[1]) ^ (range[2] ^ range[3]) ^ (range[4] ^ range[5]);
  endfunction

  // Register `state` with `pad` zero words taken back. Two register bits and the number per LUT6.
  function automatic logic [31:0] undo(input logic [31:0] state, input logic [PAD_BITS-1:0] pad);
    logic [15:0][31:0] term;
    logic [3:0][31:0] quarter;
    if (TABLES) begin
      quarter[0] = '0;
      for (int n = 0; n < 8; n++) begin
        quarter[0] = quarter[0] ^ undo_table[UNDO_INDEX_BITS'({pad, 3'(n), state[4*n +: 4]})];
      end
      return quarter[0];
    end
    for (int t = 0; t < 16; t++) begin
      term[t] = '0;
      for (int p = 0; p < WORDS; p++) begin
        term[t] = term[t] | (((UNDO[32*p + 2*t] & {32{state[2*t]}})
                              ^ (UNDO[32*p + 2*t + 1] & {32{state[2*t+1]}}))
                             & {32{pad == PAD_BITS'(p)}});
      end
    end
    for (int q = 0; q < 4; q++) begin
      quarter[q] = (term[4*q] ^ term[4*q+1]) ^ (term[4*q+2] ^ term[4*q+3]);
    end
    return (quarter[0] ^ quarter[1]) ^ (quarter[2] ^ quarter[3]);
  endfunction

  // What goes along with the sums of a beat. INIT enters like data of the first beat, so that the
  // register starts at 0: a reset of its flip-flops, not another level of logic.
  typedef struct packed {
    logic first;
    logic last;
    logic [PAD_BITS-1:0] pad;          // words missing in the last beat
  } beat_t;

  // sum of each word
  logic inside_q;                      // the next beat is not the first of its packet
  logic word_valid_q;
  beat_t word_beat_q;
  logic [WORDS-1:0] word_mask_q;       // words that belong to the packet
  logic [WORDS-1:0][31:0] word_sum_q;
  // sums of the words of the packet, what the register takes in
  logic sum_valid;
  logic sum_last;
  logic [PAD_BITS-1:0] sum_pad;
  logic [31:0] sum;
  // register
  logic [31:0] state_q;                // 0 between packets
  logic [31:0] state_d;
  logic padded_valid_q;
  logic [PAD_BITS-1:0] padded_pad_q;
  logic [31:0] padded_q;               // register after a packet's last, padded beat
  // result
  logic result_valid_q, result_good_q;
  logic [31:0] result_crc_q;

  assign result_valid_o = result_valid_q;
  assign result_crc_o = result_crc_q;
  assign result_good_o = result_good_q;

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      word_valid_q <= in_valid_i;
      if (in_valid_i) begin
        inside_q <= !in_last_i;
        word_beat_q.first <= !inside_q;
        word_beat_q.last <= in_last_i;
        word_beat_q.pad <= in_last_i ? PAD_BITS'(WORDS - 32'(in_words_i)) : '0;
        for (int w = 0; w < WORDS; w++) begin
          word_sum_q[w] <= word_sum(w, in_data_i[32*w +: 32]);
        end
        word_mask_q <= in_last_i ? ~({WORDS{1'b1}} << in_words_i) : '1;
      end
    end
    if (rst_i) begin
      word_valid_q <= 1'b0;
      inside_q <= 1'b0;
    end
  end

  if (SPLIT) begin : gen_split

    localparam int unsigned GROUPS = WORDS / 4;
    if (WORDS < 4) $error("%m: SPLIT needs at least 16 bytes");

    logic valid_q;
    logic last_q;
    logic [PAD_BITS-1:0] pad_q;
    logic [GROUPS-1:0][31:0] group_q;

    always_ff @(posedge clk_i) begin
      if (enable_i) begin
        valid_q <= word_valid_q;
        if (word_valid_q) begin
          last_q <= word_beat_q.last;
          pad_q <= word_beat_q.pad;
          for (int g = 0; g < GROUPS; g++) begin
            group_q[g] <= (word_sum_q[4*g+0] & {32{word_mask_q[4*g+0]}})
                          ^ (word_sum_q[4*g+1] & {32{word_mask_q[4*g+1]}})
                          ^ (word_sum_q[4*g+2] & {32{word_mask_q[4*g+2]}})
                          ^ (word_sum_q[4*g+3] & {32{word_mask_q[4*g+3]}})
                          ^ (g == 0 && word_beat_q.first ? INIT_SUM : 32'h0);
          end
        end
      end
      if (rst_i) valid_q <= 1'b0;
    end

    always_comb begin
      sum = '0;
      for (int g = 0; g < GROUPS; g++) sum = sum ^ group_q[g];
    end
    assign sum_valid = valid_q;
    assign sum_last = last_q;
    assign sum_pad = pad_q;

  end else begin : gen_direct

    always_comb begin
      sum = word_beat_q.first ? INIT_SUM : 32'h0;
      for (int w = 0; w < WORDS; w++) sum = sum ^ (word_sum_q[w] & {32{word_mask_q[w]}});
    end
    assign sum_valid = word_valid_q;
    assign sum_last = word_beat_q.last;
    assign sum_pad = word_beat_q.pad;

  end

  assign state_d = word_sum(0, state_q) ^ sum;

  always_ff @(posedge clk_i) begin
    if (rst_i || (enable_i && sum_valid && sum_last)) state_q <= '0;
    else if (enable_i && sum_valid) state_q <= state_d;
  end

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      padded_valid_q <= sum_valid && sum_last;
      if (sum_valid) begin
        padded_q <= state_d;
        padded_pad_q <= sum_pad;
      end

      result_valid_q <= padded_valid_q;
      if (padded_valid_q) begin
        result_crc_q <= ~undo(padded_q, padded_pad_q);
        result_good_q <= padded_q == RESIDUES[padded_pad_q];
      end
    end
    if (rst_i) begin
      padded_valid_q <= 1'b0;
      result_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && enable_i && in_valid_i && in_last_i) begin
      assert (in_words_i != '0 && 32'(in_words_i) <= WORDS);
    end
  end

endmodule

`default_nettype wire
