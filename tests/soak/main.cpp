// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The soak as a program: `make soak MESSAGES=N SEED=S CONFIG=wide|narrow`.
#include "soak.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

using roci::soak::SoakConfig;

namespace {

// More are typing errors.
constexpr uint64_t kMaxPairs = 1024;
constexpr uint64_t kMaxBytes = 1 << 30;
constexpr double kMaxImpair = 100;  // every frame is lost
constexpr double kMaxStalls = 0.9;

constexpr const char* kUsage =
    "usage: roci-soak [--messages N] [--seed S] [--config wide|narrow] [--pairs N]\n"
    "                 [--loopback-pairs N] [--max-bytes N] [--impair FACTOR] [--rates LIST]\n"
    "                 [--stalls P] [--no-memory-noise]\n"
    "                 [--pcap FILE] [--quiet]\n";

// Behind kUsage; defaults from SoakConfig.
void help() {
  const SoakConfig config;
  std::printf(
      "%s\n"
      "SEND, WRITE and READ of random sizes and alignments between two RTL NICs over a bad link; every\n"
      "byte and completion is checked. The same options give the same run.\n"
      "  --messages N        how many (default %llu)\n"
      "  --seed S            of all random choices (%llu)\n"
      "  --config C          wide or narrow NICs (wide)\n"
      "  --pairs N           connected pairs of queue pairs between the NICs (%u)\n"
      "  --loopback-pairs N  and inside the first one (%u)\n"
      "  --max-bytes N       of a message (%zu)\n"
      "  --impair FACTOR     1: 1 %% drop, duplicate and reorder, 0.5 %% corruption; 0: none (%g)\n"
      "  --rates LIST        instead, one by one: drop=P,dup=P,reorder=P,corrupt=P,delay=P; P is a\n"
      "                      fraction or 1%%, per frame and direction, 0 for what is not named\n"
      "  --stalls P          of host memory: probability per cycle and channel (%g)\n"
      "  --no-memory-noise   host memory without jitter, reordering and stalls\n"
      "  --pcap FILE         captures what crosses the link, with simulated time\n"
      "  --quiet             no progress on stderr\n"
      "Ends with \"soak: N messages, 0 errors, seed S\" and status 0; 1 at the first error, 2 if the\n"
      "options are wrong.\n",
      kUsage, static_cast<unsigned long long>(config.messages),
      static_cast<unsigned long long>(config.seed), config.pairs, config.loopback_pairs,
      config.max_bytes, config.impair, config.stalls);
}

uint64_t number(const std::string& text, uint64_t low = 0, uint64_t high = ~uint64_t{0}) {
  char* end = nullptr;
  errno = 0;
  const bool hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  const uint64_t value = std::strtoull(text.c_str(), &end, hex ? 16 : 10);
  const bool digit = !text.empty() && text.front() >= '0' && text.front() <= '9';
  if (!digit || *end != 0 || errno != 0 || value < low || value > high) {
    throw std::invalid_argument("not a whole number from " + std::to_string(low) + " to " +
                                std::to_string(high) + ": " + text);
  }
  return value;
}

double factor(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(value >= 0 && value <= kMaxImpair)) {
    throw std::invalid_argument("not a factor from 0 to " +
                                std::to_string(static_cast<int>(kMaxImpair)) + ": " + text);
  }
  return value;
}

// "0.01" or "1%".
double probability(std::string text) {
  const bool percent = !text.empty() && text.back() == '%';
  if (percent) text.pop_back();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end) / (percent ? 100 : 1);
  if (text.empty() || *end != 0 || !(value >= 0 && value <= 1)) {
    throw std::invalid_argument("not a fraction from 0 to 1 nor a percentage: " + text);
  }
  return value;
}

// "drop=1%,dup=0.5%".
roci::sim::Impairments rates(const std::string& text) {
  roci::sim::Impairments out;
  const std::pair<const char*, double*> known[] = {{"drop", &out.drop},
                                                   {"dup", &out.duplicate},
                                                   {"reorder", &out.reorder},
                                                   {"corrupt", &out.corrupt},
                                                   {"delay", &out.delay}};
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t equals = part.find('=');
    const auto* rate = std::find_if(std::begin(known), std::end(known), [&](const auto& entry) {
      return equals != std::string::npos && part.compare(0, equals, entry.first) == 0;
    });
    if (rate == std::end(known)) throw std::invalid_argument("no rate: " + part);
    *rate->second = probability(part.substr(equals + 1));
    begin = end + 1;
  }
  return out;
}

SoakConfig parse(int argc, char** argv) {
  SoakConfig config;
  for (int n = 1; n < argc; ++n) {
    const std::string option = argv[n];
    if (option == "--quiet") {
      config.quiet = true;
      continue;
    }
    if (option == "--no-memory-noise") {
      config.memory_noise = false;
      continue;
    }
    if (n + 1 == argc) throw std::invalid_argument("no value, or unknown: " + option);
    const char* value = argv[++n];
    if (option == "--messages") {
      config.messages = number(value, 1);
    } else if (option == "--seed") {
      config.seed = number(value);
    } else if (option == "--pairs") {
      config.pairs = static_cast<unsigned>(number(value, 0, kMaxPairs));
    } else if (option == "--loopback-pairs") {
      config.loopback_pairs = static_cast<unsigned>(number(value, 0, kMaxPairs));
    } else if (option == "--max-bytes") {
      config.max_bytes = number(value, 0, kMaxBytes);
    } else if (option == "--impair") {
      config.impair = factor(value);
    } else if (option == "--rates") {
      config.rates = rates(value);
    } else if (option == "--stalls") {
      config.stalls = probability(value);
      // memory that never moves is a hang of the soak, not of the NIC
      if (config.stalls > kMaxStalls) throw std::invalid_argument("stalls too often");
    } else if (option == "--pcap") {
      config.capture = value;
    } else if (option == "--config" && std::strcmp(value, "wide") == 0) {
      config.chip = roci::sim::ChipConfig::wide;
    } else if (option == "--config" && std::strcmp(value, "narrow") == 0) {
      config.chip = roci::sim::ChipConfig::narrow;
    } else {
      throw std::invalid_argument("unknown: " + option + " " + value);
    }
  }
  if (config.pairs + config.loopback_pairs == 0) throw std::invalid_argument("no pair at all");
  return config;
}

}  // namespace

int main(int argc, char** argv) {
  SoakConfig config;
  for (int n = 1; n < argc; ++n) {
    if (std::strcmp(argv[n], "--help") != 0 && std::strcmp(argv[n], "-h") != 0) continue;
    help();
    return 0;
  }
  try {
    config = parse(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "soak: %s\n%s", error.what(), kUsage);
    return 2;
  }
  const auto seed = static_cast<unsigned long long>(config.seed);
  try {
    const auto result = roci::soak::run_soak(config);
    std::fprintf(stderr, "soak: %s, %llu bytes in %llu cycles, %llu of them simulated\n",
                 std::string(roci::sim::to_string(config.chip)).c_str(),
                 static_cast<unsigned long long>(result.bytes),
                 static_cast<unsigned long long>(result.cycles),
                 static_cast<unsigned long long>(result.simulated_cycles));
    if (!config.quiet) std::fprintf(stderr, "soak: the end:%s\n", result.report.c_str());
    std::printf("soak: %llu messages, 0 errors, seed %llu\n",
                static_cast<unsigned long long>(result.messages), seed);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "soak: %s\n", error.what());
    std::printf("soak: failed, seed %llu\n", seed);
    return 1;
  }
}
