// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Coalesced acknowledgements: while an ACK of a queue pair is on its way to the wire, what it owes
// besides becomes one ACK; one that finds none before it leaves at once; READ responses keep their
// places.
#include "rtl_hosts.hpp"

#include <array>

using namespace roci;
using namespace roci::test;
using hwif::Counter;

namespace {

constexpr uint8_t kAcknowledge = 0x11;
constexpr uint8_t kReadFirst = 0x0d;
constexpr size_t kMessage = 64;
constexpr size_t kMessages = 96;

// Both directions' memory: each NIC sends `from` into the peer's `to`.
struct Memory {
  Memory(RtlHosts& hosts, Random& random, size_t bytes)
      : a_from(hosts.a.pd, bytes),
        a_to(hosts.a.pd, bytes),
        b_from(hosts.b.pd, bytes),
        b_to(hosts.b.pd, bytes) {
    randomize(a_from.buffer, random);
    randomize(b_from.buffer, random);
  }
  Region a_from, a_to, b_from, b_to;
};

Wish deep() {
  Wish wish;
  wish.cap = caps(256);
  wish.entries = 512;
  return wish;
}

// Posts signaled WRITEs in one list, message n from and to byte `at` + `bytes` n.
void post_writes(End& end, const Region& from, const Region& to, size_t at, size_t count = kMessages,
                 size_t bytes = kMessage) {
  std::vector<ibv_sge> sges(count);
  std::vector<ibv_send_wr> list(count);
  for (size_t n = 0; n < count; ++n, at += bytes) {
    sges[n] = from.sge(at, bytes);
    list[n] = send_wr(IBV_WR_RDMA_WRITE, &sges[n], 1, n);
    list[n].wr.rdma = {to.buffer.address() + at, to.mr.rkey()};
    list[n].next = n + 1 < count ? &list[n + 1] : nullptr;
  }
  REQUIRE(post(end.qp, list[0]) == 0);
}

// All completions of post_writes.
void expect_writes(End& end, size_t count = kMessages) {
  for (size_t n = 0; n < count; ++n) expect_wc(end.cq, n);
}

bool same(Region& from, Region& to, size_t bytes) {
  return std::memcmp(from.buffer.data(), to.buffer.data(), bytes) == 0;
}

}  // namespace

TEST_CASE("messages one after the other: an ACK for each") {
  for (const auto chip : configs()) {
    INFO(sim::to_string(chip));
    Nics& nics = Nics::get(chip);
    Random random;
    Memory memory(nics.hosts, random, 4096);
    Connection link(nics.hosts);
    const Counts counts(nics.hosts);
    nics.wire.clear();
    for (uint64_t n = 0; n < 20; ++n) {
      REQUIRE(link.a.send(IBV_WR_RDMA_WRITE, memory.a_from.sge(n * 64, 64), n,
                          memory.b_to.buffer.address() + n * 64, memory.b_to.mr.rkey()) == 0);
      expect_wc(link.a.cq, n);
    }
    CHECK(same(memory.a_from, memory.b_to, 20 * 64));
    CHECK(counts(1, Counter::TX_ACK) == 20);
    std::vector<uint32_t> all;
    for (uint32_t n = 0; n < 20; ++n) all.push_back(link.wish.a_psn + n);
    CHECK(nics.wire.psns(1, kAcknowledge) == all);
  }
}

