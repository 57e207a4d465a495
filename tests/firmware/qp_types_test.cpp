// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Queue pairs of UC, UD and GSI: their rows in the states of their life, Q_Keys and who may have which,
// the one GSI queue pair, SQE, QUERY_QP.
#include "rig.hpp"

using namespace roci::test;
namespace hwif = roci::hwif;
namespace fw = roci::fw;
using A = hwif::QpAttributes;
using T = hwif::QpType;
using Q = hwif::QueryQpOutput;

namespace {

constexpr std::uint32_t PRIVILEGED_QKEY = 0x8765'4321;

unsigned index_of(std::uint32_t qpn) { return qpn % fw::QPS; }

template <class Row>
Row row_of(Rig& rig, CtxColumn column, std::uint32_t qpn) {
  return rig.hw.row<Row>(column, index_of(qpn));
}

std::uint32_t make_qp(Rig& rig, unsigned fn, const Objects& o, T type) {
  return rig.make<admin::CreateQp>(fn, o.pd, Rig::qp_params(o.cq, o.cq2, type));
}

Answer modify(Rig& rig, unsigned fn, std::uint32_t qpn, std::uint32_t mask, QpState to,
              std::uint32_t qkey = QKEY) {
  A a = Rig::attributes();
  a.set<A::state>(to);
  a.set<A::qkey>(qkey);
  return rig.modify(fn, qpn, mask, a);
}

/// Own Q_Key, P_Key and number where hardware looks for those of datagrams.
void check_datagram_rows(Rig& rig, std::uint32_t qpn, std::uint32_t qkey, std::uint16_t pkey) {
  using P = hwif::CtxQpPath;
  const auto path = row_of<P>(rig, CtxColumn::QP_PATH, qpn);
  REQUIRE(path.get<P::dgid_low>() == (std::uint64_t{qpn} << 32 | qkey));
  REQUIRE(path.get<P::pkey>() == pkey);
  using X = hwif::CtxQpRx;
  const auto rx = row_of<X>(rig, CtxColumn::QP_RX, qpn);
  REQUIRE(rx.get<X::valid>());
  REQUIRE(rx.get<X::qpn>() == qpn);
  REQUIRE(rx.get<X::peer_gid_low>() == qkey);
  REQUIRE(rx.get<X::pkey>() == pkey);
}

}  // namespace

TEST_CASE("the type of a queue pair is in every row that wants it, in every state") {
  for (const T type : {T::RC, T::UC, T::UD, T::GSI}) {
    Rig rig;
    const Objects o = Objects::make(rig, 0);
    const auto qp = make_qp(rig, 0, o, type);
    const auto check = [&] {
      using K = hwif::CtxQpAck;
      using X = hwif::CtxQpRx;
      using R = hwif::CtxQpRq;
      using S = hwif::CtxQpTx;
      REQUIRE(row_of<S>(rig, CtxColumn::QP_TX, qp).get<S::qp_type>() == type);
      REQUIRE(row_of<K>(rig, CtxColumn::QP_ACK, qp).get<K::qp_type>() == type);
      REQUIRE(row_of<X>(rig, CtxColumn::QP_RX, qp).get<X::qp_type>() == type);
      REQUIRE(row_of<X>(rig, CtxColumn::QP_RX, qp).get<X::qpn>() == qp);
      REQUIRE(row_of<R>(rig, CtxColumn::QP_RQ, qp).get<R::qp_type>() == type);
      REQUIRE(rig.run<admin::QueryQp>(0, qp).ok());
      const Q q = rig.output<Q>(0);
      REQUIRE(q.get<Q::creation>() == Rig::qp_params(o.cq, o.cq2, type));
    };
    check();
    for (int life = 0; life < 2; ++life) {
      for (const QpState to : {QpState::INIT, QpState::RTR, QpState::RTS}) {
        REQUIRE(modify(rig, 0, qp, step_mask(type, to), to,
                       type == T::GSI ? hwif::QKEY_GSI : QKEY).ok());
        check();
      }
      REQUIRE(modify(rig, 0, qp, MASK_STATE, QpState::SQD).ok());
      REQUIRE(modify(rig, 0, qp, MASK_STATE, QpState::RTS).ok());
      check();
      REQUIRE(modify(rig, 0, qp, MASK_STATE, QpState::RESET).ok());
      check();
    }
  }
}

