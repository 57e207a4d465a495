// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_mtt_cache with its client arrays taken apart.
`default_nettype none

module context_mtt_cache_tb (
  input  wire                      clk_i,
  input  wire                      rst_i,
  input  roci_pkg::colour_t        colour_i,
  input  wire                      wrap_i,
  input  wire                      checked0_valid_i,
  output logic                     checked0_ready_o,
  input  roci_pkg::mr_checked_t    checked0_i,
  input  wire                      checked1_valid_i,
  output logic                     checked1_ready_o,
  input  roci_pkg::mr_checked_t    checked1_i,
  output logic                     rsp0_valid_o,
  input  wire                      rsp0_ready_i,
  output roci_pkg::xlat_rsp_t      rsp0_o,
  output logic                     rsp1_valid_o,
  input  wire                      rsp1_ready_i,
  output roci_pkg::xlat_rsp_t      rsp1_o,
  output logic                     dma_valid_o,
  input  wire                      dma_ready_i,
  output roci_pkg::dma_read_req_t  dma_o,
  input  wire                      beat_valid_i,
  output logic                     beat_ready_o,
  input  roci_pkg::read_beat_t     beat_i,
  output roci_pkg::fence_busy_t    fence_busy_o,
  output logic                     hit_o,
  output logic                     miss_o,
  output logic                     ready_o
);
  context_mtt_cache u_dut (
    .clk_i, .rst_i, .colour_i, .wrap_i,
    .checked_valid_i({checked1_valid_i, checked0_valid_i}),
    .checked_ready_o({checked1_ready_o, checked0_ready_o}),
    .checked_i({checked1_i, checked0_i}),
    .rsp_valid_o({rsp1_valid_o, rsp0_valid_o}), .rsp_ready_i({rsp1_ready_i, rsp0_ready_i}),
    .rsp_o({rsp1_o, rsp0_o}),
    .dma_valid_o, .dma_ready_i, .dma_o, .beat_valid_i, .beat_ready_o, .beat_i,
    .fence_busy_o, .hit_o, .miss_o, .ready_o
  );
endmodule

`default_nettype wire
