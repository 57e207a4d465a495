// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A queue pair of the device, connected to one that the peer plays; the frames of that connection in
// both directions, and the device's completions.
#pragma once

#include "conformance/bench.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace roci::conformance {

/// What a connection is like.
struct LinkSettings {
  QpSettings qp;
  ibv_mtu mtu = IBV_MTU_1024;
  uint8_t timeout = 14;
  uint8_t retry_cnt = 7;
  uint8_t rnr_retry = 7;
  uint8_t min_rnr_timer = 12;
  uint8_t max_rd_atomic = 4;       ///< of the device as requester
  uint8_t max_dest_rd_atomic = 4;  ///< and as responder
  unsigned access = kAllAccess;
  uint32_t device_psn = 0x123456;  ///< p: the first that the device sends
  uint32_t peer_psn = 0x654321;    ///< E: the first that the peer sends, which the device expects
  uint32_t peer_qpn = 0x00beef;
  uint8_t gid_index = 0;
  uint16_t pkey_index = 0;
  uint32_t qkey = 0x11111111;      ///< UD
};

/// Memory at the other side, as a request names it.
struct Remote {
  uint64_t va = 0;
  uint32_t rkey = 0;
};

/// Where a peer's memory would be: the device knows no better, and the peer has none.
inline constexpr Remote kPeerMemory{0x7000'0000'1000, 0x00c0ffee};

/// Part of the device's memory.
inline Remote at(const Memory& memory, size_t offset = 0) {
  return {memory.address() + offset, memory.rkey()};
}

/// The connection.
class Link {
 public:
  /// Creates the queue pair and connects it, up to this state.
  explicit Link(Bench& bench, const LinkSettings& settings = {}, ibv_qp_state up_to = IBV_QPS_RTS);

  /// From RESET up to a state; with other settings from now on, if given.
  void connect(ibv_qp_state up_to = IBV_QPS_RTS);
  /// One transition with all attributes that it needs.
  void step_to(ibv_qp_state state);
  void reset() { step_to(IBV_QPS_RESET); }

  QueuePair& qp() { return *qp_; }
  LinkSettings settings;

  // ---- PSNs

  /// That of the request `ahead` of the peer's first one.
  uint32_t e(int64_t ahead = 0) const { return psn_add(settings.peer_psn, ahead); }
  /// That of the request `ahead` of the device's first one.
  uint32_t p(int64_t ahead = 0) const { return psn_add(settings.device_psn, ahead); }
  /// "E+3", "p-1", or the number.
  std::string name(uint32_t psn) const;
  /// Payload of a full packet.
  size_t mtu() const { return size_t{128} << settings.mtu; }

  // ---- frames of the peer

  /// A request; AckReq set unless more of its message follows. For a WRITE or READ fill in reth.
  Frame request(uint8_t operation, int64_t ahead, Bytes payload = {}) const;
  /// @param dma_len  if the RETH is to say another length than the payload's
  Frame write(uint8_t operation, int64_t ahead, Bytes payload, Remote to,
              std::optional<uint32_t> dma_len = {}) const;
  Frame read(int64_t ahead, Remote from, uint32_t bytes) const;
  Frame atomic(uint8_t operation, int64_t ahead, Remote where, uint64_t swap_add,
               uint64_t compare = 0) const;
  /// All packets of a SEND or WRITE.
  std::vector<Frame> send_message(int64_t ahead, const Bytes& message) const;
  std::vector<Frame> write_message(int64_t ahead, const Bytes& message, Remote to) const;

  /// ACK, NAK or RNR NAK of a request of the device. @param msn  messages that are complete
  Frame ack(uint32_t psn, uint8_t syndrome = kAck, uint32_t msn = 1) const;
  /// A READ response packet.
  Frame response(uint8_t operation, uint32_t psn, Bytes payload, uint32_t msn = 1) const;
  /// All responses of a READ, from the first.
  std::vector<Frame> responses(uint32_t psn, const Bytes& data, uint32_t msn = 1) const;

