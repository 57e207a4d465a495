// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_rx_dispatch against the rules of wire.md 2.2, 2.13 and 2.15 written as a table of reasons:
// frames that match in all but one property are dropped with that property's counter; good ones
// reach the right side with QP, function and state; order entries come for all of them, in order;
// the fence holds a frame until its end.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <array>
#include <bit>
#include <map>

#include "harness/harness.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace hwif = roci::hwif;
using Row = hwif::CtxQpRx;

namespace {

constexpr unsigned kQpBits = ROCI_CONFIG_WIDE ? 10 : 6;
constexpr unsigned kGids = ROCI_CONFIG_WIDE ? 16 : 8;

struct Qp {
  std::uint32_t qpn = 0;
  unsigned type = 0, state = 0, fn = 0, sgid_index = 0;
  std::uint16_t pkey = 0;
  std::array<std::uint32_t, 4> peer{};        // low word first, as in the structs
  bool vlan_valid = false;
  unsigned vlan_id = 0;
};

enum Reason { kGood, kDestQp, kOpcode, kState, kGid, kVlan, kPkey, kQkey, kMad, kReasons };

struct Bench {
  unsigned types;
  Dut<DUT_CLASS> dut;
  Random& random;
  Source<pkg::rx_headers_t> headers;
  Sink<pkg::rx_packet_t> request;
  Sink<pkg::rx_packet_t> response;
  Sink<pkg::rx_order_t> order;
  pkg::port_t port{};
  std::map<unsigned, Qp> qps;
  std::map<unsigned, Row> rows;
  std::array<unsigned, kReasons> counted{};

  explicit Bench(Random& r, unsigned kinds = 2)     // RC, UC, UD, GSI
      : types(kinds),
        dut(r()),
        random(r),
        headers("headers", dut->headers_valid_i, dut->headers_ready_o, dut->headers_i),
        request("request", dut->request_valid_o, dut->request_ready_i, dut->request_o),
        response("response", dut->response_valid_o, dut->response_ready_i, dut->response_o),
        order("order", dut->order_valid_o, dut->order_ready_i, dut->order_o) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    pkg::state_bcast_t{}.pack(dut->state_i);
    port = random_payload<pkg::port_t>(random);
    port.pack(dut->port_i);
    dut->colour_i = 0;
    dut->end_valid_i = 0;
    dut->flush_valid_i = 0;
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 5000);
    dut.attach(headers);
    dut.attach(request);
    dut.attach(response);
    dut.attach(order);
    for (unsigned g = 0; g < kGids; ++g) {
      write_gid<pkg::ctx_req_t>(
          dut, [this] { dut.tick(); }, static_cast<unsigned>(roci::hwif::CtxColumn::GID), g,
          port.gid[g]);
    }
    for (unsigned n = 0; n < 8; ++n) add_qp();
  }

  std::uint64_t access(bool write, unsigned qp, unsigned word, std::uint64_t data) {
    return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { dut.tick(); },
        static_cast<unsigned>(hwif::CtxColumn::QP_RX), write, qp, word, data, 200);
  }

  void set_state(unsigned qp, unsigned value) {
    pkg::state_bcast_t state{};
    state.valid = true;
    state.qp = static_cast<decltype(state.qp)>(qp);
    state.state = static_cast<pkg::qp_state_e>(value);
    state.pack(dut->state_i);
    dut.tick();
    pkg::state_bcast_t{}.pack(dut->state_i);
  }

  void add_qp() {
    Qp qp;
    qp.qpn = static_cast<std::uint32_t>(random.bits(24));
    const unsigned index = qp.qpn & ((1u << kQpBits) - 1);
    qp.type = static_cast<unsigned>(random.below(types));
    qp.state = static_cast<unsigned>(random.below(7));
    qp.fn = static_cast<unsigned>(random.below(ROCI_CONFIG_WIDE ? 16 : 8));
    qp.sgid_index = static_cast<unsigned>(random.below(kGids));
    qp.pkey = static_cast<std::uint16_t>(random.chance(0.1) ? 0x8000 : random.bits(16));
    for (auto& word : qp.peer) word = static_cast<std::uint32_t>(random());
    qp.vlan_valid = random.chance(0.5);
    qp.vlan_id = static_cast<unsigned>(random.between(1, 4095));
    Row row;
    row.set<Row::qpn>(qp.qpn);
    row.set<Row::qp_type>(static_cast<hwif::QpType>(qp.type));
    row.set<Row::valid>(1);
    row.set<Row::fn>(static_cast<std::uint8_t>(qp.fn));
    row.set<Row::pkey>(qp.pkey);
    row.set<Row::sgid_index>(static_cast<std::uint8_t>(qp.sgid_index));
    row.set<Row::peer_gid_low>(std::uint64_t{qp.peer[1]} << 32 | qp.peer[0]);
    row.set<Row::peer_gid_high>(std::uint64_t{qp.peer[3]} << 32 | qp.peer[2]);
    row.set<Row::vlan_valid>(qp.vlan_valid);
    row.set<Row::vlan_id>(static_cast<std::uint16_t>(qp.vlan_id));
    write(index, row);
    const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(row);
    for (unsigned w = 0; w < 4; ++w) REQUIRE(access(false, index, w, 0) == words[w]);
    set_state(index, qp.state);
    qps[index] = qp;
    rows[index] = row;
  }
  /// As the firmware: word 0 last.
  void write(unsigned index, const Row& row) {
    const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(row);
    for (const unsigned w : {1u, 2u, 3u, 0u}) access(true, index, w, words[w]);
  }

  void count() {
    const auto c = roci::sv::roci_count_pkg::rx_dispatch_count_t::unpack(dut->count_o);
    counted[kDestQp] += c.dest_qp;
    counted[kOpcode] += c.opcode;
    counted[kState] += c.state;
    counted[kGid] += c.gid;
    counted[kVlan] += c.vlan;
    counted[kPkey] += c.pkey;
    counted[kQkey] += c.qkey;
    counted[kMad] += c.mad;
  }
};

