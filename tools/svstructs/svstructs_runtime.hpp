// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Runtime part of the headers that tools/svstructs generates: moves fields between C++ structs and
// the bit vectors of Verilator ports.
//
// Does: bit access in little-endian 32-bit words (bit 0 of word 0 = bit 0 of the SystemVerilog
// vector), conversion to and from CData/SData/IData/QData and VlWide ports, text for messages.
// Does not: include Verilator's headers (ports are recognised by shape), nor know any layout; the
// layout of each struct is in the generated header alone.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <type_traits>

namespace roci::sv {

/// One 32-bit word of a bit vector; the element type of Verilator's VlWide.
using Word = std::uint32_t;

/// A bit vector of `Bits` bits as little-endian words; unused upper bits are zero.
template <unsigned Bits>
using Words = std::array<Word, (Bits + 31) / 32>;

/// A generated struct: knows its width and how to move itself from and to words.
template <class T>
concept Struct = requires(const T& t, Word* w, const Word* r) {
  { T::width_bits + 0u } -> std::same_as<unsigned>;
  t.to_bits(w, 0u);
  { T::from_bits(r, 0u) } -> std::same_as<T>;
};

/// Reads `width` (1…64) bits at bit `lsb` of `bits`.
constexpr std::uint64_t get_bits(const Word* bits, unsigned lsb, unsigned width) {
  std::uint64_t value = 0;
  for (unsigned done = 0; done < width;) {
    const unsigned at = lsb + done;
    const unsigned take = std::min(32u - at % 32u, width - done);
    const std::uint64_t part =
        (std::uint64_t{bits[at / 32u]} >> (at % 32u)) & ((std::uint64_t{1} << take) - 1u);
    value |= part << done;
    done += take;
  }
  return value;
}

/// Overwrites `width` (1…64) bits at bit `lsb` of `bits` with the low bits of `value`.
constexpr void set_bits(Word* bits, unsigned lsb, unsigned width, std::uint64_t value) {
  for (unsigned done = 0; done < width;) {
    const unsigned at = lsb + done;
    const unsigned shift = at % 32u;
    const unsigned take = std::min(32u - shift, width - done);
    const Word mask = static_cast<Word>(((std::uint64_t{1} << take) - 1u) << shift);
    const Word part = static_cast<Word>((value >> done) << shift);
    bits[at / 32u] = (bits[at / 32u] & ~mask) | (part & mask);
    done += take;
  }
}

/// Sign-extends the low `width` bits of `value`.
constexpr std::int64_t sign_extend(std::uint64_t value, unsigned width) {
  const unsigned up = 64u - width;
  return static_cast<std::int64_t>(value << up) >> up;
}

/// Reads a vector of more than 64 bits.
template <std::size_t N>
constexpr std::array<Word, N> get_wide(const Word* bits, unsigned lsb, unsigned width) {
  std::array<Word, N> out{};
  for (unsigned i = 0; i < N; ++i) {
    out[i] = static_cast<Word>(get_bits(bits, lsb + 32u * i, std::min(32u, width - 32u * i)));
  }
  return out;
}

/// Writes a vector of more than 64 bits; bits of `value` above `width` are ignored.
template <std::size_t N>
constexpr void set_wide(Word* bits, unsigned lsb, unsigned width,
                        const std::array<Word, N>& value) {
  for (unsigned i = 0; i < N; ++i) {
    set_bits(bits, lsb + 32u * i, std::min(32u, width - 32u * i), value[i]);
  }
}

/// Words of a generated struct. The result is the vector that SystemVerilog sees.
template <Struct T>
constexpr Words<T::width_bits> to_words(const T& value) {
  Words<T::width_bits> words{};
  value.to_bits(words.data(), 0u);
  return words;
}

/// Generated struct from its words.
template <Struct T>
constexpr T from_words(const Words<T::width_bits>& words) {
  return T::from_bits(words.data(), 0u);
}

/// True if `Port` is the C++ type that Verilator gives a port of `Bits` bits (C/S/I/QData or
/// VlWide). A mismatch means that the C++ struct is not the port's type.
template <class Port, unsigned Bits>
constexpr bool port_fits() {
  if constexpr (std::is_integral_v<Port>) {
    return sizeof(Port) == (Bits <= 8 ? 1 : Bits <= 16 ? 2 : Bits <= 32 ? 4 : Bits <= 64 ? 8 : 0);
  } else {
    return Bits > 64 && sizeof(Port) == sizeof(Words<Bits>);
  }
}

/// Writes words to a Verilator port.
template <unsigned Bits, class Port>
constexpr void words_to_port(const Words<Bits>& words, Port& port) {
  static_assert(port_fits<Port, Bits>(), "the port has another width than this type");
  if constexpr (std::is_integral_v<Port>) {
    port = static_cast<Port>(get_bits(words.data(), 0u, Bits));
  } else {
    for (std::size_t i = 0; i < words.size(); ++i) port[i] = words[i];
  }
}

/// Reads the words of a Verilator port.
template <unsigned Bits, class Port>
constexpr Words<Bits> words_from_port(const Port& port) {
  static_assert(port_fits<Port, Bits>(), "the port has another width than this type");
  Words<Bits> words{};
  if constexpr (std::is_integral_v<Port>) {
    set_bits(words.data(), 0u, Bits, static_cast<std::uint64_t>(port));
  } else {
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = port[i];
  }
  return words;
}

/// "0x1f" with as many digits as the value needs.
inline std::string hex(std::uint64_t value) {
  std::string text;
  do {
    text.insert(text.begin(), "0123456789abcdef"[value & 15u]);
    value >>= 4u;
  } while (value != 0);
  return "0x" + text;
}

/// A wide vector as one hexadecimal number, most significant word first, all words in full.
template <std::size_t N>
std::string hex(const std::array<Word, N>& words) {
  std::string text = "0x";
  for (std::size_t i = N; i-- > 0;) {
    for (unsigned shift = 32; shift > 0;) {
      shift -= 4;
      text += "0123456789abcdef"[(words[i] >> shift) & 15u];
    }
  }
  return text;
}

}  // namespace roci::sv
