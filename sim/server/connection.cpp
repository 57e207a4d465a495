// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "server/connection.hpp"

#include <roci/error.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

namespace roci::sim {
namespace {

using vfio_user::Command;

// A client that does not read its replies for so long holds up everybody: it is dropped.
constexpr timeval kSendPatience{5, 0};

// What may wait while an answer is awaited, in bytes of this process and in messages with descriptors:
// far more than the doorbells and maps of a program in that time.
constexpr size_t kMostBacklog = 64 << 20;
constexpr size_t kMostFds = 256;

// Numbers of VFIO's PCI device: regions BAR0 … configuration space, kinds of interrupts.
constexpr uint32_t kRegions = 9;
constexpr uint32_t kIrqs = 5;

// A function that its last client just left is still being reset: how long that may take.
constexpr unsigned kAttachSteps = 200;
constexpr uint64_t kAttachCycles = 1024;

// Whether a write is over at once and raises no signal: a pipe's or socket's reader could stop all
// NICs, or end the simulator.
bool never_blocks(const UniqueFd& fd) {
  std::error_code error;
  const auto name = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd.get()), error);
  const int flags = fcntl(fd.get(), F_GETFL);
  return !error && name == "anon_inode:[eventfd]" && flags >= 0 && (flags & O_NONBLOCK) != 0;
}

template <class T>
bool load(const vfio_user::Message& message, T& out) {
  if (message.body.size() < sizeof out) return false;
  std::memcpy(&out, message.body.data(), sizeof out);
  return true;
}

}  // namespace

Connection::Connection(UniqueFd socket, ServedNic& nic, unsigned& taken,
                       std::chrono::milliseconds deadline)
    : socket_(std::move(socket)),
      nic_(nic),
      taken_(taken),
      deadline_(deadline),
      memory_([this](bool write, uint64_t address, std::span<uint8_t> data) {
        return move(write, address, data);
      }) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) process_ = peer.pid;
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &kSendPatience, sizeof kSendPatience);
}

Connection::~Connection() {
  if (!function_) return;
  const std::lock_guard lock(nic_.nic->mutex());
  nic_.nic->detach(*function_);
  --taken_;
  if (nic_.on_leave) nic_.on_leave(*function_);
}

void Connection::end() {
  alive_ = false;
  memory_.revoke();
}

// ---- messages -----------------------------------------------------------------------------------

bool Connection::receive(Message& message) {
  while (alive_) {
    size_t want = sizeof(Header);
    if (partial_.size() >= sizeof(Header)) {
      Header header{};
      std::memcpy(&header, partial_.data(), sizeof header);
      if (header.size < sizeof header || header.size > vfio_user::MAX_MESSAGE ||
          partial_fds_.size() > vfio_user::MAX_FDS) {
        end();
        return false;
      }
      want = header.size;
      if (partial_.size() == want) {
        message.header = header;
        message.body.assign(partial_.begin() + sizeof header, partial_.end());
        message.fds = std::exchange(partial_fds_, {});
        partial_.clear();
        return true;
      }
    }
    const size_t have = partial_.size();
    partial_.resize(want);
    iovec part{partial_.data() + have, want - have};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * vfio_user::MAX_FDS)];
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    partial_.resize(have + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (n <= 0) {
      end();
      return false;
    }
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
        partial_fds_.emplace_back(fd);
      }
    }
  }
  return false;
}

bool Connection::serve(unsigned most) {
  for (; most != 0 && alive_; --most) {
    Message message;
    if (!backlog_.empty()) {
      message = std::move(backlog_.front());
      backlog_.pop_front();
      backlog_bytes_ -= sizeof message + message.body.size();
      if (!message.fds.empty()) --backlog_fds_;
    } else if (!receive(message)) {
      break;
    }
    handle(message);
  }
  return alive_;
}

void Connection::reply(const Message& to, std::span<const uint8_t> body,
                       std::span<const uint8_t> more) {
  if ((to.header.flags & vfio_user::FLAG_NO_REPLY) != 0) return;
  const Header header{to.header.id, to.header.command,
                      static_cast<uint32_t>(sizeof(Header) + body.size() + more.size()),
                      vfio_user::FLAG_REPLY, 0};
  const std::span<const uint8_t> parts[] = {body, more};
  if (!vfio_user::send_message(socket_.get(), header, parts, {})) end();
}

void Connection::refuse(const Message& to, int error) {
  if ((to.header.flags & vfio_user::FLAG_NO_REPLY) != 0) return;
  const Header header{to.header.id, to.header.command, sizeof(Header),
                      vfio_user::FLAG_REPLY | vfio_user::FLAG_ERROR, static_cast<uint32_t>(error)};
  if (!vfio_user::send_message(socket_.get(), header, {}, {})) end();
}

