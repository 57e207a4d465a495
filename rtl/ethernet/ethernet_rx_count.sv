// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_rx_count: counts frames with good FCS and their bytes, from the wire and from loopback.
//
// Both may end in one cycle, in `wide` in many cycles in a row (frames of one beat), but counters take
// one frame a cycle and 14 bits of bytes: those of loopback are added up and follow when none of the
// wire ends. Only a wire full of the shortest frames beside a full loopback, for longer than the waiting
// frames can be counted, loses counts.
// Does not: judge frames. Neighbours: ethernet_rx, ethernet_loopback → here → host_counters.
`default_nettype none

module ethernet_rx_count #(
  // Waiting frames, log2: in `narrow` a frame takes eight cycles, so that two hardly ever wait.
  parameter int unsigned WAITING_BITS = roci_config_pkg::IS_WIDE ? 16 : 3
) (
  input  wire                          clk_i,
  input  wire                          rst_i,

  input  wire                          wire_good_i,       // pulse: a frame of the wire
  input  wire  [13:0]                  wire_bytes_i,

  // stream of packets of ethernet_loopback, without Ethernet header
  input  wire                          loopback_valid_i,  // a beat passes
  input  roci_pkg::beat_t              loopback_i,
  input  roci_pkg::rx_side_t           loopback_side_i,

  output roci_count_pkg::rx_frame_count_t    count_o
);

  // Frames of several thousand bytes never wait in numbers: they come one at a time.
  localparam int unsigned SUM_BITS = 12 + WAITING_BITS;

  logic [13:0] bytes_q, bytes;
  logic ends, good;
  logic [WAITING_BITS-1:0] frames_q;                   // waiting, and their bytes
  logic [SUM_BITS-1:0] sum_q, rest;
  logic more;                                          // bytes of more than one amount

  always_comb begin
    bytes = bytes_q + 14'(loopback_i.bytes);
    ends = loopback_valid_i && loopback_i.last;
    good = ends && !loopback_i.err;
    more = sum_q[SUM_BITS-1:14] != '0;
    rest = wire_good_i ? sum_q : more ? sum_q - SUM_BITS'(14'h3fff) : '0;
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      bytes_q <= '0;
      frames_q <= '0;
      sum_q <= '0;
      count_o <= '0;
    end else begin
      if (loopback_valid_i) bytes_q <= ends ? '0 : bytes;
      if (good && (wire_good_i || frames_q == '0)) begin
        if (frames_q != '1) frames_q <= frames_q + 1'b1;
      end else if (!good && !wire_good_i && frames_q != '0) begin
        frames_q <= frames_q - 1'b1;
      end
      sum_q <= rest + (good ? SUM_BITS'(roci_count_pkg::frame_bytes(
                                  bytes, loopback_side_i.ethernet.vlan_valid)) : '0);
      count_o.frame <= wire_good_i || frames_q != '0;
      count_o.bytes <= wire_good_i ? wire_bytes_i : more ? '1 : sum_q[13:0];
    end
  end

endmodule

`default_nettype wire
