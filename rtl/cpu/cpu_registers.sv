// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_registers: the registers through which the firmware works (firmware/bus.hpp has the same list).
//
//   0x00 CLOCK_LOW       ro  device clock; reading it keeps the upper half for
//   0x04 CLOCK_HIGH      ro
//   0x08 STATUS          ro  [0] a command waits, [1] host copy under way, [2] event port busy,
//                            [3] host wrote a port register, [4] a function is being reset,
//                            [5] a doorbell was ignored, [6] an admin queue is in state ERROR,
//                            [7] the last host copy had a bus error
//   0x0c CLEAR           wo  [3] as in STATUS: seen
//   0x10..0x1c CONFIG    ro  sizes of the configuration, one byte each, see below
//   0x20 ADMIN_NEXT      ro  takes the next command: [31] there is one, [9] its input could not be read,
//                            [8] its input is in the slot, [7:0] function
//   0x24 ADMIN_COMPLETE  wo  [7:0] function, [8] release, [9] counts as error, [31:16] RAM word
//   0x28 ADMIN_ORDER     wo  [7:0] function, [10:8] cpu_pkg::admin_order_e
//   0x2c FN_ENABLED      ro  one bit per function, likewise
//   0x30 FN_RESETTING    ro
//   0x34 FN_FAILED       ro
//   0x38 DOORBELL_ERRORS ro  functions with an ignored doorbell; reading clears
//   0x40 CTX_DATA_LOW    rw  write: data of the next write; read: answer of the last access
//   0x44 CTX_DATA_HIGH   rw
//   0x48 CTX_READ        wo  starts an access at this address (cpu_context: header bits 31:0)
//   0x4c CTX_WRITE       wo
//   0x50 CTX_LIST        wo  starts the list at RAM word [15:0]; [31:16] is ORed into its indices
//   0x54 CTX_ERROR       ro  [0] an access was not answered
//   0x60 HOST_LOW        wo  host address of a copy
//   0x64 HOST_HIGH       wo
//   0x68 HOST_RAM        wo  [15:0] RAM word, [31:16] bytes
//   0x6c HOST_START      wo  [7:0] function, [8] to the host; done when STATUS [1] falls
//   0x74 EVENT_DATA      wo  asynchronous event
//   0x78 EVENT_OBJECT    wo  [23:0] object, [31:24] type
//   0x7c EVENT_SEND      wo  [7:0] function, [15:8] cause; only if STATUS [2] is 0
//
// Accesses to CTX registers wait until the context engine is idle (bounded by its time limit);
// ADMIN_COMPLETE and ADMIN_ORDER wait for room. Everything else answers at once.
// Neighbours: cpu_core and all parts of the subsystem.
`default_nettype none

module cpu_registers #(
  parameter int unsigned DIVIDER = 1                   // of cpu_clk, for CONFIG
) (
  input  wire                            clk_i,
  input  wire                            rst_i,

  input  wire cpu_pkg::reg_req_t         reg_i,
  output logic                           reg_done_o,
  output logic [31:0]                    reg_rdata_o,

  input  wire [63:0]                     clock_i,
  input  wire                            written_i,          // host wrote a port register
  input  wire                            bell_error_valid_i, // host_doorbell
  input  wire roci_pkg::fn_t             bell_error_fn_i,
  input  wire [cpu_pkg::FNS-1:0]         fn_enabled_i,
  input  wire [cpu_pkg::FNS-1:0]         fn_resetting_i,
  input  wire [cpu_pkg::FNS-1:0]         fn_failed_i,

  // cpu_admin_queue
  input  wire                            ready_valid_i,
  input  wire roci_pkg::fn_t             ready_fn_i,
  input  wire                            ready_input_i,
  input  wire                            ready_error_i,
  output logic                           ready_take_o,
  output logic                           job_valid_o,
  input  wire                            job_ready_i,
  output cpu_pkg::completion_job_t       job_o,
  output logic                           command_valid_o,
  input  wire                            command_ready_i,
  output cpu_pkg::admin_order_t          command_o,

  // cpu_context
  output logic                           access_o,           // start a single access
  output logic                           access_write_o,
  output logic [31:0]                    access_address_o,
  output logic [63:0]                    access_wdata_o,
  output logic                           list_start_o,
  output cpu_pkg::ram_addr_t             list_o,
  output logic [15:0]                    list_index_o,
  input  wire                            ctx_busy_i,
  input  wire [63:0]                     ctx_rdata_i,
  input  wire                            ctx_error_i,

  // host copies of the firmware
  output logic                           read_valid_o,
  input  wire                            read_ready_i,
  input  wire                            read_done_i,
  input  wire                            read_error_i,
  output logic                           write_valid_o,
  input  wire                            write_ready_i,
  input  wire                            write_done_i,
  input  wire                            write_error_i,
  output cpu_pkg::copy_t                 copy_o,             // of either

  // asynchronous events, to queue_eq_writer
  output logic                           event_valid_o,
  input  wire                            event_ready_i,
  output roci_pkg::event_t               event_o
);

  typedef enum logic [4:0] {
    CLOCK_LOW = 5'h00, CLOCK_HIGH = 5'h01, STATUS = 5'h02, CLEAR = 5'h03, CONFIG0 = 5'h04,
    CONFIG1 = 5'h05, CONFIG2 = 5'h06, CONFIG3 = 5'h07, ADMIN_NEXT = 5'h08, ADMIN_COMPLETE = 5'h09,
    ADMIN_ORDER = 5'h0a, FN_ENABLED = 5'h0b, FN_RESETTING = 5'h0c, FN_FAILED = 5'h0d,
    DOORBELL_ERRORS = 5'h0e, CTX_DATA_LOW = 5'h10, CTX_DATA_HIGH = 5'h11, CTX_READ = 5'h12,
    CTX_WRITE = 5'h13, CTX_LIST = 5'h14, CTX_ERROR = 5'h15, HOST_LOW = 5'h18, HOST_HIGH = 5'h19,
    HOST_RAM = 5'h1a, HOST_START = 5'h1b, EVENT_DATA = 5'h1d, EVENT_OBJECT = 5'h1e,
    EVENT_SEND = 5'h1f
  } register_e;

  localparam logic [31:0] CONFIG_0 = {8'(roci_config_pkg::SRQ_BITS), 8'(roci_config_pkg::EQ_BITS),
                                      8'(roci_config_pkg::CQ_BITS), 8'(roci_config_pkg::QP_BITS)};
  localparam logic [31:0] CONFIG_1 = {8'(roci_config_pkg::GID_BITS), 8'(roci_config_pkg::PD_BITS),
                                      8'(roci_config_pkg::MR_BITS), 8'(roci_config_pkg::FN_BITS)};
  localparam logic [31:0] CONFIG_2 = {
    8'(roci_config_pkg::SLOT_BITS), 8'(roci_config_pkg::READ_BITS),
    8'(roci_config_pkg::REPLAY_BITS), 8'(roci_config_pkg::INFLIGHT_BITS)};
  localparam logic [31:0] CONFIG_3 = {16'h0, 8'(DIVIDER), 7'h0, roci_config_pkg::IS_WIDE};

  register_e which;
  logic take, wait_ctx, is_ctx, accepted;
  logic [31:0] clock_high_q;
  logic written_q;
  logic [cpu_pkg::FNS-1:0] bell_errors_q;
  logic [63:0] wdata_q;
  cpu_pkg::copy_t copy_q;
  logic read_valid_q, write_valid_q, copy_busy_q, copy_error_q;
  logic event_valid_q;
  roci_pkg::event_t event_q;
  logic [31:0] status, rdata;

  // One cycle of work per access, in the cycle before reg_done_o.
  assign which = register_e'(reg_i.word[4:0]);
  assign is_ctx = which == CTX_DATA_LOW || which == CTX_DATA_HIGH || which == CTX_READ
                  || which == CTX_WRITE || which == CTX_LIST || which == CTX_ERROR;
  assign wait_ctx = is_ctx && ctx_busy_i;
  assign accepted = reg_i.valid && !reg_done_o;

  assign job_valid_o = accepted && reg_i.write && which == ADMIN_COMPLETE;
  assign job_o = '{fn: roci_pkg::fn_t'(reg_i.wdata[7:0]), is_error: reg_i.wdata[9],
                   releases: reg_i.wdata[8], ram: cpu_pkg::ram_addr_t'(reg_i.wdata[31:16])};
  assign command_valid_o = accepted && reg_i.write && which == ADMIN_ORDER;
  assign command_o = '{order: cpu_pkg::admin_order_e'(reg_i.wdata[10:8]),
                       fn: roci_pkg::fn_t'(reg_i.wdata[7:0])};

  assign take = accepted && !wait_ctx && !(job_valid_o && !job_ready_i)
                && !(command_valid_o && !command_ready_i);

  assign ready_take_o = take && !reg_i.write && which == ADMIN_NEXT && ready_valid_i;
  assign access_o = take && reg_i.write && (which == CTX_READ || which == CTX_WRITE);
  assign access_write_o = which == CTX_WRITE;
  assign access_address_o = reg_i.wdata;
  assign access_wdata_o = wdata_q;
  assign list_start_o = take && reg_i.write && which == CTX_LIST;
  assign list_o = cpu_pkg::ram_addr_t'(reg_i.wdata);
  assign list_index_o = reg_i.wdata[31:16];

  assign read_valid_o = read_valid_q;
  assign write_valid_o = write_valid_q;
  assign copy_o = copy_q;
  assign event_valid_o = event_valid_q;
  assign event_o = event_q;

  always_comb begin
    status = '0;
    status[0] = ready_valid_i;
    status[1] = copy_busy_q;
    status[2] = event_valid_q;
    status[3] = written_q;
    status[4] = fn_resetting_i != '0;
    status[5] = bell_errors_q != '0;
    status[6] = fn_failed_i != '0;
    status[7] = copy_error_q;

    unique case (which)
      CLOCK_LOW: rdata = clock_i[31:0];
      CLOCK_HIGH: rdata = clock_high_q;
      STATUS: rdata = status;
      CONFIG0: rdata = CONFIG_0;
      CONFIG1: rdata = CONFIG_1;
      CONFIG2: rdata = CONFIG_2;
      CONFIG3: rdata = CONFIG_3;
      ADMIN_NEXT: rdata = {ready_valid_i, 21'h0, ready_error_i, ready_input_i, 8'(ready_fn_i)};
      FN_ENABLED: rdata = 32'(fn_enabled_i);
      FN_RESETTING: rdata = 32'(fn_resetting_i);
      FN_FAILED: rdata = 32'(fn_failed_i);
      DOORBELL_ERRORS: rdata = 32'(bell_errors_q);
      CTX_DATA_LOW: rdata = ctx_rdata_i[31:0];
      CTX_DATA_HIGH: rdata = ctx_rdata_i[63:32];
      CTX_ERROR: rdata = {31'h0, ctx_error_i};
      default: rdata = '0;
    endcase
  end

  always_ff @(posedge clk_i) begin
    reg_rdata_o <= rdata;
    if (take && which == CLOCK_LOW) clock_high_q <= clock_i[63:32];
    if (take && reg_i.write) begin
      unique case (which)
        CTX_DATA_LOW: wdata_q[31:0] <= reg_i.wdata;
        CTX_DATA_HIGH: wdata_q[63:32] <= reg_i.wdata;
        HOST_LOW: copy_q.addr[31:0] <= reg_i.wdata;
        HOST_HIGH: copy_q.addr[63:32] <= reg_i.wdata;
        HOST_RAM: begin
          copy_q.ram <= cpu_pkg::ram_addr_t'(reg_i.wdata[15:0]);
          copy_q.bytes <= cpu_pkg::COPY_BITS'(reg_i.wdata[31:16]);
        end
        HOST_START: copy_q.fn <= roci_pkg::fn_t'(reg_i.wdata[7:0]);
        EVENT_DATA: event_q.data <= reg_i.wdata;
        EVENT_OBJECT: begin
          event_q.object <= reg_i.wdata[23:0];
          event_q.event_type <= reg_i.wdata[31:24];
        end
        EVENT_SEND: begin
          event_q.fn <= roci_pkg::fn_t'(reg_i.wdata[7:0]);
          event_q.cause <= reg_i.wdata[15:8];
          event_q.eq_valid <= 1'b0;              // the function's asynchronous EQ
          event_q.eq <= '0;
        end
        default: ;
      endcase
    end

    if (rst_i) begin
      reg_done_o <= 1'b0;
      written_q <= 1'b0;
      bell_errors_q <= '0;
      read_valid_q <= 1'b0;
      write_valid_q <= 1'b0;
      copy_busy_q <= 1'b0;
      copy_error_q <= 1'b0;
      event_valid_q <= 1'b0;
    end else begin
      reg_done_o <= take;

      if (written_i) written_q <= 1'b1;
      else if (take && reg_i.write && which == CLEAR && reg_i.wdata[3]) written_q <= 1'b0;

      if (take && !reg_i.write && which == DOORBELL_ERRORS) bell_errors_q <= '0;
      if (bell_error_valid_i) bell_errors_q[bell_error_fn_i] <= 1'b1;

      if (read_ready_i) read_valid_q <= 1'b0;
      if (write_ready_i) write_valid_q <= 1'b0;
      if (read_done_i || write_done_i) begin
        copy_busy_q <= 1'b0;
        copy_error_q <= read_done_i ? read_error_i : write_error_i;
      end
      if (take && reg_i.write && which == HOST_START) begin
        read_valid_q <= !reg_i.wdata[8];
        write_valid_q <= reg_i.wdata[8];
        copy_busy_q <= 1'b1;
      end

      if (event_ready_i) event_valid_q <= 1'b0;
      if (take && reg_i.write && which == EVENT_SEND) event_valid_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && take && reg_i.write) begin
      if (which == HOST_START) begin
        assert (!copy_busy_q) else $error("cpu_registers: a copy while one is under way");
      end
      if (which == EVENT_SEND || which == EVENT_DATA || which == EVENT_OBJECT) begin
        assert (!event_valid_q) else $error("cpu_registers: event port overrun");
      end
    end
  end

endmodule

`default_nettype wire
