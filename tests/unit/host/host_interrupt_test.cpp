// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_interrupt against a model of masks and pending bits: each raise is sent once, masked ones
// when unmasked, cleared ones never; nothing is lost; all functions and vectors get their turn.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
namespace cpu = roci::sv::cpu_pkg;
using Raise = cpu::irq_raise_t;
using Write = cpu::irq_write_t;

constexpr unsigned fns = cpu::FNS, vectors = 8;

/// Packs a raise into slot `n` of the port.
template <class Port>
void set_raise(Port& port, unsigned n, unsigned fn, unsigned irq_vector) {
  Raise r{};
  r.fn = static_cast<decltype(r.fn)>(fn);
  r.irq_vector = static_cast<decltype(r.irq_vector)>(irq_vector);
  std::uint32_t words[2] = {static_cast<std::uint32_t>(port), 0};
  r.to_bits(words, n * Raise::width_bits);
  port = static_cast<Port>(words[0]);
}

/// The module at rest behind a reset, and what it sends.
struct Bench {
  Dut<DUT_CLASS> dut;
  Sink<Raise> irq;

  explicit Bench(std::uint64_t salt)
      : dut(salt), irq("irq", dut->irq_valid_o, dut->irq_ready_i, dut->irq_o) {
    irq.collect();
    dut->raise_valid_i = 0;
    dut->fn_resetting_i = 0;
    Write{}.pack(dut->irq_write_i);
    dut->irq_fn_i = 0;
    dut.reset();
    dut.attach(irq);
  }
  void write(unsigned fn, bool is_mask, unsigned irq_vector, bool masked, unsigned clear) {
    Write w{};
    w.valid = true;
    w.fn = static_cast<decltype(w.fn)>(fn);
    w.is_mask = is_mask;
    w.irq_vector = static_cast<decltype(w.irq_vector)>(irq_vector);
    w.masked = masked;
    w.clear = static_cast<decltype(w.clear)>(clear);
    w.pack(dut->irq_write_i);
    dut.tick();
    Write{}.pack(dut->irq_write_i);
  }
  void mask(unsigned fn, unsigned irq_vector, bool masked) {
    write(fn, true, irq_vector, masked, 0);
  }
  void raise(unsigned fn, unsigned irq_vector) {
    set_raise(dut->raise_i, 0, fn, irq_vector);
    dut->raise_valid_i = 1;
    dut.tick();
    dut->raise_valid_i = 0;
  }
};
}  // namespace

TEST_CASE("random raises, masks, clears") {
  Random random;
  for (int round = 0; round < 8; ++round) {
    Bench bench(random());
    auto& [dut, irq] = bench;
    irq.stall(Stall::any(random));
    bool masked[fns][vectors], pending[fns][vectors] = {};
    for (auto& f : masked) {
      for (auto& v : f) v = true;
    }
    std::size_t sent = 0, raised = 0;
    std::set<std::pair<unsigned, unsigned>> before;
    // Per vector: how many raises may still be sent, and whether one must be.
    std::map<std::pair<unsigned, unsigned>, unsigned> may;
    std::map<std::pair<unsigned, unsigned>, bool> must;
    const auto take = [&] {
      for (const auto& r : irq.received()) {
        ++sent;
        auto& left = may[{r.fn, r.irq_vector}];
        REQUIRE(left > 0);
        --left;
        must[{r.fn, r.irq_vector}] = false;
      }
      irq.received().clear();
    };
    const double busy = random.chance(0.5) ? 0.02 : 0.5;
    for (std::size_t cycle = 0; cycle < scaled(8000); ++cycle) {
      std::set<std::pair<unsigned, unsigned>> now;
      dut->raise_valid_i = 0;
      for (unsigned n = 0; n < 2; ++n) {
        if (!random.chance(busy)) continue;
        const auto f = static_cast<unsigned>(random.below(fns));
        const auto v = static_cast<unsigned>(random.below(vectors));
        dut->raise_valid_i |= static_cast<CData>(1u << n);
        set_raise(dut->raise_i, n, f, v);
        now.insert({f, v});
        ++raised;
      }
      Write w{};
      w.valid = random.chance(0.3);
      w.fn = static_cast<decltype(w.fn)>(random.below(fns));
      w.is_mask = random.chance(0.7);
      w.irq_vector = static_cast<decltype(w.irq_vector)>(random.below(vectors));
      w.masked = random.chance(0.3);
      // Only masked vectors are cleared here: a clear that races with a send may go either way.
      for (unsigned v = 0; v < vectors; ++v) {
        if (masked[w.fn][v] && random.chance(0.3)) {
          w.clear |= static_cast<decltype(w.clear)>(1u << v);
        }
      }
      w.pack(dut->irq_write_i);
      if (w.valid && w.is_mask) masked[w.fn][w.irq_vector] = w.masked;
      if (w.valid && !w.is_mask) {
        const auto shown = Raise::unpack(dut->irq_o);
        for (unsigned v = 0; v < vectors; ++v) {
          if (!(w.clear >> v & 1)) continue;
          pending[w.fn][v] = false;
          // What stands at the output is sent already.
          may[{w.fn, v}] = dut->irq_valid_o && shown.fn == w.fn && shown.irq_vector == v;
          must[{w.fn, v}] = false;
        }
      }
      // A raise takes effect a cycle later, and wins over a clear.
      for (const auto& which : before) {
        pending[which.first][which.second] = true;
        ++may[which];
        must[which] = true;
      }
      before = now;
      dut.tick();
      take();
    }
    // Unmask everything: all that waits comes, and the registers show what they should.
    for (const auto& which : before) {
      pending[which.first][which.second] = true;
      ++may[which];
      must[which] = true;
    }
    dut->raise_valid_i = 0;
    for (unsigned f = 0; f < fns; ++f) {
      Write{}.pack(dut->irq_write_i);
      dut->irq_fn_i = static_cast<std::decay_t<decltype(dut->irq_fn_i)>>(f);
      dut.tick(2);
      for (unsigned v = 0; v < vectors; ++v) {
        REQUIRE((dut->irq_pending_o >> v & 1) == pending[f][v]);
        REQUIRE((dut->irq_masked_o >> v & 1) == masked[f][v]);
      }
      for (unsigned v = 0; v < vectors; ++v) {
        Write w{};
        w.valid = true;
        w.fn = static_cast<decltype(w.fn)>(f);
        w.is_mask = true;
        w.irq_vector = static_cast<decltype(w.irq_vector)>(v);
        w.pack(dut->irq_write_i);
        dut.tick();
      }
    }
    Write{}.pack(dut->irq_write_i);
    irq.stall(Stall(0.0));
    dut.tick(400);
    take();
    for (const auto& [which, waits] : must) REQUIRE(!waits);
    CHECK(sent <= raised);
    CHECK(sent > 50);
  }
}

