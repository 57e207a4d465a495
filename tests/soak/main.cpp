// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The soak as a program: `make soak MESSAGES=N SEED=S CONFIG=wide|narrow`.
#include "soak.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>

using roci::soak::SoakConfig;

namespace {

// More are typing errors.
constexpr uint64_t kMaxPairs = 1024;
constexpr uint64_t kMaxBytes = 1 << 30;
constexpr double kMaxImpair = 100;  // every frame is lost

constexpr const char* kUsage =
    "usage: roci-soak [--messages N] [--seed S] [--config wide|narrow] [--pairs N]\n"
    "                 [--loopback-pairs N] [--max-bytes N] [--impair FACTOR] [--no-memory-noise]\n"
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
      "  --no-memory-noise   host memory without jitter, reordering and stalls\n"
      "  --pcap FILE         captures what crosses the link, with simulated time\n"
      "  --quiet             no progress on stderr\n"
      "Ends with \"soak: N messages, 0 errors, seed S\" and status 0; 1 at the first error, 2 if the\n"
      "options are wrong.\n",
      kUsage, static_cast<unsigned long long>(config.messages),
      static_cast<unsigned long long>(config.seed), config.pairs, config.loopback_pairs,
      config.max_bytes, config.impair);
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
