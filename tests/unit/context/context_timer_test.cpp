// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_timer: ACK timeouts within [T, 4T] (wire.md 2.8, scenario 25), RNR waits of all codes at
// least the coded time and below the next code's (2.7, scenarios 4 and 24), both with many QPs at
// random; skipped time gives the same reports at the same times as time that passed.
// model: configs=wide,narrow
// model: configs=narrow args=-GTICK_CYCLES=32 args=-GQP_BITS=3 name=small
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <vector>

#include "requester/requester_bench.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace hwif = roci::hwif;

namespace {

#ifdef DUT_TICK_CYCLES
constexpr std::uint64_t kTick = DUT_TICK_CYCLES;
constexpr unsigned kQps = 1u << DUT_QP_BITS;
#else
constexpr std::uint64_t kTick = ROCI_CONFIG_WIDE ? 1024 : 512;
constexpr unsigned kQps = ROCI_CONFIG_WIDE ? 1024 : 64;
#endif

/// Time in units of 10 ns: exact for all RNR codes and for ticks of 4.096 us only as fractions, so
/// times are compared in cycles: 4.096 us = kTick cycles.
double us(std::uint64_t cycles) { return 4.096 * static_cast<double>(cycles) / kTick; }

/// Milliseconds of each RNR code (wire.md 2.7), in the order of the codes.
constexpr double kRnrMs[32] = {655.36, .01,  .02,   .03,   .04,   .06,   .08,    .12,
                               .16,    .24,  .32,   .48,   .64,   .96,   1.28,   1.92,
                               2.56,   3.84, 5.12,  7.68,  10.24, 15.36, 20.48,  30.72,
                               40.96,  61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};

struct Report {
  std::uint64_t clock;
  unsigned qp;
  std::uint32_t psn;
  bool operator==(const Report&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Report& r) {
  return out << r.clock << ":" << r.qp << "/" << r.psn;
}

struct Bench : Agent {
  Dut<DUT_CLASS> dut;
  Broadcast<pkg::ack_state_t> acked;
  Broadcast<pkg::sent_t> sent;
  Broadcast<roci::sv::context_pkg::rewound_t> rewound;
  Broadcast<pkg::state_bcast_t> state;
  Source<pkg::rnr_wait_t> rnr;
  Sink<pkg::timer_report_t> report;
  std::vector<Report> reports;
  struct Wait {
    std::uint64_t begin = 0, end = 0;
    bool waiting = false;
  };
  std::map<unsigned, Wait> waits;
  bool skip = false;                    // use every chance to skip time
  std::uint64_t skipped = 0;

  explicit Bench(std::uint64_t salt)
      : dut(salt),
        acked("acked", dut->ack_state_i),
        sent("sent", dut->sent_i),
        rewound("rewound", dut->rewound_i),
        state("state", dut->state_i),
        rnr("rnr", dut->rnr_valid_i, dut->rnr_ready_o, dut->rnr_i),
        report("report", dut->report_valid_o, dut->report_ready_i, dut->report_o) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    dut->time_step_i = 0;
    dut->colour_i = 0;
    dut.reset();
    for (Agent* agent :
         std::initializer_list<Agent*>{&acked, &sent, &rewound, &state, &rnr, &report, this}) {
      dut.attach(*agent);
    }
    report.collect();
    report.on_transfer([this](const pkg::timer_report_t& r) {
      REQUIRE_FALSE(r.is_rnr);
      reports.push_back({dut->clock_o, r.qp, r.oldest_psn});
    });
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 3000);
  }

  void sample() override {
    const auto b = pkg::rnr_bcast_t::unpack(dut->rnr_o);
    if (b.valid) {
      Wait& w = waits[b.qp];
      w.waiting = b.waiting;
      (b.waiting ? w.begin : w.end) = dut->clock_o;
    }
    step_ = 0;
    if (skip && dut->time_step_i == 0 && dut->next_expiry_valid_o && dut->next_expiry_o != 0 &&
        dut->next_expiry_o != 0xffffffff) {
      step_ = dut->next_expiry_o;
    }
  }
  void drive() override {
    // only while nothing happens, as the simulator does; the other agents have driven before
    if (!rnr.empty() || !acked.empty() || !sent.empty() || !state.empty() || in_access) step_ = 0;
    dut->time_step_i = step_;
    skipped += step_;
  }
  std::uint32_t step_ = 0;
  bool in_access = false;

