// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_respond: random tokens, duplicates and refusals of several QPs; every packet must be one
// that TxModel allows now, nothing may be missing at the end. Tokens must never wait for transmit.
#include DUT_HEADER

#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "harness/harness.hpp"
#include "responder/departures.hpp"
#include "responder/responder_model.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
using namespace roci::test::responder;
namespace rs = roci::sv::responder_pkg;
namespace rc = roci::sv::roci_config_pkg;

struct Qp {
  QpConfig config;
  TxModel model;
  std::uint32_t psn = 0, msn = 0, acked_psn = 0;
  std::uint64_t reads = 0, acked_reads = 0;
  std::uint64_t answered = 0;            // as the chip says
  bool refused = false;
  unsigned errors = 0;
};

/// The replay table and what has no stream.
class Table : public Agent {
 public:
  explicit Table(Dut<DUT_CLASS>& dut) : dut_(dut) {}
  void sample() override {
    pipe_.push_front(dut_->entry_read_o ? std::optional<unsigned>(dut_->entry_slot_o)
                                        : std::nullopt);
    if (pipe_.size() > 2) pipe_.pop_back();
    const auto done = rp::reads_answered_t::unpack(dut_->answered_o);
    if (done.valid && answered) answered(done);
  }
  void drive() override {
    const bool now = pipe_.size() == 2 && pipe_[1];
    (now ? entries[*pipe_[1]] : random_payload<rs::replay_entry_t>(random_)).pack(dut_->entry_i);
  }
  std::map<unsigned, rs::replay_entry_t> entries;
  std::function<void(const rp::reads_answered_t&)> answered;

 private:
  Dut<DUT_CLASS>& dut_;
  Random random_{5};
  std::deque<std::optional<unsigned>> pipe_;
};

