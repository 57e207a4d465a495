// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// FakeNic: carries out the requests of queue pairs, one at a time and in order.
#include "fake_nic.hpp"

#include <roci/error.hpp>

#include <algorithm>
#include <cstring>

namespace roci::test {
namespace {

using hwif::CqeOpcode;
using hwif::CqeStatus;
using hwif::EqeType;
using hwif::QpState;
using hwif::VendorStatus;
using hwif::WrOpcode;

constexpr unsigned BLOCK = hwif::SQ_BLOCK_BYTES;

CqeOpcode send_opcode(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::WRITE:
    case WrOpcode::WRITE_IMM: return CqeOpcode::WRITE;
    case WrOpcode::READ: return CqeOpcode::READ;
    case WrOpcode::CMP_SWAP: return CqeOpcode::CMP_SWAP;
    case WrOpcode::FETCH_ADD: return CqeOpcode::FETCH_ADD;
    case WrOpcode::NOP: return CqeOpcode::NOP;
    default: return CqeOpcode::SEND;
  }
}

bool is_atomic(WrOpcode opcode) {
  return opcode == WrOpcode::CMP_SWAP || opcode == WrOpcode::FETCH_ADD;
}

bool takes_receive(WrOpcode opcode) {
  return opcode != WrOpcode::WRITE && opcode != WrOpcode::READ && !is_atomic(opcode);
}

// Eight bytes as they are on the wire.
uint64_t big_endian(const uint8_t* bytes) {
  uint64_t value = 0;
  for (unsigned i = 0; i < 8; ++i) value = value << 8 | bytes[i];
  return value;
}

// Operations of a transport (wire.md §1.4).
bool has_operation(hwif::QpType type, WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::NOP:
    case WrOpcode::SEND:
    case WrOpcode::SEND_IMM: return true;
    case WrOpcode::WRITE:
    case WrOpcode::WRITE_IMM: return type != hwif::QpType::UD;
    case WrOpcode::READ:
    case WrOpcode::CMP_SWAP:
    case WrOpcode::FETCH_ADD: return type == hwif::QpType::RC;
    default: return false;
  }
}

}  // namespace

FakeNic::Srq* FakeNic::srq_of(const Qp& qp) {
  if (!qp.params.get<hwif::CreateQpParams::has_srq>()) return nullptr;
  return find(srqs_, qp.function, qp.params.get<hwif::CreateQpParams::srqn>());
}

bool FakeNic::has_receive(const Qp& qp) {
  if (const Srq* srq = srq_of(qp)) return srq->taken != srq->posted;
  return qp.rq_taken != qp.rq_posted;
}

void FakeNic::fail_qp(Qp& qp, VendorStatus cause) {
  if (qp.state == QpState::ERR) return;
  qp.state = QpState::ERR;
  qp.cause = cause;
}

// Only the event tells of a ring that cannot be read.
void FakeNic::unreadable(Qp& qp) {
  if (std::exchange(qp.unreadable, true)) return;
  fail_qp(qp, VendorStatus::NONE);
  async_event(qp.function, EqeType::QP_FATAL, qp.number);
}

void FakeNic::break_qp(uint32_t qpn, VendorStatus cause) {
  const std::lock_guard lock(fabric_.mutex());
  for (Qp& qp : qps_) {
    if (!qp.exists || qp.number != qpn) continue;
    fail_qp(qp, cause);
    async_event(qp.function, EqeType::QP_FATAL, qpn, cause);
  }
}

