// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_send_judge against the rules written as a list of conditions in plain numbers. Random
// looks are bent so that every verdict and every edge of a window comes up often.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "requester/send_model.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
using namespace roci::test::send;
namespace spkg = roci::sv::requester_send_pkg;

namespace {

enum Verdict {
  kDiscard, kStall, kYield, kBusError, kLocalError, kFlush, kNopRecord, kSkip, kSendPacket
};
enum State { kReset, kInit, kRtr, kRts, kSqd, kSqe, kErr };

// Signed distance from b to a in the PSN circle; half of it is kHalf.
constexpr std::int64_t kHalf = -0x800000;
std::int64_t distance(std::uint32_t a, std::uint32_t b) {
  const std::int64_t d = (a - b) & kPsnMask;
  return d < 0x800000 ? d : d - 0x1000000;
}

struct Question {
  spkg::look_t look;
  spkg::row_t row;
  bool passed;                       // what need not be sent again is behind
  std::uint32_t psn;
  unsigned window_log2;
  bool quantum_over, quantum_late, follows;
};

// Which counter a STALL moves.
enum Why { kNoReason, kForWindow, kForRead, kForFence };

Verdict rules(const Question& q, Why& why) {
  why = kNoReason;
  const auto& w = q.look.wqe;
  const auto state = static_cast<State>(q.look.state);
  const auto kind = static_cast<unsigned>(w.kind);
  const bool nop = kind == 0, read = kind == 3 || kind == 5;   // or an atomic
  const std::uint32_t first = q.row.next_psn;
  const bool record = static_cast<std::uint16_t>(w.index - q.look.oldest_index) <
                      (1u << q.look.ctx.inflight_log2);
  const unsigned reads = static_cast<std::uint8_t>(q.row.read_ordinal - q.look.reads_done);
  if (w.epoch != q.look.epoch || state == kReset || state == kInit) return kDiscard;
  if (state == kErr || state == kSqe) return !w.bus_error && record ? kFlush : kStall;
  if (w.bus_error) return kBusError;
  if (state == kRtr || q.look.waiting) return kStall;
  if (state == kSqd && distance(first, q.row.max_psn) >= 0) return kStall;
  if (q.quantum_over) return kYield;
  if (!record || (w.fence && reads != 0)) {
    why = record ? kForFence : kForWindow;
    return kStall;
  }
  // which types have what (wire.md 1.4)
  bool fits = nop;
  switch (q.look.ctx.qp_type) {
    case 0: fits |= !w.datagram; break;
    case 1: fits |= !w.datagram && (kind == 1 || kind == 2); break;
    case 2:
    case 3: fits |= w.datagram && kind == 1; break;
    default: break;
  }
  const bool fine = w.vendor_status == 0 && fits;
  if (q.look.is_void && fine) return kNopRecord;
  if (q.look.stop_valid && distance(q.psn, q.look.stop_psn) >= 0) return kStall;
  if (!fine) return kLocalError;
  if (!q.passed && distance(q.row.resume_psn, first) > 0) return kSkip;
  const std::uint32_t last = (first + q.look.psn_count - 1) & kPsnMask;
  const auto from_acked = distance(q.psn, q.look.acked_psn);
  if ((from_acked >= 0 || from_acked == kHalf) &&
      ((last - q.look.acked_psn) & kPsnMask) >= 0x800000) {
    why = kForWindow;
    return kStall;
  }
  if (read && reads < q.look.ctx.max_rd_atomic) return kSendPacket;
  if (read) {
    why = kForRead;
    return kStall;
  }
  const std::uint32_t base = distance(q.look.acked_psn, q.row.read_end_psn) > 0
                                 ? q.look.acked_psn : q.row.read_end_psn;
  // no packet in the window is larger than this
  const std::uint64_t size = std::max({std::uint64_t{1} << q.look.size_log2,
                                       std::uint64_t{1} << q.row.size_before,
                                       std::uint64_t{1} << q.row.size_since});
  const std::uint64_t cap = std::max<std::uint64_t>(1, (std::uint64_t{1} << q.window_log2) / size);
  const auto out = distance(q.psn, base);
  if (out < 0 && out != kHalf) return kSendPacket;
  if (static_cast<std::uint64_t>(out & kPsnMask) < cap) return kSendPacket;
  why = kForWindow;
  return kStall;
}

Question ask(Random& random) {
  Question q{};
  q.look = random_payload<spkg::look_t>(random);
  q.row = random_payload<spkg::row_t>(random);
  auto& look = q.look;
  auto& w = look.wqe;
  const auto near = [&](std::uint32_t base, std::uint64_t span) {
    return static_cast<std::uint32_t>((base + random.between(0, 2 * span) - span) & kPsnMask);
  };
  w.kind = static_cast<spkg::kind_e>(random.below(6));
  w.bus_error = random.chance(0.05);
  if (random.chance(0.9)) w.vendor_status = 0;
  else w.vendor_status = static_cast<std::uint8_t>(random.between(1, 7));
  if (static_cast<unsigned>(w.kind) == 4) w.vendor_status = 1;
  w.fence = random.chance(0.2);
  if (random.chance(0.95)) look.epoch = w.epoch;
  look.state = static_cast<pkg::qp_state_e>(random.chance(0.7) ? 3 : random.below(7));
  look.waiting = random.chance(0.05);
  look.stop_valid = random.chance(0.2);
  look.ctx.qp_type = static_cast<std::uint8_t>(random.chance(0.6) ? 0 : random.below(5));
  w.datagram = random.chance(0.9) ? look.ctx.qp_type >= 2 : random.chance(0.5);
  look.is_void = static_cast<unsigned>(w.kind) == 0 || (w.datagram && random.chance(0.1));
  look.ctx.mtu_log2 = static_cast<std::uint8_t>(random.between(8, 12));
  for (auto* size : {&look.size_log2, &q.row.size_before, &q.row.size_since}) {
    *size = static_cast<std::uint8_t>(random.below(random.chance(0.5) ? 13 : 4));
  }
  look.oldest_index = static_cast<std::uint16_t>(
      w.index - random.below((2u << look.ctx.inflight_log2) + 1) + random.below(2));
  look.reads_done = static_cast<std::uint8_t>(q.row.read_ordinal - random.below(12));
  look.ctx.max_rd_atomic = static_cast<std::uint8_t>(random.below(12));
  look.psn_count = static_cast<std::uint32_t>(
      static_cast<unsigned>(w.kind) == 0 ? 0 : 1 + (random.bits(23) >> random.below(24)));
  const std::uint64_t span = random.chance(0.3) ? 0x7fffff : 1u << random.below(12);
  look.acked_psn = near(q.row.next_psn, span);
  q.row.max_psn = near(q.row.next_psn, random.below(4));
  q.row.resume_psn = near(q.row.next_psn, random.below(4));
  q.passed = random.chance(0.5);
  q.psn = q.passed ? (q.row.next_psn + static_cast<std::uint32_t>(
                         random.below(look.psn_count + 1))) & kPsnMask
                  : q.row.next_psn;
  q.row.read_end_psn = near(random.chance(0.5) ? look.acked_psn : q.psn, 1u << random.below(12));
  look.stop_psn = near(q.psn, 2);
  q.window_log2 = static_cast<unsigned>(random.between(6, 24));
  q.quantum_over = random.chance(0.05);
  q.quantum_late = random.chance(0.1);
  q.follows = random.chance(0.9);
  w.signaled = random.chance(0.3);
  w.blocks = static_cast<std::uint8_t>(random.chance(0.7) ? 1 : random.between(2, 8));
  look.ctx.inflight_log2 = static_cast<std::uint8_t>(random.between(3, 15));
  return q;
}

}  // namespace

