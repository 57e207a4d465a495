// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Everything around the sending path of requester_send_path_tb: programs that post work requests
// into rings in host memory and reuse their places as soon as they complete; memory with latency
// and bus errors; a network that loses packets; peers that acknowledge, NAK, answer late or not; the
// acknowledge side with its rewinds, waits, flushes; changes of state.
//
// Checks while it runs: every item of every packet; that packets of an epoch follow each other
// without gap from its rewind point, and those of an old epoch end at once; records, sent pulses
// and reports; that no window is exceeded. What was posted must complete or be flushed, in order.
#pragma once

#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "harness/harness.hpp"
#include "requester/send_model.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

namespace roci::test::send {

constexpr unsigned kQpBits = ROCI_CONFIG_WIDE ? 10 : 6;
constexpr unsigned kDataBytes = ROCI_CONFIG_WIDE ? 64 : 8;
enum State { kReset, kInit, kRtr, kRts, kSqd, kSqe, kErr };
enum Kind { kKindSend, kKindRead, kKindAtomic, kKindLocal, kKindNop, kKindFlush };

/// A posted work request.
struct Posted {
  Wqe wqe;
  std::uint16_t index = 0;
  std::uint32_t first_psn = 0, count = 0;
  std::uint8_t ordinal = 0;
  bool bad = false, reported = false;
  bool recorded = false;
  std::uint8_t recorded_epoch = 0;
  bool flush_record = false;
  std::uint32_t end() const { return (first_psn + count) & kPsnMask; }
};

struct Qp {
  unsigned number = 0;
  Context ctx;
  unsigned ring_log2 = 6;
  std::uint64_t page = 0;
  std::vector<Block> ring;
  State state = kReset, target = kReset;       // as told, as asked for
  std::uint64_t state_at = 0;
  unsigned late_state = 0;                     // packets since the last change of state

  // program
  std::uint16_t producer = 0;
  std::deque<Posted> work, done;               // not completed; the last ones completed
  std::uint32_t next_psn = 0;
  std::uint8_t next_ordinal = 0;
  std::uint64_t posted = 0, completed = 0, flushed = 0, dropped = 0;

  // requester, as acknowledged
  std::uint32_t acked = 0, max_psn = 0, max_item = 0;   // max_item: as max_psn, by what came out
  std::uint8_t reads_done = 0;
  bool stop_valid = false;
  std::uint32_t stop_psn = 0;
  std::uint64_t progress_at = 0;
  bool rewinding = false;                      // a rewind is asked for and not yet applied
  bool want_retry = false, want_sleep = false, flushing = false, flush_asked = false;
  bool waiting = false;
  std::uint64_t wait_until = 0;
  unsigned late_waiting = 0;
  bool unreadable = false;                     // a read of the ring failed
  bool broken = false;                         // and was reported
  bool failed = false;                         // ERR was asked for

  // epoch
  std::uint8_t epoch = 0;
  pkg::rewind_point_t point{};
  std::uint32_t expect_psn = 0;                // of the next packet of this epoch
  std::uint16_t expect_record = 0;             // index of the next record of this epoch
  unsigned late = 0;                           // packets of older epochs since it began
  unsigned unasked = 0;                        // packets since the last one with AckReq

  // responder
  std::uint32_t epsn = 0;
  bool nak_sent = false;

  /// Failed, and what cannot be read of its ring cannot be flushed.
  bool lost() const { return broken || (unreadable && state == kErr); }
  std::uint16_t oldest() const { return work.empty() ? producer : work.front().index; }
};

class SendPath : public Agent {
 public:
  // ---- knobs
  double loss = 0.0, ack_loss = 0.0, rnr = 0.0, partial = 0.0, bus_errors = 0.0;
  std::uint64_t latency = 250, half_trip = 250, timeout = 6000;
  unsigned window_log2 = 18;

  Dut<DUT_CLASS> dut;
  Random& random;
  std::map<unsigned, Qp> qps;
  std::uint64_t packets = 0;
  std::uint64_t yields = 0, stalls = 0, resent = 0, local_errors = 0, retries = 0;
  std::uint64_t timeouts = 0, left_out = 0, owed = 0;   // ends without AckReq; reports of such

