// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// UD and UC: address handles, messages, what is refused and why, SQE, groups.
#include "stderr_of.hpp"
#include "world.hpp"

#include <roci/ah.hpp>

#include <endian.h>

#include <algorithm>

using namespace roci;
using namespace roci::test;

namespace {

constexpr uint32_t QKEY = 0x11223344;
constexpr size_t GRH = 40;

// Two NICs with one queue pair of the type each, connected or open.
struct Ends {
  explicit Ends(ibv_qp_type type, const FakeConfig& config = {}, ibv_qp_cap cap = caps(16, 2, 64))
      : a_nic(fabric, 0, config),
        b_nic(fabric, 1, config),
        a(make_inproc_transport(a_nic)),
        b(make_inproc_transport(b_nic)),
        a_cq(a.context, {64, nullptr, false}),
        b_cq(b.context, {64, nullptr, false}),
        a_qp(a.pd, {&a_cq, &a_cq, cap, type, false, false}),
        b_qp(b.pd, {&b_cq, &b_cq, cap, type, false, false}),
        a_memory(a.pd, 16384),
        b_memory(b.pd, 16384) {
    if (type == IBV_QPT_UD) {
      open_datagrams(a_qp, QKEY);
      open_datagrams(b_qp, QKEY);
    } else {
      connect_unreliably(a_qp, b_qp.number(), path_to(b_nic));
      connect_unreliably(b_qp, a_qp.number(), path_to(a_nic));
    }
  }
  ~Ends() {
    CHECK(a_nic.violations() == std::vector<std::string>{});
    CHECK(b_nic.violations() == std::vector<std::string>{});
  }
  // A message of UD from a; the data is the first bytes of its memory.
  ibv_send_wr datagram(const Ah& ah, uint32_t bytes, uint64_t wr_id, uint32_t qkey = QKEY) {
    sge = a_memory.sge(0, bytes);
    ibv_send_wr wr = send_wr(IBV_WR_SEND, &sge, 1, wr_id);
    wr.wr.ud.ah = const_cast<Ah*>(&ah);
    wr.wr.ud.remote_qpn = b_qp.number();
    wr.wr.ud.remote_qkey = qkey;
    return wr;
  }
  int receive(uint32_t bytes, uint64_t wr_id, size_t offset = 0) {
    ibv_sge to = b_memory.sge(offset, bytes);
    return post_recv(b_qp, &to, 1, wr_id);
  }
  FakeFabric fabric;
  FakeNic a_nic, b_nic;
  Host a, b;
  Cq a_cq, b_cq;
  Qp a_qp, b_qp;
  Region a_memory, b_memory;
  ibv_sge sge{};
};

Gid mapped(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  return Gid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}};
}

std::vector<uint8_t> dmac_of(const Ah& ah) {
  const auto mac = ah.vector().get<hwif::AddressVector::dmac>();
  return {mac.bytes, mac.bytes + sizeof mac.bytes};
}

}  // namespace

TEST_CASE("address handles: MAC by GID, what is refused") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  FakeNic other(fabric, 1);
  Host host(make_inproc_transport(nic));
  const auto to = [&](const Gid& gid) {
    ibv_ah_attr attr = path_to(other);
    std::memcpy(attr.grh.dgid.raw, gid.bytes, sizeof gid.bytes);
    return attr;
  };
  using Mac = std::vector<uint8_t>;
  CHECK(dmac_of(Ah(host.pd, path_to(other))) == Mac{2, 0, 0, 0, 0, 2});      // by EUI-64
  CHECK(dmac_of(Ah(host.pd, path_to(other, 1))) == Mac{2, 0, 0, 0, 0, 2});   // by the neighbour table
  CHECK(dmac_of(Ah(host.pd, path_to(nic, 1))) == Mac{2, 0, 0, 0, 0, 1});     // its own
  // ff02::1:2:3 (RFC 2464 §7); 239.129.2.3, whose highest bit is not in the MAC (RFC 1112 §6.4)
  const Gid group{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xa1, 2, 0, 3}};
  CHECK(dmac_of(Ah(host.pd, to(group))) == Mac{0x33, 0x33, 0xa1, 2, 0, 3});
  CHECK(dmac_of(Ah(host.pd, to(mapped(239, 129, 2, 3)))) == Mac{1, 0, 0x5e, 1, 2, 3});
  CHECK(dmac_of(Ah(host.pd, to(mapped(224, 0, 0, 1)))) == Mac{1, 0, 0x5e, 0, 0, 1});

  const auto error = [&](auto change, std::string& text) {
    ibv_ah_attr attr = path_to(other);
    change(attr);
    return error_of([&] { Ah ah(host.pd, attr); }, &text);
  };
  std::string text;
  CHECK(error([](ibv_ah_attr& a) { a.is_global = 0; }, text) == EINVAL);
  CHECK(text.find("is_global") != std::string::npos);
  CHECK(error([](ibv_ah_attr& a) { a.port_num = 2; }, text) == EINVAL);
  CHECK(text.find("port_num") != std::string::npos);
  CHECK(error([](ibv_ah_attr& a) { a.grh.sgid_index = 5; }, text) == EINVAL);
  CHECK(text.find("sgid_index 5") != std::string::npos);
  CHECK(error([](ibv_ah_attr& a) { a.grh.sgid_index = 77; }, text) == EINVAL);
  CHECK(error([](ibv_ah_attr& a) { a.sl = 8; }, text) == EINVAL);
  CHECK(text.find("sl 8") != std::string::npos);
  CHECK(error([](ibv_ah_attr& a) { a.grh.flow_label = 1 << 20; }, text) == EINVAL);
  // no unicast: 225 minus one bit is 161
  CHECK(error([](ibv_ah_attr& a) { std::memcpy(a.grh.dgid.raw, mapped(161, 0, 0, 1).bytes, 16); },
              text) == EHOSTUNREACH);
  CHECK(text.find("no MAC address is known") != std::string::npos);

  // They belong to their protection domain.
  {
    const Ah ah(host.pd, path_to(other));
    CHECK(error_of([&] { host.pd.destroy(); }) == EBUSY);
  }
  CHECK(error_of([&] { host.pd.destroy(); }) == 0);
}

