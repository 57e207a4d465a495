// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Sees every access of the NIC to host memory; RegionGuard finds those that nobody allowed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace roci::sim {

/// One access as it reaches memory: a read burst, or a contiguous run of enabled bytes of a write
/// burst.
struct MemoryAccess {
  uint64_t cycle = 0;
  bool write = false;
  uint16_t function = 0;
  uint64_t addr = 0;
  std::span<const uint8_t> data;  ///< read: what is returned; valid during the call
  bool ok = true;                 ///< false: bus error, nothing was read or written
};

using AccessObserver = std::function<void(const MemoryAccess&)>;

/// Checks that the NIC writes (and, if asked, reads) only where it may: the bytes of registered
/// regions, rings and buffers, exactly. A range can be taken back to show that a revoked right is
/// dead.
class RegionGuard {
 public:
  /// @param check_reads  also judge reads; the NIC reads whole bus beats, so allow whole pages then
  explicit RegionGuard(bool check_reads = false) : check_reads_(check_reads) {}

  /// Allows access to [addr, addr + bytes) of a function. Ranges may overlap.
  /// @return a number for revoke()
  size_t allow(uint16_t function, uint64_t addr, uint64_t bytes, bool write = true);

  /// Takes a range back.
  void revoke(size_t range);

  /// Judges one access. Bus errors did not touch memory and are not judged.
  void check(const MemoryAccess& access);

  /// For HostMemory::set_observer(); the guard must outlive it.
  AccessObserver observer() {
    return [this](const MemoryAccess& access) { check(access); };
  }

  /// One line per access that was not allowed, the first 100.
  const std::vector<std::string>& violations() const { return violations_; }
  /// All of them.
  uint64_t violation_count() const { return count_; }

 private:
  struct Range {
    uint16_t function;
    uint64_t addr;
    uint64_t bytes;
    bool write;
  };

  // Bytes from `at` on that one range allows; 0: none does.
  uint64_t covered(const MemoryAccess& access, uint64_t at) const;
  static bool indexed(const Range& range);

  bool check_reads_;
  size_t next_ = 0;
  std::unordered_map<size_t, Range> ranges_;
  std::unordered_multimap<uint64_t, size_t> pages_;  // by address / 4096, if indexed
  std::map<size_t, Range> large_;                    // the others
  std::vector<std::string> violations_;
  uint64_t count_ = 0;
};

}  // namespace roci::sim
