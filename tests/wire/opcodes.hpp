// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The BTH opcodes of RoCEv1, as the test side knows them: which extended headers follow and what
// payload is legal. Written by hand from the wire rules (reference wire.md §1.4), never from hwif/,
// so that an error in the interface description cannot hide in the tests.
#pragma once

#include <cstdint>
#include <span>

namespace roci::wirecodec {

/// Transport of an opcode: its top three bits. RD (0x40) is not supported by this NIC.
enum class Transport : uint8_t { rc = 0x00, uc = 0x20, ud = 0x60, xrc = 0xa0 };

/// Operation of an opcode: its low five bits, common to all transports.
namespace op {
inline constexpr uint8_t send_first = 0x00;
inline constexpr uint8_t send_middle = 0x01;
inline constexpr uint8_t send_last = 0x02;
inline constexpr uint8_t send_last_imm = 0x03;
inline constexpr uint8_t send_only = 0x04;
inline constexpr uint8_t send_only_imm = 0x05;
inline constexpr uint8_t write_first = 0x06;
inline constexpr uint8_t write_middle = 0x07;
inline constexpr uint8_t write_last = 0x08;
inline constexpr uint8_t write_last_imm = 0x09;
inline constexpr uint8_t write_only = 0x0a;
inline constexpr uint8_t write_only_imm = 0x0b;
inline constexpr uint8_t read_request = 0x0c;
inline constexpr uint8_t read_resp_first = 0x0d;
inline constexpr uint8_t read_resp_middle = 0x0e;
inline constexpr uint8_t read_resp_last = 0x0f;
inline constexpr uint8_t read_resp_only = 0x10;
inline constexpr uint8_t acknowledge = 0x11;
inline constexpr uint8_t atomic_ack = 0x12;
inline constexpr uint8_t cmp_swap = 0x13;
inline constexpr uint8_t fetch_add = 0x14;
inline constexpr uint8_t send_last_inv = 0x16;
inline constexpr uint8_t send_only_inv = 0x17;
}  // namespace op

/// Full opcode byte of an operation on a transport.
constexpr uint8_t opcode(Transport transport, uint8_t operation) {
  return static_cast<uint8_t>(static_cast<uint8_t>(transport) | operation);
}

/// What payload an opcode may carry.
enum class PayloadRule : uint8_t {
  none,       ///< no payload at all
  pmtu,       ///< exactly the path MTU, pad 0 (FIRST and MIDDLE)
  one_or_up,  ///< 1 … path MTU (LAST)
  any,        ///< 0 … path MTU (ONLY)
};

/// Static facts of one opcode.
struct OpcodeInfo {
  uint8_t code;         ///< full opcode byte
  const char* name;     ///< for example "RC_WRITE_ONLY_IMM"
  Transport transport;  ///< class of QP it belongs to
  bool response;        ///< sent by a responder (ACK, READ response, ATOMIC ACK)
  bool xrceth;          ///< extended headers present, in wire order
  bool deth;
  bool reth;
  bool atomiceth;
  bool aeth;
  bool atomicacketh;
  bool immdt;
  bool ieth;
  PayloadRule payload;

  /// Length of all extended headers in bytes.
  unsigned ext_bytes() const;
};

/// Looks an opcode up. Null for every code that a RoCEv1 NIC must not know: RD, CNP (0x81, RoCEv2
/// only), reserved and vendor codes.
const OpcodeInfo* opcode_info(uint8_t code);

/// All known opcodes: 23 RC, 12 UC, 2 UD, 23 XRC.
std::span<const OpcodeInfo> all_opcodes();

}  // namespace roci::wirecodec
