// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_registers: every register does what its line in the header says: values, side effects exactly
// once, waiting while the engine behind it is busy or full.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace cpu = roci::sv::cpu_pkg;

namespace {

struct Bench {
  Dut<DUT_CLASS> dut;
  explicit Bench(std::uint64_t salt) : dut(salt) {
    cpu::reg_req_t{}.pack(dut->reg_i);
    dut->clock_i = 0;
    dut->written_i = dut->bell_error_valid_i = dut->ready_valid_i = dut->ctx_busy_i = 0;
    dut->fn_enabled_i = dut->fn_resetting_i = dut->fn_failed_i = 0;
    dut->job_ready_i = dut->command_ready_i = 1;
    dut->read_ready_i = dut->read_done_i = dut->write_ready_i = dut->write_done_i = 0;
    dut->event_ready_i = dut->ctx_error_i = 0;
    dut.reset();
  }
  struct Result {
    std::uint32_t data;
    unsigned cycles;
    unsigned effects;       // cycles with the effect that the caller counts
  };
  template <class Effect>
  Result access(bool write, unsigned address, std::uint32_t data, Effect effect,
                unsigned busy = 0, CData* busy_port = nullptr, CData busy_value = 1) {
    cpu::reg_req_t request{};
    request.valid = true;
    request.write = write;
    request.word = static_cast<decltype(request.word)>(address / 4);
    request.wdata = data;
    request.pack(dut->reg_i);
    Result out{};
    for (;;) {
      if (busy_port) {
        *busy_port = out.cycles < busy ? busy_value : static_cast<CData>(!busy_value);
      }
      dut.eval();
      if (effect()) ++out.effects;
      dut.tick();
      ++out.cycles;
      REQUIRE(out.cycles < 100);
      if (dut->reg_done_o) break;
    }
    out.data = dut->reg_rdata_o;
    if (effect()) ++out.effects;
    cpu::reg_req_t{}.pack(dut->reg_i);
    dut.tick();
    return out;
  }
  std::uint32_t read(unsigned address) {
    return access(false, address, 0, [] { return false; }).data;
  }
  void write(unsigned address, std::uint32_t data) {
    access(true, address, data, [] { return false; });
  }
};

}  // namespace

TEST_CASE("values and sticky bits") {
  Random random;
  Bench bench(random());
  bench.dut->clock_i = 0x1122334455667788;
  REQUIRE(bench.read(0x00) == 0x55667788);
  bench.dut->clock_i = 0x9999999900000000;
  REQUIRE(bench.read(0x04) == 0x11223344);            // kept from the read of the lower half
  REQUIRE(bench.read(0x10) == (ROCI_CONFIG_WIDE ? 0x08060a0au : 0x04040606u));
  REQUIRE(bench.read(0x14) == (ROCI_CONFIG_WIDE ? 0x040a0e04u : 0x03060803u));
  REQUIRE((bench.read(0x1c) & 1u) == ROCI_CONFIG_WIDE);

  REQUIRE(bench.read(0x08) == 0);
  bench.dut->fn_enabled_i = 0x55;
  bench.dut->fn_resetting_i = 0x0a;
  bench.dut->fn_failed_i = 0x80;
  REQUIRE(bench.read(0x2c) == 0x55);
  REQUIRE(bench.read(0x30) == 0x0a);
  REQUIRE(bench.read(0x34) == 0x80);
  REQUIRE(bench.read(0x08) == ((1u << 4) | (1u << 6)));
  bench.dut->fn_resetting_i = bench.dut->fn_failed_i = 0;

  bench.dut->written_i = 1;
  bench.dut.tick();
  bench.dut->written_i = 0;
  REQUIRE(bench.read(0x08) == 1u << 3);
  bench.write(0x0c, 0);
  REQUIRE(bench.read(0x08) == 1u << 3);
  bench.write(0x0c, 1u << 3);
  REQUIRE(bench.read(0x08) == 0);

  for (const unsigned fn : {5u, 2u, 5u}) {
    bench.dut->bell_error_valid_i = 1;
    bench.dut->bell_error_fn_i = static_cast<CData>(fn);
    bench.dut.tick();
  }
  bench.dut->bell_error_valid_i = 0;
  REQUIRE(bench.read(0x08) == 1u << 5);
  REQUIRE(bench.read(0x38) == ((1u << 5) | (1u << 2)));
  REQUIRE(bench.read(0x38) == 0);
  bench.dut->ctx_error_i = 1;
  REQUIRE(bench.read(0x54) == 1);
}

TEST_CASE("commands are taken once, answers wait for room") {
  Random random;
  Bench bench(random());
  auto& dut = bench.dut;
  // ADMIN_NEXT
  REQUIRE(bench.read(0x20) >> 31 == 0);
  dut->ready_valid_i = 1;
  dut->ready_fn_i = 6;
  dut->ready_input_i = 1;
  dut->ready_error_i = 0;
  REQUIRE(bench.read(0x08) == 1);
  auto got = bench.access(false, 0x20, 0, [&] { return dut->ready_take_o != 0; });
  REQUIRE(got.data == (1u << 31 | 1u << 8 | 6));
  REQUIRE(got.effects == 1);
  dut->ready_input_i = 0;
  dut->ready_error_i = 1;
  REQUIRE(bench.read(0x20) == (1u << 31 | 1u << 9 | 6));
  dut->ready_valid_i = 0;

  // ADMIN_COMPLETE: waits for room in the queue of jobs
  cpu::completion_job_t job{};
  got = bench.access(true, 0x24, 0x123u << 16 | 1u << 9 | 1u << 8 | 3, [&] {
    if (!dut->job_valid_o || !dut->job_ready_i) return false;
    job = cpu::completion_job_t::unpack(dut->job_o);
    return true;
  }, 7, &dut->job_ready_i, 0);
  REQUIRE(got.effects == 1);
  REQUIRE(got.cycles == 8);
  REQUIRE(job.fn == 3);
  REQUIRE(job.releases);
  REQUIRE(job.is_error);
  REQUIRE(job.ram == 0x123);
  // ADMIN_ORDER
  cpu::admin_order_t order{};
  got = bench.access(true, 0x28, 3u << 8 | 4, [&] {
    if (!dut->command_valid_o || !dut->command_ready_i) return false;
    order = cpu::admin_order_t::unpack(dut->command_o);
    return true;
  }, 3, &dut->command_ready_i, 0);
  REQUIRE(got.effects == 1);
  REQUIRE(order.fn == 4);
  REQUIRE(static_cast<unsigned>(order.order) == 3);
}

