// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_read_data: random responses, ACKs and NAKs of several QPs against a model in plain
// packet numbers; scenarios 2.4/3 (implied NAK), 20 (partial READ), 11 (zero length), 40 (QP not
// live); rates. model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>

#include "requester/requester_bench.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace cfg = roci::sv::roci_config_pkg;
namespace hwif = roci::hwif;

namespace {

constexpr unsigned kFirst = 0x0d, kMiddle = 0x0e, kLast = 0x0f, kOnly = 0x10, kAck = 0x11,
                   kAtomicAck = 0x12;

struct Read {
  std::int64_t first = 0;          // packet number
  std::uint32_t length = 0;
  bool atomic = false;
  pkg::read_record_write_t record{};
};

struct Qp {
  unsigned base = 0, log2 = 2, mtu = 1, pd = 0;
  std::deque<Read> reads;          // not complete, oldest first
  unsigned ordinal = 0;            // of the next READ
  std::int64_t next = 0;           // packet number of the next request
  std::uint32_t received = 0;      // of the oldest
  std::uint32_t bytes() const { return 128u << mtu; }
  std::int64_t expected() const { return reads.front().first + received / bytes(); }
};

struct Bench {
  Dut<DUT_CLASS> dut;
  Source<pkg::rx_packet_t> packet;
  Source<pkg::read_record_write_t> record;
  Sink<pkg::rx_item_t> item;
  std::map<unsigned, Qp> qps;
  static constexpr std::uint32_t kBase = 0xfffff8;
  std::map<std::string, unsigned> counters, expected_counters;

  struct Watch : Agent {
    Bench& bench;
    explicit Watch(Bench& b) : bench(b) {}
    void sample() override {
      const auto c = pkg::response_counters_t::unpack(bench.dut->counters_o);
      bench.counters["drop"] += c.rx_drop_response;
      bench.counters["ack"] += c.rx_ack;
      bench.counters["sequence"] += c.rx_nak_sequence;
      bench.counters["rnr"] += c.rx_nak_rnr;
      bench.counters["request"] += c.rx_nak_invalid_request;
      bench.counters["access"] += c.rx_nak_remote_access;
      bench.counters["operational"] += c.rx_nak_remote_operational;
    }
    void drive() override {}
  } watch{*this};

  explicit Bench(std::uint64_t salt)
      : dut(salt),
        packet("packet", dut->packet_valid_i, dut->packet_ready_o, dut->packet_i),
        record("record", dut->read_record_valid_i, dut->read_record_ready_o,
               dut->read_record_i),
        item("item", dut->item_valid_o, dut->item_ready_i, dut->item_o) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    dut.reset();
    for (Agent* agent : std::initializer_list<Agent*>{&packet, &record, &item, &watch}) {
      dut.attach(*agent);
    }
    for (const char* name :
         {"drop", "ack", "sequence", "rnr", "request", "access", "operational"}) {
      counters[name] = expected_counters[name] = 0;
    }
  }

  static std::uint32_t psn(std::int64_t number) { return psn_add(kBase, number); }

