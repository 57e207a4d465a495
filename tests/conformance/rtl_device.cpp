// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/rtl_device.hpp"

#include "model/management_nic.hpp"
#include "model/world.hpp"

#include <core/admin_queue.hpp>
#include <roci/cq.hpp>
#include <roci/device.hpp>
#include <roci/inproc.hpp>
#include <roci/mr.hpp>
#include <roci/pd.hpp>
#include <roci/qp.hpp>
#include <roci_hwif_names.hpp>

#include <sys/mman.h>

#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>

namespace roci::conformance {

namespace {

constexpr size_t kTesterPort = 1;
constexpr unsigned kCqEntries = 512;
// Cycles until what was posted is counted.
constexpr uint64_t kCountedLater = 1000;

sim::WorldConfig world_config(sim::ChipConfig chip, uint64_t seed) {
  sim::WorldConfig config;
  config.nics = 1;
  config.chip = chip;
  config.seed = seed;
  config.guard = true;
  config.fabric.ports = 2;
  // as the system tests have it: what memory can feed without a gap inside a frame
  if (chip == sim::ChipConfig::narrow) config.fabric.link.rate = {4, 1};
  return config;
}

// A program that does not let time pass by polling: the script does.
std::unique_ptr<Transport> transport_to(InprocNic& nic) {
  InprocOptions options;
  options.step_when_idle = false;
  return make_inproc_transport(nic, options);
}

class FabricPort final : public FramePort {
 public:
  FabricPort(sim::World& world, unsigned ns_per_cycle, uint64_t latency_cycles)
      : world_(world), ns_(ns_per_cycle), delay_(latency_cycles * ns_per_cycle) {
    world.fabric().port(kTesterPort).on_frame([this](const sim::ReceivedFrame& frame) {
      inbox_.push_back({frame.cycle * ns_, {frame.bytes.begin(), frame.bytes.end()}, frame.bad});
    });
  }
  void send(std::span<const uint8_t> frame, bool bad_fcs) override {
    world_.fabric().port(kTesterPort).send(frame, bad_fcs);
  }
  std::optional<ReceivedFrame> receive() override {
    if (inbox_.empty()) return std::nullopt;
    ReceivedFrame frame = std::move(inbox_.front());
    inbox_.pop_front();
    return frame;
  }
  Time now() const override { return world_.cycle() * ns_; }
  void advance(Time until) override {
    if (inbox_.empty() && until > now()) world_.pass((until - now() + ns_ - 1) / ns_);
  }
  Time wire_delay() const override { return delay_; }

 private:
  sim::World& world_;
  const Time ns_;
  const Time delay_;
  std::deque<ReceivedFrame> inbox_;
};

class RtlMemory final : public Memory {
 public:
  RtlMemory(Pd& pd, size_t bytes, unsigned access) : bytes_(bytes), memory_(bytes) {
    mr_ = std::make_unique<Mr>(pd, memory_.at, bytes, address(), access);
    lkey_ = mr_->lkey();
    rkey_ = mr_->rkey();
  }
  uint8_t* data() override { return memory_.at; }
  size_t size() const override { return bytes_; }
  uint64_t address() const override { return reinterpret_cast<uintptr_t>(memory_.at); }
  uint32_t lkey() const override { return lkey_; }
  uint32_t rkey() const override { return rkey_; }
  void deregister() override { mr_ = nullptr; }

 private:
  // Pages that are there when somebody looks: a scenario has gigabytes.
  struct Pages {
    explicit Pages(size_t count) : bytes(count) {
      void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) throw std::bad_alloc();
      at = static_cast<uint8_t*>(memory);
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    ~Pages() { munmap(at, bytes); }
    const size_t bytes;
    uint8_t* at = nullptr;
  };
  const size_t bytes_;
  Pages memory_;
  std::unique_ptr<Mr> mr_;
  uint32_t lkey_ = 0, rkey_ = 0;
};

class RtlQp final : public QueuePair {
 public:
  RtlQp(Context& context, Pd& pd, const QpSettings& settings)
      : send_cq_(context, {kCqEntries, nullptr, false}),
        recv_cq_(context, {kCqEntries, nullptr, false}),
        qp_(pd, {&send_cq_, &recv_cq_, settings.cap, settings.type, settings.signal_all, false}) {}
  uint32_t number() const override { return qp_.number(); }
  void modify(const ibv_qp_attr& attr, int mask) override { qp_.modify(attr, mask); }
  ibv_qp_state state() override {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    qp_.query(attr, init);
    return attr.qp_state;
  }
  int post_send(ibv_send_wr& wr) override {
    ibv_send_wr* bad = nullptr;
    return qp_.post_send(&wr, &bad);
  }
  int post_recv(ibv_recv_wr& wr) override {
    ibv_recv_wr* bad = nullptr;
    return qp_.post_recv(&wr, &bad);
  }
  std::optional<ibv_wc> poll_send() override { return poll(send_cq_); }
  std::optional<ibv_wc> poll_recv() override { return poll(recv_cq_); }

  const Qp& qp() const { return qp_; }

