// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Transport: how the host stack reaches one function of a NIC. Implementations: the simulator's
// socket (simulator.hpp), a NIC in the same process (inproc.hpp), later VFIO.
#pragma once

#include <roci_hwif.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <span>

namespace roci {

using MacAddress = hwif::ByteArray<6>;
using Gid = hwif::ByteArray<16>;

/// Where a GID is reached on the Ethernet.
struct Neighbour {
  MacAddress mac{};
};

/// Memory of the process that the device may reach.
struct DmaRange {
  /// DMA address. Before map(): the one that is wanted, or ANY.
  uint64_t address;
  /// First byte in the process; a multiple of 4096.
  std::byte* memory;
  /// Length, a multiple of 4096.
  size_t bytes;
  /// The device may write, too.
  bool writable;

  /// The transport chooses the address.
  static constexpr uint64_t ANY = ~uint64_t{0};
};

/// One function of a NIC: BAR0, DMA, interrupts. Calls may come from any thread unless noted.
/// Control calls throw Error(EIO) once the device is lost.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// Reads a register of BAR0.
  /// @param offset  byte offset, a multiple of 8
  virtual uint64_t bar_read(uint32_t offset) = 0;

  /// Writes a register of BAR0; posted: an error shows up later as loss of the device.
  /// @param offset  byte offset, a multiple of 8
  virtual void bar_write(uint32_t offset, uint64_t value) = 0;

  /// Writes a doorbell page. Data path: takes no lock, waits for no reply, ignores a lost device.
  /// @param page  number of the page, below DOORBELL_PAGES
  virtual void ring(unsigned page, uint64_t doorbell) noexcept = 0;

  /// The doorbell page as memory of this process, or nullptr if it can only be reached by ring().
  virtual volatile uint64_t* mapped_doorbell(unsigned page) noexcept;

  /// Zeroed memory for rings and tables, reachable by the device at `address`. Page aligned.
  /// @param bytes  a multiple of 4096
  virtual DmaRange allocate(size_t bytes) = 0;

  /// Ends what allocate() began. The device does not use it any more.
  virtual void release(const DmaRange& chunk) noexcept = 0;

  /// Makes memory of the program reachable and fills in `address` where it was ANY.
  /// All or none: after an exception nothing of `ranges` is mapped.
  virtual void map(std::span<DmaRange> ranges) = 0;

  /// Ends mappings exactly as map() made them. Never fails: a lost device has no mappings.
  virtual void unmap(std::span<const DmaRange> ranges) noexcept = 0;

  /// Waits until the vector was raised since the last wait for it.
  /// @return false after `timeout`; true also if the device is lost or wake() was called
  virtual bool wait(unsigned vector, std::chrono::milliseconds timeout) = 0;

  /// Lets a wait() for this vector return; used to stop threads.
  virtual void wake(unsigned vector) noexcept = 0;

  /// Where a GID is reached, from the neighbour table of the fabric; empty if it is unknown.
  virtual std::optional<Neighbour> resolve(const Gid& gid) = 0;

  /// Called by an empty poll if wants_idle(): lets the device go on.
  virtual void idle() noexcept {}
  /// Whether empty polls call idle().
  virtual bool wants_idle() const noexcept { return false; }

  /// Whether interrupts come by themselves, so that a thread may wait for them. If not (a NIC in this
  /// process), time only passes inside wait() and idle().
  virtual bool runs_by_itself() const noexcept { return true; }

  /// Before fork: nothing that a child needs changes until after_fork() or abandon_after_fork().
  virtual void before_fork() noexcept {}
  /// In the parent after fork.
  virtual void after_fork() noexcept {}
  /// In the child after fork: closes files, sends nothing, and puts private zeroed memory in the place
  /// of the shared one of allocate(), so that the child cannot disturb its parent. Everything else of
  /// this object is not to be used any more.
  virtual void abandon_after_fork() noexcept = 0;

  /// Whether the device is gone.
  bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }

  /// Sets what is called once when the device gets lost, from whichever thread sees it first; at once
  /// if it is lost already. What was set before is not running any more when this returns.
  void on_loss(std::function<void()> handler);

 protected:
  /// Lets those go who wait for the device: it is lost. Called before the handler, which may wait for
  /// them.
  virtual void let_waiters_go() noexcept {}
  /// Marks the device as lost, logs `why` and calls the handler.
  void mark_lost(const char* why) noexcept;
  /// Throws Error(EIO) if the device is lost.
  void check_not_lost() const;
  /// Marks the device as lost without calling anybody (after fork).
  void mark_lost_silently() noexcept { lost_.store(true, std::memory_order_release); }
  /// In the child after fork: whoever held the handler's lock stayed in the parent.
  void forget_handler_after_fork() noexcept {
    new (&handler_mutex_) std::recursive_mutex;
    new (&handler_) std::function<void()>;  // the old one may be half changed: it is left alone
  }

 private:
  void call_handler() noexcept;

  std::atomic<bool> lost_{false};
  // Held while the handler runs, which may ask us.
  std::recursive_mutex handler_mutex_;
  std::function<void()> handler_;
};

}  // namespace roci
