// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_rx_count: payload bytes, multicast and congestion marks of each packet that is taken, once.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "harness/lanes.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
using Count = roci::sv::roci_count_pkg::rx_packet_count_t;

TEST_CASE("payload, multicast, marks") {
  Random random;
  Dut<DUT_CLASS> dut(random());
  dut->valid_i = 0;
  dut.reset();
  unsigned multicast = 0;
  for (std::size_t n = 0; n < scaled(5000); ++n) {
    auto headers = random_payload<pkg::rx_headers_t>(random);
    const bool group = random.chance(0.3);
    // the first byte of an address is the highest
    set_byte(headers.dgid, 15, group ? 0xff : static_cast<std::uint8_t>(random.below(255)));
    headers.pack(dut->headers_i);
    dut->valid_i = random.chance(0.8);
    Count want{};
    if (dut->valid_i) {
      // a datagram's GRH is no payload, an atomic's result is none either
      const unsigned grh = headers.opcode >> 5 == 3 ? 40 : 0;
      const unsigned bytes = (headers.opcode & 0x1f) == 0x12 ? 0 : headers.payload_length - grh;
      want = {group, headers.ecn_marked, static_cast<std::uint16_t>(bytes & 0x1fff)};
      multicast += group;
    }
    dut.tick();
    REQUIRE(Count::unpack(dut->count_o) == want);
  }
  CHECK(multicast > 100);
}
