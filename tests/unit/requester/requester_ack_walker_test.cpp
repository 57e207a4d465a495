// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_ack_walker: visits of QPs in random situations against a model that takes the steps of
// the module's description one after the other; order and rates of visits; the row as the context
// bus sees it.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <array>
#include <deque>
#include <map>
#include <vector>

#include "requester/requester_bench.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace req = roci::sv::requester_pkg;
namespace hwif = roci::hwif;

namespace {

constexpr unsigned kSlots = 64;
constexpr unsigned kQuantum = 16;

bool index_before(unsigned a, unsigned b) { return ((a - b) & 0x8000) != 0; }
bool psn_before(std::uint32_t a, std::uint32_t b) { return psn_diff(a, b) < 0; }

// All that the walker can know of a QP.
struct Qp {
  unsigned base = 0;
  unsigned oldest = 0, reads = 0;
  std::uint32_t psn = 0;
  std::uint32_t seen = 0;
  bool progressed = true, locked = false, failing = false, flushing = false, flushed = false;
  bool drained = false, stop_told = false;
  unsigned status = 0, vendor = 0;
  pkg::qp_state_e state = pkg::QPS_RTS;
  req::ack_horizon_t horizon{};
  req::ack_events_t events{};
  req::ack_details_t details{};
  std::uint32_t next_psn = 0;
  unsigned epoch = 0, point = 0;
};

// What came out of a visit.
struct Outcome {
  std::vector<std::array<unsigned, 5>> completions;   // index, opcode, length, status, vendor
  std::vector<pkg::retry_request_t> requests;
  std::vector<req::ack_clear_t> clears;
  unsigned fails = 0, drains = 0, wakes = 0, requeues = 0;
  bool operator==(const Outcome&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Outcome& o) {
  out << "fails " << o.fails << " drains " << o.drains << " wakes " << o.wakes << " requeues "
      << o.requeues;
  for (const auto& c : o.completions) {
    out << "\n  completion " << c[0] << " op " << c[1] << " len " << c[2] << " status " << c[3]
        << "/" << c[4];
  }
  for (const auto& r : o.requests) out << "\n  " << r.to_string();
  for (const auto& c : o.clears) out << "\n  " << c.to_string();
  return out;
}

struct Bench : Agent {
  Dut<DUT_CLASS> dut;
  Source<Bits<pkg::qp_t_bits>> queue;
  Source<pkg::retry_result_t> result;
  Broadcast<pkg::state_bcast_t> state;
  Broadcast<pkg::epoch_bcast_t> epoch;
  std::array<req::ack_record_t, kSlots> records{};
  std::map<unsigned, Qp> qps;
  std::map<unsigned, Outcome> seen;
  std::map<unsigned, pkg::ack_state_t> told;
  std::vector<unsigned> order;                        // QPs of completions
  unsigned walk_qp = 0, walk_slot = 0;
  unsigned requeue_qp = 0;
  bool requeued = false;

  explicit Bench(std::uint64_t salt)
      : dut(salt),
        queue("queue", dut->queue_valid_i, dut->queue_ready_o, dut->queue_qp_i),
        result("result", dut->result_valid_i, dut->result_ready_o, dut->result_i),
        state("state", dut->state_i),
        epoch("epoch", dut->epoch_i) {
    dut->region_write_i = 0;
    dut->ctx_valid_i = 0;
    dut->room_i = 1;
    dut->requeue_ready_i = 1;
    dut->colour_i = 0;
    dut.reset();
    for (Agent* agent : std::initializer_list<Agent*>{&queue, &result, &state, &epoch, this}) {
      dut.attach(*agent);
    }
  }

