// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_packetizer alone, against the packets of send_model.hpp: every item, record and sent
// pulse exactly; resumption at any packet of messages up to 2^31 bytes; each reason to stall with
// its rewind point, before and inside a message; errors, flushes, quantum, fence; cycles per packet.
// (With scheduler and fetch, random: requester_send_path_test.cpp.)
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <optional>

#include "harness/harness.hpp"
#include "requester/send_model.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
using namespace roci::test::send;

namespace {

constexpr unsigned kQpBits = ROCI_CONFIG_WIDE ? 10 : 6;
constexpr unsigned kTx = static_cast<unsigned>(roci::hwif::CtxColumn::QP_TX);
constexpr unsigned kDyn = static_cast<unsigned>(roci::hwif::CtxColumn::QP_TX_DYN);
constexpr unsigned kTuning = static_cast<unsigned>(roci::hwif::CtxColumn::TUNING);
constexpr auto kStall = static_cast<pkg::rewind_kind_e>(0);
constexpr auto kYield = static_cast<pkg::rewind_kind_e>(1);
enum State { kReset, kInit, kRtr, kRts, kSqd, kSqe, kErr };
enum Kind { kKindSend, kKindRead, kKindAtomic, kKindLocal, kKindNop, kKindFlush };

// What the test keeps of a QP: how the WQEs that it pushes will come out.
struct Qp {
  Context ctx;
  unsigned number = 0;
  std::uint8_t epoch = 0;
  std::uint16_t index = 0;                   // of the next block
  std::uint32_t psn = 0, max_psn = 0;
  std::uint8_t ordinal = 0;
  std::uint64_t ring = 0;
  pkg::ack_state_t ack{};
};

struct Bench : Agent {
  Dut<DUT_CLASS> dut;
  Random& random;
  Source<pkg::wqe_block_t> block;
  Sink<pkg::inflight_write_t> inflight;
  Sink<pkg::read_record_write_t> read_record;
  Sink<pkg::local_error_t> local_error;
  Sink<pkg::state_error_t> state_error;
  Sink<pkg::rewind_req_t> rewind;
  Sink<pkg::tx_item_t> item;
  std::deque<pkg::sent_t> sent;              // expected
  std::uint64_t resent = 0, resent_expected = 0;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> records_due;
  std::uint64_t items_expected = 0, inflight_expected = 0, read_expected = 0;
  std::deque<pkg::epoch_bcast_t> epochs;     // to broadcast, one per cycle
  unsigned window_log2 = 18;
  int colour = 0;

