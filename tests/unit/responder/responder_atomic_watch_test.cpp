// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_atomic_watch: whatever leaves for memory before, during and after a read, the word that is
// looked at is what memory holds in the order of leaving; atomics in order; hits of the word in front,
// and only they; reads behind the token; a slot per bus word; failed reads once each; all slots in use.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>

#include "harness/harness.hpp"
#include "host/data_word.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
using Where = roci::sv::responder_pkg::atomic_where_t;
using Entered = roci::sv::responder_pkg::atomic_entered_t;
using Written = roci::sv::host_pkg::written_t;
using Place = roci::sv::host_pkg::bus_word_t;
using Read = roci::sv::roci_pkg::dma_read_req_t;
using Beat = roci::sv::roci_pkg::read_beat_t;
using At = std::pair<unsigned, std::uint64_t>;
constexpr unsigned slots = ROCI_CONFIG_WIDE ? 16 : 4;
constexpr std::uint64_t base = 0x1234'5678'9000;

/// Everything around the module, cycle by cycle.
struct Bench {
  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt), where("where", dut->where_valid_i, dut->where_ready_o, dut->where_i) {
    Written{}.pack(dut->written_i);
    dut->start_ready_i = 0;
    dut->start_hold_i = 0;
    dut->started_valid_i = 0;
    dut->dma_ready_i = 0;
    dut->beat_valid_i = 0;
    dut->look_i = 0;
    dut->head_done_i = 0;
    where.on_transfer([this](const Where& w) {
      entered.push_back(w);
      most = std::max(most, entered.size());
    });
    dut.reset();
    dut.attach(where);
  }

  std::uint8_t byte(const std::map<At, std::uint8_t>& from, unsigned fn, std::uint64_t addr) const {
    const auto found = from.find({fn, addr});
    return found != from.end() ? found->second : memory_byte(fn, addr);
  }

  void push(unsigned fn, std::uint64_t addr) {
    Where w{};
    w.fn = static_cast<decltype(w.fn)>(fn);
    w.addr = addr >> 3u;
    where.push(w);
  }

  /// One cycle. A word leaves with probability `leaves`; fates of tokens, reads and the head as given.
  void step(unsigned lines, double leaves, double token, double read, double run, double error) {
    // combinational outputs of the last inputs: what the head shows
    dut->head_done_i = 0;
    dut->look_i = 0;
    dut->start_hold_i = random.chance(0.2);
    Written w{};
    w.valid = random.chance(leaves);
    const auto fn = static_cast<unsigned>(random.below(2));
    const std::uint64_t word = base / data_bytes + random.below(lines + 2);
    w.place.fn = static_cast<decltype(w.place.fn)>(fn);
    w.place.word = word;
    for (unsigned i = 0; i < data_bytes; ++i) {
      set_byte(w.data, i, static_cast<std::uint8_t>(random()));
      if (random.chance(0.4)) w.strobe |= decltype(w.strobe){1} << i;
    }
    dut->start_ready_i = random.chance(token);
    dut->dma_ready_i = random.chance(read);
    dut->started_valid_i = 0;
    if (!tokens.empty() && random.chance(token)) {
      dut->started_valid_i = 1;
      dut->started_slot_i = static_cast<CData>(tokens.front().slot);
    }
    dut->beat_valid_i = 0;
    if (!reads.empty() && random.chance(read)) {
      Beat beat{};
      beat.last = true;
      beat.err = random.chance(error);
      const auto& r = reads.front();
      for (unsigned i = 0; i < data_bytes; ++i) {
        set_byte(beat.data, i, beat.err ? 0x5a : r.seen[i]);
      }
      dut->beat_valid_i = 1;
      beat.pack(dut->beat_i);
      if (beat.err) ++failing[r.line];
    }
    w.pack(dut->written_i);
    dut.eval();

    // the head: look, then be done a few cycles later if nothing hit its word
    const bool head = dut->head_valid_o != 0;
    if (head) {
      REQUIRE(!entered.empty());
      const Where& front = entered.front();
      const std::uint64_t addr = std::uint64_t{front.addr} << 3u;
      const At line{front.fn, addr / data_bytes};
      REQUIRE((dut->head_hit_o != 0) ==
              (w.valid && line == At{w.place.fn, std::uint64_t{w.place.word}}));
      REQUIRE((dut->head_failed_o != 0) == (failing.count(line) != 0 && failing[line] != 0));
      if (looked) {
        for (unsigned i = 0; i < 8 && !dut->head_failed_o; ++i) {
          REQUIRE(((dut->value_o >> (8 * i)) & 0xff) == value[i]);
        }
        ++checked;
        looked = false;
        may_end = !hit;
      } else if (may_end && !dut->start_valid_o && random.chance(run)) {
        dut->head_done_i = 1;
        if (dut->head_failed_o) --failing[line];
        entered.pop_front();
        may_end = false;
      } else if (random.chance(run)) {
        dut->look_i = 1;
        dut.eval();
        const auto place = Place::unpack(dut->place_o);
        REQUIRE(place.fn == front.fn);
        REQUIRE(place.word == addr / data_bytes);
        hit = dut->head_hit_o != 0;
        may_end = false;
        looked = !hit;  // a word that collides with the look shows nothing
        for (unsigned i = 0; i < 8; ++i) value[i] = byte(image, front.fn, addr + i);
      }
    }
    // what is taken at the edge
    if (dut->start_valid_o && dut->start_ready_i) {
      tokens.push_back({dut->start_slot_o, {}});
      tokens.back().before = image;  // all that left before is in memory when it comes back
    }
    if (dut->started_valid_i) {
      back.push_back(tokens.front());
      tokens.pop_front();
    }
    if (dut->dma_valid_o && dut->dma_ready_i) {
      const Read r = Read::unpack(dut->dma_o);
      REQUIRE(!back.empty());
      REQUIRE(r.length == 8);
      Reading now{{r.fn, r.addr / data_bytes}, {}};
      // memory shows what left before the token, or anything that left since
      const bool late = random.chance(0.5);
      for (unsigned i = 0; i < data_bytes; ++i) {
        const std::uint64_t a = r.addr / data_bytes * data_bytes + i;
        now.seen.push_back(byte(late ? image : back.front().before, r.fn, a));
      }
      back.pop_front();
      reads.push_back(now);
      ++read_count;
      const bool one = dut->beat_valid_i != 0;
      if (one) reads.pop_front();
    } else if (dut->beat_valid_i) {
      reads.pop_front();
    }
    if (w.valid) {
      for (unsigned i = 0; i < data_bytes; ++i) {
        if ((w.strobe >> i) & 1u) {
          image[{w.place.fn, std::uint64_t{w.place.word} * data_bytes + i}] = get_byte(w.data, i);
        }
      }
    }
    dut.tick();
  }

  struct Token {
    unsigned slot;
    std::map<At, std::uint8_t> before;
  };
  struct Reading {
    At line;
    std::vector<std::uint8_t> seen;
  };
  Dut<DUT_CLASS> dut;
  Random random;
  Source<Where> where;
  std::map<At, std::uint8_t> image;
  std::deque<Where> entered;
  std::deque<Token> tokens, back;
  std::deque<Reading> reads;
  std::map<At, int> failing;
  std::uint8_t value[8] = {};
  bool looked = false, hit = false, may_end = false;
  std::uint64_t checked = 0, read_count = 0;
  std::size_t most = 0;
};
}  // namespace