// The request at `index`, with the checks of wqe_fetch and packetizer.
std::optional<FakeNic::Wqe> FakeNic::fetch(Qp& qp, uint16_t index, unsigned& blocks,
                                           Outcome& outcome) {
  using P = hwif::CreateQpParams;
  using C = hwif::SqWqeControl;
  const uint32_t mask = (1u << qp.params.get<P::sq_ring_log2>()) - 1;
  const uint64_t address = qp.params.get<P::sq_ring_address>() + (index & mask) * uint64_t{BLOCK};
  std::vector<uint8_t> raw(BLOCK);
  outcome.status = CqeStatus::LOC_QP_OP_ERR;
  if (!memory(qp.function, address, raw, false)) {
    unreadable(qp);
    return std::nullopt;
  }
  Wqe wqe;
  wqe.control = hwif::SqWqeControl::load_from(raw.data());
  wqe.remote = hwif::SqWqeRemote::load_from(raw.data() + C::BYTES);
  blocks = wqe.control.get<C::blocks>();
  const unsigned in_line = hwif::SQ_LINE_BLOCKS - index % hwif::SQ_LINE_BLOCKS;
  const auto posted = static_cast<uint16_t>(qp.sq_posted - index);
  if (blocks == 0 || blocks > in_line || blocks > posted) {
    violation(format("send request of %u blocks at %u, %u posted", blocks, index, posted));
    outcome.vendor = VendorStatus::WQE_BLOCKS;
    blocks = 1;
    return std::nullopt;
  }
  raw.resize(size_t{blocks} * BLOCK);
  if (!memory(qp.function, address, raw, false)) {
    unreadable(qp);
    return std::nullopt;
  }
  const WrOpcode opcode = wqe.control.get<C::opcode>();
  const bool datagram = is(qp, hwif::QpType::UD) && opcode != WrOpcode::NOP;
  if (!has_operation(qp.params.get<P::qp_type>(), opcode)) {
    violation("operation that the type does not have");
    outcome.vendor = VendorStatus::WQE_OPCODE;
    return std::nullopt;
  }
  const uint32_t length = wqe.control.get<C::length>();
  const unsigned sges = wqe.control.get<C::sge_count>();
  if (wqe.control.get<C::address_vector>() != datagram) {
    violation("an address vector in requests of UD, and in them alone");
    outcome.vendor = VendorStatus::WQE_OPCODE;
    return std::nullopt;
  }
  size_t data = hwif::SQ_HEADER_BYTES;
  if (is_atomic(opcode)) {
    wqe.swap_or_add = big_endian(&raw[data]);
    wqe.compare = big_endian(&raw[data + 8]);
    data += hwif::SqWqeAtomic::BYTES;
    if (sges != 1 || length != 8) {
      violation("an atomic without one SGE of 8 bytes");
      outcome.status = CqeStatus::LOC_LEN_ERR;
      outcome.vendor = VendorStatus::ATOMIC_LENGTH;
      return std::nullopt;
    }
  } else if (datagram) {
    wqe.ud = hwif::SqWqeUd::load_from(raw.data() + C::BYTES);
    wqe.vector = hwif::AddressVector::load_from(raw.data() + data);
    data += hwif::AddressVector::BYTES;
  }
  const size_t room = raw.size() - data;
  if (wqe.control.get<C::inline_data>()) {
    if (length > room || sges != 0 || opcode == WrOpcode::READ || is_atomic(opcode)) {
      violation("inline data does not fit");
      outcome.vendor = VendorStatus::WQE_INLINE;
      return std::nullopt;
    }
    const auto begin = raw.begin() + static_cast<std::ptrdiff_t>(data);
    wqe.inline_bytes.assign(begin, begin + length);
    return wqe;
  }
  if (sges * hwif::Sge::BYTES > room ||
      (opcode == WrOpcode::READ && sges > hwif::MAX_SGE_READ_WIDE)) {
    violation("more SGEs than allowed");
    outcome.vendor = VendorStatus::WQE_SGE_COUNT;
    return std::nullopt;
  }
  uint64_t sum = 0;
  for (unsigned i = 0; i < sges; ++i) {
    wqe.sges.push_back(
        hwif::Sge::load_from(raw.data() + data + i * hwif::Sge::BYTES));
    sum += wqe.sges.back().get<hwif::Sge::length>();
  }
  if (sum != length || length > hwif::MAX_MESSAGE_BYTES) {
    violation("length is not the sum of the SGEs");
    outcome.status = CqeStatus::LOC_LEN_ERR;
    outcome.vendor = VendorStatus::WQE_LENGTH;
    return std::nullopt;
  }
  return wqe;
}

