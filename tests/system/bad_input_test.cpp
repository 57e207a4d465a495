// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Whatever a program or a peer does wrong: no hang, nothing written outside a registered region, a
// status or counter that names the cause, and other queue pairs that do not notice.
#include "rtl_hosts.hpp"

#include "wire/aeth.hpp"
#include "wire/wire_codec.hpp"

#include <functional>
#include <memory>
#include <optional>

using namespace roci;
using namespace roci::test;
using hwif::Counter;
namespace wire = roci::wirecodec;

namespace {

constexpr size_t kPage = 4096;

// A region in the middle of pages that the bus lets the NIC write: what is around it must stay (the
// world's guard sees that, too), and what is inside unless its rights are used.
struct Guarded {
  explicit Guarded(Pd& pd, unsigned access = ALL_ACCESS)
      : buffer(3 * kPage),
        mr(pd, inside(), kBytes, address(), access) {
    std::memset(buffer.data(), 0xa5, buffer.size());
  }
  uint8_t* inside() { return buffer.data() + kStart; }
  uint64_t address() const { return buffer.address() + kStart; }
  ibv_sge sge(size_t offset, size_t bytes) const {
    return {address() + offset, static_cast<uint32_t>(bytes), mr.lkey()};
  }
  // Not a byte was written, inside or around.
  bool untouched() {
    return std::all_of(buffer.data(), buffer.data() + buffer.size(),
                       [](uint8_t byte) { return byte == 0xa5; });
  }
  static constexpr size_t kStart = 1000, kBytes = 8000;
  Buffer buffer;
  Mr mr;
};

wire::Mac mac_of(const sim::WorldNic& nic) {
  wire::Mac mac{};
  for (unsigned b = 0; b < 6; ++b) mac[b] = static_cast<uint8_t>(nic.mac() >> (40 - 8 * b));
  return mac;
}

// The path of frames that claim to come from NIC 1 and go to NIC 0. The source MAC is the tester's own.
wire::Path tester_path(sim::World& world) {
  wire::Path path;
  path.src_mac = {0x02, 0, 0, 0, 0, 0x99};
  path.dst_mac = mac_of(world.nic(0));
  path.sgid = wire::gid_from_mac(mac_of(world.nic(1)));
  path.dgid = wire::gid_from_mac(path.dst_mac);
  return path;
}

// A QP pair that must work whatever happens beside it.
class Witness {
 public:
  explicit Witness(RtlHosts& hosts)
      : link_(hosts), from_(hosts.a.pd, 20000), to_(hosts.b.pd, 20000) {
    randomize(from_.buffer, random_);
  }
  void start() {
    std::memset(to_.buffer.data(), 0, to_.buffer.size());
    REQUIRE(link_.a.write(from_.sge(3, 19000), to_, 5, 1) == 0);
    REQUIRE(link_.a.read(from_.sge(0, 1), to_, 19999, 2) == 0);
  }
  void finish() {
    expect_wc(link_.a.cq, 1);
    expect_wc(link_.a.cq, 2);
    CHECK(std::memcmp(from_.buffer.data() + 3, to_.buffer.data() + 5, 19000) == 0);
  }

 private:
  Random random_;
  Connection link_;
  Region from_, to_;
};

}  // namespace

