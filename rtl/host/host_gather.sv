// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_gather: reads the pieces of a packet's payload and makes them one dense stream.
//
// Each piece becomes one DMA read at once; the words come back in piece order and are packed
// without gaps, packet after packet: 1 beat per cycle through pieces of any alignment, 2 cycles for
// a packet of one unaligned 64-byte piece (`wide`). Bytes beyond the packet's end are zero. `err`
// stands on the last beat of a packet in which any word failed; its length is right all the same.
//
// Does not: see packets without payload (they have no piece); check addresses.
// Neighbours: packet_tx_decide (pieces), host_dma_read client 0, packet_header_build (payload).
`default_nettype none

module host_gather #(
  parameter int unsigned PIECES = roci_config_pkg::TX_DESCRIPTORS   // reads under way
) (
  input  wire                              clk_i,
  input  wire                              rst_i,

  // pieces of decided packets, in TX order
  input  wire                              piece_valid_i,
  output logic                             piece_ready_o,
  input  wire roci_pkg::gather_piece_t     piece_i,

  // DMA reads and their words
  output logic                             req_valid_o,
  input  wire                              req_ready_i,
  output roci_pkg::dma_read_req_t          req_o,
  input  wire                              word_valid_i,
  output logic                             word_ready_o,
  input  wire roci_pkg::read_beat_t        word_i,

  // payload
  output logic                             beat_valid_o,
  input  wire                              beat_ready_i,
  output roci_pkg::beat_t                  beat_o
);

  localparam int unsigned DATA_BYTES = roci_pkg::DATA_BYTES;
  localparam int unsigned LANE_BITS = roci_pkg::LANE_BITS;

  typedef logic [LANE_BITS-1:0] lane_t;
  typedef logic [LANE_BITS:0] count_t;

  // A piece whose words are on their way.
  typedef struct packed {
    logic last;                            // last piece of its packet
    lane_t first;                          // lane of its first byte
    lane_t final_lane;                     // lane of its last byte
  } pending_t;

  pending_t pending_in, pending;
  logic [$bits(pending_t)-1:0] pending_bits;
  logic pending_in_ready, pending_valid;

  logic inside_q;                          // the next word is not the first of its piece
  lane_t fill_q;                           // bytes of the packet so far, modulo DATA_BYTES
  logic err_q;                             // a word of this packet failed

  logic run_valid, run_ready, take, ends;
  lane_t from;
  count_t stop, count;
  logic err;

  // ------------------------------------------------------------------------------------ requests
  assign req_o = '{fn: piece_i.fn, length: piece_i.length, addr: piece_i.addr};
  assign req_valid_o = piece_valid_i && pending_in_ready;
  assign piece_ready_o = req_ready_i && pending_in_ready;
  assign pending_in = '{last: piece_i.last, first: piece_i.addr[LANE_BITS-1:0],
                        final_lane: lane_t'(piece_i.addr[LANE_BITS-1:0] + lane_t'(piece_i.length)
                                            - 1'b1)};

  common_fifo #(.WIDTH($bits(pending_t)), .DEPTH(PIECES), .STYLE("distributed")) u_pending (
    .clk_i, .rst_i,
    .in_valid_i(piece_valid_i && req_ready_i), .in_ready_o(pending_in_ready), .in_i(pending_in),
    .out_valid_o(pending_valid), .out_ready_i(take && word_i.last), .out_o(pending_bits), .usage_o()
  );

  // --------------------------------------------------------------------------------------- words
  assign pending = pending_t'(pending_bits);
  assign run_valid = word_valid_i && pending_valid;
  assign word_ready_o = run_ready && pending_valid;
  assign take = run_valid && run_ready;

  always_comb begin
    from = inside_q ? '0 : pending.first;
    stop = word_i.last ? count_t'(pending.final_lane) + 1'b1 : count_t'(DATA_BYTES);
    count = stop - count_t'(from);
    ends = word_i.last && pending.last;
    err = err_q || word_i.err;
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      inside_q <= !word_i.last;
      fill_q <= ends ? '0 : fill_q + lane_t'(count);
      err_q <= err && !ends;
    end
    if (rst_i) begin
      inside_q <= 1'b0;
      fill_q <= '0;
      err_q <= 1'b0;
    end
  end

  logic out_err, out_last;
  count_t out_bytes;
  logic [roci_pkg::DATA_BITS-1:0] out_data;

  host_realign #(.USER_BITS(1)) u_realign (
    .clk_i, .rst_i,
    .in_valid_i(run_valid), .in_ready_o(run_ready), .in_data_i(word_i.data), .in_from_i(from),
    .in_to_i(fill_q), .in_count_i(count), .in_flush_i(ends), .in_user_i(err),
    .out_valid_o(beat_valid_o), .out_ready_i(beat_ready_i), .out_data_o(out_data),
    .out_strobe_o(), .out_stop_o(out_bytes), .out_last_o(out_last), .out_user_o(out_err)
  );

  assign beat_o = '{err: out_err && out_last, last: out_last, bytes: out_bytes, data: out_data};

endmodule

`default_nettype wire
