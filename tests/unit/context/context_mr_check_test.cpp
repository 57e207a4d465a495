// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_mr_check against a table of the rules with 128-bit bounds arithmetic: random entries of all
// kinds, requests that fit or miss by one property or by one byte; both clients in order; a revoked
// entry grants nothing; one look-up per cycle; a blocked client does not block the other.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <array>
#include <bit>
#include <map>

#include "harness/harness.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace hwif = roci::hwif;
using Entry = hwif::MptEntry;
__extension__ typedef unsigned __int128 Wide;

namespace {

constexpr unsigned kEntries = ROCI_CONFIG_WIDE ? 16384 : 256;
constexpr unsigned kFns = ROCI_CONFIG_WIDE ? 16 : 8;
constexpr unsigned kPds = ROCI_CONFIG_WIDE ? 1024 : 64;
constexpr unsigned kQps = ROCI_CONFIG_WIDE ? 1024 : 64;

enum Access : unsigned { kNone, kLocalRead, kLocalWrite, kRemoteRead, kRemoteWrite, kAtomic };

struct Region {
  std::uint64_t iova = 0, length = 0, table = 0;
  std::uint32_t first_byte = 0;
  unsigned key_byte = 0, rights = 0, kind = 0, state = 2, shift = 12, pd = 0, fn = 0, inc = 0;
  std::uint32_t qpn = 0;
  bool contiguous = false, unbounded = false;
};

struct Bench : Agent {
  Dut<DUT_CLASS> dut;
  Random& random;
  Source<pkg::xlat_req_t> req0, req1;
  Sink<pkg::mr_checked_t> checked0, checked1;
  std::map<unsigned, Region> regions;
  unsigned wraps = 0;                          // times the cache was to forget its lines

  void sample() override { wraps += dut->wrap_o; }
  void drive() override {}

  explicit Bench(Random& r)
      : dut(r()),
        random(r),
        req0("req0", dut->req0_valid_i, dut->req0_ready_o, dut->req0_i),
        req1("req1", dut->req1_valid_i, dut->req1_ready_o, dut->req1_i),
        checked0("checked0", dut->checked0_valid_o, dut->checked0_ready_i, dut->checked0_o),
        checked1("checked1", dut->checked1_valid_o, dut->checked1_ready_i, dut->checked1_o) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 20000);
    dut.attach(req0);
    dut.attach(req1);
    dut.attach(checked0);
    dut.attach(checked1);
    dut.attach(*this);
  }

  std::uint64_t access(bool write, unsigned index, unsigned word, std::uint64_t data) {
    return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { dut.tick(); },
        static_cast<unsigned>(hwif::CtxColumn::MPT), write, index, word, data, 200);
  }

  void write(unsigned index, const Region& r) {
    Entry e;
    e.set<Entry::iova>(r.iova);
    e.set<Entry::length>(r.length);
    e.set<Entry::table_address>(r.table);
    e.set<Entry::first_byte_offset>(r.first_byte);
    e.set<Entry::key_byte>(static_cast<std::uint8_t>(r.key_byte));
    e.set<Entry::kind>(static_cast<hwif::MrKind>(r.kind));
    e.set<Entry::state>(static_cast<hwif::MrState>(r.state));
    e.set<Entry::contiguous>(r.contiguous);
    e.set<Entry::unbounded>(r.unbounded);
    e.set<Entry::page_shift>(static_cast<std::uint8_t>(r.shift));
    e.set<Entry::pd>(static_cast<std::uint16_t>(r.pd));
    e.set<Entry::function_number>(static_cast<std::uint8_t>(r.fn));
    e.set<Entry::incarnation>(static_cast<std::uint8_t>(r.inc));
    e.set<Entry::bound_qpn>(r.qpn);
    auto words = std::bit_cast<std::array<std::uint64_t, 8>>(e);
    words[3] |= std::uint64_t{r.rights} << 40;          // byte 29, bits of ibv_access_flags
    for (unsigned w = 0; w < 5; ++w) {
      const unsigned before = wraps;
      access(true, index, w, words[w]);
      REQUIRE(wraps - before == (w == 4 && r.inc == 0));
    }
    for (unsigned w = 0; w < 5; ++w) REQUIRE(access(false, index, w, 0) == words[w]);
    regions[index] = r;
  }

  Region random_region() {
    Region r;
    r.length = random.chance(0.2)   ? random()
               : random.chance(0.1) ? 0
                                    : random.between(1, 1u << random.below(32));
    r.iova = random.chance(0.2) ? ~std::uint64_t{0} - r.length + random.below(3) : random();
    r.table = random() & ~std::uint64_t{63};
    r.first_byte = static_cast<std::uint32_t>(random.bits(30));
    r.key_byte = static_cast<unsigned>(random.bits(8));
    r.rights = static_cast<unsigned>(random.bits(5));
    r.kind = static_cast<unsigned>(random.below(4));
    r.state = static_cast<unsigned>(random.chance(0.85) ? 2 : random.below(4));
    r.shift = static_cast<unsigned>(random.between(12, 30));
    r.pd = static_cast<unsigned>(random.below(kPds));
    r.fn = static_cast<unsigned>(random.below(kFns));
    r.inc = random.chance(0.3) ? 0 : static_cast<unsigned>(random.bits(8));
    r.qpn = static_cast<std::uint32_t>(random.bits(24));
    r.contiguous = random.chance(0.4);
    r.unbounded = r.contiguous && random.chance(0.2);
    return r;
  }
};

