// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Start, and the main loop.
//
// After power-on the hardware's tables are clear. If the CPU was held and started again (a new image),
// they hold what the old firmware made: then everything is revoked, all functions are reset, and the
// hosts begin afresh.
#include "call.hpp"
#include "context.hpp"

namespace roci::fw {

namespace {

using hwif::FirmwareFault;
using hwif::FirmwareState;

void show(FirmwareState what, FirmwareFault fault) {
  using C = hwif::CtxCsr;
  C csr{};
  csr.set<C::firmware_hash>(hwif::HWIF_HASH);
  csr.set<C::state>(what);
  csr.set<C::fault>(fault);
  csr.set<C::version_major>(VERSION_MAJOR);
  csr.set<C::version_minor>(VERSION_MINOR);
  csr.set<C::version_patch>(VERSION_PATCH);
  ctx_write(CtxColumn::CSR, 0, 4, row_word(csr, 4));
  ctx_write(CtxColumn::CSR, 0, 5, row_word(csr, 5));
  bus::ctx_failed();                           // waits until it is written
}

bool config_fits() {
  const uint32_t expected[3] = {
      SRQ_BITS << 24 | EQ_BITS << 16 | CQ_BITS << 8 | QP_BITS,
      GID_BITS << 24 | PD_BITS << 16 | MR_BITS << 8 | FN_BITS,
      SLOT_BITS << 24 | READ_BITS << 16 | REPLAY_BITS << 8 | INFLIGHT_BITS};
  for (unsigned n = 0; n < 3; ++n) {
    if (bus::config(n) != expected[n]) return false;
  }
  return (bus::config(3) & 1) == IS_WIDE;
}

void init_tables() {
  state.free_qps.init(RESERVED_QPS);
  state.free_cqs.init();
  state.free_eqs.init();
  state.free_srqs.init();
  state.free_pds.init();
  state.free_mrs.init(1);                      // key 0 is no key
  state.inflight.init();
  state.reads.init();
  state.replays.init();
  state.slots.init();
  state.fns[0].privileged = true;
  // Numbers of queue pairs begin at incarnation 1, but for QP1 (commands/qp_create.cpp).
}

// Takes everything away that an image before this one has made.
[[gnu::cold]] void revoke_all() {
  using M = hwif::MptEntry;
  using Q = hwif::CtxQpState;
  Q reset{};
  reset.set<Q::target>(hwif::QpState::RESET);
  reset.set<Q::from_states>(0xff);
  for (unsigned n = 0; n < QPS; ++n) {
    // The incarnation goes on from the old one.
    using D = hwif::CtxQpDb;
    D bell;
    ctx_read_row(bell, CtxColumn::QP_DB, n, 0, 1);
    state.qps[n].number = bell.get<D::number>();
    bell.set<D::takes_send>(false);
    bell.set<D::takes_receive>(false);
    ctx_write(CtxColumn::QP_DB, n, 0, row_word(bell, 0));
    ctx_write(CtxColumn::QP_STATE, n, 0, row_word(reset, 0));
    ctx_write(CtxColumn::QP_RX, n, 0, 0);
  }
  for (unsigned n = 0; n < SRQS; ++n) {
    ctx_write(CtxColumn::SRQ_DB, n, 0, 0);
    ctx_write(CtxColumn::RQ, QPS + n, 1, 0);
  }
  for (unsigned n = 0; n < CQS; ++n) {
    ctx_write(CtxColumn::CQ_DB, n, 0, 0);
    ctx_write(CtxColumn::CQ, n, 1, 0);
  }
  for (unsigned n = 0; n < EQS; ++n) {
    ctx_write(CtxColumn::EQ_DB, n, 0, 0);
    ctx_write(CtxColumn::EQ, n, 1, 0);
  }
  for (unsigned n = 0; n < FNS; ++n) ctx_write(CtxColumn::FN, n, 0, 0);
  for (unsigned n = 0; n < MRS; ++n) {
    M entry;
    ctx_read_row(entry, CtxColumn::MPT, n, 3, 1);
    if (entry.get<M::state>() == hwif::MrState::INVALID) continue;
    entry.set<M::state>(hwif::MrState::INVALID);
    ctx_write(CtxColumn::MPT, n, 3, row_word(entry, 3));
  }
  for (unsigned n = 0; n < GIDS; ++n) ctx_write(CtxColumn::GID, n, 2, 0);
  for (unsigned n = 0; n < PKEYS; ++n) ctx_write(CtxColumn::PKEY, n, 0, 0);
  const uint32_t fence = request_fence();
  while (!fence_passed(fence)) {               // nobody is served yet
  }
  for (unsigned fn = 0; fn < FNS; ++fn) bus::order(Order::RESET, fn);
}

}  // namespace

bool boot() {
  if (!config_fits()) {
    show(FirmwareState::FAILED, FirmwareFault::CONFIG);
    return false;
  }
  using C = hwif::CtxCsr;
  C csr;
  ctx_read_row(csr, CtxColumn::CSR, 0, 5, 1);
  const bool fresh = csr.get<C::state>() == FirmwareState::HELD;
  show(FirmwareState::BOOTING, FirmwareFault::NONE);
  init_tables();
  if (!fresh) revoke_all();
  boot_port();
  if (bus::ctx_failed()) {
    show(FirmwareState::FAILED, FirmwareFault::CONTEXT_BUS);
    return false;
  }
  show(FirmwareState::READY, FirmwareFault::NONE);
  return true;
}

// What hardware may want.
constexpr uint32_t RARE = STATUS_PORT_WRITTEN | STATUS_RESETTING | STATUS_BELL_ERROR |
                          STATUS_QUEUE_FAILED;

// The link is looked at every so many turns, of either loop.
constexpr uint32_t LINK_TURNS = 65536;

uint32_t rest() {
  uint32_t status = bus::status();
  if ((state.held | state.pending | (state.waiting ^ state.waiting_reset)) != 0 ||
      state.output.active) {
    return status;
  }
  uint32_t turns = state.turns;
  while ((status & (STATUS_COMMAND | RARE)) == 0 && ++turns < LINK_TURNS) status = bus::status();
  state.turns = turns;
  return status;
}

bool step(uint32_t status) {
  if (state.held != 0) run_held();  // before what has just come
  if ((status & STATUS_COMMAND) != 0) {
    const NextCommand next = bus::next_command();
    if (next.valid) run_command(next);
  }
  if (state.output.active) step_output();
  if (state.waiting != state.waiting_reset) step_waiters();
  if ((status & RARE) != 0) {
    if ((status & STATUS_RESETTING) != 0) step_resets();
    if ((status & STATUS_PORT_WRITTEN) != 0 && !state.output.active) step_port();
    if ((status & (STATUS_BELL_ERROR | STATUS_QUEUE_FAILED)) != 0) step_errors(status);
  }
  if (state.pending != 0 && (status & STATUS_EVENT_BUSY) == 0) step_events();
  if (++state.turns >= LINK_TURNS) {
    state.turns = 0;
    step_link();
  }
  if (state.bus_failed) {
    show(FirmwareState::FAILED, FirmwareFault::CONTEXT_BUS);
    return false;
  }
  return true;
}

}  // namespace roci::fw
