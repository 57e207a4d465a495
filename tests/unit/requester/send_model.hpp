// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Reference model of the sending side for the tests of requester_packetizer and its parts: send
// work requests as the host writes them, and the packets that must come of them.
//
// Written from hwif/queues.toml and wire.md alone, in another way than the RTL: layouts byte by
// byte, packets cut from the list of all bytes of a message. Does not model windows or the order of
// QPs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

namespace roci::test::send {

namespace pkg = roci::sv::roci_pkg;

using Block = std::array<std::uint8_t, 64>;

// Opcodes of WQEs (queues.toml wr_opcode).
enum Op : std::uint8_t {
  kNop = 0x00, kSend = 0x01, kSendImm = 0x02, kSendInv = 0x03, kWrite = 0x04, kWriteImm = 0x05,
  kRead = 0x08, kCmpSwap = 0x0c, kFetchAdd = 0x0d, kLocalInv = 0x10
};

// vendor_status of malformed WQEs (queues.toml).
enum Vendor : std::uint8_t {
  kFine = 0, kBadOpcode = 1, kBadBlocks = 2, kBadSgeCount = 3, kBadLength = 4, kBadGid = 5,
  kBadInline = 7, kBadAtomic = 8
};

constexpr unsigned kMaxSgeRead = ROCI_CONFIG_WIDE ? 4 : 1;
constexpr unsigned kGids = ROCI_CONFIG_WIDE ? 16 : 8;
constexpr std::uint32_t kPsnMask = 0xffffff;

struct Sge {
  std::uint64_t va = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

/// One send work request.
struct Wqe {
  std::uint8_t op = kSend;
  bool signaled = false, fence = false, solicited = false, inline_data = false;
  unsigned blocks = 1;               // as written; 0 and more than 8 are malformed
  unsigned sge_count = 0;            // as written
  std::uint32_t imm = 0;
  std::uint32_t length = 0;          // as written
  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
  std::vector<Sge> sges;
  bool datagram = false;             // has an address vector
  std::uint8_t sgid_index = 0;       // in it; the rest of it is random

  /// Bytes before SGEs or inline data.
  unsigned header() const { return datagram ? 80 : 32; }
  /// Blocks that SGEs or inline bytes need.
  unsigned blocks_for(unsigned bytes) const { return std::max(1u, (header() + bytes + 63) / 64); }

  bool is_send() const { return op == kSend || op == kSendImm; }
  bool is_write() const { return op == kWrite || op == kWriteImm; }
  bool is_atomic() const { return op == kCmpSwap || op == kFetchAdd; }
  /// Its answer brings data: counts as a READ.
  bool is_fetch() const { return op == kRead || is_atomic(); }
  bool has_imm() const { return op == kSendImm || op == kWriteImm; }

  /// Opcode of its completion (queues.toml cqe_opcode), which has five bits on the send side.
  std::uint8_t wc_opcode() const {
    if (is_send()) return kSend;
    if (is_write()) return kWrite;
    return op & 31u;
  }

  /// The blocks as the host writes them; what is not defined is random.
  std::vector<Block> to_blocks(Random& random, unsigned count) const {
    std::vector<std::uint8_t> bytes = random.bytes(64 * static_cast<std::size_t>(count));
    const auto put = [&](std::size_t at, std::uint64_t value, unsigned size) {
      for (unsigned n = 0; n < size && at + n < bytes.size(); ++n) {
        bytes[at + n] = static_cast<std::uint8_t>(value >> (8 * n));
      }
    };
    put(0, op, 1);
    put(1, signaled | fence << 1 | solicited << 2 | inline_data << 3 | datagram << 4, 1);
    put(2, blocks | sge_count << 4, 1);
    put(3, 0, 1);
    put(4, imm, 4);
    put(8, length, 4);
    put(16, va, 8);                    // of a datagram this is Q_Key and number
    put(24, rkey, 4);
    if (datagram) put(32 + 25, sgid_index, 1);
    if (!inline_data) {
      const std::size_t first = is_atomic() ? 48 : header();   // behind the operands
      for (std::size_t n = 0; n < sges.size(); ++n) {
        put(first + 16 * n, sges[n].va, 8);
        put(first + 8 + 16 * n, sges[n].length, 4);
        put(first + 12 + 16 * n, sges[n].lkey, 4);
      }
    }
    std::vector<Block> out(count);
    for (unsigned n = 0; n < count; ++n) {
      std::copy_n(bytes.begin() + 64 * n, 64, out[n].begin());
    }
    return out;
  }

  /// Whether a type of queue pair (0 RC, 1 UC, 2 UD, 3 GSI) has this operation (wire.md 1.4).
  bool fits(unsigned qp_type) const {
    if (op == kNop) return true;
    if (qp_type >= 2) return is_send() && datagram;
    return !datagram && (qp_type == 0 || !is_fetch());
  }

