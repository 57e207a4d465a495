// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The host memory model: exact latencies, order, stalls, errors, protocol checks, and random
// traffic against a shadow memory.
#include "host_memory/host_memory.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "wire/test_seed.hpp"

using namespace roci::sim;
using roci::test_seed;

namespace {

// A master that sends what is queued, one request per cycle and channel, and always takes answers
// unless told otherwise.
struct Master {
  explicit Master(HostMemory& memory) : memory(memory) {}

  struct Read {
    uint64_t cycle;
    AxiRead beat;
  };
  struct Response {
    uint64_t cycle;
    AxiWriteResponse response;
  };

  void read(uint64_t addr, unsigned beats, uint16_t id = 0, uint16_t function = 1) {
    ar.push_back({.addr = addr,
                  .id = id,
                  .len = static_cast<uint8_t>(beats - 1),
                  .size = size,
                  .user = function});
  }
  void write(uint64_t addr, std::span<const uint8_t> data, uint16_t id = 0, uint16_t function = 1) {
    const unsigned width = 1u << size;
    const uint64_t base = addr & ~uint64_t{width - 1};
    const size_t beats = (addr - base + data.size() + width - 1) / width;
    aw.push_back({.addr = addr,
                  .id = id,
                  .len = static_cast<uint8_t>(beats - 1),
                  .size = size,
                  .user = function});
    for (size_t b = 0; b < beats; ++b) {
      AxiWrite beat;
      for (unsigned i = 0; i < width; ++i) {
        const uint64_t at = base + b * width + i;
        if (at < addr || at >= addr + data.size()) continue;
        beat.data[i] = data[at - addr];
        beat.strb |= uint64_t{1} << i;
      }
      beat.last = b + 1 == beats;
      w.push_back(beat);
    }
  }

  void cycle(bool take_r = true, bool take_b = true) {
    AxiMaster m;
    if ((m.ar_valid = !ar.empty())) m.ar = ar.front();
    if ((m.aw_valid = !aw.empty())) m.aw = aw.front();
    if ((m.w_valid = !w.empty())) m.w = w.front();
    m.r_ready = take_r;
    m.b_ready = take_b;
    const bool ar_taken = m.ar_valid && memory.ar_ready();
    const bool aw_taken = m.aw_valid && memory.aw_ready();
    const bool w_taken = m.w_valid && memory.w_ready();
    if (const AxiRead* r = memory.r(); r && take_r) reads.push_back({memory.cycle(), *r});
    if (const AxiWriteResponse* b = memory.b(); b && take_b) {
      responses.push_back({memory.cycle(), *b});
    }
    memory.step(m);
    if (ar_taken) ar.pop_front();
    if (aw_taken) aw.pop_front();
    if (w_taken) w.pop_front();
  }
  bool idle() const { return ar.empty() && aw.empty() && w.empty() && !memory.busy(); }
  void drain() {
    for (int i = 0; i < 1'000'000 && !idle(); ++i) cycle();
    REQUIRE(idle());
  }

  HostMemory& memory;
  uint8_t size = 6;
  std::deque<AxiAddress> ar, aw;
  std::deque<AxiWrite> w;
  std::vector<Read> reads;
  std::vector<Response> responses;
};

std::vector<uint8_t> pattern(size_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> out(bytes);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(random());
  return out;
}

struct Bench {
  explicit Bench(HostMemoryConfig config = {}) : memory(config, dma), master(memory) {
    ram = dma.allocate(1, 65536);
    base = reinterpret_cast<uint64_t>(ram.data());
    master.size = config.data_bytes == 64 ? 6 : 3;
    const auto bytes = pattern(ram.size(), 99);
    std::ranges::copy(bytes, ram.begin());
  }
  FlatDma dma;
  std::span<uint8_t> ram;
  uint64_t base;
  HostMemory memory;
  Master master;
};

}  // namespace