TEST_CASE("an address handle has the VLAN of its GID") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  hwif::GidEntry entry = nic.gids()[0];
  entry.set<hwif::GidEntry::vlan_present>(true);
  entry.set<hwif::GidEntry::vlan_id>(77);
  nic.set_gid(3, entry);
  host.device->poll_events();
  ibv_ah_attr attr = path_to(nic);
  attr.grh.sgid_index = 3;
  attr.sl = 6;
  using V = hwif::AddressVector;
  const Ah tagged(host.pd, attr);
  CHECK(tagged.vector().get<V::vlan_present>());
  CHECK(tagged.vector().get<V::vlan_id>() == 77);
  CHECK(tagged.vector().get<V::sl>() == 6);
  const Ah untagged(host.pd, path_to(nic));
  CHECK_FALSE(untagged.vector().get<V::vlan_present>());
}

TEST_CASE("UD: messages with the GRH in front, immediate data, who sent it") {
  Ends ends(IBV_QPT_UD);
  ibv_ah_attr attr = path_to(ends.b_nic);
  attr.grh.flow_label = 0x54321;
  attr.grh.traffic_class = 0x21;
  attr.grh.hop_limit = 9;
  const Ah ah(ends.a.pd, attr);
  for (size_t i = 0; i < 4096; ++i) ends.a_memory.buffer[i] = static_cast<uint8_t>(i * 7 + i / 256);
  uint64_t id = 0;
  for (const uint32_t bytes : {0u, 1u, 63u, 64u, 1024u, 4096u}) {
    for (const bool imm : {false, true}) {
      for (const bool in_line : {false, true}) {
        if (in_line && bytes > ends.a_qp.cap().max_inline_data) continue;
        CAPTURE(bytes, imm, in_line);
        REQUIRE(ends.receive(GRH + bytes, 100 + id, 64) == 0);
        ibv_send_wr wr = ends.datagram(ah, bytes, id);
        if (imm) wr.opcode = IBV_WR_SEND_WITH_IMM;
        wr.imm_data = htobe32(0xdeadbeef);
        if (in_line) wr.send_flags |= IBV_SEND_INLINE;
        REQUIRE(post(ends.a_qp, wr) == 0);
        const ibv_wc sent = wait_wc(ends.a_cq);
        CHECK(sent.status == IBV_WC_SUCCESS);
        CHECK(sent.opcode == IBV_WC_SEND);
        CHECK(sent.wr_id == id);
        const ibv_wc got = wait_wc(ends.b_cq);
        CHECK(got.status == IBV_WC_SUCCESS);
        CHECK(got.opcode == IBV_WC_RECV);
        CHECK(got.wr_id == 100 + id);
        CHECK(got.byte_len == GRH + bytes);
        CHECK(got.src_qp == ends.a_qp.number());
        CHECK(got.qp_num == ends.b_qp.number());
        CHECK(got.wc_flags == unsigned{IBV_WC_GRH} + (imm ? unsigned{IBV_WC_WITH_IMM} : 0u));
        if (imm) CHECK(got.imm_data == htobe32(0xdeadbeef));
        CHECK(got.sl == 0);
        CHECK(got.pkey_index == 0);
        CHECK(std::memcmp(ends.b_memory.buffer.data() + 64 + GRH, ends.a_memory.buffer.data(), bytes) ==
              0);
        ++id;
      }
    }
  }
  // The answer goes to whom the GRH names.
  const auto* grh = reinterpret_cast<const ibv_grh*>(ends.b_memory.buffer.data() + 64);
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  wc.sl = 3;
  const ibv_ah_attr back = sender_of(*ends.b.device, wc, grh);
  CHECK(back.is_global == 1);
  CHECK(back.port_num == 1);
  CHECK(back.sl == 3);
  CHECK(back.grh.sgid_index == 0);
  CHECK(back.grh.flow_label == 0x54321);
  CHECK(back.grh.traffic_class == 0x21);
  CHECK(back.grh.hop_limit == 9);
  CHECK(std::memcmp(back.grh.dgid.raw, path_to(ends.a_nic).grh.dgid.raw, 16) == 0);
  const Ah answer(ends.b.pd, back);
  ibv_sge to = ends.a_memory.sge(8192, GRH + 4);
  REQUIRE(post_recv(ends.a_qp, &to, 1, 7) == 0);
  ibv_sge from = ends.b_memory.sge(0, 4);
  ibv_send_wr wr = send_wr(IBV_WR_SEND, &from, 1, 8);
  wr.wr.ud = {const_cast<Ah*>(&answer), ends.a_qp.number(), QKEY};
  REQUIRE(post(ends.b_qp, wr) == 0);
  CHECK(wait_wc(ends.a_cq).wr_id == 7);
}

