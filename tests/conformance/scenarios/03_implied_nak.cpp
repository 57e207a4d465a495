// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  Link link(bench);
  const auto memory = bench.device.register_memory(4096);
  randomize(bench, *memory);
  link.post(IBV_WR_RDMA_WRITE, memory->sge(0, 100), 1);
  link.post(IBV_WR_RDMA_READ, memory->sge(1024, 500), 2);
  link.post(IBV_WR_RDMA_WRITE, memory->sge(2048, 100), 3);
  const auto first = link.collect();
  bench.require(first.size() == 3, "three requests: " + link.tell(first));

  link.send(link.ack(link.p(2), kAck, 3));
  link.sent(1);
  const auto again = link.collect();
  bench.expect(again.size() == 2 && again[0].opcode() == op::read_request &&
                   again[0].psn() == link.p(1) && again[1].psn() == link.p(2),
               "READ p+1 and WRITE p+2 are sent again: " + link.tell(again));
  link.expect_no_completion("before the READ is answered");

  const Bytes data = bench.random_bytes(500);
  link.send(link.response(op::read_resp_only, link.p(1), data, 2));
  link.sent(2);
  bench.expect(holds(*memory, 1024, data), "the READ's data is in memory");
  link.expect_no_completion("before WRITE p+2 is acknowledged");
  link.send(link.ack(link.p(2), kAck, 3));
  link.sent(3);
  bench.saw(say("ACK p+2: WRITE p completes, ", link.tell(again),
                " sent again; p+1 completes by its response, then p+2 by its ACK"));
}

const Scenario kScenario{
    3, "requester: WRITE p, READ p+1, WRITE p+2; only an ACK p+2 comes",
    "WRITE p completes; the READ is sent again at p+1 (implied NAK), p+2 not completed before it", play};

}  // namespace
}  // namespace roci::conformance
