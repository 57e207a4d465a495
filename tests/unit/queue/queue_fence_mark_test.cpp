// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_fence_mark against a FIFO whose items carry their colour: each colour is busy exactly while
// an item of it waits, over many flips.
// model: configs=wide args=-GWIDTH=6
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>

#include "harness/harness.hpp"

using namespace roci::test;

TEST_CASE("a colour is busy while its items wait") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Dut<DUT_CLASS> dut(random());
    dut->colour_i = 0;
    dut->waiting_i = 0;
    dut->leave_i = 0;
    dut.reset();
    std::deque<bool> items;
    bool colour = false;
    const double in = random.chance(0.5) ? 0.5 : 0.3, out = random.chance(0.5) ? 0.5 : 0.35;
    unsigned flips = 0, both = 0;
    for (std::size_t cycle = 0; cycle < scaled(20000); ++cycle) {
      // A fence flips the colour only when the other one is gone.
      bool other = false;
      for (const bool item : items) other |= item != colour;
      if (!other && random.chance(0.05)) {
        colour = !colour;
        ++flips;
      }
      dut->colour_i = colour;
      dut->waiting_i = static_cast<CData>(items.size());
      dut->leave_i = !items.empty() && random.chance(out);
      dut.eval();
      unsigned busy = 0;
      for (const bool item : items) busy |= 1u << item;
      REQUIRE(dut->busy_o == busy);
      both += busy == 3;
      if (dut->leave_i) items.pop_front();
      if (items.size() < 60 && random.chance(in)) items.push_back(colour);
      dut.tick();
    }
    CHECK(flips > 20);
    CHECK(both > 20);
  }
}
