// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Queue pairs of RC: numbers, contexts in every state, wrong values of attributes, states that the
// hardware changes meanwhile, regions of the pools, QUERY_QP. The other types: qp_types_test.cpp; which
// attributes which transition takes: qp_table_test.cpp.
#include "rig.hpp"

using namespace roci::test;
namespace hwif = roci::hwif;
namespace fw = roci::fw;
using A = hwif::QpAttributes;

namespace {

unsigned index_of(std::uint32_t qpn) { return qpn % fw::QPS; }

template <class Row>
Row row_of(Rig& rig, CtxColumn column, std::uint32_t qpn) {
  return rig.hw.row<Row>(column, index_of(qpn));
}

}  // namespace

TEST_CASE("CREATE_QP: rows of a queue pair in RESET") {
  Rig rig;
  const Objects o = Objects::make(rig, 5);
  const unsigned n = index_of(o.qp);
  REQUIRE(o.qp >= fw::QPS);                           // never 0 or 1
  REQUIRE(n > 1);                                     // nor their indices
  using Q = hwif::CtxQpState;
  REQUIRE(row_of<Q>(rig, CtxColumn::QP_STATE, o.qp).get<Q::qpn>() == o.qp);
  REQUIRE(row_of<Q>(rig, CtxColumn::QP_STATE, o.qp).get<Q::fn>() == 5);
  REQUIRE(rig.hw.qp_state(n) == QpState::RESET);
  using B = hwif::CtxQpSq;
  const auto sq = row_of<B>(rig, CtxColumn::QP_SQ, o.qp);
  REQUIRE(sq.get<B::log2_blocks>() == 8);
  REQUIRE(sq.get<B::fn>() == 5);
  REQUIRE(sq.get<B::ring_page>() == 0x500);
  using T = hwif::CtxQpTx;
  const auto tx = row_of<T>(rig, CtxColumn::QP_TX, o.qp);
  REQUIRE(tx.get<T::qp_type>() == hwif::QpType::RC);
  REQUIRE(tx.get<T::fn>() == 5);
  REQUIRE(tx.get<T::pd>() == o.pd);
  REQUIRE(tx.get<T::inflight_base>() == 8 * n);
  REQUIRE(tx.get<T::inflight_log2>() == 3);
  REQUIRE(tx.get<T::read_base>() == 2 * n);
  REQUIRE(tx.get<T::read_log2>() == 1);
  using K = hwif::CtxQpAck;
  const auto ack = row_of<K>(rig, CtxColumn::QP_ACK, o.qp);
  REQUIRE(ack.get<K::cq>() == o.cq);
  REQUIRE(ack.get<K::fn>() == 5);
  REQUIRE(ack.get<K::inflight_base>() == 8 * n);
  using R = hwif::CtxQpRq;
  const auto rq = row_of<R>(rig, CtxColumn::QP_RQ, o.qp);
  REQUIRE(rq.get<R::cq>() == o.cq2);
  REQUIRE(rq.get<R::pd>() == o.pd);
  REQUIRE(rq.get<R::qpn>() == o.qp);
  REQUIRE(rq.get<R::replay_base>() == 2 * n);
  REQUIRE_FALSE(rq.get<R::has_srq>());
  using W = hwif::CtxRq;
  const auto receive = row_of<W>(rig, CtxColumn::RQ, o.qp);
  REQUIRE(receive.get<W::ring_page>() == 0x600);
  REQUIRE(receive.get<W::log2_entries>() == 6);
  REQUIRE(receive.get<W::stride_code>() == 1);
  REQUIRE_FALSE(receive.get<W::valid>());
  using D = hwif::CtxQpDb;
  const auto bell = row_of<D>(rig, CtxColumn::QP_DB, o.qp);
  REQUIRE(bell.get<D::number>() == o.qp);
  REQUIRE(bell.get<D::page>() == 6);
  REQUIRE(bell.get<D::fn>() == 5);
  REQUIRE_FALSE(bell.get<D::takes_send>());
  REQUIRE_FALSE(bell.get<D::takes_receive>());
  using X = hwif::CtxQpRx;
  REQUIRE(row_of<X>(rig, CtxColumn::QP_RX, o.qp).get<X::qpn>() == o.qp);
}

