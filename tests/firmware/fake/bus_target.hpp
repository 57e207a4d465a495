// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// bus.hpp in the tests: the functions lead to the fake hardware (fake_hardware.hpp).
#pragma once

namespace roci::fw::bus {

uint32_t clock();
uint32_t status();
void clear_port_written();
uint32_t config(unsigned n);
NextCommand next_command();
Slot& slot(unsigned fn);
void complete(unsigned fn, const hwif::AdminCompletion& image, bool release, bool error);
void order(Order what, unsigned fn);
uint32_t enabled();
uint32_t resetting();
uint32_t failed();
uint32_t take_bell_errors();
void ctx_start_read(uint32_t address);
void ctx_start_write(uint32_t address, uint64_t data);
uint64_t ctx_answer();
void ctx_list(void* list, uint32_t index = 0);
bool ctx_failed();
void copy_to_host(unsigned fn, uint64_t address, const void* data, uint32_t bytes);
void send_event(unsigned fn, hwif::EqeType type, uint32_t object, uint32_t cause,
                uint32_t detail_word);

}  // namespace roci::fw::bus
