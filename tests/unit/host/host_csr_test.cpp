// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_csr: an AXI4-Lite master with random stalls on all channels; reads and writes of every block
// by every function against a model; what no register takes reads zero, changes nothing and counts;
// doorbell writes come out in order, one per cycle if nobody stalls.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <array>
#include <deque>
#include <vector>

#include "harness/harness.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace cpu = roci::sv::cpu_pkg;
namespace hwif = roci::hwif;
namespace csr = roci::hwif::csr;

namespace {

constexpr unsigned kFns = ROCI_CONFIG_WIDE ? 16 : 8;
constexpr unsigned kBarBits = 17;
constexpr unsigned kAddressBits = kBarBits + (ROCI_CONFIG_WIDE ? 4 : 3);

/// Stands for host_interrupt: masks and pending bits of each function.
struct Interrupts : Agent {
  Dut<DUT_CLASS>& dut;
  std::array<std::uint8_t, kFns> masked{};
  std::array<std::uint8_t, kFns> pending{};
  unsigned fn = 0;
  explicit Interrupts(Dut<DUT_CLASS>& d) : dut(d) { masked.fill(0xff); }
  void sample() override {
    const auto write = cpu::irq_write_t::unpack(dut->irq_write_o);
    if (write.valid) {
      if (write.is_mask) {
        const auto bit = static_cast<std::uint8_t>(1u << write.irq_vector);
        masked[write.fn] = static_cast<std::uint8_t>(
            write.masked ? masked[write.fn] | bit : masked[write.fn] & ~bit);
      } else {
        pending[write.fn] &= static_cast<std::uint8_t>(~write.clear);
      }
    }
    fn = dut->irq_fn_o;
  }
  void drive() override {
    dut->irq_masked_i = masked[fn];
    dut->irq_pending_i = pending[fn];
  }
};

struct Bench {
  Dut<DUT_CLASS> dut;
  Random random;
  Source<Bits<kAddressBits>> aw;
  Source<Bits<72>> w;                       // strobes above the data: two ports, driven below
  Source<Bits<kAddressBits>> ar;
  Sink<cpu::bar_doorbell_t> ring;
  Interrupts interrupts;
  VlWide<3> w_port{};
  CData w_valid = 0;
  unsigned written = 0;                     // B responses
  double b_stall = 0.0;
  double r_stall = 0.0;
  std::deque<std::uint64_t> read_data;
  std::uint64_t errors = 0;                 // bad accesses so far

