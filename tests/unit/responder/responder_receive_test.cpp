// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_receive: actions of several QPs, as responder_check would give them, must become the
// items of RxModel: SGE walks over any list and any packet cut, completions, receives that are too
// short, malformed or unreadable, flushes. Slots are given back once, as early as allowed.
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "responder/responder_actions.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
using namespace roci::test::responder;
namespace rc = roci::sv::roci_config_pkg;
using Word = Bits<256>;

/// Slots of queue_rq_fetch: 8 entries of 256 bytes, read with two cycles of latency.
class Slots : public Agent {
 public:
  explicit Slots(Dut<DUT_CLASS>& dut) : dut_(dut), words_(64) {}
  void put(unsigned entry, const Wqe& wqe, Random& random) {
    std::vector<std::uint8_t> bytes = random.bytes(256);
    const auto set = [&](unsigned at, std::uint64_t value, unsigned count) {
      for (unsigned n = 0; n < count; ++n) {
        bytes[at + n] = static_cast<std::uint8_t>(value >> (8 * n));
      }
    };
    set(0, wqe.cookie, 4);
    set(4, wqe.count, 1);
    set(6, (wqe.unreadable ? 1 : 0) | (wqe.malformed() ? 2 : 0), 1);
    for (unsigned n = 0; n < wqe.sges.size(); ++n) {
      set(16 + 16 * n, wqe.sges[n].va, 8);
      set(24 + 16 * n, wqe.sges[n].length, 4);
      set(28 + 16 * n, wqe.sges[n].lkey, 4);
    }
    for (unsigned w = 0; w < 8; ++w) {
      for (unsigned n = 0; n < 4; ++n) {
        std::uint64_t value = 0;
        for (unsigned k = 0; k < 8; ++k) {
          value |= std::uint64_t{bytes[32 * w + 8 * n + k]} << (8 * k);
        }
        words_[8 * entry + w].set(64 * n, 64, value);
      }
    }
    busy_[entry] = true;
  }
  bool busy(unsigned entry) { return busy_[entry]; }
  void free(unsigned entry) {
    if (!busy_[entry]) throw Failure("slot freed twice");
    busy_[entry] = false;
    for (unsigned w = 0; w < 8; ++w) words_[8 * entry + w] = Word(0xdead);  // overwritten at once
  }
  void sample() override {
    pipe_.push_front(dut_->slot_read_o ? std::optional<unsigned>(dut_->slot_address_o & 63)
                                       : std::nullopt);
    if (pipe_.size() > 2) pipe_.pop_back();
    // what is read now is what the slot holds now
    if (pipe_[0]) data_.push_back(words_[*pipe_[0]]);
  }
  void drive() override {
    if (pipe_.size() == 2 && pipe_[1]) {
      data_.front().pack(dut_->slot_data_i);
      data_.pop_front();
    }
  }

 private:
  Dut<DUT_CLASS>& dut_;
  std::vector<Word> words_;
  std::map<unsigned, bool> busy_;
  std::deque<std::optional<unsigned>> pipe_;
  std::deque<Word> data_;
};

struct Bench {
  explicit Bench(std::uint64_t salt) : random(salt), dut(salt), slots(dut) {
    items.on_transfer([this](const rp::rx_item_t&) { ++item_count; });
    items.collect();
    frees.collect();
    frees.on_transfer([this](const rp::rq_entry_t& e) { slots.free(e.index & 7); });
    dut.reset();
    dut.tick(2);
    dut.attach(frees);                             // before slots: data of a freed slot is gone
    dut.attach(slots);
    dut.attach(actions);
    dut.attach(items);
  }
  /// Compares what has come with what must come.
  void check() {
    auto& got = items.received();
    while (!got.empty()) {
      if (expected.empty()) throw Failure("item nobody expects: " + got[0].to_string());
      if (!(defined_part(got[0]) == defined_part(expected.front()))) {
        throw Failure("item\n  expected " + defined_part(expected.front()).to_string() +
                      "\n  got      " + defined_part(got[0]).to_string());
      }
      expected.pop_front();
      got.erase(got.begin());
    }
  }
  void settle() {
    dut.run_until([&] {
      check();
      return actions.empty() && expected.empty();
    }, "all items", 20000);
    dut.tick(60);
    check();
  }
  /// A free slot for a WQE; waits until there is one.
  unsigned slot() {
    dut.run_until([&] {
      check();
      return !slots.busy(next_slot);
    }, "a slot comes free", 5000);
    return std::exchange(next_slot, (next_slot + 1) & 7);
  }

