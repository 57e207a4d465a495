// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Programs, pairs, signals and exit codes of nicsim, with a simulation that always rests.
#include "nicsim/options.hpp"
#include "nicsim/session.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

using namespace roci;
using namespace roci::sim;
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
  explicit Bench(Patience patience = {})
      : server({}, {}),
        session(server, simulation, [this](const std::string& text) { notices.push_back(text); },
                patience) {
    char name[] = "/tmp/nicsim-test-XXXXXX";
    folder = mkdtemp(name);
  }
  ~Bench() { std::filesystem::remove_all(folder); }
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
  Patience patience;
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
  Patience patience;
  patience.listen = 300ms;
  patience.end = 300ms;
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
  for (const int signal : {SIGINT, SIGTERM}) {
    Bench bench;
    const pthread_t here = pthread_self();
    std::thread killer([&] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, nullptr);
      std::this_thread::sleep_for(200ms);
      pthread_kill(here, signal);
    });
    CHECK(bench.run("exec sleep 1000") == 128 + signal);
    CHECK(bench.session.results()[0].exit == 128 + signal);
    killer.join();
  }
  Bench bench;
  pthread_kill(pthread_self(), SIGTERM);  // blocked: pending for the descriptor
  bench.session.serve();
  CHECK(bench.simulation.turns > 0);
}
