// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The device under test as its own program sees it: verbs, no more. Scenarios know nothing else of
// it, so that they run against any device for which somebody implements this (README.md).
#pragma once

#include "conformance/frame_port.hpp"

#include "wire/addresses.hpp"

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace roci::conformance {

/// Rights of memory and queue pairs that may do everything.
inline constexpr unsigned kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/// A protection domain of the program: two are enough.
enum class Domain : uint8_t { first, second };

/// Memory of the program, registered; deregistered at its end.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual uint8_t* data() = 0;
  virtual size_t size() const = 0;
  /// Of the first byte, in work requests and packets.
  virtual uint64_t address() const = 0;
  virtual uint32_t lkey() const = 0;
  virtual uint32_t rkey() const = 0;
  /// Ends the registration; the bytes stay.
  virtual void deregister() = 0;

  /// An SGE of a part.
  ibv_sge sge(size_t offset, size_t bytes) const {
    return {address() + offset, static_cast<uint32_t>(bytes), lkey()};
  }
};

/// What a queue pair is made of.
struct QpSettings {
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_cap cap{64, 64, 2, 2, 0};
  bool signal_all = false;
};

/// A queue pair, with a completion queue for each direction that nobody else uses.
class QueuePair {
 public:
  virtual ~QueuePair() = default;
  virtual uint32_t number() const = 0;
  /// ibv_modify_qp. @throws std::exception if it is refused
  virtual void modify(const ibv_qp_attr& attr, int mask) = 0;
  /// The state that ibv_query_qp tells.
  virtual ibv_qp_state state() = 0;
  /// ibv_post_send, ibv_post_recv. @return errno
  virtual int post_send(ibv_send_wr& wr) = 0;
  virtual int post_recv(ibv_recv_wr& wr) = 0;
  /// The next completion, if there is one. Never waits.
  virtual std::optional<ibv_wc> poll_send() = 0;
  virtual std::optional<ibv_wc> poll_recv() = 0;
};

/// An asynchronous event.
struct Event {
  ibv_event_type type;
  uint32_t qpn = 0;  ///< of the queue pair, if it is one of a queue pair
  bool operator==(const Event&) const = default;
};

/// The device and the wire that leads to it.
class Device {
 public:
  virtual ~Device() = default;
  /// "RTL, wide".
  virtual std::string name() const = 0;
  virtual FramePort& wire() = 0;

  virtual wirecodec::Mac mac() const = 0;
  /// GID 0 of the port, link-local from its MAC.
  virtual wirecodec::Gid gid() const = 0;

  virtual std::unique_ptr<Memory> register_memory(size_t bytes, unsigned access = kAllAccess,
                                                  Domain domain = Domain::first) = 0;
  /// In Domain::first.
  virtual std::unique_ptr<QueuePair> create_qp(const QpSettings& settings) = 0;
  /// Asynchronous events since the last call.
  virtual std::vector<Event> events() = 0;
  /// A counter of drops and retries by the name that this project gives it ("rx_drop_icrc"), since
  /// power-up; nothing if the device has none of that kind.
  virtual std::optional<uint64_t> counter(const std::string& name) = 0;

  // What an administrator sets.
  /// An entry of the GID table. @param vlan  that it belongs to, if to any
  virtual void set_gid(unsigned index, const wirecodec::Gid& gid, std::optional<uint16_t> vlan) = 0;
  virtual void set_pkey(unsigned index, uint16_t pkey) = 0;
};

}  // namespace roci::conformance
