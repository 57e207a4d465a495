// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Capture files: what is written is read back; foreign variants (byte orders, resolutions, options,
// FCS); damaged files give errors, never crashes; captures of a fabric.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <random>

#include "capture/capture_reader.hpp"
#include "capture/fabric_capture.hpp"
#include "capture/pcapng_writer.hpp"
#include "fabric_bench.hpp"
#include "wire/crc.hpp"

using namespace roci::sim;
using roci::test_seed;

namespace {

// Bytes of a file in either byte order.
struct File {
  bool big = false;
  Bytes bytes;

  File& u16(uint32_t value) { return number(value, 2); }
  File& u32(uint64_t value) { return number(value, 4); }
  File& raw(const Bytes& data) {
    bytes.insert(bytes.end(), data.begin(), data.end());
    return *this;
  }
  File& pad() {
    while (bytes.size() % 4 != 0) bytes.push_back(0);
    return *this;
  }
  // A pcapng block around a body.
  File& block(uint32_t type, const File& body) {
    const auto length = static_cast<uint32_t>(body.bytes.size() + 12);
    return u32(type).u32(length).raw(body.bytes).u32(length);
  }
  File body() const { return {big, {}}; }

 private:
  File& number(uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      bytes.push_back(static_cast<uint8_t>(value >> (8 * (big ? count - 1 - i : i))));
    }
    return *this;
  }
};

File pcap(bool big, bool nanoseconds, uint32_t network = 1) {
  File file{big, {}};
  file.u32(nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4).u16(2).u16(4).u32(0).u32(0).u32(65535);
  return file.u32(network);
}

File& packet(File& file, uint32_t seconds, uint32_t fraction, const Bytes& data,
             uint32_t original = 0) {
  file.u32(seconds).u32(fraction).u32(data.size()).u32(original ? original : data.size());
  return file.raw(data);
}

File section(bool big) {
  File file{big, {}};
  file.block(0x0a0d0d0a, file.body().u32(0x1a2b3c4d).u16(1).u16(0).u32(~0u).u32(~0u));
  return file;
}

// An interface with raw options.
File& interface(File& file, uint16_t linktype, const File& options) {
  return file.block(1, file.body().u16(linktype).u16(0).u32(0).raw(options.bytes));
}

File& enhanced(File& file, uint32_t number, uint64_t time, const Bytes& data,
               const Bytes& options = {}) {
  File body = file.body();
  body.u32(number).u32(time >> 32).u32(time & 0xffffffff).u32(data.size()).u32(data.size());
  body.raw(data).pad().raw(options);
  return file.block(6, body);
}

std::vector<CapturedFrame> parse(const File& file) { return parse_capture(file.bytes, "test"); }

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& suffix) {
    std::string pattern = (std::filesystem::temp_directory_path() / "roci-XXXXXX").string();
    const int fd = mkstemp(pattern.data());
    REQUIRE(fd >= 0);
    std::fclose(fdopen(fd, "w"));
    path = pattern + suffix;
    std::filesystem::rename(pattern, path);
  }
  ~TemporaryFile() { std::filesystem::remove(path); }
  std::string path;
};

}  // namespace

TEST_CASE("what is written is read back") {
  TemporaryFile file(".pcapng");
  {
    PcapngWriter writer(file.path, {"roci0", "roci1"});
    for (uint32_t i = 0; i < 40; ++i) {
      writer.write(i % 2, 0x1'0000'0003ull + i, numbered(60 + i, i), CaptureDirection::inbound,
                   i % 3 == 0, i % 5 == 0 ? "comment " + std::to_string(i) : "");
    }
    CHECK(writer.frames() == 40);
    CHECK_THROWS_AS(writer.write(2, 0, numbered(60, 0)), std::out_of_range);
  }
  const auto frames = read_capture(file.path);
  REQUIRE(frames.size() == 40);
  for (uint32_t i = 0; i < 40; ++i) {
    CHECK(frames[i].bytes == numbered(60 + i, i));
    CHECK(frames[i].time_ns == 0x1'0000'0003ull + i);
    CHECK(frames[i].interface == i % 2);
    CHECK(frames[i].original_length == 60 + i);
    CHECK(frames[i].bad_fcs == (i % 3 == 0));
    CHECK(frames[i].comment == (i % 5 == 0 ? "comment " + std::to_string(i) : ""));
  }
}

