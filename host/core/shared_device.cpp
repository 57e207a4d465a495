// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Devices that the whole process shares, and fork: the parent goes on undisturbed; the child drops
// everything without sending anything, and what it opens afterwards is its own.
#include "admin_queue.hpp"

#include <roci/cq.hpp>
#include <roci/device.hpp>
#include <roci/error.hpp>
#include <roci/qp.hpp>
#include <roci/simulator.hpp>
#include <roci/srq.hpp>

#include <pthread.h>

#include <map>
#include <mutex>
#include <new>
#include <vector>

namespace roci {
namespace {

struct Registry {
  std::mutex mutex;
  bool handles_fork = false;
  std::map<std::string, std::weak_ptr<Device>> devices;
  // Between the handlers of fork.
  std::vector<std::shared_ptr<Device>> forking;
};

// Never destroyed: threads and atexit handlers of the program may outlive static objects.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

void before_fork() {
  Registry& r = registry();
  r.mutex.lock();
  for (const auto& [name, weak] : r.devices) {
    if (auto device = weak.lock()) r.forking.push_back(std::move(device));
  }
  for (const auto& device : r.forking) device->before_fork();
}

void after_fork_in_parent() {
  Registry& r = registry();
  for (const auto& device : r.forking) device->after_fork_in_parent();
  std::vector<std::shared_ptr<Device>> last_owners;
  last_owners.swap(r.forking);
  r.mutex.unlock();
}

void after_fork_in_child() {
  Registry& r = registry();
  for (const auto& device : r.forking) device->after_fork_in_child();
  new (&r.mutex) std::mutex;
  // Contexts of the parent that the child inherited own their device on; nobody else finds it.
  r.forking.clear();
  r.devices.clear();
}

}  // namespace

std::shared_ptr<Device> open_shared_device(const std::string& socket) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (!r.handles_fork) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    r.handles_fork = true;
  }
  auto& weak = r.devices[socket];
  if (auto device = weak.lock(); device && !device->dead()) return device;
  auto device = Device::open(connect_simulator(socket), DeviceOptions::from_environment());
  weak = device;
  return device;
}

// From the outermost lock to the innermost, as the control path takes them.
void Device::before_fork() noexcept {
  objects_mutex_.lock();
  dma_map_->before_fork();
  arena_->before_fork();
  transport_->before_fork();
}

void Device::after_fork_in_parent() noexcept {
  transport_->after_fork();
  arena_->after_fork();
  dma_map_->after_fork();
  objects_mutex_.unlock();
}

void Device::after_fork_in_child() noexcept {
  dead_.store(true, std::memory_order_release);
  thread_runs_ = false;  // it stayed in the parent
  transport_->abandon_after_fork();
  arena_->abandon_after_fork();
  dma_map_->abandon_after_fork();
  admin_->abandon_after_fork();
  new (&objects_mutex_) std::mutex;
  new (&tables_mutex_) std::mutex;
  new (&eq_mutex_) std::mutex;
  for (Cq* cq : cqs_) {
    if (cq != nullptr) cq->abandon_after_fork();
  }
  for (Srq* srq : srqs_) {
    if (srq != nullptr) srq->abandon_after_fork();
  }
  for (uint32_t i = 0; i <= qp_mask_; ++i) {
    if (Qp* qp = qps_[i].load(std::memory_order_relaxed)) qp->abandon_after_fork();
  }
  for (Context* context : contexts_) context->abandon_after_fork();
}

}  // namespace roci
