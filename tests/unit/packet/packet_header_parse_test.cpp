// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_header_parse: golden and random RC, UC and UD packets of every opcode and length come apart into
// the codec's fields and payload, a datagram's with its GRH in front, an atomic's operands or result as
// payload; 64-byte SENDs and WRITEs keep the rate of the wire.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "harness/packet_beats.hpp"
#include "packet/delivered.hpp"
#include "roci_svstructs.hpp"
#include "wire/opcodes.hpp"
#include "wire/random_frames.hpp"
#include "wire/vectors.hpp"
#include "wire/wire_codec.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace wire = roci::wirecodec;

namespace {

using Input = SidedSource<pkg::beat_t, pkg::rx_side_t>;

std::array<std::uint32_t, 4> gid_words(const wire::Gid& gid) {
  std::array<std::uint32_t, 4> out{};
  for (unsigned b = 0; b < 16; ++b) {
    out[(120 - 8 * b) / 32] |= std::uint32_t{gid[b]} << ((120 - 8 * b) % 32);
  }
  return out;
}

struct Bench {
  Dut<DUT_CLASS> dut;
  Random& random;
  Input input;
  Sink<pkg::rx_headers_t> headers;
  Sink<pkg::beat_t> payload;
  Packets<pkg::beat_t> out;
  std::vector<wire::Frame> frames;
  std::vector<pkg::rx_side_t> sides;
  std::vector<wire::Bytes> moved;
  std::size_t seen = 0;
  std::size_t payloads = 0;

  explicit Bench(Random& r)
      : dut(r()),
        random(r),
        input(dut, r()),
        headers("headers", dut->headers_valid_o, dut->headers_ready_i, dut->headers_o),
        payload("payload", dut->payload_valid_o, dut->payload_ready_i, dut->payload_o) {
    headers.collect();
    payload.collect();
    dut.reset();
    dut.attach(input);
    dut.attach(headers);
    dut.attach(payload);
  }

  void push(const wire::Frame& frame) {
    auto bytes = wire::encode(frame);
    bytes.resize(bytes.size() - frame.trailing.size());
    const auto s = random_payload<pkg::rx_side_t>(random);
    const std::size_t at = frame.eth.vlan ? 18 : 14;
    for (const auto& b : to_beats<pkg::beat_t>({bytes.data() + at, bytes.size() - at}, random)) {
      input.push(b, s);
    }
    frames.push_back(frame);
    sides.push_back(s);
    moved.push_back(delivered(frame));
    payloads += moved.back().empty() ? 0 : 1;
  }

  void run() {
    dut.run_until(
        [&] {
          for (; seen < payload.received().size(); ++seen) out.add(payload.received()[seen]);
          return headers.received().size() == frames.size() && out.done().size() == payloads;
        },
        "all packets", 1000000);
    dut.tick(10);
    std::size_t n = 0;
    for (std::size_t k = 0; k < frames.size(); ++k) {
      const auto& f = frames[k];
      const auto& h = headers.received()[k];
      INFO("packet " << k << " " << wire::describe(f));
      REQUIRE(h.opcode == f.bth.opcode);
      REQUIRE(h.solicited == f.bth.solicited);
      REQUIRE(h.pad_count == f.bth.pad_count);
      REQUIRE(h.ecn_marked == ((f.bth.resv8a & 0xc0) != 0));
      REQUIRE(h.pkey == f.bth.pkey);
      REQUIRE(h.dest_qpn == f.bth.dest_qp);
      REQUIRE(h.ackreq == f.bth.ack_req);
      REQUIRE(h.psn == f.bth.psn);
      REQUIRE(h.sgid == gid_words(f.grh.sgid));
      REQUIRE(h.dgid == gid_words(f.grh.dgid));
      REQUIRE(h.payload_length == moved[k].size());
      REQUIRE(h.loopback == sides[k].loopback);
      REQUIRE(h.smac == sides[k].ethernet.smac);
      REQUIRE(h.vlan_valid == sides[k].ethernet.vlan_valid);
      REQUIRE(h.tci == sides[k].ethernet.tci);
      if (f.reth) {
        REQUIRE(h.va == f.reth->va);
        REQUIRE(h.rkey == f.reth->rkey);
        REQUIRE(h.dma_length == f.reth->dma_len);
      }
      if (f.atomiceth) {
        REQUIRE(h.va == f.atomiceth->va);
        REQUIRE(h.rkey == f.atomiceth->rkey);
      }
      if (f.deth) REQUIRE(h.va == (std::uint64_t{f.deth->qkey} << 32 |
                                   std::uint64_t{f.deth->reserved} << 24 | f.deth->src_qp));
      if (f.aeth) {
        REQUIRE(h.syndrome == f.aeth->syndrome);
        REQUIRE(h.msn == f.aeth->msn);
      }
      if (f.immdt) {
        const auto& b = f.immdt->bytes;
        REQUIRE(h.imm == (std::uint32_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3]));
      }
      if (f.ieth) REQUIRE(h.imm == f.ieth->rkey);
      if (!moved[k].empty()) REQUIRE(out.done().at(n++).bytes == moved[k]);
    }
    REQUIRE(out.at_rest());
  }
};

