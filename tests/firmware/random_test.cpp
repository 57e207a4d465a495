// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Random commands of all functions, mostly sensible, often not: every one is answered once, the tables
// always agree with each other and with the contexts, and after a reset of all functions nothing is
// missing.
#include "harness/random.hpp"
#include "rig.hpp"

using namespace roci::test;
namespace hwif = roci::hwif;
namespace fw = roci::fw;

namespace {

struct Fuzz {
  Rig rig;
  Random random;
  struct Fn {
    std::vector<std::uint32_t> objects[fw::KINDS];
    std::map<std::uint16_t, std::pair<AdminOpcode, std::uint32_t>> open;
  };
  std::vector<Fn> fns{fw::FNS};
  std::uint64_t answered = 0, good = 0;

  explicit Fuzz(std::uint64_t salt) : random(salt) {}

  // most of them RC: the others are refused less
  const std::vector<hwif::QpType> types = {hwif::QpType::RC, hwif::QpType::RC, hwif::QpType::UC,
                                           hwif::QpType::UD, hwif::QpType::GSI};

  std::uint32_t some(unsigned fn, fw::Kind kind) {
    // sometimes somebody else's, sometimes nonsense
    if (random.chance(0.05)) return static_cast<std::uint32_t>(random.bits(32));
    if (random.chance(0.1)) fn = static_cast<unsigned>(random.below(fw::FNS));
    const auto& list = fns[fn].objects[kind];
    return list.empty() ? static_cast<std::uint32_t>(random.below(64)) : random.pick(list);
  }

  /// Flips a bit of the parameters now and then.
  template <class P>
  P noise(P p) {
    if (random.chance(0.15)) {
      const auto bit = random.below(8 * P::BYTES);
      p.set_byte(bit / 8, static_cast<std::uint8_t>(p.byte(bit / 8) ^ (1u << (bit % 8))));
    }
    return p;
  }

