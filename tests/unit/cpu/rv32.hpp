// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A few RV32I instructions as words, for tests that run small programs on the core without a compiler.
#pragma once

#include <cstdint>

namespace roci::test::rv32 {

using Word = std::uint32_t;

constexpr Word lui(Word rd, Word upper) { return upper << 12 | rd << 7 | 0x37; }
constexpr Word i_type(Word op, Word funct, Word rd, Word rs, std::int32_t imm) {
  return static_cast<Word>(imm & 0xfff) << 20 | rs << 15 | funct << 12 | rd << 7 | op;
}
constexpr Word addi(Word rd, Word rs, std::int32_t imm) { return i_type(0x13, 0, rd, rs, imm); }
constexpr Word lw(Word rd, Word rs, std::int32_t imm) { return i_type(0x03, 2, rd, rs, imm); }
constexpr Word lhu(Word rd, Word rs, std::int32_t imm) { return i_type(0x03, 5, rd, rs, imm); }
constexpr Word lbu(Word rd, Word rs, std::int32_t imm) { return i_type(0x03, 4, rd, rs, imm); }
constexpr Word slli(Word rd, Word rs, std::int32_t n) { return i_type(0x13, 1, rd, rs, n); }
constexpr Word srli(Word rd, Word rs, std::int32_t n) { return i_type(0x13, 5, rd, rs, n); }
constexpr Word r_type(Word funct7, Word funct3, Word rd, Word rs1, Word rs2) {
  return funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x33;
}
constexpr Word add(Word rd, Word a, Word b) { return r_type(0, 0, rd, a, b); }
constexpr Word xor_(Word rd, Word a, Word b) { return r_type(0, 4, rd, a, b); }
constexpr Word mul(Word rd, Word a, Word b) { return r_type(1, 0, rd, a, b); }
constexpr Word s_type(Word funct, Word base, Word rs, std::int32_t imm) {
  return static_cast<Word>((imm >> 5) & 0x7f) << 25 | rs << 20 | base << 15 | funct << 12 |
         static_cast<Word>(imm & 0x1f) << 7 | 0x23;
}
constexpr Word sb(Word rs, Word base, std::int32_t imm) { return s_type(0, base, rs, imm); }
constexpr Word sh(Word rs, Word base, std::int32_t imm) { return s_type(1, base, rs, imm); }
constexpr Word sw(Word rs, Word base, std::int32_t imm) { return s_type(2, base, rs, imm); }
/// Branch if not equal; `offset` in bytes from this instruction.
constexpr Word bne(Word a, Word b, std::int32_t offset) {
  const Word o = static_cast<Word>(offset);
  return (o >> 12 & 1) << 31 | (o >> 5 & 0x3f) << 25 | b << 20 | a << 15 | 1u << 12 |
         (o >> 1 & 0xf) << 8 | (o >> 11 & 1) << 7 | 0x63;
}
constexpr Word jump_here() { return 0x0000006f; }
constexpr Word illegal() { return 0x00000000; }

}  // namespace roci::test::rv32
