// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Byte lanes of a payload field, whatever its width: a wide field is an array of 32-bit words in
// the generated structs, one of 64 bits or less is a number. Byte 0 is bits 7:0.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace roci::test {

/// Byte `index` of a field of more than 64 bits.
template <std::size_t N>
std::uint8_t get_byte(const std::array<std::uint32_t, N>& field, unsigned index) {
  return static_cast<std::uint8_t>(field[index / 4] >> (8 * (index % 4)));
}

/// Byte `index` of a field of at most 64 bits.
template <std::unsigned_integral T>
std::uint8_t get_byte(const T& field, unsigned index) {
  return static_cast<std::uint8_t>(field >> (8 * index));
}

/// Sets byte `index` of a field of more than 64 bits.
template <std::size_t N>
void set_byte(std::array<std::uint32_t, N>& field, unsigned index, std::uint8_t value) {
  auto& word = field[index / 4];
  word &= ~(std::uint32_t{0xff} << (8 * (index % 4)));
  word |= std::uint32_t{value} << (8 * (index % 4));
}

/// Sets byte `index` of a field of at most 64 bits.
template <std::unsigned_integral T>
void set_byte(T& field, unsigned index, std::uint8_t value) {
  field &= static_cast<T>(~(T{0xff} << (8 * index)));
  field |= static_cast<T>(T{value} << (8 * index));
}

}  // namespace roci::test
