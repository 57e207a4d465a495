// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Writes pcapng files (IETF draft-ietf-opsawg-pcapng) that Wireshark and tshark read: Ethernet
// frames without FCS, simulated nanoseconds (if_tsresol = 9), one interface per port, packet
// comments.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace roci::sim {

/// Which way a frame crossed the interface, seen from the NIC.
enum class CaptureDirection : uint8_t { unknown = 0, inbound = 1, outbound = 2 };

/// Writer of one pcapng file. Not thread-safe. The file is complete after each flush().
class PcapngWriter {
 public:
  /// Creates the file and writes the section header and one interface per name.
  /// @param path         file to create; an existing one is replaced
  /// @param interfaces   names, for example {"roci0", "roci1"}; the index is the interface number
  /// @param application  what made the capture, written into the section header
  /// @throws std::runtime_error if the file cannot be created
  PcapngWriter(const std::string& path, const std::vector<std::string>& interfaces,
               const std::string& application = "nicsim");

  /// Appends one frame.
  /// @param interface  index of the interface
  /// @param time_ns    simulated time in ns
  /// @param frame      Ethernet frame without FCS
  /// @param direction  stored in epb_flags
  /// @param bad_fcs    stored as "CRC error" in epb_flags
  /// @param comment    packet comment; empty = none
  /// @throws std::out_of_range for an unknown interface, std::runtime_error if the disk is full
  void write(size_t interface, uint64_t time_ns, std::span<const uint8_t> frame,
             CaptureDirection direction = CaptureDirection::unknown, bool bad_fcs = false,
             const std::string& comment = {});

  /// Hands everything written so far to the operating system.
  void flush();

  /// Frames written so far.
  uint64_t frames() const { return frames_; }

 private:
  void write_block(uint32_t type, const std::vector<uint8_t>& body);

  std::string path_;
  std::ofstream file_;
  size_t interfaces_;
  uint64_t frames_ = 0;
};

}  // namespace roci::sim
