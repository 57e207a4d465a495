// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_respond_rules: operations on one row, case by case (order of READ responses and
// acknowledgements, duplicates, fatal NAKs, states), and a random sequence against a list of what is
// owed.
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "responder/responder_model.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
using namespace roci::test::responder;
namespace rs = roci::sv::responder_pkg;
using roci::sv::roci_hwif_pkg::cqe_status_e;     // the models need this package

/// The module with its row in C++.
struct Rules {
  Rules() { row.good_psn = 99; }
  rs::respond_result_t op(const rs::respond_op_t& o, bool hit = false, std::uint32_t packets = 0,
                          bool undone = false) {
    o.pack(dut->op_i);
    dut->state_i = state;
    row.pack(dut->row_i);
    dut->hit_i = hit;
    dut->entry_packets_i = packets;
    dut->undone_i = undone;
    dut.eval();
    row = rs::respond_row_t::unpack(dut->row_o);
    woke = dut->wake_o;
    return rs::respond_result_t::unpack(dut->result_o);
  }
  void event(rp::respond_kind_e kind, std::uint32_t psn, unsigned order, unsigned syndrome = 0x1f,
             bool error = false) {
    rs::respond_op_t o{};
    o.kind = rs::RESPOND_OP_EVENT;
    o.error = error;
    o.info.kind = kind;
    o.info.psn = psn;
    o.info.msn = psn & 0xff;
    o.info.syndrome = static_cast<std::uint8_t>(syndrome);
    o.info.entry = static_cast<decltype(o.info.entry)>(order & 0xff);
    op(o);
  }
  rs::respond_result_t walk(bool hit = false, std::uint32_t packets = 0, bool undone = false) {
    rs::respond_op_t o{};
    o.kind = rs::RESPOND_OP_WALK;
    return op(o, hit, packets, undone);
  }
  void atomic() {
    rs::respond_op_t o{};
    o.kind = rs::RESPOND_OP_ATOMIC;
    op(o);
  }
  void lower(unsigned ordinal, std::uint32_t packet) {
    rs::respond_op_t o{};
    o.kind = rs::RESPOND_OP_LOWER;
    o.ordinal = static_cast<std::uint8_t>(ordinal);
    o.packet = packet;
    op(o);
  }
  void left() {
    rs::respond_op_t o{};
    o.kind = rs::RESPOND_OP_LEFT;
    op(o);
  }
  Dut<DUT_CLASS> dut;
  rs::respond_row_t row{};
  rp::qp_state_e state = rp::QPS_RTS;
  bool woke = false;
};
}  // namespace

TEST_CASE("an ACK waits for the READs before it and goes before those behind it") {
  Rules r;
  r.event(rp::RESPOND_READ, 10, 0);
  CHECK(r.woke);
  r.event(rp::RESPOND_ACK, 11, 1);
  r.event(rp::RESPOND_READ, 14, 1);
  auto w = r.walk();
  CHECK(w.miss);
  CHECK(w.more);
  w = r.walk(true, 2);
  CHECK(w.emit);
  CHECK(w.is_read);
  CHECK(w.first);
  CHECK(!w.last);
  w = r.walk(true, 2);
  CHECK(!w.first);
  CHECK(w.last);
  CHECK(r.row.answered == 1);
  const auto psn = r.row.ack_psn;
  w = r.walk(true, 3);
  CHECK(w.emit);
  CHECK(!w.is_read);
  CHECK(psn == 11);
  CHECK(w.more);
  for (int n = 0; n < 3; ++n) w = r.walk(true, 3);
  CHECK(w.last);
  CHECK(!w.more);
  w = r.walk();
  CHECK(!w.emit);
  CHECK(!w.more);
}

TEST_CASE("acknowledgements: newer replaces, a duplicate's does not, fatal stays") {
  Rules r;
  r.event(rp::RESPOND_ACK, 5, 0);
  r.event(rp::RESPOND_ACK, 6, 0);
  r.event(rp::RESPOND_DUP_ACK, 6, 0);
  CHECK(r.row.ack_psn == 6);
  r.event(rp::RESPOND_NAK, 7, 0, 0x60);
  CHECK(r.row.ack_syndrome == 0x60);
  r.event(rp::RESPOND_DUP_ACK, 6, 0);
  CHECK(r.row.ack_syndrome == 0x60);
  r.event(rp::RESPOND_ACK, 7, 0);                 // what was missing came: the NAK is void
  CHECK(r.row.ack_syndrome == 0x1f);
  r.walk();
  r.left();
  r.event(rp::RESPOND_DUP_ACK, 7, 0);
  CHECK(r.row.ack_valid);
  r.event(rp::RESPOND_NAK, 8, 0, 0x61);
  CHECK(r.row.closed);
  r.event(rp::RESPOND_ACK, 9, 0);
  r.event(rp::RESPOND_READ, 9, 0);
  r.lower(255, 0);
  CHECK(r.row.ack_psn == 8);
  CHECK(r.row.ack_syndrome == 0x61);
  CHECK(r.row.allowed == 0);
  r.state = rp::QPS_ERR;                          // still sent in ERR
  CHECK(r.walk().emit);
  CHECK(!r.walk().emit);
  r.event(rp::RESPOND_NAK, 8, 0, 0x61);
  CHECK(!r.woke);
}

