// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_retry: random requests of several QPs against a model of the counting rules (wire.md
// 2.4, 2.7, 2.8), with stalls; order of wait, rewind and answer; the limits named in scenarios 5
// and 25. model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <vector>

#include "requester/requester_bench.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace hwif = roci::hwif;

namespace {

struct Step {
  char what;   // 'n' wait, 'w' rewind, 'r' result
  unsigned qp, detail;
  bool operator==(const Step&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Step& s) {
  return out << s.what << s.qp << ":" << s.detail;
}

struct Bench {
  Dut<DUT_CLASS> dut;
  Source<pkg::retry_request_t> request;
  Sink<pkg::retry_result_t> result;
  Sink<pkg::rewind_req_t> rewind;
  Sink<pkg::rnr_wait_t> rnr;
  Broadcast<pkg::rnr_bcast_t> waits;
  Broadcast<pkg::sent_t> sent;
  std::vector<Step> steps;
  std::vector<pkg::rewind_point_t> points;
  std::map<std::string, unsigned> counters;
  unsigned rewound = 0;                  // times told to context_timer

  struct Watch : Agent {
    Bench& bench;
    explicit Watch(Bench& b) : bench(b) {}
    void sample() override {
      const auto c = pkg::retry_counters_t::unpack(bench.dut->counters_o);
      bench.counters["timeout"] += c.retry_timeout;
      bench.counters["sequence"] += c.retry_nak_sequence;
      bench.counters["implied"] += c.retry_implied_nak;
      bench.counters["rnr"] += c.retry_rnr;
      bench.counters["underrun"] += c.retry_underrun;
      bench.counters["overtook"] += c.retry_ack_overtook;
      const auto r = roci::sv::context_pkg::rewound_t::unpack(bench.dut->rewound_o);
      if (r.valid) {
        ++bench.rewound;
        REQUIRE_FALSE(pkg::sent_t::unpack(bench.dut->sent_i).valid);
        REQUIRE_FALSE(bench.steps.empty());
        REQUIRE(bench.steps.back().what == 'w');
        REQUIRE(bench.steps.back().qp == r.qp);
      }
    }
    void drive() override {}
  } watch{*this};

  explicit Bench(std::uint64_t salt)
      : dut(salt),
        request("request", dut->request_valid_i, dut->request_ready_o, dut->request_i),
        result("result", dut->result_valid_o, dut->result_ready_i, dut->result_o),
        rewind("rewind", dut->rewind_valid_o, dut->rewind_ready_i, dut->rewind_o),
        rnr("rnr", dut->rnr_valid_o, dut->rnr_ready_i, dut->rnr_o),
        waits("waits", dut->rnr_i),
        sent("sent", dut->sent_i) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    dut.reset();
    result.collect();
    rewind.collect();
    rnr.collect();
    result.on_transfer([this](const pkg::retry_result_t& r) {
      steps.push_back({'r', r.qp, r.failed ? unsigned{r.status} << 8u | r.vendor_status : 0u});
    });
    rewind.on_transfer([this](const pkg::rewind_req_t& r) {
      steps.push_back({'w', r.qp, static_cast<unsigned>(r.kind)});
      points.push_back(r.point);
    });
    rnr.on_transfer([this](const pkg::rnr_wait_t& w) { steps.push_back({'n', w.qp, w.code}); });
    dut.attach(request);
    dut.attach(result);
    dut.attach(rewind);
    dut.attach(rnr);
    dut.attach(waits);
    dut.attach(sent);
    dut.attach(watch);
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 3000);
  }

