// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_icrc_insert: appends the 4 ICRC bytes of RoCEv1 to a packet (wire.md 1.6).
//
// The CRC runs over the packet with its variant fields taken as ones (traffic class, flow label, hop
// limit, BTH byte 4); the LRH that is not on the wire is in the CRC's start value. The packet itself
// is not changed. Every beat is held for HOLD cycles, as long as the CRC takes behind the last beat, so
// that the stream has no gap in front of its end, where the MAC would run dry.
//
// One beat per cycle, packets back to back; one beat more if the last one had no room for 4 bytes.
// Neighbours: packet_header_build → here (common_crc32) → ethernet_route.
`default_nettype none

module packet_icrc_insert (
  input  wire                     clk_i,
  input  wire                     rst_i,

  input  wire                     beat_valid_i,
  output logic                    beat_ready_o,
  input  roci_pkg::beat_t         beat_i,        // whole 4-byte words
  input  roci_pkg::packet_side_t  side_i,

  output logic                    beat_valid_o,
  input  wire                     beat_ready_i,
  output roci_pkg::beat_t         beat_o,
  output roci_pkg::packet_side_t  side_o
);

  localparam int unsigned BYTES = roci_pkg::DATA_BYTES;
  localparam int unsigned WORD_BITS = $clog2(BYTES / 4) + 1;
  localparam int unsigned HOLD = BYTES > 16 ? 5 : 4;   // cycles from a beat to its CRC, common_crc32
  // Beats that wait: more than HOLD and the latency of the FIFO, the rest evens out the MAC's pauses.
  // The shortest packet has 56 bytes: LASTS of these beats and the HOLD behind are last ones at most.
  localparam bit WIDE = BYTES >= 56;
  localparam int unsigned DEPTH = WIDE ? 32 : 16;
  localparam int unsigned LASTS = WIDE ? DEPTH + HOLD : 16;
  localparam int unsigned COUNT_BITS = $clog2(DEPTH + 1);

  logic take, give;
  assign take = beat_valid_i && beat_ready_o;

  // ------------------------------------------------------------------------------------------ CRC
  logic [roci_pkg::DATA_BITS-1:0] masked;
  logic [3:0] index_q;                                  // of the beat in its packet, saturating
  logic crc_valid;
  logic [31:0] crc;

  packet_icrc_mask u_mask (.index_i(index_q), .data_i(beat_i.data), .data_o(masked));

  common_crc32 #(.DATA_BYTES(BYTES)) u_crc (
    .clk_i, .rst_i, .enable_i(1'b1),
    .in_valid_i(take), .in_last_i(beat_i.last),
    .in_words_i(WORD_BITS'(beat_i.bytes >> 2)), .in_data_i(masked),
    .result_valid_o(crc_valid), .result_crc_o(crc), .result_good_o()
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      index_q <= '0;
    end else if (take) begin
      index_q <= beat_i.last ? '0 : (index_q == '1) ? index_q : index_q + 4'd1;
      assert (beat_i.bytes[1:0] == 2'd0)
      else $error("packet_icrc_insert: not a whole number of words");
    end
  end

  // -------------------------------------------------------------------- beats and CRCs wait here
  typedef struct packed {
    roci_pkg::packet_side_t side;
    roci_pkg::beat_t beat;
  } stored_t;
  stored_t stored;
  logic [$bits(roci_pkg::beat_t)-1:0] beat_bits;
  logic [$bits(roci_pkg::packet_side_t)-1:0] side_bits;
  logic stored_valid, stored_ready;
  logic crc_there, crc_take;
  logic [31:0] crc_front;

  common_packet_fifo #(
    .WIDTH($bits(roci_pkg::beat_t)), .SIDE_WIDTH($bits(roci_pkg::packet_side_t)), .DEPTH(DEPTH),
    .PACKETS(16), .STYLE(WIDE ? "block" : "distributed")
  ) u_beats (
    .clk_i, .rst_i,
    .in_valid_i(beat_valid_i), .in_ready_o(beat_ready_o), .in_i(beat_i), .in_last_i(beat_i.last),
    .in_side_i(side_i),
    .out_valid_o(stored_valid), .out_ready_i(stored_ready), .out_o(beat_bits), .out_last_o(),
    .out_side_o(side_bits), .usage_o()
  );
  assign stored = '{side: roci_pkg::packet_side_t'(side_bits), beat: roci_pkg::beat_t'(beat_bits)};

  common_fifo #(.WIDTH(32), .DEPTH(LASTS), .STYLE("distributed")) u_crcs (
    .clk_i, .rst_i,
    .in_valid_i(crc_valid), .in_ready_o(), .in_i(crc),
    .out_valid_o(crc_there), .out_ready_i(crc_take), .out_o(crc_front), .usage_o()
  );

  // beats that have been held long enough
  logic [HOLD-1:0] young_q;
  logic [COUNT_BITS-1:0] ripe_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      young_q <= '0;
      ripe_q <= '0;
    end else begin
      young_q <= {young_q[HOLD-2:0], take};
      ripe_q <= ripe_q + COUNT_BITS'(young_q[HOLD-1]) - COUNT_BITS'(stored_valid && stored_ready);
    end
  end

  // ----------------------------------------------------------------------------------- the way out
  logic fits;                                           // the CRC has room in the last beat
  logic extra_q;                                        // its own beat comes next
  roci_pkg::packet_side_t side_q;
  logic [31:0] crc_q;
  logic err_q;
  logic [roci_pkg::DATA_BITS-1:0] data_masked;

  assign fits = stored.beat.bytes != roci_pkg::BYTES_BITS'(BYTES);

  always_comb begin
    for (int unsigned w = 0; w < BYTES / 4; w++) begin
      data_masked[32*w+:32] = (roci_pkg::BYTES_BITS'(4 * w) < stored.beat.bytes)
          ? stored.beat.data[32*w+:32]
          : (roci_pkg::BYTES_BITS'(4 * w) == stored.beat.bytes) ? crc_front : 32'h0;
    end

    beat_o = stored.beat;
    side_o = stored.side;
    stored_ready = 1'b0;
    if (extra_q) begin
      beat_valid_o = 1'b1;
      beat_o = '{err: err_q, last: 1'b1, bytes: roci_pkg::BYTES_BITS'(4),
                 data: roci_pkg::DATA_BITS'(crc_q)};
      side_o = side_q;
    end else begin
      beat_valid_o = stored_valid && ripe_q != '0 && (!stored.beat.last || crc_there);
      stored_ready = beat_ready_i && ripe_q != '0 && (!stored.beat.last || crc_there);
      if (stored.beat.last) begin
        beat_o.data = data_masked;
        beat_o.last = fits;
        beat_o.bytes = fits ? stored.beat.bytes + roci_pkg::BYTES_BITS'(4) : stored.beat.bytes;
        beat_o.err = fits && stored.beat.err;
      end
    end
    give = beat_valid_o && beat_ready_i;
    crc_take = give && !extra_q && stored.beat.last;
  end

  always_ff @(posedge clk_i) begin
    if (give && !extra_q) begin
      side_q <= stored.side;
      crc_q <= crc_front;
      err_q <= stored.beat.err;
    end
    if (rst_i) begin
      extra_q <= 1'b0;
    end else if (give) begin
      extra_q <= !extra_q && stored.beat.last && !fits;
    end
  end

endmodule

`default_nettype wire
