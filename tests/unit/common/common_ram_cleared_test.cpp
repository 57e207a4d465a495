// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_ram_cleared: all words zero when ready, in DEPTH cycles, again after another reset; then a
// RAM like common_ram_sdp; a write before ready is an error.
// model: configs=any args=-GWIDTH=40 args=-GDEPTH=21 args=-GGRANULE=8 name=d21
// model: configs=any args=-GWIDTH=40 args=-GDEPTH=64 args=-GGRANULE=40 name=d64
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;
using Item = Bits<DUT_WIDTH>;

Item read(Dut<DUT_CLASS>& dut, unsigned address) {
  dut->re_i = 1;
  dut->raddr_i = static_cast<CData>(address);
  dut.tick();
  dut->re_i = 0;
  return Item::unpack(dut->rdata_o);
}
}  // namespace

TEST_CASE("zero after each reset, writable afterwards") {
  Random random;
  Dut<DUT_CLASS> dut(random());
  dut->we_i = 0;
  dut->re_i = 0;
  for (int round = 0; round < 3; ++round) {
    dut.reset();
    REQUIRE(!dut->ready_o);
    unsigned cycles = 0;
    while (!dut->ready_o) {
      REQUIRE(cycles <= DUT_DEPTH);
      dut.tick();
      ++cycles;
    }
    CHECK(cycles == DUT_DEPTH);
    for (unsigned a = 0; a < DUT_DEPTH; ++a) REQUIRE(read(dut, a) == Item(0));
    std::vector<Item> words;
    for (unsigned a = 0; a < DUT_DEPTH; ++a) {
      words.push_back(random_payload<Item>(random));
      dut->we_i = static_cast<CData>((1u << (DUT_WIDTH / DUT_GRANULE)) - 1u);
      dut->waddr_i = static_cast<CData>(a);
      words.back().pack(dut->wdata_i);
      dut.tick();
    }
    dut->we_i = 0;
    for (unsigned a = 0; a < DUT_DEPTH; ++a) REQUIRE(read(dut, a) == words[a]);
  }
}

TEST_CASE("a write before ready is found") {
  Dut<DUT_CLASS> dut;
  dut->we_i = 0;
  dut->re_i = 0;
  dut.reset();
  dut->we_i = 1;
  CHECK_THROWS(dut.tick(2));
}
