// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Every operation on whole NICs: sizes, alignments, path MTUs, pieces, inline, flags, events, keys,
// translated memory, loopback, several programs. No losses: those are in scenario_test and the soak.
// Cases tagged [scatter] have scattered memory of their own; ROCI_DMA=scatter gives it to all.
#include "rtl_hosts.hpp"

#include <algorithm>
#include <numeric>
#include <random>

using namespace roci;
using namespace roci::test;

namespace {

constexpr ibv_wr_opcode kOperations[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                                         IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};

bool takes_receive(ibv_wr_opcode opcode) {
  return opcode != IBV_WR_RDMA_WRITE && opcode != IBV_WR_RDMA_READ;
}

// Regions of both ends. Messages of `a` go from a.from (or for READ come from b.to) to b.to (a.from).
struct Memory {
  Memory(Host& a, Host& b, size_t bytes) : from(a.pd, bytes), to(b.pd, bytes) {}
  Region from, to;
};

// One message, and where it is.
struct Job {
  ibv_wr_opcode opcode;
  size_t bytes;
  size_t from, to;  // offsets in the two regions
};

// Carries jobs out, as many at once as the queues take, and checks all completions, and then every byte
// of both regions.
void carry_out(Connection& link, Memory& memory, const std::vector<Job>& jobs, Random& random) {
  randomize(memory.from.buffer, random);
  randomize(memory.to.buffer, random);
  std::vector<uint8_t> from(memory.from.buffer.data(),
                            memory.from.buffer.data() + memory.from.buffer.size());
  std::vector<uint8_t> to(memory.to.buffer.data(),
                          memory.to.buffer.data() + memory.to.buffer.size());
  std::vector<uint64_t> receives;
  for (size_t n = 0; n < jobs.size(); ++n) {
    if (takes_receive(jobs[n].opcode)) receives.push_back(n);
  }
  size_t posted = 0, posted_receives = 0, sent = 0, received = 0;
  unsigned idle = 0;
  while (sent < jobs.size() || received < receives.size()) {
    while (posted_receives < receives.size()) {
      const Job& job = jobs[receives[posted_receives]];
      // a receive of a WRITE_IMM has no memory; of a SEND a bit more than needed
      ibv_sge sge = memory.to.sge(job.to, job.bytes);
      const int count = job.opcode == IBV_WR_RDMA_WRITE_WITH_IMM || job.bytes == 0 ? 0 : 1;
      if (post_recv(link.b.qp, &sge, count, receives[posted_receives]) != 0) break;
      ++posted_receives;
    }
    while (posted < jobs.size()) {
      const Job& job = jobs[posted];
      // its receive is posted first: no RNR here
      if (takes_receive(job.opcode) &&
          (posted_receives == 0 || receives[posted_receives - 1] < posted)) {
        break;
      }
      if (link.a.rdma(job.opcode, memory.from.sge(job.from, job.bytes), memory.to, job.to, posted,
                      IBV_SEND_SIGNALED, static_cast<uint32_t>(0x1000 + posted)) != 0) {
        break;
      }
      ++posted;
    }
    ibv_wc wc{};
    ++idle;
    if (link.a.cq.poll(1, &wc) == 1) {
      idle = 0;
      INFO("message " << sent << ", opcode " << jobs[sent].opcode << ", " << jobs[sent].bytes
                      << " bytes from " << jobs[sent].from << " to " << jobs[sent].to);
      REQUIRE(wc.status == IBV_WC_SUCCESS);
      REQUIRE(wc.wr_id == sent);
      if (jobs[sent].opcode == IBV_WR_RDMA_READ) REQUIRE(wc.byte_len == jobs[sent].bytes);
      ++sent;
    }
    if (link.b.cq.poll(1, &wc) == 1) {
      idle = 0;
      REQUIRE(received < receives.size());
      const uint64_t number = receives[received];
      const Job& job = jobs[number];
      INFO("receive of message " << number << ", opcode " << job.opcode << ", " << job.bytes);
      REQUIRE(wc.status == IBV_WC_SUCCESS);
      REQUIRE(wc.wr_id == number);
      REQUIRE(wc.byte_len == job.bytes);
      const bool imm = job.opcode != IBV_WR_SEND;
      REQUIRE(((wc.wc_flags & IBV_WC_WITH_IMM) != 0) == imm);
      if (imm) REQUIRE(wc.imm_data == 0x1000 + number);
      REQUIRE(wc.opcode == (job.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM
                                                                      : IBV_WC_RECV));
      ++received;
    }
    INFO(sent << " sent, " << received << " received of " << jobs.size());
    REQUIRE(idle < 200000);
  }
  for (const Job& job : jobs) {
    if (job.opcode == IBV_WR_RDMA_READ) {
      std::memcpy(from.data() + job.from, memory.to.buffer.data() + job.to, job.bytes);
    } else {
      std::memcpy(to.data() + job.to, from.data() + job.from, job.bytes);
    }
  }
  const auto first_wrong = [](const std::vector<uint8_t>& want, Buffer& is) {
    return std::mismatch(want.begin(), want.end(), is.data()).first - want.begin();
  };
  CHECK(first_wrong(from, memory.from.buffer) == static_cast<ptrdiff_t>(from.size()));
  CHECK(first_wrong(to, memory.to.buffer) == static_cast<ptrdiff_t>(to.size()));
}

// Places messages one behind the other at random alignments, with gaps that must stay as they are.
class Places {
 public:
  Places(size_t bytes, Random& random) : bytes_(bytes), random_(random) {}
  Job next(ibv_wr_opcode opcode, size_t bytes) {
    const Job job{opcode, bytes, from_ + random_.between(1, 70), to_ + random_.between(1, 70)};
    from_ = job.from + bytes;
    to_ = job.to + bytes;
    REQUIRE(std::max(from_, to_) < bytes_);
    return job;
  }

