// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_ack_events: random operations of all sources on a few QPs against a model in 64-bit
// packet numbers (no wrap), compared row by row; which events count (wire.md 2.4); the merge of
// pending reasons; one event per cycle.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "requester/requester_bench.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace req = roci::sv::requester_pkg;
namespace hwif = roci::hwif;

namespace {

// What a QP was told, in packet numbers that never wrap.
struct Model {
  std::int64_t acked = 0, next = 0;
  unsigned type = 0;
  req::ack_pending_e pending = req::PENDING_NONE;
  unsigned rnr = 0;
  bool timer = false, underrun = false, local = false, sqd = false, drained = false;
  bool tx_drained = false;
  pkg::qp_state_e state = pkg::QPS_RESET;
  std::int64_t local_at = 0;
  unsigned local_index = 0, status = 0, vendor = 0;

  bool fatal() const { return pending == req::PENDING_FATAL; }
  bool sent(std::int64_t p) const { return acked <= p && p < next; }
  bool beyond(std::int64_t p) const { return local && p >= local_at; }   // at our own failure
  bool counts(std::int64_t p) const { return sent(p) && !beyond(p); }
  void fail_local(std::int64_t p, unsigned index, unsigned s, unsigned v) {
    if (fatal() || p < acked || (local && local_at <= p)) return;
    local = true;
    local_at = p;
    local_index = index;
    status = s;
    vendor = v;
  }
  void advance(std::int64_t to) {
    if (to == acked) return;
    acked = to;
    timer = false;
    pending = req::PENDING_NONE;
  }
};

struct Bench {
  Dut<DUT_CLASS> dut;
  Source<pkg::ack_token_t> event;
  Source<pkg::tx_refused_t> refused;
  Source<pkg::local_error_t> local;
  Source<pkg::timer_report_t> report;
  Source<req::ack_clear_t> clear;
  Source<Bits<pkg::qp_t_bits>> tx_drained;
  Broadcast<pkg::sent_t> sent;
  Broadcast<pkg::state_bcast_t> state;
  std::map<unsigned, Model> model;
  std::set<unsigned> pushed;
  unsigned ignored = 0;
  bool stale = false;                  // refused_stale_o in the cycle after the last refusal
  static constexpr std::int64_t kBase = 0xfffff0;

  struct Watch : Agent {
    Bench& bench;
    bool refused = false;
    explicit Watch(Bench& b) : bench(b) {}
    void sample() override {
      if (bench.dut->push_valid_o) bench.pushed.insert(bench.dut->push_qp_o);
      bench.ignored += bench.dut->ignored_o;
      if (refused) bench.stale = bench.dut->refused_stale_o;
      refused = bench.dut->refused_valid_i && bench.dut->refused_ready_o;
    }
    void drive() override {}
  } watch{*this};

  explicit Bench(std::uint64_t salt)
      : dut(salt),
        event("event", dut->ack_event_valid_i, dut->ack_event_ready_o, dut->ack_event_i),
        refused("refused", dut->refused_valid_i, dut->refused_ready_o, dut->refused_i),
        local("local", dut->local_error_valid_i, dut->local_error_ready_o, dut->local_error_i),
        report("report", dut->report_valid_i, dut->report_ready_o, dut->report_i),
        clear("clear", dut->clear_valid_i, dut->clear_ready_o, dut->clear_i),
        tx_drained("tx_drained", dut->tx_drained_valid_i, dut->tx_drained_ready_o,
                   dut->tx_drained_i),
        sent("sent", dut->sent_i),
        state("state", dut->state_i) {
    dut->init_valid_i = 0;
    dut->type_write_i = 0;
    dut->tx_done_valid_i = 0;
    dut->making_i = 0;
    dut.reset();
    dut.attach(event);
    dut.attach(refused);
    dut.attach(local);
    dut.attach(report);
    dut.attach(clear);
    dut.attach(tx_drained);
    dut.attach(sent);
    dut.attach(state);
    dut.attach(watch);
  }

  static std::uint32_t psn(std::int64_t number) { return psn_add(kBase, number); }

