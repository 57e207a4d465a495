// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "server/client_memory.hpp"

#include "host_memory/dma_target.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

namespace roci::sim {
namespace {

constexpr uint64_t kPage = 4096;

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): of the client
}

}  // namespace

bool ClientMemory::reach_process(pid_t pid, const vfio_user::Memory& memory) {
  uint8_t found[sizeof memory.nonce] = {};
  const iovec ours{found, sizeof found};
  const iovec theirs{pointer(memory.nonce_address), sizeof found};
  const bool good = pid > 0 && process_vm_readv(pid, &ours, 1, &theirs, 1, 0) == sizeof found &&
                    std::memcmp(found, memory.nonce, sizeof found) == 0;
  process_ = good ? pid : 0;
  return good;
}

int ClientMemory::map(const vfio_user::DmaMap& request, const UniqueFd& fd) {
  const uint64_t end = request.address + request.size;
  if (request.size == 0 || end < request.address || (request.address | request.size) % kPage != 0) {
    return EINVAL;
  }
  const auto next = maps_.lower_bound(request.address);
  if (next != maps_.end() && next->first < end) return EEXIST;
  if (next != maps_.begin()) {
    const auto last = std::prev(next);
    if (last->first + last->second.size > request.address) return EEXIST;
  }
  Map map;
  map.size = request.size;
  map.readable = (request.flags & vfio_user::DMA_MAP_READ) != 0;
  map.writable = (request.flags & vfio_user::DMA_MAP_WRITE) != 0;
  if (fd) {
    // behind the end of the file an access would be a signal: it is long enough, and stays so
    const int seals = fcntl(fd.get(), F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return EPERM;
    struct stat file {};
    if (fstat(fd.get(), &file) != 0) return errno;
    const auto length = static_cast<uint64_t>(file.st_size);
    if (request.offset > length || request.size > length - request.offset) return EINVAL;
    const int protection = PROT_READ | (map.writable ? PROT_WRITE : 0);
    void* shared = mmap(nullptr, request.size, protection, MAP_SHARED, fd.get(),
                        static_cast<off_t>(request.offset));
    if (shared == MAP_FAILED) return errno;
    map.shared = static_cast<uint8_t*>(shared);
  } else if (process_ != 0) {
    map.remote = request.offset;
  }
  maps_[request.address] = map;
  return 0;
}

int ClientMemory::unmap(uint64_t address, uint64_t size) {
  const uint64_t end = address + size;
  if (size == 0 || end < address) return EINVAL;
  auto first = maps_.lower_bound(address);
  if (first != maps_.begin()) {
    const auto last = std::prev(first);
    if (last->first + last->second.size > address) return EINVAL;
  }
  auto behind = first;
  while (behind != maps_.end() && behind->first < end) {
    if (behind->first + behind->second.size > end) return EINVAL;
    ++behind;
  }
  if (first == behind) return ENOENT;
  for (; first != behind; first = maps_.erase(first)) {
    if (first->second.shared != nullptr) munmap(first->second.shared, first->second.size);
  }
  return 0;
}

void ClientMemory::unmap_all() {
  for (const auto& [address, map] : maps_) {
    if (map.shared != nullptr) munmap(map.shared, map.size);
  }
  maps_.clear();
}

ClientMemory::Piece ClientMemory::find(uint64_t address, size_t bytes, bool write) const {
  const auto after = maps_.upper_bound(address);
  if (after == maps_.begin()) return {nullptr, 0, 0};
  const auto& [start, map] = *std::prev(after);
  const uint64_t offset = address - start;
  if (offset >= map.size || !(write ? map.writable : map.readable)) return {nullptr, 0, 0};
  return {&map, offset, static_cast<size_t>(std::min<uint64_t>(bytes, map.size - offset))};
}

bool ClientMemory::covers(uint64_t address, size_t bytes, bool write) const {
  for (size_t done = 0; done < bytes;) {
    const Piece piece = find(address + done, bytes - done, write);
    if (piece.map == nullptr) return false;
    done += piece.bytes;
  }
  return !revoked_;
}

bool ClientMemory::read(uint64_t address, std::span<uint8_t> out) {
  if (!covers(address, out.size(), false)) return false;
  while (!out.empty()) {
    const Piece piece = find(address, out.size(), false);
    // a message may end the connection, and with it the rest of the access
    if (piece.map == nullptr || revoked_) return false;
    const auto part = out.first(piece.bytes);
    if (piece.map->shared != nullptr) {
      std::memcpy(part.data(), piece.map->shared + piece.offset, part.size());
    } else if (piece.map->remote != 0) {
      const iovec ours{part.data(), part.size()};
      const iovec theirs{pointer(piece.map->remote + piece.offset), part.size()};
      const ssize_t done = process_vm_readv(process_, &ours, 1, &theirs, 1, 0);
      if (done != static_cast<ssize_t>(part.size())) return false;
    } else if (!messenger_(false, address, part)) {
      return false;
    }
    out = out.subspan(part.size());
    address += part.size();
  }
  return true;
}

bool ClientMemory::write(uint64_t address, std::span<const uint8_t> data) {
  if (!covers(address, data.size(), true)) return false;
  while (!data.empty()) {
    const Piece piece = find(address, data.size(), true);
    if (piece.map == nullptr || revoked_) return false;
    const auto part = data.first(piece.bytes);
    if (piece.map->shared != nullptr) {
      store_last_byte_last(piece.map->shared + piece.offset, part);
    } else if (piece.map->remote != 0) {
      // in two elements, which the kernel copies one after the other: the last byte last
      auto* from = const_cast<uint8_t*>(part.data());
      const iovec ours[2] = {{from, part.size() - 1}, {from + part.size() - 1, 1}};
      const uint64_t to = piece.map->remote + piece.offset;
      const iovec theirs[2] = {{pointer(to), part.size() - 1}, {pointer(to + part.size() - 1), 1}};
      const ssize_t done = process_vm_writev(process_, ours, 2, theirs, 2, 0);
      if (done != static_cast<ssize_t>(part.size())) return false;
    } else {
      std::vector<uint8_t> copy(part.begin(), part.end());
      if (!messenger_(true, address, copy)) return false;
    }
    data = data.subspan(part.size());
    address += part.size();
  }
  return true;
}

}  // namespace roci::sim
