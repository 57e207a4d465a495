// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Surroundings of responder_path_tb: host memory with receive rings, the state of QPs, a stand-in
// for packet_rx_commit and the write stream, the transmit side, and the checks against the models.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "responder/departures.hpp"
#include "responder/receive_rings.hpp"

namespace roci::test::responder {

/// A frame on its way through the responder.
struct Frame {
  rp::rx_packet_t packet;
  std::uint64_t accepted = 0;      // cycle
  std::uint64_t posted = 0;        // WQEs of its queue that were surely rung then
  bool pressure = false;           // since then
};

/// Everything about one QP in the bench.
struct Qp {
  QpConfig config;
  RxModel rx;
  TxModel tx;
  Ring own;
  rp::qp_state_e state = rp::QPS_RESET;
  std::uint64_t err_cycle = 0;     // broadcast of ERR
  bool void_ = false, swallow = false;
  bool refused = false;
  bool maybe_open = false;
  bool drained = false;                          // ERR: a flush told so
  std::uint64_t joined = 0;        // duplicate READs that came behind another one and had no search
  std::uint64_t established = 0;   // COMM_EST events
};

/// The module with its surroundings. Throws Failure at the first difference from the models.
class Bench {
 public:
  static constexpr unsigned settle = 10;  // cycles in which a doorbell surely arrives

  explicit Bench(std::uint64_t salt)
      : random(salt), dut(salt), memory(dut),
        packets("packet", dut->packet_valid_i, dut->packet_ready_o, dut->packet_i),
        items("rx item", dut->rx_item_valid_o, dut->rx_item_ready_i, dut->rx_item_o),
        events("event", dut->event_valid_i, dut->event_ready_o, dut->event_i),
        atomics("atomic", dut->atomic_done_valid_i, dut->atomic_done_ready_o, dut->atomic_done_i),
        responses("tx item", dut->tx_item_valid_o, dut->tx_item_ready_i, dut->tx_item_o),
        refusals("refused", dut->refused_valid_i, dut->refused_ready_o, dut->refused_i),
        errors("error", dut->error_valid_o, dut->error_ready_i, dut->error_o),
        asyncs("async", dut->async_valid_o, dut->async_ready_i, dut->async_o), clock(*this),
        departures(dut, salt) {
    dut->colour_i = 0;
    dut->pressure_i = 0;
    dut->doorbell_valid_i = 0;
    rp::ctx_req_t{}.pack(dut->ctx_i);
    rp::state_bcast_t{}.pack(dut->state_i);
    packets.on_transfer([this](const rp::rx_packet_t& p) { accepted(p); });
    items.collect();
    items.on_transfer([this](const rp::rx_item_t& i) { item(i); });
    events.on_transfer([this](const rp::respond_token_t& t) {
      if (!tokens_to_model) return;
      log.push_back({dut.cycle(), t.qp, [info = t.info](Qp& q, std::uint64_t cycle) {
                       q.tx.event(info, cycle);
                     }});
    });
    atomics.on_transfer([this](const rp::atomic_done_t& d) {
      ++count_atomics;
      if (d.failed) {
        log.push_back({dut.cycle(), d.qp, [psn = d.psn](Qp& q, std::uint64_t cycle) {
                         q.refused = true;
                         q.tx.refused(psn, 0x63, cycle);
                       }});
        return;
      }
      const std::uint64_t value = std::uint64_t{d.value};
      log.push_back({dut.cycle(), d.qp, [ordinal = d.ordinal, value](Qp& q, std::uint64_t) {
                       q.tx.done(q.tx.newest(ordinal), value);
                     }});
    });
    responses.collect();
    responses.on_transfer([this](const rp::tx_item_t& i) { response(i); });
    errors.collect();
    errors.on_transfer([this](const rp::state_error_t& e) { error(e); });
    asyncs.collect();
    asyncs.on_transfer([this](const rp::event_t& e) { async(e); });
    dut.reset();
    dut.attach(clock);
    dut.attach(departures);
    dut.attach(memory);
    dut.attach(packets);
    dut.attach(items);
    dut.attach(events);
    dut.attach(atomics);
    dut.attach(responses);
    dut.attach(refusals);
    dut.attach(errors);
    dut.attach(asyncs);
    dut.run_until([&] { return dut->ready_o != 0; }, "tables cleared");
  }

