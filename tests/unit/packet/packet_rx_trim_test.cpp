// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_rx_trim: packets end at 40 + PayLen whatever follows; short frames end where they end and
// are called short; of frames above 4176 bytes no more goes on, and they are called long; the frame's
// verdict comes with its real end, never before the packet's last beat.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <array>

#include "harness/harness.hpp"
#include "harness/packet_beats.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

TEST_CASE("frames of all lengths and PayLens") {
  constexpr unsigned width = beat_bytes<pkg::beat_t>();
  Random random;
  for (int round = 0; round < 5; ++round) {
    Dut<DUT_CLASS> dut(random());
    dut->frame_valid_i = 0;
    dut.reset();
    Packets<pkg::beat_t> out;
    std::vector<std::array<bool, 3>> ends;             // bad FCS, short, long
    bool first = true;
    const auto tick = [&] {
      if (dut->beat_valid_o) {
        REQUIRE((dut->first_o != 0) == first);
        first = out.add(pkg::beat_t::unpack(dut->beat_o));
      }
      if (dut->end_valid_o) {
        ends.push_back({dut->end_fcs_bad_o != 0, dut->end_short_o != 0, dut->end_long_o != 0});
        REQUIRE(out.done().size() == ends.size());
      }
      dut.tick();
    };
    std::vector<std::vector<std::uint8_t>> expected;
    std::vector<std::array<bool, 3>> expected_ends;
    std::size_t longs = 0;
    const double idle = random.chance(0.5) ? 0.0 : 0.4;
    for (std::size_t n = 0; n < scaled(300); ++n) {
      auto frame = random.bytes(random.chance(0.05) ? random.between(4170, 4190)
                                : random.chance(0.02) ? random.between(4191, 12000)
                                : random.between(8, random.chance(0.5) ? 60 : 400));
      // PayLen shorter than, equal to, or longer than the frame, or anything
      const auto size = static_cast<unsigned>(frame.size());
      unsigned pay_len = static_cast<unsigned>(random.bits(16));
      if (size > 40 && random.chance(0.8)) {
        pay_len = size - 40 - static_cast<unsigned>(random.below(std::min(size - 40, 40u)));
        if (random.chance(0.2)) pay_len = size - 40 + static_cast<unsigned>(random.below(5));
      }
      frame[4] = static_cast<std::uint8_t>(pay_len >> 8);
      frame[5] = static_cast<std::uint8_t>(pay_len);
      const bool is_long = size > 4176;
      // a long packet is cut in the beat that has its byte 4177: what it lacks then is of no interest
      const bool is_cut = is_long && 40 + pay_len > 4176;
      const unsigned stays =
          is_cut ? std::min((4176 / width + 1) * width, 40 + pay_len) : 40 + pay_len;
      const bool is_short = 40 + pay_len > size && !(is_cut && stays < size);
      const bool bad = random.chance(0.3);
      expected.emplace_back(frame.begin(), frame.begin() + std::min(size, stays));
      expected_ends.push_back({bad, is_short, is_long});
      longs += is_long;
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
    CHECK(longs > 0);
    REQUIRE(ends == expected_ends);
    REQUIRE(out.done().size() == expected.size());
    for (std::size_t n = 0; n < expected.size(); ++n) {
      INFO("frame " << n);
      REQUIRE(out.done()[n].bytes == expected[n]);
    }
  }
}
