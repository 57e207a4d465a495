// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// FlatDma, the order of stores, and the guard that finds accesses nobody allowed.
#include "host_memory/dma_target.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "host_memory/access_log.hpp"
#include "host_memory/host_memory.hpp"

using namespace roci::sim;

TEST_CASE("FlatDma: ranges per function") {
  FlatDma dma;
  std::vector<uint8_t> memory(100, 1), other(100, 2);
  dma.map(1, 0x1000, memory);
  dma.map(2, 0x1000, other);
  std::vector<uint8_t> out(4);
  CHECK(dma.read(1, 0x1000, out));
  CHECK(out == std::vector<uint8_t>(4, 1));
  CHECK(dma.read(2, 0x1060, out));
  CHECK(out == std::vector<uint8_t>(4, 2));
  CHECK_FALSE(dma.read(3, 0x1000, out));
  CHECK_FALSE(dma.read(1, 0xfff, out));
  CHECK_FALSE(dma.read(1, 0x1000 + 97, out));
  CHECK(dma.read(1, 0x1000 + 96, out));

  const std::vector<uint8_t> data{9, 8, 7, 6};
  CHECK_FALSE(dma.write(1, 0x1000 + 97, data));
  CHECK(std::ranges::count(memory, 1) == 100);  // nothing of a failed write arrives
  CHECK(dma.write(1, 0x1000 + 96, data));
  CHECK(std::equal(data.begin(), data.end(), memory.begin() + 96));
  CHECK(std::ranges::count(other, 2) == 100);

  CHECK(dma.unmap(1, 0x1000));
  CHECK_FALSE(dma.unmap(1, 0x1000));
  CHECK_FALSE(dma.read(1, 0x1000, out));
  CHECK(dma.read(2, 0x1000, out));
}

TEST_CASE("FlatDma: adjacent ranges are one, overlaps are refused") {
  FlatDma dma;
  std::vector<uint8_t> low(16, 1), high(16, 2);
  dma.map(1, 0x100, low);
  dma.map(1, 0x110, high);
  std::vector<uint8_t> out(32);
  CHECK(dma.read(1, 0x100, out));
  CHECK(out[15] == 1);
  CHECK(out[16] == 2);
  const std::vector<uint8_t> data(20, 7);
  CHECK(dma.write(1, 0x106, data));
  CHECK(low[5] == 1);
  CHECK(low[6] == 7);
  CHECK(high[9] == 7);
  CHECK(high[10] == 2);
  std::vector<uint8_t> another(17);
  CHECK_THROWS_AS(dma.map(1, 0xff, another), std::invalid_argument);
  CHECK_THROWS_AS(dma.map(1, 0x108, another), std::invalid_argument);
  CHECK_THROWS_AS(dma.map(1, 0x11f, another), std::invalid_argument);
  CHECK_NOTHROW(dma.map(1, 0x120, another));
  CHECK_NOTHROW(dma.map(1, 0xef, another));
  CHECK_THROWS_AS(dma.map(1, ~uint64_t{0} - 3, another), std::invalid_argument);
  CHECK_THROWS_AS(dma.map(1, 0x5000, {}), std::invalid_argument);
  CHECK_FALSE(dma.read(1, ~uint64_t{0}, out));
}

TEST_CASE("FlatDma: allocated memory is page-aligned, zeroed and mapped at its address") {
  FlatDma dma;
  const auto memory = dma.allocate(4, 5000);
  const auto addr = reinterpret_cast<uint64_t>(memory.data());
  CHECK(memory.size() == 8192);
  CHECK(addr % 4096 == 0);
  CHECK(std::ranges::count(memory, 0) == 8192);
  const std::vector<uint8_t> data{1, 2, 3};
  CHECK(dma.write(4, addr + 8189, data));
  CHECK(memory[8191] == 3);
  CHECK_FALSE(dma.write(4, addr + 8190, data));
}

