// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_sq_scheduler against the promises of its header: every doorbell, wake and requeue is
// followed by a pop that sees its effect, nothing else is popped, wakes are told apart, a QP in an
// RNR wait is not popped until the wait ends, and "others" is about others.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

namespace {

constexpr unsigned kQpBits = ROCI_CONFIG_WIDE ? 10 : 6;
constexpr unsigned kWakes = 3;
constexpr auto kSq = static_cast<pkg::doorbell_kind_e>(0);
constexpr auto kRq = static_cast<pkg::doorbell_kind_e>(1);
constexpr auto kAgain = static_cast<pkg::sq_requeue_kind_e>(0);
constexpr auto kRestart = static_cast<pkg::sq_requeue_kind_e>(1);

struct Bench;

// The always accepted inputs and the wake streams; each transfer is noted in the bench.
struct Inputs : Agent {
  explicit Inputs(Bench& b) : bench(b) {}
  void sample() override;
  void drive() override;
  Bench& bench;
  double doorbells = 0, wakes = 0, states = 0, rnrs = 0;
  std::array<unsigned, kWakes> wake_qp{};
  std::array<bool, kWakes> wake_on{};
};

struct Bench {
  Dut<DUT_CLASS> dut;
  Random& random;
  Inputs inputs;
  Source<pkg::sq_requeue_t> requeue;
  Sink<pkg::sq_pop_t> pop;
  std::vector<unsigned> qps;                     // those that take part

  // what is known of each QP
  struct Qp {
    unsigned producer = 0;
    std::uint64_t event = 0, wake = 0, doorbell = 0;   // cycle of the last one
    std::uint64_t reasons = 0, pops = 0;
    std::uint64_t pop = 0, pop_woken = 0;              // cycle of the last pop, with `woken`
    unsigned pop_producer = 0;
    bool waiting = false;
    std::uint64_t waiting_since = 0;
  };
  std::map<unsigned, Qp> state;

  explicit Bench(Random& r, unsigned count)
      : dut(r()), random(r), inputs(*this),
        requeue("requeue", dut->requeue_valid_i, dut->requeue_ready_o, dut->requeue_i),
        pop("pop", dut->pop_valid_o, dut->pop_ready_i, dut->pop_o) {
    for (unsigned n = 0; n < count; ++n) {
      qps.push_back(static_cast<unsigned>(r.below(1u << kQpBits)));
    }
    dut->doorbell_valid_i = 0;
    dut->wake_valid_i = 0;
    dut->current_qp_i = 0;
    pkg::state_bcast_t{}.pack(dut->state_i);
    pkg::rnr_bcast_t{}.pack(dut->rnr_i);
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "tables cleared", 5000);
    pop.collect();
    pop.on_transfer([this](const pkg::sq_pop_t& p) {
      Qp& qp = state[p.qp];
      qp.pop = now();
      if (p.woken) qp.pop_woken = now();
      taken = p.qp;
      ++qp.pops;
      REQUIRE(qp.reasons >= qp.pops);                  // nothing is popped without a reason
      // popped (before a wait began, or never)
      if (qp.waiting) REQUIRE(now() - qp.waiting_since < hold);
    });
    requeue.on_transfer([this](const pkg::sq_requeue_t& r2) {
      Qp& qp = state[r2.qp];
      if (r2.kind == kAgain) {
        note(qp);
      } else {
        qp.producer = r2.index;
        qp.doorbell = 0;                               // no pop will show this index
      }
    });
    dut.attach(inputs);
    dut.attach(requeue);
    dut.attach(pop);
  }
  std::uint64_t hold = 1000000;                        // longest time a pop is not taken
  std::optional<unsigned> taken;                       // its index shows in this cycle
  std::vector<unsigned> producers;                     // what the pops showed
  std::uint64_t now() { return dut.cycle(); }
  void note(Qp& qp) {
    qp.event = now();
    ++qp.reasons;
  }
  unsigned any() { return random.pick(qps); }
  void rest() {
    int quiet = 0;
    dut.run_until(
        [&] {
          quiet = dut->pop_valid_o || !requeue.empty() || dut->wake_valid_i ? 0 : quiet + 1;
          return quiet > 30;
        },
        "rest", 200000);
  }
};

