// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Boot; what is checked for every command; NOP, QUERY_DEVICE, functions, protection domains.
#include <functional>
#include <map>

#include "guid.hpp"
#include "rig.hpp"

using namespace roci::test;
namespace hwif = roci::hwif;
namespace fw = roci::fw;

namespace {

hwif::CtxCsr csr(const FakeHardware& hw) { return hw.row<hwif::CtxCsr>(CtxColumn::CSR, 0); }

}  // namespace

TEST_CASE("boot tells READY, and the port has its addresses") {
  Rig rig;
  using C = hwif::CtxCsr;
  REQUIRE(csr(rig.hw).get<C::state>() == hwif::FirmwareState::READY);
  REQUIRE(csr(rig.hw).get<C::fault>() == hwif::FirmwareFault::NONE);
  REQUIRE(csr(rig.hw).get<C::firmware_hash>() == hwif::HWIF_HASH);
  REQUIRE(rig.hw.context(CtxColumn::PORT, 0, 0) == 0x020000000001);
  // fe80::ff:fe00:1, EUI-64 of 02:00:00:00:00:01 (RFC 4291 appendix A)
  REQUIRE(rig.hw.context(CtxColumn::GID, 0, 1) == 0xfe80000000000000);
  REQUIRE(rig.hw.context(CtxColumn::GID, 0, 0) == 0x000000fffe000001);
  REQUIRE(rig.hw.context(CtxColumn::GID, 0, 2) == 1);
  REQUIRE(rig.hw.context(CtxColumn::GID, 1, 2) == 0);
  REQUIRE(rig.hw.context(CtxColumn::TUNING, 0, 0) == 18);
  for (unsigned n = 0; n < fw::QPS; ++n) REQUIRE(rig.hw.qp_state(n) == QpState::RESET);
}

TEST_CASE("boot refuses another configuration and a bus without answer") {
  for (unsigned n = 0; n < 4; ++n) {
    FakeHardware hw;
    hw.config[n] ^= 1;
    fw::state = fw::State{};
    REQUIRE_FALSE(fw::boot());
    REQUIRE(csr(hw).get<hwif::CtxCsr::state>() == hwif::FirmwareState::FAILED);
    REQUIRE(csr(hw).get<hwif::CtxCsr::fault>() == hwif::FirmwareFault::CONFIG);
  }
  FakeHardware hw;
  hw.deaf_column = static_cast<int>(CtxColumn::GID);
  fw::state = fw::State{};
  REQUIRE_FALSE(fw::boot());
  REQUIRE(csr(hw).get<hwif::CtxCsr::fault>() == hwif::FirmwareFault::CONTEXT_BUS);
}

TEST_CASE("a context bus that stops answering stops the firmware") {
  Rig rig;
  rig.hw.deaf_column = static_cast<int>(CtxColumn::CQ);
  const auto eq = rig.make<admin::CreateEq>(1, 0u, Rig::eq_params());
  rig.hw.post(1, rig.command<admin::CreateCq>(0, Rig::cq_params(eq)));
  rig.hw.tick();
  REQUIRE_FALSE(fw::step(fw::bus::status()));
  REQUIRE(csr(rig.hw).get<hwif::CtxCsr::state>() == hwif::FirmwareState::FAILED);
  REQUIRE(csr(rig.hw).get<hwif::CtxCsr::fault>() == hwif::FirmwareFault::CONTEXT_BUS);
}

TEST_CASE("an image that is started again cleans up after the one before") {
  Rig rig;
  const Objects old = Objects::make(rig, 2);
  bring(rig, 2, old.qp, QpState::RTS);
  const auto mr = rig.make<admin::CreateMr>(2, old.pd, Rig::mr_params());
  // held, started: the state of the firmware is gone, hardware keeps its tables
  rig.hw.set_context(CtxColumn::CSR, 0, 5,
                     static_cast<std::uint64_t>(hwif::FirmwareState::BOOTING));
  fw::state = fw::State{};
  rig.hw.self_ticking = true;
  REQUIRE(fw::boot());
  rig.hw.self_ticking = false;
  REQUIRE(rig.hw.qp_state(old.qp % fw::QPS) == QpState::RESET);
  using D = hwif::CtxQpDb;
  const auto bell = rig.hw.row<D>(CtxColumn::QP_DB, old.qp % fw::QPS);
  REQUIRE_FALSE(bell.get<D::takes_send>());
  REQUIRE_FALSE(bell.get<D::takes_receive>());
  using M = hwif::MptEntry;
  REQUIRE(rig.hw.row<M>(CtxColumn::MPT, mr).get<M::state>() == hwif::MrState::INVALID);
  REQUIRE_FALSE(rig.hw.row<hwif::CtxCq>(CtxColumn::CQ, old.cq).get<hwif::CtxCq::valid>());
  REQUIRE_FALSE(rig.hw.row<hwif::CtxEq>(CtxColumn::EQ, old.eq).get<hwif::CtxEq::valid>());
  // every host has to begin afresh
  rig.steps(400);
  REQUIRE(rig.hw.enabled() == 0);
  REQUIRE(rig.hw.resetting() == 0);
  for (unsigned fn = 0; fn < fw::FNS; ++fn) rig.hw.enable(fn);
  const Objects now = Objects::make(rig, 2);
  REQUIRE(now.qp % fw::QPS == old.qp % fw::QPS);
  REQUIRE(now.qp != old.qp);                        // another incarnation
}