  void sample() override {
    walk_qp = dut->walk_qp_o;
    walk_slot = dut->walk_slot_o;
    const auto t = pkg::ack_state_t::unpack(dut->ack_state_o);
    if (t.valid) told[t.qp] = t;
    if (dut->requeue_valid_o && dut->requeue_ready_i) {
      ++seen[dut->requeue_qp_o].requeues;
      requeue_qp = dut->requeue_qp_o;
      requeued = true;
    }
    if (!dut->action_valid_o) return;
    const auto a = req::ack_action_t::unpack(dut->action_o);
    Outcome& o = seen[a.qp];
    if (a.complete) {
      o.completions.push_back({a.wqe_index, a.wc_opcode, a.byte_len, a.status, a.vendor_status});
      order.push_back(a.qp);
    }
    if (a.request) o.requests.push_back(a.retry);
    if (a.clear) o.clears.push_back(a.cleared);
    o.fails += a.fail;
    o.drains += a.drained;
    o.wakes += a.wake;
  }
  void drive() override {
    const Qp& q = qps[walk_qp];
    records[walk_slot % kSlots].pack(dut->walk_record_i);
    q.horizon.pack(dut->walk_horizon_i);
    q.events.pack(dut->walk_events_i);
    q.details.pack(dut->walk_details_i);
    if (requeued) queue.push(Bits<pkg::qp_t_bits>(requeue_qp));
    requeued = false;
  }

  void context(unsigned qp, bool init) {
    dut->ctx_valid_i = 1;
    dut->ctx_init_i = init;
    set(dut->ctx_qp_i, qp);
    set(dut->ctx_psn_i, qps[qp].psn);
    dut.eval();
    dut.run_until([&] { return dut->ctx_done_o != 0; }, "context access", 2000);
  }
  roci::sv::roci_hwif_pkg::ctx_qp_ack_t row(unsigned qp) {
    context(qp, false);
    const auto r = roci::sv::roci_hwif_pkg::ctx_qp_ack_t::unpack(dut->ctx_row_o);
    dut.tick();
    dut->ctx_valid_i = 0;
    dut.tick(2);
    return r;
  }

  void start(unsigned qp, std::uint32_t psn) {
    Qp q;
    q.base = (qp % 4) * 16;
    q.psn = q.seen = q.next_psn = psn;
    q.events.acked_psn = psn;
    qps[qp] = q;
    dut->region_write_i = 1;
    set(dut->ctx_qp_i, qp);
    set(dut->ctx_base_i, q.base);
    set(dut->ctx_log2_i, 4);
    dut.tick();
    dut->region_write_i = 0;
    context(qp, true);
    dut.tick();
    dut->ctx_valid_i = 0;
    set_state(qp, pkg::QPS_RTS);
    set_point(qp, 0, 0);
    dut.tick(4);
    CHECK(told[qp].acked_psn == psn);
    CHECK(told[qp].oldest_index == 0);
    CHECK(told[qp].reads_done == 0);
  }
  void set_state(unsigned qp, pkg::qp_state_e s) {
    qps[qp].state = s;
    pkg::state_bcast_t b{};
    b.qp = static_cast<decltype(b.qp)>(qp);
    b.state = s;
    state.push(b);
    dut.tick(3);
  }
  void set_point(unsigned qp, unsigned number, unsigned index) {
    qps[qp].epoch = number;
    qps[qp].point = index;
    pkg::epoch_bcast_t b{};
    b.qp = static_cast<decltype(b.qp)>(qp);
    b.epoch = static_cast<std::uint8_t>(number);
    b.point.wqe_index = static_cast<std::uint16_t>(index);
    epoch.push(b);
    dut.tick(3);
  }
  void visit(unsigned qp) { queue.push(Bits<pkg::qp_t_bits>(qp)); }

  req::ack_record_t& record(const Qp& q, unsigned index) { return records[q.base + index % 16]; }

