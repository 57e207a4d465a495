// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The subcommands run, serve and inject.
#pragma once

#include "nicsim/options.hpp"

namespace roci::sim {

/// A line of nicsim's own on stderr, with its prefix.
void say(const std::string& text);

/// nicsim run and nicsim serve. @return exit status @throws on own failures
int run(const Options& options);

/// nicsim inject. @return exit status: 0, or 2 if the capture is unreadable @throws on own failures
int inject(const Options& options);

}  // namespace roci::sim