TEST_CASE("read latency is exact, beats follow each cycle") {
  Bench bench;
  for (int i = 0; i < 7; ++i) bench.master.cycle();
  bench.master.read(bench.base + 128, 8);   // accepted in cycle 7
  bench.master.read(bench.base + 1024, 2);  // in cycle 8
  bench.master.drain();
  const auto& reads = bench.master.reads;
  REQUIRE(reads.size() == 10);
  for (size_t i = 0; i < 10; ++i) {
    CHECK(reads[i].cycle == 257 + i);
    const size_t from = i < 8 ? 128 + 64 * i : 1024 + 64 * (i - 8);
    CHECK(
        std::equal(reads[i].beat.data.begin(), reads[i].beat.data.end(), bench.ram.data() + from));
    CHECK(reads[i].beat.last == (i == 7 || i == 9));
    CHECK(reads[i].beat.resp == AxiResp::okay);
  }
}

TEST_CASE("one 64-byte read per cycle is sustained") {
  Bench bench;
  for (unsigned i = 0; i < 1000; ++i) bench.master.read(bench.base + i % 1024 * 64, 1);
  bench.master.drain();
  REQUIRE(bench.master.reads.size() == 1000);
  CHECK(bench.master.reads.back().cycle == 250 + 999);
  CHECK(bench.memory.counters().reads == 1000);
  CHECK(bench.memory.counters().most_reads <= 250);
}

TEST_CASE("write response is exact; data is in memory when B is seen, not before") {
  Bench bench;
  const auto data = pattern(200, 1);
  bench.master.write(bench.base + 300, data);  // 4 beats, accepted in cycles 0 … 3
  while (bench.memory.b() == nullptr) {
    CHECK(std::memcmp(bench.ram.data() + 300, data.data(), data.size()) != 0);
    bench.master.cycle();
  }
  CHECK(bench.memory.cycle() == 103);
  CHECK(std::memcmp(bench.ram.data() + 300, data.data(), data.size()) == 0);
  const auto old = pattern(bench.ram.size(), 99);
  CHECK(std::equal(old.begin(), old.begin() + 300, bench.ram.begin()));
  CHECK(std::equal(old.begin() + 500, old.end(), bench.ram.begin() + 500));
  bench.master.drain();
}

TEST_CASE("one 64-byte write per cycle is sustained, W may come before AW") {
  Bench bench;
  const auto data = pattern(64, 2);
  SECTION("together") {
    for (unsigned i = 0; i < 500; ++i) bench.master.write(bench.base + i * 64, data);
    bench.master.drain();
    REQUIRE(bench.master.responses.size() == 500);
    CHECK(bench.master.responses.back().cycle == 100 + 499);
  }
  SECTION("data first") {
    bench.master.write(bench.base, data);
    const AxiAddress address = bench.master.aw.front();
    bench.master.aw.clear();
    for (int i = 0; i < 10; ++i) bench.master.cycle();
    CHECK(bench.master.w.empty());
    bench.master.aw.push_back(address);  // accepted in cycle 10
    bench.master.drain();
    REQUIRE(bench.master.responses.size() == 1);
    CHECK(bench.master.responses[0].cycle == 110);
  }
}

TEST_CASE("reads sample when their latency is over") {
  // A read of latency 250 issued with a write of latency 100 sees it; issued 200 cycles before,
  // not.
  Bench bench;
  const std::vector<uint8_t> data(64, 0x5a);
  bench.master.read(bench.base, 1);
  for (int i = 0; i < 200; ++i) bench.master.cycle();
  bench.master.write(bench.base, data);
  bench.master.read(bench.base, 1);
  bench.master.drain();
  REQUIRE(bench.master.reads.size() == 2);
  CHECK(bench.master.reads[0].beat.data[0] == pattern(1, 99)[0]);
  CHECK(bench.master.reads[1].beat.data[0] == 0x5a);
}

TEST_CASE("a write and a read of the same cycle: the read sees it") {
  Bench bench;
  bench.master.read(bench.base, 1);
  for (int i = 0; i < 150; ++i) bench.master.cycle();
  bench.master.write(bench.base, std::vector<uint8_t>(64, 0x5a));
  bench.master.drain();
  CHECK(bench.master.responses[0].cycle == 250);
  CHECK(bench.master.reads[0].cycle == 250);
  CHECK(bench.master.reads[0].beat.data[0] == 0x5a);
}

