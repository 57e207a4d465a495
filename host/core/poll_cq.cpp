// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Polling: an entry is there when its phase bit has the value of this lap (hwif: the device writes
// that byte last). Its queue pair says which request it completes.
#include "rings.hpp"

#include <roci/cq.hpp>
#include <roci/log.hpp>
#include <roci/qp.hpp>

#include <roci_hwif_names.hpp>

#include <endian.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace roci {
namespace {

using hwif::Cqe;
using hwif::CqeOpcode;

// What a program is told of an operation.
struct Told {
  ibv_wc_opcode opcode;
  unsigned flags;
};

// By the opcode's byte as it is: no instruction is spent on an index.
constexpr std::array<Told, 256> OPERATIONS = [] {
  std::array<Told, 256> table{};
  for (size_t n = 0; n < table.size(); ++n) {
    if (is_receive(static_cast<CqeOpcode>(n))) table[n].opcode = IBV_WC_RECV;
  }
  const auto set = [&](CqeOpcode from, ibv_wc_opcode to, unsigned flags = 0) {
    table[static_cast<size_t>(from)] = {to, flags};
  };
  set(CqeOpcode::SEND, IBV_WC_SEND);
  set(CqeOpcode::WRITE, IBV_WC_RDMA_WRITE);
  set(CqeOpcode::READ, IBV_WC_RDMA_READ);
  set(CqeOpcode::CMP_SWAP, IBV_WC_COMP_SWAP);
  set(CqeOpcode::FETCH_ADD, IBV_WC_FETCH_ADD);
  set(CqeOpcode::LOCAL_INV, IBV_WC_LOCAL_INV);
  set(CqeOpcode::BIND_MW, IBV_WC_BIND_MW);
  set(CqeOpcode::FAST_REG, IBV_WC_DRIVER1);
  set(CqeOpcode::RECV_IMM, IBV_WC_RECV, IBV_WC_WITH_IMM);
  set(CqeOpcode::RECV_INV, IBV_WC_RECV, IBV_WC_WITH_INV);
  set(CqeOpcode::RECV_WRITE_IMM, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM);
  return table;
}();

const Told& told_of(CqeOpcode opcode) noexcept { return OPERATIONS[static_cast<uint8_t>(opcode)]; }

// What a user can do about a failure.
const char* cure(hwif::VendorStatus cause, bool receive) noexcept {
  using V = hwif::VendorStatus;
  switch (cause) {
    case V::WQE_OPCODE:
    case V::WQE_BLOCKS:
    case V::WQE_SGE_COUNT:
    case V::WQE_LENGTH:
    case V::WQE_INLINE: return "the request is not well formed";
    case V::WQE_GID_INDEX: return "the source GID of its address handle is gone: make a new one";
    case V::ATOMIC_LENGTH:
      return "the buffer of an atomic has 8 bytes, at a multiple of 8";
    case V::NOT_PRIVILEGED: return "the operation is not for programs";
    case V::KEY_INVALID:
    case V::KEY_PD:
    case V::KEY_RIGHTS:
    case V::KEY_BOUNDS:
    case V::KEY_QP:
    case V::KEY_KIND:
    case V::BIND_PARENT:
    case V::BIND_RANGE:
      return receive ? "check the receive's SGEs, or what the peer's rkey and address name here"
                     : "check lkey, address and length of the SGEs, and the region's domain and rights";
    case V::TABLE_BUS:
    case V::PAYLOAD_READ_BUS:
    case V::PAYLOAD_WRITE_BUS:
    case V::CQ_WRITE_BUS: return "memory was unmapped while a region or queue had it";
    case V::RECV_TOO_SHORT: return "post receives as long as the peer's messages";
    case V::RECV_ACCESS_FLAG: return "set qp_access_flags for what the peer does";
    case V::RECV_ATOMIC_ALIGNMENT: return "the peer's atomic is not at a multiple of 8 bytes";
    case V::RECV_OPCODE_SEQUENCE:
    case V::RECV_LENGTH:
    case V::RECV_OPCODE_RESERVED:
      return "the peer sent what it may not: is it broken, or do two share a number?";
    case V::RECV_READ_RESOURCES:
      return "raise max_dest_rd_atomic, or lower the peer's max_rd_atomic";
    case V::NAK_INVALID_REQUEST:
      return "the peer's receive is too short, its qp_access_flags or max_dest_rd_atomic too low, or the "
             "address of an atomic is no multiple of 8";
    case V::NAK_REMOTE_ACCESS:
      return "check rkey, remote_addr and length, and the domain and rights of the peer's region";
    case V::NAK_REMOTE_OPERATIONAL: return "the peer could not do it: see its log";
    case V::RETRY_TIMEOUT:
      return "the peer does not answer: is its queue pair there and in RTR, the address right, timeout "
             "long enough?";
    case V::RETRY_SEQUENCE: return "the network loses too much: see the link, raise retry_cnt";
    case V::RETRY_RNR: return "the peer posts too few receives; rnr_retry 7 waits for them";
    case V::RESPONSE_LENGTH: return "the peer's answer does not fit the request: it is broken";
    case V::FLUSH: return "the queue pair was in ERR: see what failed before";
    case V::FLUSH_SQE:
      return "a send before it failed: see that; ibv_modify_qp to RTS goes on";
    case V::CQ_OVERFLOW: return "create the completion queue with more entries";
    default: return "the vendor status names the check";
  }
}

}  // namespace

