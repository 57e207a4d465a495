// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_doorbell: random doorbells, good and bad in every way, against a map of the rows; rows are
// rewritten meanwhile; one doorbell per cycle; every one is either told to the queues or counted.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <vector>

#include "harness/harness.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace cpu = roci::sv::cpu_pkg;
using roci::hwif::CtxColumn;
using roci::hwif::CtxQpDb;
using roci::hwif::Doorbell;
using roci::hwif::DoorbellKind;

namespace {

constexpr unsigned kQp = ROCI_CONFIG_WIDE ? 10 : 6;
constexpr unsigned kCq = ROCI_CONFIG_WIDE ? 10 : 6;
constexpr unsigned kEq = ROCI_CONFIG_WIDE ? 6 : 4;
constexpr unsigned kSrq = ROCI_CONFIG_WIDE ? 8 : 4;
constexpr unsigned kFns = ROCI_CONFIG_WIDE ? 16 : 8;

struct Table {
  CtxColumn column;
  unsigned bits;
};
constexpr Table kTables[] = {{CtxColumn::QP_DB, kQp},
                             {CtxColumn::CQ_DB, kCq},
                             {CtxColumn::EQ_DB, kEq},
                             {CtxColumn::SRQ_DB, kSrq}};

/// Table of a doorbell kind, -1 if the kind is unknown.
int table_of(unsigned kind) {
  switch (static_cast<DoorbellKind>(kind)) {
    case DoorbellKind::SQ:
    case DoorbellKind::RQ: return 0;
    case DoorbellKind::CQ_CONSUMED:
    case DoorbellKind::CQ_ARM: return 1;
    case DoorbellKind::EQ_CONSUMED_ARM: return 2;
    case DoorbellKind::SRQ: return 3;
  }
  return -1;
}

struct Bench {
  Dut<DUT_CLASS> dut;
  Random random;
  std::map<std::pair<int, unsigned>, CtxQpDb> rows;
  Source<cpu::bar_doorbell_t> ring;
  std::deque<pkg::doorbell_t> expected;
  std::uint64_t counts[5] = {};
  std::uint64_t expected_counts[5] = {};
  std::deque<unsigned> expected_errors;

  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt),
        ring("ring", dut->ring_valid_i, dut->ring_ready_o, dut->ring_i) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    dut.reset();
    dut.run_until([&] { return dut->ring_ready_o != 0; }, "cleared");
    dut.attach(ring);
    // Judged when it is taken: the rows of that moment count.
    ring.on_transfer([this](const cpu::bar_doorbell_t& item) { judge(item); });
  }

  void judge(const cpu::bar_doorbell_t& item) {
    const auto bell = Doorbell::from_word(item.data);
    const auto kind = static_cast<unsigned>(bell.get<Doorbell::kind>());
    const auto object = bell.get<Doorbell::object>();
    const auto index = bell.get<Doorbell::index>();
    const int table = table_of(kind);
    unsigned verdict = 0;
    if (table < 0) {
      verdict = 1;
    } else {
      const auto at = rows.find({table, object & ((1u << kTables[table].bits) - 1)});
      const bool takes = at != rows.end() &&
                         (static_cast<DoorbellKind>(kind) == DoorbellKind::RQ
                              ? at->second.get<CtxQpDb::takes_receive>()
                              : at->second.get<CtxQpDb::takes_send>());
      const unsigned width = table == 1 || table == 2 ? 24 : 16;
      if (!takes || at->second.get<CtxQpDb::number>() != object) {
        verdict = 2;
      } else if (at->second.get<CtxQpDb::fn>() != item.fn ||
                 at->second.get<CtxQpDb::page>() != item.page) {
        verdict = 3;
      } else if (std::uint64_t{index} >> width != 0) {
        verdict = 4;
      } else {
        static const std::map<DoorbellKind, unsigned> kinds = {
            {DoorbellKind::SQ, 0},          {DoorbellKind::RQ, 1},     {DoorbellKind::SRQ, 2},
            {DoorbellKind::CQ_CONSUMED, 3}, {DoorbellKind::CQ_ARM, 4},
            {DoorbellKind::EQ_CONSUMED_ARM, 5}};
        pkg::doorbell_t out{};
        out.kind = static_cast<decltype(out.kind)>(kinds.at(static_cast<DoorbellKind>(kind)));
        out.object_index =
            static_cast<std::uint16_t>(object & ((1u << kTables[table].bits) - 1));
        out.solicited_only = bell.get<Doorbell::solicited_only>();
        out.keep_consumed = bell.get<Doorbell::keep_consumed>();
        out.index = index;
        expected.push_back(out);
      }
    }
    ++expected_counts[verdict];
    if (verdict != 0) expected_errors.push_back(static_cast<unsigned>(item.fn));
  }

  void tick() {
    if (dut->doorbell_valid_o) {
      REQUIRE_FALSE(expected.empty());
      REQUIRE(pkg::doorbell_t::unpack(dut->doorbell_o) == expected.front());
      expected.pop_front();
    }
    if (dut->error_valid_o) {
      REQUIRE_FALSE(expected_errors.empty());
      REQUIRE(dut->error_fn_o == expected_errors.front());
      expected_errors.pop_front();
    }
    const auto count = roci::sv::roci_count_pkg::doorbell_counters_t::unpack(dut->count_o);
    counts[0] += count.doorbells;
    counts[1] += count.doorbell_error_kind;
    counts[2] += count.doorbell_error_object;
    counts[3] += count.doorbell_error_page;
    counts[4] += count.doorbell_error_index;
    dut.tick();
  }

  std::uint64_t access(bool write, int table, unsigned index, std::uint64_t data) {
    return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { tick(); },
        static_cast<unsigned>(kTables[table].column), write, index, 0, data, 300);
  }

  CtxQpDb random_row(int table, unsigned index) {
    CtxQpDb row{};
    const unsigned bits = kTables[table].bits;
    row.set<CtxQpDb::number>(
        static_cast<std::uint32_t>(index | (random.below(3) << bits)) & 0xffffffu);
    row.set<CtxQpDb::page>(static_cast<std::uint8_t>(random.below(2) * 9));
    row.set<CtxQpDb::takes_send>(random.chance(0.8));
    row.set<CtxQpDb::takes_receive>(table == 0 && random.chance(0.6));
    row.set<CtxQpDb::fn>(static_cast<std::uint8_t>(random.below(2) * (kFns - 1)));
    return row;
  }

  /// Mostly a good doorbell for a row that exists, with one thing wrong now and then.
  cpu::bar_doorbell_t random_ring() {
    static const std::vector<unsigned> kinds = {1, 2, 3, 4, 5, 6};
    const unsigned kind = random.chance(0.05) ? static_cast<unsigned>(random.below(16))
                                              : random.pick(kinds);
    const int table = table_of(kind) < 0 ? 0 : table_of(kind);
    const unsigned bits = kTables[table].bits;
    auto index = static_cast<unsigned>(random.below(8));
    if (random.chance(0.1)) index = static_cast<unsigned>(random.below(1u << bits));
    CtxQpDb row = random_row(table, index);
    const auto at = rows.find({table, index});
    if (at != rows.end() && random.chance(0.9)) row = at->second;
    Doorbell bell{};
    bell.set<Doorbell::kind>(static_cast<DoorbellKind>(kind));
    std::uint32_t number = row.get<CtxQpDb::number>();
    if (random.chance(0.05)) number ^= 1u << random.below(24);
    bell.set<Doorbell::object>(number);
    const unsigned width = table == 1 || table == 2 ? 24 : 16;
    bell.set<Doorbell::index>(static_cast<std::uint32_t>(
        random.chance(0.1) ? random.bits(32) : random.bits(width)));
    bell.set<Doorbell::solicited_only>(random.chance(0.5));
    bell.set<Doorbell::keep_consumed>(random.chance(0.5));
    cpu::bar_doorbell_t item{};
    item.fn = row.get<CtxQpDb::fn>();
    item.page = row.get<CtxQpDb::page>();
    if (random.chance(0.05)) item.fn = static_cast<std::uint8_t>(random.below(kFns));
    if (random.chance(0.05)) item.page = static_cast<std::uint8_t>(random.below(16));
    item.data = bell.to_word();
    return item;
  }
};

}  // namespace

