// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What the data path of the host stack costs in instructions, with the doorbell page mapped as a card's
// is. Run by budget_test.py under callgrind, which counts inside of the functions budget_* only; each
// scenario ends with a dump that has its name, and prints how many work requests or polls it had.
// Run alone it checks that the scenarios do what they say.
#include "world.hpp"

#include <valgrind/callgrind.h>

#include <array>
#include <cstdio>

using namespace roci::test;

// The calls; none becomes a jump, so that callgrind sees both ends of them.
extern "C" {
[[gnu::noinline]] int budget_post_send(roci::Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  const int error = qp.post_send(wr, bad);
  asm volatile("");
  return error;
}
[[gnu::noinline]] int budget_post_recv(roci::Qp& qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const int error = qp.post_recv(wr, bad);
  asm volatile("");
  return error;
}
[[gnu::noinline]] int budget_poll(roci::Cq& cq, int count, ibv_wc* wc) {
  const int got = cq.poll(count, wc);
  asm volatile("");
  return got;
}
}

namespace {

// The in-process transport with a doorbell page in memory: a store, which forward() brings to the NIC.
class MappedTransport final : public roci::Transport {
 public:
  explicit MappedTransport(roci::InprocNic& nic) : inner_(roci::make_inproc_transport(nic)) {}
  uint64_t bar_read(uint32_t offset) override { return inner_->bar_read(offset); }
  void bar_write(uint32_t offset, uint64_t value) override { inner_->bar_write(offset, value); }
  void ring(unsigned page, uint64_t doorbell) noexcept override { inner_->ring(page, doorbell); }
  volatile uint64_t* mapped_doorbell(unsigned page) noexcept override { return &words_[page]; }
  roci::DmaRange allocate(size_t bytes) override { return inner_->allocate(bytes); }
  void release(const roci::DmaRange& chunk) noexcept override { inner_->release(chunk); }
  void map(std::span<roci::DmaRange> ranges) override { inner_->map(ranges); }
  void unmap(std::span<const roci::DmaRange> ranges) noexcept override { inner_->unmap(ranges); }
  bool wait(unsigned vector, std::chrono::milliseconds timeout) override {
    return inner_->wait(vector, timeout);
  }
  void wake(unsigned vector) noexcept override { inner_->wake(vector); }
  std::optional<roci::Neighbour> resolve(const roci::Gid& gid) override {
    return inner_->resolve(gid);
  }
  void idle() noexcept override { inner_->idle(); }
  bool wants_idle() const noexcept override { return false; }
  bool runs_by_itself() const noexcept override { return false; }
  void abandon_after_fork() noexcept override { inner_->abandon_after_fork(); }

  /// Rings what was written since the last call: at most one doorbell, as the scenarios call it.
  void forward() {
    for (unsigned page = 0; page < words_.size(); ++page) {
      const uint64_t doorbell = words_[page];
      words_[page] = 0;
      if (doorbell != 0) inner_->ring(page, doorbell);
    }
  }

 private:
  std::unique_ptr<roci::Transport> inner_;
  std::array<volatile uint64_t, roci::hwif::DOORBELL_PAGES> words_{};
};

struct Side {
  explicit Side(FakeNic& nic)
      : transport(new MappedTransport(nic)),
        host(std::unique_ptr<roci::Transport>(transport)),
        send_cq(host.context, {256, nullptr, false}),
        recv_cq(host.context, {256, nullptr, false}),
        memory(host.pd, 65536),
        qp(host.pd, {&send_cq, &recv_cq, caps(64, 4, 128), IBV_QPT_RC, false, false}) {}
  MappedTransport* transport;
  Host host;
  roci::Cq send_cq, recv_cq;
  Region memory;
  roci::Qp qp;
};

// Two connected sides.
struct World {
  World() : a_nic(fabric, 0), b_nic(fabric, 1), a(a_nic), b(b_nic) {
    connect(a.qp, b.qp.number(), path_to(b_nic));
    connect(b.qp, a.qp.number(), path_to(a_nic));
  }
  ~World() {
    CHECK(a_nic.violations() == std::vector<std::string>{});
    CHECK(b_nic.violations() == std::vector<std::string>{});
  }
  /// Lets everything that was posted be carried out.
  void settle() {
    a.transport->forward();
    b.transport->forward();
    for (unsigned n = 0; n < 100; ++n) fabric.step(64);
  }
  /// Polls everything there is. @return completions
  int drain(roci::Cq& cq, Side& side) {
    std::array<ibv_wc, 32> wc{};
    int all = 0;
    for (int got = 0; (got = cq.poll(32, wc.data())) > 0;) {
      for (int n = 0; n < got; ++n) REQUIRE(wc[static_cast<size_t>(n)].status == IBV_WC_SUCCESS);
      all += got;
      side.transport->forward();
    }
    return all;
  }
  FakeFabric fabric;
  FakeNic a_nic, b_nic;
  Side a, b;
};

constexpr unsigned ROUNDS = 32, LIST = 16;

// A list of requests with one SGE each.
struct Sends {
  Sends(World& w, ibv_wr_opcode opcode, unsigned flags) {
    for (unsigned n = 0; n < LIST; ++n) {
      sges[n] = w.a.memory.sge(64 * n, 64);
      list[n] = send_wr(opcode, &sges[n], 1, n, flags);
      list[n].wr.rdma.remote_addr = w.b.memory.buffer.address() + 64 * n;
      list[n].wr.rdma.rkey = w.b.memory.mr.rkey();
      list[n].next = n + 1 < LIST ? &list[n + 1] : nullptr;
    }
  }
  std::array<ibv_sge, LIST> sges;
  std::array<ibv_send_wr, LIST> list;
};

struct Receives {
  explicit Receives(World& w) {
    for (unsigned n = 0; n < LIST; ++n) {
      sges[n] = w.b.memory.sge(64 * n, 64);
      list[n] = {n, n + 1 < LIST ? &list[n + 1] : nullptr, &sges[n], 1};
    }
  }
  std::array<ibv_sge, LIST> sges;
  std::array<ibv_recv_wr, LIST> list;
};

// Ends a scenario that had this many.
void done(const char* name, unsigned count) {
  CALLGRIND_DUMP_STATS_AT(name);
  std::printf("BUDGET %s %u\n", name, count);
}

}  // namespace