ibv_wc_opcode wc_opcode(CqeOpcode opcode) noexcept {
  return told_of(opcode).opcode;
}

unsigned wc_flags(const Cqe& cqe) noexcept {
  return told_of(cqe.get<Cqe::opcode>()).flags |
         (cqe.get<Cqe::grh_present>() ? unsigned{IBV_WC_GRH} : 0u);
}

// is_written() in fewer instructions: each counts here.
inline bool Cq::is_there(const std::byte* entry, uint32_t index) const noexcept {
  static_assert(hwif::PHASE_FIRST_LAP == 1 && Cqe::phase::AT == sizeof(Cqe) * 8 - 1);
  return (((load_phase_byte(entry + sizeof(Cqe) - 1) >> 7) ^ (index >> ring_log2_)) & 1) != 0;
}

bool Cq::valid(uint32_t index) const noexcept {
  return is_there(ring_ + (index & ring_mask_) * sizeof(Cqe), index);
}

// Takes the next entry of the ring. The lock is held. Inlined, and called with a variable whose address
// goes nowhere, so that the entry stays in registers.
inline bool Cq::take_entry(Completion& completion) noexcept {
  for (;;) {
    const uint32_t index = consumed_;
    const std::byte* const entry = ring_ + (index & ring_mask_) * sizeof(Cqe);
    if (!is_there(entry, index)) [[unlikely]] return false;
    static_assert(sizeof(Cqe::Word) == 8);
    for (size_t n = 0; n < sizeof(Cqe) / 8; ++n) {
      std::memcpy(&completion.cqe.words[n], entry + 8 * n, 8);
    }
    consumed_ = index + 1;
    if (index + 1 - reported_ > quarter_) [[unlikely]] report_consumed();
    const uint32_t qpn = completion.cqe.get<Cqe::qpn>();
    if (qpn != last_qpn_) [[unlikely]] {
      Qp* qp = context_.device().find_qp(qpn);
      // Completions of a destroyed queue pair were removed, so this is the device's mistake.
      if (qp == nullptr || qp->number() != qpn) continue;
      last_qp_ = qp;
      last_qpn_ = qpn;
    }
    const uint32_t which = completion.cqe.get<Cqe::wqe_index_or_cookie>();
    completion.wr_id = is_receive(completion.cqe.get<Cqe::opcode>())
                           ? last_qp_->complete_recv(which)
                           : last_qp_->complete_send(which);
    return true;
  }
}

// Takes the next completion. The lock is held.
inline bool Cq::take(Completion& completion) noexcept {
  return take_entry(completion) || (dead_ && take_flushed(completion));
}

