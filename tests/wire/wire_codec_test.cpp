// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The codec against the vectors (made by others), against itself and against malformed bytes.
#include "wire/wire_codec.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "wire/crc.hpp"
#include "wire/random_frames.hpp"
#include "wire/vectors.hpp"

using namespace roci::wirecodec;
using roci::test_seed;

TEST_CASE("opcode table has the opcodes of wire.md 1.4 and no other") {
  CHECK(all_opcodes().size() == 23 + 12 + 2 + 23);
  std::set<unsigned> expected;
  for (unsigned base : {0x00u, 0xa0u}) {
    for (unsigned code = 0; code <= 0x17; ++code) {
      if (code != 0x15) expected.insert(base + code);
    }
  }
  for (unsigned code = 0x20; code <= 0x2b; ++code) expected.insert(code);
  expected.insert({0x64, 0x65});
  for (unsigned code = 0; code < 256; ++code) {
    INFO("opcode " << code);
    const OpcodeInfo* info = opcode_info(static_cast<uint8_t>(code));
    CHECK((info != nullptr) == expected.contains(code));
    if (info != nullptr) CHECK(info->code == code);
  }
}

TEST_CASE("vectors: every field, rebuilt bytes, ICRC and FCS") {
  REQUIRE(vectors().good.size() >= 81);
  for (const Vector& v : vectors().good) {
    INFO(v.id << " " << v.name);
    const Frame frame = parse(v.bytes);
    CHECK(frame == v.fields);
    CHECK(encode(frame) == v.bytes);
    CHECK(build(v.fields) == v.bytes);  // pad, PayLen and ICRC computed here
    REQUIRE(frame.info() != nullptr);
    CHECK(std::string(frame.info()->name).rfind(v.transport + "_", 0) == 0);

    const size_t start = v.fields.eth.vlan ? 18 : 14;
    const auto packet = std::span(v.bytes).subspan(start);
    CHECK(icrc(packet.first(packet.size() - 4)) == v.icrc);
    CHECK(icrc_bit_serial(packet.first(packet.size() - 4)) == v.icrc);
    CHECK(icrc_residue(packet) == kCrcResidue);
    CHECK(fcs(v.bytes) == v.fcs);
    CHECK(fcs_bit_serial(v.bytes) == v.fcs);
    CHECK(describe(v.bytes).find("icrc=good") != std::string::npos);
  }
}

TEST_CASE("negative vectors keep their bytes through parse and encode") {
  for (const NegativeVector& v : vectors().negative) {
    INFO(v.id << " " << v.name);
    try {
      const Frame frame = parse(v.bytes);
      CHECK(encode(frame) == v.bytes);
    } catch (const ParseError& error) {
      // Only PayLen can break the structure.
      CHECK(v.name.find("PayLen") != std::string::npos);
      INFO(error.what());
    }
  }
}

TEST_CASE("random frames of every opcode survive build and parse") {
  const uint64_t seed = test_seed(1);
  INFO("ROCI_SEED=" << seed);
  RandomFrames random(seed);
  for (int round = 0; round < 20; ++round) {
    for (const OpcodeInfo& info : all_opcodes()) {
      const Frame frame = random.next(info);
      INFO(describe(frame));
      const Bytes bytes = encode(frame);
      CHECK(parse(bytes) == frame);
      CHECK(bytes.size() == (frame.eth.vlan ? 18u : 14u) + 40 + frame.grh.pay_len);
      CHECK(frame.grh.pay_len % 4 == 0);
      CHECK(frame.grh.pay_len ==
            12 + info.ext_bytes() + frame.payload.size() + frame.bth.pad_count + 4);
    }
  }
}