TEST_CASE("every command is checked before its handler sees it") {
  Rig rig;
  using A = hwif::AdminCommand;
  // opcodes: unknown ones, and those of features that this build does not have
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    Command c = rig.command<admin::Nop>();
    c.command.set<A::opcode>(static_cast<AdminOpcode>(opcode));
    const Answer answer = rig.run(1, c);
    switch (static_cast<AdminOpcode>(opcode)) {
      case AdminOpcode::NOP: REQUIRE(answer.ok()); break;
      case AdminOpcode::CREATE_FRMR:
      case AdminOpcode::CREATE_MW:
      case AdminOpcode::DESTROY_MW:
      case AdminOpcode::RESIZE_CQ:
      case AdminOpcode::MODIFY_SRQ:
      case AdminOpcode::ATTACH_MULTICAST:
      case AdminOpcode::DETACH_MULTICAST:
        REQUIRE(answer.status == AdminStatus::UNSUPPORTED);
        break;
      default: {
        INFO("opcode " << opcode);
        const bool known = std::string(to_string(static_cast<AdminOpcode>(opcode))) != "?";
        REQUIRE((answer.status == AdminStatus::UNSUPPORTED) == !known);
        REQUIRE((known || answer.field == AdminField::OPCODE));
        break;
      }
    }
  }
  // management commands from others
  for (const AdminOpcode opcode :
       {AdminOpcode::SET_FUNCTION, AdminOpcode::QUERY_FUNCTION, AdminOpcode::FUNCTION_RESET,
        AdminOpcode::SET_GID, AdminOpcode::DEL_GID, AdminOpcode::SET_PKEY,
        AdminOpcode::MODIFY_PORT}) {
    Command c = rig.command<admin::Nop>();
    c.command.set<A::opcode>(opcode);
    rig.refused<admin::Nop>(1, c, AdminStatus::NOT_PERMITTED);
  }
  // lengths
  const Objects o = Objects::make(rig, 1);
  Command c = rig.modify_command(o.qp, TO_INIT, Rig::attributes());
  for (const std::uint32_t bad : {0u, 120u, 136u, 1u, 0xffffffffu}) {
    Command d = c;
    d.command.set<A::input_length>(bad);
    const Answer answer =
        rig.refused<admin::ModifyQp>(1, d, AdminStatus::BAD_LENGTH, AdminField::INPUT_LENGTH);
    REQUIRE(answer.detail == 128);
  }
  Command unreadable = c;
  unreadable.input_unreadable = true;
  rig.refused<admin::ModifyQp>(1, unreadable, AdminStatus::BAD_ADDRESS,
                               AdminField::INPUT_ADDRESS);
  Command misaligned = c;
  misaligned.command.set<A::input_address>(0x1004);
  rig.refused<admin::ModifyQp>(1, misaligned, AdminStatus::INVALID, AdminField::INPUT_ADDRESS);
  Command nop = rig.command<admin::Nop>();
  nop.command.set<A::input_length>(8);
  rig.refused<admin::Nop>(1, nop, AdminStatus::BAD_LENGTH, AdminField::INPUT_LENGTH);
  nop = rig.command<admin::Nop>();
  nop.command.set<A::output_length>(8);
  rig.refused<admin::Nop>(1, nop, AdminStatus::BAD_LENGTH, AdminField::OUTPUT_LENGTH);
  Command query = rig.command<admin::QueryDevice>();
  for (const std::uint32_t bad : {0u, 120u, 136u}) {
    query.command.set<A::output_length>(bad);
    rig.refused<admin::QueryDevice>(1, query, AdminStatus::BAD_LENGTH, AdminField::OUTPUT_LENGTH);
  }
  query = rig.command<admin::QueryDevice>();
  query.command.set<A::output_address>(OUTPUT_ADDRESS + 4);
  rig.refused<admin::QueryDevice>(1, query, AdminStatus::INVALID, AdminField::OUTPUT_ADDRESS);
  Command gids = rig.command<admin::QueryGid>();
  for (const std::uint32_t bad : {0u, 8u, 40u}) {
    gids.command.set<A::output_length>(bad);
    rig.refused<admin::QueryGid>(1, gids, AdminStatus::BAD_LENGTH, AdminField::OUTPUT_LENGTH);
  }
  // an output that cannot be written
  rig.hw.unwritable.insert(1);
  rig.refused<admin::QueryDevice>(1, rig.command<admin::QueryDevice>(), AdminStatus::BAD_ADDRESS,
                                  AdminField::OUTPUT_ADDRESS);
  rig.hw.unwritable.clear();
  REQUIRE(rig.run<admin::QueryDevice>(1).ok());
}

