// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_dma_landing: words written in any order come out in the order of allocation, over many laps;
// allocation never exceeds the ring; a word leaves two cycles after its write.
// model: configs=wide,narrow args=-GDEPTH=16 args=-GBURST_BEATS=8 name=d16
// model: configs=wide,narrow args=-GDEPTH=64 args=-GBURST_BEATS=32 name=d64
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>

#include "data_word.hpp"
#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
using Beat = roci::sv::roci_pkg::read_beat_t;

struct Word {
  unsigned ptr;
  Beat beat;
};

void prepare(Dut<DUT_CLASS>& dut) {
  dut->alloc_i = 0;
  dut->write_i = 0;
  dut->beat_ready_i = 0;
  dut.reset();
  dut.run_until([&] { return dut->ready_o != 0; }, "cleared", DUT_DEPTH + 2);
}
}  // namespace

TEST_CASE("order of allocation, any order of arrival") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Dut<DUT_CLASS> dut(random());
    prepare(dut);
    std::deque<Beat> expected;
    std::vector<std::deque<Word>> bursts;  // arriving: in order within a burst
    const double alloc = random.chance(0.5) ? 1.0 : 0.2, arrive = random.chance(0.5) ? 1.0 : 0.4;
    Stall out = Stall::any(random);
    std::size_t words = 0, taken = 0;
    const std::size_t total = scaled(5000);
    for (std::uint64_t cycle = 0; taken < total; ++cycle) {
      REQUIRE(cycle < 1000000);
      const auto beats = static_cast<unsigned>(random.between(1, DUT_BURST_BEATS));
      dut->alloc_i = 0;
      dut->alloc_len_i = static_cast<CData>(beats - 1);
      dut->write_i = 0;
      if (!bursts.empty() && random.chance(arrive)) {
        const std::size_t pick = random.below(bursts.size());
        const Word word = bursts[pick].front();
        bursts[pick].pop_front();
        if (bursts[pick].empty()) bursts.erase(bursts.begin() + static_cast<std::ptrdiff_t>(pick));
        dut->write_i = 1;
        dut->write_ptr_i = static_cast<std::decay_t<decltype(dut->write_ptr_i)>>(word.ptr);
        word.beat.pack(dut->write_beat_i);
      }
      if (dut->room_o && random.chance(alloc)) {
        dut->alloc_i = 1;
        std::deque<Word> burst;
        for (unsigned n = 0; n < beats; ++n) {
          const auto beat = random_payload<Beat>(random);
          burst.push_back({(dut->alloc_ptr_o + n) % (2 * DUT_DEPTH), beat});
          expected.push_back(beat);
        }
        bursts.push_back(burst);
        words += beats;
        REQUIRE(words - taken <= DUT_DEPTH + 1);  // one more stands in the output register
      }
      dut->beat_ready_i = !out.next(random);
      dut.eval();
      if (dut->beat_valid_o && dut->beat_ready_i) {
        REQUIRE(!expected.empty());
        REQUIRE(Beat::unpack(dut->beat_o) == expected.front());
        expected.pop_front();
        ++taken;
      }
      dut.tick();
    }
  }
}

TEST_CASE("a word at the head leaves two cycles after its write, then one per cycle") {
  Dut<DUT_CLASS> dut(1);
  prepare(dut);
  dut->alloc_i = 1;
  dut->alloc_len_i = 3;
  const unsigned ptr = dut->alloc_ptr_o;
  dut.tick();
  dut->alloc_i = 0;
  dut->beat_ready_i = 1;
  for (unsigned cycle = 0; cycle < 8; ++cycle) {
    dut->write_i = cycle < 4;
    dut->write_ptr_i = static_cast<std::decay_t<decltype(dut->write_ptr_i)>>(ptr + cycle);
    dut.eval();
    CHECK(dut->beat_valid_o == (cycle >= 2 && cycle < 6));
    dut.tick();
  }
}
