// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_commit_fifo against a pair of queues: nothing uncommitted is seen, nothing committed is
// lost, rolled-back words never appear, full rate when nobody stalls.
// model: configs=any args=-GWIDTH=20 args=-GDEPTH=16
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <vector>

#include "harness/harness.hpp"

using namespace roci::test;

namespace {

struct Model {
  std::deque<std::uint32_t> committed;
  std::vector<std::uint32_t> open;
};

}  // namespace

TEST_CASE("words appear in committed groups only") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Dut<DUT_CLASS> dut(random());
    dut->write_valid_i = 0;
    dut->commit_i = 0;
    dut->rollback_i = 0;
    dut->read_ready_i = 0;
    dut.reset();
    Model model;
    std::size_t read = 0;
    const auto write_chance = random.between(1, 9);
    const auto read_chance = random.between(1, 9);
    for (std::size_t n = 0; n < scaled(3000); ++n) {
      // a group never exceeds 12 of the 16 words
      const bool want_write = model.open.size() < 12 && random.between(0, 9) < write_chance;
      const auto word = static_cast<std::uint32_t>(random()) & 0xfffff;
      dut->write_valid_i = want_write;
      dut->write_i = word;
      dut->read_ready_i = random.between(0, 9) < read_chance;
      const auto act = random.between(0, 9);
      dut->commit_i = act < 2;
      dut->rollback_i = act == 9;
      dut.eval();
      const bool wrote = want_write && dut->write_ready_o;
      if (dut->read_valid_o && dut->read_ready_i) {
        REQUIRE_FALSE(model.committed.empty());
        REQUIRE(dut->read_o == model.committed.front());
        model.committed.pop_front();
        ++read;
      }
      REQUIRE(dut->usage_o <= 17);
      if (wrote) {
        model.open.push_back(word);
      }
      if (dut->commit_i) {
        model.committed.insert(model.committed.end(), model.open.begin(), model.open.end());
        model.open.clear();
      } else if (dut->rollback_i) {
        model.open.clear();
      }
      dut.tick();
    }
    dut->write_valid_i = 0;
    dut->commit_i = 0;
    dut->rollback_i = 0;
    dut->read_ready_i = 1;
    for (int n = 0; n < 40; ++n) {
      dut.eval();
      if (dut->read_valid_o) {
        REQUIRE_FALSE(model.committed.empty());
        REQUIRE(dut->read_o == model.committed.front());
        model.committed.pop_front();
        ++read;
      }
      dut.tick();
    }
    REQUIRE(model.committed.empty());
    REQUIRE(read > 0);
  }
}

TEST_CASE("one word per cycle through a committed stream") {
  Dut<DUT_CLASS> dut;
  dut->write_valid_i = 0;
  dut->commit_i = 0;
  dut->rollback_i = 0;
  dut->read_ready_i = 1;
  dut.reset();
  unsigned got = 0;
  dut->commit_i = 1;
  dut->write_valid_i = 1;
  for (unsigned n = 0; n < 200; ++n) {
    dut->write_i = n;
    dut.eval();
    REQUIRE(dut->write_ready_o);
    if (dut->read_valid_o) {
      REQUIRE(dut->read_o == got);
      ++got;
    }
    dut.tick();
  }
  REQUIRE(got >= 197);
}
