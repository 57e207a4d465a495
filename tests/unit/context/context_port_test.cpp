// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_port: rows written are what readers see and what is read back, never half of one; other
// columns are not answered; nothing is valid after reset.
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

std::uint64_t access(Dut<DUT_CLASS>& dut, CtxColumn column, bool write, unsigned index,
                     unsigned word, std::uint64_t data = 0) {
  return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
      dut, [&dut] { dut.tick(); }, static_cast<unsigned>(column), write, index, word, data, 10);
}

}  // namespace

TEST_CASE("rows of the port") {
  Random random;
  Dut<DUT_CLASS> dut;
  pkg::ctx_req_t{}.pack(dut->ctx_i);
  dut.reset();
  REQUIRE(pkg::port_t::unpack(dut->port_o).gid_valid == 0);
  for (const auto pkey : pkg::port_t::unpack(dut->port_o).pkey) REQUIRE(pkey == 0);
  const unsigned gids = ROCI_CONFIG_WIDE ? 16 : 8;
  std::vector<std::uint64_t> low(gids), high(gids);
  std::vector<std::uint16_t> pkeys(roci::hwif::PKEY_TABLE_LENGTH);
  unsigned valid = 0;
  for (int n = 0; n < 300; ++n) {
    const auto index = static_cast<unsigned>(random.below(gids));
    const auto shown = [&] { return pkg::port_t::unpack(dut->port_o).gid; };
    const auto before = shown();
    access(dut, CtxColumn::GID, true, index, 0, low[index] = random());
    dut.tick(random.below(4));
    REQUIRE(shown() == before);
    access(dut, CtxColumn::GID, true, index, 1, high[index] = random());
    const std::uint64_t used = random.below(2);
    access(dut, CtxColumn::GID, true, index, 2, used);
    valid = (valid & ~(1u << index)) | (static_cast<unsigned>(used) << index);
    const std::uint64_t mac = random.bits(49);      // and the promiscuous bit
    access(dut, CtxColumn::PORT, true, 0, 0, mac);
    const auto key = static_cast<unsigned>(random.below(pkeys.size()));
    pkeys[key] = static_cast<std::uint16_t>(random.bits(16));
    access(dut, CtxColumn::PKEY, true, key, 0, pkeys[key]);
    REQUIRE_THROWS_WITH(access(dut, CtxColumn::QP_STATE, true, index, 0),
                        Catch::Contains("no answer"));
    pkg::ctx_req_t{}.pack(dut->ctx_i);

    const auto port = pkg::port_t::unpack(dut->port_o);
    REQUIRE(port.mac == (mac & 0xffffffffffffu));
    REQUIRE(port.promiscuous == (mac >> 48 != 0));
    REQUIRE(port.gid_valid == valid);
    for (std::size_t k = 0; k < pkeys.size(); ++k) {
      REQUIRE(port.pkey[k] == pkeys[k]);
      REQUIRE(access(dut, CtxColumn::PKEY, false, static_cast<unsigned>(k), 0) == pkeys[k]);
    }
    const auto& gid = port.gid[index];
    REQUIRE((std::uint64_t{gid[1]} << 32 | gid[0]) == low[index]);
    REQUIRE((std::uint64_t{gid[3]} << 32 | gid[2]) == high[index]);
    REQUIRE(access(dut, CtxColumn::GID, false, index, 0) == low[index]);
    REQUIRE(access(dut, CtxColumn::GID, false, index, 1) == high[index]);
    REQUIRE(access(dut, CtxColumn::GID, false, index, 2) == (valid >> index & 1));
    REQUIRE(access(dut, CtxColumn::PORT, false, 0, 0) == mac);
  }
}
