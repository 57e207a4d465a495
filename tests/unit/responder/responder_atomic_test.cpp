// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_atomic with the real host_dma_write, and a model of memory that knows the order of all
// writes: every value and result exact, with writes of all four levels to the same words at any time;
// every atomic told once, behind its data; bus errors; functions and queue pairs in reset; fence; the
// queue has room; rates, and nobody is kept waiting.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <memory>
#include <set>

#include "harness/harness.hpp"
#include "host/axi_write_model.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
using Atomic = pkg::atomic_req_t;
using Done = pkg::atomic_done_t;
using Engine = roci::sv::host_pkg::atomic_write_t;
using Read = pkg::dma_read_req_t;
using Beat = pkg::read_beat_t;
using Request = pkg::dma_write_req_t;
using Word = pkg::write_beat_t;
using Memory = AxiWriteModel<DUT_CLASS>;
using Place = Memory::Place;

constexpr unsigned depth = 1u << roci::sv::roci_config_pkg::REPLAY_BITS;
constexpr std::uint64_t base = 0x7f00'1234'5000;

/// Function and bus word.
using Line = std::pair<unsigned, std::uint64_t>;
Line line_of(unsigned fn, std::uint64_t addr) { return {fn, addr / data_bytes}; }

/// Host memory behind the read client: answers in order, with what memory holds at some time between
/// question and answer; errors on request.
class Reads : public Agent {
 public:
  Reads(DUT_CLASS& dut, const Memory& memory, std::uint64_t salt)
      : dut_(dut), memory_(memory), random_(salt) {
    dut_.dma_ready_i = 0;
    dut_.beat_valid_i = 0;
  }
  void latency(unsigned least, unsigned most) { least_ = least, most_ = most; }
  void stall(Stall request) { stall_ = request; }
  /// Probability that a read fails, and functions whose reads all do.
  void errors(double probability) { error_ = probability; }
  void disabled(unsigned fns) { disabled_ = fns; }
  /// No read is taken.
  void block(bool on) { blocked_ = on; }
  void on_error(std::function<void(Line)> call) { call_ = std::move(call); }
  bool idle() const { return waiting_.empty(); }
  std::uint64_t reads = 0;

  void sample() override {
    ++cycle_;
    if (dut_.beat_valid_i && !dut_.beat_ready_o) stream_failure("beat", cycle_, "not taken");
    if (!dut_.dma_valid_o || !dut_.dma_ready_i) return;
    const Read read = Read::unpack(dut_.dma_o);
    if (read.length != 8 || read.addr % 8 != 0) stream_failure("dma", cycle_, "bad read");
    ++reads;
    std::uint64_t due = cycle_ + random_.between(least_, most_);
    if (!waiting_.empty()) due = std::max(due, waiting_.back().due + 1);
    const std::uint64_t see = random_.between(cycle_, due);
    waiting_.push_back({line_of(read.fn, read.addr), due, see, {}});
  }
  void drive() override {
    dut_.dma_ready_i = !blocked_ && !stall_.next(random_);
    for (Waiting& w : waiting_) {
      if (w.seen.empty() && w.see <= cycle_) {
        for (unsigned i = 0; i < data_bytes; ++i) {
          const Place at{w.line.first, w.line.second * data_bytes + i};
          const auto found = memory_.memory().find(at);
          w.seen.push_back(found != memory_.memory().end() ? found->second
                                                           : memory_byte(at.first, at.second));
        }
      }
    }
    dut_.beat_valid_i = 0;
    auto beat = random_payload<Beat>(random_);
    if (!waiting_.empty() && waiting_.front().due <= cycle_) {
      const Waiting& w = waiting_.front();
      beat.err = ((disabled_ >> w.line.first) & 1u) != 0 || random_.chance(error_);
      beat.last = true;
      for (unsigned i = 0; i < data_bytes; ++i) {
        if (!beat.err) set_byte(beat.data, i, w.seen[i]);
      }
      dut_.beat_valid_i = 1;
      if (beat.err) call_(w.line);
      waiting_.pop_front();
    }
    beat.pack(dut_.beat_i);
  }