TEST_CASE("exactly 44 bits of a packet are outside the ICRC") {
  const Frame frame = finish(make_frame(Path{}, 0x04, 5, 77, Bytes{1, 2, 3, 4, 5}));
  const Bytes good = encode(frame);
  const auto good_packet = std::span(good).subspan(14);
  std::set<size_t> free_bytes;
  unsigned free_bits = 0;
  for (size_t bit = 0; bit < (good_packet.size() - 4) * 8; ++bit) {
    Bytes flipped(good_packet.begin(), good_packet.end());
    flipped[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    if (icrc_residue(flipped) == kCrcResidue) {
      ++free_bits;
      free_bytes.insert(bit / 8);
    }
  }
  CHECK(free_bits == 44);
  CHECK(free_bytes == std::set<size_t>{0, 1, 2, 3, 7, 44});
}

TEST_CASE("sizes of wire.md 1") {
  Path path;
  CHECK(build(make_ack(path, 1, 2, 0x1f, 3)).size() == 74);
  CHECK(build(make_frame(path, opcode(Transport::rc, op::send_only), 1, 0)).size() == 70);
  CHECK(build(make_frame(path, opcode(Transport::rc, op::write_only_imm), 1, 0, Bytes(4096)))
            .size() == 4186);
  path.vlan = VlanTag{};
  CHECK(build(make_frame(path, opcode(Transport::xrc, op::write_only_imm), 1, 0, Bytes(4096)))
            .size() == 4194);
}

TEST_CASE("trailing bytes are found by PayLen") {
  Frame frame = finish(make_frame(Path{}, 0x04, 5, 77, Bytes{9, 8, 7}));
  frame.trailing = {1, 2, 3, 4, 5, 6};
  const Frame back = parse(encode(frame));
  CHECK(back == frame);
  CHECK(back.payload == Bytes{9, 8, 7});
}

TEST_CASE("structure errors are told") {
  const Bytes good = build(make_frame(Path{}, 0x06, 5, 77, Bytes(256)));
  CHECK_NOTHROW(parse(good));
  for (size_t length = 0; length < good.size(); ++length) {
    INFO("cut to " << length);
    CHECK_THROWS_AS(parse(std::span(good).first(length)), ParseError);
  }
  Bytes other = good;
  other[12] = 0x08;
  CHECK_THROWS_WITH(parse(other), Catch::Contains("Ethertype"));
  Bytes small = good;
  small[18] = 0;
  small[19] = 15;
  CHECK_THROWS_WITH(parse(small), Catch::Contains("PayLen 15"));
  small[19] = 16;  // BTH and ICRC, but no room for the RETH
  CHECK_THROWS_WITH(parse(small), Catch::Contains("extended header"));
  CHECK_THROWS_AS(make_frame(Path{}, 0x81, 1, 1), std::invalid_argument);
  CHECK(describe(small).find("extended header") != std::string::npos);
}

TEST_CASE("malformed fields are written as given") {
  Frame frame = finish(make_frame(Path{}, 0x04, 5, 77, Bytes(8)));
  frame.grh.ip_version = 8;
  frame.grh.next_header = 0x11;
  frame.bth.tver = 1;
  frame.bth.pad_count = 3;
  frame.bth.resv7 = 0x55;
  frame = with_icrc(frame);
  const Bytes bytes = encode(frame);
  CHECK(bytes[14] >> 4 == 8);
  CHECK(bytes[20] == 0x11);
  CHECK((bytes[55] & 0xf) == 1);
  CHECK(icrc_residue(std::span(bytes).subspan(14)) == kCrcResidue);
}

TEST_CASE("random bytes never crash the parser") {
  const uint64_t seed = test_seed(2);
  INFO("ROCI_SEED=" << seed);
  RandomFrames random(seed);
  unsigned parsed = 0;
  for (int i = 0; i < 20000; ++i) {
    const OpcodeInfo& info = all_opcodes()[random.pick(all_opcodes().size())];
    Bytes bytes = encode(random.next(info));
    const uint64_t changes = 1 + random.pick(8);
    for (uint64_t c = 0; c < changes; ++c) {
      bytes[random.pick(std::min<size_t>(bytes.size(), 90))] =
          static_cast<uint8_t>(random.pick(256));
    }
    if (random.pick(3) == 0) bytes.resize(random.pick(bytes.size() + 1));
    try {
      const Frame frame = parse(bytes);
      CHECK(encode(frame) == bytes);
      ++parsed;
    } catch (const ParseError&) {
    }
  }
  CHECK(parsed > 2000);
}
