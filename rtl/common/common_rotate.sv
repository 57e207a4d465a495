// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_rotate: rotates a word by a number of lanes, pipelined.
//
//   UP = 0: output lane i = input lane (i + amount) mod LANES   (brings lane `amount` to lane 0)
//   UP = 1: output lane (i + amount) mod LANES = input lane i   (brings lane 0 to lane `amount`)
//
// A lane has LANE_BITS bits: 8 for bytes, 32 where all offsets are multiples of 4. Levels of 4:1
// multiplexers (one LUT6 each), half as many as amount has bits; REGS registers are spread over
// them, the last one at the output. One item per cycle; latency REGS cycles; user bits go along.
// out_ready_i to in_ready_o and to the clock enables is combinational.
//
// Does not: mask or merge; lanes that leave at one end come in at the other.
// Users: host_gather, host_scatter, header insertion and removal.
`default_nettype none

module common_rotate #(
  parameter int unsigned LANES = 64,         // power of two, >= 2
  parameter int unsigned LANE_BITS = 8,      // bits of a lane
  parameter int unsigned REGS = 1,           // register stages, 0..ceil(log2(LANES)/2)
  parameter bit UP = 1'b0,                   // direction, see above
  parameter int unsigned USER_BITS = 1       // bits that travel with the word
) (
  input  wire                             clk_i,
  input  wire                             rst_i,         // synchronous, active high

  input  wire                             in_valid_i,
  output logic                            in_ready_o,
  input  wire [LANES*LANE_BITS-1:0]       in_data_i,
  input  wire [$clog2(LANES)-1:0]         in_amount_i,   // lanes
  input  wire [USER_BITS-1:0]             in_user_i,

  output logic                            out_valid_o,
  input  wire                             out_ready_i,
  output logic [LANES*LANE_BITS-1:0]      out_data_o,
  output logic [USER_BITS-1:0]            out_user_o
);

  localparam int unsigned DATA_BITS = LANES * LANE_BITS;
  localparam int unsigned AMOUNT_BITS = $clog2(LANES);
  localparam int unsigned LEVELS = (AMOUNT_BITS + 1) / 2;

  if (LANES < 2 || LANES != (1 << AMOUNT_BITS)) $error("%m: LANES must be a power of two");
  if (REGS > LEVELS) $error("%m: more REGS than multiplexer levels");

  logic out_valid;                     // = out_valid_o
  logic advance;                       // the whole pipeline moves

  assign advance = out_ready_i || !out_valid;
  assign in_ready_o = REGS == 0 ? out_ready_i : advance;

  for (genvar l = 0; l < LEVELS; l++) begin : gen_level

    // This level rotates by 0..3 times 4^l lanes; the last one of an odd number of bits by 0..1.
    localparam int unsigned STEP = LANE_BITS << (2 * l);
    localparam bit TWO_BITS = 2 * l + 1 < AMOUNT_BITS;
    localparam bit REGISTERED = ((l + 1) * REGS) / LEVELS != (l * REGS) / LEVELS;
    // Cut points of the three rotations, as down-rotations in bits, never 0.
    localparam int unsigned CUT1 = UP ? DATA_BITS - STEP : STEP;
    localparam int unsigned CUT2 = TWO_BITS ? (UP ? DATA_BITS - 2 * STEP : 2 * STEP) : STEP;
    localparam int unsigned CUT3 = TWO_BITS ? (UP ? DATA_BITS - 3 * STEP : 3 * STEP) : STEP;

    // What comes in, what the multiplexers make of it, what goes to the next level.
    logic from_valid, valid;
    logic [DATA_BITS-1:0] from_data, rotated, data;
    logic [AMOUNT_BITS-1:0] from_amount, amount;
    logic [USER_BITS-1:0] from_user, user;

    if (l == 0) begin : gen_first
      assign from_valid = in_valid_i;
      assign from_data = in_data_i;
      assign from_amount = in_amount_i;
      assign from_user = in_user_i;
    end else begin : gen_next
      assign from_valid = gen_level[l-1].valid;
      assign from_data = gen_level[l-1].data;
      assign from_amount = gen_level[l-1].amount;
      assign from_user = gen_level[l-1].user;
    end

    logic [1:0] select;
    assign select = {TWO_BITS && from_amount[TWO_BITS ? 2*l+1 : 2*l], from_amount[2*l]};

    always_comb begin
      unique case (select)
        2'd0: rotated = from_data;
        2'd1: rotated = {from_data[CUT1-1:0], from_data[DATA_BITS-1:CUT1]};
        2'd2: rotated = {from_data[CUT2-1:0], from_data[DATA_BITS-1:CUT2]};
        2'd3: rotated = {from_data[CUT3-1:0], from_data[DATA_BITS-1:CUT3]};
      endcase
    end

    if (REGISTERED) begin : gen_register
      always_ff @(posedge clk_i) begin
        if (advance) begin
          valid <= from_valid;
          data <= rotated;
          amount <= from_amount;
          user <= from_user;
        end
        if (rst_i) valid <= 1'b0;
      end
    end else begin : gen_wire
      assign valid = from_valid;
      assign data = rotated;
      assign amount = from_amount;
      assign user = from_user;
    end
  end

  assign out_valid = gen_level[LEVELS-1].valid;
  assign out_valid_o = out_valid;
  assign out_data_o = gen_level[LEVELS-1].data;
  assign out_user_o = gen_level[LEVELS-1].user;

  // The last level's amount is only carried along; clock and reset rest when REGS = 0.
  wire unused = &{1'b0, gen_level[LEVELS-1].amount, clk_i, rst_i};

endmodule

`default_nettype wire