void Inputs::sample() {
  auto& dut = bench.dut;
  if (bench.taken) {
    bench.state[*bench.taken].pop_producer = dut->producer_o;
    bench.producers.push_back(dut->producer_o);
    bench.taken.reset();
  }
  if (dut->doorbell_valid_i) {
    const auto d = pkg::doorbell_t::unpack(dut->doorbell_i);
    if (d.kind == kSq) {
      auto& qp = bench.state[d.object_index];
      qp.producer = d.index & 0xffff;
      bench.note(qp);
      qp.doorbell = bench.now();
    }
  }
  for (unsigned k = 0; k < kWakes; ++k) {
    if (wake_on[k] && (dut->wake_ready_o >> k & 1)) {
      wake_on[k] = false;
      auto& qp = bench.state[wake_qp[k]];
      bench.note(qp);
      qp.wake = bench.now();
    }
  }
  if (const auto s = pkg::state_bcast_t::unpack(dut->state_i); s.valid) {
    auto& qp = bench.state[s.qp];
    bench.note(qp);
    qp.wake = bench.now();
  }
  if (const auto r = pkg::rnr_bcast_t::unpack(dut->rnr_i); r.valid) {
    auto& qp = bench.state[r.qp];
    if (r.waiting && !qp.waiting) qp.waiting_since = bench.now();
    qp.waiting = r.waiting;
    if (!r.waiting) {
      bench.note(qp);
      qp.wake = bench.now();
    }
  }
}

void Inputs::drive() {
  auto& dut = bench.dut;
  auto& random = bench.random;
  auto doorbell = random_payload<pkg::doorbell_t>(random);
  dut->doorbell_valid_i = random.chance(doorbells);
  doorbell.kind = random.chance(0.9) ? kSq : kRq;
  doorbell.object_index = static_cast<std::uint16_t>(bench.any());
  doorbell.pack(dut->doorbell_i);
  std::uint64_t lanes = 0;
  for (unsigned k = 0; k < kWakes; ++k) {
    if (!wake_on[k] && random.chance(wakes)) {
      wake_on[k] = true;
      wake_qp[k] = bench.any();
    }
    lanes |= static_cast<std::uint64_t>(wake_qp[k]) << (k * kQpBits);
  }
  dut->wake_valid_i = static_cast<CData>(wake_on[0] | wake_on[1] << 1 | wake_on[2] << 2);
  Bits<kWakes * kQpBits>(lanes).pack(dut->wake_i);
  auto s = random_payload<pkg::state_bcast_t>(random);
  s.valid = random.chance(states);
  s.qp = static_cast<decltype(s.qp)>(bench.any());
  s.pack(dut->state_i);
  auto r = random_payload<pkg::rnr_bcast_t>(random);
  r.valid = random.chance(rnrs);
  r.qp = static_cast<decltype(r.qp)>(bench.any());
  r.pack(dut->rnr_i);
}

}  // namespace

TEST_CASE("every reason is followed by a pop that sees it") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Bench bench(random, static_cast<unsigned>(random.between(1, 30)));
    bench.pop.stall(Stall::any(random));
    bench.requeue.stall(Stall::any(random));
    for (int phase = 0; phase < 15; ++phase) {
      bench.inputs.doorbells = random.chance(0.5) ? 0.3 : 0.02;
      bench.inputs.wakes = random.chance(0.5) ? 0.2 : 0.01;
      bench.inputs.states = random.chance(0.5) ? 0.01 : 0.0;
      for (std::size_t n = 0; n < scaled(80); ++n) {
        if (random.chance(0.3)) {
          pkg::sq_requeue_t r{};
          r.kind = random.chance(0.9) ? kAgain : kRestart;
          r.qp = static_cast<decltype(r.qp)>(bench.any());
          r.index = static_cast<std::uint16_t>(random());
          bench.requeue.push(r);
        }
        bench.dut.tick(random.below(4));
      }
      bench.inputs.doorbells = bench.inputs.wakes = bench.inputs.states = 0;
      bench.dut.tick();
      bench.rest();
      for (auto& [number, qp] : bench.state) {
        CAPTURE(number, qp.event, qp.wake, qp.doorbell, qp.pop, qp.pop_woken);
        if (qp.event) REQUIRE(qp.pop > qp.event);
        if (qp.wake) REQUIRE(qp.pop_woken > qp.wake);
        if (qp.doorbell) REQUIRE(qp.pop_producer == qp.producer);
      }
    }
  }
}

