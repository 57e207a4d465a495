// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// FakeNic: completions, events, keys and page tables.
#include "fake_nic.hpp"

#include <algorithm>
#include <cstring>

namespace roci::test {
namespace {

constexpr uint32_t INDEX = (1u << hwif::CQ_INDEX_BITS) - 1;

bool phase_of(uint32_t index, unsigned log2) {
  return (hwif::PHASE_FIRST_LAP ^ ((index >> log2) & 1)) != 0;
}

}  // namespace

bool FakeNic::memory(unsigned function, uint64_t address, std::span<uint8_t> data, bool write) {
  Function& f = functions_[function];
  if (data.empty()) return true;
  if (f.memory == nullptr) return false;
  return write ? f.memory->write(address, data) : f.memory->read(address, data);
}

void FakeNic::write_eqe(uint32_t eqn, hwif::EqeType type, uint32_t object, hwif::VendorStatus cause,
                        uint32_t detail) {
  Eq& eq = eqs_[eqn & (eqs_.size() - 1)];
  if (!eq.exists) return;
  if (((eq.producer - eq.consumed) & INDEX) >> eq.log2 != 0) {
    eq.overrun = true;
    violation("EQ overrun");
    return;
  }
  hwif::Eqe eqe{};
  eqe.set<hwif::Eqe::type_code>(type);
  eqe.set<hwif::Eqe::object>(object);
  eqe.set<hwif::Eqe::cause>(cause);
  eqe.set<hwif::Eqe::detail>(detail);
  eqe.set<hwif::Eqe::phase>(phase_of(eq.producer, eq.log2));
  const uint64_t address =
      eq.address + (eq.producer & ((1u << eq.log2) - 1)) * uint64_t{hwif::Eqe::BYTES};
  if (failing_events_ != 0) {
    --failing_events_;
  } else if (!memory(eq.function, address, {eqe.data(), hwif::Eqe::BYTES}, true)) {
    violation("EQ ring is not mapped");
  }
  eq.producer = (eq.producer + 1) & INDEX;
  if (eq.armed) {
    eq.armed = false;
    raise_vector(functions_[eq.function], eq.vector);
  }
}

void FakeNic::async_event(unsigned function, hwif::EqeType type, uint32_t object,
                          hwif::VendorStatus cause) {
  const Function& f = functions_[function];
  if (f.async_eq) write_eqe(*f.async_eq, type, object, cause, 0);
}

void FakeNic::write_cqe(uint32_t cqn, hwif::Cqe cqe) {
  Cq& cq = cqs_[cqn & (cqs_.size() - 1)];
  if (!cq.exists || cq.error) return;
  const uint32_t qpn = cqe.get<hwif::Cqe::qpn>();
  if (((cq.producer - cq.consumed) & INDEX) >> cq.log2 != 0) {
    cq.error = true;
    async_event(cq.function, hwif::EqeType::CQ_ERROR, cq.number, hwif::VendorStatus::CQ_OVERFLOW);
    for (Qp& qp : qps_) {
      if (qp.exists && qp.number == qpn) qp.state = hwif::QpState::ERR;
    }
    return;
  }
  cqe.set<hwif::Cqe::timestamp>(fabric_.now());
  cqe.set<hwif::Cqe::phase>(phase_of(cq.producer, cq.log2));
  const uint64_t address =
      cq.address + (cq.producer & ((1u << cq.log2) - 1)) * uint64_t{hwif::Cqe::BYTES};
  if (!memory(cq.function, address, {cqe.data(), hwif::Cqe::BYTES}, true)) {
    violation("CQ ring is not mapped");
  }
  cq.solicited[cq.producer & 0xffff] =
      cqe.get<hwif::Cqe::solicited>() || cqe.get<hwif::Cqe::status>() != hwif::CqeStatus::SUCCESS;
  cq.producer = (cq.producer + 1) & INDEX;
  if (cq.armed) check_armed(cq);
}

void FakeNic::check_armed(Cq& cq) {
  for (uint32_t i = cq.armed_index; i != cq.producer; i = (i + 1) & INDEX) {
    if (cq.solicited_only && !cq.solicited[i & 0xffff]) continue;
    cq.armed = false;
    write_eqe(cq.eqn, hwif::EqeType::COMPLETION, cq.number, hwif::VendorStatus::NONE, i);
    return;
  }
}

hwif::VendorStatus FakeNic::check_key(unsigned function, uint32_t pd, uint32_t key, uint64_t va,
                                      uint64_t length, bool write, bool remote, bool atomic) {
  using hwif::VendorStatus;
  if (length == 0) return VendorStatus::NONE;
  const uint32_t index = key >> 8;
  if (index >= mrs_.size() || !mrs_[index].exists || mrs_[index].key != key ||
      mrs_[index].function != function) {
    return VendorStatus::KEY_INVALID;
  }
  const Mr& mr = mrs_[index];
  using P = hwif::CreateMrParams;
  if (mr.pd != pd) return VendorStatus::KEY_PD;
  const auto rights = mr.params.get<P::rights>();
  const bool allowed = atomic ? rights.get<hwif::AccessRights::remote_atomic>()
                       : remote ? (write ? rights.get<hwif::AccessRights::remote_write>()
                                       : rights.get<hwif::AccessRights::remote_read>())
                              : !write || rights.get<hwif::AccessRights::local_write>();
  if (!allowed) return VendorStatus::KEY_RIGHTS;
  const uint64_t iova = mr.params.get<P::iova>();
  const uint64_t bytes = mr.params.get<P::length>();
  if (va < iova || va - iova > bytes || length > bytes - (va - iova)) {
    return VendorStatus::KEY_BOUNDS;
  }
  return VendorStatus::NONE;
}

hwif::VendorStatus FakeNic::access(unsigned function, uint32_t pd, uint32_t key, uint64_t va,
                                   std::span<uint8_t> data, bool write, bool remote, bool atomic) {
  using hwif::VendorStatus;
  using P = hwif::CreateMrParams;
  const auto check = check_key(function, pd, key, va, data.size(), write, remote, atomic);
  if (check != VendorStatus::NONE) return check;
  const auto bus = write ? VendorStatus::PAYLOAD_WRITE_BUS : VendorStatus::PAYLOAD_READ_BUS;
  while (!data.empty()) {
    const hwif::CreateMrParams& params = mrs_[key >> 8].params;
    uint64_t offset = va - params.get<P::iova>();
    uint64_t address = params.get<P::table_address>() + offset;
    size_t n = data.size();
    if (!params.get<P::contiguous>()) {
      offset += params.get<P::first_byte_offset>();
      const uint64_t page = uint64_t{1} << params.get<P::page_shift>();
      uint64_t entry = 0;
      ++page_table_reads_;
      if (!memory(function, params.get<P::table_address>() + offset / page * sizeof entry,
                  {reinterpret_cast<uint8_t*>(&entry), sizeof entry}, false)) {
        return VendorStatus::TABLE_BUS;
      }
      if (entry % page != 0) violation("page address is no multiple of the page size");
      address = entry + offset % page;
      n = std::min<size_t>(n, page - offset % page);
    }
    if (!memory(function, address, data.first(n), write)) return bus;
    data = data.subspan(n);
    va += n;
  }
  return VendorStatus::NONE;
}

std::optional<hwif::MptEntry> FakeNic::mpt(uint32_t key) const {
  const uint32_t index = key >> 8;
  if (index >= mrs_.size() || !mrs_[index].exists || mrs_[index].key != key) return std::nullopt;
  using P = hwif::CreateMrParams;
  using E = hwif::MptEntry;
  const hwif::CreateMrParams& p = mrs_[index].params;
  E e{};
  e.set<E::iova>(p.get<P::iova>());
  e.set<E::length>(p.get<P::length>());
  e.set<E::table_address>(p.get<P::table_address>());
  e.set<E::first_byte_offset>(p.get<P::first_byte_offset>());
  e.set<E::rights>(p.get<P::rights>());
  e.set<E::contiguous>(p.get<P::contiguous>());
  e.set<E::page_shift>(p.get<P::page_shift>());
  e.set<E::pd>(static_cast<uint16_t>(mrs_[index].pd));
  return e;
}

}  // namespace roci::test