// The simulator shares the processor with a program that polls: let it run. Not with the lock held.
void Cq::idle() noexcept { context_.device().transport().idle(); }

// The device is gone: what it did not complete comes out as flushed, queue pair by queue pair.
bool Cq::take_flushed(Completion& completion) noexcept {
  for (Qp* qp : send_qps_) {
    if (qp->flush_send(completion)) return true;
  }
  for (Qp* qp : recv_qps_) {
    if (qp->flush_recv(completion)) return true;
  }
  return false;
}

// Not in poll(): its loop needs no memory of its own.
bool Cq::poll_flushed(ibv_wc& wc) noexcept {
  Completion completion;
  if (!take_flushed(completion)) return false;
  fill_in(completion, wc);
  return true;
}

inline void Cq::fill_in(const Completion& completion, ibv_wc& wc) const noexcept {
  const Cqe& cqe = completion.cqe;
  const auto status = cqe.get<Cqe::status>();
  const Told& told = told_of(cqe.get<Cqe::opcode>());
  wc.wr_id = completion.wr_id;
  wc.status = static_cast<ibv_wc_status>(status);
  wc.opcode = told.opcode;
  wc.vendor_err = static_cast<uint32_t>(cqe.get<Cqe::vendor_status>());
  // byte_len and imm_data lie side by side here and there: one store.
  static_assert(Cqe::byte_len::AT == 64 && Cqe::imm_or_key::AT == 96 &&
                offsetof(ibv_wc, imm_data) == offsetof(ibv_wc, byte_len) + 4);
  std::memcpy(reinterpret_cast<char*>(&wc) + offsetof(ibv_wc, byte_len), &cqe.words[1], 8);
  wc.qp_num = cqe.get<Cqe::qpn>();
  wc.src_qp = cqe.get<Cqe::src_qp_or_srqn>();
  wc.wc_flags = told.flags | (cqe.get<Cqe::grh_present>() ? unsigned{IBV_WC_GRH} : 0u);
  // pkey_index, slid, sl and dlid_path_bits in one store; there are no LIDs in RoCE.
  static_assert(offsetof(ibv_wc, slid) == offsetof(ibv_wc, pkey_index) + 2 &&
                offsetof(ibv_wc, sl) == offsetof(ibv_wc, pkey_index) + 4 &&
                offsetof(ibv_wc, dlid_path_bits) == offsetof(ibv_wc, pkey_index) + 5 &&
                sizeof(ibv_wc) == offsetof(ibv_wc, pkey_index) + 8);
  const uint64_t sl = cqe.get<Cqe::tci>() >> 13;
  const uint64_t rest = htole64(cqe.get<Cqe::pkey_index>() | sl << 32);
  std::memcpy(reinterpret_cast<char*>(&wc) + offsetof(ibv_wc, pkey_index), &rest, sizeof rest);
  if (status != hwif::CqeStatus::SUCCESS) [[unlikely]] tell_failure(Completion{completion});
}

// "Status 12" alone helps nobody: say which queue pair, which check, what to do, and which request; the
// first of a queue pair aloud, the others if they are asked for, and those that were only flushed behind
// one likewise (ROCI_LOG=info, debug).
void Cq::tell_failure(const Completion& completion) const noexcept {
  const Cqe& cqe = completion.cqe;
  const auto status = cqe.get<Cqe::status>();
  LogLevel level = LogLevel::DEBUG;
  if (status != hwif::CqeStatus::WR_FLUSH_ERR) {
    level = last_qp_->failure_told_.exchange(true) ? LogLevel::INFO : LogLevel::WARN;
  }
  if (!log_enabled(level)) return;
  unsigned left_out = 0;
  if (level != LogLevel::WARN) {
    static LogRate rate;
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (!rate.allows(static_cast<uint64_t>(now.tv_sec), left_out)) return;
  }
  if (left_out != 0) log(level, "%u lines of failed completions are left out", left_out);
  const auto vendor = cqe.get<Cqe::vendor_status>();
  const bool receive = is_receive(cqe.get<Cqe::opcode>());
  log(level,
      "completion of QP 0x%x failed: %s, vendor status %s: %s (status %u, vendor_err 0x%02x, %s, wr_id "
      "0x%llx, %s %u)",
      cqe.get<Cqe::qpn>(), to_string(status), to_string(vendor), cure(vendor, receive),
      static_cast<unsigned>(status), static_cast<unsigned>(vendor),
      to_string(cqe.get<Cqe::opcode>()), static_cast<unsigned long long>(completion.wr_id),
      receive ? "cookie" : "block", cqe.get<Cqe::wqe_index_or_cookie>());
}

