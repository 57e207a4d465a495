// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "socket.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace roci {

void UniqueFd::reset(int fd) noexcept {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

namespace vfio_user {
namespace {

// Receives exactly `size` bytes; descriptors that come along are added to `fds`.
bool receive_exact(int socket, void* to, size_t size, std::vector<UniqueFd>& fds) {
  auto* next = static_cast<uint8_t*>(to);
  while (size != 0) {
    iovec part{next, size};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * MAX_FDS)];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
        fds.emplace_back(fd);
      }
    }
    next += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

bool send_message(int socket, const Header& header, std::span<const std::span<const uint8_t>> parts,
                  std::span<const int> fds) noexcept {
  constexpr size_t MAX_PARTS = 4;
  iovec vector[MAX_PARTS];
  size_t count = 0;
  vector[count++] = {const_cast<Header*>(&header), sizeof header};
  for (const auto& part : parts) {
    if (part.empty() || count == MAX_PARTS) continue;
    vector[count++] = {const_cast<uint8_t*>(part.data()), part.size()};
  }
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * MAX_FDS)] = {};
  msghdr message{};
  message.msg_iov = vector;
  message.msg_iovlen = count;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(c), fds.data(), sizeof(int) * fds.size());
  }
  for (;;) {
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    // A signal may cut a message that is longer than one piece of the kernel's.
    size_t rest = static_cast<size_t>(sent);
    while (message.msg_iovlen != 0 && rest >= message.msg_iov->iov_len) {
      rest -= message.msg_iov->iov_len;
      ++message.msg_iov;
      --message.msg_iovlen;
    }
    if (message.msg_iovlen == 0) return true;
    message.msg_iov->iov_base = static_cast<uint8_t*>(message.msg_iov->iov_base) + rest;
    message.msg_iov->iov_len -= rest;
    message.msg_control = nullptr;
    message.msg_controllen = 0;
  }
}

bool receive_message(int socket, Message& message) {
  message.fds.clear();
  message.body.clear();
  if (!receive_exact(socket, &message.header, sizeof message.header, message.fds)) return false;
  const uint32_t size = message.header.size;
  if (size < sizeof message.header || size > MAX_MESSAGE) return false;
  message.body.resize(size - sizeof message.header);
  return message.body.empty() ||
         receive_exact(socket, message.body.data(), message.body.size(), message.fds);
}

UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return UniqueFd();
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  while (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    fd.reset();
    errno = error;
    break;
  }
  return fd;
}

uint64_t json_number(const std::string& json, const char* key, uint64_t otherwise) {
  const std::string quoted = std::string("\"") + key + "\"";
  size_t at = json.find(quoted);
  if (at == std::string::npos) return otherwise;
  at = json.find_first_not_of(" \t\r\n:", at + quoted.size());
  if (at == std::string::npos || json[at] < '0' || json[at] > '9') return otherwise;
  return strtoull(json.c_str() + at, nullptr, 10);
}

}  // namespace vfio_user
}  // namespace roci
