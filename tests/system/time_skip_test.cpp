// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Skipped time: the same frames, the same completions at the same simulated time as when every cycle
// is simulated, only sooner.
#include "rtl_world.hpp"

#include <algorithm>
#include <vector>

using namespace roci;
using namespace roci::test;

namespace {

struct Frame {
  bool operator==(const Frame&) const = default;
  size_t port = 0;
  bool lost = false;
  std::vector<uint8_t> bytes;
};

struct Outcome {
  std::vector<Frame> frames;
  std::vector<std::pair<uint64_t, ibv_wc_status>> completions;
  uint64_t cycles = 0;     // of the world's clock
  uint64_t simulated = 0;  // that cost time
};

void connect_patiently(Qp& qp, uint32_t peer, const ibv_ah_attr& path) {
  ibv_qp_attr attr = attributes(IBV_QPS_INIT, peer, path);
  attr.timeout = 5;        // 131 µs
  attr.min_rnr_timer = 8;  // 160 µs
  attr.qp_state = IBV_QPS_INIT;
  qp.modify(attr, TO_INIT);
  attr.qp_state = IBV_QPS_RTR;
  qp.modify(attr, TO_RTR);
  attr.qp_state = IBV_QPS_RTS;
  qp.modify(attr, TO_RTS);
}

// SENDs and WRITEs one after the other: lost frames cost timeouts, a late receive an RNR wait.
// The memory is the same in all runs, since its addresses are in the frames.
Outcome transfer(sim::ChipConfig chip, bool skip, Buffer& source, Buffer& destination) {
  sim::WorldConfig config = rtl_world(chip, 3);
  config.skip_time = skip;
  config.fabric.link.impairments.drop = 0.1;
  sim::World world(config);
  Host a(make_inproc_transport(world.nic(0)));
  Host b(make_inproc_transport(world.nic(1)));
  Cq a_cq(a.context, {64, nullptr, false});
  Cq b_cq(b.context, {64, nullptr, false});
  Qp a_qp(a.pd, {&a_cq, &a_cq, caps(), IBV_QPT_RC, false, false});
  Qp b_qp(b.pd, {&b_cq, &b_cq, caps(), IBV_QPT_RC, false, false});
  connect_patiently(a_qp, b_qp.number(), path_to(world.nic(1)));
  connect_patiently(b_qp, a_qp.number(), path_to(world.nic(0)));

  Outcome out;
  bool rnr_nak = false;
  world.fabric().add_tap([&](const sim::TapEvent& event) {
    if (event.direction != sim::TapEvent::Direction::sent) return;
    constexpr size_t bth = 54, aeth = 66;
    rnr_nak = rnr_nak || (event.bytes[bth] == 0x11 && event.bytes[aeth] >> 5 == 1);
    out.frames.push_back({event.port, event.lost, {event.bytes.begin(), event.bytes.end()}});
  });
  const Mr from(a.pd, source.data(), source.size(), source.address(), ALL_ACCESS);
  const Mr to(b.pd, destination.data(), destination.size(), destination.address(), ALL_ACCESS);
  const uint64_t begin = world.cycle();
  const uint64_t begin_simulated = world.nic(0).nic().simulated_cycles();
  for (uint64_t n = 0; n < 12; ++n) {
    const bool send = n % 3 != 2;
    ibv_sge r = {destination.address(), 2000, to.lkey()};
    ibv_sge s = {source.address() + n, 1500, from.lkey()};
    ibv_send_wr wr = send_wr(send ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, &s, 1, n);
    wr.wr.rdma.remote_addr = destination.address();
    wr.wr.rdma.rkey = to.rkey();
    const bool late = n == 4;
    if (send && !late) REQUIRE(post_recv(b_qp, &r, 1, 100 + n) == 0);
    REQUIRE(post(a_qp, wr) == 0);
    if (late) {
      ibv_wc none{};
      while (!rnr_nak) REQUIRE(a_cq.poll(1, &none) == 0);
      REQUIRE(post_recv(b_qp, &r, 1, 100 + n) == 0);
    }
    const ibv_wc sent = wait_wc(a_cq);
    out.completions.emplace_back(sent.wr_id, sent.status);
    if (send) {
      const ibv_wc received = wait_wc(b_cq);
      out.completions.emplace_back(received.wr_id, received.status);
    }
    REQUIRE(std::memcmp(destination.data(), source.data() + n, 1500) == 0);
  }
  out.cycles = world.cycle() - begin;
  out.simulated = world.nic(0).nic().simulated_cycles() - begin_simulated;
  world.fabric().finish_taps();
  return out;
}

}  // namespace

TEST_CASE("skipped time changes nothing but the cost") {
  Buffer source(4096);
  Buffer destination(4096);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i * 7);
  for (const auto chip : kConfigs) {
    INFO(sim::to_string(chip));
    const Outcome skipped = transfer(chip, true, source, destination);
    const Outcome whole = transfer(chip, false, source, destination);
    REQUIRE(skipped.frames.size() > 40);
    CHECK(std::any_of(skipped.frames.begin(), skipped.frames.end(),
                      [](const Frame& frame) { return frame.lost; }));
    const auto differ = std::mismatch(skipped.frames.begin(), skipped.frames.end(),
                                      whole.frames.begin(), whole.frames.end());
    INFO("frame " << differ.first - skipped.frames.begin() << " of " << skipped.frames.size()
                  << " and " << whole.frames.size());
    CHECK((skipped.frames == whole.frames));
    CHECK(skipped.completions == whole.completions);
    for (const auto& [id, status] : skipped.completions) {
      INFO("request " << id);
      CHECK(status == IBV_WC_SUCCESS);
    }
    CHECK(whole.simulated == whole.cycles);
    // The timeout of the lost frame and the RNR wait are most of the time that nobody needs.
    CHECK(skipped.simulated < skipped.cycles * 3 / 4);
    CHECK(skipped.cycles == whole.cycles);
  }
}