TEST_CASE("what a failing target leaves behind is not returned") {
  struct Leaky : DmaTarget {
    bool read(uint16_t, uint64_t, std::span<uint8_t> out) override {
      std::ranges::fill(out, 0x11);
      return false;
    }
    bool write(uint16_t, uint64_t, std::span<const uint8_t>) override { return false; }
  } target;
  HostMemory memory({}, target);
  Master master(memory);
  master.read(0x1000, 1);
  master.drain();
  CHECK(master.reads[0].beat.resp == AxiResp::decerr);
  CHECK(std::ranges::count(master.reads[0].beat.data, 0xee) == 64);
}

TEST_CASE("answers wait for ready and stay") {
  Bench bench;
  bench.master.read(bench.base, 2);
  bench.master.write(bench.base + 4096, pattern(64, 3));
  for (int i = 0; i < 400; ++i) bench.master.cycle(false, false);
  REQUIRE(bench.memory.r() != nullptr);
  REQUIRE(bench.memory.b() != nullptr);
  const AxiRead before = *bench.memory.r();
  bench.master.cycle(false, false);
  CHECK(bench.memory.r()->data == before.data);
  CHECK(bench.master.reads.empty());
  bench.master.drain();
  CHECK(bench.master.reads.size() == 2);
  CHECK(bench.master.responses.size() == 1);
}

TEST_CASE("without reordering answers come in request order in spite of jitter") {
  HostMemoryConfig config;
  config.read_jitter = 200;
  config.write_jitter = 200;
  Bench bench(config);
  for (uint16_t i = 0; i < 200; ++i) {
    bench.master.read(bench.base + i * 64, 1, i % 7);
    bench.master.write(bench.base + 32768 + i * 64, pattern(64, i), i % 5);
  }
  bench.master.drain();
  for (uint16_t i = 0; i < 200; ++i) {
    CHECK(bench.master.reads[i].beat.id == i % 7);
    CHECK(bench.master.responses[i].response.id == i % 5);
  }
}

TEST_CASE("reordering: across IDs, never within one; interleaving only if asked") {
  const bool interleave = GENERATE(false, true);
  HostMemoryConfig config;
  config.read_jitter = 300;
  config.write_jitter = 300;
  config.reorder = true;
  config.interleave = interleave ? 0.3 : 0;
  config.seed = test_seed(4);
  INFO("ROCI_SEED=" << config.seed);
  Bench bench(config);
  constexpr unsigned kBursts = 300;
  for (unsigned i = 0; i < kBursts; ++i) {
    bench.master.read(bench.base + i % 200 * 256, 1 + i % 4, static_cast<uint16_t>(i % 6));
    bench.master.write(bench.base + i % 200 * 64, pattern(64, i), static_cast<uint16_t>(i % 3));
  }
  bench.master.drain();
  // Per ID the beats are those of its bursts, in order.
  std::map<uint16_t, std::deque<std::pair<uint64_t, bool>>> expected;
  for (unsigned i = 0; i < kBursts; ++i) {
    for (unsigned b = 0; b <= i % 4; ++b) {
      expected[static_cast<uint16_t>(i % 6)].emplace_back(i % 200 * 256 + 64 * b, b == i % 4);
    }
  }
  const auto old = pattern(bench.ram.size(), 99);
  unsigned id_changes_inside = 0, overtakes = 0;
  const AxiRead* previous = nullptr;
  for (const Master::Read& read : bench.master.reads) {
    auto& queue = expected[read.beat.id];
    REQUIRE_FALSE(queue.empty());
    CHECK(read.beat.last == queue.front().second);
    if (previous && !previous->last && previous->id != read.beat.id) ++id_changes_inside;
    if (previous && previous->last && read.beat.id != (previous->id + 1) % 6) ++overtakes;
    if (queue.front().first >= 200 * 64) {  // not written meanwhile
      CHECK(std::equal(read.beat.data.begin(), read.beat.data.end(),
                       old.begin() + static_cast<std::ptrdiff_t>(queue.front().first)));
    }
    queue.pop_front();
    previous = &read.beat;
  }
  CHECK(overtakes > 50);
  CHECK((id_changes_inside > 20) == interleave);
  if (!interleave) CHECK(id_changes_inside == 0);
  REQUIRE(bench.master.responses.size() == kBursts);
  unsigned response_overtakes = 0;
  for (unsigned i = 1; i < kBursts; ++i) {
    const auto& r = bench.master.responses;
    response_overtakes += r[i].response.id != (r[i - 1].response.id + 1) % 3;
  }
  CHECK(response_overtakes > 50);
}

