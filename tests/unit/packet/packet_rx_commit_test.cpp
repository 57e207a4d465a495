// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_rx_commit against a model that knows every verdict in advance: the exact sequence of scatter
// commands and tokens, in frame order, over both units and dispatcher drops; failures become the
// NAK, completion or event of wire.md 2.14; nothing of a void QP executes until its INIT, and every
// receive WQE gives exactly one completion.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <sstream>

#include "harness/harness.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace hwif = roci::hwif;

namespace {

template <class E>
E e(unsigned value) {
  return static_cast<E>(value);
}

constexpr unsigned kCompletion = 1;
constexpr unsigned kRespond = 2;
constexpr unsigned kAckEvent = 3;
constexpr unsigned kReset = static_cast<unsigned>(pkg::qp_state_e::QPS_RESET);
constexpr unsigned kInit = static_cast<unsigned>(pkg::qp_state_e::QPS_INIT);
constexpr unsigned kRts = static_cast<unsigned>(pkg::qp_state_e::QPS_RTS);
constexpr unsigned kErr = static_cast<unsigned>(pkg::qp_state_e::QPS_ERR);

struct Piece {
  pkg::piece_t piece;
  std::vector<pkg::xlat_rsp_t> answers;
};

// The body of a token as the bits of any struct, LSB aligned.
template <class T>
auto body_of(const T& value) {
  decltype(pkg::token_t::body) body{};
  value.to_bits(body.data(), 0);
  return body;
}

struct Bench {
  Dut<DUT_CLASS> dut;
  Random& random;
  Source<pkg::rx_order_t> order;
  Source<pkg::rx_item_t> responder;
  Source<pkg::rx_item_t> requester;
  Sink<pkg::xlat_req_t> xlat;
  Source<pkg::xlat_rsp_t> answer;
  Sink<pkg::scatter_cmd_t> cmd;
  Sink<pkg::state_error_t> error;
  std::deque<Piece> asked;
  std::map<unsigned, bool> is_void;
  std::map<unsigned, bool> swallow;   // the next completion is of a WQE that failed
  std::map<unsigned, bool> in_error;

  explicit Bench(Random& r)
      : dut(r()),
        random(r),
        order("order", dut->order_valid_i, dut->order_ready_o, dut->order_i),
        responder("responder", dut->responder_valid_i, dut->responder_ready_o, dut->responder_i),
        requester("requester", dut->requester_valid_i, dut->requester_ready_o, dut->requester_i),
        xlat("xlat", dut->xlat_valid_o, dut->xlat_ready_i, dut->xlat_o),
        answer("answer", dut->answer_valid_i, dut->answer_ready_o, dut->answer_i),
        cmd("cmd", dut->cmd_valid_o, dut->cmd_ready_i, dut->cmd_o),
        error("error", dut->error_valid_o, dut->error_ready_i, dut->error_o) {
    pkg::state_bcast_t{}.pack(dut->state_i);
    xlat.collect();
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 5000);
    dut.attach(order);
    dut.attach(responder);
    dut.attach(requester);
    dut.attach(xlat);
    dut.attach(answer);
    dut.attach(cmd);
    dut.attach(error);
  }

  void tick() {
    for (const auto& request : xlat.received()) {
      REQUIRE_FALSE(asked.empty());
      REQUIRE(request.piece == asked.front().piece);
      for (const auto& a : asked.front().answers) answer.push(a);
      asked.pop_front();
    }
    xlat.received().clear();
    dut.tick();
    const auto count = roci::sv::roci_count_pkg::rx_commit_count_t::unpack(dut->count_o);
    writes += count.requests_write;
    reads += count.requests_read;
    atomics += count.requests_atomic;
    sends += count.requests_send;
    dead += count.rx_drop_after_error;
  }
  // counted, and what was to be counted
  std::uint64_t writes = 0, reads = 0, atomics = 0, sends = 0, dead = 0;
  std::uint64_t want_writes = 0, want_reads = 0, want_atomics = 0, want_sends = 0, want_dead = 0;
  std::uint64_t shrugged = 0;         // bad remote keys of UC and UD

  void run() {
    for (int limit = 0; limit < 300000; ++limit) {
      if (cmd.done() && error.done() && order.empty()) {
        for (int n = 0; n < 30; ++n) tick();
        return;
      }
      tick();
    }
    throw Failure("commands are missing: " + std::to_string(cmd.pending()));
  }