  void init(unsigned qp, unsigned type) {
    dut->type_write_i = 1;
    set(dut->type_qp_i, qp);
    set(dut->type_i, type);
    dut.tick();
    dut->type_write_i = 0;
    dut->init_valid_i = 1;
    set(dut->init_qp_i, qp);
    set(dut->init_psn_i, psn(0));
    dut.eval();
    dut.run_until([&] { return dut->init_ready_o != 0; }, "start");
    dut.tick();
    dut->init_valid_i = 0;
    const bool drained = model[qp].drained;    // belongs to the state, not to the send queue
    const bool tx_drained = model[qp].tx_drained;
    const auto state = model[qp].state;
    model[qp] = Model{};
    model[qp].state = state;
    model[qp].type = type;
    model[qp].drained = drained;
    model[qp].tx_drained = tx_drained;
  }

  void state_is(unsigned qp, pkg::qp_state_e s) {
    pkg::state_bcast_t bcast{};
    bcast.qp = static_cast<decltype(bcast.qp)>(qp);
    bcast.state = s;
    bcast.from = model[qp].state;
    state.push(bcast);
    model[qp].sqd = s == pkg::QPS_SQD;
    model[qp].state = s;
    if (s == pkg::QPS_RESET || s == pkg::QPS_INIT ||
        (s == pkg::QPS_RTS && bcast.from == pkg::QPS_SQE)) {
      model[qp].drained = model[qp].tx_drained = false;
    }
  }

  void settle() {
    dut.run_until(
        [&] {
          return event.empty() && refused.empty() && local.empty() && report.empty() &&
                 clear.empty() && tx_drained.empty() && sent.empty() && state.empty();
        },
        "operations taken");
    dut.tick(24);
  }

  void tx_done(unsigned qp, pkg::tx_fate_e fate, pkg::tx_source_e source, std::int64_t at,
               unsigned index) {
    pkg::tx_done_t done{};
    done.qp = static_cast<decltype(done.qp)>(qp);
    done.fate = fate;
    done.source = source;
    done.psn = psn(at);
    done.wqe_index = static_cast<std::uint16_t>(index);
    done.pack(dut->tx_done_i);
    dut->tx_done_valid_i = 1;
    dut.tick();
    dut->tx_done_valid_i = 0;
  }

  req::ack_events_t row(unsigned qp) {
    set(dut->walk_qp_i, qp);
    dut.tick();
    return req::ack_events_t::unpack(dut->walk_events_o);
  }

