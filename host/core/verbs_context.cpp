// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// C boundary: contexts, what they can be asked, asynchronous events.
#include "verbs_objects.hpp"

#include <endian.h>

#include <algorithm>
#include <cstring>

namespace roci::verbs {
namespace {

void check_port(uint32_t port) {
  if (port != 1) fail(EINVAL, "port_num %u: there is port 1", port);
}

uint64_t as_be64(const hwif::ByteArray<8>& guid) {
  uint64_t value = 0;
  std::memcpy(&value, guid.bytes, sizeof value);
  return value;
}

// Nothing that programs may call is nullptr, where the inline functions of verbs.h do not look.
int bind_mw(ibv_qp*, ibv_mw*, ibv_mw_bind*) { return EOPNOTSUPP; }
int dealloc_mw(ibv_mw*) { return EOPNOTSUPP; }
int close_xrcd(ibv_xrcd*) { return EOPNOTSUPP; }
// Where they look, nullptr would do; but whoever asks for these does not go on without, and should
// read why.
ibv_mw* alloc_mw(ibv_pd*, ibv_mw_type) {
  not_there("ibv_alloc_mw", LogLevel::WARN);
  return nullptr;
}
ibv_xrcd* open_xrcd(ibv_context*, ibv_xrcd_init_attr*) {
  not_there("ibv_open_xrcd", LogLevel::WARN);
  return nullptr;
}
// Only its address is used: it marks our contexts.
void* mark() { return nullptr; }

constexpr unsigned CAPABILITY_FLAGS =
    IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
    IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN;

// Address handles are memory of the program: any number that programs ask for.
constexpr int MAX_AH = 65536;

void fill_in(const DeviceLimits& l, ibv_device_attr& a) {
  a = {};
  std::snprintf(a.fw_ver, sizeof a.fw_ver, "%s", l.firmware_version.c_str());
  a.node_guid = as_be64(l.node_guid);
  a.sys_image_guid = as_be64(l.system_image_guid);
  a.max_mr_size = l.max_mr_bytes;
  for (unsigned shift = l.min_page_shift; shift <= l.max_page_shift; ++shift) {
    a.page_size_cap |= uint64_t{1} << shift;
  }
  a.vendor_id = l.vendor;
  a.vendor_part_id = l.device;
  a.hw_ver = l.version_major << 16 | l.version_minor << 8 | l.version_patch;
  a.max_qp = static_cast<int>(l.max_qps);
  a.max_qp_wr = static_cast<int>(l.max_qp_wr);
  a.device_cap_flags = CAPABILITY_FLAGS;
  a.max_sge = static_cast<int>(l.max_sge);
  a.max_sge_rd = static_cast<int>(l.max_sge_read);
  a.max_cq = static_cast<int>(l.max_cqs);
  a.max_cqe = static_cast<int>(l.max_cqe);
  a.max_mr = static_cast<int>(l.max_mrs);
  a.max_pd = static_cast<int>(l.max_pds);
  a.max_qp_rd_atom = static_cast<int>(l.max_responder_depth);
  a.max_res_rd_atom = static_cast<int>(l.max_total_responder_depth);
  a.max_qp_init_rd_atom = static_cast<int>(l.max_initiator_depth);
  a.atomic_cap = l.atomics ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
  if (l.ud) {
    a.device_cap_flags |= IBV_DEVICE_BAD_QKEY_CNTR;
    a.max_ah = MAX_AH;
  }
  if (l.srq) {
    a.max_srq = static_cast<int>(l.max_srqs);
    a.max_srq_wr = static_cast<int>(l.max_srq_wr);
    a.max_srq_sge = static_cast<int>(l.max_sge);
  }
  // Groups are rows of one table: as many of one member as members of one.
  a.max_mcast_grp = static_cast<int>(l.max_multicast);
  a.max_mcast_qp_attach = static_cast<int>(l.max_multicast);
  a.max_total_mcast_qp_attach = static_cast<int>(l.max_multicast);
  a.max_pkeys = static_cast<uint16_t>(l.pkeys);
  a.local_ca_ack_delay = 15;
  a.phys_port_cnt = 1;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input*,
                    ibv_device_attr_ex* attr, size_t size) {
  return boundary("ibv_query_device_ex", [&] {
    Device& device = object(context).context_.device();
    device.check_alive();
    ibv_device_attr_ex a{};
    fill_in(device.limits(), a.orig_attr);
    if (device.limits().timestamps) {
      a.completion_timestamp_mask = hwif::Cqe::timestamp::MAX;
      a.hca_core_clock = device.limits().clock_khz;
    }
    a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
    a.phys_port_cnt_ex = 1;
    // The program may know a shorter or a longer one.
    std::memset(attr, 0, size);
    std::memcpy(attr, &a, std::min(size, sizeof a));
  });
}

int query_rt_values(ibv_context* context, ibv_values_ex* values) {
  return boundary("ibv_query_rt_values_ex", [&] {
    const uint32_t wanted = values->comp_mask;
    values->comp_mask = 0;
    if (wanted & ~static_cast<uint32_t>(IBV_VALUES_MASK_RAW_CLOCK)) {
      fail(EOPNOTSUPP, "comp_mask 0x%x: only IBV_VALUES_MASK_RAW_CLOCK", wanted);
    }
    if (wanted & IBV_VALUES_MASK_RAW_CLOCK) {
      // Cycles, in the way of the other providers.
      values->raw_clock.tv_sec = 0;
      values->raw_clock.tv_nsec = static_cast<long>(object(context).context_.device().clock());
      values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    }
  });
}

}  // namespace

int not_there(const char* name, LogLevel level) noexcept {
  return boundary(name, [] { fail(EOPNOTSUPP, "these devices do not have it"); }, level);
}

bool is_ours(const ibv_context* context) noexcept {
  return context->ops._compat_async_event == &mark;
}

ibv_context* open_device(ibv_device* device, const std::string& socket,
                         verbs_ex_private* priv) noexcept {
  return create("ibv_open_device", [&]() -> ibv_context* {
    auto context = std::make_unique<ContextObject>(open_shared_device(socket));
    verbs_context& v = *context;
    v.sz = sizeof(verbs_context);
    v.priv = priv;
    v.query_port = [](ibv_context* c, uint8_t port, ibv_port_attr* attr, size_t size) {
      return verbs::query_port(c, port, attr, size);
    };
    v.query_device_ex = query_device_ex;
    v.query_rt_values = query_rt_values;
    v.create_cq_ex = create_cq_ex;
    v.create_qp_ex = create_qp_ex;
    v.alloc_td = alloc_td;
    v.dealloc_td = dealloc_td;
    v.alloc_parent_domain = alloc_parent_domain;
    v.create_srq_ex = create_srq_ex;
    v.open_xrcd = open_xrcd;
    v.close_xrcd = close_xrcd;
    ibv_context& c = v.context;
    c.device = device;
    c.ops.alloc_mw = alloc_mw;
    c.ops.bind_mw = bind_mw;
    c.ops.dealloc_mw = dealloc_mw;
    c.ops.poll_cq = poll_cq;
    c.ops.req_notify_cq = req_notify_cq;
    c.ops.post_srq_recv = post_srq_recv;
    c.ops.post_send = post_send;
    c.ops.post_recv = post_recv;
    c.ops._compat_async_event = mark;
    c.cmd_fd = -1;
    c.async_fd = context->context_.async_fd();
    c.num_comp_vectors = 1;
    pthread_mutex_init(&c.mutex, nullptr);
    c.abi_compat = __VERBS_ABI_IS_EXTENDED;
    return &context.release()->verbs_context::context;
  });
}

int close_device(ibv_context* context) noexcept {
  const NoCancellation whole;
  pthread_mutex_destroy(&context->mutex);
  delete &object(context);
  return 0;
}

int query_device(ibv_context* context, ibv_device_attr* attr) noexcept {
  return boundary("ibv_query_device", [&] {
    Device& device = object(context).context_.device();
    device.check_alive();
    fill_in(device.limits(), *attr);
  });
}

int query_port(ibv_context* context, uint8_t port, ibv_port_attr* attr, size_t size) noexcept {
  return boundary("ibv_query_port", [&] {
    check_port(port);
    Device& device = object(context).context_.device();
    const PortState state = device.query_port();
    const DeviceLimits& limits = device.limits();
    ibv_port_attr a{};
    a.state = state.active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    a.max_mtu = static_cast<ibv_mtu>(state.max_mtu);
    a.active_mtu = static_cast<ibv_mtu>(state.active_mtu);
    a.gid_tbl_len = static_cast<int>(limits.gids);
    a.port_cap_flags = IBV_PORT_IP_BASED_GIDS;
    a.max_msg_sz = static_cast<uint32_t>(limits.max_message);
    a.bad_pkey_cntr = state.bad_pkeys;
    a.qkey_viol_cntr = state.bad_qkeys;
    a.pkey_tbl_len = static_cast<uint16_t>(limits.pkeys);
    a.max_vl_num = 1;
    // The nearest that InfiniBand's codes have: 4x EDR, 4x QDR, 1x QDR, 1x SDR.
    const bool wide = state.speed_mbps >= 40000;
    a.active_width = wide ? 2 : 1;
    a.active_speed = state.speed_mbps >= 100000  ? 32
                     : state.speed_mbps >= 10000 ? 4
                                                 : 1;
    a.phys_state = state.active ? 5 : 3;  // LinkUp, Disabled
    a.link_layer = IBV_LINK_LAYER_ETHERNET;
    a.flags = IBV_QPF_GRH_REQUIRED;
    std::memset(attr, 0, size);
    std::memcpy(attr, &a, std::min(size, sizeof a));
  });
}

// ---- tables -------------------------------------------------------------------------------------

int query_gid_ex(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry,
                 uint32_t flags, size_t size) noexcept {
  int code = 0;
  const int error = boundary("ibv_query_gid_ex", [&] {
    check_port(port);
    if (flags != 0) fail(EOPNOTSUPP, "flags 0x%x: none are known", flags);
    const auto gids = object(context).context_.device().gid_table();
    if (index >= gids.size()) {
      fail(EINVAL, "gid_index %u: the table has %zu entries", index, gids.size());
    }
    ibv_gid_entry e{};
    std::memcpy(e.gid.raw, gids[index].gid.bytes, sizeof e.gid.raw);
    e.gid_index = index;
    e.port_num = port;
    e.gid_type = IBV_GID_TYPE_ROCE_V1;
    // An empty entry is nothing to complain about.
    if (gids[index].type == hwif::GidType::NONE) code = ENODATA;
    if (code == 0) std::memcpy(entry, &e, std::min(size, sizeof e));
  });
  if (code != 0) errno = code;
  return error != 0 ? error : code;
}

int query_gid(ibv_context* context, uint8_t port, int index, union ibv_gid* gid) noexcept {
  ibv_gid_entry entry{};
  const int error =
      query_gid_ex(context, port, static_cast<uint32_t>(index), &entry, 0, sizeof entry);
  if (error != 0 && error != ENODATA) return -1;
  *gid = entry.gid;
  return 0;
}

ssize_t query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t max, uint32_t flags,
                        size_t size) noexcept {
  ssize_t count = 0;
  const int error = boundary("ibv_query_gid_table", [&] {
    if (flags != 0) fail(EOPNOTSUPP, "flags 0x%x: none are known", flags);
    const auto gids = object(context).context_.device().gid_table();
    auto* to = reinterpret_cast<std::byte*>(entries);
    for (size_t i = 0; i < gids.size(); ++i) {
      if (gids[i].type == hwif::GidType::NONE) continue;
      if (static_cast<size_t>(count) == max) fail(EINVAL, "max_entries %zu is too small", max);
      ibv_gid_entry e{};
      std::memcpy(e.gid.raw, gids[i].gid.bytes, sizeof e.gid.raw);
      e.gid_index = static_cast<uint32_t>(i);
      e.port_num = 1;
      e.gid_type = IBV_GID_TYPE_ROCE_V1;
      std::memcpy(to + static_cast<size_t>(count) * size, &e, std::min(size, sizeof e));
      ++count;
    }
  });
  return error != 0 ? -error : count;
}

