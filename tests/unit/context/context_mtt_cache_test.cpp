// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_mtt_cache with page tables in a modelled host memory: every answer is the right DMA address
// in request order per client, cut at 4 KB; a new incarnation never sees old pages, nor does one whose
// number comes again after the lines were forgotten, whatever is under way meanwhile; bus errors reach
// exactly the requests that need the line; many misses are under way at once, those of lines that
// collide or cannot be read as well; a line is not fetched on and on, however many wait for it; a client
// whose answers nobody takes does not stop the other; warm hits keep the rate.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <array>
#include <map>
#include <set>

#include "harness/harness.hpp"
#include "harness/lanes.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

namespace {

constexpr unsigned kBeat = ROCI_CONFIG_WIDE ? 64 : 8;
constexpr unsigned kLines = ROCI_CONFIG_WIDE ? 512 : 32;
constexpr unsigned kMisses = ROCI_CONFIG_WIDE ? 128 : 16;

// Page tables: the address of page `n` of a table is a hash, so any mix-up shows.
std::uint64_t page_address(std::uint64_t entry_address, std::uint64_t world) {
  std::uint64_t x = entry_address * 0x9e3779b97f4a7c15u + world;
  x ^= x >> 29;
  return (x * 0xbf58476d1ce4e5b9u) & ~std::uint64_t{0xfff};
}

struct Bench {
  Dut<DUT_CLASS> dut;
  Random& random;
  Source<pkg::mr_checked_t> checked0, checked1;
  Sink<pkg::xlat_rsp_t> rsp0, rsp1;
  Sink<pkg::dma_read_req_t> dma;
  Source<pkg::read_beat_t> beat;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> reads;   // due cycle, address
  std::set<std::uint64_t> bad_lines;
  std::uint64_t world = 1;
  unsigned latency = 20;
  std::size_t most_under_way = 0;
  std::uint64_t lines = 0;

  explicit Bench(Random& r)
      : dut(r()),
        random(r),
        checked0("checked0", dut->checked0_valid_i, dut->checked0_ready_o, dut->checked0_i),
        checked1("checked1", dut->checked1_valid_i, dut->checked1_ready_o, dut->checked1_i),
        rsp0("rsp0", dut->rsp0_valid_o, dut->rsp0_ready_i, dut->rsp0_o),
        rsp1("rsp1", dut->rsp1_valid_o, dut->rsp1_ready_i, dut->rsp1_o),
        dma("dma", dut->dma_valid_o, dut->dma_ready_i, dut->dma_o),
        beat("beat", dut->beat_valid_i, dut->beat_ready_o, dut->beat_i) {
    dut->colour_i = 0;
    dut->wrap_i = 0;
    dma.collect();
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 5000);
    dut.attach(checked0);
    dut.attach(checked1);
    dut.attach(rsp0);
    dut.attach(rsp1);
    dut.attach(dma);
    dut.attach(beat);
  }

  // Every stream pauses as it likes.
  void stall_any() {
    checked0.stall(Stall::any(random));
    checked1.stall(Stall::any(random));
    rsp0.stall(Stall::any(random));
    rsp1.stall(Stall::any(random));
    dma.stall(Stall::any(random));
    beat.stall(Stall::any(random));
  }
  void tick() {
    for (const auto& request : dma.received()) {
      REQUIRE(request.length == 64);
      REQUIRE(request.addr % 64 == 0);
      reads.emplace_back(dut.cycle() + latency, request.addr);
      ++lines;
    }
    dma.received().clear();
    most_under_way = std::max(most_under_way, reads.size());
    while (!reads.empty() && reads.front().first <= dut.cycle()) {
      const auto line = reads.front().second;
      reads.pop_front();
      const auto bad_beat = random.below(64 / kBeat);    // any, and perhaps others
      for (unsigned at = 0; at < 64; at += kBeat) {
        pkg::read_beat_t b{};
        b.last = at + kBeat == 64;
        b.err = bad_lines.contains(line) && (at / kBeat == bad_beat || random.chance(0.2));
        for (unsigned k = 0; k < kBeat; k += 8) {
          const auto value = page_address(line + at + k, world);
          for (unsigned i = 0; i < 8; ++i) {
            set_byte(b.data, k + i, static_cast<std::uint8_t>(value >> (8 * i)));
          }
        }
        beat.push(b);
      }
    }
    dut.tick();
  }
};

