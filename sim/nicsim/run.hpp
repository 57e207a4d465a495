// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The subcommands.
#pragma once

#include <string>
#include <vector>

#include "nicsim/options.hpp"

namespace roci::sim {

/// A line of nicsim's own on stderr, with its prefix.
void say(const std::string& text);

/// nicsim run and nicsim serve. @return exit status @throws on own failures
int run(const Options& options);

/// nicsim stats. @return exit status @throws Error if there is no simulation, or several
int stats(const Options& options);

/// Begin of the names of the folders that `nicsim run` makes for its sockets, and where they may be.
inline constexpr const char* kPrivateFolderPrefix = "nicsim-";
std::vector<std::string> private_folder_places();

/// nicsim inject. @return exit status: 0, or 2 if the capture is unreadable @throws on own failures
int inject(const Options& options);

}  // namespace roci::sim
