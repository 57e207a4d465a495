// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Drop, duplicate, reorder, corrupt, delay: by probability and by rule; replay by seed; the same
// result stepped, in quanta and in threads; taps.
#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "fabric_bench.hpp"
#include "wire/aeth.hpp"
#include "wire/frame_checker.hpp"

using namespace roci::sim;
using roci::test_seed;
namespace wc = roci::wirecodec;

namespace {

std::vector<uint32_t> numbers(const std::vector<Assembled>& frames) {
  std::vector<uint32_t> out;
  for (const Assembled& frame : frames) out.push_back(number_of(frame.bytes));
  return out;
}

std::vector<Assembled> stream(const Impairments& impairments, uint32_t count, uint64_t seed,
                              LinkCounters* counters = nullptr, size_t length = 300) {
  FabricConfig config;
  config.seed = seed;
  config.link.impairments = impairments;
  OneWay way(config);
  for (uint32_t i = 0; i < count; ++i) way.source.queue(numbered(length, i));
  way.drain();
  if (counters != nullptr) *counters = way.fabric.link_counters(0);
  return way.sink.frames;
}

// Within five standard deviations of a binomial.
void check_rate(uint64_t hits, uint64_t trials, double p) {
  const double mean = static_cast<double>(trials) * p;
  const double deviation = 5 * std::sqrt(mean * (1 - p));
  CHECK(static_cast<double>(hits) > mean - deviation);
  CHECK(static_cast<double>(hits) < mean + deviation);
}

}  // namespace

TEST_CASE("drop probability") {
  LinkCounters counters;
  const auto frames = stream({.drop = 0.05}, 4000, test_seed(1), &counters);
  CHECK(frames.size() == 4000 - counters.dropped);
  CHECK(counters.frames == 4000);
  check_rate(counters.dropped, 4000, 0.05);
  CHECK(std::ranges::is_sorted(numbers(frames)));
  CHECK(stream({.drop = 1}, 100, 1).empty());
  CHECK(stream({.drop = 0}, 100, 1).size() == 100);
}

TEST_CASE("duplicate probability") {
  LinkCounters counters;
  const auto frames = stream({.duplicate = 0.1}, 2000, test_seed(2), &counters);
  CHECK(frames.size() == 2000 + counters.duplicated);
  check_rate(counters.duplicated, 2000, 0.1);
  const auto sequence = numbers(frames);
  CHECK(std::ranges::is_sorted(sequence));
  for (size_t i = 1; i < frames.size(); ++i) {
    if (sequence[i] == sequence[i - 1]) CHECK(frames[i].bytes == frames[i - 1].bytes);
  }
}

TEST_CASE("reorder: behind the next frame") {
  LinkCounters counters;
  const auto frames = stream({.reorder = 0.1}, 2000, test_seed(3), &counters);
  REQUIRE(frames.size() == 2000);
  auto sequence = numbers(frames);
  uint64_t swaps = 0;
  for (size_t i = 0; i + 1 < sequence.size(); ++i) {
    if (sequence[i] > sequence[i + 1]) {
      CHECK(sequence[i] == sequence[i + 1] + 1);
      ++swaps;
    }
  }
  // The last frame may be held with nothing behind it.
  CHECK(counters.reordered >= swaps);
  CHECK(counters.reordered <= swaps + 1);
  // While one is held the next is not held, so the rate is p / (1 + p).
  check_rate(swaps, 2000, 0.1 / 1.1);
  std::ranges::sort(sequence);
  for (uint32_t i = 0; i < 2000; ++i) CHECK(sequence[i] == i);
}

TEST_CASE("duplicates and held-back frames take their time on the receiver's wire") {
  // 300 bytes are 324 on the wire: last beats are 6.48 cycles apart, or more.
  const auto frames = stream({.duplicate = 0.2, .reorder = 0.2}, 1000, test_seed(9));
  for (size_t i = 20; i < frames.size(); ++i) {
    CHECK(frames[i].last_cycle - frames[i - 20].last_cycle >= 20 * 324 / 50);
  }
}

