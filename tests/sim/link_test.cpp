// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Links without impairments: exact rate and latency, back-pressure, underruns, protocol errors.
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "fabric_bench.hpp"

using namespace roci::sim;
using roci::test_seed;

namespace {

// Cycle of the last beat of a frame that starts on an idle link, sent from `cycle` on.
uint64_t arrival(uint64_t cycle, size_t bytes, Rate rate, uint64_t latency) {
  const uint64_t wire = (kPreambleBytes + bytes + kFcsBytes) * rate.cycles;
  return cycle + 1 + latency + (wire + rate.bytes - 1) / rate.bytes;
}

}  // namespace

TEST_CASE("one frame arrives unchanged at the exact cycle") {
  const auto [rate, beat_bytes] =
      GENERATE(std::pair<Rate, unsigned>{{50, 1}, 64u}, std::pair<Rate, unsigned>{{8, 1}, 8u},
               std::pair<Rate, unsigned>{{1, 1}, 8u}, std::pair<Rate, unsigned>{{25, 2}, 64u});
  for (size_t length : {60u, 64u, 65u, 70u, 127u, 128u, 129u, 150u, 1500u, 4166u, 4194u}) {
    FabricConfig config;
    config.link.rate = rate;
    config.link.beat_bytes = beat_bytes;
    OneWay way(config);
    for (int i = 0; i < 10; ++i) way.cycle();
    const Bytes frame = numbered(length, 1);
    way.source.queue(frame);
    way.drain();
    INFO("length " << length << ", rate " << rate.bytes << "/" << rate.cycles);
    REQUIRE(way.sink.frames.size() == 1);
    CHECK(way.sink.frames[0].bytes == frame);
    CHECK_FALSE(way.sink.frames[0].bad);
    // A last beat that falls into the cycle of the one before moves on by one.
    const uint64_t exact = arrival(10, length, rate, config.link.latency);
    CHECK(way.sink.frames[0].last_cycle >= exact);
    CHECK(way.sink.frames[0].last_cycle <= exact + 1);
    CHECK(way.fabric.tx_counters(0).underruns == 0);
  }
}