TEST_CASE("one reason at a time: exactly one pop with exactly its effect") {
  Random random;
  Bench bench(random, 20);
  std::map<unsigned, unsigned> producer;
  // The index is undefined until a first doorbell or restart.
  for (const unsigned qp : bench.qps) {
    pkg::sq_requeue_t r{};
    r.kind = kRestart;
    r.qp = static_cast<decltype(r.qp)>(qp);
    r.index = static_cast<std::uint16_t>(random());
    producer[qp] = r.index;
    bench.requeue.push(r);
  }
  bench.rest();
  REQUIRE(bench.pop.received().empty());
  for (int n = 0; n < 300; ++n) {
    const unsigned qp = bench.any();
    const auto kind = random.below(5);
    bool woken = false, popped = true;
    if (kind == 0) {
      pkg::doorbell_t d{};
      d.object_index = static_cast<std::uint16_t>(qp);
      d.index = static_cast<std::uint32_t>(random.bits(16));
      producer[qp] = d.index;
      d.pack(bench.dut->doorbell_i);
      bench.dut->doorbell_valid_i = 1;
      bench.dut.tick();
    } else if (kind == 1) {
      woken = true;
      bench.inputs.wake_on[1] = true;
      bench.inputs.wake_qp[1] = qp;
      bench.dut.tick();
    } else if (kind == 2) {
      woken = true;
      pkg::state_bcast_t s{};
      s.valid = true;
      s.qp = static_cast<decltype(s.qp)>(qp);
      s.pack(bench.dut->state_i);
      bench.dut.tick();
    } else {
      pkg::sq_requeue_t r{};
      r.kind = kind == 3 ? kAgain : kRestart;
      r.qp = static_cast<decltype(r.qp)>(qp);
      r.index = static_cast<std::uint16_t>(random());
      if (kind == 4) producer[qp] = r.index;
      popped = kind == 3;
      bench.requeue.push(r);
      bench.dut.tick();
    }
    bench.rest();
    auto& got = bench.pop.received();
    CAPTURE(kind, qp);
    REQUIRE(got.size() == (popped ? 1u : 0u));
    if (popped) {
      REQUIRE(got[0].qp == qp);
      REQUIRE(got[0].woken == woken);
      REQUIRE(bench.producers.back() == producer[qp]);
    }
    got.clear();
  }
}

TEST_CASE("an RNR wait keeps a QP out, its end brings it back") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Bench bench(random, 8);
    bench.hold = 40;
    bench.pop.stall(Stall(0.3));
    for (int n = 0; n < 40; ++n) {
      bench.inputs.doorbells = 0.2;
      bench.inputs.wakes = 0.1;
      bench.inputs.rnrs = 0.1;
      bench.dut.tick(random.below(100));
      bench.inputs.doorbells = bench.inputs.wakes = bench.inputs.rnrs = 0;
      bench.dut.tick();
      bench.rest();
      for (auto& [number, qp] : bench.state) {
        CAPTURE(number, qp.wake, qp.pop_woken);
        if (!qp.waiting && qp.wake) REQUIRE(qp.pop_woken > qp.wake);
      }
    }
    for (auto& [number, qp] : bench.state) {
      if (!qp.waiting) continue;
      const auto before = qp.pops;
      pkg::rnr_bcast_t r{};
      r.valid = true;
      r.qp = static_cast<decltype(r.qp)>(number);
      r.pack(bench.dut->rnr_i);
      bench.dut.tick();
      bench.rest();
      REQUIRE(qp.pops == before + 1);
    }
  }
}

TEST_CASE("others: anyone queued but the QP at work") {
  Random random;
  Bench bench(random, 1);
  bench.pop.stall(Stall(1.0));
  const auto doorbell = [&](unsigned qp) {
    pkg::doorbell_t d{};
    d.object_index = static_cast<std::uint16_t>(qp);
    d.pack(bench.dut->doorbell_i);
    bench.dut->doorbell_valid_i = 1;
    bench.dut.tick(20);
  };
  bench.dut->current_qp_i = 5;
  bench.dut.tick(5);
  REQUIRE(bench.dut->others_queued_o == 0);
  doorbell(5);                                   // waits to be taken
  REQUIRE(bench.dut->others_queued_o == 0);
  doorbell(5);                                   // and is queued again
  REQUIRE(bench.dut->others_queued_o == 0);
  doorbell(6);
  REQUIRE(bench.dut->others_queued_o == 1);
  bench.dut->current_qp_i = 6;
  bench.dut.tick(3);
  REQUIRE(bench.dut->others_queued_o == 1);
  bench.pop.stall(Stall(0.0));
  bench.rest();
  bench.dut.tick(3);
  REQUIRE(bench.dut->others_queued_o == 0);
}

TEST_CASE("a pop every cycle") {
  Random random;
  Bench bench(random, 1);
  for (unsigned n = 0; n < 60; ++n) {
    pkg::sq_requeue_t r{};
    r.kind = kAgain;
    r.qp = static_cast<decltype(r.qp)>(n);
    bench.requeue.push(r);
  }
  const auto start = bench.now();
  bench.dut.run_until([&] { return bench.pop.received().size() == 60; }, "60 pops");
  REQUIRE(bench.now() - start <= 60 + 8);
}
