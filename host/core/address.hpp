// SPDX-License-Identifier: BSD-2-Clause-Patent
#pragma once

#include <roci/transport.hpp>

#include <optional>
#include <string>

namespace roci {

/// The MAC address that a GID itself tells: link-local ones with an EUI-64 made from a MAC address
/// (RFC 4291 appendix A), and multicast ones (RFC 2464 §7).
std::optional<MacAddress> mac_from_gid(const Gid& gid) noexcept;

/// Eight groups of four digits, as tools print GIDs.
std::string gid_text(const Gid& gid);

}  // namespace roci
