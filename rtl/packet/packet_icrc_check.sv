// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_icrc_check: tells of each received packet whether its last four bytes are its ICRC
// (wire.md 1.6: the CRC over the masked packet including the ICRC ends at a fixed residue).
//
// Watches a valid-only stream that was cut at the end given by PayLen; a result follows a few cycles
// behind each last beat, in order. Does not touch the data.
// Neighbours: packet_rx_trim → here (common_crc32) → packet_rx_buffer.
`default_nettype none

module packet_icrc_check (
  input  wire              clk_i,
  input  wire              rst_i,

  input  wire              beat_valid_i,
  input  roci_pkg::beat_t  beat_i,           // GRH at byte 0; bytes need not be whole words: then bad

  output logic             result_valid_o,   // one per last beat
  output logic             good_o
);

  localparam int unsigned WORD_BITS = $clog2(roci_pkg::DATA_BYTES / 4) + 1;

  logic [3:0] index_q;
  logic [roci_pkg::DATA_BITS-1:0] masked;
  logic [WORD_BITS-1:0] words;

  packet_icrc_mask u_mask (.index_i(index_q), .data_i(beat_i.data), .data_o(masked));

  // a piece of a word counts as one, so that the CRC always has something to judge
  assign words = WORD_BITS'((beat_i.bytes + roci_pkg::BYTES_BITS'(3)) >> 2);

  common_crc32 #(.DATA_BYTES(roci_pkg::DATA_BYTES)) u_crc (
    .clk_i, .rst_i, .enable_i(1'b1),
    .in_valid_i(beat_valid_i), .in_last_i(beat_i.last), .in_words_i(words), .in_data_i(masked),
    .result_valid_o, .result_crc_o(), .result_good_o(good_o)
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      index_q <= '0;
    end else if (beat_valid_i) begin
      index_q <= beat_i.last ? '0 : (index_q == '1) ? index_q : index_q + 4'd1;
    end
  end

endmodule

`default_nettype wire
