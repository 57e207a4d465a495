// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// roci_transmit: the way of a packet from its decision to the MAC, the same for requests and
// responses. Wiring, and counts of decided packets by kind.
//
//   requests ──┐
//              ├► packet_tx_arbiter ► packet_tx_decide ─ descriptors ─► packet_header_build
//   responses ─┘                            └─ pieces ─► host_gather ─ payload ─┘  │
//                                                                   packet_icrc_insert
//                                                                                  │
//                                                   ethernet_loopback ◄─ ethernet_route ─► ethernet_tx
// packet_tx_drain beside it tells when a QP that failed has nothing more on this way.
`default_nettype none

module roci_transmit (
  input  wire                               clk_i,
  input  wire                               rst_i,
  output logic                              ready_o,
  input  roci_pkg::ctx_req_t                ctx_i,
  output roci_pkg::ctx_rsp_t                ctx_o,
  input  roci_pkg::port_t                   port_i,
  input  wire                               enable_i,            // the port sends
  input  roci_pkg::state_bcast_t            state_i,
  input  roci_pkg::colour_t                 colour_i,

  input  wire                               request_valid_i,
  output logic                              request_ready_o,
  input  roci_pkg::tx_item_t                request_i,
  input  wire                               response_valid_i,
  output logic                              response_ready_o,
  input  roci_pkg::tx_item_t                response_i,

  // address check, client TX
  output logic                              xlat_valid_o,
  input  wire                               xlat_ready_i,
  output roci_pkg::xlat_req_t               xlat_o,
  input  wire                               answer_valid_i,
  output logic                              answer_ready_o,
  input  roci_pkg::xlat_rsp_t               answer_i,

  // DMA client payload
  output logic                              dma_valid_o,
  input  wire                               dma_ready_i,
  output roci_pkg::dma_read_req_t           dma_o,
  input  wire                               word_valid_i,
  output logic                              word_ready_o,
  input  roci_pkg::read_beat_t              word_i,

  // what became of the packets
  output logic                              refused_request_valid_o,
  input  wire                               refused_request_ready_i,
  output roci_pkg::tx_refused_t             refused_request_o,
  input  wire                               refused_request_stale_i,  // a cycle later
  output logic                              refused_response_valid_o,
  input  wire                               refused_response_ready_i,
  output roci_pkg::tx_refused_t             refused_response_o,
  output logic                              done_valid_o,        // always accepted
  output roci_pkg::tx_done_t                done_o,
  output logic                              done_wire_o,         // it waits in the MAC's buffer
  output logic                              left_valid_o,        // it left that; always accepted
  output roci_pkg::tx_done_t                left_o,
  output logic                              underrun_valid_o,
  input  wire                               underrun_ready_i,
  output roci_pkg::tx_done_t                underrun_o,

  output logic                              drained_valid_o,     // a QP in ERR has nothing in here
  input  wire                               drained_ready_i,
  output roci_pkg::qp_t                     drained_o,

  // MAC, AXI-Stream
  output logic [roci_pkg::DATA_BITS-1:0]    tdata_o,
  output logic [roci_pkg::DATA_BYTES-1:0]   tkeep_o,
  output logic                              tlast_o,
  output logic                              tuser_o,
  output logic                              tvalid_o,
  input  wire                               tready_i,

  // own frames, to the receive side
  output logic                              loopback_valid_o,
  input  wire                               loopback_ready_i,
  output roci_pkg::beat_t                   loopback_o,
  output roci_pkg::rx_side_t                loopback_side_o,

  output roci_pkg::fence_busy_t             fence_busy_o,
  output logic                              aborted_o,           // pulses for the counters
  output roci_count_pkg::tx_frame_count_t         frame_count_o,
  output roci_count_pkg::tx_packet_count_t        packet_count_o
);

  logic item_valid, item_ready;
  roci_pkg::tx_item_t item;
  logic desc_valid, desc_ready, piece_valid, piece_ready;
  roci_pkg::tx_desc_t desc;
  roci_pkg::gather_piece_t piece;
  logic payload_valid, payload_ready;
  roci_pkg::beat_t payload;
  logic decided, full;
  roci_pkg::fence_busy_t decide_busy, drain_busy;

  packet_tx_arbiter u_arbiter (
    .clk_i, .rst_i, .full_i(full),
    .request_valid_i, .request_ready_o, .request_i,
    .response_valid_i, .response_ready_o, .response_i,
    .item_valid_o(item_valid), .item_ready_i(item_ready), .item_o(item)
  );
  packet_tx_decide u_decide (
    .clk_i, .rst_i,
    .item_valid_i(item_valid), .item_ready_o(item_ready), .item_i(item),
    .full_o(full), .gathered_i(payload_valid && payload_ready),
    .xlat_valid_o, .xlat_ready_i, .xlat_o, .answer_valid_i, .answer_ready_o, .answer_i,
    .desc_valid_o(desc_valid), .desc_ready_i(desc_ready), .desc_o(desc),
    .piece_valid_o(piece_valid), .piece_ready_i(piece_ready), .piece_o(piece),
    .refused_request_valid_o, .refused_request_ready_i, .refused_request_o,
    .refused_request_stale_i,
    .refused_response_valid_o, .refused_response_ready_i, .refused_response_o,
    .state_i, .decided_o(decided), .done_valid_i(done_valid_o), .done_i(done_o),
    .fence_busy_o(decide_busy), .ready_o
  );
  packet_tx_drain u_drain (
    .clk_i, .rst_i, .state_i, .decided_i(decided), .done_valid_i(done_valid_o),
    .drained_valid_o, .drained_ready_i, .drained_o, .colour_i, .fence_busy_o(drain_busy)
  );
  assign fence_busy_o = decide_busy | drain_busy;
  host_gather u_gather (
    .clk_i, .rst_i,
    .piece_valid_i(piece_valid), .piece_ready_o(piece_ready), .piece_i(piece),
    .req_valid_o(dma_valid_o), .req_ready_i(dma_ready_i), .req_o(dma_o),
    .word_valid_i, .word_ready_o, .word_i,
    .beat_valid_o(payload_valid), .beat_ready_i(payload_ready), .beat_o(payload)
  );

  // ------------------------------------------------------------------------------ packet to frame
  logic built_valid, built_ready, whole_valid, whole_ready;
  roci_pkg::beat_t built, whole;
  roci_pkg::packet_side_t built_side, whole_side, routed_side;
  logic wire_valid, wire_ready, own_valid, own_ready;
  roci_pkg::beat_t wire_beat, own_beat;

  packet_header_build u_header_build (
    .clk_i, .rst_i, .ctx_i, .ctx_o, .port_i,
    .desc_valid_i(desc_valid), .desc_ready_o(desc_ready), .desc_i(desc),
    .payload_valid_i(payload_valid), .payload_ready_o(payload_ready), .payload_i(payload),
    .beat_valid_o(built_valid), .beat_ready_i(built_ready), .beat_o(built), .side_o(built_side)
  );
  packet_icrc_insert u_icrc_insert (
    .clk_i, .rst_i,
    .beat_valid_i(built_valid), .beat_ready_o(built_ready), .beat_i(built), .side_i(built_side),
    .beat_valid_o(whole_valid), .beat_ready_i(whole_ready), .beat_o(whole), .side_o(whole_side)
  );
  ethernet_route u_route (
    .clk_i, .rst_i, .port_i, .enable_i,
    .beat_valid_i(whole_valid), .beat_ready_o(whole_ready), .beat_i(whole), .side_i(whole_side),
    .wire_valid_o(wire_valid), .wire_ready_i(wire_ready), .wire_o(wire_beat),
    .loopback_valid_o(own_valid), .loopback_ready_i(own_ready), .loopback_o(own_beat),
    .side_o(routed_side), .done_valid_o, .done_o, .done_wire_o,
    .count_o(frame_count_o)
  );
  ethernet_tx u_ethernet_tx (
    .clk_i, .rst_i,
    .beat_valid_i(wire_valid), .beat_ready_o(wire_ready), .beat_i(wire_beat),
    .side_i(routed_side),
    .tdata_o, .tkeep_o, .tlast_o, .tuser_o, .tvalid_o, .tready_i,
    .underrun_valid_o, .underrun_ready_i, .underrun_o, .left_valid_o, .left_o, .aborted_o
  );
  packet_tx_count u_count (
    .clk_i, .rst_i, .valid_i(desc_valid && desc_ready && enable_i), .desc_i(desc),
    .count_o(packet_count_o)
  );
  ethernet_loopback u_loopback (
    .clk_i, .rst_i,
    .beat_valid_i(own_valid), .beat_ready_o(own_ready), .beat_i(own_beat), .side_i(routed_side),
    .packet_valid_o(loopback_valid_o), .packet_ready_i(loopback_ready_i), .packet_o(loopback_o),
    .side_o(loopback_side_o)
  );

endmodule

`default_nettype wire
