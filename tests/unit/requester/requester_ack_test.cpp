// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_ack: completions, failures and reasons to go back, scenario by scenario (wire.md §4),
// then its rates. The random test of the whole recovery is requester_recovery_test.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "requester/ack_bench.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;

namespace {

using Bench = AckBench<DUT_CLASS>;
using Status = hwif::CqeStatus;
using Vendor = hwif::VendorStatus;

SendSide side(unsigned number, std::uint32_t psn = 0xfffffe) {
  SendSide s;
  s.number = number;
  s.base = (number % 4) * 8;
  s.start = psn;
  return s;
}

}  // namespace

TEST_CASE("an ACK completes everything below it, in order, signaled ones only") {
  Bench bench(1);
  SendSide s = side(5);
  bench.start(s);
  CHECK(bench.told[5].acked_psn == 0xfffffe);
  CHECK(bench.told[5].oldest_index == 0);
  for (int n = 0; n < 4; ++n) bench.send(s, s.post(pkg::INFLIGHT_SEND, 2, n != 1));
  bench.settle();
  CHECK(bench.completion.received().empty());
  bench.wake.received().clear();

  bench.tell(5, pkg::ACK_EVENT_ACK, s.wqes[0].first);         // half of the first
  bench.settle();
  CHECK(bench.completion.received().empty());
  CHECK(bench.told[5].acked_psn == psn_add(0xfffffe, 1));
  CHECK(bench.wake.received().size() == 1);

  bench.tell(5, pkg::ACK_EVENT_ACK, s.wqes[2].last);
  bench.settle();
  bench.take_completion(s, s.wqes[0], Status::SUCCESS);
  bench.take_completion(s, s.wqes[2], Status::SUCCESS);
  CHECK(bench.completion.received().empty());
  CHECK(bench.told[5].oldest_index == 3);
  CHECK(bench.told[5].acked_psn == psn_add(0xfffffe, 6));
  CHECK(bench.retry.received().empty());
}

TEST_CASE("ACKs duplicated, reordered or for PSNs never sent do nothing (scenario 39)") {
  Bench bench(2);
  SendSide s = side(1, 0x10);
  bench.start(s);
  for (int n = 0; n < 4; ++n) bench.send(s, s.post(pkg::INFLIGHT_SEND, 1, true));
  bench.settle();
  bench.tell(1, pkg::ACK_EVENT_ACK, 0x11);
  bench.settle();
  bench.take_completion(s, s.wqes[0], Status::SUCCESS);
  bench.take_completion(s, s.wqes[1], Status::SUCCESS);
  const auto tells = bench.tells;
  for (const auto kind : {pkg::ACK_EVENT_ACK, pkg::ACK_EVENT_NAK_SEQUENCE, pkg::ACK_EVENT_RNR,
                          pkg::ACK_EVENT_NAK_FATAL, pkg::ACK_EVENT_IMPLIED_NAK}) {
    for (const std::uint32_t psn : {0x0fu, 0x10u, 0x11u, 0x14u, 0x15u, 0x800011u, 0xfffff0u}) {
      bench.tell(1, kind, psn, 0x61, psn);
    }
  }
  // an implied NAK caused by a PSN that was never sent
  bench.tell(1, pkg::ACK_EVENT_IMPLIED_NAK, 0x12, 0, 0x14);
  bench.settle();
  CHECK(bench.tells == tells);
  CHECK(bench.completion.received().empty());
  CHECK(bench.retry.received().empty());
  CHECK(bench.error.received().empty());
  bench.tell(1, pkg::ACK_EVENT_ACK, 0x13);
  bench.settle();
  bench.take_completion(s, s.wqes[2], Status::SUCCESS);
  bench.take_completion(s, s.wqes[3], Status::SUCCESS);
}

TEST_CASE("NOPs and local operations need no acknowledgement, but their turn") {
  Bench bench(3);
  SendSide s = side(2, 0);
  s.base = 16;
  s.log2 = 4;
  bench.start(s);
  bench.send(s, s.post(pkg::INFLIGHT_SEND, 1, true));
  bench.send(s, s.post(pkg::INFLIGHT_LOCAL, 0, true));
  bench.send(s, s.post(pkg::INFLIGHT_NOP, 0, false, 6));      // padding of the line
  bench.send(s, s.post(pkg::INFLIGHT_SEND, 1, true));
  bench.send(s, s.post(pkg::INFLIGHT_NOP, 0, true));
  bench.settle();
  CHECK(bench.completion.received().empty());
  bench.tell(2, pkg::ACK_EVENT_ACK, 0);
  bench.settle();
  bench.take_completion(s, s.wqes[0], Status::SUCCESS);
  bench.take_completion(s, s.wqes[1], Status::SUCCESS);
  CHECK(bench.completion.received().empty());
  CHECK(bench.told[2].oldest_index == 8);                     // the padding is behind
  bench.tell(2, pkg::ACK_EVENT_ACK, 1);
  bench.settle();
  bench.take_completion(s, s.wqes[3], Status::SUCCESS);
  bench.take_completion(s, s.wqes[4], Status::SUCCESS);
  // with nothing before them they complete at once
  bench.send(s, s.post(pkg::INFLIGHT_LOCAL, 0, true));
  bench.settle();
  bench.take_completion(s, s.wqes[5], Status::SUCCESS);
  CHECK(bench.told[2].oldest_index == 11);
}

