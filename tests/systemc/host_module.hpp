// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The host of a SystemC NIC: BAR0 accesses of the real host core become TLM transactions, and its memory
// answers those of the NIC. The core runs outside of the simulation and lets it run while it waits.
#pragma once

#include <roci/inproc.hpp>

#include <deque>
#include <map>

#include "systemc/nic_module.hpp"

namespace roci::test {

/// One host; its clients have one function.
class HostModule final : public sc_core::sc_module,
                         public InprocNic,
                         private tlm::tlm_analysis_if<sim::Interrupt> {
 public:
  tlm_utils::simple_initiator_socket<HostModule, 64> bar{"bar"};
  tlm_utils::simple_target_socket<HostModule, 512> memory{"memory"};
  sc_core::sc_export<tlm::tlm_analysis_if<sim::Interrupt>> interrupts{"interrupts"};

  HostModule(sc_core::sc_module_name name, sc_core::sc_time period)
      : sc_module(name), period_(period) {
    memory.register_b_transport(this, &HostModule::serve_memory);
    interrupts.bind(*this);
    SC_HAS_PROCESS(HostModule);
    SC_THREAD(serve_bar);
  }

  std::recursive_mutex& mutex() override { return mutex_; }
  std::optional<unsigned> attach(InprocMemory& owner, std::function<void(unsigned)> raised) override {
    if (owner_ != nullptr) return std::nullopt;
    owner_ = &owner;
    raised_ = std::move(raised);
    return kFunction;
  }
  void detach(unsigned) override {
    owner_ = nullptr;
    raised_ = nullptr;
  }
  uint64_t bar_read(unsigned function, uint32_t offset) override {
    uint64_t value = 0;
    REQUIRE(transact(address(function, offset), value, false) == tlm::TLM_OK_RESPONSE);
    return value;
  }
  void bar_write(unsigned function, uint32_t offset, uint64_t value) override {
    REQUIRE(transact(address(function, offset), value, true) == tlm::TLM_OK_RESPONSE);
  }
  void step(uint64_t cycles) override { sc_core::sc_start(static_cast<double>(cycles) * period_); }
  std::optional<Neighbour> resolve(const Gid&) override { return std::nullopt; }

  /// One access of `bytes` bytes of BAR0, as a master on the bus does it. @return its response
  tlm::tlm_response_status transact(uint64_t at, uint64_t& value, bool write, unsigned bytes = 8) {
    Access access{at, &value, write, bytes};
    accesses_.push_back(&access);
    posted_.notify(sc_core::SC_ZERO_TIME);
    for (unsigned n = 0; !access.done; ++n) {
      REQUIRE(n < 100'000);
      step(1);
    }
    return access.response;
  }

  static uint64_t address(unsigned function, uint32_t offset) {
    return uint64_t{function} << sim::Chip::kBarBits | offset;
  }

  /// DMA transactions of the NIC so far, and interrupts.
  uint64_t reads = 0, writes = 0, bus_errors = 0, raised = 0;

  static constexpr unsigned kFunction = 1;

 private:
  struct Access {
    uint64_t address;
    uint64_t* value;
    bool write;
    unsigned bytes;
    bool done = false;
    tlm::tlm_response_status response = tlm::TLM_INCOMPLETE_RESPONSE;
  };

  void serve_bar() {
    for (;;) {
      while (accesses_.empty()) wait(posted_);
      Access& access = *accesses_.front();
      accesses_.pop_front();
      tlm::tlm_generic_payload payload;
      payload.set_command(access.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
      payload.set_address(access.address);
      payload.set_data_ptr(reinterpret_cast<unsigned char*>(access.value));
      payload.set_data_length(access.bytes);
      payload.set_streaming_width(access.bytes);
      payload.set_byte_enable_ptr(nullptr);
      payload.set_dmi_allowed(false);
      payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
      sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
      bar->b_transport(payload, delay);
      wait(delay);
      access.response = payload.get_response_status();
      access.done = true;
    }
  }

  void serve_memory(tlm::tlm_generic_payload& payload, sc_core::sc_time&) {
    const auto* extension = payload.get_extension<sim::FunctionExtension>();
    REQUIRE(extension != nullptr);
    const size_t bytes = payload.get_data_length();
    bool good = extension->function == kFunction && owner_ != nullptr;
    if (payload.is_read()) {
      ++reads;
      good = good && owner_->read(payload.get_address(), {payload.get_data_ptr(), bytes});
    } else {
      ++writes;
      good = good && owner_->write(payload.get_address(), {payload.get_data_ptr(), bytes});
    }
    if (!good) ++bus_errors;
    payload.set_response_status(good ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
  }

  void write(const sim::Interrupt& interrupt) override {
    ++raised;
    if (interrupt.function == kFunction && raised_) raised_(interrupt.vector);
  }

  sc_core::sc_time period_;
  std::recursive_mutex mutex_;
  InprocMemory* owner_ = nullptr;
  std::function<void(unsigned)> raised_;
  std::deque<Access*> accesses_;
  sc_core::sc_event posted_;
};

}  // namespace roci::test
