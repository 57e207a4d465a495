// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_icrc_check: golden and random frames are good; with any bit flipped they are bad, except the
// 44 bits that the ICRC does not cover (wire.md 1.6), found by flipping each one.
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

struct Bench {
  Dut<DUT_CLASS> dut;
  Random& random;
  std::vector<bool> expected;
  std::vector<bool> got;

  explicit Bench(Random& r) : dut(r()), random(r) {
    dut->beat_valid_i = 0;
    dut.reset();
  }
  void tick() {
    if (dut->result_valid_o) got.push_back(dut->good_o);
    dut.tick();
  }
  void push(const wire::Bytes& bytes, bool good, double idle = 0.0) {
    expected.push_back(good);
    for (const auto& beat : to_beats<pkg::beat_t>(bytes, random)) {
      while (random.chance(idle)) tick();
      beat.pack(dut->beat_i);
      dut->beat_valid_i = 1;
      tick();
      dut->beat_valid_i = 0;
    }
  }
  void finish() {
    for (int n = 0; n < 20; ++n) tick();
    REQUIRE(got == expected);
  }
};

wire::Bytes from_grh(const wire::Bytes& frame, bool vlan) {
  return {frame.begin() + (vlan ? 18 : 14), frame.end()};
}

}  // namespace

TEST_CASE("golden and random frames") {
  Random random;
  Bench bench(random);
  const auto vectors = wire::vectors();
  for (const auto& v : vectors.good) {
    bench.push(from_grh(v.bytes, v.fields.eth.vlan.has_value()), true);
  }
  wire::RandomFrames frames(random());
  for (std::size_t n = 0; n < scaled(6); ++n) {
    for (const auto& info : wire::all_opcodes()) {
      const auto frame = frames.next(info);
      auto bytes = from_grh(wire::encode(frame), frame.eth.vlan.has_value());
      const bool bad = random.chance(0.5);
      if (bad) bytes[bytes.size() - 1 - random.below(4)] ^= 1u << random.below(8);
      bench.push(bytes, !bad, 0.1);
    }
  }
  bench.finish();
}

TEST_CASE("each bit is covered but the 44 variant ones") {
  Random random;
  Bench bench(random);
  const auto vectors = wire::vectors();
  const auto& v = vectors.good.front();
  const auto bytes = from_grh(v.bytes, v.fields.eth.vlan.has_value());
  unsigned uncovered = 0;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto byte = bit / 8;
    const bool variant = (byte == 0 && bit % 8 < 4) || (byte >= 1 && byte <= 3) || byte == 7 ||
                         byte == 44;
    uncovered += variant;
    auto flipped = bytes;
    flipped[byte] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    bench.push(flipped, variant);
  }
  REQUIRE(uncovered == 44);
  bench.finish();
}
