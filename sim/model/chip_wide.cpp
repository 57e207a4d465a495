// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The chip in the configuration `wide`.
#include <Vroci_wide.h>

#include "model/verilated_chip.hpp"

namespace roci::sim {

std::unique_ptr<Chip> make_wide_chip(uint64_t seed) {
  return std::make_unique<VerilatedChip<Vroci_wide, 1024, 1>>(seed);
}

}  // namespace roci::sim
