// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_wqe_fetch against a model that works off pops and rewinds in the order of their acceptance:
// every DMA read, block, requeue and epoch broadcast is predicted exactly; landing space is never
// exceeded; the fence sees every burst; sleep and wake follow the rules of the header.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <optional>

#include "harness/harness.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

namespace {

constexpr unsigned kQpBits = ROCI_CONFIG_WIDE ? 10 : 6;
constexpr unsigned kDataBytes = ROCI_CONFIG_WIDE ? 64 : 8;
constexpr unsigned kLanding = ROCI_CONFIG_WIDE ? 128 : 32;
constexpr auto kStall = static_cast<pkg::rewind_kind_e>(0);
constexpr auto kRetry = static_cast<pkg::rewind_kind_e>(2);
constexpr auto kSleep = static_cast<pkg::rewind_kind_e>(3);
constexpr auto kAgain = static_cast<pkg::sq_requeue_kind_e>(0);
constexpr auto kRestart = static_cast<pkg::sq_requeue_kind_e>(1);
constexpr auto kRts = static_cast<pkg::qp_state_e>(3);
constexpr unsigned kColumn = static_cast<unsigned>(roci::hwif::CtxColumn::QP_SQ);

// Host memory: the word at an address is a hash of it.
std::uint64_t memory(std::uint64_t address) {
  std::uint64_t z = address * 0x9e3779b97f4a7c15u + 0x1234567;
  z = (z ^ (z >> 31u)) * 0xbf58476d1ce4e5b9u;
  return z ^ (z >> 29u);
}

// What the model knows of a QP.
struct Row {
  std::uint64_t page = 0;
  unsigned fn = 0, log2 = 6;
  unsigned state = 0;
  std::uint16_t fetch_point = 0;
  std::uint8_t epoch = 0;
  bool fetched = false, asleep = false, woken = false;
};

struct Bench : Agent {
  Dut<DUT_CLASS> dut;
  Random& random;
  Source<pkg::sq_pop_t> pop;
  Sink<pkg::sq_requeue_t> requeue;
  Sink<pkg::dma_read_req_t> dma;
  Source<pkg::read_beat_t> beat;
  Sink<pkg::wqe_block_t> block;

  std::vector<unsigned> qps;
  std::map<unsigned, Row> rows;

  // inputs without a stream end of the harness
  std::array<std::deque<pkg::rewind_req_t>, 2> rewinds;    // the front is shown if `shown`
  std::array<bool, 2> shown{};
  double rewind_rate = 0.3, flip_rate = 0.0, state_rate = 0.0, bus_errors = 0.0;
  std::uint64_t latency = 0;
  unsigned waiting_turns = 0;                              // handed on, turn_i not yet given

  // expectations
  struct Requeue {
    pkg::sq_requeue_kind_e kind;
    unsigned qp, index;
  };
  struct Burst {
    unsigned blocks, colour;
    bool turn;
  };
  std::deque<pkg::epoch_bcast_t> epochs;
  std::deque<Requeue> requeues;
  std::deque<Burst> bursts;                                // not all blocks handed on
  std::deque<bool> beat_errors;                            // of the beats to come
  std::deque<std::pair<std::uint64_t, pkg::dma_read_req_t>> reads;   // due cycle, request
  unsigned landed = 0, most_landed = 0;                    // blocks issued and not handed on
  unsigned turns = 0;
  int last_qp = -1;
  std::array<std::uint64_t, 2> held_at{};                  // cycle in which colour c was last held

