// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_merge: one stream of received packets from the wire and from loopback.
//
// The wire cannot wait, so it has a FIFO in which its beats collect while a loopback packet passes;
// the inner stream is faster than the wire, so the FIFO drains again. A loopback packet begins when
// the wire's FIFO has nothing to send and the packet buffer has room for a maximum packet
// (`loopback_room_i`): loopback waits instead of being dropped, and never makes the wire's frames be
// dropped.
// Neighbours: ethernet_rx, ethernet_loopback → here → packet_rx_trim.
`default_nettype none

module ethernet_merge #(
  parameter int unsigned BEATS = roci_config_pkg::IS_WIDE ? 128 : 1024   // > a maximum packet
) (
  input  wire                    clk_i,
  input  wire                    rst_i,

  input  wire                    wire_valid_i,      // no back-pressure
  input  roci_pkg::beat_t        wire_i,
  input  roci_pkg::rx_side_t     wire_side_i,

  input  wire                    loopback_valid_i,  // whole packets
  output logic                   loopback_ready_o,
  input  roci_pkg::beat_t        loopback_i,
  input  roci_pkg::rx_side_t     loopback_side_i,
  input  wire                    loopback_room_i,

  output logic                   frame_valid_o,     // no back-pressure
  output roci_pkg::beat_t        frame_o,
  output roci_pkg::rx_side_t     side_o
);

  typedef struct packed {
    roci_pkg::rx_side_t side;
    roci_pkg::beat_t beat;
  } stored_t;
  stored_t stored_in, stored;
  logic [$bits(stored_t)-1:0] stored_bits;
  logic stored_valid, stored_ready, wire_ready;

  typedef enum logic [1:0] {FROM_NONE, FROM_WIRE, FROM_LOOPBACK} from_e;
  from_e from_q, from;                              // whose packet is passing

  assign stored_in = '{side: wire_side_i, beat: wire_i};
  common_fifo #(.WIDTH($bits(stored_t)), .DEPTH(BEATS), .STYLE("block")) u_wire (
    .clk_i, .rst_i,
    .in_valid_i(wire_valid_i), .in_ready_o(wire_ready), .in_i(stored_in),
    .out_valid_o(stored_valid), .out_ready_i(stored_ready), .out_o(stored_bits), .usage_o()
  );
  assign stored = stored_t'(stored_bits);

  always_comb begin
    from = from_q;
    if (from_q == FROM_NONE) begin
      if (stored_valid) begin
        from = FROM_WIRE;
      end else if (loopback_valid_i && loopback_room_i) begin
        from = FROM_LOOPBACK;
      end
    end
    stored_ready = from == FROM_WIRE;
    loopback_ready_o = from == FROM_LOOPBACK;
    frame_valid_o = (from == FROM_WIRE && stored_valid)
                    || (from == FROM_LOOPBACK && loopback_valid_i);
    frame_o = from == FROM_LOOPBACK ? loopback_i : stored.beat;
    side_o = from == FROM_LOOPBACK ? loopback_side_i : stored.side;
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      from_q <= FROM_NONE;
    end else if (frame_valid_o) begin
      from_q <= frame_o.last ? FROM_NONE : from;
      assert (wire_ready || !wire_valid_i)
      else $error("ethernet_merge: the wire is faster than the inner stream");
    end
  end

endmodule

`default_nettype wire
