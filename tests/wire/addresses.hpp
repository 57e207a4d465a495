// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// MAC addresses and GIDs of the test side, and the rules that tie them together (wire.md §1.8).
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace roci::wirecodec {

using Mac = std::array<uint8_t, 6>;   ///< in wire order
using Gid = std::array<uint8_t, 16>;  ///< in wire order

/// Link-local GID of a MAC: fe80::/64 and the modified EUI-64.
Gid gid_from_mac(const Mac& mac);

/// GID of an IPv4 address: ::ffff:a.b.c.d.
/// @param ipv4  address in host order, 0x0a000001 = 10.0.0.1
Gid gid_from_ipv4(uint32_t ipv4);

/// ffxx:: is a multicast GID (MGID).
bool is_multicast(const Gid& gid);

/// Bit 0 of the first byte: group address (broadcast included).
bool is_multicast(const Mac& mac);

/// Destination MAC of an MGID: 33:33 and its last four bytes; an IPv4-mapped group
/// (ff0e::ffff:a.b.c.d) maps to 01:00:5e and the low 23 bits instead.
Mac mac_from_mgid(const Gid& mgid);

/// "02:00:00:00:00:01"
std::string to_string(const Mac& mac);

/// Eight groups of four hex digits, not shortened.
std::string to_string(const Gid& gid);

/// Parses "02:00:00:00:00:01". @throws std::invalid_argument on anything else
Mac parse_mac(const std::string& text);

}  // namespace roci::wirecodec
