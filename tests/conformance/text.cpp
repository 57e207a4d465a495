// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/text.hpp"

#include <iomanip>

namespace roci::conformance {

std::string time_text(uint64_t nanoseconds) {
  static constexpr struct {
    uint64_t unit;
    const char* name;
  } kUnits[] = {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}};
  std::ostringstream out;
  for (const auto& u : kUnits) {
    if (nanoseconds < u.unit) continue;
    const double value = static_cast<double>(nanoseconds) / static_cast<double>(u.unit);
    out << std::fixed << std::setprecision(value < 10 ? 2 : value < 100 ? 1 : 0) << value << ' '
        << u.name;
    return out.str();
  }
  out << nanoseconds << " ns";
  return out.str();
}

std::string count_text(size_t count, const std::string& what) {
  return say(count, ' ', what, count == 1 ? "" : "s");
}

}  // namespace roci::conformance
