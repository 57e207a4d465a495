// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A long random run of whole NICs: SEND, WRITE and READ mixed between two of them and inside one, over
// links that lose, repeat, reorder and corrupt frames and memory that stalls. A scoreboard checks every
// byte and every completion. One seed gives one run, bit for bit.
#pragma once

#include "model/world.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace roci::soak {

/// What a run does.
struct SoakConfig {
  uint64_t messages = 1000;
  uint64_t seed = 1;
  sim::ChipConfig chip = sim::ChipConfig::wide;
  unsigned pairs = 4;             ///< connected pairs of QPs between the two NICs
  unsigned loopback_pairs = 1;    ///< and inside the first NIC
  size_t max_bytes = 16 * 1024;   ///< of a message
  double impair = 1;              ///< 1: 1 % drop, duplicate, reorder, 0.5 % corrupt; 0: a perfect link
  std::optional<sim::Impairments> rates;  ///< of the links, instead of `impair`
  bool memory_noise = true;       ///< jitter, reordering and stalls of host memory
  double stalls = 0.05;           ///< of the noise: probability per cycle and channel
  std::optional<sim::HostMemoryConfig> memory;  ///< instead of that of the benchmarks
  std::optional<sim::Rate> link_rate;           ///< instead of the simulator's, bytes per cycle
  std::optional<uint8_t> ack_timeout;           ///< code of all queue pairs, instead of 5 … 7
  bool quiet = false;             ///< no progress on stderr
  std::string capture;            ///< pcapng file, empty: none
  /// Cycles without any completion after which the run counts as hung.
  uint64_t patience = 30'000'000;
};

/// What it was.
struct SoakResult {
  uint64_t messages = 0;
  uint64_t bytes = 0;
  uint64_t cycles = 0;           ///< of simulated time
  uint64_t simulated_cycles = 0; ///< without the time that was skipped
  /// Counters of each NIC at the end, by hwif::Counter.
  std::array<std::vector<uint64_t>, 2> counters;
  /// What the wire saw of the frames that each NIC sent.
  std::array<sim::LinkCounters, 2> sent;
  std::string report;            ///< queues and counters at the end
};

/// The scoreboard found something wrong. The text says what, where, and how all queues stand.
struct SoakError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One run.
/// @throws SoakError at the first error
SoakResult run_soak(const SoakConfig& config);

}  // namespace roci::soak
