// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_rx_buffer and the checkers around it against the independent frame checker: golden frames,
// the negative vectors, and random frames with random faults are accepted or dropped for the reason
// the oracle gives; accepted ones come out whole and in order, dropped ones leave no trace; with the
// way out blocked frames are dropped whole and loopback keeps its reserve.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "harness/packet_beats.hpp"
#include "roci_svstructs.hpp"
#include "wire/frame_checker.hpp"
#include "wire/opcodes.hpp"
#include "wire/random_frames.hpp"
#include "wire/vectors.hpp"
#include "wire/wire_codec.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace wire = roci::wirecodec;
using wire::DropCounter;

namespace {

DropCounter reason_of(const roci::sv::roci_count_pkg::rx_fate_t& fate) {
  if (fate.fcs) return DropCounter::fcs;
  if (fate.oversize) return DropCounter::oversize;
  if (fate.ipver) return DropCounter::ipver;
  if (fate.nxthdr) return DropCounter::nxthdr;
  if (fate.paylen) return DropCounter::paylen;
  if (fate.tver) return DropCounter::tver;
  if (fate.gid) return DropCounter::gid;
  if (fate.opcode) return DropCounter::opcode;
  if (fate.dest_qp) return DropCounter::dest_qp;
  if (fate.icrc) return DropCounter::icrc;
  return DropCounter::none;
}

struct Bench {
  Dut<DUT_CLASS> dut;
  Random& random;
  Sink<pkg::beat_t> beat;
  Monitor<pkg::rx_side_t> side;
  Packets<pkg::beat_t> out;
  std::vector<pkg::rx_side_t> sides;
  std::vector<roci::sv::roci_count_pkg::rx_fate_t> fates;
  std::size_t seen = 0;

  Bench(Random& r, const std::vector<wire::Gid>& gids, bool promiscuous)
      : dut(r()),
        random(r),
        beat("beat", dut->beat_valid_o, dut->beat_ready_i, dut->beat_o),
        side("side", dut->beat_valid_o, dut->beat_ready_i, dut->side_o) {
    pkg::port_t port{};
    port.promiscuous = promiscuous;
    for (std::size_t n = 0; n < gids.size(); ++n) {
      port.gid_valid |= static_cast<decltype(port.gid_valid)>(1u << n);
      for (unsigned b = 0; b < 16; ++b) {
        const unsigned bit = 120 - 8 * b;
        port.gid[n][bit / 32] |= std::uint32_t{gids[n][b]} << (bit % 32);
      }
    }
    port.pack(dut->port_i);
    dut->frame_valid_i = 0;
    beat.collect();
    side.on_transfer([this](const pkg::rx_side_t& s) { sides.push_back(s); });
    dut.reset();
    dut.attach(beat);
    dut.attach(side);
  }

  void tick() {
    const auto fate = roci::sv::roci_count_pkg::rx_fate_t::unpack(dut->fate_o);
    if (fate.valid) {
      fates.push_back(fate);
    } else {
      REQUIRE(fate == roci::sv::roci_count_pkg::rx_fate_t{});         // counters look at single members
    }
    dut.tick();
    for (; seen < beat.received().size(); ++seen) out.add(beat.received()[seen]);
  }

  // A frame from its GRH on, at full rate or with gaps.
  void push(std::span<const std::uint8_t> bytes, const pkg::rx_side_t& s, bool fcs_bad,
            double idle) {
    for (const auto& b : to_beats<pkg::beat_t>(bytes, random, fcs_bad)) {
      while (random.chance(idle)) {
        dut->frame_valid_i = 0;
        tick();
      }
      b.pack(dut->frame_i);
      s.pack(dut->side_i);
      dut->frame_valid_i = 1;
      tick();
    }
    dut->frame_valid_i = 0;
  }

