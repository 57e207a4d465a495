// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_half_slice: order and data under stalls, half rate, no combinational path, capacity one.
// model: configs=any args=-GWIDTH=7 name=w7
// model: configs=any args=-GWIDTH=600 name=w600
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;
using Item = Bits<DUT_WIDTH>;

struct Bench {
  explicit Bench(std::uint64_t salt) : dut(salt) {
    dut.reset();
    dut.attach(in);
    dut.attach(out);
  }
  Dut<DUT_CLASS> dut;
  Source<Item> in{"in", dut->in_valid_i, dut->in_ready_o, dut->in_i};
  Sink<Item> out{"out", dut->out_valid_o, dut->out_ready_i, dut->out_o};
};
}  // namespace

TEST_CASE("order and data under random stalls") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Bench b(random());
    b.in.stall(Stall::any(random));
    b.out.stall(Stall::any(random));
    for (std::size_t n = 0; n < scaled(500); ++n) {
      const Item item = random_payload<Item>(random);
      b.in.push(item);
      b.out.expect(item);
    }
    b.dut.run_until([&] { return b.out.done(); }, "all items");
    b.dut.tick(5);
  }
}

TEST_CASE("half rate, one cycle of latency, one item of room") {
  Random random;
  Bench b(random());
  b.out.collect();
  for (int n = 0; n < 100; ++n) b.in.push(random_payload<Item>(random));
  b.dut.tick(202);
  CHECK(b.in.transfers() == 100);
  CHECK(b.out.transfers() == 100);
  b.out.stall(Stall(1.0));
  b.dut.tick(2);
  for (int n = 0; n < 5; ++n) b.in.push(random_payload<Item>(random));
  b.dut.tick(10);
  CHECK(b.in.transfers() == 101);
}

TEST_CASE("outputs do not follow inputs within a cycle") {
  Random random;
  Dut<DUT_CLASS> dut(random());
  dut->in_valid_i = 0;
  dut->out_ready_i = 0;
  dut.reset();
  for (int n = 0; n < 200; ++n) {
    dut->in_valid_i = random.chance(0.5);
    dut->out_ready_i = random.chance(0.5);
    dut.eval();
    const auto ready = dut->in_ready_o;
    const auto valid = dut->out_valid_o;
    const Item item = Item::unpack(dut->out_o);
    const CData was_valid = dut->in_valid_i;
    dut->in_valid_i = !was_valid;
    dut->out_ready_i = !dut->out_ready_i;
    random_payload<Item>(random).pack(dut->in_i);
    dut.eval();
    REQUIRE(ready == dut->in_ready_o);
    REQUIRE(valid == dut->out_valid_o);
    REQUIRE(item == Item::unpack(dut->out_o));
    dut.tick();
  }
}

TEST_CASE("nothing is taken in reset") {
  Random random;
  for (int round = 0; round < 8; ++round) {
    Dut<DUT_CLASS> dut(random());
    Source<Item> in("in", dut->in_valid_i, dut->in_ready_o, dut->in_i);
    Sink<Item> out("out", dut->out_valid_o, dut->out_ready_i, dut->out_o);
    dut.tick(2);
    dut.attach(in);
    dut.attach(out);
    for (int n = 0; n < 4; ++n) {
      const Item item = random_payload<Item>(random);
      in.push(item);
      out.expect(item);
    }
    dut.tick(3);
    REQUIRE(in.transfers() == 0);
    dut->rst_i = 0;
    dut.run_until([&] { return out.done(); }, "items", 20);
    dut.tick(5);
  }
}
