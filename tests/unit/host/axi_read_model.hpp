// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Host memory behind an AXI4 read port, for unit tests.
//
// Does: checks the rules of AR (size, INCR, 4 KB, burst limit, one burst per ID); answers after a
// latency, in any order of IDs and with beats of different IDs mixed if asked for; bus errors by
// address. Contents are memory_byte(fn, addr): nothing is stored.
// Does not: look at rready (it must be constant 1, which is checked).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data_word.hpp"
#include "harness/harness.hpp"

namespace roci::test {

/// Agent on the ports axi_ar* and axi_r* of `Model`.
template <class Model>
class AxiReadModel : public Agent {
 public:
  AxiReadModel(Model& dut, unsigned burst_bytes, std::uint64_t salt)
      : dut_(dut), random_(salt), burst_bytes_(burst_bytes) {}

  /// Cycles from AR to the first beat at the earliest.
  void latency(unsigned cycles) { latency_ = cycles; }
  /// Answer bursts in random order and mix their beats; else strictly in order.
  void shuffle(bool on) { shuffle_ = on; }
  /// When arready and rvalid pause.
  void stall(Stall ar, Stall r) {
    ar_stall_ = ar;
    r_stall_ = r;
  }
  /// Words for which the bus answers with an error.
  void errors(std::function<bool(unsigned fn, std::uint64_t addr)> bad) { bad_ = std::move(bad); }

  /// Called with the function of each burst that is taken.
  void watch(std::function<void(unsigned fn)> watcher) { watcher_ = std::move(watcher); }

  /// Bursts taken so far.
  std::uint64_t bursts() const { return bursts_; }
  /// Most bursts outstanding at once.
  std::size_t most_outstanding() const { return most_; }
  /// Nothing outstanding.
  bool idle() const { return active_.empty(); }

  void sample() override {
    ++cycle_;
    if (!dut_.axi_rready_o) fail("rready is low");
    if (dut_.axi_arvalid_o) {
      const Address now{dut_.axi_araddr_o, static_cast<unsigned>(dut_.axi_arid_o),
                        static_cast<unsigned>(dut_.axi_arlen_o) + 1u,
                        static_cast<unsigned>(dut_.axi_aruser_o)};
      if (waiting_ && !(*waiting_ == now)) fail("AR changed while stalled");
      waiting_ = now;
      if (dut_.axi_arready_i) {
        accept(now);
        waiting_.reset();
      }
    } else if (waiting_) {
      fail("arvalid went away");
    }
  }

  void drive() override {
    dut_.axi_arready_i = !ar_stall_.next(random_);
    dut_.axi_rvalid_i = 0;
    dut_.axi_rlast_i = random_.chance(0.5);
    dut_.axi_rid_i = 0;
    dut_.axi_rresp_i = static_cast<CData>(random_.bits(2));
    if (r_stall_.next(random_)) return;
    std::vector<std::size_t> due;
    for (std::size_t n = 0; n < active_.size(); ++n) {
      if (active_[n].due > cycle_) continue;
      due.push_back(n);
      if (!shuffle_) break;
    }
    if (due.empty()) return;
    const std::size_t pick = due[shuffle_ ? random_.below(due.size()) : 0];
    Burst& burst = active_[pick];
    const std::uint64_t addr = burst.at.addr + std::uint64_t{burst.done} * data_bytes;
    const bool bad = bad_ && bad_(burst.at.fn, addr);
    for (unsigned n = 0; n < data_bytes; ++n) {
      set_byte(dut_.axi_rdata_i, n,
               bad ? static_cast<std::uint8_t>(random_()) : memory_byte(burst.at.fn, addr + n));
    }
    dut_.axi_rvalid_i = 1;
    dut_.axi_rid_i = static_cast<std::decay_t<decltype(dut_.axi_rid_i)>>(burst.at.id);
    dut_.axi_rresp_i = static_cast<CData>(bad ? 2 + random_.below(2) : 0);
    dut_.axi_rlast_i = ++burst.done == burst.at.beats;
    if (burst.done == burst.at.beats) {
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(pick));
    }
  }

 private:
  struct Address {
    std::uint64_t addr;
    unsigned id, beats, fn;
    bool operator==(const Address&) const = default;
  };
  struct Burst {
    Address at;
    unsigned done;
    std::uint64_t due;
  };

  [[noreturn]] void fail(const std::string& what) { stream_failure("axi read", cycle_, what); }

  void accept(const Address& at) {
    if (dut_.axi_arburst_o != 1 || (1u << dut_.axi_arsize_o) != data_bytes) fail("size or type");
    if (at.addr % data_bytes != 0) fail("address not aligned to the bus");
    if (at.addr / burst_bytes_ != (at.addr + at.beats * data_bytes - 1) / burst_bytes_) {
      fail("burst leaves its piece of " + std::to_string(burst_bytes_) + " bytes");
    }
    for (const Burst& other : active_) {
      if (other.at.id == at.id) fail("ID " + std::to_string(at.id) + " is in use");
    }
    if (watcher_) watcher_(at.fn);
    active_.push_back({at, 0, cycle_ + latency_});
    most_ = std::max(most_, active_.size());
    ++bursts_;
  }

  Model& dut_;
  Random random_;
  unsigned burst_bytes_;
  unsigned latency_ = 1;
  bool shuffle_ = false;
  Stall ar_stall_, r_stall_;
  std::function<bool(unsigned, std::uint64_t)> bad_;
  std::function<void(unsigned)> watcher_;
  std::vector<Burst> active_;
  std::optional<Address> waiting_;
  std::uint64_t cycle_ = 0, bursts_ = 0;
  std::size_t most_ = 0;
};

}  // namespace roci::test