void Connection::handle(Message& message) {
  // the late answer to a DMA message whose deadline is over: the connection ended with that
  if ((message.header.flags & vfio_user::FLAG_REPLY) != 0) {
    end();
    return;
  }
  const auto command = static_cast<Command>(message.header.command);
  if (!greeted_) {
    if (command == Command::VERSION) {
      version(message);
    } else {
      end();
    }
    return;
  }
  const bool question = command == Command::ROCI_NIC_INFO || command == Command::ROCI_RESOLVE ||
                        command == Command::ROCI_STATISTICS;
  if (!function_ && !question) {
    refuse(message, EPERM);
    return;
  }
  dispatch(message);
}

void Connection::dispatch(Message& message) {
  switch (static_cast<Command>(message.header.command)) {
    case Command::DMA_MAP: return dma_map(message);
    case Command::DMA_UNMAP: return dma_unmap(message);
    case Command::DEVICE_GET_INFO: {
      const vfio_user::DeviceInfo info{sizeof(vfio_user::DeviceInfo),
                                       vfio_user::DEVICE_RESETTABLE | vfio_user::DEVICE_PCI,
                                       kRegions, kIrqs};
      return reply(message, vfio_user::bytes_of(info));
    }
    case Command::DEVICE_GET_REGION_INFO: return region_info(message);
    case Command::DEVICE_GET_IRQ_INFO: {
      vfio_user::IrqInfo info{};
      if (!load(message, info) || info.index >= kIrqs) return refuse(message, EINVAL);
      const bool msix = info.index == vfio_user::IRQ_MSIX;
      info = {sizeof info, msix ? 1u : 0u /* eventfd */, info.index,
              msix ? hwif::INTERRUPT_VECTORS : 0};
      return reply(message, vfio_user::bytes_of(info));
    }
    case Command::DEVICE_SET_IRQS: return set_irqs(message);
    case Command::REGION_READ: return region_read(message);
    case Command::REGION_WRITE: return region_write(message);
    case Command::DEVICE_RESET: {
      hwif::csr::AdminControl control{};
      control.set<hwif::csr::AdminControl::reset_request>(true);
      write_bar(hwif::csr::AdminControl::ADDRESS, control.to_word());
      return reply(message, {});
    }
    case Command::ROCI_NIC_INFO: return nic_info(message);
    case Command::ROCI_RESOLVE: return resolve(message);
    case Command::ROCI_STATISTICS: return statistics(message);
    case Command::ROCI_MEMORY: return reach_memory(message);
    default: return refuse(message, ENOTSUP);
  }
}

// ---- who we are ---------------------------------------------------------------------------------

bool Connection::attach() {
  const std::lock_guard lock(nic_.nic->mutex());
  for (unsigned step = 0; step < kAttachSteps; ++step) {
    function_ = nic_.nic->attach(memory_, [this](unsigned vector) { raise(vector); });
    if (function_) {
      ++taken_;
      return true;
    }
    if (taken_ >= nic_.functions) return false;
    nic_.nic->step(kAttachCycles);
  }
  return false;
}

void Connection::version(const Message& message) {
  vfio_user::Version theirs{};
  if (!load(message, theirs)) return end();
  const std::string json(message.body.begin() + sizeof theirs, message.body.end());
  const bool same = theirs.major == vfio_user::VERSION_MAJOR &&
                    vfio_user::json_number(json, "roci_protocol", vfio_user::ROCI_PROTOCOL) ==
                        vfio_user::ROCI_PROTOCOL;
  const bool query = json.find("\"role\":\"query\"") != std::string::npos;
  // whoever speaks another version sees ours and goes; it gets no function
  if (same && !query && !attach()) {
    refuse(message, EBUSY);
    return end();
  }
  greeted_ = true;
  const vfio_user::Version ours{vfio_user::VERSION_MAJOR, vfio_user::VERSION_MINOR};
  const std::string text =
      format("{\"capabilities\":{\"max_msg_fds\":%zu,\"max_data_xfer_size\":%u,\"pgsizes\":4096,"
             "\"roci\":{\"roci_protocol\":%u}}}",
             vfio_user::MAX_FDS, vfio_user::MAX_DATA, vfio_user::ROCI_PROTOCOL);
  reply(message, vfio_user::bytes_of(ours),
        {reinterpret_cast<const uint8_t*>(text.c_str()), text.size() + 1});
}

