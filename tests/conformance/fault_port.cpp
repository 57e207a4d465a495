// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/fault_port.hpp"

#include "wire/aeth.hpp"
#include "wire/wire_codec.hpp"

#include <algorithm>
#include <stdexcept>

namespace roci::conformance {

namespace {

using wirecodec::Frame;

// Frames that a fault touches are changed by it; then their ICRC is made good again.
struct Fault {
  const char* name;
  void (*change)(Frame&);
  bool twice = false;  // NAKs come twice
  Time late = 0;       // everything comes later
};

constexpr Fault kFaults[] = {
    {"migreq", [](Frame& f) { f.bth.mig_req = false; }},
    {"msn", [](Frame& f) { if (f.aeth) ++f.aeth->msn; }},
    {"immediate", [](Frame& f) {
       if (f.immdt) std::reverse(f.immdt->bytes.begin(), f.immdt->bytes.end());
     }},
    {"payload", [](Frame& f) { if (!f.payload.empty()) f.payload.back() ^= 0x80; }},
    {"pad", [](Frame& f) { if (!f.pad.empty()) f.pad.back() = 1; }},
    {"ack-psn", [](Frame& f) {
       if (f.bth.opcode == wirecodec::op::acknowledge) f.bth.psn = (f.bth.psn + 1) & 0xffffff;
     }},
    {"nak-code", [](Frame& f) {
       if (f.aeth && f.aeth->syndrome == wirecodec::syndrome::nak_invalid_request) {
         f.aeth->syndrome = wirecodec::syndrome::nak_remote_access;
       }
     }},
    {"naks-twice", nullptr, true},
    {"late", nullptr, false, 20 * kMicrosecond},
};

}  // namespace

std::vector<std::string> FaultPort::names() {
  std::vector<std::string> names;
  for (const Fault& fault : kFaults) names.emplace_back(fault.name);
  return names;
}

FaultPort::FaultPort(FramePort& wire, const std::string& name) : wire_(wire) {
  const auto all = names();
  fault_ = static_cast<size_t>(std::find(all.begin(), all.end(), name) - all.begin());
  if (fault_ == all.size()) throw std::invalid_argument("no fault: " + name);
}

std::optional<ReceivedFrame> FaultPort::receive() {
  if (!again_.empty()) {
    const ReceivedFrame frame = again_.front();
    again_.pop_front();
    return frame;
  }
  auto received = wire_.receive();
  if (!received) return received;
  const Fault& fault = kFaults[fault_];
  received->time += fault.late;
  Frame frame = wirecodec::parse(received->bytes);
  if (fault.twice && frame.aeth &&
      wirecodec::aeth_kind(frame.aeth->syndrome) == wirecodec::AethKind::nak) {
    again_.push_back(*received);
  }
  if (fault.change != nullptr) {
    fault.change(frame);
    received->bytes = wirecodec::encode(wirecodec::with_icrc(frame));
  }
  return received;
}

}  // namespace roci::conformance