struct Bench {
  explicit Bench(std::uint64_t salt, unsigned count)
      : random(salt), dut(salt), table(dut), departures(dut, salt) {
    dut->colour_i = 0;
    rp::ctx_req_t{}.pack(dut->ctx_i);
    rp::state_bcast_t{}.pack(dut->state_i);
    tokens.on_transfer([this](const rp::respond_token_t& t) {
      qps.at(t.qp).model.event(t.info, dut.cycle());
    });
    lowers.on_transfer([this](const rs::lower_t& l) {
      Qp& q = qps.at(l.qp);
      q.model.duplicate(q.reads - ((q.reads - l.ordinal) & 0xff), l.packet);
    });
    items.collect();
    items.on_transfer([this](const rp::tx_item_t& i) { item(i); });
    errors.collect();
    errors.on_transfer([this](const rp::state_error_t& e) {
      ++qps.at(e.qp).errors;
      if (!e.event_valid) throw Failure("request for ERR without event");
    });
    atomics.on_transfer([this](const rp::atomic_done_t& d) {
      Qp& q = qps.at(d.qp);
      const unsigned slot = d.slot;
      if (d.failed) {
        q.refused = true;
        q.model.refused(d.psn, 0x63, dut.cycle());
        return;
      }
      // responder_read writes it in the same cycle
      table.entries.at(slot).done = true;
      table.entries.at(slot).va = d.value;
      q.model.done(q.model.newest(d.ordinal), d.value);
    });
    table.answered = [this](const rp::reads_answered_t& a) {
      if (qps.count(a.qp)) {
        Qp& q = qps[a.qp];
        q.answered += (a.ordinal - q.answered) & 0xff;
      }
    };
    dut.reset();
    dut.attach(table);
    dut.attach(departures);
    dut.attach(tokens);
    dut.attach(lowers);
    dut.attach(refusals);
    dut.attach(atomics);
    dut.attach(items);
    dut.attach(errors);
    dut.run_until([&] { return dut->ready_o != 0; }, "tables cleared");
    for (unsigned n = 0; n < count; ++n) add(n);
  }
  void ctx_write(unsigned qp, unsigned word, std::uint64_t data) {
    context_access<rp::ctx_req_t, rp::ctx_rsp_t>(
        dut, [this] { dut.tick(); }, hw::CTX_COLUMN_QP_RESP, true, qp, word, data, 20);
  }
  void state(unsigned qp, rp::qp_state_e to) {
    rp::state_bcast_t{true, static_cast<decltype(rp::state_bcast_t::qp)>(qp), to}.pack(
        dut->state_i);
    dut.tick();
    rp::state_bcast_t{}.pack(dut->state_i);
    dut.tick();
  }
  void add(unsigned n) {
    QpConfig c;
    c.qp = n;
    c.fn = 1;
    c.pd = n + 2;
    c.mtu_code = static_cast<unsigned>(random.between(1, 5));
    c.replay_log2 = static_cast<unsigned>(random.below(4));
    c.replay_base = 8 * n;
    Qp& q = qps[n];
    q = Qp();
    q.config = c;
    q.model = TxModel(c);
    q.psn = static_cast<std::uint32_t>(random.bits(24));
    q.acked_psn = (q.psn - 1) & psn_mask;
    state(n, rp::QPS_RESET);
    ctx_write(n, 0, c.pd | std::uint64_t{c.fn} << 16 | std::uint64_t{c.mtu_code} << 24 |
                        std::uint64_t{c.replay_log2} << 28 | std::uint64_t{c.replay_base} << 32);
    ctx_write(n, 1, q.acked_psn);
    state(n, rp::QPS_RTS);
  }
  void token(Qp& q, rp::respond_kind_e kind, std::uint32_t psn, unsigned syndrome,
             std::uint64_t order) {
    rp::respond_token_t t{};
    t.qp = static_cast<decltype(t.qp)>(q.config.qp);
    t.info = {kind, psn, q.msn, static_cast<std::uint8_t>(syndrome),
              static_cast<decltype(t.info.entry)>(order & 0xff)};
    tokens.push(t);
  }
  void read(Qp& q, std::uint32_t length) {
    ReadEntry e{q.reads, q.psn, 0, ++q.msn, random(), static_cast<std::uint32_t>(random()),
                length};
    e.packets = std::max(1u, (length + q.config.mtu() - 1) / q.config.mtu());
    rs::replay_entry_t row{};
    row.ordinal = static_cast<std::uint8_t>(e.ordinal);
    row.first_psn = e.first_psn;
    row.packets = e.packets;
    row.msn = e.msn;
    row.va = e.va;
    row.rkey = e.rkey;
    row.length = length;
    table.entries[static_cast<unsigned>(q.config.replay_base + (e.ordinal & (q.config.ring() - 1)))]
        = row;
    q.model.accept(e);
    q.psn = (q.psn + e.packets) & psn_mask;
    token(q, rp::RESPOND_READ, (q.psn - 1) & psn_mask, 0, q.reads++);
  }
  /// An atomic is accepted; it is done when `finish` is called.
  rp::atomic_done_t atomic(Qp& q) {
    ReadEntry e{q.reads, q.psn, 1, ++q.msn, random(), static_cast<std::uint32_t>(random()), 0};
    e.atomic = random.chance(0.5) ? CMP_SWAP : FETCH_ADD;
    rs::replay_entry_t row{};
    row.ordinal = static_cast<std::uint8_t>(e.ordinal);
    row.first_psn = e.first_psn;
    row.packets = 1;
    row.msn = e.msn;
    row.va = e.va;
    row.rkey = e.rkey;
    row.length = e.atomic == CMP_SWAP ? 0xc0000001u : 0xc0000000u;
    const auto slot =
        static_cast<unsigned>(q.config.replay_base + (e.ordinal & (q.config.ring() - 1)));
    table.entries[slot] = row;
    q.model.accept(e);
    rp::atomic_done_t done{};
    done.qp = static_cast<decltype(done.qp)>(q.config.qp);
    done.slot = static_cast<decltype(done.slot)>(slot);
    done.ordinal = row.ordinal;
    done.psn = e.first_psn;
    done.value = random();
    token(q, rp::RESPOND_READ, q.psn, 0, q.reads++);
    q.psn = (q.psn + 1) & psn_mask;
    return done;
  }
  void ack(Qp& q) {
    q.acked_psn = q.psn;
    q.acked_reads = q.reads;
    ++q.msn;
    q.psn = (q.psn + 1) & psn_mask;
    token(q, rp::RESPOND_ACK, q.acked_psn, 0x1f, q.reads);
  }
  void item(const rp::tx_item_t& i) {
    Qp& q = qps.at(i.desc.qp);
    colours[i.desc.colour] = dut.cycle();
    if (q.refused && i.desc.opcode != 0x11) return;          // poisoned: it never leaves
    if (refuse && i.has_piece && refuse(i)) {
      rp::tx_refused_t r{};
      r.qp = i.desc.qp;
      r.psn = i.desc.psn;
      r.wqe_index = i.desc.wqe_index;
      r.status = rp::XLAT_BAD_BOUNDS;
      refusals.push(r);
      q.refused = true;
      q.model.refused(i.desc.psn, 0x62, dut.cycle());
      return;
    }
    departures.take(i);
    const auto text = q.model.packet(i, dut.cycle());
    if (!text.empty()) throw Failure(text + ": " + i.to_string());
  }
  void settle() {
    std::uint64_t seen = 0, calm = 0;
    dut.run_until([&] {
      const bool idle = tokens.empty() && lowers.empty() && refusals.empty() && atomics.empty() &&
                        departures.empty() && items.transfers() == seen;
      seen = items.transfers();
      calm = idle ? calm + 1 : 0;
      return calm > 1000;
    }, "everything is sent");
    for (auto& [n, q] : qps) {
      const auto text = q.model.missing(true);
      if (!text.empty()) throw Failure("QP " + std::to_string(n) + ": " + text);
      if (!q.refused) REQUIRE(q.answered == q.model.answered());
      REQUIRE(q.errors == (q.refused ? 1 : 0));
    }
    REQUIRE(dut->fence_busy_o == 0);
  }