 private:
  size_t bytes_;
  Random& random_;
  size_t from_ = 0, to_ = 0;
};

}  // namespace

TEST_CASE_METHOD(SharedNics,
                 "every operation at every path MTU, sizes around packets and beats",
                 "[scatter][sizes]") {
  Random random;
  constexpr size_t kBytes = 400000;
  Memory direct(hosts.a, hosts.b, kBytes);
  Memory scattered(nics.a_scattered(), nics.b_scattered(), kBytes);
  if (hosts.b.device->options().dma == DmaPolicy::DIRECT) CHECK(direct.to.mr.contiguous());
  CHECK_FALSE(scattered.to.mr.contiguous());
  for (const ibv_mtu mtu :
       {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
    const bool scatter = mtu == IBV_MTU_512 || mtu == IBV_MTU_4096;
    INFO("path MTU " << (128u << mtu) << (scatter ? ", scattered memory" : ""));
    Wish wish;
    wish.mtu = mtu;
    Connection link(scatter ? nics.a_scattered() : hosts.a, hosts.world.nic(0),
                    scatter ? nics.b_scattered() : hosts.b, hosts.world.nic(1), wish);
    Places places(kBytes, random);
    std::vector<Job> jobs;
    const size_t m = 128u << mtu;
    for (const ibv_wr_opcode opcode : kOperations) {
      for (const size_t bytes : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{4}, size_t{5},
                                 size_t{63}, size_t{64}, size_t{65}, m - 1, m, m + 1, 2 * m,
                                 2 * m + random.between(1, m)}) {
        jobs.push_back(places.next(opcode, bytes));
      }
    }
    std::shuffle(jobs.begin(), jobs.end(), std::mt19937(static_cast<unsigned>(random())));
    carry_out(link, scatter ? scattered : direct, jobs, random);
  }
}

