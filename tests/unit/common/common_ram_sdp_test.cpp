// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_ram_sdp: data, write enables, latency, holding, and what a collision returns.
// Reference: std::map of words, reads taken after earlier writes (and this cycle's with BYPASS).
// model: configs=any args=-GWIDTH=36 args=-GDEPTH=24 args=-GGRANULE=36 args=-GLATENCY=0 args=-GBYPASS=0 args='-GSTYLE="distributed"' name=l0
// model: configs=any args=-GWIDTH=36 args=-GDEPTH=32 args=-GGRANULE=9 args=-GLATENCY=1 args=-GBYPASS=0 args='-GSTYLE="auto"' name=l1
// model: configs=any args=-GWIDTH=36 args=-GDEPTH=32 args=-GGRANULE=9 args=-GLATENCY=1 args=-GBYPASS=1 args='-GSTYLE="block"' name=l1b
// model: configs=any args=-GWIDTH=128 args=-GDEPTH=17 args=-GGRANULE=32 args=-GLATENCY=2 args=-GBYPASS=1 args='-GSTYLE="block"' name=l2b
// model: configs=any args=-GWIDTH=72 args=-GDEPTH=64 args=-GGRANULE=72 args=-GLATENCY=3 args=-GBYPASS=0 args='-GSTYLE="ultra"' name=l3
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;
using Item = Bits<DUT_WIDTH>;
constexpr unsigned enables = DUT_WIDTH / DUT_GRANULE;
constexpr unsigned latency = DUT_LATENCY;

void write_granules(Item& word, const Item& data, std::uint64_t we) {
  for (unsigned e = 0; e < enables; ++e) {
    if (((we >> e) & 1u) == 0) continue;
    for (unsigned bit = e * DUT_GRANULE; bit < (e + 1) * DUT_GRANULE; ++bit) {
      word.set(bit, 1, data.get(bit, 1));
    }
  }
}

/// One expected read result; bits of granules that collided without BYPASS are not compared.
struct Expected {
  Item word;
  std::uint64_t undefined = 0;  // granules
};

std::size_t compared = 0;  // granules, in all rounds

void compare(const Item& got, const Expected& expected) {
  for (unsigned e = 0; e < enables; ++e) {
    if ((expected.undefined >> e) & 1u) continue;
    ++compared;
    for (unsigned bit = e * DUT_GRANULE; bit < (e + 1) * DUT_GRANULE; ++bit) {
      if (got.get(bit, 1) == expected.word.get(bit, 1)) continue;
      FAIL("bit " << bit << ": expected " << expected.word << ", got " << got);
    }
  }
}
}  // namespace

TEST_CASE("random reads and writes") {
  Random random;
  for (int round = 0; round < 6; ++round) {
    Dut<DUT_CLASS> dut(random());
    std::vector<Item> memory(DUT_DEPTH);
    const std::uint64_t all = (std::uint64_t{1} << enables) - 1;
    dut->re_i = 0;
    dut->we_i = 0;
    for (unsigned a = 0; a < DUT_DEPTH; ++a) {
      memory[a] = random_payload<Item>(random);
      dut->we_i = static_cast<CData>(all);
      dut->waddr_i = static_cast<CData>(a);
      memory[a].pack(dut->wdata_i);
      dut.tick();
    }
    dut->we_i = 0;
    const std::uint64_t span = round % 2 ? DUT_DEPTH : 3;  // few addresses: many collisions
    std::deque<std::optional<Expected>> pipe(latency);
    Expected last;
    bool last_valid = false;
    std::size_t collisions = 0, looked_wrong = 0;
    for (std::size_t n = 0; n < scaled(4000); ++n) {
      const std::uint64_t we = random.chance(0.6) ? random.bits(enables) : 0;
      const unsigned waddr = static_cast<unsigned>(random.below(span));
      const unsigned raddr = static_cast<unsigned>(random.below(span));
      const bool re = random.chance(0.7);
      const Item data = random_payload<Item>(random);
      dut->we_i = static_cast<CData>(we);
      dut->waddr_i = static_cast<CData>(waddr);
      dut->raddr_i = static_cast<CData>(raddr);
      dut->re_i = re;
      data.pack(dut->wdata_i);
      dut.eval();
      Expected expected{memory[raddr]};
      write_granules(memory[waddr], data, we);
      if (latency == 0) {
        compare(Item::unpack(dut->rdata_o), expected);
        dut.tick();
        continue;
      }
      if (DUT_BYPASS) {
        expected.word = memory[raddr];
      } else if (waddr == raddr) {
        expected.undefined = we;
        collisions += re && we != 0;
      }
      pipe.push_back(re ? std::optional(expected) : std::nullopt);
      dut.tick();
      // `pipe` holds the reads of this and the latency - 1 cycles before: the oldest arrives now.
      while (pipe.size() > latency) pipe.pop_front();
      const auto& now = pipe.front();
      if (now) {
        last = *now;
        last_valid = true;
      }
      if (last_valid) {
        compare(Item::unpack(dut->rdata_o), last);
        if (last.undefined != 0 && !(Item::unpack(dut->rdata_o) == last.word)) ++looked_wrong;
      }
    }
    if (latency != 0 && !DUT_BYPASS && span == 3) {
      // A read that collides must look wrong in simulation.
      REQUIRE(collisions > 100);
      REQUIRE(looked_wrong > 50);
    }
  }
  REQUIRE(compared > 10000);
}