std::optional<FakeNic::Receive> FakeNic::fetch_receive(Qp& qp, Outcome& outcome) {
  using P = hwif::CreateQpParams;
  using S = hwif::CreateSrqParams;
  Srq* const srq = srq_of(qp);
  const unsigned log2 = srq != nullptr ? srq->params.get<S::ring_log2>()
                                       : qp.params.get<P::rq_ring_log2>();
  const unsigned stride =
      hwif::RQ_STRIDE_BASE_BYTES << (srq != nullptr ? srq->params.get<S::stride_code>()
                                                    : qp.params.get<P::rq_stride_code>());
  const uint64_t ring = srq != nullptr ? srq->params.get<S::ring_address>()
                                       : qp.params.get<P::rq_ring_address>();
  std::vector<uint8_t> raw(stride);
  Receive receive;
  uint16_t& taken = srq != nullptr ? srq->taken : qp.rq_taken;
  const uint64_t address = ring + (taken & ((1u << log2) - 1)) * uint64_t{stride};
  ++taken;
  if (srq != nullptr && srq->limit != 0 &&
      static_cast<uint16_t>(srq->posted - srq->taken) < srq->limit) {
    srq->limit = 0;  // once
    async_event(srq->function, EqeType::SRQ_LIMIT_REACHED, srq->number);
  }
  outcome.status = CqeStatus::LOC_QP_OP_ERR;
  if (!memory(qp.function, address, raw, false)) {
    unreadable(qp);
    return std::nullopt;
  }
  const auto header = hwif::RqWqeHeader::load_from(raw.data());
  receive.cookie = header.get<hwif::RqWqeHeader::cookie>();
  const unsigned sges = header.get<hwif::RqWqeHeader::sge_count>();
  if (hwif::RqWqeHeader::BYTES + sges * hwif::Sge::BYTES > stride) {
    violation("receive has more SGEs than its stride");
    outcome.vendor = VendorStatus::WQE_SGE_COUNT;
    return std::nullopt;
  }
  for (unsigned i = 0; i < sges; ++i) {
    receive.sges.push_back(
        hwif::Sge::load_from(raw.data() + hwif::RqWqeHeader::BYTES + i * hwif::Sge::BYTES));
  }
  outcome = {};
  return receive;
}

void FakeNic::complete_send(Qp& qp, const Wqe& wqe, uint16_t index, const Outcome& outcome) {
  using C = hwif::SqWqeControl;
  if (qp.unreadable || (outcome.status == CqeStatus::SUCCESS && !wqe.control.get<C::signaled>())) {
    return;
  }
  const WrOpcode opcode = wqe.control.get<C::opcode>();
  hwif::Cqe cqe{};
  cqe.set<hwif::Cqe::qpn>(qp.number);
  cqe.set<hwif::Cqe::opcode>(send_opcode(opcode));
  cqe.set<hwif::Cqe::wqe_index_or_cookie>(index);
  if (opcode == WrOpcode::READ || is_atomic(opcode)) {
    cqe.set<hwif::Cqe::byte_len>(wqe.control.get<C::length>());
  }
  cqe.set<hwif::Cqe::status>(outcome.status);
  cqe.set<hwif::Cqe::vendor_status>(outcome.vendor);
  write_cqe(qp.params.get<hwif::CreateQpParams::send_cqn>(), cqe);
}

void FakeNic::complete_receive(Qp& qp, const Receive& receive, CqeOpcode opcode, uint32_t bytes,
                               uint32_t imm, bool solicited, const Outcome& outcome,
                               const hwif::Cqe& more) {
  if (qp.unreadable) return;
  hwif::Cqe cqe = more;
  cqe.set<hwif::Cqe::qpn>(qp.number);
  cqe.set<hwif::Cqe::opcode>(opcode);
  cqe.set<hwif::Cqe::wqe_index_or_cookie>(receive.cookie);
  cqe.set<hwif::Cqe::byte_len>(bytes);
  cqe.set<hwif::Cqe::imm_or_key>(imm);
  cqe.set<hwif::Cqe::solicited>(solicited);
  cqe.set<hwif::Cqe::status>(outcome.status);
  cqe.set<hwif::Cqe::vendor_status>(outcome.vendor);
  if (const Srq* srq = srq_of(qp); srq != nullptr && !is(qp, hwif::QpType::UD)) {
    cqe.set<hwif::Cqe::src_qp_or_srqn>(srq->number);
  }
  write_cqe(qp.params.get<hwif::CreateQpParams::recv_cqn>(), cqe);
}

