// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_read: entries come back as accepted; a duplicate READ is found exactly if it is a subset
// with the same end and a PMTU-aligned start of one of the newest entries (wire.md §2.9). Reference:
// a list of READs per QP.
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "responder/responder_model.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
using namespace roci::test::responder;
namespace rs = roci::sv::responder_pkg;
using roci::sv::roci_hwif_pkg::cqe_status_e;     // the models need this package
namespace rc = roci::sv::roci_config_pkg;

struct Qp {
  unsigned number = 0, log2 = 0, base = 0, mtu_code = 0;
  std::uint64_t reads = 0;
  std::uint32_t psn = 0;
  std::deque<ReadEntry> entries;
};

rs::action_t action(const Qp& q, rs::action_e kind) {
  rs::action_t a{};
  a.kind = kind;
  a.qp = static_cast<decltype(a.qp)>(q.number);
  a.mtu = static_cast<std::uint8_t>(q.mtu_code);
  a.replay_log2 = static_cast<std::uint8_t>(q.log2);
  a.replay_base = static_cast<decltype(a.replay_base)>(q.base);
  a.respond.entry = static_cast<decltype(a.respond.entry)>(q.reads & 0xff);
  return a;
}

struct Bench {
  explicit Bench(std::uint64_t salt) : random(salt), dut(salt) {
    dut->action_valid_i = 0;
    dut->entry_read_i = 0;
    lowers.collect();
    dut.reset();
    dut.attach(lowers);
    for (unsigned n = 0; n < 4; ++n) {
      Qp& q = qps.emplace_back();
      q.number = 3 + n;
      q.log2 = n == 3 ? 5 : n;
      q.base = n == 3 ? 32 : 1u << n;              // 1, 2-3, 4-7, 32-63
      q.mtu_code = static_cast<unsigned>(random.between(1, 5));
      q.psn = static_cast<std::uint32_t>(random.bits(24));
    }
  }
  /// Shows an action for one cycle.
  void show(const rs::action_t& a) {
    a.pack(dut->action_i);
    dut->action_valid_i = 1;
    tick();
    dut->action_valid_i = 0;
  }
  void tick(std::uint64_t cycles = 1) {
    while (cycles-- != 0) {
      dut.eval();
      ignored += dut->count_ignored_o;
      dut.tick();
    }
  }
  void accept(Qp& q) {
    const std::uint32_t mtu = 128u << q.mtu_code;
    ReadEntry e{q.reads, q.psn, 0, static_cast<std::uint32_t>(random.bits(24)), random(),
                static_cast<std::uint32_t>(random()),
                static_cast<std::uint32_t>(random.below(10 * mtu))};
    e.packets = std::max(1u, (e.length + mtu - 1) / mtu);
    rs::action_t a = action(q, rs::ACTION_READ);
    a.psn = e.first_psn;
    a.packets = e.packets;
    a.va = e.va;
    a.rkey = e.rkey;
    a.length = e.length;
    a.respond.msn = e.msn;
    show(a);
    ++q.reads;
    q.psn = (q.psn + e.packets + static_cast<std::uint32_t>(random.below(3))) & psn_mask;
    q.entries.push_back(e);
    if (q.entries.size() > (1u << q.log2)) q.entries.pop_front();
  }

  Random random;
  Dut<DUT_CLASS> dut;
  Sink<rs::lower_t> lowers{"lower", dut->lower_valid_o, dut->lower_ready_i, dut->lower_o};
  std::vector<Qp> qps;
  std::uint64_t ignored = 0;
};
}  // namespace

TEST_CASE("entries come back to the response walker, also while searches run") {
  Bench b(Random{}());
  for (std::size_t n = 0; n < scaled(300); ++n) {
    Qp& q = b.qps[b.random.below(b.qps.size())];
    b.accept(q);
    b.tick(b.random.below(3));
    const ReadEntry& e = b.random.pick(q.entries);
    if (b.random.chance(0.5)) {                     // something to search for
      auto a = action(q, rs::ACTION_DUP_READ);
      a.psn = e.first_psn;
      b.show(a);
    }
    b.dut->entry_read_i = 1;
    b.dut->entry_slot_i =
        static_cast<SData>(q.base + (e.ordinal & ((1u << q.log2) - 1)));
    b.dut.tick();
    b.dut->entry_read_i = 0;
    b.dut.tick();
    const auto got = rs::replay_entry_t::unpack(b.dut->entry_o);
    REQUIRE(got.ordinal == (e.ordinal & 0xff));
    REQUIRE(got.first_psn == e.first_psn);
    REQUIRE(got.packets == e.packets);
    REQUIRE(got.msn == e.msn);
    REQUIRE(got.va == e.va);
    REQUIRE(got.rkey == e.rkey);
    REQUIRE(got.length == e.length);
  }
}

