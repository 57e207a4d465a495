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
  logic [COUNT_BITS-1:0] stored_q, stored_d;   // items in the memory
  logic [COUNT_BITS-1:0] usage_q;      // items in the memory and in the output register
  logic not_full_q;

  logic push, pop, stored_pop;
  logic stored_valid;
  logic [WIDTH-1:0] stored;            // oldest item of the memory

  function automatic logic [ADDR_BITS-1:0] next(input logic [ADDR_BITS-1:0] pointer);
    return 32'(pointer) == DEPTH - 1 ? '0 : pointer + 1'b1;
  endfunction

  assign in_ready_o = not_full_q;
  assign usage_o = usage_q;
  assign push = in_valid_i && in_ready_o;
  assign pop = out_valid_o && out_ready_i;
  assign stored_d = stored_q + COUNT_BITS'(push) - COUNT_BITS'(stored_pop);
  assign rptr_d = stored_pop ? next(rptr_q) : rptr_q;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      wptr_q <= '0;
      rptr_q <= '0;
      stored_q <= '0;
      usage_q <= '0;
      not_full_q <= 1'b0;              // nothing is taken in reset
    end else begin
      if (push) wptr_q <= next(wptr_q);
      rptr_q <= rptr_d;
      stored_q <= stored_d;
      usage_q <= usage_q + COUNT_BITS'(push) - COUNT_BITS'(pop);
      not_full_q <= stored_d != COUNT_BITS'(DEPTH);
    end
  end

  common_ram_sdp #(
    .WIDTH(WIDTH), .DEPTH(DEPTH), .LATENCY(SYNC_READ ? 1 : 0), .BYPASS(1'b0), .STYLE(RAM_STYLE)
  ) u_ram (
    .clk_i,
    .we_i(push), .waddr_i(wptr_q), .wdata_i(in_i),
    .re_i(1'b1), .raddr_i(SYNC_READ ? rptr_d : rptr_q), .rdata_o(stored)
  );

  if (SYNC_READ) begin : gen_sync_read

    // The RAM reads the next oldest word in every cycle. It is there in the next cycle if it was
    // written before this one: an item pushed now collides and counts one cycle later.
    logic stored_valid_q;

    always_ff @(posedge clk_i) begin
      if (rst_i) stored_valid_q <= 1'b0;
      else stored_valid_q <= stored_q != COUNT_BITS'(stored_pop);
    end

    assign stored_valid = stored_valid_q;

  end else begin : gen_async_read

    assign stored_valid = stored_q != '0;

  end

  if (OUTPUT_REG) begin : gen_output_reg

    logic out_valid_q;
    logic [WIDTH-1:0] out_q;

    assign stored_pop = stored_valid && (!out_valid_q || out_ready_i);
    assign out_valid_o = out_valid_q;
    assign out_o = out_q;

    always_ff @(posedge clk_i) begin
      if (!out_valid_q || out_ready_i) begin
        out_valid_q <= stored_valid;
        out_q <= stored;
      end
      if (rst_i) out_valid_q <= 1'b0;
    end

  end else begin : gen_output_direct

    assign stored_pop = pop;
    assign out_valid_o = stored_valid;
    assign out_o = stored;

  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert (32'(stored_q) <= DEPTH);
      assert (stored_q <= usage_q);
      assert (!(stored_pop && stored_q == '0));
    end
  end

endmodule

`default_nettype wire