TEST_CASE("context accesses wait for the engine") {
  Random random;
  Bench bench(random());
  auto& dut = bench.dut;
  bench.write(0x40, 0xdeadbeef);
  bench.write(0x44, 0x12345678);
  auto got = bench.access(true, 0x4c, 0x00050c02, [&] { return dut->access_o != 0; }, 9,
                          &dut->ctx_busy_i);
  REQUIRE(got.effects == 1);
  REQUIRE(got.cycles == 10);
  REQUIRE(dut->access_wdata_o == 0x12345678deadbeef);
  got = bench.access(true, 0x4c, 0x00050c02, [&] {
    return dut->access_o && dut->access_write_o && dut->access_address_o == 0x00050c02;
  });
  REQUIRE(got.effects == 1);
  got = bench.access(true, 0x48, 0x00050c02,
                     [&] { return dut->access_o && !dut->access_write_o; });
  REQUIRE(got.effects == 1);
  dut->ctx_rdata_i = 0xaaaabbbbccccdddd;
  got = bench.access(false, 0x40, 0, [&] { return dut->access_o != 0; }, 5, &dut->ctx_busy_i);
  REQUIRE(got.data == 0xccccdddd);
  REQUIRE(got.cycles == 6);
  REQUIRE(got.effects == 0);
  REQUIRE(bench.read(0x44) == 0xaaaabbbb);
  const auto starts = [&] {
    return dut->list_start_o && dut->list_o == 0x7ff && dut->list_index_o == 0xa5c3;
  };
  got = bench.access(true, 0x50, 0xa5c3'07ff, starts, 2, &dut->ctx_busy_i);
  REQUIRE(got.effects == 1);
  // others do not wait
  dut->ctx_busy_i = 1;
  REQUIRE(bench.access(false, 0x08, 0, [] { return false; }).cycles == 1);
}

TEST_CASE("host copies and events") {
  Random random;
  Bench bench(random());
  auto& dut = bench.dut;
  for (int round = 0; round < 20; ++round) {
    const bool out = random.chance(0.5);
    const bool error = random.chance(0.5);
    const std::uint64_t address = random() & ~std::uint64_t{7};
    const auto bytes = static_cast<std::uint32_t>(8 * random.between(1, 200));
    const auto at = static_cast<std::uint32_t>(random.below(4096));
    const auto fn = static_cast<std::uint32_t>(random.below(8));
    bench.write(0x60, static_cast<std::uint32_t>(address));
    bench.write(0x64, static_cast<std::uint32_t>(address >> 32));
    bench.write(0x68, bytes << 16 | at);
    bench.write(0x6c, static_cast<std::uint32_t>(out) << 8 | fn);
    REQUIRE((bench.read(0x08) & 2u) != 0);
    REQUIRE(dut->write_valid_o == out);
    REQUIRE(dut->read_valid_o == !out);
    const auto copy = cpu::copy_t::unpack(dut->copy_o);
    REQUIRE(copy.addr == address);
    REQUIRE(copy.bytes == bytes);
    REQUIRE(copy.ram == at);
    REQUIRE(copy.fn == fn);
    (out ? dut->write_ready_i : dut->read_ready_i) = 1;
    dut.tick();
    dut->write_ready_i = dut->read_ready_i = 0;
    REQUIRE(dut->write_valid_o == 0);
    REQUIRE(dut->read_valid_o == 0);
    REQUIRE((bench.read(0x08) & 2u) != 0);
    (out ? dut->write_done_i : dut->read_done_i) = 1;
    dut->write_error_i = out ? error : !error;
    dut->read_error_i = out ? !error : error;
    dut.tick();
    dut->write_done_i = dut->read_done_i = 0;
    REQUIRE(bench.read(0x08) == (error ? 1u << 7 : 0u));
  }
  Bench events(random());
  events.write(0x74, 0x01020304);
  events.write(0x78, 0x24u << 24 | 0xabcdef);
  events.write(0x7c, 0x62u << 8 | 5);
  REQUIRE(events.read(0x08) == 1u << 2);
  REQUIRE(events.dut->event_valid_o == 1);
  const auto event = pkg::event_t::unpack(events.dut->event_o);
  REQUIRE(event.data == 0x01020304);
  REQUIRE(event.object == 0xabcdef);
  REQUIRE(event.event_type == 0x24);
  REQUIRE(event.cause == 0x62);
  REQUIRE(event.fn == 5);
  REQUIRE_FALSE(event.eq_valid);
  events.dut->event_ready_i = 1;
  events.dut.tick();
  events.dut->event_ready_i = 0;
  REQUIRE(events.read(0x08) == 0);
}