  Command next(unsigned fn) {
    switch (random.below(26)) {
      case 0:
      case 1: return rig.command<admin::CreatePd>();
      case 2: return rig.command<admin::DestroyPd>(some(fn, fw::KIND_PD));
      case 3: return rig.command<admin::CreateEq>(0, noise(Rig::eq_params()));
      case 4: return rig.command<admin::DestroyEq>(some(fn, fw::KIND_EQ));
      case 5:
      case 6:
        return rig.command<admin::CreateCq>(0, noise(Rig::cq_params(some(fn, fw::KIND_EQ) &
                                                                     0xffffff)));
      case 7: return rig.command<admin::DestroyCq>(some(fn, fw::KIND_CQ));
      case 8:
      case 9:
        return rig.command<admin::CreateMr>(some(fn, fw::KIND_PD), noise(Rig::mr_params()));
      case 10: return rig.command<admin::DestroyMr>(some(fn, fw::KIND_MR));
      case 11: {
        Command c = rig.command<admin::ReregMr>(some(fn, fw::KIND_MR));
        hwif::ReregMrInput input{};
        input.set<hwif::ReregMrInput::memory>(noise(Rig::mr_params()));
        input.set<hwif::ReregMrInput::pd>(some(fn, fw::KIND_PD));
        input.set<hwif::ReregMrInput::change_pd>(random.chance(0.5));
        input.set<hwif::ReregMrInput::change_translation>(random.chance(0.5));
        Rig::set_input<admin::ReregMr>(c, input);
        return c;
      }
      case 12: return rig.command<admin::CreateSrq>(some(fn, fw::KIND_PD),
                                                    noise(Rig::srq_params()));
      case 13: return rig.command<admin::DestroySrq>(some(fn, fw::KIND_SRQ));
      case 14:
      case 15: {
        auto p = Rig::qp_params(some(fn, fw::KIND_CQ) & 0xffffff, some(fn, fw::KIND_CQ) & 0xffffff,
                                random.pick(types));
        if (random.chance(0.2)) {
          p.set<hwif::CreateQpParams::has_srq>(true);
          p.set<hwif::CreateQpParams::srqn>(some(fn, fw::KIND_SRQ) & 0xffffff);
          p.set<hwif::CreateQpParams::rq_ring_address>(0);
        }
        return rig.command<admin::CreateQp>(some(fn, fw::KIND_PD), noise(p));
      }
      case 16: return rig.command<admin::DestroyQp>(some(fn, fw::KIND_QP));
      case 17: return rig.command<admin::QueryQp>(some(fn, fw::KIND_QP));
      case 18: return rig.command<admin::QueryCq>(some(fn, fw::KIND_CQ));
      case 19: return rig.command<admin::QueryDevice>();
      case 20: {
        Command c = rig.command<admin::Nop>();
        c.command.set<hwif::AdminCommand::opcode>(static_cast<AdminOpcode>(random.bits(8)));
        // FUNCTION_RESET is done on purpose below
        if (c.command.get<hwif::AdminCommand::opcode>() == AdminOpcode::FUNCTION_RESET) {
          c.command.set<hwif::AdminCommand::opcode>(AdminOpcode::NOP);
        }
        return c;
      }
      default: {
        auto a = Rig::attributes();
        const std::uint32_t qpn = some(fn, fw::KIND_QP);
        // of the type that it has, mostly
        const auto type = random.chance(0.05) ? random.pick(types) : fw::state.qps[qpn % fw::QPS].type;
        const bool connected = type == hwif::QpType::RC || type == hwif::QpType::UC;
        a.set<hwif::QpAttributes::qkey>(type == hwif::QpType::GSI ? hwif::QKEY_GSI : QKEY);
        const std::uint32_t masks[] = {step_mask(type, QpState::INIT), step_mask(type, QpState::RTR),
                                       step_mask(type, QpState::RTS), MASK_STATE,
                                       connected ? MASK_RIGHTS : MASK_QKEY};
        const QpState states[] = {QpState::INIT, QpState::RTR, QpState::RTS, QpState::RESET,
                                  QpState::ERR,  QpState::SQD};
        const auto way = random.below(5);
        a.set<hwif::QpAttributes::state>(way < 3 ? states[way] : states[random.below(6)]);
        a.set<hwif::QpAttributes::initiator_depth>(static_cast<std::uint8_t>(random.below(9)));
        a.set<hwif::QpAttributes::responder_depth>(
            static_cast<std::uint8_t>(random.below(fw::MAX_RD_ATOMIC + 1)));
        std::uint32_t mask = masks[way];
        if (random.chance(0.05)) mask ^= 1u << random.below(21);
        Command c = rig.modify_command(qpn, mask, noise(a));
        c.input_unreadable = random.chance(0.02);
        return c;
      }
    }
  }

  static int kind_of(AdminOpcode opcode, bool& creates) {
    creates = true;
    switch (opcode) {
      case AdminOpcode::CREATE_PD: return fw::KIND_PD;
      case AdminOpcode::CREATE_EQ: return fw::KIND_EQ;
      case AdminOpcode::CREATE_CQ: return fw::KIND_CQ;
      case AdminOpcode::CREATE_MR: return fw::KIND_MR;
      case AdminOpcode::CREATE_SRQ: return fw::KIND_SRQ;
      case AdminOpcode::CREATE_QP: return fw::KIND_QP;
      default: break;
    }
    creates = false;
    switch (opcode) {
      case AdminOpcode::DESTROY_PD: return fw::KIND_PD;
      case AdminOpcode::DESTROY_EQ: return fw::KIND_EQ;
      case AdminOpcode::DESTROY_CQ: return fw::KIND_CQ;
      case AdminOpcode::DESTROY_MR: return fw::KIND_MR;
      case AdminOpcode::DESTROY_SRQ: return fw::KIND_SRQ;
      case AdminOpcode::DESTROY_QP: return fw::KIND_QP;
      default: return -1;
    }
  }

