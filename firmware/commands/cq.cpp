// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// CREATE_CQ, DESTROY_CQ, QUERY_CQ.
#include "call.hpp"
#include "context.hpp"
#include "rings.hpp"

namespace roci::fw {

namespace {
using R = hwif::CtxCq;
}

Outcome create_cq(Call& call) {
  using P = hwif::CreateCqParams;
  const P& p = call.params<hwif::admin::CreateCq>();
  const uint64_t ring = p.get<P::ring_address>();
  const uint32_t log2 = p.get<P::ring_log2>();
  const uint32_t page = p.get<P::doorbell_page>();
  const uint32_t eqn = p.get<P::eqn>();
  if (ring % RING_ALIGNMENT != 0) return call.invalid(AdminField::RING_ADDRESS);
  if (log2 < hwif::CQ_RING_LOG2_MIN || log2 > hwif::CQ_RING_LOG2_MAX) {
    return call.invalid(AdminField::RING_LOG2, hwif::CQ_RING_LOG2_MAX);
  }
  if (page >= hwif::DOORBELL_PAGES) {
    return call.invalid(AdminField::DOORBELL_PAGE, hwif::DOORBELL_PAGES - 1);
  }
  Object* eq = find(state.eqs, eqn, call.fn);
  if (eq == nullptr) return call.fail(AdminStatus::NOT_FOUND, AdminField::EQN);
  if (!quota_left(call.function(), KIND_CQ)) return call.fail(AdminStatus::NO_RESOURCES);
  const unsigned n = state.free_cqs.take();
  if (n == CQS) return call.fail(AdminStatus::NO_RESOURCES);

  R row{};
  row.set<R::log2_entries>(static_cast<uint8_t>(log2));
  row.set<R::ring_page>(ring / RING_ALIGNMENT);
  row.set<R::cqn>(n);
  row.set<R::valid>(true);
  row.set<R::fn>(static_cast<uint8_t>(call.fn));
  row.set<R::eq>(static_cast<uint16_t>(eqn));
  const auto bell = doorbell_row(n, page, call.fn, true, false);
  Image image;
  image.row(CtxColumn::CQ, n, row, 0, 2);
  image.row(CtxColumn::CQ_DB, n, bell);
  image.send();
  state.cqs[n] = {static_cast<uint8_t>(call.fn), Life::LIVE, 0};
  ++eq->refs;
  ++call.function().counts[KIND_CQ];
  return call.created(n);
}

void revoke_cq(unsigned n) {
  state.cqs[n].life = Life::DYING;
  ctx_write(CtxColumn::CQ_DB, n, 0, 0);
  clear_valid<R>(CtxColumn::CQ, n);
}

void free_cq(unsigned n) {
  R row;
  ctx_read_row(row, CtxColumn::CQ, n, 1, 1);
  --state.eqs[row.get<R::eq>()].refs;
  --state.fns[state.cqs[n].fn].counts[KIND_CQ];
  state.cqs[n].life = Life::FREE;
  state.free_cqs.give(n);
}

Outcome destroy_cq(Call& call) {
  const uint32_t n = call.object();
  const Object* cq = find(state.cqs, n, call.fn);
  if (cq == nullptr) return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  if (cq->refs != 0) return call.fail(AdminStatus::BUSY, AdminField::OBJECT);
  if (!can_wait(call)) return Outcome::LATER;
  revoke_cq(n);
  return wait_for_fence(call);
}

Outcome query_cq(Call& call) {
  using Q = hwif::QueryCqResult;
  const uint32_t n = call.object();
  if (find(state.cqs, n, call.fn) == nullptr) {
    return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  }
  R row;
  ctx_read_row(row, CtxColumn::CQ, n, 2, 2);
  Q result{};
  result.set<Q::producer_index>(row.get<R::producer>());
  result.set<Q::armed>(row.get<R::armed>());
  result.set<Q::armed_solicited>(row.get<R::solicited_only>());
  result.set<Q::error>(row.get<R::error>());
  result.set<Q::consumer_index>(row.get<R::consumed>());
  call.reply.set_result(row_word(result, 0));
  return call.done();
}

}  // namespace roci::fw
