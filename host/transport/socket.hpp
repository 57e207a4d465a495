// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A Unix stream socket that carries vfio-user messages; used by both ends.
#pragma once

#include "vfio_user.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roci {

/// A file descriptor with an owner.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  /// The descriptor, -1 if there is none.
  int get() const noexcept { return fd_; }
  /// Whether there is one.
  explicit operator bool() const noexcept { return fd_ >= 0; }
  /// Gives it away.
  int release() noexcept { return std::exchange(fd_, -1); }
  /// Closes it and takes another one.
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

namespace vfio_user {

/// A received message.
struct Message {
  Header header;
  std::vector<uint8_t> body;
  std::vector<UniqueFd> fds;
};

/// Descriptors of one message, at most.
inline constexpr size_t MAX_FDS = 8;
/// Bytes of one message, at most.
inline constexpr size_t MAX_MESSAGE = sizeof(Header) + sizeof(RegionAccess) + MAX_DATA;

/// Sends one message as one piece where the kernel can (up to 32 KB): no lock is needed between
/// threads. @return false if the connection is gone
bool send_message(int socket, const Header& header, std::span<const std::span<const uint8_t>> parts,
                  std::span<const int> fds) noexcept;

/// Receives one message. @return false if the connection is gone or what comes is no message
bool receive_message(int socket, Message& message);

/// Connects to a Unix socket. @return no descriptor if nobody listens; errno says why
UniqueFd connect_to(const std::string& path);

/// The bytes of an object.
template <class T>
std::span<const uint8_t> bytes_of(const T& object) noexcept {
  return {reinterpret_cast<const uint8_t*>(&object), sizeof object};
}

/// The number after `"key":` in JSON text, or `otherwise` if there is none. Capabilities are all that
/// is ever asked, so this looks for the key anywhere.
uint64_t json_number(const std::string& json, const char* key, uint64_t otherwise);

}  // namespace vfio_user
}  // namespace roci
