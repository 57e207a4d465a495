// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The world around the recovery side of the requester: programs that post and reuse ring places,
// fetch and packetizer (architecture.md 3), a link that loses, duplicates and reorders, peers that answer
// (wire.md §2), and the RX commit with its tokens.
//
// Written from the rules, not from the RTL. It fails the test (Failure) when a completion is wrong,
// early, twice or out of order, when a READ's byte lands at a wrong place, and when a WQE is read
// from a ring place that its program was told to be free.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "requester/requester_bench.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

namespace roci::test {

namespace pkg = roci::sv::roci_pkg;
namespace cfg = roci::sv::roci_config_pkg;
namespace hwif = roci::hwif;

constexpr std::uint32_t kMtu = 256;      // path MTU code 1

/// What may go wrong, as probabilities per packet unless said otherwise.
struct Chances {
  double loss = 0, duplicate = 0, reorder = 0;
  double rnr = 0;            // per SEND at the peer
  double underrun = 0;
  double stall = 0;          // the packetizer gives up its turn for no reason, per WQE
  double bad = 0;            // per WQE: refused by the peer
  double refused = 0;        // per WQE: local key is bad
};

/// A work request and what became of it.
struct Request {
  unsigned index = 0;
  pkg::inflight_kind_e kind = pkg::INFLIGHT_SEND;
  bool signaled = true;
  unsigned packets = 1;
  std::uint32_t length = 0;              // READ
  bool bad = false, refused = false;
  std::optional<std::uint32_t> first;    // PSN, once the packetizer has met it
  std::optional<unsigned> ordinal;
  std::vector<bool> placed;              // READ: bytes in memory
  std::uint64_t va[4] = {};
  std::uint32_t part[4] = {};
  bool executed = false;                 // the peer has done all of it
  bool completed = false;
  std::uint32_t last() const { return psn_add(*first, static_cast<std::int64_t>(packets) - 1); }
};
using RequestPtr = std::shared_ptr<Request>;

/// A packet on the way to the peer.
struct Sent {
  unsigned qp = 0;
  std::uint32_t psn = 0;
  bool ackreq = false;
  RequestPtr request;
};

/// A packet on the way back.
struct Answer {
  unsigned qp = 0, opcode = 0, syndrome = 0;
  std::uint32_t psn = 0, length = 0, offset = 0;   // offset: of the payload in its READ
  RequestPtr request;
};

/// Delays packets, keeps their order unless told otherwise, loses and doubles some.
template <class Packet>
class Link {
 public:
  unsigned delay = 60;
  std::uint64_t lost = 0;
  /// Loses the packet with this number, counted from now on.
  void lose(unsigned number) { lose_ = number; }
  void put(Packet packet, std::uint64_t now, Random& random, const Chances& chances) {
    if (lose_-- == 0 || random.chance(chances.loss)) {
      ++lost;
      return;
    }
    const unsigned copies = random.chance(chances.duplicate) ? 2 : 1;
    for (unsigned n = 0; n < copies; ++n) {
      std::uint64_t at = std::max(now + delay, last_);
      if (random.chance(chances.reorder)) {
        at += random.between(1, 400);
      } else {
        last_ = at;
      }
      queue_.emplace(at, packet);
    }
  }
  std::optional<Packet> take(std::uint64_t now) {
    if (queue_.empty() || queue_.begin()->first > now) return std::nullopt;
    Packet packet = queue_.begin()->second;
    queue_.erase(queue_.begin());
    return packet;
  }
  bool empty() const { return queue_.empty(); }
  void clear() { queue_.clear(); }

 private:
  std::multimap<std::uint64_t, Packet> queue_;
  std::uint64_t last_ = 0;
  unsigned lose_ = ~0u;
};

/// The other end of a QP.
struct Peer {
  std::uint32_t expected = 0;
  bool nak_sent = false, dead = false, silent = false;
  std::optional<std::uint32_t> last_other;       // most recent executed request that is no READ
  std::deque<RequestPtr> reads;                  // kept for duplicates
  unsigned rnr_code = 1;
  unsigned rnr_left = 0;                         // RNR NAKs in a row that are still to come
  std::map<std::uint32_t, unsigned> arrivals;    // per PSN, scenario tests
};

/// One sending queue pair with its ring and its program.
struct Sender {
  unsigned number = 0, base = 0, ring = 16, region = 8, max_reads = 3, read_base = 0;
  std::uint32_t start = 0;
  pkg::qp_state_e state = pkg::QPS_RTS;
  // program
  std::deque<RequestPtr> posted;                 // not yet completed for the program
  std::map<unsigned, RequestPtr> places;         // ring place -> what is written there
  unsigned producer = 0, freed = 0;              // block indices
  std::uint64_t done = 0, flushed = 0;
  std::optional<std::pair<unsigned, unsigned>> failure;   // status, vendor status seen
  RequestPtr failed;
  // fetch
  unsigned fetch_point = 0, epoch = 0;
  bool fetched = false, queued = false, woken = false, asleep = false, waiting = false;
  pkg::rewind_point_t point{};
  // packetizer
  unsigned tx_epoch = ~0u, tx_index = 0, tx_ordinal = 0;
  std::uint32_t tx_psn = 0, tx_resume = 0, tx_max = 0;
  std::optional<std::uint32_t> poison;           // packet_tx_decide discards from here on
  // replicas
  unsigned oldest = 0, reads_done = 0;
  std::uint32_t acked = 0;
  std::optional<std::uint32_t> stop;
  Peer peer;
};

template <class Model>
class World : public Agent {
 public:
  Dut<Model> dut;
  Random random;
  Chances chances;
  std::map<unsigned, Sender> senders;
  std::set<unsigned> posting;                    // QPs whose programs go on posting
  std::set<unsigned> held;                       // QPs that get no turn, as if many others had theirs
  Link<Sent> out;
  Link<Answer> back;
  std::map<std::string, std::uint64_t> counters;
  unsigned read_percent = 30, nop_percent = 8;
  std::vector<std::pair<std::uint64_t, Sent>> wire;   // everything that left, if `record_wire`
  bool record_wire = false;

