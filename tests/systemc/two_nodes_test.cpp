// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Two nodes in SystemC: the real host core, the NIC with its TLM sockets, and a wire between them. SEND,
// WRITE and READ with every byte checked, in both configurations; transactions that the BAR socket
// refuses; frames only on the wire of their direction.
#include "link_local_path.hpp"
#include "world.hpp"

#include "host_module.hpp"

#include <roci_hwif.hpp>

using namespace roci;
using namespace roci::test;

// Debian's library has main(), which Catch's replaces, and wants this.
extern "C" int sc_main(int, char**) { return 1; }

namespace {

namespace csr = hwif::csr;

constexpr uint64_t kMacs[] = {0x020000000001, 0x020000000002};

/// A NIC and its host, up and running when `boot` returns.
struct Node {
  sim::NicModule nic;
  HostModule host;

  static sim::NicConfig config(sim::ChipConfig chip, unsigned number) {
    sim::NicConfig out;
    out.chip = chip;
    out.seed = 1 + number;
    return out;
  }
  Node(sim::ChipConfig chip, unsigned number, unsigned cycles_per_wait)
      : nic(("nic" + std::to_string(number)).c_str(), config(chip, number),
            chip == sim::ChipConfig::wide ? sim::Rate{50, 1} : sim::Rate{8, 1}, cycles_per_wait),
        host(("host" + std::to_string(number)).c_str(), nic.period()) {
    host.bar.bind(nic.bar);
    nic.dma.bind(host.memory);
    nic.interrupts.bind(host.interrupts);
  }

  void boot(uint64_t mac) {
    uint64_t word = 0;                       // network order: first byte in bits 7:0
    for (unsigned b = 0; b < 6; ++b) word |= (mac >> (40 - 8 * b) & 0xff) << (8 * b);
    host.bar_write(0, csr::ManagementPortMac::ADDRESS, word);
    csr::ManagementPortControl control{};
    control.set<csr::ManagementPortControl::enable>(true);
    control.set<csr::ManagementPortControl::active_mtu>(hwif::Mtu::MTU_4096);
    host.bar_write(0, csr::ManagementPortControl::ADDRESS, control.to_word());
    for (unsigned n = 0;; ++n) {
      REQUIRE(n < 1000);
      const auto firmware =
          csr::IdentityFirmware::from_word(host.bar_read(0, csr::IdentityFirmware::ADDRESS));
      if (firmware.get<csr::IdentityFirmware::state>() == hwif::FirmwareState::READY) break;
      host.step(500);
    }
  }
};

/// A fresh simulation: SystemC elaborates once per context.
void new_simulation() {
  sc_core::sc_curr_simcontext = sc_core::sc_default_global_context = new sc_core::sc_simcontext;
}

}  // namespace