  std::uint64_t access(bool write, unsigned qp, unsigned word, std::uint64_t data = 0) {
    return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { dut.tick(); }, static_cast<unsigned>(hwif::CtxColumn::QP_READ), write, qp,
        word, data);
  }
  void start(unsigned number, unsigned mtu) {
    Qp q;
    q.base = (number % 4) * 4;
    q.mtu = mtu;
    q.pd = (number * 5 + 1) % (1u << pkg::pd_t_bits);
    qps[number] = q;
    access(true, number, 0,
           q.base | std::uint64_t{q.log2} << 16u | std::uint64_t{mtu} << 20u |
               std::uint64_t{q.pd} << 24u);
  }

  /// The packetizer sends a READ (or sends one again, `again` = number among the incomplete ones).
  void read(Random& random, unsigned number, std::uint32_t length, bool atomic = false) {
    Qp& q = qps[number];
    Read r;
    r.first = q.next;
    r.atomic = atomic;
    r.length = length;
    q.next += std::max<std::int64_t>(1, (length + q.bytes() - 1) / q.bytes());
    auto& w = r.record;
    w = random_payload<pkg::read_record_write_t>(random);
    w.qp = static_cast<decltype(w.qp)>(number);
    w.ordinal = static_cast<std::uint8_t>(q.ordinal);
    w.slot = static_cast<decltype(w.slot)>(q.base + q.ordinal % 4);
    w.first_psn = psn(r.first);
    w.last_psn = psn(q.next - 1);
    w.length = length;
    w.atomic = atomic;
    std::uint32_t left = length;
    for (unsigned n = 0; n < cfg::MAX_SGE_RD; ++n) {
      const bool last = n + 1 == cfg::MAX_SGE_RD;
      const std::uint32_t take = last ? left : static_cast<std::uint32_t>(random.below(left + 1));
      w.sges[n].length = take;
      left -= take;
    }
    ++q.ordinal;
    settle();                        // earlier packets were judged without it
    record.push(w);
    q.reads.push_back(r);
    dut.run_until([&] { return record.empty(); }, "record");
    dut.tick(3);
  }

  pkg::rx_packet_t response(unsigned number, unsigned opcode, std::int64_t at,
                            std::uint32_t length, unsigned syndrome = 0) {
    pkg::rx_packet_t p = random_payload<pkg::rx_packet_t>(dut.random());
    p.qp = static_cast<decltype(p.qp)>(number);
    p.qp_type = pkg::QPT_RC;
    p.state = dut.random().chance(0.5) ? pkg::QPS_RTS : pkg::QPS_SQD;
    p.headers.opcode = static_cast<std::uint8_t>(opcode);
    p.headers.psn = psn(at);
    p.headers.payload_length = static_cast<std::uint16_t>(length);
    p.headers.syndrome = static_cast<std::uint8_t>(syndrome);
    return p;
  }

  pkg::rx_item_t item_of(const pkg::rx_packet_t& p) {
    pkg::rx_item_t t{};
    t.colour = p.colour;
    t.qp = p.qp;
    t.fn = p.fn;
    t.pd = static_cast<decltype(t.pd)>(qps[p.qp].pd);
    t.psn = p.headers.psn;
    t.is_response = true;
    t.last = true;
    t.end_info.drop = true;
    return t;
  }
  void dropped(const pkg::rx_packet_t& p) {
    auto t = item_of(p);
    t.end_info.ack_event.psn = p.headers.psn;
    t.end_info.ack_event.msn = p.headers.msn;
    t.end_info.ack_event.syndrome = p.headers.syndrome;
    item.expect(t);
    ++expected_counters["drop"];
  }
  void event(const pkg::rx_packet_t& p, pkg::ack_event_kind_e kind, std::uint32_t at,
             unsigned syndrome, std::uint32_t msn) {
    auto t = item_of(p);
    t.end_info.ack_event_valid = true;
    t.end_info.ack_event.kind = kind;
    t.end_info.ack_event.psn = at;
    t.end_info.ack_event.syndrome = static_cast<std::uint8_t>(syndrome);
    t.end_info.ack_event.msn = msn;
    item.expect(t);
  }
  void implied(const pkg::rx_packet_t& p, std::int64_t expected) {
    event(p, pkg::ACK_EVENT_IMPLIED_NAK, psn(expected), p.headers.syndrome, p.headers.psn);
  }

  /// Sends a packet whose number is `at`; what must come out follows from the rules.
  void send(const pkg::rx_packet_t& p, std::int64_t at) {
    packet.push(p);
    Qp& q = qps[p.qp];
    const unsigned opcode = p.headers.opcode & 0x1f;
    const unsigned syndrome = p.headers.syndrome;
    const bool live = p.qp_type == pkg::QPT_RC &&
                      (p.state == pkg::QPS_RTS || p.state == pkg::QPS_SQD);
    if (!live) return dropped(p);
    const bool out = !q.reads.empty();
    if ((opcode >= kFirst && opcode <= kOnly) || opcode == kAtomicAck) {
      if (!out || at < q.expected()) return dropped(p);
      const std::uint32_t left = q.reads.front().length - q.received;
      const bool last = left <= q.bytes();
      const bool says_last = opcode == kLast || opcode == kOnly || opcode == kAtomicAck;
      const bool good = opcode == kMiddle || (syndrome >> 5u) == 0;
      const bool fits = q.reads.front().atomic == (opcode == kAtomicAck);
      if (at > q.expected() || !good || last != says_last || !fits) {
        return implied(p, q.expected());
      }
      if (p.headers.payload_length != std::min(left, q.bytes())) {
        return event(p, pkg::ACK_EVENT_LOCAL_ERROR, p.headers.psn,
                     static_cast<unsigned>(hwif::CqeStatus::BAD_RESP_ERR),
                     static_cast<unsigned>(hwif::VendorStatus::RESPONSE_LENGTH));
      }
      place(p, q);
      q.received += p.headers.payload_length;
      if (last) {
        q.reads.pop_front();
        q.received = 0;
      }
      return;
    }
    if (opcode == kAck) {
      const std::map<unsigned, std::pair<const char*, pkg::ack_event_kind_e>> naks = {
          {0x60, {"sequence", pkg::ACK_EVENT_NAK_SEQUENCE}},
          {0x61, {"request", pkg::ACK_EVENT_NAK_FATAL}},
          {0x62, {"access", pkg::ACK_EVENT_NAK_FATAL}},
          {0x63, {"operational", pkg::ACK_EVENT_NAK_FATAL}}};
      pkg::ack_event_kind_e kind;
      if ((syndrome & 0xe0u) == 0) {
        kind = pkg::ACK_EVENT_ACK;
        ++expected_counters["ack"];
      } else if ((syndrome & 0xe0u) == 0x20) {
        kind = pkg::ACK_EVENT_RNR;
        ++expected_counters["rnr"];
      } else if (naks.count(syndrome)) {
        kind = naks.at(syndrome).second;
        ++expected_counters[naks.at(syndrome).first];
      } else {
        return dropped(p);
      }
      if (out && (at > q.expected() || (at == q.expected() && kind == pkg::ACK_EVENT_ACK))) {
        return implied(p, q.expected());
      }
      return event(p, kind, p.headers.psn, syndrome, p.headers.msn);
    }
    dropped(p);
  }

  void place(const pkg::rx_packet_t& p, const Qp& q) {
    auto t = item_of(p);
    t.end_info.drop = false;
    t.end_info.ack_event_valid = true;
    t.end_info.ack_event.kind = pkg::ACK_EVENT_READ;
    t.end_info.ack_event.psn = p.headers.psn;
    t.end_info.ack_event.syndrome = p.headers.syndrome;
    std::uint64_t skip = q.received;
    std::uint32_t left = p.headers.payload_length;
    if (left == 0) item.expect(t);
    t.has_piece = left != 0;
    t.piece.access = pkg::ACCESS_LOCAL_WRITE;
    for (unsigned n = 0; n < cfg::MAX_SGE_RD && left; ++n) {
      const auto& sge = q.reads.front().record.sges[n];
      if (skip >= sge.length) {
        skip -= sge.length;
        continue;
      }
      t.piece.key = sge.lkey;
      t.piece.va = sge.va + skip;
      t.piece.length =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(sge.length - skip, left));
      left -= t.piece.length;
      t.last = left == 0;
      item.expect(t);
      skip = 0;
    }
  }
  void settle() {
    dut.run_until([&] { return packet.empty() && item.done(); }, "items");
    dut.tick(4);
  }
};

}  // namespace

