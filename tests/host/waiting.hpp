// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Waiting in tests: for a state that can be seen, never for a time in which something "will have
// happened". How long a loaded machine takes is no matter then.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace roci::test {

/// Waits until `condition()` holds. @return false if it does not even after two minutes
template <class Condition>
bool becomes(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// The calling thread, for what follows.
inline pid_t this_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

/// The number of the system call that a thread of this process sleeps in; -1: it runs.
inline long system_call_of(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/syscall");
  long number = -1;
  file >> number;
  return file ? number : -1;
}

/// Whether it sleeps until another thread does something: at a condition variable, mutex or join.
inline bool waits_for_thread(pid_t thread) { return system_call_of(thread) == SYS_futex; }

/// Whether it sleeps until something comes by a descriptor.
inline bool waits_for_descriptor(pid_t thread) {
  const long number = system_call_of(thread);
  return number == SYS_poll || number == SYS_ppoll;
}

}  // namespace roci::test
