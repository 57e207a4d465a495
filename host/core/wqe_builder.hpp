// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Builders of send work requests, one per operation, and of receive entries. They write what the
// interface defines and nothing else; the caller has found the place and knows the sizes.
#pragma once

#include <roci_hwif.hpp>

#include <infiniband/verbs.h>

#include <endian.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace roci::wqe {

/// What every request has, worked out before it is written.
struct Common {
  /// ibv_send_flags: signaled, fence, solicited, inline.
  unsigned flags;
  /// Size, 1…8 blocks.
  unsigned blocks;
  /// SGEs, 0 if inline.
  unsigned sges;
  /// Message bytes.
  uint32_t length;
};

/// First bytes of data (SGEs or inline bytes) in a connected request.
inline constexpr size_t DATA_OFFSET = hwif::SQ_HEADER_BYTES;

/// Where the operands of an atomic are, and its SGE.
inline constexpr size_t ATOMIC_OFFSET = hwif::SQ_HEADER_BYTES;
inline constexpr size_t ATOMIC_DATA_OFFSET = ATOMIC_OFFSET + hwif::SqWqeAtomic::BYTES;

/// First bytes of data in a UD request: the address vector is in front.
inline constexpr size_t UD_DATA_OFFSET = hwif::SQ_HEADER_BYTES + hwif::AddressVector::BYTES;
static_assert(UD_DATA_OFFSET == 80 && 8 * hwif::SQ_BLOCK_BYTES - UD_DATA_OFFSET ==
                                          hwif::MAX_INLINE_BYTES_UD);

/// Blocks of a request with this many bytes of SGEs or inline data, from `offset` on.
constexpr unsigned blocks_for(size_t data_bytes, size_t offset = DATA_OFFSET) noexcept {
  return static_cast<unsigned>((offset + data_bytes + hwif::SQ_BLOCK_BYTES - 1) /
                               hwif::SQ_BLOCK_BYTES);
}

/// First word of the control part by opcode, ibv_send_flags (only the lowest four, by a table) and
/// sizes.
constexpr uint64_t first_word(hwif::WrOpcode opcode, unsigned flags, unsigned blocks,
                              unsigned sges) noexcept {
  using C = hwif::SqWqeControl;
  constexpr auto FLAGS = [] {
    std::array<uint64_t, 16> table{};
    for (unsigned n = 0; n < table.size(); ++n) {
      C c{};
      c.set<C::signaled>((n & IBV_SEND_SIGNALED) != 0);
      c.set<C::fence>((n & IBV_SEND_FENCE) != 0);
      c.set<C::solicited>((n & IBV_SEND_SOLICITED) != 0);
      c.set<C::inline_data>((n & IBV_SEND_INLINE) != 0);
      table[n] = c.words[0];
    }
    return table;
  }();
  static_assert((IBV_SEND_SIGNALED | IBV_SEND_FENCE | IBV_SEND_SOLICITED | IBV_SEND_INLINE) == 15);
  C c{};
  c.set<C::opcode>(opcode);
  c.set<C::blocks>(static_cast<uint8_t>(blocks));
  c.set<C::sge_count>(static_cast<uint8_t>(sges));
  return c.words[0] | FLAGS[flags & 15];
}

/// Control part. `imm_or_key`: immediate data as it stands in memory (network order), or a key.
inline void control(std::byte* to, hwif::WrOpcode opcode, const Common& common,
                    uint32_t imm_or_key) noexcept {
  using C = hwif::SqWqeControl;
  C c{};
  c.set<C::imm_or_key>(imm_or_key);
  c.set<C::length>(common.length);
  c.words[0] |= first_word(opcode, common.flags, common.blocks, common.sges);
  c.store(to);
}

/// Remote part.
inline void remote(std::byte* to, uint64_t va, uint32_t rkey) noexcept {
  hwif::SqWqeRemote r{};
  r.set<hwif::SqWqeRemote::va>(va);
  r.set<hwif::SqWqeRemote::rkey>(rkey);
  r.store(to + sizeof(hwif::SqWqeControl));
}

/// SE is only for what makes a completion at the peer (IBTA 9.2.3).
inline Common unsolicited(Common common) noexcept {
  common.flags &= ~static_cast<unsigned>(IBV_SEND_SOLICITED);
  return common;
}

/// SEND.
inline void send(std::byte* to, const Common& common) noexcept {
  control(to, hwif::WrOpcode::SEND, common, 0);
  remote(to, 0, 0);
}

