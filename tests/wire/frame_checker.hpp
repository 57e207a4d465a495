// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The oracle for the NIC's receive checks: given the bytes of a frame, which counter drops it, or
// is it accepted. It covers what can be judged before the QP is looked up (FCS, Ethernet, GRH, BTH,
// ICRC); P_Key, Q_Key, PSN, QP class and state are no business of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/addresses.hpp"

namespace roci::wirecodec {

/// Why a frame is dropped, in the order of the checks: the first that fails counts, no later one.
///
/// A byte that the frame does not have reads as zero, so a frame cut before a field fails that
/// field.
enum class DropCounter : uint8_t {
  none,
  fcs,        ///< the MAC flagged the frame (bad FCS, aborted)
  ethertype,  ///< not 0x8915 behind at most one 802.1Q tag; a second tag is `vlan`
  mac,        ///< filter given: DMAC is neither the port's MAC nor that of a joined group
  vlan,       ///< second tag (0x8100 or 0x88a8), VID 0xfff (reserved), or VID not in the given list
  oversize,   ///< more than 4176 bytes from the GRH on, padding included (wire.md 1)
  ipver,      ///< GRH IPVer is not 6 (usNIC uses 8 on the same Ethertype)
  nxthdr,     ///< GRH NxtHdr is not 0x1b
  paylen,     ///< PayLen not a multiple of 4, past the end of the frame, too small for
              ///< BTH + extended headers of the opcode + pad + ICRC, or payload above 4096
  tver,       ///< BTH TVer is not 0
  gid,        ///< filter given: DGID is no GID of the port and no joined MGID (UD only)
  opcode,     ///< not one of the RC, UC, UD or XRC opcodes
  dest_qp,    ///< 0 (no QP0 on RoCE); 0xffffff without UD and a multicast DGID, or the reverse
  icrc,       ///< ICRC at the place that PayLen says is wrong
};

/// Name of the NIC's counter, "rx_drop_icrc"; empty for none.
std::string counter_name(DropCounter counter);

/// All drop counters in the order of the checks.
std::span<const DropCounter> all_drop_counters();

/// What the port filters on. Everything absent = everything passes.
struct FrameFilter {
  std::optional<Mac> mac;                     ///< own unicast MAC
  std::optional<std::vector<Gid>> gids;       ///< own GIDs
  std::vector<Gid> mgids;                     ///< joined groups: DGID, and DMAC derived from it
  std::optional<std::vector<uint16_t>> vids;  ///< VLANs of the port; VID 0 and untagged always pass
};

/// Fate of one frame.
struct Verdict {
  DropCounter counter = DropCounter::none;
  std::string reason;  ///< empty when accepted

  bool accepted() const { return counter == DropCounter::none; }
};

/// Judges a frame.
/// @param frame   Ethernet frame without FCS
/// @param fcs_ok  what the MAC says of its FCS
/// @param filter  the port's addresses
Verdict check_frame(std::span<const uint8_t> frame, bool fcs_ok, const FrameFilter& filter = {});

}  // namespace roci::wirecodec
