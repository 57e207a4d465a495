// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_fence: tells when nothing that was granted before a point in time is outstanding any more
// (architecture.md rule 8: revoking waits for the granted).
//
// Drives one bit, the colour, to every unit that takes in work. A unit stamps the colour on the work
// at entry, before it looks at any QP or MR state, and reports for each colour whether it still holds
// some. The firmware first revokes (QP to RESET, MPT entry invalid), then writes column FENCE: the
// colour flips, and the fence is over when no unit has shown the old colour for QUIET_CYCLES. Work
// that enters later sees the revoked state, so it need not be waited for.
//
// Limits: one fence at a time (a write while one runs starts another right behind it, which covers
// the later revocations too); it ends in bounded time since every unit drains without help of a peer
// or a program. Between two fences there is always a quiet phase, so one bit of colour is enough.
// Neighbours: the cpu (context bus), all units with a `fence_busy_o`.
`default_nettype none

module context_fence #(
  parameter int unsigned UNITS = 8,             // number of units that report
  parameter int unsigned QUIET_CYCLES = 8       // covers register stages of the reports
) (
  input  wire                              clk_i,
  input  wire                              rst_i,

  // column FENCE, word 0. Write: starts a fence. Read: bit 0 = a fence runs, bits 47:16 = number of
  // fences that have ended since reset.
  input  roci_pkg::ctx_req_t               ctx_i,
  output roci_pkg::ctx_rsp_t               ctx_o,

  input  wire roci_pkg::fence_busy_t [UNITS-1:0] busy_i,
  output roci_pkg::colour_t                colour_o
);

  localparam int unsigned QUIET_BITS = $clog2(QUIET_CYCLES + 1);

  roci_pkg::colour_t colour_q;
  logic running_q;
  logic again_q;                  // another fence was asked for while one runs
  logic [QUIET_BITS-1:0] quiet_q;
  logic [31:0] ended_q;

  logic selected;
  logic start;
  logic old_busy;

  assign colour_o = colour_q;
  assign selected = ctx_i.valid && !ctx_o.done
                    && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_FENCE;
  assign start = selected && ctx_i.write;

  always_comb begin
    old_busy = 1'b0;
    for (int unsigned u = 0; u < UNITS; u++) begin
      old_busy = old_busy | busy_i[u][!colour_q];
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      colour_q <= 1'b0;
      running_q <= 1'b0;
      again_q <= 1'b0;
      quiet_q <= '0;
      ended_q <= '0;
      ctx_o <= '0;
    end else begin
      ctx_o.done <= selected;
      ctx_o.rdata <= selected ? {16'h0, ended_q, 15'h0, running_q} : '0;

      if (!running_q) begin
        if (start || again_q) begin
          running_q <= 1'b1;
          again_q <= 1'b0;
          colour_q <= !colour_q;
          quiet_q <= '0;
        end
      end else begin
        again_q <= again_q || start;
        if (old_busy) begin
          quiet_q <= '0;
        end else if (quiet_q == QUIET_BITS'(QUIET_CYCLES)) begin
          running_q <= 1'b0;
          ended_q <= ended_q + 32'd1;
        end else begin
          quiet_q <= quiet_q + 1'b1;
        end
      end
    end
  end

endmodule

`default_nettype wire