  /// What is wrong with it on a queue pair whose type has it, its blocks all being there; bit n of
  /// `gids`: the port has a GID n.
  Vendor verdict(unsigned line_index, std::uint32_t gids = ~0u) const {
    if (blocks == 0 || blocks + line_index % 8 > 8) return kBadBlocks;
    if (op == kNop) return kFine;
    if (!is_send() && !is_write() && !is_fetch()) return kBadOpcode;
    if (datagram) {
      if (!is_send()) return kBadOpcode;
      if (blocks == 1) return kBadBlocks;
      if (sgid_index >= kGids || (gids >> sgid_index & 1) == 0) return kBadGid;
    }
    if (inline_data) {
      return is_fetch() || header() + length > 64 * blocks || length > 512 ? kBadInline : kFine;
    }
    if (is_atomic()) {
      return length == 8 && sge_count == 1 && sges[0].length == 8 && sges[0].va % 8 == 0
                 ? kFine : kBadAtomic;
    }
    if (header() + 16 * sge_count > 64 * blocks) return kBadBlocks;
    if (op == kRead && sge_count > kMaxSgeRead) return kBadSgeCount;
    if (length > 0x80000000u) return kBadLength;
    std::uint64_t sum = 0;
    for (const auto& s : sges) sum += s.length;
    return sum == length ? kFine : kBadLength;
  }
};

/// A random well-formed request with about `bytes` bytes of payload.
inline Wqe random_wqe(Random& random, std::uint64_t bytes, unsigned qp_type = 0) {
  Wqe w;
  static constexpr std::uint8_t kOps[] = {kSend, kSendImm, kWrite, kWriteImm, kRead, kWrite};
  w.op = kOps[random.below(std::size(kOps))];
  if (random.chance(0.05)) w.op = random.chance(0.5) ? kCmpSwap : kFetchAdd;
  if (qp_type != 0 && w.is_fetch()) w.op = kWrite;
  if (qp_type >= 2) {
    w.datagram = true;
    w.op = random.chance(0.5) ? kSend : kSendImm;
    w.sgid_index = static_cast<std::uint8_t>(random.below(kGids));
  }
  w.signaled = random.chance(0.5);
  w.solicited = random.chance(0.5);
  w.imm = static_cast<std::uint32_t>(random());
  w.va = random();
  w.rkey = static_cast<std::uint32_t>(random());
  if (w.is_atomic()) {
    w.sge_count = 1;
    w.length = 8;
    w.sges = {{random() & ~std::uint64_t{7}, 8, static_cast<std::uint32_t>(random())}};
    return w;
  }
  if (w.op != kRead && random.chance(0.2)) {
    w.inline_data = true;
    w.length = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(random.below(512 - w.header() + 1), bytes + 64));
    w.blocks = w.blocks_for(w.length);
    if (w.datagram) w.blocks = std::max(w.blocks, 2u);
    return w;
  }
  const auto most = w.op == kRead ? kMaxSgeRead : 15;
  w.sge_count = static_cast<unsigned>(random.below(random.chance(0.5) ? 2 : most + 1));
  if (bytes != 0 && w.sge_count == 0) w.sge_count = 1;
  w.blocks = w.blocks_for(16 * w.sge_count);
  std::uint64_t left = bytes;
  for (unsigned n = 0; n < w.sge_count; ++n) {
    Sge s;
    s.va = random();
    s.lkey = static_cast<std::uint32_t>(random());
    const bool last = n + 1 == w.sge_count;
    const auto part = last ? left : (random.chance(0.2) ? 0 : random.below(left + 1));
    s.length = static_cast<std::uint32_t>(part);
    left -= part;
    w.sges.push_back(s);
  }
  w.length = static_cast<std::uint32_t>(bytes);
  return w;
}

/// PSNs that a request takes (wire.md 2.1).
inline std::uint32_t psn_count(const Wqe& w, std::uint32_t mtu) {
  if (w.op == kNop || (w.datagram && w.length > mtu)) return 0;   // wire.md 1.7
  return std::max(1u, static_cast<std::uint32_t>((std::uint64_t{w.length} + mtu - 1) / mtu));
}

/// a comes before b.
inline bool psn_before(std::uint32_t a, std::uint32_t b) { return ((a - b) & 0x800000) != 0; }

/// Static context of a QP.
struct Context {
  unsigned qp_type = 0, mtu_code = 3, fn = 0, pd = 0, max_rd_atomic = 8;
  unsigned inflight_base = 0, inflight_log2 = 3, read_base = 0, read_log2 = 1;
  std::uint32_t mtu() const { return 128u << mtu_code; }
  std::uint64_t word0() const {
    return qp_type | mtu_code << 4u | fn << 8u | std::uint64_t{pd} << 16u |
           std::uint64_t{max_rd_atomic} << 32u;
  }
  std::uint64_t word1() const {
    return inflight_base | inflight_log2 << 16u | std::uint64_t{read_base} << 32u |
           std::uint64_t{read_log2} << 48u;
  }
};

/// Whether a packet has AckReq wherever it is in its message: `unasked` packets since the last one
/// that had it; byte cap of 2^window_log2 (architecture.md 3.1).
inline bool asks_by_rule(unsigned unasked, unsigned window_log2, std::uint32_t mtu) {
  const std::uint64_t cap = std::max<std::uint64_t>(1, (std::uint64_t{1} << window_log2) / mtu);
  const std::uint64_t every = std::max<std::uint64_t>(1, std::min<std::uint64_t>(16, cap / 4));
  return unasked % every == every - 1;
}

/// The end of `w` may go without AckReq, if the windows have room for the next one and it is not
/// sent again: nobody waits for it, and `next`, of the same queue pair, follows at once.
inline bool may_leave_out(const Wqe& w, const Wqe& next, bool next_good, std::uint32_t mtu) {
  const auto size = [&](const Wqe& x) {
    unsigned log2 = 0;
    while ((1u << log2) < std::min(x.length, mtu)) ++log2;
    return log2;
  };
  return !w.signaled && !w.is_fetch() && w.op != kNop && w.blocks == 1 && next_good &&
         (next.is_send() || next.is_write()) && !next.fence && size(next) <= size(w);
}

/// The packet of `w` with this PSN, its WQE beginning at first_psn; from there on to the end if it
/// is a READ. `address` is the DMA address of its first block. Without AckReq: see asks_by_rule().
inline std::vector<pkg::tx_item_t> packet(const Wqe& w, const Context& c, std::uint32_t first_psn,
                                          std::uint32_t psn, std::uint64_t address,
                                          const pkg::tx_desc_t& common) {
  const std::uint32_t mtu = c.mtu();
  const std::uint32_t number = (psn - first_psn) & kPsnMask;
  const std::uint64_t offset = std::uint64_t{number} * mtu;
  const std::uint64_t rest = w.length - offset;
  const bool read = w.op == kRead;
  const bool first = number == 0;
  const bool last = read || rest <= mtu;
  const std::uint64_t payload = read ? 0 : w.is_atomic() ? 16 : std::min<std::uint64_t>(rest, mtu);
  pkg::tx_desc_t d = common;
  d.source = static_cast<pkg::tx_source_e>(0);
  d.fn = static_cast<decltype(d.fn)>(c.fn);
  d.pd = static_cast<decltype(d.pd)>(c.pd);
  // opcode: wire.md 1.4
  if (read) {
    d.opcode = 0x0c;
  } else if (w.is_atomic()) {
    d.opcode = w.op == kCmpSwap ? 0x13 : 0x14;
  } else {
    const unsigned base = w.is_send() ? 0x00 : 0x06;
    if (first && last) d.opcode = static_cast<std::uint8_t>(base + 4 + w.has_imm());
    else if (first) d.opcode = static_cast<std::uint8_t>(base);
    else if (last) d.opcode = static_cast<std::uint8_t>(base + 2 + w.has_imm());
    else d.opcode = static_cast<std::uint8_t>(base + 1);
  }
  // class of the opcode
  static constexpr std::uint8_t kClass[] = {0x00, 0x20, 0x60, 0x60};
  d.opcode = static_cast<std::uint8_t>(d.opcode | kClass[c.qp_type]);
  d.psn = psn;
  d.solicited = last && w.solicited && (w.is_send() || w.op == kWriteImm);
  d.payload_length = static_cast<std::uint16_t>(payload);
  d.va = w.va + (read ? offset : 0);
  d.rkey = w.rkey;
  d.dma_length = static_cast<std::uint32_t>(rest);
  // as a number whose first byte goes first; what is no immediate data is a number already
  d.imm = w.has_imm() ? __builtin_bswap32(w.imm) : w.imm;
  d.syndrome = 0;
  d.msn = 0;
  std::vector<pkg::tx_item_t> items;
  if (w.datagram) {                                    // where it goes, before the message
    pkg::tx_item_t item{};
    item.has_piece = true;
    item.piece.access = static_cast<pkg::access_e>(0);
    item.piece.length = 48;
    item.piece.va = address + 16;
    items.push_back(item);
  }
  if (payload == 0 && !w.datagram) {
    pkg::tx_item_t item{};
    item.last = true;
    item.desc = d;
    items.push_back(item);
    return items;
  }
  if (payload == 0) {
  } else if (w.inline_data || w.is_atomic()) {                // the operands of an atomic lie there
    pkg::tx_item_t item{};
    item.has_piece = true;
    item.piece.access = static_cast<pkg::access_e>(0);
    item.piece.length = static_cast<std::uint32_t>(payload);
    item.piece.va = address + w.header() + offset;
    items.push_back(item);
  } else {
    std::uint64_t at = 0;                          // of the SGE in the message
    for (const auto& s : w.sges) {
      const std::uint64_t from = std::max(at, offset);
      const std::uint64_t to = std::min(at + s.length, offset + payload);
      if (from < to) {
        pkg::tx_item_t item{};
        item.has_piece = true;
        item.piece.access = static_cast<pkg::access_e>(1);
        item.piece.key = s.lkey;
        item.piece.length = static_cast<std::uint32_t>(to - from);
        item.piece.va = s.va + (from - at);
        items.push_back(item);
      }
      at += s.length;
    }
  }
  for (auto& item : items) item.desc = d;
  items.back().last = true;
  return items;
}

}  // namespace roci::test::send
