// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  Link link(bench);
  const auto memory = bench.device.register_memory(4096);
  randomize(bench, *memory);
  for (unsigned round = 0; round < 3; ++round) {
    const std::string when = round == 0 ? "at first" : say("after reconnect ", round);
    if (round != 0) {
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_ERR;
      link.qp().modify(attr, IBV_QP_STATE);
      link.sent(100, IBV_WC_WR_FLUSH_ERR);
      link.reset();
      link.settings.device_psn = static_cast<uint32_t>(bench.random(0, 0xffffff));
      link.settings.peer_psn = static_cast<uint32_t>(bench.random(0, 0xffffff));
      link.settings.peer_qpn += 0x100;
      link.connect();
      bench.expect(link.collect().empty(), "nothing of the past is sent " + when);
    }
    // of the peer: the first PSN is expected, the first message is number 1
    const Bytes data = bench.random_bytes(64);
    link.send(link.write(op::write_only, 0, data, at(*memory)));
    const auto ack = link.collect();
    link.expect_ack(ack, kAck, link.e(), "the first request " + when);
    if (!ack.empty() && ack[0].frame.aeth) {
      bench.expect_equal(ack[0].frame.aeth->msn, 1u, "MSN " + when);
    }
    bench.expect(holds(*memory, 0, data), "its data " + when);
    // of the device
    link.post(IBV_WR_SEND, memory->sge(0, 10), 1);
    const Packet first = link.must_come("its first request");
    bench.expect(first.psn() == link.p(), say("its first PSN ", when, " is p: ", link.tell(first)));
    link.send(link.ack(first.psn(), kAck, 1));
    link.sent(1);
    // a state that must not survive: a gap that was told, a message half here, a request unanswered
    link.send(link.send_message(1, bench.random_bytes(2048))[0]);
    link.send(link.request(op::send_only, 7, Bytes(10)));
    link.post_recv(memory->sge(0, 4096), 2);
    const auto stale = link.collect();
    bench.expect(!stale.empty(), "the SEND and the gap have an answer " + when);
    link.post(IBV_WR_SEND, memory->sge(0, 10), 100);
    link.must_come("a request that stays unanswered");
    bench.saw(say(when, ": ", link.tell(ack), " MSN ",
                  ack.empty() || !ack[0].frame.aeth ? 0 : ack[0].frame.aeth->msn, ", ",
                  link.tell(first)));
  }
}

const Scenario kScenario{8, "ERR → RESET → INIT → RTR → RTS with new PSNs, twice",
                         "both directions start at the new PSN, MSN 0, nothing of the past", play};

}  // namespace
}  // namespace roci::conformance
