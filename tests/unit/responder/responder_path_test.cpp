// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The responder as a whole, with its receive queues: frames in, receive items and responses out.
// A random peer sends, loses, repeats, goes back and breaks rules on several QPs (RC, UC and UD, own RQs
// and SRQs); every item and every response is compared with the reference models (responder_model.hpp),
// every posted receive must complete exactly once. Named scenarios of wire.md §4, and rates.
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "responder/responder_bench.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
using namespace roci::test::responder;

rp::rx_packet_t frame(Bench& b, const Qp& q, unsigned op, std::uint32_t psn,
                      std::uint32_t payload = 0) {
  rp::rx_packet_t p{};
  auto& h = p.headers;
  p = random_payload<rp::rx_packet_t>(b.random);   // what must not matter
  p.colour = b.dut->colour_i;
  p.qp = static_cast<decltype(p.qp)>(q.config.qp);
  p.fn = static_cast<decltype(p.fn)>(q.config.fn);
  p.qp_type = static_cast<rp::qp_type_e>(q.config.type);
  p.state = q.state;
  h.opcode = q.config.opcode(op);
  h.psn = psn & psn_mask;
  h.payload_length = static_cast<std::uint16_t>(payload);
  h.pad_count = static_cast<std::uint8_t>((0u - payload) & 3u);
  h.ackreq = is_last(op) || is_only(op);
  h.solicited = false;
  return p;
}

/// The requester at the other end of one QP. Keeps what it sent, to send it again.
class Peer {
 public:
  Peer(Bench& bench, Qp& qp) : b_(bench), q_(qp) { restart(); }

  /// After the QP was set up afresh.
  void restart() {
    sent_.clear();
    next_ = 0;
    end_psn_ = q_.rx.next_psn;
    reads_open_ = 0;
  }
  /// When everything was answered: go on where the responder waits.
  void resync() {
    reads_open_ = q_.rx.reads - q_.tx.answered();
    next_ = sent_.size();
    for (std::size_t n = 0; n < sent_.size(); ++n) {
      if (sent_[n].packet.headers.psn == q_.rx.next_psn) next_ = n;
    }
    // a peer counts the READs that it will send again
    for (std::size_t n = next_; n < sent_.size(); ++n) {
      const unsigned op = sent_[n].packet.headers.opcode;
      reads_open_ += op == READ_REQUEST || is_atomic(op);
    }
    while (sent_.size() > 80 && next_ > 60) {
      sent_.pop_front();
      --next_;
    }
  }
  /// Sends one frame, or loses it, or something else that peers do.
  void step(double rudeness) {
    Random& random = b_.random;
    if (next_ >= sent_.size()) message();
    if (next_ >= sent_.size()) return;
    const double dice = static_cast<double>(random.below(1000)) / 1000.0;
    if (dice < 0.04 * rudeness) {
      ++next_;                                                // lost
    } else if (dice < 0.09 * rudeness && next_ > 0) {
      again(random.below(next_));                             // delayed copy
    } else if (dice < 0.11 * rudeness && next_ > 0) {
      next_ = random.below(next_);                            // timeout: everything once more
    } else if (dice < 0.113 * rudeness && !q_.config.datagram()) {
      breach();
    } else {
      b_.packets.push(refresh(sent_[next_++].packet));
    }
  }

 private:
  struct Sent {
    rp::rx_packet_t packet;
    std::uint32_t psns;
  };

  rp::rx_packet_t refresh(rp::rx_packet_t p) {
    p.colour = b_.dut->colour_i;
    p.state = q_.state;
    return p;
  }

  void append(rp::rx_packet_t p, std::uint32_t psns = 1) {
    sent_.push_back({p, psns});
    end_psn_ = (end_psn_ + psns) & psn_mask;
  }

  void message() {
    Random& random = b_.random;
    const std::uint32_t mtu = q_.config.mtu();
    const unsigned kind = static_cast<unsigned>(random.below(10));
    std::uint32_t length = static_cast<std::uint32_t>(random.pick(std::vector<std::uint64_t>{
        0, 1, 64, mtu - 1, mtu, mtu + 1, 2 * mtu, random.below(5 * mtu)}));
    if (q_.config.datagram()) {
      auto p = frame(b_, q_, random.chance(0.3) ? SEND_ONLY_IMM : SEND_ONLY,
                     static_cast<std::uint32_t>(random.bits(24)), 40 + std::min(length, 4096u));
      p.headers.solicited = random.chance(0.5);
      append(p);
      return;
    }
    if (kind == 9 && q_.config.type == 0 && random.chance(0.7)) {
      if (reads_open_ >= q_.config.ring()) return;
      ++reads_open_;
      auto p = frame(b_, q_, random.chance(0.5) ? CMP_SWAP : FETCH_ADD, end_psn_, 16);
      p.headers.va &= ~std::uint64_t{7};
      append(p);
      return;
    }
    if (kind >= 8 && q_.config.type == 0) {
      if (reads_open_ >= q_.config.ring()) return;
      ++reads_open_;
      auto p = frame(b_, q_, READ_REQUEST, end_psn_);
      p.headers.dma_length = length;
      append(p, std::max(1u, (length + mtu - 1) / mtu));
      return;
    }
    const bool write = kind >= 4, imm = random.chance(0.3);
    const unsigned base = write ? WRITE_FIRST : SEND_FIRST;
    const std::uint64_t va = random();
    const std::uint32_t rkey = static_cast<std::uint32_t>(random()) | 1u;
    if (q_.config.type == 1 && write && random.chance(0.1)) b_.bad_keys.insert(rkey);
    const std::uint32_t packets = std::max(1u, (length + mtu - 1) / mtu);
    for (std::uint32_t n = 0; n < packets; ++n) {
      const bool last = n + 1 == packets;
      const unsigned op = base + (packets == 1 ? 4 + imm : n == 0 ? 0 : last ? 2 + imm : 1);
      auto p = frame(b_, q_, op, end_psn_, last ? length - n * mtu : mtu);
      p.headers.ackreq = last ? !random.chance(0.1) : random.chance(0.1);
      p.headers.solicited = last && random.chance(0.5);
      if (n == 0) {
        p.headers.va = va;
        p.headers.rkey = rkey;
        p.headers.dma_length = length;
      }
      append(p);
    }
  }