TEST_CASE_METHOD(CountedNics, "bad keys, bounds, rights and domains, local and remote", "[keys]") {
  Witness witness(hosts);
  Connection link(hosts);
  Host other(make_inproc_transport(hosts.world.nic(1)));
  Pd a_other(hosts.a.context), b_other(hosts.b.context);
  Region from(hosts.a.pd, 16384);
  Region from_other(a_other, 4096);
  Region read_only(hosts.a.pd, 4096, 0);
  Region fine(hosts.b.pd, 4096);
  Guarded to(hosts.b.pd);
  Guarded no_write(hosts.b.pd, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  Guarded no_read(hosts.b.pd, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  Guarded to_other(b_other);
  Guarded foreign(other.pd);
  auto gone = std::make_unique<Guarded>(hosts.b.pd);
  const uint32_t gone_rkey = gone->mr.rkey();
  const uint64_t gone_address = gone->address();
  gone = nullptr;

  const ibv_sge good = from.sge(10, 100);
  struct Case {
    const char* name;
    ibv_wr_opcode opcode;
    ibv_sge sge;
    uint64_t address;
    uint32_t rkey;
    ibv_wc_status status;
    Counter nak;  // sent by NIC 1; RX_FRAMES: none
  };
  const Counter none = Counter::RX_FRAMES;
  const Counter access = Counter::TX_NAK_REMOTE_ACCESS;
  const Case cases[] = {
      {"rkey with another low byte", IBV_WR_RDMA_WRITE, good, to.address(), to.mr.rkey() ^ 1,
       IBV_WC_REM_ACCESS_ERR, access},
      {"one byte behind the end", IBV_WR_RDMA_WRITE, good, to.address() + to.kBytes - 99,
       to.mr.rkey(), IBV_WC_REM_ACCESS_ERR, access},
      {"one byte before the start", IBV_WR_RDMA_WRITE, good, to.address() - 1, to.mr.rkey(),
       IBV_WC_REM_ACCESS_ERR, access},
      {"around the end of the address space", IBV_WR_RDMA_WRITE, good, ~uint64_t{0} - 50,
       to.mr.rkey(), IBV_WC_REM_ACCESS_ERR, access},
      {"second packet out of bounds", IBV_WR_RDMA_WRITE, from.sge(0, 1500),
       to.address() + to.kBytes - 1200, to.mr.rkey(), IBV_WC_REM_ACCESS_ERR, access},
      {"no right to write", IBV_WR_RDMA_WRITE, good, no_write.address(), no_write.mr.rkey(),
       IBV_WC_REM_ACCESS_ERR, access},
      {"no right to read", IBV_WR_RDMA_READ, good, no_read.address(), no_read.mr.rkey(),
       IBV_WC_REM_ACCESS_ERR, access},
      {"READ one byte behind the end", IBV_WR_RDMA_READ, good, to.address() + to.kBytes - 99,
       to.mr.rkey(), IBV_WC_REM_ACCESS_ERR, access},
      {"another protection domain", IBV_WR_RDMA_WRITE, good, to_other.address(),
       to_other.mr.rkey(), IBV_WC_REM_ACCESS_ERR, access},
      {"another function", IBV_WR_RDMA_WRITE, good, foreign.address(), foreign.mr.rkey(),
       IBV_WC_REM_ACCESS_ERR, access},
      {"deregistered", IBV_WR_RDMA_WRITE, good, gone_address, gone_rkey, IBV_WC_REM_ACCESS_ERR,
       access},
      {"lkey that does not exist", IBV_WR_RDMA_WRITE, {from.buffer.address(), 100, 0x123456},
       to.address(), to.mr.rkey(), IBV_WC_LOC_PROT_ERR, none},
      {"local range behind the end", IBV_WR_SEND,
       {from.buffer.address() + 16384 - 99, 100, from.mr.lkey()}, 0, 0, IBV_WC_LOC_PROT_ERR, none},
      {"lkey of another domain", IBV_WR_SEND, from_other.sge(0, 100), 0, 0, IBV_WC_LOC_PROT_ERR,
       none},
      {"READ into memory without local write", IBV_WR_RDMA_READ, read_only.sge(0, 100),
       to.address(), to.mr.rkey(), IBV_WC_LOC_PROT_ERR, none},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    const uint64_t naks = c.nak == none ? 0 : hosts.counter(1, c.nak);
    witness.start();
    // before it a good one, behind it one that must not be carried out
    REQUIRE(link.a.write(good, fine, 0, 1) == 0);
    REQUIRE(link.a.send(c.opcode, c.sge, 2, c.address, c.rkey) == 0);
    REQUIRE(link.a.write(good, to, 0, 3, IBV_SEND_SIGNALED | IBV_SEND_FENCE) == 0);
    expect_wc(link.a.cq, 1);
    expect_wc(link.a.cq, 2, c.status);
    expect_wc(link.a.cq, 3, IBV_WC_WR_FLUSH_ERR);
    no_wc(link.b.cq);
    witness.finish();
    if (c.nak != none) CHECK(hosts.counter(1, c.nak) == naks + 1);
    if (c.sge.length > 1024) {
      // packets before the bad one are written
      CHECK(std::memcmp(to.buffer.data() + to.kStart + to.kBytes - 1200, from.buffer.data(),
                        1024) == 0);
      std::memset(to.buffer.data() + to.kStart + to.kBytes - 1200, 0xa5, 1024);
    }
    for (Guarded* memory : {&to, &no_write, &no_read, &to_other, &foreign}) {
      CHECK(memory->untouched());
    }
    CHECK(std::all_of(read_only.buffer.data(), read_only.buffer.data() + 4096,
                      [](uint8_t byte) { return byte == 0; }));
    link.reconnect();
  }
  CHECK(counts(1, Counter::DMA_WRITE_ERROR) == 0);
  // somebody watched
  CHECK(hosts.world.nic(0).guard()->judged() > 100);
  CHECK(hosts.world.nic(1).guard()->judged() > 100);
}

TEST_CASE_METHOD(SharedNics,
                 "bad receives, access flags of the queue pair, a message that is too long") {
  Witness witness(hosts);
  Connection link(hosts);
  Region from(hosts.a.pd, 8192);
  Guarded to(hosts.b.pd);
  const auto send = [&](ibv_sge receive, ibv_wc_status sender, ibv_wc_status receiver) {
    witness.start();
    REQUIRE(post_recv(link.b.qp, &receive, 1, 7) == 0);
    REQUIRE(post_recv(link.b.qp, nullptr, 0, 8) == 0);
    REQUIRE(link.a.send(IBV_WR_SEND, from.sge(0, 3000), 1) == 0);
    expect_wc(link.a.cq, 1, sender);
    expect_wc(link.b.cq, 7, receiver);
    expect_wc(link.b.cq, 8, IBV_WC_WR_FLUSH_ERR);
    no_wc(link.b.cq);
    witness.finish();
  };
  send({to.address(), 4000, to.mr.lkey() ^ 0x80}, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
  CHECK(to.untouched());
  link.reconnect();
  send(to.sge(0, 2999), IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR);
  CHECK(std::all_of(to.buffer.data() + to.kStart + 2999, to.buffer.data() + 3 * kPage,
                    [](uint8_t byte) { return byte == 0xa5; }));
  std::memset(to.inside(), 0xa5, 2999);

  // access flags off: Invalid Request, not Remote Access (scenario 34)
  link.wish.access = IBV_ACCESS_LOCAL_WRITE;
  for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    link.reconnect();
    witness.start();
    REQUIRE(link.a.rdma(opcode, from.sge(0, 100), to, 0, 1) == 0);
    expect_wc(link.a.cq, 1, IBV_WC_REM_INV_REQ_ERR);
    witness.finish();
    CHECK(to.untouched());
  }
}

TEST_CASE_METHOD(SharedNics, "doorbells of others, for nothing, and beyond the ring") {
  using Page = hwif::csr::DoorbellPage;
  Witness witness(hosts);
  Connection link(hosts);
  Host other(make_inproc_transport(hosts.world.nic(0)));
  const unsigned own = hosts.a.device->limits().function_number;
  const unsigned foreign = other.device->limits().function_number;
  const auto ring = [&](unsigned function, unsigned page, unsigned kind, uint32_t object,
                        uint32_t index) {
    hosts.world.nic(0).bar_write(
        function, static_cast<uint32_t>(Page::ADDRESS + page * Page::STRIDE),
        uint64_t{kind} << 56 | uint64_t{object} << 32 | index);
    hosts.world.run(200);
  };
  const uint32_t qpn = link.a.qp.number();
  const unsigned sq = 1, rq = 2, arm = 5;
  const auto counts = [&](Counter which, const std::function<void()>& act) {
    const uint64_t before = hosts.counter(0, which);
    act();
    CHECK(hosts.counter(0, which) == before + 1);
  };
  witness.start();
  counts(Counter::DOORBELL_ERROR_KIND, [&] { ring(own, 0, 0, qpn, 1); });
  counts(Counter::DOORBELL_ERROR_KIND, [&] { ring(own, 0, 15, qpn, 1); });
  counts(Counter::DOORBELL_ERROR_PAGE, [&] { ring(own, 3, sq, qpn, 1); });
  counts(Counter::DOORBELL_ERROR_PAGE, [&] { ring(foreign, 0, sq, qpn, 1); });
  counts(Counter::DOORBELL_ERROR_PAGE, [&] { ring(foreign, 0, rq, qpn, 1); });
  counts(Counter::DOORBELL_ERROR_OBJECT, [&] { ring(own, 0, sq, qpn ^ 0x800000, 1); });
  counts(Counter::DOORBELL_ERROR_OBJECT, [&] { ring(own, 0, rq, 0x3f, 1); });
  counts(Counter::DOORBELL_ERROR_OBJECT,
         [&] { ring(own, 0, arm, link.a.cq.number() ^ 0x800000, 1); });
  witness.finish();
  no_wc(link.a.cq);

  // the program rings for more than its rings hold: garbage, but only its own. Its completions may
  // be more than its CQ takes; then that is in error, too.
  for (const uint32_t index : {0x30u, 0x8000u}) {
    INFO("index " << index);
    auto victim = std::make_unique<Connection>(hosts);
    ring(own, 0, sq, victim->a.qp.number(), index);
    ring(own, 0, rq, victim->a.qp.number(), index);
    witness.start();
    hosts.world.run(20000);
    witness.finish();
    ibv_wc wc{};
    unsigned completions = 0;
    for (; victim->a.cq.poll(1, &wc) == 1; ++completions) CHECK(wc.status != IBV_WC_SUCCESS);
    CHECK(completions > 0);
    victim = std::make_unique<Connection>(hosts);
    REQUIRE(victim->a.send(IBV_WR_RDMA_WRITE, std::span<ibv_sge>(), 5) == 0);
    expect_wc(victim->a.cq, 5);
    witness.start();
    witness.finish();
  }
}

TEST_CASE_METHOD(SharedNics,
                 "a completion queue that is overfilled while armed ahead of polling: an error, "
                 "nothing lost") {
  Witness witness(hosts);
  CompChannel channel(hosts.a.context);
  Wish wish;
  wish.entries = 16;  // a ring of 32
  wish.cap = caps(64);
  Connection link(hosts, wish, &channel);
  const auto complete = [&](uint64_t first, uint64_t count) {
    for (uint64_t n = first; n < first + count; ++n) {
      REQUIRE(link.a.send(IBV_WR_RDMA_WRITE, std::span<ibv_sge>(), n) == 0);
    }
    hosts.world.run(20000);
    hosts.a.device->poll_events();
  };
  link.a.cq.arm(false);
  complete(0, 20);
  REQUIRE(channel.get() == &link.a.cq);
  link.a.cq.arm(false);
  hosts.world.run(2000);
  hosts.a.device->poll_events();
  REQUIRE_FALSE(readable(channel.fd()));  // not for the 20, which are not polled
  witness.start();
  complete(20, 12);
  REQUIRE(readable(channel.fd()));
  REQUIRE(channel.get() == &link.a.cq);
  CHECK_FALSE(readable(hosts.a.context.async_fd()));
  const uint64_t overflows = hosts.counter(0, Counter::CQ_OVERFLOW);
  link.a.cq.arm(false);
  complete(32, 1);  // one too many
  CHECK(hosts.counter(0, Counter::CQ_OVERFLOW) == overflows + 1);
  bool cq_error = false, qp_fatal = false;
  while (readable(hosts.a.context.async_fd())) {
    const auto event = hosts.a.context.get_async_event();
    cq_error |= event->type == hwif::EqeType::CQ_ERROR && event->cq == &link.a.cq;
    qp_fatal |= event->type == hwif::EqeType::QP_FATAL && event->qp == &link.a.qp;
  }
  CHECK(cq_error);
  CHECK(qp_fatal);
  for (uint64_t n = 0; n < 32; ++n) expect_wc(link.a.cq, n);
  no_wc(link.a.cq);
  witness.finish();
}

TEST_CASE_METHOD(SharedNics, "frames that nobody should send, between good ones") {
  Witness witness(hosts);
  Connection link(hosts);
  Guarded to(hosts.a.pd);
  const wire::Path path = tester_path(hosts.world);
  const uint32_t qpn = link.a.qp.number();
  const auto frame = [&](const std::function<void(wire::Frame&)>& change) {
    wire::Frame f = wire::make_frame(path, wire::op::write_only, qpn, link.wish.b_psn,
                                     wire::Bytes(100, 0x77));
    f.reth = wire::Reth{to.address(), to.mr.rkey(), 100};
    f = wire::finish(f);
    change(f);
    return f;
  };
  struct Case {
    const char* name;
    Counter counter;
    wire::Frame frame;
  };
  const Case cases[] = {
      {"unknown QP", Counter::RX_DROP_DEST_QP,
       wire::with_icrc(frame([](wire::Frame& f) { f.bth.dest_qp = 0x3f; }))},
      {"dead namesake", Counter::RX_DROP_DEST_QP,
       wire::with_icrc(frame([](wire::Frame& f) { f.bth.dest_qp ^= 0x800000; }))},
      {"destination GID of nobody", Counter::RX_DROP_GID,
       wire::with_icrc(frame([](wire::Frame& f) { f.grh.dgid[15] ^= 1; }))},
      {"source GID of another", Counter::RX_DROP_GID,
       wire::with_icrc(frame([](wire::Frame& f) { f.grh.sgid[15] ^= 0x10; }))},
      {"bad ICRC", Counter::RX_DROP_ICRC, frame([](wire::Frame& f) { f.icrc ^= 4; })},
      {"GRH of version 4", Counter::RX_DROP_IPVER,
       wire::with_icrc(frame([](wire::Frame& f) { f.grh.ip_version = 4; }))},
      {"next header UDP", Counter::RX_DROP_NXTHDR,
       wire::with_icrc(frame([](wire::Frame& f) { f.grh.next_header = 0x11; }))},
      {"PayLen beyond the frame", Counter::RX_DROP_PAYLEN,
       frame([](wire::Frame& f) { f.grh.pay_len = static_cast<uint16_t>(f.grh.pay_len + 4); })},
      {"TVer 1", Counter::RX_DROP_TVER,
       wire::with_icrc(frame([](wire::Frame& f) { f.bth.tver = 1; }))},
      {"opcode of nobody", Counter::RX_DROP_OPCODE,
       wire::with_icrc(frame([](wire::Frame& f) { f.bth.opcode = 0x1f; }))},
      {"UC to an RC queue pair", Counter::RX_DROP_OPCODE,
       wire::with_icrc(frame([](wire::Frame& f) { f.bth.opcode = 0x2a; }))},
      {"P_Key of others", Counter::RX_DROP_PKEY,
       wire::with_icrc(frame([](wire::Frame& f) { f.bth.pkey = 0x8123; }))},
      {"the reserved VLAN", Counter::RX_DROP_VLAN, frame([](wire::Frame& f) {
         f.eth.vlan = wire::VlanTag{0, false, 0xfff};
       })},
      {"a VLAN of others", Counter::RX_DROP_VLAN, frame([](wire::Frame& f) {
         f.eth.vlan = wire::VlanTag{0, false, 5};
       })},
      {"another MAC", Counter::RX_DROP_MAC,
       frame([](wire::Frame& f) { f.eth.dst[0] = 0x33; })},
      {"another Ethertype", Counter::RX_DROP_ETHERTYPE,
       frame([](wire::Frame& f) { f.eth.ethertype = 0x0800; })},
      {"ACK of nothing", Counter::RX_DROP_RESPONSE,
       wire::finish(wire::make_ack(path, qpn, link.wish.a_psn + 5, 0x1f, 0))},
      {"READ response of nothing", Counter::RX_DROP_RESPONSE, [&] {
         wire::Frame f = wire::make_frame(path, wire::op::read_resp_only, qpn, link.wish.a_psn,
                                          wire::Bytes(64, 0x66));
         f.aeth = wire::Aeth{0x1f, 1};
         return wire::finish(f);
       }()},
      {"after a gap", Counter::RX_DROP_OUT_OF_SEQUENCE,
       wire::with_icrc(frame([](wire::Frame& f) { f.bth.psn += 3; }))},
      {"duplicate", Counter::RX_DUPLICATE_REQUEST,
       wire::with_icrc(frame([](wire::Frame& f) { f.bth.psn -= 1; }))},
  };
  witness.start();
  for (const Case& c : cases) {
    INFO(c.name);
    const uint64_t before = hosts.counter(0, c.counter);
    hosts.world.fabric().port(2).send(wire::encode(c.frame));
    hosts.world.run(2000);
    CHECK(hosts.counter(0, c.counter) == before + 1);
  }
  // every length there is, cut anywhere: nothing of it may stop the receive path
  const wire::Bytes whole = wire::encode(frame([](wire::Frame&) {}));
  for (size_t bytes = 14; bytes < whole.size(); bytes += 3) {
    hosts.world.fabric().port(2).send(std::span(whole).first(bytes));
  }
  hosts.world.fabric().port(2).send(wire::Bytes(9600, 0x5a));
  hosts.world.run(20000);
  // a good packet in a frame that is longer than any may be, by one byte or by thousands
  const Counts counts(hosts);
  for (const size_t bytes : {14 + 4177, 9600}) {
    wire::Bytes padded = whole;
    padded.resize(bytes, 0x5a);
    hosts.world.fabric().port(2).send(padded);
    hosts.world.run(20000);
  }
  CHECK(counts(0, Counter::RX_DROP_OVERSIZE) == 2);
  CHECK(counts(0, Counter::RX_DROP_PAYLEN) == 0);
  CHECK(counts(0, Counter::REQUESTS_WRITE) == 0);
  witness.finish();
  CHECK(to.untouched());
  // the queue pair is well, and a good frame of the tester is carried out
  no_wc(link.a.cq);
  hosts.world.fabric().port(2).send(whole);
  hosts.world.run(5000);
  CHECK(std::all_of(to.inside(), to.inside() + 100, [](uint8_t byte) { return byte == 0x77; }));
  REQUIRE(link.a.send(IBV_WR_RDMA_WRITE, std::span<ibv_sge>(), 5) == 0);
  expect_wc(link.a.cq, 5);
}

// The ring is the program's memory, and what is in it is read again when something was lost.
TEST_CASE_METHOD(SharedNics, "a program that writes over requests which it has posted",
                 "[ring]") {
  sim::World& world = hosts.world;
  Random random;
  Witness witness(hosts);
  // on the bus as in the process, so that the ring can be found by the address that the NIC reads
  DeviceOptions direct;
  direct.dma = DmaPolicy::DIRECT;
  Host a(make_inproc_transport(world.nic(0)), direct);
  constexpr uint32_t kBytes = 24000;
  Region into(a.pd, kBytes), from(hosts.b.pd, kBytes);
  static_assert(hwif::SqWqeControl::opcode::AT == 0 && hwif::SqWqeControl::length::AT == 64);
  const auto lengths = [](uint8_t* wqe, uint32_t message, uint32_t sge) {
    std::memcpy(wqe + 8, &message, 4);
    std::memcpy(wqe + 32 + 8, &sge, 4);
  };
  // what the program makes of a READ or WRITE of kBytes from one SGE
  const std::pair<const char*, std::function<void(uint8_t*)>> changes[] = {
      {"nothing", [](uint8_t* w) { std::memset(w + 1, 0, 63); w[2] = 1; }},
      {"shorter", [&](uint8_t* w) { lengths(w, 1, 1); }},
      {"longer", [&](uint8_t* w) { lengths(w, 3 * kBytes, 3 * kBytes); }},
      {"SGE shorter", [&](uint8_t* w) { lengths(w, kBytes, 7); }},
      {"another operation",
       [](uint8_t* w) {
         w[0] ^= static_cast<uint8_t>(hwif::WrOpcode::WRITE) ^
                 static_cast<uint8_t>(hwif::WrOpcode::READ);
       }},
      {"noise", [&](uint8_t* w) {
         for (int n = 0; n < 64; ++n) w[n] = static_cast<uint8_t>(random());
       }}};
  for (const auto opcode : {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE}) {
    for (const auto& [name, change] : changes) {
      for (unsigned round = 0; round < 2; ++round) {
        INFO(name << (opcode == IBV_WR_RDMA_READ ? ", READ" : ", WRITE") << ", round " << round);
        Wish wish;
        wish.timeout = 1;                        // 8 us: shorter than the exchange
        wish.retry_cnt = 7;
        Connection link(a, world.nic(0), hosts.b, world.nic(1), wish);
        sim::HostMemory& memory = world.nic(0).nic().memory();
        std::optional<uint64_t> ring;
        memory.set_observer([&](const sim::MemoryAccess& access) {
          if (!access.write && !ring) ring = access.addr;
        });
        const size_t rule = world.fabric().add_rule(
            sim::Rule().from_port(1).dest_qp(link.a.qp.number()).times(1 + round % 2).drop());
        for (uint64_t id : {1, 2, 3}) {
          REQUIRE(link.a.rdma(opcode, into.sge(0, kBytes), from, 0, id) == 0);
        }
        for (unsigned n = 0; n < 2000 && !ring; ++n) world.run(1);
        memory.set_observer({});
        REQUIRE(ring);
        auto* wqe = reinterpret_cast<uint8_t*>(*ring);
        REQUIRE(wqe[0] == static_cast<uint8_t>(opcode == IBV_WR_RDMA_READ
                                                   ? hwif::WrOpcode::READ
                                                   : hwif::WrOpcode::WRITE));
        world.run(300 + random() % 1500);     // requests and answers are on their way
        change(wqe);
        witness.start();
        witness.finish();                        // nobody else notices
        world.run(5000);
        ibv_wc wc{};
        while (link.a.cq.poll(1, &wc) == 1) {    // whatever they are, they are of its requests
          CHECK(wc.wr_id >= 1);
          CHECK(wc.wr_id <= 3);
        }
        world.fabric().remove_rule(rule);
      }
    }
  }
}

TEST_CASE_METHOD(SharedNics,
                 "requests that a queue pair does not answer: NAK 0x61, and nothing happens") {
  Witness witness(hosts);
  Connection link(hosts);
  Guarded to(hosts.a.pd);
  const wire::Path path = tester_path(hosts.world);
  const auto request = [&](uint8_t operation, size_t bytes = 0) {
    wire::Frame f = wire::make_frame(path, operation, link.a.qp.number(), link.wish.b_psn,
                                     wire::Bytes(bytes, 0x44));
    f.bth.ack_req = true;
    if (f.reth) f.reth = wire::Reth{to.address(), to.mr.rkey(), static_cast<uint32_t>(bytes)};
    if (f.atomiceth) f.atomiceth = wire::AtomicEth{to.address() & ~7ull, to.mr.rkey(), 1, 2};
    if (f.ieth) f.ieth = wire::Ieth{to.mr.rkey()};
    return f;
  };
  struct Case {
    const char* name;
    wire::Frame frame;
  };
  const auto cases = [&] {
    wire::Frame too_long = request(wire::op::write_only, 64);
    too_long.reth->dma_len = 65;
    wire::Frame huge = request(wire::op::read_request);
    huge.reth->dma_len = 0x80000001;
    wire::Frame last = request(wire::op::send_last, 10);
    wire::Frame first = request(wire::op::send_first, 1000);
    return std::vector<Case>{{"SEND with invalidate", request(wire::op::send_only_inv, 8)},
                             {"compare and swap", request(wire::op::cmp_swap)},
                             {"fetch and add", request(wire::op::fetch_add)},
                             {"WRITE of another length than said", too_long},
                             {"READ of more than 2^31", huge},
                             {"LAST without FIRST", last},
                             {"FIRST that is no full packet", first}};
  };
  const size_t count = cases().size();
  for (size_t n = 0; n < count; ++n) {
    const Case c = cases()[n];
    INFO(c.name);
    const uint64_t naks = hosts.counter(0, Counter::TX_NAK_INVALID_REQUEST);
    witness.start();
    REQUIRE(post_recv(link.a.qp, nullptr, 0, 1) == 0);
    wire.clear();
    hosts.world.fabric().port(2).send(wire::build(c.frame));
    expect_wc(link.a.cq, 1, IBV_WC_WR_FLUSH_ERR);
    witness.finish();
    CHECK(hosts.counter(0, Counter::TX_NAK_INVALID_REQUEST) == naks + 1);
    CHECK(wire.acknowledges(0, 0x61) == 1);
    CHECK(wire.sent(0, [&](const sim::FrameInfo& f) {
      return f.syndrome == 0x61 && f.psn == link.wish.b_psn;
    }) == 1);
    hosts.a.device->poll_events();
    REQUIRE(readable(hosts.a.context.async_fd()));
    const auto event = hosts.a.context.get_async_event();
    REQUIRE(event);
    CHECK(event->type == hwif::EqeType::QP_REQ_ERROR);
    CHECK(event->qp == &link.a.qp);
    CHECK(to.untouched());
    link.reconnect();
  }
}

TEST_CASE_METHOD(CountedNics,
                 "RESET, DESTROY, deregistration and a program's end while everything is under way") {
  Random random;
  Witness witness(hosts);
  Wish wish;
  wish.timeout = 5;
  wish.retry_cnt = 1;
  wish.mtu = IBV_MTU_4096;
  auto host = std::make_unique<Host>(make_inproc_transport(hosts.world.nic(0)));
  for (unsigned round = 0; round < 6; ++round) {
    INFO("round " << round);
    auto link = std::make_unique<Connection>(*host, hosts.world.nic(0), hosts.b,
                                             hosts.world.nic(1), wish);
    auto near = std::make_unique<Region>(host->pd, 256 * 1024);
    auto far = std::make_unique<Region>(hosts.b.pd, 256 * 1024);
    witness.start();
    for (uint64_t n = 0; n < 12; ++n) {
      REQUIRE(link->a.rdma(n % 2 == 0 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                           near->sge(n * 16384, 16384), *far, n * 16384, n) == 0);
      REQUIRE(link->b.rdma(n % 2 == 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                           far->sge(n * 16384, 16384), *near, n * 16384, n) == 0);
    }
    hosts.world.run(random.between(100, 6000));
    switch (round) {
      case 0:
        link->a.reset();
        break;
      case 1:
        link->a.qp.destroy();
        break;
      case 2:
        near->mr.destroy();
        break;
      case 3:
        far->mr.destroy();
        break;
      case 4: {
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_ERR;
        link->a.qp.modify(attr, IBV_QP_STATE);
        break;
      }
      default:
        break;
    }
    if (round < 2) {
      // no completion of it is left, and its memory does not change any more
      no_wc(link->a.cq);
      std::memset(near->buffer.data(), 0x3c, near->buffer.size());
      hosts.world.run(30000);
      const auto* first = near->buffer.data();
      CHECK(std::all_of(first, first + near->buffer.size(),
                        [](uint8_t byte) { return byte == 0x3c; }));
    }
    witness.finish();
    if (round == 5) {
      // the whole program: QPs, regions, memory
      link = nullptr;
      near = nullptr;
      host = nullptr;
      hosts.world.run(400000);
      host = std::make_unique<Host>(make_inproc_transport(hosts.world.nic(0)));
    }
  }
  // nobody touched memory that was taken away
  for (unsigned nic = 0; nic < 2; ++nic) {
    CHECK(counts(nic, Counter::DMA_READ_ERROR) == 0);
    CHECK(counts(nic, Counter::DMA_WRITE_ERROR) == 0);
  }
  witness.start();
  witness.finish();
}
