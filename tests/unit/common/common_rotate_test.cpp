// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_rotate: all amounts, both directions, user bits with their word, full rate, latency.
// Reference: lane by lane copy with a modulo.
// model: configs=any args=-GLANES=2 args=-GLANE_BITS=8 args=-GREGS=1 args=-GUP=0 args=-GUSER_BITS=8 name=l2
// model: configs=any args=-GLANES=8 args=-GLANE_BITS=8 args=-GREGS=0 args=-GUP=0 args=-GUSER_BITS=8 name=l8r0
// model: configs=any args=-GLANES=8 args=-GLANE_BITS=8 args=-GREGS=2 args=-GUP=1 args=-GUSER_BITS=8 name=l8r2
// model: configs=any args=-GLANES=16 args=-GLANE_BITS=32 args=-GREGS=1 args=-GUP=1 args=-GUSER_BITS=8 name=l16
// model: configs=any args=-GLANES=64 args=-GLANE_BITS=8 args=-GREGS=2 args=-GUP=0 args=-GUSER_BITS=8 name=l64r2
// model: configs=any args=-GLANES=64 args=-GLANE_BITS=8 args=-GREGS=3 args=-GUP=1 args=-GUSER_BITS=8 name=l64r3
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;
constexpr unsigned lanes = DUT_LANES;
using Data = Bits<DUT_LANES * DUT_LANE_BITS>;

Data rotate(const Data& in, unsigned amount) {
  Data out;
  for (unsigned i = 0; i < lanes; ++i) {
    const unsigned from = DUT_UP ? i : (i + amount) % lanes;
    const unsigned to = DUT_UP ? (i + amount) % lanes : i;
    out.set(to * DUT_LANE_BITS, DUT_LANE_BITS, in.get(from * DUT_LANE_BITS, DUT_LANE_BITS));
  }
  return out;
}
}  // namespace

TEST_CASE("all amounts, random data, random stalls") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Dut<DUT_CLASS> dut(random());
    Source<Data> in("in", dut->in_valid_i, dut->in_ready_o, dut->in_data_i);
    Sink<Data> out("out", dut->out_valid_o, dut->out_ready_i, dut->out_data_o);
    if (round > 0) {
      in.stall(Stall::any(random));
      out.stall(Stall::any(random));
    }
    dut.reset();
    dut.attach(in);
    dut.attach(out);
    // Amount and user bits belong to the item: they change only when it has been taken.
    std::deque<std::pair<CData, CData>> side;
    std::deque<CData> users;
    unsigned amount = 0;
    for (std::size_t n = 0; n < scaled(600); ++n) {
      const Data data = random_payload<Data>(random);
      amount = n < 2 * lanes ? static_cast<unsigned>(n % lanes)
                             : static_cast<unsigned>(random.below(lanes));
      in.push(data);
      out.expect(rotate(data, amount));
      side.emplace_back(static_cast<CData>(amount), static_cast<CData>(random.bits(8)));
      users.push_back(side.back().second);
    }
    out.on_transfer([&](const Data&) {
      REQUIRE(dut->out_user_o == users.front());
      users.pop_front();
    });
    std::size_t taken = 0;
    const auto apply = [&] {
      if (in.transfers() < side.size()) {
        dut->in_amount_i = side[in.transfers()].first;
        dut->in_user_i = side[in.transfers()].second;
      }
      taken = in.transfers();
    };
    apply();
    dut.run_until(
        [&] {
          if (taken != in.transfers()) apply();
          return out.done();
        },
        "all words");
    if (round == 0) CHECK(dut.cycle() <= side.size() + DUT_REGS + 6);
    dut.tick(5);
  }
}

TEST_CASE("latency is REGS") {
  Dut<DUT_CLASS> dut;
  dut->in_valid_i = 0;
  dut->out_ready_i = 1;
  dut.reset();
  dut->in_valid_i = 1;
  dut.eval();
  unsigned cycles = 0;
  while (!dut->out_valid_o) {
    REQUIRE(cycles < 5);
    dut.tick();
    ++cycles;
  }
  CHECK(cycles == DUT_REGS);
}
