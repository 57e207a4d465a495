// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_route: packets to the own MAC go inside, others to the wire, unchanged and in order; one
// report per packet, with its fate.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

namespace {

// Beat and side fields travel together: one source for two ports.
struct Input : Agent {
  Dut<DUT_CLASS>& dut;
  Random random;
  std::deque<std::pair<pkg::beat_t, pkg::packet_side_t>> queue;
  bool active = false;
  explicit Input(Dut<DUT_CLASS>& d) : dut(d), random(17) { dut->beat_valid_i = 0; }
  void sample() override {
    if (active && dut->beat_ready_o) {
      queue.pop_front();
      active = false;
    }
  }
  void drive() override {
    if (!active && !queue.empty() && random.chance(0.8)) {
      active = true;
      queue.front().first.pack(dut->beat_i);
      queue.front().second.pack(dut->side_i);
    }
    dut->beat_valid_i = active;
  }
};

}  // namespace

TEST_CASE("own MAC inside, the rest outside") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Dut<DUT_CLASS> dut(random());
    auto port = random_payload<pkg::port_t>(random);
    port.pack(dut->port_i);
    Input input(dut);
    Sink<pkg::beat_t> wire("wire", dut->wire_valid_o, dut->wire_ready_i, dut->wire_o);
    Sink<pkg::beat_t> loopback("loopback", dut->loopback_valid_o, dut->loopback_ready_i,
                               dut->loopback_o);
    Monitor<pkg::tx_done_t> done("done", dut->done_valid_o, dut->done_o);
    std::vector<pkg::tx_done_t> reports;
    std::vector<pkg::tx_done_t> expected;
    done.on_transfer([&](const pkg::tx_done_t& d) { reports.push_back(d); });
    wire.stall(Stall::any(random));
    loopback.stall(Stall::any(random));
    dut.reset();
    for (int n = 0; n < 200; ++n) {
      auto side = random_payload<pkg::packet_side_t>(random);
      const bool own = random.chance(0.5);
      if (own) side.ethernet.dmac = port.mac;
      const auto beats = random.between(1, 5);
      for (std::uint64_t k = 1; k <= beats; ++k) {
        auto beat = random_payload<pkg::beat_t>(random);
        beat.last = k == beats;
        beat.err = beat.last && random.chance(0.3);
        input.queue.emplace_back(beat, side);
        (own ? loopback : wire).expect(beat);
        if (beat.last) {
          auto report = side.done;
          report.fate = static_cast<pkg::tx_fate_e>(beat.err ? 2 : 0);
          expected.push_back(report);
        }
      }
    }
    dut.attach(input);
    dut.attach(wire);
    dut.attach(loopback);
    dut.attach(done);
    dut.run_until([&] { return wire.done() && loopback.done(); }, "all beats");
    dut.tick(5);
    REQUIRE(reports == expected);
  }
}
