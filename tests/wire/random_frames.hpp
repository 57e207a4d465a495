// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Random well-formed frames of every opcode, for tests of codecs, captures and receive checks.
#pragma once

#include <random>

#include "wire/test_seed.hpp"
#include "wire/wire_codec.hpp"

namespace roci::wirecodec {

/// Makes random frames; the same seed makes the same frames.
class RandomFrames {
 public:
  explicit RandomFrames(uint64_t seed) : random_(seed) {}

  /// A finished frame of this opcode: random addresses, flags, headers and payload (legal length
  /// for the opcode at a path MTU of 256, or up to 4096 bytes for ONLY), sometimes a VLAN tag.
  Frame next(const OpcodeInfo& info) {
    Path path;
    path.src_mac = mac();
    path.dst_mac = mac();
    path.sgid = gid();
    path.dgid = gid();
    path.pkey = static_cast<uint16_t>(random_());
    if (pick(4) == 0) {
      path.vlan = VlanTag{.pcp = static_cast<uint8_t>(pick(8)),
                          .dei = pick(2) != 0,
                          .vid = static_cast<uint16_t>(pick(0xfff))};
    }
    const auto qp = static_cast<uint32_t>(1 + pick(0xfffffe));
    Frame f = make_frame(path, info.code, qp, static_cast<uint32_t>(random_()), payload(info));
    f.grh.traffic_class = static_cast<uint8_t>(random_());
    f.grh.flow_label = static_cast<uint32_t>(pick(1 << 20));
    f.grh.hop_limit = static_cast<uint8_t>(random_());
    f.bth.solicited = pick(2) != 0;
    f.bth.mig_req = pick(4) != 0;
    f.bth.ack_req = pick(2) != 0;
    f.bth.resv8a = pick(4) == 0 ? static_cast<uint8_t>(random_()) : uint8_t{0};
    if (f.xrceth) f.xrceth->srqn = u24();
    if (f.deth) *f.deth = {.qkey = u32(), .reserved = 0, .src_qp = u24()};
    if (f.reth) *f.reth = {.va = random_(), .rkey = u32(), .dma_len = u32()};
    if (f.atomiceth) {
      *f.atomiceth = {
          .va = random_() & ~7ull, .rkey = u32(), .swap_add = random_(), .compare = random_()};
    }
    if (f.aeth) *f.aeth = {.syndrome = static_cast<uint8_t>(pick(0x65)), .msn = u24()};
    if (f.atomicacketh) f.atomicacketh->original = random_();
    if (f.immdt) {
      for (uint8_t& byte : f.immdt->bytes) byte = static_cast<uint8_t>(random_());
    }
    if (f.ieth) f.ieth->rkey = u32();
    return finish(std::move(f));
  }

  uint64_t pick(uint64_t bound) { return random_() % bound; }

 private:
  Mac mac() {
    Mac out;
    for (uint8_t& byte : out) byte = static_cast<uint8_t>(random_());
    out[0] = static_cast<uint8_t>((out[0] & 0xfc) | 0x02);  // unicast, locally administered
    return out;
  }
  Gid gid() {
    if (pick(2) == 0) return gid_from_mac(mac());
    return gid_from_ipv4(u32());
  }
  uint32_t u32() { return static_cast<uint32_t>(random_()); }
  uint32_t u24() { return u32() & 0xffffff; }
  Bytes payload(const OpcodeInfo& info) {
    size_t length = 0;
    switch (info.payload) {
      case PayloadRule::none:
        break;
      case PayloadRule::pmtu:
        length = 256;
        break;
      case PayloadRule::one_or_up:
        length = 1 + pick(256);
        break;
      case PayloadRule::any:
        length = pick(8) == 0 ? pick(4097) : pick(257);
        break;
    }
    Bytes out(length);
    for (uint8_t& byte : out) byte = static_cast<uint8_t>(random_());
    return out;
  }

  std::mt19937_64 random_;
};

}  // namespace roci::wirecodec
