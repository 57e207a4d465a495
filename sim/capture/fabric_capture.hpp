// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Writes what crosses the ports of a fabric into a pcapng file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capture/pcapng_writer.hpp"
#include "fabric/fabric.hpp"

namespace roci::sim {

/// A tap of a fabric that records every frame at every port: as sent (outbound) and as received
/// (inbound), with a comment when the link did something to it. A frame lost behind the switch
/// appears as inbound with the comment "lost on the last link: …".
class FabricCapture {
 public:
  /// Taps the fabric from now on.
  /// @param fabric        must not outlive this object once frames move
  /// @param path          file to create
  /// @param interfaces    one name per port, for example "roci0"
  /// @param ns_per_cycle  core clock period: 4 for wide, 8 for narrow
  /// @throws std::invalid_argument if the names do not match the ports, std::runtime_error if the
  ///         file cannot be created; writing errors come out of Fabric::step()
  FabricCapture(Fabric& fabric, const std::string& path, const std::vector<std::string>& interfaces,
                unsigned ns_per_cycle);

  /// Writes frames whose last bit is still on a wire, and hands all to the operating system.
  void finish();

  uint64_t frames() const { return writer_.frames(); }

 private:
  void record(const TapEvent& event);

  Fabric& fabric_;
  PcapngWriter writer_;
  unsigned ns_per_cycle_;
};

}  // namespace roci::sim