TEST_CASE("UC: a path like that of RC, and nothing that waits or is repeated") {
  Rig rig;
  const Objects o = Objects::make(rig, 2);
  const auto qp = make_qp(rig, 2, o, T::UC);
  const unsigned n = index_of(qp);
  // attributes that RC alone has are in the command, but not meant
  bring(rig, 2, qp, QpState::RTS, T::UC);
  using P = hwif::CtxQpPath;
  const auto path = row_of<P>(rig, CtxColumn::QP_PATH, qp);
  REQUIRE(path.get<P::dest_qpn>() == 0x112233);
  REQUIRE(path.get<P::dgid_low>() == 0x123456fffe789abc);
  REQUIRE(path.get<P::pkey>() == 0xffff);
  using X = hwif::CtxQpRx;
  REQUIRE(row_of<X>(rig, CtxColumn::QP_RX, qp).get<X::peer_gid_low>() == 0x123456fffe789abc);
  using S = hwif::CtxQpTx;
  const auto tx = row_of<S>(rig, CtxColumn::QP_TX, qp);
  REQUIRE(tx.get<S::mtu>() == hwif::Mtu::MTU_1024);
  REQUIRE(tx.get<S::max_rd_atomic>() == 0);
  REQUIRE(tx.get<S::read_base>() == 2 * n);           // its own two, no more
  REQUIRE(tx.get<S::read_log2>() == 1);
  REQUIRE(tx.get<S::inflight_log2>() == (fw::IS_WIDE ? 8 : 3));   // as RC
  using R = hwif::CtxQpRq;
  const auto rq = row_of<R>(rig, CtxColumn::QP_RQ, qp);
  REQUIRE(rq.get<R::mtu>() == hwif::Mtu::MTU_1024);
  REQUIRE(rq.get<R::replay_base>() == 2 * n);
  REQUIRE(rq.get<R::replay_log2>() == 1);
  REQUIRE(rq.get<R::min_rnr_timer>() == 0);
  REQUIRE(rq.get<R::rights>().get<hwif::AccessRights::remote_write>());
  using I = hwif::CtxQpTimer;
  REQUIRE(row_of<I>(rig, CtxColumn::QP_TIMER, qp).get<I::timeout>() == 0);
  REQUIRE(row_of<I>(rig, CtxColumn::QP_TIMER, qp).get<I::psn>() == 0xfffffe);
  REQUIRE(rig.hw.context(CtxColumn::QP_RETRY, n, 0) == 0);
  using Y = hwif::CtxQpRqDyn;
  REQUIRE(row_of<Y>(rig, CtxColumn::QP_RQ_DYN, qp).get<Y::next_psn>() == 0);
  using D = hwif::CtxQpTxDyn;
  REQUIRE(row_of<D>(rig, CtxColumn::QP_TX_DYN, qp).get<D::next_psn>() == 0xfffffe);

  REQUIRE(rig.run<admin::QueryQp>(2, qp).ok());
  A expected = Rig::attributes();
  expected.set<A::state>(QpState::RTS);
  expected.set<A::timeout>(0);
  expected.set<A::retry_count>(0);
  expected.set<A::rnr_retry>(0);
  expected.set<A::min_rnr_timer>(0);
  expected.set<A::initiator_depth>(0);
  expected.set<A::responder_depth>(0);
  REQUIRE(rig.output<Q>(2).get<Q::attributes>() == expected);

  // rights while it works
  hwif::AccessRights none{};
  A a = Rig::attributes();
  a.set<A::rights>(none);
  REQUIRE(rig.modify(2, qp, MASK_RIGHTS, a).ok());
  REQUIRE_FALSE(row_of<R>(rig, CtxColumn::QP_RQ, qp)
                    .get<R::rights>().get<hwif::AccessRights::remote_write>());
  REQUIRE(row_of<R>(rig, CtxColumn::QP_RQ, qp).get<R::replay_log2>() == 1);
  // a new path in SQD
  REQUIRE(modify(rig, 2, qp, MASK_STATE, QpState::SQD).ok());
  auto v = a.get<A::path>();
  v.set<hwif::AddressVector::hop_limit>(3);
  a.set<A::path>(v);
  a.set<A::state>(QpState::SQD);
  REQUIRE(rig.modify(2, qp, MASK_STATE | MASK_PATH, a).ok());
  REQUIRE(row_of<P>(rig, CtxColumn::QP_PATH, qp).get<P::hop_limit>() == 3);
  REQUIRE(row_of<P>(rig, CtxColumn::QP_PATH, qp).get<P::dest_qpn>() == 0x112233);

  // RESET and another connection: everything is as new
  REQUIRE(modify(rig, 2, qp, MASK_STATE, QpState::RESET).ok());
  REQUIRE(fw::state.inflight.units_free() == (1u << fw::INFLIGHT_BITS) - 8 * fw::QPS);
  auto dyn = row_of<Y>(rig, CtxColumn::QP_RQ_DYN, qp);
  dyn.set<Y::next_psn>(77);
  dyn.set<Y::message>(2);
  dyn.set<Y::msn>(9);
  rig.hw.set_context(CtxColumn::QP_RQ_DYN, n, 0, dyn.words[0]);
  bring(rig, 2, qp, QpState::RTS, T::UC);
  REQUIRE(rig.hw.context(CtxColumn::QP_RQ_DYN, n, 0) == 0);
}