  /// A frame once more; a READ perhaps only its rest (wire.md §2.4).
  void again(std::size_t index) {
    auto p = refresh(sent_[index].packet);
    if (p.headers.opcode == READ_REQUEST && sent_[index].psns > 1 && b_.random.chance(0.6)) {
      const auto skip = static_cast<std::uint32_t>(b_.random.below(sent_[index].psns));
      p.headers.psn = (p.headers.psn + skip) & psn_mask;
      p.headers.va += std::uint64_t{skip} * q_.config.mtu();
      p.headers.dma_length -= skip * q_.config.mtu();
      if (b_.random.chance(0.1)) p.headers.va += 8;           // does not match: silence
    }
    b_.packets.push(p);
  }

  /// Something that no requester may send.
  void breach() {
    auto p = refresh(sent_[next_].packet);
    if (q_.config.type == 1) {
      p.headers.opcode = q_.config.opcode(static_cast<unsigned>(b_.random.below(12)));
      if (b_.random.chance(0.5)) p.headers.payload_length ^= 1u << b_.random.below(12);
      b_.packets.push(p);
      return;
    }
    switch (b_.random.below(5)) {
      case 0: p.headers.opcode = static_cast<std::uint8_t>(b_.random.below(0x20)); break;
      case 1: p.headers.payload_length ^= 1u << b_.random.below(12); break;
      case 2:                                                 // not a READ of a gigabyte
        p.headers.dma_length ^= p.headers.opcode == READ_REQUEST ? 1u : 1u << b_.random.below(32);
        break;
      case 3: p.headers.pad_count ^= 1; break;
      default:
        p.headers.opcode = READ_REQUEST;
        p.headers.dma_length = 0x80000001;
        p.headers.payload_length = 0;
        break;
    }
    // responses and acknowledgements go to the requester (packet_rx_dispatch)
    if (p.headers.opcode >= 0x0d && p.headers.opcode <= 0x12) p.headers.opcode = 0x1f;
    p.headers.payload_length = std::min<std::uint16_t>(p.headers.payload_length, 4096);
    b_.packets.push(p);
  }

  Bench& b_;
  Qp& q_;
  std::deque<Sent> sent_;
  std::size_t next_ = 0;               // of sent_: what goes out next
  std::uint32_t end_psn_ = 0;
  std::uint64_t reads_open_ = 0;
};

/// Several QPs, the last ones on a shared receive queue, with their rings.
struct Scene {
  Scene(Bench& bench, unsigned own, unsigned shared, bool narrow_regions) : b(bench) {
    Random& random = b.random;
    std::set<unsigned> numbers;
    while (numbers.size() < own + shared) {
      numbers.insert(static_cast<unsigned>(random.below(num_qps)));
    }
    unsigned slot = 0, replay = 0, n = 0;
    const auto place = [&](Ring& ring) {
      ring.stride_code = static_cast<unsigned>(random.below(4));
      ring.log2 = static_cast<unsigned>(random.between(4, 6));
      ring.slot_log2 = std::max(ring.stride_code, narrow_regions
                                    ? 1u : static_cast<unsigned>(random.between(2, 4)));
      const unsigned size = 1u << ring.slot_log2;
      slot = (slot + size - 1) & ~(size - 1);
      ring.slot_base = slot;
      slot += size;
      REQUIRE(slot <= 1u << rc::SLOT_BITS);
      ring.address = (std::uint64_t{0x7f0000} + ring.number * 16) << 12;
    };
    if (shared != 0) {
      Ring& ring = b.srqs[1];
      ring.number = num_qps + 1;
      ring.fn = 1;
      place(ring);
      b.setup_ring(ring);
    }
    for (const unsigned number : numbers) {
      QpConfig c;
      c.qp = number;
      c.fn = static_cast<unsigned>(n < own ? random.below(1u << rc::FN_BITS) : 1);
      c.pd = static_cast<unsigned>(random.below(1u << rc::PD_BITS));
      c.cq = static_cast<unsigned>(random.below(1u << rc::CQ_BITS));
      c.qpn = static_cast<std::uint32_t>(random.bits(13) << 11 | number);
      c.mtu_code = static_cast<unsigned>(random.between(1, 5));
      c.remote_write = !random.chance(0.05);
      c.remote_read = !random.chance(0.05);
      c.remote_atomic = !random.chance(0.05);
      if (random.chance(0.4)) c.type = static_cast<unsigned>(random.between(1, 2));
      c.rnr_timer = static_cast<unsigned>(random.below(32));
      c.replay_log2 = static_cast<unsigned>(random.between(0, 3));
      const unsigned size = 1u << c.replay_log2;
      replay = (replay + size - 1) & ~(size - 1);
      c.replay_base = replay;
      replay += size;
      if (n >= own) {
        c.srq = 1;
        c.srqn = 0x5500 * (1u << rc::SRQ_BITS) + 1;
      }
      Qp& q = b.add_qp(c);
      if (c.srq < 0) place(q.own);
      b.setup_qp(q, random.chance(0.3) ? 0xfffffa : static_cast<std::uint32_t>(random.bits(24)),
                 random.chance(0.3) ? rp::QPS_RTR : rp::QPS_RTS);
      peers.emplace_back(b, q);
      order.push_back(&q);
      ++n;
    }
  }
  /// Posts up to `most` receives to each ring, rings bells.
  void post(std::uint64_t most, double faults) {
    const auto fill = [&](Ring& ring, std::uint32_t mtu) {
      std::uint64_t count = std::min(ring.room(), b.random.below(most + 1));
      if (count == 0) return;
      while (count-- != 0) {
        Wqe wqe = random_wqe(b.random, ring, b.random.chance(faults) ? 10 : 5 * mtu);
        if (b.random.chance(faults / 2)) wqe.count = ring.max_sge() + 1 + wqe.count;
        // a bus error spoils a whole beat
        if (b.random.chance(faults / 4)) wqe.unreadable = ring.stride() >= rc::DATA_BYTES;
        if (b.random.chance(faults) && !wqe.sges.empty()) b.bad_keys.insert(wqe.sges[0].lkey);
        b.post(ring, wqe);
        if (b.random.chance(0.5)) b.ring_bell(ring);
      }
      b.ring_bell(ring);
    };
    for (Qp* q : order) {
      if (q->config.srq < 0 && q->state != rp::QPS_RESET) fill(q->own, q->config.mtu());
    }
    for (auto& [number, ring] : b.srqs) fill(ring, 4096);
  }

