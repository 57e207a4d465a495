// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "groups.hpp"

#include <algorithm>
#include <string_view>

namespace roci::bench {

namespace {

bool any_wanted(const Options& options, bool narrow) {
  const auto all = figures();
  return std::any_of(all.begin(), all.end(), [&](const Figure& figure) {
    return std::string_view(figure.key).starts_with("narrow_") == narrow &&
           options.wants(figure.key);
  });
}

}  // namespace

void measure_wide(const Options& options, Results& results) {
  if (!any_wanted(options, false)) return;
  progress("two wide NICs come up");
  Rig rig(sim::ChipConfig::wide, options, 8u << 20);
  measure_bandwidth(rig, options, results);
  measure_latency(rig, options, results);
  measure_commands(rig, options, results);
  measure_rates(rig, options, results);
}

void measure_narrow(const Options& options, Results& results) {
  if (!any_wanted(options, true)) return;
  progress("two narrow NICs come up");
  Rig rig(sim::ChipConfig::narrow, options, 1u << 20);
  measure_bandwidth(rig, options, results);
}

}  // namespace roci::bench
