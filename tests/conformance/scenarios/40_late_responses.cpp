// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

enum class Then { error, reset, reconnected, reused };

void play(Bench& bench) {
  const auto memory = bench.device.register_memory(4096);
  LinkSettings settings;
  for (const auto& [then, name] :
       {std::pair{Then::error, "ERR"}, {Then::reset, "RESET"},
        {Then::reconnected, "RESET and connected anew"}, {Then::reused, "its number used again"}}) {
    ++settings.peer_qpn;
    auto link = std::make_unique<Link>(bench, settings);
    fill(*memory, 0xa5);
    link->post(IBV_WR_RDMA_READ, memory->sge(0, 3000), 1);
    link->must_come("a READ");
    const auto late = link->responses(link->p(), bench.random_bytes(3000), 1);
    link->send(late[0]);
    bench.peer.wait(20 * kMicrosecond);
    bench.expect(filled(*memory, 1024, 3072, 0xa5), "only the first response is there");
    const uint32_t number = link->qp().number();
    if (then == Then::error) {
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_ERR;
      link->qp().modify(attr, IBV_QP_STATE);
      link->sent(1, IBV_WC_WR_FLUSH_ERR);
    } else if (then == Then::reused) {
      link = nullptr;
      ++settings.peer_qpn;
      link = std::make_unique<Link>(bench, settings);
    } else {
      link->reset();
      link->settings.device_psn += 0x1000;
      if (then == Then::reconnected) link->connect();
    }
    fill(*memory, 0xa5);  // the program's own again
    link->send(late[1]);
    link->send(late[2]);
    const auto answer = link->collect();
    bench.expect(answer.empty(), say(name, ": no answer: ", link->tell(answer)));
    bench.expect(filled(*memory, 0, 4096, 0xa5), say(name, ": nothing is written"));
    link->expect_no_completion(name);
    if (then == Then::reused) {
      bench.expect(link->qp().number() != number, "a dead namesake's number is another one");
    }
    if (then == Then::reconnected || then == Then::reused) link->expect_works(0, name);
    bench.saw(say(name, ": dropped"));
  }
}

const Scenario kScenario{
    40, "READ responses after the queue pair moved to ERR, RESET, or its QPN was re-used",
    "dropped, no DMA", play};

}  // namespace
}  // namespace roci::conformance