  struct Responses : Agent {
    Bench& b;
    explicit Responses(Bench& bench) : b(bench) {}
    void sample() override {
      if (b.dut->axil_bvalid_o && b.dut->axil_bready_i) {
        REQUIRE(b.dut->axil_bresp_o == 0);
        ++b.written;
      }
      if (b.dut->axil_rvalid_o && b.dut->axil_rready_i) {
        REQUIRE(b.dut->axil_rresp_o == 0);
        b.read_data.push_back(b.dut->axil_rdata_o);
      }
    }
    void drive() override {
      b.dut->axil_bready_i = !b.random.chance(b.b_stall);
      b.dut->axil_rready_i = !b.random.chance(b.r_stall);
      b.dut->axil_wvalid_i = b.w_valid;
      b.dut->axil_wdata_i = std::uint64_t{b.w_port[1]} << 32 | b.w_port[0];
      b.dut->axil_wstrb_i = static_cast<CData>(b.w_port[2]);
    }
  } responses;

  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt),
        aw("aw", dut->axil_awvalid_i, dut->axil_awready_o, dut->axil_awaddr_i),
        w("w", w_valid, dut->axil_wready_o, w_port),
        ar("ar", dut->axil_arvalid_i, dut->axil_arready_o, dut->axil_araddr_i),
        ring("ring", dut->ring_valid_o, dut->ring_ready_i, dut->ring_o),
        interrupts(dut), responses(*this) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    dut->fetch_ready_i = 1;
    dut->place_valid_i = dut->order_valid_i = dut->trap_i = dut->link_up_i = 0;
    for (int n = 0; n < 4; ++n) dut->pulse_i[n] = 0;
    for (int n = 0; n < 3; ++n) dut->amount_i[n] = 0;
    dut->clock_i = 1234567;
    dut->speed_mbps_i = 1000;
    dut.reset();
    dut.attach(aw);
    dut.attach(w);
    dut.attach(ar);
    dut.attach(ring);
    dut.attach(interrupts);
    dut.attach(responses);
    dut.tick(600);                          // counters and rings are cleared
  }
  static Bits<kAddressBits> address(unsigned fn, unsigned offset) {
    return Bits<kAddressBits>(std::uint64_t{fn} << kBarBits | offset);
  }
  void post(unsigned fn, unsigned offset, std::uint64_t data, unsigned strobe = 0xff) {
    aw.push(address(fn, offset));
    Bits<72> item;
    item.set(0, 64, data);
    item.set(64, 8, strobe);
    w.push(item);
  }
  void write(unsigned fn, unsigned offset, std::uint64_t data, unsigned strobe = 0xff) {
    const unsigned want = written + 1;
    post(fn, offset, data, strobe);
    dut.run_until([&] { return written == want; }, "write answered", 1000);
  }
  std::uint64_t read(unsigned fn, unsigned offset) {
    ar.push(address(fn, offset));
    dut.run_until([&] { return !read_data.empty(); }, "read answered", 1000);
    const std::uint64_t data = read_data.front();
    read_data.pop_front();
    return data;
  }
  /// Reads what no register takes.
  void bad_read(unsigned fn, unsigned offset) {
    INFO("fn " << fn << " offset " << offset);
    REQUIRE(read(fn, offset) == 0);
    ++errors;
  }
  void bad_write(unsigned fn, unsigned offset, unsigned strobe = 0xff) {
    write(fn, offset, random(), strobe);
    ++errors;
  }
  void check_errors() {
    dut.tick(400);
    const unsigned counter = static_cast<unsigned>(hwif::Counter::BAR_ACCESS_ERROR);
    REQUIRE(read(0, csr::ManagementCounter::ADDRESS + 8 * counter) == errors);
  }
};

}  // namespace

