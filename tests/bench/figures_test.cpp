// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What a run of the benchmark makes of its numbers: targets, and the file that keeps them.
#include "figures.hpp"

#include <catch2/catch.hpp>

#include <sstream>

using namespace roci::bench;

namespace {

std::string json(const Results& results) {
  std::stringstream out;
  write_json(out, results);
  return out.str();
}

}  // namespace

TEST_CASE("figures behind a target are named, wall time and missing ones are not") {
  Results results;
  CHECK(behind(results, &Figure::first_slice).empty());
  results.set("write64_one_qp_cycles", 8.0);
  results.set("write_bytes_per_cycle", 46.46);
  results.set("narrow_write_bytes_per_cycle", 0.1);  // none in the first slice
  results.set("sim_khz_one_wide_nic", 1);
  CHECK(behind(results, &Figure::first_slice).empty());
  CHECK(behind(results, &Figure::held).size() == 3);
  results.set("write64_one_qp_cycles", 8.01);
  results.set("write_bytes_per_cycle", 46.44);
  CHECK(behind(results, &Figure::first_slice) ==
        std::vector<std::string>{"write_bytes_per_cycle is 46.44, not ≥ 46.45",
                                 "write64_one_qp_cycles is 8.010, not ≤ 8.000"});
}

TEST_CASE("every figure but wall time has a value to hold") {
  for (const Figure& figure : figures()) {
    INFO(figure.key);
    CHECK(figure.held.has_value() == !figure.wall_time);
    if (figure.first_slice && figure.held) CHECK(reaches(figure, *figure.held, figure.first_slice));
  }
}

TEST_CASE("a run of some figures keeps the others of the file") {
  Results full;
  full.set("write_bytes_per_cycle", 48.86);
  full.set("write64_one_qp_cycles", 3.48);
  full.set("write64_1qp_per_1024qp_ratio", 0.999);
  full.set("sim_khz_one_wide_nic", 107);
  Results some;
  some.set("write64_one_qp_cycles", 3.5);
  some.set("modify_qp_cycles", 4572);
  merge_json(json(full), some);
  CHECK(some.values == std::map<std::string, double>{{"write_bytes_per_cycle", 48.86},
                                                     {"write64_one_qp_cycles", 3.5},
                                                     {"write64_1qp_per_1024qp_ratio", 0.999},
                                                     {"modify_qp_cycles", 4572},
                                                     {"sim_khz_one_wide_nic", 107}});
  // and what is written is whole again
  Results again;
  merge_json(json(some), again);
  CHECK(again.values == some.values);
  CHECK_THROWS_AS(merge_json("", again), std::runtime_error);
}
