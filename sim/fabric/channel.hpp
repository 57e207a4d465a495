// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// One direction of one link: serialises frames at the link's rate, impairs them, and says in which
// cycle each beat reaches the other side. It knows neither ports nor switch (fabric.hpp does).
//
// Time is counted in ticks: a cycle is Rate::bytes ticks, a byte on the wire takes Rate::cycles
// ticks, so everything is an integer and averages are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fabric/beat.hpp"
#include "fabric/rules.hpp"

namespace roci::sim {

/// Probabilities per frame, drawn from the seed, the direction and the frame's number alone.
struct Impairments {
  double drop = 0;
  double duplicate = 0;
  double reorder = 0;  ///< held back until after the next frame, or for reorder_hold_cycles
  double corrupt = 0;  ///< one random bit flips; in half of the cases the FCS flag is bad, too
  double delay = 0;    ///< comes 1 … max_delay_cycles later, order kept
  uint32_t max_delay_cycles = 250;
};

/// Bytes of the longest frame a channel takes: a sender that never ends a frame is broken.
inline constexpr size_t kMaxFrame = 64 * 1024;

/// What the link does if its sender leaves a gap inside a frame that the wire cannot bridge.
enum class Underrun : uint8_t {
  abort,    ///< as a MAC does: the frame arrives with bad FCS
  stretch,  ///< the wire waits, nothing is lost
};

/// One direction of a link.
struct ChannelConfig {
  Rate rate{50, 1};          ///< bytes per cycle incl. preamble, FCS and gap
  uint32_t latency = 125;    ///< cycles from the last bit sent to the last bit received
  unsigned beat_bytes = 64;  ///< width of the NIC's stream: 64 or 8
  unsigned fifo_bytes = 0;   ///< what the MAC takes ahead of the wire; 0 = two beats
  uint32_t start_delay = 0;  ///< cycles the MAC waits after the first beat, to bridge gaps
  Underrun underrun = Underrun::abort;
  uint32_t reorder_hold_cycles = 2500;  ///< 10 µs at 250 MHz
  Impairments impairments;
};

/// Counters of a direction, or summed over both of a link.
struct LinkCounters {
  uint64_t frames = 0;  ///< put on the wire
  uint64_t bytes = 0;   ///< of those, without FCS
  uint64_t dropped = 0;
  uint64_t duplicated = 0;
  uint64_t reordered = 0;
  uint64_t corrupted = 0;
  uint64_t delayed = 0;
  uint64_t aborted = 0;    ///< sender marked the frame bad
  uint64_t underruns = 0;  ///< sender left a gap inside the frame

  LinkCounters& operator+=(const LinkCounters& other);
};

/// A frame as it leaves a channel.
struct FabricFrame {
  std::vector<uint8_t> bytes;
  bool bad = false;      ///< receiver sees a bad FCS
  bool damaged = false;  ///< bytes or FCS are not those that were sent
  size_t from_port = 0;  ///< port that sent it into the fabric
  std::string comment;   ///< what happened to it on the way; empty = nothing
};

/// A beat on its way to the receiver.
struct Delivery {
  uint64_t cycle = 0;  ///< when it is valid at the receiver
  Beat beat;
  std::shared_ptr<const FabricFrame> frame;  ///< with the last beat: the whole frame
};

/// A frame as it was sent, for taps.
struct SentFrame {
  uint64_t cycle = 0;                        ///< when its last bit was on the wire
  std::shared_ptr<const FabricFrame> frame;  ///< bytes as sent, comment about its fate
  bool dropped = false;
};

/// One direction of a link. Used by one thread at a time.
class Channel {
 public:
  /// @param config  rate, latency, impairments
  /// @param seed    of the run
  /// @param number  of this direction: separates its random decisions and rule counts
  /// @param rules   shared by the fabric; outlives the channel
  /// @throws std::invalid_argument for a rate of zero or beyond what the stream can feed
  Channel(const ChannelConfig& config, uint64_t seed, size_t number, RuleSet& rules);

  /// Whether a direction is the entry into the fabric, the exit to a port, or both; set once.
  void place(bool entry, bool exit, std::optional<size_t> to_port);

