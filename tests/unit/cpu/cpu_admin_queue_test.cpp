// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_admin_queue: models of the rings, the copy engines, the ordered writer and a firmware, all with
// random delays. Every command of a live function reaches the firmware once, with its input exactly if
// that could be read; every completion is written once, in its place, its interrupt comes after
// its token; bus errors stop the function; a reset function gets nothing more, and its reset ends only
// when no fetch of it is under way. Active as long as something is not answered, and no longer.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <array>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace cpu = roci::sv::cpu_pkg;

namespace {

constexpr unsigned kFns = ROCI_CONFIG_WIDE ? 16 : 8;
constexpr unsigned kRamWords = (ROCI_CONFIG_WIDE ? 65536 : 32768) / 8;
constexpr unsigned slot(unsigned fn) { return kRamWords - kFns * 32 + fn * 32; }

struct Function {
  bool resetting = false;
  bool busy = false;                // fetched, not released
  std::uint64_t next = 0;           // number of its next command
  bool wants_input = false, input_error = false, command_error = false;
  unsigned written = 0;             // completions whose token has not come
  std::uint64_t input_address = 0;
  std::uint32_t input_length = 0;
  unsigned completed = 0;
};

struct Bench {
  Dut<DUT_CLASS> dut;
  Random random;
  std::array<Function, kFns> fns;
  Source<cpu::admin_fetch_t> fetch;
  Sink<cpu::admin_order_t> order;
  Sink<cpu::irq_raise_t> irq;
  Source<pkg::token_t> token;
  std::map<std::pair<unsigned, unsigned>, unsigned> irqs_due;   // fn, vector: tokens gone
  bool plain = false;               // no bus errors in commands
  unsigned commands_seen = 0, completions = 0, drops = 0, failures = 0, errors_counted = 0;
  unsigned commands_counted = 0, error_jobs = 0, jobs = 0, resets = 0, resets_counted = 0;

  std::set<unsigned> offered;       // by the rings, not yet taken
  // firmware: what it holds
  std::set<unsigned> held;
  std::deque<unsigned> released_early;

  struct World : Agent {
    Bench& b;
    // copy in
    bool reading = false, read_done = false, read_error = false;
    cpu::copy_t read{};
    unsigned word = 0, wait = 0;
    bool snoop = false;
    std::uint64_t snoop_data = 0;
    unsigned snoop_word = 0;
    // place
    bool placing = false, place_done = false;
    unsigned place_fn = 0, place_wait = 0;
    cpu::admin_place_t place{};
    std::deque<cpu::admin_place_t> placed;
    std::deque<unsigned> placed_fn;
    // copy out
    unsigned write_busy = 0;
    explicit World(Bench& bench) : b(bench) {}
    void sample() override;
    void drive() override;
  } world;

  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt),
        fetch("fetch", dut->fetch_valid_i, dut->fetch_ready_o, dut->fetch_i),
        order("order", dut->order_valid_o, dut->order_ready_i, dut->order_o),
        irq("irq", dut->irq_valid_o, dut->irq_ready_i, dut->irq_o),
        token("token", dut->token_valid_i, dut->token_ready_o, dut->token_i), world(*this) {
    dut->ready_take_i = dut->job_valid_i = dut->command_valid_i = 0;
    dut->resetting_i = 0;
    dut.reset();
    order.collect();
    irq.collect();
    for (Agent* a : {static_cast<Agent*>(&fetch), static_cast<Agent*>(&order),
                     static_cast<Agent*>(&irq), static_cast<Agent*>(&token),
                     static_cast<Agent*>(&world)}) {
      dut.attach(*a);
    }
    fetch.on_transfer([this](const cpu::admin_fetch_t& item) { offered.erase(item.fn); });
    order.on_transfer([this](const cpu::admin_order_t& item) { take_order(item); });
    irq.on_transfer([this](const cpu::irq_raise_t& item) {
      auto& due = irqs_due[{unsigned(item.fn), unsigned(item.irq_vector)}];
      REQUIRE(due > 0);
      --due;
    });
    token.on_transfer([this](const pkg::token_t& item) {
      roci::sv::Words<pkg::token_t::width_bits> bits{};
      item.to_bits(bits.data(), 0);
      const auto tag = cpu::write_tag_t::from_bits(bits.data(), 0);
      if (!tag.is_completion) return;
      --fns[tag.fn].written;
      if (tag.raise && !item.error) ++irqs_due[{unsigned(tag.fn), unsigned(tag.irq_vector)}];
      if (item.error) ++failures;
    });
  }

