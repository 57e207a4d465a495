// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Completion queues: laps, consumed doorbells, arming, events, overflow, resizing, removal of a queue
// pair's completions, extended polling.
#include "world.hpp"

#include <fcntl.h>
#include <poll.h>

#include <deque>

using namespace roci;
using namespace roci::test;

namespace {

bool readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return poll(&p, 1, 0) == 1;
}

// One NIC, queue pairs connected to themselves: a WRITE of nothing makes one completion.
struct Loop {
  explicit Loop(unsigned entries = 32, unsigned qps = 1, CompChannel* channel = nullptr,
                ibv_qp_cap cap = caps(64))
      : nic(fabric, 0), host(make_inproc_transport(nic, {.step_when_idle = false})) {
    own_channel = channel == nullptr ? std::make_unique<CompChannel>(host.context) : nullptr;
    cq = std::make_unique<Cq>(host.context, CqConfig{entries, own_channel.get(), false});
    for (unsigned i = 0; i < qps; ++i) {
      qp.push_back(std::make_unique<Qp>(
          host.pd, QpConfig{cq.get(), cq.get(), cap, IBV_QPT_RC, false, false}));
      connect(*qp.back(), qp.back()->number(), path_to(nic));
    }
  }
  // Posts `n` empty messages and lets the NIC carry them out.
  void complete(unsigned n, unsigned which = 0, uint64_t wr_id = 0) {
    for (unsigned i = 0; i < n; ++i) {
      ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, nullptr, 0, wr_id + i);
      REQUIRE(post(*qp[which], wr) == 0);
    }
    for (unsigned i = 0; i < n + 2; ++i) nic.step(1);
  }
  std::vector<uint64_t> drain() {
    std::vector<uint64_t> ids;
    ibv_wc wc[8];
    while (const int n = cq->poll(8, wc)) {
      for (int i = 0; i < n; ++i) {
        REQUIRE(wc[i].status == IBV_WC_SUCCESS);
        ids.push_back(wc[i].wr_id);
      }
    }
    return ids;
  }

  FakeFabric fabric;
  FakeNic nic;
  Host host;
  std::unique_ptr<CompChannel> own_channel;
  std::unique_ptr<Cq> cq;
  std::vector<std::unique_ptr<Qp>> qp;
};

}  // namespace

TEST_CASE("many laps, in order; consumed is rung at least every quarter") {
  Loop loop(32);
  Random random;
  CHECK(loop.cq->entries() == 32);  // a ring of 64
  uint64_t id = 0;
  uint64_t expected = 0;
  unsigned waiting = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto n = static_cast<unsigned>(random.between(0, 32 - waiting));
    loop.complete(n, 0, id);
    id += n;
    waiting += n;
    const auto take = static_cast<unsigned>(random.between(0, waiting));
    std::vector<ibv_wc> wc(take + 1);
    const int got = loop.cq->poll(static_cast<int>(take), wc.data());
    REQUIRE(got == static_cast<int>(take));
    for (unsigned k = 0; k < take; ++k) REQUIRE(wc[k].wr_id == expected++);
    waiting -= take;
  }
  // A ring of 64: one doorbell for each 16, as far as consumption is counted.
  CHECK(loop.nic.doorbells(hwif::DoorbellKind::CQ_CONSUMED) >= expected / 17);
  CHECK(loop.nic.doorbells(hwif::DoorbellKind::CQ_CONSUMED) <= expected / 16);
  CHECK(loop.nic.violations() == std::vector<std::string>{});
}

TEST_CASE("the requested number always fits, whatever was consumed when") {
  Loop loop(16);
  for (int i = 0; i < 200; ++i) {
    loop.complete(16);
    REQUIRE(loop.drain().size() == 16);
  }
  CHECK(loop.nic.violations() == std::vector<std::string>{});
}

