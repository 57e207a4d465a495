// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Opening and closing of a device, its limits and its port. Events: device_events.cpp.
#include "address.hpp"
#include "admin_queue.hpp"
#include "patience.hpp"

#include <roci/cq.hpp>
#include <roci/device.hpp>
#include <roci/error.hpp>
#include <roci/log.hpp>
#include <roci/qp.hpp>

#include <roci_hwif_names.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace roci {
namespace {

namespace csr = hwif::csr;

template <class Register>
Register read(Transport& transport) {
  return Register::from_word(transport.bar_read(Register::ADDRESS));
}

}  // namespace

DeviceOptions DeviceOptions::from_environment() {
  DeviceOptions options;
  if (const char* dma = getenv("ROCI_DMA")) {
    if (strcmp(dma, "scatter") == 0) {
      options.dma = DmaPolicy::SCATTER;
    } else if (*dma != 0 && strcmp(dma, "direct") != 0) {
      fail(EINVAL, "ROCI_DMA=%s is not known: direct or scatter", dma);
    }
  }
  if (const char* single = getenv("ROCI_SINGLE_THREADED")) {
    options.single_threaded = strcmp(single, "1") == 0;
  }
  if (const char* timeout = getenv("ROCI_TIMEOUT")) {
    char* end = nullptr;
    const long seconds = strtol(timeout, &end, 10);
    if (*timeout == 0 || *end != 0 || seconds <= 0 || seconds > 86400) {
      fail(EINVAL, "ROCI_TIMEOUT=%s is no number of seconds", timeout);
    }
    options.timeout = std::chrono::seconds(seconds);
  }
  return options;
}

std::shared_ptr<Device> Device::open(std::unique_ptr<Transport> transport, DeviceOptions options) {
  // No make_shared: the constructor is private.
  std::shared_ptr<Device> device(new Device(std::move(transport), options));
  device->check_identity();
  device->arena_ = std::make_unique<DmaArena>(*device->transport_);
  device->dma_map_ = std::make_unique<DmaMap>(*device->transport_, options.dma);
  device->admin_ =
      std::make_unique<AdminQueue>(*device->transport_, *device->arena_, options.timeout);
  device->admin_->on_failure([d = device.get()] {
    log(LogLevel::WARN, "the device failed: its firmware does not answer");
    d->die(hwif::EqeType::DEVICE_FATAL);
  });
  csr::InterruptVector unmasked{};
  device->transport_->bar_write(
      csr::InterruptVector::ADDRESS + AdminQueue::VECTOR * csr::InterruptVector::STRIDE,
      unmasked.to_word());
  device->read_limits();
  device->create_eq();
  device->start_events();
  return device;
}

Device::Device(std::unique_ptr<Transport> transport, DeviceOptions options)
    : transport_(std::move(transport)), options_(options) {}

Device::~Device() {
  transport_->on_loss(nullptr);
  stop_events();
  // The function reset ends all DMA; only then memory may go.
  admin_.reset();
  dma_map_.reset();
  eq_ring_.reset();
  arena_.reset();
}

void Device::check_alive() const {
  if (dead()) fail(EIO, "the device failed: close it and open it again");
}

// Hardware, firmware and this program have to agree on every bit of the interface.
void Device::check_identity() {
  const uint64_t hardware = transport_->bar_read(csr::IdentityHwifHash::ADDRESS);
  if (hardware != hwif::HWIF_HASH) {
    fail(EPROTO,
         "the device has interface 0x%016llx, this host stack 0x%016llx: build both from the same "
         "sources",
         static_cast<unsigned long long>(hardware),
         static_cast<unsigned long long>(hwif::HWIF_HASH));
  }
  Patience patience(*transport_, options_.timeout);
  for (;;) {
    const auto firmware = read<csr::IdentityFirmware>(*transport_);
    const auto state = firmware.get<csr::IdentityFirmware::state>();
    if (state == hwif::FirmwareState::READY) break;
    if (state == hwif::FirmwareState::FAILED) {
      fail(EIO, "the firmware of the device failed: %s",
           to_string(firmware.get<csr::IdentityFirmware::fault>()));
    }
    if (patience.over()) fail(EIO, "the firmware of the device does not start: %s", to_string(state));
    constexpr std::chrono::milliseconds PAUSE{5};
    patience.wait(AdminQueue::VECTOR, PAUSE);
  }
  const uint64_t firmware = transport_->bar_read(csr::IdentityFirmwareHash::ADDRESS);
  if (firmware != hwif::HWIF_HASH) {
    fail(EPROTO,
         "the firmware has interface 0x%016llx, this host stack 0x%016llx: build both from the same "
         "sources",
         static_cast<unsigned long long>(firmware),
         static_cast<unsigned long long>(hwif::HWIF_HASH));
  }
}

