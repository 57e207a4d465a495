// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Opening a device: identity, firmware, limits, port tables, admin queue, addresses, functions.
#include "waiting.hpp"
#include "world.hpp"

#include "../../host/core/address.hpp"
#include "../../host/core/admin_queue.hpp"

#include <thread>

using namespace roci;
using namespace roci::test;

namespace {

int open_error(FakeConfig config, std::string& text, DeviceOptions options = {}) {
  FakeFabric fabric;
  FakeNic nic(fabric, 0, config);
  const int error = error_of([&] { Device::open(make_inproc_transport(nic), options); }, &text);
  // A device that could not be opened leaves its function free.
  CHECK(nic.functions_free() == config.functions - 1);
  return error;
}

/// A device in this process, with nothing but an admin queue whose reset takes `resetting` waits of one
/// millisecond; the machine is loaded, so that each of them takes ten.
class SlowMachine final : public Transport {
 public:
  explicit SlowMachine(unsigned resetting) : resetting_(resetting) {}
  uint64_t bar_read(uint32_t offset) override {
    hwif::csr::AdminStatus status{};
    const bool resets = state_ == hwif::AdminState::RESETTING && waits >= resetting_;
    if (resets) state_ = hwif::AdminState::DISABLED;
    status.set<hwif::csr::AdminStatus::state>(state_);
    return offset == hwif::csr::AdminStatus::ADDRESS ? status.to_word() : 0;
  }
  void bar_write(uint32_t offset, uint64_t value) override {
    if (offset != hwif::csr::AdminControl::ADDRESS) return;
    const auto control = hwif::csr::AdminControl::from_word(value);
    state_ = control.get<hwif::csr::AdminControl::reset_request>() ? hwif::AdminState::RESETTING
                                                                   : hwif::AdminState::ENABLED;
  }
  void ring(unsigned, uint64_t) noexcept override {}
  DmaRange allocate(size_t bytes) override {
    auto* memory = static_cast<std::byte*>(std::calloc(1, bytes));
    return {reinterpret_cast<uintptr_t>(memory), memory, bytes, true};
  }
  void release(const DmaRange& chunk) noexcept override { std::free(chunk.memory); }
  void map(std::span<DmaRange>) override {}
  void unmap(std::span<const DmaRange>) noexcept override {}
  bool wait(unsigned, std::chrono::milliseconds) override {
    ++waits;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return false;
  }
  void wake(unsigned) noexcept override {}
  std::optional<Neighbour> resolve(const Gid&) override { return std::nullopt; }
  bool runs_by_itself() const noexcept override { return false; }
  void abandon_after_fork() noexcept override {}

  unsigned waits = 0;

 private:
  const unsigned resetting_;
  hwif::AdminState state_ = hwif::AdminState::DISABLED;
};

// A NIC whose registers cannot be read from some moment on, although it is not lost.
class Mute final : public InprocNic {
 public:
  explicit Mute(FakeNic& nic) : nic_(nic) {}
  std::recursive_mutex& mutex() override { return nic_.mutex(); }
  std::optional<unsigned> attach(InprocMemory& memory,
                                 std::function<void(unsigned)> interrupt) override {
    return nic_.attach(memory, std::move(interrupt));
  }
  void detach(unsigned function) override { nic_.detach(function); }
  uint64_t bar_read(unsigned function, uint32_t offset) override {
    if (mute) fail(EPROTO, "no answer that anybody understands");
    return nic_.bar_read(function, offset);
  }
  void bar_write(unsigned function, uint32_t offset, uint64_t value) override {
    nic_.bar_write(function, offset, value);
  }
  void step(uint64_t cycles) override { nic_.step(cycles); }
  std::optional<Neighbour> resolve(const Gid& gid) override { return nic_.resolve(gid); }
  std::atomic<bool> mute{false};

 private:
  FakeNic& nic_;
};

std::string hash(uint64_t value) { return format("0x%016llx", static_cast<unsigned long long>(value)); }

}  // namespace

