// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_atomic with the ordered writer that it works with: the four levels from the test.
`default_nettype none

module responder_atomic_tb (
  input  wire                                   clk_i,
  input  wire                                   rst_i,
  output logic                                  ready_o,
  input  wire [2**roci_config_pkg::FN_BITS-1:0] fn_disabled_i,
  input  wire roci_pkg::state_bcast_t           state_i,
  input  wire                                   atomic_valid_i,
  output logic                                  atomic_ready_o,
  input  wire roci_pkg::atomic_req_t            atomic_i,
  output logic                                  dma_valid_o,
  input  wire                                   dma_ready_i,
  output roci_pkg::dma_read_req_t               dma_o,
  input  wire                                   beat_valid_i,
  output logic                                  beat_ready_o,
  input  wire roci_pkg::read_beat_t             beat_i,
  output logic                                  done_valid_o,
  input  wire                                   done_ready_i,
  output roci_pkg::atomic_done_t                done_o,
  output roci_pkg::fence_busy_t                 fence_busy_o,

  // between the two
  output logic                                  engine_valid_o,
  output logic                                  engine_ready_o,
  output host_pkg::atomic_write_t               engine_o,   // of a token only the tag
  output logic                                  locked_o,

  // levels
  input  wire                                   req_valid_i [4],
  output logic                                  req_ready_o [4],
  input  wire roci_pkg::dma_write_req_t         req_i [4],
  input  wire                                   data_valid_i [4],
  output logic                                  data_ready_o [4],
  input  wire roci_pkg::write_beat_t            data_i [4],
  output logic                                  cqe_room_o,
  input  wire                                   cqe_reserve_i,

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
  input  wire [1:0]                             axi_bresp_i
);
  logic [3:0] req_valid, req_ready, data_valid, data_ready;
  roci_pkg::dma_write_req_t [3:0] req;
  host_pkg::written_t written;
  host_pkg::atomic_write_t engine;
  logic lock, token_valid, token_ready;
  roci_pkg::token_t token;
  logic [8:0] unused;
  roci_pkg::packet_len_t unused_bytes;

  for (genvar l = 0; l < 4; l++) begin : gen_level
    assign req_valid[l] = req_valid_i[l];
    assign req_ready_o[l] = req_ready[l];
    assign req[l] = req_i[l];
    assign data_valid[l] = data_valid_i[l];
    assign data_ready_o[l] = data_ready[l];
  end

  responder_atomic u_dut (
    .clk_i, .rst_i, .ready_o, .state_i,
    .req_valid_i(atomic_valid_i), .req_ready_o(atomic_ready_o), .req_i(atomic_i),
    .dma_valid_o, .dma_ready_i, .dma_o, .beat_valid_i, .beat_ready_o, .beat_i,
    .written_i(written), .lock_o(lock), .locked_i(locked_o),
    .write_valid_o(engine_valid_o), .write_ready_i(engine_ready_o), .write_o(engine),
    .token_valid_i(token_valid), .token_ready_o(token_ready), .token_i(token),
    .done_valid_o, .done_ready_i, .done_o, .fence_busy_o
  );

  host_dma_write u_write (
    .clk_i, .rst_i, .fn_disabled_i,
    .req_valid_i(req_valid), .req_ready_o(req_ready), .req_i(req),
    .data_valid_i(data_valid), .data_ready_o(data_ready), .data_i,
    .atomic_valid_i(engine_valid_o), .atomic_ready_o(engine_ready_o), .atomic_i(engine),
    .lock_i(lock), .locked_o, .written_o(written),
    .cqe_room_o, .cqe_reserve_i, .state_i, .token_o(token),
    .completion_valid_o(unused[0]), .completion_ready_i(1'b1),
    .respond_valid_o(unused[1]), .respond_ready_i(1'b1),
    .ack_event_valid_o(unused[2]), .ack_event_ready_i(1'b1),
    .cqe_done_valid_o(unused[3]), .cqe_done_ready_i(1'b1),
    .eqe_done_valid_o(unused[4]), .eqe_done_ready_i(1'b1),
    .cpu_done_valid_o(unused[5]), .cpu_done_ready_i(1'b1),
    .atomic_done_valid_o(token_valid), .atomic_done_ready_i(token_ready),
    .end_valid_o(unused[6]), .end_colour_o(unused[7]),
    .axi_awvalid_o, .axi_awready_i, .axi_awaddr_o, .axi_awlen_o, .axi_awsize_o, .axi_awburst_o,
    .axi_awuser_o, .axi_wvalid_o, .axi_wready_i, .axi_wdata_o, .axi_wstrb_o, .axi_wlast_o,
    .axi_bvalid_i, .axi_bready_o, .axi_bresp_i,
    .count_bytes_o(unused_bytes), .count_error_o(unused[8])
  );

  assign engine_o = '{is_token: engine.is_token, tag: engine.tag, fn: engine.is_token ? '0 : engine.fn,
                      addr: engine.is_token ? '0 : engine.addr,
                      data: engine.is_token ? '0 : engine.data};

  wire unused_all = &{1'b0, unused, unused_bytes};
endmodule

`default_nettype wire
