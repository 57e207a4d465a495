// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Ethernet between SystemC modules: whole frames through TLM analysis ports, and a wire for two of them.
#pragma once

#include <cstdint>
#include <vector>

// <systemc> first: it must see its own macros.
#include <systemc>
#include <tlm>
#include <tlm_utils/peq_with_get.h>

namespace roci::sim {

/// An Ethernet frame without FCS.
struct EthernetFrame {
  std::vector<uint8_t> bytes;
  bool bad = false;  ///< its FCS is wrong
};

/// One direction of a wire: gives frames on after a fixed time, in order.
class EthernetWire : public sc_core::sc_module, private tlm::tlm_analysis_if<EthernetFrame> {
 public:
  tlm::tlm_analysis_port<EthernetFrame> out{"out"};
  sc_core::sc_export<tlm::tlm_analysis_if<EthernetFrame>> in{"in"};

  /// @param latency  from `in` to `out`, the same for every frame
  EthernetWire(sc_core::sc_module_name name, const sc_core::sc_time& latency);
  /// Frames taken so far.
  uint64_t frames() const { return frames_; }

 private:
  void write(const EthernetFrame& frame) override;
  void deliver();

  sc_core::sc_time latency_;
  tlm_utils::peq_with_get<EthernetFrame> queue_{"queue"};
  uint64_t frames_ = 0;
};

}  // namespace roci::sim