  Random random;
  Dut<DUT_CLASS> dut;
  Slots slots;
  Source<rs::action_t> actions{"action", dut->action_valid_i, dut->action_ready_o, dut->action_i};
  Sink<rp::rx_item_t> items{"item", dut->item_valid_o, dut->item_ready_i, dut->item_o};
  Sink<rp::rq_entry_t> frees{"free", dut->free_valid_o, dut->free_ready_i, dut->free_o};
  std::deque<rp::rx_item_t> expected;
  unsigned next_slot = 0;
  std::uint64_t item_count = 0;
};

Wqe random_wqe(Random& random, std::uint64_t bytes) {
  static std::uint32_t cookie = 1;
  Wqe w;
  w.cookie = cookie++;
  w.count = static_cast<unsigned>(random.chance(0.4) ? 1 : random.between(bytes ? 1 : 0, 15));
  std::uint64_t left = bytes;
  for (unsigned n = 0; n < w.count; ++n) {
    Sge s{random(), 0, static_cast<std::uint32_t>(random())};
    const std::uint64_t part =
        n + 1 == w.count ? left + random.below(3) : random.chance(0.2) ? 0 : random.below(left + 1);
    s.length = static_cast<std::uint32_t>(part);
    left -= std::min(left, part);
    w.sges.push_back(s);
  }
  return w;
}

/// Puts the action for this packet, and the items it must give.
void feed(Bench& b, RxModel& m, const rp::rx_packet_t& p, ReceiveQueue& queue) {
  const auto& h = p.headers;
  const unsigned op = h.opcode & 0x1f;
  const bool begins = is_first(op) || is_only(op);
  rs::action_t a{};
  a.colour = p.colour;
  a.qp = p.qp;
  a.fn = p.fn;
  a.pd = static_cast<decltype(a.pd)>(m.config.pd);
  a.psn = h.psn;
  a.payload_length = h.payload_length;
  a.va = begins ? h.va : m.va;
  a.rkey = begins ? h.rkey : m.rkey;
  a.length = begins ? h.dma_length : m.total;
  if (is_send(op)) a.length = static_cast<std::uint32_t>((begins ? 0 : m.placed) + h.payload_length);
  if (is_atomic(op)) a.length = op == CMP_SWAP ? 0xc0000001u : 0xc0000000u;
  a.message_last = is_last(op) || is_only(op);
  a.imm_valid = has_imm(op);
  a.imm = has_imm(op) ? __builtin_bswap32(h.imm) : h.imm;
  if (is_atomic(op)) {
    a.imm = static_cast<std::uint32_t>((m.config.replay_base + m.reads % m.config.ring()) |
                                       (op == CMP_SWAP ? 0x80000000u : 0));
  }
  a.unreliable = m.config.type != 0;
  a.datagram = m.config.datagram();
  a.pkey_index = h.va >> 32 & 3;
  a.solicited = h.solicited && a.message_last && (is_send(op) || has_imm(op));
  a.vlan_valid = h.vlan_valid;
  a.tci = h.tci;
  a.nak_msn = m.msn;
  a.cq = static_cast<decltype(a.cq)>(m.config.cq);
  a.qpn = m.config.qpn;
  a.src_qp_or_srq = a.datagram ? h.va & 0xffffff : m.config.srq >= 0 ? m.config.srqn : 0;
  a.restart = takes_wqe(op) && m.held;
  a.use_current = (is_send(op) && !begins) || a.restart;
  const bool reserved = op > READ_REQUEST && !is_atomic(op);
  if (reserved) a.use_current = m.held;
  const std::uint64_t taken = queue.taken;
  if (takes_wqe(op) && !m.held) {
    const unsigned slot = b.slot();
    b.slots.put(slot, queue.posted.front(), b.random);
    a.take = true;
    a.slot = static_cast<decltype(a.slot)>(8 * slot);
    a.entry = {static_cast<decltype(a.entry.rq)>(p.qp), static_cast<std::uint16_t>(slot)};
  }
  const auto items = m.process(p, Receive::taken, queue, m.reads);
  REQUIRE((queue.taken != taken) == a.take);
  const auto& e = items[0].end_info;
  const bool too_short = e.completion_valid &&
                         e.completion.vendor_status == hw::VENDOR_STATUS_RECV_TOO_SHORT;
  a.kind = reserved || too_short             ? rs::ACTION_FAIL
           : op == READ_REQUEST || is_atomic(op) ? rs::ACTION_READ
           : is_write(op)                    ? rs::ACTION_WRITE
                                             : rs::ACTION_SEND;
  if (a.kind == rs::ACTION_FAIL) {
    a.respond_valid = true;
    a.respond = e.respond;
    a.error_event = e.error_event;
    a.vendor_status = too_short ? hw::VENDOR_STATUS_RECV_TOO_SHORT
                                : hw::VENDOR_STATUS_RECV_OPCODE_RESERVED;
    m.closed = false;
  } else if (!a.unreliable) {
    // what the check would have said; a failure found here replaces it
    a.respond_valid = true;
    a.respond.kind = a.kind == rs::ACTION_READ ? rp::RESPOND_READ : rp::RESPOND_ACK;
    a.respond.psn = (m.next_psn - 1) & psn_mask;
    a.respond.msn = m.msn;
    a.respond.syndrome = 0x1f;
    a.respond.entry = static_cast<decltype(a.respond.entry)>(
        (m.reads - (a.kind == rs::ACTION_READ)) & 0xff);
  }
  for (const auto& item : items) b.expected.push_back(item);
  b.actions.push(a);
}

