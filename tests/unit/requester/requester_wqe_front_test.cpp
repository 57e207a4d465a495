// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_wqe_front: WQEs of every form, well made and not, in bursts, against the reference
// model of send_model.hpp: every WQE comes out once with its fields and verdict, SGEs first.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "requester/send_model.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
using namespace roci::test::send;
namespace spkg = roci::sv::requester_send_pkg;

namespace {

struct Bench {
  Dut<DUT_CLASS> dut;
  Random& random;
  Source<pkg::wqe_block_t> block;
  Sink<spkg::wqe_t> wqe;
  Sink<pkg::sge_t> sge;

  explicit Bench(Random& r)
      : dut(r()), random(r), block("block", dut->block_valid_i, dut->block_ready_o, dut->block_i),
        wqe("wqe", dut->wqe_valid_o, dut->wqe_ready_i, dut->wqe_o),
        sge("sge", dut->sge_valid_o, dut->sge_ready_i, dut->sge_o) {
    gids = static_cast<std::uint32_t>(random.bits(kGids) | random.bits(kGids));
    dut->gid_valid_i = static_cast<std::decay_t<decltype(dut->gid_valid_i)>>(gids);
    dut.reset();
    wqe.on_transfer([this](const spkg::wqe_t& w) {
      // its SGEs have all been handed over
      due += w.sges;
      REQUIRE(sge.transfers() >= due);
    });
    dut.attach(block);
    dut.attach(wqe);
    dut.attach(sge);
  }
  std::uint64_t due = 0;
  std::uint32_t gids = 0;            // that the port has
};

// Bends a good request into one of the malformed kinds.
void spoil(Wqe& w, Random& random) {
  switch (random.below(12)) {
    case 0: w.blocks = static_cast<unsigned>(random.pick(std::vector<int>{0, 9, 15})); break;
    case 1: w.op = static_cast<std::uint8_t>(random()); break;
    case 2: w.op = kSendInv; break;
    case 3: w.inline_data = true; w.op = kRead; break;
    case 4:
      w.inline_data = true;
      w.length = static_cast<std::uint32_t>(w.blocks * 64 - w.header() + 1);
      break;
    case 9: w.datagram = !w.datagram; break;
    case 10: w.sgid_index = static_cast<std::uint8_t>(random.bits(8)); break;
    case 5: w.sge_count = static_cast<unsigned>(random.below(16)); break;
    case 6: w.length += random.chance(0.5) ? 1 : -1; break;
    case 7: w.length = 0x80000001u; break;
    case 8:                                            // an atomic that is not quite one
      w.op = random.chance(0.5) ? kCmpSwap : kFetchAdd;
      w.sge_count = static_cast<unsigned>(random.below(8)) == 0 ? 2 : 1;
      w.sges = {{8 * random.bits(32) + (random.chance(0.2) ? random.below(8) : 0),
                 random.chance(0.8) ? 8u : 16u, 1}};
      w.length = random.chance(0.8) ? 8 : static_cast<std::uint32_t>(random.below(64));
      w.inline_data = random.chance(0.1);
      break;
    default:
      if (!w.sges.empty()) w.sges[random.below(w.sges.size())].length += 1u << 31u;
      break;
  }
  w.sges.resize(w.sge_count);
}

}  // namespace

