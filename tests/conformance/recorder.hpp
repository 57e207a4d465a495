// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A frame port that remembers what crossed it, for the capture of a scenario.
#pragma once

#include "conformance/frame_port.hpp"

#include <string>

namespace roci::conformance {

/// In front of another port.
class Recorder final : public FramePort {
 public:
  /// @param wire  outlives this
  explicit Recorder(FramePort& wire) : wire_(wire) {}

  void send(std::span<const uint8_t> frame, bool bad_fcs) override;
  std::optional<ReceivedFrame> receive() override;
  Time now() const override { return wire_.now(); }
  void advance(Time until) override { wire_.advance(until); }
  Time wire_delay() const override { return wire_.wire_delay(); }

  /// Writes all of it as pcapng, the tester's interface as "tester". @param comment  of the first frame
  void write(const std::string& path, const std::string& comment) const;

 private:
  struct Crossed {
    ReceivedFrame frame;
    bool sent;
  };
  FramePort& wire_;
  std::vector<Crossed> crossed_;
};

}  // namespace roci::conformance
