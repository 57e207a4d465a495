// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "nicsim/run.hpp"

#include <roci/error.hpp>

#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "capture/fabric_capture.hpp"
#include "model/world.hpp"
#include "nicsim/foreign.hpp"
#include "nicsim/admin_watch.hpp"
#include "nicsim/latency.hpp"
#include "nicsim/management.hpp"
#include "nicsim/progress.hpp"
#include "nicsim/queue_pairs.hpp"
#include "nicsim/report.hpp"
#include "nicsim/session.hpp"
#include "nicsim/statistics.hpp"
#include "server/server.hpp"

namespace roci::sim {
namespace {

// Between two looks at the sockets; a look costs less than a simulated cycle.
constexpr uint64_t kQuantum = 128;

// While a foreign peer has to read before anything else can happen.
constexpr std::chrono::milliseconds kPeerPause{1};

class WorldSimulation final : public Simulation {
 public:
  WorldSimulation(World& world, ForeignPorts& foreign, Progress* progress, unsigned ns_per_cycle)
      : world_(world),
        foreign_(foreign),
        progress_(progress),
        ns_per_cycle_(ns_per_cycle),
        begin_(world.cycle()) {}
  bool frozen() const override { return world_.frozen() && !foreign_.waiting(); }
  void run() override {
    const std::lock_guard lock(world_.mutex());
    foreign_.send();
    const bool crowded = foreign_.crowded();
    if (crowded || (foreign_.waiting() && world_.frozen())) std::this_thread::sleep_for(kPeerPause);
    if (crowded) return;
    world_.allow_skip(foreign_.silent());
    world_.run(kQuantum);
    const auto now = Progress::Clock::now();
    if (progress_ == nullptr || !progress_->due(now)) return;
    uint64_t frames = 0;
    for (size_t i = 0; i < world_.fabric().links(); ++i) {
      frames += world_.fabric().link_counters(i).frames;
    }
    progress_->show(now, (world_.cycle() - begin_) * ns_per_cycle_, frames);
  }

