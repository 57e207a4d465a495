// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_tx_arbiter: one order for everything that goes to the wire.
//
// Takes whole packets (1..n items, `last` on the final one) from the requester's packetizer and the
// responder's response walker and passes them on, never mixing the items of two packets. When both
// have a packet ready they take turns, so that responses are never starved by a busy send side and
// requests get at least every second packet (a NIC that answers READs at line rate still sends).
// While enough payload is ahead (`full_i`) only packets without payload get a place: what stands before
// an ACK, or a READ request, is bounded in bytes.
// The order is fixed here, before any address is checked or any payload read is issued;
// everything behind this point keeps it.
//
// Does not: look into packets, buffer. Combinational in the forward path; a choice once shown is
// kept until the packet's last item, as the stream rule demands.
// Neighbours: requester_packetizer, responder_respond → here → packet_tx_decide.
`default_nettype none

module packet_tx_arbiter (
  input  wire                clk_i,
  input  wire                rst_i,             // synchronous, active high

  input  wire                full_i,            // no packet with payload may begin

  // packets of the send queues
  input  wire                request_valid_i,
  output logic               request_ready_o,
  input  roci_pkg::tx_item_t request_i,

  // READ and atomic responses, ACK, NAK
  input  wire                response_valid_i,
  output logic               response_ready_o,
  input  roci_pkg::tx_item_t response_i,

  // all packets in the order of the wire
  output logic               item_valid_o,
  input  wire                item_ready_i,
  output roci_pkg::tx_item_t item_o
);

  logic busy_q;           // a choice was shown and its packet has not ended
  logic is_response_q;    // the choice; between packets: who went last

  logic is_response;
  logic request_open, response_open;      // may begin, or is under way
  logic fire;

  always_comb begin
    request_open = request_valid_i && (busy_q || !full_i || !request_i.has_piece);
    response_open = response_valid_i && (busy_q || !full_i || !response_i.has_piece);
    if (busy_q) begin
      is_response = is_response_q;
    end else if (request_open && response_open) begin
      is_response = !is_response_q;
    end else begin
      is_response = response_open;
    end

    item_valid_o = is_response ? response_open : request_open;
    item_o = is_response ? response_i : request_i;
  end

  assign response_ready_o = is_response && response_open && item_ready_i;
  assign request_ready_o = !is_response && request_open && item_ready_i;
  assign fire = item_valid_o && item_ready_i;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      busy_q <= 1'b0;
      is_response_q <= 1'b0;
    end else if (item_valid_o) begin
      // also without a transfer: what was shown must stay until it is taken
      busy_q <= !(fire && item_o.last);
      is_response_q <= is_response;
    end
  end

endmodule

`default_nettype wire
