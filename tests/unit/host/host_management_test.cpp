// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_management: host and firmware write and read the same registers at random, against a model;
// images load only while the CPU is held; the firmware's words are hidden while it is held, trapped or
// not ready; counters are read from both sides at once.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <array>
#include <optional>

#include "harness/harness.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace hwif = roci::hwif;
namespace csr = roci::hwif::csr;
using Csr = roci::hwif::CtxCsr;

namespace {

constexpr unsigned kRamBytes = ROCI_CONFIG_WIDE ? 65536 : 32768;

struct Bench {
  Dut<DUT_CLASS> dut;
  explicit Bench(std::uint64_t salt) : dut(salt) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    dut->write_valid_i = dut->read_valid_i = dut->trap_i = dut->link_up_i = 0;
    dut->speed_mbps_i = 100000;
    for (int w = 0; w < 4; ++w) dut->pulse_i[w] = 0;
    for (int w = 0; w < 3; ++w) dut->amount_i[w] = 0;
    dut.reset();
  }
  bool write(unsigned offset, std::uint64_t data) {
    dut->write_valid_i = 1;
    dut->write_offset_i = static_cast<SData>(offset & 0xfff);
    dut->write_data_i = data;
    dut.eval();
    const bool known = dut->write_known_o;
    dut.tick();
    dut->write_valid_i = 0;
    dut.eval();
    return known;
  }
  std::uint64_t read(unsigned offset, bool* known = nullptr) {
    dut->read_valid_i = 1;
    dut->read_offset_i = static_cast<SData>(offset & 0xfff);
    dut.run_until([&] { return dut->read_done_o != 0; }, "read answered", 50);
    if (known) *known = dut->read_known_o;
    const std::uint64_t data = dut->read_data_o;
    dut->read_valid_i = 0;
    dut.tick();
    return data;
  }
  std::uint64_t ctx(bool write, hwif::CtxColumn column, unsigned index, unsigned word,
                    std::uint64_t data = 0) {
    return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { dut.tick(); }, static_cast<unsigned>(column), write, index, word, data, 60);
  }
  csr::IdentityFirmware firmware() {
    dut.eval();
    return csr::IdentityFirmware::from_word(dut->firmware_o);
  }
};

}  // namespace

TEST_CASE("port registers are shared between host and firmware") {
  Random random;
  Bench bench(random());
  Csr row{};
  row.set<Csr::active_mtu>(hwif::Mtu::MTU_4096);
  row.set<Csr::byte_cap>(hwif::REQUESTER_WINDOW_DEFAULT);
  const auto check = [&] {
    REQUIRE(bench.read(csr::ManagementPortMac::ADDRESS) == row.words[0]);
    csr::ManagementPortControl control{};
    control.set<csr::ManagementPortControl::enable>(row.get<Csr::enable>());
    control.set<csr::ManagementPortControl::active_mtu>(row.get<Csr::active_mtu>());
    REQUIRE(bench.read(csr::ManagementPortControl::ADDRESS) == control.to_word());
    REQUIRE(bench.read(csr::ManagementRequesterWindow::ADDRESS) == row.get<Csr::byte_cap>());
    REQUIRE(bench.ctx(false, hwif::CtxColumn::CSR, 0, 0) == row.words[0]);
    REQUIRE(bench.ctx(false, hwif::CtxColumn::CSR, 0, 2) == row.words[2]);
    REQUIRE(bench.ctx(false, hwif::CtxColumn::CSR, 0, 3) == row.words[3]);
    REQUIRE((bench.dut->port_enable_o != 0) == row.get<Csr::enable>());
  };
  check();
  for (std::size_t step = 0; step < scaled(200); ++step) {
    const std::uint64_t value = random();
    const bool host = random.chance(0.5);
    bool told = false;
    const auto host_write = [&](unsigned address) {
      bench.dut->write_valid_i = 1;
      bench.dut->write_offset_i = static_cast<SData>(address & 0xfff);
      bench.dut->write_data_i = value;
      bench.dut.eval();
      told = bench.dut->written_o;
      bench.dut.tick();
      bench.dut->write_valid_i = 0;
    };
    switch (random.below(3)) {
      case 0:
        row.words[0] = value & 0xffffffffffffu;
        if (host) host_write(csr::ManagementPortMac::ADDRESS);
        else bench.ctx(true, hwif::CtxColumn::CSR, 0, 0, value);
        break;
      case 1: {
        row.set<Csr::enable>(value & 1);
        if (host) {
          row.set<Csr::active_mtu>(static_cast<hwif::Mtu>((value >> 8) & 7));
          host_write(csr::ManagementPortControl::ADDRESS);
        } else {
          row.words[2] = value & ((7u << 8) | 1);
          bench.ctx(true, hwif::CtxColumn::CSR, 0, 2, value);
        }
        break;
      }
      default:
        row.set<Csr::byte_cap>(static_cast<std::uint32_t>(value));
        if (host) host_write(csr::ManagementRequesterWindow::ADDRESS);
        else bench.ctx(true, hwif::CtxColumn::CSR, 0, 3, value & 0xffffffffu);
        break;
    }
    REQUIRE(told == host);
    check();
  }
  bench.dut->link_up_i = 1;
  csr::ManagementPortStatus status{};
  status.set<csr::ManagementPortStatus::link_up>(true);
  status.set<csr::ManagementPortStatus::speed_mbps>(100000);
  REQUIRE(bench.read(csr::ManagementPortStatus::ADDRESS) == status.to_word());
  REQUIRE(bench.ctx(false, hwif::CtxColumn::CSR, 0, 1) == status.to_word());
  // neither side can write what only the MAC knows
  REQUIRE_FALSE(bench.write(csr::ManagementPortStatus::ADDRESS, 0));
  bench.ctx(true, hwif::CtxColumn::CSR, 0, 1, 0);
  REQUIRE(bench.read(csr::ManagementPortStatus::ADDRESS) == status.to_word());
  bool known = true;
  REQUIRE(bench.read(0x100, &known) == 0);
  REQUIRE_FALSE(known);
  REQUIRE_FALSE(bench.write(0x100, 1));
  REQUIRE_FALSE(bench.write(csr::ManagementPortMac::ADDRESS + 4, 1));
}

