// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_cdc_fifo: order and data for many ratios and phases of the clocks, also changing ones;
// capacity; full rate; resets released one after the other.
// model: configs=any args=-GWIDTH=13 args=-GDEPTH=4 args=-GSYNC_STAGES=2 name=d4
// model: configs=any args=-GWIDTH=80 args=-GDEPTH=16 args=-GSYNC_STAGES=3 name=d16
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;
using Item = Bits<DUT_WIDTH>;

struct Bench {
  Bench(std::uint64_t salt, std::uint64_t in_ps, std::uint64_t out_ps, std::uint64_t phase_ps,
        bool in_first)
      : dut(salt) {
    auto& in_clock = dut.add_clock(dut->in_clk_i, in_ps, in_ps);
    auto& out_clock = dut.add_clock(dut->out_clk_i, out_ps, 1 + phase_ps);
    dut->in_rst_i = 1;
    dut->out_rst_i = 1;
    wait(8);
    // The resets end at different times, in either order.
    (in_first ? dut->in_rst_i : dut->out_rst_i) = 0;
    wait(in_first ? 0 : 3);
    dut->in_rst_i = 0;
    dut->out_rst_i = 0;
    in_clock.attach(in);
    out_clock.attach(out);
  }
  /// Ticks until both clocks have had `cycles` more edges.
  void wait(std::uint64_t cycles) {
    const auto in_end = dut.domain(0).cycle() + cycles;
    const auto out_end = dut.domain(1).cycle() + cycles;
    while (dut.domain(0).cycle() < in_end || dut.domain(1).cycle() < out_end) dut.tick();
  }
  Dut<DUT_CLASS> dut;
  Source<Item> in{"in", dut->in_valid_i, dut->in_ready_o, dut->in_i};
  Sink<Item> out{"out", dut->out_valid_o, dut->out_ready_i, dut->out_o};
};
}  // namespace

TEST_CASE("order and data for random clocks") {
  Random random;
  for (int round = 0; round < 40; ++round) {
    const std::uint64_t in_ps = 2 * random.between(500, 5000);
    const std::uint64_t out_ps = round % 4 == 0 ? in_ps : 2 * random.between(500, 5000);
    INFO("periods " << in_ps << " and " << out_ps << " ps");
    Bench b(random(), in_ps, out_ps, random.below(out_ps), random.chance(0.5));
    b.in.stall(Stall::any(random));
    b.out.stall(Stall::any(random));
    for (std::size_t n = 0; n < scaled(400); ++n) {
      const Item item = random_payload<Item>(random);
      b.in.push(item);
      b.out.expect(item);
    }
    while (!b.out.done()) {
      REQUIRE(b.dut.domain(0).cycle() < 400000);
      // Drifting clocks meet every phase.
      if (round % 3 == 0) b.dut.domain(1).set_period_ps(2 * random.between(500, 5000));
      b.dut.tick(random.between(1, 20));
    }
    b.wait(20);
  }
}

TEST_CASE("holds DEPTH items and the one in the output register") {
  Random random;
  Bench b(random(), 4000, 4400, 77, true);
  b.out.stall(Stall(1.0));
  for (unsigned n = 0; n < DUT_DEPTH + 5; ++n) {
    const Item item = random_payload<Item>(random);
    b.in.push(item);
    b.out.expect(item);
  }
  b.wait(DUT_DEPTH + 30);
  CHECK(b.in.transfers() == DUT_DEPTH + 1);
  b.out.stall(Stall(0.0));
  b.wait(DUT_DEPTH + 40);
  CHECK(b.out.done());
}

TEST_CASE("full rate of the slower clock") {
  if (DUT_DEPTH < 2 * DUT_SYNC_STAGES + 4) return;
  Random random;
  for (const auto& [in_ps, out_ps] : {std::pair(4000, 4000), std::pair(4000, 5200),
                                      std::pair(5200, 4000), std::pair(2000, 9000)}) {
    Bench b(random(), in_ps, out_ps, random.below(2000), true);
    b.out.collect();
    for (int n = 0; n < 2000; ++n) b.in.push(random_payload<Item>(random));
    b.wait(50);
    const auto before = b.out.transfers();
    const auto in_start = b.dut.domain(0).cycle();
    const auto out_start = b.dut.domain(1).cycle();
    b.wait(200);
    const auto cycles = std::min(b.dut.domain(0).cycle() - in_start,
                                 b.dut.domain(1).cycle() - out_start);
    CHECK(b.out.transfers() - before + 2 >= cycles);
  }
}