  void rest() {
    int quiet = 0;
    for (int n = 0; n < 200000 && quiet < 300; ++n) {
      quiet = dut->beat_valid_o ? 0 : quiet + 1;
      tick();
    }
    REQUIRE(out.at_rest());
  }
};

std::size_t ethernet_bytes(const wire::Bytes& frame) {
  return frame[12] == 0x81 && frame[13] == 0x00 ? 18 : 14;
}

// The packet as far as PayLen says.
wire::Bytes packet_of(const wire::Bytes& frame) {
  const auto at = ethernet_bytes(frame);
  const std::size_t length = 40 + (frame[at + 4] << 8 | frame[at + 5]);
  return {frame.begin() + static_cast<std::ptrdiff_t>(at),
          frame.begin() + static_cast<std::ptrdiff_t>(at + length)};
}

struct Expected {
  DropCounter reason;
  wire::Bytes packet;
  pkg::rx_side_t side;
};

void check(Bench& bench, const std::vector<Expected>& expected) {
  REQUIRE(bench.fates.size() == expected.size());
  std::size_t packet = 0;
  std::size_t beat = 0;
  for (std::size_t n = 0; n < expected.size(); ++n) {
    INFO("frame " << n);
    REQUIRE_FALSE(bench.fates[n].overflow);
    REQUIRE(wire::counter_name(reason_of(bench.fates[n])) ==
            wire::counter_name(expected[n].reason));
    if (expected[n].reason != DropCounter::none) continue;
    REQUIRE(packet < bench.out.done().size());
    REQUIRE(bench.out.done()[packet].bytes == expected[n].packet);
    REQUIRE(bench.sides[beat] == expected[n].side);
    beat += (expected[n].packet.size() + beat_bytes<pkg::beat_t>() - 1) /
            beat_bytes<pkg::beat_t>();
    ++packet;
  }
  REQUIRE(packet == bench.out.done().size());
}

}  // namespace

TEST_CASE("golden frames are accepted, negative vectors judged") {
  Random random;
  Bench bench(random, {}, true);
  std::vector<Expected> expected;
  const auto add = [&](const wire::Bytes& bytes) {
    const auto verdict = wire::check_frame(bytes, true);
    const auto at = static_cast<std::ptrdiff_t>(ethernet_bytes(bytes));
    const auto side = random_payload<pkg::rx_side_t>(random);
    bench.push({bytes.begin() + at, bytes.end()}, side, false, 0.0);
    expected.push_back(
        {verdict.counter, verdict.accepted() ? packet_of(bytes) : wire::Bytes{}, side});
  };
  for (const auto& v : wire::vectors().good) {
    REQUIRE(wire::check_frame(v.bytes, true).accepted());
    add(v.bytes);
  }
  unsigned negatives = 0;
  for (const auto& v : wire::vectors().negative) {
    const auto verdict = wire::check_frame(v.bytes, true);
    // Ethernet's own checks are ethernet_rx's
    if (verdict.counter == DropCounter::ethertype || verdict.counter == DropCounter::vlan) continue;
    add(v.bytes);
    ++negatives;
  }
  REQUIRE(negatives >= 8);
  bench.rest();
  check(bench, expected);
}

TEST_CASE("a packet has at most 4176 bytes, a frame with its padding no more") {
  Random random;
  Bench bench(random, {}, true);
  wire::RandomFrames frames(random());
  const auto* info = wire::opcode_info(0xab);        // XRC WRITE_ONLY with immediate: the longest
  REQUIRE(info != nullptr);
  auto frame = frames.next(*info);
  frame.eth.vlan.reset();
  frame.payload.assign(4096, 0x5c);
  const auto longest = wire::encode(wire::finish(frame));
  REQUIRE(longest.size() == 14 + 4176);
  frame.payload.resize(100);
  const auto small = wire::encode(wire::finish(frame));
  std::vector<Expected> expected;
  // the frame of `bytes`, with padding up to `size` bytes from the GRH on
  const auto add = [&](wire::Bytes bytes, std::size_t size, DropCounter reason) {
    bytes.resize(14 + size, 0x33);
    REQUIRE(wire::counter_name(wire::check_frame(bytes, true).counter) ==
            wire::counter_name(reason));
    pkg::rx_side_t side{};
    bench.push({bytes.begin() + 14, bytes.end()}, side, false, 0.0);
    expected.push_back(
        {reason, reason == DropCounter::none ? packet_of(bytes) : wire::Bytes{}, side});
    for (int n = 0; n < 700; ++n) bench.tick();      // room for the next
  };
  add(longest, 4176, DropCounter::none);
  add(longest, 4177, DropCounter::oversize);
  add(small, 4176, DropCounter::none);
  add(small, 4177, DropCounter::oversize);
  add(small, 9600, DropCounter::oversize);
  add(longest, 9600, DropCounter::oversize);
  add(small, small.size() - 14, DropCounter::none);
  auto promises = longest;                           // a PayLen of more than the largest packet …
  promises[14 + 4] = 0x11;
  add(promises, 4176, DropCounter::paylen);          // … which the frame does not have
  add(promises, 5000, DropCounter::oversize);        // … and which it has
  add(longest, 4175, DropCounter::paylen);
  bench.rest();
  check(bench, expected);
  // no more of a frame than that is stored: an endless one leaves room for others
  wire::Bytes endless(60000, 0x5a);
  endless[4] = endless[5] = 0xff;                    // PayLen
  pkg::rx_side_t side{};
  bench.push(endless, side, false, 0.0);
  for (int n = 0; n < 100; ++n) bench.tick();
  REQUIRE(bench.fates.back().oversize);
  REQUIRE_FALSE(bench.fates.back().overflow);
}

