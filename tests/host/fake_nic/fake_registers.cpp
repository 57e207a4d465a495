// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// FakeNic: construction, BAR0 and doorbells.
#include "fake_nic.hpp"

#include <roci/error.hpp>

#include <algorithm>
#include <cstring>

namespace roci::test {
namespace csr = hwif::csr;

bool FakeFabric::step(uint64_t cycles) {
  const std::lock_guard lock(mutex_);
  now_ += cycles;
  bool busy = false;
  for (FakeNic* nic : nics_) busy = nic->work() || busy;
  for (FakeNic* nic : nics_) busy = nic->waits() || busy;
  return busy;
}

FakeNic* FakeFabric::find(const MacAddress& mac) {
  for (FakeNic* nic : nics_) {
    if (nic->mac() == mac) return nic;
  }
  return nullptr;
}

FakeNic* FakeFabric::find(const Gid& gid) {
  for (FakeNic* nic : nics_) {
    for (const hwif::GidEntry& entry : nic->gids()) {
      if (entry.get<hwif::GidEntry::gid_type>() != hwif::GidType::NONE &&
          entry.get<hwif::GidEntry::gid>() == gid) {
        return nic;
      }
    }
  }
  return nullptr;
}

FakeNic::FakeNic(FakeFabric& fabric, unsigned number, FakeConfig config)
    : fabric_(fabric),
      number_(number),
      config_(config),
      gids_(config.gids),
      pkeys_(config.pkeys),
      functions_(config.functions),
      pds_(config.pds),
      mrs_(config.mrs),
      eqs_(config.eqs),
      cqs_(config.cqs),
      qps_(config.qps),
      srqs_(config.srqs) {
  const auto last = static_cast<uint8_t>(number + 1);
  mac_ = {{2, 0, 0, 0, 0, last}};
  hwif::GidEntry link_local{};
  link_local.set<hwif::GidEntry::gid>(
      Gid{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, last}});
  link_local.set<hwif::GidEntry::gid_type>(hwif::GidType::ROCE_V1);
  hwif::GidEntry mapped{};
  mapped.set<hwif::GidEntry::gid>(
      Gid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last}});
  mapped.set<hwif::GidEntry::gid_type>(hwif::GidType::ROCE_V1);
  gids_[0] = link_local;
  gids_[1] = mapped;
  pkeys_[0] = hwif::PKEY_DEFAULT;
  for (Function& f : functions_) f.masked.fill(true);
  const std::lock_guard lock(fabric_.mutex());
  fabric_.nics_.push_back(this);
}

FakeNic::~FakeNic() {
  const std::lock_guard lock(fabric_.mutex());
  std::erase(fabric_.nics_, this);
}

std::optional<unsigned> FakeNic::attach(InprocMemory& memory,
                                        std::function<void(unsigned)> interrupt) {
  for (unsigned i = 1; i < functions_.size(); ++i) {  // 0 is management
    if (functions_[i].attached) continue;
    functions_[i] = Function{};
    functions_[i].masked.fill(true);
    functions_[i].attached = true;
    functions_[i].memory = &memory;
    functions_[i].interrupt = std::move(interrupt);
    return i;
  }
  return std::nullopt;
}

void FakeNic::detach(unsigned function) {
  reset_function(function);
  functions_[function].attached = false;
  functions_[function].memory = nullptr;
}

unsigned FakeNic::functions_free() const {
  unsigned n = 0;
  for (unsigned i = 1; i < functions_.size(); ++i) n += functions_[i].attached ? 0 : 1;
  return n;
}

std::optional<Neighbour> FakeNic::resolve(const Gid& gid) {
  FakeNic* nic = fabric_.find(gid);
  if (nic == nullptr) return std::nullopt;
  return Neighbour{nic->mac()};
}

uint64_t FakeNic::doorbells(hwif::DoorbellKind kind) const {
  const auto found = doorbells_.find(kind);
  return found == doorbells_.end() ? 0 : found->second;
}

uint64_t FakeNic::commands(hwif::AdminOpcode opcode) const {
  const auto found = commands_.find(opcode);
  return found == commands_.end() ? 0 : found->second;
}

void FakeNic::fail_next(hwif::AdminOpcode opcode, hwif::AdminStatus status, hwif::AdminField field,
                        uint32_t detail) {
  failures_[opcode] = Answer::refused(status, field, detail);
}

