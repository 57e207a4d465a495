// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The receive path from the MAC to the queue pair (ethernet_rx to packet_rx_dispatch) on all vectors
// of the frame file: a good frame of RC, UC or UD reaches the queue pair that it is for, on the side it
// is for, with every field as the file lists it and its payload; a frame of another class or a wrong
// one is dropped without a trace, by the counter that says why.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <array>
#include <bit>
#include <map>

#include "harness/harness.hpp"
#include "harness/packet_beats.hpp"
#include "packet/delivered.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"
#include "wire/vectors.hpp"
#include "wire/wire_codec.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace hwif = roci::hwif;
namespace wire = roci::wirecodec;
using Row = hwif::CtxQpRx;

namespace {

constexpr unsigned kBeat = ROCI_CONFIG_WIDE ? 64 : 8;
constexpr unsigned kQpBits = ROCI_CONFIG_WIDE ? 10 : 6;
constexpr unsigned kFunction = 5;
constexpr unsigned kGidIndex = 3;
constexpr unsigned kRts = 3;

std::array<std::uint32_t, 4> gid_words(const wire::Gid& gid) {
  std::array<std::uint32_t, 4> out{};
  for (unsigned b = 0; b < 16; ++b) {
    out[(120 - 8 * b) / 32] |= std::uint32_t{gid[b]} << ((120 - 8 * b) % 32);
  }
  return out;
}

std::uint64_t mac_number(const wire::Mac& mac) {
  std::uint64_t number = 0;
  for (const auto byte : mac) number = number << 8 | byte;
  return number;
}

struct Bench {
  Dut<DUT_CLASS> dut;
  Sink<pkg::rx_packet_t> request;
  Sink<pkg::rx_packet_t> response;
  Sink<pkg::beat_t> payload;
  std::map<std::string, unsigned> drops;       // by the name of the counter
  unsigned accepted = 0;                       // by the checks before the queue pair

