// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// nicsim: subcommands, errors to exit codes.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "nicsim/options.hpp"
#include "nicsim/run.hpp"

int main(int argc, char** argv) {
  using namespace roci::sim;
  // who reads our output may go (| head): the NICs go on
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const Options options = parse_options(std::vector<std::string>(argv + 1, argv + argc));
    switch (options.command) {
      case Command::help: std::fputs(usage(options.help_about).c_str(), stdout); return 0;
      case Command::inject: return inject(options);
      case Command::stats: return stats(options);
      case Command::run:
      case Command::serve: return run(options);
    }
    return kExitFailure;
  } catch (const UsageError& error) {
    say(std::string(error.what()) + "; --help has more");
    return kExitUsage;
  } catch (const std::exception& error) {
    say(error.what());
    return kExitFailure;
  }
}