  void take_answers() {
    for (unsigned fn = 0; fn < fw::FNS; ++fn) {
      Answer answer{};
      std::uint16_t id = 0;
      while (rig.take(fn, answer, &id)) {
        const auto at = fns[fn].open.find(id);
        REQUIRE(at != fns[fn].open.end());            // once, and only what was asked
        const auto [opcode, object] = at->second;
        fns[fn].open.erase(at);
        ++answered;
        if (!answer.ok()) {
          REQUIRE(answer.status <= AdminStatus::CANCELED);
          continue;
        }
        ++good;
        bool creates = false;
        const int kind = kind_of(opcode, creates);
        if (kind < 0) continue;
        auto& list = fns[fn].objects[kind];
        if (creates) {
          REQUIRE(std::count(list.begin(), list.end(), answer.object) == 0);
          list.push_back(answer.object);
        } else {
          REQUIRE(std::erase(list, object) == 1);
        }
      }
    }
  }

  /// References and counts from scratch.
  void check_tables() {
    std::vector<unsigned> pd_refs(fw::PDS), cq_refs(fw::CQS), eq_refs(fw::EQS), srq_refs(fw::SRQS);
    std::vector<std::array<unsigned, fw::KINDS>> counts(fw::FNS);
    for (unsigned n = 0; n < fw::QPS; ++n) {
      const fw::Qp& qp = fw::state.qps[n];
      if (qp.life == fw::Life::FREE) continue;
      ++counts[qp.fn][fw::KIND_QP];
      if (n < 2) {
        REQUIRE(n == 1);
        REQUIRE(qp.number == 1);
        REQUIRE(qp.fn == 0);
      }
      REQUIRE((qp.type == hwif::QpType::GSI) == (n == 1));
      for (const auto column : {CtxColumn::QP_TX, CtxColumn::QP_ACK, CtxColumn::QP_RQ}) {
        const unsigned at = column == CtxColumn::QP_TX ? 0 : column == CtxColumn::QP_ACK ? 24 : 56;
        REQUIRE((rig.hw.context(column, n, 0) >> at & 7) == static_cast<unsigned>(qp.type));
      }
      using T = hwif::CtxQpTx;
      using K = hwif::CtxQpAck;
      using R = hwif::CtxQpRq;
      ++pd_refs[rig.hw.row<T>(CtxColumn::QP_TX, n).get<T::pd>()];
      ++cq_refs[rig.hw.row<K>(CtxColumn::QP_ACK, n).get<K::cq>()];
      const auto rq = rig.hw.row<R>(CtxColumn::QP_RQ, n);
      ++cq_refs[rq.get<R::cq>()];
      if (rq.get<R::has_srq>()) ++srq_refs[rq.get<R::srqn>()];
    }
    const auto objects = [&](const auto& table, fw::Kind kind) {
      for (const auto& object : table) {
        if (object.life != fw::Life::FREE) ++counts[object.fn][kind];
      }
    };
    objects(fw::state.cqs, fw::KIND_CQ);
    objects(fw::state.eqs, fw::KIND_EQ);
    objects(fw::state.srqs, fw::KIND_SRQ);
    objects(fw::state.pds, fw::KIND_PD);
    for (unsigned n = 0; n < fw::CQS; ++n) {
      using C = hwif::CtxCq;
      if (fw::state.cqs[n].life != fw::Life::FREE) {
        ++eq_refs[rig.hw.row<C>(CtxColumn::CQ, n).get<C::eq>()];
      }
    }
    for (unsigned n = 0; n < fw::SRQS; ++n) {
      if (fw::state.srqs[n].life != fw::Life::FREE) ++pd_refs[fw::state.srq_pds[n]];
    }
    for (unsigned n = 0; n < fw::MRS; ++n) {
      if (rig.hw.context(CtxColumn::MPT, n, 3) == 0) continue;
      using M = hwif::MptEntry;
      const auto entry = rig.hw.row<M>(CtxColumn::MPT, n);
      if (entry.get<M::state>() == hwif::MrState::INVALID) continue;
      ++counts[entry.get<M::function_number>()][fw::KIND_MR];
      ++pd_refs[entry.get<M::pd>()];
    }
    for (unsigned n = 0; n < fw::PDS; ++n) REQUIRE(fw::state.pds[n].refs == pd_refs[n]);
    for (unsigned n = 0; n < fw::CQS; ++n) REQUIRE(fw::state.cqs[n].refs == cq_refs[n]);
    for (unsigned n = 0; n < fw::EQS; ++n) REQUIRE(fw::state.eqs[n].refs == eq_refs[n]);
    for (unsigned n = 0; n < fw::SRQS; ++n) REQUIRE(fw::state.srqs[n].refs == srq_refs[n]);
    for (unsigned fn = 0; fn < fw::FNS; ++fn) {
      for (unsigned kind = 0; kind < fw::KINDS; ++kind) {
        REQUIRE(fw::state.fns[fn].counts[kind] == counts[fn][kind]);
      }
    }
  }
};

}  // namespace

