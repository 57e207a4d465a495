// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_rq_fetch: RQs and SRQs of all strides and region sizes are rung at random while messages
// look, take, read slots and free them. Every look must tell exactly what is posted, landed and
// taken; every request must continue where the last one ended, within what was rung, its region and
// a 512 B line; every WQE must arrive in its slot. Reference: five indices per queue. Also: no
// fetch in RESET, restart by the context, rate of a lone queue, nothing held in silence.
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "responder/receive_rings.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
using namespace roci::test::responder;
using Word = Bits<256>;

/// A queue: the program's ring, and the indices that the chip must have (not cut to 16 bits).
struct Queue {
  Ring ring;
  std::deque<std::pair<Wqe, std::vector<std::uint8_t>>> written;   // posted and not taken
  std::uint64_t rung = 0;        // index of the last doorbell, visible to the chip
  std::uint64_t fetched = 0, landed = 0, taken = 0, freed = 0;

  std::uint64_t posted() const { return ring.queue.posted_count; }
  unsigned words() const { return ring.stride() / 32; }
  unsigned units() const { return std::max(1u, ring.stride() / 64); }
  std::uint64_t capacity() const { return (1u << ring.slot_log2) / units(); }
  unsigned slot(std::uint64_t index) const {
    const auto entry = static_cast<unsigned>(index % capacity());
    return 2 * (ring.slot_base + entry * units());
  }
};

/// A WQE that was taken and is read out of its slot.
struct Taken {
  unsigned queue = 0;
  std::uint64_t index = 0;
  Wqe wqe;
  std::vector<std::uint8_t> bytes;
  unsigned asked = 0, checked = 0;       // words
};

class Bench : public Agent {
 public:
  explicit Bench(std::uint64_t salt) : random(salt), dut(salt), memory(dut) {
    dut->doorbell_valid_i = 0;
    dut->look_valid_i = 0;
    dut->take_valid_i = 0;
    dut->slot_read_i = 0;
    dut->free_valid_i = 0;
    dut->colour_i = 0;
    rp::ctx_req_t{}.pack(dut->ctx_i);
    rp::state_bcast_t{}.pack(dut->state_i);
    dut.reset();
    dut.attach(*this);
    dut.attach(memory);
    dut.run_until([&] { return dut->ready_o != 0; }, "tables cleared");
  }

  std::uint64_t ctx(bool write, unsigned index, unsigned word, std::uint64_t data = 0) {
    return context_access<rp::ctx_req_t, rp::ctx_rsp_t>(
        dut, [this] { dut.tick(); }, hw::CTX_COLUMN_RQ, write, index, word, data, 1000);
  }

  void state(unsigned qp, rp::qp_state_e value) {
    rp::state_bcast_t{true, static_cast<decltype(rp::state_bcast_t::qp)>(qp), value}
        .pack(dut->state_i);
    dut.tick();
    rp::state_bcast_t{}.pack(dut->state_i);
    dut.tick();
  }

  /// The queue starts afresh with nothing posted.
  Queue& start(const Ring& ring) {
    Queue& q = queues[ring.number];
    q = {};
    q.ring = ring;
    ctx(true, ring.number, 0,
        ring.log2 | (std::uint64_t{ring.fn} << 4) | (ring.address >> 12 << 12));
    ctx(true, ring.number, 1,
        ring.slot_base | (std::uint64_t{ring.slot_log2} << 16) |
            (std::uint64_t{ring.stride_code} << 20) | (std::uint64_t{1} << 22));
    if (ring.number < num_qps) state(ring.number, rp::QPS_RTR);
    if (std::find(started.begin(), started.end(), ring.number) == started.end()) {
      started.push_back(ring.number);
    }
    return q;
  }