TEST_CASE("random frames with random faults") {
  Random random;
  for (int round = 0; round < 8; ++round) {
    std::vector<wire::Gid> gids;
    wire::RandomFrames frames(random());
    for (int n = 0; n < 5; ++n) gids.push_back(frames.next(wire::all_opcodes()[0]).grh.dgid);
    const bool promiscuous = round % 2 == 0;
    Bench bench(random, gids, promiscuous);
    wire::FrameFilter filter;
    if (!promiscuous) filter.gids = gids;
    const double idle = random.chance(0.5) ? 0.0 : 0.3;
    bench.beat.stall(Stall(random.chance(0.5) ? 0.0 : 0.1));
    std::vector<Expected> expected;
    for (std::size_t n = 0; n < scaled(150); ++n) {
      auto frame = frames.next(random.pick(wire::all_opcodes()));
      frame.eth.vlan.reset();
      if (!promiscuous && random.chance(0.9)) frame.grh.dgid = random.pick(gids);
      frame = wire::with_icrc(frame);
      auto bytes = wire::encode(frame);
      if (random.chance(0.3)) {
        const auto extra = random.bytes(random.between(1, 60));
        bytes.insert(bytes.end(), extra.begin(), extra.end());
      }
      bool fcs_bad = false;
      switch (random.below(8)) {
        case 0: bytes[14 + random.below(64)] ^= 1u << random.below(8); break;
        case 1: bytes.resize(15 + random.below(bytes.size() - 15)); break;
        case 2: fcs_bad = true; break;
        case 3: {                                   // a wrong field under a right ICRC
          auto wrong = frame;
          switch (random.below(6)) {
            case 0: wrong.grh.ip_version ^= static_cast<std::uint8_t>(random.between(1, 15)); break;
            case 1: wrong.grh.next_header ^= static_cast<std::uint8_t>(random.between(1, 255)); break;
            case 2: wrong.bth.tver = static_cast<std::uint8_t>(random.between(1, 15)); break;
            case 3: wrong.bth.opcode = static_cast<std::uint8_t>(random.bits(8)); break;
            case 4: wrong.bth.dest_qp = random.chance(0.5) ? 0 : 0xffffff; break;
            default: wrong.bth.pad_count = static_cast<std::uint8_t>(random.bits(2)); break;
          }
          bytes = wire::encode(wire::with_icrc(wrong));
          break;
        }
        default: break;
      }
      const auto verdict = wire::check_frame(bytes, !fcs_bad, filter);
      const auto side = random_payload<pkg::rx_side_t>(random);
      bench.push({bytes.begin() + 14, bytes.end()}, side, fcs_bad, idle);
      expected.push_back(
          {verdict.counter, verdict.accepted() ? packet_of(bytes) : wire::Bytes{}, side});
      // leave room, so that nothing is dropped for want of it
      while (bench.dut->half_full_o) bench.tick();
    }
    bench.rest();
    check(bench, expected);
  }
}