void Device::read_limits() {
  const auto id = read<csr::IdentityDeviceId>(*transport_);
  const auto configuration = read<csr::IdentityConfiguration>(*transport_);
  const auto qp_cq = read<csr::IdentityObjectsQpCq>(*transport_);
  const auto eq_srq = read<csr::IdentityObjectsEqSrq>(*transport_);
  const auto tables = read<csr::IdentityPortTables>(*transport_);
  const auto work = read<csr::IdentityWorkLimits>(*transport_);
  const auto rings = read<csr::IdentityRingLimits>(*transport_);
  const auto memory = read<csr::IdentityMemoryLimits>(*transport_);
  const auto capabilities = read<csr::IdentityCapabilities>(*transport_);
  const auto query = admin_->run<hwif::admin::QueryDevice>(0).output;
  using Query = hwif::QueryDeviceOutput;

  DeviceLimits& l = limits_;
  l.config = configuration.get<csr::IdentityConfiguration::config_name>();
  l.function_number = configuration.get<csr::IdentityConfiguration::function_number>();
  l.clock_khz = configuration.get<csr::IdentityConfiguration::clock_khz>();
  l.version_major = id.get<csr::IdentityDeviceId::version_major>();
  l.version_minor = id.get<csr::IdentityDeviceId::version_minor>();
  l.version_patch = id.get<csr::IdentityDeviceId::version_patch>();
  l.vendor = id.get<csr::IdentityDeviceId::vendor>();
  l.device = id.get<csr::IdentityDeviceId::device>();
  l.firmware_version =
      format("%u.%u.%u", query.get<Query::firmware_major>(), query.get<Query::firmware_minor>(),
             query.get<Query::firmware_patch>());
  l.node_guid = query.get<Query::node_guid>();
  l.system_image_guid = query.get<Query::system_image_guid>();
  l.max_qps = query.get<Query::max_qps>();
  l.max_cqs = query.get<Query::max_cqs>();
  l.privileged = query.get<Query::privileged>();
  l.max_mrs = query.get<Query::max_mrs>();
  l.max_pds = query.get<Query::max_pds>();
  l.sq_log2 = rings.get<csr::IdentityRingLimits::sq_log2>();
  l.rq_log2 = rings.get<csr::IdentityRingLimits::rq_log2>();
  l.cq_log2 = rings.get<csr::IdentityRingLimits::cq_log2>();
  l.eq_log2 = rings.get<csr::IdentityRingLimits::eq_log2>();
  // Half a ring of one-block requests, so that programs with two SGEs or short inline data get it,
  // too, and a CQ can hold the completions of both queues.
  l.max_qp_wr = std::min(1u << (l.sq_log2 - 1), 1u << l.rq_log2);
  l.max_srq_wr = 1u << rings.get<csr::IdentityRingLimits::srq_log2>();
  l.max_sge = work.get<csr::IdentityWorkLimits::max_sge>();
  l.max_sge_read = work.get<csr::IdentityWorkLimits::max_sge_read>();
  l.max_inline = work.get<csr::IdentityWorkLimits::max_inline_bytes>();
  l.max_inline_ud = std::min(l.max_inline, hwif::MAX_INLINE_BYTES_UD);
  l.max_message = uint64_t{1} << work.get<csr::IdentityWorkLimits::max_message_log2>();
  l.max_initiator_depth = work.get<csr::IdentityWorkLimits::max_initiator_depth>();
  l.max_responder_depth = work.get<csr::IdentityWorkLimits::max_responder_depth>();
  l.max_total_responder_depth = query.get<Query::max_total_responder_depth>();
  l.max_cqe = 1u << (l.cq_log2 - 1);
  // Any range of a process; one contiguous piece needs no table.
  l.max_mr_bytes = uint64_t{1} << 40;
  l.min_page_shift = memory.get<csr::IdentityMemoryLimits::min_page_shift>();
  l.max_page_shift = memory.get<csr::IdentityMemoryLimits::max_page_shift>();
  l.gids = tables.get<csr::IdentityPortTables::gids>();
  l.pkeys = tables.get<csr::IdentityPortTables::pkeys>();
  l.rc = capabilities.get<csr::IdentityCapabilities::rc>();
  l.uc = capabilities.get<csr::IdentityCapabilities::uc>();
  l.ud = capabilities.get<csr::IdentityCapabilities::ud>();
  l.gsi = capabilities.get<csr::IdentityCapabilities::gsi>();
  l.srq = capabilities.get<csr::IdentityCapabilities::srq>();
  l.atomics = capabilities.get<csr::IdentityCapabilities::atomics>();
  l.max_srqs = l.srq ? query.get<Query::max_srqs>() : 0;
  l.max_multicast = capabilities.get<csr::IdentityCapabilities::multicast>()
                        ? query.get<Query::max_multicast_attach>()
                        : 0;
  l.cq_resize = capabilities.get<csr::IdentityCapabilities::cq_resize>();
  l.timestamps = capabilities.get<csr::IdentityCapabilities::timestamps>();

  // Numbers carry the index in their low bits.
  const auto qps = qp_cq.get<csr::IdentityObjectsQpCq::qps>();
  const auto cqs = qp_cq.get<csr::IdentityObjectsQpCq::cqs>();
  qp_mask_ = std::bit_ceil(qps) - 1;
  qps_ = std::make_unique<std::atomic<Qp*>[]>(qp_mask_ + size_t{1});
  cqs_.assign(std::bit_ceil(cqs), nullptr);
  const auto srqs = eq_srq.get<csr::IdentityObjectsEqSrq::srqs>();
  srqs_.assign(std::bit_ceil(std::max(srqs, 1u)), nullptr);
  log(LogLevel::INFO, "device %s, function %u, %u QPs, %u CQs, firmware %s", to_string(l.config),
      l.function_number, l.max_qps, l.max_cqs, l.firmware_version.c_str());
}