  Bench& b;
  std::vector<Qp*> order;
  std::deque<Peer> peers;
};
}  // namespace

TEST_CASE("random peers: every item and every response as the models say") {
  Random random;
  std::uint64_t rnr = 0, lost = 0, flushes = 0, fatal = 0, found = 0, completions = 0,
                atomics = 0, no_receive = 0, too_long = 0, given_up = 0;
  for (int run = 0; run < 6; ++run) {
    Bench b(random());
    b.items.stall(Stall::any(random));
    b.events.stall(Stall::any(random));
    b.responses.stall(Stall::any(random));
    b.packets.stall(random.chance(0.5) ? Stall(0) : Stall(0.5));
    b.memory.stall(Stall::any(random), Stall::any(random));
    b.memory.latency(2, random.chance(0.5) ? 20 : 300);
    Scene scene(b, 5, run % 2 ? 3 : 0, run % 3 == 2);
    const bool presses = run % 3 == 1;
    for (std::size_t round = 0; round < scaled(40); ++round) {
      scene.post(random.chance(0.2) ? 1 : 20, 0.01);
      if (random.chance(0.5)) b.dut.tick(random.below(100));
      const std::uint64_t frames = random.between(5, 120);
      const double rudeness = random.chance(0.3) ? 0 : 1;
      for (std::uint64_t n = 0; n < frames; ++n) {
        scene.peers[random.below(scene.peers.size())].step(rudeness);
        if (random.chance(0.05)) b.dut.tick(random.below(30));
        if (presses && random.chance(0.1)) b.dut->pressure_i = !b.dut->pressure_i;
        if (random.chance(0.02)) scene.post(3, 0);
        if (random.chance(0.01)) b.dut->colour_i = !b.dut->colour_i;
        if (random.chance(0.002)) {
          // the program breaks a connection in the middle of it
          b.set_state(random.pick(scene.order)->config.qp, rp::QPS_ERR);
        }
      }
      b.run_until_quiet();
      b.dut->pressure_i = 0;
      b.run_until_quiet();
      b.check_complete();
      for (std::size_t n = 0; n < scene.order.size(); ++n) {
        Qp& q = *scene.order[n];
        if (q.state == rp::QPS_ERR) {
          // later posts are flushed too; then nothing of its own ring is left
          if (q.config.srq < 0) {
            for (std::uint64_t k = std::min<std::uint64_t>(q.own.room(), 3); k != 0; --k) {
              b.post(q.own, random_wqe(b.random, q.own, 100));
            }
            b.ring_bell(q.own);
            b.run_until_quiet();
            REQUIRE(q.own.cookies.empty());
          }
          b.setup_qp(q, static_cast<std::uint32_t>(random.bits(24)));
          scene.peers[n].restart();
        }
        scene.peers[n].resync();
      }
    }
    REQUIRE(b.flush_frames == b.no_frames);
    rnr += b.count_rnr;
    lost += b.count_lost;
    flushes += b.count_flushes;
    fatal += b.count_fatal;
    found += b.found;
    completions += b.count_completions;
    atomics += b.count_atomics;
    no_receive += b.count_no_receive;
    too_long += b.count_too_long;
    given_up += b.count_given_up;
  }
  // the test must have met all of it
  INFO("rnr " << rnr << ", lost " << lost << ", flushes " << flushes << ", fatal " << fatal
              << ", duplicate READs " << found << ", completions " << completions);
  CHECK(rnr > 20);
  CHECK(lost > 0);
  CHECK(flushes > 20);
  CHECK(fatal > 20);
  CHECK(found > 20);
  CHECK(completions > 500);
  CHECK(atomics > 50);
  CHECK(no_receive > 20);
  CHECK(too_long > 0);
  CHECK(given_up > 20);
}

