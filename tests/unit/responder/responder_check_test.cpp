// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_check: the pipeline: random requests of few QPs (own RQ and a shared one) in any order
// and at full rate must give the actions of RxModel in frame order, whatever stalls, lands late,
// changes state or is read by firmware meanwhile. Reference for the rules: RxModel; the rates are
// checked.
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "responder/responder_actions.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
using namespace roci::test::responder;
namespace rc = roci::sv::roci_config_pkg;

/// queue_rq_fetch as check sees it: answers a look one cycle later; receives land after a while.
class Queues : public Agent {
 public:
  struct Queue {
    std::uint64_t posted = 0, landed = 0, taken = 0;
    unsigned place = 0;                   // its eight slots
  };
  /// Bytes of a receive: some are short.
  static std::uint32_t total(unsigned number, std::uint64_t index) {
    const std::uint64_t mix = (number * 7919u + index) * 2654435761u >> 8;
    return mix % 4 == 0 ? static_cast<std::uint32_t>(mix % 3000) : 1u << 31;
  }

  explicit Queues(Dut<DUT_CLASS>& dut, std::uint64_t salt) : dut_(dut), random_(salt) {}

  Queue& operator[](unsigned number) {
    const auto [at, fresh] = queues_.try_emplace(number);
    if (fresh) at->second.place = static_cast<unsigned>(queues_.size() - 1) & 15;
    return at->second;
  }
  double landing = 0.3;                   // chance of a landing per cycle
  std::deque<Receive> fates;              // counted: requests that were lost, all drops of UC and UD

  void sample() override {
    if (dut_->take_valid_o) {
      const auto take = rp::rq_entry_t::unpack(dut_->take_o);
      Queue& q = queues_[take.rq];
      if (q.taken == q.landed) throw Failure("a receive was taken that has not landed");
      ++q.taken;
      if (take.index != (q.taken & 0xffff)) throw Failure("wrong index taken");
    }
    if (landed_) {                                 // written in this cycle
      Queue& q = queues_[landed_->rq];
      totals_[8 * q.place + (q.landed & 7)] = total(landed_->rq, q.landed);
      ++q.landed;
    }
    if (dut_->count_no_receive_o) fates.push_back(Receive::none);
    if (dut_->count_lost_o) fates.push_back(Receive::lost);
    if (dut_->count_too_long_o || dut_->count_given_up_o) fates.push_back(Receive::taken);
    if (dut_->total_read_o) total_at_ = dut_->total_slot_o >> 1;
    total_now_ = dut_->total_read_o;
    if (dut_->look_valid_o) looked_ = dut_->look_queue_o;
    look_now_ = dut_->look_valid_o;
  }
  void drive() override {
    // the RAMs forward what is written in the cycle of the read
    if (look_now_) {
      const Queue& q = queues_[looked_];
      look_.ready = q.landed != q.taken;
      look_.empty = q.posted == q.taken;
      look_.index = static_cast<std::uint16_t>(q.taken);
      look_.slot = static_cast<decltype(look_.slot)>(2 * (8 * q.place + (q.taken & 7)));
    }
    // nothing defined in a slot without a receive
    if (total_now_) {
      const auto found = totals_.find(total_at_);
      dut_->total_i = found != totals_.end() ? found->second : static_cast<IData>(random_());
    }
    look_.pack(dut_->look_i);
    rp::rq_landed_t landed{};
    gap_ = !gap_;
    landed_.reset();
    if (gap_ && random_.chance(landing)) {
      std::vector<unsigned> some;
      for (auto& [number, q] : queues_) {
        // eight slots
        if (q.landed != q.posted && q.landed - q.taken < 8) some.push_back(number);
      }
      if (!some.empty()) {
        landed.valid = true;
        landed.rq = static_cast<decltype(landed.rq)>(random_.pick(some));
        landed_ = landed;
      }
    }
    landed.pack(dut_->landed_i);
  }

 private:
  Dut<DUT_CLASS>& dut_;
  Random random_;
  std::map<unsigned, Queue> queues_;
  rp::rq_look_t look_{};
  bool look_now_ = false, gap_ = false;
  unsigned looked_ = 0;
  std::optional<rp::rq_landed_t> landed_;
  std::map<unsigned, std::uint32_t> totals_;
  bool total_now_ = false;
  unsigned total_at_ = 0;
};

