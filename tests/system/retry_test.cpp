// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What is sent again, how often, and what the receiver makes of it: limits of retries, duplicates,
// acknowledgements. Exact expectations: frames on the wire, completions, counters, memory.
#include "tester.hpp"

using namespace roci;
using namespace roci::test;
using hwif::Counter;
using hwif::VendorStatus;

namespace {

constexpr uint8_t kAck = 0x1f;  // syndrome without credits
constexpr uint8_t kNakSequence = 0x60;
// BTH opcodes
constexpr uint8_t kSendFirst = 0x00, kSendMiddle = 0x01, kSendLast = 0x02, kSendOnly = 0x04;
constexpr uint8_t kWriteFirst = 0x06, kWriteMiddle = 0x07, kWriteLast = 0x08, kWriteOnly = 0x0a;
constexpr uint8_t kReadRequest = 0x0c, kReadFirst = 0x0d, kReadMiddle = 0x0e, kReadLast = 0x0f;

// Cycles of when a port sent frames with this opcode.
std::vector<uint64_t> times(const WireLog& wire, size_t port, uint8_t opcode) {
  std::vector<uint64_t> cycles;
  for (const WireFrame& f : wire.all()) {
    if (f.sent && f.port == port && f.info.opcode == opcode) cycles.push_back(f.cycle);
  }
  return cycles;
}

// A request that failed: its completion and the flushed one behind it, both sides' queue pairs still
// usable after a reconnect.
void expect_failure(Connection& link, ibv_wc_status status, VendorStatus vendor) {
  const ibv_wc wc = expect_wc(link.a.cq, 1, status);
  CHECK(wc.vendor_err == static_cast<uint32_t>(vendor));
  expect_wc(link.a.cq, 2, IBV_WC_WR_FLUSH_ERR);
  no_wc(link.a.cq);
}

bool holds(Region& region, size_t at, size_t bytes, uint8_t value) {
  const uint8_t* p = region.buffer.data() + at;
  return std::all_of(p, p + bytes, [value](uint8_t byte) { return byte == value; });
}

}  // namespace

TEST_CASE_METHOD(SharedNics,
                 "nobody answers: retry_cnt + 1 times on the wire, then RETRY_EXC_ERR") {
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 4096);
  std::memset(from.buffer.data(), 0x5a, 4096);
  for (const uint8_t retry_cnt : {0, 1}) {
    INFO("retry_cnt " << unsigned{retry_cnt});
    const Counts counts(hosts);
    Wish wish;
    wish.retry_cnt = retry_cnt;
    wish.timeout = 3;
    Connection link(hosts, wish);
    const size_t rule = hosts.world.fabric().add_rule(
        sim::Rule().from_port(0).dest_qp(link.b.qp.number()).always().drop());
    wire.clear();
    REQUIRE(link.a.write(from.sge(0, 100), to, 0, 1) == 0);
    REQUIRE(link.a.read(from.sge(2000, 100), to, 0, 2) == 0);
    expect_failure(link, IBV_WC_RETRY_EXC_ERR, VendorStatus::RETRY_TIMEOUT);
    const auto sent = times(wire, 0, kWriteOnly);
    CHECK(sent.size() == retry_cnt + 1u);
    CHECK(hosts.world.fabric().rule_hits(rule) == 2 * (retry_cnt + 1u));
    CHECK(counts(0, Counter::RETRY_TIMEOUT) == retry_cnt);
    CHECK(counts(0, Counter::RETRY_PACKETS) == 2u * retry_cnt);
    CHECK(counts(0, Counter::QP_ERRORS) == 1);
    CHECK(counts(1, Counter::RX_FRAMES) == 0);
    // T ≤ each wait ≤ 4 T (IBTA 9.7.6.1.3), T = 4.096 µs · 2^3
    const uint64_t t = uint64_t{hosts.world.nic(0).nic().tick_cycles()} << wish.timeout;
    for (size_t n = 1; n < sent.size(); ++n) {
      CHECK(sent[n] - sent[n - 1] >= t);
      CHECK(sent[n] - sent[n - 1] <= 4 * t);
    }
    CHECK(holds(to, 0, 100, 0));
    hosts.world.fabric().remove_rule(rule);
    link.reconnect();
    REQUIRE(link.a.write(from.sge(0, 100), to, 200, 4) == 0);
    expect_wc(link.a.cq, 4);
    CHECK(holds(to, 200, 100, 0x5a));
  }
}

