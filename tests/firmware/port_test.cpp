// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// GID and P_Key tables, port attributes, counters, events.
#include "rig.hpp"

using namespace roci::test;
namespace hwif = roci::hwif;
namespace fw = roci::fw;

namespace {

hwif::GidEntry gid_entry() {
  using G = hwif::GidEntry;
  G g{};
  g.set<G::gid>({{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}});
  g.set<G::gid_type>(hwif::GidType::ROCE_V1);
  return g;
}

std::uint32_t async_eq(Rig& rig, unsigned fn) {
  auto p = Rig::eq_params();
  p.set<hwif::CreateEqParams::async_events>(true);
  return rig.make<admin::CreateEq>(fn, 0u, p);
}

}  // namespace

TEST_CASE("GIDs") {
  Rig rig;
  using G = hwif::GidEntry;
  using T = hwif::EqeType;
  async_eq(rig, 1);
  async_eq(rig, 3);
  REQUIRE(rig.run<admin::SetGid>(0, 1, gid_entry()).ok());
  REQUIRE(rig.hw.context(CtxColumn::GID, 1, 1) == 0);
  REQUIRE(rig.hw.context(CtxColumn::GID, 1, 0) == 0x0000ffff0a000001);
  REQUIRE(rig.hw.context(CtxColumn::GID, 1, 2) == 1);
  rig.steps(10);
  REQUIRE(rig.hw.events == std::vector<Event>{{1, T::GID_CHANGE, 1}, {3, T::GID_CHANGE, 1}});
  rig.hw.events.clear();

  const auto bad = [&](auto change, AdminStatus status, AdminField field) {
    G g = gid_entry();
    change(g);
    rig.refused<admin::SetGid>(0, 1, g, status, field);
  };
  bad([](G& g) { g.set<G::gid>({}); }, AdminStatus::INVALID, AdminField::GID);
  bad([](G& g) { g.set<G::gid>({{0xff, 2}}); }, AdminStatus::INVALID, AdminField::GID);
  bad([](G& g) { g.set<G::gid_type>(hwif::GidType::NONE); }, AdminStatus::INVALID,
      AdminField::GID_TYPE);
  bad([](G& g) { g.set<G::gid_type>(hwif::GidType::ROCE_V2); }, AdminStatus::UNSUPPORTED,
      AdminField::GID_TYPE);
  bad([](G& g) { g.set<G::gid_type>(static_cast<hwif::GidType>(9)); }, AdminStatus::INVALID,
      AdminField::GID_TYPE);
  bad([](G& g) {
    g.set<G::vlan_present>(true);
    g.set<G::vlan_id>(0xfff);
  }, AdminStatus::INVALID, AdminField::VLAN_ID);
  rig.refused<admin::SetGid>(0, fw::GIDS, gid_entry(), AdminStatus::INVALID, AdminField::OBJECT);

  G vlan = gid_entry();
  vlan.set<G::vlan_present>(true);
  vlan.set<G::vlan_id>(77);
  REQUIRE(rig.run<admin::SetGid>(0, 2, vlan).ok());
  // any function reads them, in pieces of the buffer if there are many
  Command query = rig.command<admin::QueryGid>(0);
  query.command.set<hwif::AdminCommand::output_length>(32 * fw::GIDS);
  REQUIRE(rig.run(2, query).ok());
  for (unsigned n = 0; n < fw::GIDS; ++n) {
    const G g = rig.output<G>(2, OUTPUT_ADDRESS + 32 * n);
    INFO("entry " << n);
    if (n == 0) {
      REQUIRE(g.get<G::gid>().bytes[0] == 0xfe);
      REQUIRE(g.get<G::gid>().bytes[15] == 1);
      REQUIRE(g.get<G::gid_type>() == hwif::GidType::ROCE_V1);
    } else if (n == 1) {
      REQUIRE(g == gid_entry());
    } else if (n == 2) {
      REQUIRE(g == vlan);
    } else {
      REQUIRE(g == G{});
    }
  }
  query = rig.command<admin::QueryGid>(fw::GIDS - 1);
  query.command.set<hwif::AdminCommand::output_length>(64);
  REQUIRE(rig.refused<admin::QueryGid>(2, query, AdminStatus::TOO_BIG, AdminField::OUTPUT_LENGTH)
              .detail == 32);
  rig.refused<admin::QueryGid>(2, rig.command<admin::QueryGid>(fw::GIDS), AdminStatus::INVALID,
                               AdminField::OBJECT);
  REQUIRE(rig.run<admin::DelGid>(0, 2).ok());
  REQUIRE(rig.hw.context(CtxColumn::GID, 2, 2) == 0);
  rig.refused<admin::DelGid>(0, rig.command<admin::DelGid>(2), AdminStatus::NOT_FOUND,
                             AdminField::OBJECT);
  rig.refused<admin::DelGid>(0, rig.command<admin::DelGid>(fw::GIDS), AdminStatus::INVALID,
                             AdminField::OBJECT);
}

