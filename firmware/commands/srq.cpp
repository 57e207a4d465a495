// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// CREATE_SRQ, QUERY_SRQ, DESTROY_SRQ. The receive queue of an SRQ has the number QPS + SRQ.
#include "call.hpp"
#include "context.hpp"
#include "receive.hpp"
#include "rings.hpp"

namespace roci::fw {

namespace {
using R = hwif::CtxRq;
}

Outcome create_srq(Call& call) {
  using P = hwif::CreateSrqParams;
  const uint32_t pdn = call.object();
  Object* pd = find(state.pds, pdn, call.fn);
  if (pd == nullptr) return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  const P& p = call.params<hwif::admin::CreateSrq>();
  const uint64_t ring = p.get<P::ring_address>();
  const uint32_t log2 = p.get<P::ring_log2>();
  const uint32_t stride = p.get<P::stride_code>();
  const uint32_t page = p.get<P::doorbell_page>();
  if (ring % RING_ALIGNMENT != 0) return call.invalid(AdminField::RING_ADDRESS);
  if (log2 < hwif::RQ_RING_LOG2_MIN || log2 > hwif::RQ_RING_LOG2_MAX) {
    return call.invalid(AdminField::RING_LOG2, hwif::RQ_RING_LOG2_MAX);
  }
  if (stride > hwif::RQ_STRIDE_CODE_MAX) {
    return call.invalid(AdminField::STRIDE_CODE, hwif::RQ_STRIDE_CODE_MAX);
  }
  if (page >= hwif::DOORBELL_PAGES) {
    return call.invalid(AdminField::DOORBELL_PAGE, hwif::DOORBELL_PAGES - 1);
  }
  // queue_rq_fetch does not yet count what is posted and not taken.
  if (p.get<P::limit>() != 0) return call.fail(AdminStatus::UNSUPPORTED, AdminField::LIMIT);
  if (!quota_left(call.function(), KIND_SRQ)) return call.fail(AdminStatus::NO_RESOURCES);
  const unsigned n = state.free_srqs.take();
  if (n == SRQS) return call.fail(AdminStatus::NO_RESOURCES);
  const Region slots = grant_slots(QPS + n, log2, stride);
  if (slots.log2 == 0) {
    state.free_srqs.give(n);
    return call.fail(AdminStatus::NO_RESOURCES, AdminField::STRIDE_CODE);
  }
  const R row = receive_row(ring, log2, stride, call.fn, slots, true);
  const auto bell = doorbell_row(n, page, call.fn, true, false);
  Image image;
  image.row(CtxColumn::RQ, QPS + n, row, 0, 2);
  image.row(CtxColumn::SRQ_DB, n, bell);
  image.send();
  state.srqs[n] = {static_cast<uint8_t>(call.fn), Life::LIVE, 0};
  state.srq_pds[n] = static_cast<uint16_t>(pdn);
  ++pd->refs;
  ++call.function().counts[KIND_SRQ];
  return call.created(n);
}

void revoke_srq(unsigned n) {
  state.srqs[n].life = Life::DYING;
  ctx_write(CtxColumn::SRQ_DB, n, 0, 0);
  clear_valid<R>(CtxColumn::RQ, QPS + n);
}

void free_srq(unsigned n) {
  R row;
  ctx_read_row(row, CtxColumn::RQ, QPS + n, 1, 1);
  state.slots.give(slots_of(row));
  --state.pds[state.srq_pds[n]].refs;
  --state.fns[state.srqs[n].fn].counts[KIND_SRQ];
  state.srqs[n].life = Life::FREE;
  state.free_srqs.give(n);
}

Outcome destroy_srq(Call& call) {
  const uint32_t n = call.object();
  const Object* srq = find(state.srqs, n, call.fn);
  if (srq == nullptr) return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  if (srq->refs != 0) return call.fail(AdminStatus::BUSY, AdminField::OBJECT);
  if (!can_wait(call)) return Outcome::LATER;
  revoke_srq(n);
  return wait_for_fence(call);
}

Outcome query_srq(Call& call) {
  using Q = hwif::QuerySrqResult;
  const uint32_t n = call.object();
  if (find(state.srqs, n, call.fn) == nullptr) {
    return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  }
  R row;
  ctx_read_row(row, CtxColumn::RQ, QPS + n, 2, 1);
  Q result{};
  result.set<Q::posted_index>(row.get<R::posted>());
  result.set<Q::taken_index>(row.get<R::freed>());
  call.reply.set_result(row_word(result, 0));
  return call.done();
}

}  // namespace roci::fw
