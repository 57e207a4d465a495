// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Events for programs: queues in memory with a file descriptor that poll() and select() know.
#pragma once

#include <roci/cancellation.hpp>
#include <roci/error.hpp>

#include <roci_hwif.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <optional>

namespace roci {

class Context;
class Cq;
class Qp;
class Srq;

/// Waits until the descriptor of a queue is readable, unless it has O_NONBLOCK. A cancellation point.
/// @return false with errno EAGAIN (it would wait) or EINTR
inline bool wait_for_event(int fd) {
  pthread_testcancel();
  if ((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) {
    errno = EAGAIN;
    return false;
  }
  pollfd ready{fd, POLLIN, 0};
  return poll(&ready, 1, -1) == 1;
}

/// Queue whose descriptor is readable while something is in it. Any number of threads at both ends.
/// The program may set O_NONBLOCK on the descriptor and poll it; only take() reads it.
template <class T>
class EventFdQueue {
 public:
  /// @throws Error if there are no descriptors left
  EventFdQueue() : fd_(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {
    if (fd_ < 0) fail(errno, "eventfd: %s", errno_text(errno).c_str());
  }
  EventFdQueue(const EventFdQueue&) = delete;
  EventFdQueue& operator=(const EventFdQueue&) = delete;
  ~EventFdQueue() { close(fd_); }

  /// The descriptor.
  int fd() const noexcept { return fd_; }

  /// Adds an element at the end.
  void push(const T& element) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(element);
    }
    const NoCancellation whole;
    const uint64_t one = 1;
    // Full only after 2^64 - 1 of them.
    [[maybe_unused]] const ssize_t size = write(fd_, &one, sizeof one);
  }

  /// Takes the first element; never waits, whatever the descriptor's flags.
  /// @param taken  called with the element before anybody can see that it left the queue
  /// @return nothing if there is none; errno is EAGAIN then
  template <class Taken>
  std::optional<T> take(Taken taken) {
    const NoCancellation whole;
    for (;;) {
      // The descriptor may be a blocking one, and others may read it.
      uint64_t count = 0;
      const iovec part{&count, sizeof count};
      ssize_t size = preadv2(fd_, &part, 1, -1, RWF_NOWAIT);
      if (size < 0 && errno == EOPNOTSUPP) {  // a kernel that reads them in the old way only
        pollfd ready{fd_, POLLIN, 0};
        errno = EAGAIN;
        if (poll(&ready, 1, 0) == 1) size = read(fd_, &count, sizeof count);
      }
      if (size != sizeof count) return std::nullopt;
      const std::lock_guard lock(mutex_);
      if (queue_.empty()) continue;  // it was removed after the descriptor was counted up
      T element = queue_.front();
      queue_.pop_front();
      taken(element);
      return element;
    }
  }

  /// In the child after fork: empty, unlocked. The descriptor is still the parent's, so it is not read.
  void abandon_after_fork() noexcept {
    new (&mutex_) std::mutex;
    new (&queue_) std::deque<T>;  // the old one may be half changed: it is left alone
  }

  /// Whether there is nothing in it.
  bool empty() const {
    const std::lock_guard lock(mutex_);
    return queue_.empty();
  }

  /// Removes elements that match. @return how many
  template <class Predicate>
  size_t remove_if(Predicate predicate) {
    size_t removed = 0;
    {
      const std::lock_guard lock(mutex_);
      removed = std::erase_if(queue_, predicate);
    }
    // Count the descriptor down without waiting. A count that somebody else takes meanwhile does no
    // harm: take() goes on if it finds nothing.
    for (size_t i = 0; i < removed; ++i) {
      uint64_t count = 0;
      const iovec part{&count, sizeof count};
      if (preadv2(fd_, &part, 1, -1, RWF_NOWAIT) < 0) break;
    }
    return removed;
  }

 private:
  const int fd_;
  mutable std::mutex mutex_;
  std::deque<T> queue_;
};

/// An asynchronous event. Exactly one of `cq`, `qp` and `srq` is set for events of objects, none for
/// those of port and device.
struct AsyncEvent {
  hwif::EqeType type;
  Cq* cq = nullptr;
  Qp* qp = nullptr;
  Srq* srq = nullptr;
};

/// Completion channel: completion events of any number of CQs of one context.
class CompChannel {
 public:
  explicit CompChannel(Context& context) : context_(context) {}

  /// Descriptor for poll().
  int fd() const noexcept { return queue_.fd(); }

  /// The next CQ with an event. Waits like wait_for_event(); counts as delivered.
  Cq* get();
  /// As get(), but never waits.
  Cq* take();

  /// Adds an event of a CQ.
  void push(Cq& cq) { queue_.push(&cq); }

  /// Removes the events of a CQ that nobody has got yet.
  void remove(const Cq& cq) {
    queue_.remove_if([&](const Cq* other) { return other == &cq; });
  }

  /// In the child after fork.
  void abandon_after_fork() noexcept { queue_.abandon_after_fork(); }

 private:
  Context& context_;
  EventFdQueue<Cq*> queue_;
};

}  // namespace roci