TEST_CASE("every block answers every function, and nothing else does") {
  Random random;
  for (int round = 0; round < 3; ++round) {
    Bench bench(random());
    bench.aw.stall(Stall::any(random));
    bench.w.stall(Stall::any(random));
    bench.ar.stall(Stall::any(random));
    bench.ring.collect();
    bench.b_stall = random.chance(0.5) ? 0.6 : 0.0;
    bench.r_stall = random.chance(0.5) ? 0.6 : 0.0;
    for (unsigned fn = 0; fn < kFns; ++fn) {
      // identity
      REQUIRE(bench.read(fn, csr::IdentityHwifHash::ADDRESS) == hwif::HWIF_HASH);
      REQUIRE(bench.read(fn, csr::IdentityClock::ADDRESS) == 1234567);
      const auto configuration = csr::IdentityConfiguration::from_word(
          bench.read(fn, csr::IdentityConfiguration::ADDRESS));
      REQUIRE(configuration.get<csr::IdentityConfiguration::function_number>() == fn);
      bench.bad_write(fn, csr::IdentityClock::ADDRESS);
      bench.bad_read(fn, csr::IdentityClock::ADDRESS + 4);
      bench.bad_read(fn, 0x800);
      // admin: own registers per function
      const std::uint64_t ring = random.bits(52) << 12;
      bench.write(fn, csr::AdminCommandRing::ADDRESS, ring);
      bench.bad_write(fn, csr::AdminCommandRing::ADDRESS, 0x0f);
      bench.bad_write(fn, csr::AdminStatus::ADDRESS);
      REQUIRE(bench.read(fn, csr::AdminCommandRing::ADDRESS) == ring);
      REQUIRE(bench.read((fn + 1) % kFns, csr::AdminCommandRing::ADDRESS) != ring);
      REQUIRE(bench.read(fn, csr::AdminStatus::ADDRESS) == 0);
      REQUIRE(bench.read(fn, csr::AdminDoorbell::ADDRESS) == 0);       // write only
      bench.bad_read(fn, csr::AdminConsumed::ADDRESS + 8);
      // interrupts
      const auto vector = static_cast<unsigned>(random.below(8));
      REQUIRE(bench.read(fn, csr::InterruptVector::ADDRESS + 8 * vector) == 1);
      bench.write(fn, csr::InterruptVector::ADDRESS + 8 * vector, 0);
      REQUIRE(bench.read(fn, csr::InterruptVector::ADDRESS + 8 * vector) == 0);
      bench.interrupts.pending[fn] = 0xa5;
      REQUIRE(bench.read(fn, csr::InterruptPending::ADDRESS) == 0xa5);
      bench.write(fn, csr::InterruptPending::ADDRESS, 0x21);
      REQUIRE(bench.read(fn, csr::InterruptPending::ADDRESS) == 0x84);
      bench.bad_write(fn, csr::InterruptPending::ADDRESS + 8);
      bench.bad_read(fn, csr::InterruptPending::ADDRESS + 8);
      // management: function 0 only
      if (fn == 0) {
        bench.write(fn, csr::ManagementPortMac::ADDRESS, 0x060504030201);
        REQUIRE(bench.read(fn, csr::ManagementPortMac::ADDRESS) == 0x060504030201);
      } else {
        bench.bad_write(fn, csr::ManagementPortMac::ADDRESS);
        bench.bad_read(fn, csr::ManagementPortMac::ADDRESS);
      }
      bench.bad_read(fn, 0x4000 + 8 * static_cast<unsigned>(random.below(0x100)));
      bench.bad_write(fn, 0xf000);
      // doorbells: only offset 0 of a page
      REQUIRE(bench.read(fn, 0x10000) == 0);
      bench.bad_read(fn, 0x10008);
      bench.bad_write(fn, 0x10008);
      bench.bad_write(fn, 0x10000, 0xf0);
    }
    REQUIRE(bench.read(0, csr::ManagementPortMac::ADDRESS) == 0x060504030201);
    REQUIRE(bench.ring.received().empty());
    bench.check_errors();
  }
}

TEST_CASE("doorbells come out in order with function and page") {
  Random random;
  for (int round = 0; round < 4; ++round) {
    Bench bench(random());
    bench.aw.stall(Stall::any(random));
    bench.w.stall(Stall::any(random));
    bench.ring.stall(Stall::any(random));
    const unsigned before = bench.written;
    const auto count = static_cast<unsigned>(scaled(300));
    for (unsigned n = 0; n < count; ++n) {
      const auto fn = static_cast<unsigned>(random.below(kFns));
      const auto page = static_cast<unsigned>(random.below(16));
      const std::uint64_t data = random();
      bench.post(fn, 0x10000 + page * 0x1000, data);
      cpu::bar_doorbell_t item{};
      item.fn = static_cast<decltype(item.fn)>(fn);
      item.page = static_cast<decltype(item.page)>(page);
      item.data = data;
      bench.ring.expect(item);
    }
    bench.dut.run_until([&] { return bench.written == before + count; }, "all doorbells");
    REQUIRE(bench.ring.done());
    REQUIRE(bench.errors == 0);
    bench.check_errors();
  }
}

TEST_CASE("one doorbell per cycle") {
  Random random;
  Bench bench(random());
  bench.ring.collect();
  const unsigned before = bench.written;
  for (unsigned n = 0; n < 500; ++n) bench.post(1, 0x10000, n);
  const std::uint64_t start = bench.dut.cycle();
  bench.dut.run_until([&] { return bench.written == before + 500; }, "all doorbells");
  REQUIRE(bench.dut.cycle() - start <= 505);
}
