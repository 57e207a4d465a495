// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

constexpr uint8_t kCode = 1;  // 10 us

// RNR NAKs for a SEND as often as it comes, `naks` at most. @return how often it came
unsigned refuse(Link& link, unsigned naks) {
  unsigned came = 0;
  while (const auto packet = link.next(kMillisecond)) {
    ++came;
    if (came > naks) break;
    link.send(link.ack(packet->psn(), syndrome::rnr_nak(kCode), 0));
  }
  return came;
}

void play(Bench& bench) {
  const auto memory = bench.device.register_memory(4096);
  {
    LinkSettings settings;
    settings.rnr_retry = 7;
    Link link(bench, settings);
    link.post(IBV_WR_SEND, memory->sge(0, 100), 1);
    const unsigned came = refuse(link, 20);
    bench.expect_equal(came, 21u, "rnr_retry 7: sends with 20 RNR NAKs");
    link.send(link.ack(link.p(), kAck, 1));
    link.sent(1);
    bench.saw(say("rnr_retry 7: ", came, " sends, success"));
  }
  for (const uint8_t retries : {2, 0}) {
    LinkSettings settings;
    settings.rnr_retry = retries;
    settings.peer_qpn = 0x1000u + retries;
    Link link(bench, settings);
    link.post(IBV_WR_SEND, memory->sge(0, 100), 1);
    const unsigned came = refuse(link, 20);
    bench.expect_equal(came, retries + 1u, say("rnr_retry ", int{retries}, ": sends"));
    link.sent(1, IBV_WC_RNR_RETRY_EXC_ERR);
    link.expect_state(IBV_QPS_ERR, "after the last RNR NAK");
    bench.saw(say("rnr_retry ", int{retries}, ": ", count_text(came, "send"),
                  ", RNR_RETRY_EXC_ERR on NAK ", came));
  }
}

const Scenario kScenario{5, "rnr_retry 7 and 20 RNR NAKs; 2 and 3 NAKs; 0 and 1 NAK",
                         "infinite; RNR_RETRY_EXC_ERR on the third; on the first", play};

}  // namespace
}  // namespace roci::conformance
