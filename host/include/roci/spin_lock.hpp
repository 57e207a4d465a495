// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Lock of the data path that can be switched off for objects that one thread uses.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace roci {

/// Spin lock that gives up the processor after a while: its holder may not be running.
class SpinLock {
 public:
  /// @param enabled  false: one thread at a time by promise of the program, nothing is locked
  explicit SpinLock(bool enabled) : enabled_(enabled) {}

  void lock() noexcept {
    if (!enabled_) [[unlikely]] return;
    if (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]] wait();
  }
  void unlock() noexcept {
    if (enabled_) [[likely]] taken_.store(false, std::memory_order_release);
  }
  /// Unlocked, whoever held it: in the child after fork.
  void reinitialise() noexcept { taken_.store(false, std::memory_order_relaxed); }

 private:
  [[gnu::noinline, gnu::cold]] void wait() noexcept {
    do {
      for (int i = 0; i < 64 && taken_.load(std::memory_order_relaxed); ++i) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
      if (taken_.load(std::memory_order_relaxed)) sched_yield();
    } while (taken_.exchange(true, std::memory_order_acquire));
  }

  std::atomic<bool> taken_{false};
  const bool enabled_;
};

}  // namespace roci
