// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// MODIFY_QP: every pair of states of every type of queue pair, with every mask that is one bit off from
// the least or from the most that the transition takes, against a table of its own: by attribute, where
// the firmware's is by type.
#include <map>

#include "rig.hpp"

using namespace roci::test;
namespace hwif = roci::hwif;
namespace fw = roci::fw;
using A = hwif::QpAttributes;

namespace {

constexpr hwif::QpType TYPES[] = {hwif::QpType::RC, hwif::QpType::UC, hwif::QpType::UD,
                                  hwif::QpType::GSI};
constexpr QpState STATES[] = {QpState::RESET, QpState::INIT, QpState::RTR, QpState::RTS,
                              QpState::SQD,   QpState::SQE,  QpState::ERR};

/// For RC, UC, UD, GSI: r required, o optional, - refused. `exists`: x or -.
struct Row {
  const char* exists;
  std::map<std::uint32_t, const char*> attributes;
};

// IBTA 11.2.5.2 and wire.md 2.15; path migration and rate limits are not part of the interface.
const std::map<std::pair<QpState, QpState>, Row> TABLE = {
    {{QpState::RESET, QpState::INIT},
     {"xxxx",
      {{MASK_PKEY, "rrrr"}, {MASK_PORT, "rrr-"}, {MASK_RIGHTS, "rr--"}, {MASK_QKEY, "--rr"}}}},
    {{QpState::INIT, QpState::INIT},
     {"xxxx",
      {{MASK_PKEY, "oooo"}, {MASK_PORT, "ooo-"}, {MASK_RIGHTS, "oo--"}, {MASK_QKEY, "--oo"}}}},
    {{QpState::INIT, QpState::RTR},
     {"xxxx",
      {{MASK_PATH, "rr--"},
       {MASK_MTU, "rr--"},
       {MASK_DEST, "rr--"},
       {MASK_RQ_PSN, "rr--"},
       {MASK_RESPONDER, "r---"},
       {MASK_MIN_RNR, "r---"},
       {MASK_RIGHTS, "oo--"},
       {MASK_PKEY, "oooo"},
       {MASK_QKEY, "--oo"}}}},
    {{QpState::RTR, QpState::RTS},
     {"xxxx",
      {{MASK_SQ_PSN, "rrrr"},
       {MASK_TIMEOUT, "r---"},
       {MASK_RETRY, "r---"},
       {MASK_RNR, "r---"},
       {MASK_INITIATOR, "r---"},
       {MASK_CUR, "oooo"},
       {MASK_RIGHTS, "oo--"},
       {MASK_MIN_RNR, "o---"},
       {MASK_QKEY, "--oo"}}}},
    {{QpState::RTS, QpState::RTS},
     {"xxxx",
      {{MASK_CUR, "oooo"}, {MASK_RIGHTS, "oo--"}, {MASK_MIN_RNR, "o---"}, {MASK_QKEY, "--oo"}}}},
    {{QpState::RTS, QpState::SQD}, {"xxxx", {{MASK_NOTIFY, "oooo"}}}},
    {{QpState::SQD, QpState::RTS},
     {"xxxx",
      {{MASK_CUR, "oooo"}, {MASK_RIGHTS, "oo--"}, {MASK_MIN_RNR, "o---"}, {MASK_QKEY, "--oo"}}}},
    {{QpState::SQD, QpState::SQD},
     {"xxxx",
      {{MASK_PORT, "o---"},
       {MASK_PATH, "oo--"},
       {MASK_TIMEOUT, "o---"},
       {MASK_RETRY, "o---"},
       {MASK_RNR, "o---"},
       {MASK_INITIATOR, "o---"},
       {MASK_RESPONDER, "o---"},
       {MASK_RIGHTS, "oo--"},
       {MASK_PKEY, "oooo"},
       {MASK_MIN_RNR, "o---"},
       {MASK_QKEY, "--oo"}}}},
    // hardware brings no RC there
    {{QpState::SQE, QpState::RTS},
     {"-xxx", {{MASK_CUR, "-ooo"}, {MASK_RIGHTS, "-o--"}, {MASK_QKEY, "--oo"}}}},
};

/// What the answer to a mask has to be.
struct Expected {
  bool ok;
  AdminField field;                // that is to blame
};

AdminField blamed(unsigned bit) {
  switch (1u << bit) {
    case MASK_STATE: return AdminField::STATE;
    case MASK_CUR: return AdminField::CUR_STATE;
    case MASK_NOTIFY: return AdminField::SQD_ASYNC_NOTIFY;
    case MASK_RIGHTS: return AdminField::RIGHTS;
    case MASK_PKEY: return AdminField::PKEY_INDEX;
    case MASK_PORT: return AdminField::PORT;
    case MASK_QKEY: return AdminField::QKEY;
    case MASK_PATH: return AdminField::PATH;
    case MASK_MTU: return AdminField::PATH_MTU;
    case MASK_TIMEOUT: return AdminField::TIMEOUT;
    case MASK_RETRY: return AdminField::RETRY_COUNT;
    case MASK_RNR: return AdminField::RNR_RETRY;
    case MASK_RQ_PSN: return AdminField::RQ_PSN;
    case MASK_INITIATOR: return AdminField::INITIATOR_DEPTH;
    case MASK_MIN_RNR: return AdminField::MIN_RNR_TIMER;
    case MASK_SQ_PSN: return AdminField::SQ_PSN;
    case MASK_RESPONDER: return AdminField::RESPONDER_DEPTH;
    case MASK_DEST: return AdminField::DEST_QPN;
    default: return AdminField::MASK;
  }
}

Expected expected(unsigned type, QpState from, QpState to, std::uint32_t mask) {
  if ((mask & MASK_STATE) == 0) to = from;
  std::map<std::uint32_t, const char*> attributes;
  bool exists = to == QpState::RESET || (to == QpState::ERR && from != QpState::RESET);
  if (const auto at = TABLE.find({from, to}); at != TABLE.end()) {
    exists = at->second.exists[type] == 'x';
    attributes = at->second.attributes;
  }
  if (!exists) return {false, AdminField::STATE};
  // what is missing is told before what is too much
  for (const char wrong : {'r', '-'}) {
    for (unsigned bit = 1; bit < 32; ++bit) {
      const auto at = attributes.find(1u << bit);
      const char rule = at == attributes.end() ? '-' : at->second[type];
      if (rule == wrong && ((mask >> bit & 1) != 0) == (wrong == '-')) return {false, blamed(bit)};
    }
  }
  return {true, AdminField::NONE};
}

/// A queue pair that can be brought into any state.
struct Subject {
  Rig rig{2};
  Objects objects;
  hwif::QpType type;
  unsigned fn;
  std::uint32_t qpn;
  bool moved = true;