TEST_CASE("a 4166-byte frame takes 83.8 cycles, exactly and for ever") {
  // 4190 wire bytes with FCS, preamble and gap at 50 bytes per cycle.
  OneWay way;
  constexpr unsigned kFrames = 1001;
  for (uint32_t i = 0; i < kFrames; ++i) way.source.queue(numbered(4166, i));
  way.drain();
  REQUIRE(way.sink.frames.size() == kFrames);
  for (uint32_t i = 0; i < kFrames; ++i) {
    INFO("frame " << i);
    CHECK(number_of(way.sink.frames[i].bytes) == i);
    // Start of frame i: cycle 1 + i · 83.8. Beat 65 ends 8 + 4160 wire bytes later, the last one
    // 8 + 4166 + 4; if both fall into one cycle the last moves on by one. In 50ths of a cycle:
    const uint64_t start = 50 * 1 + i * 4190u;
    const uint64_t beat65 = 125 + (start + 4168 + 49) / 50;
    const uint64_t exact = std::max(beat65 + 1, 125 + (start + 4178 + 49) / 50);
    CHECK(way.sink.frames[i].last_cycle == exact);
  }
  CHECK(way.sink.frames[1000].last_cycle - way.sink.frames[0].last_cycle == 83'800);
  CHECK(way.fabric.tx_counters(0).underruns == 0);
}

TEST_CASE("back-pressure holds the sender to the rate of the wire") {
  // The sender must finish when the wire does, but for the two beats that the MAC holds.
  OneWay way;
  for (uint32_t i = 0; i < 1000; ++i) way.source.queue(numbered(4166, i));
  while (!way.source.idle()) way.cycle();
  const uint64_t wire_end = 1 + 1000 * 4190 / 50;
  CHECK(way.fabric.cycle() > wire_end - 5);
  CHECK(way.fabric.cycle() <= wire_end);
}

TEST_CASE("64-byte WRITEs take 3.48 cycles each") {
  OneWay way;
  constexpr unsigned kFrames = 10'001;
  for (uint32_t i = 0; i < kFrames; ++i) way.source.queue(numbered(150, i));
  way.drain();
  REQUIRE(way.sink.frames.size() == kFrames);
  const uint64_t span = way.sink.frames.back().last_cycle - way.sink.frames.front().last_cycle;
  CHECK(span == 10'000 * 348 / 100);
}

TEST_CASE("the average rate is exact for any mix of lengths") {
  const uint64_t seed = test_seed(11);
  INFO("ROCI_SEED=" << seed);
  std::mt19937_64 random(seed);
  const auto [rate, beat_bytes] =
      GENERATE(std::pair<Rate, unsigned>{{50, 1}, 64u}, std::pair<Rate, unsigned>{{8, 1}, 8u},
               std::pair<Rate, unsigned>{{1, 1}, 8u}, std::pair<Rate, unsigned>{{47, 3}, 64u});
  FabricConfig config;
  config.link.rate = rate;
  config.link.beat_bytes = beat_bytes;
  OneWay way(config);
  uint64_t wire_bytes = 0;
  std::vector<size_t> lengths;
  for (uint32_t i = 0; i < 400; ++i) {
    // Shorter frames have more beats per wire byte than the stream can carry at 50 bytes per cycle.
    const size_t length = 105 + random() % (random() % 4 == 0 ? 4090 : 400);
    lengths.push_back(length);
    wire_bytes += length + kWireOverhead;
    way.source.queue(numbered(length, i));
  }
  way.drain(5'000'000);
  REQUIRE(way.sink.frames.size() == lengths.size());
  const uint64_t last_bit = wire_bytes - kGapBytes;
  const uint64_t exact =
      1 + config.link.latency + (last_bit * rate.cycles + rate.bytes - 1) / rate.bytes;
  CHECK(way.sink.frames.back().last_cycle >= exact);
  CHECK(way.sink.frames.back().last_cycle <= exact + 1);
  CHECK(way.fabric.tx_counters(0).underruns == 0);
  CHECK(way.fabric.tx_counters(0).frames == lengths.size());
  CHECK(way.fabric.tx_counters(0).bytes ==
        std::accumulate(lengths.begin(), lengths.end(), uint64_t{0}));
}

TEST_CASE("the receiver gets at most the link's rate, one beat per cycle") {
  OneWay way;
  for (uint32_t i = 0; i < 20; ++i) way.source.queue(numbered(4166, i));
  std::vector<uint64_t> cycles;
  for (int i = 0; i < 3000; ++i) {
    if (way.fabric.port(1).rx() != nullptr) cycles.push_back(way.fabric.cycle());
    way.cycle();
  }
  REQUIRE(cycles.size() == 20 * 66);
  for (size_t i = 50; i < cycles.size(); ++i) {
    // 50 beats are at most 3200 bytes: never faster than 50 bytes per cycle, over any stretch.
    CHECK(cycles[i] - cycles[i - 50] >= 50 * 64 / 50 - 2);
  }
}

TEST_CASE("whole frames and beats have the same timing") {
  OneWay beats;
  FabricConfig config;
  Fabric whole(config);
  std::vector<uint64_t> cycles;
  whole.port(1).on_frame([&cycles](const ReceivedFrame& f) { cycles.push_back(f.cycle); });
  for (uint32_t i = 0; i < 50; ++i) {
    beats.source.queue(numbered(200 + 37 * i, i));
    whole.port(0).send(numbered(200 + 37 * i, i));
  }
  beats.drain();
  while (whole.busy()) whole.step();
  REQUIRE(cycles.size() == 50);
  for (size_t i = 0; i < cycles.size(); ++i) CHECK(cycles[i] == beats.sink.frames[i].last_cycle);
}

TEST_CASE("both directions at once") {
  Fabric fabric{FabricConfig{}};
  Streamer nic[2];
  Assembler seen[2];
  for (uint32_t i = 0; i < 30; ++i) {
    nic[0].queue(numbered(1000 + i, i));
    nic[1].queue(numbered(300 + i, 1000 + i));
  }
  for (int cycle = 0; cycle < 1500; ++cycle) {
    for (size_t p = 0; p < 2; ++p) {
      seen[p].look(fabric.port(p));
      nic[p].clock(fabric.port(p));
    }
    fabric.step();
  }
  REQUIRE(seen[0].frames.size() == 30);
  REQUIRE(seen[1].frames.size() == 30);
  for (uint32_t i = 0; i < 30; ++i) {
    CHECK(seen[1].frames[i].bytes == numbered(1000 + i, i));
    CHECK(seen[0].frames[i].bytes == numbered(300 + i, 1000 + i));
  }
  CHECK(fabric.links() == 1);
  CHECK(fabric.link_counters(0).frames == 60);
  CHECK_FALSE(fabric.busy());
}

TEST_CASE("aborted frames arrive bad") {
  OneWay way;
  way.source.queue(numbered(300, 1), true);
  way.source.queue(numbered(300, 2));
  way.drain();
  REQUIRE(way.sink.frames.size() == 2);
  CHECK(way.sink.frames[0].bad);
  CHECK_FALSE(way.sink.frames[1].bad);
  CHECK(way.fabric.tx_counters(0).aborted == 1);
}

TEST_CASE("a gap inside a frame") {
  FabricConfig config;
  // Ten beats, then nothing for `gap` cycles, then the rest.
  auto run = [&config](int gap) {
    OneWay way(config);
    way.source.queue(numbered(2000, 1));
    way.source.queue(numbered(2000, 2));
    while (way.source.beats < 10) way.cycle();
    way.source.paused = true;
    for (int i = 0; i < gap; ++i) way.cycle();
    way.source.paused = false;
    way.drain();
    return std::tuple(way.sink.frames, way.fabric.tx_counters(0));
  };
  SECTION("short gaps are bridged by what the MAC holds") {
    const auto [frames, counters] = run(1);
    REQUIRE(frames.size() == 2);
    CHECK_FALSE(frames[0].bad);
    CHECK(counters.underruns == 0);
  }
  SECTION("a long gap spoils the frame, not the next one") {
    const auto [frames, counters] = run(20);
    REQUIRE(frames.size() == 2);
    CHECK(frames[0].bad);
    CHECK_FALSE(frames[1].bad);
    CHECK(frames[1].bytes == numbered(2000, 2));
    CHECK(counters.underruns == 1);
  }
  SECTION("or is waited for") {
    config.link.underrun = Underrun::stretch;
    const auto [frames, counters] = run(20);
    REQUIRE(frames.size() == 2);
    CHECK_FALSE(frames[0].bad);
    CHECK(frames[0].bytes == numbered(2000, 1));
    CHECK(counters.underruns == 1);
  }
  SECTION("a MAC that starts later bridges it") {
    config.link.start_delay = 25;
    const auto [frames, counters] = run(20);
    REQUIRE(frames.size() == 2);
    CHECK_FALSE(frames[0].bad);
    CHECK(counters.underruns == 0);
  }
}

TEST_CASE("protocol errors of the NIC are told") {
  Fabric fabric{FabricConfig{}};
  Port& port = fabric.port(0);
  Beat beat;
  beat.bytes = 64;
  SECTION("short beat inside a frame") {
    beat.bytes = 63;
    CHECK_THROWS_WITH(port.clock(&beat), Catch::Contains("only the last"));
  }
  SECTION("empty beat") {
    beat.bytes = 0;
    CHECK_THROWS_AS(port.clock(&beat), std::logic_error);
  }
  SECTION("offer changed or withdrawn while refused") {
    while (port.tx_ready()) {
      port.clock(&beat);
      fabric.step();
    }
    port.clock(&beat);
    fabric.step();
    const bool withdraw = GENERATE(false, true);
    Beat other = beat;
    other.data[5] = 1;
    CHECK_THROWS_WITH(port.clock(withdraw ? nullptr : &other), Catch::Contains("while not ready"));
  }
  SECTION("endless frame") {
    auto forever = [&] {
      for (int i = 0; i < 5000; ++i) {
        port.clock(&beat);
        fabric.step();
      }
    };
    CHECK_THROWS_WITH(forever(), Catch::Contains("64 KB"));
  }
}

TEST_CASE("impossible configurations are refused") {
  FabricConfig config;
  config.ports = 0;
  CHECK_THROWS_AS(Fabric(config), std::invalid_argument);
  config.ports = 3;
  config.topology = Topology::back_to_back;
  CHECK_THROWS_AS(Fabric(config), std::invalid_argument);
  config = {};
  config.link.rate = {65, 1};
  CHECK_THROWS_WITH(Fabric(config), Catch::Contains("rate"));
  config.link.rate = {64, 1};
  CHECK_NOTHROW(Fabric(config));
  CHECK_THROWS_AS(Rate::from_double(0), std::invalid_argument);
  CHECK_THROWS_AS(Rate::from_double(-1), std::invalid_argument);
  CHECK(Rate::from_double(12.5).bytes == 25);
  CHECK(Rate::from_double(12.5).cycles == 2);
  CHECK(Rate::from_double(50).bytes == 50);
}

TEST_CASE("idle time can be skipped") {
  Fabric stepped{FabricConfig{}};
  Fabric skipping{FabricConfig{}};
  std::vector<uint64_t> seen[2];
  Fabric* fabrics[] = {&stepped, &skipping};
  for (size_t f = 0; f < 2; ++f) {
    fabrics[f]->port(1).on_frame(
        [&seen, f](const ReceivedFrame& r) { seen[f].push_back(r.cycle); });
  }
  CHECK_FALSE(skipping.busy());
  CHECK(skipping.next_event_cycle() == kNever);
  auto at = [](Fabric& fabric, uint64_t cycle, bool skip) {
    while (fabric.cycle() < cycle) {
      const uint64_t next = std::min(cycle, fabric.next_event_cycle());
      if (skip && next > fabric.cycle()) {
        fabric.skip_to(next);
      } else {
        fabric.step();
      }
    }
    fabric.port(0).send(numbered(100, 1));
  };
  for (uint64_t cycle : {1000u, 1001u, 50'000u}) {
    at(stepped, cycle, false);
    at(skipping, cycle, true);
  }
  CHECK(skipping.busy());
  CHECK_THROWS_AS(skipping.skip_to(60'000), std::logic_error);
  at(stepped, 60'000, false);
  at(skipping, 60'000, true);
  CHECK(seen[0].size() == 3);
  CHECK(seen[0] == seen[1]);
}
