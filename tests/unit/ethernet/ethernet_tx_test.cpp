// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_tx: frames equal header + packet, with and without VLAN tag, for all lengths; no gap inside
// a frame that the MAC could see. A frame leaves early only behind TRIAL_FRAMES that came smoothly
// (wide: from the first one on), to a MAC slower than memory, and nothing before it. Memory with gaps
// from the start costs no frame, in wide at most one. When memory changes its manners one frame ends
// bad, is reported once, loses exactly the rest of its packet, and the next CAUTIOUS_FRAMES leave whole;
// bus errors end bad; both are told to the counter. Packets that nobody sends again leave whole.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "harness/lanes.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

namespace {

constexpr unsigned kBeat = ROCI_CONFIG_WIDE ? 64 : 8;
constexpr double kSlow = ROCI_CONFIG_WIDE ? 0.4 : 0.8;   // share of cycles in which a MAC says no
constexpr unsigned kTrial = ROCI_CONFIG_WIDE ? 0 : 16, kCautious = 64;
constexpr unsigned kEarly = ROCI_CONFIG_WIDE ? 24 : 120;  // cycles to the first beat, at most

struct Packet {
  pkg::packet_side_t side;
  std::vector<std::uint8_t> bytes;
  bool err = false;
};

struct Frame {
  std::vector<std::uint8_t> bytes;
  bool bad = false;
  std::uint64_t first_cycle = 0;
  std::uint64_t last_cycle = 0;
  unsigned offered = 0;        // cycles with ready inside the frame
  unsigned beats = 0;
};

Packet random_packet(Random& random, unsigned length) {
  Packet p;
  p.side = random_payload<pkg::packet_side_t>(random);
  p.side.whole = false;
  p.bytes = random.bytes(length);
  return p;
}

std::vector<std::uint8_t> frame_of(const Packet& p) {
  std::vector<std::uint8_t> out;
  for (unsigned b = 0; b < 6; ++b) out.push_back(p.side.ethernet.dmac >> (40 - 8 * b) & 0xff);
  for (unsigned b = 0; b < 6; ++b) out.push_back(p.side.ethernet.smac >> (40 - 8 * b) & 0xff);
  if (p.side.ethernet.vlan_valid) {
    out.push_back(0x81);
    out.push_back(0x00);
    out.push_back(static_cast<std::uint8_t>(p.side.ethernet.tci >> 8));
    out.push_back(static_cast<std::uint8_t>(p.side.ethernet.tci));
  }
  out.push_back(0x89);
  out.push_back(0x15);
  out.insert(out.end(), p.bytes.begin(), p.bytes.end());
  return out;
}

// Drives packets beat by beat with chosen gaps and collects frames as a MAC does.
struct Bench {
  Dut<DUT_CLASS> dut;
  Random& random;
  std::deque<std::pair<pkg::beat_t, pkg::packet_side_t>> queue;
  std::vector<Frame> frames;
  std::vector<pkg::tx_done_t> underruns;
  std::vector<pkg::tx_done_t> packets;   // that were pushed
  std::size_t left = 0;                  // of them
  double gap = 0.0;            // probability of an idle input cycle
  double stop = 0.0;           // probability of a MAC that is not ready
  unsigned aborted = 0;        // pulses
  unsigned pushed = 0;         // beats taken
  bool offering = false;
  bool open = false;

  explicit Bench(Random& r) : dut(r()), random(r) {
    dut->beat_valid_i = 0;
    dut->tready_i = 0;
    dut->underrun_ready_i = 0;
    dut.reset();
  }

  void push(const Packet& p) {
    const auto length = static_cast<unsigned>(p.bytes.size());
    packets.push_back(p.side.done);
    for (unsigned at = 0; at < length; at += kBeat) {
      pkg::beat_t b{};
      const unsigned n = std::min(kBeat, length - at);
      b.last = at + n == length;
      b.bytes = static_cast<std::uint8_t>(n);
      b.err = b.last && p.err;
      for (unsigned k = 0; k < n; ++k) set_byte(b.data, k, p.bytes[at + k]);
      queue.emplace_back(b, p.side);
    }
  }