  /// One visit as the description has it. `q` becomes the QP after it.
  Outcome model(unsigned number, Qp& q, const pkg::retry_result_t* answer) {
    Outcome o;
    const bool error = q.state == pkg::QPS_ERR || q.state == pkg::QPS_SQE;
    const bool live = error || q.state == pkg::QPS_RTS || q.state == pkg::QPS_SQD;
    if (!live) return o;
    const auto& e = q.events;
    bool moved = false;
    const auto request = [&](pkg::retry_cause_e cause, const Qp& at) {
      pkg::retry_request_t r{};
      r.cause = cause;
      r.progressed = q.progressed || e.acked_psn != q.seen;
      r.rnr_code = q.details.rnr_code;
      r.qp = static_cast<decltype(r.qp)>(number);
      r.point.wqe_index = static_cast<std::uint16_t>(at.oldest);
      r.point.first_psn = at.psn;
      r.point.resume_psn = e.acked_psn;
      r.point.read_ordinal = static_cast<std::uint8_t>(at.reads);
      o.requests.push_back(r);
      q.locked = true;
    };
    const auto clear = [&](bool failure, bool restart = false) {
      req::ack_clear_t c{};
      c.qp = static_cast<decltype(c.qp)>(number);
      c.acked_psn = e.acked_psn;
      c.pending = e.pending;
      c.failure = failure;
      c.restart = restart;
      o.clears.push_back(c);
    };
    const auto done = [&](const Qp& at) {
      const auto& r = record(q, at.oldest);
      if (!index_before(at.oldest, q.horizon.horizon) || q.failing || q.flushing) return false;
      if (r.kind == pkg::INFLIGHT_NOP || r.kind == pkg::INFLIGHT_LOCAL) return true;
      if (r.kind == pkg::INFLIGHT_FLUSH) return !error;
      return psn_before(r.last_psn, e.acked_psn);
    };
    const auto landed = [&](const Qp& at) {
      return index_before(at.oldest, q.point) ||
             (q.horizon.epoch == q.epoch && index_before(at.oldest, q.horizon.landed));
    };
    const auto pop = [&](Qp& at) {
      const auto& r = record(q, at.oldest);
      at.oldest = (at.oldest + (r.blocks ? r.blocks : 8)) & 0xffff;
      if (r.kind == pkg::INFLIGHT_SEND || r.kind == pkg::INFLIGHT_READ ||
          r.kind == pkg::INFLIGHT_ATOMIC) {
        at.psn = psn_add(r.last_psn, 1);
      }
      if (r.kind == pkg::INFLIGHT_READ || r.kind == pkg::INFLIGHT_ATOMIC) {
        at.reads = (at.reads + 1) & 0xff;
      }
    };
    // a QP whose oldest WQE is a READ may not do more when some of its data came
    const auto opens = [&] {
      return !(index_before(q.oldest, q.horizon.horizon) &&
               record(q, q.oldest).kind == pkg::INFLIGHT_READ);
    };
    const auto news = [&] {
      if (e.acked_psn != q.seen) {
        q.progressed = true;
        moved = moved || opens();
      }
      q.seen = e.acked_psn;
    };
    if (answer) {
      q.locked = false;
      if (answer->failed && !q.failing && !q.flushing) {
        q.failing = true;
        q.status = answer->status;
        q.vendor = answer->vendor_status;
        ++o.fails;
      }
      news();
    }
    const auto finish = [&] {
      if (e.acked_psn != q.seen) {
        q.seen = e.acked_psn;
        moved = moved || opens();
        if (!o.requests.empty() && o.requests.back().cause >= pkg::RETRY_UNDERRUN) {
          q.progressed = false;
        } else if (o.requests.empty() || o.requests.back().cause != pkg::RETRY_FLUSH) {
          q.progressed = true;
        }
      }
      o.wakes += moved;
    };
    if (q.locked) {
      finish();
      return o;
    }
    for (;;) {
      const auto& r = record(q, q.oldest);
      const bool flush = q.flushing && landed(q) &&
                         (r.kind == pkg::INFLIGHT_FLUSH || r.kind == pkg::INFLIGHT_NOP);
      if (done(q) && !landed(q)) {
        Qp scan = q;
        while (done(scan)) pop(scan);
        request(pkg::RETRY_OVERTAKEN, scan);
        q.progressed = true;
        o.wakes += moved;
        return o;
      }
      if (done(q) || flush) {
        if (r.kind == pkg::INFLIGHT_FLUSH) {
          unsigned status = static_cast<unsigned>(hwif::CqeStatus::WR_FLUSH_ERR);
          unsigned vendor = static_cast<unsigned>(q.state == pkg::QPS_SQE
                                                      ? hwif::VendorStatus::FLUSH_SQE
                                                      : hwif::VendorStatus::FLUSH);
          if (q.failing && !q.flushed) {
            status = q.status;
            vendor = q.vendor;
          }
          q.flushed = true;
          o.completions.push_back({q.oldest, r.wc_opcode, r.byte_len, status, vendor});
        } else if (r.signaled && !q.flushing) {
          o.completions.push_back({q.oldest, r.wc_opcode, r.byte_len, 0, 0});
        }
        pop(q);
        q.seen = e.acked_psn;
        q.progressed = moved = true;
        continue;
      }
      if (q.flushing && !error) {
        q.flushing = q.failing = q.flushed = q.stop_told = false;
        news();
        continue;
      }
      const bool due = e.pending == req::PENDING_FATAL ||
                       (e.local_valid && q.details.local_index == q.oldest);
      if (due && !q.failing && (!q.flushing || (!q.flushed && e.acked_psn == q.psn))) {
        q.failing = true;
        q.status = q.details.status;
        q.vendor = q.details.vendor_status;
        o.fails += !q.flushing;
        news();
        if (e.unreliable && !error) {                    // the visit ends: SQE comes
          finish();
          return o;
        }
        continue;
      }
      if (error && !q.flushing) {
        if (e.tx_drained && (q.state == pkg::QPS_SQE || e.drained)) {
          if (q.state == pkg::QPS_SQE) q.psn = e.acked_psn;   // PSNs go on with what never left
          request(pkg::RETRY_FLUSH, q);
          clear(true, q.state == pkg::QPS_SQE);
          q.flushing = true;
        }
      } else if (q.flushing || q.failing) {
        o.fails += e.unreliable && !q.flushing;          // RTS came before its SQE was seen
      } else if (e.unreliable && e.local_valid && !q.stop_told && !e.timer && !e.underrun &&
                 e.pending == req::PENDING_NONE) {
        q.stop_told = true;                              // what is before it leaves, and is done then
      } else if (e.pending == req::PENDING_RNR || e.timer || e.pending == req::PENDING_SEQUENCE ||
                 e.pending == req::PENDING_IMPLIED || e.underrun ||
                 (e.local_valid && !q.stop_told)) {
        request(e.pending == req::PENDING_RNR        ? pkg::RETRY_RNR
                : e.timer                            ? pkg::RETRY_TIMEOUT
                : e.underrun                         ? pkg::RETRY_UNDERRUN
                : e.pending == req::PENDING_SEQUENCE ? pkg::RETRY_NAK_SEQUENCE
                : e.pending == req::PENDING_IMPLIED  ? pkg::RETRY_IMPLIED_NAK
                                                     : pkg::RETRY_OVERTAKEN,
                q);
        clear(false);
        q.progressed = false;
        q.stop_told = e.local_valid;
        if (e.acked_psn != q.seen) moved = moved || opens();
        q.seen = e.acked_psn;
      } else if (q.state == pkg::QPS_SQD) {
        if (!q.drained && e.idle && q.psn == e.acked_psn &&
            !index_before(q.oldest, q.horizon.horizon)) {
          ++o.drains;
          q.drained = true;
        }
      } else {
        q.drained = false;
      }
      finish();
      return o;
    }
  }
};

}  // namespace

TEST_CASE("visits in random situations follow the description") {
  Random random;
  for (int round = 0; round < 6; ++round) {
    Bench bench(random());
    for (unsigned qp = 1; qp < 4; ++qp) bench.start(qp, 0xfffff0);
    std::map<pkg::retry_cause_e, unsigned> causes;
    unsigned silent_stops = 0;
    for (std::size_t n = 0; n < scaled(1500); ++n) {
      const auto number = static_cast<unsigned>(random.between(1, 3));
      Qp& q = bench.qps[number];
      // records from the oldest WQE on, more or less sensible
      unsigned index = q.oldest;
      std::uint32_t psn = q.psn;
      for (unsigned k = 0, count = static_cast<unsigned>(random.below(8)); k < count; ++k) {
        auto& r = bench.record(q, index);
        r = random_payload<req::ack_record_t>(random);
        r.kind = static_cast<pkg::inflight_kind_e>(
            random.chance(0.7) ? random.below(2) : random.below(q.flushing ? 6 : 5));
        if (q.flushing && random.chance(0.7)) r.kind = pkg::INFLIGHT_FLUSH;
        r.blocks = random.chance(0.9) ? 1 : 2;
        const auto packets = static_cast<std::int64_t>(random.between(1, 3));
        r.last_psn = psn_add(psn, packets - 1);
        if (r.kind != pkg::INFLIGHT_NOP && r.kind != pkg::INFLIGHT_LOCAL &&
            r.kind != pkg::INFLIGHT_FLUSH) {
          psn = psn_add(psn, packets);
        }
        index = (index + r.blocks) & 0xffff;
      }
      q.horizon.horizon = static_cast<std::uint16_t>(index);
      q.horizon.landed = static_cast<std::uint16_t>(random.chance(0.7) ? index : q.oldest + 1);
      q.horizon.epoch = static_cast<std::uint8_t>(random.chance(0.8) ? q.epoch : q.epoch - 1);
      // events
      q.next_psn = psn;
      const auto behind = static_cast<std::uint64_t>(std::max(psn_diff(psn, q.seen), 0));
      const bool fixed = q.events.pending == req::PENDING_FATAL;
      const auto acked = q.events.acked_psn;
      if (!fixed) {
        q.events = random_payload<req::ack_events_t>(random);
        q.events.acked_psn =
            random.chance(0.3) ? q.seen : psn_add(q.seen, static_cast<std::int64_t>(
                                                              random.below(behind + 1)));
        if (psn_diff(q.events.acked_psn, q.psn) < 0) q.events.acked_psn = q.psn;
        q.events.pending =
            static_cast<req::ack_pending_e>(random.chance(0.5) ? 0 : random.below(4));
        if (random.chance(0.01)) q.events.pending = req::PENDING_FATAL;
        q.events.local_valid = random.chance(0.04);
        q.details = random_payload<req::ack_details_t>(random);
        q.details.local_index = static_cast<std::uint16_t>(q.oldest + random.below(3));
        q.events.timer = random.chance(0.1);
        q.events.underrun = random.chance(0.1);
      } else {
        q.events.acked_psn = acked;
      }
      if (random.chance(0.1)) {
        bench.set_point(number, (q.epoch + 1) & 0xff, (q.oldest + random.below(3)) & 0xffff);
      }
      if (random.chance(0.03)) {
        static const pkg::qp_state_e states[] = {pkg::QPS_RTS, pkg::QPS_SQD, pkg::QPS_SQE,
                                                 pkg::QPS_ERR};
        bench.set_state(number, states[random.below(4)]);
      }
      const bool answers = q.locked && random.chance(0.8);
      pkg::retry_result_t answer{};
      answer.qp = static_cast<decltype(answer.qp)>(number);
      answer.failed = random.chance(0.05);
      answer.status = 12;
      answer.vendor_status = 0x43;

      bench.seen.clear();
      const Qp before = q;
      const Outcome expected = bench.model(number, q, answers ? &answer : nullptr);
      if (answers) bench.result.push(answer);
      else bench.visit(number);
      bench.dut.tick(60);
      INFO("round " << round << " step " << n << " qp " << number << " oldest " << before.oldest
                    << " horizon " << before.horizon.to_string() << " point " << before.point
                    << " epoch " << before.epoch << " events " << before.events.to_string());
      for (const auto& r : expected.requests) ++causes[r.cause];
      REQUIRE(bench.seen[number] == expected);
      if (n % 5 == 0) {
        const auto row = bench.row(number);
        REQUIRE(row.oldest_index == q.oldest);
        REQUIRE(row.reads_done == q.reads);
        REQUIRE(row.locked == q.locked);
        REQUIRE(row.failing == q.failing);
        REQUIRE(row.flushing == q.flushing);
        REQUIRE(row.inflight_base == q.base);
      }
      // told with every pop, and with a stop before the rewind that it asks for
      const bool silent = q.stop_told && !before.stop_told && expected.requests.empty();
      silent_stops += silent;
      const bool stops = (q.events.local_valid && !expected.clears.empty() &&
                          expected.requests[0].cause != pkg::RETRY_FLUSH) || silent;
      if (stops) REQUIRE(bench.told[number].stop_valid);
      if (!expected.completions.empty() || stops) {
        REQUIRE(bench.told[number].acked_psn == q.events.acked_psn);
      }
      if (q.flushed || q.failing) {
        if (random.chance(0.3)) {
          bench.set_state(number, pkg::QPS_RESET);
          bench.start(number, static_cast<std::uint32_t>(random.bits(24)));
        }
      }
    }
    CHECK(silent_stops > 0);
    for (unsigned cause = 0; cause < 7; ++cause) {
      CHECK(causes[static_cast<pkg::retry_cause_e>(cause)] > 0);
    }
  }
}

TEST_CASE("without room a visit waits, and loses nothing") {
  Bench bench(1);
  bench.start(1, 0);
  Qp& q = bench.qps[1];
  for (unsigned n = 0; n < 8; ++n) {
    auto& r = bench.record(q, n);
    r = {};
    r.kind = pkg::INFLIGHT_SEND;
    r.signaled = true;
    r.blocks = 1;
    r.last_psn = n;
  }
  q.horizon.horizon = q.horizon.landed = 8;
  q.events.acked_psn = q.next_psn = 8;
  bench.dut->room_i = 0;
  bench.visit(1);
  bench.dut.tick(50);
  CHECK(bench.seen[1].completions.empty());
  for (unsigned n = 0; n < 200 && bench.seen[1].completions.size() < 8; ++n) {
    bench.dut->room_i = n % 5 == 0;
    bench.dut.tick();
  }
  bench.dut->room_i = 1;
  bench.dut.tick(20);
  REQUIRE(bench.seen[1].completions.size() == 8);
  for (unsigned n = 0; n < 8; ++n) CHECK(bench.seen[1].completions[n][0] == n);
}

TEST_CASE("a long visit gives way after its quantum, if somebody waits") {
  Bench bench(2);
  for (unsigned qp : {0u, 1u, 2u, 3u}) {
    bench.start(qp, 0);
    Qp& q = bench.qps[qp];
    for (unsigned n = 0; n < 16; ++n) {
      auto& r = bench.record(q, n);
      r = {};
      r.kind = pkg::INFLIGHT_SEND;
      r.signaled = true;
      r.blocks = 1;
      r.last_psn = 0;
    }
    // the same records come round and round: a ring that never ends
    q.horizon.horizon = q.horizon.landed = qp == 3 ? 1 : 100;
    q.events.acked_psn = q.next_psn = 100;
  }
  for (unsigned qp : {0u, 1u, 2u, 3u}) bench.visit(qp);
  const auto start = bench.dut.cycle();
  bench.dut.run_until([&] { return bench.seen[3].completions.size() == 1; }, "the last one's turn");
  // two QPs are in the loop at a time
  CHECK(bench.dut.cycle() - start <= 2 * 2 * kQuantum + 20);
  bench.dut.run_until([&] { return bench.order.size() == 301; }, "all");
  CHECK(bench.dut.cycle() - start <= 301 + 80);
  CHECK(bench.seen[0].requeues > 0);
  for (unsigned qp : {0u, 1u, 2u}) {
    for (unsigned n = 0; n < 100; ++n) CHECK(bench.seen[qp].completions[n][0] == n);
  }
}