  // -------------------------------------------------------------------------------- firmware
  std::uint64_t ctx(bool write, unsigned column, unsigned index, unsigned word,
                    std::uint64_t data = 0, std::uint64_t limit = 2000) {
    return context_access<rp::ctx_req_t, rp::ctx_rsp_t>(
        dut, [this] { dut.tick(); }, column, write, index, word, data, limit);
  }

  void set_state(unsigned qp, rp::qp_state_e state) { bcasts.push_back({qp, state}); }

  void setup_ring(Ring& ring) {
    ring.index = 0;
    ring.completed = 0;
    ring.queue = {};
    ring.cookies.clear();
    rung[ring.number].clear();
    ctx(true, hw::CTX_COLUMN_RQ, ring.number, 0,
        ring.log2 | (std::uint64_t{ring.fn} << 4) | (ring.address >> 12 << 12));
    ctx(true, hw::CTX_COLUMN_RQ, ring.number, 1,
        ring.slot_base | (std::uint64_t{ring.slot_log2} << 16) |
            (std::uint64_t{ring.stride_code} << 20) | (std::uint64_t{1} << 22));
  }

  /// Brings a QP from RESET to `state` with these initial PSN and, unless on an SRQ, an empty ring.
  void setup_qp(Qp& q, std::uint32_t psn, rp::qp_state_e state = rp::QPS_RTS) {
    const QpConfig& c = q.config;
    set_state(c.qp, rp::QPS_RESET);
    run_until_quiet();
    retired_ignored += q.rx.duplicate_reads_lost;
    q.rx = RxModel(c, psn);
    q.tx = TxModel(c);
    q.void_ = q.swallow = q.refused = q.maybe_open = q.drained = false;
    q.joined = 0;
    q.established = 0;
    if (c.srq < 0) setup_ring(q.own);
    ctx(true, hw::CTX_COLUMN_QP_RQ, c.qp, 0,
        c.cq | (std::uint64_t{c.pd} << 16) | (std::uint64_t{c.qpn} << 32) |
            (std::uint64_t{c.type} << 56) | (std::uint64_t{c.mtu_code} << 60));
    const std::uint64_t rights =
        (c.remote_write ? 2 : 0) | (c.remote_read ? 4 : 0) | (c.remote_atomic ? 8 : 0);
    ctx(true, hw::CTX_COLUMN_QP_RQ, c.qp, 1,
        c.srqn | (std::uint64_t{c.srq >= 0} << 24) | (rights << 32) |
            (std::uint64_t{c.rnr_timer} << 40) | (std::uint64_t{c.replay_log2} << 45) |
            (std::uint64_t{c.replay_base} << 48));
    ctx(true, hw::CTX_COLUMN_QP_RQ_DYN, c.qp, 0, psn);
    ctx(true, hw::CTX_COLUMN_QP_RQ_DYN, c.qp, 1, (psn - 1) & psn_mask);
    ctx(true, hw::CTX_COLUMN_QP_RESP, c.qp, 0,
        c.pd | (std::uint64_t{c.fn} << 16) | (std::uint64_t{c.mtu_code} << 24) |
            (std::uint64_t{c.replay_log2} << 28) | (std::uint64_t{c.replay_base} << 32));
    ctx(true, hw::CTX_COLUMN_QP_RESP, c.qp, 1, (psn - 1) & psn_mask);
    if (state != rp::QPS_RESET) {
      set_state(c.qp, state);
      dut.run_until([&] { return bcasts.empty(); }, "state broadcast");
      dut.tick(2);
    }
  }

