// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_fold_fifo: random items in order, nothing lost or made; as many as it is deep; one per two
// cycles.
// model: configs=any args=-GWIDTH=20 args=-GDEPTH=8 name=d8
// model: configs=any args=-GWIDTH=20 args=-GDEPTH=128 name=d128
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;
using Item = Bits<20>;

struct Bench {
  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt), in("in", dut->in_valid_i, dut->in_ready_o, dut->in_i),
        out("out", dut->out_valid_o, dut->out_ready_i, dut->out_o) {
    dut.reset();
    dut.attach(in);
    dut.attach(out);
  }
  void push(unsigned count) {
    for (unsigned n = 0; n < count; ++n) {
      const auto item = random_payload<Item>(random);
      in.push(item);
      out.expect(item);
    }
  }
  Dut<DUT_CLASS> dut;
  Random random;
  Source<Item> in;
  Sink<Item> out;
};
}  // namespace

TEST_CASE("random items") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Bench bench(random());
    bench.in.stall(Stall::any(random));
    bench.out.stall(Stall::any(random));
    bench.push(static_cast<unsigned>(scaled(1000)));
    bench.dut.run_until([&] { return bench.out.done(); }, "all items");
    bench.dut.tick(50);
  }
}

TEST_CASE("holds as many as it is deep, one per two cycles") {
  Bench bench(1);
  bench.out.stall(Stall(1.0));
  bench.push(4 * DUT_DEPTH);
  bench.dut.tick(2 * DUT_DEPTH + 10);
  CHECK(bench.in.transfers() == DUT_DEPTH);  // the lower half in front leaves room for another half
  bench.dut.tick(100);
  CHECK(bench.in.transfers() == DUT_DEPTH);
  bench.out.stall(Stall(0.0));
  const auto start = bench.dut.cycle();
  bench.dut.run_until([&] { return bench.out.done(); }, "all items");
  CHECK(bench.dut.cycle() - start <= 2 * 4 * DUT_DEPTH + 10);
}
