// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A command on its way through the firmware: what it is, and the answer that is being made.
//
// Commands are checked by the table in admin.cpp first (known, permitted, lengths, input there), then
// by their handler, which changes nothing before all of its checks are good. A handler never waits: what
// takes time becomes a Waiter, an Output, or the command is looked at again later.
#pragma once

#include "state.hpp"

namespace roci::fw {

using hwif::AdminField;
using hwif::AdminOpcode;
using hwif::AdminStatus;
using hwif::CtxColumn;

/// What a handler did.
enum class Outcome : uint8_t {
  DONE,                            // the reply is made
  WAITS,                           // a Waiter will answer
  LATER,                           // no room just now: run it again
  OUTPUT,                          // the output buffer is being written, then it is answered
};

/// The answer; at first that all is well with this object.
struct Reply {
  AdminStatus status = AdminStatus::OK;
  AdminField field = AdminField::NONE;
  uint32_t detail = 0;
  uint32_t object;
  uint64_t result = 0;

  explicit Reply(uint32_t of) : object(of) {}
};

/// A command.
struct Call {
  unsigned fn;
  Slot& slot;
  bool has_input;
  Reply reply;

  hwif::AdminCommand& command() { return slot.command; }
  uint32_t object() const { return slot.command.get<hwif::AdminCommand::object>(); }
  Function& function() { return state.fns[fn]; }

  /// Inline parameters of command C, where they are.
  template <class C>
  const typename C::Params& params() const {
    return *reinterpret_cast<const typename C::Params*>(slot.command.data() +
                                                        hwif::AdminCommand::params::AT / 8);
  }
  /// Input buffer of command C, where it is.
  template <class C>
  const typename C::Input& input() const {
    return *reinterpret_cast<const typename C::Input*>(slot.input);
  }

