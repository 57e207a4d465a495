// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "fake_server.hpp"

#include "../../../host/transport/socket.hpp"

#include <roci/error.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>

namespace roci::test {

using vfio_user::Command;
using vfio_user::Header;
using vfio_user::Message;

// One connection.
class FakeServer::Client : public InprocMemory {
 public:
  Client(FakeServer& server, FakeNic& nic, UniqueFd socket)
      : server_(server), nic_(nic), socket_(std::move(socket)) {
    ucred peer{};
    socklen_t size = sizeof peer;
    getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
    pid_ = peer.pid;
  }
  ~Client() override {
    if (function_) {
      nic_.detach(*function_);
      --server_.clients_count_;
    }
    for (const auto& [address, range] : ranges_) drop(range);
  }

  int fd() const { return socket_.get(); }
  size_t ranges() const { return ranges_.size(); }
  const FakeNic& nic() const { return nic_; }
  bool has_backlog() const { return !backlog_.empty(); }

  // Handles one message. @return false if the connection is over
  bool handle() {
    Message message;
    if (!backlog_.empty()) {
      message = std::move(backlog_.front());
      backlog_.pop_front();
    } else if (!vfio_user::receive_message(socket_.get(), message)) {
      return false;
    }
    const int error = execute(message);
    return error >= 0;
  }

  bool read(uint64_t address, std::span<uint8_t> out) override { return access(address, out, false); }
  bool write(uint64_t address, std::span<const uint8_t> data) override {
    // The interface of access() is for both directions; it does not write to `data` here.
    return access(address, {const_cast<uint8_t*>(data.data()), data.size()}, true);
  }

 private:
  struct Range {
    uint64_t size;
    bool writable;
    uint8_t* mapped;   // by file descriptor
    uint64_t address;  // in the client, if it can be reached there
  };

  static void drop(const Range& range) {
    if (range.mapped != nullptr) munmap(range.mapped, range.size);
  }

  bool reply(const Message& to, int error, std::span<const uint8_t> a = {},
             std::span<const uint8_t> b = {}) {
    if (to.header.flags & vfio_user::FLAG_NO_REPLY) return true;
    const Header header{to.header.id, to.header.command,
                        static_cast<uint32_t>(sizeof(Header) + a.size() + b.size()),
                        vfio_user::FLAG_REPLY | (error != 0 ? vfio_user::FLAG_ERROR : 0),
                        static_cast<uint32_t>(error)};
    const std::span<const uint8_t> parts[] = {a, b};
    return vfio_user::send_message(socket_.get(), header, parts, {});
  }

  template <class T>
  static bool parse(const Message& message, T& out) {
    if (message.body.size() < sizeof out) return false;
    std::memcpy(&out, message.body.data(), sizeof out);
    return true;
  }

  // @return negative if the connection is over
  int execute(Message& message) {
    const auto command = static_cast<Command>(message.header.command);
    if (!greeted_ && command != Command::VERSION) return -1;
    if (!function_ && command != Command::VERSION && command != Command::ROCI_NIC_INFO &&
        command != Command::ROCI_RESOLVE) {
      return reply(message, EPERM) ? 0 : -1;
    }
    const bool good = dispatch(command, message);
    return good ? 0 : -1;
  }

