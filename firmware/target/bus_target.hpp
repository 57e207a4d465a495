// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// bus.hpp on the chip: the registers of rtl/cpu/cpu_registers.sv, one inline function each.
#pragma once

namespace roci::fw::bus {

namespace detail {
inline constexpr uintptr_t BASE = 0x80000000u;
inline constexpr uintptr_t RAM_BYTES = IS_WIDE ? 65536 : 32768;

inline volatile uint32_t& reg(uintptr_t offset) {
  return *reinterpret_cast<volatile uint32_t*>(BASE + offset);
}
// Number of the 8-byte word at `p`.
inline uint32_t ram_word(const void* p) { return reinterpret_cast<uintptr_t>(p) >> 3; }
// What was stored in RAM has to be there before an engine looks: the compiler must not move it.
inline void publish() { asm volatile("" ::: "memory"); }
}  // namespace detail

inline uint32_t clock() { return detail::reg(0x00); }
inline uint32_t status() { return detail::reg(0x08); }
inline void clear_port_written() { detail::reg(0x0c) = STATUS_PORT_WRITTEN; }
inline uint32_t config(unsigned n) { return detail::reg(0x10 + 4 * n); }

inline NextCommand next_command() {
  const uint32_t next = detail::reg(0x20);
  detail::publish();
  return {(next >> 31) != 0, (next >> 9 & 1) != 0, (next >> 8 & 1) != 0,
          static_cast<uint8_t>(next)};
}
inline Slot& slot(unsigned fn) {
  return reinterpret_cast<Slot*>(detail::RAM_BYTES - FNS * sizeof(Slot))[fn];
}
inline void complete(unsigned fn, const hwif::AdminCompletion& image, bool release, bool error) {
  detail::publish();
  detail::reg(0x24) = detail::ram_word(&image) << 16 | uint32_t{error} << 9 |
                      uint32_t{release} << 8 | fn;
}
inline void order(Order what, unsigned fn) {
  detail::reg(0x28) = static_cast<uint32_t>(what) << 8 | fn;
}
inline uint32_t enabled() { return detail::reg(0x2c); }
inline uint32_t resetting() { return detail::reg(0x30); }
inline uint32_t failed() { return detail::reg(0x34); }
inline uint32_t take_bell_errors() { return detail::reg(0x38); }

inline void ctx_start_read(uint32_t address) { detail::reg(0x48) = address; }
inline void ctx_start_write(uint32_t address, uint64_t data) {
  detail::reg(0x40) = static_cast<uint32_t>(data);
  detail::reg(0x44) = static_cast<uint32_t>(data >> 32);
  detail::reg(0x4c) = address;
}
inline uint64_t ctx_answer() {
  const uint32_t low = detail::reg(0x40);
  return uint64_t{detail::reg(0x44)} << 32 | low;
}
inline void ctx_list(const void* list, uint32_t index = 0) {
  detail::publish();
  detail::reg(0x50) = index << 16 | detail::ram_word(list);
}
inline bool ctx_failed() {
  const bool failed = detail::reg(0x54) != 0;
  detail::publish();
  return failed;
}

inline void copy_to_host(unsigned fn, uint64_t address, const void* data, uint32_t bytes) {
  detail::publish();
  detail::reg(0x60) = static_cast<uint32_t>(address);
  detail::reg(0x64) = static_cast<uint32_t>(address >> 32);
  detail::reg(0x68) = bytes << 16 | detail::ram_word(data);
  detail::reg(0x6c) = 1u << 8 | fn;
}
inline void send_event(unsigned fn, hwif::EqeType type, uint32_t object, uint32_t cause,
                       uint32_t detail_word) {
  detail::reg(0x74) = detail_word;
  detail::reg(0x78) = static_cast<uint32_t>(type) << 24 | object;
  detail::reg(0x7c) = cause << 8 | fn;
}

}  // namespace roci::fw::bus