  void post(Queue& q) {
    Wqe wqe = random_wqe(random, q.ring, random.below(5000));
    // (two WQEs in one beat would share its error)
    if (q.ring.stride() >= rc::DATA_BYTES && random.chance(errors)) wqe.unreadable = true;
    const std::uint64_t at = q.ring.address +
        (q.ring.index & ((1u << q.ring.log2) - 1)) * q.ring.stride();
    post_wqe(memory, q.ring, wqe, random);
    std::vector<std::uint8_t> bytes(q.ring.stride());
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      bytes[n] = memory.page(q.ring.fn, at + n)[(at + n) & 4095];
    }
    q.written.push_back({wqe, bytes});
  }
  void bell(Queue& q) { bells.push_back({q.ring.number, q.posted()}); }

  bool idle() const { return bells.empty() && taken.empty() && !memory.busy(); }
  bool all_taken() const {
    if (!idle()) return false;
    for (const auto& [number, q] : queues) {
      if (q.freed != q.posted()) return false;
    }
    return true;
  }

  // ------------------------------------------------------------------------------ every cycle
  void sample() override {
    if (rung_now.second) {                       // rung one cycle ago: visible now
      queues.at(rung_now.first).rung = *rung_now.second;
      rung_now.second.reset();
    }
    if (dut->doorbell_valid_i) rung_now = {rung_next.first, rung_next.second};
    if (dut->take_valid_i) ++queues.at(take_queue).taken;
    const auto landing = rp::rq_landed_t::unpack(dut->landed_o);
    if (landing.valid) {
      Queue& q = queues.at(landing.rq);
      if (++q.landed > q.fetched) throw Failure("landed, but never asked for");
    }
    if (expected_look) {
      const auto look = rp::rq_look_t::unpack(dut->look_o);
      if (!(look == *expected_look)) {
        throw Failure("look: expected " + expected_look->to_string() + " got " +
                      look.to_string());
      }
      looked = looked_queue;
      if (look.ready) total_ask = {look.slot, looked_total};
      expected_look.reset();
    }
    if (total_want && dut->total_o != *total_want) throw Failure("wrong length of a receive");
    total_want.reset();
    if (dut->total_read_i) total_want = total_asked;
    if (dut->look_valid_i) {
      const Queue& q = queues.at(look_queue);
      rp::rq_look_t want{};
      want.ready = q.landed != q.taken;
      want.empty = q.rung == q.taken;
      want.index = static_cast<std::uint16_t>(q.taken);
      want.slot = static_cast<decltype(want.slot)>(q.slot(q.taken));
      expected_look = want;
      if (want.ready) looked_total = total_of(q);
      looked_queue = look_queue;
    }
    if (dut->req_valid_o && dut->req_ready_i) request(rp::dma_read_req_t::unpack(dut->req_o));
    if (dut->free_valid_i && dut->free_ready_o) {
      ++queues.at(taken.front().queue).freed;
      taken.pop_front();
      freeing = false;
    }
    slot_data();
  }

  void drive() override {
    ++cycle;
    dut->colour_i = (cycle / 500) & 1;
    dut->doorbell_valid_i = !bells.empty() && random.chance(0.5);
    if (dut->doorbell_valid_i) {
      const auto [number, index] = bells.front();
      bells.pop_front();
      rp::doorbell_t d{};
      d.kind = number >= num_qps ? rp::DOORBELL_SRQ : rp::DOORBELL_RQ;
      d.object_index = static_cast<std::uint16_t>(number >= num_qps ? number - num_qps : number);
      d.index = static_cast<decltype(d.index)>(index & 0xffff);
      d.pack(dut->doorbell_i);
      rung_next = {number, index};
    } else if (random.chance(0.1)) {             // another kind: not ours
      rp::doorbell_t d = random_payload<rp::doorbell_t>(random);
      d.kind = rp::DOORBELL_SQ;
      d.pack(dut->doorbell_i);
      dut->doorbell_valid_i = 1;
      rung_next = {0, std::nullopt};
    }
    take();
    dut->look_valid_i =
        looking && !started.empty() && !dut->take_valid_i && random.chance(look_rate);
    if (dut->look_valid_i) {
      look_queue = started[random.below(started.size())];
      put(dut->look_queue_i, look_queue);
    }
    // as responder_check: in the cycle behind the look, or later
    dut->total_read_i = total_ask.has_value();
    if (total_ask) {
      put(dut->total_slot_i, total_ask->first);
      total_asked = total_ask->second;
      total_ask.reset();
    }
    dut->slot_read_i = 0;
    for (Taken& t : taken) {
      if (t.asked == t.bytes.size() / 32) continue;
      dut->slot_read_i = 1;
      const unsigned address = queues.at(t.queue).slot(t.index) + t.asked++;
      put(dut->slot_address_i, address);
      break;
    }
    slot_reads.push_back(dut->slot_read_i != 0);
    if (!freeing && !taken.empty() && taken.front().checked * 32 == taken.front().bytes.size() &&
        random.chance(free_rate)) {
      freeing = true;
      rp::rq_entry_t entry{static_cast<decltype(rp::rq_entry_t::rq)>(taken.front().queue),
                           static_cast<std::uint16_t>(taken.front().index)};
      entry.pack(dut->free_i);
    }
    dut->free_valid_i = freeing;
  }

  Random random;
  Dut<DUT_CLASS> dut;
  RingMemory memory;
  std::map<unsigned, Queue> queues;
  std::vector<unsigned> started;               // queues that may be looked at
  std::deque<std::pair<unsigned, std::uint64_t>> bells;
  std::deque<Taken> taken;
  std::uint64_t cycle = 0, total = 0;
  double errors = 0.02, free_rate = 0.5, look_rate = 0.7;
  bool looking = true, taking = true;

 private:
  template <class Port>
  static void put(Port& port, unsigned value) {
    port = static_cast<Port>(value);
  }

  /// Bytes of the next receive; one that will fail has no limit.
  static std::uint32_t total_of(const Queue& q) {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(q.written.front().first.capacity(), 0xffffffff));
  }

  std::optional<std::pair<unsigned, std::uint32_t>> total_ask;
  std::optional<std::uint32_t> total_want;
  std::uint32_t total_asked = 0, looked_total = 0;

  /// The message that looked takes the WQE, if there is one.
  void take() {
    dut->take_valid_i = 0;
    if (!looked || !taking || taken.size() > 8) {
      looked.reset();
      return;
    }
    Queue& q = queues.at(*looked);
    looked.reset();
    if (q.landed == q.taken) return;
    take_queue = q.ring.number;
    rp::rq_entry_t entry{static_cast<decltype(rp::rq_entry_t::rq)>(take_queue),
                         static_cast<std::uint16_t>(q.taken + 1)};
    entry.pack(dut->take_i);
    dut->take_valid_i = 1;
    taken.push_back({take_queue, q.taken, q.written.front().first, q.written.front().second});
    q.written.pop_front();
    ++q.ring.completed;
    ++total;
  }

  void request(const rp::dma_read_req_t& r) {
    for (auto& [number, q] : queues) {
      const std::uint64_t bytes = std::uint64_t{q.ring.stride()} << q.ring.log2;
      if (r.addr < q.ring.address || r.addr >= q.ring.address + bytes) continue;
      const std::uint64_t entry = (r.addr - q.ring.address) / q.ring.stride();
      const std::uint64_t count = r.length / q.ring.stride();
      if (r.fn != q.ring.fn || count == 0 || count * q.ring.stride() != r.length ||
          entry != (q.fetched & ((1u << q.ring.log2) - 1))) {
        throw Failure("a request that does not continue the last: " + r.to_string());
      }
      if ((r.addr & 511) + r.length > 512) throw Failure("request over a line");
      q.fetched += count;
      if (q.fetched > q.rung) throw Failure("fetched what was not rung");
      if (q.fetched - q.freed > q.capacity()) throw Failure("fetched into a slot in use");
      return;
    }
    throw Failure("request outside of all rings");
  }

  void slot_data() {
    // read enables of the cycles before: data comes SLOT_LATENCY after
    while (slot_reads.size() > rp::SLOT_LATENCY + 1) slot_reads.pop_front();
    if (slot_reads.size() <= rp::SLOT_LATENCY || !slot_reads.front()) return;
    for (Taken& t : taken) {
      if (t.checked == t.bytes.size() / 32) continue;
      const Word got = Word::unpack(dut->slot_data_o);
      const bool bad = t.wqe.unreadable;
      for (unsigned n = 0; n < 32; ++n) {
        const bool header = t.checked == 0 && n < 16;
        if ((header && n > 4) || (bad && header)) continue;    // written over by the landing
        if (got.get(8 * n, 8) != t.bytes[32 * t.checked + n]) {
          throw Failure("wrong byte in a slot");
        }
      }
      if (t.checked == 0 && got.get(48, 1) != bad) throw Failure("bus error not told");
      ++t.checked;
      return;
    }
  }

  std::pair<unsigned, std::optional<std::uint64_t>> rung_next, rung_now;
  unsigned take_queue = 0, look_queue = 0, looked_queue = 0;
  std::optional<rp::rq_look_t> expected_look;
  std::optional<unsigned> looked;
  std::deque<bool> slot_reads;
  bool freeing = false;
};

