// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "model/dma_guard.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace roci::sim {
namespace {

using hwif::AdminCommand;
using hwif::AdminCompletion;
using hwif::AdminOpcode;
namespace csr = hwif::csr;

// Pages of a table that a program could mean.
constexpr uint64_t kMostPages = uint64_t{1} << 20;

template <class Layout>
Layout load(std::span<const uint8_t> bytes) {
  return Layout::load_from(reinterpret_cast<const std::byte*>(bytes.data()));
}

// The command that creates what this one destroys or changes, or itself.
AdminOpcode kind_of(AdminOpcode opcode) {
  switch (opcode) {
    case AdminOpcode::REREG_MR:
    case AdminOpcode::DESTROY_MR: return AdminOpcode::CREATE_MR;
    case AdminOpcode::DESTROY_CQ:
    case AdminOpcode::RESIZE_CQ: return AdminOpcode::CREATE_CQ;
    case AdminOpcode::DESTROY_EQ: return AdminOpcode::CREATE_EQ;
    default: return opcode;
  }
}

}  // namespace

void DmaGuard::bar_write(uint16_t number, uint32_t offset, uint64_t value) {
  Function& function = functions_[number];
  switch (offset) {
    case csr::AdminCommandRing::ADDRESS: function.commands = value; break;
    case csr::AdminCompletionRing::ADDRESS: function.completions = value; break;
    case csr::AdminRingConfig::ADDRESS:
      function.log2 =
          csr::AdminRingConfig::from_word(value).get<csr::AdminRingConfig::ring_log2>();
      break;
    case csr::AdminControl::ADDRESS:
      if (csr::AdminControl::from_word(value).get<csr::AdminControl::enable>()) enable(number);
      break;
    case csr::AdminDoorbell::ADDRESS: {
      const auto index = csr::AdminDoorbell::from_word(value).get<csr::AdminDoorbell::index>();
      const auto count = static_cast<uint16_t>(index - function.posted);
      if (function.log2 > hwif::ADMIN_RING_LOG2_MAX || count > 1u << function.log2) break;
      for (; function.posted != index; ++function.posted) {
        const unsigned slot = function.posted & ((1u << function.log2) - 1);
        take_command(number, function.commands + uint64_t{slot} * AdminCommand::BYTES);
      }
      break;
    }
    default: break;
  }
}

void DmaGuard::enable(uint16_t number) {
  Function fresh;
  fresh.commands = functions_[number].commands;
  fresh.completions = functions_[number].completions;
  fresh.log2 = functions_[number].log2;
  forget(number);
  if (fresh.log2 <= hwif::ADMIN_RING_LOG2_MAX) {
    fresh.rings.push_back(guard_.allow(number, fresh.completions,
                                       uint64_t{AdminCompletion::BYTES} << fresh.log2));
  }
  functions_[number] = std::move(fresh);
}

void DmaGuard::forget(uint16_t number) {
  const auto found = functions_.find(number);
  if (found == functions_.end()) return;
  Function& function = found->second;
  revoke(function.rings);
  for (auto& [id, command] : function.outstanding) {
    revoke(command.output);
    revoke(command.made.ranges);
  }
  for (auto& [key, object] : function.objects) revoke(object.ranges);
  functions_.erase(found);
}

void DmaGuard::revoke(Ranges& ranges) {
  for (const size_t range : ranges) guard_.revoke(range);
  ranges.clear();
}

void DmaGuard::take_command(uint16_t number, uint64_t addr) {
  uint8_t bytes[AdminCommand::BYTES];
  if (!memory_.read(number, addr, bytes)) return;
  const auto command = load<AdminCommand>(bytes);
  Command entry;
  entry.opcode = command.get<AdminCommand::opcode>();
  entry.object = command.get<AdminCommand::object>();
  if (const uint32_t length = command.get<AdminCommand::output_length>(); length != 0) {
    entry.output.push_back(
        guard_.allow(number, command.get<AdminCommand::output_address>(), length));
  }
  entry.made = made_by(number, command);
  functions_[number].outstanding[command.get<AdminCommand::command_id>()] = std::move(entry);
}

DmaGuard::Object DmaGuard::reregistered(uint16_t number, const AdminCommand& command) {
  using I = hwif::ReregMrInput;
  using P = hwif::CreateMrParams;
  uint8_t bytes[I::BYTES];
  const auto& objects = functions_[number].objects;
  const auto old = objects.find({AdminOpcode::CREATE_MR, command.get<AdminCommand::object>()});
  if (old == objects.end()) return {};
  if (!memory_.read(number, command.get<AdminCommand::input_address>(), bytes)) return {};
  const auto input = load<I>(bytes);
  P region = old->second.region;
  const auto fresh = input.get<I::memory>();
  if (input.get<I::change_translation>()) {
    const auto rights = region.get<P::rights>();
    region = fresh;
    region.set<P::rights>(rights);
  }
  if (input.get<I::change_rights>()) region.set<P::rights>(fresh.get<P::rights>());
  return {allow_region(number, region), region};
}

