// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The C boundary: verbs as libibverbs declares them, on the objects of the core. What throws below
// becomes the errno that verbs promise and one log line here and nowhere else. Used by the preload
// library.
//
// Objects that programs see begin with their public structure and have a zeroed kilobyte behind it,
// where newer libraries look for fields of their own.
#pragma once

#include <infiniband/verbs.h>

#include <roci/log.hpp>

#include <cstdint>
#include <string>

// Macros of the header that would rename our functions.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace roci::verbs {

/// Bytes behind each object.
inline constexpr unsigned TAIL_BYTES = 1024;

/// Opens a NIC. `priv` is what libibverbs keeps behind its contexts, or nullptr.
/// @param socket  of the NIC
/// @return nullptr with errno
ibv_context* open_device(ibv_device* device, const std::string& socket,
                         verbs_ex_private* priv) noexcept;
/// Ends it.
int close_device(ibv_context* context) noexcept;
/// Whether open_device() made it.
bool is_ours(const ibv_context* context) noexcept;

/// Answers a call that our devices do not have, with one line in the log.
/// @param name   of the function that was called
/// @param level  INFO for what programs try because it may not be there; WARN for what nobody who
///               asks for it goes on without
/// @return EOPNOTSUPP; errno is that, too
int not_there(const char* name, LogLevel level) noexcept;

// As verbs.h describes them; errno for those that return int.
int query_device(ibv_context* context, ibv_device_attr* attr) noexcept;
int query_port(ibv_context* context, uint8_t port, ibv_port_attr* attr, size_t size) noexcept;
int query_gid(ibv_context* context, uint8_t port, int index, union ibv_gid* gid) noexcept;
int query_gid_ex(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry,
                 uint32_t flags, size_t size) noexcept;
ssize_t query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t max, uint32_t flags,
                        size_t size) noexcept;
/// `type`: 0 is RoCE v1, as the private call of libibverbs has it.
int query_gid_type(ibv_context* context, uint8_t port, unsigned index, unsigned* type) noexcept;
int query_pkey(ibv_context* context, uint8_t port, int index, __be16* pkey) noexcept;
int get_pkey_index(ibv_context* context, uint8_t port, __be16 pkey) noexcept;
int get_async_event(ibv_context* context, ibv_async_event* event);
void ack_async_event(ibv_async_event* event) noexcept;

ibv_pd* alloc_pd(ibv_context* context) noexcept;
int dealloc_pd(ibv_pd* pd) noexcept;
ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t length, uint64_t iova, unsigned access) noexcept;
int rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length, int access) noexcept;
int dereg_mr(ibv_mr* mr) noexcept;

ibv_comp_channel* create_comp_channel(ibv_context* context) noexcept;
int destroy_comp_channel(ibv_comp_channel* channel) noexcept;
ibv_cq* create_cq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel,
                  int vector) noexcept;
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) noexcept;
int resize_cq(ibv_cq* cq, int entries) noexcept;
int destroy_cq(ibv_cq* cq) noexcept;
int poll_cq(ibv_cq* cq, int count, ibv_wc* wc) noexcept;
int req_notify_cq(ibv_cq* cq, int solicited_only) noexcept;
int get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context);
void ack_cq_events(ibv_cq* cq, unsigned count) noexcept;

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) noexcept;
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) noexcept;
int modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) noexcept;
int query_srq(ibv_srq* srq, ibv_srq_attr* attr) noexcept;
int destroy_srq(ibv_srq* srq) noexcept;
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept;

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) noexcept;
int destroy_ah(ibv_ah* ah) noexcept;
int init_ah_from_wc(ibv_context* context, uint8_t port, ibv_wc* wc, ibv_grh* grh,
                    ibv_ah_attr* attr) noexcept;
ibv_ah* create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port) noexcept;
/// @param mac  six bytes
/// @param vid  VLAN, 0xffff if none; or nullptr
/// @return 0 or -errno
int resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* attr, uint8_t* mac,
                            uint16_t* vid) noexcept;

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) noexcept;
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) noexcept;
ibv_qp_ex* qp_to_qp_ex(ibv_qp* qp) noexcept;
int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) noexcept;
int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) noexcept;
int destroy_qp(ibv_qp* qp) noexcept;
int attach_mcast(ibv_qp* qp, const union ibv_gid* gid) noexcept;
int detach_mcast(ibv_qp* qp, const union ibv_gid* gid) noexcept;
int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) noexcept;
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept;

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) noexcept;
int dealloc_td(ibv_td* td) noexcept;
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) noexcept;

}  // namespace roci::verbs
