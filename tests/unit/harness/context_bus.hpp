// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The master of the context bus (architecture.md 4) for tests of modules that own columns.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "harness/dut.hpp"

namespace roci::test {

/// One access on the context bus, with `tick` advancing the test's clock. Request and Response are the
/// model's ctx_req_t and ctx_rsp_t. Returns the data read.
/// @param column, index, word  value of enum ctx_column; row of the column, for example a QP; 64-bit
///               word of the row
/// @param limit  cycles after which a missing answer fails the test; so do data without an answer and
///               an answer given twice
template <class Request, class Response, class Model>
std::uint64_t context_access(Model& dut, const std::function<void()>& tick, unsigned column,
                             bool write, unsigned index, unsigned word, std::uint64_t data = 0,
                             std::uint64_t limit = 1000) {
  Request request{};
  request.valid = true;
  request.write = write;
  request.column = static_cast<std::uint8_t>(column);
  request.index = static_cast<std::uint16_t>(index);
  request.word = static_cast<std::uint8_t>(word);
  request.wdata = data;
  request.pack(dut->ctx_i);
  dut.eval();
  for (std::uint64_t n = 0; n < limit; ++n) {
    tick();
    const auto response = Response::unpack(dut->ctx_o);
    if (response.done) {
      // the master takes the request away after the cycle of the answer
      tick();
      Request{}.pack(dut->ctx_i);
      dut.eval();
      if (Response::unpack(dut->ctx_o).done) throw Failure("answered twice");
      return response.rdata;
    }
    if (response.rdata != 0) throw Failure("data without an answer");
  }
  throw Failure("no answer on the context bus, column " + std::to_string(column));
}

/// A write on the context bus that nobody answers here: for modules that only watch a column.
template <class Request, class Model>
void context_broadcast(Model& dut, const std::function<void()>& tick, unsigned column,
                       unsigned index, unsigned word, std::uint64_t data) {
  Request request{};
  request.valid = true;
  request.write = true;
  request.column = static_cast<std::uint8_t>(column);
  request.index = static_cast<std::uint16_t>(index);
  request.word = static_cast<std::uint8_t>(word);
  request.wdata = data;
  request.pack(dut->ctx_i);
  tick();
  Request{}.pack(dut->ctx_i);
  dut.eval();
}

/// Both words of a GID of the port (32-bit words, lowest first), for modules with context_gid_copy.
template <class Request, class Model, class Words>
void write_gid(Model& dut, const std::function<void()>& tick, unsigned column, unsigned index,
               const Words& gid) {
  for (unsigned word = 0; word < 2; ++word) {
    context_broadcast<Request>(dut, tick, column, index, word,
                               std::uint64_t{gid[2 * word + 1]} << 32 | gid[2 * word]);
  }
}

}  // namespace roci::test
