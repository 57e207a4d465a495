// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The network between simulated NICs: ports, links and a switch, cycle by cycle and deterministic
// by seed. A port takes beats from a Verilated NIC or whole frames from a tester, and delivers
// beats or whole frames. Two ports are joined back to back by one link; more meet at a switch, each
// by a link.
//
// Per core cycle, for every NIC: look at rx() and tx_ready(), run the NIC, clock(). Then step()
// once. Threads: each may clock its own ports up to lookahead() cycles ahead, then one of them
// calls advance_to(); the result is the same bit for bit.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric/beat.hpp"
#include "fabric/channel.hpp"
#include "fabric/rules.hpp"

namespace roci::sim {

/// "No event": later than any cycle.
inline constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

/// How ports are joined.
enum class Topology : uint8_t {
  automatic,     ///< two ports back to back, otherwise a switch
  back_to_back,  ///< two ports, one link
  switched,      ///< any number of ports, one link each to the switch
};

/// Configuration of a fabric. All links are alike; directions can be changed one by one later.
struct FabricConfig {
  size_t ports = 2;
  Topology topology = Topology::automatic;
  ChannelConfig link;                    ///< each direction of each link
  uint32_t switch_latency = 0;           ///< cycles between last bit in and first bit out
  uint64_t switch_queue_bytes = kNever;  ///< per output; a frame that does not fit is dropped
  uint64_t seed = 1;
};

/// A frame as a tester receives it.
struct ReceivedFrame {
  uint64_t cycle = 0;              ///< of its last beat
  std::span<const uint8_t> bytes;  ///< Ethernet frame without FCS; valid during the call
  bool bad = false;                ///< bad FCS
};

/// What a tap sees: a frame leaving or reaching a port.
struct TapEvent {
  enum class Direction : uint8_t { sent, received };
  uint64_t cycle = 0;  ///< last bit on the wire (sent), last beat at the port (received)
  size_t port = 0;
  Direction direction = Direction::sent;
  std::span<const uint8_t> bytes;  ///< without FCS
  bool bad = false;                ///< bad FCS or aborted
  bool damaged = false;  ///< received: bytes or FCS are not those that were sent on this link
  bool lost = false;    ///< dropped: sent, but it will not arrive (received: on the last hop)
  std::string comment;  ///< what was done to it; empty = nothing
};

/// Counters of the switch.
struct SwitchCounters {
  uint64_t forwarded = 0;  ///< to one port
  uint64_t flooded = 0;    ///< multicast, broadcast, unknown destination
  uint64_t bad_fcs = 0;    ///< dropped: bad FCS, as a store-and-forward switch does
  uint64_t filtered = 0;   ///< destination is the port it came from
  uint64_t overflow = 0;   ///< dropped: output queue full
};

class Fabric;

/// A NIC's or tester's place in the fabric. Made by Fabric. Each port may be used by its own thread
/// between two calls of Fabric::advance_to().
class Port {
 public:
  /// The cycle this port is in.
  uint64_t cycle() const { return cycle_; }

  /// Will a beat offered in this cycle be taken? Does not depend on what is offered.
  bool tx_ready() const { return entry_.ready(cycle_); }

  /// Bytes, with what the wire adds, that were sent and are not yet on the wire.
  uint64_t backlog_bytes() const { return entry_.backlog_bytes(cycle_); }

  /// The beat that is valid in this cycle, or null. It cannot be refused.
  const Beat* rx() const {
    return !inbox_.empty() && inbox_.front().cycle == cycle_ ? &inbox_.front().beat : nullptr;
  }

  /// The clock edge that ends this cycle.
  /// @param tx  the beat that the NIC offers, null if its valid is low; taken if tx_ready()
  /// @throws std::logic_error if the NIC breaks the stream protocol: an offer changed or withdrawn
  ///         while it was refused, a short beat inside a frame, an endless frame
  void clock(const Beat* tx = nullptr);

  /// Queues a whole frame; it goes as soon as the wire is free. For testers, and for ports whose
  /// NIC is not inside a frame.
  /// @param frame  Ethernet frame without FCS
  /// @param bad    with bad FCS
  void send(std::span<const uint8_t> frame, bool bad = false);

  /// Called from clock() for every frame received, also when its beats are read by rx().
  void on_frame(std::function<void(const ReceivedFrame&)> handler) {
    handler_ = std::move(handler);
  }

