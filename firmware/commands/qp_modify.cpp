// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// MODIFY_QP: transitions of wire.md 2.15 and the attributes that each demands and allows.
//
// All checks come first. Then the rows are written (qp.hpp says which in which transition), and last the
// state is changed by compare and set: if the hardware has put the queue pair into ERR meanwhile, it
// stays there and the command is refused.
#include "guid.hpp"
#include "qp.hpp"
#include "rings.hpp"
#include "transitions.hpp"

namespace roci::fw {

namespace {

using hwif::QpState;
using hwif::QpType;
using A = hwif::QpAttributes;
using V = hwif::AddressVector;

using namespace transition;

// log2 of the region that holds `depth` READs and atomics.
unsigned depth_log2(unsigned depth) {
  unsigned log2 = 1;
  while (1u << log2 < depth) ++log2;
  return log2;
}

bool refuse(Call& call, AdminField field, uint32_t largest = 0) {
  call.invalid(field, largest);
  return false;
}

// Checks the values of the attributes that are meant.
bool check_values(Call& call, QpType type, uint32_t mask, const A& a) {
  if ((mask & PORT) != 0 && a.get<A::port>() != 1) return refuse(call, AdminField::PORT, 1);
  if ((mask & PKEY) != 0) {
    const uint32_t index = a.get<A::pkey_index>();
    if (index >= PKEYS || state.pkeys[index] == 0) {
      return refuse(call, AdminField::PKEY_INDEX, PKEYS - 1);
    }
  }
  if ((mask & QKEY) != 0) {
    const uint32_t qkey = a.get<A::qkey>();
    if (type == QpType::GSI) {     // everybody knows its Q_Key
      if (qkey != hwif::QKEY_GSI) return refuse(call, AdminField::QKEY, hwif::QKEY_GSI);
    } else if (qkey >> 31 != 0 && !call.function().privileged) {
      call.fail(AdminStatus::NOT_PERMITTED, AdminField::QKEY, 0x7fffffff);   // IBTA 10.2.5
      return false;
    }
  }
  if ((mask & MTU) != 0) {
    using C = hwif::CtxCsr;
    C csr;
    ctx_read_row(csr, CtxColumn::CSR, 0, 2, 1);
    const auto largest = static_cast<uint32_t>(csr.get<C::active_mtu>());
    const auto mtu = static_cast<uint32_t>(a.get<A::path_mtu>());
    if (mtu == 0 || mtu > largest) return refuse(call, AdminField::PATH_MTU, largest);
  }
  if ((mask & INITIATOR) != 0 && a.get<A::initiator_depth>() > MAX_RD_ATOMIC) {
    return refuse(call, AdminField::INITIATOR_DEPTH, MAX_RD_ATOMIC);
  }
  if ((mask & RESPONDER) != 0 && a.get<A::responder_depth>() > MAX_RD_ATOMIC) {
    return refuse(call, AdminField::RESPONDER_DEPTH, MAX_RD_ATOMIC);
  }
  if ((mask & PATH) != 0) {
    const V& path = part<A::path>(a);
    const uint32_t sgid = path.get<V::sgid_index>();
    if (sgid >= GIDS || !gid_is_set(sgid)) {
      return refuse(call, AdminField::SGID_INDEX, GIDS - 1);
    }
    const uint64_t dmac = row_word(path, V::dmac::AT / 64) & 0xffffffffffff;
    if (dmac == 0 || (dmac & 1) != 0) return refuse(call, AdminField::DMAC);   // unicast
    if ((row_word(path, V::dgid::AT / 64) & 0xff) == 0xff) return refuse(call, AdminField::DGID);
  }
  return true;
}

// Rights as hardware checks them.
void set_rights(hwif::CtxQpRq& row, uint8_t rights) {
  using R = hwif::CtxQpRq;
  hwif::AccessRights value{};
  value.words[0] = rights;
  row.set<R::rights>(value);
}

uint8_t rights_of(const A& a) { return static_cast<uint8_t>(a.get<A::rights>().words[0]); }

void take_pkey(Qp& qp, unsigned index) {
  release_pkey(qp);
  ++state.pkey_users[index];
  qp.page_pkey = static_cast<uint8_t>((qp.page_pkey & 15u) | (index + 1) << 4);
}

// Rows of path and peer. Kept parts (P_Key, number, …) were read before.
void set_path(hwif::CtxQpPath& path, hwif::CtxQpRx& rx, const V& v) {
  using P = hwif::CtxQpPath;
  using X = hwif::CtxQpRx;
  const uint64_t high = swap64(row_word(v, V::dgid::AT / 64));
  const uint64_t low = swap64(row_word(v, V::dgid::AT / 64 + 1));
  path.set<P::dmac>(swap64(row_word(v, V::dmac::AT / 64)) >> 16);
  path.set<P::tci>(static_cast<uint16_t>(v.get<V::sl>() << 13 | v.get<V::vlan_id>()));
  path.set<P::dgid_low>(low);
  path.set<P::dgid_high>(high);
  path.set<P::traffic_class>(v.get<V::traffic_class>());
  path.set<P::hop_limit>(v.get<V::hop_limit>());
  path.set<P::vlan_valid>(v.get<V::vlan_present>());
  path.set<P::sgid_index>(v.get<V::sgid_index>());
  path.set<P::flow_label>(v.get<V::flow_label>());
  rx.set<X::sgid_index>(v.get<V::sgid_index>());
  rx.set<X::peer_gid_low>(low);
  rx.set<X::peer_gid_high>(high);
  // A tag with VLAN 0 has only a priority (wire.md 1.8).
  rx.set<X::vlan_valid>(v.get<V::vlan_present>() && v.get<V::vlan_id>() != 0);
  rx.set<X::vlan_id>(v.get<V::vlan_id>());
}

void set_pkey(hwif::CtxQpPath& path, hwif::CtxQpRx& rx, uint16_t pkey) {
  path.set<hwif::CtxQpPath::pkey>(pkey);
  rx.set<hwif::CtxQpRx::pkey>(pkey);
}

// Of UD and GSI: the Q_Key, and beside it in QP_PATH the number that packets tell as their source.
void set_qkey(hwif::CtxQpPath& path, hwif::CtxQpRx& rx, const Qp& qp, uint32_t qkey) {
  path.set<hwif::CtxQpPath::dgid_low>(uint64_t{qp.number} << 32 | qkey);
  rx.set<hwif::CtxQpRx::peer_gid_low>(qkey);
}

struct Change {
  Call& call;
  Qp& qp;
  unsigned index;
  uint32_t mask;
  const A& a;
  bool rings_receive = false;  // of a queue pair that goes to INIT: it has a receive queue of its own
};

// Value of an attribute that only some types have; 0 if it is not meant.
template <class Field>
[[gnu::always_inline]] inline uint32_t meant(const Change& c, uint32_t bit) {
  return (c.mask & bit) != 0 ? c.a.get<Field>() : 0;
}

// The whole row, word 0 last: until then no frame is judged by it (packet_rx_dispatch).
[[gnu::always_inline]] inline void write_rx(Image& image, unsigned index, const hwif::CtxQpRx& rx) {
  image.row(CtxColumn::QP_RX, index, rx, 1, 3);
  image.row(CtxColumn::QP_RX, index, rx, 0, 1);
}

// RESET → INIT: everything begins.
void write_init(Change& c) {
  using B = hwif::CtxQpSq;
  using D = hwif::CtxQpTxDyn;
  using K = hwif::CtxQpAck;
  using R = hwif::CtxQpRq;
  using X = hwif::CtxQpRx;
  const unsigned index = c.index;
  Reads reads;
  const auto& read = reads.add<hwif::CtxQpRead>(CtxColumn::QP_READ, index, 1);
  const R& old_rq = reads.add<R>(CtxColumn::QP_RQ, index);
  const auto& old_receive = reads.add<hwif::CtxRq>(CtxColumn::RQ, index, 2);
  reads.start();
  K ack{};
  ack.set<K::qpn>(c.qp.number);
  hwif::CtxQpPath path{};
  X rx{};
  rx.set<X::qpn>(c.qp.number);
  rx.set<X::qp_type>(c.qp.type);
  rx.set<X::fn>(c.qp.fn);
  rx.set<X::valid>(true);
  set_pkey(path, rx, state.pkeys[c.a.get<A::pkey_index>()]);
  const bool datagrams = (c.mask & QKEY) != 0;
  if (datagrams) set_qkey(path, rx, c.qp, c.a.get<A::qkey>());
  reads.wait();
  R rq = old_rq;
  set_rights(rq, datagrams ? 0 : rights_of(c.a));
  const bool has_srq = rq.get<R::has_srq>();

  Image image;
  image.row(CtxColumn::QP_SQ, index, B{}, 1, 1);
  image.row(CtxColumn::QP_TX_DYN, index, D{}, 0, 1);
  image.row(CtxColumn::QP_ACK, index, ack, 1, 1);
  image.row(CtxColumn::QP_READ, index, read, 0, 1);
  image.row(CtxColumn::QP_RETRY, index, hwif::CtxQpRetry{});
  image.row(CtxColumn::QP_TIMER, index, hwif::CtxQpTimer{});
  image.row(CtxColumn::QP_RQ, index, rq, 1, 1);
  image.row(CtxColumn::QP_RQ_DYN, index, hwif::CtxQpRqDyn{});
  image.row(CtxColumn::QP_RESP, index, hwif::CtxQpResp{}, 1, 1);
  image.row(CtxColumn::QP_PATH, index, path);
  if (datagrams) image.row(CtxColumn::QP_RX, index, rx, 1, 3);
  image.row(CtxColumn::QP_RX, index, rx, 0, 1);
  if (!has_srq) {
    hwif::CtxRq receive = old_receive;
    receive.set<hwif::CtxRq::valid>(true);
    image.row(CtxColumn::RQ, index, receive, 1, 1);
  }
  image.send();
  c.rings_receive = !has_srq;
}

// P_Key, Q_Key and what is in word 1 of QP_RQ. QP_RX as a whole: frames may come.
void write_keys_and_rights(Change& c) {
  using R = hwif::CtxQpRq;
  Reads reads;
  const R& old_rq = reads.add<R>(CtxColumn::QP_RQ, c.index);
  const auto& old_path = reads.add<hwif::CtxQpPath>(CtxColumn::QP_PATH, c.index, 4);
  const auto& old_rx = reads.add<hwif::CtxQpRx>(CtxColumn::QP_RX, c.index, 2);
  reads.start();
  reads.wait();
  R rq = old_rq;
  hwif::CtxQpPath path = old_path;
  hwif::CtxQpRx rx = old_rx;
  if ((c.mask & RIGHTS) != 0) set_rights(rq, rights_of(c.a));
  if ((c.mask & PKEY) != 0) set_pkey(path, rx, state.pkeys[c.a.get<A::pkey_index>()]);
  if ((c.mask & QKEY) != 0) set_qkey(path, rx, c.qp, c.a.get<A::qkey>());
  Image image;
  image.row(CtxColumn::QP_RQ, c.index, rq, 1, 1);
  image.row(CtxColumn::QP_PATH, c.index, path, 1, 3);
  image.row(CtxColumn::QP_RX, c.index, rx, 1, 1);
  image.row(CtxColumn::QP_RX, c.index, rx, 0, 1);
  image.send();
}

// INIT → RTR of UD and GSI: how much they send at once. What they receive is as in RTS.
void write_datagram_rtr(Change& c) {
  using T = hwif::CtxQpTx;
  using C = hwif::CtxCsr;
  T tx;
  ctx_read_row(tx, CtxColumn::QP_TX, c.index, 0, 1);
  C csr;
  ctx_read_row(csr, CtxColumn::CSR, 0, 2, 1);
  tx.set<T::mtu>(csr.get<C::active_mtu>());
  ctx_write(CtxColumn::QP_TX, c.index, 0, row_word(tx, 0));
  if ((c.mask & (PKEY | QKEY)) != 0) write_keys_and_rights(c);
}

// INIT → RTR of RC and UC. False: no replay entries.
bool write_rtr(Change& c) {
  using T = hwif::CtxQpTx;
  using D = hwif::CtxQpRead;
  using R = hwif::CtxQpRq;
  using Y = hwif::CtxQpRqDyn;
  using S = hwif::CtxQpResp;
  using P = hwif::CtxQpPath;
  const unsigned index = c.index;
  Reads reads;
  const T& old_tx = reads.add<T>(CtxColumn::QP_TX, index, 1);
  const D& old_read = reads.add<D>(CtxColumn::QP_READ, index, 1);
  const R& old_rq = reads.add<R>(CtxColumn::QP_RQ, index);
  const S& old_resp = reads.add<S>(CtxColumn::QP_RESP, index, 1);
  const P& old_path = reads.add<P>(CtxColumn::QP_PATH, index, 4);
  const auto& old_rx = reads.add<hwif::CtxQpRx>(CtxColumn::QP_RX, index, 1);
  reads.start();
  const uint32_t depth = meant<A::responder_depth>(c, RESPONDER);
  const unsigned log2 = depth_log2(depth);
  const Region replay = state.replays.grant(index, log2, log2);
  if (replay.log2 < log2) {
    c.call.fail(AdminStatus::NO_RESOURCES, AdminField::RESPONDER_DEPTH);
    return false;
  }
  c.qp.responder_depth = static_cast<uint8_t>(depth);
  const hwif::Mtu mtu = c.a.get<A::path_mtu>();
  const uint32_t psn = c.a.get<A::rq_psn>();
  Y dynamic{};
  dynamic.set<Y::next_psn>(psn);
  dynamic.set<Y::acked_psn>((psn - 1) & 0xffffff);
  reads.wait();
  Image image;
  T tx = old_tx;
  tx.set<T::mtu>(mtu);
  image.row(CtxColumn::QP_TX, index, tx, 0, 1);
  D read = old_read;
  read.set<D::path_mtu>(mtu);
  image.row(CtxColumn::QP_READ, index, read, 0, 1);
  R rq = old_rq;
  S resp = old_resp;
  set_replay(rq, resp, replay);
  rq.set<R::mtu>(mtu);
  rq.set<R::min_rnr_timer>(static_cast<uint8_t>(meant<A::min_rnr_timer>(c, MIN_RNR)));
  if ((c.mask & RIGHTS) != 0) set_rights(rq, rights_of(c.a));
  image.row(CtxColumn::QP_RQ, index, rq);
  image.row(CtxColumn::QP_RQ_DYN, index, dynamic);
  resp.set<S::mtu>(mtu);
  set_row_word(resp, 1, 0);
  resp.set<S::good_psn>((psn - 1) & 0xffffff);
  image.row(CtxColumn::QP_RESP, index, resp);
  P path = old_path;
  hwif::CtxQpRx rx = old_rx;
  set_path(path, rx, part<A::path>(c.a));
  path.set<P::dest_qpn>(c.a.get<A::dest_qpn>());
  if ((c.mask & PKEY) != 0) set_pkey(path, rx, state.pkeys[c.a.get<A::pkey_index>()]);
  image.row(CtxColumn::QP_PATH, index, path);
  write_rx(image, index, rx);
  image.send();
  return true;
}

// RTR → RTS. False: no READ records.
bool write_rts(Change& c) {
  using T = hwif::CtxQpTx;
  using B = hwif::CtxQpSq;
  using D = hwif::CtxQpTxDyn;
  using K = hwif::CtxQpAck;
  using L = hwif::CtxQpRead;
  using R = hwif::CtxQpRq;
  using I = hwif::CtxQpTimer;
  const unsigned index = c.index;
  Reads reads;
  const B& old_sq = reads.add<B>(CtxColumn::QP_SQ, index, 1);
  const T& old_tx = reads.add<T>(CtxColumn::QP_TX, index);
  const K& old_ack = reads.add<K>(CtxColumn::QP_ACK, index, 1);
  const L& old_read = reads.add<L>(CtxColumn::QP_READ, index, 1);
  const R& old_rq = reads.add<R>(CtxColumn::QP_RQ, index);
  reads.start();
  const uint32_t depth = meant<A::initiator_depth>(c, INITIATOR);
  const unsigned log2 = depth_log2(depth);
  const Region region = state.reads.grant(index, log2, log2);
  if (region.log2 < log2) {
    c.call.fail(AdminStatus::NO_RESOURCES, AdminField::INITIATOR_DEPTH);
    return false;
  }
  const uint32_t psn = c.a.get<A::sq_psn>();
  D dynamic{};
  dynamic.set<D::next_psn>(psn);
  B sq{};
  sq.set<B::first_psn>(psn);
  I timer{};
  timer.set<I::timeout>(static_cast<uint8_t>(meant<A::timeout>(c, TIMEOUT)));
  timer.set<I::psn>(psn);
  reads.wait();
  // As many in-flight records as the ring has blocks, or less: this only costs speed.
  const Region inflight =
      state.inflight.grant(index, 0, old_sq.get<B::log2_blocks>());
  Image image;
  T tx = old_tx;
  K ack = old_ack;
  L read = old_read;
  set_read(tx, read, region);
  set_inflight(tx, ack, inflight);
  tx.set<T::max_rd_atomic>(static_cast<uint8_t>(depth));
  image.row(CtxColumn::QP_TX, index, tx);
  set_row_word(ack, 1, 0);
  ack.set<K::qpn>(c.qp.number);
  ack.set<K::psn>(psn);
  image.row(CtxColumn::QP_ACK, index, ack, 0, 2);
  image.row(CtxColumn::QP_READ, index, read, 0, 1);
  image.row(CtxColumn::QP_RETRY, index,
            retry_row(meant<A::retry_count>(c, RETRY), meant<A::rnr_retry>(c, RNR)));
  image.row(CtxColumn::QP_TIMER, index, timer);
  R rq = old_rq;
  if ((c.mask & RIGHTS) != 0) set_rights(rq, rights_of(c.a));
  if ((c.mask & MIN_RNR) != 0) rq.set<R::min_rnr_timer>(c.a.get<A::min_rnr_timer>());
  image.row(CtxColumn::QP_RQ, index, rq, 1, 1);
  image.row(CtxColumn::QP_SQ, index, sq, 1, 1);
  image.row(CtxColumn::QP_TX_DYN, index, dynamic, 0, 1);
  image.send();
  return true;
}

// What may change of a connected queue pair while it works is in one word.
void write_word(Change& c) {
  using R = hwif::CtxQpRq;
  if ((c.mask & (RIGHTS | MIN_RNR)) == 0) return;
  R rq;
  ctx_read_row(rq, CtxColumn::QP_RQ, c.index, 1, 1);
  if ((c.mask & RIGHTS) != 0) set_rights(rq, rights_of(c.a));
  if ((c.mask & MIN_RNR) != 0) rq.set<R::min_rnr_timer>(c.a.get<A::min_rnr_timer>());
  ctx_write(CtxColumn::QP_RQ, c.index, 1, row_word(rq, 1));
}

// To RTS or SQD from RTS, SQD or SQE.
void write_live(Change& c) {
  if ((c.mask & QKEY) != 0) {
    write_keys_and_rights(c);
  } else {
    write_word(c);
  }
}

// SQD → SQD, when nothing is outstanding. False: refused.
bool write_drained(Change& c) {
  using T = hwif::CtxQpTx;
  using D = hwif::CtxQpTxDyn;
  using I = hwif::CtxQpTimer;
  using Y = hwif::CtxQpRetry;
  Reads reads;
  const D& dynamic = reads.add<D>(CtxColumn::QP_TX_DYN, c.index, 1);
  const auto& ack = reads.add<hwif::CtxQpAck>(CtxColumn::QP_ACK, c.index);
  const T& old_tx = reads.add<T>(CtxColumn::QP_TX, c.index);
  const auto& rq = reads.add<hwif::CtxQpRq>(CtxColumn::QP_RQ, c.index);
  const auto& old_path = reads.add<hwif::CtxQpPath>(CtxColumn::QP_PATH, c.index);
  const auto& old_rx = reads.add<hwif::CtxQpRx>(CtxColumn::QP_RX, c.index);
  const Y& old_retry = reads.add<Y>(CtxColumn::QP_RETRY, c.index);
  reads.start();
  reads.wait();
  if (!is_drained(dynamic, ack)) {
    c.call.fail(AdminStatus::BUSY, AdminField::STATE);
    return false;
  }
  const QpRegions regions = regions_of(old_tx, rq);
  // Regions stay: their records carry on from where they are.
  if ((c.mask & INITIATOR) != 0 && c.a.get<A::initiator_depth>() > 1u << regions.read.log2) {
    return refuse(c.call, AdminField::INITIATOR_DEPTH, 1u << regions.read.log2);
  }
  if ((c.mask & RESPONDER) != 0 && c.a.get<A::responder_depth>() > 1u << regions.replay.log2) {
    return refuse(c.call, AdminField::RESPONDER_DEPTH, 1u << regions.replay.log2);
  }
  Image image;
  if ((c.mask & (PATH | PKEY | QKEY)) != 0) {
    hwif::CtxQpPath path = old_path;
    hwif::CtxQpRx rx = old_rx;
    if ((c.mask & PATH) != 0) set_path(path, rx, part<A::path>(c.a));
    if ((c.mask & PKEY) != 0) set_pkey(path, rx, state.pkeys[c.a.get<A::pkey_index>()]);
    if ((c.mask & QKEY) != 0) set_qkey(path, rx, c.qp, c.a.get<A::qkey>());
    image.row(CtxColumn::QP_PATH, c.index, path);
    write_rx(image, c.index, rx);
  }
  if ((c.mask & (RETRY | RNR)) != 0) {
    Y retry = old_retry;
    if ((c.mask & RETRY) != 0) retry.set<Y::retry_cnt>(c.a.get<A::retry_count>());
    if ((c.mask & RNR) != 0) retry.set<Y::rnr_retry>(c.a.get<A::rnr_retry>());
    image.row(CtxColumn::QP_RETRY, c.index, retry);
  }
  if ((c.mask & TIMEOUT) != 0) {
    I timer{};
    timer.set<I::timeout>(c.a.get<A::timeout>());
    timer.set<I::psn>(dynamic.get<D::max_psn>());
    image.row(CtxColumn::QP_TIMER, c.index, timer);
  }
  if ((c.mask & INITIATOR) != 0) {
    T tx = old_tx;
    tx.set<T::max_rd_atomic>(c.a.get<A::initiator_depth>());
    image.row(CtxColumn::QP_TX, c.index, tx, 0, 1);
  }
  image.send_if_any();
  write_word(c);
  if ((c.mask & RESPONDER) != 0) c.qp.responder_depth = c.a.get<A::responder_depth>();
  return true;
}

// Compare and set. False: the hardware was faster (the queue pair is in ERR).
bool set_state(unsigned index, uint32_t from_states, QpState to) {
  using Q = hwif::CtxQpState;
  Q word{};
  word.set<Q::target>(to);
  word.set<Q::from_states>(static_cast<uint8_t>(from_states));
  ctx_write(CtxColumn::QP_STATE, index, 0, row_word(word, 0));
  return (from_states >> (bus::ctx_answer() & 7) & 1) != 0;
}

}  // namespace

[[gnu::cold]] QpRegions finish_modify_qp(unsigned index, Reply& reply) {
  if (qp_state(index) == QpState::RESET) return finish_qp_reset(index);
  // What was sent before SQE is gone (ctx_qp_state). It may have failed altogether meanwhile.
  state.qps[index].life = Life::LIVE;
  if (!set_state(index, 1u << static_cast<unsigned>(QpState::SQE), QpState::RTS)) {
    reply.fail(AdminStatus::INVALID, AdminField::STATE, 0);
  }
  return {};
}

void release_pkey(Qp& qp) {
  if (qp.page_pkey >> 4 != 0) --state.pkey_users[(qp.page_pkey >> 4) - 1];
  qp.page_pkey &= 15u;
}

Outcome modify_qp(Call& call) {
  Qp* qp = find_qp(call.object(), call.fn);
  if (qp == nullptr) return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  if (qp->life == Life::BUSY) return call.fail(AdminStatus::BUSY, AdminField::OBJECT);
  const unsigned index = index_of(*qp);
  const auto& input = call.input<hwif::admin::ModifyQp>();
  const uint32_t mask = static_cast<uint32_t>(
      input.get<hwif::ModifyQpInput::mask>().to_word());
  const A& a = part<hwif::ModifyQpInput::attributes>(input);
  const QpState from = qp_state(index);
  if ((mask & CUR) != 0 && a.get<A::cur_state>() != from) {
    return call.invalid(AdminField::CUR_STATE, static_cast<uint32_t>(from));
  }
  const QpState to = (mask & STATE) != 0 ? a.get<A::state>() : from;

  if (to == QpState::RESET || to == QpState::ERR) {
    if (to == QpState::ERR && from == QpState::RESET) return call.invalid(AdminField::STATE);
    if ((mask & ~STATE) != 0) return call.invalid(field_of(mask & ~STATE));
    if (to == QpState::ERR) {
      return set_state(index, 0xfe, to) ? call.done() : call.invalid(AdminField::STATE);
    }
    if (from == QpState::RESET) return call.done();
    if (!can_wait(call)) return Outcome::LATER;
    revoke_qp(index);
    qp->life = Life::BUSY;
    return wait_for_fence(call);
  }

  const Attributes attributes = transition::attributes(from, to, qp->type);
  if ((attributes.optional & STATE) == 0) return call.invalid(AdminField::STATE);
  const uint32_t missing = attributes.required & ~mask;
  if (missing != 0) return call.invalid(field_of(missing));
  const uint32_t extra = mask & ~(attributes.required | attributes.optional);
  if (extra != 0) return call.invalid(field_of(extra));
  if (!check_values(call, qp->type, mask, a)) return Outcome::DONE;
  if (from == QpState::SQE && !can_wait(call)) return Outcome::LATER;

  Change change{call, *qp, index, mask, a};
  bool written = true;
  if (from == QpState::RESET) {
    write_init(change);
  } else if (to == QpState::INIT) {
    write_keys_and_rights(change);
  } else if (to == QpState::RTR) {
    if (is_connected(qp->type)) {
      written = write_rtr(change);
    } else {
      write_datagram_rtr(change);
    }
  } else if (from == QpState::RTR) {
    written = write_rts(change);
    if (written && (mask & QKEY) != 0) write_keys_and_rights(change);
  } else if (from == QpState::SQD && to == QpState::SQD) {
    written = write_drained(change);
  } else {
    write_live(change);
  }
  if (!written) return Outcome::DONE;
  if ((mask & RIGHTS) != 0) qp->rights = rights_of(a);
  if ((mask & PKEY) != 0) take_pkey(*qp, a.get<A::pkey_index>());
  if (to == QpState::SQD && from == QpState::RTS) {
    qp->notify_drained = (mask & NOTIFY) != 0 && a.get<A::sqd_async_notify>();
  }
  if (from == QpState::SQE) {
    qp->life = Life::BUSY;
    return wait_for_fence(call);
  }
  if (!set_state(index, 1u << static_cast<unsigned>(from), to)) {
    return call.invalid(AdminField::STATE);
  }
  if (from == QpState::RESET) {
    // Behind the state: what rings in RESET is not looked at again (queue_rq_fetch).
    const auto bell =
        doorbell_row(qp->number, qp->page_pkey & 15u, qp->fn, true, change.rings_receive);
    ctx_write(CtxColumn::QP_DB, index, 0, row_word(bell, 0));
  }
  return call.done();
}

}  // namespace roci::fw