TEST_CASE("messages back to back, and both ways at once: fewer ACKs than messages") {
  for (const auto chip : configs()) {
    const bool wide = chip == sim::ChipConfig::wide;
    Nics& nics = Nics::get(chip);
    Random random;
    constexpr size_t kQps = 4;
    constexpr size_t kBytes = kQps * kMessages * kMessage;
    Memory memory(nics.hosts, random, 65536);
    std::vector<std::unique_ptr<Connection>> links;
    for (size_t n = 0; n < kQps; ++n) {
      links.push_back(std::make_unique<Connection>(nics.hosts, deep()));
    }
    const auto at = [](size_t qp) { return qp * kMessages * kMessage; };

    // one queue pair, one way: the transmit side of the responder has nothing else to do
    {
      const Counts counts(nics.hosts);
      post_writes(links[0]->a, memory.a_from, memory.b_to, 0);
      expect_writes(links[0]->a);
      const uint64_t acks = counts(1, Counter::TX_ACK);
      INFO(sim::to_string(chip) << ": " << acks << " ACKs for " << kMessages);
      CHECK(acks >= 1);
      // narrow: an ACK leaves faster than the next message comes
      CHECK(acks <= (wide ? kMessages / 4 : kMessages));
      CHECK(nics.wire.psns(1, kAcknowledge).back() == links[0]->wish.a_psn + kMessages - 1);
      CHECK(same(memory.a_from, memory.b_to, kMessages * kMessage));
    }
    std::memset(memory.b_to.buffer.data(), 0, memory.b_to.buffer.size());

    // it sends long packets: what comes while an ACK waits behind them becomes one (narrow: the window
    // has 8 messages)
    {
      constexpr size_t kLong = 64, kLength = 1024;
      const Counts counts(nics.hosts);
      post_writes(links[1]->b, memory.b_from, memory.a_to, 0, kLong, kLength);
      post_writes(links[0]->a, memory.a_from, memory.b_to, 0);
      expect_writes(links[0]->a);
      expect_writes(links[1]->b, kLong);
      const uint64_t acks = counts(1, Counter::TX_ACK);
      INFO(sim::to_string(chip) << ", busy: " << acks << " ACKs for " << kMessages);
      CHECK(acks >= 1);
      CHECK(acks <= (wide ? kMessages / 3 : kMessages * 3 / 4));
      CHECK(same(memory.a_from, memory.b_to, kMessages * kMessage));
      CHECK(same(memory.b_from, memory.a_to, kLong * kLength));
    }
    std::memset(memory.b_to.buffer.data(), 0, memory.b_to.buffer.size());
    std::memset(memory.a_to.buffer.data(), 0, memory.a_to.buffer.size());

    const Counts counts(nics.hosts);
    for (size_t n = 0; n < kQps; ++n) {
      post_writes(links[n]->a, memory.a_from, memory.b_to, at(n));
      post_writes(links[n]->b, memory.b_from, memory.a_to, at(n));
    }
    for (auto& link : links) expect_writes(link->a);
    for (auto& link : links) expect_writes(link->b);
    for (const unsigned nic : {0u, 1u}) {
      const uint64_t acks = counts(nic, Counter::TX_ACK);
      INFO(sim::to_string(chip) << ", NIC " << nic << ": " << acks << " ACKs for "
                                << kQps * kMessages);
      CHECK(acks >= kQps);
      CHECK(acks <= kQps * kMessages * (wide ? 1 : 5) / 8);
      CHECK(counts(1 - nic, Counter::RX_ACK) == acks);
      CHECK(counts(nic, Counter::REQUESTS_WRITE) == kQps * kMessages);
      CHECK(counts(nic, Counter::RETRY_PACKETS) == 0);
      CHECK(counts(nic, Counter::RX_DROP_OUT_OF_SEQUENCE) == 0);
    }
    CHECK(same(memory.a_from, memory.b_to, kBytes));
    CHECK(same(memory.b_from, memory.a_to, kBytes));
  }
}

