// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Counters of what happens seldom: each is provoked, told by exactly the counter that is for it, and
// everything works afterwards.
#include "../../host/core/admin_queue.hpp"
#include "tester.hpp"

using namespace roci;
using namespace roci::test;
using hwif::Counter;
namespace op = roci::wirecodec::op;

namespace {

// BTH opcodes of responses
constexpr uint8_t kReadOnly = 0x10;

// A world of its own for slow memories; port 2 is the tester's.
sim::WorldConfig tester_world(sim::ChipConfig chip) {
  sim::WorldConfig config = rtl_world(chip);
  config.fabric.ports = 3;
  return config;
}

// Everything works: a WRITE and a READ of a fresh connection.
void works(RtlHosts& hosts) {
  Random random;
  Connection link(hosts);
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 4096);
  randomize(from.buffer, random);
  REQUIRE(link.a.write(from.sge(0, 2000), to, 0, 1) == 0);
  REQUIRE(link.a.read(from.sge(2001, 1000), to, 1, 2, IBV_SEND_SIGNALED | IBV_SEND_FENCE) == 0);
  expect_wc(link.a.cq, 1);
  expect_wc(link.a.cq, 2);
  CHECK(std::memcmp(from.buffer.data(), to.buffer.data(), 2000) == 0);
  CHECK(std::memcmp(from.buffer.data() + 2001, to.buffer.data() + 1, 1000) == 0);
}

}  // namespace

TEST_CASE_METHOD(CountedNics, "a frame with a bad FCS: RX_DROP_FCS, and it is sent again") {
  Connection link(hosts);
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 4096);
  std::memset(from.buffer.data(), 0x31, 4096);
  hosts.world.fabric().add_rule(sim::Rule().to_port(1).psn(link.wish.a_psn).corrupt_fcs());
  for (uint64_t n = 0; n < 2; ++n) {
    REQUIRE(link.a.write(from.sge(0, 500), to, 500 * n, n) == 0);
  }
  for (uint64_t n = 0; n < 2; ++n) expect_wc(link.a.cq, n);
  CHECK(std::memcmp(from.buffer.data(), to.buffer.data(), 1000) == 0);
  CHECK(counts(1, Counter::RX_DROP_FCS) == 1);
  CHECK(counts(1, Counter::RX_DROP_ICRC) == 0);
  CHECK(counts(1, Counter::RX_FRAMES) == 3);
  CHECK(counts(1, Counter::RX_DROP_OUT_OF_SEQUENCE) == 1);
  CHECK(counts(0, Counter::RETRY_NAK_SEQUENCE) == 1);
  CHECK(counts(0, Counter::RETRY_PACKETS) == 2);
}

TEST_CASE_METHOD(CountedNics, "a queue pair in INIT does not receive: RX_DROP_STATE") {
  Wish wish;
  wish.timeout = 3;
  wish.retry_cnt = 2;
  Connection link(hosts, wish);
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 4096);
  link.b.reset();
  link.b.qp.modify(attributes(IBV_QPS_INIT, link.a.qp.number(), path_to(link.a.nic)), TO_INIT);
  REQUIRE(link.a.write(from.sge(0, 100), to, 0, 1) == 0);
  expect_wc(link.a.cq, 1, IBV_WC_RETRY_EXC_ERR);
  CHECK(counts(1, Counter::RX_DROP_STATE) == 3);
  CHECK(counts(1, Counter::RX_DROP_DEST_QP) == 0);
  CHECK(counts(1, Counter::TX_FRAMES) == 0);
}

