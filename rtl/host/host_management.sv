// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_management: registers of block `management` (function 0 only), and the firmware's side of
// them: columns CSR and COUNTER of the context bus (hwif/contexts.toml, ctx_csr).
//
// Holds the port's MAC, its enable bit and MTU, the requester's byte cap, the control of the CPU, the
// window through which a firmware image is loaded while the CPU is held, the event counters, and what
// the firmware tells about itself. Host and firmware may both write the port's registers; a write by
// the host is told to the firmware (`written_o`), which carries it to where it takes effect.
//
// Does not: know functions (host_csr lets only function 0 in).
// Neighbours: host_csr, cpu_subsystem, ethernet (port_enable_o), host_counters inside.
`default_nettype none

module host_management (
  input  wire                       clk_i,
  input  wire                       rst_i,

  // host writes: always accepted; known_o in the same cycle
  input  wire                       write_valid_i,
  input  wire [11:0]                write_offset_i,
  input  wire [63:0]                write_data_i,
  output logic                      write_known_o,     // a register takes it
  // host reads: held until done
  input  wire                       read_valid_i,
  input  wire [11:0]                read_offset_i,
  output logic                      read_done_o,       // for one cycle, with the data
  output logic                      read_known_o,
  output logic [63:0]               read_data_o,

  input  wire roci_pkg::ctx_req_t   ctx_i,             // columns CSR and COUNTER
  output roci_pkg::ctx_rsp_t        ctx_o,

  // port
  input  wire                       link_up_i,
  input  wire [31:0]                speed_mbps_i,
  output logic                      port_enable_o,

  // CPU
  input  wire                       trap_i,            // it stopped at an illegal instruction
  output logic                      cpu_hold_o,
  output logic                      load_valid_o,      // a word of the image; only while held
  output cpu_pkg::ram_addr_t        load_addr_o,
  output logic [63:0]               load_data_o,
  output logic                      written_o,         // pulse: the host wrote a port register
  output logic [63:0]               firmware_hash_o,   // 0 before READY
  output roci_hwif_pkg::csr_identity_firmware_t firmware_o,

  // counters
  input  wire [127:0]               pulse_i,           // bit n: counter n of enum `counter`
  input  wire [5:0][13:0]           amount_i           // as host_counters
);

  localparam logic [11:0] COUNTER_WINDOW =
      12'(roci_hwif_pkg::CSR_MANAGEMENT_COUNTER_ADDR);
  localparam roci_hwif_pkg::csr_management_port_control_t PORT_CONTROL_RESET =
      roci_hwif_pkg::csr_management_port_control_t'(
          roci_hwif_pkg::CSR_MANAGEMENT_PORT_CONTROL_RESET);
  localparam roci_hwif_pkg::csr_management_requester_window_t WINDOW_RESET =
      roci_hwif_pkg::csr_management_requester_window_t'(
          roci_hwif_pkg::CSR_MANAGEMENT_REQUESTER_WINDOW_RESET);

  logic [47:0] mac_q;                          // first byte in bits 7:0
  logic enable_q;
  roci_hwif_pkg::mtu_e mtu_q;
  logic [31:0] byte_cap_q;
  logic hold_q;
  logic [31:0] load_address_q;
  logic [63:0] hash_q;
  roci_hwif_pkg::csr_identity_firmware_t firmware_q;

  // ----------------------------------------------------------------------------------- host writes
  logic write_mac, write_control, write_window, write_cpu, write_address, write_image;
  logic load_in_range;
  roci_hwif_pkg::csr_management_port_control_t control_w;

  assign control_w = roci_hwif_pkg::csr_management_port_control_t'(write_data_i);
  assign load_in_range = load_address_q < 32'(cpu_pkg::RAM_BYTES) && load_address_q[2:0] == '0;

  always_comb begin
    unique case (write_offset_i)
      12'(roci_hwif_pkg::CSR_MANAGEMENT_PORT_MAC_ADDR),
      12'(roci_hwif_pkg::CSR_MANAGEMENT_PORT_CONTROL_ADDR),
      12'(roci_hwif_pkg::CSR_MANAGEMENT_REQUESTER_WINDOW_ADDR),
      12'(roci_hwif_pkg::CSR_MANAGEMENT_CPU_CONTROL_ADDR),
      12'(roci_hwif_pkg::CSR_MANAGEMENT_FIRMWARE_ADDRESS_ADDR): write_known_o = 1'b1;
      12'(roci_hwif_pkg::CSR_MANAGEMENT_FIRMWARE_DATA_ADDR):
        write_known_o = hold_q && load_in_range;
      default: write_known_o = 1'b0;
    endcase
  end

  // Whether the register at `address` of the map is written now.
  function automatic logic hits(input int unsigned address, input logic [11:0] offset);
    return offset == 12'(address);
  endfunction

  assign write_mac = write_valid_i
      && hits(roci_hwif_pkg::CSR_MANAGEMENT_PORT_MAC_ADDR, write_offset_i);
  assign write_control = write_valid_i
      && hits(roci_hwif_pkg::CSR_MANAGEMENT_PORT_CONTROL_ADDR, write_offset_i);
  assign write_window = write_valid_i
      && hits(roci_hwif_pkg::CSR_MANAGEMENT_REQUESTER_WINDOW_ADDR, write_offset_i);
  assign write_cpu = write_valid_i
      && hits(roci_hwif_pkg::CSR_MANAGEMENT_CPU_CONTROL_ADDR, write_offset_i);
  assign write_address = write_valid_i
      && hits(roci_hwif_pkg::CSR_MANAGEMENT_FIRMWARE_ADDRESS_ADDR, write_offset_i);
  assign write_image = write_valid_i && write_known_o
      && hits(roci_hwif_pkg::CSR_MANAGEMENT_FIRMWARE_DATA_ADDR, write_offset_i);

  assign load_valid_o = write_image;
  assign load_addr_o = load_address_q[3 +: $bits(cpu_pkg::ram_addr_t)];
  assign load_data_o = write_data_i;
  assign written_o = write_mac || write_control || write_window;
  assign port_enable_o = enable_q;
  assign cpu_hold_o = hold_q;

  // -------------------------------------------------------------- column CSR: the firmware's accesses
  logic ctx_csr, ctx_counter, ctx_csr_done;
  roci_hwif_pkg::ctx_csr_t ctx_row;
  logic [63:0] ctx_word;

  assign ctx_csr = ctx_i.valid && !ctx_o.done
                   && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_CSR;
  assign ctx_counter = ctx_i.valid && !ctx_o.done
                       && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_COUNTER;
  // a host write goes first
  assign ctx_csr_done = ctx_csr && !write_valid_i;

  always_comb begin
    ctx_row = '0;
    ctx_row.mac = mac_q;
    ctx_row.link_up = link_up_i;
    ctx_row.speed_mbps = speed_mbps_i;
    ctx_row.enable = enable_q;
    ctx_row.active_mtu = mtu_q;
    ctx_row.byte_cap = byte_cap_q;
    ctx_row.firmware_hash = hash_q;
    ctx_row.state = firmware_q.state;
    ctx_row.fault = firmware_q.fault;
    ctx_row.version_patch = firmware_q.version_patch;
    ctx_row.version_minor = firmware_q.version_minor;
    ctx_row.version_major = firmware_q.version_major;
    ctx_word = '0;
    for (int unsigned w = 0; w < roci_hwif_pkg::CTX_CSR_BYTES / 8; w++) begin
      if (ctx_i.word == 4'(w)) ctx_word = ctx_row[64*w +: 64];
    end
  end

  roci_hwif_pkg::ctx_csr_t ctx_new;            // the written word in its place
  always_comb begin
    ctx_new = '0;
    for (int unsigned w = 0; w < roci_hwif_pkg::CTX_CSR_BYTES / 8; w++) begin
      ctx_new[64*w +: 64] = ctx_i.wdata;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      mac_q <= '0;
      enable_q <= PORT_CONTROL_RESET.enable;
      mtu_q <= PORT_CONTROL_RESET.active_mtu;
      byte_cap_q <= WINDOW_RESET.byte_cap;
      hold_q <= 1'b0;
      load_address_q <= '0;
      hash_q <= '0;
      firmware_q <= '0;
    end else begin
      if (write_mac) mac_q <= write_data_i[47:0];
      if (write_control) begin
        enable_q <= control_w.enable;
        mtu_q <= control_w.active_mtu;
      end
      if (write_window) byte_cap_q <= write_data_i[31:0];
      if (write_cpu) hold_q <= write_data_i[0];
      if (write_address) load_address_q <= write_data_i[31:0];
      if (write_image) load_address_q <= load_address_q + 32'd8;

      if (ctx_csr_done && ctx_i.write) begin
        unique case (ctx_i.word)
          4'd0: mac_q <= ctx_new.mac;
          4'd2: begin
            enable_q <= ctx_new.enable;
            mtu_q <= ctx_new.active_mtu;
          end
          4'd3: byte_cap_q <= ctx_new.byte_cap;
          4'd4: hash_q <= ctx_new.firmware_hash;
          4'd5: begin
            firmware_q.state <= ctx_new.state;
            firmware_q.fault <= ctx_new.fault;
            firmware_q.version_patch <= ctx_new.version_patch;
            firmware_q.version_minor <= ctx_new.version_minor;
            firmware_q.version_major <= ctx_new.version_major;
          end
          default: ;
        endcase
      end
      if (hold_q) begin                        // a new image has to introduce itself
        hash_q <= '0;
        firmware_q <= '0;
        firmware_q.state <= roci_hwif_pkg::FIRMWARE_STATE_BOOTING;
      end
    end
  end

  // What software sees: the hardware knows better about a CPU that does not run.
  always_comb begin
    firmware_o = firmware_q;
    if (hold_q) begin
      firmware_o = '0;
      firmware_o.state = roci_hwif_pkg::FIRMWARE_STATE_HELD;
    end else if (trap_i) begin
      firmware_o.state = roci_hwif_pkg::FIRMWARE_STATE_FAILED;
      firmware_o.fault = roci_hwif_pkg::FIRMWARE_FAULT_TRAP;
    end else if (firmware_q.state == roci_hwif_pkg::FIRMWARE_STATE_READY
                 && hash_q != roci_hwif_pkg::HWIF_HASH) begin
      firmware_o.state = roci_hwif_pkg::FIRMWARE_STATE_FAILED;
      firmware_o.fault = roci_hwif_pkg::FIRMWARE_FAULT_HASH;
    end else if (firmware_q.state == roci_hwif_pkg::FIRMWARE_STATE_HELD) begin
      firmware_o.state = roci_hwif_pkg::FIRMWARE_STATE_BOOTING;   // it has not said anything yet
    end
    firmware_hash_o = firmware_q.state == roci_hwif_pkg::FIRMWARE_STATE_READY && !hold_q && !trap_i
                      ? hash_q : '0;
  end

  // -------------------------------------------------------------------------------------- counters
  logic host_counter, counter_busy_q, counter_for_host_q;
  logic counter_valid, counter_done, counter_known;
  logic [7:0] counter_index;
  logic [6:0] counter_index_q;
  logic [63:0] counter_value;
  logic start_host, start_ctx;

  assign host_counter = read_valid_i && read_offset_i >= COUNTER_WINDOW;
  assign start_host = host_counter && !counter_busy_q && !read_done_o;
  assign start_ctx = ctx_counter && !ctx_i.write && ctx_i.index < 16'd128 && !counter_busy_q
                     && !host_counter;
  assign counter_index = start_host ? read_offset_i[10:3] : {1'b0, ctx_i.index[6:0]};
  assign counter_known = !counter_index[7] && read_offset_i[2:0] == '0;
  assign counter_valid = counter_busy_q;

  host_counters u_counters (
    .clk_i, .rst_i, .pulse_i, .amount_i,
    .read_valid_i(counter_valid), .read_index_i(counter_index_q),
    .read_done_o(counter_done), .read_value_o(counter_value)
  );

  always_ff @(posedge clk_i) begin
    if (start_host || start_ctx) begin
      counter_index_q <= counter_index[6:0];
      counter_for_host_q <= start_host;
    end
    if (rst_i) counter_busy_q <= 1'b0;
    else if ((start_host && counter_known) || start_ctx) counter_busy_q <= 1'b1;
    else if (counter_done) counter_busy_q <= 1'b0;
  end

  // ----------------------------------------------------------------------------------------- answers
  logic [63:0] register_data;
  logic register_known;
  roci_hwif_pkg::csr_management_port_status_t status;
  roci_hwif_pkg::csr_management_port_control_t control;

  always_comb begin
    status = '0;
    status.link_up = link_up_i;
    status.speed_mbps = speed_mbps_i;
    control = '0;
    control.enable = enable_q;
    control.active_mtu = mtu_q;
    register_known = 1'b1;
    register_data = '0;
    unique case (read_offset_i)
      12'(roci_hwif_pkg::CSR_MANAGEMENT_PORT_MAC_ADDR): register_data = {16'h0, mac_q};
      12'(roci_hwif_pkg::CSR_MANAGEMENT_PORT_STATUS_ADDR): register_data = status;
      12'(roci_hwif_pkg::CSR_MANAGEMENT_PORT_CONTROL_ADDR): register_data = control;
      12'(roci_hwif_pkg::CSR_MANAGEMENT_REQUESTER_WINDOW_ADDR):
        register_data = {32'h0, byte_cap_q};
      12'(roci_hwif_pkg::CSR_MANAGEMENT_CPU_CONTROL_ADDR): register_data = {63'h0, hold_q};
      12'(roci_hwif_pkg::CSR_MANAGEMENT_FIRMWARE_ADDRESS_ADDR):
        register_data = {32'h0, load_address_q};
      12'(roci_hwif_pkg::CSR_MANAGEMENT_FIRMWARE_DATA_ADDR): ;     // write only
      default: register_known = 1'b0;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      read_done_o <= 1'b0;
      ctx_o <= '0;
    end else begin
      read_done_o <= 1'b0;
      if (read_valid_i && !read_done_o) begin
        read_done_o <= host_counter ? (start_host && !counter_known)
                                      || (counter_done && counter_for_host_q)
                                    : 1'b1;
      end
      // a write to COUNTER and an index without counter are answered at once, with zero
      ctx_o.done <= ctx_csr_done || (counter_done && !counter_for_host_q)
                    || (ctx_counter && (ctx_i.write || ctx_i.index >= 16'd128));
      ctx_o.rdata <= '0;
      if (ctx_csr_done) ctx_o.rdata <= ctx_word;
      else if (counter_done && !counter_for_host_q) ctx_o.rdata <= counter_value;
    end
    read_known_o <= host_counter ? (counter_known || counter_busy_q) : register_known;
    read_data_o <= host_counter ? (counter_done ? counter_value : '0) : register_data;
  end

endmodule

`default_nettype wire
