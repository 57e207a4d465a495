// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Sentences for people, out of pieces.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>

namespace roci::conformance {

/// The pieces one behind the other, as a stream prints them.
template <class... Pieces>
std::string say(const Pieces&... pieces) {
  std::ostringstream out;
  (out << ... << pieces);
  return out.str();
}

/// "0x62"
inline std::string hex(uint64_t value) {
  std::ostringstream out;
  out << "0x" << std::hex << value;
  return out.str();
}

/// Nanoseconds with the unit that suits: "8.19 us".
std::string time_text(uint64_t nanoseconds);

/// "1 ACK", "3 ACKs"
std::string count_text(size_t count, const std::string& what);

}  // namespace roci::conformance
