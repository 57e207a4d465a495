// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "host_memory/host_memory.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>

#include "common/random.hpp"

namespace roci::sim {
namespace {

constexpr uint64_t kBoundary = 4096;  // a burst must not cross it (IHI 0022, A3.4.1)
constexpr uint8_t kPoison = 0xee;     // data of failed reads: must never be used

enum Stream : unsigned {
  kStallAr,
  kStallAw,
  kStallW,
  kStallR,
  kStallB,
  kReadJitter,
  kWriteJitter,
  kStoreTime,
  kReadError,
  kWriteError,
  kChoice,
  kInterleave,
};

template <typename Burst>
std::unique_ptr<Burst> take_spare(std::vector<std::unique_ptr<Burst>>& spares) {
  if (spares.empty()) return std::make_unique<Burst>();
  std::unique_ptr<Burst> burst = std::move(spares.back());
  spares.pop_back();
  burst->recycle();
  return burst;
}

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

HostMemory::HostMemory(const HostMemoryConfig& config, DmaTarget& target)
    : config_(config), target_(target) {
  if (config_.data_bytes != 8 && config_.data_bytes != 64) {
    throw std::invalid_argument("host memory is 8 or 64 bytes wide");
  }
  if (config_.max_reads == 0 || config_.max_writes == 0 || config_.early_write_beats == 0) {
    throw std::invalid_argument("limits of host memory must not be zero");
  }
  // An answer in the cycle of its request would need combinational paths.
  config_.read_latency = std::max(config_.read_latency, 1u);
  config_.write_latency = std::max(config_.write_latency, 1u);
}

uint64_t HostMemory::bits(unsigned stream, uint64_t counter) const {
  return draw(config_.seed, stream, counter);
}

bool HostMemory::happens(double probability, unsigned stream, uint64_t counter) const {
  return probability > 0 && chance(probability, bits(stream, counter));
}

bool HostMemory::ar_ready() const {
  return reads_.size() < config_.max_reads && !happens(config_.stall_ar, kStallAr, cycle_);
}

bool HostMemory::aw_ready() const {
  return writes_.size() + addresses_.size() < config_.max_writes &&
         !happens(config_.stall_aw, kStallAw, cycle_);
}

bool HostMemory::w_ready() const {
  return early_.size() < config_.early_write_beats && !happens(config_.stall_w, kStallW, cycle_);
}

void HostMemory::fail(const char* channel, const std::string& what) const {
  throw AxiProtocolError("AXI " + std::string(channel) + ", cycle " + std::to_string(cycle_) +
                         ": " + what);
}

void HostMemory::check_address(const char* channel, const AxiAddress& address) const {
  if (address.burst != kAxiIncr) {
    fail(channel, "burst type " + std::to_string(address.burst) + " is not INCR");
  }
  if (1u << address.size != config_.data_bytes) {
    fail(channel, "size " + std::to_string(address.size) + " is not the full width of " +
                      std::to_string(config_.data_bytes) + " bytes");
  }
  const uint64_t last = aligned(address) + burst_bytes(address) - 1;
  if (address.addr / kBoundary != last / kBoundary) {
    fail(channel, "burst of " + std::to_string(address.len + 1) + " beats at " + hex(address.addr) +
                      " crosses a 4 KB boundary");
  }
}

// Valid must stay and the payload must not change until ready (IHI 0022, A3.2.1).
template <typename T>
void HostMemory::check_stable(const char* channel, std::optional<T>& waiting, bool valid,
                              const T& now, bool ready) const {
  if (waiting && !valid) fail(channel, "valid dropped before ready");
  if (waiting && now != *waiting) fail(channel, "payload changed before ready");
  waiting.reset();
  if (valid && !ready) waiting = now;
}

void HostMemory::step(const AxiMaster& master) {
  const bool take_ar = ar_ready();
  const bool take_aw = aw_ready();
  const bool take_w = w_ready();
  check_stable("AR", ar_waiting_, master.ar_valid, master.ar, take_ar);
  check_stable("AW", aw_waiting_, master.aw_valid, master.aw, take_aw);
  check_stable("W", w_waiting_, master.w_valid, master.w, take_w);

  if (r_ && master.r_ready) r_.reset();
  if (b_ && master.b_ready) b_.reset();
  if (master.ar_valid) {
    check_address("AR", master.ar);
    if (take_ar) accept_read(master.ar);
  }
  if (master.aw_valid) {
    check_address("AW", master.aw);
    if (take_aw) {
      addresses_.push_back(master.aw);
      ++counters_.writes;
    }
  }
  if (master.w_valid && take_w) early_.push_back(master.w);
  while (!early_.empty() && !addresses_.empty()) accept_write_beat();
  counters_.most_writes =
      std::max(counters_.most_writes, static_cast<unsigned>(writes_.size() + addresses_.size()));

  ++cycle_;
  touch_memory();
  offer_read();
  offer_response();
}

void HostMemory::accept_read(const AxiAddress& ar) {
  auto burst = take_spare(spare_reads_);
  burst->ar = ar;
  burst->number = counters_.reads++;
  burst->ready_cycle = cycle_ + config_.read_latency + slowness(ar) +
                       below(uint64_t{config_.read_jitter} + 1, bits(kReadJitter, burst->number));
  reads_due_.emplace(burst->ready_cycle, burst.get());
  reads_.push_back(std::move(burst));
  counters_.most_reads = std::max(counters_.most_reads, static_cast<unsigned>(reads_.size()));
}

void HostMemory::accept_write_beat() {
  const AxiWrite beat = early_.front();
  early_.pop_front();
  const AxiAddress& aw = addresses_.front();
  if (!filling_) {
    filling_ = take_spare(spare_writes_);
    filling_->aw = aw;
  }
  const size_t offset = filling_->data.size();
  const bool last = offset + config_.data_bytes == burst_bytes(aw);
  if (beat.last != last) {
    fail("W", std::string(beat.last ? "WLAST in beat " : "no WLAST in beat ") +
                  std::to_string(offset / config_.data_bytes) + " of a burst of " +
                  std::to_string(aw.len + 1));
  }
  if (config_.data_bytes < 64 && beat.strb >> config_.data_bytes != 0) {
    fail("W", "strobes " + hex(beat.strb) + " beyond the width");
  }
  const uint64_t before = offset == 0 ? aw.addr - aligned(aw) : 0;
  if ((beat.strb & ((uint64_t{1} << before) - 1)) != 0) {
    fail("W", "strobes " + hex(beat.strb) + " below the address " + hex(aw.addr));
  }
  filling_->data.insert(filling_->data.end(), beat.data.begin(),
                        beat.data.begin() + config_.data_bytes);
  filling_->strobes.push_back(beat.strb);
  ++counters_.write_beats;
  if (last) {
    finish_write();
    addresses_.pop_front();
  }
}

void HostMemory::finish_write() {
  WriteBurst& burst = *filling_;
  burst.number = counters_.writes - addresses_.size();
  burst.ready_cycle = cycle_ + config_.write_latency +
                      below(uint64_t{config_.write_jitter} + 1, bits(kWriteJitter, burst.number));
  // Responses of one ID keep their order; so a late one holds up those behind it.
  if (!config_.reorder) {
    if (!writes_.empty()) {
      burst.ready_cycle = std::max(burst.ready_cycle, writes_.back()->ready_cycle);
    }
  } else {
    for (const auto& other : writes_) {
      if (other->aw.id != burst.aw.id) continue;
      burst.ready_cycle = std::max(burst.ready_cycle, other->ready_cycle);
    }
  }
  switch (config_.visibility) {
    case WriteVisibility::with_response:
      burst.store_cycle = burst.ready_cycle;
      break;
    case WriteVisibility::immediate:
      burst.store_cycle = cycle_ + 1;
      break;
    case WriteVisibility::random:
      burst.store_cycle =
          cycle_ + 1 + below(burst.ready_cycle - cycle_, bits(kStoreTime, burst.number));
      for (const auto& other : writes_) {
        const bool overlaps = aligned(other->aw) < aligned(burst.aw) + burst_bytes(burst.aw) &&
                              aligned(burst.aw) < aligned(other->aw) + burst_bytes(other->aw);
        if (!other->stored && overlaps && other->aw.user == burst.aw.user) {
          burst.store_cycle = std::max(burst.store_cycle, other->store_cycle);
        }
      }
      // An older one of another ID may be answered later; this one must be stored before its B.
      burst.ready_cycle = std::max(burst.ready_cycle, burst.store_cycle);
      break;
  }
  stores_due_.emplace(burst.store_cycle, &burst);
  writes_.push_back(std::move(filling_));
}

// The bursts whose time has come, in the order of acceptance.
template <typename Burst>
void HostMemory::take_due(Due<Burst>& queue, std::vector<Burst*>& due) {
  due.clear();
  while (!queue.empty() && queue.top().first <= cycle_) {
    due.push_back(queue.top().second);
    queue.pop();
  }
  std::ranges::sort(due, {}, &Burst::number);
}

// Writes before reads.
void HostMemory::touch_memory() {
  take_due(stores_due_, due_writes_);
  for (WriteBurst* burst : due_writes_) store(*burst);
  take_due(reads_due_, due_reads_);
  for (ReadBurst* burst : due_reads_) sample(*burst);
}

bool HostMemory::touches(const AxiAddress& address, uint64_t addr, uint64_t bytes) const {
  const uint64_t last = aligned(address) + burst_bytes(address) - 1;
  return address.addr <= addr + (bytes - 1) && addr <= last;
}

bool HostMemory::hits_error_range(const AxiAddress& address, bool write) const {
  return std::ranges::any_of(error_ranges_, [&](const ErrorRange& range) {
    return (write ? range.writes : range.reads) && touches(address, range.addr, range.bytes);
  });
}

uint32_t HostMemory::slowness(const AxiAddress& address) const {
  uint32_t cycles = 0;
  for (const SlowRange& range : slow_ranges_) {
    if (touches(address, range.addr, range.bytes)) cycles = std::max(cycles, range.cycles);
  }
  return cycles;
}

void HostMemory::sample(ReadBurst& burst) {
  const size_t skipped = burst.ar.addr - aligned(burst.ar);
  burst.data.assign(burst_bytes(burst.ar), kPoison);
  const auto wanted = std::span(burst.data).subspan(skipped);
  if (hits_error_range(burst.ar, false) || happens(config_.read_error, kReadError, burst.number)) {
    burst.resp = AxiResp::slverr;
  } else if (!target_.read(burst.ar.user, burst.ar.addr, wanted)) {
    burst.resp = AxiResp::decerr;
    std::ranges::fill(wanted, kPoison);
  }
  burst.sampled = true;
  counters_.read_errors += burst.resp != AxiResp::okay;
  if (observer_) {
    observer_({.cycle = cycle_,
               .write = false,
               .function = burst.ar.user,
               .addr = burst.ar.addr,
               .data = wanted,
               .ok = burst.resp == AxiResp::okay});
  }
}

void HostMemory::store(WriteBurst& burst) {
  const bool fails =
      hits_error_range(burst.aw, true) || happens(config_.write_error, kWriteError, burst.number);
  if (fails) burst.resp = AxiResp::slverr;
  // Runs of enabled bytes, across beats.
  const size_t width = config_.data_bytes;
  const uint64_t full = ~uint64_t{0} >> (64 - width);
  constexpr size_t kNone = ~size_t{0};
  size_t begin = kNone;
  for (size_t beat = 0; beat < burst.strobes.size(); ++beat) {
    const uint64_t mask = burst.strobes[beat];
    const bool uniform = mask == 0 || mask == full;  // then its first byte tells for all
    for (size_t i = 0; i < (uniform ? 1 : width); ++i) {
      const size_t at = beat * width + i;
      const bool enabled = (mask >> i & 1) != 0;
      if (enabled && begin == kNone) begin = at;
      if (!enabled && begin != kNone) {
        store_run(burst, begin, at, fails);
        begin = kNone;
      }
    }
  }
  if (begin != kNone) store_run(burst, begin, burst.data.size(), fails);
  burst.stored = true;
  counters_.write_errors += burst.resp != AxiResp::okay;
}

void HostMemory::store_run(WriteBurst& burst, size_t begin, size_t end, bool fails) {
  const uint64_t addr = aligned(burst.aw) + begin;
  const auto run = std::span<const uint8_t>(burst.data).subspan(begin, end - begin);
  const bool ok = !fails && target_.write(burst.aw.user, addr, run);
  if (!ok && !fails) burst.resp = AxiResp::decerr;
  if (observer_) {
    observer_({.cycle = cycle_,
               .write = true,
               .function = burst.aw.user,
               .addr = addr,
               .data = run,
               .ok = ok});
  }
}

// A sampled burst that is the oldest of its ID; without reordering only the oldest of all.
HostMemory::ReadBurst* HostMemory::choose_read() const {
  if (!config_.reorder) return reads_.front()->sampled ? reads_.front().get() : nullptr;
  std::vector<ReadBurst*> ready;
  std::vector<uint16_t> ids;
  for (const auto& burst : reads_) {
    if (std::ranges::find(ids, burst->ar.id) != ids.end()) continue;
    ids.push_back(burst->ar.id);
    if (burst->sampled) ready.push_back(burst.get());
  }
  if (ready.empty()) return nullptr;
  return ready[below(ready.size(), bits(kChoice, counters_.read_beats))];
}

void HostMemory::offer_read() {
  if (r_ || reads_.empty() || happens(config_.stall_r, kStallR, cycle_)) return;
  if (current_read_ != nullptr && config_.reorder &&
      happens(config_.interleave, kInterleave, counters_.read_beats)) {
    current_read_ = nullptr;
  }
  if (current_read_ == nullptr) current_read_ = choose_read();
  if (current_read_ == nullptr) return;
  ReadBurst& burst = *current_read_;
  AxiRead& beat = r_.emplace();
  const auto from = burst.data.begin() + static_cast<std::ptrdiff_t>(burst.next_beat) *
                                             static_cast<std::ptrdiff_t>(config_.data_bytes);
  std::copy_n(from, config_.data_bytes, beat.data.begin());
  beat.id = burst.ar.id;
  beat.resp = burst.resp;
  beat.last = burst.next_beat == burst.ar.len;
  ++burst.next_beat;
  ++counters_.read_beats;
  if (beat.last) {
    const auto done = std::ranges::find(reads_, &burst, &std::unique_ptr<ReadBurst>::get);
    spare_reads_.push_back(std::move(*done));
    reads_.erase(done);
    current_read_ = nullptr;
  }
}

void HostMemory::offer_response() {
  if (b_ || writes_.empty() || happens(config_.stall_b, kStallB, cycle_)) return;
  // Within an ID ready cycles never fall, so the first that is ready is the oldest of its ID.
  const auto end = config_.reorder ? writes_.end() : writes_.begin() + 1;
  const auto burst = std::find_if(writes_.begin(), end, [this](const auto& candidate) {
    return candidate->stored && candidate->ready_cycle <= cycle_;
  });
  if (burst == end) return;
  b_ = AxiWriteResponse{(*burst)->aw.id, (*burst)->resp};
  spare_writes_.push_back(std::move(*burst));
  writes_.erase(burst);
}

bool HostMemory::busy() const {
  return r_ || b_ || !reads_.empty() || !writes_.empty() || !addresses_.empty() ||
         !early_.empty() || ar_waiting_ || aw_waiting_ || w_waiting_;
}

uint64_t HostMemory::next_event_cycle() const {
  if (!busy()) return std::numeric_limits<uint64_t>::max();
  uint64_t next = std::numeric_limits<uint64_t>::max();
  if (r_ || b_ || ar_waiting_ || aw_waiting_ || w_waiting_) return cycle_;
  if (!reads_due_.empty()) next = std::min(next, reads_due_.top().first);
  if (!stores_due_.empty()) next = std::min(next, stores_due_.top().first);
  for (const auto& burst : reads_) {
    if (burst->sampled) return cycle_;
  }
  for (const auto& burst : writes_) next = std::min(next, std::max(burst->ready_cycle, cycle_));
  // step() that ends the cycle before makes it visible.
  return next == std::numeric_limits<uint64_t>::max() ? next : std::max(next, cycle_ + 1) - 1;
}

void HostMemory::skip_to(uint64_t cycle) {
  if (cycle < cycle_ || cycle > next_event_cycle()) {
    throw std::logic_error("host memory: cannot skip from cycle " + std::to_string(cycle_) +
                           " to " + std::to_string(cycle));
  }
  cycle_ = cycle;
}

void HostMemory::reset() {
  reads_.clear();
  reads_due_ = {};
  current_read_ = nullptr;
  addresses_.clear();
  early_.clear();
  filling_.reset();
  writes_.clear();
  stores_due_ = {};
  r_.reset();
  b_.reset();
  ar_waiting_.reset();
  aw_waiting_.reset();
  w_waiting_.reset();
}

void HostMemory::add_error_range(uint64_t addr, uint64_t bytes, bool reads, bool writes) {
  if (bytes == 0) throw std::invalid_argument("empty error range");
  error_ranges_.push_back({addr, bytes, reads, writes});
}

void HostMemory::add_slow_range(uint64_t addr, uint64_t bytes, uint32_t cycles) {
  if (bytes == 0) throw std::invalid_argument("empty slow range");
  slow_ranges_.push_back({addr, bytes, cycles});
}

}  // namespace roci::sim
