// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "nicsim/options.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>

namespace roci::sim {
namespace {

// A world of more takes minutes to start; it is a typing error.
constexpr unsigned kMaxNics = 64;
constexpr size_t kMaxForeign = 64;
constexpr double kMaxQuietMs = 60'000;
constexpr double kMinWatchS = 0.1, kMaxWatchS = 3600;
constexpr double kMaxNs = 1e9;
constexpr double kHoldNs = 10'000;  // reorder: released after this at the latest
constexpr double kWriteShare = 0.4;

double number(const std::string& option, const std::string& text, double low, double high) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(value >= low && value <= high)) {
    char range[64];
    std::snprintf(range, sizeof range, "%.15g to %.15g", low, high);
    throw UsageError(option + " " + text + ": not a number from " + range);
  }
  return value;
}

uint64_t whole(const std::string& option, const std::string& text, uint64_t low, uint64_t high) {
  char* end = nullptr;
  errno = 0;
  // 010 is ten: nobody means octal
  const bool hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  const uint64_t value = std::strtoull(text.c_str(), &end, hex ? 16 : 10);
  const bool digit = !text.empty() && text.front() >= '0' && text.front() <= '9';
  if (!digit || *end != 0 || errno != 0 || value < low || value > high) {
    throw UsageError(option + " " + text + ": not a whole number from " + std::to_string(low) +
                     " to " + std::to_string(high));
  }
  return value;
}

// "0.01" or "1%".
double probability(const std::string& option, const std::string& text) {
  const bool percent = !text.empty() && text.back() == '%';
  const std::string digits = percent ? text.substr(0, text.size() - 1) : text;
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end) / (percent ? 100 : 1);
  if (digits.empty() || *end != 0 || !(value >= 0 && value <= 1)) {
    throw UsageError(option + " " + text + ": not a fraction from 0 to 1 nor a percentage");
  }
  return value;
}

uint64_t mac_address(const std::string& text) {
  unsigned byte[6] = {};
  int length = 0;
  if (text.size() != 17 ||
      std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%n", &byte[0], &byte[1], &byte[2], &byte[3],
                  &byte[4], &byte[5], &length) != 6 ||
      length != 17) {
    throw UsageError("--mac " + text + ": not of the form 02:00:00:00:00:01");
  }
  uint64_t mac = 0;
  for (const unsigned b : byte) mac = mac << 8 | b;
  return mac;
}

std::array<uint8_t, 16> gid_address(const std::string& text) {
  std::array<uint8_t, 16> gid{};
  if (inet_pton(AF_INET6, text.c_str(), gid.data()) != 1) {
    throw UsageError("--gid " + text + ": not an IPv6 address, such as fe80::ff:fe00:1");
  }
  if (!can_be_of_port(gid)) {
    throw UsageError("--gid " + text + ": zero and multicast are nobody's own GID");
  }
  return gid;
}

// Which subcommands know an option, and whether it has a value.
constexpr unsigned kRun = 1, kServe = 2, kInject = 4, kStats = 8;
enum class Value : uint8_t { none, optional, needed };
struct Option {
  unsigned commands;
  Value value;
};

const std::map<std::string, Option>& known_options() {
  constexpr unsigned simulations = kRun | kServe;
  constexpr unsigned all = kRun | kServe | kInject | kStats;
  static const std::map<std::string, Option> known = {
      {"--nics", {simulations, Value::needed}},
      {"--config", {simulations | kInject, Value::needed}},
      {"--pair", {kRun, Value::none}},
      {"--seed", {simulations | kInject, Value::needed}},
      {"--loss", {simulations, Value::needed}},
      {"--dup", {simulations, Value::needed}},
      {"--reorder", {simulations, Value::needed}},
      {"--corrupt", {simulations, Value::needed}},
      {"--latency", {simulations, Value::needed}},
      {"--memory-latency", {simulations, Value::needed}},
      {"--rate", {simulations, Value::needed}},
      {"--no-skip", {simulations, Value::none}},
      {"--pcap", {simulations | kInject, Value::needed}},
      {"--report", {simulations | kInject, Value::needed}},
      {"--foreign", {simulations, Value::needed}},
      {"--foreign-quiet", {simulations, Value::needed}},
      {"--dir", {kServe | kStats, Value::needed}},
      {"--mac", {kInject, Value::needed}},
      {"--gid", {kInject, Value::needed}},
      {"--json", {kStats, Value::none}},
      {"--watch", {kStats, Value::optional}},
      {"--help", {all, Value::none}},
  };
  return known;
}

