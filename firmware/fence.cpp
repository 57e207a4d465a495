// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Fences (DESIGN rule 8) and the commands that wait for them.
//
// An object is revoked first; then a fence is asked for; when it is over nothing that was granted
// before is outstanding, and the object is freed. One fence covers all that was revoked before it
// began, so a waiting command only remembers the number of the fence that covers it. Column FENCE
// counts the fences that have ended: if one runs now, the one that covers us is the next one.
#include "call.hpp"
#include "context.hpp"

namespace roci::fw {

namespace {

// A fence ends when the data path has drained: microseconds. If host memory does not answer, the
// command is given up after this many cycles, and its object stays revoked for good.
constexpr uint64_t DRAIN_LIMIT = IS_WIDE ? 250'000'000 : 125'000'000;   // one second

struct FenceState {
  bool running;
  uint32_t ended;
};

FenceState fence_state() {
  const uint64_t word = ctx_read(CtxColumn::FENCE, 0);
  return {(word & 1) != 0, static_cast<uint32_t>(word >> 16)};
}

// The command's object after its fence.
void finish(Waiter& waiter, Reply& reply) {
  const uint32_t n = waiter.object;
  switch (waiter.opcode) {
    case AdminOpcode::DESTROY_QP: free_qp(n % QPS); break;
    case AdminOpcode::MODIFY_QP: finish_qp_reset(n % QPS); break;
    case AdminOpcode::DESTROY_CQ: free_cq(n); break;
    case AdminOpcode::DESTROY_EQ: free_eq(n); break;
    case AdminOpcode::DESTROY_SRQ: free_srq(n); break;
    case AdminOpcode::DESTROY_MR: free_mr(n); break;
    case AdminOpcode::REREG_MR: finish_rereg_mr(n, bus::slot(waiter.fn), reply); break;
    default: break;
  }
}

}  // namespace

uint32_t request_fence() {
  const FenceState now = fence_state();
  ctx_write(CtxColumn::FENCE, 0, 0, 1);
  return now.ended + (now.running ? 2 : 1);
}

bool fence_passed(uint32_t number) {
  return static_cast<int32_t>(fence_state().ended - number) >= 0;
}

bool can_wait(const Call& call) {
  for (unsigned n = 0; n < WAITERS_PER_FN; ++n) {
    if (!state.waiters[call.fn * WAITERS_PER_FN + n].used) return true;
  }
  return false;
}

Outcome wait_for_fence(Call& call) {
  using C = hwif::AdminCommand;
  const auto opcode = call.command().get<C::opcode>();
  Waiter* waiter = &state.waiters[call.fn * WAITERS_PER_FN];
  while (waiter->used) ++waiter;             // there is one: can_wait
  waiter->used = true;
  waiter->fn = static_cast<uint8_t>(call.fn);
  waiter->opcode = opcode;
  waiter->command_id = call.command().get<C::command_id>();
  waiter->object = call.object();
  waiter->fence = request_fence();
  waiter->deadline = bus::clock() + DRAIN_LIMIT;
  ++state.waiting;
  // REREG_MR still needs its input, which is in the slot.
  if (opcode != AdminOpcode::REREG_MR) bus::order(Order::RELEASE, call.fn);
  return Outcome::WAITS;
}

void step_waiters() {
  const uint32_t ended = fence_state().ended;
  const uint64_t now = bus::clock();
  for (Waiter& waiter : state.waiters) {
    if (!waiter.used) continue;
    const bool over = static_cast<int32_t>(ended - waiter.fence) >= 0;
    const bool late = static_cast<int64_t>(now - waiter.deadline) >= 0;
    // FUNCTION_RESET ends with the reset (step_resets), which has its own fences.
    if (waiter.opcode == AdminOpcode::FUNCTION_RESET || !(over || late)) continue;
    Reply reply{};
    reply.object = waiter.object;
    if (over) {
      finish(waiter, reply);
    } else {
      reply.status = AdminStatus::TIMED_OUT;
    }
    waiter.used = false;
    --state.waiting;
    answer(waiter.fn, waiter.opcode, waiter.command_id, reply,
           waiter.opcode == AdminOpcode::REREG_MR);
  }
}

}  // namespace roci::fw
