// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_rx against the independent frame checker: random frames, tagged or not, with faults in
// Ethertype, MAC, tag, FCS and length; what passes comes out from its GRH on, unchanged, with its
// Ethernet fields; each drop is counted once and by the first reason; back to back at full rate.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <optional>

#include "harness/harness.hpp"
#include "harness/packet_beats.hpp"
#include "roci_svstructs.hpp"
#include "wire/frame_checker.hpp"
#include "wire/opcodes.hpp"
#include "wire/random_frames.hpp"
#include "wire/wire_codec.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace wire = roci::wirecodec;
using wire::DropCounter;

namespace {

constexpr unsigned kBeat = ROCI_CONFIG_WIDE ? 64 : 8;

std::uint64_t mac_number(const std::uint8_t* bytes) {
  std::uint64_t out = 0;
  for (unsigned b = 0; b < 6; ++b) out = out << 8 | bytes[b];
  return out;
}

struct Bench {
  Dut<DUT_CLASS> dut;
  Random& random;
  Packets<pkg::beat_t> out;
  std::vector<pkg::rx_side_t> sides;               // of each frame
  std::array<unsigned, 4> drops{};                 // fcs, ethertype, mac, vlan
  unsigned good = 0;
  std::uint64_t good_bytes = 0;
  bool first = true;
  std::optional<std::size_t> turn_at;              // byte of a frame at which the port is switched
  bool turn_to = true;

  Bench(Random& r, std::uint64_t mac, bool promiscuous) : dut(r()), random(r) {
    pkg::port_t port{};
    port.mac = mac;
    port.promiscuous = promiscuous;
    port.pack(dut->port_i);
    dut->tvalid_i = 0;
    dut->enable_i = 1;
    dut.reset();
    dut.tick();
  }

  void tick() {
    dut.eval();
    if (dut->frame_valid_o) {
      const auto side = pkg::rx_side_t::unpack(dut->side_o);
      if (first) {
        sides.push_back(side);
      } else {
        REQUIRE(side == sides.back());
      }
      first = out.add(pkg::beat_t::unpack(dut->frame_o));
    }
    const auto drop = roci::sv::roci_count_pkg::rx_l2_drop_t::unpack(dut->drop_o);
    drops[0] += drop.fcs;
    drops[1] += drop.ethertype;
    drops[2] += drop.mac;
    drops[3] += drop.vlan;
    good += dut->good_o;
    if (dut->good_o) good_bytes += dut->good_bytes_o;
    dut.tick();
  }

  void push(const wire::Bytes& bytes, bool fcs_bad, double idle) {
    for (std::size_t at = 0; at < bytes.size(); at += kBeat) {
      while (random.chance(idle)) {
        dut->tvalid_i = 0;
        tick();
      }
      const auto n = std::min<std::size_t>(kBeat, bytes.size() - at);
      std::uint64_t keep = 0;
      for (unsigned k = 0; k < kBeat; ++k) {
        const auto byte = k < n ? bytes[at + k] : static_cast<std::uint8_t>(random.bits(8));
        if (k < n) keep |= std::uint64_t{1} << k;
#if ROCI_CONFIG_WIDE
        dut->tdata_i[k / 4] = (dut->tdata_i[k / 4] & ~(0xffu << (8 * (k % 4)))) |
                              (std::uint32_t{byte} << (8 * (k % 4)));
#else
        dut->tdata_i = (dut->tdata_i & ~(QData{0xff} << (8 * k))) | (QData{byte} << (8 * k));
#endif
      }
      dut->tkeep_i = static_cast<std::remove_reference_t<decltype(dut->tkeep_i)>>(keep);
      dut->tlast_i = at + n == bytes.size();
      dut->tuser_i = dut->tlast_i && fcs_bad;
      dut->tvalid_i = 1;
      if (turn_at && at + n > *turn_at) {
        dut->enable_i = turn_to;
        turn_at.reset();
      }
      tick();
    }
    dut->tvalid_i = 0;
  }
};

}  // namespace

