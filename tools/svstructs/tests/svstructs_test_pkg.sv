// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Every construct that tools/svstructs handles. Each *Bits constant is the same value as the one
// above it, packed by slang: the C++ test packs the C++ constant and must get these bits.
`default_nettype none
package svstructs_base_pkg;
  localparam int unsigned Width = 12;
  typedef enum logic [2:0] {
    OpIdle = 0,
    OpRead = 3,
    OpLast = 7
  } op_e;
  typedef logic [23:0] psn_t;
  typedef psn_t start_psn_t;
  typedef struct packed {
    logic             valid;
    logic [Width-1:0] length;
    op_e              op;
  } inner_t;
endpackage

package svstructs_test_pkg;
  import svstructs_base_pkg::inner_t;
  typedef inner_t renamed_t;
  typedef inner_t [1:0] pair_t;
  typedef union packed {
    logic [15:0] raw;
    struct packed {
      logic [7:0] high;
      logic [7:0] low;
    } halves;
  } word_t;
  typedef struct packed {
    pair_t                        pair;      // array of structs through a typedef
    logic [3:0][7:0]              bytes;     // array of vectors
    logic [0:2][19:0]             upward;    // ascending range
    logic [2:0][69:0]             wide_rows; // array of vectors over 64 bits
    logic [1:0][2:0][4:0]         cube;      // two array dimensions
    logic [99:0]                  wide;
    logic [63:0]                  full;
    logic signed [5:0]            delta;
    svstructs_base_pkg::start_psn_t psn;
    struct packed {
      logic       a;
      logic [8:0] b;
    } [1:0]                       anonymous;
    word_t                        word;
    svstructs_base_pkg::op_e [1:0] ops;
    logic                         bits;      // names that the generated code uses itself
    logic                         lsb;
    logic [3:0]                   text;
    logic [3:0]                   pack;
    logic [3:0]                   class_id;
    logic [3:0]                   default_;
    logic                         namespace; // C++ keyword
    renamed_t                     last;
  } outer_t;

  localparam outer_t Sample = '{
    pair: '{'{valid: 1, length: 12'habc, op: svstructs_base_pkg::OpRead},
            '{valid: 0, length: 12'h123, op: svstructs_base_pkg::OpLast}},
    bytes: 32'h04030201,
    upward: {20'haaaaa, 20'hbbbbb, 20'hccccc},
    wide_rows: {70'h3f_0123456789abcdef, 70'h2a_fedcba9876543210, 70'h15_0f1e2d3c4b5a6978},
    cube: {5'd6, 5'd5, 5'd4, 5'd3, 5'd2, 5'd1},
    wide: 100'hf_00112233_44556677_8899aabb,
    full: 64'h8000000000000001,
    delta: -6'sd7,
    psn: 24'hfedcba,
    anonymous: '{'{a: 1, b: 9'h1a5}, '{a: 0, b: 9'h05a}},
    word: 16'hbeef,
    ops: '{svstructs_base_pkg::OpLast, svstructs_base_pkg::OpIdle},
    bits: 1, lsb: 0, text: 4'h9, pack: 4'h5, class_id: 4'h6, default_: 4'h3, namespace: 1,
    last: '{valid: 1, length: 12'h001, op: svstructs_base_pkg::OpIdle}
  };
  localparam logic [$bits(outer_t)-1:0] SampleBits = Sample;

  localparam int                  Negative = -5;
  localparam longint unsigned     Huge = 64'hffff_ffff_ffff_ffff;
  localparam logic [95:0]         Words = 96'h3_00000002_00000001;
  localparam bit                  Flag = 1'b1;
  localparam string               Text = "a \"b\"";
  localparam int unsigned         Table[3] = '{10, 20, 30};
  localparam int unsigned         Down[2:0] = '{10, 20, 30};
  localparam svstructs_base_pkg::op_e Op = svstructs_base_pkg::OpLast;
  localparam inner_t [1:0]        Pair = '{'{1, 2, svstructs_base_pkg::OpRead},
                                           '{0, 4, svstructs_base_pkg::OpLast}};
  typedef struct {
    int x;
  } unpacked_t;  // skipped: no packed layout
endpackage
`default_nettype wire