  std::uint64_t access(bool write, unsigned qp, std::uint64_t data = 0) {
    in_access = true;
    dut.tick();
    const auto read = context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { dut.tick(); }, static_cast<unsigned>(hwif::CtxColumn::QP_TIMER), write, qp, 0,
        data);
    in_access = false;
    return read;
  }
  void start(unsigned qp, unsigned timeout, std::uint32_t psn) {
    set_state(qp, pkg::QPS_RESET);
    access(true, qp, timeout | std::uint64_t{psn} << 32u);
    set_state(qp, pkg::QPS_RTS);
  }
  void set_state(unsigned qp, pkg::qp_state_e s) {
    pkg::state_bcast_t b{};
    b.qp = static_cast<decltype(b.qp)>(qp);
    b.state = s;
    state.push(b);
    dut.run_until([&] { return state.empty(); }, "state");
  }
  void send(unsigned qp, std::uint32_t next, bool current = true) {
    pkg::sent_t b{};
    b.current = current;
    b.qp = static_cast<decltype(b.qp)>(qp);
    b.next_psn = next;
    sent.push(b);
    dut.run_until([&] { return sent.empty(); }, "sent");
  }
  void rewind(unsigned qp) {
    roci::sv::context_pkg::rewound_t b{};
    b.qp = static_cast<decltype(b.qp)>(qp);
    rewound.push(b);
    dut.run_until([&] { return rewound.empty(); }, "rewound");
  }
  void ack(unsigned qp, std::uint32_t psn) {
    pkg::ack_state_t b{};
    b.qp = static_cast<decltype(b.qp)>(qp);
    b.acked_psn = psn;
    acked.push(b);
    dut.run_until([&] { return acked.empty(); }, "acked");
  }
  void wait(unsigned qp, unsigned code) {
    pkg::rnr_wait_t w{};
    w.qp = static_cast<decltype(w.qp)>(qp);
    w.code = static_cast<std::uint8_t>(code);
    rnr.push(w);
  }
};

}  // namespace

TEST_CASE("the ACK timer expires in [T, 4T], again and again, 0 never") {
  Random random;
  for (const unsigned timeout : {1u, 2u, 3u, 5u, 8u, 14u, 20u, 31u}) {
    Bench bench(random());
    bench.skip = true;
    const auto qp = static_cast<unsigned>(random.below(kQps));
    bench.start(qp, timeout, 0xffffff);
    bench.start((qp + 1) % kQps, 0, 5);
    bench.send((qp + 1) % kQps, 9);
    bench.dut.tick(random.below(3 * kTick));
    CHECK(bench.reports.empty());
    const double t = static_cast<double>(kTick) * static_cast<double>(1ull << timeout);
    std::uint64_t from = bench.dut->clock_o;
    bench.send(qp, 2);
    for (unsigned n = 0; n < 4; ++n) {
      bench.dut.run_until([&] { return bench.reports.size() == n + 1; }, "report", 8 * kTick + 100);
      INFO("timeout " << timeout << " report " << n);
      const auto r = bench.reports.back();
      CHECK(r.qp == qp);
      CHECK(r.psn == 0xffffff);
      CHECK(static_cast<double>(r.clock - from) >= t);
      CHECK(static_cast<double>(r.clock - from) <= 4 * t);
      from = r.clock;
    }
    if (timeout > 3) CHECK(bench.skipped > 0);
    // everything acknowledged: it stops; and nothing is pending then
    bench.ack(qp, 2);
    bench.ack((qp + 1) % kQps, 9);
    bench.skip = false;
    bench.dut.tick(3 * (kTick + kQps));
    CHECK(bench.reports.size() == 4);
    CHECK(bench.dut->next_expiry_valid_o == 1);
    CHECK(bench.dut->next_expiry_o == 0xffffffff);
    CHECK(bench.access(false, qp) == timeout);
  }
}

TEST_CASE("progress starts the ACK timer again") {
  Random random;
  for (int round = 0; round < 5; ++round) {
    Bench bench(random());
    const auto qp = static_cast<unsigned>(random.below(kQps));
    bench.start(qp, 3, 0);
    bench.send(qp, 0x100000);
    for (std::uint32_t psn = 1; psn < 20; ++psn) {
      bench.dut.tick(random.between(3 * kTick, 6 * kTick));
      bench.ack(qp, psn);
    }
    CHECK(bench.reports.empty());
    const auto from = bench.dut->clock_o;
    bench.dut.run_until([&] { return !bench.reports.empty(); }, "report", 40 * kTick);
    CHECK(bench.reports[0].clock - from >= 8 * kTick);
    CHECK(bench.reports[0].clock - from <= 32 * kTick);
    CHECK(bench.reports[0].psn == 19);
  }
}

