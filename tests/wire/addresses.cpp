// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "wire/addresses.hpp"

#include <cstdio>
#include <stdexcept>

namespace roci::wirecodec {

Gid gid_from_mac(const Mac& mac) {
  Gid gid{};
  gid[0] = 0xfe;
  gid[1] = 0x80;
  gid[8] = mac[0] ^ 0x02;
  gid[9] = mac[1];
  gid[10] = mac[2];
  gid[11] = 0xff;
  gid[12] = 0xfe;
  gid[13] = mac[3];
  gid[14] = mac[4];
  gid[15] = mac[5];
  return gid;
}

Gid gid_from_ipv4(uint32_t ipv4) {
  Gid gid{};
  gid[10] = gid[11] = 0xff;
  for (int i = 0; i < 4; ++i) gid[12 + i] = static_cast<uint8_t>(ipv4 >> (24 - 8 * i));
  return gid;
}

bool is_multicast(const Gid& gid) { return gid[0] == 0xff; }

bool is_multicast(const Mac& mac) { return (mac[0] & 1) != 0; }

Mac mac_from_mgid(const Gid& mgid) {
  bool mapped = mgid[10] == 0xff && mgid[11] == 0xff;
  for (int i = 2; i < 10; ++i) mapped = mapped && mgid[i] == 0;
  if (mapped) {
    return {0x01, 0x00, 0x5e, static_cast<uint8_t>(mgid[13] & 0x7f), mgid[14], mgid[15]};
  }
  return {0x33, 0x33, mgid[12], mgid[13], mgid[14], mgid[15]};
}

std::string to_string(const Mac& mac) {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
                mac[4], mac[5]);
  return text;
}

std::string to_string(const Gid& gid) {
  std::string text;
  for (size_t i = 0; i < gid.size(); i += 2) {
    char group[6];
    std::snprintf(group, sizeof group, "%s%02x%02x", i == 0 ? "" : ":", gid[i], gid[i + 1]);
    text += group;
  }
  return text;
}

Mac parse_mac(const std::string& text) {
  Mac mac{};
  unsigned b[6];
  int used = 0;
  if (std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4],
                  &b[5], &used) != 6 ||
      static_cast<size_t>(used) != text.size()) {
    throw std::invalid_argument("not a MAC address: " + text);
  }
  for (size_t i = 0; i < 6; ++i) mac[i] = static_cast<uint8_t>(b[i]);
  return mac;
}

}  // namespace roci::wirecodec
