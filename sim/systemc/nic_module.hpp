// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The NIC as a SystemC module with TLM-2.0 sockets, around the same model as everywhere in sim/.
//
//            ┌───────────┐ eth_out ─► EthernetFrame
//   bar ───► │ NicModule │ eth_in  ◄─ EthernetFrame
//   dma ◄─── │           │ interrupts ─► Interrupt
//            └───────────┘
//
// Does not: time the memory behind `dma` (NicConfig::memory does, in cycles of the NIC: a target answers
// at once and must not wait); support DMI.
#pragma once

#include <cstdint>
#include <memory>

#include <systemc>
#include <tlm>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include "fabric/fabric.hpp"
#include "host_memory/dma_target.hpp"
#include "model/nic.hpp"
#include "systemc/ethernet.hpp"

namespace roci::sim {

/// Whose memory a DMA transaction means: the AXI user field. On every transaction of `dma`.
struct FunctionExtension : tlm::tlm_extension<FunctionExtension> {
  uint16_t function = 0;
  tlm_extension_base* clone() const override { return new FunctionExtension(*this); }
  void copy_from(const tlm_extension_base& from) override {
    function = static_cast<const FunctionExtension&>(from).function;
  }
};

/// An interrupt that the NIC raises.
struct Interrupt {
  unsigned function = 0;
  unsigned vector = 0;
};

/// One NIC.
class NicModule : public sc_core::sc_module,
                  private DmaTarget,
                  private tlm::tlm_analysis_if<EthernetFrame> {
 public:
  /// BAR0 of all functions: address = function << Chip::kBarBits | offset. Accesses are 8 bytes, aligned.
  /// A write is posted; a read returns when the NIC has answered, so its caller is a thread. What the
  /// NIC refuses is TLM_ADDRESS_ERROR_RESPONSE, other sizes TLM_BURST_ERROR_RESPONSE.
  tlm_utils::simple_target_socket<NicModule, 64> bar{"bar"};
  /// Host memory. Anything but TLM_OK_RESPONSE is a bus error to the NIC.
  tlm_utils::simple_initiator_socket<NicModule, 512> dma{"dma"};
  tlm::tlm_analysis_port<EthernetFrame> eth_out{"eth_out"};
  sc_core::sc_export<tlm::tlm_analysis_if<EthernetFrame>> eth_in{"eth_in"};
  tlm::tlm_analysis_port<Interrupt> interrupts{"interrupts"};

  /// @param config  of the NIC and of its memory's timing
  /// @param rate    of the Ethernet port
  /// @param cycles_per_wait  K: the NIC runs so many cycles, then lets the others run
  /// @throws std::invalid_argument for K = 0
  NicModule(sc_core::sc_module_name name, const NicConfig& config, Rate rate = {},
            unsigned cycles_per_wait = 16);

  /// Time of a cycle: 4 ns (wide) or 8 ns (narrow).
  sc_core::sc_time period() const { return period_; }
  Nic& nic() { return *nic_; }

 private:
  void run();
  void access(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  bool transfer(tlm::tlm_command command, uint16_t function, uint64_t address, uint8_t* data,
                size_t bytes);
  bool read(uint16_t function, uint64_t addr, std::span<uint8_t> out) override;
  bool write(uint16_t function, uint64_t addr, std::span<const uint8_t> data) override;
  void write(const EthernetFrame& frame) override;

  unsigned cycles_per_wait_;
  sc_core::sc_time period_;
  // The NIC's MAC: what the NIC sends in beats leaves as frames, and the other way round.
  std::unique_ptr<Fabric> mac_;
  std::unique_ptr<Nic> nic_;
};

}  // namespace roci::sim
