// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// One message of each kind through everything: host core, firmware, RTL, link, and back.
#include "rtl_pair.hpp"

using namespace roci;
using namespace roci::test;

TEST_CASE("the firmware comes up and a device opens") {
  for (const auto chip : kConfigs) {
    INFO(sim::to_string(chip));
    sim::World world(rtl_world(chip));
    Host host(make_inproc_transport(world.nic(0)));
    REQUIRE(host.device != nullptr);
  }
}

TEST_CASE("SEND, WRITE and READ") {
  for (const auto chip : kConfigs) {
    INFO(sim::to_string(chip));
    RtlPair pair(rtl_world(chip));
    Random random;
    Region from(pair.a.pd, 20000);
    Region to(pair.b.pd, 20000);
    for (const size_t bytes : {5u, 64u, 1024u, 5000u, 0u}) {
      INFO("bytes " << bytes);
      for (size_t i = 0; i < from.buffer.size(); ++i) {
        from.buffer[i] = static_cast<uint8_t>(random());
      }
      ibv_sge r = to.sge(10, 6000);
      REQUIRE(post_recv(pair.b_qp, &r, 1, 77) == 0);
      ibv_sge s = from.sge(3, bytes);
      ibv_send_wr wr = send_wr(IBV_WR_SEND, &s, 1, 42);
      REQUIRE(post(pair.a_qp, wr) == 0);
      const ibv_wc sent = wait_wc(pair.a_cq);
      CHECK(sent.wr_id == 42);
      CHECK(sent.status == IBV_WC_SUCCESS);
      const ibv_wc received = wait_wc(pair.b_cq);
      CHECK(received.wr_id == 77);
      CHECK(received.status == IBV_WC_SUCCESS);
      CHECK(received.byte_len == bytes);
      CHECK(std::memcmp(to.buffer.data() + 10, from.buffer.data() + 3, bytes) == 0);

      wr = send_wr(IBV_WR_RDMA_WRITE, &s, 1, 43);
      wr.wr.rdma.remote_addr = to.buffer.address() + 7000;
      wr.wr.rdma.rkey = to.mr.rkey();
      REQUIRE(post(pair.a_qp, wr) == 0);
      CHECK(wait_wc(pair.a_cq).status == IBV_WC_SUCCESS);
      CHECK(std::memcmp(to.buffer.data() + 7000, from.buffer.data() + 3, bytes) == 0);

      ibv_sge back = from.sge(10001, bytes);
      wr = send_wr(IBV_WR_RDMA_READ, &back, 1, 44);
      wr.wr.rdma.remote_addr = to.buffer.address() + 7000;
      wr.wr.rdma.rkey = to.mr.rkey();
      REQUIRE(post(pair.a_qp, wr) == 0);
      CHECK(wait_wc(pair.a_cq).status == IBV_WC_SUCCESS);
      CHECK(std::memcmp(from.buffer.data() + 10001, from.buffer.data() + 3, bytes) == 0);
    }
  }
}
