// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_packet_fifo: packets of random lengths come out beat by beat, in order, each beat with the
// side record that its packet had in its first beat (in the others the input is rubbish); it holds
// DEPTH beats and PACKETS packets, not more, and passes one beat per cycle.
// model: configs=any args=-GWIDTH=12 args=-GSIDE_WIDTH=40 args=-GDEPTH=16 args=-GPACKETS=4 name=small
// model: configs=any args=-GWIDTH=70 args=-GSIDE_WIDTH=9 args=-GDEPTH=100 args=-GPACKETS=16 name=large
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;
using Beat = Bits<DUT_WIDTH>;
using Side = Bits<DUT_SIDE_WIDTH>;

struct Stored {
  Beat beat;
  Side side;
  bool last;
};

/// Both ends, driven directly: the side record has no handshake of its own.
struct Bench : Agent {
  explicit Bench(std::uint64_t salt) : random(salt), dut(salt) {
    dut->in_valid_i = dut->out_ready_i = 0;
    dut.reset();
    dut.attach(*this);
  }
  void sample() override {
    if (dut->in_valid_i && dut->in_ready_o) {
      inside.push_back(next);
      packets += first;
      first = next.last;
      waiting = false;
    }
    if (dut->out_valid_o && dut->out_ready_i) {
      if (inside.empty()) throw Failure("a beat of nothing");
      const Stored want = inside.front();
      inside.pop_front();
      if (!(Beat::unpack(dut->out_o) == want.beat)) throw Failure("another beat");
      if (!(Side::unpack(dut->out_side_o) == want.side)) throw Failure("another side record");
      if ((dut->out_last_o != 0) != want.last) throw Failure("wrong last");
      packets -= want.last;
      ++out;
    }
    most_beats = std::max(most_beats, inside.size());
    most_packets = std::max(most_packets, packets);
  }
  void drive() override {
    if (!waiting && random.chance(offer)) {
      waiting = true;
      next.beat = random_payload<Beat>(random);
      if (first) next.side = random_payload<Side>(random);
      next.last = random.chance(ends);
      next.beat.pack(dut->in_i);
      (first ? next.side : random_payload<Side>(random)).pack(dut->in_side_i);
      dut->in_last_i = next.last;
    }
    dut->in_valid_i = waiting;
    dut->out_ready_i = random.chance(take);
  }

  Random random;
  Dut<DUT_CLASS> dut;
  std::deque<Stored> inside;
  Stored next{};
  bool waiting = false, first = true;
  double offer = 1, take = 1, ends = 0.2;
  std::size_t packets = 0, most_beats = 0, most_packets = 0;
  std::uint64_t out = 0;
};
}  // namespace

TEST_CASE("packets keep their beats and side records") {
  Random random;
  for (int run = 0; run < 8; ++run) {
    Bench b(random());
    b.offer = random.chance(0.5) ? 1.0 : 0.4;
    b.take = random.chance(0.5) ? 0.9 : 0.3;
    b.ends = random.chance(0.5) ? 0.5 : 0.1;
    b.dut.tick(scaled(2000));
    b.offer = 0;
    b.take = 1;
    b.dut.run_until([&] { return b.inside.empty() && !b.waiting; }, "empty", 1000);
    CHECK(b.out > 100);
    b.dut.tick(5);
    CHECK(b.dut->usage_o == 0);
  }
}

TEST_CASE("holds DEPTH beats, or PACKETS packets") {
  Random random;
  Bench b(random());
  b.take = 0;
  b.ends = 0;                                  // one long packet
  b.dut.tick(DUT_DEPTH + 20);
  CHECK(b.most_beats == DUT_DEPTH);
  CHECK(b.dut->usage_o == DUT_DEPTH);
  Bench c(random());
  c.take = 0;
  c.ends = 1;                                  // packets of one beat
  c.dut.tick(DUT_DEPTH + 20);
  CHECK(c.most_packets == DUT_PACKETS);
}

TEST_CASE("one beat per cycle") {
  Random random;
  for (const double ends : {0.0, 0.3, 1.0}) {
    Bench b(random());
    b.ends = ends;
    b.dut.tick(50);
    const std::uint64_t before = b.out;
    b.dut.tick(500);
    CHECK(b.out - before == 500);
  }
}