TEST_CASE("who sent it: GRHs that name nobody, groups") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  const auto gid = [&](unsigned index) { return nic.gids()[index].get<hwif::GidEntry::gid>(); };
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  const auto header = [](const Gid& from, const Gid& to) {
    ibv_grh grh{};
    grh.version_tclass_flow = htobe32(6u << 28);
    std::memcpy(grh.sgid.raw, from.bytes, 16);
    std::memcpy(grh.dgid.raw, to.bytes, 16);
    return grh;
  };
  ibv_grh grh = header(gid(0), gid(1));
  CHECK(sender_of(*host.device, wc, &grh).grh.sgid_index == 1);
  // To a group: the answer comes from a GID of the sender's kind.
  const Gid group{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3}};
  grh = header(mapped(10, 0, 0, 7), group);
  CHECK(sender_of(*host.device, wc, &grh).grh.sgid_index == 1);
  grh = header(gid(0), group);
  CHECK(sender_of(*host.device, wc, &grh).grh.sgid_index == 0);
  std::string text;
  grh = header(gid(0), mapped(10, 0, 0, 99));
  CHECK(error_of([&] { sender_of(*host.device, wc, &grh); }, &text) == ENOENT);
  CHECK(text.find("grh.dgid") != std::string::npos);
  grh.version_tclass_flow = htobe32(4u << 28);
  CHECK(error_of([&] { sender_of(*host.device, wc, &grh); }, &text) == EINVAL);
  CHECK(text.find("version 4") != std::string::npos);
  wc.wc_flags = 0;
  CHECK(error_of([&] { sender_of(*host.device, wc, nullptr); }, &text) == EINVAL);
  CHECK(text.find("IBV_WC_GRH") != std::string::npos);
}

TEST_CASE("UD: what nobody takes is sent with success; a receive that is too short is not used") {
  Ends ends(IBV_QPT_UD);
  const Ah ah(ends.a.pd, path_to(ends.b_nic));
  REQUIRE(ends.receive(GRH + 10, 1) == 0);
  const auto sent = [&](uint32_t bytes, uint32_t qkey) {
    ibv_send_wr wr = ends.datagram(ah, bytes, 5, qkey);
    REQUIRE(post(ends.a_qp, wr) == 0);
    CHECK(wait_wc(ends.a_cq).status == IBV_WC_SUCCESS);
  };
  sent(10, QKEY + 1);
  sent(11, QKEY);
  no_wc(ends.b_cq);
  // With bit 31 the Q_Key of the queue pair goes out.
  sent(10, 0x80000000);
  CHECK(wait_wc(ends.b_cq).wr_id == 1);
  sent(10, QKEY);  // no receive
  no_wc(ends.b_cq);
}

