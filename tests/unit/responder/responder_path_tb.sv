// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The whole responder with its receive queues, as the group test wants it: frames, doorbells and
// host memory on one side, receive items and responses on the other.
`default_nettype none

module responder_path_tb (
  input  wire                                clk_i,
  input  wire                                rst_i,
  input  wire roci_pkg::ctx_req_t            ctx_i,
  output roci_pkg::ctx_rsp_t                 ctx_o,
  input  wire roci_pkg::state_bcast_t        state_i,
  input  wire roci_pkg::colour_t             colour_i,
  input  wire                                packet_valid_i,
  output logic                               packet_ready_o,
  input  wire roci_pkg::rx_packet_t          packet_i,
  input  wire                                pressure_i,
  output logic                               flush_frame_valid_o,
  output roci_pkg::colour_t                  flush_frame_o,
  input  wire                                doorbell_valid_i,
  input  wire roci_pkg::doorbell_t           doorbell_i,
  output logic                               req_valid_o,
  input  wire                                req_ready_i,
  output roci_pkg::dma_read_req_t            req_o,
  input  wire                                beat_valid_i,
  output logic                               beat_ready_o,
  input  wire roci_pkg::read_beat_t          beat_i,
  output logic                               rx_item_valid_o,
  input  wire                                rx_item_ready_i,
  output roci_pkg::rx_item_t                 rx_item_o,
  input  wire                                event_valid_i,
  output logic                               event_ready_o,
  input  wire roci_pkg::respond_token_t      event_i,
  input  wire                                atomic_done_valid_i,
  output logic                               atomic_done_ready_o,
  input  wire roci_pkg::atomic_done_t        atomic_done_i,
  output logic                               tx_item_valid_o,
  input  wire                                tx_item_ready_i,
  output roci_pkg::tx_item_t                 tx_item_o,
  input  wire                                refused_valid_i,
  output logic                               refused_ready_o,
  input  wire roci_pkg::tx_refused_t         refused_i,
  input  wire                                done_valid_i,
  input  wire roci_pkg::tx_done_t            done_i,
  input  wire                                done_wire_i,
  input  wire                                left_valid_i,
  input  wire roci_pkg::tx_done_t            left_i,
  output logic                               error_valid_o,
  input  wire                                error_ready_i,
  output roci_pkg::state_error_t             error_o,
  output logic                               async_valid_o,
  input  wire                                async_ready_i,
  output roci_pkg::event_t                   async_o,
  output logic                               count_wait_o,
  output logic                               count_lost_o,
  output logic                               count_rnr_o,
  output logic                               count_gap_o,
  output logic                               count_duplicate_o,
  output logic                               count_ignored_read_o,
  output logic                               count_no_receive_o,
  output logic                               count_too_long_o,
  output logic                               count_given_up_o,
  output logic                               joined_o,       // a duplicate READ behind another one
  output roci_pkg::qp_t                      joined_qp_o,    // of this queue pair: no search of its own
  output roci_pkg::fence_busy_t              fence_busy_o,
  output logic                               ready_o
);

  roci_pkg::ctx_rsp_t ctx_path, ctx_fetch;
  roci_pkg::fence_busy_t busy_path, busy_fetch;
  logic ready_path, ready_fetch;
  logic look_valid, take_valid, slot_read, free_valid, free_ready;
  roci_pkg::rq_number_t look_queue;
  roci_pkg::rq_look_t look;
  roci_pkg::rq_entry_t take, free_entry;
  roci_pkg::rq_landed_t landed;
  roci_pkg::slot_word_address_t slot_address, total_slot;
  logic total_read;
  logic [31:0] total;
  logic [roci_pkg::SLOT_WORD_BITS-1:0] slot_data;

  assign ctx_o = ctx_path | ctx_fetch;
  assign joined_o = u_path.u_read.search_push && !u_path.u_read.search_new;
  assign joined_qp_o = u_path.u_read.action_i.qp;
  assign fence_busy_o = busy_path | busy_fetch;
  assign ready_o = ready_path && ready_fetch;

  queue_rq_fetch u_fetch (
    .clk_i, .rst_i, .ctx_i, .ctx_o(ctx_fetch), .doorbell_valid_i, .doorbell_i, .state_i, .colour_i,
    .req_valid_o, .req_ready_i, .req_o, .beat_valid_i, .beat_ready_o, .beat_i,
    .look_valid_i(look_valid), .look_queue_i(look_queue), .look_o(look),
    .total_read_i(total_read), .total_slot_i(total_slot), .total_o(total),
    .take_valid_i(take_valid), .take_i(take), .landed_o(landed),
    .slot_read_i(slot_read), .slot_address_i(slot_address), .slot_data_o(slot_data),
    .free_valid_i(free_valid), .free_ready_o(free_ready), .free_i(free_entry),
    .fence_busy_o(busy_fetch), .ready_o(ready_fetch)
  );

  responder_path u_path (
    .clk_i, .rst_i, .ctx_i, .ctx_o(ctx_path), .state_i, .colour_i,
    .packet_valid_i, .packet_ready_o, .packet_i, .pressure_i, .flush_frame_valid_o, .flush_frame_o,
    .look_valid_o(look_valid), .look_queue_o(look_queue), .look_i(look),
    .total_read_o(total_read), .total_slot_o(total_slot), .total_i(total),
    .take_valid_o(take_valid), .take_o(take), .landed_i(landed),
    .slot_read_o(slot_read), .slot_address_o(slot_address), .slot_data_i(slot_data),
    .free_valid_o(free_valid), .free_ready_i(free_ready), .free_o(free_entry),
    .rx_item_valid_o, .rx_item_ready_i, .rx_item_o, .event_valid_i, .event_ready_o, .event_i,
    .atomic_done_valid_i, .atomic_done_ready_o, .atomic_done_i,
    .tx_item_valid_o, .tx_item_ready_i, .tx_item_o,
    .refused_valid_i, .refused_ready_o, .refused_i, .done_valid_i, .done_i, .done_wire_i,
    .left_valid_i, .left_i, .error_valid_o, .error_ready_i, .error_o,
    .async_valid_o, .async_ready_i, .async_o,
    .count_wait_o, .count_lost_o, .count_rnr_o, .count_gap_o, .count_duplicate_o, .count_ignored_read_o,
    .count_no_receive_o, .count_too_long_o, .count_given_up_o,
    .fence_busy_o(busy_path), .ready_o(ready_path)
  );

endmodule

`default_nettype wire