TEST_CASE("UC: values of its attributes are checked like those of RC") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  const auto qp = make_qp(rig, 1, o, T::UC);
  bring(rig, 1, qp, QpState::INIT, T::UC);
  A a = Rig::attributes();
  a.set<A::state>(QpState::RTR);
  a.set<A::path_mtu>(static_cast<hwif::Mtu>(6));
  const auto mask = step_mask(T::UC, QpState::RTR);
  rig.refused<admin::ModifyQp>(1, rig.modify_command(qp, mask, a), AdminStatus::INVALID,
                               AdminField::PATH_MTU);
  a = Rig::attributes();
  a.set<A::state>(QpState::RTR);
  auto v = a.get<A::path>();
  v.set<hwif::AddressVector::sgid_index>(1);
  a.set<A::path>(v);
  rig.refused<admin::ModifyQp>(1, rig.modify_command(qp, mask, a), AdminStatus::INVALID,
                               AdminField::SGID_INDEX);
}

TEST_CASE("UD: own Q_Key, P_Key and number are where a peer would be") {
  Rig rig;
  const Objects o = Objects::make(rig, 3);
  using G = hwif::SetPkeyParams;
  G pkey{};
  pkey.set<G::pkey>(0x8123);
  REQUIRE(rig.run<admin::SetPkey>(0, 2, pkey).ok());
  const auto qp = make_qp(rig, 3, o, T::UD);
  const unsigned n = index_of(qp);
  using R = hwif::CtxQpRq;
  using S = hwif::CtxQpTx;
  // what an old life left there is nobody's Q_Key
  rig.hw.set_context(CtxColumn::QP_RX, n, 1, ~std::uint64_t{0});
  rig.hw.set_context(CtxColumn::QP_RX, n, 2, ~std::uint64_t{0});
  rig.hw.set_context(CtxColumn::QP_PATH, n, 2, ~std::uint64_t{0});
  A a = Rig::attributes();                            // with a path and rights, which are not meant
  a.set<A::state>(QpState::INIT);
  a.set<A::qkey>(QKEY);
  REQUIRE(rig.modify(3, qp, step_mask(T::UD, QpState::INIT), a).ok());
  check_datagram_rows(rig, qp, QKEY, 0xffff);
  REQUIRE(rig.hw.context(CtxColumn::QP_RX, n, 2) == 0);
  REQUIRE(rig.hw.context(CtxColumn::QP_PATH, n, 2) == 0);
  REQUIRE(rig.hw.context(CtxColumn::QP_PATH, n, 0) == 0);
  REQUIRE(row_of<R>(rig, CtxColumn::QP_RQ, qp).get<R::rights>() == hwif::AccessRights{});
  REQUIRE(row_of<R>(rig, CtxColumn::QP_RQ, qp).get<R::mtu>() == hwif::Mtu::MTU_4096);
  using D = hwif::CtxQpDb;
  REQUIRE(row_of<D>(rig, CtxColumn::QP_DB, qp).get<D::takes_send>());
  REQUIRE(row_of<D>(rig, CtxColumn::QP_DB, qp).get<D::takes_receive>());

  // INIT → INIT
  a.set<A::qkey>(0x1111);
  a.set<A::pkey_index>(2);
  REQUIRE(rig.modify(3, qp, MASK_QKEY, a).ok());
  check_datagram_rows(rig, qp, 0x1111, 0xffff);
  REQUIRE(rig.modify(3, qp, MASK_PKEY, a).ok());
  check_datagram_rows(rig, qp, 0x1111, 0x8123);
  // INIT → RTR; the port's MTU limits what it sends
  using C = hwif::CtxCsr;
  auto csr = rig.hw.row<C>(CtxColumn::CSR, 0);
  csr.set<C::active_mtu>(hwif::Mtu::MTU_2048);
  rig.hw.set_context(CtxColumn::CSR, 0, 2, csr.words[2]);
  a.set<A::state>(QpState::RTR);
  a.set<A::qkey>(0x2222);
  REQUIRE(rig.modify(3, qp, MASK_STATE | MASK_QKEY, a).ok());
  check_datagram_rows(rig, qp, 0x2222, 0x8123);
  REQUIRE(row_of<S>(rig, CtxColumn::QP_TX, qp).get<S::mtu>() == hwif::Mtu::MTU_2048);
  REQUIRE(row_of<S>(rig, CtxColumn::QP_TX, qp).get<S::pd>() == o.pd);
  REQUIRE(row_of<R>(rig, CtxColumn::QP_RQ, qp).get<R::mtu>() == hwif::Mtu::MTU_4096);
  REQUIRE(row_of<R>(rig, CtxColumn::QP_RQ, qp).get<R::replay_log2>() == 1);
  // RTR → RTS
  a.set<A::state>(QpState::RTS);
  a.set<A::qkey>(0x3333);
  rig.hw.log.clear();
  REQUIRE(rig.modify(3, qp, MASK_STATE | MASK_SQ_PSN | MASK_QKEY, a).ok());
  check_datagram_rows(rig, qp, 0x3333, 0x8123);
  REQUIRE(rig.hw.log.back().first == CtxColumn::QP_STATE);
  const auto tx = row_of<S>(rig, CtxColumn::QP_TX, qp);
  REQUIRE(tx.get<S::mtu>() == hwif::Mtu::MTU_2048);
  REQUIRE(tx.get<S::max_rd_atomic>() == 0);
  REQUIRE(tx.get<S::read_log2>() == 1);
  REQUIRE(tx.get<S::inflight_log2>() == (fw::IS_WIDE ? 8 : 3));
  using E = hwif::CtxQpTxDyn;
  REQUIRE(row_of<E>(rig, CtxColumn::QP_TX_DYN, qp).get<E::next_psn>() == 0xfffffe);
  REQUIRE(rig.hw.context(CtxColumn::QP_RETRY, n, 0) == 0);
  using I = hwif::CtxQpTimer;
  REQUIRE(row_of<I>(rig, CtxColumn::QP_TIMER, qp).get<I::timeout>() == 0);
  REQUIRE(row_of<R>(rig, CtxColumn::QP_RQ, qp).get<R::rights>() == hwif::AccessRights{});
  // while it works, draining, drained, and after a failed send
  a.set<A::qkey>(0x4444);
  REQUIRE(rig.modify(3, qp, MASK_QKEY, a).ok());
  check_datagram_rows(rig, qp, 0x4444, 0x8123);
  REQUIRE(modify(rig, 3, qp, MASK_STATE, QpState::SQD).ok());
  a.set<A::qkey>(0x5555);
  a.set<A::pkey_index>(0);
  REQUIRE(rig.modify(3, qp, MASK_QKEY | MASK_PKEY, a).ok());
  check_datagram_rows(rig, qp, 0x5555, 0xffff);
  REQUIRE(modify(rig, 3, qp, MASK_STATE | MASK_QKEY, QpState::RTS, 0x6666).ok());
  check_datagram_rows(rig, qp, 0x6666, 0xffff);
  rig.hw.set_qp_state(n, QpState::SQE);
  REQUIRE(modify(rig, 3, qp, MASK_STATE | MASK_QKEY, QpState::RTS, 0x7777).ok());
  check_datagram_rows(rig, qp, 0x7777, 0xffff);
  REQUIRE(rig.hw.qp_state(n) == QpState::RTS);

  REQUIRE(rig.run<admin::QueryQp>(3, qp).ok());
  A expected{};
  expected.set<A::state>(QpState::RTS);
  expected.set<A::path_mtu>(hwif::Mtu::MTU_2048);
  expected.set<A::port>(1);
  expected.set<A::qkey>(0x7777);
  expected.set<A::sq_psn>(0xfffffe);
  REQUIRE(rig.output<Q>(3).get<Q::attributes>() == expected);
  // P_Keys that it had are free again
  pkey.set<G::pkey>(0);
  REQUIRE(rig.run<admin::SetPkey>(0, 2, pkey).ok());

  // the next life starts afresh
  REQUIRE(modify(rig, 3, qp, MASK_STATE, QpState::RESET).ok());
  REQUIRE(fw::state.inflight.units_free() == (1u << fw::INFLIGHT_BITS) - 8 * fw::QPS);
  bring(rig, 3, qp, QpState::RTS, T::UD);
  check_datagram_rows(rig, qp, QKEY, 0xffff);
  rig.make<admin::DestroyQp>(3, qp);
  REQUIRE(rig.hw.context(CtxColumn::QP_RX, n, 0) == 0);
}

