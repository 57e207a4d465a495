// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Packets as beats of roci_pkg::beat_t and back. The beat's width follows from the generated
// struct.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/lanes.hpp"
#include "harness/random.hpp"

namespace roci::test {

/// Bytes of a beat of the generated struct `Beat` (data of 512 or 64 bits).
template <class Beat>
constexpr unsigned beat_bytes() {
  return static_cast<unsigned>(sizeof(Beat{}.data));
}

/// Dense beats of a packet; bytes behind its end are random. `err` goes on the last beat.
template <class Beat>
std::vector<Beat> to_beats(std::span<const std::uint8_t> bytes, Random& random, bool err = false) {
  constexpr unsigned width = beat_bytes<Beat>();
  std::vector<Beat> out;
  for (std::size_t at = 0; at < bytes.size(); at += width) {
    Beat beat{};
    const auto n = static_cast<unsigned>(std::min<std::size_t>(width, bytes.size() - at));
    beat.last = at + n == bytes.size();
    beat.err = beat.last && err;
    beat.bytes = static_cast<decltype(beat.bytes)>(n);
    for (unsigned k = 0; k < width; ++k) {
      set_byte(beat.data, k, k < n ? bytes[at + k] : static_cast<std::uint8_t>(random.bits(8)));
    }
    out.push_back(beat);
  }
  return out;
}

/// Collects beats into packets. Throws Failure if a beat that is not the last is not full.
template <class Beat>
class Packets {
 public:
  /// One packet.
  struct Packet {
    std::vector<std::uint8_t> bytes;
    bool err = false;
  };
  /// Takes the next beat; true if it ends a packet, which is then done().back().
  bool add(const Beat& beat) {
    constexpr unsigned width = beat_bytes<Beat>();
    if (beat.bytes < 1 || beat.bytes > width || (!beat.last && beat.bytes != width)) {
      throw Failure("beat with " + std::to_string(beat.bytes) + " bytes, last " +
                    std::to_string(beat.last));
    }
    for (unsigned k = 0; k < beat.bytes; ++k) open_.bytes.push_back(get_byte(beat.data, k));
    if (!beat.last) return false;
    open_.err = beat.err;
    done_.push_back(std::move(open_));
    open_ = {};
    return true;
  }
  /// Whole packets so far.
  std::vector<Packet>& done() { return done_; }
  /// True between packets.
  bool at_rest() const { return open_.bytes.empty(); }

 private:
  Packet open_;
  std::vector<Packet> done_;
};

}  // namespace roci::test