  explicit Bench(Random& r)
      : dut(r()), random(r), block("block", dut->block_valid_i, dut->block_ready_o, dut->block_i),
        inflight("inflight", dut->inflight_valid_o, dut->inflight_ready_i, dut->inflight_o),
        read_record("read_record", dut->read_record_valid_o, dut->read_record_ready_i,
                    dut->read_record_o),
        local_error("local_error", dut->local_error_valid_o, dut->local_error_ready_i,
                    dut->local_error_o),
        state_error("state_error", dut->state_error_valid_o, dut->state_error_ready_i,
                    dut->state_error_o),
        rewind("rewind", dut->rewind_valid_o, dut->rewind_ready_i, dut->rewind_o),
        item("item", dut->item_valid_o, dut->item_ready_i, dut->item_o) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    pkg::epoch_bcast_t{}.pack(dut->epoch_i);
    pkg::ack_state_t{}.pack(dut->ack_state_i);
    pkg::state_bcast_t{}.pack(dut->state_i);
    pkg::rnr_bcast_t{}.pack(dut->rnr_i);
    dut->others_queued_i = dut->others_fetched_i = 0;
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "tables cleared", 5000);
    item.on_transfer([this](const pkg::tx_item_t& i) {
      REQUIRE((dut->fence_busy_o >> i.desc.colour & 1) == 1);
      // the records of a WQE are with their owners before its last packet
      const auto due = records_due.find(item.transfers());
      if (due != records_due.end()) {
        REQUIRE(inflight.transfers() >= due->second.first);
        REQUIRE(read_record.transfers() >= due->second.second);
        records_due.erase(due);
      }
    });
    dut.attach(*this);
    dut.attach(block);
    dut.attach(inflight);
    dut.attach(read_record);
    dut.attach(local_error);
    dut.attach(state_error);
    dut.attach(rewind);
    dut.attach(item);
  }

  void stalls() {
    block.stall(Stall::any(random));
    inflight.stall(Stall::any(random));
    read_record.stall(Stall::any(random));
    item.stall(Stall::any(random));
    rewind.stall(Stall::any(random));
    local_error.stall(Stall::any(random));
  }

  void sample() override {
    if (const auto s = pkg::sent_t::unpack(dut->sent_o); s.valid) {
      REQUIRE_FALSE(sent.empty());
      REQUIRE(s == sent.front());
      sent.pop_front();
    }
    resent += dut->resent_o;
  }
  void drive() override {
    pkg::epoch_bcast_t e = random_payload<pkg::epoch_bcast_t>(random);
    e.valid = !epochs.empty();
    if (e.valid) {
      e = epochs.front();
      epochs.pop_front();
    }
    e.pack(dut->epoch_i);
    auto clear = [&](auto payload, auto& port) {
      payload.valid = false;
      payload.pack(port);
    };
    clear(random_payload<pkg::ack_state_t>(random), dut->ack_state_i);
    clear(random_payload<pkg::state_bcast_t>(random), dut->state_i);
    clear(random_payload<pkg::rnr_bcast_t>(random), dut->rnr_i);
  }

  std::uint64_t ctx(bool write, unsigned column, unsigned qp, unsigned word, std::uint64_t data) {
    pkg::ctx_req_t c{};
    c.valid = true;
    c.write = write;
    c.column = static_cast<std::uint8_t>(column);
    c.index = static_cast<std::uint16_t>(qp);
    c.word = static_cast<std::uint8_t>(word);
    c.wdata = data;
    c.pack(dut->ctx_i);
    pkg::ctx_rsp_t rsp{};
    dut.run_until(
        [&] {
          rsp = pkg::ctx_rsp_t::unpack(dut->ctx_o);
          return rsp.done != 0;
        },
        "context bus", 200);
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    dut.tick();
    return rsp.rdata;
  }

  // ---- QPs
  void state(const Qp& qp, State s) {
    pkg::state_bcast_t b{};
    b.valid = true;
    b.qp = static_cast<decltype(b.qp)>(qp.number);
    b.state = static_cast<pkg::qp_state_e>(s);
    b.pack(dut->state_i);
    dut.tick(4);
  }
  void waiting(const Qp& qp, bool on) {
    pkg::rnr_bcast_t b{};
    b.valid = true;
    b.qp = static_cast<decltype(b.qp)>(qp.number);
    b.waiting = on;
    b.pack(dut->rnr_i);
    dut.tick(4);
  }
  void ack(const Qp& qp) {
    qp.ack.pack(dut->ack_state_i);
    dut.tick(4);
  }
  // Everything open: as many records, READs and bytes as the widths allow.
  Qp open(unsigned number) {
    Qp qp;
    qp.number = number;
    qp.ctx.mtu_code = static_cast<unsigned>(random.between(1, 5));
    qp.ctx.fn = static_cast<unsigned>(random.below(ROCI_CONFIG_WIDE ? 16 : 8));
    qp.ctx.pd = static_cast<unsigned>(random.below(ROCI_CONFIG_WIDE ? 1024 : 64));
    qp.ctx.max_rd_atomic = 255;
    qp.ctx.inflight_log2 = 15;
    qp.ctx.inflight_base = static_cast<unsigned>(random.bits(ROCI_CONFIG_WIDE ? 14 : 9));
    qp.ctx.read_log2 = 8;
    qp.ctx.read_base = static_cast<unsigned>(random.bits(ROCI_CONFIG_WIDE ? 12 : 8));
    qp.ring = random.bits(58) << 6u;
    qp.index = static_cast<std::uint16_t>(random.bits(16));
    qp.psn = qp.max_psn = static_cast<std::uint32_t>(random.bits(24));
    setup(qp);
    return qp;
  }
  void setup(Qp& qp) {
    ctx(true, kTx, qp.number, 0, qp.ctx.word0());
    ctx(true, kTx, qp.number, 1, qp.ctx.word1());
    ctx(true, kDyn, qp.number, 0, qp.psn);
    qp.ordinal = 0;
    qp.ack.valid = true;
    qp.ack.qp = static_cast<decltype(qp.ack.qp)>(qp.number);
    qp.ack.oldest_index = qp.index;
    qp.ack.acked_psn = qp.psn;
    ack(qp);
    state(qp, kRts);
  }
  void window(unsigned log2) {
    window_log2 = log2;
    ctx(true, kTuning, 0, 0, log2);
  }

  // ---- pushing and expecting
  std::uint64_t address(const Qp& qp) const { return qp.ring + 64u * (qp.index % 8u); }

  // Blocks of a WQE at the QP's index; returns the index of its first block.
  std::uint16_t push(Qp& qp, const Wqe& w, bool last = true, bool turn = false, bool err = false) {
    const auto raw = w.to_blocks(random, w.blocks);
    const auto first = qp.index;
    for (unsigned n = 0; n < w.blocks; ++n) {
      pkg::wqe_block_t b{};
      b.colour = colour;
      b.err = err;
      b.burst_last = last && n + 1 == w.blocks;
      b.turn = turn && n == 0;
      b.qp = static_cast<decltype(b.qp)>(qp.number);
      b.epoch = qp.epoch;
      b.addr = address(qp);
      b.index = qp.index++;
      for (unsigned k = 0; k < 64; ++k) {
        b.block[k / 4] |= static_cast<std::uint32_t>(raw[n][k]) << (8 * (k % 4));
      }
      block.push(b);
    }
    return first;
  }
  pkg::tx_desc_t common(const Qp& qp, std::uint16_t index) const {
    pkg::tx_desc_t d{};
    d.colour = colour;
    d.qp = static_cast<decltype(d.qp)>(qp.number);
    d.wqe_index = index;
    d.epoch = qp.epoch;
    return d;
  }
  void expect_inflight(const Qp& qp, const Wqe& w, std::uint16_t index, Kind kind) {
    pkg::inflight_write_t r{};
    r.qp = static_cast<decltype(r.qp)>(qp.number);
    r.wqe_index = index;
    r.epoch = qp.epoch;
    const unsigned mask = (1u << (ROCI_CONFIG_WIDE ? 14 : 9)) - 1;
    r.slot = static_cast<std::uint16_t>(
        (qp.ctx.inflight_base + (index & ((1u << qp.ctx.inflight_log2) - 1))) & mask);
    r.record.kind = static_cast<pkg::inflight_kind_e>(kind);
    r.record.signaled = w.signaled;
    r.record.blocks = static_cast<std::uint8_t>(w.blocks);
    r.record.wc_opcode = w.wc_opcode();
    r.record.byte_len = w.length;
    r.record.first_psn = qp.psn;
    r.record.last_psn = (qp.psn + psn_count(w, qp.ctx.mtu()) - 1) & kPsnMask;
    r.record.read_ordinal = qp.ordinal;
    inflight.expect(r);
    ++inflight_expected;
  }
  void expect_read(const Qp& qp, const Wqe& w) {
    pkg::read_record_write_t r{};
    r.qp = static_cast<decltype(r.qp)>(qp.number);
    const unsigned mask = (1u << (ROCI_CONFIG_WIDE ? 12 : 8)) - 1;
    r.slot = static_cast<decltype(r.slot)>(
        (qp.ctx.read_base + (qp.ordinal & ((1u << qp.ctx.read_log2) - 1))) & mask);
    r.ordinal = qp.ordinal;
    r.first_psn = qp.psn;
    r.last_psn = (qp.psn + psn_count(w, qp.ctx.mtu()) - 1) & kPsnMask;
    r.length = w.length;
    for (const auto& s : w.sges) {
      if (s.length == 0) continue;
      auto& sge = r.sges[r.sge_count++];
      sge.va = s.va;
      sge.length = s.length;
      sge.lkey = s.lkey;
    }
    read_record.expect(r);
    ++read_expected;
  }
  // Packets of `w` from packet number `from` to before number `to`, and its records if that is the
  // end; then the QP goes on to the next WQE.
  void expect(Qp& qp, const Wqe& w, std::uint16_t index, std::uint32_t from = 0,
              std::uint32_t to = ~0u, std::uint32_t stop = ~0u) {
    const std::uint32_t count = psn_count(w, qp.ctx.mtu());
    const bool read = w.op == kRead;
    const bool whole = to >= count;
    const std::uint64_t at = qp.ring + 64u * (index % 8u);
    if (whole) {
      expect_inflight(qp, w, index, w.op == kNop ? (w.signaled ? kKindLocal : kKindNop)
                                    : read       ? kKindRead
                                                 : kKindSend);
      if (read && from < count) expect_read(qp, w);
    }
    for (std::uint32_t n = from; n < std::min(count, to); ++n) {
      const std::uint32_t psn = (qp.psn + n) & kPsnMask;
      auto items = packet(w, qp.ctx, qp.psn, psn, at, window_log2, common(qp, index));
      for (auto& i : items) {
        if (((psn + 1) & kPsnMask) == stop) i.desc.ackreq = true;
        item.expect(i);
      }
      items_expected += items.size();
      pkg::sent_t s{};
      s.valid = true;
      s.qp = static_cast<decltype(s.qp)>(qp.number);
      s.psn = psn;
      resent_expected += psn_before(psn, qp.max_psn);
      const std::uint32_t end = (qp.psn + (read ? count : n + 1)) & kPsnMask;
      if (psn_before(qp.max_psn, end)) qp.max_psn = end;
      s.next_psn = qp.max_psn;
      sent.push_back(s);
      if (read) break;
    }
    if (whole) {
      if (count != 0 && from < count) {
        records_due[items_expected] = {inflight_expected, read_expected};
      }
      qp.psn = (qp.psn + count) & kPsnMask;
      qp.ordinal = static_cast<std::uint8_t>(qp.ordinal + read);
    }
  }
  void send(Qp& qp, const Wqe& w, bool last = true, bool turn = false) {
    expect(qp, w, push(qp, w, last, turn));
  }
  void expect_rewind(const Qp& qp, pkg::rewind_kind_e kind, std::uint16_t index,
                     std::uint32_t resume) {
    pkg::rewind_req_t r{};
    r.kind = kind;
    r.qp = static_cast<decltype(r.qp)>(qp.number);
    r.epoch = qp.epoch;
    r.point.wqe_index = index;
    r.point.first_psn = qp.psn;
    r.point.resume_psn = resume & kPsnMask;
    r.point.read_ordinal = qp.ordinal;
    rewind.expect(r);
  }
  // The QP's next epoch begins at its index and PSN, as queue_wqe_fetch would tell.
  void next_epoch(Qp& qp, std::uint32_t resume) {
    ++qp.epoch;
    pkg::epoch_bcast_t e{};
    e.valid = true;
    e.qp = static_cast<decltype(e.qp)>(qp.number);
    e.epoch = qp.epoch;
    e.point.wqe_index = qp.index;
    e.point.first_psn = qp.psn;
    e.point.resume_psn = resume & kPsnMask;
    e.point.read_ordinal = qp.ordinal;
    epochs.push_back(e);
  }
  void rest(std::uint64_t limit = 200000) {
    int quiet = 0;
    dut.run_until(
        [&] {
          const bool still = block.empty() && item.done() && inflight.done() &&
                             read_record.done() && local_error.done() && state_error.done() &&
                             rewind.done() && sent.empty() && epochs.empty();
          quiet = still ? quiet + 1 : 0;
          return quiet > 20;
        },
        "rest", limit);
    REQUIRE(records_due.empty());
    REQUIRE(resent == resent_expected);
    REQUIRE(dut->fence_busy_o == 0);
  }
};