TEST_CASE("every verdict by the rules") {
  Random random;
  Dut<DUT_CLASS> dut;
  std::array<std::size_t, 9> seen{};
  std::array<std::size_t, 4> reasons{};
  std::size_t left_out = 0;
  for (std::size_t n = 0; n < scaled(200000); ++n) {
    const Question q = ask(random);
    q.look.pack(dut->look_i);
    q.row.pack(dut->row_i);
    dut->passed_i = q.passed;
    dut->psn_i = q.psn;
    dut->window_log2_i = static_cast<CData>(q.window_log2);
    dut->quantum_over_i = q.quantum_over;
    dut->quantum_late_i = q.quantum_late;
    dut->follows_i = q.follows;
    dut.tick();
    Why why = kNoReason;
    const auto verdict = rules(q, why);
    if (dut->verdict_o != verdict) {
      CAPTURE(q.look.to_string(), q.row.to_string(), q.passed, q.psn, q.window_log2);
      REQUIRE(dut->verdict_o == verdict);
    }
    const auto stall = roci::sv::roci_count_pkg::stall_counters_t::unpack(dut->stall_o);
    REQUIRE(stall.tx_stall_window == (why == kForWindow));
    REQUIRE(stall.tx_stall_read == (why == kForRead));
    REQUIRE(stall.tx_stall_fence == (why == kForFence));
    ++reasons[why];
    ++seen[verdict];
    if (verdict == kLocalError) {
      REQUIRE(dut->vendor_status_o == (q.look.wqe.vendor_status ? q.look.wqe.vendor_status : 1));
    }
    if (verdict == kSendPacket) {
      REQUIRE(dut->last_psn_o == ((q.row.next_psn + q.look.psn_count - 1) & kPsnMask));
      const std::uint64_t mtu = std::uint64_t{1} << q.look.ctx.mtu_log2;
      const std::uint64_t cap =
          std::max<std::uint64_t>(1, (std::uint64_t{1} << q.window_log2) / mtu);
      const std::uint64_t every = std::max<std::uint64_t>(1, std::min<std::uint64_t>(16, cap / 4));
      const bool before_stop =
          q.look.stop_valid && ((q.psn + 1) & kPsnMask) == q.look.stop_psn;
      REQUIRE(dut->ask_ack_o == (q.row.unasked % every == every - 1 || before_stop));
      const auto& w = q.look.wqe;
      const unsigned used = static_cast<std::uint16_t>(w.index - q.look.oldest_index);
      const unsigned region = 1u << q.look.ctx.inflight_log2;
      const std::uint32_t base = distance(q.look.acked_psn, q.row.read_end_psn) > 0
                                     ? q.look.acked_psn : q.row.read_end_psn;
      const std::uint64_t size = std::max({std::uint64_t{1} << q.look.size_log2,
                                           std::uint64_t{1} << q.row.size_before,
                                           std::uint64_t{1} << q.row.size_since});
      const std::uint64_t room =
          std::max<std::uint64_t>(1, (std::uint64_t{1} << q.window_log2) / size);
      const bool leaves = q.follows && !w.signaled && static_cast<unsigned>(w.kind) != 3 &&
                          static_cast<unsigned>(w.kind) != 5 &&
                          w.blocks == 1 && static_cast<State>(q.look.state) == kRts &&
                          !q.look.stop_valid && !q.quantum_late &&
                          used + 1 < region && (q.row.unasked + 1u < region / 2 || region > 16) &&
                          2 * std::uint64_t{(q.psn - base) & kPsnMask} < room;
      REQUIRE(dut->leave_out_o == leaves);
      left_out += leaves;
    }
  }
  for (const auto count : seen) CHECK(count > 100);
  for (const auto count : reasons) CHECK(count > 100);
  CHECK(left_out > 100);
}
