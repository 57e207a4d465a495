// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The socket transport: handshake, listing, memory by rings, process_vm and messages, events, many
// threads, loss of the simulator.
#include "world.hpp"

#include "fake_nic/fake_server.hpp"
#include "waiting.hpp"

#include <roci/simulator.hpp>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace roci;
using namespace roci::test;

namespace {

struct Directory {
  Directory() {
    char name[] = "/tmp/roci-test-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string socket(unsigned i) const { return format("%s/roci%u.sock", path.c_str(), i); }
  std::string path;
};

// The violations that a server's NICs saw.
void no_violations(FakeServer& server, unsigned nics) {
  for (unsigned i = 0; i < nics; ++i) {
    const std::lock_guard lock(server.fabric().mutex());
    CHECK(server.nic(i).violations() == std::vector<std::string>{});
  }
}

ibv_wc wait_long(Cq& cq) {
  ibv_wc wc{};
  REQUIRE(becomes([&] { return cq.poll(1, &wc) == 1; }));
  return wc;
}

// A connection with the shortest patience, from 100 ms on, in which the server answers: on a machine
// that is busy with other things it may need longer. `options` gets that patience.
std::unique_ptr<Transport> connect_patiently(const std::string& socket, SimulatorOptions& options) {
  for (options.timeout = std::chrono::milliseconds(100);; options.timeout *= 2) {
    try {
      return connect_simulator(socket, options);
    } catch (const Error& error) {
      // EBUSY: the attempt before still has the function
      const bool again = error.code() == ETIMEDOUT || error.code() == EBUSY;
      if (!again || options.timeout > std::chrono::minutes(1)) throw;
    }
  }
}

}  // namespace

TEST_CASE("listing takes no function, knows dead sockets, filters") {
  Directory dir;
  FakeServer server(dir.path, 3);
  std::ofstream(dir.path + "/roci7.sock");  // not even a socket
  std::ofstream(dir.path + "/roci1.sock.bak");
  std::ofstream(dir.path + "/other");
  auto nics = list_simulated_nics(dir.path, "");
  REQUIRE(nics.size() == 3);
  for (unsigned i = 0; i < 3; ++i) {
    CHECK(nics[i].name == format("roci%u", i));
    CHECK(nics[i].number == i);
    CHECK(nics[i].node_guid[7] == i + 1);
    CHECK(nics[i].mac[5] == i + 1);
    CHECK(nics[i].link_up);
    CHECK(nics[i].speed_mbps == 100000);
    CHECK(nics[i].hwif_hash == hwif::HWIF_HASH);
    CHECK(nics[i].functions_free == 3);
    REQUIRE(nics[i].gids.size() == 2);
    CHECK(nics[i].gids[1].index == 1);
    CHECK(nics[i].gids[1].gid[15] == i + 1);
    CHECK(nics[i].pkeys == std::vector<uint16_t>{0xffff, 0, 0, 0});
  }
  CHECK(list_simulated_nics(dir.path, "roci1").size() == 1);
  CHECK(list_simulated_nics(dir.path, "roci2,roci0").size() == 2);
  CHECK(list_simulated_nics(dir.path, "roci").empty());
  CHECK(list_simulated_nics("", "").empty());
  CHECK(list_simulated_nics("/nonexistent", "").empty());
}

TEST_CASE("handshake: nobody there, no function free, another protocol") {
  Directory dir;
  std::string text;
  CHECK(error_of([&] { connect_simulator(dir.socket(0)); }, &text) == ENODEV);
  CHECK(text.find(dir.socket(0)) != std::string::npos);
  {
    FakeConfig config;
    config.functions = 2;
    FakeServer server(dir.path, 1, config);
    const auto first = connect_simulator(dir.socket(0));
    CHECK(error_of([&] { connect_simulator(dir.socket(0)); }, &text) == EBUSY);
    CHECK(text.find("taken") != std::string::npos);
    CHECK(list_simulated_nics(dir.path, "")[0].functions_free == 0);
  }
  {
    FakeServerOptions options;
    options.protocol = 7;
    FakeServer server(dir.path, 1, {}, options);
    CHECK(error_of([&] { connect_simulator(dir.socket(0)); }, &text) == EPROTO);
    CHECK(text.find("7") != std::string::npos);
  }
}

TEST_CASE("messages between two programs' devices, in every way of memory") {
  const bool messages = GENERATE(false, true);
  const bool refuse = GENERATE(false, true);
  const bool scatter = GENERATE(false, true);
  if (messages && refuse) return;
  CAPTURE(messages, refuse, scatter);
  Directory dir;
  FakeServerOptions server_options;
  server_options.no_process_vm = refuse;
  FakeServer server(dir.path, 2, {}, server_options);
  DeviceOptions options;
  options.dma = scatter ? DmaPolicy::SCATTER : DmaPolicy::DIRECT;
  SimulatorOptions simulator;
  simulator.force_messages = messages;
  {
    Host a(connect_simulator(dir.socket(0), simulator), options);
    Host b(connect_simulator(dir.socket(1), simulator), options);
    Cq a_cq(a.context, {64, nullptr, false});
    Cq b_cq(b.context, {64, nullptr, false});
    Qp a_qp(a.pd, {&a_cq, &a_cq, caps(), IBV_QPT_RC, false, false});
    Qp b_qp(b.pd, {&b_cq, &b_cq, caps(), IBV_QPT_RC, false, false});
    // By the IPv4 GID: the neighbour table is asked.
    connect(a_qp, b_qp.number(), path_to(server.nic(1), 1));
    connect(b_qp, a_qp.number(), path_to(server.nic(0), 1));
    constexpr size_t SIZE = 400000;  // more pages than requests in flight
    Region local(a.pd, SIZE);
    Region remote(b.pd, SIZE);
    Random random;
    for (size_t i = 0; i < SIZE; ++i) local.buffer[i] = static_cast<uint8_t>(random());
    ibv_sge s = local.sge(17, SIZE - 100);
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &s, 1, 1);
    wr.wr.rdma.remote_addr = remote.buffer.address() + 50;
    wr.wr.rdma.rkey = remote.mr.rkey();
    REQUIRE(post(a_qp, wr) == 0);
    REQUIRE(wait_long(a_cq).status == IBV_WC_SUCCESS);
    CHECK(std::equal(local.buffer.data() + 17, local.buffer.data() + SIZE - 83,
                     remote.buffer.data() + 50));
    ibv_sge r = remote.sge(0, 100);
    REQUIRE(post_recv(b_qp, &r, 1, 2) == 0);
    s = local.sge(0, 100);
    wr = send_wr(IBV_WR_SEND, &s, 1, 3);
    REQUIRE(post(a_qp, wr) == 0);
    CHECK(wait_long(b_cq).wr_id == 2);
    CHECK(std::equal(local.buffer.data(), local.buffer.data() + 100, remote.buffer.data()));
    CHECK((server.dma_messages() != 0) == (messages || refuse));
    CHECK(server.maps(0) == a.device->dma_map().pieces() + a.device->arena().chunks());
  }
  // Both functions are free again.
  CHECK(becomes([&] { return server.clients() == 0; }));
  no_violations(server, 2);
}