  Random random;
  Dut<DUT_CLASS> dut;
  Table table;
  Departures departures;
  Source<rp::respond_token_t> tokens{"token", dut->event_valid_i, dut->event_ready_o, dut->event_i};
  Source<rs::lower_t> lowers{"lower", dut->lower_valid_i, dut->lower_ready_o, dut->lower_i};
  Source<rp::tx_refused_t> refusals{"refused", dut->refused_valid_i, dut->refused_ready_o,
                                    dut->refused_i};
  Source<rp::atomic_done_t> atomics{"atomic", dut->atomic_valid_i, dut->atomic_ready_o, dut->atomic_i};
  Sink<rp::tx_item_t> items{"item", dut->item_valid_o, dut->item_ready_i, dut->item_o};
  Sink<rp::state_error_t> errors{"error", dut->error_valid_o, dut->error_ready_i, dut->error_o};
  std::map<unsigned, Qp> qps;
  std::function<bool(const rp::tx_item_t&)> refuse;
  std::uint64_t colours[2] = {};
};
}  // namespace

TEST_CASE("random tokens, duplicates and refusals") {
  Random random;
  unsigned atomics = 0;
  for (int run = 0; run < 8; ++run) {
    Bench b(random(), run % 2 ? 6 : 1);
    std::deque<rp::atomic_done_t> engine;
    b.atomics.stall(Stall::any(random));
    b.items.stall(Stall::any(random));
    b.tokens.stall(Stall::any(random));
    b.lowers.stall(Stall::any(random));
    b.errors.stall(Stall(0.5));
    b.departures.most = run % 3 == 0 ? 400 : 40;
    if (run % 4 == 3) b.refuse = [&](const rp::tx_item_t&) { return random.chance(0.003); };
    for (std::size_t round = 0; round < scaled(60); ++round) {
      for (int n = 0; n < 60; ++n) {
        Qp& q = b.qps[static_cast<unsigned>(random.below(b.qps.size()))];
        switch (random.below(9)) {
          case 8:
            if (q.reads - q.answered < q.config.ring()) {
              // the engine is later than the token, and in order
              engine.push_back(b.atomic(q));
            }
            break;
          case 0:
          case 1:
            if (q.reads - q.answered < q.config.ring()) {
              b.read(q, static_cast<std::uint32_t>(random.below(6 * q.config.mtu())));
            }
            break;
          case 2:
            b.token(q, rp::RESPOND_DUP_ACK, q.acked_psn, 0x1f, q.acked_reads);
            break;
          case 3:
            b.token(q, rp::RESPOND_NAK, q.psn, random.chance(0.5) ? 0x60 : 0x2a, q.reads);
            break;
          case 4:
            if (q.reads != 0) {
              const std::uint64_t back = random.below(std::min(q.reads, q.config.ring()));
              const auto& e = q.model.entry(q.reads - 1 - back);
              rs::lower_t l{};
              l.qp = static_cast<decltype(l.qp)>(q.config.qp);
              l.ordinal = static_cast<std::uint8_t>(e.ordinal);
              l.packet = static_cast<std::uint32_t>(random.below(e.packets));
              b.lowers.push(l);
              // the entry must not be reused before the walk comes to it: no READ meanwhile
              b.dut.run_until([&] { return b.lowers.empty(); }, "lowered");
            }
            break;
          default: b.ack(q); break;
        }
        if (random.chance(0.1)) b.dut.tick(random.below(40));
        if (random.chance(0.02)) b.dut->colour_i = !b.dut->colour_i;
        if (!engine.empty() && random.chance(0.3)) {
          b.dut.run_until([&] { return b.tokens.empty(); }, "tokens");
          b.atomics.push(engine.front());
          engine.pop_front();
          ++atomics;
        }
      }
      for (; !engine.empty(); engine.pop_front()) {
        b.dut.run_until([&] { return b.tokens.empty(); }, "tokens");
        b.atomics.push(engine.front());
      }
      if (random.chance(0.3)) b.settle();
    }
    b.settle();
  }
  CHECK(atomics > 100);
}