TEST_CASE_METHOD(SharedNics, "every alignment of both ends", "[sizes]") {
  Random random;
  const size_t beat = chip == sim::ChipConfig::wide ? 64 : 8;
  Memory memory(hosts.a, hosts.b, 3 * beat * (beat + 1));
  Connection link(hosts);
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ}) {
    std::vector<Job> jobs;
    for (size_t n = 0; n < beat; ++n) {
      jobs.push_back({opcode, beat + random.between(0, beat), 3 * beat * n + n,
                      3 * beat * n + (n * 5 + 3) % beat});
    }
    carry_out(link, memory, jobs, random);
  }
}

// To and fro at once. `narrow` simulates eight times the cycles, so its SEND is smaller.
TEST_CASE_METHOD(EachChip, "16 MiB", "[scatter][long]") {
  DeviceOptions options;
  options.dma = DmaPolicy::SCATTER;
  RtlHosts hosts(rtl_world(chip), options);
  Random random;
  Wish wish;
  wish.mtu = IBV_MTU_4096;
  Connection link(hosts, wish);
  const size_t big = 16 << 20;
  Memory memory(hosts.a, hosts.b, 2 * big + 8192);
  carry_out(link, memory, {{IBV_WR_RDMA_READ, big, big + 4001, big + 7},
                           {IBV_WR_RDMA_WRITE, big, 7, 4}}, random);
  const size_t send = chip == sim::ChipConfig::wide ? big : 1 << 20;
  carry_out(link, memory, {{IBV_WR_SEND, send, 13, 62}}, random);
}

TEST_CASE_METHOD(SharedNics, "as many pieces as there may be, pieces of nothing, inline") {
  Random random;
  const DeviceLimits& limits = hosts.a.device->limits();
  CHECK(limits.max_sge == 15);
  CHECK(limits.max_sge_read == (chip == sim::ChipConfig::wide ? 4 : 1));
  Wish wish;
  wish.cap = {8, 8, limits.max_sge, limits.max_sge, limits.max_inline};
  Connection link(hosts, wish);
  Memory memory(hosts.a, hosts.b, 80000);
  for (unsigned round = 0; round < 6; ++round) {
    INFO("round " << round);
    randomize(memory.from.buffer, random);
    std::memset(memory.to.buffer.data(), 0xee, memory.to.buffer.size());
    const auto pieces = [&](Region& region, unsigned count, size_t max) {
      std::vector<ibv_sge> sges;
      size_t at = random.between(0, 63);
      for (unsigned n = 0; n < count; ++n) {
        const size_t bytes = n % 5 == 4 ? 0 : random.between(1, max);
        sges.push_back(region.sge(at, bytes));
        at += bytes + random.between(1, 100);
      }
      return sges;
    };
    const auto total = [](const std::vector<ibv_sge>& sges) {
      return std::accumulate(sges.begin(), sges.end(), size_t{0},
                             [](size_t sum, const ibv_sge& s) { return sum + s.length; });
    };
    // gathers what an SGE list covers
    const auto gathered = [](const std::vector<ibv_sge>& sges) {
      std::vector<uint8_t> bytes;
      for (const ibv_sge& s : sges) {
        const auto* p = reinterpret_cast<const uint8_t*>(s.addr);
        bytes.insert(bytes.end(), p, p + s.length);
      }
      return bytes;
    };
    // SEND of 15 pieces into 15 pieces
    std::vector<ibv_sge> to = pieces(memory.to, limits.max_sge, 900);
    to.push_back(to.back());
    to.pop_back();
    std::vector<ibv_sge> from = pieces(memory.from, limits.max_sge, 400);
    while (total(from) > total(to)) from = pieces(memory.from, limits.max_sge, 400);
    REQUIRE(post_recv(link.b.qp, to.data(), static_cast<int>(to.size()), 1) == 0);
    REQUIRE(link.a.send(IBV_WR_SEND, from, 2) == 0);
    expect_wc(link.a.cq, 2);
    CHECK(expect_wc(link.b.cq, 1).byte_len == total(from));
    auto received = gathered(to);
    auto sent = gathered(from);
    CHECK(std::equal(sent.begin(), sent.end(), received.begin()));
    CHECK(std::all_of(received.begin() + static_cast<ptrdiff_t>(sent.size()), received.end(),
                      [](uint8_t byte) { return byte == 0xee; }));

    // WRITE of 15 pieces
    from = pieces(memory.from, limits.max_sge, 700);
    sent = gathered(from);
    REQUIRE(link.a.write(from, memory.to, 20001, 3) == 0);
    expect_wc(link.a.cq, 3);
    CHECK(std::memcmp(memory.to.buffer.data() + 20001, sent.data(), sent.size()) == 0);
    CHECK(memory.to.buffer[20000] == 0xee);
    CHECK(memory.to.buffer[20001 + sent.size()] == 0xee);

    // READ into as many pieces as it may have
    randomize(memory.to.buffer, random);
    from = pieces(memory.from, limits.max_sge_read, 3000);
    REQUIRE(link.a.read(from, memory.to, 5, 4) == 0);
    expect_wc(link.a.cq, 4);
    received = gathered(from);
    CHECK(std::memcmp(memory.to.buffer.data() + 5, received.data(), received.size()) == 0);

    // inline: memory without a key, and it may change at once
    std::vector<uint8_t> text(random.between(1, link.a.qp.cap().max_inline_data));
    for (uint8_t& byte : text) byte = static_cast<uint8_t>(random());
    const std::vector<uint8_t> copy = text;
    const ibv_sge keyless{reinterpret_cast<uintptr_t>(text.data()),
                          static_cast<uint32_t>(text.size()), 0xdead};
    REQUIRE(link.a.write(keyless, memory.to, 33, 5, IBV_SEND_SIGNALED | IBV_SEND_INLINE) == 0);
    std::fill(text.begin(), text.end(), uint8_t{0});
    expect_wc(link.a.cq, 5);
    CHECK(std::memcmp(memory.to.buffer.data() + 33, copy.data(), copy.size()) == 0);
  }
}

