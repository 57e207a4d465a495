// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ibv_modify_qp, ibv_query_qp, groups. Which attributes a transition needs and allows: IBTA 11.2.5.2, as
// Linux has it in qp_state_table. Values are checked here, so that the answer names the field.
#include "address.hpp"
#include "admin_queue.hpp"

#include <roci/error.hpp>
#include <roci/mr.hpp>
#include <roci/qp.hpp>

#include <cerrno>
#include <span>
#include <string>

namespace roci {
namespace {

using hwif::QpAttributes;

constexpr int PATH_ATTRIBUTES = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;

struct Transition {
  ibv_qp_state from;
  ibv_qp_state to;
  int required;
  int optional;
};

// Of each type; beside these: any state → RESET, any but RESET → ERR.
constexpr Transition RC_TRANSITIONS[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
         IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | PATH_ATTRIBUTES},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | PATH_ATTRIBUTES},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | PATH_ATTRIBUTES},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0,
     IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PKEY_INDEX |
         IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | PATH_ATTRIBUTES},
};

constexpr int UC_LIVE = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS;

constexpr Transition UC_TRANSITIONS[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, UC_LIVE | PATH_ATTRIBUTES},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, UC_LIVE | PATH_ATTRIBUTES},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, UC_LIVE | PATH_ATTRIBUTES},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0,
     IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | PATH_ATTRIBUTES},
    {IBV_QPS_SQE, IBV_QPS_RTS, 0, UC_LIVE},
};

constexpr int UD_KEYS = IBV_QP_PKEY_INDEX | IBV_QP_QKEY;
constexpr int UD_LIVE = IBV_QP_CUR_STATE | IBV_QP_QKEY;

constexpr Transition UD_TRANSITIONS[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, UD_KEYS | IBV_QP_PORT, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, UD_KEYS | IBV_QP_PORT},
    {IBV_QPS_INIT, IBV_QPS_RTR, 0, UD_KEYS},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, UD_LIVE},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, UD_LIVE},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, UD_LIVE},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0, UD_KEYS},
    {IBV_QPS_SQE, IBV_QPS_RTS, 0, UD_LIVE},
};

// Those of a type; see check_transition() for GSI.
std::span<const Transition> transitions(ibv_qp_type type) {
  if (type == IBV_QPT_UC) return UC_TRANSITIONS;
  if (type == IBV_QPT_UD || type == QPT_GSI) return UD_TRANSITIONS;
  return RC_TRANSITIONS;
}

// Bit 31 of a Q_Key: only privileged owners set such a one (IBTA 10.2.5).
constexpr uint32_t QKEY_PRIVILEGED = 1u << 31;