TEST_CASE("after a rewind the ACK timer runs from the next packet on, not before") {
  Random random;
  for (int round = 0; round < 5; ++round) {
    Bench bench(random());
    const auto qp = static_cast<unsigned>(random.below(kQps));
    const unsigned other = (qp + 1) % kQps;
    bench.start(qp, 3, 0);
    bench.start(other, 3, 0);
    bench.send(qp, 5);
    bench.dut.run_until([&] { return bench.reports.size() == 1; }, "report", 40 * kTick);
    bench.dut.tick(random.below(4 * kTick));
    bench.rewind(qp);
    bench.dut.tick(3);
    CHECK(bench.reports.size() == 1);
    bench.send(qp, 5, false);             // decided before
    bench.dut.tick(random.between(60, 90) * kTick);
    CHECK(bench.reports.size() == 1);
    bench.send(other, 1);                 // that of another one runs
    bench.dut.run_until([&] { return bench.reports.size() == 2; }, "report", 40 * kTick);
    CHECK(bench.reports[1].qp == other);
    bench.ack(other, 1);
    bench.send(qp, 5);
    const auto from = bench.dut->clock_o;
    bench.dut.run_until([&] { return bench.reports.size() == 3; }, "report", 40 * kTick);
    CHECK(bench.reports[2].qp == qp);
    CHECK(bench.reports[2].clock - from >= 8 * kTick);
    CHECK(bench.reports[2].clock - from <= 32 * kTick);
    // and again without a rewind
    bench.dut.run_until([&] { return bench.reports.size() == 4; }, "report", 40 * kTick);
    // nor does what waits for its turn hold up a step of time
    bench.rewind(qp);
    bench.dut.tick(3 * (kTick + kQps));
    CHECK(bench.dut->next_expiry_valid_o == 1);
    CHECK(bench.dut->next_expiry_o == 0xffffffff);
  }
}

TEST_CASE("a rewind starts the ACK timer again, also if no visit falls between it and the next packet") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Bench bench(random());
    const auto qp = static_cast<unsigned>(random.below(kQps));
    bench.start(qp, 3, 0);
    bench.send(qp, 5);
    bench.dut.tick(random.between(5 * kTick, 7 * kTick));
    bench.rewind(qp);
    bench.dut.tick(random.between(6, 12));
    bench.send(qp, 5);
    const auto from = bench.dut->clock_o;
    bench.dut.run_until([&] { return !bench.reports.empty(); }, "report", 40 * kTick);
    CHECK(bench.reports[0].clock - from >= 8 * kTick);
    CHECK(bench.reports[0].clock - from <= 11 * kTick);
    // nor does it end a wait
    bench.dut.tick(2 * kTick);
    const unsigned code = 8;              // 0.12 ms, 29.3 ticks
    bench.wait(qp, code);
    bench.dut.run_until([&] { return bench.waits[qp].waiting; }, "begin");
    bench.dut.tick(4);
    bench.rewind(qp);
    bench.dut.tick(random.below(3 * kTick));
    CHECK(bench.waits[qp].waiting);
    bench.dut.run_until([&] { return !bench.waits[qp].waiting; }, "end", 40 * kTick);
    const double waited = us(bench.waits[qp].end - bench.waits[qp].begin) / 1000;
    CHECK(waited >= kRnrMs[code]);
    CHECK(waited < kRnrMs[code + 1]);
  }
}