void Connection::nic_info(const Message& message) {
  vfio_user::NicInfo info = nic_.info;
  info.functions_free = static_cast<uint16_t>(nic_.functions - std::min(taken_, nic_.functions));
  info.gid_count = static_cast<uint16_t>(nic_.gids.size());
  info.pkey_count = static_cast<uint16_t>(nic_.pkeys.size());
  std::vector<uint8_t> tables(nic_.gids.size() * sizeof(vfio_user::NicGid) +
                              nic_.pkeys.size() * sizeof(uint16_t));
  uint8_t* next = tables.data();
  for (const auto& gid : nic_.gids) {
    std::memcpy(next, &gid, sizeof gid);
    next += sizeof gid;
  }
  for (const uint16_t pkey : nic_.pkeys) {
    std::memcpy(next, &pkey, sizeof pkey);
    next += sizeof pkey;
  }
  reply(message, vfio_user::bytes_of(info), tables);
}

void Connection::resolve(const Message& message) {
  vfio_user::Resolve ask{};
  if (!load(message, ask)) return refuse(message, EINVAL);
  Gid gid{};
  std::memcpy(gid.bytes, ask.gid, sizeof ask.gid);
  std::optional<Neighbour> neighbour;
  {
    const std::lock_guard lock(nic_.nic->mutex());
    neighbour = nic_.nic->resolve(gid);
  }
  if (!neighbour) return refuse(message, ENOENT);
  vfio_user::ResolveReply answer{};
  std::memcpy(answer.mac, neighbour->mac.bytes, sizeof answer.mac);
  reply(message, vfio_user::bytes_of(answer));
}

void Connection::statistics(const Message& message) {
  vfio_user::Statistics ask{};
  if (!load(message, ask) || ask.format > vfio_user::STATISTICS_JSON) return refuse(message, EINVAL);
  if (!nic_.statistics) return refuse(message, ENOTSUP);
  if (ask.offset == 0) statistics_ = nic_.statistics(ask.format == vfio_user::STATISTICS_JSON);
  if (ask.offset > statistics_.size()) return refuse(message, EINVAL);
  const vfio_user::StatisticsReply answer{static_cast<uint32_t>(statistics_.size()), 0};
  const std::span text(reinterpret_cast<const uint8_t*>(statistics_.data()), statistics_.size());
  const auto rest = text.subspan(ask.offset);
  reply(message, vfio_user::bytes_of(answer),
        rest.first(std::min<size_t>(rest.size(), vfio_user::MAX_DATA)));
}

// ---- registers ----------------------------------------------------------------------------------

void Connection::region_info(const Message& message) {
  vfio_user::RegionInfo info{};
  if (!load(message, info) || info.index >= kRegions) return refuse(message, EINVAL);
  const bool bar0 = info.index == vfio_user::REGION_BAR0;
  info = {sizeof info, bar0 ? vfio_user::REGION_READABLE | vfio_user::REGION_WRITABLE : 0,
          info.index, 0, bar0 ? hwif::csr::BYTES : 0, 0};
  reply(message, vfio_user::bytes_of(info));
}

void Connection::region_read(const Message& message) {
  vfio_user::RegionAccess access{};
  if (!load(message, access) || access.region != vfio_user::REGION_BAR0 ||
      access.count > sizeof(uint64_t) || access.offset >= hwif::csr::BYTES ||
      access.count > hwif::csr::BYTES - access.offset) {
    return refuse(message, EINVAL);
  }
  // other accesses than aligned ones of 64 bits read as zero (hwif/csr.toml)
  uint64_t value = 0;
  if (access.count == sizeof value && access.offset % sizeof value == 0) {
    const std::lock_guard lock(nic_.nic->mutex());
    value = nic_.nic->bar_read(*function_, static_cast<uint32_t>(access.offset));
  }
  reply(message, vfio_user::bytes_of(access), vfio_user::bytes_of(value).first(access.count));
}

void Connection::region_write(const Message& message) {
  vfio_user::RegionAccess access{};
  if (!load(message, access) || access.region != vfio_user::REGION_BAR0 ||
      access.count > sizeof(uint64_t) || access.offset >= hwif::csr::BYTES ||
      access.count > hwif::csr::BYTES - access.offset ||
      message.body.size() != sizeof access + access.count) {
    return refuse(message, EINVAL);
  }
  if (access.count == sizeof(uint64_t) && access.offset % sizeof(uint64_t) == 0) {
    uint64_t value = 0;
    std::memcpy(&value, message.body.data() + sizeof access, sizeof value);
    write_bar(static_cast<uint32_t>(access.offset), value);
  }
  reply(message, vfio_user::bytes_of(access));
}

void Connection::write_bar(uint32_t offset, uint64_t value) {
  if (nic_.on_write) nic_.on_write(*function_, offset, value);
  const std::lock_guard lock(nic_.nic->mutex());
  nic_.nic->bar_write(*function_, offset, value);
}

// ---- interrupts ---------------------------------------------------------------------------------

