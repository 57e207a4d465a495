// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The seed of a random test, so that a failure can be replayed.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace roci {

/// ROCI_SEED of the environment, else the given seed. Tests print it: INFO("ROCI_SEED=" << seed).
inline uint64_t test_seed(uint64_t otherwise) {
  const char* text = std::getenv("ROCI_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

}  // namespace roci
