// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_tx_count: payload bytes and kinds of acknowledgement of the packets whose headers are built.
//
// Does not: hold the stream up; count frames (ethernet_route). Neighbours: the stream of
// packet_header_build → here → host_counters.
`default_nettype none

module packet_tx_count (
  input  wire                              clk_i,
  input  wire                              rst_i,
  input  wire                              valid_i,   // a packet is taken, of an enabled port
  input  wire roci_pkg::tx_desc_t          desc_i,
  output roci_count_pkg::tx_packet_count_t count_o    // pulses, a cycle later
);

  // wire.md 1.4: ACKNOWLEDGE of RC is 0x11; its syndromes 2.6, 2.14
  always_ff @(posedge clk_i) begin
    count_o <= '0;
    if (valid_i && !rst_i) begin
      count_o.payload_bytes <= desc_i.payload_length;
      if (desc_i.source == roci_pkg::TX_RESPONSE && desc_i.opcode == 8'h11) begin
        count_o.ack <= desc_i.syndrome[6:5] == 2'b00;
        count_o.nak_rnr <= desc_i.syndrome[6:5] == 2'b01;
        count_o.nak_sequence <= desc_i.syndrome[6:0] == 7'h60;
        count_o.nak_invalid_request <= desc_i.syndrome[6:0] == 7'h61;
        count_o.nak_remote_access <= desc_i.syndrome[6:0] == 7'h62;
        count_o.nak_remote_operational <= desc_i.syndrome[6:0] == 7'h63;
      end
    end
  end

endmodule

`default_nettype wire