TEST_CASE("random responses, acknowledgements and nonsense follow the rules") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    Bench bench(random());
    bench.packet.stall(Stall::any(random));
    bench.item.stall(Stall::any(random));
    for (unsigned qp = 0; qp < 4; ++qp) {
      bench.start(qp, static_cast<unsigned>(random.between(1, 5)));
    }
    for (std::size_t n = 0; n < scaled(1000); ++n) {
      const auto number = static_cast<unsigned>(random.below(4));
      Qp& q = bench.qps[number];
      if (q.reads.size() < 4 && random.chance(0.15)) {
        const std::uint64_t limits[] = {1, 64, q.bytes() + 1ull, 6ull * q.bytes()};
        const auto length = static_cast<std::uint32_t>(random.below(limits[random.below(4)]));
        const bool atomic = random.chance(0.3);
        bench.read(random, number, atomic ? 8 : length, atomic);
      }
      if (!q.reads.empty() && random.chance(0.05)) {     // a refetch writes the records again
        for (const auto& r : q.reads) bench.record.push(r.record);
      }
      if (random.chance(0.05)) q.next += static_cast<std::int64_t>(random.below(4));
      const std::int64_t base = q.reads.empty() ? q.next : q.expected();
      std::int64_t at = base;
      if (random.chance(0.4)) at += static_cast<std::int64_t>(random.below(9)) - 4;
      if (random.chance(0.01)) at += 0x700000;
      unsigned opcode = kAck;
      std::uint32_t length = 0;
      unsigned syndrome = static_cast<unsigned>(
          random.chance(0.7) ? random.below(32) : random.chance(0.5) ? 0x60 + random.below(6)
                                                                     : random.below(256));
      if (random.chance(0.7)) {
        const std::uint32_t left = q.reads.empty() ? 10 : q.reads.front().length - q.received;
        const bool last = left <= q.bytes();
        opcode = last ? kLast : kFirst;
        if (random.chance(0.5)) opcode = last ? kOnly : kMiddle;
        if (!q.reads.empty() && q.reads.front().atomic) opcode = kAtomicAck;
        if (random.chance(0.05)) opcode = kFirst + static_cast<unsigned>(random.below(6));
        length = std::min(left, q.bytes());
        if (random.chance(0.9)) syndrome &= 31u;
        if (random.chance(0.01)) length = static_cast<std::uint32_t>(random.below(4096));
      } else if (random.chance(0.05)) {
        opcode = static_cast<unsigned>(random.below(13));
      } else if (random.chance(0.1)) {
        // of the right size and at the right place, but perhaps nobody asked for it
        const std::uint32_t left = q.reads.empty() ? 8 : q.reads.front().length - q.received;
        opcode = kAtomicAck;
        length = std::min(left, q.bytes());
      }
      auto p = bench.response(number, opcode, at, length, syndrome);
      if (random.chance(0.03)) p.state = static_cast<pkg::qp_state_e>(random.below(7));
      if (random.chance(0.02)) p.qp_type = static_cast<pkg::qp_type_e>(random.below(4));
      bench.send(p, at);
      if (random.chance(0.02)) {
        bench.settle();
        const auto row = bench.access(false, number, 1);
        const unsigned head = (q.ordinal - static_cast<unsigned>(q.reads.size())) & 0xffu;
        CHECK(row == (head | (q.ordinal & 0xffu) << 8u | std::uint64_t{q.received} << 32u));
        CHECK(bench.access(false, number, 0) ==
              (q.base | std::uint64_t{q.log2} << 16u | std::uint64_t{q.mtu} << 20u |
               std::uint64_t{q.pd} << 24u));
      }
      if (random.chance(0.005)) {                        // the QP's next life
        bench.settle();
        bench.start(number, static_cast<unsigned>(random.between(1, 5)));
      }
    }
    bench.settle();
    CHECK(bench.counters == bench.expected_counters);
  }
}

