// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Which transitions MODIFY_QP makes, and which attributes each demands and allows: the table of the
// InfiniBand specification (11.2.5.2, wire.md 2.15) as Linux's ib_modify_qp_is_ok has it, without path
// migration. Transitions to RESET and ERR are in code (commands/qp_modify.cpp): they take none.
#pragma once

#include "call.hpp"

namespace roci::fw::transition {

using hwif::QpState;
using hwif::QpType;

// Bits of qp_attribute_mask.
template <class Field>
constexpr uint32_t bit = uint32_t{1} << Field::AT;
using M = hwif::QpAttributeMask;
constexpr uint32_t STATE = bit<M::state>, CUR = bit<M::cur_state>,
                   NOTIFY = bit<M::sqd_async_notify>, RIGHTS = bit<M::rights>,
                   PKEY = bit<M::pkey_index>, PORT = bit<M::port>, QKEY = bit<M::qkey>,
                   PATH = bit<M::path>, MTU = bit<M::path_mtu>, TIMEOUT = bit<M::timeout>,
                   RETRY = bit<M::retry_count>, RNR = bit<M::rnr_retry>, RQ_PSN = bit<M::rq_psn>,
                   INITIATOR = bit<M::initiator_depth>, MIN_RNR = bit<M::min_rnr_timer>,
                   SQ_PSN = bit<M::sq_psn>, RESPONDER = bit<M::responder_depth>,
                   DEST = bit<M::dest_qpn>;

/// Attributes of a transition. Nothing is possible without STATE in `optional`.
struct Attributes {
  uint32_t required, optional;
};
constexpr Attributes NONE = {0, 0};

struct Transition {
  QpState from, to;
  Attributes of[3];                // RC, UC, datagrams
};

// All attributes of a connection, which UC has in part.
constexpr uint32_t CONNECTION = PATH | MTU | DEST | RQ_PSN;

constexpr Transition table[] = {
    {QpState::RESET, QpState::INIT,
     {{PKEY | PORT | RIGHTS, STATE}, {PKEY | PORT | RIGHTS, STATE}, {PKEY | PORT | QKEY, STATE}}},
    {QpState::INIT, QpState::INIT,
     {{0, STATE | PKEY | PORT | RIGHTS},
      {0, STATE | PKEY | PORT | RIGHTS},
      {0, STATE | PKEY | PORT | QKEY}}},
    {QpState::INIT, QpState::RTR,
     {{CONNECTION | RESPONDER | MIN_RNR, STATE | RIGHTS | PKEY},
      {CONNECTION, STATE | RIGHTS | PKEY},
      {0, STATE | PKEY | QKEY}}},
    {QpState::RTR, QpState::RTS,
     {{TIMEOUT | RETRY | RNR | SQ_PSN | INITIATOR, STATE | CUR | RIGHTS | MIN_RNR},
      {SQ_PSN, STATE | CUR | RIGHTS},
      {SQ_PSN, STATE | CUR | QKEY}}},
    {QpState::RTS, QpState::RTS,
     {{0, STATE | CUR | RIGHTS | MIN_RNR}, {0, STATE | CUR | RIGHTS}, {0, STATE | CUR | QKEY}}},
    {QpState::RTS, QpState::SQD, {{0, STATE | NOTIFY}, {0, STATE | NOTIFY}, {0, STATE | NOTIFY}}},
    {QpState::SQD, QpState::RTS,
     {{0, STATE | CUR | RIGHTS | MIN_RNR}, {0, STATE | CUR | RIGHTS}, {0, STATE | CUR | QKEY}}},
    {QpState::SQD, QpState::SQD,
     {{0, STATE | PORT | PATH | TIMEOUT | RETRY | RNR | INITIATOR | RESPONDER | RIGHTS | PKEY |
              MIN_RNR},
      {0, STATE | PATH | RIGHTS | PKEY},
      {0, STATE | PKEY | QKEY}}},
    {QpState::SQE, QpState::RTS, {NONE, {0, STATE | CUR | RIGHTS}, {0, STATE | CUR | QKEY}}},
};

/// Attributes of a transition, neither to RESET nor to ERR, of a queue pair of this type.
inline Attributes attributes(QpState from, QpState to, QpType type) {
  for (const Transition& t : table) {
    if (t.from != from || t.to != to) continue;
    Attributes out = t.of[type == QpType::RC ? 0 : type == QpType::UC ? 1 : 2];
    if (type == QpType::GSI) {     // it is of its port
      out.required &= ~PORT;
      out.optional &= ~PORT;
    }
    return out;
  }
  return NONE;
}

/// Field that is to blame for the lowest one of these bits.
inline AdminField field_of(uint32_t bits) {
  constexpr AdminField fields[] = {
      AdminField::STATE, AdminField::CUR_STATE, AdminField::SQD_ASYNC_NOTIFY, AdminField::RIGHTS,
      AdminField::PKEY_INDEX, AdminField::PORT, AdminField::QKEY, AdminField::PATH,
      AdminField::PATH_MTU, AdminField::TIMEOUT, AdminField::RETRY_COUNT, AdminField::RNR_RETRY,
      AdminField::RQ_PSN, AdminField::INITIATOR_DEPTH, AdminField::MASK, AdminField::MIN_RNR_TIMER,
      AdminField::SQ_PSN, AdminField::RESPONDER_DEPTH, AdminField::MASK, AdminField::MASK,
      AdminField::DEST_QPN};
  const auto n = lowest(bits);
  return n < sizeof(fields) / sizeof(fields[0]) ? fields[n] : AdminField::MASK;
}

}  // namespace roci::fw::transition
