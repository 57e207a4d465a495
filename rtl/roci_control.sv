// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// roci_control: everything that is not on the way of a packet: BAR0, doorbells, interrupts, the CPU
// with its firmware, and the context blocks that all others ask or listen to. Wiring; the
// only state counts admin commands under way.
//
//   BAR0 ► host_csr ► host_doorbell ► doorbells to the queues
//              └► cpu_subsystem ► context bus to every owner of a column
//   context_qp_state, context_fence, context_port, context_timer ► broadcasts
//   context_mr_check ► context_mtt_cache: address answers for TX and RX
`default_nettype none

module roci_control #(
  parameter string FIRMWARE = "",               // image for the CPU's memory
  parameter int unsigned ERRORS = 5,            // blocks that may ask for ERR
  parameter int unsigned UNITS = 12             // blocks that hold work (fence)
) (
  input  wire                               clk_i,
  input  wire                               rst_i,
  input  wire                               cpu_clk_i,     // core clock, or half of it in narrow
  output logic                              ready_o,

  // BAR0, AXI4-Lite
  input  wire                               axil_awvalid_i,
  output logic                              axil_awready_o,
  input  wire [cpu_pkg::BAR_ADDR_BITS-1:0]  axil_awaddr_i,
  input  wire                               axil_wvalid_i,
  output logic                              axil_wready_o,
  input  wire [63:0]                        axil_wdata_i,
  input  wire [7:0]                         axil_wstrb_i,
  output logic                              axil_bvalid_o,
  input  wire                               axil_bready_i,
  output logic [1:0]                        axil_bresp_o,
  input  wire                               axil_arvalid_i,
  output logic                              axil_arready_o,
  input  wire [cpu_pkg::BAR_ADDR_BITS-1:0]  axil_araddr_i,
  output logic                              axil_rvalid_o,
  input  wire                               axil_rready_i,
  output logic [63:0]                       axil_rdata_o,
  output logic [1:0]                        axil_rresp_o,

  // interrupts out; what raises them
  output logic                              irq_valid_o,
  input  wire                               irq_ready_i,
  output cpu_pkg::irq_raise_t               irq_o,
  input  wire                               raise_valid_i,     // eq_writer, always accepted
  input  wire cpu_pkg::irq_raise_t          raise_i,

  // context bus: to all owners, and the answers of those outside
  output roci_pkg::ctx_req_t                ctx_o,
  input  wire roci_pkg::ctx_rsp_t           ctx_i,

  // broadcasts
  output logic                              doorbell_valid_o,
  output roci_pkg::doorbell_t               doorbell_o,
  output roci_pkg::state_bcast_t            state_o,
  output roci_pkg::rnr_bcast_t              rnr_o,
  output roci_pkg::port_t                   port_o,
  output logic                              port_enable_o,
  output roci_pkg::colour_t                 colour_o,
  output logic [63:0]                       clock_o,
  output logic [cpu_pkg::FNS-1:0]           fn_disabled_o,

  // QP state, events
  input  wire [ERRORS-1:0]                  error_valid_i,
  output logic [ERRORS-1:0]                 error_ready_o,
  input  wire roci_pkg::state_error_t [ERRORS-1:0] error_i,
  output logic                              state_event_valid_o,
  input  wire                               state_event_ready_i,
  output roci_pkg::event_t                  state_event_o,
  output logic                              cpu_event_valid_o,
  input  wire                               cpu_event_ready_i,
  output roci_pkg::event_t                  cpu_event_o,
  input  wire roci_pkg::fence_busy_t [UNITS-1:0] fence_busy_i,   // without those in here
  output roci_pkg::fence_busy_t             fence_busy_o,        // of those in here
  output logic                              commands_o,          // admin commands are under way

  // address answers, client 0 TX, 1 RX
  input  wire [1:0]                         xlat_valid_i,
  output logic [1:0]                        xlat_ready_o,
  input  wire roci_pkg::xlat_req_t [1:0]    xlat_i,
  output logic [1:0]                        answer_valid_o,
  input  wire [1:0]                         answer_ready_i,
  output roci_pkg::xlat_rsp_t [1:0]         answer_o,

  // timers
  input  wire roci_pkg::ack_state_t         ack_state_i,
  input  wire roci_pkg::sent_t              sent_i,
  input  wire context_pkg::rewound_t        rewound_i,
  input  wire                               rnr_valid_i,
  output logic                              rnr_ready_o,
  input  wire roci_pkg::rnr_wait_t          rnr_i,
  output logic                              report_valid_o,
  input  wire                               report_ready_i,
  output roci_pkg::timer_report_t           report_o,
  input  wire [31:0]                        time_step_i,
  output logic                              next_expiry_valid_o,
  output logic [31:0]                       next_expiry_o,

  // DMA clients MTT and CPU, write level CPU
  output logic                              mtt_dma_valid_o,
  input  wire                               mtt_dma_ready_i,
  output roci_pkg::dma_read_req_t           mtt_dma_o,
  input  wire                               mtt_beat_valid_i,
  output logic                              mtt_beat_ready_o,
  input  wire roci_pkg::read_beat_t         mtt_beat_i,
  output logic                              cpu_dma_valid_o,
  input  wire                               cpu_dma_ready_i,
  output roci_pkg::dma_read_req_t           cpu_dma_o,
  input  wire                               cpu_beat_valid_i,
  output logic                              cpu_beat_ready_o,
  input  wire roci_pkg::read_beat_t         cpu_beat_i,
  output logic                              cpu_write_valid_o,
  input  wire                               cpu_write_ready_i,
  output roci_pkg::dma_write_req_t          cpu_write_o,
  output logic                              cpu_data_valid_o,
  input  wire                               cpu_data_ready_i,
  output roci_pkg::write_beat_t             cpu_data_o,
  input  wire                               cpu_token_valid_i,
  output logic                              cpu_token_ready_o,
  input  wire roci_pkg::token_t             cpu_token_i,

  // board, counters
  input  wire                               link_up_i,
  input  wire [31:0]                        speed_mbps_i,
  input  wire [127:0]                       pulse_i,          // bit n: counter n of enum `counter`
  input  wire [5:0][13:0]                   amount_i
);

  // ------------------------------------------------------------------------------ BAR0, doorbells
  logic ring_valid, ring_ready;
  cpu_pkg::bar_doorbell_t ring;
  cpu_pkg::irq_write_t irq_write;
  roci_pkg::fn_t irq_fn;
  logic [7:0] irq_masked, irq_pending;
  logic fetch_valid, fetch_ready, place_valid, place_ready, place_done, order_valid, order_ready;
  cpu_pkg::admin_fetch_t fetch;
  cpu_pkg::admin_place_t place;
  cpu_pkg::admin_order_t order;
  roci_pkg::fn_t place_fn;
  logic [cpu_pkg::FNS-1:0] fn_enabled, fn_failed;
  logic cpu_trap, cpu_hold, load_valid, written;
  cpu_pkg::ram_addr_t load_addr;
  logic [63:0] load_data;
  logic bell_error_valid;
  roci_pkg::fn_t bell_error_fn;
  roci_count_pkg::doorbell_counters_t bell_count;
  cpu_pkg::cpu_counters_t cpu_count;
  logic key_error, mtt_hit, mtt_miss, count_interrupt;

  // counters of the blocks in here join those of the outside
  logic [127:0] pulse;
  always_comb begin
    pulse = pulse_i;
    pulse[7'(roci_hwif_pkg::COUNTER_DOORBELLS)] = bell_count.doorbells;
    pulse[7'(roci_hwif_pkg::COUNTER_DOORBELL_ERROR_KIND)] = bell_count.doorbell_error_kind;
    pulse[7'(roci_hwif_pkg::COUNTER_DOORBELL_ERROR_OBJECT)] = bell_count.doorbell_error_object;
    pulse[7'(roci_hwif_pkg::COUNTER_DOORBELL_ERROR_PAGE)] = bell_count.doorbell_error_page;
    pulse[7'(roci_hwif_pkg::COUNTER_DOORBELL_ERROR_INDEX)] = bell_count.doorbell_error_index;
    pulse[7'(roci_hwif_pkg::COUNTER_INTERRUPTS)] = count_interrupt;
    pulse[7'(roci_hwif_pkg::COUNTER_QP_ERRORS)] = state_o.valid && state_o.state == roci_pkg::QPS_ERR;
    pulse[7'(roci_hwif_pkg::COUNTER_MTT_HITS)] = mtt_hit;
    pulse[7'(roci_hwif_pkg::COUNTER_MTT_MISSES)] = mtt_miss;
    pulse[7'(roci_hwif_pkg::COUNTER_KEY_ERRORS)] = key_error;
    pulse[7'(roci_hwif_pkg::COUNTER_ADMIN_COMMANDS)] = cpu_count.admin_commands;
    pulse[7'(roci_hwif_pkg::COUNTER_ADMIN_ERRORS)] = cpu_count.admin_errors;
    pulse[7'(roci_hwif_pkg::COUNTER_FUNCTION_RESETS)] = cpu_count.function_resets;
  end

  // --------------------------------------------------------------------------------- context bus
  roci_pkg::ctx_rsp_t ctx_csr, ctx_bell, ctx_state, ctx_fence, ctx_port, ctx_mr, ctx_timer, ctx_all;
  assign ctx_all = ctx_csr | ctx_bell | ctx_state | ctx_fence | ctx_port | ctx_mr | ctx_timer
                   | ctx_i;

  host_csr u_csr (
    .clk_i, .rst_i,
    .axil_awvalid_i, .axil_awready_o, .axil_awaddr_i, .axil_wvalid_i, .axil_wready_o,
    .axil_wdata_i, .axil_wstrb_i, .axil_bvalid_o, .axil_bready_i, .axil_bresp_o,
    .axil_arvalid_i, .axil_arready_o, .axil_araddr_i, .axil_rvalid_o, .axil_rready_i,
    .axil_rdata_o, .axil_rresp_o,
    .ring_valid_o(ring_valid), .ring_ready_i(ring_ready), .ring_o(ring),
    .irq_write_o(irq_write), .irq_fn_o(irq_fn), .irq_masked_i(irq_masked),
    .irq_pending_i(irq_pending),
    .fetch_valid_o(fetch_valid), .fetch_ready_i(fetch_ready), .fetch_o(fetch),
    .place_valid_i(place_valid), .place_ready_o(place_ready), .place_fn_i(place_fn),
    .place_done_o(place_done), .place_o(place),
    .order_valid_i(order_valid), .order_ready_o(order_ready), .order_i(order),
    .fn_enabled_o(fn_enabled), .fn_disabled_o, .fn_failed_o(fn_failed),
    .ctx_i(ctx_o), .ctx_o(ctx_csr), .clock_i(clock_o), .link_up_i, .speed_mbps_i,
    .port_enable_o, .trap_i(cpu_trap), .cpu_hold_o(cpu_hold),
    .load_valid_o(load_valid), .load_addr_o(load_addr), .load_data_o(load_data),
    .written_o(written), .pulse_i(pulse), .amount_i
  );
  host_doorbell u_doorbell (
    .clk_i, .rst_i, .ctx_i(ctx_o), .ctx_o(ctx_bell),
    .ring_valid_i(ring_valid), .ring_ready_o(ring_ready), .ring_i(ring),
    .doorbell_valid_o, .doorbell_o,
    .error_valid_o(bell_error_valid), .error_fn_o(bell_error_fn), .count_o(bell_count)
  );

  // ------------------------------------------------------------------------------- CPU, interrupts
  logic cpu_irq_valid, cpu_active;
  cpu_pkg::irq_raise_t cpu_irq;

  cpu_subsystem #(.FIRMWARE(FIRMWARE)) u_cpu (
    .clk_i, .rst_i, .cpu_clk_i, .hold_i(cpu_hold), .trap_o(cpu_trap),
    .load_valid_i(load_valid), .load_addr_i(load_addr), .load_data_i(load_data),
    .written_i(written),
    .fetch_valid_i(fetch_valid), .fetch_ready_o(fetch_ready), .fetch_i(fetch),
    .place_valid_o(place_valid), .place_ready_i(place_ready), .place_fn_o(place_fn),
    .place_done_i(place_done), .place_i(place),
    .order_valid_o(order_valid), .order_ready_i(order_ready), .order_o(order),
    .fn_enabled_i(fn_enabled), .fn_resetting_i(fn_disabled_o), .fn_failed_i(fn_failed),
    .bell_error_valid_i(bell_error_valid), .bell_error_fn_i(bell_error_fn),
    .clock_i(clock_o), .ctx_o, .ctx_i(ctx_all),
    .read_valid_o(cpu_dma_valid_o), .read_ready_i(cpu_dma_ready_i), .read_o(cpu_dma_o),
    .beat_valid_i(cpu_beat_valid_i), .beat_ready_o(cpu_beat_ready_o), .beat_i(cpu_beat_i),
    .write_valid_o(cpu_write_valid_o), .write_ready_i(cpu_write_ready_i), .write_o(cpu_write_o),
    .data_valid_o(cpu_data_valid_o), .data_ready_i(cpu_data_ready_i), .data_o(cpu_data_o),
    .token_valid_i(cpu_token_valid_i), .token_ready_o(cpu_token_ready_o),
    .token_i(cpu_token_i),
    .irq_valid_o(cpu_irq_valid), .irq_ready_i(1'b1), .irq_o(cpu_irq),
    .event_valid_o(cpu_event_valid_o), .event_ready_i(cpu_event_ready_i), .event_o(cpu_event_o),
    .count_o(cpu_count), .active_o(cpu_active)
  );
  host_interrupt u_interrupt (
    .clk_i, .rst_i,
    .raise_valid_i({cpu_irq_valid, raise_valid_i}), .raise_i({cpu_irq, raise_i}),
    .fn_resetting_i(fn_disabled_o),
    .irq_write_i(irq_write), .irq_fn_i(irq_fn), .irq_masked_o(irq_masked),
    .irq_pending_o(irq_pending), .irq_valid_o, .irq_ready_i, .irq_o,
    .count_interrupt_o(count_interrupt)
  );

  // commands that have not been answered, functions in reset
  assign commands_o = cpu_active || fn_disabled_o != '0;

  // ---------------------------------------------------------------------------------- context
  logic state_ready, mr_ready, mtt_ready, timer_ready, mr_wrap;
  roci_pkg::fence_busy_t mtt_busy, timer_busy;
  logic [1:0] checked_valid, checked_ready;
  roci_pkg::mr_checked_t [1:0] checked;

  assign ready_o = state_ready && mr_ready && mtt_ready && timer_ready;
  assign fence_busy_o = mtt_busy | timer_busy;

  context_qp_state #(.SOURCES(ERRORS)) u_qp_state (
    .clk_i, .rst_i, .ctx_i(ctx_o), .ctx_o(ctx_state),
    .error_valid_i, .error_ready_o, .error_i, .state_o,
    .event_valid_o(state_event_valid_o), .event_ready_i(state_event_ready_i),
    .event_o(state_event_o), .ready_o(state_ready)
  );
  context_fence #(.UNITS(UNITS + 2)) u_fence (
    .clk_i, .rst_i, .ctx_i(ctx_o), .ctx_o(ctx_fence),
    .busy_i({mtt_busy, timer_busy, fence_busy_i}), .colour_o
  );
  context_port u_port (
    .clk_i, .rst_i, .ctx_i(ctx_o), .ctx_o(ctx_port), .port_o
  );
  context_mr_check u_mr_check (
    .clk_i, .rst_i, .ctx_i(ctx_o), .ctx_o(ctx_mr),
    .req_valid_i(xlat_valid_i), .req_ready_o(xlat_ready_o), .req_i(xlat_i),
    .checked_valid_o(checked_valid), .checked_ready_i(checked_ready), .checked_o(checked),
    .wrap_o(mr_wrap), .key_error_o(key_error), .ready_o(mr_ready)
  );
  context_mtt_cache u_mtt_cache (
    .clk_i, .rst_i, .colour_i(colour_o), .wrap_i(mr_wrap),
    .checked_valid_i(checked_valid), .checked_ready_o(checked_ready), .checked_i(checked),
    .rsp_valid_o(answer_valid_o), .rsp_ready_i(answer_ready_i), .rsp_o(answer_o),
    .dma_valid_o(mtt_dma_valid_o), .dma_ready_i(mtt_dma_ready_i), .dma_o(mtt_dma_o),
    .beat_valid_i(mtt_beat_valid_i), .beat_ready_o(mtt_beat_ready_o), .beat_i(mtt_beat_i),
    .fence_busy_o(mtt_busy), .hit_o(mtt_hit), .miss_o(mtt_miss), .ready_o(mtt_ready)
  );
  context_timer u_timer (
    .clk_i, .rst_i, .ctx_i(ctx_o), .ctx_o(ctx_timer),
    .ack_state_i, .sent_i, .rewound_i, .state_i(state_o), .rnr_valid_i, .rnr_ready_o, .rnr_i, .rnr_o,
    .report_valid_o, .report_ready_i, .report_o,
    .clock_o, .time_step_i, .next_expiry_valid_o, .next_expiry_o,
    .colour_i(colour_o), .fence_busy_o(timer_busy), .ready_o(timer_ready)
  );

endmodule

`default_nettype wire
