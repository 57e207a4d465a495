// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "devices.hpp"

#include "real.hpp"
#include "sysfs.hpp"

#include <roci/log.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include <pthread.h>

namespace roci::preload {
namespace {

// Only their addresses are used: they mark our devices.
ibv_context* device_mark(ibv_device*, int) { return nullptr; }
void context_mark(ibv_context*) {}

struct Known {
  std::mutex mutex;
  std::map<std::string, DeviceEntry*> by_socket;
  // Also those that have a successor.
  std::vector<DeviceEntry*> all;
};

Known& known() {
  static Known& instance = *new Known;
  return instance;
}

const char* variable(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

// Whether programs would see the same of both.
bool looks_like(const NicInfo& a, const NicInfo& b) {
  const auto same_gid = [](const PublishedGid& x, const PublishedGid& y) {
    return x.index == y.index && x.gid == y.gid && x.type == y.type;
  };
  return a.name == b.name && a.number == b.number && a.socket == b.socket &&
         a.node_guid == b.node_guid && a.mac == b.mac && a.link_up == b.link_up &&
         a.speed_mbps == b.speed_mbps && a.active_mtu == b.active_mtu &&
         a.hwif_hash == b.hwif_hash && a.gid_table_length == b.gid_table_length &&
         std::equal(a.gids.begin(), a.gids.end(), b.gids.begin(), b.gids.end(), same_gid) &&
         a.pkeys == b.pkeys;
}

DeviceEntry* make_entry(const NicInfo& nic) {
  auto* entry = new DeviceEntry{};
  entry->nic = nic;
  // Beside real devices ours get numbers that those do not reach.
  entry->uverbs = nic.number + (has_real_devices() ? 128 : 0);
  ibv_device& d = entry->device;
  d._ops._dummy1 = device_mark;
  d._ops._dummy2 = context_mark;
  d.node_type = IBV_NODE_CA;
  d.transport_type = IBV_TRANSPORT_IB;
  snprintf(d.name, sizeof d.name, "%s", nic.name.c_str());
  snprintf(d.dev_name, sizeof d.dev_name, "uverbs%u", entry->uverbs);
  snprintf(d.dev_path, sizeof d.dev_path, "/sys/class/infiniband_verbs/uverbs%u", entry->uverbs);
  snprintf(d.ibdev_path, sizeof d.ibdev_path, "/sys/class/infiniband/%s", nic.name.c_str());
  return entry;
}

}  // namespace

DeviceEntry* entry_of(ibv_device* device) noexcept {
  if (device->_ops._dummy1 != device_mark) return nullptr;
  return reinterpret_cast<DeviceEntry*>(device);
}

void handle_fork() noexcept {
  // The tree is the outer one: making it asks for the devices.
  [[maybe_unused]] static const int handled = pthread_atfork(
      [] {
        lock_tree();
        known().mutex.lock();
      },
      [] {
        known().mutex.unlock();
        unlock_tree();
      },
      [] {
        new (&known().mutex) std::mutex;
        renew_tree_lock();
      });
}

std::vector<DeviceEntry*> our_devices() {
  handle_fork();
  std::vector<DeviceEntry*> entries;
  const auto nics = list_simulated_nics(variable("ROCI_SIM"), variable("ROCI_DEVICES"));
  Known& k = known();
  const std::lock_guard lock(k.mutex);
  for (const NicInfo& nic : nics) {
    DeviceEntry*& entry = k.by_socket[nic.socket];
    // Whoever has an entry reads it without a lock: it never changes, a NIC that does gets another.
    if (entry == nullptr || !looks_like(entry->nic, nic)) {
      entry = make_entry(nic);
      k.all.push_back(entry);
    }
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace roci::preload
