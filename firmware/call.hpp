// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A command on its way through the firmware: what it is, and the answer that is being made.
//
// Commands are checked by the table in admin.cpp first (known, permitted, lengths, input there), then
// by their handler, which changes nothing before all of its checks are good. A handler never waits: what
// takes time becomes a Waiter, an Output, or the command is looked at again later.
#pragma once

#include "context.hpp"
#include "state.hpp"

namespace roci::fw {

using hwif::AdminField;
using hwif::AdminOpcode;
using hwif::AdminStatus;
using hwif::CtxColumn;

/// What a handler did.
enum class Outcome : uint8_t {
  DONE,                            // the reply is made
  WAITS,                           // a Waiter will answer, or it is answered already
  LATER,                           // no room just now: run it again
  OUTPUT,                          // the output buffer is being written, then it is answered
};

/// The answer, as the host gets it; the phase bit is the engine's.
class Reply {
  using A = hwif::AdminCompletion;
  using C = hwif::AdminCommand;

 public:
  /// What it is at first: all is well with this object.
  /// @param command  low half of the first word of the command: opcode, command_id
  void begin(uint32_t command, uint32_t object) {
    static_assert(A::opcode::AT == 24 && A::command_id::AT == 0 && A::object::AT == 32 &&
                  C::opcode::AT == 0 && C::command_id::AT == 16);
    set_row_word(image_, 0, uint64_t{object} << 32 | (command << 24 | command >> 16));
    set_row_word(image_, 1, 0);
    set_row_word(image_, 2, 0);                // the last word stays zero
  }
  /// Not well.
  [[gnu::noinline]] void fail(AdminStatus status, AdminField field, uint32_t detail) {
    image_.set<A::status>(status);
    image_.set<A::field>(field);
    image_.set<A::detail>(detail);
  }
  void set_object(uint32_t object) { image_.set<A::object>(object); }
  void set_result(uint64_t result) { set_row_word(image_, A::result::AT / 64, result); }
  bool failed() const { return image_.get<A::status>() != AdminStatus::OK; }
  const A& image() const { return image_; }

 private:
  alignas(8) A image_;
};

/// A command.
struct Call {
  unsigned fn;
  Slot& slot;
  bool has_input;
  Reply& reply;

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
  [[gnu::noinline]] Outcome fail(AdminStatus status, AdminField field = AdminField::NONE,
                                 uint32_t detail = 0) {
    reply.fail(status, field, detail);
    return Outcome::DONE;
  }
  /// A field has an illegal value; `largest`: the largest (or only) one accepted.
  Outcome invalid(AdminField field, uint32_t largest = 0) {
    return fail(AdminStatus::INVALID, field, largest);
  }
  Outcome done() { return Outcome::DONE; }
  /// Done; the completion names the created object.
  Outcome created(uint32_t object) {
    reply.set_object(object);
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
  // Both bytes at once; LIVE and BUSY differ in one bit.
  static_assert(offsetof(Object, fn) == 0 && offsetof(Object, life) == 1 &&
                (static_cast<unsigned>(Life::LIVE) | 2u) == static_cast<unsigned>(Life::BUSY));
  using Both [[gnu::may_alias]] = uint16_t;
  Object& object = table[number];
  const unsigned wanted = static_cast<unsigned>(Life::LIVE) << 8 | fn;
  const unsigned both = *reinterpret_cast<const Both*>(&object);
  return ((both ^ wanted) & ~0x200u) == 0 ? &object : nullptr;
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
/// A fence begins now, behind what was revoked. If it is over at once, as it is while the data path is
/// at rest, the command is finished and answered; else it waits.
Outcome wait_for_fence(Call& call);
/// As wait_for_fence, for the end of a function's reset: step_resets answers.
Outcome wait_for_reset(Call& call);
/// Asks for a fence; the number at which it is over (see fence_passed).
uint32_t request_fence();
/// Whether the fence of this number is over.
bool fence_passed(uint32_t number);

/// A new answer; it has to be sent or forgotten before the next one is begun.
Reply& new_reply(uint32_t command, uint32_t object);
/// Sends it to `fn`. With `release` the next command of the function may come.
void answer(unsigned fn, const Reply& reply, bool release);

/// Writes `bytes` from `data` (a multiple of 8; it must not change until then) to the command's output
/// buffer and answers it then. Only if nothing is being written (state.output): else return LATER.
Outcome write_output(Call& call, const void* data, uint32_t bytes);
/// The common output buffer (OUTPUT_BYTES, old contents) as output Q, if nobody uses it, else nullptr:
/// return LATER.
void* output_buffer();
inline constexpr unsigned OUTPUT_BYTES = IS_WIDE ? 496 : 192;
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
/// Gives back those regions that were granted beyond the queue pair's own ones.
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
/// The rest of MODIFY_QP (to RESET, or from SQE to RTS) and of REREG_MR behind their fences. Regions: to
/// be given back then.
QpRegions finish_modify_qp(unsigned index, Reply& reply);
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
/// What the hardware wants (bits of Status). If the next turn would have nothing else to do: waits until
/// there is something, or it is time to look at the link.
uint32_t rest();
/// One turn of the main loop: does what there is to do, waits for nothing. False: FAILED.
/// @param status  of just now
bool step(uint32_t status);
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