TEST_CASE("CREATE_QP: each bad field") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  const Objects foreign = Objects::make(rig, 2);
  using P = hwif::CreateQpParams;
  const auto bad = [&](auto change, AdminStatus status, AdminField field) {
    P p = Rig::qp_params(o.cq, o.cq2);
    change(p);
    rig.refused<admin::CreateQp>(1, o.pd, p, status, field);
  };
  for (const auto type : {hwif::QpType::XRC_INI, hwif::QpType::XRC_TGT,
                          static_cast<hwif::QpType>(6), static_cast<hwif::QpType>(7)}) {
    bad([&](P& p) { p.set<P::qp_type>(type); }, AdminStatus::UNSUPPORTED, AdminField::QP_TYPE);
  }
  bad([](P& p) { p.set<P::sq_ring_address>(0x500040); }, AdminStatus::INVALID,
      AdminField::SQ_RING_ADDRESS);
  bad([](P& p) { p.set<P::rq_ring_address>(0x600040); }, AdminStatus::INVALID,
      AdminField::RQ_RING_ADDRESS);
  bad([](P& p) { p.set<P::sq_ring_log2>(5); }, AdminStatus::INVALID, AdminField::SQ_RING_LOG2);
  bad([](P& p) { p.set<P::rq_ring_log2>(3); }, AdminStatus::INVALID, AdminField::RQ_RING_LOG2);
  bad([&](P& p) { p.set<P::send_cqn>(foreign.cq); }, AdminStatus::NOT_FOUND,
      AdminField::SEND_CQN);
  bad([&](P& p) { p.set<P::recv_cqn>(foreign.cq); }, AdminStatus::NOT_FOUND,
      AdminField::RECV_CQN);
  bad([](P& p) { p.set<P::send_cqn>(0xffffff); }, AdminStatus::NOT_FOUND, AdminField::SEND_CQN);
  bad([](P& p) { p.set<P::has_srq>(true); }, AdminStatus::NOT_FOUND, AdminField::SRQN);
  rig.refused<admin::CreateQp>(1, foreign.pd, Rig::qp_params(o.cq, o.cq2),
                               AdminStatus::NOT_FOUND, AdminField::OBJECT);
}

