// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The firmware of the NIC: answers admin commands and writes the contexts of the data path.
#include "call.hpp"

extern "C" [[noreturn]] void firmware_main() {
  if (roci::fw::boot()) {
    while (roci::fw::step(roci::fw::rest())) {
    }
  }
  // Stopped: the host reads why in its registers.
  for (;;) {
  }
}