TEST_CASE("a READ completes by its responses and counts (scenario 3)") {
  Bench bench(4);
  SendSide s = side(3, 100);
  bench.start(s);
  bench.send(s, s.post(pkg::INFLIGHT_SEND, 1, true));         // 100
  bench.send(s, s.post(pkg::INFLIGHT_READ, 4, true));         // 101..104
  bench.send(s, s.post(pkg::INFLIGHT_SEND, 1, true));         // 105
  bench.settle();
  // requester_read_data made an implied NAK of an ACK for 105
  bench.tell(3, pkg::ACK_EVENT_IMPLIED_NAK, 101, 0, 105);
  bench.settle();
  bench.take_completion(s, s.wqes[0], Status::SUCCESS);
  const auto r = bench.take_retry(s, pkg::RETRY_IMPLIED_NAK, s.wqes[1], 101);
  CHECK(r.progressed);
  bench.rewound(s, s.wqes[1].index, 101, 101, 0);
  bench.answer(3);
  bench.send(s, s.wqes[1]);
  bench.tell(3, pkg::ACK_EVENT_READ, 102);                    // two responses
  bench.settle();
  CHECK(bench.told[3].acked_psn == 103);
  bench.tell(3, pkg::ACK_EVENT_IMPLIED_NAK, 103, 0, 104);     // the third is missing
  bench.settle();
  bench.take_retry(s, pkg::RETRY_IMPLIED_NAK, s.wqes[1], 103);
  bench.rewound(s, s.wqes[1].index, 101, 103, 0);
  bench.answer(3);
  bench.send(s, s.wqes[1]);
  bench.send(s, s.wqes[2]);
  bench.tell(3, pkg::ACK_EVENT_READ, 104);
  bench.settle();
  bench.take_completion(s, s.wqes[1], Status::SUCCESS);
  CHECK(bench.told[3].reads_done == 1);
  CHECK(bench.completion.received().empty());
  bench.tell(3, pkg::ACK_EVENT_ACK, 105);
  bench.settle();
  bench.take_completion(s, s.wqes[2], Status::SUCCESS);
}

TEST_CASE("a fatal NAK fails its WQE, completes those before, flushes the rest (10, 38)") {
  static const std::pair<unsigned, std::pair<Status, Vendor>> naks[] = {
      {0x61, {Status::REM_INV_REQ_ERR, Vendor::NAK_INVALID_REQUEST}},
      {0x62, {Status::REM_ACCESS_ERR, Vendor::NAK_REMOTE_ACCESS}},
      {0x63, {Status::REM_OP_ERR, Vendor::NAK_REMOTE_OPERATIONAL}}};
  for (const auto& [syndrome, outcome] : naks) {
    Bench bench(syndrome);
    SendSide s = side(6, 0xfffffd);
    bench.start(s);
    for (int n = 0; n < 6; ++n) bench.send(s, s.post(pkg::INFLIGHT_SEND, 2, n % 2 == 0));
    bench.settle();
    bench.tell(6, pkg::ACK_EVENT_NAK_FATAL, psn_add(s.wqes[3].first, 1), syndrome);
    bench.settle();
    // the earlier ones are acknowledged by it; the failing one is unsignaled, still it completes
    bench.take_completion(s, s.wqes[0], Status::SUCCESS);
    bench.take_completion(s, s.wqes[2], Status::SUCCESS);
    CHECK(bench.completion.received().empty());
    REQUIRE(bench.error.received().size() == 1);
    CHECK(bench.error.received()[0].qp == 6);
    bench.take_retry(s, pkg::RETRY_FLUSH, s.wqes[3], psn_add(s.wqes[3].first, 1));
    // until the rewind is applied nothing old counts
    bench.tell(6, pkg::ACK_EVENT_ACK, s.wqes[5].last);
    bench.settle();
    CHECK(bench.completion.received().empty());
    bench.rewound(s, s.wqes[3].index, s.wqes[3].first, s.wqes[3].first, 0);
    bench.answer(6);
    bench.settle();
    CHECK(bench.completion.received().empty());
    for (int n = 3; n < 6; ++n) bench.flush(s, s.wqes[static_cast<unsigned>(n)]);
    bench.settle();
    bench.take_completion(s, s.wqes[3], outcome.first, outcome.second);
    bench.take_completion(s, s.wqes[4], Status::WR_FLUSH_ERR, Vendor::FLUSH);
    bench.take_completion(s, s.wqes[5], Status::WR_FLUSH_ERR, Vendor::FLUSH);
    // three more, posted later, a line's padding among them
    bench.flush(s, s.post(pkg::INFLIGHT_SEND, 1, false));
    bench.flush(s, s.post(pkg::INFLIGHT_NOP, 0, false));
    bench.flush(s, s.post(pkg::INFLIGHT_READ, 3, true));
    bench.settle();
    bench.take_completion(s, s.wqes[6], Status::WR_FLUSH_ERR, Vendor::FLUSH);
    bench.take_completion(s, s.wqes[8], Status::WR_FLUSH_ERR, Vendor::FLUSH);
    CHECK(bench.completion.received().empty());
    CHECK(bench.error.received().size() == 1);
    CHECK(bench.retry.received().empty());
  }
}

