// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_burst_split: bursts cover exactly the words of the request, none leaves its piece of
// BURST_BYTES, one burst per cycle.
// model: configs=any args=-GDATA_BYTES=64 args=-GBURST_BYTES=512 args=-GINFO_BITS=9 name=b512
// model: configs=any args=-GDATA_BYTES=8 args=-GBURST_BYTES=256 args=-GINFO_BITS=9 name=b256
// model: configs=any args=-GDATA_BYTES=64 args=-GBURST_BYTES=4096 args=-GINFO_BITS=9 name=b4096
// model: configs=any args=-GDATA_BYTES=8 args=-GBURST_BYTES=2048 args=-GINFO_BITS=9 name=b2048
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>

#include "harness/harness.hpp"
#include "piece.hpp"

namespace {
using namespace roci::test;

struct Expected {
  std::uint64_t addr;
  unsigned beats, bytes;
  bool last;
  unsigned info;
};
}  // namespace

TEST_CASE("bursts cover the request") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Dut<DUT_CLASS> dut(random());
    dut->req_valid_i = 0;
    dut->burst_ready_i = 0;
    dut.reset();
    std::deque<Expected> expected;
    Stall in = Stall::any(random), out = Stall::any(random);
    if (round == 0) in = out = Stall(0.0);
    std::size_t left = scaled(3000);
    bool valid = false;
    std::uint64_t cycles = 0, bursts = 0;
    while (left != 0 || valid || !expected.empty()) {
      if (!valid && left != 0 && !in.next(random)) {
        const Piece piece = random_piece(random, DUT_DATA_BYTES);
        const auto info = static_cast<unsigned>(random.bits(9));
        valid = true;
        --left;
        dut->req_addr_i = piece.addr;
        dut->req_length_i = static_cast<SData>(piece.length);
        dut->req_info_i = static_cast<SData>(info);
        const std::uint64_t end = piece.addr + piece.length;
        for (std::uint64_t at = piece.addr; at < end;) {
          const std::uint64_t stop = std::min(end, (at / DUT_BURST_BYTES + 1) * DUT_BURST_BYTES);
          const std::uint64_t first = at / DUT_DATA_BYTES;
          expected.push_back({first * DUT_DATA_BYTES,
                              static_cast<unsigned>((stop - 1) / DUT_DATA_BYTES - first + 1),
                              static_cast<unsigned>(stop - at), stop == end, info});
          at = stop;
        }
      }
      dut->req_valid_i = valid;
      dut->burst_ready_i = !out.next(random);
      dut.eval();
      const bool taken = valid && dut->req_ready_o;
      if (dut->burst_valid_o) {
        REQUIRE(!expected.empty());
        const Expected& e = expected.front();
        REQUIRE(dut->burst_addr_o == e.addr);
        REQUIRE(dut->burst_len_o + 1u == e.beats);
        REQUIRE(dut->burst_bytes_o == e.bytes);
        REQUIRE(dut->burst_last_o == e.last);
        REQUIRE(dut->burst_info_o == e.info);
        if (dut->burst_ready_i) {
          expected.pop_front();
          ++bursts;
        }
      }
      dut.tick();
      ++cycles;
      if (taken) valid = false;
      REQUIRE(cycles < 10000000);
    }
    if (round == 0) CHECK(cycles <= bursts + 2);
  }
}
