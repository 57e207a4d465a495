// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// FakeNic: messages of UD queue pairs (wire.md §2.12). What does not fit is dropped without a word.
#include "fake_nic.hpp"

#include <roci/error.hpp>

#include <algorithm>
#include <cstring>

namespace roci::test {
namespace {

using hwif::CqeOpcode;
using hwif::CqeStatus;
using hwif::QpState;
using hwif::VendorStatus;
using hwif::WrOpcode;

constexpr size_t GRH_BYTES = 40;

bool receives(QpState state) {
  return state == QpState::RTR || state == QpState::RTS || state == QpState::SQD ||
         state == QpState::SQE;
}

}  // namespace

FakeNic::Outcome FakeNic::send_datagram(Qp& qp, const Wqe& wqe) {
  using V = hwif::AddressVector;
  if (wqe.control.get<hwif::SqWqeControl::opcode>() == WrOpcode::NOP) return {};
  std::vector<uint8_t> message;
  const auto check = read_data(qp, wqe, message);
  if (check != VendorStatus::NONE) return {CqeStatus::LOC_PROT_ERR, check, false, false};
  if (message.size() > 128u << static_cast<unsigned>(config_.active_mtu)) {
    violation("a UD message of more than the MTU");
    return {};
  }
  const unsigned source = wqe.vector.get<V::sgid_index>();
  if (source >= gids_.size() ||
      gids_[source].get<hwif::GidEntry::gid_type>() == hwif::GidType::NONE) {
    violation("sgid_index of a UD request");
    return {CqeStatus::LOC_QP_OP_ERR, VendorStatus::WQE_GID_INDEX, false, false};
  }
  const auto own_vlan = gids_[source].get<hwif::GidEntry::vlan_present>();
  if (own_vlan != wqe.vector.get<V::vlan_present>() ||
      (own_vlan && gids_[source].get<hwif::GidEntry::vlan_id>() != wqe.vector.get<V::vlan_id>())) {
    violation("the VLAN of a UD request is not that of its GID");
  }
  // IBTA 10.2.5
  uint32_t qkey = wqe.ud.get<hwif::SqWqeUd::qkey>();
  if (qkey >> 31 != 0) qkey = qp.attributes.get<hwif::QpAttributes::qkey>();
  const uint32_t dest = wqe.ud.get<hwif::SqWqeUd::dest_qpn>();
  const auto dmac = wqe.vector.get<V::dmac>();
  const Gid dgid = wqe.vector.get<V::dgid>();
  if (dmac.bytes[0] & 1) {
    if (dest != hwif::QPN_MULTICAST) violation("a group has the queue pair 0xffffff");
    for (FakeNic* nic : fabric_.nics_) {
      for (const auto& [group, member] : nic->groups_) {
        if (!(group == dgid)) continue;
        for (Qp& peer : nic->qps_) {
          if (peer.exists && peer.number == member && !(nic == this && &peer == &qp)) {
            nic->deliver_datagram(qp, wqe, qkey, message, peer, *this);
          }
        }
      }
    }
    return {};
  }
  FakeNic* target = fabric_.find(dmac);
  if (target == nullptr || fabric_.find(dgid) != target) return {};
  Qp& peer = target->qps_[dest & (target->qps_.size() - 1)];
  if (peer.exists && peer.number == dest) {
    target->deliver_datagram(qp, wqe, qkey, message, peer, *this);
  }
  return {};
}

void FakeNic::deliver_datagram(const Qp& from, const Wqe& wqe, uint32_t qkey,
                               std::span<const uint8_t> message, Qp& peer, FakeNic& sender) {
  using V = hwif::AddressVector;
  using C = hwif::SqWqeControl;
  if (!is(peer, hwif::QpType::UD) || !receives(peer.state) ||
      peer.attributes.get<hwif::QpAttributes::qkey>() != qkey || !has_receive(peer)) {
    return;
  }
  // The GRH as it would be on the wire: version 6, TClass, FlowLabel, PayLen, NxtHdr, HopLmt, GIDs.
  std::vector<uint8_t> data(GRH_BYTES);
  const uint32_t first = 6u << 28 | uint32_t{wqe.vector.get<V::traffic_class>()} << 20 |
                         wqe.vector.get<V::flow_label>();
  for (unsigned i = 0; i < 4; ++i) data[i] = static_cast<uint8_t>(first >> (24 - 8 * i));
  data[6] = 0x1b;
  data[7] = wqe.vector.get<V::hop_limit>();
  const Gid sgid = sender.gids_[wqe.vector.get<V::sgid_index>()].get<hwif::GidEntry::gid>();
  const Gid dgid = wqe.vector.get<V::dgid>();
  std::memcpy(&data[8], sgid.bytes, 16);
  std::memcpy(&data[24], dgid.bytes, 16);
  data.insert(data.end(), message.begin(), message.end());

  // Too long: the receive is not used (CVE-2024-40992 was about that), so look before it is taken.
  uint16_t& taken = srq_of(peer) != nullptr ? srq_of(peer)->taken : peer.rq_taken;
  const uint16_t before = taken;
  Outcome local;
  const auto receive = fetch_receive(peer, local);
  if (!receive) return;
  uint64_t room = 0;
  for (const hwif::Sge& sge : receive->sges) room += sge.get<hwif::Sge::length>();
  if (room < data.size()) {
    taken = before;
    return;
  }
  const auto check = scatter(peer, receive->sges, data);
  if (check != VendorStatus::NONE) {
    fail_qp(peer, check);
    complete_receive(peer, *receive, CqeOpcode::RECV, 0, 0, false,
                     {CqeStatus::LOC_PROT_ERR, check, false, false});
    return;
  }
  const bool imm = wqe.control.get<C::opcode>() == WrOpcode::SEND_IMM;
  hwif::Cqe more{};
  more.set<hwif::Cqe::src_qp_or_srqn>(from.number);
  more.set<hwif::Cqe::grh_present>(true);
  if (wqe.vector.get<V::vlan_present>()) {
    more.set<hwif::Cqe::vlan_present>(true);
    more.set<hwif::Cqe::tci>(
        static_cast<uint16_t>(wqe.vector.get<V::sl>() << 13 | wqe.vector.get<V::vlan_id>()));
  }
  complete_receive(peer, *receive, imm ? CqeOpcode::RECV_IMM : CqeOpcode::RECV,
                   static_cast<uint32_t>(data.size()), imm ? wqe.control.get<C::imm_or_key>() : 0,
                   wqe.control.get<C::solicited>(), {}, more);
}

}  // namespace roci::test