struct Bench {
  explicit Bench(std::uint64_t salt) : random(salt), dut(salt), queues(dut, salt) {
    dut->colour_i = 0;
    dut->pressure_i = 0;
    dut->flush_valid_i = 0;
    rp::ctx_req_t{}.pack(dut->ctx_i);
    rp::state_bcast_t{}.pack(dut->state_i);
    rp::reads_answered_t{}.pack(dut->answered_i);
    actions.collect();
    actions.on_transfer([this](const rs::action_t& a) { action(a); });
    events.collect();
    packets.on_transfer([this](const rp::rx_packet_t& p) { frames.push_back(p); });
    dut.reset();
    dut.attach(queues);
    dut.attach(packets);
    dut.attach(actions);
    dut.attach(events);
    dut.run_until([&] { return dut->ready_o != 0; }, "tables cleared");
  }
  std::uint64_t ctx(bool write, unsigned column, unsigned qp, unsigned word,
                    std::uint64_t data = 0) {
    return context_access<rp::ctx_req_t, rp::ctx_rsp_t>(
        dut, [this] { dut.tick(); }, column, write, qp, word, data, 500);
  }
  void state(unsigned qp, rp::qp_state_e to) {
    rp::state_bcast_t s{true, static_cast<decltype(s.qp)>(qp), to};
    s.pack(dut->state_i);
    dut.tick();
    rp::state_bcast_t{}.pack(dut->state_i);
    dut.tick();
    states[qp] = to;
  }
  void add(const QpConfig& c, std::uint32_t psn) {
    models[c.qp] = RxModel(c, psn);
    ctx(true, hw::CTX_COLUMN_QP_RQ, c.qp, 0,
        c.cq | std::uint64_t{c.pd} << 16 | std::uint64_t{c.qpn} << 32 |
            std::uint64_t{c.type} << 56 | std::uint64_t{c.mtu_code} << 60);
    ctx(true, hw::CTX_COLUMN_QP_RQ, c.qp, 1,
        c.srqn | std::uint64_t{c.srq >= 0} << 24 | std::uint64_t{14} << 32 |
            std::uint64_t{c.rnr_timer} << 40 | std::uint64_t{c.replay_log2} << 45 |
            std::uint64_t{c.replay_base} << 48);
    ctx(true, hw::CTX_COLUMN_QP_RQ_DYN, c.qp, 0, psn);
    ctx(true, hw::CTX_COLUMN_QP_RQ_DYN, c.qp, 1, (psn - 1) & psn_mask);
    answered(c.qp, 0);
    state(c.qp, rp::QPS_RTS);
  }
  void answered(unsigned qp, std::uint64_t reads) {
    rp::reads_answered_t{true, static_cast<decltype(rp::reads_answered_t::qp)>(qp),
                         static_cast<std::uint8_t>(reads)}.pack(dut->answered_i);
    dut.tick();
    rp::reads_answered_t{}.pack(dut->answered_i);
  }
  unsigned queue_of(const QpConfig& c) const {
    return c.srq >= 0 ? (1u << rc::QP_BITS) + static_cast<unsigned>(c.srq) : c.qp;
  }
  void action(const rs::action_t& a) {
    if (a.kind == rs::ACTION_FLUSH) {
      ++flushes;
      return;
    }
    if (frames.empty()) throw Failure("action without a frame");
    const auto p = frames.front();
    frames.pop_front();
    RxModel& m = models.at(p.qp);
    if (states[p.qp] == rp::QPS_ERR && !a.respond_valid && a.kind == rs::ACTION_DROP) return;
    const unsigned op = p.headers.opcode & 0x1f;
    auto receive = Receive::taken;
    if (m.in_order(p.headers.psn) && takes_wqe(op) && a.respond_valid &&
        a.respond.kind == rp::RESPOND_NAK) {
      if ((a.respond.syndrome & 0xe0) == 0x20) receive = Receive::none;
      if (a.respond.syndrome == 0x60) receive = Receive::lost;
    }
    // no answer tells of UC and UD: the counters do
    if ((m.config.type != 0 && a.kind == rs::ACTION_DROP) || receive == Receive::lost) {
      if (queues.fates.empty()) throw Failure("dropped, and not counted");
      receive = queues.fates.front();
      queues.fates.pop_front();
    }
    std::uint64_t& next = taken[queue_of(m.config)];
    ReceiveQueue queue;
    queue.posted.push_back({static_cast<std::uint32_t>(next),
                            {{0, Queues::total(queue_of(m.config), next), 1}}, 1, false});
    const auto items = m.process(p, receive, queue, m.reads);
    rnr += receive == Receive::none && m.config.type == 0;
    lost += receive == Receive::lost;
    m.found.clear();
    next += queue.taken;
    const auto wrong = action_differs(a, items, op, queue.taken != 0);
    if (!wrong.empty()) throw Failure(wrong);
  }
  /// Waits until all frames have given their action.
  void settle() {
    dut.run_until([&] { return packets.empty() && frames.empty(); }, "all actions", 20000);
  }

