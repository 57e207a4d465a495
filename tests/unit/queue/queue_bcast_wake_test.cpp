// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_bcast_wake: every broadcast is followed by a wake of its QP, whatever comes at once and
// however slowly wakes are taken; without overflow there is one wake per broadcast, in order.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;

namespace {

constexpr unsigned kQpBits = ROCI_CONFIG_WIDE ? 10 : 6;
constexpr unsigned kQps = 1u << kQpBits;
using Qp = Bits<kQpBits>;

// Sends broadcasts with this probability per cycle while on.
struct Broadcaster : Agent {
  explicit Broadcaster(Dut<DUT_CLASS>& d, Random& r) : dut(d), random(r) { dut->bcast_valid_i = 0; }
  void sample() override {
    if (dut->bcast_valid_i) {
      sent.push_back(dut->bcast_i);
      last[dut->bcast_i] = dut.cycle();
    }
  }
  void drive() override {
    dut->bcast_valid_i = random.chance(rate);
    Qp(random.below(kQps)).pack(dut->bcast_i);
  }
  Dut<DUT_CLASS>& dut;
  Random& random;
  double rate = 0.0;
  std::vector<unsigned> sent;
  std::map<unsigned, std::uint64_t> last;
};

}  // namespace

TEST_CASE("no broadcast is forgotten, overflow or not") {
  Random random;
  for (int round = 0; round < 30; ++round) {
    Dut<DUT_CLASS> dut(random());
    Broadcaster bcast(dut, random);
    Sink<Qp> wake("wake", dut->wake_valid_o, dut->wake_ready_i, dut->wake_o);
    wake.stall(Stall::any(random));
    wake.collect();
    std::map<unsigned, std::uint64_t> woken;
    wake.on_transfer([&](const Qp& qp) { woken[static_cast<unsigned>(qp.value())] = dut.cycle(); });
    dut.reset();
    dut.attach(bcast);
    dut.attach(wake);
    for (int burst = 0; burst < 6; ++burst) {
      bcast.rate = random.chance(0.5) ? 1.0 : 0.1;
      dut.tick(random.between(1, 40));
      bcast.rate = 0.0;
      dut.tick(random.below(3 * kQps));
    }
    std::uint64_t quiet = 0;
    dut.run_until(
        [&] {
          quiet = dut->wake_valid_o ? 0 : quiet + 1;
          return quiet > 50;
        },
        "rest", 200 * kQps);
    for (const auto& [qp, when] : bcast.last) {
      CAPTURE(qp, when);
      REQUIRE(woken.count(qp));
      REQUIRE(woken[qp] > when);
    }
  }
}

TEST_CASE("one at a time: one wake each, in order") {
  Random random;
  Dut<DUT_CLASS> dut(random());
  Broadcaster bcast(dut, random);
  Sink<Qp> wake("wake", dut->wake_valid_o, dut->wake_ready_i, dut->wake_o);
  wake.stall(Stall(0.5));
  wake.collect();
  dut.reset();
  dut.tick();
  dut.attach(bcast);
  dut.attach(wake);
  for (int n = 0; n < 300; ++n) {
    bcast.rate = 1.0;
    dut.tick();
    bcast.rate = 0.0;
    dut.tick(12);
  }
  dut.tick(50);
  REQUIRE(bcast.sent.size() == wake.received().size());
  for (std::size_t n = 0; n < bcast.sent.size(); ++n) {
    REQUIRE(wake.received()[n].value() == bcast.sent[n]);
  }
}
