// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "server/server.hpp"

#include <roci/error.hpp>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace roci::sim {
namespace {

// Between two attempts to take a client when descriptors or memory are used up.
constexpr std::chrono::milliseconds kRest{500};

}  // namespace

Server::Server(std::vector<ServedNic> nics, ServerOptions options)
    : options_(std::move(options)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) fail(errno, "epoll: %s", errno_text(errno).c_str());
  rests_.resize(nics.size());
  for (size_t i = 0; i < nics.size(); ++i) {
    nics_.push_back(std::make_unique<Nic>(Nic{std::move(nics[i]), 0}));
    sockets_.emplace_back(options_.folder, socket_name(static_cast<unsigned>(i)), options_.notice);
    if (const int error = add(sockets_.back().fd())) {
      fail(error, "epoll: %s", errno_text(error).c_str());
    }
  }
}

Server::~Server() = default;

int Server::add(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

void Server::watch(int fd, std::function<void()> ready) {
  if (const int error = add(fd)) fail(error, "epoll: %s", errno_text(error).c_str());
  watched_[fd] = std::move(ready);
}

void Server::unwatch(int fd) {
  if (watched_.erase(fd) != 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

// The client stays in the socket's queue, which would wake us for ever: try again in a while.
void Server::rest(size_t nic, int error) {
  Rest& r = rests_[nic];
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, sockets_[nic].fd(), nullptr);
  r.rests = true;
  r.until = std::chrono::steady_clock::now() + kRest;
  if (!r.told && options_.notice) {
    options_.notice("programs have to wait until others end: accept: " + errno_text(error));
  }
  r.told = true;
}

// Looks at listeners again whose rest is over. @return how long to wait at most
std::chrono::milliseconds Server::wake_listeners(std::chrono::milliseconds timeout) {
  const auto now = std::chrono::steady_clock::now();
  for (size_t nic = 0; nic < rests_.size(); ++nic) {
    Rest& r = rests_[nic];
    if (!r.rests) continue;
    if (now >= r.until && add(sockets_[nic].fd()) == 0) {
      r.rests = false;
    } else if (timeout.count() < 0 || timeout > kRest) {
      timeout = kRest;
    }
  }
  return timeout;
}

void Server::accept_from(size_t index) {
  Nic& nic = *nics_[index];
  UniqueFd socket(accept4(sockets_[index].fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {
    const bool usual = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    if (!usual) rest(index, errno);
    return;
  }
  rests_[index].told = false;
  const int fd = socket.get();
  Client client{std::make_unique<Connection>(std::move(socket), nic.served, nic.taken,
                                             options_.dma_deadline),
                UniqueFd()};
  const pid_t pid = client.connection->process();
  // a child of the client may hold the socket open after the client's death
  if (pid > 0) client.process.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  int error = add(fd);
  if (error == 0 && client.process) error = add(client.process.get());
  if (error != 0) {
    if (options_.notice) {
      options_.notice("a program is turned away from " +
                      socket_name(static_cast<unsigned>(index)) + ": epoll: " + errno_text(error));
    }
    return;
  }
  if (client.process) processes_[client.process.get()] = fd;
  clients_.emplace(fd, std::move(client));
  // The analyzer loses the connection in the map's node.
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)

void Server::drop_dead() {
  for (auto it = clients_.begin(); it != clients_.end();) {
    if (it->second.connection->alive()) {
      ++it;
      continue;
    }
    processes_.erase(it->second.process.get());
    it = clients_.erase(it);  // closing takes both descriptors out of epoll
  }
}

void Server::poll(std::chrono::milliseconds timeout) {
  const auto waits = [](const auto& entry) { return entry.second.connection->backlog(); };
  const bool backlog = std::any_of(clients_.begin(), clients_.end(), waits);
  timeout = wake_listeners(timeout);
  std::array<epoll_event, 32> events{};
  const int n = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                           backlog ? 0 : static_cast<int>(std::max<int64_t>(timeout.count(), -1)));
  if (n < 0 && errno != EINTR) fail(errno, "epoll: %s", errno_text(errno).c_str());
  if (backlog) {
    for (auto& [fd, client] : clients_) {
      if (client.connection->backlog()) client.connection->serve();
    }
  }
  for (int i = 0; i < n; ++i) {
    const int fd = events[static_cast<size_t>(i)].data.fd;
    if (const auto watched = watched_.find(fd); watched != watched_.end()) {
      watched->second();
    } else if (const auto client = clients_.find(fd); client != clients_.end()) {
      client->second.connection->serve();
    } else if (const auto process = processes_.find(fd); process != processes_.end()) {
      // what it sent before its end still counts: doorbells of its last requests
      auto& connection = *clients_.at(process->second).connection;
      connection.serve();
      connection.end();
    } else {
      for (size_t nic = 0; nic < nics_.size(); ++nic) {
        if (sockets_[nic].fd() == fd) accept_from(nic);
      }
    }
  }
  // also those that a DMA access found dead while the simulation ran
  drop_dead();
}

}  // namespace roci::sim