Wqe write_of(std::uint32_t bytes, Random& random, std::uint8_t op = kWrite) {
  Wqe w;
  w.op = op;
  w.signaled = true;
  w.length = bytes;
  w.va = random();
  w.sge_count = bytes != 0;
  if (bytes != 0) w.sges = {{random(), bytes, static_cast<std::uint32_t>(random())}};
  return w;
}

// Room for `blocks` blocks in the line, else a NOP fills it, as the host does.
void pad(Bench& bench, Qp& qp, unsigned blocks) {
  const unsigned room = 8 - qp.index % 8;
  if (blocks <= room) return;
  Wqe nop;
  nop.op = kNop;
  nop.blocks = room;
  bench.send(qp, nop);
}

}  // namespace

TEST_CASE("every packet and record of random WQEs") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Bench bench(random);
    bench.window(31);
    std::vector<Qp> qps;
    std::map<unsigned, bool> used;
    for (std::uint64_t n = random.between(1, 5); qps.size() < n;) {
      const auto number = static_cast<unsigned>(random.below(1u << kQpBits));
      if (!used[number]) qps.push_back(bench.open(number));
      used[number] = true;
    }
    bench.stalls();
    for (std::size_t n = 0; n < scaled(150); ++n) {
      Qp& qp = qps[random.below(qps.size())];
      for (auto burst = random.between(1, 3); burst != 0; --burst) {
        const std::uint64_t mtu = qp.ctx.mtu();
        const std::uint64_t bytes = random.chance(0.1)   ? 0
                                    : random.chance(0.5) ? random.between(1, 2 * mtu)
                                    : random.chance(0.5) ? mtu * random.between(1, 6)
                                                         : random.below(12 * mtu);
        const Wqe w = random_wqe(random, bytes);
        pad(bench, qp, w.blocks);
        if (random.chance(0.1)) {
          Wqe nop;
          nop.op = kNop;
          nop.signaled = random.chance(0.5);
          if (w.blocks + qp.index % 8 < 8) bench.send(qp, nop);
        }
        bench.send(qp, w, random.chance(0.5));
      }
      // READs take credits: give them back; so do PSNs
      if (random.chance(0.1)) {
        bench.rest();
        qp.ack.reads_done = qp.ordinal;
        qp.ack.acked_psn = qp.psn;
        qp.ack.oldest_index = qp.index;
        bench.ack(qp);
        bench.colour ^= random.chance(0.5);
      }
    }
    bench.rest();
  }
}

