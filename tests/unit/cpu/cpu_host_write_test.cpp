// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_host_write: copies of both users, of any length and place, against a byte array of host memory:
// each byte is written once, nothing else is; each write stays in a 64-byte line, its data follows
// at once; the last one of a copy has the token; completions have their phase bit and are one write.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <vector>

#include "harness/harness.hpp"
#include "harness/lanes.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace cpu = roci::sv::cpu_pkg;

namespace {

constexpr unsigned kBytes = ROCI_CONFIG_WIDE ? 64 : 8;

struct Bench {
  Dut<DUT_CLASS> dut;
  Random random;
  std::vector<std::uint64_t> ram;
  double ram_stall = 0.0, grant_stall = 0.0;
  std::map<std::uint64_t, std::uint8_t> memory;   // bytes written by this copy
  std::vector<pkg::token_t> tokens;
  unsigned requests = 0;
  unsigned fn = 0;
  Monitor<pkg::dma_write_req_t> request;
  Monitor<pkg::write_beat_t> data;

  // Stands for host_dma_write: grants a request only when its first data is there; the rest has to
  // follow whenever it is ready for it.
  struct Writer : Agent {
    Bench& b;
    std::uint64_t read = 0;
    bool granted = false, mid = false;
    pkg::dma_write_req_t req{};
    std::uint64_t word = 0, beats = 0, done_beats = 0;
    explicit Writer(Bench& bench) : b(bench) {}
    void sample() override {
      read = b.random();
      if (b.dut->read_valid_o && b.dut->read_ready_i) read = b.ram.at(b.dut->read_addr_o);
      if (b.dut->req_valid_o && b.dut->req_ready_i) {
        REQUIRE(b.dut->data_valid_o);
        req = pkg::dma_write_req_t::unpack(b.dut->req_o);
        REQUIRE_FALSE(req.is_token);
        REQUIRE(req.fn == b.fn);
        REQUIRE(req.qp == 0);
        REQUIRE(req.addr / 64 == (req.addr + req.length - 1) / 64);
        ++b.requests;
        word = req.addr / kBytes;
        beats = (req.addr + req.length - 1) / kBytes - word + 1;
        done_beats = 0;
        mid = true;
        if (req.has_token) b.tokens.push_back(req.token);
      }
      if (mid) REQUIRE(b.dut->data_valid_o);      // collected before
      if (b.dut->data_valid_o && b.dut->data_ready_i) {
        REQUIRE(mid);
        const auto beat = pkg::write_beat_t::unpack(b.dut->data_o);
        for (unsigned l = 0; l < kBytes; ++l) {
          const std::uint64_t at = (word + done_beats) * kBytes + l;
          const bool inside = at >= req.addr && at < req.addr + req.length;
          REQUIRE(((beat.strobe >> l) & 1u) == inside);
          if (!inside) continue;
          REQUIRE(b.memory.count(at) == 0);
          b.memory[at] = get_byte(beat.data, l);
        }
        ++done_beats;
        REQUIRE(beat.last == (done_beats == beats));
        if (done_beats == beats) mid = false;
      }
      granted = !mid && b.dut->req_valid_o;
    }
    void drive() override {
      b.dut->read_ready_i = !b.random.chance(b.ram_stall);
      b.dut->rdata_i = read;
      // grant and first data together, as in host_dma_write
      b.dut.eval();
      const bool grant = !mid && b.dut->req_valid_o && b.dut->data_valid_o &&
                         !b.random.chance(b.grant_stall);
      b.dut->req_ready_i = grant;
      b.dut->data_ready_i = grant || (mid && !b.random.chance(b.grant_stall));
    }
  } writer;

  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt), ram(8192),
        request("request", dut->req_valid_o, dut->req_ready_i, dut->req_o),
        data("data", dut->data_valid_o, dut->data_ready_i, dut->data_o), writer(*this) {
    for (auto& word : ram) word = random();
    dut->copy_valid_i = 0;
    dut.reset();
    dut.attach(request);
    dut.attach(data);
    dut.attach(writer);
  }

  void copy(unsigned user, std::uint64_t address, unsigned at, unsigned bytes, bool phase) {
    cpu::copy_t item{};
    item.fn = static_cast<decltype(item.fn)>(fn);
    item.addr = address;
    item.ram = static_cast<decltype(item.ram)>(at);
    item.bytes = static_cast<decltype(item.bytes)>(bytes);
    cpu::write_tag_t tag{};
    tag.is_completion = user == 0;
    tag.raise = random.chance(0.5);
    tag.irq_vector = static_cast<decltype(tag.irq_vector)>(random.below(8));
    tag.fn = item.fn;
    roci::sv::Words<2 * cpu::copy_t::width_bits> both{};
    item.to_bits(both.data(), user * cpu::copy_t::width_bits);
    for (unsigned n = 0; n < both.size(); ++n) dut->copy_i[n] = both[n];
    Bits<2 * cpu::write_tag_t::width_bits> tags;
    tag.to_bits(tags.words.data(), user * cpu::write_tag_t::width_bits);
    tags.pack(dut->tag_i);
    dut->phase_i = phase;
    dut->copy_valid_i = static_cast<CData>(1u << user);
    memory.clear();
    tokens.clear();
    requests = 0;
    dut.eval();
    dut.run_until([&] { return ((dut->copy_ready_o >> user) & 1u) != 0; }, "copy taken");
    dut.tick();
    dut->copy_valid_i = 0;
    REQUIRE(dut->busy_o == 1);
    dut.run_until([&] { return dut->busy_o == 0; }, "copy done", 20000);
    REQUIRE(memory.size() == bytes);
    for (unsigned n = 0; n < bytes; ++n) {
      auto want = static_cast<std::uint8_t>(ram[at + n / 8] >> (8 * (n % 8)));
      if (user == 0 && n == bytes - 1) {
        want = static_cast<std::uint8_t>((want & 0x7f) | (phase ? 0x80 : 0));
      }
      INFO("byte " << n << " of " << bytes);
      REQUIRE(memory.at(address + n) == want);
    }
    REQUIRE(tokens.size() == 1);
    REQUIRE(static_cast<unsigned>(tokens[0].kind) == 6);
    REQUIRE_FALSE(tokens[0].packet_end);
    roci::sv::Words<pkg::token_t::width_bits> token{};
    tokens[0].to_bits(token.data(), 0);
    REQUIRE(cpu::write_tag_t::from_bits(token.data(), 0) == tag);
  }
};

}  // namespace

TEST_CASE("copies come whole into host memory") {
  Random random;
  for (int round = 0; round < 8; ++round) {
    Bench bench(random());
    bench.ram_stall = random.chance(0.5) ? 0.5 : 0.0;
    bench.grant_stall = random.chance(0.5) ? 0.6 : 0.0;
    for (std::size_t n = 0; n < scaled(60); ++n) {
      bench.fn = static_cast<unsigned>(random.below(8));
      const std::uint64_t address = random.bits(40) << 12 | 8 * random.below(512);
      const auto at = static_cast<unsigned>(random.below(3000));
      if (random.chance(0.5)) {
        bench.copy(0, address & ~std::uint64_t{31}, at, 32, random.chance(0.5));
        REQUIRE(bench.requests == 1);                    // one bus write
      } else {
        const auto bytes =
            static_cast<unsigned>(random.between(1, random.chance(0.1) ? 2047 : 200));
        bench.copy(1, address, at, bytes, random.chance(0.5));
      }
    }
  }
}