TEST_CASE_METHOD(CountedNics, "progress gives all retries back") {
  Wish wish;
  wish.retry_cnt = 1;
  wish.timeout = 3;
  Connection link(hosts, wish);
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 4096);
  // of each WRITE the first try is lost
  for (uint32_t n = 0; n < 4; ++n) {
    hosts.world.fabric().add_rule(
        sim::Rule().from_port(0).opcode(kWriteOnly).psn(wish.a_psn + n).drop());
    REQUIRE(link.a.write(from.sge(0, 100), to, 0, n) == 0);
    expect_wc(link.a.cq, n);
  }
  CHECK(counts(0, Counter::RETRY_TIMEOUT) == 4);
  CHECK(counts(0, Counter::RETRY_PACKETS) == 4);
}

TEST_CASE_METHOD(CountedNics,
                 "a packet that is lost each time: sequence NAKs and timeouts count together") {
  Wish wish;
  wish.retry_cnt = 1;
  wish.timeout = 4;
  Connection link(hosts, wish);
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 4096);
  const size_t rule = hosts.world.fabric().add_rule(
      sim::Rule().from_port(0).dest_qp(link.b.qp.number()).psn(wish.a_psn).always().drop());
  REQUIRE(link.a.write(from.sge(0, 100), to, 0, 1) == 0);
  REQUIRE(link.a.write(from.sge(0, 100), to, 0, 2) == 0);
  expect_failure(link, IBV_WC_RETRY_EXC_ERR, VendorStatus::RETRY_TIMEOUT);
  hosts.world.fabric().remove_rule(rule);
  // the NAK took the only retry; there is no second one before the lost packet came
  const uint32_t p = wish.a_psn;
  CHECK(wire.psns(0, kWriteOnly) == std::vector<uint32_t>{p, p + 1, p, p + 1});
  CHECK(wire.acknowledges(1, kNakSequence) == 1);
  CHECK(counts(0, Counter::RETRY_NAK_SEQUENCE) == 1);
  CHECK(counts(0, Counter::RETRY_TIMEOUT) == 0);
  CHECK(counts(1, Counter::RX_DROP_OUT_OF_SEQUENCE) == 2);
}

TEST_CASE_METHOD(SharedNics,
                 "nobody posts a receive: rnr_retry + 1 times on the wire, then RNR_RETRY_EXC_ERR") {
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 4096);
  for (const uint8_t rnr_retry : {0, 1}) {
    INFO("rnr_retry " << unsigned{rnr_retry});
    const Counts counts(hosts);
    Wish wish;
    wish.rnr_retry = rnr_retry;
    wish.retry_cnt = 0;      // has nothing to do with it
    wish.min_rnr_timer = 1;  // 10 µs
    Connection link(hosts, wish);
    wire.clear();
    REQUIRE(link.a.send(IBV_WR_SEND, from.sge(0, 100), 1) == 0);
    REQUIRE(link.a.write(from.sge(0, 100), to, 0, 2) == 0);
    expect_failure(link, IBV_WC_RNR_RETRY_EXC_ERR, VendorStatus::RETRY_RNR);
    const auto sent = times(wire, 0, kSendOnly);
    CHECK(sent.size() == rnr_retry + 1u);
    CHECK(wire.acknowledges(1, 0x20 | 1) == rnr_retry + 1u);
    CHECK(wire.acknowledges(1, kNakSequence) == 0);
    CHECK(counts(1, Counter::TX_NAK_RNR) == rnr_retry + 1u);
    CHECK(counts(0, Counter::RX_NAK_RNR) == rnr_retry + 1u);
    CHECK(counts(0, Counter::RETRY_RNR) == rnr_retry);
    CHECK(counts(0, Counter::RETRY_TIMEOUT) == 0);
    CHECK(counts(1, Counter::REQUESTS_SEND) == 0);
    CHECK(counts(1, Counter::REQUESTS_WRITE) == 0);
    // 10 µs in ticks of 4.096 µs
    const double tick = hosts.world.nic(0).nic().tick_cycles();
    for (size_t n = 1; n < sent.size(); ++n) {
      CHECK(static_cast<double>(sent[n] - sent[n - 1]) >= 10 / 4.096 * tick);
    }
    // the receiver's queue pair is not hurt
    no_wc(link.b.cq);
  }
}

