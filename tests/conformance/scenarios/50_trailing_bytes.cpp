// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  Link link(bench);
  const auto memory = bench.device.register_memory(8192);
  const Bytes content = randomize(bench, *memory);
  int64_t e = 0, p = 0;
  unsigned frames = 0;
  for (const size_t trailing : {1, 4, 7, 64, 500}) {
    const std::string of = say(" with ", trailing, " bytes behind it");
    const auto send = [&](const Frame& frame) {
      Frame f = wirecodec::finish(frame);
      f.trailing = bench.random_bytes(trailing);
      bench.peer.send_as_is(f);
      ++frames;
    };
    const Bytes data = bench.random_bytes(101);
    fill(*memory, 0xa5);
    link.post_recv(memory->sge(4096, 4096), 1);
    send(link.request(op::send_only, e++, data));
    bench.expect_equal(link.received(1).byte_len, 101u, "byte_len of a SEND" + of);
    bench.expect(holds(*memory, 4096, data) && filled(*memory, 4096 + 101, 1024, 0xa5),
                 "data of a SEND" + of);
    send(link.write(op::write_only, e++, data, at(*memory)));
    send(link.read(e++, at(*memory), 101));
    const auto answers = link.collect();
    bench.expect(!answers.empty() && answers.back().opcode() == op::read_resp_only &&
                     answers.back().frame.payload == data && filled(*memory, 101, 1024, 0xa5),
                 "WRITE and READ" + of + ": " + link.tell(answers));
    link.post(IBV_WR_RDMA_WRITE, memory->sge(0, 10), 2);
    link.must_come("a WRITE");
    send(link.ack(link.p(p), kAck, static_cast<uint32_t>(p + 1)));
    link.sent(2);
    ++p;
  }
  bench.saw(say(frames, " SENDs, WRITEs, READs and ACKs with 1 to 500 bytes behind PayLen: accepted, "
                        "exact lengths"));
}

const Scenario kScenario{50, "trailing bytes behind PayLen", "accepted: the end is where PayLen says",
                         play};

}  // namespace
}  // namespace roci::conformance