TEST_CASE("resumption at any packet of messages up to 2^31 bytes") {
  Random random;
  for (int round = 0; round < 12; ++round) {
    Bench bench(random);
    bench.window(31);
    Qp qp = bench.open(static_cast<unsigned>(random.below(1u << kQpBits)));
    bench.stalls();
    for (std::size_t n = 0; n < scaled(60); ++n) {
      std::uint64_t bytes = 1 + (random.bits(31) >> random.below(24));
      if (random.chance(0.1)) bytes = 0x80000000u;
      const Wqe w = random_wqe(random, bytes);
      const std::uint32_t count = psn_count(w, qp.ctx.mtu());
      qp.index = static_cast<std::uint16_t>(qp.index & ~7u);   // room for any size
      qp.ack.oldest_index = qp.index;
      qp.ack.acked_psn = qp.psn;
      qp.ack.reads_done = qp.ordinal;
      bench.ack(qp);
      // the last few packets, or nothing at all
      const std::uint32_t most = std::min<std::uint32_t>(count, 12);
      const auto from = static_cast<std::uint32_t>(count - random.below(most + 1));
      bench.next_epoch(qp, qp.psn + from);
      bench.dut.tick(4);
      bench.expect(qp, w, bench.push(qp, w), from);
      if (bytes < 1u << 29u) {                           // else no window has room for more
        bench.send(qp, write_of(static_cast<std::uint32_t>(random.below(300)), random));
      }
      bench.rest();
    }
  }
}