/// Rings of random shapes on some QPs and SRQs, regions side by side.
std::vector<Ring> random_rings(Random& random, unsigned count) {
  std::vector<Ring> rings;
  unsigned base = 0;
  for (unsigned n = 0; n < count; ++n) {
    Ring r;
    r.stride_code = static_cast<unsigned>(random.below(4));
    const unsigned least = r.stride_code <= 1 ? 1 : r.stride_code;
    r.slot_log2 = static_cast<unsigned>(random.between(least, 5));
    base = (base + (1u << r.slot_log2) - 1) >> r.slot_log2 << r.slot_log2;
    if (base + (1u << r.slot_log2) > 1u << rc::SLOT_BITS) break;
    r.slot_base = base;
    base += 1u << r.slot_log2;
    r.number = random.chance(0.3)
        ? num_qps + static_cast<unsigned>(random.below(1u << rc::SRQ_BITS))
        : static_cast<unsigned>(random.below(num_qps));
    if (std::any_of(rings.begin(), rings.end(), [&](auto& o) { return o.number == r.number; })) {
      continue;
    }
    r.fn = static_cast<unsigned>(random.below(1u << rc::FN_BITS));
    r.log2 = static_cast<unsigned>(random.between(4, 8));
    r.address = (std::uint64_t{n + 1} << 20) | (random.bits(16) << 32);
    rings.push_back(r);
  }
  return rings;
}
}  // namespace

