// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_merge: packets of both sides come out whole and in order; the wire at full rate loses
// nothing while loopback passes; loopback begins only when there is room.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "harness/packet_beats.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

TEST_CASE("wire at full rate and loopback together") {
  Random random;
  for (int round = 0; round < 8; ++round) {
    Dut<DUT_CLASS> dut(random());
    dut->wire_valid_i = 0;
    dut->loopback_valid_i = 0;
    dut->loopback_room_i = 0;
    dut.reset();
    std::deque<std::pair<pkg::beat_t, pkg::rx_side_t>> wire, loopback;
    std::deque<std::vector<std::uint8_t>> wire_expected, loopback_expected;
    std::deque<pkg::rx_side_t> wire_sides, loopback_sides;
    const auto make = [&](auto& queue, auto& expected, auto& sides, bool loop) {
      auto side = random_payload<pkg::rx_side_t>(random);
      side.loopback = loop;
      expected.push_back(random.bytes(random.between(56, random.chance(0.4) ? 4184 : 300)));
      sides.push_back(side);
      for (const auto& b : to_beats<pkg::beat_t>(expected.back(), random)) queue.emplace_back(b, side);
    };
    for (int n = 0; n < 80; ++n) {
      make(wire, wire_expected, wire_sides, false);
      make(loopback, loopback_expected, loopback_sides, true);
    }
    Packets<pkg::beat_t> out;
    bool first = true;
    pkg::rx_side_t side{};
    double credit = 0.0;                   // the wire brings 50 of 64 bytes per cycle (or 78 %)
    std::size_t wire_done = 0, loopback_done = 0;
    bool room = false;
    while (wire_done + loopback_done < 160) {
      REQUIRE(dut.cycle() < 500000);
      credit = std::min(credit + 50.0 / 64.0, 1.0);
      const bool wire_now = !wire.empty() && credit >= 1.0;
      dut->wire_valid_i = wire_now;
      if (wire_now) {
        wire.front().first.pack(dut->wire_i);
        wire.front().second.pack(dut->wire_side_i);
        credit -= 1.0;
      }
      dut->loopback_valid_i = !loopback.empty();
      if (!loopback.empty()) {
        loopback.front().first.pack(dut->loopback_i);
        loopback.front().second.pack(dut->loopback_side_i);
      }
      room = random.chance(0.3);
      dut->loopback_room_i = room;
      dut.eval();
      if (dut->frame_valid_o) {
        const auto s = pkg::rx_side_t::unpack(dut->side_o);
        if (first) {
          side = s;
          if (s.loopback) REQUIRE(room);
        }
        REQUIRE(s == side);
        first = out.add(pkg::beat_t::unpack(dut->frame_o));
        if (first) {
          auto& expected = s.loopback ? loopback_expected : wire_expected;
          auto& sides = s.loopback ? loopback_sides : wire_sides;
          REQUIRE(out.done().back().bytes == expected.front());
          REQUIRE(s == sides.front());
          expected.pop_front();
          sides.pop_front();
          ++(s.loopback ? loopback_done : wire_done);
        }
      }
      const bool took = !loopback.empty() && dut->loopback_ready_o;
      dut.tick();
      if (wire_now) wire.pop_front();
      if (took) loopback.pop_front();
    }
    REQUIRE(wire_done == 80);
    REQUIRE(loopback_done == 80);
  }
}