TEST_CASE("ERR from elsewhere flushes, a half-sent WQE and early flush records included") {
  Bench bench(7);
  SendSide s = side(7, 0);
  bench.start(s);
  for (int n = 0; n < 3; ++n) bench.send(s, s.post(pkg::INFLIGHT_SEND, 1, false));
  const Wqe half = s.post(pkg::INFLIGHT_SEND, 4, true);
  bench.sent_to(s, psn_add(half.first, 2));                  // half of it was sent: no record
  bench.settle();
  bench.tell(7, pkg::ACK_EVENT_ACK, 0);
  // the packetizer saw ERR first and met the next WQE already
  bench.set_state(7, pkg::QPS_ERR);
  bench.flush(s, s.post(pkg::INFLIGHT_SEND, 1, true));
  bench.flush(s, s.post(pkg::INFLIGHT_NOP, 0, false));
  bench.settle();
  CHECK(bench.completion.received().empty());
  bench.take_retry(s, pkg::RETRY_FLUSH, s.wqes[1], 1);
  bench.rewound(s, 1, 1, 1, 0);
  bench.answer(7);
  bench.settle();
  CHECK(bench.completion.received().empty());
  for (std::size_t n = 1; n < s.wqes.size(); ++n) bench.flush(s, s.wqes[n]);
  bench.settle();
  for (unsigned n = 1; n < 5; ++n) {
    bench.take_completion(s, s.wqes[n], Status::WR_FLUSH_ERR, Vendor::FLUSH);
  }
  CHECK(bench.completion.received().empty());
  CHECK(bench.told[7].oldest_index == s.end_index);
  CHECK(bench.error.received().empty());
}

TEST_CASE("ERR: nothing is flushed before READ data is in memory and packets have read theirs") {
  Bench bench(7);
  bench.drains = bench.tx_drains = false;
  for (const bool acked : {false, true}) {
    const bool tx_first = acked;
    SendSide s = side(7, 0);
    bench.start(s);
    for (int n = 0; n < 3; ++n) bench.send(s, s.post(pkg::INFLIGHT_READ, 2, true));
    bench.settle();
    bench.set_state(7, pkg::QPS_ERR);
    bench.settle(200);
    CHECK(bench.retry.received().empty());
    if (tx_first) {
      bench.drain_tx(7);
      bench.settle(200);
      CHECK(bench.retry.received().empty());
    }
    // data in front of the token still counts
    if (acked) {
      bench.tell(7, pkg::ACK_EVENT_READ, 1);
      bench.settle();
      bench.take_completion(s, s.wqes[0], Status::SUCCESS);
      CHECK(bench.retry.received().empty());
    }
    bench.tell(7, pkg::ACK_EVENT_DRAINED, 0);
    bench.settle();
    if (!tx_first) {
      CHECK(bench.retry.received().empty());
      bench.drain_tx(7);
      bench.settle();
    }
    const std::size_t oldest = acked ? 1 : 0;
    bench.take_retry(s, pkg::RETRY_FLUSH, s.wqes[oldest], s.wqes[oldest].first);
    bench.rewound(s, static_cast<unsigned>(oldest), s.wqes[oldest].first, s.wqes[oldest].first,
                  static_cast<unsigned>(oldest));
    bench.answer(7);
    for (std::size_t n = oldest; n < 3; ++n) bench.flush(s, s.wqes[n]);
    bench.settle();
    for (std::size_t n = oldest; n < 3; ++n) {
      bench.take_completion(s, s.wqes[n], Status::WR_FLUSH_ERR, Vendor::FLUSH);
    }
    CHECK(bench.completion.received().empty());
  }
  // an ERR that comes before the send queue is started is told once, and not forgotten
  SendSide s = side(7, 40);
  bench.set_state(7, pkg::QPS_RESET);
  bench.set_state(7, pkg::QPS_INIT);
  bench.set_state(7, pkg::QPS_ERR);
  bench.settle();
  bench.tell(7, pkg::ACK_EVENT_DRAINED, 0);
  bench.drain_tx(7);
  bench.settle();
  bench.write_columns(s);
  const Wqe late = s.post(pkg::INFLIGHT_SEND, 1, true);
  bench.flush(s, late);
  bench.settle();
  bench.take_retry(s, pkg::RETRY_FLUSH, late, 40);
}

