// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  constexpr uint64_t kPosted = 10;
  constexpr uint64_t kBad = 4;
  Link link(bench);
  const auto memory = bench.device.register_memory(4096);
  for (uint64_t n = 100; n < 103; ++n) link.post_recv(memory->sge(0, 100), n);
  for (uint64_t n = 0; n < kPosted; ++n) {
    // every third one is signaled
    link.post(IBV_WR_RDMA_WRITE, memory->sge(0, 64), n, n % 3 == 0 ? IBV_SEND_SIGNALED : 0);
  }
  const auto sent = link.collect();  // all, or as many as it keeps in flight
  bench.require(sent.size() > kBad, "WRITE p+4 is sent: " + link.tell(sent));
  link.send(link.ack(link.p(kBad), syndrome::nak_remote_access, kBad));

  link.sent(0);
  link.sent(3);
  link.sent(kBad, IBV_WC_REM_ACCESS_ERR);
  for (uint64_t n = kBad + 1; n < kPosted; ++n) link.sent(n, IBV_WC_WR_FLUSH_ERR);
  for (uint64_t n = 100; n < 103; ++n) link.received(n, IBV_WC_WR_FLUSH_ERR);
  link.expect_state(IBV_QPS_ERR, "after the NAK");
  for (uint64_t n = 20; n < 23; ++n) {
    bench.expect_equal(link.post(IBV_WR_SEND, memory->sge(0, 64), n, 0), 0, "post in ERR");
  }
  bench.expect_equal(link.post_recv(memory->sge(0, 64), 103), 0, "receive posted in ERR");
  for (uint64_t n = 20; n < 23; ++n) link.sent(n, IBV_WC_WR_FLUSH_ERR);
  link.received(103, IBV_WC_WR_FLUSH_ERR);
  bench.peer.wait(100 * kMicrosecond);
  link.expect_no_completion("behind the flush");
  const auto more = link.collect();
  bench.expect(more.empty(), "nothing is sent in ERR: " + link.tell(more));
  bench.saw(say("0 and 3 succeed, ", kBad, " REM_ACCESS_ERR, ", kBad + 1, " to ", kPosted - 1,
                " and 3 later ones WR_FLUSH_ERR in order, unsignaled too; 4 receives flushed"));
}

const Scenario kScenario{
    10, "fatal NAK to WQE k of n posted, unsignaled ones too; 3 more posted",
    "k: its error; the rest, later posts too: WR_FLUSH_ERR in order; receives flushed", play};

}  // namespace
}  // namespace roci::conformance
