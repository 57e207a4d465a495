// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_icrc_mask: exactly the 44 variant bits of a packet read as ones (wire.md 1.6), in whichever
// beat they are.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <memory>

#include "harness/harness.hpp"

using namespace roci::test;

namespace {

constexpr unsigned kBeat = ROCI_CONFIG_WIDE ? 64 : 8;

template <class Port>
bool bit_of(const Port& port, unsigned bit) {
  if constexpr (std::is_integral_v<Port>) {
    return (port >> bit) & 1;
  } else {
    return (port[bit / 32] >> (bit % 32)) & 1;
  }
}

}  // namespace

TEST_CASE("variant bits are ones, all others pass") {
  VerilatedContext context;
  context.threads(1);
  auto dut = std::make_unique<DUT_CLASS>(&context, "dut");
  for (const bool ones : {false, true}) {
    unsigned variant = 0;
    for (unsigned index = 0; index < 16; ++index) {
#if ROCI_CONFIG_WIDE
      for (unsigned w = 0; w < 16; ++w) dut->data_i[w] = ones ? ~0u : 0u;
#else
      dut->data_i = ones ? ~QData{0} : 0;
#endif
      dut->index_i = static_cast<CData>(index);
      dut->eval();
      for (unsigned bit = 0; bit < 8 * kBeat; ++bit) {
        const unsigned byte = index * kBeat + bit / 8;
        const bool expected = (byte == 0 && bit % 8 < 4) || (byte >= 1 && byte <= 3) ||
                              byte == 7 || byte == 44;
        variant += expected;
        REQUIRE(bit_of(dut->data_o, bit) == (ones || expected));
      }
    }
    REQUIRE(variant == 44);
  }
  Verilated::threadContextp(&context);
  dut->final();
}
