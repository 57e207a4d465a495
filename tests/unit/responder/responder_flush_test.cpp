// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_flush: every receive that is in its slot while its QP is in ERR gets a flush, none is
// asked for in another state's name, one flush is out at a time, QPs take turns. Reference: counts of
// receives per QP.
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <map>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
namespace rp = roci::sv::roci_pkg;
namespace rc = roci::sv::roci_config_pkg;
using Number = Bits<rc::QP_BITS>;
constexpr unsigned num_qps = 1u << rc::QP_BITS;

/// Receives of all QPs, and responder_check as far as flushes go.
class World : public Agent {
 public:
  World(Dut<DUT_CLASS>& dut, std::uint64_t salt) : dut_(dut), random_(salt) {}

  void sample() override {
    if (dut_->flush_valid_o && dut_->flush_ready_i) {
      if (flying_) throw Failure("two flushes on their way");
      flying_ = true;
      qp_ = dut_->flush_o;
      done_in_ = static_cast<int>(random_.between(2, 8));
      ++flushes;
      served.push_back(qp_);
    }
    if (dut_->flush_done_i) flying_ = false;
  }
  void drive() override {
    dut_->flush_ready_i = random_.chance(ready);
    dut_->flush_done_i = 0;
    dut_->flush_more_i = random_.chance(0.5);
    if (flying_ && --done_in_ == 0) {
      // what responder_check finds at that time
      const bool more = states[qp_] == rp::QPS_ERR && landed[qp_] != 0;
      if (more) --landed[qp_];
      dut_->flush_done_i = 1;
      dut_->flush_more_i = more;
    }
    rp::state_bcast_t bcast{};
    rp::rq_landed_t land{};
    gap_ = !gap_;
    if (gap_ && !bcasts.empty()) {
      bcast = {true, static_cast<decltype(bcast.qp)>(bcasts.front().first), bcasts.front().second};
      states[bcasts.front().first] = bcasts.front().second;
      bcasts.pop_front();
    }
    if (gap_ == landing_phase && !landings.empty() && random_.chance(landing)) {
      land = {true, static_cast<decltype(land.rq)>(landings.front())};
      ++landed[landings.front()];
      landings.pop_front();
    }
    bcast.pack(dut_->state_i);
    land.pack(dut_->landed_i);
  }

  std::map<unsigned, rp::qp_state_e> states;
  std::map<unsigned, unsigned> landed;
  std::deque<std::pair<unsigned, rp::qp_state_e>> bcasts;
  std::deque<unsigned> landings;
  std::vector<unsigned> served;
  std::uint64_t flushes = 0;
  double ready = 0.7, landing = 0.8;
  bool landing_phase = false;

 private:
  Dut<DUT_CLASS>& dut_;
  Random random_;
  bool flying_ = false, gap_ = false;
  unsigned qp_ = 0;
  int done_in_ = 0;
};

struct Bench {
  explicit Bench(std::uint64_t salt) : dut(salt), world(dut, salt) {
    dut->flush_ready_i = 0;
    dut->flush_done_i = 0;
    rp::state_bcast_t{}.pack(dut->state_i);
    rp::rq_landed_t{}.pack(dut->landed_i);
    dut.reset();
    dut.attach(world);
    dut.run_until([&] { return dut->ready_o != 0; }, "tables cleared");
  }
  void settle() {
    dut.run_until([&] { return world.bcasts.empty() && world.landings.empty(); }, "inputs", 50000);
    std::uint64_t calm = 0, seen = 0;
    dut.run_until([&] {
      calm = world.flushes == seen ? calm + 1 : 0;
      seen = world.flushes;
      return calm > 400;
    }, "flushes end");
  }
  Dut<DUT_CLASS> dut;
  World world;
};
}  // namespace

TEST_CASE("random states and landings: nothing in ERR is left, nothing outside is asked for") {
  Random random;
  for (int run = 0; run < 8; ++run) {
    Bench b(random());
    b.world.landing_phase = run % 2;
    b.world.ready = run % 3 == 2 ? 0.1 : 0.9;
    std::vector<unsigned> qps;
    for (int n = 0; n < 12; ++n) qps.push_back(static_cast<unsigned>(random.below(num_qps)));
    for (std::size_t round = 0; round < scaled(60); ++round) {
      for (int n = 0; n < 40; ++n) {
        const unsigned qp = random.pick(qps);
        // an SRQ's receives are nobody's to flush
        if (random.chance(0.7)) b.world.landings.push_back(random.chance(0.1) ? num_qps + 3 : qp);
        if (random.chance(0.2)) {
          b.world.bcasts.push_back({qp, random.pick(std::vector<rp::qp_state_e>{
              rp::QPS_RTS, rp::QPS_RTR, rp::QPS_ERR, rp::QPS_ERR})});
        }
        if (random.chance(0.3)) b.dut.tick(random.below(20));
      }
      b.settle();
      for (const unsigned qp : qps) {
        if (b.world.states[qp] == rp::QPS_ERR) REQUIRE(b.world.landed[qp] == 0);
      }
      // a QP that starts again has an empty queue
      for (const unsigned qp : qps) {
        if (random.chance(0.3)) {
          b.world.bcasts.push_back({qp, rp::QPS_RESET});
          b.world.landed[qp] = 0;
        }
      }
      b.settle();
    }
    CHECK(b.world.flushes > 100);
  }
}

TEST_CASE("no flush without ERR; QPs in ERR take turns") {
  Bench b(5);
  b.world.landing = 1;
  for (int n = 0; n < 10; ++n) {
    for (const unsigned qp : {1u, 2u, 3u}) b.world.landings.push_back(qp);
  }
  b.world.states[1] = b.world.states[2] = b.world.states[3] = rp::QPS_RTS;
  b.settle();
  CHECK(b.world.flushes == 0);
  for (const unsigned qp : {1u, 2u, 3u}) b.world.bcasts.push_back({qp, rp::QPS_ERR});
  b.settle();
  REQUIRE(b.world.served.size() == 33);           // ten each, and one that finds nothing
  for (std::size_t n = 3; n < 30; ++n) CHECK(b.world.served[n] == b.world.served[n - 3]);
}