TEST_CASE_METHOD(SharedNics, "rnr_retry 7 has no limit") {
  Wish wish;
  wish.rnr_retry = 7;
  wish.retry_cnt = 0;
  wish.min_rnr_timer = 1;
  Connection link(hosts, wish);
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 4096);
  std::memset(from.buffer.data(), 0x5a, 100);
  REQUIRE(link.a.send(IBV_WR_SEND, from.sge(0, 100), 1) == 0);
  for (unsigned n = 0; n < 20000 && wire.acknowledges(1, 0x20 | 1) < 12; ++n) {
    hosts.world.run(64);
  }
  REQUIRE(wire.acknowledges(1, 0x20 | 1) == 12);
  ibv_sge sge = to.sge(0, 200);
  REQUIRE(post_recv(link.b.qp, &sge, 1, 5) == 0);
  expect_wc(link.a.cq, 1);
  CHECK(expect_wc(link.b.cq, 5).byte_len == 100);
  CHECK(wire.sent(0, {kSendOnly}) == 13);
  CHECK(holds(to, 0, 100, 0x5a));
}

TEST_CASE_METHOD(CountedNics,
                 "a duplicated SEND takes no second receive and is acknowledged again") {
  Random random;
  Connection link(hosts);
  Region from(hosts.a.pd, 8192), to(hosts.b.pd, 16384);
  randomize(from.buffer, random);
  ibv_sge sges[] = {to.sge(0, 4000), to.sge(4000, 4000), to.sge(8000, 4000)};
  for (unsigned n = 0; n < 3; ++n) REQUIRE(post_recv(link.b.qp, &sges[n], 1, 10 + n) == 0);
  const size_t rule = hosts.world.fabric().add_rule(sim::Rule()
                                                        .from_port(0)
                                                        .dest_qp(link.b.qp.number())
                                                        .times(4)
                                                        .duplicate());
  // one packet, then three
  REQUIRE(link.a.send(IBV_WR_SEND, from.sge(0, 500), 1) == 0);
  expect_wc(link.a.cq, 1);
  hosts.world.run(20000);
  // `wide` has both before the first answer leaves, and answers them together; so has `narrow` when
  // the first waits for its page table
  const bool together = chip == sim::ChipConfig::wide ||
                        DeviceOptions::from_environment().dma == DmaPolicy::SCATTER;
  CHECK(wire.acknowledges(1, kAck) == (together ? 1 : 2));
  CHECK(counts(1, Counter::RX_DUPLICATE_REQUEST) == 1);
  REQUIRE(link.a.send(IBV_WR_SEND, from.sge(1000, 3000), 2) == 0);
  expect_wc(link.a.cq, 2);
  hosts.world.run(20000);
  CHECK(hosts.world.fabric().rule_hits(rule) == 4);
  // and one that is not duplicated goes into the third receive
  REQUIRE(link.a.send(IBV_WR_SEND, from.sge(5000, 700), 3) == 0);
  expect_wc(link.a.cq, 3);
  const std::pair<size_t, size_t> messages[] = {{0, 500}, {1000, 3000}, {5000, 700}};
  for (unsigned n = 0; n < 3; ++n) {
    CHECK(expect_wc(link.b.cq, 10 + n).byte_len == messages[n].second);
    CHECK(std::memcmp(from.buffer.data() + messages[n].first, to.buffer.data() + 4000 * n,
                      messages[n].second) == 0);
  }
  no_wc(link.a.cq);
  no_wc(link.b.cq);
  CHECK(counts(1, Counter::RX_DUPLICATE_REQUEST) == 4);
  CHECK(counts(1, Counter::REQUESTS_SEND) == 3);
  CHECK(counts(1, Counter::TX_NAK_SEQUENCE) == 0);
  CHECK(counts(0, Counter::RETRY_PACKETS) == 0);
  CHECK(wire.sent(0, {kSendOnly}) == 2);
  CHECK(wire.sent(0, {kSendFirst, kSendMiddle, kSendLast}) == 3);
  // all of it again by the timer: only the ACK is lost
  hosts.world.fabric().add_rule(sim::Rule().from_port(1).acks().drop());
  REQUIRE(post_recv(link.b.qp, &sges[0], 1, 20) == 0);
  REQUIRE(link.a.send(IBV_WR_SEND, from.sge(0, 2500), 4) == 0);
  expect_wc(link.a.cq, 4);
  CHECK(expect_wc(link.b.cq, 20).byte_len == 2500);
  no_wc(link.b.cq);
  CHECK(counts(0, Counter::RETRY_TIMEOUT) == 1);
  CHECK(counts(0, Counter::RETRY_PACKETS) == 3);
  CHECK(counts(1, Counter::RX_DUPLICATE_REQUEST) == 4 + 3);
}

