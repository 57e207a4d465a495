// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A scenario: a row of wire.md §4, and the script that plays it.
#pragma once

#include <vector>

namespace roci::conformance {

class Bench;

/// How many rows the table has.
inline constexpr unsigned kAllScenarios = 50;

/// One scenario. Each is a constant of its own file (scenarios/NN_….cpp) and enters itself into the
/// list of all.
struct Scenario {
  Scenario(unsigned id, const char* name, const char* expected, void (*play)(Bench&));
  Scenario(const Scenario&) = delete;
  Scenario& operator=(const Scenario&) = delete;

  unsigned id;           ///< number of the row
  const char* name;      ///< what happens
  const char* expected;  ///< what must follow
  void (*play)(Bench&);

  /// All of this program, by number.
  static std::vector<const Scenario*> all();
};

}  // namespace roci::conformance