 private:
  struct Waiting {
    Line line;
    std::uint64_t due, see;
    std::vector<std::uint8_t> seen;
  };
  DUT_CLASS& dut_;
  const Memory& memory_;
  Random random_;
  Stall stall_;
  unsigned least_ = 1, most_ = 1, disabled_ = 0;
  double error_ = 0.0;
  bool blocked_ = false;
  std::uint64_t cycle_ = 0;
  std::function<void(Line)> call_ = [](Line) {};
  std::deque<Waiting> waiting_;
};

std::uint64_t swap64(std::uint64_t value) { return __builtin_bswap64(value); }

struct Bench {
  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt), memory(dut.top(), salt + 1), reads(dut.top(), memory, salt + 2),
        atomics("atomics", dut->atomic_valid_i, dut->atomic_ready_o, dut->atomic_i),
        engine("engine", dut->engine_valid_o, dut->engine_ready_o, dut->engine_o),
        done("done", dut->done_valid_o, dut->done_ready_i, dut->done_o) {
    for (unsigned l = 0; l < 4; ++l) {
      req.push_back(std::make_unique<Source<Request>>("req" + std::to_string(l),
                                                      dut->req_valid_i[l], dut->req_ready_o[l],
                                                      dut->req_i[l]));
      data.push_back(std::make_unique<Source<Word>>("data" + std::to_string(l),
                                                    dut->data_valid_i[l], dut->data_ready_o[l],
                                                    dut->data_i[l]));
      req[l]->on_transfer([this, l](const Request& r) { left(l, r); });
    }
    atomics.on_transfer([this](const Atomic& a) { ++held[a.colour]; });
    engine.on_transfer([this](const Engine& e) { executed(e); });
    done.on_transfer([this](const Done& d) { told(d); });
    done.collect();
    reads.on_error([this](Line line) { failing.insert(line); });
    dut->cqe_reserve_i = 0;
    dut->state_i = 0;
    dut->fn_disabled_i = 0;
    dut->axi_bvalid_i = 0;
    dut.reset();
    dut.attach(memory);
    dut.attach(reads);
    dut.attach(engine);
    dut.attach(done);
    dut.attach(atomics);
    for (unsigned l = 0; l < 4; ++l) {
      dut.attach(*req[l]);
      dut.attach(*data[l]);
    }
    dut.run_until([&] { return dut->ready_o != 0; }, "ready", 3000);
  }

  std::uint8_t byte(unsigned fn, std::uint64_t addr) const {
    const auto found = image.find({fn, addr});
    return found != image.end() ? found->second : memory_byte(fn, addr);
  }
  std::uint64_t word(unsigned fn, std::uint64_t addr) const {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < 8; ++i) value |= std::uint64_t{byte(fn, addr + i)} << (8 * i);
    return value;
  }

  void atomic(unsigned fn, std::uint64_t addr, bool swap, std::uint64_t change,
              std::uint64_t compare, unsigned qp, unsigned colour = 0) {
    auto a = random_payload<Atomic>(random);
    a.fn = static_cast<decltype(a.fn)>(fn);
    a.qp = static_cast<decltype(a.qp)>(qp);
    a.colour = colour != 0;
    a.addr = addr >> 3u;
    a.is_swap = swap;
    // as on the wire: big endian, Swap or Add first
    for (unsigned i = 0; i < 8; ++i) {
      set_byte(a.operands, i, static_cast<std::uint8_t>(swap64(change) >> (8 * i)));
      set_byte(a.operands, 8 + i, static_cast<std::uint8_t>(swap64(compare) >> (8 * i)));
    }
    atomics.push(a);
    waiting.push_back({a, addr, swap, change, compare});
  }

  /// A write of a level, with its data.
  void write(unsigned level, unsigned fn, std::uint64_t addr, unsigned length) {
    Request r{};
    r.has_token = level != 0;
    r.fn = static_cast<decltype(r.fn)>(fn);
    r.length = static_cast<decltype(r.length)>(length);
    r.addr = addr;
    r.token.kind = level == 1   ? pkg::TOKEN_CQE_DONE
                   : level == 2 ? pkg::TOKEN_EQE_DONE
                                : pkg::TOKEN_CPU;
    auto bytes = random.bytes(length);
    for (auto& b : bytes) b &= 3u;  // small numbers: compares match now and then
    for (unsigned done_bytes = 0; done_bytes < length;) {
      Word beat{};
      const unsigned start = done_bytes;
      for (unsigned lane = (addr + done_bytes) % data_bytes; lane < data_bytes && done_bytes < length;
           ++lane, ++done_bytes) {
        set_byte(beat.data, lane, bytes[done_bytes]);
        beat.strobe |= decltype(beat.strobe){1} << lane;
      }
      if (level == 2) {  // an EQE lies in all lanes
        for (unsigned lane = 0; lane < data_bytes; ++lane) {
          set_byte(beat.data, lane, bytes[(start + lane) % length]);
        }
      }
      beat.last = done_bytes == length;
      data[level]->push(beat);
    }
    req[level]->push(r);
    contents[level].push_back(bytes);
  }

  void state(unsigned qp, unsigned to) {
    pkg::state_bcast_t s{};
    s.valid = true;
    s.qp = static_cast<decltype(s.qp)>(qp);
    s.state = static_cast<decltype(s.state)>(to);
    s.pack(dut->state_i);
    dut.tick();
    s.valid = false;
    s.pack(dut->state_i);
  }

  /// One cycle, with the fence watched: busy while something of the colour is held.
  void tick() {
    const unsigned before[2] = {held[0], held[1]};
    dut.tick();
    for (unsigned c = 0; c < 2; ++c) {
      if (before[c] != 0 && held[c] != 0 && ((dut->fence_busy_o >> c) & 1u) == 0) {
        throw Failure("fence is not busy with colour " + std::to_string(c));
      }
    }
  }

  bool idle() const {
    for (unsigned l = 0; l < 4; ++l) {
      if (!req[l]->empty() || !data[l]->empty()) return false;
    }
    return atomics.empty() && waiting.empty() && expected.empty() && memory.idle() && reads.idle();
  }
  void run(std::uint64_t limit, const std::string& what) {
    for (std::uint64_t n = 0; !idle(); ++n) {
      if (n == limit) throw Failure("timeout: " + what);
      tick();
    }
    for (int n = 0; n < 50; ++n) tick();
    REQUIRE(held[0] == 0);
    REQUIRE(held[1] == 0);
    REQUIRE(dut->fence_busy_o == 0);
  }

  Dut<DUT_CLASS> dut;
  Random random;
  Memory memory;
  Reads reads;
  Source<Atomic> atomics;
  Monitor<Engine> engine;
  Sink<Done> done;
  std::vector<std::unique_ptr<Source<Request>>> req;
  std::vector<std::unique_ptr<Source<Word>>> data;

  struct Waiting {
    Atomic a;
    std::uint64_t addr;
    bool swap;
    std::uint64_t change, compare;
  };
  struct Expected {
    Done done;
    unsigned colour;
    bool murky, wrote;
    std::uint64_t addr, result;
  };
  std::deque<Waiting> waiting;        // not executed
  std::deque<Expected> expected;      // executed, not told
  std::map<Place, std::uint8_t> image;  // memory, by the order of all writes
  std::multiset<Line> failing;        // the next execution there fails
  std::function<bool(unsigned)> skipped = [](unsigned) { return false; };   // by QP
  std::function<bool(unsigned, std::uint64_t)> bad_write;                   // of a bus word
  unsigned disabled = 0;
  unsigned held[2] = {};
  std::uint64_t matched = 0, missed = 0, failed = 0, starts = 0, dones = 0, murky_failed = 0;
  std::vector<unsigned> told_qps;
  std::function<void()> on_executed = [] {};

 private:
  void left(unsigned level, const Request& r) {
    const auto bytes = contents[level].front();
    contents[level].pop_front();
    if (((disabled >> r.fn) & 1u) != 0) return;
    for (unsigned i = 0; i < r.length; ++i) image[{r.fn, r.addr + i}] = bytes[i];
  }

  void executed(const Engine& e) {
    if (!e.tag.executed) {
      REQUIRE(e.is_token);
      ++starts;
      return;
    }
    REQUIRE(dut->locked_o);
    while (!waiting.empty() && skipped(waiting.front().a.qp)) {
      --held[waiting.front().a.colour];
      waiting.pop_front();
    }
    REQUIRE(!waiting.empty());
    const Waiting w = waiting.front();
    waiting.pop_front();
    on_executed();
    const unsigned fn = w.a.fn;
    Expected x{};
    x.colour = w.a.colour;
    x.addr = w.addr;
    x.done.qp = w.a.qp;
    x.done.slot = w.a.slot;
    x.done.ordinal = w.a.ordinal;
    x.done.psn = w.a.psn;
    x.done.value = word(fn, w.addr);
    if (const auto bad = failing.find(line_of(fn, w.addr)); bad != failing.end()) {
      failing.erase(bad);
      ++failed;
      x.done.failed = true;
      REQUIRE(e.is_token);
    } else {
      x.murky = bad_write && bad_write(fn, w.addr / data_bytes * data_bytes);
      const bool writes = !w.swap || w.compare == x.done.value;
      (writes ? matched : missed) += w.swap;
      if (!x.murky) REQUIRE(e.is_token == !writes);
      x.wrote = !e.is_token;
      x.result = e.data;
      if (!e.is_token) {
        if (!x.murky) {
          REQUIRE(e.data == (w.swap ? w.change : x.done.value + w.change));
        }
        REQUIRE((std::uint64_t{e.addr} << 3u) == w.addr);
        REQUIRE(e.fn == fn);
        for (unsigned i = 0; i < 8; ++i) {
          image[{fn, w.addr + i}] = static_cast<std::uint8_t>(e.data >> (8 * i));
        }
      }
    }
    expected.push_back(x);
  }

  void told(const Done& d) {
    ++dones;
    REQUIRE(!expected.empty());
    const Expected x = expected.front();
    expected.pop_front();
    --held[x.colour];
    told_qps.push_back(d.qp);
    Done wanted = x.done;
    if (x.murky) {
      wanted.value = d.value;
      wanted.failed = x.wrote;
      murky_failed += x.wrote;
    }
    if (wanted.failed) wanted.value = d.value;
    if (!(wanted == d)) {
      throw Failure("done differs: expected " + wanted.to_string() + " got " + d.to_string());
    }
    // Behind its data: its bytes, or later ones, are in memory. Later ones are not looked for here.
    if (x.wrote && !d.failed && !later_writes) {
      for (unsigned i = 0; i < 8; ++i) {
        const auto found = memory.memory().find({fn_of_done, x.addr + i});
        REQUIRE(found != memory.memory().end());
        REQUIRE(found->second == static_cast<std::uint8_t>(x.result >> (8 * i)));
      }
    }
  }

 public:
  bool later_writes = true;  // a word is written more than once: do not look
  unsigned fn_of_done = 0;

 private:
  std::deque<std::vector<std::uint8_t>> contents[4];
};