TEST_CASE_METHOD(CountedNics, "a duplicated WRITE is not written twice") {
  Wish wish;
  wish.timeout = 6;
  Connection link(hosts, wish);
  Region from(hosts.a.pd, 8192), to(hosts.b.pd, 8192);
  std::memset(from.buffer.data(), 0x11, 8192);
  const size_t rule =
      hosts.world.fabric().add_rule(sim::Rule().from_port(1).acks().drop());
  REQUIRE(link.a.write(from.sge(0, 3000), to, 0, 1) == 0);
  // it is there, and its ACK is lost
  for (unsigned n = 0; n < 1000 && hosts.world.fabric().rule_hits(rule) == 0; ++n) {
    hosts.world.run(16);
  }
  REQUIRE(hosts.world.fabric().rule_hits(rule) == 1);
  CHECK(holds(to, 0, 3000, 0x11));
  // the program uses the memory before the timer fires
  std::memset(to.buffer.data(), 0x77, 8192);
  expect_wc(link.a.cq, 1);
  CHECK(holds(to, 0, 8192, 0x77));
  CHECK(counts(0, Counter::RETRY_TIMEOUT) == 1);
  CHECK(counts(1, Counter::RX_DUPLICATE_REQUEST) == 3);
  CHECK(counts(1, Counter::REQUESTS_WRITE) == 1);
  for (const uint8_t opcode : {kWriteFirst, kWriteMiddle, kWriteLast}) {
    CHECK(wire.sent(0, {opcode}) == 2);
  }
  CHECK(wire.acknowledges(1, kAck) >= 2);
  CHECK(wire.acknowledges(1, kNakSequence) == 0);
}

TEST_CASE_METHOD(CountedNics, "a duplicated READ is answered again, from memory as it is then") {
  Random random;
  Wish wish;
  wish.timeout = 6;
  Connection link(hosts, wish);
  Region into(hosts.a.pd, 8192), from(hosts.b.pd, 8192);
  randomize(from.buffer, random);
  // Twice on the wire. The second one begins the answer anew, also where it was not yet at its end:
  // what comes twice matches nothing any more and is dropped.
  hosts.world.fabric().add_rule(
      sim::Rule().from_port(0).opcode(kReadRequest).psn(wish.a_psn).duplicate());
  REQUIRE(link.a.read(into.sge(1, 3000), from, 3, 1) == 0);
  expect_wc(link.a.cq, 1);
  hosts.world.run(20000);
  CHECK(std::memcmp(into.buffer.data() + 1, from.buffer.data() + 3, 3000) == 0);
  CHECK(wire.sent(0, {kReadRequest}) == 1);
  const size_t answers = wire.sent(1, {kReadFirst, kReadMiddle, kReadLast});
  // `wide` has both requests before it begins to answer
  const bool once = chip == sim::ChipConfig::wide;
  CHECK(answers >= (once ? 3 : 4));
  CHECK(answers <= (once ? 3 : 6));
  CHECK(wire.psns(1, kReadFirst) == std::vector<uint32_t>(once ? 1 : 2, wish.a_psn));
  CHECK(wire.psns(1, kReadLast).back() == wish.a_psn + 2);
  CHECK(counts(1, Counter::RX_DUPLICATE_REQUEST) == 1);
  CHECK(counts(1, Counter::REQUESTS_READ) == 1);
  CHECK(counts(0, Counter::RX_DROP_RESPONSE) == answers - 3);
  CHECK(counts(0, Counter::RETRY_PACKETS) == 0);

  // all answers are lost: the timer asks again, and gets what is in memory then
  wire.clear();
  const size_t rule = hosts.world.fabric().add_rule(
      sim::Rule().from_port(1).dest_qp(link.a.qp.number()).times(3).drop());
  const uint32_t p = wish.a_psn + 3;
  REQUIRE(link.a.read(into.sge(2, 3000), from, 4, 2) == 0);
  for (unsigned n = 0; n < 1000 && hosts.world.fabric().rule_hits(rule) < 3; ++n) {
    hosts.world.run(16);
  }
  REQUIRE(hosts.world.fabric().rule_hits(rule) == 3);
  randomize(from.buffer, random);
  expect_wc(link.a.cq, 2);
  CHECK(std::memcmp(into.buffer.data() + 2, from.buffer.data() + 4, 3000) == 0);
  CHECK(wire.psns(0, kReadRequest) == std::vector<uint32_t>{p, p});
  CHECK(counts(0, Counter::RETRY_TIMEOUT) == 1);
  CHECK(counts(1, Counter::RX_DUPLICATE_REQUEST) == 2);
}

