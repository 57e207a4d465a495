// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  Link link(bench);
  const auto memory = bench.device.register_memory(4096);
  const auto send_all = [&] {
    for (int64_t n = 0; n <= 5; ++n) {
      link.send(link.request(op::send_only, n, Bytes(100, static_cast<uint8_t>(n))));
    }
  };
  send_all();
  const auto refused = link.collect(2 * kMillisecond);
  link.expect_ack(refused, syndrome::rnr_nak(link.settings.min_rnr_timer), link.e(),
                  "SENDs E to E+5 without a receive");
  link.expect_no_completion("without a receive");
  for (uint64_t n = 0; n <= 5; ++n) link.post_recv(memory->sge(100 * n, 100), n);
  const auto silent = link.collect();
  bench.expect(silent.empty(), "silence until E comes: " + link.tell(silent));
  send_all();
  for (uint64_t n = 0; n <= 5; ++n) link.received(n);
  const auto end = link.collect();
  bench.expect(!end.empty() && end.back().is_ack(kAck) && end.back().psn() == link.e(5),
               "all are acknowledged: " + link.tell(end));
  for (uint64_t n = 0; n <= 5; ++n) {
    bench.expect(filled(*memory, 100 * n, 100, static_cast<uint8_t>(n)), "data");
  }
  bench.saw(say(link.tell(refused), ", nothing else; sent again: acknowledged up to ",
                end.empty() ? "nothing" : link.name(end.back().psn())));
}

const Scenario kScenario{16, "RNR NAK for E with E+1 … E+5 already in flight",
                         "no sequence NAK; silent until E", play};

}  // namespace
}  // namespace roci::conformance
