// SPDX-License-Identifier: BSD-2-Clause-Patent
#pragma once

#include <roci/ah.hpp>
#include <roci/cq.hpp>
#include <roci/pd.hpp>
#include <roci/spin_lock.hpp>
#include <roci/srq.hpp>

#include <infiniband/verbs.h>

#include <atomic>
#include <cerrno>
#include <memory>

namespace roci {

/// What a queue pair is made of.
struct QpConfig {
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  /// Wanted sizes.
  ibv_qp_cap cap{};
  ibv_qp_type type = IBV_QPT_RC;
  /// Every send request is signaled.
  bool signal_all = false;
  /// One thread at a time uses it.
  bool single_threaded = false;
  /// Receives come from it; the queue pair has none of its own then.
  Srq* srq = nullptr;
};

/// QP1, which verbs do not name: kernels keep it to themselves (IBTA 3.5.3).
inline constexpr auto QPT_GSI = static_cast<ibv_qp_type>(1);

/// Queue pair (RC, UC, UD; GSI on function 0). Posting is the data path; everything else throws.
class Qp {
 public:
  /// @throws Error  EINVAL: sizes beyond the limits; EOPNOTSUPP: type; EPERM: QP1; ENOMEM
  Qp(Pd& pd, const QpConfig& config);
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;
  ~Qp();

  /// Ends it: when it returns no completion of it is in its CQs. @throws Error(EBUSY)
  void destroy();

  /// ibv_modify_qp: attributes and transitions as in IBTA 11.2.5.2; see qp_modify.cpp.
  void modify(const ibv_qp_attr& attr, int mask);
  /// ibv_query_qp: asks the device. @throws Error  EIO: the device is lost
  void query(ibv_qp_attr& attr, ibv_qp_init_attr& init);
  /// ibv_attach_mcast, ibv_detach_mcast: messages to the group come here, too, or not any more.
  /// @throws Error  EINVAL: not UD, or no multicast GID; EOPNOTSUPP
  void attach_multicast(const Gid& group);
  void detach_multicast(const Gid& group);

  /// Posts a list. @return 0, or errno for the request that *bad is set to (those before it are
  /// posted): EINVAL: malformed or wrong state; ENOMEM: queue full; EOPNOTSUPP: operation
  int post_send(ibv_send_wr* wr, ibv_send_wr** bad) noexcept;
  int post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept;

  /// The work request API (ibv_wr_*): begin() locks the send queue until complete() or abort(); between
  /// them each operation is opened and then given its data.
  void begin() noexcept;
  /// Posts what was opened since begin(), and unlocks. @return 0, or the errno of the first operation
  /// that was refused, as post_send(): then nothing is posted
  int complete() noexcept;
  /// Forgets what was opened since begin(), and unlocks.
  void abort() noexcept;
  /// Opens an operation. If no data follow it is a message without payload. Errors come at complete().
  /// @param flags       ibv_send_flags; IBV_SEND_INLINE is ignored, set_inline() says it
  /// @param imm_or_key  immediate data in network order; only for opcodes that have some
  /// @param va, rkey    remote memory; only for RDMA
  void open_operation(hwif::WrOpcode opcode, uint64_t wr_id, unsigned flags, uint32_t imm_or_key,
                      uint64_t va, uint32_t rkey) noexcept;
  /// Opens an atomic operation. Its data is one SGE of 8 bytes, for the value that was there.
  /// @param opcode       CMP_SWAP or FETCH_ADD
  /// @param swap_or_add  CMP_SWAP: the new value; FETCH_ADD: the summand
  /// @param compare      CMP_SWAP: the expected value; FETCH_ADD: 0
  void open_atomic(hwif::WrOpcode opcode, uint64_t wr_id, unsigned flags, uint64_t va, uint32_t rkey,
                   uint64_t swap_or_add, uint64_t compare) noexcept;
  /// Where the open operation of a UD queue pair goes; before its data or after it, which the operation
  /// ends with then. Without it complete() returns EINVAL.
  void set_ud_address(const ibv_ah* ah, uint32_t qpn, uint32_t qkey) noexcept;
  /// Data of the open operation, which ends with it. Without an open one, or with more than it may
  /// have, complete() returns EINVAL.
  void set_sges(const ibv_sge* sges, size_t count) noexcept;
  /// As set_sges(), copied now: at most cap().max_inline_data bytes, not for READ.
  void set_inline(const ibv_data_buf* pieces, size_t count) noexcept;
  /// An operation that the queue pair does not have was called.
  void refuse_operation(int error) noexcept;

