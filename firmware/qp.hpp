// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Contexts of a queue pair: the rows of its columns, in the states of its life.
//
// CREATE_QP writes what never changes (rings, queues, owner) into the columns, and the parts that need
// regions with the QP's own minimal ones. The way to RTS then adds, always before the state changes:
//   → INIT  all dynamic state afresh, receive queue, doorbells, P_Key and rights
//   → RTR   the peer: path, expected PSN, replay region
//   → RTS   the sending side: PSN, limits, in-flight and READ regions
// Writing the sending side at RTR → RTS is safe: nothing is sent before, and the rows that start the
// send queue afresh (QP_SQ, QP_TX_DYN, QP_ACK) make void what a too early doorbell may have begun.
#pragma once

#include "call.hpp"
#include "context.hpp"

namespace roci::fw {

/// The columns of a queue pair that several commands read and change. Words are read from the
/// hardware when they are asked for.
struct QpRows {
  hwif::CtxQpTx tx;
  hwif::CtxQpAck ack;
  hwif::CtxQpRead read;
  hwif::CtxQpRq rq;
  hwif::CtxQpResp resp;
};

/// Regions of a queue pair.
struct QpRegions {
  Region inflight;
  Region read;
  Region replay;
};

/// Present state of the queue pair, from hardware.
hwif::QpState qp_state(unsigned index);

/// Reads the rows' static words.
void read_rows(unsigned index, QpRows& rows);
/// The regions that rows tell of.
QpRegions regions_of(const QpRows& rows);
/// Sets regions in rows.
void set_regions(QpRows& rows, const QpRegions& regions);

/// Whether everything that the queue pair has sent is acknowledged.
bool is_drained(unsigned index);

/// Attributes whose row does not depend on others.
hwif::CtxQpRetry retry_row(unsigned retry_count, unsigned rnr_retry);

}  // namespace roci::fw
