// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_judge: random requests on a row that is fed back, against RxModel; and the order of the
// checks (wire.md §2.2) case by case.
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "responder/responder_actions.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
using namespace roci::test::responder;

rs::request_t request_of(const rp::rx_packet_t& p) {
  const auto& h = p.headers;
  rs::request_t r{};
  r.kind = rs::REQUEST_FRAME;
  r.colour = p.colour;
  r.qp = p.qp;
  r.fn = p.fn;
  r.op = h.opcode & 0x1f;
  r.ackreq = h.ackreq;
  r.solicited = h.solicited;
  r.pad = h.pad_count != 0;
  r.vlan_valid = h.vlan_valid;
  r.tci = h.tci;
  r.psn = h.psn;
  r.payload_length = h.payload_length;
  r.va = h.va;
  r.rkey = h.rkey;
  r.dma_length = h.dma_length;
  r.imm = h.imm;
  return r;
}

/// One QP: the module with its row in C++.
struct Judge {
  explicit Judge(const QpConfig& config, std::uint32_t psn) : model(config, psn) {
    row.next_psn = psn;
    row.acked_psn = (psn - 1) & psn_mask;
    state = rp::QPS_RTS;
    look.index = 77;
    look.slot = 5;
  }
  void apply(const rs::request_t& request, const rp::rx_headers_t& headers) {
    request.pack(dut->request_i);
    const std::uint64_t mtu = model.config.mtu();
    dut->packets_i = static_cast<IData>(
        std::max<std::uint64_t>(1, (headers.dma_length + mtu - 1) / mtu));
    dut->state_i = state;
    static_row(model.config).pack(dut->static_i);
    row.pack(dut->row_i);
    look.pack(dut->look_i);
    dut->total_i = total;
    dut->queue_i = 3;
    dut->answered_i = static_cast<CData>(answered);
    dut->pressure_i = pressure;
    dut->event_ready_i = event_ready;
    dut.eval();
  }
  rs::action_t action() { return rs::action_t::unpack(dut->action_o); }
  rs::dyn_row_t row_out() { return rs::dyn_row_t::unpack(dut->row_o); }

  Dut<DUT_CLASS> dut;
  RxModel model;
  rs::dyn_row_t row{};
  rp::rq_look_t look{};
  std::uint32_t total = 1u << 31;                // bytes of the receive that `look` tells
  rp::qp_state_e state;
  std::uint64_t answered = 0;
  bool pressure = false, event_ready = true;
};
}  // namespace

