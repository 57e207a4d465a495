// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// GID and MAC rules (wire.md §1.8) and the coded values of the AETH (§2.6–2.8).
#include <catch2/catch.hpp>

#include "wire/addresses.hpp"
#include "wire/aeth.hpp"

using namespace roci::wirecodec;

TEST_CASE("GIDs") {
  const Mac mac{0x02, 0, 0, 0, 0, 1};
  CHECK(to_string(gid_from_mac(mac)) == "fe80:0000:0000:0000:0000:00ff:fe00:0001");
  CHECK(to_string(gid_from_mac(Mac{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff})) ==
        "fe80:0000:0000:0000:a8bb:ccff:fedd:eeff");
  CHECK(to_string(gid_from_ipv4(0x0a000001)) == "0000:0000:0000:0000:0000:ffff:0a00:0001");
  CHECK(parse_mac("02:00:00:00:00:01") == mac);
  CHECK(to_string(mac) == "02:00:00:00:00:01");
  CHECK_THROWS(parse_mac("02:00:00:00:00"));
  CHECK_THROWS(parse_mac("02:00:00:00:00:01:02"));
}

TEST_CASE("multicast addresses") {
  Gid mgid{};
  mgid[0] = 0xff;
  mgid[1] = 0x0e;
  mgid[12] = 0x12;
  mgid[13] = 0xc1;
  mgid[14] = 0x56;
  mgid[15] = 0x78;
  CHECK(is_multicast(mgid));
  CHECK(mac_from_mgid(mgid) == Mac{0x33, 0x33, 0x12, 0xc1, 0x56, 0x78});
  mgid[10] = mgid[11] = 0xff;  // ff0e::ffff:18.193.86.120
  CHECK(mac_from_mgid(mgid) == Mac{0x01, 0x00, 0x5e, 0x41, 0x56, 0x78});
  CHECK(is_multicast(mac_from_mgid(mgid)));
  CHECK_FALSE(is_multicast(gid_from_ipv4(0x0a000001)));
}

TEST_CASE("AETH codes") {
  CHECK(aeth_kind(0x1f) == AethKind::ack);
  CHECK(aeth_kind(0x20) == AethKind::rnr_nak);
  CHECK(aeth_kind(0x3f) == AethKind::rnr_nak);
  CHECK(aeth_kind(0x40) == AethKind::reserved);
  CHECK(aeth_kind(0x60) == AethKind::nak);
  CHECK(aeth_kind(0x80) == AethKind::reserved);
  CHECK(aeth_kind(0xe0) == AethKind::reserved);
  CHECK(credits(0) == 0u);
  CHECK(credits(6) == 8u);
  CHECK(credits(15) == 192u);
  CHECK(credits(30) == 32768u);
  CHECK_FALSE(credits(31));
  CHECK(rnr_timer_ns(0) == 655'360'000);
  CHECK(rnr_timer_ns(1) == 10'000);
  CHECK(rnr_timer_ns(14) == 1'280'000);
  CHECK(rnr_timer_ns(25) == 61'440'000);
  CHECK(rnr_timer_ns(31) == 491'520'000);
  for (uint8_t code = 2; code < 32; ++code) CHECK(rnr_timer_ns(code) > rnr_timer_ns(code - 1));
  CHECK_FALSE(ack_timeout_ns(0));
  CHECK(ack_timeout_ns(1) == 8'192u);
  CHECK(ack_timeout_ns(31) == 8'796'093'022'208u);
}