TEST_CASE("each reason to stall, and the way on") {
  Random random;
  for (int round = 0; round < 12; ++round) {
    Bench bench(random);
    Qp qp = bench.open(5);
    Qp other = bench.open(9);
    bench.stalls();
    const std::uint32_t mtu = qp.ctx.mtu();
    // Prepares the reason, pushes w, expects `packets` of it and then a stall; a WQE behind it is
    // discarded, one of another QP is not. After `repair` it comes again from where it was.
    const auto stalls = [&](const Wqe& w, std::uint32_t packets, const auto& prepare,
                            const auto& repair, const std::uint32_t* stop = nullptr) {
      pad(bench, qp, 6);                               // w, the void one, and what prepare sends
      bench.rest();
      prepare();
      bench.rest();
      const auto index = bench.push(qp, w);
      bench.expect(qp, w, index, 0, packets, stop ? *stop : ~0u);
      bench.expect_rewind(qp, kStall, index, qp.psn + packets);
      bench.push(qp, write_of(8, random));             // void
      bench.send(other, write_of(100, random));
      qp.index = index;
      // accepted = applied: the new epoch is told at once
      bench.dut.run_until([&] { return bench.rewind.done(); }, "rewind");
      bench.next_epoch(qp, qp.psn + packets);
      bench.rest();
      repair();
      REQUIRE(bench.push(qp, w) == index);
      bench.expect(qp, w, index, packets);
      bench.rest();
      qp.ack.oldest_index = qp.index;
      qp.ack.acked_psn = qp.psn;
      qp.ack.reads_done = qp.ordinal;
      bench.ack(qp);
      other.ack.oldest_index = other.index;
      other.ack.acked_psn = other.psn;
      bench.ack(other);
    };

    stalls(write_of(10, random), 0, [&] { bench.state(qp, kRtr); }, [&] { bench.state(qp, kRts); });
    stalls(write_of(10, random), 0, [&] { bench.waiting(qp, true); },
           [&] { bench.waiting(qp, false); });
    stalls(write_of(10, random), 0, [&] { bench.state(qp, kSqd); }, [&] { bench.state(qp, kRts); });

    // byte cap, inside a message: 2^k packets go, more when some are acknowledged
    const unsigned k = static_cast<unsigned>(random.between(0, 4));
    stalls(write_of(mtu * (1u << k) + 1, random), 1u << k,
           [&] { bench.window(qp.ctx.mtu_code + 7 + k); },
           [&] {
             qp.ack.acked_psn = (qp.psn + 1) & kPsnMask;
             bench.ack(qp);
           });

    // a started message goes on in SQD
    stalls(write_of(mtu * 6, random), 4, [&] { bench.window(qp.ctx.mtu_code + 7 + 2); },
           [&] {
             bench.state(qp, kSqd);
             qp.ack.acked_psn = (qp.psn + 4) & kPsnMask;
             bench.ack(qp);
           });
    bench.state(qp, kRts);
    bench.window(18);

    // record region
    stalls(write_of(10, random), 0,
           [&] {
             qp.ctx.inflight_log2 = 3;
             bench.ctx(true, kTx, qp.number, 1, qp.ctx.word1());
             qp.ack.oldest_index = static_cast<std::uint16_t>(qp.index - 8);
             bench.ack(qp);
           },
           [&] {
             qp.ack.oldest_index = static_cast<std::uint16_t>(qp.index - 7);
             bench.ack(qp);
           });

    // READ credit, then fence
    const Wqe read = write_of(3 * mtu, random, kRead);
    stalls(read, 0,
           [&] {
             qp.ctx.max_rd_atomic = 2;
             bench.ctx(true, kTx, qp.number, 0, qp.ctx.word0());
             bench.send(qp, read);
             bench.send(qp, read);
           },
           [&] {
             ++qp.ack.reads_done;
             bench.ack(qp);
           });
    Wqe fenced = write_of(10, random);
    fenced.fence = true;
    stalls(fenced, 0, [&] { bench.send(qp, read); },
           [&] {
             qp.ack.reads_done = qp.ordinal;
             bench.ack(qp);
           });

    // PSN distance: half the circle, not one more
    stalls(write_of(10, random), 0,
           [&] {
             qp.ack.acked_psn = (qp.psn - 0x7fffff) & kPsnMask;
             bench.ack(qp);
             bench.send(qp, write_of(0, random, kSend));
           },
           [&] {
             qp.ack.acked_psn = (qp.ack.acked_psn + 1) & kPsnMask;
             bench.ack(qp);
           });

    // a QP that ack stops: the last packet before the stop asks for an acknowledgement
    std::uint32_t stop = 0;
    stalls(write_of(5 * mtu, random), 2,
           [&] {
             qp.ack.stop_valid = true;
             qp.ack.stop_psn = stop = (qp.psn + 2) & kPsnMask;
             bench.ack(qp);
           },
           [&] {
             qp.ack.stop_valid = false;
             bench.ack(qp);
           },
           &stop);
  }
}