// Per client: the answers that must come, and whether their address counts.
using Expected = std::array<std::vector<std::pair<pkg::xlat_rsp_t, bool>>, 2>;

pkg::mr_checked_t random_request(Random& random, unsigned regions) {
  pkg::mr_checked_t q{};
  q.fn = static_cast<decltype(q.fn)>(random.below(4));
  q.length = static_cast<std::uint16_t>(random.chance(0.5) ? random.between(1, 100)
                                                          : random.between(1, 4096));
  q.mr = static_cast<decltype(q.mr)>(random.below(regions));
  q.incarnation = static_cast<std::uint8_t>(q.mr * 7);
  q.page_shift = static_cast<std::uint8_t>(12 + q.mr % 4);
  q.table_address = (std::uint64_t{q.mr} + 1) << 24;
  q.paged = random.chance(0.9);
  q.addr = q.paged ? random.below(std::uint64_t{64} << q.page_shift) : random();
  if (random.chance(0.05)) q.status = static_cast<pkg::xlat_status_e>(random.between(1, 4));
  q.check_only = random.chance(0.05);
  return q;
}

// The answers a request must get.
std::vector<pkg::xlat_rsp_t> answers(const Bench& bench, const pkg::mr_checked_t& q) {
  std::vector<pkg::xlat_rsp_t> out;
  const bool alone = q.check_only || static_cast<unsigned>(q.status) != 0;
  std::uint64_t at = q.addr;
  unsigned left = q.length;
  do {
    const auto room = static_cast<unsigned>(4096 - at % 4096);
    pkg::xlat_rsp_t r{};
    r.status = q.status;
    r.length = static_cast<std::uint16_t>(alone ? left : std::min(left, room));
    left -= r.length;
    r.last = left == 0;
    r.addr = at;
    if (q.paged && !alone) {
      const auto page = at >> q.page_shift;
      const auto entry = q.table_address + 8 * page;
      const auto mask = (std::uint64_t{1} << q.page_shift) - 1;
      r.addr = (page_address(entry, bench.world) & ~mask) | (at & mask);
      if (bench.bad_lines.contains(entry & ~std::uint64_t{63})) {
        r.status = static_cast<pkg::xlat_status_e>(5);
      }
    }
    at += r.length;
    out.push_back(r);
  } while (left != 0);
  return out;
}

bool same(const pkg::xlat_rsp_t& got, const pkg::xlat_rsp_t& want, bool address) {
  if (got.status != want.status || got.last != want.last || got.length != want.length) return false;
  return !address || static_cast<unsigned>(want.status) != 0 || got.addr == want.addr;
}

// Waits for all of them, compares and forgets them.
void expect_answers(Bench& bench, Expected& expected) {
  for (int n = 0; n < 400000; ++n) {
    if (bench.rsp0.received().size() >= expected[0].size() &&
        bench.rsp1.received().size() >= expected[1].size()) {
      break;
    }
    bench.tick();
  }
  for (unsigned c = 0; c < 2; ++c) {
    auto& received = (c ? bench.rsp1 : bench.rsp0).received();
    REQUIRE(received.size() == expected[c].size());
    for (std::size_t n = 0; n < received.size(); ++n) {
      INFO("client " << c << " answer " << n << " got " << received[n].to_string() << " want "
                     << expected[c][n].first.to_string());
      REQUIRE(same(received[n], expected[c][n].first, expected[c][n].second));
    }
    received.clear();
    expected[c].clear();
  }
}

}  // namespace

