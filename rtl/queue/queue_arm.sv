// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_arm: decides when an armed CQ or EQ fires.
//
// Keeps per object how many entries are in host memory (committed), the last solicited one, and
// whether and from which index on an event is wanted. ARM fires at once if a matching entry at or
// after its index is in memory already; else the next matching entry that gets there fires. Both go
// through one pipeline, one operation per cycle, so none can slip between the other's look and its
// write (no lost wake-up). A fire disarms. An ARM for any entry is not narrowed by a later one for
// solicited entries (IBTA 11.4.2.2).
//
// Indices run freely modulo 2^INDEX_BITS; rings are shorter than 2^16, and an old "last solicited"
// is moved along so that it never looks new.
// Does not: write events. Neighbours: queue_cq_writer, queue_eq_writer.
`default_nettype none

module queue_arm #(
  parameter int unsigned N = 64,             // objects
  parameter int unsigned INDEX_BITS = 24     // width of indices
) (
  input  wire                    clk_i,
  input  wire                    rst_i,

  // wanted from index on; always accepted
  input  wire                    arm_valid_i,
  input  wire [$clog2(N)-1:0]    arm_object_i,
  input  wire [INDEX_BITS-1:0]   arm_index_i,
  input  wire                    arm_solicited_only_i,

  // entry `index` is in memory, in index order per object
  input  wire                    done_valid_i,
  output logic                   done_ready_o,
  input  wire [$clog2(N)-1:0]    done_object_i,
  input  wire [INDEX_BITS-1:0]   done_index_i,
  input  wire                    done_solicited_i,

  // read a row, or clear it first; the answer comes in the next cycle
  input  wire                    row_valid_i,
  output logic                   row_ready_o,
  input  wire                    row_clear_i,
  input  wire [$clog2(N)-1:0]    row_object_i,
  output logic [INDEX_BITS-1:0]  row_committed_o,
  output logic                   row_armed_o,
  output logic                   row_solicited_only_o,

  // the object fires, for entry `index`; for one cycle, two cycles after its cause
  output logic                   fire_valid_o,
  output logic [$clog2(N)-1:0]   fire_object_o,
  output logic [INDEX_BITS-1:0]  fire_index_o
);

  localparam int unsigned OBJECT_BITS = $clog2(N);

  typedef logic [OBJECT_BITS-1:0] object_t;
  typedef logic [INDEX_BITS-1:0] index_t;

  typedef struct packed {
    index_t committed;                   // entries below are in memory
    index_t last_solicited;              // one past the last solicited one
    index_t wanted;                      // armed: from this index on
    logic armed;
    logic solicited_only;
  } row_t;

  typedef enum logic [1:0] {OP_ARM, OP_DONE, OP_READ, OP_CLEAR} op_e;

  typedef struct packed {
    op_e op;
    object_t object;
    index_t index;
    logic solicited;
  } stage_t;

  stage_t stage0, stage1_q;
  logic valid0, valid1_q;
  row_t row, row_next;
  logic [$bits(row_t)-1:0] row_bits;
  logic fire;

  // True if a is after b.
  function automatic logic after(input index_t a, input index_t b);
    index_t distance;
    distance = a - b;
    return distance != '0 && !distance[INDEX_BITS-1];
  endfunction

  // ---------------------------------------------------------------------------- stage 0: choose
  assign row_ready_o = !arm_valid_i;
  assign done_ready_o = !arm_valid_i && !row_valid_i;
  assign valid0 = arm_valid_i || row_valid_i || done_valid_i;

  always_comb begin
    if (arm_valid_i) begin
      stage0 = '{op: OP_ARM, object: arm_object_i, index: arm_index_i,
                 solicited: arm_solicited_only_i};
    end else if (row_valid_i) begin
      stage0 = '{op: row_clear_i ? OP_CLEAR : OP_READ, object: row_object_i, index: '0,
                 solicited: 1'b0};
    end else begin
      stage0 = '{op: OP_DONE, object: done_object_i, index: done_index_i,
                 solicited: done_solicited_i};
    end
  end

  always_ff @(posedge clk_i) begin
    stage1_q <= stage0;
    valid1_q <= valid0 && !rst_i;
  end

  common_ram_sdp #(
    .WIDTH($bits(row_t)), .DEPTH(N), .LATENCY(1), .BYPASS(1'b1)
  ) u_rows (
    .clk_i,
    .we_i(valid1_q && stage1_q.op != OP_READ), .waddr_i(stage1_q.object), .wdata_i(row_next),
    .re_i(1'b1), .raddr_i(stage0.object), .rdata_o(row_bits)
  );

  // ----------------------------------------------------------------------------- stage 1: decide
  index_t age, latest, fire_index, fire_index_q;
  logic only, fire_valid_q;
  object_t fire_object_q;

  assign row = row_t'(row_bits);
  assign row_committed_o = row.committed;
  assign row_armed_o = row.armed;
  assign row_solicited_only_o = row.solicited_only;

  always_comb begin
    row_next = row;
    fire = 1'b0;
    fire_index = stage1_q.index;
    age = stage1_q.index - row.last_solicited;
    only = stage1_q.solicited && (!row.armed || row.solicited_only);
    latest = only ? row.last_solicited : row.committed;

    unique case (stage1_q.op)
      OP_ARM: begin
        fire = after(latest, stage1_q.index);
        fire_index = latest - 1'b1;
        row_next.armed = !fire;
        row_next.solicited_only = only;
        row_next.wanted = stage1_q.index;
      end
      OP_DONE: begin
        fire = row.armed && (!row.solicited_only || stage1_q.solicited)
               && !after(row.wanted, stage1_q.index);
        row_next.committed = stage1_q.index + 1'b1;
        if (stage1_q.solicited) row_next.last_solicited = stage1_q.index + 1'b1;
        else if (age[INDEX_BITS-2]) begin
          row_next.last_solicited = stage1_q.index - (index_t'(1) << (INDEX_BITS - 3));
        end
        if (fire) row_next.armed = 1'b0;
      end
      OP_CLEAR: row_next = '0;
      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    fire_valid_q <= valid1_q && fire && !rst_i;
    fire_object_q <= stage1_q.object;
    fire_index_q <= fire_index;
  end
  assign fire_valid_o = fire_valid_q;
  assign fire_object_o = fire_object_q;
  assign fire_index_o = fire_index_q;

endmodule

`default_nettype wire