// ------------------------------------------------------------------------------------ scenarios
namespace {
/// One QP with an RQ, ready for traffic.
struct Single {
  explicit Single(Bench& bench, unsigned mtu_code = 3, unsigned replay_log2 = 2,
                  rp::qp_state_e state = rp::QPS_RTS, unsigned type = 0)
      : b(bench) {
    QpConfig c;
    c.type = type;
    c.qp = 5;
    c.fn = 2;
    c.pd = 9;
    c.cq = 7;
    c.qpn = 0x1234 * num_qps + 5;
    c.mtu_code = mtu_code;
    c.replay_log2 = replay_log2;
    c.replay_base = 16;
    q = &b.add_qp(c);
    q->own.log2 = 6;
    q->own.slot_log2 = 3;
    q->own.slot_base = 8;
    q->own.address = 0x1234000;
    b.setup_qp(*q, E, state);
  }
  void post(unsigned count, std::uint64_t bytes) {
    while (count-- != 0) b.post(q->own, random_wqe(b.random, q->own, bytes));
    b.ring_bell(q->own);
    b.dut.tick(Bench::settle + 2);
  }
  void send(unsigned op, std::uint32_t psn, std::uint32_t payload = 0, std::uint32_t dma = 0) {
    auto p = frame(b, *q, op, psn, payload);
    p.headers.va = 0x5000;
    p.headers.rkey = 0x77;
    p.headers.dma_length = dma;
    if (is_write(op) && dma == 0) p.headers.dma_length = payload;
    b.packets.push(p);
  }
  /// Waits, checks, and returns the packets that were sent since the last call, {opcode, psn,
  /// syndrome} each.
  std::vector<std::array<std::uint32_t, 3>> answers() {
    b.run_until_quiet();
    b.check_complete();
    std::vector<std::array<std::uint32_t, 3>> out;
    for (const auto& item : b.responses.received()) {
      const auto& d = item.desc;
      out.push_back({d.opcode, d.psn, d.opcode == 0x0e ? 0u : d.syndrome});
    }
    b.responses.received().clear();
    return out;
  }

  static constexpr std::uint32_t E = 0x1000;
  Bench& b;
  Qp* q = nullptr;
};
using Answers = std::vector<std::array<std::uint32_t, 3>>;
constexpr std::uint32_t E = Single::E;
constexpr std::uint32_t ACK = 0x11;
}  // namespace

TEST_CASE("scenario 2: a duplicate READ inside a WRITE message does not disturb it") {
  Bench b(1);
  Single s(b);
  s.send(READ_REQUEST, E, 0, 12 * 1024);
  REQUIRE(s.answers().size() == 12);
  s.send(WRITE_FIRST, E + 12, 1024, 3000);
  s.send(READ_REQUEST, E, 0, 12 * 1024);
  s.send(WRITE_FIRST, E + 12, 1024, 3000);
  s.send(WRITE_MIDDLE, E + 13, 1024);
  const auto answers = s.answers();
  REQUIRE(answers.size() == 13);
  unsigned acks = 0;
  for (const auto& a : answers) {
    if (a[0] == ACK) {
      CHECK(a == std::array<std::uint32_t, 3>{ACK, E + 12, 0x1f});
      ++acks;
    }
  }
  CHECK(acks == 1);
}

TEST_CASE("scenario 15: one sequence NAK per gap") {
  Bench b(2);
  Single s(b);
  for (unsigned n = 1; n <= 40; ++n) s.send(WRITE_ONLY, E + n, 64);
  CHECK(s.answers() == Answers{{ACK, E, 0x60}});
  for (unsigned n = 0; n <= 40; ++n) s.send(WRITE_ONLY, E + n, 64);
  CHECK(s.answers().back() == std::array<std::uint32_t, 3>{ACK, E + 40, 0x1f});
  s.send(WRITE_ONLY, E + 43, 64);
  s.send(WRITE_ONLY, E + 44, 64);
  CHECK(s.answers() == Answers{{ACK, E + 41, 0x60}});
}

TEST_CASE("scenario 16: silence behind an RNR NAK, then everything in order") {
  Bench b(3);
  Single s(b);
  for (unsigned n = 0; n <= 5; ++n) s.send(SEND_ONLY, E + n, 10);
  CHECK(s.answers() == Answers{{ACK, E, 0x20u | s.q->config.rnr_timer}});
  s.post(6, 64);
  for (unsigned n = 0; n <= 5; ++n) s.send(SEND_ONLY, E + n, 10);
  CHECK(s.answers().back() == std::array<std::uint32_t, 3>{ACK, E + 5, 0x1f});
  CHECK(b.count_completions == 6);
  // WRITE with immediate needs its receive at LAST only
  s.send(WRITE_FIRST, E + 6, 1024, 1030);
  s.send(WRITE_LAST_IMM, E + 7, 6);
  CHECK(s.answers() == Answers{{ACK, E + 7, 0x20u | s.q->config.rnr_timer}});
}

