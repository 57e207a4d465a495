// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The hardware as the firmware sees it through bus.hpp, for tests on the host: admin queues, contexts,
// fences, host memory, events. It is strict: what the real hardware would not stand fails the test.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "bus.hpp"
#include "roci_hwif.hpp"

namespace roci::test {

/// A command and its buffers as a host posts them.
struct Command {
  hwif::AdminCommand command{};
  std::vector<std::uint8_t> input;   // what lies at input_address
  bool input_unreadable = false;     // bus error there
};

/// An event that was sent.
struct Event {
  unsigned fn;
  hwif::EqeType type;
  std::uint32_t detail;
  bool operator==(const Event&) const = default;
};

/// See above. One exists at a time (`hardware`).
class FakeHardware {
 public:
  FakeHardware();

  // ---- what a test does
  /// Enables the admin queue of a function (as its host would).
  void enable(unsigned fn);
  /// Posts a command.
  void post(unsigned fn, const Command& command);
  /// Completions of a function, oldest first; the test takes them.
  std::deque<hwif::AdminCompletion>& completions(unsigned fn) { return fns_[fn].completions; }
  /// The host resets its function.
  void request_reset(unsigned fn);
  bool is_enabled(unsigned fn) const { return fns_[fn].enabled; }
  bool is_resetting(unsigned fn) const { return fns_[fn].resetting; }

  /// Word of a context, zero if never written.
  std::uint64_t context(hwif::CtxColumn column, unsigned index, unsigned word) const;
  /// Sets a word as hardware would (progress, errors).
  void set_context(hwif::CtxColumn column, unsigned index, unsigned word, std::uint64_t value);
  /// Row of a context.
  template <class Row>
  Row row(hwif::CtxColumn column, unsigned index) const {
    Row out{};
    for (unsigned w = 0; w < (Row::BYTES + 7) / 8; ++w) {
      const std::uint64_t value = context(column, index, w);
      __builtin_memcpy(out.data() + 8 * w, &value, Row::BYTES - 8 * w < 8 ? Row::BYTES - 8 * w : 8);
    }
    return out;
  }
  hwif::QpState qp_state(unsigned index) const;
  void set_qp_state(unsigned index, hwif::QpState state);

  /// Steps that a fence takes from now on.
  unsigned fence_steps = 1;
  /// Fences never end while this is set.
  bool fences_hang = false;
  /// Bus errors at host memory of this function.
  std::set<unsigned> unwritable;
  /// Steps that a copy to the host takes.
  unsigned copy_steps = 1;
  /// Steps that the event port is busy after an event.
  unsigned event_steps = 0;
  /// Time passes with each context access too (boot waits for a fence before there are steps).
  bool self_ticking = false;
  /// After a write to this column of this queue pair the hardware puts it into ERR, once.
  std::pair<unsigned, hwif::CtxColumn> error_after = {~0u, hwif::CtxColumn::CSR};
  /// A context column that nobody answers.
  int deaf_column = -1;

  /// Host memory of a function: bytes that the firmware wrote.
  std::map<std::uint64_t, std::uint8_t>& memory(unsigned fn) { return fns_[fn].memory; }
  std::vector<Event> events;
  std::uint32_t bell_errors = 0;
  std::uint32_t failed_queues = 0;
  bool port_written = false;
  std::uint64_t now = 0;

  /// Writes to contexts so far.
  std::uint64_t context_writes = 0;
  bool rx_open = false;      ///< words of a row of QP_RX were written, its word 0 not yet
  /// Context writes to columns of an object that is not revoked are remembered here: {column, index}.
  std::vector<std::pair<hwif::CtxColumn, unsigned>> log;

  /// Time passes: called once per step of the firmware.
  void tick();

  // ---- what bus.hpp does
  std::uint32_t status();
  fw::NextCommand next_command();
  fw::Slot& slot(unsigned fn) { return fns_[fn].slot; }
  void complete(unsigned fn, const hwif::AdminCompletion& image, bool release, bool error);
  void order(fw::Order what, unsigned fn);
  std::uint32_t enabled() const;
  std::uint32_t resetting() const;
  std::uint64_t access(std::uint32_t address, bool write, std::uint64_t data);
  void list(std::uint64_t* words, std::uint32_t index);
  void copy(unsigned fn, std::uint64_t address, const std::uint8_t* data, std::uint32_t bytes);
  void event(unsigned fn, hwif::EqeType type, std::uint32_t detail);
  bool ctx_error = false;
  std::uint64_t answer = 0;
  std::uint32_t config[4];

 private:
  struct Function {
    bool enabled = false;
    bool resetting = false;
    bool busy = false;               // a command is with the firmware
    bool ready = false;              // and waits to be taken
    bool has_input = false;
    bool input_error = false;
    std::deque<Command> posted;
    std::deque<hwif::AdminCompletion> completions;
    std::map<std::uint64_t, std::uint8_t> memory;
    fw::Slot slot{};
  };

  void fetch(unsigned fn);
  std::uint64_t special_read(hwif::CtxColumn column, unsigned index, unsigned word) const;
  void write(hwif::CtxColumn column, unsigned index, unsigned word, std::uint64_t data);

  std::vector<Function> fns_;
  unsigned turn_ = 0;
  std::map<std::tuple<unsigned, unsigned, unsigned>, std::uint64_t> contexts_;
  bool fence_running_ = false;
  bool fence_again_ = false;
  unsigned fence_left_ = 0;
  std::uint32_t fences_begun_ = 0;
  std::uint32_t fences_ended_ = 0;
  std::map<unsigned, std::uint32_t> sqe_since_;   // queue pair → fences begun before its SQE
  unsigned copy_left_ = 0;
  bool copy_error_ = false;
  unsigned event_left_ = 0;
};

/// The hardware of the running test.
extern FakeHardware* hardware;

}  // namespace roci::test
