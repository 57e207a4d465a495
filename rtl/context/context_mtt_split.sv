// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_mtt_split: cuts a checked request at the 4 KB boundary of host memory and works out which
// line of the region's page table each part needs.
//
// Pages are at least 4 KB and aligned, so a position's low 12 bits are those of its DMA address, and
// one cut is enough for the at most 4096 bytes of a request. Failures and check_only make one part.
// One part per cycle, one cycle of latency. Neighbours: context_mr_check → here → context_mtt_cache.
`default_nettype none

module context_mtt_split (
  input  wire                     clk_i,
  input  wire                     rst_i,

  input  wire                     checked_valid_i,
  output logic                    checked_ready_o,
  input  roci_pkg::mr_checked_t   checked_i,

  output logic                    part_valid_o,
  input  wire                     part_ready_i,
  output context_pkg::mtt_part_t  part_o
);

  logic second_q;                                      // the first part of the request has gone
  logic [12:0] room;                                   // bytes to the boundary, 1..4096
  logic alone, cut, first;
  logic part_free;

  logic [63:0] addr;
  logic [51:0] page_index;
  context_pkg::mtt_part_t part;

  assign part_free = !part_valid_o || part_ready_i;
  assign room = 13'd4096 - {1'b0, checked_i.addr[11:0]};
  assign alone = checked_i.check_only || checked_i.status != roci_pkg::XLAT_OK;
  assign cut = !alone && checked_i.length > room;
  assign first = cut && !second_q;
  assign checked_ready_o = part_free && !first;

  always_comb begin
    // the second part begins at the boundary
    addr = {checked_i.addr[63:12] + 52'(second_q), second_q ? 12'd0 : checked_i.addr[11:0]};
    page_index = addr[63:12] >> 5'(checked_i.page_shift - 5'd12);    // pages have 4 KB at least

    part.status = checked_i.status;
    part.last = !first;
    part.paged = checked_i.paged && !alone;
    part.fn = checked_i.fn;
    part.length = alone ? checked_i.length : first ? room
                : second_q ? checked_i.length - room : checked_i.length;
    part.addr = addr;
    part.page_shift = checked_i.page_shift;
    part.tag = '{mr: checked_i.mr, incarnation: checked_i.incarnation, line: page_index[51:3]};
    part.page = page_index[2:0];
    // Firmware takes aligned tables only; were one not, a line would still fill its own place alone.
    part.line_address = {checked_i.table_address[63:6] + {9'h0, page_index[51:3]}, 6'h0};
  end

  always_ff @(posedge clk_i) begin
    if (part_free) begin
      part_o <= part;
    end
    if (rst_i) begin
      part_valid_o <= 1'b0;
      second_q <= 1'b0;
    end else if (part_free) begin
      part_valid_o <= checked_valid_i;
      second_q <= checked_valid_i && first;
    end
  end

endmodule

`default_nettype wire
