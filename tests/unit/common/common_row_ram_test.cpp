// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_row_ram: rows and words as written, whole rows after one cycle or WORDS cycles, kept until the
// next read while other rows are written; zero after reset if cleared; two reads at once are an error.
// model: configs=any args=-GWORDS=4 args=-GDEPTH=16 args=-GSERIAL=0 args=-GCLEARED=1 name=w4
// model: configs=any args=-GWORDS=5 args=-GDEPTH=16 args=-GSERIAL=1 args=-GCLEARED=0 name=w5s
// model: configs=any args=-GWORDS=4 args=-GDEPTH=16 args=-GSERIAL=1 args=-GCLEARED=1 name=w4s
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <array>

#include "harness/harness.hpp"

namespace {
using namespace roci::test;
using Row = std::array<std::uint64_t, DUT_WORDS>;
constexpr unsigned kLatency = DUT_SERIAL ? DUT_WORDS : 1;

struct Bench {
  Dut<DUT_CLASS> dut;
  std::vector<Row> rows = std::vector<Row>(DUT_DEPTH);

  explicit Bench(Random& random) : dut(random()) {
    dut->write_i = dut->word_read_i = dut->row_read_i = 0;
    dut.reset();
    if (DUT_CLEARED) {
      unsigned cycles = 0;
      while (!dut->ready_o) {
        REQUIRE(++cycles <= DUT_DEPTH * 8);
        dut.tick();
      }
    } else {
      REQUIRE(dut->ready_o);
    }
  }
  void write(unsigned row, unsigned word, std::uint64_t data) {
    dut->write_i = 1;
    dut->index_i = static_cast<CData>(row);
    dut->word_i = static_cast<CData>(word);
    dut->wdata_i = data;
    dut.tick();
    dut->write_i = 0;
    rows[row][word] = data;
  }
  Row row() {
    const auto bits = Bits<DUT_WORDS * 64>::unpack(dut->row_o);
    Row out;
    for (unsigned w = 0; w < DUT_WORDS; ++w) out[w] = bits.get(64 * w, 64);
    return out;
  }
};
}  // namespace

TEST_CASE("rows and words come back as written") {
  Random random;
  Bench bench(random);
  auto& dut = bench.dut;
  if (DUT_CLEARED) {
    for (unsigned r = 0; r < DUT_DEPTH; ++r) bench.rows[r] = {};
  } else {
    for (unsigned r = 0; r < DUT_DEPTH; ++r) {
      for (unsigned w = 0; w < DUT_WORDS; ++w) bench.write(r, w, random());
    }
  }
  for (std::size_t n = 0; n < scaled(20000); ++n) {
    const auto index = static_cast<unsigned>(random.below(DUT_DEPTH));
    if (random.chance(0.4)) {
      bench.write(index, static_cast<unsigned>(random.below(DUT_WORDS)), random());
    } else if (random.chance(0.3)) {
      const auto word = static_cast<unsigned>(random.below(DUT_WORDS));
      dut->word_read_i = 1;
      dut->index_i = static_cast<CData>(index);
      dut->word_i = static_cast<CData>(word);
      dut.tick();
      dut->word_read_i = 0;
      dut->word_i = static_cast<CData>(word);
      dut.eval();
      REQUIRE(dut->word_o == bench.rows[index][word]);
      REQUIRE_FALSE(dut->row_valid_o);
    } else {
      dut->row_read_i = 1;
      dut->row_index_i = static_cast<CData>(index);
      // other rows are written meanwhile
      const auto meanwhile = [&] {
        const auto other = static_cast<unsigned>((index + 1 + random.below(DUT_DEPTH - 1)) % DUT_DEPTH);
        if (random.chance(0.5)) {
          bench.write(other, static_cast<unsigned>(random.below(DUT_WORDS)), random());
        } else {
          dut.tick();
        }
      };
      meanwhile();
      dut->row_read_i = 0;
      for (unsigned cycle = 1; cycle < kLatency; ++cycle) {
        REQUIRE_FALSE(dut->row_valid_o);
        meanwhile();
      }
      for (auto stay = random.below(4); stay != 0; --stay) {
        REQUIRE(dut->row_valid_o);
        REQUIRE(bench.row() == bench.rows[index]);
        meanwhile();
      }
      REQUIRE(dut->row_valid_o);
      REQUIRE(bench.row() == bench.rows[index]);
    }
  }
}

TEST_CASE("two reads at once are found") {
  Random random;
  Bench bench(random);
  bench.dut->row_read_i = 1;
  bench.dut->row_index_i = 0;
  bench.dut->word_read_i = 1;
  bench.dut->index_i = 0;
  bench.dut->word_i = 0;
  CHECK_THROWS(bench.dut.tick(2));
}
