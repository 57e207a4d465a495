// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_rq_landing: bursts of random strides, counts and lanes; every WQE must lie in its slots, with
// total, bus error and bad count in its header, when it is said to have landed, in order. Reference:
// the bytes that the DMA client was fed with.
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "responder/receive_rings.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
using namespace roci::test::responder;
using roci::sv::roci_hwif_pkg::cqe_status_e;     // the models need this package
using Word = Bits<256>;

struct Landing {
  rp::rq_entry_t entry;
  unsigned first_word, words;
  std::vector<std::uint8_t> bytes;
  Wqe wqe;
  bool unreadable;
};

struct Bench : Agent {
  explicit Bench(std::uint64_t salt)
      : random(salt), dut(salt),
        beats("beat", dut->beat_valid_i, dut->beat_ready_o, dut->beat_i) {
    dut->burst_valid_i = 0;
    dut.reset();
    dut.tick(2);
    dut.attach(*this);
    dut.attach(beats);
  }
  void sample() override {
    if (dut->write_o) slots[dut->write_address_o] = Word::unpack(dut->write_data_o);
    ends += dut->end_valid_o;
    const bool landed = dut->landed_valid_o;
    if (landed && landed_before) throw Failure("landings in consecutive cycles");
    landed_before = landed;
    if (landed) check(rp::rq_entry_t::unpack(dut->landed_o));
  }
  void drive() override {}

  void check(const rp::rq_entry_t& entry) {
    if (expected.empty()) throw Failure("landing of nothing");
    const Landing want = expected.front();
    expected.pop_front();
    if (!(entry == want.entry)) throw Failure("another WQE landed");
    for (unsigned w = 0; w < want.words; ++w) {
      const Word& got = slots.at(want.first_word + w);
      for (unsigned n = w == 0 ? 16 : 0; n < 32; ++n) {
        if (got.get(8 * n, 8) != want.bytes[32 * w + n]) throw Failure("wrong byte in a slot");
      }
    }
    const Word& head = slots.at(want.first_word);
    if (head.get(48, 1) != want.unreadable) throw Failure("bus error not told");
    const unsigned room = 2 * want.words - 1;
    const bool fails = want.unreadable || want.wqe.count > room;
    const std::uint64_t total = std::min<std::uint64_t>(fails ? ~std::uint64_t{0} : want.wqe.bytes(),
                                                        0xffffffff);
    if (dut->landed_total_o != total) throw Failure("wrong sum of lengths");
    if (want.unreadable) return;
    if (head.get(0, 32) != want.wqe.cookie || head.get(32, 8) != want.wqe.count) {
      throw Failure("wrong header");
    }
    if (head.get(49, 1) != (want.wqe.count > room)) throw Failure("SGE count not judged");
  }

  void burst(unsigned queue, unsigned index, unsigned stride, unsigned count, unsigned base,
             unsigned log2, std::uint64_t address) {
    const unsigned bytes = 32u << stride;
    Ring ring;
    ring.stride_code = stride;
    std::vector<std::uint8_t> memory;
    std::vector<bool> bad;
    for (unsigned n = 0; n < count; ++n) {
      Landing l;
      Wqe wqe = random_wqe(random, ring, random.below(1000));
      if (random.chance(0.1)) {                   // more than 2^32 - 1 in all
        for (Sge& sge : wqe.sges) sge.length = 0xf0000000;
      }
      if (random.chance(0.05)) wqe.count = ring.max_sge() + 1 + random.below(100);
      l.wqe = wqe;
      l.bytes = wqe_bytes(wqe, bytes, random);
      l.entry = {static_cast<decltype(l.entry.rq)>(queue),
                 static_cast<std::uint16_t>(index + n)};
      const unsigned units = stride <= 1 ? 1 : 1u << (stride - 1);
      const unsigned unit = base + (((index + n) * units) & ((1u << log2) - 1));
      l.first_word = 2 * unit;
      l.words = bytes / 32;
      l.unreadable = false;
      memory.insert(memory.end(), l.bytes.begin(), l.bytes.end());
      expected.push_back(l);
    }
    constexpr unsigned lanes = rc::DATA_BYTES;
    const unsigned lane = address % lanes;
    for (std::size_t at = 0; at < lane + memory.size(); at += lanes) {
      rp::read_beat_t beat{};
      std::array<roci::sv::Word, (8 * lanes + 31) / 32> words{};
      beat.err = random.chance(0.03);
      for (unsigned b = 0; b < lanes; ++b) {
        const std::size_t byte = at + b;
        if (byte < lane || byte - lane >= memory.size()) continue;
        words[b / 4] |= static_cast<roci::sv::Word>(memory[byte - lane]) << (8 * (b % 4));
        if (beat.err) expected[expected.size() - count + (byte - lane) / bytes].unreadable = true;
      }
      set(beat.data, words);
      beat.last = at + lanes >= lane + memory.size();
      beats.push(beat);
    }
    rp::rq_entry_t first{static_cast<decltype(rp::rq_entry_t::rq)>(queue),
                         static_cast<std::uint16_t>(index)};
    first.pack(dut->burst_entry_i);
    dut->burst_colour_i = random.chance(0.5);
    dut->burst_count_i = static_cast<CData>(count);
    dut->burst_stride_i = static_cast<CData>(stride);
    dut->burst_lane_i = static_cast<CData>(address & 63);
    put(dut->burst_slot_base_i, base);
    dut->burst_slot_log2_i = static_cast<CData>(log2);
    dut->burst_valid_i = 1;
    dut.run_until([&] { return dut->burst_ready_o != 0; }, "burst taken");
    dut.tick();
    dut->burst_valid_i = 0;
    ++bursts;
  }
  template <class Port>
  static void put(Port& port, unsigned value) {
    port = static_cast<Port>(value);
  }
  template <class Data, std::size_t N>
  static void set(Data& data, const std::array<roci::sv::Word, N>& words) {
    if constexpr (std::is_integral_v<Data>) {
      data = words[0] | (std::uint64_t{words[1]} << 32);
    } else {
      data = words;
    }
  }

  Random random;
  Dut<DUT_CLASS> dut;
  Source<rp::read_beat_t> beats;
  std::deque<Landing> expected;
  std::map<unsigned, Word> slots;
  std::uint64_t bursts = 0, ends = 0;
  bool landed_before = false;
};
}  // namespace

TEST_CASE("random bursts") {
  Random random;
  for (int run = 0; run < 6; ++run) {
    Bench b(random());
    b.beats.stall(Stall::any(random));
    for (std::size_t n = 0; n < scaled(300); ++n) {
      const auto stride = static_cast<unsigned>(random.below(4));
      const unsigned line = 16u >> stride;
      const auto index = static_cast<unsigned>(random.bits(16));
      const unsigned count = static_cast<unsigned>(random.between(1, line - (index & (line - 1))));
      const unsigned log2 = static_cast<unsigned>(random.between(std::max(2u, stride), 5));
      const unsigned base = static_cast<unsigned>(random.below(4)) << log2;
      b.burst(static_cast<unsigned>(random.below(40)), index, stride, count, base, log2,
              std::uint64_t{index & (line - 1)} << (5 + stride));
    }
    b.dut.run_until([&] { return b.expected.empty(); }, "all land", 50000);
    b.dut.tick(5);
    CHECK(b.ends == b.bursts);
  }
}