TEST_CASE("UD: VLAN, service level and extended polling") {
  Ends ends(IBV_QPT_UD);
  hwif::GidEntry entry = ends.a_nic.gids()[0];
  entry.set<hwif::GidEntry::vlan_present>(true);
  entry.set<hwif::GidEntry::vlan_id>(77);
  ends.a_nic.set_gid(0, entry);
  ends.a.device->poll_events();
  ibv_ah_attr attr = path_to(ends.b_nic);
  attr.sl = 5;
  const Ah ah(ends.a.pd, attr);
  REQUIRE(ends.receive(GRH + 10, 1) == 0);
  REQUIRE(ends.receive(GRH + 10, 2) == 0);
  for (int i = 0; i < 2; ++i) {
    ibv_send_wr wr = ends.datagram(ah, 10, 5);
    REQUIRE(post(ends.a_qp, wr) == 0);
    wait_wc(ends.a_cq);
  }
  const ibv_wc wc = wait_wc(ends.b_cq);
  CHECK(wc.sl == 5);
  int tries = 0;
  while (ends.b_cq.start_poll() != 0) REQUIRE(++tries < 100000);
  const hwif::Cqe cqe = ends.b_cq.current().cqe;
  ends.b_cq.end_poll();
  CHECK(cqe.get<hwif::Cqe::vlan_present>());
  CHECK((cqe.get<hwif::Cqe::tci>() & 0xfff) == 77);
  CHECK(wc_flags(cqe) == IBV_WC_GRH);
}

TEST_CASE("UD: a refused request is one line that names field, value, limit and cure") {
  FakeConfig config;
  config.active_mtu = hwif::Mtu::MTU_1024;
  Ends ends(IBV_QPT_UD, config);
  const Ah ah(ends.a.pd, path_to(ends.b_nic));
  Pd other(ends.a.context);
  const Ah foreign(other, path_to(ends.b_nic));
  const auto refused = [&](int error, auto change, std::vector<const char*> says) {
    ibv_send_wr wr = ends.datagram(ah, 8, 1);
    change(wr);
    const std::string said = stderr_of([&] { CHECK(post(ends.a_qp, wr) == error); });
    CAPTURE(said);
    CHECK(std::count(said.begin(), said.end(), '\n') == 1);
    for (const char* text : says) CHECK(said.find(text) != std::string::npos);
  };
  // The port's MTU is the limit of a message, and no byte more.
  ibv_send_wr most = ends.datagram(ah, 1024, 1);
  CHECK(post(ends.a_qp, most) == 0);
  CHECK(wait_wc(ends.a_cq).status == IBV_WC_SUCCESS);
  refused(EINVAL, [](ibv_send_wr& wr) { wr.sg_list->length = 1025; },
          {"length 1025", "at most 1024", "active_mtu"});
  refused(EINVAL, [](ibv_send_wr& wr) { wr.wr.ud.ah = nullptr; }, {"wr.ud.ah is NULL", "ibv_create_ah"});
  refused(EINVAL, [&](ibv_send_wr& wr) { wr.wr.ud.ah = const_cast<Ah*>(&foreign); },
          {"another protection domain"});
  refused(EOPNOTSUPP, [](ibv_send_wr& wr) { wr.opcode = IBV_WR_RDMA_WRITE; },
          {"opcode 0: it has SEND, SEND_WITH_IMM\n"});
  refused(EINVAL, [](ibv_send_wr& wr) { wr.num_sge = 9; }, {"num_sge 9", "max_send_sge"});
  refused(EINVAL,
          [](ibv_send_wr& wr) {
            wr.send_flags |= IBV_SEND_INLINE;
            wr.sg_list->length = 1000;
          },
          {"IBV_SEND_INLINE with 1000 bytes", "max_inline_data"});
  // The same reason is not told again in this life.
  ibv_send_wr wr = ends.datagram(ah, 1026, 1);
  CHECK(stderr_of([&] { CHECK(post(ends.a_qp, wr) == EINVAL); }) == "");
  Ends fresh(IBV_QPT_UD);
  const Ah fresh_ah(fresh.a.pd, path_to(fresh.b_nic));
  wr = fresh.datagram(fresh_ah, 8, 1);
  wr.wr.ud.remote_qpn = 1 << 24;
  CHECK(stderr_of([&] { CHECK(post(fresh.a_qp, wr) == EINVAL); }).find("remote_qpn 0x1000000") !=
        std::string::npos);
  no_wc(fresh.a_cq);
}

