// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// roci_top: the NIC at its chip boundary (architecture.md 8). Wiring of its parts, counters.
//
//   roci_control    BAR0, CPU, queue pair states, keys, timers
//   queue_*         send, receive, completion and event queues in host memory
//   requester_*     messages to packets, acknowledgements to completions
//   responder_path  requests of the peer
//   roci_transmit   packets to the MAC        roci_receive   frames from the MAC to memory
//   host_dma_*      the AXI4 master
//
// Boundary: AXI4 master (one write ID, several read IDs, user = function), AXI4-Lite slave for BAR0
// (address = {function, offset}), AXI-Stream to and from an Ethernet MAC (frames without FCS, tuser on
// the last beat = bad), a stream of interrupts. Board parts (PCIe, MAC, PHY) are outside.
// `time_step_i` adds ticks of 4.096 us to all timers at once: the simulator's time skip; 0 on boards.
`default_nettype none

module roci_top #(
  parameter string FIRMWARE = ""                // image for the CPU's memory ($readmemh)
) (
  input  wire                                 clk_i,
  input  wire                                 rst_i,           // synchronous, active high
  input  wire                                 cpu_clk_i,       // core clock, or half of it in narrow

  // BAR0
  input  wire                                 s_axil_awvalid,
  output logic                                s_axil_awready,
  input  wire  [cpu_pkg::BAR_ADDR_BITS-1:0]   s_axil_awaddr,
  input  wire                                 s_axil_wvalid,
  output logic                                s_axil_wready,
  input  wire  [63:0]                         s_axil_wdata,
  input  wire  [7:0]                          s_axil_wstrb,
  output logic                                s_axil_bvalid,
  input  wire                                 s_axil_bready,
  output logic [1:0]                          s_axil_bresp,
  input  wire                                 s_axil_arvalid,
  output logic                                s_axil_arready,
  input  wire  [cpu_pkg::BAR_ADDR_BITS-1:0]   s_axil_araddr,
  output logic                                s_axil_rvalid,
  input  wire                                 s_axil_rready,
  output logic [63:0]                         s_axil_rdata,
  output logic [1:0]                          s_axil_rresp,

  // host memory
  output logic                                m_axi_arvalid,
  input  wire                                 m_axi_arready,
  output logic [63:0]                         m_axi_araddr,
  output logic [$clog2(roci_config_pkg::DMA_READS)-1:0] m_axi_arid,
  output logic [7:0]                          m_axi_arlen,
  output logic [2:0]                          m_axi_arsize,
  output logic [1:0]                          m_axi_arburst,
  output logic [roci_config_pkg::FN_BITS-1:0] m_axi_aruser,
  input  wire                                 m_axi_rvalid,
  output logic                                m_axi_rready,
  input  wire  [roci_pkg::DATA_BITS-1:0]      m_axi_rdata,
  input  wire  [$clog2(roci_config_pkg::DMA_READS)-1:0] m_axi_rid,
  input  wire  [1:0]                          m_axi_rresp,
  input  wire                                 m_axi_rlast,
  output logic                                m_axi_awvalid,
  input  wire                                 m_axi_awready,
  output logic [63:0]                         m_axi_awaddr,
  output logic [7:0]                          m_axi_awlen,
  output logic [2:0]                          m_axi_awsize,
  output logic [1:0]                          m_axi_awburst,
  output logic [roci_config_pkg::FN_BITS-1:0] m_axi_awuser,
  output logic                                m_axi_wvalid,
  input  wire                                 m_axi_wready,
  output logic [roci_pkg::DATA_BITS-1:0]      m_axi_wdata,
  output logic [roci_pkg::DATA_BYTES-1:0]     m_axi_wstrb,
  output logic                                m_axi_wlast,
  input  wire                                 m_axi_bvalid,
  output logic                                m_axi_bready,
  input  wire  [1:0]                          m_axi_bresp,

  // Ethernet MAC
  output logic [roci_pkg::DATA_BITS-1:0]      m_axis_tdata,
  output logic [roci_pkg::DATA_BYTES-1:0]     m_axis_tkeep,
  output logic                                m_axis_tlast,
  output logic                                m_axis_tuser,
  output logic                                m_axis_tvalid,
  input  wire                                 m_axis_tready,
  input  wire  [roci_pkg::DATA_BITS-1:0]      s_axis_tdata,
  input  wire  [roci_pkg::DATA_BYTES-1:0]     s_axis_tkeep,
  input  wire                                 s_axis_tlast,
  input  wire                                 s_axis_tuser,
  input  wire                                 s_axis_tvalid,

  // interrupts
  output logic                                irq_valid,
  input  wire                                 irq_ready,
  output logic [roci_config_pkg::FN_BITS-1:0] irq_fn,
  output logic [roci_config_pkg::VECTOR_BITS-1:0] irq_vector,

  // functions in reset: the bus bridge answers their accesses with errors (architecture.md 9)
  output logic [cpu_pkg::FNS-1:0]             fn_disabled_o,

  // board
  input  wire                                 link_up_i,
  input  wire  [31:0]                         link_mbps_i,
  output logic                                ready_o,         // tables are cleared after reset

  // simulator
  input  wire  [31:0]                         time_step_i,
  output logic                                next_expiry_valid_o,
  output logic [31:0]                         next_expiry_o,   // ticks until the next timer acts
  output logic                                active_o         // something is under way inside
);

  // DMA clients of host_dma_read, levels of host_dma_write
  localparam int unsigned READERS = 6;
  localparam int unsigned READ_PAYLOAD = 0;
  localparam int unsigned READ_WQE = 1;
  localparam int unsigned READ_RQ = 2;
  localparam int unsigned READ_MTT = 3;
  localparam int unsigned READ_CPU = 4;
  localparam int unsigned READ_ATOMIC = 5;
  localparam int unsigned WRITE_SCATTER = 0;
  localparam int unsigned WRITE_CQE = 1;
  localparam int unsigned WRITE_EQE = 2;
  localparam int unsigned WRITE_CPU = 3;
  localparam int unsigned ERRORS = 5;
  localparam int unsigned EVENTS = 5;
  localparam int unsigned UNITS = 11;

  // ----------------------------------------------------------------------- broadcasts, context bus
  roci_pkg::ctx_req_t ctx;
  roci_pkg::ctx_rsp_t ctx_fetch, ctx_packetizer, ctx_ack, ctx_retry, ctx_read, ctx_responder,
                      ctx_rq, ctx_cq, ctx_eq, ctx_transmit, ctx_receive;
  roci_pkg::ctx_rsp_t ctx_outside;
  roci_pkg::state_bcast_t state;
  roci_pkg::rnr_bcast_t rnr;
  roci_pkg::port_t port;
  logic port_enable;
  roci_pkg::colour_t colour;
  logic [63:0] clock;
  logic doorbell_valid;
  roci_pkg::doorbell_t doorbell;
  roci_pkg::ack_state_t ack_state;
  roci_pkg::sent_t sent;
  context_pkg::rewound_t rewound;
  roci_pkg::epoch_bcast_t epoch;

  assign ctx_outside = ctx_fetch | ctx_packetizer | ctx_ack | ctx_retry | ctx_read | ctx_responder
                       | ctx_rq | ctx_cq | ctx_eq | ctx_transmit | ctx_receive;

  logic control_ready, scheduler_ready, fetch_ready, packetizer_ready, ack_ready, retry_ready,
        responder_ready, atomic_unit_ready, rq_ready, cq_ready, eq_ready, transmit_ready,
        receive_ready;
  assign ready_o = control_ready && scheduler_ready && fetch_ready && packetizer_ready && ack_ready
                   && retry_ready && responder_ready && atomic_unit_ready && rq_ready && cq_ready
                   && eq_ready && transmit_ready && receive_ready;

  // ------------------------------------------------------------------------------------- host DMA
  logic [READERS-1:0] read_valid, read_ready, word_valid, word_ready;
  roci_pkg::dma_read_req_t [READERS-1:0] read_req;
  roci_pkg::read_beat_t [READERS-1:0] word;
  logic [3:0] write_valid, write_ready, data_valid, data_ready;
  roci_pkg::dma_write_req_t [3:0] write_req;
  roci_pkg::write_beat_t data [4];
  roci_pkg::token_t token;
  logic completion_token_valid, completion_token_ready, respond_token_valid, respond_token_ready,
        ack_token_valid, ack_token_ready, cqe_done_valid, cqe_done_ready, eqe_done_valid,
        eqe_done_ready, cpu_done_valid, cpu_done_ready, end_valid, cqe_room, cqe_reserve;
  roci_pkg::colour_t end_colour;
  roci_pkg::packet_len_t read_bytes, write_bytes;
  logic read_error, write_error;

  logic atomic_valid, atomic_ready, atomic_write_valid, atomic_write_ready, atomic_lock, atomic_locked,
        atomic_token_valid, atomic_token_ready, atomic_done_valid, atomic_done_ready;
  roci_pkg::atomic_req_t atomic;
  roci_pkg::atomic_done_t atomic_done;
  host_pkg::atomic_write_t atomic_write;
  host_pkg::written_t written;

  host_dma_read u_dma_read (
    .clk_i, .rst_i, .fn_disabled_i(fn_disabled_o),
    .req_valid_i(read_valid), .req_ready_o(read_ready), .req_i(read_req),
    .beat_valid_o(word_valid), .beat_ready_i(word_ready), .beat_o(word),
    .axi_arvalid_o(m_axi_arvalid), .axi_arready_i(m_axi_arready), .axi_araddr_o(m_axi_araddr),
    .axi_arid_o(m_axi_arid), .axi_arlen_o(m_axi_arlen), .axi_arsize_o(m_axi_arsize),
    .axi_arburst_o(m_axi_arburst), .axi_aruser_o(m_axi_aruser),
    .axi_rvalid_i(m_axi_rvalid), .axi_rready_o(m_axi_rready), .axi_rdata_i(m_axi_rdata),
    .axi_rid_i(m_axi_rid), .axi_rresp_i(m_axi_rresp), .axi_rlast_i(m_axi_rlast),
    .count_bytes_o(read_bytes), .count_error_o(read_error)
  );
  host_dma_write u_dma_write (
    .clk_i, .rst_i, .fn_disabled_i(fn_disabled_o),
    .req_valid_i(write_valid), .req_ready_o(write_ready), .req_i(write_req),
    .data_valid_i(data_valid), .data_ready_o(data_ready), .data_i(data),
    .atomic_valid_i(atomic_write_valid), .atomic_ready_o(atomic_write_ready),
    .atomic_i(atomic_write), .lock_i(atomic_lock), .locked_o(atomic_locked), .written_o(written),
    .cqe_room_o(cqe_room), .cqe_reserve_i(cqe_reserve), .state_i(state), .token_o(token),
    .completion_valid_o(completion_token_valid), .completion_ready_i(completion_token_ready),
    .respond_valid_o(respond_token_valid), .respond_ready_i(respond_token_ready),
    .ack_event_valid_o(ack_token_valid), .ack_event_ready_i(ack_token_ready),
    .cqe_done_valid_o(cqe_done_valid), .cqe_done_ready_i(cqe_done_ready),
    .eqe_done_valid_o(eqe_done_valid), .eqe_done_ready_i(eqe_done_ready),
    .cpu_done_valid_o(cpu_done_valid), .cpu_done_ready_i(cpu_done_ready),
    .atomic_done_valid_o(atomic_token_valid), .atomic_done_ready_i(atomic_token_ready),
    .end_valid_o(end_valid), .end_colour_o(end_colour),
    .axi_awvalid_o(m_axi_awvalid), .axi_awready_i(m_axi_awready), .axi_awaddr_o(m_axi_awaddr),
    .axi_awlen_o(m_axi_awlen), .axi_awsize_o(m_axi_awsize), .axi_awburst_o(m_axi_awburst),
    .axi_awuser_o(m_axi_awuser), .axi_wvalid_o(m_axi_wvalid), .axi_wready_i(m_axi_wready),
    .axi_wdata_o(m_axi_wdata), .axi_wstrb_o(m_axi_wstrb), .axi_wlast_o(m_axi_wlast),
    .axi_bvalid_i(m_axi_bvalid), .axi_bready_o(m_axi_bready), .axi_bresp_i(m_axi_bresp),
    .count_bytes_o(write_bytes), .count_error_o(write_error)
  );

  // ---------------------------------------------------------------------------------- send queues
  logic wake_valid, wake_ready, requeue_valid, requeue_ready, pop_valid, pop_ready;
  roci_pkg::qp_t wake, current_qp;
  logic making;
  roci_pkg::sq_requeue_t requeue;
  roci_pkg::sq_pop_t pop;
  roci_pkg::sq_index_t producer;
  logic others_queued, others_fetched, turn;
  logic [1:0] rewind_valid, rewind_ready;        // 0 packetizer, 1 retry
  roci_pkg::rewind_req_t [1:0] rewind;
  logic block_valid, block_ready;
  roci_pkg::wqe_block_t block;
  logic request_valid, request_ready, inflight_valid, inflight_ready, record_valid, record_ready;
  roci_pkg::tx_item_t request_item;
  roci_pkg::inflight_write_t inflight;
  roci_pkg::read_record_write_t record;
  logic local_error_valid, local_error_ready, resent;
  roci_count_pkg::stall_counters_t stalled;
  roci_pkg::local_error_t local_error;
  logic [ERRORS-1:0] error_valid, error_ready;   // 0 ack, 1 packetizer, 2 commit, 3 responder, 4 CQ
  roci_pkg::state_error_t [ERRORS-1:0] error;
  roci_pkg::fence_busy_t fetch_busy, packetizer_busy, ack_busy, retry_busy, transmit_busy,
                         receive_busy, responder_busy, atomic_busy, rq_busy, cq_busy, eq_busy,
                         control_busy;

  queue_sq_scheduler #(.WAKES(1)) u_scheduler (
    .clk_i, .rst_i, .ready_o(scheduler_ready),
    .doorbell_valid_i(doorbell_valid), .doorbell_i(doorbell),
    .wake_valid_i(wake_valid), .wake_ready_o(wake_ready), .wake_i(wake),
    .state_i(state), .rnr_i(rnr),
    .requeue_valid_i(requeue_valid), .requeue_ready_o(requeue_ready), .requeue_i(requeue),
    .pop_valid_o(pop_valid), .pop_ready_i(pop_ready), .pop_o(pop), .producer_o(producer),
    .current_qp_i(current_qp), .others_queued_o(others_queued)
  );
  queue_wqe_fetch u_wqe_fetch (
    .clk_i, .rst_i, .ready_o(fetch_ready), .ctx_i(ctx), .ctx_o(ctx_fetch), .state_i(state),
    .colour_i(colour), .fence_busy_o(fetch_busy),
    .pop_valid_i(pop_valid), .pop_ready_o(pop_ready), .pop_i(pop), .producer_i(producer),
    .requeue_valid_o(requeue_valid), .requeue_ready_i(requeue_ready), .requeue_o(requeue),
    .rewind_valid_i(rewind_valid), .rewind_ready_o(rewind_ready), .rewind_i(rewind),
    .dma_valid_o(read_valid[READ_WQE]), .dma_ready_i(read_ready[READ_WQE]),
    .dma_o(read_req[READ_WQE]), .beat_valid_i(word_valid[READ_WQE]),
    .beat_ready_o(word_ready[READ_WQE]), .beat_i(word[READ_WQE]),
    .block_valid_o(block_valid), .block_ready_i(block_ready), .block_o(block), .epoch_o(epoch),
    .turn_i(turn), .others_fetched_o(others_fetched)
  );
  requester_packetizer u_packetizer (
    .clk_i, .rst_i, .ready_o(packetizer_ready), .ctx_i(ctx), .ctx_o(ctx_packetizer),
    .block_valid_i(block_valid), .block_ready_o(block_ready), .block_i(block), .epoch_i(epoch),
    .turn_o(turn),
    .rewind_valid_o(rewind_valid[0]), .rewind_ready_i(rewind_ready[0]), .rewind_o(rewind[0]),
    .ack_state_i(ack_state), .state_i(state), .rnr_i(rnr), .current_qp_o(current_qp),
    .making_o(making),
    .others_queued_i(others_queued), .others_fetched_i(others_fetched), .colour_i(colour),
    .gid_valid_i(port.gid_valid),
    .item_valid_o(request_valid), .item_ready_i(request_ready), .item_o(request_item),
    .inflight_valid_o(inflight_valid), .inflight_ready_i(inflight_ready), .inflight_o(inflight),
    .read_record_valid_o(record_valid), .read_record_ready_i(record_ready),
    .read_record_o(record), .sent_o(sent),
    .local_error_valid_o(local_error_valid), .local_error_ready_i(local_error_ready),
    .local_error_o(local_error),
    .state_error_valid_o(error_valid[1]), .state_error_ready_i(error_ready[1]),
    .state_error_o(error[1]), .fence_busy_o(packetizer_busy), .resent_o(resent),
    .stalled_o(stalled)
  );

  // ---------------------------------------------------------------------- acknowledgements, retry
  logic refused_request_valid, refused_request_ready, refused_request_stale, refused_response_valid,
        refused_response_ready, done_valid, done_wire, left_valid, underrun_valid, fate_valid;
  roci_pkg::tx_refused_t refused_request, refused_response;
  roci_pkg::tx_done_t done, left, underrun, tx_fate;
  logic tx_drained_valid, tx_drained_ready;
  roci_pkg::qp_t tx_drained;
  logic report_valid, report_ready, rnr_wait_valid, rnr_wait_ready;
  roci_pkg::timer_report_t report;
  roci_pkg::rnr_wait_t rnr_wait;
  logic retry_valid, retry_request_ready, result_valid, result_ready;
  roci_pkg::retry_request_t retry_request;
  roci_pkg::retry_result_t retry_result;
  logic sq_completion_valid, sq_completion_ready;
  roci_pkg::sq_completion_t sq_completion;
  logic [EVENTS-1:0] event_valid, event_ready;   // 0 state, 1 CQ, 2 ack, 3 responder, 4 CPU
  roci_pkg::event_t [EVENTS-1:0] events;
  logic response_valid, response_ready, ack_ignored;
  roci_pkg::rx_packet_t response_packet;
  logic requester_item_valid, requester_item_ready;
  roci_pkg::rx_item_t requester_item;
  roci_pkg::retry_counters_t retry_count;
  roci_pkg::response_counters_t response_count;

  // what became of a packet: its end, or an underrun found later; one at a time
  assign fate_valid = done_valid || underrun_valid;
  assign tx_fate = done_valid ? done : underrun;

  requester_ack u_ack (
    .clk_i, .rst_i, .ctx_i(ctx), .ctx_o(ctx_ack),
    .ack_event_valid_i(ack_token_valid), .ack_event_ready_o(ack_token_ready),
    .ack_event_i('{qp: token.qp, error: token.error,
                   ack_event: roci_pkg::ack_event_t'(token.body)}),
    .inflight_valid_i(inflight_valid), .inflight_ready_o(inflight_ready), .inflight_i(inflight),
    .sent_i(sent), .making_i(making), .making_qp_i(current_qp),
    .local_error_valid_i(local_error_valid),
    .local_error_ready_o(local_error_ready), .local_error_i(local_error),
    .refused_valid_i(refused_request_valid), .refused_ready_o(refused_request_ready),
    .refused_i(refused_request), .refused_stale_o(refused_request_stale),
    .tx_done_valid_i(fate_valid), .tx_done_i(tx_fate),
    .tx_drained_valid_i(tx_drained_valid), .tx_drained_ready_o(tx_drained_ready),
    .tx_drained_i(tx_drained),
    .report_valid_i(report_valid), .report_ready_o(report_ready), .report_i(report),
    .state_i(state), .epoch_i(epoch),
    .retry_valid_o(retry_valid), .retry_ready_i(retry_request_ready), .retry_o(retry_request),
    .result_valid_i(result_valid), .result_ready_o(result_ready), .result_i(retry_result),
    .completion_valid_o(sq_completion_valid), .completion_ready_i(sq_completion_ready),
    .completion_o(sq_completion), .ack_state_o(ack_state),
    .wake_valid_o(wake_valid), .wake_ready_i(wake_ready), .wake_o(wake),
    .state_error_valid_o(error_valid[0]), .state_error_ready_i(error_ready[0]),
    .state_error_o(error[0]), .event_valid_o(event_valid[2]), .event_ready_i(event_ready[2]),
    .event_o(events[2]), .colour_i(colour), .fence_busy_o(ack_busy), .ignored_o(ack_ignored),
    .ready_o(ack_ready)
  );
  requester_retry u_retry (
    .clk_i, .rst_i, .ctx_i(ctx), .ctx_o(ctx_retry),
    .request_valid_i(retry_valid), .request_ready_o(retry_request_ready),
    .request_i(retry_request), .result_valid_o(result_valid), .result_ready_i(result_ready),
    .result_o(retry_result),
    .rewind_valid_o(rewind_valid[1]), .rewind_ready_i(rewind_ready[1]), .rewind_o(rewind[1]),
    .rnr_valid_o(rnr_wait_valid), .rnr_ready_i(rnr_wait_ready), .rnr_o(rnr_wait), .rnr_i(rnr),
    .sent_i(sent), .rewound_o(rewound),
    .fence_busy_o(retry_busy), .counters_o(retry_count), .ready_o(retry_ready)
  );
  requester_read_data u_read_data (
    .clk_i, .rst_i, .ctx_i(ctx), .ctx_o(ctx_read),
    .packet_valid_i(response_valid), .packet_ready_o(response_ready), .packet_i(response_packet),
    .read_record_valid_i(record_valid), .read_record_ready_o(record_ready),
    .read_record_i(record), .item_valid_o(requester_item_valid),
    .item_ready_i(requester_item_ready), .item_o(requester_item), .counters_o(response_count)
  );

  // ------------------------------------------------------------------- responder, receive queues
  logic rx_request_valid, rx_request_ready, pressure, crowded, flush_valid;
  roci_pkg::rx_packet_t rx_request;
  roci_pkg::colour_t flush;
  logic look_valid, take_valid, slot_read, free_valid, free_ready;
  roci_pkg::rq_number_t look_queue;
  roci_pkg::rq_look_t look;
  roci_pkg::rq_entry_t take, free_entry;
  roci_pkg::rq_landed_t landed;
  roci_pkg::slot_word_address_t slot_address, total_slot;
  logic total_read;
  logic [31:0] total;
  logic [roci_pkg::SLOT_WORD_BITS-1:0] slot_data;
  logic responder_item_valid, responder_item_ready, tx_response_valid, tx_response_ready;
  roci_pkg::rx_item_t responder_item;
  roci_pkg::tx_item_t tx_response;
  logic count_wait, count_lost, count_gap, count_duplicate, count_ignored_read;
  logic count_no_receive, count_too_long, count_given_up;

  responder_path u_responder (
    .clk_i, .rst_i, .ctx_i(ctx), .ctx_o(ctx_responder), .state_i(state), .colour_i(colour),
    .packet_valid_i(rx_request_valid), .packet_ready_o(rx_request_ready), .packet_i(rx_request),
    .pressure_i(pressure), .flush_frame_valid_o(flush_valid), .flush_frame_o(flush),
    .look_valid_o(look_valid), .look_queue_o(look_queue), .look_i(look),
    .total_read_o(total_read), .total_slot_o(total_slot), .total_i(total),
    .take_valid_o(take_valid), .take_o(take), .landed_i(landed),
    .slot_read_o(slot_read), .slot_address_o(slot_address), .slot_data_i(slot_data),
    .free_valid_o(free_valid), .free_ready_i(free_ready), .free_o(free_entry),
    .rx_item_valid_o(responder_item_valid), .rx_item_ready_i(responder_item_ready),
    .rx_item_o(responder_item),
    .event_valid_i(respond_token_valid), .event_ready_o(respond_token_ready),
    .event_i('{qp: token.qp, error: token.error,
               info: roci_pkg::respond_event_t'(token.body)}),
    .atomic_done_valid_i(atomic_done_valid), .atomic_done_ready_o(atomic_done_ready),
    .atomic_done_i(atomic_done),
    .tx_item_valid_o(tx_response_valid), .tx_item_ready_i(tx_response_ready),
    .tx_item_o(tx_response), .refused_valid_i(refused_response_valid),
    .refused_ready_o(refused_response_ready), .refused_i(refused_response),
    .done_valid_i(fate_valid), .done_i(tx_fate), .done_wire_i(done_wire),
    .left_valid_i(left_valid), .left_i(left),
    .error_valid_o(error_valid[3]), .error_ready_i(error_ready[3]), .error_o(error[3]),
    .async_valid_o(event_valid[3]), .async_ready_i(event_ready[3]), .async_o(events[3]),
    .count_wait_o(count_wait), .count_lost_o(count_lost), .count_rnr_o(),
    .count_gap_o(count_gap), .count_duplicate_o(count_duplicate),
    .count_ignored_read_o(count_ignored_read), .count_no_receive_o(count_no_receive),
    .count_too_long_o(count_too_long), .count_given_up_o(count_given_up),
    .fence_busy_o(responder_busy), .ready_o(responder_ready)
  );
  responder_atomic u_atomic (
    .clk_i, .rst_i, .ready_o(atomic_unit_ready), .state_i(state),
    .req_valid_i(atomic_valid), .req_ready_o(atomic_ready), .req_i(atomic),
    .dma_valid_o(read_valid[READ_ATOMIC]), .dma_ready_i(read_ready[READ_ATOMIC]),
    .dma_o(read_req[READ_ATOMIC]), .beat_valid_i(word_valid[READ_ATOMIC]),
    .beat_ready_o(word_ready[READ_ATOMIC]), .beat_i(word[READ_ATOMIC]), .written_i(written),
    .lock_o(atomic_lock), .locked_i(atomic_locked), .write_valid_o(atomic_write_valid),
    .write_ready_i(atomic_write_ready), .write_o(atomic_write),
    .token_valid_i(atomic_token_valid), .token_ready_o(atomic_token_ready), .token_i(token),
    .done_valid_o(atomic_done_valid), .done_ready_i(atomic_done_ready), .done_o(atomic_done),
    .fence_busy_o(atomic_busy)
  );
  queue_rq_fetch u_rq_fetch (
    .clk_i, .rst_i, .ctx_i(ctx), .ctx_o(ctx_rq), .doorbell_valid_i(doorbell_valid),
    .doorbell_i(doorbell), .state_i(state), .colour_i(colour),
    .req_valid_o(read_valid[READ_RQ]), .req_ready_i(read_ready[READ_RQ]),
    .req_o(read_req[READ_RQ]), .beat_valid_i(word_valid[READ_RQ]),
    .beat_ready_o(word_ready[READ_RQ]), .beat_i(word[READ_RQ]),
    .look_valid_i(look_valid), .look_queue_i(look_queue), .look_o(look),
    .total_read_i(total_read), .total_slot_i(total_slot), .total_o(total),
    .take_valid_i(take_valid), .take_i(take), .landed_o(landed),
    .slot_read_i(slot_read), .slot_address_i(slot_address), .slot_data_o(slot_data),
    .free_valid_i(free_valid), .free_ready_o(free_ready), .free_i(free_entry),
    .fence_busy_o(rq_busy), .ready_o(rq_ready)
  );

  // ------------------------------------------------------------------------ completions, events
  logic raise_valid, count_cqe, count_cqe_error, count_cqe_flush, count_overflow, count_eqe,
        count_overrun;
  cpu_pkg::irq_raise_t raise, irq;

  queue_cq_writer u_cq_writer (
    .clk_i, .rst_i, .ready_o(cq_ready), .ctx_i(ctx), .ctx_o(ctx_cq), .clock_i(clock[47:0]),
    .token_valid_i(completion_token_valid), .token_ready_o(completion_token_ready),
    .token_i(token), .sq_valid_i(sq_completion_valid), .sq_ready_o(sq_completion_ready),
    .sq_i(sq_completion), .cqe_room_i(cqe_room), .cqe_reserve_o(cqe_reserve),
    .req_valid_o(write_valid[WRITE_CQE]), .req_ready_i(write_ready[WRITE_CQE]),
    .req_o(write_req[WRITE_CQE]), .data_valid_o(data_valid[WRITE_CQE]),
    .data_ready_i(data_ready[WRITE_CQE]), .data_o(data[WRITE_CQE]),
    .done_valid_i(cqe_done_valid), .done_ready_o(cqe_done_ready), .done_i(token),
    .doorbell_valid_i(doorbell_valid), .doorbell_i(doorbell),
    .event_valid_o(event_valid[1]), .event_ready_i(event_ready[1]), .event_o(events[1]),
    .error_valid_o(error_valid[4]), .error_ready_i(error_ready[4]), .error_o(error[4]),
    .colour_i(colour), .fence_busy_o(cq_busy), .count_cqe_o(count_cqe),
    .count_cqe_error_o(count_cqe_error), .count_cqe_flush_o(count_cqe_flush),
    .count_overflow_o(count_overflow)
  );
  queue_eq_writer #(.SOURCES(EVENTS)) u_eq_writer (
    .clk_i, .rst_i, .ready_o(eq_ready), .ctx_i(ctx), .ctx_o(ctx_eq),
    .event_valid_i(event_valid), .event_ready_o(event_ready), .event_i(events),
    .req_valid_o(write_valid[WRITE_EQE]), .req_ready_i(write_ready[WRITE_EQE]),
    .req_o(write_req[WRITE_EQE]), .data_valid_o(data_valid[WRITE_EQE]),
    .data_ready_i(data_ready[WRITE_EQE]), .data_o(data[WRITE_EQE]),
    .done_valid_i(eqe_done_valid), .done_ready_o(eqe_done_ready), .done_i(token),
    .doorbell_valid_i(doorbell_valid), .doorbell_i(doorbell),
    .raise_valid_o(raise_valid), .raise_o(raise),
    .colour_i(colour), .fence_busy_o(eq_busy), .count_eqe_o(count_eqe),
    .count_overrun_o(count_overrun)
  );

  // ------------------------------------------------------------------------------ the two ways
  logic [1:0] xlat_valid, xlat_ready, answer_valid, answer_ready;   // 0 TX, 1 RX
  roci_pkg::xlat_req_t [1:0] xlat;
  roci_pkg::xlat_rsp_t [1:0] answer;
  logic loopback_valid, loopback_ready, aborted;
  roci_pkg::beat_t loopback;
  roci_pkg::rx_side_t loopback_side;
  roci_count_pkg::rx_l2_drop_t l2_drop;
  roci_count_pkg::rx_fate_t fate;
  roci_count_pkg::rx_frame_count_t rx_frames;
  roci_count_pkg::rx_packet_count_t rx_packets;
  roci_count_pkg::rx_commit_count_t committed;
  roci_count_pkg::tx_frame_count_t tx_frames;
  roci_count_pkg::tx_packet_count_t tx_packets;
  roci_count_pkg::rx_dispatch_count_t dispatch_count;

  roci_transmit u_transmit (
    .clk_i, .rst_i, .ready_o(transmit_ready), .ctx_i(ctx), .ctx_o(ctx_transmit), .port_i(port),
    .enable_i(port_enable), .state_i(state), .colour_i(colour),
    .request_valid_i(request_valid), .request_ready_o(request_ready), .request_i(request_item),
    .response_valid_i(tx_response_valid), .response_ready_o(tx_response_ready),
    .response_i(tx_response),
    .xlat_valid_o(xlat_valid[0]), .xlat_ready_i(xlat_ready[0]), .xlat_o(xlat[0]),
    .answer_valid_i(answer_valid[0]), .answer_ready_o(answer_ready[0]), .answer_i(answer[0]),
    .dma_valid_o(read_valid[READ_PAYLOAD]), .dma_ready_i(read_ready[READ_PAYLOAD]),
    .dma_o(read_req[READ_PAYLOAD]), .word_valid_i(word_valid[READ_PAYLOAD]),
    .word_ready_o(word_ready[READ_PAYLOAD]), .word_i(word[READ_PAYLOAD]),
    .refused_request_valid_o(refused_request_valid),
    .refused_request_ready_i(refused_request_ready), .refused_request_o(refused_request),
    .refused_request_stale_i(refused_request_stale),
    .refused_response_valid_o(refused_response_valid),
    .refused_response_ready_i(refused_response_ready), .refused_response_o(refused_response),
    .done_valid_o(done_valid), .done_o(done), .done_wire_o(done_wire), .left_valid_o(left_valid),
    .left_o(left), .underrun_valid_o(underrun_valid),
    .underrun_ready_i(!done_valid), .underrun_o(underrun),
    .drained_valid_o(tx_drained_valid), .drained_ready_i(tx_drained_ready),
    .drained_o(tx_drained),
    .tdata_o(m_axis_tdata), .tkeep_o(m_axis_tkeep), .tlast_o(m_axis_tlast),
    .tuser_o(m_axis_tuser), .tvalid_o(m_axis_tvalid), .tready_i(m_axis_tready),
    .loopback_valid_o(loopback_valid), .loopback_ready_i(loopback_ready),
    .loopback_o(loopback), .loopback_side_o(loopback_side),
    .fence_busy_o(transmit_busy), .aborted_o(aborted), .frame_count_o(tx_frames),
    .packet_count_o(tx_packets)
  );
  roci_receive u_receive (
    .clk_i, .rst_i, .ready_o(receive_ready), .ctx_i(ctx), .ctx_o(ctx_receive), .port_i(port),
    .enable_i(port_enable), .state_i(state), .colour_i(colour),
    .tdata_i(s_axis_tdata), .tkeep_i(s_axis_tkeep), .tlast_i(s_axis_tlast),
    .tuser_i(s_axis_tuser), .tvalid_i(s_axis_tvalid),
    .loopback_valid_i(loopback_valid), .loopback_ready_o(loopback_ready),
    .loopback_i(loopback), .loopback_side_i(loopback_side),
    .request_valid_o(rx_request_valid), .request_ready_i(rx_request_ready),
    .request_o(rx_request), .response_valid_o(response_valid),
    .response_ready_i(response_ready), .response_o(response_packet),
    .responder_valid_i(responder_item_valid), .responder_ready_o(responder_item_ready),
    .responder_i(responder_item), .requester_valid_i(requester_item_valid),
    .requester_ready_o(requester_item_ready), .requester_i(requester_item),
    .xlat_valid_o(xlat_valid[1]), .xlat_ready_i(xlat_ready[1]), .xlat_o(xlat[1]),
    .answer_valid_i(answer_valid[1]), .answer_ready_o(answer_ready[1]), .answer_i(answer[1]),
    .req_valid_o(write_valid[WRITE_SCATTER]), .req_ready_i(write_ready[WRITE_SCATTER]),
    .req_o(write_req[WRITE_SCATTER]), .data_valid_o(data_valid[WRITE_SCATTER]),
    .data_ready_i(data_ready[WRITE_SCATTER]), .data_o(data[WRITE_SCATTER]),
    .atomic_valid_o(atomic_valid), .atomic_ready_i(atomic_ready), .atomic_o(atomic),
    .end_valid_i(end_valid), .end_i(end_colour), .flush_valid_i(flush_valid), .flush_i(flush),
    .error_valid_o(error_valid[2]), .error_ready_i(error_ready[2]), .error_o(error[2]),
    .pressure_o(pressure), .crowded_o(crowded), .fence_busy_o(receive_busy), .l2_drop_o(l2_drop),
    .frame_count_o(rx_frames), .packet_count_o(rx_packets), .commit_count_o(committed),
    .fate_o(fate), .dispatch_count_o(dispatch_count)
  );

  // -------------------------------------------------------------------------------------- control
  logic commands;
  logic [127:0] pulse;
  logic [5:0][13:0] amount;

  roci_control #(.FIRMWARE(FIRMWARE), .ERRORS(ERRORS), .UNITS(UNITS)) u_control (
    .clk_i, .rst_i, .cpu_clk_i, .ready_o(control_ready),
    .axil_awvalid_i(s_axil_awvalid), .axil_awready_o(s_axil_awready),
    .axil_awaddr_i(s_axil_awaddr), .axil_wvalid_i(s_axil_wvalid), .axil_wready_o(s_axil_wready),
    .axil_wdata_i(s_axil_wdata), .axil_wstrb_i(s_axil_wstrb), .axil_bvalid_o(s_axil_bvalid),
    .axil_bready_i(s_axil_bready), .axil_bresp_o(s_axil_bresp),
    .axil_arvalid_i(s_axil_arvalid), .axil_arready_o(s_axil_arready),
    .axil_araddr_i(s_axil_araddr), .axil_rvalid_o(s_axil_rvalid), .axil_rready_i(s_axil_rready),
    .axil_rdata_o(s_axil_rdata), .axil_rresp_o(s_axil_rresp),
    .irq_valid_o(irq_valid), .irq_ready_i(irq_ready), .irq_o(irq),
    .raise_valid_i(raise_valid), .raise_i(raise),
    .ctx_o(ctx), .ctx_i(ctx_outside),
    .doorbell_valid_o(doorbell_valid), .doorbell_o(doorbell), .state_o(state), .rnr_o(rnr),
    .port_o(port), .port_enable_o(port_enable), .colour_o(colour), .clock_o(clock), .fn_disabled_o,
    .error_valid_i(error_valid), .error_ready_o(error_ready), .error_i(error),
    .state_event_valid_o(event_valid[0]), .state_event_ready_i(event_ready[0]),
    .state_event_o(events[0]), .cpu_event_valid_o(event_valid[4]),
    .cpu_event_ready_i(event_ready[4]), .cpu_event_o(events[4]),
    .fence_busy_i({fetch_busy, packetizer_busy, ack_busy, retry_busy, transmit_busy,
                   receive_busy, responder_busy, atomic_busy, rq_busy, cq_busy, eq_busy}),
    .fence_busy_o(control_busy), .commands_o(commands),
    .xlat_valid_i(xlat_valid), .xlat_ready_o(xlat_ready), .xlat_i(xlat),
    .answer_valid_o(answer_valid), .answer_ready_i(answer_ready), .answer_o(answer),
    .ack_state_i(ack_state), .sent_i(sent), .rewound_i(rewound),
    .rnr_valid_i(rnr_wait_valid), .rnr_ready_o(rnr_wait_ready), .rnr_i(rnr_wait),
    .report_valid_o(report_valid), .report_ready_i(report_ready), .report_o(report),
    .time_step_i, .next_expiry_valid_o, .next_expiry_o,
    .mtt_dma_valid_o(read_valid[READ_MTT]), .mtt_dma_ready_i(read_ready[READ_MTT]),
    .mtt_dma_o(read_req[READ_MTT]), .mtt_beat_valid_i(word_valid[READ_MTT]),
    .mtt_beat_ready_o(word_ready[READ_MTT]), .mtt_beat_i(word[READ_MTT]),
    .cpu_dma_valid_o(read_valid[READ_CPU]), .cpu_dma_ready_i(read_ready[READ_CPU]),
    .cpu_dma_o(read_req[READ_CPU]), .cpu_beat_valid_i(word_valid[READ_CPU]),
    .cpu_beat_ready_o(word_ready[READ_CPU]), .cpu_beat_i(word[READ_CPU]),
    .cpu_write_valid_o(write_valid[WRITE_CPU]), .cpu_write_ready_i(write_ready[WRITE_CPU]),
    .cpu_write_o(write_req[WRITE_CPU]), .cpu_data_valid_o(data_valid[WRITE_CPU]),
    .cpu_data_ready_i(data_ready[WRITE_CPU]), .cpu_data_o(data[WRITE_CPU]),
    .cpu_token_valid_i(cpu_done_valid), .cpu_token_ready_o(cpu_done_ready),
    .cpu_token_i(token),
    .link_up_i, .speed_mbps_i(link_mbps_i), .pulse_i(pulse), .amount_i(amount)
  );
  assign irq_fn = irq.fn;
  assign irq_vector = irq.irq_vector;

  // ------------------------------------------------------------------------------------- counters
  always_comb begin
    pulse = '0;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_FRAMES)] = rx_frames.frame;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_ROCE_PACKETS)] = fate.valid
        && fate[$bits(roci_count_pkg::rx_fate_t)-3:0] == '0;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_LOOPBACK_FRAMES)] = fate.valid && fate.loopback;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_MULTICAST_PACKETS)] = rx_packets.multicast;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_ECN_MARKED_PACKETS)] = rx_packets.ecn_marked;
    pulse[7'(roci_hwif_pkg::COUNTER_TX_FRAMES)] = tx_frames.frame;
    pulse[7'(roci_hwif_pkg::COUNTER_TX_ROCE_PACKETS)] = tx_frames.frame;
    pulse[7'(roci_hwif_pkg::COUNTER_TX_MULTICAST_PACKETS)] = tx_frames.multicast;
    pulse[7'(roci_hwif_pkg::COUNTER_TX_LOOPBACK_FRAMES)] = tx_frames.loopback;
    pulse[7'(roci_hwif_pkg::COUNTER_TX_ABORTED_FRAMES)] = aborted;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_FCS)] = l2_drop.fcs || fate.fcs;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_ETHERTYPE)] = l2_drop.ethertype;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_MAC)] = l2_drop.mac;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_VLAN)] = l2_drop.vlan || dispatch_count.vlan;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_IPVER)] = fate.ipver;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_NXTHDR)] = fate.nxthdr;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_PAYLEN)] = fate.paylen;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_OVERSIZE)] = fate.oversize;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_TVER)] = fate.tver;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_GID)] = fate.gid || dispatch_count.gid;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_OPCODE)] = fate.opcode || dispatch_count.opcode;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_DEST_QP)] = fate.dest_qp || dispatch_count.dest_qp;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_ICRC)] = fate.icrc;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_OVERFLOW)] = fate.overflow;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_STATE)] = dispatch_count.state;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_PKEY)] = dispatch_count.pkey;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_QKEY)] = dispatch_count.qkey;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_MAD)] = dispatch_count.mad;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_NO_RECEIVE)] = count_no_receive;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_RECEIVE_LENGTH)] = count_too_long;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_UC_SEQUENCE)] = count_given_up;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_RECEIVE_LATE)] = count_lost;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_WAIT_RECEIVE_CYCLES)] = count_wait;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_BUFFER_CROWDED_CYCLES)] = crowded;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_DUPLICATE_UNKNOWN)] = count_ignored_read;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DUPLICATE_REQUEST)] = count_duplicate;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_OUT_OF_SEQUENCE)] = count_gap;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_AFTER_ERROR)] = committed.rx_drop_after_error;
    pulse[7'(roci_hwif_pkg::COUNTER_REQUESTS_WRITE)] = committed.requests_write;
    pulse[7'(roci_hwif_pkg::COUNTER_REQUESTS_READ)] = committed.requests_read;
    pulse[7'(roci_hwif_pkg::COUNTER_REQUESTS_ATOMIC)] = committed.requests_atomic;
    pulse[7'(roci_hwif_pkg::COUNTER_REQUESTS_SEND)] = committed.requests_send;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_DROP_RESPONSE)] = response_count.rx_drop_response
                                                     || ack_ignored;
    pulse[7'(roci_hwif_pkg::COUNTER_RETRY_TIMEOUT)] = retry_count.retry_timeout;
    pulse[7'(roci_hwif_pkg::COUNTER_RETRY_NAK_SEQUENCE)] = retry_count.retry_nak_sequence;
    pulse[7'(roci_hwif_pkg::COUNTER_RETRY_IMPLIED_NAK)] = retry_count.retry_implied_nak;
    pulse[7'(roci_hwif_pkg::COUNTER_RETRY_RNR)] = retry_count.retry_rnr;
    pulse[7'(roci_hwif_pkg::COUNTER_RETRY_UNDERRUN)] = retry_count.retry_underrun;
    pulse[7'(roci_hwif_pkg::COUNTER_RETRY_ACK_OVERTOOK)] = retry_count.retry_ack_overtook;
    pulse[7'(roci_hwif_pkg::COUNTER_RETRY_PACKETS)] = resent;
    pulse[7'(roci_hwif_pkg::COUNTER_TX_STALL_WINDOW)] = stalled.tx_stall_window;
    pulse[7'(roci_hwif_pkg::COUNTER_TX_STALL_READ)] = stalled.tx_stall_read;
    pulse[7'(roci_hwif_pkg::COUNTER_TX_STALL_FENCE)] = stalled.tx_stall_fence;
    pulse[7'(roci_hwif_pkg::COUNTER_TX_ACK)] = tx_packets.ack;
    pulse[7'(roci_hwif_pkg::COUNTER_TX_NAK_SEQUENCE)] = tx_packets.nak_sequence;
    pulse[7'(roci_hwif_pkg::COUNTER_TX_NAK_RNR)] = tx_packets.nak_rnr;
    pulse[7'(roci_hwif_pkg::COUNTER_TX_NAK_INVALID_REQUEST)] = tx_packets.nak_invalid_request;
    pulse[7'(roci_hwif_pkg::COUNTER_TX_NAK_REMOTE_ACCESS)] = tx_packets.nak_remote_access;
    pulse[7'(roci_hwif_pkg::COUNTER_TX_NAK_REMOTE_OPERATIONAL)] =
        tx_packets.nak_remote_operational;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_ACK)] = response_count.rx_ack;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_NAK_SEQUENCE)] = response_count.rx_nak_sequence;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_NAK_RNR)] = response_count.rx_nak_rnr;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_NAK_INVALID_REQUEST)] = response_count.rx_nak_invalid_request;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_NAK_REMOTE_ACCESS)] = response_count.rx_nak_remote_access;
    pulse[7'(roci_hwif_pkg::COUNTER_RX_NAK_REMOTE_OPERATIONAL)] =
        response_count.rx_nak_remote_operational;
    pulse[7'(roci_hwif_pkg::COUNTER_DMA_READ_ERROR)] = read_error;
    pulse[7'(roci_hwif_pkg::COUNTER_DMA_WRITE_ERROR)] = write_error;
    pulse[7'(roci_hwif_pkg::COUNTER_CQE)] = count_cqe;
    pulse[7'(roci_hwif_pkg::COUNTER_CQE_ERROR)] = count_cqe_error;
    pulse[7'(roci_hwif_pkg::COUNTER_CQE_FLUSH)] = count_cqe_flush;
    pulse[7'(roci_hwif_pkg::COUNTER_CQ_OVERFLOW)] = count_overflow;
    pulse[7'(roci_hwif_pkg::COUNTER_EQE)] = count_eqe;
    pulse[7'(roci_hwif_pkg::COUNTER_EQ_OVERRUN)] = count_overrun;

    // order of host_counters: RX bytes, RX payload, TX bytes, TX payload, DMA read, DMA write
    amount[0] = rx_frames.bytes;
    amount[1] = 14'(rx_packets.payload_bytes);
    amount[2] = tx_frames.bytes;
    amount[3] = 14'(tx_packets.payload_bytes);
    amount[4] = 14'(read_bytes);
    amount[5] = 14'(write_bytes);
  end

  always_ff @(posedge clk_i) begin
    active_o <= !rst_i && (!ready_o || pop_valid || doorbell_valid || commands
                           || (fetch_busy | packetizer_busy | ack_busy | retry_busy | transmit_busy
                               | receive_busy | responder_busy | atomic_busy | rq_busy | cq_busy
                               | eq_busy
                               | control_busy) != '0);
  end

endmodule

`default_nettype wire
