// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Shared receive queues: sizes, posting, completions in any order over laps of the ring, the limit,
// queue pairs that end.
#include "stderr_of.hpp"
#include "world.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>

using namespace roci;
using namespace roci::test;

namespace {

// One NIC; senders, each connected to a receiver on one SRQ.
struct Shared {
  explicit Shared(unsigned pairs = 3, ibv_srq_attr size = {16, 2, 0})
      : nic(fabric, 0),
        host(make_inproc_transport(nic)),
        send_cq(host.context, {256, nullptr, false}),
        recv_cq(host.context, {256, nullptr, false}),
        srq(host.pd, size),
        memory(host.pd, 65536) {
    for (unsigned i = 0; i < pairs; ++i) {
      senders.push_back(std::make_unique<Qp>(
          host.pd, QpConfig{&send_cq, &send_cq, caps(64, 1), IBV_QPT_RC, false, false}));
      receivers.push_back(std::make_unique<Qp>(
          host.pd, QpConfig{&recv_cq, &recv_cq, caps(), IBV_QPT_RC, false, false, &srq}));
      link(i);
    }
  }
  ~Shared() { CHECK(nic.violations() == std::vector<std::string>{}); }
  void link(unsigned i) {
    connect(*senders[i], receivers[i]->number(), path_to(nic));
    connect(*receivers[i], senders[i]->number(), path_to(nic));
  }
  int receive(uint64_t wr_id, uint32_t bytes = 64) {
    ibv_sge sge = memory.sge(32768 + 64 * (wr_id % 512), bytes);
    ibv_recv_wr wr{wr_id, nullptr, &sge, 1};
    ibv_recv_wr* bad = nullptr;
    return srq.post(&wr, &bad);
  }
  void send(unsigned i, uint64_t wr_id) {
    ibv_sge sge = memory.sge(0, 8);
    ibv_send_wr wr = send_wr(IBV_WR_SEND, &sge, 1, wr_id);
    REQUIRE(post(*senders[i], wr) == 0);
  }
  FakeFabric fabric;
  FakeNic nic;
  Host host;
  Cq send_cq, recv_cq;
  Srq srq;
  Region memory;
  std::vector<std::unique_ptr<Qp>> senders, receivers;
};

}  // namespace

TEST_CASE("SRQ: sizes, limits, errno") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  std::string text;
  const auto refuse = [&](ibv_srq_attr attr) {
    return error_of([&] { Srq srq(host.pd, attr); }, &text);
  };
  const unsigned most = host.device->limits().max_srq_wr;
  CHECK(most == 32768);
  CHECK(refuse({most, 15, 0}) == 0);
  CHECK(refuse({most + 1, 1, 0}) == EINVAL);
  CHECK(text.find("attr.max_wr 32769: 1 to 32768") != std::string::npos);
  CHECK(refuse({0, 1, 0}) == EINVAL);
  CHECK(refuse({16, 16, 0}) == EINVAL);
  CHECK(text.find("attr.max_sge 16: at most 15") != std::string::npos);
  {
    std::deque<Srq> all;
    for (unsigned i = 0; i < host.device->limits().max_srqs; ++i) {
      all.emplace_back(host.pd, ibv_srq_attr{1, 0, 0});
    }
    CHECK(refuse({1, 1, 0}) == ENOMEM);
    CHECK(error_of([&] { host.pd.destroy(); }) == EBUSY);
  }
  Srq srq(host.pd, {20, 4, 5});
  CHECK(srq.max_wr() == 32);
  CHECK(srq.max_sge() == 7);
  CHECK(srq.query().srq_limit == 0);  // of creation it is not taken
  srq.modify({0, 0, 9}, IBV_SRQ_LIMIT);
  const ibv_srq_attr got = srq.query();
  CHECK(got.srq_limit == 9);
  CHECK(got.max_wr == 32);
  CHECK(got.max_sge == 7);
  CHECK(error_of([&] { srq.modify({0, 0, 33}, IBV_SRQ_LIMIT); }, &text) == EINVAL);
  CHECK(text.find("srq_limit 33: at most 32") != std::string::npos);
  CHECK(error_of([&] { srq.modify({64, 0, 0}, IBV_SRQ_MAX_WR); }, &text) == EOPNOTSUPP);
  CHECK(error_of([&] { srq.modify({64, 0, 0}, 1 << 5); }) == EINVAL);
  CHECK(srq.query().srq_limit == 9);
}

