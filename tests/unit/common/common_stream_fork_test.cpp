// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_stream_fork: each selected receiver gets each item once and in order, whatever the others
// do; an item for nobody is taken at once; one item per cycle when all are ready.
// model: configs=any args=-GN=1 args=-GWIDTH=32 name=n1
// model: configs=any args=-GN=3 args=-GWIDTH=32 name=n3
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;
constexpr unsigned receivers = DUT_N;

/// All receivers: their ports are vectors.
class Receivers : public Agent {
 public:
  Receivers(Dut<DUT_CLASS>& dut, Random& random) : dut_(dut), random_(random()) {
    for (unsigned n = 0; n < receivers; ++n) stalls.push_back(Stall::any(random));
  }
  void sample() override {
    const unsigned valid = dut_->out_valid_o;
    // A receiver's valid may not depend on anybody's ready, and must stay until taken.
    REQUIRE((stuck_ & ~valid) == 0);
    stuck_ = valid & ~ready_;
    for (unsigned n = 0; n < receivers; ++n) {
      if (!((valid & ready_) >> n & 1u)) continue;
      REQUIRE(!expected[n].empty());
      REQUIRE(expected[n].front() == dut_->out_o);
      expected[n].pop_front();
    }
  }
  void drive() override {
    ready_ = 0;
    for (unsigned n = 0; n < receivers; ++n) ready_ |= (stalls[n].next(random_) ? 0u : 1u) << n;
    dut_->out_ready_i = static_cast<CData>(ready_);
  }
  bool done() const {
    return std::all_of(std::begin(expected), std::end(expected), [](auto& q) { return q.empty(); });
  }

  std::deque<std::uint32_t> expected[receivers];
  std::vector<Stall> stalls;

 private:
  Dut<DUT_CLASS>& dut_;
  Random random_;
  unsigned ready_ = 0;
  unsigned stuck_ = 0;
};

}  // namespace

TEST_CASE("each selected receiver gets each item once") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Dut<DUT_CLASS> dut(random());
    dut->in_valid_i = 0;
    dut.reset();
    Receivers out(dut, random);
    Source<Bits<32>> in("in", dut->in_valid_i, dut->in_ready_o, dut->in_i);
    in.stall(Stall::any(random));
    dut.attach(in);
    dut.attach(out);
    // The selection is derived from the item, so that it is stable with it.
    const auto select = [](std::uint32_t item) {
      return static_cast<CData>((item >> 3u) & ((1u << receivers) - 1u));
    };
    for (std::size_t n = 0; n < scaled(2000); ++n) {
      const auto item = static_cast<std::uint32_t>(random.bits(32));
      in.push(Bits<32>(item));
      for (unsigned r = 0; r < receivers; ++r) {
        if ((select(item) >> r) & 1u) out.expected[r].push_back(item);
      }
      dut->in_select_i = select(dut->in_i);
      dut.tick();
    }
    dut.run_until(
        [&] {
          dut->in_select_i = select(dut->in_i);
          return in.empty();
        },
        "all items");
    REQUIRE(out.done());
  }
}

TEST_CASE("one item per cycle, items for nobody included") {
  Dut<DUT_CLASS> dut;
  dut->in_valid_i = 0;
  dut.reset();
  dut->in_valid_i = 1;
  dut->out_ready_i = static_cast<CData>((1u << receivers) - 1u);
  for (unsigned n = 0; n < 32; ++n) {
    dut->in_select_i = static_cast<CData>(n & ((1u << receivers) - 1u));
    dut.eval();
    REQUIRE(dut->in_ready_o);
    REQUIRE(dut->out_valid_o == dut->in_select_i);
    dut.tick();
  }
}
