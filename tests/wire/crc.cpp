// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "wire/crc.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

namespace roci::wirecodec {
namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320u : 0u);
    table[i] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

// Reflected register: the wire's first bit is the least significant.
uint32_t update_table(uint32_t reg, std::span<const uint8_t> bytes) {
  for (uint8_t byte : bytes) reg = (reg >> 8) ^ kTable[(reg ^ byte) & 0xff];
  return reg;
}

// Unreflected register as IEEE 802.3 draws it: the bits of each byte enter least significant first,
// the remainder leaves most significant first.
uint32_t update_serial(uint32_t reg, std::span<const uint8_t> bytes) {
  for (uint8_t byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool feedback = (((reg >> 31) ^ (byte >> bit)) & 1) != 0;
      reg <<= 1;
      if (feedback) reg ^= 0x04c11db7u;
    }
  }
  return reg;
}

uint32_t reverse_bits(uint32_t value) {
  uint32_t out = 0;
  for (int bit = 0; bit < 32; ++bit) out |= ((value >> bit) & 1u) << (31 - bit);
  return out;
}

// The packet with its variable fields replaced by ones, behind eight bytes of ones for the LRH that
// RoCEv1 does not send (wire.md §1.6).
std::vector<uint8_t> masked(std::span<const uint8_t> packet) {
  if (packet.size() < 52) throw std::invalid_argument("ICRC needs at least a GRH and a BTH");
  std::vector<uint8_t> out(8 + packet.size(), 0xff);
  std::ranges::copy(packet, out.begin() + 8);
  uint8_t* grh = out.data() + 8;
  grh[0] |= 0x0f;                   // traffic class, high nibble
  grh[1] = grh[2] = grh[3] = 0xff;  // traffic class low nibble, flow label
  grh[7] = 0xff;                    // hop limit
  grh[44] = 0xff;                   // BTH resv8a (FECN, BECN)
  return out;
}

}  // namespace

uint32_t icrc(std::span<const uint8_t> grh_to_pad) {
  return ~update_table(0xffffffffu, masked(grh_to_pad));
}

uint32_t icrc_bit_serial(std::span<const uint8_t> grh_to_pad) {
  return ~reverse_bits(update_serial(0xffffffffu, masked(grh_to_pad)));
}

uint32_t icrc_residue(std::span<const uint8_t> grh_to_icrc) {
  return update_table(0xffffffffu, masked(grh_to_icrc));
}

uint32_t fcs(std::span<const uint8_t> frame) { return ~update_table(0xffffffffu, frame); }

uint32_t fcs_bit_serial(std::span<const uint8_t> frame) {
  return ~reverse_bits(update_serial(0xffffffffu, frame));
}

}  // namespace roci::wirecodec