TEST_CASE("QUERY_DEVICE tells what the function may use") {
  Rig rig;
  using Q = hwif::QueryDeviceOutput;
  REQUIRE(rig.run<admin::QueryDevice>(0).ok());
  Q q = rig.output<Q>(0);
  const roci::hwif::ByteArray<8> guid = {{0x00, 0, 0, 0xff, 0xfe, 0, 0, 1}};
  REQUIRE(q.get<Q::node_guid>() == guid);
  REQUIRE(q.get<Q::system_image_guid>() == guid);
  REQUIRE(q.get<Q::firmware_hash>() == hwif::HWIF_HASH);
  REQUIRE(q.get<Q::privileged>());
  REQUIRE(q.get<Q::max_qps>() == fw::QPS - 2);         // QP0 and QP1 are nobody's
  REQUIRE(q.get<Q::max_cqs>() == fw::CQS);
  REQUIRE(q.get<Q::max_eqs>() == fw::EQS - (fw::FNS - 1));
  REQUIRE(q.get<Q::max_srqs>() == fw::SRQS);
  REQUIRE(q.get<Q::max_mrs>() == fw::MRS - 1);
  REQUIRE(q.get<Q::max_mws>() == 0);
  REQUIRE(q.get<Q::max_pds>() == fw::PDS);
  REQUIRE(q.get<Q::max_multicast_attach>() == 0);
  // all but the two entries that each owner of a largest region has beside it (qp_test reaches it)
  REQUIRE(q.get<Q::max_total_responder_depth>() == (fw::IS_WIDE ? 4028 : 236));
  REQUIRE(q.get<Q::max_in_flight>() == (fw::IS_WIDE ? 512u : 8u));
  // quotas and privileges of another function
  using S = hwif::FunctionSettings;
  S s{};
  s.set<S::privileged>(true);
  s.set<S::quota_qps>(3);
  s.set<S::quota_cqs>(5);
  s.set<S::quota_srqs>(2);
  s.set<S::quota_mrs>(7);
  REQUIRE(rig.run<admin::SetFunction>(0, 4, s).ok());
  REQUIRE(rig.run<admin::QueryDevice>(4).ok());
  q = rig.output<Q>(4);
  REQUIRE(q.get<Q::privileged>());
  REQUIRE(q.get<Q::max_qps>() == 3);
  REQUIRE(q.get<Q::max_cqs>() == 5);
  REQUIRE(q.get<Q::max_srqs>() == 2);
  REQUIRE(q.get<Q::max_mrs>() == 7);
  REQUIRE(rig.run<admin::QueryDevice>(5).ok());
  REQUIRE_FALSE(rig.output<Q>(5).get<Q::privileged>());
  rig.refused<admin::SetFunction>(0, fw::FNS, s, AdminStatus::INVALID, AdminField::OBJECT);
}