TEST_CASE("scenario 11: zero lengths check no key and advance by one PSN") {
  Bench b(4);
  Single s(b);
  s.post(2, 64);
  s.send(SEND_ONLY, E, 0);
  s.send(WRITE_ONLY, E + 1, 0);
  s.send(WRITE_ONLY_IMM, E + 2, 0);
  s.send(READ_REQUEST, E + 3, 0, 0);
  const auto answers = s.answers();
  CHECK(answers.back() == std::array<std::uint32_t, 3>{0x10, E + 3, 0x1f});
  CHECK(s.q->rx.next_psn == E + 4);
  CHECK(b.count_completions == 2);
}

TEST_CASE("scenario 17: as many READs as the region holds, one more is an invalid request") {
  Bench b(5);
  Single s(b, 3, 2);
  b.responses.stall(Stall(1.0));
  for (unsigned n = 0; n < 4; ++n) s.send(READ_REQUEST, E + n, 0, 100);
  b.dut.tick(200);
  b.responses.stall(Stall(0.0));
  CHECK(s.answers().size() == 4);
  b.responses.stall(Stall(1.0));
  // more than the output holds: the fifth READ comes while none is answered to the end
  for (unsigned n = 0; n < 4; ++n) s.send(READ_REQUEST, E + 4 + 20 * n, 0, 20 * 1024);
  s.send(READ_REQUEST, E + 84, 0, 100);
  b.dut.tick(400);
  b.responses.stall(Stall(0.0));
  const auto answers = s.answers();
  CHECK(answers.size() == 81);
  CHECK(answers.back() == std::array<std::uint32_t, 3>{ACK, E + 84, 0x61});
}

TEST_CASE("scenario 20: the rest of a READ is answered from a PMTU boundary") {
  Bench b(6);
  Single s(b);
  s.send(READ_REQUEST, E, 0, 5000);
  CHECK(s.answers() == Answers{{0x0d, E, 0x1f}, {0x0e, E + 1, 0}, {0x0e, E + 2, 0},
                               {0x0e, E + 3, 0}, {0x0f, E + 4, 0x1f}});
  auto p = frame(b, *s.q, READ_REQUEST, E + 3);
  p.headers.va = 0x5000 + 3 * 1024;
  p.headers.rkey = 0x77;
  p.headers.dma_length = 5000 - 3 * 1024;
  b.packets.push(p);
  CHECK(s.answers() == Answers{{0x0d, E + 3, 0x1f}, {0x0f, E + 4, 0x1f}});
  p.headers.va += 4;                            // not a PMTU boundary of it: silence
  b.packets.push(p);
  CHECK(s.answers().empty());
}

TEST_CASE("scenario 21: key revoked between two READ responses") {
  Bench b(7);
  Single s(b);
  b.refuse = [](const rp::tx_item_t& item) { return item.desc.psn == E + 2; };
  s.send(READ_REQUEST, E, 0, 8 * 1024);
  s.send(WRITE_ONLY, E + 8, 64);
  const auto answers = s.answers();
  CHECK(answers.back() == std::array<std::uint32_t, 3>{ACK, E + 2, 0x62});
  CHECK(s.q->state == rp::QPS_ERR);
  CHECK(b.errors.transfers() == 1);
}

TEST_CASE("scenario 18: a duplicate atomic is answered with the same value and not executed again") {
  Bench b(31);
  Single s(b);
  b.atomic_low = b.atomic_high = 400;
  s.send(FETCH_ADD, E, 16);
  s.send(FETCH_ADD, E, 16);                     // while it is executed: one answer does
  b.dut.tick(100);
  CHECK(b.responses.received().empty());
  b.run_until_quiet();
  REQUIRE(b.responses.received().size() == 1);
  const auto first = b.responses.received()[0].desc.va;
  CHECK(s.answers() == Answers{{0x12, E, 0x1f}});
  for (int n = 0; n < 2; ++n) {
    s.send(FETCH_ADD, E, 16);
    b.run_until_quiet();
    REQUIRE(b.responses.received().size() == 1);
    CHECK(b.responses.received()[0].desc.va == first);
    CHECK(s.answers() == Answers{{0x12, E, 0x1f}});
  }
  CHECK(b.count_atomics == 1);
  s.send(CMP_SWAP, E, 16);                      // scenario 19: another opcode: silence
  CHECK(s.answers().empty());
  CHECK(b.count_atomics == 1);
  // responses keep their order: the WRITE's ACK waits for the atomic, the READ too
  s.send(CMP_SWAP, E + 1, 16);
  s.send(WRITE_ONLY, E + 2, 64);
  s.send(READ_REQUEST, E + 3, 0, 100);
  b.dut.tick(200);
  CHECK(b.responses.received().empty());
  CHECK(s.answers() == Answers{{0x12, E + 1, 0x1f}, {ACK, E + 2, 0x1f}, {0x10, E + 3, 0x1f}});
}

TEST_CASE("an atomic that failed: NAK 0x63 in its place, what is behind it is not answered") {
  Bench b(32);
  Single s(b);
  b.atomic_failure = 1.0;
  b.error_type = hw::EQE_TYPE_QP_FATAL;
  s.send(READ_REQUEST, E, 0, 3 * 1024);
  s.send(FETCH_ADD, E + 3, 16);
  s.send(READ_REQUEST, E + 4, 0, 100);
  const auto answers = s.answers();
  CHECK(answers == Answers{{0x0d, E, 0x1f}, {0x0e, E + 1, 0}, {0x0f, E + 2, 0x1f},
                           {ACK, E + 3, 0x63}});
  CHECK(s.q->state == rp::QPS_ERR);
}

