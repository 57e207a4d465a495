// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_host_read: copies of both users, of any length and place, from a model of host memory that
// answers beats with random delays and errors, into a model of the RAM that grants at random.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <vector>

#include "harness/harness.hpp"
#include "harness/lanes.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace cpu = roci::sv::cpu_pkg;

namespace {

constexpr unsigned kBytes = ROCI_CONFIG_WIDE ? 64 : 8;

/// 8 bytes of host memory.
std::uint64_t host_word(std::uint64_t address) { return address * 0x9e3779b97f4a7c15u ^ 0x1234; }

struct Bench {
  Dut<DUT_CLASS> dut;
  Random random;
  Sink<pkg::dma_read_req_t> request;
  Source<pkg::read_beat_t> beat;
  std::map<unsigned, std::uint64_t> ram;
  std::vector<std::pair<unsigned, std::uint64_t>> snooped;
  double ram_stall = 0.0, error_rate = 0.0;
  bool error_sent = false;
  unsigned fn = 0;

  struct Ram : Agent {
    Bench& b;
    explicit Ram(Bench& bench) : b(bench) {}
    void sample() override {
      if (b.dut->write_valid_o && b.dut->write_ready_i) {
        b.ram[b.dut->write_addr_o] = b.dut->write_data_o;
      }
      if (b.dut->snoop_valid_o) b.snooped.push_back({b.dut->snoop_word_o, b.dut->snoop_data_o});
    }
    void drive() override { b.dut->write_ready_i = !b.random.chance(b.ram_stall); }
  } ram_agent;

  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt),
        request("request", dut->req_valid_o, dut->req_ready_i, dut->req_o),
        beat("beat", dut->beat_valid_i, dut->beat_ready_o, dut->beat_i), ram_agent(*this) {
    dut->copy_valid_i = 0;
    dut.reset();
    request.collect();
    dut.attach(request);
    dut.attach(beat);
    dut.attach(ram_agent);
    request.on_transfer([this](const pkg::dma_read_req_t& item) {
      REQUIRE(item.fn == fn);
      REQUIRE(item.length >= 8);
      REQUIRE(item.addr / 64 == (item.addr + item.length - 1) / 64);   // within a line
      const std::uint64_t first = item.addr / kBytes;
      const std::uint64_t last = (item.addr + item.length - 1) / kBytes;
      for (std::uint64_t w = first; w <= last; ++w) {
        pkg::read_beat_t out{};
        out.last = w == last;
        out.err = random.chance(error_rate);
        error_sent |= out.err;
        for (unsigned l = 0; l < kBytes; ++l) {
          const std::uint64_t word = host_word(w * kBytes + l / 8 * 8);
          set_byte(out.data, l, static_cast<std::uint8_t>(word >> (8 * (l % 8))));
        }
        beat.push(out);
      }
    });
  }

  void copy(unsigned user, std::uint64_t address, unsigned at, unsigned bytes) {
    cpu::copy_t item{};
    item.fn = static_cast<decltype(item.fn)>(fn);
    item.addr = address;
    item.ram = static_cast<decltype(item.ram)>(at);
    item.bytes = static_cast<decltype(item.bytes)>(bytes);
    roci::sv::Words<2 * cpu::copy_t::width_bits> both{};
    item.to_bits(both.data(), user * cpu::copy_t::width_bits);
    for (unsigned n = 0; n < both.size(); ++n) dut->copy_i[n] = both[n];
    dut->copy_valid_i = static_cast<CData>(1u << user);
    error_sent = false;
    ram.clear();
    snooped.clear();
    dut.eval();
    dut.run_until([&] { return ((dut->copy_ready_o >> user) & 1u) != 0; }, "copy taken");
    dut.tick();
    dut->copy_valid_i = 0;
    dut.run_until([&] { return dut->done_o != 0; }, "copy done", 5000);
    REQUIRE(dut->done_o == 1u << user);
    REQUIRE((dut->error_o != 0) == error_sent);
    REQUIRE(beat.empty());
    REQUIRE(ram.size() == bytes / 8);
    for (unsigned n = 0; n < bytes / 8; ++n) {
      INFO("word " << n << " of " << bytes / 8);
      REQUIRE(ram.at(at + n) == host_word(address + 8 * n));
    }
    if (user == 0) {
      REQUIRE(snooped.size() == bytes / 8);
      for (unsigned n = 0; n < bytes / 8; ++n) {
        REQUIRE(snooped[n] == std::pair<unsigned, std::uint64_t>(n, host_word(address + 8 * n)));
      }
    } else {
      REQUIRE(snooped.empty());
    }
  }
};

}  // namespace

TEST_CASE("copies come whole into RAM") {
  Random random;
  for (int round = 0; round < 8; ++round) {
    Bench bench(random());
    bench.request.stall(Stall::any(random));
    bench.beat.stall(Stall::any(random));
    bench.ram_stall = random.chance(0.5) ? 0.5 : 0.0;
    bench.error_rate = random.chance(0.5) ? 0.05 : 0.0;
    for (std::size_t n = 0; n < scaled(100); ++n) {
      bench.fn = static_cast<unsigned>(random.below(8));
      const unsigned bytes =
          8 * static_cast<unsigned>(random.between(1, random.chance(0.1) ? 200 : 24));
      const std::uint64_t address = random.bits(40) << 12 | 8 * random.below(512);
      bench.copy(static_cast<unsigned>(random.below(2)), address,
                 static_cast<unsigned>(random.below(3000)), bytes);
    }
  }
}
