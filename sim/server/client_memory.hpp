// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Memory of a program behind a socket, as the NIC reaches it by DMA: what the client mapped, and
// nothing else. Rings come as file descriptors and are mapped here, other memory is reached by
// process_vm_readv/writev, or by messages if the kernel does not allow that.
#pragma once

#include <roci/inproc.hpp>

#include <transport/socket.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include <sys/types.h>

namespace roci::sim {

/// The DMA maps of one client. Used by one thread at a time.
class ClientMemory final : public InprocMemory {
 public:
  /// Moves bytes by messages: (write, address, data). @return false: a bus error
  using Messenger = std::function<bool(bool, uint64_t, std::span<uint8_t>)>;

  explicit ClientMemory(Messenger messenger) : messenger_(std::move(messenger)) {}
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;
  ~ClientMemory() override { unmap_all(); }

  /// Tries to read `memory.nonce` at its address in process `pid`; from then on maps with an address
  /// in the client are reached by process_vm. @return whether the right bytes were there
  bool reach_process(pid_t pid, const vfio_user::Memory& memory);

  /// Adds a map. @param fd  none: memory of the process
  /// @return 0, or EINVAL: empty, wraps, not whole pages, or longer than its file; EEXIST: overlaps;
  ///         EPERM: the file may shrink (no F_SEAL_SHRINK); or what mmap says
  int map(const vfio_user::DmaMap& request, const UniqueFd& fd);
  /// Removes all maps inside [address, address + size).
  /// @return 0, or ENOENT: there is none; EINVAL: one lies only partly inside
  int unmap(uint64_t address, uint64_t size);
  void unmap_all();
  /// Ends all access for good: what comes now is a bus error.
  void revoke() { revoked_ = true; }

  bool read(uint64_t address, std::span<uint8_t> out) override;
  bool write(uint64_t address, std::span<const uint8_t> data) override;

 private:
  struct Map {
    uint64_t size = 0;
    bool readable = false;
    bool writable = false;
    uint8_t* shared = nullptr;  // mapped here
    uint64_t remote = 0;        // else the address in the client; 0: by messages
  };
  struct Piece {
    const Map* map;
    uint64_t offset;
    size_t bytes;
  };

  // The piece at `address`, at most `bytes` long; no map if it is not mapped for this access.
  Piece find(uint64_t address, size_t bytes, bool write) const;
  bool covers(uint64_t address, size_t bytes, bool write) const;

  Messenger messenger_;
  std::map<uint64_t, Map> maps_;
  pid_t process_ = 0;  // 0: only by messages
  bool revoked_ = false;
};

}  // namespace roci::sim