 private:
  World& world_;
  ForeignPorts& foreign_;
  Progress* progress_;  // none for `serve`
  unsigned ns_per_cycle_;
  uint64_t begin_;
};

// A folder of its own for the sockets of `run`, gone in the end.
class PrivateFolder {
 public:
  PrivateFolder() {
    const std::string name = std::string("/") + kPrivateFolderPrefix + "XXXXXX";
    std::string base = "/tmp";
    for (const std::string& place : private_folder_places()) {
      if (access(place.c_str(), W_OK | X_OK) != 0) continue;
      // the names of sockets are short
      if (place.size() + name.size() + std::strlen("/roci99.sock") <
          sizeof sockaddr_un{}.sun_path) {
        base = place;
      }
    }
    path_ = base + name;
    if (mkdtemp(path_.data()) == nullptr) {
      fail(errno, "no folder for sockets in %s: %s", base.c_str(), errno_text(errno).c_str());
    }
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

WorldConfig world_config(const Options& options) {
  WorldConfig config;
  config.nics = options.nics;
  config.chip = options.config;
  config.fabric = options.fabric();
  config.memory = options.memory();
  config.seed = options.seed;
  config.skip_time = options.skip_time;
  return config;
}

// For a POSIX shell, in quotes only where it needs them.
std::string quoted(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](const unsigned char c) {
    return std::isalnum(c) != 0 || std::strchr("_-+=:,./@%", c) != nullptr;
  });
  if (plain) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

Environment environment_of(const std::string& folder) {
  Environment out{{"ROCI_SIM", folder}};
  std::string preload = find_preload_library();
  if (preload.empty()) {
    say("libroci-preload.so is not near nicsim: stock programs will see no device");
    return out;
  }
  const char* before = getenv("LD_PRELOAD");
  if (before != nullptr && *before != 0) preload += std::string(":") + before;
  out.emplace_back("LD_PRELOAD", preload);
  return out;
}

std::vector<uint64_t> to_ns(std::vector<uint64_t> samples, unsigned ns_per_cycle) {
  for (uint64_t& sample : samples) sample *= ns_per_cycle;
  return samples;
}

// Names of the ports of the fabric. A lone NIC has a port without a NIC at the other end.
std::vector<QueuePairs::Place> places_of(World& world, const ForeignPorts& foreign) {
  std::vector<QueuePairs::Place> out;
  for (size_t i = 0; i < world.fabric().ports(); ++i) {
    if (i < world.size()) {
      out.push_back({"roci" + std::to_string(i), world.nic(static_cast<unsigned>(i)).mac()});
    } else if (foreign.all().empty()) {
      out.push_back({"roci" + std::to_string(i), std::nullopt});
    } else {
      out.push_back({"foreign" + std::to_string(i - world.size()), std::nullopt});
    }
  }
  return out;
}

// All that is looked at from outside of the chips.
class Watch {
 public:
  Watch(World& world, const ForeignPorts& foreign, unsigned ns_per_cycle)
      : world_(world),
        foreign_(foreign),
        ns_per_cycle_(ns_per_cycle),
        places_(places_of(world, foreign)),
        pairs_(places_),
        meters_(world.size()) {
    for (unsigned i = 0; i < world.size(); ++i) {
      admins_.push_back(std::make_unique<AdminWatch>(
          [&world, i](unsigned function, uint64_t address, std::span<uint8_t> out) {
            return world.nic(i).peek(function, address, out);
          },
          AdminWatch::Events{
              [this, i](unsigned function, uint32_t qpn, const hwif::ModifyQpInput& input) {
                pairs_.modify(i, function, qpn, input);
              },
              [this, i](unsigned, uint32_t qpn) { pairs_.destroy(i, qpn); }}));
      world.nic(i).nic().memory().set_observer(
          [this, i](const MemoryAccess& access) { stored(i, access); });
    }
    world.fabric().add_tap([this](const TapEvent& event) { pairs_.frame(event); });
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() = default;

  // Has the server tell what clients do.
  void serve(std::vector<ServedNic>& served) {
    begin_ = world_.cycle();
    for (unsigned i = 0; i < world_.size(); ++i) {
      served[i].on_write = [this, i](unsigned function, uint32_t offset, uint64_t value) {
        meters_[i].written(function, offset, value, world_.nic(i).nic().cycle());
        admins_[i]->written(function, offset, value);
      };
      served[i].on_leave = [this, i](unsigned function) {
        meters_[i].left(function);
        admins_[i]->left(function);
        pairs_.left(i, function);
      };
      served[i].statistics = [this](bool json) {
        const std::lock_guard lock(world_.mutex());
        return json ? to_json(statistics()) : to_table(statistics());
      };
    }
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    out.reserve(places_.size());
    for (const auto& place : places_) out.push_back(place.name);
    return out;
  }
  const LatencyMeter& meter(unsigned nic) const { return meters_[nic]; }
  std::vector<QueuePair> pairs_of(unsigned nic) const {
    std::vector<QueuePair> out;
    for (const QueuePair* qp : pairs_.all()) {
      if (qp->nic == nic) out.push_back(*qp);
    }
    return out;
  }
  bool failed() const {
    const auto all = pairs_.all();
    return std::any_of(all.begin(), all.end(), [](const QueuePair* qp) { return qp->failed != 0; });
  }

  // Reading counters lets some time of the NICs pass.
  Statistics statistics() {
    Statistics out;
    out.simulated_ns = (world_.cycle() - begin_) * ns_per_cycle_;
    std::vector<std::string> drops;
    for (unsigned i = 0; i < world_.size(); ++i) {
      out.nics.push_back({places_[i].name, read_counters(world_.nic(i)), pairs_of(i)});
      drops.push_back(drops_of(out.nics.back().counters));
    }
    const Fabric& fabric = world_.fabric();
    for (size_t i = 0; i < fabric.ports(); ++i) {
      out.ports.push_back({places_[i].name, fabric.tx_counters(i), fabric.rx_counters(i)});
    }
    if (fabric.switched()) out.in_switch = fabric.switch_counters();
    for (const auto& port : foreign_.all()) out.foreign.push_back({port->path(), port->counters()});
    for (const QueuePair* qp : pairs_.all()) {
      if (qp->failed != 0) out.failures.push_back(pairs_.explain(*qp, drops));
    }
    return out;
  }

 private:
  void stored(unsigned nic, const MemoryAccess& access) {
    if (!access.write || !access.ok) return;
    meters_[nic].stored(access.function, access.data, world_.nic(nic).nic().cycle());
    hwif::Cqe cqe{};
    if (access.data.size() != sizeof cqe ||
        !admins_[nic]->in_completion_ring(access.function, access.addr)) {
      return;
    }
    std::memcpy(&cqe, access.data.data(), sizeof cqe);
    pairs_.completed(nic, cqe);
  }

  World& world_;
  const ForeignPorts& foreign_;
  unsigned ns_per_cycle_;
  uint64_t begin_ = 0;
  std::vector<QueuePairs::Place> places_;
  QueuePairs pairs_;
  std::vector<LatencyMeter> meters_;
  std::vector<std::unique_ptr<AdminWatch>> admins_;
};

// Why queue pairs failed, the first few.
void say_failures(const std::vector<std::string>& lines) {
  constexpr size_t most = 10;
  for (size_t i = 0; i < std::min(most, lines.size()); ++i) say(lines[i]);
  if (lines.size() > most) {
    say("and " + std::to_string(lines.size() - most) + " more queue pairs failed: --report has all");
  }
}

}  // namespace

std::vector<std::string> private_folder_places() {
  std::vector<std::string> out{"/tmp"};
  for (const char* variable : {"TMPDIR", "XDG_RUNTIME_DIR"}) {
    const char* place = getenv(variable);
    if (place != nullptr && *place != 0) out.emplace_back(place);
  }
  return out;
}

void say(const std::string& text) { std::fprintf(stderr, "nicsim: %s\n", text.c_str()); }

int run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const bool serves = options.command == Command::serve;
  raise_file_limit();
  // a folder and sockets are there from now on, and are gone in the end
  const SignalBlock block;
  // before minutes of simulation: what cannot work
  std::optional<PrivateFolder> own;
  std::string folder = options.folder;
  if (!serves) {
    folder = own.emplace().path();
  } else {
    if (folder.empty()) folder = default_folder();
    prepare_folder(folder);
    folder = std::filesystem::absolute(folder);
    for (unsigned i = 0; i < options.nics; ++i) refuse_live_socket(folder, i);
  }
  if (!options.report.empty()) write_file(options.report, "");
  if (!options.pcap.empty()) write_file(options.pcap, "");

