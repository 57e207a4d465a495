// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_admin_rings: the admin queue of every function as its registers show it: rings, indices, state.
//
// One row per function in one RAM; each cycle does one operation on one row: a register access of
// the host, an order of the CPU, a place for a completion, or else a look whether the next function
// in turn has a command to fetch. So every rule is about one row:
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
  output logic [63:0]                    read_data_o,     // in the cycle after read_ready_o

  // commands to fetch
  output logic                           fetch_valid_o,
  input  wire                            fetch_ready_i,
  output cpu_pkg::admin_fetch_t          fetch_o,

  // place of a completion; taken with place_ready_o, which also means that it is used up
  input  wire                            place_valid_i,
  output logic                           place_ready_o,
  input  wire roci_pkg::fn_t             place_fn_i,
  output cpu_pkg::admin_place_t          place_o,         // in the second cycle after place_ready_o

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

  logic ready;
  logic [$bits(row_t)-1:0] row_bits;
  row_t row, row_d;
  roci_pkg::fn_t fn, turn_q;
  logic do_write, do_read, do_order, do_place, do_look, do_fetch;
  logic [15:0] size, mask;
  logic ring_bad, has_command;

  // The address is added up one cycle after its row was read (timing).
  logic sum_valid_q, fetch_valid_q;
  roci_pkg::fn_t fetch_fn_q;
  logic [63:0] sum_base_q;
  logic [15:0] sum_offset_q;
  cpu_pkg::admin_fetch_t fetch_q;

  cpu_pkg::admin_place_t place1_q;
  logic [15:0] place_offset1_q;

  roci_hwif_pkg::csr_admin_control_t control;
  roci_hwif_pkg::csr_admin_ring_config_t ring_config;
  roci_hwif_pkg::csr_admin_status_t status;
  logic [63:0] read_data;

  // ----------------------------------------------------------------- which row, which operation
  assign do_write = ready && write_valid_i;
  assign do_read = ready && read_valid_i && !do_write;
  assign do_order = ready && order_valid_i && !do_write && !do_read;
  assign do_place = ready && place_valid_i && !do_write && !do_read && !do_order;
  assign do_look = ready && !do_write && !do_read && !do_order && !do_place
                   && !sum_valid_q && !fetch_valid_q;
  assign write_ready_o = ready;
  assign read_ready_o = do_read;
  assign order_ready_o = do_order;
  assign place_ready_o = do_place;

  always_comb begin
    fn = turn_q;
    if (do_write) fn = write_i.fn;
    else if (do_read) fn = read_i.fn;
    else if (do_order) fn = order_i.fn;
    else if (do_place) fn = place_fn_i;
  end

  common_ram_cleared #(
    .WIDTH($bits(row_t)), .DEPTH(cpu_pkg::FNS), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_rows (
    .clk_i, .rst_i, .ready_o(ready),
    .we_i(do_write || do_order || do_place || do_fetch), .waddr_i(fn), .wdata_i(row_d),
    .re_i(1'b1), .raddr_i(fn), .rdata_o(row_bits)
  );
  assign row = row_t'(row_bits);

  // --------------------------------------------------------------------------------- operation
  assign control = roci_hwif_pkg::csr_admin_control_t'(write_i.data);
  assign ring_config = roci_hwif_pkg::csr_admin_ring_config_t'(write_i.data);

  always_comb begin
    size = 16'd1 << row.ring_log2[3:0];
    mask = size - 16'd1;
    ring_bad = row.command_ring[11:0] != '0 || row.completion_ring[11:0] != '0
               || row.ring_log2 < LOG2_MIN || row.ring_log2 > LOG2_MAX;
    has_command = row.state == roci_hwif_pkg::ADMIN_STATE_ENABLED && !row.busy
                  && row.doorbell != row.fetched && 16'(row.fetched - row.consumed) < size;
    do_fetch = do_look && has_command;

    row_d = row;
    if (do_write) begin
      unique case (write_i.which)
        cpu_pkg::ADMIN_COMMAND_RING: begin
          if (row.state == roci_hwif_pkg::ADMIN_STATE_DISABLED) row_d.command_ring = write_i.data;
        end
        cpu_pkg::ADMIN_COMPLETION_RING: begin
          if (row.state == roci_hwif_pkg::ADMIN_STATE_DISABLED) begin
            row_d.completion_ring = write_i.data;
          end
        end
        cpu_pkg::ADMIN_RING_CONFIG: begin
          if (row.state == roci_hwif_pkg::ADMIN_STATE_DISABLED) begin
            row_d.ring_log2 = ring_config.ring_log2;
            row_d.irq_vector = ring_config.irq_vector;
            row_d.irq_enable = ring_config.interrupt_enable;
          end
        end
        cpu_pkg::ADMIN_CONTROL: begin
          if (control.reset_request) begin
            row_d.state = roci_hwif_pkg::ADMIN_STATE_RESETTING;
          end else if (control.enable && row.state == roci_hwif_pkg::ADMIN_STATE_DISABLED) begin
            row_d.state = ring_bad ? roci_hwif_pkg::ADMIN_STATE_ERROR
                                   : roci_hwif_pkg::ADMIN_STATE_ENABLED;
            row_d.error = ring_bad ? roci_hwif_pkg::ADMIN_ERROR_BAD_RING
                                   : roci_hwif_pkg::ADMIN_ERROR_NONE;
            row_d.doorbell = '0;
            row_d.fetched = '0;
            row_d.completed = '0;
            row_d.consumed = '0;
          end
        end
        cpu_pkg::ADMIN_DOORBELL, cpu_pkg::ADMIN_CONSUMED: begin
          if (row.state == roci_hwif_pkg::ADMIN_STATE_ENABLED) begin
            if (write_i.which == cpu_pkg::ADMIN_DOORBELL
                    ? 16'(write_i.data[15:0] - row.fetched) > size
                    : 16'(row.completed - write_i.data[15:0])
                        > 16'(row.completed - row.consumed)) begin
              row_d.state = roci_hwif_pkg::ADMIN_STATE_ERROR;
              row_d.error = roci_hwif_pkg::ADMIN_ERROR_BAD_INDEX;
            end else if (write_i.which == cpu_pkg::ADMIN_DOORBELL) begin
              row_d.doorbell = write_i.data[15:0];
            end else begin
              row_d.consumed = write_i.data[15:0];
            end
          end
        end
        default: ;
      endcase
    end else if (do_order) begin
      unique case (order_i.order)
        cpu_pkg::ADMIN_RELEASE: row_d.busy = 1'b0;
        cpu_pkg::ADMIN_RESET: row_d.state = roci_hwif_pkg::ADMIN_STATE_RESETTING;
        cpu_pkg::ADMIN_RESET_DONE: begin
          row_d.state = roci_hwif_pkg::ADMIN_STATE_DISABLED;
          row_d.error = roci_hwif_pkg::ADMIN_ERROR_NONE;
          row_d.busy = 1'b0;
        end
        cpu_pkg::ADMIN_FAIL_READ, cpu_pkg::ADMIN_FAIL_WRITE: begin
          if (order_i.order == cpu_pkg::ADMIN_FAIL_READ) row_d.busy = 1'b0;
          if (row.state == roci_hwif_pkg::ADMIN_STATE_ENABLED) begin
            row_d.state = roci_hwif_pkg::ADMIN_STATE_ERROR;
            row_d.error = order_i.order == cpu_pkg::ADMIN_FAIL_READ
                          ? roci_hwif_pkg::ADMIN_ERROR_READ_BUS
                          : roci_hwif_pkg::ADMIN_ERROR_WRITE_BUS;
          end
        end
        default: ;
      endcase
    end else if (do_place) begin
      if (row.state == roci_hwif_pkg::ADMIN_STATE_ENABLED) row_d.completed = row.completed + 16'd1;
    end else if (do_fetch) begin
      row_d.fetched = row.fetched + 16'd1;
      row_d.busy = 1'b1;
    end
  end

  always_comb begin
    status = '0;
    status.state = row.state;
    status.error = row.error;
    status.fetched = row.fetched;
    status.completed = row.completed;
    unique case (read_i.which)
      cpu_pkg::ADMIN_COMMAND_RING: read_data = row.command_ring;
      cpu_pkg::ADMIN_COMPLETION_RING: read_data = row.completion_ring;
      cpu_pkg::ADMIN_RING_CONFIG:
        read_data = {47'h0, row.irq_enable, row.irq_vector, row.ring_log2};
      cpu_pkg::ADMIN_STATUS: read_data = 64'(status);
      default: read_data = '0;
    endcase
  end

  assign fetch_valid_o = fetch_valid_q;
  assign fetch_o = fetch_q;

  always_ff @(posedge clk_i) begin
    read_data_o <= read_data;

    sum_base_q <= row.command_ring;
    sum_offset_q <= row.fetched & mask;
    if (do_fetch) fetch_fn_q <= fn;
    if (sum_valid_q) begin
      fetch_q <= '{fn: fetch_fn_q, addr: sum_base_q + {42'h0, sum_offset_q, 6'h0}};
    end

    place1_q.drop <= row.state != roci_hwif_pkg::ADMIN_STATE_ENABLED;
    // the lap number's lowest bit flips the phase
    place1_q.phase <= 1'(roci_hwif_pkg::PHASE_FIRST_LAP) ^ ((row.completed & size) != '0);
    place1_q.raise <= row.irq_enable;
    place1_q.irq_vector <= cpu_pkg::vector_t'(row.irq_vector);
    place1_q.addr <= row.completion_ring;
    place_offset1_q <= row.completed & mask;
    place_o <= place1_q;
    place_o.addr <= place1_q.addr + {43'h0, place_offset1_q, 5'h0};

    if (rst_i) begin
      turn_q <= '0;
      sum_valid_q <= 1'b0;
      fetch_valid_q <= 1'b0;
      enabled_o <= '0;
      resetting_o <= '0;
      failed_o <= '0;
    end else begin
      if (do_look) turn_q <= turn_q + 1'b1;
      sum_valid_q <= do_fetch;
      if (sum_valid_q) fetch_valid_q <= 1'b1;
      else if (fetch_ready_i) fetch_valid_q <= 1'b0;
      if (do_write || do_order) begin
        enabled_o[fn] <= row_d.state == roci_hwif_pkg::ADMIN_STATE_ENABLED;
        resetting_o[fn] <= row_d.state == roci_hwif_pkg::ADMIN_STATE_RESETTING;
        failed_o[fn] <= row_d.state == roci_hwif_pkg::ADMIN_STATE_ERROR;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && ready) begin
      assert (!(sum_valid_q && fetch_valid_q));
      // a release is for a command that was fetched
      if (do_order && order_i.order == cpu_pkg::ADMIN_RELEASE) begin
        assert (row.busy) else $error("host_admin_rings: release of a function without command");
      end
      if (do_order && order_i.order == cpu_pkg::ADMIN_RESET_DONE) begin
        assert (row.state == roci_hwif_pkg::ADMIN_STATE_RESETTING)
        else $error("host_admin_rings: end of a reset that never began");
      end
    end
  end

endmodule

`default_nettype wire
