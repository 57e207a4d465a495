// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Serves NICs on Unix sockets, one roci<i>.sock for each; every connection is a function. It runs in
// the thread that runs the simulation, between two quanta, and starts nothing by itself.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/connection.hpp"
#include "server/socket_files.hpp"

namespace roci::sim {

/// What a server needs to know.
struct ServerOptions {
  /// For the sockets; prepare_folder() made it.
  std::string folder;
  /// For the user; may be empty.
  Notice notice;
  /// How long a client may take to answer a DMA message; then: bus error and reset of the function.
  std::chrono::milliseconds dma_deadline{10000};
};

/// The sockets of all NICs and their clients, some ten descriptors each: when there are no more, new
/// ones wait in their socket's queue until others end. Used by one thread.
class Server {
 public:
  /// Makes all sockets or none.
  /// @throws Error as SocketFile does
  Server(std::vector<ServedNic> nics, ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Ends all connections and removes the sockets.
  ~Server();

  /// Serves what is there. @param timeout  how long to wait for something; negative: for ever
  /// @throws what the NICs throw
  void poll(std::chrono::milliseconds timeout);

  /// Has poll() return when `fd` is readable, and calls `ready` then. Not to be called from `ready`.
  void watch(int fd, std::function<void()> ready);
  /// Ends watch(); nothing happens if there was none. Not to be called from `ready`.
  void unwatch(int fd);

  /// Clients now, questions included.
  size_t clients() const { return clients_.size(); }

 private:
  struct Client {
    std::unique_ptr<Connection> connection;
    UniqueFd process;  // pidfd; none if the kernel has no such thing
  };
  struct Nic {
    ServedNic served;
    unsigned taken = 0;
  };

  // A listener whose clients cannot be served now: it is not looked at until then.
  struct Rest {
    std::chrono::steady_clock::time_point until{};
    bool rests = false;
    bool told = false;
  };

  // Has poll() look at a descriptor. @return 0, or errno: the kernel has no room for it
  int add(int fd);
  void rest(size_t nic, int error);
  std::chrono::milliseconds wake_listeners(std::chrono::milliseconds timeout);
  void accept_from(size_t index);
  void drop_dead();

  ServerOptions options_;
  UniqueFd epoll_;
  std::vector<std::unique_ptr<Nic>> nics_;
  std::vector<SocketFile> sockets_;
  std::vector<Rest> rests_;  // of each socket
  std::map<int, Client> clients_;   // by socket
  std::map<int, int> processes_;    // pidfd to socket
  std::map<int, std::function<void()>> watched_;
};

}  // namespace roci::sim