  // State changes come only while the unit is empty: what they mean for a frame is then exact.
  void set_state(unsigned qp, unsigned to) {
    pkg::state_bcast_t state{};
    state.valid = true;
    state.qp = static_cast<decltype(state.qp)>(qp);
    state.state = e<pkg::qp_state_e>(to);
    state.pack(dut->state_i);
    dut.tick();
    pkg::state_bcast_t{}.pack(dut->state_i);
    dut.tick();
    in_error[qp] = to == kErr;
    if (to == kInit) is_void[qp] = swallow[qp] = false;
  }

  // A token of the frame in work; the first one rides on its last payload command, if there is one.
  void expect_token(unsigned kind, unsigned qp, bool colour, bool end,
                    const decltype(pkg::token_t::body)& body) {
    pkg::token_t token{};
    token.kind = e<pkg::token_kind_e>(kind);
    token.qp = static_cast<decltype(token.qp)>(qp);
    token.colour = colour;
    token.packet_end = end;
    token.body = body;
    if (payload_open) {
      expected.back().has_token = true;
      expected.back().token = token;
      payload_open = false;
      return;
    }
    pkg::scatter_cmd_t c{};
    c.kind = e<pkg::scatter_kind_e>(2);
    c.token = token;
    expected.push_back(c);
  }
  void expect_payload(const pkg::scatter_cmd_t& c) {
    expected.push_back(c);
    payload_open = true;
  }
  bool payload_open = false;
  std::deque<pkg::scatter_cmd_t> expected;
};

// Commands compare by what their kind uses.
bool same(const pkg::scatter_cmd_t& got, const pkg::scatter_cmd_t& want) {
  if (got.kind != want.kind || got.has_token != want.has_token) return false;
  if (want.has_token && !(got.token == want.token)) return false;
  if (want.kind == pkg::SCATTER_PIECE || want.kind == pkg::SCATTER_ATOMIC) {
    return got.addr == want.addr && got.length == want.length && got.fn == want.fn &&
           got.packet_last == want.packet_last && got.qp == want.qp;
  }
  if (want.kind == e<pkg::scatter_kind_e>(1)) return true;
  return got.token == want.token;
}

std::string describe(const pkg::scatter_cmd_t& c) {
  std::ostringstream out;
  out << "kind " << static_cast<unsigned>(c.kind) << " token " << c.has_token << " {kind "
      << static_cast<unsigned>(c.token.kind) << " qp " << static_cast<unsigned>(c.token.qp)
      << " end " << c.token.packet_end << " body" << std::hex;
  for (const auto word : c.token.body) out << ' ' << static_cast<std::uint64_t>(word);
  out << "}";
  return out.str();
}

// The completion of a receive WQE that failed: whose it is, and why; nothing of the message.
pkg::completion_t failed(const pkg::completion_t& of, hwif::CqeStatus status,
                         hwif::VendorStatus vendor) {
  pkg::completion_t c{};
  c.cq = of.cq;
  c.qpn = of.qpn;
  c.wqe_index_or_cookie = of.wqe_index_or_cookie;
  c.src_qp_or_srq = of.src_qp_or_srq;
  c.opcode = static_cast<decltype(c.opcode)>(hwif::CqeOpcode::RECV);
  c.is_error = true;
  c.status = static_cast<std::uint8_t>(status);
  c.vendor_status = static_cast<std::uint8_t>(vendor);
  return c;
}

// Status of a local key that failed with `status` of the address check.
hwif::CqeStatus status_of(pkg::xlat_status_e status) {
  return status == pkg::xlat_status_e::XLAT_BUS_ERROR ? hwif::CqeStatus::LOC_QP_OP_ERR
                                                      : hwif::CqeStatus::LOC_PROT_ERR;
}
hwif::VendorStatus vendor_of(pkg::xlat_status_e status) {
  switch (status) {
    case pkg::xlat_status_e::XLAT_BAD_PD: return hwif::VendorStatus::KEY_PD;
    case pkg::xlat_status_e::XLAT_BAD_RIGHTS: return hwif::VendorStatus::KEY_RIGHTS;
    case pkg::xlat_status_e::XLAT_BAD_BOUNDS: return hwif::VendorStatus::KEY_BOUNDS;
    case pkg::xlat_status_e::XLAT_BUS_ERROR: return hwif::VendorStatus::TABLE_BUS;
    default: return hwif::VendorStatus::KEY_INVALID;
  }
}

