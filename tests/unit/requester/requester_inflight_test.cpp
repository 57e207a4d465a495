// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_inflight: records of all QPs against a map; the two indices against their definitions,
// also when an epoch is told while records come and when its number comes again; a push for exactly
// the records that no acknowledge event announces; one record per cycle.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <map>

#include "requester/requester_bench.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace req = roci::sv::requester_pkg;

namespace {

struct Qp {
  unsigned base = 0;
  unsigned next = 0;         // index of the next WQE in this epoch
  unsigned horizon = 0;
  unsigned landed = 0;
  unsigned epoch = 0;
  unsigned written = 0;      // epoch of the last record, or told since
};

struct Bench {
  Dut<DUT_CLASS> dut;
  Source<pkg::inflight_write_t> inflight;
  Sink<Bits<pkg::qp_t_bits>> push;
  std::map<unsigned, pkg::inflight_write_t> records;      // by slot
  std::map<unsigned, Qp> qps;

  explicit Bench(std::uint64_t salt)
      : dut(salt),
        inflight("inflight", dut->inflight_valid_i, dut->inflight_ready_o, dut->inflight_i),
        push("push", dut->push_valid_o, dut->push_ready_i, dut->push_qp_o) {
    dut->init_valid_i = 0;
    pkg::epoch_bcast_t{}.pack(dut->epoch_i);
    dut.reset();
    dut.attach(inflight);
    dut.attach(push);
  }

  void init(unsigned qp) {
    dut->init_valid_i = 1;
    set(dut->init_qp_i, qp);
    dut.eval();
    dut.run_until([&] { return dut->init_ready_o != 0; }, "start");
    dut.tick();
    dut->init_valid_i = 0;
    qps[qp] = Qp{};
    qps[qp].base = (qp % 4) * 8;
  }

  // A new epoch of the QP that begins at its next WQE; nothing of it has landed.
  void rewind(Random& random, unsigned number) {
    Qp& qp = qps[number];
    auto e = random_payload<pkg::epoch_bcast_t>(random);
    e.valid = true;
    e.qp = static_cast<decltype(e.qp)>(number);
    e.epoch = static_cast<std::uint8_t>(qp.epoch);
    e.point.wqe_index = static_cast<std::uint16_t>(qp.next);
    e.pack(dut->epoch_i);
    dut.tick();
    e.valid = false;
    e.pack(dut->epoch_i);
    qp.written = qp.epoch;
    qp.landed = qp.next;
  }

  void write(Random& random, unsigned number) {
    Qp& qp = qps[number];
    auto w = random_payload<pkg::inflight_write_t>(random);
    w.qp = static_cast<decltype(w.qp)>(number);
    w.record.kind = static_cast<pkg::inflight_kind_e>(random.below(6));
    w.record.blocks = static_cast<std::uint8_t>(random.between(1, 8));
    w.record.wc_opcode = static_cast<std::uint8_t>(random.below(32));
    w.wqe_index = static_cast<std::uint16_t>(qp.next);
    w.epoch = static_cast<std::uint8_t>(qp.epoch);
    w.slot = static_cast<decltype(w.slot)>(qp.base + qp.next % 8);
    inflight.push(w);
    const unsigned end = (qp.next + w.record.blocks) & 0xffff;
    if (qp.next == qp.horizon) qp.horizon = end;
    qp.landed = end;
    qp.written = qp.epoch;
    qp.next = end;
    records[w.slot] = w;
    if (w.record.kind == pkg::INFLIGHT_NOP || w.record.kind == pkg::INFLIGHT_LOCAL ||
        w.record.kind == pkg::INFLIGHT_FLUSH) {
      push.expect(Bits<pkg::qp_t_bits>(number));
    }
  }

