// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The receive-check oracle: vectors, one case per counter, the order of the checks, and agreement
// with the parser.
#include "wire/frame_checker.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <map>

#include "wire/crc.hpp"
#include "wire/random_frames.hpp"
#include "wire/vectors.hpp"

using namespace roci::wirecodec;
using roci::test_seed;

namespace {

DropCounter fate(const Frame& frame, const FrameFilter& filter = {}, bool fcs_ok = true) {
  return check_frame(encode(frame), fcs_ok, filter).counter;
}

// Port 1 of a simulation, as a filter.
FrameFilter port_filter() {
  FrameFilter filter;
  filter.mac = Mac{2, 0, 0, 0, 0, 1};
  filter.gids = {{gid_from_mac(*filter.mac), gid_from_ipv4(0x0a000001)}};
  Gid mgid{};
  mgid[0] = 0xff;
  mgid[1] = 0x0e;
  mgid[15] = 9;
  filter.mgids = {mgid};
  return filter;
}

Frame frame_to(const FrameFilter& filter, uint8_t code = 0x04) {
  Path path;
  path.dst_mac = *filter.mac;
  path.dgid = filter.gids->front();
  return finish(make_frame(path, code, 5, 77, Bytes{1, 2, 3, 4, 5}));
}

}  // namespace

TEST_CASE("good vectors are accepted") {
  for (const Vector& v : vectors().good) {
    INFO(v.id << " " << v.name);
    const Verdict verdict = check_frame(v.bytes, true);
    INFO(verdict.reason);
    CHECK(verdict.accepted());
    CHECK(check_frame(v.bytes, false).counter == DropCounter::fcs);
  }
}

TEST_CASE("negative vectors are classified") {
  // What the name of a vector says is wrong with it; no entry: accepted before QP lookup.
  const std::vector<std::pair<std::string, DropCounter>> by_name = {
      {"ICRC one bit flipped", DropCounter::icrc},
      {"ICRC byte-swapped", DropCounter::icrc},
      {"ICRC computed", DropCounter::icrc},
      {"payload bit flipped", DropCounter::icrc},
      {"DGID bit flipped", DropCounter::icrc},
      {"IPVer", DropCounter::ipver},
      {"NxtHdr", DropCounter::nxthdr},
      {"PayLen", DropCounter::paylen},
      {"TVer", DropCounter::tver},
      {"reserved opcode", DropCounter::opcode},
      {"dest QP 0", DropCounter::dest_qp},
      {"UD wrong Q_Key", DropCounter::none},  // dropped later, by the QP
      {"trailing bytes", DropCounter::none},
      {"resv8a", DropCounter::none},
  };
  REQUIRE(vectors().negative.size() >= 14);
  for (const NegativeVector& v : vectors().negative) {
    INFO(v.id << " " << v.name);
    const auto entry = std::find_if(by_name.begin(), by_name.end(), [&v](const auto& candidate) {
      return v.name.find(candidate.first) != std::string::npos;
    });
    REQUIRE(entry != by_name.end());
    const Verdict verdict = check_frame(v.bytes, true);
    INFO(verdict.reason);
    CHECK(verdict.counter == entry->second);
    if (v.expect_accept) CHECK(verdict.accepted());
  }
}