  Qp& add_qp(const QpConfig& config) {
    auto& q = qps[config.qp];
    q.config = config;
    q.own.number = config.qp;
    q.own.fn = config.fn;
    return q;
  }

  // --------------------------------------------------------------------------------- program
  Ring& ring_of(Qp& q) { return q.config.srq < 0 ? q.own : srqs.at(q.config.srq); }

  /// Writes a WQE into the ring; `ring_bell` tells the chip.
  void post(Ring& ring, const Wqe& wqe) {
    post_wqe(memory, ring, wqe, random);
  }
  void ring_bell(const Ring& ring) {
    rp::doorbell_t d{};
    const bool srq = ring.number >= num_qps;
    d.kind = srq ? rp::DOORBELL_SRQ : rp::DOORBELL_RQ;
    d.object_index = static_cast<std::uint16_t>(srq ? ring.number - num_qps : ring.number);
    d.index = ring.index;
    doorbells.push_back({d, ring.number, ring.queue.posted_count});
  }

  // ------------------------------------------------------------------------------------ waiting
  bool quiet() {
    return packets.empty() && frames.empty() && events.empty() && refusals.empty() &&
           engine.empty() && atomics.empty() &&
           bcasts.empty() && doorbells.empty() && log.empty() && departures.empty() && !memory.busy();
  }
  /// Ticks until nothing moves any more.
  void run_until_quiet(std::uint64_t limit = 200000) {
    std::uint64_t calm = 0;
    std::uint64_t seen = ~std::uint64_t{0};
    dut.run_until(
        [&] {
          const std::uint64_t moved = items.transfers() + responses.transfers() +
                                      errors.transfers() + asyncs.transfers() +
                                      memory.requests();
          calm = quiet() && moved == seen ? calm + 1 : 0;
          seen = moved;
          return calm > 800;
        },
        "nothing moves", limit);
  }
  /// All owed things were sent and completed; call when quiet.
  void check_complete() {
    const unsigned long lost = ignored - expected_ignored();
    for (auto& [number, q] : qps) {
      if (q.state == rp::QPS_RESET) continue;
      if (q.state == rp::QPS_ERR && !q.drained) {
        fail("QP " + std::to_string(number) + ": in ERR, and nothing tells that it is drained");
      }
      if (q.state == rp::QPS_ERR && !q.tx.closed()) continue;
      if (const std::string text = q.tx.missing(lost == 0 && q.joined == 0); !text.empty()) {
        fail("QP " + std::to_string(number) + ": " + text);
      }
    }
    if (dut->fence_busy_o != 0) fail("fence busy in silence");
  }

  [[noreturn]] void fail(const std::string& text) {
    throw Failure(text + " (cycle " + std::to_string(dut.cycle()) +
                  ", ROCI_SEED=" + std::to_string(base_seed()) + ")");
  }

  Random random;
  Dut<DUT_CLASS> dut;
  RingMemory memory;
  Source<rp::rx_packet_t> packets;
  Sink<rp::rx_item_t> items;
  Source<rp::respond_token_t> events;
  Source<rp::atomic_done_t> atomics;
  Sink<rp::tx_item_t> responses;
  Source<rp::tx_refused_t> refusals;
  Sink<rp::state_error_t> errors;
  Sink<rp::event_t> asyncs;

