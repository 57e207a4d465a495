// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The public functions of libibverbs: ours for our devices, the real ones for all others. Only
// functions that take a device, a context or an object of one are here; what is pure computation
// (ibv_rate_to_mult, ibv_wc_status_str, …) stays libibverbs'. tests/host/preload_symbols_test.py
// compares this list with the installed library and programs.
#include "devices.hpp"
#include "real.hpp"
#include "sysfs.hpp"

#include <roci/log.hpp>
#include <roci/verbs.hpp>

#include <endian.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

namespace v = roci::verbs;
using roci::preload::DeviceEntry;
using roci::preload::entry_of;
using roci::preload::our_devices;

// Calls the real function, or answers `otherwise` with ENOSYS if there is none.
template <class Result, class... Arguments>
Result forward(const char* name, Result otherwise, Arguments... arguments) {
  auto* function = roci::preload::real<Result(Arguments...)>(name);
  if (function != nullptr) return function(arguments...);
  errno = ENOSYS;
  return otherwise;
}

// An object whose first member is its context.
template <class Object>
bool ours(const Object* object) {
  return v::is_ours(object->context);
}
bool ours(const ibv_context* context) { return v::is_ours(context); }

// What our devices do not have; not_there() with the name of the function that was called.
int unsupported_code(const char* name = __builtin_FUNCTION()) {
  return v::not_there(name, roci::LogLevel::INFO);
}

template <class T>
T* unsupported(const char* name = __builtin_FUNCTION()) {
  unsupported_code(name);
  return nullptr;
}

// In front of the list that a program gets: what ibv_free_device_list() has to give back.
struct ListHead {
  ibv_device** real;
  uint64_t mark;
};
constexpr uint64_t LIST_MARK = 0x524f43494c495354;

}  // namespace

// ---- devices ------------------------------------------------------------------------------------

EXPORT ibv_device** ibv_get_device_list(int* count) {
  int real_count = 0;
  ibv_device** real = forward<ibv_device**>("ibv_get_device_list", nullptr, &real_count);
  const int real_error = errno;
  if (real == nullptr) real_count = 0;
  try {
    const auto entries = our_devices();
    if (entries.empty() && real == nullptr) {
      // As if we were not there, but a program that was told of a simulation gets an empty list.
      if (getenv("ROCI_SIM") == nullptr) {
        if (count != nullptr) *count = 0;
        errno = real_error;
        return nullptr;
      }
    }
    const size_t total = entries.size() + static_cast<size_t>(real_count);
    auto* head = static_cast<ListHead*>(
        calloc(1, sizeof(ListHead) + (total + 1) * sizeof(ibv_device*)));
    if (head == nullptr) throw std::bad_alloc();
    head->real = real;
    head->mark = LIST_MARK;
    auto** list = reinterpret_cast<ibv_device**>(head + 1);
    size_t n = 0;
    for (DeviceEntry* entry : entries) list[n++] = &entry->device;
    for (int i = 0; i < real_count; ++i) list[n++] = real[i];
    if (count != nullptr) *count = static_cast<int>(total);
    errno = 0;
    return list;
  } catch (const std::exception&) {
    errno = ENOMEM;
    return nullptr;
  }
}

EXPORT void ibv_free_device_list(ibv_device** list) {
  if (list == nullptr) return;
  auto* head = reinterpret_cast<ListHead*>(list) - 1;
  if (head->mark != LIST_MARK) return;
  if (head->real != nullptr) {
    if (auto* free_real = roci::preload::real<void(ibv_device**)>("ibv_free_device_list")) {
      free_real(head->real);
    }
  }
  head->mark = 0;
  free(head);
}

EXPORT const char* ibv_get_device_name(ibv_device* device) { return device->name; }

EXPORT __be64 ibv_get_device_guid(ibv_device* device) {
  const DeviceEntry* entry = entry_of(device);
  if (entry == nullptr) return forward<__be64>("ibv_get_device_guid", 0, device);
  __be64 guid = 0;
  std::memcpy(&guid, entry->nic.node_guid.bytes, sizeof guid);
  return guid;
}

EXPORT int ibv_get_device_index(ibv_device* device) {
  const DeviceEntry* entry = entry_of(device);
  if (entry == nullptr) return forward<int>("ibv_get_device_index", -1, device);
  return static_cast<int>(entry->uverbs);
}

EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  const DeviceEntry* entry = entry_of(device);
  if (entry == nullptr) return forward<ibv_context*>("ibv_open_device", nullptr, device);
  return v::open_device(device, entry->nic.socket, roci::preload::dummy_priv());
}

