// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// make bench: the figures of merit in simulated cycles, on the real host core and the RTL of both
// NICs. How each is measured: docs/performance.md.
#include "figures.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>

namespace {

using namespace roci::bench;

constexpr const char* kHelp = R"(usage: roci_bench [--only KEY...] [--quick] [--check] [--verbose]
                  [--json FILE]
       roci_bench --list

Measures the figures of merit in simulated cycles and prints their table.
  --only KEY...  these figures alone (several keys, or the option several times)
  --quick        shorter runs, 8 instead of 64 queue pairs, none of the figures with 1024
  --check        exit status 1 if a figure falls behind what it has reached before
  --verbose      counters of the NICs after every load, on stderr
  --json FILE    writes the numbers, limits and ratios there
  --list         prints the keys
Progress goes to stderr.
)";

bool known(const std::string& key) {
  const auto all = figures();
  return std::any_of(all.begin(), all.end(), [&](const Figure& f) { return key == f.key; });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  bool check = false;
  std::string json;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--help" || arg == "-h") {
      std::cout << kHelp;
      return 0;
    } else if (arg == "--list") {
      for (const Figure& figure : figures()) std::cout << figure.key << "\n";
      return 0;
    } else if (arg == "--quick") {
      options.quick = true;
    } else if (arg == "--check") {
      check = true;
    } else if (arg == "--verbose") {
      options.verbose = true;
    } else if (arg == "--json" && i + 1 < argc) {
      json = argv[++i];
    } else if (arg == "--only" && i + 1 < argc && std::strncmp(argv[i + 1], "--", 2) != 0) {
      while (i + 1 < argc && std::strncmp(argv[i + 1], "--", 2) != 0) {
        const std::string key = argv[++i];
        if (!known(key)) {
          std::cerr << "bench: no figure is called " << key << " (--list shows them)\n";
          return 2;
        }
        options.only.insert(key);
      }
    } else {
      std::cerr << "bench: " << arg << "?\n" << kHelp;
      return 2;
    }
  }
  try {
    Results results;
    measure_wide(options, results);
    measure_narrow(options, results);
    print_table(std::cout, results);
    if (!json.empty()) {
      std::ofstream out(json);
      write_json(out, results);
      out.close();
      if (!out) throw std::runtime_error("cannot write " + json);
    }
    if (!check) return 0;
    bool good = true;
    for (const Figure& figure : figures()) {
      const auto found = results.values.find(figure.key);
      if (found == results.values.end() || reaches(figure, found->second, figure.held)) continue;
      std::cerr << "bench: " << figure.key << " is " << found->second << ", behind "
                << *figure.held << "\n";
      good = false;
    }
    return good ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "bench: " << error.what() << "\n";
    return 1;
  }
}