void FakeNic::set_gid(unsigned index, const hwif::GidEntry& entry) {
  const std::lock_guard lock(fabric_.mutex());
  gids_[index] = entry;
  for (unsigned f = 1; f < functions_.size(); ++f) async_event(f, hwif::EqeType::GID_CHANGE, 0);
}

void FakeNic::raise(unsigned function, hwif::EqeType type, uint32_t object) {
  const std::lock_guard lock(fabric_.mutex());
  async_event(function, type, object);
}

// ---- registers ----------------------------------------------------------------------------------

uint64_t FakeNic::bar_read(unsigned function, uint32_t offset) {
  const Function& f = functions_[function];
  switch (offset) {
    case csr::IdentityHwifHash::ADDRESS: return config_.hwif_hash;
    case csr::IdentityFirmwareHash::ADDRESS:
      return fabric_.now() >= config_.firmware_ready_at ? config_.firmware_hash : 0;
    case csr::IdentityClock::ADDRESS: return fabric_.now();
    case csr::IdentityDeviceId::ADDRESS: {
      csr::IdentityDeviceId r{};
      r.set<csr::IdentityDeviceId::vendor>(hwif::PCI_VENDOR_ID);
      r.set<csr::IdentityDeviceId::device>(hwif::PCI_DEVICE_ID);
      r.set<csr::IdentityDeviceId::version_major>(1);
      return r.to_word();
    }
    case csr::IdentityConfiguration::ADDRESS: {
      csr::IdentityConfiguration r{};
      r.set<csr::IdentityConfiguration::config_name>(hwif::Config::WIDE);
      r.set<csr::IdentityConfiguration::function_number>(static_cast<uint8_t>(function));
      r.set<csr::IdentityConfiguration::functions>(static_cast<uint8_t>(config_.functions));
      r.set<csr::IdentityConfiguration::datapath_bytes>(64);
      r.set<csr::IdentityConfiguration::clock_khz>(250000);
      return r.to_word();
    }
    case csr::IdentityObjectsQpCq::ADDRESS: return config_.qps | uint64_t{config_.cqs} << 32;
    case csr::IdentityObjectsEqSrq::ADDRESS: return config_.eqs | uint64_t{config_.srqs} << 32;
    case csr::IdentityObjectsMrPd::ADDRESS: return config_.mrs | uint64_t{config_.pds} << 32;
    case csr::IdentityPortTables::ADDRESS: return config_.gids | uint64_t{config_.pkeys} << 16;
    case csr::IdentityWorkLimits::ADDRESS: {
      csr::IdentityWorkLimits r{};
      r.set<csr::IdentityWorkLimits::max_sge>(hwif::MAX_SGE);
      r.set<csr::IdentityWorkLimits::max_sge_read>(hwif::MAX_SGE_READ_WIDE);
      r.set<csr::IdentityWorkLimits::max_inline_bytes>(hwif::MAX_INLINE_BYTES);
      r.set<csr::IdentityWorkLimits::max_message_log2>(31);
      r.set<csr::IdentityWorkLimits::max_mtu>(hwif::Mtu::MTU_4096);
      r.set<csr::IdentityWorkLimits::max_initiator_depth>(hwif::MAX_RD_ATOMIC_WIDE);
      r.set<csr::IdentityWorkLimits::max_responder_depth>(hwif::MAX_RD_ATOMIC_WIDE);
      return r.to_word();
    }
    case csr::IdentityRingLimits::ADDRESS: {
      csr::IdentityRingLimits r{};
      r.set<csr::IdentityRingLimits::sq_log2>(hwif::SQ_RING_LOG2_MAX);
      r.set<csr::IdentityRingLimits::rq_log2>(hwif::RQ_RING_LOG2_MAX);
      r.set<csr::IdentityRingLimits::srq_log2>(hwif::RQ_RING_LOG2_MAX);
      r.set<csr::IdentityRingLimits::cq_log2>(hwif::CQ_RING_LOG2_MAX);
      r.set<csr::IdentityRingLimits::eq_log2>(hwif::EQ_RING_LOG2_MAX);
      r.set<csr::IdentityRingLimits::admin_log2>(hwif::ADMIN_RING_LOG2_MAX);
      r.set<csr::IdentityRingLimits::vectors>(hwif::INTERRUPT_VECTORS);
      r.set<csr::IdentityRingLimits::doorbell_pages>(hwif::DOORBELL_PAGES);
      return r.to_word();
    }
    case csr::IdentityMemoryLimits::ADDRESS: {
      csr::IdentityMemoryLimits r{};
      r.set<csr::IdentityMemoryLimits::min_page_shift>(12);
      r.set<csr::IdentityMemoryLimits::max_page_shift>(30);
      return r.to_word();
    }
    case csr::IdentityCapabilities::ADDRESS: {
      csr::IdentityCapabilities r{};
      r.set<csr::IdentityCapabilities::rc>(true);
      r.set<csr::IdentityCapabilities::uc>(config_.uc);
      r.set<csr::IdentityCapabilities::ud>(config_.ud);
      r.set<csr::IdentityCapabilities::gsi>(config_.gsi);
      r.set<csr::IdentityCapabilities::srq>(config_.srq);
      r.set<csr::IdentityCapabilities::atomics>(config_.atomics);
      r.set<csr::IdentityCapabilities::multicast>(config_.multicast);
      r.set<csr::IdentityCapabilities::cq_resize>(true);
      r.set<csr::IdentityCapabilities::timestamps>(true);
      r.set<csr::IdentityCapabilities::loopback>(true);
      return r.to_word();
    }
    case csr::IdentityFirmware::ADDRESS: {
      csr::IdentityFirmware r{};
      r.set<csr::IdentityFirmware::state>(fabric_.now() >= config_.firmware_ready_at
                                              ? config_.firmware_state
                                              : hwif::FirmwareState::BOOTING);
      return r.to_word();
    }
    case csr::AdminCommandRing::ADDRESS: return f.command_ring;
    case csr::AdminCompletionRing::ADDRESS: return f.completion_ring;
    case csr::AdminRingConfig::ADDRESS: return f.ring_config;
    case csr::AdminStatus::ADDRESS: {
      csr::AdminStatus r{};
      r.set<csr::AdminStatus::state>(f.state);
      r.set<csr::AdminStatus::error>(f.error);
      r.set<csr::AdminStatus::fetched>(f.fetched);
      r.set<csr::AdminStatus::completed>(f.completed);
      return r.to_word();
    }
    case csr::InterruptPending::ADDRESS: return f.pending;
    default: violation(format("read of offset 0x%x", offset)); return 0;
  }
}

