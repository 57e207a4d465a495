// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The folder of the sockets and the sockets in it: who owns them, who lives, who is stale.
#pragma once

#include <transport/socket.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include <sys/types.h>

namespace roci::sim {

/// Takes one line for the user.
using Notice = std::function<void(const std::string&)>;

/// Makes the folder (0700, its last part only) or checks that it is ours.
/// @throws Error  EPERM: it belongs to somebody else, others may write there, or it is no folder or a
///                link to one; or what mkdir says
void prepare_folder(const std::string& folder);

/// Where `nicsim serve` puts its sockets if nobody says: $XDG_RUNTIME_DIR/roci, else roci-<uid> among
/// the temporary files ($TMPDIR, /tmp).
std::string default_folder();

/// Name of NIC i's socket in the folder.
std::string socket_name(unsigned index);

/// Tells early what SocketFile would tell for NIC `index`: somebody serves there, or no socket lies
/// in its place. @throws Error  as SocketFile
void refuse_live_socket(const std::string& folder, unsigned index);

/// What a socket in the file system carries.
enum class SocketKind : uint8_t {
  stream,    ///< connections; it listens
  datagram,  ///< frames (foreign.hpp)
};

/// A Unix socket in the file system, bound, that is removed from its folder in the end.
class SocketFile {
 public:
  /// Replaces a socket that nobody has any more, with a notice.
  /// @throws Error  EADDRINUSE: somebody has it; EEXIST: it is no socket; or what the kernel says
  SocketFile(const std::string& folder, const std::string& name, const Notice& notice,
             SocketKind kind = SocketKind::stream);
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;
  SocketFile(SocketFile&&) = default;
  SocketFile& operator=(SocketFile&&) = delete;
  /// Removes the file, unless somebody put another one in its place.
  ~SocketFile();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd fd_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace roci::sim