TEST_CASE("a refused packet waits until its WQE is the oldest") {
  Bench bench(8);
  SendSide s = side(9, 50);
  bench.start(s);
  for (int n = 0; n < 4; ++n) bench.send(s, s.post(pkg::INFLIGHT_SEND, 2, n != 2));
  bench.settle();
  pkg::tx_refused_t refused{};
  refused.qp = 9;
  refused.wqe_index = 2;
  refused.psn = 55;
  refused.status = pkg::XLAT_BAD_RIGHTS;
  bench.refused.push(refused);
  bench.settle();
  // what was sent before it asks for an acknowledgement now
  CHECK(bench.told[9].stop_valid);
  CHECK(bench.told[9].stop_psn == 55);
  bench.take_retry(s, pkg::RETRY_OVERTAKEN, s.wqes[0], 50);
  bench.rewound(s, 0, 50, 50, 0);
  bench.answer(9);
  for (unsigned n = 0; n < 4; ++n) bench.send(s, s.wqes[n]);
  bench.settle();
  CHECK(bench.error.received().empty());
  CHECK(bench.retry.received().empty());
  // an acknowledgement of what was never sent is a ghost; of the refused packet (there may have been
  // a copy that left) or one behind it, it is one of what is before
  bench.tell(9, pkg::ACK_EVENT_ACK, 58);
  bench.settle();
  CHECK(bench.completion.received().empty());
  bench.tell(9, pkg::ACK_EVENT_ACK, 57);
  bench.settle();
  bench.take_completion(s, s.wqes[0], Status::SUCCESS);
  bench.take_completion(s, s.wqes[1], Status::SUCCESS);
  CHECK(bench.error.received().size() == 1);
  bench.take_retry(s, pkg::RETRY_FLUSH, s.wqes[2], 55);
  bench.rewound(s, 2, 54, 54, 0);
  bench.answer(9);
  bench.flush(s, s.wqes[2]);
  bench.flush(s, s.wqes[3]);
  bench.settle();
  bench.take_completion(s, s.wqes[2], Status::LOC_PROT_ERR, Vendor::KEY_RIGHTS);
  bench.take_completion(s, s.wqes[3], Status::WR_FLUSH_ERR, Vendor::FLUSH);
}

TEST_CASE("a WQE that cannot be executed fails at once if it is the oldest") {
  Bench bench(9);
  SendSide s = side(10, 7);
  bench.start(s);
  const Wqe bad = s.post(pkg::INFLIGHT_SEND, 1, true);
  pkg::local_error_t error{};
  error.qp = 10;
  error.psn = 7;
  error.status = static_cast<std::uint8_t>(code(Status::LOC_QP_OP_ERR));
  error.vendor_status = static_cast<std::uint8_t>(code(Vendor::WQE_OPCODE));
  bench.local.push(error);
  bench.settle();
  CHECK(bench.error.received().size() == 1);
  bench.take_retry(s, pkg::RETRY_FLUSH, bad, 7);
  bench.rewound(s, 0, 7, 7, 0);
  bench.answer(10);
  bench.flush(s, bad);
  bench.settle();
  bench.take_completion(s, bad, Status::LOC_QP_OP_ERR, Vendor::WQE_OPCODE);
}

TEST_CASE("responses that cannot be placed or written fail their READ") {
  for (const bool bus : {false, true}) {
    Bench bench(10);
    SendSide s = side(11, 20);
    bench.start(s);
    bench.send(s, s.post(pkg::INFLIGHT_SEND, 1, true));
    bench.send(s, s.post(pkg::INFLIGHT_READ, 3, true));
    bench.settle();
    bench.tell(11, pkg::ACK_EVENT_ACK, 20);
    if (bus) {
      pkg::ack_token_t t{};
      t.qp = 11;
      t.error = true;
      t.ack_event.kind = pkg::ACK_EVENT_READ;
      t.ack_event.psn = 21;
      bench.event.push(t);
    } else {
      bench.tell(11, pkg::ACK_EVENT_LOCAL_ERROR, 21, code(Status::LOC_PROT_ERR));
    }
    bench.settle();
    bench.take_completion(s, s.wqes[0], Status::SUCCESS);
    CHECK(bench.error.received().size() == 1);
    bench.take_retry(s, pkg::RETRY_FLUSH, s.wqes[1], 21);
    bench.rewound(s, 1, 21, 21, 0);
    bench.answer(11);
    bench.flush(s, s.wqes[1]);
    bench.settle();
    if (bus) {
      bench.take_completion(s, s.wqes[1], Status::LOC_QP_OP_ERR, Vendor::PAYLOAD_WRITE_BUS);
    } else {
      bench.take_completion(s, s.wqes[1], Status::LOC_PROT_ERR);
    }
  }
}