// A receive WQE of `qp` in ERR is flushed, or there is none: one item without a frame.
void flush(Bench& bench, unsigned qp) {
  auto item = random_payload<pkg::rx_item_t>(bench.random);
  item.qp = static_cast<decltype(item.qp)>(qp);
  item.no_frame = true;
  item.last = true;
  item.has_piece = false;
  item.is_response = false;
  item.end_info.drop = true;
  item.end_info.completion_valid = bench.random.chance(0.8);
  item.end_info.respond_valid = false;
  item.end_info.ack_event_valid = bench.random.chance(0.8);
  item.end_info.error_valid = false;
  item.end_info.receive_in_use = item.end_info.completion_valid;
  bench.responder.push(item);
  const bool event = item.end_info.ack_event_valid;
  bool tells = item.end_info.completion_valid;
  if (tells && bench.swallow[qp]) tells = bench.swallow[qp] = false;
  if (tells) {
    bench.expect_token(kCompletion, qp, item.colour, !event, body_of(item.end_info.completion));
  }
  if (event) {
    bench.expect_token(kAckEvent, qp, item.colour, true, body_of(item.end_info.ack_event));
  } else if (!tells) {
    bench.expect_token(0, qp, item.colour, true, {});
  }
}

// One frame of QP `qp`: items in, expected commands out.
void frame(Bench& bench, unsigned qp, double fail) {
  Random& random = bench.random;
  pkg::rx_order_t order{};
  order.colour = random.chance(0.5);
  order.has_payload = random.chance(0.7);
  const auto kind = random.below(10);
  if (kind == 0) {
    order.target = e<pkg::rx_unit_e>(0);
    bench.order.push(order);
    if (order.has_payload) {
      pkg::scatter_cmd_t c{};
      c.kind = e<pkg::scatter_kind_e>(1);
      bench.expect_payload(c);
    }
    bench.expect_token(0, 0, order.colour, true, {});
    return;
  }
  const bool response = kind <= 4;
  order.target = e<pkg::rx_unit_e>(response ? 2 : 1);
  auto item = random_payload<pkg::rx_item_t>(random);
  item.qp = static_cast<decltype(item.qp)>(qp);
  item.is_response = response;
  item.no_frame = false;
  auto& end = item.end_info;
  const bool check_only = !response && !order.has_payload && random.chance(0.3);
  end.drop = order.has_payload && random.chance(0.15);
  const bool atomic = !response && order.has_payload && !end.drop && random.chance(0.15);
  end.unreliable = !response && !check_only && !atomic && random.chance(0.3);
  end.completion_valid = !response && !check_only && !atomic && random.chance(0.4);
  // a FIRST or MIDDLE has a WQE that does not complete with it
  end.receive_in_use = !response && !check_only && !atomic &&
                       (end.completion_valid || random.chance(0.4));
  end.completion.is_error = false;
  end.completion.opcode = static_cast<std::uint8_t>(
      random.chance(0.5) ? hwif::CqeOpcode::RECV_WRITE_IMM : hwif::CqeOpcode::RECV_IMM);
  if (random.chance(0.5)) end.respond.msn = end.nak_msn;       // in mid-message
  // a READ has no receive WQE
  if (end.completion_valid) end.respond.kind = pkg::respond_kind_e::RESPOND_ACK;
  // nor has what is placed a READ's answer, unless it is an atomic
  if (!check_only) end.respond.kind = pkg::respond_kind_e::RESPOND_ACK;
  if (atomic) end.respond.kind = pkg::respond_kind_e::RESPOND_READ;
  end.respond_valid = atomic || (!response && !end.unreliable && random.chance(0.6));
  end.ack_event_valid = response && random.chance(0.8);
  end.error_valid = random.chance(fail);
  end.error_event = end.error_valid && random.chance(0.5) ? 21 : 0;
  const bool pieced = check_only || (order.has_payload && !end.drop);
  // WRITE_IMM has a WQE and a remote key
  const bool local = response || (end.receive_in_use && random.chance(0.7));
  if (!local && !end.completion_valid) end.receive_in_use = false;
  const auto pieces = check_only || atomic ? 1 : pieced ? random.between(1, 4) : 0;

  std::vector<pkg::scatter_cmd_t> placed;
  bool bad = false;
  auto why = pkg::xlat_status_e::XLAT_OK;
  for (std::uint64_t n = 0; n < std::max<std::uint64_t>(pieces, 1); ++n) {
    item.last = n + 1 >= pieces;
    item.has_piece = pieces != 0;
    if (pieces != 0) {
      Piece p;
      item.piece = random_payload<pkg::piece_t>(random);
      item.piece.check_only = check_only;
      item.piece.access = e<pkg::access_e>(local ? 2 : check_only ? 3 : atomic ? 5 : 4);
      p.piece = item.piece;
      const bool fails = random.chance(fail);
      const auto answers = fails || check_only || atomic ? 1 : random.between(1, 2);
      for (std::uint64_t k = 1; k <= answers; ++k) {
        auto a = random_payload<pkg::xlat_rsp_t>(random);
        a.last = k == answers;
        a.status = e<pkg::xlat_status_e>(fails ? static_cast<unsigned>(random.between(1, 5)) : 0);
        p.answers.push_back(a);
        pkg::scatter_cmd_t c{};
        c.kind = e<pkg::scatter_kind_e>(0);
        c.qp = item.qp;
        c.fn = item.fn;
        c.addr = a.addr;
        c.length = a.length;
        c.packet_last = item.last && a.last;
        if (atomic) {
          const std::uint32_t imm = end.completion.imm_or_key;
          c.kind = pkg::SCATTER_ATOMIC;
          c.addr = (c.addr & ~std::uint64_t{1}) | imm >> 31;
          c.length = static_cast<std::uint16_t>(imm & (ROCI_CONFIG_WIDE ? 0xfff : 0xff));
        }
        placed.push_back(c);
      }
      if (fails && !bad) why = p.answers.back().status;
      bad |= fails;
      bench.asked.push_back(p);
    }
    (response ? bench.requester : bench.responder).push(item);
  }
  bench.order.push(order);

  const bool dead = bench.is_void[qp] || (response && bench.in_error[qp]);
  pkg::scatter_cmd_t drop{};
  drop.kind = e<pkg::scatter_kind_e>(1);
  if (dead || bad || end.drop || pieces == 0 || check_only) {
    if (order.has_payload) bench.expect_payload(drop);
  } else {
    for (const auto& c : placed) bench.expect_payload(c);
  }
  bench.want_dead += dead;
  if (!dead && !bad && !end.error_valid && !response && end.respond.msn != end.nak_msn) {
    const bool send = end.completion_valid &&
                      end.completion.opcode != static_cast<unsigned>(hwif::CqeOpcode::RECV_WRITE_IMM);
    const bool read = end.respond_valid && end.respond.kind == pkg::respond_kind_e::RESPOND_READ;
    ++(send     ? bench.want_sends
       : atomic ? bench.want_atomics
       : read   ? bench.want_reads
                : bench.want_writes);
  }
  if (dead) {
    if (end.completion_valid && !bench.swallow[qp]) {
      bench.expect_token(kCompletion, qp, order.colour, true,
                         body_of(failed(end.completion, hwif::CqeStatus::WR_FLUSH_ERR,
                                        hwif::VendorStatus::FLUSH)));
    } else {
      bench.expect_token(0, qp, order.colour, true, {});
    }
    if (end.completion_valid) bench.swallow[qp] = false;
    return;
  }

  bool completion_valid = end.completion_valid;
  auto completion = end.completion;
  bool respond_valid = end.respond_valid;
  auto respond = end.respond;
  bool ack_valid = end.ack_event_valid;
  auto ack = end.ack_event;
  if (bad && response) {
    ack_valid = true;
    ack.kind = e<pkg::ack_event_kind_e>(6);
    ack.psn = item.psn;
    ack.syndrome = static_cast<std::uint8_t>(status_of(why));
    ack.msn = static_cast<std::uint8_t>(vendor_of(why));
  } else if (bad && end.unreliable && !local) {
    ++bench.shrugged;
    completion = failed(completion, hwif::CqeStatus::LOC_ACCESS_ERR, vendor_of(why));
  } else if (bad) {
    respond_valid = !end.unreliable;
    respond.kind = e<pkg::respond_kind_e>(1);
    respond.psn = item.psn;
    respond.msn = end.nak_msn;
    respond.syndrome = local || why == pkg::xlat_status_e::XLAT_BUS_ERROR ? 0x63 : 0x62;
    if (local && end.receive_in_use) {
      completion = failed(completion, status_of(why), vendor_of(why));
      if (!completion_valid) bench.swallow[qp] = true;
      completion_valid = true;
    } else {
      completion = failed(completion, hwif::CqeStatus::WR_FLUSH_ERR, hwif::VendorStatus::FLUSH);
    }
  }
  const bool event = respond_valid || ack_valid;
  if (completion_valid) {
    bench.expect_token(kCompletion, qp, order.colour, !event, body_of(completion));
  }
  if (respond_valid) {
    bench.expect_token(kRespond, qp, order.colour, true, body_of(respond));
  } else if (ack_valid) {
    bench.expect_token(kAckEvent, qp, order.colour, true, body_of(ack));
  } else if (!completion_valid) {
    bench.expect_token(0, qp, order.colour, true, {});
  }
  if ((bad && (local || !end.unreliable)) || end.error_valid) {
    bench.is_void[qp] = true;
    // requester_ack asks for ERR in the turn of the READ
    if (response && !end.error_valid) return;
    pkg::state_error_t error{};
    error.qp = item.qp;
    error.event_valid = end.error_valid ? end.error_event != 0 : !local;
    error.event_type = end.error_valid ? end.error_event
                       : static_cast<std::uint8_t>(why == pkg::xlat_status_e::XLAT_BUS_ERROR
                                                       ? hwif::EqeType::QP_FATAL
                                                       : hwif::EqeType::QP_ACCESS_ERROR);
    bench.error.expect(error);
  }
}

