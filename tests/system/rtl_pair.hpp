// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Two RTL NICs back to back, the host core on each, one connected pair of queue pairs.
#pragma once

#include "link_local_path.hpp"
#include "model/world.hpp"
#include "world.hpp"

#include <cstdio>
#include <string>

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

/// As Pair of the host tests, on RTL.
struct RtlPair {
  explicit RtlPair(const sim::WorldConfig& config,
                   const DeviceOptions& options = DeviceOptions::from_environment(),
                   ibv_qp_cap cap = caps(), unsigned entries = 64, bool signal_all = false)
      : world(config),
        a(make_inproc_transport(world.nic(0)), options),
        b(make_inproc_transport(world.nic(1)), options),
        a_cq(a.context, {entries, nullptr, false}),
        b_cq(b.context, {entries, nullptr, false}),
        a_qp(a.pd, {&a_cq, &a_cq, cap, IBV_QPT_RC, signal_all, false}),
        b_qp(b.pd, {&b_cq, &b_cq, cap, IBV_QPT_RC, signal_all, false}) {
    connect(a_qp, b_qp.number(), path_to(world.nic(1)));
    connect(b_qp, a_qp.number(), path_to(world.nic(0)));
  }

  sim::World world;
  Host a, b;
  Cq a_cq, b_cq;
  Qp a_qp, b_qp;
};

}  // namespace roci::test
