// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Reference models of the responder's tests, written from wire.md §2, not from the RTL: what a
// frame must lead to (RxModel) and what may be sent for it, in which order (TxModel).
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

namespace roci::test::responder {

namespace rp = roci::sv::roci_pkg;
namespace hw = roci::sv::roci_hwif_pkg;

inline constexpr std::uint32_t psn_mask = 0xffffff;

/// a - b of PSNs as a signed number (wire.md §2.1).
inline int psn_distance(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t d = (a - b) & psn_mask;
  return d & 0x800000 ? static_cast<int>(d) - 0x1000000 : static_cast<int>(d);
}

struct Sge {
  std::uint64_t va = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

/// A receive WQE as the program posted it.
struct Wqe {
  std::uint32_t cookie = 0;
  std::vector<Sge> sges;
  unsigned count = 0;        // sge_count field; more than sges.size() is malformed
  bool unreadable = false;   // reading it ends in a bus error

  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const Sge& sge : sges) sum += sge.length;
    return sum;
  }
  bool malformed() const { return count != sges.size(); }
  /// What a message may be long before it is called too long; one that will fail anyway has no limit.
  std::uint64_t capacity() const { return unreadable || malformed() ? ~std::uint64_t{0} : bytes(); }
};

/// RQ or SRQ: what is posted, and how much of it messages have taken.
struct ReceiveQueue {
  std::deque<Wqe> posted;        // from index `taken` on
  std::uint64_t posted_count = 0;
  std::uint64_t taken = 0;

  Wqe take() {
    Wqe wqe = posted.front();
    posted.pop_front();
    ++taken;
    return wqe;
  }
};

/// READ or atomic that was accepted.
struct ReadEntry {
  std::uint64_t ordinal = 0;     // counted without wrap
  std::uint32_t first_psn = 0;
  std::uint32_t packets = 0;
  std::uint32_t msn = 0;
  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;
  unsigned atomic = 0;           // its opcode, or 0
  bool done = false;             // atomic: executed, with this result
  std::uint64_t value = 0;
};

/// Static properties of a QP.
struct QpConfig {
  unsigned qp = 0, fn = 0, pd = 0, cq = 0;
  std::uint32_t qpn = 0;
  unsigned type = 0;             // RC, UC, UD, GSI
  unsigned mtu_code = 3;
  bool remote_write = true, remote_read = true, remote_atomic = true;
  unsigned rnr_timer = 12;
  unsigned replay_log2 = 2, replay_base = 0;
  int srq = -1;                  // index of the SRQ, or none
  std::uint32_t srqn = 0;

  std::uint32_t mtu() const { return 128u << mtu_code; }
  std::uint64_t ring() const { return 1u << replay_log2; }
  bool datagram() const { return type >= 2; }
  /// Opcode on the wire (wire.md §1.4).
  std::uint8_t opcode(unsigned op) const {
    return static_cast<std::uint8_t>((type == 0 ? 0u : type == 1 ? 0x20u : 0x60u) | op);
  }
};

enum Op : unsigned {
  SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM,
  WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM, READ_REQUEST,
  CMP_SWAP = 0x13, FETCH_ADD = 0x14
};

inline bool op_is(unsigned op, std::initializer_list<unsigned> list) {
  return std::find(list.begin(), list.end(), op) != list.end();
}
inline bool is_send(unsigned op) { return op <= SEND_ONLY_IMM; }
inline bool is_write(unsigned op) { return op >= WRITE_FIRST && op <= WRITE_ONLY_IMM; }
inline bool is_first(unsigned op) { return op_is(op, {SEND_FIRST, WRITE_FIRST}); }
inline bool is_middle(unsigned op) { return op_is(op, {SEND_MIDDLE, WRITE_MIDDLE}); }
inline bool is_last(unsigned op) {
  return op_is(op, {SEND_LAST, SEND_LAST_IMM, WRITE_LAST, WRITE_LAST_IMM});
}
inline bool is_only(unsigned op) {
  return op_is(op, {SEND_ONLY, SEND_ONLY_IMM, WRITE_ONLY, WRITE_ONLY_IMM, READ_REQUEST, CMP_SWAP,
                    FETCH_ADD});
}
inline bool is_atomic(unsigned op) { return op == CMP_SWAP || op == FETCH_ADD; }
inline bool has_imm(unsigned op) {
  return op_is(op, {SEND_LAST_IMM, SEND_ONLY_IMM, WRITE_LAST_IMM, WRITE_ONLY_IMM});
}
/// True if the packet takes a receive WQE when it is executed (wire.md §1.4).
inline bool takes_wqe(unsigned op) {
  return op_is(op, {SEND_FIRST, SEND_ONLY, SEND_ONLY_IMM, WRITE_LAST_IMM, WRITE_ONLY_IMM});
}