bool response_opcode(unsigned opcode) { return opcode >= 0x0d && opcode <= 0x12; }

// wire.md 2.13
bool same_partition(unsigned a, unsigned b) {
  return (a & 0x7fff) == (b & 0x7fff) && (b & 0x7fff) != 0 && ((a | b) & 0x8000) != 0;
}

// Index of a GSI packet's P_Key in the port's table, or -1.
int pkey_index(const Bench& bench, unsigned pkey) {
  for (std::size_t k = 0; k < bench.port.pkey.size(); ++k) {
    if (same_partition(pkey, bench.port.pkey[k])) return static_cast<int>(k);
  }
  return -1;
}

// wire.md 2.12: what of a datagram is checked behind the state.
Reason datagram_reason(const Bench& bench, const Qp& qp, const pkg::rx_headers_t& h) {
  const bool gsi = qp.type == 3;
  if (gsi ? pkey_index(bench, h.pkey) < 0 : !same_partition(h.pkey, qp.pkey)) return kPkey;
  if (h.va >> 32 != qp.peer[0]) return kQkey;     // the row has the Q_Key there
  return gsi && (h.opcode != 0x64 || h.payload_length != 296) ? kMad : kGood;
}

// wire.md 2.2: the first check that fails.
Reason judge(const Bench& bench, const pkg::rx_headers_t& h) {
  const auto found = bench.qps.find(h.dest_qpn & ((1u << kQpBits) - 1));
  if (found == bench.qps.end() || found->second.qpn != h.dest_qpn) return kDestQp;
  const Qp& qp = found->second;
  const bool datagram = qp.type >= 2;
  if (h.opcode >> 5 != (datagram ? 3 : qp.type)) return kOpcode;
  const bool response = response_opcode(h.opcode);
  const bool receives = qp.state == 2   ? !response
                        : qp.state == 5 ? qp.type != 0
                                        : qp.state == 3 || qp.state == 4;
  if (!receives) return kState;
  if (datagram) return datagram_reason(bench, qp, h);
  if (h.sgid != qp.peer || h.dgid != bench.port.gid[qp.sgid_index]) return kGid;
  if ((h.vlan_valid ? h.tci & 0xfff : 0) != (qp.vlan_valid ? qp.vlan_id : 0)) return kVlan;
  return same_partition(h.pkey, qp.pkey) ? kGood : kPkey;
}