  void take_order(const cpu::admin_order_t& item) {
    Function& f = fns[item.fn];
    INFO("function " << unsigned(item.fn));
    switch (static_cast<unsigned>(item.order)) {
      case 1:                                              // RELEASE
        REQUIRE(f.busy);
        f.busy = false;
        break;
      case 3:                                              // RESET_DONE
        REQUIRE(f.resetting);
        REQUIRE_FALSE((world.reading && world.read.fn == item.fn));
        REQUIRE(offered.count(item.fn) == 0);
        REQUIRE(f.written == 0);
        f.resetting = false;
        f.busy = false;
        ++resets;
        break;
      case 4:                                              // FAIL_READ
        REQUIRE(f.command_error);
        f.busy = false;
        f.command_error = false;
        break;
      case 5:                                              // FAIL_WRITE
        REQUIRE(failures > 0);
        --failures;
        break;
      default: FAIL("order " << static_cast<unsigned>(item.order));
    }
  }

  /// The rings offer a command.
  void offer(unsigned fn) {
    Function& f = fns[fn];
    if (f.busy || f.resetting || !offered.empty()) return;    // one at a time
    f.busy = true;
    cpu::admin_fetch_t item{};
    item.fn = static_cast<decltype(item.fn)>(fn);
    item.addr = std::uint64_t{fn} << 20 | (f.next++ & 63) << 6;
    const unsigned dice = static_cast<unsigned>(random.below(10));
    f.input_address = random.bits(40) << 3;
    f.input_length = 0;
    if (dice < 5) f.input_length = 8 * static_cast<std::uint32_t>(random.between(1, 16));
    if (dice == 5) f.input_length = 136;                   // longer than any
    if (dice == 6) f.input_length = 12;                    // no multiple of 8
    if (dice == 7) {
      f.input_length = 64;
      f.input_address += 4;
    }
    f.wants_input = dice < 5;
    f.input_error = f.wants_input && random.chance(0.1);
    f.command_error = !plain && random.chance(0.05);
    fetch.push(item);
    offered.insert(fn);
  }

  void set_resetting(unsigned fn, bool on) {
    fns[fn].resetting = on;
    unsigned bits = 0;
    for (unsigned n = 0; n < kFns; ++n) bits |= unsigned(fns[n].resetting) << n;
    dut->resetting_i = static_cast<decltype(+dut->resetting_i)>(bits);
  }

  void firmware_step() {
    // Whoever holds time for us must see what is not answered.
    if (!held.empty() || !released_early.empty()) REQUIRE(dut->active_o == 1);
    if (dut->ready_valid_o && random.chance(0.5)) {
      const unsigned fn = dut->ready_fn_o;
      Function& f = fns[fn];
      INFO("function " << fn);
      REQUIRE(f.busy);
      REQUIRE_FALSE(f.resetting);
      REQUIRE_FALSE(f.command_error);
      REQUIRE(held.count(fn) == 0);
      REQUIRE((dut->ready_input_o != 0) == (f.wants_input && !f.input_error));
      REQUIRE((dut->ready_error_o != 0) == f.input_error);
      dut->ready_take_i = 1;
      dut.tick();
      dut->ready_take_i = 0;
      held.insert(fn);
      ++commands_seen;
      return;
    }
    if (!held.empty() && random.chance(0.5)) {
      const unsigned fn = *std::next(held.begin(), static_cast<std::ptrdiff_t>(
                                                       random.below(held.size())));
      held.erase(fn);
      if (fns[fn].resetting) return;                       // forgotten
      if (random.chance(0.3)) {                            // releases first, completes later
        command(cpu::admin_order_e::ADMIN_RELEASE, fn);
        released_early.push_back(fn);
      } else {
        complete(fn, true);
      }
      return;
    }
    if (!released_early.empty() && random.chance(0.3)) {
      const unsigned fn = released_early.front();
      released_early.pop_front();
      complete(fn, false);
      return;
    }
    dut.tick();
  }
  void complete(unsigned fn, bool releases) {
    cpu::completion_job_t job{};
    job.fn = static_cast<decltype(job.fn)>(fn);
    job.releases = releases;
    job.is_error = random.chance(0.3);
    job.ram = static_cast<decltype(job.ram)>(slot(fn) + 24);
    error_jobs += job.is_error;
    ++jobs;
    job.pack(dut->job_i);
    dut->job_valid_i = 1;
    dut.eval();
    dut.run_until([&] { return dut->job_ready_o != 0; }, "job taken", 5000);
    dut.tick();
    dut->job_valid_i = 0;
  }
  void command(cpu::admin_order_e what, unsigned fn) {
    cpu::admin_order_t item{};
    item.order = what;
    item.fn = static_cast<decltype(item.fn)>(fn);
    item.pack(dut->command_i);
    dut->command_valid_i = 1;
    dut.eval();
    dut.run_until([&] { return dut->command_ready_o != 0; }, "command taken", 5000);
    dut.tick();
    dut->command_valid_i = 0;
  }
};