TEST_CASE("an image is loaded only while the CPU is held") {
  Random random;
  Bench bench(random());
  std::optional<std::pair<unsigned, std::uint64_t>> loaded;
  const auto load = [&](std::uint64_t word) {
    loaded.reset();
    bench.dut->write_valid_i = 1;
    bench.dut->write_offset_i = csr::ManagementFirmwareData::ADDRESS & 0xfff;
    bench.dut->write_data_i = word;
    bench.dut.eval();
    const bool known = bench.dut->write_known_o;
    if (bench.dut->load_valid_o) loaded = {bench.dut->load_addr_o, bench.dut->load_data_o};
    bench.dut.tick();
    bench.dut->write_valid_i = 0;
    return known;
  };
  REQUIRE_FALSE(load(1));
  REQUIRE_FALSE(loaded.has_value());
  REQUIRE(bench.write(csr::ManagementCpuControl::ADDRESS, 1));
  REQUIRE(bench.dut->cpu_hold_o == 1);
  const unsigned start = 8 * static_cast<unsigned>(random.below(1000));
  REQUIRE(bench.write(csr::ManagementFirmwareAddress::ADDRESS, start));
  for (unsigned n = 0; n < 20; ++n) {
    const std::uint64_t word = random();
    REQUIRE(load(word));
    REQUIRE(loaded == std::pair<unsigned, std::uint64_t>(start / 8 + n, word));
    REQUIRE(bench.read(csr::ManagementFirmwareAddress::ADDRESS) == start + 8 * (n + 1));
  }
  // the last word, and one behind it; an odd address
  REQUIRE(bench.write(csr::ManagementFirmwareAddress::ADDRESS, kRamBytes - 8));
  REQUIRE(load(2));
  REQUIRE(loaded.has_value());
  REQUIRE_FALSE(load(3));
  REQUIRE_FALSE(loaded.has_value());
  REQUIRE(bench.write(csr::ManagementFirmwareAddress::ADDRESS, 12));
  REQUIRE_FALSE(load(4));
  REQUIRE_FALSE(loaded.has_value());
  REQUIRE(bench.write(csr::ManagementCpuControl::ADDRESS, 0));
  REQUIRE(bench.dut->cpu_hold_o == 0);
  REQUIRE_FALSE(load(5));
}

