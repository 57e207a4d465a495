// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The transmit side behind the responder's responses, as far as the responder sees it: every packet
// that was taken is reported in order, when it needs nothing of memory any more; if it goes to the
// wire, once more when it has left.
#pragma once

#include <deque>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

namespace roci::test::responder {

/// Drives `done_valid_i`, `done_i`, `done_wire_i`, `left_valid_i` and `left_i`, at most one report of
/// each kind per cycle. Attach it to the module's clock.
class Departures : public Agent {
 public:
  Departures(Dut<DUT_CLASS>& dut, std::uint64_t salt) : dut_(dut), random_(salt) {
    dut->done_valid_i = 0;
    dut->done_wire_i = 0;
    dut->left_valid_i = 0;
  }
  /// A packet was taken; it leaves some cycles later.
  void take(const sv::roci_pkg::tx_item_t& item) {
    sv::roci_pkg::tx_done_t done{};
    done.fate = sv::roci_pkg::TX_SENT;
    done.source = item.desc.source;
    done.qp = item.desc.qp;
    done.psn = item.desc.psn;
    done.wqe_index = item.desc.wqe_index;
    done.colour = item.desc.colour;
    report(done, random_.between(least, most), !random_.chance(near));
  }
  /// Reports this, when everything before it was reported and `cycles` have gone by.
  void report(const sv::roci_pkg::tx_done_t& done, std::uint64_t cycles = 1, bool to_wire = false) {
    waiting_.push_back({done, dut_.cycle() + cycles, to_wire});
  }
  bool empty() const { return waiting_.empty() && wire_.empty(); }
  void sample() override {}
  void drive() override {
    const bool now = !hold && !waiting_.empty() && waiting_.front().cycle <= dut_.cycle() &&
                     next_done_ <= dut_.cycle();
    dut_->done_valid_i = now;
    if (now) next_done_ = dut_.cycle() + kPacketCycles;
    const bool left = !hold && !wire_.empty() && wire_.front().cycle <= dut_.cycle() &&
                      next_left_ <= dut_.cycle();
    dut_->left_valid_i = left;
    if (left) {
      next_left_ = dut_.cycle() + kFrameCycles;
      wire_.front().done.pack(dut_->left_i);
      wire_.pop_front();
    }
    if (!now) return;
    Waiting packet = waiting_.front();
    waiting_.pop_front();
    packet.done.pack(dut_->done_i);
    dut_->done_wire_i = packet.to_wire;
    if (!packet.to_wire) return;
    packet.cycle = dut_.cycle() + random_.between(least, most);
    wire_.push_back(packet);
  }

  std::uint64_t least = 1, most = 40;   // cycles from the responder to the wire
  double near = 0.3;                    // share of the packets that do not go to the wire
  bool hold = false;                    // nothing leaves

 private:
  struct Waiting {
    sv::roci_pkg::tx_done_t done;
    std::uint64_t cycle;
    bool to_wire;
  };
  // The shortest packet is an ACK: 60 bytes, on the wire with the Ethernet header 74.
  static constexpr std::uint64_t kPacketCycles = ROCI_CONFIG_WIDE ? 1 : 8;
  static constexpr std::uint64_t kFrameCycles = ROCI_CONFIG_WIDE ? 2 : 10;

  Dut<DUT_CLASS>& dut_;
  Random random_;
  std::deque<Waiting> waiting_, wire_;
  std::uint64_t next_done_ = 0, next_left_ = 0;
};

}  // namespace roci::test::responder
