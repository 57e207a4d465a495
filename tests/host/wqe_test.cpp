// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Golden bytes of what is posted: typed by hand from docs/hardware-interface.md, not made with the
// generated accessors. Ring layout: lines, padding, wrap-around.
#include "world.hpp"

#include <map>
#include <string>

using namespace roci;
using namespace roci::test;

namespace {

// Reads the rings of a queue pair as the device does: through CREATE_QP's addresses.
class RingTap : public InprocNic {
 public:
  explicit RingTap(FakeNic& nic) : nic_(nic) {}
  std::recursive_mutex& mutex() override { return nic_.mutex(); }
  std::optional<unsigned> attach(InprocMemory& memory, std::function<void(unsigned)> irq) override {
    memory_ = &memory;
    return nic_.attach(memory, std::move(irq));
  }
  void detach(unsigned f) override { nic_.detach(f); }
  uint64_t bar_read(unsigned f, uint32_t offset) override { return nic_.bar_read(f, offset); }
  void bar_write(unsigned f, uint32_t offset, uint64_t value) override {
    // docs: admin command ring at 0x1000, doorbell of the admin queue at 0x1028, doorbell pages from
    // 0x10000 on.
    if (offset == 0x1000) commands_ = value;
    if (offset == 0x1028) {
      for (; announced_ != (value & 0xffff); ++announced_) note_command(announced_ % 32);
    }
    if (offset >= 0x10000) rung.push_back({offset, value});
    nic_.bar_write(f, offset, value);
  }
  void step(uint64_t cycles) override { nic_.step(cycles); }
  std::optional<Neighbour> resolve(const Gid& gid) override { return nic_.resolve(gid); }

  std::vector<uint8_t> bytes(uint64_t address, size_t n) {
    std::vector<uint8_t> out(n);
    REQUIRE(memory_->read(address, out));
    return out;
  }
  std::string sq(unsigned block, size_t n) { return hex(bytes(sq_ring + block * 64, n)); }
  std::string rq(unsigned offset, size_t n) { return hex(bytes(rq_ring + offset, n)); }
  static std::string hex(const std::vector<uint8_t>& data) {
    std::string text;
    for (size_t i = 0; i < data.size(); ++i) {
      text += format("%02x", data[i]);
      if (i % 16 == 15 && i + 1 < data.size()) text += ' ';
    }
    return text;
  }

  uint64_t sq_ring = 0, rq_ring = 0;
  std::vector<uint8_t> create_qp;
  std::vector<std::pair<uint32_t, uint64_t>> rung;

 private:
  void note_command(unsigned slot) {
    const auto command = bytes(commands_ + slot * 64, 64);
    if (command[0] != 0x38) return;  // CREATE_QP
    create_qp = command;
    std::memcpy(&sq_ring, &command[32], 8);
    std::memcpy(&rq_ring, &command[40], 8);
  }
  FakeNic& nic_;
  InprocMemory* memory_ = nullptr;
  uint64_t commands_ = 0;
  uint16_t announced_ = 0;
};

struct Posting {
  explicit Posting(ibv_qp_cap cap = caps(64, 4, 300), ibv_qp_type type = IBV_QPT_RC)
      : nic(fabric, 0),
        tap(nic),
        host(make_inproc_transport(tap)),
        cq(host.context, {256, nullptr, false}),
        qp(host.pd, {&cq, &cq, cap, type, false, false}) {
    // To itself, and frozen: nothing is carried out.
    if (type == IBV_QPT_UD) {
      open_datagrams(qp, 0x11111111);
    } else {
      connect(qp, qp.number(), path_to(nic));
    }
    nic.freeze(true);
    tap.rung.clear();
  }
  FakeFabric fabric;
  FakeNic nic;
  RingTap tap;
  Host host;
  Cq cq;
  Qp qp;
};

}  // namespace