TEST_CASE("events come by themselves; signals stay with the program's threads") {
  Directory dir;
  FakeServer server(dir.path, 1);
  Host host(connect_simulator(dir.socket(0)));
  CompChannel channel(host.context);
  Cq cq(host.context, {64, &channel, false});
  Qp qp(host.pd, {&cq, &cq, caps(), IBV_QPT_RC, false, false});
  connect(qp, qp.number(), path_to(server.nic(0)));
  for (int i = 0; i < 50; ++i) {
    cq.arm(false);
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, nullptr, 0, static_cast<uint64_t>(i));
    REQUIRE(post(qp, wr) == 0);
    pollfd ready{channel.fd(), POLLIN, 0};
    REQUIRE(poll(&ready, 1, 30000) == 1);
    REQUIRE(channel.get() == &cq);
    ibv_wc wc{};
    REQUIRE(cq.poll(1, &wc) == 1);
    REQUIRE(wc.wr_id == static_cast<uint64_t>(i));
  }
  // Every thread but ours blocks every signal that can be blocked.
  unsigned threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string line, name;
    while (std::getline(status, line)) {
      if (line.rfind("Name:\t", 0) == 0) name = line.substr(6);
      if (line.rfind("SigBlk:\t", 0) != 0 || name.rfind("roci-", 0) != 0) continue;
      ++threads;
      const uint64_t blocked = std::stoull(line.substr(8), nullptr, 16);
      for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGCHLD, SIGPROF}) {
        CHECK((blocked >> (signal - 1) & 1) == 1);
      }
    }
  }
  CHECK(threads == 2);
  no_violations(server, 1);
}

