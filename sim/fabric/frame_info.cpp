// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "fabric/frame_info.hpp"

namespace roci::sim {
namespace {

uint64_t number(std::span<const uint8_t> bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value = value << 8 | (at + i < bytes.size() ? bytes[at + i] : 0u);
  }
  return value;
}

size_t grh_offset(std::span<const uint8_t> frame) {
  return number(frame, 12, 2) == 0x8100 ? 18 : 14;
}

}  // namespace

FrameInfo inspect(std::span<const uint8_t> head) {
  FrameInfo info;
  info.head = head;
  info.dst_mac = number(head, 0, 6);
  info.src_mac = number(head, 6, 6);
  const size_t grh = grh_offset(head);
  info.ethertype = static_cast<uint16_t>(number(head, grh - 2, 2));
  const size_t bth = grh + 40;
  info.is_roce = info.ethertype == 0x8915 && head.size() >= bth + 12;
  if (!info.is_roce) return info;
  info.opcode = head[bth];
  info.dest_qp = static_cast<uint32_t>(number(head, bth + 5, 3));
  info.ack_req = (head[bth + 8] & 0x80) != 0;
  info.psn = static_cast<uint32_t>(number(head, bth + 9, 3));
  if (info.opcode == 0x11 && head.size() > bth + 12) info.syndrome = head[bth + 12];
  return info;
}

std::optional<size_t> icrc_offset(std::span<const uint8_t> frame) {
  const size_t grh = grh_offset(frame);
  if (number(frame, grh - 2, 2) != 0x8915) return std::nullopt;
  const size_t end = grh + 40 + number(frame, grh + 4, 2);
  if (end < grh + 56 || end > frame.size()) return std::nullopt;
  return end - 4;
}

}  // namespace roci::sim