TEST_CASE("golden bytes of every operation") {
  Posting p;
  ibv_sge sges[2] = {{0x1122334455667788, 0x01020304, 0xaabbccdd}, {0x10, 0x20, 0x30}};
  struct Case {
    ibv_wr_opcode opcode;
    unsigned flags;
    int sges;
    const char* control;
    const char* remote;
  };
  // opcode, flags {signaled 1, fence 2, solicited 4, inline 8}, {SGEs, blocks}, 0, imm, length, 0
  const Case cases[] = {
      {IBV_WR_SEND, 0, 1, "01001100000000000403020100000000", "00000000000000000000000000000000"},
      {IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED, 2,
       "01052100000000002403020100000000", "00000000000000000000000000000000"},
      {IBV_WR_SEND_WITH_IMM, IBV_SEND_FENCE, 1, "02021100deadbeef0403020100000000",
       "00000000000000000000000000000000"},
      {IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 2, "04012100000000002403020100000000",
       "efcdab8967452301 7856341200000000"},
      // SE is only for what completes at the peer.
      {IBV_WR_RDMA_WRITE, IBV_SEND_SOLICITED, 0, "04000100000000000000000000000000",
       "efcdab89674523017856341200000000"},
      {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SOLICITED, 1, "05041100deadbeef0403020100000000",
       "efcdab89674523017856341200000000"},
      {IBV_WR_RDMA_READ, IBV_SEND_SIGNALED | IBV_SEND_FENCE, 1, "08031100000000000403020100000000",
       "efcdab89674523017856341200000000"},
  };
  unsigned block = 0;
  for (const Case& c : cases) {
    CAPTURE(c.opcode, c.flags);
    ibv_send_wr wr = send_wr(c.opcode, sges, c.sges, 1, c.flags);
    const uint8_t imm[4] = {0xde, 0xad, 0xbe, 0xef};
    std::memcpy(&wr.imm_data, imm, 4);
    wr.wr.rdma.remote_addr = 0x0123456789abcdef;
    wr.wr.rdma.rkey = 0x12345678;
    REQUIRE(post(p.qp, wr) == 0);
    std::string remote = c.remote;
    std::erase(remote, ' ');
    std::string expected = std::string(c.control) + " " + remote;
    if (c.sges > 0) expected += " 887766554433221104030201ddccbbaa";
    if (c.sges > 1) expected += " 10000000000000002000000030000000";
    CHECK(p.tap.sq(block, 32 + 16 * static_cast<size_t>(c.sges)) == expected);
    ++block;
  }
  // The last doorbell: page 0, {index 7, QP, kind SQ}.
  REQUIRE(p.tap.rung.size() == std::size(cases));
  CHECK(p.tap.rung.back().first == 0x10000);
  CHECK(p.tap.rung.back().second == (uint64_t{1} << 56 | uint64_t{p.qp.number()} << 32 | 7));
}