TEST_CASE("UD by the extended calls: an operation needs its address and its data, once each") {
  Ends ends(IBV_QPT_UD);
  const Ah ah(ends.a.pd, path_to(ends.b_nic));
  const ibv_sge sge = ends.a_memory.sge(0, 8);
  const auto open = [&](hwif::WrOpcode opcode = hwif::WrOpcode::SEND) {
    ends.a_qp.open_operation(opcode, 1, IBV_SEND_SIGNALED, 0, 0, 0);
  };
  const auto to_b = [&] { ends.a_qp.set_ud_address(&ah, ends.b_qp.number(), QKEY); };
  const auto attempt = [&](auto build) {
    ends.a_qp.begin();
    build();
    return ends.a_qp.complete();
  };
  std::string said = stderr_of([&] {
    CHECK(attempt([&] { open(); }) == EINVAL);
    CHECK(attempt([&] {
            open();
            ends.a_qp.set_sges(&sge, 1);
          }) == EINVAL);
    CHECK(attempt([&] {
            open();
            ends.a_qp.set_sges(&sge, 1);
            open();
            to_b();
            ends.a_qp.set_sges(&sge, 1);
          }) == EINVAL);
  });
  CHECK(std::count(said.begin(), said.end(), '\n') == 1);
  CHECK(said.find("ibv_wr_set_ud_addr") != std::string::npos);
  said = stderr_of([&] {
    CHECK(attempt([&] {
            open();
            ends.a_qp.set_sges(&sge, 1);
            ends.a_qp.set_sges(&sge, 1);
          }) == EINVAL);
    CHECK(attempt([&] {
            open();
            to_b();
            ends.a_qp.set_sges(&sge, 1);
            ends.a_qp.set_sges(&sge, 1);
          }) == EINVAL);
    CHECK(attempt([&] { to_b(); }) == EINVAL);
  });
  CHECK(std::count(said.begin(), said.end(), '\n') == 1);
  CHECK(said.find("without an operation") != std::string::npos);
  CHECK(attempt([&] {
          open(hwif::WrOpcode::WRITE);
          to_b();
          ends.a_qp.set_sges(&sge, 1);
        }) == EOPNOTSUPP);
  no_wc(ends.a_cq);
  // Without data it is a message without payload.
  REQUIRE(ends.receive(GRH, 3) == 0);
  CHECK(attempt([&] {
          open();
          to_b();
        }) == 0);
  CHECK(wait_wc(ends.a_cq).status == IBV_WC_SUCCESS);
  CHECK(wait_wc(ends.b_cq).byte_len == GRH);
}

