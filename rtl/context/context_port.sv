// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_port: the tables that belong to the port and are the same for all functions:
// MAC address, GID and P_Key tables, as registers that their readers see all at once.
//
// Written by the firmware over the context bus (columns PORT, GID and PKEY, layouts ctx_port, ctx_gid and
// ctx_pkey in hwif/contexts.toml). A GID takes two words and changes as a whole with the second one: no
// frame leaves with half of one. Its valid bit is written last and taken away first; it is for what is
// received. A queue pair whose path names a GID that was taken away goes on sending with it.
// Does not: match frames (ethernet_rx, packet_rx_dispatch) or choose GIDs (the QP's path does).
`default_nettype none

module context_port (
  input  wire                clk_i,
  input  wire                rst_i,
  input  roci_pkg::ctx_req_t ctx_i,
  output roci_pkg::ctx_rsp_t ctx_o,
  output roci_pkg::port_t    port_o
);

  logic [63:0] low_q;                    // first word of a GID, until the second one comes

  localparam int unsigned PKEY_BITS = $clog2(roci_pkg::PKEYS);

  logic is_gid, is_port, is_pkey, selected;
  roci_pkg::gid_index_t index;
  logic [PKEY_BITS-1:0] pkey_index;
  logic [127:0] gid;                     // of `index`, to be read back

  assign is_gid = ctx_i.column == roci_hwif_pkg::CTX_COLUMN_GID;
  assign is_port = ctx_i.column == roci_hwif_pkg::CTX_COLUMN_PORT;
  assign is_pkey = ctx_i.column == roci_hwif_pkg::CTX_COLUMN_PKEY;
  assign selected = ctx_i.valid && !ctx_o.done && (is_gid || is_port || is_pkey);
  assign index = roci_pkg::gid_index_t'(ctx_i.index);
  assign pkey_index = PKEY_BITS'(ctx_i.index);

  context_gid_copy u_gids (.clk_i, .ctx_i, .index_i(index), .gid_o(gid));

  always_ff @(posedge clk_i) begin
    if (selected && ctx_i.write && is_gid && ctx_i.word == 4'd0) begin
      low_q <= ctx_i.wdata;
    end
    if (selected && ctx_i.write && is_gid && ctx_i.word == 4'd1) begin
      port_o.gid[index] <= {ctx_i.wdata, low_q};
    end
    if (rst_i) begin
      port_o.mac <= '0;
      port_o.pkey <= '0;
      port_o.promiscuous <= 1'b0;
      port_o.gid_valid <= '0;
      ctx_o <= '0;
    end else begin
      if (selected && ctx_i.write && is_gid && ctx_i.word == 4'd2) begin
        port_o.gid_valid[index] <= ctx_i.wdata[0];
      end
      if (selected && ctx_i.write && is_port) begin
        port_o.mac <= ctx_i.wdata[47:0];
        port_o.promiscuous <= ctx_i.wdata[48];
      end
      if (selected && ctx_i.write && is_pkey) begin
        port_o.pkey[pkey_index] <= ctx_i.wdata[15:0];
      end

      ctx_o.done <= selected;
      ctx_o.rdata <= '0;
      if (selected && is_port) begin
        ctx_o.rdata <= 64'({port_o.promiscuous, port_o.mac});
      end else if (selected && is_pkey) begin
        ctx_o.rdata <= 64'(port_o.pkey[pkey_index]);
      end else if (selected) begin
        unique case (ctx_i.word)
          4'd0: ctx_o.rdata <= gid[63:0];
          4'd1: ctx_o.rdata <= gid[127:64];
          default: ctx_o.rdata <= 64'(port_o.gid_valid[index]);
        endcase
      end
    end
  end

endmodule

`default_nettype wire
