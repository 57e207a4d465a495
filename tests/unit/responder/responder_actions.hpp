// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Requests, rows and actions of responder_pkg against RxModel, for the tests of responder_judge and
// responder_check.
#pragma once

#include <string>

#include "responder/responder_model.hpp"

namespace roci::test::responder {

namespace rs = roci::sv::responder_pkg;

/// "" if the action says what these items say; else what differs. Receives that are not well formed are
/// not the judge's business: the model must have had good ones.
inline std::string action_differs(const rs::action_t& a, const std::vector<rp::rx_item_t>& items,
                                  unsigned op, bool took) {
  const rp::rx_item_t& i = items.at(0);
  const auto& e = i.end_info;
  const auto no = [&](const char* what) {
    return std::string(what) + "\n  action " + a.to_string() + "\n  item   " + i.to_string();
  };
  if (a.qp != i.qp || a.fn != i.fn || a.pd != i.pd || a.psn != i.psn || a.colour != i.colour) {
    return no("wrong packet");
  }
  if (a.respond_valid != e.respond_valid) return no("answer or not");
  if (a.respond_valid) {
    auto got = a.respond, want = e.respond;
    got.entry &= 0xff;
    want.entry &= 0xff;
    if (want.kind == rp::RESPOND_READ) got.syndrome = want.syndrome = 0;
    if (!(got == want)) return no("wrong answer");
  }
  if ((a.kind == rs::ACTION_FAIL) != e.error_valid) return no("fatal or not");
  if (a.take != took) return no("takes a receive or not");
  if (a.unreliable != e.unreliable) return no("answers or not");
  if (e.error_valid) {
    const bool current = e.completion_valid || e.error_event == 0;
    if ((a.use_current || a.take) != current) return no("receive in use or not");
    if (!current && a.error_event != e.error_event) return no("wrong event");
    if (e.completion_valid && a.vendor_status != e.completion.vendor_status) return no("cause");
    return "";
  }
  if (e.drop) {
    if (a.kind != rs::ACTION_DROP && a.kind != rs::ACTION_DUP_READ) return no("drops or not");
    return "";
  }
  const rs::action_e kind = op == READ_REQUEST || is_atomic(op) ? rs::ACTION_READ
                            : is_write(op)     ? rs::ACTION_WRITE
                                               : rs::ACTION_SEND;
  if (a.kind != kind) return no("wrong kind");
  if (a.nak_msn != e.nak_msn) return no("wrong MSN of a NAK");
  if (a.message_last != (is_last(op) || is_only(op))) return no("last or not");
  if (kind == rs::ACTION_SEND && a.use_current == took) return no("current receive or not");
  if (kind == rs::ACTION_WRITE && a.use_current != (takes_wqe(op) && !took)) return no("held or not");
  if (a.restart != (takes_wqe(op) && !took)) return no("from its start or not");
  if (is_atomic(op)) {
    const std::uint32_t length = op == CMP_SWAP ? 0xc0000001u : 0xc0000000u;
    if (a.length != length || a.packets != 1 || (a.imm & atomic_mask) != e.completion.imm_or_key ||
        a.va != i.piece.va || a.rkey != i.piece.key) {
      return no("wrong atomic");
    }
    return "";
  }
  if (kind != rs::ACTION_SEND && i.has_piece) {
    const std::uint32_t length = kind == rs::ACTION_READ ? a.length : a.payload_length;
    if (a.va != i.piece.va || a.rkey != i.piece.key || length != i.piece.length) {
      return no("wrong piece");
    }
  }
  if (e.completion_valid) {
    const auto& c = e.completion;
    if (a.cq != c.cq || a.qpn != c.qpn || a.solicited != c.solicited ||
        a.imm_valid != has_imm(op) || (has_imm(op) && a.imm != c.imm_or_key) ||
        a.src_qp_or_srq != c.src_qp_or_srq || a.length != c.byte_len ||
        a.datagram != ((c.flags & 1) != 0) || (a.datagram && a.pkey_index != c.pkey_index)) {
      return no("wrong completion");
    }
  }
  return "";
}

/// "" if the row is that of the model.
inline std::string row_differs(const rs::dyn_row_t& row, const RxModel& m) {
  const unsigned message = m.message == RxModel::send ? 1 : m.message == RxModel::write ? 2 : 0;
  std::string text;
  if (row.next_psn != m.next_psn) text += " next_psn";
  if (row.msn != m.msn) text += " msn";
  if (row.message != message) text += " message";
  if (row.closed != m.closed) text += " closed";
  if (!m.closed && row.nak_sent != m.nak_sent) text += " nak_sent";
  if (row.held != m.held) text += " held";
  if (m.config.type == 0 && row.acked_psn != m.acked_psn) text += " acked_psn";
  if (m.config.type == 0 && row.reads != (m.reads & 0xff)) text += " reads";
  if (m.message == RxModel::write &&
      (row.va != m.va || row.rkey != m.rkey || row.remaining != m.remaining ||
       row.total != m.total)) {
    text += " WRITE in progress";
  }
  if (m.message == RxModel::send && row.total != m.placed) text += " SEND in progress";
  return text.empty() ? text : "row:" + text + " in " + row.to_string();
}

/// A static row as RTL keeps it.
inline rs::static_row_t static_row(const QpConfig& c) {
  rs::static_row_t row{};
  row.cq = static_cast<decltype(row.cq)>(c.cq);
  row.pd = static_cast<decltype(row.pd)>(c.pd);
  row.qpn = c.qpn;
  row.qp_type = static_cast<std::uint8_t>(c.type);
  row.mtu = static_cast<std::uint8_t>(c.mtu_code);
  row.srqn = c.srqn;
  row.has_srq = c.srq >= 0;
  row.remote_write = c.remote_write;
  row.remote_read = c.remote_read;
  row.remote_atomic = c.remote_atomic;
  row.min_rnr_timer = static_cast<std::uint8_t>(c.rnr_timer);
  row.replay_log2 = static_cast<std::uint8_t>(c.replay_log2);
  row.replay_base = static_cast<decltype(row.replay_base)>(c.replay_base);
  return row;
}

/// Random packets of one QP, mostly what a requester would send next; also everything else.
class PacketSource {
 public:
  explicit PacketSource(Random& random) : random_(random) {}