  void tick() {
    if (!offering && !queue.empty() && !random.chance(gap)) offering = true;
    dut->beat_valid_i = offering;
    if (offering) {
      queue.front().first.pack(dut->beat_i);
      queue.front().second.pack(dut->side_i);
    }
    dut->tready_i = !random.chance(stop);
    dut->underrun_ready_i = random.chance(0.5);
    dut.eval();
    const bool took = offering && dut->beat_ready_o;
    if (open && dut->tready_i) ++frames.back().offered;
    if (dut->tvalid_o && dut->tready_i) {
      if (!open) {
        frames.emplace_back();
        frames.back().first_cycle = dut.cycle();
        frames.back().offered = 1;
      }
      Frame& f = frames.back();
      ++f.beats;
      bool inside = true;
      for (unsigned k = 0; k < kBeat; ++k) {
        const bool keep = get_byte_mask(k);
        REQUIRE((inside || !keep));                  // no holes
        inside = keep;
        if (keep) f.bytes.push_back(tdata(k));
        if (!dut->tlast_o) REQUIRE(keep);
      }
      f.bad = dut->tlast_o && dut->tuser_o;
      f.last_cycle = dut.cycle();
      open = !dut->tlast_o;
    }
    if (dut->underrun_valid_o && dut->underrun_ready_i) {
      underruns.push_back(pkg::tx_done_t::unpack(dut->underrun_o));
    }
    if (dut->left_valid_o) {
      // each once, as it came, when its last beat is in the output register or was given up
      REQUIRE(left < packets.size());
      REQUIRE(pkg::tx_done_t::unpack(dut->left_o) == packets[left]);
      REQUIRE(++left <= frames.size() + 1);
    }
    aborted += dut->aborted_o;
    pushed += took;
    dut.tick();
    if (took) {
      queue.pop_front();
      offering = false;
    }
  }

  bool get_byte_mask(unsigned k) { return (static_cast<std::uint64_t>(dut->tkeep_o) >> k) & 1; }
  std::uint8_t tdata(unsigned k) {
#if ROCI_CONFIG_WIDE
    return static_cast<std::uint8_t>(dut->tdata_o[k / 4] >> (8 * (k % 4)));
#else
    return static_cast<std::uint8_t>(dut->tdata_o >> (8 * k));
#endif
  }
  void run(std::size_t count) {
    for (int n = 0; n < 2000000; ++n) {
      if (frames.size() == count && !open && queue.empty()) return;
      tick();
    }
    throw Failure("frames are missing");
  }

  // One packet into an idle transmitter; `hole` idle cycles in front of its beat `at`. Cycles from its
  // first beat to the frame's.
  std::uint64_t single(const Packet& p, unsigned at = 0, unsigned hole = 0) {
    const std::size_t count = frames.size() + 1;
    const unsigned before = pushed;
    push(p);
    std::deque<std::pair<pkg::beat_t, pkg::packet_side_t>> rest;
    if (hole != 0) {
      rest.assign(queue.begin() + at, queue.end());
      queue.erase(queue.begin() + at, queue.end());
    }
    const std::uint64_t start = dut.cycle();
    if (hole != 0) {
      while (pushed - before < at) tick();
      for (unsigned n = 0; n < hole; ++n) tick();
      queue = rest;
    }
    run(count);
    for (int n = 0; n < 8; ++n) tick();
    REQUIRE(left == packets.size());
    return frames.back().first_cycle - start;
  }
};

}  // namespace

TEST_CASE("frames of every length, whole in one piece") {
  Random random;
  for (int round = 0; round < 4; ++round) {
    Bench bench(random);
    bench.stop = random.chance(0.5) ? 0.0 : 0.4;
    std::vector<Packet> packets;
    for (unsigned n = 0; n < 150; ++n) {
      const auto length = random.chance(0.8) ? random.between(56, 300) : random.between(56, 4180);
      packets.push_back(random_packet(random, static_cast<unsigned>(length)));
      packets.back().err = random.chance(0.1);
      bench.push(packets.back());
    }
    bench.run(packets.size());
    for (int n = 0; n < 3; ++n) bench.tick();
    REQUIRE(bench.left == packets.size());
    for (std::size_t n = 0; n < packets.size(); ++n) {
      REQUIRE(bench.frames[n].bytes == frame_of(packets[n]));
      REQUIRE(bench.frames[n].bad == packets[n].err);
      REQUIRE(bench.frames[n].offered == bench.frames[n].beats);
    }
    REQUIRE(bench.underruns.empty());
  }
}

TEST_CASE("memory with gaps from the start costs the frame that was begun on trust, if any") {
  Random random;
  for (const double stop : {0.0, kSlow}) {
    Bench bench(random);
    bench.gap = 0.7;
    bench.stop = stop;
    std::vector<Packet> packets;
    for (unsigned n = 0; n < 100; ++n) {
      packets.push_back(random_packet(random, static_cast<unsigned>(random.between(56, 4180))));
      if (n < 50) {
        bench.single(packets.back());
      } else {
        bench.push(packets.back());
      }
    }
    bench.run(packets.size());
    unsigned bad = 0;
    for (std::size_t n = 0; n < packets.size(); ++n) {
      bad += bench.frames[n].bad;
      if (!bench.frames[n].bad) REQUIRE(bench.frames[n].bytes == frame_of(packets[n]));
      REQUIRE(bench.frames[n].offered == bench.frames[n].beats);   // the MAC never saw a gap
    }
    REQUIRE(bad <= (kTrial == 0 ? 1 : 0));
    REQUIRE(bench.underruns.size() == bad);
    REQUIRE(bench.aborted == bad);
  }
}

