// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Bus errors on every kind of access of the NIC to host memory: the queue pair concerned fails with a
// status or an event that names the cause, the peer hears of it, nothing hangs, other queue pairs of
// the same NICs go on, and what failed can be destroyed.
#include "rtl_hosts.hpp"

#include <optional>

using namespace roci;
using namespace roci::test;
using hwif::EqeType;
using hwif::VendorStatus;

namespace {

constexpr uint64_t kEverywhere = ~uint64_t{0};
constexpr size_t kPages = 16;       // shuffled: they are never in order

// Two NICs with a bystander pair of queue pairs, and in each case a fresh pair that suffers.
struct Bench {
  explicit Bench(sim::ChipConfig chip)
      : hosts(rtl_world(chip)), quiet(hosts), from(hosts.a.pd, 8192), to(hosts.b.pd, 8192),
        quiet_from(hosts.a.pd, 8192), quiet_to(hosts.b.pd, 8192) {}

  sim::WorldNic& nic(unsigned n) { return hosts.world.nic(n); }
  sim::HostMemory& memory(unsigned n) { return nic(n).nic().memory(); }

  // The others: a WRITE and a SEND with fresh data go through.
  void bystander() {
    ++round;
    std::memset(quiet_from.buffer.data(), static_cast<int>(round), 3000);
    ibv_sge r = quiet_to.sge(4096, 3000);
    REQUIRE(post_recv(quiet.b.qp, &r, 1, round) == 0);
    REQUIRE(quiet.a.write(quiet_from.sge(0, 3000), quiet_to, 0, 1) == 0);
    REQUIRE(quiet.a.send(IBV_WR_SEND, quiet_from.sge(0, 3000), 2) == 0);
    for (int n = 0; n < 2; ++n) REQUIRE(wait_wc(quiet.a.cq).status == IBV_WC_SUCCESS);
    REQUIRE(wait_wc(quiet.b.cq).status == IBV_WC_SUCCESS);
    for (const size_t at : {0u, 2999u, 4096u, 7095u}) {
      REQUIRE(quiet_to.buffer[at] == static_cast<uint8_t>(round));
    }
  }

  // The next event of a host, or none after a while.
  std::optional<AsyncEvent> event(Host& host) {
    for (int n = 0; n < 200; ++n) {
      host.device->poll_events();
      if (readable(host.context.async_fd())) return host.context.get_async_event();
      hosts.world.run(500);
    }
    return std::nullopt;
  }

