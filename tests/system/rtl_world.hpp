// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The worlds of the system tests: which configurations, which timing; the path to a NIC of them.
#pragma once

#include "link_local_path.hpp"
#include "model/world.hpp"
#include "world.hpp"

namespace roci::test {

/// Both configurations, for GENERATE.
inline constexpr sim::ChipConfig kConfigs[] = {sim::ChipConfig::wide, sim::ChipConfig::narrow};

/// World of system tests: the timing of performance.md unless a test changes it. A NIC that writes a
/// byte which nobody registered ends the test (sim::DmaGuardError).
inline sim::WorldConfig rtl_world(sim::ChipConfig chip, uint64_t seed = base_seed()) {
  sim::WorldConfig config;
  config.chip = chip;
  config.seed = seed;
  config.guard = true;
  if (chip == sim::ChipConfig::narrow) config.fabric.link.rate = {8, 1};
  return config;
}

/// The path to GID 0 (link-local, from the MAC) of a NIC.
inline ibv_ah_attr path_to(const sim::WorldNic& nic) { return link_local_path(nic.mac()); }

}  // namespace roci::test
