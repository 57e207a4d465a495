// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "nicsim/admin_watch.hpp"

#include <algorithm>
#include <cstring>

namespace roci::sim {
namespace {

namespace csr = hwif::csr;

// Rings remembered per function: more than it can have at once, fewer than a program can make in time.
constexpr size_t kMostRings = 4096;

template <class Layout, size_t N>
Layout from_bytes(const uint8_t (&bytes)[N]) {
  static_assert(sizeof(Layout) == N);
  Layout out{};
  std::memcpy(&out, bytes, N);
  return out;
}

}  // namespace

void AdminWatch::written(unsigned function, uint32_t offset, uint64_t value) {
  if (offset < csr::AdminCommandRing::ADDRESS || offset > csr::AdminDoorbell::ADDRESS) return;
  Function& f = functions_[function];
  if (offset == csr::AdminCommandRing::ADDRESS) {
    f.commands = value;
  } else if (offset == csr::AdminRingConfig::ADDRESS) {
    using Config = csr::AdminRingConfig;
    f.log2 = std::min<unsigned>(Config::from_word(value).get<Config::ring_log2>(),
                                hwif::ADMIN_RING_LOG2_MAX);
  } else if (offset == csr::AdminControl::ADDRESS) {
    f.next = 0;
    f.cqs.clear();
  } else if (offset == csr::AdminDoorbell::ADDRESS) {
    using Doorbell = csr::AdminDoorbell;
    look(function, f, Doorbell::from_word(value).get<Doorbell::index>());
  }
}

void AdminWatch::look(unsigned function, Function& f, uint16_t end) {
  const auto count = static_cast<uint16_t>(end - f.next);
  if (count > 1u << f.log2) {  // the NIC refuses it, too
    f.next = end;
    return;
  }
  for (; f.next != end; ++f.next) {
    uint8_t bytes[sizeof(hwif::AdminCommand)];
    const uint64_t slot = f.next & ((1u << f.log2) - 1);
    if (!read_(function, f.commands + slot * sizeof bytes, bytes)) continue;
    look(function, f, from_bytes<hwif::AdminCommand>(bytes));
  }
}

void AdminWatch::look(unsigned function, Function& f, const hwif::AdminCommand& command) {
  using Command = hwif::AdminCommand;
  const auto opcode = command.get<Command::opcode>();
  const uint32_t object = command.get<Command::object>();
  uint8_t params[32];
  std::memcpy(params, reinterpret_cast<const uint8_t*>(&command) + Command::params::AT / 8,
              sizeof params);
  const auto add_ring = [&](uint64_t address, unsigned log2) {
    if (f.cqs.size() == kMostRings) f.cqs.erase(f.cqs.begin());
    f.cqs.push_back({address, sizeof(hwif::Cqe) << std::min(log2, 32u)});
  };
  if (opcode == hwif::AdminOpcode::CREATE_CQ) {
    using Params = hwif::CreateCqParams;
    const auto p = from_bytes<Params>(params);
    add_ring(p.get<Params::ring_address>(), p.get<Params::ring_log2>());
  } else if (opcode == hwif::AdminOpcode::RESIZE_CQ) {
    using Params = hwif::ResizeCqParams;
    const auto p = from_bytes<Params>(params);
    add_ring(p.get<Params::ring_address>(), p.get<Params::ring_log2>());
  } else if (opcode == hwif::AdminOpcode::MODIFY_QP) {
    uint8_t input[sizeof(hwif::ModifyQpInput)];
    if (!events_.modify_qp || command.get<Command::input_length>() != sizeof input ||
        !read_(function, command.get<Command::input_address>(), input)) {
      return;
    }
    events_.modify_qp(function, object, from_bytes<hwif::ModifyQpInput>(input));
  } else if (opcode == hwif::AdminOpcode::DESTROY_QP) {
    if (events_.destroy_qp) events_.destroy_qp(function, object);
  }
}

bool AdminWatch::in_completion_ring(unsigned function, uint64_t address) const {
  const auto found = functions_.find(function);
  if (found == functions_.end()) return false;
  return std::any_of(found->second.cqs.begin(), found->second.cqs.end(), [&](const Ring& ring) {
    return address >= ring.address && address - ring.address < ring.bytes;
  });
}

}  // namespace roci::sim
