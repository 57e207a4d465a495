// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_context: single accesses and lists of random groups, reads and writes, by word and by row, against
// a map of the columns; owners answer after random delays, the RAM is granted at random; an access that
// nobody answers is given up and remembered.
// model: configs=any args=-GTIMEOUT_LOG2=13
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <map>
#include <tuple>
#include <vector>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

namespace {

using Key = std::tuple<unsigned, unsigned, unsigned>;   // column, index, word

/// All owners: answers a request once, after a random time, and wants it gone then.
struct Owners : Agent {
  Dut<DUT_CLASS>& dut;
  Random random;
  std::map<Key, std::uint64_t> rows;
  std::vector<std::pair<Key, std::uint64_t>> writes;
  unsigned deaf = 64;                       // this column never answers
  unsigned max_delay = 0;
  bool active = false, answered = false;
  unsigned left = 0;
  pkg::ctx_req_t seen{};
  pkg::ctx_rsp_t answer{};
  explicit Owners(Dut<DUT_CLASS>& d, std::uint64_t salt) : dut(d), random(salt) {}
  void sample() override {
    const auto request = pkg::ctx_req_t::unpack(dut->ctx_o);
    answer = {};
    if (answered) {
      answered = false;
      active = false;
      return;                               // the cycle in which `done` was seen
    }
    if (!request.valid) {
      REQUIRE((!active || seen.column == deaf));   // held until done
      active = false;
      return;
    }
    if (!active) {
      active = true;
      seen = request;
      left = static_cast<unsigned>(random.below(max_delay + 1));
    }
    REQUIRE(request == seen);
    if (request.column == deaf) return;
    if (left-- != 0) return;
    const Key key{request.column, request.index, request.word};
    answer.done = true;
    answer.rdata = rows[key];
    if (request.write) {
      rows[key] = request.wdata;
      writes.push_back({key, request.wdata});
    }
    answered = true;
  }
  void drive() override { answer.pack(dut->ctx_i); }
};

struct Ram : Agent {
  Dut<DUT_CLASS>& dut;
  Random random;
  std::vector<std::uint64_t> words;
  double stall = 0.0;
  std::uint64_t data = 0;
  unsigned stored = 0;                      // words that the engine wrote
  explicit Ram(Dut<DUT_CLASS>& d, std::uint64_t salt) : dut(d), random(salt), words(8192) {}
  void sample() override {
    data = random();
    if (dut->read_valid_o && dut->read_ready_i) data = words.at(dut->read_addr_o);
    if (dut->write_valid_o && dut->write_ready_i) {
      words.at(dut->write_addr_o) = dut->write_data_o;
      ++stored;
    }
  }
  void drive() override {
    dut->read_ready_i = !random.chance(stall);
    dut->write_ready_i = !random.chance(stall);
    dut->rdata_i = data;
  }
};

struct Bench {
  Dut<DUT_CLASS> dut;
  Owners owners;
  Ram ram;
  explicit Bench(std::uint64_t salt) : dut(salt), owners(dut, salt + 1), ram(dut, salt + 2) {
    dut->start_access_i = dut->start_list_i = 0;
    pkg::ctx_rsp_t{}.pack(dut->ctx_i);
    dut.reset();
    dut.attach(owners);
    dut.attach(ram);
  }
  std::uint64_t access(bool write, unsigned column, unsigned index, unsigned word,
                       std::uint64_t data = 0) {
    dut->start_access_i = 1;
    dut->start_write_i = write;
    dut->address_i = index << 16 | column << 10 | word;
    dut->wdata_i = data;
    dut.tick();
    dut->start_access_i = 0;
    dut.eval();
    dut.run_until([&] { return dut->busy_o == 0; }, "access", 10'000);
    return dut->rdata_o;
  }
};

}  // namespace

TEST_CASE("accesses and lists reach the columns in order") {
  Random random;
  for (int round = 0; round < 4; ++round) {
    Bench bench(random());
    bench.owners.max_delay = static_cast<unsigned>(random.below(8));
    bench.ram.stall = random.chance(0.5) ? 0.5 : 0.0;
    std::map<Key, std::uint64_t> model;
    for (std::size_t step = 0; step < scaled(200); ++step) {
      if (random.chance(0.5)) {
        const bool write = random.chance(0.5);
        const auto column = static_cast<unsigned>(random.below(4));
        const auto index = static_cast<unsigned>(random.below(4) * 1000);
        const auto word = static_cast<unsigned>(random.below(8));
        const std::uint64_t data = random();
        const std::uint64_t before = model[{column, index, word}];
        REQUIRE(bench.access(write, column, index, word, data) == before);
        if (write) model[{column, index, word}] = data;
        continue;
      }
      auto at = static_cast<unsigned>(random.below(4000));
      const unsigned start = at;
      bench.owners.writes.clear();
      std::vector<std::pair<Key, std::uint64_t>> expected;
      std::map<unsigned, std::uint64_t> reads;      // RAM word → what must be there
      bench.ram.stored = 0;
      const auto groups = static_cast<unsigned>(random.between(1, 6));
      const auto base = static_cast<unsigned>(random.chance(0.5) ? 0 : random.bits(16));
      for (unsigned g = 0; g < groups; ++g) {
        const bool read = random.chance(0.5);
        const auto column = static_cast<unsigned>(random.below(read ? 4 : 64));
        const auto header_index =
            static_cast<unsigned>(read ? random.below(4) * 1000 : random.bits(16));
        const unsigned index = header_index | base;
        const bool rows = random.chance(0.3);      // one word of each row
        const auto count = static_cast<unsigned>(random.between(1, rows ? 63 : 8));
        const auto first = static_cast<unsigned>(random.below(9));
        bench.ram.words[at++] = std::uint64_t{g + 1 == groups} << 63 |
                                std::uint64_t{read} << 62 | std::uint64_t{rows} << 61 |
                                std::uint64_t{count} << 32 | std::uint64_t{header_index} << 16 |
                                column << 10 | first;
        for (unsigned w = 0; w < count; ++w) {
          const std::uint64_t data = random();
          bench.ram.words[at++] = data;
          const Key key = rows ? Key{column, (index + w) & 0xffff, first}
                               : Key{column, index, first + w};
          if (read) {                               // as it is after the groups before
            reads[at - 1] = model[key];
            continue;
          }
          expected.push_back({key, data});
          model[key] = data;
        }
      }
      bench.dut->start_list_i = 1;
      bench.dut->list_i = static_cast<SData>(start);
      bench.dut->list_index_i = static_cast<SData>(base);
      bench.dut.tick();
      bench.dut->start_list_i = 0;
      bench.dut.eval();
      bench.dut.run_until([&] { return bench.dut->busy_o == 0; }, "list", 5000);
      REQUIRE(bench.owners.writes == expected);
      REQUIRE(bench.ram.stored == reads.size());
      for (const auto& [word, value] : reads) REQUIRE(bench.ram.words[word] == value);
    }
    REQUIRE(bench.dut->error_o == 0);
  }
}

TEST_CASE("a list of 30 words takes few cycles") {
  Bench bench(1);
  bench.ram.words[0] = std::uint64_t{15} << 32 | 1 << 10;
  bench.ram.words[16] = std::uint64_t{1} << 63 | std::uint64_t{15} << 32 | 2 << 10;
  bench.dut->start_list_i = 1;
  bench.dut->list_i = 0;
  bench.dut->list_index_i = 0;
  const std::uint64_t start = bench.dut.cycle();
  bench.dut.tick();
  bench.dut->start_list_i = 0;
  bench.dut.run_until([&] { return bench.dut->busy_o == 0; }, "list");
  REQUIRE(bench.owners.writes.size() == 30);
  REQUIRE(bench.dut.cycle() - start <= 30 * 5 + 10);
}

TEST_CASE("a list that reads 30 words takes few cycles") {
  Bench bench(3);
  const std::uint64_t read = std::uint64_t{1} << 62;
  bench.ram.words[0] = read | std::uint64_t{15} << 32 | 1 << 10;
  bench.ram.words[16] = read | std::uint64_t{1} << 63 | std::uint64_t{15} << 32 | 2 << 10;
  for (unsigned w = 0; w < 15; ++w) {
    bench.owners.rows[{1, 0, w}] = 100 + w;
    bench.owners.rows[{2, 0, w}] = 200 + w;
  }
  bench.dut->start_list_i = 1;
  bench.dut->list_i = 0;
  bench.dut->list_index_i = 0;
  const std::uint64_t start = bench.dut.cycle();
  bench.dut.tick();
  bench.dut->start_list_i = 0;
  bench.dut.run_until([&] { return bench.dut->busy_o == 0; }, "list");
  for (unsigned w = 0; w < 15; ++w) {
    REQUIRE(bench.ram.words[1 + w] == 100 + w);
    REQUIRE(bench.ram.words[17 + w] == 200 + w);
  }
  REQUIRE(bench.dut.cycle() - start <= 30 * 4 + 10);
}

TEST_CASE("an access that nobody answers ends and is remembered") {
  Bench bench(2);
  bench.owners.deaf = 9;
  const auto start = bench.dut.cycle();
  bench.access(false, 9, 0, 0);
  REQUIRE(bench.dut->error_o == 1);
  REQUIRE(bench.dut.cycle() - start >= 1u << 13);
  REQUIRE(bench.access(true, 3, 5, 1, 77) == 0);
  REQUIRE(bench.access(false, 3, 5, 1) == 77);
  REQUIRE(bench.dut->error_o == 1);
}