TEST_CASE("scenarios 34, 36: an atomic without right, at an odd address, is an invalid request") {
  for (const bool right : {false, true}) {
    Bench b(33);
    Single s(b);
    s.q->config.remote_atomic = right;
    b.setup_qp(*s.q, E);
    auto p = frame(b, *s.q, FETCH_ADD, E, 16);
    p.headers.va = right ? 0x5004 : 0x5000;
    b.packets.push(p);
    CHECK(s.answers() == Answers{{ACK, E, 0x61}});
    CHECK(b.count_atomics == 0);
  }
}

TEST_CASE("scenario 48: UC: a message with a gap is lost, the next one has its receive, nobody is told") {
  Bench b(34);
  Single s(b, 1, 2, rp::QPS_RTS, 1);
  b.post(s.q->own, {9, {{0x1000, 100, 11}}, 1, false});
  b.ring_bell(s.q->own);
  b.dut.tick(100);
  s.send(SEND_ONLY, 77, 200);                   // too long for it
  s.send(SEND_ONLY, 9, 30);
  b.run_until_quiet();
  CHECK(b.count_too_long == 1);
  CHECK(b.count_completions == 1);
  s.post(1, 600);
  s.send(SEND_FIRST, 100, 256);
  s.send(SEND_LAST, 102, 9);                    // the MIDDLE is missing
  s.send(SEND_FIRST, 103, 256);
  s.send(SEND_MIDDLE, 104, 256);
  s.send(SEND_LAST_IMM, 105, 1);
  CHECK(s.answers().empty());
  CHECK(b.count_given_up == 1);
  CHECK(b.count_completions == 2);
  s.send(SEND_ONLY, 106, 1);
  s.answers();
  CHECK(b.count_no_receive == 1);
}

TEST_CASE("scenario 9: UD: longer than the buffer less 40: dropped, the next one has the receive") {
  Bench b(35);
  Single s(b, 5, 2, rp::QPS_RTS, 2);
  b.post(s.q->own, {9, {{0x1000, 140, 11}}, 1, false});
  b.ring_bell(s.q->own);
  b.dut.tick(100);
  s.send(SEND_ONLY, 5, 141);
  s.send(SEND_ONLY, 5, 140);
  s.send(SEND_ONLY_IMM, 5, 40);
  CHECK(s.answers().empty());
  CHECK(b.count_too_long == 1);
  CHECK(b.count_completions == 1);
  CHECK(b.count_no_receive == 1);
}

TEST_CASE("an aborted response is sent again, a bus error of its payload is a NAK 0x63") {
  Bench b(8);
  Single s(b);
  const auto report = [&](const rp::tx_item_t& item, rp::tx_fate_e fate) {
    rp::tx_done_t done{};
    done.fate = fate;
    done.source = rp::TX_RESPONSE;
    done.qp = item.desc.qp;
    done.psn = item.desc.psn;
    done.wqe_index = item.desc.wqe_index;
    b.departures.report(done);
  };
  s.send(READ_REQUEST, E, 0, 4 * 1024);
  b.run_until_quiet();
  const auto items = b.responses.received();
  REQUIRE(items.size() == 4);
  s.answers();
  report(items[0], rp::TX_SENT);                // nothing to do
  CHECK(s.answers().empty());
  s.q->tx.underrun(0, 2);
  report(items[2], rp::TX_UNDERRUN);
  CHECK(s.answers() == Answers{{0x0d, E + 2, 0x1f}, {0x0f, E + 3, 0x1f}});

  s.q->tx.refused(E + 1, 0x63, b.dut.cycle());
  b.error_type = hw::EQE_TYPE_QP_FATAL;
  report(items[1], rp::TX_BUS_ERROR);
  CHECK(s.answers() == Answers{{ACK, E + 1, 0x63}});
  CHECK(s.q->state == rp::QPS_ERR);
}

TEST_CASE("a token behind a failed write is a NAK 0x63 for the first PSN not in memory") {
  Bench b(9);
  Single s(b);
  s.send(WRITE_ONLY, E, 64);
  CHECK(s.answers() == Answers{{ACK, E, 0x1f}});
  rp::respond_token_t token{};
  token.qp = 5;
  token.error = true;
  token.info.kind = rp::RESPOND_ACK;
  token.info.psn = E + 7;
  s.q->tx.refused(E + 1, 0x63, b.dut.cycle());
  b.error_type = hw::EQE_TYPE_QP_FATAL;
  b.tokens_to_model = false;
  b.events.push(token);
  b.events.push(token);
  CHECK(s.answers() == Answers{{ACK, E + 1, 0x63}});
  CHECK(b.errors.transfers() == 1);
}

TEST_CASE("scenario 43: COMM_EST once, with the first packet in RTR") {
  Bench b(10);
  Single s(b, 3, 2, rp::QPS_RTR);
  b.asyncs.stall(Stall(0.9));
  for (unsigned n = 0; n < 20; ++n) s.send(WRITE_ONLY, E + n, 4);
  s.answers();
  CHECK(s.q->established == 1);
  b.set_state(5, rp::QPS_INIT);
  b.dut.tick(10);
  s.q->state = rp::QPS_RESET;                   // for the model: nothing is answered
  s.send(WRITE_ONLY, E + 20, 4);
  b.run_until_quiet();
  CHECK(b.responses.received().empty());
}

