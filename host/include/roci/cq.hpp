// SPDX-License-Identifier: BSD-2-Clause-Patent
#pragma once

#include <roci/device.hpp>
#include <roci/dma.hpp>
#include <roci/spin_lock.hpp>

#include <infiniband/verbs.h>

#include <pthread.h>

#include <atomic>
#include <vector>

namespace roci {

/// What a completion queue is made of.
struct CqConfig {
  /// Completions it has room for, at least 1.
  unsigned entries = 0;
  /// Where its events go, or nullptr.
  CompChannel* channel = nullptr;
  /// One thread at a time uses it.
  bool single_threaded = false;
};

/// A completion as it leaves the queue.
struct Completion {
  uint64_t wr_id;
  hwif::Cqe cqe;
};

/// Completion queue. The ring has at least twice the entries that were asked for, so that the device
/// always has room while consumed entries are reported every quarter of the ring.
class Cq {
 public:
  /// @throws Error  EINVAL: no entries or more than limits().max_cqe; ENOMEM
  Cq(Context& context, const CqConfig& config);
  Cq(const Cq&) = delete;
  Cq& operator=(const Cq&) = delete;
  ~Cq();

  /// Ends it; events that nobody got yet go with it. @throws Error(EBUSY) while queue pairs use it
  void destroy();

  /// Takes up to `count` completions. @return how many, never an error
  int poll(int count, ibv_wc* wc) noexcept;

  /// Wants one event for the next completion, or the next solicited (or failed) one. Also between
  /// start_poll() and end_poll().
  void arm(bool solicited_only) noexcept;

  /// A new ring for `entries`. @throws Error  EINVAL: fewer than unpolled, or too many; EOPNOTSUPP
  void resize(unsigned entries);

  /// Completion by completion: start locks and takes the first, next takes another one; if start
  /// returns 0, end has to follow. @return 0, or ENOENT if there is none
  int start_poll() noexcept;
  int next_poll() noexcept;
  void end_poll() noexcept;
  /// The one that start_poll() or next_poll() took.
  const Completion& current() const noexcept { return current_; }

  Context& context() noexcept { return context_; }
  /// Number, with incarnation.
  uint32_t number() const noexcept { return number_; }
  /// What its user wants to find again from an event.
  void set_owner(void* owner) noexcept { owner_ = owner; }
  void* owner() const noexcept { return owner_; }
  /// Entries it has room for.
  unsigned entries() const noexcept { return (ring_mask_ + 1) / 2; }

  // For events.
  /// The device has raised the event that arm() asked for: it goes to the channel, if there is one.
  void deliver_completion_event();
  /// As that, if one is wanted: which events were lost is not known.
  void deliver_lost_event();
  void count_completion_event() noexcept { completion_events_.fetch_add(1); }
  /// A program takes an event of this queue: it will poll what is there now.
  void take_event() noexcept;
  void count_async_event() noexcept { async_events_.fetch_add(1); }
  /// Events that programs got and have to acknowledge.
  uint32_t completion_events() const noexcept { return completion_events_.load(); }
  uint32_t async_events() const noexcept { return async_events_.load(); }
  /// The device is gone: from now on what was posted comes out as flushed.
  void device_died() noexcept;

  // For queue pairs.
  /// Completions of the queue pair may come here: of its send queue, of its receive queue. It stays
  /// until detach().
  void attach(Qp& qp, bool send, bool recv);
  /// Ends attach() and removes the queue pair's completions.
  void detach(Qp& qp) noexcept;
  /// Removes the completions of a queue pair, which makes no new ones any more.
  void remove_completions(const Qp& qp) noexcept;

  /// In the child after fork.
  void abandon_after_fork() noexcept;

 private:
  // Whether the entry at `index` was written by the device in this lap.
  bool valid(uint32_t index) const noexcept;
  bool is_there(const std::byte* entry, uint32_t index) const noexcept;
  bool take(Completion& completion) noexcept;
  bool take_entry(Completion& completion) noexcept;
  [[gnu::noinline]] bool take_flushed(Completion& completion) noexcept;
  [[gnu::noinline, gnu::cold]] bool poll_flushed(ibv_wc& wc) noexcept;
  void ring(hwif::Doorbell doorbell, hwif::DoorbellKind kind, uint32_t index) noexcept;
  void report_consumed() noexcept;
  void allocate_ring(unsigned entries, DmaBuffer& ring, unsigned& log2) const;
  void fill_in(const Completion& completion, ibv_wc& wc) const noexcept;
  [[gnu::noinline, gnu::cold]] void tell_failure(const Completion& completion) const noexcept;
  [[gnu::noinline]] void idle() noexcept;

  // Data path.
  SpinLock lock_;
  const std::byte* ring_ = nullptr;
  uint32_t ring_mask_ = 0;
  uint32_t quarter_ = 0;  // of the ring: reported at least that often
  uint32_t ring_log2_ = 0;
  // Free running; the low 24 bits are the index of the interface.
  uint32_t consumed_ = 0;
  uint32_t reported_ = 0;
  uint32_t announced_ = 0;  // entries below it belong to an event that a program took
  uint32_t last_qpn_ = ~0u;
  Qp* last_qp_ = nullptr;
  bool idles_ = false;
  bool dead_ = false;
  volatile uint64_t* doorbell_ = nullptr;
  Completion current_{};
  // Thread between start_poll() and end_poll(), which holds the lock.
  std::atomic<pthread_t> poller_{};

  // The rest.
  Context& context_;
  CompChannel* const channel_;
  uint32_t number_ = 0;
  DmaBuffer buffer_;
  std::atomic<bool> armed_{false};
  std::vector<Qp*> send_qps_;
  std::vector<Qp*> recv_qps_;
  std::atomic<uint32_t> completion_events_{0};
  std::atomic<uint32_t> async_events_{0};
  void* owner_ = nullptr;
  bool alive_ = false;
};

/// Whether it is one of the receive side.
constexpr bool is_receive(hwif::CqeOpcode opcode) noexcept {
  return (static_cast<unsigned>(opcode) & 0x80) != 0;
}

/// Completion as verbs report it.
ibv_wc_opcode wc_opcode(hwif::CqeOpcode opcode) noexcept;
unsigned wc_flags(const hwif::Cqe& cqe) noexcept;

}  // namespace roci
