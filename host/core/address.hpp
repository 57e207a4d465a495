// SPDX-License-Identifier: BSD-2-Clause-Patent
#pragma once

#include <roci/device.hpp>
#include <roci/transport.hpp>

#include <infiniband/verbs.h>

#include <optional>
#include <string>

namespace roci {

/// The MAC address that a GID itself tells: link-local ones with an EUI-64 made from a MAC address
/// (RFC 4291 appendix A), and multicast ones (RFC 2464 §7; RFC 1112 §6.4 if an IPv4 group is mapped).
std::optional<MacAddress> mac_from_gid(const Gid& gid) noexcept;

/// Whether it names a group: ff00::/8, or a mapped IPv4 group, ::ffff:224.0.0.0/100.
bool is_multicast(const Gid& gid) noexcept;

/// Whether it is of fe80::/64.
bool is_link_local(const Gid& gid) noexcept;

/// Eight groups of four digits, as tools print GIDs.
std::string gid_text(const Gid& gid);

/// The path as the device wants it. RoCE has no LIDs: everything is in the GRH. The VLAN is the one of
/// the source GID.
/// @throws Error  EINVAL names the field; EHOSTUNREACH: no MAC address is known for the GID
hwif::AddressVector path_from(Device& device, const ibv_ah_attr& attr);

/// The other way round.
ibv_ah_attr ah_from(const hwif::AddressVector& path);

/// @throws Error(EINVAL) that names the field, unless low ≤ value ≤ high
void check_range(const char* field, unsigned value, unsigned low, unsigned high);

}  // namespace roci
