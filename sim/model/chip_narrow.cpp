// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The chip in the configuration `narrow`.
#include <Vroci_narrow.h>

#include "model/verilated_chip.hpp"

namespace roci::sim {

std::unique_ptr<Chip> make_narrow_chip(uint64_t seed) {
  return std::make_unique<VerilatedChip<Vroci_narrow, 512, 2>>(seed);
}

}  // namespace roci::sim