// One step of a QP. @return whether anything happened
bool FakeNic::work_on(Qp& qp) {
  if (qp.state == QpState::ERR) {
    const bool shared = srq_of(qp) != nullptr;
    bool any = qp.sq_oldest != qp.sq_posted || (!shared && qp.rq_taken != qp.rq_posted);
    if (any) flush(qp);
    if (shared && !qp.last_raised) {  // no receive of the SRQ is its own any more
      qp.last_raised = any = true;
      async_event(qp.function, EqeType::QP_LAST_WQE_REACHED, qp.number);
    }
    return any;
  }
  if (qp.state == QpState::SQE) {
    const bool any = qp.sq_oldest != qp.sq_posted;
    if (any) flush(qp);
    return any;
  }
  if (qp.state == QpState::SQD && !qp.drained) {
    qp.drained = true;
    if (qp.attributes.get<hwif::QpAttributes::sqd_async_notify>()) {
      async_event(qp.function, EqeType::SQ_DRAINED, qp.number);
    }
    return true;
  }
  if (qp.state != QpState::RTS || qp.sq_oldest == qp.sq_posted) return false;
  if (qp.wake_at > fabric_.now()) return false;
  Outcome outcome;
  unsigned blocks = 1;
  const uint16_t index = qp.sq_oldest;
  const auto wqe = fetch(qp, index, blocks, outcome);
  if (wqe) outcome = is(qp, hwif::QpType::UD) ? send_datagram(qp, *wqe) : transfer(qp, *wqe);
  // UC: what the peer does not take is lost, and done when it left (wire.md §2.16).
  if (is(qp, hwif::QpType::UC) && outcome.retry) outcome = {};
  if (outcome.retry) {
    using A = hwif::QpAttributes;
    unsigned& tries = outcome.rnr ? qp.rnr_retries : qp.retries;
    const unsigned limit = outcome.rnr ? qp.attributes.get<A::rnr_retry>()
                                       : qp.attributes.get<A::retry_count>();
    const bool endless = outcome.rnr ? limit == 7 : qp.attributes.get<A::timeout>() == 0;
    if (endless || tries++ < limit) {
      qp.wake_at = fabric_.now() + config_.retry_cycles;
      return true;
    }
    outcome.status = outcome.rnr ? CqeStatus::RNR_RETRY_EXC_ERR : CqeStatus::RETRY_EXC_ERR;
    outcome.vendor = outcome.rnr ? VendorStatus::RETRY_RNR : VendorStatus::RETRY_TIMEOUT;
  }
  qp.wake_at = 0;
  qp.retries = 0;
  qp.rnr_retries = 0;
  qp.sq_oldest = static_cast<uint16_t>(qp.sq_oldest + blocks);
  if (outcome.status != CqeStatus::SUCCESS && !is(qp, hwif::QpType::RC)) {
    qp.state = QpState::SQE;
    qp.cause = outcome.vendor;
  } else if (outcome.status != CqeStatus::SUCCESS) {
    fail_qp(qp, outcome.vendor);
  }
  complete_send(qp, wqe ? *wqe : Wqe{}, index, outcome);
  return true;
}

namespace {

// Status of a request or receive whose local memory cannot be used.
CqeStatus local_status(VendorStatus check) {
  switch (check) {
    case VendorStatus::TABLE_BUS:
    case VendorStatus::PAYLOAD_READ_BUS:
    case VendorStatus::PAYLOAD_WRITE_BUS: return CqeStatus::LOC_QP_OP_ERR;
    default: return CqeStatus::LOC_PROT_ERR;
  }
}

}  // namespace