TEST_CASE("a duplicate READ lowers the cursor and starts with FIRST; answered does not fall") {
  Rules r;
  r.row.allowed = r.row.cursor = r.row.answered = 254;
  for (unsigned n = 0; n < 3; ++n) r.event(rp::RESPOND_READ, 10 + n, 254 + n);
  for (unsigned n = 0; n < 3; ++n) {
    const auto w = r.walk(true, 1);
    CHECK(w.last);
    CHECK(!w.again);
  }
  CHECK(r.row.answered == 1);                     // modulo 256
  r.lower(255, 4);
  CHECK(r.woke);
  CHECK(r.row.cursor == 255);
  auto w = r.walk(true, 6);
  CHECK(w.first);
  CHECK(!w.last);
  CHECK(w.again);                                 // the peer may have had it
  w = r.walk(true, 6);
  CHECK(!w.first);
  CHECK(w.last);
  CHECK(w.again);
  CHECK(r.row.answered == 1);
  r.lower(0, 3);                                  // not before the cursor: will come anyway
  CHECK(r.row.cursor == 0);
  CHECK(r.row.packet == 0);
  r.lower(0, 0);
  CHECK(!r.woke);
  rs::respond_op_t skip{};
  skip.kind = rs::RESPOND_OP_SKIP;
  skip.ordinal = 5;
  r.op(skip);
  CHECK(r.row.cursor == 0);
  skip.ordinal = 0;
  r.op(skip);
  CHECK(r.row.cursor == 1);
  r.op(skip);
  CHECK(r.row.cursor == 1);
}

TEST_CASE("failures: the NAK takes the place of the response, ERR is asked for once") {
  Rules r;
  r.event(rp::RESPOND_READ, 10, 0);
  r.event(rp::RESPOND_READ, 20, 1);
  r.event(rp::RESPOND_ACK, 21, 2);
  r.walk(true, 4);
  rs::respond_op_t fatal{};
  fatal.kind = rs::RESPOND_OP_FATAL;
  fatal.info.psn = 11;
  fatal.info.msn = 3;
  fatal.info.syndrome = 0x62;
  fatal.by_access = true;
  r.op(fatal);
  CHECK(r.woke);
  CHECK(r.row.error_access);
  const auto nak = r.row;
  auto w = r.walk();
  CHECK(w.emit);
  CHECK(w.error);
  CHECK(!w.is_read);
  CHECK(nak.ack_psn == 11);
  CHECK(nak.ack_msn == 3);
  CHECK(nak.ack_syndrome == 0x62);
  CHECK(!w.more);
  fatal.info.psn = 12;
  r.op(fatal);                                    // a second refusal of the same stream
  CHECK(!r.woke);
  CHECK(!r.walk().error);

  Rules t;
  t.event(rp::RESPOND_ACK, 120, 0);
  t.event(rp::RESPOND_ACK, 125, 0, 0x1f, true);   // a write between failed
  CHECK(t.row.ack_psn == 121);
  CHECK(t.row.ack_syndrome == 0x63);
  w = t.walk();
  CHECK(w.emit);
  CHECK(w.error);
  CHECK(!t.row.error_access);
}

TEST_CASE("an atomic that is not done ends the walk, what is behind it waits; done, it brings it back") {
  Rules r;
  r.event(rp::RESPOND_READ, 10, 0);               // the atomic
  r.event(rp::RESPOND_READ, 12, 1);
  r.event(rp::RESPOND_ACK, 13, 2);
  CHECK(r.walk().miss);
  auto w = r.walk(true, 1, true);
  CHECK(!w.emit);
  CHECK(!w.more);
  CHECK(!w.miss);
  CHECK(r.row.cursor == 0);
  r.lower(0, 0);                                  // its duplicate: nothing new
  CHECK(!r.woke);
  r.atomic();
  CHECK(r.woke);
  w = r.walk(true, 1);
  CHECK(w.emit);
  CHECK(w.is_read);
  CHECK(w.last);
  CHECK(w.more);
  CHECK(r.row.answered == 1);
  r.state = rp::QPS_RESET;
  r.atomic();
  CHECK(!r.woke);
}

