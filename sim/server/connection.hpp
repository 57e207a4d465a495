// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// One vfio-user connection: a function of a NIC for a program, or a question about the NIC.
// Protocol: host/transport/vfio_user.hpp.
#pragma once

#include <roci/inproc.hpp>

#include <transport/socket.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/client_memory.hpp"

namespace roci::sim {

/// A NIC as it is served.
struct ServedNic {
  InprocNic* nic = nullptr;        ///< outlives the server
  vfio_user::NicInfo info{};       ///< counts and functions_free are filled in
  unsigned functions = 0;          ///< that clients can take
  std::vector<vfio_user::NicGid> gids;
  std::vector<uint16_t> pkeys;
  /// Sees each write of BAR0 before the NIC does: (function, offset, value). May be empty.
  std::function<void(unsigned, uint32_t, uint64_t)> on_write;
  /// Text about the whole simulation, as a table or as JSON. May be empty.
  std::function<std::string(bool json)> statistics;
  /// The client of a function is gone. May be empty.
  std::function<void(unsigned)> on_leave;
};

/// One client. Used by one thread; holds the NIC's lock only while it calls the NIC.
class Connection {
 public:
  /// @param nic       outlives the connection
  /// @param taken     functions taken at this NIC, shared by its connections
  /// @param deadline  for an answer to a DMA message; then it is a bus error and the end
  Connection(UniqueFd socket, ServedNic& nic, unsigned& taken, std::chrono::milliseconds deadline);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// Gives the function back: its reset starts.
  ~Connection();

  int socket() const { return socket_.get(); }
  /// Of the client; 0 if the kernel does not say.
  pid_t process() const { return process_; }
  /// Carries out what has arrived, at most `most` messages; never waits for the client to send.
  /// @return false: the client is gone or broke the protocol
  bool serve(unsigned most = 64);
  /// Messages that were received but not carried out: serve() again without waiting for the socket.
  bool backlog() const { return !backlog_.empty(); }
  bool alive() const { return alive_; }
  /// The client's process has ended.
  void end();
  /// Number of the function, if one is taken.
  std::optional<unsigned> function() const { return function_; }

 private:
  using Message = vfio_user::Message;
  using Header = vfio_user::Header;

  // The next whole message of the socket, if there is one.
  bool receive(Message& message);
  void handle(Message& message);
  void dispatch(Message& message);
  void reply(const Message& to, std::span<const uint8_t> body, std::span<const uint8_t> more = {});
  void refuse(const Message& to, int error);
  void version(const Message& message);
  bool attach();
  void region_info(const Message& message);
  void region_read(const Message& message);
  void region_write(const Message& message);
  void set_irqs(Message& message);
  void dma_map(const Message& message);
  void dma_unmap(const Message& message);
  void nic_info(const Message& message);
  void resolve(const Message& message);
  void statistics(const Message& message);
  void reach_memory(const Message& message);
  void write_bar(uint32_t offset, uint64_t value);
  void raise(unsigned vector);
  bool move(bool write, uint64_t address, std::span<uint8_t> data);
  bool ask(bool write, uint64_t address, std::span<uint8_t> data);

  UniqueFd socket_;
  ServedNic& nic_;
  unsigned& taken_;
  const std::chrono::milliseconds deadline_;
  pid_t process_ = 0;
  bool alive_ = true;
  bool greeted_ = false;
  std::optional<unsigned> function_;
  ClientMemory memory_;
  std::array<UniqueFd, hwif::INTERRUPT_VECTORS> interrupts_;
  std::vector<uint8_t> partial_;  // of the message that is arriving
  std::vector<UniqueFd> partial_fds_;
  std::deque<Message> backlog_;   // arrived while an answer was awaited
  size_t backlog_bytes_ = 0;      // in it
  size_t backlog_fds_ = 0;        // messages in it with descriptors
  std::string statistics_;        // that it is reading
  uint16_t last_id_ = 0;
};

}  // namespace roci::sim