TEST_CASE("another interface is refused with both values") {
  std::string text;
  FakeConfig config;
  config.hwif_hash = 0x1234;
  CHECK(open_error(config, text) == EPROTO);
  CHECK(text.find(hash(0x1234)) != std::string::npos);
  CHECK(text.find(hash(hwif::HWIF_HASH)) != std::string::npos);
  config = {};
  config.firmware_hash = 0x5678;
  CHECK(open_error(config, text) == EPROTO);
  CHECK(text.find("firmware") != std::string::npos);
  CHECK(text.find(hash(0x5678)) != std::string::npos);
  CHECK(text.find(hash(hwif::HWIF_HASH)) != std::string::npos);
}

TEST_CASE("the firmware is waited for, a failed one is named") {
  std::string text;
  FakeConfig config;
  config.firmware_ready_at = 20000;
  CHECK(open_error(config, text) == 0);
  config = {};
  config.firmware_state = hwif::FirmwareState::FAILED;
  CHECK(open_error(config, text) == EIO);
  config = {};
  config.firmware_ready_at = ~uint64_t{0};
  DeviceOptions options;
  options.timeout = std::chrono::milliseconds(50);
  CHECK(open_error(config, text, options) == EIO);
  CHECK(text.find("BOOTING") != std::string::npos);
}

TEST_CASE("functions: one for each opening of the transport, none left is EBUSY") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  {
    std::vector<std::unique_ptr<Host>> hosts;
    for (unsigned i = 1; i < nic.config().functions; ++i) {
      hosts.push_back(std::make_unique<Host>(make_inproc_transport(nic)));
      CHECK(hosts.back()->device->limits().function_number == i);
    }
    CHECK(error_of([&] { make_inproc_transport(nic); }) == EBUSY);
    hosts.erase(hosts.begin());
    CHECK(error_of([&] { Host again(make_inproc_transport(nic)); }) == 0);
  }
  CHECK(nic.functions_free() == nic.config().functions - 1);
  CHECK(nic.violations() == std::vector<std::string>{});
}

TEST_CASE("limits") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  const DeviceLimits& l = host.device->limits();
  CHECK(l.firmware_version == "1.2.3");
  CHECK(l.max_qps == 62);
  CHECK(l.max_cqs == 64);
  CHECK(l.max_sge == 15);
  CHECK(l.max_sge_read == 4);
  CHECK(l.max_qp_wr == 16384);
  CHECK(l.max_cqe == 32768);
  CHECK(l.node_guid == hwif::ByteArray<8>{{0, 0, 0, 0xff, 0xfe, 0, 0, 1}});
  const uint64_t before = host.device->clock();
  nic.step(1000);
  CHECK(host.device->clock() >= before + 1000);
  const PortState port = host.device->query_port();
  CHECK(port.active);
  CHECK(port.active_mtu == hwif::Mtu::MTU_4096);
  CHECK(port.mac == nic.mac());
  CHECK(host.device->query_counters(0, 256).size() == 256);
}

TEST_CASE("as many objects as advertised") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  const DeviceLimits& l = host.device->limits();
  std::vector<std::unique_ptr<Pd>> pds;
  CHECK(error_of([&] {
          for (;;) pds.push_back(std::make_unique<Pd>(host.context));
        }) == ENOMEM);
  CHECK(pds.size() + 1 >= l.max_pds - 1);
  std::vector<std::unique_ptr<Cq>> cqs;
  for (unsigned i = 0; i < l.max_cqs; ++i) {
    cqs.push_back(std::make_unique<Cq>(host.context, CqConfig{1, nullptr, false}));
  }
  CHECK(error_of([&] { Cq cq(host.context, {1, nullptr, false}); }) == ENOMEM);
  std::vector<std::unique_ptr<Qp>> qps;
  const QpConfig config{cqs[0].get(), cqs[0].get(), caps(1, 1), IBV_QPT_RC, false, false};
  for (unsigned i = 0; i < l.max_qps; ++i) qps.push_back(std::make_unique<Qp>(host.pd, config));
  CHECK(error_of([&] { Qp qp(host.pd, config); }) == ENOMEM);
  // In use.
  CHECK(error_of([&] { cqs[0]->destroy(); }) == EBUSY);
  CHECK(error_of([&] { host.pd.destroy(); }) == EBUSY);
  qps.clear();
  CHECK(error_of([&] { cqs[0]->destroy(); }) == 0);
  CHECK(nic.violations() == std::vector<std::string>{});
}

