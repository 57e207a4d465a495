// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What the compiler calls: memcpy and memset, by words where both ends are aligned.
#include <stddef.h>
#include <stdint.h>

extern "C" {

void* memcpy(void* to, const void* from, size_t bytes) {
  auto* d = static_cast<uint8_t*>(to);
  auto* s = static_cast<const uint8_t*>(from);
  if (((reinterpret_cast<uintptr_t>(d) | reinterpret_cast<uintptr_t>(s)) & 3) == 0) {
    auto* dw = reinterpret_cast<uint32_t*>(d);
    auto* sw = reinterpret_cast<const uint32_t*>(s);
    for (; bytes >= 16; bytes -= 16) {
      const uint32_t a = sw[0];
      const uint32_t b = sw[1];
      const uint32_t c = sw[2];
      const uint32_t e = sw[3];
      dw[0] = a;
      dw[1] = b;
      dw[2] = c;
      dw[3] = e;
      dw += 4;
      sw += 4;
    }
    for (; bytes >= 4; bytes -= 4) *dw++ = *sw++;
    d = reinterpret_cast<uint8_t*>(dw);
    s = reinterpret_cast<const uint8_t*>(sw);
  }
  while (bytes-- != 0) *d++ = *s++;
  return to;
}

void* memset(void* to, int value, size_t bytes) {
  auto* d = static_cast<uint8_t*>(to);
  if (value == 0 && (reinterpret_cast<uintptr_t>(d) & 3) == 0) {
    auto* dw = reinterpret_cast<uint32_t*>(d);
    for (; bytes >= 16; bytes -= 16) {
      dw[0] = 0;
      dw[1] = 0;
      dw[2] = 0;
      dw[3] = 0;
      dw += 4;
    }
    for (; bytes >= 4; bytes -= 4) *dw++ = 0;
    d = reinterpret_cast<uint8_t*>(dw);
  }
  while (bytes-- != 0) *d++ = static_cast<uint8_t>(value);
  return to;
}

}