TEST_CASE("what software sees of the firmware") {
  Random random;
  Bench bench(random());
  using F = csr::IdentityFirmware;
  REQUIRE(bench.firmware().get<F::state>() == hwif::FirmwareState::BOOTING);
  REQUIRE(bench.dut->firmware_hash_o == 0);
  const std::uint64_t hash = hwif::HWIF_HASH;
  bench.ctx(true, hwif::CtxColumn::CSR, 0, 4, hash);
  REQUIRE(bench.dut->firmware_hash_o == 0);               // not before READY
  Csr row{};
  row.set<Csr::state>(hwif::FirmwareState::READY);
  row.set<Csr::version_major>(3);
  row.set<Csr::version_minor>(1);
  row.set<Csr::version_patch>(4);
  bench.ctx(true, hwif::CtxColumn::CSR, 0, 5, row.words[5]);
  REQUIRE(bench.firmware().get<F::state>() == hwif::FirmwareState::READY);
  REQUIRE(bench.firmware().get<F::version_major>() == 3);
  REQUIRE(bench.firmware().get<F::version_minor>() == 1);
  REQUIRE(bench.firmware().get<F::version_patch>() == 4);
  REQUIRE(bench.dut->firmware_hash_o == hash);
  bench.ctx(true, hwif::CtxColumn::CSR, 0, 4, hash ^ 1);     // an image of another interface
  REQUIRE(bench.firmware().get<F::state>() == hwif::FirmwareState::FAILED);
  REQUIRE(bench.firmware().get<F::fault>() == hwif::FirmwareFault::HASH);
  REQUIRE(bench.dut->firmware_hash_o == (hash ^ 1));         // software can tell which
  bench.ctx(true, hwif::CtxColumn::CSR, 0, 4, hash);
  bench.dut->trap_i = 1;
  REQUIRE(bench.firmware().get<F::state>() == hwif::FirmwareState::FAILED);
  REQUIRE(bench.firmware().get<F::fault>() == hwif::FirmwareFault::TRAP);
  REQUIRE(bench.dut->firmware_hash_o == 0);
  bench.dut->trap_i = 0;
  bench.write(csr::ManagementCpuControl::ADDRESS, 1);
  REQUIRE(bench.firmware().to_word() == 0);               // HELD
  bench.dut.tick(2);
  bench.write(csr::ManagementCpuControl::ADDRESS, 0);
  bench.dut.tick();
  REQUIRE(bench.firmware().get<F::state>() == hwif::FirmwareState::BOOTING);
  REQUIRE(bench.dut->firmware_hash_o == 0);
}

TEST_CASE("counters answer host and firmware at the same time") {
  Random random;
  Bench bench(random());
  std::array<std::uint64_t, 128> total{};
  for (int n = 0; n < 3000; ++n) {
    for (int w = 0; w < 4; ++w) bench.dut->pulse_i[w] = 0;
    const auto c = static_cast<unsigned>(random.below(128));
    const bool amount = c == 1 || c == 3 || c == 9 || c == 0xb || c == 0x58 || c == 0x59;
    if (!amount) {
      bench.dut->pulse_i[c / 32] = 1u << (c % 32);
      ++total[c];
    }
    bench.dut.tick();
  }
  for (int w = 0; w < 4; ++w) bench.dut->pulse_i[w] = 0;
  bench.dut.tick(400);
  for (int n = 0; n < 300; ++n) {
    const auto host = static_cast<unsigned>(random.below(128));
    const auto cpu = static_cast<unsigned>(random.below(128));
    pkg::ctx_req_t request{};
    request.valid = true;
    request.column = static_cast<std::uint8_t>(hwif::CtxColumn::COUNTER);
    request.index = static_cast<std::uint16_t>(cpu);
    const bool both = random.chance(0.7);
    if (both) request.pack(bench.dut->ctx_i);
    if (random.chance(0.5)) bench.dut.tick();
    bench.dut->read_valid_i = 1;
    bench.dut->read_offset_i = static_cast<SData>(0x800 + 8 * host);
    bool host_done = false;
    bool cpu_done = !both;
    for (int guard = 0; !(host_done && cpu_done); ++guard) {
      REQUIRE(guard < 60);
      bench.dut.tick();
      if (bench.dut->read_done_o) {
        REQUIRE(bench.dut->read_known_o);
        REQUIRE(bench.dut->read_data_o == total[host]);
        host_done = true;
        bench.dut->read_valid_i = 0;
      }
      const auto answer = pkg::ctx_rsp_t::unpack(bench.dut->ctx_o);
      if (both && answer.done) {
        REQUIRE_FALSE(cpu_done);
        REQUIRE(answer.rdata == total[cpu]);
        cpu_done = true;
        pkg::ctx_req_t{}.pack(bench.dut->ctx_i);
      }
    }
    bench.dut.tick();
  }
  bool known = true;
  REQUIRE(bench.read(0x800 + 8 * 200, &known) == 0);
  REQUIRE_FALSE(known);
  REQUIRE(bench.ctx(false, hwif::CtxColumn::COUNTER, 200, 0) == 0);
  REQUIRE(bench.ctx(true, hwif::CtxColumn::COUNTER, 0, 0, 5) == 0);
  REQUIRE(bench.ctx(false, hwif::CtxColumn::COUNTER, 0, 0) == total[0]);
}
