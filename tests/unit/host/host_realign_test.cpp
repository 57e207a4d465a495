// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_realign: groups of runs against a byte-wise model; rate of one word per cycle, and of two
// cycles for a flush that does not fit.
// model: configs=wide,narrow args=-GUSER_BITS=5
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;
constexpr unsigned bytes = sizeof(DUT_CLASS::in_data_i);

struct Run {
  std::vector<std::uint8_t> data;  // whole word
  unsigned from, to, count, user;
  bool flush;
};
struct Word {
  std::vector<int> lanes;  // -1: not filled
  unsigned stop, user;
  bool last;
};

template <class Port>
void put(Port& port, unsigned lane, std::uint8_t value) {
  if constexpr (std::is_integral_v<Port>) {
    port = static_cast<Port>((port & ~(Port{0xff} << (8 * lane))) | (Port{value} << (8 * lane)));
  } else {
    auto* const at = &port[lane / 4];
    *at = (*at & ~(0xffu << (8 * (lane % 4)))) | (EData{value} << (8 * (lane % 4)));
  }
}
template <class Port>
unsigned get(const Port& port, unsigned lane) {
  if constexpr (std::is_integral_v<Port>) {
    return (port >> (8 * lane)) & 0xff;
  } else {
    return (port[lane / 4] >> (8 * (lane % 4))) & 0xff;
  }
}

/// Runs and the words that they must become.
struct Stream {
  std::deque<Run> runs;
  std::deque<Word> words;

  void group(Random& random, unsigned start,
             const std::vector<std::pair<unsigned, unsigned>>& parts) {
    unsigned to = start;
    Word word{std::vector<int>(bytes, -1), 0, 0, false};
    for (std::size_t n = 0; n < parts.size(); ++n) {
      const auto [from, count] = parts[n];
      Run run{random.bytes(bytes), from, to, count, static_cast<unsigned>(random.bits(5)),
              n + 1 == parts.size()};
      for (unsigned i = 0; i < count; ++i) {
        word.lanes[to] = run.data[from + i];
        word.stop = to + 1;
        to = (to + 1) % bytes;
        if (to == 0 && !(run.flush && i + 1 == count)) {
          words.push_back(word);
          word = {std::vector<int>(bytes, -1), 0, 0, false};
        }
      }
      if (run.flush) {
        word.last = true;
        word.user = run.user;
        words.push_back(word);
      }
      runs.push_back(std::move(run));
    }
  }
};

/// Feeds all runs and compares all words; returns the cycles from first run to last word.
std::uint64_t play(std::uint64_t salt, Stream stream, Stall in, Stall out) {
  Dut<DUT_CLASS> dut(salt);
  Random random(salt);
  dut->in_valid_i = 0;
  dut->out_ready_i = 0;
  dut.reset();
  bool valid = false;
  std::uint64_t cycles = 0;
  for (; !stream.words.empty(); ++cycles) {
    REQUIRE(cycles < 5000000);
    if (!valid && !stream.runs.empty() && !in.next(random)) {
      const Run& run = stream.runs.front();
      valid = true;
      for (unsigned i = 0; i < bytes; ++i) put(dut->in_data_i, i, run.data[i]);
      dut->in_from_i = static_cast<CData>(run.from);
      dut->in_to_i = static_cast<CData>(run.to);
      dut->in_count_i = static_cast<CData>(run.count);
      dut->in_flush_i = run.flush;
      dut->in_user_i = static_cast<CData>(run.user);
    }
    dut->in_valid_i = valid;
    dut->out_ready_i = !out.next(random);
    dut.eval();
    const bool taken = valid && dut->in_ready_o;
    if (dut->out_valid_o) {
      const Word& word = stream.words.front();
      for (unsigned i = 0; i < bytes; ++i) {
        const bool strobe = (dut->out_strobe_o >> i) & 1u;
        REQUIRE(strobe == (word.lanes[i] >= 0));
        REQUIRE(get(dut->out_data_o, i) == (strobe ? static_cast<unsigned>(word.lanes[i]) : 0u));
      }
      REQUIRE(dut->out_stop_o == word.stop);
      REQUIRE(dut->out_last_o == word.last);
      if (word.last) REQUIRE(dut->out_user_o == word.user);
      if (dut->out_ready_i) stream.words.pop_front();
    }
    dut.tick();
    if (taken) {
      valid = false;
      stream.runs.pop_front();
    }
  }
  for (int n = 0; n < 5; ++n) {
    dut->in_valid_i = 0;
    dut.eval();
    REQUIRE(!dut->out_valid_o);
    dut.tick();
  }
  return cycles;
}
}  // namespace

TEST_CASE("any runs, any stalls") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Stream stream;
    for (std::size_t n = 0; n < scaled(300); ++n) {
      const unsigned most = random.chance(0.5) ? 2 : 8;
      std::vector<std::pair<unsigned, unsigned>> parts(random.between(1, most));
      for (auto& [from, count] : parts) {
        from = random.chance(0.5) ? 0 : static_cast<unsigned>(random.below(bytes));
        count = random.chance(0.6) ? bytes - from
                                   : static_cast<unsigned>(random.between(1, bytes - from));
      }
      stream.group(random, static_cast<unsigned>(random.chance(0.5) ? 0 : random.below(bytes)),
                   parts);
    }
    play(random(), stream, Stall::any(random), Stall::any(random));
  }
}

TEST_CASE("rate") {
  Random random;
  {
    // A long group at every pair of lanes: one word per cycle.
    for (unsigned from = 0; from < bytes; from += bytes > 8 ? 7 : 1) {
      for (unsigned to = 0; to < bytes; to += bytes > 8 ? 5 : 1) {
        Stream stream;
        std::vector<std::pair<unsigned, unsigned>> parts{{from, bytes - from}};
        for (int n = 0; n < 50; ++n) parts.emplace_back(0, bytes);
        stream.group(random, to, parts);
        REQUIRE(play(1, stream, Stall(0.0), Stall(0.0)) <= 51 + 2 + 1);
      }
    }
  }
  {
    // Whole words to an odd lane, one per group: two words each.
    Stream stream;
    for (int n = 0; n < 100; ++n) stream.group(random, bytes - 1, {{0, bytes}});
    CHECK(play(2, stream, Stall(0.0), Stall(0.0)) <= 200 + 3);
  }
  {
    // Two runs that make one word and a rest: the rest leaves while the next group starts.
    Stream stream;
    for (int n = 0; n < 100; ++n) stream.group(random, 0, {{bytes - 2, 2}, {0, bytes}});
    CHECK(play(3, stream, Stall(0.0), Stall(0.0)) <= 200 + 4);
  }
}
