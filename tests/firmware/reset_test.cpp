// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Fences and function resets: waits are states, others go on, everything comes back.
#include "rig.hpp"

using namespace roci::test;
namespace hwif = roci::hwif;
namespace fw = roci::fw;

namespace {

/// Everything that a function can have.
void fill(Rig& rig, unsigned fn) {
  const Objects o = Objects::make(rig, fn);
  bring(rig, fn, o.qp, QpState::RTS);
  const auto srq = rig.make<admin::CreateSrq>(fn, o.pd, Rig::srq_params());
  auto p = Rig::qp_params(o.cq, o.cq);
  p.set<hwif::CreateQpParams::has_srq>(true);
  p.set<hwif::CreateQpParams::srqn>(srq);
  p.set<hwif::CreateQpParams::rq_ring_address>(0);
  bring(rig, fn, rig.make<admin::CreateQp>(fn, o.pd, p), QpState::RTR);
  rig.make<admin::CreateMr>(fn, o.pd, Rig::mr_params());
  rig.make<admin::CreateMr>(fn, o.pd, Rig::mr_params());
  auto e = Rig::eq_params();
  e.set<hwif::CreateEqParams::async_events>(true);
  rig.make<admin::CreateEq>(fn, 0u, e);
}

/// Nothing of the function is left in any table or context.
void check_empty(Rig& rig, unsigned fn) {
  const fw::Function& f = fw::state.fns[fn];
  for (unsigned kind = 0; kind < fw::KINDS; ++kind) {
    INFO("kind " << kind);
    REQUIRE(f.counts[kind] == 0);
  }
  REQUIRE((fw::state.listening >> fn & 1) == 0);
  for (unsigned n = 0; n < fw::QPS; ++n) {
    REQUIRE_FALSE((fw::state.qps[n].life != fw::Life::FREE && fw::state.qps[n].fn == fn));
  }
  using D = hwif::CtxQpDb;
  for (unsigned n = 0; n < fw::QPS; ++n) {
    const auto bell = rig.hw.row<D>(CtxColumn::QP_DB, n);
    if (bell.get<D::fn>() == fn) REQUIRE_FALSE((bell.get<D::takes_send>() ||
                                               bell.get<D::takes_receive>()));
  }
  using M = hwif::MptEntry;
  for (unsigned n = 1; n < fw::MRS; ++n) {
    if (rig.hw.context(CtxColumn::MPT, n, 3) == 0) continue;
    const auto entry = rig.hw.row<M>(CtxColumn::MPT, n);
    if (entry.get<M::function_number>() == fn) {
      REQUIRE(entry.get<M::state>() == hwif::MrState::INVALID);
    }
  }
}

void wait_for_reset(Rig& rig, unsigned fn) {
  for (unsigned n = 0; rig.hw.is_resetting(fn); ++n) {
    REQUIRE(n < 20000);
    rig.step();
  }
}

}  // namespace

TEST_CASE("a long drain delays nobody else") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  std::vector<std::uint32_t> mrs;
  for (int n = 0; n < 4; ++n) mrs.push_back(rig.make<admin::CreateMr>(1, o.pd, Rig::mr_params()));
  rig.hw.fences_hang = true;
  // two commands of the function wait, the third keeps its place in the queue, more stay in the ring
  for (const auto mr : mrs) rig.hw.post(1, rig.command<admin::DestroyMr>(mr));
  rig.hw.post(1, rig.command<admin::Nop>());
  rig.steps(50);
  Answer answer{};
  REQUIRE_FALSE(rig.take(1, answer));
  REQUIRE(std::popcount(fw::state.waiting) == 2);
  for (unsigned fn = 2; fn < fw::FNS; ++fn) {
    REQUIRE(rig.run<admin::Nop>(fn).ok());
    Objects::make(rig, fn);
  }
  rig.hw.fences_hang = false;
  rig.steps(50);
  std::vector<std::uint32_t> destroyed;
  unsigned nops = 0;
  while (rig.take(1, answer)) {
    REQUIRE(answer.ok());
    if (answer.object == 0) ++nops;
    else destroyed.push_back(answer.object);
  }
  REQUIRE(destroyed == mrs);
  REQUIRE(nops == 1);
}