TEST_CASE("scenario 8: a QP that starts again has no past") {
  Bench b(11);
  Single s(b);
  s.post(3, 64);
  s.send(READ_REQUEST, E, 0, 3000);
  s.send(SEND_FIRST, E + 3, 1024);              // too long: ERR
  s.answers();
  CHECK(s.q->state == rp::QPS_ERR);
  CHECK(b.count_completions == 3);
  b.setup_qp(*s.q, 0xfffffe);
  CHECK(b.ctx(false, hw::CTX_COLUMN_QP_RQ_DYN, 5, 0) == 0xfffffe);
  CHECK(b.ctx(false, hw::CTX_COLUMN_QP_RESP, 5, 1) == 0xfffffd);
  CHECK(b.ctx(false, hw::CTX_COLUMN_RQ, 5, 2) == 0);
  s.post(1, 64);
  for (unsigned n = 0; n < 4; ++n) s.send(WRITE_ONLY, 0xfffffe + n, 9);
  s.send(READ_REQUEST, 2, 0, 10);
  s.send(SEND_ONLY, 3, 64);
  const auto answers = s.answers();
  CHECK(answers.back() == std::array<std::uint32_t, 3>{ACK, 3, 0x1f});
  CHECK((b.ctx(false, hw::CTX_COLUMN_QP_RQ_DYN, 5, 0) >> 24 & psn_mask) == 6);
}

TEST_CASE("the firmware's view of the columns, also in traffic") {
  Bench b(12);
  Single s(b);
  const std::uint64_t word0 = b.ctx(false, hw::CTX_COLUMN_QP_RQ, 5, 0);
  const std::uint64_t word1 = b.ctx(false, hw::CTX_COLUMN_QP_RQ, 5, 1);
  CHECK(word0 == (7 | 9 << 16 | std::uint64_t{s.q->config.qpn} << 32 | std::uint64_t{3} << 60));
  CHECK((word1 >> (112 - 64)) == 16);
  CHECK(b.ctx(false, hw::CTX_COLUMN_QP_RESP, 5, 0) ==
        (9 | 2 << 16 | 3 << 24 | std::uint64_t{2} << 28 | std::uint64_t{16} << 32));
  CHECK((b.ctx(false, hw::CTX_COLUMN_RQ, 5, 0) >> 12) == 0x1234);
  for (unsigned n = 0; n < 300; ++n) s.send(WRITE_ONLY, E + n, 8);
  for (unsigned n = 0; n < 20; ++n) {
    // a few cycles, whatever else goes on
    for (const unsigned column : {hw::CTX_COLUMN_QP_RQ, hw::CTX_COLUMN_QP_RQ_DYN,
                                  hw::CTX_COLUMN_QP_RESP, hw::CTX_COLUMN_RQ}) {
      b.ctx(false, column, 5, n % 2, 0, 30);
    }
  }
  s.answers();
  CHECK((b.ctx(false, hw::CTX_COLUMN_QP_RQ_DYN, 5, 0) & psn_mask) == E + 300);
  CHECK((b.ctx(false, hw::CTX_COLUMN_QP_RQ_DYN, 5, 1) & psn_mask) == E + 299);
}

TEST_CASE("fence: each colour ends when what it holds has left") {
  Bench b(13);
  Single s(b);
  b.memory.latency(100, 100);
  b.post(s.q->own, random_wqe(b.random, s.q->own, 64));
  b.ring_bell(s.q->own);
  b.dut.tick(30);
  CHECK(b.dut->fence_busy_o == 1);              // the fetch
  b.dut->colour_i = 1;
  b.dut.tick(150);
  CHECK(b.dut->fence_busy_o == 0);
  b.responses.stall(Stall(1.0));
  s.send(READ_REQUEST, E, 0, 100);
  b.dut.tick(50);
  CHECK(b.dut->fence_busy_o == 2);              // the response
  b.dut->colour_i = 0;
  b.dut.tick(50);
  CHECK(b.dut->fence_busy_o == 2);
  b.responses.stall(Stall(0.0));
  s.answers();
  CHECK(b.dut->fence_busy_o == 0);
}

// ---------------------------------------------------------------------------------------- rates
namespace {
/// QPs 0…n-1 with large rings, for rates.
std::vector<Qp*> many(Bench& b, unsigned count, unsigned slot_log2, unsigned mtu_code) {
  std::vector<Qp*> out;
  for (unsigned n = 0; n < count; ++n) {
    QpConfig c;
    c.qp = n;
    c.fn = 1;
    c.cq = n;
    c.qpn = 0x3000 * num_qps + n;
    c.mtu_code = mtu_code;
    c.replay_log2 = 2;
    c.replay_base = 4 * n;
    Qp& q = b.add_qp(c);
    q.own.log2 = 9;
    q.own.slot_log2 = slot_log2;
    q.own.slot_base = n << slot_log2;
    q.own.address = std::uint64_t{0x10000} * (n + 1);
    b.setup_qp(q, 0);
    out.push_back(&q);
  }
  b.memory.latency(250, 250);
  // the program posts again what was completed, eight at a time
  b.on_completion = [&b](Qp& q, const rp::completion_t&) {
    if (q.own.room() < 8) return;
    while (q.own.room() != 0) b.post(q.own, random_wqe(b.random, q.own, 64));
    b.ring_bell(q.own);
  };
  for (Qp* q : out) {
    while (q->own.room() != 0) b.post(q->own, random_wqe(b.random, q->own, 64));
    b.ring_bell(q->own);
  }
  b.dut.tick(2000);
  return out;
}

rp::rx_packet_t empty_write(Bench& b, const Qp& q) {
  auto p = frame(b, q, WRITE_ONLY, q.rx.next_psn);
  p.headers.dma_length = 0;
  return p;
}

/// Cycles per packet, from the first to the last item, of `count` packets round robin.
double rate(Bench& b, const std::vector<Qp*>& qps, unsigned op, std::uint32_t payload,
            unsigned count) {
  std::vector<std::uint32_t> psn;
  for (Qp* q : qps) psn.push_back(q->rx.next_psn);
  for (unsigned n = 0; n < count; ++n) {
    const std::size_t k = n % qps.size();
    auto p = frame(b, *qps[k], op, psn[k]++, payload);
    p.headers.dma_length = payload;
    b.packets.push(p);
  }
  const std::uint64_t start = b.dut.cycle();
  b.run_until_quiet();
  b.check_complete();
  return static_cast<double>(b.last_item_cycle - start) / count;
}
}  // namespace

