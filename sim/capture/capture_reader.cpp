// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "capture/capture_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <ios>
#include <iterator>

namespace roci::sim {
namespace {

constexpr uint32_t kLinktypeEthernet = 1;
constexpr uint32_t kMaxFrame = 1 << 20;  // no Ethernet frame is longer: a larger length is damage
constexpr unsigned kFcsBytes = 4;

__extension__ using Wide = unsigned __int128;

std::string hex(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

// Bounds-checked view of the file with one byte order.
class View {
 public:
  View(std::span<const uint8_t> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  [[noreturn]] void fail(size_t at, const std::string& what) const {
    throw CaptureError(name_ + ": byte " + std::to_string(at) + ": " + what);
  }
  std::span<const uint8_t> slice(size_t at, size_t count, const char* what) const {
    if (at > bytes_.size() || count > bytes_.size() - at) {
      fail(bytes_.size(), std::string("file ends inside ") + what);
    }
    return bytes_.subspan(at, count);
  }
  uint32_t u32(size_t at, const char* what) const {
    const auto b = slice(at, 4, what);
    return big_endian_ ? uint32_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3]
                       : uint32_t{b[3]} << 24 | b[2] << 16 | b[1] << 8 | b[0];
  }
  uint16_t u16(size_t at, const char* what) const {
    const auto b = slice(at, 2, what);
    return static_cast<uint16_t>(big_endian_ ? b[0] << 8 | b[1] : b[1] << 8 | b[0]);
  }
  uint64_t u64(size_t at, const char* what) const {
    const uint64_t first = u32(at, what);
    const uint64_t second = u32(at + 4, what);
    return big_endian_ ? first << 32 | second : second << 32 | first;
  }
  void big_endian(bool yes) { big_endian_ = yes; }
  size_t size() const { return bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  const std::string& name_;
  bool big_endian_ = false;
};

// CRC-32 of IEEE 802.3, only for files that carry an FCS.
uint32_t ethernet_fcs(std::span<const uint8_t> bytes) {
  uint32_t crc = ~0u;
  for (uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320u : 0u);
  }
  return ~crc;
}

// Takes the FCS off a frame that has one. A frame cut by the capture has lost it already.
void remove_fcs(CapturedFrame& frame, unsigned fcs_bytes) {
  if (fcs_bytes == 0 || frame.bytes.size() != frame.original_length ||
      frame.bytes.size() < kFcsBytes) {
    return;
  }
  const auto all = std::span(frame.bytes);
  const uint32_t computed = ethernet_fcs(all.first(all.size() - kFcsBytes));
  uint32_t wire = 0;
  for (unsigned i = 0; i < kFcsBytes; ++i) {
    wire |= uint32_t{all[all.size() - kFcsBytes + i]} << (8 * i);
  }
  if (wire != computed) frame.bad_fcs = true;
  frame.bytes.resize(frame.bytes.size() - kFcsBytes);
  frame.original_length -= kFcsBytes;
}

std::vector<CapturedFrame> parse_pcap(View file, bool big_endian, bool nanoseconds) {
  file.big_endian(big_endian);
  file.slice(0, 24, "the pcap header");
  const uint32_t network = file.u32(20, "the pcap header");
  if ((network & 0xffff) != kLinktypeEthernet) {
    file.fail(20, "link type " + std::to_string(network & 0xffff) + " is not Ethernet (1)");
  }
  // Bits 28 … 31 count the FCS in 16-bit units if bit 26 is set.
  const unsigned fcs_bytes = (network & 1u << 26) != 0 ? (network >> 28) * 2 : 0;

  std::vector<CapturedFrame> frames;
  size_t at = 24;
  while (at < file.size()) {
    const uint32_t seconds = file.u32(at, "a packet header");
    const uint32_t fraction = file.u32(at + 4, "a packet header");
    const uint32_t captured = file.u32(at + 8, "a packet header");
    CapturedFrame frame;
    frame.original_length = file.u32(at + 12, "a packet header");
    if (captured > kMaxFrame) {
      file.fail(at + 8, "packet of " + std::to_string(captured) + " bytes: the file is damaged");
    }
    const auto bytes = file.slice(at + 16, captured, "a packet");
    frame.bytes.assign(bytes.begin(), bytes.end());
    frame.time_ns =
        uint64_t{seconds} * 1'000'000'000 + uint64_t{fraction} * (nanoseconds ? 1 : 1000);
    remove_fcs(frame, fcs_bytes);
    frames.push_back(std::move(frame));
    at += 16 + captured;
  }
  return frames;
}

class PcapngParser {
 public:
  explicit PcapngParser(View file) : file_(file) {}

  std::vector<CapturedFrame> run() {
    size_t at = 0;
    while (at < file_.size()) at += block(at);
    return std::move(frames_);
  }

 private:
  struct Interface {
    uint32_t snap_length = 0;
    bool ethernet = false;
    uint32_t linktype = 0;
    uint64_t units_per_second = 1'000'000;
    int64_t offset_seconds = 0;
    unsigned fcs_bytes = 0;
  };

  // Handles the block at `at` and returns its length.
  size_t block(size_t at) {
    const uint32_t type = file_.u32(at, "a block header");
    if (type == 0x0a0d0d0a) {  // a palindrome: readable before the byte order is known
      file_.big_endian(false);
      const uint32_t magic = file_.u32(at + 8, "a section header");
      if (magic == 0x4d3c2b1a) {
        file_.big_endian(true);
      } else if (magic != 0x1a2b3c4d) {
        file_.fail(at + 8, "byte-order magic is " + hex(magic));
      }
    }
    const uint32_t length = file_.u32(at + 4, "a block header");
    if (length < 12 || length % 4 != 0) {
      file_.fail(at + 4, "block length " + std::to_string(length) + " is impossible");
    }
    file_.slice(at, length, "a block");
    if (file_.u32(at + length - 4, "a block trailer") != length) {
      file_.fail(at + length - 4, "the two lengths of a block differ");
    }
    const size_t body = at + 8;
    const size_t end = at + length - 4;
    switch (type) {
      case 0x0a0d0d0a:
        section(body, end);
        break;
      case 1:
        interface(body, end);
        break;
      case 2:
        file_.fail(at, "obsolete Packet Blocks are not read");
      case 3:
        simple_packet(body, end);
        break;
      case 6:
        enhanced_packet(body, end);
        break;
      default:
        break;  // name resolution, statistics, custom: not needed
    }
    return length;
  }

  void need(size_t body, size_t end, size_t count) const {
    if (end - body < count) file_.fail(body, "block is too short for its type");
  }

  void section(size_t body, size_t end) {
    need(body, end, 16);
    const uint16_t major = file_.u16(body + 4, "a section header");
    if (major != 1) file_.fail(body + 4, "pcapng version " + std::to_string(major));
    interfaces_.clear();
  }

  template <typename Handler>
  void options(size_t at, size_t end, Handler handle) {
    while (at + 4 <= end) {
      const uint16_t code = file_.u16(at, "an option");
      const uint16_t length = file_.u16(at + 2, "an option");
      if (code == 0) return;
      if (length > end - at - 4) file_.fail(at, "option runs past its block");
      handle(code, at + 4, length);
      at += 4 + ((size_t{length} + 3) & ~size_t{3});
    }
  }

  void interface(size_t body, size_t end) {
    need(body, end, 8);
    Interface entry;
    entry.linktype = file_.u16(body, "an interface");
    entry.ethernet = entry.linktype == kLinktypeEthernet;
    entry.snap_length = file_.u32(body + 4, "an interface");
    options(body + 8, end, [&](uint16_t code, size_t at, uint16_t length) {
      const auto value = file_.slice(at, length, "an option");
      if (code == 9 && length == 1) {  // if_tsresol
        const unsigned exponent = value[0] & 0x7f;
        const bool binary = (value[0] & 0x80) != 0;
        if (exponent > (binary ? 63u : 19u)) file_.fail(at, "time resolution is out of range");
        entry.units_per_second = 1;
        for (unsigned i = 0; i < exponent; ++i) entry.units_per_second *= binary ? 2 : 10;
      } else if (code == 13 && length == 1) {  // if_fcslen: bits, but its example says 4
        entry.fcs_bytes = value[0] < 8 ? value[0] : value[0] / 8u;
      } else if (code == 14 && length == 8) {  // if_tsoffset, in seconds
        entry.offset_seconds = static_cast<int64_t>(file_.u64(at, "an option"));
      }
    });
    interfaces_.push_back(entry);
  }

  const Interface& interface_of(size_t at, uint32_t index) const {
    if (index >= interfaces_.size()) {
      file_.fail(at, "packet on interface " + std::to_string(index) + ", which is not described");
    }
    const Interface& entry = interfaces_[index];
    if (!entry.ethernet) {
      file_.fail(at, "interface " + std::to_string(index) + " has link type " +
                         std::to_string(entry.linktype) + ", not Ethernet (1)");
    }
    return entry;
  }

  void take_bytes(CapturedFrame& frame, size_t at, size_t end, uint32_t captured) {
    if (captured > end - at) file_.fail(at, "packet is longer than its block");
    const auto bytes = file_.slice(at, captured, "a packet");
    frame.bytes.assign(bytes.begin(), bytes.end());
  }

  void simple_packet(size_t body, size_t end) {
    need(body, end, 4);
    const Interface& entry = interface_of(body, 0);
    CapturedFrame frame;
    frame.original_length = file_.u32(body, "a packet");
    uint32_t captured = frame.original_length;
    if (entry.snap_length != 0) captured = std::min(captured, entry.snap_length);
    take_bytes(frame, body + 4, end, captured);
    remove_fcs(frame, entry.fcs_bytes);
    frames_.push_back(std::move(frame));
  }

  void enhanced_packet(size_t body, size_t end) {
    need(body, end, 20);
    CapturedFrame frame;
    frame.interface = file_.u32(body, "a packet");
    const Interface& entry = interface_of(body, frame.interface);
    const uint64_t units =
        uint64_t{file_.u32(body + 4, "a packet")} << 32 | file_.u32(body + 8, "a packet");
    frame.time_ns = to_ns(entry, units);
    const uint32_t captured = file_.u32(body + 12, "a packet");
    frame.original_length = file_.u32(body + 16, "a packet");
    take_bytes(frame, body + 20, end, captured);

    unsigned fcs_bytes = entry.fcs_bytes;
    const size_t first_option = body + 20 + ((size_t{captured} + 3) & ~size_t{3});
    options(first_option, end, [&](uint16_t code, size_t at, uint16_t length) {
      if (code == 1 && frame.comment.empty()) {
        const auto text = file_.slice(at, length, "a comment");
        frame.comment.assign(text.begin(), text.end());
      } else if (code == 2 && length == 4) {  // epb_flags
        const uint32_t flags = file_.u32(at, "packet flags");
        if ((flags & 1u << 24) != 0) frame.bad_fcs = true;
        if ((flags >> 5 & 0xf) != 0) fcs_bytes = flags >> 5 & 0xf;
      }
    });
    remove_fcs(frame, fcs_bytes);
    frames_.push_back(std::move(frame));
  }

  static uint64_t to_ns(const Interface& entry, uint64_t units) {
    const uint64_t seconds = units / entry.units_per_second;
    const Wide rest = units % entry.units_per_second;
    return (seconds + static_cast<uint64_t>(entry.offset_seconds)) * 1'000'000'000 +
           static_cast<uint64_t>(rest * 1'000'000'000 / entry.units_per_second);
  }

  View file_;
  std::vector<Interface> interfaces_;
  std::vector<CapturedFrame> frames_;
};

}  // namespace

std::vector<CapturedFrame> parse_capture(std::span<const uint8_t> bytes, const std::string& name) {
  View file(bytes, name);
  if (bytes.size() < 4) throw CaptureError(name + ": too short for a capture file");
  const uint32_t magic = file.u32(0, "the file header");
  switch (magic) {
    case 0xa1b2c3d4:
      return parse_pcap(file, false, false);
    case 0xd4c3b2a1:
      return parse_pcap(file, true, false);
    case 0xa1b23c4d:
      return parse_pcap(file, false, true);
    case 0x4d3cb2a1:
      return parse_pcap(file, true, true);
    case 0x0a0d0d0a:
      return PcapngParser(file).run();
    default:
      throw CaptureError(name + ": neither pcap nor pcapng (starts with " + hex(magic) + ")");
  }
}

std::vector<CapturedFrame> read_capture(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw CaptureError(path + ": cannot open: " + std::strerror(errno));
  std::vector<uint8_t> bytes;
  try {
    bytes.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  } catch (const std::ios_base::failure&) {  // a directory, a disk that fails
    throw CaptureError(path + ": cannot read: " + std::strerror(errno));
  }
  return parse_capture(bytes, path);
}

}  // namespace roci::sim