TEST_CASE("quotas hold and QUERY_FUNCTION counts") {
  Rig rig;
  using S = hwif::FunctionSettings;
  using Q = hwif::QueryFunctionOutput;
  S s{};
  s.set<S::quota_qps>(2);
  s.set<S::quota_cqs>(3);
  s.set<S::quota_srqs>(1);
  s.set<S::quota_mrs>(2);
  REQUIRE(rig.run<admin::SetFunction>(0, 1, s).ok());
  const Objects o = Objects::make(rig, 1);               // 1 QP, 2 CQs
  rig.make<admin::CreateQp>(1, o.pd, Rig::qp_params(o.cq, o.cq));
  rig.refused<admin::CreateQp>(1, o.pd, Rig::qp_params(o.cq, o.cq), AdminStatus::NO_RESOURCES);
  rig.make<admin::CreateCq>(1, 0u, Rig::cq_params(o.eq));
  rig.refused<admin::CreateCq>(1, 0u, Rig::cq_params(o.eq), AdminStatus::NO_RESOURCES);
  rig.make<admin::CreateSrq>(1, o.pd, Rig::srq_params());
  rig.refused<admin::CreateSrq>(1, o.pd, Rig::srq_params(), AdminStatus::NO_RESOURCES);
  const auto mr = rig.make<admin::CreateMr>(1, o.pd, Rig::mr_params());
  rig.make<admin::CreateMr>(1, o.pd, Rig::mr_params());
  rig.refused<admin::CreateMr>(1, o.pd, Rig::mr_params(), AdminStatus::NO_RESOURCES);
  REQUIRE(rig.run<admin::QueryFunction>(0, 1).ok());
  const Q q = rig.output<Q>(0);
  REQUIRE(q.get<Q::qps>() == 2);
  REQUIRE(q.get<Q::cqs>() == 3);
  REQUIRE(q.get<Q::srqs>() == 1);
  REQUIRE(q.get<Q::mrs>() == 2);
  REQUIRE(q.get<Q::pds>() == 1);
  REQUIRE(q.get<Q::eqs>() == 1);
  REQUIRE(q.get<Q::in_use>());
  REQUIRE_FALSE(q.get<Q::resetting>());
  REQUIRE(q.get<Q::settings>().get<S::quota_qps>() == 2);
  REQUIRE(q.get<Q::settings>().get<S::quota_mrs>() == 2);
  // others are not limited by it, and room comes back
  Objects::make(rig, 2);
  rig.make<admin::DestroyMr>(1, mr);
  rig.make<admin::CreateMr>(1, o.pd, Rig::mr_params());
  rig.refused<admin::QueryFunction>(0, rig.command<admin::QueryFunction>(fw::FNS),
                                    AdminStatus::INVALID, AdminField::OBJECT);
}

TEST_CASE("protection domains: owner, users, exhaustion, reuse") {
  Rig rig;
  const auto pd = rig.make<admin::CreatePd>(1);
  const Command destroy = rig.command<admin::DestroyPd>(pd);
  rig.refused<admin::DestroyPd>(2, destroy, AdminStatus::NOT_FOUND, AdminField::OBJECT);
  for (const std::uint32_t bad : {pd + 1, fw::PDS, 0xffffffffu}) {
    rig.refused<admin::DestroyPd>(1, rig.command<admin::DestroyPd>(bad), AdminStatus::NOT_FOUND,
                                  AdminField::OBJECT);
  }
  const auto mr = rig.make<admin::CreateMr>(1, pd, Rig::mr_params());
  rig.refused<admin::DestroyPd>(1, destroy, AdminStatus::BUSY, AdminField::OBJECT);
  rig.make<admin::DestroyMr>(1, mr);
  REQUIRE(rig.run(1, destroy).ok());
  rig.refused<admin::DestroyPd>(1, destroy, AdminStatus::NOT_FOUND, AdminField::OBJECT);
  std::set<std::uint32_t> all;
  for (unsigned n = 0; n < fw::PDS; ++n) {
    REQUIRE(all.insert(rig.make<admin::CreatePd>(1 + n % 3)).second);
  }
  rig.refused<admin::CreatePd>(1, rig.command<admin::CreatePd>(), AdminStatus::NO_RESOURCES);
  REQUIRE(rig.run<admin::DestroyPd>(1 + 4 % 3, *all.begin()).status != AdminStatus::INVALID);
  for (const auto n : all) {
    for (unsigned fn = 1; fn <= 3; ++fn) rig.run<admin::DestroyPd>(fn, n);
  }
  for (unsigned n = 0; n < fw::PDS; ++n) rig.make<admin::CreatePd>(5);
}

TEST_CASE("outputs of several functions do not meet") {
  Rig rig;
  rig.hw.copy_steps = 7;
  for (unsigned fn = 0; fn < fw::FNS; ++fn) rig.hw.post(fn, rig.command<admin::QueryDevice>());
  rig.steps(40 * fw::FNS);
  for (unsigned fn = 0; fn < fw::FNS; ++fn) {
    Answer answer{};
    INFO("function " << fn);
    REQUIRE(rig.take(fn, answer));
    REQUIRE(answer.ok());
    using Q = hwif::QueryDeviceOutput;
    REQUIRE(rig.output<Q>(fn).get<Q::privileged>() == (fn == 0));
  }
}

