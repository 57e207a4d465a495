// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Two RTL NICs with a device on each, for tests that make their own queue pairs; connections with the
// attributes that a test wants; a log of what is on the wire.
#pragma once

#include "rtl_world.hpp"

#include <roci_hwif_names.hpp>

#include <poll.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <span>

namespace roci::test {

/// The configurations to test: both, or the one that ROCI_CONFIG names.
inline std::vector<sim::ChipConfig> configs() {
  std::vector<sim::ChipConfig> chosen;
  const char* only = getenv("ROCI_CONFIG");
  for (const auto chip : kConfigs) {
    if (only == nullptr || sim::to_string(chip) == only) chosen.push_back(chip);
  }
  REQUIRE_FALSE(chosen.empty());
  return chosen;
}

/// The NICs of a test and a device on each.
struct RtlHosts {
  explicit RtlHosts(const sim::WorldConfig& config,
                    const DeviceOptions& options = DeviceOptions::from_environment())
      : world(config),
        a(make_inproc_transport(world.nic(0)), options),
        b(make_inproc_transport(world.nic(1)), options) {}

  /// A counter of a NIC, by the management function's window: no command, which would count itself.
  /// What happened before the call is in it.
  uint64_t counter(unsigned nic, hwif::Counter which) {
    world.run(kCountedLater);
    return window(nic, static_cast<size_t>(which));
  }
  /// All counters of a NIC, in the order of hwif::Counter. Otherwise as counter().
  std::vector<uint64_t> counters(unsigned nic) {
    world.run(kCountedLater);
    std::vector<uint64_t> all;
    for (size_t n = 0; n <= static_cast<size_t>(hwif::LAST_COUNTER); ++n) {
      all.push_back(window(nic, n));
    }
    return all;
  }

  sim::World world;
  Host a, b;

 private:
  // Cycles until what was posted (a doorbell, an access to a register) is counted.
  static constexpr uint64_t kCountedLater = 1000;
  uint64_t window(unsigned nic, size_t index) {
    using Window = hwif::csr::ManagementCounter;
    return world.nic(nic).bar_read(
        0, static_cast<uint32_t>(Window::ADDRESS + Window::STRIDE * index));
  }
};

/// What a connection is like.
struct Wish {
  ibv_qp_cap cap = caps();
  ibv_mtu mtu = IBV_MTU_1024;
  uint8_t timeout = 14;
  uint8_t retry_cnt = 7;
  uint8_t rnr_retry = 7;
  uint8_t min_rnr_timer = 12;
  uint8_t rd_atomic = 4;
  uint32_t a_psn = 0x123456;
  uint32_t b_psn = 0x654321;
  unsigned access = ALL_ACCESS;
  unsigned entries = 256;
  bool signal_all = false;
};

/// One side of a connection.
struct End {
  End(Host& host, sim::WorldNic& nic, const Wish& wish, CompChannel* channel = nullptr)
      : host(host),
        nic(nic),
        cq(host.context, {wish.entries, channel, false}),
        qp(host.pd, {&cq, &cq, wish.cap, IBV_QPT_RC, wish.signal_all, false}) {}