TEST_CASE("queues of all shapes") {
  Random random;
  for (int run = 0; run < 6; ++run) {
    Bench b(random());
    b.memory.stall(Stall::any(random), Stall::any(random));
    b.memory.latency(1, run % 2 ? 20 : 300);
    b.free_rate = run % 3 == 0 ? 0.05 : 0.9;
    std::vector<Queue*> queues;
    for (const Ring& ring : random_rings(random, 8)) queues.push_back(&b.start(ring));
    for (std::size_t n = 0; n < scaled(1200); ++n) {
      Queue& q = *queues[random.below(queues.size())];
      const std::uint64_t room = (1u << q.ring.log2) - (q.posted() - q.freed);
      for (std::uint64_t k = random.below(std::min<std::uint64_t>(room, 20) + 1); k != 0; --k) {
        b.post(q);
      }
      if (random.chance(0.8)) b.bell(q);
      b.dut.tick(random.below(40));
    }
    for (Queue* q : queues) b.bell(*q);
    b.dut.run_until([&] { return b.all_taken(); }, "every posted WQE is taken", 400000);
    b.dut.tick(50);
    CHECK(b.total > 0);
    CHECK(b.dut->fence_busy_o == 0);
    for (Queue* q : queues) {                 // what the context shows
      b.looking = false;
      b.dut.tick(4);
      const std::uint64_t now = b.ctx(false, q->ring.number, 2);
      CHECK((now & 0xffff) == (q->rung & 0xffff));
      CHECK((now >> 16 & 0xffff) == (q->fetched & 0xffff));
      CHECK((now >> 32 & 0xffff) == (q->freed & 0xffff));
    }
  }
}

TEST_CASE("a QP in RESET fetches nothing, and starts again at index 0") {
  Random random;
  Bench b(random());
  Ring ring;
  ring.number = 3;
  ring.address = 0x7000000;
  ring.slot_log2 = 5;
  Queue* q = &b.start(ring);
  b.taking = false;
  for (int n = 0; n < 4; ++n) b.post(*q);
  b.bell(*q);
  b.dut.run_until([&] { return q->landed == 4; }, "four landed");
  b.state(3, rp::QPS_RESET);
  for (int n = 0; n < 4; ++n) b.post(*q);
  b.bell(*q);
  b.dut.tick(500);
  CHECK(q->fetched == 4);
  CHECK(b.dut->fence_busy_o == 0);
  b.looking = false;
  b.dut.tick(4);
  q = &b.start(ring);                          // restart: all indices 0
  b.looking = b.taking = true;
  b.dut.tick(100);
  CHECK(q->fetched == 0);
  for (int n = 0; n < 6; ++n) b.post(*q);
  b.bell(*q);
  b.dut.run_until([&] { return q->freed == 6; }, "six used after the restart");
}

TEST_CASE("a lone queue keeps many reads on their way") {
  Random random;
  Bench b(random());
  b.memory.stall(Stall(), Stall());
  b.memory.latency(250, 250);
  b.errors = 0;
  b.free_rate = b.look_rate = 1;
  Ring ring;
  ring.number = 1;
  ring.address = 0x7000000;
  ring.log2 = 9;
  ring.stride_code = 0;
  ring.slot_log2 = 7;                          // 128 slots (architecture.md 7: a lone RQ)
  Queue& q = b.start(ring);
  const std::uint64_t wqes = 1500;
  std::uint64_t begin = 0;
  while (q.freed < wqes) {
    if (q.freed < 200) begin = b.dut.cycle();
    while (q.posted() - q.freed < 400) b.post(q);
    if (b.bells.empty()) b.bell(q);
    b.dut.tick(40);
  }
  const double each = static_cast<double>(b.dut.cycle() - begin) / static_cast<double>(wqes - 200);
  INFO("cycles per WQE: " << each);
  // wide: the looks of this bench take up to 3 cycles; narrow: a WQE is 4 beats
  CHECK(each <= (ROCI_CONFIG_WIDE ? 3.5 : 4.1));
}
