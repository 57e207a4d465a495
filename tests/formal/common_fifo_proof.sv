// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Proof of common_fifo: every item comes out once, unchanged, in order; valid and payload are
// stable while stalled; usage and capacity are exact. Items are numbered modulo 16 as they enter
// and leave; one number, any, is watched.
`default_nettype none

module common_fifo_proof #(
  parameter int unsigned DEPTH = 4,
  parameter bit SYNC = 1'b0,               // 1: STYLE block, 0: distributed
  parameter bit OUTPUT_REG = 1'b0
) (
  input wire       clk_i,
  input wire       rst_i,
  input wire       in_valid_i,
  input wire [2:0] in_i,
  input wire       out_ready_i,
  input wire [3:0] watched             // any number, always the same
);
  localparam int unsigned CAPACITY = DEPTH + 32'(OUTPUT_REG);

  logic in_ready, out_valid;
  logic [2:0] out;
  logic [$clog2(CAPACITY+1)-1:0] usage;

  common_fifo #(
    .WIDTH(3), .DEPTH(DEPTH), .STYLE(SYNC ? "block" : "distributed"), .OUTPUT_REG(OUTPUT_REG)
  ) u_dut (
    .clk_i, .rst_i, .in_valid_i, .in_ready_o(in_ready), .in_i,
    .out_valid_o(out_valid), .out_ready_i, .out_o(out), .usage_o(usage)
  );

  logic past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;

  // Numbers of the next items in and out, and the content of the watched one.
  logic [3:0] in_number_q, out_number_q;
  logic [2:0] content_q;
  wire push = in_valid_i && in_ready;
  wire pop = out_valid && out_ready_i;

  always_ff @(posedge clk_i) begin
    if (push && in_number_q == watched) content_q <= in_i;
    in_number_q <= rst_i ? '0 : in_number_q + 4'(push);
    out_number_q <= rst_i ? '0 : out_number_q + 4'(pop);
  end

  // Where the watched item is: `place` items are in front of it.
  wire [3:0] place = watched - out_number_q;
  wire is_inside = place < 4'(usage);

  // State of the block, for the induction.
  wire [3:0] stored = 4'(u_dut.stored_q);
  wire [3:0] wptr = 4'(u_dut.wptr_q);
  wire [3:0] rptr = 4'(u_dut.rptr_q);
  logic in_register;
  logic [2:0] registered;
  if (OUTPUT_REG) begin : gen_register
    assign in_register = out_valid;
    assign registered = out;
  end else begin : gen_none
    assign in_register = 1'b0;
    assign registered = '0;
  end
  wire [4:0] slot = 5'(rptr) + 5'(place) - 5'(in_register);
  wire [4:0] slot_wrapped = slot >= 5'(DEPTH) ? slot - 5'(DEPTH) : slot;
  wire [4:0] wptr_sum = 5'(rptr) + 5'(stored);

  always_ff @(posedge clk_i) begin
    if (!past_q) a_starts_in_reset: assume (rst_i);
    if (past_q) a_constant: assume (watched == $past(watched));
    if (past_q && !$past(rst_i) && $past(in_valid_i) && !$past(in_ready)) begin
      a_in_stable: assume (in_valid_i && in_i == $past(in_i));
    end

    if (past_q && !rst_i) begin
      p_usage: assert (4'(usage) == in_number_q - out_number_q);
      p_capacity: assert (32'(usage) <= CAPACITY);
      if (pop) p_not_from_empty: assert (usage != '0);
      if (pop && out_number_q == watched) p_data: assert (out == content_q);
      if (!in_ready && !$past(rst_i)) p_ready_until_full: assert (stored == 4'(DEPTH));
      if (!$past(rst_i) && $past(out_valid) && !$past(out_ready_i)) begin
        p_stable: assert (out_valid && out == $past(out));
      end

      // How the numbers lie in the memory.
      i_usage: assert (4'(usage) == stored + 4'(in_register));
      i_pointers: assert (rptr < 4'(DEPTH) && wptr < 4'(DEPTH));
      i_between: assert (5'(wptr) == (wptr_sum >= 5'(DEPTH) ? wptr_sum - 5'(DEPTH) : wptr_sum));
      i_full: assert (!(in_ready && stored == 4'(DEPTH)));
      if (is_inside && in_register && place == '0) i_register: assert (registered == content_q);
      if (is_inside && !(in_register && place == '0)) begin
        i_memory: assert (u_dut.u_ram.mem[slot_wrapped[$clog2(DEPTH)-1:0]] == content_q);
      end
    end

    c_full: cover (!rst_i && 32'(usage) == CAPACITY);
    c_wrapped: cover (!rst_i && past_q && out_number_q == 4'(DEPTH + 1));
  end

  if (SYNC) begin : gen_sync
    always_ff @(posedge clk_i) begin
      if (past_q && !rst_i && u_dut.stored_valid_q) begin
        i_read: assert (stored != '0 && u_dut.stored == u_dut.u_ram.mem[u_dut.rptr_q]);
      end
    end
  end

endmodule

`default_nettype wire