TEST_CASE("who sees the last byte sees the others") {
  // A CQE of 32 bytes with its phase in the last byte, polled by another thread.
  FlatDma dma;
  const auto ring = dma.allocate(1, 32);
  const auto addr = reinterpret_cast<uint64_t>(ring.data());
  constexpr unsigned kRounds = 20'000;
  std::atomic<unsigned> taken{0};
  std::atomic<bool> torn{false};
  std::thread reader([&] {
    for (unsigned i = 1; i <= kRounds; ++i) {
      const auto phase = static_cast<uint8_t>(i);
      std::atomic_ref<uint8_t> last(ring[31]);
      while (last.load(std::memory_order_acquire) != phase) std::this_thread::yield();
      for (size_t b = 0; b < 31; ++b) {
        if (ring[b] != phase) torn = true;
      }
      taken.store(i, std::memory_order_release);
    }
  });
  for (unsigned i = 1; i <= kRounds; ++i) {
    dma.write(1, addr, std::vector<uint8_t>(32, static_cast<uint8_t>(i)));
    while (taken.load(std::memory_order_acquire) != i) std::this_thread::yield();
  }
  reader.join();
  CHECK_FALSE(torn);
}

TEST_CASE("RegionGuard finds what nobody allowed") {
  RegionGuard guard;
  const std::vector<uint8_t> data(100);
  auto access = [&](uint64_t addr, size_t bytes, bool write = true, uint16_t function = 1) {
    guard.check({.cycle = 5,
                 .write = write,
                 .function = function,
                 .addr = addr,
                 .data = std::span(data).first(bytes),
                 .ok = true});
    return guard.violation_count();
  };
  const size_t first = guard.allow(1, 1000, 50);
  guard.allow(1, 1040, 60);
  guard.allow(1, 2000, 50, false);
  CHECK(access(1000, 100) == 0);  // two ranges together
  CHECK(access(1099, 1) == 0);
  CHECK(access(1099, 2) == 1);
  CHECK(access(999, 1) == 2);
  CHECK(access(1000, 1, true, 2) == 3);  // another function
  CHECK(access(2000, 1) == 4);           // read only
  CHECK(access(5000, 1, false) == 4);    // reads are not judged
  guard.revoke(first);
  CHECK(access(1000, 1) == 5);
  CHECK(access(1040, 60) == 5);
  REQUIRE(guard.violations().size() == 5);
  CHECK(guard.violations()[0].find("0x44c") != std::string::npos);  // 1100: where it leaves

  RegionGuard strict(true);
  strict.allow(1, 2000, 50, false);
  strict.check({.write = false, .function = 1, .addr = 2040, .data = std::span(data).first(10)});
  CHECK(strict.violation_count() == 0);
  strict.check({.write = false, .function = 1, .addr = 2041, .data = std::span(data).first(10)});
  CHECK(strict.violation_count() == 1);
}

TEST_CASE("the guard sees exactly the enabled bytes of a burst") {
  FlatDma dma;
  const auto memory = dma.allocate(1, 4096);
  const auto base = reinterpret_cast<uint64_t>(memory.data());
  HostMemory host({}, dma);
  RegionGuard guard;
  guard.allow(1, base + 10, 20);
  guard.allow(1, base + 60, 10);
  host.set_observer(guard.observer());
  auto write = [&](uint64_t strb0, uint64_t strb1) {
    AxiMaster m;
    m.aw_valid = m.w_valid = true;
    m.aw = {.addr = base, .len = 1, .user = 1};
    m.w.strb = strb0;
    host.step(m);
    m.aw_valid = false;
    m.w.strb = strb1;
    m.w.last = true;
    host.step(m);
    while (host.busy()) host.step({.b_ready = true});
    return guard.violation_count();
  };
  const uint64_t allowed = 0x3ffffc00ull | 0xfull << 60;  // bytes 10 … 29 and 60 … 63
  CHECK(write(allowed, 0x3f) == 0);                       // and 64 … 69
  CHECK(write(allowed | 1ull << 30, 0x3f) == 1);
  CHECK(write(allowed, 0x7f) == 2);
  CHECK(write(0, 0) == 2);
}