TEST_CASE("requests that cannot be executed, and flushes") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Bench bench(random);
    bench.window(31);
    Qp qp = bench.open(3);
    bench.stalls();
    bench.send(qp, write_of(10, random));
    pad(bench, qp, 2);
    bench.rest();
    Wqe bad = write_of(10, random);
    std::uint8_t status = 2, vendor = kBadOpcode;      // LOC_QP_OP_ERR
    bool bus_error = false;
    switch (round % 6) {
      case 0:
        bad.length = 11;
        status = 1;                                    // LOC_LEN_ERR
        vendor = kBadLength;
        break;
      case 1: bad.op = kFetchAdd; break;
      case 2: bad.op = 0x77; break;
      case 3:
        bad.op = kRead;
        bad.inline_data = true;
        vendor = kBadInline;
        break;
      case 4:                                          // a good one, but not on this type of QP
        qp.ctx.qp_type = 2;
        bench.ctx(true, kTx, qp.number, 0, qp.ctx.word0());
        break;
      default: bus_error = true; break;
    }
    const auto index = bench.push(qp, bad, true, false, bus_error);
    if (bus_error) {
      pkg::state_error_t e{};
      e.qp = static_cast<decltype(e.qp)>(qp.number);
      e.event_valid = true;
      e.event_type = 17;                               // QP_FATAL
      bench.state_error.expect(e);
    } else {
      pkg::local_error_t e{};
      e.qp = static_cast<decltype(e.qp)>(qp.number);
      e.wqe_index = index;
      e.psn = qp.psn;
      e.status = status;
      e.vendor_status = vendor;
      bench.local_error.expect(e);
    }
    bench.expect_rewind(qp, kStall, index, qp.psn);
    bench.push(qp, write_of(8, random));               // void
    bench.dut.run_until([&] { return bench.rewind.done(); }, "rewind");
    qp.index = index;
    bench.next_epoch(qp, qp.psn);
    bench.rest();

    // in ERR everything comes again as flush records, NOPs as themselves
    bench.state(qp, round % 4 == 3 ? kSqe : kErr);
    const auto flush = [&](const Wqe& w, bool err) {
      const auto at = bench.push(qp, w, true, false, err);
      if (err) return;                                 // nothing is known of it
      bench.expect_inflight(qp, w, at, w.op == kNop && !w.signaled ? kKindNop : kKindFlush);
    };
    flush(bad, bus_error);
    for (int n = 0; n < 30; ++n) {
      const unsigned room = 8 - qp.index % 8;
      Wqe w = random_wqe(random, random.below(20000));
      if (w.blocks > room || random.chance(0.1)) {
        w = Wqe{};
        w.op = kNop;
        w.signaled = random.chance(0.5);
        w.blocks = room;
      }
      flush(w, false);
      // a flush needs a record and no other window
    }
    bench.rest();
    REQUIRE(bench.ctx(false, kDyn, qp.number, 0, 0) % (1u << 24u) == qp.psn);

    // RESET and INIT: everything is discarded
    bench.state(qp, random.chance(0.5) ? kReset : kInit);
    for (int n = 0; n < 10; ++n) {
      qp.index = static_cast<std::uint16_t>(qp.index & ~7u);
      bench.push(qp, random_wqe(random, random.below(20000)));
    }
    bench.rest();
  }
}

