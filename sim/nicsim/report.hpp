// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What `nicsim run --report` and `nicsim inject --report` write: JSON, fixed because others read it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fabric/channel.hpp"
#include "nicsim/foreign.hpp"
#include "nicsim/latency.hpp"
#include "nicsim/queue_pairs.hpp"

namespace roci::sim {

/// A program that ran.
struct ProgramResult {
  std::vector<std::string> argv;
  int exit = 0;  ///< status, or 128 + signal
};

/// One NIC at the end.
struct NicResult {
  std::vector<std::pair<std::string, uint64_t>> counters;
  LatencySummary post_to_cqe_ns;
  std::vector<QueuePair> qps{};  ///< those of programs
};

/// A foreign port at the end.
struct ForeignResult {
  std::string path;
  ForeignCounters counters;
};

/// A whole run.
struct RunReport {
  uint64_t seed = 0;
  uint64_t simulated_ns = 0;
  uint64_t cycles = 0;
  double wall_s = 0;
  std::vector<ProgramResult> programs;
  std::vector<NicResult> nics;
  std::vector<LinkCounters> links;
  std::vector<ForeignResult> foreign{};  ///< their links are the last ones
};

/// One frame of inject.
struct FrameFate {
  bool accepted = false;
  std::string counter;  ///< empty if accepted
  std::string reason;
};

/// A string as JSON has it, with its quotes; bytes that are no UTF-8 become U+FFFD.
std::string json_string(const std::string& text);
std::string to_json(const RunReport& report);
std::string to_json(const QueuePair& qp);
std::string to_json(const ForeignResult& port);
std::string to_json(const std::vector<FrameFate>& frames);

/// Writes a whole file. @throws std::runtime_error with the name and the cause
void write_file(const std::string& path, const std::string& text);

}  // namespace roci::sim
