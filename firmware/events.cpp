// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Asynchronous events of functions. Each function has a set of bits (state.hpp), so nothing is lost and
// nothing grows: an event that has not left yet covers a second one of its kind. One event per turn.
#include "call.hpp"

namespace roci::fw {

namespace {

void send(unsigned fn, uint32_t bit) {
  using T = hwif::EqeType;
  const auto n = lowest(bit);
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

void tell(unsigned fn, uint32_t pending) {
  Function& f = state.fns[fn];
  if ((state.listening >> fn & 1) == 0) return;
  f.pending |= pending;
  state.pending |= 1u << fn;
}

void tell_all(uint32_t pending) {
  for (uint32_t fns = state.listening; fns != 0; fns &= fns - 1) {
    state.fns[lowest(fns)].pending |= pending;
  }
  state.pending |= state.listening;
}

[[gnu::cold]] void step_errors(uint32_t status) {
  const uint32_t bells = (status & STATUS_BELL_ERROR) != 0 ? bus::take_bell_errors() : 0;
  const uint32_t queues = bus::failed();
  for (uint32_t fns = (bells | queues) & state.listening; fns != 0; fns &= fns - 1) {
    const auto fn = lowest(fns);
    Function& f = state.fns[fn];
    if ((bells >> fn & 1) != 0 && !f.bell_error_told) {
      f.bell_error_told = true;
      tell(fn, PENDING_BELL_ERROR);
    }
    if ((queues >> fn & 1) != 0 && !f.queue_error_told) {
      f.queue_error_told = true;
      tell(fn, PENDING_QUEUE_ERROR);
    }
  }
}

void step_events() {
  // The next function in turn that has one.
  uint32_t fns = state.pending & (~uint32_t{0} << state.event_turn);
  if (fns == 0) fns = state.pending;
  const auto fn = lowest(fns);
  state.event_turn = static_cast<uint8_t>((fn + 1) % FNS);
  uint32_t& pending = state.fns[fn].pending;
  if (pending != 0) {
    send(fn, pending & (~pending + 1));
    pending &= pending - 1;
  }
  if (pending == 0) state.pending &= ~(1u << fn);
}

}  // namespace roci::fw
