// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_cq_events: completion events, CQ errors once, QPs that lose completions, silence of
// destroyed CQs; CQE_DONE tokens are taken whatever the readers of events do; fence.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace cq = roci::sv::queue_cq_pkg;
namespace hwif = roci::sv::roci_hwif_pkg;

struct Bench {
  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt),
        event("event", dut->event_valid_o, dut->event_ready_i, dut->event_o),
        error("error", dut->error_valid_o, dut->error_ready_i, dut->error_o) {
    event.collect();
    error.collect();
    dut->done_valid_i = 0;
    dut->doorbell_valid_i = 0;
    dut->stop_ready_i = 1;
    dut->stop_first_i = 0;
    dut->row_valid_i = 0;
    dut->colour_i = 0;
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 5000);
    dut.attach(event);
    dut.attach(error);
  }

  /// One cycle; answers a stop in the cycle after it was asked.
  void tick() {
    const bool asked = dut->stop_valid_o;
    const unsigned which = dut->stop_cq_o;
    dut.tick();
    dut->stop_first_i = asked && stopped.insert(which).second;
    dut.eval();
  }

  hwif::ctx_cq_t row(unsigned n, bool start, const hwif::ctx_cq_t& value) {
    dut->row_valid_i = 1;
    dut->row_start_i = start;
    dut->row_cq_i = static_cast<std::decay_t<decltype(dut->row_cq_i)>>(n);
    value.pack(dut->row_i);
    for (int i = 0; !dut->row_done_o; ++i) {
      REQUIRE(i < 50);
      tick();
    }
    dut->row_valid_i = 0;
    const auto answer = hwif::ctx_cq_t::unpack(dut->row_o);
    tick();
    return answer;
  }

  void create(unsigned n, bool valid = true) {
    hwif::ctx_cq_t value{};
    value.cqn = 0x1000 + n;
    value.valid = valid;
    value.fn = static_cast<std::uint8_t>(n % 4);
    value.eq = static_cast<std::uint16_t>(n % 8);
    row(n, true, value);
  }

  void arm(unsigned n, unsigned index, bool only = false) {
    pkg::doorbell_t d{};
    d.kind = pkg::DOORBELL_CQ_ARM;
    d.object_index = static_cast<std::uint16_t>(n);
    d.solicited_only = only;
    d.index = index;
    d.pack(dut->doorbell_i);
    dut->doorbell_valid_i = 1;
    tick();
    dut->doorbell_valid_i = 0;
  }

  /// A CQE_DONE token; returns the cycles it waited.
  unsigned done(unsigned n, unsigned index, bool placed, bool bus_error, unsigned qp,
                bool overflowed = false, bool live = true, bool payload_failed = false) {
    cq::done_t d{};
    d.cq = static_cast<decltype(d.cq)>(n);
    d.index = index;
    d.live = live;
    d.placed = placed;
    d.overflowed = overflowed;
    d.payload_failed = payload_failed;
    d.pack(dut->done_i);
    dut->done_qp_i = static_cast<std::decay_t<decltype(dut->done_qp_i)>>(qp);
    dut->done_error_i = bus_error;
    dut->done_valid_i = 1;
    dut.eval();
    unsigned waited = 0;
    for (; !dut->done_ready_o; ++waited) {
      REQUIRE(waited < 20);
      tick();
    }
    tick();
    dut->done_valid_i = 0;
    return waited;
  }

  Dut<DUT_CLASS> dut;
  Random random;
  Sink<pkg::event_t> event;
  Sink<pkg::state_error_t> error;
  std::set<unsigned> stopped;
};
}  // namespace

TEST_CASE("a completion event has the CQ's number, queue and the entry's index") {
  Bench bench(1);
  bench.create(5);
  bench.arm(5, 0);
  CHECK(bench.row(5, false, {}).armed);
  bench.done(5, 0, true, false, 1);
  bench.done(5, 1, true, false, 1);
  for (int n = 0; n < 20; ++n) bench.tick();
  REQUIRE(bench.event.received().size() == 1);
  const auto e = bench.event.received()[0];
  CHECK(e.eq_valid);
  CHECK(e.eq == 5);
  CHECK(e.fn == 1);
  CHECK(e.event_type == hwif::EQE_TYPE_COMPLETION);
  CHECK(e.object == 0x1005);
  CHECK(e.data == 0);
  const auto row = bench.row(5, false, {});
  CHECK(!row.armed);
  CHECK(row.committed == 2);
  CHECK(row.cqn == 0x1005);
  CHECK(bench.error.received().empty());
}

TEST_CASE("overflow and failed CQE: one CQ_ERROR, each QP once, payload failure too") {
  Bench bench(2);
  bench.create(1);
  bench.create(2);
  bench.done(1, 0, false, false, 3, true);    // overflow
  bench.done(1, 0, false, false, 4);          // completions after it
  bench.done(1, 0, false, false, 4);
  bench.done(2, 0, true, true, 5);            // CQE not written
  bench.done(2, 1, true, true, 6);            // the next ones were on their way
  bench.done(7, 0, false, false, 9, false, false);   // a CQ that does not exist: silence
  bench.done(2, 2, true, false, 7, false, true, true);  // payload not written, CQE is
  for (int n = 0; n < 60; ++n) bench.tick();
  std::map<unsigned, std::vector<unsigned>> causes;
  for (const auto& e : bench.event.received()) {
    CHECK(e.event_type == hwif::EQE_TYPE_CQ_ERROR);
    causes[e.object].push_back(e.cause);
  }
  CHECK(causes[0x1001] == std::vector<unsigned>{hwif::VENDOR_STATUS_CQ_OVERFLOW});
  CHECK(causes[0x1002] == std::vector<unsigned>{hwif::VENDOR_STATUS_CQ_WRITE_BUS});
  CHECK(causes.size() == 2);
  std::set<unsigned> qps;
  for (const auto& e : bench.error.received()) {
    CHECK(e.event_valid);
    CHECK(e.event_type == hwif::EQE_TYPE_QP_FATAL);
    CHECK(qps.insert(e.qp).second);
  }
  CHECK(qps == std::set<unsigned>{3, 4, 5, 6, 7});
}

