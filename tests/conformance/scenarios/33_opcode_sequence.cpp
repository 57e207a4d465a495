// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

struct Case {
  const char* name;
  std::vector<Frame> frames;  // the last one is out of sequence
};

void play(Bench& bench) {
  const auto memory = bench.device.register_memory(8192);
  const auto cases = [&](const Link& link) {
    const Bytes full(1024, 0x11);
    const auto send = [&](uint8_t operation, int64_t n) { return link.request(operation, n, full); };
    const auto write = [&](uint8_t operation, int64_t n) {
      return link.write(operation, n, full, at(*memory), 4096);
    };
    return std::vector<Case>{
        {"SEND_MIDDLE without FIRST", {send(op::send_middle, 0)}},
        {"SEND_LAST without FIRST", {send(op::send_last, 0)}},
        {"SEND_LAST_IMM without FIRST", {send(op::send_last_imm, 0)}},
        {"WRITE_MIDDLE without FIRST", {write(op::write_middle, 0)}},
        {"WRITE_LAST without FIRST", {write(op::write_last, 0)}},
        {"WRITE_LAST_IMM without FIRST", {write(op::write_last_imm, 0)}},
        {"SEND_FIRST within a SEND", {send(op::send_first, 0), send(op::send_first, 1)}},
        {"SEND_ONLY within a SEND", {send(op::send_first, 0), send(op::send_only, 1)}},
        {"WRITE_FIRST within a SEND", {send(op::send_first, 0), write(op::write_first, 1)}},
        {"WRITE_MIDDLE within a SEND", {send(op::send_first, 0), write(op::write_middle, 1)}},
        {"WRITE_FIRST within a WRITE", {write(op::write_first, 0), write(op::write_first, 1)}},
        {"WRITE_ONLY within a WRITE", {write(op::write_first, 0), write(op::write_only, 1)}},
        {"SEND_LAST within a WRITE", {write(op::write_first, 0), send(op::send_last, 1)}},
        {"READ within a WRITE", {write(op::write_first, 0), link.read(1, at(*memory), 64)}},
        {"READ within a SEND", {send(op::send_first, 0), link.read(1, at(*memory), 64)}},
        {"LAST after LAST",
         {send(op::send_first, 0), send(op::send_last, 1), send(op::send_last, 2)}},
    };
  };
  LinkSettings settings;
  size_t good = 0, count = 1;
  for (size_t n = 0; n < count; ++n, ++settings.peer_qpn) {
    Link link(bench, settings);
    const auto all = cases(link);
    count = all.size();
    const Case& c = all[n];
    const size_t before = bench.failures().size();
    link.post_recv(memory->sge(4096, 4096), 1);
    for (size_t f = 0; f + 1 < c.frames.size(); ++f) link.send(c.frames[f]);
    for (const Packet& p : link.collect()) {
      bench.expect(p.is_ack(kAck), say(c.name, ": what is before is good: ", link.tell(p)));
    }
    link.send(c.frames.back());
    link.expect_fatal(syndrome::nak_invalid_request, static_cast<int64_t>(c.frames.size()) - 1,
                      c.name);
    good += bench.failures().size() == before;
  }
  bench.saw(say(good, " of ", count, " wrong sequences: NAK 0x61 with the PSN of the wrong packet, ERR"));
}

const Scenario kScenario{
    33, "MIDDLE/LAST without FIRST; FIRST inside a message; READ inside a WRITE",
    "NAK 0x61, QP ERR", play};

}  // namespace
}  // namespace roci::conformance
