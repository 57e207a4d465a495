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

[[gnu::always_inline]] inline V path_of(const hwif::CtxQpPath& path) {
  using P = hwif::CtxQpPath;
  V v{};
  set_row_word(v, V::dgid::AT / 64, swap64(path.get<P::dgid_high>()));
  set_row_word(v, V::dgid::AT / 64 + 1, swap64(path.get<P::dgid_low>()));
  // the MAC address, and the VLAN behind it
  const uint16_t tci = path.get<P::tci>();
  set_row_word(v, V::dmac::AT / 64, swap64(path.get<P::dmac>()) >> 16);
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
  Q* const out = output<Q>();
  if (out == nullptr) return Outcome::LATER;
  Q& q = *out;
  const unsigned n = index_of(*qp);

  Reads reads;
  const auto& life = reads.add<hwif::CtxQpState>(CtxColumn::QP_STATE, n, 1);
  const T& tx = reads.add<T>(CtxColumn::QP_TX, n);
  const D& dynamic = reads.add<D>(CtxColumn::QP_TX_DYN, n, 1);
  const K& ack = reads.add<K>(CtxColumn::QP_ACK, n);
  const R& rq = reads.add<R>(CtxColumn::QP_RQ, n);
  const Y& rq_dynamic = reads.add<Y>(CtxColumn::QP_RQ_DYN, n, 1);
  const B& sq = reads.add<B>(CtxColumn::QP_SQ, n);
  const auto& path = reads.add<hwif::CtxQpPath>(CtxColumn::QP_PATH, n);
  const auto& retry = reads.add<hwif::CtxQpRetry>(CtxColumn::QP_RETRY, n);
  const auto& timer = reads.add<hwif::CtxQpTimer>(CtxColumn::QP_TIMER, n);
  const W& receive = reads.add<W>(CtxColumn::RQ, n);
  reads.start();

  A a{};
  a.set<A::sqd_async_notify>(qp->notify_drained != 0);
  hwif::AccessRights rights{};
  rights.words[0] = qp->rights;
  a.set<A::rights>(rights);
  a.set<A::responder_depth>(qp->responder_depth);
  a.set<A::port>(1);
  a.set<A::pkey_index>(static_cast<uint16_t>(qp->page_pkey >> 4 != 0 ? (qp->page_pkey >> 4) - 1
                                                                     : 0));
  C creation{};
  creation.set<C::qp_type>(qp->type);
  creation.set<C::doorbell_page>(qp->page_pkey & 15u);
  reads.wait();

  const auto now = life.get<hwif::CtxQpState::target>();
  const bool has_srq = rq.get<R::has_srq>();
  a.set<A::state>(now);
  a.set<A::draining>(now == hwif::QpState::SQD && !is_drained(dynamic, ack));
  a.set<A::path_mtu>(tx.get<T::mtu>());
  a.set<A::timeout>(timer.get<hwif::CtxQpTimer::timeout>());
  a.set<A::retry_count>(retry.get<hwif::CtxQpRetry::retry_cnt>());
  a.set<A::rnr_retry>(retry.get<hwif::CtxQpRetry::rnr_retry>());
  a.set<A::min_rnr_timer>(rq.get<R::min_rnr_timer>());
  a.set<A::initiator_depth>(tx.get<T::max_rd_atomic>());
  using P = hwif::CtxQpPath;
  const bool connected = is_connected(qp->type);
  // UD: the words of the peer's GID hold other things
  a.set<A::dest_qpn>(connected ? path.get<P::dest_qpn>() : 0);
  a.set<A::qkey>(connected ? 0 : static_cast<uint32_t>(path.get<P::dgid_low>()));
  a.set<A::sq_psn>(dynamic.get<D::next_psn>());
  a.set<A::rq_psn>(rq_dynamic.get<Y::next_psn>());
  // all but the path: what is before it, and what is reserved behind it
  constexpr unsigned WORD_BITS = 8 * sizeof(A::Word);
  constexpr unsigned PATH_END = A::path::AT + 8 * V::BYTES;
  static_assert(PATH_END % WORD_BITS == 0);
  A& attributes = part<Q::attributes>(q);
  copy_words(attributes, a, 0, A::path::AT / WORD_BITS);
  copy_words(attributes, a, PATH_END / WORD_BITS, (8 * A::BYTES - PATH_END) / WORD_BITS);
  copy_words(part<A::path>(attributes), connected ? path_of(path) : V{});

  creation.set<C::sq_ring_address>(sq.get<B::ring_page>() * RING_ALIGNMENT);
  creation.set<C::sq_ring_log2>(sq.get<B::log2_blocks>());
  creation.set<C::send_cqn>(ack.get<K::cq>());
  creation.set<C::recv_cqn>(rq.get<R::cq>());
  creation.set<C::has_srq>(has_srq);
  if (has_srq) {
    creation.set<C::srqn>(rq.get<R::srqn>());
  } else {
    creation.set<C::rq_ring_address>(receive.get<W::ring_page>() * RING_ALIGNMENT);
    creation.set<C::rq_ring_log2>(receive.get<W::log2_entries>());
    creation.set<C::rq_stride_code>(receive.get<W::stride_code>());
  }
  copy_words(part<Q::creation>(q), creation);

  Q rest{};
  rest.set<Q::pd>(tx.get<T::pd>());
  rest.set<Q::sq_fetch_index>(sq.get<B::fetch_point>());
  rest.set<Q::sq_oldest_index>(ack.get<K::oldest_index>());
  if (!has_srq) {
    rest.set<Q::rq_posted_index>(receive.get<W::posted>());
    rest.set<Q::rq_taken_index>(receive.get<W::freed>());
  }
  rest.set<Q::oldest_psn>(ack.get<K::acked_psn>());
  rest.set<Q::message_number>(rq_dynamic.get<Y::msn>());
  copy_words(q, rest, Q::pd::AT / WORD_BITS, (8 * Q::BYTES - Q::pd::AT) / WORD_BITS);
  return write_output(call, out, Q::BYTES);
}

}  // namespace roci::fw