  bool dispatch(Command command, Message& message) {
    switch (command) {
      case Command::VERSION: return version(message);
      case Command::DMA_MAP: return dma_map(message);
      case Command::DMA_UNMAP: return dma_unmap(message);
      case Command::DEVICE_GET_REGION_INFO: {
        vfio_user::RegionInfo info{};
        if (!parse(message, info) || info.index != vfio_user::REGION_BAR0) {
          return reply(message, EINVAL);
        }
        info.flags = vfio_user::REGION_READABLE | vfio_user::REGION_WRITABLE;
        info.size = hwif::csr::BYTES;
        return reply(message, 0, vfio_user::bytes_of(info));
      }
      case Command::DEVICE_GET_IRQ_INFO: {
        vfio_user::IrqInfo info{};
        if (!parse(message, info)) return reply(message, EINVAL);
        info.count = info.index == vfio_user::IRQ_MSIX ? hwif::INTERRUPT_VECTORS : 0;
        return reply(message, 0, vfio_user::bytes_of(info));
      }
      case Command::DEVICE_SET_IRQS: {
        vfio_user::IrqSet set{};
        if (!parse(message, set) || set.index != vfio_user::IRQ_MSIX ||
            set.start + set.count > hwif::INTERRUPT_VECTORS || message.fds.size() != set.count) {
          return reply(message, EINVAL);
        }
        for (unsigned i = 0; i < set.count; ++i) {
          interrupts_[set.start + i] = std::move(message.fds[i]);
        }
        return reply(message, 0);
      }
      case Command::REGION_READ: {
        if (server_.ignore_reads_) {
          ++server_.ignored_reads_;
          return true;
        }
        vfio_user::RegionAccess access{};
        if (!parse(message, access) || access.region != vfio_user::REGION_BAR0 ||
            access.count != sizeof(uint64_t) || access.offset >= hwif::csr::BYTES) {
          return reply(message, EINVAL);
        }
        const uint64_t value = nic_.bar_read(*function_, static_cast<uint32_t>(access.offset));
        return reply(message, 0, vfio_user::bytes_of(access), vfio_user::bytes_of(value));
      }
      case Command::REGION_WRITE: {
        vfio_user::RegionAccess access{};
        uint64_t value = 0;
        if (!parse(message, access) || access.region != vfio_user::REGION_BAR0 ||
            access.count != sizeof value || access.offset >= hwif::csr::BYTES ||
            message.body.size() != sizeof access + sizeof value) {
          return reply(message, EINVAL);
        }
        std::memcpy(&value, message.body.data() + sizeof access, sizeof value);
        nic_.bar_write(*function_, static_cast<uint32_t>(access.offset), value);
        return reply(message, 0, vfio_user::bytes_of(access));
      }
      case Command::DEVICE_RESET: {
        hwif::csr::AdminControl control{};
        control.set<hwif::csr::AdminControl::reset_request>(true);
        nic_.bar_write(*function_, hwif::csr::AdminControl::ADDRESS, control.to_word());
        return reply(message, 0);
      }
      case Command::ROCI_NIC_INFO: return nic_info(message);
      case Command::ROCI_RESOLVE: {
        vfio_user::Resolve ask{};
        if (!parse(message, ask)) return reply(message, EINVAL);
        Gid gid;
        std::memcpy(gid.bytes, ask.gid, sizeof ask.gid);
        const auto neighbour = nic_.resolve(gid);
        if (!neighbour) return reply(message, ENOENT);
        vfio_user::ResolveReply answer{};
        std::memcpy(answer.mac, neighbour->mac.bytes, sizeof answer.mac);
        return reply(message, 0, vfio_user::bytes_of(answer));
      }
      case Command::ROCI_MEMORY: {
        vfio_user::Memory memory{};
        if (!parse(message, memory)) return reply(message, EINVAL);
        uint8_t nonce[sizeof memory.nonce] = {};
        const iovec ours{nonce, sizeof nonce};
        const iovec theirs{reinterpret_cast<void*>(memory.nonce_address), sizeof nonce};
        process_vm_ = !server_.options_.no_process_vm &&
                      process_vm_readv(pid_, &ours, 1, &theirs, 1, 0) == sizeof nonce &&
                      std::memcmp(nonce, memory.nonce, sizeof nonce) == 0;
        const vfio_user::MemoryReply answer{
            process_vm_ ? vfio_user::MEMORY_PROCESS_VM : vfio_user::MEMORY_MESSAGES, 0};
        return reply(message, 0, vfio_user::bytes_of(answer));
      }
      default: return reply(message, ENOTSUP);
    }
  }