  std::map<unsigned, Qp> qps;
  std::map<int, Ring> srqs;
  std::set<std::uint32_t> bad_keys;             // pieces with them fail in the commit stand-in
  std::function<bool(const rp::tx_item_t&)> refuse;   // responses to refuse
  std::deque<Frame> frames;
  std::deque<std::pair<unsigned, rp::qp_state_e>> bcasts;
  struct Happened {
    std::uint64_t cycle;
    unsigned qp;
    std::function<void(Qp&, std::uint64_t)> apply;
  };
  std::deque<Happened> log;
  struct Bell {
    rp::doorbell_t doorbell;
    unsigned ring;
    std::uint64_t posted;
  };
  std::deque<Bell> doorbells;
  std::map<unsigned, std::deque<std::pair<std::uint64_t, std::uint64_t>>> rung;
  std::function<void(Qp&, const rp::completion_t&)> on_completion;
  std::uint64_t count_completions = 0;
  std::uint64_t count_rnr = 0, count_lost = 0, count_flushes = 0, count_fatal = 0;
  std::uint64_t found = 0, ignored = 0, flush_frames = 0, no_frames = 0;
  std::uint64_t last_response_cycle = 0, last_item_cycle = 0;
  struct Execution {
    std::uint64_t cycle;
    rp::atomic_done_t done;
  };
  std::deque<Execution> engine;                 // atomics that are being executed, in order
  std::uint64_t atomic_low = 5, atomic_high = 300;      // cycles that takes
  double atomic_failure = 0.0;
  std::uint64_t count_atomics = 0;
  std::uint64_t count_no_receive = 0, count_too_long = 0, count_given_up = 0;
  bool automatic_error = true;                  // failures bring the QP to ERR
  bool tokens_to_model = true;                  // TxModel sees the tokens
  unsigned error_type = hw::EQE_TYPE_QP_ACCESS_ERROR;   // of requests for ERR

 private:
  /// Drives what has no stream: broadcasts, doorbells, counters.
  class Clock : public Agent {
   public:
    explicit Clock(Bench& bench) : b_(bench) {}
    void sample() override {
      b_.replay();
      b_.ignored += b_.dut->count_ignored_read_o;
      if (b_.dut->joined_o) ++b_.qps.at(b_.dut->joined_qp_o).joined;
      b_.flush_frames += b_.dut->flush_frame_valid_o;
      b_.count_no_receive += b_.dut->count_no_receive_o;
      b_.count_too_long += b_.dut->count_too_long_o;
      b_.count_given_up += b_.dut->count_given_up_o;
      while (!b_.engine.empty() && b_.engine.front().cycle <= b_.dut.cycle()) {
        b_.atomics.push(b_.engine.front().done);
        b_.engine.pop_front();
      }
      if (b_.dut->pressure_i) {
        for (Frame& f : b_.frames) f.pressure = true;
      }
    }
    void drive() override {
      rp::state_bcast_t bcast{};
      gap_ = !gap_;
      if (!b_.bcasts.empty() && gap_) {
        const auto [qp, state] = b_.bcasts.front();
        b_.bcasts.pop_front();
        bcast.valid = true;
        bcast.qp = static_cast<decltype(bcast.qp)>(qp);
        bcast.state = state;
        if (auto it = b_.qps.find(qp); it != b_.qps.end()) {
          if (state == rp::QPS_ERR && it->second.state != rp::QPS_ERR) {
            it->second.err_cycle = b_.dut.cycle();
          }
          it->second.state = state;
        }
      }
      bcast.pack(b_.dut->state_i);
      b_.dut->doorbell_valid_i = !b_.doorbells.empty();
      if (!b_.doorbells.empty()) {
        const Bell& bell = b_.doorbells.front();
        bell.doorbell.pack(b_.dut->doorbell_i);
        b_.rung[bell.ring].push_back({b_.dut.cycle() + settle, bell.posted});
        b_.doorbells.pop_front();
      }
    }

   private:
    Bench& b_;
    bool gap_ = false;
  };


  unsigned long expected_ignored() {
    unsigned long sum = retired_ignored;
    for (auto& [number, q] : qps) sum += q.rx.duplicate_reads_lost;
    return std::min<unsigned long>(sum, ignored);
  }

  void accepted(const rp::rx_packet_t& packet) {
    Frame f;
    f.packet = packet;
    f.accepted = dut.cycle();
    auto& bells = rung[ring_of(qps.at(packet.qp)).number];
    while (bells.size() > 1 && bells[1].first <= f.accepted) bells.pop_front();
    f.posted = !bells.empty() && bells.front().first <= f.accepted ? bells.front().second : 0;
    frames.push_back(f);
  }

