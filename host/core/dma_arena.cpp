// SPDX-License-Identifier: BSD-2-Clause-Patent
#include <roci/dma.hpp>
#include <roci/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace roci {
namespace {

// Of one chunk; bigger requests get a chunk of their own.
constexpr size_t CHUNK_BYTES = 2 * 1024 * 1024;
// Lengths are rounded up to this, so that pieces never share a cache line.
constexpr size_t GRANULE = 64;

size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

}  // namespace

DmaBuffer::DmaBuffer(DmaBuffer&& other) noexcept
    : arena_(std::exchange(other.arena_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      address_(other.address_),
      size_(std::exchange(other.size_, 0)) {}

DmaBuffer& DmaBuffer::operator=(DmaBuffer&& other) noexcept {
  if (this != &other) {
    reset();
    arena_ = std::exchange(other.arena_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    address_ = other.address_;
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

void DmaBuffer::reset() noexcept {
  if (arena_ != nullptr) arena_->give_back(*this);
  arena_ = nullptr;
  data_ = nullptr;
  size_ = 0;
}

DmaArena::~DmaArena() {
  for (const auto& [memory, chunk] : chunks_) transport_.release(chunk.range);
}

DmaBuffer DmaArena::allocate(size_t bytes, size_t alignment) {
  DmaBuffer buffer;
  buffer.size_ = bytes;
  bytes = round_up(bytes, GRANULE);
  {
    const std::lock_guard lock(mutex_);
    bool found = false;
    for (auto& [memory, chunk] : chunks_) {
      if (take(chunk, bytes, alignment, buffer)) {
        found = true;
        break;
      }
    }
    if (!found) {
      const DmaRange range = transport_.allocate(std::max(CHUNK_BYTES, round_up(bytes, 4096)));
      Chunk& chunk = chunks_[range.memory];
      chunk.range = range;
      chunk.free[0] = range.bytes;
      take(chunk, bytes, alignment, buffer);
    }
  }
  buffer.arena_ = this;
  std::memset(buffer.data_, 0, bytes);
  return buffer;
}

bool DmaArena::take(Chunk& chunk, size_t bytes, size_t alignment, DmaBuffer& buffer) {
  for (const auto& [offset, length] : chunk.free) {
    const size_t begin = round_up(offset, alignment);
    if (begin + bytes > offset + length) continue;
    const size_t before = begin - offset;
    const size_t after = offset + length - (begin + bytes);
    const size_t hole = offset;
    chunk.free.erase(hole);
    if (before != 0) chunk.free[hole] = before;
    if (after != 0) chunk.free[begin + bytes] = after;
    buffer.data_ = chunk.range.memory + begin;
    buffer.address_ = chunk.range.address + begin;
    return true;
  }
  return false;
}

void DmaArena::give_back(const DmaBuffer& buffer) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = std::prev(chunks_.upper_bound(buffer.data_));
  Chunk& chunk = found->second;
  size_t begin = static_cast<size_t>(buffer.data_ - chunk.range.memory);
  size_t length = round_up(buffer.size_, GRANULE);
  auto next = chunk.free.lower_bound(begin);
  if (next != chunk.free.end() && next->first == begin + length) {
    length += next->second;
    next = chunk.free.erase(next);
  }
  if (next != chunk.free.begin()) {
    const auto last = std::prev(next);
    if (last->first + last->second == begin) {
      begin = last->first;
      length += last->second;
      chunk.free.erase(last);
    }
  }
  chunk.free[begin] = length;
  if (length != chunk.range.bytes) return;
  // A chunk of its own goes at once; one common chunk stays for the next object.
  const auto common = [](const auto& entry) { return entry.second.range.bytes <= CHUNK_BYTES; };
  if (length > CHUNK_BYTES || std::count_if(chunks_.begin(), chunks_.end(), common) > 1) {
    transport_.release(chunk.range);
    chunks_.erase(found);
  }
}

size_t DmaArena::chunks() const {
  const std::lock_guard lock(mutex_);
  return chunks_.size();
}

}  // namespace roci
