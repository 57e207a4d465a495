// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Bandwidth of long messages.
#include <algorithm>

#include "groups.hpp"

namespace roci::bench {

namespace {

constexpr uint32_t kMessage = 65536;

Load long_messages(ibv_wr_opcode opcode, unsigned warm, unsigned measured) {
  Load load;
  load.opcode = opcode;
  load.bytes = kMessage;
  load.depth = 16;
  load.list = 4;
  load.signal_every = 1;
  load.warm = warm;
  load.measured = measured;
  load.tail = 4;
  return load;
}

// Of one NIC: both run in this thread.
double simulation_khz(const Rate& rate) {
  return 2e-3 * static_cast<double>(rate.cycles) / rate.cpu_seconds;
}

}  // namespace

void measure_bandwidth(Rig& rig, const Options& options, Results& results) {
  const bool wide = rig.chip() == sim::ChipConfig::wide;
  const std::string prefix = wide ? "" : "narrow_";
  const std::string write_key = prefix + "write_bytes_per_cycle";
  const std::string read_key = prefix + "read_bytes_per_cycle";
  const char* speed_key = "sim_khz_one_wide_nic";
  const bool speed = wide && options.wants(speed_key);
  if (!options.wants(write_key) && !options.wants(read_key) && !speed) return;
  rig.grow(1);
  const unsigned warm = wide ? 8 : 3;
  const unsigned measured = !wide ? 5 : options.quick ? 8 : 24;
  if (options.wants(write_key) || speed) {
    progress(write_key);
    const Load load = long_messages(IBV_WR_RDMA_WRITE, warm, measured);
    rig.warm((load.warm + load.measured + load.tail) * kMessage);
    const Rate rate = rig.run(load);
    if (options.wants(write_key)) results.set(write_key, kMessage / rate.cycles_per_message);
    if (speed) {
      // the fastest of several runs: what else the machine does only makes it slower
      double khz = simulation_khz(rate);
      const unsigned runs = options.quick ? 2 : 24;
      for (unsigned n = 1; n < runs; ++n) khz = std::max(khz, simulation_khz(rig.run(load)));
      results.set(speed_key, khz);
    }
  }
  if (options.wants(read_key)) {
    progress(read_key);
    const Load load = long_messages(IBV_WR_RDMA_READ, warm, measured);
    rig.warm((load.warm + load.measured + load.tail) * kMessage);
    results.set(read_key, kMessage / rig.run(load).cycles_per_message);
  }
}

}  // namespace roci::bench
