// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_rx_count: counts frames with good FCS and their bytes, from the wire and from loopback.
//
// Both may end in one cycle: then a loopback frame waits, and is counted in one of the next cycles
// in which no frame of the wire ends. Only its length is kept, of up to four of them.
// Does not: judge frames. Neighbours: ethernet_rx, ethernet_loopback → here → host_counters.
`default_nettype none

module ethernet_rx_count (
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

  logic [13:0] bytes_q, bytes, waiting_bytes;
  logic ends, room, waiting;

  always_comb begin
    bytes = bytes_q + 14'(loopback_i.bytes);
    ends = loopback_valid_i && loopback_i.last;
  end

  common_fifo #(.WIDTH(14), .DEPTH(4)) u_waiting (
    .clk_i, .rst_i,
    .in_valid_i(ends && !loopback_i.err), .in_ready_o(room),
    .in_i(roci_count_pkg::frame_bytes(bytes, loopback_side_i.ethernet.vlan_valid)),
    .out_valid_o(waiting), .out_ready_i(!wire_good_i), .out_o(waiting_bytes), .usage_o()
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      bytes_q <= '0;
      count_o <= '0;
    end else begin
      if (loopback_valid_i) bytes_q <= ends ? '0 : bytes;
      count_o.frame <= wire_good_i || waiting;
      count_o.bytes <= wire_good_i ? wire_bytes_i : waiting ? waiting_bytes : '0;
      // a frame takes two beats at least, so the wire leaves every second cycle free
      assert (room || !ends || loopback_i.err)
      else $error("ethernet_rx_count: a frame is not counted");
    end
  end

endmodule

`default_nettype wire
