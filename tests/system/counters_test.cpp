// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The counters of a NIC after known traffic: exact numbers, both sides; loopback; a disabled port
// neither sends nor receives.
#include "rtl_hosts.hpp"

#include <map>

using namespace roci;
using namespace roci::test;
using hwif::Counter;

namespace {

using Expected = std::map<Counter, uint64_t>;

// Lets everything end, and the counters' sweep with it.
void settle(sim::World& world) {
  for (int n = 0; n < 10000 && !world.frozen(); ++n) world.run(1000);
  REQUIRE(world.frozen());
}

// Each counter of a NIC has moved by so much.
void check_grown(const Counts& counts, unsigned nic, const Expected& grown) {
  for (const auto& [counter, by] : grown) {
    INFO("NIC " << nic << " counter 0x" << std::hex << static_cast<unsigned>(counter));
    CHECK(counts(nic, counter) == by);
  }
}

void set_port(sim::WorldNic& nic, bool enable) {
  using Control = hwif::csr::ManagementPortControl;
  Control::Value control{};
  control.set<Control::Value::enable>(enable);
  control.set<Control::Value::active_mtu>(hwif::Mtu::MTU_4096);
  nic.bar_write(0, Control::ADDRESS, control.to_word());
  nic.bar_read(0, Control::ADDRESS);              // the write is done
}

// Known traffic, exact counts.
void known_traffic(RtlHosts& hosts, Connection& link) {
  Region from(hosts.a.pd, 16384);
  Region to(hosts.b.pd, 16384);
  settle(hosts.world);

  // Ethernet 14, GRH 40, BTH 12, ICRC 4; RETH 16, AETH 4, ImmDt 4. Path MTU 1024.
  constexpr uint64_t kPlain = 70;
  const Expected a_grown{
      {Counter::TX_FRAMES, 11},
      {Counter::TX_ROCE_PACKETS, 11},
      {Counter::TX_BYTES, 3 * (kPlain + 100) + 2 * (3 * kPlain + 16 + 2500) + (kPlain + 16) +
                              (kPlain + 16 + 4 + 64)},
      {Counter::TX_ROCE_PAYLOAD_BYTES, 3 * 100 + 2 * 2500 + 64},
      {Counter::TX_ACK, 0},
      {Counter::RX_FRAMES, 9},
      {Counter::RX_ROCE_PACKETS, 9},
      {Counter::RX_BYTES, 6 * (kPlain + 4) + 3 * kPlain + 2 * 4 + 3000},
      {Counter::RX_ROCE_PAYLOAD_BYTES, 3000},
      {Counter::RX_ACK, 6},
      {Counter::CQE, 7},
      {Counter::CQE_ERROR, 0},
      {Counter::DMA_WRITE_BYTES, 3000 + 7 * 32},
      {Counter::REQUESTS_READ, 0},
      {Counter::RETRY_PACKETS, 0},
      {Counter::DMA_READ_ERROR, 0},
      {Counter::DMA_WRITE_ERROR, 0},
      {Counter::DOORBELLS, 7},
  };
  const Expected b_grown{
      {Counter::RX_FRAMES, 11},
      {Counter::RX_ROCE_PACKETS, 11},
      {Counter::RX_BYTES, a_grown.at(Counter::TX_BYTES)},
      {Counter::RX_ROCE_PAYLOAD_BYTES, a_grown.at(Counter::TX_ROCE_PAYLOAD_BYTES)},
      {Counter::TX_FRAMES, 9},
      {Counter::TX_BYTES, a_grown.at(Counter::RX_BYTES)},
      {Counter::TX_ROCE_PAYLOAD_BYTES, 3000},
      {Counter::TX_ACK, 6},
      {Counter::TX_NAK_SEQUENCE, 0},
      {Counter::REQUESTS_SEND, 3},
      {Counter::REQUESTS_WRITE, 3},
      {Counter::REQUESTS_READ, 1},
      {Counter::RX_DUPLICATE_REQUEST, 0},
      {Counter::RX_DROP_OUT_OF_SEQUENCE, 0},
      {Counter::RX_LOOPBACK_FRAMES, 0},
      {Counter::CQE, 4},
      {Counter::DMA_WRITE_BYTES, 3 * 100 + 2 * 2500 + 64 + 4 * 32},
  };
  ibv_sge r = to.sge(0, 1000);
  for (uint64_t n = 0; n < 4; ++n) REQUIRE(post_recv(link.b.qp, &r, 1, n) == 0);
  settle(hosts.world);
  const Counts counts(hosts);

  const auto done = [&](int posted) {
    REQUIRE(posted == 0);
    REQUIRE(wait_wc(link.a.cq).status == IBV_WC_SUCCESS);
  };
  for (uint64_t n = 0; n < 3; ++n) done(link.a.send(IBV_WR_SEND, from.sge(n, 100), n));
  for (uint64_t n = 0; n < 2; ++n) done(link.a.write(from.sge(0, 2500), to, 4000, n));
  done(link.a.read(from.sge(8000, 3000), to, 4000, 9));
  done(link.a.rdma(IBV_WR_RDMA_WRITE_WITH_IMM, from.sge(0, 64), to, 4000, 10));
  settle(hosts.world);
  check_grown(counts, 0, a_grown);
  check_grown(counts, 1, b_grown);
  for (uint64_t n = 0; n < 4; ++n) expect_wc(link.b.cq, n);
}

// NAKs and errors count at both ends.
void naks(RtlHosts& hosts, Connection& link) {
  Region from(hosts.a.pd, 4096);
  Region to(hosts.b.pd, 4096);
  const Expected a_grown{
      {Counter::RX_NAK_REMOTE_ACCESS, 1},
      {Counter::RX_NAK_SEQUENCE, 0},   {Counter::CQE, 3},       {Counter::CQE_ERROR, 1},
      {Counter::CQE_FLUSH, 1},         {Counter::QP_ERRORS, 1}, {Counter::RX_ACK, 1},
  };
  const Expected b_grown{
      {Counter::TX_NAK_REMOTE_ACCESS, 1}, {Counter::TX_NAK_SEQUENCE, 0},
      {Counter::KEY_ERRORS, 1},  {Counter::QP_ERRORS, 1},            {Counter::REQUESTS_SEND, 1},
      {Counter::TX_ACK, 1},      {Counter::REQUESTS_WRITE, 0},       {Counter::RX_DROP_AFTER_ERROR, 0},
  };
  settle(hosts.world);
  const Counts counts(hosts);

  REQUIRE(link.a.send(IBV_WR_SEND, from.sge(0, 100), 1) == 0);
  hosts.world.run(20000);
  ibv_sge r = to.sge(0, 100);
  REQUIRE(post_recv(link.b.qp, &r, 1, 7) == 0);
  expect_wc(link.a.cq, 1);
  expect_wc(link.b.cq, 7);

  // 4 bytes too far
  REQUIRE(link.a.write(from.sge(0, 100), to, 4000, 2) == 0);
  expect_wc(link.a.cq, 2, IBV_WC_REM_ACCESS_ERR);
  REQUIRE(link.a.write(from.sge(0, 100), to, 0, 3) == 0);
  expect_wc(link.a.cq, 3, IBV_WC_WR_FLUSH_ERR);
  settle(hosts.world);
  check_grown(counts, 0, a_grown);
  check_grown(counts, 1, b_grown);
  // simulated time skips the waits, so it may have been told more than once
  const uint64_t told = counts(1, Counter::TX_NAK_RNR);
  CHECK(told >= 1);
  CHECK(counts(0, Counter::RX_NAK_RNR) == told);
  CHECK(counts(0, Counter::RETRY_RNR) == told);
}

// Frames to the own port count as loopback, once out and once in.
void own_port(RtlHosts& hosts) {
  sim::WorldNic& nic = hosts.world.nic(0);
  Connection loop(hosts.a, nic, hosts.a, nic);
  Region region(hosts.a.pd, 8192);
  const Expected grown{
      {Counter::TX_FRAMES, 2},          {Counter::RX_FRAMES, 2},
      {Counter::TX_LOOPBACK_FRAMES, 2}, {Counter::RX_LOOPBACK_FRAMES, 2},
      {Counter::TX_BYTES, 86 + 200 + 74}, {Counter::RX_BYTES, 86 + 200 + 74},
      {Counter::REQUESTS_WRITE, 1},     {Counter::RX_ROCE_PAYLOAD_BYTES, 200},
  };
  settle(hosts.world);
  const Counts counts(hosts);
  REQUIRE(loop.a.write(region.sge(0, 200), region, 4096, 1) == 0);
  expect_wc(loop.a.cq, 1);
  settle(hosts.world);
  check_grown(counts, 0, grown);
}

// A disabled port neither sends nor receives; enabled again, retries deliver.
void disabled_port(RtlHosts& hosts, Connection& link) {
  Region from(hosts.a.pd, 4096);
  Region to(hosts.b.pd, 4096);
  std::memset(from.buffer.data(), 0x5a, 64);
  settle(hosts.world);
  for (const bool sender : {true, false}) {
    INFO((sender ? "sender" : "receiver"));
    std::memset(to.buffer.data(), 0, 64);
    sim::WorldNic& nic = hosts.world.nic(sender ? 0 : 1);
    const Counts counts(hosts);
    set_port(nic, false);
    REQUIRE(link.a.write(from.sge(0, 64), to, 0, 1) == 0);
    hosts.world.run(4000);
    CHECK(counts(1, Counter::RX_FRAMES) == 0);
    CHECK((counts(0, Counter::TX_FRAMES) == 0) == sender);
    CHECK(to.buffer[0] == 0);
    set_port(nic, true);
    expect_wc(link.a.cq, 1);
    CHECK(to.buffer[63] == 0x5a);
    settle(hosts.world);
    CHECK(counts(0, Counter::RETRY_TIMEOUT) > 0);
  }
}

}  // namespace

TEST_CASE_METHOD(EachChip, "counters tell exactly what was sent and received") {
  RtlHosts hosts(rtl_world(chip));
  Connection link(hosts);
  known_traffic(hosts, link);
  own_port(hosts);
  disabled_port(hosts, link);
  naks(hosts, link);                              // its queue pairs end in ERR
}
