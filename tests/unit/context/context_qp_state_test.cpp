// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_qp_state: a table of states against a map; each change is broadcast once; hardware only
// ever moves live QPs to ERR, or from RTS and SQD to SQE; firmware's compare and set tells the state
// before; an event per change to ERR that asked for one.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <map>

#include "harness/harness.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

namespace {

constexpr unsigned kReset = 0;
constexpr unsigned kRts = 3, kSqd = 4, kSqe = 5, kErr = 6;

struct Bench {
  Dut<DUT_CLASS> dut;
  Source<pkg::state_error_t> error0;
  Source<pkg::state_error_t> error1;
  Sink<pkg::event_t> event;
  std::map<unsigned, unsigned> seen;         // replica made from the broadcasts
  unsigned broadcasts = 0;

  explicit Bench(std::uint64_t salt)
      : dut(salt),
        error0("error0", dut->error0_valid_i, dut->error0_ready_o, dut->error0_i),
        error1("error1", dut->error1_valid_i, dut->error1_ready_o, dut->error1_i),
        event("event", dut->event_valid_o, dut->event_ready_i, dut->event_o) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    dut.reset();
    dut.attach(error0);
    dut.attach(error1);
    dut.attach(event);
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared");
  }

  void tick() {
    const auto state = pkg::state_bcast_t::unpack(dut->state_o);
    if (state.valid) {
      const auto before = seen.find(state.qp);
      REQUIRE(static_cast<unsigned>(state.from) == (before == seen.end() ? 0 : before->second));
      seen[state.qp] = static_cast<unsigned>(state.state);
      ++broadcasts;
    }
    dut.tick();
  }

  std::uint64_t access(bool write, unsigned qp, unsigned word, std::uint64_t data) {
    return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { tick(); },
        static_cast<unsigned>(roci::hwif::CtxColumn::QP_STATE), write, qp, word, data, 3000);
  }
};

}  // namespace

TEST_CASE("states follow compare and set, hardware errors and resets") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Bench bench(random());
    bench.event.stall(Stall::any(random));
    bench.event.collect();
    const unsigned qps = 5;
    std::map<unsigned, unsigned> state;
    for (unsigned qp = 0; qp < qps; ++qp) {
      state[qp] = kReset;
      bench.access(true, qp, 1, (std::uint64_t{qp % 8} << 32) | (0x777000 + qp));
    }
    unsigned expected_events = 0, changes = 0;
    for (std::size_t n = 0; n < scaled(1500); ++n) {
      const auto qp = static_cast<unsigned>(random.below(qps));
      if (random.chance(0.6)) {
        const auto target = static_cast<unsigned>(random.below(7));
        const auto from = static_cast<unsigned>(random.bits(8));
        const auto before = bench.access(true, qp, 0, target | (std::uint64_t{from} << 8));
        REQUIRE(before == state[qp]);
        if ((from >> state[qp]) & 1) {
          // ERR again is no change
          changes += target == kErr && before == kErr ? 0 : 1;
          state[qp] = target;
        }
      } else {
        pkg::state_error_t error{};
        error.qp = static_cast<decltype(error.qp)>(qp);
        error.event_valid = random.chance(0.5);
        error.event_type = 19;
        error.send_only = random.chance(0.5);
        auto& source = random.chance(0.5) ? bench.error0 : bench.error1;
        source.push(error);
        for (int limit = 0; !source.empty() && limit < 1000; ++limit) bench.tick();
        REQUIRE(source.empty());
        if (error.send_only ? state[qp] == kRts || state[qp] == kSqd
                            : state[qp] != kReset && state[qp] != kErr) {
          state[qp] = error.send_only ? kSqe : kErr;
          ++changes;
          expected_events += error.event_valid ? 1 : 0;
        }
      }
      REQUIRE(bench.access(false, qp, 0, 0) == state[qp]);
    }
    for (int n = 0; n < 500; ++n) bench.tick();
    for (unsigned qp = 0; qp < qps; ++qp) {
      if (bench.seen.contains(qp)) REQUIRE(bench.seen[qp] == state[qp]);
    }
    REQUIRE(bench.broadcasts == changes);
    REQUIRE(bench.event.received().size() == expected_events);
    for (const auto& event : bench.event.received()) {
      REQUIRE(event.object >= 0x777000);
      REQUIRE(event.fn == (event.object - 0x777000) % 8);
      REQUIRE(event.event_type == 19);
      REQUIRE_FALSE(event.eq_valid);
    }
  }
}

TEST_CASE("two sources are served in turns") {
  Bench bench(1);
  bench.event.collect();
  for (unsigned qp = 0; qp < 16; ++qp) bench.access(true, qp, 0, 3 | (0xffu << 8));
  for (unsigned qp = 0; qp < 8; ++qp) {
    pkg::state_error_t error{};
    error.qp = static_cast<decltype(error.qp)>(qp);
    bench.error0.push(error);
    error.qp = static_cast<decltype(error.qp)>(qp + 8);
    bench.error1.push(error);
  }
  const auto start = bench.dut.cycle();
  while (!bench.error0.empty() || !bench.error1.empty()) bench.tick();
  REQUIRE(bench.dut.cycle() - start < 50);
  for (int n = 0; n < 10; ++n) bench.tick();
  for (unsigned qp = 0; qp < 16; ++qp) REQUIRE(bench.access(false, qp, 0, 0) == kErr);
  REQUIRE(bench.broadcasts == 32);
}
