// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_ack, requester_retry, requester_read_data and context_timer together against models of
// fetch, packetizer, link and peer (recovery_model.hpp): everything completes once, in order, with
// the right status and data, whatever the link loses; named scenarios of wire.md §4.
// model: configs=wide,narrow args=-GTICK_CYCLES=64 args=-GTIMER_QP_BITS=3
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "requester/recovery_model.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;

namespace {

using Bench = World<DUT_CLASS>;

constexpr std::uint64_t kTick = DUT_TICK_CYCLES;
constexpr unsigned kTimeout = 5;                 // 32 ticks = 2048 cycles, several round trips

unsigned code(hwif::CqeStatus s) { return static_cast<unsigned>(s); }

void soak(Bench& bench, unsigned qps, std::uint64_t cycles) {
  for (unsigned qp = 0; qp < qps; ++qp) {
    bench.start(qp, static_cast<std::uint32_t>(bench.random.chance(0.5) ? 0xfffff0
                                                                       : bench.random.bits(24)),
                kTimeout, 7, 7);
    bench.posting.insert(qp);
  }
  bench.dut.tick(cycles);
  bench.posting.clear();
}

}  // namespace

TEST_CASE("without losses everything completes, and nothing is sent twice") {
  Random random;
  for (int round = 0; round < 3; ++round) {
    Bench bench(random());
    bench.stalls(random);
    bench.chances.stall = 0.02;
    soak(bench, 4, scaled(15000));
    bench.drain();
    std::uint64_t done = 0;
    for (auto& [qp, s] : bench.senders) {
      done += s.done;
      CHECK_FALSE(s.failure);
      for (const auto& [psn, count] : s.peer.arrivals) CHECK(count == 1);
    }
    CHECK(done > 200);
    CHECK(bench.counters["timeout"] == 0);
    CHECK(bench.counters["sequence"] == 0);
    CHECK(bench.counters["implied"] == 0);
    CHECK(bench.counters["overtook"] == 0);
  }
}

TEST_CASE("losses, duplicates, reordering, RNR, underruns: every request completes once") {
  Random random;
  std::map<std::string, std::uint64_t> sum;
  for (int round = 0; round < 8; ++round) {
    Bench bench(random());
    bench.stalls(random);
    bench.chances.loss = random.chance(0.3) ? 0.1 : 0.02;
    bench.chances.duplicate = 0.02;
    bench.chances.reorder = random.chance(0.5) ? 0.03 : 0.0;
    bench.chances.rnr = 0.01;
    bench.chances.underrun = random.chance(0.5) ? 0.01 : 0.0;
    bench.chances.stall = 0.02;
    soak(bench, 4, scaled(60000));
    // retry_cnt can be used up by chance only if a PSN is lost eight times
    bench.drain();
    std::uint64_t done = 0;
    for (auto& [qp, s] : bench.senders) {
      INFO("qp " << qp);
      done += s.done;
      if (s.failure) {
        CHECK(s.failure->first == code(hwif::CqeStatus::RETRY_EXC_ERR));
        CHECK(bench.chances.loss > 0.05);
      }
    }
    CHECK(done > 50);
    for (const auto& [name, count] : bench.counters) sum[name] += count;
  }
  for (const auto& [name, count] : sum) {
    INFO(name);
    CHECK(count > 0);
  }
  WARN(ROCI_CONFIG_NAME << ": timeouts " << sum["timeout"] << ", sequence NAKs " << sum["sequence"]
                        << ", implied NAKs " << sum["implied"] << ", RNR " << sum["rnr"]
                        << ", underruns " << sum["underrun"] << ", overtaken " << sum["overtook"]);
}

