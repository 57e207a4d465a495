// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_cq_writer together with host_dma_write and a host that polls: both sources of completions,
// every CQE found by its phase bit in order and exactly once, events after the CQE is in memory,
// bus errors, overflow, fence, no standstill; one CQE per cycle (wide).
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <set>

#include "../host/axi_write_model.hpp"
#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace hwif = roci::sv::roci_hwif_pkg;
using Memory = AxiWriteModel<DUT_CLASS>;

constexpr unsigned index_mask = 0xffffff;

/// A CQ as the host sees it.
struct Ring {
  unsigned number = 0, log2 = 4, fn = 0, consumed = 0, rung = 0;
  std::uint64_t page = 0;
  bool armed = false;
  std::deque<std::uint32_t> cookies[2];  // what must come, per source
};

struct Bench {
  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt), memory(dut.top(), salt + 1),
        req("req", dut->req_valid_i, dut->req_ready_o, dut->req_i),
        data("data", dut->data_valid_i, dut->data_ready_o, dut->data_i),
        sq("sq", dut->sq_valid_i, dut->sq_ready_o, dut->sq_i),
        event("event", dut->event_valid_o, dut->event_ready_i, dut->event_o),
        error("error", dut->error_valid_o, dut->error_ready_i, dut->error_o) {
    event.collect();
    error.collect();
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    dut->doorbell_valid_i = 0;
    dut->colour_i = 0;
    dut->axi_bvalid_i = 0;
    dut->clock_i = 0;
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 5000);
    dut.attach(memory);
    dut.attach(req);
    dut.attach(data);
    dut.attach(sq);
    dut.attach(event);
    dut.attach(error);
    dut.tick(2500);
  }

  std::uint64_t context(unsigned index, unsigned word, std::optional<std::uint64_t> write) {
    return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { dut.tick(); },
        hwif::CTX_COLUMN_CQ, write.has_value(), index, word, write.value_or(0), 60);
  }

  void create(unsigned number, unsigned log2) {
    Ring& r = rings[number];
    r = Ring();
    r.number = number;
    r.log2 = log2;
    r.fn = number % 4;
    r.page = 0x1000 + 0x100 * number;
    context(number, 0, r.page << 12 | log2);
    context(number, 1, (0xab0000u + number) | 1u << 24 | std::uint64_t{r.fn} << 32 |
                           std::uint64_t{number % 8} << 48);
  }

  pkg::completion_t completion(unsigned cq, unsigned side) {
    auto c = random_payload<pkg::completion_t>(random);
    c.cq = static_cast<decltype(c.cq)>(cq);
    c.wqe_index_or_cookie = next_cookie++ << 1 | side;
    c.status = 0;
    c.is_error = false;
    rings[cq].cookies[side].push_back(c.wqe_index_or_cookie);
    return c;
  }

  /// A receive: payload write (maybe) and its completion token.
  void receive(unsigned cq, unsigned qp, bool payload, unsigned colour = 0) {
    pkg::dma_write_req_t r{};
    r.is_token = !payload;
    r.has_token = payload;
    r.qp = static_cast<decltype(r.qp)>(qp);
    r.length = 8;
    r.addr = 0x9000'0000 + 8 * (next_cookie % 0x10000);
    r.token.kind = pkg::TOKEN_COMPLETION;
    r.token.qp = r.qp;
    r.token.colour = colour != 0;
    roci::sv::Words<pkg::completion_t::width_bits> words{};
    completion(cq, 0).to_bits(words.data(), 0);
    for (std::size_t n = 0; n < words.size(); ++n) r.token.body[n] = words[n];
    req.push(r);
    if (payload) {
      pkg::write_beat_t beat{};
      beat.last = true;
      beat.strobe = decltype(beat.strobe){0xff} << (r.addr % data_bytes);
      data.push(beat);
    }
  }

  void send(unsigned cq, unsigned qp, unsigned colour = 0) {
    pkg::sq_completion_t s{};
    s.colour = colour != 0;
    s.qp = static_cast<decltype(s.qp)>(qp);
    s.completion = completion(cq, 1);
    sq.push(s);
  }

  void doorbell(unsigned cq, unsigned index, bool arm, bool keep_consumed = false) {
    pkg::doorbell_t d{};
    d.kind = arm ? pkg::DOORBELL_CQ_ARM : pkg::DOORBELL_CQ_CONSUMED;
    d.object_index = static_cast<std::uint16_t>(cq);
    d.index = index;
    d.keep_consumed = keep_consumed;
    d.pack(dut->doorbell_i);
    dut->doorbell_valid_i = 1;
    dut.tick();
    dut->doorbell_valid_i = 0;
  }

  std::optional<hwif::cqe_t> peek(Ring& r) {
    const unsigned slot = r.consumed & ((1u << r.log2) - 1);
    const std::uint64_t at = (r.page << 12) + 32 * slot;
    std::uint32_t words[8] = {};
    for (unsigned n = 0; n < 32; ++n) {
      const auto it = memory.memory().find({r.fn, at + n});
      if (it == memory.memory().end()) return std::nullopt;
      words[n / 4] |= std::uint32_t{it->second} << (8 * (n % 4));
    }
    const auto cqe = hwif::cqe_t::from_bits(words, 0);
    if (cqe.phase != ((r.consumed >> r.log2) % 2 == 0)) return std::nullopt;
    return cqe;
  }

  /// The host polls one CQ; checks the entry against its source's order.
  bool poll(unsigned cq) {
    Ring& r = rings[cq];
    const auto cqe = peek(r);
    if (!cqe) return false;
    const unsigned side = cqe->wqe_index_or_cookie & 1;
    REQUIRE(!r.cookies[side].empty());
    REQUIRE(cqe->wqe_index_or_cookie == r.cookies[side].front());
    last_status = cqe->status;
    r.cookies[side].pop_front();
    r.consumed = (r.consumed + 1) & index_mask;
    ++polled;
    return true;
  }

  Dut<DUT_CLASS> dut;
  Random random;
  Memory memory;
  Source<pkg::dma_write_req_t> req;
  Source<pkg::write_beat_t> data;
  Source<pkg::sq_completion_t> sq;
  Sink<pkg::event_t> event;
  Sink<pkg::state_error_t> error;
  std::map<unsigned, Ring> rings;
  std::uint32_t next_cookie = 0;
  std::uint64_t polled = 0;
  unsigned last_status = 0;
};
}  // namespace

