// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Foreign ports of nicsim on a fabric without RTL: peers that come, go, never come, send rubbish, do not
// read; two of them through the switch.
#include "fabric_bench.hpp"
#include "nicsim/foreign.hpp"

#include "../host/waiting.hpp"

#include <roci/error.hpp>

#include <catch2/catch.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

using namespace roci;
using namespace roci::sim;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// Another implementation: a datagram socket of its own.
class Peer {
 public:
  // Without `own` it has no name.
  Peer(const std::string& port, const std::string& own = "") : to_(address_of(port)) {
    fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    REQUIRE(fd_ >= 0);
    if (own.empty()) return;
    fs::remove(own);
    const sockaddr_un address = address_of(own);
    REQUIRE(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~Peer() { close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // @return false: the port takes nothing now
  bool send(const Bytes& frame) {
    return sendto(fd_, frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to_),
                  sizeof to_) == static_cast<ssize_t>(frame.size());
  }
  std::vector<Bytes> received() {
    std::vector<Bytes> out;
    Bytes frame(65536);
    for (ssize_t size; (size = recv(fd_, frame.data(), frame.size(), 0)) >= 0;) {
      out.emplace_back(frame.begin(), frame.begin() + size);
    }
    return out;
  }

 private:
  int fd_ = -1;
  sockaddr_un to_;
};

// `near` ports of the fabric without a socket, and foreign ones behind them.
struct Bench {
  explicit Bench(size_t near, size_t foreign, FabricConfig config = {}) {
    char name[] = "/tmp/foreign-test-XXXXXX";
    folder = mkdtemp(name);
    config.ports = near + foreign;
    config.topology = Topology::switched;
    fabric = std::make_unique<Fabric>(config);
    for (size_t p = 0; p < near; ++p) {
      fabric->learn(mac_number(p), p);
      seen.emplace_back();
      fabric->port(p).on_frame([this, p](const ReceivedFrame& frame) {
        seen[p].emplace_back(frame.bytes.begin(), frame.bytes.end());
      });
    }
    for (size_t i = 0; i < foreign; ++i) {
      ports.push_back(std::make_unique<ForeignPort>(
          path(i), [this](const std::string& text) { notices.push_back(text); }));
      ports.back()->attach(fabric->port(near + i));
    }
  }
  ~Bench() {
    ports.clear();
    fs::remove_all(folder);
  }
  std::string path(size_t port) const { return folder + "/port" + std::to_string(port); }
  std::string own(const std::string& name) const { return folder + "/" + name; }
  bool told(const std::string& text) const {
    return std::any_of(notices.begin(), notices.end(), [&](const std::string& notice) {
      return notice.find(text) != std::string::npos;
    });
  }
  // Until nothing is under way, as the loop of nicsim does; time of day is `now`.
  void settle() {
    do {
      for (const auto& port : ports) port->receive(now);
      for (unsigned n = 0; n < 128 && fabric->busy(); ++n) fabric->step();
      for (const auto& port : ports) port->send(now);
    } while (fabric->busy());
  }

  std::string folder;
  std::unique_ptr<Fabric> fabric;
  std::vector<std::vector<Bytes>> seen;
  std::vector<std::string> notices;
  std::vector<std::unique_ptr<ForeignPort>> ports;
  ForeignPort::Clock::time_point now = ForeignPort::Clock::now();
};

Bytes frame(size_t from, size_t to, uint32_t psn = 0, size_t payload = 64) {
  return wirecodec::encode(roce(from, to, 0x0a, 5, psn, payload));
}

int error_of(const std::function<void()>& call, std::string* text = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (text != nullptr) *text = error.what();
    return error.code();
  }
  return 0;
}

}  // namespace