TEST_CASE("the way to RTS: rows of each step") {
  Rig rig;
  const Objects o = Objects::make(rig, 3);
  const unsigned n = index_of(o.qp);
  bring(rig, 3, o.qp, QpState::INIT);
  using D = hwif::CtxQpDb;
  using W = hwif::CtxRq;
  using X = hwif::CtxQpRx;
  using P = hwif::CtxQpPath;
  using R = hwif::CtxQpRq;
  using T = hwif::CtxQpTx;
  REQUIRE(rig.hw.qp_state(n) == QpState::INIT);
  REQUIRE(row_of<D>(rig, CtxColumn::QP_DB, o.qp).get<D::takes_send>());
  REQUIRE(row_of<D>(rig, CtxColumn::QP_DB, o.qp).get<D::takes_receive>());
  REQUIRE(row_of<W>(rig, CtxColumn::RQ, o.qp).get<W::valid>());
  REQUIRE(row_of<X>(rig, CtxColumn::QP_RX, o.qp).get<X::pkey>() == 0xffff);
  REQUIRE(row_of<X>(rig, CtxColumn::QP_RX, o.qp).get<X::valid>());
  REQUIRE(row_of<P>(rig, CtxColumn::QP_PATH, o.qp).get<P::pkey>() == 0xffff);
  auto rights = row_of<R>(rig, CtxColumn::QP_RQ, o.qp).get<R::rights>();
  REQUIRE(rights.get<hwif::AccessRights::remote_write>());
  REQUIRE(rights.get<hwif::AccessRights::remote_read>());
  REQUIRE_FALSE(rights.get<hwif::AccessRights::remote_atomic>());

  bring(rig, 3, rig.make<admin::CreateQp>(3, o.pd, Rig::qp_params(o.cq, o.cq)), QpState::RTR);
  A a = Rig::attributes();
  a.set<A::state>(QpState::RTR);
  REQUIRE(rig.modify(3, o.qp, TO_RTR, a).ok());
  REQUIRE(rig.hw.qp_state(n) == QpState::RTR);
  const auto path = row_of<P>(rig, CtxColumn::QP_PATH, o.qp);
  REQUIRE(path.get<P::dmac>() == 0x023456789abc);
  REQUIRE(path.get<P::tci>() == (5 << 13 | 0x123));
  REQUIRE(path.get<P::dgid_high>() == 0xfe80000000000000);
  REQUIRE(path.get<P::dgid_low>() == 0x123456fffe789abc);
  REQUIRE(path.get<P::dest_qpn>() == 0x112233);
  REQUIRE(path.get<P::pkey>() == 0xffff);
  REQUIRE(path.get<P::traffic_class>() == 0x21);
  REQUIRE(path.get<P::hop_limit>() == 64);
  REQUIRE(path.get<P::vlan_valid>());
  REQUIRE(path.get<P::sgid_index>() == 0);
  REQUIRE(path.get<P::flow_label>() == 0xabcde);
  const auto rx = row_of<X>(rig, CtxColumn::QP_RX, o.qp);
  REQUIRE(rx.get<X::peer_gid_high>() == 0xfe80000000000000);
  REQUIRE(rx.get<X::peer_gid_low>() == 0x123456fffe789abc);
  REQUIRE(rx.get<X::vlan_valid>());
  REQUIRE(rx.get<X::vlan_id>() == 0x123);
  REQUIRE(rx.get<X::qpn>() == o.qp);
  REQUIRE(rx.get<X::fn>() == 3);
  REQUIRE(rx.get<X::valid>());
  const auto rq = row_of<R>(rig, CtxColumn::QP_RQ, o.qp);
  REQUIRE(rq.get<R::mtu>() == hwif::Mtu::MTU_1024);
  REQUIRE(rq.get<R::min_rnr_timer>() == 12);
  REQUIRE(rq.get<R::replay_log2>() == 2);             // 3 rounded up
  REQUIRE(rq.get<R::replay_base>() % 4 == 0);
  using Y = hwif::CtxQpRqDyn;
  const auto dyn = row_of<Y>(rig, CtxColumn::QP_RQ_DYN, o.qp);
  REQUIRE(dyn.get<Y::next_psn>() == 0);
  REQUIRE(dyn.get<Y::acked_psn>() == 0xffffff);
  using S = hwif::CtxQpResp;
  const auto resp = row_of<S>(rig, CtxColumn::QP_RESP, o.qp);
  REQUIRE(resp.get<S::good_psn>() == 0xffffff);
  REQUIRE(resp.get<S::mtu>() == hwif::Mtu::MTU_1024);
  REQUIRE(resp.get<S::replay_base>() == rq.get<R::replay_base>());
  REQUIRE(resp.get<S::replay_log2>() == 2);

  a.set<A::state>(QpState::RTS);
  REQUIRE(rig.modify(3, o.qp, TO_RTS, a).ok());
  REQUIRE(rig.hw.qp_state(n) == QpState::RTS);
  const auto tx = row_of<T>(rig, CtxColumn::QP_TX, o.qp);
  REQUIRE(tx.get<T::mtu>() == hwif::Mtu::MTU_1024);
  REQUIRE(tx.get<T::max_rd_atomic>() == 4);
  REQUIRE(tx.get<T::read_log2>() == 2);
  REQUIRE(tx.get<T::inflight_log2>() == (fw::IS_WIDE ? 8 : 3));   // ring of 256 blocks
  REQUIRE(tx.get<T::inflight_base>() % (1u << tx.get<T::inflight_log2>()) == 0);
  using K = hwif::CtxQpAck;
  const auto ack = row_of<K>(rig, CtxColumn::QP_ACK, o.qp);
  REQUIRE(ack.get<K::psn>() == 0xfffffe);
  REQUIRE(ack.get<K::qpn>() == o.qp);
  REQUIRE(ack.get<K::inflight_base>() == tx.get<T::inflight_base>());
  REQUIRE(ack.get<K::inflight_log2>() == tx.get<T::inflight_log2>());
  using E = hwif::CtxQpRead;
  const auto read = row_of<E>(rig, CtxColumn::QP_READ, o.qp);
  REQUIRE(read.get<E::read_base>() == tx.get<T::read_base>());
  REQUIRE(read.get<E::read_log2>() == 2);
  REQUIRE(read.get<E::path_mtu>() == hwif::Mtu::MTU_1024);
  REQUIRE(read.get<E::pd>() == o.pd);
  using U = hwif::CtxQpRetry;
  REQUIRE(row_of<U>(rig, CtxColumn::QP_RETRY, o.qp).get<U::retry_cnt>() == 7);
  REQUIRE(row_of<U>(rig, CtxColumn::QP_RETRY, o.qp).get<U::rnr_retry>() == 6);
  using I = hwif::CtxQpTimer;
  REQUIRE(row_of<I>(rig, CtxColumn::QP_TIMER, o.qp).get<I::timeout>() == 14);
  REQUIRE(row_of<I>(rig, CtxColumn::QP_TIMER, o.qp).get<I::psn>() == 0xfffffe);
  using V = hwif::CtxQpTxDyn;
  REQUIRE(row_of<V>(rig, CtxColumn::QP_TX_DYN, o.qp).get<V::next_psn>() == 0xfffffe);
  // the send queue starts afresh before its PSN, and the state changes last
  std::vector<CtxColumn> order;
  for (const auto& [column, index] : rig.hw.log) {
    if (index == n) order.push_back(column);
  }
  REQUIRE(order.back() == CtxColumn::QP_STATE);
  REQUIRE(order[order.size() - 2] == CtxColumn::QP_TX_DYN);
  REQUIRE(order[order.size() - 3] == CtxColumn::QP_SQ);
}

