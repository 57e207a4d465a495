// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Posting to the send queue: ibv_post_send and the work request API. A request is built in place in
// the ring; one doorbell announces all requests of a call.
#include "rings.hpp"
#include "wqe_builder.hpp"

#include <roci/qp.hpp>

#include <cerrno>
#include <span>

namespace roci {
namespace {

using hwif::WrOpcode;

// Where the payload comes from. Each knows its size before anything is written. One piece is the rule,
// and a loop costs more to begin than the piece.

uint64_t length_of(const ibv_sge* list, unsigned count) noexcept {
  if (count == 1) [[likely]] return list->length;
  uint64_t length = 0;
  for (unsigned i = 0; i < count; ++i) length += list[i].length;
  return length;
}

// SGEs.
struct SgeData {
  const ibv_sge* list;
  unsigned count;
  uint64_t length;

  SgeData(const ibv_sge* list, unsigned count)
      : list(list), count(count), length(length_of(list, count)) {}
  unsigned sges() const noexcept { return count; }
  size_t bytes() const noexcept { return count * sizeof(ibv_sge); }
  void copy(std::byte* to) const noexcept { wqe::sges(to, list, count); }
};

// Bytes in pieces that SGEs describe.
struct InlineSges {
  const ibv_sge* list;
  unsigned count;
  uint64_t length;

  InlineSges(const ibv_sge* list, unsigned count)
      : list(list), count(count), length(length_of(list, count)) {}
  unsigned sges() const noexcept { return 0; }
  size_t bytes() const noexcept { return length; }
  void copy(std::byte* to) const noexcept {
    for (unsigned i = 0; i < count; ++i) {
      if (list[i].length == 0) continue;  // its address may be null
      std::memcpy(to, reinterpret_cast<const void*>(list[i].addr), list[i].length);
      to += list[i].length;
    }
  }
};

// Bytes in pieces.
struct InlineBuffers {
  const ibv_data_buf* list;
  size_t count;
  uint64_t length = 0;

  InlineBuffers(const ibv_data_buf* list, size_t count) : list(list), count(count) {
    for (size_t i = 0; i < count; ++i) length += list[i].length;
  }
  unsigned sges() const noexcept { return 0; }
  size_t bytes() const noexcept { return length; }
  void copy(std::byte* to) const noexcept {
    for (size_t i = 0; i < count; ++i) {
      if (list[i].length == 0) continue;  // its address may be null
      std::memcpy(to, list[i].addr, list[i].length);
      to += list[i].length;
    }
  }
};

constexpr uint64_t progress_of(uint32_t next, uint32_t count) noexcept {
  return next | (uint64_t{count} << 32);
}

}  // namespace

// Room for one more request of this many blocks, or nullptr if the queue is full. A request does not
// cross a line: what is left of the line becomes a NOP.
inline std::byte* Qp::place(unsigned blocks) noexcept {
  const uint64_t completed = sq_.completed.load(std::memory_order_acquire);
  const auto tail = static_cast<uint32_t>(completed);
  const auto done = static_cast<uint32_t>(completed >> 32);
  const unsigned room = hwif::SQ_LINE_BLOCKS - (sq_.head % hwif::SQ_LINE_BLOCKS);
  const unsigned skip = room < blocks ? room : 0;
  if (sq_.count - done >= sq_.max_wr || sq_.head + skip + blocks - tail > sq_.mask + 1) {
    return nullptr;
  }
  if (skip != 0) [[unlikely]] {
    const uint32_t at = sq_.head & sq_.mask;
    wqe::pad(sq_.ring + at * size_t{hwif::SQ_BLOCK_BYTES}, skip);
    sq_.head += skip;
    sq_.info[at] = {0, progress_of(sq_.head, sq_.count)};
  }
  return sq_.ring + (sq_.head & sq_.mask) * size_t{hwif::SQ_BLOCK_BYTES};
}

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

// Announces everything up to `head`.
inline void Qp::ring_send() noexcept {
  sq_.posted.store(sq_.head, std::memory_order_release);
  const uint64_t doorbell = sq_.doorbell_base | (sq_.head & SQ_INDEX_MASK);
  barrier_before_doorbell();
  if (doorbell_ != nullptr) {
    *doorbell_ = doorbell;
  } else {
    transport_.ring(doorbell_page_, doorbell);
  }
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

// One request of ibv_post_send. @return errno
template <WrOpcode OPCODE>
inline int Qp::build(const ibv_send_wr& wr) noexcept {
  constexpr bool IS_READ = OPCODE == WrOpcode::READ;
  constexpr bool IS_SEND = OPCODE == WrOpcode::SEND || OPCODE == WrOpcode::SEND_IMM;
  const uint64_t va = IS_SEND ? 0 : wr.wr.rdma.remote_addr;
  const uint32_t rkey = IS_SEND ? 0 : wr.wr.rdma.rkey;
  // IBTA 10.7.2.2: without initiator depth none of them would ever begin.
  if (IS_READ && !sq_.reads.load(std::memory_order_relaxed)) return EINVAL;
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
    default: return EOPNOTSUPP;
  }
}

int Qp::post_send(ibv_send_wr* wr, ibv_send_wr** bad) noexcept {
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
  opened_ = {true, opcode, flags & ~static_cast<unsigned>(IBV_SEND_INLINE), imm_or_key, wr_id, va,
             rkey};
}

// The data never came: a message without payload.
void Qp::finish_opened() noexcept { set_sges(nullptr, 0); }

void Qp::set_sges(const ibv_sge* sges, size_t count) noexcept {
  const Opened& o = opened_;
  const bool read = o.opcode == WrOpcode::READ;
  const unsigned max_sge = read ? sq_.max_sge_read : sq_.max_sge;
  if (wr_error_ == 0) {
    wr_error_ = !o.valid || count > max_sge || (read && !sq_.reads.load(std::memory_order_relaxed))
                    ? EINVAL
                    : emit_any(o.opcode, o.wr_id, o.flags, o.imm_or_key, o.va, o.rkey,
                               SgeData(sges, static_cast<unsigned>(count)));
    if (wr_error_ != 0) [[unlikely]] {
      const uint64_t length = count > max_sge ? 0 : SgeData(sges, static_cast<unsigned>(count)).length;
      tell_refused(wr_error_, {o.valid, false, read, static_cast<long long>(count), length});
    }
  }
  opened_.valid = false;
}

void Qp::set_inline(const ibv_data_buf* pieces, size_t count) noexcept {
  const Opened& o = opened_;
  if (wr_error_ == 0) {
    const InlineBuffers data(pieces, count);
    wr_error_ = !o.valid || data.length > sq_.max_inline || o.opcode == WrOpcode::READ
                    ? EINVAL
                    : emit_any(o.opcode, o.wr_id, o.flags | IBV_SEND_INLINE, o.imm_or_key, o.va,
                               o.rkey, data);
    if (wr_error_ != 0) [[unlikely]] {
      tell_refused(wr_error_, {o.valid, true, o.opcode == WrOpcode::READ, 0, data.length});
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
    completion.cqe.set<C::opcode>(opcode == WrOpcode::READ ? hwif::CqeOpcode::READ
                                  : opcode == WrOpcode::WRITE || opcode == WrOpcode::WRITE_IMM
                                      ? hwif::CqeOpcode::WRITE
                                      : hwif::CqeOpcode::SEND);
    completion.cqe.set<C::status>(hwif::CqeStatus::WR_FLUSH_ERR);
    completion.cqe.set<C::vendor_status>(hwif::VendorStatus::FLUSH);
    return true;
  }
}

}  // namespace roci