  explicit Bench(Random& r, unsigned count)
      : dut(r()), random(r), pop("pop", dut->pop_valid_i, dut->pop_ready_o, dut->pop_i),
        requeue("requeue", dut->requeue_valid_o, dut->requeue_ready_i, dut->requeue_o),
        dma("dma", dut->dma_valid_o, dut->dma_ready_i, dut->dma_o),
        beat("beat", dut->beat_valid_i, dut->beat_ready_o, dut->beat_i),
        block("block", dut->block_valid_o, dut->block_ready_i, dut->block_o) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    pkg::state_bcast_t{}.pack(dut->state_i);
    dut->rewind_valid_i = 0;
    dut->turn_i = 0;
    dut->colour_i = 0;
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "tables cleared", 5000);
    while (qps.size() < count) {
      const auto qp = static_cast<unsigned>(r.below(1u << kQpBits));
      if (rows.count(qp) == 0) qps.push_back(qp);
      rows[qp];
    }
    requeue.collect();
    requeue.on_transfer([this](const pkg::sq_requeue_t& q) {
      REQUIRE_FALSE(requeues.empty());
      REQUIRE(q.kind == requeues.front().kind);
      REQUIRE(q.qp == requeues.front().qp);
      if (q.kind == kRestart) REQUIRE(q.index == requeues.front().index);
      requeues.pop_front();
    });
    pop.on_transfer([this](const pkg::sq_pop_t& p) {
      accepted = Accepted{p, producers.front(), dut->colour_i};
      producers.pop_front();
    });
    dma.on_transfer([this](const pkg::dma_read_req_t& d) {
      reads.emplace_back(dut.cycle() + latency, d);
    });
    block.on_transfer([this](const pkg::wqe_block_t& b) {
      --landed;
      held_at[b.colour] = dut.cycle();
      if (b.turn) ++waiting_turns;
      if (b.burst_last) bursts.pop_front();
    });
    dut.attach(*this);                                     // first: rewinds come before pops
    dut.attach(pop);
    dut.attach(requeue);
    dut.attach(dma);
    dut.attach(block);
    dut.attach(beat);
  }

  unsigned any() { return random.pick(qps); }

  // ---- the model
  void expect_epoch(unsigned qp, const pkg::rewind_point_t& point) {
    pkg::epoch_bcast_t e{};
    e.valid = true;
    e.qp = static_cast<decltype(e.qp)>(qp);
    e.epoch = rows[qp].epoch;
    e.point = point;
    epochs.push_back(e);
  }

  void model_rewind(const pkg::rewind_req_t& r) {
    Row& row = rows[r.qp];
    const bool forced = r.kind == kRetry || r.kind == kSleep;
    if (!forced && r.epoch != row.epoch) return;
    if (row.fetched) ++row.epoch;
    row.fetched = false;
    row.fetch_point = r.point.wqe_index;
    row.asleep = (r.kind == kStall || r.kind == kSleep) && !row.woken;
    row.woken = false;
    if (!row.asleep) requeues.push_back({kAgain, r.qp, 0});
    expect_epoch(r.qp, r.point);
  }

  void model_pop(const pkg::sq_pop_t& p, std::uint16_t producer, unsigned colour) {
    Row& row = rows[p.qp];
    held_at[colour] = dut.cycle();
    if (p.woken) row.asleep = false;
    row.woken = row.fetched && (row.woken || p.woken);
    const auto available = static_cast<std::uint16_t>(producer - row.fetch_point);
    if (available == 0 || row.asleep || row.state < 2) return;
    const unsigned blocks = std::min<unsigned>(available, 8 - row.fetch_point % 8);
    const std::uint64_t address =
        (row.page << 12u) + 64u * (row.fetch_point & ((1u << row.log2) - 1u));
    pkg::dma_read_req_t d{};
    d.fn = static_cast<decltype(d.fn)>(row.fn);
    d.length = static_cast<decltype(d.length)>(64 * blocks);
    d.addr = address;
    dma.expect(d);
    const bool turn = last_qp != static_cast<int>(p.qp);
    last_qp = static_cast<int>(p.qp);
    turns += turn;
    bursts.push_back({blocks, colour, turn});
    landed += blocks;
    most_landed = std::max(most_landed, landed);
    REQUIRE(landed <= kLanding);
    for (unsigned k = 0; k < blocks; ++k) {
      pkg::wqe_block_t b{};
      b.colour = colour;
      b.burst_last = k + 1 == blocks;
      b.turn = turn && k == 0;
      b.qp = p.qp;
      b.epoch = row.epoch;
      b.index = static_cast<std::uint16_t>(row.fetch_point + k);
      b.addr = address + 64u * k;
      for (unsigned at = 0; at < 64; at += 8) {
        const auto word = memory(b.addr + at);
        b.block[at / 4] = static_cast<std::uint32_t>(word);
        b.block[at / 4 + 1] = static_cast<std::uint32_t>(word >> 32u);
      }
      for (unsigned at = 0; at < 64; at += kDataBytes) {
        beat_errors.push_back(random.chance(bus_errors));
        b.err |= beat_errors.back();
      }
      block.expect(b);
    }
    row.fetch_point = static_cast<std::uint16_t>(row.fetch_point + blocks);
    row.fetched = true;
    if (row.fetch_point != producer) requeues.push_back({kAgain, p.qp, 0});
  }

  // ---- ports
  void sample() override {
    const auto now = dut.cycle();
    for (unsigned k = 0; k < 2; ++k) {
      if (shown[k] && (dut->rewind_ready_o >> k & 1)) {
        const auto r = rewinds[k].front();
        rewinds[k].pop_front();
        shown[k] = false;
        model_rewind(r);
      }
    }
    // A rewind is accepted one cycle after it acted: pops of that cycle come behind it.
    if (accepted) model_pop(accepted->pop, accepted->producer, accepted->colour);
    accepted.reset();
    if (const auto e = pkg::epoch_bcast_t::unpack(dut->epoch_o); e.valid) {
      REQUIRE_FALSE(epochs.empty());
      REQUIRE(e == epochs.front());
      epochs.pop_front();
    }
    if (const auto s = pkg::state_bcast_t::unpack(dut->state_i); s.valid) {
      rows[s.qp].state = static_cast<unsigned>(s.state);
    }
    if (dut->turn_i) {
      --turns;
      turn_at = now;
    }
    // what is held must be seen by the fence, what is long gone must not
    for (const auto& b : bursts) held_at[b.colour] = now;
    for (unsigned c = 0; c < 2; ++c) {
      const bool busy = dut->fence_busy_o >> c & 1;
      bool held = false;
      for (const auto& b : bursts) held |= b.colour == c;
      if (held && now > 0) REQUIRE(busy);
      if (now > held_at[c] + 8) REQUIRE_FALSE(busy);
    }
    if (turns == 0 && now > turn_at + 3) REQUIRE(dut->others_fetched_o == 0);
  }
  std::uint64_t turn_at = 0;
  struct Accepted {
    pkg::sq_pop_t pop;
    std::uint16_t producer;
    unsigned colour;
  };
  std::optional<Accepted> accepted;                        // in the last cycle
  std::deque<std::uint16_t> producers;                     // of the pops to come

  void drive() override {
    constexpr unsigned kWidth = pkg::rewind_req_t::width_bits;
    auto request = random_payload<Bits<2 * kWidth>>(random).words;
    for (unsigned k = 0; k < 2; ++k) {
      if (!shown[k] && !rewinds[k].empty() && random.chance(rewind_rate)) shown[k] = true;
      if (shown[k]) rewinds[k].front().to_bits(request.data(), k * kWidth);
    }
    dut->rewind_valid_i = static_cast<CData>(shown[0] | shown[1] << 1);
    roci::sv::words_to_port<2 * kWidth>(request, dut->rewind_i);
    if (random.chance(flip_rate)) dut->colour_i = !dut->colour_i;
    pkg::state_bcast_t s{};
    s.valid = random.chance(state_rate);
    s.qp = static_cast<decltype(s.qp)>(any());
    s.state = static_cast<pkg::qp_state_e>(random.below(7));
    if (force_state) {
      s = *force_state;
      force_state.reset();
    }
    s.pack(dut->state_i);
    if (accepted) dut->producer_i = accepted->producer;    // holds until the next one
    dut->turn_i = waiting_turns != 0 && random.chance(0.3);
    if (dut->turn_i) --waiting_turns;
    for (; !reads.empty() && reads.front().first <= dut.cycle(); reads.pop_front()) {
      const auto& d = reads.front().second;
      for (unsigned at = 0; at < d.length; at += kDataBytes) {
        pkg::read_beat_t b{};
        if constexpr (ROCI_CONFIG_WIDE) {
          for (unsigned w = 0; w < kDataBytes; w += 8) set_word(b, w, memory(d.addr + at + w));
        } else {
          set_word(b, 0, memory(d.addr + at));
        }
        b.last = at + kDataBytes == d.length;
        b.err = beat_errors.front();
        beat_errors.pop_front();
        beat.push(b);
      }
    }
  }
  std::optional<pkg::state_bcast_t> force_state;
  static void set_word(pkg::read_beat_t& b, unsigned at, std::uint64_t word) {
    auto words = roci::sv::to_words(b);
    roci::sv::set_bits(words.data(), 8 * at, 64, word);
    b = roci::sv::from_words<pkg::read_beat_t>(words);
  }

  // ---- what the tests do
  void ctx(bool write, unsigned qp, unsigned word, std::uint64_t data,
           std::uint64_t* out = nullptr) {
    const auto read = context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { dut.tick(); }, kColumn, write, qp, word, data, 1000);
    if (out) *out = read;
  }

  void set_state(unsigned qp, pkg::qp_state_e state) {
    pkg::state_bcast_t s{};
    s.valid = true;
    s.qp = static_cast<decltype(s.qp)>(qp);
    s.state = state;
    force_state = s;
    dut.tick(2);
  }

  // New send queue: ring, fetch point, state RTS.
  void open(unsigned qp) {
    Row& row = rows[qp];
    row.page = random.bits(50);
    row.fn = static_cast<unsigned>(random.below(ROCI_CONFIG_WIDE ? 16 : 8));
    row.log2 = static_cast<unsigned>(random.between(6, 15));
    ctx(true, qp, 0, row.page << 12u | static_cast<std::uint64_t>(row.fn) << 4u | row.log2);
    restart(qp, static_cast<std::uint16_t>(random()));
    set_state(qp, kRts);
  }

  // Only while nothing else goes on, so that the model knows the order.
  void restart(unsigned qp, std::uint16_t index) {
    Row& row = rows[qp];
    if (row.fetched) ++row.epoch;
    row.fetched = row.asleep = row.woken = false;
    row.fetch_point = index;
    requeues.push_back({kRestart, qp, index});
    pkg::rewind_point_t point{};
    point.wqe_index = index;
    point.first_psn = point.resume_psn = static_cast<std::uint32_t>(random.bits(24));
    expect_epoch(qp, point);
    ctx(true, qp, 1, static_cast<std::uint64_t>(point.first_psn) << 32u | index);
  }

  void push_pop(unsigned qp, unsigned blocks, bool woken) {
    pkg::sq_pop_t p{};
    p.qp = static_cast<decltype(p.qp)>(qp);
    producers.push_back(static_cast<std::uint16_t>(rows[qp].fetch_point + blocks));
    p.woken = woken;
    pop.push(p);
  }

  void push_rewind(unsigned source, unsigned qp, pkg::rewind_kind_e kind, std::uint8_t epoch) {
    auto r = random_payload<pkg::rewind_req_t>(random);
    r.kind = kind;
    r.qp = static_cast<decltype(r.qp)>(qp);
    r.epoch = epoch;
    rewinds[source].push_back(r);
  }

  void rest() {
    int quiet = 0;
    dut.run_until(
        [&] {
          const bool still = pop.empty() && rewinds[0].empty() && rewinds[1].empty() &&
                             bursts.empty() && requeues.empty() && epochs.empty() &&
                             dma.done() && block.done() && waiting_turns == 0 && !dut->turn_i;
          quiet = still ? quiet + 1 : 0;
          return quiet > 12;
        },
        "rest", 100000);
  }
};

}  // namespace

