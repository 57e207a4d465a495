// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The transport behind connect_simulator(); see simulator.cpp.
#pragma once

#include "socket.hpp"

#include <roci/simulator.hpp>

#include <pthread.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <unordered_map>

namespace roci {

/// Says what we are and what we want ("function" or "query"). @return the reply to VERSION
/// @param patience  for the reply; it stays the socket's receive timeout
/// @throws Error  EBUSY: no function free; EPROTO: not our protocol; ETIMEDOUT
vfio_user::Message negotiate(int socket, const char* role, std::chrono::milliseconds patience);

/// vfio-user client.
class SimulatorTransport final : public Transport {
 public:
  SimulatorTransport(const std::string& path, SimulatorOptions options);
  SimulatorTransport(const SimulatorTransport&) = delete;
  SimulatorTransport& operator=(const SimulatorTransport&) = delete;
  ~SimulatorTransport() override;

  uint64_t bar_read(uint32_t offset) override;
  void bar_write(uint32_t offset, uint64_t value) override;
  void ring(unsigned page, uint64_t doorbell) noexcept override;
  DmaRange allocate(size_t bytes) override;
  void release(const DmaRange& chunk) noexcept override;
  void map(std::span<DmaRange> ranges) override;
  void unmap(std::span<const DmaRange> ranges) noexcept override;
  bool wait(unsigned vector, std::chrono::milliseconds timeout) override;
  void wake(unsigned vector) noexcept override;
  std::optional<Neighbour> resolve(const Gid& gid) override;
  void idle() noexcept override;
  bool wants_idle() const noexcept override { return true; }
  void before_fork() noexcept override { mutex_.lock(); }
  void after_fork() noexcept override { mutex_.unlock(); }
  void abandon_after_fork() noexcept override;

 private:
  // A request whose reply is awaited.
  struct Pending {
    uint16_t id = 0;
    bool done = false;
    vfio_user::Message reply;
  };

  void set_up();
  void send(Pending& pending, vfio_user::Command command, std::span<const uint8_t> body,
            std::span<const uint8_t> data, std::span<const int> fds);
  void finish(Pending& pending, vfio_user::Command command);
  vfio_user::Message request(vfio_user::Command command, std::span<const uint8_t> body,
                             std::span<const int> fds = {});
  void send_write(const vfio_user::RegionWrite64& message) noexcept;
  void unmap_messages(std::span<const DmaRange> ranges) noexcept;
  void start_receiver();
  void stop_receiver() noexcept;
  void receive();
  void let_waiters_go() noexcept override;
  // Answers a command of the server. @return false if the connection is gone
  bool serve(const vfio_user::Message& message);
  bool access_memory(uint64_t address, std::span<uint8_t> data, bool write);

  const SimulatorOptions options_;
  UniqueFd socket_;
  bool process_vm_ = false;
  std::array<vfio_user::RegionWrite64, hwif::DOORBELL_PAGES> doorbells_{};
  std::array<UniqueFd, hwif::INTERRUPT_VECTORS> interrupts_;

  // Guards what follows.
  std::mutex mutex_;
  std::condition_variable replied_;
  std::unordered_map<uint16_t, Pending*> pending_;
  uint16_t last_id_ = 0;
  // Memory that is reached by messages.
  std::map<uint64_t, DmaRange> maps_;
  std::vector<DmaRange> chunks_;

  // No std::thread: after fork its owner must be able to forget it.
  pthread_t receiver_{};
  bool receiver_runs_ = false;
  std::atomic<bool> closing_{false};
  std::atomic<uint32_t> empty_polls_{0};
};

}  // namespace roci
