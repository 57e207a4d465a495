// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  Link link(bench, {}, IBV_QPS_INIT);
  const auto memory = bench.device.register_memory(4096);
  fill(*memory, 0xa5);
  bench.device.events();
  const auto before = bench.device.counter("rx_drop_state");
  link.send(link.write(op::write_only, 0, Bytes(64, 0x11), at(*memory)));
  const auto answer = link.collect();
  bench.expect(answer.empty() && filled(*memory, 0, 4096, 0xa5),
               "a packet in INIT is dropped: " + link.tell(answer));
  bench.expect(bench.device.events().empty(), "no event in INIT");
  if (const auto moved = bench.moved("rx_drop_state", before)) {
    bench.expect_equal(*moved, 1u, "rx_drop_state");
  }

  link.step_to(IBV_QPS_RTR);
  bench.expect(bench.device.events().empty(), "no event before the first packet");
  link.expect_works(0, "in RTR");
  const std::vector first{Event{IBV_EVENT_COMM_EST, link.qp().number()}};
  bench.expect(bench.device.events() == first, "COMM_EST with the first packet in RTR");
  link.expect_works(1, "in RTR, the second");
  link.step_to(IBV_QPS_RTS);
  link.expect_works(2, "in RTS");
  bench.peer.wait(100 * kMicrosecond);
  bench.expect(bench.device.events().empty(), "COMM_EST comes once");
  bench.saw("INIT: dropped, no answer, no event; RTR: first packet answered, COMM_EST once");
}

const Scenario kScenario{43, "a packet to a queue pair in INIT; the first packet in RTR",
                         "drop; COMM_EST once", play};

}  // namespace
}  // namespace roci::conformance
