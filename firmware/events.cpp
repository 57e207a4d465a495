// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Asynchronous events of functions. Each function has a set of bits (state.hpp), so nothing is lost and
// nothing grows: an event that has not left yet covers a second one of its kind. One event per turn.
#include "call.hpp"

namespace roci::fw {

namespace {

void send(unsigned fn, uint32_t bit) {
  using T = hwif::EqeType;
  const auto n = static_cast<uint32_t>(__builtin_ctz(bit));
  if (n < 16) {
    bus::send_event(fn, T::GID_CHANGE, 0, 0, n);
  } else if (n < 24) {
    bus::send_event(fn, T::PKEY_CHANGE, 0, 0, n - 16);
  } else {
    const T types[] = {T::PORT_ACTIVE, T::PORT_ERROR, T::DOORBELL_ERROR, T::FUNCTION_ERROR};
    bus::send_event(fn, types[n - 24], 0, 0, 0);
  }
}

}  // namespace

void step_events() {
  const uint32_t status = bus::status();
  if ((status & STATUS_BELL_ERROR) != 0) {
    const uint32_t fns = bus::take_bell_errors();
    for (unsigned fn = 0; fn < FNS; ++fn) {
      Function& f = state.fns[fn];
      if ((fns >> fn & 1) == 0 || f.bell_error_told || !f.has_async_eq) continue;
      f.bell_error_told = true;
      f.pending |= PENDING_BELL_ERROR;
    }
  }
  if ((status & STATUS_QUEUE_FAILED) != 0) {
    const uint32_t fns = bus::failed();
    for (unsigned fn = 0; fn < FNS; ++fn) {
      Function& f = state.fns[fn];
      if ((fns >> fn & 1) == 0 || f.queue_error_told || !f.has_async_eq) continue;
      f.queue_error_told = true;
      f.pending |= PENDING_QUEUE_ERROR;
    }
  }
  if ((status & STATUS_EVENT_BUSY) != 0) return;
  for (unsigned n = 0; n < FNS; ++n) {
    const unsigned fn = state.event_turn;
    state.event_turn = static_cast<uint8_t>(fn + 1 < FNS ? fn + 1 : 0);
    uint32_t& pending = state.fns[fn].pending;
    if (pending == 0) continue;
    send(fn, pending & (~pending + 1));
    pending &= pending - 1;
    return;
  }
}

}  // namespace roci::fw
