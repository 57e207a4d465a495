// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The simulator's socket: a vfio-user client (host/transport/README.md has the protocol).
#pragma once

#include <roci/transport.hpp>

#include <memory>
#include <string>
#include <vector>

namespace roci {

/// A GID of a port as a NIC reports it without being opened.
struct PublishedGid {
  unsigned index;
  Gid gid;
  hwif::GidType type;
};

/// What a NIC tells about itself on a connection that takes no function.
struct NicInfo {
  /// "roci0".
  std::string name;
  /// Number in the name.
  unsigned number = 0;
  /// Path of the socket.
  std::string socket;
  /// EUI-64 in network order.
  hwif::ByteArray<8> node_guid{};
  MacAddress mac{};
  bool link_up = false;
  uint32_t speed_mbps = 0;
  /// Largest path MTU in use.
  hwif::Mtu active_mtu = hwif::Mtu::MTU_4096;
  /// HWIF_HASH of the device.
  uint64_t hwif_hash = 0;
  unsigned functions_free = 0;
  /// Length of the GID table.
  unsigned gid_table_length = 0;
  std::vector<PublishedGid> gids;
  std::vector<uint16_t> pkeys;
};

/// NICs served in a directory: a live DIR/roci<i>.sock each, in order of i. Dead sockets are left out
/// with a log line. Takes no function of any NIC.
/// @param directory  value of ROCI_SIM
/// @param filter     value of ROCI_DEVICES: names separated by commas, or empty for all
std::vector<NicInfo> list_simulated_nics(const std::string& directory, const std::string& filter);

/// Asks one NIC. @throws Error if nothing answers there
NicInfo query_simulated_nic(const std::string& socket);

/// Knobs of the simulator's transport.
struct SimulatorOptions {
  /// Memory of the program is read and written by messages even if the simulator could reach it.
  bool force_messages = false;
  /// How long a reply may take.
  std::chrono::milliseconds timeout{60000};
};

/// Connects to a socket and takes a function there.
/// @throws Error  ENODEV: nothing answers; EBUSY: no function free; EPROTO: not our protocol
std::unique_ptr<Transport> connect_simulator(const std::string& socket, SimulatorOptions options = {});

}  // namespace roci
