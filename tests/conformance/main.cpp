// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The conformance suite as a program: plays scenarios against the RTL NIC and tells what came of
// them. `make conformance` runs all.
#include "conformance/bench.hpp"
#include "conformance/fault_port.hpp"
#include "conformance/recorder.hpp"
#include "conformance/report.hpp"
#include "conformance/rtl_device.hpp"
#include "conformance/scenario.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

using namespace roci;
using namespace roci::conformance;

namespace {

constexpr const char* kUsage =
    "usage: roci-conformance [SCENARIO…] [--config wide|narrow] [--seed S] [--pcap FILE]\n"
    "                        [--captures DIR] [--json FILE] [--fault NAME] [--list] [--quiet]\n";

constexpr const char* kHelp =
    "\n"
    "Plays the scenarios of docs/wire.md §4 against the RTL NIC: a scripted peer is at one end of the\n"
    "link, the chip with the real host core at the other. Each has a fresh chip; the same options give\n"
    "the same run.\n"
    "  SCENARIO        number of one to play (default: all there are)\n"
    "  --config C      wide or narrow chip (wide)\n"
    "  --seed S        of data, lengths and of what the models leave open (1)\n"
    "  --pcap FILE     capture of the scenario, passed or not; for one scenario\n"
    "  --captures DIR  a capture of each that failed: DIR/17.pcapng\n"
    "  --json FILE     {\"scenarios\":[{\"id\":17,\"name\":\"\",\"verdict\":\"pass|fail\","
    "\"seen\":\"\"}]}\n"
    "  --fault NAME    spoils what the device sends, to show that scenarios find it: status 0 if all of\n"
    "                  those that are played fail\n"
    "  --list          only tells which there are\n"
    "  --quiet         no progress on stderr\n"
    "Exit status 0: all passed; 1: one failed; 2: wrong options.\n";

struct Options {
  std::vector<unsigned> scenarios;
  sim::ChipConfig chip = sim::ChipConfig::wide;
  uint64_t seed = 1;
  std::string pcap, captures, json, fault;
  bool list = false;
  bool quiet = false;
};

uint64_t number(const std::string& text, const char* what) {
  char* end = nullptr;
  errno = 0;
  const uint64_t value = std::strtoull(text.c_str(), &end, 0);
  const bool digit = !text.empty() && text.front() >= '0' && text.front() <= '9';
  if (!digit || *end != 0 || errno != 0) throw std::invalid_argument(say("no ", what, ": ", text));
  return value;
}

// "08" is eight, as in the names of the tests.
unsigned scenario_number(std::string text) {
  if (text.size() > 1 && text.front() == '0') text.erase(0, 1);
  const uint64_t id = number(text, "scenario");
  const auto all = Scenario::all();
  if (std::none_of(all.begin(), all.end(), [id](const Scenario* s) { return s->id == id; })) {
    throw std::invalid_argument(say("scenario ", id, " is not one of those there are (--list)"));
  }
  return static_cast<unsigned>(id);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int n = 1; n < argc; ++n) {
    const std::string option = argv[n];
    if (!option.starts_with("--")) {
      options.scenarios.push_back(scenario_number(option));
    } else if (option == "--list") {
      options.list = true;
    } else if (option == "--quiet") {
      options.quiet = true;
    } else {
      if (n + 1 == argc) throw std::invalid_argument("no value, or unknown: " + option);
      const std::string value = argv[++n];
      if (option == "--config" && value == "wide") {
        options.chip = sim::ChipConfig::wide;
      } else if (option == "--config" && value == "narrow") {
        options.chip = sim::ChipConfig::narrow;
      } else if (option == "--seed") {
        options.seed = number(value, "seed");
      } else if (option == "--pcap") {
        options.pcap = value;
      } else if (option == "--captures") {
        options.captures = value;
      } else if (option == "--json") {
        options.json = value;
      } else if (option == "--fault") {
        const auto faults = FaultPort::names();
        if (std::find(faults.begin(), faults.end(), value) == faults.end()) {
          std::string all;
          for (const std::string& name : faults) all += " " + name;
          throw std::invalid_argument("no fault: " + value + "; there are" + all);
        }
        options.fault = value;
      } else {
        throw std::invalid_argument("unknown: " + option + " " + value);
      }
    }
  }
  if (!options.pcap.empty() && options.scenarios.size() != 1) {
    throw std::invalid_argument("--pcap is for one scenario");
  }
  return options;
}