void Bench::World::sample() {
  auto& dut = b.dut;
  const auto count = cpu::cpu_counters_t::unpack(dut->count_o);
  b.commands_counted += count.admin_commands;
  b.errors_counted += count.admin_errors;
  b.resets_counted += count.function_resets;
  // copy in
  read_done = false;
  snoop = false;
  if (reading) {
    Function& f = b.fns[read.fn];
    const bool is_command = read.bytes == 64 && read.ram == slot(read.fn);
    if (wait != 0) {
      --wait;
    } else if (word < read.bytes / 8u) {
      snoop = true;
      snoop_word = word;
      snoop_data = b.random();
      if (is_command && word == 1) snoop_data = f.input_address;
      if (is_command && word == 3) {
        snoop_data = (b.random() & 0xffffffff00000000u) | f.input_length;
      }
      ++word;
      wait = static_cast<unsigned>(b.random.below(3));
    } else {
      reading = false;
      read_done = true;
      read_error = is_command ? f.command_error : f.input_error;
    }
  } else if (dut->read_valid_o && dut->read_ready_i) {
    reading = true;
    read = cpu::copy_t::unpack(dut->read_o);
    word = 0;
    wait = static_cast<unsigned>(b.random.below(30));
    Function& f = b.fns[read.fn];
    INFO("function " << unsigned(read.fn));
    if (read.ram == slot(read.fn)) {
      REQUIRE(read.bytes == 64);
      REQUIRE(read.addr == (std::uint64_t{read.fn} << 20 | ((f.next - 1) & 63) << 6));
    } else {
      REQUIRE(read.ram == slot(read.fn) + 8);
      REQUIRE(f.wants_input);
      REQUIRE(read.addr == f.input_address);
      REQUIRE(read.bytes == f.input_length);
    }
  }
  // places
  place_done = false;
  if (placing) {
    if (place_wait-- == 0) {
      placing = false;
      place_done = true;
      Function& f = b.fns[place_fn];
      place.drop = f.resetting;
      place.phase = b.random.chance(0.5);
      place.raise = b.random.chance(0.5);
      place.irq_vector = static_cast<decltype(place.irq_vector)>(b.random.below(8));
      place.addr = std::uint64_t{place_fn} << 30 | f.completed * 32u;
      if (place.drop) {
        ++b.drops;
      } else {
        ++f.completed;
        placed.push_back(place);
        placed_fn.push_back(place_fn);
      }
    }
  } else if (dut->place_valid_o && dut->place_ready_i) {
    placing = true;
    place_fn = dut->place_fn_o;
    place_wait = static_cast<unsigned>(b.random.below(5));
  }
  // copy out
  if (write_busy != 0) {
    --write_busy;
  } else if (dut->write_valid_o && dut->write_ready_i) {
    REQUIRE_FALSE(placed.empty());
    const auto write = cpu::copy_t::unpack(dut->write_o);
    const auto tag = cpu::write_tag_t::unpack(dut->write_tag_o);
    REQUIRE(write.fn == placed_fn.front());
    REQUIRE(write.addr == placed.front().addr);
    REQUIRE(write.bytes == 32);
    REQUIRE(write.ram == slot(write.fn) + 24);
    REQUIRE((dut->write_phase_o != 0) == placed.front().phase);
    REQUIRE(tag.is_completion);
    REQUIRE(tag.raise == placed.front().raise);
    REQUIRE(tag.irq_vector == placed.front().irq_vector);
    REQUIRE(tag.fn == write.fn);
    placed.pop_front();
    placed_fn.pop_front();
    ++b.completions;
    ++b.fns[write.fn].written;
    write_busy = static_cast<unsigned>(b.random.between(1, 8));
    pkg::token_t token{};
    token.kind = static_cast<decltype(token.kind)>(6);
    token.error = b.random.chance(0.03);
    roci::sv::Words<pkg::token_t::width_bits> bits{};
    token.to_bits(bits.data(), 0);
    tag.to_bits(bits.data(), 0);
    b.token.push(pkg::token_t::from_bits(bits.data(), 0));
  }
}

