// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Payloads of streams in unit tests: generated structs (tools/svstructs) and plain vectors.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "harness/random.hpp"
#include "svstructs_runtime.hpp"

namespace roci::test {

/// A plain `logic [W-1:0]` as payload: behaves like a generated struct, so that Source, Sink and
/// RAM models take either.
template <unsigned W>
struct Bits {
  static constexpr unsigned width_bits = W;

  sv::Words<W> words{};

  Bits() = default;
  /// The low W bits of `value`.
  explicit Bits(std::uint64_t value) {
    sv::set_bits(words.data(), 0, W < 64 ? W : 64, value);
  }

  bool operator==(const Bits&) const = default;

  /// The low 64 bits.
  std::uint64_t value() const { return sv::get_bits(words.data(), 0, W < 64 ? W : 64); }
  /// `width` bits at `lsb`.
  std::uint64_t get(unsigned lsb, unsigned width) const {
    return sv::get_bits(words.data(), lsb, width);
  }
  /// Overwrites `width` bits at `lsb`.
  void set(unsigned lsb, unsigned width, std::uint64_t value) {
    sv::set_bits(words.data(), lsb, width, value);
  }

  void to_bits(sv::Word* bits, unsigned lsb) const {
    for (unsigned at = 0; at < W; at += 32) {
      sv::set_bits(bits, lsb + at, W - at < 32 ? W - at : 32, words[at / 32]);
    }
  }
  static Bits from_bits(const sv::Word* bits, unsigned lsb) {
    Bits out;
    for (unsigned at = 0; at < W; at += 32) {
      out.words[at / 32] =
          static_cast<sv::Word>(sv::get_bits(bits, lsb + at, W - at < 32 ? W - at : 32));
    }
    return out;
  }
  template <class Port>
  void pack(Port& port) const {
    sv::words_to_port<W>(words, port);
  }
  template <class Port>
  static Bits unpack(const Port& port) {
    return Bits{sv::words_from_port<W>(port)};
  }
  std::string to_string() const { return sv::hex(words); }
  friend std::ostream& operator<<(std::ostream& out, const Bits& value) {
    return out << value.to_string();
  }

 private:
  explicit Bits(const sv::Words<W>& from) {
    for (unsigned at = 0; at < W; at += 32) {
      sv::set_bits(words.data(), at, W - at < 32 ? W - at : 32, from[at / 32]);
    }
  }
};

/// A payload with every bit random (enum fields may get values without a name).
template <sv::Struct T>
T random_payload(Random& random) {
  sv::Words<T::width_bits> words{};
  for (unsigned at = 0; at < T::width_bits; at += 32) {
    const unsigned width = T::width_bits - at < 32 ? T::width_bits - at : 32;
    sv::set_bits(words.data(), at, width, random.bits(width));
  }
  return sv::from_words<T>(words);
}

}  // namespace roci::test
