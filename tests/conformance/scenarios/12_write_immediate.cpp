// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

#include <arpa/inet.h>

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  Link link(bench);
  const auto memory = bench.device.register_memory(4096);
  const std::array<uint8_t, 4> imm{0xde, 0xad, 0xbe, 0xef};
  int64_t next = 0;
  uint64_t wr_id = 0;
  const uint8_t rnr = syndrome::rnr_nak(link.settings.min_rnr_timer);
  for (const bool only : {true, false}) {
    const std::string what = only ? "WRITE_ONLY_IMM" : "WRITE_LAST_IMM";
    const Bytes data = bench.random_bytes(only ? 100 : 2100);
    auto frames = link.write_message(next, data, at(*memory));
    frames.back().bth.opcode = only ? op::write_only_imm : op::write_last_imm;
    frames.back().immdt = wirecodec::ImmDt{imm};
    const auto completes = [&](const std::string& how) {
      const ibv_wc wc = link.received(wr_id);
      bench.expect(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && (wc.wc_flags & IBV_WC_WITH_IMM) != 0 &&
                       wc.imm_data == htonl(0xdeadbeef) && wc.byte_len == data.size(),
                   say(what, how, ": opcode ", int{wc.opcode}, ", flags ", wc.wc_flags, ", immediate ",
                       hex(ntohl(wc.imm_data)), ", length ", wc.byte_len));
      bench.expect(holds(*memory, 0, data), what + how + ": data");
    };
    const auto renumber = [&] {
      next += static_cast<int64_t>(frames.size());
      for (Frame& f : frames) {
        f.bth.psn = psn_add(f.bth.psn, static_cast<int64_t>(frames.size()));
      }
    };

    // two receives, of which it takes one
    link.post_recv(std::vector<ibv_sge>{}, ++wr_id);
    link.send(frames);
    completes(" with a receive");
    link.expect_no_completion("for one message more");
    link.expect_ack(link.collect(), kAck, frames.back().bth.psn, what);
    renumber();

    // none
    fill(*memory, 0);
    link.send(frames);
    const auto refused = link.collect();
    link.expect_ack(refused, rnr, frames.back().bth.psn, what + " without a receive");
    link.expect_no_completion("without a receive");
    link.post_recv(std::vector<ibv_sge>{}, ++wr_id);
    link.send(frames.back());
    completes(" sent again");
    link.expect_ack(link.collect(), kAck, frames.back().bth.psn, what + " sent again");
    renumber();
    // its own: the bytes on the wire are those of the work request
    std::copy(data.begin(), data.end(), memory->data());
    link.post(IBV_WR_RDMA_WRITE_WITH_IMM, memory->sge(0, data.size()), wr_id, IBV_SEND_SIGNALED,
              kPeerMemory, htonl(0xdeadbeef));
    const auto own = link.collect();
    bench.expect(!own.empty() && own.back().opcode() == frames.back().bth.opcode &&
                     own.back().frame.immdt == wirecodec::ImmDt{imm},
                 say("its own ", what, " has the immediate: ",
                     own.empty() ? "nothing" : wirecodec::describe(own.back().frame)));
    bench.require(!own.empty(), "its own " + what);
    link.send(link.ack(own.back().psn(), kAck, only ? 1 : 2));
    link.sent(wr_id);
    bench.saw(say(what, ": RECV_RDMA_WITH_IMM, byte_len ", data.size(), "; without a receive: ",
                  link.tell(refused)));
  }
}

const Scenario kScenario{
    12, "WRITE_ONLY_IMM / WRITE_LAST_IMM with and without a posted receive",
    "consumes one WQE, completion RECV_RDMA_WITH_IMM with immediate and length; else RNR at that packet",
    play};

}  // namespace
}  // namespace roci::conformance
