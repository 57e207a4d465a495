// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Chip over a Verilated class. Both configurations have the same port names and differ in widths;
// included by chip_wide.cpp and chip_narrow.cpp only.
#pragma once

#include <verilated.h>

#include <cstring>
#include <memory>
#include <type_traits>

#include "model/chip.hpp"

namespace roci::sim {

namespace detail {

/// Bytes out of a port of 64 bits or of an array of words; host and model are little endian.
template <class Port>
void port_to_bytes(const Port& port, uint8_t* out) {
  std::memcpy(out, &port, sizeof(Port));
}
template <class Port>
void bytes_to_port(const uint8_t* in, Port& port) {
  std::memcpy(&port, in, sizeof(Port));
}

}  // namespace detail

/// @tparam Model        Verilated roci_top
/// @tparam TickCycles   cycles per 4.096 µs
/// @tparam CpuDivider   core cycles per CPU cycle
template <class Model, unsigned TickCycles, unsigned CpuDivider>
class VerilatedChip final : public Chip {
 public:
  static constexpr unsigned kBytes = sizeof(Model::m_axi_wdata);

  explicit VerilatedChip(uint64_t seed) : context_(std::make_unique<VerilatedContext>()) {
    context_->threads(1);
    context_->randReset(2);
    context_->randSeed(static_cast<int>(seed % 0x7ffffffe + 1));
    Verilated::threadContextp(context_.get());
    model_ = std::make_unique<Model>(context_.get(), "chip");
    model_->clk_i = 0;
    model_->cpu_clk_i = 0;
    model_->irq_ready = 1;
    model_->s_axil_bready = 1;
    model_->s_axil_rready = 1;
    model_->s_axil_wstrb = 0xff;
    model_->link_up_i = 1;
    model_->link_mbps_i = kBytes == 64 ? 100000 : 1000;
  }
  ~VerilatedChip() override {
    Verilated::threadContextp(context_.get());
    model_->final();
    model_.reset();
  }
  VerilatedChip(const VerilatedChip&) = delete;
  VerilatedChip& operator=(const VerilatedChip&) = delete;

  unsigned data_bytes() const override { return kBytes; }
  unsigned tick_cycles() const override { return TickCycles; }

  const ChipOutputs& settle(const ChipInputs& in) override {
    Model& m = *model_;
    m.rst_i = in.reset;
    m.m_axi_arready = in.ar_ready;
    m.m_axi_awready = in.aw_ready;
    m.m_axi_wready = in.w_ready;
    m.m_axi_rvalid = in.r != nullptr;
    if (in.r) {
      detail::bytes_to_port(in.r->data.data(), m.m_axi_rdata);
      m.m_axi_rid = static_cast<std::remove_reference_t<decltype(m.m_axi_rid)>>(in.r->id);
      m.m_axi_rresp = static_cast<CData>(in.r->resp);
      m.m_axi_rlast = in.r->last;
    }
    m.m_axi_bvalid = in.b != nullptr;
    if (in.b) m.m_axi_bresp = static_cast<CData>(in.b->resp);
    m.s_axil_awvalid = in.bar_aw_valid;
    m.s_axil_awaddr = in.bar_aw_addr;
    m.s_axil_wvalid = in.bar_w_valid;
    m.s_axil_wdata = in.bar_w_data;
    m.s_axil_arvalid = in.bar_ar_valid;
    m.s_axil_araddr = in.bar_ar_addr;
    m.m_axis_tready = in.tx_ready;
    m.s_axis_tvalid = in.rx != nullptr;
    if (in.rx) {
      detail::bytes_to_port(in.rx->data.data(), m.s_axis_tdata);
      const uint64_t keep = in.rx->bytes >= 64 ? ~uint64_t{0} : (uint64_t{1} << in.rx->bytes) - 1;
      m.s_axis_tkeep = static_cast<std::remove_reference_t<decltype(m.s_axis_tkeep)>>(keep);
      m.s_axis_tlast = in.rx->last;
      m.s_axis_tuser = in.rx->bad;
    }
    m.time_step_i = in.time_step;
    m.clk_i = 0;
    m.eval();
    show();
    return out_;
  }

  void clock() override {
    Model& m = *model_;
    m.clk_i = 1;
    if constexpr (CpuDivider == 1) {
      m.cpu_clk_i = 1;
    } else {
      m.cpu_clk_i = cycle_ % CpuDivider == 0;
    }
    m.eval();
    if constexpr (CpuDivider == 1) m.cpu_clk_i = 0;      // falls with clk_i in the next settle
    ++cycle_;
  }

 private:
  void show() {
    const Model& m = *model_;
    AxiMaster& a = out_.axi;
    a.ar_valid = m.m_axi_arvalid;
    if (a.ar_valid) {
      a.ar = {.addr = m.m_axi_araddr,
              .id = m.m_axi_arid,
              .len = m.m_axi_arlen,
              .size = m.m_axi_arsize,
              .burst = m.m_axi_arburst,
              .user = m.m_axi_aruser};
    }
    a.aw_valid = m.m_axi_awvalid;
    if (a.aw_valid) {
      a.aw = {.addr = m.m_axi_awaddr,
              .id = 0,
              .len = m.m_axi_awlen,
              .size = m.m_axi_awsize,
              .burst = m.m_axi_awburst,
              .user = m.m_axi_awuser};
    }
    a.w_valid = m.m_axi_wvalid;
    if (a.w_valid) {
      detail::port_to_bytes(m.m_axi_wdata, a.w.data.data());
      a.w.strb = m.m_axi_wstrb;
      a.w.last = m.m_axi_wlast;
    }
    a.r_ready = m.m_axi_rready;
    a.b_ready = m.m_axi_bready;

    out_.bar_aw_ready = m.s_axil_awready;
    out_.bar_w_ready = m.s_axil_wready;
    out_.bar_b_valid = m.s_axil_bvalid;
    out_.bar_b_resp = m.s_axil_bresp;
    out_.bar_ar_ready = m.s_axil_arready;
    out_.bar_r_valid = m.s_axil_rvalid;
    out_.bar_r_data = m.s_axil_rdata;
    out_.bar_r_resp = m.s_axil_rresp;

    out_.tx_valid = m.m_axis_tvalid;
    if (out_.tx_valid) {
      detail::port_to_bytes(m.m_axis_tdata, out_.tx.data.data());
      out_.tx.bytes = static_cast<uint8_t>(__builtin_popcountll(m.m_axis_tkeep));
      // what a keep mask without holes leaves out is undefined on the wire: zero for whoever looks
      std::memset(out_.tx.data.data() + out_.tx.bytes, 0, 64u - out_.tx.bytes);
      out_.tx.last = m.m_axis_tlast;
      out_.tx.bad = m.m_axis_tlast && m.m_axis_tuser;
    }

    out_.irq_valid = m.irq_valid;
    out_.irq_function = m.irq_fn;
    out_.irq_vector = m.irq_vector;
    out_.ready = m.ready_o;
    out_.active = m.active_o;
    out_.expiry_valid = m.next_expiry_valid_o;
    out_.expiry_ticks = m.next_expiry_o;
    out_.disabled_functions = m.fn_disabled_o;
  }

  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Model> model_;
  ChipOutputs out_;
  uint64_t cycle_ = 0;
};

}  // namespace roci::sim