void add(std::string& text, const std::string& more) { text += (text.empty() ? "" : "; ") + more; }

Result play(const Scenario& scenario, const Options& options) {
  Result result{&scenario, false, {}, 0};
  const auto start = std::chrono::steady_clock::now();
  std::string failed;
  try {
    const auto device = make_rtl_device(options.chip, options.seed);
    std::optional<FaultPort> faulty;
    if (!options.fault.empty()) faulty.emplace(device->wire(), options.fault);
    Recorder wire(faulty ? static_cast<FramePort&>(*faulty) : device->wire());
    {
      Bench bench(*device, wire, options.seed * 1000 + scenario.id);
      try {
        scenario.play(bench);
      } catch (const std::exception& error) {
        add(failed, error.what());
      }
      for (const std::string& failure : bench.failures()) add(failed, failure);
      for (const std::string& complaint : bench.peer.complaints()) add(failed, complaint);
      if (bench.seen().empty() && failed.empty()) add(failed, "the script saw nothing");
      result.seen = bench.seen();
    }
    if (!options.pcap.empty()) wire.write(options.pcap, scenario.name);
    if (!failed.empty() && !options.captures.empty()) {
      std::filesystem::create_directories(options.captures);
      wire.write(say(options.captures, "/", scenario.id, ".pcapng"), scenario.name);
    }
  } catch (const std::exception& error) {
    add(failed, error.what());
  }
  result.pass = failed.empty();
  if (!result.pass) add(result.seen, "FAILED: " + failed);
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

int run(const Options& options) {
  const auto all = Scenario::all();
  if (options.list) {
    for (const Scenario* s : all) std::printf("%2u  %s\n", s->id, s->name);
    return 0;
  }
  std::vector<Result> results;
  for (const Scenario* s : all) {
    if (!options.scenarios.empty() && std::find(options.scenarios.begin(), options.scenarios.end(),
                                                s->id) == options.scenarios.end()) {
      continue;
    }
    if (!options.quiet) std::fprintf(stderr, "conformance: %2u %s … ", s->id, s->name);
    results.push_back(play(*s, options));
    if (!options.quiet) {
      std::fprintf(stderr, "%s (%.1f s)\n", results.back().pass ? "pass" : "FAIL",
                   results.back().seconds);
    }
  }
  std::fputs(table(results).c_str(), stdout);
  const auto passed = std::count_if(results.begin(), results.end(),
                                    [](const Result& r) { return r.pass; });
  const std::string device = say("RTL, ", sim::to_string(options.chip));
  std::printf("conformance: %s, seed %llu: %zu of %zu passed; %zu of the %u scenarios are written\n",
              device.c_str(), static_cast<unsigned long long>(options.seed),
              static_cast<size_t>(passed), results.size(), all.size(), kAllScenarios);
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << json(results, device, options.seed);
    file.close();
    if (!file) throw std::runtime_error("cannot write " + options.json);
  }
  // what must not pass: everything with a fault, nothing without
  return static_cast<size_t>(passed) == (options.fault.empty() ? results.size() : 0) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  // failures are what scenarios are about
  setenv("ROCI_LOG", "none", 0);
  for (int n = 1; n < argc; ++n) {
    const std::string option = argv[n];
    if (option == "--help" || option == "-h") {
      std::printf("%s%s", kUsage, kHelp);
      return 0;
    }
  }
  Options options;
  try {
    options = parse(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "conformance: %s\n%s", error.what(), kUsage);
    return 2;
  }
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "conformance: %s\n", error.what());
    return 1;
  }
}
