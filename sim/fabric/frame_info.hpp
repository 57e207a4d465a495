// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The few header fields that impairment rules and the switch look at. Not a codec: it checks
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace roci::sim {

/// A frame in the fabric, as a rule sees it. Fields behind the end of the frame stay zero.
struct FrameInfo {
  size_t from_port = 0;           ///< port that sent it into the fabric
  std::optional<size_t> to_port;  ///< port it is about to reach; unknown before a switch
  uint64_t index = 0;             ///< frames before it in this direction of this link
  std::span<const uint8_t> head;  ///< its first bytes: the whole frame, or at least 128

  uint64_t dst_mac = 0;  ///< 48 bits, first wire byte most significant
  uint64_t src_mac = 0;
  uint16_t ethertype = 0;  ///< behind a VLAN tag if there is one
  bool is_roce = false;    ///< Ethertype 0x8915 and a whole BTH
  uint8_t opcode = 0;      ///< BTH fields
  bool ack_req = false;
  uint32_t dest_qp = 0;
  uint32_t psn = 0;
  std::optional<uint8_t> syndrome;  ///< of an RC ACKNOWLEDGE
};

/// Reads the fields out of the first bytes of a frame.
FrameInfo inspect(std::span<const uint8_t> head);

/// Where the ICRC of a RoCEv1 frame starts, by its PayLen; nothing if it is no RoCE frame or PayLen
/// does not fit.
std::optional<size_t> icrc_offset(std::span<const uint8_t> frame);

}  // namespace roci::sim
