// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_identity: every register of block identity against the configuration files and constants that
// it stands for; everything else in the block is unknown and zero.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <map>

#include "harness/harness.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace hwif = roci::hwif;
namespace csr = roci::hwif::csr;

namespace {

constexpr bool kWide = ROCI_CONFIG_WIDE;

struct Bench {
  Dut<DUT_CLASS> dut;
  explicit Bench(std::uint64_t salt) : dut(salt) {}
  std::uint64_t read(unsigned offset, bool& known) {
    dut->offset_i = static_cast<SData>(offset);
    dut.eval();
    known = dut->known_o;
    return dut->data_o;
  }
  template <class Register>
  Register get() {
    bool known = false;
    const std::uint64_t value = read(Register::ADDRESS & 0xfff, known);
    REQUIRE(known);
    return Register::from_word(value);
  }
};

}  // namespace

TEST_CASE("identity registers tell what was built") {
  Random random;
  Bench bench(random());
  const std::uint64_t clock = random();
  const std::uint64_t hash = random();
  const std::uint64_t firmware = random();
  bench.dut->fn_i = 5;
  bench.dut->clock_i = clock;
  bench.dut->firmware_hash_i = hash;
  bench.dut->firmware_i = firmware;

  bool known = false;
  REQUIRE(bench.read(csr::IdentityHwifHash::ADDRESS, known) == hwif::HWIF_HASH);
  REQUIRE(bench.read(csr::IdentityFirmwareHash::ADDRESS, known) == hash);
  REQUIRE(bench.read(csr::IdentityClock::ADDRESS, known) == clock);
  REQUIRE(bench.read(csr::IdentityFirmware::ADDRESS, known) == firmware);

  using Id = csr::IdentityDeviceId;
  const auto id = bench.get<Id>();
  REQUIRE(id.get<Id::vendor>() == hwif::PCI_VENDOR_ID);
  REQUIRE(id.get<Id::device>() == hwif::PCI_DEVICE_ID);

  using Configuration = csr::IdentityConfiguration;
  const auto configuration = bench.get<Configuration>();
  REQUIRE(configuration.get<Configuration::config_name>() ==
          (kWide ? hwif::Config::WIDE : hwif::Config::NARROW));
  REQUIRE(configuration.get<Configuration::function_number>() == 5);
  REQUIRE(configuration.get<Configuration::functions>() == (kWide ? 16 : 8));
  REQUIRE(configuration.get<Configuration::datapath_bytes>() == (kWide ? 64 : 8));
  REQUIRE(configuration.get<Configuration::clock_khz>() == (kWide ? 250000u : 125000u));

  using QpCq = csr::IdentityObjectsQpCq;
  REQUIRE(bench.get<QpCq>().get<QpCq::qps>() == (kWide ? 1024u : 64u));
  REQUIRE(bench.get<QpCq>().get<QpCq::cqs>() == (kWide ? 1024u : 64u));
  using EqSrq = csr::IdentityObjectsEqSrq;
  REQUIRE(bench.get<EqSrq>().get<EqSrq::eqs>() == (kWide ? 64u : 16u));
  REQUIRE(bench.get<EqSrq>().get<EqSrq::srqs>() == (kWide ? 256u : 16u));
  using MrPd = csr::IdentityObjectsMrPd;
  REQUIRE(bench.get<MrPd>().get<MrPd::mrs>() == (kWide ? 16384u : 256u));
  REQUIRE(bench.get<MrPd>().get<MrPd::pds>() == (kWide ? 1024u : 64u));
  using Tables = csr::IdentityPortTables;
  REQUIRE(bench.get<Tables>().get<Tables::gids>() == (kWide ? 16 : 8));
  REQUIRE(bench.get<Tables>().get<Tables::pkeys>() == hwif::PKEY_TABLE_LENGTH);

  using Work = csr::IdentityWorkLimits;
  const auto work = bench.get<Work>();
  REQUIRE(work.get<Work::max_sge>() == hwif::MAX_SGE);
  REQUIRE(work.get<Work::max_sge_read>() ==
          (kWide ? hwif::MAX_SGE_READ_WIDE : hwif::MAX_SGE_READ_NARROW));
  REQUIRE(work.get<Work::max_inline_bytes>() == hwif::MAX_INLINE_BYTES);
  REQUIRE(std::uint64_t{1} << work.get<Work::max_message_log2>() == hwif::MAX_MESSAGE_BYTES);
  REQUIRE(work.get<Work::max_mtu>() == hwif::Mtu::MTU_4096);
  REQUIRE(work.get<Work::max_initiator_depth>() ==
          (kWide ? hwif::MAX_RD_ATOMIC_WIDE : hwif::MAX_RD_ATOMIC_NARROW));
  REQUIRE(work.get<Work::max_responder_depth>() == work.get<Work::max_initiator_depth>());

  using Rings = csr::IdentityRingLimits;
  const auto rings = bench.get<Rings>();
  REQUIRE(rings.get<Rings::sq_log2>() == hwif::SQ_RING_LOG2_MAX);
  REQUIRE(rings.get<Rings::rq_log2>() == hwif::RQ_RING_LOG2_MAX);
  REQUIRE(rings.get<Rings::srq_log2>() == hwif::RQ_RING_LOG2_MAX);
  REQUIRE(rings.get<Rings::cq_log2>() == hwif::CQ_RING_LOG2_MAX);
  REQUIRE(rings.get<Rings::eq_log2>() == hwif::EQ_RING_LOG2_MAX);
  REQUIRE(rings.get<Rings::admin_log2>() == hwif::ADMIN_RING_LOG2_MAX);
  REQUIRE(rings.get<Rings::vectors>() == hwif::INTERRUPT_VECTORS);
  REQUIRE(rings.get<Rings::doorbell_pages>() == hwif::DOORBELL_PAGES);
  using Memory = csr::IdentityMemoryLimits;
  REQUIRE(bench.get<Memory>().get<Memory::min_page_shift>() == 12);
  REQUIRE(bench.get<Memory>().get<Memory::max_page_shift>() == 30);
  using Can = csr::IdentityCapabilities;
  REQUIRE(bench.get<Can>().get<Can::rc>());
  REQUIRE_FALSE(bench.get<Can>().get<Can::xrc>());
  REQUIRE_FALSE(bench.get<Can>().get<Can::roce_v2>());

  // no register, or not aligned
  for (unsigned offset = 0; offset < 4096; ++offset) {
    if (offset % 8 == 0 && offset <= csr::IdentityFirmware::ADDRESS) continue;
    const std::uint64_t value = bench.read(offset, known);
    INFO("offset " << offset);
    REQUIRE_FALSE(known);
    REQUIRE(value == 0);
  }
}
