// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The loop of nicsim: clients, simulation, programs, signals, in one thread. Knows the simulation
// only by an interface, so that it is tested without RTL.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nicsim/programs.hpp"
#include "nicsim/report.hpp"
#include "server/server.hpp"

namespace roci::sim {

/// What runs between two looks at the sockets.
class Simulation {
 public:
  virtual ~Simulation() = default;
  /// Time stands still until a client acts.
  virtual bool frozen() const = 0;
  /// Lets a quantum of time pass.
  virtual void run() = 0;
};

/// Times of a session that tests shorten.
struct Patience {
  /// --pair: for the server to listen. Only time in which the simulation rests counts, since a
  /// program that waits for its NIC can do nothing; beyond `listen_at_most` it is over anyway.
  std::chrono::milliseconds listen{10000};
  std::chrono::milliseconds listen_at_most{120000};
  /// For the other program of a pair when one has failed, and for any after a signal; then SIGTERM,
  /// after the same again SIGKILL.
  std::chrono::milliseconds end{5000};
};

/// SIGINT, SIGTERM and SIGHUP wait while it exists (in this thread, and those that it starts): whoever
/// has files to remove looks for them when it suits. SIGHUP does not if it is ignored.
class SignalBlock {
 public:
  SignalBlock();
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;
  ~SignalBlock();

  /// One that waits now.
  static std::optional<int> waiting();
  /// Takes one that waits.
  static std::optional<int> take();

 private:
  sigset_t before_{};
};

/// Runs one simulation with its programs.
class Session {
 public:
  /// Both outlive the session. Signals that waited before it count, too.
  Session(Server& server, Simulation& simulation, Notice notice, Patience patience = {});
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  /// Serves until SIGINT, SIGTERM or SIGHUP comes.
  void serve();

  /// Runs a program to its end. @return exit status for nicsim
  int run(const std::vector<std::string>& argv, const Environment& environment);

  /// Runs a program as server with `environment` and ROCI_DEVICES=roci0 and, once it listens, with the
  /// argument 127.0.0.1 as client with ROCI_DEVICES=roci1. @return exit status for nicsim: of the first
  /// that fails; 125 if the server does not listen
  int run_pair(const std::vector<std::string>& argv, const Environment& environment);

  /// Programs that have run, in the order of their start.
  const std::vector<ProgramResult>& results() const { return results_; }

 private:
  using Clock = std::chrono::steady_clock;

  // One look at the sockets and one quantum. @param most  to wait while the simulation rests
  void turn(std::chrono::milliseconds most);
  Program& start(const std::vector<std::string>& argv, const Environment& environment);
  bool running() const;
  void collect(size_t program);
  bool wait_for_listener(Program& server);
  void end_stragglers(Clock::time_point since, int& sent);
  int finish();

  Server& server_;
  Simulation& simulation_;
  Notice notice_;
  Patience patience_;
  SignalBlock block_;
  UniqueFd signals_;
  int signal_ = 0;  // that arrived
  bool failed_ = false;
  int status_ = 0;  // of the first program that failed by itself
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<ProgramResult> results_;
};

}  // namespace roci::sim
