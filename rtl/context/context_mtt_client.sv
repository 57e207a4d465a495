// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_mtt_client: answers one client's parts in order.
//
// Parts come here behind their look-up (context_mtt_cache). Those whose page was there are answers
// already; the others' pages come from the bus, in the order of their parts, each with its own error.
// Both wait in FIFOs until it is their turn. A part that is an answer passes when nobody waits.
// Neighbours: context_mtt_cache ⇄ here → the client.
`default_nettype none

module context_mtt_client #(
  // waiting for their pages; in narrow as many as lines can be under way, in LUT RAM of 16 words
  parameter int unsigned PARTS = (roci_config_pkg::IS_WIDE ? 2 : 1) * roci_config_pkg::MTT_MISSES
) (
  input  wire                        clk_i,
  input  wire                        rst_i,

  output logic                       room_o,             // a part may be looked up in this cycle,
  input  wire                        part_valid_i,       // which comes here in the next one
  input  context_pkg::mtt_looked_t   part_i,

  // pages of the parts that are fetched; always taken
  input  wire                        page_valid_i,
  input  wire                        page_err_i,         // the bus failed: page_i says nothing
  input  wire [context_pkg::PAGE_BITS-1:0] page_i,

  output logic                       rsp_valid_o,
  input  wire                        rsp_ready_i,
  output roci_pkg::xlat_rsp_t        rsp_o
);

  localparam string STYLE = roci_config_pkg::IS_WIDE ? "block" : "distributed";
  localparam int unsigned USAGE_BITS = $clog2(PARTS + 1);

  typedef struct packed {
    logic err;
    logic [context_pkg::PAGE_BITS-1:0] page;
  } page_t;

  context_pkg::mtt_looked_t part;                      // in front, or the one that passes
  page_t page;
  logic [$bits(context_pkg::mtt_looked_t)-1:0] part_bits;
  logic [$bits(page_t)-1:0] page_bits;
  logic part_valid, page_valid, pass, push, take, rsp_free;
  logic [USAGE_BITS-1:0] usage;

  assign pass = part_valid_i && !part_i.fetched && usage == '0 && !rsp_valid_o;
  assign push = part_valid_i && !pass;
  assign rsp_free = !rsp_valid_o || rsp_ready_i;
  assign take = part_valid && (!part.fetched || page_valid) && rsp_free;

  common_fifo #(.WIDTH($bits(context_pkg::mtt_looked_t)), .DEPTH(PARTS), .STYLE(STYLE)) u_parts (
    .clk_i, .rst_i,
    .in_valid_i(push), .in_ready_o(), .in_i(part_i),
    .out_valid_o(part_valid), .out_ready_i(take), .out_o(part_bits), .usage_o(usage)
  );
  common_fifo #(.WIDTH($bits(page_t)), .DEPTH(PARTS), .STYLE(STYLE)) u_pages (
    .clk_i, .rst_i,
    .in_valid_i(page_valid_i), .in_ready_o(), .in_i({page_err_i, page_i}),
    .out_valid_o(page_valid), .out_ready_i(take && part.fetched), .out_o(page_bits), .usage_o()
  );
  assign part = context_pkg::mtt_looked_t'(part_bits);
  assign page = page_t'(page_bits);

  roci_pkg::xlat_rsp_t rsp;
  always_comb begin
    rsp.last = part.last;
    rsp.length = part.length;
    rsp.status = (part.fetched && page.err) ? roci_pkg::XLAT_BUS_ERROR : part.status;
    rsp.addr = part.fetched ? context_pkg::page_position(page.page, part.addr, part.page_shift)
                            : part.addr;
    if (pass) begin
      rsp = '{last: part_i.last, length: part_i.length, status: part_i.status, addr: part_i.addr};
    end
  end

  always_ff @(posedge clk_i) begin
    if (pass || take) begin
      rsp_o <= rsp;
    end
    if (rst_i) begin
      room_o <= 1'b0;
      rsp_valid_o <= 1'b0;
    end else begin
      // three may be on their way that it does not count: of the cycle before, of this and the next
      room_o <= usage <= USAGE_BITS'(PARTS - 3);
      if (pass || take) begin
        rsp_valid_o <= 1'b1;
      end else if (rsp_ready_i) begin
        rsp_valid_o <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert (!(push && usage == USAGE_BITS'(PARTS)))
      else $error("context_mtt_client: no room for a part");
      assert (!(pass && part_valid))
      else $error("context_mtt_client: a part passes others");
    end
  end

endmodule

`default_nettype wire