TEST_CASE("a peer and a near port exchange frames; the peer is known from its first datagram") {
  Bench bench(2, 1);
  bench.fabric->port(0).send(frame(0, 2));  // an unknown address: flooded, but nobody is there
  bench.settle();
  CHECK(bench.ports[0]->counters().no_peer == 1);
  CHECK(bench.seen[1].size() == 1);

  Peer peer(bench.path(0), bench.own("peer"));
  REQUIRE(peer.send(frame(2, 0, 1)));
  bench.settle();
  CHECK(bench.seen[0] == std::vector<Bytes>{frame(2, 0, 1)});
  CHECK(bench.told("the peer is " + bench.own("peer")));
  bench.fabric->port(0).send(frame(0, 2, 2));  // learnt: no flooding
  bench.fabric->port(0).send(frame(0, 9, 3));  // flooded
  bench.fabric->port(0).send(frame(0, 1, 4));  // not for it
  bench.settle();
  CHECK(peer.received() == std::vector<Bytes>{frame(0, 2, 2), frame(0, 9, 3)});
  CHECK(bench.seen[1].size() == 3);
  const ForeignCounters& counters = bench.ports[0]->counters();
  CHECK(counters.received == 1);
  CHECK(counters.sent == 2);
  CHECK(counters.no_peer == 1);
  CHECK(bench.ports[0]->describe() ==
        "foreign " + bench.path(0) + ": 1 frames from it, 2 to it; dropped: 1 without a peer");
  CHECK(bench.fabric->link_counters(2).frames == 4);  // the links of the fabric count it, too
}

TEST_CASE("an empty datagram is a greeting: from then on the peer gets what is flooded") {
  Bench bench(1, 1);
  Peer peer(bench.path(0), bench.own("peer"));
  REQUIRE(peer.send({}));
  bench.settle();
  bench.fabric->port(0).send(frame(0, 7));
  bench.settle();
  CHECK(peer.received() == std::vector<Bytes>{frame(0, 7)});
  CHECK(bench.ports[0]->counters().received == 0);
  CHECK(bench.ports[0]->counters().runt == 0);
}

TEST_CASE("two foreign ports talk through the switch, in order, many frames") {
  Bench bench(1, 2);
  Peer a(bench.path(0), bench.own("a")), b(bench.path(1), bench.own("b"));
  REQUIRE(b.send({}));
  bench.settle();
  std::vector<Bytes> sent, back, got, got_back;
  for (uint32_t n = 0; n < 300; ++n) {
    sent.push_back(frame(1, 2, n, n));
    while (!a.send(sent.back())) bench.settle();
    back.push_back(frame(2, 1, 1000 + n, 1500));
    while (!b.send(back.back())) bench.settle();
    bench.settle();
    for (auto& f : b.received()) got.push_back(std::move(f));
    for (auto& f : a.received()) got_back.push_back(std::move(f));
  }
  CHECK(got == sent);
  CHECK(got_back == back);
  CHECK(bench.seen[0].size() == 1);  // the first one: nobody knew b
}

TEST_CASE("what is no frame is dropped and counted, what just is one passes") {
  Bench bench(1, 1);
  Peer peer(bench.path(0), bench.own("peer"));
  const auto sized = [](size_t bytes) {
    Bytes out(bytes, 0xff);  // to everybody
    return out;
  };
  for (const size_t bytes : {1u, 13u, 14u, 60u, 9022u, 9023u, 60000u}) {
    REQUIRE(peer.send(sized(bytes)));
    bench.settle();
  }
  CHECK(bench.seen[0] == std::vector<Bytes>{sized(14), sized(60), sized(9022)});
  CHECK(bench.ports[0]->counters().runt == 2);
  CHECK(bench.ports[0]->counters().oversize == 2);
  CHECK(bench.ports[0]->counters().received == 3);
}

TEST_CASE("a peer that goes away is no error; the next one takes its place") {
  Bench bench(1, 1);
  {
    Peer first(bench.path(0), bench.own("first"));
    REQUIRE(first.send(frame(1, 0)));
    bench.settle();
  }
  bench.fabric->port(0).send(frame(0, 1, 1));
  bench.settle();
  CHECK(bench.told("the peer is gone"));
  bench.fabric->port(0).send(frame(0, 1, 2));
  bench.settle();
  CHECK(bench.ports[0]->counters().no_peer == 2);
  CHECK(bench.ports[0]->silent(bench.now, 1h));  // nobody to wait for

  Peer second(bench.path(0), bench.own("second"));
  REQUIRE(second.send(frame(1, 0)));
  bench.settle();
  bench.fabric->port(0).send(frame(0, 1, 3));
  bench.settle();
  CHECK(second.received() == std::vector<Bytes>{frame(0, 1, 3)});
}

