// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The RTL NIC as device under test: the simulated chip, the real host core on it, and the other end
// of its link.
#pragma once

#include "conformance/device.hpp"

#include "model/chip.hpp"

namespace roci::conformance {

/// A chip, powered up.
/// @param seed  of what the models leave open
std::unique_ptr<Device> make_rtl_device(sim::ChipConfig chip, uint64_t seed);

}  // namespace roci::conformance