  Bench()
      : dut(1),
        request("request", dut->request_valid_o, dut->request_ready_i, dut->request_o),
        response("response", dut->response_valid_o, dut->response_ready_i, dut->response_o),
        payload("payload", dut->payload_valid_o, dut->payload_ready_i, dut->payload_o) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    pkg::state_bcast_t{}.pack(dut->state_i);
    dut->tvalid_i = 0;
    request.collect();
    response.collect();
    payload.collect();
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 5000);
    dut.attach(request);
    dut.attach(response);
    dut.attach(payload);
  }

  void tick() {
    const auto l2 = roci::sv::roci_count_pkg::rx_l2_drop_t::unpack(dut->l2_drop_o);
    drops["fcs"] += l2.fcs;
    drops["ethertype"] += l2.ethertype;
    drops["mac"] += l2.mac;
    drops["vlan"] += l2.vlan;
    const auto fate = roci::sv::roci_count_pkg::rx_fate_t::unpack(dut->fate_o);
    drops["overflow"] += fate.overflow;
    drops["fcs"] += fate.fcs;
    drops["ipver"] += fate.ipver;
    drops["nxthdr"] += fate.nxthdr;
    drops["paylen"] += fate.paylen;
    drops["tver"] += fate.tver;
    drops["gid"] += fate.gid;
    drops["opcode"] += fate.opcode;
    drops["dest_qp"] += fate.dest_qp;
    drops["icrc"] += fate.icrc;
    roci::sv::roci_count_pkg::rx_fate_t good{};
    good.valid = true;
    accepted += fate == good;
    const auto qp = roci::sv::roci_count_pkg::rx_dispatch_count_t::unpack(dut->count_o);
    drops["dest_qp"] += qp.dest_qp;
    drops["opcode"] += qp.opcode;
    drops["state"] += qp.state;
    drops["gid"] += qp.gid;
    drops["vlan"] += qp.vlan;
    drops["pkey"] += qp.pkey;
    drops["qkey"] += qp.qkey;
    drops["mad"] += qp.mad;
    dut.tick();
  }

  // The port and a queue pair for which a frame like this one is right.
  void make_at_home(const wire::Frame& f, hwif::QpType type = hwif::QpType::RC) {
    pkg::port_t port{};
    port.mac = mac_number(f.eth.dst);
    port.gid_valid = 1u << kGidIndex;
    port.gid[kGidIndex] = gid_words(f.grh.dgid);
    port.pack(dut->port_i);
    write_gid<pkg::ctx_req_t>(
        dut, [this] { dut.tick(); }, static_cast<unsigned>(hwif::CtxColumn::GID), kGidIndex,
        port.gid[kGidIndex]);
    Row row;
    row.set<Row::qpn>(f.bth.dest_qp);
    row.set<Row::qp_type>(type);
    row.set<Row::valid>(1);
    row.set<Row::fn>(kFunction);
    row.set<Row::pkey>(static_cast<std::uint16_t>(f.bth.pkey | 0x8000));
    row.set<Row::sgid_index>(kGidIndex);
    const auto peer = gid_words(f.grh.sgid);
    row.set<Row::peer_gid_low>(std::uint64_t{peer[1]} << 32 | peer[0]);
    if (type == hwif::QpType::UD) row.set<Row::peer_gid_low>(f.deth->qkey);
    row.set<Row::peer_gid_high>(std::uint64_t{peer[3]} << 32 | peer[2]);
    const unsigned vlan = f.eth.vlan ? f.eth.vlan->vid : 0;
    row.set<Row::vlan_valid>(vlan != 0);
    row.set<Row::vlan_id>(static_cast<std::uint16_t>(vlan));
    const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(row);
    const unsigned index = f.bth.dest_qp & ((1u << kQpBits) - 1);
    for (const unsigned w : {1u, 2u, 3u, 0u}) {   // as the firmware: word 0 last
      context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
          dut, [this] { tick(); }, static_cast<unsigned>(hwif::CtxColumn::QP_RX), true, index, w,
          words[w], 200);
    }
    pkg::state_bcast_t state{};
    state.valid = true;
    state.qp = static_cast<decltype(state.qp)>(index);
    state.state = static_cast<pkg::qp_state_e>(kRts);
    state.pack(dut->state_i);
    tick();
    pkg::state_bcast_t{}.pack(dut->state_i);
  }

  void send(const wire::Bytes& bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += kBeat) {
      const auto n = std::min<std::size_t>(kBeat, bytes.size() - at);
      std::uint64_t keep = 0;
      for (unsigned k = 0; k < n; ++k) {
        keep |= std::uint64_t{1} << k;
#if ROCI_CONFIG_WIDE
        dut->tdata_i[k / 4] = (dut->tdata_i[k / 4] & ~(0xffu << (8 * (k % 4)))) |
                              (std::uint32_t{bytes[at + k]} << (8 * (k % 4)));
#else
        dut->tdata_i = (dut->tdata_i & ~(QData{0xff} << (8 * k))) | (QData{bytes[at + k]} << (8 * k));
#endif
      }
      dut->tkeep_i = static_cast<std::remove_reference_t<decltype(dut->tkeep_i)>>(keep);
      dut->tlast_i = at + n == bytes.size();
      dut->tvalid_i = 1;
      tick();
    }
    dut->tvalid_i = 0;
    for (unsigned n = 0; n < bytes.size() / kBeat + 60; ++n) tick();
  }

  // Forgets what came out.
  void clear() {
    request.received().clear();
    response.received().clear();
    payload.received().clear();
    drops.clear();
    accepted = 0;
  }
  std::map<std::string, unsigned> dropped() const {
    std::map<std::string, unsigned> out;
    for (const auto& [name, count] : drops) {
      if (count != 0) out[name] = count;
    }
    return out;
  }
};

using Dropped = std::map<std::string, unsigned>;

// Where a frame wants to go, wrong as it may be otherwise.
wire::Frame addresses_of(const wire::Bytes& bytes) {
  constexpr std::size_t grh = 14, bth = grh + 40;
  wire::Frame f;
  std::copy_n(bytes.begin(), 6, f.eth.dst.begin());
  std::copy_n(bytes.begin() + grh + 8, 16, f.grh.sgid.begin());
  std::copy_n(bytes.begin() + grh + 24, 16, f.grh.dgid.begin());
  f.bth.pkey = static_cast<std::uint16_t>(bytes[bth + 2] << 8 | bytes[bth + 3]);
  f.bth.dest_qp = std::uint32_t{bytes[bth + 5]} << 16 | bytes[bth + 6] << 8 | bytes[bth + 7];
  return f;
}

// The kind of queue pair that takes a frame; of XRC there is none.
hwif::QpType type_of(const wire::Frame& f) {
  switch (f.bth.opcode >> 5) {
    case 1: return hwif::QpType::UC;
    case 3: return hwif::QpType::UD;
    default: return hwif::QpType::RC;
  }
}
bool is_xrc(const wire::Frame& f) { return f.bth.opcode >> 5 == 5; }