TEST_CASE("limits hold requests back") {
  HostMemoryConfig config;
  config.max_reads = 4;
  config.max_writes = 3;
  Bench bench(config);
  for (unsigned i = 0; i < 20; ++i) {
    bench.master.read(bench.base + i * 64, 1);
    bench.master.write(bench.base + 8192 + i * 64, pattern(64, i));
  }
  bench.master.drain();
  CHECK(bench.memory.counters().most_reads == 4);
  CHECK(bench.memory.counters().most_writes == 3);
  CHECK(bench.master.reads.back().cycle >= 5 * 250);
  CHECK(bench.master.responses.back().cycle >= 6 * 100);
}

TEST_CASE("a slow range: reads that touch it come later, by exactly so much") {
  HostMemoryConfig config;
  config.data_bytes = GENERATE(8u, 64u);
  const unsigned width = config.data_bytes;
  const auto took = [&](uint64_t offset) {          // cycles of a read of one beat
    Bench bench(config);
    bench.memory.add_slow_range(bench.base + 1024, 1, 700);
    bench.memory.add_slow_range(bench.base + 1024, width + 1, 300);
    bench.master.read(bench.base + offset, 1);
    bench.master.drain();
    return bench.master.reads.at(0).cycle;
  };
  const uint64_t plain = took(0);
  CHECK(took(1024 - width) == plain);
  CHECK(took(1024) == plain + 700);                 // the slower of both
  CHECK(took(1024 + width) == plain + 300);
  CHECK(took(1024 + 2 * width) == plain);
  Bench bench(config);
  CHECK_THROWS_AS(bench.memory.add_slow_range(0, 0, 1), std::invalid_argument);
}

TEST_CASE("errors") {
  HostMemoryConfig config;
  config.data_bytes = GENERATE(8u, 64u);
  Bench bench(config);
  const unsigned width = config.data_bytes;
  const auto old = pattern(bench.ram.size(), 99);

  SECTION("outside the target: DECERR, no data, nothing written") {
    bench.master.read(bench.base, 1, 0, 2);  // another function
    bench.master.read(bench.base + bench.ram.size(), 1);
    bench.master.write(bench.base, pattern(width, 1), 0, 2);
    bench.master.drain();
    for (const auto& read : bench.master.reads) {
      CHECK(read.beat.resp == AxiResp::decerr);
      CHECK(read.beat.data[0] == 0xee);
      CHECK(read.beat.last);
    }
    CHECK(bench.master.responses[0].response.resp == AxiResp::decerr);
    CHECK(std::ranges::equal(bench.ram, old));
  }
  SECTION("address range: SLVERR for bursts that touch it") {
    bench.memory.add_error_range(bench.base + 1024, 1, true, true);
    bench.master.read(bench.base + 1024 - width, 1);
    bench.master.read(bench.base + 1024 - width, 2);
    bench.master.read(bench.base + 1024 + width, 1);
    bench.master.write(bench.base + 1024, pattern(width, 1));
    bench.master.write(bench.base + 1024 + width, pattern(width, 2));
    bench.master.drain();
    const auto& reads = bench.master.reads;
    REQUIRE(reads.size() == 4);
    CHECK(reads[0].beat.resp == AxiResp::okay);
    CHECK(reads[1].beat.resp == AxiResp::slverr);
    CHECK(reads[2].beat.resp == AxiResp::slverr);
    CHECK(reads[3].beat.resp == AxiResp::okay);
    CHECK(bench.master.responses[0].response.resp == AxiResp::slverr);
    CHECK(bench.master.responses[1].response.resp == AxiResp::okay);
    CHECK(std::equal(old.begin(), old.begin() + 1024 + width, bench.ram.begin()));
    CHECK(bench.memory.counters().read_errors == 1);
    CHECK(bench.memory.counters().write_errors == 1);
    bench.memory.clear_error_ranges();
    bench.master.read(bench.base + 1024, 1);
    bench.master.drain();
    CHECK(bench.master.reads.back().beat.resp == AxiResp::okay);
  }
}