// Lets everything come out and compares it.
void settle(Bench& bench) {
  for (int limit = 0; limit < 300000; ++limit) {
    if (bench.cmd.received().size() >= bench.expected.size() && bench.error.done()) break;
    bench.tick();
  }
  for (int n = 0; n < 100; ++n) bench.tick();
  REQUIRE(bench.cmd.received().size() == bench.expected.size());
  for (std::size_t n = 0; n < bench.expected.size(); ++n) {
    INFO("command " << n << " of " << bench.expected.size());
    INFO("got " << describe(bench.cmd.received()[n]) << "\nwant "
                << describe(bench.expected[n]));
    REQUIRE(same(bench.cmd.received()[n], bench.expected[n]));
  }
  REQUIRE(bench.error.done());
  REQUIRE(bench.sends == bench.want_sends);
  REQUIRE(bench.reads == bench.want_reads);
  REQUIRE(bench.atomics == bench.want_atomics);
  REQUIRE(bench.writes == bench.want_writes);
  REQUIRE(bench.dead == bench.want_dead);
  bench.cmd.received().clear();
  bench.expected.clear();
}

}  // namespace

TEST_CASE("frames become commands and tokens in order") {
  Random random;
  std::uint64_t shrugged = 0, atomics = 0;
  for (int round = 0; round < 12; ++round) {
    Bench bench(random);
    bench.order.stall(Stall::any(random));
    bench.responder.stall(Stall::any(random));
    bench.requester.stall(Stall::any(random));
    bench.xlat.stall(Stall::any(random));
    bench.answer.stall(Stall::any(random));
    bench.cmd.stall(Stall::any(random));
    bench.error.stall(Stall::any(random));
    bench.cmd.collect();
    const double fail = random.chance(0.3) ? 0.0 : 0.03;
    for (int burst = 0; burst < 8; ++burst) {
      for (std::size_t n = 0; n < scaled(80); ++n) {
        frame(bench, static_cast<unsigned>(random.below(8)), fail);
      }
      settle(bench);
      // flushes may pass frames of the other unit, so they get turns of their own here
      for (int n = 0; n < 3; ++n) {
        const auto qp = static_cast<unsigned>(random.below(8));
        if (bench.is_void[qp]) flush(bench, qp);
      }
      settle(bench);
      for (unsigned qp = 0; qp < 8; ++qp) {
        // what failed goes to ERR; others do so for reasons of their own
        if (!bench.in_error[qp] && random.chance(bench.is_void[qp] ? 0.5 : 0.1)) {
          bench.set_state(qp, kErr);
        } else if (random.chance(0.4)) {
          bench.set_state(qp, kReset);
          if (random.chance(0.7)) {
            bench.set_state(qp, kInit);
            bench.set_state(qp, kRts);
          }
        }
      }
    }
    shrugged += bench.shrugged;
    atomics += bench.want_atomics;
  }
  CHECK(shrugged > 3);
  CHECK(atomics > 50);
}

