// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The five channels of the NIC's AXI4 master as structs (AMBA AXI4, ARM IHI 0022). Only what the
// NIC drives: INCR bursts of full-width beats; lock, cache, prot, qos and region have no say here.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>

namespace roci::sim {

/// Response codes.
enum class AxiResp : uint8_t { okay = 0, exokay = 1, slverr = 2, decerr = 3 };

inline constexpr uint8_t kAxiIncr = 1;  ///< AxBURST of an incrementing burst

/// AR or AW.
struct AxiAddress {
  uint64_t addr = 0;  ///< may be unaligned: the first beat then starts in mid-beat
  uint16_t id = 0;
  uint8_t len = 0;   ///< beats - 1
  uint8_t size = 6;  ///< log2 of the bytes per beat; must be the full data width
  uint8_t burst = kAxiIncr;
  uint16_t user = 0;  ///< function number
  bool operator==(const AxiAddress&) const = default;
};

/// W. Byte i of a beat is data[i]; a narrow bus uses the first 8.
struct AxiWrite {
  std::array<uint8_t, 64> data{};
  uint64_t strb = 0;  ///< bit i enables byte i
  bool last = false;
  bool operator==(const AxiWrite&) const = default;
};

/// R.
struct AxiRead {
  std::array<uint8_t, 64> data{};
  uint16_t id = 0;
  AxiResp resp = AxiResp::okay;
  bool last = false;
};

/// B.
struct AxiWriteResponse {
  uint16_t id = 0;
  AxiResp resp = AxiResp::okay;
};

/// What the NIC drives in one cycle.
struct AxiMaster {
  bool ar_valid = false;
  AxiAddress ar{};
  bool aw_valid = false;
  AxiAddress aw{};
  bool w_valid = false;
  AxiWrite w{};
  bool r_ready = false;
  bool b_ready = false;
};

/// The NIC broke a rule of AXI4. The text says which, where and in which cycle.
struct AxiProtocolError : std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace roci::sim
