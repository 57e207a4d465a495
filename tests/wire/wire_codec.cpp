// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "wire/wire_codec.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "wire/crc.hpp"

namespace roci::wirecodec {
namespace {

// Takes big-endian fields from the front of a span; running out is a ParseError.
class Reader {
 public:
  Reader(std::span<const uint8_t> bytes, const char* what) : bytes_(bytes), what_(what) {}

  uint64_t take(unsigned count) {
    uint64_t value = 0;
    for (uint8_t byte : take_bytes(count)) value = value << 8 | byte;
    return value;
  }
  uint8_t u8() { return static_cast<uint8_t>(take(1)); }
  uint16_t u16() { return static_cast<uint16_t>(take(2)); }
  uint32_t u24() { return static_cast<uint32_t>(take(3)); }
  uint32_t u32() { return static_cast<uint32_t>(take(4)); }

  std::span<const uint8_t> take_bytes(size_t count) {
    if (count > bytes_.size()) throw ParseError(std::string("frame ends inside ") + what_);
    auto out = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return out;
  }
  template <size_t N>
  void copy_to(std::array<uint8_t, N>& out) {
    std::ranges::copy(take_bytes(N), out.begin());
  }
  size_t left() const { return bytes_.size(); }
  std::span<const uint8_t> rest() { return take_bytes(bytes_.size()); }
  void now(const char* what) { what_ = what; }

