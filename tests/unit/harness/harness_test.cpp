// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The harness tested: each check of Source, Sink, Monitor and Dut must fire on a model that breaks
// the rule, and none on one that does not.
// model: configs=any args=-GWIDTH=13 name=w13
// model: configs=any args=-GWIDTH=32 name=w32
// model: configs=any args=-GWIDTH=64 name=w64
// model: configs=any args=-GWIDTH=65 name=w65
// model: configs=any args=-GWIDTH=512 name=w512
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;
using Item = Bits<DUT_WIDTH>;

/// Runs `count` items through the model with this fault; returns the failure's text, or "".
std::string run(unsigned fault, Stall in_stall, Stall out_stall, std::size_t count = 400) {
  Dut<DUT_CLASS> dut;
  Source<Item> in("in", dut->in_valid_i, dut->in_ready_o, dut->in_i);
  Sink<Item> out("out", dut->out_valid_o, dut->out_ready_i, dut->out_o);
  in.stall(in_stall);
  out.stall(out_stall);
  dut->fault_i = 0;
  dut.reset();
  dut.attach(in);
  dut.attach(out);
  Random random;
  try {
    for (std::size_t n = 0; n < count; ++n) {
      const Item item = random_payload<Item>(random);
      in.push(item);
      out.expect(item);
      if (n == 20) dut->fault_i = static_cast<CData>(fault);
      dut.tick();
    }
    dut.run_until([&] { return out.done(); }, "items", 20 * count);
    dut.tick(10);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  REQUIRE(in.transfers() == count);
  REQUIRE(out.transfers() == count);
  return "";
}

using Catch::Matchers::Contains;
}  // namespace

TEST_CASE("a right model passes, whatever the stalls") {
  Random random;
  for (int n = 0; n < 20; ++n) {
    CHECK(run(0, Stall::any(random), Stall::any(random)) == "");
  }
}

TEST_CASE("each broken rule is found and named") {
  const Stall half(0.5);
  CHECK_THAT(run(1, Stall(0), half), Contains("out, cycle") && Contains("valid went away"));
  CHECK_THAT(run(2, Stall(0), half), Contains("payload changed while stalled"));
  CHECK_THAT(run(3, Stall(0), Stall(0)),
             Contains("differs\n  expected 0x") && Contains("ROCI_SEED="));
  CHECK_THAT(run(4, Stall(0), Stall(0)), Contains("differs"));
  CHECK_THAT(run(5, Stall(0), half), Contains("timeout") && Contains("items"));
  CHECK_THAT(run(6, Stall(0), half), Contains("harness_tb.sv") && Contains("assertion"));
}

TEST_CASE("an item nobody expects fails, collecting does not") {
  for (const bool collect : {false, true}) {
    Dut<DUT_CLASS> dut;
    Source<Item> in("in", dut->in_valid_i, dut->in_ready_o, dut->in_i);
    Sink<Item> out("out", dut->out_valid_o, dut->out_ready_i, dut->out_o);
    dut->fault_i = 0;
    dut.reset();
    dut.attach(in);
    dut.attach(out);
    in.push(Item(5));
    if (collect) {
      out.collect();
      dut.tick(10);
      REQUIRE(out.received().size() == 1);
      CHECK(out.received()[0].value() == 5);
    } else {
      CHECK_THROWS_AS(dut.tick(10), Failure);
    }
  }
}

TEST_CASE("stalls do what their names say") {
  Random random;
  const auto busy = [&](Stall stall) {
    unsigned count = 0;
    for (int n = 0; n < 20000; ++n) count += !stall.next(random);
    return count / 20000.0;
  };
  CHECK(busy(Stall(0.0)) == 1.0);
  CHECK(busy(Stall(0.25)) == Approx(0.75).margin(0.03));
  CHECK(busy(Stall::bursts(10, 30)) == Approx(0.25).margin(0.06));
}

TEST_CASE("random numbers replay from seed and salt, and differ otherwise") {
  Random a(1), b(1), c(2);
  const auto first = a();
  CHECK(first == b());
  CHECK(first != c());
  for (int n = 0; n < 1000; ++n) {
    const auto v = a.between(3, 7);
    REQUIRE(v >= 3);
    REQUIRE(v <= 7);
    REQUIRE(a.bits(5) < 32);
  }
}

TEST_CASE("state without reset starts at random") {
  // Two models of different salts must not agree in their unreset payload register.
  unsigned differ = 0;
  for (unsigned salt = 0; salt < 8; ++salt) {
    Dut<DUT_CLASS> a(2 * salt), b(2 * salt + 1);
    a.reset();
    b.reset();
    differ += !(Item::unpack(a->out_o) == Item::unpack(b->out_o));
  }
  CHECK(differ >= 6);
}
