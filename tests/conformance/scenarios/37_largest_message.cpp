// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

constexpr uint32_t kLargest = 0x80000000;

void play(Bench& bench) {
  const auto memory = bench.device.register_memory(size_t{kLargest} + 4096);
  std::fill(memory->data(), memory->data() + 65536, uint8_t{0x5c});
  {
    Link link(bench);
    link.send(link.read(0, at(*memory), kLargest));
    bool good = true;
    for (int64_t n = 0; n < 32; ++n) {
      const Packet p = link.must_come("a response");
      good &= p.opcode() == (n == 0 ? op::read_resp_first : op::read_resp_middle) &&
              p.psn() == link.e(n) && p.frame.payload == Bytes(1024, 0x5c);
    }
    bench.expect(good, "a READ of 2^31 is answered");
    link.reset();    // two million responses more say nothing
    link.collect();  // those that had left
    bench.saw("READ of 0x80000000: answered from its first response on");
  }
  LinkSettings settings;
  ++settings.peer_qpn;
  for (const bool write : {true, false}) {
    ++settings.peer_qpn;
    Link link(bench, settings);
    link.send(write ? link.write(op::write_first, 0, Bytes(1024, 0x11), at(*memory), kLargest + 1)
                    : link.read(0, at(*memory), kLargest + 1));
    const std::string answer = link.expect_fatal(syndrome::nak_invalid_request, 0,
                                                 say(write ? "WRITE" : "READ", " of 2^31 + 1"));
    bench.saw(say(write ? "WRITE" : "READ", " of 0x80000001: ", answer));
  }
  bench.expect(filled(*memory, 0, 1024, 0x5c), "nothing is written");
}

const Scenario kScenario{37, "DMALen 0x80000000 READ; 0x80000001 WRITE", "ok; NAK 0x61", play};

}  // namespace
}  // namespace roci::conformance