  const auto quiet = std::chrono::duration_cast<ForeignPorts::Clock::duration>(
      std::chrono::duration<double, std::milli>(options.foreign_quiet_ms));
  Progress* line = nullptr;  // on the terminal, while there is one
  const Notice notice = [&line](const std::string& text) {
    if (line != nullptr) line->clear();
    say(text);
  };
  ForeignPorts foreign(options.foreign, quiet, notice);

  say("seed " + std::to_string(options.seed));
  World world(world_config(options));
  std::vector<ServedNic> nics;
  for (unsigned i = 0; i < world.size(); ++i) {
    if (const auto signal = SignalBlock::take()) return kExitSignal + *signal;
    set_up_port(world, i);
    nics.push_back(describe(world, i));
  }
  foreign.attach(world.fabric(), world.size());
  Watch watch(world, foreign, options.ns_per_cycle());
  watch.serve(nics);
  std::optional<FabricCapture> capture;
  if (!options.pcap.empty()) {
    capture.emplace(world.fabric(), options.pcap, watch.names(), options.ns_per_cycle());
  }

  int status = 0;
  RunReport report;
  {
    Progress progress(STDERR_FILENO, Progress::Clock::now());
    line = &progress;
    Server server(std::move(nics), {folder, notice});
    for (const auto& port : foreign.all()) {
      server.watch(port->fd(), [&port, &world] {
        const std::lock_guard lock(world.mutex());
        port->receive(ForeignPort::Clock::now());
      });
    }
    WorldSimulation simulation(world, foreign, serves ? nullptr : &progress, options.ns_per_cycle());
    Session session(server, simulation, notice);
    const Environment environment = environment_of(folder);
    const uint64_t begin = world.cycle();
    if (serves) {
      for (const auto& [name, value] : environment) {
        std::printf("export %s=%s\n", name.c_str(), quoted(value).c_str());
      }
      std::fflush(stdout);
      say("ready");
      session.serve();
    } else {
      status = options.pair ? session.run_pair(options.program, environment)
                            : session.run(options.program, environment);
    }
    progress.clear();
    line = nullptr;
    report.cycles = world.cycle() - begin;
    report.programs = session.results();
  }
  if (capture) capture->finish();

  report.seed = options.seed;
  report.simulated_ns = report.cycles * options.ns_per_cycle();
  std::vector<uint64_t> all;
  for (unsigned i = 0; i < world.size(); ++i) {
    const auto samples = to_ns(watch.meter(i).samples(), options.ns_per_cycle());
    all.insert(all.end(), samples.begin(), samples.end());
    if (!options.report.empty()) {
      report.nics.push_back({read_counters(world.nic(i)), summarise(samples), watch.pairs_of(i)});
    }
  }
  for (size_t i = 0; i < world.fabric().links(); ++i) {
    report.links.push_back(world.fabric().link_counters(i));
  }
  for (const auto& port : foreign.all()) {
    report.foreign.push_back({port->path(), port->counters()});
    say(port->describe());
  }
  report.wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!options.report.empty()) write_file(options.report, to_json(report));
  world.fabric().finish_taps();
  if (watch.failed()) say_failures(watch.statistics().failures);
  const LatencySummary total = summarise(std::move(all));
  if (total.count != 0) {
    say("doorbell to completion, median of " + std::to_string(total.count) + ":");
    say("simulated latency " + std::to_string(total.median) + " ns");
  } else {
    say("simulated time " + std::to_string(report.simulated_ns) + " ns, no completions");
  }
  return status;
}

}  // namespace roci::sim
