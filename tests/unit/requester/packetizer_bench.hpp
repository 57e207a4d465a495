// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The packetizer with everything around it, for requester_packetizer_test.cpp: pushes work requests
// of some QPs and expects the packets, records and pulses that send_model.hpp makes of them.
#pragma once

#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <optional>

#include "harness/harness.hpp"
#include "requester/send_model.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

namespace roci::test::send {

constexpr unsigned kQpBits = ROCI_CONFIG_WIDE ? 10 : 6;
constexpr unsigned kTx = static_cast<unsigned>(roci::hwif::CtxColumn::QP_TX);
constexpr unsigned kDyn = static_cast<unsigned>(roci::hwif::CtxColumn::QP_TX_DYN);
constexpr unsigned kTuning = static_cast<unsigned>(roci::hwif::CtxColumn::TUNING);
constexpr auto kStall = static_cast<pkg::rewind_kind_e>(0);
constexpr auto kYield = static_cast<pkg::rewind_kind_e>(1);
enum State { kReset, kInit, kRtr, kRts, kSqd, kSqe, kErr };
enum Kind { kKindSend, kKindRead, kKindAtomic, kKindLocal, kKindNop, kKindFlush };

// What the test keeps of a QP: how the WQEs that it pushes will come out.
struct Qp {
  Context ctx;
  unsigned number = 0;
  std::uint8_t epoch = 0;
  std::uint16_t index = 0;                   // of the next block
  std::uint32_t psn = 0, max_psn = 0;
  std::uint8_t ordinal = 0;
  std::uint64_t ring = 0;
  pkg::ack_state_t ack{};
};

struct Bench : Agent {
  Dut<DUT_CLASS> dut;
  Random& random;
  Source<pkg::wqe_block_t> block;
  Sink<pkg::inflight_write_t> inflight;
  Sink<pkg::read_record_write_t> read_record;
  Sink<pkg::local_error_t> local_error;
  Sink<pkg::state_error_t> state_error;
  Sink<pkg::rewind_req_t> rewind;
  Sink<pkg::tx_item_t> item;
  std::deque<pkg::sent_t> sent;              // expected
  std::uint64_t stale_from = ~0ull;          // cycle from which on its packets are of an old epoch
  unsigned stale = 0;                        // how many those were
  std::uint64_t resent = 0, resent_expected = 0;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> records_due;
  std::uint64_t items_expected = 0, inflight_expected = 0, read_expected = 0;
  // WQEs in the order in which they were pushed, and items that must come
  struct Pushed {
    unsigned qp;
    std::uint8_t epoch;
    Wqe wqe;
    bool good;
  };
  std::vector<Pushed> pushed;
  struct Awaited {
    pkg::tx_item_t item;                     // but for AckReq
    bool end;                                // of its message
    bool forced;                             // AckReq because of a stop
    bool resent;
    bool silent;                             // nobody acknowledges: UC, UD
    unsigned window_log2;
    std::uint32_t mtu;
    std::size_t push;                        // which one of `pushed`
  };
  std::deque<Awaited> awaited;
  bool checks_items = true, checks_sent = true;
  std::map<unsigned, unsigned> unasked;      // packets of each QP since the last AckReq
  std::uint64_t left_out = 0;                // ends of messages without AckReq
  bool packet_asks = false, inside = false;  // of the packet that is coming out
  std::deque<pkg::epoch_bcast_t> epochs;     // to broadcast, one per cycle
  unsigned window_log2 = 18;
  std::uint32_t gids = (1u << kGids) - 1;    // of the port
  int colour = 0;                            // of what is pushed, and of what is fetched now

