// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What every register slice keeps, whatever its rate: order and data under stalls, no combinational
// path, nothing taken in reset. Test cases of the file that includes it, after DUT_HEADER.
#pragma once

#include <catch2/catch.hpp>

#include "stream_bench.hpp"

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