/// How the receive queue was found, as the frame's answer tells; the bench checks that it was so.
enum class Receive { taken, none, lost };

/// The receiving side of one QP.
class RxModel {
 public:
  RxModel() = default;
  RxModel(const QpConfig& config, std::uint32_t psn) : config(config) {
    next_psn = psn;
    acked_psn = (psn - 1) & psn_mask;
  }

  QpConfig config;
  std::uint32_t next_psn = 0, acked_psn = 0, msn = 0;
  bool nak_sent = false, closed = false, established = false;
  unsigned unacknowledged = 0;
  std::uint64_t reads = 0;
  std::deque<ReadEntry> entries;          // the newest `ring` ones
  unsigned long duplicate_reads_found = 0, duplicate_reads_lost = 0;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> found;  // {ordinal, packet} to be answered

  /// A message in progress.
  enum { none, send, write } message = none;
  bool held = false;                      // `wqe` is the QP's
  Wqe wqe;
  unsigned long no_receive = 0, too_long = 0, given_up = 0;   // UC, UD: dropped
  std::uint64_t placed = 0;               // SEND: bytes placed so far
  bool dead = false;                      // SEND: its WQE was completed in error
  std::uint64_t va = 0;                   // WRITE
  std::uint32_t rkey = 0, remaining = 0, total = 0;

  bool in_order(std::uint32_t psn) const { return psn == next_psn; }

  /// Items that this frame must give. `answered`: READs whose responses were sent.
  std::vector<rp::rx_item_t> process(const rp::rx_packet_t& packet, Receive receive,
                                     ReceiveQueue& queue, std::uint64_t answered) {
    const auto& h = packet.headers;
    const unsigned op = h.opcode & 0x1fu;
    rp::rx_item_t item = base(packet);
    if (closed) return {item};
    if (packet.state == rp::QPS_RTR) established = true;
    if (config.type != 0) return unreliable(packet, op, item, receive, queue);

    const int ahead = psn_distance(h.psn, next_psn);
    if (ahead > 0) {
      if (!nak_sent) answer(item, rp::RESPOND_NAK, next_psn, 0x60);
      nak_sent = true;
      return {item};
    }
    if (ahead < 0) return {duplicate(packet, item)};

    // wire.md §2.2: the checks in their order
    if (op > READ_REQUEST && !is_atomic(op)) {
      return {fail(item, hw::VENDOR_STATUS_RECV_OPCODE_RESERVED)};
    }
    const bool begins = is_first(op) || is_only(op);
    if (message == none ? !begins : begins || (message == send) != is_send(op)) {
      return {fail(item, hw::VENDOR_STATUS_RECV_OPCODE_SEQUENCE)};
    }
    if (!allowed(op)) return {fail(item, hw::VENDOR_STATUS_RECV_ACCESS_FLAG)};
    if (is_atomic(op) && h.va % 8 != 0) {
      return {fail(item, hw::VENDOR_STATUS_RECV_ATOMIC_ALIGNMENT)};
    }
    if ((op == READ_REQUEST || is_atomic(op)) && reads - answered >= config.ring()) {
      return {fail(item, hw::VENDOR_STATUS_RECV_READ_RESOURCES)};
    }
    if (takes_wqe(op) && receive != Receive::taken) {
      nak_sent = true;
      answer(item, rp::RESPOND_NAK, h.psn,
             receive == Receive::none ? 0x20 | config.rnr_timer : 0x60);
      return {item};
    }
    if (!length_ok(op, h)) return {fail(item, hw::VENDOR_STATUS_RECV_LENGTH)};
    if (is_send(op) && !fits(op, h.payload_length, queue)) {
      if (begins) wqe = queue.take();
      answer(item, rp::RESPOND_NAK, item.psn, 0x61);
      item.end_info.error_valid = true;
      complete(item, wqe.cookie, hw::CQE_STATUS_LOC_LEN_ERR, hw::VENDOR_STATUS_RECV_TOO_SHORT);
      message = none;
      held = false;
      closed = true;
      return {item};
    }
    return execute(packet, op, item, queue);
  }

