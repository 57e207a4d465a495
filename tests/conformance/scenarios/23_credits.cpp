// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

constexpr uint8_t kNoCredits = 0x00;

void play(Bench& bench) {
  Link link(bench);
  const auto memory = bench.device.register_memory(4096);
  // WRITEs and READs only; every answer says: no receive
  int64_t p = 0;
  for (uint64_t n = 0; n < 20; ++n) {
    const bool read = n % 4 == 3;
    link.post(read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, memory->sge(0, 64), n);
    const Packet request = link.must_come("a request in spite of no credits");
    bench.expect(request.psn() == link.p(p), "in order");
    if (read) {
      Frame f = link.response(op::read_resp_only, request.psn(), Bytes(64),
                              static_cast<uint32_t>(n + 1));
      f.aeth->syndrome = kNoCredits;
      link.send(f);
    } else {
      link.send(link.ack(request.psn(), kNoCredits, static_cast<uint32_t>(n + 1)));
    }
    link.sent(n);
    ++p;
  }
  // now SENDs: at least the one beyond LSN has to probe, and to ask for an answer
  for (uint64_t n = 20; n < 24; ++n) link.post(IBV_WR_SEND, memory->sge(0, 64), n);
  const auto probes = link.collect();
  bench.require(!probes.empty(), "a SEND is sent beyond the credits");
  bench.expect(probes[0].opcode() == op::send_only && probes[0].frame.bth.ack_req,
               "it asks for an answer: " + link.tell(probes[0]));
  size_t seen = probes.size();
  for (uint64_t n = 20; n < 24; ++n, ++p) {
    link.send(link.ack(link.p(p), kNoCredits, static_cast<uint32_t>(n + 1)));
    link.sent(n);
    seen += link.collect().size();
  }
  bench.expect_equal(seen, 4u, "SENDs that came");

  // and what it says itself: no flow control by credits
  link.send(link.write(op::write_only, 0, Bytes(8), at(*memory)));
  const auto own = link.collect();
  link.expect_ack(own, kAck, link.e(), "its own ACK has code 31");
  bench.saw(say("20 WRITEs and READs complete with credit code 0; then ", probes.size(),
                " SENDs at once, AckReq set; its own ACK has code 31"));
}

const Scenario kScenario{
    23, "the peer ACKs with credit code 0 while only WRITEs and READs are posted; then SENDs",
    "WRITEs unaffected; at least one SEND beyond LSN probes", play};

}  // namespace
}  // namespace roci::conformance
