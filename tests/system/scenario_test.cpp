// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Losses and errors at chosen places, with exact expectations: frames on the wire, completions,
// counters, memory.
#include "rtl_hosts.hpp"

#include <numeric>

using namespace roci;
using namespace roci::test;
using hwif::Counter;

namespace {

constexpr uint8_t kAck = 0x1f;  // syndrome without credits
constexpr uint8_t kNakSequence = 0x60;
constexpr uint8_t kNakAccess = 0x62;
// BTH opcodes
constexpr uint8_t kSendFirst = 0x00, kSendMiddle = 0x01, kSendLast = 0x02;
constexpr uint8_t kWriteOnly = 0x0a, kReadRequest = 0x0c;

// Signaled requests complete with these numbers and nothing else does.
void expect_only(Cq& cq, std::initializer_list<uint64_t> numbers) {
  for (const uint64_t n : numbers) expect_wc(cq, n);
  no_wc(cq);
}

bool equal(const Region& a, size_t a_at, const Region& b, size_t b_at, size_t bytes) {
  return std::memcmp(const_cast<Buffer&>(a.buffer).data() + a_at,
                     const_cast<Buffer&>(b.buffer).data() + b_at, bytes) == 0;
}

// Streams of requests of one size, each to memory of its own, four under way at a time.
class Streams {
 public:
  Streams(RtlHosts& hosts, size_t message) : hosts_(hosts), message_(message) {}

  void add(End& end, Pd& from) {
    streams_.push_back(std::make_unique<Stream>(end, from, hosts_.a.pd, 4 * message_));
    randomize(streams_.back()->from.buffer, random_);
  }

  // Up to `messages` of each, with those of the calls before: WRITEs, every third one a READ if
  // `reads`; every byte is compared.
  // @return cycles
  uint64_t carry(unsigned messages, bool reads) {
    const uint64_t start = hosts_.world.cycle();
    unsigned idle = 0;
    for (bool done = false; !done;) {
      done = true;
      for (const auto& s : streams_) {
        while (s->posted < messages && s->posted < s->completed + 4) {
          const size_t at = s->posted % 4 * message_;
          REQUIRE(s->end.rdma(reads && s->posted % 3 == 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                              s->from.sge(at, message_), s->to, at, s->posted) == 0);
          ++s->posted;
        }
        ibv_wc wc{};
        ++idle;
        while (s->end.cq.poll(1, &wc) == 1) {
          idle = 0;
          REQUIRE(wc.status == IBV_WC_SUCCESS);
          REQUIRE(wc.wr_id == s->completed);
          const size_t at = s->completed % 4 * message_;
          REQUIRE(equal(s->from, at, s->to, at, message_));
          ++s->completed;
        }
        done &= s->completed == messages;
      }
      REQUIRE(idle < 200000);
    }
    return hosts_.world.cycle() - start;
  }

