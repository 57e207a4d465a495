// SPDX-License-Identifier: BSD-2-Clause-Patent
#pragma once

#include <roci/dma.hpp>
#include <roci/pd.hpp>
#include <roci/spin_lock.hpp>

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>

namespace roci {

/// Shared receive queue: receives that messages of any of its queue pairs take, in order. Posting and
/// completing are the data path; everything else throws.
class Srq {
 public:
  /// @param attr  wanted max_wr and max_sge; srq_limit is not looked at (ibv_create_srq)
  /// @throws Error  EINVAL: sizes beyond the limits; EOPNOTSUPP; ENOMEM
  Srq(Pd& pd, const ibv_srq_attr& attr);
  Srq(const Srq&) = delete;
  Srq& operator=(const Srq&) = delete;
  ~Srq();

  /// Ends it. @throws Error(EBUSY) while queue pairs use it
  void destroy();

  /// ibv_modify_srq. IBV_SRQ_LIMIT arms the event SRQ_LIMIT_REACHED: once, when fewer receives than this
  /// are left; 0 disarms. @throws Error  EINVAL: more than max_wr; EOPNOTSUPP: IBV_SRQ_MAX_WR
  void modify(const ibv_srq_attr& attr, int mask);
  /// ibv_query_srq: asks the device for the limit.
  ibv_srq_attr query();

  /// Posts a list. @return 0, or errno for the request that *bad is set to (those before it are
  /// posted): EINVAL: too many SGEs; ENOMEM: queue full
  int post(ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept;

  /// For polling: the wr_id of a receive that completed; it is free then.
  /// @param cookie  of the completion
  uint64_t complete(uint32_t cookie) noexcept;

  // For queue pairs.
  void add_user() noexcept { users_.fetch_add(1); }
  void remove_user() noexcept { users_.fetch_sub(1); }

  Context& context() noexcept { return pd_.context(); }
  Pd& pd() noexcept { return pd_; }
  uint32_t number() const noexcept { return number_; }
  unsigned max_wr() const noexcept { return mask_ + 1; }
  unsigned max_sge() const noexcept { return max_sge_; }
  /// What its user wants to find again from an event.
  void set_owner(void* owner) noexcept { owner_ = owner; }
  void* owner() const noexcept { return owner_; }
  void count_async_event() noexcept { async_events_.fetch_add(1); }
  uint32_t async_events() const noexcept { return async_events_.load(); }

  /// In the child after fork.
  void abandon_after_fork() noexcept;

 private:
  // What the cookie of a receive finds: receives end in any order.
  struct Entry {
    uint64_t wr_id;
    uint32_t next_free;
  };

  [[gnu::noinline, gnu::cold]] void tell_refused(int error, int sges) noexcept;

  // Data path.
  SpinLock lock_;
  std::byte* ring_ = nullptr;
  uint32_t mask_ = 0;
  uint32_t stride_log2_ = 0;
  uint32_t max_sge_ = 0;
  uint32_t head_ = 0;  // free running
  uint32_t free_ = 0;  // first free entry
  uint32_t free_count_ = 0;
  std::unique_ptr<Entry[]> entries_;
  bool closed_ = false;
  uint64_t doorbell_base_ = 0;
  volatile uint64_t* doorbell_ = nullptr;
  Transport& transport_;
  const unsigned doorbell_page_;

  // The rest.
  Pd& pd_;
  uint32_t number_ = 0;
  DmaBuffer buffer_;
  std::atomic<unsigned> users_{0};
  std::atomic<uint32_t> async_events_{0};
  std::atomic<bool> refusal_told_{false};
  void* owner_ = nullptr;
  bool alive_ = false;
};

}  // namespace roci