std::string names(int mask) {
  static constexpr struct {
    int bit;
    const char* name;
  } NAMES[] = {
      {IBV_QP_STATE, "STATE"},
      {IBV_QP_CUR_STATE, "CUR_STATE"},
      {IBV_QP_EN_SQD_ASYNC_NOTIFY, "EN_SQD_ASYNC_NOTIFY"},
      {IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS"},
      {IBV_QP_PKEY_INDEX, "PKEY_INDEX"},
      {IBV_QP_PORT, "PORT"},
      {IBV_QP_QKEY, "QKEY"},
      {IBV_QP_AV, "AV"},
      {IBV_QP_PATH_MTU, "PATH_MTU"},
      {IBV_QP_TIMEOUT, "TIMEOUT"},
      {IBV_QP_RETRY_CNT, "RETRY_CNT"},
      {IBV_QP_RNR_RETRY, "RNR_RETRY"},
      {IBV_QP_RQ_PSN, "RQ_PSN"},
      {IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC"},
      {IBV_QP_ALT_PATH, "ALT_PATH"},
      {IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER"},
      {IBV_QP_SQ_PSN, "SQ_PSN"},
      {IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC"},
      {IBV_QP_PATH_MIG_STATE, "PATH_MIG_STATE"},
      {IBV_QP_CAP, "CAP"},
      {IBV_QP_DEST_QPN, "DEST_QPN"},
      {IBV_QP_RATE_LIMIT, "RATE_LIMIT"},
  };
  std::string text;
  for (const auto& entry : NAMES) {
    if (!(mask & entry.bit)) continue;
    text += text.empty() ? "IBV_QP_" : " IBV_QP_";
    text += entry.name;
    mask &= ~entry.bit;
  }
  // Bits that verbs do not have.
  if (mask != 0) text += format("%s0x%x", text.empty() ? "" : " ", static_cast<unsigned>(mask));
  return text;
}

// Whether the transition exists and has what it needs; the errors of ib_modify_qp_is_ok().
void check_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  int required = 0;
  int optional = 0;
  bool exists = to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET);
  for (const Transition& t : transitions(type)) {
    if (t.from != from || t.to != to) continue;
    exists = true;
    // QP1 is on the one port that there is.
    const int none = type == QPT_GSI ? int{IBV_QP_PORT} : 0;
    required = t.required & ~none;
    optional = t.optional & ~none;
  }
  if (!exists) fail(EINVAL, "qp_state: no transition from %s to %s", state_name(from), state_name(to));
  if ((mask & required) != required) {
    fail(EINVAL, "%s to %s: attr_mask lacks %s", state_name(from), state_name(to),
         names(required & ~mask).c_str());
  }
  const int extra = mask & ~(required | optional | IBV_QP_STATE);
  if (extra != 0) {
    fail(EINVAL, "%s to %s: attr_mask may not have %s", state_name(from), state_name(to),
         names(extra).c_str());
  }
}

// IBTA 13.5.3.1
constexpr uint32_t MAD_BYTES = 256;
constexpr uint32_t PSN_MASK = (1u << 24) - 1;

}  // namespace

const char* state_name(ibv_qp_state state) noexcept {
  static constexpr const char* NAMES[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return static_cast<size_t>(state) < std::size(NAMES) ? NAMES[state] : "?";
}

void Qp::modify(const ibv_qp_attr& attr, int mask) {
  Device& device = pd_.device();
  device.check_alive();
  const DeviceLimits& limits = device.limits();
  if (mask & (IBV_QP_CAP | IBV_QP_RATE_LIMIT)) {
    fail(EOPNOTSUPP, "attr_mask: %s is not supported",
         names(mask & (IBV_QP_CAP | IBV_QP_RATE_LIMIT)).c_str());
  }
  const ibv_qp_state from = mask & IBV_QP_CUR_STATE ? attr.cur_qp_state : state_;
  const ibv_qp_state to = mask & IBV_QP_STATE ? attr.qp_state : from;
  if (mask & IBV_QP_CUR_STATE && from != IBV_QPS_RTR && from != IBV_QPS_RTS &&
      from != IBV_QPS_SQD && from != IBV_QPS_SQE) {
    fail(EINVAL, "cur_qp_state %s: RTR, RTS, SQD or SQE", state_name(from));
  }
  check_transition(config_.type, from, to, mask);
  if (mask & IBV_QP_ALT_PATH) fail(EOPNOTSUPP, "attr_mask: IBV_QP_ALT_PATH: no path migration");
  if (mask & IBV_QP_PATH_MIG_STATE && attr.path_mig_state != IBV_MIG_MIGRATED) {
    fail(EOPNOTSUPP, "path_mig_state %d: no path migration", static_cast<int>(attr.path_mig_state));
  }

  using A = QpAttributes;
  A a{};
  a.set<A::state>(static_cast<hwif::QpState>(to));
  a.set<A::cur_state>(static_cast<hwif::QpState>(from));
  if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) a.set<A::sqd_async_notify>(attr.en_sqd_async_notify != 0);
  if (mask & IBV_QP_ACCESS_FLAGS) {
    // Programs set LOCAL_WRITE, too, which says nothing here.
    a.set<A::rights>(access_rights(attr.qp_access_flags & (IBV_ACCESS_REMOTE_WRITE |
                                                           IBV_ACCESS_REMOTE_READ |
                                                           IBV_ACCESS_REMOTE_ATOMIC),
                                   limits.atomics));
  }
  if (mask & IBV_QP_PORT) {
    check_range("port_num", attr.port_num, 1, 1);
    a.set<A::port>(attr.port_num);
  }
  if (mask & IBV_QP_PKEY_INDEX) {
    const auto pkeys = device.pkey_table();
    if (attr.pkey_index >= pkeys.size() || pkeys[attr.pkey_index] == 0) {
      fail(EINVAL, "pkey_index %u: that entry of the P_Key table is empty", attr.pkey_index);
    }
    a.set<A::pkey_index>(attr.pkey_index);
  }
  if (mask & IBV_QP_PATH_MTU) {
    const auto port = device.query_port();
    check_range("path_mtu", static_cast<unsigned>(attr.path_mtu), IBV_MTU_256,
                static_cast<unsigned>(port.active_mtu));
    a.set<A::path_mtu>(static_cast<hwif::Mtu>(attr.path_mtu));
  }
  if (mask & IBV_QP_QKEY) {
    if (attr.qkey & QKEY_PRIVILEGED && !limits.privileged && config_.type != QPT_GSI) {
      fail(EPERM, "qkey 0x%x: one with bit 31 is for privileged functions", attr.qkey);
    }
    a.set<A::qkey>(attr.qkey);
  }
  if (mask & IBV_QP_AV) {
    const auto path = path_from(device, attr.ah_attr);
    const Gid dgid = path.get<hwif::AddressVector::dgid>();
    if (is_multicast(dgid)) {
      fail(EINVAL, "ah_attr.grh.dgid %s: a group is for UD, a connection has one peer",
           gid_text(dgid).c_str());
    }
    a.set<A::path>(path);
  }
  if (mask & IBV_QP_TIMEOUT) {
    check_range("timeout", attr.timeout, 0, 31);
    a.set<A::timeout>(attr.timeout);
  }
  if (mask & IBV_QP_RETRY_CNT) {
    check_range("retry_cnt", attr.retry_cnt, 0, 7);
    a.set<A::retry_count>(attr.retry_cnt);
  }
  if (mask & IBV_QP_RNR_RETRY) {
    check_range("rnr_retry", attr.rnr_retry, 0, 7);
    a.set<A::rnr_retry>(attr.rnr_retry);
  }
  if (mask & IBV_QP_MIN_RNR_TIMER) {
    check_range("min_rnr_timer", attr.min_rnr_timer, 0, 31);
    a.set<A::min_rnr_timer>(attr.min_rnr_timer);
  }
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) {
    check_range("max_rd_atomic", attr.max_rd_atomic, 0, limits.max_initiator_depth);
    a.set<A::initiator_depth>(attr.max_rd_atomic);
  }
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) {
    check_range("max_dest_rd_atomic", attr.max_dest_rd_atomic, 0, limits.max_responder_depth);
    a.set<A::responder_depth>(attr.max_dest_rd_atomic);
  }
  if (mask & IBV_QP_DEST_QPN) {
    if (attr.dest_qp_num > PSN_MASK) {
      fail(EINVAL, "dest_qp_num 0x%x has more than 24 bits", attr.dest_qp_num);
    }
    a.set<A::dest_qpn>(attr.dest_qp_num);
  }
  // Programs hand over random 32-bit numbers; the PSN is their low part.
  if (mask & IBV_QP_SQ_PSN) a.set<A::sq_psn>(attr.sq_psn & PSN_MASK);
  if (mask & IBV_QP_RQ_PSN) a.set<A::rq_psn>(attr.rq_psn & PSN_MASK);

  // The bits have the numbers of verbs; those that the interface does not have were dealt with.
  const int not_for_device = IBV_QP_PATH_MIG_STATE;
  hwif::ModifyQpInput input{};
  input.set<hwif::ModifyQpInput::mask>(hwif::QpAttributeMask::from_word(
      static_cast<uint32_t>((mask | IBV_QP_STATE) & ~not_for_device)));
  input.set<hwif::ModifyQpInput::attributes>(a);
  // Before the command: the event may come before its answer.
  if (from != IBV_QPS_SQD && to == IBV_QPS_SQD) tells_drained_ = a.get<A::sqd_async_notify>();
  if (datagrams_ && to == IBV_QPS_RTR) {
    // The device keeps the MTU of this moment, too. Code 1 is 256 bytes. A message of QP1 is a MAD.
    sq_.max_datagram = config_.type == QPT_GSI
                           ? MAD_BYTES
                           : 128u << static_cast<unsigned>(device.query_port().active_mtu);
  }
  device.admin().run<hwif::admin::ModifyQp>(number_, {}, input);

  state_ = to;
  if (from == IBV_QPS_SQE) failure_told_ = false;  // the next failure is another one
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) sq_.reads = attr.max_rd_atomic != 0;
  if (to == IBV_QPS_RESET) {
    // Its last completion is in memory: take them out, then the queues start afresh.
    config_.send_cq->remove_completions(*this);
    if (config_.recv_cq != config_.send_cq) config_.recv_cq->remove_completions(*this);
    reset_queues();
  }
  open_queues();
}

