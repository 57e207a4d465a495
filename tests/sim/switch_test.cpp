// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The switch: learning, flooding, filtering, bad frames, queues, timing.
#include <catch2/catch.hpp>

#include "fabric_bench.hpp"

using namespace roci::sim;
namespace wc = roci::wirecodec;

namespace {

struct Net {
  explicit Net(FabricConfig config) : fabric(config), seen(config.ports), cycles(config.ports) {
    for (size_t p = 0; p < config.ports; ++p) {
      fabric.port(p).on_frame([this, p](const ReceivedFrame& f) {
        seen[p].emplace_back(f.bytes.begin(), f.bytes.end());
        cycles[p].push_back(f.cycle);
      });
    }
  }
  void drain() {
    while (fabric.busy()) fabric.step();
  }
  Fabric fabric;
  std::vector<std::vector<Bytes>> seen;
  std::vector<std::vector<uint64_t>> cycles;
};

FabricConfig four_ports() {
  FabricConfig config;
  config.ports = 4;
  return config;
}

Bytes to(size_t from, size_t port, uint32_t psn = 0, size_t payload = 64) {
  return wc::encode(roce(from, port, 0x0a, 5, psn, payload));
}

}  // namespace

TEST_CASE("unknown destinations are flooded, then learnt") {
  Net net(four_ports());
  net.fabric.port(0).send(to(0, 2));
  net.drain();
  CHECK(net.seen[0].empty());
  for (size_t p : {1u, 2u, 3u}) CHECK(net.seen[p] == std::vector<Bytes>{to(0, 2)});
  net.fabric.port(2).send(to(2, 0));  // port 0 is known by now
  net.drain();
  CHECK(net.seen[0] == std::vector<Bytes>{to(2, 0)});
  CHECK(net.seen[1].size() == 1);
  net.fabric.port(1).send(to(1, 2));  // and so is port 2
  net.drain();
  CHECK(net.seen[2].size() == 2);
  CHECK(net.seen[3].size() == 1);
  CHECK(net.fabric.switch_counters().flooded == 1);
  CHECK(net.fabric.switch_counters().forwarded == 2);
}

TEST_CASE("a static table needs no flooding") {
  Net net(four_ports());
  for (size_t p = 0; p < 4; ++p) net.fabric.learn(mac_number(p), p);
  net.fabric.port(3).send(to(3, 1));
  net.drain();
  CHECK(net.seen[1].size() == 1);
  CHECK(net.seen[0].empty());
  CHECK(net.seen[2].empty());
}

TEST_CASE("multicast and broadcast go to everybody else") {
  Net net(four_ports());
  for (size_t p = 0; p < 4; ++p) net.fabric.learn(mac_number(p), p);
  Bytes frame = to(0, 1);
  frame[0] = 0x33;
  frame[1] = 0x33;
  net.fabric.port(0).send(frame);
  std::fill_n(frame.begin(), 6, uint8_t{0xff});
  net.fabric.port(0).send(frame);
  net.drain();
  CHECK(net.seen[0].empty());
  for (size_t p : {1u, 2u, 3u}) CHECK(net.seen[p].size() == 2);
}

TEST_CASE("frames are not returned, bad ones not forwarded") {
  Net net(four_ports());
  for (size_t p = 0; p < 4; ++p) net.fabric.learn(mac_number(p), p);
  net.fabric.port(0).send(to(0, 0));
  net.fabric.port(0).send(to(0, 1), true);
  net.drain();
  for (const auto& frames : net.seen) CHECK(frames.empty());
  CHECK(net.fabric.switch_counters().filtered == 1);
  CHECK(net.fabric.switch_counters().bad_fcs == 1);
}

TEST_CASE("a single port floods to nobody") {
  FabricConfig config;
  config.ports = 1;
  Net net(config);
  net.fabric.port(0).send(to(0, 1));
  net.drain();
  CHECK(net.seen[0].empty());
  CHECK(net.fabric.links() == 1);
  CHECK(net.fabric.link_counters(0).frames == 1);
}