TEST_CASE("a second peer is refused while the first lives, whose death need not have been noticed") {
  Bench bench(1, 1);
  auto first = std::make_unique<Peer>(bench.path(0), bench.own("first"));
  REQUIRE(first->send(frame(1, 0, 1)));
  bench.settle();
  Peer second(bench.path(0), bench.own("second"));
  REQUIRE(second.send(frame(1, 0, 2)));
  REQUIRE(second.send(frame(1, 0, 2)));
  bench.settle();
  CHECK(bench.ports[0]->counters().stranger == 2);
  CHECK(bench.seen[0].size() == 1);
  CHECK(bench.notices.size() == 2);  // one line about strangers, not one per frame
  first.reset();
  REQUIRE(second.send(frame(1, 0, 3)));
  bench.settle();
  CHECK(bench.seen[0].back() == frame(1, 0, 3));
  bench.fabric->port(0).send(frame(0, 1, 4));
  bench.settle();
  CHECK(second.received() == std::vector<Bytes>{frame(0, 1, 4)});
}

TEST_CASE("a socket without a name is heard but cannot be answered") {
  Bench bench(1, 1);
  Peer peer(bench.path(0));
  REQUIRE(peer.send(frame(1, 0)));
  bench.settle();
  CHECK(bench.seen[0].size() == 1);
  CHECK(bench.told("cannot be answered"));
  bench.fabric->port(0).send(frame(0, 1));
  bench.settle();
  CHECK(bench.ports[0]->counters().no_peer == 1);
}

TEST_CASE("a slow peer loses nothing: first the port waits; a dead one holds nobody up for ever") {
  Bench bench(1, 1);
  Peer peer(bench.path(0), bench.own("peer"));
  REQUIRE(peer.send({}));
  bench.settle();
  ForeignPort& port = *bench.ports[0];
  std::vector<Bytes> sent;
  uint32_t n = 0;
  while (!port.crowded()) {
    sent.push_back(frame(0, 1, ++n));
    bench.fabric->port(0).send(sent.back());
    bench.settle();
    REQUIRE(n < 5000);
  }
  CHECK(port.waiting());
  CHECK_FALSE(port.silent(bench.now + 1h, 20ms));  // it has not even seen them
  std::vector<Bytes> got;
  while (got.size() < sent.size()) {
    for (auto& f : peer.received()) got.push_back(std::move(f));
    port.send(bench.now);
  }
  CHECK(got == sent);
  CHECK(port.counters().full == 0);

  while (!port.crowded()) {
    bench.fabric->port(0).send(frame(0, 1, ++n));
    bench.settle();
  }
  bench.now += ForeignPort::kPatience / 2;
  port.send(bench.now);
  CHECK(port.waiting());
  bench.now += ForeignPort::kPatience;
  port.send(bench.now);
  CHECK_FALSE(port.waiting());
  CHECK(port.counters().full >= ForeignPort::kCrowded);
  CHECK(bench.told("takes no frames"));
  const uint64_t before = port.counters().full;
  bench.fabric->port(0).send(frame(0, 1, ++n));  // from then on at once
  bench.settle();
  CHECK_FALSE(port.waiting());
  CHECK(port.counters().full == before + 1);
  peer.received();
  bench.fabric->port(0).send(frame(0, 1, 77));  // it reads again
  bench.settle();
  CHECK(peer.received() == std::vector<Bytes>{frame(0, 1, 77)});
}

TEST_CASE("silence: neither direction had a frame for a while") {
  Bench bench(1, 1);
  ForeignPort& port = *bench.ports[0];
  CHECK(port.silent(bench.now, 20ms));  // nobody there
  Peer peer(bench.path(0), bench.own("peer"));
  REQUIRE(peer.send(frame(1, 0)));
  bench.settle();
  CHECK_FALSE(port.silent(bench.now, 20ms));
  CHECK_FALSE(port.silent(bench.now + 19ms, 20ms));
  CHECK(port.silent(bench.now + 20ms, 20ms));
  bench.now += 1s;
  bench.fabric->port(0).send(frame(0, 1));
  bench.settle();
  CHECK_FALSE(port.silent(bench.now + 19ms, 20ms));
  CHECK(port.silent(bench.now + 20ms, 20ms));
  CHECK(port.silent(bench.now, 0ms));
}