TEST_CASE("random atomics and words") {
  Random random;
  for (int round = 0; round < 24; ++round) {
    Bench bench(random());
    static const unsigned choices[] = {1, 2, 4, 30};
    const unsigned lines = choices[round % 4];
    const double leaves = round % 3 == 0 ? 0.02 : 0.4, token = random.chance(0.5) ? 0.05 : 0.9;
    const double read = random.chance(0.5) ? 0.02 : 0.9, error = round % 5 == 0 ? 0.2 : 0.0;
    std::size_t left = scaled(250);
    for (std::uint64_t cycle = 0; left != 0 || !bench.where.empty() || !bench.entered.empty();
         ++cycle) {
      REQUIRE(cycle < 500'000);
      if (left != 0 && bench.where.pending() < 2) {
        --left;
        bench.push(static_cast<unsigned>(random.below(2)),
                   base + data_bytes * random.below(lines) + 8 * random.below(data_bytes / 8));
      }
      bench.step(lines, leaves, token, read, 0.6, error);
    }
    CHECK(bench.checked > 200);
    if (error == 0.0 && lines == 1) CHECK(bench.read_count <= 250);
  }
}

TEST_CASE("reads of different words overlap, a word that is watched is read once") {
  Bench bench(1);
  for (unsigned n = 0; n < 3 * slots; ++n) bench.push(0, base + 64 * n);
  for (int n = 0; n < 1000; ++n) bench.step(1, 0.0, 1.0, 0.0, 0.0, 0.0);  // no read is answered
  CHECK(bench.most == slots);
  CHECK(bench.tokens.size() + bench.back.size() == slots);
  for (int n = 0; n < 5000; ++n) bench.step(1, 0.0, 1.0, 1.0, 1.0, 0.0);
  CHECK(bench.entered.empty());
  CHECK(bench.read_count == 3 * slots);
  for (unsigned n = 0; n < slots; ++n) bench.push(1, base);
  for (int n = 0; n < 1000; ++n) bench.step(1, 0.0, 1.0, 0.0, 0.0, 0.0);
  CHECK(bench.entered.size() == slots);
  for (int n = 0; n < 5000; ++n) bench.step(1, 0.0, 1.0, 1.0, 1.0, 0.0);
  CHECK(bench.entered.empty());
  CHECK(bench.read_count == 3 * slots + 1);
}
