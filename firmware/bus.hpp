// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The seam between the firmware and the hardware: everything that leaves the CPU goes through here.
//
// On the target (target/bus_target.hpp) these are the registers of rtl/cpu/cpu_registers.sv; in
// tests/firmware a model of the hardware stands behind the same functions. Nothing here waits for
// anything without a bound in hardware.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "config.hpp"
#include "roci_hwif.hpp"

namespace roci::fw {

inline constexpr unsigned FNS = 1u << FN_BITS;

/// What the admin engine exchanges with the firmware, one per function (cpu_pkg.sv).
struct Slot {
  hwif::AdminCommand command;      // written by hardware
  alignas(8) uint8_t input[128];   // written by hardware, if the command has an input
  uint8_t free[64];
};
static_assert(sizeof(Slot) == 256);

/// Bits of status().
enum Status : uint32_t {
  STATUS_COMMAND = 1u << 0,        // a command waits
  STATUS_COPY_BUSY = 1u << 1,      // a host copy is under way
  STATUS_EVENT_BUSY = 1u << 2,     // the event port is not free
  STATUS_PORT_WRITTEN = 1u << 3,   // the host wrote a register of the port
  STATUS_RESETTING = 1u << 4,      // a function is being reset
  STATUS_BELL_ERROR = 1u << 5,     // a doorbell was ignored
  STATUS_QUEUE_FAILED = 1u << 6,   // an admin queue is in state ERROR
  STATUS_COPY_ERROR = 1u << 7,     // the last host copy had a bus error
};

/// What becomes of a function (cpu_pkg::admin_order_e).
enum class Order : uint32_t { RELEASE = 1, RESET = 2, RESET_DONE = 3 };

/// Answer of next_command().
struct NextCommand {
  bool valid;
  bool input_error;                // the input could not be read
  bool has_input;                  // it is in the slot
  uint8_t fn;
};

/// Address of a context word as the hardware takes it, and first half of a list header.
constexpr uint32_t ctx_address(hwif::CtxColumn column, uint32_t index, uint32_t word) {
  return index << 16 | static_cast<uint32_t>(column) << 10 | word;
}

}  // namespace roci::fw

#include "bus_target.hpp"

// bus_target.hpp defines in namespace roci::fw::bus:
//
//   uint32_t clock()                            device clock in cycles of the core clock, low half
//   uint32_t status()                           bits of Status
//   void clear_port_written()
//   uint32_t config(n)                          CONFIG register n, 0..3
//   NextCommand next_command()                  takes the next command, round robin
//   Slot& slot(fn)
//   void complete(fn, image, release, error)    32 bytes; may wait for room in a queue of four
//   void order(what, fn)                        may wait for a command fetch under way, RESET_DONE also
//                                               until every completion has its bus response
//   uint32_t enabled(), resetting(), failed()   one bit per function
//   uint32_t take_bell_errors()                 functions with an ignored doorbell; clears
//   void ctx_start_read(address)                starts an access, waits for the one before
//   void ctx_start_write(address, data)
//   uint64_t ctx_answer()                       waits for it; a write answers the state before
//   void ctx_list(list, index = 0)              starts a list (context.hpp); index is ORed into its own
//   bool ctx_failed()                           waits until idle; an access was never answered
//   void copy_to_host(fn, address, data, bytes) starts; done when STATUS_COPY_BUSY falls
//   void send_event(fn, type, object, cause, detail)   only if STATUS_EVENT_BUSY is 0
