// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A client goes away in the middle of everything: queue pairs in each state, a WRITE leaving, a WRITE
// arriving, a READ being answered. The bus sees no more accesses of its function and its memory stays
// as it was, its peers hear of it by their retries, the traffic of another function of the same NIC
// goes on meanwhile, and the slot serves the next client. And once more at random cycles, in commands, in
// their fences, in closing.
#include "rtl_hosts.hpp"

#include <roci_hwif.hpp>

#include <condition_variable>
#include <mutex>
#include <thread>

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
  Client(InprocNic& nic, unsigned count, size_t bytes)
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

TEST_CASE_METHOD(EachChip, "a function that goes away in mid-transfer") {
  namespace csr = hwif::csr;
  Random random;
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

namespace {

/// A NIC as a client sees it that is killed at some cycle: its thread never comes back from there.
/// Everything is handed over between that thread and the test's: never do both run.
class Mortal final : public InprocNic {
 public:
  explicit Mortal(sim::WorldNic& nic) : nic_(nic) {}

  std::recursive_mutex& mutex() override { return own_; }
  std::optional<unsigned> attach(InprocMemory& memory,
                                 std::function<void(unsigned)> interrupt) override {
    function_ = nic_.attach(memory, std::move(interrupt)).value();
    return function_;
  }
  void detach(unsigned) override {}  // the test does it
  uint64_t bar_read(unsigned function, uint32_t offset) override {
    return nic_.bar_read(function, offset);
  }
  void bar_write(unsigned function, uint32_t offset, uint64_t value) override {
    using Control = hwif::csr::AdminControl;
    nic_.bar_write(function, offset, value);
    if (offset == Control::ADDRESS && in_reset_ &&
        Control::from_word(value).get<Control::reset_request>()) {
      left_ = in_reset_;
    }
  }
  void step(uint64_t cycles) override {
    nic_.step(std::min(cycles, left_.value_or(cycles)));
    if (!left_) return;
    *left_ -= std::min(cycles, *left_);
    if (*left_ == 0) die();
  }
  std::optional<Neighbour> resolve(const Gid& gid) override { return nic_.resolve(gid); }

  unsigned function() const { return function_; }
  /// Runs `life` in a thread until it dies: `cycles` from now, or that long after it asks for a reset.
  /// @return what went wrong before; empty: nothing
  std::string live(uint64_t cycles, bool in_reset, std::function<void()> life) {
    if (in_reset) {
      in_reset_ = cycles;
    } else {
      left_ = cycles;
    }
    std::thread([this, life = std::move(life)] {
      try {
        life();
        if (!in_reset_) error_ = "it ended";  // a reset may be over before
      } catch (const std::exception& error) {
        error_ = error.what();
      }
      die();
    }).detach();
    std::unique_lock lock(handover_);
    changed_.wait(lock, [&] { return dead_; });
    return error_;
  }

 private:
  void die() {
    std::unique_lock lock(handover_);
    dead_ = true;
    changed_.notify_all();
    changed_.wait(lock, [] { return false; });
  }

  sim::WorldNic& nic_;
  std::recursive_mutex own_;
  unsigned function_ = 0;
  std::optional<uint64_t> left_, in_reset_;  // cycles
  std::mutex handover_;
  std::condition_variable changed_;
  bool dead_ = false;
  std::string error_;
};

/// What a client does until it is killed. Queue pairs 0 and 1 are connected.
class Life {
 public:
  Life(Client& own, Client& peer, const ibv_ah_attr& path, size_t bytes, Random& random)
      : own_(own), peer_(peer), path_(path), bytes_(bytes), random_(random) {}

  /// Sends, and makes, changes and destroys objects, for ever.
  void operator()() {
    for (;;) {
      send();
      switch (random_.between(0, 3)) {
        case 0: region(); break;
        case 1: queue_pair(); break;
        case 2: again(); break;
        default: own_.host.device->query_port(); break;
      }
    }
  }

 private:
  // What is refused, because the queue is full, is there already.
  void send() {
    ibv_sge sge = own_.memory.sge(0, bytes_);
    const bool read = random_.between(0, 1) != 0;
    ibv_send_wr wr = send_wr(read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge, 1, 0);
    if (random_.between(0, 1) != 0) wr.send_flags |= IBV_SEND_FENCE;
    wr.wr.rdma.remote_addr = peer_.memory.address();
    wr.wr.rdma.rkey = peer_.memory.mr.rkey();
    static_cast<void>(post(*own_.qps[0], wr));
    ibv_wc wc{};
    while (own_.cq.poll(1, &wc) == 1) {
    }
  }
  // Revoked while a WRITE from it is under way.
  void region() {
    Region other(own_.host.pd, bytes_);
    ibv_sge sge = other.sge(0, bytes_);
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, 1);
    wr.wr.rdma.remote_addr = peer_.memory.address() + bytes_;
    wr.wr.rdma.rkey = peer_.memory.mr.rkey();
    static_cast<void>(post(*own_.qps[1], wr));
    other.mr.destroy();
  }
  void queue_pair() {
    Qp qp(own_.host.pd, {&own_.cq, &own_.cq, caps(), IBV_QPT_RC, false, false});
    bring(qp, IBV_QPS_RTS, 0x812345, path_);
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, nullptr, 0, 2);
    static_cast<void>(post(qp, wr));
    if (random_.between(0, 1) != 0) bring_to(qp, IBV_QPS_ERR);
    qp.destroy();
  }
  static void bring_to(Qp& qp, ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    qp.modify(attr, IBV_QP_STATE);
  }
  void again() {
    own_.memory.mr.reregister(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, ALL_ACCESS);
  }

  Client& own_;
  Client& peer_;
  const ibv_ah_attr path_;
  const size_t bytes_;
  Random& random_;
};

}  // namespace

