// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Host memory behind the NIC's AXI4 master, cycle by cycle: latency, jitter, reordering, stalls and
// errors are knobs, all seeded. It also checks the NIC's side of the protocol. Where the bytes live
// is the DmaTarget's business.
//
// When is memory touched? A read samples its whole burst in the cycle in which its latency is over,
// before its first beat can be seen. A write is stored when its response becomes visible (or
// earlier, see WriteVisibility), before reads that sample in the same cycle. So: who has seen B may
// rely on it; reads may overtake writes whose B is still out, as AXI allows.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "host_memory/access_log.hpp"
#include "host_memory/axi.hpp"
#include "host_memory/dma_target.hpp"

namespace roci::sim {

/// When a write reaches memory, between the acceptance of its last beat and its response.
enum class WriteVisibility : uint8_t {
  with_response,  ///< as late as allowed
  immediate,      ///< one cycle after its last beat
  random,         ///< anywhere between, in any order except for overlapping bytes
};

/// Knobs. Times in core cycles; probabilities per cycle for stalls, per burst for errors.
struct HostMemoryConfig {
  unsigned data_bytes = 64;      ///< 64 or 8
  uint32_t read_latency = 250;   ///< AR accepted in cycle c: first R valid in c + read_latency
  uint32_t read_jitter = 0;      ///< plus 0 … this
  uint32_t write_latency = 100;  ///< last W (and AW) accepted in c: B valid in c + write_latency
  uint32_t write_jitter = 0;
  WriteVisibility visibility = WriteVisibility::with_response;
  bool reorder = false;   ///< any ready burst may be next, never past an older one of its ID
  double interleave = 0;  ///< with reorder: probability per beat to go on with another burst's beat
  double stall_ar = 0;    ///< probability that ready is low
  double stall_aw = 0;
  double stall_w = 0;
  double stall_r = 0;  ///< probability that no R beat is offered though one could be
  double stall_b = 0;
  double read_error = 0;  ///< probability of SLVERR
  double write_error = 0;
  unsigned max_reads = 256;         ///< bursts outstanding; beyond: AR not ready
  unsigned max_writes = 128;        ///< bursts whose B was not taken; beyond: AW not ready
  unsigned early_write_beats = 64;  ///< W beats taken before their AW
  uint64_t seed = 1;
};

/// Counters and high-water marks.
struct HostMemoryCounters {
  uint64_t reads = 0;  ///< bursts accepted
  uint64_t read_beats = 0;
  uint64_t writes = 0;
  uint64_t write_beats = 0;
  uint64_t read_errors = 0;  ///< bursts answered with SLVERR or DECERR
  uint64_t write_errors = 0;
  unsigned most_reads = 0;  ///< outstanding at once
  unsigned most_writes = 0;
};

/// The memory system. In each cycle: read the outputs, drive the NIC, then step() with what the NIC
/// drove. Outputs depend only on earlier cycles. Not thread-safe.
class HostMemory {
 public:
  /// @throws std::invalid_argument if the width is neither 8 nor 64 or a limit is zero
  HostMemory(const HostMemoryConfig& config, DmaTarget& target);

  uint64_t cycle() const { return cycle_; }

  bool ar_ready() const;
  bool aw_ready() const;
  bool w_ready() const;
  /// The R beat that is valid in this cycle, or null; stays until taken.
  const AxiRead* r() const { return r_ ? &*r_ : nullptr; }
  /// The B response that is valid in this cycle, or null; stays until taken.
  const AxiWriteResponse* b() const { return b_ ? &*b_ : nullptr; }

  /// The clock edge that ends this cycle.
  /// @throws AxiProtocolError: valid dropped or payload changed while waiting; burst not INCR, not
  ///         full width or across 4 KB; WLAST early or missing; strobes outside the burst
  void step(const AxiMaster& master);

  /// Anything outstanding.
  bool busy() const;
  /// The next cycle in which an output can change without new requests; the largest number if none.
  uint64_t next_event_cycle() const;
  /// Jumps to a cycle, no later than the next event. @throws std::logic_error otherwise
  void skip_to(uint64_t cycle);
  /// Forgets everything outstanding (the NIC was reset). Stores that were due later do not happen.
  void reset();

  /// Answers bursts that touch [addr, addr + bytes) with SLVERR, for all functions.
  void add_error_range(uint64_t addr, uint64_t bytes, bool reads, bool writes);
  void clear_error_ranges() { error_ranges_.clear(); }
  /// Reads that touch [addr, addr + bytes) come so many cycles later than others, for all functions:
  /// memory that has moved far away. Without `reorder` later bursts wait behind them.
  void add_slow_range(uint64_t addr, uint64_t bytes, uint32_t cycles);

