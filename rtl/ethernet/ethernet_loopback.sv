// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_loopback: holds packets to the own port until each is there as a whole, then offers it to
// the receive side (wire.md 1.8: a NIC must loop such frames internally).
//
// Whole packets only, so that the receive side, which serves the wire between two of them, never waits
// in the middle of one. Room for two maximum packets (narrow: one and most of the next) and at most
// PACKETS; full = the transmit side waits (TX may wait for RX, rule 2). A packet with a bus
// error goes on with `err` and is dropped there like a frame with a bad FCS.
// Neighbours: ethernet_route → here → ethernet_merge.
`default_nettype none

module ethernet_loopback #(
  // beats; two packets of at most 4184 bytes, in narrow less the last 22 beats of the second (a block
  // RAM has 1024 words): it waits for the first to begin to leave
  parameter int unsigned BEATS = roci_config_pkg::IS_WIDE
                                 ? 2 * ((4184 + roci_pkg::DATA_BYTES - 1) / roci_pkg::DATA_BYTES) + 2
                                 : 1024,
  parameter int unsigned PACKETS = 16            // whole packets
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

  roci_pkg::rx_ethernet_t ethernet;
  logic [$bits(roci_pkg::rx_ethernet_t)-1:0] ethernet_bits;
  logic [$bits(roci_pkg::beat_t)-1:0] stored_bits;
  logic stored_valid;
  logic [COUNT_BITS-1:0] whole_q;
  logic packet_in, packet_out;

  assign ethernet = '{smac: side_i.ethernet.smac, vlan_valid: side_i.ethernet.vlan_valid,
                      tci: side_i.ethernet.tci};

  common_packet_fifo #(
    .WIDTH($bits(roci_pkg::beat_t)), .SIDE_WIDTH($bits(roci_pkg::rx_ethernet_t)),
    .DEPTH(BEATS), .PACKETS(PACKETS), .STYLE("block")
  ) u_store (
    .clk_i, .rst_i,
    .in_valid_i(beat_valid_i), .in_ready_o(beat_ready_o), .in_i(beat_i), .in_last_i(beat_i.last),
    .in_side_i(ethernet),
    .out_valid_o(stored_valid), .out_ready_i(packet_ready_i && whole_q != '0),
    .out_o(stored_bits), .out_last_o(), .out_side_o(ethernet_bits), .usage_o()
  );
  assign packet_valid_o = stored_valid && whole_q != '0;
  assign packet_o = roci_pkg::beat_t'(stored_bits);
  assign side_o = '{loopback: 1'b1, ethernet: roci_pkg::rx_ethernet_t'(ethernet_bits)};

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
