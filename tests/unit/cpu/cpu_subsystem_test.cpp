// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_subsystem: a small firmware in machine code serves admin commands of all functions: for each
// it writes and reads a context word, copies a buffer from the host and back to another place,
// raises an event and completes. Every write must be in host memory, byte for byte, before its interrupt;
// events, context accesses, releases and interrupts must be those of the commands. Reference: the
// same steps in C++ on the bench's own memory. Also: loading in reset, and the trap.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <array>
#include <deque>
#include <map>
#include <vector>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"
#include "rv32.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace cpu = roci::sv::cpu_pkg;
namespace config = roci::sv::roci_config_pkg;

namespace {

constexpr unsigned num_fns = 1u << config::FN_BITS;
constexpr unsigned ram_bytes = ROCI_CONFIG_WIDE ? 65536 : 32768;
constexpr unsigned lanes = config::DATA_BYTES;

/// Serves commands for ever. A command, in 32-bit words: 0 cookie, 1 context address, 2-3 and 6
/// input buffer (as the hardware reads them), 4-5 context data, 7 event type and object, 8-9 source,
/// 10 bytes and RAM word, 11 cause and function, 12-13 destination.
std::vector<rv32::Word> firmware() {
  using namespace rv32;
  std::vector<Word> code;
  const auto add_code = [&](std::initializer_list<Word> words) {
    code.insert(code.end(), words);
  };
  const auto back = [&](std::size_t target) {        // offset of a branch placed next
    return 4 * (static_cast<std::int32_t>(target) - static_cast<std::int32_t>(code.size()));
  };
  const auto wait_status = [&](std::int32_t bit) {   // until this bit of STATUS is 0
    const std::size_t again = code.size();
    add_code({lw(10, 1, 0x08), slli(10, 10, 31 - bit), srli(10, 10, 31)});
    code.push_back(bne(10, 0, back(again)));
  };
  const auto copy = [&](std::int32_t address, bool to_host) {
    add_code({lw(6, 5, address), sw(6, 1, 0x60), lw(6, 5, address + 4), sw(6, 1, 0x64),
              lw(6, 5, 40), sw(6, 1, 0x68), addi(6, 4, to_host ? 0x100 : 0), sw(6, 1, 0x6c)});
    wait_status(1);
  };
  add_code({lui(1, 0x80000), addi(20, 0, 1), addi(21, 0, 1),
            slli(21, 21, ROCI_CONFIG_WIDE ? 16 : 15),
            addi(21, 21, -static_cast<std::int32_t>(num_fns * 128)),
            addi(21, 21, -static_cast<std::int32_t>(num_fns * 128)), lui(22, 2)});
  const std::size_t loop = code.size();
  add_code({lw(2, 1, 0x20), srli(3, 2, 31), bne(3, 0, 8)});
  code.push_back(bne(20, 0, back(loop)));
  add_code({slli(4, 2, 24), srli(4, 4, 24), slli(5, 4, 8), add(5, 5, 21)});
  add_code({lw(6, 5, 16), sw(6, 1, 0x40), lw(6, 5, 20), sw(6, 1, 0x44), lw(7, 5, 4),
            sw(7, 1, 0x4c), sw(7, 1, 0x48), lw(8, 1, 0x40), lw(9, 1, 0x44)});
  copy(32, false);
  copy(48, true);
  wait_status(2);
  add_code({sw(8, 1, 0x74), lw(6, 5, 28), sw(6, 1, 0x78), lw(6, 5, 44), sw(6, 1, 0x7c)});
  // completion: cookie, answer of the context, ADMIN_NEXT, first and last word of the input
  add_code({slli(12, 4, 5), add(12, 12, 22), lw(6, 5, 0), sw(6, 12, 0), sw(8, 12, 4),
            sw(9, 12, 8), sw(2, 12, 12), lw(6, 5, 64), sw(6, 12, 16), lw(6, 5, 188),
            sw(6, 12, 20), sw(4, 12, 24), sw(0, 12, 28)});
  add_code({srli(13, 12, 3), slli(13, 13, 16), add(13, 13, 4), addi(13, 13, 0x100),
            sw(13, 1, 0x24)});
  code.push_back(bne(20, 0, back(loop)));
  return code;
}

/// Host memory of all functions, by byte.
class Memory {
 public:
  std::uint8_t& at(unsigned fn, std::uint64_t address) { return bytes_[{fn, address}]; }
  std::uint64_t read(unsigned fn, std::uint64_t address, unsigned count) {
    std::uint64_t value = 0;
    for (unsigned n = 0; n < count; ++n) value |= std::uint64_t{at(fn, address + n)} << (8 * n);
    return value;
  }
  void write(unsigned fn, std::uint64_t address, std::uint64_t value, unsigned count) {
    for (unsigned n = 0; n < count; ++n) {
      at(fn, address + n) = static_cast<std::uint8_t>(value >> (8 * n));
    }
  }