TEST_CASE("random errors at the wanted rate") {
  HostMemoryConfig config;
  config.read_error = 0.1;
  config.write_error = 0.2;
  config.seed = test_seed(5);
  INFO("ROCI_SEED=" << config.seed);
  Bench bench(config);
  for (unsigned i = 0; i < 2000; ++i) {
    bench.master.read(bench.base + i % 100 * 64, 1);
    bench.master.write(bench.base + i % 100 * 64, pattern(64, i));
  }
  bench.master.drain();
  CHECK(bench.memory.counters().read_errors > 130);
  CHECK(bench.memory.counters().read_errors < 270);
  CHECK(bench.memory.counters().write_errors > 310);
  CHECK(bench.memory.counters().write_errors < 490);
}

TEST_CASE("write visibility") {
  HostMemoryConfig config;
  config.write_latency = 200;
  const std::vector<uint8_t> data(64, 0x77);
  SECTION("immediate") {
    config.visibility = WriteVisibility::immediate;
    Bench bench(config);
    bench.master.write(bench.base, data);
    bench.master.cycle();
    CHECK(bench.ram[0] == 0x77);
    CHECK(bench.memory.b() == nullptr);
    bench.master.drain();
    CHECK(bench.master.responses[0].cycle == 200);
  }
  SECTION("random: order of stores is not that of requests, but always before B") {
    config.visibility = WriteVisibility::random;
    config.seed = test_seed(6);
    INFO("ROCI_SEED=" << config.seed);
    Bench bench(config);
    std::vector<uint64_t> order;
    bench.memory.set_observer([&](const MemoryAccess& a) { order.push_back(a.addr); });
    for (unsigned i = 0; i < 100; ++i) bench.master.write(bench.base + i * 64, data);
    bool data_before_response = true;
    while (!bench.master.idle()) {
      bench.master.cycle();
      const size_t answered = bench.master.responses.size() + (bench.memory.b() ? 1 : 0);
      for (size_t i = 0; i < answered; ++i) data_before_response &= bench.ram[i * 64] == 0x77;
    }
    CHECK(data_before_response);
    CHECK(order.size() == 100);
    CHECK_FALSE(std::ranges::is_sorted(order));
  }
  SECTION("random: overlapping writes keep their order") {
    config.visibility = WriteVisibility::random;
    config.reorder = true;
    Bench bench(config);
    for (uint8_t i = 0; i < 100; ++i) {
      bench.master.write(bench.base, std::vector<uint8_t>(64, i), i % 4);
    }
    bench.master.drain();
    CHECK(bench.ram[0] == 99);
    CHECK(bench.ram[63] == 99);
  }
}

TEST_CASE("protocol errors") {
  Bench bench;
  AxiMaster m;
  auto step = [&] { bench.memory.step(m); };
  const AxiAddress good{.addr = bench.base, .len = 1};

  SECTION("4 KB") {
    m.ar_valid = true;
    m.ar = {.addr = bench.base + 4096 - 64, .len = 0};
    CHECK_NOTHROW(step());
    m.ar.len = 1;
    CHECK_THROWS_WITH(step(), Catch::Contains("AR") && Catch::Contains("4 KB"));
    m.ar_valid = false;
    m.aw_valid = true;
    m.aw = {.addr = bench.base + 4096 - 1, .len = 1};
    CHECK_THROWS_WITH(step(), Catch::Contains("AW") && Catch::Contains("4 KB"));
  }
  SECTION("burst type and size") {
    m.aw_valid = true;
    m.aw = good;
    m.aw.burst = 0;
    CHECK_THROWS_WITH(step(), Catch::Contains("INCR"));
    m.aw = good;
    m.aw.size = 5;
    CHECK_THROWS_WITH(step(), Catch::Contains("full width"));
  }
  SECTION("WLAST too early, too late") {
    m.aw_valid = true;
    m.aw = good;
    m.w_valid = true;
    m.w.strb = ~uint64_t{0};
    m.w.last = true;
    CHECK_THROWS_WITH(step(), Catch::Contains("WLAST in beat 0"));
    Bench other;
    m.w.last = false;
    other.memory.step(m);
    m.aw_valid = false;
    CHECK_THROWS_WITH(other.memory.step(m), Catch::Contains("no WLAST in beat 1"));
  }
  SECTION("strobes outside") {
    m.aw_valid = m.w_valid = true;
    m.aw = {.addr = bench.base + 8, .len = 0};
    m.w.last = true;
    m.w.strb = 0x180;
    CHECK_THROWS_WITH(step(), Catch::Contains("below the address"));
    HostMemoryConfig narrow_config;
    narrow_config.data_bytes = 8;
    Bench narrow(narrow_config);
    m.aw = {.addr = narrow.base, .len = 0, .size = 3};
    m.w.strb = 0x1ff;
    CHECK_THROWS_WITH(narrow.memory.step(m), Catch::Contains("beyond the width"));
  }
  SECTION("stable while stalled") {
    HostMemoryConfig config;
    config.stall_ar = config.stall_aw = config.stall_w = 1;
    Bench stalled(config);
    const int channel = GENERATE(0, 1, 2);
    const bool drop = GENERATE(false, true);
    m.ar_valid = channel == 0;
    m.aw_valid = channel == 1;
    m.w_valid = channel == 2;
    m.ar = m.aw = good;
    m.w.strb = 1;
    stalled.memory.step(m);
    CHECK_NOTHROW(stalled.memory.step(m));
    m.ar.addr += 64;
    m.aw.id = 3;
    m.w.data[9] = 1;
    if (drop) m.ar_valid = m.aw_valid = m.w_valid = false;
    CHECK_THROWS_WITH(stalled.memory.step(m),
                      Catch::Contains(drop ? "valid dropped" : "payload changed") &&
                          Catch::Contains(std::vector{"AR", "AW", "W"}[channel]));
  }
  SECTION("configuration") {
    FlatDma dma;
    CHECK_THROWS_AS(HostMemory({.data_bytes = 32}, dma), std::invalid_argument);
    CHECK_THROWS_AS(HostMemory({.max_reads = 0}, dma), std::invalid_argument);
  }
}

