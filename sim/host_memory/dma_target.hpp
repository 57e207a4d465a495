// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What lies behind the bus: the memory of the programs that use the NIC, one address space per
// function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

namespace roci::sim {

/// Memory as a function's DMA domain sees it. Implementations: FlatDma for tests in one process;
/// the simulator's client connections.
class DmaTarget {
 public:
  virtual ~DmaTarget() = default;

  /// Reads out.size() bytes at `addr`.
  /// @param function  AXI user field: whose address space
  /// @return false if any byte is not mapped: a bus error; `out` is not used then
  virtual bool read(uint16_t function, uint64_t addr, std::span<uint8_t> out) = 0;

  /// Writes. The byte with the highest address is stored last, with release order: whoever sees it
  /// (the phase bit of a CQE) sees the others.
  /// @return false if any byte is not mapped: a bus error; nothing is written then
  virtual bool write(uint16_t function, uint64_t addr, std::span<const uint8_t> data) = 0;
};

/// Stores with the order that DmaTarget::write promises; for implementations on mapped memory.
void store_last_byte_last(uint8_t* to, std::span<const uint8_t> data);

/// DMA target inside one process: ranges of memory per function, anything outside is a bus error.
///
/// The NIC reads whole bus beats, so a range is best a multiple of 4 KB, as an IOMMU maps;
/// allocate() does so. Thread-safe; maps may change while the NIC runs.
class FlatDma : public DmaTarget {
 public:
  FlatDma() = default;
  FlatDma(const FlatDma&) = delete;
  FlatDma& operator=(const FlatDma&) = delete;
  ~FlatDma() override = default;

  /// Zeroed memory at a 4 KB boundary, mapped at its own virtual address, at least `bytes` and a
  /// multiple of 4 KB long; mapped until unmap(), owned until this object dies.
  std::span<uint8_t> allocate(uint16_t function, size_t bytes);

  /// Maps memory of the caller at any address.
  /// @throws std::invalid_argument if it overlaps a range of this function or wraps around
  void map(uint16_t function, uint64_t addr, std::span<uint8_t> memory);

  /// Ends a mapping. When it returns no access to it is going on.
  /// @return false if no range of the function starts at `addr`
  bool unmap(uint16_t function, uint64_t addr);

  bool read(uint16_t function, uint64_t addr, std::span<uint8_t> out) override;
  bool write(uint16_t function, uint64_t addr, std::span<const uint8_t> data) override;

 private:
  using Ranges = std::map<uint64_t, std::span<uint8_t>>;

  // The pieces of [addr, addr + bytes), which may cross adjacent ranges; empty if any byte is
  // missing.
  std::vector<std::span<uint8_t>> find(uint16_t function, uint64_t addr, size_t bytes) const;

  struct Free {
    void operator()(uint8_t* memory) const;
  };
  mutable std::shared_mutex mutex_;
  std::map<uint16_t, Ranges> functions_;
  std::vector<std::unique_ptr<uint8_t, Free>> owned_;
};

}  // namespace roci::sim
