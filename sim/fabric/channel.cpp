// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "fabric/channel.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "common/random.hpp"

namespace roci::sim {
namespace {

// A rule may look at so much of a frame before it decides: all headers of the longest opcode.
constexpr size_t kHeadBytes = 128;

// Kinds of draws, one stream each.
enum Kind : uint64_t {
  kDrop,
  kDuplicate,
  kReorder,
  kCorrupt,
  kDelay,
  kDelayTime,
  kBit,
  kFcs,
  kKinds
};

}  // namespace

LinkCounters& LinkCounters::operator+=(const LinkCounters& other) {
  frames += other.frames;
  bytes += other.bytes;
  dropped += other.dropped;
  duplicated += other.duplicated;
  reordered += other.reordered;
  corrupted += other.corrupted;
  delayed += other.delayed;
  aborted += other.aborted;
  underruns += other.underruns;
  return *this;
}

Channel::Channel(const ChannelConfig& config, uint64_t seed, size_t number, RuleSet& rules)
    : config_(config), seed_(seed), number_(number), rules_(rules) {
  if (config_.rate.bytes == 0 || config_.rate.cycles == 0) {
    throw std::invalid_argument("link rate must not be zero");
  }
  if (config_.beat_bytes == 0 || config_.beat_bytes > Beat{}.data.size()) {
    throw std::invalid_argument("beats are 1 … 64 bytes wide");
  }
  if (config_.rate.bytes > uint64_t{config_.beat_bytes} * config_.rate.cycles) {
    throw std::invalid_argument("link rate exceeds one beat of " +
                                std::to_string(config_.beat_bytes) + " bytes per cycle");
  }
  if (config_.fifo_bytes == 0) config_.fifo_bytes = 2 * config_.beat_bytes;
  // Less than a cycle's worth would make the wire run dry whatever the sender does.
  config_.fifo_bytes = std::max(config_.fifo_bytes, config_.beat_bytes);
}

void Channel::place(bool entry, bool exit, std::optional<size_t> to_port) {
  entry_ = entry;
  exit_ = exit;
  to_port_ = to_port;
}

uint64_t Channel::backlog_bytes(uint64_t cycle) const {
  const uint64_t now = to_tick(cycle + 1);
  return wire_free_ <= now ? 0 : (wire_free_ - now) / config_.rate.cycles;
}

bool Channel::ready(uint64_t cycle) const {
  // The bytes ahead keep the wire busy over short last beats; averages are those of the wire.
  const uint64_t now = to_tick(cycle + 1);
  return wire_free_ <= now ||
         wire_free_ - now < wire(config_.fifo_bytes) + to_tick(config_.start_delay);
}

void Channel::accept(uint64_t cycle, const Beat& beat, size_t from_port) {
  if (beat.bytes == 0 || beat.bytes > config_.beat_bytes) {
    throw std::logic_error("beat of " + std::to_string(beat.bytes) + " bytes on a stream of " +
                           std::to_string(config_.beat_bytes));
  }
  if (!beat.last && beat.bytes != config_.beat_bytes) {
    throw std::logic_error("beat of " + std::to_string(beat.bytes) +
                           " bytes inside a frame: only the last may be short");
  }
  if (!in_frame_) {
    begin(cycle, from_port);
  } else if (to_tick(cycle + 1) > position_) {
    // The wire has run dry: these bytes come too late.
    if (!underrun_) ++counters_.underruns;
    underrun_ = true;
    position_ = to_tick(cycle + 1);
  }
  append(cycle, std::span(beat.data).first(beat.bytes), beat.last, beat.bad);
}

void Channel::send(uint64_t cycle, std::span<const uint8_t> frame, bool bad, size_t from_port,
                   const std::string& history) {
  if (in_frame_) throw std::logic_error("whole frame sent inside a frame of beats");
  if (frame.empty()) throw std::invalid_argument("empty frame");
  begin(cycle, from_port);
  current_.comment = history;
  for (size_t offset = 0; offset < frame.size(); offset += config_.beat_bytes) {
    const size_t bytes = std::min<size_t>(config_.beat_bytes, frame.size() - offset);
    append(cycle, frame.subspan(offset, bytes), offset + bytes == frame.size(), bad);
  }
}

void Channel::begin(uint64_t cycle, size_t from_port) {
  start_ = std::max(to_tick(cycle + 1 + config_.start_delay), wire_free_);
  if (held_ && start_ >= held_->deadline) {
    release_held(to_cycle(held_->deadline), held_->deadline + to_tick(config_.latency));
  }
  in_frame_ = true;
  position_ = start_ + wire(kPreambleBytes);
  current_ = {};
  current_.from_port = from_port;
  original_.clear();
  pending_.clear();
  rules_applied_ = decided_ = source_bad_ = underrun_ = corrupted_ = annotated_ = false;
  draw_fate();
}

void Channel::draw_fate() {
  const Impairments& p = config_.impairments;
  auto bits = [this](Kind kind) { return draw(seed_, number_ * kKinds + kind, frame_index_); };
  fate_ = {};
  fate_.drop = chance(p.drop, bits(kDrop));
  fate_.duplicate = chance(p.duplicate, bits(kDuplicate));
  fate_.reorder = chance(p.reorder, bits(kReorder));
  fate_.corrupt_bit = chance(p.corrupt, bits(kCorrupt));
  if (chance(p.delay, bits(kDelay))) {
    fate_.delay_cycles = 1 + below(p.max_delay_cycles, bits(kDelayTime));
  }
  if (fate_.drop || fate_.duplicate || fate_.reorder || fate_.corrupt_bit ||
      fate_.delay_cycles != 0) {
    fate_.cause = "probability";
  }
}

void Channel::append(uint64_t cycle, std::span<const uint8_t> bytes, bool last, bool bad) {
  const size_t offset = current_.bytes.size();
  if (offset + bytes.size() > kMaxFrame) throw std::logic_error("frame of more than 64 KB");
  current_.bytes.resize(offset + bytes.size());
  std::ranges::copy(bytes, current_.bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  position_ += wire(bytes.size() + (last ? kFcsBytes : 0));
  wire_free_ = position_ + (last ? wire(kGapBytes) : 0);
  if (last) source_bad_ = bad || (underrun_ && config_.underrun == Underrun::abort);

  const Chunk chunk{position_, offset, bytes.size(), last};
  if (!decided_) {
    pending_.push_back(chunk);
    decide(cycle, last);
  } else {
    emit(cycle, chunk);
  }
  if (last) finish(cycle);
}

// Settles the frame's fate as soon as enough of it is known, and lets its first beats go.
void Channel::decide(uint64_t cycle, bool complete) {
  if (!rules_applied_) {
    if (!rules_.empty()) {
      if (!complete && current_.bytes.size() < kHeadBytes) return;
      FrameInfo info = inspect(current_.bytes);
      info.from_port = current_.from_port;
      info.to_port = to_port_;
      info.index = frame_index_;
      rules_.apply(number_, entry_, exit_, info, fate_);
    }
    if (fate_.drop) {
      fate_.duplicate = fate_.reorder = false;
      fate_.corrupt_bit = fate_.corrupt_icrc = fate_.corrupt_fcs = false;
      fate_.flips.clear();
      fate_.delay_cycles = 0;
    }
    // One frame at a time is held back: the next one releases it.
    if (held_) fate_.reorder = false;
    rules_applied_ = true;
  }
  if (fate_.changes_bytes()) {
    if (!complete) return;  // the random bit may be any of the whole frame
    corrupt_frame();
  }
  decided_ = true;
  if (fate_.drop || fate_.reorder) return;
  const uint64_t arrival = start_ + to_tick(config_.latency + fate_.delay_cycles);
  shift_ = std::max(arrival, receive_free_) - start_;
  for (const Chunk& chunk : pending_) emit(cycle, chunk);
  pending_.clear();
}

void Channel::note(const std::string& text) {
  current_.comment += (current_.comment.empty() ? "" : "; ") + text;
}

// Closes the comment and the FCS flag of a complete frame whose fate is settled.
void Channel::annotate() {
  if (annotated_) return;
  annotated_ = true;
  current_.bad = current_.bad || source_bad_;
  current_.damaged = corrupted_ || current_.bad;
  if (underrun_) note("sender left a gap");
  if (source_bad_ && !underrun_) note("aborted by the sender");
  if (fate_.drop) note("dropped");
  if (fate_.delay_cycles != 0) note("delayed " + std::to_string(fate_.delay_cycles) + " cycles");
  if (fate_.reorder) note("held back behind the next frame");
  if (fate_.duplicate) note("duplicated");
  if (!fate_.cause.empty()) {
    current_.comment += " (" + fate_.cause + ")";
  }
}

void Channel::corrupt_frame() {
  original_ = current_.bytes;
  std::vector<uint8_t>& bytes = current_.bytes;
  const uint64_t bit_draw = draw(seed_, number_ * kKinds + kBit, frame_index_);
  if (fate_.corrupt_bit) {
    const size_t bit = below(bytes.size() * 8, bit_draw);
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    current_.bad = chance(0.5, draw(seed_, number_ * kKinds + kFcs, frame_index_));
    note("bit " + std::to_string(bit % 8) + " of byte " + std::to_string(bit / 8) +
         " flipped, FCS " + (current_.bad ? "bad" : "good"));
  }
  if (fate_.corrupt_icrc) {
    if (const auto offset = icrc_offset(bytes)) {
      const size_t bit = below(32, bit_draw);
      bytes[*offset + bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
      note("ICRC bit " + std::to_string(bit) + " flipped");
    }
  }
  for (const auto& [offset, mask] : fate_.flips) {
    if (offset < bytes.size()) {
      bytes[offset] ^= mask;
      note("byte " + std::to_string(offset) + " changed");
    }
  }
  if (fate_.corrupt_fcs) {
    current_.bad = true;
    note("FCS made bad");
  }
  corrupted_ = current_.bad || bytes != original_;
}

void Channel::emit(uint64_t cycle, const Chunk& chunk) {
  if (fate_.drop || fate_.reorder) return;
  const auto bytes = std::span(current_.bytes).subspan(chunk.offset, chunk.bytes);
  std::shared_ptr<const FabricFrame> frame;
  if (chunk.last) {
    annotate();
    frame = std::make_shared<FabricFrame>(current_);
    receive_free_ = chunk.tick + shift_ + wire(kGapBytes);
  }
  push(cycle, chunk.tick + shift_, bytes, chunk.last, frame);
}

void Channel::push(uint64_t cycle, uint64_t tick, std::span<const uint8_t> bytes, bool last,
                   const std::shared_ptr<const FabricFrame>& frame) {
  Delivery& delivery = deliveries_.emplace_back();
  // A frame that waited for its decision comes late, never before the receiver may hear of it.
  delivery.cycle = std::max({to_cycle(tick), last_delivery_ + 1, cycle + lookahead()});
  last_delivery_ = delivery.cycle;
  std::ranges::copy(bytes, delivery.beat.data.begin());
  delivery.beat.bytes = static_cast<uint8_t>(bytes.size());
  delivery.beat.last = last;
  delivery.beat.bad = last && frame->bad;
  delivery.frame = frame;
}

void Channel::deliver_whole(uint64_t cycle, uint64_t start,
                            const std::shared_ptr<const FabricFrame>& frame) {
  start = std::max(start, receive_free_);
  const auto bytes = std::span(frame->bytes);
  for (size_t offset = 0; offset < bytes.size(); offset += config_.beat_bytes) {
    const size_t count = std::min<size_t>(config_.beat_bytes, bytes.size() - offset);
    const bool last = offset + count == bytes.size();
    const uint64_t sent = kPreambleBytes + offset + count + (last ? kFcsBytes : 0);
    push(cycle, start + wire(sent), bytes.subspan(offset, count), last, last ? frame : nullptr);
  }
  receive_free_ = start + wire(bytes.size() + kWireOverhead);
}

void Channel::release_held(uint64_t cycle, uint64_t start) {
  const std::shared_ptr<const FabricFrame> frame = std::move(held_->frame);
  held_.reset();
  deliver_whole(cycle, start, frame);
}

void Channel::tick(uint64_t cycle) {
  // Times are those of the deadline, not of this call, which may come later.
  if (held_ && !in_frame_ && to_tick(cycle) >= held_->deadline) {
    release_held(to_cycle(held_->deadline), held_->deadline + to_tick(config_.latency));
  }
}

std::optional<uint64_t> Channel::deadline_cycle() const {
  if (!held_) return std::nullopt;
  return to_cycle(held_->deadline);
}

// The frame is complete: counters, held-back and duplicated frames, log.
void Channel::finish(uint64_t cycle) {
  in_frame_ = false;
  ++frame_index_;
  ++counters_.frames;
  counters_.bytes += current_.bytes.size();
  counters_.aborted += source_bad_ && !underrun_;
  counters_.dropped += fate_.drop;
  counters_.corrupted += corrupted_;
  counters_.delayed += fate_.delay_cycles != 0;
  counters_.duplicated += fate_.duplicate;
  counters_.reordered += fate_.reorder;
  annotate();

  const bool release = held_.has_value();
  const uint64_t arrival = position_ + to_tick(config_.latency);
  if (fate_.duplicate || fate_.reorder) {
    const auto copy = std::make_shared<FabricFrame>(current_);
    if (fate_.reorder) {
      held_ = Held{copy, position_ + to_tick(config_.reorder_hold_cycles)};
    }
    // A frame both duplicated and held back arrives in both places.
    if (fate_.duplicate) deliver_whole(cycle, arrival, copy);
  }
  if (release) release_held(cycle, arrival);

  if (log_sent_) {
    auto sent = std::make_shared<FabricFrame>(std::move(current_));
    if (!original_.empty()) sent->bytes = original_;
    sent->bad = source_bad_;
    sent_.push_back({to_cycle(position_), sent, fate_.drop});
  }
}

}  // namespace roci::sim
