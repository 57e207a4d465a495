// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  LinkSettings settings;
  settings.timeout = 18;  // 1 s: nothing is sent again meanwhile
  Link link(bench, settings);
  const auto memory = bench.device.register_memory(4096);
  for (uint64_t n = 0; n < 8; ++n) link.post(IBV_WR_SEND, memory->sge(0, 64), n);
  for (uint64_t n = 0; n < 8; ++n) link.must_come("a SEND");
  const auto ignored = [&](const Frame& frame, const std::string& what) {
    link.send(frame);
    const auto sent = link.collect();
    bench.expect(sent.empty(), what + " is ignored: " + link.tell(sent));
    link.expect_no_completion("by " + what);
  };

  ignored(link.ack(link.p(8), kAck, 9), "an ACK of a PSN never sent");
  ignored(link.ack(link.p(-1), kAck, 0), "an ACK of a PSN before the first");
  ignored(link.ack(link.p(0x400000), kAck, 9), "an ACK far ahead");
  ignored(link.ack(link.p(8), syndrome::nak_sequence, 9), "a NAK of a PSN never sent");
  Frame foreign = link.ack(link.p(3), kAck, 4);
  foreign.grh.sgid[15] ^= 0x10;
  ignored(foreign, "an ACK from a wrong SGID");
  ignored(link.ack(link.p(3), 0x40, 4), "a reserved syndrome");
  ignored(link.ack(link.p(3), 0x64, 4), "NAK code 4");

  link.send(link.ack(link.p(4), kAck, 5));
  for (uint64_t n = 0; n <= 4; ++n) link.sent(n);
  ignored(link.ack(link.p(4), kAck, 5), "an ACK a second time");
  ignored(link.ack(link.p(2), kAck, 3), "an ACK that was overtaken");
  ignored(link.ack(link.p(1), syndrome::nak_sequence, 1), "a NAK that was overtaken");
  link.send(link.ack(link.p(7), kAck, 8));
  for (uint64_t n = 5; n < 8; ++n) link.sent(n);
  link.expect_state(IBV_QPS_RTS, "in the end");
  bench.saw("10 ACKs and NAKs ignored: no completion, nothing sent; good ones complete p to p+7");
}

const Scenario kScenario{
    39, "ACKs reordered, duplicated, for a PSN never sent, from a wrong SGID", "ignored", play};

}  // namespace
}  // namespace roci::conformance