TEST_CASE("an ACK that overtakes a rewind goes on behind what it acknowledges, before any CQE") {
  Bench bench(11);
  SendSide s = side(12, 0);
  bench.start(s);
  for (int n = 0; n < 6; ++n) bench.send(s, s.post(pkg::INFLIGHT_SEND, 1, true));
  bench.settle();
  bench.tell(12, pkg::ACK_EVENT_NAK_SEQUENCE, 1);
  bench.settle();
  bench.take_completion(s, s.wqes[0], Status::SUCCESS);
  bench.take_retry(s, pkg::RETRY_NAK_SEQUENCE, s.wqes[1], 1);
  // while retry works on it, the delayed ACK of 1..3 comes: nothing may move
  bench.tell(12, pkg::ACK_EVENT_ACK, 3);
  bench.settle();
  CHECK(bench.completion.received().empty());
  bench.rewound(s, 1, 1, 1, 0);
  bench.answer(12);
  bench.settle();
  // WQEs 1..3 are done, but the fetch will read them again: it has to go past them first
  CHECK(bench.completion.received().empty());
  bench.take_retry(s, pkg::RETRY_OVERTAKEN, s.wqes[4], 4);
  bench.rewound(s, 4, 4, 4, 0);
  bench.answer(12);
  bench.settle();
  for (unsigned n = 1; n < 4; ++n) bench.take_completion(s, s.wqes[n], Status::SUCCESS);
  // once sent again a WQE has landed
  bench.send(s, s.wqes[4]);
  bench.settle();
  bench.tell(12, pkg::ACK_EVENT_ACK, 4);
  bench.settle();
  bench.take_completion(s, s.wqes[4], Status::SUCCESS);
  CHECK(bench.retry.received().empty());
  bench.tell(12, pkg::ACK_EVENT_ACK, 5);                     // and the last one overtakes once more
  bench.settle();
  CHECK(bench.completion.received().empty());
  REQUIRE(bench.retry.received().size() == 1);
  CHECK(bench.retry.received()[0].cause == pkg::RETRY_OVERTAKEN);
  CHECK(bench.retry.received()[0].point.wqe_index == 6);
  CHECK(bench.retry.received()[0].point.first_psn == 6);
  bench.retry.received().clear();
  bench.rewound(s, 6, 6, 6, 0);
  bench.answer(12);
  bench.settle();
  bench.take_completion(s, s.wqes[5], Status::SUCCESS);
  CHECK(bench.told[12].oldest_index == 6);
}

TEST_CASE("a pop before the overtaken one is final") {
  Bench bench(12);
  SendSide s = side(13, 0);
  bench.start(s);
  for (int n = 0; n < 6; ++n) bench.send(s, s.post(pkg::INFLIGHT_SEND, 1, true));
  bench.settle();
  bench.tell(13, pkg::ACK_EVENT_NAK_SEQUENCE, 0);
  bench.settle();
  bench.take_retry(s, pkg::RETRY_NAK_SEQUENCE, s.wqes[0], 0);
  bench.rewound(s, 0, 0, 0, 0);
  bench.answer(13);
  bench.send(s, s.wqes[0]);                                  // this one has landed again
  bench.settle();
  bench.tell(13, pkg::ACK_EVENT_ACK, 3);
  bench.settle();
  bench.take_completion(s, s.wqes[0], Status::SUCCESS);
  CHECK(bench.completion.received().empty());
  bench.take_retry(s, pkg::RETRY_OVERTAKEN, s.wqes[4], 4);
  bench.rewound(s, 4, 4, 4, 0);
  bench.answer(13);
  bench.settle();
  for (unsigned n = 1; n < 4; ++n) bench.take_completion(s, s.wqes[n], Status::SUCCESS);
  CHECK(bench.completion.received().empty());
}

TEST_CASE("RNR, timer and underrun: the strongest reason once, at the acknowledged PSN (4)") {
  Bench bench(13);
  SendSide s = side(14, 0);
  bench.start(s);
  for (int n = 0; n < 4; ++n) bench.send(s, s.post(pkg::INFLIGHT_SEND, 2, true));
  bench.settle();
  bench.tell(14, pkg::ACK_EVENT_RNR, 2, 0x20 | 14);
  bench.tell(14, pkg::ACK_EVENT_NAK_SEQUENCE, 2);            // rxe sends one behind its RNR NAK
  bench.settle();
  bench.take_completion(s, s.wqes[0], Status::SUCCESS);
  CHECK(bench.take_retry(s, pkg::RETRY_RNR, s.wqes[1], 2).rnr_code == 14);
  pkg::timer_report_t report{};
  report.qp = 14;
  report.oldest_psn = 2;
  bench.report.push(report);
  bench.settle();
  CHECK(bench.retry.received().empty());                     // one question at a time
  bench.rewound(s, 1, 2, 2, 0);
  bench.answer(14);
  bench.settle();
  CHECK_FALSE(bench.take_retry(s, pkg::RETRY_TIMEOUT, s.wqes[1], 2).progressed);
  bench.rewound(s, 1, 2, 2, 0);
  bench.answer(14);
  bench.settle();
  CHECK(bench.retry.received().empty());
  // a report that saw an older PSN is void
  bench.tell(14, pkg::ACK_EVENT_ACK, 2);
  bench.report.push(report);
  bench.settle();
  CHECK(bench.retry.received().empty());
  bench.tx_done(14, pkg::TX_UNDERRUN, 5);
  bench.settle();
  CHECK(bench.take_retry(s, pkg::RETRY_UNDERRUN, s.wqes[1], 3).progressed);
  bench.rewound(s, 1, 2, 3, 0);
  bench.answer(14);
  for (unsigned n = 1; n < 4; ++n) bench.send(s, s.wqes[n]);
  bench.settle();
  // retries used up
  report.oldest_psn = 3;
  bench.report.push(report);
  bench.settle();
  bench.take_retry(s, pkg::RETRY_TIMEOUT, s.wqes[1], 3);
  bench.answer(14, code(Status::RETRY_EXC_ERR), code(Vendor::RETRY_TIMEOUT));
  bench.settle();
  CHECK(bench.error.received().size() == 1);
  bench.take_retry(s, pkg::RETRY_FLUSH, s.wqes[1], 3);
  bench.rewound(s, 1, 2, 3, 0);
  bench.answer(14);
  for (unsigned n = 1; n < 4; ++n) bench.flush(s, s.wqes[n]);
  bench.settle();
  bench.take_completion(s, s.wqes[1], Status::RETRY_EXC_ERR, Vendor::RETRY_TIMEOUT);
  bench.take_completion(s, s.wqes[2], Status::WR_FLUSH_ERR, Vendor::FLUSH);
  bench.take_completion(s, s.wqes[3], Status::WR_FLUSH_ERR, Vendor::FLUSH);
}