TEST_CASE("failures: one error, then flushes, on a link that loses (scenarios 10, 38)") {
  Random random;
  std::map<unsigned, unsigned> statuses;
  for (int round = 0; round < 12; ++round) {
    Bench bench(random());
    bench.stalls(random);
    bench.chances.loss = round % 2 ? 0.02 : 0.0;
    bench.chances.stall = 0.02;
    bench.chances.bad = round % 4 < 2 ? 0.01 : 0.0;
    bench.chances.refused = round % 4 < 2 ? 0.0 : 0.02;
    for (unsigned qp = 0; qp < 4; ++qp) {
      bench.start(qp, 0xffffe0, kTimeout, 7, 7);
      bench.posting.insert(qp);
    }
    bench.dut.run_until(
        [&] {
          for (auto& [qp, s] : bench.senders) {
            if (!s.failure) return false;
          }
          return true;
        },
        "all QPs fail", 3000000);
    bench.posting.clear();
    for (auto& [qp, s] : bench.senders) {
      for (int n = 0; n < 3; ++n) {                         // posted in ERR
        bench.dut.run_until([&] { return bench.room(s); }, "flushes make room");
        bench.post(s, pkg::INFLIGHT_SEND, 1, n == 2);
      }
    }
    bench.drain();
    for (auto& [qp, s] : bench.senders) {
      INFO("qp " << qp << " failed at index " << s.failed->index);
      ++statuses[s.failure->first];
      CHECK(s.flushed >= 3);
      if (s.failure->first == code(hwif::CqeStatus::REM_ACCESS_ERR)) CHECK(s.failed->bad);
      if (s.failure->first == code(hwif::CqeStatus::LOC_PROT_ERR)) CHECK(s.failed->refused);
    }
    // the next life of a QP starts clean
    bench.out.clear();
    bench.back.clear();
    bench.dut.tick(300);
    bench.chances = Chances{};
    Sender& s = bench.start(1, 0x123456, kTimeout, 7, 7);
    for (int n = 0; n < 5; ++n) bench.post(s, pkg::INFLIGHT_SEND, 2, true);
    bench.drain();
    CHECK(s.done == 5);
  }
  CHECK(statuses[code(hwif::CqeStatus::REM_ACCESS_ERR)] > 0);
  CHECK(statuses[code(hwif::CqeStatus::LOC_PROT_ERR)] > 0);
}

TEST_CASE("no ACK ever: retry_cnt + 1 sends in [T, 4T], then RETRY_EXC_ERR (scenario 25)") {
  for (const unsigned retry_cnt : {0u, 1u, 7u}) {
    Bench bench(retry_cnt);
    bench.record_wire = true;
    Sender& s = bench.start(2, 0xffffff, kTimeout, retry_cnt, 7);
    s.peer.silent = true;
    bench.post(s, pkg::INFLIGHT_SEND, 1, false);
    bench.drain(40 * kTick * 32);
    REQUIRE(s.failure);
    CHECK(s.failure->first == code(hwif::CqeStatus::RETRY_EXC_ERR));
    CHECK(s.failure->second == static_cast<unsigned>(hwif::VendorStatus::RETRY_TIMEOUT));
    REQUIRE(bench.wire.size() == retry_cnt + 1);
    for (std::size_t n = 1; n < bench.wire.size(); ++n) {
      const auto waited = bench.wire[n].first - bench.wire[n - 1].first;
      CHECK(waited >= kTick * 32);
      CHECK(waited <= 4 * kTick * 32);
    }
  }
  // timeout 0: no retry ever
  Bench bench(9);
  Sender& s = bench.start(3, 0, 0, 7, 7);
  s.peer.silent = true;
  bench.record_wire = true;
  bench.post(s, pkg::INFLIGHT_SEND, 1, true);
  bench.dut.tick(50000);
  CHECK(bench.wire.size() == 1);
  CHECK_FALSE(s.failure);
}

TEST_CASE("a rewound QP is charged nothing before it has sent again, however late its turn comes") {
  for (const bool silent : {false, true}) {
    for (const unsigned retry_cnt : {1u, 3u}) {
      Bench bench(20 + retry_cnt);
      bench.record_wire = true;
      Sender& s = bench.start(2, 0xfffffe, kTimeout, retry_cnt, 7);
      bench.post(s, pkg::INFLIGHT_SEND, 4, true);
      if (silent) {
        s.peer.silent = true;
      } else {
        bench.out.lose(3);                                 // nothing behind it: the timer finds it
      }
      for (unsigned sends = 1;; ++sends) {
        std::vector<std::uint64_t> sent;
        bench.dut.run_until([&] { return bench.counters["timeout"] == sends || s.failure; },
                            "the timer", 5 * kTick * 32);
        INFO("retry_cnt " << retry_cnt << ", sends " << sends);
        if (sends > retry_cnt) break;
        REQUIRE_FALSE(s.failure);
        // others have their turns for ten timeouts
        bench.held.insert(2);
        bench.dut.tick(10 * kTick * 32);
        CHECK(bench.counters["timeout"] == sends);
        REQUIRE_FALSE(s.failure);
        bench.held.erase(2);
        const auto before = bench.wire.size();
        bench.dut.run_until([&] { return bench.wire.size() > before; }, "its turn", 500);
        const auto at = bench.dut.cycle();
        if (!silent) break;
        // the timer runs from there
        bench.dut.run_until([&] { return bench.counters["timeout"] > sends || s.failure; },
                            "the timer again", 5 * kTick * 32);
        CHECK(bench.dut.cycle() - at >= kTick * 32);
        CHECK(bench.dut.cycle() - at <= 4 * kTick * 32);
      }
      bench.drain();
      if (silent) {
        REQUIRE(s.failure);
        CHECK(s.failure->first == code(hwif::CqeStatus::RETRY_EXC_ERR));
        CHECK(bench.wire.size() == 4 * (retry_cnt + 1));
        CHECK(bench.counters["timeout"] == retry_cnt);
      } else {
        CHECK_FALSE(s.failure);
        CHECK(s.done == 1);
        CHECK(bench.counters["timeout"] == 1);
      }
    }
  }
}

