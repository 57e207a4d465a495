// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Several NICs and the links between them, in one process and one thread: deterministic by seed. Each
// NIC is an InprocNic, so that the real host core drives it (tests, benches); nicsim uses the same
// world behind its sockets.
#pragma once

#include <roci/inproc.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "fabric/fabric.hpp"
#include "model/dma_guard.hpp"
#include "model/nic.hpp"

namespace roci::sim {

/// Configuration of a world. NIC i has the MAC 02:00:00:00:00:(i+1).
struct WorldConfig {
  unsigned nics = 2;
  ChipConfig chip = ChipConfig::wide;
  FabricConfig fabric;       ///< beat width is set from the NICs; ports beyond them are for testers
  HostMemoryConfig memory;
  uint64_t seed = 1;
  bool skip_time = true;     ///< skip to the next timer while nothing else is under way
  bool guard = false;        ///< DmaGuardError when a NIC writes what nobody registered
};

class World;

/// A NIC of the world as the host core's in-process transport sees it.
class WorldNic final : public InprocNic {
 public:
  WorldNic(World& world, unsigned index);

  std::recursive_mutex& mutex() override;
  std::optional<unsigned> attach(InprocMemory& memory,
                                 std::function<void(unsigned)> interrupt) override;
  void detach(unsigned function) override;
  /// Takes function 0, the management function, which attach() gives to nobody; detach(0) ends it.
  void attach_management(InprocMemory& memory, std::function<void(unsigned)> interrupt);
  uint64_t bar_read(unsigned function, uint32_t offset) override;
  /// Queues a posted write; lets the world run first while very many wait.
  void bar_write(unsigned function, uint32_t offset, uint64_t value) override;
  void step(uint64_t cycles) override;
  std::optional<Neighbour> resolve(const Gid& gid) override;

  /// Reads memory of a function as the NIC would, without time passing. @return false: bus error
  bool peek(unsigned function, uint64_t addr, std::span<uint8_t> out) {
    return memories_.read(static_cast<uint16_t>(function), addr, out);
  }

  Nic& nic() { return *nic_; }
  const Nic& nic() const { return *nic_; }
  /// What watches its writes; null unless the world's configuration asks for it.
  const DmaGuard* guard() const { return guard_.get(); }
  /// First MAC byte on the wire in bits 47:40.
  uint64_t mac() const { return 0x020000000001u + index_; }

 private:
  friend class World;
  // Memory of all functions, by the AXI user field; unmapped functions get bus errors.
  class Memories final : public DmaTarget {
   public:
    explicit Memories(const WorldNic& nic) : nic_(nic) {}
    bool read(uint16_t function, uint64_t addr, std::span<uint8_t> out) override;
    bool write(uint16_t function, uint64_t addr, std::span<const uint8_t> data) override;
    std::map<unsigned, InprocMemory*> owners;

   private:
    const WorldNic& nic_;
  };

  // As bar_write(), at once.
  void post(unsigned function, uint32_t offset, uint64_t value);

  World& world_;
  unsigned index_;
  Memories memories_;
  std::unique_ptr<DmaGuard> guard_;
  std::map<unsigned, std::function<void(unsigned)>> interrupts_;
  std::unique_ptr<Nic> nic_;
};

/// The NICs, their fabric, and time.
class World {
 public:
  /// Powers the NICs up and waits until their firmware is ready.
  /// @throws std::invalid_argument for an impossible configuration
  /// @throws std::runtime_error if a firmware does not come up
  explicit World(const WorldConfig& config);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() = default;

  unsigned size() const { return static_cast<unsigned>(nics_.size()); }
  WorldNic& nic(unsigned index) { return *nics_.at(index); }
  Fabric& fabric() { return *fabric_; }
  std::recursive_mutex& mutex() { return mutex_; }

  /// Lets everything run for `cycles` cycles, or until it rests.
  void run(uint64_t cycles);
  /// Lets a piece of time pass, `cycles` at most: for a tester that has to act at a certain time. At
  /// rest that is up to the next timer at once, else a few cycles.
  /// @return cycles that passed, at least 1
  uint64_t pass(uint64_t cycles);
  /// Nothing is under way anywhere and no timer runs: time stands still until somebody acts.
  bool frozen() const;
  /// Whether time may be skipped, if the configuration has it at all (it may at first): not while
  /// somebody outside the simulation may answer.
  void allow_skip(bool allowed) { may_skip_ = allowed; }
  /// Cycles of the world's clock, skipped time included.
  uint64_t cycle() const { return nics_.front()->nic().cycle(); }
  /// Functions of a NIC, the management function 0 included.
  unsigned functions() const { return config_.chip == ChipConfig::wide ? 16 : 8; }

 private:
  friend class WorldNic;
  bool at_rest() const;
  // `cycles` cycles, at rest or not.
  void advance(uint64_t cycles);
  // Ticks until the next timer acts; the largest number if none runs.
  uint32_t ticks_to_timer() const;
  // At rest: lets ticks pass at once.
  void skip(uint32_t ticks);

  WorldConfig config_;
  std::recursive_mutex mutex_;
  std::unique_ptr<Fabric> fabric_;
  std::vector<std::unique_ptr<WorldNic>> nics_;
  uint64_t quantum_ = 1;
  bool may_skip_ = true;
};

}  // namespace roci::sim
