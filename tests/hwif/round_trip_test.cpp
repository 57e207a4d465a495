// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Round trip of every field of every layout: the C++ header and the SystemVerilog package read the
// same value from the same random bytes, and set it to the same bytes. Module and list of fields
// are generated; golden_test.cpp holds what both could get wrong together.
#include <Vhwif_round_trip.h>
#include <verilated.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "harness/random.hpp"
#include "roci_hwif.hpp"

namespace hwif = roci::hwif;

namespace {

using Bytes = std::vector<std::uint8_t>;

/// What the test does with one field, free of its types.
struct Case {
  unsigned layout;         ///< number of the layout in the module
  unsigned field;          ///< number of the field in the module
  const char* name;        ///< for messages
  std::size_t bytes;       ///< size of the layout
  unsigned bits;           ///< size of the field
  Bytes (*get)(const Bytes& raw);                       ///< value as SystemVerilog numbers it
  Bytes (*set)(const Bytes& raw, const Bytes& value);   ///< bytes with the value in place
};

/// Byte strings of network layouts stand most significant byte first in the struct.
template <bool Network>
Bytes swapped(Bytes bytes) {
  if (Network) bytes = Bytes(bytes.rbegin(), bytes.rend());
  return bytes;
}

template <class L, class F, bool Network>
Bytes get(const Bytes& raw) {
  const L layout = L::load_from(raw.data());
  Bytes out((F::BITS + 7) / 8);
  const auto value = layout.template get<F>();
  if constexpr (F::KIND == hwif::detail::Kind::NUMBER) {
    const auto number = static_cast<std::uint64_t>(value);
    std::memcpy(out.data(), &number, out.size());
    return out;
  } else {
    std::memcpy(out.data(), value.data(), out.size());
    return swapped<Network>(out);
  }
}

template <class L, class F, bool Network>
Bytes set(const Bytes& raw, const Bytes& value) {
  L layout = L::load_from(raw.data());
  if constexpr (F::KIND == hwif::detail::Kind::NUMBER) {
    std::uint64_t number = 0;
    std::memcpy(&number, value.data(), value.size());
    layout.template set<F>(static_cast<typename F::Type>(number));
  } else {
    const Bytes in_order = swapped<Network>(value);
    typename F::Type typed{};
    std::memcpy(typed.data(), in_order.data(), in_order.size());
    layout.template set<F>(typed);
  }
  Bytes out(L::BYTES);
  layout.store(out.data());
  return out;
}

#define CASE(LAYOUT, FIELD, TYPE, NAME, NETWORK)                            \
  {LAYOUT,         FIELD,                                                   \
   #TYPE "." #NAME, TYPE::BYTES,                                            \
   TYPE::NAME::BITS, &get<TYPE, TYPE::NAME, NETWORK>,                       \
   &set<TYPE, TYPE::NAME, NETWORK>},
const Case CASES[] = {
#include "hwif_round_trip_cases.hpp"
};
#undef CASE

/// The Verilated module.
class Module {
 public:
  Module() : model_(&context_) {}

  /// Value of the field and bytes with the field set to `value`.
  std::pair<Bytes, Bytes> run(const Case& c, const Bytes& raw, const Bytes& value) {
    model_.layout_i = static_cast<std::uint16_t>(c.layout);
    model_.field_i = static_cast<std::uint8_t>(c.field);
    fill(model_.raw_i, raw);
    fill(model_.value_i, value);
    model_.eval();
    return {read(model_.value_o, (c.bits + 7) / 8), read(model_.raw_o, c.bytes)};
  }

 private:
  template <class Port>
  static void fill(Port& port, const Bytes& bytes) {
    Bytes padded(HWIF_ROUND_TRIP_BYTES);
    std::memcpy(padded.data(), bytes.data(), bytes.size());
    static_assert(sizeof(port) >= HWIF_ROUND_TRIP_BYTES);
    std::memcpy(port.data(), padded.data(), padded.size());
  }

  template <class Port>
  static Bytes read(const Port& port, std::size_t count) {
    Bytes out(count);
    std::memcpy(out.data(), port.data(), count);
    return out;
  }

  VerilatedContext context_;
  Vhwif_round_trip model_;
};

/// A value with the field's number of bits; the first two are all zeros and all ones.
Bytes some_value(roci::test::Random& random, unsigned bits, int i) {
  Bytes value = i == 0   ? Bytes((bits + 7) / 8, 0x00)
                : i == 1 ? Bytes((bits + 7) / 8, 0xff)
                         : random.bytes((bits + 7) / 8);
  if (bits % 8 != 0) value.back() &= static_cast<std::uint8_t>((1u << bits % 8) - 1);
  return value;
}

}  // namespace

TEST_CASE("every field is the same in SystemVerilog and C++") {
  Module module;
  roci::test::Random random;
  std::size_t layouts = 0;
  const Case* last = nullptr;
  for (const Case& c : CASES) {
    layouts += last == nullptr || last->layout != c.layout;
    last = &c;
    for (int i = 0; i < 50; ++i) {
      const Bytes raw = random.bytes(c.bytes);
      const Bytes value = some_value(random, c.bits, i);
      const auto [sv_value, sv_raw] = module.run(c, raw, value);
      INFO(c.name << ", round " << i);
      REQUIRE(c.get(raw) == sv_value);
      REQUIRE(c.set(raw, value) == sv_raw);
      REQUIRE(c.get(sv_raw) == value);
    }
  }
  // Nothing was left out of the list.
  CHECK(layouts == HWIF_ROUND_TRIP_LAYOUTS);
}
