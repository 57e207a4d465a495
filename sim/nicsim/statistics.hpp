// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What `nicsim stats` shows of a simulation: counters of NICs, links and foreign ports, what became of
// each queue pair.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/fabric.hpp"
#include "nicsim/report.hpp"

namespace roci::sim {

/// One NIC.
struct NicStatistics {
  std::string name;
  std::vector<std::pair<std::string, uint64_t>> counters;
  std::vector<QueuePair> qps;
};

/// Both directions of what joins a port to the switch, or to the other port.
struct PortStatistics {
  std::string name;
  LinkCounters sent, received;
};

/// Everything, at one moment.
struct Statistics {
  uint64_t simulated_ns = 0;
  std::vector<NicStatistics> nics;
  std::vector<PortStatistics> ports;
  std::optional<SwitchCounters> in_switch;  ///< none: two ports back to back
  std::vector<ForeignResult> foreign;
  std::vector<std::string> failures;  ///< why queue pairs failed, a line each
};

/// One line of JSON.
std::string to_json(const Statistics& statistics);
/// For people: what is not zero.
std::string to_table(const Statistics& statistics);

/// The counters that are not zero and speak of packets that were dropped, as text: "rx_drop_icrc 3".
std::string drops_of(const std::vector<std::pair<std::string, uint64_t>>& counters);

}  // namespace roci::sim
