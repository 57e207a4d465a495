// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// FakeNic: the firmware.
#include "fake_nic.hpp"

#include <roci/error.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

namespace roci::test {
namespace {

namespace csr = hwif::csr;
using hwif::AdminCommand;
using hwif::AdminField;
using hwif::AdminOpcode;
using hwif::AdminStatus;
using hwif::QpState;

template <class T>
std::vector<uint8_t> bytes_of(const T& object) {
  return {object.data(), object.data() + T::BYTES};
}

template <class T>
T params_of(const AdminCommand& command) {
  T out;
  const auto raw = command.get<AdminCommand::params>();
  out.load(raw.data());
  return out;
}

// What a field check says if there is nothing to refuse.
constexpr AdminField FINE = AdminField::NONE;

bool page_aligned(uint64_t address) { return address % 4096 == 0; }
bool in_range(unsigned value, unsigned low, unsigned high) { return value >= low && value <= high; }

}  // namespace

bool FakeNic::fetch_commands() {
  bool any = false;
  for (unsigned i = 1; i < functions_.size(); ++i) {
    Function& f = functions_[i];
    const auto ring_log2 =
        csr::AdminRingConfig::from_word(f.ring_config).get<csr::AdminRingConfig::ring_log2>();
    while (f.state == hwif::AdminState::ENABLED && f.fetched != f.announced) {
      AdminCommand command;
      const uint64_t address =
          f.command_ring + (f.fetched & ((1u << ring_log2) - 1)) * uint64_t{AdminCommand::BYTES};
      if (!memory(i, address, {command.data(), AdminCommand::BYTES}, false)) {
        f.state = hwif::AdminState::ERROR;
        f.error = hwif::AdminError::READ_BUS;
        violation("admin ring is not mapped");
        break;
      }
      ++f.fetched;
      pending_.push_back({i, command, fabric_.now() + config_.admin_cycles, false});
      any = true;
    }
  }
  return any;
}

size_t FakeNic::waiting(AdminOpcode opcode) const {
  const std::lock_guard lock(fabric_.mutex());
  return static_cast<size_t>(std::count_if(pending_.begin(), pending_.end(), [&](const Pending& p) {
    return p.command.get<AdminCommand::opcode>() == opcode;
  }));
}

bool FakeNic::run_commands() {
  bool any = false;
  for (size_t i = 0; i < pending_.size();) {
    const AdminOpcode opcode = pending_[i].command.get<AdminCommand::opcode>();
    const bool held = std::find(held_.begin(), held_.end(), opcode) != held_.end();
    if (held || pending_[i].due > fabric_.now()) {
      ++i;
      continue;
    }
    const Pending pending = pending_[i];
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    any = true;
    ++commands_[opcode];
    const auto failure = failures_.find(opcode);
    if (failure != failures_.end()) {
      const Answer answer = failure->second;
      failures_.erase(failure);
      complete_command(pending, answer);
    } else {
      complete_command(pending, execute(pending.function, pending.command));
    }
  }
  return any;
}

void FakeNic::complete_command(const Pending& pending, const Answer& answer) {
  Function& f = functions_[pending.function];
  const auto config = csr::AdminRingConfig::from_word(f.ring_config);
  const auto ring_log2 = config.get<csr::AdminRingConfig::ring_log2>();
  const AdminCommand& command = pending.command;
  Answer a = answer;
  if (a.status == AdminStatus::OK) {
    if (a.output.size() != command.get<AdminCommand::output_length>()) {
      violation(format("output_length of opcode 0x%x",
                       static_cast<unsigned>(command.get<AdminCommand::opcode>())));
      a = Answer::refused(AdminStatus::BAD_LENGTH);
    } else if (!memory(pending.function, command.get<AdminCommand::output_address>(), a.output,
                       true)) {
      violation("admin output buffer is not mapped");
      a = Answer::refused(AdminStatus::BAD_ADDRESS);
    }
  }
  if (static_cast<uint16_t>(f.completed - f.consumed) >= 1u << ring_log2) {
    violation("admin completions are not consumed");
  }
  hwif::AdminCompletion c{};
  using C = hwif::AdminCompletion;
  c.set<C::command_id>(command.get<AdminCommand::command_id>());
  c.set<C::opcode>(command.get<AdminCommand::opcode>());
  c.set<C::status>(a.status);
  c.set<C::object>(a.object.value_or(command.get<AdminCommand::object>()));
  c.set<C::field>(a.field);
  c.set<C::detail>(a.detail);
  c.set<C::result>(a.result);
  c.set<C::phase>((hwif::PHASE_FIRST_LAP ^ ((f.completed >> ring_log2) & 1)) != 0);
  const uint64_t address =
      f.completion_ring + (f.completed & ((1u << ring_log2) - 1)) * uint64_t{C::BYTES};
  if (!memory(pending.function, address, {c.data(), C::BYTES}, true)) {
    f.state = hwif::AdminState::ERROR;
    f.error = hwif::AdminError::WRITE_BUS;
    violation("admin completion ring is not mapped");
    return;
  }
  ++f.completed;
  if (config.get<csr::AdminRingConfig::interrupt_enable>()) {
    raise_vector(f, config.get<csr::AdminRingConfig::irq_vector>());
  }
}

FakeNic::Answer FakeNic::execute(unsigned function, const AdminCommand& command) {
  const uint32_t object = command.get<AdminCommand::object>();
  std::vector<uint8_t> input(command.get<AdminCommand::input_length>());
  if (input.size() > 4096 ||
      !memory(function, command.get<AdminCommand::input_address>(), input, false)) {
    violation("admin input buffer is not mapped");
    return Answer::refused(AdminStatus::BAD_ADDRESS);
  }
  const size_t output_length = command.get<AdminCommand::output_length>();
  const auto destroy = [&](auto& table) -> Answer {
    auto* found = find(table, function, object);
    if (found == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
    found->exists = false;
    return {};
  };
  const auto table = [&](const auto& entries, auto to_layout) -> Answer {
    Answer answer;
    for (size_t i = object; answer.output.size() < output_length; ++i) {
      if (i >= entries.size()) return Answer::refused(AdminStatus::INVALID);
      const auto raw = bytes_of(to_layout(entries[i]));
      answer.output.insert(answer.output.end(), raw.begin(), raw.end());
    }
    return answer;
  };
  const auto with_input = [&]<class T>(T& to) {
    if (input.size() != T::BYTES) return false;
    to.load(input.data());
    return true;
  };

  switch (command.get<AdminCommand::opcode>()) {
    case AdminOpcode::NOP: return {};
    case AdminOpcode::QUERY_DEVICE: return query_device();
    case AdminOpcode::CREATE_PD: return create_pd(function);
    case AdminOpcode::DESTROY_PD: return destroy_pd(function, object);
    case AdminOpcode::CREATE_MR:
      return create_mr(function, object, params_of<hwif::CreateMrParams>(command));
    case AdminOpcode::REREG_MR: {
      hwif::ReregMrInput in;
      if (!with_input(in)) return Answer::refused(AdminStatus::BAD_LENGTH);
      return rereg_mr(function, object, in);
    }
    case AdminOpcode::DESTROY_MR: return destroy(mrs_);
    case AdminOpcode::CREATE_EQ:
      return create_eq(function, params_of<hwif::CreateEqParams>(command));
    case AdminOpcode::DESTROY_EQ: return destroy(eqs_);
    case AdminOpcode::CREATE_CQ:
      return create_cq(function, params_of<hwif::CreateCqParams>(command));
    case AdminOpcode::DESTROY_CQ: return destroy_cq(function, object);
    case AdminOpcode::RESIZE_CQ:
      return resize_cq(function, object, params_of<hwif::ResizeCqParams>(command));
    case AdminOpcode::CREATE_QP:
      return create_qp(function, object, params_of<hwif::CreateQpParams>(command));
    case AdminOpcode::MODIFY_QP: {
      hwif::ModifyQpInput in;
      if (!with_input(in)) return Answer::refused(AdminStatus::BAD_LENGTH);
      return modify_qp(function, object, in);
    }
    case AdminOpcode::QUERY_QP: return query_qp(function, object);
    case AdminOpcode::DESTROY_QP: return destroy_qp(function, object);
    case AdminOpcode::CREATE_SRQ:
      return create_srq(function, object, params_of<hwif::CreateSrqParams>(command));
    case AdminOpcode::MODIFY_SRQ: {
      Srq* srq = find(srqs_, function, object);
      if (srq == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
      srq->limit = params_of<hwif::ModifySrqParams>(command).get<hwif::ModifySrqParams::limit>();
      return {};
    }
    case AdminOpcode::QUERY_SRQ: {
      Srq* srq = find(srqs_, function, object);
      if (srq == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
      hwif::QuerySrqResult result{};
      result.set<hwif::QuerySrqResult::limit>(srq->limit);
      result.set<hwif::QuerySrqResult::posted_index>(srq->posted);
      result.set<hwif::QuerySrqResult::taken_index>(srq->taken);
      Answer answer;
      result.store(answer.result.data());
      return answer;
    }
    case AdminOpcode::DESTROY_SRQ: return destroy_srq(function, object);
    case AdminOpcode::ATTACH_MULTICAST:
    case AdminOpcode::DETACH_MULTICAST:
      return multicast(function, object, params_of<hwif::MulticastParams>(command),
                       command.get<AdminCommand::opcode>() == AdminOpcode::ATTACH_MULTICAST);
    case AdminOpcode::QUERY_GID: return table(gids_, [](const auto& entry) { return entry; });
    case AdminOpcode::QUERY_PKEY:
      return table(pkeys_, [](uint16_t pkey) {
        hwif::PkeyEntry entry{};
        entry.set<hwif::PkeyEntry::pkey>(pkey);
        return entry;
      });
    case AdminOpcode::QUERY_PORT: {
      if (object != 1) return Answer::refused(AdminStatus::INVALID);
      hwif::PortAttributes port{};
      using P = hwif::PortAttributes;
      port.set<P::mac>(mac_);
      port.set<P::link_up>(true);
      port.set<P::enabled>(true);
      port.set<P::active_mtu>(config_.active_mtu);
      port.set<P::max_mtu>(hwif::Mtu::MTU_4096);
      port.set<P::gid_table_length>(static_cast<uint16_t>(gids_.size()));
      port.set<P::pkey_table_length>(static_cast<uint16_t>(pkeys_.size()));
      port.set<P::speed_mbps>(100000);
      Answer answer;
      answer.output = bytes_of(port);
      return answer;
    }
    case AdminOpcode::QUERY_COUNTERS: {
      Answer answer;
      answer.output.resize(output_length);
      return answer;
    }
    case AdminOpcode::SET_GID:
    case AdminOpcode::DEL_GID:
    case AdminOpcode::SET_PKEY:
    case AdminOpcode::MODIFY_PORT:
    case AdminOpcode::SET_FUNCTION:
    case AdminOpcode::QUERY_FUNCTION:
    case AdminOpcode::FUNCTION_RESET: return Answer::refused(AdminStatus::NOT_PERMITTED);
    default: return Answer::refused(AdminStatus::UNSUPPORTED);
  }
}

FakeNic::Answer FakeNic::query_device() const {
  hwif::QueryDeviceOutput q{};
  using Q = hwif::QueryDeviceOutput;
  const hwif::ByteArray<8> guid{{static_cast<uint8_t>(mac_[0] ^ 2), mac_[1], mac_[2], 0xff, 0xfe,
                                 mac_[3], mac_[4], mac_[5]}};
  q.set<Q::node_guid>(guid);
  q.set<Q::system_image_guid>(guid);
  q.set<Q::firmware_hash>(config_.firmware_hash);
  q.set<Q::firmware_major>(1);
  q.set<Q::firmware_minor>(2);
  q.set<Q::firmware_patch>(3);
  q.set<Q::max_qps>(config_.qps - 2);
  q.set<Q::max_cqs>(config_.cqs);
  q.set<Q::max_eqs>(config_.eqs);
  q.set<Q::max_mrs>(config_.mrs - 1);
  q.set<Q::max_pds>(config_.pds);
  q.set<Q::max_srqs>(config_.srqs);
  q.set<Q::max_multicast_attach>(config_.multicast ? 32 : 0);
  q.set<Q::privileged>(config_.privileged);
  q.set<Q::max_total_responder_depth>(4096);
  q.set<Q::max_in_flight>(512);
  Answer answer;
  answer.output = bytes_of(q);
  return answer;
}

// ---- PD and MR ----------------------------------------------------------------------------------

FakeNic::Answer FakeNic::create_pd(unsigned function) {
  Pd* pd = create(pds_, function, false, 1);
  if (pd == nullptr) return Answer::refused(AdminStatus::NO_RESOURCES);
  return Answer::created(pd->number);
}

FakeNic::Answer FakeNic::destroy_pd(unsigned function, uint32_t number) {
  Pd* pd = find(pds_, function, number);
  if (pd == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
  for (const Mr& mr : mrs_) {
    if (mr.exists && mr.pd == number) return Answer::refused(AdminStatus::BUSY);
  }
  for (const Qp& qp : qps_) {
    if (qp.exists && qp.pd == number) return Answer::refused(AdminStatus::BUSY);
  }
  for (const Srq& srq : srqs_) {
    if (srq.exists && srq.pd == number) return Answer::refused(AdminStatus::BUSY);
  }
  pd->exists = false;
  return {};
}

AdminField FakeNic::check_mr(const hwif::CreateMrParams& params) const {
  using P = hwif::CreateMrParams;
  const bool contiguous = params.get<P::contiguous>();
  const unsigned shift = params.get<P::page_shift>();
  if (params.get<P::length>() == 0) return AdminField::LENGTH;
  if (!in_range(shift, 12, 30)) return AdminField::PAGE_SHIFT;
  if (params.get<P::unbounded>()) return AdminField::UNBOUNDED;
  if (contiguous && params.get<P::first_byte_offset>() != 0) {
    return AdminField::FIRST_BYTE_OFFSET;
  }
  if (!contiguous && params.get<P::first_byte_offset>() >> shift != 0) {
    return AdminField::FIRST_BYTE_OFFSET;
  }
  // Read by lines of 64 bytes.
  if (!contiguous && params.get<P::table_address>() % 64 != 0) {
    return AdminField::TABLE_ADDRESS;
  }
  const auto rights = params.get<P::rights>();
  using R = hwif::AccessRights;
  if ((rights.get<R::remote_write>() || rights.get<R::remote_atomic>()) &&
      !rights.get<R::local_write>()) {
    return AdminField::RIGHTS;
  }
  return FINE;
}

FakeNic::Answer FakeNic::create_mr(unsigned function, uint32_t pd,
                                   const hwif::CreateMrParams& params) {
  if (find(pds_, function, pd) == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
  const AdminField field = check_mr(params);
  if (field != FINE) {
    violation(format("CREATE_MR field %u", static_cast<unsigned>(field)));
    return Answer::refused(AdminStatus::INVALID, field);
  }
  Mr* mr = create(mrs_, function, false, 1);
  if (mr == nullptr) return Answer::refused(AdminStatus::NO_RESOURCES);
  mr->params = params;
  mr->pd = pd;
  mr->key = mr->number << 8 | (mr->incarnation & 0xff);
  hwif::KeysResult keys{};
  keys.set<hwif::KeysResult::lkey>(mr->key);
  keys.set<hwif::KeysResult::rkey>(mr->key);
  Answer answer = Answer::created(mr->number);
  keys.store(answer.result.data());
  return answer;
}

FakeNic::Answer FakeNic::rereg_mr(unsigned function, uint32_t index,
                                  const hwif::ReregMrInput& input) {
  Mr* mr = find(mrs_, function, index);
  if (mr == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
  using I = hwif::ReregMrInput;
  using P = hwif::CreateMrParams;
  const auto memory = input.get<I::memory>();
  if (input.get<I::change_translation>()) {
    const AdminField field = check_mr(memory);
    if (field != FINE) return Answer::refused(AdminStatus::INVALID, field);
  }
  const auto rights = mr->params.get<P::rights>();
  if (input.get<I::change_pd>()) {
    if (find(pds_, function, input.get<I::pd>()) == nullptr) {
      return Answer::refused(AdminStatus::NOT_FOUND, AdminField::PD);
    }
    mr->pd = input.get<I::pd>();
  }
  if (input.get<I::change_translation>()) {
    mr->params = memory;
    mr->params.set<P::rights>(rights);
  }
  if (input.get<I::change_rights>()) mr->params.set<P::rights>(memory.get<P::rights>());
  hwif::KeysResult keys{};
  keys.set<hwif::KeysResult::lkey>(mr->key);
  keys.set<hwif::KeysResult::rkey>(mr->key);
  Answer answer;
  keys.store(answer.result.data());
  return answer;
}

// ---- EQ and CQ ----------------------------------------------------------------------------------

FakeNic::Answer FakeNic::create_eq(unsigned function, const hwif::CreateEqParams& params) {
  using P = hwif::CreateEqParams;
  if (!page_aligned(params.get<P::ring_address>())) {
    return Answer::refused(AdminStatus::INVALID, AdminField::RING_ADDRESS);
  }
  if (!in_range(params.get<P::ring_log2>(), hwif::EQ_RING_LOG2_MIN, hwif::EQ_RING_LOG2_MAX)) {
    return Answer::refused(AdminStatus::INVALID, AdminField::RING_LOG2);
  }
  Eq* eq = create(eqs_, function, false, 1);
  if (eq == nullptr) return Answer::refused(AdminStatus::NO_RESOURCES);
  eq->address = params.get<P::ring_address>();
  eq->log2 = params.get<P::ring_log2>();
  eq->page = params.get<P::doorbell_page>();
  eq->vector = params.get<P::irq_vector>();
  if (params.get<P::async_events>()) functions_[function].async_eq = eq->number;
  return Answer::created(eq->number);
}

FakeNic::Answer FakeNic::create_cq(unsigned function, const hwif::CreateCqParams& params) {
  using P = hwif::CreateCqParams;
  if (!page_aligned(params.get<P::ring_address>())) {
    return Answer::refused(AdminStatus::INVALID, AdminField::RING_ADDRESS);
  }
  if (!in_range(params.get<P::ring_log2>(), hwif::CQ_RING_LOG2_MIN, hwif::CQ_RING_LOG2_MAX)) {
    return Answer::refused(AdminStatus::INVALID, AdminField::RING_LOG2);
  }
  if (find(eqs_, function, params.get<P::eqn>()) == nullptr) {
    return Answer::refused(AdminStatus::NOT_FOUND, AdminField::EQN);
  }
  Cq* cq = create(cqs_, function, true);
  if (cq == nullptr) return Answer::refused(AdminStatus::NO_RESOURCES);
  cq->address = params.get<P::ring_address>();
  cq->log2 = params.get<P::ring_log2>();
  cq->page = params.get<P::doorbell_page>();
  cq->eqn = params.get<P::eqn>();
  return Answer::created(cq->number);
}

FakeNic::Answer FakeNic::destroy_cq(unsigned function, uint32_t cqn) {
  Cq* cq = find(cqs_, function, cqn);
  if (cq == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
  using P = hwif::CreateQpParams;
  for (const Qp& qp : qps_) {
    if (qp.exists &&
        (qp.params.get<P::send_cqn>() == cqn || qp.params.get<P::recv_cqn>() == cqn)) {
      return Answer::refused(AdminStatus::BUSY);
    }
  }
  cq->exists = false;
  return {};
}

FakeNic::Answer FakeNic::resize_cq(unsigned function, uint32_t cqn,
                                   const hwif::ResizeCqParams& params) {
  Cq* cq = find(cqs_, function, cqn);
  if (cq == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
  using P = hwif::ResizeCqParams;
  const unsigned log2 = params.get<P::ring_log2>();
  if (!in_range(log2, hwif::CQ_RING_LOG2_MIN, hwif::CQ_RING_LOG2_MAX) ||
      !page_aligned(params.get<P::ring_address>()) ||
      ((cq->producer - cq->consumed) & 0xffffff) > 1u << log2) {
    return Answer::refused(AdminStatus::INVALID, AdminField::RING_LOG2);
  }
  cq->address = params.get<P::ring_address>();
  cq->log2 = log2;
  hwif::ResizeCqResult result{};
  result.set<hwif::ResizeCqResult::first_index>(cq->producer);
  Answer answer;
  result.store(answer.result.data());
  return answer;
}

// ---- QP -----------------------------------------------------------------------------------------

FakeNic::Answer FakeNic::create_qp(unsigned function, uint32_t pd,
                                   const hwif::CreateQpParams& params) {
  using P = hwif::CreateQpParams;
  const auto invalid = [](AdminField field) {
    return Answer::refused(AdminStatus::INVALID, field);
  };
  if (find(pds_, function, pd) == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
  const hwif::QpType type = params.get<P::qp_type>();
  const bool known = type == hwif::QpType::RC || (type == hwif::QpType::UC && config_.uc) ||
                     (type == hwif::QpType::UD && config_.ud);
  if (!known) return Answer::refused(AdminStatus::UNSUPPORTED, AdminField::QP_TYPE);
  const bool has_srq = params.get<P::has_srq>();
  if (has_srq && find(srqs_, function, params.get<P::srqn>()) == nullptr) {
    return Answer::refused(AdminStatus::NOT_FOUND, AdminField::SRQN);
  }
  if (find(cqs_, function, params.get<P::send_cqn>()) == nullptr) {
    return Answer::refused(AdminStatus::NOT_FOUND, AdminField::SEND_CQN);
  }
  if (find(cqs_, function, params.get<P::recv_cqn>()) == nullptr) {
    return Answer::refused(AdminStatus::NOT_FOUND, AdminField::RECV_CQN);
  }
  if (!page_aligned(params.get<P::sq_ring_address>())) {
    return invalid(AdminField::SQ_RING_ADDRESS);
  }
  if (has_srq ? params.get<P::rq_ring_address>() != 0
              : !page_aligned(params.get<P::rq_ring_address>())) {
    return invalid(AdminField::RQ_RING_ADDRESS);
  }
  if (!in_range(params.get<P::sq_ring_log2>(), hwif::SQ_RING_LOG2_MIN, hwif::SQ_RING_LOG2_MAX)) {
    return invalid(AdminField::SQ_RING_LOG2);
  }
  if (!has_srq &&
      !in_range(params.get<P::rq_ring_log2>(), hwif::RQ_RING_LOG2_MIN, hwif::RQ_RING_LOG2_MAX)) {
    return invalid(AdminField::RQ_RING_LOG2);
  }
  Qp* qp = create(qps_, function, true, 2);  // 0 and 1 are special
  if (qp == nullptr) return Answer::refused(AdminStatus::NO_RESOURCES);
  qp->params = params;
  qp->pd = pd;
  return Answer::created(qp->number);
}

FakeNic::Answer FakeNic::modify_qp(unsigned function, uint32_t qpn,
                                   const hwif::ModifyQpInput& input) {
  Qp* qp = find(qps_, function, qpn);
  if (qp == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
  using M = hwif::QpAttributeMask;
  using A = hwif::QpAttributes;
  const auto mask = input.get<hwif::ModifyQpInput::mask>();
  const auto a = input.get<hwif::ModifyQpInput::attributes>();
  const QpState from = qp->state;
  const QpState to = mask.get<M::state>() ? a.get<A::state>() : from;
  const auto invalid = [](AdminField field) {
    return Answer::refused(AdminStatus::INVALID, field);
  };
  // The device does not take it with transitions to SQD.
  if (mask.get<M::cur_state>() && (a.get<A::cur_state>() != from || to == QpState::SQD)) {
    return invalid(AdminField::CUR_STATE);
  }
  // wire.md §2.15
  const bool legal =
      to == QpState::RESET || (to == QpState::ERR && from != QpState::RESET) ||
      (from == QpState::RESET && to == QpState::INIT) ||
      (from == QpState::INIT && (to == QpState::INIT || to == QpState::RTR)) ||
      (from == QpState::RTR && to == QpState::RTS) ||
      (from == QpState::RTS && (to == QpState::RTS || to == QpState::SQD)) ||
      (from == QpState::SQD && (to == QpState::SQD || to == QpState::RTS)) ||
      (from == QpState::SQE && to == QpState::RTS && !is(*qp, hwif::QpType::RC));
  if (!legal) return invalid(AdminField::STATE);
  // A program that is not privileged sets no Q_Key with bit 31 (IBTA 10.2.5).
  if (mask.get<M::qkey>() && a.get<A::qkey>() >> 31 != 0 && !config_.privileged) {
    return Answer::refused(AdminStatus::NOT_PERMITTED, AdminField::QKEY);
  }
  hwif::QpAttributes& q = qp->attributes;
  const auto take = [&]<class MaskField, class Field>() {
    if (mask.get<MaskField>()) q.set<Field>(a.get<Field>());
  };
  take.operator()<M::rights, A::rights>();
  take.operator()<M::pkey_index, A::pkey_index>();
  take.operator()<M::port, A::port>();
  take.operator()<M::qkey, A::qkey>();
  take.operator()<M::path, A::path>();
  take.operator()<M::path_mtu, A::path_mtu>();
  take.operator()<M::timeout, A::timeout>();
  take.operator()<M::retry_count, A::retry_count>();
  take.operator()<M::rnr_retry, A::rnr_retry>();
  take.operator()<M::rq_psn, A::rq_psn>();
  take.operator()<M::initiator_depth, A::initiator_depth>();
  take.operator()<M::min_rnr_timer, A::min_rnr_timer>();
  take.operator()<M::sq_psn, A::sq_psn>();
  take.operator()<M::responder_depth, A::responder_depth>();
  take.operator()<M::dest_qpn, A::dest_qpn>();
  take.operator()<M::sqd_async_notify, A::sqd_async_notify>();
  if (mask.get<M::path>()) {
    const auto path = q.get<A::path>();
    const unsigned index = path.get<hwif::AddressVector::sgid_index>();
    if (index >= gids_.size() ||
        gids_[index].get<hwif::GidEntry::gid_type>() == hwif::GidType::NONE) {
      return invalid(AdminField::PATH);
    }
  }
  if (mask.get<M::sq_psn>()) qp->next_psn = q.get<A::sq_psn>();
  if (mask.get<M::rq_psn>()) qp->expected_psn = q.get<A::rq_psn>();
  if (to == QpState::RESET) {
    Qp fresh;
    fresh.exists = true;
    fresh.function = qp->function;
    fresh.number = qp->number;
    fresh.incarnation = qp->incarnation;
    fresh.params = qp->params;
    fresh.pd = qp->pd;
    *qp = fresh;
  }
  if (to == QpState::RTS && from != QpState::RTS) {
    qp->retries = 0;
    qp->rnr_retries = 0;
  }
  if (to == QpState::SQD && from != QpState::SQD) qp->drained = false;
  qp->state = to;
  return {};
}

FakeNic::Answer FakeNic::destroy_qp(unsigned function, uint32_t qpn) {
  Qp* qp = find(qps_, function, qpn);
  if (qp == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
  for (const auto& [group, member] : groups_) {
    if (member == qpn) return Answer::refused(AdminStatus::BUSY);
  }
  qp->exists = false;
  return {};
}

FakeNic::Answer FakeNic::multicast(unsigned function, uint32_t qpn,
                                   const hwif::MulticastParams& params, bool attach) {
  if (!config_.multicast) return Answer::refused(AdminStatus::UNSUPPORTED);
  Qp* qp = find(qps_, function, qpn);
  if (qp == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
  const std::pair entry{params.get<hwif::MulticastParams::mgid>(), qpn};
  const auto found = std::find(groups_.begin(), groups_.end(), entry);
  if (attach) {
    if (found != groups_.end()) return Answer::refused(AdminStatus::EXISTS);
    groups_.push_back(entry);
  } else {
    if (found == groups_.end()) return Answer::refused(AdminStatus::NOT_FOUND);
    groups_.erase(found);
  }
  return {};
}

// ---- SRQ ----------------------------------------------------------------------------------------

FakeNic::Answer FakeNic::create_srq(unsigned function, uint32_t pd,
                                    const hwif::CreateSrqParams& params) {
  using P = hwif::CreateSrqParams;
  if (!config_.srq) return Answer::refused(AdminStatus::UNSUPPORTED);
  if (find(pds_, function, pd) == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
  if (!page_aligned(params.get<P::ring_address>())) {
    return Answer::refused(AdminStatus::INVALID, AdminField::RING_ADDRESS);
  }
  if (!in_range(params.get<P::ring_log2>(), hwif::RQ_RING_LOG2_MIN, hwif::RQ_RING_LOG2_MAX)) {
    return Answer::refused(AdminStatus::INVALID, AdminField::RING_LOG2);
  }
  if (params.get<P::stride_code>() > hwif::RQ_STRIDE_CODE_MAX) {
    return Answer::refused(AdminStatus::INVALID, AdminField::STRIDE_CODE);
  }
  Srq* srq = create(srqs_, function, false);
  if (srq == nullptr) return Answer::refused(AdminStatus::NO_RESOURCES);
  srq->params = params;
  srq->pd = pd;
  srq->limit = params.get<P::limit>();
  return Answer::created(srq->number);
}

FakeNic::Answer FakeNic::destroy_srq(unsigned function, uint32_t number) {
  Srq* srq = find(srqs_, function, number);
  if (srq == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
  for (const Qp& qp : qps_) {
    if (qp.exists && srq_of(qp) == srq) return Answer::refused(AdminStatus::BUSY);
  }
  srq->exists = false;
  return {};
}

FakeNic::Answer FakeNic::query_qp(unsigned function, uint32_t qpn) {
  Qp* qp = find(qps_, function, qpn);
  if (qp == nullptr) return Answer::refused(AdminStatus::NOT_FOUND);
  using A = hwif::QpAttributes;
  using O = hwif::QueryQpOutput;
  hwif::QpAttributes a = qp->attributes;
  a.set<A::state>(qp->state);
  a.set<A::draining>(qp->state == QpState::SQD && !qp->drained);
  a.set<A::sq_psn>(qp->next_psn);
  a.set<A::rq_psn>(qp->expected_psn);
  hwif::QueryQpOutput out{};
  out.set<O::attributes>(a);
  out.set<O::creation>(qp->params);
  out.set<O::pd>(qp->pd);
  out.set<O::sq_posted_index>(qp->sq_posted);
  out.set<O::sq_oldest_index>(qp->sq_oldest);
  out.set<O::rq_posted_index>(qp->rq_posted);
  out.set<O::rq_taken_index>(qp->rq_taken);
  out.set<O::error_cause>(qp->cause);
  Answer answer;
  answer.output = bytes_of(out);
  return answer;
}

}  // namespace roci::test