TEST_CASE("UC in SQE: nothing is flushed before its last packet left; PSNs go on with what never left") {
  Bench bench(41);
  bench.tx_drains = false;
  SendSide s = side(18, 0xfffffe);
  bench.start(s, 1);
  bench.send(s, s.post(pkg::INFLIGHT_SEND, 2, true));        // leaves
  const Wqe half = s.post(pkg::INFLIGHT_SEND, 4, true);      // its third packet is refused
  bench.sent_to(s, psn_add(half.first, 3));
  const Wqe behind = s.post(pkg::INFLIGHT_SEND, 1, true);
  bench.settle();
  pkg::tx_refused_t refused{};
  refused.qp = 18;
  refused.wqe_index = static_cast<std::uint16_t>(half.index);
  refused.psn = psn_add(half.first, 2);
  refused.status = pkg::XLAT_BAD_BOUNDS;
  bench.refused.push(refused);
  bench.settle();
  CHECK(bench.retry.received().empty());                     // sent again it would come twice
  CHECK(bench.told[18].stop_valid);
  CHECK(bench.told[18].stop_psn == psn_add(half.first, 2));
  CHECK(bench.error.received().empty());                     // the one before it is not done
  for (int n = 0; n < 2; ++n) bench.tx_done(18, pkg::TX_SENT, psn_add(s.start, n), 0);
  bench.settle();
  bench.take_completion(s, s.wqes[0], Status::SUCCESS);
  REQUIRE(bench.error.received().size() == 1);               // comes back as SQE
  CHECK(bench.error.received()[0].send_only);
  CHECK(bench.retry.received().empty());
  bench.tx_done(18, pkg::TX_SENT, half.first, half.index);
  bench.settle();
  CHECK(bench.retry.received().empty());
  bench.drain_tx(18);                                        // its second packet was discarded
  bench.settle();
  Wqe point = half;
  point.first = psn_add(half.first, 1);
  bench.take_retry(s, pkg::RETRY_FLUSH, point, point.first);
  bench.rewound(s, half.index, point.first, point.first, 0);
  bench.answer(18);
  bench.flush(s, half);
  bench.flush(s, behind);
  bench.settle();
  bench.take_completion(s, half, Status::LOC_PROT_ERR, Vendor::KEY_BOUNDS);
  bench.take_completion(s, behind, Status::WR_FLUSH_ERR, Vendor::FLUSH_SQE);

  // again in RTS, and then SQD: nothing is on its way
  bench.set_state(18, pkg::QPS_RTS);
  bench.set_state(18, pkg::QPS_SQD);
  bench.settle();
  CHECK(bench.async_event.received().size() == 1);
  bench.set_state(18, pkg::QPS_RTS);
  s.end_psn = point.first;
  const Wqe next = s.post(pkg::INFLIGHT_SEND, 2, true);
  bench.high[18] = next.first;
  bench.send(s, next);
  bench.settle();
  for (int n = 0; n < 2; ++n) bench.tx_done(18, pkg::TX_SENT, psn_add(next.first, n), next.index);
  bench.settle();
  bench.take_completion(s, next, Status::SUCCESS);
  CHECK(bench.completion.received().empty());
}

TEST_CASE("a QP that is taken from SQE to RTS before its flush fails again") {
  Bench bench(42);
  bench.tx_drains = false;
  SendSide s = side(19, 0);
  bench.start(s, 1);
  bench.send(s, s.post(pkg::INFLIGHT_SEND, 1, true));
  bench.settle();
  bench.tx_done(19, pkg::TX_BUS_ERROR, 0, 0);
  bench.settle();
  REQUIRE(bench.error.received().size() == 1);
  bench.set_state(19, pkg::QPS_RTS);
  bench.settle();
  REQUIRE(bench.error.received().size() == 2);
  bench.drain_tx(19);
  bench.settle();
  bench.take_retry(s, pkg::RETRY_FLUSH, s.wqes[0], 0);
}