  /// Item of a flush, with or without a receive; `from_queue` is the QP's own RQ.
  rp::rx_item_t flush(bool colour, ReceiveQueue& from_queue, bool found = true) {
    rp::rx_item_t item{};
    item.colour = colour;
    item.no_frame = true;
    item.last = true;
    item.qp = static_cast<decltype(item.qp)>(config.qp);
    item.pd = static_cast<decltype(item.pd)>(config.pd);
    item.end_info.drop = true;
    item.end_info.ack_event_valid = true;
    item.end_info.ack_event.kind = rp::ACK_EVENT_DRAINED;
    item.end_info.receive_in_use = found;
    item.end_info.unreliable = config.type != 0;
    source_qp_ = 0;
    if (!found) return item;
    Wqe flushed;
    bool tell = true;
    if (held) {
      flushed = wqe;
      tell = !dead;
    } else {
      flushed = from_queue.take();
      tell = !flushed.unreadable;
    }
    message = none;
    held = false;
    if (tell) {
      complete(item, flushed.cookie, hw::CQE_STATUS_WR_FLUSH_ERR, hw::VENDOR_STATUS_FLUSH);
    }
    return item;
  }

 private:
  bool allowed(unsigned op) const {
    return !(is_write(op) && !config.remote_write) && !(op == READ_REQUEST && !config.remote_read) &&
           !(is_atomic(op) && !config.remote_atomic);
  }
  /// The SEND packet fits into the receive that it will use.
  bool fits(unsigned op, std::uint32_t length, const ReceiveQueue& queue) const {
    if (!is_first(op) && !is_only(op)) return placed + length <= wqe.capacity();
    return length <= (held ? wqe : queue.posted.front()).capacity();
  }

  /// UC and UD (wire.md §2.12, §2.16): executed or dropped, nobody is told.
  std::vector<rp::rx_item_t> unreliable(const rp::rx_packet_t& packet, unsigned op,
                                        rp::rx_item_t item, Receive receive, ReceiveQueue& queue) {
    const auto& h = packet.headers;
    const bool begins = is_first(op) || is_only(op);
    const auto drop = [&](unsigned long& counter) {
      message = none;
      ++counter;
      return std::vector{item};
    };
    source_qp_ = config.datagram() ? h.va & 0xffffff : 0;
    if (op > WRITE_ONLY_IMM) return drop(given_up);
    if (!begins && (h.psn != next_psn || message == none || (message == send) != is_send(op))) {
      return drop(given_up);
    }
    if (!allowed(op)) return drop(given_up);
    const bool wants = takes_wqe(op) && !held;
    if (wants && receive == Receive::none) return drop(no_receive);
    if (wants && receive == Receive::lost) {
      message = none;
      return {item};
    }
    if (!config.datagram() && !length_ok(op, h)) return drop(given_up);
    if (is_send(op) && !fits(op, h.payload_length, queue)) return drop(too_long);
    return execute(packet, op, item, queue);
  }

  rp::rx_item_t base(const rp::rx_packet_t& packet) const {
    rp::rx_item_t item{};
    item.colour = packet.colour;
    item.last = true;
    item.qp = packet.qp;
    item.fn = packet.fn;
    item.pd = static_cast<decltype(item.pd)>(config.pd);
    item.psn = packet.headers.psn;
    item.end_info.drop = true;
    item.end_info.unreliable = config.type != 0;
    return item;
  }

  void answer(rp::rx_item_t& item, rp::respond_kind_e kind, std::uint32_t psn,
              unsigned syndrome) const {
    item.end_info.respond_valid = true;
    item.end_info.respond.kind = kind;
    item.end_info.respond.psn = psn;
    item.end_info.respond.msn = msn;
    item.end_info.respond.syndrome = static_cast<std::uint8_t>(syndrome);
    item.end_info.respond.entry = static_cast<std::uint8_t>(reads);
  }

  void complete(rp::rx_item_t& item, std::uint32_t cookie, unsigned status,
                unsigned vendor) const {
    auto& c = item.end_info.completion;
    item.end_info.completion_valid = true;
    c.cq = static_cast<decltype(c.cq)>(config.cq);
    c.qpn = config.qpn;
    c.is_error = true;
    c.opcode = hw::CQE_OPCODE_RECV;
    c.wqe_index_or_cookie = cookie;
    c.src_qp_or_srq = config.datagram() ? source_qp_ : config.srq >= 0 ? config.srqn : 0;
    c.status = static_cast<std::uint8_t>(status);
    c.vendor_status = static_cast<std::uint8_t>(vendor);
  }