TEST_CASE_METHOD(CountedNics,
                 "a duplicated READ whose region is gone: no answer, and the queue pair is well") {
  Random random;
  Connection link(hosts);
  constexpr size_t kBytes = 40000;
  Region into(hosts.b.pd, kBytes);
  auto from = std::make_unique<Region>(hosts.a.pd, kBytes);
  randomize(from->buffer, random);
  const uint64_t address = from->buffer.address();
  const uint32_t rkey = from->mr.rkey();
  Tester late(hosts.world, link);            // a copy of b's request that the fabric held back
  REQUIRE(link.b.read(into.sge(0, kBytes), *from, 0, 1) == 0);
  expect_wc(link.b.cq, 1);
  CHECK(std::memcmp(into.buffer.data(), from->buffer.data(), kBytes) == 0);

  {
    INFO("memory cannot be read any more");
    sim::HostMemory& memory = hosts.world.nic(0).nic().memory();
    memory.add_error_range(address & ~uint64_t{4095}, 4096, true, false);
    late.send(kReadRequest, 0, kBytes, address, rkey);
    hosts.world.run(20000);
    memory.clear_error_ranges();
  }
  {
    INFO("the region is deregistered");
    from.reset();
    wire.clear();
    late.send(kReadRequest, 0, kBytes, address, rkey);
    hosts.world.run(20000);
    CHECK(wire.sent(0, {kReadFirst, kReadMiddle, kReadLast}) == 0);
    CHECK(wire.acknowledges(0, 0x62) == 0);
    CHECK(wire.acknowledges(0, 0x63) == 0);
  }
  CHECK(counts(0, Counter::RX_DUPLICATE_REQUEST) == 2);
  // both directions work
  Region a_buffer(hosts.a.pd, 4096), b_buffer(hosts.b.pd, 4096);
  for (auto [one, other, sent, got] : {std::tuple{&link.a, &link.b, &a_buffer, &b_buffer},
                                       std::tuple{&link.b, &link.a, &b_buffer, &a_buffer}}) {
    ibv_sge sge = got->sge(0, 4096);
    REQUIRE(post_recv(other->qp, &sge, 1, 9) == 0);
    randomize(sent->buffer, random);
    REQUIRE(one->send(IBV_WR_SEND, sent->sge(0, 3000), 2) == 0);
    expect_wc(one->cq, 2);
    expect_wc(other->cq, 9);
    CHECK(std::memcmp(sent->buffer.data(), got->buffer.data(), 3000) == 0);
  }
}

TEST_CASE_METHOD(SharedNics,
                 "acknowledgements: at most one for each packet that asks, few within a message") {
  Region from(hosts.a.pd, 80000), to(hosts.b.pd, 80000);
  Wish wish;
  wish.cap = caps(256, 1);
  {
    INFO("200 WRITEs of 64 B at once");
    Connection link(hosts, wish);
    wire.clear();
    std::vector<ibv_sge> sges(200);
    std::vector<ibv_send_wr> wrs(200);
    for (size_t n = 0; n < 200; ++n) {
      sges[n] = from.sge(64 * n, 64);
      wrs[n] = send_wr(IBV_WR_RDMA_WRITE, &sges[n], 1, n, n == 199 ? IBV_SEND_SIGNALED : 0);
      wrs[n].wr.rdma = {to.buffer.address() + 64 * n, to.mr.rkey()};
      if (n != 0) wrs[n - 1].next = &wrs[n];
    }
    REQUIRE(post(link.a.qp, wrs[0]) == 0);
    expect_wc(link.a.cq, 199);
    hosts.world.run(5000);
    std::vector<uint32_t> psns;
    for (const WireFrame& f : wire.all()) {
      if (f.sent && f.port == 1 && f.info.syndrome == kAck) psns.push_back(f.info.psn);
    }
    REQUIRE_FALSE(psns.empty());
    CHECK(psns.back() == wish.a_psn + 199);
    // each acknowledges something new
    CHECK(std::adjacent_find(psns.begin(), psns.end(), std::greater_equal<>()) == psns.end());
  }
  {
    INFO("one WRITE of 72 packets");
    Connection link(hosts, wish);
    wire.clear();
    REQUIRE(link.a.write(from.sge(0, 72 * 1024), to, 0, 1) == 0);
    expect_wc(link.a.cq, 1);
    hosts.world.run(5000);
    // AckReq every 16 packets and at the end
    const size_t asked = wire.sent(0, [](const sim::FrameInfo& f) { return f.ack_req; });
    CHECK(asked == 5);
    CHECK(wire.acknowledges(1, kAck) <= asked);
    CHECK(wire.psns(1, 0x11).back() == wish.a_psn + 71);
  }
}
