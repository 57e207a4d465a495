// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// C boundary: protection and thread domains, memory regions.
#include "verbs_objects.hpp"

namespace roci::verbs {

ibv_pd* alloc_pd(ibv_context* context) noexcept {
  return create("ibv_alloc_pd", [&]() -> ibv_pd* {
    auto pd = std::make_unique<PdObject>();
    pd->own = std::make_unique<Pd>(object(context).context_);
    pd->context = context;
    pd->handle = pd->own->number();
    return pd.release();
  });
}

int dealloc_pd(ibv_pd* pd) noexcept {
  return boundary("ibv_dealloc_pd", [&] {
    PdObject& p = object(pd);
    if (p.users.load() != 0) fail(EBUSY, "a parent domain uses this protection domain");
    if (p.parent != nullptr) {
      --p.parent->users;
      if (p.td != nullptr) --p.td->users;
    } else {
      p.own->destroy();
    }
    delete &p;
  });
}

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) noexcept {
  return create("ibv_alloc_td", [&]() -> ibv_td* {
    if (attr->comp_mask != 0) fail(EINVAL, "comp_mask 0x%x: none are known", attr->comp_mask);
    auto td = std::make_unique<TdObject>();
    td->context = context;
    return td.release();
  });
}

int dealloc_td(ibv_td* td) noexcept {
  return boundary("ibv_dealloc_td", [&] {
    if (object(td).users.load() != 0) fail(EBUSY, "a parent domain uses this thread domain");
    delete &object(td);
  });
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) noexcept {
  return create("ibv_alloc_parent_domain", [&]() -> ibv_pd* {
    constexpr uint32_t KNOWN =
        IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    if (attr->comp_mask & ~KNOWN) fail(EINVAL, "comp_mask 0x%x: unknown bits", attr->comp_mask);
    if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
      // Rings have to be memory that the device maps by a descriptor.
      fail(EOPNOTSUPP, "comp_mask: allocators of the program are not used");
    }
    if (attr->pd == nullptr) fail(EINVAL, "pd is NULL");
    check_device("pd", context, attr->pd);
    if (attr->td != nullptr) check_device("td", context, attr->td);
    PdObject& parent = object(attr->pd);
    auto pd = std::make_unique<PdObject>();
    pd->context = context;
    pd->handle = attr->pd->handle;
    pd->parent = parent.parent != nullptr ? parent.parent : &parent;
    ++pd->parent->users;
    if (attr->td != nullptr) {
      pd->td = &object(attr->td);
      ++pd->td->users;
    }
    return pd.release();
  });
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t length, uint64_t iova, unsigned access) noexcept {
  return create("ibv_reg_mr", [&]() -> ibv_mr* {
    auto mr = std::make_unique<MrObject>(object(pd).pd(), address, length, iova, access);
    mr->context = pd->context;
    mr->pd = pd;
    mr->addr = address;
    mr->length = length;
    mr->lkey = mr->mr.lkey();
    mr->rkey = mr->mr.rkey();
    mr->handle = mr->lkey >> 8;
    return mr.release();
  });
}

int rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length, int access) noexcept {
  const int error = boundary("ibv_rereg_mr", [&] {
    if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) fail(EINVAL, "flags 0x%x: unknown bits", flags);
    const bool translation = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
    if (translation && (length == 0 || address == nullptr)) {
      fail(EINVAL, "IBV_REREG_MR_CHANGE_TRANSLATION needs addr and length");
    }
    if (access != 0 && !(flags & IBV_REREG_MR_CHANGE_ACCESS)) {
      fail(EINVAL, "access without IBV_REREG_MR_CHANGE_ACCESS");
    }
    const bool domain = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
    if (domain && pd == nullptr) fail(EINVAL, "IBV_REREG_MR_CHANGE_PD needs pd");
    if (domain) check_device("pd", mr->context, pd);
    object(mr).mr.reregister(flags, domain ? &object(pd).pd() : nullptr, address, length,
                             static_cast<unsigned>(access));
    if (translation) {
      mr->addr = address;
      mr->length = length;
    }
    if (domain) mr->pd = pd;
  });
  // The region is as it was: also what the device refuses has changed nothing.
  return error != 0 ? IBV_REREG_MR_ERR_INPUT : 0;
}

int dereg_mr(ibv_mr* mr) noexcept {
  return boundary("ibv_dereg_mr", [&] {
    object(mr).mr.destroy();
    delete &object(mr);
  });
}

}  // namespace roci::verbs
