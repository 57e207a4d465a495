// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/recorder.hpp"

#include "capture/pcapng_writer.hpp"

#include <algorithm>

namespace roci::conformance {

void Recorder::send(std::span<const uint8_t> frame, bool bad_fcs) {
  crossed_.push_back({{now(), {frame.begin(), frame.end()}, bad_fcs}, true});
  wire_.send(frame, bad_fcs);
}

std::optional<ReceivedFrame> Recorder::receive() {
  auto frame = wire_.receive();
  if (frame) crossed_.push_back({*frame, false});
  return frame;
}

void Recorder::write(const std::string& path, const std::string& comment) const {
  std::vector<const Crossed*> order;  // received frames are read later than they came
  for (const Crossed& c : crossed_) order.push_back(&c);
  std::stable_sort(order.begin(), order.end(), [](const Crossed* a, const Crossed* b) {
    return a->frame.time < b->frame.time;
  });
  sim::PcapngWriter writer(path, {"tester"}, "roci-conformance");
  for (const Crossed* c : order) {
    writer.write(0, c->frame.time, c->frame.bytes,
                 c->sent ? sim::CaptureDirection::outbound : sim::CaptureDirection::inbound,
                 c->frame.bad_fcs, c == order.front() ? comment : std::string());
  }
  writer.flush();
}

}  // namespace roci::conformance