TEST_CASE("masked stays, clear forgets, a busy vector starves nobody") {
  Bench bench(1);
  auto& [dut, irq] = bench;
  bench.raise(1, 3);
  bench.raise(1, 4);
  dut.tick(10);
  CHECK(irq.received().empty());
  dut->irq_fn_i = 1;
  dut.tick(2);
  CHECK(dut->irq_masked_o == 0xff);
  CHECK(dut->irq_pending_o == 0x18);
  bench.write(1, false, 0, false, 0x10);  // clears 4
  bench.write(1, true, 3, false, 0);
  bench.write(1, true, 4, false, 0);
  dut.tick(10);
  REQUIRE(irq.received().size() == 1);
  CHECK(irq.received()[0].fn == 1);
  CHECK(irq.received()[0].irq_vector == 3);
  dut.tick(1);
  CHECK(dut->irq_pending_o == 0x08);  // until software clears it
  irq.received().clear();
  // Function 2 raises one vector in every cycle; function 3 and its own vector 7 still come.
  for (const unsigned v : {0u, 7u}) bench.write(2, true, v, false, 0);
  bench.write(3, true, 1, false, 0);
  bench.raise(2, 7);
  bench.raise(3, 1);
  for (int n = 0; n < 20; ++n) bench.raise(2, 0);
  std::set<std::pair<unsigned, unsigned>> seen;
  for (const auto& r : irq.received()) seen.insert({r.fn, r.irq_vector});
  CHECK(seen.count({2, 7}) == 1);
  CHECK(seen.count({3, 1}) == 1);
  CHECK(seen.count({2, 0}) == 1);
}

TEST_CASE("the next user of a function gets nothing of the last one's") {
  Bench bench(1);
  auto& [dut, irq] = bench;
  for (const unsigned fn : {1u, 2u}) {
    bench.mask(fn, 0, false);
    bench.raise(fn, 0);
    bench.raise(fn, 5);  // masked: it waits
  }
  dut.tick(20);
  REQUIRE(irq.received().size() == 2);
  irq.received().clear();
  // of nobody else, and of something that is just being destroyed
  for (const bool raised : {false, true}) {
    dut->fn_resetting_i = 1u << 1;
    dut.tick(3);
    if (raised) bench.raise(1, 3);
    dut.tick(10);
    dut->fn_resetting_i = 0;
    dut.tick(3);
    for (const unsigned fn : {1u, 2u}) {
      INFO("function " << fn << (raised ? ", with a raise" : ""));
      dut->irq_fn_i = static_cast<std::decay_t<decltype(dut->irq_fn_i)>>(fn);
      dut.tick(2);
      CHECK(dut->irq_masked_o == (fn == 1 ? 0xff : 0xfe));
      CHECK(dut->irq_pending_o == (fn == 1 ? 0 : 0x21));
    }
  }
  for (const unsigned fn : {1u, 2u}) {
    for (unsigned v = 0; v < vectors; ++v) bench.mask(fn, v, false);
  }
  dut.tick(30);
  REQUIRE(irq.received().size() == 1);
  CHECK(irq.received()[0].fn == 2);
  CHECK(irq.received()[0].irq_vector == 5);
}