  rp::rx_item_t fail(rp::rx_item_t item, unsigned cause) {
    answer(item, rp::RESPOND_NAK, item.psn, 0x61);
    item.end_info.error_valid = true;
    if (message == send) {
      if (!dead) complete(item, wqe.cookie, hw::CQE_STATUS_REM_INV_REQ_ERR, cause);
    } else {
      item.end_info.error_event = hw::EQE_TYPE_QP_REQ_ERROR;
    }
    message = none;
    held = false;
    closed = true;
    return item;
  }

  bool length_ok(unsigned op, const rp::rx_headers_t& h) const {
    const std::uint32_t length = h.payload_length;
    const std::uint32_t mtu = config.mtu();
    if (is_first(op) || is_middle(op)) {
      if (length != mtu || h.pad_count != 0) return false;
    }
    if (is_last(op) && (length == 0 || length > mtu)) return false;
    if (is_only(op) && !is_atomic(op) && length > mtu) return false;
    if (op == READ_REQUEST) return length == 0 && h.dma_length <= 0x80000000u;
    if (is_atomic(op)) return length == 16 && h.pad_count == 0;
    if (!is_write(op)) return true;
    // WRITE: the payloads add up to DMALen, and what is left is what LAST brings
    const std::uint64_t left = is_first(op) || is_only(op) ? h.dma_length : remaining;
    if (left > 0x80000000u) return false;
    return is_last(op) || is_only(op) ? left == length : left > length;
  }

  rp::rx_item_t duplicate(const rp::rx_packet_t& packet, rp::rx_item_t item) {
    const auto& h = packet.headers;
    const unsigned op = h.opcode & 0x1fu;
    if (op < READ_REQUEST) {
      answer(item, rp::RESPOND_DUP_ACK, acked_psn, 0x1f);
      item.end_info.respond.entry = static_cast<std::uint8_t>(reads);
    } else if (op == READ_REQUEST) {
      const ReadEntry* hit = nullptr;
      for (const ReadEntry& e : entries) {
        const std::uint32_t packet_number = (h.psn - e.first_psn) & psn_mask;
        if (packet_number >= e.packets) continue;
        const std::uint64_t offset = std::uint64_t{packet_number} * config.mtu();
        if (e.atomic == 0 && h.va == e.va + offset && h.rkey == e.rkey &&
            h.dma_length == e.length - offset) {
          hit = &e;
          found.push_back({e.ordinal, packet_number});
        }
      }
      ++(hit ? duplicate_reads_found : duplicate_reads_lost);
    } else if (is_atomic(op)) {
      bool hit = false;
      for (const ReadEntry& e : entries) {
        if (e.atomic != op || e.first_psn != h.psn || e.rkey != h.rkey) continue;
        hit = true;
        found.push_back({e.ordinal, 0});
      }
      ++(hit ? duplicate_reads_found : duplicate_reads_lost);
    }
    return item;
  }

