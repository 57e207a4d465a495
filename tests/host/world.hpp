// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What most tests need: NICs, and on each an opened device with PD, CQs, memory and queue pairs.
#pragma once

#include "fake_nic/fake_nic.hpp"

#include <roci/cq.hpp>
#include <roci/device.hpp>
#include <roci/error.hpp>
#include <roci/mr.hpp>
#include <roci/pd.hpp>
#include <roci/qp.hpp>

#include <catch2/catch.hpp>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace roci::test {

/// The seed of this program: ROCI_SEED, or 1. Printed on stderr at its first use.
inline uint64_t base_seed() {
  static const uint64_t seed = [] {
    uint64_t value = 1;
    if (const char* text = getenv("ROCI_SEED"); text != nullptr && *text != 0) {
      char* end = nullptr;
      value = strtoull(text, &end, 0);
      if (*end != 0) throw std::invalid_argument(std::string("ROCI_SEED is not a number: ") + text);
    }
    std::cerr << "seed " << value << " (replay with ROCI_SEED=" << value << ")" << std::endl;
    return value;
  }();
  return seed;
}

/// Random numbers from the program's seed.
class Random {
 public:
  Random() : engine_(base_seed()) {}
  uint64_t operator()() { return engine_(); }
  /// low…high, both included.
  uint64_t between(uint64_t low, uint64_t high) {
    return std::uniform_int_distribution<uint64_t>(low, high)(engine_);
  }
  uint64_t seed() const { return base_seed(); }

 private:
  std::mt19937_64 engine_;
};

/// errno of the Error that `call` throws; 0 if it throws none. `text` gets the line.
template <class Call>
int error_of(Call call, std::string* text = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (text != nullptr) *text = error.what();
    return error.code();
  }
  return 0;
}

/// Page-aligned memory of the program.
class Buffer {
 public:
  explicit Buffer(size_t bytes)
      : bytes_(bytes), memory_(static_cast<uint8_t*>(aligned_alloc(4096, (bytes + 4095) / 4096 * 4096))) {
    std::memset(memory_, 0, (bytes + 4095) / 4096 * 4096);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(memory_); }
  uint8_t* data() { return memory_; }
  size_t size() const { return bytes_; }
  uint8_t& operator[](size_t i) { return memory_[i]; }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(memory_); }

 private:
  size_t bytes_;
  uint8_t* memory_;
};

inline constexpr unsigned ALL_ACCESS =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
    IBV_ACCESS_REMOTE_ATOMIC;

/// One opened device with the usual objects. Without options: those of the environment, so that
/// ROCI_DMA=scatter makes all memory of a test go through page tables.
struct Host {
  explicit Host(std::unique_ptr<Transport> transport,
                const DeviceOptions& options = DeviceOptions::from_environment())
      : device(Device::open(std::move(transport), options)), context(device), pd(context) {}

  std::shared_ptr<Device> device;
  Context context;
  Pd pd;
};

/// Options of a test that looks for its memory on the bus: there at its virtual address, whatever
/// ROCI_DMA says.
inline DeviceOptions bus_is_virtual() {
  DeviceOptions options = DeviceOptions::from_environment();
  options.dma = DmaPolicy::DIRECT;
  return options;
}

/// Memory with its region.
struct Region {
  Region(Pd& pd, size_t bytes, unsigned access = ALL_ACCESS)
      : buffer(bytes), mr(pd, buffer.data(), bytes, buffer.address(), access) {}
  uint64_t address() const { return buffer.address(); }
  ibv_sge sge(size_t offset, size_t bytes) const {
    return {buffer.address() + offset, static_cast<uint32_t>(bytes), mr.lkey()};
  }
  Buffer buffer;
  Mr mr;
};

/// The path to a NIC's GID.
inline ibv_ah_attr path_to(const FakeNic& nic, unsigned gid = 0) {
  ibv_ah_attr attr{};
  const auto raw = nic.gids()[gid].get<hwif::GidEntry::gid>();
  std::memcpy(attr.grh.dgid.raw, raw.bytes, sizeof raw.bytes);
  attr.grh.sgid_index = static_cast<uint8_t>(gid);
  attr.grh.hop_limit = 64;
  attr.is_global = 1;
  attr.port_num = 1;
  return attr;
}

inline constexpr int TO_INIT =
    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
inline constexpr int TO_RTR = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
inline constexpr int TO_RTS = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                              IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