TEST_CASE("MODIFY_QP: values") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  const auto refuse = [&](std::uint32_t mask, auto change, AdminField field) {
    A a = Rig::attributes();
    change(a);
    rig.refused<admin::ModifyQp>(1, rig.modify_command(o.qp, mask, a), AdminStatus::INVALID,
                                 field);
  };
  const auto init = [](A& a) { a.set<A::state>(QpState::INIT); };
  refuse(TO_INIT, [&](A& a) { init(a); a.set<A::port>(2); }, AdminField::PORT);
  refuse(TO_INIT, [&](A& a) { init(a); a.set<A::pkey_index>(1); }, AdminField::PKEY_INDEX);
  refuse(TO_INIT, [&](A& a) { init(a); a.set<A::pkey_index>(200); }, AdminField::PKEY_INDEX);
  refuse(TO_INIT | MASK_CUR, [&](A& a) { init(a); a.set<A::cur_state>(QpState::RTS); },
         AdminField::CUR_STATE);
  refuse(MASK_STATE | MASK_CUR, [](A& a) {               // RESET takes nothing else
    a.set<A::state>(QpState::RESET);
    a.set<A::cur_state>(QpState::RESET);
  }, AdminField::CUR_STATE);
  refuse(MASK_STATE, [](A& a) { a.set<A::state>(static_cast<QpState>(7)); }, AdminField::STATE);
  bring(rig, 1, o.qp, QpState::INIT);
  const auto rtr = [](A& a) { a.set<A::state>(QpState::RTR); };
  const auto path = [](A& a, auto change) {
    auto v = a.get<A::path>();
    change(v);
    a.set<A::path>(v);
  };
  using V = hwif::AddressVector;
  refuse(TO_RTR, [&](A& a) { rtr(a); a.set<A::path_mtu>(static_cast<hwif::Mtu>(0)); },
         AdminField::PATH_MTU);
  refuse(TO_RTR, [&](A& a) { rtr(a); a.set<A::path_mtu>(static_cast<hwif::Mtu>(6)); },
         AdminField::PATH_MTU);
  refuse(TO_RTR, [&](A& a) { rtr(a); a.set<A::responder_depth>(fw::MAX_RD_ATOMIC + 1); },
         AdminField::RESPONDER_DEPTH);
  refuse(TO_RTR, [&](A& a) { rtr(a); path(a, [](V& v) { v.set<V::sgid_index>(1); }); },
         AdminField::SGID_INDEX);
  refuse(TO_RTR, [&](A& a) { rtr(a); path(a, [](V& v) { v.set<V::sgid_index>(255); }); },
         AdminField::SGID_INDEX);
  refuse(TO_RTR, [&](A& a) { rtr(a); path(a, [](V& v) { v.set<V::dmac>({}); }); },
         AdminField::DMAC);
  refuse(TO_RTR, [&](A& a) { rtr(a); path(a, [](V& v) { v.set<V::dmac>({{1}}); }); },
         AdminField::DMAC);
  refuse(TO_RTR, [&](A& a) { rtr(a); path(a, [](V& v) { v.set<V::dgid>({{0xff}}); }); },
         AdminField::DGID);
  bring(rig, 1, rig.make<admin::CreateQp>(1, o.pd, Rig::qp_params(o.cq, o.cq)), QpState::RTR);
  A a = Rig::attributes();
  a.set<A::state>(QpState::RTR);
  REQUIRE(rig.modify(1, o.qp, TO_RTR, a).ok());
  refuse(TO_RTS, [&](A& b) {
    b.set<A::state>(QpState::RTS);
    b.set<A::initiator_depth>(fw::MAX_RD_ATOMIC + 1);
  }, AdminField::INITIATOR_DEPTH);
  // foreign and dead ones
  rig.refused<admin::ModifyQp>(2, rig.modify_command(o.qp, MASK_STATE, a), AdminStatus::NOT_FOUND,
                               AdminField::OBJECT);
  rig.refused<admin::ModifyQp>(1, rig.modify_command(o.qp + fw::QPS, MASK_STATE, a),
                               AdminStatus::NOT_FOUND, AdminField::OBJECT);
  rig.refused<admin::ModifyQp>(1, rig.modify_command(0, MASK_STATE, a), AdminStatus::NOT_FOUND,
                               AdminField::OBJECT);
}

