// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// CREATE_EQ, DESTROY_EQ.
#include "call.hpp"
#include "context.hpp"
#include "rings.hpp"

namespace roci::fw {

namespace {

// Whether one more for `f` leaves one for each function that has none: without its event queue nobody
// can open the device.
bool leaves_others_one(const Function& f) {
  unsigned wanted = f.counts[KIND_EQ] == 0 ? 0 : 1;
  for (const Function& each : state.fns) {
    wanted += each.counts[KIND_EQ] == 0 ? 1 : each.counts[KIND_EQ];
  }
  return wanted <= EQS;
}

}  // namespace

Outcome create_eq(Call& call) {
  using P = hwif::CreateEqParams;
  const P& p = call.params<hwif::admin::CreateEq>();
  const uint64_t ring = p.get<P::ring_address>();
  const uint32_t log2 = p.get<P::ring_log2>();
  const uint32_t page = p.get<P::doorbell_page>();
  if (ring % RING_ALIGNMENT != 0) return call.invalid(AdminField::RING_ADDRESS);
  if (log2 < hwif::EQ_RING_LOG2_MIN || log2 > hwif::EQ_RING_LOG2_MAX) {
    return call.invalid(AdminField::RING_LOG2, hwif::EQ_RING_LOG2_MAX);
  }
  if (page >= hwif::DOORBELL_PAGES) {
    return call.invalid(AdminField::DOORBELL_PAGE, hwif::DOORBELL_PAGES - 1);
  }
  if (p.get<P::irq_vector>() >= hwif::INTERRUPT_VECTORS) {
    return call.invalid(AdminField::IRQ_VECTOR, hwif::INTERRUPT_VECTORS - 1);
  }
  Function& f = call.function();
  if (!leaves_others_one(f)) return call.fail(AdminStatus::NO_RESOURCES);
  const unsigned n = state.free_eqs.take();
  if (n == EQS) return call.fail(AdminStatus::NO_RESOURCES);

  using E = hwif::CtxEq;
  E row{};
  row.set<E::log2_entries>(static_cast<uint8_t>(log2));
  row.set<E::ring_page>(ring / RING_ALIGNMENT);
  row.set<E::valid>(true);
  row.set<E::fn>(static_cast<uint8_t>(call.fn));
  row.set<E::irq_vector>(p.get<P::irq_vector>());
  Image image;
  image.row(CtxColumn::EQ, n, row, 0, 2);
  const auto bell = doorbell_row(n, page, call.fn, true, false);
  image.row(CtxColumn::EQ_DB, n, bell);
  using F = hwif::CtxFn;
  F async{};
  if (p.get<P::async_events>()) {
    async.set<F::async_eq>(static_cast<uint16_t>(n));
    async.set<F::valid>(true);
    image.row(CtxColumn::FN, call.fn, async);
    state.listening |= 1u << call.fn;
    f.async_eq = static_cast<uint8_t>(n);
  }
  image.send();
  state.eqs[n] = {static_cast<uint8_t>(call.fn), Life::LIVE, 0};
  ++f.counts[KIND_EQ];
  return call.created(n);
}

void revoke_eq(unsigned n) {
  Function& f = state.fns[state.eqs[n].fn];
  state.eqs[n].life = Life::DYING;
  ctx_write(CtxColumn::EQ_DB, n, 0, 0);
  const unsigned fn = state.eqs[n].fn;
  if ((state.listening >> fn & 1) != 0 && f.async_eq == n) {
    ctx_write(CtxColumn::FN, fn, 0, 0);
    state.listening &= ~(1u << fn);
    f.pending = 0;
  }
  clear_valid<hwif::CtxEq>(CtxColumn::EQ, n);
}

void free_eq(unsigned n) {
  --state.fns[state.eqs[n].fn].counts[KIND_EQ];
  state.eqs[n].life = Life::FREE;
  state.free_eqs.give(n);
}

Outcome destroy_eq(Call& call) {
  const uint32_t n = call.object();
  const Object* eq = find(state.eqs, n, call.fn);
  if (eq == nullptr) return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  if (eq->refs != 0) return call.fail(AdminStatus::BUSY, AdminField::OBJECT);
  if (!can_wait(call)) return Outcome::LATER;
  revoke_eq(n);
  return wait_for_fence(call);
}

}  // namespace roci::fw