 private:
  friend class Fabric;
  Port(Channel& entry, size_t number) : entry_(entry), number_(number) {}

  Channel& entry_;
  size_t number_;
  uint64_t cycle_ = 0;
  std::deque<Delivery> inbox_;
  std::optional<Beat> refused_;  // offered in the last cycle but not taken: must be offered again
  std::function<void(const ReceivedFrame&)> handler_;
};

/// The network.
class Fabric {
 public:
  /// @throws std::invalid_argument for an impossible configuration
  explicit Fabric(const FabricConfig& config);

  size_t ports() const { return ports_.size(); }
  /// Whether there is a switch.
  bool switched() const { return switched_; }
  Port& port(size_t index) { return *ports_.at(index); }
  uint64_t cycle() const { return cycle_; }

  /// Ends the current cycle: clocks the ports that were not clocked in it, moves frames on.
  void step() { advance_to(cycle_ + 1); }

  /// Clocks all ports to the start of `cycle`, none may be past it; not further than lookahead().
  void advance_to(uint64_t cycle);

  /// How many cycles a port may run without hearing of the others.
  uint64_t lookahead() const;

  /// Anything under way: in a frame, on a wire, held back, in the switch.
  bool busy() const { return next_event_cycle() != kNever; }

  /// The next cycle in which something happens without new frames; kNever if nothing will. Until
  /// then time may be skipped.
  uint64_t next_event_cycle() const;

  /// Jumps to a cycle, no later than the next event. @throws std::logic_error otherwise
  void skip_to(uint64_t cycle);

  /// Adds an impairment rule. @return its number
  size_t add_rule(Rule rule) { return rules_.add(std::move(rule)); }
  void remove_rule(size_t rule) { rules_.remove(rule); }
  /// Frames that the rule has struck.
  uint64_t rule_hits(size_t rule) const { return rules_.hits(rule); }

  /// Changes the probabilities of all directions, for frames that start later.
  void set_impairments(const Impairments& impairments);
  /// The same for what a port sends (its first hop) or receives (its last hop).
  void set_tx_impairments(size_t port, const Impairments& impairments);
  void set_rx_impairments(size_t port, const Impairments& impairments);

  /// Tells the switch where a MAC address lives (48 bits, first wire byte most significant). It
  /// also learns from source addresses.
  void learn(uint64_t mac, size_t port) { mac_table_[mac] = port; }

  /// Back to back: 1. Switched: one per port, with the same number.
  size_t links() const { return channels_.size() / 2; }
  /// Both directions of a link.
  LinkCounters link_counters(size_t link) const;
  /// First hop of what a port sends.
  const LinkCounters& tx_counters(size_t port) const {
    return channels_.at(entry_of(port))->counters();
  }
  /// Last hop of what a port receives.
  const LinkCounters& rx_counters(size_t port) const {
    return channels_.at(exit_of(port))->counters();
  }
  const SwitchCounters& switch_counters() const { return switch_counters_; }

  /// Calls the observer for every frame at every port, in the order of (cycle, port), from step(),
  /// advance_to() and skip_to(), or finish_taps().
  void add_tap(std::function<void(const TapEvent&)> observer);
  /// Reports what taps have not seen yet because its last bit lies in the future.
  void finish_taps() { run_taps(kNever); }

 private:
  struct Arrival {  // at the switch
    uint64_t cycle;
    size_t port;
    std::shared_ptr<const FabricFrame> frame;
  };
  struct PendingTap {
    TapEvent event;
    std::shared_ptr<const FabricFrame> frame;
  };

  size_t entry_of(size_t port) const { return switched_ ? 2 * port : port; }
  size_t exit_of(size_t port) const { return switched_ ? 2 * port + 1 : 1 - port; }
  void exchange();
  void collect(size_t channel);
  void forward(const Arrival& arrival);
  void forward_to(const Arrival& arrival, size_t port);
  void run_taps(uint64_t before);

  FabricConfig config_;
  bool switched_;
  RuleSet rules_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<std::unique_ptr<Port>> ports_;
  uint64_t cycle_ = 0;
  std::vector<Arrival> arrivals_;
  std::map<uint64_t, size_t> mac_table_;
  SwitchCounters switch_counters_;
  std::vector<std::function<void(const TapEvent&)>> taps_;
  std::vector<PendingTap> pending_taps_;
};

}  // namespace roci::sim
