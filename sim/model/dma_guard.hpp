// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Watches a NIC from outside: every DMA write has to hit what the function registered.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <roci_hwif.hpp>

#include "host_memory/access_log.hpp"
#include "host_memory/dma_target.hpp"

namespace roci::sim {

/// The NIC wrote where nobody allowed it.
class DmaGuardError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Knows to the byte what the functions of a NIC let it write, and judges every write that reached
/// memory. It learns that as the hardware does, from the admin queues (BAR0 writes and the commands
/// in host memory), but knows nothing of the NIC. Allowed are: the completion ring of the admin
/// queue; output buffers while their command is outstanding; rings of CQs and EQs and memory of MRs
/// with a right to write, from the command that creates them until the completion of the one that
/// destroys them.
///
/// Does not: judge reads; look at keys (another MR of the function is as good); watch functions
/// whose memory is gone (those writes are bus errors).
class DmaGuard {
 public:
  /// @param memory  the functions' memory, where commands and page tables are
  explicit DmaGuard(DmaTarget& memory) : memory_(memory) {}

  /// Before the NIC gets a write of BAR0.
  void bar_write(uint16_t function, uint32_t offset, uint64_t value);
  /// After the NIC wrote to memory. @param cycle  for the message
  /// @throws DmaGuardError if any byte of it is not registered
  void wrote(uint64_t cycle, uint16_t function, uint64_t addr, std::span<const uint8_t> data);
  /// The client of a function is gone, and all that it registered.
  void forget(uint16_t function);

  /// Writes that were judged.
  uint64_t judged() const { return judged_; }

 private:
  using Ranges = std::vector<size_t>;
  // What a command made: its kind is the opcode that creates such objects.
  using Key = std::pair<hwif::AdminOpcode, uint32_t>;

  struct Object {
    Ranges ranges;
    hwif::CreateMrParams region{};  // of MRs
  };
  struct Command {
    hwif::AdminOpcode opcode{};
    uint32_t object = 0;
    Ranges output;
    Object made;
  };
  struct Function {
    uint64_t commands = 0;
    uint64_t completions = 0;
    unsigned log2 = 0;
    uint16_t posted = 0;
    Ranges rings;
    std::map<uint16_t, Command> outstanding;
    std::map<Key, Object> objects;
  };

  void enable(uint16_t number);
  void take_command(uint16_t number, uint64_t addr);
  void take_completion(uint16_t number, uint64_t addr);
  Ranges allow_region(uint16_t number, const hwif::CreateMrParams& region);
  Object made_by(uint16_t number, const hwif::AdminCommand& command);
  Object reregistered(uint16_t number, const hwif::AdminCommand& command);
  void revoke(Ranges& ranges);

  DmaTarget& memory_;
  RegionGuard guard_;
  std::map<uint16_t, Function> functions_;
  uint64_t judged_ = 0;
};

}  // namespace roci::sim