  rp::rx_packet_t next(const RxModel& m) {
    const QpConfig& c = m.config;
    rp::rx_packet_t p = random_payload<rp::rx_packet_t>(random_);
    auto& h = p.headers;
    p.qp = static_cast<decltype(p.qp)>(c.qp);
    p.fn = static_cast<decltype(p.fn)>(c.fn);
    p.qp_type = static_cast<rp::qp_type_e>(c.type);
    h.psn = m.next_psn;
    h.pad_count = 0;
    const bool ends = random_.chance(0.5), imm = random_.chance(0.3);
    std::uint32_t length = static_cast<std::uint32_t>(random_.between(1, c.mtu()));
    if (c.datagram()) {
      h.opcode = static_cast<std::uint8_t>(SEND_ONLY + imm);
      length = static_cast<std::uint32_t>(random_.chance(0.2)   ? 40
                                          : random_.chance(0.3) ? random_.between(4090, 4136)
                                                                : 40 + random_.below(4097));
    } else if (m.message == RxModel::send) {
      h.opcode = static_cast<std::uint8_t>(ends ? SEND_LAST + imm : SEND_MIDDLE);
      if (!ends) length = c.mtu();
    } else if (m.message == RxModel::write) {
      const bool last = m.remaining <= c.mtu();
      h.opcode = static_cast<std::uint8_t>(last ? WRITE_LAST + imm : WRITE_MIDDLE);
      length = last ? m.remaining : c.mtu();
    } else {
      switch (random_.below(c.type == 0 ? 7 : 4)) {
        case 0: h.opcode = static_cast<std::uint8_t>(SEND_ONLY + imm); break;
        case 1: h.opcode = SEND_FIRST; break;
        case 2: h.opcode = static_cast<std::uint8_t>(WRITE_ONLY + imm); break;
        case 3: h.opcode = WRITE_FIRST; break;
        case 4: h.opcode = CMP_SWAP; break;
        case 5: h.opcode = FETCH_ADD; break;
        default: h.opcode = READ_REQUEST; break;
      }
      if (h.opcode == SEND_FIRST || h.opcode == WRITE_FIRST) length = c.mtu();
      if (is_only(h.opcode) && random_.chance(0.2)) length = 0;
      h.dma_length = h.opcode == WRITE_FIRST
                         ? c.mtu() + static_cast<std::uint32_t>(random_.between(1, 2 * c.mtu()))
                         : length;
      if (h.opcode == READ_REQUEST) {
        h.dma_length = static_cast<std::uint32_t>(random_.below(4 * c.mtu()));
        length = 0;
      }
      if (is_atomic(h.opcode)) {
        length = 16;
        if (!random_.chance(0.03)) h.va &= ~std::uint64_t{7};
      }
    }
    h.payload_length = static_cast<std::uint16_t>(length);
    h.ackreq = random_.chance(0.3);

    const std::uint64_t dice = random_.below(100);
    if (dice < 6) h.psn = (h.psn + random_.between(1, 5)) & psn_mask;
    if (dice >= 6 && dice < 14) h.psn = (h.psn - random_.between(1, 5)) & psn_mask;
    if (dice == 14) h.psn = (h.psn + 0x800000 + random_.between(0, 2) - 1) & psn_mask;
    if (c.datagram()) {
      h.psn = static_cast<std::uint32_t>(random_.bits(24));
      h.opcode = c.opcode(h.opcode);
      return p;
    }
    if (dice == 15) h.opcode = static_cast<std::uint8_t>(random_.below(13));
    if (dice == 16) h.opcode = static_cast<std::uint8_t>(random_.between(0x13, 0x1f));
    if (dice == 17) h.payload_length = static_cast<std::uint16_t>(random_.below(4097));
    if (dice == 18) h.dma_length = static_cast<std::uint32_t>(random_());
    if (dice == 19) h.pad_count = 1;
    // a class has no other opcodes (packet_rx_dispatch)
    if (c.type == 1 && h.opcode > WRITE_ONLY_IMM) h.opcode = SEND_MIDDLE;
    h.opcode = c.opcode(h.opcode);
    return p;
  }

 private:
  Random& random_;
};

/// A receive queue in which every message fits.
inline void fill(ReceiveQueue& queue, std::size_t count) {
  while (queue.posted.size() < count) {
    queue.posted.push_back({static_cast<std::uint32_t>(queue.posted_count++), {{0, 1u << 31, 1}},
                            1, false});
  }
}

}  // namespace roci::test::responder
