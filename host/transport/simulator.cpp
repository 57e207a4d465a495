// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Transport to the simulator's socket; the protocol is in README.md. A thread of its own receives:
// replies go to who waits for them, DMA by messages is answered there, the end of the connection is
// the loss of the device. Doorbells are one send without a lock and without a reply.
#include "simulator.hpp"

#include <roci/error.hpp>
#include <roci/log.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

namespace roci {
namespace {

using vfio_user::Command;
using vfio_user::Header;
using vfio_user::Message;

// Requests in flight at once: their replies (16 to 48 bytes each) fit into the socket's buffer, so
// that the server never has to wait for us while we wait for it.
constexpr size_t PIPELINE = 64;

unsigned long long hex(uint64_t value) { return value; }

template <class T>
T body_as(const Message& message, const char* what) {
  if (message.body.size() < sizeof(T)) fail(EPROTO, "reply to %s is too short", what);
  T out;
  std::memcpy(&out, message.body.data(), sizeof out);
  return out;
}

const char* name(Command command) {
  switch (command) {
    case Command::VERSION: return "VERSION";
    case Command::DMA_MAP: return "DMA_MAP";
    case Command::DMA_UNMAP: return "DMA_UNMAP";
    case Command::DEVICE_GET_INFO: return "DEVICE_GET_INFO";
    case Command::DEVICE_GET_REGION_INFO: return "DEVICE_GET_REGION_INFO";
    case Command::DEVICE_GET_IRQ_INFO: return "DEVICE_GET_IRQ_INFO";
    case Command::DEVICE_SET_IRQS: return "DEVICE_SET_IRQS";
    case Command::REGION_READ: return "REGION_READ";
    case Command::REGION_WRITE: return "REGION_WRITE";
    case Command::DMA_READ: return "DMA_READ";
    case Command::DMA_WRITE: return "DMA_WRITE";
    case Command::DEVICE_RESET: return "DEVICE_RESET";
    case Command::ROCI_NIC_INFO: return "ROCI_NIC_INFO";
    case Command::ROCI_RESOLVE: return "ROCI_RESOLVE";
    case Command::ROCI_MEMORY: return "ROCI_MEMORY";
    case Command::ROCI_STATISTICS: return "ROCI_STATISTICS";
  }
  return "?";
}

}  // namespace

Message negotiate(int socket, const char* role, std::chrono::milliseconds patience) {
  const vfio_user::Version version{vfio_user::VERSION_MAJOR, vfio_user::VERSION_MINOR};
  const std::string json = format(
      "{\"capabilities\":{\"max_msg_fds\":%zu,\"max_data_xfer_size\":%u,\"pgsizes\":4096,"
      "\"roci\":{\"roci_protocol\":%u,\"role\":\"%s\"}}}",
      vfio_user::MAX_FDS, vfio_user::MAX_DATA, vfio_user::ROCI_PROTOCOL, role);
  const std::span<const uint8_t> parts[] = {
      vfio_user::bytes_of(version), {reinterpret_cast<const uint8_t*>(json.c_str()), json.size() + 1}};
  const Header header{1, static_cast<uint16_t>(Command::VERSION),
                      static_cast<uint32_t>(sizeof(Header) + sizeof version + json.size() + 1), 0, 0};
  Message reply;
  const timeval limit{patience.count() / 1000, patience.count() % 1000 * 1000};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  errno = 0;
  if (!vfio_user::send_message(socket, header, parts, {}) ||
      !vfio_user::receive_message(socket, reply)) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      fail(ETIMEDOUT, "no answer from the simulator within %lld ms: is it stopped?",
           static_cast<long long>(patience.count()));
    }
    fail(ENODEV, "the simulator closed the connection");
  }
  if (reply.header.flags & vfio_user::FLAG_ERROR) {
    if (reply.header.error == EBUSY) {
      fail(EBUSY, "all functions of the NIC are taken: end a program that uses it, or serve more NICs");
    }
    fail(static_cast<int>(reply.header.error), "the simulator refuses the connection: %s",
         errno_text(static_cast<int>(reply.header.error)).c_str());
  }
  const auto theirs = body_as<vfio_user::Version>(reply, "VERSION");
  const std::string text(reinterpret_cast<const char*>(reply.body.data()) + sizeof theirs,
                         reply.body.size() - sizeof theirs);
  const uint64_t protocol = vfio_user::json_number(text, "roci_protocol", 0);
  if (theirs.major != vfio_user::VERSION_MAJOR || protocol != vfio_user::ROCI_PROTOCOL) {
    fail(EPROTO,
         "the simulator speaks vfio-user %u.%u with roci_protocol %llu, we speak %u.%u with %u: build "
         "both from the same sources",
         theirs.major, theirs.minor, hex(protocol), vfio_user::VERSION_MAJOR,
         vfio_user::VERSION_MINOR, vfio_user::ROCI_PROTOCOL);
  }
  return reply;
}

