// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_eq_writer with a model of the ordered writer and a host that sleeps: every event in its
// ring once, interrupts after the EQE is in memory and only when armed, overrun and its report,
// dropped events, fence; one event per cycle.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <memory>

#include "../host/data_word.hpp"
#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace hwif = roci::sv::roci_hwif_pkg;
namespace cpu = roci::sv::cpu_pkg;
using Event = pkg::event_t;

constexpr unsigned sources = 3;

struct Ring {
  unsigned log2 = 4, fn = 0, irq_vector = 0, consumed = 0;
  std::uint64_t page = 0;
};

struct Bench {
  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt), req("req", dut->req_valid_o, dut->req_ready_i, dut->req_o),
        data("data", dut->data_valid_o, dut->data_ready_i, dut->data_o),
        done("done", dut->done_valid_i, dut->done_ready_o, dut->done_i) {
    for (unsigned s = 0; s < sources; ++s) {
      event.push_back(std::make_unique<Source<Event>>("event" + std::to_string(s),
                                                      dut->event_valid_i[s], dut->event_ready_o[s],
                                                      dut->event_i[s]));
    }
    req.collect();
    data.collect();
    req.on_transfer([this](const pkg::dma_write_req_t& r) { requests.push_back(r); });
    data.on_transfer([this](const pkg::write_beat_t& b) { beats.push_back(b); });
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    dut->doorbell_valid_i = 0;
    dut->colour_i = 0;
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 200);
    for (auto& e : event) dut.attach(*e);
    dut.attach(req);
    dut.attach(data);
    dut.attach(done);
  }

  /// One cycle: writes complete after `latency` cycles, in order.
  void tick() {
    ++cycle;
    eqes += dut->count_eqe_o;
    overruns += dut->count_overrun_o;
    dut.tick();
    if (dut->raise_valid_o) raises.push_back(cpu::irq_raise_t::unpack(dut->raise_o));
    while (!requests.empty()) {
      const unsigned need = data_bytes >= 16 ? 1 : 16 / data_bytes;
      if (beats.size() < need) break;
      const auto r = requests.front();
      REQUIRE(r.length == 16);
      REQUIRE(r.has_token);
      REQUIRE(!r.is_token);
      REQUIRE(r.token.kind == pkg::TOKEN_EQE_DONE);
      unsigned bytes = 0;
      std::vector<std::pair<Place, std::uint8_t>> eqe;
      for (unsigned n = 0; n < need; ++n) {
        REQUIRE(beats[n].last == (n + 1 == need));
        for (unsigned lane = 0; lane < data_bytes; ++lane) {
          if (!((beats[n].strobe >> lane) & 1u)) continue;
          const std::uint64_t word = r.addr / data_bytes + n;
          const std::uint64_t at = word * data_bytes + lane;
          REQUIRE(at == r.addr + bytes);
          ++bytes;
          eqe.push_back({{r.fn, at}, get_byte(beats[n].data, lane)});
        }
      }
      REQUIRE(bytes == 16);
      beats.erase(beats.begin(), beats.begin() + need);
      requests.pop_front();
      waiting.push_back({cycle + latency, r.token, eqe});
    }
    while (!waiting.empty() && waiting.front().due <= cycle) {
      for (const auto& [place, byte] : waiting.front().bytes) memory[place] = byte;
      done.push(waiting.front().token);
      waiting.pop_front();
    }
  }
  void ticks(unsigned n) {
    while (n-- != 0) tick();
  }

  std::uint64_t context(unsigned column, unsigned index, unsigned word,
                        std::optional<std::uint64_t> write) {
    return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { tick(); }, column, write.has_value(), index, word, write.value_or(0), 60);
  }

  void create(unsigned eq, unsigned log2) {
    Ring& r = rings[eq];
    r = Ring();
    r.log2 = log2;
    r.fn = eq % 4;
    r.irq_vector = eq % 8;
    r.page = 0x2000 + 0x100 * eq;
    context(hwif::CTX_COLUMN_EQ, eq, 0, r.page << 12 | log2);
    context(hwif::CTX_COLUMN_EQ, eq, 1,
            1u << 24 | std::uint64_t{r.fn} << 32 | std::uint64_t{r.irq_vector} << 40);
  }

  void doorbell(unsigned eq, unsigned index) {
    pkg::doorbell_t d{};
    d.kind = pkg::DOORBELL_EQ_CONSUMED_ARM;
    d.object_index = static_cast<std::uint16_t>(eq);
    d.index = index;
    d.pack(dut->doorbell_i);
    dut->doorbell_valid_i = 1;
    tick();
    dut->doorbell_valid_i = 0;
  }

  Event make(unsigned eq) {
    auto e = random_payload<Event>(random);
    e.eq_valid = true;
    e.eq = static_cast<decltype(e.eq)>(eq);
    return e;
  }

  std::optional<hwif::eqe_t> poll(unsigned eq) {
    Ring& r = rings[eq];
    const std::uint64_t at = (r.page << 12) + 16 * (r.consumed & ((1u << r.log2) - 1));
    std::uint32_t words[4] = {};
    for (unsigned n = 0; n < 16; ++n) {
      const auto it = memory.find({r.fn, at + n});
      if (it == memory.end()) return std::nullopt;
      words[n / 4] |= std::uint32_t{it->second} << (8 * (n % 4));
    }
    const auto eqe = hwif::eqe_t::from_bits(words, 0);
    if (eqe.phase != ((r.consumed >> r.log2) % 2 == 0)) return std::nullopt;
    r.consumed = (r.consumed + 1) & 0xffffff;
    return eqe;
  }

  static void same(const hwif::eqe_t& got, const Event& e) {
    REQUIRE(got.type_code == e.event_type);
    REQUIRE(got.object == e.object);
    REQUIRE(got.cause == e.cause);
    REQUIRE(got.detail == e.data);
  }

  Dut<DUT_CLASS> dut;
  Random random;
  std::vector<std::unique_ptr<Source<Event>>> event;
  Sink<pkg::dma_write_req_t> req;
  Sink<pkg::write_beat_t> data;
  Source<pkg::token_t> done;
  using Place = std::pair<unsigned, std::uint64_t>;
  std::map<Place, std::uint8_t> memory;
  std::map<unsigned, Ring> rings;
  std::vector<cpu::irq_raise_t> raises;
  std::uint64_t cycle = 0, latency = 10, eqes = 0, overruns = 0;

 private:
  std::deque<pkg::dma_write_req_t> requests;
  std::deque<pkg::write_beat_t> beats;
  struct Write {
    std::uint64_t due;
    pkg::token_t token;
    std::vector<std::pair<Place, std::uint8_t>> bytes;
  };
  std::deque<Write> waiting;
};
}  // namespace

