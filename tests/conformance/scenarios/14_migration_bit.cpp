// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

#include <set>

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  Link link(bench);
  const auto memory = bench.device.register_memory(8192);
  const auto source = bench.device.register_memory(4096);
  const Bytes content = randomize(bench, *source);
  std::set<uint8_t> opcodes;
  unsigned frames = 0;
  int64_t e = 0, p = 0;
  uint32_t messages = 0;
  for (const bool mig_req : {false, true}) {
    const std::string with = say(" with MigReq ", mig_req);
    const auto send = [&](Frame f) {
      f.bth.mig_req = mig_req;
      opcodes.insert(f.bth.opcode);
      ++frames;
      link.send(f);
    };
    const auto send_all = [&](std::vector<Frame> message, uint8_t last_opcode) {
      if (last_opcode != message.back().bth.opcode) {
        message.back().bth.opcode = last_opcode;
        message.back().immdt = wirecodec::ImmDt{{1, 2, 3, 4}};
      }
      for (const Frame& f : message) send(f);
      e += static_cast<int64_t>(message.size());
      const auto answers = link.collect();
      bench.expect(!answers.empty() && answers.back().is_ack(kAck) &&
                       answers.back().psn() == link.e(e - 1),
                   say(wirecodec::opcode_info(last_opcode)->name, with, ": ", link.tell(answers)));
    };
    const Bytes small = bench.random_bytes(100), large = bench.random_bytes(2500);
    for (const uint8_t last : {op::send_only, op::send_only_imm, op::send_last, op::send_last_imm}) {
      const Bytes& data = last == op::send_only || last == op::send_only_imm ? small : large;
      link.post_recv(memory->sge(0, 4096), 1);
      send_all(link.send_message(e, data), last);
      bench.expect(link.received(1).byte_len == data.size() && holds(*memory, 0, data),
                   "the SEND's data" + with);
    }
    for (const uint8_t last :
         {op::write_only, op::write_only_imm, op::write_last, op::write_last_imm}) {
      const Bytes& data = last == op::write_only || last == op::write_only_imm ? small : large;
      const bool imm = last == op::write_only_imm || last == op::write_last_imm;
      if (imm) link.post_recv(std::vector<ibv_sge>{}, 2);
      send_all(link.write_message(e, data, at(*memory, 4096)), last);
      if (imm) link.received(2);
      bench.expect(holds(*memory, 4096, data), "the WRITE's data" + with);
    }
    send(link.read(e, at(*source), 500));
    const auto answers = link.collect();
    bench.expect(answers.size() == 1 && answers[0].frame.payload == part(content, 0, 500),
                 "READ" + with + ": " + link.tell(answers));
    ++e;
    // what answers the device: its own frames have MigReq 1, or the peer complains
    link.post(IBV_WR_SEND, memory->sge(0, 10), 3);
    link.must_come("a SEND");
    send(link.ack(link.p(p++), kAck, ++messages));
    link.sent(3);
    for (const size_t bytes : {100, 2500}) {
      const Bytes data = bench.random_bytes(bytes);
      link.post(IBV_WR_RDMA_READ, memory->sge(0, bytes), 4);
      link.must_come("a READ");
      const auto responses = link.responses(link.p(p), data, ++messages);
      for (const Frame& f : responses) send(f);
      link.sent(4);
      bench.expect(holds(*memory, 0, data), "the READ response's data" + with);
      p += static_cast<int64_t>(responses.size());
    }
  }
  bench.saw(say(frames, " frames of ", opcodes.size(),
                " opcodes accepted with MigReq 0 and with 1; all frames of the device have 1"));
}

const Scenario kScenario{14, "MigReq 0 and 1 on every packet type",
                         "both accepted; own packets have M=1", play};

}  // namespace
}  // namespace roci::conformance
