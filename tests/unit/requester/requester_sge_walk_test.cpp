// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_sge_walk: random WQEs are walked with random takes, skips and drops; what is in hand
// must always be the bytes that a plain list of SGEs has at that place.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

namespace {

struct Bench {
  Dut<DUT_CLASS> dut;
  Random& random;
  Source<pkg::sge_t> sge;

  explicit Bench(Random& r)
      : dut(r()), random(r), sge("sge", dut->sge_valid_i, dut->sge_ready_o, dut->sge_i) {
    idle();
    dut.reset();
    dut.attach(sge);
  }
  void idle() {
    dut->start_i = dut->next_i = dut->take_i = dut->skip_i = dut->drop_i = 0;
    dut->count_i = static_cast<CData>(random.bits(4));
    dut->take_bytes_i = static_cast<SData>(random.bits(13));
    dut->take_all_i = random.chance(0.5);
    dut->skip_bytes_i = static_cast<IData>(random());
  }
  // One cycle with the orders set before it.
  void tick() {
    dut.tick();
    idle();
    dut.eval();
  }
  pkg::sge_t cur() { return pkg::sge_t::unpack(dut->cur_o); }
};

}  // namespace

TEST_CASE("walks equal a plain list") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Bench bench(random);
    auto& dut = bench.dut;
    const Stall stall = Stall::any(random);
    bench.sge.stall(stall);
    for (std::size_t n = 0; n < scaled(100); ++n) {
      const auto count = random.below(16);
      std::vector<pkg::sge_t> list;
      std::uint64_t total = 0;
      for (std::uint64_t k = 0; k < count; ++k) {
        auto s = random_payload<pkg::sge_t>(random);
        s.length = static_cast<std::uint32_t>(1 + (random.bits(27) >> random.below(28)));
        total += s.length;
        list.push_back(s);
        bench.sge.push(s);
      }
      dut.run_until([&] { return bench.sge.empty(); }, "SGEs in line");
      dut.tick(2);
      dut->start_i = 1;
      dut->count_i = static_cast<CData>(count);
      bench.tick();
      REQUIRE(dut->left_o == count);
      std::size_t at = 0;                              // SGE in hand
      std::uint64_t used = 0;                          // bytes of it
      if (count != 0 && random.chance(0.9)) {
        dut->next_i = 1;
        if (random.chance(0.4)) {
          std::uint64_t skip = random.below(random.chance(0.5) ? total : list[0].length + 1u);
          if (skip == total) --skip;
          dut->skip_i = 1;
          dut->skip_bytes_i = static_cast<IData>(skip);
          bench.tick();
          unsigned cycles = 0;
          for (; dut->skipping_o; ++cycles) bench.tick();
          while (skip >= list[at].length) skip -= list[at++].length;
          used = skip;
          REQUIRE(cycles <= at + 1);                   // one SGE per cycle
        } else {
          bench.tick();
        }
        const auto steps = random.below(40);
        for (std::uint64_t k = 0; k < steps && at < list.size(); ++k) {
          const auto s = bench.cur();
          REQUIRE(s.va == list[at].va + used);
          REQUIRE(s.length == list[at].length - used);
          REQUIRE(s.lkey == list[at].lkey);
          REQUIRE(dut->left_o == list.size() - 1 - at);
          if (random.chance(0.2)) {
            bench.tick();                              // nothing happens in between
            continue;
          }
          const auto most = std::min<std::uint64_t>(s.length, 4096);
          const auto bytes = random.chance(0.5) ? most : random.between(1, most);
          dut->take_i = 1;
          dut->take_bytes_i = static_cast<SData>(bytes);
          dut->take_all_i = bytes == s.length;
          bench.tick();
          used += bytes;
          if (used == list[at].length) {
            ++at;
            used = 0;
          }
        }
      }
      // the rest goes
      for (int limit = 0;; ++limit) {
        REQUIRE(limit < 17);
        dut->drop_i = 1;
        dut.eval();
        const bool done = dut->dropped_o;
        bench.tick();
        if (done) break;
      }
      REQUIRE(dut->left_o == 0);
    }
  }
}