TEST_CASE("what a work request and a completion cost") {
  World w;
  std::array<ibv_wc, LIST> wc{};
  ibv_send_wr* bad_send = nullptr;
  ibv_recv_wr* bad_recv = nullptr;
  Sends writes(w, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED);
  Sends inlined(w, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  Sends sends(w, IBV_WR_SEND, IBV_SEND_SIGNALED);
  Receives receives(w);
  done("start", 1);

  const auto post_one = [&](Sends& what, const char* name) {
    for (unsigned round = 0; round < ROUNDS * LIST; ++round) {
      ibv_send_wr wr = what.list[round % LIST];
      wr.next = nullptr;
      REQUIRE(budget_post_send(w.a.qp, &wr, &bad_send) == 0);
      w.settle();
      REQUIRE(w.drain(w.a.send_cq, w.a) == 1);
    }
    done(name, ROUNDS * LIST);
  };
  post_one(writes, "post_send");
  post_one(inlined, "post_send_inline");
  for (unsigned round = 0; round < ROUNDS; ++round) {
    REQUIRE(budget_post_send(w.a.qp, writes.list.data(), &bad_send) == 0);
    w.settle();
    REQUIRE(w.drain(w.a.send_cq, w.a) == LIST);
  }
  done("post_send_list", ROUNDS * LIST);

  // receives, one by one and in lists, each followed by messages that take them
  const auto take = [&](unsigned count) {
    for (unsigned n = 0; n < count; ++n) {
      ibv_send_wr wr = sends.list[n];
      wr.next = nullptr;
      REQUIRE(post(w.a.qp, wr) == 0);
      w.a.transport->forward();
    }
    w.settle();
    REQUIRE(w.drain(w.a.send_cq, w.a) == static_cast<int>(count));
  };
  for (unsigned round = 0; round < ROUNDS * LIST; ++round) {
    ibv_recv_wr wr = receives.list[round % LIST];
    wr.next = nullptr;
    REQUIRE(budget_post_recv(w.b.qp, &wr, &bad_recv) == 0);
    w.settle();
    take(1);
    REQUIRE(w.drain(w.b.recv_cq, w.b) == 1);
  }
  done("post_recv", ROUNDS * LIST);
  for (unsigned round = 0; round < ROUNDS; ++round) {
    REQUIRE(budget_post_recv(w.b.qp, receives.list.data(), &bad_recv) == 0);
    w.settle();
    take(LIST);
    REQUIRE(w.drain(w.b.recv_cq, w.b) == LIST);
  }
  done("post_recv_list", ROUNDS * LIST);

  // completions of the sender, one per call and many; of the receiver
  const auto polls = [&](int per_call, const char* name) {
    for (unsigned round = 0; round < ROUNDS; ++round) {
      ibv_send_wr* bad = nullptr;
      REQUIRE(w.a.qp.post_send(writes.list.data(), &bad) == 0);
      w.settle();
      for (int left = LIST; left > 0; left -= per_call) {
        REQUIRE(budget_poll(w.a.send_cq, per_call, wc.data()) == per_call);
        REQUIRE(wc[0].status == IBV_WC_SUCCESS);
        w.a.transport->forward();
      }
    }
    done(name, ROUNDS * LIST);
  };
  polls(1, "poll");
  polls(LIST, "poll_many");
  for (unsigned round = 0; round < ROUNDS; ++round) {
    ibv_recv_wr* bad = nullptr;
    REQUIRE(w.b.qp.post_recv(receives.list.data(), &bad) == 0);
    w.settle();
    take(LIST);
    for (unsigned n = 0; n < LIST; ++n) {
      REQUIRE(budget_poll(w.b.recv_cq, 1, wc.data()) == 1);
      REQUIRE(wc[0].opcode == IBV_WC_RECV);
      w.b.transport->forward();
    }
  }
  done("poll_recv", ROUNDS * LIST);
  for (unsigned round = 0; round < ROUNDS; ++round) {
    REQUIRE(budget_poll(w.a.send_cq, 1, wc.data()) == 0);
  }
  done("poll_empty", ROUNDS);
}
