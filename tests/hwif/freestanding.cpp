// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Compiled, not run, by the test hwif_freestanding: the generated header needs no C++ library and
// no 64-bit machine, and gives the same bytes in constant expressions on RV32.
#include "roci_hwif.hpp"

namespace hwif = roci::hwif;

// Crosses words of 32 bits on both sides.
constexpr hwif::Cqe completion() {
  hwif::Cqe cqe{};
  cqe.set<hwif::Cqe::qpn>(0x123456)
      .set<hwif::Cqe::opcode>(hwif::CqeOpcode::RECV_IMM)
      .set<hwif::Cqe::timestamp>(0xa1b2c3d4e5f6)
      .set<hwif::Cqe::status>(hwif::CqeStatus::WR_FLUSH_ERR)
      .set<hwif::Cqe::phase>(true);
  return cqe;
}
static_assert(sizeof(completion().words[0]) == 4);
static_assert(completion().byte(0) == 0x56 && completion().byte(3) == 0x81);
static_assert(completion().byte(24) == 0xf6 && completion().byte(29) == 0xa1);
static_assert(completion().byte(31) == 0x85);
static_assert(completion().get<hwif::Cqe::timestamp>() == 0xa1b2c3d4e5f6);

/// A 64-bit doorbell in two 32-bit stores, as firmware or a 32-bit host does it.
void ring(volatile uint32_t* page, uint32_t qpn, uint32_t index) {
  hwif::Doorbell doorbell{};
  doorbell.set<hwif::Doorbell::kind>(hwif::DoorbellKind::SQ)
      .set<hwif::Doorbell::object>(qpn)
      .set<hwif::Doorbell::index>(index);
  page[0] = doorbell.words[0];
  page[1] = doorbell.words[1];
}