TEST_CASE("two nodes exchange messages") {
  Random random;
  for (const auto chip : {sim::ChipConfig::wide, sim::ChipConfig::narrow}) {
    INFO(sim::to_string(chip));
    new_simulation();
    Node a(chip, 0, 1), b(chip, 1, 16);        // K makes no difference to what arrives
    sim::EthernetWire there("there", {500, sc_core::SC_NS}), back("back", {500, sc_core::SC_NS});
    a.nic.eth_out.bind(there.in);
    there.out.bind(b.nic.eth_in);
    b.nic.eth_out.bind(back.in);
    back.out.bind(a.nic.eth_in);
    a.boot(kMacs[0]);
    b.boot(kMacs[1]);

    Host left(make_inproc_transport(a.host)), right(make_inproc_transport(b.host));
    Cq left_cq(left.context, {64, nullptr, false}), right_cq(right.context, {64, nullptr, false});
    Qp left_qp(left.pd, {&left_cq, &left_cq, caps(), IBV_QPT_RC, false, false});
    Qp right_qp(right.pd, {&right_cq, &right_cq, caps(), IBV_QPT_RC, false, false});
    connect(left_qp, right_qp.number(), link_local_path(kMacs[1]));
    connect(right_qp, left_qp.number(), link_local_path(kMacs[0]));
    REQUIRE(there.frames() == 0);
    const sc_core::sc_time connected = sc_core::sc_time_stamp();

    Region from(left.pd, 20000), to(right.pd, 20000);
    for (const size_t bytes : {7u, 5000u, 0u}) {
      INFO("bytes " << bytes);
      for (size_t i = 0; i < from.buffer.size(); ++i) {
        from.buffer[i] = static_cast<uint8_t>(random());
      }
      ibv_sge r = to.sge(10, 6000);
      REQUIRE(post_recv(right_qp, &r, 1, 77) == 0);
      ibv_sge s = from.sge(3, bytes);
      ibv_send_wr wr = send_wr(IBV_WR_SEND, &s, 1, 42);
      REQUIRE(post(left_qp, wr) == 0);
      const ibv_wc sent = wait_wc(left_cq);
      CHECK(sent.wr_id == 42);
      CHECK(sent.status == IBV_WC_SUCCESS);
      const ibv_wc received = wait_wc(right_cq);
      CHECK(received.wr_id == 77);
      CHECK(received.status == IBV_WC_SUCCESS);
      CHECK(received.byte_len == bytes);
      CHECK(std::memcmp(to.buffer.data() + 10, from.buffer.data() + 3, bytes) == 0);

      wr = send_wr(IBV_WR_RDMA_WRITE, &s, 1, 43);
      wr.wr.rdma.remote_addr = to.buffer.address() + 7000;
      wr.wr.rdma.rkey = to.mr.rkey();
      REQUIRE(post(left_qp, wr) == 0);
      CHECK(wait_wc(left_cq).status == IBV_WC_SUCCESS);
      CHECK(std::memcmp(to.buffer.data() + 7000, from.buffer.data() + 3, bytes) == 0);

      ibv_sge read = from.sge(10001, bytes);
      wr = send_wr(IBV_WR_RDMA_READ, &read, 1, 44);
      wr.wr.rdma.remote_addr = to.buffer.address() + 7000;
      wr.wr.rdma.rkey = to.mr.rkey();
      REQUIRE(post(left_qp, wr) == 0);
      CHECK(wait_wc(left_cq).status == IBV_WC_SUCCESS);
      CHECK(std::memcmp(from.buffer.data() + 10001, from.buffer.data() + 3, bytes) == 0);
    }
    // SENDs and WRITEs of 1, 5 and 1 packets and three READ requests; back come an acknowledgement at
    // least of each SEND and WRITE, which were waited for, and the responses
    CHECK(there.frames() == 7 + 7 + 3);
    CHECK(back.frames() >= 6 + 7);
    CHECK(sc_core::sc_time_stamp() - connected > 9 * 2 * sc_core::sc_time(500, sc_core::SC_NS));
    for (const HostModule* host : {&a.host, &b.host}) {
      CHECK(host->reads > 20);
      CHECK(host->writes > 20);
      CHECK(host->bus_errors == 0);
      CHECK(host->raised > 0);               // admin commands of the core
    }
  }
}

TEST_CASE("what the BAR socket refuses") {
  new_simulation();
  Node node(sim::ChipConfig::narrow, 0, 16);
  sim::EthernetWire loop("loop", {500, sc_core::SC_NS});
  node.nic.eth_out.bind(loop.in);
  loop.out.bind(node.nic.eth_in);
  node.boot(kMacs[0]);
  uint64_t value = 0;
  const uint64_t hash = HostModule::address(0, csr::IdentityFirmwareHash::ADDRESS);
  CHECK(node.host.transact(hash, value, false) == tlm::TLM_OK_RESPONSE);
  CHECK(value == hwif::HWIF_HASH);
  CHECK(node.host.transact(hash, value, false, 4) == tlm::TLM_BURST_ERROR_RESPONSE);
  CHECK(node.host.transact(hash + 4, value, false) == tlm::TLM_BURST_ERROR_RESPONSE);
  CHECK(node.host.transact(HostModule::address(8, 0), value, false) ==
        tlm::TLM_ADDRESS_ERROR_RESPONSE);
  CHECK(node.host.transact(hash, value, false) == tlm::TLM_OK_RESPONSE);
}

TEST_CASE("a NIC that never runs is refused") {
  new_simulation();
  CHECK_THROWS_AS(sim::NicModule("none", Node::config(sim::ChipConfig::narrow, 0), sim::Rate{}, 0),
                  std::invalid_argument);
}