TEST_CASE("a lost response is asked for, and it alone (scenario 20)") {
  Random random;
  Bench bench(7);
  bench.start(1, 3);
  bench.read(random, 1, 5 * 1024 + 1);                   // packets 0..5
  bench.send(bench.response(1, kFirst, 0, 1024), 0);
  bench.send(bench.response(1, kMiddle, 1, 1024), 1);
  bench.send(bench.response(1, kMiddle, 3, 1024), 3);    // 2 is missing
  bench.send(bench.response(1, kMiddle, 4, 1024), 4);
  // asked for again, the responses start with FIRST and end with LAST, or each is ONLY or MIDDLE
  bench.send(bench.response(1, kFirst, 2, 1024), 2);
  bench.send(bench.response(1, kMiddle, 1, 1024), 1);    // an old one
  bench.send(bench.response(1, kFirst, 3, 1024), 3);
  bench.send(bench.response(1, kMiddle, 4, 1024), 4);
  bench.send(bench.response(1, kOnly, 5, 1), 5);
  bench.settle();
  CHECK(bench.qps[1].reads.empty());
}

TEST_CASE("an atomic acknowledgement answers an atomic only, and only it does (wire.md 2.9)") {
  Random random;
  Bench bench(10);
  bench.start(3, 1);
  bench.read(random, 3, 8, true);                        // packet 0
  bench.read(random, 3, 8);                              // packet 1
  bench.read(random, 3, 8, true);                        // packet 2
  bench.send(bench.response(3, kAck, 0, 0, 0x1f), 0);    // implied NAK
  bench.send(bench.response(3, kOnly, 0, 8), 0);         // a READ response for an atomic: implied NAK
  bench.send(bench.response(3, kAtomicAck, 1, 8), 1);    // packet 0 was lost: implied NAK
  bench.send(bench.response(3, kAck, 0, 0, 0x63), 0);    // a NAK for the atomic passes
  bench.send(bench.response(3, kAtomicAck, 0, 8), 0);
  bench.send(bench.response(3, kAtomicAck, 0, 8), 0);    // a duplicate
  bench.send(bench.response(3, kAtomicAck, 1, 8), 1);    // an atomic's answer for a READ: implied NAK
  bench.send(bench.response(3, kOnly, 1, 8), 1);
  bench.send(bench.response(3, kAtomicAck, 2, 4), 2);    // of a length that no atomic has
  bench.send(bench.response(3, kAtomicAck, 2, 8, 0x20), 2);   // its AETH does not acknowledge
  bench.send(bench.response(3, kAtomicAck, 2, 8), 2);
  bench.settle();
  CHECK(bench.qps[3].reads.empty());
}

