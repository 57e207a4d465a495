// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_route: sends each finished packet to the wire or, if its destination is the own MAC, back
// inside (wire.md 1.8: a switch does not return such frames), and reports its end.
//
// The report (`done_o`) is given when the last beat goes on: from then on the packet needs nothing of
// host memory any more, which is what fences and unreliable completions wait for. An underrun on the
// wire is found later and reported by ethernet_tx.
// Does not: buffer; multicast copies to members here (with UD).
// Neighbours: packet_icrc_insert → here → ethernet_tx, ethernet_loopback; reports → packet_tx_decide
// and the requester and responder.
`default_nettype none

module ethernet_route (
  input  wire                     clk_i,
  input  wire                     rst_i,
  input  roci_pkg::port_t         port_i,

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
  output roci_pkg::tx_done_t      done_o
);

  logic own;
  roci_pkg::tx_done_t done;

  assign own = side_i.ethernet.dmac == port_i.mac;
  assign wire_valid_o = beat_valid_i && !own;
  assign loopback_valid_o = beat_valid_i && own;
  assign beat_ready_o = own ? loopback_ready_i : wire_ready_i;
  assign wire_o = beat_i;
  assign loopback_o = beat_i;
  assign side_o = side_i;

  always_comb begin
    done = side_i.done;
    done.fate = beat_i.err ? roci_pkg::TX_BUS_ERROR : roci_pkg::TX_SENT;
  end

  always_ff @(posedge clk_i) begin
    done_o <= done;
    if (rst_i) begin
      done_valid_o <= 1'b0;
    end else begin
      done_valid_o <= beat_valid_i && beat_ready_o && beat_i.last;
    end
  end

endmodule

`default_nettype wire
