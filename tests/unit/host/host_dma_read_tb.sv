// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_dma_read with one port per client.
`default_nettype none

module host_dma_read_tb #(
  parameter int unsigned CLIENTS = 6
) (
  input  wire                                     clk_i,
  input  wire                                     rst_i,
  input  wire [2**roci_config_pkg::FN_BITS-1:0]   fn_disabled_i,
  input  wire                                     req_valid_i [CLIENTS],
  output logic                                    req_ready_o [CLIENTS],
  input  wire roci_pkg::dma_read_req_t            req_i [CLIENTS],
  output logic                                    beat_valid_o [CLIENTS],
  input  wire                                     beat_ready_i [CLIENTS],
  output roci_pkg::read_beat_t                    beat_o [CLIENTS],
  output logic                                    axi_arvalid_o,
  input  wire                                     axi_arready_i,
  output roci_pkg::addr_t                         axi_araddr_o,
  output logic [$clog2(roci_config_pkg::DMA_READS)-1:0] axi_arid_o,
  output logic [7:0]                              axi_arlen_o,
  output logic [2:0]                              axi_arsize_o,
  output logic [1:0]                              axi_arburst_o,
  output roci_pkg::fn_t                           axi_aruser_o,
  input  wire                                     axi_rvalid_i,
  output logic                                    axi_rready_o,
  input  wire [roci_pkg::DATA_BITS-1:0]           axi_rdata_i,
  input  wire [$clog2(roci_config_pkg::DMA_READS)-1:0] axi_rid_i,
  input  wire [1:0]                               axi_rresp_i,
  input  wire                                     axi_rlast_i,
  output roci_pkg::packet_len_t                   count_bytes_o,
  output logic                                    count_error_o
);
  logic [CLIENTS-1:0] req_valid, req_ready, beat_valid, beat_ready;
  roci_pkg::dma_read_req_t [CLIENTS-1:0] req;
  roci_pkg::read_beat_t [CLIENTS-1:0] beat;

  for (genvar c = 0; c < CLIENTS; c++) begin : gen_client
    assign req_valid[c] = req_valid_i[c];
    assign req_ready_o[c] = req_ready[c];
    assign req[c] = req_i[c];
    assign beat_valid_o[c] = beat_valid[c];
    assign beat_ready[c] = beat_ready_i[c];
    assign beat_o[c] = beat[c];
  end

  host_dma_read #(.CLIENTS(CLIENTS)) u_dut (
    .clk_i, .rst_i, .fn_disabled_i,
    .req_valid_i(req_valid), .req_ready_o(req_ready), .req_i(req),
    .beat_valid_o(beat_valid), .beat_ready_i(beat_ready), .beat_o(beat),
    .axi_arvalid_o, .axi_arready_i, .axi_araddr_o, .axi_arid_o, .axi_arlen_o, .axi_arsize_o,
    .axi_arburst_o, .axi_aruser_o,
    .axi_rvalid_i, .axi_rready_o, .axi_rdata_i, .axi_rid_i, .axi_rresp_i, .axi_rlast_i,
    .count_bytes_o, .count_error_o
  );
endmodule

`default_nettype wire
