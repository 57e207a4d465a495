// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_ack_output: every part of an action comes out once, in order per stream, with the
// static part of its QP; room is promised early enough; the fence sees what is held.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <map>

#include "requester/requester_bench.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace req = roci::sv::requester_pkg;
namespace hwif = roci::hwif;

namespace {

struct Fixed {
  unsigned cq, fn, type, qpn;
};

struct Bench : Agent {
  Dut<DUT_CLASS> dut;
  Sink<pkg::sq_completion_t> completion;
  Sink<pkg::retry_request_t> retry;
  Sink<Bits<pkg::qp_t_bits>> wake;
  Sink<pkg::state_error_t> error;
  Sink<pkg::event_t> event;
  Sink<req::ack_clear_t> clear;
  std::map<unsigned, Fixed> fixed;
  Random random;
  std::size_t left = 0;                // actions to make
  bool forced = false, looking = false;
  req::ack_action_t next{};
  std::int64_t held[2] = {0, 0};

  explicit Bench(std::uint64_t salt)
      : dut(salt),
        completion("completion", dut->completion_valid_o, dut->completion_ready_i,
                   dut->completion_o),
        retry("retry", dut->retry_valid_o, dut->retry_ready_i, dut->retry_o),
        wake("wake", dut->wake_valid_o, dut->wake_ready_i, dut->wake_o),
        error("error", dut->state_error_valid_o, dut->state_error_ready_i, dut->state_error_o),
        event("event", dut->event_valid_o, dut->event_ready_i, dut->event_o),
        clear("clear", dut->clear_valid_o, dut->clear_ready_i, dut->clear_o),
        random(salt) {
    dut->number_write_i = 0;
    dut->cq_write_i = 0;
    dut->action_valid_i = 0;
    dut.reset();
    for (unsigned qp = 0; qp < 4; ++qp) {
      Fixed f{static_cast<unsigned>(random.bits(pkg::cq_t_bits)),
              static_cast<unsigned>(random.bits(pkg::fn_t_bits)),
              static_cast<unsigned>(random.below(4)), static_cast<unsigned>(random.bits(24))};
      roci::sv::roci_hwif_pkg::ctx_qp_ack_t row{};
      row.cq = static_cast<std::uint16_t>(f.cq);
      row.fn = static_cast<std::uint8_t>(f.fn);
      row.qp_type = static_cast<decltype(row.qp_type)>(f.type);
      row.qpn = f.qpn;
      row.pack(dut->write_row_i);
      set(dut->write_qp_i, qp);
      dut->number_write_i = 1;
      dut->cq_write_i = 1;
      dut.tick();
      fixed[qp] = f;
    }
    dut->number_write_i = 0;
    dut->cq_write_i = 0;
    for (Agent* agent :
         std::initializer_list<Agent*>{&completion, &retry, &wake, &error, &event, &clear, this}) {
      dut.attach(*agent);
    }
  }

  void expect(const req::ack_action_t& a) {
    const Fixed& f = fixed[a.qp];
    if (a.complete) {
      pkg::sq_completion_t c{};
      c.colour = a.colour;
      c.qp = a.qp;
      c.completion.cq = static_cast<decltype(c.completion.cq)>(f.cq);
      c.completion.qpn = f.qpn;
      c.completion.opcode = a.wc_opcode;
      c.completion.wqe_index_or_cookie = a.wqe_index;
      c.completion.byte_len = a.byte_len;
      c.completion.status = a.status;
      c.completion.vendor_status = a.vendor_status;
      c.completion.is_error = a.status != 0;
      completion.expect(c);
    }
    if (a.request) retry.expect(a.retry);
    if (a.wake) wake.expect(Bits<pkg::qp_t_bits>(a.qp));
    if (a.fail) {
      pkg::state_error_t e{};
      e.qp = a.qp;
      e.send_only = f.type != 0;                         // wire.md 2.15: RC goes to ERR
      error.expect(e);
    }
    if (a.drained) {
      pkg::event_t e{};
      e.fn = static_cast<decltype(e.fn)>(f.fn);
      e.event_type = static_cast<std::uint8_t>(hwif::EqeType::SQ_DRAINED);
      e.object = f.qpn;
      e.data = a.psn;
      event.expect(e);
    }
    if (a.clear) clear.expect(a.cleared);
  }

  // The walker: shows a QP, looks at room, and its action is there one cycle later.
  void sample() override { looking = dut->room_o != 0 && left != 0 && random.chance(0.7); }
  void drive() override {
    dut->action_valid_i = looking || forced;
    next.pack(dut->action_i);
    if (looking) {
      --left;
      expect(next);
    }
    if (!forced) {
      next = random_payload<req::ack_action_t>(random);
      next.qp %= 4;
      next.retry.colour = next.colour;
    }
    forced = false;
    set(dut->action_qp_i, next.qp);
  }
  bool done() const {
    return left == 0 && completion.done() && retry.done() && wake.done() && error.done() &&
           event.done() && clear.done();
  }
};

}  // namespace

TEST_CASE("actions come out whole, whatever stalls") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Bench bench(random());
    bench.completion.stall(Stall::any(random));
    bench.retry.stall(Stall::any(random));
    bench.wake.stall(Stall::any(random));
    bench.error.stall(Stall::any(random));
    bench.event.stall(Stall::any(random));
    bench.clear.stall(Stall::any(random));
    bench.left = scaled(400);
    bench.dut.run_until([&] { return bench.done(); }, "actions");
    bench.dut.tick(5);
    CHECK(bench.dut->busy_o == 0);
  }
}

TEST_CASE("what waits keeps its colour busy") {
  Bench bench(3);
  bench.completion.stall(Stall(1.0));
  req::ack_action_t a{};
  a.complete = true;
  a.colour = 1;
  set(bench.dut->action_qp_i, a.qp);
  bench.next = a;
  bench.forced = true;
  bench.expect(a);
  bench.dut.tick(50);
  CHECK(bench.dut->busy_o == 2);
  bench.completion.stall(Stall(0.0));
  bench.dut.run_until([&] { return bench.done(); }, "completion");
  bench.dut.tick(3);
  CHECK(bench.dut->busy_o == 0);
}