/// SEND with immediate data.
inline void send_imm(std::byte* to, const Common& common, uint32_t imm) noexcept {
  control(to, hwif::WrOpcode::SEND_IMM, common, imm);
  remote(to, 0, 0);
}

/// RDMA WRITE.
inline void write(std::byte* to, const Common& common, uint64_t va, uint32_t rkey) noexcept {
  control(to, hwif::WrOpcode::WRITE, unsolicited(common), 0);
  remote(to, va, rkey);
}

/// RDMA WRITE with immediate data.
inline void write_imm(std::byte* to, const Common& common, uint64_t va, uint32_t rkey,
                      uint32_t imm) noexcept {
  control(to, hwif::WrOpcode::WRITE_IMM, common, imm);
  remote(to, va, rkey);
}

/// RDMA READ.
inline void read(std::byte* to, const Common& common, uint64_t va, uint32_t rkey) noexcept {
  control(to, hwif::WrOpcode::READ, unsolicited(common), 0);
  remote(to, va, rkey);
}

/// Atomic with its one SGE. The device sends the operands as they lie here: in network order.
inline void atomic(std::byte* to, hwif::WrOpcode opcode, const Common& common, uint64_t va,
                   uint32_t rkey, uint64_t swap_or_add, uint64_t compare,
                   const ibv_sge& sge) noexcept {
  control(to, opcode, unsolicited(common), 0);
  remote(to, va, rkey);
  const uint64_t operands[2] = {htobe64(swap_or_add), htobe64(compare)};
  static_assert(sizeof operands == hwif::SqWqeAtomic::BYTES && hwif::SqWqeAtomic::compare::AT == 64);
  std::memcpy(to + ATOMIC_OFFSET, operands, sizeof operands);
  std::memcpy(to + ATOMIC_DATA_OFFSET, &sge, sizeof sge);
}

/// Control part of a UD request, which says that an address vector follows.
inline void datagram_control(std::byte* to, hwif::WrOpcode opcode, const Common& common,
                             uint32_t imm) noexcept {
  using C = hwif::SqWqeControl;
  C c{};
  c.set<C::imm_or_key>(imm);
  c.set<C::length>(common.length);
  c.set<C::address_vector>(true);
  c.words[0] |= first_word(opcode, common.flags, common.blocks, common.sges);
  c.store(to);
}

/// Where a UD request goes: everything between its control part and its data.
inline void datagram(std::byte* to, const hwif::AddressVector& vector, uint32_t qpn,
                     uint32_t qkey) noexcept {
  hwif::SqWqeUd u{};
  u.set<hwif::SqWqeUd::qkey>(qkey);
  u.set<hwif::SqWqeUd::dest_qpn>(qpn);
  u.store(to + sizeof(hwif::SqWqeControl));
  vector.store(to + hwif::SQ_HEADER_BYTES);
}

/// NOP that fills the rest of a line.
inline void pad(std::byte* to, unsigned blocks) noexcept {
  control(to, hwif::WrOpcode::NOP, {0, blocks, 0, 0}, 0);
}

static_assert(sizeof(ibv_sge) == sizeof(hwif::Sge) && offsetof(ibv_sge, addr) * 8 == hwif::Sge::va::AT &&
                  offsetof(ibv_sge, length) * 8 == hwif::Sge::length::AT &&
                  offsetof(ibv_sge, lkey) * 8 == hwif::Sge::lkey::AT,
              "SGEs of verbs are those of the interface");

/// Copies SGEs. @return bytes written
inline size_t sges(std::byte* to, const ibv_sge* list, unsigned count) noexcept {
  if (count == 1) [[likely]] {
    std::memcpy(to, list, sizeof(ibv_sge));
    return sizeof(ibv_sge);
  }
  for (unsigned i = 0; i < count; ++i) std::memcpy(to + i * sizeof(ibv_sge), &list[i], sizeof(ibv_sge));
  return count * sizeof(ibv_sge);
}

/// Receive entry.
inline void receive(std::byte* to, uint32_t cookie, const ibv_sge* list, unsigned count) noexcept {
  using H = hwif::RqWqeHeader;
  H h{};
  h.set<H::cookie>(cookie);
  h.set<H::sge_count>(static_cast<uint8_t>(count));
  h.store(to);
  sges(to + sizeof h, list, count);
}

}  // namespace roci::wqe