  std::uint64_t access(bool write, unsigned qp, std::uint64_t data = 0) {
    return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { dut.tick(); }, static_cast<unsigned>(hwif::CtxColumn::QP_RETRY), write, qp, 0,
        data);
  }

  void limits(unsigned qp, unsigned retry_cnt, unsigned rnr_retry) {
    access(true, qp, retry_cnt | (rnr_retry << 8u));
  }

  void wait(unsigned qp, bool waiting) {
    pkg::rnr_bcast_t bcast{};
    bcast.qp = static_cast<decltype(bcast.qp)>(qp);
    bcast.waiting = waiting;
    waits.push(bcast);
    dut.run_until([&] { return waits.empty(); }, "wait told");
    dut.tick(2);
  }

  /// A packet of the QP was sent. One of the epoch before the rewind is not `current`.
  void send(unsigned qp, bool current = true) {
    pkg::sent_t s = random_payload<pkg::sent_t>(dut.random());
    s.qp = static_cast<decltype(s.qp)>(qp);
    s.current = current;
    sent.push(s);
  }

  /// Asks, after a packet of the QP was sent, unless told otherwise.
  std::vector<Step> ask(unsigned qp, pkg::retry_cause_e cause, bool progressed, unsigned code = 0,
                        bool sends = true) {
    if (sends) {
      send(qp);
      dut.run_until([&] { return sent.empty(); }, "sent");
      dut.tick(2);
    }
    steps.clear();
    const unsigned told = rewound;
    points.clear();
    pkg::retry_request_t r = random_payload<pkg::retry_request_t>(dut.random());
    r.qp = static_cast<decltype(r.qp)>(qp);
    r.cause = cause;
    r.progressed = progressed;
    r.rnr_code = static_cast<std::uint8_t>(code);
    request.push(r);
    dut.run_until([&] { return !steps.empty() && steps.back().what == 'r'; }, "answer");
    for (const auto& point : points) CHECK(point == r.point);
    CHECK(rewound - told == points.size());
    return steps;
  }
};

constexpr unsigned fail(hwif::CqeStatus s, hwif::VendorStatus v) {
  return static_cast<unsigned>(s) << 8u | static_cast<unsigned>(v);
}
constexpr unsigned kTimedOut =
    fail(hwif::CqeStatus::RETRY_EXC_ERR, hwif::VendorStatus::RETRY_TIMEOUT);
constexpr unsigned kNaked =
    fail(hwif::CqeStatus::RETRY_EXC_ERR, hwif::VendorStatus::RETRY_SEQUENCE);
constexpr unsigned kRnr = fail(hwif::CqeStatus::RNR_RETRY_EXC_ERR, hwif::VendorStatus::RETRY_RNR);

std::vector<Step> went_back(unsigned qp) {
  return {{'w', qp, pkg::REWIND_RETRY}, {'r', qp, 0}};
}
std::vector<Step> waited(unsigned qp, unsigned code) {
  return {{'n', qp, code}, {'w', qp, pkg::REWIND_SLEEP}, {'r', qp, 0}};
}
std::vector<Step> nothing(unsigned qp) { return {{'r', qp, 0}}; }
std::vector<Step> failed(unsigned qp, unsigned why) { return {{'r', qp, why}}; }

}  // namespace

TEST_CASE("retry_cnt 7 is seven, 0 is none (scenario 25)") {
  Bench bench(1);
  bench.limits(3, 7, 7);
  for (int n = 0; n < 7; ++n) CHECK(bench.ask(3, pkg::RETRY_TIMEOUT, n == 0) == went_back(3));
  CHECK(bench.ask(3, pkg::RETRY_TIMEOUT, false) == failed(3, kTimedOut));
  bench.limits(4, 0, 7);
  CHECK(bench.ask(4, pkg::RETRY_NAK_SEQUENCE, true) == failed(4, kNaked));
  CHECK(bench.counters["timeout"] == 7);
  CHECK(bench.counters["sequence"] == 0);
}

TEST_CASE("rnr_retry 7 is infinite, 2 fails on the third, 0 on the first (scenario 5)") {
  Bench bench(2);
  bench.limits(1, 0, 7);
  for (int n = 0; n < 20; ++n) {
    CHECK(bench.ask(1, pkg::RETRY_RNR, n == 0, 14) == waited(1, 14));
    bench.wait(1, true);
    // during its wait another RNR, a sequence NAK and a late timeout do nothing
    CHECK(bench.ask(1, pkg::RETRY_RNR, false, 14) == nothing(1));
    CHECK(bench.ask(1, pkg::RETRY_NAK_SEQUENCE, false) == nothing(1));
    CHECK(bench.ask(1, pkg::RETRY_TIMEOUT, false) == nothing(1));
    bench.wait(1, false);
  }
  bench.limits(2, 7, 2);
  CHECK(bench.ask(2, pkg::RETRY_RNR, true, 1) == waited(2, 1));
  CHECK(bench.ask(2, pkg::RETRY_RNR, false, 1) == waited(2, 1));
  CHECK(bench.ask(2, pkg::RETRY_RNR, false, 1) == failed(2, kRnr));
  bench.limits(2, 7, 0);
  CHECK(bench.ask(2, pkg::RETRY_RNR, true, 1) == failed(2, kRnr));
  CHECK(bench.access(false, 2) == 7);
  CHECK(bench.access(false, 1) == 7u << 8u);
}

