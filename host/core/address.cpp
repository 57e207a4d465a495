// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "address.hpp"

#include <roci/error.hpp>

#include <cerrno>
#include <cstring>

namespace roci {
namespace {

// ::ffff:a.b.c.d
bool is_mapped_ipv4(const Gid& gid) noexcept {
  static constexpr uint8_t PREFIX[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.bytes, PREFIX, sizeof PREFIX) == 0;
}

}  // namespace

bool is_multicast(const Gid& gid) noexcept {
  return gid.bytes[0] == 0xff || (is_mapped_ipv4(gid) && (gid.bytes[12] & 0xf0) == 0xe0);
}

bool is_link_local(const Gid& gid) noexcept {
  static constexpr uint8_t PREFIX[8] = {0xfe, 0x80};
  return std::memcmp(gid.bytes, PREFIX, sizeof PREFIX) == 0;
}

std::optional<MacAddress> mac_from_gid(const Gid& gid) noexcept {
  const uint8_t* g = gid.bytes;
  if (g[0] == 0xff) return MacAddress{{0x33, 0x33, g[12], g[13], g[14], g[15]}};
  if (is_multicast(gid)) {
    return MacAddress{{0x01, 0x00, 0x5e, static_cast<uint8_t>(g[13] & 0x7f), g[14], g[15]}};
  }
  if (!is_link_local(gid)) return std::nullopt;
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

void check_range(const char* field, unsigned value, unsigned low, unsigned high) {
  if (value < low || value > high) fail(EINVAL, "%s %u: %u to %u", field, value, low, high);
}

hwif::AddressVector path_from(Device& device, const ibv_ah_attr& attr) {
  if (!attr.is_global) {
    fail(EINVAL, "ah_attr.is_global is 0: RoCE needs a GRH: pass -g <index> to "
                 "ibv_*_pingpong, -x <index> to perftest, or set is_global and grh");
  }
  check_range("ah_attr.port_num", attr.port_num, 1, 1);
  const auto gids = device.gid_table();
  if (attr.grh.sgid_index >= gids.size() ||
      gids[attr.grh.sgid_index].type == hwif::GidType::NONE) {
    fail(EINVAL, "ah_attr.grh.sgid_index %u: that entry of the GID table is empty",
         attr.grh.sgid_index);
  }
  const GidEntry& source = gids[attr.grh.sgid_index];
  check_range("ah_attr.sl", attr.sl, 0, 7);
  if (attr.grh.flow_label >= 1u << 20) {
    fail(EINVAL, "ah_attr.grh.flow_label 0x%x has more than 20 bits", attr.grh.flow_label);
  }
  Gid dgid;
  std::memcpy(dgid.bytes, attr.grh.dgid.raw, sizeof dgid.bytes);
  using A = hwif::AddressVector;
  A path{};
  path.set<A::dgid>(dgid);
  path.set<A::dmac>(device.resolve(dgid));
  path.set<A::vlan_present>(source.vlan_present);
  path.set<A::vlan_id>(source.vlan_present ? source.vlan_id : uint16_t{0});
  path.set<A::sl>(attr.sl);
  path.set<A::sgid_index>(attr.grh.sgid_index);
  path.set<A::hop_limit>(attr.grh.hop_limit);
  path.set<A::traffic_class>(attr.grh.traffic_class);
  path.set<A::flow_label>(attr.grh.flow_label);
  return path;
}

ibv_ah_attr ah_from(const hwif::AddressVector& path) {
  using A = hwif::AddressVector;
  ibv_ah_attr attr{};
  const Gid dgid = path.get<A::dgid>();
  std::memcpy(attr.grh.dgid.raw, dgid.bytes, sizeof dgid.bytes);
  attr.grh.flow_label = path.get<A::flow_label>();
  attr.grh.sgid_index = path.get<A::sgid_index>();
  attr.grh.hop_limit = path.get<A::hop_limit>();
  attr.grh.traffic_class = path.get<A::traffic_class>();
  attr.sl = path.get<A::sl>();
  attr.is_global = 1;
  attr.port_num = 1;
  return attr;
}

}  // namespace roci