TEST_CASE("every advertised size can be had") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  const DeviceLimits& l = host.device->limits();
  Cq cq(host.context, {l.max_cqe, nullptr, false});
  CHECK(cq.entries() >= l.max_cqe);
  CHECK(error_of([&] { Cq big(host.context, {l.max_cqe + 1, nullptr, false}); }) == EINVAL);
  CHECK(error_of([&] { Cq none(host.context, {0, nullptr, false}); }) == EINVAL);
  const auto make = [&](ibv_qp_cap cap) {
    Qp qp(host.pd, {&cq, &cq, cap, IBV_QPT_RC, false, false});
    CHECK(qp.cap().max_send_wr >= cap.max_send_wr);
    CHECK(qp.cap().max_recv_wr >= cap.max_recv_wr);
    CHECK(qp.cap().max_send_sge >= cap.max_send_sge);
    CHECK(qp.cap().max_recv_sge >= cap.max_recv_sge);
    CHECK(qp.cap().max_inline_data >= cap.max_inline_data);
    CHECK(qp.cap().max_send_wr <= l.max_qp_wr);
    CHECK(qp.cap().max_send_sge <= l.max_sge);
    CHECK(qp.cap().max_recv_sge <= l.max_sge);
    CHECK(qp.cap().max_inline_data <= l.max_inline);
  };
  make({l.max_qp_wr, l.max_qp_wr, 2, l.max_sge, 32});
  make({4095, l.max_qp_wr, l.max_sge, l.max_sge, l.max_inline});
  make({0, 0, 0, 0, 0});
  std::string text;
  const auto refuse = [&](ibv_qp_cap cap) {
    return error_of([&] { Qp qp(host.pd, {&cq, &cq, cap, IBV_QPT_RC, false, false}); }, &text);
  };
  CHECK(refuse({l.max_qp_wr + 1, 1, 1, 1, 0}) == EINVAL);
  CHECK(text.find("max_send_wr") != std::string::npos);
  CHECK(refuse({1, l.max_qp_wr + 1, 1, 1, 0}) == EINVAL);
  CHECK(refuse({1, 1, l.max_sge + 1, 1, 0}) == EINVAL);
  CHECK(refuse({1, 1, 1, l.max_sge + 1, 0}) == EINVAL);
  CHECK(refuse({1, 1, 1, 1, l.max_inline + 1}) == EINVAL);
  CHECK(text.find("max_inline_data") != std::string::npos);
  CHECK(refuse({l.max_qp_wr, 1, l.max_sge, 1, 0}) == ENOMEM);
  CHECK(text.find("holds 4095") != std::string::npos);
  const auto of_type = [&](ibv_qp_type type, ibv_qp_cap cap) {
    return error_of([&] { Qp qp(host.pd, {&cq, &cq, cap, type, false, false}); }, &text);
  };
  for (const auto type : {IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, static_cast<ibv_qp_type>(0)}) {
    CHECK(of_type(type, caps()) == EOPNOTSUPP);
    CHECK(text.find("this device has RC (2) UC (3) UD (4)") != std::string::npos);
  }
  CHECK(of_type(QPT_GSI, caps()) == EPERM);
  CHECK(text.find("QP1 belongs to the management function") != std::string::npos);
  // UD requests are larger by their address; the number of requests can be reached all the same.
  CHECK(of_type(IBV_QPT_UC, {l.max_qp_wr, l.max_qp_wr, 2, 1, 32}) == 0);
  CHECK(of_type(IBV_QPT_UD, {l.max_qp_wr, l.max_qp_wr, 3, 1, 48}) == 0);
  CHECK(of_type(IBV_QPT_UD, {1, 1, l.max_sge, l.max_sge, l.max_inline_ud}) == 0);
  CHECK(of_type(IBV_QPT_UD, {1, 1, 1, 1, l.max_inline_ud + 1}) == EINVAL);
  CHECK(text.find("max_inline_data 433: at most 432") != std::string::npos);
}

