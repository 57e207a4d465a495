// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_admin_rings: the admin queue of every function as its registers show it: rings, indices, state.
//
// One row per function in one RAM; one operation on one row at a time, four cycles each: a register
// access of the host, an order of the CPU, a place for a completion, or else a look whether the next
// function in turn has a command to fetch. So every rule is about one row:
// - ring registers change only in DISABLED; `enable` checks them (BAD_RING);
// - a doorbell may announce at most as many commands as the ring holds (BAD_INDEX), likewise
//   `consumed` may not run ahead of the completions;
// - one command of a function is fetched at a time, and only if its completion will have a place;
// - a function reset (by the host, or by the CPU for function 0) stops all this until the CPU says
//   that everything is destroyed.
//
// Does not: read or write host memory. Neighbours: host_csr ⇄ here ⇄ cpu_admin_queue; `resetting_o`
// also stops the function's DMA (host_dma_read, host_dma_write).
`default_nettype none

module host_admin_rings (
  input  wire                            clk_i,
  input  wire                            rst_i,

  // registers
  input  wire                            write_valid_i,
  output logic                           write_ready_o,
  input  wire cpu_pkg::admin_access_t    write_i,
  input  wire                            read_valid_i,
  output logic                           read_ready_o,
  input  wire cpu_pkg::admin_access_t    read_i,
  output logic                           read_done_o,     // for one cycle, with the data
  output logic [63:0]                    read_data_o,

  // commands to fetch
  output logic                           fetch_valid_o,
  input  wire                            fetch_ready_i,
  output cpu_pkg::admin_fetch_t          fetch_o,

  // place of a completion: each one is given once
  input  wire                            place_valid_i,
  output logic                           place_ready_o,
  input  wire roci_pkg::fn_t             place_fn_i,
  output logic                           place_done_o,    // for one cycle, with the place
  output cpu_pkg::admin_place_t          place_o,

  input  wire                            order_valid_i,
  output logic                           order_ready_o,
  input  wire cpu_pkg::admin_order_t     order_i,

  // one bit per function
  output logic [cpu_pkg::FNS-1:0]        enabled_o,
  output logic [cpu_pkg::FNS-1:0]        resetting_o,
  output logic [cpu_pkg::FNS-1:0]        failed_o         // state ERROR
);

  localparam logic [7:0] LOG2_MIN = 8'(roci_hwif_pkg::ADMIN_RING_LOG2_MIN);
  localparam logic [7:0] LOG2_MAX = 8'(roci_hwif_pkg::ADMIN_RING_LOG2_MAX);

  typedef struct packed {
    logic [63:0] command_ring;
    logic [63:0] completion_ring;
    logic [7:0] ring_log2;
    logic [7:0] irq_vector;
    logic irq_enable;
    logic busy;                              // a command is at the CPU
    roci_hwif_pkg::admin_state_e state;
    roci_hwif_pkg::admin_error_e error;
    logic [15:0] doorbell;
    logic [15:0] fetched;
    logic [15:0] completed;
    logic [15:0] consumed;
  } row_t;

  typedef enum logic [2:0] {OP_WRITE, OP_READ, OP_ORDER, OP_PLACE, OP_LOOK} kind_e;

  typedef struct packed {
    kind_e kind;
    roci_pkg::fn_t fn;
    cpu_pkg::admin_register_e which;         // OP_WRITE, OP_READ
    cpu_pkg::admin_order_e order;            // OP_ORDER
    logic [63:0] data;                       // OP_WRITE
  } op_t;

  typedef enum logic [1:0] {CHOOSE, FETCH_ROW, JUDGE, STORE} phase_e;

  logic ready;
  logic [$bits(row_t)-1:0] row_bits;
  phase_e phase_q;
  op_t op, op_q;
  roci_pkg::fn_t turn_q;
  logic choose, store, look_allowed;
  logic host_turn_q, host_asks;
  logic fetch_valid_q;
  cpu_pkg::admin_fetch_t fetch_q;
  row_t row_q, row_d;

  // -------------------------------------------------------------------- CHOOSE: whose turn it is
  assign choose = ready && phase_q == CHOOSE;
  assign look_allowed = !fetch_valid_q;
  // The host comes first, but only every second time: whatever a program does with its registers, the
  // queues of the others go on.
  assign write_ready_o = choose && host_turn_q;
  assign read_ready_o = choose && host_turn_q && !write_valid_i;
  assign order_ready_o = choose && !host_asks;
  assign place_ready_o = choose && !host_asks && !order_valid_i;
  assign host_asks = host_turn_q && (write_valid_i || read_valid_i);

  always_comb begin
    op = '{kind: OP_LOOK, fn: turn_q, which: read_i.which, order: order_i.order,
           data: write_i.data};
    if (host_turn_q && write_valid_i) begin
      op.kind = OP_WRITE;
      op.fn = write_i.fn;
      op.which = write_i.which;
    end else if (host_asks) begin
      op.kind = OP_READ;
      op.fn = read_i.fn;
    end else if (order_valid_i) begin
      op.kind = OP_ORDER;
      op.fn = order_i.fn;
    end else if (place_valid_i) begin
      op.kind = OP_PLACE;
      op.fn = place_fn_i;
    end
  end

  common_ram_cleared #(
    .WIDTH($bits(row_t)), .DEPTH(cpu_pkg::FNS), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_rows (
    .clk_i, .rst_i, .ready_o(ready),
    .we_i(store), .waddr_i(op_q.fn), .wdata_i(row_d),
    .re_i(1'b1), .raddr_i(op_q.fn), .rdata_o(row_bits)
  );

  // ------------------------------------------------------------ JUDGE: what the operation finds
  logic [15:0] size, mask, size_q, mask_q;
  logic ring_bad_q, has_command_q, doorbell_bad_q, consumed_bad_q;
  roci_hwif_pkg::csr_admin_control_t control;
  roci_hwif_pkg::csr_admin_ring_config_t ring_config;
  roci_hwif_pkg::csr_admin_status_t status;
  logic [63:0] read_data;

  assign size = 16'd1 << row_q.ring_log2[3:0];
  assign mask = size - 16'd1;
  assign store = phase_q == STORE && op_q.kind != OP_READ;

  always_ff @(posedge clk_i) begin
    if (phase_q == CHOOSE) op_q <= op;
    if (phase_q == FETCH_ROW) row_q <= row_t'(row_bits);
    size_q <= size;
    mask_q <= mask;
    ring_bad_q <= row_q.command_ring[11:0] != '0 || row_q.completion_ring[11:0] != '0
                  || row_q.ring_log2 < LOG2_MIN || row_q.ring_log2 > LOG2_MAX;
    has_command_q <= row_q.state == roci_hwif_pkg::ADMIN_STATE_ENABLED && !row_q.busy
                     && row_q.doorbell != row_q.fetched
                     && 16'(row_q.fetched - row_q.consumed) < size;
    doorbell_bad_q <= 16'(op_q.data[15:0] - row_q.fetched) > size;
    consumed_bad_q <= 16'(row_q.completed - op_q.data[15:0])
                      > 16'(row_q.completed - row_q.consumed);
  end

  // ------------------------------------------------------------------- STORE: what becomes of it
  assign control = roci_hwif_pkg::csr_admin_control_t'(op_q.data);
  assign ring_config = roci_hwif_pkg::csr_admin_ring_config_t'(op_q.data);

  always_comb begin
    row_d = row_q;
    if (op_q.kind == OP_WRITE) begin
      unique case (op_q.which)
        cpu_pkg::ADMIN_COMMAND_RING: begin
          if (row_q.state == roci_hwif_pkg::ADMIN_STATE_DISABLED) row_d.command_ring = op_q.data;
        end
        cpu_pkg::ADMIN_COMPLETION_RING: begin
          if (row_q.state == roci_hwif_pkg::ADMIN_STATE_DISABLED) begin
            row_d.completion_ring = op_q.data;
          end
        end
        cpu_pkg::ADMIN_RING_CONFIG: begin
          if (row_q.state == roci_hwif_pkg::ADMIN_STATE_DISABLED) begin
            row_d.ring_log2 = ring_config.ring_log2;
            row_d.irq_vector = ring_config.irq_vector;
            row_d.irq_enable = ring_config.interrupt_enable;
          end
        end
        cpu_pkg::ADMIN_CONTROL: begin
          if (control.reset_request) begin
            row_d.state = roci_hwif_pkg::ADMIN_STATE_RESETTING;
          end else if (control.enable && row_q.state == roci_hwif_pkg::ADMIN_STATE_DISABLED) begin
            row_d.state = ring_bad_q ? roci_hwif_pkg::ADMIN_STATE_ERROR
                                   : roci_hwif_pkg::ADMIN_STATE_ENABLED;
            row_d.error = ring_bad_q ? roci_hwif_pkg::ADMIN_ERROR_BAD_RING
                                   : roci_hwif_pkg::ADMIN_ERROR_NONE;
            row_d.doorbell = '0;
            row_d.fetched = '0;
            row_d.completed = '0;
            row_d.consumed = '0;
          end
        end
        cpu_pkg::ADMIN_DOORBELL, cpu_pkg::ADMIN_CONSUMED: begin
          if (row_q.state == roci_hwif_pkg::ADMIN_STATE_ENABLED) begin
            if (op_q.which == cpu_pkg::ADMIN_DOORBELL ? doorbell_bad_q : consumed_bad_q) begin
              row_d.state = roci_hwif_pkg::ADMIN_STATE_ERROR;
              row_d.error = roci_hwif_pkg::ADMIN_ERROR_BAD_INDEX;
            end else if (op_q.which == cpu_pkg::ADMIN_DOORBELL) begin
              row_d.doorbell = op_q.data[15:0];
            end else begin
              row_d.consumed = op_q.data[15:0];
            end
          end
        end
        default: ;
      endcase
    end else if (op_q.kind == OP_ORDER) begin
      unique case (op_q.order)
        cpu_pkg::ADMIN_RELEASE: row_d.busy = 1'b0;
        cpu_pkg::ADMIN_RESET: row_d.state = roci_hwif_pkg::ADMIN_STATE_RESETTING;
        cpu_pkg::ADMIN_RESET_DONE: begin
          row_d.state = roci_hwif_pkg::ADMIN_STATE_DISABLED;
          row_d.error = roci_hwif_pkg::ADMIN_ERROR_NONE;
          row_d.busy = 1'b0;
        end
        cpu_pkg::ADMIN_FAIL_READ, cpu_pkg::ADMIN_FAIL_WRITE: begin
          if (op_q.order == cpu_pkg::ADMIN_FAIL_READ) row_d.busy = 1'b0;
          if (row_q.state == roci_hwif_pkg::ADMIN_STATE_ENABLED) begin
            row_d.state = roci_hwif_pkg::ADMIN_STATE_ERROR;
            row_d.error = op_q.order == cpu_pkg::ADMIN_FAIL_READ
                          ? roci_hwif_pkg::ADMIN_ERROR_READ_BUS
                          : roci_hwif_pkg::ADMIN_ERROR_WRITE_BUS;
          end
        end
        default: ;
      endcase
    end else if (op_q.kind == OP_PLACE) begin
      if (row_q.state == roci_hwif_pkg::ADMIN_STATE_ENABLED) row_d.completed = row_q.completed + 16'd1;
    end else if (op_q.kind == OP_LOOK && has_command_q && look_allowed) begin
      row_d.fetched = row_q.fetched + 16'd1;
      row_d.busy = 1'b1;
    end
  end

  always_comb begin
    status = '0;
    status.state = row_q.state;
    status.error = row_q.error;
    status.fetched = row_q.fetched;
    status.completed = row_q.completed;
    unique case (op_q.which)
      cpu_pkg::ADMIN_COMMAND_RING: read_data = row_q.command_ring;
      cpu_pkg::ADMIN_COMPLETION_RING: read_data = row_q.completion_ring;
      cpu_pkg::ADMIN_RING_CONFIG:
        read_data = {47'h0, row_q.irq_enable, row_q.irq_vector, row_q.ring_log2};
      cpu_pkg::ADMIN_STATUS: read_data = 64'(status);
      default: read_data = '0;
    endcase
  end

  logic fetches;
  assign fetches = store && op_q.kind == OP_LOOK && has_command_q && look_allowed;
  assign fetch_valid_o = fetch_valid_q;
  assign fetch_o = fetch_q;

  always_ff @(posedge clk_i) begin
    read_data_o <= read_data;
    if (fetches) begin
      fetch_q <= '{fn: op_q.fn,
                   addr: row_q.command_ring + {42'h0, row_q.fetched & mask_q, 6'h0}};
    end
    place_o.drop <= row_q.state != roci_hwif_pkg::ADMIN_STATE_ENABLED;
    // the lap number's lowest bit flips the phase
    place_o.phase <= 1'(roci_hwif_pkg::PHASE_FIRST_LAP) ^ ((row_q.completed & size_q) != '0);
    place_o.raise <= row_q.irq_enable;
    place_o.irq_vector <= cpu_pkg::vector_t'(row_q.irq_vector);
    place_o.addr <= row_q.completion_ring + {43'h0, row_q.completed & mask_q, 5'h0};

    if (rst_i) begin
      phase_q <= CHOOSE;
      host_turn_q <= 1'b1;
      turn_q <= '0;
      fetch_valid_q <= 1'b0;
      read_done_o <= 1'b0;
      place_done_o <= 1'b0;
      enabled_o <= '0;
      resetting_o <= '0;
      failed_o <= '0;
    end else begin
      unique case (phase_q)
        CHOOSE: begin
          if (ready) begin
            phase_q <= FETCH_ROW;
            host_turn_q <= !host_asks;
          end
        end
        FETCH_ROW: phase_q <= JUDGE;
        JUDGE: phase_q <= STORE;
        default: phase_q <= CHOOSE;
      endcase
      read_done_o <= phase_q == STORE && op_q.kind == OP_READ;
      place_done_o <= phase_q == STORE && op_q.kind == OP_PLACE;
      if (store && op_q.kind == OP_LOOK) turn_q <= turn_q + 1'b1;
      if (fetches) fetch_valid_q <= 1'b1;
      else if (fetch_ready_i) fetch_valid_q <= 1'b0;
      if (store) begin
        enabled_o[op_q.fn] <= row_d.state == roci_hwif_pkg::ADMIN_STATE_ENABLED;
        resetting_o[op_q.fn] <= row_d.state == roci_hwif_pkg::ADMIN_STATE_RESETTING;
        failed_o[op_q.fn] <= row_d.state == roci_hwif_pkg::ADMIN_STATE_ERROR;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && store && op_q.kind == OP_ORDER) begin
      if (op_q.order == cpu_pkg::ADMIN_RELEASE) begin
        assert (row_q.busy)
        else $error("host_admin_rings: release of a function without command");
      end
      if (op_q.order == cpu_pkg::ADMIN_RESET_DONE) begin
        assert (row_q.state == roci_hwif_pkg::ADMIN_STATE_RESETTING)
        else $error("host_admin_rings: end of a reset that never began");
      end
    end
  end

endmodule

`default_nettype wire