 private:
  struct Stream {
    Stream(End& end, Pd& from, Pd& to, size_t bytes) : end(end), from(from, bytes), to(to, bytes) {}
    End& end;
    Region from, to;
    unsigned posted = 0, completed = 0;
  };
  RtlHosts& hosts_;
  size_t message_;
  Random random_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

Wish of_4096() {
  Wish wish;
  wish.mtu = IBV_MTU_4096;
  wish.timeout = 8;
  wish.cap = caps(16, 1);
  return wish;
}

}  // namespace

TEST_CASE_METHOD(CountedNics, "(a) 300 WRITEs of 64 B at once, one lost in the middle") {
  Random random;
  Wish wish;
  wish.cap = caps(512, 1);
  Connection link(hosts, wish);
  Region from(hosts.a.pd, 300 * 64), to(hosts.b.pd, 300 * 64);
  randomize(from.buffer, random);
  const uint32_t lost = wish.a_psn + 150;
  const size_t rule = hosts.world.fabric().add_rule(
      sim::Rule().from_port(0).opcode(kWriteOnly).psn(lost).drop());

  std::vector<ibv_sge> sges(300);
  std::vector<ibv_send_wr> wrs(300);
  for (size_t n = 0; n < 300; ++n) {
    sges[n] = from.sge(64 * n, 64);
    wrs[n] = send_wr(IBV_WR_RDMA_WRITE, &sges[n], 1, n, n == 299 ? IBV_SEND_SIGNALED : 0);
    wrs[n].wr.rdma = {to.buffer.address() + 64 * n, to.mr.rkey()};
    if (n != 0) wrs[n - 1].next = &wrs[n];
  }
  REQUIRE(post(link.a.qp, wrs[0]) == 0);
  expect_only(link.a.cq, {299});
  CHECK(equal(from, 0, to, 0, 300 * 64));

  CHECK(hosts.world.fabric().rule_hits(rule) == 1);
  CHECK(wire.acknowledges(1, kNakSequence) == 1);
  CHECK(counts(0, Counter::RETRY_NAK_SEQUENCE) == 1);
  CHECK(counts(0, Counter::RETRY_TIMEOUT) == 0);
  CHECK(counts(0, Counter::RETRY_IMPLIED_NAK) == 0);
  // what came before the lost one left once; what was behind it at most twice; nothing was executed
  // twice
  const auto psns = wire.psns(0, kWriteOnly);
  CHECK(std::count(psns.begin(), psns.end(), lost) == 2);
  for (uint32_t n = 0; n < 300; ++n) {
    const auto times = std::count(psns.begin(), psns.end(), wish.a_psn + n);
    INFO("WRITE " << n << " left " << times << " times");
    CHECK(times >= 1);
    CHECK(times <= (n < 150 ? 1 : 2));
  }
  const uint64_t again = psns.size() - 300;
  CHECK(counts(0, Counter::RETRY_PACKETS) == again);
  CHECK(counts(1, Counter::RX_DROP_OUT_OF_SEQUENCE) == again - 1);
  CHECK(counts(1, Counter::RX_DUPLICATE_REQUEST) == 0);
}

TEST_CASE_METHOD(CountedNics, "(b) a rewind by timeout meets the ACK that comes late",
                 "[rewind]") {
  Random random;
  Wish wish;
  wish.cap = caps(16, 1);
  wish.timeout = 2;  // 16.384 µs: expires after that to four times that
  Connection link(hosts, wish);
  Region from(hosts.a.pd, 65536), to(hosts.b.pd, 65536);
  const auto period = static_cast<uint32_t>(chip == sim::ChipConfig::wide ? 4096 : 2048);
  constexpr uint32_t kPackets = 19 + 2 * 13;  // of 32 WRITEs, 100 to 1650 B
  uint32_t psn = wish.a_psn;
  unsigned rewound = 0;
  // From an ACK that is just in time to one that comes when everything was sent again. The timers'
  // phase decides which step meets a rewind under way: between the steps, too, until one did.
  for (uint32_t step = 0;
       step < 24 || (step < 96 && counts(0, Counter::RETRY_ACK_OVERTOOK) == 0); ++step) {
    INFO("step " << step);
    randomize(from.buffer, random);
    wire.clear();
    const uint64_t again = counts(0, Counter::RETRY_PACKETS);
    const uint64_t timeouts = counts(0, Counter::RETRY_TIMEOUT);
    const uint32_t delay = period + step % 24 * period / 6 + step / 24 * period / 24;
    const size_t rule =
        hosts.world.fabric().add_rule(sim::Rule().from_port(1).acks().delay(delay));
    // 16 requests fill the queue; a slot is used again as soon as it is free
    uint64_t completed = 0;
    for (uint64_t n = 0; n < 32; ++n) {
      while (link.a.write(from.sge(2000 * n, 100 + 50 * n), to, 2000 * n + 3, n) != 0) {
        REQUIRE(completed < n);
        expect_wc(link.a.cq, completed++);
      }
    }
    while (completed < 32) expect_wc(link.a.cq, completed++);
    no_wc(link.a.cq);
    for (size_t n = 0; n < 32; ++n) CHECK(equal(from, 2000 * n, to, 2000 * n + 3, 100 + 50 * n));
    CHECK(hosts.world.fabric().rule_hits(rule) == 1);
    hosts.world.fabric().remove_rule(rule);
    CHECK(wire.acknowledges(1, kNakSequence) == 0);
    // Each packet leaves for the first time in order; those that leave again are counted; without a
    // timeout there are none.
    uint32_t fresh = psn;
    uint64_t resent = 0;
    for (const WireFrame& f : wire.all()) {
      if (!f.sent || f.port != 0) continue;
      if (f.info.psn == fresh) {
        fresh = (fresh + 1) & 0xffffff;
      } else {
        ++resent;
        CHECK(((f.info.psn - psn) & 0xffffff) < ((fresh - psn) & 0xffffff));
      }
    }
    psn = (psn + kPackets) & 0xffffff;
    CHECK(fresh == psn);
    CHECK(resent == counts(0, Counter::RETRY_PACKETS) - again);
    if (counts(0, Counter::RETRY_TIMEOUT) == timeouts) {
      CHECK(resent == 0);
    } else {
      ++rewound;
    }
  }
  CHECK(rewound > 0);
  // ACKs came for requests that were just to be fetched again
  CHECK(counts(0, Counter::RETRY_ACK_OVERTOOK) > 0);
  CHECK(counts(0, Counter::RETRY_NAK_SEQUENCE) == 0);
  CHECK(counts(1, Counter::RX_DROP_OUT_OF_SEQUENCE) == 0);
}

TEST_CASE_METHOD(CountedNics,
                 "(c) READ of 64 KB with the 9th response lost, another READ behind it") {
  Random random;
  const Wish wish;
  Connection link(hosts, wish);
  Region into(hosts.a.pd, 80000), from(hosts.b.pd, 80000);
  randomize(from.buffer, random);
  const size_t rule =
      hosts.world.fabric().add_rule(sim::Rule().from_port(1).psn(wish.a_psn + 8).drop());
  REQUIRE(link.a.read(into.sge(1, 65536), from, 7, 1) == 0);
  REQUIRE(link.a.read(into.sge(70000, 4096), from, 70001, 2) == 0);
  expect_only(link.a.cq, {1, 2});
  CHECK(equal(into, 1, from, 7, 65536));
  CHECK(equal(into, 70000, from, 70001, 4096));
  CHECK(hosts.world.fabric().rule_hits(rule) == 1);
  // only the rest is asked for, and then what was behind it
  CHECK(wire.psns(0, kReadRequest) ==
        std::vector<uint32_t>{wish.a_psn, wish.a_psn + 64, wish.a_psn + 8, wish.a_psn + 64});
  CHECK(counts(0, Counter::RETRY_IMPLIED_NAK) == 1);
  CHECK(counts(0, Counter::RETRY_TIMEOUT) == 0);
  CHECK(counts(0, Counter::RETRY_PACKETS) == 2);
  CHECK(counts(1, Counter::RX_DUPLICATE_REQUEST) == 2);
  // first nothing but the READs' answers
  CHECK(wire.acknowledges(1, kAck) == 0);
  for (uint32_t n = 0; n < 8; ++n) {
    CHECK(wire.sent(1, [&](const sim::FrameInfo& f) { return f.psn == wish.a_psn + n; }) == 1);
  }
  CHECK(wire.sent(1, [&](const sim::FrameInfo& f) { return f.psn == wish.a_psn + 8; }) == 2);
}

TEST_CASE_METHOD(CountedNics,
                 "(d) SEND of three packets to an empty receive queue: RNR, receive, timer") {
  Random random;
  Wish wish;
  wish.min_rnr_timer = 12;  // 0.64 ms
  wish.timeout = 3;         // 33 to 131 µs, much shorter: it must not count meanwhile
  Connection link(hosts, wish);
  Region from(hosts.a.pd, 4096), to(hosts.b.pd, 8192);
  randomize(from.buffer, random);
  REQUIRE(link.a.send(IBV_WR_SEND, from.sge(5, 3000), 1) == 0);
  REQUIRE(link.a.write(from.sge(0, 10), to, 6000, 2) == 0);
  // until the RNR NAK is there
  for (unsigned n = 0; n < 1000 && wire.acknowledges(1, 0x20 | 12) == 0; ++n) hosts.world.run(64);
  REQUIRE(wire.acknowledges(1, 0x20 | 12) == 1);
  ibv_sge sge = to.sge(100, 4000);
  REQUIRE(post_recv(link.b.qp, &sge, 1, 3) == 0);
  expect_only(link.a.cq, {1, 2});
  const ibv_wc received = expect_wc(link.b.cq, 3);
  CHECK(received.byte_len == 3000);
  CHECK(equal(from, 5, to, 100, 3000));
  CHECK(equal(from, 0, to, 6000, 10));

  CHECK(wire.acknowledges(1, 0x20 | 12) == 1);
  CHECK(wire.acknowledges(1, kNakSequence) == 0);
  const uint32_t p = wish.a_psn;
  CHECK(wire.psns(0, kSendFirst) == std::vector<uint32_t>{p, p});
  CHECK(wire.psns(0, kSendMiddle) == std::vector<uint32_t>{p + 1, p + 1});
  CHECK(wire.psns(0, kSendLast) == std::vector<uint32_t>{p + 2, p + 2});
  CHECK(wire.psns(0, kWriteOnly) == std::vector<uint32_t>{p + 3, p + 3});
  CHECK(counts(0, Counter::RETRY_RNR) == 1);
  CHECK(counts(0, Counter::RETRY_TIMEOUT) == 0);
  CHECK(counts(0, Counter::RETRY_NAK_SEQUENCE) == 0);
  // not before 0.64 ms are over, and not much later
  uint64_t nak = 0, first = 0;
  for (const WireFrame& f : wire.all()) {
    if (f.port == 0 && !f.sent && f.info.syndrome == (0x20 | 12)) nak = f.cycle;
    if (f.port == 0 && f.sent && nak != 0 && first == 0) first = f.cycle;
  }
  const double waited =
      static_cast<double>(first - nak) * (chip == sim::ChipConfig::wide ? 4e-6 : 8e-6);
  CHECK(waited >= 0.64);
  CHECK(waited < 0.64 + 0.02);
}

TEST_CASE_METHOD(CountedNics,
                 "(e) remote access error with 200 requests under way; RESET, DESTROY, and again",
                 "[rewind]") {
  Random random;
  Wish wish;
  wish.cap = caps(256, 1);
  wish.entries = 512;
  auto link = std::make_unique<Connection>(hosts, wish);
  Connection other(hosts);  // it must not notice
  Region from(hosts.a.pd, 200 * 64), to(hosts.b.pd, 200 * 64);
  randomize(from.buffer, random);
  constexpr uint64_t kBad = 60;
  for (unsigned round = 0; round < 3; ++round) {
    INFO("round " << round);
    wire.clear();
    std::memset(to.buffer.data(), 0x55, to.buffer.size());
    std::vector<ibv_sge> sges(200);
    std::vector<ibv_send_wr> wrs(200);
    for (size_t n = 0; n < 200; ++n) {
      sges[n] = from.sge(64 * n, 64);
      wrs[n] = send_wr(IBV_WR_RDMA_WRITE, &sges[n], 1, n, n % 10 == 0 ? IBV_SEND_SIGNALED : 0);
      wrs[n].wr.rdma = {to.buffer.address() + 64 * n,
                        n == kBad ? to.mr.rkey() ^ 0x40 : to.mr.rkey()};
      if (n != 0) wrs[n - 1].next = &wrs[n];
    }
    const uint64_t naks = counts(1, Counter::TX_NAK_REMOTE_ACCESS);
    REQUIRE(post(link->a.qp, wrs[0]) == 0);
    for (uint64_t n = 0; n < kBad; n += 10) expect_wc(link->a.cq, n);
    expect_wc(link->a.cq, kBad, IBV_WC_REM_ACCESS_ERR);
    // all others are flushed, unsignaled ones too
    for (uint64_t n = kBad + 1; n < 200; ++n) expect_wc(link->a.cq, n, IBV_WC_WR_FLUSH_ERR);
    no_wc(link->a.cq);
    no_wc(link->b.cq);
    CHECK(equal(from, 0, to, 0, 64 * kBad));
    CHECK(std::all_of(to.buffer.data() + 64 * kBad, to.buffer.data() + to.buffer.size(),
                      [](uint8_t byte) { return byte == 0x55; }));
    CHECK(wire.acknowledges(1, kNakAccess) == 1);
    CHECK(counts(1, Counter::TX_NAK_REMOTE_ACCESS) == naks + 1);
    // requests behind the bad one had left before its NAK came
    size_t left = 0;
    for (const WireFrame& f : wire.all()) {
      if (f.port == 0 && !f.sent && f.info.syndrome == kNakAccess) break;
      if (f.port == 0 && f.sent && f.info.opcode == kWriteOnly) ++left;
    }
    CHECK(left >= kBad + 1 + (chip == sim::ChipConfig::wide ? 40 : 2));
    // posts in ERR flush, too; receives as well
    REQUIRE(link->a.write(from.sge(0, 1), to, 0, 1000) == 0);
    expect_wc(link->a.cq, 1000, IBV_WC_WR_FLUSH_ERR);
    REQUIRE(post_recv(link->b.qp, nullptr, 0, 1001) == 0);
    expect_wc(link->b.cq, 1001, IBV_WC_WR_FLUSH_ERR);

    REQUIRE(other.a.write(from.sge(0, 6400), to, 3200, 7) == 0);
    expect_wc(other.a.cq, 7);
    CHECK(equal(from, 0, to, 3200, 6400));

    if (round == 1) {
      link = nullptr;  // DESTROY; the next one may get the same place
      link = std::make_unique<Connection>(hosts, wish);
    } else {
      link->reconnect();
    }
    REQUIRE(link->a.write(from.sge(0, 12800), to, 0, 8) == 0);
    expect_only(link->a.cq, {8});
    CHECK(equal(from, 0, to, 0, 12800));
    if (round != 2) link->reconnect();
  }
}

TEST_CASE_METHOD(EachChip, "(h) loopback at full rate both ways: nothing is lost or sent twice") {
  RtlHosts hosts(rtl_world(chip));
  const bool wide = chip == sim::ChipConfig::wide;
  constexpr size_t kMessage = 32768;
  constexpr unsigned kMessages = 16;
  Connection loop(hosts.a, hosts.world.nic(0), hosts.a, hosts.world.nic(0), of_4096());
  Streams streams(hosts, kMessage);
  streams.add(loop.a, hosts.a.pd);
  streams.add(loop.b, hosts.a.pd);
  constexpr unsigned kWarm = 4;  // page tables are in the cache then
  static_cast<void>(streams.carry(kWarm, false));
  const uint64_t cycles = streams.carry(kWarm + kMessages, false);
  const double rate = 2.0 * kMessages * kMessage / static_cast<double>(cycles);
  INFO(rate << " bytes of payload per cycle");
  CHECK(rate > 0.9 * (wide ? 64 : 8));  // of the data path
  for (const Counter counter :
       {Counter::RX_DROP_OVERFLOW, Counter::RX_DUPLICATE_REQUEST, Counter::RETRY_TIMEOUT,
        Counter::RETRY_NAK_SEQUENCE, Counter::RETRY_UNDERRUN, Counter::RETRY_PACKETS,
        Counter::TX_NAK_SEQUENCE, Counter::TX_ABORTED_FRAMES}) {
    INFO("counter 0x" << std::hex << static_cast<unsigned>(counter));
    CHECK(hosts.counter(0, counter) == 0);
  }
}

TEST_CASE_METHOD(EachChip, "(h) loopback both ways beside the link, receive buffer nearly full") {
  sim::WorldConfig config = rtl_world(chip);
  // memory takes less than the streams bring
  config.memory.stall_w = 0.6;
  config.memory.stall_aw = 0.6;
  RtlHosts hosts(config);
  Connection loop(hosts.a, hosts.world.nic(0), hosts.a, hosts.world.nic(0), of_4096());
  Connection link(hosts, of_4096());
  // both ways inside NIC 0, and from NIC 1 into it
  Streams streams(hosts, chip == sim::ChipConfig::wide ? 32768 : 16384);
  streams.add(loop.a, hosts.a.pd);
  streams.add(loop.b, hosts.a.pd);
  streams.add(link.b, hosts.b.pd);
  const uint64_t crowded = hosts.counter(0, Counter::RX_BUFFER_CROWDED_CYCLES);
  const uint64_t cycles = streams.carry(16, true);
  // The buffer was at least three quarters full a good part of the time, and nothing was lost
  // for another reason than want of room.
  const uint64_t full = hosts.counter(0, Counter::RX_BUFFER_CROWDED_CYCLES) - crowded;
  INFO(full << " of " << cycles << " cycles crowded, "
            << hosts.counter(0, Counter::RX_DROP_OVERFLOW) << " frames dropped");
  CHECK(20 * full > cycles);
  for (const Counter counter :
       {Counter::RX_DROP_FCS, Counter::RX_DROP_ICRC, Counter::RX_DROP_AFTER_ERROR,
        Counter::RX_DROP_STATE, Counter::RX_DROP_DEST_QP, Counter::TX_ABORTED_FRAMES,
        Counter::QP_ERRORS, Counter::TX_NAK_REMOTE_ACCESS, Counter::TX_NAK_REMOTE_OPERATIONAL}) {
    INFO("counter 0x" << std::hex << static_cast<unsigned>(counter));
    CHECK(hosts.counter(0, counter) == 0);
    CHECK(hosts.counter(1, counter) == 0);
  }
  // only the link's frames may be lost: loopback waits
  CHECK(hosts.counter(1, Counter::RX_DROP_OVERFLOW) == 0);
}

TEST_CASE_METHOD(EachChip,
                 "a program that sees a READ flushed may use its buffer: no data comes behind") {
  sim::WorldConfig config = rtl_world(chip);
  config.memory.stall_w = 0.97;  // data piles up in front of memory; what is read comes fast
  RtlHosts hosts(config, bus_is_virtual());
  Wish wish;
  Connection link(hosts, wish);
  Region into(hosts.a.pd, 65536), from(hosts.b.pd, 65536);
  uint64_t writes = 0;  // of data
  hosts.world.nic(0).nic().memory().set_observer([&](const sim::MemoryAccess& access) {
    writes += access.write && access.addr >= into.buffer.address()
              && access.addr < into.buffer.address() + 65536;
  });
  REQUIRE(link.a.read(into.sge(0, 65536), from, 0, 1) == 0);
  for (int n = 0; n < 1000 && writes == 0; ++n) hosts.world.run(10);
  REQUIRE(writes != 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  link.a.qp.modify(attr, IBV_QP_STATE);
  const uint64_t by_error = writes;
  expect_wc(link.a.cq, 1, IBV_WC_WR_FLUSH_ERR);
  const uint64_t by_flush = writes;
  hosts.world.run(100000);
  CHECK(by_flush > by_error);  // some was on its way
  CHECK(writes == by_flush);
  hosts.world.nic(0).nic().memory().set_observer({});
}

// The same for what is sent: packets that waited when the queue pair failed read nothing behind it.
TEST_CASE_METHOD(EachChip,
                 "a program that sees a WRITE flushed may use its buffer: nothing reads it behind") {
  sim::WorldConfig config = rtl_world(chip);
  config.memory.stall_ar = 0.99;  // reads pile up in front of memory
  RtlHosts hosts(config, bus_is_virtual());
  Wish wish;
  wish.cap = caps(64, 1);
  Connection link(hosts, wish);
  constexpr size_t kBytes = 65536, kMessages = 16;
  Region from(hosts.a.pd, kBytes), to(hosts.b.pd, kBytes);
  uint64_t reads = 0;  // of data
  hosts.world.nic(0).nic().memory().set_observer([&](const sim::MemoryAccess& access) {
    reads += !access.write && access.addr >= from.buffer.address()
             && access.addr < from.buffer.address() + kBytes;
  });
  for (uint64_t n = 0; n < kMessages; ++n) {
    REQUIRE(link.a.write(from.sge(n * 4096, 4096), to, n * 4096, n) == 0);
  }
  for (int n = 0; n < 5000 && reads == 0; ++n) hosts.world.run(10);
  REQUIRE(reads != 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  link.a.qp.modify(attr, IBV_QP_STATE);
  const uint64_t by_error = reads;
  ibv_wc wc = wait_wc(link.a.cq);
  while (wc.status == IBV_WC_SUCCESS) wc = wait_wc(link.a.cq);
  CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
  const uint64_t by_flush = reads;
  for (uint64_t n = wc.wr_id + 1; n < kMessages; ++n) {
    expect_wc(link.a.cq, n, IBV_WC_WR_FLUSH_ERR);
  }
  hosts.world.run(200000);
  CHECK(by_flush > by_error);  // some was on its way
  CHECK(reads == by_flush);
  hosts.world.nic(0).nic().memory().set_observer({});
}

TEST_CASE("a request that fails behind others of which none asked for an acknowledgement") {
  for (const auto chip : configs()) {
    INFO(sim::to_string(chip));
    RtlHosts& hosts = Nics::get(chip).hosts;
    Host a(make_inproc_transport(hosts.world.nic(0)), bus_is_virtual());
    const Counts counts(hosts);
    Random random;
    Wish wish;
    wish.cap = caps(64, 1);
    Region from(a.pd, 8192), to(hosts.b.pd, 8192);
    Region bad(a.pd, 4096);
    randomize(from.buffer, random);
    enum { bad_key, bad_bounds, bus_error, remote_key, kinds };
    for (unsigned kind = 0; kind < kinds; ++kind) {
      for (const size_t at : {1u, 5u, 20u}) {
        INFO("kind " << kind << " at " << at);
        std::memset(to.buffer.data(), 0x55, to.buffer.size());
        Connection link(a, hosts.world.nic(0), hosts.b, hosts.world.nic(1), wish);
        if (kind == bus_error) {
          hosts.world.nic(0).nic().memory().add_error_range(bad.buffer.address(), 4096, true,
                                                            false);
        }
        std::vector<ibv_sge> sges(32);
        std::vector<ibv_send_wr> wrs(32);
        for (size_t n = 0; n < 32; ++n) {
          sges[n] = from.sge(64 * n, 64);
          wrs[n] = send_wr(IBV_WR_RDMA_WRITE, &sges[n], 1, n, n == 0 ? IBV_SEND_SIGNALED : 0);
          wrs[n].wr.rdma = {to.buffer.address() + 64 * n, to.mr.rkey()};
          if (n != 0) wrs[n - 1].next = &wrs[n];
        }
        if (kind == bad_key) sges[at].lkey ^= 0x40;
        if (kind == bad_bounds) sges[at] = {from.buffer.address() + 8192 - 32, 64, from.mr.lkey()};
        if (kind == bus_error) sges[at] = bad.sge(0, 64);
        if (kind == remote_key) wrs[at].wr.rdma.rkey ^= 0x40;
        const uint64_t start = hosts.world.cycle();
        REQUIRE(post(link.a.qp, wrs[0]) == 0);
        expect_wc(link.a.cq, 0);
        expect_wc(link.a.cq, at,
                  kind == bus_error    ? IBV_WC_LOC_QP_OP_ERR
                  : kind == remote_key ? IBV_WC_REM_ACCESS_ERR
                                       : IBV_WC_LOC_PROT_ERR);
        CHECK(hosts.world.cycle() - start < 20000);          // the ACK timer takes 16 million
        for (size_t n = at + 1; n < 32; ++n) expect_wc(link.a.cq, n, IBV_WC_WR_FLUSH_ERR);
        no_wc(link.a.cq);
        CHECK(equal(from, 0, to, 0, 64 * at));
        CHECK(to.buffer[64 * at] == 0x55);
        hosts.world.nic(0).nic().memory().clear_error_ranges();
      }
    }
    CHECK(counts(0, Counter::RETRY_TIMEOUT) == 0);
  }
}
