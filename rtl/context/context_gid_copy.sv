// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_gid_copy: the port's GIDs for a reader that wants one by its index, in LUT RAM.
//
// Watches the writes of column GID on the context bus, as context_port does, and takes over a GID as a
// whole with its second word. A choice among registers would be 128 wide multiplexers in each reader.
// Does not: answer on the context bus, know which GIDs are valid (context_port).
// Users: packet_header_build, packet_rx_dispatch, context_port (to read back).
`default_nettype none

module context_gid_copy (
  input  wire                         clk_i,
  input  roci_pkg::ctx_req_t          ctx_i,      // column GID
  input  wire roci_pkg::gid_index_t   index_i,
  output logic [127:0]                gid_o       // of index_i, in the same cycle, first byte on top
);

  logic [63:0] low_q;                             // first word of a GID, until the second one comes
  logic written;

  // A request stays on the bus until its owner has answered: what is written twice is the same.
  assign written = ctx_i.valid && ctx_i.write && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_GID;

  common_ram_sdp #(
    .WIDTH(128), .DEPTH(roci_pkg::GIDS), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_gids (
    .clk_i,
    .we_i(written && ctx_i.word == 4'd1), .waddr_i(roci_pkg::gid_index_t'(ctx_i.index)),
    .wdata_i({ctx_i.wdata, low_q}),
    .re_i(1'b1), .raddr_i(index_i), .rdata_o(gid_o)
  );

  always_ff @(posedge clk_i) begin
    if (written && ctx_i.word == 4'd0) low_q <= ctx_i.wdata;
  end

endmodule

`default_nettype wire
