// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_tx_count: payload of every packet, acknowledgements of the responder by their syndrome; only
// what is taken counts, and only once.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
using Count = roci::sv::roci_count_pkg::tx_packet_count_t;

TEST_CASE("payload, and acknowledgements by their syndrome") {
  Random random;
  Dut<DUT_CLASS> dut(random());
  dut->valid_i = 0;
  dut.reset();
  unsigned acknowledges = 0;
  for (std::size_t n = 0; n < scaled(5000); ++n) {
    auto desc = random_payload<pkg::tx_desc_t>(random);
    if (random.chance(0.7)) desc.opcode = 0x11;
    const bool known = random.chance(0.7);
    if (known) {
      const std::uint8_t syndromes[] = {0x00, 0x1f, 0x0c, 0x20, 0x3f, 0x60, 0x61, 0x62, 0x63};
      desc.syndrome = syndromes[random.below(9)];
    }
    desc.pack(dut->desc_i);
    dut->valid_i = random.chance(0.8);
    Count want{};
    if (dut->valid_i) {
      want.payload_bytes = desc.payload_length;
      const unsigned syndrome = desc.syndrome & 0x7f;    // bit 7 is reserved
      if (desc.source == pkg::TX_RESPONSE && desc.opcode == 0x11) {
        ++acknowledges;
        if (syndrome < 0x20) want.ack = true;
        else if (syndrome < 0x40) want.nak_rnr = true;
        else if (syndrome == 0x60) want.nak_sequence = true;
        else if (syndrome == 0x61) want.nak_invalid_request = true;
        else if (syndrome == 0x62) want.nak_remote_access = true;
        else if (syndrome == 0x63) want.nak_remote_operational = true;
      }
    }
    dut.tick();
    REQUIRE(Count::unpack(dut->count_o) == want);
  }
  CHECK(acknowledges > 100);
}
