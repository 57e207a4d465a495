// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_gid_copy: shows of every index what column GID was last told as a whole, whatever else is
// written or read on the context bus meanwhile, and however long a request stays there.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
using roci::hwif::CtxColumn;

TEST_CASE("GIDs by index") {
  Random random;
  Dut<DUT_CLASS> dut(random());
  constexpr unsigned kGids = ROCI_CONFIG_WIDE ? 16 : 8;
  std::vector<std::array<std::uint32_t, 4>> gids(kGids);
  std::array<std::uint32_t, 2> low{};
  const auto put = [&](CtxColumn column, bool write, unsigned index, unsigned word,
                       std::uint64_t data) {
    pkg::ctx_req_t request{};
    request.valid = true;
    request.write = write;
    request.column = static_cast<std::uint8_t>(column);
    request.index = static_cast<std::uint16_t>(index);
    request.word = static_cast<std::uint8_t>(word);
    request.wdata = data;
    request.pack(dut->ctx_i);
    dut.tick(1 + random.below(3));
    if (random.chance(0.5)) {
      pkg::ctx_req_t{}.pack(dut->ctx_i);
      dut.tick(random.below(3));
    }
  };
  const auto write = [&](unsigned index, unsigned word) {
    const std::uint64_t data = random();
    put(CtxColumn::GID, true, index, word, data);
    const std::array<std::uint32_t, 2> half{static_cast<std::uint32_t>(data),
                                            static_cast<std::uint32_t>(data >> 32)};
    if (word == 0) low = half;
    if (word == 1) gids[index] = {low[0], low[1], half[0], half[1]};
  };
  for (unsigned g = 0; g < kGids; ++g) {
    write(g, 0);
    write(g, 1);
  }
  for (unsigned n = 0; n < 3000; ++n) {
    const auto index = static_cast<unsigned>(random.below(kGids));
    switch (random.below(5)) {
      case 0: put(CtxColumn::QP_PATH, true, index, n % 2, random()); break;
      case 1: put(CtxColumn::GID, false, index, n % 3, random()); break;
      case 2: write(index, 2); break;
      case 3: write(index, 0); break;
      default: write(index, 1);
    }
    for (int k = 0; k < 3; ++k) {
      const auto look = static_cast<unsigned>(random.below(kGids));
      dut->index_i = static_cast<std::uint8_t>(look);
      dut.eval();
      for (unsigned w = 0; w < 4; ++w) REQUIRE(dut->gid_o[w] == gids[look][w]);
    }
  }
}
