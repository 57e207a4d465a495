// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// One message of each kind through everything: host core, firmware, RTL, link, and back.
#include "rtl_hosts.hpp"

using namespace roci;
using namespace roci::test;

TEST_CASE_METHOD(EachChip, "the firmware comes up and a device opens") {
  sim::World world(rtl_world(chip));
  Host host(make_inproc_transport(world.nic(0)));
  REQUIRE(host.device != nullptr);
}

TEST_CASE_METHOD(EachChip, "SEND, WRITE and READ") {
  RtlHosts hosts(rtl_world(chip));
  Connection link(hosts);
  Random random;
  Region from(hosts.a.pd, 20000);
  Region to(hosts.b.pd, 20000);
  for (const size_t bytes : {5u, 64u, 1024u, 5000u, 0u}) {
    INFO("bytes " << bytes);
    randomize(from.buffer, random);
    ibv_sge r = to.sge(10, 6000);
    REQUIRE(post_recv(link.b.qp, &r, 1, 77) == 0);
    REQUIRE(link.a.send(IBV_WR_SEND, from.sge(3, bytes), 42) == 0);
    expect_wc(link.a.cq, 42);
    CHECK(expect_wc(link.b.cq, 77).byte_len == bytes);
    CHECK(std::memcmp(to.buffer.data() + 10, from.buffer.data() + 3, bytes) == 0);

    REQUIRE(link.a.write(from.sge(3, bytes), to, 7000, 43) == 0);
    expect_wc(link.a.cq, 43);
    CHECK(std::memcmp(to.buffer.data() + 7000, from.buffer.data() + 3, bytes) == 0);

    REQUIRE(link.a.read(from.sge(10001, bytes), to, 7000, 44) == 0);
    expect_wc(link.a.cq, 44);
    CHECK(std::memcmp(from.buffer.data() + 10001, from.buffer.data() + 3, bytes) == 0);
  }
}
