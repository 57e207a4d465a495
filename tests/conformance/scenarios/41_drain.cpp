// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  LinkSettings settings;
  settings.timeout = 18;  // 1 s: nothing is sent again while the peer is silent
  settings.device_psn = 0;
  Link link(bench, settings);
  constexpr uint64_t kMessages = 5;
  constexpr size_t kBytes = 512 << 10;  // more than may be in flight unacknowledged
  constexpr int64_t kPackets = kBytes / 1024;
  const auto memory = bench.device.register_memory(kBytes);
  for (uint64_t n = 0; n < kMessages; ++n) link.post(IBV_WR_RDMA_WRITE, memory->sge(0, kBytes), n);
  // until the window is full: in the middle of a message
  const auto before = link.collect();
  bench.require(!before.empty() && before.back().psn() % kPackets != kPackets - 1,
                "a message is half sent: " + link.tell(before));
  int64_t sent = static_cast<int64_t>(before.size());
  const int64_t started = (sent + kPackets - 1) / kPackets;

  bench.device.events();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = 1;
  link.qp().modify(attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
  bench.expect(bench.device.events().empty(), "not drained while a message is half sent");
  link.expect_works(0, "in SQD");

  // acknowledge what came, until no more comes
  const auto finish = [&](int64_t end) {
    while (sent < end) {
      link.send(link.ack(link.p(sent - 1), kAck, static_cast<uint32_t>(sent / kPackets)));
      const auto more = link.collect();
      if (more.empty()) break;
      sent += static_cast<int64_t>(more.size());
    }
    link.send(link.ack(link.p(sent - 1), kAck, static_cast<uint32_t>(sent / kPackets)));
    const auto rest = link.collect();
    sent += static_cast<int64_t>(rest.size());
  };
  finish(started * kPackets);
  bench.expect_equal(sent, started * kPackets, "packets sent in SQD");
  for (int64_t n = 0; n < started; ++n) link.sent(static_cast<uint64_t>(n));
  bench.peer.wait(kMillisecond);
  link.expect_no_completion("of a message that was not started");
  const std::vector drained{Event{IBV_EVENT_SQ_DRAINED, link.qp().number()}};
  bench.expect(bench.device.events() == drained, "SQ_DRAINED once");
  link.expect_state(IBV_QPS_SQD, "when drained");
  link.expect_works(1, "in SQD, drained");

  link.step_to(IBV_QPS_RTS);
  const auto first = link.collect();
  bench.expect(!first.empty() && first[0].psn() == link.p(sent), "the next message starts in RTS");
  sent += static_cast<int64_t>(first.size());
  finish(kMessages * kPackets);
  for (uint64_t n = static_cast<uint64_t>(started); n < kMessages; ++n) link.sent(n);
  bench.expect(bench.device.events().empty(), "no further event");
  bench.saw(say(before.size(), " packets before SQD, ", started, " of ", kMessages,
                " messages started: finished, SQ_DRAINED once; the rest after RTS; WRITEs of the peer "
                "answered throughout"));
}

const Scenario kScenario{
    41, "SQD with 5 messages posted, half sent; then RTS",
    "started messages finish, event once, rest later; responder works throughout", play};

}  // namespace
}  // namespace roci::conformance
