// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_commit_fifo: order, waiting for responses, errors of the right write, room of each level; no
// circle however slow completions are taken.
// model: configs=any args=-GWIDTH=20 args=-GDEPTH=32 name=d32
// model: configs=any args=-GWIDTH=20 args=-GDEPTH=128 name=d128
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;

constexpr unsigned reserve_cq = DUT_DEPTH / 8;
constexpr unsigned reserve_eq = DUT_DEPTH / 32 + 1;
constexpr unsigned reserve_cpu = DUT_DEPTH / 64 + 1;

struct Entry {
  unsigned payload;
  bool write, completion;
};

/// The module with a model of who pushes and who reads; step() is one cycle.
struct Bench {
  explicit Bench(std::uint64_t salt) : dut(salt), random(salt) {
    dut->push_valid_i = 0;
    dut->cqe_reserve_i = 0;
    dut->b_valid_i = 0;
    dut->out_ready_i = 0;
    dut.reset();
  }

  /// level < 0: no push. Pushes only if there is room; returns whether it did.
  bool step(int level, bool write, bool completion, bool reserve, double respond, double read) {
    dut->push_valid_i = 0;
    dut->push_extra_i = 0;
    dut->push_level_i = static_cast<CData>(random.bits(2));
    dut->push_write_i = write;
    dut->push_completion_i = completion;
    const auto payload = static_cast<unsigned>(random.bits(20));
    dut->push_i = payload;
    if (extra_due && random.chance(0.5)) {  // second burst of a long write: needs no room
      dut->push_valid_i = 1;
      dut->push_extra_i = 1;
      dut->push_write_i = 1;
      dut->push_completion_i = 0;
      dut->push_level_i = 0;
    } else if (level >= 0 && ((dut->room_o >> level) & 1)) {
      dut->push_valid_i = 1;
      dut->push_level_i = static_cast<CData>(level);
    }
    dut->cqe_reserve_i = reserve && dut->cqe_room_o;
    dut->b_valid_i = 0;
    if (unanswered != 0 && random.chance(respond)) {
      dut->b_valid_i = 1;
      dut->b_error_i = random.chance(0.3);
    }
    dut->out_ready_i = random.chance(read);
    dut.eval();
    if (dut->out_valid_o && dut->out_ready_i) {
      REQUIRE(!entries.empty());
      const Entry& e = entries.front();
      REQUIRE(dut->out_o == e.payload);
      REQUIRE(dut->out_write_o == e.write);
      if (e.write) {
        REQUIRE(!errors.empty());  // never before its response
        REQUIRE(dut->out_failed_o == errors.front());
        errors.pop_front();
      }
      held += e.completion;
      entries.pop_front();
    }
    const bool pushed = dut->push_valid_i;
    if (dut->cqe_reserve_i) ++held;
    if (pushed) {
      if (dut->push_level_i == 1) --held;
      entries.push_back({payload, dut->push_write_i != 0, dut->push_completion_i != 0});
      unanswered += dut->push_write_i;
      extra_due = !dut->push_extra_i && dut->push_write_i && dut->push_level_i == 0 &&
                  random.chance(0.2);
    }
    if (dut->b_valid_i) {
      --unanswered;
      errors.push_back(dut->b_error_i != 0);
    }
    dut.tick();
    REQUIRE(entries.size() + static_cast<std::size_t>(held) <= DUT_DEPTH);
    REQUIRE(((dut->room_o >> 1) & 1) == (held != 0));
    return pushed;
  }

  Dut<DUT_CLASS> dut;
  Random random;
  std::deque<Entry> entries;
  std::deque<bool> errors;
  unsigned unanswered = 0;
  int held = 0;
  bool extra_due = false;
};
}  // namespace

TEST_CASE("order, responses, errors") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Bench bench(random());
    const double respond = random.chance(0.5) ? 1.0 : 0.2, read = random.chance(0.5) ? 1.0 : 0.3;
    const double push = random.chance(0.5) ? 1.0 : 0.4;
    for (std::size_t n = 0; n < scaled(4000); ++n) {
      int level = random.chance(push) ? static_cast<int>(random.below(4)) : -1;
      if (bench.held != 0 && random.chance(0.5)) level = 1;
      const bool write = random.chance(0.5);
      bench.step(level, write, level == 0 && random.chance(0.3), random.chance(0.2), respond, read);
    }
    for (int n = 0; !bench.entries.empty(); ++n) {
      REQUIRE(n < 10000);
      bench.step(bench.held != 0 ? 1 : -1, false, false, false, 1.0, 1.0);
    }
  }
}

TEST_CASE("levels leave each other's reserves alone") {
  const auto fill = [](int level) {
    Bench bench(static_cast<std::uint64_t>(level) + 7);
    std::size_t pushed = 0;
    for (unsigned n = 0; n < 2 * DUT_DEPTH; ++n) {
      bench.extra_due = false;
      pushed += bench.step(level, false, false, false, 0.0, 0.0);
    }
    return pushed;
  };
  CHECK(fill(0) == DUT_DEPTH - 1 - reserve_cq - reserve_eq - reserve_cpu);
  CHECK(fill(3) == DUT_DEPTH - 1 - reserve_cq - reserve_eq);
  CHECK(fill(2) == DUT_DEPTH - 1);
  CHECK(fill(1) == 0);  // nothing held
}

TEST_CASE("full of completions: each reader's entry finds its place") {
  Bench bench(5);
  for (unsigned n = 0; n < 2 * DUT_DEPTH; ++n) {
    bench.extra_due = false;
    bench.step(0, false, true, true, 1.0, 0.0);  // as many as go in, and reservations on top
  }
  REQUIRE(!bench.dut->cqe_room_o);
  // The reader takes one completion at a time and pushes its entry before the next.
  std::size_t done = 0;
  for (unsigned n = 0; n < 100 * DUT_DEPTH && bench.entries.size() + done != 0; ++n) {
    const bool push = bench.held != 0;
    const bool pushed = bench.step(push ? 1 : -1, true, false, false, 1.0, 1.0);
    REQUIRE(pushed == push);
    done = static_cast<std::size_t>(bench.held);
  }
  CHECK(bench.entries.empty());
  CHECK(bench.held == 0);
}
