// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Everything a unit test of an RTL module includes; tests/unit/README.md has a complete example.
//
// The build defines DUT_HEADER, DUT_CLASS and ROCI_CONFIG_NAME per test executable.
#pragma once

#include "harness/bits.hpp"
#include "harness/context_bus.hpp"
#include "harness/dut.hpp"
#include "harness/random.hpp"
#include "harness/sided_source.hpp"
#include "harness/stream.hpp"