TEST_CASE("poll takes no more than asked, zero is fine") {
  Loop loop;
  loop.complete(5);
  ibv_wc wc[8];
  CHECK(loop.cq->poll(0, wc) == 0);
  CHECK(loop.cq->poll(3, wc) == 3);
  CHECK(loop.cq->poll(8, wc) == 2);
  CHECK(loop.cq->poll(8, wc) == 0);
}

TEST_CASE("arming: one event, also for what is there already") {
  Loop loop;
  const int fd = loop.own_channel->fd();
  loop.complete(1);
  loop.host.device->poll_events();
  CHECK_FALSE(readable(fd));  // not armed
  loop.cq->arm(false);        // the completion is there: at once
  CHECK(loop.own_channel->get() == loop.cq.get());
  CHECK_FALSE(readable(fd));
  loop.drain();
  loop.cq->arm(false);
  loop.nic.step(10);
  loop.host.device->poll_events();
  CHECK_FALSE(readable(fd));  // nothing new since
  loop.complete(3);
  loop.host.device->poll_events();
  CHECK(readable(fd));
  CHECK(loop.own_channel->get() == loop.cq.get());
  loop.complete(1);
  loop.host.device->poll_events();
  CHECK_FALSE(readable(fd));  // one shot
  CHECK(loop.cq->completion_events() == 2);
}

TEST_CASE("arming between an event and polling: no second event for the same completions") {
  Loop loop;
  const int fd = loop.own_channel->fd();
  loop.cq->arm(false);
  unsigned events = 0;
  for (unsigned round = 0; round < 200; ++round) {  // many laps
    loop.complete(2);
    loop.host.device->poll_events();
    REQUIRE(loop.own_channel->get() == loop.cq.get());
    ++events;
    loop.cq->arm(false);  // as ib_send_lat -e does, before it polls
    loop.nic.step(10);
    loop.host.device->poll_events();
    REQUIRE_FALSE(readable(fd));
    ibv_wc wc[3];
    REQUIRE(loop.cq->poll(3, wc) == 2);
    REQUIRE(loop.cq->poll(3, wc) == 0);
  }
  CHECK(loop.cq->completion_events() == events);
  // what comes between an empty poll and arming is not lost
  loop.complete(1);
  loop.host.device->poll_events();
  REQUIRE(loop.own_channel->get() == loop.cq.get());
  loop.drain();
  loop.complete(1);
  loop.cq->arm(false);
  loop.nic.step(10);
  loop.host.device->poll_events();
  CHECK(readable(fd));
}

TEST_CASE("arming for solicited completions") {
  Loop loop;
  Buffer buffer(4096);
  Mr mr(loop.host.pd, buffer.data(), 4096, buffer.address(), ALL_ACCESS);
  const auto send = [&](unsigned flags) {
    REQUIRE(post_recv(*loop.qp[0], nullptr, 0, 1) == 0);
    ibv_send_wr wr = send_wr(IBV_WR_SEND, nullptr, 0, 2, flags);
    REQUIRE(post(*loop.qp[0], wr) == 0);
    for (int i = 0; i < 5; ++i) loop.nic.step(1);
    loop.host.device->poll_events();
    return readable(loop.own_channel->fd());
  };
  loop.cq->arm(true);
  CHECK_FALSE(send(0));
  CHECK(send(IBV_SEND_SOLICITED));
  CHECK(loop.own_channel->get() == loop.cq.get());
  loop.drain();
  // Arming for all is not narrowed by arming for solicited ones.
  loop.cq->arm(false);
  loop.cq->arm(true);
  CHECK(send(0));
  CHECK(loop.own_channel->get() == loop.cq.get());
  loop.drain();
  // An error counts as solicited.
  loop.cq->arm(true);
  ibv_sge bad{buffer.address(), 10, mr.lkey() + 1};
  ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &bad, 1, 3);
  REQUIRE(post(*loop.qp[0], wr) == 0);
  CHECK(loop.own_channel->get() == loop.cq.get());
}

