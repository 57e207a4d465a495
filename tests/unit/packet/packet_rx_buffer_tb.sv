// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_rx_buffer with the blocks whose verdicts it joins.
`default_nettype none

module packet_rx_buffer_tb (
  input  wire                 clk_i,
  input  wire                 rst_i,
  input  roci_pkg::port_t     port_i,
  input  wire                 frame_valid_i,
  input  roci_pkg::beat_t     frame_i,
  input  roci_pkg::rx_side_t  side_i,
  output logic                beat_valid_o,
  input  wire                 beat_ready_i,
  output roci_pkg::beat_t     beat_o,
  output roci_pkg::rx_side_t  side_o,
  output roci_count_pkg::rx_fate_t  fate_o,
  output logic                loopback_room_o,
  output logic                half_full_o,
  output logic                crowded_o
);
  logic beat_valid, first, end_valid, end_fcs_bad, end_short, end_long;
  logic header_valid, icrc_valid, icrc_good;
  roci_pkg::beat_t beat;
  roci_count_pkg::rx_fate_t header;
  roci_pkg::rx_side_t side_q;

  always_ff @(posedge clk_i) side_q <= side_i;

  packet_rx_trim u_trim (
    .clk_i, .rst_i, .frame_valid_i, .frame_i,
    .beat_valid_o(beat_valid), .first_o(first), .beat_o(beat),
    .end_valid_o(end_valid), .end_fcs_bad_o(end_fcs_bad), .end_short_o(end_short),
    .end_long_o(end_long)
  );
  packet_header_check u_header (
    .clk_i, .rst_i, .port_i, .beat_valid_i(beat_valid), .first_i(first), .beat_i(beat),
    .result_valid_o(header_valid), .result_o(header)
  );
  packet_icrc_check u_icrc (
    .clk_i, .rst_i, .beat_valid_i(beat_valid), .beat_i(beat),
    .result_valid_o(icrc_valid), .good_o(icrc_good)
  );
  packet_rx_buffer u_dut (
    .clk_i, .rst_i, .beat_valid_i(beat_valid), .first_i(first), .beat_i(beat), .side_i(side_q),
    .header_valid_i(header_valid), .header_i(header),
    .icrc_valid_i(icrc_valid), .icrc_good_i(icrc_good),
    .end_valid_i(end_valid), .end_fcs_bad_i(end_fcs_bad), .end_short_i(end_short),
    .end_long_i(end_long),
    .beat_valid_o, .beat_ready_i, .beat_o, .side_o, .fate_o, .loopback_room_o, .half_full_o,
    .crowded_o
  );
endmodule

`default_nettype wire