  Random random;
  Dut<DUT_CLASS> dut;
  Queues queues;
  Source<rp::rx_packet_t> packets{"packet", dut->packet_valid_i, dut->packet_ready_o,
                                  dut->packet_i};
  Sink<rs::action_t> actions{"action", dut->action_valid_o, dut->action_ready_i, dut->action_o};
  Sink<rp::event_t> events{"event", dut->event_valid_o, dut->event_ready_i, dut->event_o};
  std::map<unsigned, RxModel> models;
  std::map<unsigned, rp::qp_state_e> states;
  std::deque<rp::rx_packet_t> frames;
  std::uint64_t rnr = 0, lost = 0, flushes = 0;
  std::map<unsigned, std::uint64_t> taken;       // receives of each queue
};

QpConfig config(unsigned qp, int srq = -1) {
  QpConfig c;
  c.qp = qp;
  c.fn = 1;
  c.pd = qp + 1;
  c.cq = qp + 2;
  c.qpn = 0x770000 + qp;
  c.replay_log2 = 7;                            // READs are told as answered only now and then
  c.srq = srq;
  c.srqn = srq < 0 ? 0 : 0x3000 * (1u << rc::SRQ_BITS) + static_cast<unsigned>(srq);
  return c;
}
}  // namespace

TEST_CASE("random requests of few QPs at full rate") {
  Random random;
  std::uint64_t rnr = 0, lost = 0, no_receive = 0, too_long = 0;
  for (int run = 0; run < 8; ++run) {
    Bench b(random());
    b.actions.stall(run % 2 ? Stall::any(random) : Stall(0));
    b.packets.stall(run % 4 == 3 ? Stall::any(random) : Stall(0));
    b.queues.landing = run % 3 == 2 ? 0.02 : 0.6;
    // QPs 9 and 10 share a receive queue
    const unsigned qps[] = {3, 7, 9, 10, 12, 13};
    for (const unsigned qp : qps) {
      auto c = config(qp, qp == 9 || qp == 10 || qp == 13 ? 2 : -1);
      c.type = qp == 7 || qp == 10 ? 1 : qp >= 12 ? 2 : 0;
      b.add(c, static_cast<std::uint32_t>(random.bits(24)));
    }
    PacketSource source(random);
    for (std::size_t round = 0; round < scaled(120); ++round) {
      // in a burst the peer does not know the answers: it goes on as if all were well
      std::map<unsigned, RxModel> plan = b.models;
      for (std::uint64_t n = random.between(1, 30); n != 0; --n) {
        const unsigned qp = qps[random.below(run % 2 ? 6 : 2)];
        auto p = source.next(plan[qp]);
        p.state = rp::QPS_RTS;
        ReceiveQueue queue;
        fill(queue, 1);
        plan[qp].process(p, Receive::taken, queue, plan[qp].reads);
        b.packets.push(p);
      }
      for (const unsigned qp : qps) {
        auto& q = b.queues[b.queue_of(b.models[qp].config)];
        if (random.chance(0.7)) q.posted = std::max(q.posted, q.taken + random.below(12));
      }
      for (std::uint64_t n = random.below(60); n != 0; --n) {
        b.dut->pressure_i = random.chance(0.02);
        // READs count as answered at once
        for (const unsigned qp : qps) b.answered(qp, b.models[qp].reads);
      }
      b.dut->pressure_i = 0;
      b.settle();
      for (const unsigned qp : qps) {
        const RxModel& m = b.models[qp];
        b.answered(qp, m.reads);
        const std::uint64_t word0 = b.ctx(false, hw::CTX_COLUMN_QP_RQ_DYN, qp, 0);
        REQUIRE((word0 & psn_mask) == m.next_psn);
        REQUIRE((word0 >> 24 & psn_mask) == m.msn);
        REQUIRE((word0 >> 51 & 1) == m.closed);
        REQUIRE((word0 >> 53 & 1) == m.held);
        if (m.config.type == 0) {
          REQUIRE((b.ctx(false, hw::CTX_COLUMN_QP_RQ_DYN, qp, 1) & psn_mask) == m.acked_psn);
        }
        if (m.closed) {
          b.state(qp, rp::QPS_RESET);
          b.add(m.config, static_cast<std::uint32_t>(random.bits(24)));
        }
      }
    }
    for (const auto& [qp, m] : b.models) {
      if (m.config.type != 0) no_receive += m.no_receive, too_long += m.too_long;
    }
    rnr += b.rnr;
    lost += b.lost;
    CHECK(b.events.transfers() == 0);            // none was in RTR
  }
  CHECK(rnr > 10);
  CHECK(lost > 0);
  CHECK(no_receive > 10);
  CHECK(too_long > 10);
}