 private:
  std::map<std::pair<unsigned, std::uint64_t>, std::uint8_t> bytes_;
};

/// What a command must have led to when its completion is in memory.
struct Command {
  std::array<std::uint32_t, 16> words{};
  std::uint64_t number = 0;
  std::vector<std::uint8_t> copied;
  std::uint64_t input = 0;             // first and last word of a full input buffer
  bool has_input = false;
};

struct Bench : Agent {
  Dut<DUT_CLASS> dut;
  Random random;
  Memory memory;
  Source<cpu::admin_fetch_t> fetch;
  Sink<cpu::admin_order_t> order;
  Sink<cpu::irq_raise_t> irq;
  Sink<pkg::event_t> event;
  Source<pkg::token_t> token;
  Sink<pkg::dma_read_req_t> read;
  Source<pkg::read_beat_t> beat;
  Sink<pkg::dma_write_req_t> write;
  Sink<pkg::write_beat_t> data;
  std::map<unsigned, Command> live;                    // by function
  std::map<unsigned, std::deque<Command>> events_due;  // an event may leave after its completion
  std::map<unsigned, std::uint64_t> offered, releases;
  std::map<unsigned, std::uint64_t> completions;       // of a function so far
  std::map<std::uint32_t, std::uint64_t> contexts;
  std::deque<pkg::dma_write_req_t> writes;
  std::deque<std::pair<unsigned, unsigned>> irqs_due;
  std::uint64_t commands = 0, events = 0, counted = 0, context_writes = 0, irqs = 0;
  unsigned place_wait = 0, ctx_wait = 0;
  bool placing = false, ctx_active = false;
  unsigned place_fn = 0;
  std::map<unsigned, cpu::admin_place_t> placed;

  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt),
        fetch("fetch", dut->fetch_valid_i, dut->fetch_ready_o, dut->fetch_i),
        order("order", dut->order_valid_o, dut->order_ready_i, dut->order_o),
        irq("irq", dut->irq_valid_o, dut->irq_ready_i, dut->irq_o),
        event("event", dut->event_valid_o, dut->event_ready_i, dut->event_o),
        token("token", dut->token_valid_i, dut->token_ready_o, dut->token_i),
        read("read", dut->read_valid_o, dut->read_ready_i, dut->read_o),
        beat("beat", dut->beat_valid_i, dut->beat_ready_o, dut->beat_i),
        write("write", dut->write_valid_o, dut->write_ready_i, dut->write_o),
        data("data", dut->data_valid_o, dut->data_ready_i, dut->data_o) {
    // rising edges of the core's clock coincide with those of the bus
    dut.add_clock(dut->cpu_clk_i, ROCI_CONFIG_WIDE ? 4000 : 8000, 4000);
    dut->hold_i = 1;
    dut->load_valid_i = dut->written_i = dut->bell_error_valid_i = 0;
    dut->place_done_i = 0;
    dut->place_ready_i = 1;
    dut->fn_enabled_i = static_cast<decltype(+dut->fn_enabled_i)>((1u << num_fns) - 1);
    dut->fn_resetting_i = dut->fn_failed_i = 0;
    dut->clock_i = 0;
    pkg::ctx_rsp_t{}.pack(dut->ctx_i);
    dut.reset(8);
    order.collect();
    irq.collect();
    event.collect();
    read.collect();
    write.collect();
    data.collect();
    for (Agent* a : {static_cast<Agent*>(&fetch), static_cast<Agent*>(&order),
                     static_cast<Agent*>(&irq), static_cast<Agent*>(&event),
                     static_cast<Agent*>(&token), static_cast<Agent*>(&read),
                     static_cast<Agent*>(&beat), static_cast<Agent*>(&write),
                     static_cast<Agent*>(&data), static_cast<Agent*>(this)}) {
      dut.attach(*a);
    }
    read.on_transfer([this](const pkg::dma_read_req_t& r) { give(r); });
    write.on_transfer([this](const pkg::dma_write_req_t& r) { writes.push_back(r); });
    data.on_transfer([this](const pkg::write_beat_t& b) { store(b); });
    event.on_transfer([this](const pkg::event_t& e) { check_event(e); });
    order.on_transfer([this](const cpu::admin_order_t& o) {
      if (o.order != cpu::ADMIN_RELEASE) throw Failure("order that nobody gave");
      if (++releases[o.fn] > offered[o.fn]) throw Failure("release without a command");
    });
    irq.on_transfer([this](const cpu::irq_raise_t& i) {
      const std::pair<unsigned, unsigned> got{i.fn, i.irq_vector};
      if (irqs_due.empty() || irqs_due.front() != got) throw Failure("interrupt too early");
      irqs_due.pop_front();
      ++irqs;
    });
    token.on_transfer([this](const pkg::token_t& t) {
      const auto tag = tag_of(t);
      if (tag.is_completion && tag.raise) irqs_due.push_back({tag.fn, tag.irq_vector});
    });
  }

