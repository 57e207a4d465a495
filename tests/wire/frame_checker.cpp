// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Deliberately not built on parse(): it works on byte offsets, as the hardware does, so that the
// two check each other.
#include "wire/frame_checker.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>

#include "wire/crc.hpp"
#include "wire/opcodes.hpp"

namespace roci::wirecodec {
namespace {

constexpr std::array kCounters = {
    DropCounter::fcs,   DropCounter::ethertype, DropCounter::mac,     DropCounter::vlan,
    DropCounter::oversize, DropCounter::ipver,  DropCounter::nxthdr,  DropCounter::paylen,
    DropCounter::tver,  DropCounter::gid,       DropCounter::opcode,  DropCounter::dest_qp,
    DropCounter::icrc,
};

constexpr unsigned kMaxPayload = 4096;  // largest path MTU
// GRH, BTH, XRCETH, RETH, ImmDt, payload, ICRC
constexpr size_t kMaxPacket = 40 + 12 + 4 + 16 + 4 + kMaxPayload + 4;

__attribute__((format(printf, 2, 3))) Verdict drop(DropCounter counter, const char* pattern, ...) {
  char text[200];
  va_list args;
  va_start(args, pattern);
  std::vsnprintf(text, sizeof text, pattern, args);
  va_end(args);
  return {counter, text};
}

// Bytes behind the end read as zero.
class Window {
 public:
  explicit Window(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  unsigned u8(size_t at) const { return at < bytes_.size() ? bytes_[at] : 0u; }
  unsigned u16(size_t at) const { return u8(at) << 8 | u8(at + 1); }
  unsigned u24(size_t at) const { return u16(at) << 8 | u8(at + 2); }
  template <size_t N>
  std::array<uint8_t, N> array(size_t at) const {
    std::array<uint8_t, N> out;
    for (size_t i = 0; i < N; ++i) out[i] = static_cast<uint8_t>(u8(at + i));
    return out;
  }
  Window from(size_t at) const {
    return Window(at < bytes_.size() ? bytes_.subspan(at) : std::span<const uint8_t>{});
  }
  size_t size() const { return bytes_.size(); }
  std::span<const uint8_t> first(size_t count) const { return bytes_.first(count); }

 private:
  std::span<const uint8_t> bytes_;
};

bool mac_passes(const Mac& dst, const FrameFilter& filter) {
  if (!filter.mac || dst == *filter.mac) return true;
  return std::ranges::any_of(filter.mgids,
                             [&dst](const Gid& mgid) { return mac_from_mgid(mgid) == dst; });
}

Verdict check_vlan(const Window& frame, const FrameFilter& filter) {
  const unsigned vid = frame.u16(14) & 0xfff;
  const unsigned inner = frame.u16(16);
  if (inner != 0x8915) return drop(DropCounter::vlan, "second VLAN tag 0x%04x", inner);
  if (vid == 0xfff) return drop(DropCounter::vlan, "VID 0xfff is reserved");
  if (vid != 0 && filter.vids && std::ranges::find(*filter.vids, vid) == filter.vids->end()) {
    return drop(DropCounter::vlan, "VID %u is not one of this port", vid);
  }
  return {};
}

// `packet` starts at the GRH (wire.md §1.1, §1.5).
Verdict check_paylen(const Window& packet) {
  const unsigned pay_len = packet.u16(4);
  const OpcodeInfo* info = opcode_info(static_cast<uint8_t>(packet.u8(40)));
  const unsigned ext = info ? info->ext_bytes() : 0;
  const unsigned pad = packet.u8(41) >> 4 & 3;
  const unsigned least = 12 + ext + pad + 4;
  if (pay_len % 4 != 0) {
    return drop(DropCounter::paylen, "PayLen %u is not a multiple of 4", pay_len);
  }
  if (40 + size_t{pay_len} > packet.size()) {
    return drop(DropCounter::paylen, "PayLen %u runs past the frame: %zu bytes from the GRH on",
                pay_len, packet.size());
  }
  if (pay_len < least) {
    return drop(DropCounter::paylen, "PayLen %u is too small, the headers need %u", pay_len, least);
  }
  if (pay_len - 12 - ext - 4 > kMaxPayload) {
    return drop(DropCounter::paylen, "payload of %u bytes exceeds 4096", pay_len - 12 - ext - 4);
  }
  return {};
}

Verdict check_gid(const Window& packet, const FrameFilter& filter) {
  if (!filter.gids) return {};
  const Gid dgid = packet.array<16>(24);
  const OpcodeInfo* info = opcode_info(static_cast<uint8_t>(packet.u8(40)));
  if (is_multicast(dgid)) {
    if (std::ranges::find(filter.mgids, dgid) == filter.mgids.end()) {
      return drop(DropCounter::gid, "MGID %s is not joined", to_string(dgid).c_str());
    }
    if (info != nullptr && info->transport != Transport::ud) {
      return drop(DropCounter::gid, "%s to a multicast GID", info->name);
    }
    return {};
  }
  if (std::ranges::find(*filter.gids, dgid) == filter.gids->end()) {
    return drop(DropCounter::gid, "DGID %s is not one of this port", to_string(dgid).c_str());
  }
  return {};
}

Verdict check_dest_qp(const Window& packet, const OpcodeInfo& info) {
  const unsigned qp = packet.u24(45);
  const bool group = is_multicast(packet.array<16>(24));
  if (qp == 0) return drop(DropCounter::dest_qp, "QP 0 does not exist on RoCE");
  if (qp == 0xffffff && info.transport != Transport::ud) {
    return drop(DropCounter::dest_qp, "%s to the multicast QP", info.name);
  }
  if (qp == 0xffffff && !group) {
    return drop(DropCounter::dest_qp, "multicast QP with a unicast DGID");
  }
  if (qp != 0xffffff && group) {
    return drop(DropCounter::dest_qp, "multicast DGID with QP 0x%x instead of 0xffffff", qp);
  }
  return {};
}

Verdict check_icrc(const Window& packet) {
  const size_t at = 40 + packet.u16(4) - 4;
  const uint32_t wire = packet.u8(at) | packet.u8(at + 1) << 8 | packet.u8(at + 2) << 16 |
                        uint32_t{packet.u8(at + 3)} << 24;
  const uint32_t computed = icrc(packet.first(at));
  if (wire == computed) return {};
  return drop(DropCounter::icrc, "ICRC is 0x%08x, must be 0x%08x", wire, computed);
}

}  // namespace

std::string counter_name(DropCounter counter) {
  switch (counter) {
    case DropCounter::none:
      return "";
    case DropCounter::fcs:
      return "rx_drop_fcs";
    case DropCounter::ethertype:
      return "rx_drop_ethertype";
    case DropCounter::mac:
      return "rx_drop_mac";
    case DropCounter::vlan:
      return "rx_drop_vlan";
    case DropCounter::oversize:
      return "rx_drop_oversize";
    case DropCounter::ipver:
      return "rx_drop_ipver";
    case DropCounter::nxthdr:
      return "rx_drop_nxthdr";
    case DropCounter::paylen:
      return "rx_drop_paylen";
    case DropCounter::tver:
      return "rx_drop_tver";
    case DropCounter::gid:
      return "rx_drop_gid";
    case DropCounter::opcode:
      return "rx_drop_opcode";
    case DropCounter::dest_qp:
      return "rx_drop_dest_qp";
    case DropCounter::icrc:
      return "rx_drop_icrc";
  }
  return "";
}

std::span<const DropCounter> all_drop_counters() { return kCounters; }

Verdict check_frame(std::span<const uint8_t> bytes, bool fcs_ok, const FrameFilter& filter) {
  const Window frame(bytes);
  if (!fcs_ok) return drop(DropCounter::fcs, "bad FCS");

  const bool tagged = frame.u16(12) == 0x8100;
  const unsigned type = tagged ? frame.u16(16) : frame.u16(12);
  const bool second_tag = tagged && (type == 0x8100 || type == 0x88a8);
  if (type != 0x8915 && !second_tag) {
    return drop(DropCounter::ethertype, "Ethertype is 0x%04x, not 0x8915", type);
  }
  const Mac dst = frame.array<6>(0);
  if (!mac_passes(dst, filter)) {
    return drop(DropCounter::mac, "DMAC %s is not for this port", to_string(dst).c_str());
  }
  if (tagged) {
    if (Verdict verdict = check_vlan(frame, filter); !verdict.accepted()) return verdict;
  }

  const Window packet = frame.from(tagged ? 18 : 14);
  if (packet.size() > kMaxPacket) {
    return drop(DropCounter::oversize, "%zu bytes from the GRH on, a packet has at most %zu",
                packet.size(), kMaxPacket);
  }
  if (packet.u8(0) >> 4 != 6) {
    return drop(DropCounter::ipver, "GRH IPVer is %u, not 6", packet.u8(0) >> 4);
  }
  if (packet.u8(6) != 0x1b) {
    return drop(DropCounter::nxthdr, "GRH NxtHdr is 0x%02x, not 0x1b", packet.u8(6));
  }
  if (Verdict verdict = check_paylen(packet); !verdict.accepted()) return verdict;
  if ((packet.u8(41) & 0xf) != 0) {
    return drop(DropCounter::tver, "BTH TVer is %u, not 0", packet.u8(41) & 0xf);
  }
  if (Verdict verdict = check_gid(packet, filter); !verdict.accepted()) return verdict;
  const OpcodeInfo* info = opcode_info(static_cast<uint8_t>(packet.u8(40)));
  if (info == nullptr) {
    return drop(DropCounter::opcode, "opcode 0x%02x is not known", packet.u8(40));
  }
  if (Verdict verdict = check_dest_qp(packet, *info); !verdict.accepted()) return verdict;
  return check_icrc(packet);
}

}  // namespace roci::wirecodec
