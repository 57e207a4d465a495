// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Scheduler, WQE fetch and packetizer together, in the world of send_path_model.hpp: random work
// requests, losses, rewinds at any time, stalls, states, errors; and cycles per packet.
// model: configs=wide,narrow
// model: configs=wide,narrow args=-GQUANTUM_CYCLES=20 name=quantum
#include "requester/send_path_model.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
using namespace roci::test::send;

namespace {

#ifdef DUT_QUANTUM_CYCLES
constexpr bool kShortQuantum = true;           // to see many yields; rates are not of interest
#else
constexpr bool kShortQuantum = false;
#endif

Context context(Random& random, unsigned slot) {
  Context c;
  c.mtu_code = static_cast<unsigned>(random.between(1, 5));
  c.fn = static_cast<unsigned>(random.below(ROCI_CONFIG_WIDE ? 16 : 8));
  c.pd = static_cast<unsigned>(random.below(ROCI_CONFIG_WIDE ? 1024 : 64));
  c.max_rd_atomic = static_cast<unsigned>(random.between(1, 8));
  c.inflight_log2 = static_cast<unsigned>(random.between(3, 6));
  c.inflight_base = slot * 64;
  c.read_log2 = 3;
  c.read_base = slot * 8;
  return c;
}

Wqe request(Random& random, const Qp& q) {
  if (random.chance(0.05)) {
    Wqe nop;
    nop.op = kNop;
    nop.signaled = random.chance(0.5);
    nop.blocks = static_cast<unsigned>(random.between(1, 3));
    return nop;
  }
  const std::uint64_t mtu = q.ctx.mtu();
  const std::uint64_t bytes = random.chance(0.1)   ? 0
                              : random.chance(0.5) ? random.between(1, 2 * mtu)
                              : random.chance(0.9) ? random.below(12 * mtu)
                                                   : random.below(60 * mtu);
  Wqe w = random_wqe(random, bytes);
  w.fence = random.chance(0.1);
  return w;
}

}  // namespace

TEST_CASE("everything posted completes once and in order, whatever happens") {
  Random random;
  std::uint64_t packets = 0, stalls = 0, yields = 0, resent = 0, local_errors = 0, retries = 0,
                completed = 0, flushed = 0, left_out = 0, owed = 0;
  for (int round = 0; round < 16; ++round) {
    SendPath path(random);
    const bool calm = round % 4 == 0;
    path.latency = random.below(300);
    path.half_trip = random.below(200);
    path.timeout = 3000;
    path.set_window(static_cast<unsigned>(random.between(10, 18)));
    std::vector<Qp*> list;
    const auto count = random.between(1, 6);
    for (unsigned n = 0; n < count; ++n) {
      const unsigned number = n * 9 + static_cast<unsigned>(random.below(9));
      list.push_back(&path.create(number, context(random, n),
                                  static_cast<unsigned>(random.between(6, 8))));
    }
    path.stall_all();
    for (int phase = 0; phase < 6; ++phase) {
      if (!calm) {
        path.loss = random.chance(0.5) ? 0.03 : 0.0;
        path.ack_loss = random.chance(0.5) ? 0.05 : 0.0;
        path.rnr = random.chance(0.3) ? 0.1 : 0.0;
        path.partial = random.chance(0.5) ? 0.2 : 0.0;
        path.bus_errors = random.chance(0.1) ? 0.002 : 0.0;
      }
      for (std::size_t n = 0; n < scaled(150); ++n) {
        Qp& q = *random.pick(list);
        for (auto burst = random.below(4); burst != 0 && q.state >= kRts; --burst) {
          Wqe w = request(random, q);
          if (!calm && random.chance(0.01)) {          // one that fails
            if (random.chance(0.5)) w.op = kLocalInv;
            else if (!w.inline_data && w.op != kNop) ++w.length;
          }
          if (!path.post(q, w)) break;
        }
        if (q.state >= kRts) path.doorbell(q);
        path.dut.tick(random.below(random.chance(0.1) ? 1500 : 60));
        if (calm) continue;
        if (random.chance(0.01)) path.set_state(q, kErr);
        if (random.chance(0.01) && q.state == kRts) {
          path.set_state(q, kSqd);
          path.dut.tick(random.below(3000));
          if (q.state == kSqd) path.set_state(q, kRts);
        }
        if (random.chance(0.005)) path.restart(q);
        // a failed QP flushes, then lives again
        if (q.state == kErr && random.chance(0.2)) {
          if (random.chance(0.7)) {
            path.run_until([&] { return q.work.empty() || q.lost(); }, "flushed", 100000);
          }
          path.restart(q);
        }
      }
      path.loss = path.ack_loss = path.rnr = path.partial = path.bus_errors = 0.0;
      for (auto* q : list) {
        path.dut.tick(10);
        if (q->state == kSqd) path.set_state(*q, kRts);
      }
      path.rest();
      for (auto* q : list) {
        if (q->lost()) path.restart(*q);
        CAPTURE(q->number, q->completed, q->flushed, q->dropped, q->posted);
        REQUIRE(q->completed + q->flushed + q->dropped == q->posted);
      }
    }
    path.fence();
    if (calm) CHECK(path.timeouts == 0);       // nobody waits for an ACK that is not asked for
    left_out += path.left_out;
    owed += path.owed;
    packets += path.packets;
    stalls += path.stalls;
    yields += path.yields;
    resent += path.resent;
    local_errors += path.local_errors;
    retries += path.retries;
    for (const auto* q : list) {
      completed += q->completed;
      flushed += q->flushed;
    }
  }
  WARN(packets << " packets, " << resent << " resent, " << stalls << " stalls, " << yields
               << " yields, " << retries << " rewinds from outside, " << local_errors
               << " local errors, " << completed << " completed, " << flushed << " flushed, "
               << left_out << " ends without AckReq, " << owed << " asked for after all");
  CHECK(resent > 100);
  CHECK(stalls > 100);
  if (kShortQuantum) CHECK(yields > 10);
  CHECK(retries > 100);
  CHECK(local_errors > 3);
  CHECK(flushed > 100);
  CHECK(left_out > 30);
}