TEST_CASE("an epoch or a state takes effect between packets") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Bench bench(random);
    bench.window(31);
    Qp qp = bench.open(3);
    bench.item.collect();
    const bool rewound = round % 2 == 0;
    const std::uint32_t mtu = qp.ctx.mtu();
    const Wqe w = write_of(1000 * mtu, random);
    const auto index = bench.push(qp, w);
    const std::uint32_t first = qp.psn;
    const auto packets = random.between(1, 30);
    // the sent pulses are predicted for as many packets as come out
    for (std::uint32_t n = 0; n < 40; ++n) {
      pkg::sent_t s{};
      s.valid = true;
      s.qp = static_cast<decltype(s.qp)>(qp.number);
      s.psn = (first + n) & kPsnMask;
      s.next_psn = (first + n + 1) & kPsnMask;
      bench.sent.push_back(s);
    }
    bench.dut.run_until([&] { return bench.item.received().size() >= packets; }, "packets");
    if (rewound) {
      bench.next_epoch(qp, first);
      bench.dut.tick();
    } else {
      // the flush record has the PSNs of the whole message
      bench.expect_inflight(qp, w, index, kKindFlush);
      pkg::state_bcast_t b{};
      b.valid = true;
      b.qp = 3;
      b.state = static_cast<pkg::qp_state_e>(kErr);
      b.pack(bench.dut->state_i);
      bench.dut.tick();
    }
    const auto then = bench.item.received().size();
    bench.dut.tick(40);
    REQUIRE(bench.item.received().size() <= then + 4);
    REQUIRE(bench.inflight.done());
    for (std::size_t n = 0; n < bench.item.received().size(); ++n) {
      REQUIRE(bench.item.received()[n].desc.psn == ((first + n) & kPsnMask));
      REQUIRE(bench.item.received()[n].last);
    }
    REQUIRE(bench.dut->fence_busy_o == 0);
    if (rewound) {
      // the new epoch resends from its point, and knows how far it ever was
      const auto sent = bench.item.received().size();
      bench.sent.clear();
      for (std::uint32_t n = 0; n < 20; ++n) {
        pkg::sent_t s{};
        s.valid = true;
        s.qp = 3;
        s.psn = (first + n) & kPsnMask;
        s.next_psn = (first + std::max<std::uint32_t>(n + 1, static_cast<std::uint32_t>(sent))) &
                     kPsnMask;
        bench.sent.push_back(s);
      }
      qp.index = index;
      bench.push(qp, write_of(20 * mtu, random));
      bench.inflight.collect();
      bench.dut.run_until([&] { return bench.sent.empty(); }, "the message again");
      bench.dut.tick(5);
      REQUIRE(bench.resent == std::min<std::size_t>(sent, 20));
    }
  }
}

