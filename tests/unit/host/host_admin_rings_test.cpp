// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_admin_rings: hosts of all functions (some of them misbehaving) and a CPU that takes commands,
// completes them in any order, fails and resets functions, against a model of each function.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <vector>

#include "harness/harness.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace cpu = roci::sv::cpu_pkg;
namespace csr = roci::hwif::csr;
using roci::hwif::AdminError;
using roci::hwif::AdminState;

namespace {

constexpr unsigned kFns = ROCI_CONFIG_WIDE ? 16 : 8;

enum Register { COMMAND, COMPLETION, CONFIG, CONTROL, STATUS, DOORBELL, CONSUMED };

struct Function {
  AdminState state = AdminState::DISABLED;
  AdminError error = AdminError::NONE;
  std::uint64_t command = 0, completion = 0;
  unsigned log2 = 0, vector = 0;
  bool irq = false, busy = false;
  std::uint16_t doorbell = 0, fetched = 0, completed = 0, consumed = 0;
  unsigned size() const { return 1u << (log2 & 15); }
};

struct Bench {
  Dut<DUT_CLASS> dut;
  Random random;
  std::vector<Function> fns{kFns};
  Sink<cpu::admin_fetch_t> fetch;
  std::vector<unsigned> at_cpu;           // functions whose command the CPU holds
  std::uint64_t fetches = 0;

  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt),
        fetch("fetch", dut->fetch_valid_o, dut->fetch_ready_i, dut->fetch_o) {
    dut->write_valid_i = dut->read_valid_i = dut->place_valid_i = dut->order_valid_i = 0;
    dut.reset();
    dut.run_until([&] { return dut->write_ready_o != 0; }, "cleared");
    fetch.collect();
    dut.attach(fetch);
    fetch.on_transfer([this](const cpu::admin_fetch_t& item) {
      // Its fetch was decided up to a few cycles ago: the state may have changed since then, the
      // index not.
      Function& f = fns[item.fn];
      INFO("function " << unsigned(item.fn));
      REQUIRE_FALSE(f.busy);
      REQUIRE(f.doorbell != f.fetched);
      REQUIRE(item.addr == f.command + 64u * (f.fetched & (f.size() - 1)));
      REQUIRE(static_cast<std::uint16_t>(f.fetched - f.consumed) < f.size());
      ++f.fetched;
      f.busy = true;
      at_cpu.push_back(item.fn);
      ++fetches;
    });
  }

  void write(unsigned fn, Register which, std::uint64_t data) {
    cpu::admin_access_t access{};
    access.fn = static_cast<decltype(access.fn)>(fn);
    access.which = static_cast<decltype(access.which)>(which);
    access.data = data;
    access.pack(dut->write_i);
    dut->write_valid_i = 1;
    dut.eval();
    dut.run_until([&] { return dut->write_ready_o != 0; }, "write taken");
    dut.tick();
    dut->write_valid_i = 0;
    dut.tick(4);
  }
  std::uint64_t read(unsigned fn, Register which) {
    cpu::admin_access_t access{};
    access.fn = static_cast<decltype(access.fn)>(fn);
    access.which = static_cast<decltype(access.which)>(which);
    access.pack(dut->read_i);
    dut->read_valid_i = 1;
    dut.eval();
    dut.run_until([&] { return dut->read_ready_o != 0; }, "read taken");
    dut.tick();
    dut->read_valid_i = 0;
    dut.run_until([&] { return dut->read_done_o != 0; }, "read done");
    return dut->read_data_o;
  }
  void order(cpu::admin_order_e what, unsigned fn) {
    cpu::admin_order_t order{};
    order.order = what;
    order.fn = static_cast<decltype(order.fn)>(fn);
    order.pack(dut->order_i);
    dut->order_valid_i = 1;
    dut.eval();
    dut.run_until([&] { return dut->order_ready_o != 0; }, "order taken");
    dut.tick();
    dut->order_valid_i = 0;
    dut.tick(4);
  }
  cpu::admin_place_t place(unsigned fn) {
    dut->place_fn_i = static_cast<CData>(fn);
    dut->place_valid_i = 1;
    dut.eval();
    dut.run_until([&] { return dut->place_ready_o != 0; }, "place taken");
    dut.tick();
    dut->place_valid_i = 0;
    dut.run_until([&] { return dut->place_done_o != 0; }, "place done");
    return cpu::admin_place_t::unpack(dut->place_o);
  }
  /// Lets a fetch that was decided come out, so that model and module agree before `fn` changes.
  void settle() {
    fetch.stall(Stall(0.0));
    for (unsigned n = 0; n < 4 * kFns + 8; ++n) dut.tick();
  }
  void check(unsigned fn) {
    const Function& f = fns[fn];
    csr::AdminStatus status = csr::AdminStatus::from_word(read(fn, STATUS));
    INFO("function " << fn);
    REQUIRE(status.get<csr::AdminStatus::state>() == f.state);
    REQUIRE(status.get<csr::AdminStatus::error>() == f.error);
    REQUIRE(status.get<csr::AdminStatus::fetched>() == f.fetched);
    REQUIRE(status.get<csr::AdminStatus::completed>() == f.completed);
    REQUIRE(((dut->enabled_o >> fn) & 1u) == (f.state == AdminState::ENABLED));
    REQUIRE(((dut->resetting_o >> fn) & 1u) == (f.state == AdminState::RESETTING));
    REQUIRE(((dut->failed_o >> fn) & 1u) == (f.state == AdminState::ERROR));
    REQUIRE(read(fn, COMMAND) == f.command);
    REQUIRE(read(fn, COMPLETION) == f.completion);
    csr::AdminRingConfig config{};
    config.set<csr::AdminRingConfig::ring_log2>(static_cast<std::uint8_t>(f.log2));
    config.set<csr::AdminRingConfig::irq_vector>(static_cast<std::uint8_t>(f.vector));
    config.set<csr::AdminRingConfig::interrupt_enable>(f.irq);
    REQUIRE(read(fn, CONFIG) == config.to_word());
    REQUIRE(read(fn, CONTROL) == 0);
    REQUIRE(read(fn, DOORBELL) == 0);
  }
  void host_step(unsigned fn);
  void cpu_step();
};