TEST_CASE("P_Keys") {
  Rig rig;
  using P = hwif::SetPkeyParams;
  const auto params = [](std::uint16_t pkey) {
    P p{};
    p.set<P::pkey>(pkey);
    return p;
  };
  async_eq(rig, 2);
  REQUIRE(rig.hw.context(CtxColumn::PKEY, 0, 0) == 0xffff);
  REQUIRE(rig.run<admin::SetPkey>(0, 1, params(0x8123)).ok());
  REQUIRE(rig.hw.context(CtxColumn::PKEY, 1, 0) == 0x8123);
  rig.steps(3);
  REQUIRE(rig.hw.events == std::vector<Event>{{2, hwif::EqeType::PKEY_CHANGE, 1}});
  rig.refused<admin::SetPkey>(0, 1, params(0x8000), AdminStatus::INVALID, AdminField::PKEY);
  rig.refused<admin::SetPkey>(0, fw::PKEYS, params(1), AdminStatus::INVALID, AdminField::OBJECT);
  Command query = rig.command<admin::QueryPkey>(0);
  query.command.set<hwif::AdminCommand::output_length>(2 * fw::PKEYS);
  REQUIRE(rig.run(5, query).ok());
  using E = hwif::PkeyEntry;
  REQUIRE(rig.output<E>(5, OUTPUT_ADDRESS).get<E::pkey>() == 0xffff);
  REQUIRE(rig.output<E>(5, OUTPUT_ADDRESS + 2).get<E::pkey>() == 0x8123);
  REQUIRE(rig.output<E>(5, OUTPUT_ADDRESS + 4).get<E::pkey>() == 0);
  query = rig.command<admin::QueryPkey>(fw::PKEYS);
  rig.refused<admin::QueryPkey>(5, query, AdminStatus::INVALID, AdminField::OBJECT);
  // in use
  const Objects o = Objects::make(rig, 1);
  auto a = Rig::attributes();
  using A = hwif::QpAttributes;
  a.set<A::state>(QpState::INIT);
  a.set<A::pkey_index>(1);
  REQUIRE(rig.modify(1, o.qp, TO_INIT, a).ok());
  rig.refused<admin::SetPkey>(0, 1, params(0), AdminStatus::BUSY, AdminField::OBJECT);
  rig.make<admin::DestroyQp>(1, o.qp);
  REQUIRE(rig.run<admin::SetPkey>(0, 1, params(0)).ok());
  REQUIRE(rig.hw.context(CtxColumn::PKEY, 1, 0) == 0);
  // a new image begins with the default one
  REQUIRE(rig.run<admin::SetPkey>(0, 3, params(0x1234)).ok());
  rig.hw.self_ticking = true;
  fw::state = fw::State{};
  REQUIRE(fw::boot());
  for (unsigned n = 0; n < fw::PKEYS; ++n) {
    REQUIRE(rig.hw.context(CtxColumn::PKEY, n, 0) == (n == 0 ? 0xffff : 0));
  }
}

