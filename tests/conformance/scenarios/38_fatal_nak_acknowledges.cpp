// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  const auto memory = bench.device.register_memory(4096);
  LinkSettings settings;
  const struct {
    uint8_t syndrome;
    ibv_wc_status status;
  } naks[] = {{syndrome::nak_invalid_request, IBV_WC_REM_INV_REQ_ERR},
              {syndrome::nak_remote_access, IBV_WC_REM_ACCESS_ERR},
              {syndrome::nak_remote_operational, IBV_WC_REM_OP_ERR}};
  for (const auto& nak : naks) {
    ++settings.peer_qpn;
    Link link(bench, settings);
    constexpr uint64_t kBad = 3;
    for (uint64_t n = 0; n < 6; ++n) link.post(IBV_WR_SEND, memory->sge(0, 64), n);
    for (uint64_t n = 0; n < 6; ++n) link.must_come("a SEND");
    link.send(link.ack(link.p(kBad), nak.syndrome, kBad));
    for (uint64_t n = 0; n < kBad; ++n) link.sent(n);
    link.sent(kBad, nak.status);
    for (uint64_t n = kBad + 1; n < 6; ++n) link.sent(n, IBV_WC_WR_FLUSH_ERR);
    link.expect_state(IBV_QPS_ERR, "after NAK " + hex(nak.syndrome));
    const auto more = link.collect();
    bench.expect(more.empty(), "nothing is sent behind the NAK: " + link.tell(more));
    bench.saw(say("NAK ", hex(nak.syndrome), " p+3: 3 succeed, then ", status_text(nak.status),
                  ", 2 flushed"));
  }
}

const Scenario kScenario{38, "NAK 0x61/62/63 for WQE k with earlier SENDs unacknowledged",
                         "earlier ones succeed (implicit ACK), k has the error", play};

}  // namespace
}  // namespace roci::conformance