TEST_CASE("random requests: action and row as the model says") {
  Random random;
  PacketSource source(random);
  std::size_t fatal = 0, waits = 0, executed = 0, too_long = 0, again = 0;
  unsigned long no_receive = 0, given_up = 0, unreliable_too_long = 0;
  for (std::size_t run = 0; run < scaled(300); ++run) {
    QpConfig c;
    c.type = static_cast<unsigned>(run % 2 ? random.between(1, 3) : 0);
    c.replay_base = static_cast<unsigned>(random.below(8)) * 16;
    c.srq = random.chance(0.3) ? 1 : -1;
    c.srqn = static_cast<std::uint32_t>(random.bits(24));
    c.remote_atomic = !random.chance(0.05);
    c.qp = static_cast<unsigned>(random.below(60));
    c.pd = static_cast<unsigned>(random.below(60));
    c.cq = static_cast<unsigned>(random.below(60));
    c.qpn = static_cast<std::uint32_t>(random.bits(24));
    c.mtu_code = static_cast<unsigned>(random.between(1, 5));
    c.replay_log2 = static_cast<unsigned>(random.below(4));
    c.rnr_timer = static_cast<unsigned>(random.below(32));
    c.remote_read = !random.chance(0.05);
    c.remote_write = !random.chance(0.05);
    Judge j(c, static_cast<std::uint32_t>(random.bits(24)));
    ReceiveQueue queue;
    for (int n = 0; n < 150; ++n) {
      auto p = source.next(j.model);
      p.state = j.state;
      while (queue.posted.size() < 3) {
        const std::uint64_t room = random.chance(0.8) ? std::uint64_t{1} << 31
                                                      : random.below(3 * c.mtu() + 60);
        queue.posted.push_back({static_cast<std::uint32_t>(queue.posted_count++),
                                {{0, static_cast<std::uint32_t>(room), 1}}, 1, false});
      }
      j.look.ready = random.chance(0.8);
      // nothing defined before it has landed
      j.total = static_cast<std::uint32_t>(j.look.ready ? queue.posted.front().bytes() : random());
      j.look.empty = !j.look.ready && random.chance(0.5);
      j.pressure = random.chance(0.3);
      if (random.chance(0.5)) j.answered = random.between(j.answered, j.model.reads);
      j.apply(request_of(p), p.headers);
      const std::uint32_t distance = (p.headers.psn - j.row.next_psn) & 0xffffffu;
      REQUIRE(j.dut->gap_o == (c.type == 0 && distance != 0 && distance < 0x800000));
      REQUIRE(j.dut->duplicate_o == (c.type == 0 && distance >= 0x800000));
      const RxModel before = j.model;
      if (j.dut->wait_o) {
        // nothing happens, and only a receive that is on its way makes it wait
        REQUIRE(takes_wqe(p.headers.opcode & 0x1f));
        REQUIRE(!j.model.held);
        REQUIRE(!(j.look.ready || j.look.empty || j.pressure));
        REQUIRE(!j.dut->take_o);
        ++waits;
        continue;
      }
      REQUIRE(j.dut->action_valid_o);
      const std::uint64_t taken = queue.taken;
      const auto receive = j.look.ready   ? Receive::taken
                           : j.look.empty ? Receive::none
                                          : Receive::lost;
      const auto items = j.model.process(p, receive, queue, j.answered);
      const bool took = queue.taken != taken;
      const std::string wrong = action_differs(j.action(), items, p.headers.opcode & 0x1fu, took);
      if (!wrong.empty()) FAIL(wrong);
      REQUIRE(j.dut->take_o == took);
      REQUIRE(j.dut->no_receive_o == j.model.no_receive - before.no_receive);
      REQUIRE(j.dut->too_long_o == j.model.too_long - before.too_long);
      REQUIRE(j.dut->given_up_o == j.model.given_up - before.given_up);
      if (j.dut->lost_o) REQUIRE(receive == Receive::lost);
      too_long += items[0].end_info.completion.status == hw::CQE_STATUS_LOC_LEN_ERR;
      again += c.type != 0 && before.held && !took && takes_wqe(p.headers.opcode & 0x1f) &&
               !items[0].end_info.drop;
      if (took) {
        REQUIRE(j.action().slot == 5);
        REQUIRE(j.action().entry == rp::rq_entry_t{3, 77});
      }
      REQUIRE(j.dut->rnr_o == (items[0].end_info.respond_valid &&
                               (items[0].end_info.respond.syndrome & 0xe0) == 0x20));
      j.row = j.row_out();
      const std::string row = row_differs(j.row, j.model);
      if (!row.empty()) FAIL(row);
      REQUIRE(c.type * items[0].end_info.respond_valid == 0);
      executed += !items[0].end_info.drop;
      if (j.model.closed) {
        ++fatal;
        break;
      }
    }
    no_receive += j.model.no_receive;
    given_up += j.model.given_up;
    unreliable_too_long += j.model.too_long;
  }
  CHECK(fatal > 10);
  CHECK(waits > 10);
  CHECK(executed > 1000);
  CHECK(too_long > 10);
  CHECK(again > 10);
  CHECK(no_receive > 100);
  CHECK(given_up > 100);
  CHECK(unreliable_too_long > 100);
}

TEST_CASE("a duplicate's ACK does not wait for READs that were answered long ago") {
  QpConfig c;
  c.replay_log2 = 2;
  Judge j(c, 1000);
  ReceiveQueue queue;
  fill(queue, 1);
  rp::rx_packet_t write{};
  write.headers.opcode = 0x0a;                   // WRITE_ONLY
  write.headers.psn = 1000;
  auto read = write;
  read.headers.opcode = 0x0c;
  read.headers.dma_length = 0;
  j.apply(request_of(write), write.headers);
  j.row = j.row_out();
  for (unsigned reads = 1; reads <= 600; ++reads) {
    read.headers.psn = 1000 + reads;
    j.answered = reads - 1;
    j.apply(request_of(read), read.headers);
    REQUIRE(j.action().kind == rs::ACTION_READ);
    j.row = j.row_out();
    // the WRITE comes again, late
    j.apply(request_of(write), write.headers);
    const auto respond = j.action().respond;
    INFO("after " << reads << " READs");
    REQUIRE(respond.kind == rp::RESPOND_DUP_ACK);
    REQUIRE(respond.psn == 1000);
    // behind READs that were accepted, never behind one to come
    const unsigned before = (reads - respond.entry) & 0xff;
    REQUIRE(before <= 4);
  }
}