  void item(const rp::rx_item_t& got) {
    last_item_cycle = dut.cycle();
    if (got.no_frame) {
      ++no_frames;
      flush_item(got);
      return;
    }
    if (frames.empty()) fail("item without a frame");
    Qp& q = qps.at(frames.front().packet.qp);
    if (expected_.empty()) expected_ = expect(q, frames.front(), got);
    const auto want = expected_.front();
    expected_.erase(expected_.begin());
    if (!(defined_part(got) == defined_part(want))) {
      fail("item of frame " + frames.front().packet.to_string() + "\n  expected " +
           defined_part(want).to_string() + "\n  got      " + defined_part(got).to_string());
    }
    bad_ |= got.has_piece && bad_keys.count(got.piece.key) != 0;
    if (got.last) {
      if (!expected_.empty()) fail("items are missing");
      commit(q, got, bad_);
      bad_ = false;
      frames.pop_front();
    } else if (expected_.empty()) {
      fail("more items than expected");
    }
  }

  /// What the models say about this frame; what only the chip can know is read from its answer and
  /// checked for plausibility.
  std::vector<rp::rx_item_t> expect(Qp& q, const Frame& frame, const rp::rx_item_t& got) {
    const auto& e = got.end_info;
    const bool may_be_dead = q.state == rp::QPS_ERR || q.state == rp::QPS_RESET;
    const bool silent = e.drop && !e.respond_valid && !e.completion_valid && !e.error_valid;
    if (may_be_dead && q.err_cycle + 1 < frame.accepted && !silent) fail("answer in ERR");
    if (may_be_dead && silent) {
      // Dropped because of ERR, or before it (a duplicate READ, the rest of a message that was
      // completed in error): that does not show. The latter is assumed, since after the former all
      // is silent.
      RxModel after = q.rx;
      ReceiveQueue none;
      none.posted.push_back({});
      const auto items = after.process(frame.packet, Receive::none, none, 0);
      if (items.size() == 1 && defined_part(items[0]) == defined_part(got)) {
        q.maybe_open |= q.rx.held && q.rx.dead;
        q.rx = after;
        for (const auto& [ordinal, packet] : q.rx.found) q.tx.duplicate(ordinal, packet);
        found += q.rx.found.size();
        q.rx.found.clear();
      }
      auto item = got;
      item.has_piece = false;
      item.end_info = {};
      item.end_info.drop = true;
      item.end_info.unreliable = q.config.type != 0;
      return {item};
    }
    Ring& ring = ring_of(q);
    Receive receive = Receive::taken;
    const bool here = q.config.type == 0 && q.rx.in_order(frame.packet.headers.psn) &&
                      takes_wqe(frame.packet.headers.opcode & 0x1f);
    if (here && e.respond_valid && e.respond.kind == rp::RESPOND_NAK) {
      if ((e.respond.syndrome & 0xe0) == 0x20) {
        receive = Receive::none;
        ++count_rnr;
        if (frame.posted > ring.queue.taken) fail("RNR although a receive was posted");
      } else if (e.respond.syndrome == 0x60) {
        receive = Receive::lost;
        ++count_lost;
        if (!frame.pressure) fail("dropped as lost without pressure");
      }
    }
    if (here && !silent && receive == Receive::taken && ring.queue.posted.empty() &&
        !(e.respond_valid && e.respond.syndrome == 0x61)) {
      fail("a receive was taken that nobody posted");
    }
    const std::uint64_t reads = q.rx.reads;
    if (q.config.type != 0 && !silent && takes_wqe(frame.packet.headers.opcode & 0x1f) &&
        !q.rx.held && ring.queue.posted.empty()) {
      fail("a receive was taken that nobody posted");
    }
    if (q.config.type != 0 && silent) receive = silence(q, frame, ring);
    auto items = q.rx.process(frame.packet, receive, ring.queue, q.tx.answered());
    if (q.rx.reads != reads) q.tx.accept(q.rx.entries.back());
    for (const auto& [ordinal, packet] : q.rx.found) q.tx.duplicate(ordinal, packet);
    found += q.rx.found.size();
    q.rx.found.clear();
    return items;
  }