// ---- connection ---------------------------------------------------------------------------------

SimulatorTransport::SimulatorTransport(const std::string& path, SimulatorOptions options)
    : options_(options), socket_(vfio_user::connect_to(path)) {
  if (!socket_) {
    fail(ENODEV, "no simulator at %s: %s", path.c_str(), errno_text(errno).c_str());
  }
  // The NIC may have to read our memory (README.md §4). Without Yama this is not needed and fails.
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0) {
    prctl(PR_SET_PTRACER, static_cast<unsigned long>(peer.pid), 0, 0, 0);
  }
  negotiate(socket_.get(), "function", options_.timeout);
  // From now on a thread waits for whatever may come.
  const timeval for_ever{0, 0};
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof for_ever);

  for (unsigned page = 0; page < doorbells_.size(); ++page) {
    doorbells_[page].header = {0, static_cast<uint16_t>(Command::REGION_WRITE),
                               sizeof(vfio_user::RegionWrite64), vfio_user::FLAG_NO_REPLY, 0};
    doorbells_[page].access = {
        hwif::csr::DoorbellPage::ADDRESS + page * hwif::csr::DoorbellPage::STRIDE,
        vfio_user::REGION_BAR0, sizeof(uint64_t)};
  }
  for (UniqueFd& fd : interrupts_) {
    fd.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd) fail(errno, "eventfd: %s", errno_text(errno).c_str());
  }
  start_receiver();
  try {
    set_up();
  } catch (...) {
    stop_receiver();
    throw;
  }
}

SimulatorTransport::~SimulatorTransport() { stop_receiver(); }

// Checks what the device is, hands over the interrupts and finds out how it reaches our memory.
void SimulatorTransport::set_up() {
  const vfio_user::RegionInfo ask_region{sizeof(vfio_user::RegionInfo), 0, vfio_user::REGION_BAR0,
                                         0, 0, 0};
  const auto region = body_as<vfio_user::RegionInfo>(
      request(Command::DEVICE_GET_REGION_INFO, vfio_user::bytes_of(ask_region)),
      "DEVICE_GET_REGION_INFO");
  if (region.size < hwif::csr::BYTES) {
    fail(EPROTO, "BAR0 has %llu bytes, not %u", hex(region.size), hwif::csr::BYTES);
  }
  const vfio_user::IrqInfo ask_irq{sizeof(vfio_user::IrqInfo), 0, vfio_user::IRQ_MSIX, 0};
  const auto irq = body_as<vfio_user::IrqInfo>(
      request(Command::DEVICE_GET_IRQ_INFO, vfio_user::bytes_of(ask_irq)), "DEVICE_GET_IRQ_INFO");
  if (irq.count < interrupts_.size()) {
    fail(EPROTO, "the device has %u interrupt vectors, not %zu", irq.count, interrupts_.size());
  }
  const vfio_user::IrqSet set{sizeof(vfio_user::IrqSet),
                              vfio_user::IRQ_DATA_EVENTFD | vfio_user::IRQ_ACTION_TRIGGER,
                              vfio_user::IRQ_MSIX, 0, static_cast<uint32_t>(interrupts_.size())};
  std::array<int, hwif::INTERRUPT_VECTORS> fds{};
  for (size_t i = 0; i < fds.size(); ++i) fds[i] = interrupts_[i].get();
  request(Command::DEVICE_SET_IRQS, vfio_user::bytes_of(set), fds);

  if (options_.force_messages) return;
  vfio_user::Memory memory{};
  memory.nonce_address = reinterpret_cast<uintptr_t>(memory.nonce);
  if (getrandom(memory.nonce, sizeof memory.nonce, 0) != sizeof memory.nonce) {
    fail(EIO, "getrandom: %s", errno_text(errno).c_str());
  }
  const auto reply = body_as<vfio_user::MemoryReply>(
      request(Command::ROCI_MEMORY, vfio_user::bytes_of(memory)), "ROCI_MEMORY");
  process_vm_ = reply.method == vfio_user::MEMORY_PROCESS_VM;
  if (!process_vm_) {
    log(LogLevel::INFO, "the simulator cannot read this process's memory (ptrace rights): data goes "
                        "by messages, which is slow");
  }
}