  void check(unsigned qp) {
    const auto got = row(qp);
    const Model& m = model[qp];
    INFO("qp " << qp << " acked " << m.acked << " next " << m.next << " " << got.to_string());
    REQUIRE(got.acked_psn == psn(m.acked));
    const auto details = req::ack_details_t::unpack(dut->walk_details_o);
    REQUIRE(got.pending == m.pending);
    if (m.pending == req::PENDING_RNR) REQUIRE(details.rnr_code == m.rnr);
    REQUIRE(got.timer == m.timer);
    REQUIRE(got.underrun == m.underrun);
    REQUIRE(got.drained == m.drained);
    REQUIRE(got.tx_drained == m.tx_drained);
    REQUIRE(got.unreliable == (m.type != 0));
    REQUIRE(got.local_valid == m.local);
    if (m.local) {
      REQUIRE(got.local_psn == psn(m.local_at));
      REQUIRE(details.local_index == m.local_index);
    }
    if (m.local || m.fatal()) {
      REQUIRE(details.status == m.status);
      REQUIRE(details.vendor_status == m.vendor);
    }
  }
};

pkg::ack_token_t token(unsigned qp, pkg::ack_event_kind_e kind, std::int64_t at,
                       std::int64_t trigger, unsigned syndrome, bool error) {
  pkg::ack_token_t t{};
  t.qp = static_cast<decltype(t.qp)>(qp);
  t.error = error;
  t.ack_event.kind = kind;
  t.ack_event.psn = Bench::psn(at);
  t.ack_event.msn = Bench::psn(trigger);
  t.ack_event.syndrome = static_cast<std::uint8_t>(syndrome);
  return t;
}

constexpr unsigned status(hwif::CqeStatus s) { return static_cast<unsigned>(s); }
constexpr unsigned vendor(hwif::VendorStatus s) { return static_cast<unsigned>(s); }

/// The rules of wire.md 2.4 and architecture.md 3.1 for one event.
void apply(Model& m, pkg::ack_event_kind_e kind, std::int64_t p, std::int64_t trigger,
           unsigned syndrome, bool error, unsigned& ghosts) {
  if (kind == pkg::ACK_EVENT_DRAINED) {
    m.drained = true;
    return;
  }
  const bool good = m.sent(p) && (kind != pkg::ACK_EVENT_IMPLIED_NAK || m.sent(trigger));
  if (!good) {
    ++ghosts;
    return;
  }
  if (m.fatal()) return;
  if (m.beyond(p)) {
    m.advance(m.local_at);               // whatever it says, all below that arrived
    return;
  }
  const std::int64_t before = m.acked;
  const auto become = [&](req::ack_pending_e pending, bool strong) {
    m.advance(p);
    if (before != p || m.pending == req::PENDING_NONE || strong) m.pending = pending;
  };
  const auto fatal = [&](unsigned s, unsigned v) {
    become(req::PENDING_FATAL, true);
    m.local = false;
    m.status = s;
    m.vendor = v;
  };
  if (kind == pkg::ACK_EVENT_READ && error) {
    fatal(status(hwif::CqeStatus::LOC_QP_OP_ERR), vendor(hwif::VendorStatus::PAYLOAD_WRITE_BUS));
    return;
  }
  switch (kind) {
    case pkg::ACK_EVENT_ACK:
    case pkg::ACK_EVENT_READ: m.advance(p + 1); break;
    case pkg::ACK_EVENT_NAK_SEQUENCE: become(req::PENDING_SEQUENCE, false); break;
    case pkg::ACK_EVENT_IMPLIED_NAK: become(req::PENDING_IMPLIED, false); break;
    case pkg::ACK_EVENT_RNR:
      become(req::PENDING_RNR, true);
      m.rnr = syndrome & 31;
      break;
    case pkg::ACK_EVENT_NAK_FATAL: {
      static const std::map<unsigned, std::pair<hwif::CqeStatus, hwif::VendorStatus>> codes = {
          {0x61, {hwif::CqeStatus::REM_INV_REQ_ERR, hwif::VendorStatus::NAK_INVALID_REQUEST}},
          {0x62, {hwif::CqeStatus::REM_ACCESS_ERR, hwif::VendorStatus::NAK_REMOTE_ACCESS}},
          {0x63, {hwif::CqeStatus::REM_OP_ERR, hwif::VendorStatus::NAK_REMOTE_OPERATIONAL}}};
      const auto& [s, v] = codes.at(syndrome);
      fatal(status(s), vendor(v));
      break;
    }
    default: fatal(syndrome & 0x7f, Bench::psn(trigger) & 0xff);
  }
}

}  // namespace

