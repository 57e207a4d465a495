// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "fabric/fabric.hpp"

#include <algorithm>
#include <stdexcept>
#include <tuple>

namespace roci::sim {
namespace {

bool back_to_back(const FabricConfig& config) {
  return config.topology == Topology::back_to_back ||
         (config.topology == Topology::automatic && config.ports == 2);
}

}  // namespace

void Port::clock(const Beat* tx) {
  entry_.tick(cycle_);
  if (refused_ && (tx == nullptr || *tx != *refused_)) {
    throw std::logic_error("port " + std::to_string(number_) + ", cycle " + std::to_string(cycle_) +
                           ": beat " + (tx ? "changed" : "withdrawn") + " while not ready");
  }
  refused_.reset();
  if (tx != nullptr) {
    if (tx_ready()) {
      entry_.accept(cycle_, *tx, number_);
    } else {
      refused_ = *tx;
    }
  }
  if (!inbox_.empty() && inbox_.front().cycle <= cycle_) {
    if (inbox_.front().cycle < cycle_) throw std::logic_error("fabric: a beat came too late");
    const Delivery delivery = std::move(inbox_.front());
    inbox_.pop_front();
    if (delivery.frame && handler_) {
      handler_({.cycle = cycle_, .bytes = delivery.frame->bytes, .bad = delivery.frame->bad});
    }
  }
  ++cycle_;
}

void Port::send(std::span<const uint8_t> frame, bool bad) {
  entry_.send(cycle_, frame, bad, number_);
}

Fabric::Fabric(const FabricConfig& config)
    : config_(config), switched_(!back_to_back(config)), rules_(switched_ ? 2 * config.ports : 2) {
  if (config.ports == 0) throw std::invalid_argument("fabric without ports");
  if (!switched_ && config.ports != 2) {
    throw std::invalid_argument("back to back needs two ports");
  }
  const size_t channels = switched_ ? 2 * config.ports : 2;
  for (size_t i = 0; i < channels; ++i) {
    channels_.push_back(std::make_unique<Channel>(config.link, config.seed, i, rules_));
  }
  for (size_t port = 0; port < config.ports; ++port) {
    if (switched_) {
      channels_[entry_of(port)]->place(true, false, std::nullopt);
      channels_[exit_of(port)]->place(false, true, port);
    } else {
      channels_[entry_of(port)]->place(true, true, 1 - port);
    }
    ports_.push_back(std::unique_ptr<Port>(new Port(*channels_[entry_of(port)], port)));
  }
}

uint64_t Fabric::lookahead() const { return channels_.front()->lookahead(); }

void Fabric::advance_to(uint64_t cycle) {
  if (cycle < cycle_ || cycle - cycle_ > lookahead()) {
    throw std::logic_error("fabric: cannot advance from cycle " + std::to_string(cycle_) + " to " +
                           std::to_string(cycle) + ", lookahead is " + std::to_string(lookahead()));
  }
  for (const auto& port : ports_) {
    if (port->cycle() > cycle) throw std::logic_error("fabric: a port is ahead of the fabric");
    while (port->cycle() < cycle) port->clock();
  }
  cycle_ = cycle;
  exchange();
  run_taps(cycle_);
}

// Moves what the channels have put out to where it arrives.
void Fabric::exchange() {
  if (!switched_) {
    collect(0);
    collect(1);
    return;
  }
  for (size_t port = 0; port < ports_.size(); ++port) collect(entry_of(port));
  // Frames that are completely in the switch by now, in the order in which they came.
  std::ranges::stable_sort(arrivals_, {},
                           [](const Arrival& a) { return std::tie(a.cycle, a.port); });
  auto first_future = std::ranges::find_if(
      arrivals_, [this](const Arrival& arrival) { return arrival.cycle >= cycle_; });
  for (auto arrival = arrivals_.begin(); arrival != first_future; ++arrival) forward(*arrival);
  arrivals_.erase(arrivals_.begin(), first_future);
  for (size_t port = 0; port < ports_.size(); ++port) {
    channels_[exit_of(port)]->tick(cycle_);
    collect(exit_of(port));
  }
}

void Fabric::collect(size_t channel) {
  const bool to_switch = switched_ && channel % 2 == 0;
  const size_t port = switched_ ? channel / 2 : 1 - channel;  // where its deliveries arrive
  for (Delivery& delivery : channels_[channel]->deliveries()) {
    if (delivery.frame && to_switch) {
      arrivals_.push_back({delivery.cycle, port, delivery.frame});
    } else if (delivery.frame && !taps_.empty()) {
      pending_taps_.push_back({{.cycle = delivery.cycle,
                                .port = port,
                                .direction = TapEvent::Direction::received,
                                .bytes = delivery.frame->bytes,
                                .bad = delivery.frame->bad,
                                .damaged = delivery.frame->damaged,
                                .comment = delivery.frame->comment},
                               delivery.frame});
    }
    if (!to_switch) ports_[port]->inbox_.push_back(std::move(delivery));
  }
  channels_[channel]->deliveries().clear();
  for (const SentFrame& sent : channels_[channel]->take_sent()) {
    const bool entry = !switched_ || to_switch;
    // Behind the switch only a loss is news: everything else is seen when it is received.
    if (!entry && !sent.dropped) continue;
    pending_taps_.push_back(
        {{.cycle = sent.cycle,
          .port = entry ? sent.frame->from_port : port,
          .direction = entry ? TapEvent::Direction::sent : TapEvent::Direction::received,
          .bytes = sent.frame->bytes,
          .bad = sent.frame->bad,
          .lost = sent.dropped,
          .comment = sent.frame->comment},
         sent.frame});
  }
}

void Fabric::forward(const Arrival& arrival) {
  if (arrival.frame->bad) {
    ++switch_counters_.bad_fcs;
    return;
  }
  const FrameInfo info = inspect(arrival.frame->bytes);
  const bool group_source = (info.src_mac >> 40 & 1) != 0;
  if (!group_source) mac_table_[info.src_mac] = arrival.port;
  const bool group = (info.dst_mac >> 40 & 1) != 0;
  const auto entry = group ? mac_table_.end() : mac_table_.find(info.dst_mac);
  if (entry != mac_table_.end()) {
    if (entry->second == arrival.port) {
      ++switch_counters_.filtered;
      return;
    }
    ++switch_counters_.forwarded;
    forward_to(arrival, entry->second);
    return;
  }
  ++switch_counters_.flooded;
  for (size_t port = 0; port < ports_.size(); ++port) {
    if (port != arrival.port) forward_to(arrival, port);
  }
}

void Fabric::forward_to(const Arrival& arrival, size_t port) {
  Channel& out = *channels_[exit_of(port)];
  const uint64_t cycle = arrival.cycle + config_.switch_latency;
  const uint64_t needed = arrival.frame->bytes.size() + kWireOverhead;
  if (config_.switch_queue_bytes != kNever &&
      out.backlog_bytes(cycle) + needed > config_.switch_queue_bytes) {
    ++switch_counters_.overflow;
    return;
  }
  out.send(cycle, arrival.frame->bytes, false, arrival.frame->from_port, arrival.frame->comment);
}

uint64_t Fabric::next_event_cycle() const {
  uint64_t next = kNever;
  for (const auto& port : ports_) {
    if (!port->inbox_.empty()) next = std::min(next, port->inbox_.front().cycle);
    if (port->refused_) next = cycle_;
  }
  for (const auto& channel : channels_) {
    if (channel->in_frame() || !channel->deliveries().empty()) next = cycle_;
    if (const auto deadline = channel->deadline_cycle()) next = std::min(next, *deadline);
  }
  for (const Arrival& arrival : arrivals_) next = std::min(next, arrival.cycle);
  return std::max(next, cycle_);
}

void Fabric::skip_to(uint64_t cycle) {
  if (cycle < cycle_ || cycle > next_event_cycle()) {
    throw std::logic_error("fabric: cannot skip from cycle " + std::to_string(cycle_) + " to " +
                           std::to_string(cycle));
  }
  for (const auto& port : ports_) port->cycle_ = cycle;
  cycle_ = cycle;
  run_taps(cycle_);
}

void Fabric::set_impairments(const Impairments& impairments) {
  for (const auto& channel : channels_) channel->set_impairments(impairments);
}

void Fabric::set_tx_impairments(size_t port, const Impairments& impairments) {
  channels_.at(entry_of(port))->set_impairments(impairments);
}

void Fabric::set_rx_impairments(size_t port, const Impairments& impairments) {
  channels_.at(exit_of(port))->set_impairments(impairments);
}

LinkCounters Fabric::link_counters(size_t link) const {
  LinkCounters sum = channels_.at(2 * link)->counters();
  sum += channels_.at(2 * link + 1)->counters();
  return sum;
}

void Fabric::add_tap(std::function<void(const TapEvent&)> observer) {
  taps_.push_back(std::move(observer));
  for (const auto& channel : channels_) channel->log_sent(true);
}

void Fabric::run_taps(uint64_t before) {
  if (pending_taps_.empty()) return;
  std::ranges::stable_sort(pending_taps_, {}, [](const PendingTap& tap) {
    return std::tie(tap.event.cycle, tap.event.port, tap.event.direction);
  });
  const auto end = std::ranges::find_if(
      pending_taps_, [before](const PendingTap& tap) { return tap.event.cycle >= before; });
  for (auto tap = pending_taps_.begin(); tap != end; ++tap) {
    for (const auto& observer : taps_) observer(tap->event);
  }
  pending_taps_.erase(pending_taps_.begin(), end);
}

}  // namespace roci::sim
