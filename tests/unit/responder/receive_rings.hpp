// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Receive rings in host memory: the program's side, and the DMA client that reads them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "responder/responder_model.hpp"

namespace roci::test::responder {

namespace rc = roci::sv::roci_config_pkg;

inline constexpr unsigned num_qps = 1u << rc::QP_BITS;

/// Host memory behind DMA client 2: answers in order, after a latency, with bytes of the rings.
class RingMemory : public Agent {
 public:
  template <class Dut>
  explicit RingMemory(Dut& dut)
      : requests_("rq request", dut->req_valid_o, dut->req_ready_i, dut->req_o),
        beats_("rq beat", dut->beat_valid_i, dut->beat_ready_o, dut->beat_i) {
    requests_.collect();
    requests_.on_transfer([this](const rp::dma_read_req_t& r) { request(r); });
  }
  /// Cycles between request and data.
  void latency(unsigned low, unsigned high) { low_ = low, high_ = high; }
  /// Idle patterns of both channels.
  void stall(const Stall& request, const Stall& beat) {
    requests_.stall(request);
    beats_.stall(beat);
  }
  std::vector<std::uint8_t>& page(unsigned fn, std::uint64_t address) {
    auto& p = pages_[{fn, address >> 12}];
    p.resize(4096);
    return p;
  }
  void write(unsigned fn, std::uint64_t address, const std::vector<std::uint8_t>& bytes) {
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      page(fn, address + n)[(address + n) & 4095] = bytes[n];
    }
  }
  /// Reads of these 32 bytes end in a bus error.
  void poison(unsigned fn, std::uint64_t address, bool bad) {
    if (bad) poisoned_.insert({fn, address >> 5});
    else poisoned_.erase({fn, address >> 5});
  }
  std::uint64_t requests() const { return requests_.transfers(); }
  bool busy() const { return !pending_.empty() || !beats_.empty(); }
  Random& random() { return random_; }

  void sample() override {
    ++cycle_;
    requests_.sample();
    beats_.sample();
    while (!pending_.empty() && pending_.front().first <= cycle_) {
      beats_.push(pending_.front().second);
      pending_.pop_front();
    }
  }
  void drive() override {
    requests_.drive();
    beats_.drive();
  }

 private:
  template <class Data, std::size_t N>
  static void assign(Data& data, const std::array<sv::Word, N>& words) {
    if constexpr (std::is_integral_v<Data>) {
      data = words[0] | (std::uint64_t{words[1]} << 32);
    } else {
      data = words;
    }
  }

  void request(const rp::dma_read_req_t& r) {
    if (r.length == 0 || (r.addr & 0xfff) + r.length > 4096) throw Failure("bad DMA request");
    const std::uint64_t when =
        std::max(last_, cycle_ + random_.between(low_, high_));
    last_ = when;
    constexpr std::uint64_t bytes = rc::DATA_BYTES;
    const std::uint64_t end = r.addr + r.length;
    for (std::uint64_t at = r.addr & ~(bytes - 1); at < end; at += bytes) {
      rp::read_beat_t beat{};
      std::array<sv::Word, (8 * bytes + 31) / 32> words{};
      for (std::uint64_t b = 0; b < bytes; ++b) {
        // lanes outside of the request carry rubbish
        const bool inside = at + b >= r.addr && at + b < end;
        const std::uint8_t value =
            inside ? page(r.fn, at + b)[(at + b) & 4095] : static_cast<std::uint8_t>(random_());
        words[b / 4] |= static_cast<sv::Word>(value) << (8 * (b % 4));
        if (inside && poisoned_.count({r.fn, (at + b) >> 5})) beat.err = true;
      }
      assign(beat.data, words);
      beat.last = at + bytes >= end;
      pending_.push_back({when, beat});
    }
  }