TEST_CASE("rows follow the rules, whatever the order of the sources") {
  Random random;
  for (int round = 0; round < 8; ++round) {
    Bench bench(random());
    const unsigned qps = 3;
    for (unsigned qp = 0; qp < qps; ++qp) {
      bench.state_is(qp, random.chance(0.5) ? pkg::QPS_RESET : pkg::QPS_INIT);
      bench.settle();
      bench.init(qp, qp);                // RC, UC, UD
    }
    unsigned ghosts = 0;
    for (std::size_t n = 0; n < scaled(1500); ++n) {
      const auto qp = static_cast<unsigned>(random.below(qps));
      Model& m = bench.model[qp];
      // mostly near the window's edges, inside or outside
      const std::int64_t span = m.next - m.acked;
      std::int64_t p = m.acked + static_cast<std::int64_t>(random.between(0, 6)) - 3;
      if (random.chance(0.5)) p = m.next + static_cast<std::int64_t>(random.between(0, 4)) - 3;
      if (span > 0 && random.chance(0.3)) {
        p = m.acked + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(span)));
      }
      bench.pushed.clear();
      bool expect_push = true;
      const Model old = m;
      const auto choice = random.below(13);
      const bool making = random.chance(0.3);
      const auto making_qp = static_cast<unsigned>(random.below(qps));
      bench.dut->making_i = making;
      set(bench.dut->making_qp_i, making_qp);
      switch (choice) {
        case 0:
        case 1:
        case 2: {
          pkg::sent_t sent{};
          sent.qp = static_cast<decltype(sent.qp)>(qp);
          if (m.next - m.acked < 100000) m.next += static_cast<std::int64_t>(random.below(20));
          sent.next_psn = Bench::psn(m.next);
          bench.sent.push(sent);
          expect_push = false;
          break;
        }
        case 3:
        case 4:
        case 5: {
          const auto kind = static_cast<pkg::ack_event_kind_e>(random.below(8));
          if (kind == pkg::ACK_EVENT_NAK_FATAL && random.chance(0.8)) continue;
          if (kind == pkg::ACK_EVENT_LOCAL_ERROR && random.chance(0.8)) continue;
          const std::int64_t trigger = p + static_cast<std::int64_t>(random.below(4));
          const unsigned syndrome = kind == pkg::ACK_EVENT_NAK_FATAL
                                        ? 0x61u + static_cast<unsigned>(random.below(3))
                                        : static_cast<unsigned>(random.below(256));
          const bool error = random.chance(0.02);
          bench.event.push(token(qp, kind, p, trigger, syndrome, error));
          const unsigned before = ghosts;
          apply(m, kind, p, trigger, syndrome, error, ghosts);
          expect_push = before == ghosts && (!old.fatal() || kind == pkg::ACK_EVENT_DRAINED);
          break;
        }
        case 6: {
          pkg::timer_report_t report{};
          report.qp = static_cast<decltype(report.qp)>(qp);
          const std::int64_t at = m.acked - static_cast<std::int64_t>(random.below(2));
          report.oldest_psn = Bench::psn(at);
          report.is_rnr = random.chance(0.2);
          bench.report.push(report);
          expect_push = !report.is_rnr && at == m.acked && m.next != m.acked && !m.fatal() &&
                        m.type == 0;
          if (expect_push) m.timer = true;
          break;
        }
        case 7: {
          const auto fate = static_cast<pkg::tx_fate_e>(random.below(3));
          const auto source = random.chance(0.2) ? pkg::TX_RESPONSE : pkg::TX_REQUEST;
          const auto index = static_cast<unsigned>(random.below(65536));
          if (fate == pkg::TX_BUS_ERROR && random.chance(0.8)) continue;
          bench.tx_done(qp, fate, source, p, index);
          expect_push = false;
          if (source == pkg::TX_RESPONSE) break;
          if (fate == pkg::TX_SENT && m.type != 0 && m.counts(p)) {
            m.advance(p + 1);
            expect_push = true;
          }
          if (fate == pkg::TX_UNDERRUN && m.counts(p)) expect_push = m.underrun = true;
          if (fate == pkg::TX_BUS_ERROR) {
            m.fail_local(p, index, status(hwif::CqeStatus::LOC_QP_OP_ERR),
                         vendor(hwif::VendorStatus::PAYLOAD_READ_BUS));
            expect_push = m.local && (!old.local || m.local_at != old.local_at);
          }
          break;
        }
        case 8: {
          if (random.chance(0.7)) continue;
          const auto index = static_cast<std::uint16_t>(random.below(65536));
          if (random.chance(0.5)) {
            pkg::tx_refused_t refused{};
            refused.qp = static_cast<decltype(refused.qp)>(qp);
            refused.psn = Bench::psn(p);
            refused.wqe_index = index;
            refused.status = pkg::XLAT_BAD_BOUNDS;
            bench.refused.push(refused);
            bench.settle();
            REQUIRE(bench.stale == (p < m.acked));
            m.fail_local(p, index, status(hwif::CqeStatus::LOC_PROT_ERR),
                         vendor(hwif::VendorStatus::KEY_BOUNDS));
          } else if (random.chance(0.5)) {
            // what was sent did not ask for an acknowledgement
            pkg::local_error_t unasked{};
            unasked.qp = static_cast<decltype(unasked.qp)>(qp);
            unasked.psn = Bench::psn(m.next);
            bench.local.push(unasked);
            if (m.next != m.acked) m.underrun = true;
            expect_push = m.next != m.acked;
            break;
          } else {
            pkg::local_error_t error{};
            error.qp = static_cast<decltype(error.qp)>(qp);
            error.psn = Bench::psn(p);
            error.wqe_index = index;
            error.status = 2;
            error.vendor_status = 0x77;
            bench.local.push(error);
            m.fail_local(p, index, 2, 0x77);
          }
          expect_push = m.local && (!old.local || m.local_at != old.local_at);
          break;
        }
        case 9: {
          req::ack_clear_t clear{};
          clear.qp = static_cast<decltype(clear.qp)>(qp);
          clear.acked_psn = Bench::psn(m.acked - static_cast<std::int64_t>(random.below(2)));
          clear.pending = random.chance(0.8) ? m.pending : req::PENDING_SEQUENCE;
          clear.failure = random.chance(0.1);
          clear.restart = clear.failure && clear.acked_psn == Bench::psn(m.acked);
          if (clear.restart && random.chance(0.5)) {       // both write how far it went
            pkg::sent_t sent{};
            sent.qp = static_cast<decltype(sent.qp)>((qp + 1) % qps);
            sent.next_psn = Bench::psn(bench.model[sent.qp].next);
            bench.sent.push(sent);
          }
          bench.clear.push(clear);
          if (clear.restart) m.next = m.acked;
          if (clear.acked_psn == Bench::psn(m.acked) && clear.pending == m.pending && !m.fatal()) {
            m.pending = req::PENDING_NONE;
          }
          m.timer = m.underrun = false;
          if (clear.failure) m.local = false;
          expect_push = false;
          break;
        }
        case 10: {
          bench.state_is(qp, m.state == pkg::QPS_SQE && random.chance(0.5) ? pkg::QPS_RTS
                             : random.chance(0.6) ? pkg::QPS_SQD
                                                : static_cast<pkg::qp_state_e>(random.below(7)));
          break;
        }
        case 11: {
          if (random.chance(0.5)) continue;
          bench.tx_drained.push(Bits<pkg::qp_t_bits>(qp));
          m.tx_drained = true;
          break;
        }
        default: {
          if (!m.fatal() && !m.local && !random.chance(0.02)) continue;
          if (!random.chance(0.3)) continue;
          bench.init(qp, m.type);
          expect_push = false;
        }
      }
      bench.settle();
      bench.check(qp);
      // as of the last operation of the QP
      if (choice == 10 || (choice >= 3 && expect_push)) {
        const bool idle = m.sqd && m.acked == m.next && !(making && making_qp == qp);
        CHECK(bench.row(qp).idle == idle);
      }
      INFO("operation " << choice << " at " << p);
      CHECK(bench.pushed == (expect_push ? std::set<unsigned>{qp} : std::set<unsigned>{}));
    }
    CHECK(bench.ignored == ghosts);
    CHECK(ghosts > 10);
  }
}

