// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_crc32: results, their time, and goodness against a bit-serial CRC; frames of the known
// vectors; packets back to back, gaps, enable_i low, garbage behind the end and between packets.
// model: configs=any args=-GDATA_BYTES=8 args=-GSPLIT=0 args=-GTABLES=0 name=b8
// model: configs=any args=-GDATA_BYTES=8 args=-GSPLIT=0 args=-GTABLES=1 name=b8tables
// model: configs=any args=-GDATA_BYTES=16 args=-GSPLIT=1 args=-GTABLES=0 name=b16
// model: configs=any args=-GDATA_BYTES=64 args=-GSPLIT=0 args=-GTABLES=0 name=b64
// model: configs=any args=-GDATA_BYTES=64 args=-GSPLIT=1 args=-GTABLES=0 name=b64split
// model: configs=any args=-GDATA_BYTES=64 args=-GSPLIT=1 args=-GTABLES=1 name=b64tables
// model: configs=any args=-GDATA_BYTES=64 args=-GSPLIT=1 args=-GINIT=4294967295 name=b64fcs
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"

#ifndef DUT_INIT
#define DUT_INIT 0xdebb20e3
#endif

namespace {
using namespace roci::test;
using Data = Bits<8 * DUT_DATA_BYTES>;
using Bytes = std::vector<std::uint8_t>;
constexpr std::uint32_t init = DUT_INIT;
constexpr unsigned latency = 3 + DUT_SPLIT;

/// The register after these bytes, bit by bit (IBTA 7.8.1: least significant bit of a byte first).
std::uint32_t serial(std::uint32_t state, const Bytes& bytes) {
  for (const std::uint8_t byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const std::uint32_t feedback = (state ^ (byte >> bit)) & 1u;
      state = (state >> 1u) ^ (feedback ? 0xedb88320u : 0u);
    }
  }
  return state;
}

void append_crc(Bytes& packet) {
  const std::uint32_t crc = ~serial(init, packet);
  for (int i = 0; i < 4; ++i) packet.push_back(static_cast<std::uint8_t>(crc >> (8 * i)));
}

struct Result {
  std::uint32_t crc;
  bool good;
};

/// Sends packets, checks each result in the very cycle in which it must come.
class Bench {
 public:
  Bench(Random& random, double gap, double disabled)
      : dut_(random()), random_(random), gap_(gap), disabled_(disabled) {
    dut_->in_valid_i = 0;
    dut_->enable_i = 1;
    dut_.reset();
  }
  void send(const Bytes& packet) {
    REQUIRE(packet.size() % 4 == 0);
    const std::uint32_t state = serial(init, packet);
    const Result result{~state, state == 0xdebb20e3u};
    for (std::size_t at = 0; at < packet.size(); at += DUT_DATA_BYTES) {
      const std::size_t bytes = std::min<std::size_t>(DUT_DATA_BYTES, packet.size() - at);
      const bool last = at + bytes == packet.size();
      while (random_.chance(gap_)) beat(false, Data{}, 0, false, {});
      Data data = random_payload<Data>(random_);
      for (unsigned i = 0; i < bytes; ++i) data.set(8 * i, 8, packet[at + i]);
      // The number of words counts on the last beat alone.
      const auto words = last ? bytes / 4 : random_.below(DUT_DATA_BYTES / 4 + 1);
      beat(true, data, static_cast<unsigned>(words), last,
           last ? std::optional(result) : std::nullopt);
    }
  }
  void drain() {
    for (unsigned n = 0; n < latency + 3; ++n) beat(false, Data{}, 0, false, {});
    REQUIRE(results == expected);
  }
  std::size_t expected = 0, results = 0, good = 0;

 private:
  /// One enabled cycle, and before it perhaps some in which nothing may move.
  void beat(bool valid, const Data& data, unsigned words, bool last, std::optional<Result> result) {
    while (random_.chance(disabled_)) {
      dut_->enable_i = 0;
      dut_->in_valid_i = random_.chance(0.5);
      random_payload<Data>(random_).pack(dut_->in_data_i);
      dut_.tick();
      check();
    }
    dut_->enable_i = 1;
    dut_->in_valid_i = valid;
    dut_->in_last_i = valid ? last : random_.chance(0.5);
    dut_->in_words_i = static_cast<CData>(words);
    (valid ? data : random_payload<Data>(random_)).pack(dut_->in_data_i);
    dut_.tick();
    expected += result.has_value();
    pipe_.push_back(result);
    while (pipe_.size() > latency) pipe_.pop_front();
    const std::size_t before = results;
    check();
    results = before + (pipe_.size() == latency && pipe_.front());
    good += pipe_.size() == latency && pipe_.front() && pipe_.front()->good;
  }
  void check() {
    const bool due = pipe_.size() == latency && pipe_.front();
    REQUIRE(bool(dut_->result_valid_o) == due);
    if (!due) return;
    REQUIRE(dut_->result_crc_o == pipe_.front()->crc);
    REQUIRE(bool(dut_->result_good_o) == pipe_.front()->good);
  }