TEST_CASE("UD: nothing of SQD changes before it is drained") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  const auto qp = make_qp(rig, 1, o, T::UD);
  bring(rig, 1, qp, QpState::RTS, T::UD);
  REQUIRE(modify(rig, 1, qp, MASK_STATE | MASK_NOTIFY, QpState::SQD).ok());
  using D = hwif::CtxQpTxDyn;
  auto dyn = row_of<D>(rig, CtxColumn::QP_TX_DYN, qp);
  dyn.set<D::max_psn>(3);
  rig.hw.set_context(CtxColumn::QP_TX_DYN, index_of(qp), 0, dyn.words[0]);
  REQUIRE(rig.run<admin::QueryQp>(1, qp).ok());
  REQUIRE(rig.output<Q>(1).get<Q::attributes>().get<A::draining>());
  A a = Rig::attributes();
  rig.refused<admin::ModifyQp>(1, rig.modify_command(qp, MASK_QKEY, a), AdminStatus::BUSY,
                               AdminField::STATE);
  using K = hwif::CtxQpAck;
  auto ack = row_of<K>(rig, CtxColumn::QP_ACK, qp);
  ack.set<K::acked_psn>(3);
  rig.hw.set_context(CtxColumn::QP_ACK, index_of(qp), 2, ack.words[2]);
  REQUIRE(rig.modify(1, qp, MASK_QKEY, a).ok());
  REQUIRE(rig.run<admin::QueryQp>(1, qp).ok());
  REQUIRE_FALSE(rig.output<Q>(1).get<Q::attributes>().get<A::draining>());
}