TEST_CASE("right addresses in order, with collisions, bus errors and new incarnations") {
  Random random;
  for (int round = 0; round < 6; ++round) {
    Bench bench(random);
    bench.latency = static_cast<unsigned>(random.between(1, 60));
    bench.stall_any();
    bench.rsp0.collect();
    bench.rsp1.collect();
    for (int phase = 0; phase < 4; ++phase) {
      // firmware bumps incarnations when tables change; here all of them at once
      bench.world = random();
      bench.bad_lines.clear();
      for (unsigned mr = 0; mr < 12; ++mr) {
        if (random.chance(0.3)) {
          bench.bad_lines.insert((std::uint64_t{mr + 1} << 24) + 64 * random.below(8));
        }
      }
      Expected expected;
      for (std::size_t n = 0; n < scaled(300); ++n) {
        auto q = random_request(random, 12);
        q.incarnation = static_cast<std::uint8_t>(q.incarnation + phase);
        const bool client = random.chance(0.5);
        for (const auto& a : answers(bench, q)) expected[client].emplace_back(a, !q.check_only);
        (client ? bench.checked1 : bench.checked0).push(q);
      }
      expect_answers(bench, expected);
      for (int n = 0; n < 2000 && bench.dut->fence_busy_o; ++n) bench.tick();
      REQUIRE(bench.dut->fence_busy_o == 0);
    }
  }
}

// One region (0) is registered again with the number of an earlier life, whose lines may still be
// there: it is idle then (fence), while all others go on, and so do their fetches.
TEST_CASE("an incarnation whose number comes again sees its own pages") {
  Random random;
  for (int round = 0; round < 60; ++round) {
    Bench bench(random);
    bench.latency = static_cast<unsigned>(random.between(1, 100));
    bench.rsp0.stall(Stall::any(random));
    bench.rsp1.stall(Stall::any(random));
    bench.beat.stall(Stall::any(random));
    bench.rsp0.collect();
    bench.rsp1.collect();
    Expected expected;
    const auto push = [&](bool client, unsigned mr, std::uint64_t table) {
      auto q = random_request(random, 1);
      q.mr = static_cast<decltype(q.mr)>(mr);
      q.incarnation = 0;
      q.page_shift = 12;
      q.paged = true;
      q.addr = random.below(std::uint64_t{64} << 12);
      q.table_address = table;
      for (const auto& a : answers(bench, q)) expected[client].emplace_back(a, !q.check_only);
      (client ? bench.checked1 : bench.checked0).push(q);
    };
    const auto others = [&](unsigned count) {
      for (unsigned n = 0; n < count; ++n) {
        // two regions whose lines collide with each other, not with those of region 0
        const auto mr = random.chance(0.02) ? 1u : (random.chance(0.5) ? 2 : 1) * kLines - 1;
        push(random.chance(0.5), mr, std::uint64_t{mr + 1} << 24);
      }
    };
    for (unsigned n = 0; n < 30; ++n) push(random.chance(0.5), 0, 1 << 20);
    expect_answers(bench, expected);
    others(200);
    for (auto n = random.below(500); n != 0; --n) {
      bench.dut->wrap_i = random.chance(0.02);           // of other regions
      bench.tick();
    }
    bench.dut->wrap_i = 1;
    bench.tick();
    bench.dut->wrap_i = 0;
    REQUIRE(bench.dut->ready_o != 0);                    // which is about reset
    others(20);
    for (unsigned n = 0; n < 30; ++n) push(random.chance(0.5), 0, 2 << 20);
    expect_answers(bench, expected);
  }
}

namespace {

// 64 bytes of page `n` of region `mr`.
pkg::mr_checked_t page_request(unsigned mr, std::uint64_t n) {
  pkg::mr_checked_t q{};
  q.length = 64;
  q.mr = static_cast<decltype(q.mr)>(mr);
  q.page_shift = 12;
  q.paged = true;
  q.table_address = std::uint64_t{mr + 1} << 24;
  q.addr = n * 4096;
  return q;
}

}  // namespace

TEST_CASE("misses overlap; a blocked client leaves places to the other") {
  Random random;
  Bench bench(random);
  bench.latency = 250;
  bench.rsp0.stall(Stall(1.0));                          // TX: nobody takes its answers
  bench.rsp0.collect();
  bench.rsp1.collect();
  for (unsigned n = 0; n < 4 * kMisses; ++n) bench.checked0.push(page_request(1, 8 * n));
  for (int n = 0; n < 600; ++n) bench.tick();
  REQUIRE(bench.most_under_way >= kMisses / 2);
  REQUIRE(bench.most_under_way <= kMisses * 3 / 4);
  const unsigned count = 40;
  for (unsigned n = 0; n < count; ++n) bench.checked1.push(page_request(2, 8 * n));
  for (int n = 0; n < 20000 && bench.rsp1.received().size() < count; ++n) bench.tick();
  REQUIRE(bench.rsp1.received().size() == count);
}

