// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Firmware and fake hardware together, and commands with good parameters to start from.
#pragma once

#include <catch2/catch.hpp>

#include <array>
#include <cstring>
#include <string>

#include "call.hpp"
#include "fake_hardware.hpp"
#include "roci_hwif_names.hpp"

namespace roci::test {

using hwif::AdminCompletion;
using hwif::AdminField;
using hwif::AdminOpcode;
using hwif::AdminStatus;
using hwif::CtxColumn;
using hwif::QpState;
namespace admin = hwif::admin;

inline constexpr std::uint64_t OUTPUT_ADDRESS = 0x7000'0000;

/// What a command answered.
struct Answer {
  AdminStatus status;
  AdminField field;
  std::uint32_t detail;
  std::uint32_t object;
  std::uint64_t result;
  bool ok() const { return status == AdminStatus::OK; }
};

/// The firmware after boot, with the admin queues of some functions enabled.
struct Rig {
  FakeHardware hw;
  std::uint16_t next_id = 1;

  explicit Rig(unsigned functions = fw::FNS) {
    fw::state = fw::State{};
    REQUIRE(fw::boot());
    for (unsigned fn = 0; fn < functions; ++fn) hw.enable(fn);
  }

  /// One turn of the firmware's loop.
  void step() {
    hw.tick();
    REQUIRE(fw::step(fw::bus::status()));
  }
  void steps(unsigned count) {
    for (unsigned n = 0; n < count; ++n) step();
  }

  /// A command of type C.
  template <class C>
  Command command(std::uint32_t object = 0) {
    using A = hwif::AdminCommand;
    Command out;
    out.command.set<A::opcode>(C::OPCODE);
    out.command.set<A::command_id>(next_id++);
    out.command.set<A::object>(object);
    if constexpr (!std::is_void_v<typename C::Input>) {
      out.command.set<A::input_address>(0x1000);
      out.command.set<A::input_length>(C::Input::BYTES);
      out.input.resize(C::Input::BYTES);
    }
    if constexpr (!std::is_void_v<typename C::Output>) {
      out.command.set<A::output_address>(OUTPUT_ADDRESS);
      out.command.set<A::output_length>(C::Output::BYTES);
    }
    return out;
  }
  /// … with parameters.
  template <class C>
  Command command(std::uint32_t object, const typename C::Params& params) {
    Command out = command<C>(object);
    std::memcpy(out.command.data() + hwif::AdminCommand::params::AT / 8, params.data(), 32);
    return out;
  }
  template <class C>
  static void set_input(Command& command, const typename C::Input& input) {
    std::memcpy(command.input.data(), input.data(), C::Input::BYTES);
  }

  /// The next completion of a function, if there is one now.
  bool take(unsigned fn, Answer& answer, std::uint16_t* id = nullptr) {
    auto& queue = hw.completions(fn);
    if (queue.empty()) return false;
    using A = AdminCompletion;
    const A c = queue.front();
    queue.pop_front();
    answer.status = c.get<A::status>();
    answer.field = c.get<A::field>();
    answer.detail = c.get<A::detail>();
    answer.object = c.get<A::object>();
    std::memcpy(&answer.result, c.data() + 16, 8);
    if (id) *id = c.get<A::command_id>();
    return true;
  }
  /// Posts a command and runs the firmware until it is answered.
  Answer run(unsigned fn, const Command& command, unsigned limit = 200) {
    hw.post(fn, command);
    Answer answer{};
    std::uint16_t id = 0;
    for (unsigned n = 0; !take(fn, answer, &id); ++n) {
      REQUIRE(n < limit);
      step();
    }
    REQUIRE(id == command.command.get<hwif::AdminCommand::command_id>());
    return answer;
  }
  template <class C>
  Answer run(unsigned fn, std::uint32_t object = 0) {
    return run(fn, command<C>(object));
  }
  template <class C>
  Answer run(unsigned fn, std::uint32_t object, const typename C::Params& params) {
    return run(fn, command<C>(object, params));
  }
  /// Runs a command that must succeed; its object.
  template <class C, class... Args>
  std::uint32_t make(unsigned fn, Args&&... args) {
    const Answer answer = run<C>(fn, std::forward<Args>(args)...);
    INFO(to_string(C::OPCODE) << " refused: " << to_string(answer.status) << ", field "
                              << to_string(answer.field));
    REQUIRE(answer.ok());
    return answer.object;
  }
  /// Runs a command that must be refused so, and must not have changed a context.
  template <class C>
  Answer refused(unsigned fn, const Command& command, AdminStatus status,
                 AdminField field = AdminField::NONE) {
    const std::uint64_t before = hw.context_writes;
    const Answer answer = run(fn, command);
    INFO(to_string(C::OPCODE) << ": " << to_string(answer.status) << ", field "
                              << to_string(answer.field));
    REQUIRE(answer.status == status);
    REQUIRE(answer.field == field);
    REQUIRE(hw.context_writes == before);
    return answer;
  }
  template <class C>
  Answer refused(unsigned fn, std::uint32_t object, const typename C::Params& params,
                 AdminStatus status, AdminField field = AdminField::NONE) {
    return refused<C>(fn, command<C>(object, params), status, field);
  }