TEST_CASE("Q_Keys with bit 31 are for privileged functions") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  const auto qp = make_qp(rig, 1, o, T::UD);
  const auto refused = [&](std::uint32_t mask, QpState to) {
    A a = Rig::attributes();
    a.set<A::state>(to);
    a.set<A::qkey>(PRIVILEGED_QKEY);
    const Answer answer = rig.refused<admin::ModifyQp>(
        1, rig.modify_command(qp, mask, a), AdminStatus::NOT_PERMITTED, AdminField::QKEY);
    REQUIRE(answer.detail == 0x7fffffff);
  };
  refused(step_mask(T::UD, QpState::INIT), QpState::INIT);
  REQUIRE(rig.hw.qp_state(index_of(qp)) == QpState::RESET);
  bring(rig, 1, qp, QpState::RTS, T::UD);
  refused(MASK_QKEY, QpState::RTS);
  check_datagram_rows(rig, qp, QKEY, 0xffff);
  REQUIRE(modify(rig, 1, qp, MASK_QKEY, QpState::RTS, 0x7fffffff).ok());
  using S = hwif::FunctionSettings;
  S settings{};
  settings.set<S::privileged>(true);
  REQUIRE(rig.run<admin::SetFunction>(0, 1, settings).ok());
  REQUIRE(modify(rig, 1, qp, MASK_QKEY, QpState::RTS, PRIVILEGED_QKEY).ok());
  check_datagram_rows(rig, qp, PRIVILEGED_QKEY, 0xffff);
  REQUIRE(rig.run<admin::QueryQp>(1, qp).ok());
  REQUIRE(rig.output<Q>(1).get<Q::attributes>().get<A::qkey>() == PRIVILEGED_QKEY);
}

