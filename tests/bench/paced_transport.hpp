// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Time while the host stack waits for the firmware. Two threads, one per NIC, may run commands side by
// side: simulated time passes only when both wait, so the result does not depend on how the threads are
// scheduled.
#pragma once

#include "../../host/core/admin_queue.hpp"
#include "../../host/core/rings.hpp"
#include "model/world.hpp"

#include <roci/inproc.hpp>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <roci_hwif.hpp>

namespace roci::bench {

/// Lets time pass for those who wait.
class Pacer {
 public:
  explicit Pacer(sim::World& world) : world_(world) {}

  /// Cycles that pass at once while everybody waits.
  void set_step(uint64_t cycles) { step_ = cycles; }

  /// The caller waits: returns when a step has passed, which needs everybody to wait, and its cycles.
  uint64_t pause() {
    std::unique_lock lock(mutex_);
    if (parties_ == 0) {
      pass();
      return step_;
    }
    const uint64_t turn = turn_;
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return turn_ != turn; });
    return step_;
  }

  /// Runs both at once, each in a thread of its own; the caller's thread runs the simulation.
  void together(const std::function<void()>& first, const std::function<void()>& second) {
    std::exception_ptr failures[2];
    const auto guarded = [this](const std::function<void()>& call, std::exception_ptr& failure) {
      try {
        call();
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      --parties_;
      changed_.notify_all();
    };
    std::unique_lock lock(mutex_);
    parties_ = 2;
    std::thread threads[] = {std::thread([&] { guarded(first, failures[0]); }),
                             std::thread([&] { guarded(second, failures[1]); })};
    for (;;) {
      changed_.wait(lock, [&] { return waiting_ == parties_; });
      if (parties_ == 0) break;
      pass();
      waiting_ = 0;
      ++turn_;
      changed_.notify_all();
    }
    lock.unlock();
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

 private:
  void pass() {
    const std::lock_guard simulation(world_.mutex());
    world_.run(step_);
  }

  sim::World& world_;
  uint64_t step_ = 64;
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned parties_ = 0;  // threads of together()
  unsigned waiting_ = 0;
  uint64_t turn_ = 0;
};

/// The in-process transport, with paced waits; times the admin commands, too: from the doorbell to the
/// answer in host memory, as coarse as the pacer's step.
class PacedTransport final : public Transport {
 public:
  /// @param nic  of `world`
  PacedTransport(sim::World& world, InprocNic& nic, Pacer& pacer)
      : world_(world),
        pacer_(pacer),
        inner_(make_inproc_transport(nic, {.step_cycles = 1, .step_when_idle = false})) {}

  uint64_t bar_read(uint32_t offset) override { return inner_->bar_read(offset); }
  void bar_write(uint32_t offset, uint64_t value) override {
    namespace csr = hwif::csr;
    if (offset == csr::AdminCommandRing::ADDRESS) {
      commands_ = reinterpret_cast<const std::byte*>(value);  // DMA address = address, see inproc
    } else if (offset == csr::AdminCompletionRing::ADDRESS) {
      completions_ = reinterpret_cast<const std::byte*>(value);
    } else if (offset == csr::AdminDoorbell::ADDRESS) {
      posted_ = csr::AdminDoorbell::from_word(value).get<csr::AdminDoorbell::index>();
      began_ = world_.cycle();
      waits_ = true;
    } else if (offset == csr::AdminConsumed::ADDRESS) {
      look();
    }
    inner_->bar_write(offset, value);
  }
  void ring(unsigned page, uint64_t doorbell) noexcept override { inner_->ring(page, doorbell); }
  DmaRange allocate(size_t bytes) override { return inner_->allocate(bytes); }
  void release(const DmaRange& chunk) noexcept override { inner_->release(chunk); }
  void map(std::span<DmaRange> ranges) override { inner_->map(ranges); }
  void unmap(std::span<const DmaRange> ranges) noexcept override { inner_->unmap(ranges); }
  bool wait(unsigned vector, std::chrono::milliseconds timeout) override {
    // patience as InprocOptions::cycles_per_millisecond says
    auto left = static_cast<int64_t>(timeout.count()) * 1000;
    while (!inner_->wait(vector, std::chrono::milliseconds(0))) {
      if (left <= 0) return false;
      left -= static_cast<int64_t>(pacer_.pause());
      look();
    }
    return true;
  }
  void wake(unsigned vector) noexcept override { inner_->wake(vector); }
  std::optional<Neighbour> resolve(const Gid& gid) override { return inner_->resolve(gid); }
  void idle() noexcept override {
    pacer_.pause();
    look();
  }
  /// Polling costs no time; waiting for a command does.
  bool wants_idle() const noexcept override { return false; }
  bool runs_by_itself() const noexcept override { return false; }
  void abandon_after_fork() noexcept override { mark_lost_silently(); }

  /// Longest time of each command since the last forget_commands().
  const std::map<hwif::AdminOpcode, uint64_t>& worst_commands() const { return worst_; }
  void forget_commands() { worst_.clear(); }

 private:
  // Whether the answer to the last command (one is under way at a time) is in memory.
  void look() {
    if (!waits_) return;
    constexpr unsigned kRing = 1u << AdminQueue::RING_LOG2;
    const unsigned last = posted_ - 1;
    const std::byte* completion = completions_ + last % kRing * sizeof(hwif::AdminCompletion);
    if (!is_written<hwif::AdminCompletion>(completion, last, AdminQueue::RING_LOG2)) return;
    waits_ = false;
    const auto command = hwif::AdminCommand::load_from(
        commands_ + last % kRing * sizeof(hwif::AdminCommand));
    uint64_t& worst = worst_[command.get<hwif::AdminCommand::opcode>()];
    worst = std::max(worst, world_.cycle() - began_);
  }

  sim::World& world_;
  Pacer& pacer_;
  std::unique_ptr<Transport> inner_;
  const std::byte* commands_ = nullptr;
  const std::byte* completions_ = nullptr;
  bool waits_ = false;  // for an answer
  unsigned posted_ = 0;
  uint64_t began_ = 0;
  std::map<hwif::AdminOpcode, uint64_t> worst_;
};

}  // namespace roci::bench