TEST_CASE("a full buffer drops whole frames and keeps the loopback reserve") {
  Random random;
  Bench bench(random, {}, true);
  bench.beat.stall(Stall(1.0));                      // the way out is blocked
  wire::RandomFrames frames(random());
  const auto* info = wire::opcode_info(0x0a);
  REQUIRE(info != nullptr);
  std::vector<wire::Bytes> sent;
  pkg::rx_side_t side{};
  for (int n = 0; n < 2500; ++n) {
    const auto frame = frames.next(*info);
    auto bytes = wire::encode(frame);
    sent.push_back(packet_of(bytes));
    bench.push(sent.back(), side, false, 0.0);
  }
  REQUIRE(bench.dut->loopback_room_o);               // the wire cannot take the reserve
  REQUIRE(bench.dut->half_full_o);
  side.loopback = true;
  for (int n = 0; n < 3; ++n) {                      // and loopback can use it
    if (!bench.dut->loopback_room_o) break;
    const auto bytes = wire::encode(frames.next(*info));
    sent.push_back(packet_of(bytes));
    bench.push(sent.back(), side, false, 0.0);
    for (int k = 0; k < 40; ++k) bench.tick();
    REQUIRE_FALSE(bench.fates.back().overflow);
  }
  bench.beat.stall(Stall(0.0));
  bench.rest();
  REQUIRE(bench.fates.size() == sent.size());
  std::size_t packet = 0;
  std::size_t dropped = 0;
  for (std::size_t n = 0; n < sent.size(); ++n) {
    if (bench.fates[n].overflow) {
      ++dropped;
      continue;
    }
    REQUIRE(bench.out.done().at(packet).bytes == sent[n]);
    ++packet;
  }
  REQUIRE(packet == bench.out.done().size());
  REQUIRE(dropped > 1000);
  REQUIRE(packet > 5);
  REQUIRE_FALSE(bench.dut->half_full_o);
  REQUIRE_FALSE(bench.dut->crowded_o);
}

TEST_CASE("half full and crowded at the right fill") {
  Random random;
  Bench bench(random, {}, true);
  bench.beat.stall(Stall(1.0));                      // the way out is blocked
  wire::RandomFrames frames(random());
  const auto* info = wire::opcode_info(0x0a);
  REQUIRE(info != nullptr);
  const std::size_t beats = (ROCI_CONFIG_WIDE ? 65536 : 16384) / beat_bytes<pkg::beat_t>();
  constexpr std::size_t kAhead = 8;                  // beats that wait at the way out already
  pkg::rx_side_t side{};
  side.loopback = true;                              // may fill all of it
  std::size_t stored = 0;
  bench.tick();
  bench.tick();
  while (bench.dut->loopback_room_o) {
    const auto bytes = wire::encode(frames.next(*info));
    const auto packet = packet_of(bytes);
    bench.push(packet, side, false, 0.0);
    for (int k = 0; k < 40; ++k) bench.tick();
    REQUIRE_FALSE(bench.fates.back().overflow);
    stored += (packet.size() + beat_bytes<pkg::beat_t>() - 1) / beat_bytes<pkg::beat_t>();
    const std::size_t used = stored - std::min(stored, kAhead);
    REQUIRE((bench.dut->half_full_o != 0) == (used >= beats / 2));
    REQUIRE((bench.dut->crowded_o != 0) == (used >= beats / 4 * 3));
  }
  REQUIRE(bench.dut->half_full_o);
  bench.beat.stall(Stall(0.0));
  bench.rest();
  REQUIRE_FALSE(bench.dut->half_full_o);
  REQUIRE_FALSE(bench.dut->crowded_o);
}

TEST_CASE("as many short packets as there are: pressure is told in time, loopback keeps its places") {
  Random random;
  Bench bench(random, {}, true);
  bench.beat.stall(Stall(1.0));                      // the way out is blocked
  wire::RandomFrames frames(random());
  const auto* info = wire::opcode_info(0x11);        // ACK: the shortest
  REQUIRE(info != nullptr);
  const auto packet = packet_of(wire::encode(frames.next(*info)));
  pkg::rx_side_t side{};
  unsigned before = 0;                               // good ones until pressure was told
  std::size_t sent = 0;
  for (; sent < 600; ++sent) {
    bench.push(packet, side, false, 0.0);
    if (!bench.dut->half_full_o) ++before;
  }
  REQUIRE(bench.dut->half_full_o);
  REQUIRE(before < 300);
  for (int k = 0; k < 40; ++k) bench.tick();
  REQUIRE(bench.fates.back().overflow);              // the wire's are dropped
  REQUIRE(bench.dut->loopback_room_o);
  side.loopback = true;
  std::size_t own = 0;
  for (; bench.dut->loopback_room_o && own < 1000; ++own) bench.push(packet, side, false, 0.0);
  REQUIRE(own >= 1);
  REQUIRE(own < 1000);
  bench.beat.stall(Stall(0.0));
  bench.rest();
  REQUIRE(bench.fates.size() == sent + own);
  for (const auto& fate : bench.fates) REQUIRE_FALSE((fate.loopback && fate.overflow));
  REQUIRE(bench.dut->loopback_room_o);
  REQUIRE_FALSE(bench.dut->half_full_o);
}
