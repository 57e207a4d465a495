// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_object_queue: first come first served, each object at most once, no push lost, not even
// one in the cycle of the pop or while all objects are queued. Reference: a deque and a set.
// model: configs=any args=-GN=2 args='-GSTYLE="auto"' name=n2
// model: configs=any args=-GN=5 args='-GSTYLE="distributed"' name=n5
// model: configs=any args=-GN=16 args='-GSTYLE="block"' name=n16
// model: configs=any args=-GN=1024 args='-GSTYLE="auto"' name=n1024
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <set>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;
constexpr unsigned objects = DUT_N;
constexpr unsigned object_bits = objects <= 2 ? 1 : objects <= 8 ? 3 : objects <= 16 ? 4 : 10;
using Object = Bits<object_bits>;

struct Bench {
  explicit Bench(std::uint64_t salt) : dut(salt) {
    pop.on_transfer([this](const Object& object) { queued.erase(object.value()); });
    push.on_transfer([this](const Object& object) {
      const bool fresh = queued.insert(object.value()).second;
      if (dut->push_new_o != fresh) throw Failure("push_new_o does not tell what was queued");
      if (fresh) {
        pop.expect(object);
      } else {
        ++repeated;
      }
    });
    start();
    dut.attach(pop);  // before push: a pop frees the object for a push in the same cycle
    dut.attach(push);
  }
  /// Resets and waits until all bits are cleared.
  void start() {
    dut.reset();
    unsigned cycles = 0;
    while (!dut->push_ready_o) {
      REQUIRE(cycles <= objects);
      REQUIRE(!dut->pop_valid_o);
      dut.tick();
      ++cycles;
    }
    CHECK(cycles == objects);
  }

  Dut<DUT_CLASS> dut;
  Sink<Object> pop{"pop", dut->pop_valid_o, dut->pop_ready_i, dut->pop_o};
  Source<Object> push{"push", dut->push_valid_i, dut->push_ready_o, dut->push_i};
  std::set<std::uint64_t> queued;
  std::size_t repeated = 0;
};
}  // namespace

TEST_CASE("random pushes and pops") {
  Random random;
  std::size_t repeated = 0, most = 0;
  for (int round = 0; round < 12; ++round) {
    Bench b(random());
    b.push.stall(Stall::any(random));
    b.pop.stall(Stall::any(random));
    // Few objects collide often, all objects fill the queue.
    const std::uint64_t span = round % 2 ? objects : std::min(objects, 4u);
    for (std::size_t n = 0; n < scaled(4000); ++n) {
      if (b.push.pending() < 2) b.push.push(Object(random.below(span)));
      b.dut.tick();
      REQUIRE(b.dut->push_ready_o);
      REQUIRE(b.dut->usage_o == b.queued.size());
      most = std::max(most, b.queued.size());
    }
    b.pop.stall(Stall(0.0));
    b.dut.run_until([&] { return b.push.empty() && b.pop.done(); }, "queue empties");
    b.dut.tick(10);
    REQUIRE(b.queued.empty());
    REQUIRE(b.dut->usage_o == 0);
    repeated += b.repeated;
  }
  CHECK(repeated > 100);
  CHECK(most >= std::min(objects, 100u) / 2);
}

TEST_CASE("full of all objects, one leaves and comes back in the same cycle") {
  Random random;
  Bench b(random());
  b.pop.stall(Stall(1.0));
  for (unsigned n = 0; n < objects; ++n) b.push.push(Object(n));
  b.dut.run_until([&] { return b.push.empty(); }, "all pushed");
  b.dut.tick(8);
  REQUIRE(b.dut->usage_o == objects);
  b.pop.stall(Stall(0.0));
  // From now on each popped object is pushed in the cycle of its pop.
  std::size_t same = 0;
  for (unsigned n = 0; n < 3 * objects; ++n) {
    b.dut->push_valid_i = b.dut->pop_valid_o;
    b.dut->push_i = b.dut->pop_o;
    b.dut.eval();
    if (b.dut->pop_valid_o && b.dut->pop_ready_i) {
      b.pop.expect(Object::unpack(b.dut->pop_o));
      ++same;
    }
    b.dut.tick();
  }
  b.dut->push_valid_i = 0;
  CHECK(same + 10 >= 3 * objects);
  CHECK(same >= objects);
  b.dut.run_until([&] { return b.pop.done(); }, "queue empties");
  CHECK(b.dut->usage_o == 0);
}

TEST_CASE("after a reset no object counts as queued") {
  Random random;
  Bench b(random());
  b.pop.stall(Stall(1.0));
  for (unsigned n = 0; n < objects; n += 2) b.push.push(Object(n));
  b.dut.run_until([&] { return b.push.empty(); }, "pushed");
  b.dut.tick(3);
  b.dut->rst_i = 1;
  b.dut.eval();
  b.pop.clear();
  b.queued.clear();
  b.dut->pop_ready_i = 0;
  // One edge with the agents' checks suspended: valid goes away by reset.
  for (int n = 0; n < 4; ++n) {
    b.pop.clear();
    b.dut.tick();
  }
  b.dut->rst_i = 0;
  b.pop.clear();
  b.dut.run_until([&] { return b.dut->push_ready_o != 0; }, "ready again", objects + 2);
  b.pop.stall(Stall(0.0));
  for (unsigned n = 0; n < objects; ++n) b.push.push(Object(n));
  b.dut.run_until([&] { return b.push.empty() && b.pop.done(); }, "all objects");
  CHECK(b.repeated == 0);
  CHECK(b.pop.transfers() >= objects);
}

TEST_CASE("one push and one pop per cycle, two cycles from push to pop or three") {
  Random random;
  Bench b(random());
  b.push.push(Object(1));
  b.dut.run_until([&] { return b.push.empty(); }, "push");
  unsigned cycles = 1;
  while (!b.dut->pop_valid_o) {
    REQUIRE(cycles < 6);
    b.dut.tick();
    ++cycles;
  }
  CHECK(cycles <= 3);
  b.dut.tick(5);
  const auto before = b.pop.transfers();
  for (unsigned n = 0; n < 200; ++n) b.push.push(Object(n % objects));
  b.dut.tick(210);
  CHECK(b.push.empty());
  CHECK(b.pop.transfers() + b.repeated == before + 200);
}