void FakeNic::bar_write(unsigned function, uint32_t offset, uint64_t value) {
  Function& f = functions_[function];
  if (offset >= csr::DoorbellPage::ADDRESS && offset < csr::BYTES) {
    if (offset % csr::DoorbellPage::STRIDE != 0) {
      violation(format("doorbell at offset 0x%x", offset));
      return;
    }
    doorbell(function, (offset - csr::DoorbellPage::ADDRESS) / csr::DoorbellPage::STRIDE, value);
    return;
  }
  if (offset >= csr::InterruptVector::ADDRESS && offset < csr::InterruptPending::ADDRESS) {
    const unsigned vector = (offset - csr::InterruptVector::ADDRESS) / csr::InterruptVector::STRIDE;
    f.masked[vector] = (value & 1) != 0;
    if (!f.masked[vector] && (f.pending >> vector & 1) != 0 && f.interrupt) f.interrupt(vector);
    return;
  }
  const bool disabled = f.state == hwif::AdminState::DISABLED;
  switch (offset) {
    case csr::AdminCommandRing::ADDRESS:
    case csr::AdminCompletionRing::ADDRESS:
    case csr::AdminRingConfig::ADDRESS:
      if (!disabled) violation("admin ring written while it is not DISABLED");
      if (offset == csr::AdminCommandRing::ADDRESS) f.command_ring = value;
      if (offset == csr::AdminCompletionRing::ADDRESS) f.completion_ring = value;
      if (offset == csr::AdminRingConfig::ADDRESS) f.ring_config = value;
      return;
    case csr::AdminControl::ADDRESS: {
      const auto control = csr::AdminControl::from_word(value);
      if (control.get<csr::AdminControl::reset_request>()) {
        reset_function(function);
      } else if (control.get<csr::AdminControl::enable>()) {
        if (!disabled) violation("admin queue enabled twice");
        enable(f);
      }
      return;
    }
    case csr::AdminDoorbell::ADDRESS: {
      if (f.state != hwif::AdminState::ENABLED) {
        violation("admin doorbell while it is not ENABLED");
        return;
      }
      const auto ring_log2 =
          csr::AdminRingConfig::from_word(f.ring_config).get<csr::AdminRingConfig::ring_log2>();
      f.announced = static_cast<uint16_t>(value);
      if (static_cast<uint16_t>(f.announced - f.fetched) > 1u << ring_log2) {
        violation("admin doorbell announces more than the ring holds");
        f.state = hwif::AdminState::ERROR;
        f.error = hwif::AdminError::BAD_INDEX;
      }
      return;
    }
    case csr::AdminConsumed::ADDRESS:
      if (static_cast<uint16_t>(value - f.consumed) >
          static_cast<uint16_t>(f.completed - f.consumed)) {
        violation("admin completions consumed before they were written");
      }
      f.consumed = static_cast<uint16_t>(value);
      return;
    case csr::InterruptPending::ADDRESS: f.pending &= static_cast<uint8_t>(~value); return;
    default: violation(format("write of offset 0x%x", offset));
  }
}

