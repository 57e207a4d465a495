// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Further cases of requester_packetizer_test.cpp: queue pairs of UC and UD.
#include "requester/packetizer_bench.hpp"

using namespace roci::test;
using namespace roci::test::send;

// wire.md 2.16: nobody acknowledges, so nothing asks, nothing is owed, and nothing is sent again.
TEST_CASE("UC: on from where a message stopped; behind SQE from the PSN that never left") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Bench bench(random);
    Qp qp = bench.open(11, 1);
    bench.stalls();
    const std::uint32_t mtu = qp.ctx.mtu();
    qp.index = static_cast<std::uint16_t>(qp.index & ~7u);
    qp.ack.oldest_index = qp.index;
    bench.ack(qp);
    bench.send(qp, write_of(3 * mtu, random, kSend));      // unsignaled ones ask no more than others
    bench.rest();
    // byte cap, inside a message
    bench.window(qp.ctx.mtu_code + 7 + 2);
    qp.ack.acked_psn = qp.psn;
    bench.ack(qp);
    const Wqe w = write_of(6 * mtu, random);
    const auto index = bench.push(qp, w);
    bench.expect(qp, w, index, 0, 4);
    bench.expect_rewind(qp, kStall, index, qp.psn + 4);
    bench.dut.run_until([&] { return bench.rewind.done(); }, "rewind");
    qp.index = index;
    bench.next_epoch(qp, qp.psn + 4);
    bench.rest();
    qp.ack.acked_psn = (qp.psn + 4) & kPsnMask;
    bench.ack(qp);
    REQUIRE(bench.push(qp, w) == index);
    bench.expect(qp, w, index, 4);
    bench.rest();
    // SQD between two messages: a stall, and no report of an AckReq that is owed
    qp.ack.acked_psn = qp.psn;
    bench.ack(qp);
    bench.state(qp, kSqd);
    const Wqe held = write_of(mtu, random);
    const auto at = bench.push(qp, held);
    bench.expect_rewind(qp, kStall, at, qp.psn);
    bench.dut.run_until([&] { return bench.rewind.done(); }, "rewind");
    qp.index = at;
    bench.next_epoch(qp, qp.psn);
    bench.state(qp, kRts);
    REQUIRE(bench.push(qp, held) == at);
    bench.expect(qp, held, at);
    bench.rest();
    REQUIRE(bench.resent == 0);
    // SQE: of the last two packets the second never left
    qp.psn = qp.max_psn = (qp.psn - 1) & kPsnMask;
    bench.state(qp, kSqe);
    bench.next_epoch(qp, qp.psn);
    bench.dut.tick(4);
    bench.expect_inflight(qp, held, bench.push(qp, held), kKindFlush);
    bench.rest();
    bench.state(qp, kRts);
    qp.ack.acked_psn = qp.psn;
    qp.ack.oldest_index = qp.index;
    bench.ack(qp);
    bench.send(qp, write_of(2 * mtu, random));
    bench.rest();
    REQUIRE(bench.resent == 0);
  }
}

// wire.md 1.7: a datagram that is longer than the MTU sends nothing, and is complete in its turn.
TEST_CASE("datagrams: the address vector before the message, or none of both") {
  Random random;
  Bench bench(random);
  Qp qp = bench.open(4, 2);
  bench.stalls();
  for (unsigned n = 0; n < 200; ++n) {
    const std::uint32_t mtu = qp.ctx.mtu();
    const std::uint64_t sizes[] = {0, 1, mtu, mtu + 1, 2 * mtu, 100, 0x80000000u};
    Wqe w = random_wqe(random, sizes[random.below(7)], 2);
    w.sgid_index = static_cast<std::uint8_t>(random.below(kGids));
    pad(bench, qp, w.blocks);
    const auto psn = qp.psn;
    bench.send(qp, w);
    REQUIRE(qp.psn == ((psn + (w.length <= mtu)) & kPsnMask));
    if (n % 20 == 19) {
      bench.rest();
      qp.ack.acked_psn = qp.psn;
      qp.ack.oldest_index = qp.index;
      bench.ack(qp);
    }
  }
  bench.rest();
}
