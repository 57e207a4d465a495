// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Latency of one WRITE on NICs at rest: the worst of several, at changing phases of the clocks.
#include "groups.hpp"

#include <algorithm>

namespace roci::bench {

void measure_latency(Rig& rig, const Options& options, Results& results) {
  const char* first64 = "first_beat_64_cycles";
  const char* first4096 = "first_beat_4096_cycles";
  const char* to_cqe = "write64_post_to_cqe_cycles";
  if (!options.wants(first64) && !options.wants(first4096) && !options.wants(to_cqe)) return;
  rig.grow(1);
  progress("latency");
  rig.warm(65536);
  const auto worst = [&](uint32_t bytes) {
    Rig::Single all;
    for (unsigned i = 0; i < (options.quick ? 4u : 16u); ++i) {
      const Rig::Single one = rig.single_write(bytes, 4096 * (i % 8));
      all.first_beat = std::max(all.first_beat, one.first_beat);
      all.post_to_cqe = std::max(all.post_to_cqe, one.post_to_cqe);
    }
    return all;
  };
  if (options.wants(first64) || options.wants(to_cqe)) {
    const Rig::Single small = worst(64);
    if (options.wants(first64)) results.set(first64, static_cast<double>(small.first_beat));
    if (options.wants(to_cqe)) results.set(to_cqe, static_cast<double>(small.post_to_cqe));
  }
  if (options.wants(first4096)) results.set(first4096, static_cast<double>(worst(4096).first_beat));
}

}  // namespace roci::bench
