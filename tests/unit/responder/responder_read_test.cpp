// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_read: entries come back as accepted; a duplicate READ is found exactly if it is a subset
// with the same end and a PMTU-aligned start of one of the newest entries (wire.md §2.9); a flood of
// one queue pair takes nothing from the others. Reference: a list of READs per QP.
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
constexpr unsigned qp_count = 1u << rc::QP_BITS;
// cycles from a duplicate to its answer beside one per entry: queue, fetch, table
constexpr unsigned search_cycles = 12;

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

std::uint32_t length_of(unsigned atomic) { return atomic == CMP_SWAP ? 0xc0000001u : 0xc0000000u; }

/// The duplicate of a whole READ, or of an atomic.
rs::action_t duplicate(const Qp& q, const ReadEntry& e) {
  rs::action_t a = action(q, rs::ACTION_DUP_READ);
  a.psn = e.first_psn;
  a.va = e.va;
  a.rkey = e.rkey;
  a.length = e.length;
  if (e.atomic != 0) a.length = length_of(e.atomic);
  return a;
}

struct Bench {
  explicit Bench(std::uint64_t salt) : random(salt), dut(salt) {
    dut->action_valid_i = 0;
    dut->entry_read_i = 0;
    dut->result_valid_i = 0;
    lowers.collect();
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 2 * qp_count);
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
  unsigned slot(const Qp& q, const ReadEntry& e) const {
    return q.base + static_cast<unsigned>(e.ordinal & ((1u << q.log2) - 1));
  }
  rs::replay_entry_t look(const Qp& q, const ReadEntry& e) {
    dut->entry_read_i = 1;
    dut->entry_slot_i = static_cast<SData>(slot(q, e));
    dut.tick();
    dut->entry_read_i = 0;
    dut.tick();
    return rs::replay_entry_t::unpack(dut->entry_o);
  }
  /// The atomic of this entry is done.
  void result(const Qp& q, ReadEntry& e, bool failed = false) {
    rp::atomic_done_t d = random_payload<rp::atomic_done_t>(random);
    d.slot = static_cast<decltype(d.slot)>(slot(q, e));
    d.failed = failed;
    e.value = d.value;
    e.done = !failed;
    d.pack(dut->result_i);
    dut->result_valid_i = 1;
    dut.eval();
    REQUIRE(dut->result_ready_o);                  // no action beside it
    dut.tick();
    dut->result_valid_i = 0;
  }
  void accept_atomic(Qp& q) {
    ReadEntry e{q.reads, q.psn, 1, static_cast<std::uint32_t>(random.bits(24)), random(),
                static_cast<std::uint32_t>(random()), 0};
    e.atomic = random.chance(0.5) ? CMP_SWAP : FETCH_ADD;
    rs::action_t a = action(q, rs::ACTION_READ);
    a.psn = e.first_psn;
    a.packets = 1;
    a.va = e.va;
    a.rkey = e.rkey;
    a.length = length_of(e.atomic);
    a.respond.msn = e.msn;
    show(a);
    ++q.reads;
    q.psn = (q.psn + 1) & psn_mask;
    q.entries.push_back(e);
    if (q.entries.size() > (1u << q.log2)) q.entries.pop_front();
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
    if (b.random.chance(0.5)) b.show(duplicate(q, e));       // something to search for
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
      // region decides, not number
      case 4: a.qp = static_cast<decltype(a.qp)>(b.qps[(q.number - 3 + 1) % 4].number); break;
      default: break;
    }
    b.show(a);
    CHECK(b.dut->fence_busy_o == (a.colour ? 2 : 1));
    const std::uint64_t before = b.ignored;
    // one entry a cycle
    b.tick((1u << q.log2) + search_cycles);
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

TEST_CASE("an old READ whose entry was reused is not found") {
  Bench b(7);
  Qp& q = b.qps[1];                                  // region of two
  for (int n = 0; n < 2; ++n) b.accept(q);
  auto a = duplicate(q, q.entries.front());
  b.show(a);
  b.tick(20);
  CHECK(b.lowers.received().size() == 1);
  b.accept(q);
  a.respond.entry = static_cast<decltype(a.respond.entry)>(q.reads);
  b.show(a);
  b.tick(20);
  CHECK(b.lowers.received().size() == 1);
  CHECK(b.ignored == 1);
}

TEST_CASE("a flood of duplicates of one queue pair leaves the others theirs") {
  Bench b(Random{}());
  Qp& flood = b.qps[1];
  Qp& other = b.qps[2];
  for (int n = 0; n < 2; ++n) b.accept(flood);
  for (int n = 0; n < 4; ++n) b.accept(other);
  b.lowers.stall(Stall(1.0));
  for (int n = 0; n < 100; ++n) b.show(duplicate(flood, flood.entries.back()));
  const ReadEntry& wanted = other.entries.front();
  b.show(duplicate(other, wanted));
  b.lowers.stall(Stall(0.0));
  b.tick(300);
  const auto& got = b.lowers.received();
  REQUIRE(got.size() == 2);                          // one of the flood: they all ask for the same
  CHECK(got[0].qp == flood.number);
  CHECK(got[1].qp == other.number);
  CHECK(got[1].ordinal == (wanted.ordinal & 0xff));
  CHECK(got[1].packet == 0);
  CHECK(b.ignored == 0);                             // nothing that is no longer kept
  CHECK(b.dut->fence_busy_o == 0);

  // While it goes on in every cycle too: at most one search of the flood before the other's.
  for (int round = 0; round < 20; ++round) {
    const std::size_t before = got.size();
    b.show(duplicate(flood, flood.entries.back()));
    b.tick(b.random.below(20));
    b.show(duplicate(other, wanted));
    std::size_t floods = 0;
    for (int n = 0; n < 40; ++n) b.show(duplicate(flood, flood.entries.back()));
    for (std::size_t n = before; got.at(n).qp != other.number; ++n) ++floods;
    REQUIRE(floods <= 3);                            // answered before, in search, and again
    b.tick(40);
  }
}

TEST_CASE("of the READs that a retry asks for in one go the oldest is answered from") {
  Bench b(Random{}());
  Qp& q = b.qps[3];                                  // region of 32
  for (int n = 0; n < 20; ++n) b.accept(q);
  b.lowers.stall(Stall(1.0));
  for (std::size_t n = 5; n < 20; ++n) b.show(duplicate(q, q.entries[n]));
  b.lowers.stall(Stall(0.0));
  b.tick(100);
  const auto& got = b.lowers.received();
  REQUIRE(got.size() == 1);
  CHECK(got[0].ordinal == 5);                        // the cursor goes on through those behind it
}

TEST_CASE("every queue pair has room for a search at the same time") {
  Bench b(Random{}());
  std::deque<Qp> qps;
  const unsigned slots = 1u << rc::REPLAY_BITS;
  for (unsigned n = 0; n < qp_count; ++n) {
    Qp& q = qps.emplace_back();
    q.number = n;
    q.log2 = 1;
    q.base = 2 * n % slots;
    q.mtu_code = 1;
    q.psn = static_cast<std::uint32_t>(b.random.bits(24));
    b.accept(q);
    b.accept(q);
  }
  b.lowers.stall(Stall(1.0));
  for (int round = 0; round < 3; ++round) {
    for (Qp& q : qps) b.show(duplicate(q, q.entries.front()));
  }
  b.lowers.stall(Stall(0.0));
  b.tick(std::uint64_t{qp_count} * (2 + search_cycles));
  const auto& got = b.lowers.received();
  REQUIRE(got.size() == qp_count);
  for (unsigned n = 0; n < qp_count; ++n) {
    REQUIRE(got[n].qp == n);                         // first come first served
    REQUIRE(got[n].ordinal == 0);
  }
  CHECK(b.ignored == 0);
  CHECK(b.dut->fence_busy_o == 0);
}

TEST_CASE("an entry that is written while it is read is a new one or gone") {
  Bench b(Random{}());
  Qp& q = b.qps[0];                                  // region of one
  for (std::size_t n = 0; n < scaled(200); ++n) {
    b.accept(q);
    const ReadEntry old = q.entries.back();
    b.show(duplicate(q, old));
    b.tick(n % 10);                                  // also in the cycle of the look
    b.dut->entry_read_i = n % 3 == 0;
    b.dut->entry_slot_i = static_cast<SData>(q.base);
    b.accept(q);
    b.dut->entry_read_i = 0;
    b.tick();
    if (n % 3 == 0) {
      REQUIRE(rs::replay_entry_t::unpack(b.dut->entry_o).ordinal == ((old.ordinal + 1) & 0xff));
    }
    b.tick(20);
    for (const rs::lower_t& l : b.lowers.received()) REQUIRE(l.ordinal == (old.ordinal & 0xff));
    b.lowers.received().clear();
    REQUIRE(b.dut->fence_busy_o == 0);
  }
}

TEST_CASE("atomics: the result takes the address's place; a duplicate has the same PSN, key and opcode") {
  Bench b(Random{}());
  std::uint64_t found = 0, lost = 0, done = 0;
  for (std::size_t n = 0; n < scaled(2000); ++n) {
    Qp& q = b.qps[b.random.below(b.qps.size())];
    if (q.entries.empty() || b.random.chance(0.3)) {
      if (b.random.chance(0.3)) b.accept(q);
      else b.accept_atomic(q);
      continue;
    }
    ReadEntry& e = q.entries[b.random.below(q.entries.size())];
    if (e.atomic == 0) continue;
    if (!e.done && b.random.chance(0.5)) b.result(q, e, b.random.chance(0.2));
    done += e.done;
    const auto got = b.look(q, e);
    REQUIRE(got.ordinal == (e.ordinal & 0xff));
    REQUIRE(got.length == length_of(e.atomic));
    REQUIRE(got.first_psn == e.first_psn);
    REQUIRE(got.packets == 1);
    REQUIRE(got.msn == e.msn);
    REQUIRE(got.done == e.done);
    if (e.done) REQUIRE(got.va == e.value);
    auto a = duplicate(q, e);
    a.va = b.random();                               // does not matter, wire.md 2.9
    bool hit = true;
    switch (b.random.below(6)) {
      case 0: a.length ^= 1; hit = false; break;     // the other opcode
      case 1: a.length = 8; hit = false; break;      // a READ
      case 2: a.psn = (a.psn + 0x5000) & psn_mask; hit = false; break;
      case 3: a.rkey ^= 1; hit = false; break;
      default: break;
    }
    b.show(a);
    b.tick((1u << q.log2) + search_cycles);
    auto& lowers = b.lowers.received();
    REQUIRE(lowers.size() == (hit ? 1 : 0));
    if (hit) {
      REQUIRE(lowers[0].ordinal == (e.ordinal & 0xff));
      REQUIRE(lowers[0].packet == 0);
    }
    lowers.clear();
    ++(hit ? found : lost);
  }
  CHECK(found > 100);
  CHECK(lost > 100);
  CHECK(done > 100);
}

TEST_CASE("a result that comes while its entry is read has not come yet") {
  Bench b(Random{}());
  Qp& q = b.qps[2];
  for (std::size_t n = 0; n < scaled(100); ++n) {
    b.accept_atomic(q);
    ReadEntry& e = q.entries.back();
    b.dut->entry_read_i = 1;
    b.dut->entry_slot_i = static_cast<SData>(b.slot(q, e));
    b.result(q, e);                                  // one cycle
    b.dut->entry_read_i = 0;
    b.dut.tick();
    const auto early = rs::replay_entry_t::unpack(b.dut->entry_o);
    REQUIRE(early.ordinal == (e.ordinal & 0xff));
    REQUIRE(!early.done);
    const auto late = b.look(q, e);
    REQUIRE(late.done);
    REQUIRE(late.va == e.value);
  }
}
