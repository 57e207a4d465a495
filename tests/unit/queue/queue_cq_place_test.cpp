// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_cq_place: places, images and phase bits of completions of several CQs, one per cycle; ring
// full, stopped and destroyed CQs; consumed doorbells; rows, resize; nothing is ever overwritten.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace cq = roci::sv::queue_cq_pkg;
namespace hwif = roci::sv::roci_hwif_pkg;

constexpr unsigned index_mask = 0xffffff;

struct Queue {
  bool valid = false, error = false;
  unsigned log2 = 4, producer = 0, consumed = 0, fn = 0, switched = 0;
  std::uint64_t page = 0;
};

struct Bench {
  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt), item("item", dut->item_valid_i, dut->item_ready_o, dut->item_i),
        place("place", dut->place_valid_o, dut->place_ready_i, dut->place_o), queues(4) {
    item.on_transfer([this](const cq::item_t& i) { taken(i); });
    dut->stop_valid_i = 0;
    dut->row_valid_i = 0;
    dut->doorbell_valid_i = 0;
    dut->clock_i = 0;
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 3000);
    dut.attach(item);
    dut.attach(place);
  }

  void tick() {
    dut->clock_i = ++clock;
    dut.tick();
  }

  hwif::ctx_cq_t row(unsigned n, bool ring, bool start, const hwif::ctx_cq_t& value) {
    dut->row_valid_i = 1;
    dut->row_ring_i = ring;
    dut->row_start_i = start;
    dut->row_cq_i = static_cast<std::decay_t<decltype(dut->row_cq_i)>>(n);
    value.pack(dut->row_i);
    for (int i = 0; !dut->row_done_o; ++i) {
      REQUIRE(i < 50);
      tick();
    }
    dut->row_valid_i = 0;
    const auto answer = hwif::ctx_cq_t::unpack(dut->row_o);
    tick();
    return answer;
  }

  void create(unsigned n, unsigned log2, bool valid = true) {
    Queue& q = queues[n];
    q = Queue();
    q.valid = valid;
    q.log2 = log2;
    q.page = random.bits(52) & 0xffff'ffff'ffff;
    q.fn = static_cast<unsigned>(random.bits(pkg::fn_t_bits));
    hwif::ctx_cq_t value{};
    value.log2_entries = static_cast<std::uint8_t>(log2);
    value.ring_page = q.page;
    value.valid = valid;
    value.fn = static_cast<std::uint8_t>(q.fn);
    row(n, true, false, value);
    row(n, false, true, value);
  }

  void doorbell(unsigned n, unsigned index, bool arm, bool keep_consumed = false) {
    pkg::doorbell_t d{};
    d.kind = arm ? pkg::DOORBELL_CQ_ARM : pkg::DOORBELL_CQ_CONSUMED;
    d.object_index = static_cast<std::uint16_t>(n);
    d.index = index;
    d.keep_consumed = keep_consumed;
    d.pack(dut->doorbell_i);
    dut->doorbell_valid_i = 1;
    tick();
    dut->doorbell_valid_i = 0;
    if (!keep_consumed) queues[n].consumed = index;
  }

  void push(unsigned n) {
    auto i = random_payload<cq::item_t>(random);
    i.completion.cq = static_cast<decltype(i.completion.cq)>(n);
    if (random.chance(0.7)) i.completion.status = 0;
    i.payload_failed = random.chance(0.1);
    item.push(i);
  }

  void drain() {
    for (int n = 0; !(item.empty() && place.done()); ++n) {
      REQUIRE(n < 100000);
      tick();
    }
  }

  Dut<DUT_CLASS> dut;
  Random random;
  Source<cq::item_t> item;
  Sink<cq::placed_t> place;
  std::vector<Queue> queues;
  std::uint64_t clock = 0;
  std::uint64_t overflows = 0, written = 0;

 private:
  // The model: as the fields are described in hwif/queues.toml.
  void taken(const cq::item_t& i) {
    Queue& q = queues[i.completion.cq];
    cq::placed_t p{};
    const auto& c = i.completion;
    const unsigned used = (q.producer - q.consumed) & index_mask;
    const bool full = used >= 1u << q.log2;
    p.colour = i.colour;
    p.qp = i.qp;
    p.fn = static_cast<decltype(p.fn)>(q.fn);
    p.addr = q.page * 4096 + std::uint64_t{q.producer & ((1u << q.log2) - 1)} * 32;
    p.done.cq = c.cq;
    p.done.index = q.producer;
    p.done.solicited = c.solicited || c.is_error || i.payload_failed;
    p.done.live = q.valid;
    p.done.placed = q.valid && !q.error && !full;
    p.done.overflowed = q.valid && !q.error && full;
    p.done.payload_failed = i.payload_failed;
    p.cqe.qpn = c.qpn;
    p.cqe.opcode = static_cast<decltype(p.cqe.opcode)>(c.opcode);
    p.cqe.wqe_index_or_cookie = c.wqe_index_or_cookie;
    p.cqe.byte_len = c.byte_len;
    p.cqe.imm_or_key = c.imm_or_key;
    p.cqe.src_qp_or_srqn = c.src_qp_or_srq;
    p.cqe.grh_present = c.flags & 1;
    p.cqe.vlan_present = c.flags >> 1 & 1;
    p.cqe.solicited = c.solicited || (c.flags >> 2 & 1);
    p.cqe.network_type = static_cast<decltype(p.cqe.network_type)>(c.flags >> 4);
    p.cqe.tci = c.tci;
    p.cqe.pkey_index = c.pkey_index;
    p.cqe.timestamp = clock + 1;
    p.cqe.vendor_status = static_cast<decltype(p.cqe.vendor_status)>(c.vendor_status);
    p.cqe.status = static_cast<decltype(p.cqe.status)>(c.status);
    p.cqe.phase = (q.producer >> q.log2) % 2 == 0;
    if (i.payload_failed && c.status == 0) {
      p.cqe.status = hwif::CQE_STATUS_LOC_QP_OP_ERR;
      p.cqe.vendor_status = hwif::VENDOR_STATUS_PAYLOAD_WRITE_BUS;
      p.cqe.opcode = hwif::CQE_OPCODE_RECV;
    }
    if (p.done.placed) {
      q.producer = (q.producer + 1) & index_mask;
      ++written;
    }
    if (p.done.overflowed) {
      q.error = true;
      ++overflows;
    }
    place.expect(p);
  }
};
}  // namespace