TEST_CASE("a sleeping host sees every event once, in the order of each source") {
  Random random;
  for (int round = 0; round < 6; ++round) {
    Bench bench(random());
    bench.latency = random.between(1, 100);
    for (auto& e : bench.event) e->stall(Stall::any(random));
    bench.req.stall(Stall::any(random));
    bench.data.stall(Stall::any(random));
    bench.done.stall(Stall::any(random));
    const unsigned eqs = 4;
    for (unsigned n = 0; n < eqs; ++n) bench.create(n, static_cast<unsigned>(random.between(4, 7)));
    // EQ 3 is the asynchronous one of function 2; function 1 has none.
    bench.context(hwif::CTX_COLUMN_FN, 2, 0, 1u << 16 | 3u);
    CHECK(bench.context(hwif::CTX_COLUMN_FN, 2, 0, std::nullopt) == (1u << 16 | 3u));
    CHECK(bench.context(hwif::CTX_COLUMN_FN, 1, 0, std::nullopt) == 0);
    std::deque<Event> expected[eqs][sources];
    unsigned outstanding[eqs] = {};
    bool sleeping[eqs] = {};
    std::size_t left = scaled(2000), seen = 0, made = 0, dropped = 0, interrupts = 0;
    for (std::uint64_t n = 0; left != 0 || seen != made; ++n) {
      REQUIRE(n < 400000);
      const auto q = static_cast<unsigned>(random.below(eqs));
      const auto s = static_cast<unsigned>(random.below(sources));
      if (left != 0 && outstanding[q] < 1u << bench.rings[q].log2 && random.chance(0.5)) {
        Event e = bench.make(q);
        if (q == 3) {
          e.eq_valid = false;
          e.eq = 0;
          e.fn = 2;
        }
        bench.event[s]->push(e);
        expected[q][s].push_back(e);
        ++outstanding[q];
        --left;
        ++made;
      } else if (random.chance(0.1)) {
        Event e = bench.make(0);
        e.eq_valid = random.chance(0.5);
        e.eq = 5;  // no such EQ
        e.fn = 1;  // nor an asynchronous one
        bench.event[s]->push(e);
        ++dropped;
      }
      // Rings when it has consumed all: arms. Sleeps until the interrupt.
      if (!sleeping[q]) {
        if (const auto eqe = bench.poll(q)) {
          bool found = false;
          for (auto& list : expected[q]) {
            if (!found && !list.empty() && list.front().object == eqe->object &&
                list.front().data == eqe->detail) {
              Bench::same(*eqe, list.front());
              list.pop_front();
              found = true;
            }
          }
          REQUIRE(found);
          ++seen;
          // Consumed counts for the ring only once it is rung: keep the model of room simple.
        } else if (random.chance(0.3)) {
          bench.doorbell(q, bench.rings[q].consumed);
          outstanding[q] = 0;
          for (auto& list : expected[q]) outstanding[q] += static_cast<unsigned>(list.size());
          sleeping[q] = true;
        }
      }
      bench.tick();
      for (const auto& r : bench.raises) {
        ++interrupts;
        unsigned which = eqs;
        for (unsigned k = 0; k < eqs; ++k) {
          if (bench.rings[k].irq_vector == r.irq_vector && bench.rings[k].fn == r.fn) which = k;
        }
        REQUIRE(which < eqs);
        REQUIRE(sleeping[which]);
        sleeping[which] = false;
        Ring saved = bench.rings[which];
        REQUIRE(bench.poll(which));  // something is there
        bench.rings[which] = saved;
      }
      bench.raises.clear();
    }
    CHECK(interrupts > 20);
    CHECK(dropped > 20);
    const auto idle = [&] {
      for (auto& e : bench.event) {
        if (!e->empty()) return false;
      }
      return bench.dut->fence_busy_o == 0;
    };
    for (int n = 0; !idle(); ++n) {
      REQUIRE(n < 30000);
      bench.tick();
    }
    bench.ticks(20);
    CHECK(bench.overruns == 0);
    CHECK(bench.eqes == made);
    CHECK(bench.dut->fence_busy_o == 0);
    for (unsigned q = 0; q < eqs; ++q) {
      const auto word2 = bench.context(hwif::CTX_COLUMN_EQ, q, 2, std::nullopt);
      CHECK((word2 & 0xffffff) == bench.rings[q].consumed);
      const auto word3 = bench.context(hwif::CTX_COLUMN_EQ, q, 3, std::nullopt);
      CHECK((word3 & 0xffffff) == bench.rings[q].consumed);
      CHECK(bench.context(hwif::CTX_COLUMN_EQ, q, 0, std::nullopt) ==
            (bench.rings[q].page << 12 | bench.rings[q].log2));
    }
  }
}

