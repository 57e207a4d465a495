// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_port: rows written are what readers see and what is read back; other columns are not
// answered; nothing is valid after reset.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
using roci::hwif::CtxColumn;

namespace {

bool access(Dut<DUT_CLASS>& dut, CtxColumn column, bool write, unsigned index, unsigned word,
            std::uint64_t& data) {
  pkg::ctx_req_t request{};
  request.valid = true;
  request.write = write;
  request.column = static_cast<std::uint8_t>(column);
  request.index = static_cast<std::uint16_t>(index);
  request.word = static_cast<std::uint8_t>(word);
  request.wdata = data;
  request.pack(dut->ctx_i);
  bool done = false;
  for (int n = 0; n < 10 && !done; ++n) {
    dut.tick();
    const auto response = pkg::ctx_rsp_t::unpack(dut->ctx_o);
    done = response.done;
    if (done) data = response.rdata;
  }
  pkg::ctx_req_t{}.pack(dut->ctx_i);
  dut.tick();
  return done;
}

}  // namespace

TEST_CASE("rows of the port") {
  Random random;
  Dut<DUT_CLASS> dut;
  pkg::ctx_req_t{}.pack(dut->ctx_i);
  dut.reset();
  REQUIRE(pkg::port_t::unpack(dut->port_o).gid_valid == 0);
  const unsigned gids = ROCI_CONFIG_WIDE ? 16 : 8;
  std::vector<std::uint64_t> low(gids), high(gids);
  unsigned valid = 0;
  for (int n = 0; n < 300; ++n) {
    const auto index = static_cast<unsigned>(random.below(gids));
    std::uint64_t data = low[index] = random();
    REQUIRE(access(dut, CtxColumn::GID, true, index, 0, data));
    data = high[index] = random();
    REQUIRE(access(dut, CtxColumn::GID, true, index, 1, data));
    data = random.below(2);
    valid = (valid & ~(1u << index)) | (static_cast<unsigned>(data) << index);
    REQUIRE(access(dut, CtxColumn::GID, true, index, 2, data));
    const std::uint64_t mac = random.bits(49);      // and the promiscuous bit
    data = mac;
    REQUIRE(access(dut, CtxColumn::PORT, true, 0, 0, data));
    data = 0;
    REQUIRE_FALSE(access(dut, CtxColumn::QP_STATE, true, index, 0, data));

    const auto port = pkg::port_t::unpack(dut->port_o);
    REQUIRE(port.mac == (mac & 0xffffffffffffu));
    REQUIRE(port.promiscuous == (mac >> 48 != 0));
    REQUIRE(port.gid_valid == valid);
    const auto& gid = port.gid[index];
    REQUIRE((std::uint64_t{gid[1]} << 32 | gid[0]) == low[index]);
    REQUIRE((std::uint64_t{gid[3]} << 32 | gid[2]) == high[index]);
    REQUIRE(access(dut, CtxColumn::GID, false, index, 0, data));
    REQUIRE(data == low[index]);
    REQUIRE(access(dut, CtxColumn::GID, false, index, 1, data));
    REQUIRE(data == high[index]);
    REQUIRE(access(dut, CtxColumn::GID, false, index, 2, data));
    REQUIRE(data == (valid >> index & 1));
    REQUIRE(access(dut, CtxColumn::PORT, false, 0, 0, data));
    REQUIRE(data == mac);
  }
}