  explicit SendPath(Random& r)
      : dut(r()), random(r),
        wake_("wake", dut->wake_valid_i, dut->wake_ready_o, dut->wake_i),
        retry_("retry", dut->retry_valid_i, dut->retry_ready_o, dut->retry_i),
        dma_("dma", dut->dma_valid_o, dut->dma_ready_i, dut->dma_o),
        beat_("beat", dut->beat_valid_i, dut->beat_ready_o, dut->beat_i),
        item_("item", dut->item_valid_o, dut->item_ready_i, dut->item_o),
        inflight_("inflight", dut->inflight_valid_o, dut->inflight_ready_i, dut->inflight_o),
        read_("read_record", dut->read_record_valid_o, dut->read_record_ready_i,
              dut->read_record_o),
        local_("local_error", dut->local_error_valid_o, dut->local_error_ready_i,
               dut->local_error_o),
        state_error_("state_error", dut->state_error_valid_o, dut->state_error_ready_i,
                     dut->state_error_o),
        rewind_("rewind", dut->rewind_valid_o, dut->rewind_ready_o, dut->rewind_o) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    pkg::ack_state_t{}.pack(dut->ack_state_i);
    pkg::state_bcast_t{}.pack(dut->state_i);
    pkg::rnr_bcast_t{}.pack(dut->rnr_i);
    dut->doorbell_valid_i = 0;
    dut->colour_i = 0;
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "tables cleared", 5000);
    retry_.on_transfer([this](const pkg::rewind_req_t& q) { applied(qps.at(q.qp)); });
    dma_.collect();
    dma_.on_transfer([this](const pkg::dma_read_req_t& d) {
      reads_.emplace_back(now() + latency, d);
      dma_.received().clear();
    });
    item_.collect();
    item_.on_transfer([this](const pkg::tx_item_t& i) {
      item_.received().clear();
      take_item(i);
    });
    inflight_.collect();
    inflight_.on_transfer([this](const pkg::inflight_write_t& r2) {
      inflight_.received().clear();
      take_record(r2);
    });
    read_.collect();
    read_.on_transfer([this](const pkg::read_record_write_t& r2) {
      read_.received().clear();
      take_read(r2);
    });
    local_.collect();
    local_.on_transfer([this](const pkg::local_error_t& e) {
      local_.received().clear();
      take_local_error(e);
    });
    state_error_.collect();
    state_error_.on_transfer([this](const pkg::state_error_t& e) {
      state_error_.received().clear();
      Qp& q = qps.at(e.qp);
      REQUIRE(bus_errors > 0.0);
      REQUIRE(e.event_valid);
      q.broken = true;
      set_state(q, kErr);
    });
    rewind_.on_transfer([this](const pkg::rewind_req_t& q) {
      (static_cast<unsigned>(q.kind) == 1 ? yields : stalls)++;
    });
    dut.attach(*this);
    dut.attach(retry_);
    dut.attach(wake_);
    dut.attach(dma_);
    dut.attach(beat_);
    dut.attach(inflight_);
    dut.attach(read_);
    dut.attach(item_);
    dut.attach(local_);
    dut.attach(state_error_);
    dut.attach(rewind_);
  }

  /// Random stalls on every stream.
  void stall_all() {
    retry_.stall(Stall::any(random));
    wake_.stall(Stall::any(random));
    dma_.stall(Stall::any(random));
    beat_.stall(Stall(random.chance(0.5) ? 0.0 : 0.3));
    item_.stall(Stall(random.chance(0.5) ? 0.0 : 0.5));
    inflight_.stall(Stall::any(random));
    read_.stall(Stall::any(random));
    local_.stall(Stall::any(random));
  }

  std::uint64_t now() { return dut.cycle(); }

  // ---- firmware
  std::uint64_t ctx(bool write, roci::hwif::CtxColumn column, unsigned index, unsigned word,
                    std::uint64_t data) {
    return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { dut.tick(); }, static_cast<unsigned>(column), write, index, word, data, 500);
  }

  void set_window(unsigned log2) {
    window_log2 = log2;
    ctx(true, roci::hwif::CtxColumn::TUNING, 0, 0, log2);
  }

  /// Makes a QP live; its context is set by the caller.
  Qp& create(unsigned number, const Context& context, unsigned ring_log2) {
    Qp& q = qps[number];
    q.number = number;
    q.ctx = context;
    q.ring_log2 = ring_log2;
    q.page = std::uint64_t{0x100000} + number * 64u + random.below(8) * 1000000u;
    q.ring.assign(std::size_t{1} << ring_log2, Block{});
    bring_up(q);
    return q;
  }

  void bring_up(Qp& q) {
    using roci::hwif::CtxColumn;
    q.work.clear();
    q.done.clear();
    q.producer = static_cast<std::uint16_t>(random.bits(16) & ~7u);
    q.next_psn = q.acked = q.epsn = static_cast<std::uint32_t>(random.bits(24));
    q.max_psn = q.max_item = q.next_psn;
    q.unasked = 0;
    q.next_ordinal = q.reads_done = 0;
    q.nak_sent = q.stop_valid = q.want_retry = q.want_sleep = false;
    q.flushing = q.flush_asked = q.broken = q.unreadable = q.failed = false;
    for (auto& b : q.ring) spoil(b);
    ctx(true, CtxColumn::QP_SQ, q.number, 0, q.page << 12u | q.ctx.fn << 4u | q.ring_log2);
    ctx(true, CtxColumn::QP_SQ, q.number, 1, std::uint64_t{q.next_psn} << 32u | q.producer);
    ctx(true, CtxColumn::QP_TX, q.number, 0, q.ctx.word0());
    ctx(true, CtxColumn::QP_TX, q.number, 1, q.ctx.word1());
    ctx(true, CtxColumn::QP_TX_DYN, q.number, 0, q.next_psn);
    q.expect_psn = q.next_psn;
    q.expect_record = q.producer;
    q.progress_at = now();
    tell(q);
    for (const State s : {kInit, kRtr, kRts}) {
      set_state(q, s);
      dut.tick(random.below(20));
    }
    REQUIRE(q.work.empty());
  }

  /// RESET with its fence, then live again with new PSNs; what was posted is gone.
  void restart(Qp& q) {
    set_state(q, kReset);
    end_wait(q);
    dut.run_until([&] { return !q.rewinding; }, "rewinds of a dead QP", 20000);
    dut.tick(4);
    fence();
    q.dropped += q.work.size();
    q.flush_asked = false;
    bring_up(q);
  }

  void fence() {
    dut->colour_i = !dut->colour_i;
    const unsigned old = !dut->colour_i;
    unsigned quiet = 0;
    dut.run_until(
        [&] {
          quiet = dut->fence_busy_o >> old & 1 ? 0 : quiet + 1;
          return quiet == 8;
        },
        "a fence", 200000);
  }

  /// Asks for a state; never from ERR to a live one, as context_qp_state would not.
  void set_state(Qp& q, State s) {
    if (q.target == kErr && (s == kRts || s == kSqd)) return;
    q.target = s;
    pkg::state_bcast_t b{};
    b.valid = true;
    b.qp = static_cast<decltype(b.qp)>(q.number);
    b.state = static_cast<pkg::qp_state_e>(s);
    states_.push_back(b);
    if (s == kErr) end_wait(q);
  }

  // ---- program
  /// Posts if there is room; pads the line as the host does. No doorbell yet.
  bool post(Qp& q, Wqe w) {
    const unsigned room_in_line = 8 - q.producer % 8;
    const unsigned pad = w.blocks > room_in_line ? room_in_line : 0;
    const auto used = static_cast<std::uint16_t>(q.producer - q.oldest());
    if (used + pad + w.blocks > (1u << q.ring_log2)) return false;
    if (pad != 0) {
      Wqe nop;
      nop.op = kNop;
      nop.blocks = pad;
      place(q, nop);
    }
    place(q, w);
    return true;
  }
  void doorbell(Qp& q) {
    pkg::doorbell_t d{};
    d.object_index = static_cast<std::uint16_t>(q.number);
    d.index = q.producer;
    doorbells_.push_back(d);
  }

  /// Ticks until `condition()`; a timeout tells what the QPs are waiting for.
  void run_until(const std::function<bool()>& condition, const std::string& what,
                 std::uint64_t limit) {
    try {
      dut.run_until(condition, what, limit);
    } catch (const Failure& failure) {
      std::string text = failure.what();
      for (const auto& [number, q] : qps) {
        text += "\n QP " + std::to_string(number) + ": state " + std::to_string(q.state) +
                ", WQEs " + std::to_string(q.work.size()) + ", producer " +
                std::to_string(q.producer) + ", acked " + std::to_string(q.acked) + ", max " +
                std::to_string(q.max_psn) + ", epsn " + std::to_string(q.epsn) + ", epoch " +
                std::to_string(q.epoch) + ", point " + q.point.to_string() +
                (q.rewinding ? ", rewinding" : "") + (q.waiting ? ", waiting" : "") +
                (q.flushing ? ", flushing" : "") + (q.stop_valid ? ", stop" : "") +
                ", reads done " + std::to_string(q.reads_done);
        if (!q.work.empty()) {
          const auto& p = q.work.front();
          text += ", oldest " + std::to_string(p.index) + " op " + std::to_string(p.wqe.op) +
                  " first_psn " + std::to_string(p.first_psn) + " count " +
                  std::to_string(p.count) + (p.recorded ? " recorded" : "") +
                  (p.bad ? " bad" : "") + (p.reported ? " reported" : "");
        }
      }
      throw Failure(text);
    }
  }

  /// All that was posted is completed or flushed, and nothing moves.
  void rest(std::uint64_t limit = 300000) {
    unsigned quiet = 0;
    run_until(
        [&] {
          bool still = retry_.empty() && wake_.empty() && arrivals_.empty() && events_.empty() &&
                       doorbells_.empty() && ack_states_.empty() && dut->fence_busy_o == 0;
          for (auto& [number, q] : qps) still &= q.work.empty() || q.lost();
          quiet = still ? quiet + 1 : 0;
          return quiet > 50;
        },
        "everything posted completes", limit);
  }

  // ---- ports
  void sample() override {
    if (const auto e = pkg::epoch_bcast_t::unpack(dut->epoch_o); e.valid) {
      Qp& q = qps.at(e.qp);
      q.epoch = e.epoch;
      q.point = e.point;
      q.expect_psn = psn_before(e.point.first_psn, e.point.resume_psn) ? e.point.resume_psn
                                                                       : e.point.first_psn;
      q.expect_record = e.point.wqe_index;
      q.late = 0;
    }
    if (const auto s = pkg::sent_t::unpack(dut->sent_o); s.valid) take_sent(s);
  }

  void drive() override {
    // one broadcast of each kind per cycle
    pkg::ack_state_t a{};
    if (!ack_states_.empty()) {
      a = ack_states_.front();
      ack_states_.pop_front();
      wake_.push(Bits<kQpBits>(a.qp));
    }
    a.pack(dut->ack_state_i);
    pkg::state_bcast_t s{};
    if (!states_.empty()) {
      s = states_.front();
      states_.pop_front();
      Qp& q = qps.at(s.qp);
      q.state = static_cast<State>(s.state);
      q.state_at = now();
      q.late_state = 0;
      walks_.insert(s.qp);
    }
    s.pack(dut->state_i);
    pkg::rnr_bcast_t r{};
    if (!rnrs_.empty()) {
      r = rnrs_.front();
      rnrs_.pop_front();
    }
    r.pack(dut->rnr_i);
    dut->doorbell_valid_i = !doorbells_.empty() && random.chance(0.7);
    if (dut->doorbell_valid_i) {
      doorbells_.front().pack(dut->doorbell_i);
      doorbells_.pop_front();
    }
    serve_memory();
    for (; !arrivals_.empty() && arrivals_.front().first <= now(); arrivals_.pop_front()) {
      arrive(arrivals_.front().second);
    }
    for (; !events_.empty() && events_.front().first <= now(); events_.pop_front()) {
      acknowledge(events_.front().second);
    }
    for (auto& [number, q] : qps) {
      if (q.waiting && !q.rewinding && now() >= q.wait_until) end_wait(q);
      if (live(q) && q.acked != q.max_psn && !q.waiting && now() > q.progress_at + timeout) {
        ++timeouts;
        q.want_retry = true;
        q.progress_at = now();
        walks_.insert(number);
      }
    }
    const auto walks = std::move(walks_);
    walks_.clear();
    for (const auto number : walks) walk(qps.at(number));
  }

 private:
  struct Packet {
    unsigned qp;
    std::uint32_t psn, count;
    bool is_send, ackreq;
  };
  enum class Told { kAck, kNak, kRnr, kImplied };
  struct Event {
    unsigned qp;
    Told told;
    std::uint32_t psn;                         // everything below it is acknowledged
  };

  static bool live(const Qp& q) { return q.state == kRts || q.state == kSqd; }

  void spoil(Block& b) {
    for (auto& byte : b) byte = static_cast<std::uint8_t>(random());
    b[0] = 0xee;                               // no opcode: a fetched one is found
    b[2] = 0x11;
  }

  void place(Qp& q, const Wqe& w) {
    Posted p;
    p.wqe = w;
    p.index = q.producer;
    p.first_psn = q.next_psn;
    p.count = psn_count(w, q.ctx.mtu());
    p.ordinal = q.next_ordinal;
    p.bad = w.verdict(q.producer) != kFine;
    const auto blocks = w.to_blocks(random, w.blocks);
    for (const auto& b : blocks) q.ring[q.producer++ % q.ring.size()] = b;
    q.next_psn = (q.next_psn + p.count) & kPsnMask;
    q.next_ordinal = static_cast<std::uint8_t>(q.next_ordinal + w.is_fetch());
    q.work.push_back(p);
    ++q.posted;
  }

  std::uint64_t address(const Qp& q, std::uint16_t index) const {
    return (q.page << 12u) + 64u * (index % q.ring.size());
  }

  // ---- host memory: what it holds when the read comes back
  void serve_memory() {
    for (; !reads_.empty() && reads_.front().first <= now(); reads_.pop_front()) {
      const auto& d = reads_.front().second;
      Qp* q = nullptr;
      for (auto& [number, c] : qps) {
        const std::uint64_t base = c.page << 12u;
        if (d.addr >= base && d.addr < base + 64 * c.ring.size()) q = &c;
      }
      REQUIRE(q != nullptr);
      REQUIRE(d.fn == q->ctx.fn);
      const std::uint64_t offset = d.addr - (q->page << 12u);
      const bool err = random.chance(bus_errors);
      q->unreadable |= err;
      for (unsigned at = 0; at < d.length; at += kDataBytes) {
        pkg::read_beat_t b{};
        auto words = roci::sv::to_words(b);
        for (unsigned n = 0; n < kDataBytes; ++n) {
          const auto byte = (offset + at + n) % (64 * q->ring.size());
          roci::sv::set_bits(words.data(), 8 * n, 8, q->ring[byte / 64][byte % 64]);
        }
        b = roci::sv::from_words<pkg::read_beat_t>(words);
        b.last = at + kDataBytes == d.length;
        b.err = err;
        beat_.push(b);
      }
    }
  }

  // ---- what comes out
  Posted* find(Qp& q, std::uint16_t index, bool& completed) {
    completed = false;
    for (auto& p : q.work) {
      if (p.index == index) return &p;
    }
    completed = true;
    for (auto p = q.done.rbegin(); p != q.done.rend(); ++p) {
      if (p->index == index) return &*p;
    }
    return nullptr;
  }

  void take_item(const pkg::tx_item_t& i) {
    REQUIRE((dut->fence_busy_o >> i.desc.colour & 1) == 1);
    if (packet_.empty()) {
      start_packet(i);
    }
    REQUIRE_FALSE(packet_.empty());
    if (!(i == packet_.front())) {
      throw Failure("item differs\n  expected " + packet_.front().to_string() + "\n  got      " +
                    i.to_string() + "\n ROCI_SEED=" + std::to_string(base_seed()));
    }
    packet_.pop_front();
    if (!packet_.empty()) return;
    ++packets;
    Packet p{i.desc.qp, i.desc.psn, 1, i.desc.opcode <= 5, i.desc.ackreq != 0};
    qps.at(p.qp).unasked = p.ackreq ? 0 : qps.at(p.qp).unasked + 1;
    if (i.desc.opcode == 0x0c) {
      const std::uint32_t mtu = qps.at(p.qp).ctx.mtu();
      p.count = std::max(1u, static_cast<std::uint32_t>(
                                 (std::uint64_t{i.desc.dma_length} + mtu - 1) / mtu));
    }
    if (!random.chance(loss)) arrivals_.emplace_back(now() + half_trip, p);
  }

  void start_packet(const pkg::tx_item_t& i) {
    const auto& d = i.desc;
    Qp& q = qps.at(d.qp);
    CAPTURE(d.to_string(), q.epoch, q.expect_psn, q.acked, q.max_psn, now(), q.oldest());
    bool completed = false;
    const Posted* p = find(q, d.wqe_index, completed);
    REQUIRE(p != nullptr);
    REQUIRE_FALSE(p->bad);
    // exactly this packet
    pkg::tx_desc_t common{};
    common.colour = d.colour;
    common.qp = d.qp;
    common.wqe_index = d.wqe_index;
    common.epoch = d.epoch;
    auto items = packet(p->wqe, q.ctx, p->first_psn, d.psn, address(q, p->index), common);
    const bool before_stop = q.stop_valid && ((d.psn + 1) & kPsnMask) == q.stop_psn;
    const bool end = p->wqe.is_fetch() || ((d.psn + 1) & kPsnMask) == p->end();
    bool asks = asks_by_rule(q.unasked, window_log2, q.ctx.mtu()) || (before_stop && d.ackreq);
    if (end && !asks) {
      // it may go without if the next one is there and will ask
      bool unused = false;
      const auto after = static_cast<std::uint16_t>(p->index + p->wqe.blocks);
      const Posted* next = after == q.producer ? nullptr : find(q, after, unused);
      const bool may = next != nullptr && !psn_before(d.psn, q.max_item) &&
                       may_leave_out(p->wqe, next->wqe, !next->bad, q.ctx.mtu());
      asks = !may || d.ackreq;
      left_out += !asks;
    }
    const std::uint32_t beyond = p->wqe.op == kRead ? p->end() : (d.psn + 1) & kPsnMask;
    if (psn_before(q.max_item, beyond)) q.max_item = beyond;
    for (auto& x : items) {
      x.desc.ackreq = asks;
      packet_.push_back(x);
    }
    // after a change a few packets decided before it may still come
    if (!live(q)) REQUIRE(++q.late_state <= kLate);
    if (q.waiting) REQUIRE(++q.late_waiting <= kLate);
    if (d.epoch != q.epoch) {
      REQUIRE(++q.late <= kLate);
      return;
    }
    // one after the other from the rewind point
    REQUIRE(d.psn == q.expect_psn);
    const bool read = p->wqe.is_fetch();
    q.expect_psn = read ? p->end() : (d.psn + 1) & kPsnMask;
    // a QP in SQD starts nothing
    if (q.state == kSqd && d.psn == p->first_psn && !psn_before(d.psn, max_before_)) {
      REQUIRE(++q.late_state <= kLate);
    }
    // windows, by what is known here, which is never less than what the packetizer knew; a WQE may
    // complete between its record and its last packet if that is sent for the second time
    if (completed) return;
    REQUIRE(static_cast<std::uint16_t>(p->index - q.oldest()) < (1u << q.ctx.inflight_log2));
    const std::uint32_t last = read ? (p->end() - 1) & kPsnMask : d.psn;
    if (!psn_before(last, q.acked)) REQUIRE(((last - q.acked) & kPsnMask) < 0x800000);
    if (read) {
      REQUIRE(static_cast<std::uint8_t>(p->ordinal - q.reads_done) < q.ctx.max_rd_atomic);
    } else {
      std::uint32_t base = q.acked;
      for (const auto& w : q.work) {
        if (w.wqe.is_fetch() && psn_before(w.first_psn, d.psn) && psn_before(base, w.end())) {
          base = w.end();
        }
      }
      // bytes since then, this packet included; one packet may always go
      std::uint64_t bytes = 0;
      for (const auto& w : q.work) {
        for (std::uint32_t n = 0; n < w.count && !w.wqe.is_fetch(); ++n) {
          const std::uint32_t psn = (w.first_psn + n) & kPsnMask;
          if (psn_before(psn, base) || psn_before(d.psn, psn)) continue;
          const std::uint64_t mtu = q.ctx.mtu();
          bytes += std::min<std::uint64_t>(mtu, w.wqe.length - n * mtu);
        }
      }
      if (!psn_before(d.psn, base) && d.psn != base) {
        REQUIRE(bytes <= (std::uint64_t{1} << window_log2));
      }
    }
  }

  void take_sent(const pkg::sent_t& s) {
    Qp& q = qps.at(s.qp);
    std::uint32_t end = (s.psn + 1) & kPsnMask;
    // the oldest one that has this PSN: what is posted may span more than the circle
    const auto holds = [&](const Posted& p) {
      return ((s.psn - p.first_psn) & kPsnMask) < p.count;
    };
    auto at = std::find_if(q.work.begin(), q.work.end(), holds);
    if (at == q.work.end()) {
      const auto past = std::find_if(q.done.rbegin(), q.done.rend(), holds);
      if (past != q.done.rend() && past->wqe.is_fetch()) end = past->end();
    } else if (at->wqe.is_fetch()) {
      end = at->end();
    }
    max_before_ = q.max_psn;
    REQUIRE(dut->resent_o == psn_before(s.psn, q.max_psn));
    resent += dut->resent_o;
    if (psn_before(q.max_psn, end)) {
      q.max_psn = end;
      if (q.acked == max_before_) q.progress_at = now();   // the timer starts
    }
    REQUIRE(s.next_psn == q.max_psn);
  }

  void take_record(const pkg::inflight_write_t& r) {
    Qp& q = qps.at(r.qp);
    CAPTURE(r.to_string(), q.epoch, now());
    bool completed = false;
    Posted* p = find(q, r.wqe_index, completed);
    REQUIRE(p != nullptr);
    const auto kind = static_cast<Kind>(r.record.kind);
    const Wqe& w = p->wqe;
    if (kind == kKindFlush) {
      REQUIRE((q.state == kErr || q.state == kReset));
    } else {
      REQUIRE_FALSE(p->bad);
      REQUIRE(kind == (w.op == kNop ? (w.signaled ? kKindLocal : kKindNop)
                                    : w.op == kRead   ? kKindRead
                                    : w.is_atomic() ? kKindAtomic : kKindSend));
      if (p->count != 0 && q.state == kRts) {
        REQUIRE(r.record.last_psn == ((p->end() - 1) & kPsnMask));
      }
    }
    // flush records count no PSNs
    if (q.state != kErr && q.state != kReset) REQUIRE(r.record.first_psn == p->first_psn);
    REQUIRE(r.record.signaled == w.signaled);
    REQUIRE(r.record.blocks == w.blocks);
    REQUIRE(r.record.wc_opcode == w.wc_opcode());
    REQUIRE(r.record.byte_len == w.length);
    if (kind == kKindRead || kind == kKindAtomic) REQUIRE(r.record.read_ordinal == p->ordinal);
    const unsigned mask = (1u << (ROCI_CONFIG_WIDE ? 14 : 9)) - 1;
    REQUIRE(r.slot == ((q.ctx.inflight_base +
                        (r.wqe_index & ((1u << q.ctx.inflight_log2) - 1))) & mask));
    if (r.epoch != q.epoch) {                  // rewound meanwhile: it counts as an old one
      if (!completed && kind != kKindFlush && live(q)) p->recorded = true;
      return;
    }
    REQUIRE_FALSE(completed);
    REQUIRE(r.wqe_index == q.expect_record);   // in order, none left out
    q.expect_record = static_cast<std::uint16_t>(r.wqe_index + w.blocks);
    p->recorded = true;
    p->recorded_epoch = r.epoch;
    p->flush_record = kind == kKindFlush || kind == kKindNop;
    walks_.insert(q.number);
  }

  void take_read(const pkg::read_record_write_t& r) {
    Qp& q = qps.at(r.qp);
    const Posted* p = nullptr;
    for (const auto* list : {&q.done, &q.work}) {
      for (const auto& c : *list) {
        if (c.wqe.is_fetch() && c.ordinal == r.ordinal && c.first_psn == r.first_psn) p = &c;
      }
    }
    REQUIRE(p != nullptr);
    REQUIRE(r.last_psn == ((p->end() - 1) & kPsnMask));
    REQUIRE(r.length == p->wqe.length);
    REQUIRE(r.atomic == p->wqe.is_atomic());
    const unsigned mask = (1u << (ROCI_CONFIG_WIDE ? 12 : 8)) - 1;
    REQUIRE(r.slot == ((q.ctx.read_base + (r.ordinal & ((1u << q.ctx.read_log2) - 1))) & mask));
    unsigned n = 0;
    for (const auto& s : p->wqe.sges) {
      if (s.length == 0) continue;
      REQUIRE(n < r.sge_count);
      REQUIRE(r.sges[n].va == s.va);
      REQUIRE(r.sges[n].length == s.length);
      REQUIRE(r.sges[n].lkey == s.lkey);
      ++n;
    }
    REQUIRE(n == r.sge_count);
  }

  void take_local_error(const pkg::local_error_t& e) {
    Qp& q = qps.at(e.qp);
    CAPTURE(e.to_string());
    if (!live(q)) return;
    if (e.status == 0) {
      // what is not acknowledged has to be sent again, and asks
      ++owed;
      if (q.acked != q.max_psn) q.want_retry = true;
      walks_.insert(q.number);
      return;
    }
    bool completed = false;
    Posted* p = find(q, e.wqe_index, completed);
    REQUIRE(p != nullptr);
    REQUIRE_FALSE(completed);
    REQUIRE(p->bad);
    REQUIRE(e.psn == p->first_psn);
    REQUIRE(e.vendor_status == p->wqe.verdict(p->index));
    REQUIRE(e.status == (e.vendor_status == kBadLength || e.vendor_status == kBadAtomic ? 1 : 2));
    p->reported = true;
    ++local_errors;
    q.stop_valid = true;
    q.stop_psn = e.psn;
    tell(q);
    walks_.insert(q.number);
  }

  // ---- peer
  void arrive(const Packet& p) {
    Qp& q = qps.at(p.qp);
    if (!live(q)) return;                      // the model's peer goes with it
    const std::uint32_t end = (p.psn + p.count) & kPsnMask;
    if (p.psn == q.epsn) {
      if (p.is_send && random.chance(rnr)) {
        if (!q.nak_sent) answer({p.qp, Told::kRnr, q.epsn});
        q.nak_sent = true;
        return;
      }
      q.epsn = end;
      q.nak_sent = false;
    } else if (psn_before(q.epsn, p.psn)) {
      if (!q.nak_sent) answer({p.qp, Told::kNak, q.epsn});
      q.nak_sent = true;
      return;
    } else if (psn_before(q.epsn, end)) {
      // a repeated READ whose rest was never asked for before
      q.epsn = end;
    }
    if (p.count > 1 && random.chance(partial)) {
      // a response is lost on the way
      const auto some = static_cast<std::uint32_t>(random.below(p.count));
      answer({p.qp, Told::kImplied, (p.psn + some) & kPsnMask});
      return;
    }
    if (p.ackreq) answer({p.qp, Told::kAck, p.count > 1 ? end : q.epsn});
  }
  void answer(const Event& e) {
    if (random.chance(ack_loss)) return;
    events_.emplace_back(now() + half_trip, e);
  }

  // ---- acknowledge side
  void acknowledge(const Event& e) {
    Qp& q = qps.at(e.qp);
    if (!live(q)) return;
    // READ responses acknowledge only what is complete before them
    std::uint32_t to = e.psn;
    for (const auto& p : q.work) {
      if (!p.wqe.is_fetch() || !psn_before(p.first_psn, to) || !psn_before(q.acked, p.end())) {
        continue;
      }
      // the present READ advances by its own answers alone; skipped ones are an implied NAK
      if (e.told != Told::kImplied && e.told != Told::kAck) to = p.first_psn;
      break;
    }
    if (psn_before(q.acked, to) && !psn_before(q.max_psn, to)) {
      q.acked = to;
      q.progress_at = now();
    }
    if (e.told == Told::kNak || e.told == Told::kImplied) q.want_retry = true;
    if (e.told == Told::kRnr && !q.waiting) q.want_sleep = true;
    tell(q);
    walks_.insert(q.number);
  }

  void tell(Qp& q) {
    pkg::ack_state_t a{};
    a.valid = true;
    a.qp = static_cast<decltype(a.qp)>(q.number);
    a.oldest_index = q.oldest();
    a.acked_psn = q.acked;
    a.reads_done = q.reads_done;
    a.stop_valid = q.stop_valid;
    a.stop_psn = q.stop_psn;
    ack_states_.push_back(a);
  }

  void go_back(Qp& q, unsigned kind) {
    pkg::rewind_req_t r{};
    r.kind = static_cast<pkg::rewind_kind_e>(kind);
    r.qp = static_cast<decltype(r.qp)>(q.number);
    r.epoch = static_cast<std::uint8_t>(random());
    r.point.wqe_index = q.oldest();
    r.point.first_psn = q.work.empty() ? q.next_psn : q.work.front().first_psn;
    r.point.read_ordinal = q.work.empty() ? q.next_ordinal : q.work.front().ordinal;
    // an ACK that overtook: the point is behind what is done
    for (const auto& p : q.work) {
      if (q.state == kErr || p.bad || (p.count == 0 ? !p.recorded : psn_before(q.acked, p.end()))) {
        r.point.wqe_index = p.index;
        r.point.first_psn = p.first_psn;
        r.point.read_ordinal = p.ordinal;
        break;
      }
      r.point.wqe_index = static_cast<std::uint16_t>(p.index + p.wqe.blocks);
      r.point.first_psn = p.end();
      r.point.read_ordinal = static_cast<std::uint8_t>(p.ordinal + p.wqe.is_fetch());
    }
    r.point.resume_psn = psn_before(r.point.first_psn, q.acked) ? q.acked : r.point.first_psn;
    q.rewinding = true;
    ++retries;
    retry_.push(r);
  }
  void applied(Qp& q) {
    q.rewinding = false;
    if (q.flush_asked) q.flushing = true;
    if (q.waiting) q.wait_until = now() + random.between(300, 3000);
    q.progress_at = now();
    walks_.insert(q.number);
  }
  void end_wait(Qp& q) {
    if (!q.waiting) return;
    q.waiting = false;
    rnr_bcast(q, false);
    q.progress_at = now();
  }
  void rnr_bcast(const Qp& q, bool waiting) {
    pkg::rnr_bcast_t b{};
    b.valid = true;
    b.qp = static_cast<decltype(b.qp)>(q.number);
    b.waiting = waiting;
    rnrs_.push_back(b);
  }

  void walk(Qp& q) {
    if (q.rewinding || q.state < kRts) return;
    bool moved = false;
    while (!q.work.empty()) {
      const Posted& p = q.work.front();
      if (q.flushing) {
        if (!p.recorded || p.recorded_epoch != q.epoch || !p.flush_record) break;
        ++q.flushed;
      } else {
        if (q.state == kErr) break;
        if (!p.recorded || (p.count != 0 && psn_before(q.acked, p.end()))) break;
        const bool landed = p.recorded_epoch == q.epoch ||
                            static_cast<std::int16_t>(p.index - q.point.wqe_index) < 0;
        if (!landed) {
          go_back(q, 2);
          return;
        }
        ++q.completed;
      }
      if (p.wqe.is_fetch()) q.reads_done = static_cast<std::uint8_t>(p.ordinal + 1);
      // the program reuses the place at once
      for (unsigned n = 0; n < p.wqe.blocks; ++n) spoil(q.ring[(p.index + n) % q.ring.size()]);
      q.done.push_back(p);
      if (q.done.size() > 300) q.done.pop_front();
      q.work.pop_front();
      moved = true;
    }
    if (moved) tell(q);
    if (q.state == kErr) {
      if (!q.flush_asked && !q.broken) {
        q.flush_asked = true;
        go_back(q, 2);
      }
      return;
    }
    if (!q.work.empty() && q.work.front().reported && !q.failed) {
      q.failed = true;
      set_state(q, kErr);
      return;
    }
    if (q.want_sleep) {
      q.want_sleep = q.want_retry = false;
      q.waiting = true;
      q.late_waiting = 0;
      q.nak_sent = false;
      rnr_bcast(q, true);
      go_back(q, 3);
    } else if (q.want_retry) {
      q.want_retry = false;
      q.nak_sent = false;
      if (!q.work.empty()) go_back(q, 2);
    }
  }

  static constexpr unsigned kLate = 5;         // packets decided before a change was known

  Source<Bits<kQpBits>> wake_;
  Source<pkg::rewind_req_t> retry_;
  Sink<pkg::dma_read_req_t> dma_;
  Source<pkg::read_beat_t> beat_;
  Sink<pkg::tx_item_t> item_;
  Sink<pkg::inflight_write_t> inflight_;
  Sink<pkg::read_record_write_t> read_;
  Sink<pkg::local_error_t> local_;
  Sink<pkg::state_error_t> state_error_;
  Monitor<pkg::rewind_req_t> rewind_;

  std::deque<pkg::ack_state_t> ack_states_;
  std::deque<pkg::state_bcast_t> states_;
  std::deque<pkg::rnr_bcast_t> rnrs_;
  std::deque<pkg::doorbell_t> doorbells_;
  std::deque<std::pair<std::uint64_t, pkg::dma_read_req_t>> reads_;
  std::deque<std::pair<std::uint64_t, Packet>> arrivals_;
  std::deque<std::pair<std::uint64_t, Event>> events_;
  std::set<unsigned> walks_;
  std::deque<pkg::tx_item_t> packet_;          // rest of the packet that is coming out
  std::uint32_t max_before_ = 0;
};

}  // namespace roci::test::send