TEST_CASE("functions that always want an output do not keep another's from it") {
  for (const unsigned victim : {0u, 1u, 2u}) {
    Rig rig;
    rig.hw.copy_steps = 3;
    INFO("function " << victim);
    for (unsigned fn = 0; fn < 3; ++fn) {
      if (fn != victim) rig.hw.post(fn, rig.command<admin::QueryDevice>());
    }
    rig.steps(5);
    rig.hw.post(victim, rig.command<admin::QueryDevice>());
    unsigned others = 0;
    Answer answer{};
    for (unsigned n = 0; !rig.take(victim, answer); ++n) {
      REQUIRE(n < 400);
      rig.step();
      for (unsigned fn = 0; fn < 3; ++fn) {
        if (fn == victim || !rig.take(fn, answer)) continue;
        ++others;
        rig.hw.post(fn, rig.command<admin::QueryDevice>());  // at once the next
      }
    }
    REQUIRE(answer.ok());
    REQUIRE(others <= 3);  // the one that was under way, and one turn of both
  }
}

namespace {

/// A command that names an object of one kind, in its object field or in a parameter.
struct Naming {
  const char* name;
  fw::Kind kind;
  AdminField field;
  std::function<Command(std::uint32_t)> make;
};

std::vector<Naming> naming_commands(Rig& rig, const Objects& own) {
  std::vector<Naming> out;
  const auto add = [&](const char* name, fw::Kind kind, std::function<Command(std::uint32_t)> make,
                       AdminField field = AdminField::OBJECT) {
    out.push_back({name, kind, field, std::move(make)});
  };
  add("DESTROY_PD", fw::KIND_PD, [&](auto n) { return rig.command<admin::DestroyPd>(n); });
  add("CREATE_MR", fw::KIND_PD,
      [&](auto n) { return rig.command<admin::CreateMr>(n, Rig::mr_params()); });
  add("CREATE_SRQ", fw::KIND_PD,
      [&](auto n) { return rig.command<admin::CreateSrq>(n, Rig::srq_params()); });
  add("CREATE_QP", fw::KIND_PD, [&rig, own](auto n) {
    return rig.command<admin::CreateQp>(n, Rig::qp_params(own.cq, own.cq2));
  });
  add("CREATE_QP, send CQ", fw::KIND_CQ, [&rig, own](auto n) {
    return rig.command<admin::CreateQp>(own.pd, Rig::qp_params(n, own.cq2));
  }, AdminField::SEND_CQN);
  add("CREATE_QP, receive CQ", fw::KIND_CQ, [&rig, own](auto n) {
    return rig.command<admin::CreateQp>(own.pd, Rig::qp_params(own.cq2, n));
  }, AdminField::RECV_CQN);
  add("CREATE_QP, SRQ", fw::KIND_SRQ, [&rig, own](auto n) {
    auto p = Rig::qp_params(own.cq, own.cq2);
    p.template set<hwif::CreateQpParams::has_srq>(true);
    p.template set<hwif::CreateQpParams::srqn>(n);
    p.template set<hwif::CreateQpParams::rq_ring_address>(0);
    return rig.command<admin::CreateQp>(own.pd, p);
  }, AdminField::SRQN);
  add("CREATE_CQ", fw::KIND_EQ,
      [&](auto n) { return rig.command<admin::CreateCq>(0, Rig::cq_params(n)); }, AdminField::EQN);
  add("DESTROY_EQ", fw::KIND_EQ, [&](auto n) { return rig.command<admin::DestroyEq>(n); });
  add("DESTROY_CQ", fw::KIND_CQ, [&](auto n) { return rig.command<admin::DestroyCq>(n); });
  add("QUERY_CQ", fw::KIND_CQ, [&](auto n) { return rig.command<admin::QueryCq>(n); });
  add("DESTROY_SRQ", fw::KIND_SRQ, [&](auto n) { return rig.command<admin::DestroySrq>(n); });
  add("QUERY_SRQ", fw::KIND_SRQ, [&](auto n) { return rig.command<admin::QuerySrq>(n); });
  add("DESTROY_MR", fw::KIND_MR, [&](auto n) { return rig.command<admin::DestroyMr>(n); });
  add("QUERY_MR", fw::KIND_MR, [&](auto n) { return rig.command<admin::QueryMr>(n); });
  add("REREG_MR", fw::KIND_MR, [&](auto n) { return rig.command<admin::ReregMr>(n); });
  add("DESTROY_QP", fw::KIND_QP, [&](auto n) { return rig.command<admin::DestroyQp>(n); });
  add("QUERY_QP", fw::KIND_QP, [&](auto n) { return rig.command<admin::QueryQp>(n); });
  add("MODIFY_QP", fw::KIND_QP,
      [&](auto n) { return rig.modify_command(n, MASK_STATE, Rig::attributes()); });
  return out;
}

}  // namespace

