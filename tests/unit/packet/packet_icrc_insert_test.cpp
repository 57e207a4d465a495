// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_icrc_insert: the ICRC it appends is that of the golden frames and of random frames of all
// opcodes (bit-serial codec); no gap before a packet's end; side fields and error stay with it.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "harness/packet_beats.hpp"
#include "roci_svstructs.hpp"
#include "wire/opcodes.hpp"
#include "wire/random_frames.hpp"
#include "wire/vectors.hpp"
#include "wire/wire_codec.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace wire = roci::wirecodec;

namespace {

using Input = SidedSource<pkg::beat_t, pkg::packet_side_t>;

struct Bench {
  Dut<DUT_CLASS> dut;
  Random& random;
  Input input;
  Sink<pkg::beat_t> beat;
  Monitor<pkg::packet_side_t> side;
  Packets<pkg::beat_t> out;
  std::vector<pkg::packet_side_t> sides;
  std::vector<wire::Bytes> expected;
  std::vector<pkg::packet_side_t> expected_sides;
  std::vector<bool> expected_err;
  std::size_t seen = 0;

  explicit Bench(Random& r)
      : dut(r()),
        random(r),
        input(dut, r()),
        beat("beat", dut->beat_valid_o, dut->beat_ready_i, dut->beat_o),
        side("side", dut->beat_valid_o, dut->beat_ready_i, dut->side_o) {
    beat.collect();
    side.on_transfer([this](const pkg::packet_side_t& s) { sides.push_back(s); });
    dut.reset();
    dut.attach(input);
    dut.attach(beat);
    dut.attach(side);
  }

  // `bytes` from the GRH to the ICRC; goes in without the ICRC.
  void push(wire::Bytes bytes) {
    const auto s = random_payload<pkg::packet_side_t>(random);
    const bool err = random.chance(0.1);
    auto without = bytes;
    without.resize(bytes.size() - 4);
    for (const auto& b : to_beats<pkg::beat_t>(without, random, err)) input.push(b, s);
    expected.push_back(std::move(bytes));
    expected_sides.push_back(s);
    expected_err.push_back(err);
  }

  void run() {
    dut.run_until(
        [&] {
          for (; seen < beat.received().size(); ++seen) {
            const auto packet = out.done().size();
            REQUIRE(sides[seen] == expected_sides.at(packet));
            out.add(beat.received()[seen]);
          }
          return out.done().size() == expected.size();
        },
        "all packets", 1000000);
    for (std::size_t n = 0; n < expected.size(); ++n) {
      INFO("packet " << n);
      REQUIRE(out.done()[n].bytes == expected[n]);
      REQUIRE(out.done()[n].err == expected_err[n]);
    }
  }
};

wire::Bytes from_grh(const wire::Bytes& frame, bool vlan) {
  return {frame.begin() + (vlan ? 18 : 14), frame.end()};
}

}  // namespace

TEST_CASE("golden frames get their ICRC") {
  Random random;
  Bench bench(random);
  const auto vectors = wire::vectors();
  REQUIRE(vectors.good.size() == 81);
  for (const auto& v : vectors.good) {
    bench.push(from_grh(v.bytes, v.fields.eth.vlan.has_value()));
  }
  bench.run();
}

TEST_CASE("random frames of all opcodes, random stalls") {
  Random random;
  for (int round = 0; round < 6; ++round) {
    Bench bench(random);
    bench.input.idle(random.chance(0.5) ? 0.0 : 0.5);
    bench.beat.stall(Stall::any(random));
    wire::RandomFrames frames(random());
    for (std::size_t n = 0; n < scaled(4); ++n) {
      for (const auto& info : wire::all_opcodes()) {
        const auto frame = frames.next(info);
        bench.push(from_grh(wire::encode(frame), frame.eth.vlan.has_value()));
      }
    }
    bench.run();
  }
}

TEST_CASE("no gap inside a packet, packets back to back") {
  Random random;
  Bench bench(random);
  wire::RandomFrames frames(7);
  std::uint64_t beats = 0;
  const auto* info = wire::opcode_info(0x0a);
  REQUIRE(info != nullptr);
  for (int n = 0; n < 60; ++n) {
    const auto frame = frames.next(*info);
    bench.push(from_grh(wire::encode(frame), frame.eth.vlan.has_value()));
    beats += (bench.expected.back().size() + beat_bytes<pkg::beat_t>() - 1) /
             beat_bytes<pkg::beat_t>();
  }
  const auto start = bench.dut.cycle();
  bench.run();
  REQUIRE(bench.dut.cycle() - start < beats + 20);
}
