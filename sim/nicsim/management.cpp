// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "nicsim/management.hpp"

#include "model/management_nic.hpp"

#include <core/admin_queue.hpp>
#include <roci/dma.hpp>
#include <roci_hwif_names.hpp>

#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>

namespace roci::sim {
namespace {

constexpr uint16_t kDefaultPkey = 0xffff;

}  // namespace

std::array<std::array<uint8_t, 16>, 2> default_gids(uint64_t mac, unsigned index) {
  const auto byte = [&](unsigned n) { return static_cast<uint8_t>(mac >> (40 - 8 * n)); };
  return {{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(byte(0) ^ 2), byte(1), byte(2), 0xff,
            0xfe, byte(3), byte(4), byte(5)},
           {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, static_cast<uint8_t>(index + 1)}}};
}

struct PortManager::Parts {
  explicit Parts(WorldNic& n)
      : nic(n),
        management(n),
        transport(make_inproc_transport(management)),
        arena(*transport),
        queue(*transport, arena, std::chrono::milliseconds(10000)) {}

  WorldNic& nic;
  ManagementNic management;
  std::unique_ptr<Transport> transport;
  DmaArena arena;
  AdminQueue queue;
};

PortManager::PortManager(WorldNic& nic) : parts_(std::make_unique<Parts>(nic)) {}
PortManager::~PortManager() = default;

void PortManager::set_gid(unsigned entry, const std::array<uint8_t, 16>& gid,
                          std::optional<uint16_t> vlan) {
  hwif::GidEntry value{};
  Gid raw{};
  std::memcpy(raw.bytes, gid.data(), gid.size());
  value.set<hwif::GidEntry::gid>(raw);
  value.set<hwif::GidEntry::gid_type>(hwif::GidType::ROCE_V1);
  value.set<hwif::GidEntry::vlan_present>(vlan.has_value());
  value.set<hwif::GidEntry::vlan_id>(vlan.value_or(0));
  parts_->queue.run<hwif::admin::SetGid>(entry, value);
}

void PortManager::set_mac(uint64_t mac) {
  uint64_t word = 0;  // network order: first byte in bits 7:0
  for (unsigned b = 0; b < 6; ++b) word |= (mac >> (40 - 8 * b) & 0xff) << (8 * b);
  {
    const std::lock_guard lock(parts_->nic.mutex());
    parts_->nic.bar_write(0, hwif::csr::ManagementPortMac::ADDRESS, word);
  }
  // The firmware takes it over in the turn of the first command behind it, before the second one.
  parts_->queue.run<hwif::admin::Nop>(0);
  parts_->queue.run<hwif::admin::Nop>(0);
}

void set_up_port(World& world, unsigned index) {
  WorldNic& nic = world.nic(index);
  PortManager manager(nic);
  unsigned entry = 0;
  for (const auto& gid : default_gids(nic.mac(), index)) manager.set_gid(entry++, gid);
}

ServedNic describe(World& world, unsigned index) {
  WorldNic& nic = world.nic(index);
  ServedNic out;
  out.nic = &nic;
  out.functions = world.functions() - 1;
  out.info.hwif_hash = nic.bar_read(0, hwif::csr::IdentityHwifHash::ADDRESS);
  using Status = hwif::csr::ManagementPortStatus;
  const auto status = Status::Value::from_word(nic.bar_read(0, Status::ADDRESS));
  out.info.link_up = status.get<Status::Value::link_up>() ? 1 : 0;
  out.info.speed_mbps = status.get<Status::Value::speed_mbps>();
  using Control = hwif::csr::ManagementPortControl;
  const auto control = Control::Value::from_word(nic.bar_read(0, Control::ADDRESS));
  out.info.active_mtu = static_cast<uint8_t>(control.get<Control::Value::active_mtu>());
  using Tables = hwif::csr::IdentityPortTables;
  const auto tables = Tables::Value::from_word(nic.bar_read(0, Tables::ADDRESS));
  out.info.gid_table_length = static_cast<uint16_t>(tables.get<Tables::Value::gids>());
  for (unsigned b = 0; b < sizeof out.info.mac; ++b) {
    out.info.mac[b] = static_cast<uint8_t>(nic.mac() >> (40 - 8 * b));
  }
  const auto gids = default_gids(nic.mac(), index);
  std::memcpy(out.info.node_guid, gids[0].data() + 8, sizeof out.info.node_guid);
  for (size_t i = 0; i < gids.size(); ++i) {
    vfio_user::NicGid gid{};
    std::memcpy(gid.gid, gids[i].data(), gids[i].size());
    gid.index = static_cast<uint16_t>(i);
    gid.type = static_cast<uint8_t>(hwif::GidType::ROCE_V1);
    out.gids.push_back(gid);
  }
  out.pkeys = {kDefaultPkey};
  return out;
}

uint64_t read_counter(WorldNic& nic, hwif::Counter counter) {
  using Window = hwif::csr::ManagementCounter;
  return nic.bar_read(0, Window::ADDRESS + static_cast<uint32_t>(counter) * Window::STRIDE);
}

std::vector<std::pair<std::string, uint64_t>> read_counters(WorldNic& nic) {
  std::vector<std::pair<std::string, uint64_t>> out;
  for (uint32_t i = 0; i < hwif::csr::ManagementCounter::COUNT; ++i) {
    const auto counter = static_cast<hwif::Counter>(i);
    const std::string name = hwif::to_string(counter);
    if (name != "?") out.emplace_back(name, read_counter(nic, counter));
  }
  return out;
}

}  // namespace roci::sim
