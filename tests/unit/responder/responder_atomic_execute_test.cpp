// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_atomic_execute: results of random operands, looks repeated when the word was hit, one lock
// per atomic and none while a token waits, tokens instead of writes, errors, queue pairs in RESET; told
// in order.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <set>

#include "harness/harness.hpp"
#include "host/data_word.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
using What = roci::sv::responder_pkg::atomic_what_t;
using Entered = roci::sv::responder_pkg::atomic_entered_t;
using Place = roci::sv::host_pkg::bus_word_t;
using Write = roci::sv::host_pkg::atomic_write_t;
using Done = pkg::atomic_done_t;

struct Item {
  What what;
  Entered head;
  Place place;
  bool failed;
  std::uint64_t change, compare;
};
}  // namespace

TEST_CASE("random atomics") {
  Random random;
  std::uint64_t repeats = 0, skips = 0, misses = 0;
  for (int round = 0; round < 12; ++round) {
    Dut<DUT_CLASS> dut(random());
    Sink<Done> done("done", dut->done_valid_o, dut->done_ready_i, dut->done_o);
    done.stall(Stall::any(random));
    dut->state_i = 0;
    dut->head_valid_i = 0;
    dut->what_valid_i = 0;
    dut->locked_i = 0;
    dut->write_ready_i = 0;
    dut->token_valid_i = 0;
    dut->start_valid_i = 0;
    dut->head_hit_i = 0;
    dut.reset();
    dut.attach(done);
    dut.run_until([&] { return dut->ready_o != 0; }, "ready", 3000);

    const double hits = round % 3 == 0 ? 0.0 : 0.2, slow = random.chance(0.5) ? 0.9 : 0.2;
    std::size_t left = scaled(300);
    std::optional<Item> now;
    std::uint64_t word = 0;  // of the item in front
    std::set<unsigned> dead;
    std::deque<bool> tokens;  // an error?
    bool looked = false, locked = false, valid_before = false;
    std::uint64_t seen = 0;
    for (std::uint64_t cycle = 0; left != 0 || now || !done.done() || !tokens.empty(); ++cycle) {
      REQUIRE(cycle < 300'000);
      pkg::state_bcast_t state{};
      if (!now && random.chance(0.1)) {
        state.valid = true;
        state.qp = static_cast<decltype(state.qp)>(random.below(4));
        state.state = static_cast<decltype(state.state)>(random.below(7));
      }
      state.pack(dut->state_i);
      if (!now && left != 0 && !state.valid && random.chance(0.5)) {
        Item item{};
        item.what = random_payload<What>(random);
        item.what.qp = static_cast<decltype(item.what.qp)>(random.below(4));
        item.head = random_payload<Entered>(random);
        item.place = random_payload<Place>(random);
        item.failed = random.chance(0.1);
        word = random.chance(0.5) ? random.below(3) : random();
        item.change = random.chance(0.5) ? random() : random.below(3);
        item.compare = random.chance(0.6) ? word : random.below(3);
        for (unsigned i = 0; i < 8; ++i) {  // big endian
          set_byte(item.what.operands, i, static_cast<std::uint8_t>(item.change >> (56 - 8 * i)));
          set_byte(item.what.operands, 8 + i,
                   static_cast<std::uint8_t>(item.compare >> (56 - 8 * i)));
        }
        now = item;
        --left;
        valid_before = false;
      }
      const Item item = now.value_or(Item{random_payload<What>(random), random_payload<Entered>(random),
                                          random_payload<Place>(random), false, 0, 0});
      dut->head_valid_i = now && (valid_before || random.chance(0.5));
      dut->what_valid_i = now && (valid_before || random.chance(0.5));
      valid_before = dut->head_valid_i && dut->what_valid_i;
      item.what.pack(dut->what_i);
      item.head.pack(dut->head_i);
      item.place.pack(dut->place_i);
      dut->head_failed_i = item.failed;
      // the cycle after a look shows the word as it was
      dut->value_i = looked ? seen : random();
      const bool may_hit = now && !locked;
      dut->head_hit_i = may_hit && random.chance(hits);
      // a token of the watch: only when it may come, and it stays a while
      if (!dut->start_valid_i) dut->start_valid_i = !dut->start_hold_o && random.chance(0.05);
      else if (!locked && random.chance(0.3)) dut->start_valid_i = 0;
      dut->locked_i = locked;
      dut->token_valid_i = !tokens.empty() && (dut->token_valid_i || !random.chance(slow));
      dut->token_error_i = !tokens.empty() && tokens.front();
      dut.eval();
      dut->write_ready_i = dut->write_valid_o;  // at once under the lock
      dut.eval();

      if (dut->start_valid_i) REQUIRE(!dut->lock_o);
      looked = dut->look_o != 0;
      if (looked) {
        REQUIRE(now);
        repeats += locked;
        seen = word;
        // a look that collides with a word shows anything
        if (dut->head_hit_i) seen = random();
      }
      if (dut->write_valid_o) {
        REQUIRE(locked);
        const Write w = Write::unpack(dut->write_o);
        const bool match = !item.what.is_swap || item.compare == word;
        const bool writes = match && !item.failed;
        misses += !match;
        REQUIRE(w.is_token == !writes);
        REQUIRE(w.tag.executed);
        REQUIRE(w.tag.slot == item.head.slot);
        const unsigned lanes = data_bytes / 8;
        if (writes) {
          REQUIRE(w.fn == item.place.fn);
          REQUIRE(w.addr == (lanes > 1 ? item.place.word * lanes + item.head.lane : item.place.word));
          REQUIRE(w.data == (item.what.is_swap ? item.change : word + item.change));
        }
        const bool error = random.chance(0.1);
        tokens.push_back(error);
        Done d{};
        d.qp = item.what.qp;
        d.slot = item.what.slot;
        d.ordinal = item.what.ordinal;
        d.psn = item.what.psn;
        d.failed = item.failed || error;
        d.value = word;
        done.expect(d);
      }
      const bool ended = dut->head_done_o != 0;
      REQUIRE(ended == (dut->what_ready_o != 0));
      if (ended) {
        REQUIRE((dut->skipped_o != 0) == (dead.count(item.what.qp) != 0));
        REQUIRE((dut->skipped_o != 0) == !dut->write_valid_o);
        REQUIRE(!dut->start_valid_i);
        skips += dut->skipped_o;
      }
      if (dut->token_valid_i && dut->token_ready_o) tokens.pop_front();
      if (dut->head_hit_i) word = random.chance(0.5) ? random.below(3) : random();
      const bool lock = dut->lock_o && !locked && random.chance(0.5);
      if (ended) {
        now.reset();
        locked = false;
      } else if (lock) {
        locked = true;
      }
      if (state.valid) {
        if (state.state == pkg::QPS_RESET) dead.insert(state.qp);
        else dead.erase(state.qp);
      }
      dut.tick();
    }
  }
  CHECK(repeats > 30);
  CHECK(skips > 30);
  CHECK(misses > 100);
}