TEST_CASE("a P_Key is in use from INIT to RESET, whatever type uses it") {
  Rig rig;
  using P = hwif::SetPkeyParams;
  P params{};
  params.set<P::pkey>(0x8123);
  REQUIRE(rig.run<admin::SetPkey>(0, 1, params).ok());
  params.set<P::pkey>(0x8124);
  const Objects o = Objects::make(rig, 0);
  for (const auto type : {hwif::QpType::UC, hwif::QpType::UD, hwif::QpType::GSI}) {
    const auto qp =
        rig.make<admin::CreateQp>(0, o.pd, Rig::qp_params(o.cq, o.cq2, type));
    auto a = Rig::attributes();
    using A = hwif::QpAttributes;
    a.set<A::state>(QpState::INIT);
    a.set<A::pkey_index>(1);
    a.set<A::qkey>(hwif::QKEY_GSI);
    REQUIRE(rig.modify(0, qp, step_mask(type, QpState::INIT), a).ok());
    using Path = hwif::CtxQpPath;
    REQUIRE(rig.hw.row<Path>(CtxColumn::QP_PATH, qp % fw::QPS).get<Path::pkey>() == 0x8123);
    rig.refused<admin::SetPkey>(0, 1, params, AdminStatus::BUSY, AdminField::OBJECT);
    a.set<A::state>(QpState::RESET);
    REQUIRE(rig.modify(0, qp, MASK_STATE, a).ok());
  }
  REQUIRE(rig.run<admin::SetPkey>(0, 1, params).ok());
}