TEST_CASE_METHOD(CountedNics,
                 "a READ that is a duplicate of nothing kept: RX_DROP_DUPLICATE_UNKNOWN") {
  Connection link(hosts);
  Region to(hosts.a.pd, 4096);
  Tester tester(hosts.world, link);
  tester.send(op::write_only, 0, 64, to);
  tester.send(op::read_request, 1, 100, to);
  hosts.world.run(5000);
  CHECK(counts(0, Counter::REQUESTS_WRITE) == 1);
  CHECK(counts(0, Counter::REQUESTS_READ) == 1);
  CHECK(wire.psns(0, kReadOnly) == std::vector<uint32_t>{link.wish.b_psn + 1});
  // PSN 0 was a WRITE; PSN 1 had 100 bytes; what is before PSN 0 nobody knows
  for (const auto& [ahead, bytes] : {std::pair{0u, 100u}, {1u, 101u}, {0xffffffu, 100u}}) {
    tester.send(op::read_request, ahead, bytes, to);
    hosts.world.run(2000);                           // one at a time is looked for
  }
  CHECK(counts(0, Counter::RX_DROP_DUPLICATE_UNKNOWN) == 3);
  CHECK(wire.psns(0, kReadOnly).size() == 1);
  // the one that is kept is answered
  tester.send(op::read_request, 1, 100, to);
  hosts.world.run(5000);
  CHECK(counts(0, Counter::RX_DROP_DUPLICATE_UNKNOWN) == 3);
  CHECK(wire.psns(0, kReadOnly).size() == 2);
  CHECK(counts(0, Counter::REQUESTS_READ) == 1);
}

TEST_CASE_METHOD(EachChip,
                 "receives that are posted but not fetched: RX waits, then drops as lost") {
  sim::WorldConfig config = tester_world(chip);
  config.memory.read_latency = 6000;  // of the fetch of the receives
  RtlHosts hosts(config);
  WireLog wire(hosts.world);
  Connection link(hosts, {.cap = caps(128, 1)});
  Region to(hosts.a.pd, 4096);
  hosts.world.run(20000);
  constexpr unsigned kFrames = 100;  // 64 KB and more: beyond half of the packet buffer
  const Counts counts(hosts);
  ibv_sge sge = to.sge(0, 1024);
  for (unsigned n = 0; n < kFrames; ++n) REQUIRE(post_recv(link.a.qp, &sge, 1, n) == 0);
  hosts.world.run(100);
  Tester tester(hosts.world, link);
  for (unsigned n = 0; n < kFrames; ++n) tester.send(op::send_only, n, 1024);
  hosts.world.run(30000);
  CHECK(counts(0, Counter::RX_FRAMES) == kFrames);
  CHECK(counts(0, Counter::REQUESTS_SEND) == 0);
  CHECK(counts(0, Counter::RX_DROP_RECEIVE_LATE) > 0);
  // one is lost, so all behind it are out of sequence; none for another reason
  CHECK(counts(0, Counter::RX_DROP_RECEIVE_LATE) + counts(0, Counter::RX_DROP_OUT_OF_SEQUENCE) +
            counts(0, Counter::RX_DROP_OVERFLOW) == kFrames);
  const uint64_t waited = counts(0, Counter::RX_WAIT_RECEIVE_CYCLES);
  CHECK(waited > 0);
  CHECK(waited < config.memory.read_latency);
  CHECK(wire.acknowledges(0, 0x60) == 1);
  CHECK(counts(0, Counter::TX_NAK_RNR) == 0);
  // now they are there
  for (unsigned n = 0; n < 5; ++n) tester.send(op::send_only, n, 1024);
  for (uint64_t n = 0; n < 5; ++n) CHECK(expect_wc(link.a.cq, n).byte_len == 1024);
  no_wc(link.a.cq);
  CHECK(counts(0, Counter::REQUESTS_SEND) == 5);
}

TEST_CASE_METHOD(EachChip,
                 "packets faster than memory: RX_DROP_OVERFLOW, everything arrives in the end") {
  sim::WorldConfig config = tester_world(chip);
  config.memory.stall_w = 0.97;
  RtlHosts hosts(config);
  WireLog wire(hosts.world);
  Connection link(hosts);
  Region to(hosts.a.pd, 4096);
  const Counts counts(hosts);
  Tester tester(hosts.world, link);
  constexpr unsigned kFrames = 120;
  for (unsigned n = 0; n < kFrames; ++n) {
    tester.send(op::write_only, n, 1024, to);
  }
  hosts.world.run(chip == sim::ChipConfig::wide ? 150000 : 600000);
  const uint64_t written = counts(0, Counter::REQUESTS_WRITE);
  const uint64_t overflow = counts(0, Counter::RX_DROP_OVERFLOW);
  CHECK(overflow > 0);
  CHECK(written > 0);
  CHECK(counts(0, Counter::RX_ROCE_PACKETS) + overflow == kFrames);
  CHECK(written + counts(0, Counter::RX_DROP_OUT_OF_SEQUENCE) + overflow == kFrames);
  // the last of them comes again, in order
  for (unsigned n = static_cast<unsigned>(written); n < written + 3; ++n) {
    tester.send(op::write_only, n, 1024, to);
  }
  hosts.world.run(60000);
  CHECK(counts(0, Counter::REQUESTS_WRITE) == written + 3);
  CHECK(counts(0, Counter::RX_DROP_OVERFLOW) == overflow);
  CHECK(wire.psns(0, 0x11).back() == ((link.wish.b_psn + written + 2) & 0xffffff));
}

