// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Impairment rules: "drop the 3rd ACK to QP 5", "corrupt the ICRC of PSN 17 once". Rules are exact
// where probabilities are not; regressions use them.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fabric/frame_info.hpp"

namespace roci::sim {

/// Which frames, which of them, and what happens to them. Built by chaining:
///   Rule().acks().dest_qp(5).nth(3).drop()
///   Rule().from_port(0).opcode(0x0a).psn(17).corrupt_icrc()
///
/// All conditions must hold. Matching frames are counted per direction of a link, so that the
/// outcome does not depend on how directions interleave. Without a place a rule looks at frames
/// where they enter the fabric. By default it strikes once, at the first match.
class Rule {
 public:
  /// Frames that this port sends.
  Rule& from_port(size_t port);
  /// Frames on the last hop to this port (behind the switch, if there is one).
  Rule& to_port(size_t port);
  /// This BTH opcode byte.
  Rule& opcode(uint8_t code);
  /// This operation (low five opcode bits) of any transport.
  Rule& operation(uint8_t low_bits);
  /// This destination QP.
  Rule& dest_qp(uint32_t qpn);
  /// This PSN.
  Rule& psn(uint32_t value);
  /// RC ACKs: opcode ACKNOWLEDGE with an ACK syndrome.
  Rule& acks();
  /// RC NAKs and RNR NAKs.
  Rule& naks();
  /// Any further condition. In a threaded run it is called from the threads of several ports.
  Rule& where(std::function<bool(const FrameInfo&)> condition);

  /// The first match that is hit, 1 = the first.
  Rule& nth(uint64_t first);
  /// How many matches from there on are hit.
  Rule& times(uint64_t count);
  /// All matches from there on are hit.
  Rule& always() { return times(std::numeric_limits<uint64_t>::max()); }

  /// What happens. Several may be combined; a dropped frame meets nothing else.
  Rule& drop();
  Rule& duplicate();
  /// Held back until the next frame of this direction, or for the hold time of the link.
  Rule& reorder();
  /// This and, in order, what follows comes so many cycles later.
  Rule& delay(uint32_t cycles);
  /// One random bit flips; the FCS flag goes bad in half of the cases.
  Rule& corrupt();
  /// One bit of the ICRC flips, the FCS stays good.
  Rule& corrupt_icrc();
  /// Only the FCS is bad.
  Rule& corrupt_fcs();
  /// XORs one byte of the frame, the FCS stays good. No effect behind its end.
  Rule& flip(size_t offset, uint8_t mask);

 private:
  friend class RuleSet;

  struct Flip {
    size_t offset;
    uint8_t mask;
  };

  std::optional<size_t> from_port_, to_port_;
  std::optional<uint8_t> opcode_, operation_;
  std::optional<uint32_t> dest_qp_, psn_;
  std::vector<std::function<bool(const FrameInfo&)>> conditions_;
  uint64_t first_ = 1;
  uint64_t count_ = 1;
  bool drop_ = false, duplicate_ = false, reorder_ = false;
  bool corrupt_ = false, corrupt_icrc_ = false, corrupt_fcs_ = false;
  uint32_t delay_ = 0;
  std::vector<Flip> flips_;
};

/// What is done to one frame, from probabilities and rules together.
struct Fate {
  bool drop = false;
  bool duplicate = false;
  bool reorder = false;
  bool corrupt_bit = false;
  bool corrupt_icrc = false;
  bool corrupt_fcs = false;
  uint64_t delay_cycles = 0;
  std::vector<std::pair<size_t, uint8_t>> flips;
  std::string cause;  ///< "probability", "rule 2", …; for comments

  bool changes_bytes() const {
    return corrupt_bit || corrupt_icrc || corrupt_fcs || !flips.empty();
  }
};

/// The rules of a fabric. add() and remove() only while no port is being clocked.
class RuleSet {
 public:
  /// @param channels  directions of links that count matches separately
  explicit RuleSet(size_t channels) : channels_(channels) {}

  /// Adds a rule. @return its number, for hits() and remove()
  size_t add(Rule rule);
  /// Removes a rule; its hits stay readable.
  void remove(size_t rule);
  /// How many frames the rule has struck. @throws std::out_of_range
  uint64_t hits(size_t rule) const;
  /// No rule that could still match.
  bool empty() const { return active_ == 0; }

  /// Applies all rules to a frame.
  /// @param channel  direction of a link
  /// @param entry    frames enter the fabric here
  /// @param exit     the last hop
  void apply(size_t channel, bool entry, bool exit, const FrameInfo& frame, Fate& fate);

 private:
  struct State {
    Rule rule;
    bool removed = false;
    std::vector<uint64_t> matches;  // per channel
    std::vector<uint64_t> hits;
  };

  static bool matches(const Rule& rule, bool entry, bool exit, const FrameInfo& frame);

  size_t channels_;
  size_t active_ = 0;
  std::vector<State> states_;
};

}  // namespace roci::sim