TEST_CASE("GSI: one, of function 0, with number 1 and its own Q_Key") {
  Rig rig;
  const Objects o = Objects::make(rig, 0);
  const Objects other = Objects::make(rig, 1);
  const auto params = Rig::qp_params(o.cq, o.cq2, T::GSI);
  rig.refused<admin::CreateQp>(1, other.pd, Rig::qp_params(other.cq, other.cq, T::GSI),
                               AdminStatus::NOT_PERMITTED, AdminField::QP_TYPE);
  const auto slots = fw::state.slots.units_free();
  for (int life = 0; life < 3; ++life) {
    const auto qp = rig.make<admin::CreateQp>(0, o.pd, params);
    REQUIRE(qp == 1);
    rig.refused<admin::CreateQp>(0, o.pd, params, AdminStatus::EXISTS, AdminField::QP_TYPE);
    using D = hwif::CtxQpDb;
    REQUIRE(row_of<D>(rig, CtxColumn::QP_DB, 1).get<D::number>() == 1);
    using W = hwif::CtxQpState;
    REQUIRE(row_of<W>(rig, CtxColumn::QP_STATE, 1).get<W::qpn>() == 1);
    A a = Rig::attributes();
    a.set<A::state>(QpState::INIT);
    for (const std::uint32_t wrong : {QKEY, 0x80010001u, 0u}) {
      a.set<A::qkey>(wrong);
      const Answer answer = rig.refused<admin::ModifyQp>(
          0, rig.modify_command(1, step_mask(T::GSI, QpState::INIT), a), AdminStatus::INVALID,
          AdminField::QKEY);
      REQUIRE(answer.detail == hwif::QKEY_GSI);
    }
    bring(rig, 0, 1, QpState::RTS, T::GSI);
    check_datagram_rows(rig, 1, hwif::QKEY_GSI, 0xffff);
    // nobody else's
    rig.refused<admin::QueryQp>(1, rig.command<admin::QueryQp>(1), AdminStatus::NOT_FOUND,
                                AdminField::OBJECT);
    rig.refused<admin::QueryQp>(0, rig.command<admin::QueryQp>(1 + fw::QPS), AdminStatus::NOT_FOUND,
                                AdminField::OBJECT);
    REQUIRE(rig.run<admin::QueryQp>(0, 1).ok());
    REQUIRE(rig.output<Q>(0).get<Q::attributes>().get<A::qkey>() == hwif::QKEY_GSI);
    // a second one has to wait for the fence of the first
    rig.hw.fence_steps = 20;
    rig.hw.post(0, rig.command<admin::DestroyQp>(1));
    rig.steps(3);
    rig.refused<admin::CreateQp>(0, o.pd, params, AdminStatus::EXISTS, AdminField::QP_TYPE);
    rig.steps(60);
    Answer answer{};
    REQUIRE(rig.take(0, answer));
    REQUIRE(answer.ok());
    rig.hw.fence_steps = 1;
    REQUIRE(fw::state.slots.units_free() == slots);
  }
  // all that QUERY_DEVICE promises can be made beside it, and nobody gets index 0 or 1
  rig.make<admin::CreateQp>(0, o.pd, params);
  std::set<unsigned> indices = {index_of(o.qp), index_of(other.qp)};
  for (unsigned n = 2; n < fw::QPS - 2; ++n) {
    const auto qp = rig.make<admin::CreateQp>(1, other.pd, Rig::qp_params(other.cq, other.cq));
    REQUIRE(indices.insert(index_of(qp)).second);
  }
  REQUIRE(*indices.begin() == 2);
  rig.refused<admin::CreateQp>(1, other.pd, Rig::qp_params(other.cq, other.cq),
                               AdminStatus::NO_RESOURCES);
  // its number is free for it alone
  rig.make<admin::DestroyQp>(0, 1u);
  REQUIRE(rig.make<admin::CreateQp>(0, o.pd, params) == 1);
}