TEST_CASE_METHOD(CountedNics, "a receive with a bad key: NAK 0x63 at both ends") {
  Connection link(hosts);
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 4096);
  ibv_sge sge = to.sge(0, 1000);
  sge.lkey ^= 1;
  REQUIRE(post_recv(link.b.qp, &sge, 1, 5) == 0);
  REQUIRE(link.a.send(IBV_WR_SEND, from.sge(0, 100), 1) == 0);
  expect_wc(link.a.cq, 1, IBV_WC_REM_OP_ERR);
  expect_wc(link.b.cq, 5, IBV_WC_LOC_PROT_ERR);
  CHECK(wire.acknowledges(1, 0x63) == 1);
  CHECK(counts(1, Counter::TX_NAK_REMOTE_OPERATIONAL) == 1);
  CHECK(counts(0, Counter::RX_NAK_REMOTE_OPERATIONAL) == 1);
  CHECK(counts(1, Counter::KEY_ERRORS) == 1);
  CHECK(counts(0, Counter::KEY_ERRORS) == 0);
  CHECK(counts(0, Counter::QP_ERRORS) == 1);
  CHECK(counts(1, Counter::QP_ERRORS) == 1);
  CHECK(counts(1, Counter::CQE_ERROR) == 1);
}

TEST_CASE_METHOD(CountedNics,
                 "doorbells with an index that does not exist, registers that do not exist") {
  Connection link(hosts);
  const auto ring = [&](hwif::DoorbellKind kind, uint32_t object, uint32_t index) {
    hwif::Doorbell doorbell{};
    doorbell.set<hwif::Doorbell::kind>(kind);
    doorbell.set<hwif::Doorbell::object>(object);
    doorbell.set<hwif::Doorbell::index>(index);
    hosts.a.device->transport().ring(0, doorbell.to_word());
  };
  ring(hwif::DoorbellKind::SQ, link.a.qp.number(), 0x10000);
  ring(hwif::DoorbellKind::RQ, link.a.qp.number(), 0x800000);
  CHECK(counts(0, Counter::DOORBELL_ERROR_INDEX) == 2);
  CHECK(counts(0, Counter::DOORBELL_ERROR_OBJECT) == 0);
  CHECK(counts(0, Counter::DOORBELL_ERROR_PAGE) == 0);
  CHECK(counts(0, Counter::DOORBELL_ERROR_KIND) == 0);
  CHECK(counts(0, Counter::BAR_ACCESS_ERROR) == 0);
  // behind the last identity register; doorbells read as zero
  auto& transport = hosts.a.device->transport();
  transport.bar_read(0x70);
  CHECK(counts(0, Counter::BAR_ACCESS_ERROR) == 1);
  transport.bar_write(0x0, 1);  // read only
  transport.bar_write(0xff8, 1);
  CHECK(counts(0, Counter::BAR_ACCESS_ERROR) == 3);
  // function 0's registers are not of this function
  transport.bar_read(hwif::csr::ManagementCounter::ADDRESS);
  CHECK(counts(0, Counter::BAR_ACCESS_ERROR) == 4);
  // the queue pair does not know of it
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 4096);
  REQUIRE(link.a.write(from.sge(0, 100), to, 0, 1) == 0);
  expect_wc(link.a.cq, 1);
}