  /// Sees every access when memory is touched.
  void set_observer(AccessObserver observer) { observer_ = std::move(observer); }

  const HostMemoryCounters& counters() const { return counters_; }

 private:
  struct ReadBurst {
    AxiAddress ar;
    uint64_t number;
    uint64_t ready_cycle;
    bool sampled = false;
    unsigned next_beat = 0;
    AxiResp resp = AxiResp::okay;
    std::vector<uint8_t> data;  // whole beats

    // Fresh again, but for the buffer.
    void recycle() {
      sampled = false;
      next_beat = 0;
      resp = AxiResp::okay;
    }
  };
  struct WriteBurst {
    AxiAddress aw;
    uint64_t number;
    uint64_t ready_cycle;
    uint64_t store_cycle;
    bool stored = false;
    AxiResp resp = AxiResp::okay;
    std::vector<uint8_t> data;
    std::vector<uint64_t> strobes;  // one per beat

    void recycle() {
      stored = false;
      resp = AxiResp::okay;
      data.clear();
      strobes.clear();
    }
  };
  struct ErrorRange {
    uint64_t addr;
    uint64_t bytes;
    bool reads;
    bool writes;
  };
  struct SlowRange {
    uint64_t addr;
    uint64_t bytes;
    uint32_t cycles;
  };
  template <typename Burst>
  using Due = std::priority_queue<std::pair<uint64_t, Burst*>,
                                  std::vector<std::pair<uint64_t, Burst*>>, std::greater<>>;

  [[noreturn]] void fail(const char* channel, const std::string& what) const;
  void check_address(const char* channel, const AxiAddress& address) const;
  template <typename T>
  void check_stable(const char* channel, std::optional<T>& waiting, bool valid, const T& now,
                    bool ready) const;
  uint64_t bits(unsigned stream, uint64_t counter) const;
  bool happens(double probability, unsigned stream, uint64_t counter) const;
  bool touches(const AxiAddress& address, uint64_t addr, uint64_t bytes) const;
  bool hits_error_range(const AxiAddress& address, bool write) const;
  uint32_t slowness(const AxiAddress& address) const;
  uint64_t aligned(const AxiAddress& address) const {
    return address.addr & ~uint64_t{config_.data_bytes - 1};
  }
  size_t burst_bytes(const AxiAddress& address) const {
    return (size_t{address.len} + 1) * config_.data_bytes;
  }

  void accept_read(const AxiAddress& ar);
  void accept_write_beat();
  void finish_write();
  void touch_memory();
  template <typename Burst>
  void take_due(Due<Burst>& queue, std::vector<Burst*>& due);
  void sample(ReadBurst& burst);
  void store(WriteBurst& burst);
  void store_run(WriteBurst& burst, size_t begin, size_t end, bool fails);
  ReadBurst* choose_read() const;
  void offer_read();
  void offer_response();

  HostMemoryConfig config_;
  DmaTarget& target_;
  AccessObserver observer_;
  std::vector<ErrorRange> error_ranges_;
  std::vector<SlowRange> slow_ranges_;
  uint64_t cycle_ = 0;
  HostMemoryCounters counters_;

  std::deque<std::unique_ptr<ReadBurst>> reads_;  // in the order of acceptance
  Due<ReadBurst> reads_due_;                      // not sampled yet
  ReadBurst* current_read_ = nullptr;             // burst whose beats are going out

  std::deque<AxiAddress> addresses_;  // AW whose data is not complete
  std::deque<AxiWrite> early_;        // W beats whose AW is not here
  std::unique_ptr<WriteBurst> filling_;
  std::deque<std::unique_ptr<WriteBurst>> writes_;  // complete, B not taken
  Due<WriteBurst> stores_due_;

  // Reused: their buffers, every cycle.
  std::vector<std::unique_ptr<ReadBurst>> spare_reads_;
  std::vector<std::unique_ptr<WriteBurst>> spare_writes_;
  std::vector<ReadBurst*> due_reads_;
  std::vector<WriteBurst*> due_writes_;

  std::optional<AxiRead> r_;
  std::optional<AxiWriteResponse> b_;
  std::optional<AxiAddress> ar_waiting_, aw_waiting_;  // valid but not ready in the last cycle
  std::optional<AxiWrite> w_waiting_;
};

}  // namespace roci::sim