TEST_CASE("a request of a QP follows another one by two cycles, of other QPs by one") {
  for (const unsigned spread : {1u, 2u, 8u}) {
    Bench b(1);
    for (unsigned qp = 0; qp < spread; ++qp) b.add(config(qp), 0);
    const std::uint64_t count = 400;
    for (std::uint64_t n = 0; n < count; ++n) {
      rp::rx_packet_t p{};
      p.qp = static_cast<decltype(p.qp)>(n % spread);
      p.fn = 1;
      p.state = rp::QPS_RTS;
      p.headers.opcode = WRITE_ONLY;
      p.headers.psn = static_cast<std::uint32_t>(n / spread);
      b.packets.push(p);
    }
    const std::uint64_t start = b.dut.cycle();
    b.settle();
    const double cycles = static_cast<double>(b.dut.cycle() - start) / count;
    INFO(spread << " QPs: " << cycles << " cycles per request");
    CHECK(cycles <= (spread == 1 ? 2.05 : 1.05));
  }
}

TEST_CASE("waits for a receive on its way, goes on when it lands, or when the QP dies") {
  Bench b(2);
  b.queues.landing = 0;
  b.add(config(3), 10);
  b.add(config(4), 20);
  b.queues[3].posted = 1;
  rp::rx_packet_t p{};
  p.qp = 3;
  p.fn = 1;
  p.state = rp::QPS_RTS;
  p.headers.opcode = SEND_ONLY;
  p.headers.psn = 10;
  b.packets.push(p);
  auto other = p;
  other.qp = 4;
  other.headers.opcode = WRITE_ONLY;
  other.headers.psn = 20;
  b.packets.push(other);
  b.dut.tick(100);
  CHECK(b.frames.size() == 2);                    // frame order: the other one waits too
  CHECK(b.dut->count_wait_o);
  b.queues.landing = 1;
  b.settle();
  CHECK(b.queues[3].taken == 1);

  b.queues.landing = 0;
  b.queues[3].posted = 2;
  p.headers.psn = 11;
  b.packets.push(p);
  b.dut.tick(50);
  CHECK(b.frames.size() == 1);
  b.states[3] = rp::QPS_ERR;
  b.state(3, rp::QPS_ERR);
  b.settle();
  CHECK(b.queues[3].taken == 1);
}

