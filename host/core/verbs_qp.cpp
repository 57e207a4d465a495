// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// C boundary: queue pairs.
#include "verbs_objects.hpp"

#include <cstring>

namespace roci::verbs {
namespace {

// Operations of the work request API that a type has.
uint64_t supported_ops(ibv_context* context, ibv_qp_type type) {
  const uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  if (type == IBV_QPT_UD) return sends;
  const uint64_t writes = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  if (type == IBV_QPT_UC) return sends | writes;
  const uint64_t atomics =
      object(context).context_.device().limits().atomics
          ? IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
          : 0;
  return sends | writes | IBV_QP_EX_WITH_RDMA_READ | atomics;
}

QpObject* make_qp(ibv_pd* pd, const ibv_qp_init_attr_ex& attr) {
  if (attr.srq != nullptr) check_device("srq", pd->context, attr.srq);
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr) {
    fail(EINVAL, "send_cq and recv_cq are needed");
  }
  check_device("send_cq", pd->context, attr.send_cq);
  check_device("recv_cq", pd->context, attr.recv_cq);
  PdObject& p = object(pd);
  auto qp = std::make_unique<QpObject>(
      p.pd(), QpConfig{&object(attr.send_cq).cq, &object(attr.recv_cq).cq, attr.cap, attr.qp_type,
                       attr.sq_sig_all != 0, p.single_threaded(),
                       attr.srq != nullptr ? &object(attr.srq).srq : nullptr});
  ibv_qp& base = qp->qp_base;
  base.context = pd->context;
  base.qp_context = attr.qp_context;
  base.pd = pd;
  base.send_cq = attr.send_cq;
  base.recv_cq = attr.recv_cq;
  base.srq = attr.srq;
  base.handle = qp->qp.number();
  base.qp_num = qp->qp.number();
  base.state = IBV_QPS_RESET;
  base.qp_type = attr.qp_type;
  pthread_mutex_init(&base.mutex, nullptr);
  pthread_cond_init(&base.cond, nullptr);
  qp->qp.set_owner(&base);
  return qp.release();
}

Qp& core(ibv_qp_ex* qp) { return object(qp).qp; }

void open(ibv_qp_ex* qp, hwif::WrOpcode opcode, uint32_t imm, uint64_t va, uint32_t rkey) {
  core(qp).open_operation(opcode, qp->wr_id, qp->wr_flags, imm, va, rkey);
}

bool has_atomics(ibv_qp_ex* qp) {
  return qp->qp_base.qp_type == IBV_QPT_RC && core(qp).context().device().limits().atomics;
}

// Fills in the functions of the work request API.
void set_wr_functions(QpObject& qp) noexcept {
  using hwif::WrOpcode;
  qp.wr_start = [](ibv_qp_ex* q) { core(q).begin(); };
  qp.wr_complete = [](ibv_qp_ex* q) { return core(q).complete(); };
  qp.wr_abort = [](ibv_qp_ex* q) { core(q).abort(); };
  qp.wr_send = [](ibv_qp_ex* q) { open(q, WrOpcode::SEND, 0, 0, 0); };
  qp.wr_send_imm = [](ibv_qp_ex* q, __be32 imm) { open(q, WrOpcode::SEND_IMM, imm, 0, 0); };
  qp.wr_rdma_write = [](ibv_qp_ex* q, uint32_t rkey, uint64_t va) {
    open(q, WrOpcode::WRITE, 0, va, rkey);
  };
  qp.wr_rdma_write_imm = [](ibv_qp_ex* q, uint32_t rkey, uint64_t va, __be32 imm) {
    open(q, WrOpcode::WRITE_IMM, imm, va, rkey);
  };
  qp.wr_rdma_read = [](ibv_qp_ex* q, uint32_t rkey, uint64_t va) {
    open(q, WrOpcode::READ, 0, va, rkey);
  };
  qp.wr_set_sge = [](ibv_qp_ex* q, uint32_t lkey, uint64_t address, uint32_t length) {
    const ibv_sge sge{address, length, lkey};
    core(q).set_sges(&sge, 1);
  };
  qp.wr_set_sge_list = [](ibv_qp_ex* q, size_t count, const ibv_sge* list) {
    core(q).set_sges(list, count);
  };
  qp.wr_set_inline_data = [](ibv_qp_ex* q, void* address, size_t length) {
    const ibv_data_buf piece{address, length};
    core(q).set_inline(&piece, 1);
  };
  qp.wr_set_inline_data_list = [](ibv_qp_ex* q, size_t count, const ibv_data_buf* list) {
    core(q).set_inline(list, count);
  };
  qp.wr_atomic_cmp_swp = [](ibv_qp_ex* q, uint32_t rkey, uint64_t va, uint64_t compare,
                            uint64_t swap) {
    if (!has_atomics(q)) return core(q).refuse_operation(EOPNOTSUPP);
    core(q).open_atomic(WrOpcode::CMP_SWAP, q->wr_id, q->wr_flags, va, rkey, swap, compare);
  };
  qp.wr_atomic_fetch_add = [](ibv_qp_ex* q, uint32_t rkey, uint64_t va, uint64_t add) {
    if (!has_atomics(q)) return core(q).refuse_operation(EOPNOTSUPP);
    core(q).open_atomic(WrOpcode::FETCH_ADD, q->wr_id, q->wr_flags, va, rkey, add, 0);
  };
  qp.wr_set_ud_addr = [](ibv_qp_ex* q, ibv_ah* ah, uint32_t qpn, uint32_t qkey) {
    core(q).set_ud_address(ah, qpn, qkey);
  };
  // What the queue pair does not have.
  qp.wr_bind_mw = [](ibv_qp_ex* q, ibv_mw*, uint32_t, const ibv_mw_bind_info*) {
    core(q).refuse_operation(EOPNOTSUPP);
  };
  qp.wr_local_inv = [](ibv_qp_ex* q, uint32_t) { core(q).refuse_operation(EOPNOTSUPP); };
  qp.wr_send_inv = [](ibv_qp_ex* q, uint32_t) { core(q).refuse_operation(EOPNOTSUPP); };
  qp.wr_send_tso = [](ibv_qp_ex* q, void*, uint16_t, uint16_t) {
    core(q).refuse_operation(EOPNOTSUPP);
  };
  qp.wr_set_xrc_srqn = [](ibv_qp_ex* q, uint32_t) { core(q).refuse_operation(EOPNOTSUPP); };
  qp.wr_atomic_write = [](ibv_qp_ex* q, uint32_t, uint64_t, const void*) {
    core(q).refuse_operation(EOPNOTSUPP);
  };
}

}  // namespace

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) noexcept {
  return create("ibv_create_qp", [&]() -> ibv_qp* {
    ibv_qp_init_attr_ex ex{};
    ex.qp_context = attr->qp_context;
    ex.send_cq = attr->send_cq;
    ex.recv_cq = attr->recv_cq;
    ex.srq = attr->srq;
    ex.cap = attr->cap;
    ex.qp_type = attr->qp_type;
    ex.sq_sig_all = attr->sq_sig_all;
    QpObject* qp = make_qp(pd, ex);
    attr->cap = qp->qp.cap();
    return &qp->qp_base;
  }, LogLevel::WARN);
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) noexcept {
  return create("ibv_create_qp_ex", [&]() -> ibv_qp* {
    constexpr uint32_t KNOWN = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
                               IBV_QP_INIT_ATTR_CREATE_FLAGS;
    if (attr->comp_mask & ~KNOWN) {
      fail(EOPNOTSUPP, "comp_mask 0x%x: not supported", attr->comp_mask & ~KNOWN);
    }
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || attr->pd == nullptr) {
      fail(EINVAL, "pd is needed: set IBV_QP_INIT_ATTR_PD");
    }
    check_device("pd", context, attr->pd);
    if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags != 0) {
      fail(EOPNOTSUPP, "create_flags 0x%x: none are supported", attr->create_flags);
    }
    const bool extended = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
    const uint64_t ops = supported_ops(context, attr->qp_type);
    if (extended && (attr->send_ops_flags & ~ops) != 0) {
      fail(EOPNOTSUPP, "send_ops_flags 0x%llx: not supported",
           static_cast<unsigned long long>(attr->send_ops_flags & ~ops));
    }
    QpObject* qp = make_qp(attr->pd, *attr);
    attr->cap = qp->qp.cap();
    qp->extended = extended;
    set_wr_functions(*qp);
    return &qp->qp_base;
  }, attr->qp_type == IBV_QPT_RC ? LogLevel::INFO : LogLevel::WARN);
}