pkg::xlat_req_t make(Bench& bench) {
  Random& random = bench.random;
  const auto at = random.below(bench.regions.size());
  auto it = bench.regions.begin();
  std::advance(it, static_cast<std::ptrdiff_t>(at));
  const Region& r = it->second;
  pkg::xlat_req_t q{};
  const auto access = static_cast<unsigned>(random.below(6));
  q.piece.access = static_cast<pkg::access_e>(access);
  q.piece.key = it->first << 8 | r.key_byte;
  q.piece.check_only = random.chance(0.2);
  const std::uint64_t max = q.piece.check_only ? 0xffffffffu : 4096;
  const auto fit = std::min<std::uint64_t>(max, r.length);
  q.piece.length = static_cast<std::uint32_t>(random.between(1, std::max<std::uint64_t>(fit, 1)));
  std::uint64_t offset = 0;
  if (r.length > q.piece.length) {
    switch (random.below(4)) {
      case 0: break;
      case 1: offset = r.length - q.piece.length; break;
      case 2: offset = r.length - q.piece.length + random.between(1, 3); break;
      default: offset = random.below(r.length - q.piece.length + 1); break;
    }
  }
  q.piece.va = r.iova + offset - random.chance(0.05);
  if (random.chance(0.05)) q.piece.va = random();
  q.fn = static_cast<decltype(q.fn)>(r.fn);
  q.pd = static_cast<decltype(q.pd)>(r.pd);
  q.qp = static_cast<decltype(q.qp)>(r.qpn % kQps);
  switch (random.below(12)) {
    case 0: q.piece.key ^= 1u << random.below(32); break;
    case 1: q.fn ^= 1; break;
    case 2: q.pd ^= 1; break;
    case 3: q.qp ^= 1; break;
    default: break;
  }
  return q;
}

// The rules, written from programming.md 4 and wire.md 2.14.
pkg::mr_checked_t judge(const Bench& bench, const pkg::xlat_req_t& q) {
  pkg::mr_checked_t out{};
  const auto access = static_cast<unsigned>(q.piece.access);
  out.check_only = q.piece.check_only;
  out.fn = q.fn;
  out.length = static_cast<std::uint16_t>(q.piece.length & 0x1fff);
  if (access == kNone) {
    out.addr = q.piece.va;
    return out;
  }
  const auto status = [&](unsigned s) { out.status = static_cast<pkg::xlat_status_e>(s); };
  const auto found = bench.regions.find(q.piece.key >> 8);
  const bool local = access == kLocalRead || access == kLocalWrite;
  if (found == bench.regions.end()) {
    status(1);
    return out;
  }
  const Region& r = found->second;
  const bool window = r.kind >= 2;
  const bool right = access == kLocalRead     ? true
                     : access == kLocalWrite  ? r.rights & 1
                     : access == kRemoteWrite ? r.rights & 2
                     : access == kRemoteRead  ? r.rights & 4
                                              : r.rights & 8;
  const Wide begin = q.piece.va;
  const Wide end = begin + q.piece.length;
  const bool inside =
      r.unbounded || (begin >= r.iova && end <= static_cast<Wide>(r.iova) + r.length);
  if (r.state != 2 || r.key_byte != (q.piece.key & 0xff) || r.fn != q.fn || (local && window)) {
    status(1);
  } else if (r.kind == 3 ? r.qpn % kQps != q.qp : r.pd != q.pd) {
    status(2);
  } else if (!right) {
    status(3);
  } else if (!inside) {
    status(4);
  }
  out.paged = !r.contiguous;
  out.addr = r.contiguous ? r.table + (q.piece.va - r.iova)
                          : r.first_byte + (q.piece.va - r.iova);
  out.page_shift = static_cast<std::uint8_t>(r.shift);
  out.mr = static_cast<decltype(out.mr)>(found->first);
  out.incarnation = static_cast<std::uint8_t>(r.inc);
  out.table_address = r.table;
  return out;
}