TEST_CASE("rows are read and written while the host holds the requests up") {
  Bench b(Random{}());
  for (unsigned qp = 0; qp < 8; ++qp) b.add(config(qp), 100 * qp);
  const auto row = [&](unsigned qp, std::uint64_t value) {       // a QP that no frame is of
    for (unsigned word = 0; word < 2; ++word) {
      b.ctx(true, hw::CTX_COLUMN_QP_RQ_DYN, qp, word, (value + word) & psn_mask);
      b.ctx(true, hw::CTX_COLUMN_QP_RQ, qp, word, (value + 2 + word) & 0x3f);
    }
    for (unsigned word = 0; word < 2; ++word) {
      REQUIRE((b.ctx(false, hw::CTX_COLUMN_QP_RQ_DYN, qp, word) & psn_mask) ==
              ((value + word) & psn_mask));
      REQUIRE((b.ctx(false, hw::CTX_COLUMN_QP_RQ, qp, word) & 0x3f) == ((value + 2 + word) & 0x3f));
    }
  };
  std::uint32_t sent = 0;
  const auto frames = [&](unsigned count) {
    for (unsigned n = 0; n < count; ++n, ++sent) {
      rp::rx_packet_t p{};
      p.qp = static_cast<decltype(p.qp)>(sent % 8);
      p.fn = 1;
      p.state = rp::QPS_RTS;
      p.headers.opcode = WRITE_ONLY;
      p.headers.psn = 100 * (sent % 8) + sent / 8;
      b.packets.push(p);
    }
  };
  // all stages are full, and nothing moves
  b.actions.stall(Stall(1.0));
  frames(16);
  b.dut.tick(50);
  const std::size_t held = b.packets.pending();
  REQUIRE(held > 0);
  const std::uint64_t start = b.dut.cycle();
  row(20, 0x1234);
  CHECK(b.dut.cycle() - start <= 8 * 8);
  for (unsigned qp = 0; qp < 8; ++qp) {                          // also of those that stand here
    REQUIRE((b.ctx(false, hw::CTX_COLUMN_QP_RQ_DYN, qp, 0) & psn_mask) / 100 == qp);
  }
  CHECK(b.packets.pending() == held);
  b.actions.stall(Stall(0.0));
  b.settle();
  // beside traffic: the models tell if a request saw another one's row
  for (int round = 0; round < 60; ++round) {
    b.actions.stall(Stall(b.random.chance(0.5) ? 0.0 : 0.7));
    frames(static_cast<unsigned>(b.random.between(1, 12)));
    b.dut.tick(b.random.below(12));
    row(static_cast<unsigned>(b.random.between(16, 31)), b.random.bits(20));
    // the rights of one that is at work, as MODIFY_QP writes them
    const auto busy = static_cast<unsigned>(b.random.below(8));
    const std::uint64_t before = b.dut.cycle();
    b.ctx(true, hw::CTX_COLUMN_QP_RQ, busy, 1, b.ctx(false, hw::CTX_COLUMN_QP_RQ, busy, 1));
    CHECK(b.dut.cycle() - before <= 2 * 8);
  }
  b.actions.stall(Stall(0.0));
  b.settle();
  for (unsigned qp = 0; qp < 8; ++qp) {
    REQUIRE((b.ctx(false, hw::CTX_COLUMN_QP_RQ_DYN, qp, 0) & psn_mask) ==
            100 * qp + (sent + 7 - qp) / 8);
  }
}

TEST_CASE("a dynamic row is written behind the requests of its QP that are here, and before others") {
  Bench b(5);
  b.add(config(3), 100);
  b.actions.stall(Stall(1.0));
  rp::rx_packet_t p{};
  p.fn = 1;
  p.qp = 3;
  p.state = rp::QPS_RTS;
  p.headers.opcode = WRITE_ONLY;
  for (unsigned n = 0; n < 4; ++n) {
    p.headers.psn = 100 + n;
    b.packets.push(p);
  }
  b.dut.tick(50);
  for (unsigned n = 4; n < 8; ++n) {               // these have to wait outside
    p.headers.psn = 196 + n;
    b.packets.push(p);
  }
  const std::size_t outside = b.packets.pending();
  REQUIRE(outside >= 4);
  unsigned cycle = 0;
  const auto tick = [&] {
    if (++cycle == 100) {
      CHECK(b.packets.pending() == outside);
      b.actions.stall(Stall(0.0));
    }
    b.dut.tick();
  };
  context_access<rp::ctx_req_t, rp::ctx_rsp_t>(b.dut, tick, hw::CTX_COLUMN_QP_RQ_DYN, true, 3, 0,
                                               200, 500);
  CHECK(cycle > 100);
  CHECK(cycle < 150);
  b.models[3].next_psn = 200;
  b.models[3].msn = 0;
  b.settle();
  CHECK((b.ctx(false, hw::CTX_COLUMN_QP_RQ_DYN, 3, 0) & psn_mask) == 204);
}

TEST_CASE("a receive that never lands holds the others for 8,192 cycles at most") {
  Bench b(4);
  b.queues.landing = 0;
  b.add(config(3), 10);
  b.add(config(4), 20);
  b.queues[3].posted = 1;
  rp::rx_packet_t p{};
  p.fn = 1;
  p.state = rp::QPS_RTS;
  for (const unsigned round : {0u, 1u}) {        // each one anew
    p.qp = 3;
    p.headers.opcode = SEND_ONLY;
    p.headers.psn = 10;
    b.packets.push(p);
    p.qp = 4;
    p.headers.opcode = WRITE_ONLY;
    p.headers.psn = 20 + round;
    b.packets.push(p);
    const std::uint64_t start = b.dut.cycle();
    b.settle();
    CHECK(b.dut.cycle() - start > 8192);
    CHECK(b.dut.cycle() - start < 8192 + 40);
    CHECK(b.lost == 1 + round);                    // NAK: to be sent again
    CHECK(b.models[4].next_psn == 21 + round);
    CHECK(b.queues[3].taken == 0);
  }
}

