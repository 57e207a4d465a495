// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Commands while the link is slow and full: queue pairs are connected and queried while packets of
// 4096 bytes stand in the way out, each for longer than any command may take. The firmware stays
// READY, the commands end within their limits, the traffic arrives.
#include "rtl_hosts.hpp"

#include <roci_hwif.hpp>

using namespace roci;
using namespace roci::test;

TEST_CASE_METHOD(EachChip, "commands do not wait for the link") {
  namespace csr = hwif::csr;
  Random random;
  sim::WorldConfig config = rtl_world(chip);
  config.fabric.link.rate = {2, 5};  // a packet takes more than 10,000 cycles
  RtlHosts hosts(config);
  sim::World& world = hosts.world;
  Wish wish;
  wish.mtu = IBV_MTU_4096;
  wish.timeout = 20;  // 4 s
  Connection link(hosts, wish);
  End a_other(hosts.a, world.nic(0), wish), b_other(hosts.b, world.nic(1), wish);
  const auto go = [&wish](End& end, const End& peer) {
    end.connect(peer.qp.number(), peer.nic, wish, wish.a_psn, wish.a_psn);
  };

  constexpr size_t kBytes = 10 * 4096;
  Region from(hosts.a.pd, kBytes), to(hosts.b.pd, kBytes);
  randomize(from.buffer, random);
  REQUIRE(link.a.write(from.sge(0, kBytes), to, 0, 1) == 0);
  world.run(15000);  // as much as may be ahead is decided, one packet is leaving

  const uint64_t begin = world.cycle();
  go(a_other, b_other);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  const ibv_ah_attr to_b = path_to(world.nic(1));
  for (End* end : {&link.a, &a_other}) {
    end->qp.query(attr, init);
    CHECK(attr.qp_state == IBV_QPS_RTS);
    CHECK(std::memcmp(attr.ah_attr.grh.dgid.raw, to_b.grh.dgid.raw, 16) == 0);
    CHECK(attr.path_mtu == IBV_MTU_4096);
  }
  CHECK(world.cycle() - begin < 50'000);
  const auto firmware = csr::IdentityFirmware::from_word(
      world.nic(0).bar_read(0, csr::IdentityFirmware::ADDRESS));
  CHECK(firmware.get<csr::IdentityFirmware::state>() == hwif::FirmwareState::READY);
  ibv_wc none{};
  REQUIRE(link.a.cq.poll(1, &none) == 0);  // the WRITE was under way all the time
  expect_wc(link.a.cq, 1);
  CHECK(std::memcmp(to.buffer.data(), from.buffer.data(), kBytes) == 0);

  // what was connected meanwhile works
  go(b_other, a_other);
  from.buffer[0] = static_cast<uint8_t>(from.buffer[0] ^ 0xff);
  REQUIRE(a_other.write(from.sge(0, 64), to, 0, 2) == 0);
  expect_wc(a_other.cq, 2);
  CHECK(std::memcmp(to.buffer.data(), from.buffer.data(), kBytes) == 0);
}

// The only sender of the NIC, in a message of more than 200,000 cycles: what others deregister, reset and
// destroy meanwhile waits for the packets that are decided, not for the message (rule 8).
TEST_CASE_METHOD(EachChip, "commands do not wait for the end of somebody's long message") {
  sim::WorldConfig config = rtl_world(chip);
  const uint64_t rate = chip == sim::ChipConfig::wide ? 50 : 8;
  const size_t bytes = rate * 200'000;
  RtlHosts hosts(config);
  Host other(make_inproc_transport(hosts.world.nic(0)));
  Connection link(hosts);
  Random random;
  Region from(hosts.a.pd, bytes), to(hosts.b.pd, bytes);
  for (size_t n = 0; n < bytes; n += 1021) from.buffer[n] = static_cast<uint8_t>(random());
  auto mine = std::make_unique<Region>(other.pd, 4096);
  auto idle = std::make_unique<Connection>(other, hosts.world.nic(0), other, hosts.world.nic(0));
  REQUIRE(link.a.write(from.sge(0, bytes), to, 0, 1) == 0);
  hosts.world.run(10000);

  const uint64_t begin = hosts.world.cycle();
  mine.reset();                                   // DESTROY_MR
  idle->a.reset();                                // MODIFY_QP
  idle.reset();                                   // DESTROY_QP, DESTROY_CQ
  const uint64_t took = hosts.world.cycle() - begin;
  CAPTURE(took);
  CHECK(took < 100'000);                          // half of what the message takes
  no_wc(link.a.cq);                               // the message was under way all the time
  expect_wc(link.a.cq, 1);
  CHECK(std::memcmp(from.buffer.data(), to.buffer.data(), bytes) == 0);
}