TEST_CASE("a destroyed queue's events go with it") {
  Loop loop;
  loop.cq->arm(false);
  loop.complete(1);
  loop.host.device->poll_events();
  CHECK(readable(loop.own_channel->fd()));
  loop.qp.clear();
  loop.cq->destroy();
  CHECK_FALSE(readable(loop.own_channel->fd()));
  // An event that is still on its way finds nobody.
  Cq other(loop.host.context, {16, loop.own_channel.get(), false});
  loop.host.device->poll_events();
  CHECK_FALSE(readable(loop.own_channel->fd()));
}

TEST_CASE("event descriptor: O_NONBLOCK") {
  Loop loop;
  EventFdQueue<int> queue;
  REQUIRE(fcntl(queue.fd(), F_SETFL, fcntl(queue.fd(), F_GETFL) | O_NONBLOCK) == 0);
  const auto none = [](int) {};
  errno = 0;
  CHECK_FALSE(queue.take(none));
  CHECK(errno == EAGAIN);
  CHECK_FALSE(wait_for_event(queue.fd()));
  for (int i = 0; i < 5; ++i) queue.push(i);
  CHECK(queue.remove_if([](int i) { return i % 2 == 0; }) == 3);
  CHECK(*queue.take(none) == 1);
  CHECK(*queue.take(none) == 3);
  CHECK_FALSE(queue.take(none));
}

TEST_CASE("overflow is an error of the queue, never silent") {
  Loop loop(16, 1, nullptr, caps(64));
  loop.complete(33);  // the ring has 32
  loop.host.device->poll_events();
  const auto event = loop.host.context.get_async_event();
  REQUIRE(event);
  CHECK(event->type == hwif::EqeType::CQ_ERROR);
  CHECK(event->cq == loop.cq.get());
  CHECK(loop.cq->async_events() == 1);
}

TEST_CASE("arming ahead of polling gives nothing away: an overfilled queue loses no entry silently") {
  for (const unsigned waiting : {1u, 7u, 20u, 32u}) {  // a ring of 32
    INFO("waiting " << waiting);
    Loop loop(16, 1, nullptr, caps(128));
    loop.complete(3, 0, 1000);  // somewhere in the ring
    REQUIRE(loop.drain().size() == 3);
    loop.cq->arm(false);
    loop.complete(waiting);
    loop.host.device->poll_events();
    REQUIRE(loop.own_channel->get() == loop.cq.get());
    loop.cq->arm(false);  // behind what waits, and nothing of that is polled
    loop.nic.step(10);
    loop.host.device->poll_events();
    REQUIRE_FALSE(readable(loop.own_channel->fd()));
    loop.complete(32 - waiting, 0, waiting);
    loop.host.device->poll_events();
    CHECK(readable(loop.own_channel->fd()) == (waiting != 32));
    loop.complete(1, 0, 32);  // one too many
    loop.host.device->poll_events();
    REQUIRE(readable(loop.host.context.async_fd()));
    const auto event = loop.host.context.get_async_event();
    REQUIRE(event);
    CHECK(event->type == hwif::EqeType::CQ_ERROR);
    CHECK(event->cq == loop.cq.get());
    const auto ids = loop.drain();
    REQUIRE(ids.size() == 32);
    for (unsigned i = 0; i < 32; ++i) CHECK(ids[i] == i);
  }
}

