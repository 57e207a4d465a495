// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_skid: order and data under stalls, full rate, no combinational path, capacity two.
// model: configs=any args=-GWIDTH=7 name=w7
// model: configs=any args=-GWIDTH=600 name=w600
#include DUT_HEADER

#include "common/slice_cases.hpp"

TEST_CASE("full rate, one cycle of latency, two items of room") {
  Random random;
  Bench b(random());
  b.out.collect();
  for (int n = 0; n < 100; ++n) b.in.push(random_payload<Item>(random));
  b.dut.tick(102);
  CHECK(b.in.transfers() == 100);
  CHECK(b.out.transfers() >= 99);
  b.dut.tick(2);
  CHECK(b.out.transfers() == 100);
  b.out.stall(Stall(1.0));
  b.dut.tick(2);
  for (int n = 0; n < 5; ++n) b.in.push(random_payload<Item>(random));
  b.dut.tick(10);
  CHECK(b.in.transfers() == 102);
}
