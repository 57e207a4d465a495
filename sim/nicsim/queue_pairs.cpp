// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "nicsim/queue_pairs.hpp"

#include <roci/error.hpp>
#include <roci_hwif_names.hpp>

#include <algorithm>

#include "fabric/frame_info.hpp"

namespace roci::sim {
namespace {

// Remembered at most; programs may make and destroy them for ever, each with a number of its own.
constexpr size_t kMost = 65536;

// Opcodes by their low five bits (wire.md §1.4).
constexpr uint8_t kOperation = 0x1f;
constexpr uint8_t kReadRequest = 0x0c;
constexpr uint8_t kReadResponseFirst = 0x0d;
constexpr uint8_t kAcknowledge = 0x11;
constexpr uint8_t kAtomicAcknowledge = 0x12;
constexpr unsigned kDatagram = 3;  // upper three bits of UD

constexpr uint32_t kPsnMask = 0xffffff;
constexpr uint32_t kPsnHalf = 0x800000;

uint64_t number(std::span<const uint8_t> bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value = value << 8 | (at + i < bytes.size() ? bytes[at + i] : 0u);
  }
  return value;
}

bool is_response(uint8_t opcode) {
  const uint8_t operation = opcode & kOperation;
  return operation >= kReadResponseFirst && operation <= kAtomicAcknowledge;
}

void count(NakCounts& naks, uint8_t syndrome) {
  switch (syndrome) {
    case 0x60: ++naks.sequence; break;
    case 0x61: ++naks.invalid_request; break;
    case 0x62: ++naks.remote_access; break;
    case 0x63: ++naks.remote_operational; break;
    default: break;
  }
  if ((syndrome & 0x60) == 0x20) ++naks.rnr;
}

std::string number_text(uint32_t qpn) { return format("0x%06x", qpn); }

std::string counted(uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

QueuePairs::Entry& QueuePairs::entry(unsigned nic, unsigned function, uint32_t qpn) {
  const auto found = entries_.find({nic, qpn});
  if (found != entries_.end()) return found->second;
  if (entries_.size() >= kMost) {
    std::erase_if(entries_, [](const auto& e) { return !e.second.qp.alive; });
    std::erase_if(senders_, [this](const auto& s) {
      return !entries_.contains({s.first.first.first, s.second});
    });
  }
  Entry& out = entries_[{nic, qpn}];
  out.qp.nic = nic;
  out.qp.function = function;
  out.qp.qpn = qpn;
  return out;
}

void QueuePairs::modify(unsigned nic, unsigned function, uint32_t qpn,
                        const hwif::ModifyQpInput& input) {
  using Input = hwif::ModifyQpInput;
  using Mask = hwif::QpAttributeMask;
  using A = hwif::QpAttributes;
  const Mask mask = input.get<Input::mask>();
  const A attributes = input.get<Input::attributes>();
  Entry& e = entry(nic, function, qpn);
  if (mask.get<Mask::state>()) {
    e.qp.state = attributes.get<A::state>();
    if (*e.qp.state == hwif::QpState::RESET) e.sent = false;
  }
  if (mask.get<Mask::path_mtu>()) {
    e.mtu = 128u << static_cast<unsigned>(attributes.get<A::path_mtu>());
  }
  if (mask.get<Mask::path>()) {
    const auto path = attributes.get<A::path>();
    const auto mac = path.get<hwif::AddressVector::dmac>();
    e.qp.dest_mac = 0;
    for (const uint8_t byte : mac.bytes) e.qp.dest_mac = e.qp.dest_mac << 8 | byte;
  }
  if (mask.get<Mask::dest_qpn>()) e.qp.dest_qpn = attributes.get<A::dest_qpn>();
  if (e.qp.dest_qpn) senders_[{{nic, *e.qp.dest_qpn}, e.qp.dest_mac}] = qpn;
}

void QueuePairs::destroy(unsigned nic, uint32_t qpn) {
  const auto found = entries_.find({nic, qpn});
  if (found != entries_.end()) found->second.qp.alive = false;
}

void QueuePairs::left(unsigned nic, unsigned function) {
  for (auto& [key, e] : entries_) {
    if (key.first == nic && e.qp.function == function) e.qp.alive = false;
  }
}

void QueuePairs::completed(unsigned nic, const hwif::Cqe& cqe) {
  const auto found = entries_.find({nic, cqe.get<hwif::Cqe::qpn>()});
  if (found == entries_.end()) return;
  QueuePair& qp = found->second.qp;
  ++qp.completions;
  const auto status = cqe.get<hwif::Cqe::status>();
  if (status == hwif::CqeStatus::SUCCESS) return;
  qp.state = hwif::QpState::ERR;
  if (status == hwif::CqeStatus::WR_FLUSH_ERR) {
    ++qp.flushed;
    return;
  }
  if (qp.failed++ != 0) return;
  qp.status = status;
  qp.vendor_status = cqe.get<hwif::Cqe::vendor_status>();
}

std::optional<unsigned> QueuePairs::nic_of(uint64_t mac) const {
  for (size_t n = 0; n < places_.size(); ++n) {
    if (places_[n].mac == mac) return static_cast<unsigned>(n);
  }
  return std::nullopt;
}

QueuePairs::Entry* QueuePairs::sender_of(unsigned nic, uint32_t dest_qpn, uint64_t dest_mac,
                                         uint32_t src_qpn) {
  uint32_t qpn = src_qpn;
  if (src_qpn == 0) {
    const auto sender = senders_.find({{nic, dest_qpn}, dest_mac});
    if (sender == senders_.end()) return nullptr;
    qpn = sender->second;
  }
  const auto found = entries_.find({nic, qpn});
  return found == entries_.end() ? nullptr : &found->second;
}

void QueuePairs::request_sent(Entry& e, uint32_t psn, uint32_t psns) {
  ++e.qp.requests_sent;
  const bool old = e.sent && ((psn - e.next_psn) & kPsnMask) >= kPsnHalf;
  if (old) {
    ++e.qp.requests_again;
    // a rewind is where PSNs do not follow each other
    if (psn != e.follows_psn) {
      ++(e.cause == Entry::Cause::nak   ? e.qp.rewinds_nak
         : e.cause == Entry::Cause::rnr ? e.qp.rewinds_rnr
                                        : e.qp.rewinds_other);
      e.cause = Entry::Cause::none;
    }
  } else {
    e.next_psn = (psn + psns) & kPsnMask;
  }
  e.follows_psn = (psn + psns) & kPsnMask;
  e.sent = true;
}

void QueuePairs::frame(const TapEvent& event) {
  const FrameInfo info = inspect(event.bytes);
  if (!info.is_roce) return;
  const bool sent = event.direction == TapEvent::Direction::sent;
  const auto nic = static_cast<unsigned>(event.port);
  const bool answer = is_response(info.opcode);
  const size_t bth = (number(event.bytes, 12, 2) == 0x8100 ? 18 : 14) + 40;
  const bool datagram = info.opcode >> 5 == kDatagram;
  const uint32_t src_qpn =
      datagram ? static_cast<uint32_t>(number(event.bytes, bth + 12 + 5, 3)) : 0;
  const uint8_t syndrome = info.syndrome.value_or(0);
  const bool positive = (syndrome & 0x60) == 0;

  if (!sent && event.lost) {  // on the way from the switch: its sender's loss
    const auto from = nic_of(info.src_mac);
    Entry* e = from ? sender_of(*from, info.dest_qp, info.dst_mac, src_qpn) : nullptr;
    if (e != nullptr) ++(answer ? e->qp.answers_lost : e->qp.requests_lost);
    return;
  }
  if (nic >= places_.size() || !places_[nic].mac) return;
  if (sent) {
    Entry* e = sender_of(nic, info.dest_qp, info.dst_mac, src_qpn);
    if (e == nullptr) return;
    if (event.lost) ++(answer ? e->qp.answers_lost : e->qp.requests_lost);
    if (!answer) {
      const bool read = !datagram && (info.opcode & kOperation) == kReadRequest;
      const auto length = static_cast<uint32_t>(number(event.bytes, bth + 12 + 12, 4));
      request_sent(*e, info.psn, read ? std::max(1u, (length + e->mtu - 1) / e->mtu) : 1);
    } else if (info.opcode != kAcknowledge) {
      ++e->qp.responses_sent;
    } else if (positive) {
      ++e->qp.acks_sent;
    } else {
      count(e->qp.naks_sent, syndrome);
    }
    return;
  }
  if (info.dst_mac != *places_[nic].mac) return;  // flooded, or a group's
  const auto found = entries_.find({nic, info.dest_qp});
  if (found == entries_.end() || !found->second.qp.alive) {
    if (!event.bad) ++unknown_[nic];
    return;
  }
  Entry& e = found->second;
  if (event.bad || event.damaged) {
    ++e.qp.damaged_received;
  } else if (!answer) {
    ++e.qp.requests_received;
  } else if (info.opcode != kAcknowledge) {
    ++e.qp.responses_received;
  } else if (positive) {
    ++e.qp.acks_received;
    e.cause = Entry::Cause::none;
  } else {
    count(e.qp.naks_received, syndrome);
    e.cause = (syndrome & 0x60) == 0x20 ? Entry::Cause::rnr
              : syndrome == 0x60        ? Entry::Cause::nak
                                        : Entry::Cause::none;
  }
}

std::vector<const QueuePair*> QueuePairs::all() const {
  std::vector<const QueuePair*> out;
  out.reserve(entries_.size());
  for (const auto& [key, e] : entries_) out.push_back(&e.qp);
  return out;
}

const QueuePair* QueuePairs::find(unsigned nic, uint32_t qpn) const {
  const auto found = entries_.find({nic, qpn});
  return found == entries_.end() ? nullptr : &found->second.qp;
}

uint64_t QueuePairs::unknown_destination(unsigned nic) const {
  const auto found = unknown_.find(nic);
  return found == unknown_.end() ? 0 : found->second;
}

std::optional<unsigned> QueuePairs::destination_nic(const QueuePair& qp) const {
  return qp.dest_qpn ? nic_of(qp.dest_mac) : std::nullopt;
}

std::string QueuePairs::destination(const QueuePair& qp) const {
  if (!qp.dest_qpn) return "";
  const auto nic = nic_of(qp.dest_mac);
  const auto mac = qp.dest_mac;
  return "QP " + number_text(*qp.dest_qpn) + " of " +
         (nic ? places_[*nic].name
              : format("%02x:%02x:%02x:%02x:%02x:%02x", static_cast<unsigned>(mac >> 40 & 0xff),
                       static_cast<unsigned>(mac >> 32 & 0xff),
                       static_cast<unsigned>(mac >> 24 & 0xff),
                       static_cast<unsigned>(mac >> 16 & 0xff),
                       static_cast<unsigned>(mac >> 8 & 0xff), static_cast<unsigned>(mac & 0xff)));
}

std::string QueuePairs::explain(const QueuePair& qp, const std::vector<std::string>& drops) const {
  if (qp.failed == 0) return "";
  std::string out = "QP " + number_text(qp.qpn) + " of " + places_.at(qp.nic).name;
  if (qp.dest_qpn) out += " to " + destination(qp);
  out += std::string(": ") + to_string(qp.status) + " (" + to_string(qp.vendor_status) + "); ";

  out += counted(qp.requests_sent, "request packet") + " sent";
  if (qp.requests_again != 0) out += ", " + std::to_string(qp.requests_again) + " of them again";
  std::string causes;
  for (const auto& [count, cause] :
       {std::pair{qp.rewinds_nak, "sequence NAK"}, std::pair{qp.rewinds_rnr, "RNR NAK"},
        std::pair{qp.rewinds_other, "timeout or missing response"}}) {
    if (count != 0) causes += (causes.empty() ? "" : ", ") + std::to_string(count) + " x " + cause;
  }
  if (!causes.empty()) out += " (" + causes + ")";
  if (qp.requests_lost != 0) out += ", " + std::to_string(qp.requests_lost) + " lost on the link";

  std::string back;
  for (const auto& [count, what] :
       {std::pair{qp.acks_received, "ACK"}, std::pair{qp.responses_received, "response"},
        std::pair{qp.naks_received.sequence, "sequence NAK"},
        std::pair{qp.naks_received.rnr, "RNR NAK"},
        std::pair{qp.naks_received.invalid_request, "NAK invalid request"},
        std::pair{qp.naks_received.remote_access, "NAK remote access"},
        std::pair{qp.naks_received.remote_operational, "NAK remote operational"}}) {
    if (count != 0) back += (back.empty() ? "" : ", ") + counted(count, what);
  }
  out += back.empty() ? "; nothing came back" : "; came back: " + back;
  if (qp.damaged_received != 0) out += "; " + counted(qp.damaged_received, "damaged frame") + " for it";

  const auto peer = destination_nic(qp);
  if (peer && qp.acks_received + qp.responses_received + qp.naks_received.total() == 0) {
    const QueuePair* other = find(*peer, *qp.dest_qpn);
    const std::string& name = places_[*peer].name;
    if (other == nullptr) {
      out += "; " + name + " never had that queue pair in use";
    } else if (other->dest_qpn && *other->dest_qpn != qp.qpn) {
      out += "; that one is connected to " + destination(*other);
    } else if (other->state && *other->state != hwif::QpState::RTR &&
               *other->state != hwif::QpState::RTS) {
      out += std::string("; that one is in ") + to_string(*other->state);
    }
  }
  for (size_t nic = 0; nic < drops.size(); ++nic) {
    if (!drops[nic].empty() && (nic == qp.nic || peer == nic)) {
      out += "; " + places_[nic].name + " counts " + drops[nic];
    }
  }
  return out;
}

}  // namespace roci::sim