TEST_CASE("random commands") {
  Random random;
  for (int round = 0; round < 3; ++round) {
    Fuzz fuzz(random());
    Rig& rig = fuzz.rig;
    for (std::size_t step = 0; step < scaled(4000); ++step) {
      const auto fn = static_cast<unsigned>(random.below(fw::FNS));
      if (rig.hw.is_enabled(fn) && !rig.hw.is_resetting(fn) && fuzz.fns[fn].open.size() < 6) {
        const Command c = fuzz.next(fn);
        fuzz.fns[fn].open[c.command.get<hwif::AdminCommand::command_id>()] = {
            c.command.get<hwif::AdminCommand::opcode>(),
            c.command.get<hwif::AdminCommand::object>()};
        rig.hw.post(fn, c);
      }
      if (random.chance(0.02)) rig.hw.fence_steps = static_cast<unsigned>(random.below(40));
      if (random.chance(0.02)) rig.hw.copy_steps = static_cast<unsigned>(random.between(1, 10));
      if (random.chance(0.03)) {
        // hardware sets a queue pair to ERR, or to SQE
        const auto n = static_cast<unsigned>(random.below(fw::QPS));
        const QpState now = rig.hw.qp_state(n);
        if (fw::state.qps[n].type != hwif::QpType::RC && random.chance(0.5)) {
          if (now == QpState::RTS || now == QpState::SQD) rig.hw.set_qp_state(n, QpState::SQE);
        } else if (now != QpState::RESET) {
          rig.hw.set_qp_state(n, QpState::ERR);
        }
      }
      if (random.chance(0.002)) {
        rig.hw.request_reset(fn);
        fuzz.fns[fn] = {};
        rig.hw.completions(fn).clear();
      }
      if (!rig.hw.is_enabled(fn) && !rig.hw.is_resetting(fn)) {
        rig.hw.completions(fn).clear();
        rig.hw.enable(fn);
      }
      for (auto n = random.below(6); n != 0; --n) rig.step();
      fuzz.take_answers();
      if (random.chance(0.01)) fuzz.check_tables();
    }
    rig.hw.fence_steps = 3;
    rig.steps(3000);
    fuzz.take_answers();
    fuzz.check_tables();
    for (unsigned fn = 0; fn < fw::FNS; ++fn) {
      INFO("function " << fn);
      REQUIRE(fuzz.fns[fn].open.empty());             // everything was answered
    }
    REQUIRE(fuzz.answered > 1000);
    REQUIRE(fuzz.good > fuzz.answered / 4);
    for (unsigned fn = 0; fn < fw::FNS; ++fn) rig.hw.request_reset(fn);
    for (unsigned n = 0; rig.hw.resetting() != 0; ++n) {
      REQUIRE(n < 100000);
      rig.step();
    }
    REQUIRE(fw::state.inflight.units_free() == (1u << fw::INFLIGHT_BITS) - 8 * fw::QPS);
    REQUIRE(fw::state.reads.units_free() == (1u << fw::READ_BITS) - 2 * fw::QPS);
    REQUIRE(fw::state.replays.units_free() == (1u << fw::REPLAY_BITS) - 2 * fw::QPS);
    REQUIRE(fw::state.slots.units_free() == (1u << fw::SLOT_BITS) - 2 * (fw::QPS + fw::SRQS));
    fuzz.check_tables();
    for (const auto users : fw::state.pkey_users) REQUIRE(users == 0);
    REQUIRE(fw::state.waiting == 0);
  }
}