TEST_CASE("commands behind a waiting one are answered before it") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  const auto mr = rig.make<admin::CreateMr>(1, o.pd, Rig::mr_params());
  rig.hw.fences_hang = true;
  rig.hw.post(1, rig.command<admin::DestroyMr>(mr));
  REQUIRE(rig.run<admin::Nop>(1).ok());
  rig.make<admin::CreatePd>(1);
  rig.hw.fences_hang = false;
  rig.steps(5);
  Answer answer{};
  REQUIRE(rig.take(1, answer));
  REQUIRE(answer.object == mr);
}

TEST_CASE("one fence covers all that was revoked before it began") {
  Rig rig;
  std::vector<std::pair<unsigned, std::uint32_t>> mrs;
  for (unsigned fn = 1; fn < fw::FNS; ++fn) {
    const auto pd = rig.make<admin::CreatePd>(fn);
    mrs.push_back({fn, rig.make<admin::CreateMr>(fn, pd, Rig::mr_params())});
  }
  rig.hw.fence_steps = 60;
  rig.hw.post(mrs[0].first, rig.command<admin::DestroyMr>(mrs[0].second));
  rig.steps(2);
  for (std::size_t n = 1; n < mrs.size(); ++n) {
    rig.hw.post(mrs[n].first, rig.command<admin::DestroyMr>(mrs[n].second));
  }
  unsigned steps = 0;
  Answer answer{};
  for (; rig.hw.completions(mrs.back().first).empty(); ++steps) {
    REQUIRE(steps < 1000);
    rig.step();
    // a fence that began before an object was revoked does not free it
    if (steps < 55) {
      for (std::size_t n = 1; n < mrs.size(); ++n) {
        REQUIRE(rig.hw.completions(mrs[n].first).empty());
      }
    }
  }
  REQUIRE(steps < 3 * 60);                          // two fences, not one for each
  for (const auto& [fn, mr] : mrs) {
    REQUIRE(rig.take(fn, answer));
    REQUIRE(answer.ok());
  }
}

TEST_CASE("a drain that never ends is given up; its object stays dead") {
  Rig rig;
  const Objects o = Objects::make(rig, 1);
  bring(rig, 1, o.qp, QpState::RTS);
  rig.hw.fences_hang = true;
  rig.hw.post(1, rig.command<admin::DestroyQp>(o.qp));
  rig.steps(10);
  Answer answer{};
  REQUIRE_FALSE(rig.take(1, answer));
  rig.hw.now += 2'000'000'000;
  rig.steps(3);
  REQUIRE(rig.take(1, answer));
  REQUIRE(answer.status == AdminStatus::TIMED_OUT);
  REQUIRE(rig.run<admin::QueryQp>(1, o.qp).status == AdminStatus::NOT_FOUND);
  REQUIRE(rig.run<admin::DestroyCq>(1, o.cq).status == AdminStatus::BUSY);
  // only the reset of the function frees it, once the hardware drains again
  rig.hw.request_reset(1);
  rig.steps(50);
  REQUIRE(rig.hw.is_resetting(1));
  rig.hw.fences_hang = false;
  wait_for_reset(rig, 1);
  check_empty(rig, 1);
}

TEST_CASE("a function reset destroys everything of the function, and nothing else") {
  Rig rig;
  for (unsigned fn = 1; fn <= 3; ++fn) fill(rig, fn);
  const auto qps_before = fw::state.fns[1].counts[fw::KIND_QP];
  rig.hw.fence_steps = 30;
  rig.hw.log.clear();
  std::vector<std::uint64_t> others;
  const auto snapshot = [&] {
    std::vector<std::uint64_t> out;
    for (unsigned n = 0; n < fw::QPS; ++n) {
      if (fw::state.qps[n].life == fw::Life::FREE || fw::state.qps[n].fn == 2) continue;
      out.push_back(rig.hw.context(CtxColumn::QP_STATE, n, 0));
      out.push_back(rig.hw.context(CtxColumn::QP_DB, n, 0));
      out.push_back(rig.hw.context(CtxColumn::RQ, n, 1));
    }
    return out;
  };
  others = snapshot();
  rig.hw.request_reset(2);
  // others work meanwhile
  unsigned answered = 0;
  for (unsigned n = 0; rig.hw.is_resetting(2); ++n) {
    REQUIRE(n < 20000);
    rig.step();
    if (n % 7 == 0 && rig.hw.is_resetting(2)) {
      REQUIRE(rig.run<admin::Nop>(1, 0).ok());
      ++answered;
    }
  }
  REQUIRE(answered > 3);
  check_empty(rig, 2);
  REQUIRE(snapshot() == others);
  REQUIRE(fw::state.fns[1].counts[fw::KIND_QP] == qps_before);
  REQUIRE_FALSE(rig.hw.is_enabled(2));
  REQUIRE(rig.hw.completions(2).empty());
  // the slot is usable again
  rig.hw.enable(2);
  rig.hw.fence_steps = 1;
  fill(rig, 2);
}