  bool version(const Message& message) {
    vfio_user::Version theirs{};
    if (!parse(message, theirs)) return reply(message, EINVAL);
    const std::string json(reinterpret_cast<const char*>(message.body.data()) + sizeof theirs,
                           message.body.size() - sizeof theirs);
    greeted_ = true;
    if (json.find("\"role\":\"query\"") == std::string::npos) {
      function_ = nic_.attach(*this, [this](unsigned vector) {
        const uint64_t one = 1;
        if (interrupts_[vector]) {
          [[maybe_unused]] const ssize_t n = ::write(interrupts_[vector].get(), &one, sizeof one);
        }
      });
      if (!function_) return reply(message, EBUSY);
      ++server_.clients_count_;
    }
    const vfio_user::Version ours{vfio_user::VERSION_MAJOR, vfio_user::VERSION_MINOR};
    const std::string answer = format(
        "{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":%u,"
        "\"roci\":{\"roci_protocol\":%u}}}",
        vfio_user::MAX_DATA, server_.options_.protocol);
    return reply(message, 0, vfio_user::bytes_of(ours),
                 {reinterpret_cast<const uint8_t*>(answer.c_str()), answer.size() + 1});
  }

  bool dma_map(Message& message) {
    vfio_user::DmaMap map{};
    if (!parse(message, map) || map.size == 0 || map.address + map.size < map.address) {
      return reply(message, EINVAL);
    }
    if (++mapped_ == server_.options_.fail_map) return reply(message, ENOMEM);
    const auto next = ranges_.lower_bound(map.address);
    if ((next != ranges_.end() && next->first < map.address + map.size) ||
        (next != ranges_.begin() &&
         std::prev(next)->first + std::prev(next)->second.size > map.address)) {
      return reply(message, EEXIST);
    }
    Range range{map.size, (map.flags & vfio_user::DMA_MAP_WRITE) != 0, nullptr, map.offset};
    if (!message.fds.empty()) {
      void* memory = mmap(nullptr, map.size, PROT_READ | PROT_WRITE, MAP_SHARED,
                          message.fds[0].get(), static_cast<off_t>(map.offset));
      if (memory == MAP_FAILED) return reply(message, errno);
      range.mapped = static_cast<uint8_t*>(memory);
    }
    ranges_[map.address] = range;
    return reply(message, 0);
  }

  bool dma_unmap(const Message& message) {
    vfio_user::DmaUnmap unmap{};
    if (!parse(message, unmap)) return reply(message, EINVAL);
    const auto found = ranges_.find(unmap.address);
    if (found == ranges_.end() || found->second.size != unmap.size) {
      return reply(message, ENOENT);
    }
    drop(found->second);
    ranges_.erase(found);
    return reply(message, 0, vfio_user::bytes_of(unmap));
  }

  bool nic_info(const Message& message) {
    vfio_user::NicInfo info{};
    info.hwif_hash = nic_.config().hwif_hash;
    const MacAddress& mac = nic_.mac();
    const uint8_t guid[8] = {static_cast<uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe,
                             mac[3], mac[4], mac[5]};
    std::memcpy(info.node_guid, guid, sizeof guid);
    std::memcpy(info.mac, mac.bytes, sizeof info.mac);
    info.link_up = 1;
    info.active_mtu = 5;
    info.speed_mbps = 100000;
    info.functions_free = static_cast<uint16_t>(nic_.functions_free());
    info.gid_table_length = static_cast<uint16_t>(nic_.gids().size());
    std::vector<uint8_t> rest;
    for (size_t i = 0; i < nic_.gids().size(); ++i) {
      const auto& entry = nic_.gids()[i];
      if (entry.get<hwif::GidEntry::gid_type>() == hwif::GidType::NONE) continue;
      vfio_user::NicGid gid{};
      std::memcpy(gid.gid, entry.get<hwif::GidEntry::gid>().bytes, sizeof gid.gid);
      gid.index = static_cast<uint16_t>(i);
      gid.type = static_cast<uint8_t>(entry.get<hwif::GidEntry::gid_type>());
      const auto bytes = vfio_user::bytes_of(gid);
      rest.insert(rest.end(), bytes.begin(), bytes.end());
      ++info.gid_count;
    }
    for (const uint16_t& pkey : nic_.pkeys()) {
      const auto bytes = vfio_user::bytes_of(pkey);
      rest.insert(rest.end(), bytes.begin(), bytes.end());
      ++info.pkey_count;
    }
    return reply(message, 0, vfio_user::bytes_of(info), rest);
  }

