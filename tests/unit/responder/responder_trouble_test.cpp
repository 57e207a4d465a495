// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_trouble: each refused or aborted READ response becomes the right operation, with PSN and
// MSN of its entry; good packets and requests become none.
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "responder/responder_model.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
using namespace roci::test::responder;
namespace rs = roci::sv::responder_pkg;
using roci::sv::roci_hwif_pkg::cqe_status_e;     // the models need this package

/// The replay table: granted reads answer two cycles later.
class Entries : public Agent {
 public:
  Entries(Dut<DUT_CLASS>& dut, std::uint64_t salt) : dut_(dut), random_(salt) {}
  void sample() override {
    pipe_.push_front(dut_->entry_read_o && dut_->entry_granted_i
                         ? std::optional<unsigned>(dut_->entry_slot_o) : std::nullopt);
    if (pipe_.size() > 2) pipe_.pop_back();
  }
  void drive() override {
    dut_->entry_granted_i = random_.chance(0.5);
    const bool now = pipe_.size() == 2 && pipe_[1];
    (now ? table[*pipe_[1]] : random_payload<rs::replay_entry_t>(random_)).pack(dut_->entry_i);
  }
  std::map<unsigned, rs::replay_entry_t> table;

 private:
  Dut<DUT_CLASS>& dut_;
  Random random_;
  std::deque<std::optional<unsigned>> pipe_;
};
}  // namespace

TEST_CASE("random cases") {
  Random random;
  for (int run = 0; run < 6; ++run) {
    Dut<DUT_CLASS> dut(random());
    Entries entries(dut, random());
    Source<rp::tx_refused_t> refused("refused", dut->refused_valid_i, dut->refused_ready_o,
                                     dut->refused_i);
    Source<rp::atomic_done_t> failed("failed", dut->failed_valid_i, dut->failed_ready_o,
                                     dut->failed_i);
    Sink<rs::respond_op_t> ops("op", dut->op_valid_o, dut->op_ready_i, dut->op_o);
    failed.stall(Stall::any(random));
    refused.stall(Stall::any(random));
    ops.stall(Stall::any(random));
    dut->done_valid_i = 0;
    dut.reset();
    dut.tick(2);
    dut.attach(entries);
    dut.attach(refused);
    dut.attach(failed);
    dut.attach(ops);
    for (unsigned slot = 0; slot < 32; ++slot) {
      auto e = random_payload<rs::replay_entry_t>(random);
      e.packets = static_cast<std::uint32_t>(random.between(1, 50));
      entries.table[slot] = e;
    }
    for (std::size_t n = 0; n < scaled(200); ++n) {
      const auto slot = static_cast<unsigned>(random.below(32));
      const auto& e = entries.table[slot];
      const auto packet = static_cast<std::uint32_t>(random.below(e.packets + 5));
      const std::uint32_t psn = (e.first_psn + packet) & psn_mask;
      const auto qp = static_cast<std::uint16_t>(random.below(60));
      rs::respond_op_t want{};
      want.qp = static_cast<decltype(want.qp)>(qp);
      want.ordinal = e.ordinal;
      want.packet = packet;
      want.info.kind = rp::RESPOND_NAK;
      want.info.psn = psn;
      want.info.msn = (e.msn - 1) & psn_mask;
      want.kind = rs::RESPOND_OP_FATAL;
      const auto kind = random.below(6);
      if (kind == 5) {
        rp::atomic_done_t a = random_payload<rp::atomic_done_t>(random);
        a.qp = static_cast<decltype(a.qp)>(qp);
        a.psn = psn;
        a.slot = static_cast<decltype(a.slot)>(slot);
        a.failed = true;
        want.info.syndrome = 0x63;
        failed.push(a);
        ops.expect(want);
      } else if (kind == 0) {
        rp::tx_refused_t r{};
        r.qp = static_cast<decltype(r.qp)>(qp);
        r.psn = psn;
        r.wqe_index = static_cast<std::uint16_t>(slot);
        r.status = random.chance(0.2) ? rp::XLAT_BUS_ERROR
                                      : static_cast<rp::xlat_status_e>(random.between(1, 4));
        want.by_access = r.status != rp::XLAT_BUS_ERROR;
        want.info.syndrome = want.by_access ? 0x62 : 0x63;
        refused.push(r);
        ops.expect(want);
      } else {
        rp::tx_done_t d{};
        d.qp = static_cast<decltype(d.qp)>(qp);
        d.psn = psn;
        d.wqe_index = static_cast<std::uint16_t>(slot);
        d.source = kind == 1 ? rp::TX_REQUEST : rp::TX_RESPONSE;
        d.fate = kind == 2   ? rp::TX_SENT
                 : kind == 3 ? rp::TX_UNDERRUN
                             : rp::TX_BUS_ERROR;
        const bool again = random.chance(0.3);       // answered to its end before
        if (again) d.wqe_index |= 1u << 14;
        want.info.syndrome = 0x63;
        if (kind == 3) want.kind = rs::RESPOND_OP_LOWER;
        // an underrun of an entry that was reused needs nothing
        if ((kind == 4 && !again) || (kind == 3 && packet < e.packets)) ops.expect(want);
        d.pack(dut->done_i);
        dut->done_valid_i = 1;
        dut.tick();
        dut->done_valid_i = 0;
      }
      dut.run_until([&] { return refused.empty() && failed.empty() && !dut->busy_o; }, "case done");
      REQUIRE(ops.done());
    }
  }
}

TEST_CASE("busy from the first to the last; more aborted packets than there is room for") {
  Dut<DUT_CLASS> dut;
  Entries entries(dut, 1);
  Sink<rs::respond_op_t> ops("op", dut->op_valid_o, dut->op_ready_i, dut->op_o);
  ops.collect();
  ops.stall(Stall(1.0));
  dut->refused_valid_i = 0;
  dut->failed_valid_i = 0;
  dut->done_valid_i = 0;
  dut.reset();
  dut.tick(2);
  dut.attach(entries);
  dut.attach(ops);
  CHECK(!dut->busy_o);
  rp::tx_done_t d{};
  d.source = rp::TX_RESPONSE;
  d.fate = rp::TX_BUS_ERROR;
  d.pack(dut->done_i);
  dut->done_valid_i = 1;
  dut.tick(20);
  dut->done_valid_i = 0;
  CHECK(dut->busy_o);
  ops.stall(Stall(0.0));
  dut.run_until([&] { return !dut->busy_o; }, "quiet");
  CHECK(ops.received().size() == 9);              // one in hand, eight waiting
}