TEST_CASE("UD: the table of transitions, Q_Keys, queries") {
  struct Row {
    ibv_qp_state from, to;
    int required, optional;
  };
  // Linux, qp_state_table; and any state to RESET, any but RESET to ERR.
  constexpr int KEYS = IBV_QP_PKEY_INDEX | IBV_QP_QKEY;
  constexpr int LIVE = IBV_QP_CUR_STATE | IBV_QP_QKEY;
  const Row rows[] = {
      {IBV_QPS_RESET, IBV_QPS_INIT, KEYS | IBV_QP_PORT, 0},
      {IBV_QPS_INIT, IBV_QPS_INIT, 0, KEYS | IBV_QP_PORT},
      {IBV_QPS_INIT, IBV_QPS_RTR, 0, KEYS},
      {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, LIVE},
      {IBV_QPS_RTS, IBV_QPS_RTS, 0, LIVE},
      {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      {IBV_QPS_SQD, IBV_QPS_RTS, 0, LIVE},
      {IBV_QPS_SQD, IBV_QPS_SQD, 0, KEYS},
      {IBV_QPS_SQE, IBV_QPS_RTS, 0, LIVE},
  };
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  Cq cq(host.context, {64, nullptr, false});
  for (const Row& row : rows) {
    for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
      if (bit == IBV_QP_STATE || bit == IBV_QP_CAP || bit == IBV_QP_ALT_PATH) continue;
      CAPTURE(row.from, row.to, bit);
      Qp qp(host.pd, {&cq, &cq, caps(), IBV_QPT_UD, false, false});
      ibv_qp_attr attr = attributes(IBV_QPS_INIT, 0, path_to(nic));
      attr.qkey = QKEY;
      const auto go = [&](ibv_qp_state state, int mask) {
        attr.qp_state = state;
        return error_of([&] { qp.modify(attr, mask | IBV_QP_STATE); });
      };
      if (row.from != IBV_QPS_RESET) REQUIRE(go(IBV_QPS_INIT, UD_TO_INIT) == 0);
      if (row.from >= IBV_QPS_RTR) REQUIRE(go(IBV_QPS_RTR, 0) == 0);
      if (row.from >= IBV_QPS_RTS) REQUIRE(go(IBV_QPS_RTS, IBV_QP_SQ_PSN) == 0);
      if (row.from == IBV_QPS_SQD) REQUIRE(go(IBV_QPS_SQD, 0) == 0);
      if (row.from == IBV_QPS_SQE) {
        Ah ah(host.pd, path_to(nic));
        ibv_sge bad{64, 8, 0xdead00};
        ibv_send_wr wr = send_wr(IBV_WR_SEND, &bad, 1, 1);
        wr.wr.ud = {&ah, qp.number(), QKEY};
        REQUIRE(post(qp, wr) == 0);
        REQUIRE(wait_wc(cq).status == IBV_WC_LOC_PROT_ERR);
        ibv_qp_init_attr init{};
        ibv_qp_attr got{};
        qp.query(got, init);
        REQUIRE(got.qp_state == IBV_QPS_SQE);
      }
      attr.cur_qp_state = row.from;
      if (row.required & bit) {
        CHECK(go(row.to, row.required & ~bit) == EINVAL);
      } else {
        CHECK(go(row.to, row.required | bit) == (row.optional & bit ? 0 : EINVAL));
      }
    }
  }
  Qp qp(host.pd, {&cq, &cq, caps(), IBV_QPT_UD, true, false});
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = 0x80010000;
  std::string text;
  CHECK(error_of([&] { qp.modify(attr, UD_TO_INIT); }, &text) == EPERM);
  CHECK(text.find("qkey 0x80010000") != std::string::npos);
  open_datagrams(qp, QKEY);
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = 1;
  nic.freeze(true);
  qp.modify(attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
  ibv_qp_attr got{};
  ibv_qp_init_attr init{};
  qp.query(got, init);
  CHECK(got.qp_state == IBV_QPS_SQD);
  CHECK(got.sq_draining == 1);
  CHECK(got.en_sqd_async_notify == 1);
  CHECK(got.qkey == QKEY);
  CHECK(got.port_num == 1);
  CHECK(got.ah_attr.is_global == 0);
  CHECK(init.qp_type == IBV_QPT_UD);
  CHECK(init.sq_sig_all == 1);
  CHECK(init.cap.max_send_wr == qp.cap().max_send_wr);
  nic.freeze(false);
  const auto event = host.context.get_async_event();
  REQUIRE(event);
  CHECK(event->type == hwif::EqeType::SQ_DRAINED);
  qp.query(got, init);
  CHECK(got.sq_draining == 0);
  CHECK(nic.violations() == std::vector<std::string>{});
}

TEST_CASE("a privileged function sets any Q_Key") {
  FakeFabric fabric;
  FakeConfig config;
  config.privileged = true;
  FakeNic nic(fabric, 0, config);
  Host host(make_inproc_transport(nic));
  Cq cq(host.context, {64, nullptr, false});
  Qp qp(host.pd, {&cq, &cq, caps(), IBV_QPT_UD, false, false});
  open_datagrams(qp, 0x80010000);
  ibv_qp_attr got{};
  ibv_qp_init_attr init{};
  qp.query(got, init);
  CHECK(got.qkey == 0x80010000);
}

TEST_CASE("a failed send of UD and UC: SQE, the rest flushed, receives go on, RTS goes on") {
  for (const auto type : {IBV_QPT_UD, IBV_QPT_UC}) {
    CAPTURE(type);
    Ends ends(type);
    const Ah ah(ends.a.pd, path_to(ends.b_nic));
    const auto message = [&](uint64_t id, uint32_t lkey) {
      ibv_send_wr wr = ends.datagram(ah, 8, id);
      ends.sge.lkey = lkey;
      return post(ends.a_qp, wr);
    };
    for (unsigned life = 0; life < 2; ++life) {
      for (uint64_t id = 0; id < 3; ++id) REQUIRE(ends.receive(GRH + 100, 50 + id) == 0);
      const uint32_t good = ends.a_memory.mr.lkey();
      ends.a_nic.freeze(true);
      REQUIRE(message(1, good) == 0);
      REQUIRE(message(2, good ^ 0xff) == 0);
      REQUIRE(message(3, good) == 0);
      ends.a_nic.freeze(false);
      const std::string said = stderr_of([&] {
        CHECK(wait_wc(ends.a_cq).status == IBV_WC_SUCCESS);
        const ibv_wc failed = wait_wc(ends.a_cq);
        CHECK(failed.wr_id == 2);
        CHECK(failed.status == IBV_WC_LOC_PROT_ERR);
        const ibv_wc flushed = wait_wc(ends.a_cq);
        CHECK(flushed.wr_id == 3);
        CHECK(flushed.status == IBV_WC_WR_FLUSH_ERR);
        CHECK(flushed.vendor_err == static_cast<uint32_t>(hwif::VendorStatus::FLUSH_SQE));
      });
      // Told in each life between errors.
      CHECK(std::count(said.begin(), said.end(), '\n') == 1);
      CHECK(wait_wc(ends.b_cq).wr_id == 50);
      // Later posts are flushed, receives are not.
      REQUIRE(message(4, good) == 0);
      CHECK(wait_wc(ends.a_cq).status == IBV_WC_WR_FLUSH_ERR);
      ibv_qp_attr attr{};
      ibv_qp_init_attr init{};
      ends.a_qp.query(attr, init);
      CHECK(attr.qp_state == IBV_QPS_SQE);
      attr.qp_state = IBV_QPS_RTS;
      attr.cur_qp_state = IBV_QPS_SQE;
      ends.a_qp.modify(attr, IBV_QP_STATE | IBV_QP_CUR_STATE);
      REQUIRE(message(5, good) == 0);
      CHECK(wait_wc(ends.a_cq).status == IBV_WC_SUCCESS);
      CHECK(wait_wc(ends.b_cq).wr_id == 51);
      REQUIRE(message(6, good) == 0);
      CHECK(wait_wc(ends.a_cq).status == IBV_WC_SUCCESS);
      CHECK(wait_wc(ends.b_cq).wr_id == 52);
    }
  }
}

TEST_CASE("UC: messages; nothing answers, nothing is sent twice") {
  Ends ends(IBV_QPT_UC);
  for (size_t i = 0; i < 8192; ++i) ends.a_memory.buffer[i] = static_cast<uint8_t>(i * 11);
  ibv_sge from = ends.a_memory.sge(0, 8000);
  REQUIRE(ends.receive(8000, 1) == 0);
  ibv_send_wr wr = send_wr(IBV_WR_SEND_WITH_IMM, &from, 1, 5);
  wr.imm_data = htobe32(17);
  REQUIRE(post(ends.a_qp, wr) == 0);
  CHECK(wait_wc(ends.a_cq).status == IBV_WC_SUCCESS);
  ibv_wc wc = wait_wc(ends.b_cq);
  CHECK(wc.byte_len == 8000);
  CHECK(wc.wc_flags == IBV_WC_WITH_IMM);
  CHECK(std::memcmp(ends.b_memory.buffer.data(), ends.a_memory.buffer.data(), 8000) == 0);
  wr = send_wr(IBV_WR_RDMA_WRITE, &from, 1, 6);
  wr.wr.rdma.remote_addr = ends.b_memory.address() + 8000;
  wr.wr.rdma.rkey = ends.b_memory.mr.rkey();
  REQUIRE(post(ends.a_qp, wr) == 0);
  CHECK(wait_wc(ends.a_cq).status == IBV_WC_SUCCESS);
  CHECK(std::memcmp(ends.b_memory.buffer.data() + 8000, ends.a_memory.buffer.data(), 8000) == 0);
  // No receive, a bad key: lost without a word, and the connection stays.
  wr = send_wr(IBV_WR_SEND, &from, 1, 7);
  REQUIRE(post(ends.a_qp, wr) == 0);
  CHECK(wait_wc(ends.a_cq).status == IBV_WC_SUCCESS);
  wr = send_wr(IBV_WR_RDMA_WRITE, &from, 1, 8);
  wr.wr.rdma.rkey = 0xbad;
  REQUIRE(post(ends.a_qp, wr) == 0);
  CHECK(wait_wc(ends.a_cq).status == IBV_WC_SUCCESS);
  no_wc(ends.b_cq);
  // Operations that it does not have.
  const std::string said = stderr_of([&] {
    for (const auto opcode :
         {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
      from.length = 8;
      wr = send_wr(opcode, &from, 1, 9);
      CHECK(post(ends.a_qp, wr) == EOPNOTSUPP);
    }
    ends.a_qp.begin();
    ends.a_qp.open_operation(hwif::WrOpcode::READ, 1, 0, 0, 0, 0);
    ends.a_qp.set_sges(&from, 1);
    CHECK(ends.a_qp.complete() == EOPNOTSUPP);
  });
  CHECK(std::count(said.begin(), said.end(), '\n') == 1);
  CHECK(said.find("opcode 4: it has SEND, SEND_WITH_IMM, RDMA_WRITE, RDMA_WRITE_WITH_IMM\n") !=
        std::string::npos);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ends.a_qp.query(attr, init);
  CHECK(attr.qp_state == IBV_QPS_RTS);
  CHECK(init.qp_type == IBV_QPT_UC);
}

TEST_CASE("UC: the table of transitions; a group is no peer") {
  struct Row {
    ibv_qp_state from, to;
    int required, optional;
  };
  constexpr int PATHS = IBV_QP_PATH_MIG_STATE;
  constexpr int LIVE = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS;
  const Row rows[] = {
      {IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT & ~IBV_QP_STATE, 0},
      {IBV_QPS_INIT, IBV_QPS_INIT, 0, TO_INIT & ~IBV_QP_STATE},
      {IBV_QPS_INIT, IBV_QPS_RTR, UC_TO_RTR & ~IBV_QP_STATE, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
      {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, LIVE | PATHS},
      {IBV_QPS_RTS, IBV_QPS_RTS, 0, LIVE | PATHS},
      {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      {IBV_QPS_SQD, IBV_QPS_RTS, 0, LIVE | PATHS},
      {IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | PATHS},
  };
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  Cq cq(host.context, {64, nullptr, false});
  for (const Row& row : rows) {
    for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
      if (bit == IBV_QP_STATE || bit == IBV_QP_CAP || bit == IBV_QP_ALT_PATH) continue;
      CAPTURE(row.from, row.to, bit);
      Qp qp(host.pd, {&cq, &cq, caps(), IBV_QPT_UC, false, false});
      ibv_qp_attr attr = attributes(IBV_QPS_INIT, qp.number(), path_to(nic));
      const auto go = [&](ibv_qp_state state, int mask) {
        attr.qp_state = state;
        return error_of([&] { qp.modify(attr, mask | IBV_QP_STATE); });
      };
      if (row.from != IBV_QPS_RESET) REQUIRE(go(IBV_QPS_INIT, TO_INIT) == 0);
      if (row.from >= IBV_QPS_RTR) REQUIRE(go(IBV_QPS_RTR, UC_TO_RTR) == 0);
      if (row.from >= IBV_QPS_RTS) REQUIRE(go(IBV_QPS_RTS, IBV_QP_SQ_PSN) == 0);
      if (row.from == IBV_QPS_SQD) REQUIRE(go(IBV_QPS_SQD, 0) == 0);
      attr.cur_qp_state = row.from;
      if (row.required & bit) {
        CHECK(go(row.to, row.required & ~bit) == EINVAL);
      } else {
        CHECK(go(row.to, row.required | bit) == (row.optional & bit ? 0 : EINVAL));
      }
    }
  }
  Qp qp(host.pd, {&cq, &cq, caps(), IBV_QPT_UC, false, false});
  ibv_qp_attr attr = attributes(IBV_QPS_INIT, qp.number(), path_to(nic));
  qp.modify(attr, TO_INIT);
  attr.qp_state = IBV_QPS_RTR;
  std::memcpy(attr.ah_attr.grh.dgid.raw, mapped(239, 0, 0, 1).bytes, 16);
  std::string text;
  CHECK(error_of([&] { qp.modify(attr, UC_TO_RTR); }, &text) == EINVAL);
  CHECK(text.find("a group is for UD") != std::string::npos);
}

TEST_CASE("groups: attached queue pairs get a copy; what is no group is refused") {
  FakeConfig config;
  config.multicast = true;
  Ends ends(IBV_QPT_UD, config);
  CHECK(ends.a.device->limits().max_multicast == 32);
  const Gid group{{0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe1, 2, 3, 4}};
  ibv_ah_attr attr = path_to(ends.b_nic);
  std::memcpy(attr.grh.dgid.raw, group.bytes, 16);
  const Ah ah(ends.a.pd, attr);
  const auto sent = [&] {
    ibv_send_wr wr = ends.datagram(ah, 8, 1);
    wr.wr.ud.remote_qpn = hwif::QPN_MULTICAST;
    REQUIRE(post(ends.a_qp, wr) == 0);
    CHECK(wait_wc(ends.a_cq).status == IBV_WC_SUCCESS);
  };
  REQUIRE(ends.receive(GRH + 8, 3) == 0);
  sent();
  no_wc(ends.b_cq);
  ends.b_qp.attach_multicast(group);
  CHECK(error_of([&] { ends.b_qp.attach_multicast(group); }) == EEXIST);
  sent();
  CHECK(wait_wc(ends.b_cq).wr_id == 3);
  CHECK(error_of([&] { ends.b_qp.destroy(); }) == EBUSY);
  ends.b_qp.detach_multicast(group);
  CHECK(error_of([&] { ends.b_qp.detach_multicast(group); }) == ENOENT);
  std::string text;
  CHECK(error_of([&] { ends.b_qp.attach_multicast(mapped(10, 0, 0, 1)); }, &text) == EINVAL);
  CHECK(text.find("no multicast GID") != std::string::npos);
  Cq cq(ends.a.context, {16, nullptr, false});
  Qp rc(ends.a.pd, {&cq, &cq, caps(), IBV_QPT_RC, false, false});
  CHECK(error_of([&] { rc.attach_multicast(group); }, &text) == EINVAL);
  CHECK(text.find("groups are for UD") != std::string::npos);
  // A device without groups says so.
  Ends without(IBV_QPT_UD);
  CHECK(error_of([&] { without.b_qp.attach_multicast(group); }, &text) == EOPNOTSUPP);
  CHECK(text.find("does not have it") != std::string::npos);
}