TEST_CASE("a failed map leaves nothing mapped") {
  Directory dir;
  FakeServerOptions server_options;
  server_options.fail_map = 70;  // the 2nd one of the second group in flight
  FakeServer server(dir.path, 1, {}, server_options);
  DeviceOptions options;
  options.dma = DmaPolicy::SCATTER;
  Host host(connect_simulator(dir.socket(0)), options);
  Buffer memory(100 * 4096);
  CHECK(error_of([&] { Mr mr(host.pd, memory.data(), memory.size(), 0, 0); }) == ENOMEM);
  CHECK(host.device->dma_map().pieces() == 0);
  CHECK(server.maps(0) == host.device->arena().chunks());
  CHECK(error_of([&] { Mr mr(host.pd, memory.data(), memory.size(), 0, 0); }) == 0);
}

TEST_CASE("a region whose memory is gone is a bus error of its queue pair, not of the simulator") {
  const bool messages = GENERATE(false, true);
  Directory dir;
  FakeServer server(dir.path, 1);
  SimulatorOptions simulator;
  simulator.force_messages = messages;
  Host host(connect_simulator(dir.socket(0), simulator));
  Cq cq(host.context, {64, nullptr, false});
  Qp qp(host.pd, {&cq, &cq, caps(), IBV_QPT_RC, false, false});
  connect(qp, qp.number(), path_to(server.nic(0)));
  void* m = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Mr mr(host.pd, m, 4096, 0, ALL_ACCESS);
  munmap(m, 4096);
  ibv_sge s{0, 100, mr.lkey()};
  ibv_send_wr wr = send_wr(IBV_WR_SEND, &s, 1, 1);
  REQUIRE(post(qp, wr) == 0);
  const ibv_wc wc = wait_long(cq);
  CHECK(wc.status == IBV_WC_LOC_QP_OP_ERR);
  CHECK(wc.vendor_err == static_cast<uint32_t>(hwif::VendorStatus::PAYLOAD_READ_BUS));
}

TEST_CASE("loss of the simulator: event, flush, errors; then a new device") {
  Directory dir;
  auto server = std::make_unique<FakeServer>(dir.path, 1);
  Host host(connect_simulator(dir.socket(0)));
  CompChannel channel(host.context);
  Cq cq(host.context, {64, &channel, false});
  Qp qp(host.pd, {&cq, &cq, caps(), IBV_QPT_RC, false, false});
  connect(qp, qp.number(), path_to(server->nic(0)));
  Region region(host.pd, 4096);
  {
    const std::lock_guard lock(server->fabric().mutex());
    server->nic(0).freeze(true);
  }
  for (uint64_t i = 0; i < 5; ++i) {
    ibv_send_wr wr = send_wr(IBV_WR_SEND, nullptr, 0, i, 0);
    REQUIRE(post(qp, wr) == 0);
    REQUIRE(post_recv(qp, nullptr, 0, 100 + i) == 0);
  }
  cq.arm(false);
  // Somebody waits for an answer just then.
  {
    const std::lock_guard lock(server->fabric().mutex());
    server->nic(0).hold(hwif::AdminOpcode::QUERY_PORT);
  }
  int error = 0;
  std::thread waiting([&] { error = error_of([&] { host.device->query_port(); }); });
  REQUIRE(becomes([&] { return server->nic(0).waiting(hwif::AdminOpcode::QUERY_PORT) == 1; }));
  server->cut_connections();
  waiting.join();
  CHECK(error == EIO);
  const auto event = host.context.get_async_event();
  REQUIRE(event);
  CHECK(event->type == hwif::EqeType::DEVICE_FATAL);
  CHECK(channel.get() == &cq);
  std::vector<uint64_t> ids;
  ibv_wc wc{};
  while (cq.poll(1, &wc) == 1) {
    CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
    ids.push_back(wc.wr_id);
  }
  CHECK(ids == std::vector<uint64_t>{0, 1, 2, 3, 4, 100, 101, 102, 103, 104});
  CHECK(error_of([&] { Pd pd(host.context); }) == EIO);
  CHECK(error_of([&] { Mr mr(host.pd, region.buffer.data(), 1, 0, 0); }) == EIO);
  CHECK(error_of([&] { qp.destroy(); }) == 0);
  // The NIC is still there for a new connection.
  {
    const std::lock_guard lock(server->fabric().mutex());
    server->nic(0).release();
  }
  Host again(connect_simulator(dir.socket(0)));
  CHECK(again.device->query_port().active);
}

