// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The groups of figures. Each measures those of its figures that are wanted, on queue pairs that it
// brings up if they are not there yet, and leaves the NICs at rest.
#pragma once

#include "figures.hpp"
#include "rig.hpp"

namespace roci::bench {

/// Payload per cycle of 64 KB WRITEs and READs on one queue pair; of `wide` the speed of the
/// simulation, too.
void measure_bandwidth(Rig& rig, const Options& options, Results& results);
/// Cycles per 64 B message with 1, 64 and 1024 queue pairs.
void measure_rates(Rig& rig, const Options& options, Results& results);
/// First beat and completion of one WRITE.
void measure_latency(Rig& rig, const Options& options, Results& results);
/// Cycles of admin commands.
void measure_commands(Rig& rig, const Options& options, Results& results);

}  // namespace roci::bench
