// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "server/socket_files.hpp"

#include <roci/error.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace roci::sim {
namespace {

constexpr int kBacklog = 64;

// The address of a socket in the file system. @throws Error  ENAMETOOLONG
sockaddr_un address_of(const std::string& path, SocketKind kind) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    fail(ENAMETOOLONG, "%s is longer than the %zu bytes of a socket's name: use a shorter %s",
         path.c_str(), sizeof address.sun_path - 1,
         kind == SocketKind::stream ? "--dir" : "path for --foreign");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

// What a user can do who wants a socket elsewhere.
const char* elsewhere(SocketKind kind) {
  return kind == SocketKind::stream ? "another --dir" : "another path for --foreign";
}

// Connects to what lies at `path`. @return no descriptor if nobody is there; errno says why
UniqueFd probe(const std::string& path, SocketKind kind) {
  if (kind == SocketKind::stream) return vfio_user::connect_to(path);
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(path, kind);
  if (fd && connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

// What lies in the place of a socket: nothing, something stale (true), or an error.
bool stale_in(const std::string& path, SocketKind kind) {
  struct stat file {};
  if (lstat(path.c_str(), &file) != 0) {
    if (errno == ENOENT) return false;
    fail(errno, "%s: %s", path.c_str(), errno_text(errno).c_str());
  }
  if (!S_ISSOCK(file.st_mode)) {
    fail(EEXIST, "%s is in the way and is no socket: remove it or use %s", path.c_str(),
         elsewhere(kind));
  }
  // EPROTOTYPE: a socket of another kind, and somebody has it
  if (probe(path, kind) || errno == EPROTOTYPE) {
    fail(EADDRINUSE, "%s is served by %s: stop that one or use %s", path.c_str(),
         kind == SocketKind::stream ? "another nicsim" : "another program", elsewhere(kind));
  }
  if (errno != ECONNREFUSED) {
    fail(errno, "%s: %s", path.c_str(), errno_text(errno).c_str());
  }
  return true;
}

void clear_place(const std::string& path, SocketKind kind, const Notice& notice) {
  if (!stale_in(path, kind)) return;
  if (unlink(path.c_str()) != 0) {
    fail(errno, "stale socket %s cannot be removed: %s", path.c_str(), errno_text(errno).c_str());
  }
  if (notice) notice("replaced the stale socket " + path);
}

}  // namespace

std::string default_folder() {
  if (const std::string runtime = variable("XDG_RUNTIME_DIR"); !runtime.empty()) {
    return runtime + "/roci";
  }
  std::string folder = variable("TMPDIR");
  if (folder.empty()) folder = "/tmp";
  return folder + "/roci-" + std::to_string(geteuid());
}

void prepare_folder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) == 0) return;
  if (errno != EEXIST) {
    fail(errno, "folder %s cannot be made: %s", folder.c_str(), errno_text(errno).c_str());
  }
  struct stat found {};
  if (lstat(folder.c_str(), &found) != 0) {
    fail(errno, "folder %s: %s", folder.c_str(), errno_text(errno).c_str());
  }
  // where a link leads to may change
  if (S_ISLNK(found.st_mode)) {
    fail(EPERM, "%s is a link: give the folder itself with --dir", folder.c_str());
  }
  if (!S_ISDIR(found.st_mode)) fail(EPERM, "%s is no folder: use another --dir", folder.c_str());
  if (found.st_uid != geteuid()) {
    fail(EPERM, "folder %s belongs to user %u, not to you (%u): use another --dir", folder.c_str(),
         found.st_uid, geteuid());
  }
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    fail(EPERM, "others may write in folder %s (mode %03o): chmod go-w, or use another --dir",
         folder.c_str(), found.st_mode & 0777u);
  }
}

std::string socket_name(unsigned index) { return "roci" + std::to_string(index) + ".sock"; }

void refuse_live_socket(const std::string& folder, unsigned index) {
  stale_in(folder + "/" + socket_name(index), SocketKind::stream);
}

SocketFile::SocketFile(const std::string& folder, const std::string& name, const Notice& notice,
                       SocketKind kind)
    : path_(folder + "/" + name) {
  const sockaddr_un address = address_of(path_, kind);
  // two servers that find the same stale socket must not remove each other's new one
  const UniqueFd place(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!place || flock(place.get(), LOCK_EX) != 0) {
    fail(errno, "folder %s cannot be used: %s", folder.c_str(), errno_text(errno).c_str());
  }
  clear_place(path_, kind, notice);
  const int type = kind == SocketKind::stream ? SOCK_STREAM : SOCK_DGRAM;
  fd_.reset(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_) fail(errno, "socket: %s", errno_text(errno).c_str());
  const mode_t before = umask(0177);
  const int bound = bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  umask(before);
  struct stat file {};
  if (bound != 0 || stat(path_.c_str(), &file) != 0) {
    const int cause = bound != 0 ? error : errno;
    fail(cause, "%s cannot be made: %s", path_.c_str(), errno_text(cause).c_str());
  }
  if (kind == SocketKind::stream && listen(fd_.get(), kBacklog) != 0) {
    const int cause = errno;
    unlink(path_.c_str());
    fail(cause, "%s: listen: %s", path_.c_str(), errno_text(cause).c_str());
  }
  device_ = file.st_dev;
  inode_ = file.st_ino;
}

SocketFile::~SocketFile() {
  if (!fd_) return;  // moved from
  struct stat file {};
  if (stat(path_.c_str(), &file) == 0 && file.st_dev == device_ && file.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

}  // namespace roci::sim