  std::vector<rp::rx_item_t> execute(const rp::rx_packet_t& packet, unsigned op,
                                     rp::rx_item_t item, ReceiveQueue& queue) {
    const auto& h = packet.headers;
    const bool begins = is_first(op) || is_only(op);
    const bool ends = is_last(op) || is_only(op);
    item.end_info.drop = false;
    item.end_info.nak_msn = msn;
    nak_sent = false;
    if (ends) msn = (msn + 1) & psn_mask;

    if (op == READ_REQUEST) {
      ReadEntry e{reads, h.psn, 0, msn, h.va, h.rkey, h.dma_length, 0, false, 0};
      e.packets = std::max<std::uint32_t>(
          1, static_cast<std::uint32_t>((std::uint64_t{h.dma_length} + config.mtu() - 1) /
                                        config.mtu()));
      next_psn = (next_psn + e.packets) & psn_mask;
      answer(item, rp::RESPOND_READ, (next_psn - 1) & psn_mask, 0);
      entries.push_back(e);
      if (entries.size() > config.ring()) entries.pop_front();
      ++reads;
      unacknowledged = 0;
      if (h.dma_length != 0) {
        item.has_piece = true;
        item.piece = {true, rp::ACCESS_REMOTE_READ, h.rkey, h.dma_length, h.va};
      }
      return {item};
    }

    next_psn = (h.psn + 1) & psn_mask;
    if (is_atomic(op)) {
      entries.push_back({reads, h.psn, 1, msn, h.va, h.rkey, 0, op, false, 0});
      if (entries.size() > config.ring()) entries.pop_front();
      answer(item, rp::RESPOND_READ, h.psn, 0);
      item.has_piece = true;
      item.piece = {false, rp::ACCESS_REMOTE_ATOMIC, h.rkey, 8, h.va};
      item.end_info.completion.imm_or_key = static_cast<std::uint32_t>(
          (config.replay_base + reads % config.ring()) | (op == CMP_SWAP ? 0x80000000u : 0));
      ++reads;
      unacknowledged = 0;
      return {item};
    }
    if (config.type == 0) {
      acked_psn = h.psn;
      if (h.ackreq || ++unacknowledged == 16) {
        answer(item, rp::RESPOND_ACK, h.psn, 0x1f);
        unacknowledged = 0;
      }
    }

    std::optional<Wqe> taken;
    const bool again = takes_wqe(op) && held;        // one of a broken message, from its start
    if (takes_wqe(op)) taken = held ? wqe : queue.take();
    if (is_send(op) || has_imm(op)) held = !ends;
    std::vector<rp::rx_item_t> items;

    if (is_write(op)) {
      if (begins) {
        va = h.va;
        rkey = h.rkey;
        total = remaining = h.dma_length;
      }
      message = ends ? none : write;
      if (h.payload_length != 0) {
        item.has_piece = true;
        item.piece = {false, rp::ACCESS_REMOTE_WRITE, rkey, h.payload_length, va};
      }
      va += h.payload_length;
      remaining -= h.payload_length;
      if (again && dead) {
        item.has_piece = false;
        item.piece = {};
        item.end_info.drop = true;
      } else if (taken && !local_fault(item, *taken)) {
        success(item, h, taken->cookie, hw::CQE_OPCODE_RECV_WRITE_IMM, total);
      }
      return {item};
    }

    message = ends ? none : send;
    if (taken) {
      wqe = *taken;
      placed = 0;
      dead = again && dead;
      if (!again && local_fault(item, wqe)) {
        dead = true;
        return {item};
      }
    }
    if (dead) {
      item.end_info.drop = true;
      item.end_info.respond_valid = false;
      return {item};
    }
    item.end_info.receive_in_use = true;
    item.end_info.completion.wqe_index_or_cookie = wqe.cookie;
    const std::uint64_t start = placed;
    placed += h.payload_length;
    if (ends) {
      success(item, h, wqe.cookie, has_imm(op) ? hw::CQE_OPCODE_RECV_IMM : hw::CQE_OPCODE_RECV,
              static_cast<std::uint32_t>(placed));
    }
    // the SGEs that [start, placed) meets
    std::uint64_t at = 0;
    for (const Sge& sge : wqe.sges) {
      const std::uint64_t from = std::max(at, start), to = std::min(at + sge.length, placed);
      // a piece has 4096 bytes at most
      for (std::uint64_t p = from; p < to; p += 4096) {
        const std::uint64_t end = std::min(p + 4096, to);
        rp::rx_item_t piece = item;
        piece.last = end == placed;
        piece.has_piece = true;
        piece.piece = {false, rp::ACCESS_LOCAL_WRITE, sge.lkey,
                       static_cast<std::uint32_t>(end - p), sge.va + (p - at)};
        items.push_back(piece);
      }
      at += sge.length;
    }
    if (items.empty()) items.push_back(item);
    return items;
  }

  void success(rp::rx_item_t& item, const rp::rx_headers_t& h, std::uint32_t cookie,
               unsigned opcode, std::uint32_t bytes) const {
    complete(item, cookie, hw::CQE_STATUS_SUCCESS, 0);
    item.end_info.receive_in_use = true;
    auto& c = item.end_info.completion;
    c.is_error = false;
    c.opcode = static_cast<std::uint8_t>(opcode);
    c.byte_len = bytes;
    c.solicited = h.solicited;
    c.flags = static_cast<std::uint8_t>((h.solicited ? 4 : 0) | (h.vlan_valid ? 2 : 0) |
                                        (config.datagram() ? 1 : 0));
    c.tci = h.vlan_valid ? h.tci : 0;
    c.imm_or_key = has_imm(h.opcode & 0x1fu) ? __builtin_bswap32(h.imm) : 0;  // wire bytes
    c.pkey_index = config.datagram() ? static_cast<std::uint16_t>(h.va >> 32 & 3) : 0;
  }

