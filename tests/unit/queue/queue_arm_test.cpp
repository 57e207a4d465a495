// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_arm against a model that keeps every entry: an object fires exactly when a matching entry
// at or after the wanted index is in memory; indices wrap many times; no operation is lost to
// another.
// model: configs=any args=-GN=4 args=-GINDEX_BITS=12 name=n4
// model: configs=any args=-GN=64 args=-GINDEX_BITS=24 name=n64
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;

constexpr unsigned mask = (1u << DUT_INDEX_BITS) - 1;

struct Object {
  std::deque<std::pair<std::uint64_t, bool>> entries;  // the latest, with their true numbers
  std::uint64_t committed = 0;
  std::uint64_t wanted = 0;
  bool armed = false, only = false;

  /// The last entry at or after `from` that matches.
  std::optional<std::uint64_t> match(std::uint64_t from, bool solicited_only) const {
    for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
      if (it->first < from) break;
      if (it->second || !solicited_only) return it->first;
    }
    return std::nullopt;
  }
};

struct Fire {
  unsigned object;
  unsigned index;
};
}  // namespace

TEST_CASE("fires exactly when a matching entry is there") {
  Random random;
  for (int round = 0; round < 8; ++round) {
    Dut<DUT_CLASS> dut(random());
    std::vector<Object> objects(DUT_N);
    const double arm = random.chance(0.5) ? 0.5 : 0.05, done = random.chance(0.5) ? 1.0 : 0.3;
    const double solicited = random.pick(std::vector<double>{0.3, 0.002, 0.0003});
    dut->arm_valid_i = 0;
    dut->done_valid_i = 0;
    dut->row_valid_i = 0;
    dut.reset();
    for (unsigned n = 0; n < DUT_N; ++n) {
      dut->row_valid_i = 1;
      dut->row_clear_i = 1;
      dut->row_object_i = static_cast<CData>(n);
      dut.tick();
    }
    dut->row_valid_i = 0;
    dut.tick(3);
    std::optional<Fire> in1, in2;  // expected one and two cycles after an operation
    bool row_in1 = false;
    Object row;
    for (std::size_t cycle = 0; cycle < scaled(20000); ++cycle) {
      // Answers of the cycles before.
      dut.eval();
      REQUIRE(dut->fire_valid_o == in2.has_value());
      if (in2) {
        REQUIRE(dut->fire_object_o == in2->object);
        REQUIRE(dut->fire_index_o == in2->index);
      }
      if (row_in1) {
        REQUIRE(dut->row_committed_o == (row.committed & mask));
        REQUIRE(dut->row_armed_o == row.armed);
        if (row.armed) REQUIRE(dut->row_solicited_only_o == row.only);
      }
      in2 = in1;
      in1.reset();
      row_in1 = false;

      // Offers: arm always taken, then row, then done.
      const auto a = static_cast<unsigned>(random.below(DUT_N));
      const auto d = static_cast<unsigned>(random.below(random.chance(0.5) ? 1 : DUT_N));
      const auto r = static_cast<unsigned>(random.below(DUT_N));
      Object& armed = objects[a];
      const std::uint64_t back = std::min<std::uint64_t>(random.below(60), armed.committed);
      // The host may have seen entries in memory whose response is still on its way.
      const std::uint64_t from = random.chance(0.5) ? armed.committed + random.below(4)
                                                    : armed.committed - back;
      const bool only = random.chance(0.5), is_solicited = random.chance(solicited);
      dut->arm_valid_i = random.chance(arm);
      dut->arm_object_i = static_cast<CData>(a);
      dut->arm_index_i = static_cast<std::decay_t<decltype(dut->arm_index_i)>>(from & mask);
      dut->arm_solicited_only_i = only;
      dut->row_valid_i = random.chance(0.02);
      dut->row_clear_i = random.chance(0.01);
      dut->row_object_i = static_cast<CData>(r);
      dut->done_valid_i = random.chance(done);
      dut->done_object_i = static_cast<CData>(d);
      dut->done_index_i =
          static_cast<std::decay_t<decltype(dut->done_index_i)>>(objects[d].committed & mask);
      dut->done_solicited_i = is_solicited;
      dut.eval();
      if (dut->arm_valid_i) {
        // A request for any entry stays one.
        armed.only = only && (!armed.armed || armed.only);
        armed.wanted = from;
        const auto match = armed.match(from, armed.only);
        armed.armed = !match;
        if (match) in1 = Fire{a, static_cast<unsigned>(*match & mask)};
      } else if (dut->row_valid_i) {
        REQUIRE(dut->row_ready_o);
        row = objects[r];
        if (dut->row_clear_i) objects[r] = Object();
        else row_in1 = true;
      } else if (dut->done_valid_i) {
        REQUIRE(dut->done_ready_o);
        Object& o = objects[d];
        o.entries.emplace_back(o.committed++, is_solicited);
        if (o.entries.size() > 100) o.entries.pop_front();
        if (o.armed && (is_solicited || !o.only) && o.committed - 1 >= o.wanted) {
          o.armed = false;
          in1 = Fire{d, static_cast<unsigned>((o.committed - 1) & mask)};
        }
      }
      if (dut->arm_valid_i) REQUIRE(!dut->row_ready_o);
      dut.tick();
    }
  }
}
