// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_core: a program of word, half and byte accesses, multiplications and register accesses with
// random answer times must leave what the same program in C++ leaves, with the core's clock equal
// to the bus clock and at half of it; wait states are counted; a trap is told and ends with a hold.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <cstdint>
#include <vector>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"
#include "rv32.hpp"

using namespace roci::test;
namespace cpu = roci::sv::cpu_pkg;

namespace {

struct Bench {
  Dut<DUT_CLASS> dut;
  Random random;
  std::vector<std::uint64_t> ram;
  std::vector<std::pair<unsigned, std::uint32_t>> written;   // register writes
  std::vector<std::uint32_t> given;                          // answers to register reads
  unsigned max_delay = 0;

  struct World : Agent {
    Bench& b;
    std::uint64_t rdata = 0;
    unsigned left = 0;
    bool active = false, done = false;
    std::uint32_t answer = 0;
    explicit World(Bench& bench) : b(bench) {}
    void sample() override {
      auto& dut = b.dut;
      if (dut->ram_read_o) rdata = b.ram.at(dut->ram_raddr_o);
      for (unsigned n = 0; n < 8; ++n) {
        if (!((dut->ram_write_o >> n) & 1)) continue;
        const std::uint64_t mask = std::uint64_t{0xff} << (8 * n);
        auto& word = b.ram.at(dut->ram_waddr_o);
        word = (word & ~mask) | (dut->ram_wdata_o & mask);
      }
      const auto request = cpu::reg_req_t::unpack(dut->reg_o);
      if (done) {
        done = false;
        active = false;
        return;
      }
      if (!request.valid) {
        REQUIRE_FALSE(active);                       // held until done
        return;
      }
      if (!active) {
        active = true;
        left = static_cast<unsigned>(b.random.below(b.max_delay + 1));
      }
      if (left-- != 0) return;
      done = true;
      answer = static_cast<std::uint32_t>(b.random());
      if (request.write) b.written.push_back({request.word, request.wdata});
      else b.given.push_back(answer);
    }
    void drive() override {
      b.dut->ram_rdata_i = rdata;
      b.dut->reg_done_i = done;
      b.dut->reg_rdata_i = done ? answer : static_cast<std::uint32_t>(b.random());
    }
  } world;

  explicit Bench(std::uint64_t salt) : dut(salt), random(salt), ram(8192), world(*this) {
    // rising edges of the core's clock coincide with those of the bus
    dut.add_clock(dut->cpu_clk_i, ROCI_CONFIG_WIDE ? 4000 : 8000, 4000);
    dut->hold_i = 1;
    dut.reset(8);
    dut.attach(world);
    dut.tick(4);
  }
  void load(const std::vector<rv32::Word>& program) {
    for (std::size_t n = 0; n < program.size(); ++n) {
      auto& word = ram.at(n / 2);
      const unsigned shift = n % 2 * 32;
      word = (word & ~(std::uint64_t{0xffffffff} << shift)) | std::uint64_t{program[n]} << shift;
    }
  }
};

}  // namespace

