// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Transport to a NIC in this process. Only mapped memory answers DMA, as with a socket, so that tests
// see a missing mapping as the bus error that it would be. The lock of the simulation guards the NIC and
// the tables here: the NIC reaches memory from within any step.
#include <roci/error.hpp>
#include <roci/inproc.hpp>

#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

namespace roci {
namespace {

class InprocTransport final : public Transport, private InprocMemory {
 public:
  InprocTransport(InprocNic& nic, InprocOptions options) : nic_(nic), options_(options) {
    const std::lock_guard lock(nic_.mutex());
    const auto function =
        nic_.attach(*this, [this](unsigned vector) { raised_[vector % raised_.size()] = true; });
    if (!function) fail(EBUSY, "no function of the NIC is free");
    function_ = *function;
  }

  InprocTransport(const InprocTransport&) = delete;
  InprocTransport& operator=(const InprocTransport&) = delete;
  ~InprocTransport() override {
    const std::lock_guard lock(nic_.mutex());
    nic_.detach(function_);
  }

  uint64_t bar_read(uint32_t offset) override {
    const std::lock_guard lock(nic_.mutex());
    return nic_.bar_read(function_, offset);
  }

  void bar_write(uint32_t offset, uint64_t value) override {
    const std::lock_guard lock(nic_.mutex());
    nic_.bar_write(function_, offset, value);
  }

  void ring(unsigned page, uint64_t doorbell) noexcept override {
    const std::lock_guard lock(nic_.mutex());
    nic_.bar_write(function_,
                   hwif::csr::DoorbellPage::ADDRESS + page * hwif::csr::DoorbellPage::STRIDE,
                   doorbell);
  }

  DmaRange allocate(size_t bytes) override {
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail(ENOMEM, "no memory for %zu bytes of rings", bytes);
    DmaRange range{DmaRange::ANY, static_cast<std::byte*>(memory), bytes, true};
    map(std::span(&range, 1));
    return range;
  }

  void release(const DmaRange& chunk) noexcept override {
    unmap(std::span(&chunk, 1));
    munmap(chunk.memory, chunk.bytes);
  }

  void map(std::span<DmaRange> ranges) override {
    const std::lock_guard lock(nic_.mutex());
    for (DmaRange& range : ranges) {
      const uint64_t address = range.address == DmaRange::ANY
                                   ? reinterpret_cast<uintptr_t>(range.memory)
                                   : range.address;
      const auto next = maps_.lower_bound(address);
      const bool hits_next = next != maps_.end() && next->first < address + range.bytes;
      const bool hits_last = next != maps_.begin() && std::prev(next)->first +
                                                              std::prev(next)->second.bytes >
                                                          address;
      if (hits_next || hits_last) {
        for (DmaRange* done = ranges.data(); done != &range; ++done) maps_.erase(done->address);
        fail(EEXIST, "DMA address 0x%llx is mapped already",
             static_cast<unsigned long long>(address));
      }
      range.address = address;
      maps_[address] = range;
    }
  }

  void unmap(std::span<const DmaRange> ranges) noexcept override {
    const std::lock_guard lock(nic_.mutex());
    for (const DmaRange& range : ranges) maps_.erase(range.address);
  }

  bool wait(unsigned vector, std::chrono::milliseconds timeout) override {
    const std::lock_guard lock(nic_.mutex());
    const auto limit = static_cast<uint64_t>(timeout.count()) * options_.cycles_per_millisecond;
    for (uint64_t cycles = 0;; cycles += options_.step_cycles) {
      if (raised_[vector]) {
        raised_[vector] = false;
        return true;
      }
      if (cycles >= limit) return false;
      nic_.step(options_.step_cycles);
    }
  }

  void wake(unsigned vector) noexcept override {
    const std::lock_guard lock(nic_.mutex());
    raised_[vector] = true;
  }

  std::optional<Neighbour> resolve(const Gid& gid) override {
    const std::lock_guard lock(nic_.mutex());
    return nic_.resolve(gid);
  }

  void idle() noexcept override {
    const std::lock_guard lock(nic_.mutex());
    nic_.step(options_.step_cycles);
  }
  bool wants_idle() const noexcept override { return options_.step_when_idle; }
  bool runs_by_itself() const noexcept override { return false; }

  void abandon_after_fork() noexcept override {
    mark_lost_silently();
    forget_handler_after_fork();
  }

 private:
  // The piece of memory at `address`, at most `bytes` long; empty if it is not mapped.
  std::span<uint8_t> find(uint64_t address, size_t bytes, bool write) {
    auto after = maps_.upper_bound(address);
    if (after == maps_.begin()) return {};
    const DmaRange& range = std::prev(after)->second;
    const uint64_t offset = address - range.address;
    if (offset >= range.bytes || (write && !range.writable)) return {};
    return {reinterpret_cast<uint8_t*>(range.memory) + offset,
            std::min<size_t>(bytes, range.bytes - offset)};
  }

  bool read(uint64_t address, std::span<uint8_t> out) override {
    while (!out.empty()) {
      const auto piece = find(address, out.size(), false);
      if (piece.empty()) return false;
      std::memcpy(out.data(), piece.data(), piece.size());
      out = out.subspan(piece.size());
      address += piece.size();
    }
    return true;
  }

  bool write(uint64_t address, std::span<const uint8_t> data) override {
    for (uint64_t offset = 0; offset < data.size();) {
      const auto piece = find(address + offset, data.size() - offset, true);
      if (piece.empty()) return false;
      offset += piece.size();
    }
    while (!data.empty()) {
      const auto piece = find(address, data.size(), true);
      std::memcpy(piece.data(), data.data(), piece.size() - 1);
      __atomic_store_n(&piece.back(), data[piece.size() - 1], __ATOMIC_RELEASE);
      data = data.subspan(piece.size());
      address += piece.size();
    }
    return true;
  }

  InprocNic& nic_;
  const InprocOptions options_;
  unsigned function_ = 0;
  std::map<uint64_t, DmaRange> maps_;
  std::array<bool, hwif::INTERRUPT_VECTORS> raised_{};
};

}  // namespace

std::unique_ptr<Transport> make_inproc_transport(InprocNic& nic, InprocOptions options) {
  return std::make_unique<InprocTransport>(nic, options);
}

}  // namespace roci
