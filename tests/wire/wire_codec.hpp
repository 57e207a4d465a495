// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// RoCEv1 frames as clear structs, and their bytes: the codec of the test side. It is written by
// hand from the wire rules (wire.md §1) and must never include anything generated from hwif/: the
// RTL and the host stack are checked against it.
//
// encode() writes every field exactly as given, so a tester can send malformed frames; build()
// first fills in what follows from the rest (pad, PayLen, ICRC). parse() splits a frame by its
// structure and judges nothing: frame_checker.hpp does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "wire/addresses.hpp"
#include "wire/opcodes.hpp"

namespace roci::wirecodec {

using Bytes = std::vector<uint8_t>;

inline constexpr uint16_t kEthertypeRoce = 0x8915;
inline constexpr uint16_t kEthertypeVlan = 0x8100;
inline constexpr unsigned kGrhBytes = 40;
inline constexpr unsigned kBthBytes = 12;
inline constexpr unsigned kIcrcBytes = 4;

/// 802.1Q tag control information.
struct VlanTag {
  uint8_t pcp = 0;   ///< priority, 3 bits
  bool dei = false;  ///< drop eligible
  uint16_t vid = 0;  ///< VLAN id, 12 bits
  bool operator==(const VlanTag&) const = default;
};

/// Ethernet header with at most one VLAN tag.
struct Ethernet {
  Mac dst{};
  Mac src{};
  std::optional<VlanTag> vlan;
  uint16_t ethertype = kEthertypeRoce;
  bool operator==(const Ethernet&) const = default;
};

/// Global route header, 40 bytes (wire.md §1.1).
struct Grh {
  uint8_t ip_version = 6;
  uint8_t traffic_class = 0;
  uint32_t flow_label = 0;     ///< 20 bits
  uint16_t pay_len = 0;        ///< bytes after the GRH: BTH … ICRC
  uint8_t next_header = 0x1b;  ///< 0x1b = IBA transport
  uint8_t hop_limit = 64;
  Gid sgid{};
  Gid dgid{};
  bool operator==(const Grh&) const = default;
};

/// Base transport header, 12 bytes (wire.md §1.2).
struct Bth {
  uint8_t opcode = 0;
  bool solicited = false;  ///< SE
  bool mig_req = true;     ///< M: 1 = migrated, what every NIC without APM sends
  uint8_t pad_count = 0;   ///< 2 bits
  uint8_t tver = 0;        ///< 4 bits
  uint16_t pkey = 0xffff;
  uint8_t resv8a = 0;    ///< FECN, BECN and six reserved bits: outside the ICRC
  uint32_t dest_qp = 0;  ///< 24 bits
  bool ack_req = false;  ///< A
  uint8_t resv7 = 0;     ///< 7 bits, inside the ICRC
  uint32_t psn = 0;      ///< 24 bits
  bool operator==(const Bth&) const = default;
};

/// RDMA extended transport header, 16 bytes.
struct Reth {
  uint64_t va = 0;
  uint32_t rkey = 0;
  uint32_t dma_len = 0;  ///< bytes of the whole message
  bool operator==(const Reth&) const = default;
};

/// ACK extended transport header, 4 bytes; see aeth.hpp for the syndrome.
struct Aeth {
  uint8_t syndrome = 0;
  uint32_t msn = 0;  ///< 24 bits
  bool operator==(const Aeth&) const = default;
};

/// Atomic extended transport header, 28 bytes.
struct AtomicEth {
  uint64_t va = 0;
  uint32_t rkey = 0;
  uint64_t swap_add = 0;  ///< value to swap in, or to add
  uint64_t compare = 0;   ///< CMP_SWAP only
  bool operator==(const AtomicEth&) const = default;
};

/// Atomic acknowledge header, 8 bytes.
struct AtomicAckEth {
  uint64_t original = 0;  ///< memory before the operation
  bool operator==(const AtomicAckEth&) const = default;
};

/// Immediate data, 4 bytes that reach the CQE unswapped.
struct ImmDt {
  std::array<uint8_t, 4> bytes{};
  bool operator==(const ImmDt&) const = default;
};

/// Invalidate header, 4 bytes.
struct Ieth {
  uint32_t rkey = 0;
  bool operator==(const Ieth&) const = default;
};

/// Datagram header, 8 bytes.
struct Deth {
  uint32_t qkey = 0;
  uint8_t reserved = 0;
  uint32_t src_qp = 0;  ///< 24 bits
  bool operator==(const Deth&) const = default;
};

/// XRC header, 4 bytes.
struct Xrceth {
  uint8_t reserved = 0;
  uint32_t srqn = 0;  ///< 24 bits
  bool operator==(const Xrceth&) const = default;
};

/// One RoCEv1 frame without its FCS. Extended headers are written in wire order when present,
/// whatever the opcode says; make_frame() and parse() set those that belong to the opcode.
struct Frame {
  Ethernet eth;
  Grh grh;
  Bth bth;
  std::optional<Xrceth> xrceth;
  std::optional<Deth> deth;
  std::optional<Reth> reth;
  std::optional<AtomicEth> atomiceth;
  std::optional<Aeth> aeth;
  std::optional<AtomicAckEth> atomicacketh;
  std::optional<ImmDt> immdt;
  std::optional<Ieth> ieth;
  Bytes payload;      ///< without pad
  Bytes pad;          ///< 0 … 3 bytes
  uint32_t icrc = 0;  ///< CRC value; its least significant byte is sent first
  Bytes trailing;     ///< bytes behind the ICRC (Ethernet padding), normally none