  void check() {
    dut.run_until([&] { return inflight.empty() && push.done(); }, "all records written");
    dut.tick(3);
    for (const auto& [slot, w] : records) {
      set(dut->walk_slot_i, slot);
      dut.tick();
      const auto got = req::ack_record_t::unpack(dut->walk_record_o);
      CHECK(got.kind == w.record.kind);
      CHECK(got.signaled == w.record.signaled);
      CHECK((got.blocks == 0 ? 8 : got.blocks) == w.record.blocks);
      CHECK(got.wc_opcode == w.record.wc_opcode);
      CHECK(got.byte_len == w.record.byte_len);
      CHECK(got.last_psn == w.record.last_psn);
    }
    for (const auto& [number, qp] : qps) {
      set(dut->walk_qp_i, number);
      dut.tick();
      const auto got = req::ack_horizon_t::unpack(dut->walk_horizon_o);
      CHECK(got.horizon == qp.horizon);
      CHECK(got.landed == qp.landed);
      CHECK(got.epoch == qp.written);
    }
  }
};

}  // namespace

TEST_CASE("records and indices are those of the writes, refetches and gaps included") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Bench bench(random());
    bench.inflight.stall(Stall::any(random));
    bench.push.stall(Stall::any(random));
    for (unsigned qp = 0; qp < 4; ++qp) bench.init(qp);
    for (std::size_t n = 0; n < scaled(500); ++n) {
      const auto number = static_cast<unsigned>(random.below(4));
      Qp& qp = bench.qps[number];
      bench.write(random, number);
      if (random.chance(0.1)) {            // a rewind: some records come again
        bench.dut.run_until([&] { return bench.inflight.empty(); }, "written");
        qp.epoch = (qp.epoch + 1) & 0xff;
        if (random.chance(0.5)) qp.next = qp.horizon;
        if (random.chance(0.5)) bench.write(random, (number + 1) % 4);
        bench.rewind(random, number);
        if (random.chance(0.2)) {          // a record of the epoch before is late
          const unsigned next = qp.next;
          qp.epoch = (qp.epoch - 1) & 0xff;
          bench.write(random, number);
          qp.epoch = (qp.epoch + 1) & 0xff;
          qp.next = next;
        }
      }
      if (random.chance(0.02)) qp.next = (qp.next + 3) & 0xffff;   // given up half sent
      if (random.chance(0.01)) {
        bench.dut.run_until([&] { return bench.inflight.empty(); }, "written");
        bench.init(number);
      }
      if (random.chance(0.05)) bench.check();
    }
    bench.check();
  }
}

// Epochs that end without a record: their number comes again after 256 of them.
TEST_CASE("nothing has landed of an epoch whose number comes again") {
  Random random;
  Bench bench(random());
  bench.push.stall(Stall::any(random));
  for (unsigned qp = 0; qp < 4; ++qp) bench.init(qp);
  for (unsigned qp = 0; qp < 3; ++qp) bench.write(random, qp);
  bench.check();
  for (unsigned number = 0; number < 3; ++number) {
    Qp& qp = bench.qps[number];
    for (unsigned n = 0; n < 255; ++n) {
      qp.epoch = (qp.epoch + 1) & 0xff;
      bench.rewind(random, number);
    }
    qp.epoch = (qp.epoch + 1) & 0xff;
    qp.next = 0;
    bench.rewind(random, number);
  }
  bench.check();
}

TEST_CASE("one record per cycle") {
  Random random;
  Bench bench(1);
  bench.init(0);
  for (unsigned n = 0; n < 1000; ++n) {
    pkg::inflight_write_t w{};
    w.record.kind = pkg::INFLIGHT_SEND;
    w.record.blocks = 1;
    w.wqe_index = static_cast<std::uint16_t>(n);
    w.slot = n % 8;
    bench.inflight.push(w);
  }
  const auto start = bench.dut.cycle();
  bench.dut.run_until([&] { return bench.inflight.empty(); }, "records");
  CHECK(bench.dut.cycle() - start <= 1002);
}
