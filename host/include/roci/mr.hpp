// SPDX-License-Identifier: BSD-2-Clause-Patent
#pragma once

#include <roci/dma.hpp>
#include <roci/pd.hpp>

namespace roci {

/// Memory region.
class Mr {
 public:
  /// Registers [address, address + bytes).
  /// @param iova    address of the first byte in work requests and packets
  /// @param access  ibv_access_flags; optional ones (relaxed ordering) are ignored
  /// @throws Error  EINVAL: remote write without local write, unknown flags, empty range;
  ///                EFAULT: memory is not mapped or read-only; EOPNOTSUPP: on demand, huge pages;
  ///                ENOMEM: no more keys, maps or memory
  Mr(Pd& pd, void* address, size_t bytes, uint64_t iova, unsigned access);
  Mr(const Mr&) = delete;
  Mr& operator=(const Mr&) = delete;
  ~Mr();

  /// Changes it, keys stay. `flags` of ibv_rereg_mr_flags say which arguments count.
  /// @throws Error; the region is as it was
  void reregister(int flags, Pd* pd, void* address, size_t bytes, unsigned access);

  /// Ends it. @throws Error(EBUSY) while windows are bound to it
  void destroy();

  uint32_t lkey() const noexcept { return lkey_; }
  uint32_t rkey() const noexcept { return rkey_; }
  /// Whether it needs no page table.
  bool contiguous() const noexcept { return hold_.extents().size() == 1; }

 private:
  struct Memory {
    DmaMap::Hold hold;
    DmaBuffer table;
    hwif::CreateMrParams params{};
  };
  Memory prepare(void* address, size_t bytes, uint64_t iova, unsigned access);

  Pd* pd_;
  uint32_t index_ = 0;
  uint32_t lkey_ = 0;
  uint32_t rkey_ = 0;
  void* address_;
  size_t bytes_;
  uint64_t iova_;
  unsigned access_;
  DmaMap::Hold hold_;
  DmaBuffer table_;
  bool alive_ = false;
};

/// Rights of a key or queue pair from ibv_access_flags.
/// @param atomics  the device has atomics; otherwise that right is left out
hwif::AccessRights access_rights(unsigned access, bool atomics) noexcept;

}  // namespace roci