// Fills the pieces in order.
VendorStatus FakeNic::scatter(const Qp& qp, const std::vector<hwif::Sge>& sges,
                              std::span<uint8_t> data) {
  for (const hwif::Sge& sge : sges) {
    const size_t n = std::min<size_t>(data.size(), sge.get<hwif::Sge::length>());
    const auto check = access(qp.function, qp.pd, sge.get<hwif::Sge::lkey>(),
                              sge.get<hwif::Sge::va>(), data.first(n), true, false);
    if (check != VendorStatus::NONE) return check;
    data = data.subspan(n);
  }
  return VendorStatus::NONE;
}

// What a SEND or WRITE takes along.
VendorStatus FakeNic::read_data(const Qp& qp, const Wqe& wqe, std::vector<uint8_t>& payload) {
  payload = wqe.inline_bytes;
  for (const hwif::Sge& sge : wqe.sges) {
    const size_t at = payload.size();
    payload.resize(at + sge.get<hwif::Sge::length>());
    const auto check = access(qp.function, qp.pd, sge.get<hwif::Sge::lkey>(),
                              sge.get<hwif::Sge::va>(), std::span(payload).subspan(at), false, false);
    if (check != VendorStatus::NONE) return check;
  }
  return VendorStatus::NONE;
}

// Executes an atomic at the responder; the value that was there becomes the payload.
FakeNic::Outcome FakeNic::atomic(const Wqe& wqe, std::span<uint8_t> payload, Qp& peer) {
  const uint64_t va = wqe.remote.get<hwif::SqWqeRemote::va>();
  const uint32_t rkey = wqe.remote.get<hwif::SqWqeRemote::rkey>();
  const auto refuse = [&](VendorStatus cause, EqeType event, CqeStatus status, VendorStatus nak) {
    fail_qp(peer, cause);
    async_event(peer.function, event, peer.number, cause);
    return Outcome{status, nak, false, false};
  };
  if (va % 8 != 0) {
    return refuse(VendorStatus::RECV_ATOMIC_ALIGNMENT, EqeType::QP_REQ_ERROR,
                  CqeStatus::REM_INV_REQ_ERR, VendorStatus::NAK_INVALID_REQUEST);
  }
  const auto check = access(peer.function, peer.pd, rkey, va, payload, false, true, true);
  if (check != VendorStatus::NONE) {
    return refuse(check, EqeType::QP_ACCESS_ERROR, CqeStatus::REM_ACCESS_ERR,
                  VendorStatus::NAK_REMOTE_ACCESS);
  }
  uint64_t value = 0;
  std::memcpy(&value, payload.data(), sizeof value);
  const bool swaps = wqe.control.get<hwif::SqWqeControl::opcode>() == WrOpcode::CMP_SWAP;
  if (swaps && value != wqe.compare) return {};
  value = swaps ? wqe.swap_or_add : value + wqe.swap_or_add;
  access(peer.function, peer.pd, rkey, va, {reinterpret_cast<uint8_t*>(&value), sizeof value}, true,
         true, true);
  return {};
}

