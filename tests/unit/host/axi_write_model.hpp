// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Host memory behind an AXI4 write port with one ID, for unit tests.
//
// Does: checks the rules of AW and W (stability, size, INCR, 4 KB, length and last); bytes reach
// memory when the response is given, not before; responses in order after a latency; bus errors by
// address (a failed burst writes nothing).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data_word.hpp"
#include "harness/harness.hpp"

namespace roci::test {

/// Agent on the ports axi_aw*, axi_w* and axi_b* of `Model`.
template <class Model>
class AxiWriteModel : public Agent {
 public:
  /// Function and address of a byte.
  using Place = std::pair<unsigned, std::uint64_t>;

  AxiWriteModel(Model& dut, std::uint64_t salt) : dut_(dut), random_(salt) {}

  /// Cycles from the last word to the response at the earliest.
  void latency(unsigned cycles) { latency_ = cycles; }
  /// When awready, wready and bvalid pause.
  void stall(Stall aw, Stall w, Stall b) {
    aw_stall_ = aw;
    w_stall_ = w;
    b_stall_ = b;
  }
  /// First words of bursts that fail.
  void errors(std::function<bool(unsigned fn, std::uint64_t addr)> bad) { bad_ = std::move(bad); }

  /// Memory as it is after the responses given so far.
  const std::map<Place, std::uint8_t>& memory() const { return memory_; }
  /// Responses taken by the model so far.
  std::uint64_t responses() const { return responses_; }
  /// Words taken so far.
  std::uint64_t words() const { return words_; }
  /// Most bursts without a response at once.
  std::size_t most_outstanding() const { return most_; }
  /// Nothing under way.
  bool idle() const { return addresses_.empty() && bursts_.empty() && current_.empty(); }

  void sample() override {
    ++cycle_;
    if (!dut_.axi_bready_o) fail("bready is low");
    if (dut_.axi_bvalid_i) ++responses_;
    sample_address();
    sample_word();
    most_ = std::max(most_, addresses_.size() + bursts_.size());
  }

  void drive() override {
    dut_.axi_awready_i = !aw_stall_.next(random_);
    dut_.axi_wready_i = !w_stall_.next(random_);
    dut_.axi_bvalid_i = 0;
    dut_.axi_bresp_i = static_cast<CData>(random_.bits(2));
    if (bursts_.empty() || bursts_.front().due > cycle_ || b_stall_.next(random_)) return;
    const Burst burst = std::move(bursts_.front());
    bursts_.pop_front();
    const bool bad = bad_ && bad_(burst.at.fn, burst.at.addr);
    dut_.axi_bvalid_i = 1;
    dut_.axi_bresp_i = static_cast<CData>(bad ? 2 + random_.below(2) : 0);
    if (bad) return;
    for (std::size_t n = 0; n < burst.words.size(); ++n) {
      for (unsigned lane = 0; lane < data_bytes; ++lane) {
        if (burst.words[n].lanes[lane] < 0) continue;
        memory_[{burst.at.fn, burst.at.addr + n * data_bytes + lane}] =
            static_cast<std::uint8_t>(burst.words[n].lanes[lane]);
      }
    }
  }

 private:
  struct Address {
    std::uint64_t addr;
    unsigned words, fn;
    bool operator==(const Address&) const = default;
  };
  struct Word {
    std::vector<int> lanes;
    bool last;
    bool operator==(const Word&) const = default;
  };
  struct Burst {
    Address at;
    std::vector<Word> words;
    std::uint64_t due;
  };

  [[noreturn]] void fail(const std::string& what) { stream_failure("axi write", cycle_, what); }

  void sample_address() {
    if (!dut_.axi_awvalid_o) {
      if (aw_waiting_) fail("awvalid went away");
      return;
    }
    const Address now{dut_.axi_awaddr_o, dut_.axi_awlen_o + 1u, dut_.axi_awuser_o};
    if (aw_waiting_ && !(*aw_waiting_ == now)) fail("AW changed while stalled");
    aw_waiting_ = now;
    if (!dut_.axi_awready_i) return;
    aw_waiting_.reset();
    if (dut_.axi_awburst_o != 1 || (1u << dut_.axi_awsize_o) != data_bytes) fail("size or type");
    if (now.addr % data_bytes != 0) fail("address not aligned to the bus");
    if (now.addr / 4096 != (now.addr + now.words * data_bytes - 1) / 4096) fail("crosses 4 KB");
    addresses_.push_back(now);
    join();
  }

  void sample_word() {
    if (!dut_.axi_wvalid_o) {
      if (w_waiting_) fail("wvalid went away");
      return;
    }
    Word now{std::vector<int>(data_bytes, -1), dut_.axi_wlast_o != 0};
    for (unsigned lane = 0; lane < data_bytes; ++lane) {
      if ((dut_.axi_wstrb_o >> lane) & 1u) now.lanes[lane] = get_byte(dut_.axi_wdata_o, lane);
    }
    if (w_waiting_ && !(*w_waiting_ == now)) fail("W changed while stalled");
    w_waiting_ = now;
    if (!dut_.axi_wready_i) return;
    w_waiting_.reset();
    ++words_;
    current_.push_back(now);
    if (now.last) {
      complete_.push_back(std::move(current_));
      current_.clear();
      join();
    }
  }

  void join() {
    while (!addresses_.empty() && !complete_.empty()) {
      if (complete_.front().size() != addresses_.front().words) fail("burst of another length");
      bursts_.push_back({addresses_.front(), std::move(complete_.front()), cycle_ + latency_});
      addresses_.pop_front();
      complete_.pop_front();
    }
  }

  Model& dut_;
  Random random_;
  unsigned latency_ = 1;
  Stall aw_stall_, w_stall_, b_stall_;
  std::function<bool(unsigned, std::uint64_t)> bad_;
  std::optional<Address> aw_waiting_;
  std::optional<Word> w_waiting_;
  std::deque<Address> addresses_;
  std::vector<Word> current_;
  std::deque<std::vector<Word>> complete_;
  std::deque<Burst> bursts_;
  std::map<Place, std::uint8_t> memory_;
  std::uint64_t cycle_ = 0, responses_ = 0, words_ = 0;
  std::size_t most_ = 0;
};

}  // namespace roci::test