  // DMA. ----------------------------------------------------------------------------------------
  bool access(uint64_t address, std::span<uint8_t> data, bool write) {
    // All or nothing for writes: look first.
    for (uint64_t at = address, end = address + data.size(); at < end;) {
      const auto range = find(at, write);
      if (range == ranges_.end()) return false;
      at = range->first + range->second.size;
    }
    while (!data.empty()) {
      const auto range = find(address, write);
      const uint64_t offset = address - range->first;
      const size_t n = std::min<size_t>(data.size(), range->second.size - offset);
      if (!access_range(range->second, address, offset, data.first(n), write)) return false;
      data = data.subspan(n);
      address += n;
    }
    return true;
  }

  std::map<uint64_t, Range>::iterator find(uint64_t address, bool write) {
    const auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) return ranges_.end();
    const auto range = std::prev(after);
    if (address - range->first >= range->second.size || (write && !range->second.writable)) {
      return ranges_.end();
    }
    return range;
  }

  bool access_range(const Range& range, uint64_t address, uint64_t offset, std::span<uint8_t> data,
                    bool write) {
    if (range.mapped != nullptr) {
      uint8_t* at = range.mapped + offset;
      if (!write) {
        std::memcpy(data.data(), at, data.size());
      } else {
        std::memcpy(at, data.data(), data.size() - 1);
        __atomic_store_n(at + data.size() - 1, data.back(), __ATOMIC_RELEASE);
      }
      return true;
    }
    if (process_vm_ && range.address != 0) {
      const iovec ours{data.data(), data.size()};
      const iovec theirs{reinterpret_cast<void*>(range.address + offset), data.size()};
      const ssize_t n = write ? process_vm_writev(pid_, &ours, 1, &theirs, 1, 0)
                              : process_vm_readv(pid_, &ours, 1, &theirs, 1, 0);
      return n == static_cast<ssize_t>(data.size());
    }
    while (!data.empty()) {
      const size_t n = std::min<size_t>(data.size(), vfio_user::MAX_DATA);
      if (!message_access(address, data.first(n), write)) return false;
      data = data.subspan(n);
      address += n;
    }
    return true;
  }

  bool message_access(uint64_t address, std::span<uint8_t> data, bool write) {
    ++server_.dma_messages_;
    const vfio_user::DmaAccess access{address, data.size()};
    const auto command = static_cast<uint16_t>(write ? Command::DMA_WRITE : Command::DMA_READ);
    const uint16_t id = ++next_id_;
    const Header header{
        id, command,
        static_cast<uint32_t>(sizeof(Header) + sizeof access + (write ? data.size() : 0)), 0, 0};
    const std::span<const uint8_t> parts[] = {
        vfio_user::bytes_of(access), write ? std::span<const uint8_t>(data) : std::span<const uint8_t>()};
    if (!vfio_user::send_message(socket_.get(), header, parts, {})) return false;
    for (;;) {
      Message message;
      if (!vfio_user::receive_message(socket_.get(), message)) return false;
      if (!(message.header.flags & vfio_user::FLAG_REPLY)) {
        backlog_.push_back(std::move(message));
        continue;
      }
      if (message.header.id != id || (message.header.flags & vfio_user::FLAG_ERROR)) return false;
      if (!write) {
        if (message.body.size() != sizeof access + data.size()) return false;
        std::memcpy(data.data(), message.body.data() + sizeof access, data.size());
      }
      return true;
    }
  }