TEST_CASE("good doorbells reach the queues, bad ones are counted") {
  Random random;
  for (int round = 0; round < 6; ++round) {
    Bench bench(random());
    bench.ring.stall(Stall::any(random));
    for (std::size_t step = 0; step < scaled(120); ++step) {
      // Rows change while no doorbell is between its read and its verdict: what a doorbell meets is
      // then known.
      const auto table = static_cast<int>(random.below(4));
      auto index = static_cast<unsigned>(random.below(8));
      if (random.chance(0.1)) {
        index = static_cast<unsigned>(random.below(1u << kTables[table].bits));
      }
      if (random.chance(0.3)) {
        const auto at = bench.rows.find({table, index});
        const std::uint64_t want = at == bench.rows.end() ? 0 : at->second.to_word();
        for (int n = 0; n < 5; ++n) bench.ring.push(bench.random_ring());
        REQUIRE(bench.access(false, table, index, 0) == want);    // beside traffic
      } else {
        const CtxQpDb row = bench.random_row(table, index);
        bench.access(true, table, index, row.to_word());
        bench.rows[{table, index}] = row;
      }
      for (int n = 0; n < 40; ++n) bench.ring.push(bench.random_ring());
      for (int guard = 0; !bench.ring.empty(); ++guard) {
        REQUIRE(guard < 100000);
        bench.tick();
      }
    }
    for (int n = 0; n < 5; ++n) bench.tick();
    REQUIRE(bench.expected.empty());
    REQUIRE(bench.expected_errors.empty());
    for (int n = 0; n < 5; ++n) {
      INFO("counter " << n);
      REQUIRE(bench.counts[n] == bench.expected_counts[n]);
      REQUIRE(bench.counts[n] > 0);
    }
  }
}

TEST_CASE("one doorbell per cycle") {
  Random random;
  Bench bench(random());
  for (int n = 0; n < 1000; ++n) bench.ring.push(bench.random_ring());
  bench.tick();
  const std::uint64_t start = bench.dut.cycle();
  while (!bench.ring.empty()) bench.tick();
  REQUIRE(bench.dut.cycle() - start <= 1000);
}