TEST_CASE("objects of another function, of nobody, and dying ones are not found") {
  Rig rig;
  const Objects theirs = Objects::make(rig, 1), own = Objects::make(rig, 2);
  const auto srq = rig.make<admin::CreateSrq>(1, theirs.pd, Rig::srq_params());
  const auto mr = rig.make<admin::CreateMr>(1, theirs.pd, Rig::mr_params());
  std::map<fw::Kind, std::vector<std::uint32_t>> bad;
  bad[fw::KIND_PD] = {theirs.pd, fw::PDS - 1, fw::PDS, 0xffffffff};
  bad[fw::KIND_EQ] = {theirs.eq, fw::EQS - 1, fw::EQS, 0xffffff};
  bad[fw::KIND_CQ] = {theirs.cq, fw::CQS - 1, fw::CQS, 0xffffff};
  bad[fw::KIND_SRQ] = {srq, fw::SRQS - 1, fw::SRQS, 0xffffff};
  bad[fw::KIND_MR] = {mr, 0, fw::MRS - 1, fw::MRS, 0xffffffff};
  bad[fw::KIND_QP] = {theirs.qp, own.qp + fw::QPS, own.qp - fw::QPS, 0, 0xffffffff};
  for (const Naming& n : naming_commands(rig, own)) {
    for (const std::uint32_t object : bad.at(n.kind)) {
      INFO(n.name << " of " << object);
      const auto writes = rig.hw.context_writes;
      const Answer answer = rig.run(2, n.make(object));
      CHECK(answer.status == AdminStatus::NOT_FOUND);
      CHECK(answer.field == n.field);
      CHECK(rig.hw.context_writes == writes);
    }
  }

  // while its DESTROY, or the way of a queue pair to RESET, has not ended
  rig.hw.fences_hang = true;
  const auto dying = [&](fw::Kind kind, const Command& last, std::uint32_t object,
                         AdminStatus status) {
    const auto id = last.command.get<hwif::AdminCommand::command_id>();
    rig.hw.post(1, last);
    rig.steps(20);
    for (const Naming& n : naming_commands(rig, theirs)) {
      if (n.kind != kind) continue;
      INFO(n.name << " while it is dying");
      const Answer answer = rig.run(1, n.make(object));
      CHECK(answer.status == status);
      CHECK(answer.field == n.field);
    }
    rig.hw.fences_hang = false;
    Answer answer{};
    std::uint16_t got = 0;
    for (unsigned n = 0; !rig.take(1, answer, &got); ++n) {
      REQUIRE(n < 200);
      rig.step();
    }
    CHECK(got == id);
    CHECK(answer.ok());
    rig.hw.fences_hang = true;
  };
  bring(rig, 1, theirs.qp, QpState::INIT);
  hwif::QpAttributes reset{};
  dying(fw::KIND_QP, rig.modify_command(theirs.qp, MASK_STATE, reset), theirs.qp, AdminStatus::BUSY);
  dying(fw::KIND_MR, rig.command<admin::DestroyMr>(mr), mr, AdminStatus::NOT_FOUND);
  dying(fw::KIND_SRQ, rig.command<admin::DestroySrq>(srq), srq, AdminStatus::NOT_FOUND);
  dying(fw::KIND_QP, rig.command<admin::DestroyQp>(theirs.qp), theirs.qp, AdminStatus::NOT_FOUND);
  dying(fw::KIND_CQ, rig.command<admin::DestroyCq>(theirs.cq), theirs.cq, AdminStatus::NOT_FOUND);
  rig.hw.fences_hang = false;
  rig.make<admin::DestroyCq>(1, theirs.cq2);
  rig.hw.fences_hang = true;
  dying(fw::KIND_EQ, rig.command<admin::DestroyEq>(theirs.eq), theirs.eq, AdminStatus::NOT_FOUND);
}