FakeNic::Outcome FakeNic::transfer(Qp& qp, const Wqe& wqe) {
  using A = hwif::QpAttributes;
  using V = hwif::AddressVector;
  const WrOpcode opcode = wqe.control.get<hwif::SqWqeControl::opcode>();
  if (opcode == WrOpcode::NOP) return {};
  std::vector<uint8_t> payload;
  const bool fetches = opcode == WrOpcode::READ || is_atomic(opcode);
  if (!fetches) {
    const auto check = read_data(qp, wqe, payload);
    if (check != VendorStatus::NONE) return {local_status(check), check, false, false};
  } else {
    payload.resize(wqe.control.get<hwif::SqWqeControl::length>());
    for (const hwif::Sge& sge : wqe.sges) {
      const auto check =
          check_key(qp.function, qp.pd, sge.get<hwif::Sge::lkey>(), sge.get<hwif::Sge::va>(),
                    sge.get<hwif::Sge::length>(), true, false);
      if (check != VendorStatus::NONE) return {local_status(check), check, false, false};
    }
  }
  // Over the wire: the frame reaches a MAC address, and is dropped without a word unless GID, number
  // and the other end of the connection fit.
  const auto path = qp.attributes.get<A::path>();
  FakeNic* target = fabric_.find(path.get<V::dmac>());
  const Outcome nothing{CqeStatus::SUCCESS, VendorStatus::NONE, true, false};
  if (target == nullptr || fabric_.find(path.get<V::dgid>()) != target) return nothing;
  const uint32_t dest = qp.attributes.get<A::dest_qpn>();
  Qp& peer = target->qps_[dest & (target->qps_.size() - 1)];
  const bool receives = peer.exists && peer.number == dest &&
                        peer.attributes.get<A::dest_qpn>() == qp.number &&
                        (peer.state == QpState::RTR || peer.state == QpState::RTS ||
                         peer.state == QpState::SQD);
  if (!receives) return nothing;
  if (!peer.exists || peer.params.get<hwif::CreateQpParams::qp_type>() !=
                          qp.params.get<hwif::CreateQpParams::qp_type>()) {
    return nothing;
  }
  if (is(qp, hwif::QpType::RC) && peer.expected_psn != qp.next_psn) {
    violation("PSNs of the two ends differ");
    return nothing;
  }
  Outcome outcome = deliver(wqe, payload, *target, peer);
  if (outcome.retry) return outcome;
  const auto mtu = 128u << static_cast<unsigned>(qp.attributes.get<A::path_mtu>());
  const auto packets = static_cast<uint32_t>(std::max<size_t>(1, (payload.size() + mtu - 1) / mtu));
  qp.next_psn = (qp.next_psn + packets) & 0xffffff;
  peer.expected_psn = qp.next_psn;
  if (fetches && outcome.status == CqeStatus::SUCCESS) {
    const auto check = scatter(qp, wqe.sges, payload);
    if (check != VendorStatus::NONE) return {local_status(check), check, false, false};
  }
  return outcome;
}

// The responder (wire.md §2.14).
FakeNic::Outcome FakeNic::deliver(const Wqe& wqe, std::span<uint8_t> payload, FakeNic& target,
                                  Qp& peer) {
  using R = hwif::AccessRights;
  const WrOpcode opcode = wqe.control.get<hwif::SqWqeControl::opcode>();
  if (peer.state == QpState::RTR && !peer.established) {
    peer.established = true;
    target.async_event(peer.function, EqeType::COMM_EST, peer.number);
  }
  const bool write = opcode == WrOpcode::WRITE || opcode == WrOpcode::WRITE_IMM;
  const bool read = opcode == WrOpcode::READ;
  const auto rights = peer.attributes.get<hwif::QpAttributes::rights>();
  if (is(peer, hwif::QpType::UC)) {
    // Silence, whatever is wrong, and the queue pair stays.
    if (write && (!rights.get<R::remote_write>() ||
                  target.check_key(peer.function, peer.pd, wqe.remote.get<hwif::SqWqeRemote::rkey>(),
                                   wqe.remote.get<hwif::SqWqeRemote::va>(), payload.size(), true,
                                   true) != VendorStatus::NONE)) {
      return {};
    }
    if (takes_receive(opcode) && !target.has_receive(peer)) return {};
  }
  if ((write && !rights.get<R::remote_write>()) || (read && !rights.get<R::remote_read>()) ||
      (is_atomic(opcode) && !rights.get<R::remote_atomic>())) {
    target.fail_qp(peer, VendorStatus::RECV_ACCESS_FLAG);
    target.async_event(peer.function, EqeType::QP_REQ_ERROR, peer.number,
                       VendorStatus::RECV_ACCESS_FLAG);
    return {CqeStatus::REM_INV_REQ_ERR, VendorStatus::NAK_INVALID_REQUEST, false, false};
  }
  if (is_atomic(opcode)) return target.atomic(wqe, payload, peer);
  if (takes_receive(opcode) && !target.has_receive(peer)) {
    return {CqeStatus::SUCCESS, VendorStatus::NONE, true, true};
  }
  if (write || read) {
    const auto check = target.access(peer.function, peer.pd,
                                     wqe.remote.get<hwif::SqWqeRemote::rkey>(),
                                     wqe.remote.get<hwif::SqWqeRemote::va>(), payload, write, true);
    if (check != VendorStatus::NONE) {
      target.fail_qp(peer, check);
      target.async_event(peer.function, EqeType::QP_ACCESS_ERROR, peer.number, check);
      return {CqeStatus::REM_ACCESS_ERR, VendorStatus::NAK_REMOTE_ACCESS, false, false};
    }
  }
  if (!takes_receive(opcode)) return {};
  return target.receive(peer, wqe, payload);
}

