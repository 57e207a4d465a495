// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "model/world.hpp"

#include <roci_hwif.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace roci::sim {

namespace {

// Silence after which nothing can be under way any more: longer than reset and boot.
constexpr uint64_t kBootCycles = 2'000'000;

// No timer runs.
constexpr uint32_t kNoTimer = std::numeric_limits<uint32_t>::max();

// A BAR read that takes longer is a hang of the NIC.
constexpr uint64_t kBarReadCycles = 100'000;

// Posted writes that may wait at a NIC: as a bus has credits, whoever writes more waits. So no one's
// flood makes another's read late.
constexpr size_t kMostPosted = 4096;

FabricConfig for_nics(FabricConfig config, unsigned nics, unsigned beat_bytes) {
  config.ports = std::max<size_t>(config.ports, std::max(nics, 2u));
  config.link.beat_bytes = beat_bytes;
  return config;
}

}  // namespace

WorldNic::WorldNic(World& world, unsigned index)
    : world_(world), index_(index), memories_(*this) {
  if (world.config_.guard) guard_ = std::make_unique<DmaGuard>(memories_);
}

std::recursive_mutex& WorldNic::mutex() { return world_.mutex(); }

bool WorldNic::Memories::read(uint16_t function, uint64_t addr, std::span<uint8_t> out) {
  const auto owner = owners.find(function);
  return owner != owners.end() && owner->second->read(addr, out);
}

bool WorldNic::Memories::write(uint16_t function, uint64_t addr, std::span<const uint8_t> data) {
  const auto owner = owners.find(function);
  if (owner == owners.end() || !owner->second->write(addr, data)) return false;
  if (nic_.guard_ != nullptr) nic_.guard_->wrote(nic_.nic().cycle(), function, addr, data);
  return true;
}

std::optional<unsigned> WorldNic::attach(InprocMemory& memory,
                                         std::function<void(unsigned)> interrupt) {
  using Status = hwif::csr::AdminStatus;
  for (unsigned function = 1; function < world_.functions(); ++function) {
    if (memories_.owners.contains(function)) continue;
    // a function that is still being reset for its last client is not free yet
    Status::Value status{};
    status = Status::Value::from_word(bar_read(function, Status::ADDRESS));
    if (status.template get<Status::Value::state>() == hwif::AdminState::RESETTING) continue;
    memories_.owners[function] = &memory;
    interrupts_[function] = std::move(interrupt);
    return function;
  }
  return std::nullopt;
}

void WorldNic::attach_management(InprocMemory& memory, std::function<void(unsigned)> interrupt) {
  memories_.owners[0] = &memory;
  interrupts_[0] = std::move(interrupt);
}

void WorldNic::detach(unsigned function) {
  memories_.owners.erase(function);
  interrupts_.erase(function);
  if (guard_ != nullptr) guard_->forget(static_cast<uint16_t>(function));
  using Control = hwif::csr::AdminControl;
  Control::Value control{};
  control.template set<Control::Value::reset_request>(1);
  post(function, Control::ADDRESS, control.to_word());  // one per client: it need not wait
}

uint64_t WorldNic::bar_read(unsigned function, uint32_t offset) {
  std::optional<uint64_t> value;
  nic_->bar_read(function, offset, [&](uint64_t v, bool) { value = v; });
  for (uint64_t n = 0; !value; ++n) {
    if (n == kBarReadCycles) {
      throw std::runtime_error("NIC " + std::to_string(index_) + " does not answer a read of BAR0 at " +
                               std::to_string(offset));
    }
    world_.run(1);
  }
  return *value;
}

void WorldNic::bar_write(unsigned function, uint32_t offset, uint64_t value) {
  for (uint64_t n = 0; nic_->waiting() >= kMostPosted; ++n) {
    if (n == kBarReadCycles) {
      throw std::runtime_error("NIC " + std::to_string(index_) + " does not take writes of BAR0");
    }
    world_.run(1);
  }
  post(function, offset, value);
}

void WorldNic::post(unsigned function, uint32_t offset, uint64_t value) {
  if (guard_ != nullptr) guard_->bar_write(static_cast<uint16_t>(function), offset, value);
  nic_->bar_write(function, offset, value);
}

void WorldNic::step(uint64_t cycles) { world_.run(cycles); }

std::optional<Neighbour> WorldNic::resolve(const Gid& gid) {
  // GID 1 of NIC i: ::ffff:10.0.0.(i+1)
  static constexpr uint8_t kPrefix[15] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0};
  if (!std::equal(std::begin(kPrefix), std::end(kPrefix), gid.bytes)) return std::nullopt;
  const unsigned index = gid.bytes[15] - 1u;
  if (index >= world_.size()) return std::nullopt;
  Neighbour neighbour;
  const uint64_t mac = world_.nic(index).mac();
  for (unsigned b = 0; b < 6; ++b) {
    neighbour.mac.bytes[b] = static_cast<uint8_t>(mac >> (40 - 8 * b));
  }
  return neighbour;
}

