// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// nicsim inject: a RoCEv1 frame checker. Each frame goes by the wire into NIC 0; the NIC's own counters
// tell its fate. Without filters the port takes the frame's own MAC, GID and VLAN before it comes.
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "capture/capture_reader.hpp"
#include "model/world.hpp"
#include "nicsim/management.hpp"
#include "nicsim/report.hpp"
#include "nicsim/run.hpp"

namespace roci::sim {
namespace {

using hwif::Counter;

struct Cause {
  Counter counter;
  const char* name;
  const char* reason;
};

// In the order of the checks.
constexpr std::array<Cause, 13> kCauses{{
    {Counter::RX_DROP_FCS, "rx_drop_fcs", "bad FCS"},
    {Counter::RX_DROP_ETHERTYPE, "rx_drop_ethertype", "Ethertype is not 0x8915"},
    {Counter::RX_DROP_MAC, "rx_drop_mac", "destination MAC is not ours"},
    {Counter::RX_DROP_VLAN, "rx_drop_vlan", "VLAN tag of no GID, or two tags"},
    {Counter::RX_DROP_OVERSIZE, "rx_drop_oversize", "longer than the largest RoCE frame"},
    {Counter::RX_DROP_IPVER, "rx_drop_ipver", "GRH version is not 6"},
    {Counter::RX_DROP_NXTHDR, "rx_drop_nxthdr", "GRH next header is not 0x1b"},
    {Counter::RX_DROP_PAYLEN, "rx_drop_paylen", "GRH payload length does not fit the frame"},
    {Counter::RX_DROP_TVER, "rx_drop_tver", "BTH version is not 0"},
    {Counter::RX_DROP_GID, "rx_drop_gid", "destination GID is not ours"},
    {Counter::RX_DROP_OPCODE, "rx_drop_opcode", "unknown BTH opcode"},
    {Counter::RX_DROP_DEST_QP, "rx_drop_dest_qp", "no such queue pair, or number 0"},
    {Counter::RX_DROP_ICRC, "rx_drop_icrc", "bad ICRC"},
}};

// Long after the last beat of the longest frame; a frame that left no trace until then leaves none.
constexpr uint64_t kQuantum = 512;
constexpr unsigned kMostQuanta = 64;
constexpr uint64_t kSettle = 64;

constexpr uint16_t kRoce = 0x8915;
constexpr uint16_t kNoVlan = 0xfff;  // IEEE 802.1Q: reserved

// Where a frame wants to go, as far as it is long enough to say and a port can be there: of a frame
// that is no RoCE only the MAC. What is left out stays as it is, and the NIC says what it drops for.
struct Destination {
  uint64_t mac = 0;
  bool roce = false;
  std::optional<std::array<uint8_t, 16>> gid;
  std::optional<uint16_t> vlan;
};

Destination destination_of(const std::vector<uint8_t>& frame) {
  Destination out;
  constexpr size_t ethertype = 12, dgid_in_grh = 24;
  for (size_t i = 0; i < 6 && i < frame.size(); ++i) {
    out.mac |= uint64_t{frame[i]} << (40 - 8 * i);
  }
  const auto u16 = [&](size_t at) { return static_cast<uint16_t>(frame[at] << 8 | frame[at + 1]); };
  size_t grh = ethertype + 2;
  if (frame.size() >= grh + 4 && u16(ethertype) == 0x8100) {
    out.vlan = static_cast<uint16_t>(u16(grh) & 0xfff);
    grh += 4;
  }
  out.roce = frame.size() >= grh && u16(grh - 2) == kRoce && out.vlan != kNoVlan;
  if (out.roce && frame.size() >= grh + dgid_in_grh + 16) {
    std::array<uint8_t, 16> gid{};
    std::memcpy(gid.data(), frame.data() + grh + dgid_in_grh, gid.size());
    if (can_be_of_port(gid)) out.gid = gid;
  }
  return out;
}

class Checker {
 public:
  explicit Checker(const Options& options) : options_(options), world_(config(options)), manager_(nic()) {
    if (options.mac) manager_.set_mac(*options.mac);
    if (options.gid) gid_ = *options.gid;
    manager_.set_gid(0, gid_);
  }

  FrameFate check(const CapturedFrame& frame) {
    if (frame.bytes.empty()) return {false, "", "no bytes"};
    if (frame.bytes.size() > kMaxFrame) {
      return {false, "rx_drop_oversize", "longer than 64 KB, which no Ethernet carries"};
    }
    const std::lock_guard lock(world_.mutex());
    follow(destination_of(frame.bytes));
    const uint64_t good = read_counter(nic(), Counter::RX_ROCE_PACKETS);
    std::array<uint64_t, kCauses.size()> before{};
    for (size_t i = 0; i < kCauses.size(); ++i) before[i] = read_counter(nic(), kCauses[i].counter);
    world_.fabric().port(1).send(frame.bytes, frame.bad_fcs);
    for (unsigned quantum = 0; quantum < kMostQuanta; ++quantum) {
      world_.run(kQuantum);
      if (world_.fabric().busy()) continue;
      world_.run(kSettle);  // a packet counts as received when all of it is, after it was judged
      if (read_counter(nic(), Counter::RX_ROCE_PACKETS) != good) return {true, "", ""};
      for (size_t i = 0; i < kCauses.size(); ++i) {
        if (read_counter(nic(), kCauses[i].counter) != before[i]) {
          return {false, kCauses[i].name, kCauses[i].reason};
        }
      }
    }
    return {false, "", "no counter of the NIC tells why"};
  }

 private:
  static WorldConfig config(const Options& options) {
    WorldConfig out;
    out.nics = 1;
    out.chip = options.config;
    out.fabric = options.fabric();
    out.memory = options.memory();
    out.seed = options.seed;
    return out;
  }

  WorldNic& nic() { return world_.nic(0); }

  // Makes the frame's own addresses those of the port, where no filter is asked for.
  void follow(const Destination& to) {
    if (!options_.mac && to.mac != mac_) manager_.set_mac(to.mac);
    mac_ = to.mac;
    if (!to.roce) return;
    const auto gid = options_.gid ? *options_.gid : to.gid.value_or(gid_);
    if (gid == gid_ && to.vlan == vlan_) return;
    manager_.set_gid(0, gid, to.vlan);
    gid_ = gid;
    vlan_ = to.vlan;
  }

  const Options& options_;
  World world_;
  PortManager manager_;
  // What the port has now; the GID is somebody's until a frame or an option says whose.
  uint64_t mac_ = 0;
  std::array<uint8_t, 16> gid_{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  std::optional<uint16_t> vlan_;
};

}  // namespace

int inject(const Options& options) {
  std::vector<CapturedFrame> frames;
  try {
    frames = read_capture(options.pcap);
  } catch (const CaptureError& error) {
    say(error.what());
    return kExitUsage;
  }
  write_file(options.report, "");
  say("seed " + std::to_string(options.seed));
  Checker checker(options);
  std::vector<FrameFate> fates;
  size_t accepted = 0;
  for (const CapturedFrame& frame : frames) {
    fates.push_back(checker.check(frame));
    if (fates.back().accepted) ++accepted;
  }
  write_file(options.report, to_json(fates));
  say(std::to_string(accepted) + " frames accepted, " + std::to_string(fates.size() - accepted) +
      " dropped");
  return 0;
}

}  // namespace roci::sim