  void fatal_here(rp::rx_item_t& item, unsigned syndrome) const {
    item.has_piece = false;
    item.piece = {};
    item.end_info.error_valid = true;
    item.end_info.respond_valid = config.type == 0;
    item.end_info.respond.kind = rp::RESPOND_NAK;
    item.end_info.respond.psn = item.psn;
    item.end_info.respond.msn = item.end_info.nak_msn;
    item.end_info.respond.syndrome = static_cast<std::uint8_t>(syndrome);
    item.end_info.respond.entry = static_cast<std::uint8_t>(reads);
  }

  /// The WQE cannot be used: NAK 0x63 (wire.md §2.14).
  bool local_fault(rp::rx_item_t& item, const Wqe& bad) const {
    if (!bad.unreadable && !bad.malformed()) return false;
    item.end_info.drop = true;
    fatal_here(item, 0x63);
    if (bad.unreadable) {
      item.end_info.error_event = hw::EQE_TYPE_QP_FATAL;
    } else {
      complete(item, bad.cookie, hw::CQE_STATUS_LOC_QP_OP_ERR,
               hw::VENDOR_STATUS_WQE_SGE_COUNT);
    }
    return true;
  }

  std::uint32_t source_qp_ = 0;           // UD
};

/// What of an atomic's imm_or_key is defined: replay slot and kind.
inline constexpr std::uint32_t atomic_mask = ROCI_CONFIG_WIDE ? 0x80000fffu : 0x800000ffu;

/// Takes out of an item what is not defined in its kind, before two are compared.
inline rp::rx_item_t defined_part(rp::rx_item_t item) {
  auto& e = item.end_info;
  if (!e.respond_valid) e.respond = {};
  if (!e.ack_event_valid) e.ack_event = {};
  e.respond.entry &= 0xff;
  if (e.respond.kind == rp::RESPOND_READ) e.respond.syndrome = 0;
  if (e.drop) e.nak_msn = 0;
  if (!e.completion_valid) {
    const std::uint32_t cookie =
        e.receive_in_use && !item.no_frame ? e.completion.wqe_index_or_cookie : 0;
    const std::uint32_t slot = item.has_piece && item.piece.access == rp::ACCESS_REMOTE_ATOMIC
                                   ? e.completion.imm_or_key & atomic_mask : 0;
    e.completion = {};
    e.completion.wqe_index_or_cookie = cookie;
    e.completion.imm_or_key = slot;
  }
  return item;
}

/// The sending side of one QP: says whether a response may leave now, and at the end what is
/// missing.
class TxModel {
 public:
  TxModel() = default;
  explicit TxModel(const QpConfig& config) : config_(config) {}

  /// A READ was accepted.
  void accept(const ReadEntry& entry) { entries_[entry.ordinal] = entry; }
  /// An atomic was executed: its response may leave.
  void done(std::uint64_t ordinal, std::uint64_t value) {
    entries_.at(ordinal).done = true;
    entries_.at(ordinal).value = value;
  }
  /// The newest READ or atomic with this number modulo 256.
  std::uint64_t newest(unsigned ordinal) const {
    const std::uint64_t last = entries_.rbegin()->first;
    return last - ((last - ordinal) & 0xff);
  }
  /// A duplicate READ was found in the entries.
  void duplicate(std::uint64_t ordinal, std::uint32_t packet) {
    jumps_.push_back({ordinal, packet, false, false});
  }
  /// A response left the chip damaged and will be sent again.
  void underrun(std::uint64_t ordinal, std::uint32_t packet) { duplicate(ordinal, packet); }

  /// A token came in; tokens of a QP come in PSN order.
  void event(const rp::respond_event_t& event, std::uint64_t cycle) {
    if (fatal_) return;
    if (event.kind == rp::RESPOND_READ) {
      ++allowed_;
      acks_before_.push_back(last_plain_);
    } else {
      const std::uint64_t order = allowed_ - ((allowed_ - event.entry) & 0xff);
      acks_.push_back({event, order, cycle});
      if (event.kind != rp::RESPOND_DUP_ACK) last_plain_ = acks_.size();
      fatal_ = event.kind == rp::RESPOND_NAK && event.syndrome >= 0x61;
    }
  }
  /// A READ response was refused or failed, or an atomic: everything after it is off, a NAK takes its
  /// place.
  void refused(std::uint32_t psn, unsigned syndrome, std::uint64_t cycle) {
    rp::respond_event_t nak{};
    nak.kind = rp::RESPOND_NAK;
    nak.psn = psn;
    nak.syndrome = static_cast<std::uint8_t>(syndrome);
    acks_.push_back({nak, 0, cycle});
    last_plain_ = acks_.size();
    fatal_ = refused_ = true;
  }
  /// READs that were answered completely at least once.
  std::uint64_t answered() const { return answered_; }
  std::uint32_t next_packet() const { return packet_; }
  bool closed() const { return fatal_; }
  const ReadEntry& entry(std::uint64_t ordinal) const { return entries_.at(ordinal); }

