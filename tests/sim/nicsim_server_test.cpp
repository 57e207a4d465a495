// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The simulator's server against the host stack's own client, with a NIC in software behind it.
#include "../host/waiting.hpp"
#include "../host/world.hpp"

#include "server/server.hpp"

#include <roci/simulator.hpp>

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace roci;
using namespace roci::test;
using namespace std::chrono_literals;

// Instead of libc's: the kernel has no room for one of the next descriptors, by its number from 1.
namespace {
std::atomic<int> refused_add{0};
}
extern "C" int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  if (operation == EPOLL_CTL_ADD && refused_add != 0 && --refused_add == 0) {
    errno = ENOSPC;
    return -1;
  }
  return static_cast<int>(syscall(SYS_epoll_ctl, epoll, operation, fd, event));
}

namespace {

// An own folder that goes in the end.
struct Folder {
  Folder() {
    char name[] = "/tmp/roci-test-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

sim::ServedNic served(FakeNic& nic) {
  sim::ServedNic out;
  out.nic = &nic;
  out.functions = nic.config().functions - 1;
  out.info.hwif_hash = hwif::HWIF_HASH;
  std::memcpy(out.info.mac, nic.mac().bytes, sizeof out.info.mac);
  out.info.link_up = 1;
  out.info.active_mtu = 5;
  out.info.speed_mbps = 100000;
  out.info.gid_table_length = static_cast<uint16_t>(nic.config().gids);
  for (size_t i = 0; i < nic.gids().size(); ++i) {
    const auto type = nic.gids()[i].get<hwif::GidEntry::gid_type>();
    if (type == hwif::GidType::NONE) continue;
    vfio_user::NicGid gid{};
    std::memcpy(gid.gid, nic.gids()[i].get<hwif::GidEntry::gid>().bytes, sizeof gid.gid);
    gid.index = static_cast<uint16_t>(i);
    gid.type = static_cast<uint8_t>(type);
    out.gids.push_back(gid);
  }
  out.pkeys = nic.pkeys();
  return out;
}

// Two NICs served by a thread.
struct Served {
  explicit Served(std::chrono::milliseconds deadline = 10000ms) : a(fabric, 0), b(fabric, 1) {
    sim::ServerOptions options;
    options.folder = folder.path;
    options.dma_deadline = deadline;
    std::vector<sim::ServedNic> nics{served(a), served(b)};
    nics[0].on_write = [this](unsigned, uint32_t, uint64_t) { ++writes; };
    nics[0].statistics = [this](bool json) {
      ++drawn_up;
      return std::string(json ? 40000 : 3, json ? 'j' : 't') + "!";
    };
    nics[0].on_leave = [this](unsigned function) { left = function; };
    server = std::make_unique<sim::Server>(std::move(nics), options);
    thread = std::thread([this] {
      while (!stop) {
        server->poll(busy ? 0ms : 5ms);
        const std::lock_guard lock(fabric.mutex());
        busy = fabric.step(64);
      }
    });
  }
  ~Served() {
    end();
    CHECK(a.violations() == std::vector<std::string>{});
    CHECK(b.violations() == std::vector<std::string>{});
  }
  void end() {
    stop = true;
    if (thread.joinable()) thread.join();
    server.reset();
  }
  std::string socket(unsigned nic) const {
    return folder.path + "/roci" + std::to_string(nic) + ".sock";
  }
  unsigned functions_free(FakeNic& nic) {
    const std::lock_guard lock(fabric.mutex());
    return nic.functions_free();
  }
  // Whether the number of free functions becomes this.
  bool gets_free(FakeNic& nic, unsigned free) {
    return becomes([&] { return functions_free(nic) == free; });
  }

  Folder folder;
  FakeFabric fabric;
  FakeNic a, b;
  std::atomic<unsigned> writes{0}, left{0}, drawn_up{0};
  std::unique_ptr<sim::Server> server;
  std::atomic<bool> stop{false};
  bool busy = false;
  std::thread thread;
};

// A program's memory written by one NIC's client into the other's, by the real host stack.
void transfer(Served& world, bool messages) {
  SimulatorOptions options;
  options.force_messages = messages;
  Host a(connect_simulator(world.socket(0), options));
  Host b(connect_simulator(world.socket(1), options));
  Cq a_cq(a.context, {64, nullptr, false});
  Cq b_cq(b.context, {64, nullptr, false});
  Qp a_qp(a.pd, {&a_cq, &a_cq, caps(), IBV_QPT_RC, false, false});
  Qp b_qp(b.pd, {&b_cq, &b_cq, caps(), IBV_QPT_RC, false, false});
  connect(a_qp, b_qp.number(), path_to(world.b));
  connect(b_qp, a_qp.number(), path_to(world.a));
  constexpr size_t bytes = 40000;
  Region from(a.pd, bytes);
  Region to(b.pd, bytes);
  Random random;
  for (size_t i = 0; i < bytes; ++i) from.buffer[i] = static_cast<uint8_t>(random());
  ibv_sge sge = from.sge(0, bytes);
  auto wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, 7);
  wr.wr.rdma.remote_addr = to.buffer.address();
  wr.wr.rdma.rkey = to.mr.rkey();
  ibv_send_wr* bad = nullptr;
  REQUIRE(a_qp.post_send(&wr, &bad) == 0);
  ibv_wc wc{};
  REQUIRE(becomes([&] { return a_cq.poll(1, &wc) == 1; }));
  CHECK(wc.status == IBV_WC_SUCCESS);
  CHECK(wc.wr_id == 7);
  CHECK(std::memcmp(from.buffer.data(), to.buffer.data(), bytes) == 0);
}

// A raw client, for what the host stack never does.
struct Raw {
  explicit Raw(const std::string& path) : fd(vfio_user::connect_to(path)) { REQUIRE(fd); }
  void send(uint16_t command, const std::vector<uint8_t>& body, std::vector<int> fds = {}) {
    const vfio_user::Header header{
        ++id, command, static_cast<uint32_t>(sizeof(vfio_user::Header) + body.size()), 0, 0};
    const std::span<const uint8_t> parts[] = {body};
    REQUIRE(vfio_user::send_message(fd.get(), header, parts, fds));
  }
  // errno of the answer; -1: the connection is gone
  int answer() {
    if (!vfio_user::receive_message(fd.get(), reply)) return -1;
    return static_cast<int>(reply.header.error);
  }
  template <class T>
  int ask(vfio_user::Command command, const T& body, std::vector<int> fds = {}) {
    const auto bytes = vfio_user::bytes_of(body);
    send(static_cast<uint16_t>(command), {bytes.begin(), bytes.end()}, std::move(fds));
    return answer();
  }
  int greet(const std::string& json = "{}") {
    std::vector<uint8_t> body(sizeof(vfio_user::Version));
    const vfio_user::Version version{0, 1};
    std::memcpy(body.data(), &version, sizeof version);
    body.insert(body.end(), json.c_str(), json.c_str() + json.size() + 1);
    send(1, body);
    return answer();
  }
  UniqueFd fd;
  uint16_t id = 0;
  vfio_user::Message reply;
};

}  // namespace

TEST_CASE("a NIC tells what it is without giving a function away") {
  Served world;
  const auto nics = list_simulated_nics(world.folder.path, "");
  REQUIRE(nics.size() == 2);
  CHECK(nics[0].name == "roci0");
  CHECK(nics[0].mac == world.a.mac());
  CHECK(nics[1].mac == world.b.mac());
  CHECK(nics[0].hwif_hash == hwif::HWIF_HASH);
  CHECK(nics[0].functions_free == world.a.config().functions - 1);
  CHECK(nics[0].pkeys == world.a.pkeys());
  REQUIRE_FALSE(nics[0].gids.empty());
  CHECK(nics[0].gids[0].gid == world.a.gids()[0].get<hwif::GidEntry::gid>());
  CHECK(list_simulated_nics(world.folder.path, "roci1").size() == 1);
  CHECK(world.functions_free(world.a) == world.a.config().functions - 1);
}

TEST_CASE("statistics come in pieces, of one moment, and take no function") {
  Served world;
  const unsigned free = world.functions_free(world.a);
  using vfio_user::Command;
  Raw raw(world.socket(0));
  REQUIRE(raw.greet("{\"capabilities\":{\"roci\":{\"role\":\"query\"}}}") == 0);
  CHECK(world.functions_free(world.a) == free);
  std::string text;
  uint32_t total = 1;
  unsigned pieces = 0;
  for (; text.size() < total; ++pieces) {
    REQUIRE(raw.ask(Command::ROCI_STATISTICS,
                    vfio_user::Statistics{vfio_user::STATISTICS_JSON,
                                          static_cast<uint32_t>(text.size())}) == 0);
    vfio_user::StatisticsReply answer{};
    REQUIRE(raw.reply.body.size() > sizeof answer);
    std::memcpy(&answer, raw.reply.body.data(), sizeof answer);
    total = answer.total;
    text.append(raw.reply.body.begin() + sizeof answer, raw.reply.body.end());
  }
  CHECK(text == std::string(40000, 'j') + "!");
  CHECK(pieces == 3);
  CHECK(world.drawn_up == 1);
  const vfio_user::Statistics table{vfio_user::STATISTICS_TABLE, 0};
  CHECK(raw.ask(Command::ROCI_STATISTICS, table) == 0);
  CHECK(std::string(raw.reply.body.begin() + sizeof(vfio_user::StatisticsReply),
                    raw.reply.body.end()) == "ttt!");
  CHECK(raw.ask(Command::ROCI_STATISTICS, vfio_user::Statistics{0, 5}) == EINVAL);
  CHECK(raw.ask(Command::ROCI_STATISTICS, vfio_user::Statistics{2, 0}) == EINVAL);
  CHECK(raw.ask(Command::ROCI_STATISTICS, uint32_t{0}) == EINVAL);
  Raw other(world.socket(1));  // has none
  REQUIRE(other.greet("{\"capabilities\":{\"roci\":{\"role\":\"query\"}}}") == 0);
  CHECK(other.ask(Command::ROCI_STATISTICS, table) == ENOTSUP);
}

TEST_CASE("the host stack transfers through the socket, memory by the kernel") {
  Served world;
  transfer(world, false);
  CHECK(world.writes > 0);
  CHECK(world.gets_free(world.a, world.a.config().functions - 1));
  CHECK(world.left == 1);
}

TEST_CASE("the host stack transfers through the socket, memory by messages") {
  Served world;
  transfer(world, true);
}

TEST_CASE("all functions taken is EBUSY, one given back can be taken again") {
  Served world;
  std::vector<std::unique_ptr<Transport>> taken;
  for (unsigned i = 0; i + 1 < world.a.config().functions; ++i) {
    taken.push_back(connect_simulator(world.socket(0)));
  }
  CHECK(query_simulated_nic(world.socket(0)).functions_free == 0);
  std::string text;
  CHECK(error_of([&] { connect_simulator(world.socket(0)); }, &text) == EBUSY);
  taken.pop_back();
  REQUIRE(world.gets_free(world.a, 1));
  CHECK(error_of([&] { taken.push_back(connect_simulator(world.socket(0))); }) == 0);
}

TEST_CASE("the death of a program gives its function back, even if a child keeps the socket") {
  Served world;
  const unsigned all = world.a.config().functions - 1;
  int pipes[2];
  REQUIRE(pipe(pipes) == 0);
  const pid_t program = fork();
  if (program == 0) {
    const int fd = vfio_user::connect_to(world.socket(0)).release();
    const char json[] = "{}";
    uint8_t message[sizeof(vfio_user::Header) + 4 + sizeof json] = {};
    const vfio_user::Header header{1, 1, sizeof message, 0, 0};
    std::memcpy(message, &header, sizeof header);
    message[sizeof header + 2] = 1;
    std::memcpy(message + sizeof header + 4, json, sizeof json);
    char answer = 0;
    if (write(fd, message, sizeof message) < 0 || read(fd, &answer, 1) < 0) _exit(1);
    if (fork() == 0) {  // inherits the socket
      pause();
      _exit(0);
    }
    if (write(pipes[1], "x", 1) < 0) _exit(1);
    pause();
  }
  // the grandchild dies with the pipe's last reader: it is ended by its group below
  char ready = 0;
  REQUIRE(read(pipes[0], &ready, 1) == 1);
  REQUIRE(world.functions_free(world.a) == all - 1);
  std::ifstream children("/proc/" + std::to_string(program) + "/task/" + std::to_string(program) +
                         "/children");
  pid_t grandchild = 0;
  children >> grandchild;
  REQUIRE(grandchild > 0);
  kill(program, SIGKILL);
  CHECK(world.gets_free(world.a, all));
  CHECK(kill(grandchild, 0) == 0);
  kill(grandchild, SIGKILL);
  waitpid(program, nullptr, 0);
  close(pipes[0]);
  close(pipes[1]);
}

TEST_CASE("what breaks the protocol ends the connection, what is wrong is refused") {
  Served world;
  SECTION("a command before VERSION") {
    Raw client(world.socket(0));
    client.send(4, std::vector<uint8_t>(16));
    CHECK(client.answer() == -1);
  }
  SECTION("a length that cannot be") {
    Raw client(world.socket(0));
    const vfio_user::Header header{1, 1, 4, 0, 0};
    REQUIRE(vfio_user::send_message(client.fd.get(), header, {}, {}));
    CHECK(client.answer() == -1);
  }
  SECTION("another version gets ours and no function") {
    Raw client(world.socket(0));
    CHECK(client.greet("{\"roci_protocol\":99}") == 0);
    CHECK(world.functions_free(world.a) == world.a.config().functions - 1);
    CHECK(client.ask(vfio_user::Command::DEVICE_RESET, uint32_t{0}) == EPERM);
  }
  SECTION("a message in pieces is whole in the end") {
    Raw client(world.socket(0));
    uint8_t message[sizeof(vfio_user::Header) + 7] = {1, 0, 1, 0, 23};
    message[sizeof(vfio_user::Header) + 2] = 1;
    std::memcpy(message + sizeof(vfio_user::Header) + 4, "{}", 3);
    for (const uint8_t byte : message) {
      REQUIRE(write(client.fd.get(), &byte, 1) == 1);
      // until it is taken
      int left = 0;
      REQUIRE(becomes([&] { return ioctl(client.fd.get(), SIOCOUTQ, &left) == 0 && left == 0; }));
    }
    CHECK(client.answer() == 0);
    CHECK(world.functions_free(world.a) == world.a.config().functions - 2);
  }
  SECTION("maps and registers") {
    Raw client(world.socket(0));
    REQUIRE(client.greet() == 0);
    using vfio_user::Command;
    vfio_user::DmaMap map{32, 3, 0, 0x10000, 0x2000};
    CHECK(client.ask(Command::DMA_MAP, map) == 0);
    map.address = 0x11000;
    CHECK(client.ask(Command::DMA_MAP, map) == EEXIST);
    map.address = 0xf000;
    CHECK(client.ask(Command::DMA_MAP, map) == EEXIST);
    map = {32, 3, 0, 0x20000, 0x800};
    CHECK(client.ask(Command::DMA_MAP, map) == EINVAL);
    map = {32, 3, 0, ~uint64_t{0xfff}, 0x2000};
    CHECK(client.ask(Command::DMA_MAP, map) == EINVAL);
    const UniqueFd file(memfd_create("short", MFD_ALLOW_SEALING));
    REQUIRE(ftruncate(file.get(), 0x1000) == 0);
    map = {32, 3, 0, 0x40000, 0x1000};
    CHECK(client.ask(Command::DMA_MAP, map, {file.get()}) == EPERM);  // it could get shorter
    const UniqueFd other(open(world.folder.path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (other) CHECK(client.ask(Command::DMA_MAP, map, {other.get()}) == EPERM);
    REQUIRE(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    map.size = 0x2000;
    CHECK(client.ask(Command::DMA_MAP, map, {file.get()}) == EINVAL);
    map.size = 0x1000;
    CHECK(client.ask(Command::DMA_MAP, map, {file.get()}) == 0);
    CHECK(client.ask(Command::DMA_UNMAP, vfio_user::DmaUnmap{24, 0, 0x11000, 0x1000}) == EINVAL);
    CHECK(client.ask(Command::DMA_UNMAP, vfio_user::DmaUnmap{24, 0, 0x80000, 0x1000}) == ENOENT);
    CHECK(client.ask(Command::DMA_UNMAP, vfio_user::DmaUnmap{24, 0, 0x10000, 0x2000}) == 0);
    CHECK(client.ask(Command::DMA_UNMAP, vfio_user::DmaUnmap{24, 2, 0, 0}) == 0);
    CHECK(client.ask(Command::REGION_READ,
                     vfio_user::RegionAccess{hwif::csr::BYTES, 0, 8}) == EINVAL);
    CHECK(client.ask(Command::REGION_READ, vfio_user::RegionAccess{0, 1, 8}) == EINVAL);
    CHECK(client.ask(Command::REGION_READ, vfio_user::RegionAccess{0, 0, 8}) == 0);
    uint64_t value = 0;
    std::memcpy(&value, client.reply.body.data() + 16, sizeof value);
    CHECK(value == hwif::HWIF_HASH);
    CHECK(client.ask(Command::REGION_READ, vfio_user::RegionAccess{0, 0, 4}) == 0);
    std::memcpy(&value, client.reply.body.data() + 12, sizeof value);
    CHECK(value >> 32 == 0);
    client.send(99, {});
    CHECK(client.answer() == ENOTSUP);
  }
}

TEST_CASE("interrupts go to eventfds that do not block, and to nothing else") {
  Served world;
  Raw client(world.socket(0));
  REQUIRE(client.greet() == 0);
  const vfio_user::IrqSet set{sizeof(vfio_user::IrqSet),
                              vfio_user::IRQ_DATA_EVENTFD | vfio_user::IRQ_ACTION_TRIGGER,
                              vfio_user::IRQ_MSIX, 0, 1};
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  const UniqueFd reader(ends[0]), writer(ends[1]);
  const UniqueFd blocks(eventfd(0, EFD_CLOEXEC));
  const UniqueFd good(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  CHECK(client.ask(vfio_user::Command::DEVICE_SET_IRQS, set, {writer.get()}) == EINVAL);
  CHECK(client.ask(vfio_user::Command::DEVICE_SET_IRQS, set, {client.fd.get()}) == EINVAL);
  CHECK(client.ask(vfio_user::Command::DEVICE_SET_IRQS, set, {blocks.get()}) == EINVAL);
  CHECK(client.ask(vfio_user::Command::DEVICE_SET_IRQS, set, {good.get()}) == 0);
  vfio_user::IrqSet two = set;
  two.count = 2;
  CHECK(client.ask(vfio_user::Command::DEVICE_SET_IRQS, two, {good.get(), writer.get()}) == EINVAL);
}

TEST_CASE("an eventfd that its client makes blocking and fills holds up nobody") {
  // A NIC of which only the interrupt is wanted.
  struct Bell final : InprocNic {
    std::recursive_mutex& mutex() override { return lock; }
    std::optional<unsigned> attach(InprocMemory&, std::function<void(unsigned)> raise) override {
      ring = std::move(raise);
      return 1;
    }
    void detach(unsigned) override {}
    uint64_t bar_read(unsigned, uint32_t) override { return 0; }
    void bar_write(unsigned, uint32_t, uint64_t) override {}
    void step(uint64_t) override {}
    std::optional<Neighbour> resolve(const Gid&) override { return std::nullopt; }
    std::recursive_mutex lock;
    std::function<void(unsigned)> ring;
  } nic;
  Folder folder;
  sim::ServedNic served;
  served.nic = &nic;
  served.functions = 1;
  sim::Server server({served}, {folder.path, {}});
  Raw client(folder.path + "/roci0.sock");
  std::atomic<bool> stop{false};
  std::thread serving([&] {
    while (!stop) server.poll(5ms);
  });
  REQUIRE(client.greet() == 0);
  const UniqueFd bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const vfio_user::IrqSet set{sizeof(vfio_user::IrqSet),
                              vfio_user::IRQ_DATA_EVENTFD | vfio_user::IRQ_ACTION_TRIGGER,
                              vfio_user::IRQ_MSIX, 0, 1};
  REQUIRE(client.ask(vfio_user::Command::DEVICE_SET_IRQS, set, {bell.get()}) == 0);
  stop = true;
  serving.join();
  const auto count = [&] {
    uint64_t value = 0;
    return read(bell.get(), &value, sizeof value) < 0 ? 0 : value;
  };
  nic.ring(0);
  nic.ring(0);
  CHECK(count() == 2);
  const uint64_t most = ~uint64_t{1};
  REQUIRE(write(bell.get(), &most, sizeof most) == sizeof most);
  REQUIRE(fcntl(bell.get(), F_SETFL, 0) == 0);
  std::atomic<bool> rung{false};
  std::thread ringing([&] {
    nic.ring(0);
    rung = true;
  });
  CHECK(becomes([&] { return rung.load(); }));
  CHECK(count() == most);
  ringing.join();
  nic.ring(0);
  CHECK(count() >= 1);
}

TEST_CASE("a client for which the kernel has no room is turned away, the others go on") {
  Folder folder;
  std::vector<std::string> notices;
  sim::ServerOptions options{folder.path, [&](const std::string& text) { notices.push_back(text); }};
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  sim::Server server({served(nic)}, options);
  const auto connect_one = [&] {
    auto client = vfio_user::connect_to(folder.path + "/roci0.sock");
    for (int i = 0; i < 3; ++i) server.poll(0ms);
    return client;
  };
  const UniqueFd first = connect_one();
  REQUIRE(server.clients() == 1);
  for (const int which : {1, 2}) {  // the socket, the process
    INFO("descriptor " << which);
    refused_add = which;
    const UniqueFd second = connect_one();
    CHECK(server.clients() == 1);
    char byte = 0;
    CHECK(recv(second.get(), &byte, 1, MSG_DONTWAIT) == 0);  // closed
    REQUIRE(notices.size() == static_cast<size_t>(which));
    CHECK(notices.back().find("turned away") != std::string::npos);
  }
  const UniqueFd third = connect_one();
  CHECK(server.clients() == 2);
  CHECK(notices.size() == 2);
}

TEST_CASE("a client that sends and sends, but not the answer, is dropped at the deadline") {
  Folder folder;
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  UniqueFd client(ends[0]);
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  sim::ServedNic nics = served(nic);
  unsigned taken = 0;
  sim::Connection connection(UniqueFd(ends[1]), nics, taken, 300ms);
  const std::string json = "{}";
  std::vector<uint8_t> greeting(sizeof(vfio_user::Version));
  greeting[2] = 1;
  greeting.insert(greeting.end(), json.c_str(), json.c_str() + json.size() + 1);
  const auto send = [&](vfio_user::Command command, std::span<const uint8_t> body, uint32_t flags) {
    const vfio_user::Header header{1, static_cast<uint16_t>(command),
                                   static_cast<uint32_t>(sizeof(vfio_user::Header) + body.size()),
                                   flags, 0};
    const std::span<const uint8_t> parts[] = {body};
    return vfio_user::send_message(client.get(), header, parts, {});
  };
  REQUIRE(send(vfio_user::Command::VERSION, greeting, 0));
  const vfio_user::DmaMap map{32, 3, 0, 0x10000, 0x1000};  // by messages
  REQUIRE(send(vfio_user::Command::DMA_MAP, vfio_user::bytes_of(map), 0));
  // A command ring there, which the NIC then reads.
  const auto write = [&](uint32_t offset, uint64_t value) {
    vfio_user::RegionWrite64 message{};
    message.access = {offset, 0, 8};
    message.value = value;
    const auto bytes = vfio_user::bytes_of(message);
    return send(vfio_user::Command::REGION_WRITE, bytes.subspan(sizeof(vfio_user::Header)),
                vfio_user::FLAG_NO_REPLY);
  };
  namespace csr = hwif::csr;
  REQUIRE(write(csr::AdminCommandRing::ADDRESS, 0x10000));
  REQUIRE(write(csr::AdminCompletionRing::ADDRESS, 0x10000));
  csr::AdminRingConfig config{};
  config.set<csr::AdminRingConfig::ring_log2>(2);
  REQUIRE(write(csr::AdminRingConfig::ADDRESS, config.to_word()));
  csr::AdminControl control{};
  control.set<csr::AdminControl::enable>(true);
  REQUIRE(write(csr::AdminControl::ADDRESS, control.to_word()));
  csr::AdminDoorbell doorbell{};
  doorbell.set<csr::AdminDoorbell::index>(1);
  REQUIRE(write(csr::AdminDoorbell::ADDRESS, doorbell.to_word()));
  REQUIRE(connection.serve());
  CHECK(taken == 1);
  const bool big = GENERATE(false, true);  // many bytes at once, or few for long
  std::atomic<bool> over{false};
  std::thread flood([&] {
    const std::vector<uint8_t> body(big ? vfio_user::MAX_DATA : 0);
    while (!over && send(vfio_user::Command::DEVICE_GET_INFO, body, vfio_user::FLAG_NO_REPLY)) {
      if (!big) std::this_thread::sleep_for(1ms);
    }
  });
  CHECK(becomes([&] {
    nic.step(64);
    return !connection.alive();
  }));
  over = true;
  shutdown(client.get(), SHUT_RDWR);
  flood.join();
}

TEST_CASE("no descriptors left: one line, no spinning, and the client is served when there are some") {
  Folder folder;
  std::vector<std::string> notices;
  sim::ServerOptions options;
  options.folder = folder.path;
  options.notice = [&](const std::string& text) { notices.push_back(text); };
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  sim::Server server({served(nic)}, options);
  UniqueFd client = vfio_user::connect_to(folder.path + "/roci0.sock");
  REQUIRE(client);
  std::vector<UniqueFd> hoard;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few = before;
  few.rlim_cur = 256;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  for (UniqueFd fd(dup(client.get())); fd; fd.reset(dup(client.get()))) {
    hoard.push_back(std::move(fd));
  }
  // Each call returns when something happens, or after its time: one that spins takes none.
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned calls = 0; calls < 10; ++calls) server.poll(100ms);
  const auto took = std::chrono::steady_clock::now() - begin;
  const size_t clients = server.clients();
  hoard.clear();  // before the checks: sanitizers need descriptors
  CHECK(took > 500ms);
  CHECK(clients == 0);
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].find("wait") != std::string::npos);
  refused_add = 1;  // nor has epoll room at first
  CHECK(becomes([&] {
    server.poll(100ms);
    return server.clients() == 1;
  }));
  CHECK(notices.size() == 1);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_CASE("DMA outside of maps is a bus error, inside it reaches the bytes") {
  unsigned messages = 0;
  sim::ClientMemory memory([&](bool, uint64_t, std::span<uint8_t>) {
    ++messages;
    return true;
  });
  std::vector<uint8_t> page(3 * 4096, 0x55);
  vfio_user::Memory nonce{};
  nonce.nonce_address = reinterpret_cast<uintptr_t>(page.data());
  CHECK_FALSE(memory.reach_process(getpid(), nonce));  // 0x55 is not the nonce
  std::memset(nonce.nonce, 0x55, sizeof nonce.nonce);
  REQUIRE(memory.reach_process(getpid(), nonce));
  const auto here = reinterpret_cast<uintptr_t>(page.data());
  const UniqueFd none;
  REQUIRE(memory.map({32, 1, here, 0x10000, 4096}, none) == 0);         // read only
  REQUIRE(memory.map({32, 3, here + 4096, 0x11000, 4096}, none) == 0);  // adjacent
  REQUIRE(memory.map({32, 3, 0, 0x20000, 4096}, none) == 0);            // by messages
  uint8_t bytes[200];
  CHECK(memory.read(0x11000 - 100, bytes));  // across both
  CHECK(bytes[199] == 0x55);
  std::memset(bytes, 0xaa, sizeof bytes);
  CHECK_FALSE(memory.write(0x11000 - 100, bytes));
  CHECK(page[4096] == 0x55);  // nothing of a refused write
  CHECK(memory.write(0x11000, bytes));
  CHECK(page[4096] == 0xaa);
  CHECK(page[4096 + 199] == 0xaa);
  CHECK(page[4096 + 200] == 0x55);
  CHECK_FALSE(memory.read(0x12000 - 100, bytes));
  CHECK_FALSE(memory.read(0x10000 - 1, bytes));
  CHECK(messages == 0);
  CHECK(memory.read(0x20000, bytes));
  CHECK(messages == 1);
  memory.revoke();
  CHECK_FALSE(memory.read(0x11000, bytes));
  CHECK(messages == 1);
}

TEST_CASE("sockets: a live one is refused, a stale one replaced, ours removed") {
  Folder folder;
  std::vector<std::string> notices;
  const sim::Notice notice = [&](const std::string& text) { notices.push_back(text); };
  std::string text;
  const std::string path = folder.path + "/roci0.sock";
  {
    const sim::SocketFile first(folder.path, "roci0.sock", notice);
    struct stat file {};
    REQUIRE(stat(path.c_str(), &file) == 0);
    CHECK((file.st_mode & 0777) == 0600);
    CHECK(error_of([&] { sim::SocketFile(folder.path, "roci0.sock", notice); }, &text) ==
          EADDRINUSE);
    CHECK(text.find(path) != std::string::npos);
    CHECK(std::filesystem::exists(path));
  }
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(notices.empty());
  // the socket of a program that died
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  {
    const UniqueFd dead(socket(AF_UNIX, SOCK_STREAM, 0));
    REQUIRE(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(dead.get(), 1) == 0);
  }
  {
    const sim::SocketFile second(folder.path, "roci0.sock", notice);
    CHECK(notices == std::vector<std::string>{"replaced the stale socket " + path});
  }
  std::ofstream(path) << "a file";
  CHECK(error_of([&] { sim::SocketFile(folder.path, "roci0.sock", notice); }) == EEXIST);
  CHECK(std::filesystem::exists(path));
  CHECK(error_of([&] { sim::SocketFile(folder.path, std::string(120, 'x'), notice); }) ==
        ENAMETOOLONG);
}

TEST_CASE("the folder is made for us alone, another owner's is refused") {
  Folder folder;
  const std::string own = folder.path + "/roci";
  sim::prepare_folder(own);
  struct stat file {};
  REQUIRE(stat(own.c_str(), &file) == 0);
  CHECK((file.st_mode & 0777) == 0700);
  sim::prepare_folder(own);
  std::ofstream(folder.path + "/file") << "x";
  CHECK(error_of([&] { sim::prepare_folder(folder.path + "/file"); }) == EPERM);
  CHECK(error_of([&] { sim::prepare_folder(folder.path + "/no/such"); }) == ENOENT);
  std::string text;
  REQUIRE(symlink(own.c_str(), (folder.path + "/link").c_str()) == 0);
  CHECK(error_of([&] { sim::prepare_folder(folder.path + "/link"); }, &text) == EPERM);
  CHECK(text.find("link") != std::string::npos);
  for (const mode_t mode : {0777, 0770, 0702}) {
    REQUIRE(chmod(own.c_str(), mode) == 0);
    CHECK(error_of([&] { sim::prepare_folder(own); }, &text) == EPERM);
    CHECK(text.find("chmod") != std::string::npos);
  }
  REQUIRE(chmod(own.c_str(), 0755) == 0);
  sim::prepare_folder(own);
  if (geteuid() == 0) {
    REQUIRE(chown(own.c_str(), 12345, 12345) == 0);
    CHECK(error_of([&] { sim::prepare_folder(own); }, &text) == EPERM);
    CHECK(text.find("12345") != std::string::npos);
  } else {
    CHECK(error_of([&] { sim::prepare_folder("/"); }, &text) == EPERM);
  }
}