TEST_CASE("port attributes") {
  Rig rig;
  using P = hwif::PortAttributes;
  using I = hwif::ModifyPortInput;
  rig.hw.set_context(CtxColumn::COUNTER, static_cast<unsigned>(hwif::Counter::RX_DROP_PKEY), 0, 12);
  rig.hw.set_context(CtxColumn::COUNTER, static_cast<unsigned>(hwif::Counter::RX_DROP_QKEY), 0,
                     0x10000);
  REQUIRE(rig.run<admin::QueryPort>(3, 1).ok());
  P p = rig.output<P>(3);
  REQUIRE(p.get<P::mac>() == roci::hwif::ByteArray<6>{{2, 0, 0, 0, 0, 1}});
  REQUIRE(p.get<P::link_up>());
  REQUIRE_FALSE(p.get<P::enabled>());
  REQUIRE(p.get<P::active_mtu>() == hwif::Mtu::MTU_4096);
  REQUIRE(p.get<P::max_mtu>() == hwif::Mtu::MTU_4096);
  REQUIRE(p.get<P::gid_table_length>() == fw::GIDS);
  REQUIRE(p.get<P::pkey_table_length>() == fw::PKEYS);
  REQUIRE(p.get<P::bad_pkey_count>() == 12);
  REQUIRE(p.get<P::bad_qkey_count>() == 0xffff);
  REQUIRE(p.get<P::speed_mbps>() == 100000);
  rig.refused<admin::QueryPort>(3, rig.command<admin::QueryPort>(2), AdminStatus::INVALID,
                                AdminField::OBJECT);

  async_eq(rig, 4);
  const auto modify = [&](std::uint32_t port, auto change) {
    I input{};
    P wanted{};
    change(input, wanted);
    input.set<I::attributes>(wanted);
    Command c = rig.command<admin::ModifyPort>(port);
    Rig::set_input<admin::ModifyPort>(c, input);
    return c;
  };
  REQUIRE(rig.run(0, modify(1, [](I& i, P& w) {
    w.set<P::mac>({{0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xee}});
    w.set<P::enabled>(true);
    w.set<P::active_mtu>(hwif::Mtu::MTU_1024);
    i.set<I::change_mac>(true);
    i.set<I::change_enabled>(true);
    i.set<I::change_active_mtu>(true);
  })).ok());
  using C = hwif::CtxCsr;
  const auto csr = rig.hw.row<C>(CtxColumn::CSR, 0);
  REQUIRE(csr.get<C::mac>().bytes[5] == 0xee);
  REQUIRE(csr.get<C::enable>());
  REQUIRE(csr.get<C::active_mtu>() == hwif::Mtu::MTU_1024);
  REQUIRE(rig.hw.context(CtxColumn::PORT, 0, 0) == 0x02aabbccddee);
  REQUIRE(rig.hw.context(CtxColumn::GID, 0, 0) == 0x00aabbfffeccddee);
  rig.steps(3);
  REQUIRE(rig.hw.events == std::vector<Event>{{4, hwif::EqeType::GID_CHANGE, 0}});
  // nothing asked, nothing changed
  REQUIRE(rig.run(0, modify(1, [](I&, P& w) { w.set<P::enabled>(false); })).ok());
  REQUIRE(rig.hw.row<C>(CtxColumn::CSR, 0).get<C::enable>());
  rig.refused<admin::ModifyPort>(0, modify(1, [](I& i, P& w) {
    w.set<P::mac>({{0x03, 0, 0, 0, 0, 1}});
    i.set<I::change_mac>(true);
  }), AdminStatus::INVALID, AdminField::MAC);
  rig.refused<admin::ModifyPort>(0, modify(1, [](I& i, P&) { i.set<I::change_mac>(true); }),
                                 AdminStatus::INVALID, AdminField::MAC);
  rig.refused<admin::ModifyPort>(0, modify(1, [](I& i, P& w) {
    w.set<P::active_mtu>(static_cast<hwif::Mtu>(6));
    i.set<I::change_active_mtu>(true);
  }), AdminStatus::INVALID, AdminField::ACTIVE_MTU);
  rig.refused<admin::ModifyPort>(0, modify(2, [](I&, P&) {}), AdminStatus::INVALID,
                                 AdminField::OBJECT);
  // path MTUs are limited by it
  const Objects o = Objects::make(rig, 1);
  bring(rig, 1, o.qp, QpState::INIT);
  auto a = Rig::attributes();
  using A = hwif::QpAttributes;
  a.set<A::state>(QpState::RTR);
  a.set<A::path_mtu>(hwif::Mtu::MTU_2048);
  const Answer answer = rig.modify(1, o.qp, TO_RTR, a);
  REQUIRE(answer.status == AdminStatus::INVALID);
  REQUIRE(answer.field == AdminField::PATH_MTU);
  REQUIRE(answer.detail == static_cast<std::uint32_t>(hwif::Mtu::MTU_1024));
}

TEST_CASE("registers that the host writes take effect") {
  Rig rig;
  using C = hwif::CtxCsr;
  async_eq(rig, 1);
  auto csr = rig.hw.row<C>(CtxColumn::CSR, 0);
  csr.set<C::mac>({{0x02, 0, 0, 0, 0, 9}});
  csr.set<C::byte_cap>(1u << 16 | 5);
  rig.hw.set_context(CtxColumn::CSR, 0, 0, csr.words[0]);
  rig.hw.set_context(CtxColumn::CSR, 0, 3, csr.words[3]);
  rig.hw.port_written = true;
  rig.steps(3);
  REQUIRE_FALSE(rig.hw.port_written);
  REQUIRE(rig.hw.context(CtxColumn::PORT, 0, 0) == 0x020000000009);
  REQUIRE((rig.hw.context(CtxColumn::GID, 0, 0) & 0xff) == 9);
  REQUIRE(rig.hw.context(CtxColumn::TUNING, 0, 0) == 16);
  REQUIRE(rig.hw.events == std::vector<Event>{{1, hwif::EqeType::GID_CHANGE, 0}});
  // a link that goes and comes
  csr.set<C::link_up>(false);
  rig.hw.set_context(CtxColumn::CSR, 0, 1, csr.words[1]);
  rig.steps(65540);
  REQUIRE(rig.hw.events.back() == Event{1, hwif::EqeType::PORT_ERROR, 0});
  csr.set<C::link_up>(true);
  rig.hw.set_context(CtxColumn::CSR, 0, 1, csr.words[1]);
  rig.steps(65540);
  REQUIRE(rig.hw.events.back() == Event{1, hwif::EqeType::PORT_ACTIVE, 0});
  REQUIRE(rig.hw.events.size() == 3);
}