// ---- port ---------------------------------------------------------------------------------------

std::vector<GidEntry> Device::gid_table() {
  check_alive();
  const std::lock_guard lock(tables_mutex_);
  // Before the read: a change that comes meanwhile makes the next caller read again.
  if (!gids_valid_.exchange(true)) {
    try {
      gids_.clear();
      for (const auto& raw : admin_->run_array<hwif::admin::QueryGid>(0, limits_.gids)) {
        gids_.push_back({raw.get<hwif::GidEntry::gid>(), raw.get<hwif::GidEntry::gid_type>(),
                         raw.get<hwif::GidEntry::vlan_present>(),
                         raw.get<hwif::GidEntry::vlan_id>()});
      }
    } catch (...) {
      gids_valid_ = false;
      throw;
    }
  }
  return gids_;
}

std::vector<uint16_t> Device::pkey_table() {
  check_alive();
  const std::lock_guard lock(tables_mutex_);
  if (!pkeys_valid_.exchange(true)) {
    try {
      pkeys_.clear();
      for (const auto& raw : admin_->run_array<hwif::admin::QueryPkey>(0, limits_.pkeys)) {
        pkeys_.push_back(raw.get<hwif::PkeyEntry::pkey>());
      }
    } catch (...) {
      pkeys_valid_ = false;
      throw;
    }
  }
  return pkeys_;
}

PortState Device::query_port() {
  check_alive();
  const auto port = admin_->run<hwif::admin::QueryPort>(1).output;
  using Port = hwif::PortAttributes;
  return {.mac = port.get<Port::mac>(),
          .active = port.get<Port::link_up>() && port.get<Port::enabled>(),
          .active_mtu = port.get<Port::active_mtu>(),
          .max_mtu = port.get<Port::max_mtu>(),
          .speed_mbps = port.get<Port::speed_mbps>(),
          .bad_pkeys = port.get<Port::bad_pkey_count>(),
          .bad_qkeys = port.get<Port::bad_qkey_count>()};
}

std::vector<uint64_t> Device::query_counters(unsigned first, size_t count) {
  check_alive();
  std::vector<uint64_t> values;
  for (const auto& raw : admin_->run_array<hwif::admin::QueryCounters>(first, count)) {
    values.push_back(raw.get<hwif::CounterValue::count>());
  }
  return values;
}

uint64_t Device::clock() {
  check_alive();
  return transport_->bar_read(csr::IdentityClock::ADDRESS);
}

MacAddress Device::resolve(const Gid& gid) {
  if (const auto mac = mac_from_gid(gid)) return *mac;
  for (const GidEntry& entry : gid_table()) {
    if (entry.type != hwif::GidType::NONE && entry.gid == gid) return query_port().mac;
  }
  if (const auto neighbour = transport_->resolve(gid)) return neighbour->mac;
  fail(EHOSTUNREACH,
       "ah_attr.grh.dgid %s: no MAC address is known for it; is the peer's port up and on this "
       "network?",
       gid_text(gid).c_str());
}

}  // namespace roci
