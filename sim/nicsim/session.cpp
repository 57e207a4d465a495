// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "nicsim/session.hpp"

#include <roci/error.hpp>

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "nicsim/options.hpp"

namespace roci::sim {
namespace {

using namespace std::chrono_literals;

// How often the kernel's tables are read for a program that shall listen.
constexpr auto kListenPause = 20ms;

// After the programs, until the simulation rests: more than a reset of all functions takes.
constexpr unsigned kLastTurns = 8192;

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

// Under nohup the end of the terminal is no end of ours.
bool is_ours(int signal) {
  struct sigaction now {};
  return signal != SIGHUP || (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN);
}

sigset_t ours() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) {
    if (is_ours(signal)) sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

SignalBlock::SignalBlock() {
  const sigset_t set = ours();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
}

SignalBlock::~SignalBlock() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::optional<int> SignalBlock::waiting() {
  sigset_t pending;
  sigpending(&pending);
  for (const int signal : kSignals) {
    if (sigismember(&pending, signal) == 1) return signal;
  }
  return std::nullopt;
}

std::optional<int> SignalBlock::take() {
  const sigset_t set = ours();
  const timespec now{0, 0};
  const int signal = sigtimedwait(&set, nullptr, &now);
  return signal > 0 ? std::optional(signal) : std::nullopt;
}

Session::Session(Server& server, Simulation& simulation, Notice notice, Patience patience)
    : server_(server), simulation_(simulation), notice_(std::move(notice)), patience_(patience) {
  const sigset_t set = ours();
  signals_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) fail(errno, "signalfd: %s", errno_text(errno).c_str());
  server_.watch(signals_.get(), [this] {
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == sizeof info) {
      signal_ = static_cast<int>(info.ssi_signo);
      for (const auto& program : programs_) program->send_signal(signal_);
    }
  });
}

Session::~Session() {
  server_.unwatch(signals_.get());
  for (const auto& program : programs_) server_.unwatch(program->end_fd());
}

void Session::turn(std::chrono::milliseconds most) {
  server_.poll(simulation_.frozen() ? most : 0ms);
  simulation_.run();
}

void Session::serve() {
  while (signal_ == 0) turn(-1ms);
}

Program& Session::start(const std::vector<std::string>& argv, const Environment& environment) {
  programs_.push_back(std::make_unique<Program>(argv, environment));
  results_.push_back({argv, 0});
  Program& program = *programs_.back();
  server_.watch(program.end_fd(), [this, index = programs_.size() - 1] { collect(index); });
  return program;
}

void Session::collect(size_t program) {
  const auto status = programs_[program]->status();
  if (!status) return;
  results_[program].exit = *status;
  if (*status != 0 && !failed_) {
    failed_ = true;
    status_ = *status;
  }
}

bool Session::running() const {
  return std::any_of(programs_.begin(), programs_.end(),
                     [](const auto& program) { return !program->status(); });
}

void Session::end_stragglers(Clock::time_point since, int& sent) {
  const auto waited = Clock::now() - since;
  // SIGTERM first, however late we come
  const int due =
      std::min(sent + 1, waited > 2 * patience_.end ? 2 : waited > patience_.end ? 1 : 0);
  if (due <= sent) return;
  sent = due;
  for (const auto& program : programs_) {
    if (program->status()) continue;
    notice_("ends " + program->argv().front() + ", which goes on alone");
    program->send_signal(due == 1 ? SIGTERM : SIGKILL);
  }
}

// Until all programs have ended; once one failed the others get little time.
int Session::finish() {
  std::optional<Clock::time_point> since;
  int sent = 0;
  while (running()) {
    if (!since && (failed_ || signal_ != 0)) since = Clock::now();
    if (since) end_stragglers(*since, sent);
    turn(since ? 100ms : -1ms);
    // an ended program's descriptor stays readable: it would keep the loop awake
    for (size_t i = 0; i < programs_.size(); ++i) {
      if (!programs_[i]->status()) continue;
      collect(i);
      server_.unwatch(programs_[i]->end_fd());
    }
  }
  for (size_t i = 0; i < programs_.size(); ++i) {
    collect(i);
    server_.unwatch(programs_[i]->end_fd());
  }
  // What the programs left: the server resets their functions, what is under way arrives and is
  // answered. The first turn is for sockets that closed while the simulation rested.
  for (unsigned i = 0; i == 0 || (i < kLastTurns && !simulation_.frozen()); ++i) turn(0ms);
  return signal_ != 0 ? kExitSignal + signal_ : status_;
}

int Session::run(const std::vector<std::string>& argv, const Environment& environment) {
  server_.poll(0ms);
  if (signal_ != 0) return kExitSignal + signal_;
  start(argv, environment);
  return finish();
}

bool Session::wait_for_listener(Program& server) {
  const auto begin = Clock::now();
  Clock::duration rested{};
  auto next_look = begin;
  while (!server.status() && signal_ == 0) {
    const auto now = Clock::now();
    if (now >= next_look) {
      if (server.listens()) return true;
      next_look = now + kListenPause;
    }
    if (rested > patience_.listen || now - begin > patience_.listen_at_most) {
      notice_(server.argv().front() + " does not listen on TCP within " +
              std::to_string(patience_.listen.count() / 1000) + " s: no client is started");
      return false;
    }
    const bool rests = simulation_.frozen();
    turn(kListenPause);
    if (rests) rested += Clock::now() - now;
  }
  if (server.status() && signal_ == 0) {
    notice_(server.argv().front() + " ended before it listened on TCP: no client is started");
  }
  return false;
}

int Session::run_pair(const std::vector<std::string>& argv, const Environment& environment) {
  server_.poll(0ms);
  if (signal_ != 0) return kExitSignal + signal_;
  Environment of_server = environment;
  of_server.emplace_back("ROCI_DEVICES", "roci0");
  Program& server = start(argv, of_server);
  if (!wait_for_listener(server)) {
    const bool by_itself = server.status().has_value();
    if (!by_itself) server.send_signal(signal_ != 0 ? signal_ : SIGTERM);
    if (!by_itself && signal_ == 0) {
      failed_ = true;
      status_ = kExitFailure;
    }
    const int status = finish();
    return status != 0 ? status : kExitFailure;
  }
  Environment of_client = environment;
  of_client.emplace_back("ROCI_DEVICES", "roci1");
  std::vector<std::string> with_address = argv;
  with_address.emplace_back("127.0.0.1");
  start(with_address, of_client);
  return finish();
}

}  // namespace roci::sim