TEST_CASE("FUNCTION_RESET by function 0") {
  Rig rig;
  fill(rig, 4);
  rig.hw.fence_steps = 10;
  rig.hw.post(0, rig.command<admin::FunctionReset>(4));
  rig.steps(3);
  REQUIRE(rig.hw.is_resetting(4));
  Answer answer{};
  REQUIRE_FALSE(rig.take(0, answer));
  REQUIRE(rig.run<admin::Nop>(0).ok());             // not blocked by it
  wait_for_reset(rig, 4);
  rig.steps(2);
  REQUIRE(rig.take(0, answer));
  REQUIRE(answer.ok());
  REQUIRE(answer.object == 4);
  check_empty(rig, 4);
  REQUIRE(rig.run<admin::FunctionReset>(0, 0).status == AdminStatus::INVALID);
  REQUIRE(rig.run<admin::FunctionReset>(0, fw::FNS).status == AdminStatus::INVALID);
  // one that has nothing
  REQUIRE(rig.run<admin::FunctionReset>(0, 6).ok());
}

TEST_CASE("a reset in the middle of everything") {
  for (unsigned delay = 0; delay < 40; ++delay) {
    Rig rig;
    fill(rig, 3);
    const Objects o = Objects::make(rig, 3);
    const auto mr = rig.make<admin::CreateMr>(3, o.pd, Rig::mr_params());
    bring(rig, 3, o.qp, QpState::RTS);
    rig.hw.fence_steps = 12;
    rig.hw.copy_steps = 5;
    auto a = Rig::attributes();
    a.set<hwif::QpAttributes::state>(QpState::RESET);
    Command rereg = rig.command<admin::ReregMr>(mr);
    rig.hw.post(3, rig.modify_command(o.qp, 1, a));
    rig.hw.post(3, rereg);
    rig.hw.post(3, rig.command<admin::QueryDevice>());
    rig.hw.post(3, rig.command<admin::DestroyMr>(mr));
    rig.hw.post(3, rig.command<admin::DestroyQp>(o.qp));
    rig.hw.post(3, rig.command<admin::CreatePd>());
    rig.steps(delay);
    rig.hw.request_reset(3);
    wait_for_reset(rig, 3);
    INFO("delay " << delay);
    check_empty(rig, 3);
    REQUIRE(fw::state.waiting == 0);
    REQUIRE(fw::state.held == 0);
    rig.hw.completions(3).clear();
    rig.hw.enable(3);
    REQUIRE(rig.run<admin::Nop>(3).ok());
    fill(rig, 3);
  }
}

TEST_CASE("all functions at once") {
  Rig rig;
  for (unsigned fn = 0; fn < fw::FNS; ++fn) fill(rig, fn);
  rig.hw.fence_steps = 5;
  for (unsigned fn = 0; fn < fw::FNS; ++fn) rig.hw.request_reset(fn);
  for (unsigned fn = 0; fn < fw::FNS; ++fn) wait_for_reset(rig, fn);
  for (unsigned fn = 0; fn < fw::FNS; ++fn) check_empty(rig, fn);
  REQUIRE(fw::state.inflight.units_free() == (1u << fw::INFLIGHT_BITS) - 8 * fw::QPS);
  REQUIRE(fw::state.reads.units_free() == (1u << fw::READ_BITS) - 2 * fw::QPS);
  REQUIRE(fw::state.replays.units_free() == (1u << fw::REPLAY_BITS) - 2 * fw::QPS);
  REQUIRE(fw::state.slots.units_free() == (1u << fw::SLOT_BITS) - 2 * (fw::QPS + fw::SRQS));
  for (unsigned fn = 0; fn < fw::FNS; ++fn) rig.hw.enable(fn);
  for (unsigned fn = 0; fn < fw::FNS; ++fn) fill(rig, fn);
}