TEST_CASE("one rewind per loss, until progress, timeout or RNR") {
  Bench bench(3);
  bench.limits(0, 3, 7);
  CHECK(bench.ask(0, pkg::RETRY_NAK_SEQUENCE, true) == went_back(0));
  CHECK(bench.ask(0, pkg::RETRY_NAK_SEQUENCE, false) == nothing(0));
  CHECK(bench.ask(0, pkg::RETRY_IMPLIED_NAK, false) == nothing(0));
  CHECK(bench.ask(0, pkg::RETRY_UNDERRUN, false) == went_back(0));
  CHECK(bench.ask(0, pkg::RETRY_OVERTAKEN, false) == went_back(0));
  CHECK(bench.ask(0, pkg::RETRY_FLUSH, false) == went_back(0));
  CHECK(bench.ask(0, pkg::RETRY_TIMEOUT, false) == went_back(0));
  CHECK(bench.ask(0, pkg::RETRY_IMPLIED_NAK, false) == went_back(0));
  CHECK(bench.ask(0, pkg::RETRY_TIMEOUT, false) == failed(0, kTimedOut));
  CHECK(bench.ask(0, pkg::RETRY_NAK_SEQUENCE, true) == went_back(0));
  CHECK(bench.counters["implied"] == 1);
  CHECK(bench.counters["underrun"] == 1);
  CHECK(bench.counters["overtook"] == 1);
}

TEST_CASE("a QP that has sent nothing since its rewind is not charged") {
  Bench bench(6);
  bench.limits(5, 1, 7);
  CHECK(bench.ask(5, pkg::RETRY_TIMEOUT, true) == went_back(5));
  for (int n = 0; n < 20; ++n) {
    CHECK(bench.ask(5, pkg::RETRY_TIMEOUT, false, 0, false) == nothing(5));
    CHECK(bench.ask(5, pkg::RETRY_NAK_SEQUENCE, false, 0, false) == nothing(5));
    CHECK(bench.ask(5, pkg::RETRY_IMPLIED_NAK, false, 0, false) == nothing(5));
    bench.send(4);                                           // another one
    bench.send(5, false);                                    // decided before the rewind
  }
  // what is not counted goes back all the same, and a NAK that acknowledges something
  CHECK(bench.ask(5, pkg::RETRY_UNDERRUN, false, 0, false) == went_back(5));
  CHECK(bench.ask(5, pkg::RETRY_OVERTAKEN, false, 0, false) == went_back(5));
  CHECK(bench.ask(5, pkg::RETRY_NAK_SEQUENCE, true, 0, false) == went_back(5));
  CHECK(bench.ask(5, pkg::RETRY_TIMEOUT, false, 0, false) == nothing(5));
  CHECK(bench.ask(5, pkg::RETRY_TIMEOUT, false) == failed(5, kTimedOut));
  CHECK(bench.counters["timeout"] == 1);
  CHECK(bench.counters["sequence"] == 1);
}

// The packetizer hears of the new epoch two cycles after the rewind was accepted: what it sends
// until then is still marked as of the present epoch, and no rewind's packet.
TEST_CASE("a packet sent around the rewind counts as sent before it") {
  struct Late : Agent {
    Bench& bench;
    std::deque<int> plan;                // per cycle: nothing, a packet, one that is `current`
    bool accepted = false;               // the rewind: the plan begins in the cycle after it
    explicit Late(Bench& b) : bench(b) {}
    void sample() override {
      accepted |= bench.dut->rewind_valid_o != 0 && bench.dut->rewind_ready_i != 0;
    }
    void drive() override {
      if (!accepted || plan.empty()) return;
      pkg::sent_t s{};
      s.valid = plan.front() != 0;
      s.qp = 5;
      s.current = plan.front() == 2;
      s.pack(bench.dut->sent_i);
      plan.pop_front();
    }
  };
  for (unsigned offset = 0; offset <= 2; ++offset) {
    for (const bool also_later : {false, true}) {
      Bench bench(7);
      Late late(bench);
      bench.dut.attach(late);
      bench.limits(5, 3, 7);
      bench.send(5);
      bench.dut.run_until([&] { return bench.sent.empty(); }, "sent");
      pkg::retry_request_t r{};
      r.qp = 5;
      r.cause = pkg::RETRY_TIMEOUT;
      r.progressed = true;
      bench.rewind.stall(Stall(1.0));
      bench.request.push(r);
      bench.dut.run_until([&] { return bench.dut->rewind_valid_o != 0; }, "rewind");
      // packets come every third cycle from the acceptance on
      for (unsigned n = 1; n <= 9; ++n) {
        const bool now = n % 3 == (offset + 1) % 3 && (n <= 3 || also_later);
        late.plan.push_back(now ? (n <= 2 ? 2 : 1) : 0);
      }
      bench.rewind.stall(Stall(0.0));
      bench.dut.run_until([&] { return late.plan.empty(); }, "packets", 20);
      bench.dut.run_until([&] { return bench.steps.back().what == 'r'; }, "answer", 20);
      CHECK(bench.rewound == 1);
      CHECK(bench.ask(5, pkg::RETRY_TIMEOUT, false, 0, false) == nothing(5));
      CHECK(bench.ask(5, pkg::RETRY_TIMEOUT, false) == went_back(5));
    }
  }
}