TEST_CASE("golden bytes of inline data") {
  Posting p;
  char text[40] = "0123456789abcdefghijklmnopqrstuvwxyz";
  ibv_sge pieces[2] = {{reinterpret_cast<uintptr_t>(text), 4, 0},
                       {reinterpret_cast<uintptr_t>(text) + 10, 29, 0}};
  ibv_send_wr wr = send_wr(IBV_WR_SEND, pieces, 2, 1, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
  REQUIRE(post(p.qp, wr) == 0);
  // 33 bytes: two blocks.
  CHECK(p.tap.sq(0, 16) == "01090200000000002100000000000000");
  const auto bytes = p.tap.bytes(p.tap.sq_ring + 32, 33);
  CHECK(std::string(bytes.begin(), bytes.end()) ==
        std::string("0123abcdefghijklmnopqrstuvwxyz\0\0\0", 33));
  CHECK((p.tap.rung.back().second & 0xffff) == 2);
}

TEST_CASE("golden bytes of atomics: operands in network order, the SGE behind them") {
  Posting p;
  ibv_sge sge{0x1122334455667788, 8, 0xaabbccdd};
  ibv_send_wr wr = send_wr(IBV_WR_ATOMIC_CMP_AND_SWP, &sge, 1, 1, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
  wr.wr.atomic.remote_addr = 0x0123456789abcde8;
  wr.wr.atomic.rkey = 0x12345678;
  wr.wr.atomic.compare_add = 0x8182838485868788;
  wr.wr.atomic.swap = 0xa1a2a3a4a5a6a7a8;
  REQUIRE(post(p.qp, wr) == 0);
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.send_flags = IBV_SEND_SOLICITED;  // says nothing
  REQUIRE(post(p.qp, wr) == 0);
  const std::string remote = " e8cdab89674523017856341200000000";
  const std::string buffer = " 887766554433221108000000ddccbbaa";
  CHECK(p.tap.sq(0, 64) == "0c031100000000000800000000000000" + remote +
                               " a1a2a3a4a5a6a7a88182838485868788" + buffer);
  CHECK(p.tap.sq(1, 64) == "0d001100000000000800000000000000" + remote +
                               " 81828384858687880000000000000000" + buffer);
  // The extended calls write the same.
  p.qp.begin();
  p.qp.open_atomic(hwif::WrOpcode::CMP_SWAP, 1, IBV_SEND_SIGNALED | IBV_SEND_FENCE,
                   wr.wr.atomic.remote_addr, wr.wr.atomic.rkey, wr.wr.atomic.swap,
                   wr.wr.atomic.compare_add);
  p.qp.set_sges(&sge, 1);
  p.qp.open_atomic(hwif::WrOpcode::FETCH_ADD, 2, 0, wr.wr.atomic.remote_addr, wr.wr.atomic.rkey,
                   wr.wr.atomic.compare_add, 0);
  p.qp.set_sges(&sge, 1);
  REQUIRE(p.qp.complete() == 0);
  CHECK(p.tap.sq(2, 128) == p.tap.sq(0, 128));
  CHECK((p.tap.rung.back().second & 0xffff) == 4);
}

TEST_CASE("golden bytes of UD: Q_Key, queue pair and address vector in the request, data from byte 80") {
  Posting p(caps(64, 4, 300), IBV_QPT_UD);
  ibv_ah_attr attr = path_to(p.nic);
  attr.sl = 5;
  attr.grh.flow_label = 0x12345;
  attr.grh.traffic_class = 0x67;
  attr.grh.hop_limit = 0x21;
  Ah ah(p.host.pd, attr);
  ibv_sge sges[2] = {{0x1122334455667788, 0x304, 0xaabbccdd}, {0x10, 0x20, 0x30}};
  ibv_send_wr wr = send_wr(IBV_WR_SEND_WITH_IMM, sges, 2, 1,
                           IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE);
  const uint8_t imm[4] = {0xde, 0xad, 0xbe, 0xef};
  std::memcpy(&wr.imm_data, imm, 4);
  wr.wr.ud.ah = &ah;
  wr.wr.ud.remote_qpn = 0x123456;
  wr.wr.ud.remote_qkey = 0x89abcdef;
  REQUIRE(post(p.qp, wr) == 0);
  const std::string address =
      // Q_Key, queue pair
      " efcdab89563412000000000000000000"
      // DGID
      " fe80000000000000000000fffe000001"
      // DMAC, TCI (PCP 5); no VLAN, SGID index 0, HopLmt, TClass; FlowLabel
      " 02000000000100a00000216745230100"
      " 00000000000000000000000000000000";
  // A fence says nothing.
  CHECK(p.tap.sq(0, 112) == "02152200deadbeef2403000000000000" + address +
                                " 887766554433221104030000ddccbbaa" +
                                " 10000000000000002000000030000000");
  // Inline: 4 + 29 bytes from byte 80 on are two blocks.
  char text[40] = "0123456789abcdefghijklmnopqrstuvwxyz";
  ibv_sge pieces[2] = {{reinterpret_cast<uintptr_t>(text), 4, 0},
                       {reinterpret_cast<uintptr_t>(text) + 10, 29, 0}};
  wr.opcode = IBV_WR_SEND;
  wr.sg_list = pieces;
  wr.send_flags = IBV_SEND_INLINE;
  REQUIRE(post(p.qp, wr) == 0);
  CHECK(p.tap.sq(2, 80) == "01180200000000002100000000000000" + address);
  const auto bytes = p.tap.bytes(p.tap.sq_ring + 2 * 64 + 80, 33);
  CHECK(std::string(bytes.begin(), bytes.end()) ==
        std::string("0123abcdefghijklmnopqrstuvwxyz\0\0\0", 33));
  CHECK((p.tap.rung.back().second & 0xffff) == 4);
  // The extended calls write the same, whichever comes first, address or data.
  for (const bool data_first : {false, true}) {
    p.qp.begin();
    p.qp.open_operation(hwif::WrOpcode::SEND_IMM, 1, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
                        0xefbeadde, 0, 0);
    if (data_first) p.qp.set_sges(sges, 2);
    p.qp.set_ud_address(&ah, 0x123456, 0x89abcdef);
    if (!data_first) p.qp.set_sges(sges, 2);
    p.qp.open_operation(hwif::WrOpcode::SEND, 2, 0, 0, 0, 0);
    const ibv_data_buf list[2] = {{text, 4}, {text + 10, 29}};
    if (data_first) p.qp.set_inline(list, 2);
    p.qp.set_ud_address(&ah, 0x123456, 0x89abcdef);
    if (!data_first) p.qp.set_inline(list, 2);
    REQUIRE(p.qp.complete() == 0);
    CHECK(p.tap.sq(data_first ? 8 : 4, 113 + 64 + 64) == p.tap.sq(0, 113 + 64 + 64));
  }
}

TEST_CASE("golden bytes of receives, for every stride") {
  const struct {
    unsigned sges;
    unsigned stride;
    unsigned actual;
  } cases[] = {{1, 32, 1}, {2, 64, 3}, {3, 64, 3}, {4, 128, 7}, {7, 128, 7}, {8, 256, 15}, {15, 256, 15}};
  for (const auto& c : cases) {
    CAPTURE(c.sges);
    Posting p(caps(16, c.sges));
    CHECK(p.qp.cap().max_recv_sge == c.actual);
    std::vector<ibv_sge> list(c.sges);
    for (unsigned i = 0; i < c.sges; ++i) list[i] = {0x1000u + i, 0x40u + i, 0x100u + i};
    REQUIRE(post_recv(p.qp, nullptr, 0, 1) == 0);
    REQUIRE(post_recv(p.qp, list.data(), static_cast<int>(c.sges), 2) == 0);
    CHECK(p.tap.rq(0, 16) == "00000000000000000000000000000000");
    // Cookie: the index. Number of SGEs in byte 4.
    CHECK(p.tap.rq(c.stride, 16) == format("01000000%02x0000000000000000000000", c.sges));
    for (unsigned i = 0; i < c.sges; ++i) {
      CHECK(p.tap.rq(c.stride + 16 + 16 * i, 16) ==
            format("%02x10000000000000%02x000000%02x010000", i, 0x40 + i, i));
    }
    CHECK(p.tap.rung.back().second == (uint64_t{2} << 56 | uint64_t{p.qp.number()} << 32 | 2));
  }
}

TEST_CASE("requests do not cross lines: the rest of a line is one NOP") {
  // Room for 180 inline bytes: up to 4 blocks.
  Posting p(caps(64, 2, 220));
  std::vector<uint8_t> data(4 * 64 - 32);
  const auto post_blocks = [&](unsigned blocks) {
    ibv_sge piece{reinterpret_cast<uintptr_t>(data.data()), blocks * 64 - 32, 0};
    ibv_send_wr wr = send_wr(IBV_WR_SEND, &piece, 1, blocks, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
    REQUIRE(post(p.qp, wr) == 0);
  };
  post_blocks(3);
  post_blocks(4);
  post_blocks(2);  // does not fit into block 7
  CHECK(p.tap.sq(3, 3) == "010904");
  CHECK(p.tap.sq(7, 16) == "00000100000000000000000000000000");
  CHECK(p.tap.sq(8, 3) == "010902");
  CHECK((p.tap.rung.back().second & 0xffff) == 10);
  post_blocks(1);
  post_blocks(3);  // 11…13
  post_blocks(3);  // does not fit into 14 and 15
  CHECK(p.tap.sq(14, 3) == "000002");
  CHECK(p.tap.sq(16, 3) == "010903");
  CHECK((p.tap.rung.back().second & 0xffff) == 19);
  // Carried out, all come back but no NOP does.
  for (unsigned i = 0; i < 6; ++i) REQUIRE(post_recv(p.qp, nullptr, 0, 100) == 0);
  std::vector<uint64_t> ids;
  p.nic.freeze(false);
  Buffer buffer(4096);
  Mr mr(p.host.pd, buffer.data(), 4096, buffer.address(), ALL_ACCESS);
  for (int i = 0; i < 2000 && ids.size() < 6; ++i) {
    ibv_wc wc{};
    if (p.cq.poll(1, &wc) == 1 && wc.wr_id < 100) ids.push_back(wc.wr_id);
  }
  // The receives are too short (no SGEs), so the first fails and the rest are flushed; in order.
  CHECK(ids == std::vector<uint64_t>{3, 4, 2, 1, 3, 3});
  CHECK(p.nic.violations() == std::vector<std::string>{});
}

TEST_CASE("indices run on over 2^16") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  Cq cq(host.context, {512, nullptr, false});
  Qp qp(host.pd, {&cq, &cq, caps(40, 4, 100), IBV_QPT_RC, false, false});
  connect(qp, qp.number(), path_to(nic));
  Region region(host.pd, 4096);
  Random random;
  uint64_t blocks = 0;
  uint64_t id = 0;
  uint64_t expected = 0;
  while (blocks < 3 * 65536) {
    const unsigned n = static_cast<unsigned>(random.between(1, 30));
    unsigned posted = 0;
    for (unsigned i = 0; i < n; ++i) {
      const unsigned bytes = static_cast<unsigned>(random.between(0, 100));
      ibv_sge sge = region.sge(0, bytes);
      ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, id, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
      wr.wr.rdma.remote_addr = region.buffer.address() + 1000;
      wr.wr.rdma.rkey = region.mr.rkey();
      REQUIRE(post(qp, wr) == 0);
      ++id;
      ++posted;
      blocks += (32 + bytes + 63) / 64;
    }
    for (unsigned i = 0; i < posted; ++i) {
      const ibv_wc wc = wait_wc(cq);
      if (wc.status != IBV_WC_SUCCESS || wc.wr_id != expected) FAIL("request " << expected);
      ++expected;
    }
  }
  CHECK(nic.violations() == std::vector<std::string>{});
}

TEST_CASE("rings and tables are where and what the interface wants") {
  Posting p(caps(100, 3));
  CHECK(p.tap.sq_ring % 4096 == 0);
  CHECK(p.tap.rq_ring % 4096 == 0);
  // CREATE_QP: {sq log2, rq log2} in byte 23 of the parameters, stride code in byte 27.
  const auto* params = &p.tap.create_qp[32];
  CHECK(params[23] == ((8) | (7 << 4)));  // 100 requests of 2 blocks: 26 lines; 128 receives
  CHECK(params[27] == 1);                 // 64 bytes: 3 SGEs
}
