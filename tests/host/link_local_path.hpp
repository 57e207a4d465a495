// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// How a test addresses a NIC of which it knows the MAC.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace roci::test {

/// The path from GID 0 to the GID 0 of the NIC with this MAC: link-local, EUI-64 (RFC 4291 2.5.1).
/// @param mac  first byte on the wire in bits 47:40
inline ibv_ah_attr link_local_path(uint64_t mac) {
  ibv_ah_attr attr{};
  uint8_t* gid = attr.grh.dgid.raw;
  gid[0] = 0xfe;
  gid[1] = 0x80;
  for (unsigned b = 0; b < 3; ++b) {
    gid[8 + b] = static_cast<uint8_t>(mac >> (40 - 8 * b));
    gid[13 + b] = static_cast<uint8_t>(mac >> (16 - 8 * b));
  }
  gid[8] ^= 2;
  gid[11] = 0xff;
  gid[12] = 0xfe;
  attr.grh.sgid_index = 0;
  attr.grh.hop_limit = 64;
  attr.is_global = 1;
  attr.port_num = 1;
  return attr;
}

}  // namespace roci::test
