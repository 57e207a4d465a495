// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_mtt_client: answers come in order, whether their page was there or comes from the bus, error
// included; nothing is lost when nobody takes answers, whatever was looked up meanwhile; what was there
// is answered in the next cycle when nobody waits, and in every cycle when many come.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace ctx = roci::sv::context_pkg;

namespace {

constexpr unsigned kParts = ROCI_CONFIG_WIDE ? 256 : 16;

// The cache's side: a part comes in the cycle after room was seen, pages some time after their parts.
struct Bench {
  Dut<DUT_CLASS> dut;
  Random& random;
  Sink<pkg::xlat_rsp_t> rsp;
  std::deque<std::pair<std::uint64_t, bool>> coming;     // pages on the bus, and whether they fail
  std::vector<pkg::xlat_rsp_t> expected;
  std::size_t looked = 0, errors = 0;
  bool looking = false;                                  // a part was looked up in the cycle before
  double found = 0.5;                                    // how often the page is there

  explicit Bench(Random& r)
      : dut(r()), random(r), rsp("rsp", dut->rsp_valid_o, dut->rsp_ready_i, dut->rsp_o) {
    dut->part_valid_i = 0;
    dut->page_valid_i = 0;
    rsp.collect();
    dut.reset();
    dut.attach(rsp);
  }

  // One cycle; `look`: a part is looked up if there is room; `bus`: a page may come.
  void tick(bool look, bool bus) {
    dut->page_valid_i = bus && !coming.empty();
    if (dut->page_valid_i) {
      dut->page_i = coming.front().first;
      dut->page_err_i = coming.front().second;
      coming.pop_front();
    }
    dut->part_valid_i = looking;
    if (looking) {
      auto p = random_payload<ctx::mtt_looked_t>(random);
      p.fetched = !random.chance(found);
      p.page_shift = static_cast<std::uint8_t>(random.between(12, 30));
      p.status = static_cast<pkg::xlat_status_e>(p.fetched ? 0 : random.below(5));
      p.pack(dut->part_i);
      pkg::xlat_rsp_t want{};
      want.status = p.status;
      want.last = p.last;
      want.length = p.length;
      want.addr = p.addr;
      if (p.fetched) {
        const auto page = random() & ((std::uint64_t{1} << 52) - 1);
        const bool err = random.chance(0.2);
        coming.emplace_back(page, err);
        errors += err;
        if (err) want.status = static_cast<pkg::xlat_status_e>(5);
        const auto mask = (std::uint64_t{1} << p.page_shift) - 1;
        want.addr = (page << 12 & ~mask) | (p.addr & mask);
      }
      expected.push_back(want);
    }
    dut.eval();
    looking = look && dut->room_o;
    looked += looking;
    dut.tick();
  }

  void expect_all() {
    while (rsp.received().size() < expected.size() + (looking ? 1 : 0)) {
      const auto before = dut.cycle();
      tick(false, true);
      REQUIRE(before < 1000000);
    }
    REQUIRE(rsp.received().size() == expected.size());
    for (std::size_t n = 0; n < expected.size(); ++n) {
      auto want = expected[n];
      // the address of a page that could not be read says nothing
      if (static_cast<unsigned>(want.status) == 5) want.addr = rsp.received()[n].addr;
      INFO("answer " << n);
      REQUIRE(rsp.received()[n] == want);
    }
    rsp.received().clear();
    expected.clear();
  }
};

}  // namespace

TEST_CASE("answers in order, found and fetched ones") {
  Random random;
  std::size_t errors = 0;
  for (int round = 0; round < 20; ++round) {
    Bench bench(random);
    bench.rsp.stall(Stall::any(random));
    for (int phase = 0; phase < 6; ++phase) {
      bench.found = random.chance(0.3) ? 1.0 : random.chance(0.3) ? 0.0 : 0.5;
      const double look = random.chance(0.5) ? 1.0 : 0.3, bus = random.chance(0.5) ? 1.0 : 0.1;
      for (std::size_t n = 0; n < scaled(400); ++n) {
        bench.tick(random.chance(look), random.chance(bus));
      }
      if (random.chance(0.5)) bench.expect_all();
    }
    bench.expect_all();
    errors += bench.errors;
  }
  REQUIRE(errors > 100);
}

TEST_CASE("nobody takes answers: all that were let in are kept") {
  Random random;
  for (const double found : {0.0, 0.5, 1.0}) {
    Bench bench(random);
    bench.found = found;
    bench.rsp.stall(Stall(1.0));
    for (unsigned n = 0; n < 4 * kParts; ++n) bench.tick(true, true);
    REQUIRE(bench.looked >= kParts - 2);
    REQUIRE(bench.looked <= kParts + 1);
    bench.rsp.stall(Stall());
    bench.expect_all();
  }
}

TEST_CASE("what is there is answered in the next cycle, and at one a cycle") {
  Random random;
  Bench bench(random);
  bench.found = 1.0;
  for (int n = 0; n < 10; ++n) {
    for (int idle = 0; idle < 10; ++idle) bench.tick(false, true);
    bench.tick(true, true);                              // looked up
    bench.tick(false, true);                             // comes
    bench.tick(false, true);                             // is the answer
    REQUIRE(bench.rsp.received().size() == 1);
    bench.expect_all();
  }
  const auto start = bench.dut.cycle();
  while (bench.looked < 10 + 1000) bench.tick(true, true);
  bench.expect_all();
  REQUIRE(bench.dut.cycle() - start < 1010);
}
