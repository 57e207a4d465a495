// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A NIC in its machine: a chip, the host memory behind its AXI master, a port of the fabric, BAR0
// accesses one after the other, interrupts. Advances cycle by cycle and knows when it rests.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "fabric/fabric.hpp"
#include "host_memory/host_memory.hpp"
#include "model/chip.hpp"

namespace roci::sim {

/// Configuration of one NIC.
struct NicConfig {
  ChipConfig chip = ChipConfig::wide;
  HostMemoryConfig memory;  ///< data_bytes is set from the chip
  uint64_t seed = 1;
  /// Cycles without anything under way after which the NIC rests: longer than any silent stretch of
  /// its inner work (the firmware's look at its queues).
  unsigned rest_cycles = 4096;
};

/// One NIC. Used by one thread at a time.
class Nic {
 public:
  /// Called with (function, vector) when the NIC raises an interrupt.
  using Interrupt = std::function<void(unsigned, unsigned)>;
  /// Called with the value of a BAR read and whether the NIC answered with an error.
  using ReadDone = std::function<void(uint64_t, bool)>;

  /// @param target  memory of the host; outlives the NIC
  /// @param port    of the fabric; outlives the NIC; may be null (no link)
  Nic(const NicConfig& config, DmaTarget& target, Port* port);

  /// Queues a posted write of BAR0 behind all accesses before it.
  void bar_write(unsigned function, uint32_t offset, uint64_t value);
  /// Queues a read of BAR0.
  void bar_read(unsigned function, uint32_t offset, ReadDone done);
  /// BAR0 accesses that are queued or under way.
  size_t waiting() const { return accesses_.size(); }
  void on_interrupt(Interrupt handler) { interrupt_ = std::move(handler); }

  /// One cycle; clocks the port, too.
  void step();
  /// Cycles so far, skipped time included.
  uint64_t cycle() const { return cycle_; }
  /// Cycles that were really simulated.
  uint64_t simulated_cycles() const { return simulated_; }

  /// Nothing is under way at the NIC's boundary or inside, since `rest_cycles`.
  bool at_rest() const { return quiet_ >= config_.rest_cycles && accesses_.empty(); }
  /// At rest: ticks of 4.096 µs until its next timer acts; nothing if none runs.
  std::optional<uint32_t> ticks_to_expiry() const;
  /// At rest: lets `ticks` of 4.096 µs pass at once.
  void skip_ticks(uint32_t ticks);

  /// Resets the chip as at power-up; BAR accesses that wait are dropped.
  void reset();
  const ChipOutputs& outputs() const { return *out_; }
  HostMemory& memory() { return memory_; }
  unsigned data_bytes() const { return chip_->data_bytes(); }
  unsigned tick_cycles() const { return chip_->tick_cycles(); }

 private:
  struct Access {
    bool write = false;
    uint32_t address = 0;
    uint64_t data = 0;
    ReadDone done;
  };

  void apply_bar();
  void watch_bar();

  NicConfig config_;
  std::unique_ptr<Chip> chip_;
  HostMemory memory_;
  Port* port_;
  Interrupt interrupt_;
  ChipInputs in_;
  const ChipOutputs* out_ = nullptr;
  std::deque<Access> accesses_;
  bool address_sent_ = false;  // of the access in front
  bool data_sent_ = false;
  unsigned reset_left_ = 8;
  uint64_t cycle_ = 0;
  uint64_t simulated_ = 0;
  unsigned quiet_ = 0;
};

}  // namespace roci::sim