TEST_CASE("TX may have three quarters of the misses under way, RX always the rest; fences hear of them") {
  Random random;
  Bench bench(random);
  bench.rsp0.collect();
  bench.rsp1.collect();
  const auto push = [&](Source<pkg::mr_checked_t>& to, unsigned mr) {
    for (unsigned n = 0; n < kMisses; ++n) to.push(page_request(mr, 8 * n));
  };
  const auto ticks = [&] {
    for (unsigned n = 0; n < 4 * kMisses; ++n) bench.tick();
  };
  CHECK(bench.dut->fence_busy_o == 0);
  bench.latency = 1000000;                               // memory that does not answer
  push(bench.checked0, 1);
  ticks();
  CHECK(bench.reads.size() == kMisses * 3 / 4);
  CHECK(bench.dut->fence_busy_o == 1);
  bench.dut->colour_i = 1;
  push(bench.checked1, 2);
  ticks();
  CHECK(bench.reads.size() == kMisses);
  CHECK(bench.dut->fence_busy_o == 3);
  bench.latency = 20;
  for (auto& [due, line] : bench.reads) due = 0;
  ticks();
  for (int n = 0; n < 20000 && bench.rsp1.received().size() < kMisses; ++n) bench.tick();
  ticks();
  CHECK(bench.rsp0.received().size() == kMisses);
  CHECK(bench.rsp1.received().size() == kMisses);
  CHECK(bench.dut->fence_busy_o == 0);
}

TEST_CASE("clients whose pages are there take turns") {
  Random random;
  Bench bench(random);
  bench.rsp0.collect();
  bench.rsp1.collect();
  for (auto* client : {&bench.checked0, &bench.checked1}) client->push(page_request(1, 0));
  for (unsigned n = 0; n < 200; ++n) bench.tick();
  const unsigned count = 200;
  for (unsigned n = 0; n < count; ++n) {
    bench.checked0.push(page_request(1, 0));
    bench.checked1.push(page_request(1, 0));
  }
  // a part a cycle between them
  for (unsigned n = 0; n < count; ++n) bench.tick();
  for (auto* client : {&bench.rsp0, &bench.rsp1}) {
    CHECK(client->received().size() >= count / 2 - 10);
    CHECK(client->received().size() <= count / 2 + 2);
  }
}

namespace {

// The like of regions 2 and 3 whose lines all have one place in the cache.
pkg::mr_checked_t colliding(unsigned mr, unsigned n) {
  return page_request(mr, std::uint64_t{mr & 1} * kLines / 2 * 8 + n % 8);
}

struct Traffic : Bench {
  Expected expected;

  explicit Traffic(Random& r) : Bench(r) {
    latency = 250;
    rsp0.collect();
    rsp1.collect();
  }
  void push(bool client, const pkg::mr_checked_t& q) {
    for (const auto& a : answers(*this, q)) expected[client].emplace_back(a, true);
    (client ? checked1 : checked0).push(q);
  }
  // Cycles until all answers have come, and were right.
  std::uint64_t finish() {
    const auto start = dut.cycle();
    expect_answers(*this, expected);
    return dut.cycle() - start;
  }
};

// What `count` misses of one client may take that are fetched side by side.
unsigned side_by_side(unsigned count) {
  return 300 + (250 + 2 * 64 / kBeat) * count / (kMisses / 2);
}

}  // namespace