TEST_CASE("zero-length READ; ACKs before, at and behind a READ (scenarios 3, 11)") {
  Random random;
  Bench bench(8);
  bench.start(2, 3);
  bench.qps[2].next = 10;
  bench.read(random, 2, 0);                              // packet 10
  bench.send(bench.response(2, kAck, 9, 0, 0x1f), 9);    // passes
  bench.send(bench.response(2, kAck, 10, 0, 0x1f), 10);  // implied NAK
  bench.send(bench.response(2, kAck, 11, 0, 0x1f), 11);  // implied NAK
  bench.send(bench.response(2, kAck, 10, 0, 0x62), 10);  // a NAK for the READ passes
  bench.send(bench.response(2, kAck, 11, 0, 0x60), 11);  // behind it: implied NAK
  bench.send(bench.response(2, kOnly, 10, 0), 10);
  bench.send(bench.response(2, kAck, 11, 0, 0x1f), 11);  // passes now
  bench.settle();
  CHECK(bench.qps[2].reads.empty());
}

TEST_CASE("rates: small responses of one QP every two cycles, 4 KB ones as fast as the wire") {
  Random random;
  for (const bool small : {true, false}) {
    Bench bench(9);
    bench.start(0, 5);
    const std::uint32_t length = small ? 64 : 4096;
    const unsigned count = 64;
    if (small) {
      for (unsigned n = 0; n < 4; ++n) bench.read(random, 0, length);
    } else {
      bench.read(random, 0, length * count);
    }
    std::uint64_t start = bench.dut.cycle();
    if (small) {
      // four outstanding, the next one is sent when one completes
      std::uint64_t cycles = 0;
      for (unsigned n = 0; n < count / 4; ++n) {
        while (bench.qps[0].reads.size() < 4) bench.read(random, 0, length);
        for (unsigned k = 0; k < 4; ++k) {
          const auto at = bench.qps[0].expected();
          bench.send(bench.response(0, kOnly, at, length), at);
        }
        start = bench.dut.cycle();
        bench.dut.run_until([&] { return bench.packet.empty(); }, "packets");
        cycles += bench.dut.cycle() - start;
        bench.settle();
      }
      CHECK(static_cast<double>(cycles) / count <= 4.0);
      WARN(ROCI_CONFIG_NAME << ": cycles per small response, bursts of 4: "
                            << static_cast<double>(cycles) / count);
    } else {
      for (unsigned n = 0; n < count; ++n) {
        bench.send(bench.response(0, n == 0 ? kFirst : n + 1 == count ? kLast : kMiddle, n, length),
                   n);
      }
      bench.dut.run_until([&] { return bench.item.done(); }, "items");
      const double rate = static_cast<double>(bench.dut.cycle() - start) / count;
      CHECK(rate <= 66.0);
      WARN(ROCI_CONFIG_NAME << ": cycles per 4 KB response: " << rate);
    }
  }
}