TEST_CASE("flush: takes what lands, says when there is no more, carries the colour") {
  Bench b(3);
  b.add(config(3), 10);
  b.queues[3].posted = b.queues[3].landed = 2;
  const auto flush = [&] {
    b.dut->flush_i = 3;
    b.dut->flush_valid_i = 1;
    b.dut.run_until([&] { return b.dut->flush_ready_o != 0; }, "flush taken");
    b.dut.tick();
    b.dut->flush_valid_i = 0;
    CHECK(b.dut->fence_busy_o == (b.dut->colour_i ? 2 : 1));
    b.dut.run_until([&] { return b.dut->flush_done_o != 0; }, "flush done", 50);
    const bool more = b.dut->flush_more_o;
    CHECK(b.dut->flush_frame_valid_o == (b.states[3] == rp::QPS_ERR));
    b.dut.tick();
    CHECK(b.dut->fence_busy_o == 0);
    return more;
  };
  CHECK(!flush());                                // not in ERR
  b.states[3] = rp::QPS_ERR;
  b.state(3, rp::QPS_ERR);
  CHECK(flush());
  b.dut->colour_i = 1;
  CHECK(flush());
  CHECK(!flush());
  b.dut.tick(20);
  CHECK(b.flushes == 3);                          // the last one tells that the QP is drained
  CHECK(b.queues[3].taken == 2);
}

// A program can keep flushes coming for nothing: RQ doorbells in ERR, up to 65,535 receives each.
TEST_CASE("flushes take what frames leave, and one place in 33 of a full stream") {
  for (const bool busy : {true, false}) {
    Bench b(5);
    b.add(config(3), 10);
    for (unsigned qp = 4; qp < 12; ++qp) b.add(config(qp), 0);
    b.queues[3].posted = b.queues[3].landed = 60000;
    b.states[3] = rp::QPS_ERR;
    b.state(3, rp::QPS_ERR);
    b.dut->flush_i = 3;
    const unsigned count = 1650;
    for (unsigned n = 0; busy && n < count; ++n) {
      rp::rx_packet_t p{};
      p.qp = static_cast<decltype(p.qp)>(4 + n % 8);
      p.fn = 1;
      p.state = rp::QPS_RTS;
      p.headers.opcode = WRITE_ONLY;
      p.headers.psn = n / 8;
      b.packets.push(p);
    }
    bool under_way = false;
    std::uint64_t waits = 0, longest = 0;
    const std::uint64_t start = b.dut.cycle();
    const auto more = [&] { return busy ? !b.frames.empty() || !b.packets.empty() : b.flushes < 50; };
    while (more()) {
      REQUIRE(b.dut.cycle() - start < 4000);
      // as responder_flush: the next one when this one has passed
      b.dut->flush_valid_i = !under_way;
      b.dut.eval();
      const bool taken = !under_way && b.dut->flush_ready_o;
      const bool done = b.dut->flush_done_o;
      waits = under_way || taken ? 0 : waits + 1;
      longest = std::max(longest, waits);
      b.dut.tick();
      if (taken) under_way = true;
      if (done) under_way = false;
    }
    b.dut->flush_valid_i = 0;
    const double cycles = static_cast<double>(b.dut.cycle() - start);
    INFO(b.flushes << " flushes, " << cycles << " cycles, longest wait " << longest);
    if (busy) {
      CHECK(cycles / count < 1.05);
      CHECK(b.flushes >= count / 45);
      CHECK(b.flushes <= count / 33);
      CHECK(longest <= 34);
    } else {
      CHECK(cycles / 50 <= 8);
    }
  }
}

TEST_CASE("COMM_EST: one event with the QP's number, even if it must wait") {
  Bench b(4);
  b.add(config(3), 0);
  b.state(3, rp::QPS_RTR);
  b.events.stall(Stall(0.95));
  for (std::uint32_t n = 0; n < 50; ++n) {
    rp::rx_packet_t p{};
    p.qp = 3;
    p.fn = 1;
    p.state = rp::QPS_RTR;
    p.headers.opcode = WRITE_ONLY;
    p.headers.psn = n;
    b.packets.push(p);
  }
  b.settle();
  b.dut.tick(200);
  REQUIRE(b.events.received().size() == 1);
  CHECK(b.events.received()[0].event_type == hw::EQE_TYPE_COMM_EST);
  CHECK(b.events.received()[0].object == config(3).qpn);
  CHECK(b.events.received()[0].fn == 1);
}