TEST_CASE("one defect each") {
  const FrameFilter filter = port_filter();
  const Frame good = frame_to(filter);
  CHECK(fate(good, filter) == DropCounter::none);
  CHECK(fate(good, filter, false) == DropCounter::fcs);

  const std::vector<std::tuple<const char*, DropCounter, std::function<void(Frame&)>>> defects = {
      {"ethertype", DropCounter::ethertype, [](Frame& f) { f.eth.ethertype = 0x86dd; }},
      {"service tag", DropCounter::ethertype, [](Frame& f) { f.eth.ethertype = 0x88a8; }},
      {"ethertype behind a tag", DropCounter::ethertype,
       [](Frame& f) {
         f.eth.vlan.emplace();
         f.eth.ethertype = 0x0800;
       }},
      {"other MAC", DropCounter::mac, [](Frame& f) { f.eth.dst[5] = 2; }},
      {"broadcast", DropCounter::mac, [](Frame& f) { f.eth.dst.fill(0xff); }},
      {"unjoined group MAC", DropCounter::mac,
       [](Frame& f) { f.eth.dst = {0x33, 0x33, 0, 0, 0, 8}; }},
      {"reserved VID", DropCounter::vlan,
       [](Frame& f) {
         f.eth.vlan = VlanTag{0, false, 0xfff};
       }},
      {"double tag", DropCounter::vlan,
       [](Frame& f) {
         f.eth.vlan.emplace();
         f.eth.ethertype = 0x8100;
       }},
      {"usNIC", DropCounter::ipver, [](Frame& f) { f.grh.ip_version = 8; }},
      {"UDP", DropCounter::nxthdr, [](Frame& f) { f.grh.next_header = 0x11; }},
      {"PayLen + 4", DropCounter::paylen, [](Frame& f) { f.grh.pay_len += 4; }},
      {"PayLen - 1", DropCounter::paylen, [](Frame& f) { f.grh.pay_len -= 1; }},
      {"PayLen too small", DropCounter::paylen, [](Frame& f) { f.grh.pay_len = 12; }},
      {"pad larger than payload", DropCounter::paylen,
       [](Frame& f) {
         f.payload.clear();
         f = finish(f);
         f.bth.pad_count = 1;
       }},
      {"payload of 4097", DropCounter::paylen,
       [](Frame& f) {
         f.payload.resize(4097);
         f = finish(f);
       }},
      {"no room for the AETH", DropCounter::paylen,
       [](Frame& f) {
         f.payload.clear();
         f = finish(f);
         f.bth.opcode = 0x11;
       }},
      {"TVer", DropCounter::tver, [](Frame& f) { f.bth.tver = 8; }},
      {"other GID", DropCounter::gid, [](Frame& f) { f.grh.dgid[15] ^= 1; }},
      {"RC to a group", DropCounter::gid, [&filter](Frame& f) { f.grh.dgid = filter.mgids[0]; }},
      {"reserved opcode", DropCounter::opcode, [](Frame& f) { f.bth.opcode = 0x15; }},
      {"RD opcode", DropCounter::opcode, [](Frame& f) { f.bth.opcode = 0x44; }},
      {"CNP", DropCounter::opcode, [](Frame& f) { f.bth.opcode = 0x81; }},
      {"UC READ", DropCounter::opcode, [](Frame& f) { f.bth.opcode = 0x2c; }},
      {"QP 0", DropCounter::dest_qp, [](Frame& f) { f.bth.dest_qp = 0; }},
      {"RC to the multicast QP", DropCounter::dest_qp, [](Frame& f) { f.bth.dest_qp = 0xffffff; }},
  };
  for (const auto& [name, counter, defect] : defects) {
    INFO(name);
    Frame bad = good;
    defect(bad);
    CHECK(fate(with_icrc(bad), filter) == counter);
    const Verdict verdict = check_frame(encode(with_icrc(bad)), true, filter);
    CHECK_FALSE(verdict.reason.empty());
    if (std::string(name) == "no room for the AETH") {
      CHECK(verdict.reason == "PayLen 16 is too small, the headers need 20");
    }
  }
  Frame bad = good;
  bad.icrc ^= 0x00010000;
  CHECK(fate(bad, filter) == DropCounter::icrc);
}

TEST_CASE("filters apply only when given") {
  Frame frame = frame_to(port_filter());
  frame.eth.dst = {0x10, 1, 2, 3, 4, 5};
  frame.grh.dgid = gid_from_ipv4(0x01020304);
  frame.eth.vlan = VlanTag{3, true, 99};
  frame = finish(frame);
  CHECK(fate(frame) == DropCounter::none);

  FrameFilter vlans;
  vlans.vids = {{100}};
  CHECK(fate(frame, vlans) == DropCounter::vlan);
  frame.eth.vlan->vid = 100;
  CHECK(fate(frame, vlans) == DropCounter::none);
  frame.eth.vlan->vid = 0;  // priority tag
  CHECK(fate(frame, vlans) == DropCounter::none);
  frame.eth.vlan.reset();
  CHECK(fate(frame, vlans) == DropCounter::none);
}

TEST_CASE("multicast UD") {
  const FrameFilter filter = port_filter();
  Frame frame = frame_to(filter, 0x64);
  frame.grh.dgid = filter.mgids[0];
  frame.eth.dst = mac_from_mgid(filter.mgids[0]);
  frame.bth.dest_qp = 0xffffff;
  frame = finish(frame);
  CHECK(fate(frame, filter) == DropCounter::none);

  Frame unicast_qp = frame;
  unicast_qp.bth.dest_qp = 5;
  CHECK(fate(with_icrc(unicast_qp), filter) == DropCounter::dest_qp);
  Frame unicast_gid = frame;
  unicast_gid.grh.dgid = filter.gids->front();
  CHECK(fate(with_icrc(unicast_gid), filter) == DropCounter::dest_qp);
  Frame not_joined = frame;
  not_joined.grh.dgid[15] = 8;  // collides in no MAC here: the DMAC is still the joined one
  CHECK(fate(with_icrc(not_joined), filter) == DropCounter::gid);
}

