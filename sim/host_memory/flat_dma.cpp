// SPDX-License-Identifier: BSD-2-Clause-Patent
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>

#include "host_memory/dma_target.hpp"

namespace roci::sim {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

void store_last_byte_last(uint8_t* to, std::span<const uint8_t> data) {
  if (data.empty()) return;
  std::memcpy(to, data.data(), data.size() - 1);
  std::atomic_ref<uint8_t>(to[data.size() - 1]).store(data.back(), std::memory_order_release);
}

void FlatDma::Free::operator()(uint8_t* memory) const {
  ::operator delete(memory, std::align_val_t{kPage});
}

std::span<uint8_t> FlatDma::allocate(uint16_t function, size_t bytes) {
  const size_t size = std::max<size_t>((bytes + kPage - 1) / kPage, 1) * kPage;
  auto* memory = static_cast<uint8_t*>(::operator new(size, std::align_val_t{kPage}));
  std::unique_ptr<uint8_t, Free> owner(memory);
  std::memset(memory, 0, size);
  const std::span<uint8_t> range(memory, size);
  map(function, reinterpret_cast<uint64_t>(memory), range);
  const std::unique_lock lock(mutex_);
  owned_.push_back(std::move(owner));
  return range;
}

void FlatDma::map(uint16_t function, uint64_t addr, std::span<uint8_t> memory) {
  if (memory.empty()) throw std::invalid_argument("empty DMA range");
  if (addr + (memory.size() - 1) < addr) throw std::invalid_argument("DMA range wraps around");
  const std::unique_lock lock(mutex_);
  Ranges& ranges = functions_[function];
  const auto next = ranges.lower_bound(addr);
  const bool hits_next = next != ranges.end() && next->first - addr < memory.size();
  const bool hits_previous =
      next != ranges.begin() && addr - std::prev(next)->first < std::prev(next)->second.size();
  if (hits_next || hits_previous) throw std::invalid_argument("DMA ranges overlap");
  ranges.emplace(addr, memory);
}

bool FlatDma::unmap(uint16_t function, uint64_t addr) {
  const std::unique_lock lock(mutex_);
  const auto ranges = functions_.find(function);
  return ranges != functions_.end() && ranges->second.erase(addr) != 0;
}

std::vector<std::span<uint8_t>> FlatDma::find(uint16_t function, uint64_t addr,
                                              size_t bytes) const {
  const auto ranges = functions_.find(function);
  if (ranges == functions_.end()) return {};
  std::vector<std::span<uint8_t>> pieces;
  while (bytes > 0) {
    auto range = ranges->second.upper_bound(addr);
    if (range == ranges->second.begin()) return {};
    --range;
    const uint64_t offset = addr - range->first;
    if (offset >= range->second.size()) return {};
    const size_t count = std::min<size_t>(bytes, range->second.size() - offset);
    pieces.push_back(range->second.subspan(offset, count));
    addr += count;
    bytes -= count;
  }
  return pieces;
}

bool FlatDma::read(uint16_t function, uint64_t addr, std::span<uint8_t> out) {
  const std::shared_lock lock(mutex_);
  const auto pieces = find(function, addr, out.size());
  if (pieces.empty()) return out.empty();
  size_t done = 0;
  for (const auto& piece : pieces) {
    std::memcpy(out.data() + done, piece.data(), piece.size());
    done += piece.size();
  }
  return true;
}

bool FlatDma::write(uint16_t function, uint64_t addr, std::span<const uint8_t> data) {
  const std::shared_lock lock(mutex_);
  const auto pieces = find(function, addr, data.size());
  if (pieces.empty()) return data.empty();
  size_t done = 0;
  for (const auto& piece : pieces) {
    store_last_byte_last(piece.data(), data.subspan(done, piece.size()));
    done += piece.size();
  }
  return true;
}

}  // namespace roci::sim