TEST_CASE("messages up to 2^31 bytes, from where they were lost") {
  // Sending all of them would take hours: READs are one packet, and rewinds jump.
  Random random;
  SendPath path(random);
  path.latency = 20;
  path.half_trip = 20;
  path.set_window(31);
  Context c = context(random, 0);
  c.max_rd_atomic = 8;
  c.inflight_log2 = 6;
  c.mtu_code = 1;
  Qp& q = path.create(3, c, 8);
  path.partial = 0.6;
  for (int n = 0; n < 60; ++n) {
    Wqe w;
    do {
      w = random_wqe(random, random.chance(0.3) ? 0x80000000u : random.bits(31));
    } while (w.op != kRead);
    while (!path.post(q, w)) path.dut.tick(100);
    path.doorbell(q);
    path.dut.tick(random.below(300));
  }
  path.rest();
  REQUIRE(q.completed == q.posted);
}

TEST_CASE("quantum: long messages of several QPs share, none waits long") {
  if (kShortQuantum) return;
  Random random;
  SendPath path(random);
  path.latency = 250;
  path.half_trip = 100;
  path.set_window(24);
  std::vector<Qp*> list;
  for (unsigned n = 0; n < 4; ++n) {
    Context c = context(random, n);
    c.mtu_code = 5;
    c.inflight_log2 = 6;
    list.push_back(&path.create(n, c, 7));
  }
  for (auto* q : list) {
    for (int n = 0; n < 16; ++n) {
      Wqe w;
      w.op = kWrite;
      w.length = 1u << 20u;
      w.sge_count = 1;
      w.sges = {{random(), w.length, 1}};
      REQUIRE(path.post(*q, w));
    }
    path.doorbell(*q);
  }
  path.dut.tick(20000);
  std::uint32_t least = ~0u, most = 0;
  for (auto* q : list) {
    const std::uint32_t sent = (q->max_psn - q->work.front().first_psn) & kPsnMask;
    least = std::min(least, sent);
    most = std::max(most, sent);
  }
  WARN(ROCI_CONFIG_NAME << ": " << path.packets << " packets, least " << least << ", most " << most
                        << ", yields " << path.yields);
  CHECK(path.yields > 5);
  CHECK(most <= least + 400);
  // little is lost by going back and forth
  CHECK(path.packets >= 20000 / (ROCI_CONFIG_WIDE ? 3.5 : 4.0));
}

TEST_CASE("cycles per packet") {
  if (kShortQuantum) return;
  Random random;
  const auto measure = [&](unsigned qps, unsigned list_posts) {
    SendPath path(random);
    path.latency = 250;
    path.half_trip = 250;
    path.set_window(18);
    std::vector<Qp*> list;
    const unsigned records = ROCI_CONFIG_WIDE ? 9 : (qps == 1 ? 9 : 3);
    for (unsigned n = 0; n < qps; ++n) {
      Context c;
      c.mtu_code = 5;
      c.inflight_log2 = qps == 1 ? 9 : std::min(records, 7u);
      c.inflight_base = n << c.inflight_log2;
      list.push_back(&path.create(n, c, qps == 1 ? 10 : 7));
    }
    const auto fill = [&](Qp& q) {
      Wqe w;
      w.op = kWrite;
      w.length = 64;
      w.sge_count = 1;
      w.sges = {{random(), 64, 1}};
      unsigned posted = 0;
      while (posted < list_posts && path.post(q, w)) ++posted;
      if (posted != 0) path.doorbell(q);
    };
    const auto run = [&](std::uint64_t cycles) {
      for (const auto end = path.now() + cycles; path.now() < end;) {
        for (auto* q : list) {
          if (q->work.size() + list_posts <= (1u << q->ctx.inflight_log2)) fill(*q);
        }
        path.dut.tick(1);
      }
    };
    run(4000);                                         // warm
    const auto before = path.packets;
    const auto start = path.now();
    run(10000);
    return static_cast<double>(path.now() - start) / static_cast<double>(path.packets - before);
  };
  const double one = measure(1, 32), one_single = measure(1, 1);
  const double many = measure(ROCI_CONFIG_WIDE ? 64 : 32, 4);
  const double many_single = measure(ROCI_CONFIG_WIDE ? 64 : 32, 1);
  WARN(ROCI_CONFIG_NAME << ": 64 B WRITE, one QP " << one << " (lists), " << one_single
                        << " (single posts); many QPs " << many << " (lists of 4), " << many_single
                        << " (single posts) cycles per packet");
  CHECK(one <= (ROCI_CONFIG_WIDE ? 3.1 : 12.0));
  CHECK(many <= (ROCI_CONFIG_WIDE ? 3.1 : 12.0));
}