TEST_CASE("what a device does not have is refused, and advertised as nothing") {
  FakeFabric fabric;
  FakeConfig config;
  config.uc = config.ud = config.gsi = config.srq = config.atomics = false;
  FakeNic nic(fabric, 0, config);
  Host host(make_inproc_transport(nic));
  const DeviceLimits& l = host.device->limits();
  CHECK_FALSE((l.uc || l.ud || l.gsi || l.srq || l.atomics));
  CHECK(l.max_srqs == 0);
  CHECK(l.max_multicast == 0);
  Cq cq(host.context, {16, nullptr, false});
  for (const auto type : {IBV_QPT_UC, IBV_QPT_UD, QPT_GSI}) {
    CHECK(error_of([&] { Qp qp(host.pd, {&cq, &cq, caps(), type, false, false}); }) == EOPNOTSUPP);
  }
  CHECK(error_of([&] { Srq srq(host.pd, {16, 1, 0}); }) == EOPNOTSUPP);
  Qp qp(host.pd, {&cq, &cq, caps(), IBV_QPT_RC, false, false});
  connect(qp, qp.number(), path_to(nic));
  Region region(host.pd, 4096);
  ibv_sge sge = region.sge(0, 8);
  ibv_send_wr wr = send_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1, 1);
  CHECK(post(qp, wr) == EOPNOTSUPP);
  CHECK(nic.violations() == std::vector<std::string>{});
}

TEST_CASE("GID and P_Key tables are kept and renewed") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  CHECK(host.device->gid_table().size() == nic.config().gids);
  CHECK(host.device->gid_table()[1].gid[15] == 1);
  const uint64_t asked = nic.commands(hwif::AdminOpcode::QUERY_GID);
  CHECK(host.device->gid_table()[2].type == hwif::GidType::NONE);
  CHECK(nic.commands(hwif::AdminOpcode::QUERY_GID) == asked);
  hwif::GidEntry entry{};
  entry.set<hwif::GidEntry::gid>(Gid{{1, 2, 3}});
  entry.set<hwif::GidEntry::gid_type>(hwif::GidType::ROCE_V1);
  nic.set_gid(2, entry);
  const auto event = host.context.get_async_event();
  REQUIRE(event);
  CHECK(event->type == hwif::EqeType::GID_CHANGE);
  CHECK(host.device->gid_table()[2].gid == Gid{{1, 2, 3}});
  CHECK(host.device->pkey_table() == std::vector<uint16_t>{0xffff, 0, 0, 0});
}

TEST_CASE("errors of commands name command, field and limit") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  using hwif::AdminStatus;
  const std::pair<AdminStatus, int> statuses[] = {
      {AdminStatus::INVALID, EINVAL},          {AdminStatus::UNSUPPORTED, EOPNOTSUPP},
      {AdminStatus::NOT_PERMITTED, EPERM},     {AdminStatus::NOT_FOUND, ENOENT},
      {AdminStatus::BUSY, EBUSY},              {AdminStatus::NO_RESOURCES, ENOMEM},
      {AdminStatus::TOO_BIG, E2BIG},           {AdminStatus::BAD_ADDRESS, EFAULT},
      {AdminStatus::EXISTS, EEXIST},           {AdminStatus::BAD_LENGTH, EMSGSIZE},
      {AdminStatus::TIMED_OUT, ETIMEDOUT},     {AdminStatus::DEVICE_FAILED, EIO},
      {AdminStatus::CANCELED, ECANCELED},
  };
  for (const auto& [status, code] : statuses) {
    nic.fail_next(hwif::AdminOpcode::CREATE_PD, status, hwif::AdminField::RING_LOG2, 15);
    std::string text;
    CHECK(error_of([&] { Pd pd(host.context); }, &text) == code);
    CHECK(text.find("CREATE_PD") != std::string::npos);
    CHECK(text.find("RING_LOG2") != std::string::npos);
    CHECK(text.find("15") != std::string::npos);
  }
  // What programs set has the name that they know.
  const std::pair<hwif::AdminField, const char*> attributes[] = {
      {hwif::AdminField::INITIATOR_DEPTH, "max_rd_atomic: at most 15"},
      {hwif::AdminField::RESPONDER_DEPTH, "max_dest_rd_atomic: at most 15"},
      {hwif::AdminField::RQ_STRIDE_CODE, "cap.max_recv_sge: at most 15"},
  };
  for (const auto& [field, words] : attributes) {
    nic.fail_next(hwif::AdminOpcode::CREATE_PD, AdminStatus::NO_RESOURCES, field, 15);
    std::string text;
    CHECK(error_of([&] { Pd pd(host.context); }, &text) == ENOMEM);
    CHECK(text.find(words) != std::string::npos);
    CHECK(text.find("field") == std::string::npos);
  }
}

