// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Fences (architecture.md rule 8) and the commands that wait for them.
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
constexpr uint32_t DRAIN_LIMIT = IS_WIDE ? 250'000'000 : 125'000'000;   // one second

struct FenceState {
  bool running;
  uint32_t ended;
};

FenceState fence_state(uint64_t word) {
  return {(word & 1) != 0, static_cast<uint32_t>(word >> 16)};
}
uint32_t fences_ended() { return fence_state(ctx_read(CtxColumn::FENCE, 0)).ended; }

AdminOpcode opcode_of(uint32_t command) { return static_cast<AdminOpcode>(command & 0xff); }
static_assert(hwif::AdminCommand::opcode::AT == 0);

// What is to be done with the command's object after its fence, and the answer.
void finish(unsigned fn, uint32_t command, uint32_t n, Reply& reply, bool release) {
  const auto opcode = opcode_of(command);
  if (opcode == AdminOpcode::DESTROY_QP || opcode == AdminOpcode::MODIFY_QP) {
    const QpRegions had =
        opcode == AdminOpcode::DESTROY_QP ? free_qp(n % QPS) : finish_modify_qp(n % QPS, reply);
    answer(fn, reply, release);
    give_regions(had);             // nobody has to wait for that
    return;
  }
  switch (opcode) {
    case AdminOpcode::DESTROY_CQ: free_cq(n); break;
    case AdminOpcode::DESTROY_EQ: free_eq(n); break;
    case AdminOpcode::DESTROY_SRQ: free_srq(n); break;
    case AdminOpcode::DESTROY_MR: free_mr(n); break;
    default: finish_rereg_mr(n, bus::slot(fn), reply); break;
  }
  answer(fn, reply, release);
}

}  // namespace

uint32_t request_fence() {
  ctx_write(CtxColumn::FENCE, 0, 0, 1);
  const FenceState before = fence_state(bus::ctx_answer());
  return before.ended + (before.running ? 2 : 1);
}

bool fence_passed(uint32_t number) {
  return static_cast<int32_t>(fences_ended() - number) >= 0;
}

bool can_wait(const Call& call) {
  constexpr uint32_t ALL = (1u << WAITERS_PER_FN) - 1;
  return (state.waiting >> (call.fn * WAITERS_PER_FN) & ALL) != ALL;
}

namespace {

uint32_t command_word(Call& call) { return static_cast<uint32_t>(row_word(call.command(), 0)); }

// Takes a waiter for the command. There is one: can_wait.
Waiter& take_waiter(Call& call) {
  const unsigned n = lowest(~state.waiting & (~uint32_t{0} << (call.fn * WAITERS_PER_FN)));
  state.waiting |= 1u << n;
  Waiter& waiter = state.waiters[n];
  waiter.command = command_word(call);
  waiter.object = call.object();
  return waiter;
}

}  // namespace

Outcome wait_for_fence(Call& call) {
  const uint32_t fence = request_fence();
  if (fence_passed(fence)) {
    finish(call.fn, command_word(call), call.object(), call.reply, true);
    return Outcome::WAITS;
  }
  Waiter& waiter = take_waiter(call);
  waiter.fence = fence;
  waiter.deadline = bus::clock() + DRAIN_LIMIT;
  // REREG_MR still needs its input, which is in the slot.
  if (opcode_of(waiter.command) != AdminOpcode::REREG_MR) bus::order(Order::RELEASE, call.fn);
  return Outcome::WAITS;
}

Outcome wait_for_reset(Call& call) {
  const Waiter& waiter = take_waiter(call);
  state.waiting_reset |= 1u << (&waiter - state.waiters);
  bus::order(Order::RELEASE, call.fn);
  return Outcome::WAITS;
}

void step_waiters() {
  const uint32_t ended = fences_ended();
  const uint32_t now = bus::clock();
  for (uint32_t left = state.waiting & ~state.waiting_reset; left != 0; left &= left - 1) {
    const unsigned n = lowest(left);
    const Waiter& waiter = state.waiters[n];
    const bool over = static_cast<int32_t>(ended - waiter.fence) >= 0;
    const bool late = static_cast<int32_t>(now - waiter.deadline) >= 0;
    if (!(over || late)) continue;
    state.waiting &= ~(1u << n);
    const unsigned fn = fn_of_waiter(n);
    Reply& reply = new_reply(waiter.command, waiter.object);
    const bool holds_slot = opcode_of(waiter.command) == AdminOpcode::REREG_MR;
    if (over) {
      finish(fn, waiter.command, waiter.object, reply, holds_slot);
    } else {
      reply.fail(AdminStatus::TIMED_OUT, AdminField::NONE, 0);
      answer(fn, reply, holds_slot);
    }
  }
}

}  // namespace roci::fw
