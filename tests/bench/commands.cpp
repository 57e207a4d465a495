// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Admin commands, on NICs at rest: all of the firmware, as the host core issues them and, those of
// the management function and what the core does not use, one by one.
#include "groups.hpp"

#include "../../host/core/admin_queue.hpp"
#include "model/management_nic.hpp"

#include <roci/error.hpp>
#include <roci_hwif_names.hpp>

#include <array>
#include <cerrno>
#include <stdexcept>

namespace roci::bench {

namespace {

namespace admin = hwif::admin;

// What programs do: the life of each kind of object.
void host_commands(Rig& rig) {
  Side& side = rig.side(0);
  Pd pd(side.context);
  Cq cq(side.context, {512, nullptr, true});
  std::array<uint8_t, 10000> memory{};
  Mr mr(pd, memory.data(), memory.size(), reinterpret_cast<uintptr_t>(memory.data()),
        IBV_ACCESS_LOCAL_WRITE);
  mr.reregister(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  Qp qp(pd, {&cq, &cq, {128, 128, 4, 4, 0}, IBV_QPT_RC, false, true});
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  qp.modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  ibv_qp_attr other{};
  ibv_qp_init_attr init{};
  side.qps[0]->query(other, init);  // a path to the peer
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = other.dest_qp_num;
  attr.max_rd_atomic = attr.max_dest_rd_atomic = 4;
  attr.ah_attr = other.ah_attr;
  qp.modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  qp.modify(attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  qp.query(other, init);
  attr.qp_state = IBV_QPS_ERR;
  qp.modify(attr, IBV_QP_STATE);
  attr.qp_state = IBV_QPS_RESET;
  qp.modify(attr, IBV_QP_STATE);
  side.device->query_port();
  side.device->gid_table();
  side.device->pkey_table();
}

hwif::QpAttributes attributes(hwif::QpState state) {
  using A = hwif::QpAttributes;
  using V = hwif::AddressVector;
  V path{};
  path.set<V::dgid>({{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 2}});
  path.set<V::dmac>({{2, 0, 0, 0, 0, 2}});
  path.set<V::hop_limit>(64);
  A out{};
  out.set<A::state>(state);
  out.set<A::path_mtu>(hwif::Mtu::MTU_4096);
  out.set<A::timeout>(14);
  out.set<A::retry_count>(7);
  out.set<A::rnr_retry>(7);
  out.set<A::min_rnr_timer>(12);
  out.set<A::initiator_depth>(16);
  out.set<A::responder_depth>(16);
  out.set<A::port>(1);
  out.set<A::dest_qpn>(0x112233);
  out.set<A::path>(path);
  return out;
}

// Every command there is, with all that it can do at once.
void every_command(AdminQueue& queue, DmaArena& arena) {
  queue.run<admin::Nop>(0);
  queue.run<admin::QueryDevice>(0);
  const unsigned other = 5;  // nobody's function
  queue.run<admin::SetFunction>(other);
  queue.run<admin::QueryFunction>(other);
  queue.run<admin::FunctionReset>(other);

  const DmaBuffer rings = arena.allocate(5 * 4096, 4096);
  const auto ring = [&](unsigned n) { return rings.address() + 4096u * n; };
  const uint32_t pd = queue.run<admin::CreatePd>(0).object;
  using E = hwif::CreateEqParams;
  E eq_params{};
  eq_params.set<E::ring_address>(ring(0));
  eq_params.set<E::ring_log2>(8);
  eq_params.set<E::irq_vector>(1);
  eq_params.set<E::async_events>(true);
  const uint32_t eq = queue.run<admin::CreateEq>(0, eq_params).object;
  using C = hwif::CreateCqParams;
  C cq_params{};
  cq_params.set<C::ring_address>(ring(1));
  cq_params.set<C::ring_log2>(7);
  cq_params.set<C::eqn>(static_cast<uint16_t>(eq));
  const uint32_t cq = queue.run<admin::CreateCq>(0, cq_params).object;
  queue.run<admin::QueryCq>(cq);
  using S = hwif::CreateSrqParams;
  S srq_params{};
  srq_params.set<S::ring_address>(ring(2));
  srq_params.set<S::ring_log2>(7);
  const uint32_t srq = queue.run<admin::CreateSrq>(pd, srq_params).object;
  queue.run<admin::QuerySrq>(srq);
  using M = hwif::CreateMrParams;
  M mr_params{};
  mr_params.set<M::iova>(0x7f0000001000);
  mr_params.set<M::length>(1 << 20);
  mr_params.set<M::table_address>(ring(0));
  mr_params.set<M::page_shift>(12);
  const uint32_t mr = queue.run<admin::CreateMr>(pd, mr_params).object;
  using R = hwif::ReregMrInput;
  const uint32_t other_pd = queue.run<admin::CreatePd>(0).object;
  R rereg{};
  rereg.set<R::memory>(mr_params);
  rereg.set<R::change_translation>(true);
  rereg.set<R::change_rights>(true);
  rereg.set<R::change_pd>(true);
  rereg.set<R::pd>(other_pd);
  queue.run<admin::ReregMr>(mr, {}, rereg);
  queue.run<admin::QueryMr>(mr);

  using Q = hwif::CreateQpParams;
  Q qp_params{};
  qp_params.set<Q::sq_ring_address>(ring(3));
  qp_params.set<Q::sq_ring_log2>(6);
  qp_params.set<Q::send_cqn>(static_cast<uint16_t>(cq));
  qp_params.set<Q::recv_cqn>(static_cast<uint16_t>(cq));
  Q with_srq = qp_params;
  with_srq.set<Q::has_srq>(true);
  with_srq.set<Q::srqn>(static_cast<uint16_t>(srq));
  qp_params.set<Q::rq_ring_address>(ring(4));
  qp_params.set<Q::rq_ring_log2>(6);
  const uint32_t second = queue.run<admin::CreateQp>(pd, with_srq).object;
  const uint32_t qp = queue.run<admin::CreateQp>(pd, qp_params).object;
  const auto modify = [&](hwif::QpState state, uint32_t mask) {
    hwif::ModifyQpInput input{};
    input.words[0] = mask;  // attribute mask, as in hwif/admin.toml
    input.set<hwif::ModifyQpInput::attributes>(attributes(state));
    queue.run<admin::ModifyQp>(qp, {}, input);
  };
  using hwif::QpState;
  modify(QpState::INIT, 0x39);
  modify(QpState::INIT, 0x19);
  modify(QpState::RTR, 0x129181);
  modify(QpState::RTS, 0x12e01);
  modify(QpState::RTS, 0x9);
  queue.run<admin::QueryQp>(qp);
  modify(QpState::SQD, 0x1);
  modify(QpState::SQD, 0x28eb9);
  modify(QpState::RTS, 0x9);
  modify(QpState::ERR, 0x1);
  modify(QpState::RESET, 0x1);
  queue.run<admin::DestroyQp>(second);
  queue.run<admin::DestroyQp>(qp);
  queue.run<admin::DestroySrq>(srq);
  queue.run<admin::DestroyMr>(mr);
  queue.run<admin::DestroyCq>(cq);
  queue.run<admin::DestroyEq>(eq);
  queue.run<admin::DestroyPd>(other_pd);
  queue.run<admin::DestroyPd>(pd);

  const unsigned last_gid = 7;
  hwif::GidEntry gid{};
  gid.set<hwif::GidEntry::gid>({{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 9}});
  gid.set<hwif::GidEntry::gid_type>(hwif::GidType::ROCE_V1);
  queue.run<admin::SetGid>(last_gid, gid);
  queue.run_array<admin::QueryGid>(0, last_gid + 1);
  queue.run<admin::DelGid>(last_gid);
  hwif::SetPkeyParams pkey{};
  pkey.set<hwif::SetPkeyParams::pkey>(0x8123);
  queue.run<admin::SetPkey>(1, pkey);
  queue.run_array<admin::QueryPkey>(0, hwif::PKEY_TABLE_LENGTH);
  queue.run<admin::SetPkey>(1);
  queue.run<admin::QueryPort>(1);
  hwif::ModifyPortInput port{};
  hwif::PortAttributes port_attributes{};
  port_attributes.set<hwif::PortAttributes::active_mtu>(hwif::Mtu::MTU_4096);
  port.set<hwif::ModifyPortInput::attributes>(port_attributes);
  port.set<hwif::ModifyPortInput::change_active_mtu>(true);
  queue.run<admin::ModifyPort>(1, {}, port);
  queue.run_array<admin::QueryCounters>(0, static_cast<unsigned>(hwif::LAST_COUNTER) + 1);
}

// Commands of the interface that this firmware does not have.
template <class... Commands>
void refused(AdminQueue& queue) {
  const auto one = [&]<class Command>() {
    try {
      queue.run<Command>(0);
    } catch (const Error& error) {
      if (error.code() == EOPNOTSUPP) return;
    }
    throw std::runtime_error(std::string(hwif::to_string(Command::OPCODE)) +
                             " is done by the firmware, but not measured");
  };
  (one.template operator()<Commands>(), ...);
}

}  // namespace

void measure_commands(Rig& rig, const Options& options, Results& results) {
  const char* any_key = "admin_command_cycles";
  const char* modify_key = "modify_qp_cycles";
  if (!options.wants(any_key) && !options.wants(modify_key)) return;
  rig.grow(1);
  rig.rest();
  progress("admin commands");
  rig.pacer().set_step(4);
  PacedTransport& hosts = *rig.side(0).transport;
  hosts.forget_commands();
  host_commands(rig);
  std::map<hwif::AdminOpcode, uint64_t> worst = hosts.worst_commands();
  std::map<hwif::AdminOpcode, uint64_t> management;
  {
    sim::ManagementNic function(rig.world().nic(0));
    PacedTransport transport(rig.world(), function, rig.pacer());
    DmaArena arena(transport);
    AdminQueue queue(transport, arena, std::chrono::milliseconds(1000));
    hwif::csr::InterruptVector unmasked{};
    transport.bar_write(
        hwif::csr::InterruptVector::ADDRESS + hwif::csr::InterruptVector::STRIDE * queue.VECTOR,
        unmasked.to_word());
    every_command(queue, arena);
    management = transport.worst_commands();
    refused<admin::CreateFrmr, admin::CreateMw, admin::DestroyMw, admin::ResizeCq,
            admin::ModifySrq, admin::AttachMulticast, admin::DetachMulticast>(queue);
    for (const auto& [opcode, cycles] : transport.worst_commands()) {
      management.try_emplace(opcode, 0);  // refused
    }
  }
  for (unsigned n = 0; n < 256; ++n) {
    const auto opcode = static_cast<hwif::AdminOpcode>(n);
    if (std::string(hwif::to_string(opcode)) != "?" && !management.contains(opcode)) {
      throw std::runtime_error(std::string(hwif::to_string(opcode)) + " is not measured");
    }
  }
  for (const auto& [opcode, cycles] : management) {
    uint64_t& most = worst[opcode];
    most = std::max(most, cycles);
  }
  double any = 0;
  std::string slowest;
  for (const auto& [opcode, cycles] : worst) {
    if (options.verbose) progress(std::string(to_string(opcode)) + " " + std::to_string(cycles));
    if (opcode == hwif::AdminOpcode::MODIFY_QP) {
      if (options.wants(modify_key)) results.set(modify_key, static_cast<double>(cycles));
    } else if (static_cast<double>(cycles) > any) {
      any = static_cast<double>(cycles);
      slowest = to_string(opcode);
    }
  }
  if (options.wants(any_key)) results.set(any_key, any, "slowest: " + slowest);
}

}  // namespace roci::bench