  Context& context() noexcept { return pd_.context(); }
  Pd& pd() noexcept { return pd_; }
  /// Number, with incarnation.
  uint32_t number() const noexcept { return number_; }
  /// What its user wants to find again from an event.
  void set_owner(void* owner) noexcept { owner_ = owner; }
  void* owner() const noexcept { return owner_; }
  ibv_qp_state state() const noexcept { return state_; }
  /// Where its receives come from, or nullptr if it has a receive queue.
  Srq* srq() const noexcept { return config_.srq; }
  /// The sizes it has.
  const ibv_qp_cap& cap() const noexcept { return cap_; }
  /// Whether SQ_DRAINED was asked for in the last change to SQD; the device raises it in any case.
  bool tells_drained() const noexcept { return tells_drained_.load(); }
  void count_async_event() noexcept { async_events_.fetch_add(1); }
  uint32_t async_events() const noexcept { return async_events_.load(); }

  /// In the child after fork.
  void abandon_after_fork() noexcept;

 private:
  friend class Cq;

  // A posted send request, at its first block.
  struct SendInfo {
    uint64_t wr_id;
    // What is free once it is complete: next block in the low half, requests posted up to here in the
    // high half.
    uint64_t progress;
  };

  struct SendQueue {
    std::byte* ring = nullptr;
    uint32_t mask = 0;
    uint32_t max_wr = 0;
    // Free running: next block, and requests posted.
    uint32_t head = 0;
    uint32_t count = 0;
    uint64_t doorbell_base = 0;
    std::unique_ptr<SendInfo[]> info;
    uint32_t max_sge = 0;
    uint32_t max_sge_read = 0;
    uint32_t max_inline = 0;
    uint32_t signal_all = 0;
    // Posting is allowed in this state.
    std::atomic<bool> open{false};
    // Most bytes of a UD message: what fits into one packet.
    uint32_t max_datagram = 0;
    // max_rd_atomic is not 0: a READ or atomic will have its turn. Never of UC and UD.
    std::atomic<bool> reads{false};
    // `head` as it was last made known.
    std::atomic<uint32_t> posted{0};
    // SendInfo::progress of the last completed request; written by polling.
    alignas(64) std::atomic<uint64_t> completed{0};
  };

  struct RecvQueue {
    std::byte* ring = nullptr;
    uint32_t mask = 0;
    uint32_t stride_log2 = 0;
    uint32_t max_sge = 0;
    uint32_t head = 0;
    uint64_t doorbell_base = 0;
    std::unique_ptr<uint64_t[]> wr_id;
    Srq* srq = nullptr;  // in its place
    std::atomic<bool> open{false};
    std::atomic<uint32_t> posted{0};
    alignas(64) std::atomic<uint32_t> completed{0};
  };

  // Where a UD message goes.
  struct Datagram {
    const Ah* ah = nullptr;
    uint32_t qpn = 0;
    uint32_t qkey = 0;
  };

  // Operation opened by the work request API that is not complete.
  struct Opened {
    bool valid = false;
    hwif::WrOpcode opcode{};
    unsigned flags = 0;
    uint32_t imm_or_key = 0;
    uint64_t wr_id = 0;
    uint64_t va = 0;
    uint32_t rkey = 0;
    // Atomics.
    uint64_t swap_or_add = 0;
    uint64_t compare = 0;
    // UD: where it goes, once that was said; the request, once it is in the ring.
    bool addressed = false;
    Datagram target;
    std::byte* written = nullptr;
  };

  void size_queues(const QpConfig& config);
  void allocate_queues();
  void reset_queues() noexcept;
  void open_queues() noexcept;
  hwif::MulticastParams multicast_params(const Gid& group) const;
  bool is_datagram() const noexcept { return config_.type == IBV_QPT_UD || config_.type == QPT_GSI; }