TEST_CASE("pcap: both byte orders and resolutions") {
  const bool big = GENERATE(false, true);
  const bool nanoseconds = GENERATE(false, true);
  File file = pcap(big, nanoseconds);
  packet(file, 3, 5, numbered(61, 1));
  packet(file, 4, 999'999, numbered(100, 2), 1500);
  const auto frames = parse(file);
  REQUIRE(frames.size() == 2);
  CHECK(frames[0].bytes == numbered(61, 1));
  CHECK(frames[0].time_ns == 3'000'000'000ull + (nanoseconds ? 5 : 5000));
  CHECK(frames[1].time_ns == 4'000'000'000ull + (nanoseconds ? 999'999 : 999'999'000));
  CHECK(frames[1].original_length == 1500);
  CHECK(parse(pcap(big, nanoseconds)).empty());
}

TEST_CASE("pcapng: both byte orders, resolutions, offsets, several sections and interfaces") {
  const bool big = GENERATE(false, true);
  File file = section(big);
  interface(file, 1, file.body());                                              // µs by default
  interface(file, 1, file.body().u16(9).u16(1).raw({9}).pad().u32(0));          // ns
  interface(file, 1, file.body().u16(9).u16(1).raw({0x80 | 20}).pad().u32(0));  // 2^-20 s
  File seconds_offset = file.body().u16(14).u16(8);
  if (big) {
    seconds_offset.u32(0).u32(100);
  } else {
    seconds_offset.u32(100).u32(0);
  }
  interface(file, 1, seconds_offset.u32(0));
  enhanced(file, 0, 1'500'000, numbered(60, 0));
  enhanced(file, 1, 0x1'0000'0007ull, numbered(61, 1));
  enhanced(file, 2, 3 << 19, numbered(62, 2));
  enhanced(file, 3, 2'000'001, numbered(63, 3));
  file.block(0x00000bad, file.body().raw(Bytes(20, 1)));  // unknown: skipped
  file.block(3, file.body().u32(64).raw(numbered(64, 4)));
  // A second section starts with no interfaces and may have the other byte order.
  File other = section(!big);
  interface(other, 1, other.body());
  enhanced(other, 0, 7, numbered(65, 5));
  file.raw(other.bytes);

  const auto frames = parse(file);
  REQUIRE(frames.size() == 6);
  for (uint32_t i = 0; i < 6; ++i) CHECK(frames[i].bytes == numbered(60 + i, i));
  CHECK(frames[0].time_ns == 1'500'000'000);
  CHECK(frames[1].time_ns == 0x1'0000'0007ull);
  CHECK(frames[2].time_ns == 1'500'000'000);
  CHECK(frames[3].time_ns == 102'000'001'000);
  CHECK(frames[5].time_ns == 7000);
}

TEST_CASE("FCS in the file is removed and checked") {
  const Bytes frame = numbered(80, 3);
  Bytes with_fcs = frame;
  const uint32_t fcs = roci::wirecodec::fcs(frame);
  for (unsigned i = 0; i < 4; ++i) with_fcs.push_back(static_cast<uint8_t>(fcs >> (8 * i)));
  Bytes wrong = with_fcs;
  wrong[20] ^= 1;
  auto check = [&](const std::vector<CapturedFrame>& frames) {
    REQUIRE(frames.size() == 2);
    CHECK(frames[0].bytes == frame);
    CHECK_FALSE(frames[0].bad_fcs);
    CHECK(frames[1].bytes.size() == 80);
    CHECK(frames[1].bad_fcs);
  };
  SECTION("pcap") {
    File file = pcap(false, false, 1u | 1u << 26 | 2u << 28);
    packet(file, 0, 0, with_fcs);
    packet(file, 0, 0, wrong);
    check(parse(file));
  }
  SECTION("pcapng interface") {
    File file = section(true);
    interface(file, 1, file.body().u16(13).u16(1).raw({32}).pad().u32(0));
    enhanced(file, 0, 0, with_fcs);
    enhanced(file, 0, 0, wrong);
    check(parse(file));
  }
  SECTION("pcapng packet flags") {
    File file = section(false);
    interface(file, 1, file.body());
    const File flags = file.body().u16(2).u16(4).u32(4 << 5).u32(0);
    enhanced(file, 0, 0, with_fcs, flags.bytes);
    enhanced(file, 0, 0, wrong, flags.bytes);
    check(parse(file));
  }
}

TEST_CASE("what cannot be read is told") {
  auto error = [](const File& file) -> std::string {
    try {
      parse(file);
    } catch (const CaptureError& e) {
      return e.what();
    }
    return "read";
  };
  CHECK_THROWS_WITH(read_capture("/tmp"),
                    Catch::Contains("/tmp") && Catch::Contains("Is a directory"));
  CHECK_THROWS_WITH(read_capture("/nonexistent/x.pcap"),
                    Catch::Contains("/nonexistent/x.pcap") && Catch::Contains("cannot open"));
  CHECK(error({false, {}}).find("too short") != std::string::npos);
  CHECK(error({false, Bytes(40, 0x55)}).find("neither pcap nor pcapng") != std::string::npos);
  CHECK(error(pcap(false, false, 101)).find("link type 101") != std::string::npos);

  File huge = pcap(false, false);
  huge.u32(0).u32(0).u32(0x7fffffff).u32(1);
  CHECK(error(huge).find("damaged") != std::string::npos);

  File wlan = section(false);
  interface(wlan, 105, wlan.body());
  enhanced(wlan, 0, 0, numbered(60, 0));
  CHECK(error(wlan).find("link type 105") != std::string::npos);

  File undescribed = section(false);
  enhanced(undescribed, 0, 0, numbered(60, 0));
  CHECK(error(undescribed).find("not described") != std::string::npos);

  File lengths = section(false);
  interface(lengths, 1, lengths.body());
  lengths.bytes[lengths.bytes.size() - 4] ^= 4;
  CHECK(error(lengths).find("lengths") != std::string::npos);

  File option = section(false);
  interface(option, 1, option.body());
  enhanced(option, 0, 0, numbered(60, 0), option.body().u16(1).u16(5).u32(0x41414141).bytes);
  enhanced(option, 0, 0, numbered(60, 1));  // so that the file goes on behind the block
  CHECK(error(option).find("option runs past") != std::string::npos);

  File version = section(false);
  version.bytes[12] = 2;
  CHECK(error(version).find("version 2") != std::string::npos);
}

TEST_CASE("damaged files give an error or frames, never a crash") {
  File files[] = {pcap(false, true), section(true)};
  for (uint32_t i = 0; i < 3; ++i) packet(files[0], i, i, numbered(60 + i, i));
  interface(files[1], 1, files[1].body().u16(9).u16(1).raw({9}).pad().u32(0));
  for (uint32_t i = 0; i < 3; ++i) {
    const File comment = files[1].body().u16(1).u16(5).raw({'h', 'e', 'l', 'l', 'o'}).pad().u32(0);
    enhanced(files[1], 0, i, numbered(60 + i, i), comment.bytes);
  }
  const uint64_t seed = test_seed(8);
  INFO("ROCI_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (const File& good : files) {
    REQUIRE(parse(good).size() == 3);
    // Cut anywhere: an error, unless it is between two records.
    unsigned whole = 0;
    for (size_t length = 0; length < good.bytes.size(); ++length) {
      const std::span<const uint8_t> cut(good.bytes.data(), length);
      try {
        const size_t frames = parse_capture(cut, "cut").size();
        CHECK(frames < 3);
        ++whole;
      } catch (const CaptureError&) {
      }
    }
    CHECK(whole >= 3);
    CHECK(whole <= 4);
    for (int i = 0; i < 20'000; ++i) {
      Bytes damaged = good.bytes;
      for (uint64_t n = 1 + random() % 4; n > 0; --n) {
        damaged[random() % damaged.size()] = static_cast<uint8_t>(random() % 3 ? random() : 255);
      }
      try {
        parse_capture(damaged, "damaged");
      } catch (const CaptureError&) {
      }
    }
  }
}

TEST_CASE("a file that cannot be created is told") {
  CHECK_THROWS_WITH(PcapngWriter("/nonexistent/x.pcapng", {"a"}),
                    Catch::Contains("/nonexistent/x.pcapng"));
}

TEST_CASE("capture of a fabric") {
  TemporaryFile file(".pcapng");
  Fabric fabric{FabricConfig{}};
  CHECK_THROWS_AS(FabricCapture(fabric, file.path, {"roci0"}, 4), std::invalid_argument);
  std::vector<std::pair<uint64_t, Bytes>> received;
  fabric.port(1).on_frame([&](const ReceivedFrame& f) {
    received.emplace_back(f.cycle, Bytes(f.bytes.begin(), f.bytes.end()));
  });
  FabricCapture capture(fabric, file.path, {"roci0", "roci1"}, 4);
  fabric.add_rule(Rule().psn(2).drop());
  fabric.add_rule(Rule().psn(3).corrupt_fcs());
  fabric.add_rule(Rule().psn(4).duplicate());
  for (uint32_t psn = 1; psn <= 4; ++psn) {
    fabric.port(0).send(roci::wirecodec::encode(roce(0, 1, 0x0a, 5, psn, 100 * psn)));
  }
  while (fabric.busy()) fabric.step();
  capture.finish();
  CHECK(capture.frames() == 8);

  const auto frames = read_capture(file.path);
  REQUIRE(frames.size() == 8);
  CHECK(std::ranges::is_sorted(frames, {}, &CapturedFrame::time_ns));
  std::vector<std::string> lines;
  size_t next = 0;
  for (const CapturedFrame& frame : frames) {
    lines.push_back(std::to_string(frame.interface) + " " +
                    std::to_string(roci::wirecodec::parse(frame.bytes).bth.psn) +
                    (frame.bad_fcs ? " bad " : " ") + frame.comment);
    if (frame.interface == 1) {
      REQUIRE(next < received.size());
      CHECK(frame.time_ns == received[next].first * 4);
      CHECK(frame.bytes == received[next].second);
      ++next;
    }
  }
  std::ranges::sort(lines);
  CHECK(lines == std::vector<std::string>{"0 1 ", "0 2 dropped (rule 0)",
                                          "0 3 FCS made bad (rule 1)", "0 4 duplicated (rule 2)",
                                          "1 1 ", "1 3 bad FCS made bad (rule 1)",
                                          "1 4 duplicated (rule 2)", "1 4 duplicated (rule 2)"});
}
