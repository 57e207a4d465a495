// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  LinkSettings settings;
  settings.timeout = 3;
  Link link(bench, settings);
  const auto memory = bench.device.register_memory(4096);
  fill(*memory, 0xa5);
  int64_t e = 0, p = 0;
  for (const bool icrc : {true, false}) {
    const char* const which = icrc ? "bad ICRC, good FCS" : "good ICRC, bad FCS";
    const char* const counter = icrc ? "rx_drop_icrc" : "rx_drop_fcs";
    const auto spoil = [&](const Frame& frame) {
      Frame f = wirecodec::finish(frame);
      if (icrc) f.icrc ^= 0x00010000;
      bench.peer.send_as_is(f, !icrc);
    };
    // a request: silence; sent again it is carried out
    const auto before = bench.device.counter(counter);
    spoil(link.write(op::write_only, e, Bytes(64, 0x11), at(*memory)));
    const auto answer = link.collect();
    bench.expect(answer.empty(), say(which, " is dropped silently: ", link.tell(answer)));
    bench.expect(filled(*memory, 0, 4096, 0xa5), say(which, ": nothing is written"));
    link.expect_works(e++, say("sent again after ", which));
    // an ACK: the device recovers by its timer
    link.post(IBV_WR_SEND, memory->sge(0, 16), 1);
    link.must_come("a SEND");
    spoil(link.ack(link.p(p), kAck, static_cast<uint32_t>(p + 1)));
    const Packet again = link.must_come("the retry", kMillisecond);
    bench.expect(again.psn() == link.p(p), say(which, ": the SEND comes again"));
    link.expect_no_completion(say("by an ACK with ", which));
    link.send(link.ack(link.p(p), kAck, static_cast<uint32_t>(p + 1)));
    link.sent(1);
    ++p;
    if (const auto moved = bench.moved(counter, before)) bench.expect_equal(*moved, 2u, counter);
    bench.saw(say(which, ": WRITE and ACK dropped silently (", counter, "), retry succeeds"));
  }
}

const Scenario kScenario{31, "bad ICRC with good FCS; good ICRC with bad FCS",
                         "silent drop; recovered by retry", play};

}  // namespace
}  // namespace roci::conformance