// ---- requests -----------------------------------------------------------------------------------

void SimulatorTransport::send(Pending& pending, Command command, std::span<const uint8_t> body,
                              std::span<const uint8_t> data, std::span<const int> fds) {
  uint16_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    if (lost()) fail(EIO, "the simulator is gone");
    do {
      id = ++last_id_;
    } while (id == 0 || pending_.contains(id));
    pending_[id] = &pending;
    pending.id = id;
  }
  const Header header{id, static_cast<uint16_t>(command),
                      static_cast<uint32_t>(sizeof(Header) + body.size() + data.size()), 0, 0};
  const std::span<const uint8_t> parts[] = {body, data};
  // If this fails the connection is gone, and the receiver will tell the pending request.
  vfio_user::send_message(socket_.get(), header, parts, fds);
}

void SimulatorTransport::finish(Pending& pending, Command command) {
  std::unique_lock lock(mutex_);
  const bool answered = replied_.wait_for(lock, options_.timeout,
                                          [&] { return pending.done || lost(); });
  pending_.erase(pending.id);
  if (pending.done) {
    if (pending.reply.header.flags & vfio_user::FLAG_ERROR) {
      const int code = static_cast<int>(pending.reply.header.error);
      fail(code == 0 ? EIO : code, "%s: the simulator answers %s", name(command),
           errno_text(code).c_str());
    }
    return;
  }
  if (answered) fail(EIO, "%s: the simulator is gone", name(command));
  lock.unlock();
  // A late reply would be nobody's, and what it would say is unknown: end it here.
  shutdown(socket_.get(), SHUT_RDWR);
  fail(ETIMEDOUT, "%s: no answer from the simulator within %lld ms", name(command),
       static_cast<long long>(options_.timeout.count()));
}

Message SimulatorTransport::request(Command command, std::span<const uint8_t> body,
                                    std::span<const int> fds) {
  Pending pending;
  send(pending, command, body, {}, fds);
  finish(pending, command);
  return std::move(pending.reply);
}

// ---- registers ----------------------------------------------------------------------------------

uint64_t SimulatorTransport::bar_read(uint32_t offset) {
  const vfio_user::RegionAccess access{offset, vfio_user::REGION_BAR0, sizeof(uint64_t)};
  const Message reply = request(Command::REGION_READ, vfio_user::bytes_of(access));
  if (reply.body.size() != sizeof access + sizeof(uint64_t)) {
    fail(EPROTO, "reply to REGION_READ has %zu bytes", reply.body.size());
  }
  uint64_t value = 0;
  std::memcpy(&value, reply.body.data() + sizeof access, sizeof value);
  return value;
}

void SimulatorTransport::bar_write(uint32_t offset, uint64_t value) {
  check_not_lost();
  vfio_user::RegionWrite64 message = doorbells_[0];
  message.access.offset = offset;
  message.value = value;
  send_write(message);
}