// What matters of a result.
bool same(const pkg::mr_checked_t& got, const pkg::mr_checked_t& want) {
  if (got.status != want.status || got.fn != want.fn || got.check_only != want.check_only) {
    return false;
  }
  if (static_cast<unsigned>(want.status) != 0) return true;
  if (got.length != want.length || got.paged != want.paged || got.addr != want.addr) return false;
  return !want.paged || (got.page_shift == want.page_shift && got.mr == want.mr &&
                         got.incarnation == want.incarnation &&
                         got.table_address == want.table_address);
}

}  // namespace

TEST_CASE("random keys and accesses") {
  Random random;
  for (int round = 0; round < 4; ++round) {
    Bench bench(random);
    bench.req0.stall(Stall::any(random));
    bench.req1.stall(Stall::any(random));
    bench.checked0.stall(Stall::any(random));
    bench.checked1.stall(Stall::any(random));
    bench.checked0.collect();
    bench.checked1.collect();
    std::array<unsigned, 6> seen{};
    for (int phase = 0; phase < 6; ++phase) {
      for (int n = 0; n < 12; ++n) {
        bench.write(static_cast<unsigned>(random.below(n < 6 ? 8 : kEntries)),
                    bench.random_region());
      }
      std::vector<pkg::mr_checked_t> expected[2];
      for (std::size_t n = 0; n < scaled(400); ++n) {
        const auto q = make(bench);
        const bool client = random.chance(0.5);
        (client ? bench.req1 : bench.req0).push(q);
        expected[client].push_back(judge(bench, q));
        ++seen[static_cast<unsigned>(expected[client].back().status)];
      }
      bench.dut.run_until(
          [&] {
            return bench.checked0.received().size() == expected[0].size() &&
                   bench.checked1.received().size() == expected[1].size();
          },
          "all results", 200000);
      for (unsigned c = 0; c < 2; ++c) {
        auto& received = (c ? bench.checked1 : bench.checked0).received();
        for (std::size_t n = 0; n < received.size(); ++n) {
          INFO("client " << c << " request " << n << " got " << received[n].to_string()
                         << " want " << expected[c][n].to_string());
          REQUIRE(same(received[n], expected[c][n]));
        }
        received.clear();
      }
    }
    for (unsigned s = 0; s <= 4; ++s) REQUIRE(seen[s] > 5);      // every verdict was met
  }
}

TEST_CASE("one look-up per cycle; a blocked client does not block the other") {
  Random random;
  Bench bench(random);
  Region r;
  r.length = 1 << 20;
  r.rights = 0xf;
  r.contiguous = true;
  bench.write(3, r);
  bench.checked0.stall(Stall(1.0));
  bench.checked0.collect();
  bench.checked1.collect();
  pkg::xlat_req_t q{};
  q.piece.access = static_cast<pkg::access_e>(1);
  q.piece.key = 3 << 8;
  q.piece.length = 64;
  for (int n = 0; n < 200; ++n) {
    bench.req0.push(q);
    bench.req1.push(q);
  }
  const auto start = bench.dut.cycle();
  bench.dut.run_until([&] { return bench.checked1.received().size() == 200; }, "client 1");
  REQUIRE(bench.dut.cycle() - start < 240);
  REQUIRE(bench.checked0.received().empty());
}