TEST_CASE("an atomic that failed: the NAK goes in its place, behind the READs before it") {
  Rules r;
  r.event(rp::RESPOND_READ, 11, 0);
  r.event(rp::RESPOND_READ, 12, 1);               // the atomic
  r.event(rp::RESPOND_READ, 13, 2);
  r.event(rp::RESPOND_ACK, 14, 3);
  r.walk(true, 2);
  rs::respond_op_t fatal{};
  fatal.kind = rs::RESPOND_OP_FATAL;
  fatal.ordinal = 1;
  fatal.info.psn = 12;
  fatal.info.msn = 1;
  fatal.info.syndrome = 0x63;
  r.op(fatal);
  CHECK(r.woke);
  r.state = rp::QPS_ERR;
  auto w = r.walk(true, 2);
  CHECK(w.is_read);
  CHECK(w.last);
  CHECK(!w.first);
  CHECK(w.more);
  CHECK(r.row.ack_psn == 12);
  w = r.walk();
  CHECK(w.emit);
  CHECK(!w.is_read);
  CHECK(!w.more);
  CHECK(!r.walk(true, 1).emit);                   // nothing behind it
}

TEST_CASE("states: nothing in RESET, in ERR only what belongs to a fatal NAK") {
  Rules r;
  r.state = rp::QPS_RESET;
  r.event(rp::RESPOND_ACK, 5, 0);
  CHECK(!r.row.ack_valid);
  r.state = rp::QPS_ERR;
  r.event(rp::RESPOND_READ, 5, 0);
  CHECK(!r.walk(true, 1).emit);
  CHECK(r.row.allowed == 1);                      // kept: a fatal NAK may follow
  r.event(rp::RESPOND_NAK, 6, 1, 0x61);
  auto w = r.walk(true, 1);
  CHECK(w.is_read);
  w = r.walk();
  CHECK(w.emit);
  CHECK(!w.is_read);
  r.row = {};
  r.state = rp::QPS_INIT;
  r.event(rp::RESPOND_ACK, 5, 0);
  CHECK(!r.walk().emit);
}

TEST_CASE("an ACK waits for the one before it to leave, unless a READ is behind it") {
  Rules r;
  r.left();                                       // nothing is owed
  CHECK(!r.woke);
  r.event(rp::RESPOND_ACK, 100, 0);
  CHECK(r.walk().emit);
  CHECK(r.row.ack_leaving);
  r.event(rp::RESPOND_ACK, 101, 0);
  auto w = r.walk();
  CHECK(!w.emit);
  CHECK(!w.more);                                 // the report brings it back
  CHECK(r.row.ack_valid);
  r.event(rp::RESPOND_ACK, 102, 0);
  CHECK(!r.walk().emit);
  r.left();
  CHECK(r.woke);
  CHECK(r.row.ack_psn == 102);
  CHECK(r.walk().emit);
  CHECK(r.row.ack_leaving);

  r.event(rp::RESPOND_ACK, 103, 0);
  CHECK(!r.walk().emit);
  r.event(rp::RESPOND_READ, 104, 0);              // closes it
  w = r.walk();
  CHECK(w.emit);
  CHECK(!w.is_read);
  CHECK(w.more);
  r.event(rp::RESPOND_ACK, 105, 1);               // behind the READ
  w = r.walk(true, 1);
  CHECK(w.is_read);
  CHECK(w.more);
  w = r.walk();
  CHECK(!w.emit);
  CHECK(!w.more);
  for (const unsigned nak : {0x20u, 0x3fu, 0x60u, 0x61u}) {
    r.event(rp::RESPOND_NAK, 106, 1, nak);
    CHECK(r.walk().emit);
    CHECK(r.row.ack_leaving);
  }
  r.state = rp::QPS_RESET;                        // also then
  r.left();
  CHECK(!r.row.ack_leaving);
  CHECK(!r.woke);
}

TEST_CASE("random tokens and walks: packets in PSN order, nothing lost") {
  Random random;
  for (std::size_t run = 0; run < scaled(300); ++run) {
    Rules r;
    std::uint32_t psn = 100;
    std::map<unsigned, std::uint32_t> packets;    // per READ
    unsigned reads = 0, walked = 0;
    std::uint32_t owed = 0, told = 0;
    for (int n = 0; n < 200; ++n) {
      if (random.chance(0.1)) r.left();
      if (random.chance(0.4)) {
        if (random.chance(0.3) && reads - walked < 100) {
          packets[reads] = static_cast<std::uint32_t>(random.between(1, 4));
          psn += packets[reads];
          r.event(rp::RESPOND_READ, psn - 1, reads++);
        } else {
          owed = psn;
          r.event(rp::RESPOND_ACK, psn++, reads);
        }
      } else {
        const auto before = r.row;
        const auto w = r.walk(true, packets.count(walked) ? packets[walked] : 1);
        if (w.emit && w.is_read) {
          if (w.last) ++walked;
        } else if (w.emit) {
          REQUIRE(before.ack_psn > told);
          REQUIRE(before.ack_order == (walked & 0xff));
          told = before.ack_psn;
        } else {
          REQUIRE((told == owed || before.ack_leaving));
          REQUIRE(walked == reads);
        }
        if (w.emit) {
          REQUIRE(w.more == (walked != reads || r.row.ack_valid));
        } else {
          REQUIRE(!w.more);
        }
      }
    }
  }
}
