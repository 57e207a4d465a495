// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  LinkSettings settings;
  settings.timeout = 3;  // 33 us
  Link link(bench, settings);
  constexpr uint8_t kCode = 14;
  const auto memory = bench.device.register_memory(4096);
  randomize(bench, *memory);
  const auto timeouts = bench.device.counter("retry_timeout");
  for (uint64_t n = 0; n < 5; ++n) link.post(IBV_WR_SEND, memory->sge(100 * n, 100), n);
  for (unsigned n = 0; n < 5; ++n) link.must_come("a SEND");
  const Time nak = bench.peer.wire().now();
  link.send(link.ack(link.p(1), syndrome::rnr_nak(kCode), 1));
  link.sent(0);
  link.post(IBV_WR_SEND, memory->sge(500, 100), 5);  // has to wait, too

  const Packet first = link.must_come("the retry", 10 * kMillisecond);
  auto again = link.collect(10 * kMicrosecond);
  again.insert(again.begin(), first);
  const Time waited = first.time - nak - 2 * bench.peer.wire().wire_delay();
  bench.expect(waited >= wirecodec::rnr_timer_ns(kCode), "1.28 ms of silence: " + time_text(waited));
  bench.expect(waited < wirecodec::rnr_timer_ns(kCode + 1), "not too long: " + time_text(waited));
  bool all = again.size() == 5;
  for (size_t n = 0; all && n < 5; ++n) all = again[n].psn() == link.p(1 + static_cast<int64_t>(n));
  bench.expect(all, "p+1 to p+5 are sent: " + link.tell(again));
  const auto moved = bench.moved("retry_timeout", timeouts);
  if (moved) bench.expect_equal(*moved, 0, "retries by timeout");
  link.send(link.ack(link.p(5), kAck, 6));
  for (uint64_t n = 1; n <= 5; ++n) link.sent(n);
  bench.saw(say("nothing for ", time_text(waited), ", then ", link.tell(again)));
}

const Scenario kScenario{
    4, "RNR NAK with timer code 14 while the ACK timeout is shorter",
    "nothing sent again before 1.28 ms; no timeout retry; then from the RNR PSN on all following packets",
    play};

}  // namespace
}  // namespace roci::conformance