TEST_CASE_METHOD(CountedNics,
                 "a completion queue without room: CQ_OVERFLOW, its queue pair fails, others go on") {
  Wish wish;
  wish.cap = caps(64, 1);
  wish.entries = 8;
  Connection link(hosts, wish);
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 4096);
  // the ring has twice as many entries as it promises
  const unsigned room = 2 * link.a.cq.entries();
  REQUIRE(room < 64);
  for (unsigned n = 0; n < room; ++n) {
    REQUIRE(link.a.write(from.sge(0, 10), to, 0, n) == 0);
  }
  hosts.world.run(20000);
  CHECK(counts(0, Counter::CQE) == room);
  CHECK(counts(0, Counter::CQ_OVERFLOW) == 0);
  REQUIRE(link.a.write(from.sge(0, 10), to, 0, room) == 0);
  hosts.world.run(20000);
  CHECK(counts(0, Counter::CQ_OVERFLOW) == 1);
  CHECK(counts(0, Counter::CQE) == room);
  CHECK(counts(1, Counter::REQUESTS_WRITE) == room + 1);
  hosts.a.device->poll_events();
  // of the queue pair and of the CQ
  unsigned of_cq = 0;
  while (readable(hosts.a.context.async_fd())) {
    const auto event = hosts.a.context.get_async_event();
    REQUIRE(event);
    if (event->type == hwif::EqeType::CQ_ERROR && event->cq == &link.a.cq) ++of_cq;
  }
  CHECK(of_cq == 1);
  // what was written before stays readable
  for (unsigned n = 0; n < room; ++n) expect_wc(link.a.cq, n);
  works(hosts);
}

TEST_CASE_METHOD(EachChip, "an event queue without room: EQ_OVERRUN once, then events again") {
  RtlHosts hosts(rtl_world(chip));
  CompChannel channel(hosts.a.context);
  Connection link(hosts, {}, &channel);
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 4096);
  REQUIRE(link.a.write(from.sge(0, 10), to, 0, 1) == 0);
  hosts.world.run(20000);
  // the completion is there, so that each arming is an event at once; nobody takes the events
  hwif::Doorbell arm{};
  arm.set<hwif::Doorbell::kind>(hwif::DoorbellKind::CQ_ARM);
  arm.set<hwif::Doorbell::object>(link.a.cq.number());
  const uint64_t before = hosts.counter(0, Counter::EQE);
  unsigned arms = 0;
  while (arms < 20000 && hosts.counter(0, Counter::EQ_OVERRUN) == 0) {
    for (unsigned n = 0; n < 128; ++n, ++arms) {
      hosts.a.device->transport().ring(0, arm.to_word());
      hosts.world.run(16);
    }
  }
  CHECK(hosts.counter(0, Counter::EQ_OVERRUN) == 1);
  const uint64_t written = hosts.counter(0, Counter::EQE) - before;
  CHECK(written < arms);
  CHECK((written & (written - 1)) == 0);  // the whole ring, nothing was in it
  // taken: one more event says that some were lost, and it starts again
  hosts.a.device->poll_events();
  hosts.world.run(20000);
  hosts.a.device->poll_events();
  CHECK(hosts.counter(0, Counter::EQE) - before == written + 1);
  CHECK(readable(channel.fd()));
  while (readable(channel.fd())) CHECK(channel.get() == &link.a.cq);
  expect_wc(link.a.cq, 1);
  link.a.cq.arm(false);
  REQUIRE(link.a.write(from.sge(0, 10), to, 0, 2) == 0);
  hosts.world.run(20000);
  hosts.a.device->poll_events();
  CHECK(readable(channel.fd()));
  CHECK(hosts.counter(0, Counter::EQE) - before == written + 2);
  CHECK(hosts.counter(0, Counter::EQ_OVERRUN) == 1);
  expect_wc(link.a.cq, 2);
}