TEST_CASE("FUNCTION_RESET and a new image take queue pairs of all types away") {
  Rig rig;
  const Objects o = Objects::make(rig, 0);
  const auto uc = make_qp(rig, 0, o, T::UC);
  const auto ud = make_qp(rig, 0, o, T::UD);
  make_qp(rig, 0, o, T::GSI);
  bring(rig, 0, uc, QpState::RTS, T::UC);
  bring(rig, 0, ud, QpState::RTS, T::UD);
  bring(rig, 0, 1, QpState::RTS, T::GSI);
  rig.hw.set_qp_state(index_of(ud), QpState::SQE);
  rig.hw.request_reset(0);
  for (unsigned n = 0; rig.hw.is_resetting(0); ++n) {
    REQUIRE(n < 10000);
    rig.step();
  }
  for (const auto qp : {uc, ud, 1u}) {
    REQUIRE(rig.hw.qp_state(index_of(qp)) == QpState::RESET);
    REQUIRE(rig.hw.context(CtxColumn::QP_RX, index_of(qp), 0) == 0);
  }
  for (const auto users : fw::state.pkey_users) REQUIRE(users == 0);
  REQUIRE(fw::state.inflight.units_free() == (1u << fw::INFLIGHT_BITS) - 8 * fw::QPS);
  rig.hw.enable(0);
  const Objects again = Objects::make(rig, 0);
  REQUIRE(make_qp(rig, 0, again, T::GSI) == 1);
  // another image finds what this one has made
  rig.hw.self_ticking = true;
  fw::state = fw::State{};
  REQUIRE(fw::boot());
  for (unsigned n = 0; rig.hw.resetting() != 0; ++n) {
    REQUIRE(n < 10000);
    rig.step();
  }
  rig.hw.enable(0);
  rig.hw.completions(0).clear();
  const Objects third = Objects::make(rig, 0);
  REQUIRE(make_qp(rig, 0, third, T::GSI) == 1);
}

