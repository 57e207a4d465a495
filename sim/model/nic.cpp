// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "model/nic.hpp"

#include <limits>
#include <stdexcept>
#include <utility>

namespace roci::sim {

namespace {

HostMemoryConfig for_chip(HostMemoryConfig config, const Chip& chip) {
  config.data_bytes = chip.data_bytes();
  return config;
}

}  // namespace

Nic::Nic(const NicConfig& config, DmaTarget& target, Port* port)
    : config_(config),
      chip_(make_chip(config.chip, config.seed)),
      memory_(for_chip(config.memory, *chip_), target),
      port_(port),
      out_(&chip_->settle(in_)) {}

void Nic::bar_write(unsigned function, uint32_t offset, uint64_t value) {
  accesses_.push_back({true, function << Chip::kBarBits | offset, value, {}});
}

void Nic::bar_read(unsigned function, uint32_t offset, ReadDone done) {
  accesses_.push_back({false, function << Chip::kBarBits | offset, 0, std::move(done)});
}

void Nic::reset() {
  reset_left_ = 8;
  accesses_.clear();
  address_sent_ = data_sent_ = false;
  memory_.reset();
  quiet_ = 0;
}

void Nic::apply_bar() {
  const bool waiting = !accesses_.empty() && out_->ready && !in_.reset;
  const bool write = waiting && accesses_.front().write;
  in_.bar_aw_valid = write && !address_sent_;
  in_.bar_w_valid = write && !data_sent_;
  in_.bar_ar_valid = waiting && !write && !address_sent_;
  if (waiting) {
    in_.bar_aw_addr = in_.bar_ar_addr = accesses_.front().address;
    in_.bar_w_data = accesses_.front().data;
  }
}

void Nic::watch_bar() {
  if (in_.bar_aw_valid && out_->bar_aw_ready) address_sent_ = true;
  if (in_.bar_w_valid && out_->bar_w_ready) data_sent_ = true;
  if (in_.bar_ar_valid && out_->bar_ar_ready) address_sent_ = true;
  if (out_->bar_b_valid) {
    accesses_.pop_front();
    address_sent_ = data_sent_ = false;
  }
  if (out_->bar_r_valid) {
    const auto done = std::move(accesses_.front().done);
    accesses_.pop_front();
    address_sent_ = data_sent_ = false;
    if (done) done(out_->bar_r_data, out_->bar_r_resp != 0);
  }
}

void Nic::step() {
  in_.reset = reset_left_ != 0;
  if (reset_left_ != 0) --reset_left_;
  in_.ar_ready = memory_.ar_ready();
  in_.aw_ready = memory_.aw_ready();
  in_.w_ready = memory_.w_ready();
  in_.r = memory_.r();
  in_.b = memory_.b();
  in_.tx_ready = port_ == nullptr || port_->tx_ready();
  in_.rx = port_ == nullptr ? nullptr : port_->rx();
  apply_bar();
  out_ = &chip_->settle(in_);

  const bool busy = in_.reset || !out_->ready || out_->active || !accesses_.empty() ||
                    memory_.busy() || out_->tx_valid || in_.rx != nullptr || out_->irq_valid;
  quiet_ = busy ? 0 : quiet_ + (quiet_ != std::numeric_limits<unsigned>::max());

  if (!in_.reset) {
    watch_bar();
    memory_.step(out_->axi);
    if (out_->irq_valid && interrupt_) interrupt_(out_->irq_function, out_->irq_vector);
  }
  if (port_ != nullptr) port_->clock(out_->tx_valid && !in_.reset ? &out_->tx : nullptr);
  chip_->clock();
  in_.time_step = 0;
  ++cycle_;
  ++simulated_;
}

std::optional<uint32_t> Nic::ticks_to_expiry() const {
  if (!out_->expiry_valid || out_->expiry_ticks == std::numeric_limits<uint32_t>::max()) {
    return std::nullopt;
  }
  return out_->expiry_ticks;
}

void Nic::skip_ticks(uint32_t ticks) {
  if (!at_rest()) throw std::logic_error("time can be skipped only while the NIC rests");
  in_.time_step = ticks;
  cycle_ += uint64_t{ticks} * chip_->tick_cycles();
  quiet_ = 0;
}

}  // namespace roci::sim
