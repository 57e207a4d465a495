// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "real.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace roci::preload {
namespace {

void* libibverbs() noexcept {
  // Leaked on purpose: other threads may be inside until the very end.
  static void* const handle = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_LOCAL);
  return handle;
}

// Of libibverbs' private interface; its signature did not change from rdma-core 34 to 64.
using InitContext = void*(ibv_device* device, int cmd_fd, size_t size, void* context_offset,
                          uint32_t driver);

verbs_ex_private* make_dummy_priv() noexcept {
  auto* init = real<InitContext>("_verbs_init_and_alloc_context");
  if (init == nullptr) return nullptr;
  // It counts references behind the public part of the device.
  struct {
    ibv_device device;
    char tail[1024];
  }* device = static_cast<decltype(device)>(calloc(1, sizeof *device));
  if (device == nullptr) return nullptr;
  // Its verbs_context may be longer than ours: longer ones grow at the front, so what we know is found
  // from the end. `sz`, just before the public context, tells where that is.
  constexpr size_t SPACE = 16384;
  auto* base = static_cast<unsigned char*>(init(&device->device, -1, SPACE, nullptr, 0));
  if (base == nullptr) return nullptr;
  for (size_t size = sizeof(verbs_context); size + sizeof(ibv_context) < SPACE; size += 8) {
    size_t stored = 0;
    std::memcpy(&stored, base + size - sizeof(ibv_context) - sizeof stored, sizeof stored);
    if (stored != size) continue;
    verbs_context* context = reinterpret_cast<verbs_context*>(base + size - sizeof(verbs_context));
    return context->priv;
  }
  return nullptr;
}

}  // namespace

void* find_real(const char* name) noexcept {
  if (void* next = dlsym(RTLD_NEXT, name)) return next;
  void* library = libibverbs();
  return library != nullptr ? dlsym(library, name) : nullptr;
}

verbs_ex_private* dummy_priv() noexcept {
  static verbs_ex_private* const priv = make_dummy_priv();
  return priv;
}

}  // namespace roci::preload