  RtlHosts hosts;
  Connection quiet;
  Region from, to, quiet_from, quiet_to;
  unsigned round = 0;
};

void check_wc(const ibv_wc& wc, uint64_t id, ibv_wc_status status, VendorStatus vendor) {
  CHECK(wc.wr_id == id);
  CHECK(wc.status == status);
  CHECK(wc.vendor_err == static_cast<uint32_t>(vendor));
}

void check_event(const std::optional<AsyncEvent>& event, EqeType type, const Qp* qp) {
  REQUIRE(event);
  CHECK(static_cast<unsigned>(event->type) == static_cast<unsigned>(type));
  CHECK(event->qp == qp);
}

// Address of the first read burst of a NIC while `act` runs.
template <class Act>
uint64_t first_read(Bench& bench, unsigned nic, Act act) {
  std::optional<uint64_t> addr;
  bench.memory(nic).set_observer([&](const sim::MemoryAccess& access) {
    if (!access.write && !addr) addr = access.addr;
  });
  act();
  bench.memory(nic).set_observer({});
  REQUIRE(addr);
  return *addr;
}


// Payload: reads of the requester, writes of the responder.
void payload(Bench& bench) {
  ibv_sge s = bench.from.sge(0, 5000);
  {
    INFO("WRITE, payload cannot be read");
    Connection v(bench.hosts);
    bench.memory(0).add_error_range(bench.from.buffer.address() + 2048, 1024, true, false);
    REQUIRE(v.a.write(s, bench.to, 0, 1) == 0);
    REQUIRE(v.a.write(s, bench.to, 0, 2) == 0);
    bench.bystander();
    check_wc(wait_wc(v.a.cq), 1, IBV_WC_LOC_QP_OP_ERR, VendorStatus::PAYLOAD_READ_BUS);
    check_wc(wait_wc(v.a.cq), 2, IBV_WC_WR_FLUSH_ERR, VendorStatus::FLUSH);
    bench.memory(0).clear_error_ranges();
  }
  {
    INFO("WRITE, payload cannot be written");
    Connection v(bench.hosts);
    bench.memory(1).add_error_range(bench.to.buffer.address() + 2048, 64, false, true);
    REQUIRE(v.a.write(s, bench.to, 0, 1) == 0);
    bench.bystander();
    check_wc(wait_wc(v.a.cq), 1, IBV_WC_REM_OP_ERR, VendorStatus::NAK_REMOTE_OPERATIONAL);
    check_event(bench.event(bench.hosts.b), EqeType::QP_FATAL, &v.b.qp);
    bench.memory(1).clear_error_ranges();
  }
  {
    INFO("SEND, payload cannot be written");
    Connection v(bench.hosts);
    ibv_sge r = bench.to.sge(0, 8192);
    REQUIRE(post_recv(v.b.qp, &r, 1, 7) == 0);
    REQUIRE(post_recv(v.b.qp, &r, 1, 8) == 0);
    bench.memory(1).add_error_range(bench.to.buffer.address() + 4096, 64, false, true);
    REQUIRE(v.a.send(IBV_WR_SEND, s, 1) == 0);
    bench.bystander();
    check_wc(wait_wc(v.a.cq), 1, IBV_WC_REM_OP_ERR, VendorStatus::NAK_REMOTE_OPERATIONAL);
    check_wc(wait_wc(v.b.cq), 7, IBV_WC_LOC_QP_OP_ERR, VendorStatus::PAYLOAD_WRITE_BUS);
    check_wc(wait_wc(v.b.cq), 8, IBV_WC_WR_FLUSH_ERR, VendorStatus::FLUSH);
    check_event(bench.event(bench.hosts.b), EqeType::QP_FATAL, &v.b.qp);
    bench.memory(1).clear_error_ranges();
  }
  {
    INFO("WRITE with immediate, payload cannot be written");
    Connection v(bench.hosts);
    ibv_sge r = bench.quiet_to.sge(0, 1);
    REQUIRE(post_recv(v.b.qp, &r, 1, 7) == 0);
    bench.memory(1).add_error_range(bench.to.buffer.address() + 4096, 64, false, true);
    REQUIRE(v.a.rdma(IBV_WR_RDMA_WRITE_WITH_IMM, s, bench.to, 0, 1) == 0);
    bench.bystander();
    check_wc(wait_wc(v.a.cq), 1, IBV_WC_REM_OP_ERR, VendorStatus::NAK_REMOTE_OPERATIONAL);
    check_wc(wait_wc(v.b.cq), 7, IBV_WC_LOC_QP_OP_ERR, VendorStatus::PAYLOAD_WRITE_BUS);
    check_event(bench.event(bench.hosts.b), EqeType::QP_FATAL, &v.b.qp);
    bench.memory(1).clear_error_ranges();
  }
  bench.bystander();
}

// Payload: READ at both ends.
void read_payload(Bench& bench) {
  ibv_sge s = bench.from.sge(0, 5000);
  {
    INFO("the responder cannot read");
    Connection v(bench.hosts);
    bench.memory(1).add_error_range(bench.to.buffer.address() + 2048, 64, true, false);
    REQUIRE(v.a.read(s, bench.to, 0, 1) == 0);
    bench.bystander();
    check_wc(wait_wc(v.a.cq), 1, IBV_WC_REM_OP_ERR, VendorStatus::NAK_REMOTE_OPERATIONAL);
    check_event(bench.event(bench.hosts.b), EqeType::QP_FATAL, &v.b.qp);
    bench.memory(1).clear_error_ranges();
  }
  {
    INFO("the requester cannot write");
    Connection v(bench.hosts);
    bench.memory(0).add_error_range(bench.from.buffer.address() + 2048, 64, false, true);
    REQUIRE(v.a.read(s, bench.to, 0, 1) == 0);
    REQUIRE(v.a.write(s, bench.to, 0, 2) == 0);
    bench.bystander();
    check_wc(wait_wc(v.a.cq), 1, IBV_WC_LOC_QP_OP_ERR, VendorStatus::PAYLOAD_WRITE_BUS);
    check_wc(wait_wc(v.a.cq), 2, IBV_WC_WR_FLUSH_ERR, VendorStatus::FLUSH);
    bench.memory(0).clear_error_ranges();
  }
  bench.bystander();
}

// Rings: send queue, receive queue, completion queue.
void rings(Bench& bench) {
  ibv_sge s = bench.from.sge(0, 64);
  {
    INFO("the send queue cannot be read");
    Connection v(bench.hosts);
    const uint64_t ring = first_read(bench, 0, [&] {
      REQUIRE(v.a.write(s, bench.to, 0, 1) == 0);
      REQUIRE(wait_wc(v.a.cq).status == IBV_WC_SUCCESS);
    });
    bench.memory(0).add_error_range(ring & ~uint64_t{4095}, 4096, true, false);
    REQUIRE(v.a.write(s, bench.to, 0, 1) == 0);
    check_event(bench.event(bench.hosts.a), EqeType::QP_FATAL, &v.a.qp);
    bench.bystander();
    no_wc(v.a.cq);                                // nobody can say what was posted
    bench.memory(0).clear_error_ranges();
  }
  {
    INFO("the receive queue cannot be read");
    Connection v(bench.hosts);
    ibv_sge r = bench.to.sge(0, 64);
    const uint64_t ring = first_read(bench, 1, [&] {
      REQUIRE(post_recv(v.b.qp, &r, 1, 7) == 0);
      bench.hosts.world.run(3000);
    });
    bench.memory(1).add_error_range(ring & ~uint64_t{4095}, 4096, true, false);
    REQUIRE(post_recv(v.b.qp, &r, 1, 8) == 0);
    REQUIRE(v.a.send(IBV_WR_SEND, s, 1) == 0);
    REQUIRE(wait_wc(v.a.cq).status == IBV_WC_SUCCESS);   // into the one that was fetched before
    check_wc(wait_wc(v.b.cq), 7, IBV_WC_SUCCESS, VendorStatus::NONE);
    REQUIRE(v.a.send(IBV_WR_SEND, s, 1) == 0);
    check_wc(wait_wc(v.a.cq), 1, IBV_WC_REM_OP_ERR, VendorStatus::NAK_REMOTE_OPERATIONAL);
    check_event(bench.event(bench.hosts.b), EqeType::QP_FATAL, &v.b.qp);
    bench.bystander();
    bench.memory(1).clear_error_ranges();
  }
  {
    INFO("a completion cannot be written");
    Connection v(bench.hosts);
    std::optional<uint64_t> cqe;
    bench.memory(0).set_observer([&](const sim::MemoryAccess& access) {
      if (access.write) cqe = access.addr;
    });
    REQUIRE(v.a.write(s, bench.to, 0, 1) == 0);
    REQUIRE(wait_wc(v.a.cq).status == IBV_WC_SUCCESS);
    bench.memory(0).set_observer({});
    REQUIRE(cqe);
    bench.memory(0).add_error_range(*cqe & ~uint64_t{4095}, 4096, false, true);
    REQUIRE(v.a.write(s, bench.to, 0, 1) == 0);
    bool cq_error = false, qp_fatal = false;
    for (int n = 0; n < 2; ++n) {
      const auto event = bench.event(bench.hosts.a);
      REQUIRE(event);
      cq_error |= event->type == EqeType::CQ_ERROR && event->cq == &v.a.cq;
      qp_fatal |= event->type == EqeType::QP_FATAL && event->qp == &v.a.qp;
    }
    CHECK(cq_error);
    CHECK(qp_fatal);
    bench.bystander();
    no_wc(v.a.cq);
    bench.memory(0).clear_error_ranges();
  }
  bench.bystander();
}

// Page tables, at both ends. Regions of hosts with scattered addresses have them; the others' are one
// contiguous piece.
void page_tables(Bench& bench) {
  DeviceOptions options;
  options.dma = DmaPolicy::SCATTER;
  Host a(make_inproc_transport(bench.nic(0)), options);
  Host b(make_inproc_transport(bench.nic(1)), options);
  Region from(a.pd, 8192);
  Region to(b.pd, 8192);
  {
    INFO("the requester's");
    Connection v(a, bench.nic(0), b, bench.nic(1));
    Region fresh(a.pd, kPages * 4096);
    const uint64_t ring = first_read(bench, 0, [&] {
      REQUIRE(v.a.write(from.sge(0, 64), to, 0, 1) == 0);
      REQUIRE(wait_wc(v.a.cq).status == IBV_WC_SUCCESS);
    }) & ~uint64_t{511};
    // all but the ring's first blocks: the table is the first of it that is read
    bench.memory(0).add_error_range(0, ring, true, false);
    bench.memory(0).add_error_range(ring + 512, kEverywhere - ring - 512, true, false);
    ibv_sge s = fresh.sge(100, 5000);
    REQUIRE(v.a.write(s, to, 0, 2) == 0);
    check_wc(wait_wc(v.a.cq), 2, IBV_WC_LOC_QP_OP_ERR, VendorStatus::TABLE_BUS);
    bench.memory(0).clear_error_ranges();
    bench.bystander();
  }
  {
    INFO("the responder's, WRITE");
    Connection v(a, bench.nic(0), b, bench.nic(1));
    Region fresh(b.pd, kPages * 4096);
    bench.memory(1).add_error_range(0, kEverywhere, true, false);
    ibv_sge s = from.sge(0, 5000);
    REQUIRE(v.a.write(s, fresh, 0, 3) == 0);
    check_wc(wait_wc(v.a.cq), 3, IBV_WC_REM_OP_ERR, VendorStatus::NAK_REMOTE_OPERATIONAL);
    bench.memory(1).clear_error_ranges();
    check_event(bench.event(b), EqeType::QP_FATAL, &v.b.qp);
    bench.bystander();
  }
  {
    INFO("the responder's, SEND");
    Connection v(a, bench.nic(0), b, bench.nic(1));
    Region fresh(b.pd, kPages * 4096);
    ibv_sge r = fresh.sge(10, 9000);
    REQUIRE(post_recv(v.b.qp, &r, 1, 7) == 0);
    bench.hosts.world.run(3000);
    bench.memory(1).add_error_range(0, kEverywhere, true, false);
    ibv_sge s = from.sge(0, 5000);
    REQUIRE(v.a.send(IBV_WR_SEND, s, 4) == 0);
    check_wc(wait_wc(v.a.cq), 4, IBV_WC_REM_OP_ERR, VendorStatus::NAK_REMOTE_OPERATIONAL);
    bench.memory(1).clear_error_ranges();
    check_wc(wait_wc(v.b.cq), 7, IBV_WC_LOC_QP_OP_ERR, VendorStatus::TABLE_BUS);
    bench.bystander();
  }
  bench.bystander();
}

// Address of the first write of a NIC while `act` runs for which `fits`.
template <class Act, class Fits>
uint64_t first_write(Bench& bench, unsigned nic, Act act, Fits fits) {
  std::optional<uint64_t> addr;
  bench.memory(nic).set_observer([&](const sim::MemoryAccess& access) {
    if (access.write && !addr && fits(access)) addr = access.addr;
  });
  act();
  bench.memory(nic).set_observer({});
  REQUIRE(addr);
  return *addr;
}

// Events: one that cannot be written wakes who waits all the same, and the next ones come.
void events(Bench& bench) {
  Host host(make_inproc_transport(bench.nic(0)));
  CompChannel channel(host.context);
  Cq cq(host.context, {64, &channel, false});
  Qp qp(host.pd, {&cq, &cq, caps(), IBV_QPT_RC, false, false});
  connect(qp, qp.number(), path_to(bench.nic(0)));
  const auto told = [&] { return readable(channel.fd()); };
  const auto complete = [&] {
    cq.arm(false);
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, nullptr, 0, 1);
    REQUIRE(post(qp, wr) == 0);
    for (unsigned n = 0; n < 300 && !told(); ++n) {
      host.device->wait_events(std::chrono::milliseconds(1));
    }
    REQUIRE(told());
    REQUIRE(channel.get() == &cq);
    REQUIRE(wait_wc(cq).status == IBV_WC_SUCCESS);
  };
  const uint64_t ring = first_write(bench, 0, complete, [](const sim::MemoryAccess& access) {
                          return access.data.size() == hwif::Eqe::BYTES;
                        }) & ~uint64_t{4095};
  const auto errors = static_cast<unsigned>(hwif::Counter::DMA_WRITE_ERROR);
  for (unsigned round = 0; round < 3; ++round) {
    INFO("round " << round);
    const uint64_t before = host.device->query_counters(errors, 1).at(0);
    bench.memory(0).add_error_range(ring, 4096, false, true);
    complete();
    bench.bystander();
    bench.memory(0).clear_error_ranges();
    CHECK(host.device->query_counters(errors, 1).at(0) == before + 1);
    complete();
  }
  CHECK_FALSE(told());
}

