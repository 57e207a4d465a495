// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "systemc/nic_module.hpp"

#include <cstring>
#include <stdexcept>

namespace roci::sim {

namespace {

constexpr size_t kStackBytes = 4 << 20;        // of the thread that evaluates the model

FabricConfig mac_config(const NicConfig& config, Rate rate) {
  FabricConfig fabric;
  fabric.ports = 2;
  fabric.topology = Topology::back_to_back;
  fabric.link.rate = rate;
  fabric.link.latency = 1;                     // the wire is outside
  fabric.link.beat_bytes = config.chip == ChipConfig::wide ? 64 : 8;
  fabric.seed = config.seed;
  return fabric;
}

}  // namespace

// The name goes by value, as SystemC has it.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
NicModule::NicModule(sc_core::sc_module_name name, const NicConfig& config, Rate rate,
                     unsigned cycles_per_wait)
    : sc_module(name),
      cycles_per_wait_(cycles_per_wait),
      period_(config.chip == ChipConfig::wide ? 4 : 8, sc_core::SC_NS),
      mac_(std::make_unique<Fabric>(mac_config(config, rate))) {
  if (cycles_per_wait == 0) throw std::invalid_argument("a NIC runs at least one cycle per wait");
  nic_ = std::make_unique<Nic>(config, static_cast<DmaTarget&>(*this), &mac_->port(0));
  nic_->on_interrupt(
      [this](unsigned function, unsigned vector) { interrupts.write({function, vector}); });
  mac_->port(1).on_frame([this](const ReceivedFrame& frame) {
    eth_out.write({{frame.bytes.begin(), frame.bytes.end()}, frame.bad});
  });
  bar.register_b_transport(this, &NicModule::access);
  eth_in.bind(*this);
  SC_HAS_PROCESS(NicModule);
  SC_THREAD(run);
  set_stack_size(kStackBytes);
}

void NicModule::run() {
  for (;;) {
    for (unsigned n = 0; n < cycles_per_wait_; ++n) {
      nic_->step();
      mac_->step();
    }
    wait(cycles_per_wait_ * period_);
  }
}

void NicModule::access(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  if (payload.get_data_length() != 8 || payload.get_byte_enable_ptr() != nullptr ||
      payload.get_streaming_width() < 8 || payload.get_address() % 8 != 0) {
    payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
    return;
  }
  const unsigned functions = nic_->data_bytes() == 64 ? 16 : 8;
  const auto function = payload.get_address() >> Chip::kBarBits;
  if (function >= functions) {
    payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    return;
  }
  const auto offset =
      static_cast<uint32_t>(payload.get_address() & ((uint64_t{1} << Chip::kBarBits) - 1));
  if (payload.is_write()) {
    uint64_t value = 0;
    std::memcpy(&value, payload.get_data_ptr(), 8);
    nic_->bar_write(static_cast<unsigned>(function), offset, value);
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    return;
  }
  if (!payload.is_read()) {
    payload.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
    return;
  }
  wait(delay);
  delay = sc_core::SC_ZERO_TIME;
  sc_core::sc_event answered;
  bool done = false;
  bool failed = false;
  nic_->bar_read(static_cast<unsigned>(function), offset, [&](uint64_t value, bool error) {
    std::memcpy(payload.get_data_ptr(), &value, 8);
    failed = error;
    done = true;
    answered.notify(sc_core::SC_ZERO_TIME);
  });
  while (!done) wait(answered);
  payload.set_response_status(failed ? tlm::TLM_ADDRESS_ERROR_RESPONSE : tlm::TLM_OK_RESPONSE);
}

bool NicModule::transfer(tlm::tlm_command command, uint16_t function, uint64_t address,
                         uint8_t* data, size_t bytes) {
  FunctionExtension extension;
  extension.function = function;
  tlm::tlm_generic_payload payload;
  payload.set_command(command);
  payload.set_address(address);
  payload.set_data_ptr(data);
  payload.set_data_length(static_cast<unsigned>(bytes));
  payload.set_streaming_width(static_cast<unsigned>(bytes));
  payload.set_byte_enable_ptr(nullptr);
  payload.set_dmi_allowed(false);
  payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  payload.set_extension(&extension);
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  dma->b_transport(payload, delay);
  payload.clear_extension(&extension);
  return payload.is_response_ok();
}

bool NicModule::read(uint16_t function, uint64_t addr, std::span<uint8_t> out) {
  return transfer(tlm::TLM_READ_COMMAND, function, addr, out.data(), out.size());
}

bool NicModule::write(uint16_t function, uint64_t addr, std::span<const uint8_t> data) {
  // A target does not change what a write gives it.
  return transfer(tlm::TLM_WRITE_COMMAND, function, addr, const_cast<uint8_t*>(data.data()),
                  data.size());
}

void NicModule::write(const EthernetFrame& frame) { mac_->port(1).send(frame.bytes, frame.bad); }

}  // namespace roci::sim
