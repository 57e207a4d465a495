// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Address handles, and the address of who sent a message.
#include "address.hpp"

#include <roci/ah.hpp>
#include <roci/error.hpp>

#include <endian.h>

#include <cerrno>
#include <cstring>

namespace roci {
namespace {

// Index of a GID of ours to answer from, or -1. A message to a multicast group names none of ours; then
// it is the first of the sender's kind.
int source_index(const std::vector<GidEntry>& gids, const Gid& to, const Gid& sender) {
  for (size_t i = 0; i < gids.size(); ++i) {
    if (gids[i].type == hwif::GidType::NONE) continue;
    const bool fits = is_multicast(to) ? is_link_local(gids[i].gid) == is_link_local(sender)
                                       : gids[i].gid == to;
    if (fits) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

Ah::Ah(Pd& pd, const ibv_ah_attr& attr) : ibv_ah{}, pd_(pd) {
  pd.device().check_alive();
  vector_ = path_from(pd.device(), attr);
  pd.add_user();
}

Ah::~Ah() { pd_.remove_user(); }

ibv_ah_attr sender_of(Device& device, const ibv_wc& wc, const ibv_grh* grh) {
  if (!(wc.wc_flags & IBV_WC_GRH)) {
    fail(EINVAL, "wc.wc_flags 0x%x: without IBV_WC_GRH nobody is named: only receives of UD have it",
         wc.wc_flags);
  }
  const uint32_t first = be32toh(grh->version_tclass_flow);
  if (first >> 28 != 6) {
    fail(EINVAL, "grh: version %u: RoCE v1 has 6: it is the first 40 bytes of the receive", first >> 28);
  }
  Gid sender, to;
  std::memcpy(sender.bytes, grh->sgid.raw, sizeof sender.bytes);
  std::memcpy(to.bytes, grh->dgid.raw, sizeof to.bytes);
  const int index = source_index(device.gid_table(), to, sender);
  if (index < 0) fail(ENOENT, "grh.dgid %s: no entry of the GID table to answer from",
                      gid_text(to).c_str());
  ibv_ah_attr attr{};
  std::memcpy(attr.grh.dgid.raw, sender.bytes, sizeof sender.bytes);
  attr.grh.sgid_index = static_cast<uint8_t>(index);
  attr.grh.flow_label = first & 0xfffff;
  attr.grh.traffic_class = first >> 20 & 0xff;
  attr.grh.hop_limit = grh->hop_limit;
  attr.is_global = 1;
  attr.sl = wc.sl;
  attr.dlid = wc.slid;
  attr.src_path_bits = wc.dlid_path_bits;
  attr.port_num = 1;
  return attr;
}

}  // namespace roci
