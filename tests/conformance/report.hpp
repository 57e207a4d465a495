// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What came of the scenarios: a table for people, JSON for programs.
#pragma once

#include "conformance/scenario.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace roci::conformance {

/// What came of one.
struct Result {
  const Scenario* scenario = nullptr;
  bool pass = false;
  std::string seen;
  double seconds = 0;  ///< of wall time
};

/// The table: number, scenario, expected, seen, verdict.
std::string table(const std::vector<Result>& results);

/// `{"device":"","seed":1,"of":50,"scenarios":[{"id":17,"name":"","verdict":"pass","seen":""}]}`
std::string json(const std::vector<Result>& results, const std::string& device, uint64_t seed);

}  // namespace roci::conformance