  int build_any(const ibv_send_wr& wr) noexcept;
  template <hwif::WrOpcode OPCODE>
  int build(const ibv_send_wr& wr) noexcept;
  std::byte* place(unsigned blocks) noexcept;
  template <hwif::WrOpcode OPCODE, class Data>
  int emit(uint64_t wr_id, unsigned flags, uint32_t imm_or_key, uint64_t va, uint32_t rkey,
           const Data& data) noexcept;
  template <class Data>
  int emit_any(hwif::WrOpcode opcode, uint64_t wr_id, unsigned flags, uint32_t imm_or_key,
               uint64_t va, uint32_t rkey, const Data& data) noexcept;
  int emit_atomic(hwif::WrOpcode opcode, uint64_t wr_id, unsigned flags, uint64_t va, uint32_t rkey,
                  uint64_t swap_or_add, uint64_t compare, const ibv_sge& sge) noexcept;
  [[gnu::noinline]] int build_atomic(const ibv_send_wr& wr) noexcept;
  void ring_send() noexcept;
  // UD: post_ud.cpp.
  [[gnu::noinline]] int post_datagrams(ibv_send_wr* wr, ibv_send_wr** bad) noexcept;
  int build_datagram(const ibv_send_wr& wr) noexcept;
  template <class Data>
  int emit_datagram(hwif::WrOpcode opcode, uint64_t wr_id, unsigned flags, uint32_t imm,
                    const Datagram* target, const Data& data, std::byte*& written) noexcept;
  bool is_address(const Datagram& target) const noexcept;
  void set_datagram_sges(const ibv_sge* sges, size_t count) noexcept;
  void set_datagram_inline(const ibv_data_buf* pieces, size_t count) noexcept;
  void finish_datagram() noexcept;
  void datagram_has_data(int error, long long sges, bool in_line, uint64_t length) noexcept;
  // What READs and atomics get that will never have their turn.
  [[gnu::cold]] int no_reads_error() const noexcept {
    return config_.type == IBV_QPT_RC ? EINVAL : EOPNOTSUPP;
  }
  // A send request that was refused, as far as the reason needs it.
  struct Refused {
    bool operation = false;  // it was one that the work request API has
    bool in_line = false;
    bool read = false;    // READ or atomic
    bool atomic = false;
    long long sges = 0;
    uint64_t length = 0;
    const Datagram* target = nullptr;
  };
  // One line of the log with field, value, limit and cure: post_refused.cpp.
  [[gnu::noinline, gnu::cold]] void tell_refused_send(int error, const ibv_send_wr& wr) noexcept;
  [[gnu::noinline, gnu::cold]] void tell_refused_recv(int error, int sges) noexcept;
  [[gnu::noinline, gnu::cold]] void tell_refused(int error, const Refused& request) noexcept;
  void tell_bad_address(const Datagram& target) noexcept;
  // Why; the receive queue's reasons come last.
  enum class Refusal : uint8_t {
    SEND_STATE, SEND_FULL, OPCODE, NO_OPERATION, READ_INLINE, NO_READS, READ_SGES, SEND_SGES,
    INLINE_LENGTH, LENGTH, ATOMIC_DATA, NO_ADDRESS, ADDRESS, DATAGRAM_LENGTH, RECEIVE_STATE,
    RECEIVE_FULL, RECEIVE_SGES, RECEIVE_SHARED
  };
  void say_refused(Refusal cause, const char* format, ...) noexcept
      __attribute__((format(printf, 3, 4)));
  void finish_opened() noexcept;
  // For polling: the completion's wr_id; frees what it completes.
  uint64_t complete_send(uint32_t index) noexcept {
    const SendInfo info = sq_.info[index & sq_.mask];
    sq_.completed.store(info.progress, std::memory_order_release);
    return info.wr_id;
  }
  uint64_t complete_recv(uint32_t cookie) noexcept {
    const uint64_t* const wr_ids = rq_.wr_id.get();
    if (wr_ids == nullptr) [[unlikely]] return rq_.srq->complete(cookie);
    const uint64_t wr_id = wr_ids[cookie & rq_.mask];
    // A receive queue completes in order, and the cookie of an entry is its index.
    rq_.completed.store(cookie + 1, std::memory_order_release);
    return wr_id;
  }
  // For polling after the device died: the next request that never completed.
  bool flush_send(Completion& completion) noexcept;
  bool flush_recv(Completion& completion) noexcept;

  // Data path.
  SpinLock sq_lock_;
  SpinLock rq_lock_;
  SendQueue sq_;
  RecvQueue rq_;
  volatile uint64_t* doorbell_ = nullptr;
  Transport& transport_;
  unsigned doorbell_page_ = 0;
  bool datagrams_ = false;  // is_datagram(), where it is looked at often
  Opened opened_;
  int wr_error_ = 0;
  uint32_t wr_head_ = 0;
  uint32_t wr_count_ = 0;

  // The rest.
  Pd& pd_;
  QpConfig config_;
  ibv_qp_cap cap_{};
  uint32_t number_ = 0;
  ibv_qp_state state_ = IBV_QPS_RESET;
  DmaBuffer sq_buffer_;
  DmaBuffer rq_buffer_;
  std::atomic<bool> tells_drained_{false};
  std::atomic<uint32_t> async_events_{0};
  // The log had a warning of a failed completion since RESET; two CQs may see it at once.
  std::atomic<bool> failure_told_{false};
  // Likewise of requests that were refused: a bit for each Refusal.
  std::atomic<uint32_t> refusals_told_{0};
  void* owner_ = nullptr;
  bool alive_ = false;
};

/// A state as in logs: "RTS".
const char* state_name(ibv_qp_state state) noexcept;

}  // namespace roci