TEST_CASE("regions of a pool never overlap and come together again") {
  Random random;
  using Pool = fw::RegionPool<4096, 64, 1, 7>;
  static Pool pool;
  pool.init();
  std::vector<fw::Region> granted;
  std::set<unsigned> taken;
  for (std::size_t step = 0; step < scaled(20000); ++step) {
    if (granted.empty() || random.chance(step / 2000 % 2 == 0 ? 0.6 : 0.5)) {
      const auto need = static_cast<unsigned>(random.below(8));
      const auto want = static_cast<unsigned>(random.below(10));
      const fw::Region r = pool.grant(5, need, want);
      if (r.log2 < need) {                            // then there is no place
        REQUIRE(need > 1);
        for (unsigned base = 128; base < 4096; base += 1u << need) {
          const auto found = taken.lower_bound(base);
          REQUIRE((found != taken.end() && *found < base + (1u << need)));
        }
        continue;
      }
      if (r.base < 128) {                             // its own
        REQUIRE(need <= 1);
        REQUIRE(r.base == 10);
        continue;
      }
      REQUIRE(r.log2 >= need);
      REQUIRE(r.log2 <= 7);
      REQUIRE(r.base % (1u << r.log2) == 0);
      for (unsigned k = 0; k < 1u << r.log2; ++k) REQUIRE(taken.insert(r.base + k).second);
      granted.push_back(r);
    } else {
      const auto at = random.below(granted.size());
      const fw::Region r = granted[at];
      granted.erase(granted.begin() + static_cast<std::ptrdiff_t>(at));
      for (unsigned k = 0; k < 1u << r.log2; ++k) taken.erase(r.base + k);
      pool.give(r);
    }
    REQUIRE(pool.units_free() == 4096 - 128 - taken.size());
  }
  for (const auto& r : granted) pool.give(r);
  for (unsigned n = 0; n < (4096 - 128) / 128; ++n) REQUIRE(pool.grant(5, 7, 7).log2 == 7);
  REQUIRE(pool.grant(5, 2, 2).log2 == 1);
}

TEST_CASE("many who want much get a part each") {
  // the receive slots of `wide`
  using Pool = fw::RegionPool<4096, 1280, 1, 7>;
  static Pool pool;
  pool.init();
  std::vector<unsigned> sizes;
  for (unsigned owner = 0; owner < 64; ++owner) {
    sizes.push_back(1u << pool.grant(owner, 1, 9).log2);
    REQUIRE(sizes.back() >= 2);
  }
  CHECK(sizes.front() == 128);
  CHECK(std::is_sorted(sizes.rbegin(), sizes.rend()));
  CHECK(sizes.back() == 8);
}

TEST_CASE("free numbers are reused as late as possible") {
  Random random;
  static fw::IndexPool<1000> pool;
  pool.init(1);
  std::set<unsigned> taken;
  unsigned last = 0;
  for (unsigned n = 0; n < 3000; ++n) {               // one at a time: round and round
    const unsigned k = pool.take();
    REQUIRE(k == last % 999 + 1);
    last = k;
    pool.give(k);
  }
  for (std::size_t step = 0; step < scaled(30000); ++step) {
    if (random.chance(taken.size() < 900 ? 0.6 : 0.45)) {
      const unsigned k = pool.take();
      if (taken.size() == 999) {
        REQUIRE(k == 1000);
        continue;
      }
      REQUIRE(k >= 1);
      REQUIRE(k < 1000);
      REQUIRE(taken.insert(k).second);
    } else if (!taken.empty()) {
      const unsigned k = *std::next(taken.begin(),
                                    static_cast<std::ptrdiff_t>(random.below(taken.size())));
      taken.erase(k);
      pool.give(k);
    }
  }
}