TEST_CASE("the order of the checks (wire.md 2.2)") {
  QpConfig c;
  c.remote_write = c.remote_read = c.remote_atomic = false;
  c.replay_log2 = 0;
  Judge j(c, 100);
  rp::rx_packet_t p{};
  auto& h = p.headers;
  const auto cause = [&] {
    j.apply(request_of(p), h);
    REQUIRE(j.action().kind == rs::ACTION_FAIL);
    CHECK(j.action().respond.syndrome == 0x61);
    return j.action().vendor_status;
  };
  // everything is wrong: the first check speaks; then it is put right
  h.psn = 103;
  h.opcode = 0x1f;
  h.payload_length = 7;
  h.dma_length = 0xffffffff;
  j.row.message = rs::MESSAGE_WRITE;
  j.apply(request_of(p), h);
  CHECK(j.action().respond.syndrome == 0x60);
  CHECK(j.action().respond.psn == 100);
  h.psn = 100;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_OPCODE_RESERVED);
  h.opcode = WRITE_FIRST;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_OPCODE_SEQUENCE);
  j.row.message = rs::MESSAGE_NONE;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_ACCESS_FLAG);
  j.model.config.remote_write = true;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_LENGTH);
  h.payload_length = 1024;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_LENGTH);      // more than 2^31
  h.dma_length = 0x80000000;
  j.apply(request_of(p), h);
  CHECK(j.action().kind == rs::ACTION_WRITE);
  // READ: access, resources, length
  h.opcode = READ_REQUEST;
  h.dma_length = 0x80000001;
  j.row.reads = 5;
  j.answered = 4;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_ACCESS_FLAG);
  j.model.config.remote_read = true;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_READ_RESOURCES);
  j.answered = 5;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_LENGTH);
  h.payload_length = 0;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_LENGTH);
  h.dma_length = 0x80000000;
  j.apply(request_of(p), h);
  CHECK(j.action().kind == rs::ACTION_READ);
  // atomic: access, alignment, resources, length
  h.opcode = FETCH_ADD;
  h.va = 0x1004;
  h.payload_length = 20;
  j.answered = 4;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_ACCESS_FLAG);
  j.model.config.remote_atomic = true;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_ATOMIC_ALIGNMENT);
  h.va = 0x1008;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_READ_RESOURCES);
  j.answered = 5;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_LENGTH);
  h.payload_length = 16;
  h.dma_length = 0xffffffff;                     // the first operand lies there
  j.apply(request_of(p), h);
  CHECK(j.action().kind == rs::ACTION_READ);
  CHECK(j.row_out().next_psn == 101);
  // no receive goes before a wrong length
  h.opcode = SEND_ONLY;
  h.payload_length = 4096;
  j.look.empty = true;
  j.apply(request_of(p), h);
  CHECK(j.action().respond.syndrome == (0x20 | c.rnr_timer));
  CHECK(j.row_out().next_psn == 100);
  j.look.ready = true;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_LENGTH);
  CHECK(!j.dut->take_o);
  // that goes before a receive that is too short, which completes with its own error
  h.payload_length = 1000;
  j.total = 999;
  CHECK(cause() == hw::VENDOR_STATUS_RECV_TOO_SHORT);
  CHECK(j.dut->take_o);
  CHECK(j.action().error_event == 0);
  j.total = 1000;
  j.apply(request_of(p), h);
  CHECK(j.action().kind == rs::ACTION_SEND);
}

TEST_CASE("states: silence before RTR and in ERR, COMM_EST once in RTR, other transports") {
  Judge j(QpConfig{}, 7);
  rp::rx_packet_t p{};
  p.headers.psn = 7;
  p.headers.opcode = WRITE_ONLY;
  p.headers.ackreq = true;
  for (const auto state : {rp::QPS_RESET, rp::QPS_INIT, rp::QPS_ERR}) {
    j.state = state;
    j.apply(request_of(p), p.headers);
    CHECK(j.action().kind == rs::ACTION_DROP);
    CHECK(!j.action().respond_valid);
    CHECK(j.row_out() == j.row);
  }
  for (const auto state : {rp::QPS_RTR, rp::QPS_RTS, rp::QPS_SQD}) {
    j.state = state;
    j.apply(request_of(p), p.headers);
    CHECK(j.action().respond_valid);
    CHECK(j.dut->established_o == (state == rp::QPS_RTR));
  }
  j.state = rp::QPS_RTR;
  j.event_ready = false;
  j.apply(request_of(p), p.headers);
  CHECK(!j.dut->established_o);
  CHECK(!j.row_out().established);               // so it is raised later
  j.event_ready = true;
  j.apply(request_of(p), p.headers);
  CHECK(j.row_out().established);
  j.row.established = true;
  j.apply(request_of(p), p.headers);
  CHECK(!j.dut->established_o);

  auto row = static_row(QpConfig{});
  row.qp_type = 4;                               // XRC: nobody's
  row.pack(j.dut->static_i);
  j.dut.eval();
  CHECK(j.action().kind == rs::ACTION_DROP);
  CHECK(!j.action().respond_valid);
}

