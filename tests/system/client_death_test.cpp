// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A client goes away in the middle of everything: queue pairs in each state, a WRITE leaving, a WRITE
// arriving, a READ being answered. The bus sees no more accesses of its function and its memory stays
// as it was, its peers hear of it by their retries, the traffic of another function of the same NIC
// goes on meanwhile, and the slot serves the next client.
#include "rtl_pair.hpp"

#include <roci_hwif.hpp>

using namespace roci;
using namespace roci::test;

namespace {

constexpr size_t kSmall = 4096;
// What the bus had before is answered within its latency.
constexpr uint64_t kBusCycles = 1000;

/// Attributes whose sender gives up after about 200 µs.
ibv_qp_attr impatient(ibv_qp_state state, uint32_t dest_qpn, const ibv_ah_attr& path) {
  ibv_qp_attr attr = attributes(state, dest_qpn, path);
  attr.timeout = 4;
  attr.retry_cnt = 2;
  return attr;
}
void bring(Qp& qp, ibv_qp_state state, uint32_t dest_qpn, const ibv_ah_attr& path) {
  if (state == IBV_QPS_RESET) return;
  qp.modify(impatient(IBV_QPS_INIT, dest_qpn, path), TO_INIT);
  if (state == IBV_QPS_INIT) return;
  qp.modify(impatient(IBV_QPS_RTR, dest_qpn, path), TO_RTR);
  if (state == IBV_QPS_RTR) return;
  qp.modify(impatient(IBV_QPS_RTS, dest_qpn, path), TO_RTS);
  if (state == IBV_QPS_RTS) return;
  qp.modify(impatient(state, dest_qpn, path), IBV_QP_STATE);
}

/// A host with a completion queue, memory and queue pairs.
struct Client {
  Client(sim::WorldNic& nic, unsigned count, size_t bytes)
      : host(make_inproc_transport(nic)), cq(host.context, {64, nullptr, false}),
        memory(host.pd, bytes) {
    for (unsigned n = 0; n < count; ++n) {
      qps.push_back(std::make_unique<Qp>(
          host.pd, QpConfig{&cq, &cq, caps(), IBV_QPT_RC, false, false}));
    }
  }
  Host host;
  Cq cq;
  Region memory;
  std::vector<std::unique_ptr<Qp>> qps;
};

/// A client whose process dies: nothing of it is closed.
struct DyingClient {
  DyingClient(sim::WorldNic& nic, unsigned count, size_t bytes)
      : client(new Client(nic, count, bytes)) {}
  Client* operator->() { return client; }
  Client* client;                              // never deleted
};

void fill(Region& region, Random& random) {
  for (size_t n = 0; n < region.buffer.size(); ++n) {
    region.buffer[n] = static_cast<uint8_t>(random());
  }
}

/// One WRITE of kSmall bytes from a to b, checked.
void write_and_check(Client& a, Client& b, Random& random) {
  const size_t at = random.between(0, 3) * kSmall;
  for (size_t n = 0; n < kSmall; ++n) a.memory.buffer[at + n] = static_cast<uint8_t>(random());
  ibv_sge sge = a.memory.sge(at, kSmall);
  ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, at);
  wr.wr.rdma.remote_addr = b.memory.buffer.address() + at;
  wr.wr.rdma.rkey = b.memory.mr.rkey();
  REQUIRE(post(*a.qps[0], wr) == 0);
  const ibv_wc wc = wait_wc(a.cq);
  REQUIRE(wc.status == IBV_WC_SUCCESS);
  REQUIRE(wc.wr_id == at);
  REQUIRE(std::memcmp(b.memory.buffer.data() + at, a.memory.buffer.data() + at, kSmall) == 0);
}

}  // namespace