// A frame that matches its QP, with `faults` properties changed.
pkg::rx_headers_t make(Bench& bench, unsigned index, unsigned faults) {
  Random& random = bench.random;
  const Qp& qp = bench.qps.at(index);
  auto h = random_payload<pkg::rx_headers_t>(random);
  h.dest_qpn = qp.qpn;
  h.opcode = static_cast<std::uint8_t>(qp.type >= 2 ? 0x64 + (qp.type == 2 && random.chance(0.5))
                                                    : qp.type << 5 | random.below(0x18));
  h.sgid = qp.peer;
  h.dgid = bench.port.gid[qp.sgid_index];
  h.vlan_valid = qp.vlan_valid || random.chance(0.3);
  h.tci = static_cast<std::uint16_t>((random.bits(4) << 12) | (qp.vlan_valid ? qp.vlan_id : 0));
  h.pkey = static_cast<std::uint16_t>((qp.pkey & 0x7fff) | (random.bits(1) << 15));
  h.payload_length = static_cast<std::uint16_t>(random.chance(0.3) ? 0 : random.below(4097));
  if (qp.type >= 2) {
    h.payload_length = static_cast<std::uint16_t>(qp.type == 3 ? 296 : 40 + h.payload_length % 4097);
    h.va = std::uint64_t{qp.peer[0]} << 32 | (h.va & 0xffffffff);
    h.sgid = bench.port.gid[0];                    // anybody, in any VLAN
    h.tci = static_cast<std::uint16_t>(random.bits(16));
    if (qp.type == 3) {
      h.pkey = static_cast<std::uint16_t>(random.pick(bench.port.pkey) | (random.bits(1) << 15));
    }
  }
  for (unsigned n = 0; n < faults; ++n) {
    switch (random.below(qp.type >= 2 ? 9 : 6)) {
      case 6: h.va ^= std::uint64_t{1} << (32 + random.below(32)); break;
      case 7: h.payload_length ^= static_cast<std::uint16_t>(1u << random.below(5)); break;
      case 8: h.opcode ^= 1; break;
      case 0: h.dest_qpn ^= 1u << random.below(24); break;
      case 1: h.opcode ^= static_cast<std::uint8_t>(0x20u << random.below(3)); break;
      case 2: h.sgid[random.below(4)] ^= 1u << random.below(32); break;
      case 3: h.dgid[random.below(4)] ^= 1u << random.below(32); break;
      case 4: h.tci ^= static_cast<std::uint16_t>(1u << random.below(12)); break;
      default: h.pkey ^= static_cast<std::uint16_t>(1u << random.below(16)); break;
    }
  }
  return h;
}

}  // namespace

