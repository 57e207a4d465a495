// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "capture/fabric_capture.hpp"

#include <stdexcept>

namespace roci::sim {

FabricCapture::FabricCapture(Fabric& fabric, const std::string& path,
                             const std::vector<std::string>& interfaces, unsigned ns_per_cycle)
    : fabric_(fabric), writer_(path, interfaces), ns_per_cycle_(ns_per_cycle) {
  if (interfaces.size() != fabric.ports()) {
    throw std::invalid_argument("capture needs one interface name per port");
  }
  fabric.add_tap([this](const TapEvent& event) { record(event); });
}

void FabricCapture::record(const TapEvent& event) {
  const bool sent = event.direction == TapEvent::Direction::sent;
  std::string comment = event.comment;
  if (event.lost && !sent) comment = "lost on the last link: " + comment;
  writer_.write(event.port, event.cycle * ns_per_cycle_, event.bytes,
                sent ? CaptureDirection::outbound : CaptureDirection::inbound, event.bad, comment);
}

void FabricCapture::finish() {
  fabric_.finish_taps();
  writer_.flush();
}

}  // namespace roci::sim
