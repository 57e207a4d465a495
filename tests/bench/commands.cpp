// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Admin commands as the host core issues them, on NICs at rest: creation, change, query and end of each
// kind of object.
#include "groups.hpp"

#include <roci_hwif_names.hpp>

#include <array>

namespace roci::bench {

void measure_commands(Rig& rig, const Options& options, Results& results) {
  const char* any_key = "admin_command_cycles";
  const char* modify_key = "modify_qp_cycles";
  if (!options.wants(any_key) && !options.wants(modify_key)) return;
  rig.grow(1);
  rig.rest();
  progress("admin commands");
  Side& side = rig.side(0);
  rig.pacer().set_step(4);
  side.transport->forget_commands();
  {
    Pd pd(side.context);
    Cq cq(side.context, {512, nullptr, true});
    if (side.device->limits().cq_resize) cq.resize(1024);
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
    rig.side(0).qps[0]->query(other, init);  // a path to the peer
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
    side.device->query_counters(0, 32);
  }
  double any = 0;
  std::string slowest;
  for (const auto& [opcode, cycles] : side.transport->worst_commands()) {
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
