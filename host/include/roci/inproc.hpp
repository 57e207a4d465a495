// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A NIC in the same process: deterministic tests and benchmarks. Time passes only when the host stack
// waits for something.
#pragma once

#include <roci/transport.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <span>

namespace roci {

/// Memory as an in-process NIC sees it: what the bus is to a card.
class InprocMemory {
 public:
  virtual ~InprocMemory() = default;
  /// Reads out.size() bytes. @return false if any byte is not mapped (a bus error)
  virtual bool read(uint64_t address, std::span<uint8_t> out) = 0;
  /// Writes; the byte with the highest address is stored last, with release order.
  /// @return false if any byte is not mapped or not writable; nothing is written then
  virtual bool write(uint64_t address, std::span<const uint8_t> data) = 0;
};

/// What the simulator (or a software model) implements. Every call is made with mutex() held, and the
/// NIC calls memory and interrupts only from within these calls.
class InprocNic {
 public:
  virtual ~InprocNic() = default;

  /// One lock for the whole simulation: all NICs that a step() runs share it.
  virtual std::recursive_mutex& mutex() = 0;

  /// Takes a function for a client, with its memory and what is called when a vector is raised (it
  /// only makes a note). @return the number of the function, or nothing if none is free
  virtual std::optional<unsigned> attach(InprocMemory& memory,
                                         std::function<void(unsigned vector)> interrupt) = 0;

  /// The client is gone: starts the reset of the function. `memory` is not used after this call.
  virtual void detach(unsigned function) = 0;

  /// One aligned 64-bit read of BAR0; takes as many cycles as it takes.
  virtual uint64_t bar_read(unsigned function, uint32_t offset) = 0;
  /// One aligned 64-bit write of BAR0, doorbells included.
  virtual void bar_write(unsigned function, uint32_t offset, uint64_t value) = 0;

  /// Lets the whole simulation (all NICs of it and their links) run for about `cycles` cycles.
  virtual void step(uint64_t cycles) = 0;

  /// Neighbour table of the fabric.
  virtual std::optional<Neighbour> resolve(const Gid& gid) = 0;
};

/// Knobs of the in-process transport.
struct InprocOptions {
  /// Cycles of one step while waiting and of an empty poll.
  uint64_t step_cycles = 64;
  /// An empty poll steps the NIC.
  bool step_when_idle = true;
  /// Cycles that stand for a millisecond of a timeout: how patient wait() is.
  uint64_t cycles_per_millisecond = 1000;
};

/// A transport to a function of `nic`, which outlives it.
/// @throws Error(EBUSY) if no function is free
std::unique_ptr<Transport> make_inproc_transport(InprocNic& nic, InprocOptions options = {});

}  // namespace roci
