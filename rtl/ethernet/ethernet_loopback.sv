// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_loopback: holds packets to the own port until each is there as a whole, then offers it to
// the receive side (wire.md 1.8: a NIC must loop such frames internally).
//
// Whole packets only, so that the receive side, which serves the wire between two of them, never waits
// in the middle of one. Room for two maximum packets; full = the transmit side waits (TX may wait for
// RX, DESIGN rule 2). A packet with a bus error goes on with `err` and is dropped there like a frame
// with a bad FCS.
// Neighbours: ethernet_route → here → ethernet_merge.
`default_nettype none

module ethernet_loopback #(
  // beats; two packets of at most 4184 bytes and their ends
  parameter int unsigned BEATS = 2 * ((4184 + roci_pkg::DATA_BYTES - 1) / roci_pkg::DATA_BYTES) + 2
) (
  input  wire                     clk_i,
  input  wire                     rst_i,

  input  wire                     beat_valid_i,
  output logic                    beat_ready_o,
  input  roci_pkg::beat_t         beat_i,
  input  roci_pkg::packet_side_t  side_i,

  output logic                    packet_valid_o,   // a whole packet is there
  input  wire                     packet_ready_i,
  output roci_pkg::beat_t         packet_o,
  output roci_pkg::rx_side_t      side_o
);

  localparam int unsigned COUNT_BITS = $clog2(BEATS + 1);

  typedef struct packed {
    roci_pkg::ethernet_fields_t ethernet;
    roci_pkg::beat_t beat;
  } stored_t;
  stored_t stored_in, stored;
  logic [$bits(stored_t)-1:0] stored_bits;
  logic stored_valid;
  logic [COUNT_BITS-1:0] whole_q;
  logic packet_in, packet_out;

  assign stored_in = '{ethernet: side_i.ethernet, beat: beat_i};
  common_fifo #(.WIDTH($bits(stored_t)), .DEPTH(BEATS), .STYLE("block")) u_store (
    .clk_i, .rst_i,
    .in_valid_i(beat_valid_i), .in_ready_o(beat_ready_o), .in_i(stored_in),
    .out_valid_o(stored_valid), .out_ready_i(packet_ready_i && whole_q != '0),
    .out_o(stored_bits), .usage_o()
  );
  assign stored = stored_t'(stored_bits);
  assign packet_valid_o = stored_valid && whole_q != '0;
  assign packet_o = stored.beat;
  assign side_o = '{loopback: 1'b1, ethernet: stored.ethernet};

  assign packet_in = beat_valid_i && beat_ready_o && beat_i.last;
  assign packet_out = packet_valid_o && packet_ready_i && packet_o.last;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      whole_q <= '0;
    end else begin
      whole_q <= whole_q + COUNT_BITS'(packet_in) - COUNT_BITS'(packet_out);
    end
  end

endmodule

`default_nettype wire
