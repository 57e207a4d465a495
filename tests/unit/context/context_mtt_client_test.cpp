// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_mtt_client: answers come in order, whatever its look-ups find: a valid line gives the page,
// a pending one is asked for again, a foreign or empty one makes it fetch for itself and use what the
// bus brings, error included.
// model: configs=wide
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <map>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace ctx = roci::sv::context_pkg;

namespace {

// A page address that tells its part and its source.
std::uint64_t page_of(const ctx::mtt_part_t& part, bool fetched) {
  return (part.line_address * 8 + part.page + (fetched ? 0x5555 : 0)) & ((1ull << 52) - 1);
}

// The pages of a part's line, onto a port of 8 x 52 bits.
template <class Port>
void set_pages(Port& port, const ctx::mtt_part_t& part, bool fetched) {
  std::array<std::uint32_t, 13> words{};
  for (unsigned b = 0; b < 416; ++b) {
    auto at = part;
    at.page = static_cast<std::uint8_t>(b / 52);
    words[b / 32] |= static_cast<std::uint32_t>(page_of(at, fetched) >> (b % 52) & 1) << (b % 32);
  }
  for (unsigned w = 0; w < 13; ++w) port[w] = words[w];
}

}  // namespace

TEST_CASE("answers in order with every kind of finding") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Dut<DUT_CLASS> dut(random());
    Source<ctx::mtt_part_t> parts("part", dut->part_valid_i, dut->part_ready_o, dut->part_i);
    Sink<pkg::xlat_rsp_t> rsp("rsp", dut->rsp_valid_o, dut->rsp_ready_i, dut->rsp_o);
    parts.stall(Stall::any(random));
    rsp.stall(Stall::any(random));
    rsp.collect();
    dut->look_ready_i = 0;
    dut->fetch_ready_i = 0;
    dut->fetched_valid_i = 0;
    dut.reset();
    dut.attach(parts);
    dut.attach(rsp);
    std::vector<ctx::mtt_part_t> pushed;
    for (std::size_t n = 0; n < scaled(200); ++n) {
      auto p = random_payload<ctx::mtt_part_t>(random);
      p.status = static_cast<pkg::xlat_status_e>(0);
      p.paged = random.chance(0.8);
      if (!p.paged && random.chance(0.3)) p.status = static_cast<pkg::xlat_status_e>(2);
      p.page_shift = static_cast<std::uint8_t>(random.between(12, 30));
      parts.push(p);
      pushed.push_back(p);
    }
    std::size_t front = 0;
    unsigned fetches = 0, waits = 0;
    // The paged part that is answered next; others are answered without a look-up.
    const auto next_paged = [&] {
      while (!pushed.at(front).paged) ++front;
      return pushed[front++];
    };
    std::map<std::size_t, pkg::xlat_rsp_t> paged_answers;
    bool fetching = false;
    ctx::mtt_part_t own{};
    for (int n = 0; n < 100000 && rsp.received().size() < pushed.size(); ++n) {
      dut->look_ready_i = random.chance(0.7);
      dut->fetch_ready_i = random.chance(0.5);
      dut->fetched_valid_i = 0;
      dut.eval();
      const bool looked = dut->look_valid_o && dut->look_ready_i;
      const auto part = ctx::mtt_part_t::unpack(dut->look_o);
      const bool asked = dut->fetch_valid_o && dut->fetch_ready_i;
      if (asked) {
        own = part;
        fetching = true;
        ++fetches;
      }
      dut.tick();
      if (looked) {
        // what the cache shows in the cycle after
        ctx::mtt_key_t key{};
        key.tag = part.tag;
        const auto kind = random.below(4);
        key.state = static_cast<ctx::mtt_state_e>(kind == 0 ? 1 : kind == 1 ? 0 : 2);
        if (kind == 2) key.tag.line ^= 1;
        key.pack(dut->look_key_i);
        set_pages(dut->look_pages_i, part, false);
        waits += kind == 0;
        if (kind == 3) {
          const auto p = next_paged();
          REQUIRE(p == part);
          const auto mask = (std::uint64_t{1} << p.page_shift) - 1;
          pkg::xlat_rsp_t a{};
          a.last = p.last;
          a.length = p.length;
          a.addr = (page_of(p, false) << 12 & ~mask) | (p.addr & mask);
          paged_answers[front - 1] = a;
        }
      } else if (fetching && random.chance(0.2)) {
        fetching = false;
        dut->fetched_valid_i = 1;
        dut->fetched_err_i = random.chance(0.3);
        set_pages(dut->fetched_pages_i, own, true);
        const auto p = next_paged();
        const auto mask = (std::uint64_t{1} << p.page_shift) - 1;
        pkg::xlat_rsp_t a{};
        a.last = p.last;
        a.length = p.length;
        a.status = static_cast<pkg::xlat_status_e>(dut->fetched_err_i ? 5 : 0);
        a.addr = (page_of(p, true) << 12 & ~mask) | (p.addr & mask);
        paged_answers[front - 1] = a;
        dut->look_ready_i = 0;
        dut->fetch_ready_i = 0;
        dut.tick();
        dut->fetched_valid_i = 0;
      }
    }
    REQUIRE(rsp.received().size() == pushed.size());
    for (std::size_t n = 0; n < pushed.size(); ++n) {
      auto want = paged_answers[n];
      if (!pushed[n].paged) {
        want.status = pushed[n].status;
        want.last = pushed[n].last;
        want.length = pushed[n].length;
        want.addr = pushed[n].addr;
      }
      INFO("answer " << n);
      REQUIRE(rsp.received()[n] == want);
    }
    REQUIRE(fetches > 10);
    REQUIRE(waits > 10);
  }
}