TEST_CASE_METHOD(EachChip, "a client that is killed at any cycle", "[random]") {
  namespace csr = hwif::csr;
  constexpr unsigned kRounds = 10;
  constexpr uint64_t kLife = 30'000, kReset = 8'000;  // cycles that it has at most
  const size_t bytes = chip == sim::ChipConfig::wide ? 64 << 10 : 8 << 10;
  Random random;
  sim::World world(rtl_world(chip));
  sim::WorldNic& nic = world.nic(0);
  const ibv_ah_attr to_near = path_to(nic), to_far = path_to(world.nic(1));
  Client left(nic, 1, 4 * kSmall), right(world.nic(1), 1, 4 * kSmall);
  connect(*left.qps[0], right.qps[0]->number(), to_far);
  connect(*right.qps[0], left.qps[0]->number(), to_near);
  Client peer(world.nic(1), 2, 4 * bytes);

  // What the bus sees of the function after its reset was acknowledged.
  std::optional<unsigned> acknowledged;
  std::vector<std::string> late;
  nic.nic().memory().set_observer([&](const sim::MemoryAccess& access) {
    if (access.function == acknowledged) {
      late.push_back((access.write ? "write at " : "read at ") + std::to_string(access.cycle));
    }
  });
  unsigned in_resets = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    // Neither is ever destroyed: the thread that has them stops where it is.
    auto& mortal = *new Mortal(nic);
    auto& dying = *new Client(mortal, 2, 4 * bytes);
    const auto state = [&] {
      return csr::AdminStatus::from_word(
                 nic.bar_read(mortal.function(), csr::AdminStatus::ADDRESS))
          .get<csr::AdminStatus::state>();
    };
    REQUIRE(mortal.function() == 2);  // the same each time
    for (unsigned n = 0; n < 2; ++n) {
      peer.qps[n]->modify(impatient(IBV_QPS_RESET, 0, to_near), IBV_QP_STATE);
      bring(*dying.qps[n], IBV_QPS_RTS, peer.qps[n]->number(), to_far);
      bring(*peer.qps[n], IBV_QPS_RTS, dying.qps[n]->number(), to_near);
    }
    for (unsigned n = 0; n < 12; ++n) {
      const bool read = n % 3 == 2;
      const size_t at = (read ? 2 : 3) * bytes;
      ibv_sge sge = peer.memory.sge(at, bytes);
      ibv_send_wr wr = send_wr(read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge, 1, n, 0);
      wr.wr.rdma.remote_addr = dying.memory.address() + at;
      wr.wr.rdma.rkey = dying.memory.mr.rkey();
      REQUIRE(post(*peer.qps[1], wr) == 0);
    }

    const bool in_reset = round % 4 == 3;
    const bool lingers = random.between(0, 1) != 0;  // its memory goes after the reset
    // one of them is sure to meet a running reset
    const uint64_t cycles = random.between(1, !in_reset ? kLife : round == 3 ? 200 : kReset);
    INFO("round " << round << ": killed after " << cycles << " cycles"
                  << (in_reset ? " of closing" : "") << (lingers ? ", memory lingers" : ""));
    const std::string error = mortal.live(cycles, in_reset, [&] {
      if (in_reset) {
        delete &dying;
      } else {
        Life(dying, peer, to_far, bytes, random)();
      }
    });
    REQUIRE(error == "");
    in_resets += state() == hwif::AdminState::RESETTING;

    const uint64_t gone = world.cycle();
    if (lingers) {
      csr::AdminControl control{};
      control.set<csr::AdminControl::reset_request>(true);
      nic.bar_write(mortal.function(), csr::AdminControl::ADDRESS, control.to_word());
    } else {
      nic.detach(mortal.function());
    }
    do {
      write_and_check(left, right, random);
      REQUIRE(world.cycle() - gone < 200'000);
    } while (state() != hwif::AdminState::DISABLED);
    acknowledged = mortal.function();
    write_and_check(left, right, random);
    if (lingers) nic.detach(mortal.function());
    while (state() != hwif::AdminState::DISABLED) write_and_check(left, right, random);
    acknowledged.reset();
    REQUIRE(late == std::vector<std::string>{});

    // The peer's requests may wait for it no longer than their retries.
    ibv_wc wc{};
    while (peer.cq.poll(1, &wc) == 1) {
    }
  }
  CHECK(in_resets >= 1);
  nic.nic().memory().set_observer({});
  // The function serves a client that lives.
  Client next(nic, 1, 4 * kSmall), far(world.nic(1), 1, 4 * kSmall);
  connect(*next.qps[0], far.qps[0]->number(), to_far);
  connect(*far.qps[0], next.qps[0]->number(), to_near);
  write_and_check(next, far, random);
  write_and_check(far, next, random);
}
