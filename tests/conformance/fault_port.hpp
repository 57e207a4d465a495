// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A device that does something wrong, as far as the wire can show it: changes what comes from a good
// one. It shows that the scenarios can fail.
#pragma once

#include "conformance/frame_port.hpp"

#include <deque>
#include <string>
#include <vector>

namespace roci::conformance {

/// Between a device and the peer.
class FaultPort final : public FramePort {
 public:
  /// @param fault  one of names()
  /// @param wire   outlives this
  /// @throws std::invalid_argument for another name
  FaultPort(FramePort& wire, const std::string& fault);
  static std::vector<std::string> names();

  void send(std::span<const uint8_t> frame, bool bad_fcs) override { wire_.send(frame, bad_fcs); }
  std::optional<ReceivedFrame> receive() override;
  Time now() const override { return wire_.now(); }
  void advance(Time until) override { wire_.advance(until); }
  Time wire_delay() const override { return wire_.wire_delay(); }

 private:
  FramePort& wire_;
  size_t fault_ = 0;
  std::deque<ReceivedFrame> again_;
};

}  // namespace roci::conformance
