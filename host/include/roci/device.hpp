// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Device: one function of a NIC as the process uses it, shared by everything that opens the NIC.
// Context: one opening of it, with asynchronous events of its own.
#pragma once

#include <roci/dma.hpp>
#include <roci/events.hpp>
#include <roci/transport.hpp>

#include <roci_hwif.hpp>

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace roci {

class AdminQueue;

/// Knobs of a device. from_environment() has what users set.
struct DeviceOptions {
  /// ROCI_DMA: addresses of registered memory.
  DmaPolicy dma = DmaPolicy::DIRECT;
  /// ROCI_SINGLE_THREADED=1: the program promises that each object is used by one thread at a time.
  bool single_threaded = false;
  /// ROCI_TIMEOUT (seconds): how long the firmware may take for a command.
  std::chrono::milliseconds timeout{60000};
  /// Doorbell page that the objects use.
  unsigned doorbell_page = 0;

  /// From ROCI_DMA, ROCI_SINGLE_THREADED and ROCI_TIMEOUT. @throws Error(EINVAL) that names the bad one
  static DeviceOptions from_environment();
};

/// What the function can do: limits of the hardware, less what this host stack does not have. Every
/// number can be reached.
struct DeviceLimits {
  hwif::Config config;
  uint32_t clock_khz;
  uint8_t version_major, version_minor, version_patch;
  uint16_t vendor, device;
  std::string firmware_version;
  hwif::ByteArray<8> node_guid, system_image_guid;
  unsigned function_number;

  unsigned max_qps, max_cqs, max_srqs, max_mrs, max_pds;
  /// Largest max_send_wr (with at most 2 SGEs and 32 inline bytes) and max_recv_wr.
  unsigned max_qp_wr;
  /// Largest max_wr of an SRQ.
  unsigned max_srq_wr;
  unsigned max_sge, max_sge_read;
  /// Bytes; of connected queue pairs, and of UD, whose requests carry the address.
  unsigned max_inline, max_inline_ud;
  /// Attachments of queue pairs to multicast groups, all together.
  unsigned max_multicast;
  /// Largest number of entries of a CQ.
  unsigned max_cqe;
  unsigned max_initiator_depth, max_responder_depth, max_total_responder_depth;
  /// Bytes.
  uint64_t max_message, max_mr_bytes;
  /// Smallest and largest page of a memory region, log2 of bytes.
  unsigned min_page_shift, max_page_shift;
  /// Entries of the tables.
  unsigned gids, pkeys;
  /// Largest rings, log2: of the send queue in blocks, of the others in entries.
  unsigned sq_log2, rq_log2, cq_log2, eq_log2;
  bool rc, uc, ud, gsi, srq, atomics, cq_resize, timestamps;
  /// Q_Keys with bit 31 may be set (IBTA 10.2.5).
  bool privileged;
};

/// An entry of the GID table.
struct GidEntry {
  Gid gid;
  hwif::GidType type;
  bool vlan_present;
  uint16_t vlan_id;
};

/// State of the port.
struct PortState {
  MacAddress mac;
  bool active;
  hwif::Mtu active_mtu, max_mtu;
  uint32_t speed_mbps;
  unsigned bad_pkeys, bad_qkeys;
};

/// One function of a NIC. Outlives its contexts and objects (they hold it). Thread-safe.
class Device {
 public:
  /// Opens the function: checks that hardware, firmware and this program were built for the same
  /// interface, enables the admin queue, starts events.
  /// @throws Error  EPROTO: another interface; EIO: the firmware does not run; …
  static std::shared_ptr<Device> open(std::unique_ptr<Transport> transport,
                                      DeviceOptions options = {});
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  const DeviceLimits& limits() const noexcept { return limits_; }
  const DeviceOptions& options() const noexcept { return options_; }
  Transport& transport() noexcept { return *transport_; }
  AdminQueue& admin() noexcept { return *admin_; }
  DmaArena& arena() noexcept { return *arena_; }
  DmaMap& dma_map() noexcept { return *dma_map_; }
  /// Number of the event queue.
  uint32_t eqn() const noexcept { return eqn_; }

  /// Whether the device failed or is gone: nothing is sent to it any more, and what was posted is
  /// flushed in software.
  bool dead() const noexcept { return dead_.load(std::memory_order_acquire); }
  /// @throws Error(EIO) if dead()
  void check_alive() const;

  /// The GID table, from a copy that is renewed after GID_CHANGE.
  std::vector<GidEntry> gid_table();
  /// The P_Key table, likewise.
  std::vector<uint16_t> pkey_table();
  /// The port.
  PortState query_port();
  /// Counters from `first` on, in the order of hwif::Counter.
  std::vector<uint64_t> query_counters(unsigned first, size_t count);
  /// The device's clock in cycles.
  uint64_t clock();

  /// MAC address for packets to `gid`: from the GID itself if it is link-local or multicast, from our
  /// own table, else from the fabric's neighbour table.
  /// @throws Error(EHOSTUNREACH)
  MacAddress resolve(const Gid& gid);

  /// Takes what is in the event queue. For transports that do not run by themselves.
  void poll_events();
  /// Waits for the event interrupt, then poll_events(). @return false after the timeout
  bool wait_events(std::chrono::milliseconds timeout);

  // For the objects. Numbers are those of the device; the index is their low part.
  void add_cq(uint32_t cqn, Cq& cq);
  void remove_cq(uint32_t cqn);
  void add_qp(uint32_t qpn, Qp& qp);
  void remove_qp(uint32_t qpn);
  void add_srq(uint32_t srqn, Srq& srq);
  void remove_srq(uint32_t srqn);
  void add_context(Context& context);
  void remove_context(Context& context);
  /// The QP with this number, or nullptr. Data path: the caller holds the lock of one of its CQs.
  Qp* find_qp(uint32_t qpn) const noexcept {
    return qps_[qpn & qp_mask_].load(std::memory_order_acquire);
  }

  /// Before and after fork; see core/shared_device.cpp.
  void before_fork() noexcept;
  void after_fork_in_parent() noexcept;
  void after_fork_in_child() noexcept;

 private:
  explicit Device(std::unique_ptr<Transport> transport, DeviceOptions options);
  void check_identity();
  void read_limits();
  void create_eq();
  void start_events();
  void stop_events() noexcept;
  // With eq_mutex_ held. @return whether there were any
  bool drain_events();
  void skip_hole();
  void dispatch_lost();
  void dispatch(const hwif::Eqe& eqe);
  void die(hwif::EqeType type) noexcept;

  std::unique_ptr<Transport> transport_;
  const DeviceOptions options_;
  DeviceLimits limits_{};
  std::atomic<bool> dead_{false};

  std::unique_ptr<DmaArena> arena_;
  std::unique_ptr<DmaMap> dma_map_;
  std::unique_ptr<AdminQueue> admin_;

  // Objects. The mutex is held while an event is given to an object, so that it cannot go meanwhile.
  std::mutex objects_mutex_;
  std::vector<Cq*> cqs_;
  std::vector<Srq*> srqs_;
  uint32_t qp_mask_ = 0;
  std::unique_ptr<std::atomic<Qp*>[]> qps_;
  std::vector<Context*> contexts_;

  // Copies of the port's tables.
  std::mutex tables_mutex_;
  std::vector<GidEntry> gids_;
  std::vector<uint16_t> pkeys_;
  std::atomic<bool> gids_valid_{false};
  std::atomic<bool> pkeys_valid_{false};

  // Event queue.
  std::mutex eq_mutex_;
  DmaBuffer eq_ring_;
  unsigned eq_log2_ = 0;
  uint32_t eqn_ = 0;
  uint32_t eq_consumed_ = 0;
  unsigned eq_empty_interrupts_ = 0;  // in a row
  // No std::thread: after fork its owner must be able to forget it.
  pthread_t thread_{};
  bool thread_runs_ = false;
  std::atomic<bool> stopping_{false};
};

/// The device of a simulated NIC, opened at the first call and shared by all others of the process
/// until the last owner lets it go. Options come from the environment. After fork the child starts
/// without any.
/// @param socket  path of the NIC's socket
/// @throws Error as connect_simulator() and Device::open()
std::shared_ptr<Device> open_shared_device(const std::string& socket);

/// One opening of a device.
class Context {
 public:
  /// Asynchronous events of the device come to it from now on.
  explicit Context(std::shared_ptr<Device> device);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  Device& device() noexcept { return *device_; }
  /// Descriptor for poll() of asynchronous events.
  int async_fd() const noexcept { return events_.fd(); }
  /// The next asynchronous event; waits like wait_for_event(). Counts as delivered to its object.
  std::optional<AsyncEvent> get_async_event();
  /// As that, but never waits.
  std::optional<AsyncEvent> take_async_event();
  /// Adds an event.
  void push_event(const AsyncEvent& event) { events_.push(event); }
  /// Removes the events of an object that nobody has got yet.
  void remove_events(const Cq* cq, const Qp* qp, const Srq* srq = nullptr);
  /// In the child after fork.
  void abandon_after_fork() noexcept { events_.abandon_after_fork(); }

 private:
  std::shared_ptr<Device> device_;
  EventFdQueue<AsyncEvent> events_;
};

}  // namespace roci