 private:
  static std::optional<ibv_wc> poll(Cq& cq) {
    ibv_wc wc{};
    if (cq.poll(1, &wc) != 1) return std::nullopt;
    return wc;
  }
  Cq send_cq_, recv_cq_;
  Qp qp_;
};

std::optional<ibv_event_type> verbs_event(hwif::EqeType type) {
  using hwif::EqeType;
  switch (type) {
    case EqeType::CQ_ERROR: return IBV_EVENT_CQ_ERR;
    case EqeType::QP_FATAL: return IBV_EVENT_QP_FATAL;
    case EqeType::QP_REQ_ERROR: return IBV_EVENT_QP_REQ_ERR;
    case EqeType::QP_ACCESS_ERROR: return IBV_EVENT_QP_ACCESS_ERR;
    case EqeType::COMM_EST: return IBV_EVENT_COMM_EST;
    case EqeType::SQ_DRAINED: return IBV_EVENT_SQ_DRAINED;
    case EqeType::QP_LAST_WQE_REACHED: return IBV_EVENT_QP_LAST_WQE_REACHED;
    case EqeType::SRQ_ERROR: return IBV_EVENT_SRQ_ERR;
    case EqeType::SRQ_LIMIT_REACHED: return IBV_EVENT_SRQ_LIMIT_REACHED;
    case EqeType::PORT_ACTIVE: return IBV_EVENT_PORT_ACTIVE;
    case EqeType::PORT_ERROR: return IBV_EVENT_PORT_ERR;
    case EqeType::PKEY_CHANGE: return IBV_EVENT_PKEY_CHANGE;
    case EqeType::GID_CHANGE: return IBV_EVENT_GID_CHANGE;
    case EqeType::DEVICE_FATAL: return IBV_EVENT_DEVICE_FATAL;
    default: return std::nullopt;
  }
}

// The management function, as an administrator has it.
struct Administrator {
  explicit Administrator(sim::WorldNic& n)
      : nic(n),
        transport(transport_to(nic)),
        arena(*transport),
        queue(*transport, arena, std::chrono::seconds(60)) {}
  sim::ManagementNic nic;
  std::unique_ptr<Transport> transport;
  DmaArena arena;
  AdminQueue queue;
};

class RtlDevice final : public Device {
 public:
  RtlDevice(sim::ChipConfig chip, const sim::WorldConfig& config)
      : name_("RTL, " + std::string(sim::to_string(chip))),
        world_(config),
        port_(world_, chip == sim::ChipConfig::wide ? 4 : 8, config.fabric.link.latency),
        device_(roci::Device::open(transport_to(world_.nic(0)), DeviceOptions::from_environment())),
        context_(device_),
        pds_{Pd(context_), Pd(context_)} {
    for (size_t n = 0; n <= static_cast<size_t>(hwif::LAST_COUNTER); ++n) {
      counters_[hwif::to_string(static_cast<hwif::Counter>(n))] = n;
    }
  }
  ~RtlDevice() override { world_.fabric().port(kTesterPort).on_frame({}); }

  std::string name() const override { return name_; }
  FramePort& wire() override { return port_; }
  wirecodec::Mac mac() const override {
    wirecodec::Mac mac{};
    const uint64_t number = world_.nic(0).mac();
    for (unsigned b = 0; b < 6; ++b) mac[b] = static_cast<uint8_t>(number >> (40 - 8 * b));
    return mac;
  }
  wirecodec::Gid gid() const override { return wirecodec::gid_from_mac(mac()); }

  std::unique_ptr<Memory> register_memory(size_t bytes, unsigned access, Domain domain) override {
    return std::make_unique<RtlMemory>(pds_[static_cast<size_t>(domain)], bytes, access);
  }
  std::unique_ptr<QueuePair> create_qp(const QpSettings& settings) override {
    return std::make_unique<RtlQp>(context_, pds_[0], settings);
  }
  std::vector<Event> events() override {
    device_->poll_events();
    std::vector<Event> events;
    while (const auto event = context_.take_async_event()) {
      const auto type = verbs_event(event->type);
      if (type) events.push_back({*type, event->qp == nullptr ? 0 : event->qp->number()});
    }
    return events;
  }
  std::optional<uint64_t> counter(const std::string& name) override {
    const auto place = counters_.find(name);
    if (place == counters_.end()) throw std::invalid_argument("no counter " + name);
    for (uint64_t passed = 0; passed < kCountedLater;) passed += world_.pass(kCountedLater - passed);
    using Window = hwif::csr::ManagementCounter;
    return world_.nic(0).bar_read(
        0, static_cast<uint32_t>(Window::ADDRESS + Window::STRIDE * place->second));
  }

  void set_gid(unsigned index, const wirecodec::Gid& gid, std::optional<uint16_t> vlan) override {
    hwif::GidEntry value{};
    Gid raw{};
    std::memcpy(raw.bytes, gid.data(), gid.size());
    value.set<hwif::GidEntry::gid>(raw);
    value.set<hwif::GidEntry::gid_type>(hwif::GidType::ROCE_V1);
    value.set<hwif::GidEntry::vlan_present>(vlan.has_value());
    value.set<hwif::GidEntry::vlan_id>(vlan.value_or(0));
    administrator().run<hwif::admin::SetGid>(index, value);
  }
  void set_pkey(unsigned index, uint16_t pkey) override {
    hwif::SetPkeyParams params{};
    params.set<hwif::SetPkeyParams::pkey>(pkey);
    administrator().run<hwif::admin::SetPkey>(index, params);
  }

 private:
  AdminQueue& administrator() {
    if (administrator_ == nullptr) administrator_ = std::make_unique<Administrator>(world_.nic(0));
    return administrator_->queue;
  }

  const std::string name_;
  mutable sim::World world_;
  FabricPort port_;
  std::shared_ptr<roci::Device> device_;
  Context context_;
  Pd pds_[2];
  std::map<std::string, size_t> counters_;
  std::unique_ptr<Administrator> administrator_;
};

}  // namespace

std::unique_ptr<Device> make_rtl_device(sim::ChipConfig chip, uint64_t seed) {
  return std::make_unique<RtlDevice>(chip, world_config(chip, seed));
}

}  // namespace roci::conformance
