// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Ports of the switch whose other end is a Unix datagram socket, so that another implementation can sit
// on the link: one Ethernet frame without FCS per datagram, in both directions. Used by the thread that
// runs the simulation, between two quanta; only deliver() is called inside of them.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fabric.hpp"
#include "server/socket_files.hpp"

namespace roci::sim {

/// What happened at a foreign port.
struct ForeignCounters {
  uint64_t received = 0;  ///< frames of the peer, put on the link
  uint64_t sent = 0;      ///< frames that the peer was given
  uint64_t no_peer = 0;   ///< frames dropped: nobody has come yet, or the peer is gone
  uint64_t full = 0;      ///< frames dropped: the peer does not read
  uint64_t bad_fcs = 0;   ///< frames dropped: damaged on the link, which a datagram cannot say
  uint64_t runt = 0;      ///< datagrams dropped: shorter than an Ethernet header
  uint64_t oversize = 0;  ///< datagrams dropped: longer than the longest frame
  uint64_t stranger = 0;  ///< datagrams dropped: from another socket while the peer lives
};

/// One such port.
class ForeignPort {
 public:
  using Clock = std::chrono::steady_clock;

  /// Shortest and longest datagram that is a frame: an Ethernet header, and 9,000 bytes with two VLAN
  /// tags.
  static constexpr size_t kMinFrame = 14;
  static constexpr size_t kMaxFrame = 9022;
  /// Frames for the peer that wait before the simulation waits, too, and those that wait at most.
  static constexpr size_t kCrowded = 64;
  static constexpr size_t kMostWaiting = 1024;
  /// A peer that takes no frame for so long loses them.
  static constexpr std::chrono::milliseconds kPatience{1000};

  /// Binds `path`, as SocketFile does. The peer is learnt from its first datagram; an empty one is a
  /// greeting and nothing else.
  /// @throws Error as SocketFile does
  ForeignPort(const std::string& path, Notice notice);
  ForeignPort(const ForeignPort&) = delete;
  ForeignPort& operator=(const ForeignPort&) = delete;
  ~ForeignPort() = default;

  /// Joins it to a port of the fabric, which outlives it and is used by nobody else.
  void attach(Port& port);

  /// Readable when the peer has sent something.
  int fd() const { return socket_.fd(); }
  const std::string& path() const { return socket_.path(); }

  /// Puts what the peer sent onto the link, as much as the wire takes in a while; the rest stays in the
  /// socket and holds the peer up.
  void receive(Clock::time_point now);
  /// Gives the peer the frames that wait for it.
  void send(Clock::time_point now);

  /// Frames wait for the peer.
  bool waiting() const { return !queue_.empty(); }
  /// So many that the simulation should wait.
  bool crowded() const { return queue_.size() >= kCrowded; }
  /// Nobody can be about to send: there is no peer, or no frame went either way for `quiet`.
  bool silent(Clock::time_point now, Clock::duration quiet) const;

  const ForeignCounters& counters() const { return counters_; }
  /// One line about its frames.
  std::string describe() const;

 private:
  struct Peer {
    sockaddr_un address{};
    socklen_t length = 0;
  };

  void deliver(const ReceivedFrame& frame);
  bool meet(const sockaddr_un& address, socklen_t length);
  void lose_peer();
  void tell(const std::string& text) const;

  SocketFile socket_;
  Notice notice_;
  Port* port_ = nullptr;
  std::optional<Peer> peer_;
  std::deque<std::vector<uint8_t>> queue_;
  std::optional<Clock::time_point> blocked_;  // since when the peer takes nothing
  bool stuck_ = false;                        // for longer than kPatience
  Clock::time_point last_{};                  // when a frame went either way
  bool told_unnamed_ = false, told_stranger_ = false;
  ForeignCounters counters_;
};

/// All foreign ports of a run.
class ForeignPorts {
 public:
  using Clock = ForeignPort::Clock;

  /// @param quiet  how long no frame may have passed before time may be skipped
  ForeignPorts(const std::vector<std::string>& paths, Clock::duration quiet, const Notice& notice);

  /// Joins them to the ports of the fabric from `first` on.
  void attach(Fabric& fabric, size_t first);

  /// Gives the peers what waits for them.
  void send();
  bool waiting() const;
  bool crowded() const;
  bool silent() const;

  const std::vector<std::unique_ptr<ForeignPort>>& all() const { return ports_; }

 private:
  std::vector<std::unique_ptr<ForeignPort>> ports_;
  Clock::duration quiet_;
};

}  // namespace roci::sim