TEST_CASE("a host that polls and sleeps sees every completion once, in order") {
  Random random;
  for (int round = 0; round < 6; ++round) {
    Bench bench(random());
    bench.memory.latency(static_cast<unsigned>(random.between(1, 120)));
    bench.memory.stall(Stall::any(random), Stall::any(random), Stall::any(random));
    bench.req.stall(Stall::any(random));
    bench.sq.stall(Stall::any(random));
    bench.event.stall(Stall::any(random));
    const unsigned cqs = 5;
    for (unsigned n = 0; n < cqs; ++n) {
      bench.create(n, static_cast<unsigned>(random.between(6, 8)));
    }
    std::size_t left = scaled(3000), made = 0;
    std::map<unsigned, bool> sleeping;
    std::uint64_t wakes = 0, count = 0;
    for (std::uint64_t cycle = 0; left != 0 || bench.polled != made; ++cycle) {
      REQUIRE(cycle < 1000000);
      const auto n = static_cast<unsigned>(random.below(cqs));
      Ring& r = bench.rings[n];
      // As many outstanding as the requested depth, half of the ring.
      const auto outstanding = r.cookies[0].size() + r.cookies[1].size();
      if (left != 0 && outstanding < 1u << (r.log2 - 1) && random.chance(0.5)) {
        if (random.chance(0.5)) bench.receive(n, n, random.chance(0.5));
        else bench.send(n, n);
        --left;
        ++made;
      }
      if (!sleeping[n] && !bench.poll(n)) {
        if (random.chance(0.2)) {
          // Nothing there: arm and sleep until the event. An entry that came meanwhile fires at
          // once.
          bench.doorbell(n, r.consumed, true);
          r.rung = r.consumed;
          sleeping[n] = true;
          ++count;
        }
      } else if (((r.consumed - r.rung) & index_mask) >= (1u << r.log2) / 4) {
        bench.doorbell(n, r.consumed, false);
        r.rung = r.consumed;
      }
      for (const auto& e : bench.event.received()) {
        REQUIRE(e.event_type == hwif::EQE_TYPE_COMPLETION);
        const unsigned which = e.object - 0xab0000;
        REQUIRE(sleeping[which]);
        sleeping[which] = false;
        ++wakes;
        REQUIRE(bench.peek(bench.rings[which]));  // the entry is in memory before its event
      }
      bench.event.received().clear();
      bench.dut->clock_i = cycle;
      bench.dut.tick();
    }
    CHECK(wakes > 10);
    bench.dut.tick(300);
    CHECK(bench.dut->fence_busy_o == 0);
    CHECK(bench.error.received().empty());
    for (unsigned n = 0; n < cqs; ++n) {
      const auto word2 = bench.context(n, 2, std::nullopt);
      CHECK((word2 & index_mask) == bench.rings[n].consumed);
      CHECK((word2 >> 24 & 1) == 0);
      CHECK((bench.context(n, 3, std::nullopt) & index_mask) == bench.rings[n].consumed);
      CHECK(bench.context(n, 0, std::nullopt) == (bench.rings[n].page << 12 | bench.rings[n].log2));
    }
  }
}