TEST_CASE_METHOD(SharedNics, "only signaled requests complete, in order") {
  Random random;
  Wish wish;
  wish.cap = caps(32);
  Connection link(hosts, wish);
  Memory memory(hosts.a, hosts.b, 65536);
  for (unsigned round = 0; round < 4; ++round) {
    std::vector<uint64_t> wanted;
    randomize(memory.from.buffer, random);
    for (uint64_t n = 0; n < 32; ++n) {
      const bool signaled = n == 31 || random.between(0, 3) == 0;
      if (signaled) wanted.push_back(n);
      REQUIRE(link.a.rdma(n % 3 == 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                          memory.from.sge(n * 2048, 1 + n * 60), memory.to, n * 2048, n,
                          signaled ? unsigned{IBV_SEND_SIGNALED} : 0u) == 0);
    }
    for (const uint64_t n : wanted) expect_wc(link.a.cq, n);
    no_wc(link.a.cq);
    for (uint64_t n = 0; n < 32; ++n) {
      CHECK(std::memcmp(memory.from.buffer.data() + n * 2048,
                        memory.to.buffer.data() + n * 2048, 1 + n * 60) == 0);
    }
  }
}

TEST_CASE_METHOD(SharedNics,
                 "a fenced SEND waits for the READ before it, an unfenced one does not") {
  Connection link(hosts);
  Memory memory(hosts.a, hosts.b, 65536);
  for (const bool fence : {false, true}) {
    INFO("fence " << fence);
    wire.clear();
    ibv_sge sge = memory.to.sge(0, 64);
    REQUIRE(post_recv(link.b.qp, &sge, 1, 1) == 0);
    REQUIRE(link.a.read(memory.from.sge(0, 20000), memory.to, 1000, 2) == 0);
    REQUIRE(link.a.send(IBV_WR_SEND, memory.from.sge(0, 64), 3, 0, 0,
                        IBV_SEND_SIGNALED | (fence ? unsigned{IBV_SEND_FENCE} : 0u)) == 0);
    expect_wc(link.a.cq, 2);
    expect_wc(link.a.cq, 3);
    expect_wc(link.b.cq, 1);
    uint64_t last_response = 0, send = 0;
    for (const WireFrame& f : wire.all()) {
      if (!f.sent && f.port == 0 && f.info.opcode == 0x0f) last_response = f.cycle;
      if (f.sent && f.port == 0 && f.info.opcode == 0x04) send = f.cycle;
    }
    REQUIRE(last_response != 0);
    REQUIRE(send != 0);
    CHECK((send > last_response) == fence);
  }
}

