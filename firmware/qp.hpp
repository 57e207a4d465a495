// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Contexts of a queue pair: the rows of its columns, in the states of its life.
//
// CREATE_QP writes what never changes (rings, queues, owner) into the columns, and the parts that need
// regions with the QP's own minimal ones. The way to RTS then adds, always before the state changes:
//   → INIT  all dynamic state afresh, receive queue, doorbells, P_Key and rights
//   → RTR   the peer: path, expected PSN, replay region
//   → RTS   the sending side: PSN, limits, in-flight and READ regions
// UC has neither replay entries nor READ records, timer or retries: what these columns hold of it is that
// of RC with nothing to do. UD and GSI have no peer either. What hardware needs of them in its place,
// their Q_Key and their number, lies where the GID of the peer is (ctx_qp_path, ctx_qp_rx).
// Writing the sending side at RTR → RTS is safe: nothing is sent before, and the rows that start the
// send queue afresh (QP_SQ, QP_TX_DYN, QP_ACK) make void what a too early doorbell may have begun.
#pragma once

#include "call.hpp"
#include "context.hpp"

namespace roci::fw {

/// Whether queue pairs of this type are connected; the others, UD and GSI, have no peer.
inline bool is_connected(hwif::QpType type) { return type <= hwif::QpType::UC; }

/// Present state of the queue pair, from hardware.
hwif::QpState qp_state(unsigned index);

/// The end of MODIFY_QP to RESET. Regions: to be given back then.
QpRegions finish_qp_reset(unsigned index);

/// The regions that rows tell of.
inline QpRegions regions_of(const hwif::CtxQpTx& tx, const hwif::CtxQpRq& rq) {
  using T = hwif::CtxQpTx;
  using R = hwif::CtxQpRq;
  return {{tx.get<T::inflight_base>(), tx.get<T::inflight_log2>()},
          {tx.get<T::read_base>(), tx.get<T::read_log2>()},
          {rq.get<R::replay_base>(), rq.get<R::replay_log2>()}};
}

/// Each set of three sets a region in the rows that know it.
inline void set_inflight(hwif::CtxQpTx& tx, hwif::CtxQpAck& ack, Region region) {
  tx.set<hwif::CtxQpTx::inflight_base>(region.base);
  tx.set<hwif::CtxQpTx::inflight_log2>(region.log2);
  ack.set<hwif::CtxQpAck::inflight_base>(region.base);
  ack.set<hwif::CtxQpAck::inflight_log2>(region.log2);
}
inline void set_read(hwif::CtxQpTx& tx, hwif::CtxQpRead& read, Region region) {
  tx.set<hwif::CtxQpTx::read_base>(region.base);
  tx.set<hwif::CtxQpTx::read_log2>(region.log2);
  read.set<hwif::CtxQpRead::read_base>(region.base);
  read.set<hwif::CtxQpRead::read_log2>(region.log2);
}
inline void set_replay(hwif::CtxQpRq& rq, hwif::CtxQpResp& resp, Region region) {
  rq.set<hwif::CtxQpRq::replay_base>(region.base);
  rq.set<hwif::CtxQpRq::replay_log2>(region.log2);
  resp.set<hwif::CtxQpResp::replay_base>(region.base);
  resp.set<hwif::CtxQpResp::replay_log2>(region.log2);
}

/// Whether everything that the queue pair has sent is acknowledged.
inline bool is_drained(const hwif::CtxQpTxDyn& dynamic, const hwif::CtxQpAck& ack) {
  using D = hwif::CtxQpTxDyn;
  using K = hwif::CtxQpAck;
  return dynamic.get<D::max_psn>() == ack.get<K::acked_psn>() &&
         dynamic.get<D::read_ordinal>() == ack.get<K::reads_done>();
}

/// Attributes whose row does not depend on others.
inline hwif::CtxQpRetry retry_row(unsigned retry_count, unsigned rnr_retry) {
  using Y = hwif::CtxQpRetry;
  Y row{};
  row.set<Y::retry_cnt>(static_cast<uint8_t>(retry_count));
  row.set<Y::rnr_retry>(static_cast<uint8_t>(rnr_retry));
  return row;
}

}  // namespace roci::fw