TEST_CASE("an atomic that failed is a NAK 0x63 in its place, and ERR") {
  for (const bool answered : {false, true}) {
    Bench b(3, 1);
    Qp& q = b.qps[0];
    q.config.replay_log2 = 2;
    b.ctx_write(0, 0, q.config.pd | std::uint64_t{q.config.fn} << 16 |
                          std::uint64_t{q.config.mtu_code} << 24 | std::uint64_t{2} << 28);
    q.model = TxModel(q.config);
    b.items.stall(Stall(answered ? 0.0 : 1.0));
    b.read(q, 10 * q.config.mtu());
    auto done = b.atomic(q);
    b.read(q, 100);                                // never answered
    b.dut.tick(200);
    done.failed = true;
    b.atomics.push(done);
    b.dut.tick(50);
    b.items.stall(Stall(0.0));
    b.settle();
    REQUIRE(b.items.received().size() == 11);
    CHECK(b.items.received().back().desc.psn == done.psn);
    CHECK(b.items.received().back().desc.syndrome == 0x63);
    CHECK(b.items.received().back().desc.msn == 1);
  }
}

TEST_CASE("tokens never wait for transmit") {
  Bench b(1, 4);
  b.items.stall(Stall(1.0));
  for (int n = 0; n < 500; ++n) b.ack(b.qps[static_cast<unsigned>(n % 4)]);
  const std::uint64_t start = b.dut.cycle();
  b.dut.run_until([&] { return b.tokens.empty(); }, "tokens", 2000);
  CHECK(b.dut.cycle() - start <= 2 * 500 + 20);
  b.items.stall(Stall(0.0));
  b.settle();
  // one of each QP that was decided at once, and one for all that came later
  CHECK(b.items.transfers() == 8);
}

namespace {
/// {QP, opcode, PSN, syndrome} of what was sent since the last call.
std::vector<std::array<std::uint32_t, 4>> sent(Bench& b) {
  std::vector<std::array<std::uint32_t, 4>> out;
  for (const auto& i : b.items.received()) {
    out.push_back({i.desc.qp, i.desc.opcode, i.desc.psn, i.desc.syndrome});
  }
  b.items.received().clear();
  return out;
}
using Sent = std::vector<std::array<std::uint32_t, 4>>;
constexpr std::uint32_t ACK = 0x11, RESPONSE_ONLY = 0x10;
}  // namespace

TEST_CASE("an ACK leaves at once; while it is on its way, later ones of its QP become one") {
  Bench b(5, 2);
  Qp &one = b.qps[0], &other = b.qps[1];
  const std::uint32_t psn = one.psn;
  const auto at = [psn](std::uint32_t n) { return (psn + n) & psn_mask; };
  b.departures.hold = true;
  b.ack(one);
  const std::uint64_t start = b.dut.cycle();
  b.dut.run_until([&] { return b.items.transfers() == 1; }, "ACK");
  // token, row, rules, packet, output: as without any coalescing
  CHECK(b.dut.cycle() - start <= 11);
  for (int n = 0; n < 30; ++n) {
    b.ack(one);
    b.dut.tick(10);
  }
  CHECK(sent(b) == Sent{{0, ACK, psn, 0x1f}});
  b.ack(other);                                   // another QP does not wait
  b.dut.tick(20);
  CHECK(sent(b) == Sent{{1, ACK, other.acked_psn, 0x1f}});
  b.departures.hold = false;
  b.settle();
  CHECK(sent(b) == Sent{{0, ACK, at(30), 0x1f}});
  b.ack(one);                                     // idle again
  b.dut.tick(20);
  CHECK(sent(b) == Sent{{0, ACK, at(31), 0x1f}});
  b.settle();
}