void Connection::set_irqs(Message& message) {
  vfio_user::IrqSet set{};
  if (!load(message, set) || set.index != vfio_user::IRQ_MSIX || set.start > interrupts_.size() ||
      set.count > interrupts_.size() - set.start) {
    return refuse(message, EINVAL);
  }
  if ((set.flags & vfio_user::IRQ_DATA_EVENTFD) != 0 && !message.fds.empty()) {
    if (message.fds.size() != set.count ||
        !std::all_of(message.fds.begin(), message.fds.end(), never_blocks)) {
      return refuse(message, EINVAL);
    }
    for (uint32_t i = 0; i < set.count; ++i) {
      interrupts_[set.start + i] = std::move(message.fds[i]);
    }
  } else if (set.count == 0) {
    for (UniqueFd& fd : interrupts_) fd.reset();
  } else {
    for (uint32_t i = 0; i < set.count; ++i) interrupts_[set.start + i].reset();
  }
  reply(message, {});
}

void Connection::raise(unsigned vector) {
  if (vector >= interrupts_.size() || !interrupts_[vector]) return;
  // O_NONBLOCK is the client's as well as ours: it may have been cleared since set_irqs(). A counter
  // without room for one needs none: its reader is awake.
  pollfd room{interrupts_[vector].get(), POLLOUT, 0};
  if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = ::write(interrupts_[vector].get(), &one, sizeof one);
}

// ---- memory -------------------------------------------------------------------------------------

void Connection::dma_map(const Message& message) {
  vfio_user::DmaMap map{};
  if (!load(message, map) || message.fds.size() > 1) return refuse(message, EINVAL);
  static const UniqueFd none;
  const int error = memory_.map(map, message.fds.empty() ? none : message.fds.front());
  if (error != 0) return refuse(message, error);
  reply(message, {});
}

void Connection::dma_unmap(const Message& message) {
  vfio_user::DmaUnmap unmap{};
  if (!load(message, unmap)) return refuse(message, EINVAL);
  if ((unmap.flags & vfio_user::DMA_UNMAP_ALL) != 0) {
    memory_.unmap_all();
  } else if (const int error = memory_.unmap(unmap.address, unmap.size); error != 0) {
    return refuse(message, error);
  }
  reply(message, vfio_user::bytes_of(unmap));
}

void Connection::reach_memory(const Message& message) {
  vfio_user::Memory memory{};
  if (!load(message, memory)) return refuse(message, EINVAL);
  const vfio_user::MemoryReply answer{memory_.reach_process(process_, memory)
                                          ? vfio_user::MEMORY_PROCESS_VM
                                          : vfio_user::MEMORY_MESSAGES,
                                      0};
  reply(message, vfio_user::bytes_of(answer));
}

bool Connection::move(bool write, uint64_t address, std::span<uint8_t> data) {
  while (!data.empty()) {
    const auto part = data.first(std::min<size_t>(data.size(), vfio_user::MAX_DATA));
    if (!ask(write, address, part)) return false;
    data = data.subspan(part.size());
    address += part.size();
  }
  return true;
}

bool Connection::ask(bool write, uint64_t address, std::span<uint8_t> data) {
  if (!alive_) return false;
  const vfio_user::DmaAccess access{address, data.size()};
  const auto command = static_cast<uint16_t>(write ? Command::DMA_WRITE : Command::DMA_READ);
  const size_t carried = write ? data.size() : 0;
  const Header header{++last_id_, command,
                      static_cast<uint32_t>(sizeof(Header) + sizeof access + carried), 0, 0};
  const std::span<const uint8_t> parts[] = {vfio_user::bytes_of(access), data.first(carried)};
  if (!vfio_user::send_message(socket_.get(), header, parts, {})) end();
  const auto limit = std::chrono::steady_clock::now() + deadline_;
  while (alive_) {
    // also while messages keep coming: they may go on for ever
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        limit - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    Message message;
    if (receive(message)) {
      if ((message.header.flags & vfio_user::FLAG_REPLY) == 0) {
        backlog_bytes_ += sizeof message + message.body.size();
        if (backlog_bytes_ > kMostBacklog || (!message.fds.empty() && ++backlog_fds_ > kMostFds)) {
          break;
        }
        backlog_.push_back(std::move(message));
        continue;
      }
      if (message.header.id != header.id || message.header.command != command) break;
      if ((message.header.flags & vfio_user::FLAG_ERROR) != 0) return false;
      if (write) return true;
      if (message.body.size() != sizeof access + data.size()) break;
      std::memcpy(data.data(), message.body.data() + sizeof access, data.size());
      return true;
    }
    pollfd ready{socket_.get(), POLLIN, 0};
    poll(&ready, 1, static_cast<int>(left.count()));
  }
  end();  // its function is reset when the server looks at it next
  return false;
}

}  // namespace roci::sim
