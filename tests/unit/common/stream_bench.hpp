// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A module between one stream in and one stream out. Include it after DUT_HEADER.
#pragma once

#include "harness/harness.hpp"

namespace {
using namespace roci::test;
using Item = Bits<DUT_WIDTH>;

struct Bench {
  explicit Bench(std::uint64_t salt) : dut(salt) {
    dut.reset();
    dut.attach(in);
    dut.attach(out);
  }
  Dut<DUT_CLASS> dut;
  Source<Item> in{"in", dut->in_valid_i, dut->in_ready_o, dut->in_i};
  Sink<Item> out{"out", dut->out_valid_o, dut->out_ready_i, dut->out_o};
};
}  // namespace
