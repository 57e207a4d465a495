// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What packet_header_parse delivers as the payload of a packet: a datagram's message behind its GRH, the
// operands or the result of an atomic, of anything else the payload.
#pragma once

#include <cstdint>

#include "wire/wire_codec.hpp"

namespace roci::test {

inline wirecodec::Bytes delivered(const wirecodec::Frame& frame) {
  const auto bytes = wirecodec::encode(frame);
  const auto grh = bytes.begin() + (frame.eth.vlan ? 18 : 14);
  if (frame.atomiceth) {
    // behind VA and R_Key; XRC has one header more in front
    const auto operands = grh + 40 + 12 + 12 + (frame.xrceth ? 4 : 0);
    return {operands, operands + 16};
  }
  wirecodec::Bytes out;
  if (frame.atomicacketh) {
    for (unsigned n = 0; n < 8; ++n) {
      out.push_back(static_cast<std::uint8_t>(frame.atomicacketh->original >> (8 * n)));
    }
    return out;
  }
  if (frame.deth) out.assign(grh, grh + 40);
  out.insert(out.end(), frame.payload.begin(), frame.payload.end());
  return out;
}

}  // namespace roci::test
