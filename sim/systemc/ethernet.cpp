// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "systemc/ethernet.hpp"

#include <memory>

namespace roci::sim {

// A module's name goes by value, as SystemC has it: its copies are counted.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
EthernetWire::EthernetWire(sc_core::sc_module_name name, const sc_core::sc_time& latency)
    : sc_module(name), latency_(latency) {
  SC_HAS_PROCESS(EthernetWire);
  in.bind(*this);
  SC_METHOD(deliver);
  sensitive << queue_.get_event();
  dont_initialize();
}

void EthernetWire::write(const EthernetFrame& frame) {
  ++frames_;
  // The queue keeps a reference; deliver() ends it.
  queue_.notify(*new EthernetFrame(frame), latency_);
}

void EthernetWire::deliver() {
  while (const EthernetFrame* frame = queue_.get_next_transaction()) {
    const std::unique_ptr<const EthernetFrame> owned(frame);
    out.write(*owned);
  }
}

}  // namespace roci::sim
