// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/scenario.hpp"

#include <algorithm>

namespace roci::conformance {

namespace {

// Filled before main() starts, in any order.
std::vector<const Scenario*>& entered() {
  static std::vector<const Scenario*> list;
  return list;
}

}  // namespace

Scenario::Scenario(unsigned number, const char* what, const char* must_follow, void (*script)(Bench&))
    : id(number), name(what), expected(must_follow), play(script) {
  entered().push_back(this);
}

std::vector<const Scenario*> Scenario::all() {
  std::vector<const Scenario*> list = entered();
  std::sort(list.begin(), list.end(),
            [](const Scenario* a, const Scenario* b) { return a->id < b->id; });
  return list;
}

}  // namespace roci::conformance