TEST_CASE("loss at any moment: EIO for what fails, whatever destroys has nothing to do") {
  for (int round = 0; round < 10; ++round) {
    Directory dir;
    FakeServer server(dir.path, 1);
    Host host(connect_simulator(dir.socket(0)));
    // Each does one thing until it fails.
    std::vector<std::function<void()>> verbs;
    verbs.emplace_back([&] { host.device->query_port(); });
    verbs.emplace_back([&] { host.device->clock(); });
    verbs.emplace_back([&] { host.device->resolve(Gid{{0x20, 1, 0xd, 0xb8}}); });
    verbs.emplace_back([&] { host.device->gid_table(); });
    std::atomic<int> not_destroyed{0};
    const auto destroy = [&](auto& object) { not_destroyed += error_of([&] { object.destroy(); }) != 0; };
    Buffer memory(8 * 4096);
    verbs.emplace_back([&] {
      Mr mr(host.pd, memory.data(), memory.size(), memory.address(), ALL_ACCESS);
      destroy(mr);
    });
    verbs.emplace_back([&] {
      Cq cq(host.context, {4096, nullptr, false});
      Qp qp(host.pd, {&cq, &cq, caps(), IBV_QPT_RC, false, false});
      destroy(qp);
      destroy(cq);
    });
    verbs.emplace_back([&] {
      Pd pd(host.context);
      destroy(pd);
    });
    // long after the loss is noticed on any machine
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(4);
    std::vector<std::atomic<int>> done(verbs.size());
    std::vector<int> errors(verbs.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < verbs.size(); ++i) {
      threads.emplace_back([&, i] {
        do {
          errors[i] = error_of(verbs[i]);
          if (errors[i] == EHOSTUNREACH) errors[i] = 0;  // of resolve: it was asked
          ++done[i];
        } while (errors[i] == 0 && std::chrono::steady_clock::now() < end);
      });
    }
    const auto all = [&] {
      return std::all_of(done.begin(), done.end(), [&](int n) { return n > round; });
    };
    CHECK(becomes(all));
    server.cut_connections();
    for (auto& thread : threads) thread.join();
    CAPTURE(round);
    // gid_table() may answer from its copy until the device has noticed.
    CHECK(errors == std::vector<int>(verbs.size(), EIO));
    CHECK(not_destroyed == 0);
  }
}

