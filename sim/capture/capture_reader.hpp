// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Reads Ethernet captures for `nicsim inject`: classic pcap (µs and ns) and pcapng, both byte
// orders.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace roci::sim {

/// One captured frame.
struct CapturedFrame {
  std::vector<uint8_t> bytes;    ///< as captured, FCS removed if the file says that it has one
  uint64_t time_ns = 0;          ///< since the file's epoch
  uint32_t interface = 0;        ///< pcapng: interface number within its section; pcap: 0
  uint32_t original_length = 0;  ///< length on the wire; larger than bytes.size() if cut
  bool bad_fcs = false;          ///< pcapng flags a CRC error, or the captured FCS is wrong
  std::string comment;           ///< first packet comment
};

/// The file is missing, is no Ethernet capture, or is damaged. The text names the file, the place
/// and what is wrong with it.
struct CaptureError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads a whole capture file.
/// @param path  file name
/// @return its frames in file order
/// @throws CaptureError if it cannot be read to its end; nothing is returned then
std::vector<CapturedFrame> read_capture(const std::string& path);

/// Same from memory; `name` appears in error texts.
std::vector<CapturedFrame> parse_capture(std::span<const uint8_t> bytes, const std::string& name);

}  // namespace roci::sim