  /// To the device, with pad, PayLen and ICRC.
  void send(const Frame& frame) { bench_.peer.send(frame); }
  void send(const std::vector<Frame>& frames) {
    for (const Frame& f : frames) send(f);
  }

  // ---- frames of the device

  /// The next one to this connection, or nothing.
  std::optional<Packet> next(Time within = 200 * kMicrosecond);
  /// As next(), but it has to come.
  Packet must_come(const std::string& what, Time within = 200 * kMicrosecond);
  /// All until the line is quiet.
  std::vector<Packet> collect(Time quiet = 50 * kMicrosecond);
  /// What they are: "NAK 0x60 E, 3 ACK E+4 to E+6".
  std::string tell(const std::vector<Packet>& packets) const;
  std::string tell(const Packet& packet) const;
  /// Expects exactly one packet: an ACKNOWLEDGE with this syndrome and PSN. @return whether it is
  bool expect_ack(const std::vector<Packet>& packets, uint8_t syndrome, uint32_t psn,
                  const std::string& of_what);

  // ---- the device's program

  int post(ibv_wr_opcode opcode, std::vector<ibv_sge> sges, uint64_t wr_id,
           unsigned flags = IBV_SEND_SIGNALED, Remote remote = kPeerMemory, uint32_t imm = 0);
  int post(ibv_wr_opcode opcode, ibv_sge sge, uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED,
           Remote remote = kPeerMemory, uint32_t imm = 0) {
    return post(opcode, std::vector{sge}, wr_id, flags, remote, imm);
  }
  int post_recv(std::vector<ibv_sge> sges, uint64_t wr_id);
  int post_recv(ibv_sge sge, uint64_t wr_id) { return post_recv(std::vector{sge}, wr_id); }

  /// The next completion, which has to come in this time and to be this one.
  ibv_wc sent(uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS, Time within = kSecond);
  ibv_wc received(uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS, Time within = kSecond);
  /// The same with any status.
  ibv_wc received_any(uint64_t wr_id, Time within = kSecond);
  /// Expects that neither queue has a completion. @param when  for the verdict
  void expect_no_completion(const std::string& when);
  /// Expects that a WRITE of the peer with this PSN is carried out and acknowledged: the queue pair is
  /// well, and this is the PSN that it expects.
  void expect_works(int64_t ahead, const std::string& when);
  /// Expects that a bad request was answered by this NAK of its PSN, and the queue pair is in ERR.
  /// @return what was answered, in words
  std::string expect_fatal(uint8_t syndrome, int64_t ahead, const std::string& of_what);
  /// Expects the state of the queue pair.
  void expect_state(ibv_qp_state state, const std::string& when);

 private:
  ibv_wc completion(bool of_send, uint64_t wr_id, std::optional<ibv_wc_status> status, Time within);
  std::vector<Frame> split(const Bytes& message, uint8_t first, uint8_t middle, uint8_t last,
                           uint8_t only,
                           const std::function<Frame(uint8_t, size_t, Bytes)>& make) const;

  Bench& bench_;
  std::unique_ptr<QueuePair> qp_;
  std::unique_ptr<Memory> scratch_;
};

/// Whether a part of memory is this.
bool holds(Memory& memory, size_t offset, const Bytes& bytes);
/// Whether a part of memory is filled with one value.
bool filled(Memory& memory, size_t offset, size_t count, uint8_t value);
void fill(Memory& memory, uint8_t value);
/// Fills memory with random bytes. @return them
Bytes randomize(Bench& bench, Memory& memory);
/// A part of some bytes.
Bytes part(const Bytes& bytes, size_t offset, size_t count);
/// "RTS"
const char* state_text(ibv_qp_state state);
/// "WR_FLUSH_ERR"
std::string status_text(ibv_wc_status status);

}  // namespace roci::conformance