TEST_CASE("UD: leaving is the acknowledgement; SQE flushes, RTS goes on") {
  Bench bench(14);
  bench.mirror_errors = false;
  SendSide s = side(15, 0);
  bench.start(s, 2);
  for (int n = 0; n < 4; ++n) bench.send(s, s.post(pkg::INFLIGHT_SEND, 1, true));
  bench.settle();
  bench.tx_done(15, pkg::TX_SENT, 0);
  bench.settle();
  bench.take_completion(s, s.wqes[0], Status::SUCCESS);
  bench.tx_done(15, pkg::TX_BUS_ERROR, 1, 1);
  bench.tx_done(15, pkg::TX_SENT, 2, 2);                     // left, but behind a failure
  bench.settle();
  CHECK(bench.completion.received().empty());
  REQUIRE(bench.error.received().size() == 1);
  bench.set_state(15, pkg::QPS_SQE);
  bench.settle();
  bench.take_retry(s, pkg::RETRY_FLUSH, s.wqes[1], 1);
  bench.rewound(s, 1, 1, 1, 0);
  bench.answer(15);
  for (unsigned n = 1; n < 4; ++n) bench.flush(s, s.wqes[n]);
  bench.settle();
  bench.take_completion(s, s.wqes[1], Status::LOC_QP_OP_ERR, Vendor::PAYLOAD_READ_BUS);
  bench.take_completion(s, s.wqes[2], Status::WR_FLUSH_ERR, Vendor::FLUSH_SQE);
  bench.take_completion(s, s.wqes[3], Status::WR_FLUSH_ERR, Vendor::FLUSH_SQE);
  bench.set_state(15, pkg::QPS_RTS);
  bench.settle();
  const Wqe after = s.post(pkg::INFLIGHT_SEND, 1, true);
  bench.send(s, after);
  bench.settle();
  CHECK(bench.completion.received().empty());
  bench.tx_done(15, pkg::TX_SENT, after.first);
  bench.settle();
  bench.take_completion(s, after, Status::SUCCESS);
}

TEST_CASE("SQ_DRAINED once, when everything started is done") {
  Bench bench(15);
  SendSide s = side(16, 0);
  bench.start(s);
  for (int n = 0; n < 2; ++n) bench.send(s, s.post(pkg::INFLIGHT_SEND, 2, false));
  bench.settle();
  bench.set_state(16, pkg::QPS_SQD);
  bench.tell(16, pkg::ACK_EVENT_ACK, 2);
  bench.settle();
  CHECK(bench.async_event.received().empty());
  bench.tell(16, pkg::ACK_EVENT_ACK, 3);
  bench.settle();
  REQUIRE(bench.async_event.received().size() == 1);
  const auto event = bench.async_event.received()[0];
  CHECK(unsigned{event.event_type} == static_cast<unsigned>(hwif::EqeType::SQ_DRAINED));
  CHECK(event.object == Bench::qpn(16));
  CHECK(event.fn == Bench::fn(16));
  CHECK_FALSE(event.eq_valid);
  bench.set_state(16, pkg::QPS_SQD);
  bench.settle();
  CHECK(bench.async_event.received().size() == 1);
  bench.set_state(16, pkg::QPS_RTS);
  bench.settle();
  bench.set_state(16, pkg::QPS_SQD);                         // nothing outstanding: at once
  bench.settle();
  CHECK(bench.async_event.received().size() == 2);
}

TEST_CASE("RESET forgets everything, the next life starts clean (scenario 8)") {
  Bench bench(16);
  SendSide s = side(17, 5);
  bench.start(s);
  for (int n = 0; n < 3; ++n) bench.send(s, s.post(pkg::INFLIGHT_SEND, 1, true));
  bench.settle();
  bench.tell(17, pkg::ACK_EVENT_NAK_SEQUENCE, 6);
  bench.settle();
  bench.take_completion(s, s.wqes[0], Status::SUCCESS);
  bench.take_retry(s, pkg::RETRY_NAK_SEQUENCE, s.wqes[1], 6);
  bench.set_state(17, pkg::QPS_RESET);
  bench.settle();
  bench.answer(17);                                          // comes late
  bench.tell(17, pkg::ACK_EVENT_ACK, 7);
  bench.settle();
  CHECK(bench.completion.received().empty());
  s.start = 0x800000;
  bench.start(s);
  bench.send(s, s.post(pkg::INFLIGHT_READ, 2, true));
  bench.settle();
  CHECK(bench.access(false, 17, 2) == std::uint64_t{0x800000} << 32u);
  bench.tell(17, pkg::ACK_EVENT_READ, 0x800001);
  bench.settle();
  bench.take_completion(s, s.wqes[0], Status::SUCCESS);
  CHECK(bench.access(false, 17, 2) ==
        (std::uint64_t{0x800002} << 32u | 1u << 16u | 1u));
  CHECK(bench.access(false, 17, 0) ==
        (Bench::cq(17) | std::uint64_t{Bench::fn(17)} << 16u | std::uint64_t{s.base} << 32u |
         std::uint64_t{3} << 48u));
  CHECK(bench.access(false, 17, 1) == Bench::qpn(17));
}