TEST_CASE("an event and an error of one CQ both come; a destroyed CQ is silent") {
  Bench bench(3);
  bench.create(1);
  bench.create(2);
  bench.event.stall(Stall(1.0));
  bench.create(9);
  bench.arm(9, 0);
  bench.done(9, 0, true, false, 1);           // holds the output
  for (int n = 0; n < 10; ++n) bench.tick();
  bench.arm(1, 0);
  bench.done(1, 0, true, false, 1);           // fires, waits in the queue
  bench.done(1, 1, false, false, 1, true);    // and the CQ overflows
  bench.arm(2, 0);
  bench.done(2, 0, true, false, 1);           // fires, waits
  bench.create(2, false);                     // destroyed meanwhile
  for (int n = 0; n < 10; ++n) bench.tick();
  CHECK(bench.event.received().empty());
  bench.event.stall(Stall(0.0));
  for (int n = 0; n < 40; ++n) bench.tick();
  REQUIRE(bench.event.received().size() == 3);
  CHECK(bench.event.received()[0].object == 0x1009);
  CHECK(bench.event.received()[1].object == 0x1001);
  CHECK(bench.event.received()[1].event_type == hwif::EQE_TYPE_COMPLETION);
  CHECK(bench.event.received()[2].object == 0x1001);
  CHECK(bench.event.received()[2].event_type == hwif::EQE_TYPE_CQ_ERROR);
}

TEST_CASE("the error behind an event has its own cause, whatever other CQs say meanwhile") {
  for (const bool by_bus : {false, true}) {
    CAPTURE(by_bus);
    Bench bench(5);
    for (unsigned n = 1; n <= 4; ++n) bench.create(n);
    bench.event.stall(Stall(1.0));
    bench.arm(4, 0);
    bench.done(4, 0, true, false, 1);         // holds the output
    bench.arm(1, 0);
    bench.done(1, 0, true, false, 1);         // fires
    bench.done(1, 1, by_bus, by_bus, 1, !by_bus);        // and loses the next completion
    for (int n = 0; n < 10; ++n) bench.tick();
    bench.done(2, 0, !by_bus, !by_bus, 2, by_bus);       // another CQ fails in the other way
    for (int n = 0; n < 10; ++n) bench.tick();
    bench.event.stall(Stall(0.7));
    for (int n = 0; n < 100; ++n) bench.tick();
    REQUIRE(bench.event.received().size() == 4);
    const auto& e = bench.event.received()[2];
    CHECK(e.object == 0x1001);
    CHECK(e.event_type == hwif::EQE_TYPE_CQ_ERROR);
    CHECK(e.cause == (by_bus ? hwif::VENDOR_STATUS_CQ_WRITE_BUS : hwif::VENDOR_STATUS_CQ_OVERFLOW));
    CHECK(bench.event.received()[3].cause ==
          (by_bus ? hwif::VENDOR_STATUS_CQ_OVERFLOW : hwif::VENDOR_STATUS_CQ_WRITE_BUS));
  }
}

TEST_CASE("tokens never wait for readers; every armed CQ fires once; fence") {
  Bench bench(4);
  const unsigned cqs = 40;
  std::vector<unsigned> index(cqs);
  for (unsigned n = 0; n < cqs; ++n) bench.create(n);
  bench.event.stall(Stall(1.0));
  bench.error.stall(Stall(1.0));
  unsigned worst = 0, armed = 0;
  for (int k = 0; k < 3000; ++k) {
    const auto n = static_cast<unsigned>(bench.random.below(cqs));
    if (bench.random.chance(0.2)) {
      bench.arm(n, index[n]);
      ++armed;
    }
    // Some are lost: their QPs wait in the queue of errors.
    const bool lost = bench.random.chance(0.05);
    worst = std::max(worst, bench.done(n, index[n], !lost, false,
                                       static_cast<unsigned>(bench.random.below(50))));
    if (!lost) ++index[n];
  }
  CHECK(worst <= 4);
  CHECK(armed > 100);
  CHECK(bench.dut->fence_busy_o == 1);
  bench.dut->colour_i = 1;
  bench.tick();
  CHECK(bench.dut->fence_busy_o == 1);  // all that waits is of the old colour
  bench.create(50);
  bench.arm(50, 0);
  bench.done(50, 0, true, false, 1);
  for (int n = 0; n < 5; ++n) bench.tick();
  CHECK(bench.dut->fence_busy_o == 3);
  bench.event.stall(Stall(0.0));
  bench.error.stall(Stall(0.0));
  unsigned cycles = 0;
  for (; (bench.dut->fence_busy_o & 1) != 0; ++cycles) {
    REQUIRE(cycles < 1000);
    bench.tick();
  }
  for (int n = 0; n < 300; ++n) bench.tick();
  CHECK(bench.dut->fence_busy_o == 0);
  std::map<unsigned, unsigned> events;
  for (const auto& e : bench.event.received()) ++events[e.object];
  CHECK(events.size() == cqs + 1);
  for (const auto& [object, count] : events) CHECK(count <= 2);  // one in hand, one in the queue
  CHECK(bench.error.received().size() <= 50 + 1);
}