// What must have come out for a good frame, and nothing else.
void check_arrived(Bench& bench, const wire::Frame& f) {
  REQUIRE(bench.accepted == 1);
  REQUIRE(bench.dropped() == Dropped{});
  const bool is_response = f.bth.opcode >= 0x0d && f.bth.opcode <= 0x12;
  REQUIRE(bench.request.received().size() == (is_response ? 0 : 1));
  REQUIRE(bench.response.received().size() == (is_response ? 1 : 0));
  const auto& p = (is_response ? bench.response : bench.request).received().front();
  CHECK(p.qp == (f.bth.dest_qp & ((1u << kQpBits) - 1)));
  CHECK(p.fn == kFunction);
  CHECK(p.state == kRts);
  const auto& h = p.headers;
  CHECK(h.opcode == f.bth.opcode);
  CHECK(h.dest_qpn == f.bth.dest_qp);
  CHECK(h.psn == f.bth.psn);
  CHECK(h.solicited == f.bth.solicited);
  CHECK(h.ackreq == f.bth.ack_req);
  CHECK(h.pad_count == f.bth.pad_count);
  CHECK(h.pkey == f.bth.pkey);
  CHECK(h.sgid == gid_words(f.grh.sgid));
  CHECK(h.dgid == gid_words(f.grh.dgid));
  CHECK_FALSE(h.loopback);
  CHECK(h.smac == mac_number(f.eth.src));
  CHECK(h.vlan_valid == f.eth.vlan.has_value());
  if (f.eth.vlan) {
    CHECK(h.tci == (f.eth.vlan->pcp << 13 | f.eth.vlan->dei << 12 | f.eth.vlan->vid));
  }
  if (f.reth) {
    CHECK(h.va == f.reth->va);
    CHECK(h.rkey == f.reth->rkey);
    CHECK(h.dma_length == f.reth->dma_len);
  }
  if (f.atomiceth) {
    CHECK(h.va == f.atomiceth->va);
    CHECK(h.rkey == f.atomiceth->rkey);
  }
  if (f.aeth) {
    CHECK(h.syndrome == f.aeth->syndrome);
    CHECK(h.msn == f.aeth->msn);
  }
  if (f.immdt) {
    const auto& b = f.immdt->bytes;
    CHECK(h.imm == (std::uint32_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3]));
  }
  if (f.ieth) CHECK(h.imm == f.ieth->rkey);
  if (f.deth) CHECK((h.va & 0xffffff) == f.deth->src_qp);
  const auto payload = delivered(f);
  CHECK(h.payload_length == payload.size());
  Packets<pkg::beat_t> out;
  for (const auto& beat : bench.payload.received()) out.add(beat);
  CHECK(out.at_rest());
  REQUIRE(out.done().size() == (payload.empty() ? 0 : 1));
  if (!payload.empty()) CHECK(out.done()[0].bytes == payload);
}

}  // namespace

TEST_CASE("golden frames: RC, UC and UD arrive with all their fields, XRC is of no queue pair") {
  Bench bench;
  unsigned arrived = 0, others = 0;
  for (const auto& v : wire::vectors().good) {
    INFO(v.id << " " << v.name);
    bench.make_at_home(v.fields, type_of(v.fields));
    bench.clear();
    bench.send(v.bytes);
    if (!is_xrc(v.fields)) {
      check_arrived(bench, v.fields);
      ++arrived;
    } else {
      CHECK(bench.accepted == 1);
      CHECK(bench.dropped() == Dropped{{"opcode", 1}});
      CHECK(bench.request.received().empty());
      CHECK(bench.response.received().empty());
      ++others;
    }
  }
  CHECK(arrived >= 75);
  CHECK(arrived + others == wire::vectors().good.size());
}

TEST_CASE("negative frames: each is dropped by its counter, the two that only look wrong arrive") {
  // N017 has a wrong Q_Key: to an RC queue pair a datagram is of another class
  const std::map<std::string, const char*> counters = {
      {"N001", "icrc"},  {"N002", "icrc"},   {"N004", "icrc"},   {"N005", "icrc"},
      {"N007", "icrc"},  {"N008", "ipver"},  {"N010", "paylen"}, {"N011", "paylen"},
      {"N013", "tver"},  {"N014", "opcode"}, {"N016", "dest_qp"}, {"N017", "opcode"},
      {"N019", nullptr}, {"N020", nullptr}};
  Bench bench;
  for (const auto& v : wire::vectors().negative) {
    INFO(v.id << " " << v.name);
    REQUIRE(counters.contains(v.id));
    const char* const counter = counters.at(v.id);
    REQUIRE(v.expect_accept == (counter == nullptr));
    bench.make_at_home(addresses_of(v.bytes));
    bench.clear();
    bench.send(v.bytes);
    if (counter == nullptr) {
      check_arrived(bench, wire::parse(v.bytes));
    } else {
      CHECK(bench.dropped() == Dropped{{counter, 1}});
      CHECK(bench.request.received().empty());
      CHECK(bench.response.received().empty());
    }
    // nothing of it is left: a good frame behind it arrives whole
    const auto& next = wire::vectors().good.front();
    bench.make_at_home(next.fields);
    bench.clear();
    bench.send(next.bytes);
    check_arrived(bench, next.fields);
  }
  CHECK(wire::vectors().negative.size() == counters.size());
}