void SimulatorTransport::ring(unsigned page, uint64_t doorbell) noexcept {
  vfio_user::RegionWrite64 message = doorbells_[page];
  message.value = doorbell;
  send_write(message);
}

void SimulatorTransport::send_write(const vfio_user::RegionWrite64& message) noexcept {
  // Not send(), which is a cancellation point: the data path is none, and noexcept.
  while (syscall(SYS_sendto, socket_.get(), &message, sizeof message, MSG_NOSIGNAL, nullptr, 0) < 0 &&
         errno == EINTR) {
  }
}

std::optional<Neighbour> SimulatorTransport::resolve(const Gid& gid) {
  vfio_user::Resolve ask{};
  std::memcpy(ask.gid, gid.bytes, sizeof ask.gid);
  try {
    const auto reply = body_as<vfio_user::ResolveReply>(
        request(Command::ROCI_RESOLVE, vfio_user::bytes_of(ask)), "ROCI_RESOLVE");
    Neighbour neighbour;
    std::memcpy(neighbour.mac.bytes, reply.mac, sizeof reply.mac);
    return neighbour;
  } catch (const Error& error) {
    if (error.code() == ENOENT) return std::nullopt;
    throw;
  }
}

// ---- memory -------------------------------------------------------------------------------------

DmaRange SimulatorTransport::allocate(size_t bytes) {
  UniqueFd fd(memfd_create("roci-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    fail(ENOMEM, "no shared memory for %zu bytes of rings: %s", bytes, errno_text(errno).c_str());
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) {
    fail(ENOMEM, "no address space for %zu bytes of rings: %s", bytes, errno_text(errno).c_str());
  }
  DmaRange chunk{reinterpret_cast<uintptr_t>(memory), static_cast<std::byte*>(memory), bytes, true};
  const vfio_user::DmaMap map{sizeof(vfio_user::DmaMap),
                              vfio_user::DMA_MAP_READ | vfio_user::DMA_MAP_WRITE, 0, chunk.address,
                              bytes};
  const int fds[] = {fd.get()};
  try {
    request(Command::DMA_MAP, vfio_user::bytes_of(map), fds);
  } catch (...) {
    munmap(memory, bytes);
    throw;
  }
  const std::lock_guard lock(mutex_);
  chunks_.push_back(chunk);
  return chunk;
}

void SimulatorTransport::release(const DmaRange& chunk) noexcept {
  unmap_messages(std::span(&chunk, 1));
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(chunks_, [&](const DmaRange& other) { return other.memory == chunk.memory; });
  }
  munmap(chunk.memory, chunk.bytes);
}

void SimulatorTransport::map(std::span<DmaRange> ranges) {
  size_t mapped = 0;
  try {
    while (mapped < ranges.size()) {
      std::array<Pending, PIPELINE> pending;
      const size_t n = std::min(PIPELINE, ranges.size() - mapped);
      {
        // Before the NIC may ask for them.
        const std::lock_guard lock(mutex_);
        for (DmaRange& range : ranges.subspan(mapped, n)) {
          if (range.address == DmaRange::ANY) {
            range.address = reinterpret_cast<uintptr_t>(range.memory);
          }
          if (!process_vm_) maps_[range.address] = range;
        }
      }
      size_t sent = 0;
      size_t finished = 0;
      std::exception_ptr first_error;
      try {
        for (; sent < n; ++sent) {
          const DmaRange& range = ranges[mapped + sent];
          const vfio_user::DmaMap map{
              sizeof(vfio_user::DmaMap),
              vfio_user::DMA_MAP_READ | (range.writable ? vfio_user::DMA_MAP_WRITE : 0),
              process_vm_ ? reinterpret_cast<uintptr_t>(range.memory) : 0, range.address,
              range.bytes};
          send(pending[sent], Command::DMA_MAP, vfio_user::bytes_of(map), {}, {});
        }
      } catch (...) {
        first_error = std::current_exception();
      }
      // Those after a failed one may have been mapped: all are accounted for.
      std::array<bool, PIPELINE> good{};
      for (; finished < sent; ++finished) {
        try {
          finish(pending[finished], Command::DMA_MAP);
          good[finished] = true;
        } catch (...) {
          if (!first_error) first_error = std::current_exception();
        }
      }
      if (first_error) {
        for (size_t i = 0; i < n; ++i) {
          if (good[i]) unmap(std::span<const DmaRange>(&ranges[mapped + i], 1));
        }
        std::rethrow_exception(first_error);
      }
      mapped += n;
    }
  } catch (...) {
    unmap(ranges.first(mapped));
    throw;
  }
}

