// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "nicsim/foreign.hpp"

#include <roci/error.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>

namespace roci::sim {
namespace {

// What the wire has before it: several frames of a quantum, so that it never runs dry.
constexpr uint64_t kBacklogBytes = 16 * 1024;

// Datagrams looked at before the simulation goes on; bad ones cost no time of the wire.
constexpr unsigned kMostAtOnce = 256;

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

std::string name_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename();
  if (name.empty()) fail(EINVAL, "--foreign %s: a folder, not a socket", path.c_str());
  return name;
}

// A peer for people: the path of its socket, or the abstract name as ss(8) writes it.
std::string text_of(const sockaddr_un& address, socklen_t length) {
  const size_t size = length - offsetof(sockaddr_un, sun_path);
  std::string text(address.sun_path, size);
  if (text.front() != 0) return text.substr(0, text.find(char{0}));
  std::replace(text.begin(), text.end(), '\0', '@');
  return text;
}

// Whether somebody still has the socket.
bool lives(const sockaddr_un& address, socklen_t length) {
  const UniqueFd probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe) return true;
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) return true;
  return errno != ECONNREFUSED && errno != ENOENT;
}

}  // namespace

ForeignPort::ForeignPort(const std::string& path, Notice notice)
    : socket_(folder_of(path), name_of(path), notice, SocketKind::datagram),
      notice_(std::move(notice)) {}

void ForeignPort::attach(Port& port) {
  port_ = &port;
  port.on_frame([this](const ReceivedFrame& frame) { deliver(frame); });
}

void ForeignPort::tell(const std::string& text) const {
  if (notice_) notice_("foreign " + path() + ": " + text);
}

void ForeignPort::lose_peer() {
  tell("the peer is gone");
  counters_.no_peer += queue_.size();
  queue_.clear();
  peer_.reset();
  blocked_.reset();
  stuck_ = false;
}

// Whether a datagram from there counts; its sender becomes the peer if there is none.
bool ForeignPort::meet(const sockaddr_un& address, socklen_t length) {
  if (length <= offsetof(sockaddr_un, sun_path)) {
    if (!told_unnamed_) tell("frames come from a socket without a name, which cannot be answered");
    told_unnamed_ = true;
    return true;
  }
  if (peer_ && peer_->length == length && std::memcmp(&peer_->address, &address, length) == 0) {
    return true;
  }
  if (peer_ && lives(peer_->address, peer_->length)) {
    if (!told_stranger_) {
      tell("datagrams of " + text_of(address, length) + " are dropped: the peer is " +
           text_of(peer_->address, peer_->length));
    }
    told_stranger_ = true;
    ++counters_.stranger;
    return false;
  }
  if (peer_) lose_peer();
  peer_ = {address, length};
  tell("the peer is " + text_of(address, length));
  return true;
}

void ForeignPort::receive(Clock::time_point now) {
  if (port_ == nullptr) return;
  std::array<uint8_t, kMaxFrame> frame;
  for (unsigned n = 0; n < kMostAtOnce && port_->backlog_bytes() < kBacklogBytes; ++n) {
    sockaddr_un from{};
    socklen_t length = sizeof from;
    const ssize_t size = recvfrom(fd(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_TRUNC,
                                  reinterpret_cast<sockaddr*>(&from), &length);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return;
    if (!meet(from, length)) continue;
    last_ = now;
    const auto bytes = static_cast<size_t>(size);
    if (bytes == 0) continue;
    if (bytes < kMinFrame) {
      ++counters_.runt;
    } else if (bytes > kMaxFrame) {
      ++counters_.oversize;
    } else {
      port_->send(std::span(frame).first(bytes));
      ++counters_.received;
    }
  }
}

void ForeignPort::deliver(const ReceivedFrame& frame) {
  if (frame.bad) {
    ++counters_.bad_fcs;
  } else if (!peer_) {
    ++counters_.no_peer;
  } else if (queue_.size() >= kMostWaiting) {
    ++counters_.full;
  } else {
    queue_.emplace_back(frame.bytes.begin(), frame.bytes.end());
  }
}

void ForeignPort::send(Clock::time_point now) {
  while (!queue_.empty()) {
    const auto& frame = queue_.front();
    const ssize_t size =
        sendto(fd(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&peer_->address), peer_->length);
    if (size >= 0) {
      ++counters_.sent;
      queue_.pop_front();
      last_ = now;
      blocked_.reset();
      stuck_ = false;
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM) return lose_peer();
    if (!blocked_) blocked_ = now;
    if (!stuck_ && now - *blocked_ < kPatience) return;
    if (!stuck_) tell("the peer takes no frames: they are dropped");
    stuck_ = true;
    counters_.full += queue_.size();
    queue_.clear();
  }
}

bool ForeignPort::silent(Clock::time_point now, Clock::duration quiet) const {
  return !peer_ || (queue_.empty() && now - last_ >= quiet);
}

std::string ForeignPort::describe() const {
  std::string out = "foreign " + path() + ": " + std::to_string(counters_.received) +
                    " frames from it, " + std::to_string(counters_.sent) + " to it";
  const std::pair<uint64_t, const char*> drops[] = {
      {counters_.no_peer, "without a peer"},  {counters_.full, "not taken by the peer"},
      {counters_.bad_fcs, "damaged"},         {counters_.runt, "too short"},
      {counters_.oversize, "too long"},       {counters_.stranger, "from another socket"}};
  std::string list;
  for (const auto& [count, cause] : drops) {
    if (count != 0) list += (list.empty() ? "" : ", ") + std::to_string(count) + " " + cause;
  }
  return list.empty() ? out : out + "; dropped: " + list;
}

ForeignPorts::ForeignPorts(const std::vector<std::string>& paths, Clock::duration quiet,
                           const Notice& notice)
    : quiet_(quiet) {
  for (const std::string& path : paths) ports_.push_back(std::make_unique<ForeignPort>(path, notice));
}

void ForeignPorts::attach(Fabric& fabric, size_t first) {
  for (size_t i = 0; i < ports_.size(); ++i) ports_[i]->attach(fabric.port(first + i));
}

void ForeignPorts::send() {
  if (ports_.empty()) return;
  const auto now = Clock::now();
  for (const auto& port : ports_) port->send(now);
}

bool ForeignPorts::waiting() const {
  return std::any_of(ports_.begin(), ports_.end(), [](const auto& port) { return port->waiting(); });
}

bool ForeignPorts::crowded() const {
  return std::any_of(ports_.begin(), ports_.end(), [](const auto& port) { return port->crowded(); });
}

bool ForeignPorts::silent() const {
  if (ports_.empty()) return true;
  const auto now = Clock::now();
  return std::all_of(ports_.begin(), ports_.end(),
                     [&](const auto& port) { return port->silent(now, quiet_); });
}

}  // namespace roci::sim