EXPORT int ibv_close_device(ibv_context* context) {
  if (!ours(context)) return forward<int>("ibv_close_device", -1, context);
  return v::close_device(context);
}

// Handles of another process mean nothing here: what they would import is real or not at all.
EXPORT ibv_context* ibv_import_device(int cmd_fd) {
  // The real one looks at every listed device; without real devices it has nothing to find.
  if (!roci::preload::has_real_devices()) return unsupported<ibv_context>();
  return forward<ibv_context*>("ibv_import_device", nullptr, cmd_fd);
}

EXPORT ibv_pd* ibv_import_pd(ibv_context* context, uint32_t handle) {
  if (!ours(context)) return forward<ibv_pd*>("ibv_import_pd", nullptr, context, handle);
  return unsupported<ibv_pd>();
}

EXPORT void ibv_unimport_pd(ibv_pd* pd) {
  if (ours(pd)) return;
  if (auto* f = roci::preload::real<void(ibv_pd*)>("ibv_unimport_pd")) f(pd);
}

EXPORT ibv_mr* ibv_import_mr(ibv_pd* pd, uint32_t handle) {
  if (!ours(pd)) return forward<ibv_mr*>("ibv_import_mr", nullptr, pd, handle);
  return unsupported<ibv_mr>();
}

EXPORT void ibv_unimport_mr(ibv_mr* mr) {
  if (ours(mr)) return;
  if (auto* f = roci::preload::real<void(ibv_mr*)>("ibv_unimport_mr")) f(mr);
}

EXPORT ibv_dm* ibv_import_dm(ibv_context* context, uint32_t handle) {
  if (!ours(context)) return forward<ibv_dm*>("ibv_import_dm", nullptr, context, handle);
  return unsupported<ibv_dm>();
}

EXPORT void ibv_unimport_dm(ibv_dm* dm) {
  if (ours(dm)) return;
  if (auto* f = roci::preload::real<void(ibv_dm*)>("ibv_unimport_dm")) f(dm);
}

// ---- queries ------------------------------------------------------------------------------------

EXPORT int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  if (!ours(context)) return forward<int>("ibv_query_device", ENOSYS, context, attr);
  return v::query_device(context, attr);
}

// Of programs built before the port's attributes grew; newer ones go through the context.
EXPORT int ibv_query_port(ibv_context* context, uint8_t port, _compat_ibv_port_attr* attr) {
  if (!ours(context)) return forward<int>("ibv_query_port", ENOSYS, context, port, attr);
  return v::query_port(context, port, reinterpret_cast<ibv_port_attr*>(attr),
                       offsetof(ibv_port_attr, flags));
}

EXPORT int ibv_query_gid(ibv_context* context, uint8_t port, int index, union ibv_gid* gid) {
  if (!ours(context)) return forward<int>("ibv_query_gid", -1, context, port, index, gid);
  return v::query_gid(context, port, index, gid);
}

EXPORT int _ibv_query_gid_ex(ibv_context* context, uint32_t port, uint32_t index,
                             ibv_gid_entry* entry, uint32_t flags, size_t size) {
  if (!ours(context)) {
    return forward<int>("_ibv_query_gid_ex", ENOSYS, context, port, index, entry, flags, size);
  }
  return v::query_gid_ex(context, port, index, entry, flags, size);
}

EXPORT ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t max,
                                    uint32_t flags, size_t size) {
  if (!ours(context)) {
    return forward<ssize_t>("_ibv_query_gid_table", -ENOSYS, context, entries, max, flags, size);
  }
  return v::query_gid_table(context, entries, max, flags, size);
}

// Private to rdma-core, but ibv_devinfo and pyverbs use it; the type is an enum of two values.
EXPORT int ibv_query_gid_type(ibv_context* context, uint8_t port, unsigned index, unsigned* type) {
  if (!ours(context)) return forward<int>("ibv_query_gid_type", -1, context, port, index, type);
  return v::query_gid_type(context, port, index, type);
}

EXPORT int ibv_query_pkey(ibv_context* context, uint8_t port, int index, __be16* pkey) {
  if (!ours(context)) return forward<int>("ibv_query_pkey", -1, context, port, index, pkey);
  return v::query_pkey(context, port, index, pkey);
}

EXPORT int ibv_get_pkey_index(ibv_context* context, uint8_t port, __be16 pkey) {
  if (!ours(context)) return forward<int>("ibv_get_pkey_index", -1, context, port, pkey);
  return v::get_pkey_index(context, port, pkey);
}