void SimulatorTransport::unmap(std::span<const DmaRange> ranges) noexcept {
  unmap_messages(ranges);
  if (process_vm_) return;
  const std::lock_guard lock(mutex_);
  for (const DmaRange& range : ranges) maps_.erase(range.address);
}

void SimulatorTransport::unmap_messages(std::span<const DmaRange> ranges) noexcept {
  while (!ranges.empty() && !lost()) {
    const size_t n = std::min(PIPELINE, ranges.size());
    std::array<Pending, PIPELINE> pending;
    size_t sent = 0;
    try {
      for (; sent < n; ++sent) {
        const vfio_user::DmaUnmap unmap{sizeof(vfio_user::DmaUnmap), 0, ranges[sent].address,
                                        ranges[sent].bytes};
        send(pending[sent], Command::DMA_UNMAP, vfio_user::bytes_of(unmap), {}, {});
      }
    } catch (const std::exception&) {
      // Gone meanwhile: nothing is mapped any more.
    }
    for (size_t i = 0; i < sent; ++i) {
      try {
        finish(pending[i], Command::DMA_UNMAP);
      } catch (const std::exception& error) {
        if (!lost()) log(LogLevel::WARN, "%s", error.what());
      }
    }
    if (sent < n) return;
    ranges = ranges.subspan(n);
  }
}

// ---- interrupts ---------------------------------------------------------------------------------

bool SimulatorTransport::wait(unsigned vector, std::chrono::milliseconds timeout) {
  pollfd ready{interrupts_[vector].get(), POLLIN, 0};
  if (!lost()) {
    const int n = poll(&ready, 1, static_cast<int>(timeout.count()));
    if (n == 0) return false;
  }
  uint64_t count = 0;
  // Not blocking; nothing there means that somebody else took it.
  [[maybe_unused]] const ssize_t size = read(interrupts_[vector].get(), &count, sizeof count);
  return true;
}

void SimulatorTransport::wake(unsigned vector) noexcept {
  const uint64_t one = 1;
  // Fails only if the counter is full, and then nobody sleeps.
  [[maybe_unused]] const ssize_t size = write(interrupts_[vector].get(), &one, sizeof one);
}

// A program that polls without pause takes the processor that simulates its NIC: it yields, and now
// and then it sleeps for some ten simulated cycles, which a request of a thousand cycles does not feel.
void SimulatorTransport::idle() noexcept {
  constexpr uint32_t yields = 15;
  constexpr timespec nap{0, 20'000};
  if (empty_polls_.fetch_add(1, std::memory_order_relaxed) % (yields + 1) != yields) {
    sched_yield();
  } else {
    // Not nanosleep(), which is a cancellation point.
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, nullptr);
  }
}

// ---- the receiving thread -----------------------------------------------------------------------

void SimulatorTransport::start_receiver() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(
      &receiver_, nullptr,
      [](void* self) -> void* {
        static_cast<SimulatorTransport*>(self)->receive();
        return nullptr;
      },
      this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) fail(error, "no thread for the simulator's messages");
  receiver_runs_ = true;
  pthread_setname_np(receiver_, "roci-socket");
}

void SimulatorTransport::stop_receiver() noexcept {
  if (!receiver_runs_) return;
  closing_.store(true);
  shutdown(socket_.get(), SHUT_RDWR);
  pthread_join(receiver_, nullptr);
  receiver_runs_ = false;
}