TEST_CASE("rates: SEND and WRITE of 64 bytes, one QP and 64") {
  for (const unsigned qps : {1u, 64u}) {
    Bench b(20);
    const unsigned slots = rc::SLOT_BITS - (qps == 1 ? (ROCI_CONFIG_WIDE ? 4 : 1) : 6);
    const auto list = many(b, qps, slots, 3);
    const double send = rate(b, list, SEND_ONLY, 64, 3000);
    const double write = rate(b, list, WRITE_ONLY, 64, 3000);
    const double imm = rate(b, list, WRITE_ONLY_IMM, 64, 3000);
    WARN(qps << " QPs: cycles per packet: SEND " << send << ", WRITE " << write << ", WRITE_IMM "
             << imm);
    // narrow: 64 QPs share 256 slots, and a frame of 64 bytes takes 150 cycles on its wire
    CHECK(send <= (ROCI_CONFIG_WIDE ? 3.0 : 12.0));
    CHECK(write <= 3.0);
    CHECK(imm <= (ROCI_CONFIG_WIDE ? 3.0 : 12.0));
    CHECK(b.count_rnr == 0);
  }
}

TEST_CASE("tokens of one QP at wire rate hold up nothing") {
  // 64 B SENDs come every 3.16 cycles (`wide`): the commit FIFO must never wait for their tokens
  Bench b(23);
  const auto list = many(b, 1, rc::SLOT_BITS - (ROCI_CONFIG_WIDE ? 4 : 1), 3);
  std::uint32_t psn = list[0]->rx.next_psn;
  unsigned taken = 0, refused = 0;
  for (unsigned n = 0; n < 300; ++n) {
    b.packets.push(frame(b, *list[0], SEND_ONLY, psn++, 64));
    for (unsigned c = 0; c < 3; ++c) {
      b.dut.tick(1);
      taken += b.dut->event_valid_i && b.dut->event_ready_o;
      refused += b.dut->event_valid_i && !b.dut->event_ready_o;
    }
  }
  INFO(taken << " tokens taken, " << refused << " cycles of waiting");
  CHECK(taken >= 250);
  CHECK(refused <= 15);
  b.run_until_quiet();
  b.check_complete();
}

TEST_CASE("rates: ACKs of many QPs, READ responses of one") {
  Bench b(21);
  const auto list = many(b, 32, 1, 5);
  // every QP owes one ACK before the first can leave
  b.responses.stall(Stall(1.0));
  for (Qp* q : list) b.packets.push(empty_write(b, *q));
  b.dut.tick(400);
  const std::uint64_t before = b.responses.transfers();
  b.responses.stall(Stall(0.0));
  const std::uint64_t start = b.dut.cycle();
  b.dut.run_until([&] { return b.responses.transfers() == before + 32; }, "ACKs");
  const double acks = static_cast<double>(b.dut.cycle() - start) / 32;

  auto p = frame(b, *list[3], READ_REQUEST, list[3]->rx.next_psn);
  p.headers.dma_length = 400 * 4096;
  b.packets.push(p);
  b.dut.run_until([&] { return b.responses.transfers() == before + 33; }, "first response");
  const std::uint64_t first = b.dut.cycle();
  b.run_until_quiet();
  const double read = static_cast<double>(b.last_response_cycle - first) / 399;
  WARN("cycles per packet: ACK " << acks << ", READ response " << read);
  CHECK(acks <= 3.0);
  CHECK(read <= 4.0);
}

TEST_CASE("an ACK does not wait for long READs of other QPs") {
  Bench b(22);
  const auto list = many(b, 6, 2, 5);
  b.responses.stall(Stall(0.95));
  for (unsigned n = 0; n < 5; ++n) {
    auto p = frame(b, *list[n], READ_REQUEST, list[n]->rx.next_psn);
    p.headers.dma_length = 100 * 4096;
    b.packets.push(p);
  }
  b.dut.tick(500);
  const std::uint64_t before = b.responses.transfers();
  b.packets.push(empty_write(b, *list[5]));
  b.responses.received().clear();
  b.dut.run_until(
      [&] {
        for (const auto& item : b.responses.received()) {
          if (item.desc.qp == 5) return true;
        }
        return false;
      },
      "ACK");
  // the eight packets already decided, and a few that were walked before its turn
  CHECK(b.responses.transfers() - before <= 16);
  b.run_until_quiet();
  b.check_complete();
}