void apply(Options& o, const std::string& name, const std::string& value) {
  if (name == "--nics") {
    o.nics = static_cast<unsigned>(whole(name, value, 1, kMaxNics));
  } else if (name == "--config") {
    if (value != "wide" && value != "narrow") {
      throw UsageError("--config " + value + ": wide or narrow");
    }
    o.config = value == "wide" ? ChipConfig::wide : ChipConfig::narrow;
  } else if (name == "--pair") {
    o.pair = true;
  } else if (name == "--seed") {
    o.seed = whole(name, value, 0, ~uint64_t{0});
  } else if (name == "--loss") {
    o.loss = probability(name, value);
  } else if (name == "--dup") {
    o.duplicate = probability(name, value);
  } else if (name == "--reorder") {
    o.reorder = probability(name, value);
  } else if (name == "--corrupt") {
    o.corrupt = probability(name, value);
  } else if (name == "--latency") {
    o.latency_ns = number(name, value, 0, kMaxNs);
  } else if (name == "--memory-latency") {
    o.memory_read_ns = number(name, value, 0, kMaxNs);
    o.memory_write_ns = o.memory_read_ns * kWriteShare;
  } else if (name == "--rate") {
    o.rate = number(name, value, 0.001, 64);
  } else if (name == "--no-skip") {
    o.skip_time = false;
  } else if (name == "--pcap") {
    o.pcap = value;
  } else if (name == "--report") {
    o.report = value;
  } else if (name == "--foreign") {
    o.foreign.push_back(value);
  } else if (name == "--foreign-quiet") {
    o.foreign_quiet_ms = number(name, value, 0, kMaxQuietMs);
  } else if (name == "--dir") {
    o.folder = value;
  } else if (name == "--json") {
    o.json = true;
  } else if (name == "--watch") {
    o.watch_s = value.empty() ? 1 : number(name, value, kMinWatchS, kMaxWatchS);
  } else if (name == "--mac") {
    o.mac = mac_address(value);
  } else if (name == "--gid") {
    o.gid = gid_address(value);
  }
}

bool knows(const Option& option, Command command) {
  const unsigned bit = command == Command::run      ? kRun
                       : command == Command::serve  ? kServe
                       : command == Command::inject ? kInject
                                                    : kStats;
  return (option.commands & bit) != 0;
}

std::optional<Command> command_of(const std::string& word) {
  if (word == "run") return Command::run;
  if (word == "serve") return Command::serve;
  if (word == "inject") return Command::inject;
  if (word == "stats") return Command::stats;
  return std::nullopt;
}

// Whether both names lead to one place.
bool same_place(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code none;
  const auto place = [&](const std::string& name) {
    return fs::weakly_canonical(fs::absolute(name, none), none);
  };
  const fs::path at = place(a);  // empty if it cannot be reached
  return fs::equivalent(a, b, none) || (!at.empty() && at == place(b));
}

// Whether what is written to one of them spoils the other; devices take both.
bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code none;
  return (!fs::exists(a, none) || fs::is_regular_file(a, none)) && same_place(a, b);
}

void check(const Options& o) {
  if (!o.pcap.empty() && !o.report.empty() && same_file(o.pcap, o.report)) {
    throw UsageError("--pcap and --report: both are " + o.report);
  }
  if (o.foreign.size() > kMaxForeign) {
    throw UsageError("--foreign: at most " + std::to_string(kMaxForeign));
  }
  for (size_t i = 0; i < o.foreign.size(); ++i) {
    for (const std::string& file : {o.pcap, o.report}) {
      if (!file.empty() && same_place(file, o.foreign[i])) {
        throw UsageError("--foreign: " + file + " is written, too");
      }
    }
    for (size_t j = 0; j < i; ++j) {
      if (same_place(o.foreign[i], o.foreign[j])) {
        throw UsageError("--foreign " + o.foreign[i] + ": named twice");
      }
    }
  }
  if (o.command == Command::run) {
    if (o.program.empty()) throw UsageError("run: no program; give it behind --");
    if (o.pair && o.nics < 2) throw UsageError("--pair needs --nics 2 or more");
  }
  // a beat of the wire per cycle is what the chip can feed
  if (o.rate && o.config == ChipConfig::narrow && *o.rate > 8) {
    throw UsageError("--rate: at most 8 bytes per cycle with --config narrow");
  }
  if (o.command == Command::inject && o.pcap.empty()) throw UsageError("inject: no --pcap FILE");
  if (o.command == Command::inject && o.report.empty()) {
    throw UsageError("inject: no --report FILE");
  }
}

}  // namespace

bool can_be_of_port(const std::array<uint8_t, 16>& gid) {
  const bool zero = std::all_of(gid.begin(), gid.end(), [](uint8_t byte) { return byte == 0; });
  return !zero && gid[0] != 0xff;
}

uint32_t Options::cycles(double ns) const {
  return static_cast<uint32_t>(std::max(1.0, std::round(ns / ns_per_cycle())));
}

FabricConfig Options::fabric() const {
  FabricConfig out;
  out.seed = seed;
  if (!foreign.empty()) {
    out.ports = nics + foreign.size();
    out.topology = Topology::switched;
  }
  out.link.rate = Rate::from_double(rate.value_or(config == ChipConfig::wide ? 50 : 8));
  out.link.latency = cycles(latency_ns);
  out.link.reorder_hold_cycles = cycles(kHoldNs);
  out.link.impairments.drop = loss;
  out.link.impairments.duplicate = duplicate;
  out.link.impairments.reorder = reorder;
  out.link.impairments.corrupt = corrupt;
  return out;
}

