// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "host_memory/access_log.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace roci::sim {

size_t RegionGuard::allow(uint16_t function, uint64_t addr, uint64_t bytes, bool write) {
  ranges_[next_] = {function, addr, bytes, write};
  return next_++;
}

void RegionGuard::check(const MemoryAccess& access) {
  if (!access.ok || (!access.write && !check_reads_)) return;
  // Walk through the access; every step ends where the best allowed range ends.
  uint64_t at = access.addr;
  uint64_t left = access.data.size();
  while (left > 0) {
    uint64_t covered = 0;
    for (const auto& [number, range] : ranges_) {
      const bool fits = range.function == access.function && (range.write || !access.write) &&
                        at - range.addr < range.bytes;
      if (fits) covered = std::max(covered, range.bytes - (at - range.addr));
    }
    if (covered == 0) break;
    at += std::min(covered, left);
    left -= std::min(covered, left);
  }
  if (left == 0) return;
  ++count_;
  if (violations_.size() >= 100) return;
  char text[160];
  std::snprintf(text, sizeof text,
                "cycle %" PRIu64 ": function %u %s 0x%" PRIx64 "+%zu, not allowed from 0x%" PRIx64
                " on",
                access.cycle, access.function, access.write ? "writes" : "reads", access.addr,
                access.data.size(), at);
  violations_.emplace_back(text);
}

}  // namespace roci::sim