TEST_CASE("overrun: lost events are reported first, with or without a next event") {
  for (const bool next_event : {false, true}) {
    Bench bench(next_event);
    bench.create(1, 4);
    for (int n = 0; n < 20; ++n) bench.event[0]->push(bench.make(1));
    bench.ticks(100);
    CHECK(bench.eqes == 16);
    CHECK(bench.overruns == 1);
    CHECK((bench.context(hwif::CTX_COLUMN_EQ, 1, 2, std::nullopt) >> 24 & 1) == 1);
    for (int n = 0; n < 16; ++n) REQUIRE(bench.poll(1));
    CHECK(!bench.poll(1));
    bench.doorbell(1, 16);
    CHECK(bench.raises.empty());
    if (next_event) bench.event[1]->push(bench.make(1));
    bench.ticks(200);
    const auto report = bench.poll(1);
    REQUIRE(report);
    CHECK(report->type_code == hwif::EQE_TYPE_EQ_OVERRUN);
    CHECK(report->cause == hwif::VENDOR_STATUS_EQ_OVERRUN);
    CHECK(bench.raises.size() == 1);
    bench.raises.clear();
    const Event e = bench.make(1);
    bench.event[2]->push(e);
    bench.doorbell(1, 17);
    bench.ticks(60);
    auto eqe = bench.poll(1);
    if (next_event && eqe && !(eqe->object == e.object && eqe->detail == e.data)) {
      eqe = bench.poll(1);  // the event behind the report, unless it was what made the report
    }
    REQUIRE(eqe);
    Bench::same(*eqe, e);
    CHECK(bench.dut->fence_busy_o == 0);
  }
}

