// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_route: packets to the own MAC go inside, others to the wire, unchanged and in order; one
// report per packet, with its fate; a disabled port sends nothing; counts.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

namespace {

constexpr unsigned kBeat = ROCI_CONFIG_WIDE ? 64 : 8;

using Input = SidedSource<pkg::beat_t, pkg::packet_side_t>;

}  // namespace

TEST_CASE("own MAC inside, the rest outside") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Dut<DUT_CLASS> dut(random());
    auto port = random_payload<pkg::port_t>(random);
    port.pack(dut->port_i);
    Input input(dut, 17);
    input.idle(0.2);
    Sink<pkg::beat_t> wire("wire", dut->wire_valid_o, dut->wire_ready_i, dut->wire_o);
    Sink<pkg::beat_t> loopback("loopback", dut->loopback_valid_o, dut->loopback_ready_i,
                               dut->loopback_o);
    Monitor<pkg::tx_done_t> done("done", dut->done_valid_o, dut->done_o);
    std::vector<pkg::tx_done_t> reports;
    std::vector<pkg::tx_done_t> expected;
    std::vector<bool> to_wire, want_wire;
    done.on_transfer([&](const pkg::tx_done_t& d) {
      reports.push_back(d);
      to_wire.push_back(dut->done_wire_o);
    });
    wire.stall(Stall::any(random));
    loopback.stall(Stall::any(random));
    dut->enable_i = 1;
    dut.reset();
    dut.tick();
    std::uint64_t frames = 0, bytes = 0, inside = 0, multicast = 0;
    std::uint64_t want_frames = 0, want_bytes = 0, want_inside = 0, want_multicast = 0;
    const auto count = [&] {
      const auto c = roci::sv::roci_count_pkg::tx_frame_count_t::unpack(dut->count_o);
      frames += c.frame;
      bytes += c.bytes;
      inside += c.loopback;
      multicast += c.multicast;
    };
    const int off = static_cast<int>(random.between(50, 100));   // frames while it is disabled
    for (int n = 0; n < 200; ++n) {
      const bool on = n < off || n >= off + 50;
      auto side = random_payload<pkg::packet_side_t>(random);
      const bool own = random.chance(0.5);
      if (own) side.ethernet.dmac = port.mac;
      const auto beats = random.between(1, 5);
      std::uint64_t length = side.ethernet.vlan_valid ? 18 : 14;
      for (std::uint64_t k = 1; k <= beats; ++k) {
        auto beat = random_payload<pkg::beat_t>(random);
        beat.last = k == beats;
        beat.err = beat.last && random.chance(0.3);
        beat.bytes = beat.last ? static_cast<decltype(beat.bytes)>(random.between(1, kBeat)) : kBeat;
        input.push(beat, side);
        length += beat.bytes;
        if (on) (own ? loopback : wire).expect(beat);
        if (beat.last && on && !beat.err) {
          ++want_frames;
          want_bytes += length;
          want_inside += own;
          want_multicast += (side.ethernet.dmac >> 40u) & 1u;
        }
        if (beat.last) {
          auto report = side.done;
          report.fate = static_cast<pkg::tx_fate_e>(beat.err ? 2 : 0);
          expected.push_back(report);
          want_wire.push_back(on && !own);
        }
      }
    }
    dut.attach(input);
    dut.attach(wire);
    dut.attach(loopback);
    dut.attach(done);
    // the switch is turned while the input rests: which frames it meets is then known
    for (const int turn : {off, off + 50, 200}) {
      input.hold_at(static_cast<std::size_t>(200 - turn));
      dut.run_until(
          [&] {
            count();
            return input.rests();
          },
          "frames");
      for (int n = 0; n < 5; ++n) {
        dut.tick();
        count();
      }
      dut->enable_i = !dut->enable_i;
      dut.tick(3);
    }
    REQUIRE(wire.done());
    REQUIRE(loopback.done());
    REQUIRE(reports == expected);
    REQUIRE(to_wire == want_wire);
    REQUIRE(frames == want_frames);
    REQUIRE(bytes == want_bytes);
    REQUIRE(inside == want_inside);
    REQUIRE(multicast == want_multicast);
  }
}

TEST_CASE("a MAC that changes inside a packet cuts none") {
  Random random;
  Dut<DUT_CLASS> dut(random());
  auto port = random_payload<pkg::port_t>(random);
  const std::uint64_t macs[] = {port.mac, port.mac ^ 1};
  port.pack(dut->port_i);
  Input input(dut, 17);
  input.idle(0.2);
  std::vector<std::vector<pkg::beat_t>> pushed, left;
  std::vector<pkg::beat_t> open[2];
  Sink<pkg::beat_t> sinks[] = {
      {"wire", dut->wire_valid_o, dut->wire_ready_i, dut->wire_o},
      {"loopback", dut->loopback_valid_o, dut->loopback_ready_i, dut->loopback_o}};
  unsigned count[2] = {};
  for (unsigned k = 0; k < 2; ++k) {
    sinks[k].collect();
    sinks[k].stall(Stall::any(random));
    sinks[k].on_transfer([&, k](const pkg::beat_t& beat) {
      open[k].push_back(beat);
      if (!beat.last) return;
      left.push_back(std::move(open[k]));
      open[k].clear();
      ++count[k];
    });
  }
  dut->enable_i = 1;
  dut.reset();
  dut.tick();
  for (int n = 0; n < 300; ++n) {
    auto side = random_payload<pkg::packet_side_t>(random);
    side.ethernet.dmac = macs[random.between(0, 1)];
    pushed.emplace_back();
    const auto beats = random.between(1, 6);
    for (std::uint64_t k = 1; k <= beats; ++k) {
      auto beat = random_payload<pkg::beat_t>(random);
      beat.last = k == beats;
      beat.bytes = beat.last ? static_cast<decltype(beat.bytes)>(random.between(1, kBeat)) : kBeat;
      input.push(beat, side);
      pushed.back().push_back(beat);
    }
  }
  dut.attach(input);
  for (auto& sink : sinks) dut.attach(sink);
  for (int n = 0; !input.rests(); ++n) {
    REQUIRE(n < 20000);
    port.mac = macs[random.between(0, 1)];
    port.pack(dut->port_i);
    dut.tick();
  }
  dut.tick(20);
  REQUIRE(left == pushed);   // whole, and in order, since each waits for its last beat
  REQUIRE(count[0] > 50);
  REQUIRE(count[1] > 50);
}