TEST_CASE("RNR: nothing before its time, then everything from its PSN on (scenarios 4, 5)") {
  {
    // code 14 (1.28 ms = 312.5 ticks) while the ACK timeout is 2 ticks
    Bench bench(10);
    bench.record_wire = true;
    Sender& s = bench.start(4, 0, 1, 0, 7);
    s.peer.rnr_code = 14;
    s.peer.rnr_left = 1;
    for (int n = 0; n < 6; ++n) bench.post(s, pkg::INFLIGHT_SEND, 1, true);
    bench.out.delay = bench.back.delay = 10;
    bench.dut.run_until([&] { return s.waiting; }, "wait", 2000);
    bench.dut.tick(10);
    bench.wire.clear();
    bench.drain(400 * kTick);
    CHECK_FALSE(s.failure);
    CHECK(bench.wait_end[4] - bench.wait_begin[4] >= 625 * kTick / 2);
    CHECK(bench.wait_end[4] - bench.wait_begin[4] < 468 * kTick);   // code 15: 1.92 ms
    REQUIRE(bench.wire.size() == 6);
    for (unsigned n = 0; n < 6; ++n) CHECK(bench.wire[n].second.psn == n);
    CHECK(bench.counters["timeout"] == 0);
  }
  {
    Bench bench(11);                                     // 20 in a row, rnr_retry 7
    Sender& s = bench.start(5, 100, kTimeout, 0, 7);
    s.peer.rnr_left = 20;
    bench.post(s, pkg::INFLIGHT_SEND, 1, true);
    bench.drain();
    CHECK_FALSE(s.failure);
    CHECK(bench.counters["rnr"] == 20);
  }
  for (const unsigned rnr_retry : {0u, 2u}) {            // the first, the third
    Bench bench(12 + rnr_retry);
    Sender& s = bench.start(6, 100, kTimeout, 7, rnr_retry);
    s.peer.rnr_left = 20;
    bench.post(s, pkg::INFLIGHT_SEND, 1, false);
    bench.drain();
    REQUIRE(s.failure);
    CHECK(s.failure->first == code(hwif::CqeStatus::RNR_RETRY_EXC_ERR));
    CHECK(s.peer.rnr_left == 20 - rnr_retry - 1);
  }
}

TEST_CASE("one lost packet at each place of a message, either way (scenarios 2, 6, 20)") {
  // the n-th packet on the wire is lost, for every n
  for (unsigned lost = 0; lost < 24; ++lost) {
    Bench bench(100 + lost);
    bench.record_wire = true;
    Sender& s = bench.start(0, 0xfffffc, kTimeout, 7, 7);
    bench.post(s, pkg::INFLIGHT_SEND, 4, true);
    bench.post(s, pkg::INFLIGHT_READ, 4, true);
    bench.post(s, pkg::INFLIGHT_SEND, 1, true);
    bench.post(s, pkg::INFLIGHT_READ, 1, true);
    bench.post(s, pkg::INFLIGHT_SEND, 4, true);
    bench.out.lose(lost);
    if (lost >= 12) {
      bench.out.lose(~0u);
      bench.back.lose(lost - 12);
    }
    bench.drain();
    CHECK(s.done == 5);
    CHECK_FALSE(s.failure);
    CHECK(bench.out.lost + bench.back.lost <= 1);
  }
}

TEST_CASE("QPs killed in the middle: all flush, late answers do nothing (scenario 40)") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Bench bench(random());
    bench.stalls(random);
    bench.chances.loss = 0.01;
    bench.chances.reorder = 0.02;
    bench.chances.stall = 0.02;
    for (unsigned life = 0; life < 3; ++life) {
      for (unsigned qp = 0; qp < 3; ++qp) {
        bench.start(qp, static_cast<std::uint32_t>(random.bits(24)), kTimeout, 7, 7);
        bench.posting.insert(qp);
      }
      bench.dut.tick(random.between(200, 4000));
      for (unsigned qp = 0; qp < 3; ++qp) {
        bench.dut.tick(random.below(50));
        bench.set_state(bench.senders[qp], pkg::QPS_ERR);
      }
      bench.posting.clear();
      bench.drain();
      std::vector<std::uint64_t> done;
      for (auto& [qp, s] : bench.senders) {
        if (s.failure) CHECK(s.failure->first == code(hwif::CqeStatus::WR_FLUSH_ERR));
        bench.set_state(s, pkg::QPS_RESET);
      }
      // what is still on the links comes to QPs in RESET
      bench.dut.run_until([&] { return bench.out.empty() && bench.back.empty(); }, "links", 3000);
      bench.dut.tick(200);
    }
  }
}
