// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_commit_tokens: each token to its reader, in order; errors of a QP stay in the QP and end
// with RESET and INIT; errors of the other levels go to their next token; ends of packets.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <set>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"
#include "token_readers.hpp"

namespace {
using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
using Token = pkg::token_t;

struct Entry {
  bool write, failed, has_token;
  unsigned level;
  Token token;
};
}  // namespace

TEST_CASE("random entries") {
  Random random;
  for (int round = 0; round < 15; ++round) {
    Dut<DUT_CLASS> dut(random());
    TokenReaders<DUT_CLASS> readers(dut.top(), random());
    for (unsigned r = 0; r < readers.readers; ++r) readers.stall(r, Stall::any(random));
    std::deque<Token> expected;
    std::deque<unsigned> ends;
    readers.on_token([&](unsigned, const Token& token) {
      REQUIRE(!expected.empty());
      while (expected.front().kind == pkg::TOKEN_END) expected.pop_front();
      REQUIRE(token == expected.front());
      expected.pop_front();
    });
    readers.on_end([&](unsigned colour) {
      REQUIRE(!ends.empty());
      REQUIRE(colour == ends.front());
      ends.pop_front();
    });
    dut->entry_valid_i = 0;
    dut->state_i = 0;
    dut.reset();
    dut.attach(readers);
    std::set<unsigned> marked;
    bool level_failed[4] = {};
    Stall in = Stall::any(random);
    std::size_t left = scaled(4000);
    std::optional<Entry> now;
    for (std::uint64_t cycle = 0; left != 0 || now || !expected.empty(); ++cycle) {
      REQUIRE(cycle < 1000000);
      if (!now && left != 0 && !in.next(random)) {
        Entry e{random.chance(0.5), random.chance(0.2), false,
                static_cast<unsigned>(random.bits(2)), random_payload<Token>(random)};
        e.has_token = !e.write || random.chance(0.5);
        e.token.kind = static_cast<decltype(e.token.kind)>(random.below(8));
        e.token.qp = static_cast<decltype(e.token.qp)>(random.below(8));
        now = e;
        --left;
      }
      pkg::state_bcast_t state{};
      state.valid = random.chance(0.1);
      state.qp = static_cast<decltype(state.qp)>(random.below(8));
      state.state = static_cast<decltype(state.state)>(random.below(7));
      state.pack(dut->state_i);
      dut->entry_valid_i = now.has_value();
      const Entry e = now.value_or(Entry{true, true, true, 0, random_payload<Token>(random)});
      dut->entry_write_i = e.write;
      dut->entry_failed_i = e.failed;
      dut->entry_level_i = static_cast<CData>(e.level);
      dut->entry_has_token_i = e.has_token;
      e.token.pack(dut->entry_token_i);
      dut.eval();
      const bool taken = now && dut->entry_ready_o;
      if (taken) {
        const bool failed = e.write && e.failed;
        if (failed && e.level == 0) marked.insert(e.token.qp);
        if (failed && e.level != 0) level_failed[e.level] = true;
        if (e.has_token) {
          Token token = e.token;
          token.error = e.level == 0 ? marked.count(token.qp) != 0 : level_failed[e.level];
          level_failed[e.level] = false;
          expected.push_back(token);
          if (token.packet_end || token.kind == pkg::TOKEN_END) ends.push_back(token.colour);
        }
        now.reset();
      }
      if (state.valid && (state.state == pkg::QPS_RESET || state.state == pkg::QPS_INIT)) {
        marked.erase(state.qp);
      }
      dut.tick();
      while (left == 0 && !now && !expected.empty() && expected.front().kind == pkg::TOKEN_END) {
        expected.pop_front();
      }
    }
    dut->entry_valid_i = 0;
    dut.tick(5);
    REQUIRE(ends.empty());
  }
}

TEST_CASE("one token per cycle") {
  Dut<DUT_CLASS> dut(1);
  TokenReaders<DUT_CLASS> readers(dut.top(), 1);
  std::size_t tokens = 0;
  readers.on_token([&](unsigned, const Token&) { ++tokens; });
  readers.on_end([](unsigned) {});
  dut->entry_valid_i = 0;
  dut->state_i = 0;
  dut.reset();
  dut.attach(readers);
  dut.run_until([&] { return dut->entry_ready_o != 0; }, "marks cleared", 3000);
  dut->entry_valid_i = 1;
  dut->entry_write_i = 1;
  dut->entry_failed_i = 0;
  dut->entry_level_i = 0;
  dut->entry_has_token_i = 1;
  Token token{};
  token.kind = pkg::TOKEN_RESPOND;
  token.pack(dut->entry_token_i);
  dut.tick(101);
  CHECK(tokens == 100);
}
