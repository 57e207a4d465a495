// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The counters of a NIC after known traffic: exact numbers, both sides; loopback; a disabled port
// neither sends nor receives.
#include "rtl_pair.hpp"

#include <map>

using namespace roci;
using namespace roci::test;
using hwif::Counter;

namespace {

using Counts = std::map<Counter, uint64_t>;

// Lets everything end, and the counters' sweep with it.
void settle(sim::World& world) {
  for (int n = 0; n < 10000 && !world.frozen(); ++n) world.run(1000);
  REQUIRE(world.frozen());
}

uint64_t read(sim::WorldNic& nic, Counter counter) {
  return nic.bar_read(0, hwif::csr::ManagementCounter::ADDRESS + 8 * static_cast<uint32_t>(counter));
}

// All counters of `of` by name.
Counts read_all(sim::WorldNic& nic, const Counts& of) {
  Counts out;
  for (const auto& [counter, unused] : of) out[counter] = read(nic, counter);
  return out;
}

// Each counter of `grown` is by so much above `before`.
void check_grown(sim::WorldNic& nic, const Counts& before, const Counts& grown) {
  for (const auto& [counter, by] : grown) {
    INFO("NIC " << nic.mac() - 0x020000000001u << " counter 0x" << std::hex
                << static_cast<unsigned>(counter));
    CHECK(read(nic, counter) - before.at(counter) == by);
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

ibv_send_wr write_wr(ibv_sge* sge, const Region& to, size_t offset, uint64_t id) {
  ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, sge, 1, id);
  wr.wr.rdma.remote_addr = to.buffer.address() + offset;
  wr.wr.rdma.rkey = to.mr.rkey();
  return wr;
}


// Known traffic, exact counts.
void known_traffic(RtlPair& pair) {
  auto& nic_a = pair.world.nic(0);
  auto& nic_b = pair.world.nic(1);
  Region from(pair.a.pd, 16384);
  Region to(pair.b.pd, 16384);
  settle(pair.world);

  // Ethernet 14, GRH 40, BTH 12, ICRC 4; RETH 16, AETH 4, ImmDt 4. Path MTU 1024.
  constexpr uint64_t kPlain = 70;
  const Counts a_grown{
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
  const Counts b_grown{
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
  for (uint64_t n = 0; n < 4; ++n) REQUIRE(post_recv(pair.b_qp, &r, 1, n) == 0);
  settle(pair.world);
  const Counts a_before = read_all(nic_a, a_grown);
  const Counts b_before = read_all(nic_b, b_grown);

  const auto run = [&](ibv_send_wr wr) {
    REQUIRE(post(pair.a_qp, wr) == 0);
    REQUIRE(wait_wc(pair.a_cq).status == IBV_WC_SUCCESS);
  };
  for (uint64_t n = 0; n < 3; ++n) {
    ibv_sge s = from.sge(n, 100);
    run(send_wr(IBV_WR_SEND, &s, 1, n));
  }
  ibv_sge s = from.sge(0, 2500);
  for (uint64_t n = 0; n < 2; ++n) run(write_wr(&s, to, 4000, n));
  s = from.sge(8000, 3000);
  ibv_send_wr wr = write_wr(&s, to, 4000, 9);
  wr.opcode = IBV_WR_RDMA_READ;
  run(wr);
  s = from.sge(0, 64);
  wr = write_wr(&s, to, 4000, 10);
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  run(wr);
  settle(pair.world);
  check_grown(nic_a, a_before, a_grown);
  check_grown(nic_b, b_before, b_grown);
}

// NAKs and errors count at both ends.
void naks(RtlPair& pair) {
  auto& nic_a = pair.world.nic(0);
  auto& nic_b = pair.world.nic(1);
  Region from(pair.a.pd, 4096);
  Region to(pair.b.pd, 4096);
  const Counts a_grown{
      {Counter::RX_NAK_REMOTE_ACCESS, 1},
      {Counter::RX_NAK_SEQUENCE, 0},   {Counter::CQE, 3},       {Counter::CQE_ERROR, 1},
      {Counter::CQE_FLUSH, 1},         {Counter::QP_ERRORS, 1}, {Counter::RX_ACK, 1},
  };
  const Counts b_grown{
      {Counter::TX_NAK_REMOTE_ACCESS, 1}, {Counter::TX_NAK_SEQUENCE, 0},
      {Counter::KEY_ERRORS, 1},  {Counter::QP_ERRORS, 1},            {Counter::REQUESTS_SEND, 1},
      {Counter::TX_ACK, 1},      {Counter::REQUESTS_WRITE, 0},       {Counter::RX_DROP_AFTER_ERROR, 0},
  };
  settle(pair.world);
  const Counts a_before = read_all(nic_a, a_grown);
  const Counts b_before = read_all(nic_b, b_grown);
  const uint64_t rnr_sent = read(nic_b, Counter::TX_NAK_RNR);
  const uint64_t rnr_received = read(nic_a, Counter::RX_NAK_RNR);
  const uint64_t rnr_waits = read(nic_a, Counter::RETRY_RNR);

  ibv_sge s = from.sge(0, 100);
  ibv_send_wr wr = send_wr(IBV_WR_SEND, &s, 1, 1);
  REQUIRE(post(pair.a_qp, wr) == 0);
  pair.world.run(20000);
  ibv_sge r = to.sge(0, 100);
  REQUIRE(post_recv(pair.b_qp, &r, 1, 7) == 0);
  REQUIRE(wait_wc(pair.a_cq).status == IBV_WC_SUCCESS);
  REQUIRE(wait_wc(pair.b_cq).status == IBV_WC_SUCCESS);

  wr = write_wr(&s, to, 4000, 2);               // 4 bytes too far
  REQUIRE(post(pair.a_qp, wr) == 0);
  REQUIRE(wait_wc(pair.a_cq).status == IBV_WC_REM_ACCESS_ERR);
  wr = write_wr(&s, to, 0, 3);
  REQUIRE(post(pair.a_qp, wr) == 0);
  REQUIRE(wait_wc(pair.a_cq).status == IBV_WC_WR_FLUSH_ERR);
  settle(pair.world);
  check_grown(nic_a, a_before, a_grown);
  check_grown(nic_b, b_before, b_grown);
  // simulated time skips the waits, so it may have been told more than once
  const uint64_t told = read(nic_b, Counter::TX_NAK_RNR) - rnr_sent;
  CHECK(told >= 1);
  CHECK(read(nic_a, Counter::RX_NAK_RNR) - rnr_received == told);
  CHECK(read(nic_a, Counter::RETRY_RNR) - rnr_waits == told);
}

// Frames to the own port count as loopback, once out and once in.
void own_port(RtlPair& pair) {
  auto& nic = pair.world.nic(0);
  Qp one(pair.a.pd, {&pair.a_cq, &pair.a_cq, caps(), IBV_QPT_RC, false, false});
  Qp two(pair.a.pd, {&pair.a_cq, &pair.a_cq, caps(), IBV_QPT_RC, false, false});
  connect(one, two.number(), path_to(nic));
  connect(two, one.number(), path_to(nic));
  Region region(pair.a.pd, 8192);
  const Counts grown{
      {Counter::TX_FRAMES, 2},          {Counter::RX_FRAMES, 2},
      {Counter::TX_LOOPBACK_FRAMES, 2}, {Counter::RX_LOOPBACK_FRAMES, 2},
      {Counter::TX_BYTES, 86 + 200 + 74}, {Counter::RX_BYTES, 86 + 200 + 74},
      {Counter::REQUESTS_WRITE, 1},     {Counter::RX_ROCE_PAYLOAD_BYTES, 200},
  };
  settle(pair.world);
  const Counts before = read_all(nic, grown);
  ibv_sge s = region.sge(0, 200);
  ibv_send_wr wr = write_wr(&s, region, 4096, 1);
  REQUIRE(post(one, wr) == 0);
  REQUIRE(wait_wc(pair.a_cq).status == IBV_WC_SUCCESS);
  settle(pair.world);
  check_grown(nic, before, grown);
}

// A disabled port neither sends nor receives; enabled again, retries deliver.
void disabled_port(RtlPair& pair) {
  auto& nic_a = pair.world.nic(0);
  auto& nic_b = pair.world.nic(1);
  Region from(pair.a.pd, 4096);
  Region to(pair.b.pd, 4096);
  std::memset(from.buffer.data(), 0x5a, 64);
  settle(pair.world);
  for (const bool sender : {true, false}) {
    INFO((sender ? "sender" : "receiver"));
    std::memset(to.buffer.data(), 0, 64);
    auto& nic = sender ? nic_a : nic_b;
    const uint64_t sent = read(nic_a, Counter::TX_FRAMES);
    const uint64_t received = read(nic_b, Counter::RX_FRAMES);
    const uint64_t timeouts = read(nic_a, Counter::RETRY_TIMEOUT);
    set_port(nic, false);
    ibv_sge s = from.sge(0, 64);
    ibv_send_wr wr = write_wr(&s, to, 0, 1);
    REQUIRE(post(pair.a_qp, wr) == 0);
    pair.world.run(4000);
    CHECK(read(nic_b, Counter::RX_FRAMES) == received);
    CHECK((read(nic_a, Counter::TX_FRAMES) == sent) == sender);
    CHECK(to.buffer[0] == 0);
    set_port(nic, true);
    REQUIRE(wait_wc(pair.a_cq).status == IBV_WC_SUCCESS);
    CHECK(to.buffer[63] == 0x5a);
    settle(pair.world);
    CHECK(read(nic_a, Counter::RETRY_TIMEOUT) > timeouts);
  }
}

}  // namespace

TEST_CASE("counters tell exactly what was sent and received") {
  for (const auto chip : kConfigs) {
    INFO(sim::to_string(chip));
    RtlPair pair(rtl_world(chip));
    known_traffic(pair);
    own_port(pair);
    disabled_port(pair);
    naks(pair);                                   // its queue pairs end in ERR
  }
}
