// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_rx_count: every good frame of wire and loopback counts once, with its bytes, also when both
// end together; aborted loopback frames do not count.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

TEST_CASE("frames and bytes of both sides add up") {
  constexpr unsigned kBeat = ROCI_CONFIG_WIDE ? 64 : 8;
  Random random;
  for (int round = 0; round < 5; ++round) {
    Dut<DUT_CLASS> dut(random());
    dut->wire_good_i = 0;
    dut->loopback_valid_i = 0;
    dut.reset();
    dut.tick();
    std::uint64_t frames = 0, bytes = 0, want_frames = 0, want_bytes = 0, together = 0;
    std::uint64_t left = 0, length = 0;    // beats and bytes of the loopback frame in work
    unsigned pause = 0;                    // a frame of the wire takes two cycles at least
    auto side = random_payload<pkg::rx_side_t>(random);
    for (std::size_t n = 0; n < scaled(5000); ++n) {
      dut->wire_good_i = pause == 0 && random.chance(0.6);
      dut->wire_bytes_i = static_cast<decltype(+dut->wire_bytes_i)>(random.below(9000));
      pause = dut->wire_good_i;
      if (dut->wire_good_i) {
        ++want_frames;
        want_bytes += dut->wire_bytes_i;
      }
      if (left == 0) {
        left = random.between(2, 6);
        side = random_payload<pkg::rx_side_t>(random);
        length = side.ethernet.vlan_valid ? 18 : 14;
      }
      dut->loopback_valid_i = random.chance(0.8);
      auto beat = random_payload<pkg::beat_t>(random);
      beat.last = left == 1;
      beat.bytes = static_cast<decltype(beat.bytes)>(beat.last ? random.between(1, kBeat) : kBeat);
      beat.err = beat.last && random.chance(0.2);
      beat.pack(dut->loopback_i);
      side.pack(dut->loopback_side_i);
      if (dut->loopback_valid_i) {
        --left;
        length += beat.bytes;
        if (beat.last && !beat.err) {
          ++want_frames;
          want_bytes += length;
          together += dut->wire_good_i;
        }
      }
      dut.tick();
      const auto count = roci::sv::roci_count_pkg::rx_frame_count_t::unpack(dut->count_o);
      frames += count.frame;
      bytes += count.bytes;
    }
    dut->wire_good_i = 0;
    dut->loopback_valid_i = 0;
    for (int n = 0; n < 8; ++n) {
      dut.tick();
      const auto count = roci::sv::roci_count_pkg::rx_frame_count_t::unpack(dut->count_o);
      frames += count.frame;
      bytes += count.bytes;
    }
    REQUIRE(frames == want_frames);
    REQUIRE(bytes == want_bytes);
    REQUIRE(together > 50);
  }
}

TEST_CASE("frames of one beat on both sides in every cycle, and the longest frames together") {
  constexpr unsigned kBeat = ROCI_CONFIG_WIDE ? 64 : 8;
  Random random;
  Dut<DUT_CLASS> dut(random());
  dut->wire_good_i = 0;
  dut->loopback_valid_i = 0;
  dut.reset();
  std::uint64_t frames = 0, bytes = 0, want_frames = 0, want_bytes = 0;
  const auto tick = [&] {
    dut.tick();
    const auto count = roci::sv::roci_count_pkg::rx_frame_count_t::unpack(dut->count_o);
    frames += count.frame;
    bytes += count.bytes;
  };
  pkg::rx_side_t side{};
  side.pack(dut->loopback_side_i);
  for (std::size_t round = 0; round < scaled(20); ++round) {
    const std::size_t burst = random.between(1, ROCI_CONFIG_WIDE ? 2000 : 6);
    for (std::size_t n = 0; n < burst; ++n) {
      pkg::beat_t beat{};
      beat.last = true;
      beat.bytes = static_cast<decltype(beat.bytes)>(random.between(1, kBeat));
      beat.pack(dut->loopback_i);
      dut->loopback_valid_i = 1;
      dut->wire_good_i = 1;
      dut->wire_bytes_i = 60;
      want_frames += 2;
      want_bytes += 60 + 14 + beat.bytes;
      tick();
    }
    // the longest frame of loopback ends with the longest of the wire
    dut->wire_good_i = 0;
    pkg::beat_t beat{};
    beat.bytes = kBeat;
    for (unsigned left = 4096 / kBeat + 1; left != 0; --left) {
      beat.last = left == 1;
      beat.pack(dut->loopback_i);
      dut->wire_good_i = beat.last;
      dut->wire_bytes_i = 0x3fff;
      tick();
      want_bytes += kBeat;
    }
    want_frames += 2;
    want_bytes += 14 + 0x3fff;
    dut->wire_good_i = 0;
    dut->loopback_valid_i = 0;
    for (std::size_t n = 0; n < burst + 4; ++n) tick();
    REQUIRE(frames == want_frames);
    REQUIRE(bytes == want_bytes);
  }
}