void Bench::host_step(unsigned fn) {
  Function& f = fns[fn];
  if (f.state == AdminState::DISABLED) {
    f.command = random.bits(52) << 12;
    f.completion = random.bits(52) << 12;
    f.log2 = static_cast<unsigned>(random.between(2, 5));
    if (random.chance(0.1)) f.log2 = static_cast<unsigned>(random.below(256));
    if (random.chance(0.05)) f.command += 8;
    if (random.chance(0.05)) f.completion += 2048;
    f.vector = static_cast<unsigned>(random.below(8));
    f.irq = random.chance(0.5);
    write(fn, COMMAND, f.command);
    write(fn, COMPLETION, f.completion);
    csr::AdminRingConfig config{};
    config.set<csr::AdminRingConfig::ring_log2>(static_cast<std::uint8_t>(f.log2));
    config.set<csr::AdminRingConfig::irq_vector>(static_cast<std::uint8_t>(f.vector));
    config.set<csr::AdminRingConfig::interrupt_enable>(f.irq);
    write(fn, CONFIG, config.to_word());
    csr::AdminControl control{};
    control.set<csr::AdminControl::enable>(true);
    f.doorbell = f.fetched = f.completed = f.consumed = 0;
    const bool good = f.command % 4096 == 0 && f.completion % 4096 == 0 && f.log2 >= 2 &&
                      f.log2 <= 10;
    f.state = good ? AdminState::ENABLED : AdminState::ERROR;
    f.error = good ? AdminError::NONE : AdminError::BAD_RING;
    write(fn, CONTROL, control.to_word());
    return;
  }
  if (f.state != AdminState::ENABLED) {
    // Nothing of this may have an effect.
    write(fn, COMMAND, random());
    write(fn, CONFIG, random());
    write(fn, DOORBELL, random.bits(16));
    write(fn, CONSUMED, random.bits(16));
    csr::AdminControl control{};
    control.set<csr::AdminControl::enable>(true);
    control.set<csr::AdminControl::reset_request>(random.chance(0.3));
    if (control.get<csr::AdminControl::reset_request>()) f.state = AdminState::RESETTING;
    write(fn, CONTROL, control.to_word());
    return;
  }
  write(fn, CONFIG, random());                          // not while enabled
  if (random.chance(0.03)) {
    settle();
    csr::AdminControl control{};
    control.set<csr::AdminControl::reset_request>(true);
    f.state = AdminState::RESETTING;
    write(fn, CONTROL, control.to_word());
  } else if (random.chance(0.02)) {
    settle();
    const auto bad = static_cast<std::uint16_t>(f.fetched + f.size() + 1 + random.below(1000));
    f.state = AdminState::ERROR;
    f.error = AdminError::BAD_INDEX;
    write(fn, DOORBELL, bad);
  } else if (random.chance(0.02)) {
    settle();
    const auto bad = static_cast<std::uint16_t>(f.completed + 1 + random.below(1000));
    f.state = AdminState::ERROR;
    f.error = AdminError::BAD_INDEX;
    write(fn, CONSUMED, bad);
  } else if (random.chance(0.5)) {
    const unsigned room = f.size() - static_cast<std::uint16_t>(f.doorbell - f.fetched);
    f.doorbell = static_cast<std::uint16_t>(f.doorbell + random.below(room + 1));
    write(fn, DOORBELL, f.doorbell);
  } else {
    const unsigned open = static_cast<std::uint16_t>(f.completed - f.consumed);
    const auto now = static_cast<std::uint16_t>(f.consumed + random.below(open + 1));
    write(fn, CONSUMED, now);
    f.consumed = now;                        // after the write: more may be fetched only then
  }
}

