// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The receive path from the MAC to the queue pair, as roci_receive wires it, without loopback.
`default_nettype none

module packet_rx_path_tb (
  input  wire                              clk_i,
  input  wire                              rst_i,
  output logic                             ready_o,
  input  roci_pkg::ctx_req_t               ctx_i,
  output roci_pkg::ctx_rsp_t               ctx_o,
  input  roci_pkg::port_t                  port_i,
  input  roci_pkg::state_bcast_t           state_i,
  input  wire  [roci_pkg::DATA_BITS-1:0]   tdata_i,
  input  wire  [roci_pkg::DATA_BYTES-1:0]  tkeep_i,
  input  wire                              tlast_i,
  input  wire                              tvalid_i,
  output logic                             request_valid_o,
  input  wire                              request_ready_i,
  output roci_pkg::rx_packet_t             request_o,
  output logic                             response_valid_o,
  input  wire                              response_ready_i,
  output roci_pkg::rx_packet_t             response_o,
  output logic                             payload_valid_o,
  input  wire                              payload_ready_i,
  output roci_pkg::beat_t                  payload_o,
  output roci_count_pkg::rx_l2_drop_t            l2_drop_o,
  output roci_count_pkg::rx_fate_t               fate_o,
  output roci_count_pkg::rx_dispatch_count_t     count_o
);
  logic wire_valid, frame_valid, loopback_room;
  roci_pkg::beat_t wire_beat, frame, packet, good;
  roci_pkg::rx_side_t wire_side, frame_side, frame_side_q, good_side;
  logic packet_valid, packet_first, packet_ended, packet_fcs_bad, packet_short, packet_long;
  logic header_checked, icrc_checked, icrc_good, good_valid, good_ready;
  logic headers_valid, headers_ready;
  roci_count_pkg::rx_fate_t header_result;
  roci_pkg::rx_headers_t headers;
  // what others look at
  logic wire_good, loopback_ready, half_full, crowded, order_valid;
  logic [13:0] wire_bytes;
  roci_pkg::rx_order_t order;
  roci_pkg::fence_busy_t fence_busy;

  ethernet_rx u_ethernet_rx (
    .clk_i, .rst_i, .port_i, .enable_i(1'b1), .tdata_i, .tkeep_i, .tlast_i, .tuser_i(1'b0),
    .tvalid_i, .frame_valid_o(wire_valid), .frame_o(wire_beat), .side_o(wire_side),
    .drop_o(l2_drop_o), .good_o(wire_good), .good_bytes_o(wire_bytes)
  );
  ethernet_merge u_merge (
    .clk_i, .rst_i,
    .wire_valid_i(wire_valid), .wire_i(wire_beat), .wire_side_i(wire_side),
    .loopback_valid_i(1'b0), .loopback_ready_o(loopback_ready), .loopback_i('0), .loopback_side_i('0),
    .loopback_room_i(loopback_room),
    .frame_valid_o(frame_valid), .frame_o(frame), .side_o(frame_side)
  );
  always_ff @(posedge clk_i) frame_side_q <= frame_side;

  packet_rx_trim u_trim (
    .clk_i, .rst_i, .frame_valid_i(frame_valid), .frame_i(frame),
    .beat_valid_o(packet_valid), .first_o(packet_first), .beat_o(packet),
    .end_valid_o(packet_ended), .end_fcs_bad_o(packet_fcs_bad), .end_short_o(packet_short),
    .end_long_o(packet_long)
  );
  packet_header_check u_header_check (
    .clk_i, .rst_i, .port_i,
    .beat_valid_i(packet_valid), .first_i(packet_first), .beat_i(packet),
    .result_valid_o(header_checked), .result_o(header_result)
  );
  packet_icrc_check u_icrc_check (
    .clk_i, .rst_i, .beat_valid_i(packet_valid), .beat_i(packet),
    .result_valid_o(icrc_checked), .good_o(icrc_good)
  );
  packet_rx_buffer u_buffer (
    .clk_i, .rst_i,
    .beat_valid_i(packet_valid), .first_i(packet_first), .beat_i(packet), .side_i(frame_side_q),
    .header_valid_i(header_checked), .header_i(header_result),
    .icrc_valid_i(icrc_checked), .icrc_good_i(icrc_good),
    .end_valid_i(packet_ended), .end_fcs_bad_i(packet_fcs_bad), .end_short_i(packet_short),
    .end_long_i(packet_long),
    .beat_valid_o(good_valid), .beat_ready_i(good_ready), .beat_o(good), .side_o(good_side),
    .fate_o, .loopback_room_o(loopback_room), .half_full_o(half_full), .crowded_o(crowded)
  );
  packet_header_parse u_parse (
    .clk_i, .rst_i,
    .beat_valid_i(good_valid), .beat_ready_o(good_ready), .beat_i(good), .side_i(good_side),
    .headers_valid_o(headers_valid), .headers_ready_i(headers_ready), .headers_o(headers),
    .payload_valid_o, .payload_ready_i, .payload_o
  );
  packet_rx_dispatch u_dispatch (
    .clk_i, .rst_i, .ctx_i, .ctx_o, .port_i, .state_i, .colour_i(1'b0),
    .headers_valid_i(headers_valid), .headers_ready_o(headers_ready), .headers_i(headers),
    .request_valid_o, .request_ready_i, .request_o,
    .response_valid_o, .response_ready_i, .response_o,
    .order_valid_o(order_valid), .order_ready_i(1'b1), .order_o(order),
    .flush_valid_i(1'b0), .flush_i(1'b0), .end_valid_i(1'b0), .end_i(1'b0),
    .fence_busy_o(fence_busy), .count_o, .ready_o
  );

  wire unused = &{1'b0, wire_good, wire_bytes, loopback_ready, half_full, crowded, order_valid,
                  order, fence_busy};
endmodule

`default_nettype wire