/// Attributes for all transitions up to RTS.
inline ibv_qp_attr attributes(ibv_qp_state state, uint32_t dest_qpn, const ibv_ah_attr& path) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  attr.port_num = 1;
  attr.qp_access_flags = ALL_ACCESS;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = dest_qpn;
  attr.rq_psn = 0x123456;
  attr.sq_psn = 0x123456;
  attr.max_rd_atomic = 4;
  attr.max_dest_rd_atomic = 4;
  attr.min_rnr_timer = 12;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.ah_attr = path;
  return attr;
}

inline void connect(Qp& qp, uint32_t dest_qpn, const ibv_ah_attr& path) {
  qp.modify(attributes(IBV_QPS_INIT, dest_qpn, path), TO_INIT);
  qp.modify(attributes(IBV_QPS_RTR, dest_qpn, path), TO_RTR);
  qp.modify(attributes(IBV_QPS_RTS, dest_qpn, path), TO_RTS);
}

inline constexpr int UD_TO_INIT =
    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
inline constexpr int UC_TO_RTR =
    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

/// A UD queue pair from RESET to RTS.
inline void open_datagrams(Qp& qp, uint32_t qkey) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = qkey;
  qp.modify(attr, UD_TO_INIT);
  attr.qp_state = IBV_QPS_RTR;
  qp.modify(attr, IBV_QP_STATE);
  attr.qp_state = IBV_QPS_RTS;
  qp.modify(attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

/// A UC queue pair from RESET to RTS.
inline void connect_unreliably(Qp& qp, uint32_t dest_qpn, const ibv_ah_attr& path) {
  qp.modify(attributes(IBV_QPS_INIT, dest_qpn, path), TO_INIT);
  qp.modify(attributes(IBV_QPS_RTR, dest_qpn, path), UC_TO_RTR);
  qp.modify(attributes(IBV_QPS_RTS, dest_qpn, path), IBV_QP_STATE | IBV_QP_SQ_PSN);
}

/// Sizes that tests ask for.
inline ibv_qp_cap caps(unsigned wr = 16, unsigned sge = 2, unsigned inline_bytes = 0) {
  return {wr, wr, sge, sge, inline_bytes};
}

/// Two NICs in this process, a device on each, and one connected pair of queue pairs.
struct Pair {
  explicit Pair(const DeviceOptions& options = DeviceOptions::from_environment(),
                ibv_qp_cap cap = caps(), unsigned entries = 64, bool signal_all = false)
      : a_nic(fabric, 0),
        b_nic(fabric, 1),
        a(make_inproc_transport(a_nic), options),
        b(make_inproc_transport(b_nic), options),
        a_cq(a.context, {entries, nullptr, false}),
        b_cq(b.context, {entries, nullptr, false}),
        a_qp(a.pd, {&a_cq, &a_cq, cap, IBV_QPT_RC, signal_all, false}),
        b_qp(b.pd, {&b_cq, &b_cq, cap, IBV_QPT_RC, signal_all, false}) {
    connect(a_qp, b_qp.number(), path_to(b_nic));
    connect(b_qp, a_qp.number(), path_to(a_nic));
  }
  ~Pair() {
    CHECK(a_nic.violations() == std::vector<std::string>{});
    CHECK(b_nic.violations() == std::vector<std::string>{});
  }

  FakeFabric fabric;
  FakeNic a_nic, b_nic;
  Host a, b;
  Cq a_cq, b_cq;
  Qp a_qp, b_qp;
};

/// The next completion; fails the test if none comes. Polling lets the NIC run.
inline ibv_wc wait_wc(Cq& cq) {
  ibv_wc wc{};
  for (int i = 0; i < 200000; ++i) {
    if (cq.poll(1, &wc) == 1) return wc;
  }
  FAIL("no completion");
  return wc;
}

/// Checks that nothing completes.
inline void no_wc(Cq& cq) {
  ibv_wc wc{};
  for (int i = 0; i < 200; ++i) REQUIRE(cq.poll(1, &wc) == 0);
}

/// A send request.
inline ibv_send_wr send_wr(ibv_wr_opcode opcode, ibv_sge* sges, int count, uint64_t wr_id,
                           unsigned flags = IBV_SEND_SIGNALED) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = sges;
  wr.num_sge = count;
  wr.opcode = opcode;
  wr.send_flags = flags;
  return wr;
}

inline int post(Qp& qp, ibv_send_wr& wr) {
  ibv_send_wr* bad = nullptr;
  return qp.post_send(&wr, &bad);
}

inline int post_recv(Qp& qp, ibv_sge* sges, int count, uint64_t wr_id) {
  ibv_recv_wr wr{wr_id, nullptr, sges, count};
  ibv_recv_wr* bad = nullptr;
  return qp.post_recv(&wr, &bad);
}

}  // namespace roci::test
