// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_route: sends each finished packet to the wire or, if its destination is the own MAC, back
// inside (wire.md 1.8: a switch does not return such frames), and reports its end.
//
// The report (`done_o`) is given when the last beat goes on: from then on the packet needs nothing of
// host memory any more, which is what fences and unreliable completions wait for. An underrun on the
// wire is found later and reported by ethernet_tx.
// What goes to the wire waits in the buffer of ethernet_tx, which tells when it is out of it.
// While the port is disabled packets vanish here, like on a wire without a peer.
// Does not: buffer; multicast copies to members here (with UD).
// Neighbours: packet_icrc_insert → here → ethernet_tx, ethernet_loopback; reports → packet_tx_decide
// and the requester and responder.
`default_nettype none

module ethernet_route (
  input  wire                     clk_i,
  input  wire                     rst_i,
  input  roci_pkg::port_t         port_i,
  input  wire                     enable_i,     // the port sends

  input  wire                     beat_valid_i,
  output logic                    beat_ready_o,
  input  roci_pkg::beat_t         beat_i,
  input  roci_pkg::packet_side_t  side_i,

  output logic                    wire_valid_o,
  input  wire                     wire_ready_i,
  output roci_pkg::beat_t         wire_o,
  output logic                    loopback_valid_o,
  input  wire                     loopback_ready_i,
  output roci_pkg::beat_t         loopback_o,
  output roci_pkg::packet_side_t  side_o,       // of either

  output logic                    done_valid_o, // always accepted
  output roci_pkg::tx_done_t      done_o,
  output logic                    done_wire_o,  // ethernet_tx has it and will tell when it leaves
  output roci_count_pkg::tx_frame_count_t count_o     // pulses, with done_valid_o
);

  // Decided when a packet is shown first, since port_i.mac may change meanwhile.
  logic own, own_q, shown_q;
  logic off_q;                                  // of the packet in front
  logic [13:0] bytes_q, bytes;                  // of the packet so far
  roci_pkg::tx_done_t done;

  assign own = shown_q ? own_q : side_i.ethernet.dmac == port_i.mac;
  assign wire_valid_o = beat_valid_i && !own && !off_q;
  assign loopback_valid_o = beat_valid_i && own && !off_q;
  assign beat_ready_o = off_q || (own ? loopback_ready_i : wire_ready_i);
  assign bytes = bytes_q + 14'(beat_i.bytes);
  assign wire_o = beat_i;
  assign loopback_o = beat_i;
  assign side_o = side_i;

  always_comb begin
    done = side_i.done;
    done.fate = beat_i.err ? roci_pkg::TX_BUS_ERROR : roci_pkg::TX_SENT;
  end

  always_ff @(posedge clk_i) begin
    done_o <= done;
    done_wire_o <= wire_valid_o;
    own_q <= own;
    if (rst_i) begin
      done_valid_o <= 1'b0;
      shown_q <= 1'b0;
      off_q <= 1'b1;
      bytes_q <= '0;
      count_o <= '0;
    end else begin
      shown_q <= (shown_q || beat_valid_i) && !(beat_valid_i && beat_ready_o && beat_i.last);
      // between two packets only, and before the next one is shown
      if (beat_valid_i ? beat_ready_o && beat_i.last : bytes_q == '0) off_q <= !enable_i;
      if (beat_valid_i && beat_ready_o) bytes_q <= beat_i.last ? '0 : bytes;
      count_o <= '0;
      if (beat_valid_i && beat_ready_o && beat_i.last && !beat_i.err && !off_q) begin
        count_o.frame <= 1'b1;
        count_o.loopback <= own;
        count_o.multicast <= side_i.ethernet.dmac[40];
        count_o.bytes <= roci_count_pkg::frame_bytes(bytes, side_i.ethernet.vlan_valid);
      end
      done_valid_o <= beat_valid_i && beat_ready_o && beat_i.last;
    end
  end

endmodule

`default_nettype wire
