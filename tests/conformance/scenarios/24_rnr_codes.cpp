// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

// The time of the next longer code; the longest one gets the last step once more.
Time next_longer(uint8_t code) {
  if (code == 0) return 2 * wirecodec::rnr_timer_ns(0) - wirecodec::rnr_timer_ns(31);
  return wirecodec::rnr_timer_ns(code == 31 ? 0 : static_cast<uint8_t>(code + 1));
}

void play(Bench& bench) {
  Link link(bench);
  const auto memory = bench.device.register_memory(4096);
  unsigned good = 0;
  double most = 0;  // of what was too long, in steps
  for (unsigned n = 0; n < 32; ++n) {
    const auto code = static_cast<uint8_t>(n);
    link.post(IBV_WR_SEND, memory->sge(0, 16), n);
    const Packet first = link.must_come("a SEND");
    const Time nak = bench.peer.wire().now();
    link.send(link.ack(first.psn(), syndrome::rnr_nak(code), n));
    const Packet again = link.must_come("the retry", 2 * kSecond);
    const Time time = wirecodec::rnr_timer_ns(code);
    const Time waited = again.time - nak - 2 * bench.peer.wire().wire_delay();
    const Time limit = next_longer(code);
    good += bench.expect(waited >= time && waited < limit,
                         say("code ", n, ": ", time_text(waited), ", ", time_text(time), " to ",
                             time_text(limit)));
    most = std::max(most, static_cast<double>(waited - time) / static_cast<double>(limit - time));
    link.send(link.ack(first.psn(), kAck, n + 1));
    link.sent(n);
  }
  bench.saw(say(good, " of 32 codes within [table, next code's time); longest overrun ",
                static_cast<int>(100 * most + 0.5), " % of the step"));
}

const Scenario kScenario{24, "all 32 RNR codes", "wait >= table, < table + 1 code step", play};

}  // namespace
}  // namespace roci::conformance