TEST_CASE("random requests follow the model") {
  Random random;
  struct Model {
    unsigned cnt = 0, rnr = 0;
    int retries = 0, rnrs = 0;
    bool in_effect = false, waiting = false, fresh = true, sent = false;
  };
  for (int round = 0; round < 8; ++round) {
    Bench bench(random());
    bench.request.stall(Stall::any(random));
    bench.result.stall(Stall::any(random));
    bench.rewind.stall(Stall::any(random));
    bench.rnr.stall(Stall::any(random));
    std::map<unsigned, Model> models;
    for (std::size_t n = 0; n < scaled(400); ++n) {
      const auto qp = static_cast<unsigned>(random.below(4)) + 7;
      Model& m = models[qp];
      if (m.fresh) {
        m = Model{};
        m.cnt = static_cast<unsigned>(random.below(8));
        m.rnr = static_cast<unsigned>(random.below(8));
        bench.limits(qp, m.cnt, m.rnr);
        bench.wait(qp, false);
      }
      if (m.waiting && random.chance(0.4)) {
        m.waiting = false;
        bench.wait(qp, false);
      }
      const bool progressed = m.fresh || random.chance(0.2);
      const auto cause = static_cast<pkg::retry_cause_e>(random.below(7));
      const auto code = static_cast<unsigned>(random.below(32));
      const bool sends = m.fresh || random.chance(0.7);
      m.sent |= sends;
      m.fresh = false;
      const auto got = bench.ask(qp, cause, progressed, code, sends);
      if (progressed) {
        m.retries = m.rnrs = 0;
        m.in_effect = false;
      }
      std::vector<Step> expected = went_back(qp);
      const bool nak = cause == pkg::RETRY_NAK_SEQUENCE || cause == pkg::RETRY_IMPLIED_NAK;
      if (nak || cause == pkg::RETRY_TIMEOUT) {
        if (m.waiting || (nak && m.in_effect) || (!m.sent && !(nak && progressed))) {
          expected = nothing(qp);
        } else if (++m.retries > static_cast<int>(m.cnt)) {
          expected = failed(qp, nak ? kNaked : kTimedOut);
          m.fresh = true;
        } else {
          m.in_effect = nak;
        }
      } else if (cause == pkg::RETRY_RNR) {
        // that of a later packet begins a wait of its own
        if (m.waiting && !progressed) {
          expected = nothing(qp);
        } else if (++m.rnrs > static_cast<int>(m.rnr) && m.rnr != 7) {
          expected = failed(qp, kRnr);
          m.fresh = true;
        } else {
          expected = waited(qp, code);
          m.in_effect = false;
          m.waiting = true;
          bench.wait(qp, true);
        }
      }
      REQUIRE(got == expected);
      if (got.front().what != 'r') m.sent = false;
    }
  }
}

TEST_CASE("a request without stalls takes at most eight cycles, and counts for its fence colour") {
  Bench bench(5);
  bench.limits(9, 7, 7);
  const auto start = bench.dut.cycle();
  for (int n = 0; n < 50; ++n) {
    pkg::retry_request_t r{};
    r.qp = 9;
    r.colour = 1;
    r.cause = pkg::RETRY_OVERTAKEN;
    bench.request.push(r);
  }
  bool busy = false;
  bench.dut.run_until(
      [&] {
        busy |= bench.dut->fence_busy_o == 2;
        REQUIRE((bench.dut->fence_busy_o & 1) == 0);
        return bench.steps.size() == 100;
      },
      "requests");
  CHECK(bench.dut.cycle() - start <= 50 * 8);
  CHECK(busy);
  bench.dut.tick(2);
  CHECK(bench.dut->fence_busy_o == 0);
}