  FakeServer& server_;
  FakeNic& nic_;
  UniqueFd socket_;
  pid_t pid_ = 0;
  bool greeted_ = false;
  bool process_vm_ = false;
  std::optional<unsigned> function_;
  std::array<UniqueFd, hwif::INTERRUPT_VECTORS> interrupts_;
  std::map<uint64_t, Range> ranges_;
  std::deque<Message> backlog_;
  uint16_t next_id_ = 0;
  unsigned mapped_ = 0;
};

FakeServer::FakeServer(std::string directory, unsigned nics, FakeConfig config,
                       FakeServerOptions options)
    : directory_(std::move(directory)), options_(options), wake_(eventfd(0, EFD_CLOEXEC)) {
  for (unsigned i = 0; i < nics; ++i) {
    nics_.push_back(std::make_unique<FakeNic>(fabric_, i, config));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = format("%s/roci%u.sock", directory_.c_str(), i);
    if (path.size() >= sizeof address.sun_path) fail(ENAMETOOLONG, "%s", path.c_str());
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unlink(path.c_str());
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd, 64) != 0) {
      fail(errno, "%s: %s", path.c_str(), errno_text(errno).c_str());
    }
    listeners_.push_back(fd);
  }
  thread_ = std::thread([this] { run(); });
}

FakeServer::~FakeServer() {
  stop_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_, &one, sizeof one);
  thread_.join();
  clients_.clear();
  for (size_t i = 0; i < listeners_.size(); ++i) {
    close(listeners_[i]);
    unlink(format("%s/roci%zu.sock", directory_.c_str(), i).c_str());
  }
  close(wake_);
}

void FakeServer::cut_connections() {
  cut_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_, &one, sizeof one);
  while (cut_) std::this_thread::yield();
}

size_t FakeServer::maps(unsigned nic) {
  const std::lock_guard lock(fabric_.mutex());
  size_t n = 0;
  for (const auto& client : clients_) {
    if (&client->nic() == nics_[nic].get()) n += client->ranges();
  }
  return n;
}

void FakeServer::accept_one(unsigned nic) {
  const int fd = accept4(listeners_[nic], nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  clients_.push_back(std::make_unique<Client>(*this, *nics_[nic], UniqueFd(fd)));
}

void FakeServer::run() {
  bool busy = false;
  while (!stop_) {
    std::vector<pollfd> fds;
    fds.push_back({wake_, POLLIN, 0});
    for (const int fd : listeners_) fds.push_back({fd, POLLIN, 0});
    bool backlog = false;
    for (const auto& client : clients_) {
      fds.push_back({client->fd(), POLLIN, 0});
      backlog = backlog || client->has_backlog();
    }
    // Idle: sleeps, and so does its clock.
    poll(fds.data(), fds.size(), busy || backlog ? 0 : -1);
    const std::lock_guard lock(fabric_.mutex());
    if (fds[0].revents != 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t n = read(wake_, &count, sizeof count);
    }
    if (cut_) {
      clients_.clear();
      cut_ = false;
      continue;
    }
    const size_t first_client = 1 + listeners_.size();
    std::vector<std::unique_ptr<Client>> kept;
    for (size_t i = 0; i < clients_.size(); ++i) {
      const bool ready = fds[first_client + i].revents != 0 || clients_[i]->has_backlog();
      if (!ready || clients_[i]->handle()) kept.push_back(std::move(clients_[i]));
    }
    clients_ = std::move(kept);
    for (size_t i = 0; i < listeners_.size(); ++i) {
      if (fds[1 + i].revents != 0) accept_one(static_cast<unsigned>(i));
    }
    for (int i = 0; i < 8 && (busy = fabric_.step(100)); ++i) {
    }
  }
}

}  // namespace roci::test
