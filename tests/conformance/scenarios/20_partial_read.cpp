// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  constexpr int64_t kPackets = 6;
  constexpr size_t kBytes = kPackets * 1024 - 24;
  LinkSettings settings;
  settings.timeout = 6;  // 262 us
  Link link(bench, settings);
  const auto memory = bench.device.register_memory(8192);
  int64_t p = 0;
  uint32_t messages = 0;
  for (int64_t lost = 0; lost < kPackets; ++lost) {
    const std::string what = say("READ without response ", lost);
    const Bytes data = bench.random_bytes(kBytes);
    fill(*memory, 0xa5);
    link.post(IBV_WR_RDMA_READ, memory->sge(3, kBytes), 1);
    const Packet request = link.must_come("a READ");
    bench.expect(request.frame.reth && request.frame.reth->dma_len == kBytes, what + ": DMALen");
    const uint64_t va = request.frame.reth ? request.frame.reth->va : 0;
    const auto answers = link.responses(link.p(p), data, ++messages);
    for (int64_t n = 0; n < kPackets; ++n) {
      if (n != lost) link.send(answers[static_cast<size_t>(n)]);
    }
    const Packet again = link.must_come(what + ": the rest", 10 * kMillisecond);
    const auto kept = static_cast<size_t>(lost) * 1024;
    bench.expect(again.opcode() == op::read_request && again.psn() == link.p(p + lost) &&
                     again.frame.reth && again.frame.reth->va == va + kept &&
                     again.frame.reth->dma_len == kBytes - kept,
                 say(what, ": a READ of the rest at p+", p + lost, ": ",
                     wirecodec::describe(again.frame)));
    bench.expect(holds(*memory, 3, part(data, 0, kept)), what + ": what is placed stays");
    bench.expect(link.collect(5 * kMicrosecond).empty(), what + " is asked for once");
    // the responses begin again, with FIRST or ONLY
    link.send(link.responses(link.p(p + lost), part(data, kept, kBytes - kept), messages));
    link.sent(1);
    bench.expect(holds(*memory, 3, data) && filled(*memory, 3 + kBytes, 100, 0xa5),
                 what + ": data");
    p += kPackets;
  }
  bench.saw(say("each of ", kPackets, " responses lost once: READ at first+k with VA and length of the "
                "rest, completed by FIRST… or ONLY, what was placed stays"));
}

const Scenario kScenario{
    20, "partial READ retry: response k of n dropped",
    "a READ at PSN first+k, VA and length advanced; responses may restart with FIRST/ONLY; placed data "
    "kept",
    play};

}  // namespace
}  // namespace roci::conformance