void Qp::query(ibv_qp_attr& attr, ibv_qp_init_attr& init) {
  Device& device = pd_.device();
  device.check_alive();
  const auto output = device.admin().run<hwif::admin::QueryQp>(number_).output;
  using A = QpAttributes;
  const A a = output.get<hwif::QueryQpOutput::attributes>();
  attr = {};
  attr.qp_state = static_cast<ibv_qp_state>(a.get<A::state>());
  attr.cur_qp_state = attr.qp_state;
  attr.path_mtu = static_cast<ibv_mtu>(a.get<A::path_mtu>());
  attr.path_mig_state = IBV_MIG_MIGRATED;
  attr.qkey = a.get<A::qkey>();
  attr.rq_psn = a.get<A::rq_psn>();
  attr.sq_psn = a.get<A::sq_psn>();
  attr.dest_qp_num = a.get<A::dest_qpn>();
  const auto rights = a.get<A::rights>();
  attr.qp_access_flags = rights.words[0];  // bit positions are those of verbs
  attr.cap = cap_;
  if (!datagrams_) attr.ah_attr = ah_from(a.get<A::path>());
  attr.pkey_index = a.get<A::pkey_index>();
  attr.sq_draining = a.get<A::draining>() ? 1 : 0;
  attr.en_sqd_async_notify = a.get<A::sqd_async_notify>() ? 1 : 0;
  attr.max_rd_atomic = a.get<A::initiator_depth>();
  attr.max_dest_rd_atomic = a.get<A::responder_depth>();
  attr.min_rnr_timer = a.get<A::min_rnr_timer>();
  attr.port_num = a.get<A::port>();
  attr.timeout = a.get<A::timeout>();
  attr.retry_cnt = a.get<A::retry_count>();
  attr.rnr_retry = a.get<A::rnr_retry>();
  state_ = attr.qp_state;

  init = {};
  init.cap = cap_;
  init.qp_type = config_.type;
  init.sq_sig_all = config_.signal_all ? 1 : 0;
}

hwif::MulticastParams Qp::multicast_params(const Gid& group) const {
  if (config_.type != IBV_QPT_UD) fail(EINVAL, "qp_type %d: groups are for UD",
                                       static_cast<int>(config_.type));
  if (!is_multicast(group)) {
    fail(EINVAL, "gid %s: no multicast GID (ff00::/8, or a mapped IPv4 group)",
         gid_text(group).c_str());
  }
  hwif::MulticastParams params{};
  params.set<hwif::MulticastParams::mgid>(group);
  return params;
}

void Qp::attach_multicast(const Gid& group) {
  Device& device = pd_.device();
  device.check_alive();
  device.admin().run<hwif::admin::AttachMulticast>(number_, multicast_params(group));
}

void Qp::detach_multicast(const Gid& group) {
  Device& device = pd_.device();
  device.check_alive();
  device.admin().run<hwif::admin::DetachMulticast>(number_, multicast_params(group));
}

}  // namespace roci