TEST_CASE("duplicates: found if a subset with the same end, else silence") {
  Bench b(Random{}());
  std::uint64_t found = 0, lost = 0;
  for (std::size_t n = 0; n < scaled(3000); ++n) {
    Qp& q = b.qps[b.random.below(b.qps.size())];
    if (q.entries.empty() || b.random.chance(0.3)) {
      b.accept(q);
      continue;
    }
    const ReadEntry e = b.random.pick(q.entries);
    const std::uint32_t mtu = 128u << q.mtu_code;
    const auto skip = static_cast<std::uint32_t>(b.random.below(e.packets));
    auto a = action(q, rs::ACTION_DUP_READ);
    a.colour = b.random.chance(0.5);
    a.psn = (e.first_psn + skip) & psn_mask;
    a.va = e.va + std::uint64_t{skip} * mtu;
    a.rkey = e.rkey;
    a.length = e.length - skip * mtu;
    bool hit = true;
    switch (b.random.below(9)) {
      case 0: a.va += 4; hit = false; break;                 // not on a PMTU boundary
      case 1: a.length -= 1; hit = false; break;             // another end
      case 2: a.rkey ^= 0x100; hit = false; break;
      case 3: a.psn = (a.psn + 1) & psn_mask; hit = false; break;   // PSN and address disagree
      case 4: a.qp = b.qps[(q.number - 3 + 1) % 4].number; break;   // region decides, not number
      default: break;
    }
    b.show(a);
    CHECK(b.dut->fence_busy_o == (a.colour ? 2 : 1));
    const std::uint64_t before = b.ignored;
    // one entry a cycle
    for (unsigned k = 0; k < (1u << q.log2) + 8; ++k) b.tick();
    CHECK(b.dut->fence_busy_o == 0);
    auto& got = b.lowers.received();
    REQUIRE(got.size() == (hit ? 1 : 0));
    REQUIRE(b.ignored - before == (hit ? 0 : 1));
    if (hit) {
      REQUIRE(got[0].qp == a.qp);
      REQUIRE(got[0].ordinal == (e.ordinal & 0xff));
      REQUIRE(got[0].packet == skip);
    }
    got.clear();
    ++(hit ? found : lost);
  }
  CHECK(found > 500);
  CHECK(lost > 200);
}

TEST_CASE("an old READ whose entry was reused is not found; a flood is cut, not waited for") {
  Bench b(7);
  Qp& q = b.qps[1];                                  // region of two
  for (int n = 0; n < 2; ++n) b.accept(q);
  const ReadEntry old = q.entries.front();
  auto a = action(q, rs::ACTION_DUP_READ);
  a.psn = old.first_psn;
  a.va = old.va;
  a.rkey = old.rkey;
  a.length = old.length;
  b.show(a);
  b.tick(20);
  CHECK(b.lowers.received().size() == 1);
  b.accept(q);
  a.respond.entry = static_cast<decltype(a.respond.entry)>(q.reads);
  b.show(a);
  b.tick(20);
  CHECK(b.lowers.received().size() == 1);
  CHECK(b.ignored == 1);

  b.lowers.stall(Stall(1.0));
  const ReadEntry kept = q.entries.front();
  a.psn = kept.first_psn;
  a.va = kept.va;
  a.rkey = kept.rkey;
  a.length = kept.length;
  for (int n = 0; n < 100; ++n) b.show(a);
  b.lowers.stall(Stall(0.0));
  b.tick(300);
  const std::uint64_t kept_ones = b.lowers.received().size() - 1;
  CHECK(kept_ones >= 16);
  CHECK(kept_ones + b.ignored - 1 == 100);
}
