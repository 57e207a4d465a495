// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Function reset: all that a function owns is revoked, a fence passes, all of it is freed.
//
// Begun by the function's own register, by FUNCTION_RESET of function 0, or by a transport whose client
// is gone; from then on hardware answers the function's DMA with errors and takes no more commands of
// it. The tables are walked in small steps, so that the commands of others go on in between; a walk
// ends as soon as everything that the counts tell of was met.
#include "call.hpp"
#include "context.hpp"

namespace roci::fw {

namespace {

constexpr unsigned STEP = 16;      // objects, or words of 32 free ones, looked at per turn

constexpr unsigned sizes[KINDS] = {QPS, CQS, EQS, SRQS, MRS, PDS};

// Whether objects n … n + 31 of a kind are all free.
bool none_here(Kind kind, unsigned n) {
  switch (kind) {
    case KIND_QP: return state.free_qps.all_free(n);
    case KIND_CQ: return state.free_cqs.all_free(n);
    case KIND_MR: return state.free_mrs.all_free(n);
    case KIND_PD: return state.free_pds.all_free(n);
    default: return false;         // small tables
  }
}

// Whether object n of a kind is the function's.
bool owned(Kind kind, unsigned n, unsigned fn) {
  const auto mine = [&](const auto& object) {
    return object.life != Life::FREE && object.fn == fn;
  };
  switch (kind) {
    case KIND_QP: return mine(state.qps[n]);
    case KIND_CQ: return mine(state.cqs[n]);
    case KIND_EQ: return mine(state.eqs[n]);
    case KIND_SRQ: return mine(state.srqs[n]);
    case KIND_PD: return mine(state.pds[n]);
    default: {                     // KIND_MR: its owner is in the entry
      using M = hwif::MptEntry;
      M entry;
      ctx_read_row(entry, CtxColumn::MPT, n, 4, 1);
      if (entry.get<M::function_number>() != fn) return false;
      ctx_read_row(entry, CtxColumn::MPT, n, 3, 1);
      return entry.get<M::state>() != hwif::MrState::INVALID;
    }
  }
}

void revoke(Kind kind, unsigned n) {
  switch (kind) {
    case KIND_QP: revoke_qp(n); break;
    case KIND_CQ: revoke_cq(n); break;
    case KIND_EQ: revoke_eq(n); break;
    case KIND_SRQ: revoke_srq(n); break;
    case KIND_MR: revoke_mr(n); break;
    default: break;                // a PD is in no context
  }
}

void release(Kind kind, unsigned n) {
  switch (kind) {
    case KIND_QP: give_regions(free_qp(n)); break;
    case KIND_CQ: free_cq(n); break;
    case KIND_EQ: free_eq(n); break;
    case KIND_SRQ: free_srq(n); break;
    case KIND_MR: free_mr(n); break;
    default: free_pd(n); break;
  }
}

// Starts the walk of the next kind that the function has objects of. False: all kinds are done.
bool next_kind(Function& f, Kind from) {
  f.reset_index = 0;
  for (unsigned kind = from; kind < KINDS; ++kind) {
    if (f.counts[kind] == 0) continue;
    f.reset_kind = static_cast<Kind>(kind);
    f.reset_left = f.counts[kind];
    return true;
  }
  return false;
}

// One step of a walk. True: the walk over all kinds is done.
[[gnu::cold]] bool walk(Function& f, unsigned fn, bool frees) {
  if (f.reset_kind == KINDS) return true;
  for (unsigned n = 0; n < STEP; ++n) {
    if (f.reset_index % 32 == 0 && none_here(f.reset_kind, f.reset_index)) {
      f.reset_index = static_cast<uint16_t>(f.reset_index + 32);
    } else {
      if (owned(f.reset_kind, f.reset_index, fn)) {
        --f.reset_left;
        if (frees) {
          release(f.reset_kind, f.reset_index);
        } else {
          revoke(f.reset_kind, f.reset_index);
        }
      }
      ++f.reset_index;
    }
    if (f.reset_index == sizes[f.reset_kind] || f.reset_left == 0) {
      if (!next_kind(f, static_cast<Kind>(f.reset_kind + 1))) f.reset_kind = KINDS;
      return f.reset_kind == KINDS;
    }
  }
  return false;
}

void begin(Function& f, unsigned fn) {
  // Commands that wait are not answered any more; what they work on is dying and walked with the rest.
  const uint32_t own = ((1u << WAITERS_PER_FN) - 1) << (fn * WAITERS_PER_FN);
  state.waiting &= ~own;
  state.waiting_reset &= ~own;
  state.held &= ~(1u << fn);
  f.pending = 0;
  f.reset = Reset::REVOKE;
  if (!next_kind(f, KIND_QP)) f.reset_kind = KINDS;
}

void end(Function& f, unsigned fn) {
  f.reset = Reset::NONE;
  f.bell_error_told = false;
  f.queue_error_told = false;
  bus::order(Order::RESET_DONE, fn);
  // Hardware does it within a few cycles. If the bit is still set then, it is a new reset.
  for (unsigned n = 0; n < 32 && (bus::resetting() >> fn & 1) != 0; ++n) {
  }
  for (uint32_t left = state.waiting_reset; left != 0; left &= left - 1) {
    const unsigned n = lowest(left);
    const Waiter& waiter = state.waiters[n];
    if (waiter.object != fn) continue;
    state.waiting &= ~(1u << n);
    state.waiting_reset &= ~(1u << n);
    answer(fn_of_waiter(n), new_reply(waiter.command, fn), false);
  }
}

// One part after the other, as far as it goes in this turn.
void step_reset(Function& f, unsigned fn) {
  if (f.reset == Reset::NONE) begin(f, fn);
  if (f.reset == Reset::REVOKE && walk(f, fn, false)) {
    f.reset_fence = request_fence();
    f.reset = Reset::FENCE;
    return;
  }
  if (f.reset == Reset::FENCE && fence_passed(f.reset_fence)) {
    f.reset = Reset::FREE;
    if (!next_kind(f, KIND_QP)) f.reset_kind = KINDS;
  }
  // An output of the function may still be on its way.
  if (f.reset == Reset::FREE && walk(f, fn, true) && !(state.output.active && state.output.fn == fn)) {
    end(f, fn);
  }
}

}  // namespace

Outcome function_reset(Call& call) {
  const uint32_t fn = call.object();
  if (fn == 0 || fn >= FNS) return call.invalid(AdminField::OBJECT, FNS - 1);
  if (!can_wait(call)) return Outcome::LATER;
  bus::order(Order::RESET, fn);
  return wait_for_reset(call);
}

void step_resets() {
  // One function per turn, in turn.
  const uint32_t resetting = bus::resetting();
  if (resetting == 0) return;
  uint32_t fns = resetting & (~uint32_t{0} << state.reset_turn);
  if (fns == 0) fns = resetting;
  const unsigned fn = lowest(fns);
  state.reset_turn = static_cast<uint8_t>((fn + 1) % FNS);
  step_reset(state.fns[fn], fn);
}

}  // namespace roci::fw