// Two regions whose lines have one place in the cache, in every order of their parts: each part waits
// for its line no longer than for a miss that overlaps others, so nobody's frames are held up.
TEST_CASE("lines that collide are fetched side by side, and cached for whoever comes alone") {
  Random random;
  const unsigned count = 256;
  for (const unsigned run : {1u, 2u, 3u, 16u, 0u}) {
    for (const bool client : {false, true}) {
      Traffic bench(random);
      unsigned mr = 2;
      for (unsigned n = 0; n < count; ++n) {
        bench.push(client, colliding(mr, n));
        if (run != 0 ? (n + 1) % run == 0 : random.chance(0.3)) mr ^= 1;
      }
      const auto cycles = bench.finish();
      INFO("client " << client << ", runs of " << run << ": " << cycles << " cycles, "
                     << bench.lines << " lines");
      CHECK(cycles < side_by_side(count));
      CHECK(bench.lines <= count);
      // one at a time and in turn, with any period: the second use finds what the first one brought
      for (unsigned n = 0; n < 80; ++n) {
        const auto q = colliding(n % (run + 2) == 0 ? 3 : 2, n);
        bench.push(client, q);
        bench.finish();
        const auto before = bench.lines;
        bench.push(client, q);
        bench.finish();
        CHECK(bench.lines == before);
      }
    }
  }
}

TEST_CASE("a line that cannot be read: all that wait for it fail side by side, and the next reads anew") {
  Random random;
  const unsigned count = 256;
  for (const bool client : {false, true}) {
    Traffic bench(random);
    bench.bad_lines.insert(std::uint64_t{5} << 24);
    for (unsigned n = 0; n < count; ++n) {
      bench.push(client, page_request(4, n % 8));
      if (n % 16 == 0) bench.push(!client, page_request(6, n));   // is not harmed
    }
    CHECK(bench.finish() < side_by_side(count));
    bench.bad_lines.clear();
    bench.push(client, page_request(4, 1));
    bench.finish();
    const auto before = bench.lines;
    for (unsigned n = 0; n < count; ++n) bench.push(client, page_request(4, n % 8));
    bench.finish();
    CHECK(bench.lines == before);
  }
}

// What waits when a line comes was fetched too; that must not push the line out and make others fetch.
TEST_CASE("a line that many need at once is fetched until it is there, and no longer") {
  Random random;
  for (const unsigned latency : {30u, 125u, 250u, 1000u}) {
    for (const unsigned clients : {1u, 2u, 3u}) {
      Traffic bench(random);
      bench.latency = latency;
      for (unsigned n = 0; n < 8 * kMisses; ++n) {
        if (clients & 1) bench.push(false, page_request(2, n % 8));
        if (clients & 2) bench.push(true, page_request(2, n % 8));
      }
      bench.finish();
      INFO("latency " << latency << ", clients " << clients << ": " << bench.lines << " lines");
      CHECK(bench.lines <= 2 * kMisses);
    }
  }
}

// Parts that were checked in the old life are on their way while those of the new one come.
TEST_CASE("lives of a region that overlap: each part gets the pages of its own") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Traffic bench(random);
    bench.latency = static_cast<unsigned>(random.between(1, 100));
    bench.stall_any();
    unsigned life = 0;
    for (unsigned n = 0; n < scaled(400); ++n) {
      if (random.chance(0.1)) ++life;
      auto q = page_request(random.below(2), random.below(16));
      const auto its = life - (random.chance(0.1) && life != 0);
      q.incarnation = static_cast<std::uint8_t>(its);
      q.table_address += std::uint64_t{its} << 12;
      bench.push(random.chance(0.5), q);
    }
    bench.finish();
  }
}

TEST_CASE("warm lines keep the rate of small messages in both directions") {
  Random random;
  Bench bench(random);
  bench.rsp0.collect();
  bench.rsp1.collect();
  pkg::mr_checked_t q{};
  q.length = 64;
  q.page_shift = 12;
  q.paged = true;
  q.table_address = 1 << 20;
  bench.checked0.push(q);
  while (bench.rsp0.received().empty()) bench.tick();
  const unsigned count = 300;
  for (unsigned n = 0; n < count; ++n) {
    bench.checked0.push(q);
    bench.checked1.push(q);
  }
  const auto start = bench.dut.cycle();
  while (bench.rsp0.received().size() <= count || bench.rsp1.received().size() < count) {
    bench.tick();
  }
  REQUIRE(bench.dut.cycle() - start < count * 5 / 2);    // 2.5 cycles for one of each
  REQUIRE(bench.lines == 1);
}