TEST_CASE("counters, all of them or some") {
  Rig rig;
  for (unsigned n = 0; n < 256; ++n) {
    rig.hw.set_context(CtxColumn::COUNTER, n, 0, 0x1'0000'0000u * n + n);
  }
  Command all = rig.command<admin::QueryCounters>(0);
  all.command.set<hwif::AdminCommand::output_length>(8 * 256);
  REQUIRE(rig.run(3, all, 400).ok());
  using V = hwif::CounterValue;
  for (unsigned n = 0; n < 256; ++n) {
    REQUIRE(rig.output<V>(3, OUTPUT_ADDRESS + 8 * n).get<V::count>() == 0x1'0000'0000u * n + n);
  }
  REQUIRE(rig.hw.memory(3).count(OUTPUT_ADDRESS + 8 * 256) == 0);
  rig.hw.memory(3).clear();
  Command some = rig.command<admin::QueryCounters>(0x30);
  some.command.set<hwif::AdminCommand::output_length>(16);
  REQUIRE(rig.run(3, some).ok());
  REQUIRE(rig.hw.memory(3).size() == 16);
  REQUIRE(rig.output<V>(3).get<V::count>() == 0x30'0000'0030u);
  some = rig.command<admin::QueryCounters>(255);
  some.command.set<hwif::AdminCommand::output_length>(16);
  rig.refused<admin::QueryCounters>(3, some, AdminStatus::TOO_BIG, AdminField::OUTPUT_LENGTH);
  rig.refused<admin::QueryCounters>(3, rig.command<admin::QueryCounters>(256),
                                    AdminStatus::INVALID, AdminField::OBJECT);
  // a bus error in the middle ends it
  rig.hw.memory(3).clear();
  rig.hw.post(3, all);
  while (rig.hw.memory(3).count(OUTPUT_ADDRESS) == 0) rig.step();      // the first piece
  rig.hw.unwritable.insert(3);
  rig.steps(10);
  Answer answer{};
  REQUIRE(rig.take(3, answer));
  REQUIRE(answer.status == AdminStatus::BAD_ADDRESS);
}

TEST_CASE("events of ignored doorbells and failed queues come once") {
  Rig rig;
  using T = hwif::EqeType;
  async_eq(rig, 1);
  rig.hw.event_steps = 3;
  rig.hw.bell_errors = 1u << 1 | 1u << 2;             // function 2 has no event queue
  rig.hw.failed_queues = 1u << 1;
  rig.steps(12);
  REQUIRE(rig.hw.events == std::vector<Event>{{1, T::DOORBELL_ERROR, 0},
                                              {1, T::FUNCTION_ERROR, 0}});
  rig.hw.bell_errors = 1u << 1;
  rig.steps(12);
  REQUIRE(rig.hw.events.size() == 2);
  // whoever reads the counters hears of the next one
  REQUIRE(rig.run<admin::QueryCounters>(1, 0x50).ok());
  rig.hw.bell_errors = 1u << 1;
  rig.steps(12);
  REQUIRE(rig.hw.events.size() == 3);
  REQUIRE(rig.hw.events.back() == Event{1, T::DOORBELL_ERROR, 0});
}
