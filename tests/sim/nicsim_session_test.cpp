// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Programs, pairs, signals and exit codes of nicsim, with a simulation that always rests; the end of a
// run with frames under way; its line on a terminal.
#include "capture/capture_reader.hpp"
#include "capture/fabric_capture.hpp"
#include "nicsim/options.hpp"
#include "nicsim/progress.hpp"
#include "nicsim/session.hpp"

#include "../host/waiting.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <pty.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace roci;
using namespace roci::sim;
using roci::test::becomes;
using namespace std::chrono_literals;

namespace {

class Resting final : public Simulation {
 public:
  bool frozen() const override { return true; }
  void run() override { ++turns; }
  unsigned turns = 0;
};

// A session with a server without NICs.
struct Bench {
  explicit Bench(Patience patience = unhurried())
      : server({}, {}),
        session(server, simulation, [this](const std::string& text) { notices.push_back(text); },
                patience) {
    char name[] = "/tmp/nicsim-test-XXXXXX";
    folder = mkdtemp(name);
  }
  ~Bench() { std::filesystem::remove_all(folder); }
  // What comes in the end may take long on a loaded machine.
  static Patience unhurried() { return {.listen = 120s, .listen_at_most = 120s, .end = 120s}; }
  int run(const std::string& script, const Environment& environment = {}) {
    return session.run({"sh", "-c", script}, environment);
  }
  // A Python program that is server without an argument and client with one.
  int pair(const std::string& server_code, const std::string& client_code) {
    const std::string code =
        "import os,socket,sys,time,signal\n"
        "os.chdir('" + folder + "')\n"
        "def server():\n" + server_code + "def client():\n" + client_code +
        "client() if len(sys.argv) > 1 else server()\n";
    return session.run_pair({"python3", "-c", code}, {{"ROCI_SIM", "there"}});
  }
  std::string text(const std::string& file) const {
    std::ifstream in(folder + "/" + file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  Resting simulation;
  std::vector<std::string> notices;
  Server server;
  Session session;
  std::string folder;
};

const char* const kServer =
    "  s = socket.create_server(('127.0.0.1', 0))\n"
    "  open('port.new', 'w').write(str(s.getsockname()[1]))\n"
    "  os.rename('port.new', 'port')\n"
    "  open('server', 'w').write(os.environ['ROCI_DEVICES'] + os.environ['ROCI_SIM'])\n"
    "  c, _ = s.accept()\n"
    "  code = c.recv(1)\n"
    "  sys.exit(code[0] if code else 77)\n";

std::string client(int server_exit, int own_exit) {
  return "  c = socket.create_connection((sys.argv[1], int(open('port').read())))\n"
         "  open('client', 'w').write(os.environ['ROCI_DEVICES'] + sys.argv[1])\n"
         "  c.send(bytes([" + std::to_string(server_exit) + "]))\n"
         "  sys.exit(" + std::to_string(own_exit) + ")\n";
}

}  // namespace

TEST_CASE("a program's exit status is nicsim's") {
  Bench bench;
  CHECK(bench.run("exit 0") == 0);
  REQUIRE(bench.session.results().size() == 1);
  CHECK(bench.session.results()[0].exit == 0);
  CHECK(bench.session.results()[0].argv == std::vector<std::string>{"sh", "-c", "exit 0"});
}

TEST_CASE("status, signal, a program that is not there") {
  CHECK(Bench().run("exit 7") == 7);
  CHECK(Bench().run("kill -SEGV $$") == 128 + SIGSEGV);
  Bench bench;
  CHECK_THROWS(bench.session.run({"no-such-program-here"}, {}));
}

TEST_CASE("a program gets its variables and a usual signal mask") {
  Bench bench;
  setenv("NICSIM_TEST", "outer", 1);
  CHECK(bench.run("test \"$NICSIM_TEST\" = inner && test \"$ROCI_SIM\" = x && test -n \"$PATH\"",
                  {{"NICSIM_TEST", "inner"}, {"ROCI_SIM", "x"}}) == 0);
  CHECK(Bench().run("grep -q '^SigBlk:[[:space:]]*0*$' /proc/self/status") == 0);
}

TEST_CASE("more open files for nicsim, as many as before for its programs") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few = before;
  few.rlim_cur = 100;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  raise_file_limit();
  rlimit now{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &now) == 0);
  CHECK(now.rlim_cur == before.rlim_max);
  Bench bench;
  CHECK(bench.run("test $(ulimit -n) = 100") == 0);
  REQUIRE(getrlimit(RLIMIT_NOFILE, &now) == 0);
  CHECK(now.rlim_cur == before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
  raise_file_limit();
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_CASE("a pair: the client starts when the server listens, each with its device") {
  Bench bench;
  CHECK(bench.pair(kServer, client(0, 0)) == 0);
  CHECK(bench.text("server") == "roci0there");
  CHECK(bench.text("client") == "roci1127.0.0.1");
  CHECK(bench.notices.empty());
  REQUIRE(bench.session.results().size() == 2);
  CHECK(bench.session.results()[1].argv.back() == "127.0.0.1");
}

TEST_CASE("a pair: the first status that is not zero") {
  CHECK(Bench().pair(kServer, client(5, 0)) == 5);
  CHECK(Bench().pair(kServer, client(0, 6)) == 6);
}

TEST_CASE("a pair: who goes on alone is ended") {
  Patience patience = Bench::unhurried();
  patience.end = 300ms;
  Bench bench(patience);
  // the client fails at once, the server ignores SIGTERM and never ends
  const std::string server =
      "  signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
      "  s = socket.create_server(('127.0.0.1', 0))\n"
      "  time.sleep(1000)\n";
  CHECK(bench.pair(server, "  sys.exit(9)\n") == 9);
  CHECK(bench.session.results()[0].exit == 128 + SIGKILL);
  CHECK(bench.notices.size() == 2);
}

TEST_CASE("what is under way when the last program ends arrives, is answered and captured") {
  char name[] = "/tmp/nicsim-test-XXXXXX";
  const std::string folder = mkdtemp(name);
  const std::string pid_file = folder + "/pid", capture_file = folder + "/frames.pcapng";
  FabricConfig config;
  config.link.latency = 5000;
  Fabric fabric(config);
  const std::vector<uint8_t> request(100, 1), ack(80, 2);
  unsigned acks = 0;
  fabric.port(1).on_frame([&](const ReceivedFrame&) { fabric.port(1).send(ack); });
  fabric.port(0).on_frame([&](const ReceivedFrame&) { ++acks; });

  // Sends the request when the program has ended.
  struct LastWords final : Simulation {
    LastWords(Fabric& f, const std::vector<uint8_t>& r, const std::string& p)
        : fabric(f), request(r), pid_file(p) {}
    bool frozen() const override { return sent && !fabric.busy(); }
    void run() override {
      if (!sent && dead()) {
        fabric.port(0).send(request);
        sent = true;
      }
      fabric.advance_to(fabric.cycle() + std::min<uint64_t>(128, fabric.lookahead()));
    }
    bool dead() const {
      std::string pid, line;
      std::ifstream(pid_file) >> pid;
      std::ifstream stat("/proc/" + pid + "/stat");
      return !pid.empty() && (!std::getline(stat, line) || line.find(") Z ") != std::string::npos);
    }
    Fabric& fabric;
    const std::vector<uint8_t>& request;
    std::string pid_file;
    bool sent = false;
  } simulation(fabric, request, pid_file);
  FabricCapture capture(fabric, capture_file, {"a", "b"}, 4);
  Server server({}, {});
  Session session(server, simulation, {});
  CHECK(session.run({"sh", "-c", "echo $$ > " + folder + "/new; mv " + folder + "/new " + pid_file +
                                     "; exit 3"}, {}) == 3);
  capture.finish();
  CHECK(acks == 1);
  std::vector<std::pair<uint32_t, size_t>> seen;
  for (const auto& frame : read_capture(capture_file)) {
    seen.emplace_back(frame.interface, frame.bytes.size());
  }
  CHECK(seen == std::vector<std::pair<uint32_t, size_t>>{{0, 100}, {1, 100}, {1, 80}, {0, 80}});
  std::filesystem::remove_all(folder);
}

TEST_CASE("a long run shows its progress on a terminal, and only there") {
  int ends[2];
  REQUIRE(openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr) == 0);
  const UniqueFd terminal(ends[0]), program(ends[1]);
  REQUIRE(fcntl(terminal.get(), F_SETFL, O_NONBLOCK) == 0);
  const auto shown = [&] {
    char text[500];
    const ssize_t size = read(terminal.get(), text, sizeof text);
    return std::string(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  };
  const Progress::Clock::time_point start{};
  Progress progress(program.get(), start);
  progress.clear();
  CHECK(shown().empty());
  CHECK_FALSE(progress.due(start + 1999ms));
  REQUIRE(progress.due(start + 2000ms));
  progress.show(start + 2000ms, 1'234'568, 89);
  CHECK(shown() == "\r\x1b[Knicsim: simulated 1.235 ms, 89 frames\r");
  CHECK_FALSE(progress.due(start + 2499ms));
  CHECK(progress.due(start + 2500ms));
  progress.clear();
  CHECK(shown() == "\r\x1b[K");
  progress.clear();
  CHECK(shown().empty());
  const UniqueFd file(open("/dev/null", O_WRONLY | O_CLOEXEC));
  CHECK_FALSE(Progress(file.get(), start).due(start + 1000h));
}

TEST_CASE("a signal that came before the programs: they do not start") {
  const SignalBlock block;
  CHECK_FALSE(SignalBlock::waiting());
  raise(SIGTERM);
  CHECK(SignalBlock::waiting() == SIGTERM);
  CHECK(SignalBlock::take() == SIGTERM);
  CHECK_FALSE(SignalBlock::take());
  raise(SIGTERM);
  {
    Bench bench;
    CHECK(bench.run("echo x > " + bench.folder + "/file") == 128 + SIGTERM);
    CHECK_FALSE(std::filesystem::exists(bench.folder + "/file"));
    CHECK(bench.session.results().empty());
  }
  // read, and none waits any more
  CHECK_FALSE(SignalBlock::waiting());
  raise(SIGINT);
  {
    Bench bench;
    CHECK(bench.pair("  pass\n", "  pass\n") == 128 + SIGINT);
  }
}

TEST_CASE("a pair: a server that does not listen") {
  Patience patience = Bench::unhurried();
  patience.listen = 300ms;
  Bench slow(patience);
  CHECK(slow.pair("  time.sleep(1000)\n", "  pass\n") == kExitFailure);
  REQUIRE(slow.notices.size() == 1);
  CHECK(slow.notices[0].find("does not listen") != std::string::npos);
  Bench gone;
  CHECK(gone.pair("  sys.exit(4)\n", "  pass\n") == 4);
  CHECK(gone.notices.at(0).find("ended before") != std::string::npos);
  CHECK(Bench().pair("  pass\n", "  pass\n") == kExitFailure);
}

TEST_CASE("a signal reaches the programs and is the exit status; serve ends by it") {
  std::signal(SIGHUP, SIG_DFL);  // whatever started us: nohup ignores it
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Bench bench;
    const pthread_t here = pthread_self();
    std::thread killer([&] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, nullptr);
      becomes([&] { return std::filesystem::exists(bench.folder + "/runs"); });
      pthread_kill(here, signal);
    });
    CHECK(bench.run("touch " + bench.folder + "/runs; exec sleep 1000") == 128 + signal);
    REQUIRE(bench.session.results().size() == 1);
    CHECK(bench.session.results()[0].exit == 128 + signal);
    killer.join();
  }
  // as under nohup: the terminal's end is not ours
  std::signal(SIGHUP, SIG_IGN);
  {
    const SignalBlock block;
    raise(SIGHUP);
    CHECK_FALSE(SignalBlock::take());
    CHECK(Bench().run("kill -HUP $PPID $$; exit 3") == 3);  // both inherit it
  }
  std::signal(SIGHUP, SIG_DFL);
  Bench bench;
  pthread_kill(pthread_self(), SIGTERM);  // blocked: pending for the descriptor
  bench.session.serve();
  CHECK(bench.simulation.turns > 0);
}