TEST_CASE("SRQ: posting until it is full, lists, too many SGEs") {
  Shared s(1);
  ibv_sge sges[4] = {};
  ibv_recv_wr list[3] = {{1, &list[1], nullptr, 0}, {2, &list[2], sges, 4}, {3, nullptr, nullptr, 0}};
  ibv_recv_wr* bad = nullptr;
  const std::string said = stderr_of([&] {
    CHECK(s.srq.post(list, &bad) == EINVAL);
    CHECK(s.srq.post(&list[1], &bad) == EINVAL);
  });
  CHECK(bad == &list[1]);
  CHECK(std::count(said.begin(), said.end(), '\n') == 1);
  CHECK(said.find("num_sge 4: at most 3") != std::string::npos);
  CHECK(s.srq.post(nullptr, &bad) == 0);
  for (uint64_t i = 1; i < s.srq.max_wr(); ++i) REQUIRE(s.receive(i) == 0);
  CHECK(stderr_of([&] { CHECK(s.receive(99) == ENOMEM); }) == "");
  CHECK(s.nic.doorbells(hwif::DoorbellKind::SRQ) == s.srq.max_wr());
  // The receives of the queue pair are not its own.
  ibv_sge sge{};
  const std::string own = stderr_of([&] {
    CHECK(post_recv(*s.receivers[0], &sge, 1, 1) == EINVAL);
  });
  CHECK(own.find("ibv_post_srq_recv") != std::string::npos);
  CHECK(s.receivers[0]->cap().max_recv_wr == 0);
}

TEST_CASE("SRQ: messages of all queue pairs, over many laps, complete with the right wr_id") {
  Shared s;
  Random random;
  // Which receive a message takes is the order of the messages; here: of what the NIC carries out.
  std::map<uint64_t, unsigned> outstanding;
  uint64_t next = 0;
  unsigned done = 0;
  while (done < 2000) {
    while (outstanding.size() < s.srq.max_wr() && random.between(0, 3) != 0) {
      REQUIRE(s.receive(next) == 0);
      outstanding[next++] = 1;
    }
    const auto burst = std::min<uint64_t>(outstanding.size(), random.between(1, 6));
    for (uint64_t i = 0; i < burst; ++i) s.send(static_cast<unsigned>(random.between(0, 2)), 1000 + i);
    for (uint64_t i = 0; i < burst; ++i) {
      REQUIRE(wait_wc(s.send_cq).status == IBV_WC_SUCCESS);
      const ibv_wc wc = wait_wc(s.recv_cq);
      REQUIRE(wc.status == IBV_WC_SUCCESS);
      REQUIRE(outstanding.erase(wc.wr_id) == 1);
      ++done;
    }
  }
}

TEST_CASE("SRQ: receives end in another order than they were posted") {
  // Completions on two CQs, which are polled in turn: the younger entries come back first.
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  Cq send_cq(host.context, {64, nullptr, false});
  Cq early(host.context, {64, nullptr, false});
  Cq late(host.context, {64, nullptr, false});
  Srq srq(host.pd, {16, 1, 0});
  Qp a(host.pd, {&send_cq, &send_cq, caps(), IBV_QPT_RC, false, false});
  Qp b(host.pd, {&send_cq, &send_cq, caps(), IBV_QPT_RC, false, false});
  Qp to_early(host.pd, {&early, &early, caps(), IBV_QPT_RC, false, false, &srq});
  Qp to_late(host.pd, {&late, &late, caps(), IBV_QPT_RC, false, false, &srq});
  connect(a, to_early.number(), path_to(nic));
  connect(to_early, a.number(), path_to(nic));
  connect(b, to_late.number(), path_to(nic));
  connect(to_late, b.number(), path_to(nic));
  Region region(host.pd, 4096);
  const auto send = [&](Qp& qp) {
    ibv_send_wr wr = send_wr(IBV_WR_SEND, nullptr, 0, 0);
    REQUIRE(post(qp, wr) == 0);
    REQUIRE(wait_wc(send_cq).status == IBV_WC_SUCCESS);
  };
  uint64_t next = 0;
  const auto receive = [&] {
    ibv_sge sge = region.sge(0, 8);
    ibv_recv_wr wr{next, nullptr, &sge, 1};
    ibv_recv_wr* bad = nullptr;
    const int error = srq.post(&wr, &bad);
    if (error == 0) ++next;
    return error;
  };
  while (receive() == 0) {
  }
  CHECK(next == 16);
  std::deque<uint64_t> at_late;
  uint64_t taken = 0;
  for (unsigned lap = 0; lap < 100; ++lap) {
    // One goes to the late queue and stays there; others come and go before it.
    send(b);
    at_late.push_back(taken++);
    for (unsigned i = 0; i < 7; ++i) {
      send(a);
      REQUIRE(wait_wc(early).wr_id == taken++);
      REQUIRE(receive() == 0);
    }
    if (at_late.size() == 8) {
      while (!at_late.empty()) {
        REQUIRE(wait_wc(late).wr_id == at_late.front());
        at_late.pop_front();
        REQUIRE(receive() == 0);
      }
      CHECK(receive() == ENOMEM);
    }
  }
  CHECK(nic.violations() == std::vector<std::string>{});
}