// The admin queue. A command or a completion that the bus does not carry: the call fails and says
// why, the function is lost; a reset brings it back, as closing and opening the device does. A buffer
// of a command: only the command fails.
void admin_queue(Bench& bench) {
  for (const bool write : {false, true}) {
    INFO((write ? "completion" : "command"));
    Host host(make_inproc_transport(bench.nic(0)));
    const auto act = [&] { Pd pd(host.context); };
    const uint64_t ring =
        write ? first_write(bench, 0, act, [](const sim::MemoryAccess&) { return true; })
              : first_read(bench, 0, act);
    bench.memory(0).add_error_range(ring & ~uint64_t{4095}, 4096, !write, write);
    std::string text;
    CHECK(error_of([&] { Pd pd(host.context); }, &text) == EIO);
    CHECK(text.find(write ? "WRITE_BUS" : "READ_BUS") != std::string::npos);
    bench.bystander();
    bench.memory(0).clear_error_ranges();
  }
  {
    INFO("buffers");
    Host host(make_inproc_transport(bench.nic(0)));
    Cq cq(host.context, {16, nullptr, false});
    Qp qp(host.pd, {&cq, &cq, caps(), IBV_QPT_RC, false, false});
    // the last read of a command with an input is that input's, the first write of one with an
    // output that output's
    const unsigned function = host.device->limits().function_number;
    uint64_t input = 0;
    bench.memory(0).set_observer([&](const sim::MemoryAccess& access) {
      if (!access.write && access.function == function) input = access.addr;
    });
    ibv_qp_attr attr = attributes(IBV_QPS_INIT, 0, path_to(bench.nic(1)));
    qp.modify(attr, TO_INIT);
    bench.memory(0).set_observer({});
    REQUIRE(input != 0);
    const uint64_t output =
        first_write(bench, 0, [&] { (void)host.device->query_counters(0, 4); },
                    [](const sim::MemoryAccess&) { return true; });
    std::string text;
    bench.memory(0).add_error_range(input & ~uint64_t{511}, 512, true, false);
    CHECK(error_of([&] { qp.modify(attr, TO_INIT); }, &text) == EFAULT);
    CHECK(text.find("INPUT_ADDRESS") != std::string::npos);
    bench.bystander();
    bench.memory(0).clear_error_ranges();
    bench.memory(0).add_error_range(output, 8, false, true);
    CHECK(error_of([&] { (void)host.device->query_counters(0, 4); }, &text) == EFAULT);
    CHECK(text.find("OUTPUT_ADDRESS") != std::string::npos);
    bench.bystander();
    bench.memory(0).clear_error_ranges();
    // neither left a trace
    CHECK(host.device->query_counters(0, 4).size() == 4);
    qp.modify(attr, TO_INIT);
  }
  bench.bystander();
}

void all_of_them(sim::ChipConfig chip) {
  Bench bench(chip);
  payload(bench);
  read_payload(bench);
  rings(bench);
  page_tables(bench);
  events(bench);
  admin_queue(bench);
}

}  // namespace

// bus errors fail the queue pair that has them, and nothing else
TEST_CASE("bus errors, wide", "[wide]") { all_of_them(sim::ChipConfig::wide); }
TEST_CASE("bus errors, narrow", "[narrow]") { all_of_them(sim::ChipConfig::narrow); }
