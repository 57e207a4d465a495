// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_cq_writer with the ordered writer that it works with: level 0 from the test, level 1 its
// own.
`default_nettype none

module queue_cq_writer_tb (
  input  wire                               clk_i,
  input  wire                               rst_i,
  output logic                              ready_o,
  input  wire roci_pkg::ctx_req_t           ctx_i,
  output roci_pkg::ctx_rsp_t                ctx_o,
  input  wire [47:0]                        clock_i,
  input  wire                               req_valid_i,
  output logic                              req_ready_o,
  input  wire roci_pkg::dma_write_req_t     req_i,
  input  wire                               data_valid_i,
  output logic                              data_ready_o,
  input  wire roci_pkg::write_beat_t        data_i,
  input  wire                               sq_valid_i,
  output logic                              sq_ready_o,
  input  wire roci_pkg::sq_completion_t     sq_i,
  input  wire                               doorbell_valid_i,
  input  wire roci_pkg::doorbell_t          doorbell_i,
  output logic                              event_valid_o,
  input  wire                               event_ready_i,
  output roci_pkg::event_t                  event_o,
  output logic                              error_valid_o,
  input  wire                               error_ready_i,
  output roci_pkg::state_error_t            error_o,
  input  wire roci_pkg::colour_t            colour_i,
  output roci_pkg::fence_busy_t             fence_busy_o,
  output logic                              count_cqe_o,
  output logic                              count_cqe_error_o,
  output logic                              count_cqe_flush_o,
  output logic                              count_overflow_o,
  output logic                              axi_awvalid_o,
  input  wire                               axi_awready_i,
  output roci_pkg::addr_t                   axi_awaddr_o,
  output logic [7:0]                        axi_awlen_o,
  output logic [2:0]                        axi_awsize_o,
  output logic [1:0]                        axi_awburst_o,
  output roci_pkg::fn_t                     axi_awuser_o,
  output logic                              axi_wvalid_o,
  input  wire                               axi_wready_i,
  output logic [roci_pkg::DATA_BITS-1:0]    axi_wdata_o,
  output logic [roci_pkg::DATA_BYTES-1:0]   axi_wstrb_o,
  output logic                              axi_wlast_o,
  input  wire                               axi_bvalid_i,
  output logic                              axi_bready_o,
  input  wire [1:0]                         axi_bresp_i
);
  logic [3:0] req_valid, req_ready, data_valid, data_ready;
  roci_pkg::dma_write_req_t [3:0] req;
  roci_pkg::write_beat_t data [4];
  roci_pkg::token_t token;
  logic [9:0] unused;
  host_pkg::written_t unused_written;
  roci_pkg::packet_len_t unused_bytes;
  logic completion_valid, completion_ready, done_valid, done_ready, room, reserve;

  assign req_valid[0] = req_valid_i;
  assign req[0] = req_i;
  assign req_ready_o = req_ready[0];
  assign data_valid[0] = data_valid_i;
  assign data[0] = data_i;
  assign data_ready_o = data_ready[0];
  assign req_valid[3:2] = '0;
  assign req[3:2] = '0;
  assign data_valid[3:2] = '0;
  assign data[2] = '0;
  assign data[3] = '0;

  queue_cq_writer u_dut (
    .clk_i, .rst_i, .ready_o, .ctx_i, .ctx_o, .clock_i,
    .token_valid_i(completion_valid), .token_ready_o(completion_ready), .token_i(token),
    .sq_valid_i, .sq_ready_o, .sq_i,
    .cqe_room_i(room), .cqe_reserve_o(reserve),
    .req_valid_o(req_valid[1]), .req_ready_i(req_ready[1]), .req_o(req[1]),
    .data_valid_o(data_valid[1]), .data_ready_i(data_ready[1]), .data_o(data[1]),
    .done_valid_i(done_valid), .done_ready_o(done_ready), .done_i(token),
    .doorbell_valid_i, .doorbell_i,
    .event_valid_o, .event_ready_i, .event_o, .error_valid_o, .error_ready_i, .error_o,
    .colour_i, .fence_busy_o,
    .count_cqe_o, .count_cqe_error_o, .count_cqe_flush_o, .count_overflow_o
  );

  host_dma_write u_write (
    .clk_i, .rst_i, .fn_disabled_i('0), .req_valid_i(req_valid), .req_ready_o(req_ready),
    .req_i(req),
    .data_valid_i(data_valid), .data_ready_o(data_ready), .data_i(data),
    .atomic_valid_i(1'b0), .atomic_ready_o(unused[7]), .atomic_i('0), .lock_i(1'b0),
    .locked_o(unused[8]), .written_o(unused_written),
    .cqe_room_o(room), .cqe_reserve_i(reserve), .state_i('0), .token_o(token),
    .completion_valid_o(completion_valid), .completion_ready_i(completion_ready),
    .respond_valid_o(unused[0]), .respond_ready_i(1'b1),
    .ack_event_valid_o(unused[1]), .ack_event_ready_i(1'b1),
    .cqe_done_valid_o(done_valid), .cqe_done_ready_i(done_ready),
    .eqe_done_valid_o(unused[2]), .eqe_done_ready_i(1'b1),
    .cpu_done_valid_o(unused[3]), .cpu_done_ready_i(1'b1),
    .atomic_done_valid_o(unused[9]), .atomic_done_ready_i(1'b1),
    .end_valid_o(unused[4]), .end_colour_o(unused[5]),
    .axi_awvalid_o, .axi_awready_i, .axi_awaddr_o, .axi_awlen_o, .axi_awsize_o, .axi_awburst_o,
    .axi_awuser_o, .axi_wvalid_o, .axi_wready_i, .axi_wdata_o, .axi_wstrb_o, .axi_wlast_o,
    .axi_bvalid_i, .axi_bready_o, .axi_bresp_i, .count_bytes_o(unused_bytes),
    .count_error_o(unused[6])
  );

  wire unused_all = &{1'b0, data_ready[3:2], req_ready[3:2], unused, unused_bytes, unused_written};
endmodule

`default_nettype wire
