// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_counters: random pulses and amounts on all inputs, some of them in every cycle, against plain
// sums; reads at any time are never ahead, never more than two sweeps behind, and exact after that.
// model: configs=any
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <array>
#include <vector>

#include "harness/harness.hpp"
#include "roci_hwif.hpp"

using namespace roci::test;
using roci::hwif::Counter;

namespace {

constexpr unsigned kCounters = 128;
constexpr std::array<Counter, 6> kAmounts = {
    Counter::RX_BYTES, Counter::RX_ROCE_PAYLOAD_BYTES, Counter::TX_BYTES,
    Counter::TX_ROCE_PAYLOAD_BYTES, Counter::DMA_READ_BYTES, Counter::DMA_WRITE_BYTES};
// Two sweeps, a third of the cycles taken by reads.
constexpr unsigned kStale = 2 * kCounters * 4 / 3 + 16;

bool is_amount(unsigned n) {
  for (const Counter c : kAmounts) {
    if (static_cast<unsigned>(c) == n) return true;
  }
  return false;
}

struct Bench {
  Dut<DUT_CLASS> dut;
  Random random;
  std::array<double, kCounters> rate{};
  std::array<std::uint64_t, kCounters> total{};
  std::array<std::vector<std::uint64_t>, kCounters> history;   // totals after each cycle
  bool quiet = false;

  explicit Bench(std::uint64_t salt) : dut(salt), random(salt) {
    dut->read_valid_i = 0;
    clear_inputs();
    dut.reset();
  }
  void clear_inputs() {
    for (unsigned w = 0; w < 4; ++w) dut->pulse_i[w] = 0;
    for (unsigned w = 0; w < 3; ++w) dut->amount_i[w] = 0;
  }
  void tick() {
    clear_inputs();
    if (!quiet) {
      for (unsigned n = 0; n < kCounters; ++n) {
        if (!is_amount(n) && random.chance(rate[n])) {
          dut->pulse_i[n / 32] |= 1u << (n % 32);
          ++total[n];
        }
      }
      roci::sv::Words<84> bits{};
      for (unsigned a = 0; a < kAmounts.size(); ++a) {
        const auto n = static_cast<unsigned>(kAmounts[a]);
        if (!random.chance(rate[n])) continue;
        const std::uint64_t amount = random.chance(0.3) ? 16383 : random.below(16384);
        roci::sv::set_bits(bits.data(), 14 * a, 14, amount);
        total[n] += amount;
      }
      for (unsigned w = 0; w < 3; ++w) dut->amount_i[w] = bits[w];
    }
    dut.tick();
    for (unsigned n = 0; n < kCounters; ++n) history[n].push_back(total[n]);
  }
  std::uint64_t read(unsigned n) {
    dut->read_valid_i = 1;
    dut->read_index_i = static_cast<CData>(n);
    for (int wait = 0; wait < 20; ++wait) {
      tick();
      if (dut->read_done_o) {
        dut->read_valid_i = 0;
        return dut->read_value_o;
      }
    }
    throw Failure("a read was not answered");
  }
};

}  // namespace

TEST_CASE("counters are sums of their pulses") {
  Random random;
  for (int round = 0; round < 4; ++round) {
    Bench bench(random());
    for (auto& rate : bench.rate) {
      static const double rates[] = {1.0, 0.9, 0.5, 0.1, 0.001, 0.0};
      rate = rates[random.below(6)];
    }
    const bool busy_reader = random.chance(0.5);
    for (std::size_t step = 0; step < scaled(1500); ++step) {
      if (!busy_reader && random.chance(0.7)) {
        bench.tick();
        continue;
      }
      const auto n = static_cast<unsigned>(random.below(kCounters));
      const std::uint64_t value = bench.read(n);
      const auto& past = bench.history[n];
      const std::uint64_t oldest = past.size() > kStale ? past[past.size() - kStale] : 0;
      INFO("counter " << n << " step " << step);
      REQUIRE(value <= past.back());
      REQUIRE(value >= oldest);
    }
    bench.quiet = true;
    for (unsigned n = 0; n < kStale; ++n) bench.tick();
    for (unsigned n = 0; n < kCounters; ++n) {
      INFO("counter " << n);
      REQUIRE(bench.read(n) == bench.total[n]);
    }
  }
}

TEST_CASE("reset clears all counters") {
  Random random;
  Bench bench(random());
  bench.rate.fill(1.0);
  for (unsigned n = 0; n < 1000; ++n) bench.tick();
  bench.quiet = true;
  bench.clear_inputs();
  bench.dut.reset();
  bench.total.fill(0);
  for (unsigned n = 0; n < kCounters; ++n) REQUIRE(bench.read(n) == 0);
  for (unsigned n = 0; n < kStale; ++n) bench.tick();
  for (unsigned n = 0; n < kCounters; ++n) REQUIRE(bench.read(n) == 0);
}