// A retransmission was refused here, its first copy is on its way: what the peer or a READ says of
// it, or of anything behind it, still tells that all before it arrived. Nothing else may come.
TEST_CASE("an event behind a failure of our own acknowledges all before it, and nothing else") {
  const unsigned code = vendor(hwif::VendorStatus::KEY_BOUNDS);
  for (unsigned kind = 0; kind < 7; ++kind) {
    for (const std::int64_t at : {4, 5, 9}) {              // the failure is at 4
      for (const bool error : {false, true}) {
        CAPTURE(kind, at, error);
        Bench bench(kind);
        bench.init(1, 0);
        pkg::sent_t sent{};
        sent.qp = 1;
        sent.next_psn = Bench::psn(10);
        bench.sent.push(sent);
        pkg::tx_refused_t refused{};
        refused.qp = 1;
        refused.psn = Bench::psn(4);
        refused.wqe_index = 77;
        refused.status = pkg::XLAT_BAD_BOUNDS;
        bench.refused.push(refused);
        bench.settle();
        bench.pushed.clear();
        bench.event.push(token(1, static_cast<pkg::ack_event_kind_e>(kind), at, at, 0x62, error));
        bench.settle();
        const auto row = bench.row(1);
        CHECK(row.acked_psn == Bench::psn(4));
        CHECK(row.pending == req::PENDING_NONE);
        CHECK(row.local_valid);
        CHECK(row.local_psn == Bench::psn(4));
        const auto details = req::ack_details_t::unpack(bench.dut->walk_details_o);
        CHECK(details.local_index == 77);
        CHECK(details.vendor_status == code);
        CHECK(bench.pushed == std::set<unsigned>{1});
        CHECK(bench.ignored == 0);
        // and again it changes nothing
        bench.event.push(token(1, static_cast<pkg::ack_event_kind_e>(kind), at, at, 0x62, error));
        bench.settle();
        CHECK(bench.row(1).acked_psn == Bench::psn(4));
        CHECK(bench.row(1).local_valid);
      }
    }
  }
}