DmaGuard::Object DmaGuard::made_by(uint16_t number, const AdminCommand& command) {
  const auto raw = command.get<AdminCommand::params>();
  const std::span<const uint8_t> params(reinterpret_cast<const uint8_t*>(raw.bytes),
                                        sizeof raw.bytes);
  const auto ring = [&](uint64_t address, unsigned log2, size_t entry) {
    Object object;
    if (log2 <= hwif::CQ_RING_LOG2_MAX) {
      object.ranges.push_back(guard_.allow(number, address, uint64_t{entry} << log2));
    }
    return object;
  };
  switch (command.get<AdminCommand::opcode>()) {
    case AdminOpcode::CREATE_MR: {
      const auto region = load<hwif::CreateMrParams>(params);
      return {allow_region(number, region), region};
    }
    case AdminOpcode::REREG_MR: return reregistered(number, command);
    case AdminOpcode::CREATE_CQ: {
      using P = hwif::CreateCqParams;
      const auto p = load<P>(params);
      return ring(p.get<P::ring_address>(), p.get<P::ring_log2>(), hwif::Cqe::BYTES);
    }
    case AdminOpcode::RESIZE_CQ: {
      using P = hwif::ResizeCqParams;
      const auto p = load<P>(params);
      return ring(p.get<P::ring_address>(), p.get<P::ring_log2>(), hwif::Cqe::BYTES);
    }
    case AdminOpcode::CREATE_EQ: {
      using P = hwif::CreateEqParams;
      const auto p = load<P>(params);
      return ring(p.get<P::ring_address>(), p.get<P::ring_log2>(), hwif::Eqe::BYTES);
    }
    default: return {};
  }
}

DmaGuard::Ranges DmaGuard::allow_region(uint16_t number, const hwif::CreateMrParams& region) {
  using P = hwif::CreateMrParams;
  using R = hwif::AccessRights;
  const auto rights = region.get<P::rights>();
  const bool write = rights.get<R::local_write>() || rights.get<R::remote_write>() ||
                     rights.get<R::remote_atomic>();
  if (!write) return {};
  const uint64_t table = region.get<P::table_address>();
  uint64_t left = region.get<P::length>();
  if (region.get<P::unbounded>()) return {guard_.allow(number, 0, ~uint64_t{0})};
  if (region.get<P::contiguous>()) return {guard_.allow(number, table, left)};
  const unsigned shift = region.get<P::page_shift>();
  if (shift > 30) return {};
  const uint64_t page = uint64_t{1} << shift;
  uint64_t offset = region.get<P::first_byte_offset>();
  Ranges ranges;
  for (uint64_t n = 0; left != 0 && n < kMostPages && offset < page; ++n) {
    uint8_t bytes[8];
    if (!memory_.read(number, table + n * sizeof bytes, bytes)) break;
    uint64_t address = 0;
    for (unsigned b = 0; b < sizeof bytes; ++b) address |= uint64_t{bytes[b]} << (8 * b);
    const uint64_t here = std::min(left, page - offset);
    ranges.push_back(guard_.allow(number, address + offset, here));
    left -= here;
    offset = 0;
  }
  return ranges;
}

void DmaGuard::wrote(uint64_t cycle, uint16_t number, uint64_t addr,
                     std::span<const uint8_t> data) {
  if (data.empty()) return;
  ++judged_;
  const uint64_t before = guard_.violation_count();
  guard_.check({.cycle = cycle, .write = true, .function = number, .addr = addr, .data = data});
  if (guard_.violation_count() != before) {
    throw DmaGuardError("DMA outside what is registered: " + guard_.violations().back());
  }
  const auto found = functions_.find(number);
  if (found == functions_.end() || found->second.rings.empty()) return;
  const uint64_t ring = found->second.completions;
  const uint64_t size = uint64_t{AdminCompletion::BYTES} << found->second.log2;
  // a completion is there when its last byte is
  const uint64_t last = addr + (data.size() - 1);
  if (last - ring < size && (last - ring) % AdminCompletion::BYTES == AdminCompletion::BYTES - 1) {
    take_completion(number, last - (AdminCompletion::BYTES - 1));
  }
}

void DmaGuard::take_completion(uint16_t number, uint64_t addr) {
  uint8_t bytes[AdminCompletion::BYTES];
  if (!memory_.read(number, addr, bytes)) return;
  const auto completion = load<AdminCompletion>(bytes);
  Function& function = functions_[number];
  const auto found = function.outstanding.find(completion.get<AdminCompletion::command_id>());
  if (found == function.outstanding.end()) return;
  Command command = std::move(found->second);
  function.outstanding.erase(found);
  revoke(command.output);
  if (completion.get<AdminCompletion::status>() != hwif::AdminStatus::OK) {
    revoke(command.made.ranges);
    return;
  }
  switch (command.opcode) {
    case AdminOpcode::CREATE_MR:
    case AdminOpcode::CREATE_CQ:
    case AdminOpcode::CREATE_EQ:
      function.objects[{command.opcode, completion.get<AdminCompletion::object>()}] =
          std::move(command.made);
      break;
    case AdminOpcode::REREG_MR:
    case AdminOpcode::RESIZE_CQ: {
      Object& object = function.objects[{kind_of(command.opcode), command.object}];
      revoke(object.ranges);
      object = std::move(command.made);
      break;
    }
    default: {
      const auto object = function.objects.find({kind_of(command.opcode), command.object});
      if (object == function.objects.end()) break;
      revoke(object->second.ranges);
      function.objects.erase(object);
    }
  }
}

}  // namespace roci::sim
