// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Function 0 of a NIC: nicsim sets the port up with it, the benchmark times its commands.
#pragma once

#include "model/world.hpp"

namespace roci::sim {

/// The management function of a NIC of the world as a NIC of its own, for the in-process transport.
class ManagementNic final : public InprocNic {
 public:
  /// @param nic  outlives this
  explicit ManagementNic(WorldNic& nic) : nic_(nic) {}
  std::recursive_mutex& mutex() override { return nic_.mutex(); }
  std::optional<unsigned> attach(InprocMemory& memory,
                                 std::function<void(unsigned)> interrupt) override {
    nic_.attach_management(memory, std::move(interrupt));
    return 0;
  }
  void detach(unsigned function) override { nic_.detach(function); }
  uint64_t bar_read(unsigned function, uint32_t offset) override {
    return nic_.bar_read(function, offset);
  }
  void bar_write(unsigned function, uint32_t offset, uint64_t value) override {
    nic_.bar_write(function, offset, value);
  }
  void step(uint64_t cycles) override { nic_.step(cycles); }
  std::optional<Neighbour> resolve(const Gid& gid) override { return nic_.resolve(gid); }

 private:
  WorldNic& nic_;
};

}  // namespace roci::sim
