// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The devices that programs see.
#pragma once

#include <roci/simulator.hpp>

#include <infiniband/verbs.h>

#include <memory>
#include <string>
#include <vector>

namespace roci::preload {

/// One of our NICs as programs see it. Lives for ever, and never changes: programs keep pointers.
struct DeviceEntry {
  ibv_device device;
  /// Where newer libraries look for fields of their own; zero.
  char tail[1024];
  /// As it was when it was found (functions_free is of that time).
  NicInfo nic;
  /// Number in the name of the (pretended) character device.
  unsigned uverbs;
};

/// Our devices now: those of ROCI_SIM that answer, filtered by ROCI_DEVICES.
std::vector<DeviceEntry*> our_devices();

/// Lets fork wait from now on for what another thread does here or with the tree of sysfs.hpp: a child
/// has no such thread, and would wait for it for ever.
void handle_fork() noexcept;

/// The entry behind a device, or nullptr if it is somebody else's.
DeviceEntry* entry_of(ibv_device* device) noexcept;

}  // namespace roci::preload