void stalls(Bench& bench, Random& random) {
  bench.memory.latency(static_cast<unsigned>(random.between(1, 150)));
  bench.memory.stall(Stall::any(random), Stall::any(random), Stall::any(random));
  const auto most = static_cast<unsigned>(random.between(2, 400));
  bench.reads.latency(static_cast<unsigned>(random.between(1, most)), most);
  bench.reads.stall(Stall::any(random));
  bench.atomics.stall(Stall::any(random));
  bench.done.stall(Stall::any(random));
  for (unsigned l = 0; l < 4; ++l) {
    bench.req[l]->stall(Stall::any(random));
    bench.data[l]->stall(l == 0 ? Stall::any(random) : Stall(0.0));
  }
}

/// Random atomics and writes of all levels on `lines` bus words of 1 or 2 functions.
void mix(Bench& bench, Random& random, std::size_t count, unsigned lines, double writes) {
  const unsigned fns = random.chance(0.5) ? 1 : 3;
  std::size_t left = count;
  unsigned reserved = 0;
  for (std::uint64_t cycle = 0; left != 0; ++cycle) {
    if (cycle == 1'000'000) {
      throw Failure("stands still: " + std::to_string(left) + " to come, " +
                    std::to_string(bench.waiting.size()) + " wait, " +
                    std::to_string(bench.expected.size()) + " executed, " +
                    std::to_string(bench.held[0] + bench.held[1]) + " held, reads idle " +
                    std::to_string(bench.reads.idle()) + ", memory idle " +
                    std::to_string(bench.memory.idle()) + ", locked " +
                    std::to_string(bench.dut->locked_o) + ", done valid " +
                    std::to_string(bench.dut->done_valid_o) + ", engine " +
                    std::to_string(bench.dut->engine_valid_o));
    }
    const auto fn = static_cast<unsigned>(random.below(fns));
    const std::uint64_t addr = base + data_bytes * random.below(lines) + 8 * random.below(8);
    // never more than there are replay entries
    if (bench.atomics.pending() < 3 && bench.held[0] + bench.held[1] + 3 < depth &&
        random.chance(0.3)) {
      --left;
      const bool swap = random.chance(0.5);
      const std::uint64_t now = bench.word(fn, addr);
      const std::uint64_t change = random.chance(0.5) ? random() : random.below(3);
      bench.atomic(fn, addr, swap, change, random.chance(0.8) ? now : random.below(4),
                   static_cast<unsigned>(random.below(8)), random.chance(0.5));
    }
    if (random.chance(writes)) {
      // Levels 1 to 3 go first, so they must leave something of a slow bus, as in the chip.
      const unsigned level = random.chance(0.04) ? static_cast<unsigned>(random.between(1, 3)) : 0;
      if (bench.req[level]->pending() < 3) {
        std::uint64_t at = base + random.below(std::uint64_t{data_bytes} * lines + 64);
        if (level == 0) {
          unsigned length = static_cast<unsigned>(
              random.chance(0.6) ? random.between(1, 16) : random.between(1, 300));
          if (random.chance(0.05)) at = base, length = 4096;
          if (at % 4096 + length > 4096) length = 4096 - at % 4096;
          bench.write(0, fn, at, length);
        } else if (level == 1) {
          ++reserved;
        } else if (level == 2) {
          bench.write(2, fn, at & ~std::uint64_t{15}, 16);
        } else {
          bench.write(3, fn, at & ~std::uint64_t{7}, 8);
        }
      }
    }
    bench.dut->cqe_reserve_i = reserved != 0 && bench.dut->cqe_room_o;
    if (bench.dut->cqe_reserve_i) {
      --reserved;
      bench.write(1, fn, (base + random.below(std::uint64_t{data_bytes} * lines)) & ~std::uint64_t{31},
                  32);
    }
    bench.tick();
  }
  bench.dut->cqe_reserve_i = 0;
}
}  // namespace

