// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_read_pieces: the pieces of random responses against a byte-by-byte walk over the SGEs;
// packets without data; rates.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <vector>

#include "requester/requester_bench.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace req = roci::sv::requester_pkg;
namespace cfg = roci::sv::roci_config_pkg;

namespace {

struct Bench {
  Dut<DUT_CLASS> dut;
  Source<req::read_verdict_t> verdict;
  Sink<pkg::rx_item_t> item;

  explicit Bench(std::uint64_t salt)
      : dut(salt),
        verdict("verdict", dut->verdict_valid_i, dut->verdict_ready_o, dut->verdict_i),
        item("item", dut->item_valid_o, dut->item_ready_i, dut->item_o) {
    dut->record_write_i = 0;
    dut.reset();
    dut.attach(verdict);
    dut.attach(item);
  }

  void write(const pkg::read_record_write_t& record) {
    dut->record_write_i = 1;
    record.pack(dut->record_i);
    dut.tick();
    dut->record_write_i = 0;
  }

  /// Expects the items of `v`, found by walking the SGE list byte by byte.
  void expect(const req::read_verdict_t& v, const pkg::read_record_write_t& record) {
    pkg::rx_item_t t{};
    t.colour = v.colour;
    t.qp = v.qp;
    t.fn = v.fn;
    t.pd = v.pd;
    t.psn = v.psn;
    t.is_response = true;
    t.end_info.drop = v.drop;
    t.end_info.ack_event_valid = v.event_valid;
    t.end_info.ack_event = v.ack_event;
    if (!v.has_data) {
      t.last = true;
      item.expect(t);
      return;
    }
    t.has_piece = true;
    t.piece.access = pkg::ACCESS_LOCAL_WRITE;
    std::uint64_t skip = v.received;
    std::uint32_t left = v.length;
    for (unsigned n = 0; n < cfg::MAX_SGE_RD && left; ++n) {
      const auto& sge = record.sges[n];
      if (skip >= sge.length) {
        skip -= sge.length;
        continue;
      }
      const auto take =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(sge.length - skip, left));
      t.piece.key = sge.lkey;
      t.piece.va = sge.va + skip;
      t.piece.length = take;
      left -= take;
      t.last = left == 0;
      item.expect(t);
      skip = 0;
    }
    REQUIRE(left == 0);
  }
};

}  // namespace

TEST_CASE("pieces of responses at any place of any SGE list") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Bench bench(random());
    bench.verdict.stall(Stall::any(random));
    bench.item.stall(Stall::any(random));
    std::vector<pkg::read_record_write_t> records;
    for (unsigned slot = 0; slot < 8; ++slot) {
      auto record = random_payload<pkg::read_record_write_t>(random);
      record.slot = static_cast<decltype(record.slot)>(slot);
      record.length = 0;
      for (unsigned n = 0; n < cfg::MAX_SGE_RD; ++n) {
        static const std::uint64_t limits[] = {1, 3, 300, 5000, 100000};
        const auto length = static_cast<std::uint32_t>(random.below(limits[random.below(5)] + 1));
        record.sges[n].length = length;
        record.length += length;
      }
      if (record.length == 0) record.sges[0].length = record.length = 1;
      bench.write(record);
      records.push_back(record);
    }
    for (std::size_t n = 0; n < scaled(200); ++n) {
      auto v = random_payload<req::read_verdict_t>(random);
      const auto& record = records[random.below(records.size())];
      v.slot = record.slot;
      if (v.has_data) {
        v.received = static_cast<std::uint32_t>(random.below(record.length));
        v.length = static_cast<std::uint16_t>(
            random.between(1, std::min<std::uint64_t>(4096, record.length - v.received)));
      }
      bench.expect(v, record);
      bench.verdict.push(v);
    }
    bench.dut.run_until([&] { return bench.item.done(); }, "items");
    bench.dut.tick(5);
  }
}

TEST_CASE("a list that ends before the packet fails its READ") {
  Random random;
  Bench bench(random());
  bench.item.stall(Stall::any(random));
  for (std::size_t n = 0; n < scaled(200); ++n) {
    auto record = random_payload<pkg::read_record_write_t>(random);
    std::uint32_t sum = 0;
    for (unsigned k = 0; k < cfg::MAX_SGE_RD; ++k) {
      const auto length = static_cast<std::uint32_t>(random.chance(0.4) ? 0 : random.below(3000));
      record.sges[k].length = length;
      sum += length;
    }
    bench.write(record);
    auto v = random_payload<req::read_verdict_t>(random);
    v.slot = record.slot;
    v.has_data = true;
    v.received = static_cast<std::uint32_t>(random.below(sum + 2));
    const std::uint32_t there = v.received < sum ? sum - v.received : 0;
    if (there >= 4096) continue;
    v.length = static_cast<std::uint16_t>(random.between(there + 1, 4096));
    // what is there, then the end
    bench.item.collect();
    bench.verdict.push(v);
    bench.dut.run_until([&] {
      return !bench.item.received().empty() && bench.item.received().back().last;
    }, "the packet's end", 1000);
    std::uint32_t placed = 0;
    for (const auto& item : bench.item.received()) {
      if (!item.last) placed += item.piece.length;
    }
    const auto& last = bench.item.received().back();
    CAPTURE(sum, v.received, v.length);
    REQUIRE(placed == there);
    REQUIRE_FALSE(last.has_piece);
    REQUIRE(last.end_info.drop);
    REQUIRE(last.end_info.ack_event_valid);
    REQUIRE(last.end_info.ack_event.kind == pkg::ACK_EVENT_LOCAL_ERROR);
    REQUIRE(last.end_info.ack_event.syndrome ==
            static_cast<unsigned>(roci::hwif::CqeStatus::LOC_QP_OP_ERR));
    bench.item.received().clear();
  }
}

TEST_CASE("one cycle without data, two with one piece") {
  Bench bench(2);
  pkg::read_record_write_t record{};
  record.length = record.sges[0].length = 100000;
  bench.write(record);
  for (const bool data : {false, true}) {
    for (unsigned n = 0; n < 200; ++n) {
      req::read_verdict_t v{};
      v.has_data = data;
      v.length = 64;
      v.received = 64 * n;
      bench.expect(v, record);
      bench.verdict.push(v);
    }
    const auto start = bench.dut.cycle();
    bench.dut.run_until([&] { return bench.item.done(); }, "items");
    CHECK(bench.dut.cycle() - start <= (data ? 2 : 1) * 200 + 4);
  }
}