TEST_CASE("random pops, rewinds and states") {
  Random random;
  for (int round = 0; round < 25; ++round) {
    Bench bench(random, static_cast<unsigned>(random.between(1, 6)));
    bench.latency = random.chance(0.5) ? 0 : random.below(300);
    bench.bus_errors = random.chance(0.3) ? 0.02 : 0.0;
    for (const auto qp : bench.qps) bench.open(qp);
    bench.pop.stall(Stall::any(random));
    bench.requeue.stall(Stall::any(random));
    bench.dma.stall(Stall::any(random));
    bench.beat.stall(Stall::any(random));
    bench.block.stall(Stall::any(random));
    bench.flip_rate = random.chance(0.5) ? 0.02 : 0.0;
    for (int phase = 0; phase < 6; ++phase) {
      bench.state_rate = random.chance(0.3) ? 0.05 : 0.0;
      const bool rewinds = random.chance(0.7);
      for (std::size_t n = 0; n < scaled(120); ++n) {
        if (bench.pop.pending() < 4) {
          bench.push_pop(bench.any(), static_cast<unsigned>(random.below(20)), random.chance(0.3));
        }
        if (rewinds && random.chance(0.3)) {
          const unsigned qp = bench.any();
          const auto epoch = static_cast<std::uint8_t>(
              bench.rows[qp].epoch - (random.chance(0.3) ? random.below(3) : 0));
          const auto kind = static_cast<pkg::rewind_kind_e>(random.below(4));
          bench.push_rewind(random.chance(0.5), qp, kind, epoch);
        }
        bench.dut.tick(random.below(12));
      }
      bench.state_rate = 0;
      bench.rest();
      const unsigned qp = bench.any();
      std::uint64_t word = 0;
      bench.ctx(false, qp, 1, 0, &word);
      const auto& row = bench.rows[qp];
      REQUIRE((word & 0xffff) == row.fetch_point);
      REQUIRE((word >> 16u & 0xff) == row.epoch);
      REQUIRE((word >> 24u & 1) == row.fetched);
      bench.ctx(false, qp, 0, 0, &word);
      REQUIRE(word >> 12u == row.page);
      REQUIRE((word >> 4u & 0xff) == row.fn);
      REQUIRE((word & 15) == row.log2);
      if (random.chance(0.5)) {
        bench.restart(qp, static_cast<std::uint16_t>(random()));
        bench.rest();
      }
    }
  }
}