TEST_CASE("events whose write failed: who waits is woken, later events come") {
  for (const unsigned lost : {1u, 3u}) {
    Loop loop;
    Cq other(loop.host.context, {16, loop.own_channel.get(), false});  // not armed
    CompChannel* channel = loop.own_channel.get();
    for (unsigned round = 0; round < 3; ++round) {
      INFO("lost " << lost << ", round " << round);
      loop.nic.fail_events(lost);
      for (unsigned n = 1; n < lost; ++n) loop.nic.raise(1, hwif::EqeType::COMM_EST, 0);
      loop.cq->arm(false);
      loop.complete(1);
      for (unsigned n = 0; n < 100 && !readable(channel->fd()); ++n) {
        loop.host.device->wait_events(std::chrono::milliseconds(1));
      }
      REQUIRE(readable(channel->fd()));
      REQUIRE(channel->get() == loop.cq.get());
      REQUIRE(loop.drain().size() == 1);
      for (unsigned n = 0; n < 100; ++n) loop.host.device->wait_events(std::chrono::milliseconds(1));
      REQUIRE_FALSE(readable(channel->fd()));  // once, and `other` wants none
      loop.cq->arm(false);
      loop.complete(1);
      loop.host.device->wait_events(std::chrono::milliseconds(1));
      REQUIRE(readable(channel->fd()));
      REQUIRE(channel->get() == loop.cq.get());
      loop.drain();
    }
    CHECK(loop.nic.violations() == std::vector<std::string>{});
  }
}

TEST_CASE("removal of a queue pair's completions leaves the others in order") {
  Random random;
  for (int round = 0; round < 200; ++round) {
    Loop loop(64, 3);
    std::vector<uint64_t> expected;
    // Somewhere in the ring.
    const auto offset = static_cast<unsigned>(random.between(0, 40));
    loop.complete(offset);
    loop.drain();
    const auto n = static_cast<unsigned>(random.between(0, 60));
    for (unsigned i = 0; i < n; ++i) {
      const auto which = static_cast<unsigned>(random.between(0, 2));
      loop.complete(1, which, i);
      if (which != 1) expected.push_back(i);
    }
    if (random.between(0, 1) == 0) {
      loop.qp[1]->destroy();
    } else {
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_RESET;
      loop.qp[1]->modify(attr, IBV_QP_STATE);
    }
    REQUIRE(loop.drain() == expected);
    // And the ring goes on.
    loop.complete(20, 0, 100);
    REQUIRE(loop.drain().size() == 20);
    REQUIRE(loop.nic.violations() == std::vector<std::string>{});
  }
}

TEST_CASE("resize: unpolled completions stay, later ones follow, at every position of the ring") {
  Random random;
  for (int round = 0; round < 300; ++round) {
    Loop loop(static_cast<unsigned>(random.between(8, 64)), 1, nullptr, caps(512));
    std::deque<uint64_t> expected;
    uint64_t id = 0;
    unsigned room = loop.cq->entries();
    for (int step = 0; step < 30; ++step) {
      switch (random.between(0, 2)) {
        case 0: {
          const auto n = static_cast<unsigned>(random.between(0, room - expected.size()));
          loop.complete(n, 0, id);
          for (unsigned i = 0; i < n; ++i) expected.push_back(id++);
          break;
        }
        case 1: {
          ibv_wc wc{};
          for (uint64_t n = random.between(0, expected.size()); n != 0; --n) {
            REQUIRE(loop.cq->poll(1, &wc) == 1);
            REQUIRE(wc.wr_id == expected.front());
            expected.pop_front();
          }
          if (expected.empty()) REQUIRE(loop.cq->poll(1, &wc) == 0);
          break;
        }
        default: {
          const auto entries = static_cast<unsigned>(random.between(1, 200));
          // The ring has twice the entries, but what waits has to be within the request.
          if (entries < expected.size()) break;
          REQUIRE(error_of([&] { loop.cq->resize(entries); }) == 0);
          REQUIRE(loop.cq->entries() >= entries);
          room = loop.cq->entries();
        }
      }
    }
    for (const uint64_t e : expected) {
      ibv_wc wc{};
      REQUIRE(loop.cq->poll(1, &wc) == 1);
      REQUIRE(wc.wr_id == e);
    }
    REQUIRE(loop.drain().empty());
    REQUIRE(loop.nic.violations() == std::vector<std::string>{});
  }
}

TEST_CASE("resize: errors") {
  Loop loop;
  CHECK(error_of([&] { loop.cq->resize(0); }) == EINVAL);
  CHECK(error_of([&] { loop.cq->resize(loop.host.device->limits().max_cqe + 1); }) == EINVAL);
}