  /// Checks one packet; returns what is wrong with it, or "".
  std::string packet(const rp::tx_item_t& item, std::uint64_t cycle) {
    const auto& d = item.desc;
    if (!item.last || d.source != rp::TX_RESPONSE || d.qp != config_.qp || d.fn != config_.fn ||
        d.pd != config_.pd || d.ackreq || d.solicited) {
      return "wrong fields";
    }
    return d.opcode == 0x11 ? ack(item, cycle) : read(item);
  }

  /// What should have been sent and was not, or "". `lost`: duplicate READs that may be unanswered.
  std::string missing(bool all_duplicates_found) const {
    if (covered_ < last_plain_) {
      return "an acknowledgement is missing: " + acks_.at(last_plain_ - 1).event.to_string();
    }
    if (covered_ < acks_.size() && acks_.back().cycle > last_ack_cycle_ && !fatal_) {
      return "the answer to a duplicate is missing";
    }
    if (!refused_ && cursor_ < allowed_) return "READ responses are missing";
    for (const Jump& jump : jumps_) {
      // the entry may have been reused before the walk came to it
      const bool kept = entries_.rbegin()->first < jump.ordinal + config_.ring();
      if (!jump.satisfied && kept && all_duplicates_found && !fatal_) {
        return "a duplicate READ was not answered: " + std::to_string(jump.ordinal) + "." +
               std::to_string(jump.packet) + "; " + describe();
      }
    }
    return "";
  }

 private:
  struct Ack {
    rp::respond_event_t event;
    std::uint64_t order;        // READs before it
    std::uint64_t cycle;
  };
  struct Jump {
    std::uint64_t ordinal;
    std::uint32_t packet;
    bool used, satisfied;
  };

  std::string ack(const rp::tx_item_t& item, std::uint64_t cycle) {
    const auto& d = item.desc;
    if (item.has_piece || d.payload_length != 0) return "ACK with payload";
    for (std::size_t n = next_ack_; n < acks_.size(); ++n) {
      const Ack& a = acks_[n];
      if (a.event.psn != d.psn || a.event.syndrome != d.syndrome) continue;
      if (!refused_ && a.event.msn != d.msn) continue;
      if (cursor_ < a.order && a.order <= oldest()) {       // passed over: overwritten
        cursor_ = a.order;
        packet_ = 0;
      }
      // behind a refused response one may be on its way that was decided before
      if (cursor_ < a.order && !refused_) {
        return "ACK before the READ responses that precede it";
      }
      next_ack_ = n + 1;
      // equal ones behind it may have been the same packet, or come again
      for (std::size_t k = n; k < acks_.size(); ++k) {
        if (acks_[k].event.psn == d.psn && acks_[k].event.syndrome == d.syndrome) covered_ = k + 1;
      }
      last_ack_cycle_ = cycle;
      return "";
    }
    return "ACK that nobody asked for";
  }