  explicit Bench(Random& r)
      : dut(r()), random(r), block("block", dut->block_valid_i, dut->block_ready_o, dut->block_i),
        inflight("inflight", dut->inflight_valid_o, dut->inflight_ready_i, dut->inflight_o),
        read_record("read_record", dut->read_record_valid_o, dut->read_record_ready_i,
                    dut->read_record_o),
        local_error("local_error", dut->local_error_valid_o, dut->local_error_ready_i,
                    dut->local_error_o),
        state_error("state_error", dut->state_error_valid_o, dut->state_error_ready_i,
                    dut->state_error_o),
        rewind("rewind", dut->rewind_valid_o, dut->rewind_ready_i, dut->rewind_o),
        item("item", dut->item_valid_o, dut->item_ready_i, dut->item_o) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    pkg::epoch_bcast_t{}.pack(dut->epoch_i);
    pkg::ack_state_t{}.pack(dut->ack_state_i);
    pkg::state_bcast_t{}.pack(dut->state_i);
    pkg::rnr_bcast_t{}.pack(dut->rnr_i);
    dut->others_queued_i = dut->others_fetched_i = 0;
    dut->gid_valid_i = static_cast<std::decay_t<decltype(dut->gid_valid_i)>>(gids);
    dut->colour_i = 0;
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "tables cleared", 5000);
    item.collect();
    item.on_transfer([this](const pkg::tx_item_t& i) {
      if (checks_items) check_item(i);
      REQUIRE((dut->fence_busy_o >> i.desc.colour & 1) == 1);
      // the records of a WQE are with their owners before its last packet
      const auto due = records_due.find(item.transfers());
      if (due != records_due.end()) {
        REQUIRE(inflight.transfers() >= due->second.first);
        REQUIRE(read_record.transfers() >= due->second.second);
        records_due.erase(due);
      }
    });
    dut.attach(*this);
    dut.attach(block);
    dut.attach(inflight);
    dut.attach(read_record);
    dut.attach(local_error);
    dut.attach(state_error);
    dut.attach(rewind);
    dut.attach(item);
  }

  void check_item(const pkg::tx_item_t& got) {
    if (awaited.empty()) throw Failure("unexpected item " + got.to_string());
    const Awaited a = awaited.front();
    awaited.pop_front();
    const Pushed& w = pushed.at(a.push);
    unsigned& since = unasked[w.qp];
    if (!inside) {
      packet_asks = a.forced || asks_by_rule(since, a.window_log2, a.mtu);
      if (a.end && !packet_asks && !a.silent) {
        // it may go without if the next one is here and good for it
        const bool may = a.push + 1 < pushed.size() && pushed[a.push + 1].qp == w.qp &&
                         pushed[a.push + 1].epoch == w.epoch && !a.resent &&
                         may_leave_out(w.wqe, pushed[a.push + 1].wqe, pushed[a.push + 1].good,
                                       a.mtu);
        packet_asks = !may || got.desc.ackreq;
        left_out += !packet_asks;
      }
    }
    if (a.silent) packet_asks = false;
    pkg::tx_item_t want = a.item;
    want.desc.ackreq = packet_asks;
    if (!(got == want)) {
      throw Failure("item differs\n  expected " + want.to_string() + "\n  got      " +
                    got.to_string() + "\n ROCI_SEED=" + std::to_string(base_seed()));
    }
    inside = !got.last;
    if (got.last) since = packet_asks || a.silent ? 0 : since + 1;
  }

  void stalls() {
    block.stall(Stall::any(random));
    inflight.stall(Stall::any(random));
    read_record.stall(Stall::any(random));
    item.stall(Stall::any(random));
    rewind.stall(Stall::any(random));
    local_error.stall(Stall::any(random));
  }

  void sample() override {
    if (const auto s = pkg::sent_t::unpack(dut->sent_o); s.valid && checks_sent) {
      REQUIRE_FALSE(sent.empty());
      if (dut.cycle() >= stale_from) {
        sent.front().current = false;
        ++stale;
      }
      REQUIRE(s == sent.front());
      sent.pop_front();
    }
    resent += dut->resent_o;
  }
  void drive() override {
    dut->colour_i = colour;
    pkg::epoch_bcast_t e = random_payload<pkg::epoch_bcast_t>(random);
    e.valid = !epochs.empty();
    if (e.valid) {
      e = epochs.front();
      epochs.pop_front();
    }
    e.pack(dut->epoch_i);
    auto clear = [&](auto payload, auto& port) {
      payload.valid = false;
      payload.pack(port);
    };
    clear(random_payload<pkg::ack_state_t>(random), dut->ack_state_i);
    clear(random_payload<pkg::state_bcast_t>(random), dut->state_i);
    clear(random_payload<pkg::rnr_bcast_t>(random), dut->rnr_i);
  }

  std::uint64_t ctx(bool write, unsigned column, unsigned qp, unsigned word, std::uint64_t data) {
    return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { dut.tick(); }, column, write, qp, word, data, 200);
  }

  // ---- QPs
  void state(const Qp& qp, State s) {
    pkg::state_bcast_t b{};
    b.valid = true;
    b.qp = static_cast<decltype(b.qp)>(qp.number);
    b.state = static_cast<pkg::qp_state_e>(s);
    b.pack(dut->state_i);
    dut.tick(4);
  }
  void waiting(const Qp& qp, bool on) {
    pkg::rnr_bcast_t b{};
    b.valid = true;
    b.qp = static_cast<decltype(b.qp)>(qp.number);
    b.waiting = on;
    b.pack(dut->rnr_i);
    dut.tick(4);
  }
  void ack(const Qp& qp) {
    qp.ack.pack(dut->ack_state_i);
    dut.tick(4);
  }
  // Everything open: as many records, READs and bytes as the widths allow.
  Qp open(unsigned number, unsigned qp_type = 0) {
    Qp qp;
    qp.number = number;
    qp.ctx.qp_type = qp_type;
    qp.ctx.mtu_code = static_cast<unsigned>(random.between(1, 5));
    qp.ctx.fn = static_cast<unsigned>(random.below(ROCI_CONFIG_WIDE ? 16 : 8));
    qp.ctx.pd = static_cast<unsigned>(random.below(ROCI_CONFIG_WIDE ? 1024 : 64));
    qp.ctx.max_rd_atomic = 255;
    qp.ctx.inflight_log2 = 15;
    qp.ctx.inflight_base = static_cast<unsigned>(random.bits(ROCI_CONFIG_WIDE ? 14 : 9));
    qp.ctx.read_log2 = 8;
    qp.ctx.read_base = static_cast<unsigned>(random.bits(ROCI_CONFIG_WIDE ? 12 : 8));
    qp.ring = random.bits(52) << 12u;
    qp.index = static_cast<std::uint16_t>(random.bits(16));
    qp.psn = qp.max_psn = static_cast<std::uint32_t>(random.bits(24));
    setup(qp);
    return qp;
  }
  void setup(Qp& qp) {
    ctx(true, kTx, qp.number, 0, qp.ctx.word0());
    ctx(true, kTx, qp.number, 1, qp.ctx.word1());
    ctx(true, kDyn, qp.number, 0, qp.psn);
    qp.ordinal = 0;
    qp.ack.valid = true;
    qp.ack.qp = static_cast<decltype(qp.ack.qp)>(qp.number);
    qp.ack.oldest_index = qp.index;
    qp.ack.acked_psn = qp.psn;
    ack(qp);
    state(qp, kRts);
  }
  void window(unsigned log2) {
    window_log2 = log2;
    ctx(true, kTuning, 0, 0, log2);
  }

  // ---- pushing and expecting
  std::uint64_t address(const Qp& qp) const { return qp.ring + 64u * (qp.index % 8u); }

  // Blocks of a WQE at the QP's index; returns the index of its first block.
  std::uint16_t push(Qp& qp, const Wqe& w, bool last = true, bool turn = false, bool err = false) {
    const auto raw = w.to_blocks(random, w.blocks);
    const auto first = qp.index;
    pushed.push_back({qp.number, qp.epoch, w, !err && w.verdict(first, gids) == kFine});
    for (unsigned n = 0; n < w.blocks; ++n) {
      pkg::wqe_block_t b{};
      b.colour = colour;
      b.err = err;
      b.burst_last = last && n + 1 == w.blocks;
      b.turn = turn && n == 0;
      b.qp = static_cast<decltype(b.qp)>(qp.number);
      b.epoch = qp.epoch;
      b.addr = address(qp);
      b.index = qp.index++;
      for (unsigned k = 0; k < 64; ++k) {
        b.block[k / 4] |= static_cast<std::uint32_t>(raw[n][k]) << (8 * (k % 4));
      }
      block.push(b);
    }
    return first;
  }
  pkg::tx_desc_t common(const Qp& qp, std::uint16_t index) const {
    pkg::tx_desc_t d{};
    d.colour = colour;
    d.qp = static_cast<decltype(d.qp)>(qp.number);
    d.wqe_index = index;
    d.epoch = qp.epoch;
    return d;
  }
  void expect_inflight(const Qp& qp, const Wqe& w, std::uint16_t index, Kind kind) {
    pkg::inflight_write_t r{};
    r.qp = static_cast<decltype(r.qp)>(qp.number);
    r.wqe_index = index;
    r.epoch = qp.epoch;
    const unsigned mask = (1u << (ROCI_CONFIG_WIDE ? 14 : 9)) - 1;
    r.slot = static_cast<std::uint16_t>(
        (qp.ctx.inflight_base + (index & ((1u << qp.ctx.inflight_log2) - 1))) & mask);
    r.record.kind = static_cast<pkg::inflight_kind_e>(kind);
    r.record.signaled = w.signaled;
    r.record.blocks = static_cast<std::uint8_t>(w.blocks);
    r.record.wc_opcode = w.wc_opcode();
    r.record.byte_len = w.length;
    r.record.first_psn = qp.psn;
    r.record.last_psn = (qp.psn + psn_count(w, qp.ctx.mtu()) - 1) & kPsnMask;
    r.record.read_ordinal = qp.ordinal;
    inflight.expect(r);
    ++inflight_expected;
  }
  void expect_read(const Qp& qp, const Wqe& w) {
    pkg::read_record_write_t r{};
    r.qp = static_cast<decltype(r.qp)>(qp.number);
    const unsigned mask = (1u << (ROCI_CONFIG_WIDE ? 12 : 8)) - 1;
    r.slot = static_cast<decltype(r.slot)>(
        (qp.ctx.read_base + (qp.ordinal & ((1u << qp.ctx.read_log2) - 1))) & mask);
    r.ordinal = qp.ordinal;
    r.first_psn = qp.psn;
    r.last_psn = (qp.psn + psn_count(w, qp.ctx.mtu()) - 1) & kPsnMask;
    r.atomic = w.is_atomic();
    r.length = w.length;
    for (const auto& s : w.sges) {
      if (s.length == 0) continue;
      auto& sge = r.sges[r.sge_count++];
      sge.va = s.va;
      sge.length = s.length;
      sge.lkey = s.lkey;
    }
    read_record.expect(r);
    ++read_expected;
  }
  // Packets of `w` from packet number `from` to before number `to`, and its records if that is the
  // end; then the QP goes on to the next WQE.
  void expect(Qp& qp, const Wqe& w, std::uint16_t index, std::uint32_t from = 0,
              std::uint32_t to = ~0u, std::uint32_t stop = ~0u) {
    const std::uint32_t count = psn_count(w, qp.ctx.mtu());
    const bool read = w.is_fetch();
    const bool whole = to >= count;
    const bool started = psn_before(qp.psn, qp.max_psn);
    const std::uint64_t at = qp.ring + 64u * (index % 8u);
    if (whole) {
      expect_inflight(qp, w, index, w.op == kNop ? (w.signaled ? kKindLocal : kKindNop)
                                    : count == 0    ? kKindLocal
                                    : w.is_atomic() ? kKindAtomic
                                    : read          ? kKindRead
                                                    : kKindSend);
      if (read && from < count && !started) expect_read(qp, w);
    }
    for (std::uint32_t n = from; n < std::min(count, to); ++n) {
      const std::uint32_t psn = (qp.psn + n) & kPsnMask;
      const auto items = packet(w, qp.ctx, qp.psn, psn, at, common(qp, index));
      for (const auto& i : items) {
        awaited.push_back({i, read || n + 1 == count, ((psn + 1) & kPsnMask) == stop,
                           psn_before(psn, qp.max_psn), qp.ctx.qp_type != 0, window_log2,
                           qp.ctx.mtu(),
                           pushed.size() - 1});
      }
      items_expected += items.size();
      pkg::sent_t s{};
      s.valid = true;
      s.qp = static_cast<decltype(s.qp)>(qp.number);
      s.psn = psn;
      resent_expected += psn_before(psn, qp.max_psn);
      const std::uint32_t end = (qp.psn + (read ? count : n + 1)) & kPsnMask;
      if (psn_before(qp.max_psn, end)) qp.max_psn = end;
      s.next_psn = qp.max_psn;
      s.current = true;
      sent.push_back(s);
      if (read) break;
    }
    if (whole) {
      if (count != 0 && from < count) {
        records_due[items_expected] = {inflight_expected, read_expected};
      }
      qp.psn = (qp.psn + count) & kPsnMask;
      qp.ordinal = static_cast<std::uint8_t>(qp.ordinal + read);
    }
  }
  // Pulses of the next `count` packets, all sent for the first time; the QP stays where it is.
  void expect_sent(const Qp& qp, std::uint32_t count) {
    for (std::uint32_t n = 0; n < count; ++n) {
      pkg::sent_t s{};
      s.valid = true;
      s.qp = static_cast<decltype(s.qp)>(qp.number);
      s.psn = (qp.psn + n) & kPsnMask;
      s.next_psn = (qp.psn + n + 1) & kPsnMask;
      s.current = true;
      sent.push_back(s);
    }
  }
  void send(Qp& qp, const Wqe& w, bool last = true, bool turn = false) {
    expect(qp, w, push(qp, w, last, turn));
  }
  void expect_rewind(const Qp& qp, pkg::rewind_kind_e kind, std::uint16_t index,
                     std::uint32_t resume) {
    pkg::rewind_req_t r{};
    r.kind = kind;
    r.qp = static_cast<decltype(r.qp)>(qp.number);
    r.epoch = qp.epoch;
    r.point.wqe_index = index;
    r.point.first_psn = qp.psn;
    r.point.resume_psn = resume & kPsnMask;
    r.point.read_ordinal = qp.ordinal;
    rewind.expect(r);
  }
  // The QP's next epoch begins at its index and PSN, as queue_wqe_fetch would tell.
  void next_epoch(Qp& qp, std::uint32_t resume) {
    ++qp.epoch;
    pkg::epoch_bcast_t e{};
    e.valid = true;
    e.qp = static_cast<decltype(e.qp)>(qp.number);
    e.epoch = qp.epoch;
    e.point.wqe_index = qp.index;
    e.point.first_psn = qp.psn;
    e.point.resume_psn = resume & kPsnMask;
    e.point.read_ordinal = qp.ordinal;
    epochs.push_back(e);
  }
  void rest(std::uint64_t limit = 200000) {
    int quiet = 0;
    dut.run_until(
        [&] {
          const bool still = block.empty() && awaited.empty() && inflight.done() &&
                             read_record.done() && local_error.done() && state_error.done() &&
                             rewind.done() && sent.empty() && epochs.empty();
          quiet = still ? quiet + 1 : 0;
          return quiet > 20;
        },
        "rest", limit);
    REQUIRE(records_due.empty());
    REQUIRE(resent == resent_expected);
    REQUIRE(dut->fence_busy_o == 0);
  }
};

inline Wqe write_of(std::uint32_t bytes, Random& random, std::uint8_t op = kWrite) {
  Wqe w;
  w.op = op;
  w.signaled = true;
  w.length = bytes;
  w.va = random();
  w.sge_count = bytes != 0;
  if (bytes != 0) w.sges = {{random(), bytes, static_cast<std::uint32_t>(random())}};
  return w;
}

// Room for `blocks` blocks in the line, else a NOP fills it, as the host does.
inline void pad(Bench& bench, Qp& qp, unsigned blocks) {
  const unsigned room = 8 - qp.index % 8;
  if (blocks <= room) return;
  Wqe nop;
  nop.op = kNop;
  nop.blocks = room;
  bench.send(qp, nop);
}

}  // namespace roci::test::send
