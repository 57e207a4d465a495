// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

constexpr uint8_t kUntouched = 0xa5;
constexpr size_t kRoom = 2048;

// What a pad that reaches memory would look like there.
Frame with_loud_pad(Frame frame) {
  frame = wirecodec::finish(frame);
  frame.pad.assign(frame.pad.size(), 0xee);
  return wirecodec::with_icrc(frame);
}

void play(Bench& bench) {
  Link link(bench);
  const auto memory = bench.device.register_memory(kRoom);
  const auto exactly = [&](const Bytes& data, const std::string& what) {
    bench.expect(holds(*memory, 0, data) &&
                     filled(*memory, data.size(), kRoom - data.size(), kUntouched),
                 what + " is in memory, and nothing behind it");
  };
  int64_t sent = 0;          // requests of the peer
  int64_t asked = 0;         // requests of the device
  size_t frames = 0;
  for (const size_t bytes : {1, 2, 3, 4, 5, 1021, 1022, 1023, 1024}) {
    const std::string of = say(" of ", bytes);
    const Bytes data = bench.random_bytes(bytes);

    fill(*memory, kUntouched);
    link.post_recv(memory->sge(0, kRoom), 1);
    bench.peer.send_as_is(with_loud_pad(link.request(op::send_only, sent++, data)));
    bench.expect_equal(link.received(1).byte_len, bytes, "byte_len of a SEND" + of);
    exactly(data, "a SEND" + of);

    fill(*memory, kUntouched);
    bench.peer.send_as_is(with_loud_pad(link.write(op::write_only, sent++, data, at(*memory))));
    const auto acks = link.collect();
    bench.expect(!acks.empty() && acks.back().is_ack(kAck) && acks.back().psn() == link.e(sent - 1),
                 "a WRITE" + of + " is acknowledged: " + link.tell(acks));
    exactly(data, "a WRITE" + of);

    link.send(link.read(sent++, at(*memory), static_cast<uint32_t>(bytes)));
    const auto answers = link.collect();
    bench.expect(answers.size() == 1 && answers[0].opcode() == op::read_resp_only &&
                     answers[0].frame.payload == data,
                 "a READ" + of + " is answered: " + link.tell(answers));

    // the device's own requests: pad and ICRC of each are judged by the peer
    std::copy(data.begin(), data.end(), memory->data());
    link.post(IBV_WR_SEND, memory->sge(0, bytes), 2);
    link.post(IBV_WR_RDMA_WRITE, memory->sge(0, bytes), 3);
    for (const uint64_t wr_id : {2, 3}) {
      const Packet request = link.must_come("a request" + of);
      bench.expect(request.frame.payload == data, "its own request" + of + " has the data");
      link.send(link.ack(request.psn(), kAck, static_cast<uint32_t>(++asked)));
      link.sent(wr_id);
    }
    fill(*memory, kUntouched);
    link.post(IBV_WR_RDMA_READ, memory->sge(0, bytes), 4);
    const Packet read = link.must_come("a READ" + of);
    bench.peer.send_as_is(
        with_loud_pad(link.response(op::read_resp_only, read.psn(), data,
                                    static_cast<uint32_t>(++asked))));
    link.sent(4);
    exactly(data, "the response of its own READ" + of);
    frames += 6;
  }
  bench.saw(say(frames, " packets with pads of 0 to 3 bytes, both ways: ICRC good, exact lengths, no "
                        "pad in memory"));
}

const Scenario kScenario{
    1, "payload lengths 1–5 and 1021–1024 (all pads) on SEND, WRITE, READ response",
    "ICRC covers the pad; exact length delivered; pad never written to memory", play};

}  // namespace
}  // namespace roci::conformance
