// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What an administrator would do with a card: gives each port its GIDs, through the admin queue of
// the management function.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/world.hpp"
#include "server/connection.hpp"

namespace roci::sim {

/// GID 0: link-local from the MAC (EUI-64). GID 1 of NIC i: ::ffff:10.0.0.(i+1). Both RoCEv1.
std::array<std::array<uint8_t, 16>, 2> default_gids(uint64_t mac, unsigned index);

/// Holds the management function of a NIC. Calls throw Error if the firmware refuses.
class PortManager {
 public:
  explicit PortManager(WorldNic& nic);
  ~PortManager();
  PortManager(const PortManager&) = delete;
  PortManager& operator=(const PortManager&) = delete;

  /// Sets an entry of the GID table, RoCEv1. @param vlan  that it belongs to, if to any
  void set_gid(unsigned entry, const std::array<uint8_t, 16>& gid,
               std::optional<uint16_t> vlan = std::nullopt);
  /// Sets the MAC address, first wire byte in bits 47:40.
  void set_mac(uint64_t mac);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Writes the default GIDs into the port of a NIC.
void set_up_port(World& world, unsigned index);

/// The NIC as the server shows it.
ServedNic describe(World& world, unsigned index);

/// One counter.
uint64_t read_counter(WorldNic& nic, hwif::Counter counter);
/// All counters that have a name.
std::vector<std::pair<std::string, uint64_t>> read_counters(WorldNic& nic);

}  // namespace roci::sim
