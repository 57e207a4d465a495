// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// CREATE_QP, DESTROY_QP, and the end of MODIFY_QP to RESET.
#include "qp.hpp"
#include "receive.hpp"
#include "rings.hpp"

namespace roci::fw {

namespace {

using P = hwif::CreateQpParams;

// Numbers: index in the low bits, incarnation above. Incarnation 0 is for QP1 alone; all ones would give
// the number of multicast.
constexpr uint32_t INCARNATIONS = 1u << (24 - QP_BITS);
static_assert(hwif::QPN_GSI < RESERVED_QPS);
uint32_t next_number(uint32_t number, unsigned index) {
  uint32_t incarnation = (number >> QP_BITS) + 1;
  if (incarnation >= INCARNATIONS - 1) incarnation = 1;
  return incarnation << QP_BITS | index;
}

void give_index(unsigned index) {
  if (index >= RESERVED_QPS) state.free_qps.give(index);
}

}  // namespace

hwif::QpState qp_state(unsigned index) {
  return static_cast<hwif::QpState>(ctx_read(CtxColumn::QP_STATE, index) & 7);
}

namespace {

// The columns that tell of regions, and what else is static.
struct Rows {
  hwif::CtxQpTx tx;
  hwif::CtxQpAck ack;
  hwif::CtxQpRead read;
  hwif::CtxQpRq rq;
  hwif::CtxQpResp resp;
};

// The queue pair's own regions: the minimum, always its own.
[[gnu::always_inline]] inline void set_own_regions(Rows& rows, unsigned index) {
  set_inflight(rows.tx, rows.ack, InflightPool::owned(index));
  set_read(rows.tx, rows.read, ReadPool::owned(index));
  set_replay(rows.rq, rows.resp, ReplayPool::owned(index));
}

[[gnu::always_inline]] inline void add_rows(Image& image, unsigned index, const Rows& rows) {
  image.row(CtxColumn::QP_TX, index, rows.tx);
  image.row(CtxColumn::QP_ACK, index, rows.ack, 0, 1);
  image.row(CtxColumn::QP_READ, index, rows.read, 0, 1);
  image.row(CtxColumn::QP_RQ, index, rows.rq);
  image.row(CtxColumn::QP_RESP, index, rows.resp, 0, 1);
}

}  // namespace

namespace {

// The lists of a new queue pair.
struct NewQp {
  Group<CtxColumn::RQ, 0, 2, list::LAST> receive;

  Group<CtxColumn::QP_STATE, 1, 1> identity;
  Group<CtxColumn::QP_SQ, 0, 1> sq;
  Group<CtxColumn::QP_RX, 0, 1> rx;
  Group<CtxColumn::QP_DB, 0, 1> bell;
  Group<CtxColumn::QP_TX, 0, 2> tx;
  Group<CtxColumn::QP_ACK, 0, 1, list::LAST> ack;