QpConfig config(unsigned n) {
  QpConfig c;
  c.qp = n + 1;
  c.fn = 3;
  c.pd = n;
  c.cq = n + 9;
  c.qpn = 0x123400 + n;
  c.mtu_code = 1 + n % 5;
  c.replay_log2 = 7;
  c.type = n < 3 ? 0 : n - 2;                      // RC, UC, UD, GSI
  if (n == 2) {
    c.srq = 1;
    c.srqn = 0x99;
  }
  return c;
}
}  // namespace

TEST_CASE("random messages of several QPs, with faults") {
  Random random;
  unsigned restarts = 0, long_datagrams = 0;
  for (int run = 0; run < 6; ++run) {
    Bench b(random());
    b.actions.stall(Stall::any(random));
    b.items.stall(run % 2 ? Stall::any(random) : Stall(0));
    b.frees.stall(run % 3 ? Stall(0) : Stall::any(random));
    std::vector<RxModel> models;
    for (unsigned n = 0; n < 6; ++n) models.emplace_back(config(n), 100);
    ReceiveQueue queue;
    PacketSource source(random);
    for (std::size_t n = 0; n < scaled(1500); ++n) {
      RxModel& m = models[random.below(models.size())];
      if (queue.posted.empty()) {
        const bool bad = random.chance(0.05);
        Wqe w = random_wqe(random, bad ? random.below(300) : 4 * m.config.mtu() + 200);
        if (random.chance(0.02)) w.count += 16;
        if (random.chance(0.02)) w.unreadable = true;
        queue.posted.push_back(w);
      }
      // a packet that the check would execute, at times one that it would not
      auto p = source.next(m);
      p.headers.ackreq = true;
      RxModel probe = m;
      ReceiveQueue some = queue;
      const auto dropped = [](const RxModel& x) { return x.no_receive + x.too_long + x.given_up; };
      const auto items = probe.process(p, Receive::taken, some, probe.reads);
      const bool fails = items[0].end_info.error_valid && !items[0].end_info.drop;
      if (m.config.type != 0) {
        if (dropped(probe) != dropped(m)) {        // not the packet's turn, but the message's end
          m.message = RxModel::none;
          continue;
        }
      } else if (p.headers.psn != m.next_psn || fails) {
        continue;
      }
      const bool short_wqe = items[0].end_info.completion.vendor_status ==
                             hw::VENDOR_STATUS_RECV_TOO_SHORT;
      if (probe.closed && !short_wqe) {
        if (!random.chance(0.3)) continue;
        p.headers.opcode = 0x1f;                   // any reason will do
      }
      restarts += m.config.type == 1 && m.held && takes_wqe(p.headers.opcode & 0x1f) && !m.dead;
      long_datagrams += m.config.datagram() && p.headers.payload_length > 4096;
      feed(b, m, p, queue);
      if (random.chance(0.02) && m.held) {
        rs::action_t a{};
        a.kind = rs::ACTION_FLUSH;
        a.qp = static_cast<decltype(a.qp)>(m.config.qp);
        a.pd = static_cast<decltype(a.pd)>(m.config.pd);
        a.cq = static_cast<decltype(a.cq)>(m.config.cq);
        a.qpn = m.config.qpn;
        a.unreliable = m.config.type != 0;
        a.src_qp_or_srq = m.config.srq >= 0 ? m.config.srqn : 0;
        a.use_current = true;
        b.expected.push_back(m.flush(false, queue));
        b.actions.push(a);
      }
      b.check();
    }
    b.settle();
    for (unsigned slot = 0; slot < 8; ++slot) REQUIRE(!b.slots.busy(slot));
  }
  CHECK(restarts > 20);
  CHECK(long_datagrams > 20);
}

