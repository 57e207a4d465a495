// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_cdc_fifo: stream from one clock to another, any ratio and phase.
//
// Pointers cross as Gray code, of which one bit changes per step, through SYNC_STAGES flip-flops;
// data crosses in a LUT RAM whose words rest while the other side reads them, and leaves by a
// register. Full rate of the slower clock if DEPTH >= 2 * SYNC_STAGES + 4. in_ready_o and
// out_valid_o are pessimistic by the crossing time, never optimistic. An item takes about
// SYNC_STAGES + 2 cycles of out_clk_i.
//
// Reset: both sides together, each by the reset of its own clock (common_reset_sync from one
// source), held for at least SYNC_STAGES + 1 cycles of the slower clock. in_ready_o is low in
// reset.
// Timing constraints (constraints/): from wgray_q to rsync_q and rgray_q to wsync_q a maximum delay
// of one source period and a bus skew of one destination period; mem to out_q likewise.
//
// Does not: tell its usage (it is known on neither side).
// Users: cpu_clk crossing, MAC crossings.
`default_nettype none

module common_cdc_fifo #(
  parameter int unsigned WIDTH = 8,          // bits of an item
  parameter int unsigned DEPTH = 16,         // items, power of two, >= 4
  parameter int unsigned SYNC_STAGES = 2     // flip-flops per crossing, >= 2
) (
  input  wire              in_clk_i,
  input  wire              in_rst_i,         // synchronous to in_clk_i, active high
  input  wire              in_valid_i,
  output logic             in_ready_o,
  input  wire [WIDTH-1:0]  in_i,

  input  wire              out_clk_i,
  input  wire              out_rst_i,        // synchronous to out_clk_i, active high
  output logic             out_valid_o,
  input  wire              out_ready_i,
  output logic [WIDTH-1:0] out_o
);

  localparam int unsigned ADDR_BITS = $clog2(DEPTH);
  localparam int unsigned POINTER_BITS = ADDR_BITS + 1;

  if (DEPTH < 4 || DEPTH != (1 << ADDR_BITS)) $error("%m: DEPTH must be a power of two, >= 4");
  if (SYNC_STAGES < 2) $error("%m: SYNC_STAGES must be at least 2");

  // Gray code of two pointers DEPTH apart differs in the two upper bits.
  localparam logic [POINTER_BITS-1:0] FULL_DIFFERENCE = {2'b11, {ADDR_BITS-1{1'b0}}};

  function automatic logic [POINTER_BITS-1:0] gray(input logic [POINTER_BITS-1:0] binary);
    return binary ^ (binary >> 1);
  endfunction

  (* ram_style = "distributed" *) logic [WIDTH-1:0] mem [DEPTH];

  // in_clk_i
  logic [POINTER_BITS-1:0] wptr_q, wptr_d;
  logic [POINTER_BITS-1:0] wgray_q;
  logic ready_q;
  (* async_reg = "true", shreg_extract = "no" *)
  logic [SYNC_STAGES-1:0][POINTER_BITS-1:0] wsync_q;     // rgray_q, arriving

  // out_clk_i
  logic [POINTER_BITS-1:0] rptr_q, rptr_d;
  logic [POINTER_BITS-1:0] rgray_q;
  logic out_valid_q;
  logic [WIDTH-1:0] out_q;
  (* async_reg = "true", shreg_extract = "no" *)
  logic [SYNC_STAGES-1:0][POINTER_BITS-1:0] rsync_q;     // wgray_q, arriving
  logic load;                                            // an item goes to the output register

  assign in_ready_o = ready_q;
  assign wptr_d = wptr_q + POINTER_BITS'(in_valid_i && ready_q);

  always_ff @(posedge in_clk_i) begin
    if (in_valid_i && ready_q) mem[wptr_q[ADDR_BITS-1:0]] <= in_i;
    wsync_q <= {wsync_q[SYNC_STAGES-2:0], rgray_q};
    if (in_rst_i) begin
      wptr_q <= '0;
      wgray_q <= '0;
      ready_q <= 1'b0;
    end else begin
      wptr_q <= wptr_d;
      wgray_q <= gray(wptr_d);
      ready_q <= gray(wptr_d) != (wsync_q[SYNC_STAGES-1] ^ FULL_DIFFERENCE);
    end
  end

  assign out_valid_o = out_valid_q;
  assign out_o = out_q;
  assign load = rgray_q != rsync_q[SYNC_STAGES-1] && (!out_valid_q || out_ready_i);
  assign rptr_d = rptr_q + POINTER_BITS'(load);

  always_ff @(posedge out_clk_i) begin
    if (load) out_q <= mem[rptr_q[ADDR_BITS-1:0]];
    rsync_q <= {rsync_q[SYNC_STAGES-2:0], wgray_q};
    if (out_rst_i) begin
      rptr_q <= '0;
      rgray_q <= '0;
      out_valid_q <= 1'b0;
    end else begin
      rptr_q <= rptr_d;
      rgray_q <= gray(rptr_d);
      out_valid_q <= load || (out_valid_q && !out_ready_i);
    end
  end

endmodule

`default_nettype wire
