// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "model/chip.hpp"

namespace roci::sim {

std::unique_ptr<Chip> make_wide_chip(uint64_t seed);
std::unique_ptr<Chip> make_narrow_chip(uint64_t seed);

std::string_view to_string(ChipConfig config) {
  return config == ChipConfig::wide ? "wide" : "narrow";
}

std::unique_ptr<Chip> make_chip(ChipConfig config, uint64_t seed) {
  return config == ChipConfig::wide ? make_wide_chip(seed) : make_narrow_chip(seed);
}

}  // namespace roci::sim