TEST_CASE("flush of nothing: no completion, but it tells that the QP is drained") {
  Bench b(1);
  RxModel m(config(0), 0);
  ReceiveQueue queue;
  rs::action_t a{};
  a.kind = rs::ACTION_FLUSH;
  a.qp = static_cast<decltype(a.qp)>(m.config.qp);
  a.cq = static_cast<decltype(a.cq)>(m.config.cq);
  a.qpn = m.config.qpn;
  b.expected.push_back(m.flush(false, queue, false));
  b.actions.push(a);
  b.settle();
}

TEST_CASE("flush of a receive in its slot") {
  Bench b(1);
  RxModel m(config(0), 0);
  for (const bool unreadable : {false, true}) {
    ReceiveQueue queue;
    queue.posted.push_back({77, {{1, 2, 3}}, 1, unreadable});
    const unsigned slot = b.slot();
    b.slots.put(slot, queue.posted.front(), b.random);
    rs::action_t a{};
    a.kind = rs::ACTION_FLUSH;
    a.qp = static_cast<decltype(a.qp)>(m.config.qp);
    a.cq = static_cast<decltype(a.cq)>(m.config.cq);
    a.qpn = m.config.qpn;
    a.take = true;
    a.slot = static_cast<decltype(a.slot)>(8 * slot);
    a.entry.index = static_cast<std::uint16_t>(slot);
    b.expected.push_back(m.flush(false, queue));
    b.actions.push(a);
    b.settle();
    CHECK(!b.slots.busy(slot));
  }
}

TEST_CASE("rate: a packet per cycle with one SGE each; the slot of a FIRST is free at once") {
  Bench b(2);
  RxModel m(config(3), 0);
  ReceiveQueue queue;
  const unsigned count = 8;
  for (unsigned n = 0; n < count; ++n) queue.posted.push_back({n, {{0, 4096, 1}}, 1, false});
  for (unsigned n = 0; n < count; ++n) {
    rp::rx_packet_t p{};
    p.qp = 4;
    p.headers.psn = n;
    p.headers.opcode = SEND_ONLY;
    p.headers.payload_length = 64;
    p.headers.ackreq = true;
    feed(b, m, p, queue);
  }
  const std::uint64_t start = b.dut.cycle();
  b.dut.run_until([&] { return b.item_count == count; }, "items");
  CHECK(b.dut.cycle() - start <= count + 6);
  b.settle();

  queue.posted.push_back(random_wqe(b.random, 100000));
  rp::rx_packet_t p{};
  p.qp = 4;
  p.headers.psn = count;
  p.headers.opcode = SEND_FIRST;
  p.headers.payload_length = 2048;
  p.headers.ackreq = true;
  feed(b, m, p, queue);
  b.dut.run_until([&] { return b.frees.transfers() == count + 1; }, "slot free", 60);
}
