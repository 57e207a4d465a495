// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_arbiter: every item once and in the order of its input, packets whole (LOCK), the choice
// stable, fair: no input waits for more than N-1 others.
// model: configs=any args=-GN=2 args=-GWIDTH=32 args=-GLOCK=0 name=n2
// model: configs=any args=-GN=5 args=-GWIDTH=32 args=-GLOCK=0 name=n5
// model: configs=any args=-GN=5 args=-GWIDTH=32 args=-GLOCK=1 name=n5lock
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;
constexpr unsigned inputs = DUT_N;

/// All input streams as one agent: their ports are vectors. Item = input, packet number, last bit.
class Inputs : public Agent {
 public:
  Inputs(Dut<DUT_CLASS>& dut, Random& random) : dut_(dut), random_(random()) {
    for (unsigned n = 0; n < inputs; ++n) stalls_.push_back(Stall::any(random));
  }
  void sample() override {
    transfers = 0;
    waiting = 0;
    const unsigned taken = valid_ & dut_->in_ready_o;
    REQUIRE((dut_->in_ready_o & (dut_->in_ready_o - 1u)) == 0);
    for (unsigned n = 0; n < inputs; ++n) {
      if ((taken >> n) & 1u) {
        queues[n].pop_front();
        valid_ &= ~(1u << n);
        ++transfers;
      } else if ((valid_ >> n) & 1u) {
        waiting |= 1u << n;
      }
    }
  }
  void drive() override {
    unsigned last = 0;
    for (unsigned n = 0; n < inputs; ++n) {
      if (!((valid_ >> n) & 1u) && !queues[n].empty() && !stalls_[n].next(random_)) {
        valid_ |= 1u << n;
      }
      const bool valid = (valid_ >> n) & 1u;
      const std::uint32_t item =
          valid ? queues[n].front() : static_cast<std::uint32_t>(random_.bits(32));
      last |= (item & 1u) << n;
      set_item(n, item);
    }
    dut_->in_valid_i = static_cast<CData>(valid_);
    dut_->in_last_i = static_cast<CData>(last);
  }
  bool empty() const {
    return std::all_of(std::begin(queues), std::end(queues), [](auto& q) { return q.empty(); });
  }

  std::deque<std::uint32_t> queues[inputs];
  unsigned transfers = 0;
  unsigned waiting = 0;  // valid and not served in this cycle

 private:
  void set_item(unsigned n, std::uint32_t item) {
    if constexpr (inputs == 2) {
      auto& port = dut_->in_i;
      roci::sv::Words<64> words = roci::sv::words_from_port<64>(port);
      words[n] = item;
      roci::sv::words_to_port<64>(words, port);
    } else {
      auto words = roci::sv::words_from_port<32 * inputs>(dut_->in_i);
      words[n] = item;
      roci::sv::words_to_port<32 * inputs>(words, dut_->in_i);
    }
  }

  Dut<DUT_CLASS>& dut_;
  Random random_;
  std::vector<Stall> stalls_;
  unsigned valid_ = 0;
};
}  // namespace

TEST_CASE("whole, ordered, stable and fair") {
  Random random;
  for (int round = 0; round < 25; ++round) {
    Dut<DUT_CLASS> dut(random());
    dut->in_valid_i = 0;
    Inputs in(dut, random);
    Sink<Bits<32>> out("out", dut->out_valid_o, dut->out_ready_i, dut->out_o);
    out.stall(Stall::any(random));
    out.collect();
    std::deque<std::uint32_t> expected[inputs];
    const std::size_t packets = scaled(200);
    for (unsigned n = 0; n < inputs; ++n) {
      for (std::size_t p = 0; p < packets; ++p) {
        const std::size_t length = random.between(1, 4);
        for (std::size_t i = 0; i < length; ++i) {
          // input, packet, running item number, last
          const auto item = static_cast<std::uint32_t>(n << 28u | (p & 0xfffu) << 16u |
                                                       (i & 0xfffu) << 1u | (i + 1 == length));
          in.queues[n].push_back(item);
          expected[n].push_back(item);
        }
      }
    }
    int inside = -1;                  // input whose packet is open
    unsigned waits[inputs] = {};      // packets (LOCK) or items of others since it became waiting
    out.on_transfer([&](const Bits<32>& got) {
      const auto item = static_cast<std::uint32_t>(got.value());
      const unsigned n = item >> 28u;
      REQUIRE(n == dut->out_index_o);
      REQUIRE(n < inputs);
      REQUIRE(!expected[n].empty());
      REQUIRE(item == expected[n].front());
      expected[n].pop_front();
      const bool ends = !DUT_LOCK || (item & 1u);
      if (DUT_LOCK) {
        REQUIRE((inside < 0 || inside == static_cast<int>(n)));
        inside = ends ? -1 : static_cast<int>(n);
      }
      for (unsigned other = 0; other < inputs; ++other) {
        if (other == n || !((in.waiting >> other) & 1u)) {
          waits[other] = 0;
        } else if (ends) {
          REQUIRE(++waits[other] <= inputs - 1);
        }
      }
    });
    dut.reset();
    dut.attach(in);
    dut.attach(out);
    dut.run_until([&] { return in.empty(); }, "all items", 100 * packets * inputs * 4);
    dut.tick(2);
    for (const auto& queue : expected) REQUIRE(queue.empty());
    REQUIRE(inside < 0);
  }
}

TEST_CASE("one item per cycle") {
  Random random;
  Dut<DUT_CLASS> dut(random());
  dut->in_valid_i = 0;
  dut.reset();
  dut->in_valid_i = static_cast<CData>((1u << inputs) - 1u);
  dut->in_last_i = dut->in_valid_i;
  dut->out_ready_i = 1;
  unsigned served[inputs] = {};
  for (unsigned n = 0; n < 10 * inputs; ++n) {
    dut.eval();
    REQUIRE(dut->out_valid_o);
    ++served[dut->out_index_o];
    dut.tick();
  }
  for (const unsigned count : served) CHECK(count == 10);
}