TEST_CASE("extended polling") {
  Loop loop;
  CHECK(loop.cq->start_poll() == ENOENT);
  loop.complete(3, 0, 50);
  REQUIRE(loop.cq->start_poll() == 0);
  CHECK(loop.cq->current().wr_id == 50);
  CHECK(loop.cq->current().cqe.get<hwif::Cqe::qpn>() == loop.qp[0]->number());
  const uint64_t first = loop.cq->current().cqe.get<hwif::Cqe::timestamp>();
  REQUIRE(loop.cq->next_poll() == 0);
  CHECK(loop.cq->current().wr_id == 51);
  CHECK(loop.cq->current().cqe.get<hwif::Cqe::timestamp>() >= first);
  loop.cq->end_poll();
  REQUIRE(loop.cq->start_poll() == 0);
  CHECK(loop.cq->current().wr_id == 52);
  CHECK(loop.cq->next_poll() == ENOENT);
  loop.cq->end_poll();
  CHECK(loop.cq->start_poll() == ENOENT);
  // The lock is free again.
  CHECK(loop.drain().empty());
}

TEST_CASE("arming by the one who polls") {
  Loop loop;
  loop.complete(2, 0, 50);
  REQUIRE(loop.cq->start_poll() == 0);
  loop.cq->arm(false);
  REQUIRE(loop.cq->next_poll() == 0);
  CHECK(loop.cq->current().wr_id == 51);
  loop.cq->end_poll();
  loop.nic.step(1);
  loop.host.device->poll_events();
  // the second was unpolled when it was armed
  REQUIRE(readable(loop.own_channel->fd()));
  CHECK(loop.own_channel->get() == loop.cq.get());
  loop.cq->arm(false);
  loop.complete(1, 0, 60);
  loop.host.device->poll_events();
  CHECK(readable(loop.own_channel->fd()));
  CHECK(loop.drain() == std::vector<uint64_t>{60});
}

TEST_CASE("operations as verbs name them") {
  using hwif::CqeOpcode;
  const std::pair<CqeOpcode, ibv_wc_opcode> opcodes[] = {
      {CqeOpcode::SEND, IBV_WC_SEND},         {CqeOpcode::WRITE, IBV_WC_RDMA_WRITE},
      {CqeOpcode::READ, IBV_WC_RDMA_READ},    {CqeOpcode::CMP_SWAP, IBV_WC_COMP_SWAP},
      {CqeOpcode::FETCH_ADD, IBV_WC_FETCH_ADD}, {CqeOpcode::LOCAL_INV, IBV_WC_LOCAL_INV},
      {CqeOpcode::BIND_MW, IBV_WC_BIND_MW},   {CqeOpcode::RECV, IBV_WC_RECV},
      {CqeOpcode::RECV_IMM, IBV_WC_RECV},     {CqeOpcode::RECV_INV, IBV_WC_RECV},
      {CqeOpcode::RECV_WRITE_IMM, IBV_WC_RECV_RDMA_WITH_IMM}};
  for (const auto& [from, to] : opcodes) CHECK(wc_opcode(from) == to);
  const auto flags = [](CqeOpcode opcode, bool grh) {
    hwif::Cqe cqe{};
    cqe.set<hwif::Cqe::opcode>(opcode);
    cqe.set<hwif::Cqe::grh_present>(grh);
    return wc_flags(cqe);
  };
  CHECK(flags(CqeOpcode::RECV, false) == 0);
  CHECK(flags(CqeOpcode::RECV, true) == IBV_WC_GRH);
  CHECK(flags(CqeOpcode::RECV_IMM, true) == (IBV_WC_GRH | IBV_WC_WITH_IMM));
  CHECK(flags(CqeOpcode::RECV_WRITE_IMM, false) == IBV_WC_WITH_IMM);
  CHECK(flags(CqeOpcode::RECV_INV, false) == IBV_WC_WITH_INV);
}