TEST_CASE("SQE: seen by QUERY_QP, left to RTS, to RESET and to ERR") {
  for (const T type : {T::UC, T::UD}) {
    for (const QpState to : {QpState::RTS, QpState::RESET, QpState::ERR}) {
      Rig rig;
      const Objects o = Objects::make(rig, 1);
      const auto qp = make_qp(rig, 1, o, type);
      bring(rig, 1, qp, QpState::RTS, type);
      rig.hw.set_qp_state(index_of(qp), QpState::SQE);
      REQUIRE(rig.run<admin::QueryQp>(1, qp).ok());
      REQUIRE(rig.output<Q>(1).get<Q::attributes>().get<A::state>() == QpState::SQE);
      REQUIRE(modify(rig, 1, qp, MASK_STATE, to).ok());
      REQUIRE(rig.hw.qp_state(index_of(qp)) == to);
    }
  }
}

TEST_CASE("SQE to RTS waits for a fence; who fails meanwhile is not brought back") {
  for (const bool fails : {false, true}) {
    Rig rig;
    const Objects o = Objects::make(rig, 1);
    const auto qp = make_qp(rig, 1, o, T::UD);
    const unsigned n = index_of(qp);
    bring(rig, 1, qp, QpState::RTS, T::UD);
    rig.hw.fence_steps = 25;
    // a fence that began before does not count
    const auto other = make_qp(rig, 1, o, T::UD);
    rig.hw.post(1, rig.command<admin::DestroyQp>(other));
    rig.steps(3);
    rig.hw.set_qp_state(n, QpState::SQE);
    A a = Rig::attributes();
    a.set<A::state>(QpState::RTS);
    a.set<A::qkey>(0x99);
    rig.hw.post(1, rig.modify_command(qp, MASK_STATE | MASK_QKEY, a));
    rig.steps(30);
    Answer answer{};
    REQUIRE(rig.take(1, answer));
    REQUIRE(answer.object == other);
    REQUIRE_FALSE(rig.take(1, answer));
    REQUIRE(rig.hw.qp_state(n) == QpState::SQE);
    // it is that command's until then
    REQUIRE(rig.run<admin::QueryQp>(1, qp).status == AdminStatus::BUSY);
    REQUIRE(rig.run<admin::DestroyQp>(1, qp).status == AdminStatus::BUSY);
    if (fails) rig.hw.set_qp_state(n, QpState::ERR);
    rig.steps(60);
    REQUIRE(rig.take(1, answer));
    REQUIRE(answer.ok() == !fails);
    if (fails) REQUIRE(answer.field == AdminField::STATE);
    REQUIRE(rig.hw.qp_state(n) == (fails ? QpState::ERR : QpState::RTS));
    check_datagram_rows(rig, qp, 0x99, 0xffff);
    // and nobody's then
    REQUIRE(modify(rig, 1, qp, MASK_STATE, QpState::RESET).ok());
    rig.make<admin::DestroyQp>(1, qp);
    REQUIRE(fw::state.inflight.units_free() == (1u << fw::INFLIGHT_BITS) - 8 * fw::QPS);
  }
}

TEST_CASE("a datagram queue pair that failed altogether meanwhile stays in ERR") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  const auto qp = make_qp(rig, 1, o, T::UD);
  bring(rig, 1, qp, QpState::RTS, T::UD);
  A a = Rig::attributes();
  a.set<A::state>(QpState::RTS);
  rig.hw.error_after = {index_of(qp), CtxColumn::QP_RX};
  const Answer answer = rig.modify(1, qp, MASK_STATE | MASK_QKEY, a);
  REQUIRE(answer.status == AdminStatus::INVALID);
  REQUIRE(answer.field == AdminField::STATE);
  REQUIRE(rig.hw.qp_state(index_of(qp)) == QpState::ERR);
}
