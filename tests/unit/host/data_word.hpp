// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Bytes of a data bus in generated structs and ports: std::uint64_t in `narrow`, arrays of 32-bit
// words in `wide`. Byte 0 is in bits 7:0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "roci_svstructs.hpp"

namespace roci::test {

/// Bytes of the data path of this configuration.
inline constexpr unsigned data_bytes = roci::sv::roci_pkg::DATA_BYTES;

/// Byte `n` of a data word (port or field).
template <class Data>
std::uint8_t get_byte(const Data& data, unsigned n) {
  if constexpr (std::is_integral_v<Data>) {
    return static_cast<std::uint8_t>(data >> (8 * n));
  } else {
    return static_cast<std::uint8_t>(data[n / 4] >> (8 * (n % 4)));
  }
}

/// Overwrites byte `n` of a data word (port or field).
template <class Data>
void set_byte(Data& data, unsigned n, std::uint8_t value) {
  if constexpr (std::is_integral_v<Data>) {
    data = static_cast<Data>((data & ~(Data{0xff} << (8 * n))) | (Data{value} << (8 * n)));
  } else {
    const unsigned shift = 8 * (n % 4);
    data[n / 4] = (data[n / 4] & ~(0xffu << shift)) | (std::uint32_t{value} << shift);
  }
}

/// The byte that the read models hold at this address of a function's memory.
inline std::uint8_t memory_byte(unsigned fn, std::uint64_t addr) {
  std::uint64_t z = (addr + 1) * 0x9e3779b97f4a7c15u + fn * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 29u)) * 0x94d049bb133111ebu;
  return static_cast<std::uint8_t>(z >> 56u);
}

}  // namespace roci::test