  Group<CtxColumn::QP_READ, 0, 1> read;
  Group<CtxColumn::QP_RQ, 0, 2> rq;
  Group<CtxColumn::QP_RESP, 0, 1, list::LAST> resp;
};
NewQp new_qp;

}  // namespace

void give_regions(const QpRegions& had) {
  state.inflight.give(had.inflight);
  state.reads.give(had.read);
  state.replays.give(had.replay);
}

Outcome create_qp(Call& call) {
  const uint32_t pdn = call.object();
  Object* pd = find(state.pds, pdn, call.fn);
  if (pd == nullptr) return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  const P& p = call.params<hwif::admin::CreateQp>();
  const hwif::QpType type = p.get<P::qp_type>();
  const bool is_gsi = type == hwif::QpType::GSI;
  if (type >= hwif::QpType::GSI) {
    if (!is_gsi) return call.fail(AdminStatus::UNSUPPORTED, AdminField::QP_TYPE);
    if (call.fn != 0) return call.fail(AdminStatus::NOT_PERMITTED, AdminField::QP_TYPE);
    if (state.qps[hwif::QPN_GSI].life != Life::FREE) {
      return call.fail(AdminStatus::EXISTS, AdminField::QP_TYPE);
    }
  }
  const uint64_t sq_ring = p.get<P::sq_ring_address>();
  const uint64_t rq_ring = p.get<P::rq_ring_address>();
  const uint32_t sq_log2 = p.get<P::sq_ring_log2>();
  const uint32_t rq_log2 = p.get<P::rq_ring_log2>();
  const uint32_t send_cqn = p.get<P::send_cqn>();
  const uint32_t recv_cqn = p.get<P::recv_cqn>();
  const uint32_t srqn = p.get<P::srqn>();
  const bool has_srq = p.get<P::has_srq>();
  if (sq_ring % RING_ALIGNMENT != 0) return call.invalid(AdminField::SQ_RING_ADDRESS);
  if (sq_log2 < hwif::SQ_RING_LOG2_MIN) {            // the largest fills the field
    return call.invalid(AdminField::SQ_RING_LOG2, hwif::SQ_RING_LOG2_MAX);
  }
  Object* send_cq = find(state.cqs, send_cqn, call.fn);
  if (send_cq == nullptr) return call.fail(AdminStatus::NOT_FOUND, AdminField::SEND_CQN);
  Object* recv_cq = recv_cqn == send_cqn ? send_cq : find(state.cqs, recv_cqn, call.fn);
  if (recv_cq == nullptr) return call.fail(AdminStatus::NOT_FOUND, AdminField::RECV_CQN);
  Object* srq = nullptr;
  if (has_srq) {
    srq = find(state.srqs, srqn, call.fn);
    if (srq == nullptr) return call.fail(AdminStatus::NOT_FOUND, AdminField::SRQN);
    if (rq_ring != 0) return call.invalid(AdminField::RQ_RING_ADDRESS);
  } else {
    if (rq_ring % RING_ALIGNMENT != 0) return call.invalid(AdminField::RQ_RING_ADDRESS);
    if (rq_log2 < hwif::RQ_RING_LOG2_MIN) {
      return call.invalid(AdminField::RQ_RING_LOG2, hwif::RQ_RING_LOG2_MAX);
    }
  }
  Function& function = call.function();
  if (!quota_left(function, KIND_QP)) return call.fail(AdminStatus::NO_RESOURCES);
  const unsigned index = is_gsi ? hwif::QPN_GSI : state.free_qps.take();
  if (index == QPS) return call.fail(AdminStatus::NO_RESOURCES);
  Region slots{};
  if (!has_srq) {
    slots = grant_slots(index, rq_log2, p.get<P::rq_stride_code>());
    if (slots.log2 == 0) {
      give_index(index);
      return call.fail(AdminStatus::NO_RESOURCES, AdminField::RQ_STRIDE_CODE);
    }
  }

  Qp& qp = state.qps[index];
  const uint32_t number = is_gsi ? hwif::QPN_GSI : next_number(qp.number, index);
  const auto fn = static_cast<uint8_t>(call.fn);
  const auto pd16 = static_cast<uint16_t>(pdn);

  Rows rows{};
  using T = hwif::CtxQpTx;
  rows.tx.set<T::qp_type>(type);
  rows.tx.set<T::fn>(fn);
  rows.tx.set<T::pd>(pd16);
  rows.tx.set<T::mtu>(hwif::Mtu::MTU_256);
  using A = hwif::CtxQpAck;
  rows.ack.set<A::cq>(static_cast<uint16_t>(send_cqn));
  rows.ack.set<A::fn>(fn);
  rows.ack.set<A::qp_type>(type);
  using D = hwif::CtxQpRead;
  rows.read.set<D::pd>(pd16);
  rows.read.set<D::path_mtu>(hwif::Mtu::MTU_256);
  using R = hwif::CtxQpRq;
  rows.rq.set<R::cq>(static_cast<uint16_t>(recv_cqn));
  rows.rq.set<R::pd>(pd16);
  rows.rq.set<R::qpn>(number);
  rows.rq.set<R::qp_type>(type);
  // A datagram is as long as its sender's port allows.
  rows.rq.set<R::mtu>(is_connected(type) ? hwif::Mtu::MTU_256 : hwif::Mtu::MTU_4096);
  rows.rq.set<R::srqn>(srqn);
  rows.rq.set<R::has_srq>(has_srq);
  using S = hwif::CtxQpResp;
  rows.resp.set<S::pd>(pd16);
  rows.resp.set<S::fn>(fn);
  rows.resp.set<S::mtu>(hwif::Mtu::MTU_256);
  set_own_regions(rows, index);

  using Q = hwif::CtxQpState;
  Q identity{};
  identity.set<Q::qpn>(number);
  identity.set<Q::fn>(fn);
  using B = hwif::CtxQpSq;
  B sq{};
  sq.set<B::log2_blocks>(static_cast<uint8_t>(sq_log2));
  sq.set<B::fn>(fn);
  sq.set<B::ring_page>(sq_ring / RING_ALIGNMENT);
  using X = hwif::CtxQpRx;
  X rx{};
  rx.set<X::qpn>(number);
  rx.set<X::qp_type>(type);
  rx.set<X::fn>(fn);
  rx.set<X::valid>(true);
  const uint8_t page = p.get<P::doorbell_page>();
  const auto bell = doorbell_row(number, page, fn, false, false);

  // In three lists, so that the engine works while the next one is made. It is done with those of the
  // last one: its answer waited for them.
  NewQp& lists = new_qp;
  if (!has_srq) {
    lists.receive.put(receive_row(rq_ring, rq_log2, p.get<P::rq_stride_code>(), fn, slots, false));
    bus::ctx_list(&lists.receive, index);
  }
  lists.identity.put(identity);
  lists.sq.put(sq);
  lists.rx.put(rx);
  lists.bell.put(bell);
  lists.tx.put(rows.tx);
  lists.ack.put(rows.ack);
  bus::ctx_list(&lists.identity, index);
  lists.read.put(rows.read);
  lists.rq.put(rows.rq);
  lists.resp.put(rows.resp);
  bus::ctx_list(&lists.read, index);

  call.created(number);
  answer(call.fn, call.reply, true);
  // What nobody waits for. The slot may hold the next command: nothing of this one is read any more.
  qp.number = number;
  qp.fn = fn;
  qp.life = Life::LIVE;
  qp.rights = 0;
  qp.page_pkey = page;
  qp.responder_depth = 0;
  qp.notify_drained = 0;
  qp.type = type;
  ++pd->refs;
  ++send_cq->refs;
  ++recv_cq->refs;
  if (srq != nullptr) ++srq->refs;
  ++function.counts[KIND_QP];
  return Outcome::WAITS;
}

void revoke_qp(unsigned index) {
  Qp& qp = state.qps[index];
  qp.life = Life::DYING;
  // No more rings, then no more work: RESET stops fetches, sends, answers and receives.
  const auto bell = doorbell_row(qp.number, qp.page_pkey & 15u, qp.fn, false, false);
  ctx_write(CtxColumn::QP_DB, index, 0, row_word(bell, 0));
  using Q = hwif::CtxQpState;
  Q to{};
  to.set<Q::target>(hwif::QpState::RESET);
  to.set<Q::from_states>(0xff);
  ctx_write(CtxColumn::QP_STATE, index, 0, row_word(to, 0));
}

QpRegions free_qp(unsigned index) {
  using T = hwif::CtxQpTx;
  using A = hwif::CtxQpAck;
  using R = hwif::CtxQpRq;
  Qp& qp = state.qps[index];
  Reads reads;
  const T& tx = reads.add<T>(CtxColumn::QP_TX, index);
  const A& ack = reads.add<A>(CtxColumn::QP_ACK, index, 1);
  const R& rq = reads.add<R>(CtxColumn::QP_RQ, index);
  const hwif::CtxRq& receive = reads.add<hwif::CtxRq>(CtxColumn::RQ, index, 2);
  reads.start();
  release_pkey(qp);
  --state.fns[qp.fn].counts[KIND_QP];
  qp.life = Life::FREE;
  give_index(index);
  reads.wait();
  ctx_write(CtxColumn::QP_RX, index, 0, 0);          // frames for it meet nobody
  --state.pds[tx.get<T::pd>()].refs;
  --state.cqs[ack.get<A::cq>()].refs;
  --state.cqs[rq.get<R::cq>()].refs;
  if (rq.get<R::has_srq>()) {
    --state.srqs[rq.get<R::srqn>() % SRQS].refs;
  } else {
    state.slots.give(slots_of(receive));
    ctx_write(CtxColumn::RQ, index, 1, 0);           // a queue pair with an SRQ will not write it
  }
  return regions_of(tx, rq);
}

QpRegions finish_qp_reset(unsigned index) {
  using R = hwif::CtxRq;
  Qp& qp = state.qps[index];
  Reads reads;
  const auto& tx = reads.add<hwif::CtxQpTx>(CtxColumn::QP_TX, index);
  const auto& ack = reads.add<hwif::CtxQpAck>(CtxColumn::QP_ACK, index, 1);
  const auto& read = reads.add<hwif::CtxQpRead>(CtxColumn::QP_READ, index, 1);
  const auto& rq = reads.add<hwif::CtxQpRq>(CtxColumn::QP_RQ, index);
  const auto& resp = reads.add<hwif::CtxQpResp>(CtxColumn::QP_RESP, index, 1);
  const R& old_receive = reads.add<R>(CtxColumn::RQ, index, 2);
  reads.start();
  release_pkey(qp);
  qp.rights = 0;
  qp.responder_depth = 0;
  qp.life = Life::LIVE;
  reads.wait();
  const QpRegions had = regions_of(tx, rq);
  Rows rows{tx, ack, read, rq, resp};
  set_own_regions(rows, index);
  Image image;
  add_rows(image, index, rows);
  if (!rows.rq.get<hwif::CtxQpRq::has_srq>()) {
    // The slots stay the queue's; nothing is fetched into them until INIT.
    R receive = old_receive;
    receive.set<R::valid>(false);
    image.row(CtxColumn::RQ, index, receive, 1, 1);
  }
  image.send();
  return had;
}

Outcome destroy_qp(Call& call) {
  Qp* qp = find_qp(call.object(), call.fn);
  if (qp == nullptr) return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  if (qp->life == Life::BUSY) return call.fail(AdminStatus::BUSY, AdminField::OBJECT);
  if (!can_wait(call)) return Outcome::LATER;
  revoke_qp(index_of(*qp));
  return wait_for_fence(call);
}

}  // namespace roci::fw