  std::string read(const rp::tx_item_t& item) {
    const auto& d = item.desc;
    const bool starts = d.opcode == 0x0d || d.opcode == 0x10 || d.opcode == 0x12;
    // where this PSN may be: the cursor, or a place that a duplicate asks for again
    bool restart = false;
    // old entries that newer READs have overwritten are passed over
    const auto behind = [&](std::uint64_t ordinal) {
      for (std::uint64_t n = ordinal + 1; n <= oldest(); ++n) {
        if (psn_at(n, 0) == d.psn) return n;
      }
      return ordinal;
    };
    if (cursor_ < oldest() && psn_at(cursor_, packet_) != d.psn && behind(cursor_) != cursor_) {
      cursor_ = behind(cursor_);
      packet_ = 0;
    }
    if (!(cursor_ < allowed_ && psn_at(cursor_, packet_) == d.psn && (!starts || packet_ == 0))) {
      for (Jump& jump : jumps_) {
        if (!jump.used && psn_at(jump.ordinal, jump.packet) == d.psn &&
            (jump.ordinal < cursor_ || (jump.ordinal == cursor_ && jump.packet <= packet_))) {
          jump.used = restart = true;
          cursor_ = jump.ordinal;
          packet_ = jump.packet;
          break;
        }
        if (!jump.used && behind(jump.ordinal) > jump.ordinal &&
            behind(jump.ordinal) <= cursor_) {
          jump.used = restart = true;
          cursor_ = behind(jump.ordinal);
          packet_ = 0;
          break;
        }
      }
      if (!restart) return "READ response out of turn; " + describe();
    }
    const ReadEntry& e = entries_.at(cursor_);
    // an older ACK goes first, unless a newer one has replaced it
    const std::size_t before = acks_before_.at(cursor_);
    if (!refused_ && before > covered_ && last_plain_ == before) {
      return "READ response before an older ACK";
    }
    const bool last = packet_ + 1 == e.packets;
    const bool first = packet_ == 0 || restart;
    const unsigned opcode = e.atomic ? 0x12u : first ? (last ? 0x10 : 0x0d) : (last ? 0x0f : 0x0e);
    if (e.atomic && !e.done) return "ATOMIC_ACK before the atomic is done";
    if (e.atomic && d.va != e.value) return "wrong original value";
    const std::uint64_t offset = std::uint64_t{packet_} * config_.mtu();
    const std::uint32_t length = last ? static_cast<std::uint32_t>(e.length - offset)
                                      : config_.mtu();
    if (d.opcode != opcode) return "READ response with the wrong opcode";
    if (d.payload_length != length) return "READ response with the wrong length";
    if ((d.wqe_index >> 14 & 1) != (cursor_ < answered_)) return "answered before, or not";
    if (d.opcode != 0x0e && (d.msn != e.msn || d.syndrome != 0x1f)) return "wrong AETH";
    if (item.has_piece != (length != 0)) return "payload or not";
    const rp::piece_t piece{false, rp::ACCESS_REMOTE_READ, e.rkey, length, e.va + offset};
    if (item.has_piece && !(item.piece == piece)) {
      return "READ response with the wrong piece";
    }
    for (Jump& jump : jumps_) {
      if (jump.ordinal == cursor_ && jump.packet == packet_) jump.satisfied = true;
    }
    ++packet_;
    if (last) {
      packet_ = 0;
      ++cursor_;
      answered_ = std::max(answered_, cursor_);
    }
    return "";
  }

  /// Ordinal of the oldest READ whose entry was not overwritten.
  std::uint64_t oldest() const {
    if (entries_.empty()) return 0;
    return std::max(entries_.rbegin()->first + 1, config_.ring()) - config_.ring();
  }

  std::string describe() const {
    std::string text = "cursor " + std::to_string(cursor_) + "." + std::to_string(packet_) +
                       ", allowed " + std::to_string(allowed_) + ", READs:";
    for (const auto& [ordinal, e] : entries_) {
      if (ordinal + 10 < entries_.rbegin()->first) continue;
      text += " " + std::to_string(ordinal) + "=" + sv::hex(e.first_psn) + "+" +
              std::to_string(e.packets);
    }
    text += ", asked again:";
    for (const Jump& j : jumps_) {
 if (!j.used) text += " " + std::to_string(j.ordinal) + "." + std::to_string(j.packet);
    }
    return text;
  }

  std::uint32_t psn_at(std::uint64_t ordinal, std::uint32_t packet) const {
    return (entries_.at(ordinal).first_psn + packet) & psn_mask;
  }

  QpConfig config_;
  std::map<std::uint64_t, ReadEntry> entries_;
  std::vector<Jump> jumps_;
  std::uint64_t allowed_ = 0, cursor_ = 0, answered_ = 0;
  std::uint32_t packet_ = 0;
  std::vector<Ack> acks_;
  std::vector<std::size_t> acks_before_;   // per READ: acknowledgements that must leave before it
  std::size_t next_ack_ = 0;               // acks_ from here on are not yet answered
  std::size_t covered_ = 0;                // acks_ below it are answered for sure
  std::size_t last_plain_ = 0;             // one past the last ACK or NAK that is no duplicate's
  std::uint64_t last_ack_cycle_ = 0;
  bool fatal_ = false, refused_ = false;
};

}  // namespace roci::test::responder