  /// Facts of the opcode; null if unknown.
  const OpcodeInfo* info() const { return opcode_info(bth.opcode); }
  bool operator==(const Frame&) const = default;
};

/// The frame has no RoCEv1 structure: too short, another Ethertype, or PayLen does not fit.
struct ParseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Splits a frame (no FCS) into its fields. The payload ends where GRH.PayLen says, not at the end
/// of the frame (wire.md §1); what follows is kept as trailing. Field values (IPVer, NxtHdr, TVer,
/// GIDs, ICRC, …) are returned, not judged; an unknown opcode has no extended headers.
/// @throws ParseError if the structure does not hold
Frame parse(std::span<const uint8_t> frame);

/// Bytes of a frame, every field as given (only cut to its width).
Bytes encode(const Frame& frame);

/// Fills in pad count and pad (zeros) from the payload length, PayLen, and the ICRC.
Frame finish(Frame frame);

/// Recomputes only the ICRC, for frames whose other fields are wrong on purpose.
Frame with_icrc(Frame frame);

/// encode(finish(frame)): a well-formed frame.
Bytes build(const Frame& frame);

/// Addresses of one direction between two ports.
struct Path {
  Mac src_mac{};
  Mac dst_mac{};
  Gid sgid{};
  Gid dgid{};
  std::optional<VlanTag> vlan;
  uint16_t pkey = 0xffff;
};

/// The way back: source and destination exchanged.
Path reverse(const Path& path);

/// A frame with the headers that its opcode needs (zero where no argument fills them), not
/// finished.
/// @throws std::invalid_argument for an unknown opcode
Frame make_frame(const Path& path, uint8_t opcode, uint32_t dest_qp, uint32_t psn,
                 Bytes payload = {});

/// An RC ACKNOWLEDGE (ACK, NAK or RNR NAK by the syndrome), not finished.
Frame make_ack(const Path& path, uint32_t dest_qp, uint32_t psn, uint8_t syndrome, uint32_t msn);

/// One line for people: opcode, QP, PSN, extended headers, payload length, ICRC good or bad.
std::string describe(const Frame& frame);

/// Like describe(frame), or why the bytes cannot be parsed. Never throws.
std::string describe(std::span<const uint8_t> frame);

}  // namespace roci::wirecodec
