// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Messages of one direction of a QP pair, and the scoreboard of it: what was posted, what has to
// complete in which order, and what every byte of the memory involved has to be.
#pragma once

#include "shadow.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

namespace roci::soak {

/// Random numbers of a run.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  /// low … high, both included.
  uint64_t between(uint64_t low, uint64_t high) {
    return low + engine_() % (high - low + 1);
  }
  bool chance(double probability) {
    return static_cast<double>(engine_() >> 11) * 0x1p-53 < probability;
  }
  /// Length of a message: edges of packets and beats are more likely than the rest.
  size_t length(size_t max, size_t mtu);

 private:
  std::mt19937_64 engine_;
};

/// What both directions of a pair know of each other.
struct FlowEnd {
  Pd* pd = nullptr;
  Qp* qp = nullptr;
};

/// One direction: requests go from `from` to `to`.
class Flow {
 public:
  struct Limits {
    size_t max_bytes;
    size_t mtu;
    unsigned max_sge, max_sge_read, max_recv_sge, max_inline;
    unsigned window;  ///< messages under way at most, = send requests of the QP
    uint32_t first_psn;
  };

  Flow(std::string name, FlowEnd from, FlowEnd to, const Limits& limits, uint64_t seed);

  /// Posts a few receives and messages, if it is time to. @return messages posted, at most `budget`
  unsigned post(uint64_t budget, uint64_t cycle);
  /// Posts the last message, a signaled one, so that all complete. @return false if there is no room
  bool finish(uint64_t cycle);
  /// Everything that was posted has completed and was checked.
  bool done() const { return open_.empty() && expected_receives_.empty(); }

  /// A completion of the sending side. @return messages that it retires
  unsigned sent(const ibv_wc& wc);
  /// A completion of the receiving side.
  void received(const ibv_wc& wc);
  /// Compares all memory of the direction once more. Call it when nothing is under way.
  void check_all();

  uint64_t bytes() const { return bytes_; }
  /// How it stands: for the report of an error.
  std::string describe() const;

 private:
  enum class Kind : uint8_t { send, send_imm, write, write_imm, read };
  struct Message {
    uint64_t number;
    Kind kind;
    bool signaled;
    unsigned flags;
    size_t slot;           // of target_ or landing_
    size_t offset;         // in the slot
    uint32_t imm;
    uint32_t first_psn;
    uint32_t packets;
    uint64_t cycle;        // when it was posted
    bool received;         // its receive completion came
    std::vector<uint8_t> data;
  };
  struct Receive {
    uint64_t number;
    size_t slot;
    std::vector<std::pair<size_t, size_t>> pieces;  // offset in recv_, bytes
  };

  static const char* name_of(Kind kind);
  static bool takes_receive(Kind kind) {
    return kind != Kind::write && kind != Kind::read;
  }
  [[noreturn]] void fail(const std::string& what) const;
  std::string describe(const Message& message) const;
  std::vector<ibv_sge> source(size_t bytes, unsigned max_sge, std::vector<uint8_t>& data);
  void post_receives();
  bool post_one(uint64_t cycle);
  void retire(Message& message);
  Message* find(uint64_t number);

  std::string name_;
  FlowEnd from_, to_;
  Limits limits_;
  Dice dice_;
  size_t slot_bytes_;

  Shadow source_;    // of the sender, never written
  Shadow readable_;  // of the receiver, never written
  Shadow target_;    // of the receiver: WRITE
  Shadow recv_;      // of the receiver: SEND
  Shadow landing_;   // of the sender: READ

  uint64_t next_ = 0;           // number of the next message
  uint64_t next_receive_ = 0;
  uint32_t psn_;
  unsigned unsignaled_ = 0;     // since the last signaled one
  unsigned receive_pause_ = 0;
  bool finishing_ = false;
  uint64_t bytes_ = 0;
  std::deque<Message> open_;                  // posted, not retired
  std::deque<Message> late_;                  // retired, their receive has not completed yet
  std::deque<uint64_t> expected_receives_;    // messages that will complete a receive, in order
  std::deque<Receive> receives_;              // posted, in order
};

}  // namespace roci::soak