TEST_CASE("a command that waits delays no other; more than the ring holds") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  Cq cq(host.context, {16, nullptr, false});
  nic.hold(hwif::AdminOpcode::QUERY_PORT);
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&] {
      host.device->query_port();
      ++answered;
    });
  }
  for (int i = 0; i < 50; ++i) Pd pd(host.context);
  CHECK(answered == 0);
  nic.release();
  for (auto& thread : threads) thread.join();
  CHECK(answered == 20);
  threads.clear();
  // Many at once, through several laps of the rings.
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n) Pd pd(host.context);
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(nic.violations() == std::vector<std::string>{});
}

TEST_CASE("no answer is a timeout, and the end of the device") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  DeviceOptions options;
  options.timeout = std::chrono::milliseconds(200);
  Host host(make_inproc_transport(nic), options);
  CompChannel channel(host.context);
  Cq cq(host.context, {16, &channel, false});
  cq.arm(false);
  nic.hold(hwif::AdminOpcode::QUERY_PORT);
  CHECK(error_of([&] { host.device->query_port(); }) == ETIMEDOUT);
  CHECK(host.device->dead());
  const auto event = host.context.get_async_event();
  REQUIRE(event);
  CHECK(event->type == hwif::EqeType::DEVICE_FATAL);
  CHECK(channel.get() == &cq);
  // More than the ring has slots: each is told at once.
  for (int i = 0; i < 40; ++i) CHECK(error_of([&] { host.device->query_port(); }) == EIO);
  nic.release();
  CHECK(error_of([&] { cq.destroy(); }) == 0);
  CHECK(nic.violations() == std::vector<std::string>{});
}

TEST_CASE("a loaded machine is no late answer of a device in this process") {
  for (const unsigned takes : {30u, 1000u}) {  // less than the limit by its own time, and more
    SlowMachine machine(takes);
    DmaArena arena(machine);
    {
      const AdminQueue queue(machine, arena, std::chrono::milliseconds(50));
      CHECK(machine.waits == 0);
    }
    CHECK(machine.waits == std::min(takes, 51u));
  }
}

TEST_CASE("no answer: whoever waits for another one, or for a free slot, is told") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  DeviceOptions options;
  options.timeout = std::chrono::milliseconds(200);
  Host host(make_inproc_transport(nic), options);
  nic.hold(hwif::AdminOpcode::QUERY_PORT);
  std::atomic<int> late{0}, told{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 40; ++i) {
    threads.emplace_back([&] {
      const int error = error_of([&] { host.device->query_port(); });
      if (error == ETIMEDOUT) ++late;
      if (error == EIO) ++told;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(late >= 1);
  CHECK(late + told == 40);
}

TEST_CASE("the admin queue's state cannot be read: all who wait are told, none waits for ever") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Mute mute(nic);
  Host host(make_inproc_transport(mute));
  nic.hold(hwif::AdminOpcode::QUERY_PORT);
  std::atomic<int> told{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      if (error_of([&] { host.device->query_port(); }) == EIO) ++told;
    });
  }
  CHECK(becomes([&] { return nic.waiting(hwif::AdminOpcode::QUERY_PORT) == 4; }));
  mute.mute = true;
  for (auto& thread : threads) thread.join();
  CHECK(told == 4);
  CHECK(host.device->dead());
  mute.mute = false;
  nic.release();
}