TEST_CASE("RNR waits: at least the coded time, less than the next code's (scenarios 4, 24)") {
  Random random;
  // what the table calls the next longer wait
  std::vector<double> sorted(kRnrMs, kRnrMs + 32);
  std::sort(sorted.begin(), sorted.end());
  sorted.push_back(2 * sorted.back());
  for (int round = 0; round < 3; ++round) {
    Bench bench(random());
    bench.skip = true;
    for (unsigned code = 0; code < 32; ++code) {
      const auto qp = static_cast<unsigned>(random.below(kQps));
      bench.start(qp, 1, 0);            // an ACK timeout shorter than most waits
      bench.send(qp, 7);
      bench.dut.tick(random.below(2 * kTick));
      bench.wait(qp, code);
      bench.dut.run_until([&] { return bench.waits[qp].waiting; }, "begin");
      bench.dut.tick(3);                // a report made just before it
      bench.reports.clear();
      bench.dut.run_until([&] { return !bench.waits[qp].waiting; }, "end", 40 * kTick);
      const double waited = us(bench.waits[qp].end - bench.waits[qp].begin) / 1000;
      const double next = *std::upper_bound(sorted.begin(), sorted.end(), kRnrMs[code]);
      INFO("code " << code << " waited " << waited << " ms");
      CHECK(waited >= kRnrMs[code]);
      CHECK(waited < next);
      // no timeout while it waited, but afterwards the timer runs again
      CHECK(bench.reports.empty());
      bench.dut.run_until([&] { return !bench.reports.empty(); }, "timer", 12 * kTick);
      CHECK(bench.reports[0].clock - bench.waits[qp].end >= 2 * kTick);
      bench.ack(qp, 7);
    }
  }
}

TEST_CASE("a wait ends with its QP's life, at once") {
  for (const auto s : {pkg::QPS_ERR, pkg::QPS_RESET, pkg::QPS_SQE}) {
    Bench bench(4);
    bench.start(2, 5, 0);
    bench.wait(2, 31);
    bench.dut.run_until([&] { return bench.waits[2].waiting; }, "begin");
    bench.dut.tick(100);
    bench.set_state(2, s);
    bench.dut.tick(6);
    CHECK_FALSE(bench.waits[2].waiting);
    // nor does it begin in such a state
    bench.waits.clear();
    bench.wait(2, 1);
    bench.dut.tick(20);
    CHECK(bench.waits.empty());
  }
}

TEST_CASE("skipped time is as good as time that passed") {
  Random random;
  for (int round = 0; round < 4; ++round) {
    const auto seed = random();
    std::vector<Report> reports[2];
    std::vector<std::uint64_t> ends[2];
    std::uint64_t cycles[2];
    for (const bool skip : {false, true}) {
      Bench bench(1);
      Random same(seed);
      std::map<unsigned, std::uint32_t> psn;
      for (unsigned n = 0; n < 6; ++n) {
        const auto qp = static_cast<unsigned>(same.below(kQps));
        const auto timeout = static_cast<unsigned>(same.between(0, 6));
        bench.start(qp, timeout, 10);
        bench.send(qp, 20);
        if (same.chance(0.5)) bench.wait(qp, static_cast<unsigned>(same.between(1, 14)));
      }
      bench.skip = skip;
      const std::uint64_t end = bench.dut->clock_o + 300 * kTick;
      const auto start = bench.dut.cycle();
      while (bench.dut->clock_o < end) bench.dut.tick();
      cycles[skip] = bench.dut.cycle() - start;
      for (const auto& r : bench.reports) {
        if (r.clock < end - 4 * kTick) reports[skip].push_back(r);
      }
      for (const auto& [qp, w] : bench.waits) ends[skip].push_back(w.end);
    }
    CHECK(reports[0] == reports[1]);
    CHECK(ends[0] == ends[1]);
    CHECK(cycles[1] <= cycles[0]);
  }
}

TEST_CASE("many QPs at once: every one reports in time, whatever the reports' stalls") {
  Random random;
  Bench bench(random());
  const unsigned count = std::min(kQps, 200u);
  for (unsigned n = 0; n < count; ++n) bench.start(n, 3, 3);
  for (unsigned n = 0; n < count; ++n) bench.send(n, 4);
  bench.report.stall(Stall(0.7));
  const auto from = bench.dut->clock_o;
  bench.dut.tick(30 * kTick);
  std::map<unsigned, unsigned> seen;
  for (const auto& r : bench.reports) {
    ++seen[r.qp];
    CHECK(r.clock - from >= 7 * kTick);
  }
  CHECK(seen.size() == count);
  CHECK(bench.dut->fence_busy_o <= 1);
  for (unsigned n = 0; n < count; ++n) bench.ack(n, 4);
  bench.report.stall(Stall(0.0));
  bench.dut.tick(3 * kTick + 100);
  CHECK(bench.dut->fence_busy_o == 0);
}