TEST_CASE("an early start is earned, used, lost by one late frame and earned again") {
  Random random;
  Bench bench(random);
  bench.stop = kSlow;
  const auto packet = [&] { return random_packet(random, 4096); };
  const unsigned whole = 4096 / kBeat;
  // on trial: all of it first
  for (unsigned n = 0; n < kTrial; ++n) REQUIRE(bench.single(packet()) >= whole);
  // short ones prove nothing, and take nothing away
  for (unsigned n = 0; n < 5; ++n) bench.single(random_packet(random, 3 * kBeat));
  for (unsigned n = 0; n < 5; ++n) REQUIRE(bench.single(packet()) < kEarly);
  REQUIRE(bench.aborted == 0);

  // behind another frame it waits: first beat only when it is all there
  {
    const std::size_t count = bench.frames.size();
    const auto first = random_packet(random, 2 * kBeat);
    const auto second = packet();
    bench.push(first);
    bench.push(second);
    const auto before = bench.pushed;
    bench.run(count + 2);
    REQUIRE(bench.pushed - before == 2 + whole);
    REQUIRE(bench.frames[count + 1].bytes == frame_of(second));
    REQUIRE(bench.frames[count + 1].first_cycle - bench.frames[count].first_cycle + 8 >= whole);
    for (int n = 0; n < 8; ++n) bench.tick();
  }

  // nobody would send this one again: all of it first
  auto once = packet();
  once.side.whole = true;
  REQUIRE(bench.single(once) >= whole);
  REQUIRE(bench.single(packet()) < kEarly);

  // memory changes: the frame under way is lost, and no other
  auto late = packet();
  REQUIRE(bench.single(late, whole / 2, 12 * whole) < kEarly);
  REQUIRE(bench.frames.back().bad);
  REQUIRE(bench.frames.back().bytes.size() < 4096);
  REQUIRE(bench.aborted == 1);
  REQUIRE(bench.underruns.size() == 1);
  auto want = late.side.done;
  want.fate = static_cast<pkg::tx_fate_e>(1);
  REQUIRE(bench.underruns[0] == want);
  for (unsigned n = 0; n < 20; ++n) {
    bench.single(packet(), whole / 2, 12 * whole);
    REQUIRE_FALSE(bench.frames.back().bad);
  }
  for (unsigned n = 0; n < kCautious; ++n) REQUIRE(bench.single(packet()) >= whole);
  REQUIRE(bench.single(packet()) < kEarly);
  // a gap that what is buffered bridges: the frame is good, the trust is gone
  REQUIRE(bench.single(packet(), ROCI_CONFIG_WIDE ? 12 : 40, ROCI_CONFIG_WIDE ? 3 : 17) < kEarly);
  REQUIRE(bench.single(packet()) >= whole);
  REQUIRE(bench.aborted == (ROCI_CONFIG_WIDE && bench.frames[bench.frames.size() - 2].bad ? 2 : 1));
  for (const auto& frame : bench.frames) REQUIRE(frame.offered == frame.beats);

  // trusted again: of those that nobody sends again none is lost, when memory changes
  for (unsigned n = 0; n < kCautious; ++n) bench.single(packet());
  REQUIRE(bench.single(packet()) < kEarly);
  const auto lost = bench.aborted;
  REQUIRE(bench.single(once, whole / 2, 12 * whole) >= whole);
  REQUIRE_FALSE(bench.frames.back().bad);
  REQUIRE(bench.aborted == lost);
}

TEST_CASE("a MAC as fast as memory gets whole frames only") {
  Random random;
  Bench bench(random);
  // wide believes in a slow MAC until it has seen 64 beats from the 16th of a frame on
  const unsigned learning = ROCI_CONFIG_WIDE ? 2 : 0;
  for (unsigned n = 0; n < learning; ++n) REQUIRE(bench.single(random_packet(random, 4096)) < kEarly);
  for (unsigned n = 0; n < kTrial + 10; ++n) {
    REQUIRE(bench.single(random_packet(random, 4096)) >= 4096 / kBeat);
  }
  for (const auto& frame : bench.frames) REQUIRE_FALSE(frame.bad);
}

TEST_CASE("a frame with a bus error is told to the counter, but is no underrun") {
  Random random;
  Bench bench(random);
  for (const unsigned length : {64u, 100u, 4100u}) {
    auto p = random_packet(random, length);
    p.err = true;
    bench.single(p);
    REQUIRE(bench.frames.back().bad);
    REQUIRE(bench.frames.back().bytes == frame_of(p));
  }
  REQUIRE(bench.aborted == 3);
  REQUIRE(bench.underruns.empty());
}
