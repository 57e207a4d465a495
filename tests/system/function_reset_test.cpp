// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A client dies in the middle of traffic in both directions: the bus sees no more accesses of its
// function, other functions of the NIC go on, its peer hears of it, and the function is given out
// again.
#include "rtl_pair.hpp"

#include <memory>

using namespace roci;
using namespace roci::test;

namespace {

constexpr unsigned kFunction = 2;    // 1 is the pair's; functions are given out from below
constexpr size_t kBytes = 32768;

// A client with a queue pair to host b. When it is dead nothing of it acts any more: so the test
// never destroys it.
struct Client {
  explicit Client(RtlPair& pair)
      : host(make_inproc_transport(pair.world.nic(0))),
        cq(host.context, {64, nullptr, false}),
        peer_cq(pair.b.context, {64, nullptr, false}),
        qp(host.pd, {&cq, &cq, caps(), IBV_QPT_RC, false, false}),
        peer(std::make_unique<Qp>(
            pair.b.pd, QpConfig{&peer_cq, &peer_cq, caps(), IBV_QPT_RC, false, false})),
        memory(host.pd, kBytes) {
    connect(qp, peer->number(), path_to(pair.world.nic(1)));
    connect(*peer, qp.number(), path_to(pair.world.nic(0)));
  }
  Host host;
  Cq cq, peer_cq;
  Qp qp;
  std::unique_ptr<Qp> peer;
  Region memory;
};

ibv_send_wr write_wr(ibv_sge* sge, const Region& to, uint64_t id) {
  ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, sge, 1, id);
  wr.wr.rdma.remote_addr = to.buffer.address();
  wr.wr.rdma.rkey = to.mr.rkey();
  return wr;
}

bool resetting(RtlPair& pair) {
  using Status = hwif::csr::AdminStatus;
  const auto word = pair.world.nic(0).bar_read(kFunction, Status::ADDRESS);
  return Status::Value::from_word(word).get<Status::Value::state>() == hwif::AdminState::RESETTING;
}

}  // namespace

TEST_CASE("a client dies in mid-traffic") {
  for (const auto chip : kConfigs) {
    INFO(sim::to_string(chip));
    RtlPair pair(rtl_world(chip));
    Region from(pair.a.pd, kBytes);
    Region to(pair.b.pd, kBytes);
    auto* client = new Client(pair);               // never destroyed, see above
    for (uint64_t n = 0; n < 4; ++n) {
      ibv_sge s = client->memory.sge(0, kBytes);
      ibv_send_wr wr = write_wr(&s, to, n);
      REQUIRE(post(client->qp, wr) == 0);
      s = to.sge(0, kBytes);
      wr = write_wr(&s, client->memory, n);
      REQUIRE(post(*client->peer, wr) == 0);
    }
    pair.world.run(2000);

    uint64_t died = pair.world.cycle();
    std::vector<std::string> late;
    pair.world.nic(0).nic().memory().set_observer([&](const sim::MemoryAccess& access) {
      // what the bus had before is answered within its latency
      if (access.function == kFunction && access.cycle > died + 1000) {
        late.push_back((access.write ? "write " : "read ") + std::to_string(access.cycle - died));
      }
    });
    pair.world.nic(0).detach(kFunction);

    // the others
    ibv_sge s = from.sge(0, 5000);
    for (uint64_t n = 0; n < 4; ++n) {
      ibv_send_wr wr = write_wr(&s, to, n);
      REQUIRE(post(pair.a_qp, wr) == 0);
      REQUIRE(wait_wc(pair.a_cq).status == IBV_WC_SUCCESS);
    }
    // its peer: memory that is no more, or a queue pair that is no more
    ibv_wc wc = wait_wc(client->peer_cq);
    while (wc.status == IBV_WC_SUCCESS) wc = wait_wc(client->peer_cq);
    CHECK((wc.status == IBV_WC_REM_OP_ERR || wc.status == IBV_WC_RETRY_EXC_ERR));

    for (int n = 0; n < 5000 && resetting(pair); ++n) pair.world.run(1000);
    REQUIRE_FALSE(resetting(pair));
    CHECK(late == std::vector<std::string>{});
    pair.world.nic(0).nic().memory().set_observer({});
    client->peer.reset();

    // its successor
    {
      Client next(pair);
      ibv_sge sge = next.memory.sge(0, 3000);
      std::memset(next.memory.buffer.data(), 0x6b, 3000);
      ibv_send_wr wr = write_wr(&sge, to, 9);
      REQUIRE(post(next.qp, wr) == 0);
      REQUIRE(wait_wc(next.cq).status == IBV_WC_SUCCESS);
      CHECK(to.buffer[2999] == 0x6b);
    }
  }
}
