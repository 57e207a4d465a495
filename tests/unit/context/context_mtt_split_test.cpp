// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_mtt_split: parts cover the request exactly, none crosses 4 KB, at most two; tag, page and
// line address are those of each part's own page, and lines are aligned; failures and checks stay
// whole; one part per cycle.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
using Part = roci::sv::context_pkg::mtt_part_t;

TEST_CASE("requests of all places and lengths") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Dut<DUT_CLASS> dut(random());
    Source<pkg::mr_checked_t> checked("checked", dut->checked_valid_i, dut->checked_ready_o,
                                      dut->checked_i);
    Sink<Part> part("part", dut->part_valid_o, dut->part_ready_i, dut->part_o);
    const bool full_rate = round == 0;
    if (!full_rate) {
      checked.stall(Stall::any(random));
      part.stall(Stall::any(random));
    }
    dut.reset();
    dut.attach(checked);
    dut.attach(part);
    std::size_t parts = 0;
    for (std::size_t n = 0; n < scaled(500); ++n) {
      auto q = random_payload<pkg::mr_checked_t>(random);
      q.status = static_cast<pkg::xlat_status_e>(random.chance(0.2) ? random.between(1, 5) : 0);
      q.check_only = random.chance(0.2);
      q.length = static_cast<std::uint16_t>(random.between(1, 4096));
      q.page_shift = static_cast<std::uint8_t>(random.between(12, 30));
      if (random.chance(0.3)) q.addr = (q.addr | 0xfff) - random.below(4);
      checked.push(q);
      const bool alone = q.check_only || static_cast<unsigned>(q.status) != 0;
      std::uint64_t at = q.addr;
      unsigned left = q.length;
      do {
        const auto room = static_cast<unsigned>(0x1000 - (at & 0xfff));
        Part want{};
        want.status = q.status;
        want.length = static_cast<std::uint16_t>(alone ? left : std::min(left, room));
        left -= want.length;
        want.last = left == 0;
        want.paged = q.paged && !alone;
        want.fn = q.fn;
        want.addr = at;
        want.page_shift = q.page_shift;
        const std::uint64_t page = (at >> q.page_shift) & ((std::uint64_t{1} << 52) - 1);
        want.tag.mr = q.mr;
        want.tag.incarnation = q.incarnation;
        want.tag.line = page / 8;
        want.page = static_cast<std::uint8_t>(page % 8);
        // A table that does not start on a line is taken as if it did: lines are never unaligned.
        want.line_address = q.table_address / 64 * 64 + page / 8 * 64;
        part.expect(want);
        at += want.length;
        ++parts;
      } while (left != 0);
    }
    const auto start = dut.cycle();
    dut.run_until([&] { return part.done(); }, "all parts");
    if (full_rate) REQUIRE(dut.cycle() - start <= parts + 4);
  }
}