TEST_CASE("READs among WRITEs to a busy sender: responses in the order of their PSNs") {
  for (const auto chip : configs()) {
    INFO(sim::to_string(chip));
    Nics& nics = Nics::get(chip);
    Random random;
    constexpr size_t kRounds = 24;
    constexpr size_t kBytes = 65536;
    Memory memory(nics.hosts, random, kBytes);
    Connection busy(nics.hosts, deep()), link(nics.hosts, deep());
    const Counts counts(nics.hosts);
    nics.wire.clear();
    post_writes(busy.b, memory.b_from, memory.a_to, 0);
    const auto write = [&](size_t n, uint64_t id) {
      return link.a.send(IBV_WR_RDMA_WRITE, memory.a_from.sge(n * 64, 64), id,
                         memory.b_to.buffer.address() + n * 64, memory.b_to.mr.rkey());
    };
    // rounds of five WRITEs and a READ of up to three packets, which comes back behind the WRITEs' bytes
    constexpr size_t kBack = 32768, kEach = 1280;
    uint64_t id = 0;
    size_t written = 0;
    std::vector<size_t> lengths;
    for (size_t round = 0; round < kRounds; ++round) {
      for (int n = 0; n < 5; ++n) REQUIRE(write(written++, id++) == 0);
      lengths.push_back(std::array<size_t, 6>{0, 1, 64, 1024, 1025, 1280}[random.between(0, 5)]);
      REQUIRE(link.a.send(IBV_WR_RDMA_READ, memory.a_to.sge(kBack + round * kEach, lengths.back()),
                          id++, memory.b_from.buffer.address() + round * kEach,
                          memory.b_from.mr.rkey()) == 0);
    }
    for (uint64_t n = 0; n < id; ++n) expect_wc(link.a.cq, n);
    expect_writes(busy.b);
    CHECK(same(memory.a_from, memory.b_to, written * 64));
    CHECK(same(memory.b_from, memory.a_to, kMessages * kMessage));
    for (size_t round = 0; round < kRounds; ++round) {
      CHECK(std::memcmp(memory.a_to.buffer.data() + kBack + round * kEach,
                        memory.b_from.buffer.data() + round * kEach, lengths[round]) == 0);
    }
    uint32_t last = link.wish.a_psn;
    size_t responses = 0;
    for (const WireFrame& frame : nics.wire.all()) {
      const sim::FrameInfo& f = frame.info;
      if (!frame.sent || frame.port != 1 || f.dest_qp != link.a.qp.number()) continue;
      if (f.opcode < kReadFirst || f.opcode > kAcknowledge) continue;
      CHECK(((f.psn - last) & 0xffffffu) < 0x800000u);
      last = f.psn;
      ++responses;
    }
    CHECK(responses >= kRounds);
    CHECK(counts(0, Counter::RETRY_PACKETS) == 0);
    CHECK(counts(1, Counter::TX_NAK_SEQUENCE) == 0);
    CHECK(counts(1, Counter::TX_ACK) <= written);
  }
}

// Own packets that are on their way stand before an ACK, and no more of them than cover the latency of
// memory (packet_tx_decide).
TEST_CASE("an ACK leaves soon, however much its NIC sends itself") {
  for (const auto chip : configs()) {
    const bool wide = chip == sim::ChipConfig::wide;
    Nics& nics = Nics::get(chip);
    Random random;
    constexpr size_t kLong = 16, kLength = 65536, kRequests = 12;
    Memory memory(nics.hosts, random, kLength);
    Wish wish = deep();
    wish.mtu = IBV_MTU_4096;
    Connection busy(nics.hosts, wish), more(nics.hosts, wish), link(nics.hosts, wish);
    nics.wire.clear();
    // NIC 1 sends all the time
    std::vector<ibv_sge> sge(1, memory.b_from.sge(0, kLength));
    for (size_t n = 0; n < kLong; ++n) {
      for (Connection* each : {&busy, &more}) {
        REQUIRE(each->b.write(std::span(sge), memory.a_to, 0, n,
                              n + 1 == kLong ? IBV_SEND_SIGNALED : 0) == 0);
      }
    }
    nics.hosts.world.run(wide ? 6000 : 30000);
    for (size_t n = 0; n < kRequests; ++n) {
      REQUIRE(link.a.write(memory.a_from.sge(n * 64, 64), memory.b_to, n * 64, n) == 0);
      expect_wc(link.a.cq, n);
    }
    ibv_wc wc{};
    CHECK(more.b.cq.poll(1, &wc) == 0);      // not at its end meanwhile
    std::map<uint32_t, uint64_t> came;
    uint64_t slowest = 0;
    size_t acks = 0;
    for (const WireFrame& f : nics.wire.all()) {
      if (f.port != 1) continue;
      if (!f.sent && f.info.dest_qp == link.b.qp.number()) came[f.info.psn] = f.cycle;
      if (f.sent && f.info.dest_qp == link.a.qp.number() && f.info.opcode == kAcknowledge) {
        REQUIRE(came.count(f.info.psn) == 1);
        slowest = std::max(slowest, f.cycle - came[f.info.psn]);
        ++acks;
      }
    }
    CHECK(acks == kRequests);
    INFO(sim::to_string(chip) << ": an ACK waited for " << slowest << " cycles");
    // at most 32 KB (narrow 8 KB) of payload and what the MAC's buffer takes (8 KB), at 48.9 and 4 bytes
    // per cycle; and what the WRITE itself takes
    CHECK(slowest < (wide ? 840 + 400 : 4200 + 800));
    for (Connection* each : {&busy, &more}) expect_wc(each->b.cq, kLong - 1);
    CHECK(same(memory.b_from, memory.a_to, kLength));
    CHECK(std::memcmp(memory.a_from.buffer.data(), memory.b_to.buffer.data(), kRequests * 64) == 0);
  }
}