TEST_CASE("random atomics and writes of all levels on few words") {
  Random random;
  std::uint64_t matched = 0, missed = 0;
  for (int round = 0; round < 16; ++round) {
    Bench bench(random());
    stalls(bench, random);
    static const unsigned lines[] = {1, 2, 3, 8, 40};
    mix(bench, random, scaled(ROCI_CONFIG_WIDE ? 1200 : 600), lines[round % 5],
        round % 3 == 0 ? 0.0 : round % 3 == 1 ? 0.05 : 0.5);
    bench.run(3'000'000, "all atomics");
    for (const auto& [place, value] : bench.memory.memory()) {
      REQUIRE(bench.image.at(place) == value);
    }
    REQUIRE(bench.memory.memory().size() == bench.image.size());
    matched += bench.matched;
    missed += bench.missed;
  }
  CHECK(matched > 80);
  CHECK(missed > 80);
}

TEST_CASE("reads that fail, fail one atomic each") {
  Random random;
  std::uint64_t failed = 0, done = 0;
  for (int round = 0; round < 6; ++round) {
    Bench bench(random());
    stalls(bench, random);
    bench.reads.errors(0.3);
    mix(bench, random, scaled(600), round % 2 == 0 ? 1 : 12, 0.1);
    bench.run(3'000'000, "all atomics");
    REQUIRE(bench.failing.empty());
    REQUIRE(bench.memory.memory().size() == bench.image.size());
    for (const auto& [place, value] : bench.memory.memory()) {
      REQUIRE(bench.image.at(place) == value);
    }
    failed += bench.failed;
    done += bench.dones;
  }
  CHECK(failed > 50);
  CHECK(done > 3 * failed / 2);
}