  /// May the sender hand over a beat in this cycle?
  bool ready(uint64_t cycle) const;
  /// Takes a beat in this cycle; ready() must hold.
  void accept(uint64_t cycle, const Beat& beat, size_t from_port);
  /// Takes a whole frame; it starts when the wire is free. Not inside a frame of beats.
  /// @param history  what happened to it on an earlier link; its comment starts with that
  void send(uint64_t cycle, std::span<const uint8_t> frame, bool bad, size_t from_port,
            const std::string& history = {});
  /// Lets a held-back frame go whose time is up by this cycle.
  void tick(uint64_t cycle);

  /// In the middle of a frame of beats.
  bool in_frame() const { return in_frame_; }
  /// When a held-back frame will go by itself; nothing if none is held.
  std::optional<uint64_t> deadline_cycle() const;
  /// Bytes that wait for the wire in this cycle, overhead included.
  uint64_t backlog_bytes(uint64_t cycle) const;
  /// Every delivery is later than the beat or frame that causes it by at least this many cycles.
  uint64_t lookahead() const { return uint64_t{config_.latency} + 1; }

  /// Beats since the last call, in order; the caller moves them out and clears the list.
  std::vector<Delivery>& deliveries() { return deliveries_; }
  /// Frames sent since the last call; empty unless log_sent(true).
  std::vector<SentFrame> take_sent() { return std::exchange(sent_, {}); }
  void log_sent(bool yes) { log_sent_ = yes; }

  const LinkCounters& counters() const { return counters_; }
  /// Changes the probabilities for frames that start later.
  void set_impairments(const Impairments& impairments) { config_.impairments = impairments; }

 private:
  struct Chunk {
    uint64_t tick;  // when its last byte (with FCS behind the last chunk) is on the wire
    size_t offset;
    size_t bytes;
    bool last;
  };
  struct Held {
    std::shared_ptr<const FabricFrame> frame;
    uint64_t deadline;  // tick
  };

  uint64_t to_tick(uint64_t cycle) const { return cycle * config_.rate.bytes; }
  uint64_t wire(uint64_t bytes) const { return bytes * config_.rate.cycles; }
  uint64_t to_cycle(uint64_t tick) const {
    return (tick + config_.rate.bytes - 1) / config_.rate.bytes;
  }

  void begin(uint64_t cycle, size_t from_port);
  void append(uint64_t cycle, std::span<const uint8_t> bytes, bool last, bool bad);
  void draw_fate();
  void decide(uint64_t cycle, bool complete);
  void corrupt_frame();
  void emit(uint64_t cycle, const Chunk& chunk);
  void finish(uint64_t cycle);
  void deliver_whole(uint64_t cycle, uint64_t start,
                     const std::shared_ptr<const FabricFrame>& frame);
  void push(uint64_t cycle, uint64_t tick, std::span<const uint8_t> bytes, bool last,
            const std::shared_ptr<const FabricFrame>& frame);
  void release_held(uint64_t cycle, uint64_t start);
  void note(const std::string& text);
  void annotate();

  ChannelConfig config_;
  uint64_t seed_;
  size_t number_;
  RuleSet& rules_;
  bool entry_ = true;
  bool exit_ = true;
  std::optional<size_t> to_port_;

  // The frame that is being sent.
  bool in_frame_ = false;
  FabricFrame current_;
  std::vector<uint8_t> original_;  // bytes before corruption, if that happened
  Fate fate_;
  bool rules_applied_ = false;
  bool decided_ = false;
  bool source_bad_ = false;
  bool underrun_ = false;
  bool corrupted_ = false;
  bool annotated_ = false;
  uint64_t start_ = 0;     // tick of its first preamble bit
  uint64_t position_ = 0;  // tick at which everything taken so far is on the wire
  uint64_t shift_ = 0;     // ticks from the sender's wire to the receiver
  std::vector<Chunk> pending_;

  uint64_t frame_index_ = 0;
  uint64_t wire_free_ = 0;      // tick from which the next frame may start
  uint64_t receive_free_ = 0;   // the same at the far end
  uint64_t last_delivery_ = 0;  // cycle of the last beat delivered
  std::optional<Held> held_;

  std::vector<Delivery> deliveries_;
  std::vector<SentFrame> sent_;
  bool log_sent_ = false;
  LinkCounters counters_;
};

}  // namespace roci::sim