TEST_CASE("the core computes, with RAM and registers") {
  using namespace rv32;
  Random random;
  for (int round = 0; round < 6; ++round) {
    Bench bench(random());
    bench.max_delay = static_cast<unsigned>(random.below(6));
    constexpr unsigned kLoops = 40;
    // x1 registers, x2 data pointer, x3 counter, x4 mixed value, x5..x8 scratch
    const std::vector<Word> program = {
        lui(1, 0x80000), lui(2, 1), addi(3, 0, kLoops), addi(4, 0, 77),
        // loop: (index 4)
        lw(5, 1, 0x10),                   // register 4
        xor_(4, 4, 5), sw(4, 2, 0), sb(5, 2, 5), sh(4, 2, 6), lbu(6, 2, 1), lhu(7, 2, 6),
        lw(8, 2, 4), add(4, 4, 6), slli(6, 7, 3), add(4, 4, 6), mul(4, 4, 8), srli(6, 4, 7),
        xor_(4, 4, 6), sw(4, 1, 0x24),    // register 9
        addi(2, 2, 12), addi(3, 3, -1), bne(3, 0, -4 * 17),
        sw(3, 1, 0x7c), jump_here()};
    bench.load(program);
    for (unsigned n = 512; n < 8192; ++n) bench.ram[n] = random();
    std::vector<std::uint8_t> memory(65536);
    for (unsigned n = 0; n < 65536; ++n) {
      memory[n] = static_cast<std::uint8_t>(bench.ram[n / 8] >> (8 * (n % 8)));
    }
    bench.dut->hold_i = 0;
    bench.dut.run_until([&] { return bench.written.size() == kLoops + 1; }, "program", 60000);
    // the same in C++
    REQUIRE(bench.given.size() == kLoops);
    std::uint32_t pointer = 4096;
    std::uint32_t x4 = 77;
    const auto get = [&](std::uint32_t at, unsigned bytes) {
      std::uint32_t out = 0;
      for (unsigned n = 0; n < bytes; ++n) out |= std::uint32_t{memory[at + n]} << (8 * n);
      return out;
    };
    const auto put = [&](std::uint32_t at, unsigned bytes, std::uint32_t value) {
      for (unsigned n = 0; n < bytes; ++n) memory[at + n] = static_cast<std::uint8_t>(value >> (8 * n));
    };
    for (unsigned n = 0; n < kLoops; ++n) {
      const std::uint32_t x5 = bench.given[n];
      x4 ^= x5;
      put(pointer, 4, x4);
      put(pointer + 5, 1, x5);
      put(pointer + 6, 2, x4);
      std::uint32_t x6 = get(pointer + 1, 1);
      const std::uint32_t x7 = get(pointer + 6, 2);
      const std::uint32_t x8 = get(pointer + 4, 4);
      x4 += x6;
      x6 = x7 << 3;
      x4 += x6;
      x4 *= x8;
      x4 ^= x4 >> 7;
      REQUIRE(bench.written[n] == std::pair<unsigned, std::uint32_t>(9, x4));
      pointer += 12;
    }
    REQUIRE(bench.written[kLoops] == std::pair<unsigned, std::uint32_t>(31, 0));
    for (unsigned n = 4096; n < 65536; ++n) {
      REQUIRE(static_cast<std::uint8_t>(bench.ram[n / 8] >> (8 * (n % 8))) == memory[n]);
    }
  }
}

TEST_CASE("RAM takes no wait states") {
  using namespace rv32;
  Bench bench(5);
  constexpr int kCount = 500;
  bench.load({lui(1, 0x80000), lui(2, 1), addi(3, 0, kCount),
              lw(5, 2, 0), addi(3, 3, -1), sw(5, 2, 8), bne(3, 0, -12),
              sw(3, 1, 0), jump_here()});
  bench.dut->hold_i = 0;
  const std::uint64_t start = bench.dut.cycle();
  bench.dut.run_until([&] { return !bench.written.empty(); }, "program");
  const double cycles = static_cast<double>(bench.dut.cycle() - start);
  const double per_loop = cycles / kCount / (ROCI_CONFIG_WIDE ? 1 : 2);
  INFO("core cycles per loop of 4 instructions: " << per_loop);
  // PicoRV32 without wait states: 5 load, 3 add, 5 store, 5 branch taken, and one fetch more
  REQUIRE(per_loop < 20.0);
}

TEST_CASE("a trap stops the core until it is held") {
  using namespace rv32;
  Bench bench(6);
  bench.load({lui(1, 0x80000), sw(1, 1, 4), illegal(), sw(1, 1, 8), jump_here()});
  bench.dut->hold_i = 0;
  bench.dut.run_until([&] { return bench.dut->trap_o != 0; }, "trap", 1000);
  bench.dut.tick(200);
  REQUIRE(bench.written.size() == 1);
  bench.dut->hold_i = 1;
  bench.dut.tick(4);
  REQUIRE(bench.dut->trap_o == 0);
  bench.load({lui(1, 0x80000), sw(1, 1, 4), sw(1, 1, 8), jump_here()});
  bench.dut->hold_i = 0;
  bench.dut.run_until([&] { return bench.written.size() == 3; }, "new image", 1000);
  REQUIRE(bench.dut->trap_o == 0);
}