  /// RESET (or what it is in) → RTS. @param to  the peer's QP and NIC
  void connect(uint32_t qpn, const sim::WorldNic& to, const Wish& wish, uint32_t own_psn,
               uint32_t peer_psn) {
    for (const auto& [state, mask] : {std::pair{IBV_QPS_INIT, TO_INIT},
                                      std::pair{IBV_QPS_RTR, TO_RTR},
                                      std::pair{IBV_QPS_RTS, TO_RTS}}) {
      ibv_qp_attr attr = attributes(state, qpn, path_to(to));
      attr.path_mtu = wish.mtu;
      attr.timeout = wish.timeout;
      attr.retry_cnt = wish.retry_cnt;
      attr.rnr_retry = wish.rnr_retry;
      attr.min_rnr_timer = wish.min_rnr_timer;
      attr.max_rd_atomic = attr.max_dest_rd_atomic = wish.rd_atomic;
      attr.qp_access_flags = wish.access;
      attr.sq_psn = own_psn;
      attr.rq_psn = peer_psn;
      qp.modify(attr, mask);
    }
  }
  /// Posts a request. @return errno
  int send(ibv_wr_opcode opcode, std::span<ibv_sge> sges, uint64_t wr_id, uint64_t remote = 0,
           uint32_t rkey = 0, unsigned flags = IBV_SEND_SIGNALED, uint32_t imm = 0) {
    ibv_send_wr wr = send_wr(opcode, sges.data(), static_cast<int>(sges.size()), wr_id, flags);
    wr.wr.rdma = {remote, rkey};
    wr.imm_data = imm;
    return post(qp, wr);
  }
  int send(ibv_wr_opcode opcode, ibv_sge sge, uint64_t wr_id, uint64_t remote = 0,
           uint32_t rkey = 0, unsigned flags = IBV_SEND_SIGNALED, uint32_t imm = 0) {
    return send(opcode, std::span(&sge, 1), wr_id, remote, rkey, flags, imm);
  }
  /// Posts an RDMA request. @return errno
  /// @param remote  a Region, or what has address() and mr
  /// @param at      bytes from its start
  template <class Pieces, class Memory>
  int rdma(ibv_wr_opcode opcode, Pieces sges, const Memory& remote, size_t at, uint64_t wr_id,
           unsigned flags = IBV_SEND_SIGNALED, uint32_t imm = 0) {
    return send(opcode, sges, wr_id, remote.address() + at, remote.mr.rkey(), flags, imm);
  }
  /// Posts a WRITE of an SGE or several into the peer's memory, as rdma().
  template <class Pieces, class Memory>
  int write(Pieces from, const Memory& to, size_t at, uint64_t wr_id,
            unsigned flags = IBV_SEND_SIGNALED) {
    return rdma(IBV_WR_RDMA_WRITE, from, to, at, wr_id, flags);
  }
  /// Posts a READ of the peer's memory into an SGE or several, as rdma().
  template <class Pieces, class Memory>
  int read(Pieces into, const Memory& from, size_t at, uint64_t wr_id,
           unsigned flags = IBV_SEND_SIGNALED) {
    return rdma(IBV_WR_RDMA_READ, into, from, at, wr_id, flags);
  }
  /// To RESET.
  void reset() {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RESET;
    qp.modify(attr, IBV_QP_STATE);
  }

  Host& host;
  sim::WorldNic& nic;
  Cq cq;
  Qp qp;
};

/// A connected pair of queue pairs; both ends may be on one NIC.
struct Connection {
  Connection(Host& a_host, sim::WorldNic& a_nic, Host& b_host, sim::WorldNic& b_nic,
             const Wish& wish = {}, CompChannel* a_channel = nullptr,
             CompChannel* b_channel = nullptr)
      : wish(wish), a(a_host, a_nic, wish, a_channel), b(b_host, b_nic, wish, b_channel) {
    connect();
  }
  explicit Connection(RtlHosts& hosts, const Wish& wish = {}, CompChannel* a_channel = nullptr,
                      CompChannel* b_channel = nullptr)
      : Connection(hosts.a, hosts.world.nic(0), hosts.b, hosts.world.nic(1), wish, a_channel,
                   b_channel) {}

  void connect() {
    a.connect(b.qp.number(), b.nic, wish, wish.a_psn, wish.b_psn);
    b.connect(a.qp.number(), a.nic, wish, wish.b_psn, wish.a_psn);
  }
  /// Both to RESET and up again with fresh PSNs.
  void reconnect() {
    a.reset();
    b.reset();
    connect();
  }

  Wish wish;
  End a, b;
};

/// A RoCE frame at a port.
struct WireFrame {
  uint64_t cycle;
  size_t port;
  bool sent;   ///< by the port; else received
  bool lost;
  sim::FrameInfo info;  ///< without `head`
};

/// What crosses the ports, from its construction on. Make it right behind the world: it cannot be
/// taken off.
class WireLog {
 public:
  explicit WireLog(sim::World& world) : frames_(std::make_shared<std::vector<WireFrame>>()) {
    world.fabric().add_tap([frames = frames_](const sim::TapEvent& event) {
      WireFrame frame{event.cycle, event.port,
                      event.direction == sim::TapEvent::Direction::sent, event.lost,
                      sim::inspect(event.bytes)};
      frame.info.head = {};
      frames->push_back(frame);
    });
  }
  void clear() { frames_->clear(); }
  const std::vector<WireFrame>& all() const { return *frames_; }
  /// Frames that a port sent and for which `condition` holds.
  size_t sent(size_t port, const std::function<bool(const sim::FrameInfo&)>& condition) const {
    return static_cast<size_t>(
        std::count_if(frames_->begin(), frames_->end(), [&](const WireFrame& f) {
          return f.sent && f.port == port && condition(f.info);
        }));
  }
  /// Frames with one of these opcodes that a port sent.
  size_t sent(size_t port, std::initializer_list<uint8_t> opcodes) const {
    return sent(port, [&](const sim::FrameInfo& f) {
      return std::find(opcodes.begin(), opcodes.end(), f.opcode) != opcodes.end();
    });
  }
  /// PSNs of the frames that a port sent with this opcode, in order.
  std::vector<uint32_t> psns(size_t port, uint8_t opcode) const {
    std::vector<uint32_t> psns;
    for (const WireFrame& f : *frames_) {
      if (f.sent && f.port == port && f.info.opcode == opcode) psns.push_back(f.info.psn);
    }
    return psns;
  }
  /// ACKNOWLEDGE frames of a port with this syndrome.
  size_t acknowledges(size_t port, uint8_t syndrome) const {
    return sent(port, [&](const sim::FrameInfo& f) { return f.syndrome == syndrome; });
  }