TEST_CASE("the context bus does not wait for traffic to end") {
  Random random;
  Bench bench(random, 2);
  for (const auto qp : bench.qps) bench.open(qp);
  bench.block.stall(Stall(1.0));                       // nothing moves: landing space fills up
  for (int n = 0; n < 60; ++n) {
    bench.push_pop(bench.qps[0], 4000, false);
    bench.dut.tick(4);
  }
  REQUIRE(bench.landed > kLanding - 8);
  std::uint64_t word = 0;
  bench.ctx(false, bench.qps[1], 1, 0, &word);
  REQUIRE((word & 0xffff) == bench.rows[bench.qps[1]].fetch_point);
  // nor do rewinds
  bench.push_rewind(0, bench.qps[0], kRetry, 0);
  bench.dut.run_until([&] { return bench.rewinds[0].empty(); }, "a rewind", 30);
}

TEST_CASE("one QP: bursts overlap until landing space is used up, a pop every cycle") {
  Random random;
  Bench bench(random, 1);
  bench.open(bench.qps[0]);
  bench.restart(bench.qps[0], 0);
  bench.rest();
  bench.latency = 250;
  const auto start = bench.dut.cycle();
  for (unsigned n = 0; n < kLanding / 8; ++n) {
    pkg::sq_pop_t p{};
    p.qp = static_cast<decltype(p.qp)>(bench.qps[0]);
    bench.producers.push_back(30000);
    bench.pop.push(p);
  }
  bench.dut.run_until([&] { return bench.reads.size() == kLanding / 8; }, "reads", 200);
  const auto cycles = bench.dut.cycle() - start;
  WARN(ROCI_CONFIG_NAME << ": " << kLanding / 8 << " bursts issued in " << cycles << " cycles");
  CHECK(cycles <= kLanding / 8 + 6);
  CHECK(bench.landed == kLanding);
}

TEST_CASE("sleep and wake") {
  Random random;
  Bench bench(random, 1);
  const unsigned qp = bench.qps[0];
  bench.open(qp);
  bench.rewind_rate = 1.0;
  bench.rest();
  const auto& row = bench.rows[qp];
  const auto fetches = [&](bool woken) {
    const auto before = row.fetch_point;
    bench.push_pop(qp, 3, woken);
    bench.rest();
    return row.fetch_point != before;
  };
  const auto stall = [&] {
    bench.push_rewind(0, qp, kStall, row.epoch);
    bench.rest();
  };
  // The model decides, the DUT was compared with it in every step; here the rules themselves.
  REQUIRE(fetches(false));
  stall();
  REQUIRE(row.asleep);
  REQUIRE_FALSE(fetches(false));                       // a doorbell does not wake
  REQUIRE(fetches(true));
  REQUIRE_FALSE(row.asleep);
  bench.push_pop(qp, 0, true);                         // a wake after the look
  bench.rest();
  REQUIRE(row.woken);
  stall();
  REQUIRE_FALSE(row.asleep);                           // queued again: one more look
  REQUIRE(fetches(false));
  stall();
  REQUIRE(row.asleep);
}
