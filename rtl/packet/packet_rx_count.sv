// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_rx_count: payload bytes, multicast and congestion marks of the packets that passed all checks
// before the QP lookup.
//
// The GRH that header_parse puts in front of a datagram and the result of an atomic are no payload.
// Does not: hold the stream up; count frames (ethernet_rx_count) or drops. Neighbours: the stream of
// packet_header_parse → here → host_counters.
`default_nettype none

module packet_rx_count (
  input  wire                              clk_i,
  input  wire                              rst_i,
  input  wire                              valid_i,   // the headers of a packet are taken
  input  wire roci_pkg::rx_headers_t       headers_i,
  output roci_count_pkg::rx_packet_count_t count_o    // pulses, a cycle later
);

  roci_pkg::packet_len_t payload;

  always_comb begin
    payload = headers_i.payload_length;
    // wire.md 1.4: datagrams; ATOMIC_ACK
    if (headers_i.opcode[7:5] == 3'd3) payload = payload - 13'(packet_pkg::GRH_BYTES);
    if (headers_i.opcode[4:0] == 5'h12) payload = '0;
  end

  always_ff @(posedge clk_i) begin
    count_o <= '0;
    if (valid_i && !rst_i) begin
      // RFC 4291: multicast addresses begin with ff
      count_o <= '{multicast: headers_i.dgid[127:120] == 8'hff,
                   ecn_marked: headers_i.ecn_marked,
                   payload_bytes: payload};
    end
  end

endmodule

`default_nettype wire