TEST_CASE("what is in use is not destroyed, whether the device lives or not") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  auto host = std::make_unique<Host>(make_inproc_transport(nic));
  Buffer memory(4096);
  Pd other(host->context);
  Cq send_cq(host->context, {16, nullptr, false}), recv_cq(host->context, {16, nullptr, false});
  Qp qp(host->pd, {&send_cq, &recv_cq, caps(), IBV_QPT_RC, false, false});
  Mr mr(host->pd, memory.data(), 4096, 0, 0);
  mr.reregister(IBV_REREG_MR_CHANGE_PD, &other, nullptr, 0, 0);
  const bool dead = GENERATE(false, true);
  if (dead) {
    nic.raise(1, hwif::EqeType::DEVICE_FATAL);
    host->device->poll_events();
    REQUIRE(host->device->dead());
  }
  CHECK(error_of([&] { send_cq.destroy(); }) == EBUSY);
  CHECK(error_of([&] { recv_cq.destroy(); }) == EBUSY);
  CHECK(error_of([&] { host->pd.destroy(); }) == EBUSY);  // of the queue pair
  CHECK(error_of([&] { other.destroy(); }) == EBUSY);     // of the region
  ibv_wc wc{};
  CHECK(send_cq.poll(1, &wc) == 0);
  CHECK(error_of([&] { qp.destroy(); }) == 0);
  CHECK(error_of([&] { send_cq.destroy(); }) == 0);
  CHECK(error_of([&] { recv_cq.destroy(); }) == 0);
  CHECK(error_of([&] { host->pd.destroy(); }) == 0);
  CHECK(error_of([&] { mr.destroy(); }) == 0);
  CHECK(error_of([&] { other.destroy(); }) == 0);
}

TEST_CASE("addresses from GIDs") {
  const auto mac = mac_from_gid(
      Gid{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0x56, 0xff, 0xfe, 0x78, 0x9a, 0xbc}});
  REQUIRE(mac);
  CHECK(*mac == MacAddress{{0x10, 0x34, 0x56, 0x78, 0x9a, 0xbc}});
  const auto group = mac_from_gid(Gid{{0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}});
  REQUIRE(group);
  CHECK(*group == MacAddress{{0x33, 0x33, 1, 2, 3, 4}});
  CHECK_FALSE(mac_from_gid(Gid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}}));
  // Link-local without EUI-64, and a longer prefix that is not fe80::/64.
  CHECK_FALSE(mac_from_gid(Gid{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}}));
  CHECK_FALSE(mac_from_gid(
      Gid{{0xfe, 0x80, 0, 0, 0, 0, 0, 1, 0x12, 0x34, 0x56, 0xff, 0xfe, 0x78, 0x9a, 0xbc}}));

  FakeFabric fabric;
  FakeNic a(fabric, 0);
  FakeNic b(fabric, 1);
  Host host(make_inproc_transport(a));
  const auto gid = [](const FakeNic& nic, unsigned i) {
    return nic.gids()[i].get<hwif::GidEntry::gid>();
  };
  CHECK(host.device->resolve(gid(b, 0)) == b.mac());
  CHECK(host.device->resolve(gid(b, 1)) == b.mac());  // by the neighbour table
  CHECK(host.device->resolve(gid(a, 1)) == a.mac());  // its own
  std::string text;
  CHECK(error_of([&] { host.device->resolve(Gid{{1, 2, 3}}); }, &text) == EHOSTUNREACH);
  CHECK(text.find("0102:0300") != std::string::npos);
}

TEST_CASE("options from the environment") {
  const auto with = [](const char* name, const char* value) {
    setenv(name, value, 1);
    DeviceOptions options;
    const int error = error_of([&] { options = DeviceOptions::from_environment(); });
    unsetenv(name);
    return std::pair(error, options);
  };
  CHECK(DeviceOptions::from_environment().dma == DmaPolicy::DIRECT);
  CHECK(with("ROCI_DMA", "scatter").second.dma == DmaPolicy::SCATTER);
  CHECK(with("ROCI_DMA", "direct").second.dma == DmaPolicy::DIRECT);
  CHECK(with("ROCI_DMA", "gather").first == EINVAL);
  CHECK(with("ROCI_SINGLE_THREADED", "1").second.single_threaded);
  CHECK_FALSE(with("ROCI_SINGLE_THREADED", "0").second.single_threaded);
  CHECK(with("ROCI_TIMEOUT", "5").second.timeout == std::chrono::seconds(5));
  CHECK(with("ROCI_TIMEOUT", "soon").first == EINVAL);
  CHECK(with("ROCI_TIMEOUT", "0").first == EINVAL);
}
