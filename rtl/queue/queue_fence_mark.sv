// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_fence_mark: the colours of what waits in a FIFO, without a colour bit per item (rule 8).
//
// When the colour flips, all that waits is of the old colour, and it leaves first: counting it down
// tells when the old colour is gone. What comes later counts for the new colour. A fence flips only
// after the old colour was gone everywhere, so two colours are enough.
//
// Neighbours: context_fence; users are queues of object numbers (queue_cq_writer, queue_eq_writer).
`default_nettype none

module queue_fence_mark #(
  parameter int unsigned WIDTH = 8           // bits of the count
) (
  input  wire                          clk_i,
  input  wire                          rst_i,
  input  wire roci_pkg::colour_t       colour_i,
  input  wire [WIDTH-1:0]              waiting_i,   // items that wait now
  input  wire                          leave_i,     // the oldest leaves in this cycle
  output roci_pkg::fence_busy_t        busy_o
);

  roci_pkg::colour_t colour_q;
  logic [WIDTH-1:0] old_q, old;              // items of the old colour, before this cycle's leave

  // The count is exact; the bound makes it heal should a user merge items.
  always_comb begin
    old = colour_i != colour_q || old_q > waiting_i ? waiting_i : old_q;
    busy_o = colour_i ? {waiting_i != old, old != '0} : {old != '0, waiting_i != old};
  end

  always_ff @(posedge clk_i) begin
    colour_q <= colour_i;
    old_q <= leave_i && old != '0 ? old - 1'b1 : old;
    if (rst_i) old_q <= '0;
  end

endmodule

`default_nettype wire