TEST_CASE("quantum: not before its packets and its time, not without others") {
  Random random;
  for (int round = 0; round < 8; ++round) {
    Bench bench(random);
    bench.window(31);
    Qp qp = bench.open(3);
    bench.item.collect();
    bench.rewind.collect();
    bench.inflight.collect();
    const bool slow = round % 2;                       // the packets are what lasts
    if (slow) bench.item.stall(Stall(0.99));
    const std::uint32_t first = qp.psn;
    const std::uint32_t mtu = qp.ctx.mtu();
    const bool messages = round % 4 >= 2;              // between messages, or inside one
    if (messages) {
      qp.index = 0;
      qp.ack.oldest_index = 0;
      bench.ack(qp);
      for (int n = 0; n < 600; ++n) bench.push(qp, write_of(mtu, random));
    } else {
      bench.push(qp, write_of(600 * mtu, random));
    }
    for (std::uint32_t n = 0; n < 600; ++n) {
      pkg::sent_t s{};
      s.valid = true;
      s.qp = 3;
      s.psn = (first + n) & kPsnMask;
      s.next_psn = (first + n + 1) & kPsnMask;
      bench.sent.push_back(s);
    }
    bench.dut.tick(slow ? 2000 : 100);                 // alone: no end of a quantum
    REQUIRE(bench.rewind.received().empty());
    auto before = 600 - bench.sent.size();
    const auto start = bench.dut.cycle();
    (round % 3 ? bench.dut->others_queued_i : bench.dut->others_fetched_i) = 1;
    bench.dut.run_until([&] { return !bench.rewind.received().empty(); }, "a yield", 10000);
    const auto cycles = bench.dut.cycle() - start;
    const auto packets = 600 - bench.sent.size() - before;
    CAPTURE(packets, cycles, slow);
    REQUIRE(packets >= 16);
    REQUIRE(cycles >= 512);
    if (slow) REQUIRE(packets <= 18);
    else REQUIRE(cycles <= 530);
    const auto r = bench.rewind.received()[0];
    REQUIRE(r.kind == kYield);
    REQUIRE(r.point.resume_psn == ((first + before + packets) & kPsnMask));
    if (messages) REQUIRE(r.point.first_psn == r.point.resume_psn);
    else REQUIRE(r.point.first_psn == first);
    REQUIRE(r.point.wqe_index == (messages ? before + packets : static_cast<unsigned>(
                                                  static_cast<std::uint16_t>(qp.index - 1))));
  }
}

TEST_CASE("cycles per packet") {
  Random random;
  const auto measure = [&](unsigned qps, std::uint32_t bytes, unsigned pieces) {
    Bench bench(random);
    bench.window(31);
    std::vector<Qp> list;
    for (unsigned n = 0; n < qps; ++n) {
      list.push_back(bench.open(n));
      list.back().index = 0;
      list.back().ack.oldest_index = 0;
      bench.ack(list.back());
    }
    bench.item.collect();
    const unsigned count = 240;
    for (unsigned n = 0; n < count; ++n) {
      Qp& qp = list[n % qps];
      Wqe w = write_of(bytes, random);
      w.sges.assign(pieces, Sge{random(), bytes / pieces, 1});
      w.sge_count = pieces;
      w.blocks = Wqe::blocks_for(pieces);
      pad(bench, qp, w.blocks);
      bench.send(qp, w);
    }
    std::uint64_t first = 0, last = 0, packets = 0;
    bench.item.on_transfer([&](const pkg::tx_item_t& i) {
      if (first == 0) first = bench.dut.cycle();
      last = bench.dut.cycle();
      packets += i.last;
    });
    bench.dut.run_until([&] { return bench.sent.empty(); }, "packets");
    bench.dut.tick(10);
    return static_cast<double>(last - first) / static_cast<double>(packets - 1);
  };
  const double one = measure(1, 64, 1), many = measure(16, 64, 1), two = measure(1, 64, 2);
  const double large = measure(1, 60 * 256, 1);
  WARN(ROCI_CONFIG_NAME << ": 64 B WRITE, one QP " << one << ", 16 QPs " << many
                        << ", two pieces " << two << ", long messages " << large
                        << " cycles per packet");
  CHECK(one <= 2.01);
  CHECK(many <= 2.01);
  CHECK(two <= 3.01);
  CHECK(large <= 2.01);
}
