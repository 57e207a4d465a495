// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  LinkSettings settings;
  auto link = std::make_unique<Link>(bench, settings);
  const auto memory = bench.device.register_memory(4096);
  fill(*memory, 0xa5);
  int64_t e = 0;
  // The bytes of a WRITE_ONLY, with another opcode.
  const auto send = [&](uint8_t opcode) {
    Frame f = wirecodec::finish(link->write(op::write_only, e, Bytes(64, 0x11), at(*memory)));
    f.bth.opcode = opcode;
    bench.peer.send_as_is(wirecodec::with_icrc(f));
    return link->collect();
  };
  unsigned dropped = 0, refused = 0;
  for (const int opcode : {0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f}) {
    const auto answer = send(static_cast<uint8_t>(opcode));
    if (answer.empty()) {
      link->expect_works(e++, "after reserved opcode " + hex(static_cast<unsigned>(opcode)));
      ++dropped;
      continue;
    }
    link->expect_ack(answer, syndrome::nak_invalid_request, link->e(e),
                     "reserved opcode " + hex(static_cast<unsigned>(opcode)));
    ++refused;
    ++settings.peer_qpn;
    link = std::make_unique<Link>(bench, settings);
    e = 0;
  }
  unsigned foreign = 0;
  // UC, RD, UD, CNP, XRC, vendors
  for (const int opcode : {0x24, 0x2a, 0x35, 0x44, 0x4a, 0x64, 0x65, 0x6a, 0x80, 0x81, 0xa4, 0xaa,
                           0xc0, 0xff}) {
    const auto answer = send(static_cast<uint8_t>(opcode));
    bench.expect(answer.empty(), say("opcode ", hex(static_cast<unsigned>(opcode)),
                                     " is dropped silently: ", link->tell(answer)));
    link->expect_works(e++, "after opcode " + hex(static_cast<unsigned>(opcode)));
    ++foreign;
  }
  bench.expect(filled(*memory, 0, 4096, 0xa5), "nothing is written");
  bench.saw(say("of 9 reserved opcodes ", dropped, " dropped, ", refused, " NAK 0x61; ", foreign,
                " of other classes dropped; the queue pair goes on"));
}

const Scenario kScenario{
    32, "reserved opcodes 0x15, 0x18–0x1f; class that does not fit the queue pair's type",
    "class mismatch: drop; reserved RC opcode at ePSN: NAK 0x61 or drop", play};

}  // namespace
}  // namespace roci::conformance