TEST_CASE("frames reach their queue pair or are dropped for the right reason") {
  Random random;
  std::array<unsigned, kReasons> all{};
  for (int round = 0; round < 10; ++round) {
    Bench bench(random, 4);
    bench.headers.stall(Stall::any(random));
    bench.request.stall(Stall::any(random));
    bench.response.stall(Stall::any(random));
    bench.order.stall(Stall::any(random));
    std::array<unsigned, kReasons> expected{};
    std::vector<unsigned> indices;
    for (int phase = 0; phase < 6; ++phase) {
      indices.clear();
      for (auto& [index, qp] : bench.qps) {
        qp.state = static_cast<unsigned>(random.chance(0.7) ? 3 : random.below(7));
        bench.set_state(index, qp.state);
        indices.push_back(index);
      }
      const bool colour = random.chance(0.5);
      bench.dut->colour_i = colour;
      for (std::size_t n = 0; n < scaled(150); ++n) {
        const auto h =
            make(bench, random.pick(indices), random.chance(0.4) ? 1 + random.chance(0.2) : 0);
        const auto reason = judge(bench, h);
        ++expected[reason];
        bench.headers.push(h);
        pkg::rx_order_t order{};
        order.has_payload = h.payload_length != 0;
        order.colour = colour;
        const bool response = response_opcode(h.opcode);
        if (reason == kGood) {
          order.target = static_cast<pkg::rx_unit_e>(response ? 2 : 1);
          const unsigned index = h.dest_qpn & ((1u << kQpBits) - 1);
          pkg::rx_packet_t packet{};
          packet.colour = colour;
          packet.qp = static_cast<decltype(packet.qp)>(index);
          packet.fn = static_cast<decltype(packet.fn)>(bench.qps[index].fn);
          packet.qp_type = static_cast<pkg::qp_type_e>(bench.qps[index].type);
          packet.state = static_cast<pkg::qp_state_e>(bench.qps[index].state);
          packet.headers = h;
          const unsigned type = bench.qps[index].type;
          if (type >= 2) {
            const auto place = static_cast<unsigned>(type == 3 ? pkey_index(bench, h.pkey) : 0);
            packet.headers.va = (h.va & ~(std::uint64_t{3} << 32)) | std::uint64_t{place} << 32;
          }
          (response ? bench.response : bench.request).expect(packet);
        }
        bench.order.expect(order);
      }
      for (int n = 0; n < 200000; ++n) {
        if (bench.order.done() && bench.request.done() && bench.response.done()) break;
        bench.count();
        bench.dut.tick();
      }
      REQUIRE(bench.order.done());
      REQUIRE(bench.request.done());
      REQUIRE(bench.response.done());
      for (int n = 0; n < 3; ++n) {
        bench.count();
        bench.dut.tick();
      }
    }
    for (unsigned n = 0; n < kReasons; ++n) all[n] += expected[n];
    expected[kGood] = 0;
    REQUIRE(bench.counted == expected);
  }
  for (const unsigned count : all) CHECK(count > 3);
}

TEST_CASE("one frame per cycle (narrow: four cycles), and the fence holds each until its end") {
  Random random;
  Bench bench(random);
  const unsigned index = bench.qps.begin()->first;
  bench.set_state(index, 3);
  bench.qps[index].state = 3;
  bench.request.collect();
  bench.response.collect();
  bench.order.collect();
  const unsigned frames = 100;
  bench.dut->colour_i = 1;
  for (unsigned n = 0; n < frames; ++n) bench.headers.push(make(bench, index, 0));
  const auto start = bench.dut.cycle();
  bench.dut.run_until([&] { return bench.order.received().size() == frames; }, "order");
  REQUIRE(bench.dut.cycle() - start < (ROCI_CONFIG_WIDE ? 1 : 4) * frames + 10);
  bench.dut.tick(10);
  for (unsigned n = 0; n < frames; ++n) {
    REQUIRE(bench.dut->fence_busy_o == 2);
    bench.dut->end_valid_i = 1;
    bench.dut->end_i = 1;
    bench.dut.tick();
    bench.dut->end_valid_i = 0;
    bench.dut.tick();
  }
  REQUIRE(bench.dut->fence_busy_o == 0);
  // a flush counts like a frame, in its own colour
  bench.dut->flush_valid_i = 1;
  bench.dut->flush_i = 0;
  bench.dut.tick();
  bench.dut->flush_valid_i = 0;
  bench.dut.tick(5);
  REQUIRE(bench.dut->fence_busy_o == 1);
  bench.dut->end_valid_i = 1;
  bench.dut->end_i = 0;
  bench.dut.tick();
  bench.dut->end_valid_i = 0;
  bench.dut.tick();
  REQUIRE(bench.dut->fence_busy_o == 0);
}

