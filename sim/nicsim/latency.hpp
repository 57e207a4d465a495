// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Latency of requests in simulated time: from the doorbell at the NIC to the completion in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace roci::sim {

/// Minimum, median, maximum of a number of samples.
struct LatencySummary {
  uint64_t min = 0, median = 0, max = 0, count = 0;
};

/// Of samples in any order; all zero if there are none.
LatencySummary summarise(std::vector<uint64_t> samples);

/// Watches one NIC. A completion counts from the first doorbell that covers its request, so that
/// requests posted by one doorbell all count from that.
class LatencyMeter {
 public:
  /// A write of BAR0.
  void written(unsigned function, uint32_t offset, uint64_t value, uint64_t cycle);
  /// A store of the NIC to host memory. Completions of the send side are recognised by their size,
  /// their queue pair and the index of a posted request.
  void stored(unsigned function, std::span<const uint8_t> data, uint64_t cycle);

  /// The client of a function is gone: what it posted is forgotten.
  void left(unsigned function);

  /// Queue pairs that are remembered.
  size_t queues() const { return posts_.size(); }
  /// In cycles, in the order of completion.
  const std::vector<uint64_t>& samples() const { return samples_; }

 private:
  void forget_some();

  struct Post {
    uint16_t end;  // index behind the last block
    uint64_t cycle;
  };
  std::map<std::pair<unsigned, uint32_t>, std::deque<Post>> posts_;
  std::vector<uint64_t> samples_;
};

}  // namespace roci::sim
