// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "host_memory/access_log.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace roci::sim {
namespace {

constexpr unsigned kPageShift = 12;
constexpr uint64_t kIndexedBytes = uint64_t{1} << 26;  // beyond, an entry for each page is a waste

}  // namespace

bool RegionGuard::indexed(const Range& range) {
  return range.bytes != 0 && range.bytes <= kIndexedBytes &&
         range.addr + (range.bytes - 1) >= range.addr;
}

size_t RegionGuard::allow(uint16_t function, uint64_t addr, uint64_t bytes, bool write) {
  const Range range{function, addr, bytes, write};
  if (indexed(range)) {
    ranges_[next_] = range;
    for (uint64_t page = addr >> kPageShift; page <= (addr + (bytes - 1)) >> kPageShift; ++page) {
      pages_.emplace(page, next_);
    }
  } else {
    large_[next_] = range;
  }
  return next_++;
}

void RegionGuard::revoke(size_t number) {
  large_.erase(number);
  const auto found = ranges_.find(number);
  if (found == ranges_.end()) return;
  const Range range = found->second;
  ranges_.erase(found);
  for (uint64_t page = range.addr >> kPageShift;
       page <= (range.addr + (range.bytes - 1)) >> kPageShift; ++page) {
    const auto [first, last] = pages_.equal_range(page);
    const auto entry = std::find_if(first, last, [&](const auto& e) { return e.second == number; });
    if (entry != last) pages_.erase(entry);
  }
}

uint64_t RegionGuard::covered(const MemoryAccess& access, uint64_t at) const {
  uint64_t best = 0;
  const auto look = [&](const Range& range) {
    const bool fits = range.function == access.function && (range.write || !access.write) &&
                      at - range.addr < range.bytes;
    if (fits) best = std::max(best, range.bytes - (at - range.addr));
  };
  const auto [first, last] = pages_.equal_range(at >> kPageShift);
  for (auto entry = first; entry != last; ++entry) look(ranges_.at(entry->second));
  for (const auto& [number, range] : large_) look(range);
  return best;
}

void RegionGuard::check(const MemoryAccess& access) {
  if (!access.ok || (!access.write && !check_reads_)) return;
  // Walk through the access; every step ends where the best allowed range ends.
  uint64_t at = access.addr;
  uint64_t left = access.data.size();
  while (left > 0) {
    const uint64_t step = std::min(covered(access, at), left);
    if (step == 0) break;
    at += step;
    left -= step;
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