void FakeNic::enable(Function& f) {
  const auto ring_log2 =
      csr::AdminRingConfig::from_word(f.ring_config).get<csr::AdminRingConfig::ring_log2>();
  f.announced = f.fetched = f.completed = f.consumed = 0;
  if (f.command_ring % 4096 != 0 || f.completion_ring % 4096 != 0 ||
      ring_log2 < hwif::ADMIN_RING_LOG2_MIN || ring_log2 > hwif::ADMIN_RING_LOG2_MAX) {
    f.state = hwif::AdminState::ERROR;
    f.error = hwif::AdminError::BAD_RING;
    return;
  }
  f.state = hwif::AdminState::ENABLED;
  f.error = hwif::AdminError::NONE;
}

void FakeNic::reset_function(unsigned function) {
  const auto wipe = [&](auto& table) {
    for (auto& object : table) {
      if (object.exists && object.function == function) object.exists = false;
    }
  };
  wipe(qps_);
  wipe(srqs_);
  wipe(mrs_);
  wipe(cqs_);
  wipe(eqs_);
  wipe(pds_);
  std::erase_if(pending_, [&](const Pending& p) { return p.function == function; });
  Function& f = functions_[function];
  f.state = hwif::AdminState::DISABLED;
  f.masked.fill(true);
  f.pending = 0;
  f.async_eq.reset();
  f.doorbell_error_raised = false;
}

void FakeNic::raise_vector(Function& f, unsigned vector) {
  f.pending |= static_cast<uint8_t>(1u << vector);
  if (!f.masked[vector] && f.interrupt) f.interrupt(vector);
}

// ---- doorbells ----------------------------------------------------------------------------------

void FakeNic::doorbell_error(unsigned function, const char* why) {
  violation(format("doorbell of function %u: %s", function, why));
  Function& f = functions_[function];
  if (f.doorbell_error_raised) return;
  f.doorbell_error_raised = true;
  async_event(function, hwif::EqeType::DOORBELL_ERROR, 0);
}