TEST_CASE("store and forward: two wires, two latencies") {
  FabricConfig config = four_ports();
  config.switch_latency = 30;
  Net net(config);
  for (size_t p = 0; p < 4; ++p) net.fabric.learn(mac_number(p), p);
  const Bytes frame = to(0, 1, 0, 1000);
  net.fabric.port(0).send(frame);
  net.drain();
  REQUIRE(net.cycles[1].size() == 1);
  const uint64_t wire = (frame.size() + 12 + 49) / 50;
  const uint64_t exact = 2 * (1 + wire + 125) + 30;
  CHECK(net.cycles[1][0] >= exact - 1);
  CHECK(net.cycles[1][0] <= exact + 1);
}

TEST_CASE("two senders share an output fairly, nothing is lost") {
  Net net(four_ports());
  for (size_t p = 0; p < 4; ++p) net.fabric.learn(mac_number(p), p);
  for (uint32_t i = 0; i < 100; ++i) {
    net.fabric.port(0).send(to(0, 2, i, 1000));
    net.fabric.port(1).send(to(1, 2, i, 1000));
  }
  net.drain();
  REQUIRE(net.seen[2].size() == 200);
  uint32_t next[2] = {0, 0};
  for (const Bytes& bytes : net.seen[2]) {
    const wc::Frame frame = wc::parse(bytes);
    const size_t from = frame.eth.src[5] - 1u;
    CHECK(frame.bth.psn == next[from]++);
    CHECK(next[0] <= next[1] + 2);
    CHECK(next[1] <= next[0] + 2);
  }
  // The output runs at its rate: 200 frames of (1086 + 24) bytes at 50 per cycle.
  const uint64_t span = net.cycles[2].back() - net.cycles[2].front();
  const uint64_t exact = 199 * (net.seen[2][0].size() + 24) / 50;
  CHECK(span >= exact);
  CHECK(span <= exact + 2);
}

TEST_CASE("a full output queue drops and counts") {
  FabricConfig config = four_ports();
  config.switch_queue_bytes = 10'000;
  Net net(config);
  for (size_t p = 0; p < 4; ++p) net.fabric.learn(mac_number(p), p);
  for (uint32_t i = 0; i < 100; ++i) {
    for (size_t p : {0u, 1u, 3u}) net.fabric.port(p).send(to(p, 2, i, 1000));
  }
  net.drain();
  const uint64_t lost = net.fabric.switch_counters().overflow;
  CHECK(lost > 100);
  CHECK(net.seen[2].size() == 300 - lost);
}

TEST_CASE("impairments and rules per direction") {
  Net net(four_ports());
  for (size_t p = 0; p < 4; ++p) net.fabric.learn(mac_number(p), p);
  std::vector<std::string> comments;
  net.fabric.add_tap([&](const TapEvent& e) {
    if (!e.comment.empty()) {
      comments.push_back(std::to_string(e.port) +
                         (e.direction == TapEvent::Direction::sent ? " sent " : " received ") +
                         (e.lost ? "lost " : "") + e.comment);
    }
  });
  const size_t last_hop = net.fabric.add_rule(Rule().to_port(1).from_port(2).drop());
  const size_t first_hop = net.fabric.add_rule(Rule().from_port(3).flip(60, 0x80));
  net.fabric.port(0).send(to(0, 1));
  net.fabric.port(2).send(to(2, 1));
  net.fabric.port(2).send(to(2, 3));
  net.fabric.port(3).send(to(3, 0));
  net.drain();
  net.fabric.finish_taps();
  CHECK(net.seen[1] == std::vector<Bytes>{to(0, 1)});
  CHECK(net.seen[3].size() == 1);
  CHECK(net.seen[0].size() == 1);
  CHECK(net.fabric.rule_hits(last_hop) == 1);
  CHECK(net.fabric.rule_hits(first_hop) == 1);
  CHECK(net.fabric.link_counters(1).dropped == 1);
  CHECK(net.fabric.rx_counters(1).dropped == 1);
  CHECK(net.fabric.tx_counters(2).dropped == 0);
  CHECK(comments == std::vector<std::string>{"3 sent byte 60 changed (rule 1)",
                                             "1 received lost dropped (rule 0)",
                                             "0 received byte 60 changed (rule 1)"});
  net.fabric.set_rx_impairments(0, {.drop = 1});
  net.fabric.port(1).send(to(1, 0));
  net.fabric.port(1).send(to(1, 2));
  net.drain();
  CHECK(net.seen[0].size() == 1);
  CHECK(net.seen[2].size() == 1);
}
