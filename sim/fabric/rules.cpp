// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "fabric/rules.hpp"

#include <algorithm>
#include <numeric>

namespace roci::sim {

Rule& Rule::from_port(size_t port) {
  from_port_ = port;
  return *this;
}
Rule& Rule::to_port(size_t port) {
  to_port_ = port;
  return *this;
}
Rule& Rule::opcode(uint8_t code) {
  opcode_ = code;
  return *this;
}
Rule& Rule::operation(uint8_t low_bits) {
  operation_ = low_bits;
  return *this;
}
Rule& Rule::dest_qp(uint32_t qpn) {
  dest_qp_ = qpn;
  return *this;
}
Rule& Rule::psn(uint32_t value) {
  psn_ = value;
  return *this;
}
Rule& Rule::acks() {
  return where([](const FrameInfo& f) { return f.syndrome && *f.syndrome >> 5 == 0; });
}
Rule& Rule::naks() {
  return where([](const FrameInfo& f) {
    return f.syndrome && (*f.syndrome >> 5 == 1 || *f.syndrome >> 5 == 3);
  });
}
Rule& Rule::where(std::function<bool(const FrameInfo&)> condition) {
  conditions_.push_back(std::move(condition));
  return *this;
}
Rule& Rule::nth(uint64_t first) {
  first_ = std::max<uint64_t>(first, 1);
  return *this;
}
Rule& Rule::times(uint64_t count) {
  count_ = count;
  return *this;
}
Rule& Rule::drop() {
  drop_ = true;
  return *this;
}
Rule& Rule::duplicate() {
  duplicate_ = true;
  return *this;
}
Rule& Rule::reorder() {
  reorder_ = true;
  return *this;
}
Rule& Rule::delay(uint32_t cycles) {
  delay_ = cycles;
  return *this;
}
Rule& Rule::corrupt() {
  corrupt_ = true;
  return *this;
}
Rule& Rule::corrupt_icrc() {
  corrupt_icrc_ = true;
  return *this;
}
Rule& Rule::corrupt_fcs() {
  corrupt_fcs_ = true;
  return *this;
}
Rule& Rule::flip(size_t offset, uint8_t mask) {
  flips_.push_back({offset, mask});
  return *this;
}

size_t RuleSet::add(Rule rule) {
  states_.push_back({.rule = std::move(rule),
                     .removed = false,
                     .matches = std::vector<uint64_t>(channels_, 0),
                     .hits = std::vector<uint64_t>(channels_, 0)});
  ++active_;
  return states_.size() - 1;
}

void RuleSet::remove(size_t rule) {
  State& state = states_.at(rule);
  if (!state.removed) --active_;
  state.removed = true;
}

uint64_t RuleSet::hits(size_t rule) const {
  const std::vector<uint64_t>& hits = states_.at(rule).hits;
  return std::accumulate(hits.begin(), hits.end(), uint64_t{0});
}

bool RuleSet::matches(const Rule& rule, bool entry, bool exit, const FrameInfo& frame) {
  const bool right_place = rule.to_port_ ? exit && frame.to_port == rule.to_port_ : entry;
  if (!right_place) return false;
  if (rule.from_port_ && frame.from_port != *rule.from_port_) return false;
  const bool about_roce = rule.opcode_ || rule.operation_ || rule.dest_qp_ || rule.psn_;
  if (about_roce && !frame.is_roce) return false;
  if (rule.opcode_ && frame.opcode != *rule.opcode_) return false;
  if (rule.operation_ && (frame.opcode & 0x1f) != *rule.operation_) return false;
  if (rule.dest_qp_ && frame.dest_qp != *rule.dest_qp_) return false;
  if (rule.psn_ && frame.psn != *rule.psn_) return false;
  return std::ranges::all_of(rule.conditions_,
                             [&frame](const auto& condition) { return condition(frame); });
}

void RuleSet::apply(size_t channel, bool entry, bool exit, const FrameInfo& frame, Fate& fate) {
  for (size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    const Rule& rule = state.rule;
    if (state.removed || !matches(rule, entry, exit, frame)) continue;
    const uint64_t match = ++state.matches[channel];
    if (match < rule.first_ || match - rule.first_ >= rule.count_) continue;
    ++state.hits[channel];
    fate.drop |= rule.drop_;
    fate.duplicate |= rule.duplicate_;
    fate.reorder |= rule.reorder_;
    fate.corrupt_bit |= rule.corrupt_;
    fate.corrupt_icrc |= rule.corrupt_icrc_;
    fate.corrupt_fcs |= rule.corrupt_fcs_;
    fate.delay_cycles += rule.delay_;
    for (const Rule::Flip& flip : rule.flips_) fate.flips.emplace_back(flip.offset, flip.mask);
    fate.cause += (fate.cause.empty() ? "rule " : ", rule ") + std::to_string(i);
  }
}

}  // namespace roci::sim
