// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_tx: frames equal header + packet, with and without VLAN tag, for all lengths; no gap inside
// a frame that the MAC could see; an underrun ends the frame as bad, is reported once, drops exactly
// the rest of that packet, and makes the next frames store first; bus errors end bad.
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
  double gap = 0.0;            // probability of an idle input cycle
  double stop = 0.0;           // probability of a MAC that is not ready
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
    for (std::size_t n = 0; n < packets.size(); ++n) {
      REQUIRE(bench.frames[n].bytes == frame_of(packets[n]));
      REQUIRE(bench.frames[n].bad == packets[n].err);
      REQUIRE(bench.frames[n].offered == bench.frames[n].beats);
    }
    REQUIRE(bench.underruns.empty());
  }
}

TEST_CASE("underruns: bad frame, one report, caution afterwards, progress always") {
  Random random;
  for (int round = 0; round < 4; ++round) {
    Bench bench(random);
    bench.gap = 0.7;
    std::vector<Packet> packets;
    for (unsigned n = 0; n < 100; ++n) {
      packets.push_back(random_packet(random, static_cast<unsigned>(random.between(800, 4180))));
      packets.back().side.done.psn = n;
      bench.push(packets.back());
    }
    bench.run(packets.size());
    for (int n = 0; n < 50; ++n) bench.tick();
    std::size_t bad = 0;
    for (std::size_t n = 0; n < packets.size(); ++n) {
      const auto& f = bench.frames[n];
      REQUIRE(f.offered == f.beats);               // the MAC never saw a gap
      if (f.bad) {
        REQUIRE(bad < bench.underruns.size());
        auto want = packets[n].side.done;
        want.fate = static_cast<pkg::tx_fate_e>(1);
        REQUIRE(bench.underruns[bad] == want);
        ++bad;
      } else {
        REQUIRE(f.bytes == frame_of(packets[n]));
      }
    }
    REQUIRE(bad >= 1);
    REQUIRE(bad <= 2);                             // 64 cautious frames in between
    REQUIRE(bench.underruns.size() == bad);
  }
}

TEST_CASE("cut-through: the first beat leaves while the packet still comes") {
  Random random;
  Bench bench(random);
  const auto packet = random_packet(random, 4096);
  bench.push(packet);
  const auto start = bench.dut.cycle();
  bench.run(1);
  REQUIRE(bench.frames[0].bytes == frame_of(packet));
  REQUIRE(bench.frames[0].first_cycle - start < 12);
}
