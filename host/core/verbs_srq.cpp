// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// C boundary: shared receive queues and address handles.
#include "address.hpp"
#include "verbs_objects.hpp"

#include <cstring>

namespace roci::verbs {
namespace {

void check_port(uint8_t port) {
  if (port != 1) fail(EINVAL, "port_num %u: there is port 1", port);
}

ibv_ah* make_ah(ibv_pd* pd, const ibv_ah_attr& attr) {
  auto ah = std::make_unique<Ah>(object(pd).pd(), attr);
  ah->context = pd->context;
  ah->pd = pd;
  return ah.release();
}

}  // namespace

// ---- shared receive queues ----------------------------------------------------------------------

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) noexcept {
  return create("ibv_create_srq", [&]() -> ibv_srq* {
    auto srq = std::make_unique<SrqObject>(object(pd).pd(), attr->attr);
    srq->context = pd->context;
    srq->srq_context = attr->srq_context;
    srq->pd = pd;
    srq->handle = srq->srq.number();
    pthread_mutex_init(&srq->mutex, nullptr);
    pthread_cond_init(&srq->cond, nullptr);
    srq->srq.set_owner(static_cast<ibv_srq*>(srq.get()));
    attr->attr.max_wr = srq->srq.max_wr();
    attr->attr.max_sge = srq->srq.max_sge();
    return srq.release();
  }, LogLevel::WARN);
}

// The inline function of verbs.h makes the basic ones by ibv_create_srq().
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) noexcept {
  ibv_srq* srq = nullptr;
  const int error = boundary("ibv_create_srq_ex", [&] {
    constexpr uint32_t KNOWN = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type != IBV_SRQT_BASIC) {
      fail(EOPNOTSUPP, "srq_type %d: only IBV_SRQT_BASIC", static_cast<int>(attr->srq_type));
    }
    if (attr->comp_mask & ~KNOWN) {
      fail(EOPNOTSUPP, "comp_mask 0x%x: not supported", attr->comp_mask & ~KNOWN);
    }
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || attr->pd == nullptr) {
      fail(EINVAL, "pd is needed: set IBV_SRQ_INIT_ATTR_PD");
    }
    check_device("pd", context, attr->pd);
  });
  if (error != 0) return nullptr;
  ibv_srq_init_attr basic{attr->srq_context, attr->attr};
  srq = create_srq(attr->pd, &basic);
  if (srq != nullptr) attr->attr = basic.attr;
  return srq;
}

int modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) noexcept {
  return boundary("ibv_modify_srq", [&] { object(srq).srq.modify(*attr, mask); }, LogLevel::WARN);
}

int query_srq(ibv_srq* srq, ibv_srq_attr* attr) noexcept {
  return boundary("ibv_query_srq", [&] { *attr = object(srq).srq.query(); });
}

int destroy_srq(ibv_srq* srq) noexcept {
  return boundary("ibv_destroy_srq", [&] {
    SrqObject& s = object(srq);
    s.srq.destroy();
    wait_for_acknowledgements(s.mutex, s.cond, s.events_completed, s.srq.async_events());
    pthread_cond_destroy(&s.cond);
    pthread_mutex_destroy(&s.mutex);
    delete &s;
  });
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept {
  return object(srq).srq.post(wr, bad);
}

// ---- address handles ----------------------------------------------------------------------------

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) noexcept {
  return create("ibv_create_ah", [&] { return make_ah(pd, *attr); });
}

int destroy_ah(ibv_ah* ah) noexcept {
  const NoCancellation whole;
  delete &object(ah);
  return 0;
}

int init_ah_from_wc(ibv_context* context, uint8_t port, ibv_wc* wc, ibv_grh* grh,
                    ibv_ah_attr* attr) noexcept {
  const int error = boundary("ibv_init_ah_from_wc", [&] {
    check_port(port);
    *attr = sender_of(object(context).context_.device(), *wc, grh);
  });
  return error != 0 ? -1 : 0;
}

ibv_ah* create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port) noexcept {
  return create("ibv_create_ah_from_wc", [&] {
    check_port(port);
    return make_ah(pd, sender_of(object(pd->context).context_.device(), *wc, grh));
  });
}

int resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* attr, uint8_t* mac,
                            uint16_t* vid) noexcept {
  return -boundary("ibv_resolve_eth_l2_from_gid", [&] {
    using A = hwif::AddressVector;
    const auto path = path_from(object(context).context_.device(), *attr);
    const auto dmac = path.get<A::dmac>();
    std::memcpy(mac, dmac.bytes, sizeof dmac.bytes);
    constexpr uint16_t NO_VLAN = 0xffff;
    if (vid != nullptr) *vid = path.get<A::vlan_present>() ? path.get<A::vlan_id>() : NO_VLAN;
  });
}

}  // namespace roci::verbs
