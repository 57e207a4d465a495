// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_tx_drain against lists of packets: a QP in ERR or SQE is told as soon as what was decided up to
// the cycle of the broadcast has left, not before, in order; the fence sees it from the next cycle on,
// in its own colour, until it is taken; numbers wrap.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <set>
#include <vector>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
using Qp = Bits<pkg::qp_t_bits>;

namespace {

constexpr unsigned kQps = 1u << pkg::qp_t_bits;
constexpr unsigned kDecided = kQps == 64 ? 40 : 264;   // that can wait (architecture.md 7), and more

struct Bench {
  Dut<DUT_CLASS> dut;
  Sink<Qp> drained;
  std::uint64_t decided = 0, left = 0;
  // QPs inside, oldest first
  struct Entry {
    unsigned qp, colour;
    std::uint64_t decided;
  };
  std::deque<Entry> inside;
  std::set<unsigned> here;
  unsigned colour = 0;
  std::uint64_t since = 0;             // cycles in which the oldest could have been told
  std::uint64_t slowest = 0;

  explicit Bench(Random& random)
      : dut(random()),
        drained("drained", dut->drained_valid_o, dut->drained_ready_i, dut->drained_o) {
    dut->decided_i = dut->done_valid_i = dut->colour_i = 0;
    pkg::state_bcast_t{}.pack(dut->state_i);
    dut.reset();
    dut.attach(drained);
    drained.on_transfer([this](const Qp& qp) {
      REQUIRE_FALSE(inside.empty());
      REQUIRE(qp == Qp(inside.front().qp));
      REQUIRE(left >= inside.front().decided);
      here.erase(inside.front().qp);
      inside.pop_front();
      since = 0;
    });
    drained.collect();
  }

  // One cycle. Any state but ERR and SQE of any QP means nothing, nor does ERR behind SQE.
  void tick(bool decide, bool leave, int error, int other = -1) {
    dut->decided_i = decide;
    dut->done_valid_i = leave;
    dut->colour_i = static_cast<CData>(colour);
    pkg::state_bcast_t state{};
    if (error >= 0 || other >= 0) {
      state.valid = true;
      state.qp = static_cast<decltype(state.qp)>(error >= 0 ? error : other);
      state.from = static_cast<pkg::qp_state_e>(decided % 5);
      if (error >= 0) {
        state.state = (decided + left) % 2 ? pkg::QPS_ERR : pkg::QPS_SQE;
      } else {
        state.state = static_cast<pkg::qp_state_e>(other % 5);
        if (other % 6 == 5) {
          state.state = pkg::QPS_ERR;
          state.from = pkg::QPS_SQE;
        }
      }
    }
    state.pack(dut->state_i);
    dut.tick();
    decided += decide;
    left += leave;
    if (error >= 0) {
      inside.push_back({static_cast<unsigned>(error), colour, decided});
      here.insert(static_cast<unsigned>(error));
    }
    unsigned busy = 0;
    for (const Entry& e : inside) busy |= 1u << e.colour;
    REQUIRE((dut->fence_busy_o & busy) == busy);
    if (inside.empty()) {
      REQUIRE(dut->fence_busy_o == 0);
    } else if (left >= inside.front().decided) {
      slowest = std::max(slowest, ++since);
    }
  }
};

}  // namespace

TEST_CASE("told when what was decided before has left, in any order of events") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Bench bench(random);
    const bool stalls = random.chance(0.5);
    bench.drained.stall(stalls ? Stall::any(random) : Stall(0.0));
    const double decide = random.pick(std::vector{0.1, 0.5, 0.9});
    const double leave = random.pick(std::vector{0.1, 0.5, 0.9});
    const double error = random.pick(std::vector{0.02, 0.2, 0.5});
    std::size_t errors = 0;
    for (std::size_t n = 0; n < scaled(20000); ++n) {
      const auto qp = static_cast<unsigned>(random.below(kQps));
      const bool fails = random.chance(error) && !bench.here.contains(qp);
      errors += fails;
      // all of the old colour are gone before it comes again
      if (random.chance(0.02)) {
        bool mixed = false;
        for (const auto& e : bench.inside) mixed |= e.colour != bench.colour;
        if (!mixed) bench.colour ^= 1;
      }
      const auto waiting = bench.decided - bench.left;
      bench.tick(waiting < kDecided && random.chance(decide), waiting != 0 && random.chance(leave),
                 fails ? static_cast<int>(qp) : -1,
                 random.chance(0.1) ? static_cast<int>(random.below(kQps)) : -1);
    }
    while (bench.left != bench.decided) bench.tick(false, true, -1);
    for (int n = 0; n < 20000 && !bench.inside.empty(); ++n) bench.tick(false, false, -1);
    REQUIRE(bench.inside.empty());
    REQUIRE(bench.drained.received().size() == errors);
    if (!stalls) REQUIRE(bench.slowest <= 4);
  }
}

TEST_CASE("all queue pairs at once, and the colour of each") {
  Random random;
  Bench bench(random);
  for (int n = 0; n < 20; ++n) bench.tick(true, false, -1);
  // in the cycle in which a packet is decided, and without one
  for (unsigned qp = 0; qp < kQps; ++qp) {
    if (qp == kQps / 2) bench.colour = 1;
    bench.tick(qp == 0, false, static_cast<int>(qp));
    for (int n = 0; n < 3; ++n) bench.tick(false, false, -1);   // the first one comes out
    REQUIRE(bench.dut->fence_busy_o == (qp < kQps / 2 ? 1u : 3u));
  }
  for (int n = 0; n < 20; ++n) bench.tick(false, true, -1);
  for (int n = 0; n < 100; ++n) bench.tick(false, false, -1);
  REQUIRE(bench.drained.received().empty());
  bench.tick(false, true, -1);
  for (unsigned n = 0; n < kQps / 2 + 4; ++n) bench.tick(false, false, -1);
  REQUIRE(bench.dut->fence_busy_o == 2u);
  for (unsigned n = 0; n < kQps / 2 + 8; ++n) bench.tick(false, false, -1);
  REQUIRE(bench.drained.received().size() == kQps);
  REQUIRE(bench.dut->fence_busy_o == 0u);
}