TEST_CASE("the firmware's view of a row, and its change, do not wait for the frames") {
  Random random;
  Bench bench(random);
  const unsigned index = bench.qps.begin()->first;
  bench.qps[index].state = 3;
  bench.set_state(index, 3);
  bench.request.collect();
  bench.response.collect();
  bench.order.collect();
  bench.qps[index].pkey = 0xffff;
  bench.rows[index].set<Row::pkey>(0xffff);
  bench.write(index, bench.rows[index]);
  const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(bench.rows[index]);
  for (unsigned n = 0; n < 20; ++n) bench.headers.push(make(bench, index, 0));
  for (const bool stalled : {true, false}) {
    bench.order.stall(Stall(stalled ? 1.0 : 0.0));
    for (unsigned n = 0; n < 12; ++n) {
      const auto start = bench.dut.cycle();
      REQUIRE(bench.access(false, index, n % 4, 0) == words[n % 4]);
      REQUIRE(bench.dut.cycle() - start <= 10);
      bench.dut.tick(random.below(8));
    }
    const auto start = bench.dut.cycle();
    bench.write(index, bench.rows[index]);
    REQUIRE(bench.dut.cycle() - start <= 40);
  }
  bench.dut.run_until([&] { return bench.order.received().size() == 20; }, "order");
  bench.dut.tick(5);
  // and the frames met their own row
  REQUIRE(bench.request.received().size() + bench.response.received().size() == 20);
}

TEST_CASE("a row that is changed in traffic: each frame meets the old one or the new one") {
  Random random;
  for (std::size_t round = 0; round < scaled(60); ++round) {
    Bench bench(random);
    const unsigned index = bench.qps.begin()->first;
    Qp& qp = bench.qps[index];
    qp.state = 4;                                  // SQD
    bench.set_state(index, 4);
    qp.pkey = 0xffff;
    Row row = bench.rows[index];
    row.set<Row::pkey>(qp.pkey);
    bench.write(index, row);
    bench.request.collect();
    bench.response.collect();
    bench.order.collect();
    bench.request.stall(Stall::any(random));
    bench.response.stall(Stall::any(random));
    bench.order.stall(Stall::any(random));
    // every part of the path another one
    const Qp old = qp;
    do {
      qp.sgid_index = static_cast<unsigned>(random.below(kGids));
    } while (qp.sgid_index == old.sgid_index);
    for (auto& word : qp.peer) word = ~word;
    qp.vlan_valid = true;
    qp.vlan_id = old.vlan_id % 4095 + 1;
    row.set<Row::sgid_index>(static_cast<std::uint8_t>(qp.sgid_index));
    row.set<Row::peer_gid_low>(std::uint64_t{qp.peer[1]} << 32 | qp.peer[0]);
    row.set<Row::peer_gid_high>(std::uint64_t{qp.peer[3]} << 32 | qp.peer[2]);
    row.set<Row::vlan_valid>(1);
    row.set<Row::vlan_id>(static_cast<std::uint16_t>(qp.vlan_id));
    // frames for the old path, for the new one, and for mixtures, which nobody may ever accept
    enum Kind { kOld, kNew, kMixed };
    std::vector<Kind> kinds;
    for (unsigned n = 0; n < 60; ++n) {
      const Kind kind = static_cast<Kind>(random.below(3));
      kinds.push_back(kind);
      auto h = make(bench, index, 0);
      const auto mask = kind == kOld ? 0u : kind == kNew ? 15u
                                          : static_cast<unsigned>(random.between(1, 14));
      const auto pick = [&](unsigned bit) { return (mask >> bit & 1) != 0; };
      for (unsigned k = 0; k < 4; ++k) h.sgid[k] = (pick(k / 2) ? qp : old).peer[k];
      const Qp& vlan = pick(2) ? qp : old;
      h.vlan_valid = vlan.vlan_valid;
      h.tci = static_cast<std::uint16_t>(vlan.vlan_valid ? vlan.vlan_id : 0);
      h.dgid = bench.port.gid[(pick(3) ? qp : old).sgid_index];
      bench.headers.push(h);
    }
    bench.dut.tick(random.below(30));
    bench.write(index, row);
    bench.dut.run_until([&] { return bench.order.received().size() == kinds.size(); }, "order");
    bool changed = false;
    for (std::size_t n = 0; n < kinds.size(); ++n) {
      const bool taken = bench.order.received()[n].target != 0;
      INFO("frame " << n << " kind " << kinds[n]);
      if (kinds[n] == kMixed) REQUIRE_FALSE(taken);
      if (kinds[n] == kOld && !taken) changed = true;
      if (kinds[n] == kNew && taken) changed = true;
      if (kinds[n] != kMixed) REQUIRE(taken == (changed == (kinds[n] == kNew)));
    }
  }
}