void FakeNic::doorbell(unsigned function, unsigned page, uint64_t value) {
  const auto d = hwif::Doorbell::from_word(value);
  const auto kind = d.get<hwif::Doorbell::kind>();
  const uint32_t object = d.get<hwif::Doorbell::object>();
  const uint32_t index = d.get<hwif::Doorbell::index>();
  ++doorbells_[kind];
  const bool small = kind == hwif::DoorbellKind::SQ || kind == hwif::DoorbellKind::RQ ||
                     kind == hwif::DoorbellKind::SRQ;
  if (index >= 1u << (small ? hwif::SQ_INDEX_BITS : hwif::CQ_INDEX_BITS)) {
    return doorbell_error(function, "index too big");
  }
  constexpr uint32_t INDEX = (1u << hwif::CQ_INDEX_BITS) - 1;
  switch (kind) {
    case hwif::DoorbellKind::SQ:
    case hwif::DoorbellKind::RQ: {
      Qp* qp = find(qps_, function, object);
      if (qp == nullptr) return doorbell_error(function, "no such QP");
      if (qp->params.get<hwif::CreateQpParams::doorbell_page>() != page) {
        return doorbell_error(function, "QP on another page");
      }
      if (kind == hwif::DoorbellKind::SQ) {
        if (qp->state < hwif::QpState::RTS) return doorbell_error(function, "SQ before RTS");
        const auto size = 1u << qp->params.get<hwif::CreateQpParams::sq_ring_log2>();
        const auto waiting = static_cast<uint16_t>(index - qp->sq_oldest);
        if (waiting > size) return doorbell_error(function, "more blocks than the ring has");
        qp->sq_posted = static_cast<uint16_t>(index);
      } else {
        if (qp->state == hwif::QpState::RESET) return doorbell_error(function, "RQ in RESET");
        if (srq_of(*qp) != nullptr) return doorbell_error(function, "RQ of a QP with an SRQ");
        const auto size = 1u << qp->params.get<hwif::CreateQpParams::rq_ring_log2>();
        if (static_cast<uint16_t>(index - qp->rq_taken) > size) {
          return doorbell_error(function, "more receives than the ring has");
        }
        qp->rq_posted = static_cast<uint16_t>(index);
      }
      return;
    }
    case hwif::DoorbellKind::SRQ: {
      Srq* srq = find(srqs_, function, object);
      if (srq == nullptr) return doorbell_error(function, "no such SRQ");
      if (srq->params.get<hwif::CreateSrqParams::doorbell_page>() != page) {
        return doorbell_error(function, "SRQ on another page");
      }
      if (static_cast<uint16_t>(index - srq->taken) >
          1u << srq->params.get<hwif::CreateSrqParams::ring_log2>()) {
        return doorbell_error(function, "more receives than the SRQ has");
      }
      srq->posted = static_cast<uint16_t>(index);
      return;
    }
    case hwif::DoorbellKind::CQ_CONSUMED:
    case hwif::DoorbellKind::CQ_ARM: {
      Cq* cq = find(cqs_, function, object);
      if (cq == nullptr) return doorbell_error(function, "no such CQ");
      if (cq->page != page) return doorbell_error(function, "CQ on another page");
      const uint32_t ahead = (index - cq->consumed) & INDEX;
      if (ahead > ((cq->producer - cq->consumed) & INDEX)) {
        return doorbell_error(function, "index of CQ entries that were not written");
      }
      if (!d.get<hwif::Doorbell::keep_consumed>()) cq->consumed = index;
      if (kind == hwif::DoorbellKind::CQ_ARM) {
        const bool only = d.get<hwif::Doorbell::solicited_only>();
        // Not narrowed by a later arm (IBTA 11.4.2.2).
        cq->solicited_only = only && (!cq->armed || cq->solicited_only);
        cq->armed_index = index;
        cq->armed = true;
        check_armed(*cq);
      }
      return;
    }
    case hwif::DoorbellKind::EQ_CONSUMED_ARM: {
      Eq* eq = find(eqs_, function, object);
      if (eq == nullptr) return doorbell_error(function, "no such EQ");
      if (eq->page != page) return doorbell_error(function, "EQ on another page");
      if (((index - eq->consumed) & INDEX) > ((eq->producer - eq->consumed) & INDEX)) {
        return doorbell_error(function, "EQ entries consumed that were not written");
      }
      eq->consumed = index;
      eq->armed = true;
      if (eq->producer != index) {
        eq->armed = false;
        raise_vector(functions_[function], eq->vector);
      }
      return;
    }
    default: return doorbell_error(function, "unknown kind");
  }
}

// ---- work ---------------------------------------------------------------------------------------

bool FakeNic::work() {
  bool any = fetch_commands();
  any = run_commands() || any;
  if (frozen_) return any;
  for (Qp& qp : qps_) {
    if (qp.exists) any = work_on(qp) || any;
  }
  return any;
}

bool FakeNic::waits() const {
  if (!pending_.empty()) return true;
  if (frozen_) return false;
  for (const Qp& qp : qps_) {
    if (qp.exists && qp.wake_at != 0 && qp.state == hwif::QpState::RTS) return true;
  }
  return false;
}

}  // namespace roci::test
