// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  LinkSettings settings;
  settings.device_psn = settings.peer_psn = 0xfffffe;
  Link link(bench, settings);
  constexpr uint32_t kRead = 5 * 1024;
  const auto memory = bench.device.register_memory(2 * kRead);
  const Bytes content = randomize(bench, *memory);

  // of the peer: WRITE fffffe, READ ffffff … 3, WRITE 4, SEND 5
  link.post_recv(memory->sge(kRead, 64), 1);
  link.send(link.write(op::write_only, 0, Bytes(64, 1), at(*memory, kRead)));
  link.send(link.read(1, at(*memory), kRead));
  link.send(link.write(op::write_only, 6, Bytes(64, 2), at(*memory, kRead)));
  link.send(link.request(op::send_only, 7, Bytes(64, 3)));
  link.received(1);
  const auto answers = link.collect();
  Bytes read;
  for (const Packet& p : answers) {
    bench.expect(p.opcode() != op::acknowledge || p.is_ack(kAck), "no NAK: " + link.tell(p));
    read.insert(read.end(), p.frame.payload.begin(), p.frame.payload.end());
  }
  bench.expect(read == part(content, 0, kRead), "the READ's data");
  bench.expect(!answers.empty() && answers.back().is_ack(kAck) && answers.back().psn() == 5,
               "ACK of PSN 5 at the end: " + link.tell(answers));
  bench.saw("as responder: " + link.tell(answers));

  // of the device: the same
  link.post(IBV_WR_RDMA_WRITE, memory->sge(0, 64), 1);
  link.post(IBV_WR_RDMA_READ, memory->sge(0, kRead), 2);
  link.post(IBV_WR_RDMA_WRITE, memory->sge(0, 64), 3);
  link.post(IBV_WR_SEND, memory->sge(0, 64), 4);
  const auto requests = link.collect();
  bench.require(requests.size() == 4, "four requests: " + link.tell(requests));
  for (const auto& [n, psn] : {std::pair{0u, 0xfffffeu}, {1u, 0xffffffu}, {2u, 4u}, {3u, 5u}}) {
    bench.expect_equal(requests[n].psn(), psn, say("PSN of request ", n));
  }
  const Bytes data = bench.random_bytes(kRead);
  link.send(link.ack(0xfffffe, kAck, 1));
  link.send(link.responses(0xffffff, data, 2));
  link.send(link.ack(5, kAck, 4));
  for (uint64_t n = 1; n <= 4; ++n) link.sent(n);
  bench.expect(holds(*memory, 0, data), "its READ's data");
  bench.saw("as requester: PSNs 0xfffffe, 0xffffff (READ of 5), 4, 5, all complete");
}

const Scenario kScenario{26, "PSN wrap: start 0xfffffe, 8 packets with a READ of 5",
                         "continues over 0", play};

}  // namespace
}  // namespace roci::conformance
