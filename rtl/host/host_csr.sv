// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_csr: BAR0 of all functions: AXI4-Lite slave of 64 bits, address {function, offset}.
//
// Takes one write per cycle and one read at a time, answers them from registers and RAM and sends
// doorbell pages to host_doorbell, so the bus never waits for firmware, DMA or traffic (rule 2).
// An access that no register takes (unknown offset, wrong direction, narrower than 64 bits, management
// from another function than 0) reads zero, writes nothing, is counted and answered OKAY: a program
// that maps a page cannot stop the machine.
//
// Parts: host_identity, host_admin_rings, host_management (with host_counters); the interrupt registers
// live in host_interrupt. Does not: check doorbells.
// Neighbours: PCIe or simulator → here → host_doorbell, host_interrupt, cpu_subsystem, ethernet.
`default_nettype none

module host_csr (
  input  wire                               clk_i,
  input  wire                               rst_i,

  // AXI4-Lite
  input  wire                               axil_awvalid_i,
  output logic                              axil_awready_o,
  input  wire [cpu_pkg::BAR_ADDR_BITS-1:0]  axil_awaddr_i,
  input  wire                               axil_wvalid_i,
  output logic                              axil_wready_o,
  input  wire [63:0]                        axil_wdata_i,
  input  wire [7:0]                         axil_wstrb_i,
  output logic                              axil_bvalid_o,
  input  wire                               axil_bready_i,
  output logic [1:0]                        axil_bresp_o,     // always OKAY
  input  wire                               axil_arvalid_i,
  output logic                              axil_arready_o,
  input  wire [cpu_pkg::BAR_ADDR_BITS-1:0]  axil_araddr_i,
  output logic                              axil_rvalid_o,
  input  wire                               axil_rready_i,
  output logic [63:0]                       axil_rdata_o,
  output logic [1:0]                        axil_rresp_o,     // always OKAY

  // doorbell pages
  output logic                              ring_valid_o,
  input  wire                               ring_ready_i,
  output cpu_pkg::bar_doorbell_t            ring_o,

  // interrupt registers: writes, and what function irq_fn_o has, one cycle later
  output cpu_pkg::irq_write_t               irq_write_o,
  output roci_pkg::fn_t                     irq_fn_o,
  input  wire [7:0]                         irq_masked_i,
  input  wire [7:0]                         irq_pending_i,

  // admin queues (host_admin_rings)
  output logic                              fetch_valid_o,
  input  wire                               fetch_ready_i,
  output cpu_pkg::admin_fetch_t             fetch_o,
  input  wire                               place_valid_i,
  output logic                              place_ready_o,
  input  wire roci_pkg::fn_t                place_fn_i,
  output logic                              place_done_o,
  output cpu_pkg::admin_place_t             place_o,
  input  wire                               order_valid_i,
  output logic                              order_ready_o,
  input  wire cpu_pkg::admin_order_t        order_i,
  output logic [cpu_pkg::FNS-1:0]           fn_enabled_o,
  output logic [cpu_pkg::FNS-1:0]           fn_disabled_o,    // being reset: its DMA must fail
  output logic [cpu_pkg::FNS-1:0]           fn_failed_o,

  // management (host_management)
  input  wire roci_pkg::ctx_req_t           ctx_i,            // columns CSR and COUNTER
  output roci_pkg::ctx_rsp_t                ctx_o,
  input  wire [63:0]                        clock_i,          // context_timer
  input  wire                               link_up_i,
  input  wire [31:0]                        speed_mbps_i,
  output logic                              port_enable_o,
  input  wire                               trap_i,
  output logic                              cpu_hold_o,
  output logic                              load_valid_o,
  output cpu_pkg::ram_addr_t                load_addr_o,
  output logic [63:0]                       load_data_o,
  output logic                              written_o,        // port registers changed

  // counters; bar_access_error is added here
  input  wire [127:0]                       pulse_i,          // bit n: counter n of enum `counter`
  input  wire [5:0][13:0]                   amount_i          // as host_counters
);

  typedef struct packed {
    roci_pkg::fn_t fn;
    logic [cpu_pkg::BAR_BITS-1:0] offset;
  } address_t;

  // 4 KB blocks of BAR0; the upper half is doorbell pages.
  localparam logic [3:0] BLOCK_IDENTITY = 4'(roci_hwif_pkg::CSR_IDENTITY_BASE >> 12);
  localparam logic [3:0] BLOCK_ADMIN = 4'(roci_hwif_pkg::CSR_ADMIN_BASE >> 12);
  localparam logic [3:0] BLOCK_INTERRUPT = 4'(roci_hwif_pkg::CSR_INTERRUPT_BASE >> 12);
  localparam logic [3:0] BLOCK_MANAGEMENT = 4'(roci_hwif_pkg::CSR_MANAGEMENT_BASE >> 12);
  localparam logic [11:0] PENDING = 12'(roci_hwif_pkg::CSR_INTERRUPT_PENDING_ADDR);

  // Register of block admin at an offset, NO_REGISTER if there is none.
  function automatic cpu_pkg::admin_register_e admin_register(input logic [11:0] offset);
    if (offset > 12'(roci_hwif_pkg::CSR_ADMIN_CONSUMED_ADDR) || offset[2:0] != '0) begin
      return cpu_pkg::ADMIN_NO_REGISTER;
    end
    return cpu_pkg::admin_register_e'(offset[5:3]);
  endfunction

  // ---------------------------------------------------------------------------------------- writes
  logic aw_valid_q, w_valid_q, b_valid_q;
  address_t aw_q;
  logic [63:0] wdata_q;
  logic [7:0] wstrb_q;

  logic waiting, execute, is_bell, aligned_w, write_taken;
  logic admin_write, admin_write_ready, management_write, management_known;
  cpu_pkg::admin_access_t admin_write_access;
  cpu_pkg::admin_register_e admin_which_w;
  logic irq_vector_write, irq_pending_write;

  assign waiting = aw_valid_q && w_valid_q && (!b_valid_q || axil_bready_i);
  assign is_bell = aw_q.offset[16];
  assign aligned_w = aw_q.offset[2:0] == '0 && wstrb_q == '1;

  always_comb begin
    admin_which_w = admin_register({aw_q.offset[11:0]});
    admin_write = 1'b0;
    management_write = 1'b0;
    irq_vector_write = 1'b0;
    irq_pending_write = 1'b0;
    ring_valid_o = 1'b0;
    execute = waiting;
    if (waiting && aligned_w) begin
      if (is_bell) begin
        if (aw_q.offset[11:0] == '0) begin
          ring_valid_o = 1'b1;
          execute = ring_ready_i;
        end
      end else begin
        unique case (aw_q.offset[15:12])
          BLOCK_ADMIN: begin
            if (admin_which_w != cpu_pkg::ADMIN_NO_REGISTER
                && admin_which_w != cpu_pkg::ADMIN_STATUS) begin
              admin_write = 1'b1;
              execute = admin_write_ready;
            end
          end
          BLOCK_INTERRUPT: begin
            irq_vector_write = aw_q.offset[11:0] < PENDING;
            irq_pending_write = aw_q.offset[11:0] == PENDING;
          end
          BLOCK_MANAGEMENT: management_write = aw_q.fn == '0;
          default: ;
        endcase
      end
    end
  end

  assign write_taken = ring_valid_o || admin_write || irq_vector_write || irq_pending_write
                       || (management_write && management_known);
  assign admin_write_access = '{fn: aw_q.fn, which: admin_which_w, data: wdata_q};
  assign ring_o = '{fn: aw_q.fn, page: aw_q.offset[15:12], data: wdata_q};
  assign irq_write_o = '{
    valid: irq_vector_write || irq_pending_write, fn: aw_q.fn, is_mask: irq_vector_write,
    irq_vector: aw_q.offset[3 +: roci_config_pkg::VECTOR_BITS], masked: wdata_q[0],
    clear: wdata_q[7:0]};

  assign axil_awready_o = !aw_valid_q || execute;
  assign axil_wready_o = !w_valid_q || execute;
  assign axil_bvalid_o = b_valid_q;
  assign axil_bresp_o = 2'b00;

  always_ff @(posedge clk_i) begin
    if (axil_awready_o) aw_q <= address_t'(axil_awaddr_i);
    if (axil_wready_o) begin
      wdata_q <= axil_wdata_i;
      wstrb_q <= axil_wstrb_i;
    end
    if (rst_i) begin
      aw_valid_q <= 1'b0;
      w_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
    end else begin
      if (axil_awready_o) aw_valid_q <= axil_awvalid_i;
      if (axil_wready_o) w_valid_q <= axil_wvalid_i;
      if (execute) b_valid_q <= 1'b1;
      else if (axil_bready_i) b_valid_q <= 1'b0;
    end
  end

  // ----------------------------------------------------------------------------------------- reads
  typedef enum logic [2:0] {
    READ_IDLE, READ_ACCESS, READ_ADMIN, READ_INTERRUPT, READ_ANSWER
  } read_e;

  read_e read_q;
  address_t ar_q;
  logic [63:0] rdata_q;
  logic read_error_q;                      // pulse

  logic identity_known, admin_read, admin_read_ready, admin_read_done, management_read;
  logic management_done, management_read_known;
  logic [63:0] identity_data, admin_data, management_data, firmware_hash;
  roci_hwif_pkg::csr_identity_firmware_t firmware;
  cpu_pkg::admin_access_t admin_read_access;
  logic irq_known;

  assign admin_read_access = '{fn: ar_q.fn, which: admin_register(ar_q.offset[11:0]), data: '0};
  assign admin_read = read_q == READ_ACCESS && !ar_q.offset[16]
                      && ar_q.offset[15:12] == BLOCK_ADMIN;
  assign management_read = read_q == READ_ACCESS && !ar_q.offset[16] && ar_q.fn == '0
                           && ar_q.offset[15:12] == BLOCK_MANAGEMENT;
  assign irq_fn_o = ar_q.fn;
  assign irq_known = ar_q.offset[11:0] <= PENDING && ar_q.offset[2:0] == '0;
  assign axil_arready_o = read_q == READ_IDLE;
  assign axil_rvalid_o = read_q == READ_ANSWER;
  assign axil_rdata_o = rdata_q;
  assign axil_rresp_o = 2'b00;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      read_q <= READ_IDLE;
      read_error_q <= 1'b0;
    end else begin
      read_error_q <= 1'b0;
      unique case (read_q)
        READ_IDLE: begin
          ar_q <= address_t'(axil_araddr_i);
          if (axil_arvalid_i) read_q <= READ_ACCESS;
        end
        READ_ACCESS: begin
          rdata_q <= '0;
          if (!ar_q.offset[16] && ar_q.offset[15:12] == BLOCK_IDENTITY) begin
            rdata_q <= identity_data;
            read_error_q <= !identity_known;
            read_q <= READ_ANSWER;
          end else if (admin_read) begin
            if (admin_read_ready) read_q <= READ_ADMIN;
          end else if (!ar_q.offset[16] && ar_q.offset[15:12] == BLOCK_INTERRUPT) begin
            read_q <= READ_INTERRUPT;
          end else if (management_read) begin
            if (management_done) begin
              rdata_q <= management_data;
              read_error_q <= !management_read_known;
              read_q <= READ_ANSWER;
            end
          end else begin
            read_error_q <= !(ar_q.offset[16] && ar_q.offset[11:0] == '0);   // doorbells read zero
            read_q <= READ_ANSWER;
          end
        end
        READ_ADMIN: begin
          if (admin_read_done) begin
            rdata_q <= admin_data;
            read_error_q <= admin_read_access.which == cpu_pkg::ADMIN_NO_REGISTER;
            read_q <= READ_ANSWER;
          end
        end
        READ_INTERRUPT: begin
          rdata_q <= '0;
          if (irq_known) begin
            if (ar_q.offset[11:0] == PENDING) rdata_q[7:0] <= irq_pending_i;
            else rdata_q[0] <= irq_masked_i[ar_q.offset[5:3]];
          end
          read_error_q <= !irq_known;
          read_q <= READ_ANSWER;
        end
        default: begin
          if (axil_rready_i) read_q <= READ_IDLE;
        end
      endcase
    end
  end

  // ----------------------------------------------------------------------------------------- parts
  logic [127:0] pulse;

  always_comb begin
    pulse = pulse_i;
    // A read and a write that fail in one cycle count once: nobody counts on this number.
    pulse[7'(roci_hwif_pkg::COUNTER_BAR_ACCESS_ERROR)] = read_error_q || (execute && !write_taken);
  end

  host_identity u_identity (
    .fn_i(ar_q.fn), .offset_i(ar_q.offset[11:0]), .clock_i,
    .firmware_hash_i(firmware_hash), .firmware_i(firmware),
    .known_o(identity_known), .data_o(identity_data)
  );

  host_admin_rings u_admin_rings (
    .clk_i, .rst_i,
    .write_valid_i(admin_write), .write_ready_o(admin_write_ready), .write_i(admin_write_access),
    .read_valid_i(admin_read), .read_ready_o(admin_read_ready), .read_i(admin_read_access),
    .read_done_o(admin_read_done), .read_data_o(admin_data),
    .fetch_valid_o, .fetch_ready_i, .fetch_o,
    .place_valid_i, .place_ready_o, .place_fn_i, .place_done_o, .place_o,
    .order_valid_i, .order_ready_o, .order_i,
    .enabled_o(fn_enabled_o), .resetting_o(fn_disabled_o), .failed_o(fn_failed_o)
  );

  host_management u_management (
    .clk_i, .rst_i,
    .write_valid_i(management_write), .write_offset_i(aw_q.offset[11:0]), .write_data_i(wdata_q),
    .write_known_o(management_known),
    .read_valid_i(management_read), .read_offset_i(ar_q.offset[11:0]),
    .read_done_o(management_done), .read_known_o(management_read_known),
    .read_data_o(management_data),
    .ctx_i, .ctx_o, .link_up_i, .speed_mbps_i, .port_enable_o,
    .trap_i, .cpu_hold_o, .load_valid_o, .load_addr_o, .load_data_o, .written_o,
    .firmware_hash_o(firmware_hash), .firmware_o(firmware),
    .pulse_i(pulse), .amount_i
  );

endmodule

`default_nettype wire