TEST_CASE("bus errors: of the payload in the status, of the CQE as a CQ error") {
  Bench bench(2);
  bench.create(1, 6);
  bench.create(2, 6);
  bool payload_bad = true;
  const std::uint64_t ring2 = bench.rings[2].page << 12;
  bench.memory.errors([&](unsigned fn, std::uint64_t addr) {
    return payload_bad ? addr >= 0x9000'0000 : fn == 2 && addr / 64 == ring2 / 64;
  });
  bench.receive(1, 7, true);
  bench.receive(1, 8, false);  // another QP
  bench.dut.tick(200);
  REQUIRE(bench.poll(1));
  CHECK(bench.last_status == hwif::CQE_STATUS_LOC_QP_OP_ERR);
  REQUIRE(bench.poll(1));
  CHECK(bench.last_status == hwif::CQE_STATUS_SUCCESS);
  REQUIRE(bench.error.received().size() == 1);
  CHECK(bench.error.received()[0].qp == 7);
  payload_bad = false;
  bench.send(2, 9);
  bench.dut.tick(200);
  bench.send(2, 10);
  bench.dut.tick(200);
  CHECK(!bench.poll(2));
  REQUIRE(bench.event.received().size() == 1);
  CHECK(bench.event.received()[0].event_type == hwif::EQE_TYPE_CQ_ERROR);
  CHECK(bench.event.received()[0].cause == hwif::VENDOR_STATUS_CQ_WRITE_BUS);
  CHECK(bench.error.received().size() == 3);
}

TEST_CASE("overflow: nothing overwritten, one event, the QPs, others go on") {
  Bench bench(3);
  bench.create(1, 4);
  bench.create(2, 6);
  std::uint64_t cqes = 0, overflows = 0;
  for (unsigned n = 0; n < 20; ++n) {
    bench.receive(1, 20 + n, true);
    bench.send(2, 50);
  }
  for (int n = 0; n < 3000; ++n) {
    cqes += bench.dut->count_cqe_o;
    overflows += bench.dut->count_overflow_o;
    bench.dut.tick();
  }
  CHECK(cqes == 16 + 20);
  CHECK(overflows == 1);
  for (int n = 0; n < 16; ++n) REQUIRE(bench.poll(1));
  for (int n = 0; n < 20; ++n) REQUIRE(bench.poll(2));
  REQUIRE(bench.event.received().size() == 1);
  CHECK(bench.event.received()[0].cause == hwif::VENDOR_STATUS_CQ_OVERFLOW);
  std::set<unsigned> qps;
  for (const auto& e : bench.error.received()) qps.insert(e.qp);
  CHECK(qps == std::set<unsigned>{36, 37, 38, 39});
}

TEST_CASE("armed behind unpolled entries: one event for the next one, nothing is overwritten") {
  Bench bench(6);
  bench.create(1, 4);
  for (unsigned n = 0; n < 10; ++n) bench.send(1, 50);
  bench.dut.tick(400);
  bench.doorbell(1, 10, true, true);
  bench.dut.tick(100);
  CHECK(bench.event.received().empty());
  CHECK((bench.context(1, 2, std::nullopt) >> 32 & index_mask) == 0);  // consumed
  bench.send(1, 50);
  bench.dut.tick(400);
  REQUIRE(bench.event.received().size() == 1);
  CHECK(bench.event.received()[0].event_type == hwif::EQE_TYPE_COMPLETION);
  for (unsigned n = 0; n < 6; ++n) bench.send(1, 50);  // one more than there is room for
  bench.dut.tick(400);
  REQUIRE(bench.event.received().size() == 2);
  CHECK(bench.event.received()[1].cause == hwif::VENDOR_STATUS_CQ_OVERFLOW);
  for (int n = 0; n < 16; ++n) REQUIRE(bench.poll(1));
  CHECK(!bench.poll(1));
}

TEST_CASE("events, errors and the bus all stand: tokens still drain, and a fence waits for CQEs") {
  Bench bench(4);
  bench.create(1, 10);
  bench.event.stall(Stall(1.0));
  bench.error.stall(Stall(1.0));
  bench.doorbell(1, 0, true);
  for (unsigned n = 0; n < 600; ++n) {
    if (n % 2) bench.receive(1, n % 8, true);
    else bench.send(1, n % 8);
  }
  bench.dut.tick(50);
  CHECK((bench.dut->fence_busy_o & 1) == 1);
  bench.dut->colour_i = 1;
  bench.dut.run_until([&] { return bench.poll(1), bench.polled == 600; }, "polled", 20000);
  bench.dut.tick(400);
  CHECK(bench.dut->fence_busy_o == 1);  // the event that waits
  bench.event.stall(Stall(0.0));
  bench.dut.tick(10);
  CHECK(bench.dut->fence_busy_o == 0);
}

TEST_CASE("rate") {
  Bench bench(5);
  bench.memory.latency(100);
  bench.create(1, 16);
  for (unsigned n = 0; n < 3000; ++n) bench.send(1, 1);
  bench.dut.tick(500);
  std::uint64_t cqes = 0;
  for (int n = 0; n < 1000; ++n) {
    cqes += bench.dut->count_cqe_o;
    bench.dut.tick();
  }
  INFO("CQEs in 1000 cycles: " << cqes);
  // 128 or 32 writes outstanding at 100 cycles of response bound it: 1 per cycle, 32 per ~113
  // cycles.
  CHECK(cqes >= (ROCI_CONFIG_WIDE ? 950 : 200));
}