TEST_CASE("reorder: alone it comes after the hold time") {
  FabricConfig config;
  config.link.impairments.reorder = 1;
  OneWay way(config);
  way.source.queue(numbered(150, 1));
  way.drain();
  REQUIRE(way.sink.frames.size() == 1);
  // 1 + (8+150+4)/50 on the wire, 2500 held, 125 of latency; its own bytes again at the far end.
  const uint64_t cycle = way.sink.frames[0].last_cycle;
  CHECK(cycle >= 1 + 3 + 2500 + 125);
  CHECK(cycle <= 1 + 4 + 2500 + 125 + 4);
}

TEST_CASE("reorder: a frame after the hold time does not overtake") {
  for (uint64_t gap : {2400u, 2498u, 2500u, 2502u, 2504u, 2506u, 2600u}) {
    FabricConfig config;
    config.link.impairments.reorder = 1;
    Fabric fabric(config);
    std::vector<uint32_t> seen;
    fabric.port(1).on_frame(
        [&seen](const ReceivedFrame& f) { seen.push_back(number_of(f.bytes)); });
    fabric.port(0).send(numbered(150, 1));
    fabric.step();
    fabric.set_tx_impairments(0, {});
    while (fabric.cycle() < gap) fabric.step();
    fabric.port(0).send(numbered(150, 2));
    while (fabric.busy()) fabric.step();
    INFO("gap " << gap);
    // Held from 1 + 3.24 on for 2500 cycles; the second frame starts one cycle after it is sent.
    const bool overtakes = gap + 1 < 2505;
    CHECK(seen == (overtakes ? std::vector<uint32_t>{2, 1} : std::vector<uint32_t>{1, 2}));
  }
}

TEST_CASE("corrupt: one bit, half with bad FCS") {
  LinkCounters counters;
  const auto frames = stream({.corrupt = 0.5}, 2000, test_seed(4), &counters, 128);
  REQUIRE(frames.size() == 2000);
  uint64_t flipped = 0, bad = 0, position_sum = 0;
  for (uint32_t i = 0; i < 2000; ++i) {
    const Bytes sent = numbered(128, i);
    unsigned bits = 0;
    for (size_t b = 0; b < sent.size(); ++b) {
      const unsigned diff = sent[b] ^ frames[i].bytes[b];
      bits += static_cast<unsigned>(std::popcount(diff));
      if (diff != 0) position_sum += b;
    }
    REQUIRE(bits <= 1);
    flipped += bits;
    bad += frames[i].bad;
    if (frames[i].bad) CHECK(bits == 1);
  }
  CHECK(flipped == counters.corrupted);
  check_rate(flipped, 2000, 0.5);
  check_rate(bad, flipped, 0.5);
  // Bits all over the frame: mean position near its middle.
  const double mean = static_cast<double>(position_sum) / static_cast<double>(flipped);
  CHECK(mean > 55);
  CHECK(mean < 73);
}

TEST_CASE("delay keeps the order") {
  LinkCounters counters;
  const auto frames =
      stream({.delay = 0.2, .max_delay_cycles = 500}, 1000, test_seed(5), &counters);
  REQUIRE(frames.size() == 1000);
  CHECK(std::ranges::is_sorted(numbers(frames)));
  check_rate(counters.delayed, 1000, 0.2);
  const auto undisturbed = stream({}, 1000, 5);
  uint64_t later = 0;
  for (size_t i = 0; i < frames.size(); ++i) {
    CHECK(frames[i].last_cycle >= undisturbed[i].last_cycle);
    CHECK(frames[i].last_cycle <= undisturbed[i].last_cycle + 500);
    later += frames[i].last_cycle > undisturbed[i].last_cycle;
  }
  CHECK(later > 200);
}

TEST_CASE("the seed decides everything") {
  const Impairments all{.drop = 0.02,
                        .duplicate = 0.02,
                        .reorder = 0.02,
                        .corrupt = 0.02,
                        .delay = 0.02,
                        .max_delay_cycles = 300};
  const auto first = stream(all, 1000, 7);
  CHECK(first == stream(all, 1000, 7));
  CHECK(first != stream(all, 1000, 8));
}