  Sink<rp::dma_read_req_t> requests_;
  Source<rp::read_beat_t> beats_;
  Random random_{77};
  std::map<std::pair<unsigned, std::uint64_t>, std::vector<std::uint8_t>> pages_;
  std::set<std::pair<unsigned, std::uint64_t>> poisoned_;
  std::deque<std::pair<std::uint64_t, rp::read_beat_t>> pending_;
  std::uint64_t cycle_ = 0, last_ = 0;
  unsigned low_ = 5, high_ = 40;
};

/// A receive ring as the program sees it.
struct Ring {
  unsigned number = 0;          // as in column RQ
  unsigned fn = 0;
  unsigned log2 = 4, stride_code = 0, slot_base = 0, slot_log2 = 3;
  std::uint64_t address = 0;
  std::uint16_t index = 0;      // next to post
  std::uint64_t completed = 0;  // entries that may be posted again
  ReceiveQueue queue;
  std::deque<std::uint32_t> cookies;   // posted and not completed, in order

  unsigned stride() const { return 32u << stride_code; }
  unsigned max_sge() const { return stride() / 16 - 1; }
  std::uint64_t room() const { return (1u << log2) - (queue.posted_count - completed); }
};

/// Bytes of a WQE as the host writes them (hwif rq_wqe_header, sge); the rest of the entry is old.
inline std::vector<std::uint8_t> wqe_bytes(const Wqe& wqe, unsigned stride, Random& random) {
  std::vector<std::uint8_t> bytes = random.bytes(stride);
  const auto put = [&](std::size_t offset, std::uint64_t value, unsigned count) {
    for (unsigned n = 0; n < count && offset + n < bytes.size(); ++n) {
      bytes[offset + n] = static_cast<std::uint8_t>(value >> (8 * n));
    }
  };
  put(0, wqe.cookie, 4);
  put(4, wqe.count, 1);
  for (std::size_t n = 0; n < wqe.sges.size(); ++n) {
    put(16 + 16 * n, wqe.sges[n].va, 8);
    put(24 + 16 * n, wqe.sges[n].length, 4);
    put(28 + 16 * n, wqe.sges[n].lkey, 4);
  }
  return bytes;
}

/// Puts a WQE into the next entry of the ring; the program still has to ring.
inline void post_wqe(RingMemory& memory, Ring& ring, const Wqe& wqe, Random& random) {
  const std::uint64_t at = ring.address + (ring.index & ((1u << ring.log2) - 1)) * ring.stride();
  memory.write(ring.fn, at, wqe_bytes(wqe, ring.stride(), random));
  for (unsigned n = 0; n < ring.stride(); n += 32) memory.poison(ring.fn, at + n, false);
  if (wqe.unreadable) {
    memory.poison(ring.fn, at + random.below(ring.stride() / 32) * 32, true);
  } else {
    ring.cookies.push_back(wqe.cookie);
  }
  ring.queue.posted.push_back(wqe);
  ++ring.queue.posted_count;
  ++ring.index;
}

/// A WQE for this ring with at least `bytes` of room, in random SGEs.
inline Wqe random_wqe(Random& random, const Ring& ring, std::uint64_t bytes) {
  static std::uint32_t next_cookie = 1;
  Wqe wqe;
  wqe.cookie = next_cookie++;
  const unsigned count = static_cast<unsigned>(
      random.between(bytes == 0 ? 0 : 1, random.chance(0.5) ? 1 : ring.max_sge()));
  std::uint64_t left = bytes;
  for (unsigned n = 0; n < count; ++n) {
    Sge sge;
    sge.va = random();
    sge.lkey = static_cast<std::uint32_t>(random()) | 1u;
    std::uint64_t part = random.chance(0.2) ? 0 : random.below(left + 1);
    if (n + 1 == count) part = left + random.below(3) * 100;
    sge.length = static_cast<std::uint32_t>(part);
    left -= std::min(left, part);
    wqe.sges.push_back(sge);
  }
  wqe.count = count;
  return wqe;
}

}  // namespace roci::test::responder
