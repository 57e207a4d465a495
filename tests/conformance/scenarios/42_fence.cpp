// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  Link link(bench);
  const auto memory = bench.device.register_memory(8192);
  const Bytes data = bench.random_bytes(2048);
  // without the fence
  link.post(IBV_WR_RDMA_READ, memory->sge(0, 2048), 1);
  link.post(IBV_WR_SEND, memory->sge(4096, 64), 2);
  const auto together = link.collect();
  bench.expect(together.size() == 2 && together[1].opcode() == op::send_only,
               "unfenced: the SEND goes at once: " + link.tell(together));
  link.expect_no_completion("before the responses");
  link.send(link.responses(link.p(), data, 1));
  link.send(link.ack(link.p(2), kAck, 2));
  link.sent(1);
  link.sent(2);
  bench.saw("unfenced: " + link.tell(together) + " at once");

  // with it
  link.post(IBV_WR_RDMA_READ, memory->sge(0, 2048), 3);
  link.post(IBV_WR_SEND, memory->sge(4096, 64), 4, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
  const auto read = link.collect();
  bench.expect(read.size() == 1 && read[0].opcode() == op::read_request,
               "fenced: only the READ: " + link.tell(read));
  const auto responses = link.responses(link.p(3), data, 3);
  link.send(responses[0]);
  const auto early = link.collect();
  bench.expect(early.empty(), "fenced: nothing before the last response: " + link.tell(early));
  link.send(responses[1]);
  link.sent(3);
  const auto fenced = link.collect();
  bench.expect(fenced.size() == 1 && fenced[0].opcode() == op::send_only &&
                   fenced[0].psn() == link.p(5),
               "fenced: then the SEND: " + link.tell(fenced));
  link.send(link.ack(link.p(5), kAck, 4));
  link.sent(4);
  bench.saw(say("fenced: ", link.tell(read), "; after the first response ", link.tell(early),
                "; after the last ", link.tell(fenced)));
}

const Scenario kScenario{42, "fence: READ, then a fenced and an unfenced SEND",
                         "the fenced SEND is not on the wire before the last READ response", play};

}  // namespace
}  // namespace roci::conformance