  static cpu::write_tag_t tag_of(const pkg::token_t& item) {
    roci::sv::Words<pkg::token_t::width_bits> bits{};
    item.to_bits(bits.data(), 0);
    return cpu::write_tag_t::from_bits(bits.data(), 0);
  }

  void load(const std::vector<rv32::Word>& code) {
    for (std::size_t n = 0; n < code.size(); n += 2) {
      const std::uint64_t high = n + 1 < code.size() ? code[n + 1] : 0;
      dut->load_addr_i = static_cast<decltype(+dut->load_addr_i)>(n / 2);
      dut->load_data_i = code[n] | high << 32;
      dut->load_valid_i = 1;
      dut.tick();
    }
    dut->load_valid_i = 0;
  }

  /// Whether the next command of a function may come.
  bool released(unsigned fn) { return offered[fn] == releases[fn]; }

  /// The rings of a function offer its next command.
  void offer(unsigned fn) {
    Command c;
    c.number = commands++;
    for (auto& word : c.words) word = static_cast<std::uint32_t>(random());
    c.words[1] = static_cast<std::uint32_t>(random.bits(16) << 16 | random.below(64) << 10 |
                                            random.below(16));
    const std::uint64_t own = std::uint64_t{fn} << 40 | c.number << 16;
    const std::uint64_t input = own + 0x1000 + 8 * random.below(100);
    c.has_input = random.chance(0.7);
    c.words[2] = static_cast<std::uint32_t>(input);
    c.words[3] = static_cast<std::uint32_t>(input >> 32);
    c.words[6] = c.has_input ? cpu::SLOT_INPUT_BYTES : 0;
    const std::uint64_t source = own + 0x2000 + 8 * random.below(400);
    const std::uint64_t destination = own + 0x4000 + 8 * random.below(400);
    const unsigned bytes = 8 * static_cast<unsigned>(random.between(1, 40));
    c.words[8] = static_cast<std::uint32_t>(source);
    c.words[9] = static_cast<std::uint32_t>(source >> 32);
    c.words[10] = (0x3000u / 8 + 64 * fn) | bytes << 16;
    c.words[11] = (c.words[11] & 0xff00) | fn;
    c.words[12] = static_cast<std::uint32_t>(destination);
    c.words[13] = static_cast<std::uint32_t>(destination >> 32);
    for (unsigned n = 0; n < bytes; ++n) {
      c.copied.push_back(static_cast<std::uint8_t>(random()));
      memory.at(fn, source + n) = c.copied.back();
      memory.at(fn, destination + n) = 0;
    }
    for (unsigned n = 0; n < cpu::SLOT_INPUT_BYTES; ++n) {
      memory.at(fn, input + n) = static_cast<std::uint8_t>(random());
    }
    c.input = memory.read(fn, input, 4) |
              memory.read(fn, input + cpu::SLOT_INPUT_BYTES - 4, 4) << 32;
    const std::uint64_t address = own;
    for (unsigned n = 0; n < 16; ++n) memory.write(fn, address + 4 * n, c.words[n], 4);
    live[fn] = c;
    ++offered[fn];
    events_due[fn].push_back(c);
    fetch.push({static_cast<decltype(cpu::admin_fetch_t::fn)>(fn), address});
  }

