// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "nicsim/programs.hpp"

#include <roci/error.hpp>

#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace roci::sim {
namespace {

namespace fs = std::filesystem;

constexpr int kSignalBase = 128;

std::vector<std::string> merged(const Environment& environment) {
  std::vector<std::string> out;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const std::string name = text.substr(0, text.find('='));
    const auto same = [&](const auto& entry) { return entry.first == name; };
    if (std::none_of(environment.begin(), environment.end(), same)) out.push_back(text);
  }
  for (const auto& [name, value] : environment) {
    std::string& entry = out.emplace_back(name);
    entry.append("=").append(value);
  }
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

void add_descendants(pid_t pid, std::set<pid_t>& all) {
  if (!all.insert(pid).second) return;
  std::error_code error;
  const fs::path tasks = "/proc/" + std::to_string(pid) + "/task";
  for (fs::directory_iterator task(tasks, error), end; !error && task != end;
       task.increment(error)) {
    std::ifstream children(task->path() / "children");
    for (pid_t child = 0; children >> child;) add_descendants(child, all);
  }
}

// Inodes of the TCP sockets that listen in the network namespace of a process.
void add_listeners(const std::string& table, std::set<std::string>& inodes) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::vector<std::string> field;
    for (std::string word; words >> word;) field.push_back(word);
    constexpr size_t state = 3, inode = 9;
    if (field.size() > inode && field[state] == "0A") inodes.insert(field[inode]);
  }
}

// The limit of open files before raise_file_limit(); all zero if that was not called.
rlimit& first_file_limit() {
  static rlimit limit{};
  return limit;
}

// While it exists, what a program that starts gets: some that know of more files than select() takes
// break, or close a million of them.
class FileLimitOfPrograms {
 public:
  FileLimitOfPrograms() {
    const rlimit& first = first_file_limit();
    changed_ = first.rlim_max != 0 && getrlimit(RLIMIT_NOFILE, &now_) == 0 &&
               setrlimit(RLIMIT_NOFILE, &first) == 0;
  }
  FileLimitOfPrograms(const FileLimitOfPrograms&) = delete;
  FileLimitOfPrograms& operator=(const FileLimitOfPrograms&) = delete;
  ~FileLimitOfPrograms() {
    if (changed_) setrlimit(RLIMIT_NOFILE, &now_);
  }

 private:
  rlimit now_{};
  bool changed_ = false;
};

}  // namespace

void raise_file_limit() {
  rlimit& before = first_file_limit();
  if (getrlimit(RLIMIT_NOFILE, &before) != 0) return;
  const rlimit raised{before.rlim_max, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);
}

Program::Program(std::vector<std::string> argv, const Environment& environment)
    : argv_(std::move(argv)) {
  std::vector<std::string> words = argv_;
  std::vector<std::string> variables = merged(environment);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // nicsim reads its signals from a descriptor; the program gets them as usual
  sigset_t none;
  sigset_t defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const FileLimitOfPrograms limit;
  const int error = posix_spawnp(&pid_, words.front().c_str(), nullptr, &attributes,
                                 pointers(words).data(), pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    fail(error, "%s cannot be started: %s", argv_.front().c_str(), errno_text(error).c_str());
  }
  process_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (!process_) {
    const int cause = errno;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    fail(cause, "pidfd_open: %s", errno_text(cause).c_str());
  }
}

Program::~Program() {
  if (status()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::optional<int> Program::status() {
  if (!status_) {
    int raw = 0;
    const pid_t ended = waitpid(pid_, &raw, WNOHANG);
    if (ended == pid_) {
      status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : kSignalBase + WTERMSIG(raw);
    }
  }
  return status_;
}

void Program::send_signal(int signal) {
  if (!status()) kill(pid_, signal);
}

bool Program::listens() const {
  const std::string net = "/proc/" + std::to_string(pid_) + "/net/";
  std::set<std::string> inodes;
  add_listeners(net + "tcp", inodes);
  add_listeners(net + "tcp6", inodes);
  if (inodes.empty()) return false;
  std::set<pid_t> all;
  add_descendants(pid_, all);
  for (const pid_t pid : all) {
    std::error_code error;
    for (fs::directory_iterator fd("/proc/" + std::to_string(pid) + "/fd", error), end;
         !error && fd != end; fd.increment(error)) {
      std::error_code gone;
      const std::string target = fs::read_symlink(fd->path(), gone).string();
      constexpr const char* prefix = "socket:[";
      if (gone || !target.starts_with(prefix)) continue;
      const size_t begin = std::strlen(prefix);
      if (inodes.contains(target.substr(begin, target.size() - begin - 1))) return true;
    }
  }
  return false;
}

std::string find_preload_library() {
  if (const char* given = getenv("ROCI_PRELOAD"); given != nullptr && *given != 0) return given;
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"", "host/preload", "host", "../lib", "../lib/rocinante"}) {
    const fs::path file = (here / place / "libroci-preload.so").lexically_normal();
    if (fs::exists(file, error)) return file;
  }
  return {};
}

}  // namespace roci::sim
