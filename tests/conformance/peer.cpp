// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/peer.hpp"

#include "conformance/text.hpp"
#include "wire/frame_checker.hpp"

#include <algorithm>

namespace roci::conformance {

Peer::Peer(FramePort& wire, const wirecodec::Mac& device_mac, const wirecodec::Gid& device_gid)
    : wire_(wire) {
  path_.src_mac = kMac;
  path_.dst_mac = device_mac;
  path_.sgid = wirecodec::gid_from_mac(kMac);
  path_.dgid = device_gid;
}

void Peer::use_gid(const wirecodec::Gid& gid, std::optional<uint16_t> vid) {
  path_.dgid = gid;
  vid_ = vid;
  path_.vlan.reset();
  if (vid) path_.vlan = wirecodec::VlanTag{0, false, *vid};
}

void Peer::use_pkey(uint16_t own, uint16_t of_device) {
  path_.pkey = own;
  pkey_ = of_device;
}

void Peer::send(const Frame& frame) { send_as_is(wirecodec::finish(frame)); }

void Peer::send_as_is(const Frame& frame, bool bad_fcs) {
  send_bytes(wirecodec::encode(frame), bad_fcs);
}

void Peer::send_bytes(const Bytes& bytes, bool bad_fcs) { wire_.send(bytes, bad_fcs); }

void Peer::wait(Time time) {
  for (const Time end = wire_.now() + time; wire_.now() < end;) pass(end);
}

void Peer::pass(Time until) {
  read_wire();
  wire_.advance(until);
  read_wire();
}

std::optional<Packet> Peer::next(Time within) {
  for (const Time end = wire_.now() + within;;) {
    read_wire();
    if (!inbox_.empty()) break;
    if (wire_.now() >= end) return std::nullopt;
    wire_.advance(end);
  }
  const Packet packet = inbox_.front();
  inbox_.pop_front();
  return packet;
}

std::vector<Packet> Peer::collect(Time quiet) {
  std::vector<Packet> packets;
  while (auto packet = next(quiet)) packets.push_back(std::move(*packet));
  return packets;
}

void Peer::read_wire() {
  while (const auto received = wire_.receive()) {
    try {
      const Frame frame = wirecodec::parse(received->bytes);
      judge(*received, frame);
      inbox_.push_back({received->time, frame});
    } catch (const wirecodec::ParseError& error) {
      complaints_.push_back(say("a frame that is none: ", error.what()));
    }
  }
}

// Whatever a device sends must pass a receiver's checks (ICRC among them), and has no more freedom
// in the fields that the tables of wire.md 1.1 and 1.2 give a value.
void Peer::judge(const ReceivedFrame& received, const Frame& frame) {
  const auto complain = [&](const std::string& what) {
    complaints_.push_back(say(what, " in ", wirecodec::describe(frame)));
  };
  wirecodec::FrameFilter filter;
  filter.mac = path_.src_mac;
  filter.gids = {path_.sgid};
  const auto verdict = wirecodec::check_frame(received.bytes, !received.bad_fcs, filter);
  if (!verdict.accepted()) complain(verdict.reason);
  if (frame.eth.src != path_.dst_mac) complain("another source MAC");
  if (frame.grh.sgid != path_.dgid) complain("another SGID");
  if (!frame.bth.mig_req) complain("MigReq 0");
  if (frame.bth.resv8a != 0 || frame.bth.resv7 != 0) complain("reserved bits set");
  if (frame.bth.pkey != pkey_) complain("another P_Key");
  if (!frame.trailing.empty()) complain("bytes behind the ICRC");
  if (std::any_of(frame.pad.begin(), frame.pad.end(), [](uint8_t b) { return b != 0; })) {
    complain("a pad that is not 0");
  }
  const bool tagged = frame.eth.vlan.has_value();
  if (tagged != vid_.has_value() || (tagged && frame.eth.vlan->vid != *vid_)) {
    complain("another VLAN");
  }
}

}  // namespace roci::conformance