TEST_CASE("a function that goes away in mid-transfer") {
  namespace csr = hwif::csr;
  Random random;
  for (const auto chip : kConfigs) {
    INFO(sim::to_string(chip));
    // more than the packets that can be decided ahead
    const size_t big = chip == sim::ChipConfig::wide ? 512 << 10 : 128 << 10;
    sim::World world(rtl_world(chip));
    sim::WorldNic& nic = world.nic(0);
    const ibv_ah_attr to_near = path_to(nic), to_far = path_to(world.nic(1));
    constexpr unsigned kFunction = 1;          // the first client's
    const auto state = [&] {
      return csr::AdminStatus::from_word(nic.bar_read(kFunction, csr::AdminStatus::ADDRESS))
          .get<csr::AdminStatus::state>();
    };

    // 0…5 in other states; 6 sends, 7 is written to, 8 is read from
    DyingClient dying(nic, 9, 3 * big);
    REQUIRE(state() == hwif::AdminState::ENABLED);
    auto peer = std::make_unique<Client>(world.nic(1), 3, 3 * big);
    auto left = std::make_unique<Client>(nic, 1, 4 * kSmall);
    auto right = std::make_unique<Client>(world.nic(1), 1, 4 * kSmall);
    connect(*left->qps[0], right->qps[0]->number(), to_far);
    connect(*right->qps[0], left->qps[0]->number(), to_near);
    const ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                   IBV_QPS_SQD,   IBV_QPS_ERR,  IBV_QPS_RTS, IBV_QPS_RTS,
                                   IBV_QPS_RTS};
    for (unsigned n = 0; n < 9; ++n) {
      bring(*dying->qps[n], states[n], n < 6 ? 0x800000 + n : peer->qps[n - 6]->number(), to_far);
      if (n >= 6) bring(*peer->qps[n - 6], IBV_QPS_RTS, dying->qps[n]->number(), to_near);
    }
    fill(dying->memory, random);
    fill(peer->memory, random);
    write_and_check(*left, *right, random);

    const auto remote = [](ibv_send_wr& wr, Region& region, size_t at) {
      wr.wr.rdma.remote_addr = region.buffer.address() + at;
      wr.wr.rdma.rkey = region.mr.rkey();
    };
    ibv_sge sge = dying->memory.sge(0, big);
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, 6);
    remote(wr, peer->memory, 0);
    REQUIRE(post(*dying->qps[6], wr) == 0);
    sge = peer->memory.sge(big, big);
    wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, 7);
    remote(wr, dying->memory, big);
    REQUIRE(post(*peer->qps[1], wr) == 0);
    sge = peer->memory.sge(2 * big, big);
    wr = send_wr(IBV_WR_RDMA_READ, &sge, 1, 8);
    remote(wr, dying->memory, 2 * big);
    REQUIRE(post(*peer->qps[2], wr) == 0);

    unsigned reads = 0, writes = 0;            // of the dying client, at the bus
    std::optional<uint64_t> bus_gone;          // in cycles of the bus, which skips no time
    std::vector<std::string> late;
    nic.nic().memory().set_observer([&](const sim::MemoryAccess& access) {
      if (access.function != kFunction) return;
      ++(access.write ? writes : reads);
      if (bus_gone && access.cycle > *bus_gone + kBusCycles) {
        late.push_back((access.write ? "write " : "read ") +
                       std::to_string(access.cycle - *bus_gone));
      }
    });

    // until some of each has arrived, and not all, and the bus is at it
    const auto arrived = [&](Region& from, Region& to, size_t at) {
      return std::memcmp(from.buffer.data() + at, to.buffer.data() + at, kSmall) == 0;
    };
    const auto all = [&](size_t at) { return arrived(dying->memory, peer->memory, at); };
    for (unsigned n = 0; !(all(0) && all(big) && all(2 * big) && reads != 0 && writes != 0); ++n) {
      REQUIRE(n < 500);
      reads = writes = 0;
      world.run(200);
    }
    for (const size_t part : {size_t{1}, size_t{2}, size_t{3}}) {
      INFO("part " << part);
      REQUIRE_FALSE(all(part * big - kSmall));
    }

    const uint64_t gone = world.cycle();
    bus_gone = nic.nic().memory().cycle();
    nic.detach(kFunction);
    const std::vector<uint8_t> memory(dying->memory.buffer.data(),
                                      dying->memory.buffer.data() + 3 * big);
    REQUIRE(state() == hwif::AdminState::RESETTING);
    unsigned during = 0;
    for (; state() != hwif::AdminState::DISABLED; ++during) {
      REQUIRE(during < 1000);
      write_and_check(*left, *right, random);
    }
    CHECK(during >= 1);
    CHECK(world.cycle() - gone < 100'000);

    // The peers' requests to it fail, its own just stop. What came before its queue pair was reset met
    // memory that was gone (NAK remote operational error), what came later met nobody.
    std::map<uint64_t, ibv_wc_status> failed;
    while (failed.size() < 2) {
      const ibv_wc wc = wait_wc(peer->cq);
      failed[wc.wr_id] = wc.status;
    }
    for (const uint64_t id : {7u, 8u}) {
      INFO("request " << id << " ended with status " << failed[id]);
      CHECK((failed[id] == IBV_WC_REM_OP_ERR || failed[id] == IBV_WC_RETRY_EXC_ERR));
    }
    CHECK(std::memcmp(memory.data(), dying->memory.buffer.data(), memory.size()) == 0);
    CHECK(late == std::vector<std::string>{});
    nic.nic().memory().set_observer({});

    // the slot serves the next one
    {
      Client next(nic, 1, 4 * kSmall);
      REQUIRE(state() == hwif::AdminState::ENABLED);
      Client far(world.nic(1), 1, 4 * kSmall);
      CHECK(next.qps[0]->number() != dying->qps[0]->number());
      connect(*next.qps[0], far.qps[0]->number(), to_far);
      connect(*far.qps[0], next.qps[0]->number(), to_near);
      for (unsigned n = 0; n < 3; ++n) write_and_check(next, far, random);
      write_and_check(far, next, random);
      write_and_check(*left, *right, random);
    }
    CHECK(std::memcmp(memory.data(), dying->memory.buffer.data(), memory.size()) == 0);
    const auto resets = static_cast<unsigned>(hwif::Counter::FUNCTION_RESETS);
    CHECK(nic.bar_read(0, csr::ManagementCounter::ADDRESS + 8 * resets) >= 1);
  }
}
