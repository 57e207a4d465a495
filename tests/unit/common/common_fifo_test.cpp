// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_fifo: order and data under stalls, exact capacity, usage, fall-through time, full rate.
// Reference: std::deque of the transfers seen at the ports.
// model: configs=any args=-GWIDTH=13 args=-GDEPTH=2 args=-GSYNC=0 args=-GOUTPUT_REG=0 args='-GSTYLE="distributed"' name=d2
// model: configs=any args=-GWIDTH=13 args=-GDEPTH=5 args=-GSYNC=0 args=-GOUTPUT_REG=1 args='-GSTYLE="auto"' name=d5r
// model: configs=any args=-GWIDTH=64 args=-GDEPTH=16 args=-GSYNC=1 args=-GOUTPUT_REG=0 args='-GSTYLE="block"' name=b16
// model: configs=any args=-GWIDTH=100 args=-GDEPTH=70 args=-GSYNC=1 args=-GOUTPUT_REG=0 args='-GSTYLE="auto"' name=b70
// model: configs=any args=-GWIDTH=100 args=-GDEPTH=33 args=-GSYNC=1 args=-GOUTPUT_REG=1 args='-GSTYLE="ultra"' name=u33r
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "stream_bench.hpp"

namespace {
constexpr std::size_t depth = DUT_DEPTH + DUT_OUTPUT_REG;  // capacity
/// Cycles from the push to out_valid_o, as the module's table says.
constexpr unsigned fall_through = 1 + DUT_SYNC + DUT_OUTPUT_REG;
}  // namespace

TEST_CASE("order, data and usage under random stalls") {
  Random random;
  for (int round = 0; round < 12; ++round) {
    Bench b(random());
    std::size_t inside = 0, most = 0;
    b.in.on_transfer([&](const Item& item) {
      b.out.expect(item);
      ++inside;
    });
    b.out.on_transfer([&](const Item&) { --inside; });
    b.in.stall(Stall::any(random));
    b.out.stall(Stall::any(random));
    for (std::size_t n = 0; n < scaled(2000); ++n) {
      b.in.push(random_payload<Item>(random));
      b.dut.tick();
      REQUIRE(std::size_t{b.dut->usage_o} == inside);
      REQUIRE(inside <= depth);
      most = std::max(most, inside);
    }
    b.dut.run_until([&] { return b.in.empty() && b.out.done(); }, "all items");
    b.dut.tick(10);
    REQUIRE(inside == 0);
    REQUIRE(b.dut->usage_o == 0);
    INFO("most items inside " << most);
    CHECK(most >= 1);
  }
}

TEST_CASE("holds exactly as many items as promised") {
  Random random;
  Bench b(random());
  b.out.stall(Stall(1.0));
  std::vector<Item> items;
  for (std::size_t n = 0; n < depth + 3; ++n) {
    items.push_back(random_payload<Item>(random));
    b.in.push(items.back());
  }
  b.dut.tick(3 * depth + 10);
  CHECK(b.in.transfers() == depth);
  CHECK(b.dut->usage_o == depth);
  for (const auto& item : items) b.out.expect(item);
  b.out.stall(Stall(0.0));
  b.dut.run_until([&] { return b.out.done(); }, "items");
}

TEST_CASE("an item falls through in the stated time") {
  Random random;
  Bench b(random());
  const Item item = random_payload<Item>(random);
  b.out.collect();
  b.in.push(item);
  b.dut.run_until([&] { return b.in.empty(); }, "push");
  // The push was at the last edge.
  unsigned cycles = 1;
  while (!b.dut->out_valid_o) {
    REQUIRE(cycles < 10);
    b.dut.tick();
    ++cycles;
  }
  CHECK(cycles == fall_through);
}

TEST_CASE("one item per cycle without stalls") {
  if (DUT_DEPTH < 4 && DUT_SYNC) return;
  Random random;
  Bench b(random());
  const std::size_t count = 300;
  for (std::size_t n = 0; n < count; ++n) {
    b.in.push(random_payload<Item>(random));
  }
  b.out.collect();
  b.dut.tick(count + 2);
  CHECK(b.in.transfers() == count);
  b.dut.tick(fall_through);
  CHECK(b.out.transfers() == count);
}

TEST_CASE("reset empties") {
  Random random;
  Bench b(random());
  b.out.stall(Stall(1.0));
  for (int n = 0; n < 2; ++n) b.in.push(random_payload<Item>(random));
  b.dut.run_until([&] { return b.in.empty(); }, "push");
  b.dut.tick(4);
  CHECK(b.dut->out_valid_o);
  b.out.clear();
  b.dut->rst_i = 1;
  b.dut.eval();
  b.out.stall(Stall(1.0));
  for (int n = 0; n < 3; ++n) {
    b.out.clear();
    b.dut.tick();
  }
  b.dut->rst_i = 0;
  b.out.clear();
  CHECK(!b.dut->out_valid_o);
  CHECK(b.dut->usage_o == 0);
  b.out.stall(Stall(0.0));
  const Item item = random_payload<Item>(random);
  b.in.push(item);
  b.out.expect(item);
  b.dut.run_until([&] { return b.out.done(); }, "item after reset");
}
