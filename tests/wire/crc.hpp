// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ICRC and Ethernet FCS, each in two ways that share no code: a table and a bit-serial register.
// The tests compare them with each other and with the vectors, so both can be trusted as oracle.
#pragma once

#include <cstdint>
#include <span>

namespace roci::wirecodec {

/// CRC register after a good packet including its ICRC (or a good frame including its FCS), before
/// the final complement (wire.md §1.6).
inline constexpr uint32_t kCrcResidue = 0xdebb20e3;

/// ICRC of a RoCEv1 packet (wire.md §1.6), by table.
/// @param grh_to_pad  the bytes from the first GRH byte to the last pad byte, ICRC excluded;
///                    at least 52 bytes (GRH and BTH)
/// @return the CRC value; on the wire its least significant byte comes first
uint32_t icrc(std::span<const uint8_t> grh_to_pad);

/// Same value, computed bit by bit in transmission order with the unreflected polynomial.
uint32_t icrc_bit_serial(std::span<const uint8_t> grh_to_pad);

/// CRC register (before the complement) over a packet with its ICRC: kCrcResidue when it is good.
uint32_t icrc_residue(std::span<const uint8_t> grh_to_icrc);

/// Ethernet FCS over a whole frame, by table; least significant byte first on the wire.
uint32_t fcs(std::span<const uint8_t> frame);

/// Same value, bit by bit.
uint32_t fcs_bit_serial(std::span<const uint8_t> frame);

}  // namespace roci::wirecodec
