// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_pkg: which extended headers an opcode has (wire.md 1.3, 1.4), for the receive checks and the
// header parser. XRC opcodes are known so that they are counted as what they are; no QP takes them.
`default_nettype none

package packet_pkg;

  // bytes of the longest headers of a packet: GRH, BTH, XRCETH + AtomicETH
  localparam int unsigned GRH_BYTES = 40;
  localparam int unsigned BTH_BYTES = 12;
  localparam int unsigned ICRC_BYTES = 4;
  // the largest packet, GRH to ICRC: WRITE_ONLY of 4096 bytes with RETH, ImmDt and XRCETH (wire.md 1)
  localparam int unsigned PACKET_BYTES = GRH_BYTES + BTH_BYTES + 4 + 16 + 4 + 4096 + ICRC_BYTES;

  typedef struct packed {
    logic known;
    logic xrc;                       // XRCETH in front (requests of XRC)
    logic deth;
    logic reth;
    logic aeth;
    logic imm;                       // ImmDt or IETH
    logic atomic;
    logic atomic_ack;
    logic [5:0] bytes;               // of all extended headers
    logic [5:0] parsed_bytes;        // of those that become fields; operands and results of atomics are
                                     // moved like a payload
  } opcode_info_t;

  function automatic opcode_info_t opcode_info(input logic [7:0] opcode);
    opcode_info_t info;
    logic [4:0] op;
    logic rc_class, uc_class, ud_class, xrc_class;
    op = opcode[4:0];
    rc_class = opcode[7:5] == 3'd0;
    uc_class = opcode[7:5] == 3'd1;
    ud_class = opcode[7:5] == 3'd3;
    xrc_class = opcode[7:5] == 3'd5;

    info = '0;
    info.known = ((rc_class || xrc_class) && op <= 5'h17 && op != 5'h15)
                 || (uc_class && op <= 5'h0b)
                 || (ud_class && (op == 5'h04 || op == 5'h05));
    info.deth = ud_class;
    info.reth = op == 5'h06 || op == 5'h0a || op == 5'h0b || op == 5'h0c;
    info.aeth = op == 5'h0d || op == 5'h0f || op == 5'h10 || op == 5'h11 || op == 5'h12;
    info.imm = op == 5'h03 || op == 5'h05 || op == 5'h09 || op == 5'h0b || op == 5'h16
               || op == 5'h17;
    info.atomic = op == 5'h13 || op == 5'h14;
    info.atomic_ack = op == 5'h12;
    // responses carry no XRCETH (wire.md 1.4)
    info.xrc = xrc_class && !(op >= 5'h0d && op <= 5'h12);
    info.bytes = (info.xrc ? 6'd4 : 6'd0) + (info.deth ? 6'd8 : 6'd0) + (info.reth ? 6'd16 : 6'd0)
                 + (info.aeth ? 6'd4 : 6'd0) + (info.imm ? 6'd4 : 6'd0)
                 + (info.atomic ? 6'd28 : 6'd0) + (info.atomic_ack ? 6'd8 : 6'd0);
    info.parsed_bytes = (info.xrc ? 6'd4 : 6'd0) + (info.deth ? 6'd8 : 6'd0)
                        + (info.reth ? 6'd16 : 6'd0) + (info.aeth ? 6'd4 : 6'd0)
                        + (info.imm ? 6'd4 : 6'd0) + (info.atomic ? 6'd12 : 6'd0);
    return info;
  endfunction

endpackage

`default_nettype wire