TEST_CASE("frames pass or are dropped for the right reason") {
  Random random;
  for (int round = 0; round < 10; ++round) {
    wire::RandomFrames frames(random());
    const auto own = frames.next(wire::all_opcodes()[0]).eth.dst;
    const bool promiscuous = round % 3 == 0;
    Bench bench(random, mac_number(own.data()), promiscuous);
    wire::FrameFilter filter;
    if (!promiscuous) filter.mac = own;
    const double idle = random.chance(0.5) ? 0.0 : 0.3;
    std::array<unsigned, 4> drops{};
    unsigned good = 0;
    std::uint64_t good_bytes = 0;
    std::vector<wire::Bytes> expected;
    std::vector<bool> expected_err;
    std::vector<pkg::rx_side_t> expected_sides;
    for (std::size_t n = 0; n < scaled(200); ++n) {
      auto frame = frames.next(random.pick(wire::all_opcodes()));
      if (random.chance(0.9)) frame.eth.dst = own;
      auto bytes = wire::encode(frame);
      const bool fcs_bad = random.chance(0.1);
      switch (random.below(8)) {
        case 0: bytes[12] ^= static_cast<std::uint8_t>(random.bits(8)); break;
        case 1: bytes[random.below(18)] ^= 1u << random.below(8); break;
        case 2: bytes.resize(1 + random.below(70)); break;
        case 3:
          if (frame.eth.vlan) {
            bytes[16] = random.chance(0.5) ? 0x81 : 0x88;
            bytes[17] = bytes[16] == 0x81 ? 0x00 : 0xa8;
          }
          break;
        case 4:
          if (frame.eth.vlan) {
            bytes[14] |= 0x0f;
            bytes[15] = 0xff;
          }
          break;
        default: break;
      }
      // the checker's order, as far as Ethernet goes; a bad FCS counts before them
      const auto verdict = wire::check_frame(bytes, true, filter);
      const bool l2 = verdict.counter == DropCounter::ethertype ||
                      verdict.counter == DropCounter::mac || verdict.counter == DropCounter::vlan;
      if (random.chance(0.1)) {
        // while the port is disabled nothing passes and nothing counts
        bench.dut->enable_i = 0;
        bench.tick();
        bench.push(bytes, fcs_bad, idle);
        bench.dut->enable_i = 1;
        bench.tick();
        continue;
      }
      good += !fcs_bad;
      if (!fcs_bad) good_bytes += bytes.size();
      if (l2) {
        drops[fcs_bad                                      ? 0
              : verdict.counter == DropCounter::ethertype ? 1
              : verdict.counter == DropCounter::mac       ? 2
                                                          : 3]++;
      } else {
        const std::size_t at = bytes[12] == 0x81 && bytes[13] == 0x00 ? 18 : 14;
        expected.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(std::min(at, bytes.size())),
                              bytes.end());
        if (expected.back().empty()) expected.back().push_back(0);
        expected_err.push_back(fcs_bad);
        pkg::rx_side_t side{};
        side.ethernet.smac = mac_number(bytes.data() + 6);
        side.ethernet.vlan_valid = at == 18;
        side.ethernet.tci =
            at == 18 ? static_cast<std::uint16_t>(bytes[14] << 8 | bytes[15]) : std::uint16_t{0};
        expected_sides.push_back(side);
      }
      bench.push(bytes, fcs_bad, idle);
    }
    for (int n = 0; n < 5; ++n) bench.tick();
    REQUIRE(bench.drops == drops);
    REQUIRE(bench.good == good);
    REQUIRE(bench.good_bytes == good_bytes);
    REQUIRE(bench.out.done().size() == expected.size());
    for (std::size_t n = 0; n < expected.size(); ++n) {
      INFO("frame " << n);
      REQUIRE(bench.out.done()[n].bytes == expected[n]);
      REQUIRE(bench.out.done()[n].err == expected_err[n]);
      auto side = bench.sides[n];
      if (!side.ethernet.vlan_valid) side.ethernet.tci = 0;
      REQUIRE(side == expected_sides[n]);
    }
  }
}

TEST_CASE("the switch of the port acts between frames") {
  Random random;
  wire::RandomFrames frames(random());
  const auto frame = [&] {
    auto f = frames.next(random.pick(wire::all_opcodes()));
    return wire::encode(f);
  };
  Bench bench(random, 0, true);
  std::vector<wire::Bytes> expected;
  bool on = true;
  for (int n = 0; n < 200; ++n) {
    const auto bytes = frame();
    const bool now = random.chance(0.5);
    // turned while the frame is in work: this one goes on as it began
    bench.turn_at = random.below(bytes.size());
    bench.turn_to = now;
    bench.push(bytes, false, 0.2);
    if (on) {
      const std::size_t at = bytes[12] == 0x81 && bytes[13] == 0x00 ? 18 : 14;
      expected.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end());
    }
    on = now;
  }
  for (int n = 0; n < 5; ++n) bench.tick();
  REQUIRE(bench.out.done().size() == expected.size());
  for (std::size_t n = 0; n < expected.size(); ++n) REQUIRE(bench.out.done()[n].bytes == expected[n]);
  REQUIRE(bench.good == expected.size());
}
