// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Two RTL NICs back to back with the host core on each, their queue pairs, and loads on them.
//
// The host costs no simulated time: it posts and polls while the clock stands. Time passes in run(),
// step by step; between two steps the host sees the completions that are in its memory and posts what
// has room, as a program with a free core would that looks every kGrain cycles.
#pragma once

#include "figures.hpp"
#include "paced_transport.hpp"

#include "model/world.hpp"

#include <roci/cq.hpp>
#include <roci/device.hpp>
#include <roci/mr.hpp>
#include <roci/pd.hpp>
#include <roci/qp.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace roci::bench {

/// Messages on some of a rig's queue pairs, from NIC 0 to NIC 1 (READ: requested by NIC 0).
struct Load {
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
  uint32_t bytes = 64;
  unsigned qps = 1;
  unsigned depth = 64;        ///< requests outstanding per queue pair, a multiple of `list`
  unsigned list = 32;         ///< requests per call of post_send
  unsigned signal_every = 16; ///< every n-th is signaled
  uint64_t warm = 0;          ///< messages before the measured ones …
  uint64_t measured = 0;
  uint64_t tail = 0;          ///< … and after them, so that the end of posting is not measured
  size_t stride = 0;          ///< from message to message in memory; 0: dense, multiples of 64
  bool both_ways = false;     ///< NIC 1 does the same towards NIC 0 at the same time
};

/// What a load took.
struct Rate {
  double cycles_per_message = 0;
  uint64_t messages = 0;   ///< each way
  uint64_t cycles = 0;
  double cpu_seconds = 0;  ///< of this thread, measured part
};

/// One host.
struct Side {
  Side(sim::World& world, unsigned nic, Pacer& pacer, size_t bytes, unsigned entries);
  PacedTransport* transport;  // the device's
  std::shared_ptr<Device> device;
  Context context;
  Pd pd;
  Cq send_cq, recv_cq;
  std::unique_ptr<uint8_t[], void (*)(void*)> memory;
  size_t bytes;
  Mr mr;
  std::vector<std::unique_ptr<Qp>> qps;
  uint64_t address() const { return reinterpret_cast<uintptr_t>(memory.get()); }
};

/// The two NICs.
class Rig {
 public:
  /// @param bytes  registered memory of each side
  Rig(sim::ChipConfig chip, const Options& options, size_t bytes);
  ~Rig();

  /// Brings up queue pairs until there are `count`; the first is deep, the others have 64 requests.
  void grow(unsigned count);

  /// Runs a load, then checks every byte of it. @throws std::runtime_error
  Rate run(const Load& load);

  /// Touches every page of the memory that loads of `bytes` use, so that translations are on the chip.
  void warm(size_t bytes);

  /// Cycles from doorbell to first beat on the wire, and from post to completion, of one WRITE while
  /// everything rests before it.
  struct Single {
    uint64_t first_beat = 0;
    uint64_t post_to_cqe = 0;
  };
  Single single_write(uint32_t bytes, size_t offset);

  /// Lets time pass until nothing is under way.
  void rest();

  sim::World& world() { return world_; }
  Side& side(unsigned index) { return *sides_.at(index); }
  Pacer& pacer() { return pacer_; }
  sim::ChipConfig chip() const { return chip_; }

  static constexpr unsigned kGrain = 4;

 private:
  void connect(Side& side, unsigned from, unsigned to, unsigned peer);
  void print_counters();

  sim::ChipConfig chip_;
  const Options& options_;
  sim::World world_;
  Pacer pacer_;
  std::vector<std::unique_ptr<Side>> sides_;
  uint64_t seed_ = 1;
  uint64_t data_frames_ = 0;  // frames with data that arrived anywhere
  std::vector<std::vector<uint64_t>> counters_;
};

}  // namespace roci::bench