TEST_CASE("SRQ: the limit makes one event") {
  Shared s(1);
  for (uint64_t i = 0; i < 6; ++i) REQUIRE(s.receive(i) == 0);
  s.srq.modify({0, 0, 4}, IBV_SRQ_LIMIT);
  for (unsigned i = 0; i < 4; ++i) {
    s.send(0, i);
    wait_wc(s.recv_cq);
  }
  const auto limit = s.host.context.get_async_event();
  REQUIRE(limit);
  CHECK(limit->type == hwif::EqeType::SRQ_LIMIT_REACHED);
  CHECK(limit->srq == &s.srq);
  CHECK(s.srq.async_events() == 1);
  CHECK(s.srq.query().srq_limit == 0);
  s.host.device->poll_events();
  CHECK_FALSE(s.host.context.take_async_event());
}

TEST_CASE("SRQ: an error of the queue is told; events of a dead one find nobody") {
  Shared s(0);
  s.nic.raise(1, hwif::EqeType::SRQ_ERROR, s.srq.number());
  const std::string said = stderr_of([&] { s.host.device->poll_events(); });
  CHECK(said.find(format("SRQ %u failed", s.srq.number())) != std::string::npos);
  const auto event = s.host.context.get_async_event();
  REQUIRE(event);
  CHECK(event->type == hwif::EqeType::SRQ_ERROR);
  s.nic.raise(1, hwif::EqeType::SRQ_ERROR, s.srq.number());
  s.host.device->poll_events();
  const uint32_t number = s.srq.number();
  s.srq.destroy();  // takes what nobody got along
  s.nic.raise(1, hwif::EqeType::SRQ_LIMIT_REACHED, number);
  s.host.device->poll_events();
  CHECK_FALSE(s.host.context.take_async_event());
}

TEST_CASE("SRQ: a queue pair in ERR tells its last WQE; the receives stay for the others") {
  Shared s(2);
  for (uint64_t i = 0; i < 4; ++i) REQUIRE(s.receive(i) == 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  s.receivers[0]->modify(attr, IBV_QP_STATE);
  no_wc(s.recv_cq);
  const auto event = s.host.context.get_async_event();
  REQUIRE(event);
  CHECK(event->type == hwif::EqeType::QP_LAST_WQE_REACHED);
  CHECK(event->qp == s.receivers[0].get());
  for (uint64_t i = 0; i < 4; ++i) {
    s.send(1, i);
    CHECK(wait_wc(s.recv_cq).wr_id == i);
  }
  CHECK(error_of([&] { s.srq.destroy(); }) == EBUSY);
}

TEST_CASE("SRQ: completions that go with their queue pair give their receives back") {
  Shared s(1);
  for (unsigned life = 0; life < 10; ++life) {
    while (s.receive(life) == 0) {
    }
    for (unsigned i = 0; i < 10; ++i) {
      s.send(0, i);
      REQUIRE(wait_wc(s.send_cq).status == IBV_WC_SUCCESS);
    }
    // Nobody polls them.
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RESET;
    s.senders[0]->modify(attr, IBV_QP_STATE);
    if (life % 2 == 0) {
      s.receivers[0]->modify(attr, IBV_QP_STATE);
    } else {
      s.receivers[0] = std::make_unique<Qp>(
          s.host.pd, QpConfig{&s.recv_cq, &s.recv_cq, caps(), IBV_QPT_RC, false, false, &s.srq});
    }
    no_wc(s.recv_cq);
    s.link(0);
    unsigned room = 0;
    while (s.receive(life) == 0) ++room;
    CHECK(room == 10);
    for (unsigned i = 0; i < 16; ++i) {
      s.send(0, i);
      REQUIRE(wait_wc(s.recv_cq).status == IBV_WC_SUCCESS);
      REQUIRE(wait_wc(s.send_cq).status == IBV_WC_SUCCESS);
    }
  }
}

TEST_CASE("SRQ: a fatal device flushes sends; the shared receives belong to nobody") {
  Shared s(1);
  REQUIRE(s.receive(1) == 0);
  s.nic.freeze(true);
  s.send(0, 5);
  s.nic.raise(1, hwif::EqeType::DEVICE_FATAL);
  s.host.device->poll_events();
  CHECK(wait_wc(s.send_cq).status == IBV_WC_WR_FLUSH_ERR);
  ibv_wc wc{};
  CHECK(s.recv_cq.poll(1, &wc) == 0);
  CHECK(error_of([&] { s.srq.query(); }) == EIO);
  CHECK(error_of([&] { s.receivers[0]->destroy(); }) == 0);
  CHECK(error_of([&] { s.srq.destroy(); }) == 0);
}
