// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_row_ram: table of rows of 64-bit words, written and read back word by word over the context
// bus, read row by row by its owner.
//
// SERIAL = 0: a memory as wide as a row; the row is there in the cycle after its read. SERIAL = 1: a
// memory of one word (few rows fill few block RAMs), read in turn; the row is there WORDS cycles
// after its read. Either way it stays until the next read, also of a word. A row that is written
// while it is read comes out mixed: rows are written while nobody may rely on them.
//
// CLEARED: all words are zero after reset, once ready_o has risen (common_ram_cleared).
//
// Does not: queue reads; one is under way at a time.
// Neighbours: common_ram_sdp, common_ram_cleared (the memory); packet_header_build,
// packet_rx_dispatch.
`default_nettype none

module common_row_ram #(
  parameter int unsigned WORDS = 4,          // of a row, at least 2
  parameter int unsigned DEPTH = 64,         // rows
  parameter bit SERIAL = 1'b0,               // 0: a row in one cycle, 1: a word per cycle
  parameter bit CLEARED = 1'b0
) (
  input  wire                     clk_i,
  input  wire                     rst_i,         // synchronous, active high
  output logic                    ready_o,       // constant 1 without CLEARED

  // words: written at any time; read only while no row is on its way, word_o one cycle later (its
  // word_i still there)
  input  wire                     write_i,
  input  wire                     word_read_i,
  input  wire [$clog2(DEPTH)-1:0] index_i,
  input  wire [3:0]               word_i,
  input  wire [63:0]              wdata_i,
  output logic [63:0]             word_o,

  // rows: a read only while no other is on its way
  input  wire                     row_read_i,
  input  wire [$clog2(DEPTH)-1:0] row_index_i,
  output logic                    row_valid_o,   // the row asked for last is there
  output logic [WORDS*64-1:0]     row_o          // word 0 lowest
);

  localparam int unsigned INDEX_BITS = $clog2(DEPTH);
  localparam int unsigned WORD_BITS = $clog2(WORDS);
  typedef logic [WORD_BITS-1:0] word_t;

  if (SERIAL) begin : gen_serial

    logic busy_q;                            // words are still to be asked for
    word_t step_q;                           // the next one
    logic [INDEX_BITS-1:0] row_q;
    logic arriving_q;                        // rdata is a word of the row that is not the last
    logic last_q;                            // rdata is its last word, and stays
    logic [(WORDS-1)*64-1:0] words_q;        // the others, word by word from above
    logic [INDEX_BITS+WORD_BITS-1:0] raddr;
    logic [63:0] rdata;

    assign raddr = row_read_i ? {row_index_i, word_t'(0)}
                 : busy_q ? {row_q, step_q} : {index_i, word_t'(word_i)};
    assign word_o = rdata;
    assign row_o = {rdata, words_q};
    assign row_valid_o = last_q;

    if (CLEARED) begin : gen_cleared
      common_ram_cleared #(
        .WIDTH(64), .DEPTH(2 ** (INDEX_BITS + WORD_BITS)), .BYPASS(1'b0), .STYLE("block")
      ) u_ram (
        .clk_i, .rst_i, .ready_o,
        .we_i(write_i), .waddr_i({index_i, word_t'(word_i)}), .wdata_i,
        .re_i(row_read_i || busy_q || word_read_i), .raddr_i(raddr), .rdata_o(rdata)
      );
    end else begin : gen_plain
      assign ready_o = 1'b1;
      common_ram_sdp #(
        .WIDTH(64), .DEPTH(2 ** (INDEX_BITS + WORD_BITS)), .BYPASS(1'b0), .STYLE("block")
      ) u_ram (
        .clk_i,
        .we_i(write_i), .waddr_i({index_i, word_t'(word_i)}), .wdata_i,
        .re_i(row_read_i || busy_q || word_read_i), .raddr_i(raddr), .rdata_o(rdata)
      );
    end

    always_ff @(posedge clk_i) begin
      if (row_read_i) row_q <= row_index_i;
      if (arriving_q) words_q <= {rdata, words_q[(WORDS-1)*64-1:64]};
      step_q <= row_read_i ? word_t'(1) : step_q + 1'b1;
      arriving_q <= row_read_i || (busy_q && step_q != word_t'(WORDS - 1));
      if (rst_i) begin
        busy_q <= 1'b0;
        last_q <= 1'b0;
      end else begin
        if (row_read_i) busy_q <= 1'b1;
        else if (step_q == word_t'(WORDS - 1)) busy_q <= 1'b0;
        if (busy_q && step_q == word_t'(WORDS - 1)) last_q <= 1'b1;
        else if (row_read_i || word_read_i) last_q <= 1'b0;
        assert (!busy_q || !(row_read_i || word_read_i))
        else $error("common_row_ram: read while a row is on its way");
      end
    end

  end else begin : gen_whole

    logic [WORDS-1:0] we;
    logic [3:0] word_q;
    logic valid_q;

    always_comb begin
      we = '0;
      word_o = '0;
      for (int unsigned w = 0; w < WORDS; w++) begin
        we[w] = write_i && word_i == 4'(w);
        if (word_q == 4'(w)) word_o = row_o[64*w +: 64];
      end
    end
    assign row_valid_o = valid_q;

    if (CLEARED) begin : gen_cleared
      common_ram_cleared #(
        .WIDTH(WORDS * 64), .DEPTH(DEPTH), .GRANULE(64), .BYPASS(1'b0)
      ) u_ram (
        .clk_i, .rst_i, .ready_o,
        .we_i(we), .waddr_i(index_i), .wdata_i({WORDS{wdata_i}}),
        .re_i(row_read_i || word_read_i), .raddr_i(row_read_i ? row_index_i : index_i),
        .rdata_o(row_o)
      );
    end else begin : gen_plain
      assign ready_o = 1'b1;
      common_ram_sdp #(
        .WIDTH(WORDS * 64), .DEPTH(DEPTH), .GRANULE(64), .BYPASS(1'b0)
      ) u_ram (
        .clk_i,
        .we_i(we), .waddr_i(index_i), .wdata_i({WORDS{wdata_i}}),
        .re_i(row_read_i || word_read_i), .raddr_i(row_read_i ? row_index_i : index_i),
        .rdata_o(row_o)
      );
    end

    always_ff @(posedge clk_i) begin
      word_q <= word_i;
      if (rst_i) valid_q <= 1'b0;
      else if (row_read_i || word_read_i) valid_q <= row_read_i;
    end

  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) assert (!(row_read_i && word_read_i))
    else $error("common_row_ram: two reads at once");
  end

  if (WORDS < 2) $error("%m: WORDS must be at least 2");

endmodule

`default_nettype wire
