// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  Link link(bench);
  const auto memory = bench.device.register_memory(4096);
  const Bytes content = randomize(bench, *memory);
  unsigned sent = 0;
  bool same_icrc = true;
  // The ICRC is that of the plain frame: what changes behind it is masked.
  const auto strange = [&](const Frame& plain, uint8_t resv8a) {
    Frame f = wirecodec::finish(plain);
    f.bth.resv8a = resv8a;
    f.grh.flow_label = static_cast<uint32_t>(bench.random(1, 0xfffff));
    f.grh.traffic_class = static_cast<uint8_t>(bench.random(1, 255));
    f.grh.hop_limit = static_cast<uint8_t>(bench.random());
    same_icrc &= wirecodec::with_icrc(f).icrc == f.icrc;
    bench.peer.send_as_is(f);
    ++sent;
  };
  int64_t e = 0, p = 0;
  for (const uint8_t resv8a : {0x10, 0xff, 0x80, 0x40}) {
    const std::string of = " with resv8a " + hex(resv8a);
    link.post_recv(memory->sge(0, 1024), 1);
    strange(link.request(op::send_only, e++, bench.random_bytes(64)), resv8a);
    link.received(1);
    strange(link.write(op::write_only, e++, bench.random_bytes(64), at(*memory)), resv8a);
    strange(link.read(e++, at(*memory, 2048), 500), resv8a);
    const auto answers = link.collect();
    bench.expect(!answers.empty() && answers.back().opcode() == op::read_resp_only &&
                     answers.back().frame.payload == part(content, 2048, 500),
                 "SEND, WRITE, READ" + of + ": " + link.tell(answers));
    for (const Packet& a : answers) {
      bench.expect(!a.is_ack(syndrome::nak_sequence), "no NAK" + of);
    }
    link.post(IBV_WR_SEND, memory->sge(0, 10), 2);
    link.post(IBV_WR_RDMA_READ, memory->sge(0, 10), 3);
    link.must_come("a SEND");
    link.must_come("a READ");
    strange(link.ack(link.p(p), kAck, static_cast<uint32_t>(p + 1)), resv8a);
    link.sent(2);
    strange(link.response(op::read_resp_only, link.p(p + 1), Bytes(10, 7),
                          static_cast<uint32_t>(p + 2)),
            resv8a);
    link.sent(3);
    p += 2;
  }
  bench.expect(same_icrc, "these fields are outside of the ICRC");
  bench.saw(say(sent, " SENDs, WRITEs, READs, ACKs and READ responses with resv8a 0x10, 0xff, FECN, BECN "
                      "and random FlowLabel, TClass, HopLmt accepted with the ICRC of the plain frame"));
}

const Scenario kScenario{13, "frames with resv8a 0x10/0xff, FlowLabel, TClass, HopLmt random",
                         "accepted, ICRC the same", play};

}  // namespace
}  // namespace roci::conformance
