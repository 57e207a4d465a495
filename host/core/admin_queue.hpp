// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Client of the function's admin queue: commands to the firmware and their answers.
#pragma once

#include <roci/dma.hpp>
#include <roci/error.hpp>
#include <roci/transport.hpp>

#include <roci_hwif.hpp>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <span>
#include <type_traits>
#include <vector>

namespace roci {

/// Commands may come from any thread and wait for their answers side by side: one that waits for a
/// drain delays no other.
class AdminQueue {
 public:
  /// Enables the queue; a function that is not DISABLED is reset first.
  /// @param timeout  how long an answer may take before the device counts as failed
  /// @throws Error(EIO) if the queue does not get enabled
  AdminQueue(Transport& transport, DmaArena& arena, std::chrono::milliseconds timeout);
  AdminQueue(const AdminQueue&) = delete;
  AdminQueue& operator=(const AdminQueue&) = delete;
  /// Disables the queue by a function reset, if the device is still there.
  ~AdminQueue();

  /// Interrupt vector of completions.
  static constexpr unsigned VECTOR = 0;
  /// Entries of both rings, log2.
  static constexpr unsigned RING_LOG2 = 5;
  /// Largest output buffer in bytes.
  static constexpr size_t MAX_OUTPUT = 2048;

  /// Nothing, for commands that have no such part.
  struct None {};
  template <class T>
  using OrNone = std::conditional_t<std::is_void_v<T>, None, T>;

  /// What a command brings back.
  template <class Command>
  struct Answer {
    uint32_t object = 0;
    OrNone<typename Command::Result> result{};
    OrNone<typename Command::Output> output{};
  };

  /// Runs a command that has no array as output.
  /// @param object  as the command's description says
  /// @throws Error with the errno of the status; its text names command, field and limit
  template <class Command>
  Answer<Command> run(uint32_t object, const OrNone<typename Command::Params>& params = {},
                      const OrNone<typename Command::Input>& input = {}) {
    static_assert(!Command::OUTPUT_IS_ARRAY);
    Answer<Command> answer;
    std::span<std::byte> output;
    if constexpr (!std::is_void_v<typename Command::Output>) {
      output = std::as_writable_bytes(std::span(&answer.output, 1));
    }
    const hwif::AdminCompletion completion =
        execute(Command::OPCODE, object, bytes<typename Command::Params>(params),
                bytes<typename Command::Input>(input), output);
    answer.object = completion.get<hwif::AdminCompletion::object>();
    if constexpr (!std::is_void_v<typename Command::Result>) {
      const auto result = completion.get<hwif::AdminCompletion::result>();
      answer.result.load(result.data());
    }
    return answer;
  }

  /// Runs a command whose output is an array, in pieces as large as the buffer allows.
  /// @param first  index of the first element
  template <class Command>
  std::vector<typename Command::Output> run_array(uint32_t first, size_t count) {
    static_assert(Command::OUTPUT_IS_ARRAY);
    using Element = typename Command::Output;
    std::vector<Element> all(count);
    for (size_t done = 0; done < count;) {
      const size_t n = std::min(count - done, MAX_OUTPUT / sizeof(Element));
      execute(Command::OPCODE, static_cast<uint32_t>(first + done), {}, {},
              std::as_writable_bytes(std::span(all).subspan(done, n)));
      done += n;
    }
    return all;
  }

  /// Runs a command that destroys an object, for verbs that have to give back what the process has
  /// for it: when the device failed or is gone, be it meanwhile, nothing is left to destroy.
  /// @throws Error  as run(); ETIMEDOUT for the command that finds that nobody answers
  template <class Command>
  void destroy(uint32_t object) {
    if (failed()) return;
    try {
      run<Command>(object);
    } catch (const Error& error) {
      if (error.code() != EIO || !failed()) throw;
    }
  }

  /// Sets what is called once when the firmware does not answer any more: a command had no answer in
  /// time, or the queue stopped with an error. Before commands come from several threads.
  void on_failure(std::function<void()> handler) { failed_ = std::move(handler); }

  /// No answer comes any more: everybody who waits gets Error(EIO).
  void stop() noexcept;

  /// Whether no command can be run any more.
  bool failed();

  /// In the child after fork.
  void abandon_after_fork() noexcept;

 private:
  struct Slot {
    bool taken = false;
    bool done = false;
    hwif::AdminCompletion completion{};
  };

  template <class T, class Value>
  static std::span<const std::byte> bytes(const Value& value) {
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return std::as_bytes(std::span(&value, 1));
    }
  }

  hwif::AdminCompletion execute(hwif::AdminOpcode opcode, uint32_t object,
                                std::span<const std::byte> params,
                                std::span<const std::byte> input, std::span<std::byte> output);
  void wait_for(std::unique_lock<std::mutex>& lock, Slot& slot, hwif::AdminOpcode opcode);
  void give_up(std::unique_lock<std::mutex>& lock);
  void collect();
  void disable() noexcept;

  Transport& transport_;
  const std::chrono::milliseconds timeout_;
  std::function<void()> failed_;
  DmaBuffer commands_;
  DmaBuffer completions_;
  DmaBuffer buffers_;

  // Guards what follows.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  uint16_t produced_ = 0;
  uint16_t consumed_ = 0;
  bool somebody_reads_ = false;
  bool stopped_ = false;
};

}  // namespace roci
