// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What became of each queue pair's packets, seen from outside of the chip: frames on the links, what its
// program asked for, its completions. So "status 12" has a reason without a counter per queue pair in the
// chip. Packets that a NIC loops back to itself are on no link and are not seen.
#pragma once

#include <roci_hwif.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/fabric.hpp"

namespace roci::sim {

/// NAKs by kind; the numbers are those of the AETH syndrome 0x60 … 0x63 (wire.md §2.4).
struct NakCounts {
  uint64_t sequence = 0, invalid_request = 0, remote_access = 0, remote_operational = 0;
  uint64_t rnr = 0;

  uint64_t total() const {
    return sequence + invalid_request + remote_access + remote_operational + rnr;
  }
};

/// One queue pair of one NIC.
struct QueuePair {
  unsigned nic = 0;
  unsigned function = 0;
  uint32_t qpn = 0;
  bool alive = true;  ///< not destroyed, its program still there
  std::optional<hwif::QpState> state;  ///< that the program asked for last, or ERR, SQE by a failure
  std::optional<uint32_t> dest_qpn;
  uint64_t dest_mac = 0;  ///< first wire byte most significant

  // As the side that asks: packets of its own requests, and what came back.
  uint64_t requests_sent = 0;
  uint64_t requests_again = 0;   ///< of these, PSNs that had been sent before
  uint64_t requests_lost = 0;    ///< of these, dropped by a link, as far as it is known
  uint64_t rewinds_nak = 0;      ///< went back after a sequence NAK,
  uint64_t rewinds_rnr = 0;      ///< after an RNR NAK,
  uint64_t rewinds_other = 0;    ///< without either: ACK timer, or a response is missing
  uint64_t acks_received = 0;
  uint64_t responses_received = 0;  ///< READ and atomic responses
  NakCounts naks_received;

  // As the side that is asked.
  uint64_t requests_received = 0;
  uint64_t acks_sent = 0;
  uint64_t responses_sent = 0;
  uint64_t answers_lost = 0;  ///< of these and of the NAKs, dropped by a link
  NakCounts naks_sent;

  uint64_t damaged_received = 0;  ///< frames of either kind whose FCS or ICRC is bad

  uint64_t completions = 0;  ///< both queues, failed ones included
  uint64_t failed = 0;       ///< of these, neither SUCCESS nor WR_FLUSH_ERR
  uint64_t flushed = 0;
  hwif::CqeStatus status = hwif::CqeStatus::SUCCESS;              ///< of the first that failed
  hwif::VendorStatus vendor_status = hwif::VendorStatus::NONE;
};

/// The queue pairs of all NICs of a run.
class QueuePairs {
 public:
  /// A port of the fabric: whose it is.
  struct Place {
    std::string name;             ///< "roci0", "foreign0"
    std::optional<uint64_t> mac;  ///< of a NIC; a foreign port has any
  };

  /// @param places  of all ports, NICs first
  explicit QueuePairs(std::vector<Place> places) : places_(std::move(places)) {}

  /// A program asks for a change.
  void modify(unsigned nic, unsigned function, uint32_t qpn, const hwif::ModifyQpInput& input);
  void destroy(unsigned nic, uint32_t qpn);
  /// The program of a function is gone.
  void left(unsigned nic, unsigned function);
  /// A completion is written to memory.
  void completed(unsigned nic, const hwif::Cqe& cqe);
  /// A frame at a port: tap of the fabric.
  void frame(const TapEvent& event);

  /// All that are remembered, by NIC and number.
  std::vector<const QueuePair*> all() const;
  /// One of them, or null.
  const QueuePair* find(unsigned nic, uint32_t qpn) const;
  /// Packets that reached a NIC for a queue pair that it does not have.
  uint64_t unknown_destination(unsigned nic) const;

  /// Where a queue pair's packets go: "QP 0x000400 of roci1".
  std::string destination(const QueuePair& qp) const;
  /// The NIC they go to; none if it is no NIC of the run.
  std::optional<unsigned> destination_nic(const QueuePair& qp) const;

  /// Why its requests or receives failed, as far as it shows from outside, in one line; empty if none
  /// failed. @param drops  of each NIC: counters that are not 0 and speak of drops, as text
  std::string explain(const QueuePair& qp, const std::vector<std::string>& drops) const;

 private:
  struct Entry {
    QueuePair qp;
    // of the requests that it sends
    uint32_t mtu = 4096;
    bool sent = false;
    uint32_t next_psn = 0;     // behind the newest
    uint32_t follows_psn = 0;  // behind the last one
    enum class Cause : uint8_t { none, nak, rnr } cause = Cause::none;
  };
  using Key = std::pair<unsigned, uint32_t>;  // NIC, number

  Entry& entry(unsigned nic, unsigned function, uint32_t qpn);
  Entry* sender_of(unsigned nic, uint32_t dest_qpn, uint64_t dest_mac, uint32_t src_qpn);
  std::optional<unsigned> nic_of(uint64_t mac) const;
  // @param psns  that the request takes: a READ one for each response
  void request_sent(Entry& entry, uint32_t psn, uint32_t psns);

  std::vector<Place> places_;
  std::map<Key, Entry> entries_;
  // NIC, number and MAC address of the peer: whose packets those are
  std::map<std::pair<Key, uint64_t>, uint32_t> senders_;
  std::map<unsigned, uint64_t> unknown_;
};

}  // namespace roci::sim