TEST_CASE_METHOD(SharedNics,
                 "page addresses: read from host memory until they are there, then found on the chip") {
  Connection link(hosts.a, hosts.world.nic(0), nics.b_scattered(), hosts.world.nic(1));
  Region from(hosts.a.pd, 32768), to(nics.b_scattered().pd, 32768);
  const auto write = [&](uint64_t n) {
    REQUIRE(link.a.write(from.sge(0, 32768), to, 0, n) == 0);
    expect_wc(link.a.cq, n);
  };
  const Counts first(hosts);
  write(1);
  const uint64_t misses = first(1, Counter::MTT_MISSES);
  const uint64_t asked = misses + first(1, Counter::MTT_HITS);
  CHECK(misses >= 1);
  CHECK(misses <= asked / 2);  // those before the first read is back
  const Counts second(hosts);
  write(2);
  CHECK(second(1, Counter::MTT_MISSES) == 0);
  CHECK(second(1, Counter::MTT_HITS) == asked);
  CHECK(asked == 32);  // packets
}

TEST_CASE_METHOD(SharedNics, "stops of the send side: READ credits, fence") {
  Wish wish;
  wish.rd_atomic = 1;
  wish.cap = caps(64, 1);
  Connection link(hosts, wish);
  Region from(hosts.a.pd, 65536), to(hosts.b.pd, 65536);
  const auto stalls = [&](const Counts& counts) {
    return std::vector<uint64_t>{counts(0, Counter::TX_STALL_READ),
                                 counts(0, Counter::TX_STALL_FENCE),
                                 counts(0, Counter::TX_STALL_WINDOW)};
  };
  const auto read = [&](uint64_t n) {
    REQUIRE(link.a.read(from.sge(0, 8000), to, 0, n) == 0);
  };
  {
    const Counts counts(hosts);
    read(1);
    REQUIRE(link.a.write(from.sge(0, 64), to, 10000, 2) == 0);
    expect_wc(link.a.cq, 1);
    expect_wc(link.a.cq, 2);
    CHECK(stalls(counts) == std::vector<uint64_t>{0, 0, 0});
  }
  {
    const Counts counts(hosts);
    read(3);
    read(4);
    expect_wc(link.a.cq, 3);
    expect_wc(link.a.cq, 4);
    const auto seen = stalls(counts);
    CHECK(seen[0] >= 1);
    CHECK(seen[0] <= 8);  // at most once for each response
    CHECK(seen[1] == 0);
    CHECK(seen[2] == 0);
  }
  {
    const Counts counts(hosts);
    read(5);
    REQUIRE(link.a.write(from.sge(0, 64), to, 10000, 6, IBV_SEND_SIGNALED | IBV_SEND_FENCE) == 0);
    expect_wc(link.a.cq, 5);
    expect_wc(link.a.cq, 6);
    const auto seen = stalls(counts);
    CHECK(seen[0] == 0);
    CHECK(seen[1] >= 1);
    CHECK(seen[1] <= 8);
    CHECK(seen[2] == 0);
  }
}

TEST_CASE_METHOD(CountedNics, "stops of the send side: as much as may be in flight is, unanswered") {
  {
    Wish wish;
    wish.timeout = 0;                                // never: it stays as it is
    Connection link(hosts, wish);
    constexpr size_t kBytes = 400 << 10;
    Region from(hosts.a.pd, kBytes), to(hosts.b.pd, kBytes);
    const size_t cut = hosts.world.fabric().add_rule(sim::Rule().to_port(1).always().drop());
    REQUIRE(link.a.write(from.sge(0, kBytes), to, 0, 1) == 0);
    for (int n = 0; n < 1000 && !hosts.world.frozen(); ++n) hosts.world.run(1000);
    REQUIRE(hosts.world.frozen());
    CHECK(counts(0, Counter::TX_FRAMES) == 256);     // of 1024 bytes: the byte cap
    CHECK(counts(0, Counter::TX_STALL_WINDOW) == 1);
    CHECK(counts(0, Counter::TX_STALL_READ) == 0);
    CHECK(counts(0, Counter::TX_STALL_FENCE) == 0);
    no_wc(link.a.cq);
    hosts.world.fabric().remove_rule(cut);
  }
  works(hosts);
}