namespace {

struct Trace {
  std::vector<std::tuple<uint64_t, uint16_t, bool, uint8_t>> reads;
  std::vector<std::pair<uint64_t, uint16_t>> responses;
  bool operator==(const Trace&) const = default;
};

HostMemoryConfig wild(uint64_t seed) {
  HostMemoryConfig config;
  config.read_latency = 40;
  config.read_jitter = 60;
  config.write_latency = 20;
  config.write_jitter = 50;
  config.visibility = WriteVisibility::random;
  config.reorder = true;
  config.interleave = 0.2;
  config.stall_ar = config.stall_aw = config.stall_w = 0.3;
  config.stall_r = config.stall_b = 0.3;
  config.seed = seed;
  return config;
}

Trace run(uint64_t seed, uint64_t idle_cycles, bool skip) {
  Bench bench(wild(seed));
  for (unsigned round = 0; round < 5; ++round) {
    for (unsigned i = 0; i < 40; ++i) {
      bench.master.read(bench.base + i * 512, 1 + i % 8, static_cast<uint16_t>(i % 5));
      bench.master.write(bench.base + 32768 + i * 128, pattern(100, i),
                         static_cast<uint16_t>(i % 2));
    }
    bench.master.drain();
    const uint64_t target = bench.memory.cycle() + idle_cycles;
    if (skip) {
      bench.memory.skip_to(target);
    } else {
      while (bench.memory.cycle() < target) bench.master.cycle();
    }
  }
  Trace trace;
  for (const auto& r : bench.master.reads) {
    trace.reads.emplace_back(r.cycle, r.beat.id, r.beat.last, r.beat.data[0]);
  }
  for (const auto& b : bench.master.responses) trace.responses.emplace_back(b.cycle, b.response.id);
  return trace;
}

}  // namespace

TEST_CASE("the seed decides everything; skipping idle time changes nothing") {
  const Trace first = run(1, 333, false);
  CHECK(first == run(1, 333, false));
  CHECK(first == run(1, 333, true));
  CHECK(first != run(2, 333, false));
}

TEST_CASE("waiting time can be skipped") {
  Bench bench;
  CHECK(bench.memory.next_event_cycle() == ~uint64_t{0});
  bench.master.read(bench.base, 1);
  bench.master.cycle();
  CHECK(bench.memory.next_event_cycle() == 249);
  CHECK_THROWS_AS(bench.memory.skip_to(250), std::logic_error);
  bench.memory.skip_to(249);
  bench.master.drain();
  CHECK(bench.master.reads[0].cycle == 250);
}

