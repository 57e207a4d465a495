// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_fence: never over while work stamped before its flip is held, over soon afterwards; work
// of the new colour does not delay it.
// model: configs=wide
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>

#include "harness/harness.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
using Request = roci::sv::roci_pkg::ctx_req_t;
using Response = roci::sv::roci_pkg::ctx_rsp_t;

namespace {

// One access of column FENCE; returns the word read.
std::uint64_t access(Dut<DUT_CLASS>& dut, bool write) {
  return context_access<Request, Response>(
      dut, [&dut] { dut.tick(); }, static_cast<unsigned>(roci::hwif::CtxColumn::FENCE), write, 0, 0, 0,
      10);
}

// Work items of three units with random lengths of life, stamped with the colour at their start.
struct Units {
  struct Work {
    unsigned unit;
    unsigned colour;
    std::uint64_t born;
    std::uint64_t end;
  };
  std::deque<Work> held;

  void step(Dut<DUT_CLASS>& dut, Random& random, double birth) {
    const auto now = dut.cycle();
    if (random.chance(birth)) {
      held.push_back({static_cast<unsigned>(random.below(3)), dut->colour_o, now,
                      now + random.between(1, 60)});
    }
    std::erase_if(held, [&](const Work& w) { return w.end <= now; });
    unsigned busy = 0;
    for (const auto& w : held) busy |= 1u << (2 * w.unit + w.colour);
    dut->busy_i = static_cast<CData>(busy);
  }
};

}  // namespace

TEST_CASE("a fence waits for all earlier work and for nothing else") {
  Random random;
  for (int round = 0; round < 200; ++round) {
    Dut<DUT_CLASS> dut(random());
    Request{}.pack(dut->ctx_i);
    dut->busy_i = 0;
    dut.reset();
    Units units;
    const double birth = random.chance(0.2) ? 0.0 : 0.3;
    for (int n = 0; n < 100; ++n) {
      units.step(dut, random, birth);
      dut.tick();
    }
    REQUIRE((access(dut, false) & 1) == 0);
    const auto ended_before = access(dut, false) >> 16;
    const auto colour_before = dut->colour_o;
    access(dut, true);
    REQUIRE(dut->colour_o != colour_before);
    std::uint64_t oldest_end = 0;
    for (const auto& w : units.held) oldest_end = std::max(oldest_end, w.end);
    const auto start = dut.cycle();
    for (;;) {
      units.step(dut, random, birth);
      const auto word = access(dut, false);
      if ((word & 1) == 0) {
        REQUIRE(word >> 16 == ended_before + 1);
        break;
      }
      REQUIRE(dut.cycle() < std::max(start, oldest_end) + 40);
    }
    for (const auto& w : units.held) {
      if (w.end > dut.cycle()) REQUIRE(w.colour == dut->colour_o);
    }
  }
}

TEST_CASE("a fence asked for during another one follows it") {
  Dut<DUT_CLASS> dut;
  Request{}.pack(dut->ctx_i);
  dut->busy_i = 0;
  dut.reset();
  const auto colour = dut->colour_o;
  dut->busy_i = static_cast<CData>(1u << colour);
  access(dut, true);                                  // waits for unit 0
  access(dut, true);
  dut.tick(30);
  REQUIRE((access(dut, false) & 1) == 1);
  REQUIRE(dut->colour_o != colour);
  dut->busy_i = static_cast<CData>(1u << !colour);    // newer work: of the first fence's new colour
  dut.tick(30);
  REQUIRE((access(dut, false) & 1) == 1);             // the second fence waits for it
  REQUIRE(access(dut, false) >> 16 == 1);
  REQUIRE(dut->colour_o == colour);
  dut->busy_i = 0;
  dut.tick(30);
  REQUIRE(access(dut, false) >> 16 == 2);
  REQUIRE((access(dut, false) & 1) == 0);
}
