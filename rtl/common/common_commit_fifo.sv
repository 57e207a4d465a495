// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_commit_fifo: FIFO whose writes become visible in groups, or not at all.
//
// Words are written one by one and stay invisible to the reader until `commit_i`; `rollback_i`
// forgets the words since the last commit. Both count a word written in the same cycle as part of
// the group. So the parts of a packet can be stored while its checks still run.
//
// The memory reads with one cycle of latency into an output register (block RAM); a word is seen
// by the reader two cycles after its commit; the flow is one word per cycle. In one cycle either
// commit_i or rollback_i may be set, not both (asserted).
// A group must fit: with DEPTH uncommitted words write_ready_o stays low for ever. The user keeps
// the largest group below DEPTH.
`default_nettype none

module common_commit_fifo #(
  parameter int unsigned WIDTH = 32,          // bits of a word
  parameter int unsigned DEPTH = 64           // words, a power of two
) (
  input  wire              clk_i,
  input  wire              rst_i,

  input  wire              write_valid_i,
  output logic             write_ready_o,
  input  wire [WIDTH-1:0]  write_i,
  input  wire              commit_i,
  input  wire              rollback_i,

  output logic             read_valid_o,
  input  wire              read_ready_i,
  output logic [WIDTH-1:0] read_o,

  output logic [$clog2(DEPTH):0] usage_o      // words held, committed or not (0..DEPTH + 1)
);

  localparam int unsigned ADDR_BITS = $clog2(DEPTH);
  typedef logic [ADDR_BITS:0] pointer_t;      // one bit more than the address: full or empty

  if (2 ** ADDR_BITS != DEPTH) begin : gen_depth_check
    $error("common_commit_fifo: DEPTH must be a power of two");
  end

  logic [WIDTH-1:0] mem[DEPTH];

  pointer_t write_q, commit_q, read_q;
  logic read_valid_q;

  logic write;
  pointer_t write_next;
  logic fetch;

  assign usage_o = write_q - read_q + pointer_t'(read_valid_q);
  assign write_ready_o = write_q - read_q < pointer_t'(DEPTH);
  assign write = write_valid_i && write_ready_o;
  assign write_next = write_q + pointer_t'(write);

  assign read_valid_o = read_valid_q;
  assign fetch = read_q != commit_q && (!read_valid_q || read_ready_i);

  always_ff @(posedge clk_i) begin
    if (write) begin
      mem[write_q[ADDR_BITS-1:0]] <= write_i;
    end
    if (fetch) begin
      read_o <= mem[read_q[ADDR_BITS-1:0]];
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      write_q <= '0;
      commit_q <= '0;
      read_q <= '0;
      read_valid_q <= 1'b0;
    end else begin
      write_q <= rollback_i ? commit_q : write_next;
      if (commit_i) begin
        commit_q <= write_next;
      end
      if (fetch) begin
        read_q <= read_q + 1'b1;
        read_valid_q <= 1'b1;
      end else if (read_ready_i) begin
        read_valid_q <= 1'b0;
      end
      assert (!(commit_i && rollback_i))
      else $error("common_commit_fifo: commit and rollback in one cycle");
    end
  end

endmodule

`default_nettype wire