EXPORT int ibv_read_sysfs_file(const char* directory, const char* file, char* text, size_t size) {
  const int length = roci::preload::read_pretended_file(directory, file, text, size);
  if (length >= 0) return length;
  return forward<int>("ibv_read_sysfs_file", -1, directory, file, text, size);
}

// ---- events -------------------------------------------------------------------------------------

EXPORT int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  if (!ours(context)) return forward<int>("ibv_get_async_event", -1, context, event);
  return v::get_async_event(context, event);
}

// Counts in the public part of the object, the same for every provider.
EXPORT void ibv_ack_async_event(ibv_async_event* event) {
  switch (event->event_type) {
    case IBV_EVENT_WQ_FATAL:
      // Not ours: we have no such queues.
      if (auto* f = roci::preload::real<void(ibv_async_event*)>("ibv_ack_async_event")) f(event);
      break;
    default: v::ack_async_event(event); break;
  }
}

EXPORT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (!ours(context)) {
    return forward<ibv_comp_channel*>("ibv_create_comp_channel", nullptr, context);
  }
  return v::create_comp_channel(context);
}

EXPORT int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  if (!ours(channel)) return forward<int>("ibv_destroy_comp_channel", ENOSYS, channel);
  return v::destroy_comp_channel(channel);
}

EXPORT int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  if (!ours(channel)) return forward<int>("ibv_get_cq_event", -1, channel, cq, cq_context);
  return v::get_cq_event(channel, cq, cq_context);
}

EXPORT void ibv_ack_cq_events(ibv_cq* cq, unsigned int count) { v::ack_cq_events(cq, count); }

// ---- domains and memory -------------------------------------------------------------------------

EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (!ours(context)) return forward<ibv_pd*>("ibv_alloc_pd", nullptr, context);
  return v::alloc_pd(context);
}

EXPORT int ibv_dealloc_pd(ibv_pd* pd) {
  if (!ours(pd)) return forward<int>("ibv_dealloc_pd", ENOSYS, pd);
  return v::dealloc_pd(pd);
}

EXPORT ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  if (!ours(pd)) return forward<ibv_mr*>("ibv_reg_mr", nullptr, pd, address, length, access);
  return v::reg_mr(pd, address, length, reinterpret_cast<uintptr_t>(address),
                   static_cast<unsigned>(access));
}

EXPORT ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, size_t length, uint64_t iova,
                               int access) {
  if (!ours(pd)) {
    return forward<ibv_mr*>("ibv_reg_mr_iova", nullptr, pd, address, length, iova, access);
  }
  return v::reg_mr(pd, address, length, iova, static_cast<unsigned>(access));
}

EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t iova,
                                unsigned int access) {
  if (!ours(pd)) {
    return forward<ibv_mr*>("ibv_reg_mr_iova2", nullptr, pd, address, length, iova, access);
  }
  return v::reg_mr(pd, address, length, iova, access);
}

EXPORT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                 int access) {
  if (!ours(pd)) {
    return forward<ibv_mr*>("ibv_reg_dmabuf_mr", nullptr, pd, offset, length, iova, fd, access);
  }
  return unsupported<ibv_mr>();
}

EXPORT int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length,
                        int access) {
  if (!ours(mr)) {
    return forward<int>("ibv_rereg_mr", IBV_REREG_MR_ERR_INPUT, mr, flags, pd, address, length,
                        access);
  }
  return v::rereg_mr(mr, flags, pd, address, length, access);
}

EXPORT int ibv_dereg_mr(ibv_mr* mr) {
  if (!ours(mr)) return forward<int>("ibv_dereg_mr", ENOSYS, mr);
  return v::dereg_mr(mr);
}

// ---- completion queues --------------------------------------------------------------------------

EXPORT ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context,
                             ibv_comp_channel* channel, int vector) {
  if (!ours(context)) {
    return forward<ibv_cq*>("ibv_create_cq", nullptr, context, entries, cq_context, channel, vector);
  }
  return v::create_cq(context, entries, cq_context, channel, vector);
}

EXPORT int ibv_resize_cq(ibv_cq* cq, int entries) {
  if (!ours(cq)) return forward<int>("ibv_resize_cq", ENOSYS, cq, entries);
  return v::resize_cq(cq, entries);
}

EXPORT int ibv_destroy_cq(ibv_cq* cq) {
  if (!ours(cq)) return forward<int>("ibv_destroy_cq", ENOSYS, cq);
  return v::destroy_cq(cq);
}