  // --------------------------------------------------------------------------------- host memory
  void give(const pkg::dma_read_req_t& r) {
    const std::uint64_t end = r.addr + r.length;
    for (std::uint64_t at = r.addr / lanes * lanes; at < end; at += lanes) {
      pkg::read_beat_t item = random_payload<pkg::read_beat_t>(random);
      item.err = false;
      item.last = at + lanes >= end;
      std::array<roci::sv::Word, (lanes + 3) / 4> words{};
      for (unsigned b = 0; b < lanes; ++b) {
        words[b / 4] |= roci::sv::Word{memory.at(r.fn, at + b)} << (8 * (b % 4));
      }
      assign(item.data, words);
      beat.push(item);
    }
  }
  template <class Data, std::size_t N>
  static void assign(Data& to, const std::array<roci::sv::Word, N>& words) {
    if constexpr (std::is_integral_v<Data>) to = words[0] | std::uint64_t{words[1]} << 32;
    else to = words;
  }
  template <class Data>
  static std::uint8_t byte_of(const Data& from, unsigned n) {
    if constexpr (std::is_integral_v<Data>) return static_cast<std::uint8_t>(from >> (8 * n));
    else return static_cast<std::uint8_t>(from[n / 4] >> (8 * (n % 4)));
  }
  std::deque<std::vector<pkg::write_beat_t>> beats{{}};

  void store(const pkg::write_beat_t& b) {
    beats.back().push_back(b);
    if (b.last) beats.emplace_back();
  }
  /// A write whose request and data are both here becomes visible, then its token goes back.
  void carry_out() {
    if (writes.empty() || beats.size() < 2) return;
    const pkg::dma_write_req_t r = writes.front();
    std::uint64_t at = r.addr / lanes * lanes;
    for (const auto& b : beats.front()) {
      for (unsigned n = 0; n < lanes; ++n) {
        const bool inside = at + n >= r.addr && at + n < r.addr + r.length;
        if (((b.strobe >> n) & 1) != inside) throw Failure("strobe does not follow the length");
        if (inside) memory.at(r.fn, at + n) = byte_of(b.data, n);
      }
      at += lanes;
    }
    if (at < r.addr + r.length) throw Failure("data of a write is too short");
    if (r.has_token) {
      const auto tag = tag_of(r.token);
      if (tag.is_completion) check_completion(r);
      token.push(r.token);
    }
    writes.pop_front();
    beats.pop_front();
  }

  void check_completion(const pkg::dma_write_req_t& r) {
    const auto tag = tag_of(r.token);
    if (live.count(tag.fn) == 0 || placed.count(tag.fn) == 0) {
      throw Failure("completion of nothing");
    }
    const Command c = live.at(tag.fn);
    const auto place = placed.at(tag.fn);
    const std::uint32_t next = 0x80000000u | unsigned{c.has_input} << 8 | tag.fn;
    const auto word = [&](unsigned n) { return memory.read(r.fn, r.addr + 4 * n, 4); };
    INFO("function " << unsigned(tag.fn) << ", command " << c.number);
    CHECK((r.fn == tag.fn && r.addr == place.addr && r.length == 32));
    CHECK((tag.raise == place.raise && (!tag.raise || tag.irq_vector == place.irq_vector)));
    CHECK(word(0) == c.words[0]);
    CHECK(word(1) == c.words[4]);
    CHECK(word(2) == c.words[5]);
    CHECK(word(3) == next);
    if (c.has_input) CHECK((word(4) | word(5) << 32) == c.input);
    CHECK(word(6) == tag.fn);
    CHECK(word(7) == std::uint32_t{place.phase} << 31);
    const std::uint64_t to = c.words[12] | std::uint64_t{c.words[13]} << 32;
    for (std::size_t n = 0; n < c.copied.size(); ++n) {
      if (memory.at(r.fn, to + n) != c.copied[n]) throw Failure("copy is not in memory");
    }
    ++completions[tag.fn];
    live.erase(tag.fn);
    placed.erase(tag.fn);
  }