TEST_CASE("a frame's fate does not depend on the frames around it") {
  // The first 50 frames are dropped or not in the same way whatever their lengths and spacing.
  auto dropped = [](size_t length, int spacing) {
    FabricConfig config;
    config.seed = 3;
    config.link.impairments.drop = 0.3;
    OneWay way(config);
    for (uint32_t i = 0; i < 50; ++i) {
      way.source.queue(numbered(length, i));
      for (int c = 0; c < spacing; ++c) way.cycle();
    }
    way.drain();
    return numbers(way.sink.frames);
  };
  CHECK(dropped(100, 0) == dropped(2000, 77));
  CHECK(dropped(100, 0).size() < 50);
}

TEST_CASE("rules: drop the 3rd ACK of QP 5") {
  Fabric fabric{FabricConfig{}};
  const size_t rule = fabric.add_rule(Rule().acks().dest_qp(5).nth(3).drop());
  std::vector<uint32_t> seen;
  fabric.port(0).on_frame(
      [&seen](const ReceivedFrame& f) { seen.push_back(wc::parse(f.bytes).bth.psn); });
  wc::Path path;
  auto ack = [&](uint32_t qp, uint32_t psn, uint8_t syndrome) {
    fabric.port(1).send(wc::build(wc::make_ack(path, qp, psn, syndrome, 0)));
  };
  for (uint32_t psn = 0; psn < 6; ++psn) {
    ack(6, 100 + psn, 0x1f);                        // another QP
    ack(5, 200 + psn, wc::syndrome::nak_sequence);  // no ACK
    ack(5, psn, 0x1f);
  }
  while (fabric.busy()) fabric.step();
  CHECK(seen.size() == 17);
  CHECK(std::ranges::find(seen, 2u) == seen.end());
  CHECK(fabric.rule_hits(rule) == 1);
  CHECK(fabric.link_counters(0).dropped == 1);
}

TEST_CASE("rules: opcode and PSN, once; then removed") {
  OneWay way;
  const size_t once = way.fabric.add_rule(Rule().opcode(0x0a).psn(17).drop());
  const size_t twice = way.fabric.add_rule(Rule().operation(wc::op::send_only).times(2).drop());
  auto send = [&way](uint8_t opcode, uint32_t psn) {
    way.source.queue(wc::encode(roce(0, 1, opcode, 5, psn, 64)));
  };
  for (int i = 0; i < 3; ++i) send(0x0a, 17);
  send(0x0a, 18);
  send(0x06, 17);
  send(0x04, 1);
  send(0x24, 2);
  send(0x04, 3);
  way.drain();
  CHECK(way.sink.frames.size() == 5);
  CHECK(way.fabric.rule_hits(once) == 1);
  CHECK(way.fabric.rule_hits(twice) == 2);
  way.fabric.remove_rule(once);
  way.fabric.remove_rule(twice);
  send(0x04, 4);
  way.drain();
  CHECK(way.sink.frames.size() == 6);
  CHECK_THROWS_AS(way.fabric.rule_hits(99), std::out_of_range);
}

TEST_CASE("rules: corrupt the ICRC, the FCS, one byte") {
  OneWay way;
  way.fabric.add_rule(Rule().psn(1).corrupt_icrc());
  way.fabric.add_rule(Rule().psn(2).corrupt_fcs());
  way.fabric.add_rule(Rule().psn(3).flip(20, 0xff));  // NxtHdr
  way.fabric.add_rule(Rule().psn(4).corrupt());
  for (uint32_t psn = 0; psn < 5; ++psn) {
    way.source.queue(wc::encode(roce(0, 1, 0x0a, 5, psn, 1000)));
  }
  way.drain();
  REQUIRE(way.sink.frames.size() == 5);
  auto verdict = [&way](size_t i) {
    return wc::check_frame(way.sink.frames[i].bytes, !way.sink.frames[i].bad).counter;
  };
  CHECK(verdict(0) == wc::DropCounter::none);
  CHECK(verdict(1) == wc::DropCounter::icrc);
  CHECK(verdict(2) == wc::DropCounter::fcs);
  CHECK(verdict(3) == wc::DropCounter::nxthdr);
  CHECK(way.sink.frames[4].bytes != wc::encode(roce(0, 1, 0x0a, 5, 4, 1000)));
  CHECK(way.fabric.link_counters(0).corrupted == 4);
}

