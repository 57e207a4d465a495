// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "capture/pcapng_writer.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace roci::sim {
namespace {

using Body = std::vector<uint8_t>;

// Written little endian on every machine; the byte-order magic tells readers.
template <typename T>
void put(Body& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<uint8_t>(uint64_t{value} >> (8 * i)));
  }
}

void pad4(Body& out) {
  while (out.size() % 4 != 0) out.push_back(0);
}

void put_option(Body& out, uint16_t code, std::span<const uint8_t> value) {
  put<uint16_t>(out, code);
  put<uint16_t>(out, static_cast<uint16_t>(value.size()));
  out.insert(out.end(), value.begin(), value.end());
  pad4(out);
}

// Option lengths are 16 bit: a longer text is cut.
void put_text_option(Body& out, uint16_t code, const std::string& text) {
  const size_t length = std::min<size_t>(text.size(), 0xffff);
  put_option(out, code, {reinterpret_cast<const uint8_t*>(text.data()), length});
}

constexpr uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr uint32_t kInterfaceDescription = 1;
constexpr uint32_t kEnhancedPacket = 6;
constexpr uint16_t kLinktypeEthernet = 1;
constexpr uint16_t kOptEnd = 0;
constexpr uint16_t kOptComment = 1;
constexpr uint16_t kShbUserApplication = 4;
constexpr uint16_t kIfName = 2;
constexpr uint16_t kIfTsresol = 9;
constexpr uint16_t kEpbFlags = 2;
constexpr uint32_t kEpbCrcError = 1u << 24;

}  // namespace

PcapngWriter::PcapngWriter(const std::string& path, const std::vector<std::string>& interfaces,
                           const std::string& application)
    : path_(path), file_(path, std::ios::binary | std::ios::trunc), interfaces_(interfaces.size()) {
  if (!file_) {
    throw std::runtime_error("cannot create capture file " + path + ": " + std::strerror(errno));
  }
  Body section;
  put<uint32_t>(section, 0x1a2b3c4d);
  put<uint16_t>(section, 1);
  put<uint16_t>(section, 0);
  put<uint64_t>(section, ~uint64_t{0});  // section length not given
  put_text_option(section, kShbUserApplication, application);
  put<uint32_t>(section, kOptEnd);
  write_block(kSectionHeader, section);

  for (const std::string& name : interfaces) {
    Body body;
    put<uint16_t>(body, kLinktypeEthernet);
    put<uint16_t>(body, 0);
    put<uint32_t>(body, 0);  // no snapshot limit
    put_text_option(body, kIfName, name);
    const uint8_t nanoseconds = 9;
    put_option(body, kIfTsresol, {&nanoseconds, 1});
    put<uint32_t>(body, kOptEnd);
    write_block(kInterfaceDescription, body);
  }
  flush();
}

void PcapngWriter::write(size_t interface, uint64_t time_ns, std::span<const uint8_t> frame,
                         CaptureDirection direction, bool bad_fcs, const std::string& comment) {
  if (interface >= interfaces_) {
    throw std::out_of_range("capture " + path_ + " has no interface " + std::to_string(interface));
  }
  Body body;
  body.reserve(64 + frame.size() + comment.size());
  put<uint32_t>(body, static_cast<uint32_t>(interface));
  put<uint32_t>(body, static_cast<uint32_t>(time_ns >> 32));
  put<uint32_t>(body, static_cast<uint32_t>(time_ns));
  put<uint32_t>(body, static_cast<uint32_t>(frame.size()));
  put<uint32_t>(body, static_cast<uint32_t>(frame.size()));
  body.insert(body.end(), frame.begin(), frame.end());
  pad4(body);
  if (!comment.empty()) put_text_option(body, kOptComment, comment);
  const uint32_t flags = static_cast<uint32_t>(direction) | (bad_fcs ? kEpbCrcError : 0);
  if (flags != 0) {
    Body value;
    put<uint32_t>(value, flags);
    put_option(body, kEpbFlags, value);
  }
  if (!comment.empty() || flags != 0) put<uint32_t>(body, kOptEnd);
  write_block(kEnhancedPacket, body);
  ++frames_;
}

void PcapngWriter::flush() {
  file_.flush();
  if (!file_) throw std::runtime_error("cannot write capture file " + path_);
}

void PcapngWriter::write_block(uint32_t type, const std::vector<uint8_t>& body) {
  Body block;
  block.reserve(body.size() + 12);
  const auto total = static_cast<uint32_t>(body.size() + 12);
  put<uint32_t>(block, type);
  put<uint32_t>(block, total);
  block.insert(block.end(), body.begin(), body.end());
  put<uint32_t>(block, total);
  file_.write(reinterpret_cast<const char*>(block.data()),
              static_cast<std::streamsize>(block.size()));
  if (!file_) throw std::runtime_error("cannot write capture file " + path_);
}

}  // namespace roci::sim