// SQD while the first packet of a message is made, for any time: until it is told as sent it counts
// by itself, and from then on by its PSN. No cycle lies between.
TEST_CASE("a packet that is made while SQD comes is outstanding") {
  Random random;
  for (unsigned before = 0; before < 3; ++before) {
    for (unsigned after = 0; after < 8; ++after) {
      CAPTURE(before, after);
      Bench bench(random());
      bench.init(3, 0);
      bench.init(4, 0);
      bench.dut->making_i = 1;
      set(bench.dut->making_qp_i, 3);
      bench.dut.tick(before);
      for (const auto qp : {3u, 4u}) {
        pkg::state_bcast_t state{};
        state.qp = static_cast<decltype(state.qp)>(qp);
        state.state = pkg::QPS_SQD;
        bench.state.push(state);
      }
      bench.dut.tick(after);
      pkg::sent_t sent{};
      sent.qp = 3;
      sent.next_psn = Bench::psn(1);
      bench.sent.push(sent);
      bench.dut.tick();                      // the last cycle in which it is made
      bench.dut->making_i = 0;
      bench.settle();
      CHECK_FALSE(bench.row(3).idle);
      CHECK(bench.row(4).idle);
      bench.event.push(token(3, pkg::ACK_EVENT_ACK, 0, 0, 0, false));
      bench.settle();
      CHECK(bench.row(3).idle);
    }
  }
}

// The end of the last life may be told in the cycles before.
TEST_CASE("that all packets of a QP left is not forgotten with the INIT before its ERR") {
  for (unsigned between = 0; between < 6; ++between) {
    CAPTURE(between);
    Bench bench(between);
    bench.init(1, 0);
    bench.settle();
    // the other QPs' changes fill the line in front of it
    for (const unsigned qp : {2u, 3u, 1u}) bench.state_is(qp, pkg::QPS_INIT);
    bench.state_is(1, pkg::QPS_ERR);
    pkg::tx_done_t done{};                   // for a while nothing else is taken
    done.source = pkg::TX_REQUEST;
    done.pack(bench.dut->tx_done_i);
    bench.dut->tx_done_valid_i = 1;
    bench.dut.run_until([&] { return bench.state.empty(); }, "state told");
    bench.dut.tick(between);
    bench.tx_drained.push(Bits<pkg::qp_t_bits>(1));
    bench.dut.tick(2 + between);
    bench.dut->tx_done_valid_i = 0;
    bench.settle();
    CHECK(bench.row(1).tx_drained);
    CHECK_FALSE(bench.row(1).drained);
    CHECK(bench.pushed.count(1) == 1);
    bench.state_is(1, pkg::QPS_RESET);
    bench.settle();
    CHECK_FALSE(bench.row(1).tx_drained);
  }
}

TEST_CASE("events back to back keep their order, one per cycle beside packets that leave") {
  Bench bench(3);
  for (unsigned qp = 0; qp < 2; ++qp) bench.init(qp, 0);
  for (unsigned qp = 0; qp < 2; ++qp) {
    pkg::sent_t sent{};
    sent.qp = static_cast<decltype(sent.qp)>(qp);
    sent.next_psn = Bench::psn(1000);
    bench.sent.push(sent);
  }
  bench.settle();
  Random random;
  std::int64_t acked[2] = {0, 0};
  std::size_t count = 0;
  while (acked[0] < 900 && acked[1] < 900) {
    const auto qp = static_cast<unsigned>(random.below(2));
    const auto step = static_cast<std::int64_t>(random.below(3));
    bench.event.push(token(qp, pkg::ACK_EVENT_ACK, acked[qp] + step, 0, 0, false));
    acked[qp] += step + 1;
    ++count;
  }
  const auto start = bench.dut.cycle();
  pkg::tx_done_t done{};                     // acknowledgements to the peer leave, one per cycle
  done.source = pkg::TX_RESPONSE;
  done.pack(bench.dut->tx_done_i);
  bench.dut->tx_done_valid_i = 1;
  bench.dut.run_until([&] { return bench.event.empty(); }, "events");
  bench.dut->tx_done_valid_i = 0;
  CHECK(bench.dut.cycle() - start <= count + 2);
  bench.dut.tick(3);
  for (unsigned qp = 0; qp < 2; ++qp) CHECK(bench.row(qp).acked_psn == Bench::psn(acked[qp]));
}