TEST_CASE("all forms of WQEs") {
  Random random;
  for (int round = 0; round < 30; ++round) {
    Bench bench(random);
    bench.block.stall(Stall::any(random));
    bench.wqe.stall(Stall::any(random));
    bench.sge.stall(Stall::any(random));
    const double bad = round % 3 == 0 ? 0.3 : 0.0;
    for (std::size_t burst = 0; burst < scaled(60); ++burst) {
      // A burst: WQEs of one QP inside a line.
      pkg::wqe_block_t common = random_payload<pkg::wqe_block_t>(random);
      common.err = false;
      common.addr &= ~std::uint64_t{63};
      unsigned index = static_cast<unsigned>(random.bits(16));
      const unsigned end = (index | 7u) + 1;
      std::vector<pkg::wqe_block_t> blocks;
      while (index < end && random.chance(blocks.empty() ? 1.0 : 0.7)) {
        Wqe w = random_wqe(random, random.chance(0.2) ? 0 : random.bits(32) >> random.below(33));
        if (w.length > 0x80000000u) w = random_wqe(random, 0x80000000u);
        if (random.chance(0.3)) w = random_wqe(random, random.below(5000), 2);
        if (w.blocks > end - index) {                  // as the host does: pad the line
          w = Wqe{};
          w.op = kNop;
          w.blocks = end - index;
          w.length = static_cast<std::uint32_t>(random());
        }
        if (random.chance(bad)) spoil(w, random);
        Vendor vendor = w.verdict(index, bench.gids);
        // blocks that it takes: a malformed count counts as one
        const bool misfit = w.blocks == 0 || index % 8 + w.blocks > 8;
        unsigned count = misfit ? 1 : w.blocks;
        bool truncated = false;
        if (!misfit && w.blocks > 1 && random.chance(bad)) {
          count = static_cast<unsigned>(random.between(1, w.blocks - 1));
          truncated = true;
        }
        bool bus_error = false;
        const auto raw = w.to_blocks(random, misfit ? 1 : w.blocks);
        unsigned made = 0;
        for (; made < count; ++made) {
          pkg::wqe_block_t b = common;
          b.turn = blocks.empty() && common.turn;
          b.burst_last = false;
          b.index = static_cast<std::uint16_t>(index + made);
          b.addr = common.addr + 64u * ((index + made) % 8);
          b.err = random.chance(bad * 0.2);
          for (unsigned n = 0; n < 64; ++n) {
            b.block[n / 4] &= ~(0xffu << (8 * (n % 4)));
            b.block[n / 4] |= static_cast<std::uint32_t>(raw[made][n]) << (8 * (n % 4));
          }
          blocks.push_back(b);
          bus_error |= b.err;
          if (made == 0 && b.err) {                    // unreadable: nothing is known of the rest
            count = 1;
            truncated = false;
          }
        }
        const auto& b0 = blocks[blocks.size() - count];
        // what must come out
        spkg::wqe_t x{};
        x.colour = common.colour;
        x.turn = b0.turn;
        x.bus_error = bus_error;
        x.qp = common.qp;
        x.epoch = common.epoch;
        x.index = b0.index;
        x.blocks = static_cast<std::uint8_t>(count);
        x.vendor_status = truncated ? kBadBlocks : vendor;
        x.kind = static_cast<spkg::kind_e>(w.op == kNop ? 0 : w.is_send() ? 1 : w.is_write() ? 2
                                           : w.op == kRead ? 3 : w.is_atomic() ? 5 : 4);
        x.wc_opcode = w.wc_opcode();
        x.has_imm = w.has_imm();
        x.signaled = w.signaled;
        x.fence = w.fence;
        x.solicited = w.solicited;
        x.inline_data = w.inline_data || w.is_atomic();
        x.datagram = w.datagram && w.op != kNop;
        x.imm = w.has_imm() ? __builtin_bswap32(w.imm) : w.imm;  // bytes in wire order
        x.length = w.length;
        x.va = w.va;
        x.rkey = w.rkey;
        x.inline_addr = b0.addr + 32;
        // SGEs in the blocks that are there, unless the first block told that it is no use
        const bool taken = !b0.err && w.op != kNop && !w.inline_data &&
                           (vendor == kFine || (vendor == kBadLength && w.length <= 0x80000000u));
        std::vector<pkg::sge_t> sges;
        if (taken) {
          const unsigned room = w.datagram && count == 1 ? 0 : (64 * count - w.header()) / 16;
          for (unsigned n = 0; n < w.sge_count && n < room; ++n) {
            pkg::sge_t s{};
            s.va = w.sges[n].va;
            s.length = w.sges[n].length;
            s.lkey = w.sges[n].lkey;
            if (s.length != 0) sges.push_back(s);
          }
        }
        x.sges = static_cast<std::uint8_t>(sges.size());
        if (bus_error) x.vendor_status = 0;            // nothing is known of it
        bench.wqe.expect(x);
        for (const auto& s : sges) bench.sge.expect(s);
        index += count;
        if (truncated) break;
      }
      blocks.back().burst_last = true;
      for (const auto& b : blocks) bench.block.push(b);
    }
    bench.dut.run_until([&] { return bench.block.empty() && bench.wqe.done() && bench.sge.done(); },
                        "all WQEs", 1000000);
    bench.dut.tick(50);
  }
}

TEST_CASE("a WQE per cycle with one SGE") {
  Random random;
  Bench bench(random);
  bench.wqe.collect();
  bench.sge.collect();
  for (unsigned n = 0; n < 200; ++n) {
    Wqe w;
    w.op = kWrite;
    w.sge_count = 1;
    w.length = 64;
    w.sges = {{random(), 64, 7}};
    const auto raw = w.to_blocks(random, 1);
    pkg::wqe_block_t b{};
    b.index = static_cast<std::uint16_t>(n);
    b.burst_last = true;
    for (unsigned k = 0; k < 64; ++k) {
      b.block[k / 4] |= static_cast<std::uint32_t>(raw[0][k]) << (8 * (k % 4));
    }
    bench.block.push(b);
  }
  const auto start = bench.dut.cycle();
  bench.dut.run_until([&] { return bench.wqe.received().size() == 200; }, "200 WQEs");
  REQUIRE(bench.dut.cycle() - start <= 200 + 4);
  for (const auto& w : bench.wqe.received()) REQUIRE(w.vendor_status == 0);
}