TEST_CASE("rules: duplicate, reorder, delay, condition") {
  OneWay way;
  way.fabric.add_rule(Rule().psn(1).duplicate());
  way.fabric.add_rule(Rule().psn(3).reorder());
  way.fabric.add_rule(
      Rule()
          .where([](const FrameInfo& f) { return f.index == 6 && f.head.size() > 60; })
          .delay(900));
  for (uint32_t psn = 0; psn < 8; ++psn) {
    way.source.queue(wc::encode(roce(0, 1, 0x04, 5, psn, 100)));
  }
  way.drain();
  std::vector<uint32_t> psns;
  for (const Assembled& frame : way.sink.frames) psns.push_back(wc::parse(frame.bytes).bth.psn);
  CHECK(psns == std::vector<uint32_t>{0, 1, 1, 2, 4, 3, 5, 6, 7});
  const auto& frames = way.sink.frames;
  CHECK(frames[7].last_cycle - frames[6].last_cycle > 880);
  CHECK(frames[8].last_cycle > frames[7].last_cycle);
}

TEST_CASE("rules: place") {
  Fabric fabric{FabricConfig{}};
  const size_t from0 = fabric.add_rule(Rule().from_port(0).always().duplicate());
  const size_t to1 = fabric.add_rule(Rule().to_port(1).nth(2).times(1).drop());
  unsigned seen[2] = {};
  for (size_t p = 0; p < 2; ++p) {
    fabric.port(p).on_frame([&seen, p](const ReceivedFrame&) { ++seen[p]; });
  }
  for (uint32_t i = 0; i < 4; ++i) {
    fabric.port(0).send(numbered(100, i));
    fabric.port(1).send(numbered(100, i));
  }
  while (fabric.busy()) fabric.step();
  CHECK(seen[0] == 4);
  CHECK(seen[1] == 6);
  CHECK(fabric.rule_hits(from0) == 4);
  CHECK(fabric.rule_hits(to1) == 1);
}

TEST_CASE("a rule that strikes nobody changes no fate and no arrival at the wide link") {
  FabricConfig config;
  config.link.impairments = {.drop = 0.1, .duplicate = 0.1};
  OneWay with(config), without(config);
  with.fabric.add_rule(Rule().dest_qp(0x999999).drop());
  for (uint32_t i = 0; i < 300; ++i) {
    for (OneWay* way : {&with, &without}) {
      way->source.queue(wc::encode(roce(0, 1, 0x0a, 5, i, i * 13 % 4096)));
    }
  }
  with.drain();
  without.drain();
  CHECK(with.sink.frames == without.sink.frames);
}

