// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// roci_receive: the way of a frame from the MAC to host memory, as far as it is the same for requests
// and responses. Wiring, the FIFOs for payload and order between the parts, and counts of good packets.
//
//   ethernet_rx ─┐
//                ├► ethernet_merge ► packet_rx_trim ► packet_rx_buffer ► packet_header_parse
//   loopback ────┘                   icrc_check, header_check beside it       │ headers   │ payload
//                                                             packet_rx_dispatch          FIFO
//                            requests, responses ◄────────────┘        │ order            │
//                            items of both ──────► packet_rx_commit ◄──┘                  │
//                                                        └─ commands ─► host_scatter ◄────┘
//                                                                         └─► responder_atomic
`default_nettype none

module roci_receive (
  input  wire                              clk_i,
  input  wire                              rst_i,
  output logic                             ready_o,
  input  roci_pkg::ctx_req_t               ctx_i,
  output roci_pkg::ctx_rsp_t               ctx_o,
  input  roci_pkg::port_t                  port_i,
  input  wire                              enable_i,         // the port receives
  input  roci_pkg::state_bcast_t           state_i,
  input  roci_pkg::colour_t                colour_i,

  // MAC, AXI-Stream without back-pressure
  input  wire  [roci_pkg::DATA_BITS-1:0]   tdata_i,
  input  wire  [roci_pkg::DATA_BYTES-1:0]  tkeep_i,
  input  wire                              tlast_i,
  input  wire                              tuser_i,
  input  wire                              tvalid_i,

  // own frames
  input  wire                              loopback_valid_i,
  output logic                             loopback_ready_o,
  input  roci_pkg::beat_t                  loopback_i,
  input  roci_pkg::rx_side_t               loopback_side_i,

  // headers out, judged items in
  output logic                             request_valid_o,
  input  wire                              request_ready_i,
  output roci_pkg::rx_packet_t             request_o,
  output logic                             response_valid_o,
  input  wire                              response_ready_i,
  output roci_pkg::rx_packet_t             response_o,
  input  wire                              responder_valid_i,
  output logic                             responder_ready_o,
  input  roci_pkg::rx_item_t               responder_i,
  input  wire                              requester_valid_i,
  output logic                             requester_ready_o,
  input  roci_pkg::rx_item_t               requester_i,

  // address check, client RX
  output logic                             xlat_valid_o,
  input  wire                              xlat_ready_i,
  output roci_pkg::xlat_req_t              xlat_o,
  input  wire                              answer_valid_i,
  output logic                             answer_ready_o,
  input  roci_pkg::xlat_rsp_t              answer_i,

  // ordered writes, level 0, and the ends of frames that come back from there
  output logic                             req_valid_o,
  input  wire                              req_ready_i,
  output roci_pkg::dma_write_req_t         req_o,
  output logic                             data_valid_o,
  input  wire                              data_ready_i,
  output roci_pkg::write_beat_t            data_o,
  output logic                             atomic_valid_o,   // to responder_atomic
  input  wire                              atomic_ready_i,
  output roci_pkg::atomic_req_t            atomic_o,
  input  wire                              end_valid_i,
  input  roci_pkg::colour_t                end_i,
  input  wire                              flush_valid_i,
  input  roci_pkg::colour_t                flush_i,

  output logic                             error_valid_o,
  input  wire                              error_ready_i,
  output roci_pkg::state_error_t           error_o,

  output logic                             pressure_o,       // the packet buffer is above half
  output logic                             crowded_o,        // above three quarters
  output roci_pkg::fence_busy_t            fence_busy_o,
  output roci_count_pkg::rx_l2_drop_t            l2_drop_o,        // pulses for the counters
  output roci_count_pkg::rx_frame_count_t        frame_count_o,
  output roci_count_pkg::rx_packet_count_t       packet_count_o,
  output roci_count_pkg::rx_commit_count_t       commit_count_o,
  output roci_count_pkg::rx_fate_t               fate_o,
  output roci_count_pkg::rx_dispatch_count_t     dispatch_count_o
);

  // while a packet's destination is found, its payload and the next packets' wait here
  localparam int unsigned PAYLOAD_BEATS = roci_config_pkg::IS_WIDE ? 256 : 1024;
  localparam int unsigned ORDER_ENTRIES = 64;

  // ------------------------------------------------------------------------------- frames
  logic wire_valid, frame_valid, loopback_room, wire_good;
  logic [13:0] wire_bytes;
  roci_pkg::beat_t wire_beat, frame;
  roci_pkg::rx_side_t wire_side, frame_side, frame_side_q;

  ethernet_rx u_ethernet_rx (
    .clk_i, .rst_i, .port_i, .enable_i, .tdata_i, .tkeep_i, .tlast_i, .tuser_i, .tvalid_i,
    .frame_valid_o(wire_valid), .frame_o(wire_beat), .side_o(wire_side),
    .drop_o(l2_drop_o), .good_o(wire_good), .good_bytes_o(wire_bytes)
  );
  ethernet_rx_count u_count (
    .clk_i, .rst_i, .wire_good_i(wire_good), .wire_bytes_i(wire_bytes),
    .loopback_valid_i(loopback_valid_i && loopback_ready_o), .loopback_i, .loopback_side_i,
    .count_o(frame_count_o)
  );
  ethernet_merge u_merge (
    .clk_i, .rst_i,
    .wire_valid_i(wire_valid), .wire_i(wire_beat), .wire_side_i(wire_side),
    .loopback_valid_i, .loopback_ready_o, .loopback_i, .loopback_side_i,
    .loopback_room_i(loopback_room),
    .frame_valid_o(frame_valid), .frame_o(frame), .side_o(frame_side)
  );

  // ----------------------------------------------------------------- packets, checked and stored
  logic packet_valid, packet_first, packet_ended, packet_fcs_bad, packet_short, packet_long;
  logic header_checked, icrc_checked, icrc_good;
  roci_pkg::beat_t packet;
  roci_count_pkg::rx_fate_t header_result;
  logic good_valid, good_ready;
  roci_pkg::beat_t good;
  roci_pkg::rx_side_t good_side;

  always_ff @(posedge clk_i) begin
    frame_side_q <= frame_side;
  end

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
    .fate_o, .loopback_room_o(loopback_room), .half_full_o(pressure_o),
    .crowded_o
  );

  // ------------------------------------------------------------------------ headers and payload
  logic headers_valid, headers_ready, parsed_valid, parsed_ready, payload_valid, payload_ready;
  roci_pkg::rx_headers_t headers;
  roci_pkg::beat_t parsed;
  logic [$bits(roci_pkg::beat_t)-1:0] payload_bits;

  packet_header_parse u_parse (
    .clk_i, .rst_i,
    .beat_valid_i(good_valid), .beat_ready_o(good_ready), .beat_i(good), .side_i(good_side),
    .headers_valid_o(headers_valid), .headers_ready_i(headers_ready), .headers_o(headers),
    .payload_valid_o(parsed_valid), .payload_ready_i(parsed_ready), .payload_o(parsed)
  );
  common_fifo #(
    .WIDTH($bits(roci_pkg::beat_t)), .DEPTH(PAYLOAD_BEATS), .STYLE("block")
  ) u_payload (
    .clk_i, .rst_i,
    .in_valid_i(parsed_valid), .in_ready_o(parsed_ready), .in_i(parsed),
    .out_valid_o(payload_valid), .out_ready_i(payload_ready), .out_o(payload_bits), .usage_o()
  );

  packet_rx_count u_packet_count (
    .clk_i, .rst_i, .valid_i(headers_valid && headers_ready), .headers_i(headers),
    .count_o(packet_count_o)
  );

  // ------------------------------------------------------------------- dispatch, commit, scatter
  logic dispatch_order_valid, dispatch_order_ready, order_valid, order_ready;
  roci_pkg::rx_order_t dispatch_order;
  logic [$bits(roci_pkg::rx_order_t)-1:0] order_bits;
  logic dispatch_ready, commit_ready;
  logic verdict_valid, verdict_ready, cmd_valid, cmd_ready;
  roci_pkg::scatter_cmd_t verdict, cmd;

  assign ready_o = dispatch_ready && commit_ready;

  packet_rx_dispatch u_dispatch (
    .clk_i, .rst_i, .ctx_i, .ctx_o, .port_i, .state_i, .colour_i,
    .headers_valid_i(headers_valid), .headers_ready_o(headers_ready), .headers_i(headers),
    .request_valid_o, .request_ready_i, .request_o,
    .response_valid_o, .response_ready_i, .response_o,
    .order_valid_o(dispatch_order_valid), .order_ready_i(dispatch_order_ready),
    .order_o(dispatch_order),
    .flush_valid_i, .flush_i, .end_valid_i, .end_i,
    .fence_busy_o, .count_o(dispatch_count_o), .ready_o(dispatch_ready)
  );
  common_fifo #(.WIDTH($bits(roci_pkg::rx_order_t)), .DEPTH(ORDER_ENTRIES)) u_order (
    .clk_i, .rst_i,
    .in_valid_i(dispatch_order_valid), .in_ready_o(dispatch_order_ready), .in_i(dispatch_order),
    .out_valid_o(order_valid), .out_ready_i(order_ready), .out_o(order_bits), .usage_o()
  );
  // judged items through register slices: the judges' logic ends here
  logic [$bits(roci_pkg::rx_item_t)-1:0] responder_bits, requester_bits;
  logic responder_valid, responder_ready, requester_valid, requester_ready;

  // Half the rate does: a packet with an item is 94 bytes of wire at least, 1.9 cycles of wide.
  common_half_slice #(.WIDTH($bits(roci_pkg::rx_item_t))) u_responder_slice (
    .clk_i, .rst_i,
    .in_valid_i(responder_valid_i), .in_ready_o(responder_ready_o), .in_i(responder_i),
    .out_valid_o(responder_valid), .out_ready_i(responder_ready), .out_o(responder_bits)
  );
  common_half_slice #(.WIDTH($bits(roci_pkg::rx_item_t))) u_requester_slice (
    .clk_i, .rst_i,
    .in_valid_i(requester_valid_i), .in_ready_o(requester_ready_o), .in_i(requester_i),
    .out_valid_o(requester_valid), .out_ready_i(requester_ready), .out_o(requester_bits)
  );

  packet_rx_commit u_commit (
    .clk_i, .rst_i,
    .order_valid_i(order_valid), .order_ready_o(order_ready),
    .order_i(roci_pkg::rx_order_t'(order_bits)),
    .responder_valid_i(responder_valid), .responder_ready_o(responder_ready),
    .responder_i(roci_pkg::rx_item_t'(responder_bits)),
    .requester_valid_i(requester_valid), .requester_ready_o(requester_ready),
    .requester_i(roci_pkg::rx_item_t'(requester_bits)),
    .xlat_valid_o, .xlat_ready_i, .xlat_o, .answer_valid_i, .answer_ready_o, .answer_i,
    .cmd_valid_o(verdict_valid), .cmd_ready_i(verdict_ready), .cmd_o(verdict),
    .error_valid_o, .error_ready_i, .error_o, .state_i, .count_o(commit_count_o),
    .ready_o(commit_ready)
  );
  // In narrow the way from the grant of a write back to the judgement would be the chip's longest.
  if (roci_config_pkg::IS_WIDE) begin : gen_cmd
    assign cmd_valid = verdict_valid;
    assign verdict_ready = cmd_ready;
    assign cmd = verdict;
  end else begin : gen_cmd
    logic [$bits(roci_pkg::scatter_cmd_t)-1:0] cmd_bits;
    common_half_slice #(.WIDTH($bits(roci_pkg::scatter_cmd_t))) u_cmd (
      .clk_i, .rst_i,
      .in_valid_i(verdict_valid), .in_ready_o(verdict_ready), .in_i(verdict),
      .out_valid_o(cmd_valid), .out_ready_i(cmd_ready), .out_o(cmd_bits)
    );
    assign cmd = roci_pkg::scatter_cmd_t'(cmd_bits);
  end

  host_scatter u_scatter (
    .clk_i, .rst_i,
    .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_i(cmd),
    .payload_valid_i(payload_valid), .payload_ready_o(payload_ready),
    .payload_i(roci_pkg::beat_t'(payload_bits)),
    .req_valid_o, .req_ready_i, .req_o, .data_valid_o, .data_ready_i, .data_o,
    .atomic_valid_o, .atomic_ready_i, .atomic_o
  );

endmodule

`default_nettype wire