int Cq::poll(int count, ibv_wc* wc) noexcept {
  lock_.lock();
  int taken = 0;
  while (taken < count) {
    Completion completion;
    if (take_entry(completion)) [[likely]] {
      fill_in(completion, wc[taken++]);
      continue;
    }
    if (!dead_ || !poll_flushed(wc[taken])) break;
    ++taken;
  }
  lock_.unlock();
  if (taken == 0 && idles_) idle();
  return taken;
}

int Cq::start_poll() noexcept {
  lock_.lock();
  if (take(current_)) {
    poller_.store(pthread_self(), std::memory_order_relaxed);
    if (current_.cqe.get<Cqe::status>() != hwif::CqeStatus::SUCCESS) tell_failure(current_);
    return 0;
  }
  lock_.unlock();
  if (idles_) idle();
  return ENOENT;
}

int Cq::next_poll() noexcept {
  if (!take(current_)) return ENOENT;
  if (current_.cqe.get<Cqe::status>() != hwif::CqeStatus::SUCCESS) tell_failure(current_);
  return 0;
}

void Cq::end_poll() noexcept {
  poller_.store(pthread_t{}, std::memory_order_relaxed);
  lock_.unlock();
}

void Cq::ring(hwif::Doorbell doorbell, hwif::DoorbellKind kind, uint32_t index) noexcept {
  doorbell.set<hwif::Doorbell::object>(number_);
  doorbell.set<hwif::Doorbell::kind>(kind);
  doorbell.set<hwif::Doorbell::index>(index & CQ_INDEX_MASK);
  if (doorbell_ != nullptr) {
    *doorbell_ = doorbell.to_word();
  } else if (!dead_) {
    Device& device = context_.device();
    device.transport().ring(device.options().doorbell_page, doorbell.to_word());
  }
}

void Cq::report_consumed() noexcept {
  if (consumed_ == reported_) return;
  reported_ = consumed_;
  ring({}, hwif::DoorbellKind::CQ_CONSUMED, consumed_);
}

// Programs that get an event, arm and only then poll (ib_send_lat -e) must not get a second event for
// what they will find, nor lose one for what comes between an empty poll and arming. So the entries
// that are there when an event is taken are its own, and arming starts behind them. They are not
// consumed: the device must not write over them (docs/decisions/0006-arm-ahead-of-polling.md).
void Cq::take_event() noexcept {
  lock_.lock();
  if (static_cast<int32_t>(consumed_ - announced_) > 0) announced_ = consumed_;
  while (announced_ - consumed_ <= ring_mask_ && valid(announced_)) ++announced_;
  lock_.unlock();
}

void Cq::arm(bool solicited_only) noexcept {
  const bool polls = poller_.load(std::memory_order_relaxed) == pthread_self();
  if (!polls) lock_.lock();
  armed_.store(true);
  const bool dead = dead_;
  if (!dead) {
    const bool ahead = static_cast<int32_t>(announced_ - consumed_) > 0;
    if (!ahead) reported_ = consumed_;
    hwif::Doorbell doorbell{};
    doorbell.set<hwif::Doorbell::solicited_only>(solicited_only);
    doorbell.set<hwif::Doorbell::keep_consumed>(ahead);
    ring(doorbell, hwif::DoorbellKind::CQ_ARM, ahead ? announced_ : consumed_);
  }
  if (!polls) lock_.unlock();
  // Nobody else will: whoever waits has to see the flushed ones.
  if (dead && armed_.exchange(false) && channel_ != nullptr) channel_->push(*this);
}

}  // namespace roci