 private:
  std::shared_ptr<std::vector<WireFrame>> frames_;
};

/// Whether a descriptor of events has one.
inline bool readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return poll(&p, 1, 0) == 1;
}

/// NICs of a configuration that the tests of a program share: to boot them and to open devices costs
/// more than most tests. There is a third port for a tester that sends any frame.
struct Nics {
  explicit Nics(sim::ChipConfig chip) : hosts(world_config(chip)), wire(hosts.world) {}
  static Nics& get(sim::ChipConfig chip) {
    static std::map<sim::ChipConfig, std::unique_ptr<Nics>> all;
    auto& nics = all[chip];
    if (nics == nullptr) nics = std::make_unique<Nics>(chip);
    nics->wire.clear();
    return *nics;
  }
  /// Devices whose memory is mapped page by page.
  Host& a_scattered() { return scattered(0); }
  Host& b_scattered() { return scattered(1); }

  RtlHosts hosts;
  WireLog wire;

 private:
  static sim::WorldConfig world_config(sim::ChipConfig chip) {
    sim::WorldConfig config = rtl_world(chip);
    config.fabric.ports = 3;
    // a bit slower than memory, so that no frame is cut short (that is a test of its own)
    if (chip == sim::ChipConfig::narrow) config.fabric.link.rate = {4, 1};
    return config;
  }
  Host& scattered(unsigned nic) {
    if (scattered_[nic] == nullptr) {
      DeviceOptions options;
      options.dma = DmaPolicy::SCATTER;
      scattered_[nic] =
          std::make_unique<Host>(make_inproc_transport(hosts.world.nic(nic)), options);
    }
    return *scattered_[nic];
  }
  std::unique_ptr<Host> scattered_[2];
};

/// How much the counters of two NICs moved since it was made.
class Counts {
 public:
  explicit Counts(RtlHosts& hosts)
      : hosts_(hosts), start_{hosts.counters(0), hosts.counters(1)} {}
  uint64_t operator()(unsigned nic, hwif::Counter which) const {
    return hosts_.counter(nic, which) - start_[nic].at(static_cast<size_t>(which));
  }

 private:
  RtlHosts& hosts_;
  std::vector<uint64_t> start_[2];
};

/// A test that runs once for each of configs(): `TEST_CASE_METHOD(EachChip, "…")`.
struct EachChip {
  EachChip()
      : chip(GENERATE(from_range(configs()))),
        told_(Catch::MessageBuilder("INFO", CATCH_INTERNAL_LINEINFO, Catch::ResultWas::Info)
              << sim::to_string(chip)) {}

  const sim::ChipConfig chip;

 private:
  Catch::ScopedMessage told_;
};

/// The same, on the NICs that the tests of a program share.
struct SharedNics : EachChip {
  Nics& nics = Nics::get(chip);
  RtlHosts& hosts = nics.hosts;
  WireLog& wire = nics.wire;
};

/// And with what their counters moved since the start of the test.
struct CountedNics : SharedNics {
  const Counts counts{hosts};
};

/// Fills memory with random bytes.
inline void randomize(Buffer& buffer, Random& random) {
  for (size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<uint8_t>(random());
}

/// The next completion of a CQ, which has to be of this request and status.
inline ibv_wc expect_wc(Cq& cq, uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS) {
  const ibv_wc wc = wait_wc(cq);
  CHECK(wc.wr_id == wr_id);
  CHECK(wc.status == status);
  return wc;
}

}  // namespace roci::test
