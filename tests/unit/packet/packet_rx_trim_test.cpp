// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_rx_trim: packets end at 40 + PayLen whatever follows; short frames end where they end and
// are called short; the frame's verdict comes with its real end, never before the packet's last beat.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "harness/packet_beats.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

TEST_CASE("frames of all lengths and PayLens") {
  Random random;
  for (int round = 0; round < 5; ++round) {
    Dut<DUT_CLASS> dut(random());
    dut->frame_valid_i = 0;
    dut.reset();
    Packets<pkg::beat_t> out;
    std::vector<std::pair<bool, bool>> ends;
    bool first = true;
    const auto tick = [&] {
      if (dut->beat_valid_o) {
        REQUIRE((dut->first_o != 0) == first);
        first = out.add(pkg::beat_t::unpack(dut->beat_o));
      }
      if (dut->end_valid_o) {
        ends.emplace_back(dut->end_fcs_bad_o, dut->end_short_o);
        REQUIRE(out.done().size() == ends.size());
      }
      dut.tick();
    };
    std::vector<std::vector<std::uint8_t>> expected;
    std::vector<std::pair<bool, bool>> expected_ends;
    const double idle = random.chance(0.5) ? 0.0 : 0.4;
    for (std::size_t n = 0; n < scaled(300); ++n) {
      auto frame = random.bytes(random.between(8, random.chance(0.5) ? 60 : 400));
      // PayLen shorter than, equal to, or longer than the frame, or anything
      const auto size = static_cast<unsigned>(frame.size());
      unsigned pay_len = static_cast<unsigned>(random.bits(16));
      if (size > 40 && random.chance(0.8)) {
        pay_len = size - 40 - static_cast<unsigned>(random.below(std::min(size - 40, 40u)));
        if (random.chance(0.2)) pay_len = size - 40 + static_cast<unsigned>(random.below(5));
      }
      frame[4] = static_cast<std::uint8_t>(pay_len >> 8);
      frame[5] = static_cast<std::uint8_t>(pay_len);
      const bool is_short = 40 + pay_len > size;
      const bool bad = random.chance(0.3);
      expected.emplace_back(frame.begin(), frame.begin() + std::min(size, 40 + pay_len));
      expected_ends.emplace_back(bad, is_short);
      for (const auto& beat : to_beats<pkg::beat_t>(frame, random, bad)) {
        while (random.chance(idle)) {
          dut->frame_valid_i = 0;
          tick();
        }
        beat.pack(dut->frame_i);
        dut->frame_valid_i = 1;
        tick();
      }
      dut->frame_valid_i = 0;
    }
    for (int n = 0; n < 5; ++n) tick();
    REQUIRE(ends == expected_ends);
    REQUIRE(out.done().size() == expected.size());
    for (std::size_t n = 0; n < expected.size(); ++n) {
      INFO("frame " << n);
      REQUIRE(out.done()[n].bytes == expected[n]);
    }
  }
}