int query_gid_type(ibv_context* context, uint8_t port, unsigned index, unsigned* type) noexcept {
  ibv_gid_entry entry{};
  const int error = query_gid_ex(context, port, index, &entry, 0, sizeof entry);
  if (error != 0 && error != ENODATA) return -1;
  *type = 0;  // "IB/RoCE v1", also for empty entries
  return 0;
}

int query_pkey(ibv_context* context, uint8_t port, int index, __be16* pkey) noexcept {
  const int error = boundary("ibv_query_pkey", [&] {
    check_port(port);
    const auto pkeys = object(context).context_.device().pkey_table();
    if (index < 0 || static_cast<size_t>(index) >= pkeys.size()) {
      fail(EINVAL, "index %d: the table has %zu entries", index, pkeys.size());
    }
    *pkey = htobe16(pkeys[static_cast<size_t>(index)]);
  });
  return error != 0 ? -1 : 0;
}

int get_pkey_index(ibv_context* context, uint8_t port, __be16 pkey) noexcept {
  int found = -1;
  const int error = boundary("ibv_get_pkey_index", [&] {
    check_port(port);
    const auto pkeys = object(context).context_.device().pkey_table();
    for (size_t i = 0; i < pkeys.size() && found < 0; ++i) {
      if (htobe16(pkeys[i]) == pkey) found = static_cast<int>(i);
    }
  });
  return error != 0 ? -1 : found;
}

