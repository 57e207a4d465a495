// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Registered memory, and what every byte of it has to be.
#pragma once

#include "system/rtl_world.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace roci::soak {

/// A memory region with a copy that the scoreboard keeps.
class Shadow {
 public:
  /// Random contents.
  Shadow(Pd& pd, size_t bytes, unsigned access, uint64_t seed)
      : region_(pd, bytes, access), copy_(bytes) {
    std::mt19937_64 random(seed);
    for (size_t i = 0; i < bytes; ++i) copy_[i] = static_cast<uint8_t>(random() >> 32);
    std::copy(copy_.begin(), copy_.end(), region_.buffer.data());
  }

  /// From now on these bytes have to be there.
  void expect(size_t offset, std::span<const uint8_t> data) {
    std::copy(data.begin(), data.end(), copy_.begin() + static_cast<ptrdiff_t>(offset));
  }
  /// Offset of the first byte of a range that is not as expected.
  std::optional<size_t> wrong(size_t offset, size_t bytes) const {
    const uint8_t* is = const_cast<test::Buffer&>(region_.buffer).data() + offset;
    const auto at = std::mismatch(is, is + bytes, copy_.begin() + static_cast<ptrdiff_t>(offset));
    if (at.first == is + bytes) return std::nullopt;
    return offset + static_cast<size_t>(at.first - is);
  }
  /// Bytes that are expected.
  std::span<const uint8_t> expected(size_t offset, size_t bytes) const {
    return std::span(copy_).subspan(offset, bytes);
  }
  uint8_t is(size_t offset) const {
    return const_cast<test::Buffer&>(region_.buffer).data()[offset];
  }
  size_t size() const { return copy_.size(); }
  ibv_sge sge(size_t offset, size_t bytes) const { return region_.sge(offset, bytes); }
  uint64_t address(size_t offset) const { return region_.buffer.address() + offset; }
  uint32_t rkey() const { return region_.mr.rkey(); }

 private:
  test::Region region_;
  std::vector<uint8_t> copy_;
};

}  // namespace roci::soak