TEST_CASE_METHOD(SharedNics, "completion events: any, and solicited only") {
  CompChannel channel(hosts.b.context);
  Connection link(hosts, {}, nullptr, &channel);
  Memory memory(hosts.a, hosts.b, 4096);
  const auto message = [&](unsigned flags) {
    REQUIRE(post_recv(link.b.qp, nullptr, 0, 1) == 0);
    REQUIRE(link.a.rdma(IBV_WR_RDMA_WRITE_WITH_IMM, memory.from.sge(0, 100), memory.to, 0, 2,
                        IBV_SEND_SIGNALED | flags) == 0);
    expect_wc(link.a.cq, 2);
  };
  const auto settle = [&] {
    hosts.world.run(5000);
    hosts.b.device->poll_events();
  };
  const auto take = [&] { REQUIRE(channel.get() == &link.b.cq); };

  message(0);  // not armed
  CHECK_FALSE(readable(channel.fd()));
  expect_wc(link.b.cq, 1);

  link.b.cq.arm(false);
  settle();
  CHECK_FALSE(readable(channel.fd()));
  message(0);
  settle();
  CHECK(readable(channel.fd()));
  take();
  expect_wc(link.b.cq, 1);
  message(0);  // one event per arm
  settle();
  CHECK_FALSE(readable(channel.fd()));
  expect_wc(link.b.cq, 1);

  link.b.cq.arm(true);
  message(0);
  settle();
  CHECK_FALSE(readable(channel.fd()));
  message(IBV_SEND_SOLICITED);
  settle();
  CHECK(readable(channel.fd()));
  take();
  expect_wc(link.b.cq, 1);
  expect_wc(link.b.cq, 1);

  // armed while an unpolled completion is there: at once
  message(0);
  link.b.cq.arm(false);
  settle();
  CHECK(readable(channel.fd()));
  take();
  expect_wc(link.b.cq, 1);
}

TEST_CASE_METHOD(SharedNics, "several registrations of one buffer", "[scatter]") {
  for (const bool scatter : {false, true}) {
    Host& a = scatter ? nics.a_scattered() : hosts.a;
    Host& b = scatter ? nics.b_scattered() : hosts.b;
    Random random;
    Connection link(a, hosts.world.nic(0), b, hosts.world.nic(1));
    Region from(a.pd, 20000);
    Buffer buffer(20000);
    Mr whole(b.pd, buffer.data(), 20000, buffer.address(), ALL_ACCESS);
    Mr part(b.pd, buffer.data() + 5001, 9000, 0x7000, ALL_ACCESS);
    auto again = std::make_unique<Mr>(b.pd, buffer.data(), 20000, buffer.address() + (1u << 20),
                                      ALL_ACCESS);
    randomize(from.buffer, random);
    const auto write = [&](uint64_t va, uint32_t rkey, size_t bytes, size_t offset) {
      REQUIRE(link.a.send(IBV_WR_RDMA_WRITE, from.sge(11, bytes), 1, va, rkey) == 0);
      expect_wc(link.a.cq, 1);
      CHECK(std::memcmp(buffer.data() + offset, from.buffer.data() + 11, bytes) == 0);
      randomize(from.buffer, random);
    };
    write(buffer.address() + 3, whole.rkey(), 10000, 3);
    write(0x7000, part.rkey(), 9000, 5001);
    write(0x7000 + 4097, part.rkey(), 10, 5001 + 4097);
    write(buffer.address() + (1u << 20) + 12000, again->rkey(), 8000, 12000);
    again.reset();  // the others stay
    // from one domain to another, and others come after it: it stays where it is
    Pd other(b.context);
    Mr moved(other, buffer.data(), 20000, 0x100000, ALL_ACCESS);
    moved.reregister(IBV_REREG_MR_CHANGE_PD, &b.pd, nullptr, 0, 0);
    Region next(b.pd, 20000);
    write(0x100000 + 8191, moved.rkey(), 10000, 8191);
    CHECK(std::count(next.buffer.data(), next.buffer.data() + 20000, 0) == 20000);
    write(0x7000 + 1, part.rkey(), 8999, 5002);
    write(buffer.address(), whole.rkey(), 20000 - 11, 0);
  }
}