// ---- shared receive queues, address handles, multicast ------------------------------------------

EXPORT ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  if (!ours(pd)) return forward<ibv_srq*>("ibv_create_srq", nullptr, pd, attr);
  return v::create_srq(pd, attr);
}

EXPORT int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  if (!ours(srq)) return forward<int>("ibv_modify_srq", ENOSYS, srq, attr, mask);
  return v::modify_srq(srq, attr, mask);
}

EXPORT int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  if (!ours(srq)) return forward<int>("ibv_query_srq", ENOSYS, srq, attr);
  return v::query_srq(srq, attr);
}

EXPORT int ibv_destroy_srq(ibv_srq* srq) {
  if (!ours(srq)) return forward<int>("ibv_destroy_srq", ENOSYS, srq);
  return v::destroy_srq(srq);
}

EXPORT ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  if (!ours(pd)) return forward<ibv_ah*>("ibv_create_ah", nullptr, pd, attr);
  return v::create_ah(pd, attr);
}

EXPORT int ibv_destroy_ah(ibv_ah* ah) {
  if (!ours(ah)) return forward<int>("ibv_destroy_ah", ENOSYS, ah);
  return v::destroy_ah(ah);
}

EXPORT int ibv_init_ah_from_wc(ibv_context* context, uint8_t port, ibv_wc* wc, ibv_grh* grh,
                               ibv_ah_attr* attr) {
  if (!ours(context)) {
    return forward<int>("ibv_init_ah_from_wc", -1, context, port, wc, grh, attr);
  }
  return v::init_ah_from_wc(context, port, wc, grh, attr);
}

EXPORT ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port) {
  if (!ours(pd)) return forward<ibv_ah*>("ibv_create_ah_from_wc", nullptr, pd, wc, grh, port);
  return v::create_ah_from_wc(pd, wc, grh, port);
}

EXPORT int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* attr,
                                       uint8_t mac[ETHERNET_LL_SIZE], uint16_t* vid) {
  if (!ours(context)) {
    return forward<int>("ibv_resolve_eth_l2_from_gid", -EINVAL, context, attr, mac, vid);
  }
  return v::resolve_eth_l2_from_gid(context, attr, mac, vid);
}

// RoCE has no LIDs: `lid` says nothing.
EXPORT int ibv_attach_mcast(ibv_qp* qp, const union ibv_gid* gid, uint16_t lid) {
  if (!ours(qp)) return forward<int>("ibv_attach_mcast", ENOSYS, qp, gid, lid);
  return v::attach_mcast(qp, gid);
}

EXPORT int ibv_detach_mcast(ibv_qp* qp, const union ibv_gid* gid, uint16_t lid) {
  if (!ours(qp)) return forward<int>("ibv_detach_mcast", ENOSYS, qp, gid, lid);
  return v::detach_mcast(qp, gid);
}

// ---- queue pairs --------------------------------------------------------------------------------

EXPORT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (!ours(pd)) return forward<ibv_qp*>("ibv_create_qp", nullptr, pd, attr);
  return v::create_qp(pd, attr);
}

EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  if (!ours(qp)) return forward<ibv_qp_ex*>("ibv_qp_to_qp_ex", nullptr, qp);
  return v::qp_to_qp_ex(qp);
}

EXPORT int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  if (!ours(qp)) return forward<int>("ibv_modify_qp", ENOSYS, qp, attr, mask);
  return v::modify_qp(qp, attr, mask);
}

EXPORT int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  if (!ours(qp)) return forward<int>("ibv_query_qp", ENOSYS, qp, attr, mask, init);
  return v::query_qp(qp, attr, mask, init);
}

EXPORT int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode op, uint32_t flags) {
  if (!ours(qp)) return forward<int>("ibv_query_qp_data_in_order", 0, qp, op, flags);
  return 0;
}

EXPORT int ibv_destroy_qp(ibv_qp* qp) {
  if (!ours(qp)) return forward<int>("ibv_destroy_qp", ENOSYS, qp);
  return v::destroy_qp(qp);
}

EXPORT int ibv_set_ece(ibv_qp* qp, ibv_ece* ece) {
  if (!ours(qp)) return forward<int>("ibv_set_ece", ENOSYS, qp, ece);
  return unsupported_code();
}

EXPORT int ibv_query_ece(ibv_qp* qp, ibv_ece* ece) {
  if (!ours(qp)) return forward<int>("ibv_query_ece", ENOSYS, qp, ece);
  return unsupported_code();
}