World::World(const WorldConfig& config) : config_(config) {
  if (config.nics == 0) throw std::invalid_argument("a world needs at least one NIC");
  FabricConfig fabric = config.fabric;
  fabric.seed = config.seed;
  fabric_ = std::make_unique<Fabric>(
      for_nics(fabric, config.nics, config.chip == ChipConfig::wide ? 64 : 8));
  for (unsigned n = 0; n < config.nics; ++n) {
    auto nic = std::make_unique<WorldNic>(*this, n);
    NicConfig nic_config;
    nic_config.chip = config.chip;
    nic_config.memory = config.memory;
    nic_config.memory.seed = config.seed * 0x9e3779b97f4a7c15u + n;
    nic_config.seed = config.seed + n;
    nic->nic_ = std::make_unique<Nic>(nic_config, nic->memories_, &fabric_->port(n));
    auto* owner = nic.get();
    nic->nic_->on_interrupt([owner](unsigned function, unsigned vector) {
      const auto handler = owner->interrupts_.find(function);
      if (handler != owner->interrupts_.end()) handler->second(vector);
    });
    fabric_->learn(nic->mac(), n);
    nics_.push_back(std::move(nic));
  }
  quantum_ = std::min<uint64_t>(128, fabric_->lookahead());

  using Mac = hwif::csr::ManagementPortMac;
  using Control = hwif::csr::ManagementPortControl;
  using Firmware = hwif::csr::IdentityFirmware;
  for (auto& nic : nics_) {
    uint64_t word = 0;                       // network order: first byte in bits 7:0
    for (unsigned b = 0; b < 6; ++b) word |= (nic->mac() >> (40 - 8 * b) & 0xff) << (8 * b);
    nic->bar_write(0, Mac::ADDRESS, word);
    Control::Value control{};
    control.template set<Control::Value::enable>(1);
    control.template set<Control::Value::active_mtu>(hwif::Mtu::MTU_4096);
    nic->bar_write(0, Control::ADDRESS, control.to_word());
  }
  for (auto& nic : nics_) {
    Firmware::Value firmware{};
    const uint64_t end = cycle() + kBootCycles;
    do {
      if (cycle() > end) {
        throw std::runtime_error("the firmware of NIC " + std::to_string(nic->index_) +
                                 " does not come up");
      }
      run(1000);
      firmware = Firmware::Value::from_word(nic->bar_read(0, Firmware::ADDRESS));
    } while (firmware.template get<Firmware::Value::state>() != hwif::FirmwareState::READY);
  }
}

bool World::at_rest() const {
  if (fabric_->busy()) return false;
  return std::all_of(nics_.begin(), nics_.end(), [](const auto& n) { return n->nic().at_rest(); });
}

bool World::frozen() const {
  return at_rest() && std::none_of(nics_.begin(), nics_.end(), [](const auto& n) {
    return n->nic().ticks_to_expiry().has_value();
  });
}

uint32_t World::ticks_to_timer() const {
  uint32_t ticks = kNoTimer;
  for (const auto& nic : nics_) {
    if (const auto t = nic->nic().ticks_to_expiry()) ticks = std::min(ticks, *t);
  }
  return ticks;
}

void World::skip(uint32_t ticks) {
  for (auto& nic : nics_) nic->nic().skip_ticks(ticks);
  fabric_->skip_to(fabric_->cycle() + uint64_t{ticks} * nics_.front()->nic().tick_cycles());
}

uint64_t World::pass(uint64_t cycles) {
  if (config_.skip_time && may_skip_ && at_rest()) {
    const uint64_t tick = nics_.front()->nic().tick_cycles();
    // the tick in which a timer acts is simulated
    const uint64_t ticks =
        std::min<uint64_t>(std::max(ticks_to_timer(), uint32_t{1}) - 1, cycles / tick);
    if (ticks != 0) {
      skip(static_cast<uint32_t>(ticks));
      return ticks * tick;
    }
  }
  const uint64_t now = std::clamp<uint64_t>(cycles, 1, quantum_);
  advance(now);
  return now;
}

void World::run(uint64_t cycles) {
  for (uint64_t left = cycles; left != 0;) {
    if (at_rest()) {
      if (frozen()) return;
      if (config_.skip_time && may_skip_) {
        // the tick in which the timer acts is simulated
        if (const uint32_t ticks = ticks_to_timer(); ticks > 1) skip(ticks - 1);
      }
    }
    const uint64_t now = std::min(left, quantum_);
    advance(now);
    left -= now;
  }
}

void World::advance(uint64_t cycles) {
  while (cycles != 0) {
    const uint64_t now = std::min(cycles, quantum_);
    for (auto& nic : nics_) {
      for (uint64_t n = 0; n < now; ++n) nic->nic().step();
    }
    fabric_->advance_to(fabric_->cycle() + now);
    cycles -= now;
  }
}

}  // namespace roci::sim
