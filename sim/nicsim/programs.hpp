// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Programs that nicsim runs: start with an own environment, end, and whether one listens on TCP.
#pragma once

#include <transport/socket.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace roci::sim {

/// Names and values that a program gets on top of nicsim's own environment.
using Environment = std::vector<std::pair<std::string, std::string>>;

/// Raises this process's limit of open files as far as it may; programs that start later get what it
/// was before.
void raise_file_limit();

/// A program that was started. Kills it in the end if it still runs.
class Program {
 public:
  /// Starts it; found by PATH. Signals are as nicsim got them.
  /// @throws Error ENOENT and others: it cannot be started
  Program(std::vector<std::string> argv, const Environment& environment);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  /// Readable when it has ended.
  int end_fd() const { return process_.get(); }
  const std::vector<std::string>& argv() const { return argv_; }
  /// Exit status, or 128 + signal; nothing while it runs.
  std::optional<int> status();
  void send_signal(int signal);
  /// It or one of its descendants listens on a TCP port.
  bool listens() const;

 private:
  std::vector<std::string> argv_;
  pid_t pid_ = 0;
  UniqueFd process_;
  std::optional<int> status_;
};

/// Path of the preload library: $ROCI_PRELOAD, else near this executable; empty if there is none.
std::string find_preload_library();

}  // namespace roci::sim