TEST_CASE("writes that fail, fail their atomic and no other") {
  Random random;
  for (int round = 0; round < 4; ++round) {
    Bench bench(random());
    stalls(bench, random);
    bench.bad_write = [](unsigned, std::uint64_t addr) { return addr / data_bytes % 3 == 1; };
    bench.memory.errors(bench.bad_write);
    mix(bench, random, scaled(600), 9, 0.0);
    bench.run(3'000'000, "all atomics");
    CHECK(bench.murky_failed > 30);
    CHECK(bench.failed == 0);
  }
}

TEST_CASE("functions in reset: atomics fail, those of others do not") {
  Random random;
  Bench bench(random());
  stalls(bench, random);
  bench.disabled = 1u << 1u;
  bench.dut->fn_disabled_i = 1u << 1u;
  bench.reads.disabled(1u << 1u);
  for (unsigned n = 0; n < 60; ++n) bench.atomic(n % 3, base + 8 * (n % 7), false, 1, 0, n % 3);
  bench.run(300'000, "all atomics");
  CHECK(bench.failed == 20);
  CHECK(bench.dones == 60);
  CHECK(bench.memory.memory().count({1, base}) == 0);
}

TEST_CASE("done is behind the data") {
  Random random;
  for (int round = 0; round < 4; ++round) {
    Bench bench(random());
    stalls(bench, random);
    bench.later_writes = false;
    for (unsigned n = 0; n < 200; ++n) {
      bench.atomic(0, base + 8 * n, n % 2 != 0, random(), bench.word(0, base + 8 * n), n % 8);
    }
    bench.run(300'000, "all atomics");
    CHECK(bench.dones == 200);
  }
}

TEST_CASE("queue pairs in RESET are forgotten, in ERR they are not") {
  Random random;
  Bench bench(random());
  bench.reads.block(true);
  for (unsigned n = 0; n < 90; ++n) {
    bench.atomic(0, base + 8 * (n % 5), false, 1, 0, n % 3, n % 2);
  }
  for (int n = 0; n < 500; ++n) bench.tick();
  bench.state(0, pkg::QPS_ERR);
  bench.state(1, pkg::QPS_RESET);
  bench.skipped = [](unsigned qp) { return qp == 1; };
  CHECK(bench.dut->fence_busy_o == 3);
  bench.reads.block(false);
  for (int n = 0; bench.dones != 60; ++n) {
    REQUIRE(n < 100'000);
    bench.dut.tick();
  }
  bench.dut.tick(300);
  CHECK(bench.dut->fence_busy_o == 0);
  CHECK(std::count(bench.told_qps.begin(), bench.told_qps.end(), 1u) == 0);
  std::uint64_t sum = 0;
  for (unsigned w = 0; w < 5; ++w) {
    for (unsigned i = 0; i < 8; ++i) {
      sum += std::uint64_t{bench.memory.memory().at({0, base + 8 * w + i})} << (8 * i);
      sum -= std::uint64_t{memory_byte(0, base + 8 * w + i)} << (8 * i);
    }
  }
  CHECK(sum == 60);
  // and its next life executes
  bench.waiting.clear();
  bench.held[0] = bench.held[1] = 0;
  bench.skipped = [](unsigned) { return false; };
  bench.state(1, pkg::QPS_INIT);
  bench.state(1, pkg::QPS_RTS);
  bench.atomic(0, base, false, 5, 0, 1);
  bench.run(10'000, "next life");
  CHECK(bench.told_qps.back() == 1);
}

TEST_CASE("the queue takes as many as there are replay entries, memory standing") {
  Random random;
  Bench bench(random());
  bench.reads.block(true);
  for (unsigned n = 0; n < depth; ++n) bench.atomic(0, base + 8 * (n % 512), false, 1, 0, n % 8);
  for (unsigned n = 0; n < 2 * depth + 100; ++n) bench.tick();
  CHECK(bench.atomics.empty());
  bench.reads.block(false);
  bench.run(2'000'000, "all");
  CHECK(bench.dones == depth);
}

TEST_CASE("cycles per atomic") {
  Random random;
  struct Case {
    const char* name;
    unsigned words, stride;
  };
  const Case cases[] = {{"different bus words", 1000, 64}, {"different words, side by side", 1000, 8},
                        {"one word", 1, 8}};
  for (const Case& c : cases) {
    Bench bench(random());
    bench.reads.latency(250, 250);
    bench.memory.latency(100);
    unsigned n = 0;
    std::vector<std::uint64_t> at;
    for (std::uint64_t limit = 0; bench.dones < 600; ++limit) {
      REQUIRE(limit < 300'000);
      while (n < 700 && n - bench.dones < std::min(depth, 300u) && bench.atomics.pending() < 4) {
        bench.atomic(0, base + c.stride * (n % c.words), false, 1, 0, n % 8);
        ++n;
      }
      if (bench.dones == 200 && at.empty()) at.push_back(bench.dut.cycle());
      bench.tick();
    }
    const double cycles = static_cast<double>(bench.dut.cycle() - at.front()) / 400;
    std::printf("%s %s: %.1f cycles\n", ROCI_CONFIG_NAME, c.name, cycles);
    INFO(c.name << ": " << cycles);
    CHECK(cycles <= (ROCI_CONFIG_WIDE ? 30 : 110));
    bench.run(100'000, "rest");
  }
}

TEST_CASE("writes to the very word at full rate do not keep an atomic waiting, nor it them") {
  Random random;
  double alone = 0;
  for (const bool with : {false, true}) {
    Bench bench(random());
    bench.reads.latency(250, 250);
    bench.memory.latency(50);
    std::uint64_t words = 0;
    bench.dut.tick(500);
    const auto start = bench.memory.words();
    for (int cycle = 0; cycle < 20'000; ++cycle) {
      while (bench.req[0]->pending() < 4) bench.write(0, 0, base, 8);
      if (with && bench.atomics.pending() < 2 && bench.held[0] < 100) {
        bench.atomic(0, base, false, 1, 0, 1);
      }
      bench.tick();
    }
    words = bench.memory.words() - start - (with ? bench.dones : 0);
    const double rate = static_cast<double>(words) / 20'000;
    std::printf("%s: %.2f foreign words per cycle, %llu atomics\n", ROCI_CONFIG_NAME, rate,
                static_cast<unsigned long long>(bench.dones));
    if (!with) {
      alone = rate;
    } else {
      CHECK(bench.dones >= 500);
      CHECK(rate >= 0.6 * alone);
    }
    for (int n = 0; n < 5'000; ++n) bench.tick();
  }
}