TEST_CASE("an event beside an access to another function's row finds its own queue") {
  for (const bool write : {false, true}) {
    for (unsigned offset = 0; offset < 16; ++offset) {
      INFO("write " << write << ", event " << offset << " cycles behind the access");
      Bench bench(5);
      bench.create(2, 5);
      bench.create(3, 5);
      bench.context(hwif::CTX_COLUMN_FN, 1, 0, 1u << 16 | 2u);
      bench.context(hwif::CTX_COLUMN_FN, 2, 0, 1u << 16 | 3u);
      Event event = bench.make(0);
      event.eq_valid = false;
      event.fn = 2;
      unsigned cycle = 0;
      const auto tick = [&] {
        if (cycle++ == offset) bench.event[0]->push(event);
        bench.tick();
      };
      context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(bench.dut, tick, hwif::CTX_COLUMN_FN, write, 1,
                                                     0, 1u << 16 | 2u, 60);
      while (cycle <= offset) tick();
      bench.ticks(40);
      const auto got = bench.poll(3);
      REQUIRE(got);
      Bench::same(*got, event);
      REQUIRE_FALSE(bench.poll(2));
    }
  }
}

TEST_CASE("arming: at once if unconsumed, else at the next, never twice; fence") {
  Bench bench(3);
  bench.create(6, 5);
  bench.event[0]->push(bench.make(6));
  bench.ticks(40);
  CHECK(bench.raises.empty());  // not armed
  bench.doorbell(6, 0);
  bench.ticks(10);
  REQUIRE(bench.raises.size() == 1);
  CHECK(bench.raises[0].fn == 2);
  CHECK(bench.raises[0].irq_vector == 6);
  bench.event[0]->push(bench.make(6));
  bench.ticks(40);
  CHECK(bench.raises.size() == 1);  // disarmed
  bench.doorbell(6, 2);
  bench.ticks(40);
  CHECK(bench.raises.size() == 1);
  bench.latency = 100;
  bench.event[0]->push(bench.make(6));
  bench.ticks(50);
  CHECK(bench.raises.size() == 1);  // not before the EQE is in memory
  CHECK(bench.dut->fence_busy_o == 1);
  bench.dut->colour_i = 1;
  bench.event[1]->push(bench.make(6));
  bench.ticks(10);
  CHECK(bench.dut->fence_busy_o == 3);
  bench.ticks(60);
  CHECK(bench.raises.size() == 2);
  CHECK(bench.dut->fence_busy_o == 2);
  bench.ticks(60);
  CHECK(bench.dut->fence_busy_o == 0);
}

TEST_CASE("rate: one event per cycle (wide), two beats each in narrow") {
  Bench bench(4);
  bench.create(0, 12);
  for (int n = 0; n < 1200; ++n) bench.event[static_cast<unsigned>(n) % 3]->push(bench.make(0));
  bench.ticks(50);
  const auto start = bench.eqes;
  bench.ticks(1000);
  CHECK(bench.eqes - start >= (ROCI_CONFIG_WIDE ? 995u : 495u));
}