TEST_CASE("reset forgets what is outstanding") {
  Bench bench;
  const auto old = pattern(bench.ram.size(), 99);
  bench.master.read(bench.base, 4);
  bench.master.write(bench.base, pattern(64, 1));
  for (int i = 0; i < 10; ++i) bench.master.cycle();
  bench.memory.reset();
  CHECK_FALSE(bench.memory.busy());
  for (int i = 0; i < 500; ++i) bench.master.cycle();
  CHECK(bench.master.reads.empty());
  CHECK(bench.master.responses.empty());
  CHECK(std::ranges::equal(bench.ram, old));
}

TEST_CASE("random traffic against a shadow memory") {
  const unsigned width = GENERATE(8u, 64u);
  const auto visibility =
      GENERATE(WriteVisibility::with_response, WriteVisibility::immediate, WriteVisibility::random);
  const uint64_t seed = test_seed(7);
  INFO("ROCI_SEED=" << seed << ", width " << width);
  HostMemoryConfig config = wild(seed);
  config.data_bytes = width;
  config.visibility = visibility;
  Bench bench(config);
  std::mt19937_64 random(seed);

  // 64 slots of 1 KB. A slot is written or read by one burst at a time, so its content is known.
  constexpr size_t kSlot = 1024;
  std::vector<uint8_t> shadow(bench.ram.begin(), bench.ram.end());
  std::set<size_t> in_use;
  struct Pending {
    size_t slot;
    uint64_t addr;
    unsigned beats;
    std::vector<uint8_t> got;
  };
  std::map<uint16_t, std::deque<Pending>> reads;
  std::map<uint16_t, std::deque<size_t>> writes;
  size_t seen_reads = 0, seen_responses = 0;
  unsigned checked = 0;
  for (int cycle = 0; cycle < 60'000; ++cycle) {
    if (cycle < 50'000 && random() % 8 == 0 && in_use.size() < 50) {
      size_t slot = random() % 64;
      while (in_use.contains(slot)) slot = (slot + 1) % 64;
      in_use.insert(slot);
      const auto id = static_cast<uint16_t>(random() % 4);
      const size_t offset = random() % 500;
      const size_t bytes = 1 + random() % 500;
      if (random() % 2 == 0) {
        const auto data = pattern(bytes, random());
        bench.master.write(bench.base + slot * kSlot + offset, data, id);
        std::ranges::copy(data,
                          shadow.begin() + static_cast<std::ptrdiff_t>(slot * kSlot + offset));
        writes[id].push_back(slot);
      } else {
        const uint64_t addr = slot * kSlot + offset;
        const auto beats = static_cast<unsigned>((addr % width + bytes + width - 1) / width);
        bench.master.read(bench.base + addr, beats, id);
        reads[id].push_back({slot, addr, beats, {}});
      }
    }
    bench.master.cycle(random() % 4 != 0, random() % 4 != 0);
    for (; seen_responses < bench.master.responses.size(); ++seen_responses) {
      auto& queue = writes[bench.master.responses[seen_responses].response.id];
      REQUIRE_FALSE(queue.empty());
      const size_t slot = queue.front();
      CHECK(std::memcmp(bench.ram.data() + slot * kSlot, shadow.data() + slot * kSlot, kSlot) == 0);
      in_use.erase(slot);
      queue.pop_front();
      ++checked;
    }
    for (; seen_reads < bench.master.reads.size(); ++seen_reads) {
      const AxiRead& beat = bench.master.reads[seen_reads].beat;
      auto& queue = reads[beat.id];
      REQUIRE_FALSE(queue.empty());
      Pending& pending = queue.front();
      pending.got.insert(pending.got.end(), beat.data.begin(), beat.data.begin() + width);
      REQUIRE(beat.last == (pending.got.size() == pending.beats * width));
      if (!beat.last) continue;
      const size_t skipped = pending.addr % width;
      CHECK(std::equal(pending.got.begin() + static_cast<std::ptrdiff_t>(skipped),
                       pending.got.end(),
                       shadow.begin() + static_cast<std::ptrdiff_t>(pending.addr)));
      in_use.erase(pending.slot);
      queue.pop_front();
      ++checked;
    }
  }
  CHECK(in_use.empty());
  CHECK(checked > 1000);
  CHECK(std::ranges::equal(bench.ram, shadow));
}
