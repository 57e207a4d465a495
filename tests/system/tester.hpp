// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Frames that a tester builds itself, for a port of the fabric without a NIC: they go to NIC 0 and claim
// to come from NIC 1.
#pragma once

#include "rtl_hosts.hpp"

#include "wire/aeth.hpp"
#include "wire/wire_codec.hpp"

namespace roci::test {

/// Requests of NIC 1's queue pair `link.b` to NIC 0's `link.a`, sent by port 2. The fabric has three
/// ports, so that there is a switch.
class Tester {
 public:
  Tester(sim::World& world, const Connection& link) : world_(world), link_(link) {
    path_.src_mac = {0x02, 0, 0, 0, 0, 0x99};  // its own: the switch learns nothing wrong
    path_.dst_mac = mac_of(world.nic(0));
    path_.sgid = wirecodec::gid_from_mac(mac_of(world.nic(1)));
    path_.dgid = wirecodec::gid_from_mac(path_.dst_mac);
  }
  /// A request with the PSN that is `ahead` of the first one.
  /// @param bytes    of payload; for a READ the length that is asked for
  void send(uint8_t opcode, uint32_t ahead, size_t bytes, uint64_t va = 0, uint32_t rkey = 0) {
    const bool read = opcode == wirecodec::op::read_request;
    wirecodec::Frame f =
        wirecodec::make_frame(path_, opcode, link_.a.qp.number(), link_.wish.b_psn + ahead,
                              wirecodec::Bytes(read ? 0 : bytes, 0x44));
    f.bth.ack_req = true;
    f.bth.resv8a = mark_;
    if (f.reth) f.reth = wirecodec::Reth{va, rkey, static_cast<uint32_t>(bytes)};
    world_.fabric().port(2).send(wirecodec::build(f));
  }

  /// The same, into a region or out of it.
  void send(uint8_t opcode, uint32_t ahead, size_t bytes, const Region& to) {
    send(opcode, ahead, bytes, to.address(), to.mr.rkey());
  }

  /// From now on the requests carry this byte behind the P_Key: FECN, BECN and six reserved bits.
  void mark(uint8_t bits) { mark_ = bits; }

 private:
  static wirecodec::Mac mac_of(const sim::WorldNic& nic) {
    wirecodec::Mac mac{};
    for (unsigned b = 0; b < 6; ++b) mac[b] = static_cast<uint8_t>(nic.mac() >> (40 - 8 * b));
    return mac;
  }

  sim::World& world_;
  const Connection& link_;
  wirecodec::Path path_;
  uint8_t mark_ = 0;
};

}  // namespace roci::test