void Bench::cpu_step() {
  if (!at_cpu.empty()) {
    const std::size_t at = random.below(at_cpu.size());
    const unsigned fn = at_cpu[at];
    at_cpu.erase(at_cpu.begin() + static_cast<std::ptrdiff_t>(at));
    Function& f = fns[fn];
    const double dice = static_cast<double>(random.below(1000)) / 1000.0;
    if (dice < 0.02) {
      f.busy = false;
      if (f.state == AdminState::ENABLED) {
        f.state = AdminState::ERROR;
        f.error = AdminError::READ_BUS;
      }
      order(cpu::admin_order_e::ADMIN_FAIL_READ, fn);
      return;
    }
    f.busy = false;
    const bool early = random.chance(0.3);   // releases first, completes later
    if (early) order(cpu::admin_order_e::ADMIN_RELEASE, fn);
    const cpu::admin_place_t got = place(fn);
    INFO("function " << fn);
    REQUIRE(got.drop == (f.state != AdminState::ENABLED));
    if (!got.drop) {
      REQUIRE(got.addr == f.completion + 32u * (f.completed & (f.size() - 1)));
      REQUIRE(got.phase == (((f.completed / f.size()) & 1u) == 0));
      REQUIRE(got.raise == f.irq);
      REQUIRE(got.irq_vector == f.vector);
      ++f.completed;
      if (random.chance(0.01)) {
        f.state = AdminState::ERROR;
        f.error = AdminError::WRITE_BUS;
        order(cpu::admin_order_e::ADMIN_FAIL_WRITE, fn);
      }
    }
    if (!early) order(cpu::admin_order_e::ADMIN_RELEASE, fn);
    return;
  }
  const auto fn = static_cast<unsigned>(random.below(kFns));
  if (fns[fn].state == AdminState::RESETTING) {
    fns[fn].state = AdminState::DISABLED;
    fns[fn].error = AdminError::NONE;
    order(cpu::admin_order_e::ADMIN_RESET_DONE, fn);
  } else if (random.chance(0.02)) {
    settle();
    if (fns[fn].busy) return;
    fns[fn].state = AdminState::RESETTING;
    order(cpu::admin_order_e::ADMIN_RESET, fn);
  }
}

}  // namespace

TEST_CASE("admin rings of all functions follow their registers") {
  Random random;
  for (int round = 0; round < 3; ++round) {
    Bench bench(random());
    for (std::size_t step = 0; step < scaled(3000); ++step) {
      bench.fetch.stall(Stall(random.chance(0.3) ? 0.7 : 0.0));
      if (random.chance(0.5)) {
        bench.host_step(static_cast<unsigned>(random.below(kFns)));
      } else {
        bench.cpu_step();
      }
      if (random.chance(0.1)) {
        bench.settle();
        bench.check(static_cast<unsigned>(random.below(kFns)));
      }
    }
    REQUIRE(bench.fetches > 200);
    // Nothing rung stays unfetched.
    bench.settle();
    for (const Function& f : bench.fns) {
      if (f.state == AdminState::ENABLED && !f.busy && f.doorbell != f.fetched) {
        REQUIRE(static_cast<std::uint16_t>(f.fetched - f.consumed) >= f.size());
      }
    }
  }
}

TEST_CASE("a host that hammers its registers does not stop the others") {
  Random random;
  Bench bench(random());
  Function& f = bench.fns[2];
  while (f.state != AdminState::ENABLED) {
    if (f.state != AdminState::DISABLED) {
      bench.order(cpu::admin_order_e::ADMIN_RESET, 2);
      bench.order(cpu::admin_order_e::ADMIN_RESET_DONE, 2);
      f.state = AdminState::DISABLED;
    }
    bench.host_step(2);
  }
  f.doorbell = 1;
  bench.write(2, DOORBELL, 1);
  cpu::admin_access_t access{};
  access.fn = 1;
  access.which = cpu::admin_register_e::ADMIN_CONSUMED;
  access.pack(bench.dut->write_i);
  access.pack(bench.dut->read_i);
  bench.dut->write_valid_i = bench.dut->read_valid_i = 1;
  const std::uint64_t before = bench.fetches;
  bench.dut.run_until([&] { return bench.fetches != before; }, "fetch", 8 * kFns + 40);
  cpu::admin_order_t order{};
  order.order = cpu::admin_order_e::ADMIN_RELEASE;
  order.fn = 2;
  order.pack(bench.dut->order_i);
  bench.dut->order_valid_i = 1;
  bench.dut.eval();
  bench.dut.run_until([&] { return bench.dut->order_ready_o != 0; }, "order", 20);
}