  explicit Subject(hwif::QpType of) : type(of), fn(of == hwif::QpType::GSI ? 0 : 1) {
    objects = Objects::make(rig, fn);
    qpn = rig.make<admin::CreateQp>(fn, objects.pd, Rig::qp_params(objects.cq, objects.cq2, type));
  }
  unsigned index() const { return qpn % fw::QPS; }
  void go(QpState state) {
    if (!moved) return;
    A a{};
    a.set<A::state>(QpState::RESET);
    REQUIRE(rig.modify(fn, qpn, MASK_STATE, a).ok());
    if (state != QpState::RESET) {
      bring(rig, fn, qpn, state == QpState::SQE ? QpState::RTS : state, type);
    }
    if (state == QpState::SQE) rig.hw.set_qp_state(index(), state);
    moved = false;
  }
};

}  // namespace

TEST_CASE("MODIFY_QP: every pair of states, every type, every attribute") {
  unsigned good = 0;
  for (unsigned t = 0; t < 4; ++t) {
    Subject s(TYPES[t]);
    for (const QpState from : STATES) {
      for (const QpState to : STATES) {
        s.moved = true;
        INFO("type " << t << ": " << to_string(from) << " -> " << to_string(to));
        std::uint32_t least = MASK_STATE, most = MASK_STATE;
        if (const auto at = TABLE.find({from, to}); at != TABLE.end()) {
          for (const auto& [one, rules] : at->second.attributes) {
            if (rules[t] == 'r') least |= one;
            if (rules[t] != '-') most |= one;
          }
        }
        A a = Rig::attributes();
        a.set<A::qkey>(s.type == hwif::QpType::GSI ? hwif::QKEY_GSI : QKEY);
        a.set<A::state>(to);
        a.set<A::cur_state>(from);
        for (const std::uint32_t base : {least, most}) {
          for (unsigned bit = 0; bit <= 32; ++bit) {     // 32: none is off
            const std::uint32_t mask = bit == 32 ? base : base ^ 1u << bit;
            INFO("mask " << std::hex << mask);
            s.go(from);
            const Expected e = expected(t, from, to, mask);
            const std::uint64_t before = s.rig.hw.context_writes;
            const Answer answer = s.rig.modify(s.fn, s.qpn, mask, a);
            INFO("answer " << to_string(answer.status) << " " << to_string(answer.field));
            REQUIRE(answer.status == (e.ok ? AdminStatus::OK : AdminStatus::INVALID));
            REQUIRE(answer.field == e.field);
            const QpState next = (mask & MASK_STATE) != 0 ? to : from;
            REQUIRE(s.rig.hw.qp_state(s.index()) == (e.ok ? next : from));
            if (!e.ok) REQUIRE(s.rig.hw.context_writes == before);
            s.moved = e.ok;
            good += e.ok;
          }
        }
      }
    }
    // nothing was lost on all these ways
    s.rig.make<admin::DestroyQp>(s.fn, s.qpn);
    s.rig.make<admin::DestroyQp>(s.fn, s.objects.qp);
    CHECK(fw::state.inflight.units_free() == (1u << fw::INFLIGHT_BITS) - 8 * fw::QPS);
    CHECK(fw::state.reads.units_free() == (1u << fw::READ_BITS) - 2 * fw::QPS);
    CHECK(fw::state.replays.units_free() == (1u << fw::REPLAY_BITS) - 2 * fw::QPS);
    for (const auto users : fw::state.pkey_users) CHECK(users == 0);
  }
  CHECK(good > 300);
}

TEST_CASE("MODIFY_QP: what the caller believes in") {
  for (const hwif::QpType type : TYPES) {
    Subject s(type);
    s.go(QpState::RTS);
    A a = Rig::attributes();
    a.set<A::state>(QpState::RTS);
    for (const QpState believed : STATES) {
      a.set<A::cur_state>(believed);
      const Answer answer = s.rig.modify(s.fn, s.qpn, MASK_STATE | MASK_CUR, a);
      REQUIRE(answer.ok() == (believed == QpState::RTS));
      if (answer.ok()) continue;
      REQUIRE(answer.field == AdminField::CUR_STATE);
      REQUIRE(answer.detail == static_cast<unsigned>(QpState::RTS));
    }
  }
}