ibv_qp_ex* qp_to_qp_ex(ibv_qp* qp) noexcept {
  return object(qp).extended ? &object(qp) : nullptr;
}

int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) noexcept {
  return boundary("ibv_modify_qp", [&] {
    object(qp).qp.modify(*attr, mask);
    qp->state = object(qp).qp.state();
  });
}

int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) noexcept {
  return boundary("ibv_query_qp", [&] {
    object(qp).qp.query(*attr, *init);
    init->qp_context = qp->qp_context;
    init->send_cq = qp->send_cq;
    init->recv_cq = qp->recv_cq;
    init->srq = qp->srq;
    if (mask & IBV_QP_STATE) qp->state = attr->qp_state;
  });
}

int destroy_qp(ibv_qp* qp) noexcept {
  return boundary("ibv_destroy_qp", [&] {
    QpObject& q = object(qp);
    q.qp.destroy();
    wait_for_acknowledgements(qp->mutex, qp->cond, qp->events_completed, q.qp.async_events());
    pthread_cond_destroy(&qp->cond);
    pthread_mutex_destroy(&qp->mutex);
    delete &q;
  });
}

int attach_mcast(ibv_qp* qp, const union ibv_gid* gid) noexcept {
  return boundary("ibv_attach_mcast", [&] {
    Gid group;
    std::memcpy(group.bytes, gid->raw, sizeof group.bytes);
    object(qp).qp.attach_multicast(group);
  }, LogLevel::WARN);
}

int detach_mcast(ibv_qp* qp, const union ibv_gid* gid) noexcept {
  return boundary("ibv_detach_mcast", [&] {
    Gid group;
    std::memcpy(group.bytes, gid->raw, sizeof group.bytes);
    object(qp).qp.detach_multicast(group);
  }, LogLevel::WARN);
}

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) noexcept {
  return object(qp).qp.post_send(wr, bad);
}

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept {
  return object(qp).qp.post_recv(wr, bad);
}

}  // namespace roci::verbs
