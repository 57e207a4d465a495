// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_ram_cleared: common_ram_sdp whose words are all zero after reset.
//
// A sweeper writes zero to one word per cycle after reset, then ready_o rises and stays. Until then
// the user must not write (asserted) and must not use what it reads.
//
// Does not: clear during operation.
// Neighbours: common_ram_sdp (the RAM); users are tables whose entries must read as "not valid".
`default_nettype none

module common_ram_cleared #(
  parameter int unsigned WIDTH = 64,         // as in common_ram_sdp
  parameter int unsigned DEPTH = 512,
  parameter int unsigned GRANULE = WIDTH,
  parameter int unsigned LATENCY = 1,
  parameter bit BYPASS = 1'b1,
  parameter string STYLE = "auto"
) (
  input  wire                     clk_i,
  input  wire                     rst_i,         // synchronous, active high: clears again

  output logic                    ready_o,       // all words are zero or written by the user

  // write port
  input  wire [WIDTH/GRANULE-1:0] we_i,
  input  wire [$clog2(DEPTH)-1:0] waddr_i,
  input  wire [WIDTH-1:0]         wdata_i,

  // read port
  input  wire                     re_i,
  input  wire [$clog2(DEPTH)-1:0] raddr_i,
  output logic [WIDTH-1:0]        rdata_o
);

  localparam int unsigned ADDR_BITS = $clog2(DEPTH);

  logic ready_q;
  logic [ADDR_BITS-1:0] sweep_q;       // next word to clear

  logic [WIDTH/GRANULE-1:0] we;
  logic [ADDR_BITS-1:0] waddr;
  logic [WIDTH-1:0] wdata;

  assign ready_o = ready_q;

  always_comb begin
    we = ready_q ? we_i : '1;
    waddr = ready_q ? waddr_i : sweep_q;
    wdata = ready_q ? wdata_i : '0;
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      ready_q <= 1'b0;
      sweep_q <= '0;
    end else if (!ready_q) begin
      ready_q <= sweep_q == ADDR_BITS'(DEPTH - 1);
      sweep_q <= sweep_q + 1'b1;
    end
  end

  common_ram_sdp #(
    .WIDTH(WIDTH), .DEPTH(DEPTH), .GRANULE(GRANULE), .LATENCY(LATENCY), .BYPASS(BYPASS),
    .STYLE(STYLE)
  ) u_ram (
    .clk_i, .we_i(we), .waddr_i(waddr), .wdata_i(wdata), .re_i, .raddr_i, .rdata_o
  );

  always_ff @(posedge clk_i) begin
    if (!rst_i && !ready_q) assert (we_i == '0);
  end

endmodule

`default_nettype wire
