// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  Link link(bench);
  const auto memory = bench.device.register_memory(4096);
  const auto write = [&](int64_t ahead) {
    link.send(link.write(op::write_only, ahead, Bytes(64, static_cast<uint8_t>(ahead)), at(*memory)));
  };
  const auto gap = [&](int64_t first, const char* which) {
    for (int64_t n = first + 1; n <= first + 40; ++n) write(n);
    const auto behind = link.collect();
    link.expect_ack(behind, syndrome::nak_sequence, link.e(first), which);
    for (int64_t n = first; n <= first + 40; ++n) write(n);
    const auto again = link.collect();
    bench.expect(!again.empty() && again.back().is_ack(kAck) &&
                     again.back().psn() == link.e(first + 40),
                 say(which, ", sent again: ", link.tell(again)));
    for (const Packet& p : again) bench.expect(p.is_ack(kAck), "no ACK: " + link.tell(p));
    bench.saw(say(which, ": ", link.tell(behind), ", then acknowledged up to ",
                  link.name(again.back().psn())));
  };
  gap(0, "E lost");
  gap(41, "E+41 lost");
  bench.expect(filled(*memory, 0, 64, 41 + 40), "the last WRITE is in memory");
}

const Scenario kScenario{
    15, "gap: E lost, E+1 … E+40 come",
    "exactly one NAK 0x60 with PSN E; after E … are sent again all are acknowledged; a second gap gives "
    "a second NAK",
    play};

}  // namespace
}  // namespace roci::conformance
