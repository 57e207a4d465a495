// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Helpers of the fabric tests: a NIC that streams frames as fast as it may, and frames to stream.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "fabric/fabric.hpp"
#include "wire/test_seed.hpp"
#include "wire/wire_codec.hpp"

namespace roci::sim {

using Bytes = std::vector<uint8_t>;

/// MAC of port n.
inline wirecodec::Mac mac_of(size_t port) {
  return {2, 0, 0, 0, 0, static_cast<uint8_t>(port + 1)};
}

/// The same as a number, for the switch.
inline uint64_t mac_number(size_t port) { return 0x020000000000 + port + 1; }

/// A RoCEv1 frame from one port to another.
inline wirecodec::Frame roce(size_t from, size_t to, uint8_t opcode, uint32_t qp, uint32_t psn,
                             size_t payload) {
  wirecodec::Path path;
  path.src_mac = mac_of(from);
  path.dst_mac = mac_of(to);
  path.sgid = wirecodec::gid_from_mac(path.src_mac);
  path.dgid = wirecodec::gid_from_mac(path.dst_mac);
  wirecodec::Frame frame = wirecodec::make_frame(path, opcode, qp, psn);
  for (size_t i = 0; i < payload; ++i) frame.payload.push_back(static_cast<uint8_t>(i * 7 + psn));
  return wirecodec::finish(frame);
}

/// A frame of any length that carries its number.
inline Bytes numbered(size_t length, uint32_t number) {
  Bytes frame(length);
  for (size_t i = 0; i < length; ++i) frame[i] = static_cast<uint8_t>(i + number);
  for (size_t i = 0; i < 4 && i + 12 < length; ++i) {
    frame[12 + i] = static_cast<uint8_t>(number >> (24 - 8 * i));
  }
  return frame;
}

/// The number of such a frame.
inline uint32_t number_of(std::span<const uint8_t> frame) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) number = number << 8 | frame[12 + i];
  return number;
}

/// Streams queued frames beat by beat whenever the port is ready, like a NIC with data in hand.
class Streamer {
 public:
  explicit Streamer(unsigned beat_bytes = 64) : beat_bytes_(beat_bytes) {}

  void queue(Bytes frame, bool bad = false) { frames_.push_back({std::move(frame), bad}); }

  /// What it offers in this cycle, or null.
  const Beat* offer() {
    if (frames_.empty() || paused) return nullptr;
    const auto& [bytes, bad] = frames_.front();
    beat_ = {};
    beat_.bytes = static_cast<uint8_t>(std::min<size_t>(beat_bytes_, bytes.size() - offset_));
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset_), beat_.bytes,
                beat_.data.begin());
    beat_.last = offset_ + beat_.bytes == bytes.size();
    beat_.bad = beat_.last && bad;
    return &beat_;
  }

  /// Clocks a port with what it offers.
  void clock(Port& port) {
    const Beat* beat = offer();
    const bool taken = beat != nullptr && port.tx_ready();
    port.clock(beat);
    if (!taken) return;
    ++beats;
    offset_ += beat_.bytes;
    if (beat_.last) {
      frames_.pop_front();
      offset_ = 0;
    }
  }

  bool idle() const { return frames_.empty(); }

  bool paused = false;
  uint64_t beats = 0;

 private:
  unsigned beat_bytes_;
  std::deque<std::pair<Bytes, bool>> frames_;
  size_t offset_ = 0;
  Beat beat_;
};

/// A frame put together from beats.
struct Assembled {
  Bytes bytes;
  bool bad = false;
  uint64_t first_cycle = 0;
  uint64_t last_cycle = 0;
  bool operator==(const Assembled&) const = default;
};

/// Puts the beats of a port together.
class Assembler {
 public:
  /// Call before the port is clocked.
  void look(const Port& port) {
    const Beat* beat = port.rx();
    if (beat == nullptr) return;
    if (current_.bytes.empty()) current_.first_cycle = port.cycle();
    current_.bytes.insert(current_.bytes.end(), beat->data.begin(),
                          beat->data.begin() + beat->bytes);
    if (!beat->last) return;
    current_.bad = beat->bad;
    current_.last_cycle = port.cycle();
    frames.push_back(std::move(current_));
    current_ = {};
  }

  std::vector<Assembled> frames;

 private:
  Assembled current_;
};

/// Two ports back to back; port 0 streams, port 1 is watched.
struct OneWay {
  explicit OneWay(FabricConfig config = {}) : fabric(config), source(config.link.beat_bytes) {}

  void cycle() {
    sink.look(fabric.port(1));
    source.clock(fabric.port(0));
    fabric.step();
  }
  void drain(uint64_t limit = 1'000'000) {
    for (uint64_t i = 0; i < limit && (!source.idle() || fabric.busy()); ++i) cycle();
  }

  Fabric fabric;
  Streamer source;
  Assembler sink;
};

}  // namespace roci::sim