  explicit World(std::uint64_t salt)
      : dut(salt),
        random(salt + 1),
        packet_("packet", dut->packet_valid_i, dut->packet_ready_o, dut->packet_i),
        event_("event", dut->ack_event_valid_i, dut->ack_event_ready_o, dut->ack_event_i),
        read_record_("read_record", dut->read_record_valid_i, dut->read_record_ready_o,
                     dut->read_record_i),
        inflight_("inflight", dut->inflight_valid_i, dut->inflight_ready_o, dut->inflight_i),
        refused_("refused", dut->refused_valid_i, dut->refused_ready_o, dut->refused_i),
        tx_drained_("tx_drained", dut->tx_drained_valid_i, dut->tx_drained_ready_o,
                    dut->tx_drained_i),
        sent_("sent", dut->sent_i),
        state_("state", dut->state_i),
        epoch_("epoch", dut->epoch_i),
        item_("item", dut->item_valid_o, dut->item_ready_i, dut->item_o),
        rewind_("rewind", dut->rewind_valid_o, dut->rewind_ready_i, dut->rewind_o),
        completion_("completion", dut->completion_valid_o, dut->completion_ready_i,
                    dut->completion_o),
        wake_("wake", dut->wake_valid_o, dut->wake_ready_i, dut->wake_o),
        error_("error", dut->state_error_valid_o, dut->state_error_ready_i, dut->state_error_o),
        ack_state_(dut->ack_state_o, [this](const pkg::ack_state_t& s) { told(s); }),
        rnr_(dut->rnr_o, [this](const pkg::rnr_bcast_t& b) { rnr(b); }) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    dut->tx_done_valid_i = 0;
    dut.reset();
    for (Agent* agent : std::initializer_list<Agent*>{
             &packet_, &event_, &read_record_, &inflight_, &refused_, &tx_drained_, &sent_, &state_,
             &epoch_, &item_, &rewind_, &completion_, &wake_, &error_, &ack_state_, &rnr_, this}) {
      dut.attach(*agent);
    }
    item_.collect();
    rewind_.collect();
    completion_.collect();
    wake_.collect();
    error_.collect();
    item_.on_transfer([this](const pkg::rx_item_t& i) { commit(i); });
    rewind_.on_transfer([this](const pkg::rewind_req_t& r) { rewind(r); });
    completion_.on_transfer([this](const pkg::sq_completion_t& c) { complete(c); });
    wake_.on_transfer([this](const Bits<pkg::qp_t_bits>& q) {
      Sender& s = senders.at(static_cast<unsigned>(q.value()));
      wake(s);
    });
    error_.on_transfer(
        [this](const pkg::state_error_t& e) { set_state(senders.at(e.qp), pkg::QPS_ERR); });
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 3000);
  }

  void stalls(Random& r) {
    packet_.stall(Stall::any(r));
    event_.stall(Stall::any(r));
    item_.stall(Stall(0.3));
    rewind_.stall(Stall(0.5));
    completion_.stall(Stall(r.chance(0.5) ? 0.0 : 0.7));
    wake_.stall(Stall(0.3));
    error_.stall(Stall(0.8));
  }

  std::uint64_t access(hwif::CtxColumn column, bool write, unsigned qp, unsigned word,
                       std::uint64_t data) {
    return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { dut.tick(); }, static_cast<unsigned>(column), write, qp, word, data);
  }

  /// RESET, columns, RTS.
  Sender& start(unsigned number, std::uint32_t psn, unsigned timeout, unsigned retry_cnt,
                unsigned rnr_retry) {
    Sender s;
    s.number = number;
    s.base = (number % 8) * 8;
    s.read_base = (number % 8) * 4;
    s.start = psn;
    s.tx_max = s.acked = psn;
    s.peer.expected = psn;
    s.point.first_psn = s.point.resume_psn = psn;
    s.epoch = senders.count(number) ? (senders[number].epoch + 1) & 0xff : 0;
    senders[number] = s;
    Sender& q = senders[number];
    set_state(q, pkg::QPS_RESET);
    idle_inputs();
    access(hwif::CtxColumn::QP_ACK, true, number, 0,
           number | std::uint64_t{s.base} << 32u | std::uint64_t{3} << 48u);
    access(hwif::CtxColumn::QP_ACK, true, number, 1, number | std::uint64_t{psn} << 32u);
    access(hwif::CtxColumn::QP_READ, true, number, 0,
           s.read_base | 2u << 16u | 1u << 20u);
    access(hwif::CtxColumn::QP_RETRY, true, number, 0, retry_cnt | rnr_retry << 8u);
    access(hwif::CtxColumn::QP_TIMER, true, number, 0, timeout | std::uint64_t{psn} << 32u);
    tell_epoch(q);
    set_state(q, pkg::QPS_RTS);
    return q;
  }

  void set_state(Sender& s, pkg::qp_state_e to) {
    if (to == pkg::QPS_ERR && (s.state == pkg::QPS_ERR || s.state == pkg::QPS_RESET)) return;
    s.state = to;
    pkg::state_bcast_t b{};
    b.qp = static_cast<decltype(b.qp)>(s.number);
    b.state = to;
    state_.push(b);
    wake(s);
    if (to == pkg::QPS_ERR) {
      pkg::ack_token_t t{};
      t.qp = static_cast<decltype(t.qp)>(s.number);
      t.ack_event.kind = pkg::ACK_EVENT_DRAINED;
      token(t);
      tx_drained_.push(Bits<pkg::qp_t_bits>(s.number));
    }
  }

  RequestPtr post(Sender& s, pkg::inflight_kind_e kind, unsigned packets, bool signaled) {
    auto r = std::make_shared<Request>();
    r->index = s.producer;
    r->kind = kind;
    r->packets = packets;
    r->signaled = signaled;
    if (kind == pkg::INFLIGHT_READ) {
      r->length = static_cast<std::uint32_t>((packets - 1) * kMtu + random.between(1, kMtu));
      if (packets == 1 && random.chance(0.1)) r->length = 0;
      r->placed.resize(r->length);
      std::uint32_t left = r->length;
      for (unsigned n = 0; n < cfg::MAX_SGE_RD; ++n) {
        const bool last = n + 1 == cfg::MAX_SGE_RD;
        r->part[n] = last ? left : static_cast<std::uint32_t>(random.below(left + 1));
        left -= r->part[n];
        r->va[n] = random();
      }
    }
    s.places[s.producer % s.ring] = r;
    s.posted.push_back(r);
    s.producer = (s.producer + 1) & 0xffff;
    wake(s);
    return r;
  }

  /// The program knows of a free place in its ring.
  bool room(const Sender& s) const { return ((s.producer - s.freed) & 0xffff) < s.ring; }
  /// Nothing is left but what completes silently, and that is behind the oldest WQE.
  bool quiet() const {
    for (const auto& [n, s] : senders) {
      if (s.waiting) return false;
      if (!s.posted.empty() && s.oldest != s.producer) return false;
      for (const auto& r : s.posted) {
        if (r->kind != pkg::INFLIGHT_NOP && (r->signaled || s.failure)) return false;
      }
    }
    return true;
  }
  /// Waits until everything that was posted is completed.
  void drain(std::uint64_t limit = 400000) {
    // a completion may still be on its way
    for (std::uint64_t n = 0, calm = 0; calm < 200; ++n) {
      if (n == limit) throw Failure("requests do not complete\n" + to_string());
      dut.tick();
      calm = quiet() ? calm + 1 : 0;
    }
    for (auto& [n, s] : senders) {
      while (!s.posted.empty()) {
        const RequestPtr r = s.posted.front();
        s.posted.pop_front();
        s.freed = (r->index + 1) & 0xffff;
        finished(s, r);
      }
    }
  }
  std::string to_string() const {
    std::string text;
    for (const auto& [n, s] : senders) {
      text += "qp " + std::to_string(n) + " state " + std::to_string(s.state) + " posted " +
              std::to_string(s.posted.size()) + " oldest " + std::to_string(s.oldest) +
              " producer " + std::to_string(s.producer) + " fetch " +
              std::to_string(s.fetch_point) + " acked " + std::to_string(s.acked) + " max " +
              std::to_string(s.tx_max) + " peer " + std::to_string(s.peer.expected) + " waiting " +
              std::to_string(s.waiting) + "\n";
    }
    return text;
  }

  void sample() override {
    const auto c = pkg::retry_counters_t::unpack(dut->counters_o);
    counters["timeout"] += c.retry_timeout;
    counters["sequence"] += c.retry_nak_sequence;
    counters["implied"] += c.retry_implied_nak;
    counters["rnr"] += c.retry_rnr;
    counters["underrun"] += c.retry_underrun;
    counters["overtook"] += c.retry_ack_overtook;
  }

  void drive() override {
    ++now_;
    dut->tx_done_valid_i = 0;
    for (unsigned qp : posting) {
      Sender& s = senders.at(qp);
      if (s.state == pkg::QPS_RTS && random.chance(0.05)) post_random(s);
    }
    schedule();
    packetize();
    while (auto p = out.take(now_)) receive(*p);
    while (auto a = back.take(now_)) respond(*a);
    while (!tokens_.empty() && tokens_.front().first <= now_) {
      event_.push(tokens_.front().second);
      tokens_.pop_front();
    }
    if (!aborted_.empty()) {
      aborted_.front().pack(dut->tx_done_i);
      dut->tx_done_valid_i = 1;
      aborted_.pop_front();
    }
  }

 private:
  // ---------------------------------------------------------------------------- program
  void post_random(Sender& s) {
    if (!room(s)) return;
    // the last one before a full ring is signaled, or the program would never see free places
    const bool must = ((s.producer - s.freed) & 0xffff) + 2 >= s.ring;
    const auto roll = random.below(100);
    if (roll < nop_percent && !must) {
      post(s, pkg::INFLIGHT_NOP, 0, false);
      return;
    }
    const bool read = roll < nop_percent + read_percent;
    auto r = post(s, read ? pkg::INFLIGHT_READ : pkg::INFLIGHT_SEND,
                  static_cast<unsigned>(random.between(1, 4)), must || random.chance(0.6));
    r->bad = random.chance(chances.bad);
    r->refused = !r->bad && !read && random.chance(chances.refused);
  }

  void complete(const pkg::sq_completion_t& c) {
    Sender& s = senders.at(c.qp);
    const unsigned index = c.completion.wqe_index_or_cookie;
    const unsigned status = c.completion.status;
    for (;;) {
      if (s.posted.empty()) fail(s, "completion of nothing, index " + std::to_string(index));
      const RequestPtr r = s.posted.front();
      s.posted.pop_front();
      s.freed = (r->index + 1) & 0xffff;
      const bool mine = r->index == index;
      if (r->completed) fail(s, "completed twice");
      r->completed = true;
      const bool silent = r->kind == pkg::INFLIGHT_NOP || (!r->signaled && status == 0) ||
                          (!r->signaled && !s.failure && !mine);
      if (!mine && !silent) fail(s, "completion skips index " + std::to_string(r->index));
      if (s.failure && status != static_cast<unsigned>(hwif::CqeStatus::WR_FLUSH_ERR)) {
        fail(s, "status " + std::to_string(status) + " behind a failure");
      }
      if (!mine || status == 0) finished(s, r);
      if (!mine) continue;
      if (status != 0) {
        if (!s.failure) {
          s.failure = {status, c.completion.vendor_status};
          s.failed = r;
        } else {
          ++s.flushed;
        }
      }
      if (r->kind == pkg::INFLIGHT_READ && c.completion.byte_len != r->length) {
        fail(s, "wrong byte_len");
      }
      // trailing NOPs are free with what is behind them, or when nothing else is there
      bool only_nops = true;
      for (const auto& rest : s.posted) only_nops &= rest->kind == pkg::INFLIGHT_NOP;
      if (only_nops) {
        while (!s.posted.empty()) {
          s.freed = (s.posted.front()->index + 1) & 0xffff;
          s.posted.pop_front();
        }
      }
      return;
    }
  }

  /// Success, told or not.
  void finished(Sender& s, const RequestPtr& r) {
    if (r->kind == pkg::INFLIGHT_NOP) return;
    if (r->kind == pkg::INFLIGHT_SEND && !r->executed) fail(s, "early completion");
    for (const bool placed : r->placed) {
      if (!placed) fail(s, "READ completes without its data");
    }
    ++s.done;
  }

  [[noreturn]] void fail(const Sender& s, const std::string& what) {
    throw Failure("qp " + std::to_string(s.number) + ": " + what + "\n" + to_string() +
                  "(ROCI_SEED=" + std::to_string(base_seed()) + ")");
  }

  // ---------------------------------------------------------------- scheduler and fetch
  struct Burst {
    unsigned qp = 0, epoch = 0, index = 0, count = 0;
    std::uint64_t sample_at = 0, ready_at = 0;
    bool sampled = false;
    std::vector<RequestPtr> content;
  };

  void wake(Sender& s) {
    s.woken = true;
    if (s.asleep) {
      s.asleep = false;
      s.woken = false;
    }
    queue(s);
  }
  void queue(Sender& s) {
    if (s.queued || s.asleep) return;
    s.queued = true;
    ready_.push_back(s.number);
  }

  void schedule() {
    for (auto& b : bursts_) {
      if (!b.sampled && b.sample_at <= now_) {
        Sender& s = senders.at(b.qp);
        for (unsigned n = 0; n < b.count; ++n) {
          b.content.push_back(s.places[(b.index + n) % s.ring]);
        }
        b.sampled = true;
      }
    }
    if (ready_.empty() || bursts_.size() >= 4 || !random.chance(0.5)) return;
    Sender& s = senders.at(ready_.front());
    ready_.pop_front();
    if (held.count(s.number)) {
      ready_.push_back(s.number);
      return;
    }
    s.queued = false;
    if (s.waiting) return;                       // the end of the wait wakes it
    const unsigned there = (s.producer - s.fetch_point) & 0xffff;
    if (there == 0 || there >= 0x8000) return;
    Burst b;
    b.qp = s.number;
    b.epoch = s.epoch;
    b.index = s.fetch_point;
    b.count = std::min(there, static_cast<unsigned>(random.between(1, 5)));
    b.sample_at = now_ + random.between(8, 40);
    b.ready_at = std::max(b.sample_at + random.between(1, 40), last_ready_);
    last_ready_ = b.ready_at;
    s.fetch_point = (s.fetch_point + b.count) & 0xffff;
    s.fetched = true;
    bursts_.push_back(b);
    if (s.fetch_point != s.producer) queue(s);
  }

  void tell_epoch(Sender& s) {
    pkg::epoch_bcast_t b{};
    b.qp = static_cast<decltype(b.qp)>(s.number);
    b.epoch = static_cast<std::uint8_t>(s.epoch);
    b.point = s.point;
    epoch_.push(b);
  }
  void go_back(Sender& s, const pkg::rewind_point_t& point) {
    s.point = point;
    s.fetch_point = point.wqe_index;
    if (s.fetched) s.epoch = (s.epoch + 1) & 0xff;
    s.fetched = false;
    tell_epoch(s);
  }
  void rewind(const pkg::rewind_req_t& r) {
    Sender& s = senders.at(r.qp);
    go_back(s, r.point);
    if (r.kind == pkg::REWIND_RETRY) {
      s.asleep = false;
      queue(s);
    } else if (r.kind == pkg::REWIND_SLEEP) {
      if (!s.waiting) fail(s, "SLEEP without a wait");
    } else {
      fail(s, "rewind of a kind that retry never sends");
    }
  }

  // ------------------------------------------------------------------------- packetizer
  void packetize() {
    if (pause_ != 0) {
      --pause_;
      return;
    }
    if (in_hand_) {
      next_packet();
      return;
    }
    if (bursts_.empty() || bursts_.front().ready_at > now_) return;
    Burst& b = bursts_.front();
    if (b.content.empty()) {
      bursts_.pop_front();
      return;
    }
    Sender& s = senders.at(b.qp);
    const RequestPtr r = b.content.front();
    const unsigned index = b.index;
    b.content.erase(b.content.begin());
    b.index = (b.index + 1) & 0xffff;
    if (b.epoch != s.epoch || s.state == pkg::QPS_RESET) return;
    if (s.tx_epoch != s.epoch) {
      s.tx_epoch = s.epoch;
      s.tx_index = s.point.wqe_index;
      s.tx_psn = s.point.first_psn;
      s.tx_resume = s.point.resume_psn;
      s.tx_ordinal = s.point.read_ordinal;
    }
    if (!r || r->index != index || index != s.tx_index) {
      fail(s, "the ring place of index " + std::to_string(index) + " was reused before its fetch");
    }
    const bool flush = s.state == pkg::QPS_ERR;
    const bool full = ((index - s.oldest) & 0xffff) >= s.region;
    const bool credit = r->kind == pkg::INFLIGHT_READ && !flush &&
                        ((s.tx_ordinal - s.reads_done) & 0xff) >= s.max_reads;
    if (full || credit || s.waiting || random.chance(chances.stall)) {
      pkg::rewind_point_t point{};
      point.wqe_index = static_cast<std::uint16_t>(index);
      point.first_psn = s.tx_psn;
      point.resume_psn = psn_diff(s.tx_resume, s.tx_psn) > 0 ? s.tx_resume : s.tx_psn;
      point.read_ordinal = static_cast<std::uint8_t>(s.tx_ordinal);
      go_back(s, point);
      if (full || credit) {
        s.asleep = !s.woken;
        s.woken = false;
      }
      if (!s.waiting) queue(s);
      return;
    }
    in_hand_ = r;
    hand_qp_ = b.qp;
    hand_epoch_ = b.epoch;
    hand_flush_ = flush;
    hand_first_ = s.tx_psn;
    hand_resume_ = s.tx_resume;
    hand_ordinal_ = s.tx_ordinal;
    hand_psn_ = s.tx_psn;
    if (!flush) {
      // a refetch must come to the same numbers
      if (r->first && *r->first != hand_first_) {
        fail(s, "PSN changed at index " + std::to_string(index));
      }
      if (r->ordinal && *r->ordinal != hand_ordinal_) fail(s, "READ ordinal changed");
      r->first = hand_first_;
      r->ordinal = hand_ordinal_;
    }
    s.tx_index = (s.tx_index + 1) & 0xffff;
    if (r->kind != pkg::INFLIGHT_NOP) {
      s.tx_psn = psn_add(s.tx_psn, r->packets);
      s.tx_ordinal = (s.tx_ordinal + (r->kind == pkg::INFLIGHT_READ)) & 0xff;
    }
    next_packet();
  }

  void next_packet() {
    Sender& s = senders.at(hand_qp_);
    const RequestPtr r = in_hand_;
    const bool none = hand_flush_ || r->kind == pkg::INFLIGHT_NOP;
    const std::uint32_t end = none ? hand_first_ : psn_add(hand_first_, r->packets);
    if (!hand_flush_ && s.state != pkg::QPS_RTS) {
      in_hand_.reset();                            // ERR in the middle: no record
      return;
    }
    // what is acknowledged, or below the rewind's PSN, is not sent again
    for (const std::uint32_t floor : {hand_resume_, s.acked}) {
      if (psn_diff(floor, hand_psn_) > 0 && psn_diff(end, hand_psn_) > 0) {
        hand_psn_ = psn_diff(floor, end) > 0 ? end : floor;
      }
    }
    if (psn_diff(end, hand_psn_) <= 0) {
      finish(s, r);
      return;
    }
    if (r->kind == pkg::INFLIGHT_READ) {
      read_record(s, r);
      emit(s, r, hand_psn_, true);
      hand_psn_ = end;
    } else {
      const bool last = psn_add(hand_psn_, 1) == end;
      emit(s, r, hand_psn_, last || (s.stop && psn_add(hand_psn_, 1) == *s.stop));
      hand_psn_ = psn_add(hand_psn_, 1);
    }
    pause_ = static_cast<unsigned>(random.between(2, 5));   // three cycles per packet at least
    if (hand_psn_ == end) finish(s, r);
  }

  void finish(Sender& s, const RequestPtr& r) {
    if (r->kind == pkg::INFLIGHT_READ && !hand_flush_) read_record(s, r);
    pkg::inflight_write_t w{};
    w.qp = static_cast<decltype(w.qp)>(s.number);
    w.wqe_index = static_cast<std::uint16_t>(r->index);
    w.epoch = static_cast<std::uint8_t>(hand_epoch_);
    w.slot = static_cast<decltype(w.slot)>(s.base + r->index % s.region);
    w.record.kind = r->kind;
    if (hand_flush_ && r->kind != pkg::INFLIGHT_NOP) w.record.kind = pkg::INFLIGHT_FLUSH;
    w.record.signaled = r->signaled;
    w.record.blocks = 1;
    w.record.wc_opcode = r->kind == pkg::INFLIGHT_READ ? 8 : 1;
    w.record.byte_len = r->length;
    w.record.first_psn = hand_first_;
    w.record.last_psn = psn_add(hand_first_, static_cast<std::int64_t>(r->packets) - 1);
    w.record.read_ordinal = static_cast<std::uint8_t>(hand_ordinal_);
    inflight_.push(w);
    in_hand_.reset();
  }

  void read_record(Sender& s, const RequestPtr& r) {
    pkg::read_record_write_t w{};
    w.qp = static_cast<decltype(w.qp)>(s.number);
    w.ordinal = static_cast<std::uint8_t>(hand_ordinal_);
    w.slot = static_cast<decltype(w.slot)>(s.read_base + hand_ordinal_ % 4);
    w.first_psn = hand_first_;
    w.last_psn = psn_add(hand_first_, static_cast<std::int64_t>(r->packets) - 1);
    w.length = r->length;
    w.sge_count = cfg::MAX_SGE_RD;
    for (unsigned n = 0; n < cfg::MAX_SGE_RD; ++n) {
      w.sges[n].va = r->va[n];
      w.sges[n].length = r->part[n];
      w.sges[n].lkey = n;
    }
    read_record_.push(w);
    by_ordinal_[{s.number, hand_ordinal_}] = r;
  }

  void emit(Sender& s, const RequestPtr& r, std::uint32_t psn, bool ackreq) {
    const std::uint32_t next =
        r->kind == pkg::INFLIGHT_READ ? psn_add(hand_first_, r->packets) : psn_add(psn, 1);
    if (psn_diff(next, s.tx_max) > 0) s.tx_max = next;
    pkg::sent_t t{};
    t.qp = static_cast<decltype(t.qp)>(s.number);
    t.psn = psn;
    t.next_psn = s.tx_max;
    t.current = hand_epoch_ == s.epoch;
    sent_.push(t);
    if (s.poison && psn_diff(psn, *s.poison) >= 0) return;
    if (r->refused && psn == r->last()) {
      s.poison = psn;
      pkg::tx_refused_t refused{};
      refused.qp = static_cast<decltype(refused.qp)>(s.number);
      refused.wqe_index = static_cast<std::uint16_t>(r->index);
      refused.psn = psn;
      refused.status = pkg::XLAT_BAD_KEY;
      refused_.push(refused);
      return;
    }
    if (random.chance(chances.underrun)) {
      pkg::tx_done_t done{};
      done.qp = static_cast<decltype(done.qp)>(s.number);
      done.source = pkg::TX_REQUEST;
      done.fate = pkg::TX_UNDERRUN;
      done.psn = psn;
      done.wqe_index = static_cast<std::uint16_t>(r->index);
      aborted_.push_back(done);
      return;
    }
    const Sent packet{s.number, psn, ackreq, r};
    if (record_wire) wire.emplace_back(now_, packet);
    out.put(packet, now_, random, chances);
  }

  // ------------------------------------------------------------------------ replicas
  void told(const pkg::ack_state_t& a) {
    auto it = senders.find(a.qp);
    if (it == senders.end()) return;
    Sender& s = it->second;
    if (psn_diff(a.acked_psn, s.acked) < 0) fail(s, "acked_psn went back");
    if (psn_diff(a.acked_psn, s.tx_max) > 0) fail(s, "acknowledged what was never sent");
    s.acked = a.acked_psn;
    s.oldest = a.oldest_index;
    s.reads_done = a.reads_done;
    s.stop.reset();
    if (a.stop_valid) s.stop = a.stop_psn;
  }
  void rnr(const pkg::rnr_bcast_t& b) {
    auto it = senders.find(b.qp);
    if (it == senders.end()) return;
    it->second.waiting = b.waiting;
    if (b.waiting) {
      wait_begin[b.qp] = dut->clock_o;
    } else {
      wait_end[b.qp] = dut->clock_o;
      wake(it->second);
    }
  }

 public:
  std::map<unsigned, std::uint64_t> wait_begin, wait_end;

 private:
  // --------------------------------------------------------------------------- the peer
  void answer(Peer&, unsigned qp, unsigned syndrome, std::uint32_t psn) {
    Answer a;
    a.qp = qp;
    a.opcode = 0x11;
    a.syndrome = syndrome;
    a.psn = psn;
    back.put(a, now_, random, chances);
  }
  void respond_read(unsigned qp, const RequestPtr& r, std::uint32_t from) {
    for (std::uint32_t psn = from; psn_diff(psn, r->last()) <= 0; psn = psn_add(psn, 1)) {
      Answer a;
      a.qp = qp;
      a.psn = psn;
      const bool first = psn == from, last = psn == r->last();
      a.opcode = first && last ? 0x10u : first ? 0x0du : last ? 0x0fu : 0x0eu;
      a.offset = static_cast<std::uint32_t>(psn_diff(psn, *r->first)) * kMtu;
      a.length = last ? r->length - a.offset : kMtu;
      a.request = r;
      back.put(a, now_, random, chances);
    }
  }
  void receive(const Sent& p) {
    Sender& s = senders.at(p.qp);
    Peer& peer = s.peer;
    ++peer.arrivals[p.psn];
    if (peer.dead || peer.silent) return;
    const RequestPtr& r = p.request;
    const std::int32_t ahead = psn_diff(p.psn, peer.expected);
    if (ahead > 0) {
      if (!peer.nak_sent) answer(peer, p.qp, 0x60, peer.expected);
      peer.nak_sent = true;
      return;
    }
    if (ahead < 0) {                              // duplicate
      if (r->kind == pkg::INFLIGHT_READ) {
        for (const auto& kept : peer.reads) {
          if (kept == r) respond_read(p.qp, r, p.psn);
        }
      } else if (p.ackreq && peer.last_other) {
        answer(peer, p.qp, 0x1f, *peer.last_other);
      }
      return;
    }
    if (r->kind == pkg::INFLIGHT_SEND &&
        (peer.rnr_left != 0 || (p.psn == *r->first && random.chance(chances.rnr)))) {
      if (peer.rnr_left) --peer.rnr_left;
      answer(peer, p.qp, 0x20 | peer.rnr_code, peer.expected);
      peer.nak_sent = true;                       // silent until this packet comes again
      return;
    }
    peer.nak_sent = false;
    if (r->bad && (r->kind == pkg::INFLIGHT_READ || p.psn == r->last())) {
      peer.dead = true;
      answer(peer, p.qp, 0x62, peer.expected);
      return;
    }
    if (r->kind == pkg::INFLIGHT_READ) {
      peer.expected = psn_add(r->last(), 1);
      peer.reads.push_back(r);
      if (peer.reads.size() > 4) peer.reads.pop_front();
      r->executed = true;
      respond_read(p.qp, r, p.psn);
      return;
    }
    peer.expected = psn_add(p.psn, 1);
    peer.last_other = p.psn;
    if (p.psn == r->last()) r->executed = true;
    if (p.ackreq) answer(peer, p.qp, 0x1f, p.psn);
  }

  // -------------------------------------------------------------- frames, commit, tokens
  void respond(const Answer& a) {
    Sender& s = senders.at(a.qp);
    pkg::rx_packet_t p = random_payload<pkg::rx_packet_t>(random);
    p.qp = static_cast<decltype(p.qp)>(a.qp);
    p.qp_type = pkg::QPT_RC;
    p.state = s.state;
    p.headers.opcode = static_cast<std::uint8_t>(a.opcode);
    p.headers.psn = a.psn;
    p.headers.syndrome = static_cast<std::uint8_t>(a.syndrome);
    p.headers.payload_length = static_cast<std::uint16_t>(a.length);
    packet_.push(p);
    frames_.push_back({a, 0});
  }
  void commit(const pkg::rx_item_t& item) {
    if (frames_.empty()) throw Failure("item without a frame");
    auto& [a, placed] = frames_.front();
    Sender& s = senders.at(item.qp);
    if (item.qp != a.qp || item.psn != a.psn) fail(s, "items out of frame order");
    // RX commit drops responses of a QP that failed while they were on their way
    const bool dead = s.state != pkg::QPS_RTS;
    if (item.has_piece && !dead) {
      const RequestPtr& r = a.request;
      if (r->completed && psn_diff(s.acked, psn_add(*r->first, r->packets)) < 0) {
        fail(s, "data for a completed READ");
      }
      const auto n = item.piece.key;
      const std::uint64_t in_part = item.piece.va - r->va[n];
      std::uint32_t offset = static_cast<std::uint32_t>(in_part);
      for (unsigned k = 0; k < n; ++k) offset += r->part[k];
      if (item.piece.access != pkg::ACCESS_LOCAL_WRITE || item.piece.length == 0 ||
          in_part + item.piece.length > r->part[n] || offset != a.offset + placed) {
        fail(s, "piece at a wrong place");
      }
      for (std::uint32_t k = 0; k < item.piece.length; ++k) r->placed[offset + k] = true;
      placed += item.piece.length;
    }
    if (!item.last) return;
    if (!dead && !item.end_info.drop && placed != a.length) {
      fail(s, "pieces do not cover the payload");
    }
    if (item.end_info.ack_event_valid && !dead) {
      pkg::ack_token_t t{};
      t.qp = item.qp;
      t.ack_event = item.end_info.ack_event;
      token(t);
    }
    frames_.pop_front();
  }
  void token(const pkg::ack_token_t& t) {
    const std::uint64_t at = std::max(now_ + random.between(5, 60), last_token_);
    last_token_ = at;
    tokens_.emplace_back(at, t);
  }

  void idle_inputs() {
    dut.run_until([&] { return state_.empty() && epoch_.empty(); }, "inputs", 1000);
  }

  Source<pkg::rx_packet_t> packet_;
  Source<pkg::ack_token_t> event_;
  Source<pkg::read_record_write_t> read_record_;
  Source<pkg::inflight_write_t> inflight_;
  Source<pkg::tx_refused_t> refused_;
  Source<Bits<pkg::qp_t_bits>> tx_drained_;
  Broadcast<pkg::sent_t> sent_;
  Broadcast<pkg::state_bcast_t> state_;
  Broadcast<pkg::epoch_bcast_t> epoch_;
  Sink<pkg::rx_item_t> item_;
  Sink<pkg::rewind_req_t> rewind_;
  Sink<pkg::sq_completion_t> completion_;
  Sink<Bits<pkg::qp_t_bits>> wake_;
  Sink<pkg::state_error_t> error_;
  Listener<pkg::ack_state_t> ack_state_;
  Listener<pkg::rnr_bcast_t> rnr_;

  std::uint64_t now_ = 0, last_ready_ = 0, last_token_ = 0;
  std::deque<unsigned> ready_;
  std::deque<Burst> bursts_;
  RequestPtr in_hand_;
  unsigned hand_qp_ = 0, hand_epoch_ = 0, hand_ordinal_ = 0, pause_ = 0;
  bool hand_flush_ = false;
  std::uint32_t hand_first_ = 0, hand_resume_ = 0, hand_psn_ = 0;
  std::map<std::pair<unsigned, unsigned>, RequestPtr> by_ordinal_;
  std::deque<pkg::tx_done_t> aborted_;
  std::deque<std::pair<Answer, std::uint32_t>> frames_;
  std::deque<std::pair<std::uint64_t, pkg::ack_token_t>> tokens_;
};

}  // namespace roci::test
