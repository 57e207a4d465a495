// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_fifo: first-in first-out buffer between two streams of one clock.
//
// First word falls through: out_o is the oldest item whenever out_valid_o. Holds DEPTH items, and
// one more with OUTPUT_REG. One item in and one out per cycle (STYLE block or ultra: from DEPTH >=
// 4 on). No combinational path from any input to any output.
//
//   read side       from push to out_valid_o     out_o comes from
//   distributed     1 cycle                      LUT RAM
//   block, ultra    2 cycles                     RAM output
//   + OUTPUT_REG    1 more                       register
//
// Does not: drop, peek, or flush except by reset.
// Neighbours: common_ram_sdp (the memory).
`default_nettype none

module common_fifo #(
  parameter int unsigned WIDTH = 8,          // bits of an item
  parameter int unsigned DEPTH = 16,         // items in the memory, >= 2, any number
  parameter string STYLE = "auto",           // distributed, block, ultra; auto = distributed up to
                                             // 64 items, else block
  parameter bit OUTPUT_REG = 1'b0            // register after the memory (for timing)
) (
  input  wire                          clk_i,
  input  wire                          rst_i,        // synchronous, active high: empties

  input  wire                          in_valid_i,
  output logic                         in_ready_o,
  input  wire [WIDTH-1:0]              in_i,

  output logic                         out_valid_o,
  input  wire                          out_ready_i,
  output logic [WIDTH-1:0]             out_o,

  // items inside, 0..DEPTH + OUTPUT_REG
  output logic [$clog2(DEPTH+32'(OUTPUT_REG)+1)-1:0] usage_o
);

  localparam int unsigned ADDR_BITS = $clog2(DEPTH);
  localparam int unsigned COUNT_BITS = $clog2(DEPTH + 32'(OUTPUT_REG) + 1);
  localparam bit SYNC_READ = STYLE == "block" || STYLE == "ultra"
                             || (STYLE == "auto" && DEPTH > 64);
  localparam string RAM_STYLE = STYLE == "auto" ? (SYNC_READ ? "block" : "distributed") : STYLE;

  if (DEPTH < 2) $error("%m: DEPTH must be at least 2");

  logic [ADDR_BITS-1:0] wptr_q, rptr_q, rptr_d;
  logic [COUNT_BITS-1:0] stored_q;     // items in the memory
  logic [COUNT_BITS-1:0] usage_q;      // items in the memory and in the output register
  logic not_full_q, not_full_d;
  logic stored_valid_q;                // the memory shows its oldest item

  logic push, pop, stored_pop;
  logic [WIDTH-1:0] stored;            // oldest item of the memory

  function automatic logic [ADDR_BITS-1:0] next(input logic [ADDR_BITS-1:0] pointer);
    return 32'(pointer) == DEPTH - 1 ? '0 : pointer + 1'b1;
  endfunction

  // One adder: up, or down (all ones); the caller keeps the count if nothing or both happens.
  function automatic logic [COUNT_BITS-1:0] step(input logic [COUNT_BITS-1:0] count,
                                                 input logic up);
    return count + {{(COUNT_BITS - 1){!up}}, 1'b1};
  endfunction

  assign in_ready_o = not_full_q;
  assign usage_o = usage_q;
  assign push = in_valid_i && in_ready_o;
  assign pop = out_valid_o && out_ready_i;
  // From registers, not from the new count: these two flags are where most users' paths begin.
  assign not_full_d = stored_q == COUNT_BITS'(DEPTH)
      ? stored_pop : !(stored_q == COUNT_BITS'(DEPTH - 1) && push && !stored_pop);
  assign rptr_d = stored_pop ? next(rptr_q) : rptr_q;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      wptr_q <= '0;
      rptr_q <= '0;
      stored_q <= '0;
      not_full_q <= 1'b0;              // nothing is taken in reset
    end else begin
      if (push) wptr_q <= next(wptr_q);
      rptr_q <= rptr_d;
      if (push != stored_pop) stored_q <= step(stored_q, push);
      not_full_q <= not_full_d;
    end
  end

  common_ram_sdp #(
    .WIDTH(WIDTH), .DEPTH(DEPTH), .LATENCY(SYNC_READ ? 1 : 0), .BYPASS(1'b0), .STYLE(RAM_STYLE)
  ) u_ram (
    .clk_i,
    .we_i(push), .waddr_i(wptr_q), .wdata_i(in_i),
    .re_i(1'b1), .raddr_i(SYNC_READ ? rptr_d : rptr_q), .rdata_o(stored)
  );

  // The next oldest word is read in every cycle. With a synchronous read it is there in the next cycle
  // if it was written before this one: an item pushed in this cycle collides and counts one later.
  always_ff @(posedge clk_i) begin
    if (rst_i) stored_valid_q <= 1'b0;
    else stored_valid_q <= (push && !SYNC_READ)
                           || (stored_pop ? stored_q != COUNT_BITS'(1) : stored_q != '0);
  end

  if (OUTPUT_REG) begin : gen_output_reg

    logic out_valid_q;
    logic [WIDTH-1:0] out_q;

    logic [COUNT_BITS-1:0] all_q;

    assign stored_pop = stored_valid_q && (!out_valid_q || out_ready_i);
    assign out_valid_o = out_valid_q;
    assign out_o = out_q;
    assign usage_q = all_q;

    always_ff @(posedge clk_i) begin
      if (!out_valid_q || out_ready_i) begin
        out_valid_q <= stored_valid_q;
        out_q <= stored;
      end
      if (push != pop) all_q <= step(all_q, push);
      if (rst_i) begin
        out_valid_q <= 1'b0;
        all_q <= '0;
      end
    end

  end else begin : gen_output_direct

    assign stored_pop = pop;
    assign out_valid_o = stored_valid_q;
    assign out_o = stored;
    assign usage_q = stored_q;

  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert (32'(stored_q) <= DEPTH);
      assert (stored_q <= usage_q);
      assert (!(stored_pop && stored_q == '0));
      if (!SYNC_READ) assert (stored_valid_q == (stored_q != '0));
    end
  end

endmodule

`default_nettype wire