  /// The output of the last command.
  template <class Output>
  Output output(unsigned fn, std::uint64_t address = OUTPUT_ADDRESS) {
    Output out{};
    for (unsigned n = 0; n < Output::BYTES; ++n) {
      INFO("output byte " << n << " was not written");
      REQUIRE(hw.memory(fn).count(address + n) == 1);
      out.data()[n] = hw.memory(fn).at(address + n);
    }
    return out;
  }

  // ---- good parameters ------------------------------------------------------------------------
  static hwif::CreateEqParams eq_params() {
    using P = hwif::CreateEqParams;
    P p{};
    p.set<P::ring_address>(0x10'0000);
    p.set<P::ring_log2>(8);
    p.set<P::doorbell_page>(3);
    p.set<P::irq_vector>(2);
    return p;
  }
  static hwif::CreateCqParams cq_params(std::uint32_t eqn) {
    using P = hwif::CreateCqParams;
    P p{};
    p.set<P::ring_address>(0x20'0000);
    p.set<P::eqn>(eqn);
    p.set<P::ring_log2>(6);
    p.set<P::doorbell_page>(4);
    return p;
  }
  static hwif::CreateMrParams mr_params() {
    using P = hwif::CreateMrParams;
    using R = hwif::AccessRights;
    P p{};
    p.set<P::iova>(0x5000'0123);
    p.set<P::length>(10000);
    p.set<P::table_address>(0x30'0040);
    p.set<P::first_byte_offset>(0x123);
    p.set<P::page_shift>(12);
    R rights{};
    rights.set<R::local_write>(true);
    rights.set<R::remote_write>(true);
    rights.set<R::remote_read>(true);
    p.set<P::rights>(rights);
    return p;
  }
  static hwif::CreateSrqParams srq_params() {
    using P = hwif::CreateSrqParams;
    P p{};
    p.set<P::ring_address>(0x40'0000);
    p.set<P::ring_log2>(7);
    p.set<P::stride_code>(1);
    p.set<P::doorbell_page>(5);
    return p;
  }
  static hwif::CreateQpParams qp_params(std::uint32_t send_cqn, std::uint32_t recv_cqn,
                                        hwif::QpType type = hwif::QpType::RC) {
    using P = hwif::CreateQpParams;
    P p{};
    p.set<P::sq_ring_address>(0x50'0000);
    p.set<P::rq_ring_address>(0x60'0000);
    p.set<P::send_cqn>(send_cqn);
    p.set<P::recv_cqn>(recv_cqn);
    p.set<P::qp_type>(type);
    p.set<P::doorbell_page>(6);
    p.set<P::sq_ring_log2>(8);
    p.set<P::rq_ring_log2>(6);
    p.set<P::rq_stride_code>(1);
    return p;
  }
  static hwif::QpAttributes attributes() {
    using A = hwif::QpAttributes;
    using V = hwif::AddressVector;
    using R = hwif::AccessRights;
    V v{};
    v.set<V::dgid>({{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0x56, 0xff, 0xfe, 0x78, 0x9a, 0xbc}});
    v.set<V::dmac>({{0x02, 0x34, 0x56, 0x78, 0x9a, 0xbc}});
    v.set<V::hop_limit>(64);
    v.set<V::traffic_class>(0x21);
    v.set<V::flow_label>(0xabcde);
    v.set<V::sl>(5);
    v.set<V::vlan_id>(0x123);
    v.set<V::vlan_present>(true);
    R rights{};
    rights.set<R::local_write>(true);
    rights.set<R::remote_write>(true);
    rights.set<R::remote_read>(true);
    A a{};
    a.set<A::rights>(rights);
    a.set<A::path_mtu>(hwif::Mtu::MTU_1024);
    a.set<A::timeout>(14);
    a.set<A::retry_count>(7);
    a.set<A::rnr_retry>(6);
    a.set<A::min_rnr_timer>(12);
    a.set<A::initiator_depth>(4);
    a.set<A::responder_depth>(3);
    a.set<A::port>(1);
    a.set<A::dest_qpn>(0x112233);
    a.set<A::sq_psn>(0xfffffe);
    a.set<A::rq_psn>(0x000000);
    a.set<A::path>(v);
    return a;
  }

  Answer modify(unsigned fn, std::uint32_t qpn, std::uint32_t mask, const hwif::QpAttributes& a) {
    return run(fn, modify_command(qpn, mask, a));
  }
  Command modify_command(std::uint32_t qpn, std::uint32_t mask, const hwif::QpAttributes& a) {
    using I = hwif::ModifyQpInput;
    I input{};
    input.words[0] = mask;
    input.set<I::attributes>(a);
    Command out = command<admin::ModifyQp>(qpn);
    set_input<admin::ModifyQp>(out, input);
    return out;
  }
};

/// Bits of the attribute mask that each step of the way to RTS needs.
inline constexpr std::uint32_t MASK_STATE = 1u << 0, MASK_CUR = 1u << 1, MASK_NOTIFY = 1u << 2,
                               MASK_RIGHTS = 1u << 3, MASK_PKEY = 1u << 4, MASK_PORT = 1u << 5,
                               MASK_QKEY = 1u << 6, MASK_PATH = 1u << 7, MASK_MTU = 1u << 8,
                               MASK_TIMEOUT = 1u << 9, MASK_RETRY = 1u << 10, MASK_RNR = 1u << 11,
                               MASK_RQ_PSN = 1u << 12, MASK_INITIATOR = 1u << 13,
                               MASK_MIN_RNR = 1u << 15, MASK_SQ_PSN = 1u << 16,
                               MASK_RESPONDER = 1u << 17, MASK_DEST = 1u << 20;
inline constexpr std::uint32_t TO_INIT = MASK_STATE | MASK_PKEY | MASK_PORT | MASK_RIGHTS;
inline constexpr std::uint32_t TO_RTR = MASK_STATE | MASK_PATH | MASK_MTU | MASK_DEST |
                                        MASK_RQ_PSN | MASK_RESPONDER | MASK_MIN_RNR;
inline constexpr std::uint32_t TO_RTS =
    MASK_STATE | MASK_TIMEOUT | MASK_RETRY | MASK_RNR | MASK_SQ_PSN | MASK_INITIATOR;

/// What a step to this state on the way to RTS needs of each type.
inline std::uint32_t step_mask(hwif::QpType type, QpState to) {
  using T = hwif::QpType;
  const bool is_rc = type == T::RC;
  const bool is_connected = is_rc || type == T::UC;
  switch (to) {
    case QpState::INIT:
      return MASK_STATE | MASK_PKEY | (type == T::GSI ? 0 : MASK_PORT) |
             (is_connected ? MASK_RIGHTS : MASK_QKEY);
    case QpState::RTR:
      return is_rc          ? TO_RTR
             : is_connected ? MASK_STATE | MASK_PATH | MASK_MTU | MASK_DEST | MASK_RQ_PSN
                            : MASK_STATE;
    default: return is_rc ? TO_RTS : MASK_STATE | MASK_SQ_PSN;
  }
}

/// Q_Key that tests give to UD queue pairs; GSI has its own.
inline constexpr std::uint32_t QKEY = 0x1234'5678;

/// A function with one of everything.
struct Objects {
  std::uint32_t pd, eq, cq, cq2, qp;
  static Objects make(Rig& rig, unsigned fn) {
    Objects o{};
    o.pd = rig.make<admin::CreatePd>(fn);
    o.eq = rig.make<admin::CreateEq>(fn, 0u, Rig::eq_params());
    o.cq = rig.make<admin::CreateCq>(fn, 0u, Rig::cq_params(o.eq));
    o.cq2 = rig.make<admin::CreateCq>(fn, 0u, Rig::cq_params(o.eq));
    o.qp = rig.make<admin::CreateQp>(fn, o.pd, Rig::qp_params(o.cq, o.cq2));
    return o;
  }
};

/// Moves a queue pair from RESET to `state` on the normal way.
inline void bring(Rig& rig, unsigned fn, std::uint32_t qpn, QpState state,
                  hwif::QpType type = hwif::QpType::RC) {
  using A = hwif::QpAttributes;
  A a = Rig::attributes();
  a.set<A::qkey>(type == hwif::QpType::GSI ? hwif::QKEY_GSI : QKEY);
  for (const QpState to : {QpState::INIT, QpState::RTR, QpState::RTS}) {
    a.set<A::state>(to);
    const Answer answer = rig.modify(fn, qpn, step_mask(type, to), a);
    INFO("to " << to_string(to) << ": " << to_string(answer.status) << " "
               << to_string(answer.field));
    REQUIRE(answer.ok());
    if (to == state) return;
  }
  a.set<A::state>(state);
  REQUIRE(rig.modify(fn, qpn, MASK_STATE, a).ok());
}

}  // namespace roci::test