void Bench::World::drive() {
  auto& dut = b.dut;
  dut->read_ready_i = !reading && b.random.chance(0.7);
  dut->read_done_i = read_done;
  dut->read_error_i = read_done ? read_error : b.random.chance(0.5);
  dut->snoop_valid_i = snoop;
  dut->snoop_word_i = static_cast<decltype(+dut->snoop_word_i)>(snoop_word);
  dut->snoop_data_i = snoop_data;
  dut->place_ready_i = !placing && b.random.chance(0.7);
  dut->place_done_i = place_done;
  place.pack(dut->place_i);
  dut->write_ready_i = write_busy == 0 && b.random.chance(0.7);
  dut->write_busy_i = write_busy != 0;
}

}  // namespace

TEST_CASE("commands come, completions go, resets end clean") {
  Random random;
  for (int round = 0; round < 4; ++round) {
    Bench bench(random());
    bench.order.stall(Stall::any(random));
    bench.irq.stall(Stall::any(random));
    bench.token.stall(Stall::any(random));
    for (std::size_t step = 0; step < scaled(8000); ++step) {
      bench.offer(static_cast<unsigned>(random.below(kFns)));
      bench.firmware_step();
      if (random.chance(0.01)) {
        // the host resets a function, the firmware ends it a little later
        const auto fn = static_cast<unsigned>(random.below(kFns));
        if (bench.fns[fn].resetting) continue;
        bench.set_resetting(fn, true);
        bench.dut.tick(2);
        for (unsigned n = 0; n < random.below(60); ++n) bench.firmware_step();
        bench.held.erase(fn);
        std::erase(bench.released_early, fn);
        bench.command(cpu::admin_order_e::ADMIN_RESET_DONE, fn);
        bench.dut.run_until([&] { return !bench.fns[fn].resetting; }, "reset done", 5000);
        bench.set_resetting(fn, false);
      }
    }
    // everything is answered
    for (int n = 0; n < 4000; ++n) bench.firmware_step();
    REQUIRE(bench.held.empty());
    REQUIRE(bench.released_early.empty());
    bench.dut.tick(3000);
    REQUIRE(bench.token.empty());
    REQUIRE(bench.dut->active_o == 0);
    for (const Function& f : bench.fns) REQUIRE_FALSE(f.busy);
    for (const auto& [key, due] : bench.irqs_due) REQUIRE(due == 0);
    REQUIRE(bench.failures == 0);
    REQUIRE(bench.completions > 100);
    REQUIRE(bench.commands_seen >= bench.completions);
    REQUIRE(bench.completions + bench.drops == bench.jobs);
    REQUIRE(bench.commands_counted == bench.jobs);
    REQUIRE(bench.errors_counted == bench.error_jobs);
    REQUIRE(bench.resets_counted == bench.resets);
  }
}

TEST_CASE("ready functions are taken in turn") {
  Random random;
  Bench bench(random());
  bench.plain = true;
  for (unsigned fn = 0; fn < kFns; ++fn) {
    bench.offer(fn);
    bench.dut.tick(500);
  }
  std::set<unsigned> taken;
  for (unsigned n = 0; n < kFns; ++n) {
    REQUIRE(bench.dut->ready_valid_o == 1);
    const unsigned fn = bench.dut->ready_fn_o;
    REQUIRE(taken.insert(fn).second);          // nobody comes twice before the others
    bench.dut->ready_take_i = 1;
    bench.dut.tick();
    bench.dut->ready_take_i = 0;
    bench.complete(fn, true);
    bench.dut.tick(200);
    bench.offer(fn);                           // everybody always has more
    bench.dut.tick(800);
  }
}