TEST_CASE("a SEND of one piece takes two cycles") {
  Random random;
  Bench bench(random);
  bench.cmd.collect();
  const int frames = 300;
  for (int n = 0; n < frames; ++n) {
    pkg::rx_order_t order{};
    order.target = e<pkg::rx_unit_e>(1);
    order.has_payload = true;
    bench.order.push(order);
    pkg::rx_item_t item{};
    item.last = true;
    item.has_piece = true;
    item.qp = static_cast<decltype(item.qp)>(n % 8);
    item.piece.length = 64;
    item.end_info.completion_valid = true;
    item.end_info.respond_valid = true;
    bench.responder.push(item);
    Piece p;
    p.piece = item.piece;
    pkg::xlat_rsp_t a{};
    a.last = true;
    a.length = 64;
    p.answers.push_back(a);
    bench.asked.push_back(p);
  }
  const auto start = bench.dut.cycle();
  while (bench.cmd.received().size() < 2 * frames) bench.tick();
  REQUIRE(bench.dut.cycle() - start < 2 * frames + 60);
}

TEST_CASE("flushes pass between packets and complete although the QP is void") {
  Random random;
  Bench bench(random);
  bench.responder.stall(Stall::any(random));
  bench.requester.stall(Stall::any(random));
  bench.order.stall(Stall::any(random));
  bench.xlat.stall(Stall::any(random));
  bench.cmd.stall(Stall::any(random));
  bench.cmd.collect();
  // QP 1 fails
  pkg::rx_order_t order{};
  order.target = e<pkg::rx_unit_e>(1);
  bench.order.push(order);
  pkg::rx_item_t item{};
  item.last = true;
  item.qp = 1;
  item.end_info.error_valid = true;
  bench.responder.push(item);
  pkg::state_error_t error{};
  error.qp = 1;
  bench.error.expect(error);
  // then its receives are flushed, while responses of QP 2 keep coming
  const unsigned count = 50;
  for (unsigned n = 0; n < count; ++n) {
    pkg::rx_item_t flush{};
    flush.no_frame = true;
    flush.last = true;
    flush.qp = 1;
    flush.colour = n & 1;
    flush.end_info.completion_valid = true;
    flush.end_info.completion.wqe_index_or_cookie = n;
    bench.responder.push(flush);
    pkg::rx_order_t o{};
    o.target = e<pkg::rx_unit_e>(2);
    bench.order.push(o);
    pkg::rx_item_t response{};
    response.qp = 2;
    response.is_response = true;
    response.end_info.ack_event_valid = true;
    for (unsigned k = 0; k < 3; ++k) {
      response.has_piece = true;
      response.last = k == 2;
      response.piece.length = 64;
      response.psn = n;
      bench.requester.push(response);
      Piece p;
      p.piece = response.piece;
      pkg::xlat_rsp_t a{};
      a.last = true;
      p.answers.push_back(a);
      bench.asked.push_back(p);
    }
  }
  unsigned flushed = 0;
  unsigned responses = 0;
  std::size_t seen = 0;
  for (int n = 0; n < 100000 && (flushed < count || responses < count); ++n) {
    bench.tick();
    for (; seen < bench.cmd.received().size(); ++seen) {
      const auto& c = bench.cmd.received()[seen];
      if (c.kind != e<pkg::scatter_kind_e>(2) && !c.has_token) continue;
      const auto& token = c.token;
      if (token.qp == 1 && token.kind == e<pkg::token_kind_e>(kCompletion)) {
        pkg::completion_t completion{};
        completion.wqe_index_or_cookie = flushed;
        REQUIRE(token.body == body_of(completion));
        REQUIRE(token.packet_end);
        REQUIRE(token.colour == (flushed & 1));
        ++flushed;
      }
      if (token.qp == 2) ++responses;
    }
  }
  REQUIRE(flushed == count);
  REQUIRE(responses == count);
  REQUIRE(bench.error.done());
}
