// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

using wirecodec::VlanTag;

// A second tag in front of what is there.
Bytes tagged_twice(const Frame& frame, uint16_t ethertype, uint16_t tci) {
  Bytes bytes = wirecodec::encode(wirecodec::finish(frame));
  const uint8_t tag[] = {static_cast<uint8_t>(ethertype >> 8), static_cast<uint8_t>(ethertype),
                         static_cast<uint8_t>(tci >> 8), static_cast<uint8_t>(tci)};
  bytes.insert(bytes.begin() + 12, std::begin(tag), std::end(tag));
  return bytes;
}

void play(Bench& bench) {
  constexpr uint16_t kVid = 5;
  const auto vlan_gid = wirecodec::gid_from_ipv4(0x0a000501);
  bench.device.set_gid(2, vlan_gid, kVid);
  const auto memory = bench.device.register_memory(64);
  const auto plain_gid = bench.device.gid();

  LinkSettings settings;
  for (const bool in_vlan : {false, true}) {
    settings.gid_index = in_vlan ? 2 : 0;
    ++settings.peer_qpn;
    bench.peer.use_gid(in_vlan ? vlan_gid : plain_gid,
                       in_vlan ? std::optional<uint16_t>(kVid) : std::nullopt);
    Link link(bench, settings);
    const std::string where = in_vlan ? ", GID in VLAN 5" : ", GID without VLAN";
    int64_t e = 0;
    const auto frame = [&](std::optional<VlanTag> tag) {
      Frame f = link.write(op::write_only, e, Bytes(64), at(*memory));
      f.eth.vlan = tag;
      return f;
    };
    unsigned accepted = 0, dropped = 0;
    const auto expect = [&](bool accept, const std::string& what) {
      const auto answer = link.collect();
      if (!accept) {
        bench.expect(answer.empty(), what + where + " is dropped: " + link.tell(answer));
        ++dropped;
      } else {
        link.expect_ack(answer, kAck, link.e(e++), what + where);
        ++accepted;
      }
    };
    link.send(frame(std::nullopt));
    expect(!in_vlan, "untagged");
    for (const uint8_t pcp : {0, 3, 7}) {
      link.send(frame(VlanTag{pcp, pcp == 7, kVid}));
      expect(in_vlan, say("VID 5, priority ", int{pcp}));
      link.send(frame(VlanTag{pcp, pcp == 7, 0}));
      expect(!in_vlan, say("priority tag VID 0, priority ", int{pcp}));
    }
    link.send(frame(VlanTag{0, false, 6}));
    expect(false, "VID 6");
    link.send(frame(VlanTag{0, false, 0xfff}));
    expect(false, "VID 4095");
    const auto good = frame(in_vlan ? std::optional(VlanTag{0, false, kVid}) : std::nullopt);
    Frame inner = good;
    inner.eth.vlan = VlanTag{0, false, in_vlan ? kVid : uint16_t{0}};
    for (const uint16_t outer : {0x8100, 0x88a8}) {
      bench.peer.send_bytes(tagged_twice(inner, outer, in_vlan ? kVid : 0));
      expect(false, "two tags, the outer one " + hex(outer));
    }
    link.send(good);
    expect(true, "the right tag");
    // its own frames: judged by the peer
    link.post(IBV_WR_SEND, memory->sge(0, 16), 1);
    link.must_come("a SEND");
    link.send(link.ack(link.p(), kAck, 1));
    link.sent(1);
    bench.saw(say(in_vlan ? "GID in VLAN 5" : "GID without VLAN", ": ", accepted, " accepted, ",
                  dropped, " dropped"));
  }
}

const Scenario kScenario{
    45, "VLAN: tagged, priority-tagged VID 0, wrong VID, double tag",
    "accept (GID's VLAN) / accept (as untagged) / drop / drop", play};

}  // namespace
}  // namespace roci::conformance