  /// Refuses the command.
  Outcome fail(AdminStatus status, AdminField field = AdminField::NONE, uint32_t detail = 0) {
    reply.status = status;
    reply.field = field;
    reply.detail = detail;
    return Outcome::DONE;
  }
  /// A field has an illegal value; `largest`: the largest (or only) one accepted.
  Outcome invalid(AdminField field, uint32_t largest = 0) {
    return fail(AdminStatus::INVALID, field, largest);
  }
  Outcome done() { return Outcome::DONE; }
  /// Done; the completion names the created object.
  Outcome created(uint32_t object) {
    reply.object = object;
    return Outcome::DONE;
  }
};

/// The layout in field F of `layout`, where it is: no copy.
template <class F, class L>
const typename F::Type& part(const L& layout) {
  static_assert(F::KIND == hwif::detail::Kind::LAYOUT && F::AT / 8 % alignof(typename F::Type) == 0);
  return *reinterpret_cast<const typename F::Type*>(layout.data() + F::AT / 8);
}
template <class F, class L>
typename F::Type& part(L& layout) {
  static_assert(F::KIND == hwif::detail::Kind::LAYOUT && F::AT / 8 % alignof(typename F::Type) == 0);
  return *reinterpret_cast<typename F::Type*>(layout.data() + F::AT / 8);
}

/// Whether there is an entry `index` (< GIDS) in the GID table.
inline bool gid_is_set(unsigned index) {
  return state.gids[index].get<hwif::GidEntry::gid_type>() != hwif::GidType::NONE;
}

/// Whether the function may have one more of this kind.
inline bool quota_left(const Function& f, Kind kind) {
  return f.quotas[kind] == 0 || f.counts[kind] < f.quotas[kind];
}

/// The object `number` of `table` if it is a live one of this function, else nullptr; a busy one too.
template <size_t N>
Object* find(Object (&table)[N], uint32_t number, unsigned fn) {
  if (number >= N) return nullptr;
  Object& object = table[number];
  const bool there = object.life == Life::LIVE || object.life == Life::BUSY;
  return there && object.fn == fn ? &object : nullptr;
}

/// As find, for queue pairs by their full number.
inline Qp* find_qp(uint32_t number, unsigned fn) {
  Qp& qp = state.qps[number % QPS];
  const bool there = qp.life == Life::LIVE || qp.life == Life::BUSY;
  return there && qp.number == number && qp.fn == fn ? &qp : nullptr;
}
inline unsigned index_of(const Qp& qp) { return qp.number % QPS; }

// ---- parts that commands use ------------------------------------------------------------------

/// Whether the function may have one more waiting command: asked before anything is revoked. If not,
/// return LATER.
bool can_wait(const Call& call);
/// Registers the command as waiting for a fence that begins now, behind what was revoked.
Outcome wait_for_fence(Call& call);
/// As wait_for_fence, for the end of a function's reset: step_resets answers.
Outcome wait_for_reset(Call& call);
/// Asks for a fence; the number at which it is over (see fence_passed).
uint32_t request_fence();
/// Whether the fence of this number is over.
bool fence_passed(uint32_t number);

/// Answers a command of `fn`. With `release` the next one of the function may come.
void answer(unsigned fn, AdminOpcode opcode, uint16_t command_id, const Reply& reply, bool release);

/// Writes `bytes` from `data` (a multiple of 8; it must not change until then) to the command's output
/// buffer and answers it then. Only if nothing is being written (state.output): else return LATER.
Outcome write_output(Call& call, const void* data, uint32_t bytes);
/// The common output buffer (OUTPUT_BYTES, old contents) as output Q, if nobody uses it, else nullptr:
/// return LATER.
void* output_buffer();
inline constexpr unsigned OUTPUT_BYTES = IS_WIDE ? 248 : 192;
template <class Q>
Q* output() {
  static_assert(Q::BYTES <= OUTPUT_BYTES);
  return static_cast<Q*>(output_buffer());
}
/// As output, with the first Q::BYTES bytes (a multiple of 16) cleared.
void* cleared_output_buffer(uint32_t bytes);
template <class Q>
Q* cleared_output() {
  static_assert(Q::BYTES % 16 == 0 && Q::BYTES <= OUTPUT_BYTES);
  return static_cast<Q*>(cleared_output_buffer(Q::BYTES));
}
/// Writes the counters first … first + count - 1, in as many pieces as needed.
Outcome write_counters(Call& call, uint32_t first, uint32_t count);

/// Marks an event for a function, if it can have one.
void tell(unsigned fn, uint32_t pending);
/// Marks an event for every function that can have one.
void tell_all(uint32_t pending);

// ---- what a fence ends: called when it is over --------------------------------------------------

/// Takes an object out of the data path; frees nothing. Allowed again while it is dying.
void revoke_qp(unsigned index);
void revoke_cq(unsigned index);
void revoke_eq(unsigned index);
void revoke_srq(unsigned index);
void revoke_mr(unsigned index);
/// Regions of a queue pair.
struct QpRegions {
  Region inflight;
  Region read;
  Region replay;
};
/// Gives back those that were granted beyond the queue pair's own ones.
void give_regions(const QpRegions& regions);
/// Frees a revoked object: nothing granted is outstanding any more. Regions: to be given back then.
QpRegions free_qp(unsigned index);
void free_cq(unsigned index);
void free_eq(unsigned index);
void free_srq(unsigned index);
void free_mr(unsigned index);
void free_pd(unsigned index);
/// The queue pair does not use its entry of the P_Key table any more.
void release_pkey(Qp& qp);
/// The rest of MODIFY_QP to RESET and of REREG_MR behind their fences. Regions: to be given back then.
QpRegions finish_qp_reset(unsigned index);
void finish_rereg_mr(unsigned index, Slot& slot, Reply& reply);

// ---- command handlers, by file in commands/ -----------------------------------------------------

Outcome nop(Call&);
Outcome query_device(Call&);
Outcome set_function(Call&);
Outcome query_function(Call&);
Outcome function_reset(Call&);
Outcome create_pd(Call&);
Outcome destroy_pd(Call&);
Outcome create_mr(Call&);
Outcome rereg_mr(Call&);
Outcome destroy_mr(Call&);
Outcome query_mr(Call&);
Outcome create_eq(Call&);
Outcome destroy_eq(Call&);
Outcome create_cq(Call&);
Outcome destroy_cq(Call&);
Outcome query_cq(Call&);
Outcome create_srq(Call&);
Outcome query_srq(Call&);
Outcome destroy_srq(Call&);
Outcome create_qp(Call&);
Outcome modify_qp(Call&);
Outcome query_qp(Call&);
Outcome destroy_qp(Call&);
Outcome set_gid(Call&);
Outcome del_gid(Call&);
Outcome query_gid(Call&);
Outcome set_pkey(Call&);
Outcome query_pkey(Call&);
Outcome query_port(Call&);
Outcome modify_port(Call&);
Outcome query_counters(Call&);

// ---- main loop ----------------------------------------------------------------------------------

/// Makes the tables and tells the host READY, or FAILED: then it returns false.
bool boot();
/// One turn of the main loop: does what there is to do, waits for nothing. False: FAILED.
bool step();
/// Parts of step().
void step_waiters();
void step_resets();
void step_output();
void step_port();
void step_link();
void step_events();
void step_errors(uint32_t status);
void run_command(const NextCommand& next);
void run_held();
/// Sets up ports' tables at boot.
void boot_port();

}  // namespace roci::fw