TEST_CASE("MODIFY_QP: attributes of a working queue pair") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  bring(rig, 1, o.qp, QpState::RTS);
  using R = hwif::CtxQpRq;
  using T = hwif::CtxQpTx;
  A a = Rig::attributes();
  hwif::AccessRights rights{};
  rights.set<hwif::AccessRights::remote_atomic>(true);
  a.set<A::rights>(rights);
  a.set<A::min_rnr_timer>(31);
  REQUIRE(rig.modify(1, o.qp, MASK_RIGHTS | MASK_MIN_RNR, a).ok());      // no state: RTS → RTS
  auto rq = row_of<R>(rig, CtxColumn::QP_RQ, o.qp);
  REQUIRE(rq.get<R::rights>().get<hwif::AccessRights::remote_atomic>());
  REQUIRE_FALSE(rq.get<R::rights>().get<hwif::AccessRights::remote_read>());
  REQUIRE(rq.get<R::min_rnr_timer>() == 31);
  REQUIRE(rq.get<R::replay_log2>() == 2);
  // SQD, but something is outstanding
  a.set<A::state>(QpState::SQD);
  a.set<A::sqd_async_notify>(true);
  REQUIRE(rig.modify(1, o.qp, MASK_STATE | MASK_NOTIFY, a).ok());
  using V = hwif::CtxQpTxDyn;
  auto dyn = row_of<V>(rig, CtxColumn::QP_TX_DYN, o.qp);
  dyn.set<V::max_psn>(5);
  dyn.set<V::next_psn>(5);
  rig.hw.set_context(CtxColumn::QP_TX_DYN, index_of(o.qp), 0, dyn.words[0]);
  REQUIRE(rig.run<admin::QueryQp>(1, o.qp).ok());
  using Q = hwif::QueryQpOutput;
  REQUIRE(rig.output<Q>(1).get<Q::attributes>().get<A::draining>());
  REQUIRE(rig.output<Q>(1).get<Q::attributes>().get<A::sqd_async_notify>());
  REQUIRE(rig.modify(1, o.qp, MASK_TIMEOUT, a).status == AdminStatus::BUSY);
  using K = hwif::CtxQpAck;
  auto ack = row_of<K>(rig, CtxColumn::QP_ACK, o.qp);
  ack.set<K::acked_psn>(5);
  rig.hw.set_context(CtxColumn::QP_ACK, index_of(o.qp), 2, ack.words[2]);
  a.set<A::timeout>(20);
  a.set<A::retry_count>(1);
  a.set<A::rnr_retry>(2);
  a.set<A::initiator_depth>(2);
  auto v = a.get<A::path>();
  v.set<hwif::AddressVector::hop_limit>(9);
  a.set<A::path>(v);
  REQUIRE(rig.modify(1, o.qp, MASK_TIMEOUT | MASK_RETRY | MASK_RNR | MASK_INITIATOR | MASK_PATH,
                     a).ok());
  using I = hwif::CtxQpTimer;
  REQUIRE(row_of<I>(rig, CtxColumn::QP_TIMER, o.qp).get<I::timeout>() == 20);
  REQUIRE(row_of<I>(rig, CtxColumn::QP_TIMER, o.qp).get<I::psn>() == 5);
  using U = hwif::CtxQpRetry;
  REQUIRE(row_of<U>(rig, CtxColumn::QP_RETRY, o.qp).get<U::retry_cnt>() == 1);
  REQUIRE(row_of<U>(rig, CtxColumn::QP_RETRY, o.qp).get<U::rnr_retry>() == 2);
  REQUIRE(row_of<T>(rig, CtxColumn::QP_TX, o.qp).get<T::max_rd_atomic>() == 2);
  using P = hwif::CtxQpPath;
  REQUIRE(row_of<P>(rig, CtxColumn::QP_PATH, o.qp).get<P::hop_limit>() == 9);
  REQUIRE(row_of<P>(rig, CtxColumn::QP_PATH, o.qp).get<P::dest_qpn>() == 0x112233);
  // more than the region holds
  a.set<A::initiator_depth>(5);
  const Answer answer = rig.modify(1, o.qp, MASK_INITIATOR, a);
  REQUIRE(answer.status == AdminStatus::INVALID);
  REQUIRE(answer.detail == 4);
}

TEST_CASE("MODIFY_QP loses against the hardware's ERR") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  bring(rig, 1, o.qp, QpState::RTR);
  A a = Rig::attributes();
  a.set<A::state>(QpState::RTS);
  // between the firmware's look at the state and its compare and set
  rig.hw.error_after = {index_of(o.qp), CtxColumn::QP_TX_DYN};
  const Answer answer = rig.modify(1, o.qp, TO_RTS, a);
  REQUIRE(answer.status == AdminStatus::INVALID);
  REQUIRE(answer.field == AdminField::STATE);
  REQUIRE(rig.hw.qp_state(index_of(o.qp)) == QpState::ERR);
  // it can be used again, and nothing of the pools is lost
  a.set<A::state>(QpState::RESET);
  REQUIRE(rig.modify(1, o.qp, MASK_STATE, a).ok());
  bring(rig, 1, o.qp, QpState::RTS);
  rig.make<admin::DestroyQp>(1, o.qp);
  REQUIRE(fw::state.reads.units_free() == (1u << fw::READ_BITS) - 2 * fw::QPS);
  REQUIRE(fw::state.replays.units_free() == (1u << fw::REPLAY_BITS) - 2 * fw::QPS);
}