  /// UC and UD: a frame was dropped. The model drops it too, or it had no receive.
  Receive silence(Qp& q, const Frame& frame, Ring& ring) {
    RxModel probe = q.rx;
    ReceiveQueue queue = ring.queue;
    const bool posted = !queue.posted.empty();
    if (!posted) fill_one(queue);
    const auto items = probe.process(frame.packet, Receive::taken, queue, 0);
    if (items[0].end_info.drop && posted) return Receive::taken;
    if (frame.posted > ring.queue.taken && !frame.pressure) {
      fail("dropped although a receive was posted");
    }
    return frame.posted > ring.queue.taken ? Receive::lost : Receive::none;
  }
  static void fill_one(ReceiveQueue& queue) {
    queue.posted.push_back({0, {{0, 1u << 31, 1}}, 1, false});
  }

  void flush_item(const rp::rx_item_t& got) {
    Qp& q = qps.at(got.qp);
    if (q.state != rp::QPS_ERR && q.state != rp::QPS_RESET) fail("flush outside of ERR");
    const bool found = got.end_info.receive_in_use;
    if (found && q.maybe_open) {
      // the message was open after all: its dead receive came first and told nothing
      const auto& posted = q.own.queue.posted;
      if (got.end_info.completion_valid) {
        q.maybe_open = false;
      } else if (!q.rx.held && (posted.empty() || !posted.front().unreadable)) {
        q.rx.held = q.rx.dead = true;
        q.maybe_open = false;
      }
    }
    if (found && !q.rx.held
        && (q.config.srq >= 0 || q.own.queue.posted.empty())) {
      fail("flush of nothing");
    }
    const auto want = q.rx.flush(got.colour, q.own.queue, found);
    if (!(defined_part(got) == defined_part(want))) {
      fail("flush\n  expected " + defined_part(want).to_string() + "\n  got      " +
           defined_part(got).to_string());
    }
    q.drained = true;
    if (!found) return;
    ++count_flushes;
    if (got.end_info.completion_valid) tell(q, got.end_info.completion);
  }

  /// Stand-in for packet_rx_commit and the write stream: failures, tokens, the void QP.
  void commit(Qp& q, const rp::rx_item_t& item, bool bad) {
    const auto& e = item.end_info;
    auto completion = e.completion;
    if (q.void_) {
      if (e.completion_valid) {
        completion.is_error = true;
        completion.status = hw::CQE_STATUS_WR_FLUSH_ERR;
        tell(q, completion);
      }
      return;
    }
    auto respond = e.respond;
    bool respond_valid = e.respond_valid, complete = e.completion_valid;
    if (bad) {
      const bool remote = item.piece.access != rp::ACCESS_LOCAL_WRITE;
      if (e.unreliable && remote) {
        // the packet is lost, and that is all (wire.md §2.16)
        if (complete) {
          completion.is_error = true;
          tell(q, completion);
        }
        return;
      }
      respond_valid = !e.unreliable;
      respond.kind = rp::RESPOND_NAK;
      respond.psn = item.psn;
      respond.msn = e.nak_msn;
      respond.syndrome = remote ? 0x62 : 0x63;
      if (!remote && e.receive_in_use) {
        q.swallow = !complete;
        complete = true;
      }
      completion.is_error = true;
      completion.status = remote ? hw::CQE_STATUS_WR_FLUSH_ERR : hw::CQE_STATUS_LOC_PROT_ERR;
    }
    if (complete) {
      const bool swallow = q.swallow;
      q.swallow = false;
      tell(q, completion);
      q.swallow = swallow;
    }
    if (!bad && item.has_piece && item.piece.access == rp::ACCESS_REMOTE_ATOMIC) {
      rp::atomic_done_t done{};
      done.qp = item.qp;
      done.slot = static_cast<decltype(done.slot)>(completion.imm_or_key);
      done.ordinal = static_cast<decltype(done.ordinal)>(respond.entry & 0xff);
      done.psn = item.psn;
      done.value = random();
      done.failed = random.chance(atomic_failure);
      const std::uint64_t last = engine.empty() ? 0 : engine.back().cycle;
      engine.push_back({std::max(last, dut.cycle() + random.between(atomic_low, atomic_high)), done});
    }
    if (respond_valid) {
      rp::respond_token_t token{};
      token.qp = item.qp;
      token.info = respond;
      events.push(token);
    }
    if (bad || e.error_valid) {
      q.void_ = true;
      ++count_fatal;
      if (automatic_error) set_state(q.config.qp, rp::QPS_ERR);
    }
  }

