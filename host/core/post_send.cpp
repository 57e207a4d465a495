// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Posting to the send queue: ibv_post_send and the work request API. A request is built in place in
// the ring; one doorbell announces all requests of a call.
#include "send_data.hpp"

#include <roci/qp.hpp>

#include <cerrno>

namespace roci {
namespace {

using hwif::WrOpcode;

// IBTA 9.4.5: the operands have 8 bytes, and so has the value that comes back.
constexpr uint32_t ATOMIC_BYTES = 8;

bool is_atomic(WrOpcode opcode) noexcept {
  return opcode == WrOpcode::CMP_SWAP || opcode == WrOpcode::FETCH_ADD;
}

// What the device calls an operation when it is complete.
hwif::CqeOpcode cqe_opcode(WrOpcode opcode) noexcept {
  switch (opcode) {
    case WrOpcode::READ: return hwif::CqeOpcode::READ;
    case WrOpcode::WRITE:
    case WrOpcode::WRITE_IMM: return hwif::CqeOpcode::WRITE;
    case WrOpcode::CMP_SWAP: return hwif::CqeOpcode::CMP_SWAP;
    case WrOpcode::FETCH_ADD: return hwif::CqeOpcode::FETCH_ADD;
    default: return hwif::CqeOpcode::SEND;
  }
}

}  // namespace

// Writes one request. @return errno
template <WrOpcode OPCODE, class Data>
inline int Qp::emit(uint64_t wr_id, unsigned flags, uint32_t imm_or_key, uint64_t va,
                    uint32_t rkey, const Data& data) noexcept {
  if (data.length > hwif::MAX_MESSAGE_BYTES) [[unlikely]] return EINVAL;
  const unsigned blocks = wqe::blocks_for(data.bytes());
  std::byte* const to = place(blocks);
  if (to == nullptr) [[unlikely]] return ENOMEM;
  const wqe::Common common{flags | sq_.signal_all, blocks, data.sges(),
                           static_cast<uint32_t>(data.length)};
  if constexpr (OPCODE == WrOpcode::SEND) {
    wqe::send(to, common);
  } else if constexpr (OPCODE == WrOpcode::SEND_IMM) {
    wqe::send_imm(to, common, imm_or_key);
  } else if constexpr (OPCODE == WrOpcode::WRITE) {
    wqe::write(to, common, va, rkey);
  } else if constexpr (OPCODE == WrOpcode::WRITE_IMM) {
    wqe::write_imm(to, common, va, rkey, imm_or_key);
  } else {
    static_assert(OPCODE == WrOpcode::READ);
    wqe::read(to, common, va, rkey);
  }
  data.copy(to + wqe::DATA_OFFSET);
  const uint32_t at = sq_.head & sq_.mask;
  sq_.head += blocks;
  sq_.info[at] = {wr_id, progress_of(sq_.head, ++sq_.count)};
  return 0;
}

// As emit(), for an opcode that is not known at compile time.
template <class Data>
int Qp::emit_any(WrOpcode opcode, uint64_t wr_id, unsigned flags, uint32_t imm_or_key, uint64_t va,
                 uint32_t rkey, const Data& data) noexcept {
  switch (opcode) {
    case WrOpcode::SEND:
      return emit<WrOpcode::SEND>(wr_id, flags, imm_or_key, va, rkey, data);
    case WrOpcode::SEND_IMM:
      return emit<WrOpcode::SEND_IMM>(wr_id, flags, imm_or_key, va, rkey, data);
    case WrOpcode::WRITE:
      return emit<WrOpcode::WRITE>(wr_id, flags, imm_or_key, va, rkey, data);
    case WrOpcode::WRITE_IMM:
      return emit<WrOpcode::WRITE_IMM>(wr_id, flags, imm_or_key, va, rkey, data);
    case WrOpcode::READ:
      return emit<WrOpcode::READ>(wr_id, flags, imm_or_key, va, rkey, data);
    default: return EOPNOTSUPP;
  }
}

int Qp::emit_atomic(WrOpcode opcode, uint64_t wr_id, unsigned flags, uint64_t va, uint32_t rkey,
                    uint64_t swap_or_add, uint64_t compare, const ibv_sge& sge) noexcept {
  static_assert(wqe::ATOMIC_DATA_OFFSET + sizeof(ibv_sge) == hwif::SQ_BLOCK_BYTES);
  std::byte* const to = place(1);
  if (to == nullptr) [[unlikely]] return ENOMEM;
  wqe::atomic(to, opcode, {flags | sq_.signal_all, 1, 1, ATOMIC_BYTES}, va, rkey, swap_or_add, compare,
              sge);
  const uint32_t at = sq_.head & sq_.mask;
  ++sq_.head;
  sq_.info[at] = {wr_id, progress_of(sq_.head, ++sq_.count)};
  return 0;
}

// An atomic of ibv_post_send. @return errno
int Qp::build_atomic(const ibv_send_wr& wr) noexcept {
  if (!pd_.device().limits().atomics) return EOPNOTSUPP;
  if (!sq_.reads.load(std::memory_order_relaxed)) return no_reads_error();
  if (wr.num_sge != 1 || wr.sg_list->length != ATOMIC_BYTES || wr.send_flags & IBV_SEND_INLINE) {
    return EINVAL;
  }
  const auto& a = wr.wr.atomic;
  return wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP
             ? emit_atomic(WrOpcode::CMP_SWAP, wr.wr_id, wr.send_flags, a.remote_addr, a.rkey, a.swap,
                           a.compare_add, *wr.sg_list)
             : emit_atomic(WrOpcode::FETCH_ADD, wr.wr_id, wr.send_flags, a.remote_addr, a.rkey,
                           a.compare_add, 0, *wr.sg_list);
}

// One request of ibv_post_send. @return errno
template <WrOpcode OPCODE>
inline int Qp::build(const ibv_send_wr& wr) noexcept {
  constexpr bool IS_READ = OPCODE == WrOpcode::READ;
  constexpr bool IS_SEND = OPCODE == WrOpcode::SEND || OPCODE == WrOpcode::SEND_IMM;
  const uint64_t va = IS_SEND ? 0 : wr.wr.rdma.remote_addr;
  const uint32_t rkey = IS_SEND ? 0 : wr.wr.rdma.rkey;
  // IBTA 10.7.2.2: without initiator depth none of them would ever begin.
  if (IS_READ && !sq_.reads.load(std::memory_order_relaxed)) return no_reads_error();
  const auto count = static_cast<unsigned>(wr.num_sge);
  if (count > (IS_READ ? sq_.max_sge_read : sq_.max_sge)) [[unlikely]] return EINVAL;
  if (wr.send_flags & IBV_SEND_INLINE) {
    if (IS_READ) return EINVAL;
    const InlineSges data(wr.sg_list, count);
    if (data.length > sq_.max_inline) return EINVAL;
    return emit<OPCODE>(wr.wr_id, wr.send_flags, wr.imm_data, va, rkey, data);
  }
  return emit<OPCODE>(wr.wr_id, wr.send_flags, wr.imm_data, va, rkey, SgeData(wr.sg_list, count));
}

inline int Qp::build_any(const ibv_send_wr& wr) noexcept {
  switch (wr.opcode) {
    case IBV_WR_SEND: return build<WrOpcode::SEND>(wr);
    case IBV_WR_SEND_WITH_IMM: return build<WrOpcode::SEND_IMM>(wr);
    case IBV_WR_RDMA_WRITE: return build<WrOpcode::WRITE>(wr);
    case IBV_WR_RDMA_WRITE_WITH_IMM: return build<WrOpcode::WRITE_IMM>(wr);
    case IBV_WR_RDMA_READ: return build<WrOpcode::READ>(wr);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return build_atomic(wr);
    default: return EOPNOTSUPP;
  }
}

int Qp::post_send(ibv_send_wr* wr, ibv_send_wr** bad) noexcept {
  if (datagrams_) [[unlikely]] return post_datagrams(wr, bad);
  sq_lock_.lock();
  int error = sq_.open.load(std::memory_order_relaxed) ? 0 : EINVAL;
  const uint32_t before = sq_.head;
  while (wr != nullptr) {
    if (error == 0) error = build_any(*wr);
    if (error != 0) [[unlikely]] {
      *bad = wr;
      break;
    }
    wr = wr->next;
  }
  if (sq_.head != before) ring_send();
  sq_lock_.unlock();
  if (wr != nullptr) [[unlikely]] tell_refused_send(error, *wr);
  return error;
}

// ---- the work request API -----------------------------------------------------------------------

void Qp::begin() noexcept {
  sq_lock_.lock();
  wr_error_ = sq_.open.load(std::memory_order_relaxed) ? 0 : EINVAL;
  wr_head_ = sq_.head;
  wr_count_ = sq_.count;
  opened_.valid = false;
}

void Qp::open_operation(WrOpcode opcode, uint64_t wr_id, unsigned flags, uint32_t imm_or_key,
                        uint64_t va, uint32_t rkey) noexcept {
  if (opened_.valid) [[unlikely]] finish_opened();
  opened_ = {};
  opened_.valid = true;
  opened_.opcode = opcode;
  opened_.flags = flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
  opened_.imm_or_key = imm_or_key;
  opened_.wr_id = wr_id;
  opened_.va = va;
  opened_.rkey = rkey;
}

void Qp::open_atomic(WrOpcode opcode, uint64_t wr_id, unsigned flags, uint64_t va, uint32_t rkey,
                     uint64_t swap_or_add, uint64_t compare) noexcept {
  open_operation(opcode, wr_id, flags, 0, va, rkey);
  opened_.swap_or_add = swap_or_add;
  opened_.compare = compare;
}

// What is missing never came: a message without payload, or one that goes nowhere.
void Qp::finish_opened() noexcept {
  if (datagrams_) return finish_datagram();
  set_sges(nullptr, 0);
}

void Qp::set_sges(const ibv_sge* sges, size_t count) noexcept {
  if (datagrams_) return set_datagram_sges(sges, count);
  const Opened& o = opened_;
  const bool atomic = is_atomic(o.opcode);
  const bool read = o.opcode == WrOpcode::READ || atomic;
  const unsigned max_sge = read ? sq_.max_sge_read : sq_.max_sge;
  if (wr_error_ == 0) {
    if (!o.valid || count > max_sge) {
      wr_error_ = EINVAL;
    } else if (read && !sq_.reads.load(std::memory_order_relaxed)) {
      wr_error_ = no_reads_error();
    } else if (atomic) {
      wr_error_ = count != 1 || sges->length != ATOMIC_BYTES
                      ? EINVAL
                      : emit_atomic(o.opcode, o.wr_id, o.flags, o.va, o.rkey, o.swap_or_add, o.compare,
                                    *sges);
    } else {
      wr_error_ = emit_any(o.opcode, o.wr_id, o.flags, o.imm_or_key, o.va, o.rkey,
                           SgeData(sges, static_cast<unsigned>(count)));
    }
    if (wr_error_ != 0) [[unlikely]] {
      Refused request;
      request.operation = o.valid;
      request.read = read;
      request.atomic = atomic;
      request.sges = static_cast<long long>(count);
      if (count <= max_sge) request.length = SgeData(sges, static_cast<unsigned>(count)).length;
      tell_refused(wr_error_, request);
    }
  }
  opened_.valid = false;
}

void Qp::set_inline(const ibv_data_buf* pieces, size_t count) noexcept {
  if (datagrams_) return set_datagram_inline(pieces, count);
  const Opened& o = opened_;
  const bool atomic = is_atomic(o.opcode);
  const bool read = o.opcode == WrOpcode::READ || atomic;
  if (wr_error_ == 0) {
    const InlineBuffers data(pieces, count);
    wr_error_ = !o.valid || data.length > sq_.max_inline || read
                    ? EINVAL
                    : emit_any(o.opcode, o.wr_id, o.flags | IBV_SEND_INLINE, o.imm_or_key, o.va,
                               o.rkey, data);
    if (wr_error_ != 0) [[unlikely]] {
      Refused request;
      request.operation = o.valid;
      request.in_line = true;
      request.read = read;
      request.atomic = atomic;
      request.length = data.length;
      tell_refused(wr_error_, request);
    }
  }
  opened_.valid = false;
}

void Qp::refuse_operation(int error) noexcept {
  if (wr_error_ != 0) return;
  wr_error_ = error;
  tell_refused(error, {});
}

int Qp::complete() noexcept {
  if (opened_.valid) [[unlikely]] finish_opened();
  const int error = wr_error_;
  if (error != 0) [[unlikely]] {
    sq_.head = wr_head_;
    sq_.count = wr_count_;
    if (!sq_.open.load(std::memory_order_relaxed)) tell_refused(error, {});  // as begin() saw
  } else if (sq_.head != wr_head_) {
    ring_send();
  }
  sq_lock_.unlock();
  return error;
}

void Qp::abort() noexcept {
  sq_.head = wr_head_;
  sq_.count = wr_count_;
  opened_.valid = false;
  sq_lock_.unlock();
}

// ---- completion ---------------------------------------------------------------------------------

bool Qp::flush_send(Completion& completion) noexcept {
  for (;;) {
    const uint32_t posted = sq_.posted.load(std::memory_order_acquire);
    const auto tail = static_cast<uint32_t>(sq_.completed.load(std::memory_order_relaxed));
    if (tail == posted) return false;
    const uint32_t at = tail & sq_.mask;
    const auto control = hwif::SqWqeControl::load_from(sq_.ring + at * size_t{hwif::SQ_BLOCK_BYTES});
    const SendInfo info = sq_.info[at];
    sq_.completed.store(info.progress, std::memory_order_release);
    const WrOpcode opcode = control.get<hwif::SqWqeControl::opcode>();
    if (opcode == WrOpcode::NOP) continue;
    completion.wr_id = info.wr_id;
    using C = hwif::Cqe;
    completion.cqe = {};
    completion.cqe.set<C::qpn>(number_);
    completion.cqe.set<C::opcode>(cqe_opcode(opcode));
    completion.cqe.set<C::status>(hwif::CqeStatus::WR_FLUSH_ERR);
    completion.cqe.set<C::vendor_status>(hwif::VendorStatus::FLUSH);
    return true;
  }
}

}  // namespace roci