namespace {

// A busy fabric in three ways of stepping; returns everything received, per port, and all tap
// events.
struct Outcome {
  std::vector<Assembled> frames[3];
  std::vector<std::tuple<uint64_t, size_t, bool, size_t, std::string>> taps;
  bool operator==(const Outcome&) const = default;
};

enum class Stepping { cycles, quanta, threads };

Outcome run(Stepping stepping, size_t ports, unsigned quantum, bool narrow) {
  FabricConfig config;
  if (narrow) {  // headers take longer on the wire than the latency
    config.link.rate = {1, 1};
    config.link.beat_bytes = 8;
    config.link.latency = 62;
  }
  config.ports = ports;
  config.seed = 5;
  config.link.impairments = {.drop = 0.05,
                             .duplicate = 0.05,
                             .reorder = 0.05,
                             .corrupt = 0.05,
                             .delay = 0.05,
                             .max_delay_cycles = 100};
  Fabric fabric(config);
  fabric.add_rule(Rule().operation(0x0a).nth(3).times(2).drop());
  Outcome outcome;
  fabric.add_tap([&outcome](const TapEvent& e) {
    outcome.taps.emplace_back(e.cycle, e.port, e.direction == TapEvent::Direction::sent,
                              e.bytes.size(), e.comment);
  });
  std::vector<Streamer> nics(ports, Streamer(config.link.beat_bytes));
  std::vector<Assembler> seen(ports);
  for (uint32_t i = 0; i < 60; ++i) {
    for (size_t p = 0; p < ports; ++p) {
      nics[p].queue(
          wc::encode(roce(p, (p + 1) % ports, 0x0a, 5, i, (i * 97 + p) % (narrow ? 300 : 1500))));
    }
  }
  auto clock = [&](size_t p) {
    Port& port = fabric.port(p);
    seen[p].look(port);
    nics[p].clock(port);
  };
  const uint64_t end = (narrow ? 40'000 : 9000) / quantum * quantum;
  while (fabric.cycle() < end) {
    const uint64_t target = fabric.cycle() + (stepping == Stepping::cycles ? 1 : quantum);
    auto run_port = [&](size_t p) {
      while (fabric.port(p).cycle() < target) clock(p);
    };
    if (stepping == Stepping::threads) {
      std::vector<std::thread> threads;
      for (size_t p = 0; p < ports; ++p) threads.emplace_back(run_port, p);
      for (std::thread& thread : threads) thread.join();
    } else {
      for (size_t p = 0; p < ports; ++p) run_port(p);
    }
    fabric.advance_to(target);
  }
  REQUIRE_FALSE(fabric.busy());
  fabric.finish_taps();
  for (size_t p = 0; p < ports; ++p) outcome.frames[p] = seen[p].frames;
  return outcome;
}

}  // namespace

TEST_CASE("cycle by cycle, in quanta and in threads: the same run") {
  const size_t ports = GENERATE(2u, 3u);
  const bool narrow = GENERATE(false, true);
  const unsigned quantum = narrow ? 63 : 126;  // the lookahead
  const Outcome cycles = run(Stepping::cycles, ports, 126, narrow);
  CHECK(cycles.frames[0].size() > 40);
  CHECK(cycles == run(Stepping::quanta, ports, quantum, narrow));
  CHECK(cycles == run(Stepping::quanta, ports, 7, narrow));
  CHECK(cycles == run(Stepping::threads, ports, quantum, narrow));
}

TEST_CASE("quanta beyond the lookahead are refused") {
  Fabric fabric{FabricConfig{}};
  CHECK(fabric.lookahead() == 126);
  CHECK_NOTHROW(fabric.advance_to(126));
  CHECK_THROWS_AS(fabric.advance_to(126 + 127), std::logic_error);
}

TEST_CASE("taps tell what was sent, what arrived and what was done to it") {
  OneWay way;
  std::vector<TapEvent> events;
  std::vector<Bytes> contents;
  way.fabric.add_tap([&](const TapEvent& event) {
    events.push_back(event);
    contents.emplace_back(event.bytes.begin(), event.bytes.end());
  });
  way.fabric.add_rule(Rule().where([](const FrameInfo& f) { return f.index == 1; }).drop());
  way.fabric.add_rule(Rule().where([](const FrameInfo& f) { return f.index == 2; }).flip(50, 1));
  for (uint32_t i = 0; i < 3; ++i) way.source.queue(numbered(1000, i));
  way.drain();
  way.fabric.finish_taps();
  REQUIRE(events.size() == 5);
  uint64_t last = 0;
  for (const TapEvent& event : events) {
    CHECK(event.cycle >= last);
    last = event.cycle;
  }
  using enum TapEvent::Direction;
  CHECK(std::ranges::count(events, sent, &TapEvent::direction) == 3);
  auto find = [&](TapEvent::Direction direction, uint32_t number) -> size_t {
    for (size_t i = 0; i < events.size(); ++i) {
      if (events[i].direction == direction && number_of(contents[i]) == number) return i;
    }
    FAIL("no such event");
    return 0;
  };
  CHECK(events[find(sent, 0)].comment.empty());
  CHECK(events[find(sent, 0)].port == 0);
  CHECK(events[find(received, 0)].port == 1);
  CHECK(events[find(sent, 1)].lost);
  CHECK(events[find(sent, 1)].comment == "dropped (rule 0)");
  CHECK(contents[find(sent, 2)] == numbered(1000, 2));
  CHECK(contents[find(received, 2)] == way.sink.frames[1].bytes);
  CHECK(events[find(received, 2)].comment == "byte 50 changed (rule 1)");
  CHECK(events[find(received, 2)].cycle == way.sink.frames[1].last_cycle);
}