  void tell(Qp& q, const rp::completion_t& completion) {
    if (q.swallow) {
      q.swallow = false;
      return;
    }
    // every WQE completes once; those of an RQ in their order
    Ring& ring = ring_of(q);
    auto at = std::find(ring.cookies.begin(), ring.cookies.end(), completion.wqe_index_or_cookie);
    if (at == ring.cookies.end()) fail("completion of no posted receive");
    if (q.config.srq < 0 && at != ring.cookies.begin()) fail("receive completions out of order");
    ring.cookies.erase(at);
    ++ring.completed;
    ++count_completions;
    if (on_completion) on_completion(q, completion);
  }

  void response(const rp::tx_item_t& item) {
    last_response_cycle = dut.cycle();
    Qp& q = qps.at(item.desc.qp);
    if (q.refused && item.desc.opcode != 0x11) return;   // poisoned behind the refused one
    // one of a READ that was answered before would only vanish
    const bool again = (item.desc.wqe_index >> 14 & 1) != 0;
    if (refuse && item.has_piece && !again && refuse(item)) {
      rp::tx_refused_t r{};
      r.qp = item.desc.qp;
      r.wqe_index = item.desc.wqe_index;
      r.psn = item.desc.psn;
      r.status = rp::XLAT_BAD_KEY;
      refusals.push(r);
      q.refused = true;
      log.push_back({dut.cycle(), q.config.qp, [psn = r.psn](Qp& qp, std::uint64_t cycle) {
                       qp.tx.refused(psn, 0x62, cycle);
                     }});
      return;
    }
    departures.take(item);
    log.push_back({dut.cycle(), q.config.qp, [item, this](Qp& qp, std::uint64_t cycle) {
                     if (const auto text = qp.tx.packet(item, cycle); !text.empty()) {
                       fail(text + ": " + item.to_string());
                     }
                   }});
  }

  /// Shows the TxModel what happened, as soon as the frames before it are known to the RxModel.
  void replay() {
    while (!log.empty() && (frames.empty() || frames.front().accepted > log.front().cycle)) {
      log.front().apply(qps.at(log.front().qp), log.front().cycle);
      log.pop_front();
    }
  }

  void error(const rp::state_error_t& e) {
    Qp& q = qps.at(e.qp);
    if (!q.tx.closed() && !q.refused) fail("request for ERR of a QP in order");
    if (!e.event_valid || e.event_type != error_type) {
      fail("unexpected request for ERR " + e.to_string());
    }
    if (automatic_error) set_state(q.config.qp, rp::QPS_ERR);
  }

  void async(const rp::event_t& e) {
    for (auto& [number, q] : qps) {
      if (q.config.qpn != e.object) continue;
      if (e.event_type != hw::EQE_TYPE_COMM_EST || e.fn != q.config.fn) fail("wrong event");
      if (++q.established > 1) fail("COMM_EST twice");
      return;
    }
    fail("event of an unknown QP");
  }

  std::vector<rp::rx_item_t> expected_;
  bool bad_ = false;

 public:
  unsigned long retired_ignored = 0;      // duplicates that QP models before a reset did not find
  Clock clock;
  Departures departures;
};

}  // namespace roci::test::responder
