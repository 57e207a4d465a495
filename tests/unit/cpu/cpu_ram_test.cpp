// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_ram: CPU, engines and image loading at random against an array; the CPU never waits, and no
// engine starves beside a CPU that reads every second cycle.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <vector>

#include "harness/harness.hpp"

using namespace roci::test;

namespace {
constexpr unsigned kWords = (ROCI_CONFIG_WIDE ? 65536 : 32768) / 8;
}

TEST_CASE("one memory for CPU and engines") {
  Random random;
  Dut<DUT_CLASS> dut(random());
  dut->load_valid_i = 1;
  std::vector<std::uint64_t> model(kWords);
  dut->cpu_read_i = dut->cpu_write_i = dut->read_valid_i = dut->write_valid_i = 0;
  for (unsigned n = 0; n < kWords; ++n) {           // the image
    model[n] = random();
    dut->load_addr_i = static_cast<SData>(n);
    dut->load_data_i = model[n];
    dut.tick();
  }
  dut->load_valid_i = 0;
  bool read_pending = false;                        // rdata_o must be this after the next edge
  std::uint64_t expected = 0;
  bool cpu_read_last = false;
  std::uint64_t waits[4] = {};
  for (std::size_t step = 0; step < scaled(40000); ++step) {
    const auto word = [&] { return static_cast<SData>(random.below(64) * (kWords / 64)); };
    // as the core behaves: never two reads in consecutive cycles
    const bool cpu_read = !cpu_read_last && random.chance(0.8);
    const bool cpu_write = !cpu_read && random.chance(0.3);
    cpu_read_last = cpu_read;
    dut->cpu_read_i = cpu_read;
    dut->cpu_raddr_i = word();
    dut->cpu_write_i = cpu_write ? static_cast<CData>(random.bits(8)) : CData{0};
    dut->cpu_waddr_i = word();
    dut->cpu_wdata_i = random();
    // engines keep their request until it is granted
    // 0 context reads, 1 host writer reads, 2 context writes, 3 host reader writes
    static bool engine[4] = {};
    static SData address[4] = {};
    static std::uint64_t data[2] = {};
    static unsigned pause = 0;                      // the context engine looks at each word first
    if (pause != 0) --pause;
    for (int e = 0; e < 4; ++e) {
      if (e % 2 == 0 && pause != 0) continue;
      if (!engine[e] && random.chance(0.5)) {
        engine[e] = true;
        address[e] = word();
        if (e >= 2) data[e - 2] = random();
        waits[e] = 0;
      }
    }
    dut->read_valid_i = static_cast<CData>(engine[0] | engine[1] << 1);
    dut->read_addr_i = static_cast<IData>(address[0]) |
                       static_cast<IData>(address[1]) << (ROCI_CONFIG_WIDE ? 13 : 12);
    dut->write_valid_i = static_cast<CData>(engine[2] | engine[3] << 1);
    dut->write_addr_i = static_cast<IData>(address[2]) |
                        static_cast<IData>(address[3]) << (ROCI_CONFIG_WIDE ? 13 : 12);
    for (unsigned half = 0; half < 4; ++half) {
      dut->write_data_i[half] = static_cast<IData>(data[half / 2] >> (32 * (half % 2)));
    }
    dut.eval();
    REQUIRE((dut->read_ready_o & 1) == !cpu_read);
    // who reads in this cycle
    int reader = -1;
    if (cpu_read) reader = 3;
    else if (engine[0]) reader = 0;
    else if (engine[1]) reader = 1;
    if (reader == 1) REQUIRE((dut->read_ready_o & 2) != 0);
    const SData at = reader == 3 ? dut->cpu_raddr_i : reader < 0 ? SData{0} : address[reader];
    read_pending = reader >= 0;
    expected = model[at];
    std::uint64_t mask = 0;
    for (unsigned b = 0; b < 8; ++b) {
      if ((dut->cpu_write_i >> b) & 1) mask |= std::uint64_t{0xff} << (8 * b);
    }
    REQUIRE((dut->write_ready_o & 1) == (dut->cpu_write_i == 0));
    REQUIRE((dut->write_ready_o >> 1) == (dut->cpu_write_i == 0 && !engine[2]));
    const int writer = engine[2] ? 2 : 3;
    const bool engine_writes = engine[writer] && mask == 0;
    const SData wrote = mask != 0 ? dut->cpu_waddr_i : address[writer];
    if (mask != 0) {
      model[wrote] = (model[wrote] & ~mask) | (dut->cpu_wdata_i & mask);
    } else if (engine_writes) {
      model[wrote] = data[writer - 2];
    }
    if ((mask != 0 || engine_writes) && wrote == at) read_pending = false;   // not defined
    for (int e = 0; e < 4; ++e) {
      if (reader == e || (engine_writes && writer == e)) engine[e] = false;
      else if (engine[e]) ++waits[e];
      REQUIRE(waits[e] < 40);
    }
    if (reader == 0 || (engine_writes && writer == 2)) pause = 3;
    dut.tick();
    if (read_pending) {
      INFO("step " << step);
      REQUIRE(dut->rdata_o == expected);
    }
  }
}
