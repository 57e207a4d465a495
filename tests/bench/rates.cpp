// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Message rates: 64 B, one SGE, lists of 32, every 16th signaled, translations on the chip.
#include "groups.hpp"

namespace roci::bench {

namespace {

Load small_messages(ibv_wr_opcode opcode, unsigned qps, unsigned depth, uint64_t warm,
                    uint64_t measured, uint64_t tail) {
  Load load;
  load.opcode = opcode;
  load.bytes = 64;
  load.qps = qps;
  load.depth = depth;
  load.warm = warm;
  load.measured = measured;
  load.tail = tail;
  return load;
}

double cycles(Rig& rig, const std::string& what, const Load& load) {
  rig.grow(load.qps);
  progress(what);
  rig.warm((load.warm + load.measured + load.tail + load.qps * uint64_t{load.list}) * 64);
  return rig.run(load).cycles_per_message;
}

}  // namespace

void measure_rates(Rig& rig, const Options& options, Results& results) {
  const char* one_key = "write64_one_qp_cycles";
  const char* ratio_key = "write64_1qp_per_1024qp_ratio";
  const bool ratio = options.wants(ratio_key) && !options.quick;
  double one = 0;
  if (options.wants(one_key) || ratio) {
    one = cycles(rig, one_key,
                 small_messages(IBV_WR_RDMA_WRITE, 1, 1024, 1024, options.quick ? 2048 : 4096, 1024));
    if (options.wants(one_key)) results.set(one_key, one);
  }
  const unsigned many = options.quick ? 8 : 64;
  const uint64_t around = uint64_t{many} * 64;  // what can be outstanding
  const uint64_t measured = options.quick ? 2048 : 8192;
  if (options.wants("write64_64qp_cycles")) {
    results.set("write64_64qp_cycles",
                cycles(rig, "write64_64qp_cycles",
                       small_messages(IBV_WR_RDMA_WRITE, many, 64, around, measured, around)));
  }
  if (options.wants("send64_64qp_cycles")) {
    results.set("send64_64qp_cycles",
                cycles(rig, "send64_64qp_cycles",
                       small_messages(IBV_WR_SEND, many, 64, around, measured, around)));
  }
  const char* both_key = "write64_both_ways_cycles";
  if (options.wants(both_key)) {
    Load load = small_messages(IBV_WR_RDMA_WRITE, many, 64, around, measured, around);
    load.both_ways = true;
    results.set(both_key, cycles(rig, both_key, load));
  }
  if (ratio) {
    const unsigned all = rig.side(0).device->limits().max_qps;
    const double each = cycles(rig, ratio_key,
                               small_messages(IBV_WR_RDMA_WRITE, all, 32, 16384, 32768, 16384));
    results.set(ratio_key, one / each,
                std::to_string(all) + " queue pairs: " + std::to_string(each) + " cycles/msg");
  }
}

}  // namespace roci::bench
