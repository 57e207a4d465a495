// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_dma_write with one port per level.
`default_nettype none

module host_dma_write_tb (
  input  wire                                   clk_i,
  input  wire                                   rst_i,
  input  wire [2**roci_config_pkg::FN_BITS-1:0] fn_disabled_i,
  input  wire                                   req_valid_i [4],
  output logic                                  req_ready_o [4],
  input  wire roci_pkg::dma_write_req_t         req_i [4],
  input  wire                                   data_valid_i [4],
  output logic                                  data_ready_o [4],
  input  wire roci_pkg::write_beat_t            data_i [4],
  input  wire                                   atomic_valid_i,
  output logic                                  atomic_ready_o,
  input  wire host_pkg::atomic_write_t          atomic_i,
  input  wire                                   lock_i,
  output logic                                  locked_o,
  output host_pkg::written_t                    written_o,
  output logic                                  cqe_room_o,
  input  wire                                   cqe_reserve_i,
  input  wire roci_pkg::state_bcast_t           state_i,
  output roci_pkg::token_t                      token_o,
  output logic                                  completion_valid_o,
  input  wire                                   completion_ready_i,
  output logic                                  respond_valid_o,
  input  wire                                   respond_ready_i,
  output logic                                  ack_event_valid_o,
  input  wire                                   ack_event_ready_i,
  output logic                                  cqe_done_valid_o,
  input  wire                                   cqe_done_ready_i,
  output logic                                  eqe_done_valid_o,
  input  wire                                   eqe_done_ready_i,
  output logic                                  cpu_done_valid_o,
  input  wire                                   cpu_done_ready_i,
  output logic                                  atomic_done_valid_o,
  input  wire                                   atomic_done_ready_i,
  output logic                                  end_valid_o,
  output roci_pkg::colour_t                     end_colour_o,
  output logic                                  axi_awvalid_o,
  input  wire                                   axi_awready_i,
  output roci_pkg::addr_t                       axi_awaddr_o,
  output logic [7:0]                            axi_awlen_o,
  output logic [2:0]                            axi_awsize_o,
  output logic [1:0]                            axi_awburst_o,
  output roci_pkg::fn_t                         axi_awuser_o,
  output logic                                  axi_wvalid_o,
  input  wire                                   axi_wready_i,
  output logic [roci_pkg::DATA_BITS-1:0]        axi_wdata_o,
  output logic [roci_pkg::DATA_BYTES-1:0]       axi_wstrb_o,
  output logic                                  axi_wlast_o,
  input  wire                                   axi_bvalid_i,
  output logic                                  axi_bready_o,
  input  wire [1:0]                             axi_bresp_i,
  output roci_pkg::packet_len_t                 count_bytes_o,
  output logic                                  count_error_o
);
  logic [3:0] req_valid, req_ready, data_valid, data_ready;
  roci_pkg::dma_write_req_t [3:0] req;

  for (genvar l = 0; l < 4; l++) begin : gen_level
    assign req_valid[l] = req_valid_i[l];
    assign req_ready_o[l] = req_ready[l];
    assign req[l] = req_i[l];
    assign data_valid[l] = data_valid_i[l];
    assign data_ready_o[l] = data_ready[l];
  end

  host_dma_write u_dut (
    .clk_i, .rst_i, .fn_disabled_i,
    .req_valid_i(req_valid), .req_ready_o(req_ready), .req_i(req),
    .data_valid_i(data_valid), .data_ready_o(data_ready), .data_i,
    .atomic_valid_i, .atomic_ready_o, .atomic_i, .lock_i, .locked_o, .written_o,
    .cqe_room_o, .cqe_reserve_i, .state_i,
    .token_o, .completion_valid_o, .completion_ready_i, .respond_valid_o, .respond_ready_i,
    .ack_event_valid_o, .ack_event_ready_i, .cqe_done_valid_o, .cqe_done_ready_i,
    .eqe_done_valid_o, .eqe_done_ready_i, .cpu_done_valid_o, .cpu_done_ready_i,
    .atomic_done_valid_o, .atomic_done_ready_i, .end_valid_o, .end_colour_o,
    .axi_awvalid_o, .axi_awready_i, .axi_awaddr_o, .axi_awlen_o, .axi_awsize_o, .axi_awburst_o,
    .axi_awuser_o, .axi_wvalid_o, .axi_wready_i, .axi_wdata_o, .axi_wstrb_o, .axi_wlast_o,
    .axi_bvalid_i, .axi_bready_o, .axi_bresp_i, .count_bytes_o, .count_error_o
  );
endmodule

`default_nettype wire