TEST_CASE_METHOD(SharedNics, "loopback: both queue pairs on one NIC, of one program and of two") {
  wire.clear();
  Random random;
  for (Host* peer : {&hosts.a, &nics.a_scattered()}) {
    Connection link(hosts.a, hosts.world.nic(0), *peer, hosts.world.nic(0));
    Memory memory(hosts.a, *peer, 200000);
    Places places(200000, random);
    std::vector<Job> jobs;
    for (unsigned n = 0; n < 40; ++n) {
      jobs.push_back(places.next(kOperations[n % 5], n < 10 ? n : random.between(0, 6000)));
    }
    carry_out(link, memory, jobs, random);
  }
  CHECK(wire.all().empty());  // nothing leaves the NIC
}

TEST_CASE_METHOD(SharedNics, "several programs on one NIC") {
  Random random;
  std::vector<std::unique_ptr<Host>> programs;
  for (unsigned n = 0; n < 3; ++n) {
    programs.push_back(std::make_unique<Host>(make_inproc_transport(hosts.world.nic(0))));
  }
  struct Program {
    std::unique_ptr<Connection> link;
    std::unique_ptr<Memory> memory;
  };
  std::vector<Program> work;
  for (auto& program : programs) {
    work.push_back({std::make_unique<Connection>(*program, hosts.world.nic(0), hosts.b,
                                                 hosts.world.nic(1)),
                    std::make_unique<Memory>(*program, hosts.b, 100000)});
  }
  // all at once
  for (unsigned round = 0; round < 8; ++round) {
    for (auto& p : work) {
      randomize(p.memory->from.buffer, random);
      REQUIRE(p.link->a.write(p.memory->from.sge(round, 30000), p.memory->to, 5 * round,
                              round) == 0);
    }
    for (auto& p : work) {
      expect_wc(p.link->a.cq, round);
      CHECK(std::memcmp(p.memory->from.buffer.data() + round,
                        p.memory->to.buffer.data() + 5 * round, 30000) == 0);
    }
  }
  // one goes, the others carry on, and its place is free again
  work[1] = {};
  programs[1] = nullptr;
  for (const size_t n : {0u, 2u}) {
    carry_out(*work[n].link, *work[n].memory, {{IBV_WR_RDMA_WRITE, 5000, 1, 2}}, random);
  }
  hosts.world.run(500000);
  programs[1] = std::make_unique<Host>(make_inproc_transport(hosts.world.nic(0)));
  Connection link(*programs[1], hosts.world.nic(0), hosts.b, hosts.world.nic(1));
  Memory memory(*programs[1], hosts.b, 10000);
  carry_out(link, memory, {{IBV_WR_RDMA_WRITE, 5000, 1, 2}, {IBV_WR_RDMA_READ, 5000, 6, 3}}, random);
}
