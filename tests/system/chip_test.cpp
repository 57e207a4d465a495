// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The bare chip, without firmware or host stack: it comes out of reset, tells what it is on BAR0, and
// comes to rest. And one in its world that is written to faster than it takes the writes.
#include <roci_hwif.hpp>

#include <catch2/catch.hpp>

#include "host_memory/dma_target.hpp"
#include "model/nic.hpp"
#include "model/world.hpp"

using namespace roci;
using namespace roci::sim;

namespace {

uint64_t bar_read(Nic& nic, unsigned function, uint32_t offset) {
  std::optional<uint64_t> value;
  nic.bar_read(function, offset, [&](uint64_t v, bool error) {
    REQUIRE_FALSE(error);
    value = v;
  });
  for (int n = 0; n < 100000 && !value; ++n) nic.step();
  REQUIRE(value);
  return *value;
}

}  // namespace

TEST_CASE("identity of both configurations") {
  for (const auto config : {ChipConfig::wide, ChipConfig::narrow}) {
    INFO(to_string(config));
    FlatDma memory;
    NicConfig nic_config;
    nic_config.chip = config;
    Nic nic(nic_config, memory, nullptr);
    for (unsigned function : {0u, 1u, 7u}) {
      REQUIRE(bar_read(nic, function, hwif::csr::IdentityHwifHash::ADDRESS) == hwif::HWIF_HASH);
    }
    const auto first = bar_read(nic, 1, hwif::csr::IdentityClock::ADDRESS);
    const auto cycle = nic.cycle();
    const auto second = bar_read(nic, 1, hwif::csr::IdentityClock::ADDRESS);
    REQUIRE(second - first == nic.cycle() - cycle);      // the clock counts cycles
  }
}

TEST_CASE("a flood of posted writes of BAR0 is held back: whoever reads is answered") {
  WorldConfig config;
  config.nics = 1;
  config.chip = ChipConfig::narrow;
  config.fabric.link.rate = {8, 1};
  World world(config);
  WorldNic& nic = world.nic(0);
  // 120,000 cycles of work, doorbells of a queue pair that does not exist
  constexpr unsigned kWrites = 40'000;
  for (unsigned n = 0; n < kWrites; ++n) {
    nic.bar_write(1, hwif::csr::DoorbellPage::ADDRESS, n);
    REQUIRE(nic.nic().waiting() <= 4096);
  }
  REQUIRE(nic.bar_read(2, hwif::csr::IdentityHwifHash::ADDRESS) == hwif::HWIF_HASH);
  REQUIRE(nic.nic().waiting() == 0);
}