// A message that takes a receive. @return what the requester sees
FakeNic::Outcome FakeNic::receive(Qp& peer, const Wqe& wqe, std::span<uint8_t> payload) {
  using C = hwif::SqWqeControl;
  const WrOpcode opcode = wqe.control.get<C::opcode>();
  Outcome local;
  const auto receive = fetch_receive(peer, local);
  const bool with_data = opcode != WrOpcode::WRITE_IMM;
  uint64_t room = 0;
  if (receive) {
    for (const hwif::Sge& sge : receive->sges) room += sge.get<hwif::Sge::length>();
  }
  if (receive && with_data && room < payload.size()) {
    local = {CqeStatus::LOC_LEN_ERR, VendorStatus::RECV_TOO_SHORT, false, false};
  } else if (receive && with_data) {
    const auto check = scatter(peer, receive->sges, payload);
    if (check != VendorStatus::NONE) local = {local_status(check), check, false, false};
  }
  const CqeOpcode done = opcode == WrOpcode::WRITE_IMM  ? CqeOpcode::RECV_WRITE_IMM
                         : opcode == WrOpcode::SEND_IMM ? CqeOpcode::RECV_IMM
                                                        : CqeOpcode::RECV;
  if (local.status != CqeStatus::SUCCESS) {
    fail_qp(peer, local.vendor);
    complete_receive(peer, receive.value_or(Receive{}), CqeOpcode::RECV, 0, 0, false, local);
    if (local.status == CqeStatus::LOC_LEN_ERR) {
      return {CqeStatus::REM_INV_REQ_ERR, VendorStatus::NAK_INVALID_REQUEST, false, false};
    }
    return {CqeStatus::REM_OP_ERR, VendorStatus::NAK_REMOTE_OPERATIONAL, false, false};
  }
  const uint32_t imm = done == CqeOpcode::RECV ? 0 : wqe.control.get<C::imm_or_key>();
  complete_receive(peer, *receive, done, static_cast<uint32_t>(payload.size()), imm,
                   wqe.control.get<C::solicited>(), local);
  return {};
}

// ERR: everything posted, unsignaled ones too, in order. SQE: what was to be sent.
void FakeNic::flush(Qp& qp) {
  const bool sends_only = qp.state == QpState::SQE;
  const Outcome flushed{CqeStatus::WR_FLUSH_ERR,
                        sends_only ? VendorStatus::FLUSH_SQE : VendorStatus::FLUSH, false, false};
  while (qp.exists && qp.sq_oldest != qp.sq_posted) {
    Outcome unused;
    unsigned blocks = 1;
    const uint16_t index = qp.sq_oldest;
    const auto wqe = fetch(qp, index, blocks, unused);
    qp.sq_oldest = static_cast<uint16_t>(qp.sq_oldest + blocks);
    if (wqe && wqe->control.get<hwif::SqWqeControl::opcode>() == WrOpcode::NOP) continue;
    complete_send(qp, wqe ? *wqe : Wqe{}, index, flushed);
  }
  while (!sends_only && qp.rq_taken != qp.rq_posted) {
    Outcome unused;
    const auto receive = fetch_receive(qp, unused);
    complete_receive(qp, receive.value_or(Receive{}), CqeOpcode::RECV, 0, 0, false, flushed);
  }
}

}  // namespace roci::test