  void check_event(const pkg::event_t& e) {
    if (events_due[e.fn].empty()) throw Failure("event of nothing");
    const Command c = events_due[e.fn].front();
    events_due[e.fn].pop_front();
    INFO("function " << unsigned(e.fn));
    CHECK(e.data == c.words[4]);
    CHECK((e.object | unsigned{e.event_type} << 24) == c.words[7]);
    CHECK(e.cause == (c.words[11] >> 8 & 0xff));
    CHECK_FALSE(e.eq_valid);
    ++events;
  }

  // -------------------------------------------------------------------------------- every cycle
  void sample() override {
    counted += cpu::cpu_counters_t::unpack(dut->count_o).admin_commands;
    const auto request = pkg::ctx_req_t::unpack(dut->ctx_o);
    answer = {};
    if (request.valid && !answered) {
      if (!ctx_active) {
        ctx_active = true;
        ctx_wait = static_cast<unsigned>(random.below(20));
      } else if (ctx_wait-- == 0) {
        const std::uint32_t key = std::uint32_t{request.index} << 16 |
                                  std::uint32_t{request.column} << 10 | request.word;
        if (request.write) {
          contexts[key] = request.wdata;
          ++context_writes;
        }
        answer.done = true;
        answer.rdata = contexts[key];
        ctx_active = false;
      }
    }
    answered = answer.done;
    place_done = false;
    if (placing && place_wait-- == 0) {
      placing = false;
      place_done = true;
      place = {};
      place.phase = random.chance(0.5);
      place.raise = random.chance(0.5);
      place.irq_vector = static_cast<decltype(place.irq_vector)>(random.below(8));
      place.addr = std::uint64_t{place_fn} << 40 | std::uint64_t{1} << 39 |
                   completions[place_fn] * 32;
      placed[place_fn] = place;
    } else if (!placing && dut->place_valid_o && dut->place_ready_i) {
      placing = true;
      place_fn = dut->place_fn_o;
      place_wait = static_cast<unsigned>(random.below(6));
    }
    carry_out();
  }
  void drive() override {
    answer.pack(dut->ctx_i);
    dut->place_done_i = place_done;
    place.pack(dut->place_i);
    dut->clock_i = dut.cycle();
  }

  pkg::ctx_rsp_t answer{};
  cpu::admin_place_t place{};
  bool answered = false, place_done = false;
};
}  // namespace

TEST_CASE("a firmware serves the commands of all functions") {
  Random random;
  for (int run = 0; run < 3; ++run) {
    Bench b(random());
    b.read.stall(Stall::any(random));
    b.beat.stall(Stall::any(random));
    b.write.stall(Stall::any(random));
    b.data.stall(Stall::any(random));
    b.token.stall(Stall::any(random));
    b.irq.stall(Stall::any(random));
    b.event.stall(Stall::any(random));
    b.order.stall(Stall::any(random));
    b.load(firmware());
    b.dut->hold_i = 0;
    const std::uint64_t total = scaled(60);
    while (b.commands < total || !b.live.empty()) {
      const unsigned fn = static_cast<unsigned>(random.below(num_fns));
      const bool free = b.live.count(fn) == 0 && b.released(fn);
      if (b.commands < total && free && random.chance(0.3)) b.offer(fn);
      b.dut.tick(random.between(1, 60));
      if (b.dut.cycle() > 1000 + 6000 * total) FAIL("commands are not served");
    }
    b.dut.tick(500);
    CHECK(b.irqs_due.empty());
    CHECK(b.irqs > 0);
    CHECK(b.events == total);
    CHECK(b.counted == total);
    CHECK(b.offered == b.releases);
    CHECK(b.context_writes == total);
    CHECK(b.dut->trap_o == 0);
  }
}

TEST_CASE("a trap is told and ends with a hold") {
  Random random;
  Bench b(random());
  b.load({rv32::illegal()});
  b.dut->hold_i = 0;
  b.dut.run_until([&] { return b.dut->trap_o != 0; }, "trap");
  b.dut->hold_i = 1;
  b.dut.tick(20);
  CHECK(b.dut->trap_o == 0);
  b.load(firmware());
  b.dut->hold_i = 0;
  b.offer(1);
  b.dut.run_until([&] { return b.live.empty(); }, "command served after the trap");
}