TEST_CASE("a flood of the peer waits in its socket, not in the simulation's memory") {
  Bench bench(1, 1);
  Peer peer(bench.path(0), bench.own("peer"));
  unsigned taken = 0;
  for (unsigned n = 0; n < 200; ++n) {
    while (peer.send(frame(1, 0, taken, 4000))) ++taken;
    bench.ports[0]->receive(bench.now);
    CHECK(bench.fabric->port(1).backlog_bytes() < 16 * 1024 + 4200);
  }
  CHECK(taken < 100);  // no time has passed
  bench.settle();
  REQUIRE(bench.seen[0].size() == taken);
  CHECK(bench.seen[0].back() == frame(1, 0, taken - 1, 4000));
}

TEST_CASE("impairments of links hold for it; damaged frames end at the port") {
  FabricConfig config;
  config.link.impairments.drop = 0.2;
  config.link.impairments.corrupt = 0.2;
  config.seed = test_seed(11);
  Bench bench(1, 1, config);
  Peer peer(bench.path(0), bench.own("peer"));
  REQUIRE(peer.send({}));
  bench.settle();
  size_t got = 0;
  constexpr unsigned kFrames = 400;
  for (unsigned n = 0; n < kFrames; ++n) {
    bench.fabric->port(0).send(frame(0, 1, n));
    bench.settle();
    got += peer.received().size();
  }
  const ForeignCounters& counters = bench.ports[0]->counters();
  CHECK(bench.fabric->rx_counters(1).dropped > 20);
  CHECK(counters.bad_fcs > 10);
  CHECK(counters.sent == got);
  CHECK(bench.fabric->rx_counters(1).frames ==
        bench.fabric->rx_counters(1).dropped + counters.bad_fcs + counters.sent);
  uint64_t before = bench.fabric->tx_counters(1).dropped;
  for (unsigned n = 0; n < kFrames; ++n) {
    REQUIRE(peer.send(frame(1, 0, n)));
    bench.settle();
  }
  CHECK(bench.fabric->tx_counters(1).dropped > before + 20);
}

TEST_CASE("its socket: a live one is refused, a stale one replaced, no file harmed, gone at last") {
  Bench bench(1, 0);
  std::vector<std::string> notices;
  const Notice notice = [&](const std::string& text) { notices.push_back(text); };
  const std::string path = bench.path(0);
  std::string text;
  {
    const ForeignPort port(path, notice);
    struct stat file {};
    REQUIRE(stat(path.c_str(), &file) == 0);
    CHECK((file.st_mode & 0777) == 0600);
    CHECK(error_of([&] { ForeignPort(path, notice); }, &text) == EADDRINUSE);
    CHECK(text.find(path + " is served by another program") != std::string::npos);
    CHECK(text.find("--foreign") != std::string::npos);
    CHECK(fs::exists(path));
  }
  CHECK_FALSE(fs::exists(path));
  {  // somebody listens there with a stream socket
    const SocketFile stream(bench.folder, "port0", notice);
    CHECK(error_of([&] { ForeignPort(path, notice); }) == EADDRINUSE);
    CHECK(fs::exists(path));
  }
  { const Peer dead(path, path); }
  REQUIRE(fs::exists(path));
  notices.clear();
  {
    const ForeignPort port(path, notice);
    CHECK(notices == std::vector<std::string>{"replaced the stale socket " + path});
    fs::remove(path);
    const Peer other(path, path);  // who puts another one in its place keeps it
  }
  CHECK(fs::exists(path));
  std::ofstream(bench.own("file")) << "precious";
  CHECK(error_of([&] { ForeignPort(bench.own("file"), notice); }) == EEXIST);
  CHECK(fs::file_size(bench.own("file")) == 8);
  CHECK(error_of([&] { ForeignPort(bench.folder + "/", notice); }) == EINVAL);
  CHECK(error_of([&] { ForeignPort(bench.own("no/such"), notice); }) == ENOENT);
  CHECK(error_of([&] { ForeignPort(bench.own(std::string(120, 'x')), notice); }) == ENAMETOOLONG);
}
