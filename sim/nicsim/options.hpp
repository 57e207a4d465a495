// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Command line of nicsim. Fixed: others script it (docs of the options: usage()).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "fabric/fabric.hpp"
#include "host_memory/host_memory.hpp"
#include "model/chip.hpp"

namespace roci::sim {

enum class Command : uint8_t { help, run, serve, inject, stats };

/// Exit codes of nicsim itself; otherwise the program's.
inline constexpr int kExitUsage = 2;
inline constexpr int kExitFailure = 125;
inline constexpr int kExitSignal = 128;

/// What the command line says. Times in ns.
struct Options {
  Command command = Command::help;
  Command help_about = Command::help;  ///< for help: which subcommand
  unsigned nics = 2;
  ChipConfig config = ChipConfig::wide;
  bool pair = false;
  uint64_t seed = 1;
  double loss = 0, duplicate = 0, reorder = 0, corrupt = 0;
  double latency_ns = 500;
  double memory_read_ns = 1000;
  double memory_write_ns = 400;
  std::optional<double> rate;  ///< bytes per cycle; none: that of the configuration
  bool skip_time = true;
  std::string pcap;
  std::string report;
  std::vector<std::string> foreign;   ///< sockets of ports of the switch for other implementations
  double foreign_quiet_ms = 20;       ///< wall time of silence there before time may be skipped
  bool json = false;                  ///< stats: JSON, not a table
  std::optional<double> watch_s;      ///< stats: again and again, with so many seconds between
  std::string folder;                 ///< serve, stats: --dir, or empty
  std::optional<uint64_t> mac;        ///< inject: first wire byte most significant
  std::optional<std::array<uint8_t, 16>> gid;
  std::vector<std::string> program;   ///< run: program and arguments

  /// Core clock period.
  unsigned ns_per_cycle() const { return config == ChipConfig::wide ? 4 : 8; }
  /// Nearest number of cycles, at least 1.
  uint32_t cycles(double ns) const;
  /// The fabric that the options describe; ports and beat width are the world's business.
  FabricConfig fabric() const;
  /// The same of the host memory.
  HostMemoryConfig memory() const;
};

/// The command line is wrong; the text says where.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Whether a port can have this GID: it is neither zero nor multicast (IBTA 4.1.1).
bool can_be_of_port(const std::array<uint8_t, 16>& gid);

/// Reads the command line, without the name of the program itself.
/// @throws UsageError
Options parse_options(const std::vector<std::string>& words);

/// Text of --help for a subcommand, or for nicsim (Command::help).
std::string usage(Command command);

}  // namespace roci::sim
