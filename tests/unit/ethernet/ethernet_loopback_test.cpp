// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_loopback: whole packets only, unchanged and in order, with their Ethernet fields; two
// maximum packets fit while nobody takes any.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "harness/packet_beats.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

namespace {

using Input = SidedSource<pkg::beat_t, pkg::packet_side_t>;

}  // namespace

TEST_CASE("whole packets, in order") {
  Random random;
  for (int round = 0; round < 8; ++round) {
    Dut<DUT_CLASS> dut(random());
    Input input(dut, random());
    input.idle(random.chance(0.5) ? 0.0 : 0.5);
    Sink<pkg::beat_t> out("packet", dut->packet_valid_o, dut->packet_ready_i, dut->packet_o);
    Monitor<pkg::rx_side_t> side("side", dut->packet_valid_o, dut->packet_ready_i, dut->side_o);
    std::vector<pkg::rx_side_t> sides, expected_sides;
    side.on_transfer([&](const pkg::rx_side_t& s) { sides.push_back(s); });
    out.stall(Stall::any(random));
    dut.reset();
    for (int n = 0; n < 60; ++n) {
      const auto s = random_payload<pkg::packet_side_t>(random);
      const auto bytes = random.bytes(random.between(56, random.chance(0.2) ? 4184 : 300));
      for (const auto& beat : to_beats<pkg::beat_t>(bytes, random, random.chance(0.2))) {
        input.push(beat, s);
        out.expect(beat);
        pkg::rx_side_t want{};
        want.loopback = true;
        want.ethernet.smac = s.ethernet.smac;
        want.ethernet.vlan_valid = s.ethernet.vlan_valid;
        want.ethernet.tci = s.ethernet.tci;
        expected_sides.push_back(want);
      }
    }
    dut.attach(input);
    dut.attach(out);
    dut.attach(side);
    std::uint64_t ended = 0;
    bool open = false;
    while (!out.done()) {
      dut.eval();
      // once a packet has begun to leave it never pauses, since it is there as a whole
      if (open) REQUIRE(dut->packet_valid_o);
      if (dut->packet_valid_o) REQUIRE(input.whole() > ended);
      if (dut->packet_valid_o && dut->packet_ready_i) {
        open = !pkg::beat_t::unpack(dut->packet_o).last;
        ended += !open;
      }
      dut.tick();
      REQUIRE(dut.cycle() < 2000000);
    }
    REQUIRE(sides == expected_sides);
  }
}

// In narrow the memory has 1024 beats: the end of the second follows when the first leaves.
TEST_CASE("two maximum packets fit") {
  Random random;
  Dut<DUT_CLASS> dut;
  Input input(dut, 3);
  dut->packet_ready_i = 0;
  dut.reset();
  for (int n = 0; n < 2; ++n) {
    for (const auto& beat : to_beats<pkg::beat_t>(random.bytes(4184), random)) {
      input.push(beat, pkg::packet_side_t{});
    }
  }
  dut.attach(input);
  const unsigned whole = ROCI_CONFIG_WIDE ? 2 : 1;
  dut.run_until([&] { return input.whole() == whole; }, "whole packets", 3000);
  if (!ROCI_CONFIG_WIDE) {
    dut.tick(600);
    CHECK(input.pending() == 2 * ((4184 + 7) / 8) - 1024);
    dut->packet_ready_i = 1;
    dut.run_until([&] { return input.whole() == 2; }, "the second packet", 100);
  }
}
