// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Posting to the send queue of a UD queue pair. A request carries the whole address vector of its handle,
// which may be destroyed once the request is posted; the message is one packet.
#include "send_data.hpp"

#include <roci/qp.hpp>

#include <cerrno>

namespace roci {

using hwif::WrOpcode;

// Whether a request may go there.
bool Qp::is_address(const Datagram& target) const noexcept {
  return target.ah != nullptr && &target.ah->domain() == &pd_ && target.qpn <= hwif::QPN_MULTICAST;
}

// Writes one request, at `written`; all but the address if there is no `target` yet. @return errno
template <class Data>
inline int Qp::emit_datagram(WrOpcode opcode, uint64_t wr_id, unsigned flags, uint32_t imm,
                             const Datagram* target, const Data& data,
                             std::byte*& written) noexcept {
  if (data.length > sq_.max_datagram) [[unlikely]] return EINVAL;
  const unsigned blocks = wqe::blocks_for(data.bytes(), wqe::UD_DATA_OFFSET);
  std::byte* const to = place(blocks);
  if (to == nullptr) [[unlikely]] return ENOMEM;
  // A fence waits for READs, of which UD has none.
  const wqe::Common common{(flags & ~static_cast<unsigned>(IBV_SEND_FENCE)) | sq_.signal_all, blocks,
                           data.sges(), static_cast<uint32_t>(data.length)};
  wqe::datagram_control(to, opcode, common, opcode == WrOpcode::SEND_IMM ? imm : 0);
  if (target != nullptr) wqe::datagram(to, target->ah->vector(), target->qpn, target->qkey);
  data.copy(to + wqe::UD_DATA_OFFSET);
  written = to;
  const uint32_t at = sq_.head & sq_.mask;
  sq_.head += blocks;
  sq_.info[at] = {wr_id, progress_of(sq_.head, ++sq_.count)};
  return 0;
}

// One request of ibv_post_send. @return errno
inline int Qp::build_datagram(const ibv_send_wr& wr) noexcept {
  if (wr.opcode != IBV_WR_SEND && wr.opcode != IBV_WR_SEND_WITH_IMM) return EOPNOTSUPP;
  const WrOpcode opcode = wr.opcode == IBV_WR_SEND ? WrOpcode::SEND : WrOpcode::SEND_IMM;
  const Datagram target{static_cast<const Ah*>(wr.wr.ud.ah), wr.wr.ud.remote_qpn,
                        wr.wr.ud.remote_qkey};
  const auto count = static_cast<unsigned>(wr.num_sge);
  if (count > sq_.max_sge || !is_address(target)) [[unlikely]] return EINVAL;
  std::byte* unused = nullptr;
  if (wr.send_flags & IBV_SEND_INLINE) {
    const InlineSges data(wr.sg_list, count);
    if (data.length > sq_.max_inline) return EINVAL;
    return emit_datagram(opcode, wr.wr_id, wr.send_flags, wr.imm_data, &target, data, unused);
  }
  return emit_datagram(opcode, wr.wr_id, wr.send_flags, wr.imm_data, &target,
                       SgeData(wr.sg_list, count), unused);
}

int Qp::post_datagrams(ibv_send_wr* wr, ibv_send_wr** bad) noexcept {
  sq_lock_.lock();
  int error = sq_.open.load(std::memory_order_relaxed) ? 0 : EINVAL;
  const uint32_t before = sq_.head;
  for (; wr != nullptr; wr = wr->next) {
    if (error == 0) error = build_datagram(*wr);
    if (error != 0) [[unlikely]] {
      *bad = wr;
      break;
    }
  }
  if (sq_.head != before) ring_send();
  sq_lock_.unlock();
  if (wr != nullptr) [[unlikely]] tell_refused_send(error, *wr);
  return error;
}

// ---- the work request API -----------------------------------------------------------------------

void Qp::set_ud_address(const ibv_ah* ah, uint32_t qpn, uint32_t qkey) noexcept {
  Opened& o = opened_;
  if (wr_error_ != 0) return;
  o.target = {static_cast<const Ah*>(ah), qpn, qkey};
  if (!datagrams_ || !o.valid || !is_address(o.target)) {
    wr_error_ = datagrams_ ? EINVAL : EOPNOTSUPP;
    Refused request;
    request.operation = datagrams_ && o.valid;
    request.target = &o.target;
    tell_refused(wr_error_, request);
    o.valid = false;
    return;
  }
  o.addressed = true;
  if (o.written == nullptr) return;  // its data comes later
  wqe::datagram(o.written, o.target.ah->vector(), qpn, qkey);
  o.valid = false;
}

// What is missing never came.
void Qp::finish_datagram() noexcept {
  if (opened_.addressed) return set_datagram_sges(nullptr, 0);  // a message without payload
  opened_.valid = false;
  if (wr_error_ != 0) return;
  wr_error_ = EINVAL;
  static constexpr Datagram NOWHERE;
  Refused request;
  request.operation = true;
  request.target = &NOWHERE;
  tell_refused(EINVAL, request);
}

// The open operation has got its data: it ends, unless its address is missing.
void Qp::datagram_has_data(int error, long long sges, bool in_line, uint64_t length) noexcept {
  wr_error_ = error;
  if (error != 0) [[unlikely]] {
    Refused request;
    // Data for the second time is data without an operation.
    request.operation = opened_.valid && opened_.written == nullptr;
    request.in_line = in_line;
    request.sges = sges;
    request.length = length;
    tell_refused(error, request);
  }
  if (error != 0 || opened_.addressed) opened_.valid = false;
}

void Qp::set_datagram_sges(const ibv_sge* sges, size_t count) noexcept {
  Opened& o = opened_;
  if (wr_error_ != 0) {
    o.valid = false;
    return;
  }
  const bool some = o.valid && o.written == nullptr && count <= sq_.max_sge;
  const SgeData data(sges, some ? static_cast<unsigned>(count) : 0);
  int error = EINVAL;
  if (some && (o.opcode == WrOpcode::SEND || o.opcode == WrOpcode::SEND_IMM)) {
    error = emit_datagram(o.opcode, o.wr_id, o.flags, o.imm_or_key, o.addressed ? &o.target : nullptr,
                          data, o.written);
  } else if (some) {
    error = EOPNOTSUPP;
  }
  datagram_has_data(error, static_cast<long long>(count), false, data.length);
}

void Qp::set_datagram_inline(const ibv_data_buf* pieces, size_t count) noexcept {
  Opened& o = opened_;
  if (wr_error_ != 0) {
    o.valid = false;
    return;
  }
  const InlineBuffers data(pieces, count);
  int error = EINVAL;
  if (o.opcode != WrOpcode::SEND && o.opcode != WrOpcode::SEND_IMM) {
    if (o.valid) error = EOPNOTSUPP;
  } else if (o.valid && o.written == nullptr && data.length <= sq_.max_inline) {
    error = emit_datagram(o.opcode, o.wr_id, o.flags | IBV_SEND_INLINE, o.imm_or_key,
                          o.addressed ? &o.target : nullptr, data, o.written);
  }
  datagram_has_data(error, 0, true, data.length);
}

}  // namespace roci