TEST_CASE("the first failing check counts") {
  // Defects in the order of the checks; with defects k … end present, check k must win.
  using Defect = std::function<void(Frame&)>;
  const std::vector<std::pair<DropCounter, Defect>> ordered = {
      {DropCounter::mac, [](Frame& f) { f.eth.dst[5] = 7; }},
      {DropCounter::vlan,
       [](Frame& f) {
         f.eth.vlan = VlanTag{0, false, 0xfff};
       }},
      {DropCounter::ipver, [](Frame& f) { f.grh.ip_version = 4; }},
      {DropCounter::nxthdr, [](Frame& f) { f.grh.next_header = 6; }},
      {DropCounter::paylen, [](Frame& f) { f.grh.pay_len += 2; }},
      {DropCounter::tver, [](Frame& f) { f.bth.tver = 1; }},
      {DropCounter::gid, [](Frame& f) { f.grh.dgid[15] ^= 4; }},
      {DropCounter::opcode, [](Frame& f) { f.bth.opcode = 0x1f; }},
      {DropCounter::dest_qp, [](Frame& f) { f.bth.dest_qp = 0; }},
      {DropCounter::icrc, [](Frame& f) { f.icrc ^= 1; }},
  };
  const FrameFilter filter = port_filter();
  for (size_t first = 0; first < ordered.size(); ++first) {
    Frame frame = frame_to(filter);
    for (size_t k = first; k < ordered.size(); ++k) ordered[k].second(frame);
    INFO(counter_name(ordered[first].first));
    CHECK(fate(frame, filter) == ordered[first].first);
    CHECK(fate(frame, filter, false) == DropCounter::fcs);
  }
}

TEST_CASE("cut frames fail the field that is missing") {
  const Bytes good = encode(frame_to(port_filter()));
  for (size_t length = 0; length < good.size(); ++length) {
    INFO("cut to " << length);
    DropCounter expected = DropCounter::paylen;
    if (length < 14) {
      expected = DropCounter::ethertype;
    } else if (length < 15) {
      expected = DropCounter::ipver;
    } else if (length < 21) {
      expected = DropCounter::nxthdr;
    }
    CHECK(check_frame(std::span(good).first(length), true).counter == expected);
  }
}

TEST_CASE("counter names") {
  const std::vector<std::string> names = {"rx_drop_fcs",    "rx_drop_ethertype", "rx_drop_mac",
                                          "rx_drop_vlan",   "rx_drop_oversize",  "rx_drop_ipver",
                                          "rx_drop_nxthdr", "rx_drop_paylen",    "rx_drop_tver",
                                          "rx_drop_gid",    "rx_drop_opcode",    "rx_drop_dest_qp",
                                          "rx_drop_icrc"};
  REQUIRE(all_drop_counters().size() == names.size());
  for (size_t i = 0; i < names.size(); ++i) CHECK(counter_name(all_drop_counters()[i]) == names[i]);
  CHECK(counter_name(DropCounter::none).empty());
}

TEST_CASE("checker and parser agree on damaged frames") {
  const uint64_t seed = test_seed(3);
  INFO("ROCI_SEED=" << seed);
  RandomFrames random(seed);
  std::map<DropCounter, unsigned> seen;
  for (int i = 0; i < 30000; ++i) {
    const OpcodeInfo& info = all_opcodes()[random.pick(all_opcodes().size())];
    Bytes bytes = encode(random.next(info));
    for (uint64_t c = random.pick(3); c > 0; --c) {
      const size_t at = 12 + random.pick(std::min<size_t>(bytes.size(), 80) - 12);
      bytes[at] ^= static_cast<uint8_t>(1u << random.pick(8));
    }
    const Verdict verdict = check_frame(bytes, true);
    ++seen[verdict.counter];
    std::optional<Frame> frame;
    try {
      frame = parse(bytes);
    } catch (const ParseError&) {
    }
    INFO("frame " << i << ": " << describe(bytes) << "; " << counter_name(verdict.counter) << " "
                  << verdict.reason);
    if (verdict.accepted()) {
      REQUIRE(frame);
      CHECK(frame->grh.ip_version == 6);
      CHECK(frame->grh.next_header == 0x1b);
      CHECK(frame->bth.tver == 0);
      CHECK(frame->info() != nullptr);
      CHECK(with_icrc(*frame).icrc == frame->icrc);
    }
    if (!frame) {
      CHECK_FALSE(verdict.accepted());
    } else if (verdict.counter == DropCounter::icrc) {
      CHECK(with_icrc(*frame).icrc != frame->icrc);
    }
  }
  for (DropCounter counter :
       {DropCounter::none, DropCounter::ethertype, DropCounter::ipver, DropCounter::nxthdr,
        DropCounter::paylen, DropCounter::tver, DropCounter::opcode, DropCounter::icrc}) {
    INFO(counter_name(counter));
    CHECK(seen[counter] > 10);
  }
}
