// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// QUERY_QP: attributes and progress, read back from the hardware at this moment.
#include "guid.hpp"
#include "qp.hpp"
#include "rings.hpp"

namespace roci::fw {

namespace {

using A = hwif::QpAttributes;
using V = hwif::AddressVector;

V path_of(const hwif::CtxQpPath& path) {
  using P = hwif::CtxQpPath;
  V v{};
  const uint64_t halves[2] = {swap64(path.get<P::dgid_high>()), swap64(path.get<P::dgid_low>())};
  __builtin_memcpy(v.data() + V::dgid::AT / 8, halves, 16);
  const uint64_t mac = swap64(path.get<P::dmac>() << 16);
  __builtin_memcpy(v.data() + V::dmac::AT / 8, &mac, 6);
  const uint16_t tci = path.get<P::tci>();
  v.set<V::vlan_id>(tci & 0xfff);
  v.set<V::sl>(static_cast<uint8_t>(tci >> 13));
  v.set<V::vlan_present>(path.get<P::vlan_valid>());
  v.set<V::sgid_index>(path.get<P::sgid_index>());
  v.set<V::hop_limit>(path.get<P::hop_limit>());
  v.set<V::traffic_class>(path.get<P::traffic_class>());
  v.set<V::flow_label>(path.get<P::flow_label>());
  return v;
}

}  // namespace

Outcome query_qp(Call& call) {
  using Q = hwif::QueryQpOutput;
  using C = hwif::CreateQpParams;
  using T = hwif::CtxQpTx;
  using D = hwif::CtxQpTxDyn;
  using K = hwif::CtxQpAck;
  using R = hwif::CtxQpRq;
  using Y = hwif::CtxQpRqDyn;
  using B = hwif::CtxQpSq;
  using W = hwif::CtxRq;
  const Qp* qp = find_qp(call.object(), call.fn);
  if (qp == nullptr) return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  if (qp->life == Life::BUSY) return call.fail(AdminStatus::BUSY, AdminField::OBJECT);
  void* buffer = output_buffer();
  if (buffer == nullptr) return Outcome::LATER;
  const unsigned n = index_of(*qp);

  const hwif::QpState now = qp_state(n);
  T tx{};
  D dynamic{};
  K ack{};
  R rq{};
  Y rq_dynamic{};
  B sq{};
  W receive{};
  hwif::CtxQpPath path{};
  hwif::CtxQpRetry retry{};
  hwif::CtxQpTimer timer{};
  ctx_read_row(tx, CtxColumn::QP_TX, n, 0, 1);
  ctx_read_row(dynamic, CtxColumn::QP_TX_DYN, n, 0, 1);
  ctx_read_row(ack, CtxColumn::QP_ACK, n, 0, 3);
  ctx_read_row(rq, CtxColumn::QP_RQ, n, 0, 2);
  ctx_read_row(rq_dynamic, CtxColumn::QP_RQ_DYN, n, 0, 1);
  ctx_read_row(sq, CtxColumn::QP_SQ, n, 0, 2);
  ctx_read_row(path, CtxColumn::QP_PATH, n, 0, 5);
  ctx_read_row(retry, CtxColumn::QP_RETRY, n, 0, 1);
  ctx_read_row(timer, CtxColumn::QP_TIMER, n, 0, 1);
  const bool has_srq = rq.get<R::has_srq>();
  if (!has_srq) ctx_read_row(receive, CtxColumn::RQ, n, 0, 3);

  A a{};
  a.set<A::state>(now);
  a.set<A::draining>(now == hwif::QpState::SQD && !is_drained(n));
  a.set<A::sqd_async_notify>(qp->notify_drained != 0);
  hwif::AccessRights rights{};
  rights.words[0] = qp->rights;
  a.set<A::rights>(rights);
  a.set<A::path_mtu>(tx.get<T::mtu>());
  a.set<A::timeout>(timer.get<hwif::CtxQpTimer::timeout>());
  a.set<A::retry_count>(retry.get<hwif::CtxQpRetry::retry_cnt>());
  a.set<A::rnr_retry>(retry.get<hwif::CtxQpRetry::rnr_retry>());
  a.set<A::min_rnr_timer>(rq.get<R::min_rnr_timer>());
  a.set<A::initiator_depth>(tx.get<T::max_rd_atomic>());
  a.set<A::responder_depth>(qp->responder_depth);
  a.set<A::port>(1);
  a.set<A::pkey_index>(static_cast<uint16_t>(qp->page_pkey >> 4 != 0 ? (qp->page_pkey >> 4) - 1
                                                                     : 0));
  a.set<A::dest_qpn>(path.get<hwif::CtxQpPath::dest_qpn>());
  a.set<A::sq_psn>(dynamic.get<D::next_psn>());
  a.set<A::rq_psn>(rq_dynamic.get<Y::next_psn>());
  a.set<A::path>(path_of(path));

  C creation{};
  creation.set<C::sq_ring_address>(sq.get<B::ring_page>() * RING_ALIGNMENT);
  creation.set<C::sq_ring_log2>(sq.get<B::log2_blocks>());
  creation.set<C::send_cqn>(ack.get<K::cq>());
  creation.set<C::recv_cqn>(rq.get<R::cq>());
  creation.set<C::qp_type>(hwif::QpType::RC);
  creation.set<C::has_srq>(has_srq);
  creation.set<C::doorbell_page>(qp->page_pkey & 15u);
  if (has_srq) {
    creation.set<C::srqn>(rq.get<R::srqn>());
  } else {
    creation.set<C::rq_ring_address>(receive.get<W::ring_page>() * RING_ALIGNMENT);
    creation.set<C::rq_ring_log2>(receive.get<W::log2_entries>());
    creation.set<C::rq_stride_code>(receive.get<W::stride_code>());
  }

  Q q{};
  q.set<Q::attributes>(a);
  q.set<Q::creation>(creation);
  q.set<Q::pd>(tx.get<T::pd>());
  q.set<Q::sq_fetch_index>(sq.get<B::fetch_point>());
  q.set<Q::sq_oldest_index>(ack.get<K::oldest_index>());
  q.set<Q::rq_posted_index>(receive.get<W::posted>());
  q.set<Q::rq_taken_index>(receive.get<W::freed>());
  q.set<Q::oldest_psn>(ack.get<K::acked_psn>());
  q.set<Q::message_number>(rq_dynamic.get<Y::msn>());
  q.store(buffer);
  return write_output(call, Q::BYTES);
}

}  // namespace roci::fw
