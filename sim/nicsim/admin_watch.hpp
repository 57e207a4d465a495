// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Reads along what the programs of one NIC ask of it by their admin queues, as an analyser on the bus
// would: which queue pair goes where, where completions will be written. It changes nothing, and the
// chip knows nothing of it.
#pragma once

#include <roci_hwif.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace roci::sim {

/// The admin queues of the functions of one NIC. What the firmware refuses is seen all the same.
class AdminWatch {
 public:
  /// Reads memory of a function. @return false: no such memory
  using Read = std::function<bool(unsigned function, uint64_t address, std::span<uint8_t> out)>;

  /// What is told; any may be empty.
  struct Events {
    std::function<void(unsigned function, uint32_t qpn, const hwif::ModifyQpInput&)> modify_qp;
    std::function<void(unsigned function, uint32_t qpn)> destroy_qp;
  };

  AdminWatch(Read read, Events events) : read_(std::move(read)), events_(std::move(events)) {}

  /// A write of BAR0, before the NIC sees it.
  void written(unsigned function, uint32_t offset, uint64_t value);
  /// Whether an address is in a completion ring of the function.
  bool in_completion_ring(unsigned function, uint64_t address) const;
  /// The client of a function is gone.
  void left(unsigned function) { functions_.erase(function); }

 private:
  struct Ring {
    uint64_t address;
    uint64_t bytes;
  };
  struct Function {
    uint64_t commands = 0;  // address of the ring
    unsigned log2 = 0;
    uint16_t next = 0;
    std::vector<Ring> cqs;
  };

  void look(unsigned function, Function& f, uint16_t end);
  void look(unsigned function, Function& f, const hwif::AdminCommand& command);

  Read read_;
  Events events_;
  std::map<unsigned, Function> functions_;
};

}  // namespace roci::sim
