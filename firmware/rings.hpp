// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What the commands of all objects with a ring have in common.
#pragma once

#include "context.hpp"

namespace roci::fw {

/// Alignment of every ring in host memory.
inline constexpr uint32_t RING_ALIGNMENT = 4096;

/// Row of the columns QP_DB, CQ_DB, EQ_DB and SRQ_DB.
inline hwif::CtxQpDb doorbell_row(uint32_t number, uint32_t page, unsigned fn, bool takes_send,
                                  bool takes_receive) {
  using D = hwif::CtxQpDb;
  D row{};
  row.set<D::number>(number);
  row.set<D::page>(static_cast<uint8_t>(page));
  row.set<D::fn>(static_cast<uint8_t>(fn));
  row.set<D::takes_send>(takes_send);
  row.set<D::takes_receive>(takes_receive);
  return row;
}

/// Takes `valid` away from word 1 of a row (CQ, EQ, RQ).
template <class Row>
void clear_valid(hwif::CtxColumn column, uint32_t index) {
  Row row;
  ctx_read_row(row, column, index, 1, 1);
  row.template set<typename Row::valid>(false);
  ctx_write(column, index, 1, row_word(row, 1));
}

}  // namespace roci::fw