TEST_CASE("an ACK that a READ is behind does not wait, nor does a NAK") {
  Bench b(6, 1);
  Qp& q = b.qps[0];
  const std::uint32_t psn = q.psn;
  const auto at = [psn](std::uint32_t n) { return (psn + n) & psn_mask; };
  b.departures.hold = true;
  b.ack(q);
  b.dut.tick(30);
  CHECK(sent(b) == Sent{{0, ACK, at(0), 0x1f}});
  b.ack(q);
  b.ack(q);
  b.dut.tick(30);
  CHECK(sent(b).empty());
  b.read(q, 1);
  b.dut.tick(60);
  b.ack(q);
  b.ack(q);
  b.dut.tick(60);
  // the READ closed the ACK before it; what came behind it waits again
  CHECK(sent(b) == Sent{{0, ACK, at(2), 0x1f}, {0, RESPONSE_ONLY, at(3), 0x1f}});
  b.token(q, rp::RESPOND_NAK, q.psn, 0x60, q.reads);
  b.dut.tick(30);
  CHECK(sent(b) == Sent{{0, ACK, at(6), 0x60}});
  b.ack(q);
  b.dut.tick(30);
  CHECK(sent(b).empty());
  b.token(q, rp::RESPOND_NAK, q.psn, 0x2c, q.reads);
  b.dut.tick(30);
  CHECK(sent(b) == Sent{{0, ACK, at(7), 0x2c}});
  b.ack(q);
  b.departures.hold = false;
  b.settle();
  CHECK(sent(b) == Sent{{0, ACK, at(7), 0x1f}});
}

TEST_CASE("reports that come in every cycle, of one QP and of several, are all taken") {
  Bench b(7, 6);
  b.departures.least = b.departures.most = 1;
  for (int round = 0; round < 20; ++round) {
    b.departures.hold = true;
    for (unsigned n = 0; n < 30; ++n) {
      Qp& q = b.qps[round % 2 ? n % 6 : static_cast<unsigned>(b.random.below(6))];
      b.token(q, rp::RESPOND_NAK, q.psn, 0x2a, q.reads);
      b.dut.tick(8);
    }
    for (auto& [n, q] : b.qps) b.ack(q);          // they wait
    b.dut.tick(40);
    sent(b);
    b.departures.hold = false;
    for (unsigned n = 0; n < 12; ++n) b.ack(b.qps[n % 6]);
    b.settle();
    REQUIRE(sent(b).size() >= 6);
  }
}

TEST_CASE("a QP that starts again while its last ACK leaves sends its first ACK at once") {
  Bench b(8, 1);
  b.departures.hold = true;
  b.ack(b.qps[0]);
  b.dut.tick(20);
  b.add(0);
  sent(b);
  b.ack(b.qps[0]);
  b.dut.tick(20);
  CHECK(sent(b).size() == 1);
  b.ack(b.qps[0]);
  b.departures.hold = false;                      // an old report, and the new one
  b.settle();
  CHECK(sent(b).size() == 1);
}

TEST_CASE("a packet has the colour of its walk") {
  Bench b(2, 2);
  b.items.stall(Stall(1.0));
  b.ack(b.qps[0]);
  b.dut.tick(30);
  CHECK(b.dut->fence_busy_o == 1);
  b.dut->colour_i = 1;
  b.ack(b.qps[1]);
  b.dut.tick(30);
  CHECK(b.dut->fence_busy_o == 3);
  b.items.stall(Stall(0.0));
  b.settle();
  CHECK(b.colours[0] != 0);
  CHECK(b.colours[1] > b.colours[0]);
}

TEST_CASE("quantum: QPs with long READs take turns of 16 packets") {
  Bench b(3, 3);
  for (unsigned n = 0; n < 3; ++n) b.read(b.qps[n], 100 * b.qps[n].config.mtu());
  b.settle();
  std::vector<unsigned> runs;
  unsigned last = 99;
  for (const auto& i : b.items.received()) {
    if (i.desc.qp != last) runs.push_back(0);
    last = i.desc.qp;
    ++runs.back();
  }
  CHECK(b.items.received().size() == 300);
  for (std::size_t n = 0; n + 3 < runs.size(); ++n) CHECK(runs[n] <= 17);
  CHECK(runs.size() >= 15);
}

TEST_CASE("a QP that starts again owes nothing") {
  Bench b(4, 1);
  b.items.stall(Stall(1.0));
  b.read(b.qps[0], 50 * b.qps[0].config.mtu());
  b.ack(b.qps[0]);
  b.dut.tick(100);
  b.state(0, rp::QPS_RESET);
  b.items.stall(Stall(0.0));
  b.dut.tick(100);
  CHECK(b.items.transfers() <= 9);                 // what was decided
  b.add(0);
  b.dut.tick(50);
  const auto before = b.items.transfers();
  b.ack(b.qps[0]);
  b.settle();
  CHECK(b.items.transfers() == before + 1);
}