TEST_CASE("RESET and DESTROY wait for the fence; numbers are not met again") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  const unsigned n = index_of(o.qp);
  bring(rig, 1, o.qp, QpState::RTS);
  using D = hwif::CtxQpDb;
  using T = hwif::CtxQpTx;
  rig.hw.fence_steps = 25;
  A a = Rig::attributes();
  a.set<A::state>(QpState::RESET);
  rig.hw.post(1, rig.modify_command(o.qp, MASK_STATE, a));
  rig.steps(3);
  Answer answer{};
  REQUIRE_FALSE(rig.take(1, answer));
  REQUIRE(rig.hw.qp_state(n) == QpState::RESET);
  REQUIRE_FALSE(row_of<D>(rig, CtxColumn::QP_DB, o.qp).get<D::takes_send>());
  // it belongs to that command until then
  a.set<A::state>(QpState::INIT);
  REQUIRE(rig.modify(1, o.qp, TO_INIT, a).status == AdminStatus::BUSY);
  REQUIRE(rig.run<admin::QueryQp>(1, o.qp).status == AdminStatus::BUSY);
  REQUIRE(rig.run<admin::DestroyQp>(1, o.qp).status == AdminStatus::BUSY);
  rig.steps(60);
  REQUIRE(rig.take(1, answer));
  REQUIRE(answer.ok());
  REQUIRE(row_of<T>(rig, CtxColumn::QP_TX, o.qp).get<T::inflight_base>() == 8 * n);
  REQUIRE(row_of<T>(rig, CtxColumn::QP_TX, o.qp).get<T::read_base>() == 2 * n);
  bring(rig, 1, o.qp, QpState::RTS);

  rig.hw.post(1, rig.command<admin::DestroyQp>(o.qp));
  rig.steps(3);
  REQUIRE_FALSE(rig.take(1, answer));
  REQUIRE(rig.hw.qp_state(n) == QpState::RESET);
  REQUIRE(rig.run<admin::QueryQp>(1, o.qp).status == AdminStatus::NOT_FOUND);
  REQUIRE(rig.run<admin::DestroyCq>(1, o.cq).status == AdminStatus::BUSY);   // not yet free
  rig.steps(60);
  REQUIRE(rig.take(1, answer));
  REQUIRE(answer.ok());
  REQUIRE(rig.hw.context(CtxColumn::QP_RX, n, 0) == 0);
  // its slots are somebody else's now
  REQUIRE_FALSE(row_of<hwif::CtxRq>(rig, CtxColumn::RQ, o.qp).get<hwif::CtxRq::valid>());
  rig.hw.fence_steps = 1;
  rig.make<admin::DestroyCq>(1, o.cq);
  rig.make<admin::DestroyCq>(1, o.cq2);

  // many lives: all numbers different, none of them 0, 1 or all ones
  const auto cq = rig.make<admin::CreateCq>(1, 0u, Rig::cq_params(o.eq));
  std::set<std::uint32_t> numbers = {o.qp};
  for (unsigned k = 0; k < 3 * fw::QPS; ++k) {
    const auto qp = rig.make<admin::CreateQp>(1, o.pd, Rig::qp_params(cq, cq));
    REQUIRE(numbers.insert(qp).second);
    REQUIRE(qp > 1);
    REQUIRE(qp < 0xffffff);
    rig.make<admin::DestroyQp>(1, qp);
  }
  // the incarnation wraps before it becomes all ones, and past 0
  for (auto& qp : fw::state.qps) qp.number = 0xfffffe;
  const auto wrapped = rig.make<admin::CreateQp>(1, o.pd, Rig::qp_params(cq, cq));
  REQUIRE(wrapped >> fw::QP_BITS == 1);
}

