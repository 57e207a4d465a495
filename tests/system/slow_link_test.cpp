// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Commands while the link is slow and full: queue pairs are connected and queried while packets of
// 4096 bytes stand in the way out, each for longer than any command may take. The firmware stays
// READY, the commands end within their limits, the traffic arrives.
#include "rtl_pair.hpp"

#include <roci_hwif.hpp>

using namespace roci;
using namespace roci::test;

TEST_CASE("commands do not wait for the link") {
  namespace csr = hwif::csr;
  Random random;
  for (const auto chip : kConfigs) {
    INFO(sim::to_string(chip));
    sim::WorldConfig config = rtl_world(chip);
    config.fabric.link.rate = {2, 5};          // a packet takes more than 10,000 cycles
    sim::World world(config);
    Host a(make_inproc_transport(world.nic(0)));
    Host b(make_inproc_transport(world.nic(1)));
    Cq a_cq(a.context, {64, nullptr, false});
    Cq b_cq(b.context, {64, nullptr, false});
    const auto make = [](Host& host, Cq& cq) {
      return Qp(host.pd, {&cq, &cq, caps(), IBV_QPT_RC, false, false});
    };
    Qp a_qp = make(a, a_cq), b_qp = make(b, b_cq);
    Qp a_other = make(a, a_cq), b_other = make(b, b_cq);
    const ibv_ah_attr to_a = path_to(world.nic(0)), to_b = path_to(world.nic(1));
    const auto go = [&](Qp& qp, Qp& peer, const ibv_ah_attr& path) {
      for (const auto& [state, mask] : {std::pair{IBV_QPS_INIT, TO_INIT},
                                        std::pair{IBV_QPS_RTR, TO_RTR},
                                        std::pair{IBV_QPS_RTS, TO_RTS}}) {
        ibv_qp_attr attr = attributes(state, peer.number(), path);
        attr.path_mtu = IBV_MTU_4096;
        attr.timeout = 20;                     // 4 s
        qp.modify(attr, mask);
      }
    };
    go(a_qp, b_qp, to_b);
    go(b_qp, a_qp, to_a);

    constexpr size_t kBytes = 10 * 4096;
    Region from(a.pd, kBytes), to(b.pd, kBytes);
    for (size_t n = 0; n < kBytes; ++n) from.buffer[n] = static_cast<uint8_t>(random());
    ibv_sge sge = from.sge(0, kBytes);
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, 1);
    wr.wr.rdma.remote_addr = to.buffer.address();
    wr.wr.rdma.rkey = to.mr.rkey();
    REQUIRE(post(a_qp, wr) == 0);
    world.run(15000);                          // all of it is decided, one packet is leaving

    const uint64_t begin = world.cycle();
    go(a_other, b_other, to_b);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    for (Qp* qp : {&a_qp, &a_other}) {
      qp->query(attr, init);
      CHECK(attr.qp_state == IBV_QPS_RTS);
      CHECK(std::memcmp(attr.ah_attr.grh.dgid.raw, to_b.grh.dgid.raw, 16) == 0);
      CHECK(attr.path_mtu == IBV_MTU_4096);
    }
    CHECK(world.cycle() - begin < 50'000);
    const auto firmware = csr::IdentityFirmware::from_word(
        world.nic(0).bar_read(0, csr::IdentityFirmware::ADDRESS));
    CHECK(firmware.get<csr::IdentityFirmware::state>() == hwif::FirmwareState::READY);
    ibv_wc none{};
    REQUIRE(a_cq.poll(1, &none) == 0);         // the WRITE was under way all the time
    CHECK(wait_wc(a_cq).status == IBV_WC_SUCCESS);
    CHECK(std::memcmp(to.buffer.data(), from.buffer.data(), kBytes) == 0);

    // what was connected meanwhile works
    go(b_other, a_other, to_a);
    from.buffer[0] = static_cast<uint8_t>(from.buffer[0] ^ 0xff);
    sge = from.sge(0, 64);
    wr.wr_id = 2;
    wr.sg_list = &sge;
    REQUIRE(post(a_other, wr) == 0);
    CHECK(wait_wc(a_cq).status == IBV_WC_SUCCESS);
    CHECK(std::memcmp(to.buffer.data(), from.buffer.data(), kBytes) == 0);
  }
}