  Dut<DUT_CLASS> dut_;
  Random& random_;
  double gap_, disabled_;
  std::deque<std::optional<Result>> pipe_;
};
}  // namespace

TEST_CASE("every length from one word to several beats, back to back") {
  Random random;
  Bench bench(random, 0.0, 0.0);
  for (std::size_t words = 1; words <= 3 * DUT_DATA_BYTES / 4 + 2; ++words) {
    bench.send(random.bytes(4 * words));
  }
  bench.drain();
}

TEST_CASE("random packets with gaps, good ones and bad ones") {
  Random random;
  for (const auto& [gap, disabled] : {std::pair(0.0, 0.0), std::pair(0.3, 0.0), std::pair(0.0, 0.4),
                                      std::pair(0.5, 0.5)}) {
    Bench bench(random, gap, disabled);
    std::size_t good = 0;
    for (std::size_t n = 0; n < scaled(150); ++n) {
      Bytes packet = random.bytes(4 * random.between(1, 80));
      if (random.chance(0.7)) {
        append_crc(packet);
        if (random.chance(0.4)) {
          packet[random.below(packet.size())] ^= static_cast<std::uint8_t>(1u << random.below(8));
        } else {
          // The residue is the same for any INIT: crc(packet, crc) depends on the CRC alone.
          ++good;
        }
      }
      bench.send(packet);
    }
    bench.drain();
    CHECK(bench.good >= good);
    CHECK(good > 0);
  }
}

TEST_CASE("a single flipped bit anywhere makes a packet bad") {
  Random random;
  Bench bench(random, 0.0, 0.0);
  Bytes packet = random.bytes(72);
  append_crc(packet);
  bench.send(packet);
  for (std::size_t bit = 0; bit < 8 * packet.size(); ++bit) {
    Bytes bad = packet;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    bench.send(bad);
  }
  bench.drain();
  CHECK(bench.good == 1);
}

TEST_CASE("RoCEv1 frames with known ICRC (wire.md 1.6)") {
  if (init != 0xdebb20e3u) return;
  // GRH to ICRC.
  const std::string frames[] = {
    // V003 RC_SEND_LAST
    "6ff1234500181b01fe80000000000000000000fffe000a01fe800000000000000000defffeadbe0202f0ffff"
    "0000abcd80a7bbef5d646b7279000000f7ae2f75",
    // V013 RC_READ_REQUEST
    "602fffff00201b4000000000000000000000ffffc0a8070100000000000000000000ffffc0a807020c40ffff"
    "00fffffe80a86699000055d4c07263400047b30d000010017226fcf9",
    // V018 RC_ACK
    "6b81234500141bfffe80000000000000000000fffe000a01fe800000000000000000defffeadbe021140ffff"
    "0000000200a8bbee1f000012d2b961c5",
    // V021 RC_FETCH_ADD
    "602fffff002c1b00fe80000000000000000000fffe000a01fe800000000000000000defffeadbe0214407fff"
    "00fffffe80a8ef21000055d4c07265400047b31511223344556677158877665544332215188669e1",
    // V053 RC_SEND_ONLY_IMM_len65
    "602fffff00581b01fd00000000000000000000000000000afd00000000000000000000000000000b05f0ffff"
    "00fffffe80ab1141deadbe356b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f363d44"
    "4b525960676e757c838a91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b000000ac3f7b9e",
  };
  Random random;
  Bench check(random, 0.0, 0.0), make(random, 0.2, 0.2);
  for (const auto& hex : frames) {
    Bytes packet;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
      packet.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    // Variant fields as ones: traffic class, flow label, hop limit, resv8a.
    packet[0] |= 0x0f;
    packet[1] = packet[2] = packet[3] = packet[7] = packet[44] = 0xff;
    REQUIRE(serial(init, packet) == 0xdebb20e3u);  // the reference itself
    check.send(packet);
    packet.resize(packet.size() - 4);
    make.send(packet);
  }
  check.drain();
  make.drain();
  CHECK(check.good == std::size(frames));
}
