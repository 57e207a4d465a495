// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "devices.hpp"

#include "real.hpp"
#include "sysfs.hpp"

#include <roci/log.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace roci::preload {
namespace {

// Only their addresses are used: they mark our devices.
ibv_context* device_mark(ibv_device*, int) { return nullptr; }
void context_mark(ibv_context*) {}

struct Known {
  std::mutex mutex;
  std::map<std::string, DeviceEntry*> by_socket;
};

Known& known() {
  static Known& instance = *new Known;
  return instance;
}

const char* variable(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
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

std::vector<DeviceEntry*> our_devices() {
  std::vector<DeviceEntry*> entries;
  const auto nics = list_simulated_nics(variable("ROCI_SIM"), variable("ROCI_DEVICES"));
  Known& k = known();
  const std::lock_guard lock(k.mutex);
  for (const NicInfo& nic : nics) {
    DeviceEntry*& entry = k.by_socket[nic.socket];
    if (entry == nullptr) {
      entry = make_entry(nic);
    } else {
      entry->nic = nic;
    }
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace roci::preload