TEST_CASE("places and images, with consumers that keep up") {
  Random random;
  for (int round = 0; round < 8; ++round) {
    Bench bench(random());
    for (unsigned n = 0; n < 3; ++n) bench.create(n, static_cast<unsigned>(random.between(4, 7)));
    bench.create(3, 4, false);
    bench.item.stall(Stall::any(random));
    bench.place.stall(Stall::any(random));
    for (std::size_t k = 0; k < scaled(3000); ++k) {
      const auto n = static_cast<unsigned>(random.below(4));  // queue 3 is not valid
      if (bench.item.pending() < 20) bench.push(n);
      Queue& q = bench.queues[n];
      // Ring when a quarter is used.
      if (((q.producer - q.consumed) & index_mask) >= (1u << q.log2) / 4 && random.chance(0.7)) {
        const bool arm = random.chance(0.5);
        bench.doorbell(n, q.producer, arm, arm && random.chance(0.2));
      } else {
        bench.tick();
      }
      if (random.chance(0.01)) {
        const auto answer = bench.row(n, false, false, {});
        if (q.valid) {
          REQUIRE(answer.log2_entries == q.log2);
          REQUIRE(answer.ring_page == q.page);
          REQUIRE(answer.consumed == q.consumed);
        }
        REQUIRE(answer.valid == q.valid);
      }
    }
    bench.drain();
    for (unsigned n = 0; n < 3; ++n) {
      const auto answer = bench.row(n, false, false, {});
      CHECK(answer.producer == bench.queues[n].producer);
      CHECK(answer.error == bench.queues[n].error);
    }
  }
}

TEST_CASE("overflow stops a CQ for good, nothing is overwritten, others go on") {
  Bench bench(2);
  bench.create(0, 4);
  bench.create(1, 5);
  for (int n = 0; n < 24; ++n) {
    bench.push(0);
    bench.push(1);
  }
  bench.drain();
  CHECK(bench.overflows == 1);
  CHECK(bench.written == 16 + 24);
  bench.doorbell(0, 16, false);
  bench.push(0);  // room again, but the CQ is stopped
  bench.drain();
  CHECK(bench.row(0, false, false, {}).error);
  bench.create(0, 4);  // made anew
  bench.push(0);
  bench.drain();
  CHECK(bench.written == 16 + 24 + 1);
}

TEST_CASE("arming ahead of what is consumed makes no room") {
  Bench bench(5);
  bench.create(0, 4);
  for (int n = 0; n < 10; ++n) bench.push(0);
  bench.drain();
  bench.doorbell(0, 10, true, true);
  CHECK(bench.row(0, false, false, {}).consumed == 0);
  for (int n = 0; n < 7; ++n) bench.push(0);
  bench.drain();
  CHECK(bench.written == 16);
  CHECK(bench.overflows == 1);
}

TEST_CASE("a stop tells the first, resize moves the ring at an index") {
  Bench bench(3);
  bench.create(0, 4);
  for (int n = 0; n < 10; ++n) bench.push(0);
  bench.drain();
  Queue& q = bench.queues[0];
  bench.doorbell(0, 10, false);
  hwif::ctx_cq_t value{};
  value.log2_entries = 6;
  value.ring_page = 0x1234;
  bench.row(0, true, false, value);
  q.log2 = 6;
  q.page = 0x1234;
  for (int n = 0; n < 40; ++n) bench.push(0);
  bench.drain();
  const auto answer = bench.row(0, false, false, {});
  CHECK(answer.switch_index == 10);
  CHECK(answer.producer == 50);
  for (const bool first : {true, false}) {
    bench.dut->stop_valid_i = 1;
    bench.dut->stop_cq_i = 0;
    bench.tick();
    bench.dut->stop_valid_i = 0;
    CHECK(bench.dut->stop_first_o == first);
    bench.tick();
  }
  q.error = true;
  bench.push(0);
  bench.drain();
}

TEST_CASE("one completion per cycle for one CQ") {
  Bench bench(4);
  bench.create(0, 16);
  for (int n = 0; n < 1000; ++n) bench.push(0);
  const auto start = bench.dut.cycle();
  bench.drain();
  CHECK(bench.dut.cycle() - start <= 1000 + 6);
}
