// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// One Verilated NIC chip behind an interface that is the same for both configurations: the pins of
// roci_top, cycle by cycle. What is outside of the chip (host memory, links, BAR accesses) is nic.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fabric/beat.hpp"
#include "host_memory/axi.hpp"

namespace roci::sim {

/// The two builds of the chip (docs/architecture.md).
enum class ChipConfig : uint8_t { wide, narrow };

/// "wide" or "narrow".
std::string_view to_string(ChipConfig config);

/// What the outside shows the chip in a cycle. Pointers are null where nothing is valid.
struct ChipInputs {
  bool reset = false;
  // AXI4, host memory
  bool ar_ready = false;
  bool aw_ready = false;
  bool w_ready = false;
  const AxiRead* r = nullptr;
  const AxiWriteResponse* b = nullptr;
  // AXI4-Lite, BAR0; addresses are {function, offset}
  bool bar_aw_valid = false;
  uint32_t bar_aw_addr = 0;
  bool bar_w_valid = false;
  uint64_t bar_w_data = 0;
  bool bar_ar_valid = false;
  uint32_t bar_ar_addr = 0;
  // Ethernet
  bool tx_ready = false;
  const Beat* rx = nullptr;
  // ticks of 4.096 µs to skip
  uint32_t time_step = 0;
};

/// What the chip shows in the same cycle.
struct ChipOutputs {
  AxiMaster axi;
  bool bar_aw_ready = false;
  bool bar_w_ready = false;
  bool bar_b_valid = false;
  uint8_t bar_b_resp = 0;
  bool bar_ar_ready = false;
  bool bar_r_valid = false;
  uint64_t bar_r_data = 0;
  uint8_t bar_r_resp = 0;
  bool tx_valid = false;
  Beat tx;
  bool irq_valid = false;
  uint16_t irq_function = 0;
  uint8_t irq_vector = 0;
  bool ready = false;   ///< tables are cleared after reset
  bool active = false;  ///< something is under way inside
  bool expiry_valid = false;
  uint32_t expiry_ticks = 0;  ///< until the next timer acts; all ones: none runs
  uint32_t disabled_functions = 0;  ///< bit f: function f is being reset, its DMA fails
};

/// One chip. Used by one thread at a time, always the same one.
class Chip {
 public:
  virtual ~Chip() = default;

  /// Bytes of a beat: 64 or 8.
  virtual unsigned data_bytes() const = 0;
  /// Bits of a BAR0 offset; a function's slice is 2^this bytes.
  static constexpr unsigned kBarBits = 17;
  /// Cycles of a 4.096 µs tick.
  virtual unsigned tick_cycles() const = 0;

  /// Applies the inputs of this cycle. @return what the chip shows with them, valid until clock()
  virtual const ChipOutputs& settle(const ChipInputs& inputs) = 0;
  /// The clock edge that ends this cycle.
  virtual void clock() = 0;
};

/// Makes a chip. Its CPU starts with the firmware that the build made for it.
/// @param seed  for what the model leaves undefined
std::unique_ptr<Chip> make_chip(ChipConfig config, uint64_t seed);

}  // namespace roci::sim