void SimulatorTransport::receive() {
  Message message;
  while (vfio_user::receive_message(socket_.get(), message)) {
    if (message.header.flags & vfio_user::FLAG_REPLY) {
      const std::lock_guard lock(mutex_);
      const auto found = pending_.find(message.header.id);
      if (found == pending_.end()) continue;
      found->second->reply = std::move(message);
      found->second->done = true;
      replied_.notify_all();
    } else if (!serve(message)) {
      break;
    }
  }
  shutdown(socket_.get(), SHUT_RDWR);
  if (closing_.load()) {
    mark_lost_silently();
    let_waiters_go();
  } else {
    mark_lost("the simulator closed the connection");
  }
  for (unsigned vector = 0; vector < interrupts_.size(); ++vector) wake(vector);
}

void SimulatorTransport::let_waiters_go() noexcept {
  const std::lock_guard lock(mutex_);
  replied_.notify_all();
}

bool SimulatorTransport::serve(const Message& message) {
  const auto command = static_cast<Command>(message.header.command);
  int error = ENOTSUP;
  std::vector<uint8_t> data;
  vfio_user::DmaAccess access{};
  if ((command == Command::DMA_READ || command == Command::DMA_WRITE) &&
      message.body.size() >= sizeof access) {
    std::memcpy(&access, message.body.data(), sizeof access);
    const bool write = command == Command::DMA_WRITE;
    if (access.count > vfio_user::MAX_DATA ||
        (write && message.body.size() != sizeof access + access.count)) {
      error = EINVAL;
    } else {
      if (write) {
        data.assign(message.body.begin() + sizeof access, message.body.end());
      } else {
        data.resize(access.count);
      }
      error = access_memory(access.address, data, write) ? 0 : EFAULT;
      if (write || error != 0) data.clear();
    }
  }
  if (message.header.flags & vfio_user::FLAG_NO_REPLY) return true;
  const std::span<const uint8_t> parts[] = {vfio_user::bytes_of(access), data};
  const Header header{message.header.id, message.header.command,
                      static_cast<uint32_t>(sizeof(Header) + sizeof access + data.size()),
                      vfio_user::FLAG_REPLY | (error != 0 ? vfio_user::FLAG_ERROR : 0),
                      static_cast<uint32_t>(error)};
  return vfio_user::send_message(socket_.get(), header, parts, {});
}

bool SimulatorTransport::access_memory(uint64_t address, std::span<uint8_t> data, bool write) {
  while (!data.empty()) {
    DmaRange range{};
    {
      const std::lock_guard lock(mutex_);
      const auto after = maps_.upper_bound(address);
      if (after == maps_.begin()) return false;
      range = std::prev(after)->second;
    }
    const uint64_t offset = address - range.address;
    if (offset >= range.bytes || (write && !range.writable)) return false;
    const size_t n = std::min<size_t>(data.size(), range.bytes - offset);
    // By the kernel: if the program unmapped its memory this is an error and no signal.
    const iovec ours{data.data(), n};
    const iovec theirs{range.memory + offset, n};
    const ssize_t done = write ? process_vm_writev(getpid(), &ours, 1, &theirs, 1, 0)
                               : process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0);
    if (done != static_cast<ssize_t>(n)) return false;
    data = data.subspan(n);
    address += n;
  }
  return true;
}

// ---- fork ---------------------------------------------------------------------------------------

void SimulatorTransport::abandon_after_fork() noexcept {
  mark_lost_silently();
  forget_handler_after_fork();
  new (&mutex_) std::mutex;  // before_fork() locked it
  new (&replied_) std::condition_variable;  // threads of the parent may wait there
  receiver_runs_ = false;    // the thread stayed in the parent
  socket_.reset();
  for (UniqueFd& fd : interrupts_) fd.reset();
  for (const DmaRange& chunk : chunks_) {
    // The child's own pages in place of the shared ones; if that fails it still has those.
    static_cast<void>(mmap(chunk.memory, chunk.bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  }
}

std::unique_ptr<Transport> connect_simulator(const std::string& socket, SimulatorOptions options) {
  return std::make_unique<SimulatorTransport>(socket, options);
}

}  // namespace roci
