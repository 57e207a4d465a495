// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The scripted peer: sends any frame, well-formed or not, and reads what the device sends, by the
// test side's own codec (tests/wire). It answers nothing by itself: the script does.
#pragma once

#include "conformance/frame_port.hpp"

#include "wire/aeth.hpp"
#include "wire/wire_codec.hpp"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace roci::conformance {

using wirecodec::Bytes;
using wirecodec::Frame;
namespace op = wirecodec::op;
namespace syndrome = wirecodec::syndrome;

/// ACK without flow control by credits, as most peers send it.
inline constexpr uint8_t kAck = 0x1f;

/// A frame of the device.
struct Packet {
  Time time = 0;
  Frame frame;

  uint8_t opcode() const { return frame.bth.opcode; }
  uint32_t psn() const { return frame.bth.psn; }
  /// An ACKNOWLEDGE with this syndrome.
  bool is_ack(uint8_t with) const {
    return opcode() == op::acknowledge && frame.aeth && frame.aeth->syndrome == with;
  }
};

/// PSN arithmetic of 24 bits.
inline uint32_t psn_add(uint32_t psn, int64_t ahead) {
  return static_cast<uint32_t>(psn + ahead) & 0xffffff;
}

/// The peer, at its end of the link.
class Peer {
 public:
  /// @param wire  outlives this
  Peer(FramePort& wire, const wirecodec::Mac& device_mac, const wirecodec::Gid& device_gid);

  static constexpr wirecodec::Mac kMac{0x02, 0, 0, 0, 0, 0x99};
  const wirecodec::Gid& gid() const { return path_.sgid; }
  /// Addresses of frames to the device.
  const wirecodec::Path& path() const { return path_; }
  FramePort& wire() { return wire_; }

  /// Fills in pad, PayLen and ICRC, and sends.
  void send(const Frame& frame);
  /// Sends exactly this, whatever is wrong with it.
  void send_as_is(const Frame& frame, bool bad_fcs = false);
  void send_bytes(const Bytes& bytes, bool bad_fcs = false);

  /// Lets time pass; what comes meanwhile stays for next().
  void wait(Time time);
  /// A piece of that, for who polls for something else: up to `until`, or less.
  void pass(Time until);
  /// The next frame, or nothing if none comes in this time.
  std::optional<Packet> next(Time within);
  /// What comes until the line was quiet for this time, in which what was sent has to leave, too.
  std::vector<Packet> collect(Time quiet = 50 * kMicrosecond);

  /// What was wrong with frames of the device, whichever script runs: fields that no device may send
  /// like that (wire.md 1).
  const std::vector<std::string>& complaints() const { return complaints_; }
  /// From now on frames go to another GID of the device and with a tag, and come likewise.
  void use_gid(const wirecodec::Gid& gid, std::optional<uint16_t> vid);
  /// From now on frames have this P_Key, and the device's own have to have that one.
  void use_pkey(uint16_t own, uint16_t of_device);

 private:
  void read_wire();
  void judge(const ReceivedFrame& received, const Frame& frame);

  FramePort& wire_;
  wirecodec::Path path_;
  uint16_t pkey_ = 0xffff;
  std::optional<uint16_t> vid_;
  std::deque<Packet> inbox_;
  std::vector<std::string> complaints_;
};

}  // namespace roci::conformance