TEST_CASE("threads: each with its queue pair, and all with one") {
  Directory dir;
  FakeServer server(dir.path, 1);
  Host host(connect_simulator(dir.socket(0)));
  Cq shared_cq(host.context, {1024, nullptr, false});
  Qp shared_qp(host.pd, {&shared_cq, &shared_cq, caps(256), IBV_QPT_RC, false, false});
  connect(shared_qp, shared_qp.number(), path_to(server.nic(0)));
  Region region(host.pd, 4096);
  constexpr int THREADS = 3;
  constexpr int EACH = 200;
  std::atomic<int> failures{0};
  std::atomic<int> shared_completed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < THREADS; ++t) {
    threads.emplace_back([&] {
      Cq cq(host.context, {64, nullptr, false});
      Qp qp(host.pd, {&cq, &cq, caps(16), IBV_QPT_RC, false, false});
      try {
        roci::test::connect(qp, qp.number(), path_to(server.nic(0)));
      } catch (const Error&) {
        ++failures;
        return;
      }
      Buffer own(4096);
      Mr mr(host.pd, own.data(), 4096, own.address(), ALL_ACCESS);
      for (int i = 0; i < EACH; ++i) {
        own[0] = static_cast<uint8_t>(i);
        ibv_sge s{own.address(), 1, mr.lkey()};
        ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &s, 1, static_cast<uint64_t>(i));
        wr.wr.rdma.remote_addr = own.address() + 100;
        wr.wr.rdma.rkey = mr.rkey();
        ibv_send_wr* bad = nullptr;
        failures += qp.post_send(&wr, &bad) != 0;
        ibv_send_wr shared = send_wr(IBV_WR_RDMA_WRITE, nullptr, 0, 1);
        while (shared_qp.post_send(&shared, &bad) == ENOMEM) std::this_thread::yield();
        ibv_wc wc{};
        while (cq.poll(1, &wc) == 0) {
        }
        failures += wc.status != IBV_WC_SUCCESS || wc.wr_id != static_cast<uint64_t>(i) ||
                    own[100] != static_cast<uint8_t>(i);
        ibv_wc many[16];
        shared_completed += shared_cq.poll(16, many);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ibv_wc wc{};
  CHECK(becomes([&] { return (shared_completed += shared_cq.poll(1, &wc)) >= THREADS * EACH; }));
  CHECK(failures == 0);
  CHECK(shared_completed == THREADS * EACH);
  no_violations(server, 1);
}

TEST_CASE("what is no vfio-user server ends the connection, not the program") {
  Directory dir;
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, dir.socket(0).c_str());
  REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(listener, 4) == 0);
  std::thread garbage([&] {
    for (int i = 0; i < 2; ++i) {
      const int fd = accept(listener, nullptr, nullptr);
      const char text[] = "HTTP/1.1 400 Bad Request\r\n\r\n, and so on for a while";
      [[maybe_unused]] const ssize_t n = write(fd, text, sizeof text);
      char byte = 0;
      while (read(fd, &byte, 1) > 0) {
      }
      close(fd);
    }
  });
  CHECK(error_of([&] { connect_simulator(dir.socket(0)); }) == ENODEV);
  CHECK(list_simulated_nics(dir.path, "").empty());
  garbage.join();
  close(listener);
}

TEST_CASE("a server that takes the connection and says nothing") {
  Directory dir;
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, dir.socket(0).c_str());
  REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(listener, 4) == 0);
  SimulatorOptions options;
  options.timeout = std::chrono::milliseconds(150);
  CHECK(error_of([&] { connect_simulator(dir.socket(0), options); }) == ETIMEDOUT);
  close(listener);
}

TEST_CASE("a quiet connection lasts longer than the patience of its beginning") {
  Directory dir;
  FakeServer server(dir.path, 1);
  SimulatorOptions options;
  const auto transport = connect_patiently(dir.socket(0), options);
  // Silence cannot be seen otherwise; a connection that does not last ends within this time.
  std::this_thread::sleep_for(2 * options.timeout);
  CHECK_FALSE(transport->lost());
}

TEST_CASE("loss: the handler has ended before another one is set, and comes after those who wait") {
  Directory dir;
  FakeServer server(dir.path, 1);
  {
    auto transport = connect_simulator(dir.socket(0));
    std::atomic<bool> begun{false}, ended{false};
    transport->on_loss([&, caller = this_thread()] {
      begun = true;
      becomes([&] { return waits_for_thread(caller); });
      ended = true;
    });
    server.cut_connections();
    CHECK(becomes([&] { return begun.load(); }));
    transport->on_loss(nullptr);
    CHECK(ended);
    bool at_once = false;
    transport->on_loss([&] { at_once = true; });
    CHECK(at_once);
  }
  SimulatorOptions options;
  options.timeout = std::chrono::minutes(5);  // the loss ends the wait, not this
  const auto transport = connect_simulator(dir.socket(0), options);
  std::atomic<bool> reader_ended{false}, saw_it{false}, handled{false};
  transport->on_loss([&] {
    // As a handler would that needs a lock of the one that waits.
    saw_it = becomes([&] { return reader_ended.load(); });
    handled = true;
  });
  server.ignore_reads();
  int error = 0;
  std::thread reader([&] {
    error = error_of([&] { transport->bar_read(0); });
    reader_ended = true;
  });
  CHECK(becomes([&] { return server.ignored_reads() == 1; }));
  server.cut_connections();
  reader.join();
  CHECK(error == EIO);
  CHECK(becomes([&] { return handled.load(); }));
  CHECK(saw_it);
}