// ---- asynchronous events ------------------------------------------------------------------------

// The wait can be cancelled: nothing around it may be in the way of unwinding.
int get_async_event(ibv_context* context, ibv_async_event* event) {
  pthread_testcancel();
  std::optional<AsyncEvent> got;
  for (;;) {
    if (boundary("ibv_get_async_event",
                 [&] { got = object(context).context_.take_async_event(); }) != 0) {
      return -1;
    }
    if (got) break;
    if (errno != EAGAIN || !wait_for_event(context->async_fd)) return -1;
  }
  if (got->cq != nullptr) {
    event->element.cq = static_cast<ibv_cq*>(got->cq->owner());
  } else if (got->qp != nullptr) {
    event->element.qp = static_cast<ibv_qp*>(got->qp->owner());
  } else if (got->srq != nullptr) {
    event->element.srq = static_cast<ibv_srq*>(got->srq->owner());
  } else {
    event->element.port_num = 1;
  }
  using hwif::EqeType;
  switch (got->type) {
    case EqeType::CQ_ERROR: event->event_type = IBV_EVENT_CQ_ERR; break;
    case EqeType::QP_FATAL: event->event_type = IBV_EVENT_QP_FATAL; break;
    case EqeType::QP_REQ_ERROR: event->event_type = IBV_EVENT_QP_REQ_ERR; break;
    case EqeType::QP_ACCESS_ERROR: event->event_type = IBV_EVENT_QP_ACCESS_ERR; break;
    case EqeType::COMM_EST: event->event_type = IBV_EVENT_COMM_EST; break;
    case EqeType::SQ_DRAINED: event->event_type = IBV_EVENT_SQ_DRAINED; break;
    case EqeType::PATH_MIGRATED: event->event_type = IBV_EVENT_PATH_MIG; break;
    case EqeType::PATH_MIGRATION_ERROR: event->event_type = IBV_EVENT_PATH_MIG_ERR; break;
    case EqeType::QP_LAST_WQE_REACHED: event->event_type = IBV_EVENT_QP_LAST_WQE_REACHED; break;
    case EqeType::SRQ_ERROR: event->event_type = IBV_EVENT_SRQ_ERR; break;
    case EqeType::SRQ_LIMIT_REACHED: event->event_type = IBV_EVENT_SRQ_LIMIT_REACHED; break;
    case EqeType::PORT_ACTIVE: event->event_type = IBV_EVENT_PORT_ACTIVE; break;
    case EqeType::PORT_ERROR: event->event_type = IBV_EVENT_PORT_ERR; break;
    case EqeType::LID_CHANGE: event->event_type = IBV_EVENT_LID_CHANGE; break;
    case EqeType::PKEY_CHANGE: event->event_type = IBV_EVENT_PKEY_CHANGE; break;
    case EqeType::SM_CHANGE: event->event_type = IBV_EVENT_SM_CHANGE; break;
    case EqeType::CLIENT_REREGISTER: event->event_type = IBV_EVENT_CLIENT_REREGISTER; break;
    case EqeType::GID_CHANGE: event->event_type = IBV_EVENT_GID_CHANGE; break;
    default: event->event_type = IBV_EVENT_DEVICE_FATAL; break;
  }
  return 0;
}

void ack_async_event(ibv_async_event* event) noexcept {
  const auto acknowledge = [](pthread_mutex_t& mutex, pthread_cond_t& changed, uint32_t& count) {
    pthread_mutex_lock(&mutex);
    ++count;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
  };
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR: {
      ibv_cq& cq = *event->element.cq;
      acknowledge(cq.mutex, cq.cond, cq.async_events_completed);
      break;
    }
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: {
      ibv_qp& qp = *event->element.qp;
      acknowledge(qp.mutex, qp.cond, qp.events_completed);
      break;
    }
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: {
      ibv_srq& srq = *event->element.srq;
      acknowledge(srq.mutex, srq.cond, srq.events_completed);
      break;
    }
    default: break;
  }
}

void wait_for_acknowledgements(pthread_mutex_t& mutex, pthread_cond_t& changed,
                               const uint32_t& acknowledged, uint32_t got) noexcept {
  pthread_mutex_lock(&mutex);
  while (acknowledged != got) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

}  // namespace roci::verbs
