// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "address.hpp"

#include <roci/error.hpp>

namespace roci {

std::optional<MacAddress> mac_from_gid(const Gid& gid) noexcept {
  const uint8_t* g = gid.bytes;
  if (g[0] == 0xff) return MacAddress{{0x33, 0x33, g[12], g[13], g[14], g[15]}};
  static constexpr uint8_t LINK_LOCAL[8] = {0xfe, 0x80};
  for (unsigned i = 0; i < sizeof LINK_LOCAL; ++i) {
    if (g[i] != LINK_LOCAL[i]) return std::nullopt;
  }
  if (g[11] != 0xff || g[12] != 0xfe) return std::nullopt;
  // The universal/local bit is inverted in the EUI-64.
  return MacAddress{{static_cast<uint8_t>(g[8] ^ 2), g[9], g[10], g[13], g[14], g[15]}};
}

std::string gid_text(const Gid& gid) {
  std::string text;
  for (unsigned i = 0; i < gid.size(); i += 2) {
    text += format("%s%02x%02x", i == 0 ? "" : ":", gid[i], gid[i + 1]);
  }
  return text;
}

}  // namespace roci