 private:
  std::span<const uint8_t> bytes_;
  const char* what_;
};

void put(Bytes& out, uint64_t value, unsigned count) {
  for (unsigned i = count; i-- > 0;) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void put_bytes(Bytes& out, std::span<const uint8_t> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Bytes to_bytes(std::span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

Ethernet parse_ethernet(Reader& in) {
  Ethernet eth;
  in.copy_to(eth.dst);
  in.copy_to(eth.src);
  eth.ethertype = in.u16();
  if (eth.ethertype == kEthertypeVlan) {
    const uint16_t tci = in.u16();
    eth.vlan = VlanTag{.pcp = static_cast<uint8_t>(tci >> 13),
                       .dei = (tci >> 12 & 1) != 0,
                       .vid = static_cast<uint16_t>(tci & 0xfff)};
    eth.ethertype = in.u16();
  }
  if (eth.ethertype != kEthertypeRoce) throw ParseError("Ethertype is not 0x8915");
  return eth;
}

Grh parse_grh(Reader& in) {
  Grh grh;
  const uint32_t word = in.u32();
  grh.ip_version = static_cast<uint8_t>(word >> 28);
  grh.traffic_class = static_cast<uint8_t>(word >> 20);
  grh.flow_label = word & 0xfffff;
  grh.pay_len = in.u16();
  grh.next_header = in.u8();
  grh.hop_limit = in.u8();
  in.copy_to(grh.sgid);
  in.copy_to(grh.dgid);
  return grh;
}

Bth parse_bth(Reader& in) {
  Bth bth;
  bth.opcode = in.u8();
  const uint8_t flags = in.u8();
  bth.solicited = (flags & 0x80) != 0;
  bth.mig_req = (flags & 0x40) != 0;
  bth.pad_count = flags >> 4 & 3;
  bth.tver = flags & 0xf;
  bth.pkey = in.u16();
  bth.resv8a = in.u8();
  bth.dest_qp = in.u24();
  const uint8_t ack = in.u8();
  bth.ack_req = (ack & 0x80) != 0;
  bth.resv7 = ack & 0x7f;
  bth.psn = in.u24();
  return bth;
}

// Wire order (wire.md §1.3): XRCETH, DETH, RETH/AtomicETH/AETH, ImmDt/IETH/AtomicAckETH.
void parse_extended(Reader& in, const OpcodeInfo& info, Frame& frame) {
  in.now("an extended header");
  if (info.xrceth) {
    Xrceth h;
    h.reserved = in.u8();
    h.srqn = in.u24();
    frame.xrceth = h;
  }
  if (info.deth) {
    Deth h;
    h.qkey = in.u32();
    h.reserved = in.u8();
    h.src_qp = in.u24();
    frame.deth = h;
  }
  if (info.reth) {
    Reth h;
    h.va = in.take(8);
    h.rkey = in.u32();
    h.dma_len = in.u32();
    frame.reth = h;
  }
  if (info.atomiceth) {
    AtomicEth h;
    h.va = in.take(8);
    h.rkey = in.u32();
    h.swap_add = in.take(8);
    h.compare = in.take(8);
    frame.atomiceth = h;
  }
  if (info.aeth) {
    Aeth h;
    h.syndrome = in.u8();
    h.msn = in.u24();
    frame.aeth = h;
  }
  if (info.immdt) {
    ImmDt h;
    in.copy_to(h.bytes);
    frame.immdt = h;
  }
  if (info.ieth) frame.ieth = Ieth{in.u32()};
  if (info.atomicacketh) frame.atomicacketh = AtomicAckEth{in.take(8)};
}

size_t ethernet_bytes(const Frame& frame) { return frame.eth.vlan ? 18 : 14; }

// Everything up to and including the pad.
Bytes encode_to_pad(const Frame& f) {
  Bytes out;
  out.reserve(160 + f.payload.size());
  put_bytes(out, f.eth.dst);
  put_bytes(out, f.eth.src);
  if (f.eth.vlan) {
    put(out, kEthertypeVlan, 2);
    put(out,
        uint64_t{f.eth.vlan->pcp & 7u} << 13 | uint64_t{f.eth.vlan->dei} << 12 |
            (f.eth.vlan->vid & 0xfffu),
        2);
  }
  put(out, f.eth.ethertype, 2);

  put(out,
      uint64_t{f.grh.ip_version & 0xfu} << 28 | uint64_t{f.grh.traffic_class} << 20 |
          (f.grh.flow_label & 0xfffff),
      4);
  put(out, f.grh.pay_len, 2);
  put(out, f.grh.next_header, 1);
  put(out, f.grh.hop_limit, 1);
  put_bytes(out, f.grh.sgid);
  put_bytes(out, f.grh.dgid);

  put(out, f.bth.opcode, 1);
  put(out,
      uint64_t{f.bth.solicited} << 7 | uint64_t{f.bth.mig_req} << 6 | (f.bth.pad_count & 3u) << 4 |
          (f.bth.tver & 0xfu),
      1);
  put(out, f.bth.pkey, 2);
  put(out, f.bth.resv8a, 1);
  put(out, f.bth.dest_qp, 3);
  put(out, uint64_t{f.bth.ack_req} << 7 | (f.bth.resv7 & 0x7fu), 1);
  put(out, f.bth.psn, 3);

  if (f.xrceth) {
    put(out, f.xrceth->reserved, 1);
    put(out, f.xrceth->srqn, 3);
  }
  if (f.deth) {
    put(out, f.deth->qkey, 4);
    put(out, f.deth->reserved, 1);
    put(out, f.deth->src_qp, 3);
  }
  if (f.reth) {
    put(out, f.reth->va, 8);
    put(out, f.reth->rkey, 4);
    put(out, f.reth->dma_len, 4);
  }
  if (f.atomiceth) {
    put(out, f.atomiceth->va, 8);
    put(out, f.atomiceth->rkey, 4);
    put(out, f.atomiceth->swap_add, 8);
    put(out, f.atomiceth->compare, 8);
  }
  if (f.aeth) {
    put(out, f.aeth->syndrome, 1);
    put(out, f.aeth->msn, 3);
  }
  if (f.immdt) put_bytes(out, f.immdt->bytes);
  if (f.ieth) put(out, f.ieth->rkey, 4);
  if (f.atomicacketh) put(out, f.atomicacketh->original, 8);
  put_bytes(out, f.payload);
  put_bytes(out, f.pad);
  return out;
}

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char text[160];
  va_list args;
  va_start(args, pattern);
  std::vsnprintf(text, sizeof text, pattern, args);
  va_end(args);
  return text;
}

}  // namespace

Frame parse(std::span<const uint8_t> bytes) {
  Frame frame;
  Reader outer(bytes, "the Ethernet header");
  frame.eth = parse_ethernet(outer);
  outer.now("the GRH");
  frame.grh = parse_grh(outer);
  if (frame.grh.pay_len < kBthBytes + kIcrcBytes) {
    throw ParseError(format("PayLen %u holds no BTH and ICRC", frame.grh.pay_len));
  }
  outer.now("what PayLen announces");
  Reader in(outer.take_bytes(frame.grh.pay_len - kIcrcBytes), "the BTH");
  for (unsigned i = 0; i < kIcrcBytes; ++i) frame.icrc |= uint32_t{outer.u8()} << (8 * i);
  frame.trailing = to_bytes(outer.rest());

  frame.bth = parse_bth(in);
  if (const OpcodeInfo* info = frame.info()) parse_extended(in, *info, frame);
  if (in.left() < frame.bth.pad_count) throw ParseError("PadCnt exceeds the payload");
  frame.payload = to_bytes(in.take_bytes(in.left() - frame.bth.pad_count));
  frame.pad = to_bytes(in.rest());
  return frame;
}

Bytes encode(const Frame& frame) {
  Bytes out = encode_to_pad(frame);
  for (unsigned i = 0; i < kIcrcBytes; ++i) {
    out.push_back(static_cast<uint8_t>(frame.icrc >> (8 * i)));
  }
  put_bytes(out, frame.trailing);
  return out;
}

Frame with_icrc(Frame frame) {
  const Bytes bytes = encode_to_pad(frame);
  frame.icrc = icrc(std::span(bytes).subspan(ethernet_bytes(frame)));
  return frame;
}

Frame finish(Frame frame) {
  frame.bth.pad_count = static_cast<uint8_t>(-frame.payload.size() & 3);
  frame.pad.assign(frame.bth.pad_count, 0);
  const size_t to_pad = encode_to_pad(frame).size() - ethernet_bytes(frame) - kGrhBytes;
  frame.grh.pay_len = static_cast<uint16_t>(to_pad + kIcrcBytes);
  return with_icrc(std::move(frame));
}

Bytes build(const Frame& frame) { return encode(finish(frame)); }

Path reverse(const Path& path) {
  Path back = path;
  std::swap(back.src_mac, back.dst_mac);
  std::swap(back.sgid, back.dgid);
  return back;
}

Frame make_frame(const Path& path, uint8_t opcode, uint32_t dest_qp, uint32_t psn, Bytes payload) {
  const OpcodeInfo* info = opcode_info(opcode);
  if (info == nullptr) throw std::invalid_argument(format("unknown opcode 0x%02x", opcode));
  Frame frame;
  frame.eth.dst = path.dst_mac;
  frame.eth.src = path.src_mac;
  frame.eth.vlan = path.vlan;
  frame.grh.sgid = path.sgid;
  frame.grh.dgid = path.dgid;
  frame.bth.opcode = opcode;
  frame.bth.pkey = path.pkey;
  frame.bth.dest_qp = dest_qp & 0xffffff;
  frame.bth.psn = psn & 0xffffff;
  if (info->xrceth) frame.xrceth.emplace();
  if (info->deth) frame.deth.emplace();
  if (info->reth) frame.reth.emplace();
  if (info->atomiceth) frame.atomiceth.emplace();
  if (info->aeth) frame.aeth.emplace();
  if (info->atomicacketh) frame.atomicacketh.emplace();
  if (info->immdt) frame.immdt.emplace();
  if (info->ieth) frame.ieth.emplace();
  frame.payload = std::move(payload);
  return frame;
}

Frame make_ack(const Path& path, uint32_t dest_qp, uint32_t psn, uint8_t syndrome, uint32_t msn) {
  Frame frame = make_frame(path, opcode(Transport::rc, op::acknowledge), dest_qp, psn);
  frame.aeth = Aeth{syndrome, msn & 0xffffff};
  return frame;
}

std::string describe(const Frame& f) {
  std::string out = f.info() ? f.info()->name : format("opcode 0x%02x", f.bth.opcode);
  out += format(" qp=0x%x psn=0x%06x", f.bth.dest_qp, f.bth.psn);
  if (f.eth.vlan) out += format(" vlan=%u/%u", f.eth.vlan->vid, f.eth.vlan->pcp);
  if (f.bth.ack_req) out += " A";
  if (f.bth.solicited) out += " SE";
  if (f.xrceth) out += format(" srqn=0x%x", f.xrceth->srqn);
  if (f.deth) out += format(" qkey=0x%08x src_qp=0x%x", f.deth->qkey, f.deth->src_qp);
  if (f.reth) {
    out += format(" va=0x%llx rkey=0x%08x dma_len=%u", static_cast<unsigned long long>(f.reth->va),
                  f.reth->rkey, f.reth->dma_len);
  }
  if (f.atomiceth) {
    out += format(" va=0x%llx rkey=0x%08x swap_add=0x%llx compare=0x%llx",
                  static_cast<unsigned long long>(f.atomiceth->va), f.atomiceth->rkey,
                  static_cast<unsigned long long>(f.atomiceth->swap_add),
                  static_cast<unsigned long long>(f.atomiceth->compare));
  }
  if (f.aeth) out += format(" syndrome=0x%02x msn=%u", f.aeth->syndrome, f.aeth->msn);
  if (f.atomicacketh) {
    out += format(" original=0x%llx", static_cast<unsigned long long>(f.atomicacketh->original));
  }
  if (f.immdt) {
    out += format(" imm=%02x%02x%02x%02x", f.immdt->bytes[0], f.immdt->bytes[1], f.immdt->bytes[2],
                  f.immdt->bytes[3]);
  }
  if (f.ieth) out += format(" invalidate=0x%08x", f.ieth->rkey);
  out += format(" payload=%zu icrc=%s", f.payload.size(),
                with_icrc(f).icrc == f.icrc ? "good" : "BAD");
  return out;
}

std::string describe(std::span<const uint8_t> frame) {
  try {
    return describe(parse(frame));
  } catch (const ParseError& error) {
    return format("frame of %zu bytes: ", frame.size()) + error.what();
  }
}

}  // namespace roci::wirecodec
