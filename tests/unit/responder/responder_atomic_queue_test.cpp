// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_atomic_queue: both halves of random atomics in order, each at its own time; room for as many
// as there are replay entries.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
namespace pkg = roci::sv::responder_pkg;
using Atomic = roci::sv::roci_pkg::atomic_req_t;
using Where = pkg::atomic_where_t;
using What = pkg::atomic_what_t;
constexpr unsigned depth = 1u << roci::sv::roci_config_pkg::REPLAY_BITS;

struct Bench {
  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt), req("req", dut->req_valid_i, dut->req_ready_o, dut->req_i),
        where("where", dut->where_valid_o, dut->where_ready_i, dut->where_o),
        what("what", dut->what_valid_o, dut->what_ready_i, dut->what_o) {
    dut.reset();
    dut.attach(req);
    dut.attach(where);
    dut.attach(what);
  }
  void push() {
    const auto a = random_payload<Atomic>(random);
    req.push(a);
    Where w{};
    w.fn = a.fn;
    w.addr = a.addr;
    where.expect(w);
    What x{};
    x.qp = a.qp;
    x.colour = a.colour;
    x.is_swap = a.is_swap;
    x.slot = a.slot;
    x.ordinal = a.ordinal;
    x.psn = a.psn;
    x.operands = a.operands;
    what.expect(x);
  }
  bool done() const { return where.done() && what.done(); }
  Dut<DUT_CLASS> dut;
  Random random;
  Source<Atomic> req;
  Sink<Where> where;
  Sink<What> what;
};
}  // namespace

TEST_CASE("random atomics") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Bench bench(random());
    bench.req.stall(Stall::any(random));
    bench.where.stall(Stall::any(random));
    bench.what.stall(Stall::any(random));
    for (unsigned n = 0; n < std::min<std::size_t>(depth, scaled(1000)); ++n) bench.push();
    bench.dut.run_until([&] { return bench.done(); }, "all atomics");
    bench.dut.tick(50);
  }
}

TEST_CASE("always room for the atomics of all replay entries") {
  Bench bench(1);
  bench.where.stall(Stall(0.0));
  bench.what.stall(Stall(1.0));
  for (unsigned n = 0; n < depth; ++n) bench.push();
  bench.dut.tick(2 * depth + 10);
  CHECK(bench.req.empty());
  CHECK(bench.where.done());
  bench.what.stall(Stall(0.0));
  bench.dut.run_until([&] { return bench.done(); }, "all atomics");
}