TEST_CASE("pools: contracts are kept or refused, extras shrink") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  using T = hwif::CtxQpTx;
  using R = hwif::CtxQpRq;
  std::vector<std::uint32_t> qps = {o.qp};
  std::set<unsigned> inflight, reads, replays;
  A a = Rig::attributes();
  a.set<A::initiator_depth>(fw::MAX_RD_ATOMIC);
  a.set<A::responder_depth>(fw::MAX_RD_ATOMIC);
  bool reads_out = false;
  bool replays_out = false;
  unsigned last_inflight = 32;
  while (qps.size() < fw::QPS - 2) {
    const auto qp = rig.make<admin::CreateQp>(1, o.pd, Rig::qp_params(o.cq, o.cq));
    qps.push_back(qp);
    a.set<A::state>(QpState::INIT);
    REQUIRE(rig.modify(1, qp, TO_INIT, a).ok());
    a.set<A::state>(QpState::RTR);
    Answer answer = rig.modify(1, qp, TO_RTR, a);
    if (!answer.ok()) {
      REQUIRE(answer.status == AdminStatus::NO_RESOURCES);
      REQUIRE(answer.field == AdminField::RESPONDER_DEPTH);
      REQUIRE(rig.hw.qp_state(index_of(qp)) == QpState::INIT);
      replays_out = true;
      // with less it works: everybody has two of his own
      A less = a;
      less.set<A::responder_depth>(2);
      REQUIRE(rig.modify(1, qp, TO_RTR, less).ok());
    }
    a.set<A::state>(QpState::RTS);
    answer = rig.modify(1, qp, TO_RTS, a);
    if (!answer.ok()) {
      REQUIRE(answer.status == AdminStatus::NO_RESOURCES);
      REQUIRE(answer.field == AdminField::INITIATOR_DEPTH);
      reads_out = true;
      A less = a;
      less.set<A::initiator_depth>(1);
      REQUIRE(rig.modify(1, qp, TO_RTS, less).ok());
    }
    const auto tx = row_of<T>(rig, CtxColumn::QP_TX, qp);
    const auto rq = row_of<R>(rig, CtxColumn::QP_RQ, qp);
    for (unsigned k = 0; k < 1u << tx.get<T::inflight_log2>(); ++k) {
      REQUIRE(inflight.insert(tx.get<T::inflight_base>() + k).second);
    }
    for (unsigned k = 0; k < 1u << tx.get<T::read_log2>(); ++k) {
      REQUIRE(reads.insert(tx.get<T::read_base>() + k).second);
    }
    for (unsigned k = 0; k < 1u << rq.get<R::replay_log2>(); ++k) {
      REQUIRE(replays.insert(rq.get<R::replay_base>() + k).second);
    }
    REQUIRE(tx.get<T::inflight_log2>() <= last_inflight);
    last_inflight = tx.get<T::inflight_log2>();
  }
  REQUIRE(reads_out);
  REQUIRE(replays_out);
  REQUIRE(last_inflight == 3);
  // what QUERY_DEVICE promises; the first queue pair still has its own two
  REQUIRE(rig.run<admin::QueryDevice>(1).ok());
  using Q = hwif::QueryDeviceOutput;
  REQUIRE(rig.output<Q>(1).get<Q::max_qps>() == qps.size());
  REQUIRE(replays.size() + 2 == rig.output<Q>(1).get<Q::max_total_responder_depth>());
  rig.refused<admin::CreateQp>(1, o.pd, Rig::qp_params(o.cq, o.cq), AdminStatus::NO_RESOURCES);
  for (const auto qp : qps) rig.make<admin::DestroyQp>(1, qp);
  REQUIRE(fw::state.inflight.units_free() == (1u << fw::INFLIGHT_BITS) - 8 * fw::QPS);
  REQUIRE(fw::state.reads.units_free() == (1u << fw::READ_BITS) - 2 * fw::QPS);
  REQUIRE(fw::state.replays.units_free() == (1u << fw::REPLAY_BITS) - 2 * fw::QPS);
  REQUIRE(fw::state.slots.units_free() == (1u << fw::SLOT_BITS) - 2 * (fw::QPS + fw::SRQS));
  // whole again: the largest region can be cut
  const auto qp = rig.make<admin::CreateQp>(1, o.pd, Rig::qp_params(o.cq, o.cq));
  a.set<A::state>(QpState::INIT);
  REQUIRE(rig.modify(1, qp, TO_INIT, a).ok());
  a.set<A::state>(QpState::RTR);
  REQUIRE(rig.modify(1, qp, TO_RTR, a).ok());
}

TEST_CASE("pools: entries that need more slots than a queue owns") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  using P = hwif::CreateQpParams;
  using W = hwif::CtxRq;
  P p = Rig::qp_params(o.cq, o.cq);
  p.set<P::rq_stride_code>(3);                        // 256 bytes: four slots an entry
  bool refused = false;
  for (unsigned k = 1; k < fw::QPS; ++k) {
    const Answer answer = rig.run<admin::CreateQp>(1, o.pd, p);
    if (!answer.ok()) {
      REQUIRE(answer.status == AdminStatus::NO_RESOURCES);
      REQUIRE(answer.field == AdminField::RQ_STRIDE_CODE);
      refused = true;
      break;
    }
    REQUIRE(row_of<W>(rig, CtxColumn::RQ, answer.object).get<W::slot_log2>() >= 3);
  }
  REQUIRE(refused);
  // small entries find their place
  rig.make<admin::CreateQp>(1, o.pd, Rig::qp_params(o.cq, o.cq));
}

