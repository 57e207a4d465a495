// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_reset_sync: on at once without a clock, off after STAGES edges, also for short pulses.
// model: configs=any args=-GSTAGES=2 name=s2
// model: configs=any args=-GSTAGES=4 name=s4
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"

TEST_CASE("asynchronous on, synchronous off") {
  roci::test::Random random;
  roci::test::Dut<DUT_CLASS> dut(random());
  dut->arst_i = 0;
  dut.tick(10);
  for (int round = 0; round < 50; ++round) {
    REQUIRE(!dut->rst_o);
    dut->arst_i = 1;
    dut.eval();
    REQUIRE(dut->rst_o);  // no clock edge yet
    dut.tick(random.below(4));
    REQUIRE(dut->rst_o);
    dut->arst_i = 0;
    dut.eval();
    for (unsigned n = 0; n < DUT_STAGES; ++n) {
      REQUIRE(dut->rst_o);
      dut.tick();
    }
    REQUIRE(!dut->rst_o);
    dut.tick(random.between(1, 5));
  }
}
