// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  Link link(bench, {}, IBV_QPS_RESET);
  const auto memory = bench.device.register_memory(4096);
  for (const auto state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    if (state != IBV_QPS_RESET) link.step_to(state);
    const std::string in = say(" in ", state_text(state));
    const int send = link.post(IBV_WR_SEND, memory->sge(0, 16), 1);
    const int receive = link.post_recv(memory->sge(0, 16), 2);
    bench.expect((send == 0) == (state == IBV_QPS_RTS), say("send", in, ": ", send));
    bench.expect((receive == 0) == (state != IBV_QPS_RESET), say("receive", in, ": ", receive));
    if (state != IBV_QPS_RTS) {
      const auto sent = link.collect();
      bench.expect(sent.empty(), "nothing is sent" + in);
    }
    link.expect_no_completion("of what was refused" + in);
    bench.saw(say(state_text(state), ": send ", send == 0 ? "taken" : "refused", ", receive ",
                  receive == 0 ? "taken" : "refused"));
  }
  // what was taken is there, what was refused is not
  bench.expect(link.must_come("the SEND of RTS").psn() == link.p(), "the first SEND has PSN p");
  link.send(link.ack(link.p(), kAck, 1));
  link.sent(1);
}

const Scenario kScenario{49, "send posted in RESET, INIT, RTR; receive posted in RESET",
                         "an error at once", play};

}  // namespace
}  // namespace roci::conformance
