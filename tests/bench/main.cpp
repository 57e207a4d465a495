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
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

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
  --json FILE    writes the numbers, limits and ratios there; with --only it keeps the others of
                 the file
  --list         prints the keys
Progress goes to stderr. Exit status 1 also if a figure is below its first-slice target (not with
--quick: that has fewer queue pairs).
)";

bool known(const std::string& key) {
  const auto all = figures();
  return std::any_of(all.begin(), all.end(), [&](const Figure& f) { return key == f.key; });
}

// Writes the figures; `merge`: the file keeps those that were not measured now.
void save(const std::string& path, bool merge, const Results& results) {
  Results all = results;
  if (std::ifstream old(path); merge && old) {
    std::stringstream text;
    text << old.rdbuf();
    try {
      merge_json(text.str(), all);
    } catch (const std::exception& error) {
      progress(path + " is replaced: " + error.what());
    }
  }
  std::ofstream out(path);
  write_json(out, all);
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
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
    if (!json.empty()) save(json, !options.only.empty(), results);
    std::vector<std::string> faults;
    if (!options.quick) faults = behind(results, &Figure::first_slice);
    if (check) {
      const auto more = behind(results, &Figure::held);
      faults.insert(faults.end(), more.begin(), more.end());
    }
    for (const std::string& fault : faults) std::cerr << "bench: " << fault << "\n";
    return faults.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "bench: " << error.what() << "\n";
    return 1;
  }
}