HostMemoryConfig Options::memory() const {
  HostMemoryConfig out;
  out.read_latency = cycles(memory_read_ns);
  out.write_latency = cycles(memory_write_ns);
  out.seed = seed;
  return out;
}

Options parse_options(const std::vector<std::string>& words) {
  Options o;
  if (words.empty()) throw UsageError("no subcommand: run, serve, stats or inject");
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") return o;
  const auto command = command_of(words[0]);
  if (!command) throw UsageError(words[0] + ": no subcommand; run, serve, stats or inject");
  o.command = *command;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--" || word.empty() || word.front() != '-') {
      if (o.command != Command::run) throw UsageError(word + ": " + words[0] + " takes no program");
      o.program.assign(words.begin() + static_cast<ptrdiff_t>(i + (word == "--" ? 1 : 0)),
                       words.end());
      break;
    }
    const size_t equals = word.find('=');
    const std::string name = word == "-h" ? "--help" : word.substr(0, equals);
    const auto option = known_options().find(name);
    if (option == known_options().end() || !knows(option->second, o.command)) {
      throw UsageError(name + ": " + words[0] + " has no such option");
    }
    if (name == "--help") {
      o.help_about = o.command;
      o.command = Command::help;
      return o;
    }
    std::string value;
    if (option->second.value == Value::optional) {
      if (equals != std::string::npos) value = word.substr(equals + 1);
    } else if (option->second.value == Value::needed) {
      if (equals != std::string::npos) {
        value = word.substr(equals + 1);
      } else if (++i < words.size()) {
        value = words[i];
      } else {
        throw UsageError(name + ": its value is missing");
      }
      if (value.empty()) throw UsageError(name + ": its value is empty");
    } else if (equals != std::string::npos) {
      throw UsageError(name + " takes no value");
    }
    apply(o, name, value);
  }
  check(o);
  return o;
}

std::string usage(Command command) {
  const std::string common =
      "  --nics N              NICs (2)\n"
      "  --config wide|narrow  512 bit at 250 MHz, or 64 bit at 125 MHz (wide)\n"
      "  --seed S              of everything random (1)\n"
      "  --loss P, --dup P, --reorder P, --corrupt P\n"
      "                        per frame and link direction: a fraction or 1%\n"
      "  --latency NS          of a link, one way (500)\n"
      "  --memory-latency NS   host memory: read (1000); the response to a write takes 0.4 of it\n"
      "  --rate B              bytes per cycle of a link (wide 50, narrow 8)\n"
      "  --no-skip             simulates also the time in which only timers run\n"
      "  --pcap FILE           capture of all ports (pcapng)\n"
      "  --report FILE         counters and latencies (JSON)\n"
      "  --foreign PATH        a port of the switch for another implementation (may be repeated):\n"
      "                        a Unix datagram socket, one Ethernet frame without FCS each\n"
      "  --foreign-quiet MS    wall time without a frame there after which time that only timers\n"
      "                        need is skipped (20)\n";
  switch (command) {
    case Command::run:
      return "nicsim run [options] -- PROGRAM ARGUMENTS\n"
             "Runs a program that sees the simulated NICs.\n" +
             common +
             "  --pair                the program as server on roci0 and, once it listens on TCP,\n"
             "                        with the argument 127.0.0.1 as client on roci1\n"
             "Exit status: the first program's that is not 0, 128 + signal, 2 usage, 125 own "
             "failure.\n";
    case Command::serve:
      return "nicsim serve [options]\n"
             "Serves simulated NICs until SIGINT, SIGTERM or SIGHUP; prints what programs need in their\n"
             "environment.\n" +
             common +
             "  --dir DIR             folder of the sockets ($XDG_RUNTIME_DIR/roci, else\n"
             "                        roci-<uid> among the temporary files)\n";
    case Command::stats:
      return "nicsim stats [options]\n"
             "Shows the counters of a simulation that runs: NICs, links, queue pairs; why any failed.\n"
             "  --dir DIR             folder of its sockets ($ROCI_SIM, else the only one that runs)\n"
             "  --json                everything, in one line (else a table of what is not 0)\n"
             "  --watch[=S]           again every S seconds (1), until the simulation ends\n";
    case Command::inject:
      return "nicsim inject --pcap FILE --report FILE [options]\n"
             "Feeds the frames of a capture into a NIC and reports what becomes of each.\n"
             "  --pcap FILE           pcap or pcapng, Ethernet\n"
             "  --report FILE         fate of each frame (JSON)\n"
             "  --mac M               only this destination MAC is ours (default: all)\n"
             "  --gid G               only this destination GID is ours (default: all)\n"
             "  --config wide|narrow  (wide)\n"
             "  --seed S              (1)\n";
    case Command::help: break;
  }
  return "nicsim: RDMA NICs, simulated at register transfer level\n"
         "  nicsim run [options] -- PROGRAM ARGUMENTS\n"
         "  nicsim serve [options]\n"
         "  nicsim stats [options]\n"
         "  nicsim inject --pcap FILE --report FILE [options]\n"
         "Each has --help.\n";
}

}  // namespace roci::sim