TEST_CASE("events are taken while completions wait for ever (rule 2)") {
  Bench bench(17);
  bench.completion.stall(Stall(1.0));
  SendSide a = side(18, 0), b = side(19, 0);
  for (SendSide* s : {&a, &b}) {
    s->log2 = 6;
    s->base = s == &a ? 0 : 64;
    bench.start(*s);
    for (int n = 0; n < 60; ++n) bench.send(*s, s->post(pkg::INFLIGHT_SEND, 1, true));
  }
  bench.settle();
  for (std::uint32_t psn = 0; psn < 60; ++psn) {
    bench.tell(18, pkg::ACK_EVENT_ACK, psn);
    bench.tell(19, pkg::ACK_EVENT_ACK, psn);
  }
  const auto start = bench.dut.cycle();
  bench.dut.run_until([&] { return bench.event.empty(); }, "events");
  CHECK(bench.dut.cycle() - start <= 125);
  bench.dut.tick(200);
  CHECK(bench.dut->fence_busy_o == 1);
  bench.completion.stall(Stall(0.0));
  bench.dut.run_until([&] { return bench.completion.received().size() == 120; }, "completions");
  for (SendSide* s : {&a, &b}) {
    unsigned next = 0;
    for (const auto& c : bench.completion.received()) {
      if (c.qp == s->number) CHECK(c.completion.wqe_index_or_cookie == next++);
    }
    CHECK(next == 60);
  }
  bench.dut.tick(20);
  CHECK(bench.dut->fence_busy_o == 0);
}

TEST_CASE("rates: a QP's records, ACKs of one QP one by one, ACKs of many QPs") {
  const unsigned records = ROCI_CONFIG_WIDE ? 512 : 128;
  const unsigned log2 = ROCI_CONFIG_WIDE ? 9 : 7;
  {
    Bench bench(18);
    SendSide s = side(1, 0);
    s.base = 0;
    s.log2 = log2;
    bench.start(s);
    for (unsigned n = 0; n < records; ++n) bench.send(s, s.post(pkg::INFLIGHT_SEND, 1, true));
    bench.settle();
    // from the first completion to the last
    const auto measure = [&](unsigned from, unsigned to) {
      bench.dut.run_until([&] { return bench.completion.received().size() > from; }, "first");
      const auto start = bench.dut.cycle();
      bench.dut.run_until([&] { return bench.completion.received().size() == to; }, "last");
      return static_cast<double>(bench.dut.cycle() - start) / (to - from - 1);
    };
    // all at once
    bench.tell(1, pkg::ACK_EVENT_ACK, records / 2 - 1);
    const double burst = measure(0, records / 2);
    // one ACK per record, at the rate of 64-byte WRITEs (3.48 cycles)
    for (unsigned n = records / 2; n < records; ++n) bench.tell(1, pkg::ACK_EVENT_ACK, n);
    bench.event.stall(Stall(1 - 1 / 3.48));
    bench.dut.run_until([&] { return bench.event.empty(); }, "ACKs");
    const auto told = bench.dut.cycle();
    bench.dut.run_until([&] { return bench.completion.received().size() == records; }, "last");
    const auto late = bench.dut.cycle() - told;
    WARN(ROCI_CONFIG_NAME << ": cycles per record of one QP: one ACK " << burst
                          << ", an ACK each: the last one " << late << " cycles after its ACK");
    CHECK(burst <= 3.0);
    CHECK(late <= 40);                     // it keeps up
  }
  {
    Bench bench(19);
    const unsigned qps = 32, rounds = 8;
    std::vector<SendSide> sides;
    for (unsigned qp = 0; qp < qps; ++qp) {
      SendSide s = side(qp, 0);
      s.base = qp * 8;
      bench.start(s);
      for (unsigned n = 0; n < rounds; ++n) bench.send(s, s.post(pkg::INFLIGHT_SEND, 1, true));
      sides.push_back(s);
    }
    bench.settle();
    for (unsigned n = 0; n < rounds; ++n) {
      for (unsigned qp = 0; qp < qps; ++qp) bench.tell(qp, pkg::ACK_EVENT_ACK, n);
    }
    // paced like ACKs of 64 B WRITEs at line rate, so that none merge: one per 3 cycles
    bench.event.stall(Stall(0.66));
    const auto start = bench.dut.cycle();
    bench.dut.run_until([&] { return bench.completion.received().size() == qps * rounds; }, "all");
    const double many = static_cast<double>(bench.dut.cycle() - start) / (qps * rounds);
    WARN(ROCI_CONFIG_NAME << ": cycles per record of many QPs, paced at 3: " << many);
    CHECK(many <= 3.4);
  }
}