TEST_CASE("pools: prefetch of some does not take the slots that entries of others need") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  const Objects other = Objects::make(rig, 2);
  rig.make<admin::DestroyQp>(1, o.qp);
  rig.make<admin::DestroyQp>(2, other.qp);
  using P = hwif::CreateQpParams;
  using W = hwif::CtxRq;
  constexpr unsigned GRANTED = (1u << fw::SLOT_BITS) - 2 * (fw::QPS + fw::SRQS);
  P deep = Rig::qp_params(o.cq, o.cq);
  deep.set<P::rq_ring_log2>(9);
  unsigned extras = 0;
  unsigned last = 32;
  const unsigned many = fw::QPS / 4;
  for (unsigned k = 0; k < many; ++k) {
    const auto qp = rig.make<admin::CreateQp>(1, o.pd, deep);
    const unsigned log2 = row_of<W>(rig, CtxColumn::RQ, qp).get<W::slot_log2>();
    REQUIRE(log2 <= last);   // each has less than those before, two entries at least
    REQUIRE(log2 >= 1);
    last = log2;
    if (log2 > 1) extras += 1u << log2;
    if (k == 0) REQUIRE(log2 == (fw::IS_WIDE ? 7 : 3));
    if (k == 63 && fw::IS_WIDE) REQUIRE(log2 == 3);
  }
  REQUIRE(last == 1);
  constexpr unsigned KEPT = GRANTED * 3 / 16;
  REQUIRE(extras <= GRANTED - KEPT);
  REQUIRE(extras >= (fw::IS_WIDE ? GRANTED / 3 : 16));
  // 15 SGEs: 256 bytes, eight slots for two entries; as deep as may be, they get no more than that
  P wide = Rig::qp_params(other.cq, other.cq);
  wide.set<P::rq_stride_code>(3);
  wide.set<P::rq_ring_log2>(9);
  unsigned made = 0;
  while (made < fw::QPS) {
    const Answer answer = rig.run<admin::CreateQp>(2, other.pd, wide);
    if (!answer.ok()) {
      REQUIRE(answer.status == AdminStatus::NO_RESOURCES);
      break;
    }
    REQUIRE(row_of<W>(rig, CtxColumn::RQ, answer.object).get<W::slot_log2>() == 3);
    ++made;
  }
  REQUIRE(made >= KEPT / 8);
}

TEST_CASE("QUERY_QP reads back what was set, and progress") {
  Rig rig;
  const Objects o = Objects::make(rig, 6);
  bring(rig, 6, o.qp, QpState::RTS);
  const unsigned n = index_of(o.qp);
  using V = hwif::CtxQpTxDyn;
  using Y = hwif::CtxQpRqDyn;
  using K = hwif::CtxQpAck;
  auto dyn = row_of<V>(rig, CtxColumn::QP_TX_DYN, o.qp);
  dyn.set<V::next_psn>(0x000123);
  rig.hw.set_context(CtxColumn::QP_TX_DYN, n, 0, dyn.words[0]);
  auto rq_dyn = row_of<Y>(rig, CtxColumn::QP_RQ_DYN, o.qp);
  rq_dyn.set<Y::next_psn>(0x000456);
  rq_dyn.set<Y::msn>(0x77);
  rig.hw.set_context(CtxColumn::QP_RQ_DYN, n, 0, rq_dyn.words[0]);
  auto ack = row_of<K>(rig, CtxColumn::QP_ACK, o.qp);
  ack.set<K::oldest_index>(0x1234);
  ack.set<K::acked_psn>(0x000100);
  rig.hw.set_context(CtxColumn::QP_ACK, n, 2, ack.words[2]);
  rig.hw.set_context(CtxColumn::QP_SQ, n, 1, 0x2345);
  rig.hw.set_context(CtxColumn::RQ, n, 2, 0x0003'0004'0005u);
  // what was in the buffer before is not in the answer
  using Q = hwif::QueryQpOutput;
  for (unsigned k = 0; k < Q::BYTES / 8; ++k) {
    rig.hw.set_context(CtxColumn::COUNTER, k, 0, ~std::uint64_t{0});
  }
  Command counters = rig.command<admin::QueryCounters>(0);
  counters.command.set<hwif::AdminCommand::output_length>(Q::BYTES);
  REQUIRE(rig.run(6, counters, 400).ok());
  REQUIRE(rig.run<admin::QueryQp>(6, o.qp).ok());
  const Q q = rig.output<Q>(6);
  A expected = Rig::attributes();
  expected.set<A::state>(QpState::RTS);
  expected.set<A::sq_psn>(0x123);
  expected.set<A::rq_psn>(0x456);
  REQUIRE(q.get<Q::attributes>() == expected);
  REQUIRE(q.get<Q::creation>() == Rig::qp_params(o.cq, o.cq2));
  REQUIRE(q.get<Q::pd>() == o.pd);
  REQUIRE(q.get<Q::sq_fetch_index>() == 0x2345);
  REQUIRE(q.get<Q::sq_oldest_index>() == 0x1234);
  REQUIRE(q.get<Q::rq_posted_index>() == 5);
  REQUIRE(q.get<Q::rq_taken_index>() == 3);
  REQUIRE(q.get<Q::oldest_psn>() == 0x100);
  REQUIRE(q.get<Q::message_number>() == 0x77);
  rig.hw.set_qp_state(n, QpState::ERR);
  REQUIRE(rig.run<admin::QueryQp>(6, o.qp).ok());
  REQUIRE(rig.output<Q>(6).get<Q::attributes>().get<A::state>() == QpState::ERR);
  rig.refused<admin::QueryQp>(5, rig.command<admin::QueryQp>(o.qp), AdminStatus::NOT_FOUND,
                              AdminField::OBJECT);
}