bool known_class(std::uint8_t opcode) { return opcode >> 5 <= 1 || opcode >> 5 == 3; }

}  // namespace

TEST_CASE("golden packets") {
  Random random;
  Bench bench(random);
  unsigned count = 0;
  for (const auto& v : wire::vectors().good) {
    if (!known_class(v.fields.bth.opcode)) continue;
    bench.push(wire::parse(v.bytes));
    ++count;
  }
  REQUIRE(count > 50);
  bench.run();
}

// An XRC atomic has the longest headers of all: no queue pair takes it, but who counts it must see it.
TEST_CASE("golden packets of XRC leave their BTH, and the next packet is whole") {
  Random random;
  Bench bench(random);
  const auto& next = wire::vectors().good.front();
  std::vector<wire::Frame> others;
  for (const auto& v : wire::vectors().good) {
    if (!known_class(v.fields.bth.opcode)) others.push_back(v.fields);
  }
  REQUIRE(others.size() >= 4);
  for (const auto& v : wire::vectors().good) {
    if (known_class(v.fields.bth.opcode)) continue;
    bench.push(wire::parse(v.bytes));
    bench.push(wire::parse(next.bytes));
  }
  bench.dut.run_until([&] { return bench.headers.received().size() == 2 * others.size(); },
                      "all headers", 100000);
  for (std::size_t n = 0; n < others.size(); ++n) {
    INFO(wire::describe(others[n]));
    const auto& h = bench.headers.received()[2 * n];
    CHECK(h.opcode == others[n].bth.opcode);
    CHECK(h.dest_qpn == others[n].bth.dest_qp);
    CHECK(h.psn == others[n].bth.psn);
    CHECK(h.payload_length == delivered(others[n]).size());
    CHECK(bench.headers.received()[2 * n + 1].psn == next.fields.bth.psn);
  }
}

TEST_CASE("random packets, random stalls") {
  Random random;
  for (int round = 0; round < 8; ++round) {
    Bench bench(random);
    bench.input.idle(random.chance(0.5) ? 0.0 : 0.4);
    bench.headers.stall(Stall::any(random));
    bench.payload.stall(Stall::any(random));
    wire::RandomFrames frames(random());
    for (std::size_t n = 0; n < scaled(3); ++n) {
      for (const auto& info : wire::all_opcodes()) {
        if (known_class(info.code)) bench.push(frames.next(info));
      }
    }
    bench.run();
  }
}

TEST_CASE("every length of a SEND, a WRITE and a READ response") {
  Random random;
  Bench bench(random);
  wire::Path path;
  for (const std::uint8_t opcode : {0x04, 0x0a, 0x10, 0x64, 0x65}) {
    for (unsigned length = 0; length <= 200; ++length) {
      auto frame = wire::make_frame(path, opcode, 1, length, random.bytes(length));
      frame.reth = frame.reth ? std::optional(wire::Reth{}) : std::nullopt;
      bench.push(wire::finish(frame));
    }
  }
  bench.run();
}

TEST_CASE("64-byte messages at the rate of the wire") {
  Random random;
  for (const std::uint8_t opcode : {0x04, 0x0a}) {
    Bench bench(random);
    wire::Path path;
    const unsigned count = 200;
    std::size_t beats = 0;
    for (unsigned n = 0; n < count; ++n) {
      bench.push(wire::finish(wire::make_frame(path, opcode, 1, n, random.bytes(64))));
    }
    beats = bench.input.pending();
    const auto start = bench.dut.cycle();
    bench.run();
    REQUIRE(bench.dut.cycle() - start < beats + 30);
  }
}
