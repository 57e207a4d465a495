// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_subsystem: the control path of the chip: PicoRV32 with its firmware, and the engines that do what
// it would be slow at. It answers the admin commands of all functions, cuts tables and pools, and
// writes the contexts of the data path; it is never part of the data path.
//
//   cpu_core ─ cpu_registers ─┬─ cpu_context ──────► context bus
//      │                      ├─ cpu_admin_queue ◄─► host_admin_rings, host_interrupt
//   cpu_ram ◄─────────────────┼─ cpu_host_read  ◄─── host_dma_read, client 4
//                             └─ cpu_host_write ───► host_dma_write, level 3
//
// Parts only; the rules are in them. cpu_clk_i: see cpu_core.
`default_nettype none

module cpu_subsystem #(
  parameter string FIRMWARE = "",                      // hex file of the image, one word a line
  parameter int unsigned DIVIDER = roci_config_pkg::IS_WIDE ? 1 : 2   // clk_i per cpu_clk_i
) (
  input  wire                           clk_i,
  input  wire                           rst_i,
  input  wire                           cpu_clk_i,

  // host_csr
  input  wire                           hold_i,
  output logic                          trap_o,
  input  wire                           load_valid_i,
  input  wire cpu_pkg::ram_addr_t       load_addr_i,
  input  wire [63:0]                    load_data_i,
  input  wire                           written_i,
  input  wire                           fetch_valid_i,
  output logic                          fetch_ready_o,
  input  wire cpu_pkg::admin_fetch_t    fetch_i,
  output logic                          place_valid_o,
  input  wire                           place_ready_i,
  output roci_pkg::fn_t                 place_fn_o,
  input  wire                           place_done_i,
  input  wire cpu_pkg::admin_place_t    place_i,
  output logic                          order_valid_o,
  input  wire                           order_ready_i,
  output cpu_pkg::admin_order_t         order_o,
  input  wire [cpu_pkg::FNS-1:0]        fn_enabled_i,
  input  wire [cpu_pkg::FNS-1:0]        fn_resetting_i,
  input  wire [cpu_pkg::FNS-1:0]        fn_failed_i,

  // host_doorbell
  input  wire                           bell_error_valid_i,
  input  wire roci_pkg::fn_t            bell_error_fn_i,

  input  wire [63:0]                    clock_i,           // context_timer

  // context bus
  output roci_pkg::ctx_req_t            ctx_o,
  input  wire roci_pkg::ctx_rsp_t       ctx_i,             // all owners, ORed

  // host_dma_read, client 4
  output logic                          read_valid_o,
  input  wire                           read_ready_i,
  output roci_pkg::dma_read_req_t       read_o,
  input  wire                           beat_valid_i,
  output logic                          beat_ready_o,
  input  wire roci_pkg::read_beat_t     beat_i,

  // host_dma_write, level 3, and its tokens
  output logic                          write_valid_o,
  input  wire                           write_ready_i,
  output roci_pkg::dma_write_req_t      write_o,
  output logic                          data_valid_o,
  input  wire                           data_ready_i,
  output roci_pkg::write_beat_t         data_o,
  input  wire                           token_valid_i,     // cpu_done
  output logic                          token_ready_o,
  input  wire roci_pkg::token_t         token_i,

  // host_interrupt
  output logic                          irq_valid_o,
  input  wire                           irq_ready_i,
  output cpu_pkg::irq_raise_t           irq_o,

  // queue_eq_writer
  output logic                          event_valid_o,
  input  wire                           event_ready_i,
  output roci_pkg::event_t              event_o,

  output cpu_pkg::cpu_counters_t        count_o,           // pulses
  output logic                          active_o           // admin commands are not answered yet
);

  // core and registers
  logic cpu_read;
  cpu_pkg::ram_addr_t cpu_raddr, cpu_waddr;
  logic [7:0] cpu_write;
  logic [63:0] cpu_wdata, ram_rdata;
  cpu_pkg::reg_req_t reg_req;
  logic reg_done;
  logic [31:0] reg_rdata;

  // context engine
  logic access, access_write, list_start, ctx_busy, ctx_error, ctx_read_valid, ctx_read_ready;
  logic [31:0] access_address;
  logic [63:0] access_wdata, ctx_rdata;
  cpu_pkg::ram_addr_t list_address, ctx_read_addr;
  logic [15:0] list_index;

  // admin engine
  logic ready_valid, ready_input, ready_error, ready_take;
  roci_pkg::fn_t ready_fn;
  logic job_valid, job_ready, command_valid, command_ready;
  cpu_pkg::completion_job_t job;
  cpu_pkg::admin_order_t command;

  // host copies: 0 admin engine, 1 firmware
  logic [1:0] copy_in_valid, copy_in_ready, copy_in_done;
  logic copy_in_error;
  cpu_pkg::copy_t admin_in, admin_out, firmware_copy;
  logic snoop_valid;
  logic [cpu_pkg::COPY_BITS-4:0] snoop_word;
  logic [63:0] snoop_data;
  logic in_write_valid, in_write_ready, ctx_write_valid, ctx_write_ready;
  cpu_pkg::ram_addr_t in_write_addr, ctx_write_addr;
  logic [63:0] in_write_data, ctx_write_data;
  logic [1:0] copy_out_valid, copy_out_ready;
  cpu_pkg::write_tag_t admin_tag;
  logic admin_phase, copy_out_busy, copy_out_done, copy_out_error;
  logic out_read_valid, out_read_ready;
  cpu_pkg::ram_addr_t out_read_addr;

  cpu_core #(.DIVIDER(DIVIDER)) u_core (
    .clk_i, .rst_i, .cpu_clk_i, .hold_i, .trap_o,
    .ram_read_o(cpu_read), .ram_raddr_o(cpu_raddr), .ram_write_o(cpu_write),
    .ram_waddr_o(cpu_waddr), .ram_wdata_o(cpu_wdata), .ram_rdata_i(ram_rdata),
    .reg_o(reg_req), .reg_done_i(reg_done), .reg_rdata_i(reg_rdata)
  );

  // The image is there before the first clock edge, and nobody's state is before a reset: no writes then.
  cpu_ram #(.FIRMWARE(FIRMWARE)) u_ram (
    .clk_i,
    .cpu_read_i(cpu_read), .cpu_raddr_i(cpu_raddr), .cpu_write_i(cpu_write & {8{!rst_i}}),
    .cpu_waddr_i(cpu_waddr), .cpu_wdata_i(cpu_wdata),
    .read_valid_i({out_read_valid, ctx_read_valid}),
    .read_ready_o({out_read_ready, ctx_read_ready}),
    .read_addr_i({out_read_addr, ctx_read_addr}), .rdata_o(ram_rdata),
    .write_valid_i({in_write_valid, ctx_write_valid} & {2{!rst_i}}),
    .write_ready_o({in_write_ready, ctx_write_ready}),
    .write_addr_i({in_write_addr, ctx_write_addr}),
    .write_data_i({in_write_data, ctx_write_data}),
    .load_valid_i(load_valid_i && !rst_i), .load_addr_i, .load_data_i
  );

  cpu_registers #(.DIVIDER(DIVIDER)) u_registers (
    .clk_i, .rst_i, .reg_i(reg_req), .reg_done_o(reg_done), .reg_rdata_o(reg_rdata),
    .clock_i, .written_i, .bell_error_valid_i, .bell_error_fn_i,
    .fn_enabled_i, .fn_resetting_i, .fn_failed_i,
    .ready_valid_i(ready_valid), .ready_fn_i(ready_fn), .ready_input_i(ready_input),
    .ready_error_i(ready_error), .ready_take_o(ready_take),
    .job_valid_o(job_valid), .job_ready_i(job_ready), .job_o(job),
    .command_valid_o(command_valid), .command_ready_i(command_ready), .command_o(command),
    .access_o(access), .access_write_o(access_write), .access_address_o(access_address),
    .access_wdata_o(access_wdata), .list_start_o(list_start), .list_o(list_address),
    .list_index_o(list_index),
    .ctx_busy_i(ctx_busy), .ctx_rdata_i(ctx_rdata), .ctx_error_i(ctx_error),
    .read_valid_o(copy_in_valid[1]), .read_ready_i(copy_in_ready[1]),
    .read_done_i(copy_in_done[1]), .read_error_i(copy_in_error),
    .write_valid_o(copy_out_valid[1]), .write_ready_i(copy_out_ready[1]),
    .write_done_i(copy_out_done), .write_error_i(copy_out_error), .copy_o(firmware_copy),
    .event_valid_o, .event_ready_i, .event_o
  );

  cpu_context u_context (
    .clk_i, .rst_i,
    .start_access_i(access), .start_write_i(access_write), .address_i(access_address),
    .wdata_i(access_wdata), .start_list_i(list_start), .list_i(list_address),
    .list_index_i(list_index),
    .busy_o(ctx_busy), .rdata_o(ctx_rdata), .error_o(ctx_error),
    .read_valid_o(ctx_read_valid), .read_ready_i(ctx_read_ready), .read_addr_o(ctx_read_addr),
    .rdata_i(ram_rdata),
    .write_valid_o(ctx_write_valid), .write_ready_i(ctx_write_ready),
    .write_addr_o(ctx_write_addr), .write_data_o(ctx_write_data), .ctx_o, .ctx_i
  );

  cpu_admin_queue u_admin_queue (
    .clk_i, .rst_i,
    .fetch_valid_i, .fetch_ready_o, .fetch_i, .place_valid_o, .place_ready_i, .place_fn_o,
    .place_done_i, .place_i, .order_valid_o, .order_ready_i, .order_o,
    .resetting_i(fn_resetting_i),
    .ready_valid_o(ready_valid), .ready_fn_o(ready_fn), .ready_input_o(ready_input),
    .ready_error_o(ready_error), .ready_take_i(ready_take),
    .job_valid_i(job_valid), .job_ready_o(job_ready), .job_i(job),
    .command_valid_i(command_valid), .command_ready_o(command_ready), .command_i(command),
    .read_valid_o(copy_in_valid[0]), .read_ready_i(copy_in_ready[0]), .read_o(admin_in),
    .read_done_i(copy_in_done[0]), .read_error_i(copy_in_error),
    .snoop_valid_i(snoop_valid), .snoop_word_i(snoop_word), .snoop_data_i(snoop_data),
    .write_valid_o(copy_out_valid[0]), .write_ready_i(copy_out_ready[0]), .write_o(admin_out),
    .write_tag_o(admin_tag), .write_phase_o(admin_phase), .write_busy_i(copy_out_busy),
    .token_valid_i, .token_ready_o, .token_i,
    .copy_done_o(copy_out_done), .copy_error_o(copy_out_error),
    .irq_valid_o, .irq_ready_i, .irq_o, .count_o, .active_o
  );

  cpu_host_read u_host_read (
    .clk_i, .rst_i,
    .copy_valid_i(copy_in_valid), .copy_ready_o(copy_in_ready),
    .copy_i({firmware_copy, admin_in}), .done_o(copy_in_done), .error_o(copy_in_error),
    .snoop_valid_o(snoop_valid), .snoop_word_o(snoop_word), .snoop_data_o(snoop_data),
    .req_valid_o(read_valid_o), .req_ready_i(read_ready_i), .req_o(read_o),
    .beat_valid_i, .beat_ready_o, .beat_i,
    .write_valid_o(in_write_valid), .write_ready_i(in_write_ready),
    .write_addr_o(in_write_addr), .write_data_o(in_write_data)
  );

  cpu_host_write u_host_write (
    .clk_i, .rst_i,
    .copy_valid_i(copy_out_valid), .copy_ready_o(copy_out_ready),
    .copy_i({firmware_copy, admin_out}),
    .tag_i({cpu_pkg::write_tag_t'(0), admin_tag}), .phase_i(admin_phase), .busy_o(copy_out_busy),
    .read_valid_o(out_read_valid), .read_ready_i(out_read_ready), .read_addr_o(out_read_addr),
    .rdata_i(ram_rdata),
    .req_valid_o(write_valid_o), .req_ready_i(write_ready_i), .req_o(write_o),
    .data_valid_o, .data_ready_i, .data_o
  );

endmodule

`default_nettype wire