TEST_CASE("UC: what is broken off is dropped to its end; its receive begins anew (wire.md 2.16)") {
  QpConfig c;
  c.type = 1;
  c.mtu_code = 1;
  Judge j(c, 100);
  j.look.ready = true;
  j.total = 600;
  rp::rx_packet_t p{};
  auto& h = p.headers;
  h.payload_length = 256;
  const auto send = [&](unsigned op, std::uint32_t psn) {
    h.opcode = c.opcode(op);
    h.psn = psn;
    j.apply(request_of(p), h);
    const auto a = j.action();
    j.row = j.row_out();
    CHECK(!a.respond_valid);
    return a;
  };
  CHECK(send(SEND_FIRST, 500).take);             // any PSN begins
  CHECK(send(SEND_MIDDLE, 501).use_current);
  CHECK(send(SEND_MIDDLE, 503).kind == rs::ACTION_DROP);
  CHECK(j.dut->given_up_o);
  CHECK(send(SEND_MIDDLE, 502).kind == rs::ACTION_DROP);   // late: too late
  h.payload_length = 9;
  CHECK(send(SEND_LAST, 504).kind == rs::ACTION_DROP);
  // a WRITE between does not touch the receive; one with immediate takes it
  h.payload_length = 256;
  h.dma_length = 512;
  CHECK(send(WRITE_FIRST, 7).kind == rs::ACTION_WRITE);
  CHECK(send(WRITE_LAST, 8).kind == rs::ACTION_WRITE);
  CHECK(j.row.held);
  j.look.ready = false;                          // and no other one is needed
  j.look.empty = true;
  j.total = 1;
  auto a = send(SEND_FIRST, 9);
  CHECK(a.kind == rs::ACTION_SEND);
  CHECK(a.restart);
  CHECK(!a.take);
  CHECK(send(SEND_MIDDLE, 10).kind == rs::ACTION_SEND);
  CHECK(send(SEND_MIDDLE, 11).kind == rs::ACTION_DROP);    // 768 of 600 bytes
  CHECK(j.dut->too_long_o);
  a = send(SEND_FIRST, 12);
  CHECK(a.restart);
  CHECK(a.length == 256);
  h.payload_length = 44;
  a = send(SEND_LAST, 13);
  CHECK(a.message_last);
  CHECK(a.length == 300);
  CHECK(!j.row.held);
  CHECK(send(SEND_ONLY, 14).kind == rs::ACTION_DROP);
  CHECK(j.dut->no_receive_o);
  h.dma_length = 44;
  j.row.held = true;
  a = send(WRITE_ONLY_IMM, 15);
  CHECK(a.kind == rs::ACTION_WRITE);
  CHECK(a.restart);
  CHECK(!j.row.held);
  j.row.held = true;
  j.state = rp::QPS_ERR;
  rs::request_t flush{};
  flush.kind = rs::REQUEST_FLUSH;
  j.apply(flush, {});
  CHECK(j.action().use_current);
}

TEST_CASE("flush: only in ERR, the receive in use first, then those of the own queue") {
  Judge j(QpConfig{}, 7);
  rs::request_t r{};
  r.kind = rs::REQUEST_FLUSH;
  j.look.ready = true;
  j.row.message = rs::MESSAGE_SEND;
  j.row.held = true;
  j.apply(r, {});
  CHECK(!j.dut->action_valid_o);
  j.state = rp::QPS_ERR;
  j.apply(r, {});
  CHECK(j.dut->action_valid_o);
  CHECK(j.action().kind == rs::ACTION_FLUSH);
  CHECK(j.action().use_current);
  CHECK(!j.dut->take_o);
  CHECK(j.row_out().message == rs::MESSAGE_NONE);
  CHECK(!j.row_out().held);
  j.row.message = rs::MESSAGE_NONE;
  j.row.held = false;
  j.apply(r, {});
  CHECK(j.dut->take_o);
  CHECK(j.action().take);
  // nothing to flush: it only tells that the QP is drained
  const auto nothing = [&] {
    j.apply(r, {});
    CHECK(j.dut->action_valid_o);
    CHECK(j.action().kind == rs::ACTION_FLUSH);
    CHECK(!j.action().use_current);
    CHECK(!j.action().take);
    CHECK(!j.dut->take_o);
  };
  j.model.config.srq = 1;                        // those of an SRQ stay in the SRQ
  nothing();
  j.model.config.srq = -1;
  j.look.ready = false;
  nothing();
}