TEST_CASE_METHOD(CountedNics, "an opcode that the queue pair does not allow: NAK 0x61 at both ends") {
  Wish wish;
  wish.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
  Connection link(hosts, wish);
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 4096);
  REQUIRE(link.a.write(from.sge(0, 100), to, 0, 1) == 0);
  expect_wc(link.a.cq, 1, IBV_WC_REM_INV_REQ_ERR);
  CHECK(counts(1, Counter::TX_NAK_INVALID_REQUEST) == 1);
  CHECK(counts(0, Counter::RX_NAK_INVALID_REQUEST) == 1);
  CHECK(counts(0, Counter::RX_NAK_REMOTE_ACCESS) == 0);
}

TEST_CASE_METHOD(CountedNics, "what is read for a message: DMA_READ_BYTES, payload and WQE") {
  Connection link(hosts);
  constexpr size_t kBytes = 16384;
  Region from(hosts.a.pd, kBytes), to(hosts.b.pd, kBytes);
  REQUIRE(link.a.write(from.sge(0, kBytes), to, 0, 1) == 0);
  expect_wc(link.a.cq, 1);
  const uint64_t read = counts(0, Counter::DMA_READ_BYTES);
  CHECK(read >= kBytes + 64);                        // one block of 64 bytes is the WQE
  CHECK(read < kBytes + 4096);                       // beats at both ends of a burst, page addresses
  CHECK(counts(1, Counter::DMA_READ_BYTES) < 4096);
}

TEST_CASE_METHOD(CountedNics, "marked by a switch that is full: RX_ECN_MARKED_PACKETS") {
  Connection link(hosts);
  Region to(hosts.a.pd, 4096);
  Tester tester(hosts.world, link);
  tester.send(op::write_only, 0, 64, to);
  tester.mark(0x80);                                 // FECN
  tester.send(op::write_only, 1, 64, to);
  tester.mark(0x40);                                 // BECN
  tester.send(op::write_only, 2, 64, to);
  tester.mark(0x3f);                                 // reserved: nothing
  tester.send(op::write_only, 3, 64, to);
  hosts.world.run(5000);
  CHECK(counts(0, Counter::REQUESTS_WRITE) == 4);
  CHECK(counts(0, Counter::RX_ECN_MARKED_PACKETS) == 2);
}

TEST_CASE_METHOD(SharedNics, "interrupts, events and admin commands are counted one by one") {
  CompChannel channel(hosts.b.context);
  Connection link(hosts, {}, nullptr, &channel);
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 4096);
  hosts.b.device->poll_events();
  hosts.world.run(20000);
  struct Seen {
    uint64_t interrupts, events, commands, errors;
    bool operator==(const Seen&) const = default;
  };
  const auto look = [&] {
    return Seen{hosts.counter(1, Counter::INTERRUPTS), hosts.counter(1, Counter::EQE),
                hosts.counter(1, Counter::ADMIN_COMMANDS), hosts.counter(1, Counter::ADMIN_ERRORS)};
  };
  const auto grown = [&](const Seen& since) {
    hosts.world.run(20000);
    const Seen now = look();
    return std::vector<uint64_t>{now.interrupts - since.interrupts, now.events - since.events,
                                 now.commands - since.commands, now.errors - since.errors};
  };
  const auto message = [&] {
    REQUIRE(post_recv(link.b.qp, nullptr, 0, 1) == 0);
    REQUIRE(link.a.rdma(IBV_WR_RDMA_WRITE_WITH_IMM, from.sge(0, 10), to, 0, 2) == 0);
    expect_wc(link.a.cq, 2);
    expect_wc(link.b.cq, 1);
  };
  Seen start = look();
  message();
  CHECK(grown(start) == std::vector<uint64_t>{0, 0, 0, 0});
  start = look();
  link.b.cq.arm(false);
  message();
  CHECK(grown(start) == std::vector<uint64_t>{1, 1, 0, 0});
  hosts.b.device->poll_events();
  CHECK(channel.get() == &link.b.cq);
  start = look();
  hosts.b.device->admin().run<hwif::admin::Nop>(0);
  CHECK(grown(start) == std::vector<uint64_t>{1, 0, 1, 0});
  start = look();
  CHECK(error_of([&] { hosts.b.device->admin().run<hwif::admin::DestroyPd>(0xffffff); }) != 0);
  CHECK(grown(start) == std::vector<uint64_t>{1, 0, 1, 1});
}