TEST_CASE("a simulator that stops to answer: who notices is told so, then the device is lost") {
  Directory dir;
  FakeServer server(dir.path, 1);
  SimulatorOptions options;
  const auto transport = connect_patiently(dir.socket(0), options);
  server.ignore_reads();
  CHECK(error_of([&] { transport->bar_read(0); }) == ETIMEDOUT);
  CHECK(becomes([&] { return transport->lost(); }));
  CHECK(error_of([&] { transport->bar_read(0); }) == EIO);
  CHECK(error_of([&] { transport->resolve(Gid{{1}}); }) == EIO);
  CHECK(transport->lost());
  CHECK(error_of([&] { transport->bar_write(0, 0); }) == EIO);
}

TEST_CASE("fork while a thread of the parent waits for an answer") {
  Directory dir;
  FakeServer server(dir.path, 1);
  auto device = open_shared_device(dir.socket(0));
  auto context = std::make_unique<Context>(device);
  std::thread waiting;
  pid_t child = 0;
  {
    const std::lock_guard lock(server.fabric().mutex());
    std::atomic<pid_t> reader{0};
    waiting = std::thread([&] {
      reader = this_thread();
      device->clock();
    });
    CHECK(becomes([&] { return reader != 0 && waits_for_thread(reader); }));
    child = fork();
    if (child == 0) {
      alarm(120);  // what it must not wait for never comes
      context.reset();
      device.reset();
      _exit(0);
    }
  }
  waiting.join();
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(device->query_port().active);
}

TEST_CASE("fork: the child loses all without disturbing the parent, and opens afresh") {
  Directory dir;
  FakeServer server(dir.path, 1);
  auto device = open_shared_device(dir.socket(0));
  CHECK(open_shared_device(dir.socket(0)) == device);
  CHECK(server.clients() == 1);
  Context context(device);
  Pd pd(context);
  CompChannel channel(context);
  Cq cq(context, {64, &channel, false});
  Qp qp(pd, {&cq, &cq, caps(), IBV_QPT_RC, false, false});
  connect(qp, qp.number(), path_to(server.nic(0)));
  Region region(pd, 4096);
  const auto roundtrip = [](Qp& on, Cq& from) {
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, nullptr, 0, 5);
    ibv_send_wr* bad = nullptr;
    if (on.post_send(&wr, &bad) != 0) return false;
    ibv_wc wc{};
    return becomes([&] { return from.poll(1, &wc) == 1; }) && wc.status == IBV_WC_SUCCESS &&
           wc.wr_id == 5;
  };
  CHECK(roundtrip(qp, cq));
  for (int round = 0; round < 3; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      // No Catch2 in here: the exit status tells the first wrong step.
      ibv_wc wc{};
      ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, nullptr, 0, 5);
      ibv_send_wr* bad = nullptr;
      if (qp.post_send(&wr, &bad) != EINVAL) _exit(1);
      if (cq.poll(1, &wc) != 0) _exit(2);
      if (error_of([&] { Pd other(context); }) != EIO) _exit(3);
      if (error_of([&] { qp.destroy(); }) != 0) _exit(4);
      if (error_of([&] { cq.destroy(); }) != 0) _exit(5);
      if (error_of([&] { region.mr.destroy(); }) != 0) _exit(6);
      try {
        auto own = open_shared_device(dir.socket(0));
        if (own == device) _exit(7);
        Context own_context(own);
        Pd own_pd(own_context);
        Cq own_cq(own_context, {64, nullptr, false});
        Qp own_qp(own_pd, {&own_cq, &own_cq, caps(), IBV_QPT_RC, false, false});
        const ibv_qp_attr init = attributes(IBV_QPS_INIT, own_qp.number(), path_to(server.nic(0)));
        own_qp.modify(init, TO_INIT);
        own_qp.modify(attributes(IBV_QPS_RTR, own_qp.number(), path_to(server.nic(0))), TO_RTR);
        own_qp.modify(attributes(IBV_QPS_RTS, own_qp.number(), path_to(server.nic(0))), TO_RTS);
        if (!roundtrip(own_qp, own_cq)) _exit(8);
      } catch (const std::exception&) {
        _exit(9);
      }
      _exit(0);
    }
    // The parent works on meanwhile.
    for (int i = 0; i < 20; ++i) CHECK(roundtrip(qp, cq));
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(roundtrip(qp, cq));
    CHECK(device->query_port().active);
  }
  no_violations(server, 1);
}
